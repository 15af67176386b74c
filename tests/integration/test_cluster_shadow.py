#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A zone that arms itself on a real cluster: two archivers write it once, and a file that is applied again leaves it so."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DAY_MS = 86400000
FIRST_MS = 19700 * DAY_MS
PARTITIONS = 3


def zones(rate=3):
    """One that needs two days, of 100 keys at least."""
    return [zone("site", [sliding(rate, "1m")], id=1,
                 mode={"shadow_until": {"blocked_keys_below": "1%", "for": "2d"}})]


def day(number):
    """120 keys, of which one is over the limit."""
    begin_ms = FIRST_MS + number * DAY_MS + 3600000
    return "".join(burst(f"k{key}", 1 if key else 6, start_ms=begin_ms + key * 600000) for key in range(120))


def test_two_archivers_arm_a_zone_once_and_an_operator_has_the_last_word(place):
    """Days, one policy by weir, blocks; the same file again, another file, a rollback."""
    def history():
        return [(one["version"], one.get("by"), one["in_log"]) for one in roles.command("policy", "history", "--json").objects()]

    def published():
        return [decision for decision in map(json.loads, (m.value for m in one.kafka.consume(one.topic("decisions"))))
                if decision["action"] == "block"]

    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS},
                                        archiver={"enabled": True, "interval": "100ms"},
                                        limiter={"checkpoint_interval": "200ms"}) as roles:
        roles.apply()
        log = place.write("log", "".join(day(n) for n in range(4)))
        limiter = roles.limiter().until_ready()
        archivers = [roles.archiver().until_up(), roles.archiver().until_up()]
        collector = roles.collector([source(log)])
        limiter.until(lambda: len(history()) == 2 and history()[1][2], "it is armed")
        assert history()[1] == (2, "weir", True), history()
        said = "".join(archiver.said() for archiver in archivers)
        assert said.count('zone "site" leaves shadow mode and blocks from policy 2 on: at most 1 of 120 keys') == 1, said
        collector.until_says("policy 2 is in force")
        place.append("log", day(4))
        limiter.until(lambda: [block for block in published() if block["at"] > FIRST_MS + 4 * DAY_MS], "it blocks")
        assert {block["mode"] for block in published()} == {"enforce"}
        for number in range(PARTITIONS):
            versions = [frame["policy"] for frame in roles.command("decode", "--partition", str(number)).objects()
                        if frame["kind"] == "policy"]
            assert versions == [1, 2], versions
        applied = roles.apply()
        assert "policy 2 is in force already" in applied.out().decode(), applied.out()
        assert 'zone "site" enforces, as weir armed it (at most 1 of 120 keys' in applied.said(), applied.said()
        applied = roles.apply(zones(4))
        assert "policy 3 is in force" in applied.out().decode() and "goes back into shadow mode" in applied.said(), applied.said()
        said = roles.command("policy", "rollback", "--version", "2", "--dry-run").said()
        assert 'zone "site" leaves shadow mode and blocks' in said, said
        said = roles.command("policy", "rollback", "--version", "1", "--dry-run").said()
        assert "shadow mode" not in said, said
        roles.command("policy", "rollback", "--version", "1", "--by", "joe")
        assert history()[2:] == [(3, history()[2][1], True), (4, "joe", True)], history()
        limiter.until(lambda: b"no whole day has been counted yet" in roles.command("policy", "show").out(),
                      "after a rollback the days count anew")
        shown = json.loads(roles.command("policy", "show", "--json").out())
        assert "armed" not in shown["zones"][0]["mode"]["shadow_until"], shown


FAILED = 1


def waits(one):
    """Whether a statement on the test's database waits for a row that another transaction has."""
    time.sleep(0.15)  # whoever looks within 100 ms of the last one is shown the same
    return one.mariadb_root.query(
        "SELECT 1 FROM information_schema.innodb_trx AS waiting JOIN information_schema.processlist AS process "
        "ON process.id = waiting.trx_mysql_thread_id WHERE process.db = %s AND waiting.trx_state = 'LOCK WAIT'", one.database)


def test_whoever_loses_the_race_for_a_number_is_told_to_apply_again(place):
    """Another command has the number and is killed then; who applies its file again finishes it."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}, archiver={"enabled": True}) as roles:
        roles.apply()
        text = one.mariadb.one("SELECT text FROM policy_version WHERE version = 1").decode()
        assert text.count('"rate":3') == 1, text
        config = place.write("late.json", json.dumps(roles.sections(zones=zones(5))))
        with one.mariadb.connect(autocommit=False) as faster, faster.cursor() as cursor:
            cursor.execute("INSERT INTO policy_version (version, text) VALUES (2, %s)", (text.replace('"rate":3', '"rate":7'),))
            late = place.start("policy", "apply", "--config", config)
            until(lambda: waits(one), "it waits for the number", running=late)
            faster.commit()
        assert late.wait() == FAILED, late.said()
        assert ("weir itself or somebody else put policy 2 in force meanwhile: see `weir policy history`, and apply again"
                in late.said()), late.said()
        shown = roles.command("policy", "history").out().decode()
        assert "not in the whole log: apply it again" in shown, shown
        said = roles.apply(zones(7)).out().decode()
        assert "policy 2 was numbered before, but was not in the whole log; it is in force" in said, said
        said = roles.apply(zones(5)).out().decode()
        assert "policy 3 is in force" in said, said


if __name__ == "__main__":
    cases.main(globals())
