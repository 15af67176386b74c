#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast a cluster is with all of it, the broker too, on this machine: a file's lines to decisions on their topic.

cluster_whole    collector, broker and limiter at once, against `LC_ALL=C grep -c POST FILE` through a pipe; and
                 where the processor's time went
cluster_limiter  the limiter alone on the filled topic, against 1/(1/a + 1/b): a, what a bare librdkafka consumer
                 fetches of the same frames; b, what one thread judges of them from memory
cluster_hot      the same where one user makes half of all requests, against without

Rates are of the steady part, from a tenth of the events to 19 twentieths. WEIR_BENCH=smoke runs a small size.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report

LINES = int(os.environ.get("WEIR_BENCH_LINES", 30_000 if SMOKE else 50_000_000))
RUNS = 1 if SMOKE else 3
PATIENCE_S = 1200
SECTIONS = {"bus": {"partitions": 8}, "limiter": {"threads": 2, "memory": "2GiB"}}


def measure_whole(place, servers, roles, path):
    """From the file to decisions."""
    grep = bench.grep_rate(path, LINES)
    limiter = roles.limiter().until_ready()
    collector = roles.collector([bench.combined(path, follow=True)])
    pids = {"collector": collector.run.pid, "limiter": limiter.run.pid, "broker": servers.pid_of("broker-1"),
            "store": servers.pid_of("mariadb")}
    samples = bench.Samples(bench.judged(limiter), pids).until(LINES, PATIENCE_S)
    seconds, lines, used = samples.steady()
    again = bench.grep_rate(path, LINES)
    ceiling = (grep + again) / 2
    report("cluster_whole", unit="lines/s", rate=round(lines / seconds), ceiling=round(ceiling),
           ratio=round(lines / seconds / ceiling, 3), goal=0.3, seconds=round(seconds, 1), lines=LINES,
           bytes=os.path.getsize(path), decisions=servers.kafka.count(servers.topic("decisions")),
           cpu_ns={name: round(time_s / lines * 1e9) for name, time_s in used.items()})
    assert collector.stop() == 0 and limiter.stop() == 0


def ceilings(place, roles):
    """What bounds it: events a second fetched, decoded and judged, by log_ceilings."""
    command = [bench.program("log_ceilings"), bench.config(place, roles)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    return {name: found["events"] / found[name] for name in ("fetch", "decode", "judge")}, found


def measure_limiter(place, servers, roles, lines):
    """The limiter alone; its rate."""
    runs = sorted((bench.judge_all(servers, roles, lines, PATIENCE_S) for _ in range(RUNS)), key=lambda samples: samples.rate())
    middle = runs[len(runs) // 2]
    bounds, log = ceilings(place, roles)
    ceiling = 1 / (1 / bounds["fetch"] + 1 / bounds["judge"])
    seconds, growth, used = middle.steady()
    report("cluster_limiter", unit="events/s", rate=round(middle.rate()), ceiling=round(ceiling),
           ratio=round(middle.rate() / ceiling, 3), goal=0.8, seconds=round(seconds, 2), runs=RUNS,
           fetch=round(bounds["fetch"]), decode=round(bounds["decode"]), judge=round(bounds["judge"]),
           bytes_an_event=round(log["bytes"] / log["events"], 1),
           cpu_ns={name: round(time_s / growth * 1e9) for name, time_s in used.items()})
    return middle.rate()


def with_hot_user(place, path, name, lines):
    """The start of a log, every second line of it as one user's."""
    out = place.path(name)
    with open(path, "rb") as source, open(out, "wb") as target:
        for number in range(lines):
            line = source.readline()
            target.write(b"203.0.113.7" + line[line.index(b" "):] if number % 2 else line)
    return out


def measure_hot(place, servers, roles, path):
    """One user with half of all requests, and the same without, by turns: both meet what else the machine does."""
    with bench.stage(place, **SECTIONS) as (hot_servers, hot_roles):
        hot_roles.apply()
        bench.fill(hot_roles, with_hot_user(place, path, "hot.log", LINES), LINES, PATIENCE_S)
        pairs = [(bench.judge_all(servers, roles, LINES, PATIENCE_S).rate(),
                  bench.judge_all(hot_servers, hot_roles, LINES, PATIENCE_S).rate())
                 for _ in range(RUNS)]
    even, hot = sorted(pairs, key=lambda pair: pair[1] / pair[0])[len(pairs) // 2]
    report("cluster_hot", unit="events/s", rate=round(hot), ceiling=round(even), ratio=round(hot / even, 3), goal=0.9,
           lines=LINES, runs=RUNS)


def measure(place):
    """All of them."""
    path = bench.generate(place, "access.log", LINES)
    with bench.stage(place, **SECTIONS) as (servers, roles):
        roles.apply()
        measure_whole(place, servers, roles, path)
        measure_limiter(place, servers, roles, LINES)
        measure_hot(place, servers, roles, path)


if __name__ == "__main__":
    bench.main("cluster_rate", measure)
