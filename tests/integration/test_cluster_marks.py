#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Marks of other programs' transactions, which are offsets without a message: whoever reads to an end gets there."""

import json
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cluster_check import caught_up
from support.place import PATIENCE_S, lines_of, until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE = 0
PARTITIONS = 2
ZONES = [zone("site", [sliding(3, "1h")], id=1)]


def end_with_marks(one, name):
    """Puts the last message of each partition of a topic there again, in a transaction: its mark is the new end."""
    topic = one.topic(name)
    last = {message.partition: message for message in one.kafka.consume(topic)}
    offsets = one.kafka.produce(topic, [(message.key, message.value, partition) for partition, message in last.items()],
                                transactional_id=f"{topic}.marks")
    wanted = {partition: offset + 2 for partition, offset in zip(last, offsets)}
    assert wanted
    until(lambda: {**one.ends(name), **wanted} == one.ends(name), f"marks behind {wanted}")


def test_ends_behind_marks_are_reached(place):
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        now_ms = int(time.time() * 1000)
        log = place.write("log", "".join(burst(user, 5, now_ms) for user in ("ann", "bob", "eve")))
        limiter = roles.limiter().until_ready()
        collector = roles.collector([source(log)]).until_ready()
        caught_up(one, roles, 3)
        assert collector.stop() == DONE
        for name in ("events", "decisions", "policy"):
            end_with_marks(one, name)
        judged = sum(last - 1 for last in one.ends().values())  # all but the marks
        limiter.until(lambda: limiter.value("weir_limiter_frames_total") == judged, "judges the copies", PATIENCE_S)
        limiter.until(lambda: limiter.metrics().value("weir_limiter_lag_messages") == 0, "lags no longer", PATIENCE_S)
        listed = roles.command("list", "--json").objects()  # one that waits in vain fails
        assert sorted(block["key"][0] for block in listed) == ["ann", "bob", "eve"], listed
        for topic in ("events", "decisions", "policy"):
            done = roles.command("decode", "--topic", topic)
            assert done.objects() and not done.said(), (topic, done.said())
        collector.start().until_ready()  # it has read the policies to their end
        place.append("log", burst("joe", 5, now_ms))
        caught_up(one, roles, 4)
        # The message before a stored offset is deleted, and what ends the log is no message: still the same topic.
        end_with_marks(one, "events")
        before = {partition: end - 1 for partition, end in one.ends().items()}
        limiter.until(lambda: one.stored() == before, "has stored all but the marks")
        assert limiter.stop() == DONE
        one.kafka.trim(one.topic("events"), before)
        limiter.start().until_ready()
        place.append("log", burst("kim", 5, now_ms))
        limiter.until(lambda: len(roles.command("list", "--json").objects()) == 5, "kim is blocked")
        assert "recreated" not in limiter.said(), limiter.said()
        config = place.write("subscribe.json", json.dumps(roles.sections()))
        target = f"file:{place.path('blocked')}"
        end_with_marks(one, "decisions")
        place.good("subscribe", "--once", "--config", config, "--to", target)
        assert len(lines_of(place.path("blocked"))) == 5


if __name__ == "__main__":
    cases.main(globals())
