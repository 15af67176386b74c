# SPDX-License-Identifier: Apache-2.0
"""Servers that answer checks by RESP: the surface alone, over the judge of resp_model, and `weir run`."""

import contextlib
import os
import socket
import subprocess
import threading

from support.place import PATIENCE_S, ROOT, free_port, until
from support.redis import Redis, RedisError
from support.traffic import source

BUILD = os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release"))
MODEL = os.path.join(BUILD, "tests", "resp_model")

# What the tests ask about: ten in a minute by address, redis-cell's example by user, three by address and path.
ZONES = [
    {"name": "site", "key": ["ip"], "limits": [{"algorithm": "sliding_window", "rate": 10, "window": "1m"}]},
    {"name": "cell", "key": ["user"], "limits": [{"algorithm": "gcra", "rate": 30, "window": "1m", "burst": 15}]},
    {"name": "second", "key": ["user"], "limits": [{"algorithm": "gcra", "rate": 1, "window": "1s", "burst": 0}]},
    {"name": "whole", "key": [{"field": "ip", "prefix6": 128}],
     "limits": [{"algorithm": "sliding_window", "rate": 100, "window": "1m"}]},
    {"name": "two", "key": [{"field": "ip", "prefix6": 128}, "path"], "limits": [{"algorithm": "sliding_window", "rate": 3, "window": "1m"}]},
    {"name": "nets", "key": [{"field": "ip", "prefix6": 64, "prefix4": 24}],
     "limits": [{"algorithm": "sliding_window", "rate": 100, "window": "1m"}]},
    {"name": "wide", "key": ["user"], "limits": [{"algorithm": "sliding_window", "rate": 1000000, "window": "1m"}]},
]


@contextlib.contextmanager
def model(place, *words, zones=ZONES):  # pylint: disable=dangerous-default-value
    """The model with these words: its port."""
    config = place.config(zones, [], name="model.json")
    # pylint: disable-next=consider-using-with
    server = subprocess.Popen([MODEL, config, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        line = server.stdout.readline()
        assert line, "resp_model did not start"
        yield int(line)
        assert server.poll() is None, f"resp_model ended by itself: {server.returncode}"
        server.stdin.close()
        assert server.wait(PATIENCE_S) == 0, "resp_model ended with an error: see above"
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        server.stdout.close()


def run(place, zones, listen, *, state="state", threads=2, limiter=None, sources=None, stdin=subprocess.DEVNULL, **checks):
    """A `weir run` that takes checks at listen's addresses, once it follows a log, or sources: it, with the port of its pages as
    `pages`."""
    pages = free_port()
    config = place.config(zones, [source(place.write("log", ""))] if sources is None else sources, bus={"partitions": 4},
                          limiter=limiter or {"threads": threads, "memory": "64MiB"},
                          listen={"http": f"127.0.0.1:{pages}", **listen}, checks=checks)
    weir = place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path(f"out-{state}"),
                       stdin=stdin)
    until(lambda: "following" in weir.said(), "weir follows", running=weir)
    weir.pages = pages
    return weir


def until_answered(weir, answers, before=""):
    """Waits until every partition answers: each does when its marker has come back. answers(key): whether it is answered."""
    for number in range(32):  # some for each partition
        until(lambda key=f"{before}other-{number}": answers(key), "checks are answered", running=weir)


def started(place, zones=ZONES, *, listen=None, state=None, **more):  # pylint: disable=dangerous-default-value
    """A `weir run` with all that is behind its checks: it, and its port, once every partition answers. more: of run()."""
    port = free_port()
    weir = run(place, zones, {"resp": f"127.0.0.1:{port}", **(listen or {})}, state=state or f"state-{port}", **more)
    client = Redis(port)
    if "password" in more:
        client.call("AUTH", more["password"])

    def answers(key):
        try:
            return client.call("WEIR.PEEK", key, zones[0]["name"])
        except RedisError as error:
            assert str(error).startswith("UNAVAILABLE "), error
            return None
    until_answered(weir, answers)
    client.close()
    return weir, port


@contextlib.contextmanager
def whole(place, zones=ZONES, **checks):  # pylint: disable=dangerous-default-value
    """Its port while it runs, which ends well."""
    weir, port = started(place, zones, **checks)
    yield port
    assert weir.stop() == 0, weir.said()


SERVERS = ("now", "later", "weir run", "weir run, durable")


def served(place, kind):
    """One of SERVERS: its port."""
    if kind.startswith("weir run"):
        return whole(place, durable="durable" in kind)
    return model(place, kind)


class Raw:
    """A connection on which bytes are sent and expected as they are."""

    def __init__(self, port, wrap=None):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wrap is not None:
            self.socket = wrap(self.socket)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Bytes."""
        self.socket.sendall(data)

    def take(self, count):
        """So many bytes, fewer where the server ends the connection."""
        while len(self.rest) < count:
            try:
                some = self.socket.recv(1 << 16)
            except ConnectionResetError:
                some = b""
            if not some:
                break
            self.rest += some
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def line(self):
        """The bytes up to the next end of a line, without it."""
        while b"\r\n" not in self.rest:
            some = self.socket.recv(1 << 16)
            if not some:
                raise ConnectionResetError
            self.rest += some
        taken, self.rest = self.rest.split(b"\r\n", 1)
        return taken

    def answers(self, data, wanted):
        """Sends bytes, and sees that just these come back."""
        self.send(data)
        came = self.take(len(wanted))
        assert came == wanted, f"{data[:100]!r}: {came[:300]!r} instead of {wanted[:300]!r}"

    def ends(self):
        """What comes until the server ends the connection."""
        return self.take(1 << 30)


def command(*words):
    """A command's bytes."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def five(*numbers):
    """The bytes of a check's reply."""
    return b"*%d\r\n" % len(numbers) + b"".join(b":%d\r\n" % number for number in numbers)


def crowd(opened, callers, ask):
    """Runs ask(caller, number) for each of so many connections at once, which opened() opens: what they returned."""
    results, failures = [None] * callers, []
    together = threading.Barrier(callers)

    def one(number):
        try:
            with opened() as caller:
                together.wait(PATIENCE_S)
                results[number] = ask(caller, number)
        except Exception as failure:  # pylint: disable=broad-exception-caught
            failures.append(failure)
            together.abort()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return results
