#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seed procedure check_velocity, run on a real MariaDB, against weir's sliding window.

The procedure judges a call by the calls it passed in the last `window` seconds, which is weir's
sliding window but for three things: its times are cut to whole seconds, its window includes the far
edge, and its keys are compared as MariaDB compares text. Each has a test of its own below.
"""

import itertools
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from seeds import harness
from seeds.exact import SECOND, Call, sliding
from seeds.harness import flaw, same, told
from seeds.mariadb import mariadb
from seeds.sequences import START_MS, walk
from seeds.weir import Case

ANSWER_COLUMNS = 6
RATE, WINDOW = 5, 60 * SECOND
WORDS = {"0": "pass", "1": "block"}
ZONE_IDS = itertools.count(1)


def add_zone(seed, limit):
    """A zone of its own for each sequence of calls, so that they start with none before them."""
    zone = next(ZONE_IDS)
    seed.sql("INSERT INTO zone_master VALUES "
             f"({zone}, 'test', {limit['rate']}, {limit['window'] // SECOND});")
    return zone


def call_sql(zone, call):
    return (f"SET TIMESTAMP = {call.at / 1000};\n"
            f"CALL check_velocity({zone}, '{zone}_{call.key}');\n")


def ask(seed, limit, calls, zone=None):
    """The procedure's answers to calls in their order."""
    zone = zone or add_zone(seed, limit)
    rows, _ = seed.sql("".join(call_sql(zone, call) for call in calls))
    return [WORDS[row[0]] for row in rows if len(row) == ANSWER_COLUMNS]


def whole_second(at, _key=None):
    return -(-at // SECOND) * SECOND


def never_a_window_apart(limit):
    """Whole seconds, but none at which a call lies exactly one window before."""
    used = set()

    def settle(at, key):
        at = whole_second(at)
        while (key, at - limit["window"]) in used:
            at += SECOND
        used.add((key, at))
        return at
    return settle


def sequences(seed_number, count, settle=lambda limit: whole_second):
    """(limit, calls) of many rates and windows, each limit with its own few users."""
    chance = random.Random(seed_number)
    for _ in range(count):
        limit = sliding(chance.choice((1, 2, 5, 10)), chance.choice((5, 20, 60)) * SECOND)
        keys = [f"user{i}" for i in range(chance.choice((1, 3)))]
        yield limit, walk(chance, 120, keys, limit["window"], settle=settle(limit),
                          near_ms=(-SECOND, -1, 0, 1, SECOND))


def test_check_velocity_is_a_sliding_window(weir, seed):
    chosen = list(sequences(1, 12, never_a_window_apart))
    exact = weir.verdicts(*(Case(limit, calls) for limit, calls in chosen))
    for (limit, calls), wanted in zip(chosen, exact):
        same(ask(seed, limit, calls), wanted, told(limit, calls))


def test_blocked_calls_are_not_counted(weir, seed):
    """A user who keeps calling is let in again as soon as the passed calls are old enough."""
    limit = sliding(RATE, WINDOW)
    calls = [Call(START_MS + place * 7 * SECOND) for place in range(32)]
    seen = ask(seed, limit, calls)
    same(seen, weir.verdict(limit, calls), told(limit, calls))
    same(Counter(seen)["pass"], 4 * RATE, "passes in four windows")


def test_times_cut_to_seconds_and_far_edge_included_are_all_that_differs(weir, seed):
    """At any time, the answer is the exact one for the times cut and a window one ms longer."""
    chosen = list(sequences(2, 12, lambda limit: lambda at, _key: at))
    exact = weir.verdicts(*(
        Case(sliding(limit["rate"], limit["window"] + 1),
             [Call(call.at // SECOND * SECOND, call.key) for call in calls])
        for limit, calls in chosen))
    for (limit, calls), wanted in zip(chosen, exact):
        seen = ask(seed, limit, calls)
        same(seen, wanted, told(limit, calls))
        never_above_the_rate(limit, calls, seen)


def never_above_the_rate(limit, calls, verdicts):
    """However it cuts, it lets no more than the rate through in any exact window."""
    passed = [call for call, verdict in zip(calls, verdicts) if verdict == "pass"]
    for last in passed:
        within = sum(x.key == last.key and last.at - limit["window"] < x.at <= last.at
                     for x in passed)
        if within > limit["rate"]:
            raise AssertionError(f"{limit}: {within} passed in the window up to {last}")


def test_calls_out_of_order_are_judged_alike(weir, seed):
    """Both count the calls that are newer than the one judged."""
    chance = random.Random(3)
    limit = sliding(3, 20 * SECOND)
    calls = [Call(call.at - chance.randrange(0, 9) * SECOND, call.key)
             for call in walk(chance, 200, ["a", "b"], 20 * SECOND, settle=whole_second)]
    exact = weir.verdict(sliding(3, 20 * SECOND + 1), calls)
    same(ask(seed, limit, calls), exact, told(limit, calls))


def test_concurrent_callers_get_exactly_the_rate(weir, seed):
    """The lock row serves: eight clients at once are let in as one client after the other."""
    limit = sliding(20, WINDOW)
    zone = add_zone(seed, limit)
    calls = [Call(START_MS)] * 15
    with ThreadPoolExecutor(8) as clients:
        seen = sum(clients.map(lambda _: ask(seed, limit, calls, zone), range(8)), [])
    same(Counter(seen), Counter(weir.verdict(limit, calls * 8)), "120 calls at once")


def test_flaw_call_exactly_one_window_later_is_blocked(weir, seed):
    """`created_at >= NOW() - INTERVAL` includes the far edge: a window of 60 s is one of 61."""
    limit, calls = sliding(1, WINDOW), [Call(START_MS), Call(START_MS + WINDOW)]
    flaw(ask(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "block"], exact_says=["pass", "pass"])


def test_flaw_fractions_of_a_second_are_cut(weir, seed):
    """A timestamp column without a fraction blocks for up to a second after the window's end."""
    limit, calls = sliding(1, WINDOW), [Call(START_MS), Call(START_MS + WINDOW + 999)]
    flaw(ask(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "block"], exact_says=["pass", "pass"])


def test_flaw_keys_that_differ_in_case_share_a_bucket(weir, seed):
    """MariaDB's text compares without case and without trailing spaces."""
    limit = sliding(1, WINDOW)
    calls = [Call(START_MS, key) for key in ("alice", "Alice", "alice ")]
    flaw(ask(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "block", "block"], exact_says=["pass", "pass", "pass"])


def test_flaw_long_keys_get_no_verdict(weir, seed):
    """A key of more than 255 characters is refused by the procedure's parameter."""
    limit, calls = sliding(1, WINDOW), [Call(START_MS, "k" * 256)] * 2
    zone = add_zone(seed, limit)
    rows, messages = seed.sql(call_sql(zone, calls[0]), check=False)
    same("Data too long" in messages, True, messages or "no message")
    flaw(rows, weir.verdict(limit, calls), seed_says=[], exact_says=["pass", "block"])


def test_flaw_unknown_zone_lets_everything_pass(weir, seed):
    """Its rate is NULL, and no count is >= NULL; the exact rule of the rate meant is at hand."""
    calls = [Call(START_MS)] * 4
    flaw(ask(seed, None, calls, zone=999_999), weir.verdict(sliding(2, WINDOW), calls),
         seed_says=["pass"] * 4, exact_says=["pass", "pass", "block", "block"])


def test_flaw_old_calls_are_judged_after_newer_ones(weir, seed):
    """It keeps every call for ever, so it takes a late call for one of its own window and counts
    it; weir has let that window go, lets the call pass, and says that it was late."""
    limit = sliding(2, WINDOW)
    calls = [Call(START_MS + offset * SECOND) for offset in (0, 1, 200, 2)]
    flaw(ask(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "pass", "pass", "block"], exact_says=["pass", "pass", "pass", "late"])


def test_flaw_open_transaction_of_the_caller_is_committed(_weir, seed):
    """START TRANSACTION within the procedure ends the one around it: a rollback comes too late."""
    zone = add_zone(seed, sliding(RATE, WINDOW))
    rows, _ = seed.sql("CREATE TABLE orders (id INT);\nBEGIN;\nINSERT INTO orders VALUES (7);\n"
                       + call_sql(zone, Call(START_MS)) + "ROLLBACK;\nSELECT id FROM orders;\n")
    same(rows[-1], ["7"], "the order that was rolled back")


if __name__ == "__main__":
    sys.exit(harness.main(globals(), mariadb))
