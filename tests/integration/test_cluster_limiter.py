#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-limiter on real servers: what it judges, what may befall it, how it starts and ends.

Each test gives the same frames to two topics; one of them is judged by one undisturbed limiter (support/limiters.py).
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, traffic
from support.limiters import EVENTS, PARTITIONS, ZONES, Stage, compare
from support.place import PATIENCE_S, free_port
from support.roles import Roles


def test_one_limiter_judges_everything(place):
    """From the start to the pages and a good end."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(400)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        limiter.until(lambda: limiter.value("weir_limiter_lag_messages") == 0, "no lag is shown")
        assert limiter.value("weir_limiter_events_total") == 400 * EVENTS
        assert limiter.value("weir_limiter_verdicts_total", zone="site") == 400 * EVENTS
        limiter.until(lambda: limiter.value("weir_limiter_partitions_taken_total")
                      == PARTITIONS + limiter.value("weir_limiter_moves_total"), "each is taken once, and at each move")
        assert limiter.page("/healthz")[0] == 200
        begun = time.monotonic()
        assert limiter.stop() == 0
        assert time.monotonic() - begun < PATIENCE_S
        compare(place, stage)


# ---- trouble ----

def test_a_store_that_is_cut_off_stops_only_checkpoints(place):
    """Verdicts go on; checkpoints when it is back."""
    with cluster.shared() as servers, servers.proxied_mariadb() as proxy, \
            Stage(place, "stage", servers, store={"host": "127.0.0.1", "port": proxy.port}) as stage:
        stage.feed(400)
        # One thread: a partition that is on its way to another when the store goes has to wait for it.
        limiter = stage.limiter("one", limiter={"threads": 1}).until_ready()
        stage.until_stored(limiter)
        proxy.cut()
        before = limiter.value("weir_limiter_events_total")
        stage.feed(400)
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == before + 400 * EVENTS, "judges on")
        limiter.until_says("Retrying every second")
        assert stage.stored() != stage.ends()
        proxy.mend()
        stage.until_stored(limiter)
        assert limiter.page("/healthz")[0] == 200
        assert limiter.stop() == 0
        compare(place, stage)


def test_what_the_topic_keeps_decides_how_long_the_store_may_be_away(place):
    """Half of it: the log behind the checkpoints must not go, whatever bus.retention says."""
    with cluster.shared() as servers, servers.proxied_mariadb() as proxy, \
            Stage(place, "stage", servers, store={"host": "127.0.0.1", "port": proxy.port}) as stage:
        stage.feed(80)
        servers.kafka.change_settings(servers.topic("events"), retention_ms=20000)
        limiter = stage.limiter("one", limiter={"threads": 1}).until_ready()
        stage.until_stored(limiter)
        proxy.cut()
        begun = time.monotonic()
        while "(8 of 8): no checkpoint has been stored for 10 s, half of how long" not in limiter.said():
            assert time.monotonic() - begun < 2 * PATIENCE_S, "goes on judging"
            stage.feed(8)
            time.sleep(0.2)  # the clock is what has to go on
        assert time.monotonic() - begun > 9
        stage.feed(400)  # enough decisions to compare, however few frames the loop had time for
        limiter.until(lambda: limiter.value("weir_limiter_lag_messages") >= 8, "messages wait")
        told = [line for line in limiter.said().splitlines() if " are paused " in line]
        # One line, however many partitions; a second one where their checkpoints were apart.
        assert 1 <= len(told) <= 2 and all(line.split()[1] == "ERROR" for line in told), told
        assert "Nothing is judged in them" in told[-1] and "Mend the store: " in told[-1], told
        assert "(runbook: store-away)" in told[-1], told
        proxy.mend()
        stage.until_stored(limiter)
        limiter.until_says("are no longer paused")
        assert limiter.said().count("no longer paused") <= 2, limiter.said()
        assert limiter.stop() == 0
        compare(place, stage)


def test_a_gap_in_the_log_stops_its_partition(place):
    """It names the way out; the other partitions go on."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(80)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        assert limiter.stop() == 0
        stage.feed(80)
        gap = stage.stored()[3] + 2
        servers.kafka.trim(servers.topic("events"), {3: gap})
        limiter.start()
        ends = stage.ends()
        limiter.until(lambda: {number: last for number, last in stage.stored().items() if number != 3}
                      == {number: last for number, last in ends.items() if number != 3}, "the others go on")
        limiter.until(lambda: limiter.page("/healthz")[0] == 503, "is not well")
        assert "partition 3 is stopped" in limiter.page("/healthz")[1]
        assert "weir recover --accept-gap" in limiter.page("/healthz")[1]
        assert limiter.page("/readyz")[0] == 503
        assert limiter.value("weir_limiter_partitions", state="stuck") == 1
        limiter.until(lambda: limiter.value("weir_limiter_lag_messages") == ends[3] - stage.stored()[3], "is behind")
        limiter.until_says("ERROR limiter: partition 3 is stopped (1 of ")
        assert ".events (offsets " in limiter.said() and "(runbook: gap)" in limiter.said(), limiter.said()
        assert limiter.stop() == 0


def test_what_is_no_frame_is_kept_in_the_dead_letters(place):
    """Garbage, a cut frame and an empty message."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(80)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        servers.kafka.produce(servers.topic("events"), [(None, b"garbage \xff", 2), (b"key", b"wF\x01", 2),
                                                        (None, b"", 2)])
        stage.feed(80)
        stage.until_stored(limiter)
        assert limiter.value("weir_limiter_malformed_frames_total") == 3
        assert limiter.value("weir_limiter_events_total") == 160 * EVENTS
        letters = servers.kafka.consume(servers.topic("deadletter"))
        assert len(letters) == 3 and all(b'"partition":2' in letter.value for letter in letters), letters
        assert limiter.stop() == 0


# ---- starting and ending ----

def test_it_says_what_hinders_a_start(place):
    """--check and the exit codes."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(8)

        def check(**sections):
            limiter = stage.limiter(f"check-{len(stage.roles.all)}", arguments=["--check"], **sections)
            code = limiter.run.wait()
            return code, limiter.run.out().decode() + limiter.run.said()

        code, said = check()
        assert code == 0 and "8 partitions" in said and "policy 1" in said, said
        code, said = check(bus={"type": "local"}, zones=ZONES)
        assert code == 2 and "kafka" in said, said
        code, said = check(bus={"partitions": 4})
        assert code == 2 and "8" in said, said
        code, said = check(store={"password": "wrong"})
        assert code == 1 and "Access denied" in said, said
        limiter = stage.limiter("real").until_ready()
        limiter.reload()
        limiter.until_says("reload")
        assert limiter.stop() == 0


def test_blocks_of_the_policy_in_force_are_held_against_the_topic(place):
    """The zones are in the store, not in the limiter's file."""
    zones = [{**ZONES[0], "block_for": "2h"}]
    with cluster.shared() as servers, Roles(place, servers, zones) as roles:
        roles.apply()
        assert roles.limiter(arguments=["--check"]).run.wait() == 0
        servers.kafka.change_settings(servers.topic("decisions"), retention_ms=3600000)
        for arguments in (["--check"], []):
            limiter = roles.limiter(arguments=arguments)
            assert limiter.run.wait() == 2, limiter.said()
            assert f"topic {servers.topic('decisions')} keeps its messages for 1h" in limiter.said(), limiter.said()
            assert "a block can last 2h" in limiter.said(), limiter.said()


def test_replicas_that_the_configuration_wants_are_missing(place):
    """Fewer than acknowledgements need is refused, fewer than are configured is said."""
    with cluster.shared() as servers, Roles(place, servers, ZONES) as roles:
        roles.apply()
        limiter = roles.limiter(arguments=["--check"], bus={"replication": 2, "min_insync": 2})
        assert limiter.run.wait() == 2 and "no message can ever be acknowledged" in limiter.said(), limiter.said()
        limiter = roles.limiter(arguments=["--check"], bus={"replication": 2, "min_insync": 1})
        assert limiter.run.wait() == 0, limiter.said()
        assert 'has replication factor 1, not the 2 of "bus.replication"' in limiter.said(), limiter.said()


def test_a_topic_that_cannot_be_made_is_told_apart_from_the_brokers(place):
    """More replicas than there are brokers: the brokers answer, and every role waits for the topics."""
    with cluster.shared() as servers, Roles(place, servers, ZONES, bus={"replication": 3, "min_insync": 1},
                                            archiver={"enabled": True}) as roles:
        waiting = [roles.limiter(), roles.archiver(), roles.collector([traffic.source(place.write("log", ""))])]
        for role in waiting:
            role.until(lambda role=role: 'cannot be created with "bus.replication" 3' in (role.page("/readyz") or (0, ""))[1],
                       "says what it waits for")
            assert role.page("/readyz")[0] == 503 and role.page("/healthz")[0] == 200
            assert role.value("weir_bus_up") == 1, role.page("/metrics")
            assert role.metrics().value("weir_topic_up", topic=servers.topic("events")) == 0
        for role in waiting:
            assert role.stop() == 0, role.said()


def test_a_partition_that_is_given_and_not_judged_grows_old(place):
    """Without a policy none is; from the first one on all are."""
    with cluster.shared() as servers, Roles(place, servers, ZONES) as roles:
        limiter = roles.limiter().until_up()
        limiter.until(lambda: limiter.value("weir_limiter_not_live_seconds") > 2, "says for how long nothing is judged")
        roles.apply()
        limiter.until_ready().until(lambda: limiter.value("weir_limiter_not_live_seconds") == 0, "has all of them")
        assert limiter.stop() == 0


def test_a_reload_changes_what_the_bus_says(place):
    """log.level is all threads'."""
    with cluster.shared() as servers, Roles(place, servers, ZONES) as roles:
        roles.apply()
        limiter = roles.limiter(log={"level": "error"}).until_ready()
        with open(limiter.config, encoding="utf-8") as file:
            sections = json.load(file)
        asked = {"listen": {**sections.get("listen", {}), "resp": f"127.0.0.1:{free_port()}"},
                 "checks": {"password": {"file": place.path("no.word")}}}
        place.write(os.path.basename(limiter.config), json.dumps({**sections, **asked}))
        limiter.reload()
        limiter.until_says("no.word")  # what a start would refuse is refused here
        place.write(os.path.basename(limiter.config), json.dumps({**sections, "log": {"level": "info"}}))
        limiter.reload()
        limiter.until_says("configuration reloaded")
        assert "the consumer group assigned" not in limiter.said()
        other = roles.limiter().until_ready()
        limiter.until_says("the consumer group assigned")
        assert other.stop() == 0 and limiter.stop() == 0


def test_a_reload_reaches_what_librdkafka_says(place):
    """Its lines come from its own threads, at debug."""
    with cluster.shared() as servers, Roles(place, servers, ZONES) as roles:
        roles.apply()
        limiter = roles.limiter(log={"level": "info"}, bus={"kafka": {**servers.kafka_properties, "debug": "metadata"}})
        limiter.until_ready()
        assert "librdkafka: " not in limiter.said()
        with open(limiter.config, encoding="utf-8") as file:
            sections = json.load(file)
        place.write(os.path.basename(limiter.config), json.dumps({**sections, "log": {"level": "debug"}}))
        limiter.reload()
        limiter.until_says("DEBUG bus: librdkafka: ")
        assert limiter.stop() == 0


def test_a_check_changes_nothing(place):
    """What a start would make is named, and not made."""
    with cluster.shared() as servers, Roles(place, servers) as roles:
        def check():
            limiter = roles.limiter(arguments=["--check"])
            assert limiter.run.wait() == 0, limiter.run.said()
            return limiter.run.out().decode()

        databases = f"SELECT count(*) FROM information_schema.schemata WHERE schema_name = '{servers.database}'"
        said = check()
        assert f"would create {servers.topic('events')}, " in said and f'create database "{servers.database}"' in said, said
        assert not [name for name in servers.kafka.topics() if name.startswith(servers.prefix)]
        assert servers.mariadb_server.one(databases) == 0
        servers.mariadb_server.query(f"CREATE DATABASE `{servers.database}`")
        assert "create the tables of " in check() and not servers.mariadb.tables()
        roles.apply(ZONES)
        said = check()
        assert "exist" in said and "policy 1 is in force" in said and "create" not in said, said
        assert servers.mariadb.one("SELECT count(*) FROM note WHERE name = 'partitions'") == 0


def test_it_ends_while_it_waits_for_its_servers(place):
    """SIGTERM before there is anything to stop."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        limiter = stage.limiter("early", store={"host": "127.0.0.1", "port": 1})
        limiter.until_says("Retrying every second")
        assert limiter.page("/healthz")[0] == 200 and limiter.page("/readyz")[0] == 503
        assert limiter.stop() == 0


if __name__ == "__main__":
    cases.main(globals())
