#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks beside a log: 100,000 a second are asked by RESP while a log grows at half the rate that `weir run` can follow it at.

First the log alone, as fast as it can be followed; then it at half of that, and the checks, each alone; then both. A figure is what
was done of each beside the other, as a share of what was done of it alone. Both meet in the same three limits of one zone. What
writes the log and what asks take their share of the same cores, in all three.
"""

import multiprocessing
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, checks, metrics
from support.place import until

CHECKS, PIPELINE = 100_000, 250
LINES, SECONDS, RUNS = (100_000, 1, 1) if bench.SMOKE else (6_000_000, 10, 3)
TICK_S = 0.01
USERS = 200_000


def pipelines(rng, count=400):
    """So many, each of PIPELINE checks."""
    made = []
    for _ in range(count):
        keys = [f"10.{user >> 16 & 255}.{user >> 8 & 255}.{user & 255}" for user in rng.choices(range(USERS), k=PIPELINE)]
        made.append(b"".join(checks.command("WEIR.CHECK", key, "site") for key in keys))
    return made


def ask(port, seconds, results):
    """A process: asks CHECKS a second for so long; puts how many were answered, and how many could not be judged."""
    made, answered, unavailable, sent = pipelines(random.Random(1)), 0, 0, 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            due_s = sent * PIPELINE / CHECKS - (time.monotonic() - begun)
            if due_s > 0:
                time.sleep(due_s)
            connection.sendall(made[sent % len(made)])
            sent += 1
            got = 0
            while got < PIPELINE:
                replies = connection.recv(1 << 20)
                assert replies, "weir closed the connection"
                fives, errors = replies.count(b"*5"), replies.count(b"-UNAVAILABLE")
                answered, unavailable, got = answered + fives, unavailable + errors, got + fives + errors
    results.put((answered / seconds, unavailable / seconds))


class Log:
    """A log that grows out of another one."""

    def __init__(self, path, pattern):
        self.path = path
        with open(pattern, "rb") as lines:
            self._bytes = lines.read()
        self._a_line, self._at = len(self._bytes) / self._bytes.count(b"\n"), 0

    def grow(self, lines):
        """Writes about so many lines more, the first ones again after the last: how many."""
        end = min(self._at + int(lines * self._a_line) + 1, len(self._bytes))
        end = self._bytes.rfind(b"\n", 0, end) + 1
        written = memoryview(self._bytes)[self._at:end]
        with open(self.path, "ab") as log:
            log.write(written)
        self._at = end if end < len(self._bytes) else 0
        return bytes(written).count(b"\n")

    def grow_for(self, rate, seconds):
        """Lines a second, for so long."""
        begun, written = time.monotonic(), 0
        while (passed_s := time.monotonic() - begun) < seconds:
            due = int(rate * passed_s) - written
            if due > 0:
                written += self.grow(due)
            time.sleep(TICK_S)


class Run:
    """`weir run` that follows a log and answers checks."""

    def __init__(self, place, pattern):
        self.log = Log(place.write("log", ""), pattern)
        self.weir, self.port = checks.started(place, bench.ZONES, limiter={"memory": "2GiB"},
                                              sources=[bench.combined(self.log.path, follow=True)])

    def lines(self):
        """Read of the log so far."""
        return metrics.scrape(self.weir.pages).sum("weir_collector_lines_total")

    def follow(self, lines):
        """Writes so many at once, and waits until they are read: lines a second."""
        before, begun = self.lines(), time.monotonic()
        written = self.log.grow(lines)
        until(lambda: self.lines() - before >= written, "the log is read", 120, running=self.weir)
        return written / (time.monotonic() - begun)

    def both(self, rate, asked):
        """(lines a second, checks answered a second, checks that were unavailable a second) at a rate of the log; 0: it stands."""
        results = multiprocessing.Queue()
        asks = multiprocessing.Process(target=ask, args=(self.port, SECONDS, results))
        before, begun = self.lines(), time.monotonic()
        if asked:
            asks.start()
        if rate > 0:
            self.log.grow_for(rate, SECONDS)
        answered, unavailable = results.get(timeout=SECONDS + 60) if asked else (0, 0)
        read = (self.lines() - before) / (time.monotonic() - begun)
        if asked:
            asks.join()
        if rate > 0:
            until(self._is_read, "the rest of the log is read", 120, running=self.weir)
        return read, answered, unavailable

    def _is_read(self):
        before = self.lines()
        time.sleep(0.1)
        return self.lines() == before


def measure(place):
    """All three, in turn."""
    pattern = bench.generate(place, "pattern.log", LINES)
    run = Run(place, pattern)
    run.follow(LINES // 10)  # fills and warms up
    full = sorted(run.follow(LINES) for _ in range(RUNS))[RUNS // 2]
    seen = {"log": [], "checks": [], "both": []}
    for _ in range(RUNS):
        seen["log"].append(run.both(full / 2, False))
        seen["checks"].append(run.both(0, True))
        seen["both"].append(run.both(full / 2, True))
    median = {name: [sorted(figures)[RUNS // 2] for figures in zip(*runs)] for name, runs in seen.items()}
    lines, answered, (lines_beside, answered_beside, unavailable) = median["log"][0], median["checks"][1], median["both"]
    bench.report("checks_beside_log", followed=round(full), lines=round(lines), checks=round(answered), lines_beside=round(lines_beside),
                 checks_beside=round(answered_beside), unavailable=round(unavailable), lines_kept=round(lines_beside / lines, 2),
                 checks_kept=round(answered_beside / answered, 2))
    assert run.weir.stop() == 0, run.weir.said()


if __name__ == "__main__":
    bench.main("checks_beside_log", measure)
