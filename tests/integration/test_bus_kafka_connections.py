#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections to the broker cut, stalled and reset under load; opening before there is a broker; TLS and SASL."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.bus_driver import BUSY_S, HASTY, MESSAGE_BYTES, PARTITIONS, Driver, Load, config, flows, load, stands
from support.place import until
from support.proxy import DOWN, UP


def test_connections_cut_stalled_and_reset(place):
    with cluster.own("--proxy-port", "0", parent=place.directory) as one, one.proxied_kafka() as (proxies, brokers):
        (proxy,) = proxies
        path = config(place, one, partitions=PARTITIONS, brokers=brokers, kafka={**one.kafka_properties, **HASTY})
        with load(place, one, path) as sender:
            for _ in range(5):
                proxy.drop(reset=True)
                flows(sender, "load flows after a reset")
                proxy.drop()
                flows(sender, "load flows after an end")
            proxy.cut()
            stands(sender)
            proxy.mend()
            flows(sender, "load flows after a cut")
            for ways in ((UP, DOWN), (DOWN,), (UP,), (DOWN,)):
                # DOWN alone: the broker writes and its acknowledgements are lost; sent again, they are known to it.
                proxy.stall(*ways)
                stands(sender)
                time.sleep(4)
                proxy.drop(reset=True)
                proxy.mend()
                flows(sender, f"load flows after a stall {ways}")


def test_opening_waits_for_a_broker(place):
    with cluster.own(parent=place.directory) as one:
        path = config(place, one, partitions=PARTITIONS)
        one.part("stop", "kafka")
        with Load(place, path, "send", MESSAGE_BYTES, "sent") as sender:
            until(lambda: "Retrying" in sender.said(), "it says what it waits for", BUSY_S, sender.running())
            one.part("start", "kafka")
            until(lambda: sender.delivered() > 0, "load flows", BUSY_S, sender.running())
            sender.end()
            assert sender.said().count("WARNING") == 1 and sender.said().count("recovered after") == 1, sender.said()


def test_tls_and_sasl(place):
    with cluster.own("--tls-sasl", parent=place.directory) as one:
        path = config(place, one, partitions=PARTITIONS)
        with Driver(place, path) as bus:
            bus.good("new_producer", 0)
            bus.good("send", 0, "events", 0, "key", "payload", 0)
            assert bus.deliveries(0, 1)[0]["status"] == "OK"
            bus.good("new_consumer", 0, "events")
            bus.good("assign", 0, 0, 0)
            assert bus.receive(0, 1)[0]["payload"] == "payload"
            bus.good("join", "limiter")
            until(lambda: bus.good("group", 100)["generation"] == 1, "the group speaks", BUSY_S)
        secret = place.write("secret", one.kafka_properties["sasl.password"] + "\n")
        good = {**one.kafka_properties, "sasl.password": {"file": secret}}
        with Driver(place, config(place, one, partitions=PARTITIONS, kafka=good)):
            pass
        wrong = {**one.kafka_properties, "sasl.password": "wrong"}
        with Driver(place, config(place, one, partitions=PARTITIONS, kafka=wrong), wait_ms=2000, expect="IO") as refused:
            assert "it rejects the user: wrong" in refused.opened["words"], refused.opened
        plain = {name: value for name, value in one.kafka_properties.items() if not name.startswith(("ssl", "sasl"))}
        plain.pop("security.protocol", None)
        with Driver(place, config(place, one, partitions=PARTITIONS, kafka=plain), wait_ms=2000, expect="IO") as refused:
            assert "no broker of " in refused.opened["words"], refused.opened


if __name__ == "__main__":
    cases.main(globals())
