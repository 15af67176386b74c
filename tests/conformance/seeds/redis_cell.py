# SPDX-License-Identifier: Apache-2.0
"""Replies that redis-cell gave, kept as facts beside this file, and how they were taken.

redis_cell.jsonl holds a sequence of calls of one key a line: its name, redis-cell's version, the
limit (max_burst, count, period in seconds), and for each call its time in ms since the start, its
quantity and the five numbers of CL.THROTTLE's reply (limited, limit, remaining, retry_after,
reset_after). They were given on a Redis whose clock the recorder set. To take a version's again
from a module that you have:

    python3 -m seeds.redis_cell VERSION MODULE
"""

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from seeds.exact import Call
from seeds.redis import redis
from seeds.sequences import START_MS

FACTS = Path(__file__).with_suffix(".jsonl")
LATEST = "0.5.0"
CALLS = 60
LIMITS = (  # max_burst, count, period: intervals of whole and of broken ms, slow and fast
    (0, 1, 1), (0, 1, 2), (4, 1, 1), (15, 30, 60), (2, 3, 1), (5, 7, 1), (0, 7, 60), (3, 8, 1),
    (9, 10, 60), (1, 16, 1), (30, 64, 1), (2, 100, 3600), (100, 512, 1), (10, 1000, 86_400),
    (0, 999, 60), (50, 1000, 60), (6, 11, 7), (1, 86_400, 86_400))
REFUSED = [(0, 1), (1, 1), (1001, 1), (1999, 1)]
NAMED = (  # name, version, limit, calls
    ("less than a second early", "0.2.1", (0, 1, 2),
     [(0, 1), (1000, 1), (1001, 1), (2000, 1), (3000, 1), (3001, 1)]),
    ("ten a second", "0.2.1", (0, 10, 1), [(ms, 1) for ms in range(0, 100, 10)]),
    ("told to retry", "0.3.0", (0, 1, 2), REFUSED),
    ("told to retry", LATEST, (0, 1, 2), REFUSED),
    ("600,000 a second", LATEST, (599_999, 600_000, 1), [(0, 600_000), (999, 599_500)]))

# Its own test's sequence for max_burst 4, one a second: ms since the start, quantity, limited,
# remaining, ms to the reset, ms to the retry (None: there is none).
OWN_TEST = (
    (0, 6, True, 5, 0, None),
    (0, 1, False, 4, 1000, None),
    (0, 1, False, 3, 2000, None),
    (0, 1, False, 2, 3000, None),
    (0, 1, False, 1, 4000, None),
    (0, 1, False, 0, 5000, None),
    (0, 1, True, 0, 5000, 1000),
    (3000, 1, False, 2, 3000, None),
    (3100, 1, False, 1, 3900, None),
    (4000, 1, False, 1, 4000, None),
    (8000, 1, False, 4, 1000, None),
    (9500, 1, False, 4, 1000, None),
    (9500, 0, False, 4, 1000, None),
    (9500, 2, False, 2, 3000, None),
    (9500, 5, True, 2, 3000, 3000))


@dataclass
class Fact:
    name: str
    version: str
    limit: tuple
    calls: list
    replies: list

    def limited(self):
        return ["block" if reply[0] else "pass" for reply in self.replies]

    def remaining(self):
        return [reply[2] for reply in self.replies]

    def retry_after_s(self):
        return [reply[3] for reply in self.replies]


def facts(name, version=LATEST):
    """The recorded sequences of a name."""
    lines = map(json.loads, FACTS.read_text().splitlines())
    return [Fact(name, version, tuple(line["limit"]),
                 [Call(START_MS + ms, cost=quantity) for ms, quantity, _ in line["calls"]],
                 [reply for _, _, reply in line["calls"]])
            for line in lines if (line["name"], line["version"]) == (name, version)]


def walk(chance, burst, count, period_s):
    """(ms, quantity) near the times at which the limit opens: whole intervals after a call."""
    calls, now = [], 0
    interval_ms = 1000 * period_s / count
    for _ in range(CALLS):
        kind = chance.random()
        if kind < 0.4:
            target = now
        elif kind < 0.9:
            steps = chance.randrange(1, burst + 3)
            target = now + int(steps * interval_ms) + chance.choice((-1, 0, 0, 1, 2))
        else:
            target = now + int((burst + 2) * interval_ms * chance.random())
        now = max(now, target)
        calls.append((now, chance.choice((0, 1, 1, 1, 1, 2, burst + 1, burst + 2))))
    return calls


def record(version, module):
    chosen = [(name, limit, calls) for name, made, limit, calls in NAMED if made == version]
    if version == LATEST:
        chance = random.Random(31)
        chosen += [("walk", limit, walk(chance, *limit)) for limit in LIMITS * 2]
    with redis("--loadmodule", module) as server:
        for place, (name, limit, calls) in enumerate(chosen):
            replies = []
            for ms, quantity in calls:
                server.set_clock((START_MS + ms) * 1000)
                reply = server.call("CL.THROTTLE", f"key{place}", *limit, quantity)
                replies.append((ms, quantity, reply))
            print(json.dumps({"name": name, "version": version, "limit": limit,
                              "calls": replies}, separators=(",", ":")))


if __name__ == "__main__":
    record(*sys.argv[1:])
