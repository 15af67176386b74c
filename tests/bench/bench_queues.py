#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages a second of the sources `nats` and `amqp` (a stream queue), as they are handed on, beside a file source with the
same lines and a bare loop of the same library that drops what it gets, in turns, and the processor time of each. Messages
have 230 bytes. WEIR_BENCH=smoke runs a small size."""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, nats, rabbitmq
from support.cases import Skipped

COUNT = int(os.environ.get("WEIR_BENCH_MESSAGES", "5000" if bench.SMOKE else "1000000"))
TURNS = 1 if bench.SMOKE else 5
MESSAGE = b"203.0.113.9 - - [10/Oct/2024:13:55:36 +0000] \"GET /index.html HTTP/1.1\" 200 7 \"-\" \"" + b"x" * 144 + b'"'
GOAL = 0.7


def rate(*arguments):
    """(messages a second, processor time of each in nanoseconds) of one run of the program."""
    path = os.path.join(bench.BUILD, "tests", "queue_rate")
    if not os.access(path, os.X_OK):
        raise Skipped("queue_rate is not built")
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 77:
        raise Skipped("the library is not here")
    assert done.returncode == 0, done.stderr
    return tuple(map(float, done.stdout.split()))


def compare(place, server, bare, config, count=COUNT):
    """The source, the bare loop and a file of the same lines, in turns; the best of each, as whatever else runs only slows
    them. Beside the source, what the server uses."""
    name, pid = config["type"], server.server.process.pid()
    path = place.write(f"{name}.json", json.dumps({**config, "format": "combined"}))
    log = place.write("log", (MESSAGE + b"\n") * count)
    plain = place.write("file.json", json.dumps({"type": "file", "path": log, "format": "combined", "follow": False}))
    rows, server_ns = [], []
    for _ in range(TURNS):
        bare_run = rate(*bare, count)
        before_s = bench.cpu_s(pid)
        own_run = rate("source", path, count)
        server_ns.append((bench.cpu_s(pid) - before_s) * 1e9 / count)
        rows.append((bare_run, own_run, rate("source", plain, count)))
    (peer, own, file), (peer_ns, own_ns, file_ns) = (
        [pick(turn[i][k] for turn in rows) for i in range(3)] for k, pick in ((0, max), (1, min)))
    bench.report(f"queues_{name}", messages=count, weir_per_s=round(own), bare_per_s=round(peer), file_per_s=round(file),
                 ratio=round(own / peer, 2), goal=GOAL, weir_cpu_ns=round(own_ns),
                 bare_cpu_ns=round(peer_ns), file_cpu_ns=round(file_ns), server_cpu_ns=round(min(server_ns)))


def measure(place):
    """Fills a stream of each server, and reads it."""
    with nats.OwnNats(place) as server:
        with nats.Client(server.port) as client:
            client.add("LOGS", ["logs.>"])
            client.publish([MESSAGE] * COUNT, window=20000)
        compare(place, server, ("nats", server.url, "LOGS"), {"type": "nats", "url": server.url, "stream": "LOGS"})
    with rabbitmq.OwnRabbit(place) as server:
        with rabbitmq.Client(server.port) as client:
            client.declare("logs", "stream")
            client.publish([MESSAGE] * (COUNT // 5), window=5000)  # it takes them slowly
        compare(place, server, ("amqp", server.port, "logs"),
                {"type": "amqp", "url": server.url, "queue": "logs", "stream": True}, COUNT // 5)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by a signal"))  # through what ends the servers
    bench.main("queues", measure)
