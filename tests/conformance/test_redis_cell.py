#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redis-cell's GCRA against weir's: the same limits, times and quantities give the same verdicts.

CL.THROTTLE key max_burst count period [quantity] is weir's gcra with burst = max_burst,
rate = count, window = period and cost = quantity. Its replies are facts: of its own documentation
and tests, and recorded from version 0.5.0 (see seeds/redis_cell.py). Its other numbers are checked
by verdicts too: `remaining` is the most that passes at once, `retry_after` and `reset_after` say
when something does.
"""

import sys

from seeds import harness
from seeds.exact import SECOND, Call, gcra
from seeds.harness import flaw, same, told
from seeds.redis_cell import OWN_TEST, facts
from seeds.sequences import START_MS
from seeds.weir import Case


def throttle(burst, count, period_s):
    """The command's limit in weir's words."""
    return gcra(burst, count, period_s * SECOND)


def words(limited):
    return ["block" if yes else "pass" for yes in limited]


def at(*offsets_ms):
    return [Call(START_MS + offset) for offset in offsets_ms]


def own_test():
    """(the calls, for each place the calls up to it and its row)"""
    calls = [Call(START_MS + row[0], cost=row[1]) for row in OWN_TEST]
    return calls, [(calls[:place + 1], row) for place, row in enumerate(OWN_TEST)]


def test_verdicts_of_its_own_test(weir, _seed):
    calls, rows = own_test()
    same(weir.verdict(throttle(4, 1, 1), calls), words(row[2] for _, row in rows),
         told("4, 1, 1", OWN_TEST))


def test_remaining_of_its_own_test(weir, _seed):
    _, rows = own_test()
    asked = [(before, before[-1].at) for before, _ in rows]
    same(weir.most(throttle(4, 1, 1), asked), [row[3] for _, row in rows],
         told("4, 1, 1", OWN_TEST))


def test_reset_and_retry_of_its_own_test(weir, _seed):
    """At the reset everything passes that ever can, at the retry the refused; not 1 ms before."""
    _, rows = own_test()
    asked = []
    for before, (_, quantity, _, _, reset_ms, retry_ms) in rows:
        for after_ms, cost in ((reset_ms, 5), (retry_ms, quantity)):
            if after_ms:
                moment = before[-1].at + after_ms
                asked += [(before, Call(moment - 1, cost=cost)), (before, Call(moment, cost=cost))]
    same(weir.after(throttle(4, 1, 1), asked), ["block", "pass"] * (len(asked) // 2),
         told("4, 1, 1", asked))


def test_example_of_its_documentation(weir, _seed):
    """CL.THROTTLE user123 15 30 60 replies 0, 16, 15, -1, 2: 15 more pass at once, and one 2 s
    after the burst is spent."""
    limit, first = throttle(15, 30, 60), at(0)
    same(weir.most(limit, [(first, START_MS)]), [15], "remaining")
    same(weir.after(limit, [(first, Call(START_MS + ms, cost=16)) for ms in (1999, 2000)]),
         ["block", "pass"], "reset")
    same(weir.verdict(limit, at(*[0] * 17, 1999, 2000, 2000)),
         ["pass"] * 16 + ["block", "block", "pass", "block"], "a burst")


def test_recorded_verdicts(weir, _seed):
    """Some two thousand replies, quantities from none to more than the burst ever allows."""
    recorded = facts("walk")
    exact = weir.verdicts(*(Case(throttle(*fact.limit), fact.calls) for fact in recorded))
    for fact, verdicts in zip(recorded, exact):
        same(verdicts, fact.limited(), told(fact.limit, fact.calls))


def test_recorded_remaining(weir, _seed):
    """`remaining` after each recorded call, where the burst is small enough to try every cost."""
    for fact in facts("walk"):
        if fact.limit[0] <= 6:
            asked = [(fact.calls[:place + 1], call.at)
                     for place, call in enumerate(fact.calls[:25])]
            same(weir.most(throttle(*fact.limit), asked), fact.remaining()[:25],
                 told(fact.limit, fact.calls))


def test_flaw_cut_to_whole_seconds_admits_early(weir, _seed):
    """Up to 0.2.1 the time still to wait was cut to whole seconds before it was compared with 0, so
    what came less than a second early passed, and above one a second nothing was ever refused."""
    [slow], [fast] = facts("less than a second early", "0.2.1"), facts("ten a second", "0.2.1")
    exact = weir.verdicts(*(Case(throttle(*fact.limit), fact.calls) for fact in (slow, fast)))
    flaw(slow.limited(), exact[0],
         seed_says=["pass", "block", "pass", "block", "block", "pass"],
         exact_says=["pass", "block", "block", "pass", "block", "block"])
    flaw(fast.limited(), exact[1],
         seed_says=["pass"] * 10, exact_says=["pass"] + ["block"] * 9)


def when_retried(weir, fact):
    """The verdicts on those who were refused and call again after the seconds they were told."""
    limit, [first, *refused] = throttle(*fact.limit), fact.calls
    return weir.after(limit, [([first], Call(call.at + told_s * SECOND))
                              for call, told_s in zip(refused, fact.retry_after_s()[1:])])


def test_flaw_retry_after_cut_to_whole_seconds_is_too_early(weir, _seed):
    """Up to 0.3.0 `retry_after` was cut: a call refused 1.999 s before its time is told 1 s, one
    refused 0.999 s before it 0 s, and who obeys is refused again. Later versions round up."""
    [cut], [rounded] = facts("told to retry", "0.3.0"), facts("told to retry")
    flaw(cut.retry_after_s(), rounded.retry_after_s(),
         seed_says=[-1, 1, 0, 0], exact_says=[-1, 2, 1, 1])
    flaw(when_retried(weir, cut), when_retried(weir, rounded),
         seed_says=["block"] * 3, exact_says=["pass"] * 3)


def test_flaw_interval_cut_to_whole_nanoseconds_admits_early(weir, _seed):
    """600,000 a second are 1666.67 ns apart, and it counts with 1666: it gives 600,240 a second.
    weir keeps times in 1/rate ms, which lose nothing."""
    [fact] = facts("600,000 a second")
    flaw(fact.limited(), weir.verdict(throttle(*fact.limit), fact.calls),
         seed_says=["pass", "pass"], exact_says=["pass", "block"])


if __name__ == "__main__":
    sys.exit(harness.main(globals()))
