# SPDX-License-Identifier: Apache-2.0
"""What `weir explain` must show: each event that a limit counted, and the line of its file. Slow and obvious.

As common/specification/explain.md, Counted events. Every limit of every bucket keeps all events that it recorded, with
their files, offsets and lines; at a decision, those that count are picked.
"""

from formats import LINE_MAX, Format
from limits import FixedWindow, Queue, SlidingWindow, ceil_div
from model import Once
from parse_lines import Malformed
from sources import _content, _files, merged


class Line:
    """Where a record stands in its file."""

    def __init__(self, path, offset, text):
        self.path, self.offset, self.text = path, offset, text


def records_of(path, form, wanted=None):
    """The records of a file, each with its Line; wanted: a function that says which lines are looked at."""
    form.start()
    offset = 0
    for whole in _content(path).split(b"\n"):
        text = whole[:-1] if whole.endswith(b"\r") else whole
        if text and len(whole) <= LINE_MAX and (wanted is None or wanted(text)):
            try:
                record = form.record(text)
            except Malformed:
                record = None
            if record is not None:
                record.line = Line(path, offset, text)
                yield record
        offset += len(whole) + 1


def read(specs, wanted=None):
    """The records of file sources, merged."""
    streams = []
    for spec in specs:
        paths = spec["path"] if isinstance(spec["path"], list) else [spec["path"]]
        for name in (name for path in paths for name in _files(path)):
            streams.append(_named(spec.get("name"), records_of(name, Format(spec.get("format")), wanted)))
    return merged(streams)


def _named(name, records):
    for record in records:
        record.source = name
        yield record


class Tracked:
    """A limit's state that remembers what it recorded: [time, cost that is left, the record's line]."""

    def __init__(self, state, buckets):
        self.state, self.buckets, self.rows = state, buckets, []

    def __getattr__(self, name):
        return getattr(self.state, name)

    def _rests(self, t):
        if isinstance(self.state, (SlidingWindow, FixedWindow, Queue)):
            return False
        return self.state.dump() is None or self.state.held(t) == 0

    def leave(self, t):
        """As the state's; a level that is at rest owes nothing to anybody."""
        self.state.leave(t)
        if isinstance(self.state, Queue):
            self.rows = [row for row in self.rows if row[0] + self.limit.hold > t]
        if self._rests(t):
            self.rows = []

    def done(self):
        """The oldest entry goes."""
        more, went = getattr(self.state, "more", 0), self.state.done()
        if went and not more:
            self._keep(self.state.held(None))
        return went

    def record(self, t, c, blocked):
        """As the state's."""
        self.state.record(t, c, blocked)
        self.rows.append([t, c, self.buckets.line])
        if isinstance(self.state, Queue):
            self.rows[-1][1] = min(c, self.limit.length)
            self._keep(self.state.held(t))
        if self._rests(t):
            self.rows = []

    def _keep(self, held):
        """Takes entries out, the oldest first, until so many are left."""
        while sum(row[1] for row in self.rows) > held:
            oldest = min(self.rows, key=lambda row: row[0])
            oldest[1] -= 1
            if oldest[1] == 0:
                self.rows = [row for row in self.rows if row is not oldest]

    def counted(self, t, count):
        """The lines of what counts at t, in the order of judging."""
        state = self.state
        if isinstance(state, FixedWindow):
            window = (t + self.limit.offset) // self.window
            return [row[2] for row in self.rows if (row[0] + self.limit.offset) // self.window == window]
        if not isinstance(state, SlidingWindow):
            return [row[2] for row in self.rows]
        inside = [(row[0], i) for i, row in enumerate(self.rows)
                  if ceil_div(row[0], state.step) * state.step > t - self.window]
        kept, held = set(), 0
        for _, i in sorted(inside, reverse=True):
            if held >= count:
                break
            held += min(self.rows[i][1], self.rate)
            kept.add(i)
        return [self.rows[i][2] for i in sorted(kept)]


class _Buckets(dict):
    """Buckets whose limits are tracked; `line` is that of the record at work."""

    line = None

    def __setitem__(self, place, bucket):
        bucket.states = [Tracked(state, self) for state in bucket.states]
        super().__setitem__(place, bucket)


class Explained(Once):
    """`weir run --once`, with the lines behind each decision."""

    def __init__(self, zones):
        super().__init__(zones)
        self.buckets = _Buckets()
        self.why = {}  # (zone, key's values as JSON shows them, at): of each such decision the lines, its own last

    def take(self, record):
        """Judges a record of read()."""
        self.buckets.line = record.line
        events = super().take(record)
        for key, verdicts in events:
            for verdict in verdicts:
                if verdict.decision is not None:
                    self._explain(key, verdict, record)
        return events

    def _explain(self, key, verdict, record):
        decision = verdict.decision
        at = decision["at"]  # a done record's may be later than the record, as its block is
        bucket = self.buckets[verdict.zone.name, key]
        state = next(state for state in bucket.states if state.limit.described() == decision["limit"]
                     and state.held(at) == decision["count"])
        lines = [line for line in state.counted(at, decision["count"]) if line is not record.line]
        place = (verdict.zone.name, tuple(shown(value) for value in bucket.values), at)
        self.why.setdefault(place, []).append(lines + [record.line])


def shown(value):
    """Bytes as weir's JSON shows them: each that is not UTF-8 as U+FFFD."""
    text = value.decode(errors="surrogateescape")
    return "".join("\ufffd" if 0xDC80 <= ord(letter) <= 0xDCFF else letter for letter in text)
