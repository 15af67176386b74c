#!/usr/bin/env python3
"""deploy/mysql/schema.sql holds, word for word, the statements by which the store makes its tables."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def plain(statement):
    """Words with one space between, none within brackets."""
    return re.sub(r"\s*([(),])\s*", r"\1 ", " ".join(statement.split())).strip()


def of_the_file():
    text = re.sub(r"--[^\n]*", "", read("deploy/mysql/schema.sql"))
    return [plain(part) for part in text.split(";") if part.strip()]


def of_the_store():
    """The steps' statements: each is string literals, and macros of them, up to a comma."""
    code = re.sub(r"/\*.*?\*/", "", read("common/store/mysql/store_mysql_schema.c"), flags=re.S).replace("\\\n", " ")
    macros = {name: "".join(re.findall(r'"([^"]*)"', value))
              for name, value in re.findall(r"#define (\w+)[ \t]+(.*)", code)}
    found = []
    for step in re.findall(r"\*const step_\d+\[\] = \{(.*?)NULL,\s*\};", code, flags=re.S):
        statement = ""
        for literal, name, comma in re.findall(r'"([^"]*)"|(\w+)|(,)', step):
            if comma:
                found.append(plain(statement))
                statement = ""
            else:
                statement += macros[name] if name else literal
        assert not statement, statement
    return found


def main():
    file, store = of_the_file(), of_the_store()
    assert len(store) >= 8, store
    for ours, theirs in zip(file, store):
        assert ours == theirs, f"schema.sql has\n  {ours}\nand the store\n  {theirs}"
    assert len(file) == len(store), f"schema.sql has {len(file)} statements, the store {len(store)}"
    print(f"{len(file)} statements are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
