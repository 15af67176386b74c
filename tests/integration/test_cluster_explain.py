#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir explain` on a cluster: from its topics and its store, beside daemons that run."""

import json
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cluster_check import caught_up
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE, FAILED = 0, 1
PARTITIONS = 4
ZONES = [zone("site", [sliding(3, "1h")], id=1), zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2)]


def test_decisions_of_a_cluster_are_explained(place):
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        now_ms = int(time.time() * 1000)
        texts = {name: "".join(burst(user, 6, now_ms + i, path=f"/{name}") for i, user in enumerate(users))
                 for name, users in (("a", ("ann", "bob")), ("b", ("eve", "ann")))}
        sources = [source(place.write(name, text)) for name, text in texts.items()]
        limiter = roles.limiter().until_ready()
        collector = roles.collector(sources).until_ready()
        caught_up(one, roles, 3 + 4)
        roles.override("block", "--zone", "site", "max", "--reason", "why", "--by", "op")
        until(lambda: len(one.kafka.consume(one.topic("decisions"))) == 8, "all decisions are there")
        published = [json.loads(message.value) for message in one.kafka.consume(one.topic("decisions"))]
        config = place.write("command.json", json.dumps(roles.sections(sources=sources)))

        def explain(*words, config=config, code=DONE):
            done = place.run("explain", *words, "--config", config, "--json")
            assert done.code() == code, (words, done.said(), done.out())
            return done.objects()
        whole = {place.path(name): text.encode() for name, text in texts.items()}
        for memory in ((), ("--collector", collector.state)):
            answers = explain(*[decision["id"] for decision in published], *memory)
            assert [answer["decision"] for answer in answers] == published
            for answer in answers:
                assert answer["equal"] and not answer["missing"] and answer["found_in"] == "the topic decisions", answer
                assert len(answer["events"]) == answer["decision"].get("count", -1) + 1, answer
                for event in answer["events"]:
                    text = event["line"].encode()
                    assert whole[event["file"]][event["offset"]:].startswith(text + b"\n"), event
                    assert json.loads(text)["user"] == answer["decision"]["key"][0], event
                    assert (event["stream"] is not None) == bool(memory), event
        roles.override("lift", "--zone", "site", "ann")
        until(lambda: len(one.kafka.consume(one.topic("decisions"))) == 9, "the lift is there")
        newest, = explain("ann", "--zone", "site")
        assert newest["decision"]["action"] == "lift" and newest["equal"], newest
        newest, = explain("max")
        assert newest["decision"]["by"] == "op" and newest["events"] == [] and newest["equal"], newest
        bare = place.write("bare.json", json.dumps(roles.sections()))
        answer, = explain("eve", "--zone", "site", config=bare, code=FAILED)
        assert answer["equal"] and "the sources are not known" in answer["missing"][0], answer
        assert collector.stop() == DONE and limiter.stop() == DONE


def test_judging_begins_where_it_can_matter(place):
    """Of a long log only its end is judged; where that is not enough, all of it."""
    zones = [zone("quick", [sliding(3, "100ms")], id=1, block_for="100ms")]
    with cluster.shared() as one, Roles(place, one, zones, bus={"partitions": 1}, limiter={"lateness": "100ms"}) as roles:
        roles.apply()
        log = place.write("log", "")
        limiter = roles.limiter().until_ready()
        collector = roles.collector([source(log)]).until_ready()

        def decide(number):
            place.append("log", burst("ann", 4, int(time.time() * 1000)))
            until(lambda: len(one.kafka.consume(one.topic("decisions"))) == number, f"{number} decisions are there")
        config = place.write("command.json", json.dumps(roles.sections(sources=[source(log)])))
        decide(1)
        time.sleep(0.5)
        roles.apply([zone("quick", [sliding(3, "100ms")], id=1, block_for="200ms")])
        until(lambda: collector.value("weir_policy_version") == 2, "the policy is in force")
        for number in range(2, 5):
            decide(number)
            time.sleep(0.6)
        for message in one.kafka.consume(one.topic("decisions")):
            decision = json.loads(message.value)
            done = place.run("explain", decision["id"], "--config", config, "--json")
            assert done.code() == DONE, done.said()
            answer, = done.objects()
            assert answer["equal"] and [event["at"] for event in answer["events"]] == [
                decision["at"] - 3 + i for i in range(4)], answer
            assert answer["policy"] == (1 if decision["until"] - decision["at"] == 100 else 2), answer
        assert collector.stop() == DONE and limiter.stop() == DONE


if __name__ == "__main__":
    cases.main(globals())
