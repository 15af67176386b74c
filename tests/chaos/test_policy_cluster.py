#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy that changes all the time, under load, while collectors and limiters are killed.

Each version is known by what it does: its number is in its rate, and so in every decision that was made under it. So
each event is seen to be judged under the version that is in force at its offset; and all of it again when the limiters'
state is thrown away and the whole log is replayed: then everything is published once more, and is the same.

WEIR_POLICY_CHANGES (8; 50 by hand), WEIR_SEED.
"""

import bisect
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, cluster_check, frames, live, traffic
from support.place import PATIENCE_S, SANITIZED
from support.roles import Roles

CHANGES = int(os.environ.get("WEIR_POLICY_CHANGES", 8))
RATE = 100 if SANITIZED else 500
PARTITIONS = 4
SITE, USERS, LEAST_RATE = 1, 100, 3  # version v lets LEAST_RATE + v pass


def zones(version):
    """One zone that stays and whose rate says the version; others that come and go, so that blocks are lifted."""
    kept = [traffic.zone("site", [traffic.sliding(LEAST_RATE + version, "5s")], id=SITE),
            traffic.zone("watch", [traffic.fixed(20 + version % 3, "2s")], key=("path",), id=2, mode="shadow",
                         match={"path": [f"/{number}" for number in range(1 + version % 7)]})]
    passing = traffic.zone(f"trial-{version}", [traffic.sliding(2, "1m")], id=10 + version, block_for="1h")
    return kept + [passing] if version % 2 else kept


class Log:
    """What the events topic says without any judging."""

    def __init__(self, one):
        self.policies = {}  # partition: ([offsets], [versions]) of those that took over
        self.matched = {}  # (partition, offset): the version that a frame was matched under
        self.taken = 0  # events of the zone that stays, each once
        held = {}
        for message in one.kafka.stream(one.topic("events")):
            frame = frames.decode(message.value)
            if frame.kind == "policy":
                offsets, versions = self.policies.setdefault(message.partition, ([], []))
                if not versions or frame.policy > versions[-1]:
                    offsets.append(message.offset)
                    versions.append(frame.policy)
                continue
            self.matched[message.partition, message.offset] = frame.policy
            reader = message.partition, frame.source
            before = held.get(reader, -1)
            self.taken += sum(event["position"] > before and (SITE, False) in event["zones"] for event in frame.events)
            held[reader] = max([before] + [event["position"] for event in frame.events])

    def version(self, partition, offset):
        """The version in force there."""
        offsets, versions = self.policies[partition]
        return versions[bisect.bisect(offsets, offset) - 1]


class Town:
    """The daemons, and the policies that there were."""

    def __init__(self, place, one, roles, dice):
        self.place, self.one, self.roles, self.dice = place, one, roles, dice
        self.version, self.kills = 1, 0
        roles.apply(zones(1))
        self.logs = [live.RotatingLog(place.path("logs", f"log-{number}"), 2) for number in range(2)]
        self.limiters = [roles.limiter() for _ in range(2)]
        self.collectors = [roles.collector([traffic.source(log.path)]) for log in self.logs]
        for role in self.limiters + self.collectors:
            role.until_ready()

    def change(self):
        """Another policy; somebody is killed before, while or after it is applied."""
        victim = self.dice.choice(self.limiters + self.collectors)
        moment = self.dice.random()
        if moment < 0.7:
            victim.kill()
            self.kills += 1
        if moment < 0.3:
            victim.start()
        self.version += 1
        self.roles.apply(zones(self.version))
        if victim.run.code() is not None:
            victim.start()

    def until_taken(self, lines):
        """Waits until every line is in the log."""
        taken = 0

        def complete():
            nonlocal taken
            taken = Log(self.one).taken
            return taken >= lines
        try:
            self.limiters[0].until(complete, f"{lines} lines are in the log", 8 * PATIENCE_S)
        except AssertionError as late:
            raise AssertionError(f"{late}, but {taken}") from None

    def until_stored(self):
        """Waits until the store has the whole log, judged."""
        self.limiters[0].until(lambda: self.one.stored() == self.one.ends(), "checkpoints hold the whole log", 8 * PATIENCE_S)


def require_right(place, one, log):
    """Decisions, verdicts and buckets are the oracle's; and the version in force is in each decision: the check."""
    check = cluster_check.Check(one)
    check.decisions()
    check.judged()
    check.state(place)
    seen = set()
    for message in one.kafka.stream(one.topic("decisions")):
        decision = json.loads(message.value)
        partition, offset, _ = map(int, decision["id"].split("-"))
        if decision["zone"] == "site":
            assert decision["limit"]["rate"] == LEAST_RATE + log.version(partition, offset), (
                decision, log.version(partition, offset))
            seen.add(decision["limit"]["rate"] - LEAST_RATE)
    for message in one.kafka.stream(one.topic("judged")):
        frame = frames.decode(message.value)
        place_in_log = message.partition, frame.judged_offset
        assert frame.policy == log.matched[place_in_log] <= log.version(*place_in_log), place_in_log
    return check, seen


def test_a_policy_that_changes_under_load_and_kills(place):
    """Each event under the version at its offset, on replay too."""
    seed = int(os.environ.get("WEIR_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}: WEIR_SEED={seed} runs it again", flush=True)
    with cluster.shared() as one, Roles(place, one, bus={"partitions": PARTITIONS, "kafka": {
            **one.kafka_properties, "session.timeout.ms": 2000, "heartbeat.interval.ms": 300}},
                                        archiver={"enabled": True}, deadletter={"rate": 0},
                                        limiter={"checkpoint_interval": "300ms"}) as roles:
        town = Town(place, one, roles, random.Random(seed))
        lines = live.Traffic([(0.5, log) for log in town.logs], RATE, USERS)
        lines.begin()
        for collector in town.collectors:
            collector.until(lambda collector=collector: collector.value("weir_collector_lines_total") >= 1, "has seen its log")
        with lines:
            for _ in range(CHANGES):
                time.sleep(town.dice.uniform(0.2, 1))  # moments are what is drawn
                town.change()
            time.sleep(1)
            lines.finish()
        town.until_taken(lines.total)
        town.until_stored()
        for role in town.collectors + town.limiters:
            assert role.stop() == 0, role.said()[-2000:]
        log = Log(one)
        assert log.taken == lines.total, (log.taken, lines.total)
        assert all(versions == list(range(1, CHANGES + 2)) for _, versions in log.policies.values()), log.policies
        check, seen = require_right(place, one, log)
        report = {"bench": "cluster_policies", "changes": CHANGES, "kills": town.kills, "lines": lines.total,
                  "sent_again": check.dropped, "decisions": check.wanted, "published_again": check.again,
                  "versions_seen_in_decisions": len(seen)}
        assert len(seen) > CHANGES // 3, seen

        one.forget()
        town.limiters[0].start()
        town.until_stored()
        assert town.limiters[0].stop() == 0
        replayed, _ = require_right(place, one, log)
        report["published_on_replay"] = replayed.again - check.again
        print(json.dumps(report), flush=True)
        due = sum(len(part.decisions) + len(part.shadow) for part in replayed.partitions.values())
        assert report["published_on_replay"] == due, (report, due)


if __name__ == "__main__":
    cases.main(globals())
