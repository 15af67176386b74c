#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seed's Redis scripts, run on a real Redis whose clock the test sets, against weir.

The TTL gate is weir's `uniform` where the rounding of TTL to whole seconds decides nothing, the
sorted set is its `sliding_window` where the scores are right and no two calls share a microsecond,
the stream and the list are its `queue` with a limit that stays. Each "where" has tests of its own.
"""

import random
import sys

from seeds import harness
from seeds.exact import SECOND, Call, queue, sliding, uniform
from seeds.harness import flaw, same, told
from seeds.redis import redis
from seeds.sequences import START_MS, walk
from seeds.weir import Case

US = 1000  # microseconds in a ms, the unit of Redis' clock
FOR_EVER = 30 * 86400 * SECOND
WORDS = ("block", "pass")


def ask_at(seed, at_us, script, key, *words):
    """One call of a script at a time in microseconds."""
    seed.set_clock(at_us)
    return WORDS[seed.call("EVALSHA", script, 1, key, *words)]


def ask_gate(seed, limit, calls):
    seed.call("FLUSHALL")
    script = seed.load("uniform_gate.lua")
    return [ask_at(seed, call.at * US, script, f"rl:{call.key}", limit["interval"])
            for call in calls]


def ask_window(seed, limit, calls):
    """Calls at their ms; for others ask_window_at() takes microseconds."""
    return ask_window_at(seed, limit, [(call.at * US, call.key) for call in calls])


def ask_window_at(seed, limit, moments):
    seed.call("FLUSHALL")
    script = seed.load("sorted_set_window.lua")
    return [ask_at(seed, at_us, script, f"z:{key}", limit["window"] * US, limit["rate"])
            for at_us, key in moments]


def ask_queue(seed, script_file, limit, calls):
    """Calls of a queue; a done one takes the oldest entry off, as a processor would."""
    seed.call("FLUSHALL")
    script, seen = seed.load(script_file), []
    words = ("request", "details") if script_file == "stream_queue.lua" else ("request",)
    for call in calls:
        key = f"x:{call.key}"
        if not call.done:
            seen.append(ask_at(seed, call.at * US, script, key, limit["length"], *words))
        elif script_file == "stream_queue.lua":
            for entry, _ in seed.call("XRANGE", key, "-", "+", "COUNT", 1):
                seed.call("XDEL", key, entry)
        else:
            seed.call("RPOP", key)
    return seen


def compare(weir, seed, ask, chosen):
    """The seed's answers equal weir's for each (limit, calls)."""
    exact = weir.verdicts(*(Case(limit, calls) for limit, calls in chosen))
    for (limit, calls), wanted in zip(chosen, exact):
        same(ask(seed, limit, calls), wanted, told(limit, calls))


def users(chance):
    return [f"user{i}" for i in range(chance.choice((1, 3)))]


# --- the clock -----------------------------------------------------------------------------------


def test_redis_sees_the_injected_clock(_weir, seed):
    """TIME to the microsecond, and expiry: a key is there at its last ms and gone at the next."""
    for fraction_us in (0, 1, 94_945, 999_999):
        at_us = START_MS * US + fraction_us
        seed.set_clock(at_us)
        same(seed.call("TIME"), [str(at_us // 1_000_000), str(at_us % 1_000_000)], "TIME")
    seed.set_clock(START_MS * US)
    seed.call("SET", "key", "1", "PX", 10 * SECOND)
    for after_ms, left in ((1, 9999), (9999, 1), (10_000, 0), (10_001, -2)):
        seed.set_clock((START_MS + after_ms) * US)
        same(seed.call("PTTL", "key"), left, f"PTTL after {after_ms} ms")


# --- the TTL gate --------------------------------------------------------------------------------


def test_gate_is_uniform_on_half_seconds(weir, seed):
    """Where calls lie whole half seconds apart, TTL's rounding decides nothing."""
    chance = random.Random(11)
    chosen = []
    for interval in (500, 1000, 1500, 2500, 10_000, 60_000):
        calls = walk(chance, 150, users(chance), interval, near_ms=(-500, 0, 500),
                     settle=lambda at, _key: -(-at // 500) * 500)
        chosen.append((uniform(interval), calls))
    compare(weir, seed, ask_gate, chosen)


def test_rounding_of_ttl_is_all_that_differs(weir, seed):
    """At any ms, the gate is a uniform limit of an interval 499 ms shorter."""
    chance = random.Random(12)
    near_ms = (-501, -500, -499, -498, -1, 0, 1)
    chosen = [(uniform(interval), walk(chance, 150, users(chance), interval, near_ms=near_ms))
              for interval in (500, 777, 1000, 2500, 10_000, 60_000)]
    exact = weir.verdicts(*(Case(uniform(limit["interval"] - 499), calls)
                            for limit, calls in chosen))
    for (limit, calls), wanted in zip(chosen, exact):
        same(ask_gate(seed, limit, calls), wanted, told(limit, calls))


def test_flaw_ttl_rounding_opens_the_gate_half_a_second_early(weir, seed):
    """499 ms left are a TTL of 0 seconds, and 0 is not > 0."""
    limit = uniform(10 * SECOND)
    calls = [Call(START_MS), Call(START_MS + 9500), Call(START_MS + 9501)]
    flaw(ask_gate(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "block", "pass"], exact_says=["pass", "block", "block"])


def test_flaw_ttl_rounding_never_shuts_a_gate_below_half_a_second(weir, seed):
    limit, calls = uniform(499), [Call(START_MS + offset) for offset in (0, 0, 1, 100, 498)]
    flaw(ask_gate(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass"] * 5, exact_says=["pass"] + ["block"] * 4)


# --- the sorted set ------------------------------------------------------------------------------


def sound_for_scores():
    """Times whose microseconds have six digits, and of which no key sees one twice."""
    used = set()

    def settle(at, key):
        while at % SECOND < 100 or (key, at) in used:
            at += 1
        used.add((key, at))
        return at
    return settle


def test_sorted_set_is_a_sliding_window(weir, seed):
    """Its window excludes the far edge, as the exact one does."""
    chance = random.Random(13)
    chosen = []
    for rate, window in ((1, 1), (2, 1), (3, 10), (10, 10), (5, 60), (20, 60)):
        limit = sliding(rate, window * SECOND)
        chosen.append((limit, walk(chance, 200, users(chance), window * SECOND,
                                   settle=sound_for_scores())))
    compare(weir, seed, ask_window, chosen)


def test_flaw_members_of_one_microsecond_collide(weir, seed):
    """The member is the time, so calls of one microsecond are one entry, however many."""
    limit, calls = sliding(3, 10 * SECOND), [Call(START_MS + 500)] * 6
    flaw(ask_window(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass"] * 6, exact_says=["pass"] * 3 + ["block"] * 3)


def test_flaw_unpadded_microseconds_let_a_call_pass(weir, seed):
    """`t[1]..t[2]` writes 50000 microseconds with five digits: the score is a tenth of what it
    should be, and the next call sweeps the entry out as ages old."""
    limit = sliding(1, 10 * SECOND)
    calls = [Call(START_MS + 50), Call(START_MS + 200)]
    flaw(ask_window(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "pass"], exact_says=["pass", "block"])


def test_flaw_unpadded_microseconds_block_a_call(weir, seed):
    """The other way round: what is a tenth is `now`, and nothing seems old enough to go."""
    limit = sliding(1, 10 * SECOND)
    calls = [Call(START_MS + 200), Call(START_MS + 20 * SECOND + 50)]
    flaw(ask_window(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass", "block"], exact_says=["pass", "pass"])


def test_flaw_unpadded_microseconds_are_one_call_in_ten(_weir, seed):
    """How often the score is wrong: wherever the fraction of the second is below a tenth."""
    limit = sliding(1, SECOND)
    wrong = 0
    for place in range(200):
        ask_window_at(seed, limit, [(START_MS * US + place * 5_000, "user")])
        (_, score) = seed.call("ZRANGE", "z:user", 0, 0, "WITHSCORES")
        wrong += int(float(score)) != START_MS * US + place * 5_000
    same(wrong, 20, "wrong scores among 200")


def test_flaw_lowered_limit_opens_the_gate(weir, seed):
    """Only `count == limit` refuses: with more than the limit in the set, everything passes. The
    exact rule is weir's with the lower limit from the start, every call counted."""
    high, low = sliding(5, 10 * SECOND), sliding(3, 10 * SECOND)
    calls = [Call(START_MS + 500 + offset) for offset in range(8)]
    script = seed.load("sorted_set_window.lua")
    seed_says = ask_window(seed, high, calls[:5])
    seed_says += [ask_at(seed, call.at * US, script, "z:user", low["window"] * US, low["rate"])
                  for call in calls[5:]]
    flaw(seed_says[5:], weir.verdict(low, calls, count="all")[5:],
         seed_says=["pass"] * 3, exact_says=["block"] * 3)


def test_flaw_clock_stepped_back_forgets_calls(weir, seed):
    """What one call swept out is missing when the clock then steps back: three pass in 9.4 s."""
    limit = sliding(2, 10 * SECOND)
    calls = [Call(START_MS + offset) for offset in (500, 1500, 11_900, 9900)]
    flaw(ask_window(seed, limit, calls), weir.verdict(limit, calls),
         seed_says=["pass"] * 4, exact_says=["pass"] * 3 + ["block"])


# --- the queues ----------------------------------------------------------------------------------


def queue_calls(chance, count, keys):
    return [Call(call.at, call.key, done=chance.random() < 0.4)
            for call in walk(chance, count, keys, 10 * SECOND)]


def compare_queue(weir, seed, script_file):
    chance = random.Random(14)
    compare(weir, seed, lambda server, limit, calls: ask_queue(server, script_file, limit, calls),
            [(queue(length, FOR_EVER), queue_calls(chance, 250, users(chance)))
             for length in (1, 2, 5, 10)])


def test_stream_is_a_queue(weir, seed):
    compare_queue(weir, seed, "stream_queue.lua")


def test_list_is_a_queue(weir, seed):
    compare_queue(weir, seed, "list_queue.lua")


def test_flaw_lowered_length_opens_both_queues(weir, seed):
    """Only `length == limit` refuses, as in the sorted set."""
    calls = [Call(START_MS + offset) for offset in range(5)]
    exact = weir.verdict(queue(2, FOR_EVER), calls)[3:]
    for script_file in ("stream_queue.lua", "list_queue.lua"):
        ask_queue(seed, script_file, queue(3, FOR_EVER), calls[:3])
        script = seed.load(script_file)
        seed_says = [ask_at(seed, call.at * US, script, "x:user", 2, "request", "details")
                     for call in calls[3:]]
        flaw(seed_says, exact, seed_says=["pass"] * 2, exact_says=["block"] * 2)


def test_flaw_acknowledged_entries_still_fill_the_stream(weir, seed):
    """XLEN counts what a consumer group has read and acknowledged, until someone deletes it."""
    limit, script = queue(1, FOR_EVER), seed.load("stream_queue.lua")
    first, last = Call(START_MS), Call(START_MS + SECOND)
    seed_says = ask_queue(seed, "stream_queue.lua", limit, [first])
    seed.call("XGROUP", "CREATE", "x:user", "workers", "0")
    [[_, [[entry, _]]]] = seed.call("XREADGROUP", "GROUP", "workers", "one",
                                    "STREAMS", "x:user", ">")
    same(seed.call("XACK", "x:user", "workers", entry), 1, "acknowledged")
    seed_says.append(ask_at(seed, last.at * US, script, "x:user", 1, "request", "details"))
    exact = weir.verdict(limit, [first, Call(START_MS + 1, done=True), last])
    flaw(seed_says, exact, seed_says=["pass", "block"], exact_says=["pass", "pass"])


def test_flaw_queue_whose_processor_died_stays_shut(weir, seed):
    """Nothing but the processor takes an entry off; weir's `hold` bounds how long one counts."""
    limit = queue(2, 60 * SECOND)
    calls = [Call(START_MS + offset * SECOND) for offset in (0, 1, 2, 59, 60, 61, 86_400)]
    exact = weir.verdict(limit, calls)
    for script_file in ("stream_queue.lua", "list_queue.lua"):
        flaw(ask_queue(seed, script_file, limit, calls), exact,
             seed_says=["pass"] * 2 + ["block"] * 5,
             exact_says=["pass"] * 2 + ["block"] * 2 + ["pass"] * 3)


if __name__ == "__main__":
    sys.exit(harness.main(globals(), redis))
