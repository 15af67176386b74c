#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-collector on real Kafka: every line is on the events topic under its position, once as limiters count."""

import json
import os
import random
import re
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, traffic
from support.numbered import LONG_S, Arrived, Log, Writer, zones
from support.place import free_port, until
from support.roles import Roles, program

PARTITIONS = 4


def times_said(role, words):
    """In how many lines it said so."""
    return sum(words in line for line in role.said().splitlines())


def test_it_waits_for_a_policy_and_follows_the_newest(place):
    log = Log(place)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        collector = roles.collector([log.source()])
        log.feed(1000)
        collector.until_says("no policy yet: run `weir policy apply --config ")
        collector.until(lambda: collector.page("/readyz") is not None, "answers")
        code, said = collector.page("/readyz")
        assert code == 503 and re.fullmatch(r"no policy yet: run `weir policy apply --config \S+`\n", said), said
        assert collector.page("/healthz")[0] == 200
        assert collector.value("weir_policy_version") == 0
        assert one.kafka.count(one.topic("events")) == 0
        roles.apply()
        collector.until_ready()
        arrived = Arrived(one)
        arrived.await_all(log, collector)
        assert {frame.policy for _, frame in arrived.frames} == {1}
        assert times_said(collector, "WARNING policy: no policy yet") == 1
        with Writer(log):
            for version in range(2, 6):
                names = [f"zone-{number}" for number in range(version)]
                roles.apply(zones("a", *names[1:]))
                collector.until(lambda wanted=version: collector.value("weir_policy_version") == wanted,
                                "takes the policy")
        arrived.await_all(log, collector)
        log.feed(10)
        arrived.await_all(log, collector)
        for _, frame in arrived.frames:
            for event in frame.events:
                assert [zone for zone, _ in event["zones"]] == list(range(1, 1 + frame.policy)), frame.policy
        assert {frame.policy for _, frame in arrived.frames} == set(range(1, 6))
        assert collector.value("weir_policy_newest_version") == 5
        assert collector.stop() == 0, collector.said()


def test_a_zone_whose_fields_it_lacks_never_matches_there(place):
    log = Log(place)
    policy = zones("a") + [traffic.zone("b", [traffic.fixed(1, "1h")], key=("session",), id=2)]
    access = place.write("access.log", '192.0.2.1 - joe [21/Nov/2024:07:20:00 +0000] "GET / HTTP/1.1" 200 1\n')
    with cluster.shared() as one, Roles(place, one, policy, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([{"type": "file", "path": access, "format": "combined", "follow": True}])
        collector.until_ready()
        arrived = Arrived(one)
        collector.until(lambda: arrived.read().positions, "the line arrives")
        assert list(arrived.positions) == [b"joe"]
        assert times_said(collector, 'zone "b" never matches here') == 1, collector.said()
        # Elsewhere a JSON log may have the field.
        other = roles.collector([log.source()])
        log.feed(1, session="s1")
        other.until(lambda: b"s1" in arrived.read().positions, "the other's line arrives")
        assert "never matches" not in other.said()


def test_kills_lose_nothing_and_double_nothing(place):
    seed = int(os.environ.get("WEIR_SEED", random.randrange(1 << 31)))
    rounds = int(os.environ.get("WEIR_KILLS", 12))
    print(f"WEIR_SEED={seed} WEIR_KILLS={rounds}", flush=True)
    rng = random.Random(seed)
    log = Log(place)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([log.source()])
        arrived = Arrived(one)
        with Writer(log):
            for _ in range(rounds):
                # Mostly while it works, now and then while it starts.
                if rng.random() < 0.8:
                    before = one.kafka.count(one.topic("events"))
                    collector.until(lambda: one.kafka.count(one.topic("events")) > before, "frames arrive")
                time.sleep(rng.random() * 0.7)  # the moment is what is random
                collector.kill()
                collector.start()
        arrived.await_all(log, collector)
        assert arrived.repeated > 0, "no kill came between a frame and its low-water mark"
        assert collector.stop() == 0, collector.said()


def test_a_stop_leaves_nothing_to_send_again(place):
    log = Log(place)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([log.source()])
        arrived = Arrived(one)
        with Writer(log):
            for _ in range(4):
                before = collector.until(lambda: collector.value("weir_collector_lines_total"), "reads")
                collector.until(lambda seen=before: collector.value("weir_collector_lines_total") > seen, "reads on")
                assert collector.stop() == 0, collector.said()
                collector.start()
        arrived.await_all(log, collector)
        assert arrived.repeated == 0
        assert "WARNING" not in collector.said(), collector.said()
        assert collector.stop() == 0, collector.said()


def test_bad_lines_go_to_the_dead_letter_topic(place):
    log = Log(place)
    rng = random.Random(1)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS},
                                        deadletter={"rate": 0}) as roles:
        roles.apply()
        collector = roles.collector([log.source()])
        garbage = 0
        for number in range(20):
            log.feed(500)
            log.spoil(bytes(rng.choice(b"\x00\x01\xff{}[]\"\\abc\r\t") for _ in range(1 + rng.randrange(2000))) + b"x\n")
            log.spoil(b"x" * (10 << 20) + b"\n" if number % 5 == 0 else b'{"time":1\n')
            garbage += 2
        log.feed(500)
        Arrived(one).await_all(log, collector)
        collector.until(lambda: collector.value("weir_collector_malformed_total") == garbage, "counts all of them")
        letters = [json.loads(message.value) for message in one.kafka.consume(one.topic("deadletter"))]
        assert len(letters) == garbage
        assert all(set(letter) - {"cut"} == {"host", "source", "position", "reason", "text"} for letter in letters)
        assert {letter["reason"] for letter in letters if letter.get("cut")} >= {"line too long"}
        assert {letter["source"] for letter in letters} == {log.path}
        assert sum(letter["reason"] == "line too long" for letter in letters) == 4
        assert all(len(letter["text"]) <= 1024 for letter in letters)
        assert sorted(letter["position"] for letter in letters) == [letter["position"] for letter in letters]
        assert collector.value("weir_collector_dead_letters_total") == garbage
        assert collector.stop() == 0, collector.said()


def test_dead_letters_past_the_rate_are_only_counted(place):
    log = Log(place)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS},
                                        deadletter={"rate": 5, "max_size": "1KiB"}) as roles:
        roles.apply()
        collector = roles.collector([log.source()])
        log.spoil(b"nothing\n" * 1000)
        log.feed(100)
        Arrived(one).await_all(log, collector)
        collector.until(lambda: collector.value("weir_collector_malformed_total") == 1000, "counts all of them")
        kept = one.kafka.count(one.topic("deadletter"))
        assert 1 <= kept <= 15, kept
        assert collector.value("weir_collector_dead_letters_total") + collector.value("weir_collector_dead_letters_dropped_total") == 1000


def test_messages_that_the_brokers_refuse_for_a_while_come_once(place):
    log = Log(place)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([log.source()])
        arrived = Arrived(one)
        log.feed(1000)
        arrived.await_all(log, collector)
        with Writer(log, lines=1000):
            for _ in range(2):
                before = collector.value("weir_collector_producer_restarts_total")
                one.kafka.change_settings(one.topic("events"), max_message_bytes=500)
                collector.until(lambda seen=before: collector.value("weir_collector_producer_restarts_total") > seen + 1,
                                "makes new producers")
                one.kafka.change_settings(one.topic("events"), max_message_bytes=4 << 20)
                sent = len(log.ends)
                until(lambda wanted=sent: len(arrived.read().positions) > wanted, "goes on", LONG_S, collector.run)
        arrived.await_all(log, collector)
        assert collector.value("weir_source_lost_lines_total") == 0
        assert collector.stop() == 0, collector.said()


def test_a_check_says_what_a_start_would_meet(place):
    log = Log(place)

    def check(config):
        done = place.run("--config", config, "--check", "--state", place.path("nowhere"),
                         program=program(place, "weir-collector"))
        assert not os.path.exists(place.path("nowhere"))
        return done.code(), done.said() + done.out().decode()

    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        good = place.write("good.json", json.dumps(roles.sections(sources=[log.source()])))
        code, said = check(good)
        assert code == 1 and "no policy" in said and f"would create {one.topic('events')}, " in said, said
        assert not [name for name in one.kafka.topics() if name.startswith(one.prefix)], "a check makes nothing"
        roles.apply()
        code, said = check(good)
        assert code == 0 and "policy 1" in said, said
        for sections, words in (
                ({"sources": []}, "has no source"),
                ({"sources": [{"type": "file", "path": log.path, "format": "nonsense"}]}, "nonsense"),
                ({"zones": zones("a"), "sources": [log.source()], "bus": {"type": "local"}}, "kafka"),
                ({"sources": [log.source()], "bus": {"partitions": PARTITIONS + 1}}, "partitions"),
                ({"sources": [log.source()], "bus": {"kafka": {"no.such.property": 1}}}, "no.such.property")):
            code, said = check(place.write("bad.json", json.dumps(roles.sections(**sections))))
            assert code == 2 and words in said, (code, said)
        nobody = roles.sections(sources=[log.source()], bus={"brokers": f"127.0.0.1:{free_port()}"})
        code, said = check(place.write("nobody.json", json.dumps(nobody)))
        assert code == 1, said


def test_the_service_manager_is_told(place):
    log = Log(place)
    address = place.path("notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, cluster.shared() as one, \
            Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        manager.bind(address)
        manager.settimeout(LONG_S)
        roles.apply()
        os.environ["NOTIFY_SOCKET"] = address
        try:
            collector = roles.collector([log.source()])
        finally:
            del os.environ["NOTIFY_SOCKET"]

        def await_word(word):
            while word not in manager.recv(4096).decode().split("\n"):
                pass

        await_word("READY=1")
        await_word("STATUS=collecting")
        # A second one on the same state would read the same files.
        other = place.run("--config", collector.config, "--state", collector.state,
                          program=program(place, "weir-collector"))
        assert other.code() == 1 and str(collector.run.pid) in other.said(), other.said()
        assert collector.stop() == 0, collector.said()
        await_word("STOPPING=1")


def test_a_reload_changes_the_log_level_and_says_what_waits(place):
    log = Log(place)
    with cluster.shared() as one, Roles(place, one, zones("a"), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        collector = roles.collector([log.source()]).until_ready()

        with open(collector.config, encoding="utf-8") as file:
            sections = json.load(file)

        def rewrite(cut=None):
            place.write(os.path.basename(collector.config), json.dumps(sections)[:cut])
            collector.reload()

        sections["collector"] = {"max_skew": "7s"}
        rewrite()
        collector.until_says('"collector": changed; takes effect at a restart')
        rewrite(cut=-5)
        collector.until_says("The previous configuration stays in use")
        # what a start would refuse is refused here
        sources, sections["sources"] = sections["sources"], []
        rewrite()
        collector.until_says("has no sources")
        sections["sources"] = sources
        sections["bus"]["partitions"] += 1
        rewrite()
        collector.until_says(f"has {PARTITIONS} partitions, not {PARTITIONS + 1}")
        sections["bus"]["partitions"] = PARTITIONS
        bus = sections.pop("bus")
        sections["zones"] = zones("a")  # what a local bus has
        rewrite()
        collector.until_says("only `weir run` works without a server")
        sections["bus"] = bus
        del sections["zones"]
        with socket.create_server(("127.0.0.1", 0)) as silent:  # no server of a source is asked
            queue = {"type": "redis", "url": f"redis://127.0.0.1:{silent.getsockname()[1]}", "streams": ["logs"], "format": "combined"}
            sections["sources"] = [*sources, queue]
            rewrite()
            collector.until_says('"sources", "collector": changed; takes effect at a restart')
            silent.settimeout(0)
            try:
                silent.accept()
                raise AssertionError("a reload has connected to a source's server")
            except BlockingIOError:
                pass
        sections["sources"] = sources
        sections["log"] = {"level": "error"}
        del sections["collector"]
        rewrite()
        collector.until_says("configuration reloaded")
        # From then on what is no error is not said.
        roles.apply(zones("a", "b"))
        collector.until(lambda: collector.value("weir_policy_version") == 2, "takes the policy")
        assert "policy 2" not in collector.said()
        log.feed(100)
        Arrived(one).await_all(log, collector)
        assert collector.stop() == 0, collector.said()


def test_a_refused_configuration_ends_it_in_words(place):
    for sections, words in (({"bus": {"type": "local"}, "zones": zones("a")}, 'must be "kafka"'),
                            ({"bus": {"type": "kafka", "brokers": "127.0.0.1:1"}}, "has no sources")):
        for more in ((), ("--check",)):
            run = place.run("--config", place.write("refused.json", json.dumps(sections)), "--state", place.path("state"), *more,
                            program=program(place, "weir-collector"))
            assert run.code() == 2 and words in run.said(), (run.code(), run.said())


if __name__ == "__main__":
    cases.main(globals())
