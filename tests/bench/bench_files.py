#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run` on very many followed files: start, restart, memory, CPU while nothing happens, and latency.

A start ends when the first lines of all files are read, a restart when a line written meanwhile is. Memory is what the
files add to a run with one. A line's latency is the time from its write to the decision that it brings, in files that
are drawn by chance, a quarter of them empty before. WEIR_BENCH=smoke runs a small size, WEIR_BENCH_FILES another.
"""
import json
import os
import random
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, metrics
from support.place import free_port, until
from support.traffic import fixed, line, source, zone
from support.watching import resident_bytes

FILES = int(os.environ.get("WEIR_BENCH_FILES", "200" if bench.SMOKE else "10000"))
IDLE_S, SAMPLES = (1, 50) if bench.SMOKE else (10, 1000)
FOLDERS = 10
TICKS = os.sysconf("SC_CLK_TCK")
GOALS = {"start": 2, "restart": 2, "memory": 20, "idle": 2, "latency": 20}


def now_ms():
    """The clock's time."""
    return time.time_ns() // 1_000_000


def make_files(place, count):
    """Files in some directories: each with a line of its own, but for a quarter, which are empty."""
    paths = []
    for folder in range(FOLDERS):
        os.makedirs(place.path("logs", str(folder)), exist_ok=True)
    for number in range(count):
        path = place.path("logs", str(number % FOLDERS), f"app-{number}.log")
        with open(path, "w", encoding="ascii") as file:
            if number % 4 != 3:
                file.write(line(now_ms(), f"first-{number}"))
        paths.append(path)
    return paths


class Run:
    """A weir that follows the files."""

    def __init__(self, place, name, pattern):
        self.place, self.port = place, free_port()
        self.decisions = place.path(f"{name}.jsonl")
        self.config = place.config([zone("site", [fixed(1, "1d")], id=1)], [source(pattern)], name=f"{name}.json",
                                   listen={"http": f"127.0.0.1:{self.port}"}, decisions={"path": self.decisions},
                                   bus={"partitions": 1}, limiter={"memory": "64MiB", "threads": 1})
        self.state, self.weir = place.path(f"{name}-state"), None

    def start(self):
        """Starts it."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.state, "--quiet")
        return time.monotonic()

    def lines(self):
        """How many lines it has read; -1 while it cannot say."""
        page = metrics.scrape(self.port)
        return page.value("weir_collector_lines_total") if page is not None else -1

    def until_lines(self, count):
        """Waits until it has read so many."""
        until(lambda: self.lines() >= count, f"{count} lines are read", patience_s=300, running=self.weir)
        return time.monotonic()

    def cpu_s(self):
        """The processor time that it has used."""
        with open(f"/proc/{self.weir.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def measure_latency(run, paths):
    """How long it takes from a line's write to its decision, in ms."""
    rng, taken = random.Random(1), []
    with open(run.decisions, encoding="utf-8") as decisions:
        decisions.seek(0, os.SEEK_END)
        for number in range(SAMPLES):
            path = paths[rng.randrange(len(paths))]
            text = line(now_ms(), f"late-{number}")
            with open(path, "a", encoding="ascii") as file:
                began = time.monotonic()
                file.write(text + text)
            wanted, seen = f"late-{number}\"", ""
            while wanted not in seen:
                seen += decisions.read()
                if time.monotonic() - began > 30:
                    raise AssertionError(f"no decision by {path}")
                time.sleep(0.0005)
            taken.append(1000 * (time.monotonic() - began))
            time.sleep(rng.random() * 0.01)
    return taken


def settle(run):
    """Waits until a second costs no more than the one before."""
    before, cost = run.cpu_s(), 1e9
    for _ in range(20):
        time.sleep(1)
        now = run.cpu_s()
        if now - before >= 0.9 * cost:
            return
        before, cost = now, now - before


def tell(name, unit, rate, **more):
    """One figure beside its goal."""
    bench.report(f"files_{name}", unit=unit, rate=round(rate, 3), goal=GOALS[name], files=FILES, **more)


def measure(place):
    """All figures."""
    alone = make_files(place, 1)
    single = Run(place, "single", alone[0])
    single.start()
    single.until_lines(1)
    settle(single)
    base_bytes = resident_bytes(single.weir.pid)
    single.weir.stop()

    paths = make_files(place, FILES)
    first = FILES - FILES // 4
    run = Run(place, "many", place.path("logs", "*", "*.log"))
    began = run.start()
    tell("start", "s", run.until_lines(first) - began, cpu_s=round(run.cpu_s(), 2))
    settle(run)
    tell("memory", "KiB per file", (resident_bytes(run.weir.pid) - base_bytes) / FILES / 1024)
    before = run.cpu_s()
    time.sleep(IDLE_S)
    tell("idle", "% of a processor", 100 * (run.cpu_s() - before) / IDLE_S)
    taken = sorted(measure_latency(run, paths))
    tell("latency", "ms, p99", taken[int(0.99 * len(taken))], median=round(statistics.median(taken), 2),
         worst=round(taken[-1], 2))
    run.weir.stop()
    place.append(os.path.relpath(paths[-1], place.directory), line(now_ms(), "again"))
    began = run.start()
    tell("restart", "s", run.until_lines(1) - began, cpu_s=round(run.cpu_s(), 2))
    run.weir.stop()


if __name__ == "__main__":
    bench.main("files", measure)
