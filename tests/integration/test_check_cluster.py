#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks where several limiters have the partitions: any of them answers any key, and exactly."""

import contextlib
import functools
import itertools
import json
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support import cases, cluster, http2
from support.check_cluster import QUICK, SECTIONS, crew, leave, limiter, stop_all, until_answered
from support.check_cluster import ask as check
from support.check_http import Caller
from support.checks import Raw, command, crowd
from support.exempt import ListServer, NameServer
from support.place import PATIENCE_S, free_port, read, until
from support.redis import Redis, RedisError
from support.roles import Roles
from support.run_local import USAGE
from support.small_disk import enter_namespace, instead
from support.traffic import sliding, zone

from parts import tls
from parts.process import together
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
NO_NAMESPACE = enter_namespace()
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


def listens(port):
    """Whether somebody does there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


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
        with Raw(limiters[0].checks) as raw, Raw(limiters[1].checks) as other:
            assert ask(raw, "WEIR.CHECK", "2001:db8::ffff", "nets")[:3] == [1, LIMIT, 0]
            # A key that is escaped or shortened is passed on as it is counted, not escaped again.
            for key in [form + str(number) for number in range(8) for form in ("a|", "a\\", "x" * 2000)]:
                assert [ask(at, "WEIR.CHECK", key, "site")[2] for at in (raw, other, raw)] == [LIMIT - 1, LIMIT - 2, LIMIT - 3], key[-20:]
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


def test_many_checks_of_another_limiter_are_under_way(place):
    """Keys that the other limiter has, in groups however small: far fewer than checks.in_flight are no reason to refuse any."""
    with cluster.shared() as servers:
        roles, limiters = crew(place, servers, [zone("site", [sliding(1_000_000, "1h")], key=["user"])], durable=True)

        def caller(raw, number):
            said, end = set(), time.monotonic() + PATIENCE_S
            for turn in itertools.count():
                for key in range(60):
                    raw.send(command("WEIR.ALLOW", f"{number}-{turn}-{key}", "site"))
                now = {raw.line() for _ in range(60)}
                # A limiter that stalls holds up all that is under way, which is full then, and late.
                assert any(b"late" in line for line in said | now) or not any(line.startswith(b"-UNAVAILABLE full") for line in now), now
                said |= now
                if turn >= 3 and (b":1" in said or time.monotonic() > end):
                    break
            assert b":1" in said, said

        crowd(functools.partial(Raw, limiters[0].checks), 60, caller)
        assert limiters[0].value("weir_check_forwarded_total") > 1000
        leave(roles, limiters)


def test_limiters_show_one_another_a_certificate(place):
    """Where clients must: keys of either are answered at both, by the command too. One that would be refused is told of."""
    together([tls.making(place.path("tls")), tls.making(place.path("other"))])
    paths, others = tls.files(place.path("tls")), tls.files(place.path("other"))
    context = ssl.create_default_context(cafile=paths["ca"])
    context.load_cert_chain(paths["cert"], paths["key"])
    with cluster.shared() as servers, Roles(place, servers, ZONES, **SECTIONS) as roles:
        roles.apply()
        shown = {"certificate": paths["cert"], "key": paths["key"], "client_ca": paths["ca"]}
        limiters = [limiter(roles, f"limiter-{number}", shown, tls=True, ca=paths["ca"], password="secret") for number in range(2)]
        for one in limiters:
            one.until_says("partitions, with")
        clients = [Redis(one.checks, wrap=lambda plain: context.wrap_socket(plain, server_hostname="127.0.0.1")) for one in limiters]
        for client in clients:
            assert client.call("AUTH", "secret") == b"OK"
            assert [call(client, "WEIR.PEEK", key, "site")[1] for key in KEYS] == [LIMIT] * len(KEYS)
            client.close()
        for one in limiters:
            for key in KEYS[:4]:
                until(lambda one=one, key=key: place.run("check", key, "--zone", "site", "--peek", "--config", one.config).code() == 0,
                      "the command is answered", running=one.run)
            bare = place.run("check", KEYS[0], "--zone", "site", "--config", one.config, "--certificate", others["cert"], "--key", others["key"])
            assert bare.code() == USAGE, bare.said()
            assert "has not issued" not in one.said()
        stop_all(limiters)
        config = json.loads(read(limiters[0].config))
        config["listen"]["client_ca"] = others["ca"]
        said = place.good("validate", "--config", place.write("doubted.json", json.dumps(config))).out().decode()
        assert f"limiters show each other {paths['cert']}, and would refuse it as a client's by {others['ca']}: " in said, said


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


def call(client, *words):
    """A command's answer, once it can be judged."""
    def answered():
        try:
            return [client.call(*words)]
        except RedisError as error:
            assert str(error).startswith(("UNAVAILABLE ", "ERR there is no policy")), error
            return None
    return until(answered, "it can be judged")[0]


def test_all_or_none_by_tls(place):
    """Limiters that ask each other by TLS and with a password. Bundles of three keys, which have several owners: no limit is
    passed, and what counts in the end is what passed."""
    directory = place.path("tls")
    together([tls.making(directory)])
    paths = tls.files(directory)
    context = ssl.create_default_context(cafile=paths["ca"])

    def opened(one):
        client = Redis(one.checks, wrap=lambda plain: context.wrap_socket(plain, server_hostname="127.0.0.1"))
        assert client.call("AUTH", "secret") == b"OK"
        return client

    def caller(one, number, passed):
        client, rng = opened(one), random.Random(number)
        for _ in range(20):
            keys = rng.sample(KEYS[:12], 3)
            if call(client, "WEIR.ALL", 3, *[word for key in keys for word in (key, "site", 1)])[0] == 0:
                passed.extend(keys)
        client.close()

    with cluster.shared() as servers, Roles(place, servers, ZONES, **SECTIONS) as roles:
        roles.apply()
        limiters = [limiter(roles, f"limiter-{number}", {"certificate": paths["cert"], "key": paths["key"]}, tls=True, ca=paths["ca"],
                            password="secret") for number in range(2)]
        for one in limiters:
            one.ca = paths["ca"]
            one.until_says("checks: listening")
        clients = [opened(one) for one in limiters]
        until(lambda: all(one.value("weir_limiter_partitions", state="live") > 0 for one in limiters), "each has partitions")
        for client in clients:
            for key in KEYS:
                call(client, "WEIR.PEEK", key, "site")
        passed = []
        callers = [threading.Thread(target=caller, args=[limiters[number % 2], number, passed]) for number in range(8)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join()
        assert all(one.value("weir_check_forwarded_total") > 0 for one in limiters)
        for key in KEYS[:12]:
            count = passed.count(key)
            assert count <= LIMIT, (key, count)
            until(lambda key=key, count=count: call(clients[0], "WEIR.PEEK", key, "site")[2] == LIMIT - count, f"{key}: what passed counts")
        assert len(passed) > 3 * LIMIT, len(passed)
        for key in KEYS[12:]:  # reserved at one, settled at the other
            reserved = call(clients[0], "WEIR.RESERVE", key, "site", 5)
            assert reserved[0] == 0 and call(clients[1], "WEIR.SETTLE", key, "site", reserved[5], 2)[0] == 0, reserved
            assert call(clients[0], "WEIR.PEEK", key, "site")[2] == LIMIT - 2, key
        with Raw(limiters[0].checks) as plain:
            plain.send(b"PING\r\n")
            assert b"PONG" not in plain.ends()
        for client in clients:
            client.close()
        stop_all(limiters)


@contextlib.contextmanager
def pair(place, zones, surface):
    """Two limiters that have partitions and take checks by one more protocol: they, and its ports. They end as they should."""
    with cluster.shared() as servers, Roles(place, servers, zones, **SECTIONS) as roles:
        roles.apply()
        ports = [free_port(), free_port()]
        limiters = [limiter(roles, f"limiter-{number}", {surface: f"127.0.0.1:{port}"}) for number, port in enumerate(ports)]
        until_answered(limiters)
        until(lambda: all(one.value("weir_limiter_partitions", state="live") > 0 for one in limiters), "each has partitions")
        until_answered(limiters)
        yield limiters, ports
        assert all(one.value("weir_check_forwarded_total") > 0 for one in limiters)
        stop_all(limiters)


def test_http_at_any_limiter(place):
    """A request that is asked in two zones, and JSON of one key, at both limiters: as many pass as the limits say."""
    zones = [zone("site", [sliding(LIMIT, "1h")], key=["ip"]),
             zone("login", [sliding(LIMIT // 2, "1h")], key=["ip"], match={"path": "/login"})]
    with pair(place, zones, "check_http") as (_, ports):
        clients = [f"192.0.2.{number}" for number in range(16)]

        def nginx(caller, client, uri):
            """Whether it passes, once it can be judged."""
            status, _, words = until(lambda: [answer for answer in [caller.nginx(uri, client=client)] if b"unavailable" not in answer[2].lower()],
                                     "it can be judged")[0]
            assert status in (200, 429), (status, words)
            return status == 200

        def both(caller, number):
            logins = [sum(nginx(caller, client, "/login") for _ in range(2)) for client in clients]
            rest = [sum(nginx(caller, client, "/") for _ in range(2)) for client in clients]
            return list(zip(logins, rest))
        passed = [crowd(functools.partial(Caller, port), 8, both) for port in ports]
        each = [tuple(map(sum, zip(*counts))) for counts in zip(*passed[0], *passed[1])]
        assert all(logins <= LIMIT // 2 and logins + rest <= LIMIT for logins, rest in each), each
        with Caller(ports[0]) as here, Caller(ports[1]) as there:
            for caller in (here, there):
                for client in clients:
                    answer = until(lambda client=client, caller=caller: [answer for status, answer in [caller.check(zone="site", key=client, peek=True)]
                                                                         if status == 200 and "remaining" in answer], "it is answered")[0]
                    assert answer["limit"] == LIMIT and not answer["allowed"] and answer["remaining"] == 0, (client, answer, each)


def test_a_limiter_without_a_partition_knows_the_policy(place):
    """Two partitions, three limiters: whoever has none is asked as the others, also for a zone that came later."""
    with cluster.shared() as servers, Roles(place, servers, ZONES, **{**SECTIONS, "bus": {"partitions": 2, **QUICK["bus"]}}) as roles:
        roles.apply()
        limiters = [limiter(roles, f"spare-{number}", listen={"check_http": f"127.0.0.1:{free_port()}"}) for number in range(3)]
        until_answered(limiters)
        limiters[0].until(lambda: any(one.value("weir_limiter_partitions", state="live") == 0 for one in limiters), "one has none")
        roles.apply([*ZONES, zone("login", [sliding(1, "1h")], key=["user"])])
        for number, one in enumerate(limiters):
            with Raw(one.checks) as raw:
                one.until(lambda raw=raw: isinstance(ask(raw, "WEIR.PEEK", "ann", "login"), list), "knows the new zone")
                assert ask(raw, "WEIR.CHECK", f"user-{number}", "login")[0] == 0
        for one in limiters:
            with Raw(one.checks) as raw:
                assert [ask(raw, "WEIR.CHECK", f"user-{number}", "login")[0] for number in range(3)] == [1, 1, 1]
        stop_all(limiters)


def test_before_there_is_a_policy_nothing_can_be_judged(place):
    """What checks.on_unavailable says holds then, too."""
    told = {"error": (503, "UNAVAILABLE loading"), "allow": (200, [0, 0, 0, -1, 0]), "deny": (429, [1, 0, 0, 1000, 0])}
    with cluster.shared() as servers, Roles(place, servers, ZONES, **SECTIONS) as roles:
        for word, (status, answer) in told.items():
            port = free_port()
            one = limiter(roles, f"bare-{word}", listen={"check_http": f"127.0.0.1:{port}"}, on_unavailable=word).until_up()
            one.until_says("no policy yet")
            one.until(lambda one=one: listens(one.checks), "listens")
            with Raw(one.checks) as raw, Caller(port) as caller:
                said = check(raw, "WEIR.CHECK", "ann", "site")
                assert said == answer or said.startswith(answer), (word, said)
                assert check(raw, "WEIR.RELEASE", "ann", "site", "0" * 32).startswith("UNAVAILABLE loading"), word
                found, fields, body = caller.nginx("/", client="192.0.2.1")
                assert found == status and b'""' not in body and '""' not in str(fields), (word, found, fields, body)
                assert ("Retry-After" in fields) == (status != 200), fields
            assert one.stop() == 0


def test_name_servers_that_are_silent(place):
    """A limiter whose name cannot be asked for: checks of its keys are unavailable, others are answered, all of them soon, and
    who asks ends soon, too. The system's resolver would wait for ten seconds."""
    if NO_NAMESPACE:
        raise cases.Skipped(NO_NAMESPACE)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        silent.bind(("127.0.0.53", 53))
    except OSError as error:
        raise cases.Skipped(f"no port of a name server: {error}") from error
    conf = place.write("resolv.conf", "nameserver 127.0.0.53\noptions timeout:5 attempts:2\n")
    with silent, cluster.shared() as servers, Roles(place, servers, ZONES, **SECTIONS) as roles, instead("/etc/resolv.conf", conf):
        roles.apply()
        here = limiter(roles, "here")
        until_answered([here])
        there = limiter(roles, "there", advertise="limiter.weir.test:6390").until_up()
        until(lambda: all(one.value("weir_limiter_partitions", state="live") > 0 for one in (here, there)),
              "each has partitions", running=there.run)
        silent.recv(512)  # somebody wants to know
        with Raw(here.checks) as raw:
            outcomes = set()
            until_s = time.monotonic() + 12
            while time.monotonic() < until_s:
                began = time.monotonic()
                answers = [check(raw, "WEIR.PEEK", key, "site") for key in KEYS]
                assert time.monotonic() - began < 4, "checks wait for the name servers"
                outcomes |= {isinstance(answer, str) for answer in answers}
            assert outcomes == {True, False}, outcomes
        began = time.monotonic()
        assert here.stop() == 0
        assert time.monotonic() - began < 8, "it waits for the name servers"
        there.stop()


def test_lists_and_robots_are_exempt_at_a_limiter(place):
    """A limiter fetches the lists that a zone names, keeps a copy, reads a file of its own again, and knows robots by their names."""
    name, lists = NameServer.name, {"/ours": b"192.0.2.1\n"}
    robots = NameServer({(name("2.2.0.192.in-addr.arpa"), 12): name("crawl-1.googlebot.com"), (name("crawl-1.googlebot.com"), 1): bytes([192, 0, 2, 2])})
    server, port = ListServer(lists), free_port()
    zones = [zone("site", [sliding(LIMIT, "1h")], key=["ip"], exempt=[{"list": f"{server.address}/ours"}, {"list": place.write("own", "192.0.2.4\n")}, {"verified": ["googlebot"]}])]
    with cluster.shared() as servers, Roles(place, servers, zones, collector={"resolver": f"127.0.0.1:{robots.port}"}, **SECTIONS) as roles:
        def is_exempt(caller, client):
            """Whether a request is in no zone, once it can be judged."""
            status, answer = caller.check(fields={"ip": client, "agent": "Googlebot/2.1", "path": "/"}, peek=True)
            return status == 200 and answer["zones"] == []

        roles.apply()
        one = limiter(roles, "limiter", {"check_http": f"127.0.0.1:{port}"})
        until_answered([one])
        with Caller(port) as caller:
            for client in ("192.0.2.1", "192.0.2.2", "192.0.2.4"):
                until(lambda client=client: is_exempt(caller, client), "it is exempt", running=one.run)
            place.write("own", "192.0.2.5\n")
            until(lambda: is_exempt(caller, "192.0.2.5") and not is_exempt(caller, "192.0.2.4"), "a file is read again", running=one.run)
            assert not is_exempt(caller, "192.0.2.3")
            asked = Redis(one.checks)
            until(lambda: call(asked, "WEIR.CHECK", "192.0.2.1", "site", 1 << 40)[0] == 0, "a listed key passes, too", running=one.run)
            assert call(asked, "WEIR.CHECK", "192.0.2.2", "site", 1 << 40)[0] == 1, "a key names no agent"
            assert one.value("weir_exempt_fetched_lists") == 1 and one.value("weir_verified_asked_total") > 0
        assert one.stop() == 0
        server.stop()
        one.start()
        until_answered([one])
        with Caller(port) as caller:
            for client in ("192.0.2.1", "192.0.2.2"):  # of what was kept
                until(lambda client=client: is_exempt(caller, client), "it is exempt", running=one.run)
            assert not is_exempt(caller, "192.0.2.3")
        stop_all([one])


def test_grpc_at_any_limiter(place):
    """Envoy's calls at both limiters: as many pass as the limit says, wherever a key is."""
    with pair(place, ZONES, "grpc") as (_, ports):
        def ask_each(caller, number):
            """How many of each key passed; some could perhaps not be judged."""
            stream = iter(range(1, 1 << 20, 2))
            return [sum(caller.passes(next(stream), http2.request(b"user", key.encode())) is True for _ in range(4)) for key in KEYS[:16]]
        counts = [found for port in ports for found in crowd(functools.partial(http2.Http2, port), 8, ask_each)]
        passed = [sum(each) for each in zip(*counts)]
        assert max(passed) <= LIMIT and sum(passed) > 0.8 * LIMIT * len(passed), passed


if __name__ == "__main__":
    cases.main(globals())
