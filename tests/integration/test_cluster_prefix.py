#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store is of one cluster: a configuration with another bus.prefix is refused, and the cluster whose store it is works on."""

import json
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cluster_check import caught_up
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

USAGE = 2
PARTITIONS = 4
ZONES = [zone("site", [sliding(3, "1h")], id=1)]


def test_another_prefix_on_the_same_store_is_refused(place):
    """By limiters, archivers, their --check and every command that asks the store; recover changes nothing of the other's."""
    with cluster.shared() as one, Roles(place, one, ZONES, partitions=PARTITIONS, archiver={"enabled": True}) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5))
        limiter = roles.limiter(limiter={"checkpoint_interval": "500ms"}).until_ready()
        archiver = roles.archiver().until_ready()
        roles.collector([source(log)])
        caught_up(one, roles, 1)
        limiter.until(lambda: one.stored() == one.ends(), "has stored everything")
        checkpoints = one.stored()
        try:
            other = roles.sections(bus={"prefix": f"{one.prefix}x"}, zones=ZONES)
            config = place.write("other.json", json.dumps(other))
            for words in (["policy", "apply"], ["policy", "show"], ["list"], ["recover", "--accept-gap", "--all", "--yes"]):
                done = place.run(*words, "--config", config)
                assert done.code() == USAGE, (words, done.code(), done.said())
                assert f'"{one.prefix}"' in done.said() and "runbook: prefix-changed" in done.said(), (words, done.said())
            found = place.run("doctor", "--config", config)
            assert found.code() == 1 and "runbook: prefix-changed" in found.out().decode(), found.said()
            assert "recover --accept-gap" not in found.out().decode(), found.out()
            for kind in ("limiter", "archiver"):
                role = getattr(roles, kind)(f"other-{kind}", bus={"prefix": f"{one.prefix}x"})
                assert role.run.wait() == USAGE, (kind, role.run.code(), role.said())
                assert "runbook: prefix-changed" in role.said(), role.said()
        finally:
            one.kafka.delete(name for name in one.kafka.topics() if name.startswith(f"{one.prefix}x."))
        assert one.stored() == checkpoints
        place.append("log", burst("joe", 5))
        caught_up(one, roles, 2)
        for role in (limiter, archiver):
            role.until_ready()
        # A store of before is claimed by the first that works on it, and so is one whose prefix was changed on purpose.
        one.mariadb.query("DELETE FROM note WHERE name = 'prefix'")
        roles.apply()
        assert one.mariadb.query("SELECT value FROM note WHERE name = 'prefix'")[0][0] in (one.prefix, one.prefix.encode())


def test_a_prefix_is_renamed_on_purpose(place):
    """As the runbook has it: with everything stopped the note is removed, and the new topics are begun with."""
    with cluster.shared() as one, Roles(place, one, ZONES, partitions=PARTITIONS) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5))
        limiter = roles.limiter(limiter={"checkpoint_interval": "500ms"}).until_ready()
        collector = roles.collector([source(log)])
        caught_up(one, roles, 1)
        for role in (collector, limiter):
            role.stop()
        new = f"{one.prefix}x"
        one.mariadb.query("DELETE FROM note WHERE name = 'prefix'")
        config = place.write("renamed.json", json.dumps(roles.sections(bus={"prefix": new}, zones=ZONES)))
        try:
            place.good("policy", "apply", "--config", config)
            place.good("recover", "--accept-gap", "--config", config, "--all", "--yes")
            renamed = roles.limiter("renamed", bus={"prefix": new}).until_ready()
            sender = roles.collector([source(log)], "sender", bus={"prefix": new})
            place.append("log", burst("ann", 1) + burst("joe", 5))
            renamed.until(lambda: renamed.value("weir_limiter_events_total") >= 11, "judges what the new topics have")
            assert one.mariadb.query("SELECT value FROM note WHERE name = 'prefix'")[0][0] in (new, new.encode())
            for role in (sender, renamed):
                role.stop()
        finally:
            one.kafka.delete(name for name in one.kafka.topics() if name.startswith(f"{new}."))


if __name__ == "__main__":
    cases.main(globals())
