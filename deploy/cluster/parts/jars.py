# SPDX-License-Identifier: Apache-2.0
"""Jars of the servers that run on Java, from Maven Central into a cache: XDG_CACHE_HOME/weir, or ~/.cache/weir.

Fetched once for all clusters of a user, into a directory that gets its name
when all of it is there. Maven checks what it fetches against the repository's
checksums.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from typing import NamedTuple

from parts.process import running_command
from parts.programs import find
from parts.words import Failed, Unavailable, say

_SLF4J = "1.7.36"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_FETCH_S = 1200


class Jars(NamedTuple):
    """What one program consists of."""

    title: str
    version: str
    megabytes: int
    artifacts: tuple  # of Maven, "GROUP:ARTIFACT:VERSION"; it finds what these need
    witnesses: tuple  # some of the jars: where they are, all are

    @property
    def name(self):
        """Of its directory in the cache."""
        return f"{self.title.lower()}-{self.version}"

    def pom(self):
        """For Maven."""
        needed = "".join(
            "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>\n".format(
                *artifact.split(":")) for artifact in self.artifacts)
        return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>weir</groupId>
  <artifactId>{self.title.lower()}-for-trial</artifactId>
  <version>1</version>
  <dependencies>
{needed}  </dependencies>
</project>
"""


KAFKA = Jars("Kafka", "3.9.1", 60,
             ("org.apache.kafka:kafka_2.13:3.9.1", "org.apache.kafka:kafka-tools:3.9.1",
              f"org.slf4j:slf4j-reload4j:{_SLF4J}"),
             ("kafka_2.13-3.9.1.jar", "kafka-tools-3.9.1.jar", f"slf4j-reload4j-{_SLF4J}.jar"))


def place(what=KAFKA):
    """The directory that holds the jars, or will."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "weir", what.name)


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


def fetching(what=KAFKA):
    """Steps: fetches them where they are not there yet."""
    if _whole(what):
        return
    with locked_cache() as locking:
        yield from locking
        if not _whole(what):
            yield from _fetching_anew(what)


def _fetching_anew(what):
    say(f"Fetching {what.title} {what.version} by Maven ({what.megabytes} MB, once) …")
    target = place(what)
    parent = os.path.dirname(target)
    shutil.rmtree(target, ignore_errors=True)
    part = tempfile.mkdtemp(prefix=f"{what.name}.part-", dir=parent)
    try:
        pom, log = os.path.join(part, "pom.xml"), os.path.join(parent, "maven.log")
        with open(pom, "w", encoding="utf-8") as file:
            file.write(what.pom())
        with open(log, "w", encoding="ascii"):
            pass  # each try's own
        try:
            yield from running_command(
                [find("mvn"), "--batch-mode", "--quiet", "--strict-checksums", "--file", pom, _PLUGIN,
                 f"-DoutputDirectory={os.path.join(part, 'libs')}"], log, _FETCH_S)
        except Failed as why:
            raise Unavailable(
                f"{what.title}'s jars cannot be fetched: Maven found no way to its repository (Maven Central, or the\n"
                "mirror that ~/.m2/settings.xml names), or did not get all of them. Bring this machine online and try\n"
                f"again, or copy {target} from one that has it. Maven says ({log}):\n{_first_errors(log)}") from why
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    if not _whole(what):
        raise Failed(f"Maven left no {what.title} in {target}")


def _first_errors(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if "ERROR" in line]
    return "\n".join(f"  {line[:400]}" for line in lines[:2])


def _whole(what):
    return all(os.path.exists(os.path.join(place(what), "libs", name)) for name in what.witnesses)


def _try_lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
