#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages a second of the sources `nats` and `amqp` (a stream queue), beside a bare loop of the same library that drops
what it gets, in turns. Messages have 230 bytes. WEIR_BENCH=smoke runs a small size."""

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
    """What the program measures."""
    path = os.path.join(bench.BUILD, "tests", "queue_rate")
    if not os.access(path, os.X_OK):
        raise Skipped("queue_rate is not built")
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 77:
        raise Skipped("the library is not here")
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def compare(place, name, bare, config, count=COUNT):
    """Both in turns; the best of each, as whatever else runs only slows them."""
    path = place.write(f"{name}.json", json.dumps(config))
    pairs = [(rate(*bare, count), rate("source", path, count)) for _ in range(TURNS)]
    peer, own = (max(values) for values in zip(*pairs))
    bench.report(f"queues_{name}", messages=count, bare_per_s=round(peer), weir_per_s=round(own),
                 ratio=round(own / peer, 2), goal=GOAL)


def measure(place):
    """Fills a stream of each server, and reads it."""
    with nats.OwnNats(place) as server:
        with nats.Client(server.port) as client:
            client.add("LOGS", ["logs.>"])
            client.publish([MESSAGE] * COUNT, window=20000)
        compare(place, "nats", ("nats", server.url, "LOGS"),
                {"type": "nats", "url": server.url, "stream": "LOGS", "format": "combined"})
    with rabbitmq.OwnRabbit(place) as server:
        with rabbitmq.Client(server.port) as client:
            client.declare("logs", "stream")
            client.publish([MESSAGE] * (COUNT // 5), window=5000)  # it takes them slowly
        compare(place, "amqp", ("amqp", server.port, "logs"),
                {"type": "amqp", "url": server.url, "queue": "logs", "stream": True, "format": "combined"}, COUNT // 5)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by a signal"))  # through what ends the servers
    bench.main("queues", measure)
