#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-collector without its brokers: it waits in bounded memory, and every line arrives once when they are back."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.numbered import LONG_S, Arrived, Log, Writer, zones
from support.roles import Roles

PARTITIONS = 4
MIB = 1 << 20


def test_brokers_that_stop_and_start_cost_nothing(place):
    log = Log(place)
    with cluster.own(parent=place.directory) as one, Roles(place, one, zones("a"),
                                                           bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([log.source()]).until_ready()
        arrived = Arrived(one)
        for action in ("stop", "kill"):
            with Writer(log, lines=1000):
                seen = collector.value("weir_collector_lines_total")
                collector.until(lambda before=seen: collector.value("weir_collector_lines_total") > before, "reads")
                one.part(action, "kafka")
                collector.until(lambda: not collector.is_ready(), "is not ready")
            assert collector.page("/healthz")[0] == 200
            if action == "stop":
                fill_what_may_be_in_flight(log, collector)
            one.part("start", "kafka")
            arrived.await_all(log, collector)
            collector.until_ready()
        assert collector.stop() == 0, collector.said()


def fill_what_may_be_in_flight(log, collector):
    """It must stop reading then, and take no memory for what it has not read."""
    held = collector.run.peak_bytes()
    while log.bytes < 40 * MIB:
        log.feed(1000, pad="x" * 900)
    collector.until(lambda: collector.value("weir_collector_low_water_age_seconds") > 3, "its marks grow old")
    collector.until(lambda: is_at_rest(collector), "reads no more")
    assert collector.value("weir_source_lag_bytes") > MIB
    assert collector.run.peak_bytes() < held + 100 * MIB, (held, collector.run.peak_bytes())


def is_at_rest(collector):
    """Whether it stands where it stood at the look before."""
    page = collector.metrics()
    position = page.sum("weir_source_position")
    rests = getattr(collector, "position", None) == position
    collector.position = position
    return rests


def test_a_stop_without_brokers_is_bounded_and_the_next_start_sends_the_rest(place):
    log = Log(place)
    with cluster.own(parent=place.directory) as one, Roles(place, one, zones("a"),
                                                           bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([log.source()]).until_ready()
        arrived = Arrived(one)
        log.feed(1000)
        arrived.await_all(log, collector)
        one.part("kill", "kafka")
        log.feed(5000)
        collector.until(lambda: collector.value("weir_collector_lines_total") == 6000, "reads")
        assert collector.stop(40 + LONG_S) == 0, collector.said()
        assert "has not acknowledged everything in time" in collector.run.said()
        # It may be started before the brokers are: it waits, and says so.
        collector.start()
        collector.until(lambda: collector.page("/readyz") == (503, "the brokers have not answered yet\n"), "waits")
        one.part("start", "kafka")
        arrived.await_all(log, collector)
        assert collector.stop() == 0, collector.said()


if __name__ == "__main__":
    cases.main(globals())
