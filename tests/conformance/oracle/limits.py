# SPDX-License-Identifier: Apache-2.0
"""The algorithms, one bucket's state of one limit each: lists and plain integers.

As common/specification/semantics.md, Algorithms, has them.

Every class answers the same questions about an event at `t` of cost `c`:
late(t), over(t, c), then record(t, c, blocked); and about cost 1 after that:
reset(t), the first time at which it would pass, and held(t), what the limit
holds. dump(t) is the state as JSON, None when nothing was recorded.
"""

import collections

COUNT_MAX = 2 ** 62


def ceil_div(a, b):
    """a / b rounded up."""
    return -(-a // b)


class State:
    """What most algorithms share: no lateness, nothing leaves by itself."""

    charged_by_all = False

    def __init__(self, limit):
        self.limit, self.rate, self.window = limit, limit.rate, limit.window

    def late(self, t):
        """Whether an event is too old to be judged by this limit."""
        return False

    def leave(self, t):
        """Takes out what has left by t, before the event is judged."""

    def done(self):
        """Takes the oldest entry out of a queue; whether there was one."""
        return False


def _entries(times):
    """A sorted list of times as [[time, count], …]."""
    return [[t, n] for t, n in sorted(collections.Counter(times).items())]


class SlidingWindow(State):
    """The newest N recorded times; with a lateness L also those above the newest minus W minus L."""

    def __init__(self, limit):
        super().__init__(limit)
        self.times = []
        self.lateness, self.step = limit.lateness, limit.precision or 1
        self.most = self.rate * (2 + ceil_div(self.lateness, self.window)) if self.lateness else self.rate

    def late(self, t):
        return bool(self.times) and t <= self.times[-1] - max(self.window, self.lateness)

    def over(self, t, c):
        if not self.lateness or not self.times or t <= self.times[-1] - self.lateness:
            return self.held(t) + c > self.rate
        if len(self.times) == self.most and self.times[0] > t - self.window:
            return self.held(t) + c > self.rate  # what lies before them is not known
        return any(self._in_span(start) + c > self.rate for start in self._starts(t))

    def _starts(self, t):
        """Every start that matters of a span which holds t: a span is above its start, up to it plus W."""
        edges = [x - 1 for x in self.times] + [x - self.window - self.step + 1 for x in self.times]
        return {t - self.window, t - 1} | {s for s in edges if t - self.window <= s <= t - 1}

    def _in_span(self, start):
        """Times in a span; one that was rounded up counts wherever the event itself may have been."""
        inside = sum(1 for x in self.times if start < x <= start + self.window + self.step - 1)
        return min(self.rate, inside)

    def record(self, t, c, blocked):
        self.times += [ceil_div(t, self.step) * self.step] * min(c, self.rate)
        self.times = sorted(self.times)[-self.most:]
        old = [x for x in self.times if x <= self.times[-1] - self.window - self.lateness]
        spare = min(len(old), max(0, len(self.times) - self.rate))
        self.times = self.times[spare:]

    def reset(self, t):
        if len(self.times) < self.rate:
            return t
        return max(t, self.times[-self.rate] + self.window)

    def held(self, t):
        return min(self.rate, sum(1 for x in self.times if x > t - self.window))

    def dump(self):
        if not self.times:
            return None
        horizon = self.times[-1] - self.window - max(self.window, self.lateness)
        return {"times": _entries([x for x in self.times if x > horizon])}


class FixedWindow(State):
    """The newest bucket's count, and that of the one before it."""

    def __init__(self, limit):
        super().__init__(limit)
        self.newest = None
        self.counts = {}

    def _bucket(self, t):
        return (t + self.limit.offset) // self.window

    def late(self, t):
        return self.newest is not None and self._bucket(t) < self.newest - 1

    def over(self, t, c):
        return self.held(t) + c > self.rate

    def record(self, t, c, blocked):
        bucket = self._bucket(t)
        self.counts[bucket] = min(COUNT_MAX, self.counts.get(bucket, 0) + c)
        self.newest = bucket if self.newest is None else max(self.newest, bucket)

    def reset(self, t):
        return max(t, (self._bucket(t) + 1) * self.window - self.limit.offset)

    def held(self, t):
        return self.counts.get(self._bucket(t), 0)

    def dump(self):
        if self.newest is None:
            return None
        return {"bucket": self.newest, "count": self.counts[self.newest],
                "previous": self.counts.get(self.newest - 1, 0)}


class TokenBucket(State):
    """A level in units of which a token is W and N come each ms; starts full."""

    def __init__(self, limit):
        super().__init__(limit)
        self.level, self.time = None, None

    def _level(self, t):
        full = self.limit.burst * self.window
        if self.level is None:
            return full
        return min(full, self.level + self.rate * max(0, t - self.time))

    def over(self, t, c):
        return self._level(t) < c * self.window

    def record(self, t, c, blocked):
        self.level = max(0, self._level(t) - c * self.window)
        self.time = t if self.time is None else max(self.time, t)

    def reset(self, t):
        if self.level is None:
            return t
        return max(t, self.time + ceil_div(self.window - self.level, self.rate))

    def held(self, t):
        return self.limit.burst - self._level(t) // self.window

    def dump(self):
        return None if self.level is None else {"level": self.level, "time": self.time}


class PenalizingBucket(State):
    """Whole tokens, charged by every call, down to -1 while calls go on."""

    charged_by_all = True

    def __init__(self, limit):
        super().__init__(limit)
        self.tokens, self.time = None, None

    def _after(self, t, c):
        """The tokens that a call would leave."""
        if self.tokens is None:
            return max(-1, self.limit.burst - c)
        exact = (self.tokens - c) * self.window + self.rate * max(0, t - self.time)
        away = (2 * abs(exact) + self.window) // (2 * self.window)  # half away from zero
        return min(max(away if exact >= 0 else -away, -1), self.limit.burst)

    def over(self, t, c):
        return self._after(t, c) == -1

    def record(self, t, c, blocked):
        self.tokens = self._after(t, c)
        self.time = t if self.time is None else max(self.time, t)

    def reset(self, t):
        if self.tokens is None:
            return t
        wait = self.window * (1 - 2 * self.tokens) // (2 * self.rate) + 1
        return max(t, self.time + wait)

    def held(self, t):
        return self.limit.burst - max(self.tokens, 0)

    def dump(self):
        return None if self.tokens is None else {"tokens": self.tokens, "time": self.time}


class Gcra(State):
    """The theoretical arrival time, in 1/N ms: T = W of these, a ms is N of these."""

    def __init__(self, limit):
        super().__init__(limit)
        self.tat = None

    def _start(self, t):
        now = t * self.rate
        return now if self.tat is None else max(self.tat, now)

    def over(self, t, c):
        allowed = (self.limit.burst + 1) * self.window
        return self._start(t) + c * self.window - allowed > t * self.rate

    def record(self, t, c, blocked):
        new = self._start(t) + c * self.window
        if blocked:
            new = min(new, t * self.rate + (self.limit.burst + 1) * self.window)
        self.tat = new if self.tat is None else max(self.tat, new)

    def reset(self, t):
        return max(t, ceil_div(self._start(t) - self.limit.burst * self.window, self.rate))

    def held(self, t):
        if self.tat is None:
            return 0
        owed = ceil_div(self.tat - t * self.rate, self.window)
        return min(max(owed, 0), self.limit.burst + 1)

    def dump(self):
        return None if self.tat is None else {"tat": self.tat}


class Queue(State):
    """The entries that wait, each with its cost; each leaves when it is done or after `hold`.

    Of those before the newest L units of cost only the number is kept."""

    def __init__(self, limit):
        super().__init__(limit)
        self.entries, self.more = [], 0

    def leave(self, t):
        left = [[x, c] for x, c in self.entries if x + self.limit.hold > t]
        if len(left) < len(self.entries):
            self.entries, self.more = left, 0

    def done(self):
        if not self.entries:
            return False
        if self.more:
            self.more -= 1
        else:
            self.entries = self.entries[1:]
        return True

    def over(self, t, c):
        return self.held(t) + c > self.limit.length

    def record(self, t, c, blocked):
        later = [entry for entry in self.entries if entry[0] > t]
        self.entries = self.entries[:len(self.entries) - len(later)] + [[t, min(c, self.limit.length)]] + later
        while self.held(t) > self.limit.length:
            excess = self.held(t) - self.limit.length
            if self.entries[0][1] > excess:
                self.entries[0][1] -= excess
            else:
                self.entries, self.more = self.entries[1:], self.more + 1

    def reset(self, t):
        if self.held(t) < self.limit.length:
            return t
        return max(t, self.entries[0][0] + self.limit.hold)

    def held(self, t):
        return sum(c for _, c in self.entries)

    def dump(self):
        if not self.entries:
            return None
        shown = {"times": [list(entry) for entry in self.entries]}
        return {**shown, "more": self.more} if self.more else shown


def state_of(limit):
    """The empty state of a limit."""
    if limit.algorithm == "token_bucket":
        return (PenalizingBucket if limit.penalize else TokenBucket)(limit)
    return {"sliding_window": SlidingWindow, "uniform": SlidingWindow,
            "fixed_window": FixedWindow, "gcra": Gcra, "queue": Queue}[limit.algorithm](limit)
