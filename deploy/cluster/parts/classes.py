# SPDX-License-Identifier: Apache-2.0
"""An archive of the classes that a broker loads, beside its jars: with it a start costs half of the time.

Made once, by a broker that is started for nothing else and writes it when it
ends. It belongs to one build of Java; with another one a new archive is made.
Where Java cannot make one, an empty file says so and brokers start without.
"""

import os
import shutil
import tempfile

from parts import cluster as clusters
from parts import jars
from parts.words import Failed, say

_STOP_S = 120  # writing it takes seconds


def making():
    """Steps: makes it where it is not there."""
    if os.path.exists(jars.archive_path()):
        return
    with jars.locked_cache() as locking:
        yield from locking
        if not os.path.exists(jars.archive_path()):
            yield from _making()


def _making():
    say("Preparing Kafka for quicker starts (10 s, once) …")
    directory = tempfile.mkdtemp(prefix="weir-cluster-")
    made = os.path.join(directory, "classes.jsa")
    broker = None
    try:
        broker = clusters.make(directory, brokers=1, temporary=True).brokers[0]
        broker.class_options, broker.stop_s = [f"-XX:ArchiveClassesAtExit={made}"], _STOP_S
        try:
            yield from broker.starting()
            yield from broker.ending()
        except Failed:
            pass  # if there is something wrong, the real start says it
        if not os.path.exists(made):
            with open(made, "w", encoding="ascii"):
                pass
        part = jars.archive_path() + ".part"
        shutil.copyfile(made, part)
        os.rename(part, jars.archive_path())
    finally:
        for _ in broker.ending(at_once=True) if broker else ():
            pass
        shutil.rmtree(directory, ignore_errors=True)
