#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ShouldRateLimit against the least that a server by libnghttp2 does for a call, in turns: processor time of the server for a
call, and calls a second.

h2load, one connection with a hundred calls at a time, eight with 32, and fifty with one. weir is a `weir run` of one thread
with all that is behind a check: the descriptor's zone, its bucket, the log. The bare server reads each request, looks at
nothing, and answers the same bytes.
"""

import contextlib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support.rate_limits import descriptor, rls_pb2, serving

from support import bench
from support.checks import BUILD
from support.place import PATIENCE_S
from support.traffic import sliding, zone

from parts.programs import find

SHAPES, RUNS = (((1, 100),), 1) if bench.SMOKE else (((1, 100), (8, 32), (50, 1)), 5)
CALLS = {100: 10_000, 32: 10_000, 1: 5_000} if bench.SMOKE else {100: 1_000_000, 32: 1_000_000, 1: 200_000}
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"


def processor_s(pid):
    """What a process has used so far, all its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def run(server, shape, body):
    """(ns of the server for a call, calls a second)"""
    (port, pid), (clients, streams) = server, shape
    before = processor_s(pid)
    done = subprocess.run([find("h2load"), "-c", str(clients), "-m", str(streams), "-n", str(CALLS[streams]), "-d", body,
                           "-H", "content-type: application/grpc", "-H", "te: trailers", f"http://127.0.0.1:{port}{METHOD}"],
                          capture_output=True, text=True, timeout=600, check=True)
    assert f"{CALLS[streams]} succeeded" in done.stdout, done.stdout
    rate = float(re.search(r"([0-9.]+) req/s", done.stdout).group(1))
    return (processor_s(pid) - before) * 1e9 / CALLS[streams], rate


@contextlib.contextmanager
def bare():
    """The bare server: its port and process."""
    # pylint: disable-next=consider-using-with
    server = subprocess.Popen([os.path.join(BUILD, "bin", "bare_session")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield int(server.stdout.readline()), server.pid
    finally:
        server.stdin.close()
        server.wait(PATIENCE_S)
        server.stdout.close()


def measure(place):
    """Both in turn, by each shape."""
    request = rls_pb2.RateLimitRequest(domain="rl", descriptors=[descriptor(user="ann")]).SerializeToString()
    body = place.write("call", b"\0" + len(request).to_bytes(4, "big") + request)
    zones = [zone("site", [sliding(1_000_000, "1m")], key=["user"], match={"domain": ["rl"]})]
    with serving(place, zones, threads=1, on_unavailable="allow") as (weir, port), bare() as plain:
        servers = {"weir": (port, weir.process.pid), "bare": plain}
        for shape in SHAPES:
            seen = {name: [] for name in servers}
            for _ in range(RUNS):
                for name, server in servers.items():
                    seen[name].append(run(server, shape, body))
            rates = {name: sorted(rate for _, rate in runs)[RUNS // 2] for name, runs in seen.items()}
            for name, runs in seen.items():
                bench.report("grpc", server=name, connections=shape[0], streams=shape[1],
                             server_ns=round(sorted(ns for ns, _ in runs)[RUNS // 2]), rate=round(rates[name]),
                             of_bare=round(rates[name] / rates["bare"], 2))


if __name__ == "__main__":
    bench.main("grpc", measure)
