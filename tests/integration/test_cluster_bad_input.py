#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nobody should have sent, on every topic of a working cluster: counted, kept up to the cap, nothing else is lost.

And no daemon ends of it: not when it comes, and not when a later start reads it again.
"""

import json
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, cluster_check, decisions, foreign, frames, traffic
from support.blocks_in_redis import block_key
from support.limiters import EVENTS, Stage
from support.place import PATIENCE_S, lines_of, until
from support.roles import Roles

DONE, FAILED = 0, 1
PARTITIONS = 4
TOPICS = ("events", "judged", "decisions", "decisions.shadow", "policy", "deadletter")
ZONES = [traffic.zone("site", [traffic.sliding(3, "1h")], id=1),
         traffic.zone("trial", [traffic.sliding(1, "1h")], id=2, mode="shadow")]
USERS, REQUESTS, LINE_BYTES = 40, 5, 10 << 20


def bad_frames():
    """Messages for the events topic of which each is to be passed over and counted."""
    now_ms = decisions.now_ms()
    event = {"key": b"foreigner", "time": now_ms, "cost": 1, "position": 7, "zones": [(1, False)]}
    good = frames.events(now_ms, b"f" * 16, 1, [event])
    return foreign.no_frames() + foreign.spoiled(good) + [
        frames.judged(good, 1, [0]),
        frames.control("policy", now_ms, {"zones": []}, 1 << 40), frames.control("policy", now_ms, b"\xff", 77),
        *(frames.control("command", now_ms, body, 1) for body in (
            b"", b"no json", [], {}, {"command": "lift"}, {"command": "lift", "zone": "nowhere", "key": ["x"]},
            {"command": "burn", "zone": "site", "key": ["x"]}, {"command": "lift", "zone": "site", "key": [1]},
            {"command": "lift", "zone": "site", "key": ["x", "y"]}))]


class Town:
    """A whole cluster at work, whose users all go over their limit."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        self.users, self.lines = [], 0
        self.foreign = set()
        roles.apply()
        self.log = place.write("log", "")
        self.limiters = [roles.limiter(), roles.limiter()]
        self.collector = roles.collector([traffic.source(self.log)])
        config = place.write("subscribe.json", json.dumps(roles.sections()))
        self.blocked = place.path("blocked.jsonl")
        self._subscribe = lambda: [decisions.start(place, config, to) for to in (one.redis_url, f"file:{self.blocked}")]
        self.subscribers = self._subscribe()
        self.until_shared()

    def until_shared(self):
        """Waits until the limiters have all partitions between them, and each has some."""
        def shared():
            live = [one.value("weir_limiter_partitions", state="live") for one in self.limiters]
            return sum(live) == PARTITIONS and all(live) and all(one.is_ready() for one in self.limiters)
        self.limiters[0].until(shared, "the partitions are shared")

    def feed(self):
        """More users log, and more than they may."""
        users = [f"u{len(self.users) + number}" for number in range(USERS)]
        start_ms = decisions.now_ms()
        self.place.append("log", "".join(traffic.burst(user, REQUESTS, start_ms) for user in users))
        self.users += users
        self.lines += USERS * REQUESTS

    def check(self):
        """All that is in the log against the oracle; waits until it is there and judged."""
        checked = None

        def complete():
            nonlocal checked
            checked = cluster_check.Check(self.one, policies={1}, foreign=self.foreign)
            return (checked.events - checked.dropped >= self.lines and checked.missing_decisions() == 0
                    and checked.missing_judged() == 0)
        self.limiters[0].until(complete, "all is judged", 4 * PATIENCE_S)
        checked.decisions()
        checked.judged()
        assert checked.events - checked.dropped == self.lines, (checked.events, checked.dropped, self.lines)
        keys = sorted(block_key("site", user.encode()) for user in self.users)
        by_redis, by_file = self.subscribers
        by_redis.until(lambda: self.one.redis.keys("weir:*") == keys, "Redis has all of the blocked")
        by_file.until(lambda: sorted(line["key"] for line in lines_of(self.blocked))
                      == sorted([user] for user in self.users), "the file has all of the blocked")

    def scatter(self, name, values):
        """Puts values on a topic of weir's: {(topic, partition, offset)}."""
        partitions = 1 if name in ("policy", "deadletter") else PARTITIONS
        places = foreign.scatter(self.one, name, values, partitions)
        self.foreign |= places
        return places

    def roles_and_subscribers(self):
        """Every process."""
        return [one.run for one in self.limiters + [self.collector]] + [one.weir for one in self.subscribers]

    def restart(self):
        """Kills everything, and starts it again."""
        for run in self.roles_and_subscribers():
            run.kill()
        for role in self.limiters + [self.collector]:
            role.start()
        self.subscribers = self._subscribe()
        self.until_shared()


def limiters_total(town, name):
    """The sum of a metric of all limiters."""
    return sum(one.value(name) for one in town.limiters)


def require_decoded(town, name):
    """`weir decode` prints what can be printed of a topic, each message as a line of JSON, and tells of the rest."""
    config = town.place.write("decode.json", json.dumps(town.roles.sections()))
    run = town.place.run("decode", "--config", config, "--topic", name)
    printed = {(line["partition"], line["offset"]) for line in map(json.loads, run.out().splitlines())}
    topic = town.one.topic(name)
    own = {(message.partition, message.offset) for message in town.one.kafka.stream(topic)} - {
        (partition, offset) for of, partition, offset in town.foreign if of == topic}
    assert own <= printed, f"{name}: {sorted(own - printed)[:3]} are not printed: {run.said()[-2000:]}"
    assert run.code() == (FAILED if run.said() else DONE), (name, run.code(), run.said()[-2000:])


def test_foreign_messages_on_every_topic(place):
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS, "kafka": {
            **one.kafka_properties, "session.timeout.ms": 6000}}, deadletter={"rate": 0},
                                        archiver={"enabled": True}) as roles:
        town = Town(place, one, roles)
        town.feed()
        town.check()
        bad = town.scatter("events", bad_frames())
        values = foreign.no_frames() + foreign.spoiled(frames.control("policy", 0, {"zones": []}, 3))
        placed = {name: town.scatter(name, values) for name in TOPICS[1:]}
        place.append("log", b"x" * LINE_BYTES + b"\nno line\n" + b"\n\xff\0\n")
        town.feed()
        town.check()

        # Each reader has counted just what it met.
        until(lambda: limiters_total(town, "weir_limiter_malformed_frames_total") >= len(bad), "the limiters have counted")
        assert limiters_total(town, "weir_limiter_malformed_frames_total") == len(bad)
        town.collector.until(lambda: town.collector.value("weir_policy_bad_messages_total", reason="foreign") >= len(placed["policy"]),
                             "the collector has counted")
        assert town.collector.value("weir_policy_bad_messages_total", reason="foreign") == len(placed["policy"])
        town.collector.until(lambda: town.collector.value("weir_collector_malformed_total") == 3, "and its lines")
        for subscriber in town.subscribers:
            subscriber.until(lambda of=subscriber: of.value("decisions_total", result="malformed")
                             >= len(placed["decisions"]), "the subscriber has counted")
            assert subscriber.value("decisions_total", result="malformed") == len(placed["decisions"])

        # Everything is kept, under its place.
        topic = one.topic("deadletter")
        letters = [json.loads(message.value) for message in one.kafka.consume(topic)
                   if (topic, message.partition, message.offset) not in town.foreign]
        kept = [(letter["partition"], letter["position"]) for letter in letters if letter["source"] == "weir.events"]
        assert sorted(kept) == sorted((partition, offset) for _, partition, offset in bad), len(kept)
        assert sorted(letter["reason"] for letter in letters if letter["source"] == town.log) == [
            "line too long", "not json", "not json"]

        # Nor does whoever comes later stumble over it.
        assert all(run.code() is None for run in town.roles_and_subscribers())
        town.restart()
        town.feed()
        town.check()
        for name in TOPICS:
            require_decoded(town, name)
        listed = [json.loads(line) for line in roles.command("list", "--json").out().splitlines()]
        assert sorted(line["key"] for line in listed) == sorted([user] for user in town.users), listed[:3]
        for role in town.limiters + [town.collector]:
            assert role.stop() == DONE, role.said()[-2000:]
        cluster_check.Check(one, policies={1}).state(place)


def test_dead_letters_of_frames_are_capped(place):
    """Past the rate they are counted, and no more."""
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": 1}, deadletter={"rate": 5},
                                        limiter={"threads": 1}) as roles:
        roles.apply()
        limiter = roles.limiter().until_ready()
        began_s = time.monotonic()
        one.kafka.produce(one.topic("events"), [b"nothing"] * 3000)
        limiter.until(lambda: limiter.value("weir_limiter_malformed_frames_total") == 3000, "all are counted")
        most = 5 * (2 + time.monotonic() - began_s)
        kept, dropped = (limiter.value(f"weir_limiter_dead_letters{name}_total") for name in ("", "_dropped"))
        assert kept + dropped == 3000 and kept >= 1, (kept, dropped)
        limiter.until(lambda: one.kafka.count(one.topic("deadletter")) == kept, "what is kept is on the topic")
        assert kept <= most, (kept, most)
        limiter.until(lambda: limiter.run.said().count("skipped") == kept, "each of these is said")
        assert limiter.stop() == DONE


def test_a_frame_of_a_newer_weir_stops_its_partition_alone(place):
    """It may be what a newer weir counts by: it is not passed over before a person says so, and the others go on."""
    stopped = 2
    with cluster.shared() as one, Stage(place, "stage", one) as stage:
        stage.feed(80)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        newer = b"wF\x03" + bytes(100)
        (offset,) = one.kafka.produce(one.topic("events"), [(None, newer, stopped)])
        stage.feed(80)
        due = {**stage.ends(), stopped: offset}
        words = f"partition {stopped} is stopped: it waits at offset {offset}: frame version 3"
        for _ in range(2):  # a new start stands there, too
            limiter.until(lambda: stage.stored() == due, "the others go on")
            limiter.until(lambda: words in limiter.page("/healthz")[1], "it says so")
            assert limiter.page("/healthz")[0] == 503
            assert limiter.value("weir_limiter_malformed_frames_total") == 0
            assert limiter.stop() == DONE, limiter.said()[-2000:]
            limiter.start().until_up()  # one with a stopped partition is not ready
        assert limiter.stop() == DONE, limiter.said()[-2000:]
        assert one.kafka.count(one.topic("deadletter")) == 0
        one.kafka.trim(one.topic("events"), {stopped: offset + 1})
        stage.roles.command("recover", "--accept-gap", "--partition", stopped, "--yes")
        limiter.start()
        stage.until_stored(limiter)
        judged = [frames.decode(message.value) for message in one.kafka.consume(one.topic("judged"))]
        assert sum(len(frame.events) for frame in judged) == stage.fed * EVENTS
        assert limiter.stop() == DONE


def test_a_policy_of_a_newer_weir_is_told_from_what_a_stranger_writes(place):
    """A collector cannot read it: it works by the one before, says so, and takes the next that it can read."""
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([traffic.source(place.write("log", ""))]).until_ready()
        skipped = lambda reason: collector.value("weir_policy_bad_messages_total", reason=reason)
        one.kafka.produce(one.topic("policy"), [(b"newer", b"wF\x03" + bytes(100), 0), (b"else", b"no policy", 0)])
        collector.until(lambda: (skipped("newer"), skipped("foreign")) == (1, 1), "tells them apart")
        assert collector.page("/readyz") == (503, "cannot use policy 2: see the log\n")
        assert (collector.value("weir_policy_newest_version"), collector.value("weir_policy_version")) == (2, 1)
        assert "A newer weir applied this policy" in collector.said() and "who else writes there?" in collector.said()
        roles.apply([{**ZONES[0], "block_for": "2m"}])
        collector.until_ready().until(lambda: collector.value("weir_policy_version") == 2, "takes the next one")
        assert collector.stop() == DONE


if __name__ == "__main__":
    cases.main(globals())
