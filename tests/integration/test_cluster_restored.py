#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store that was restored from a backup older than the newest policy gets the policy back under its number."""

import json
import os
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cluster_check import Check, caught_up
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

PARTITIONS = 4
FIRST = [zone("site", [sliding(3, "1h")], id=1)]
SECOND = FIRST + [zone("pair", [sliding(2, "1h")], key=("user", "path"), id=2)]
THIRD = FIRST + [zone("late", [sliding(1, "1h")], key=("path",), id=3)]


def dump(one):
    """The database as SQL."""
    return subprocess.run(["mariadb-dump", "--no-defaults", "--socket", one.mariadb_socket, "-uroot", "--single-transaction", one.database],
                          stdout=subprocess.PIPE, check=True, timeout=300).stdout


def restore(one, backup):
    """Puts it in the place of what is there."""
    subprocess.run(["mariadb", "--no-defaults", "--socket", one.mariadb_socket, "-uroot", one.database], input=backup, check=True, timeout=300)


def stored(one):
    """The numbers of the store's policies."""
    return [int(version) for version, in one.mariadb.query("SELECT version FROM policy_version ORDER BY version")]


class Scene:
    """Policy 1 in force, a backup, policy 2 in force, and traffic under both."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        roles.apply(FIRST)
        self.log = place.write("log", burst("ann", 5, path="/a"))
        self.limiter = roles.limiter(limiter={"checkpoint_interval": "500ms"}).until_ready()
        roles.collector([source(self.log)])
        caught_up(one, roles, 1)
        self.until_saved(1)
        self.backup = dump(one)
        roles.apply(SECOND)
        place.append("log", burst("joe", 5, path="/a"))
        caught_up(one, roles, 3)
        self.until_saved(2)
        assert "store-failed-over" not in self.limiter.said(), self.limiter.said()

    def until_saved(self, version):
        """Until every partition is saved under a policy."""
        query = "SELECT count(*) FROM partition_state WHERE role = 1 AND checkpoint > 0 AND policy_version = %d" % version
        until(lambda: int(self.one.mariadb.query(query)[0][0]) == PARTITIONS, f"every partition is saved under policy {version}")

    def check(self):
        """Verdicts are those of the policies in the log, the limiter leaves, and what it stored can be taken again."""
        self.place.append("log", burst("eve", 5, path="/a"))
        until(lambda: self.limiter.value("weir_limiter_lag_messages") == 0, "it is judged")
        for _ in range(2):
            self.limiter.stop()
            self.limiter.start().until_ready()
        self.until_saved(max(stored(self.one)))
        assert "damaged" not in self.limiter.said() and "cannot be put back" not in self.limiter.said(), self.limiter.said()
        check = Check(self.one)
        check.decisions()
        self.limiter.stop()
        check.state(self.place)


def test_a_limiter_that_runs_puts_it_back_and_the_next_policy_gets_the_next_number(place):
    """The store is restored while it judges; then other zones are applied: neither number names two policies."""
    with cluster.shared() as one, Roles(place, one, partitions=PARTITIONS) as roles:
        scene = Scene(place, one, roles)
        restore(one, scene.backup)
        assert stored(one) == [1]
        place.append("log", burst("pat", 5, path="/a"))
        until(lambda: stored(one) == [1, 2], "the store has policy 2 again")
        scene.limiter.until_says("(runbook: store-failed-over)")
        said = roles.apply(THIRD).out().decode()
        assert "policy 3 is in force" in said and "pair removed" in said and "late new" in said, said
        scene.limiter.until_says("policy 3 is in force")
        scene.until_saved(3)
        scene.check()


def test_apply_reads_what_the_store_lost_before_it_numbers_the_next(place):
    """Nobody judges meanwhile: it is apply that puts policy 2 back, and says so; a dry run and doctor name what is wrong."""
    with cluster.shared() as one, Roles(place, one, partitions=PARTITIONS) as roles:
        scene = Scene(place, one, roles)
        scene.limiter.stop()
        restore(one, scene.backup)
        applied = roles.apply(THIRD)
        assert "policy 3 is in force" in applied.out().decode(), applied.out()
        assert "has them again" in applied.said() and "store-failed-over" in applied.said(), applied.said()
        assert stored(one) == [1, 2, 3]
        scene.limiter.start().until_ready()
        scene.until_saved(3)
        scene.check()


def test_a_limiter_that_starts_reads_it_from_the_policy_topic(place):
    """The store has checkpoints under policy 2, but not the policy: doctor finds it, the start heals it."""
    with cluster.shared() as one, Roles(place, one, FIRST, partitions=PARTITIONS) as roles:
        scene = Scene(place, one, roles)
        scene.limiter.stop()
        one.mariadb.query("DELETE FROM policy_version WHERE version = 2")
        config = place.write("doctor.json", json.dumps(roles.sections(zones=FIRST)))
        found = place.run("doctor", "--config", config).out().decode()
        assert "was saved under policy 2, but the newest that the store has is 1" in found, found
        assert "store-failed-over" in found, found
        tried = place.run("policy", "apply", "--dry-run", "--config", config)
        assert tried.code() == 2 and "saved under policy 2" in tried.said(), tried.said()
        scene.limiter.start().until_ready()
        scene.limiter.until_says("the store had lost policy 2, and has it again from the topic policy")
        assert stored(one) == [1, 2]
        found = place.run("doctor", "--config", config).out().decode()
        assert "store-failed-over" not in found, found
        scene.check()


if __name__ == "__main__":
    cases.main(globals())
