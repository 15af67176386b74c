#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seeds beside checks: a running weir is asked over its socket, and each seed script gets the same calls.

weir stamps its checks by its own clock. The log says at which ms, so the seed's Redis, whose clock the test sets, is asked
at just these times afterwards, and must have said the same.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from seeds import harness
from seeds.harness import same
from seeds.redis import redis
from support.place import Place, free_port, until
from support.redis import Redis, RedisError

US = 1000
WORDS = ("block", "pass")
TRACE = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, 3, 2, 1, 0, -1]
ZONES = [
    # The gate rounds its time to live to whole seconds: it is one that is 499 ms shorter.
    {"name": "gate", "key": ["user"], "limits": [{"algorithm": "uniform", "interval": "501ms"}]},
    {"name": "set", "key": ["user"], "limits": [{"algorithm": "sliding_window", "rate": 3, "window": "1s"}]},
    {"name": "stream", "key": ["user"], "limits": [{"algorithm": "queue", "length": 3, "hold": "1d"}]},
    {"name": "tokens", "key": ["user"],
     "limits": [{"algorithm": "token_bucket", "rate": 1, "window": "1s", "burst": 10, "penalize": True}]},
]


class Asked:
    """A weir run that answers checks; leave it, and `checks` are those of its log, in order."""

    def __init__(self, place):
        self.place, self.client, self.port = place, None, free_port()

    def start(self):
        config = self.place.config(ZONES, [{"type": "file", "path": self.place.write("log", ""), "format": "combined",
                                            "follow": True}],
                                   bus={"partitions": 1}, listen={"resp": f"127.0.0.1:{self.port}"})
        self.weir = self.place.start("run", "--config", config, "--state", self.place.path("state"))
        until(lambda: "following" in self.weir.said(), "weir follows", running=self.weir)
        self.client = Redis(self.port)
        until(self.answers, "checks are answered", running=self.weir)

    def answers(self):
        try:
            return self.client.call("WEIR.PEEK", "nobody", "gate")
        except RedisError:
            return None

    def checks(self):
        """Ends it: the (key, ms, whether it settles) of its log."""
        self.client.close()
        assert self.weir.stop() == 0, self.weir.said()
        out = subprocess.run([self.place.weir, "decode", "--state", self.place.path("state"), "--flat"], check=True,
                             capture_output=True, text=True).stdout
        events = [json.loads(line) for line in out.splitlines()]
        return [(event["key"], event["time"], "settles" in event) for event in events
                if event["kind"] == "checks" and "time" in event]


@contextlib.contextmanager
def asked(weir):
    """An Asked, started."""
    with Place(weir.program) as place:
        one = Asked(place)
        one.start()
        yield one


def past(moment):
    until(lambda: time.monotonic() >= moment, "its time")


def sound():
    """Waits for a ms of three digits, also where weir is asked a while later: with fewer, the sorted set's score is a tenth
    of what it should be."""
    until(lambda: 105 <= int(time.time() * 1000) % 1000 < 850, "a sound score")


def ask_in_turn(one, name, users, step_s, count, chance):
    """Checks with a step between them, so that no two have one ms, which are one to a script: the users and the answers."""
    seen = []
    for _ in range(count):
        past(time.monotonic() + step_s)
        if name == "set":
            sound()
        user = chance.choice(users)
        seen.append((user, WORDS[one.client.call("WEIR.CHECK", user, name)[0] == 0]))
    return seen


def compare(weir, seed, script_file, prefix, words, seen, checks):
    """The script says the same, at the times that the log has."""
    seed.call("FLUSHALL")
    script = seed.load(script_file)
    same([key for key, _, _ in checks], [user for user, _ in seen], "the log's order")
    said = []
    for key, at, _ in checks:
        seed.set_clock(at * US)
        said.append(WORDS[seed.call("EVALSHA", script, 1, prefix + key, *words)])
    same(said, [answer for _, answer in seen], lambda place: f"call {place} at {checks[place]}")
    weir.judged += len(said)
    assert set(said) == set(WORDS), said


def test_gate(weir, seed):
    with asked(weir) as one:
        seen = ask_in_turn(one, "gate", ["ann", "bob"], 0.07, 60, random.Random(1))
        compare(weir, seed, "uniform_gate.lua", "rl:", [1000], seen, one.checks())


def test_sorted_set(weir, seed):
    for _ in range(3):  # a machine that stalls may make one of the scores unsound
        with asked(weir) as one:
            seen = ask_in_turn(one, "set", ["ann", "bob"], 0.05, 60, random.Random(2))
            checks = one.checks()
        if all(at % 1000 >= 100 for _, at, _ in checks):
            break
    compare(weir, seed, "sorted_set_window.lua", "z:", [1000 * US, 3], seen, checks)


def test_stream(weir, seed):
    """Who works on the stream deletes its oldest entry: the oldest reservation is released."""
    chance, waiting, seen = random.Random(3), [], []
    with asked(weir) as one:
        for _ in range(80):
            if waiting and chance.random() < 0.4:
                one.client.call("WEIR.RELEASE", "ann", "stream", waiting.pop(0))
                seen.append(("ann", "done"))
                continue
            reply = one.client.call("WEIR.RESERVE", "ann", "stream", 1)
            seen.append(("ann", WORDS[reply[0] == 0]))
            if reply[0] == 0:
                waiting.append(reply[5])
        checks = one.checks()
    seed.call("FLUSHALL")
    script, said = seed.load("stream_queue.lua"), []
    for _, at, settles in checks:
        seed.set_clock(at * US)
        if settles:
            for entry, _ in seed.call("XRANGE", "x:ann", "-", "+", "COUNT", 1):
                seed.call("XDEL", "x:ann", entry)
            said.append("done")
        else:
            said.append(WORDS[seed.call("EVALSHA", script, 1, "x:ann", 3, "request", "details")])
    same(said, [answer for _, answer in seen], "the stream")
    assert {"block", "pass", "done"} == set(said), said


def test_trace_of_the_article(weir, _seed):
    """PostgreSQL's function, as its article shows it: a call each 100 ms, a rest, and five more."""
    seen, begin = [], time.monotonic()
    with asked(weir) as one:
        begin = time.monotonic()
        for number in range(18):
            past(begin + number * 0.1 + (4.9 if number >= 13 else 0))
            limited, _, left = one.client.call("WEIR.CHECK", "user1", "tokens")[:3]
            seen.append(-1 if limited else left)
        one.checks()
    same(seen, TRACE, "weir's numbers")


if __name__ == "__main__":
    sys.exit(harness.main(globals(), redis))
