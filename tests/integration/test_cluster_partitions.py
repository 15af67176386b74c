#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partitions that somebody adds to weir's topics: who runs goes on rightly and says so at once, subscribers read them all."""

import json
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, metrics
from support.place import free_port, read, until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE, USAGE = 0, 2
PARTITIONS, ADDED = 2, 3
ZONES = [zone("site", [sliding(3, "1h")], id=1, block_for="1h")]
TOLD = "partitions were added to it"


class Subscriber:
    """A `weir subscribe` that keeps a file."""

    def __init__(self, place, roles):
        self.place, self.port, self.run = place, free_port(), None
        self.config = place.write("subscribe.json", json.dumps(roles.sections(zones=ZONES)))
        self.list = place.path("list")

    def start(self):
        """Runs it: itself."""
        self.run = self.place.start("subscribe", "--config", self.config, "--to", f"file:{self.list}", "--http",
                                    f"127.0.0.1:{self.port}")
        return self

    def await_blocked(self, *users):
        """Waits until these are in the list."""
        until(lambda: os.path.exists(self.list) and all(user.encode() in read(self.list) for user in users), f"{users} are blocked",
              running=self.run)


def requests(user):
    """Lines of now, by which a user is blocked."""
    return burst(user, 5, start_ms=int(time.time() * 1000))


def added(port, topic):
    """weir_topic_added_partitions of a topic."""
    page = metrics.scrape(port)
    return page and page.value("weir_topic_added_partitions", topic=topic)


def test_partitions_that_are_added_while_all_runs_are_told_and_change_nothing(place):
    with cluster.shared() as one, Roles(place, one, ZONES, partitions=PARTITIONS, archiver={"enabled": True}) as roles:
        roles.apply()
        log = place.write("log", requests("ann"))
        daemons = [roles.limiter().until_ready(), roles.archiver().until_ready(), roles.collector([source(log)])]
        subscriber = Subscriber(place, roles).start()
        subscriber.await_blocked("ann")
        decisions = one.topic("decisions")
        until(lambda: added(subscriber.port, decisions) == 0, "it knows how many there are", running=subscriber.run)
        for topic in ("events", "decisions"):
            one.kafka.extend(one.topic(topic), PARTITIONS + ADDED)
        for daemon in daemons:
            for topic in ("events", "decisions"):
                daemon.until_says(f"topic {one.topic(topic)} has {PARTITIONS + ADDED} partitions, not {PARTITIONS}: {TOLD}")
                daemon.until(lambda daemon=daemon, topic=topic: daemon.value(
                    "weir_topic_added_partitions", topic=one.topic(topic)) == ADDED, "counts them")
        until(lambda: TOLD in subscriber.run.said(), "the subscriber says so", running=subscriber.run)
        until(lambda: added(subscriber.port, decisions) == ADDED, "and counts them", running=subscriber.run)
        users = [f"user-{number}" for number in range(8)]
        place.append("log", "".join(map(requests, users)))
        subscriber.await_blocked("ann", *users)
        for daemon in daemons:
            daemon.until_ready()
        # One that starts reads all of its topic, whatever a configuration says; a daemon refuses, and says what to do.
        assert subscriber.run.stop() == DONE, subscriber.run.said()
        os.remove(subscriber.list)
        subscriber.start().await_blocked("ann", *users)
        assert f"topic {decisions} has {PARTITIONS + ADDED} partitions, and \"bus.partitions\" is {PARTITIONS}: all are read" in \
            subscriber.run.said(), subscriber.run.said()
        assert subscriber.run.stop() == DONE, subscriber.run.said()
        again = roles.limiter("again")
        assert again.run.wait() == USAGE, again.said()
        assert "partitions were added to the topic, delete the topic and create it again" in again.said() and "partitions-changed" in again.said(), again.said()


if __name__ == "__main__":
    cases.main(globals())
