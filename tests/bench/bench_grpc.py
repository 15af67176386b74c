#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ShouldRateLimit against the least that a server by libnghttp2 does for a call, in turns: calls a second, and the server's
processor time for one.

h2load asks as much as takes some seconds: by one connection with a hundred calls at a time, by eight with 32, and by fifty
with one. weir is a
`weir run` of one thread with all that is behind a check: the descriptor's zone, its bucket, the log. The bare server reads
each request, looks at nothing, and answers as many bytes.
"""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.cases import Skipped
from support.check_http import Weir
from support.place import PATIENCE_S, free_port
from support.traffic import zone

SHAPES, ROUNDS, SECONDS = (((1, 100),), 1, 0.1) if bench.SMOKE else (((1, 100), (8, 32), (50, 1)), 5, 2)
FEW = 2000
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
LIMIT = {"algorithm": "gcra", "rate": 1_000_000, "window": "1s", "burst": 1_000_000}
# not compressed, 19 bytes: the domain "rl", and a descriptor with one entry, user=ann
CALL = b"\0\0\0\0\x13" + b"\x0a\x02rl" + b"\x12\x0d" + b"\x0a\x0b" + b"\x0a\x04user" + b"\x12\x03ann"


def ask(server, shape, body, calls):
    """(calls a second, ns of the server for a call)"""
    (port, pid), (clients, streams) = server, shape
    before = bench.cpu_ns(pid)
    done = subprocess.run(["h2load", "-c", str(clients), "-m", str(streams), "-n", str(calls), "-d", body,
                           "-H", "content-type: application/grpc", "-H", "te: trailers", f"http://127.0.0.1:{port}{METHOD}"],
                          capture_output=True, text=True, timeout=SECONDS + 4 * PATIENCE_S, check=True)
    assert f" {calls} succeeded" in done.stdout, done.stdout
    return float(re.search(r"([0-9.]+) req/s", done.stdout).group(1)), (bench.cpu_ns(pid) - before) / calls


def calls_of(server, shape, body):
    """As many as take about SECONDS."""
    return max(FEW, round(ask(server, shape, body, FEW)[0] * SECONDS / FEW) * FEW)


@contextlib.contextmanager
def bare():
    """The bare server: its port and process."""
    # pylint: disable-next=consider-using-with
    server = subprocess.Popen([bench.program("bare_session")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield int(server.stdout.readline()), server.pid
    finally:
        server.stdin.close()
        server.wait(PATIENCE_S)
        server.stdout.close()


def measure(place):
    """Both in turn, by each shape."""
    if shutil.which("h2load") is None:
        raise Skipped("no h2load here (deploy/packages bench)")
    body, port = place.write("call", CALL), free_port()
    weir = Weir(place, [zone("site", [LIMIT], key=["user"], match={"domain": ["rl"]})], threads=1,
                listen={"grpc": f"127.0.0.1:{port}"}).ready("site")
    with bare() as plain:
        servers = {"weir": (port, weir.process.pid), "bare": plain}
        for shape in SHAPES:
            calls = {name: calls_of(server, shape, body) for name, server in servers.items()}
            seen = {name: [] for name in servers}
            for _ in range(ROUNDS):
                for name, server in servers.items():
                    seen[name].append(ask(server, shape, body, calls[name]))
            rates, costs = ({name: statistics.median(run[part] for run in runs) for name, runs in seen.items()} for part in (0, 1))
            ratios = [[one[part] / other[part] for one, other in zip(seen["weir"], seen["bare"])] for part in (0, 1)]
            bench.report("grpc", connections=shape[0], streams=shape[1], weir=round(rates["weir"]), bare=round(rates["bare"]),
                         of_bare=round(statistics.median(ratios[0]), 2), weir_ns=round(costs["weir"]), bare_ns=round(costs["bare"]),
                         bare_of_weir_ns=round(1 / statistics.median(ratios[1]), 2))
    weir.stop()


if __name__ == "__main__":
    bench.main("grpc", measure)
