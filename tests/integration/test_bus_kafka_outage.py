#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A broker paused, killed, stopped and started again under load: nothing that was reported delivered is lost or doubled.

Each partition of a fresh topic gets the numbers 0, 1, 2, …, so a number that is not its own offset is a loss or a
double (bus_kafka_load.c). A second process reads all of it meanwhile, pausing and going back at random.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.bus_driver import BUSY_S, HASTY, PARTITIONS, Driver, config, flows, load, stands, told
from support.place import until
from support.roles import Roles
from support.traffic import sliding, zone


def troubles(said):
    """The lines of each trouble of the bus up to its end, and what has come since."""
    found = [[]]
    for line in said.splitlines():
        if "WARNING bus: " in line:
            found[-1].append(line)
        elif "INFO bus: recovered after" in line:
            found.append([])
    return found


def told_once(said):
    """A broker that is slow by itself, as on a busy machine, is a trouble too; but none is told twice before its end."""
    for lines in troubles(said):
        for words in ("no broker of ", "has no leader"):
            assert sum(words in line for line in lines) <= 1, "\n".join(lines)


def test_paused_killed_and_stopped_brokers(place):
    with cluster.own(parent=place.directory) as one:
        path = config(place, one, partitions=PARTITIONS, kafka={**one.kafka_properties, **HASTY})
        with load(place, one, path) as sender:
            for number, (down, back, rest_s) in enumerate((
                    ("pause", "resume", 1), ("kill", "start", 0), ("pause", "resume", 8), ("stop", "start", 3))):
                one.part(down, "kafka")
                stands(sender)
                if rest_s > 1:
                    told(sender)
                time.sleep(rest_s)
                one.part(back, "kafka")
                flows(sender, f"load flows after {down} number {number}")
            until(lambda: not troubles(sender.said())[-1], "its end is said", BUSY_S)
            told_once(sender.said())


def test_what_hinders_is_told_and_calls_end_in_time(place):
    with cluster.own(parent=place.directory) as one:
        path = config(place, one, partitions=PARTITIONS,
                      kafka={**one.kafka_properties, **HASTY, "session.timeout.ms": 6000})
        with Driver(place, path) as bus:
            bus.good("new_producer", 0)
            bus.good("send", 0, "events", 0, "-", "before", 0)
            bus.deliveries(0, 1)
            bus.good("new_consumer", 0, "events")
            bus.good("assign", 0, 0, 0)
            bus.receive(0, 1)
            bus.good("join", "limiter")
            until(lambda: bus.good("group", 100)["generation"] == 1, "the group speaks", BUSY_S)
            one.part("kill", "kafka")
            until(lambda: bus.good("problem")["problem"], "the problem is told", BUSY_S)
            assert "no broker of 127.0.0.1" in bus.good("problem")["text"]
            group = bus("group", 100)
            assert group["status"] == "IO" and "no broker" in group["words"], group
            bus.good("send", 0, "events", 0, "-", "meanwhile", 1)
            assert bus.good("poll", 0, 10, 500)["deliveries"] == []
            answer = bus("receive", 0, 10, 500)
            assert answer["status"] in ("OK", "IO") and answer["messages"] == []
            began = time.monotonic()
            assert bus("extent", "events", 0)["status"] == "IO"
            bus.good("assign", 0, 1, 0)
            assert time.monotonic() - began < BUSY_S
            until(lambda: bus("group", 100)["generation"] == 0, "the membership is lost", BUSY_S)
            one.part("start", "kafka")
            assert bus.deliveries(0, 1)[0]["status"] == "OK"
            assert bus.receive(0, 1)[0]["payload"] == "meanwhile"
            until(lambda: not bus.good("problem")["problem"], "the problem is over", BUSY_S)
            until(lambda: bus("group", 100)["generation"] > 1, "the group speaks again", BUSY_S)
            assert bus.good("group", 0)["owned"] == list(range(PARTITIONS))
            # A process ends while no broker answers.
            one.part("kill", "kafka")
            bus.good("send", 0, "events", 0, "-", "never", 2)
            began = time.monotonic()
            bus.end()
            assert time.monotonic() - began < BUSY_S


def test_a_limiter_tells_an_outage_once(place):
    """By the bus; what else meets it is silent, also where retention has deleted what was read last."""
    with cluster.own(parent=place.directory) as one, \
            Roles(place, one, [zone("site", [sliding(3, "1m")], id=1)],
                  limiter={"checkpoint_interval": "200ms"}) as roles:
        roles.apply()
        roles.apply([zone("site", [sliding(4, "1m")], id=1)])
        limiter = roles.limiter().until_ready()
        ends = one.ends()
        limiter.until(lambda: one.stored() == ends, "has judged all")
        # Past the message that was read last, at it and up to the one before it.
        one.kafka.trim(one.topic("events"), {0: ends[0], 1: ends[1] - 1, 2: ends[2] - 2})
        begun = len(limiter.said())
        one.part("stop", "kafka")  # in order: one that is killed has the deleted messages again
        limiter.until_says("WARNING bus: no broker of ")
        time.sleep(10)  # so long it lasts
        one.part("start", "kafka")
        limiter.until_says("INFO bus: recovered after")
        limiter.until_ready()
        time.sleep(3)  # the bus is asked each second whether it must be verified again
        lines = limiter.said()[begun:].splitlines()
        assert not any(words in line for line in lines for words in ("was recreated", "cannot read", "out of range")), lines
        assert limiter.value("weir_limiter_partitions", state="live") == len(ends)
        outage = lines[:next(at for at, line in enumerate(lines) if "INFO bus: recovered after" in line)]
        assert not any("WARNING group: " in line for line in outage), "\n".join(lines)
        told_once("\n".join(lines))
        assert limiter.stop() == 0


if __name__ == "__main__":
    cases.main(globals())
