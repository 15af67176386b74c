#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clocks that are wrong: a partition's is bounded by the brokers', and nothing is forgotten early; and one that is set back delays nothing."""

import json
import os
import re
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, decisions, frames
from support.cluster_check import caught_up
from support.decisions import now_ms
from support.place import PATIENCE_S
from support.roles import Roles
from support.stepped_clock import SteppedClock
from support.traffic import burst, sliding, source, zone

DONE = 0
ZONES = [zone("site", [sliding(3, "1m")], id=1)]
AHEAD_MS = 3 * 86400000


def send(one, source, position, count, ahead_ms=0):
    """Puts a frame of so many requests of one user on the only partition, which was sent by a clock that is ahead."""
    at_ms = now_ms()
    happened = [{"key": b"ann", "time": at_ms, "cost": 1, "position": position + number, "zones": [(1, False)]}
                for number in range(count)]
    one.kafka.produce(one.topic("events"), [(None, frames.events(at_ms + ahead_ms, source, 1, happened), 0)])


def listed(roles):
    """Who is blocked."""
    return {text["key"][0] for text in roles.command("list", "--json").objects()}


def test_a_sender_far_ahead_makes_nothing_forgotten(place):
    """Counts and operators' blocks survive it, and the sender is named."""
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": 1},
                                        limiter={"checkpoint_interval": "300ms"}) as roles:
        roles.apply()
        limiter = roles.limiter().until_ready()
        assert "message.timestamp.type" not in limiter.said()
        send(one, b"h" * 16, 1, 3)
        roles.override("block", "--zone", "site", "bob", "--for", "1h")
        send(one, b"a" * 16, 1, 1, AHEAD_MS)
        roles.override("block", "--zone", "site", "eve", "--for", "1h")
        send(one, b"h" * 16, 4, 2)
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == 6, "all is judged")
        assert limiter.value("weir_limiter_ahead_total") == 1
        assert re.search(rf"\(source {'61' * 16}\) is 2 d 23 h ahead of the brokers'", limiter.said())
        assert caught_up(one, roles).wanted == 3
        assert listed(roles) == {"ann", "bob", "eve"}
        assert limiter.stop() == DONE
        assert {tuple(text["key"]) for text in roles.command("state", "--orders").objects()} == {("bob",), ("eve",)}
        limiter.start().until_ready()
        assert limiter.stop() == DONE and listed(roles) == {"ann", "bob", "eve"}


def test_a_topic_without_the_brokers_clock_is_named(place):
    """It was made by somebody else: senders are believed, and that is said."""
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": 1}) as roles:
        roles.apply()
        one.kafka.change_settings(one.topic("events"), message_timestamp_type="CreateTime")
        limiter = roles.limiter().until_ready()
        assert "has message.timestamp.type CreateTime" in limiter.said()
        send(one, b"a" * 16, 1, 1, AHEAD_MS)
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == 1, "it is judged")
        assert limiter.value("weir_limiter_ahead_total") == 0
        assert limiter.stop() == DONE


def test_a_clock_that_is_set_back_does_not_keep_anybody_from_ending(place):
    """Nor from working: librdkafka's own waits end at a moment of that clock."""
    clock = SteppedClock(place)
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": 4}, archiver={"enabled": True}) as roles:
        roles.apply()
        log = place.write("access.log", b"")
        all_roles = [roles.limiter(), roles.archiver(), roles.collector([source(log)])]
        for role in all_roles:
            role.stop()
            role.start(env=clock.environment).until_ready()
        limiter, _, collector = all_roles
        config = place.write("subscribe.json", json.dumps(roles.sections()))
        subscriber = decisions.start(place, config, f"file:{place.path('blocked')}", env=clock.environment).until_ready()
        place.append("access.log", burst("ann", 5, now_ms()))
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == 5, "judges")
        clock.set(-3600)
        place.append("access.log", burst("bob", 5, now_ms()))
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == 10, "judges on")
        collector.until(lambda: collector.value("weir_collector_low_water_age_seconds") < 5, "is acknowledged")
        time.sleep(12)  # a wait that was under way at the step goes on until something comes, and by then nothing does
        for stop in (subscriber.weir.stop, collector.stop, all_roles[1].stop, limiter.stop):
            began_s = time.monotonic()
            assert stop(4 * PATIENCE_S) == DONE
            assert time.monotonic() - began_s < 15, stop


if __name__ == "__main__":
    cases.main(globals())
