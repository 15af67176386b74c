#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archive, asked in SQL by people: archiver/queries.md, word for word, on SQLite and on MariaDB; and the views' plans.

The page says how its sample is made: the test does just that. A server has the same rows. By WEIR_WRITE_PAGE=1 the page's
results are written anew, from SQLite, instead of compared.
"""

import os
import re
import shlex
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import own_mariadb
from support.place import ROOT

PAGE = os.path.join(ROOT, "archiver", "queries.md")
TABLES = ("zone_master", "count_hourly", "count_daily", "decision_history", "zone_txn")
ASKED = re.compile(r"(?s)```sql\n(.*?);\n```\n(?:\n((?:\|[^\n]*\n)+))?")
SERVERS = []


def page():
    """What it says."""
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def block(kind):
    """The page's only block of a kind."""
    (found,) = re.findall(rf"(?s)```{kind}\n(.*?)```", page())
    return found


def sample(place):
    """Does what the page says: a connection to the state's database."""
    place.write("sample.json", block("json"))
    generate, run, show = (shlex.split(line) for line in block("sh").splitlines())
    log, config, state = generate.pop(), place.path("sample.json"), run[run.index("--state") + 1]
    assert generate.pop() == ">" and generate[:2] == ["weir", "generate"] and run[:3] == ["weir", "run", "--once"]
    place.write(log, place.good(*generate[1:]).out())
    place.good(*(config if word == "sample.json" else word for word in run[1:]), cwd=place.directory)
    assert show[-1] == f"{state}/weir.db", show
    return sqlite3.connect(f"file:{place.path(show[-1])}?mode=ro", uri=True)


def shown(rows):
    """Rows as the page has them."""
    return [["" if value is None else value.decode() if isinstance(value, bytes) else str(value) for value in row]
            for row in rows]


def literal(value):
    """A value in a server's SQL."""
    if value is None or isinstance(value, int):
        return "NULL" if value is None else str(value)
    return f"_utf8mb4 x'{value.encode().hex()}'" if value else "''"


def copied(lite, server, database):
    """Makes a server's database with the same rows."""
    with open(os.path.join(ROOT, "deploy/mysql/schema.sql"), encoding="utf-8") as file:
        schema = file.read()
    server.sql(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    server.sql(schema, database)
    for table in TABLES:
        rows = lite.execute(f"SELECT * FROM {table}").fetchall()
        assert rows, table
        values = ",".join(f"({','.join(map(literal, row))})" for row in rows)
        columns = ", ".join(row[1] for row in lite.execute(f"PRAGMA table_info({table})"))
        server.sql(f"INSERT INTO {table} ({columns}) VALUES {values}; ANALYZE TABLE {table}", database)


def as_table(columns, rows):
    """A table in Markdown."""
    line = "| {} |\n".format
    return line(" | ".join(columns)) + "|" + "---|" * len(columns) + "\n" + "".join(
        line(" | ".join(row)) for row in rows)


def write_page(lite):
    """The page with the results as they are."""
    def answered(found):
        asked = lite.execute(found[1])
        table = as_table([column[0] for column in asked.description], shown(asked.fetchall()))
        return f"```sql\n{found[1]};\n```\n\n{table}"
    text = ASKED.sub(answered, page())
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


def test_the_page(place):
    lite = sample(place)
    if os.environ.get("WEIR_WRITE_PAGE"):
        write_page(lite)
    copied(lite, SERVERS[0], "sample")
    queries = ASKED.findall(page())
    assert len(queries) == 10 == len(re.findall(r"(?m)^## \d+\. ", page()))
    for sql, table in queries:
        asked = lite.execute(sql)
        rows = shown(asked.fetchall())
        assert len(rows) > 0, sql
        want = as_table([column[0] for column in asked.description], rows)
        assert table == want, f"the page has\n{table}\nand SQLite gives\n{want}"
        given = SERVERS[0].sql(sql, "sample")
        assert given == rows, f"{sql}\nSQLite gives\n{rows}\nand the server\n{given}"


# A view, what is asked of it, the server's key that must answer it, and the terms that SQLite must search by.
INDEXED = (
    ("hourly", "zone = 'site' AND bucket = '80.153.16.10'", "PRIMARY", "zone_id=? AND bucket=?"),
    ("daily", "zone = 'site' AND bucket = '80.153.16.10'", "count_daily_bucket", "zone_id=? AND bucket=?"),
    ("daily", "zone = 'site' AND day_ms = 1735776000000", "PRIMARY", "day_ms=?"),
    ("decisions", "zone = 'site' AND bucket = '80.153.16.10'", "decision_bucket", "zone=? AND bucket=?"),
    ("decisions", "zone = 'site' ORDER BY at_ms DESC LIMIT 3", "decision_zone", "zone=?"),
    ("decisions", "until_ms > 1735888800000", "decision_until", "until_ms>?"),
    ("events", "zone = 'forms' AND bucket = '80.153.16.10'", "PRIMARY", "zone_id=? AND bucket=?"),
)


def test_views_use_the_indexes_of_their_tables(place):
    lite = sample(place)
    copied(lite, SERVERS[0], "plans")
    for view, where, index, terms in INDEXED:
        sql = f"SELECT * FROM {view} WHERE {where}"
        assert lite.execute(sql).fetchone() is not None, sql
        plan = [row[3] for row in lite.execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert any(f"({terms}" in step or f"({terms})" in step for step in plan), (sql, plan)
        assert not any(step.startswith("SCAN") and "zone_master" not in step for step in plan), (sql, plan)
        rows = SERVERS[0].sql(f"EXPLAIN {sql}", "plans")
        keys = [row[6 if len(row) > 10 else 5] for row in rows]
        assert index in keys, (sql, rows)
        assert all(row[1] == "SIMPLE" for row in rows), (sql, rows)  # merged: no table is made of the view first


if __name__ == "__main__":
    own_mariadb.main(globals(), SERVERS.append)
