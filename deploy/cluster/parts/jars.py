# SPDX-License-Identifier: Apache-2.0
"""Kafka's jars, from Maven Central into a cache: XDG_CACHE_HOME/weir, or ~/.cache/weir.

Fetched once for all clusters of a user, into a directory that gets its name
when all of it is there. Maven checks what it fetches against the repository's
checksums.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile

from parts.process import running_command
from parts.programs import find
from parts.words import Failed, Unavailable, say

KAFKA = "3.9.1"
_SLF4J = "1.7.36"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_FETCH_S = 1200
_WITNESSES = (f"kafka_2.13-{KAFKA}.jar", f"kafka-tools-{KAFKA}.jar", f"slf4j-reload4j-{_SLF4J}.jar")

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>weir</groupId>
  <artifactId>kafka-for-trial</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{KAFKA}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>{_SLF4J}</version></dependency>
  </dependencies>
</project>
"""


def place():
    """The directory that holds the jars, or will."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "weir", f"kafka-{KAFKA}")


def archive_path():
    """Where an archive of Kafka's classes is, or will be, for the Java of this machine."""
    java = os.stat(os.path.realpath(find("java")))
    return os.path.join(place(), f"classes-{java.st_size:x}-{java.st_mtime_ns:x}.jsa")


def archive():
    """The path of that archive; None if there is none."""
    path = archive_path()
    return path if os.path.exists(path) and os.path.getsize(path) > 0 else None


@contextlib.contextmanager
def locked_cache():
    """Gives the steps after which nobody else changes the cache, until the block is left."""
    parent = os.path.dirname(place())
    os.makedirs(parent, exist_ok=True)
    with open(os.path.join(parent, "lock"), "w", encoding="ascii") as lock:
        yield _locking(lock)


def _locking(lock):
    while not _try_lock(lock):
        yield


def fetching():
    """Steps: fetches them where they are not there yet."""
    target = place()
    if _whole(target):
        return
    with locked_cache() as locking:
        yield from locking
        if not _whole(target):
            yield from _fetching_into(target, os.path.dirname(target))


def _fetching_into(target, parent):
    say(f"Fetching Kafka {KAFKA} by Maven (60 MB, once) …")
    shutil.rmtree(target, ignore_errors=True)
    part = tempfile.mkdtemp(prefix=f"kafka-{KAFKA}.part-", dir=parent)
    try:
        pom, log = os.path.join(part, "pom.xml"), os.path.join(parent, "maven.log")
        with open(pom, "w", encoding="utf-8") as file:
            file.write(_POM)
        with open(log, "w", encoding="ascii"):
            pass  # each try's own
        try:
            yield from running_command(
                [find("mvn"), "--batch-mode", "--quiet", "--strict-checksums", "--file", pom, _PLUGIN,
                 f"-DoutputDirectory={os.path.join(part, 'libs')}"], log, _FETCH_S)
        except Failed as why:
            raise Unavailable(
                "Kafka's jars cannot be fetched: Maven found no way to its repository (Maven Central, or the mirror\n"
                "that ~/.m2/settings.xml names), or did not get all of them. Bring this machine online and try again,\n"
                f"or copy {target} from one that has it. Maven says ({log}):\n{_first_errors(log)}") from why
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    if not _whole(target):
        raise Failed(f"Maven left no Kafka in {target}")


def _first_errors(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if "ERROR" in line]
    return "\n".join(f"  {line[:400]}" for line in lines[:2])


def _whole(target):
    return all(os.path.exists(os.path.join(target, "libs", name)) for name in _WITNESSES)


def _try_lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
