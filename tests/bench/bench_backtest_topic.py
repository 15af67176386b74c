#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir backtest --topic` with one policy and with three, against a limiter alone that judges the same topic by one.

backtest_topic  nanoseconds of the processor for an event, user and system, of all threads of the program (not the
                broker's): of the limiter, of a backtest of one policy, of three, and of each policy beyond the first.
                The ratio is the limiter's to the latter.

Medians of alternating runs. All three policies must find, at once, what each finds alone; and the first one as many
decisions as the limiter made. WEIR_BENCH_LINES is the number of events, WEIR_BENCH=smoke runs a small size.
"""
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report
from support.place import find_weir
from support.traffic import sliding, zone

LINES = int(os.environ.get("WEIR_BENCH_LINES", 30_000 if SMOKE else 50_000_000))
RUNS = 1 if SMOKE else 3
PATIENCE_S = 1200
SECTIONS = {"bus": {"partitions": 8}, "limiter": {"threads": 2, "memory": "2GiB"}}
LIMITS = {"ten": sliding(10, "1m"), "twenty": sliding(20, "1m"), "bucket": {"algorithm": "token_bucket", "rate": 10, "window": "1m"}}
ZONES = {name: [zone("site", [limit], key=["ip"])] for name, limit in LIMITS.items()}
LIVE = [dict(ZONES["ten"][0], id=1)]


def write_policies(place, roles):
    """Their paths. Each has the cluster, so that each can be tried alone."""
    return [place.write(name + ".json", json.dumps(roles.sections(zones=zones))) for name, zones in ZONES.items()]


def limiter_ns(servers, roles):
    """What the limiter takes for an event."""
    _, events, used = bench.judge_all(servers, roles, LINES, PATIENCE_S).steady()
    return used["limiter"] / events * 1e9


def backtest(place, paths):
    """(what it takes for an event, its report)."""
    before = bench.ended_cpu_s()
    subprocess.run([find_weir(), "backtest", "--quiet", "--topic", "..", "--json", place.path("report"),
                    *(word for path in paths for word in ("--config", path))], check=True, timeout=PATIENCE_S)
    used = bench.ended_cpu_s() - before
    with open(place.path("report"), encoding="utf-8") as file:
        found = json.load(file)
    assert found["events"] == LINES, found["events"]
    return used / LINES * 1e9, found


def check_equal(place, paths, together, decisions):
    """Requires that each policy finds alone what it found beside the others, and as many decisions as were made live."""
    for path, policy in zip(paths, together["policies"]):
        _, found = backtest(place, [path])
        assert found["policies"] == [policy], path
        series = [one for one in together["over_time"]["series"] if one["policy"] == policy["policy"]]
        assert found["over_time"]["series"] == series, path
    own = together["policies"][0]["zones"][0]["decisions"]
    assert own == decisions, f"{own} decisions in the backtest, and {decisions} live"


def measure(place):
    """All in turn."""
    log = bench.generate(place, "access.log", LINES, "--rate", 200)
    with bench.stage(place, LIVE, **SECTIONS) as (servers, roles):
        roles.apply()
        bench.fill(roles, log, LINES, PATIENCE_S)
        os.remove(log)
        paths = write_policies(place, roles)
        taken, decisions = {"limiter": [], "one": [], "three": []}, 0
        for number in range(RUNS):
            taken["limiter"].append(limiter_ns(servers, roles))
            if number == 0:
                decisions = servers.kafka.count(servers.topic("decisions"))
            taken["one"].append(backtest(place, paths[:1])[0])
            used, together = backtest(place, paths)
            taken["three"].append(used)
        check_equal(place, paths, together, decisions)
    middle = {name: statistics.median(found) for name, found in taken.items()}
    beyond = (middle["three"] - middle["one"]) / 2
    report("backtest_topic", unit="ns/event", **{name: round(found, 1) for name, found in middle.items()},
           beyond=round(beyond, 1), ratio=round(middle["limiter"] / beyond, 2), goal=0.8, events=LINES, runs=RUNS)


if __name__ == "__main__":
    bench.main("backtest_topic", measure)
