#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decisions of zones in shadow mode in the archive of `weir run`: each once, apart from those that block."""

import contextlib
import glob
import json
import os
import random
import signal
import sqlite3
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import PATIENCE_S, free_port, until
from support.run_local import USAGE, Run
from support.traffic import burst, sliding, source, zone

ZONES = [zone("site", [sliding(3, "1h")], id=1), zone("trial", [sliding(2, "1h")], id=2, mode="shadow")]
QUICK = {"limiter": {"checkpoint_interval": "200ms"}, "archiver": {"enabled": True, "interval": "100ms"}}
POSITION_BYTES = 8 + 24  # of a topic, behind what a partition's state had before: the next offset and a mark


def ask_rows(run, sql, *parameters):
    """Rows of the state's database, changed where it says so."""
    with contextlib.closing(sqlite3.connect(os.path.join(run.state, "weir.db"), timeout=PATIENCE_S)) as database, database:
        return database.execute(sql, parameters).fetchall()


def kept(run, table):
    """{id: (zone, key, mode)} of a table's decisions."""
    rows = ask_rows(run, "SELECT partition_id || '-' || log_offset || '-' || pair, zone, CAST(bucket AS TEXT), mode"
                         f" FROM {table}")
    return {row[0]: row[1:] for row in rows}


def published(run, topic):
    """The same of a topic of the log."""
    lines = run.command("decode", "--topic", topic).out().splitlines()
    decisions = [json.loads(line)["decision"] for line in lines]
    return {one["id"]: (one["zone"], one["key"][0], one["mode"]) for one in decisions}


def until_kept(run, users):
    """Waits until each user has a block in both tables."""
    for table in ("decision_history", "shadow_history"):
        until(lambda table=table: set(users) <= {key for _, key, _ in kept(run, table).values()}, f"{table} has them all",
              running=run.weir)


def visit(run, *users):
    """Requests of users that are too many in both zones: in two lives of a log, none is of the same place."""
    run.append("".join(burst(user, 5, start_ms=int(time.time() * 1000)) for user in users))
    return list(users)


def api(port, resource, **parameters):
    """What the API answers."""
    answer = metrics.get(port, f"/api/v1/{resource}?{urllib.parse.urlencode(parameters)}")
    assert answer is not None and answer[0] == 200, (resource, parameters, answer)
    return json.loads(answer[2])


def test_each_is_kept_once_through_kills(place):
    """What is stored with its place in the log is neither lost nor there twice, whenever the process ends."""
    run = Run(place, zones=ZONES, **{**QUICK, "archiver": {"enabled": True, "interval": "200ms"}})
    users = []
    rng = random.Random(7)
    for life in range(6):
        run.start()
        for number in range(3):
            users += visit(run, *(f"u{life}-{number}-{one}" for one in range(20)))
            time.sleep(rng.random() * 0.15)
        run.weir.signal(signal.SIGKILL)
        run.weir.wait()
    run.start()
    until_kept(run, users)
    run.stop()
    for table, topic, mode in (("decision_history", "decisions", "enforce"), ("shadow_history", "shadow", "shadow")):
        rows = kept(run, table)
        assert rows == published(run, topic), table
        assert sorted(key for _, key, _ in rows.values()) == sorted(users), f"{table}: each user once"
        assert {one for _, _, one in rows.values()} == {mode}


def test_the_api_gives_them_where_they_are_asked_for(place):
    port = free_port()
    run = Run(place, zones=ZONES, limiter=QUICK["limiter"], archiver={**QUICK["archiver"], "api": f"127.0.0.1:{port}"}).start()
    until_kept(run, visit(run, "ann", "bob"))
    said = {mode: api(port, "decisions", **({"mode": mode} if mode else {}))["decisions"] for mode in (None, "enforce", "shadow", "all")}
    assert said[None] == said["enforce"] and {one["mode"] for one in said[None]} == {"enforce"} and len(said[None]) == 2
    assert {(one["zone"], one["mode"]) for one in said["shadow"]} == {("trial", "shadow")} and len(said["shadow"]) == 2
    assert sorted(one["id"] for one in said["all"]) == sorted(one["id"] for one in said["enforce"] + said["shadow"])
    assert {one["zone"] for one in api(port, "blocks")["blocks"]} == {"site"}
    said = metrics.get(port, "/api/v1/decisions?mode=dark")
    assert said[0] == 400 and "enforce, shadow, all" in said[2], said
    run.stop()


def test_weir_forget_removes_them(place):
    run = Run(place, zones=ZONES, **QUICK).start()
    until_kept(run, visit(run, "ann", "bob"))
    done = json.loads(run.command("forget", "ann", "--json").out())
    assert done["done"] and done["rows"]["decision_history"] == done["rows"]["shadow_history"] == 2, done  # the lift, too
    for table in ("decision_history", "shadow_history"):
        assert [key for _, key, _ in kept(run, table).values()] == ["bob"], table
    run.stop()


def as_before(run):
    """Makes the archive that of the version before: no table for them, and no position of their topic."""
    with contextlib.closing(sqlite3.connect(os.path.join(run.state, "weir.db"), timeout=PATIENCE_S)) as database, database:
        database.executescript("DROP VIEW shadow_decisions; DROP TABLE shadow_history; UPDATE schema_version SET version = 3;")
        for partition, extra in database.execute("SELECT partition, extra FROM partition_state WHERE role = 2").fetchall():
            assert extra is None or extra[0] == 3, extra
            if extra is not None:
                database.execute("UPDATE partition_state SET extra = ? WHERE role = 2 AND partition = ?",
                                 (b"\x02" + extra[1:-POSITION_BYTES], partition))


def test_an_archive_of_the_version_before_is_upgraded(place):
    """Its rows stay as they are; what the log still has of decisions in shadow mode comes with the upgrade, once."""
    run = Run(place, zones=ZONES, **QUICK).start()
    users = visit(run, "ann", "bob", "eve")
    until_kept(run, users)
    run.stop()
    tables = ("decision_history", "count_hourly", "count_daily", "zone_hourly")
    before = {table: ask_rows(run, f"SELECT * FROM {table}") for table in tables}
    shadows = kept(run, "shadow_history")
    as_before(run)
    said = run.place.run("serve", "--state", run.state)
    assert said.code() == USAGE and "written by an older version of weir" in said.said(), said.said()
    run.start()
    until_kept(run, users)
    run.stop()
    assert {table: ask_rows(run, f"SELECT * FROM {table}") for table in tables} == before
    assert kept(run, "shadow_history") == shadows
    run.start()
    until_kept(run, visit(run, "tom"))
    run.stop()
    assert len(kept(run, "shadow_history")) == len(kept(run, "decision_history")) == len(shadows) + 1


def test_an_archiver_that_is_off_holds_back_no_log(place):
    """Nobody is waited for who does not come."""
    run = Run(place, zones=ZONES, **QUICK).start()

    def readers():
        found = glob.glob(os.path.join(run.state, "log", "decisions.shadow", "readers"))
        return open(found[0], encoding="utf-8").read() if found else ""  # pylint: disable=consider-using-with

    until_kept(run, visit(run, "ann"))
    run.stop()
    assert "archiver " in readers()
    place.config(ZONES, [source(run.log)], bus={"partitions": 4})
    run.start().stop()
    assert "archiver " not in readers()


if __name__ == "__main__":
    cases.main(globals())
