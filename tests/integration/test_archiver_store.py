#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-archiver while its database's answers are lost: what was stored counts once, and what came meanwhile counts, too."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.place import until
from support.roles import Roles
from support.sql_proxy import AFTER, BEFORE, SqlProxy
from support.traffic import burst, sliding, source, zone

ZONES = [zone("site", [sliding(3, "1h")], id=1, history=True)]
SECTIONS = {"bus": {"partitions": 2}, "archiver": {"enabled": True, "interval": "200ms"}}
TAKEN_S = 1  # in which an archiver that reads on would have taken what came


def is_stored(servers, users, events):
    """Whether hours, days and the zone's sums have this: {user: (passed, blocked)}; and so many events their history."""
    for table in ("count_hourly", "count_daily"):
        rows = servers.mariadb.query(f"SELECT bucket, SUM(passed), SUM(blocked) FROM {table} GROUP BY bucket")
        if {bytes(key).decode(): (int(passed), int(blocked)) for key, passed, blocked in rows} != users:
            return False
    sums = [sum(counts[place] for counts in users.values()) for place in (0, 1)]
    (total,) = servers.mariadb.query("SELECT SUM(passed), SUM(blocked) FROM zone_hourly")
    return [int(one or 0) for one in total] == sums and servers.mariadb.one("SELECT COUNT(*) FROM zone_txn") == events


def lose_an_answer(place, when):
    """Three bursts: one before, one whose commit is cut off, one while nobody can be asked what became of it."""
    now = int(time.time() * 1000)
    with cluster.shared() as servers, SqlProxy(servers.mariadb_port) as proxy, \
            Roles(place, servers, ZONES, **SECTIONS) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5, start_ms=now))
        limiter, archiver = roles.limiter().until_ready(), roles.archiver(store={"port": proxy.port}).until_ready()
        roles.collector([source(log)])
        archiver.until(lambda: is_stored(servers, {"ann": (3, 2)}, 5), "the first burst is stored")
        cut = proxy.cut("COMMIT", when)
        proxy.refuse()
        place.append("log", burst("bob", 4, start_ms=now))
        until(cut.is_set, "a commit is cut off", running=archiver.run)
        place.append("log", burst("ann", 7, start_ms=now) + burst("eve", 2, start_ms=now))
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == 18, "all is judged")
        time.sleep(TAKEN_S)
        proxy.refuse(False)
        archiver.until(lambda: is_stored(servers, {"ann": (3, 9), "bob": (3, 1), "eve": (2, 0)}, 18), "all is stored once")
        assert archiver.stop() == 0


def test_what_comes_after_a_lost_answer_is_stored(place):
    lose_an_answer(place, AFTER)


def test_what_comes_after_a_commit_that_was_not_made_is_stored(place):
    lose_an_answer(place, BEFORE)


def test_events_of_a_policy_that_the_store_lacks_are_said_to_be_missing(place):
    """Their counts are kept; whether their zone keeps a history is not known."""
    with cluster.shared() as servers, Roles(place, servers, ZONES, **SECTIONS) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5, start_ms=int(time.time() * 1000)))
        limiter = roles.limiter().until_ready()
        roles.collector([source(log)])
        limiter.until(lambda: limiter.value("weir_limiter_events_total") == 5, "all is judged")
        assert limiter.stop() == 0
        servers.mariadb.query("DELETE FROM policy_version")
        archiver = roles.archiver().until_ready()
        archiver.until(lambda: is_stored(servers, {"ann": (3, 2)}, 0), "its counts are stored")
        archiver.until_says("was judged by policy 1, which this archiver's store does not have")
        assert archiver.stop() == 0


def lose_the_connection(place, statement, when):
    """It breaks while partitions are made: the archiver says so, and makes them a little later."""
    with cluster.shared() as servers, SqlProxy(servers.mariadb_port) as proxy, \
            Roles(place, servers, ZONES, **SECTIONS) as roles:
        roles.apply()
        cut = proxy.cut(statement, when)
        archiver = roles.archiver(store={"port": proxy.port})
        until(cut.is_set, "the connection breaks", running=archiver.run)
        archiver.until_says("WARNING archiver: cannot delete old rows: ").until_says("INFO archiver: recovered after ")
        for table in ("count_hourly", "count_daily", "zone_hourly", "decision_history", "shadow_history", "zone_txn"):
            assert servers.mariadb.one("SELECT COUNT(*) FROM information_schema.partitions WHERE table_schema = %s"
                                       " AND table_name = %s", servers.database, table) > 1, table
        assert archiver.stop() == 0


def test_a_connection_that_breaks_as_partitions_are_looked_at_is_made_again(place):
    lose_the_connection(place, "information_schema.partitions", BEFORE)


def test_a_connection_that_breaks_as_partitions_are_made_is_made_again(place):
    lose_the_connection(place, "REORGANIZE PARTITION", BEFORE)


def test_a_connection_that_breaks_once_partitions_are_made_is_made_again(place):
    lose_the_connection(place, "REORGANIZE PARTITION", AFTER)


if __name__ == "__main__":
    cases.main(globals())
