#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast what was judged is archived: counts by hour and day of 200,000 users.

archive_mariadb         weir-archiver alone on a filled judged topic, against the limiter's rate on the same log; and
                        against one autocommitted INSERT an event, in the same run. The log is of as many lines a second
                        as the whole of weir takes: so many events of a user have one hour
archive_mariadb_replay  the same of a log of a thousand lines a second: hours go by in seconds, so there are as many more
                        rows to write
archive_sqlite          `weir run --once` with the archive in its state, against without; and against one autocommitted
                        INSERT an event into that state, as durable
archive_history         a part of that topic with every event kept: rows a second, against LOAD DATA of the same rows;
                        the median of three rounds, on a server that has memory for the table

WEIR_BENCH=smoke runs a small size.
"""
import json
import os
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report
from support.place import Place
from support.traffic import fixed, sliding, zone

LINES = int(os.environ.get("WEIR_BENCH_LINES", 30_000 if SMOKE else 20_000_000))
LIVE_LINES, LIVE_RATE = 2 * LINES, 2_000_000
HISTORY_LINES = LINES // 5
HISTORY_ROUNDS = 1 if SMOKE else 3
POOL_MIB, REDO_MIB = 2048, 1024
INSERTS = 200 if SMOKE else 3000
PATIENCE_S = 900
SECTIONS = {"bus": {"partitions": 8}, "limiter": {"threads": 2, "memory": "2GiB"}, "archiver": {"enabled": True}}
LIMITS = [sliding(10, "1m"), fixed(100, "1h"), fixed(1000, "1d")]


def archived(archiver):
    """Reads how many events it has counted."""
    return lambda: archiver.value("weir_archiver_events_total")


def stored(servers):
    """How many events the store has counted."""
    return int(servers.mariadb.one("SELECT COALESCE(SUM(passed + blocked), 0) FROM count_daily"))


def fill(place, roles, path, lines):
    """Lets a log be judged whole: the rate of it."""
    bench.fill(roles, path, lines, PATIENCE_S)
    limiter = roles.limiter()
    samples = bench.Samples(bench.judged(limiter)).until(lines, PATIENCE_S)
    assert limiter.stop(PATIENCE_S) == 0
    return samples.rate()


def archive(servers, roles, lines):
    """Archives the topic from its beginning: seconds until all of it is stored, and the archiver's own processor time."""
    begun = time.monotonic()
    archiver = roles.archiver()
    bench.Samples(archived(archiver)).until(lines, PATIENCE_S)
    used = bench.cpu_s(archiver.run.pid)
    assert archiver.stop(PATIENCE_S) == 0
    seconds = time.monotonic() - begun
    assert stored(servers) == lines, f"{stored(servers)} of {lines} events are stored"
    return seconds, used


def insert_rate(servers):
    """Rows a second of a table like zone_txn, each in a statement and a transaction of its own."""
    servers.mariadb.query("CREATE TABLE one_by_one LIKE zone_txn")
    with servers.mariadb.connect() as connection, connection.cursor() as cursor:
        begun = time.monotonic()
        for number in range(INSERTS):
            cursor.execute("INSERT INTO one_by_one (zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked)"
                           " VALUES (1, %s, %s, 0, %s, 0, 0)",
                           (f"u{number * 7919 % 1000}", number, number))
        return INSERTS / (time.monotonic() - begun)


def sqlite_insert_rate(path):
    """The same of a state's database."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    begun = time.monotonic()
    for number in range(INSERTS):
        connection.execute("INSERT INTO zone_txn (zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked)"
                           " VALUES (1, ?, ?, 0, ?, 0, 0)", (f"u{number * 7919 % 1000}".encode(), number, number))
    rate = INSERTS / (time.monotonic() - begun)
    connection.close()
    return rate


def measure_mariadb(place, name, path, lines):
    """Counts alone."""
    with bench.stage(place, zones=[zone("site", LIMITS, id=1, key=["ip"])], **SECTIONS) as (servers, roles):
        roles.apply()
        judged = fill(place, roles, path, lines)
        seconds, used = archive(servers, roles, lines)
        rows = servers.mariadb.one("SELECT COUNT(*) FROM count_hourly") + servers.mariadb.one(
            "SELECT COUNT(*) FROM count_daily")
        single = insert_rate(servers)
    rate = lines / seconds
    report(name, unit="events/s", rate=round(rate), ceiling=round(judged), ratio=round(rate / judged, 3),
           inserts=round(single), times_inserts=round(rate / single), goal_times=100, seconds=round(seconds, 1),
           rows=int(rows), lines=lines, cpu_ns=round(used / lines * 1e9))


def bulk_rate(place, servers):
    """Rows a second of the server's own bulk load of what zone_txn holds, in its order."""
    path = place.path("rows.txt")
    rows = servers.mariadb.query("SELECT zone_id, HEX(bucket), at_ms, partition_id, log_offset, pair, blocked"
                                 " FROM zone_txn ORDER BY 1, bucket, 3, 4, 5, 6")
    with open(path, "w", encoding="ascii") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)
    servers.mariadb.query("CREATE TABLE loaded LIKE zone_txn")
    with servers.mariadb.connect(local_infile=True) as connection, connection.cursor() as cursor:
        begun = time.monotonic()
        cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded"
                       " (zone_id, @bucket, at_ms, partition_id, log_offset, pair, blocked) SET bucket = UNHEX(@bucket)")
        return len(rows) / (time.monotonic() - begun)


def history_round(weir, log):
    """Every event kept, and the same rows loaded: rows a second of each."""
    zones = [{**zone("site", LIMITS, id=1, key=["ip"]), "history": True}]
    with Place(weir) as place, bench.stage(place, zones=zones, **SECTIONS) as (servers, roles):
        servers.mariadb_root.query(f"SET GLOBAL innodb_buffer_pool_size = {POOL_MIB << 20},"
                                   f" GLOBAL innodb_log_file_size = {REDO_MIB << 20}")
        roles.apply()
        fill(place, roles, log, HISTORY_LINES)
        seconds, _ = archive(servers, roles, HISTORY_LINES)
        return HISTORY_LINES / seconds, bulk_rate(place, servers)


def measure_history(place, path):
    """The round in the middle by its ratio."""
    log = bench.first_lines(place, path, "history.log", HISTORY_LINES)
    rounds = [history_round(place.weir, log) for _ in range(HISTORY_ROUNDS)]
    rounds.sort(key=lambda rates: rates[0] / rates[1])
    rate, bulk = rounds[len(rounds) // 2]
    report("archive_history", unit="rows/s", rate=round(rate), ceiling=round(bulk), ratio=round(rate / bulk, 3),
           ratios=[round(one / other, 3) for one, other in rounds], goal=0.7, rows=HISTORY_LINES)


def measure_sqlite(place, path):
    """--once with the archive in its state, and without."""
    rates = {}
    for enabled in (False, True):
        config = place.config([zone("site", LIMITS, id=1, key=["ip"])], [bench.combined(path)], f"once-{enabled}.json",
                              archiver={"enabled": enabled}, limiter={"memory": "2GiB"})
        done = place.good("run", "--once", "--config", config, "--state", place.path(f"state-{enabled}"), "--decisions",
                          "/dev/null", "--summary", "json", "--quiet", patience_s=PATIENCE_S)
        rates[enabled] = LINES / json.loads(done.said().splitlines()[-1])["seconds"]
    single = sqlite_insert_rate(place.path("state-True/weir.db"))
    report("archive_sqlite", unit="lines/s", rate=round(rates[True]), ceiling=round(rates[False]),
           ratio=round(rates[True] / rates[False], 3), inserts=round(single), times_inserts=round(rates[True] / single),
           goal_times=100)


def measure(place):
    """All of them."""
    path = bench.generate(place, "access.log", LINES)
    live = bench.generate(place, "live.log", LIVE_LINES, "--rate", LIVE_RATE)
    measure_mariadb(place, "archive_mariadb", live, LIVE_LINES)
    os.remove(live)
    measure_mariadb(place, "archive_mariadb_replay", path, LINES)
    measure_sqlite(place, path)
    measure_history(place, path)


if __name__ == "__main__":
    bench.main("archiver", measure)
