#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run` whose archiver is turned off and on again, when the log has lost what came meanwhile, or the clock jumps."""

import contextlib
import os
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.faketime import stepped
from support.place import PATIENCE_S, until
from support.run_local import PARTITIONS, Run
from support.traffic import burst, source

HOUR_MS = 3_600_000


def archiver(run, enabled):
    """The same configuration, with the archiver or without."""
    run.place.config(run.zones, [source(run.log)], bus={"partitions": PARTITIONS, "segment_size": "64KiB"},
                     archiver={"enabled": enabled, "interval": "100ms"})


def archived(run, table, bucket):
    """How many rows a bucket has."""
    with contextlib.closing(sqlite3.connect(os.path.join(run.state, "weir.db"), timeout=PATIENCE_S)) as database:
        return database.execute(f"SELECT count(*) FROM {table} WHERE CAST(bucket AS TEXT) = ?", (bucket,)).fetchone()[0]


def until_archived(run, bucket):
    """Waits until it is counted, and its decision kept."""
    until(lambda: all(archived(run, table, bucket) for table in ("count_hourly", "decision_history")),
          f"{bucket} is archived", running=run.weir)


def test_an_archive_that_was_off_goes_on(place):
    """Decisions go with their files where nobody archives them."""
    run = Run(place)
    now = int(time.time() * 1000)
    archiver(run, True)
    run.start()
    run.append(burst("ann", 5, start_ms=now - 3 * HOUR_MS))  # over by now: no block in force holds back the log
    until_archived(run, "ann")
    run.stop()
    archiver(run, False)
    run.start()
    rounds = iter(range(40))

    def lost():
        number = next(rounds)
        run.append("".join(burst(f"u{number}-{i:03d}" + "x" * 40, 4, start_ms=now - 3 * HOUR_MS) for i in range(500)))
        until(lambda: len(run.decisions()) >= 1 + 500 * (number + 1), "all are blocked", running=run.weir)
        return b'"u0-000' not in run.command("decode", "--topic", "decisions").out()

    until(lost, "the log has lost decisions that came meanwhile", 4 * PATIENCE_S, run.weir)
    run.stop()
    archiver(run, True)
    run.start()
    run.append(burst("bob", 5, start_ms=now))
    until_archived(run, "bob")
    assert "decisions arrived while archiver.enabled was off" in run.weir.said(), run.weir.said()
    assert archived(run, "decision_history", "ann") == 1
    run.stop()


def test_a_clock_that_is_far_ahead_deletes_nothing(place):
    """Neither at the start, nor once events have come by it, nor at the next start; and it is said."""
    run = Run(place)
    run.place.config(run.zones, [source(run.log)], bus={"partitions": PARTITIONS}, archiver={
        "enabled": True, "interval": "100ms", **{f"keep_{table}": "30d" for table in ("hourly", "daily", "decisions", "totals")}})
    now = int(time.time() * 1000)
    far = {"env": {**os.environ, **stepped(400 * 24 * 3600)}}
    run.start()
    run.append(burst("ann", 5, start_ms=now))
    until_archived(run, "ann")
    run.stop()
    with contextlib.closing(sqlite3.connect(os.path.join(run.state, "weir.db"), timeout=PATIENCE_S)) as database:
        database.execute("DELETE FROM note WHERE name = 'archive.kept'")  # as of an earlier weir
        database.commit()
    for name in ("bob", "eve"):
        run.start(**far)
        until(lambda: "days ahead" in run.weir.said(), "it says so", running=run.weir)
        run.append(burst(name, 5, start_ms=now + 400 * 24 * HOUR_MS))
        until_archived(run, name)
        run.stop()
        assert archived(run, "count_hourly", "ann") == archived(run, "decision_history", "ann") == 1
        assert archived(run, "count_daily", "ann") == 1
    run.start()
    run.append(burst("tom", 5, start_ms=now))
    until_archived(run, "tom")
    run.stop()
    assert "days ahead" not in run.weir.said(), run.weir.said()


if __name__ == "__main__":
    cases.main(globals())
