#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` on files of an HDFS, against the same lines in a file, in the same run.

Medians of alternating runs, with `curl` of the same file to /dev/null between them, as the DataNode shares this machine's
processors with weir; and the nanoseconds of processor that a line takes. WEIR_BENCH=smoke runs a small size, only to show
that it works; it leaves with 77 where there are no servers.
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
from support import bench
from support.webhdfs import Home

WEIR = os.environ.get("WEIR_BIN", "build/release/bin/weir")
SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
LINES = 20_000 if SMOKE else 2_000_000
RUNS = 1 if SMOKE else 5
GOAL, SKIPPED = 0.7, 77


def rate(command, server):
    """What a command makes of the lines: (lines a second, its nanoseconds of processor a line, the server's), its words."""
    own_s, server_s, began = bench.ended_cpu_s(), bench.cpu_s(server), time.monotonic()
    done = subprocess.run(command, check=True, stderr=subprocess.PIPE)
    spent = time.monotonic() - began
    cpu = bench.ended_cpu_s() - own_s, bench.cpu_s(server) - server_s
    return (LINES / spent, *(seconds * 1e9 / LINES for seconds in cpu)), done.stderr.decode()


def weir_rate(directory, source, server):
    """Of a run over a source."""
    path = os.path.join(directory, "weir.json")
    zones = [{"name": "site", "key": ["ip"], "limits": [{"algorithm": "fixed_window", "rate": 1000000, "window": "1h"}]}]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"zones": zones, "sources": [{"format": "combined", **source}]}, file)
    found, said = rate([WEIR, "run", "--once", "--config", path, "--summary", "json", "--decisions",
                        os.path.join(directory, "decisions")], server)
    assert f'"lines":{LINES}' in said.replace(" ", ""), said[-500:]
    return found


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
            server, plain, curl, remote = one.datanode.process.pid(), [], [], []
            address = f"{one.urls[0]}/webhdfs/v1/bench/access.log?op=OPEN"
            for _ in range(RUNS):
                plain.append(weir_rate(directory, {"type": "file", "path": path}, server))
                curl.append(rate(["curl", "-s", "-L", "-o", "/dev/null", address], server)[0])
                remote.append(weir_rate(directory, {"type": "webhdfs", "url": one.urls, "path": "/bench/*"}, server))
        finally:
            one.take_down()
        file, bare, found = ([statistics.median(column) for column in zip(*runs)] for runs in (plain, curl, remote))
        bench.report("webhdfs", unit="lines/s", rate=round(found[0]), ceiling=round(file[0]),
                     ratio=round(found[0] / file[0], 3), goal=GOAL, curl_lines_per_s=round(bare[0]),
                     file_cpu_ns=round(file[1]), webhdfs_cpu_ns=round(found[1]), server_cpu_ns=round(found[2]),
                     curl_cpu_ns=round(bare[1]), server_cpu_ns_for_curl=round(bare[2]), lines=LINES, runs=RUNS)


if __name__ == "__main__":
    main()
