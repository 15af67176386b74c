#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decisions as events on a real cluster: read from Kafka by two collectors, one killed, and counted once each."""

import json
import os
import random
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
import test_decisions_source as local
from support import cases, cluster, traffic
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

PARTITIONS = 4
ZONES = [zone("site", [sliding(5, "1s")], id=1), zone("slow", [sliding(20, "1m")], id=2)]
ABOVE = [local.again("often", 3, "1m", ["site", "slow"], id=3, block_for=["10s", "1m"], forgive_after="2m"),
         local.again("ever", 2, "1h", ["often"], id=4)]


def published(one):
    """The decisions of the topic, each once."""
    decisions = {}
    for message in one.kafka.consume(one.topic("decisions")):
        decision = json.loads(message.value)
        assert decisions.setdefault(decision["id"], decision) == decision
    return list(decisions.values())


def test_blocks_are_counted_once_by_however_many_collectors(place):
    rng = random.Random(17)
    lines = traffic.crowd(rng, 6000, 100, disorder=0)
    sources = [source(place.write("log", b"".join(lines))), local.DECISIONS]
    wanted = local.expected({"sources": sources}, ZONES, ABOVE)
    assert {name for name, _ in wanted} >= {"site", "often"}, wanted
    total = sum(map(len, wanted.values()))
    place.write("log", b"")
    with cluster.shared() as one, Roles(place, one, ZONES + ABOVE, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        limiter = roles.limiter().until_ready()
        reader = roles.collector(sources)
        roles.collector([local.DECISIONS])  # one that reads decisions alone
        place.append("log", b"".join(lines[:3000]))
        limiter.until(lambda: len(published(one)) > 20, "some decisions")
        reader.kill()
        limiter.kill()
        place.append("log", b"".join(lines[3000:]))
        reader.start()
        limiter.start()
        limiter.until(lambda: len(published(one)) >= total, f"{total} decisions")
        place.append("log", burst("last", 6, traffic.START_MS + 10 ** 9))
        limiter.until(lambda: any(decision["key"] == ["last"] for decision in published(one)), "the last one")
        found = traffic.by_bucket(decision for decision in published(one) if decision["key"] != ["last"])
        for bucket in sorted(set(found) | set(wanted)):
            assert found.get(bucket) == wanted.get(bucket), (bucket, found.get(bucket), wanted.get(bucket))
        # What both send has one identity by design: nobody is told that a state directory was copied.
        limiter.until(lambda: limiter.value("weir_limiter_repeated_events_total") > 0, "drops what the second one sends")
        assert limiter.value("weir_limiter_shared_source_frames_total") == 0


def test_a_policy_with_a_circle_is_refused(place):
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}) as roles:
        circle = ZONES + [local.again("often", 1, "1d", ["of*"], id=3)]
        config = place.write("circle.json", json.dumps(roles.sections(zones=circle)))
        done = place.run("policy", "apply", "--config", config)
        assert done.code() == 2 and '"often" counts "often"' in done.said(), done.said()


if __name__ == "__main__":
    cases.main(globals())
