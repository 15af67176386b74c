#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir backtest --topic`: the events of a cluster's topic, against the limiters that judged them live, and behind a gap."""

import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, traffic
from support.cluster_check import caught_up
from support.place import read
from support.roles import Roles
from support.traffic import sliding, source, zone

DONE, FAILED = 0, 1
PARTITIONS = 4
ZONES = [zone("site", [sliding(5, "1m")], id=1), zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2)]
MILD = [zone("site", [sliding(20, "1m")]), zone("pair", [sliding(9, "1h")], key=("user", "path"))]


def test_a_topic_is_judged_as_limiters_did(place):
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        log = place.write("log", b"".join(traffic.crowd(random.Random(4), 4000, 60)))
        limiter = roles.limiter().until_ready()
        collector = roles.collector([source(log)]).until_ready()
        caught_up(one, roles, 1)
        assert collector.stop() == DONE
        caught_up(one, roles, 1)
        assert limiter.stop() == DONE
        live = [json.loads(message.value) for message in one.kafka.consume(one.topic("decisions"))]
        # the same zones, whose lines are read again
        lines = dict(source(log), follow=False)
        configs = [place.write("live.json", json.dumps(roles.sections(sources=[lines], zones=ZONES))),
                   place.write("mild.json", json.dumps({"zones": MILD}))]

        def backtest(*more, code=DONE):
            done = place.run("backtest", "--config", configs[0], "--config", configs[1], "--json", place.path("r"), "--quiet",
                             *more)
            assert done.code() == code, done.said()
            return json.loads(read(place.path("r"))), done.said()
        report, _ = backtest("--topic", "..")
        wanted, _ = backtest()
        zones = {own["zone"]: own for own in report["policies"][0]["zones"]}
        for name, own in zones.items():
            assert own["decisions"] == sum(decision["zone"] == name for decision in live) > 0, name
        assert report["policies"] == wanted["policies"] and report["over_time"] == wanted["over_time"]
        now, said = backtest("--topic", "2001-01-01T00:00:00Z..2099-01-01T00:00:00Z")
        assert now["policies"] == report["policies"] and "begins at" not in said, said
        assert backtest("--topic", "2099-01-01T00:00:00Z..")[0]["events"] == 0
        check_gap(one, backtest, report)


def check_gap(one, backtest, whole):
    """Requires that a log which was trimmed is judged from where it begins, and that this is said."""
    extents = one.kafka.extents(one.topic("events"))
    partition, (first, end) = next(iter(extents.items()))
    assert first == 0 and end > 1, extents
    one.kafka.trim(one.topic("events"), {partition: end})
    report, said = backtest("--topic", "..")
    assert f"partition {partition} of the log begins at offset {end}" in said, said
    assert 0 < report["events"] < whole["events"]
    partition, (_, end) = next((number, extent) for number, extent in extents.items() if number != partition and extent[1] > 1)
    one.kafka.trim(one.topic("events"), {partition: 1})
    for words, told in (("..", True), ("2001-01-01T00:00:00Z..", True), ("2099-01-01T00:00:00Z..", False), (f"{end}..", False)):
        _, said = backtest("--topic", words)
        assert (f"partition {partition} of the log begins at offset 1" in said) == told, (words, said)


if __name__ == "__main__":
    cases.main(globals())
