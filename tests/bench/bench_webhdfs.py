#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` on files of an HDFS, against the same lines in a file, in the same run.

Medians of alternating runs. WEIR_BENCH=smoke runs a small size, only to show that it works; it leaves with 77 where there
are no servers.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "deploy", "cluster")]

# pylint: disable=wrong-import-position
from parts import hdfs
from parts.words import Unavailable
from support.webhdfs import Home

WEIR = os.environ.get("WEIR_BIN", "build/release/bin/weir")
SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
LINES = 20_000 if SMOKE else 2_000_000
RUNS = 1 if SMOKE else 5
GOAL, SKIPPED = 0.7, 77


def rate(directory, source):
    """Lines a second of one run over a source."""
    path = os.path.join(directory, "weir.json")
    zones = [{"name": "site", "key": ["ip"], "limits": [{"algorithm": "fixed_window", "rate": 1000000, "window": "1h"}]}]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"zones": zones, "sources": [{"format": "combined", **source}]}, file)
    began = time.monotonic()
    done = subprocess.run([WEIR, "run", "--once", "--config", path, "--summary", "json", "--decisions",
                           os.path.join(directory, "decisions")], check=True, stderr=subprocess.PIPE)
    spent = time.monotonic() - began
    assert f'"lines":{LINES}' in done.stderr.decode().replace(" ", ""), done.stderr[-500:]
    return LINES / spent


def main():
    """Measures it."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        one, path = hdfs.Hdfs(Home(os.path.join(directory, "home"))), os.path.join(directory, "access.log")
        try:
            one.bring_up()
        except Unavailable as why:
            print(f"skipped: {why}")
            sys.exit(SKIPPED)
        try:
            subprocess.run([WEIR, "generate", "--lines", str(LINES), "--users", "200000", "--seed", "1", "--output", path],
                           check=True, stderr=subprocess.DEVNULL)
            with open(path, "rb") as file:
                one.put("/bench/access.log", file.read())
            plain, remote = [], []
            for _ in range(RUNS):
                plain.append(rate(directory, {"type": "file", "path": path}))
                remote.append(rate(directory, {"type": "webhdfs", "url": one.urls, "path": "/bench/*"}))
        finally:
            one.take_down()
        print(json.dumps({"bench": "webhdfs", "unit": "lines/s", "rate": round(statistics.median(remote)),
                          "ceiling": round(statistics.median(plain)),
                          "ratio": round(statistics.median(remote) / statistics.median(plain), 3), "goal": GOAL,
                          "lines": LINES, "runs": RUNS}), flush=True)


if __name__ == "__main__":
    main()
