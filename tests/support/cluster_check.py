# SPDX-License-Identifier: Apache-2.0
"""Holds what a cluster did against the conformance oracle, which replays the events topic in its own order.

    check = cluster_check.Check(c)      # reads and replays weir.events
    check.decisions()                   # PREFIX.decisions and PREFIX.decisions.shadow
    check.judged()                      # PREFIX.judged
    check.state(place)                  # what the limiters, stopped by now, left in the store

Each raises AssertionError with the first differences. Kafka's order of a
partition is what everything follows from, so nothing is assumed of how sources
raced. A message may be published again, by whoever takes over: it must then be
the same, and counts once.
"""

import json
import os
import sys

from support.place import PATIENCE_S, ROOT, until

sys.path.append(os.path.join(ROOT, "tests", "conformance", "oracle"))

# pylint: disable=wrong-import-position
import follow
import json_out
import keys as oracle_keys
from policy import Zone

from support import frames

_SHOWN = 3
_CAUGHT_UP_S = 240
_SHOWN_BYTES = 2000
_AHEAD_MOST_MS = 5000  # a sender's clock before the brokers'
_WORDS = {"block": frames.BLOCK}


class _Partition:
    """What one partition's log comes to."""

    def __init__(self, number, lateness_ms, knows, partitions):
        self.knows = knows  # of a policy's number, whether the store has it
        self.log = follow.Follow([], number, lateness_ms, partitions)
        self.decisions, self.shadow = [], []  # (id, key, line)
        self.judged = {}  # offset: (events, bits)
        self.keys = set()
        self.version = 0

    def take(self, offset, frame):
        """The next frame."""
        if frame.kind == "events":
            results = self.log.take_frame(offset, frame.source, frame.sent_ms, frame.events)
            self.judged[offset] = frame.events, _bits(frame, results)
            self.keys.update(event["key"] for event in frame.events)
        elif frame.kind == "policy":
            if frame.policy <= self.version or not self.knows(frame.policy):
                return  # one that is appended again has no effect; nor has one that nobody has numbered
            self.version = frame.policy
            results = self.log.take_policy(offset, frame.sent_ms, [Zone(zone) for zone in frame.content()["zones"]])
        elif frame.kind == "command":
            results = self.log.take_command(offset, frame.sent_ms, _command(frame))
        else:
            return
        for decision_id, verdict in results:
            if verdict.decision is not None:
                kept = self.shadow if verdict.zone.mode == "shadow" else self.decisions
                line = json_out.decision_line(decision_id, verdict.decision)[:-1]
                kept.append((decision_id, _message_key(verdict), line))


def _command(frame):
    """What was commanded; a body that is no object can be commanded nothing by."""
    try:
        body = frame.content()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _bits(frame, results):
    """The verdicts of a frame's pairs as a judged frame has them."""
    bits = [frames.NONE] * frame.pairs
    for decision_id, verdict in results:
        if verdict.word != "done":
            bits[int(decision_id.rsplit("-", 1)[1])] = (
                _WORDS.get(verdict.word, 0) | (frames.LATE if verdict.late else 0)
                | (frames.DECIDED if verdict.decision is not None else 0))
    return bits


def _message_key(verdict):
    """The zone's name, | and the joined key; None where the decision has no key."""
    values = verdict.decision["key"]
    if values is None:
        return None
    joined = oracle_keys.joined([value if isinstance(value, bytes) else value.encode() for value in values])
    return verdict.zone.name.encode() + b"|" + joined


def _differ(what, got, want):
    """Raises AssertionError with the first difference of two lists."""
    if got == want:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    shown = [str(lines[at:at + _SHOWN])[:_SHOWN_BYTES] for lines in (got, want)]
    raise AssertionError(f"{what}: {len(got)} and not {len(want)}; from number {at} on there are\n  "
                         f"{shown[0]}\nand the oracle has\n  {shown[1]}")


class Check:
    """A cluster's topics against the oracle. Takes the events topic as it is when this is made.

    policies: the numbers that the store has; without them every policy in the log is one. foreign: {(topic, partition,
    offset)} of messages that somebody else has put on the topics of what limiters publish."""

    def __init__(self, cluster, lateness_ms=follow.Follow.LATENESS_MS, policies=None, foreign=()):
        self.cluster, self._foreign = cluster, frozenset(foreign)
        self.partitions = {}
        self.events = self.malformed = self.again = 0
        extents = cluster.kafka.extents(cluster.topic("events"))
        for number in extents:
            self.partitions[number] = _Partition(number, lateness_ms,
                                                 lambda version: policies is None or version in policies, len(extents))
        for message in cluster.kafka.stream(cluster.topic("events")):
            try:
                frame = frames.decode(message.value or b"")
            except frames.Malformed:
                self.malformed += 1  # the limiter passes it over, too
                continue
            if message.appended_ms:
                frame.sent_ms = min(frame.sent_ms, message.appended_ms + _AHEAD_MOST_MS)
            self.events += len(frame.events) if frame.kind == "events" else 0
            self.partitions[message.partition].take(message.offset, frame)

    @property
    def wanted(self):
        """How many decisions there must be in force mode, in all."""
        return sum(len(one.decisions) for one in self.partitions.values())

    @property
    def dropped(self):
        """How many events were in the log again, and count once."""
        return sum(one.log.dropped for one in self.partitions.values())

    def _published(self, name):
        """The messages that limiters have put on a topic."""
        topic = self.cluster.topic(name)
        return (message for message in self.cluster.kafka.stream(topic)
                if (topic, message.partition, message.offset) not in self._foreign)

    # ---- decisions ----

    def decisions(self):
        """Every decision is on its topic, in order, as the oracle has it; those of shadow zones on theirs."""
        for topic, name in (("decisions", "decisions"), ("decisions.shadow", "shadow")):
            published = {number: {} for number in self.partitions}
            for message in self._published(topic):
                self._publish(topic, published[message.partition], message)
            for number, one in self.partitions.items():
                want = getattr(one, name)
                _differ(f"{topic}, partition {number}", [line for _, line in published[number].values()],
                        [line for _, _, line in want])
                for decision_id, key, _ in want:
                    got = published[number][decision_id][0]
                    assert key is None or got == key, f"{topic}: {decision_id} has the key {got}, not {key}"

    def _publish(self, topic, published, message):
        line = message.value.rstrip(b"\n")
        decision_id = json.loads(line)["id"]
        if decision_id in published:
            self.again += 1
            assert published[decision_id] == (message.key, line), \
                f"{topic}: published again, and not the same:\n  {published[decision_id]}\n  {message.key, line}"
        published.setdefault(decision_id, (message.key, line))

    @property
    def frames(self):
        """How many frames there are to be judged."""
        return sum(len(one.judged) for one in self.partitions.values())

    def missing_decisions(self):
        """How many of them are not on their topic yet: to wait until all are."""
        published = {json.loads(message.value)["id"] for message in
                     self._published("decisions")}
        return sum(decision_id not in published for one in self.partitions.values()
                   for decision_id, _, _ in one.decisions)

    # ---- judged frames ----

    def missing_judged(self):
        """How many frames are not on the judged topic yet: to wait until all are."""
        judged = {(message.partition, frames.decode(message.value).judged_offset)
                  for message in self._published("judged")}
        return sum((number, offset) not in judged for number, one in self.partitions.items() for offset in one.judged)

    def judged(self):
        """Every events frame is on the judged topic, with the verdicts that the oracle gives."""
        published = {number: {} for number in self.partitions}
        for message in self._published("judged"):
            frame = frames.decode(message.value)
            assert frame.kind == "judged", f"a {frame.kind} frame on the judged topic"
            judged = frame.events, frame.verdicts
            before = published[message.partition].setdefault(frame.judged_offset, judged)
            assert before == judged, f"judged, partition {message.partition}: offset {frame.judged_offset} differs"
        for number, one in self.partitions.items():
            _differ(f"judged, offsets of partition {number}", list(published[number]), list(one.judged))
            for offset, want in one.judged.items():
                _differ(f"judged, partition {number}, offset {offset}, events", published[number][offset][0], want[0])
                _differ(f"judged, partition {number}, offset {offset}, verdicts", published[number][offset][1], want[1])

    # ---- buckets ----

    def state_lines(self):
        """The buckets at the end of the log, as `weir state` prints them, sorted."""
        return sorted(json_out.dumps(line) for one in self.partitions.values() for line in one.log.state())

    def state(self, place):
        """The store has just these buckets; the limiters have stopped, with their last checkpoints made."""
        config = place.write("state.json", json.dumps(self.cluster.sections(partitions=len(self.partitions)), indent=1))
        listed = sorted({key for one in self.partitions.values() for key in one.keys})
        named = place.write("state.keys", b"\n".join(listed) + b"\n")
        dumped = place.good("state", "--config", config, "--keys", named, patience_s=10 * PATIENCE_S).out()
        _differ("buckets", sorted(dumped.splitlines()), self.state_lines())


def caught_up(cluster, roles, wanted=None):
    """Waits until everything in the log is decided as the oracle has it, and holds it against that: the Check.

    wanted: how many decisions there must be, where events may still be on their way into the log."""
    def complete():
        check = Check(cluster)
        return (wanted is None or check.wanted >= wanted) and check.missing_decisions() == 0
    until(complete, "all decisions are on their topic", _CAUGHT_UP_S, roles.all[0].run)
    check = Check(cluster)
    check.decisions()
    return check
