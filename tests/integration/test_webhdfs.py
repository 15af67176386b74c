#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `webhdfs` against a real HDFS: each line once, of files that grow, are renamed, packed, cut, through kills.

WEIR_ROUNDS  how many rounds of kills (5)
"""

import gzip
import json
import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
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
            cls.home = _Home(os.path.join(os.path.dirname(place.directory), f"weir-hdfs-{os.getpid()}"))
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


class _Home:
    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)


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


def test_files_are_read_to_their_end(place):
    one = Shared.get(place)
    one.put("/once/a.log", users("a", "b"))
    one.put("/once/b.log.gz", gzip.compress(users("a", "c")))
    one.put("/once/2026/11/c.log", users("b", "c") + b'{"time": 1700000000, "user": "last"}')
    one.put("/once/.hidden", users("x", "x"))
    one.put("/once/d.log._COPYING_", users("x", "x"))
    run = Run(place, one, ["/once/*", "/once/*/*/*.log"])
    code, said = run.once()
    assert code == DONE, said
    assert run.blocked() == ["a", "b", "c"]


def test_growing_renamed_and_closed_files_are_followed(place):
    one = Shared.get(place)
    writer = one.writing()
    writer.tell("open", "/grow/a.log.tmp")
    writer.tell("write", "/grow/a.log.tmp", user("tmp"))
    writer.tell("flush", "/grow/a.log.tmp")
    writer.tell("open", "/grow/b.log")
    writer.tell("write", "/grow/b.log", user("b1"))
    writer.tell("flush", "/grow/b.log")
    run = Run(place, one, "/grow/*").start()
    run.until_lines(1)
    # The NameNode's length stands still; the DataNode gives what was flushed, and half a line waits for its end.
    writer.tell("write", "/grow/b.log", user("b2") + user("b3")[:10])
    writer.tell("flush", "/grow/b.log")
    run.until_lines(2)
    assert one.status("/grow/b.log")["length"] < len(users("b1", "b2"))
    one.rename("/grow/b.log", "/grow/b.log.1")
    one.put("/grow/b.log", users("other"))
    writer.tell("write", "/grow/b.log", user("b3")[10:])
    writer.tell("flush", "/grow/b.log")
    run.until_lines(4)
    writer.tell("close", "/grow/b.log")
    one.append("/grow/b.log.1", users("b4"))
    one.rename("/grow/a.log.tmp", "/grow/a.log")
    run.until_lines(6)
    assert run.blocked() == []
    one.put("/grow/again.log", users("tmp", "b1", "b2", "b3", "b4", "other"))
    run.until_blocked(["tmp", "b1", "b2", "b3", "b4", "other"])
    assert run.weir.stop() == DONE


def test_truncated_is_told(place):
    one = Shared.get(place)
    one.put("/cut/a.log", users("a", "b"))
    run = Run(place, one, "/cut/a.log", poll="100ms").start()
    run.until_lines(2)
    one.truncate("/cut/a.log", len(users("a")))
    until(lambda: "was truncated" in run.weir.said(), "it is told", BUSY_S, run.weir)
    one.append("/cut/a.log", users("c", "a"))
    run.until_blocked(["a"])
    assert run.weir.stop() == DONE


def test_each_line_once_through_kills(place):
    one = Shared.get(place)
    run = Run(place, one, "/kills/*").start()
    seed = int(os.environ.get("WEIR_SEED", "1"))
    dice, number = random.Random(seed), 0
    writer = one.writing()
    writer.tell("open", "/kills/grows.log")
    names = []
    for _ in range(int(os.environ.get("WEIR_ROUNDS", "5"))):
        for _ in range(dice.randint(3, 8)):
            fresh = [f"u{number + i}" for i in range(dice.randint(1, 300))]
            names, number = names + fresh, number + len(fresh)
            if dice.random() < 0.5:
                writer.tell("write", "/kills/grows.log", users(*fresh).decode())
                writer.tell("flush", "/kills/grows.log")
            else:
                one.put(f"/kills/{number}.log", users(*fresh))
            time.sleep(dice.random() * 0.2)
        what = dice.choice(["weir", "weir", "namenode"])
        if what == "weir":
            run.weir.kill()
            run.start()
        else:
            together = [one.namenodes[0]]
            hdfs.together(part.ending(at_once=True) for part in together)
            hdfs.together(part.starting() for part in together)
            one.until_writable()
    assert run.blocked() == []
    one.put("/kills/all.log", users(*names))
    run.until_blocked(names)
    assert run.weir.stop() == DONE


def test_what_is_wrong_is_said(place):
    one = Shared.get(place)
    one.put("/wrong/a.log", users("a"))
    for words, more in (("there is no such file or folder", {"path": "/nowhere/a.log"}),
                        ("Permission denied", {"path": "/secret/*"}),
                        ("no NameNode of 2 serves", {"url": [f"http://127.0.0.1:{free_port()}"] * 2, "path": "/x"}),
                        ("is a folder", {"path": "/wrong"})):
        if "secret" in more["path"]:
            one.put("/secret/a.log", users("a"))
            one.ask("PUT", "/secret", op="SETPERMISSION", permission="700")
        run = Run(place, one, **more)
        code, said = run.once()
        assert code == FAILED and words in said, (words, code, said)


def main():
    """Runs them, and ends the servers."""
    try:
        cases.main(globals())
    finally:
        Shared.end()


if __name__ == "__main__":
    main()
