#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CL.THROTTLE by a socket gives the replies of redis-cell: those of its own test, as time passes, and recorded ones of moments."""

import itertools
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [TESTS, os.path.join(TESTS, "conformance")]

# pylint: disable=wrong-import-position
from seeds.redis_cell import LIMITS, OWN_TEST, facts
from support import cases
from support.checks import model, whole
from support.place import PATIENCE_S
from support.redis import Redis
from support.traffic import zone

ON_TIME_S = 0.2  # later than that, other replies would be right
PAUSE_S = 0.4  # beyond the times of the table, which stand just where a second has passed
SLOW_MS = 200  # between two calls that pass: the calls of a moment take less
KEYS = (f"key-{number}" for number in itertools.count())


def gcra(burst, count, period_s):
    """redis-cell's limit in weir's words."""
    return zone(f"cell-{burst}-{count}-{period_s}", [{"algorithm": "gcra", "burst": burst, "rate": count, "window": f"{period_s}s"}])


def seconds(ms):
    """As redis-cell tells them."""
    return -1 if ms is None else -(-ms // 1000)


def own_test(client, key):
    """The replies; None where this machine was late."""
    replies, began = [], time.monotonic()
    for at_ms, quantity, *_ in OWN_TEST:
        at = began + at_ms / 1000 + (PAUSE_S if at_ms > 0 else 0)
        time.sleep(max(0, at - time.monotonic()))
        replies.append(client.call("CL.THROTTLE", key, 4, 1, 1, quantity))
        if time.monotonic() > at + ON_TIME_S:
            return None
    return replies


def test_its_own_test(place):
    """Fifteen rows over ten seconds: limited, limit, remaining, retry and reset."""
    wanted = [[int(limited), 5, remaining, seconds(retry_ms), seconds(reset_ms)]
              for _, _, limited, remaining, reset_ms, retry_ms in OWN_TEST]
    # What can never pass has no time at which it would.
    with whole(place, [gcra(4, 1, 1)]) as port:
        client, until = Redis(port), time.monotonic() + 4 * PATIENCE_S
        while (came := own_test(client, next(KEYS))) is None and time.monotonic() < until:
            pass
        if came is None:
            raise cases.Skipped("this machine is too busy for calls on time")
        assert came == wanted, list(zip(OWN_TEST, came, wanted))


def test_recorded_moments(place):
    """What was recorded of calls in one moment on a fresh key, of all limits that are slow enough to be asked on time."""
    limits = [limit for limit in LIMITS if 1000 * limit[2] / limit[1] >= SLOW_MS]
    with model(place, zones=[gcra(*limit) for limit in limits]) as port:
        client, compared = Redis(port), 0
        for fact in facts("walk"):
            if fact.limit not in limits:
                continue
            calls = list(itertools.takewhile(lambda call: call.at == fact.calls[0].at, fact.calls))
            for _ in range(20):  # a busy machine may take a second between two of them
                key, began = next(KEYS), time.monotonic()
                came = client.together([["CL.THROTTLE", key, *fact.limit, call.cost] for call in calls])
                if time.monotonic() - began < SLOW_MS / 2000:
                    break
            assert came == fact.replies[:len(calls)], (fact.limit, calls, came, fact.replies[:len(calls)])
            compared += len(calls)
        assert compared >= 40, compared


if __name__ == "__main__":
    cases.main(globals())
