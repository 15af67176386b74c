#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sender whose clock is far ahead: a partition's clock is bounded by the brokers', and nothing is forgotten early."""

import os
import re
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, frames
from support.cluster_check import caught_up
from support.decisions import now_ms
from support.roles import Roles
from support.traffic import sliding, zone

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


if __name__ == "__main__":
    cases.main(globals())
