#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks where several limiters have the partitions: any of them answers any key, and exactly."""

import itertools
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support import cases, cluster
from support.check_cluster import crew, leave, limiter, until_answered
from support.check_cluster import ask as check
from support.checks import Raw
from support.place import PATIENCE_S
from support.traffic import sliding, zone

from parts.programs import find

# redis-py of a cluster, by the Python that has it: asks a port for keys, prints the nodes' ports, and each answer.
LIBRARY = """
import json, sys, redis
client = redis.RedisCluster(host="127.0.0.1", port=int(sys.argv[1]), socket_timeout=20)
print(json.dumps([node.port for node in client.get_nodes()]), flush=True)
def answered(key):
    while True:  # on a busy machine its log may acknowledge nothing for a while; whoever started this ends it
        try:
            return client.execute_command(sys.argv[2], key, "site")[:3]
        except redis.ResponseError as refused:
            if not str(refused).startswith("UNAVAILABLE"):
                raise

for line in sys.stdin:
    print(json.dumps([answered(key) for key in json.loads(line)]), flush=True)
"""
LIMIT = 20
ZONES = [zone("site", [sliding(LIMIT, "1h")]),
         zone("nets", [sliding(LIMIT, "1h")], key=[{"field": "ip", "prefix6": 64}])]
KEYS = [f"key-{number}" for number in range(48)]


def run(program, port, *words, given=""):
    """What it printed, once it has nothing to say of checks that are unavailable: on a busy machine some are."""
    until = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run([find(program), "-p", str(port), *words], input=given, capture_output=True, text=True,
                              timeout=PATIENCE_S * 4, check=False)
        if "UNAVAILABLE" in done.stdout + done.stderr and time.monotonic() < until:
            continue
        assert done.returncode == 0, (words, done.stdout[-500:], done.stderr[-500:])
        return done.stdout


def ask(raw, *words):
    """A check's integers, once it can be judged."""
    until = time.monotonic() + PATIENCE_S
    while True:
        answer = check(raw, *words)
        if not str(answer).startswith("UNAVAILABLE") or time.monotonic() > until:
            return answer


class Library:
    """A redis-py that takes a limiter for a node of a Redis cluster, with the table that it was given at first."""

    def __init__(self, port, command):
        python = subprocess.run([os.path.join(os.path.dirname(__file__), "..", "python"), "checks"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, timeout=900, check=True, text=True).stdout.strip()
        # pylint: disable-next=consider-using-with
        self._run = subprocess.Popen([python, "-c", LIBRARY, str(port), command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True)
        self.nodes = set(json.loads(self._run.stdout.readline()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._run.stdin.close()
        assert self._run.wait(PATIENCE_S) == 0
        self._run.stdout.close()

    def ask(self, keys):
        """[limited, limit, remaining] of each."""
        self._run.stdin.write(json.dumps(keys) + "\n")
        self._run.stdin.flush()
        return json.loads(self._run.stdout.readline())


def ask_owners(port, limiters):
    """Asks a client of clusters for new keys until all have gone to their owners: the keys. Partitions that move on a busy
    machine are elsewhere than the client was told."""
    until = time.monotonic() + PATIENCE_S
    for attempt in itertools.count():
        keys = [f"py-{port}-{attempt}-{number}" for number in range(32)]
        with Library(port, "WEIR.CHECK") as client:
            before = forwarded(limiters)
            answers = client.ask(keys)
            after = forwarded(limiters)
        right = client.nodes == {one.checks for one in limiters} and answers == [[0, LIMIT, LIMIT - 1]] * len(keys)
        if right and after == before:
            return keys
        assert time.monotonic() < until, ("slots lead elsewhere", client.nodes, answers, after - before)


def forwarded(limiters):
    """How many checks they have forwarded to each other."""
    return sum(one.value("weir_check_forwarded_total") for one in limiters)


def test_any_limiter_answers_any_key(place):
    """Eight callers on each of two limiters, each key at both: as many pass as the limit says. What one of them is told
    later, the other knows."""
    with cluster.shared() as servers:
        roles, limiters = crew(place, servers, ZONES)
        passed, lock = dict.fromkeys(KEYS, 0), threading.Lock()

        def caller(port):
            with Raw(port) as raw:
                for _ in range(2):
                    for key in KEYS:
                        answer = ask(raw, "WEIR.CHECK", key, "site")
                        with lock:
                            passed[key] += answer[0] == 0

        callers = [threading.Thread(target=caller, args=[one.checks]) for one in limiters for _ in range(8)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join()
        assert set(passed.values()) == {LIMIT}, passed
        for one in limiters:
            assert one.value("weir_check_forwarded_total") > 0
            with Raw(one.checks) as raw:
                assert [ask(raw, "WEIR.PEEK", key, "site")[:3] for key in KEYS] == [[1, LIMIT, 0]] * len(KEYS)
                # An address is counted as its network, whose slot is another than that of what was sent.
                for number in range(LIMIT // 2):
                    assert ask(raw, "WEIR.CHECK", f"2001:db8::{one.checks:x}:{number:x}", "nets")[0] == 0
                raw.send(b"*3\r\n$10\r\nWEIR.CHECK\r\n$1\r\nx\r\n$2\r\nno\r\n")
                assert raw.line().startswith(b"-ERR there is no zone")
        with Raw(limiters[0].checks) as raw:
            assert ask(raw, "WEIR.CHECK", "2001:db8::ffff", "nets")[:3] == [1, LIMIT, 0]
        leave(roles, limiters)


def test_clients_of_clusters(place):
    """redis-cli, redis-benchmark and redis-py take two limiters, and one, for a Redis cluster."""
    with cluster.shared() as servers:
        roles, limiters = crew(place, servers, ZONES)
        ports = [one.checks for one in limiters]
        for port in ports:
            assert [run("redis-cli", port, "-c", "WEIR.CHECK", f"cli-{port}-{number}", "site").splitlines()[:3]
                    for number in range(8)] == [["0", str(LIMIT), str(LIMIT - 1)]] * 8
            said = run("redis-cli", port, "--cluster", "check", f"127.0.0.1:{port}")
            assert "All 16384 slots covered" in said and str(ports[0]) in said and str(ports[1]) in said, said
            said = run("redis-benchmark", port, "--cluster", "-q", "-e", "-n", "2000", "-r", "10000", "WEIR.CHECK",
                       "{tag}:__rand_int__", "site")
            assert "requests per second" in said and "rror" not in said, said
            keys = ask_owners(port, limiters)
        # One of them leaves, with the client's table as it was: nothing but its address is missing.
        with Library(ports[0], "WEIR.PEEK") as client:
            assert client.nodes == set(ports)
            assert limiters[1].stop() == 0
            until_answered(limiters[:1])
            assert client.ask(keys) == [[0, LIMIT, LIMIT - 1]] * 32
        said = run("redis-benchmark", ports[0], "--cluster", "-q", "-e", "-n", "2000", "-r", "10000", "WEIR.CHECK",
                   "{tag}:__rand_int__", "site")
        assert "requests per second" in said and "rror" not in said, said
        assert "All 16384 slots covered" in run("redis-cli", ports[0], "--cluster", "check", f"127.0.0.1:{ports[0]}")
        leave(roles, limiters[:1])


def test_redirection(place):
    """MOVED where that leads to the owner, and never back and forth: what is counted under another name is forwarded."""
    with cluster.shared() as servers:
        roles, limiters = crew(place, servers, ZONES, redirect=False)
        redirecting = limiter(roles, "redirecting", redirect=True)
        until_answered([redirecting])
        until = time.monotonic() + PATIENCE_S
        moved = set()
        while not moved and time.monotonic() < until:  # it is told when it has read who has what
            with Raw(redirecting.checks) as raw:
                said = [ask(raw, "WEIR.CHECK", key, "site") for key in KEYS]
            moved = {key: words.split() for key, words in zip(KEYS, said) if str(words).startswith("MOVED ")}
        assert moved
        places = {f"127.0.0.1:{one.checks}" for one in limiters}
        assert {words[2] for words in moved.values()} <= places, moved
        until_answered([redirecting], [f"2001:db8:{number:x}::1" for number in range(64)], "nets")
        with Raw(redirecting.checks) as raw:
            said = [ask(raw, "WEIR.CHECK", f"2001:db8:{number:x}::1", "nets") for number in range(64)]
        here = [words for words in said if not isinstance(words, str)]
        assert len(here) > 64 / 3 + 8, "what is counted under another name is forwarded"
        assert here == [[0, LIMIT, LIMIT - 1, -1, 3600000]] * len(here), here
        with Library(redirecting.checks, "WEIR.PEEK") as client:
            assert [answer[1] for answer in client.ask(KEYS)] == [LIMIT] * len(KEYS)
        leave(roles, [*limiters, redirecting])


if __name__ == "__main__":
    cases.main(globals())
