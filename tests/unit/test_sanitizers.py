#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sanitizers see every test but those that README.md names, each with its reason, as ctest's own labels tell."""

import fnmatch
import json
import os
import re
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WATCHABLE = {"unit", "integration", "fuzz"}
# What has to be watched, whatever a row says: where weir meets other programs, and where its threads meet.
BOTH = ("archiver_store", "bus_kafka", "cluster_archiver", "cluster_collector", "cluster_limiter", "follow", "source_kafka",
        "store_mysql", "subscribe", "syslog")
NEVER_LEFT_OUT = {"asan": (*BOTH, "subscribe_*", "cluster_bad_input"), "tsan": BOTH}
ROW = re.compile(r"^\| `(asan|tsan)` \| (.*?) \| (.+?) \|$", re.M)


def labels(build):
    """Each test's labels, as ctest lists them."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout)["tests"]:
        yield test["name"], next((set(made["value"]) for made in test["properties"] if made["name"] == "LABELS"), set())


def faults(build):
    with open(os.path.join(TESTS, "README.md"), encoding="utf-8") as file:
        told = ROW.findall(file.read())
    with open(os.path.join(build, "tests", "sanitizers.md"), encoding="utf-8") as file:
        made = ROW.findall(file.read())
    for row in sorted(set(made) ^ set(told)):
        where = "tests/README.md lacks the row" if row in made else "tests/README.md has a row that is not made:"
        yield f"{where} | `{row[0]}` | {row[1]} | {row[2]} |"
    tests = dict(labels(build))
    for sanitizer in ("asan", "tsan"):
        patterns = [name for row in told if row[0] == sanitizer for name in re.findall(r"`([^`]+)`", row[1])]
        for name, kinds in tests.items():
            if not kinds & WATCHABLE:
                continue
            left_out = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
            if left_out == (sanitizer in kinds):
                yield f"{name} is {'' if left_out else 'not '}left out by tests/README.md, and has the labels {sorted(kinds)}"
            if sanitizer not in kinds and any(fnmatch.fnmatchcase(name, f"integration.test_{one}") for one in NEVER_LEFT_OUT[sanitizer]):
                yield f"{name} has to run under {sanitizer}"


def main():
    build = os.environ.get("WEIR_BUILD")
    if not build:
        print("skipped: WEIR_BUILD names no build directory")
        return 77
    found = list(faults(build))
    for fault in found:
        print(fault)
    print(f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
