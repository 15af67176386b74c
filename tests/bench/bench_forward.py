#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `forward` against a bare sink: lines per second from the first byte to the last acknowledgement.

Both get the same messages of 500 entries over four connections, each with at most eight that are not acknowledged. The
sink takes bytes as they come, reads none of them, writes them to a file, and acknowledges after an fdatasync, one for
all that a round brought. weir unpacks them, writes JSON lines into its spool, and judges them meanwhile. The aim is 0.7.
"""

import os
import selectors
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, forward
from support.place import free_port, until
from support.traffic import site

MESSAGES, ENTRIES = (40, 500) if bench.SMOKE else (2000, 500)
CONNECTIONS, WINDOW, GOAL = 4, 8, 0.7
BEGIN_S = 1709251200


def messages():
    """All of one length, and their acknowledgements too."""
    made = []
    for i in range(MESSAGES):
        entries = [(BEGIN_S + i, {"ip": f"10.{j % 256}.{i % 256:03}.{j % 200:03}", "method": "GET", "status": 200,
                                  "path": f"/shop/item/{j:06}",
                                  "agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Firefox/128.0"})
                   for j in range(100, 100 + ENTRIES)]
        made.append(forward.messages("app", entries, f"chunk{i:08}")["packed"])
    assert len({len(one) for one in made}) == 1
    return made


SINK = """
import os, selectors, socket, sys
port, path, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
listener = socket.create_server(("127.0.0.1", port), backlog=16)
out = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
loop = selectors.DefaultSelector()
loop.register(listener, selectors.EVENT_READ)
seen, acknowledged, syncs = {}, {}, 0
while True:
    due = []
    for key, _ in loop.select():
        if key.fileobj is listener:
            one = listener.accept()[0]
            seen[one] = acknowledged[one] = 0
            loop.register(one, selectors.EVENT_READ)
            continue
        data = key.fileobj.recv(1 << 20)
        if not data:
            loop.unregister(key.fileobj)
            continue
        os.write(out, data)
        seen[key.fileobj] += len(data)
        due.append(key.fileobj)
    if any(seen[one] // size > acknowledged[one] for one in due):
        os.fdatasync(out)
        for one in due:
            whole = seen[one] // size
            one.sendall(ACK * (whole - acknowledged[one]))
            acknowledged[one] = whole
"""


def send_all(port, made, ack_bytes):
    """Seconds until the last acknowledgement."""
    loop = selectors.DefaultSelector()
    for i in range(CONNECTIONS):
        one = socket.create_connection(("127.0.0.1", port))
        one.setblocking(False)
        loop.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE,
                      {"todo": made[i::CONNECTIONS], "next": 0, "rest": memoryview(b""), "acked": 0})
    began_s, left = time.monotonic(), len(made)
    while left > 0:
        for key, events in loop.select(10):
            one, state = key.fileobj, key.data
            if events & selectors.EVENT_READ:
                got = one.recv(1 << 16)
                assert got, "the connection was closed"
                before = state["acked"] // ack_bytes
                state["acked"] += len(got)
                left -= state["acked"] // ack_bytes - before
            waiting = state["next"] - state["acked"] // ack_bytes
            if not state["rest"] and state["next"] < len(state["todo"]) and waiting < WINDOW:
                state["rest"] = memoryview(state["todo"][state["next"]])
                state["next"] += 1
            if state["rest"]:
                try:
                    state["rest"] = state["rest"][one.send(state["rest"]):]
                except BlockingIOError:
                    pass
            waiting = state["next"] - state["acked"] // ack_bytes
            wants = bool(state["rest"]) or (state["next"] < len(state["todo"]) and waiting < WINDOW)
            loop.modify(one, selectors.EVENT_READ | (selectors.EVENT_WRITE if wants else 0), state)
    return time.monotonic() - began_s


def rate_of_sink(place, made, ack):
    """Lines per second of the bare one."""
    port = free_port()
    script = SINK.replace("ACK", repr(ack))
    with subprocess.Popen([sys.executable, "-c", script, str(port), place.path("sink"), str(len(made[0]))]) as sink:
        try:
            until(lambda: not refuses(port), "the sink listens")
            return MESSAGES * ENTRIES / send_all(port, made, len(ack))
        finally:
            sink.kill()


def refuses(port):
    """Whether nobody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def rate_of_weir(place, made, ack):
    """Lines per second of the source."""
    port = free_port()
    source = {"type": "forward", "name": "apps", "listen": f"tcp://127.0.0.1:{port}", "format": "json", "spool": "4GiB"}
    zones = [{**site()[0], "key": ["ip"]}]
    weir = place.start("run", "--config", place.config(zones, [source]), "--state", place.path("state"), "--decisions",
                       place.path("out"), "--quiet", "--summary", "json")
    until(lambda: not refuses(port), "weir listens", running=weir)
    took_s = send_all(port, made, len(ack))
    assert weir.stop(120) == 0, weir.said()
    zone = weir.summary()["zones"]["site"]
    return MESSAGES * ENTRIES / took_s, zone["passed"] + zone["blocked"]


def measure(place):
    """Both, one after the other."""
    made = messages()
    ack = b"\x81\xa3ack\xad" + b"chunk00000000"
    sink = rate_of_sink(place, made, ack)
    weir, judged = rate_of_weir(place, made, ack)
    bench.report("forward", lines=MESSAGES * ENTRIES, message_bytes=len(made[0]), weir_lines_per_s=round(weir),
                 sink_lines_per_s=round(sink), ratio=round(weir / sink, 2), goal=GOAL, judged=judged)


if __name__ == "__main__":
    bench.main("forward", measure)
