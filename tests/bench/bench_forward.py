#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `forward` against a plain file of the same lines, and against a bare sink, in turns: lines per second from the
first byte until all are read, and the processor time of each process.

weir and the sink get the same messages of 500 entries over four connections, each with at most eight that are not
acknowledged. The sink takes bytes as they come, reads none of them, writes them to a file, and acknowledges after an
fdatasync, one for all that a round brought. weir unpacks them, writes JSON lines into its spool, and judges them meanwhile.
The aim is 0.7 of the file.
"""

import json
import os
import resource
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, forward
from support.following import value
from support.place import free_port, until
from support.traffic import site

MESSAGES, ENTRIES = (40, 500) if bench.SMOKE else (2000, 500)
LINES, RUNS = MESSAGES * ENTRIES, 1 if bench.SMOKE else 3
CONNECTIONS, WINDOW, GOAL = 4, 8, 0.7
BEGIN_S = 1709251200


def entries(i):
    """Those of a message, all of one length."""
    return [(BEGIN_S + i, {"ip": f"10.{j % 256}.{i % 256:03}.{j % 200:03}", "method": "GET", "status": 200,
                           "path": f"/shop/item/{j:06}",
                           "agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Firefox/128.0"})
            for j in range(100, 100 + ENTRIES)]


def messages():
    """All of one length, and their acknowledgements too."""
    made = [forward.messages("app", entries(i), f"chunk{i:08}")["packed"] for i in range(MESSAGES)]
    assert len({len(one) for one in made}) == 1
    return made


def write_file(path):
    """The lines that weir makes of them."""
    with open(path, "w", encoding="utf-8") as file:
        for i in range(MESSAGES):
            file.writelines(json.dumps({"time": at, "tag": "app", **record}, separators=(",", ":")) + "\n"
                            for at, record in entries(i))


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


def used_s(who):
    """Processor seconds of this process, or of its children that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def run_sink(place, made, ack):
    """(seconds, processor seconds of it, of the sender) of the bare one."""
    port = free_port()
    script = SINK.replace("ACK", repr(ack))
    own_s, child_s = used_s(resource.RUSAGE_SELF), used_s(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, "-c", script, str(port), place.path("sink"), str(len(made[0]))]) as sink:
        try:
            until(lambda: not refuses(port), "the sink listens")
            took_s = send_all(port, made, len(ack))
        finally:
            sink.kill()
    os.remove(place.path("sink"))
    return took_s, used_s(resource.RUSAGE_CHILDREN) - child_s, used_s(resource.RUSAGE_SELF) - own_s


def refuses(port):
    """Whether nobody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def config(place, source, **more):
    """Of a run."""
    return place.config([{**site()[0], "key": ["ip"]}], [source], name=f"{source['type']}.json", **more)


def run_weir(place, made, ack):
    """(seconds until all is read, and until the last acknowledgement, processor seconds of it, of the sender)."""
    port = free_port()
    source = {"type": "forward", "name": "apps", "listen": f"tcp://127.0.0.1:{port}", "format": "json", "spool": "4GiB"}
    child_s = used_s(resource.RUSAGE_CHILDREN)
    page = free_port()
    weir = place.start("run", "--config", config(place, source, listen={"http": f"127.0.0.1:{page}"}), "--state",
                       place.path("state"), "--decisions", place.path("out"), "--quiet", "--summary", "json")
    until(lambda: not refuses(port), "weir listens", running=weir)
    own_s, began_s = used_s(resource.RUSAGE_SELF), time.monotonic()
    acked_s = send_all(port, made, len(ack))
    sender_s = used_s(resource.RUSAGE_SELF) - own_s
    until(lambda: value(page, "weir_source_lines_total") >= LINES, "all is read", 120, running=weir)
    took_s = time.monotonic() - began_s
    assert weir.stop(120) == 0, weir.said()
    zone = weir.summary()["zones"]["site"]
    assert zone["passed"] + zone["blocked"] == LINES, weir.said()
    shutil.rmtree(place.path("state"))
    return took_s, acked_s, used_s(resource.RUSAGE_CHILDREN) - child_s, sender_s


def run_file(place, path):
    """(seconds, processor seconds) of a run over the file."""
    child_s, began_s = used_s(resource.RUSAGE_CHILDREN), time.monotonic()
    done = place.good("run", "--once", "--config", config(place, {"type": "file", "path": path, "format": "json"}),
                      "--decisions", place.path("out"), "--quiet", "--summary", "json")
    took_s = time.monotonic() - began_s
    assert done.summary()["lines"] == LINES
    return took_s, used_s(resource.RUSAGE_CHILDREN) - child_s

def measure(place):
    """All three in turns; medians."""
    made, path = messages(), place.path("log")
    write_file(path)
    ack = b"\x81\xa3ack\xad" + b"chunk00000000"
    rows = []
    for _ in range(RUNS):
        rows.append((run_file(place, path), run_sink(place, made, ack), run_weir(place, made, ack)))
    file, sink, weir = ([statistics.median(one) for one in zip(*runs)] for runs in zip(*rows))

    def cpu_ns(seconds):
        return round(seconds * 1e9 / LINES)
    bench.report("forward", lines=LINES, message_bytes=len(made[0]), weir_lines_per_s=round(LINES / weir[0]),
                 acknowledged_per_s=round(LINES / weir[1]), file_lines_per_s=round(LINES / file[0]),
                 sink_lines_per_s=round(LINES / sink[0]), ratio=round(file[0] / weir[0], 2), goal=GOAL,
                 ratio_to_sink=round(sink[0] / weir[1], 2), weir_cpu_ns=cpu_ns(weir[2]), file_cpu_ns=cpu_ns(file[1]),
                 sink_cpu_ns=cpu_ns(sink[1]), sender_cpu_ns=cpu_ns(weir[3]))


if __name__ == "__main__":
    bench.main("forward", measure)
