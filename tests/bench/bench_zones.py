#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` with many zones, against few, on the same lines in the same run.

  once_routes    zones that each take some of an API's routes: ten by their paths' beginnings, then a thousand by
                 method and path. A line is in one zone in either case, and a user in as many.
  once_one_key   zones of one key that all take every line: sixteen, against one

Medians of alternating runs of user and system time. WEIR_BENCH=smoke runs a small size, only to show that it works.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

WEIR = os.environ.get("WEIR_BIN", "build/release/bin/weir")
SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
LINES, USERS = (20_000, 500) if SMOKE else (1_000_000, 20_000)
RUNS = 1 if SMOKE else 5
METHODS = ["GET", "POST", "PUT", "DELETE"]
LIMITS = [{"algorithm": "sliding_window", "rate": 1000, "window": "1m"}]


def zone(name, **match):
    return {"name": name, "key": ["ip"], "match": match, "limits": LIMITS}


def few_routes():
    return [zone(f"team{team}", path=f"/api/v1/team{team}/*") for team in range(10)]


def many_routes():
    return [zone(f"route{thing}-{method}", method=method, path=f"/api/v1/team{thing // 25}/thing{thing}/*")
            for thing in range(250) for method in METHODS]


def of_one_key(count):
    return [zone(f"all{number}") for number in range(count)]


def write_log(path):
    """Each user asks for four routes, of four teams."""
    chance = random.Random(1)
    users = []
    for user in range(USERS):
        address = f"10.{user >> 16}.{user >> 8 & 255}.{user & 255}"
        routes = [(chance.choice(METHODS), team, team * 25 + chance.randrange(25))
                  for team in chance.sample(range(10), 4)]
        users.append((address, routes))
    with open(path, "w", encoding="ascii") as log:
        for line in range(LINES):
            address, routes = users[chance.randrange(USERS)]
            method, team, thing = routes[chance.randrange(4)]
            second = line * 3600 // LINES
            log.write(f"{address} - - [13/Jul/2026:10:{second // 60:02}:{second % 60:02} +0000] \"{method} "
                      f"/api/v1/team{team}/thing{thing}/{line} HTTP/1.1\" 200 512 \"-\" \"client/1.0\"\n")


def seconds(directory, log, name, zones):
    """The time of all its threads: what else the machine does counts as little as it can."""
    config = os.path.join(directory, name + ".json")
    with open(config, "w", encoding="ascii") as file:
        json.dump({"zones": zones, "sources": [{"type": "file", "path": log, "format": "combined"}]}, file)
    before = os.times()
    subprocess.run([WEIR, "run", "--once", "--quiet", "--config", config, "--decisions", os.devnull], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def compare(name, directory, log, few, many, goal):
    times = {len(few): [], len(many): []}
    ratios = []
    for _ in range(RUNS):
        for zones in (few, many):
            times[len(zones)].append(seconds(directory, log, f"zones{len(zones)}", zones))
        ratios.append(times[len(many)][-1] / times[len(few)][-1])
    print(json.dumps({"bench": name, "unit": "ns/line", "lines": LINES, "goal": goal,
                      "ratio": round(statistics.median(ratios), 2),
                      **{f"zones_{count}": round(statistics.median(all_times) / LINES * 1e9)
                         for count, all_times in times.items()}}), flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        log = os.path.join(directory, "access.log")
        write_log(log)
        compare("once_routes", directory, log, few_routes(), many_routes(), 2)
        compare("once_one_key", directory, log, of_one_key(1), of_one_key(16), 5)


if __name__ == "__main__":
    sys.exit(main())
