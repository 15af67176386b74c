# SPDX-License-Identifier: Apache-2.0
"""What weir must decide, by the obvious model: one dict of buckets, plain lists.

judge() answers for a list of events; Once is what `weir run --once` does to
records in merged order. follow.py has what a limiter does to a partition's log.
Both as common/specification/semantics.md, Order of tests and what follows there.
"""

from limits import state_of
from keys import bounded, joined, partition_of
from overrides import scaled


class Bucket:
    """The state of one (zone, key) pair."""

    def __init__(self, zone, values):
        self.zone, self.values = zone, values
        self.times = 1000  # thousandths that its rates are multiplied by
        self.limits = list(zone.limits)  # as the policy has them
        self.states = [state_of(limit) for limit in zone.limits]
        self.blocked_at = self.blocked_until = None
        self.nth = 0  # which block of the key the last decision was
        self.clock_s = 0

    def rescale(self, times):
        """Judged under another factor than before: limits that change by it start empty."""
        for i, limit in enumerate(self.limits):
            changed = scaled(limit, times)
            if not self.states[i].limit.same_as(changed):
                self.states[i] = state_of(changed)
        self.times = times

    def memory_ms(self):
        """How long after its last event it can still matter."""
        return max(state.limit.memory_ms() for state in self.states)

    def dump(self, partition):
        """The bucket as a state line's object; None if it holds nothing."""
        limits = [state.dump() for state in self.states]
        if self.blocked_until is None and not any(limits):
            return None
        line = {"zone": self.zone.name, "key": list(self.values), "partition": partition,
                "blocked_at": self.blocked_at, "blocked_until": self.blocked_until}
        if self.zone.escalates:
            line["blocks"] = self.nth
        return {**line, "limits": limits}

    def take_back(self):
        """What an operator's lift leaves: an empty bucket that knows of the blocks before the last."""
        left = Bucket(self.zone, self.values)
        left.clock_s = self.clock_s
        if self.zone.escalates and self.nth > 0:
            left.nth = self.nth - (self.blocked_until > self.blocked_at)
        if left.nth > 0:
            left.blocked_at = left.blocked_until = self.blocked_at
        return left


class Verdict:
    """What became of one event in one zone: pass, block or done; late; a decision."""

    def __init__(self, zone, word, late=False, decision=None):
        self.zone, self.word, self.late, self.decision = zone, word, late, decision


def block_begin(t, sent):
    """From when on a block lasts: an event that was sent late, but not long ago, counts from its sending."""
    return sent if 5000 < sent - t <= 3600000 else t


def judge_done(bucket, t, held_until):
    """A done record: the oldest entry of each queue goes. A place under an open block ends it when the limits say.

    held_until: the end of an operator's block of just this key, -1 without one: gateways have the later end of both."""
    zone = bucket.zone
    freed = [state for state in bucket.states if state.done()]
    is_open = (bucket.blocked_until is not None and bucket.blocked_at < bucket.blocked_until
               and t < bucket.blocked_until)
    if not freed or not is_open or zone.block_for > 0:
        return Verdict(zone, "done")
    at = max(t, bucket.blocked_at)
    over = [state for state in bucket.states if state.over(at, 1)]
    until = max([at] + [state.reset(at) for state in over])
    if any(state.late(at) for state in bucket.states) or until >= bucket.blocked_until or (over and until == at):
        return Verdict(zone, "done")
    first = next(state for state in over if state.reset(at) == until) if over else freed[0]
    was_until, bucket.blocked_until = bucket.blocked_until, until if over else bucket.blocked_at
    if held_until >= was_until:
        return Verdict(zone, "done")
    until = max(until, held_until)
    return Verdict(zone, "done", decision={
        "zone": zone.name, "key": list(bucket.values), "action": "block" if until > at else "lift", "at": at,
        "until": until, "limit": first.limit.described(), "count": first.held(at), "freed": True, "mode": zone.mode})


def judge_event(bucket, t, c, is_done, barred=False, sent=0, held_until=-1):
    """Judges one event in its bucket and records it as the zone says; barred: an operator blocks it.
    held_until: see judge_done().

    sent: when it was sent; `weir run --once` says 0."""
    zone, states = bucket.zone, bucket.states
    for state in states:
        state.leave(t)
    if is_done:
        return judge_done(bucket, t, held_until)

    in_time = [state for state in states if not state.late(t)]
    penalty = (zone.block_for > 0 and bucket.blocked_until is not None
               and bucket.blocked_at <= t < bucket.blocked_until)
    blocked = barred or penalty or any(state.over(t, c) for state in in_time)
    breached = []
    is_over = bucket.blocked_until is None or t >= bucket.blocked_until or bucket.blocked_at == bucket.blocked_until
    if blocked and not barred and is_over:
        breached = [state for state in in_time if state.over(t, 1)]

    for state in in_time:
        if state.charged_by_all or (c > 0 and (zone.counts_all or not blocked)):
            state.record(t, c, blocked)

    decision = None
    if breached:
        resets = [state.reset(t) for state in breached]
        first = breached[resets.index(max(resets))]
        is_repeated = (zone.escalates and bucket.blocked_until is not None
                       and t < bucket.blocked_until + zone.forgive_after)
        bucket.nth = min(bucket.nth + 1, 65535) if is_repeated else 1
        block_for = zone.blocks[min(bucket.nth, len(zone.blocks)) - 1]
        bucket.blocked_at = t
        begin = block_begin(t, sent) if block_for else t
        bucket.blocked_until = max(max(resets), begin + block_for)
        decision = {"zone": zone.name, "key": list(bucket.values), "action": "block",
                    "at": t, "until": bucket.blocked_until,
                    "limit": first.limit.described(), "count": first.held(t)}
        if zone.escalates:
            decision["nth"] = bucket.nth
        decision["mode"] = zone.mode
    return Verdict(zone, "block" if blocked else "pass", len(in_time) < len(states), decision)


def events_of(zones, record):
    """The events of a record: [(joined key, [(zone, key values, is_done), …])].

    Zones that share a joined key make one event; order by the first zone."""
    events = {}
    for zone in zones:
        taken = zone.takes(record)
        if taken is not None:
            values, how = taken
            values = bounded(values)
            events.setdefault(joined(values), []).append((zone, values, how == "done"))
    return list(events.items())


def judge(zones, events):
    """The verdicts of a list of (time, cost, fields): for each event a list of
    Verdict in the zones' order. fields: dict of name to bytes."""
    once = Once(zones)
    place = {zone.name: i for i, zone in enumerate(zones)}
    answers = []
    for event in events:
        verdicts = [v for _, some in once.take(_Plain(*event)) for v in some]
        answers.append(sorted(verdicts, key=lambda verdict: place[verdict.zone.name]))
    return answers


class _Plain:
    """An event from a test instead of a log."""

    def __init__(self, time, cost, fields):
        self.time, self.cost, self.fields = time, cost, fields

    def field(self, name):
        """The bytes of a field, or None."""
        return self.fields.get(name)


class Counts:
    """What a summary says of one zone."""

    def __init__(self):
        self.matched = self.passed = self.blocked = self.late = self.decisions = 0

    def add(self, verdict):
        """Counts one verdict; a done record is none, but may decide."""
        self.decisions += verdict.decision is not None
        if verdict.word == "done":
            return
        self.matched += 1
        self.passed += verdict.word == "pass"
        self.blocked += verdict.word == "block"
        self.late += verdict.late


class Once:
    """`weir run --once`: records in merged order; nothing is forgotten."""

    def __init__(self, zones):
        self.zones = zones
        self.buckets = {}
        self.counts = {zone.name: Counts() for zone in zones}

    def take(self, record):
        """Judges one record: its events as [(joined key, [Verdict, …])]."""
        events = []
        for key, members in events_of(self.zones, record):
            verdicts = []
            for zone, values, is_done in members:
                bucket = self.buckets.get((zone.name, key))
                if bucket is None:
                    bucket = self.buckets[zone.name, key] = Bucket(zone, values)
                verdict = judge_event(bucket, record.time, record.cost, is_done)
                self.counts[zone.name].add(verdict)
                verdicts.append(verdict)
            events.append((key, verdicts))
        return events

    def state(self, partitions):
        """State objects in (zone, joined key) order, of buckets that hold something."""
        place = {zone.name: i for i, zone in enumerate(self.zones)}
        ordered = sorted(self.buckets, key=lambda pair: (place[pair[0]], pair[1]))
        lines = [self.buckets[pair].dump(partition_of(pair[1], partitions)) for pair in ordered]
        return [line for line in lines if line is not None]
