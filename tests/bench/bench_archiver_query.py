#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long an analyst waits: the archiver's API on MariaDB and on SQLite, with a million users and many decisions.

query_NAME   a question asked again and again over HTTP, each time about another user, zone or page: median and p99
             beside the goal; with MariaDB's own plan for it, from its slow log (key: rows examined)

  user_year       one user's year by hour: 8,760 rows
  zone_year       all keys' year by day
  top_day         the top 100 of a day among all users, by blocked, passed and both
  decisions       the first page of all decisions; of one zone; of one key; and the page after it

WEIR_BENCH_USERS and WEIR_BENCH_DECISIONS say how many (a million each), WEIR_BENCH_STORE=sqlite or mariadb takes one of
the two; WEIR_BENCH=smoke runs a small size.
"""

import contextlib
import os
import re
import sqlite3
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import archiver_api, bench, cluster
from support.archiver_rows import policies
from support.bench import SMOKE, report
from support.place import Place

USERS = int(os.environ.get("WEIR_BENCH_USERS", 2000 if SMOKE else 1_000_000))
DECISIONS = int(os.environ.get("WEIR_BENCH_DECISIONS", 20_000 if SMOKE else 1_000_000))
STORES = os.environ.get("WEIR_BENCH_STORE", "sqlite,mariadb").split(",")
YEARLY = 10 if SMOKE else 100  # users who came every hour of the year
ASKED = 20 if SMOKE else 200
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
END_MS = int(time.time() * 1000) // DAY_MS * DAY_MS  # of a year
FIRST_MS = END_MS - 365 * DAY_MS
STEP_MS = 365 * DAY_MS // DECISIONS
CHUNK = 1_000_000
POOL_MIB = 1024  # MariaDB's memory for pages: a day of a million users is 130 MB, and the trial cluster has as much

# Each goes into its table for every number n of a range; u(x) is a key.
FILL = (
    ("count_daily", USERS, f"SELECT {END_MS - DAY_MS}, 1, u(n), n * 7919 % 1000, n * 104729 % 5000 % 97, 0"),
    ("count_hourly", USERS, f"SELECT 1, u(n), {END_MS - HOUR_MS}, 1, 0, 0"),
    ("count_hourly", YEARLY * 8760, f"SELECT 2, u(n % {YEARLY}), {FIRST_MS} + n / {YEARLY} * {HOUR_MS}, n % 60, 1, 0"),
    ("zone_hourly", 8760 * 4, f"SELECT 2, {FIRST_MS} + n / 4 * {HOUR_MS}, n % 4, n % 60, 1, 0"),
    ("decision_history", DECISIONS,
     f"SELECT {FIRST_MS} + n * {STEP_MS}, n % 8, n, 0, substr('site_login', 1 + n % 2 * 5, 4 + n % 2), u(n * 7919 % {USERS}),"
     f" 'block', {FIRST_MS} + n * {STEP_MS} + 300000, 'enforce', 'sliding_window', 10, 60000, 10, NULL, NULL, NULL"),
)

# (name, goal in ms, parameters of the n-th time)
ASK = (
    ("user_year", 50, "counts", lambda n: {"zone": "login", "key": f"u{n * 7 % YEARLY}", "grain": "hour", "from": FIRST_MS,
                                           "to": END_MS}),
    ("zone_year", None, "counts", lambda n: {"zone": "login", "grain": "day", "from": FIRST_MS + n * HOUR_MS, "to": END_MS}),
    ("top_day", 500, "top", lambda n: {"zone": "site", "day": END_MS - DAY_MS, "limit": 100,
                                       "by": ("blocked", "passed", "total")[n % 3]}),
    ("top_hours", None, "top", lambda n: {"zone": "site", "grain": "hour", "from": END_MS - (1 + n % 20) * HOUR_MS,
                                          "to": END_MS, "limit": 100}),
    ("held", 50, "held", lambda n: {"zone": ("site", "login")[n % 2], "key": f"u{n * 104729 % USERS}", "from": FIRST_MS,
                                    "to": END_MS}),
    ("decisions", 50, "decisions", lambda n: {"limit": 100, "to": END_MS - n * 1000}),
    ("decisions_zone", 50, "decisions", lambda n: {"zone": ("site", "login")[n % 2], "limit": 100}),
    ("decisions_key", 50, "decisions", lambda n: {"zone": ("site", "login")[n % 2], "key": f"u{n * 104729 % USERS}"}),
)


class Sqlite:
    """A file's own ways."""
    kind = "sqlite"

    def __init__(self, api):
        self.api = api

    def run(self, *statements):
        """Runs SQL."""
        with contextlib.closing(sqlite3.connect(self.api.database, timeout=60)) as database, database:
            for statement in statements:
                database.execute(statement)

    def indexes(self, table):
        """Statements that drop a table's indexes, and that make them."""
        with contextlib.closing(sqlite3.connect(self.api.database)) as database:
            made = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql <> ''",
                                    (table,)).fetchall()
        return [f"DROP INDEX {name}" for name, _ in made], ["PRAGMA cache_size = -500000", *(sql for _, sql in made)]

    @staticmethod
    def fill(table, first, last, select):
        """An INSERT of these numbers' rows."""
        select = re.sub(r"u\(([^()]*)\)", r"'u' || (\1)", select)
        return (f"WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {last})"
                f" INSERT INTO {table} {select} FROM numbers")

    def plan(self, _):
        """None is told."""


class Mariadb:
    """A server's."""
    kind = "mariadb"

    def __init__(self, api, servers):
        self.api, self._servers = api, servers

    def run(self, *statements):
        """Runs SQL."""
        with self.api.mariadb.connect(read_timeout=3600) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def indexes(self, table):
        """Statements that drop a table's indexes, and that make them."""
        with self.api.mariadb.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index) FROM information_schema.statistics"
                           " WHERE table_schema = DATABASE() AND table_name = %s AND index_name <> 'PRIMARY'"
                           " GROUP BY index_name", (table,))
            made = cursor.fetchall()
        drop = ", ".join(f"DROP INDEX {name}" for name, _ in made)
        make = ", ".join(f"ADD INDEX {name} ({columns})" for name, columns in made)
        return [f"ALTER TABLE {table} {drop}"], [f"ALTER TABLE {table} {make}"]

    @staticmethod
    def fill(table, first, last, select):
        """An INSERT of these numbers' rows."""
        select = re.sub(r"u\(([^()]*)\)", r"CONCAT('u', \1)", select).replace(" / ", " DIV ")
        return f"INSERT INTO {table} {select} FROM (SELECT seq AS n FROM seq_{first}_to_{last - 1}) AS numbers"

    def partition(self):
        """Months, as the archiver would have made them."""
        bounds = [FIRST_MS // DAY_MS + days for days in range(0, 420, 30)]
        parts = ", ".join(f"PARTITION before_day_{day} VALUES LESS THAN ({day * DAY_MS})" for day in bounds)
        for table in ("count_hourly", "count_daily", "zone_hourly", "decision_history"):
            self.run(f"ALTER TABLE {table} REORGANIZE PARTITION later INTO ({parts}, PARTITION later VALUES LESS THAN MAXVALUE)")

    def give_memory(self):
        """As much as a server for so many users is given."""
        self._servers.mariadb_root.query(f"SET GLOBAL innodb_buffer_pool_size = {POOL_MIB << 20}")

    def plan(self, ask):
        """What the server says of how it answered: [key, rows] of each table."""
        root, log = self._servers.mariadb_root, os.path.join(self._servers.directory, "plans.log")
        root.query(f"SET GLOBAL slow_query_log_file = '{log}', GLOBAL long_query_time = 0, GLOBAL slow_query_log = 1,"
                   " GLOBAL log_slow_verbosity = 'query_plan,explain'")
        with Place(None) as place:  # a session takes the settings as it begins
            api = archiver_api.OnMariadb(place, self._servers)
            ask(api)
            api.end()
        root.query("SET GLOBAL slow_query_log = 0")
        with open(log, encoding="utf-8", errors="replace") as file:
            rows = re.findall(r"# explain: (\d+\t.*)", file.read())
        os.remove(log)
        tables = [row.split("\t") for row in rows]  # id, select, table, type, possible, key, length, ref, rows, ...
        return [f"{row[2]}: {row[3]} {row[5]}, {row[8]} rows" for row in tables
                if row[2] in ("count_daily", "count_hourly", "zone_hourly", "d", "n")]


def fill(store):
    """Fills it: seconds."""
    began = time.monotonic()
    store.api.insert("policy_version", policies())
    for table, count, select in FILL:
        drop, make = store.indexes(table) if table == "decision_history" else ([], [])  # quicker than row by row
        store.run(*drop)
        for first in range(0, count, CHUNK):
            store.run(store.fill(table, first, min(first + CHUNK, count), select))
        store.run(*make)
    return time.monotonic() - began


def measure_store(store):
    """Asks everything."""
    filled_s = fill(store)
    for name, goal, resource, parameters in ASK:
        taken = []

        def ask(api, number=0, resource=resource, parameters=parameters):
            answer = api.raw(f"/api/v1/{resource}?{urllib.parse.urlencode(parameters(number))}", patience_s=60)
            assert answer.status == 200 and len(answer.body) > 100, (answer.status, answer.body[:300])

        for number in range(ASKED):
            began = time.monotonic()
            ask(store.api, number)
            taken.append(1000 * (time.monotonic() - began))
        more = {"plan": store.plan(ask)} if store.kind == "mariadb" else {}
        report(f"query_{name}", store=store.kind, unit="ms", median=round(statistics.median(taken), 1),
               p99=round(statistics.quantiles(taken, n=100)[98], 1), goal=goal, users=USERS, decisions=DECISIONS,
               filled_s=round(filled_s), **more)


def measure_sqlite(place):
    """A file."""
    api = archiver_api.on_sqlite(place)
    measure_store(Sqlite(api))
    api.end()


def measure_mariadb(place):
    """A server of its own."""
    with cluster.own(parent=place.directory) as servers, Place(None) as second:
        api = archiver_api.OnMariadb(second, servers)
        store = Mariadb(api, servers)
        store.give_memory()
        store.partition()
        measure_store(store)
        api.end()


def measure(place):
    """One store after the other."""
    for store in STORES:
        {"sqlite": measure_sqlite, "mariadb": measure_mariadb}[store](place)


if __name__ == "__main__":
    bench.main("archiver-query", measure)
