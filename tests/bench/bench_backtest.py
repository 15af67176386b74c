#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir backtest` against `weir run --once` on the same log, with one policy and with three; and against DuckDB's window
functions on the question who exceeds 10 requests in a minute.

Figures are seconds of the processor, user and system, of all threads: medians of alternating runs. DuckDB takes part where
Python has it, and must name as many keys. WEIR_BENCH=smoke runs a small size, only to show that it works.
"""

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

WEIR = os.environ.get("WEIR_BIN", "build/release/bin/weir")
SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
LINES = 20_000 if SMOKE else 2_000_000
RUNS = 1 if SMOKE else 3
LIMITS = {"ten": (10, "sliding_window"), "twenty": (20, "sliding_window"), "bucket": (10, "token_bucket")}

# A window of a minute has the events of which the oldest is less than a minute old: weir's are whole milliseconds.
DUCKDB = r"""
import duckdb, sys
base = duckdb.connect(config={"threads": 2})
base.execute("set enable_progress_bar = false")
print(base.execute('''
    with events as (
        select regexp_extract(line, '^(\\S+)', 1) as ip,
               strptime(regexp_extract(line, '\\[([^\\]]+)\\]', 1), '%d/%b/%Y:%H:%M:%S %z') as t
        from read_csv(?, columns={'line': 'varchar'}, delim=chr(1), quote='', escape='', header=false)),
    counted as (
        select ip, count(*) over (partition by ip order by t
                                  range between interval 59999 milliseconds preceding and current row) as held
        from events)
    select count(distinct ip) from counted where held > 10''', [sys.argv[1]]).fetchone()[0])
"""


def processor_s(command):
    """(seconds of the processor that a command took, what it wrote)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


def policies(directory, log):
    """Their paths."""
    paths = []
    for name, (rate, algorithm) in LIMITS.items():
        config = {"zones": [{"name": "site", "key": ["ip"],
                             "limits": [{"algorithm": algorithm, "rate": rate, "window": "1m"}]}],
                  "sources": [{"type": "file", "path": log, "format": "combined"}]}
        paths.append(os.path.join(directory, name + ".json"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump(config, file)
    return paths


def backtest(paths, report):
    """The command."""
    return [WEIR, "backtest", "--quiet", *(word for path in paths for word in ("--config", path)), "--json", report]


def main():
    """Measures all in turn."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        log, report = os.path.join(directory, "access.log"), os.path.join(directory, "report.json")
        subprocess.run([WEIR, "generate", "--lines", str(LINES), "--users", "200000", "--rate", "200", "--output", log],
                       check=True, stderr=subprocess.DEVNULL)
        paths = policies(directory, log)
        commands = {
            "once": [WEIR, "run", "--once", "--quiet", "--config", paths[0], "--decisions", "/dev/null"],
            "backtest_1": backtest(paths[:1], report),
            "backtest_3": backtest(paths, report),
        }
        if importlib.util.find_spec("duckdb") is not None:
            commands["duckdb"] = [sys.executable, "-c", DUCKDB, log]
        taken, said = {name: [] for name in commands}, {}
        for _ in range(RUNS):
            for name, command in commands.items():
                seconds, said[name] = processor_s(command)
                taken[name].append(seconds)
        with open(report, encoding="utf-8") as file:
            keys = json.load(file)["policies"][0]["zones"][0]["blocked_keys"]
        if "duckdb" in commands:
            assert int(said["duckdb"]) == keys, (said["duckdb"], keys)
        for name, seconds in taken.items():
            own = statistics.median(seconds)
            print(json.dumps({"bench": f"backtest_{name}".replace("backtest_backtest", "backtest"), "unit": "ns/line",
                              "rate": round(own * 1e9 / LINES), "of_once": round(own / statistics.median(taken["once"]), 2),
                              "lines": LINES, "runs": RUNS, "blocked_keys": keys}), flush=True)


if __name__ == "__main__":
    main()
