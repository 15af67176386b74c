# SPDX-License-Identifier: Apache-2.0
"""The exact rule of each algorithm that the seeds are compared with, in a few lines each.

Whole numbers only, times in Unix ms. It stands beside weir in every comparison, so that a
difference says at once which of the two is wrong.
"""

from dataclasses import dataclass

MS = 1
SECOND = 1000 * MS


@dataclass(frozen=True)
class Call:
    """One request. With done it is no request: it says that the oldest queued one is finished."""
    at: int
    key: str = "user"
    cost: int = 1
    done: bool = False


class SlidingWindow:
    def __init__(self, rate, window):
        self.rate, self.window, self.passed = rate, window, []

    def over(self, at, cost):
        if self.passed and at <= self.passed[-1] - self.window:
            return None  # late: not judged
        return sum(x > at - self.window for x in self.passed) + cost > self.rate

    def record(self, at, cost):
        self.passed = sorted(self.passed + [at] * cost)[-self.rate:]


class TokenBucket:
    """The plain bucket; a token is `window` units, `rate` units come each ms."""

    def __init__(self, rate, window, burst):
        self.rate, self.window, self.full = rate, window, burst * window
        self.level, self.time = self.full, None

    def level_at(self, at):
        passed = 0 if self.time is None else max(0, at - self.time)
        return min(self.full, self.level + self.rate * passed)

    def over(self, at, cost):
        return self.level_at(at) < cost * self.window

    def record(self, at, cost):
        self.level = max(0, self.level_at(at) - cost * self.window)
        self.time = at if self.time is None else max(at, self.time)


class PenalizingBucket:
    """Whole tokens; every call is charged, refused ones too. `tokens` is what a call answers."""

    def __init__(self, rate, window, burst):
        self.rate, self.window, self.burst = rate, window, burst
        self.tokens, self.time = None, None

    def over(self, at, cost):
        if self.tokens is None:
            self.tokens, self.time = max(-1, self.burst - cost), at
        else:
            passed = max(0, at - self.time)
            twice = 2 * ((self.tokens - cost) * self.window + self.rate * passed)
            half_up = (abs(twice) + self.window) // (2 * self.window)
            rounded = half_up if twice >= 0 else -half_up
            self.tokens = min(self.burst, max(-1, rounded))
            self.time = max(self.time, at)
        return self.tokens == -1

    def record(self, at, cost):
        pass


class Gcra:
    """Times in 1/rate ms, so that the emission interval is `window` of them."""

    def __init__(self, burst, rate, window):
        self.rate, self.interval, self.tolerance = rate, window, (burst + 1) * window
        self.tat = 0

    def over(self, at, cost):
        now = at * self.rate
        return max(self.tat, now) + cost * self.interval - self.tolerance > now

    def record(self, at, cost):
        if cost > 0:
            self.tat = max(self.tat, at * self.rate) + cost * self.interval


class Queue:
    def __init__(self, length, hold):
        self.length, self.hold, self.entries = length, hold, []

    def expire(self, at):
        self.entries = [x for x in self.entries if x + self.hold > at]

    def over(self, at, cost):
        self.expire(at)
        return len(self.entries) + cost > self.length

    def record(self, at, cost):
        self.entries = sorted(self.entries + [at] * cost)

    def finish(self, at):
        self.expire(at)
        self.entries = self.entries[1:]


def bucket(limit):
    """A fresh bucket of a limit as sliding(), token_bucket() and the others below write it."""
    kind = limit["algorithm"]
    if kind == "sliding_window":
        return SlidingWindow(limit["rate"], limit["window"])
    if kind == "uniform":
        return SlidingWindow(1, limit["interval"])
    if kind == "token_bucket":
        form = PenalizingBucket if limit["penalize"] else TokenBucket
        return form(limit["rate"], limit["window"], limit["burst"])
    if kind == "gcra":
        return Gcra(limit["burst"], limit["rate"], limit["window"])
    return Queue(limit["length"], limit["hold"])


def sliding(rate, window):
    return {"algorithm": "sliding_window", "rate": rate, "window": window}


def uniform(interval):
    return {"algorithm": "uniform", "interval": interval}


def token_bucket(rate, window, burst, penalize=False):
    return {"algorithm": "token_bucket", "rate": rate, "window": window, "burst": burst,
            "penalize": penalize}


def gcra(burst, rate, window):
    return {"algorithm": "gcra", "burst": burst, "rate": rate, "window": window}


def queue(length, hold):
    return {"algorithm": "queue", "length": length, "hold": hold}


def verdicts(limit, calls, count="passed"):
    """One verdict for each call that is not done: "pass", "block" or "late"."""
    buckets, given = {}, []
    for call in calls:
        state = buckets.setdefault(call.key, bucket(limit))
        if call.done:
            state.finish(call.at)
            continue
        over = state.over(call.at, call.cost)
        if over is not None and (count == "all" or not over):
            state.record(call.at, call.cost)
        given.append("late" if over is None else "block" if over else "pass")
    return given
