#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster under load loses its servers, one after another: every event counts once, each role says what it misses.

Each round has servers of its own: collectors follow logs that grow, limiters
share the partitions, a subscriber keeps Redis. Kafka, MariaDB and Redis are
stopped, killed, away for longer than all timeouts, out of disk, cut off,
stalled and reset: each kind in the first two rounds, of each server in four;
the fifth has three brokers. Nobody is started again but the servers. At the end
the events topic holds every line once; decisions, judged frames and buckets are
what the oracle makes of that topic in its own order, and Redis holds what is
live of the decisions.
"""

import contextlib
import os
import sys
import time

import rounds
from outages import KAFKA, MARIADB, REDIS, Outages
from stage import MIB, Stage

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cluster, venv
from support.place import PATIENCE_S, until
from support.small_disk import enter_namespace

venv.enter()

ROUNDS = 2
DISKS = {"broker-1": 192 * MIB, "mariadb": 256 * MIB}
NO_NAMESPACE = enter_namespace()

# What happens in one round, in any order. The first two, which everyone runs, have each kind of outage; the fifth has
# three brokers.
OUTAGES = (
    ((KAFKA, "away"), (KAFKA, "cut"), (MARIADB, "killed"), (MARIADB, "reset"), (REDIS, "killed"), (REDIS, "stalled")),
    ((KAFKA, "full"), (KAFKA, "stalled"), (KAFKA, "reset"), (MARIADB, "full"), (MARIADB, "cut"), (REDIS, "stopped"),
     (REDIS, "reset")),
    ((KAFKA, "killed"), (MARIADB, "stopped"), (REDIS, "cut")),
    ((KAFKA, "stopped"), (MARIADB, "stalled")),
)
CYCLE = len(OUTAGES) + 1


def play_servers(one, outages):
    """One broker, MariaDB and Redis, behind proxies and on disks of their own."""
    if NO_NAMESPACE:
        one.tell(f"no disk becomes full: {NO_NAMESPACE}")
        outages = [outage for outage in outages if outage[1] != "full"]
    disks = DISKS if any(what == "full" for _, what in outages) else None
    with cluster.own("--proxy-port", "0", parent=one.place.directory, disks=disks) as served, \
            contextlib.ExitStack() as stack:
        brokers, addresses = stack.enter_context(served.proxied_kafka())
        mariadb, redis = (stack.enter_context(proxy) for proxy in (served.proxied_mariadb(), served.proxied_redis()))
        stage = stack.enter_context(Stage(one, served, bus={"brokers": addresses}, store={"port": mariadb.port},
                                          redis_port=redis.port)).start()
        stage.until_well()
        befalls = Outages(stage, {KAFKA: brokers, MARIADB: [mariadb], REDIS: [redis]})
        for server, what in one.rng.sample(outages, len(outages)):
            befalls.play(server, what)
            stage.check_memory()
        stage.finish()


def play_brokers(one):
    """Three brokers: while one is away everything goes on; then all of them are."""
    with cluster.own("--brokers", "3", parent=one.place.directory) as served, Stage(one, served) as stage:
        stage.start().until_well()
        for number in one.rng.sample((1, 2, 3), 3):
            action = one.rng.choice(["stop", "kill"])
            served.part(action, f"broker-{number}")
            began = time.monotonic()
            one.tell(f"{action} of broker {number}; without it {stage.until_well()}")
            served.part("start", f"broker-{number}")
            until(lambda: in_sync(served), "all replicas are in sync again", 4 * PATIENCE_S)
            one.tell(f"in sync again after {time.monotonic() - began:.1f} s")
        Outages(stage, {}).play(KAFKA, "away")
        stage.finish()


def in_sync(served):
    """Whether every partition of weir's topics is on all brokers."""
    topics = served.kafka.admin().list_topics(timeout=PATIENCE_S).topics
    return all(len(partition.isrs) == 3 for name, topic in topics.items() if name.startswith(served.prefix)
               for partition in topic.partitions.values())


def play(one):
    """One round."""
    kind = one.number % CYCLE
    if kind < len(OUTAGES):
        play_servers(one, OUTAGES[kind])
    else:
        play_brokers(one)


if __name__ == "__main__":
    rounds.main(play, __doc__, ROUNDS, skipped=NO_NAMESPACE and f"disks that become full: {NO_NAMESPACE}")
