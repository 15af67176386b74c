#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks by RESP against Redis' PING and INCR, in turns: processor time of the server for one request, requests a second, and p99.

redis-benchmark over 50 connections, one, 16 and 64 commands at a time, on a million keys at random. Behind the surface is once
a judge that lets everything pass, so that is what the surface alone costs: reading, looking up the zone, five integers or one;
and once ("run") a `weir run` of one thread with all that is behind a check: three limits, the log, and the answer that comes back from it.
On a machine where the load takes a processor of its own, and that is most, the server's time is what counts.

Beside them stand peers, of one limit each: a sorted set and a script in Redis; redis-cell, whose module WEIR_REDIS_CELL names; and
throttlecrab-server, where the search path has it. The last two are built by cargo, and left out where they are not there.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, checks
from support.own_redis import OwnRedis
from support.place import ROOT, free_port, until
from support.redis import Redis, RedisError
from support.traffic import fixed, sliding, zone

from parts.programs import find  # pylint: disable=wrong-import-order

DEPTHS, RUNS = ((1, 16, 64), 1) if bench.SMOKE else ((1, 16, 64), 3)
REQUESTS = {1: 5_000, 16: 20_000, 64: 20_000} if bench.SMOKE else {1: 100_000, 16: 1_000_000, 64: 2_000_000}
KEY = "user:__rand_int__"
COMMANDS = {  # which server answers, and what it is asked
    "PING": ("redis", ["PING"]),
    "INCR": ("redis", ["INCR", KEY]),
    "WEIR PING": ("weir", ["PING"]),
    "WEIR.CHECK": ("weir", ["WEIR.CHECK", KEY, "wide"]),
    "WEIR.ALLOW": ("weir", ["WEIR.ALLOW", KEY, "wide"]),
    "CL.THROTTLE": ("weir", ["CL.THROTTLE", KEY, "15", "30", "60"]),
    "run WEIR.CHECK": ("run", ["WEIR.CHECK", KEY, "api"]),
    "run WEIR.ALLOW": ("run", ["WEIR.ALLOW", KEY, "api"]),
    "script": ("redis", ["EVALSHA", "", "1", "set:__rand_int__", "60000000", "100"]),
    "redis-cell": ("cell", ["CL.THROTTLE", KEY, "15", "30", "60"]),
    "throttlecrab": ("crab", ["THROTTLE", KEY, "15", "30", "60"]),
}
SLOW = {"script": 10, "redis-cell": 4, "throttlecrab": 20}  # of these, so many times fewer requests
API = [zone("api", [sliding(100, "1m"), fixed(2000, "1h"), fixed(20000, "1d")], key=["user"])]


def process_of(port):
    """The process that answers there, in its own words."""
    said = Redis(port).call("INFO").decode()
    return int(re.search(r"process_id:(\d+)", said).group(1))


def run(server, depth, words, fewer=1):
    """(ns of the server for a request, requests a second, p99 in ms)"""
    port, pid = server
    requests = REQUESTS[depth] // fewer
    before = bench.cpu_ns(pid)
    done = subprocess.run([find("redis-benchmark"), "-p", str(port), "-c", "50", "-P", str(depth), "-n", str(requests),
                           "-r", "1000000", "--csv", *words], capture_output=True, text=True, timeout=120, check=True)
    figures = [float(figure.strip('"')) for figure in done.stdout.splitlines()[-1].split(",")[1:]]
    return (bench.cpu_ns(pid) - before) / requests, figures[0], figures[5]


def load_script(port):
    """Its name in Redis."""
    with open(os.path.join(ROOT, "tests", "conformance", "seeds", "sorted_set_window.lua"), encoding="utf-8") as script:
        return Redis(port).call("SCRIPT", "LOAD", script.read()).decode()


@contextlib.contextmanager
def redis_cell(place):
    """(port, pid) of a Redis with the module; None: it is not there."""
    module = os.environ.get("WEIR_REDIS_CELL")
    if module is None:
        yield None
        return
    with OwnRedis(place, "--appendonly", "no", "--loadmodule", module, name="redis-cell") as redis:
        yield redis.port, process_of(redis.port)


@contextlib.contextmanager
def throttlecrab(place):
    """(port, pid) of a throttlecrab-server; None: it is not there."""
    program = shutil.which("throttlecrab-server")
    if program is None:
        yield None
        return
    port = free_port()
    with open(place.path("throttlecrab.log"), "wb") as log, \
            subprocess.Popen([program, "--redis", "--redis-port", str(port), "--log-level", "error"], stdout=log, stderr=log) as server:
        def answers():
            try:
                return Redis(port).call("PING")
            except (OSError, RedisError):
                return None
        until(answers, "throttlecrab-server answers")
        yield port, server.pid
        server.terminate()


def measure(place):
    """Each command by each depth, all in turn."""
    with OwnRedis(place, "--appendonly", "no") as redis, checks.model(place, "null") as port, redis_cell(place) as cell, \
            throttlecrab(place) as crab:
        weir, run_port = checks.started(place, API, limiter={"threads": 1, "memory": "2GiB"})
        COMMANDS["script"][1][1] = load_script(redis.port)
        servers = {"redis": (redis.port, process_of(redis.port)), "weir": (port, process_of(port)), "run": (run_port, weir.pid),
                   "cell": cell, "crab": crab}
        for depth in DEPTHS:
            seen = {name: [] for name in COMMANDS}
            for _ in range(RUNS):
                for name, (server, words) in COMMANDS.items():
                    if servers[server] is not None:
                        seen[name].append(run(servers[server], depth, words, SLOW.get(name, 1)))
            median = {name: sorted(runs)[len(runs) // 2] for name, runs in seen.items() if runs}
            for name, (ns, rate, p99) in median.items():
                bench.report("resp", command=name, depth=depth, server_ns=round(ns), rate=round(rate), p99_ms=round(p99, 3),
                             of_ping=round(median["PING"][0] / max(ns, 1), 2), of_incr=round(median["INCR"][0] / max(ns, 1), 2),
                             rate_of_ping=round(rate / median["PING"][1], 2),
                             rate_of_incr=round(rate / median["INCR"][1], 2), p99_of_ping=round(p99 / median["PING"][2], 2))


if __name__ == "__main__":
    bench.main("resp", measure)
