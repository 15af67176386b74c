#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir state --config`: what the limiters of a cluster keep, as the oracle has it; beside them while they work."""

import json
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, frames, work
from support.cluster_check import Check
from support.place import PATIENCE_S
from support.roles import Roles
from support.traffic import fixed, sliding, zone

ZONES = [
    zone("site", [sliding(3, "10s"), fixed(50, "1h")], ("ip",), id=1),
    zone("trial", [sliding(5, "1m")], ("ip",), id=2, mode="shadow"),
    zone("path", [sliding(30, "1m")], ("path",), id=3, block_for="20s"),
    zone("all", [fixed(100, "1h")], (), id=4)]
LINES = 4000


def apply_by_hand(one):
    """Policy 1, as records: what this test is about needs no more of it."""
    body = json.dumps({"zones": ZONES}).encode()
    message = frames.control("policy", int(1000 * time.time()), body, 1)
    one.mariadb.query("INSERT INTO policy_version (version, text) VALUES (1, %s)", body)
    one.kafka.produce(one.topic("events"), [(None, message, number) for number in range(4)])
    one.kafka.produce(one.topic("policy"), [("1", message)])


def lag_of(limiter):
    """What it shows of its lag: (messages, seconds), None where there is no sample."""
    page = limiter.metrics()
    return tuple(page and page.value(f"weir_limiter_lag_{unit}") for unit in ("messages", "seconds"))


def test_state_of_a_cluster(place):
    with cluster.shared() as one, Roles(place, one, bus={"partitions": 4}, archiver={"enabled": True},
                                        limiter={"checkpoint_interval": "100ms"}) as roles:
        config = place.write("look.json", json.dumps(roles.sections()))
        nothing = place.run("state", "--config", config)  # nobody has worked with this store yet
        assert nothing.code() == 2 and "no policy yet" in nothing.said(), (nothing.code(), nothing.said())
        limiters = [roles.limiter(), roles.limiter()]
        limiters[0].until_says("working on topic")
        limiters[0].until(lambda: limiters[0].value("weir_limiter_working") == 1, "shows that it works")
        assert lag_of(limiters[0]) == (None, None), "no partition is live before a policy"
        apply_by_hand(one)
        for limiter in limiters:
            limiter.until(limiter.is_ready, "is ready", 4 * PATIENCE_S)
        limiters[0].until(lambda: lag_of(limiters[0]) == (0, 0), "knows its lag")
        logs = [work.generated(place, f"log-{number}", LINES, seed=number) for number in (1, 2)]
        collectors = [roles.collector([work.source(log)]) for log in logs]
        for collector in collectors:
            collector.until(lambda role=collector: role.value("weir_collector_lines_total") == LINES, "all is read")
        for _ in range(5):  # checkpoints go on meanwhile
            place.good("state", "--config", config)
        other = place.write("other.json", json.dumps(roles.sections(bus={"partitions": 8})))
        for words in (("state",), ("list",)):
            done = place.run(*words, "--config", other)
            assert done.code() != 0 and "4 partitions" in done.said(), (words, done.said())
        for role in collectors + limiters:
            assert role.stop() == 0, role.said()
        # Those who stopped have judged what was there then: the next one judges the rest.
        check = Check(one)
        last = roles.limiter().until_up()
        last.until(lambda: not check.missing_decisions() and len(one.kafka.consume(one.topic("judged"))) >= check.frames,
                   "all is judged", 4 * PATIENCE_S)
        assert last.stop() == 0
        assert check.events >= 2 * LINES and check.malformed == 0
        check.decisions()
        check.judged()
        check.state(place)
        line = json.loads(check.state_lines()[0])
        asked = place.good("state", "--config", config, "--zone", line["zone"], "--key", json.dumps(line["key"])).out()
        assert asked.splitlines() == [check.state_lines()[0]]


if __name__ == "__main__":
    cases.main(globals())
