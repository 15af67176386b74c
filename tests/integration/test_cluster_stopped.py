#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partitions that are stopped for what the store has: everybody who looks at the cluster is told, and recover ends it."""

import json
import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2
ZONES = [zone("site", [sliding(3, "1h")], id=1, block_for="1d")]


class Scene:
    """A cluster whose limiter has stored blocks, and has ended."""

    def __init__(self, place, one, roles, users=8):
        self.place, self.one, self.roles = place, one, roles
        roles.apply()
        self.log = place.write("log", "".join(burst(f"u{i}", 5) for i in range(users)))
        self.limiter = roles.limiter().until_ready()
        self.collector = roles.collector([source(self.log)]).until_ready()
        self.until_judged()
        assert self.limiter.stop() == DONE
        self.config = place.write("admin.json", json.dumps(roles.sections(zones=ZONES, sources=[])))

    def until_judged(self):
        """All that the collector has read is in a checkpoint."""
        self.collector.until(lambda: self.collector.value("weir_source_lag_bytes") == 0, "has read its log")
        self.limiter.until(lambda: self.one.stored() == self.one.ends(), "has stored everything")

    def doctor(self):
        """(exit code, its findings)."""
        done = self.place.run("doctor", "--config", self.config, "--json")
        return done.code(), json.loads(done.out())["findings"]

    def recover(self, *words):
        """The run, at its end."""
        return self.place.run("recover", "--drop-damaged", "--config", self.config, *words)

    def until_told(self, runbook, words):
        """The finding of stopped partitions, which is a page and stands first."""
        def told():
            nonlocal seen
            seen = self.doctor()
            return seen[0] == FAILED and seen[1][0]["runbook"] == runbook and words in seen[1][0]["what"]
        seen = None
        try:
            until(told, "doctor tells of it")
        except AssertionError as late:
            raise AssertionError(json.dumps(seen, indent=1)) from late
        assert seen[1][0]["severity"] == "page", seen
        return seen[1][0]


def scenes(place):
    """With a cluster that others share."""
    return cluster.shared(), lambda one: Roles(place, one, ZONES, bus={"partitions": 2}, limiter={"checkpoint_interval": "200ms"})


def test_damage_in_a_segment_is_told_and_dropped_alone(place):
    """Doctor, list and the log say which partition and why; recover drops what is damaged, and keeps the rest."""
    shared, roles_of = scenes(place)
    with shared as one, roles_of(one) as roles:
        at = Scene(place, one, roles)
        segments = [tuple(map(int, row)) for row in one.mariadb.query("SELECT DISTINCT partition_id, segment FROM segment_state")]
        partition, segment = segments[0]
        others = sum(number == partition for number, _ in segments) - 1
        one.mariadb.query(f"UPDATE segment_state SET bytes = CONCAT('xx', bytes) WHERE partition_id = {partition} AND segment = {segment}")
        at.limiter.start().until_up()
        found = at.until_told("state-damaged", f"partition {partition} is stopped: segment {segment}: not a segment blob")
        assert found["remedy"] == f"weir recover --drop-damaged --config {at.config} --partition {partition} --yes", found
        at.limiter.until_says(f"partition {partition} is stopped")
        assert "(runbook: state-damaged)" in at.limiter.said(), at.limiter.said()
        listed = place.run("list", "--config", at.config)
        assert "1 partition of the log is stopped" in listed.said(), (listed.out(), listed.said())
        said = at.recover("--all")
        assert said.code() == USAGE and f"partition {partition}: 1 of the {others + 1} parts" in said.out().decode(), (said.out(), said.said())
        done = at.recover("--partition", str(partition), "--yes")
        assert done.code() == DONE and f"partition {partition} continues without it" in done.out().decode(), (done.out(), done.said())
        place.append("log", burst("new", 5, start_ms=int(1000 * time.time())))
        at.until_judged()
        until(lambda: at.doctor()[0] == DONE, "nothing is wrong")
        again = at.recover("--all", "--yes")
        assert again.code() == DONE and "all of its state can be read" in again.out().decode(), (again.out(), again.said())
        assert b"new" in place.run("list", "--config", at.config).out()


def test_damage_in_a_row_is_told_and_dropped(place):
    """Nothing of the partition can be read, or its clock is not the one that was stored: it goes on, empty, where it was, and
    with no clock that is ahead."""
    shared, roles_of = scenes(place)
    with shared as one, roles_of(one) as roles:
        at = Scene(place, one, roles)
        stored = one.stored()
        clocks = lambda: [int(row[0]) for row in one.mariadb.query("SELECT clock_ms FROM partition_state WHERE role = 1 ORDER BY partition_id")]
        clock_ms = clocks()[1]
        one.mariadb.query("UPDATE partition_state SET clock_ms = 1 << 62 WHERE role = 1")
        one.mariadb.query("UPDATE partition_state SET extra = CONCAT(LEFT(extra, 30), 'xx') WHERE role = 1 AND partition_id = 0")
        at.limiter.start().until_up()
        at.until_told("state-damaged", "partition 0 is stopped")
        until(lambda: any("partition 1 is damaged: its clock is 4611686018427387904 in one place" in one["what"] for one in at.doctor()[1]),
              "doctor tells of the clock")
        done = at.recover("--all", "--yes")
        assert done.code() == DONE and "what a collector sends again counts twice" in done.out().decode(), (done.out(), done.said())
        assert one.stored() == stored, "nothing is judged again, and nothing is passed over"
        assert clocks() == [0, clock_ms], clocks()
        place.append("log", burst("new", 5))
        at.until_judged()
        until(lambda: at.doctor()[0] == DONE, "nothing is wrong")


def test_a_state_of_a_newer_weir_is_no_damage(place):
    """It stays, and says that the limiter is to be upgraded."""
    shared, roles_of = scenes(place)
    with shared as one, roles_of(one) as roles:
        at = Scene(place, one, roles)
        one.mariadb.query("UPDATE segment_state SET bytes = INSERT(bytes, 3, 1, CHAR(99))")
        at.limiter.start().until_up()
        found = at.until_told("what-may-be-restarted", "segment blob version 99 is newer")
        assert found["remedy"].startswith("upgrade this limiter"), found
        refused = at.recover("--all", "--yes")
        assert refused.code() != DONE and "newer" in refused.said(), (refused.out(), refused.said())


def test_a_policy_that_the_store_has_lost_is_no_damage(place):
    """Recover drops nothing of what was saved under it, and says why; it is all there again once the policy is."""
    shared, roles_of = scenes(place)
    with shared as one, roles_of(one) as roles:
        at = Scene(place, one, roles)
        at.limiter.start().until_ready()
        roles.apply(ZONES + [zone("pair", [sliding(9, "1h")], key=("user", "path"), id=2)])
        at.until_judged()
        assert at.limiter.stop() == DONE
        rows = lambda: one.mariadb.query("SELECT partition_id, epoch, checkpoint, next_offset, policy_version, MD5(extra) FROM partition_state"
                                         " WHERE role = 1 ORDER BY partition_id")
        stored = rows()
        assert 2 in (int(row[4]) for row in stored), stored
        one.mariadb.query("DELETE FROM policy_version WHERE version = 2")
        for words in (["--all"], ["--all", "--yes"], ["--partition", "1", "--yes"]):
            refused = at.recover(*words)
            assert refused.code() == FAILED and "under policy 2, which the store does not have: that is no damage" in refused.said(), refused.said()
            assert "(runbook: store-failed-over)" in refused.said() and "lost" not in refused.out().decode(), (refused.out(), refused.said())
            assert rows() == stored, words
        assert "has them again" in roles.apply(ZONES).said()
        again = at.recover("--all", "--yes")
        assert again.code() == DONE and again.out().decode().count("all of its state can be read") == 2, (again.out(), again.said())
        assert rows() == stored, (rows(), stored)


def test_a_table_that_is_missing_is_told_as_such(place):
    """By doctor and the page of a limiter that cannot take its partitions; one that ends before it has stored all fails."""
    shared, roles_of = scenes(place)
    with shared as one, roles_of(one) as roles:
        at = Scene(place, one, roles)
        rename = lambda old, new: one.mariadb.query(f"RENAME TABLE {old} TO {new}")
        at.limiter.start().until_ready()
        rename("segment_state", "away")
        place.append("log", burst("new", 5))
        at.limiter.until_says("segment_state' doesn't exist")
        at.until_told("store-tables", "segment_state' doesn't exist")
        assert at.limiter.stop() == FAILED
        assert "the last checkpoints were not stored" in at.limiter.said(), at.limiter.said()
        at.limiter.start().until_up()
        at.limiter.until(lambda: "doesn't exist (1146)" in (at.limiter.page("/readyz") or ("", ""))[1], "says why it is not live")
        rename("away", "segment_state")
        at.until_judged()
        assert at.limiter.stop() == DONE


def test_partitions_that_were_added_to_a_topic_are_told_as_such(place):
    """It was not deleted, and no other number in the configuration would be right."""
    shared, roles_of = scenes(place)
    with shared as one, roles_of(one) as roles:
        at = Scene(place, one, roles)
        one.kafka.extend(one.topic("events"), 4)
        at.until_told("partitions-changed", f"topic {one.topic('events')} has 4 partitions, not 2 as the others")
        said = json.dumps(at.doctor()[1])
        assert "deleted:" not in said and "was deleted" not in said and "set \\\"bus.partitions" not in said, said


if __name__ == "__main__":
    cases.main(globals())
