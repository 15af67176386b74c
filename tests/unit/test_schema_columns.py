#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two schemas have the same tables and views with the same columns, so that a query is written once."""

import os
import re
import sqlite3
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What the state of a limiter is kept in differs, and is not for people.
OTHER_NAMES = {"partition": "partition_id"}
SERVERS_ONLY = {("schema_version", "program"), ("segment_state", "length")}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def columns_of_sqlite():
    database = sqlite3.connect(":memory:")
    database.executescript(read("common/store/sqlite/schema.sql"))
    names = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {name: [OTHER_NAMES.get(row[1], row[1]) for row in database.execute(f"PRAGMA table_info({name})")]
            for name in names}


def outside_brackets(text):
    """Its parts between the commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def columns_of_servers():
    text = re.sub(r"--[^\n]*", "", read("deploy/mysql/schema.sql"))
    found = {}
    for name, body in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\) ", text, flags=re.S):
        rows = [row.split()[0] for row in outside_brackets(body)]
        found[name] = [row for row in rows if row not in ("PRIMARY", "KEY") and (name, row) not in SERVERS_ONLY]
    for name, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", text):  # of a later step
        found[name].append(column)
    for name, body in re.findall(r"VIEW (\w+) AS\s+SELECT (.*?)\s+FROM \w+", text, flags=re.S):
        # A column's name is its last word, without the table's before it.
        found[name] = [re.split(r"[\s.]", part)[-1] for part in outside_brackets(body)]
    return found


def main():
    here, there = columns_of_sqlite(), columns_of_servers()
    assert sorted(here) == sorted(there), f"SQLite has {sorted(here)}, servers {sorted(there)}"
    assert len(here) == 17, sorted(here)
    for enforced, shadow in (("decision_history", "shadow_history"), ("decisions", "shadow_decisions")):
        assert here[enforced] == here[shadow], "a query of the one is one of the other"
    for name, columns in here.items():
        assert columns == there[name], f"{name}: SQLite has\n  {columns}\nand servers\n  {there[name]}"
    print(f"{len(here)} tables and views have the same columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
