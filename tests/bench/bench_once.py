#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` on 5M lines of 200k users, against `LC_ALL=C grep -c POST FILE` on the same file in the same run.

Both read the file from the page cache; grep's output goes through a pipe, as to /dev/null it stops at its first
match. Medians of alternating runs. WEIR_BENCH=smoke runs a small size, only to show that it works.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

WEIR = os.environ.get("WEIR_BIN", "build/release/bin/weir")
SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
LINES = 50_000 if SMOKE else 5_000_000
RUNS = 1 if SMOKE else 5
LIMITS = ["--limit", "10/1m", "--limit", "100/1h", "--limit", "1000/1d"]


def seconds(command, **options):
    began = time.monotonic()
    subprocess.run(command, check=True, **options)
    return time.monotonic() - began


def grep(path):
    return seconds(["grep", "-c", "POST", path], stdout=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))


def weir(path, directory, *more):
    return seconds([WEIR, "run", "--once", "--quiet", "--format", "combined", "--key", "ip", *LIMITS, *more,
                    "--decisions", os.path.join(directory, "decisions.jsonl"), path])


def compare(name, path, directory, goal, *more):
    greps, weirs = [], []
    for _ in range(RUNS):
        greps.append(grep(path))
        weirs.append(weir(path, directory, *more))
    ceiling, rate = LINES / statistics.median(greps), LINES / statistics.median(weirs)
    print(json.dumps({"bench": name, "unit": "lines/s", "rate": round(rate), "ceiling": round(ceiling),
                      "ratio": round(rate / ceiling, 3), "goal": goal, "lines": LINES,
                      "bytes": os.path.getsize(path), "runs": RUNS}), flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        path = os.path.join(directory, "access.log")
        subprocess.run([WEIR, "generate", "--lines", str(LINES), "--users", "200000", "--seed", "1",
                        "--output", path], check=True, stderr=subprocess.DEVNULL)
        grep(path)  # into the page cache
        compare("once", path, directory, 0.5)
        compare_with_state(path, directory)
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(json.dumps({"bench": "once_memory", "unit": "MiB", "rate": round(peak_mib), "users": 200000}))


def compare_with_state(path, directory):
    """With checkpoints: each run needs a state and a decisions file of its own."""
    times = []
    for run in range(RUNS):
        own = os.path.join(directory, f"run{run}")
        os.mkdir(own)
        times.append(weir(path, own, "--state", os.path.join(own, "state")))
    print(json.dumps({"bench": "once_with_state", "unit": "lines/s", "rate": round(LINES / statistics.median(times)),
                      "lines": LINES, "runs": RUNS}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
