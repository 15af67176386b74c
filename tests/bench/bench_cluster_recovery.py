#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recovery and checkpoints of one partition with a million users, its state in MariaDB and its log in Kafka.

cluster_recovery    a limiter that takes it with ten seconds of log at a million events a second behind its
                    checkpoint: seconds from the assignment to the first verdict, and to the end of the log
cluster_checkpoint  the checkpoint of a million changed buckets: bytes, seconds, and the rate of verdicts while
                    checkpoints run one after another, against a run with none

WEIR_BENCH=smoke runs a small size.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report

USERS = 1000 if SMOKE else 1_000_000
FIRST_LINES = 5 * USERS  # of users all alike: nearly everybody comes
BEHIND_LINES = 20_000 if SMOKE else 10_000_000
MORE_LINES = 20_000 if SMOKE else 45_000_000  # so that many checkpoints fall into a run
RUNS = 1 if SMOKE else 3
PATIENCE_S = 900
SECTIONS = {"bus": {"partitions": 1}, "limiter": {"threads": 1, "memory": "2GiB"}}


def run_to_end(roles, events, **limiter):
    """A limiter over so many events of the log: it, and the samples of its counter."""
    one = roles.limiter(limiter=limiter)
    return one, bench.Samples(bench.judged(one), every_s=0.02).until(events, PATIENCE_S)


def copy_state(servers, frm, to):
    """Keeps a state, or brings it back."""
    for table in ("partition_state", "segment_state"):
        servers.mariadb.query(f"DROP TABLE IF EXISTS {to}{table}")
        servers.mariadb.query(f"CREATE TABLE {to}{table} LIKE {frm}{table}")
        servers.mariadb.query(f"INSERT INTO {to}{table} SELECT * FROM {frm}{table}")


def assigned_s(limiter):
    """When the group gave it its partition, by its own log."""
    limiter.until_says("the consumer group assigned 1 of 1")
    line = next(line for line in limiter.run.said().splitlines() if "the consumer group assigned 1 of 1" in line)
    stamp, milliseconds = line.split(" ", 1)[0].rstrip("Z").split(".")
    return time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) - time.timezone + int(milliseconds) / 1000


def recover(servers, roles):
    """Seconds from the assignment to the first verdict, and to the log's end."""
    copy_state(servers, "kept_", "")
    limiter, samples = run_to_end(roles, BEHIND_LINES)
    offset = time.time() - time.monotonic()
    begun = assigned_s(limiter) - offset
    first = next(at for at, value, _ in samples.points if value > 0) - begun
    end = samples.points[-1][0] - begun
    limiter.kill()
    return first, end


def measure_recovery(servers, roles):
    """Median of some takings of the same state and log."""
    firsts, ends = zip(*(recover(servers, roles) for _ in range(RUNS)))
    users = servers.mariadb.query("SELECT COUNT(*), SUM(length) FROM segment_state")[0]
    report("cluster_recovery", unit="s", rate=round(statistics.median(firsts), 3), goal=1,
           end=round(statistics.median(ends), 2), goal_end=5, users=USERS, events=BEHIND_LINES,
           segments=int(users[0]), stored_bytes=int(users[1]), runs=RUNS)


def rate_with(servers, roles, interval):
    """The rate of verdicts with checkpoints at an interval, their seconds and count."""
    servers.forget()
    events = FIRST_LINES + BEHIND_LINES + MORE_LINES
    limiter, samples = run_to_end(roles, events, checkpoint_interval=interval)
    page = limiter.metrics()
    spent, count = page.sum("weir_limiter_checkpoint_seconds_sum"), page.sum("weir_limiter_checkpoint_seconds_count")
    limiter.kill()
    return samples.rate(0.3, 0.98), spent, count


def measure_checkpoint(servers, roles):
    """With and without, by turns."""
    turns = [(rate_with(servers, roles, "1h"), rate_with(servers, roles, "1s")) for _ in range(RUNS)]
    ratio = statistics.median(busy[0] / calm[0] for calm, busy in turns)
    spent, count = sum(busy[1] for _, busy in turns), sum(busy[2] for _, busy in turns)
    report("cluster_checkpoint", unit="events/s", rate=round(statistics.median(busy[0] for _, busy in turns)),
           ceiling=round(statistics.median(calm[0] for calm, _ in turns)), ratio=round(ratio, 3), goal=0.9,
           checkpoints=int(count), seconds_each=round(spent / max(count, 1), 2), runs=RUNS)


def measure_first(servers, roles):
    """All users' buckets at once: what the last checkpoint of a limiter that ends takes, and writes."""
    limiter, _ = run_to_end(roles, FIRST_LINES, checkpoint_interval="1h")
    begun = time.monotonic()
    assert limiter.stop(PATIENCE_S) == 0
    seconds = time.monotonic() - begun
    size = servers.mariadb.query("SELECT SUM(length) FROM segment_state")[0][0]
    report("cluster_checkpoint_all", unit="bytes/s", rate=round(int(size) / seconds), seconds=round(seconds, 2),
           stored_bytes=int(size), users=USERS)


def measure(place):
    """All of them."""
    with bench.stage(place, **SECTIONS) as (servers, roles):
        roles.apply()
        first = bench.generate(place, "first.log", FIRST_LINES, "--users", USERS, "--zipf", "0")
        bench.fill(roles, first, FIRST_LINES, PATIENCE_S)
        measure_first(servers, roles)
        copy_state(servers, "", "kept_")
        behind = bench.generate(place, "behind.log", BEHIND_LINES, "--users", USERS, "--seed", "2",
                                "--start", "2025-01-01T01:30:00Z")
        bench.fill(roles, behind, BEHIND_LINES, PATIENCE_S)
        measure_recovery(servers, roles)
        more = bench.generate(place, "more.log", MORE_LINES, "--users", USERS, "--seed", "3",
                              "--start", "2025-01-01T04:30:00Z")
        bench.fill(roles, more, MORE_LINES, PATIENCE_S)
        measure_checkpoint(servers, roles)


if __name__ == "__main__":
    bench.main("cluster_recovery", measure)
