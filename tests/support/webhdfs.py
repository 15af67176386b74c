# SPDX-License-Identifier: Apache-2.0
"""A weir that reads files of an HDFS, and the HDFS."""

import json
import os
import shutil

from support import cases, metrics
from support.place import PATIENCE_S, free_port, lines_of, until
from support.traffic import sliding, zone

from parts import hdfs  # pylint: disable=wrong-import-order
from parts.words import Unavailable

DONE, FAILED, USAGE = 0, 1, 2
BUSY_S = 4 * PATIENCE_S
T0 = 1700000000


class Shared:
    """One HDFS for all tests of this script; each has a folder of its own."""

    one = None
    home = None

    @classmethod
    def get(cls, place):
        """It, started for the first that asks."""
        if cls.one is None:
            cls.home = Home(os.path.join(os.path.dirname(place.directory), f"weir-hdfs-{os.getpid()}"))
            cls.one = hdfs.Hdfs(cls.home)
            try:
                cls.one.bring_up()
            except Unavailable as why:
                cls.end()
                raise cases.Skipped(str(why).splitlines()[0]) from why
            except BaseException:
                cls.end()
                raise
        return cls.one

    @classmethod
    def end(cls):
        """Ends it."""
        if cls.one is not None:
            cls.one.take_down()
            cls.one = None
        if cls.home is not None:
            shutil.rmtree(cls.home.directory, ignore_errors=True)


class Home:
    """The directory of an HDFS."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)


def writer_of(one):
    """What writes and flushes without closing; skips where Java has no compiler."""
    try:
        return one.writing()
    except Unavailable as why:
        raise cases.Skipped(str(why)) from why


def user(name):
    """A line with a user in it."""
    return json.dumps({"time": T0, "user": name}) + "\n"


def users(*names):
    """Lines, as bytes."""
    return "".join(user(name) for name in names).encode()


class Run:
    """A weir that follows files of an HDFS. Whoever comes twice is blocked: so what is read twice shows at once, and
    what was not read when it comes again."""

    def __init__(self, place, one, path, **more):
        self.place, self.one, self.port, self.weir = place, one, free_port(), None
        source = {"type": "webhdfs", "url": one.urls, "path": path, "format": "json", "user": "weir", "poll": "100ms",
                  "name": "logs", **more}
        self.config = place.config([zone("users", [sliding(1, "1h")], key=("user",))], [source],
                                   listen={"http": f"127.0.0.1:{self.port}"})

    def start(self):
        """Starts it."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.place.path("state"), "--decisions",
                                     self.place.path("out"), "--summary", "json")
        return self

    def blocked(self):
        """Whom it has blocked, and how often."""
        return sorted(line["key"][0] for line in lines_of(self.place.path("out")) if line["action"] == "block")

    def value(self, name, **labels):
        """A metric; None while it does not answer."""
        page = metrics.scrape(self.port)
        if page is None:
            self.weir.require_asked()
        return page and page.value(name, **labels)

    def until_lines(self, count):
        """Until so many lines were read since its start."""
        until(lambda: (self.value("weir_collector_lines_total") or 0) >= count, f"{count} lines are read", BUSY_S, self.weir)

    def until_blocked(self, names):
        """Until these and no others are blocked, each once."""
        until(lambda: len(self.blocked()) >= len(names), "all are blocked", BUSY_S, self.weir)
        assert self.blocked() == sorted(names), (set(self.blocked()) ^ set(names), len(self.blocked()), len(names))

    def once(self):
        """Reads all to its end: (exit code, what it said)."""
        weir = self.place.start("run", "--once", "--config", self.config, "--decisions", self.place.path("out"))
        return weir.wait(BUSY_S), weir.said()
