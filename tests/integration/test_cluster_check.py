#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds a cluster against the oracle finds each kind of difference; no server is needed for that."""

import collections
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, frames
from support.cluster_check import Check
from support.traffic import START_MS, sliding, zone

Message = collections.namedtuple("Message", "partition offset key value appended_ms")
SOURCE = bytes(range(16))
KEY = ["user", "path"]
ZONES = [zone("site", [sliding(2, "1m")], KEY, id=1), zone("trial", [sliding(1, "1m")], KEY, id=2, mode="shadow")]
BOTH = [(1, False), (2, False), (9, False)]  # nobody knows 9


class Topics:
    """Stands for Kafka: topics as lists of messages, with one partition."""

    def __init__(self, topics):
        self.topics = topics

    def extents(self, topic):
        """Of its only partition."""
        return {0: (0, len(self.topics.get(topic, ())))}

    def stream(self, topic):
        """Its messages."""
        return [Message(0, offset, key, value, 0) for offset, (key, value) in enumerate(self.topics.get(topic, ()))]


class Scene:
    """A log and what is right for it."""

    def __init__(self):
        happened = [{"key": b"a|b", "time": START_MS + 10 * at, "cost": 1, "position": 5 + at, "zones": BOTH}
                    for at in range(5)]
        policy = frames.control("policy", START_MS, {"zones": ZONES}, 1)
        first = frames.events(START_MS + 100, SOURCE, 1, happened[:3])
        second = frames.events(START_MS + 200, SOURCE, 1, happened[1:])  # some of it again
        self.topics = {"events": [policy, first, b"no frame", second, policy]}
        passed, blocked, none = 0, frames.BLOCK, frames.NONE
        new, decided = frames.DECIDED | frames.BLOCK, frames.DECIDED | frames.BLOCK
        self.topics["judged"] = [
            frames.judged(first, 1, [passed, passed, none, passed, new, none, decided, blocked, none]),
            frames.judged(second, 3, [none] * 6 + [blocked, blocked, none] * 2)]
        self.topics["decisions"] = [(b"site|a|b", decision("0-1-6", "site", START_MS + 20, 2, START_MS + 60000))]
        self.topics["decisions.shadow"] = [
            (b"trial|a|b", decision("0-1-4", "trial", START_MS + 10, 1, START_MS + 60000, "shadow"))]

    def topic(self, name):
        """As a Cluster has it."""
        return name

    @property
    def kafka(self):
        """As a Cluster has it."""
        return Topics({name: [one if isinstance(one, tuple) else (None, one) for one in messages]
                       for name, messages in self.topics.items()})

    def check(self):
        """All that can be asked without a store."""
        check = Check(self)
        check.decisions()
        check.judged()
        return check


def decision(number, name, at_ms, count, until_ms, mode="enforce"):
    """The line of one."""
    return (f'{{"id":"{number}","zone":"{name}","key":["a","b"],"action":"block","at":{at_ms},"until":{until_ms},'
            f'"limit":{{"algorithm":"sliding_window","rate":{count},"window":60000}},"count":{count},'
            f'"mode":"{mode}"}}').encode()


def refused(break_it, words):
    """The check must find what break_it(topics) does to a scene."""
    scene = Scene()
    break_it(scene.topics)
    try:
        scene.check()
    except AssertionError as found:
        assert words in str(found), found
        return
    raise AssertionError(f"not found: {words}")


def test_what_is_right_passes(_):
    check = Scene().check()
    assert (check.events, check.dropped, check.malformed, check.wanted, check.again) == (7, 2, 1, 1, 0)
    assert len(check.state_lines()) == 2


def test_what_is_published_again_counts_once(_):
    scene = Scene()
    scene.topics["decisions"] *= 2
    scene.topics["judged"] *= 2
    assert scene.check().again == 1


def test_decisions_that_differ_are_found(_):
    refused(lambda topics: topics["decisions"].clear(), "decisions, partition 0: 0 and not 1")
    refused(lambda topics: topics["decisions.shadow"].clear(), "decisions.shadow, partition 0: 0 and not 1")
    refused(lambda topics: topics["decisions"].extend(topics["decisions.shadow"]), "decisions, partition 0: 2 and not")
    (key, line), = Scene().topics["decisions"]
    other = line.replace(b'"count":2', b'"count":3')
    refused(lambda topics: topics.update(decisions=[(key, other)]), "partition 0: 1 and not 1; from number 0")
    refused(lambda topics: topics["decisions"].append((key, other)), "published again, and not the same")
    refused(lambda topics: topics.update(decisions=[(b"site|a", line)]), "has the key b'site|a'")


def test_judged_frames_that_differ_are_found(_):
    refused(lambda topics: topics["judged"].pop(), "judged, offsets of partition 0: 1 and not 2")
    events, other = Scene().topics["events"][1], Scene().topics["events"][3]
    right = frames.decode(Scene().topics["judged"][0]).verdicts
    for at, wrong in ((0, frames.BLOCK), (2, 0), (4, frames.BLOCK), (7, frames.BLOCK | frames.LATE)):
        bits = right[:at] + [wrong] + right[at + 1:]
        message = frames.judged(events, 1, bits)
        refused(lambda topics, message=message: topics["judged"].__setitem__(0, message), "offset 1, verdicts")
        refused(lambda topics, message=message: topics["judged"].append(message), "offset 1 differs")
    foreign = frames.judged(other, 1, [0] * frames.decode(other).pairs)
    refused(lambda topics: topics["judged"].__setitem__(0, foreign), "offset 1, events")
    refused(lambda topics: topics["judged"].append(events), "a events frame on the judged topic")


def test_buckets_that_differ_are_found(place):
    check = Check(Scene())
    check.cluster.sections = dict

    class Dumped:
        """A place whose `weir state` prints these lines."""

        write, lines = place.write, check.state_lines()

        def good(self, *words, **_):
            """The command."""
            assert words[0] == "state", words
            return self

        def out(self):
            """What it printed."""
            return b"".join(line + b"\n" for line in self.lines)

    dumped = Dumped()
    check.state(dumped)
    for wrong in (dumped.lines[:1], dumped.lines * 2, [line.replace(b"[", b"[ ") for line in dumped.lines]):
        dumped.lines = wrong
        try:
            check.state(dumped)
        except AssertionError as found:
            assert "buckets" in str(found)
            continue
        raise AssertionError(f"not found: {wrong}")


def test_frames_are_read_strictly(_):
    for message in Scene().topics["events"][:2]:
        for wrong in (message[:-1], message + b"x", message[:9] + b"\xff" + message[10:], b"xF" + message[2:],
                      message[:2] + b"\7" + message[3:], message[:20], b""):
            try:
                frames.decode(wrong)
            except frames.Malformed:
                continue
            raise AssertionError(f"taken: {wrong}")


if __name__ == "__main__":
    cases.main(globals())
