#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A partition whose log was trimmed behind its checkpoint, or before it was archived, and weir recover."""

import json
import os
import re
import shlex
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, frames
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
        roles.override("block", "--zone", "site", "ann")
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
        printed = re.search(r"`weir (recover [^`]*)`", limiter.said()).group(1)
        done = place.run(*shlex.split(printed))  # as it is printed
        assert done.code() == DONE and f"continues at offset {end}" in done.out().decode(), (done.out(), done.said())
        roles.override("lift", "--zone", "site", "ann")
        place.append("log", burst("ann", 4))
        until(lambda: any(json.loads(m.value).get("limit", {}).get("rate") == 2
                          for m in one.kafka.consume(one.topic("decisions"))),
              "ann is blocked by the policy that was lost and given again", 240, limiter.run)
        again = recover("--yes")
        assert again.code() == DONE and "no gap" in again.out().decode(), again.out()


def test_what_was_judged_before_a_gap_counts_behind_it(place):
    """A log trimmed under a limiter at work, which has stored nothing of what it judged there so far."""
    with cluster.own(parent=place.directory) as one, \
            Roles(place, one, zones(), bus={"partitions": 1}, limiter={"checkpoint_interval": "1h"}) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 2))
        limiter = roles.limiter().until_ready()
        collector = roles.collector([source(log)])
        limiter.until(lambda: limiter.value("weir_limiter_verdicts_total", zone="site") == 2, "judges two")
        limiter.run.pause()
        time.sleep(2)  # what it has asked the broker for is answered by then, with nothing
        place.append("log", burst("ann", 5))
        collector.until(lambda: collector.value("weir_source_lag_bytes") == 0, "has read its log")
        _, end = one.kafka.extents(one.topic("events"))[0]
        one.kafka.trim(one.topic("events"), {0: end})
        limiter.run.resume()
        limiter.until_says("weir recover --accept-gap")
        limiter.until(lambda: limiter.value("weir_limiter_partitions", state="stuck") == 1, "has stored what it judged")
        config = place.write("recover.json", json.dumps(roles.sections()))
        done = place.run("recover", "--accept-gap", "--config", config, "--partition", "0", "--yes")
        assert f"continues at offset {end}" in done.out().decode(), (done.out(), done.said())
        place.append("log", burst("ann", 2))
        until(lambda: [json.loads(m.value)["key"] for m in one.kafka.consume(one.topic("decisions"))] == [["ann"]],
              "the fourth that is left is one too many", 240, limiter.run)
        assert limiter.value("weir_limiter_verdicts_total", zone="site") == 4
        assert collector.stop() == DONE and limiter.stop() == DONE


def lag_of(archiver):
    """What it shows of its lag: (messages, seconds), None where there is no sample."""
    page = archiver.metrics()
    return tuple(page and page.value(f"weir_archiver_lag_{unit}") for unit in ("messages", "seconds"))


def archived(one):
    """How many requests the archive has."""
    return int(one.mariadb.one("SELECT coalesce(sum(total), 0) FROM hourly WHERE zone = 'site'"))


def judged(one):
    """How many events the topic judged has."""
    return sum(len(frames.decode(message.value).events) for message in one.kafka.consume(one.topic("judged")))


def test_a_gap_of_the_archive_is_accepted_by_word_alone(place):
    """Archivers were away while the topics lost something: they stand, recover says what is missing, then they go on."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": 2},
                                        archiver={"enabled": True, "interval": "100ms"}) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5))
        limiter, archiver = roles.limiter().until_ready(), roles.archiver().until_ready()
        collector = roles.collector([source(log)])
        archiver.until(lambda: archived(one) == 5, "all is archived")
        archiver.until(lambda: lag_of(archiver) == (0, 0), "knows that it is not behind")
        (partition,) = {m.partition for m in one.kafka.consume(one.topic("decisions"))}
        assert archiver.stop() == DONE
        place.append("log", burst("ann", 70))
        limiter.until(lambda: judged(one) == 75, "more is judged")
        _, end = one.kafka.extents(one.topic("judged"))[partition]
        one.kafka.trim(one.topic("judged"), {partition: end})
        archiver.start()
        archiver.until_says("weir recover --accept-gap")
        archiver.until(lambda: archiver.value("weir_archiver_partitions_stuck") == 1, "shows it")
        assert archiver.page("/healthz")[0] == 503
        config = place.write("recover.json", json.dumps(roles.sections()))
        words = ("recover", "--accept-gap", "--config", config, "--all")
        said = place.run(*words)
        assert said.code() == USAGE and "are missing from the archive" in said.out().decode(), (said.out(), said.said())
        assert "--yes" in said.said() and "no gap: the checkpoint" in said.out().decode(), (said.out(), said.said())
        done = place.run(*words, "--yes")
        assert done.code() == DONE and f"continues at offset {end} of judged" in done.out().decode(), (
            done.out(), done.said())
        archiver.until(lambda: archiver.value("weir_archiver_partitions_stuck") == 0, "goes on by itself")
        place.append("log", burst("ann", 3))
        archiver.until(lambda: archived(one) == 8, "what came behind the gap is archived")
        again = place.run(*words, "--yes")
        assert again.code() == DONE and "archive: no gap" in again.out().decode(), again.out()
        for role in (collector, limiter, archiver):
            assert role.stop() == DONE, role.said()


if __name__ == "__main__":
    cases.main(globals())
