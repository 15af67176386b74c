#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seed's token bucket function, run on a real PostgreSQL, against weir's penalizing bucket.

weir's `token_bucket` with `penalize` is that function's arithmetic: whole tokens, rounded half away
from zero, every call charged. So the numbers are equal, not only the verdicts, as long as the
function's two clocks agree and time does not run back. Where the function departs from an ordinary
token bucket, the tests named flaw_ show by how much; weir's plain bucket is the exact one.
"""

import datetime
import random
import subprocess
import sys

from seeds import harness
from seeds.exact import SECOND, Call, PenalizingBucket, token_bucket
from seeds.harness import flaw, same, told
from seeds.postgresql import postgresql
from seeds.sequences import START_MS, walk
from seeds.servers import environment
from seeds.weir import Case

TRACE = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, 3, 2, 1, 0, -1]


def timestamp(at):
    moment = datetime.datetime.fromtimestamp(at // SECOND, datetime.timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at % SECOND:03d}+00"


def set_clocks(at, transaction_at=None):
    began = timestamp(at if transaction_at is None else transaction_at)
    return f"SET shadow.clock = '{timestamp(at)}'; SET shadow.now = '{began}';\n"


def request(call, refill, window):
    return f"SELECT rate_limiting_request('{call.key}', {refill}, {window});\n"


def ask(seed, refill, window, calls):
    """The function's numbers, each call a transaction of its own."""
    lines, _ = seed.sql("TRUNCATE rate_limiting_token_bucket;\n" + "".join(
        set_clocks(call.at) + request(call, refill, window) for call in calls))
    return [int(line) for line in lines]


def penalize(refill, window):
    """The function's parameters in weir's words."""
    return token_bucket(refill, SECOND, refill * window, penalize=True)


def plain(refill, window):
    return token_bucket(refill, SECOND, refill * window)


def words(numbers):
    """The function's numbers as verdicts: -1 has no token."""
    return ["block" if number == -1 else "pass" for number in numbers]


def numbers_of_weir(weir, refill, window, calls):
    """The tokens that weir's bucket holds after each call: as many as could still be taken."""
    asked = [(calls[:place + 1], call.at) for place, call in enumerate(calls)]
    return [-1 if most is None else most for most in weir.most(penalize(refill, window), asked)]


def spaced(count, step_ms, start=START_MS):
    return [Call(start + place * step_ms) for place in range(count)]


def article_calls():
    """A call each 100 ms until three are refused, 5 s of rest, five calls."""
    first = spaced(13, 100)
    return first + spaced(5, 100, first[-1].at + 5 * SECOND)


def test_trace_of_the_article(weir, seed):
    calls = article_calls()
    same(ask(seed, 1, 10, calls), TRACE, "the seed's numbers")
    same(numbers_of_weir(weir, 1, 10, calls), TRACE, "weir's numbers")
    same(weir.verdict(penalize(1, 10), calls), words(TRACE), "weir's verdicts")


def test_function_is_a_penalizing_bucket(weir, seed):
    chance = random.Random(21)
    chosen = []
    for refill, window in ((1, 1), (1, 10), (2, 60), (3, 7), (10, 1), (50, 2)):
        keys = [f"user{i}" for i in range(chance.choice((1, 3)))]
        # Calls land beside the moments at which a half token comes, where the rounding turns.
        calls = walk(chance, 250, keys, max(1, SECOND // (2 * refill)), near_ms=(-1, 0, 1))
        chosen.append((refill, window, calls))
    exact = weir.verdicts(*(Case(penalize(refill, window), calls)
                            for refill, window, calls in chosen))
    for (refill, window, calls), wanted in zip(chosen, exact):
        seen = words(ask(seed, refill, window, calls))
        same(seen, wanted, told((refill, window), calls))


def test_numbers_are_equal_too(weir, seed):
    chance = random.Random(22)
    for refill, window in ((1, 5), (2, 3), (3, 2)):
        calls = walk(chance, 40, ["user"], SECOND // (2 * refill), near_ms=(-1, 0, 1))
        same(numbers_of_weir(weir, refill, window, calls), ask(seed, refill, window, calls),
             told((refill, window), calls))


def test_flaw_half_tokens_are_rounded_up(weir, seed):
    """A call each 500 ms finds each time a half token, which counts as whole: twice the rate passes
    for ever. The exact bucket lets one call a second pass once its burst is spent."""
    calls = spaced(60, 500)
    exact = weir.verdicts(Case(plain(1, 10), calls), Case(penalize(1, 10), calls))
    flaw(words(ask(seed, 1, 10, calls)), exact[0],
         seed_says=["pass"] * 60, exact_says=["pass"] * 19 + ["block", "pass"] * 20 + ["block"])
    same(exact[1], ["pass"] * 60, "weir with penalize")


def test_flaw_less_than_half_a_token_is_lost(weir, seed):
    """A call each 400 ms never gets its 0.4 tokens: nothing passes once the burst is spent."""
    calls = spaced(60, 400)
    exact = weir.verdicts(Case(plain(1, 10), calls), Case(penalize(1, 10), calls))
    seen = words(ask(seed, 1, 10, calls))
    flaw(seen[10:], exact[0][10:], seed_says=["block"] * 50, exact_says=exact[0][10:])
    same(exact[0].count("pass"), 33, "10 of the burst and one a second")
    same(exact[1], seen, "weir with penalize")


def test_flaw_refused_calls_are_charged(weir, seed):
    """Who goes on calling ten times a second is never let in again, once the burst is spent."""
    calls = spaced(200, 100)
    exact = weir.verdicts(Case(plain(1, 10), calls), Case(penalize(1, 10), calls))
    seen = words(ask(seed, 1, 10, calls))
    flaw([seen.count("pass")], [exact[0].count("pass")], seed_says=[10], exact_says=[29])
    same(exact[1], seen, "weir with penalize")


def test_flaw_rest_gives_one_token_above_the_burst(weir, seed):
    """The refill is bounded after the call's own token is taken, so a call after a long rest is
    free: eleven pass of a burst of ten."""
    calls = spaced(1, 0) + spaced(13, 0, START_MS + 3600 * SECOND)
    exact = weir.verdicts(Case(plain(1, 10), calls), Case(penalize(1, 10), calls))
    seen = ask(seed, 1, 10, calls)
    same(seen[:3], [9, 10, 9], "the function's numbers")
    flaw(words(seen), exact[0], seed_says=["pass"] * 12 + ["block"] * 2,
         exact_says=["pass"] * 11 + ["block"] * 3)
    same(exact[1], words(seen), "weir with penalize")


def test_flaw_long_transaction_refills_again_and_again(weir, seed):
    """`ts` is set to now(), the start of the transaction, but the refill is reckoned to
    clock_timestamp(): within one transaction the same seconds are refilled at every call."""
    calls = [Call(START_MS)] * 3 + spaced(6, SECOND, START_MS + 2 * SECOND)
    calls += [Call(calls[-1].at)] * 2
    together, _ = seed.sql("TRUNCATE rate_limiting_token_bucket;\nBEGIN;\n" + "".join(
        set_clocks(call.at, START_MS) + request(call, 1, 2) for call in calls) + "COMMIT;\n")
    together = [int(number) for number in together]
    same(together, [1, 0, -1, 0, 2, 2, 2, 2, 2, 2, 2], "in one transaction")
    same(ask(seed, 1, 2, calls), [1, 0, -1, 0, 0, 0, 0, 0, 0, -1, -1], "each in its own")
    flaw(words(together), weir.verdict(penalize(1, 2), calls),
         seed_says=["pass"] * 2 + ["block"] + ["pass"] * 8,
         exact_says=["pass"] * 2 + ["block"] + ["pass"] * 6 + ["block"] * 2)


def test_flaw_clock_stepped_back_takes_tokens_away(weir, seed):
    """A negative time since the last call is a negative refill, and its return gives too much. In
    weir it is no refill, and the time of the last call stays the larger."""
    calls = [Call(START_MS + offset) for offset in (0, -5000, -5000, 0, 0, 0, 0)]
    seed_says = ask(seed, 1, 6, calls)
    same(seed_says, [5, -1, -1, 3, 2, 1, 0], "the function's numbers")
    same(numbers_of_weir(weir, 1, 6, calls), [5, 4, 3, 2, 1, 0, -1], "weir's numbers")
    flaw(words(seed_says), weir.verdict(penalize(1, 6), calls),
         seed_says=["pass"] + ["block"] * 2 + ["pass"] * 4, exact_says=["pass"] * 6 + ["block"])


class Session:
    """A psql that is spoken to statement by statement, for two transactions at once."""

    def __init__(self, seed):
        self.psql = subprocess.Popen(seed.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, env=environment())
        self.send(seed.preamble())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.psql.kill()
        self.psql.communicate()

    def send(self, text):
        self.psql.stdin.write(text)
        self.psql.stdin.flush()

    def answers(self):
        """The lines since the last time, once all that was sent is done."""
        self.send("\\echo end\n")
        lines = []
        while (line := self.psql.stdout.readline()) != "end\n":
            if not line:
                raise RuntimeError(f"psql left: {lines}")
            lines.append(line.strip())
        return lines


def await_blocked(seed):
    """Until one session waits for another's lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock';\n"
    for _ in range(200):
        if seed.sql(waiting)[0] == ["1"]:
            return
    raise AssertionError("the second caller does not wait for the first")


def test_flaw_second_caller_at_once_gets_no_verdict(weir, seed):
    """Under SERIALIZABLE, which the function needs, PostgreSQL aborts the caller who waited for
    another of the same user; the article says that it only waits. weir has an answer for both."""
    calls = [Call(START_MS)] * 3
    seed.sql("TRUNCATE rate_limiting_token_bucket;\n" + set_clocks(START_MS)
             + request(calls[0], 1, 2))
    with Session(seed) as first, Session(seed) as second:
        for session in (first, second):
            session.send(set_clocks(START_MS) + "BEGIN;\n")
        first.send(request(calls[1], 1, 2))
        same(first.answers(), ["0"], "the first caller")
        second.send(request(calls[2], 1, 2))
        await_blocked(seed)
        first.send("COMMIT;\n")
        first.answers()
        answers = second.answers()
    same("could not serialize access" in answers[0], True, f"the second caller: {answers}")
    same(weir.verdict(penalize(1, 2), calls), ["pass", "pass", "block"], "weir")


def test_rule_of_this_test_gives_the_trace(_weir, _seed):
    """The exact rule that stands beside weir, by its own numbers."""
    bucket = PenalizingBucket(1, SECOND, 10)
    numbers = []
    for call in article_calls():
        bucket.over(call.at, call.cost)
        numbers.append(bucket.tokens)
    same(numbers, TRACE, "the rule's numbers")


if __name__ == "__main__":
    sys.exit(harness.main(globals(), postgresql))
