#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Redis clients for Node, Go, Java and C ask for checks, of one server and of a cluster; and the examples of a page that asks
before it serves, in four languages."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support import cases, cluster
from support.check_cluster import crew, leave
from support.checks import ZONES, model, started, whole
from support.gateways import ask, example
from support.place import PATIENCE_S, SANITIZED, free_port, read, until
from support.real_clients import CLIENTS, EXAMPLES, told
from support.redis import Redis

LATE_S = 10 if SANITIZED else 2  # an answer without weir takes 100 ms, and more on a busy machine


def uses(place, name, *modes):
    """What every client does: single calls, a pipeline, an error; with a login, and of what answers later."""
    command = CLIENTS[name](place)
    for mode in modes:
        with whole(place) as port:
            answered_well(told(command, mode, port, f"{name}-{mode}"))
        with model(place, "later", "user=gate:pass word") as port:
            answered_well(told(command, mode, port, f"{name}-{mode}", "gate", "pass word"))


def answered_well(said, limit=10):
    """That these are the answers of weir to a client that asks for new keys."""
    assert said["check"][:4] == [0, limit, limit - 1, -1] and len(said["check"]) == 5, said
    assert said["throttle"] == [0, 16, 15, -1, 2], said
    assert said["pipeline"] == [1] * min(limit - 1, 12) + [0] * max(0, 13 - limit), said
    assert "there is no zone" in said["error"], said
    assert [answer[:3] for answer in said["many"]] == [[0, limit, limit - 1]] * 100, said


def test_ioredis(place):
    uses(place, "ioredis", "plain", "cluster")


def test_node_redis(place):
    uses(place, "node-redis", "plain", "cluster")


def test_go_redis(place):
    uses(place, "go-redis", "plain", "cluster")


def test_jedis(place):
    uses(place, "Jedis", "plain", "cluster")


def test_lettuce(place):
    uses(place, "Lettuce", "plain", "cluster")


def test_hiredis(place):
    uses(place, "hiredis", "plain")


def test_clients_of_clusters(place):
    """Two limiters, which pass on what another one has, and which redirect: clients of clusters find their way."""
    with cluster.shared() as servers:
        commands = {}
        for name, made in CLIENTS.items():
            try:
                commands[name] = made(place)
            except cases.Skipped as why:
                print(f"{name} is left out: {why}")
        for redirect in (False, True):
            roles, limiters = crew(place, servers, ZONES, redirect=redirect)
            until(lambda: all(is_covered(one.checks) for one in limiters), "each knows the other")
            for name, command in commands.items():
                if name != "hiredis":
                    for one in limiters:
                        answered_well(told_in_time(command, one.checks, f"{name}-{one.checks}"))
            if redirect:
                assert sum(one.value("weir_check_redirected_total") for one in limiters) > 0, "nobody was sent elsewhere"
            leave(roles, limiters)


def is_covered(port):
    """Whether a limiter names two."""
    client = Redis(port)
    try:
        return len({line.split()[1] for line in client.call("CLUSTER", "NODES").decode().splitlines()}) == 2
    finally:
        client.close()


def told_in_time(command, port, key):
    """What a client was told; asked again with other keys while a log on a busy machine acknowledges nothing."""
    end, turn = time.monotonic() + PATIENCE_S, 0
    while True:
        turn += 1
        try:
            return told(command, "cluster", port, f"{key}-{turn}")
        except AssertionError as why:
            if "ask again" not in str(why) or time.monotonic() > end:
                raise


# ---- the examples ----

@contextlib.contextmanager
def page(place, name, weir_port):
    """An example, once it serves: its port."""
    port = free_port()
    # A page does something before it asks: by then, a caller that hangs up has ended its request.
    work = [("limited, wait :=", "time.Sleep(20 * time.Millisecond); limited, wait :=")] if name == "check.go" else []
    command = EXAMPLES[name](place, example(f"clients/{name}", ("6390", str(weir_port)), ("8000", str(port)), *work))
    with open(place.path(f"{name}.log"), "wb") as log:
        # pylint: disable-next=consider-using-with
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: ask(port) or server.poll() is not None, "the page serves")
        yield port
        assert server.poll() is None, read(place.path(f"{name}.log"))[-2000:]
    finally:
        server.kill()
        server.wait()


def half_closed(port):
    """What a caller is told that says all it has to say, and closes its side."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as link, link.makefile("rb") as told_back:
        link.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        link.shutdown(socket.SHUT_WR)
        try:
            return told_back.read()
        except ConnectionError:
            return b""


def serves(place, name):
    """Ten visits in a minute, then 429; all are served while weir stands still or is away, and soon."""
    weir, weir_port = started(place)
    weir_client = Redis(weir_port)
    left = lambda: weir_client.call("WEIR.PEEK", "127.0.0.1", "site")[2]
    with page(place, name, weir_port) as port:
        until(lambda: ask(port) and left() < 10, "weir is asked")
        asked = lambda: int(re.search(rb"total_commands_processed:(\d+)", weir_client.call("INFO", "stats")).group(1))

        def asked_about_all():
            before = asked()
            served = sum(half_closed(port).startswith(b"HTTP/1.1 ") for _ in range(20))
            answers = served > 0 or name == "check.mjs"  # Node mostly tells nothing to who has closed a side
            return answers and asked() - before > served  # INFO is one
        # On a busy machine an answer may be late, and a page serves without it.
        until(asked_about_all, "who closes its side at once is asked about, if it is told anything")
        rest, seen = left(), []
        until(lambda: seen.append(ask(port)) or seen[-1][0] == 429, "no more are served")  # a late answer lets one more pass
        assert len(seen) > rest and {status for status, _ in seen[:-1]} <= {200}, seen
        assert 0 < int(seen[-1][1]) <= 60, seen
        for more, expected in ((["--for", "1h"], "3600"), ([], None)):  # without end, no time helps
            blocked = place.run("block", "127.0.0.1", "--zone", "site", *more, "--state", place.path(f"state-{weir_port}"))
            assert blocked.code() == 0, blocked.said()
            until(lambda wait=expected: ask(port) == (429, wait), f"the page says {expected}")
        weir.pause()
        took = []
        for _ in range(5):
            began = time.monotonic()
            assert ask(port)[0] == 200
            took.append(time.monotonic() - began)
        assert sorted(took)[2] < LATE_S, ("it waits for weir", took)
        weir.resume()
        until(lambda: ask(port)[0] == 429, "weir is asked again")
        weir_client.close()
        assert weir.stop() == 0, weir.said()
        assert [ask(port)[0] for _ in range(5)] == [200] * 5


def test_page_in_python(place):
    serves(place, "check.py")


def test_page_in_node(place):
    serves(place, "check.mjs")


def test_page_in_go(place):
    serves(place, "check.go")


def test_page_in_java(place):
    serves(place, "Check.java")


if __name__ == "__main__":
    cases.main(globals())
