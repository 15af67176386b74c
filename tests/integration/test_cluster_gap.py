#!/usr/bin/env python3
"""A partition whose log was trimmed behind its checkpoint, and weir recover."""

import json
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cluster_check import caught_up
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE, USAGE = 0, 2
PARTITIONS = 4


def zones(rate=3):
    """Two keys."""
    return [zone("site", [sliding(rate, "1h")], id=1), zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2)]


def test_a_gap_is_accepted_by_word_alone(place):
    """A log trimmed behind the checkpoint: the partition stands and says so, recover says what is lost, then goes on."""
    with cluster.own(parent=place.directory) as one, \
            Roles(place, one, zones(), bus={"partitions": 2}, limiter={"checkpoint_interval": "200ms"}) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5))
        limiter = roles.limiter().until_ready()
        collector = roles.collector([source(log)])
        caught_up(one, roles, 1)
        (partition,) = {m.partition for m in one.kafka.consume(one.topic("decisions"))}
        assert limiter.stop() == DONE
        config = place.write("recover.json", json.dumps(roles.sections()))

        def recover(*words):
            return place.run("recover", "--accept-gap", "--config", config, "--partition", str(partition), *words)

        fine = recover()
        assert fine.code() == DONE and "no gap" in fine.out().decode(), (fine.out(), fine.said())
        roles.order("block", "--zone", "site", "ann")
        place.append("log", burst("ann", 2))
        roles.apply(zones(2))
        collector.until(lambda: collector.value("weir_source_lag_bytes") == 0, "has read its log")
        _, end = one.kafka.extents(one.topic("events"))[partition]
        one.kafka.trim(one.topic("events"), {partition: end})
        limiter.start()
        limiter.until_says("weir recover --accept-gap")
        said = recover()
        assert said.code() == USAGE and "messages are lost" in said.out().decode() and "--yes" in said.said(), (
            said.out(), said.said())
        done = recover("--yes")
        assert done.code() == DONE and f"goes on at offset {end}" in done.out().decode(), (done.out(), done.said())
        roles.order("lift", "--zone", "site", "ann")
        place.append("log", burst("ann", 4))
        until(lambda: any(json.loads(m.value).get("limit", {}).get("rate") == 2
                          for m in one.kafka.consume(one.topic("decisions"))),
              "ann is blocked by the policy that was lost and given again", 240, limiter.run)
        again = recover("--yes")
        assert again.code() == DONE and "no gap" in again.out().decode(), again.out()


if __name__ == "__main__":
    cases.main(globals())
