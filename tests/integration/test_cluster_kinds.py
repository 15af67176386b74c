#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/cluster's other kinds: TLS with SASL behind a proxy, and three brokers of which one dies."""

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.kafka import confluent_kafka

MESSAGES = [("k", b"one", 0), ("k", b"two", 1), (None, b"three", 0)]


def test_tls_and_sasl(place):
    with cluster.own("--tls-sasl", "--proxy-port", "0", "--partitions", "5", parent=place.directory) as one:
        one.kafka.create("test.a", partitions=2)
        one.kafka.produce("test.a", MESSAGES)
        assert len(one.kafka.consume("test.a")) == len(MESSAGES)
        assert one.sections()["bus"]["partitions"] == 5
        wrong = {**one.kafka_properties, "sasl.password": "wrong"}
        refused = cluster.Kafka(one.brokers, wrong)
        for stranger in (refused, cluster.Kafka(one.brokers)):
            assert_no_answer(stranger)
            assert len(one.kafka.topics()) == 1, "the broker answers those whom it knows"
        ((_, cipher),) = one.mariadb_server.query("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cipher
        with one.proxied_kafka() as (proxies, brokers):
            through = cluster.Kafka(brokers, one.kafka_properties)
            assert through.produce("test.a", [("k", b"four", 1)]) == [1]
            passed = proxies[0].passed["up"]
            assert passed > 0 and len(through.topics()) == 1
            proxies[0].drop(reset=True)
            assert len(through.consume("test.a")) == 4 and proxies[0].passed["up"] > passed
            proxies[0].cut()
            assert_no_answer(cluster.Kafka(brokers, one.kafka_properties))
            proxies[0].mend()
            assert len(cluster.Kafka(brokers, one.kafka_properties).consume("test.a")) == 4


def assert_no_answer(kafka):
    """Kafka does not let this client in."""
    admin = kafka.admin()
    try:
        admin.list_topics(timeout=2)
    except confluent_kafka.KafkaException:
        return
    raise AssertionError("a client got in that must not")


def test_three_brokers_outlive_one(place):
    with cluster.own("--brokers", "3", parent=place.directory) as one:
        one.kafka.create("test.a", partitions=3, replication=3, min_insync_replicas=2)
        sent = one.kafka.produce("test.a", [("k", b"%d" % number, number % 3) for number in range(30)])
        assert sorted(sent) == sorted(list(range(10)) * 3)
        bus = one.sections()["bus"]
        assert (bus["replication"], bus["min_insync"]) == (3, 2)
        one.part("kill", "broker-2")
        one.kafka.produce("test.a", [("k", b"%d" % number, number % 3) for number in range(30, 60)])
        one.part("start", "broker-2")
        assert sorted(int(message.value) for message in one.kafka.consume("test.a")) == list(range(60))


if __name__ == "__main__":
    cases.main(globals())
