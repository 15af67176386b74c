#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three brokers, of which one may go: nothing that was reported delivered is lost or doubled."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.bus_driver import BUSY_S, HASTY, PARTITIONS, config, flows, load, stands
from support.place import until


def test_one_of_three_brokers_may_go(place):
    with cluster.own("--brokers", "3", parent=place.directory) as one:
        path = config(place, one, partitions=PARTITIONS, kafka={**one.kafka_properties, **HASTY})
        with load(place, one, path) as sender:
            one.part("kill", "broker-1")
            flows(sender, "load flows with two of three")
            one.part("start", "broker-1")
            until(lambda: all_in_sync(one), "the replicas are in sync", BUSY_S)
            one.part("kill", "broker-2")
            one.part("pause", "broker-3")
            stands(sender)
            one.part("resume", "broker-3")
            flows(sender, "load flows again with two of three")
            one.part("start", "broker-2")


def all_in_sync(one):
    """Whether each partition of the events has all its replicas."""
    topic = one.kafka.admin().list_topics(one.topic("events"), timeout=BUSY_S).topics[one.topic("events")]
    return all(len(partition.isrs) == 3 for partition in topic.partitions.values())


if __name__ == "__main__":
    cases.main(globals())
