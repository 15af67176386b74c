#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-archiver on real servers: what --check says, and what it does when its configuration is read again."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, frames, metrics, traffic
from support.place import free_port
from support.roles import Roles, program

PARTITIONS = 4


def roles_of(place, one):
    """The daemons, and what is in their configurations."""
    return Roles(place, one, traffic.site(), bus={"partitions": PARTITIONS},
                 archiver={"enabled": True, "interval": "100ms"})


def test_a_check_says_what_a_start_would_meet(place):
    """And makes nothing."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        def check(**sections):
            config = place.write("check.json", json.dumps(roles.sections(**sections)))
            done = place.run("--config", config, "--check", "--state", place.path("nowhere"),
                             program=program(place, "weir-archiver"))
            assert not os.path.exists(place.path("nowhere"))
            return done.code(), done.said() + done.out().decode()

        code, said = check()
        assert code == 0 and "starting would create" in said and f'database "{one.database}"' in said, said
        assert not [name for name in one.kafka.topics() if name.startswith(f"{one.prefix}.")]
        schemata = f"SELECT count(*) FROM information_schema.schemata WHERE schema_name = '{one.database}'"
        assert one.mariadb_server.one(schemata) == 0
        roles.apply()
        archiver = roles.archiver().until_ready()
        code, said = check()
        assert code == 0 and f'database "{one.database}" exists' in said and "would create" not in said, said
        # One that works is not disturbed by it.
        assert archiver.is_ready() and archiver.stop() == 0
        nobody = f"127.0.0.1:{free_port()}"
        for expected, words, sections in (
                (1, "Access denied", {"store": {"password": "wrong"}}),
                (2, f"{PARTITIONS} partitions", {"bus": {"partitions": 8}}),
                (1, nobody, {"bus": {"brokers": nobody}}),
                (2, "kafka", {"bus": {"type": "local"}, "zones": roles.zones}),
                (2, "no.such", {"archiver": {"hash_keys": place.path("no.such")}})):
            code, said = check(**sections)
            assert code == expected and words in said, (sections, code, said)


def test_its_api_says_how_far_it_is_behind(place):
    """The System view goes by these."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        roles.apply()
        port = free_port()
        archiver = roles.archiver(archiver={"enabled": True, "interval": "100ms", "api": f"127.0.0.1:{port}"}).until_ready()

        def figures():
            answer = metrics.get(port, "/api/v1/status")
            return json.loads(answer[2])["figures"] if answer else {}

        idle = {f"weir_archiver_{name}": 0 for name in ("lag_messages", "lag_seconds", "waiting_seconds", "partitions_stuck")}
        archiver.until(lambda: idle.items() <= figures().items(), "knows that it is not behind")
        assert archiver.stop() == 0


def test_a_reload_changes_the_log_level_and_says_what_waits(place):
    """It counts on meanwhile."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        roles.apply()
        log = place.write("log", traffic.burst("ann", 5))
        limiter = roles.limiter().until_ready()
        archiver = roles.archiver().until_ready()
        collector = roles.collector([traffic.source(log)])
        counted = "SELECT coalesce(sum(passed + blocked), 0) FROM count_hourly"
        archiver.until(lambda: one.mariadb.one(counted) == 5, "has counted")
        with open(archiver.config, encoding="utf-8") as file:
            sections = json.load(file)

        def rewrite(cut=None):
            place.write(os.path.basename(archiver.config), json.dumps(sections)[:cut])
            archiver.reload()

        interval = sections["archiver"]["interval"]
        sections["archiver"]["interval"] = "1h"
        rewrite()
        archiver.until_says('"archiver": changed; takes effect at a restart')
        rewrite(cut=-5)
        archiver.until_says("The previous configuration stays in use")
        # what a start would refuse is refused here
        for about in ({"hash_keys": place.path("no.hash")}, {"api": "127.0.0.1:0", "tokens": [{"file": place.path("no.token")}]}):
            place.write(os.path.basename(archiver.config), json.dumps({**sections, "archiver": {"enabled": True, **about}}))
            archiver.reload()
            archiver.until_says("no.token" if "api" in about else "no.hash")
        sections["archiver"]["interval"], sections["log"] = interval, {"level": "error"}
        rewrite()
        archiver.until_says("configuration reloaded")
        place.append("log", traffic.burst("bob", 4))
        archiver.until(lambda: one.mariadb.one(counted) == 9, "counts on as often as before")
        assert archiver.stop() == 0 and limiter.stop() == 0 and collector.stop() == 0
        assert "INFO" not in archiver.said().split("configuration reloaded", 1)[1], archiver.said()


def test_a_store_that_is_not_there_at_the_start_or_goes_before_a_partition_is_taken(place):
    """Its page and its log say that it is away until it has answered."""
    with cluster.own(parent=place.directory) as one, roles_of(place, one) as roles:
        roles.apply()
        archiver = roles.archiver().until_ready()

        def up():
            page = archiver.metrics()
            return page.value("weir_store_up") if page else None

        for away_at_start in (True, False):
            archiver.kill()  # so that the group gives its partitions again only after seconds
            if away_at_start:
                one.part("stop", "mariadb")
            archiver.start()
            if not away_at_start:
                archiver.until(lambda: up() == 1, "has opened its store")
                one.part("stop", "mariadb")
            archiver.until(lambda: up() == 0, "misses its store")
            ends = time.monotonic() + 3
            while time.monotonic() < ends:
                assert up() == 0, archiver.run.said()
                time.sleep(0.1)
            assert not archiver.is_ready() and archiver.page("/healthz")[0] == 200
            assert "recovered after" not in archiver.run.said(), archiver.run.said()
            assert archiver.run.said().count("the store is not there yet") == away_at_start, archiver.run.said()
            one.part("start", "mariadb")
            archiver.until_ready()
            archiver.until(lambda: up() == 1, "has its store")
            recovered = [line for line in archiver.run.said().splitlines() if "recovered after" in line and "shadow:" not in line]
            assert len(recovered) == 1, archiver.run.said()


def test_a_judged_frame_of_no_record_is_foreign(place):
    """Well-formed, and of a number that topic events does not have: all later frames would be taken for repeated ones."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        roles.apply()
        log = place.write("log", traffic.burst("ann", 5))
        roles.limiter().until_ready()
        archiver = roles.archiver().until_ready()
        roles.collector([traffic.source(log)])
        counted = "SELECT coalesce(sum(passed + blocked), 0) FROM count_hourly"
        archiver.until(lambda: one.mariadb.one(counted) == 5, "has counted")
        now = int(1000 * time.time())
        events = frames.events(now, b"f" * 16, 1, [{"key": b"forged", "time": now, "cost": 1, "position": 7, "zones": [(1, False)]}])
        one.kafka.produce(one.topic("judged"), [(None, frames.judged(events, number, [0]), partition)
                                                for partition in range(PARTITIONS) for number in (1 << 40, 100000)])
        archiver.until(lambda: archiver.value("weir_archiver_malformed_total") == 2 * PARTITIONS, "passes over them")
        archiver.until_says("which topic events does not have")
        place.append("log", traffic.burst("ann", 4) + traffic.burst("bob", 3))
        archiver.until(lambda: one.mariadb.one(counted) == 12, "counts what comes after")
        assert archiver.value("weir_archiver_repeated_frames_total") == 0


def test_a_limiter_that_publishes_nothing_for_the_archive_is_told(place):
    """By the archiver, its metric and doctor; it ends when that limiter has the setting of the others."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        roles.apply()
        limiter = roles.limiter(archiver={"enabled": False}).until_ready()
        archiver = roles.archiver().until_ready()
        stuck = lambda: archiver.value("weir_archiver_partitions_stuck")
        archiver.until(lambda: stuck() == PARTITIONS, "counts them")
        archiver.until_says("are not archived whole")
        config = place.write("admin.json", json.dumps(roles.sections(zones=traffic.site(), sources=[])))
        doctor = lambda: place.run("doctor", "--config", config)
        said = doctor()
        assert said.code() == 1 and f"{PARTITIONS} of {PARTITIONS} partitions are not archived whole" in said.out().decode(), said.out()
        assert limiter.stop() == 0
        roles.limiter().until_ready()
        archiver.until(lambda: stuck() == 0, "they are archived")
        assert "not archived whole" not in doctor().out().decode()


if __name__ == "__main__":
    cases.main(globals())
