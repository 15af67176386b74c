#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in `weir run`, over sockets: as many pass as the limit says, however many ask, and through kill -9."""

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from functools import partial

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, check_http, metrics
from support.bench import cpu_s
from support.checks import Raw, command, crowd, started
from support.faketime import stepped_by_file
from support.place import PATIENCE_S, free_port, read, until
from support.redis import Redis, refused
from support.traffic import FORMAT, burst, line, sliding, source, zone

DONE, USAGE = 0, 2
REFRESHED_S = 1.2  # gauges of a worker are, at least so often
UNAVAILABLE = None


class Caller:
    """A connection that asks one check at a time."""

    def __init__(self, port):
        self.raw = Raw(port)
        self.file = self.raw.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.raw.socket.close()

    def ask(self, *words):
        """The reply's integers; None: unavailable."""
        self.raw.send(command(*words))
        head = self.file.readline()
        if not head:
            raise ConnectionResetError
        if head.startswith(b"-UNAVAILABLE"):
            return UNAVAILABLE
        assert head == b"*5\r\n", head
        numbers = [self.file.readline() for _ in range(5)]
        if not numbers[-1]:
            raise ConnectionResetError
        return [int(number[1:]) for number in numbers]


start = partial(started, state="state")  # again on what another one has left


def value(weir, name, **labels):
    """A sample of its page."""
    return metrics.scrape(weir.pages).value(name, **labels)


def until_all_came_back(weir):
    """The figure may be of a second before."""
    time.sleep(REFRESHED_S)
    until(lambda: value(weir, "weir_check_pending") == 0, "all checks came back", running=weir)


def test_as_many_pass_as_the_limit_says(place):
    weir, port = start(place, [zone("site", [sliding(100, "1h")])])
    before = value(weir, "weir_check_answers_total", answer="passed")
    for callers in (8, 64):
        def one_key(caller, _, callers=callers):
            return sum(caller.ask("WEIR.CHECK", f"ann-{callers}", "site")[0] == 0 for _ in range(800 // callers))

        def many_keys(caller, _, callers=callers):
            return [sum(caller.ask("WEIR.CHECK", f"key-{callers}-{key}", "site", 25)[0] == 0 for _ in range(2))
                    for key in range(8)]

        assert sum(crowd(partial(Caller, port), callers, one_key)) == 100
        assert [sum(passed) for passed in zip(*crowd(partial(Caller, port), callers, many_keys))] == [4] * 8
    assert value(weir, "weir_check_answers_total", answer="passed") - before == 2 * (100 + 8 * 4)
    # What the log says is what was answered: judged again after a crash, nothing is left either.
    until_all_came_back(weir)
    weir.kill()
    weir, port = start(place, [zone("site", [sliding(100, "1h")])])
    with Caller(port) as caller:
        for key in ("ann-8", "ann-64", "key-8-0", "key-64-7"):
            answer = caller.ask("WEIR.PEEK", key, "site")
            assert answer[:3] == [1, 100, 0], (key, answer)
        assert caller.ask("WEIR.CHECK", "bob", "site")[:4] == [0, 100, 99, -1]
    assert weir.stop() == DONE, weir.said()


def test_redis_cli_asks(place):
    weir, port = start(place, [zone("site", [sliding(2, "1h")])])
    def cli(*words):
        answer = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True, check=True,
                                timeout=PATIENCE_S)
        return answer.stdout.split("\n")
    assert cli("weir.check", "ann", "site")[:4] == ["0", "2", "1", "-1"]
    assert cli("weir.check", "ann", "site")[:4] == ["0", "2", "0", "-1"]
    blocked = cli("weir.check", "ann", "site")
    assert blocked[:3] == ["1", "2", "0"] and 0 < int(blocked[3]) <= 3600000
    assert 'no zone "sight"' in cli("weir.check", "ann", "sight")[0]
    assert weir.stop() == DONE, weir.said()


def test_lines_of_a_log_and_checks_meet_in_the_same_buckets(place):
    """They meet in another order in the log: at most the checks that have not come back from it pass beyond the limit. These are no more
    than the callers, unless the machine is so busy that the log stands still: then it is tried again."""
    callers, limit = 8, 200
    log = place.write("log", "")
    weir, port = start(place, [zone("site", [sliding(limit, "1h")])], sources=[source(log)])

    def judged():
        return value(weir, "weir_limiter_verdicts_total", zone="site", verdict="pass")

    def meet(key):
        """How many of the checks passed, and of all that was judged."""
        writing, before, blocked = threading.Event(), judged(), value(weir, "weir_limiter_verdicts_total", zone="site", verdict="block")

        def write():
            while not writing.wait(0.005):
                place.append("log", burst(key, 2, start_ms=time.time_ns() // 1000000))

        writer = threading.Thread(target=write)
        writer.start()
        passed = sum(crowd(partial(Caller, port), callers, lambda caller, _: sum(
            caller.ask("WEIR.CHECK", key, "site")[0] == 0 for _ in range(100))))
        until(lambda: value(weir, "weir_limiter_verdicts_total", zone="site", verdict="block") > blocked,
              "lines or checks are blocked", running=weir)
        writing.set()
        writer.join()
        until_all_came_back(weir)
        return passed, judged() - before

    for attempt in range(5):
        passed, counted = meet(f"ann{attempt}")
        assert 0 < passed <= limit <= counted <= limit + passed, (passed, counted)
        with Caller(port) as caller:
            assert caller.ask("WEIR.CHECK", f"ann{attempt}", "site")[:3] == [1, limit, 0]
        if counted <= limit + callers:
            break
    else:
        raise AssertionError(f"more than the callers pass beyond the limit each time, of {passed} checks {counted}")
    assert weir.stop() == DONE, weir.said()


def test_a_log_whose_clock_is_ahead_lets_no_more_pass(place):
    """By as much as a collector takes: a check that is late for its bucket is asked as of the newest event."""
    weir, port = started(place, [zone("quick", [sliding(3, "1s")], key=["user"])], sources=[source(place.write("log", ""))])
    with Caller(port) as caller:
        place.append("log", line(int(time.time() * 1000) + 4000, "ann"))
        until(lambda: caller.ask("WEIR.PEEK", "ann", "quick")[2] == 2, "the line counts", running=weir)
        passed = [caller.ask("WEIR.CHECK", "ann", "quick")[0] == 0 for _ in range(500)]
        assert sum(passed) == 2, sum(passed)
        assert caller.ask("WEIR.CHECK", "bob", "quick") == [0, 3, 2, -1, 1000]
        time.sleep(5.1)  # the log's time is over
        assert [caller.ask("WEIR.CHECK", "ann", "quick")[0] for _ in range(4)] == [0, 0, 0, 1]
    assert weir.stop() == DONE, weir.said()


def test_a_clock_that_is_set_back_stops_no_window(place):
    clock, before = place.write("clock", "+0"), dict(os.environ)
    os.environ.update(stepped_by_file(clock))
    try:
        weir, port = started(place, [zone("quick", [sliding(3, "1s")], key=["user"])])
    finally:
        os.environ.clear()
        os.environ.update(before)
    with Caller(port) as caller:
        assert [caller.ask("WEIR.CHECK", "ann", "quick")[0] for _ in range(4)] == [0, 0, 0, 1]
        place.write("clock", "-600")
        begun = time.monotonic()
        until(lambda: caller.ask("WEIR.CHECK", "ann", "quick")[0] == 0, "it passes again", running=weir)
        assert time.monotonic() - begun > 1, "at the whole speed"
        assert caller.ask("WEIR.CHECK", "new", "quick") == [0, 3, 2, -1, 1000]
    assert "this machine's clock is 9 min 5" in weir.said() or "this machine's clock is 10 min" in weir.said(), weir.said()
    assert weir.stop() == DONE, weir.said()


def test_none_passes_beyond_the_limit_through_kill_9(place):
    rounds, keys, limit = 6, 12, 30
    zones = [zone("site", [sliding(limit, "1h")])]
    rng = random.Random(7)
    passed, blocked = [0] * keys, [0] * keys
    lock = threading.Lock()

    def keep_asking(caller, number):
        for turn in range(100000):
            key = (number + turn) % keys
            try:
                reply = caller.ask("WEIR.CHECK", f"key-{key}", "site")
            except (ConnectionError, socket.timeout):
                return
            with lock:
                if reply is not UNAVAILABLE:
                    (blocked if reply[0] else passed)[key] += 1

    for number in range(rounds):
        weir, port = start(place, zones, durable=True)
        asking = threading.Thread(target=crowd, args=(partial(Caller, port), 8, keep_asking))
        asking.start()
        time.sleep(0.1 + 0.3 * rng.random())
        weir.kill()
        asking.join()
        assert max(passed) <= limit, (number, passed)
    weir, port = start(place, zones, durable=True)
    with Caller(port) as caller:
        for key in range(keys):
            while caller.ask("WEIR.CHECK", f"key-{key}", "site")[0] == 0:
                passed[key] += 1
                assert passed[key] <= limit
    assert weir.stop() == DONE, weir.said()


def test_it_ends_while_callers_ask(place):
    weir, port = start(place, [zone("site", [sliding(10, "1h")])])
    asked = []

    def keep_asking(caller, number):
        for turn in range(1000000):
            try:
                caller.ask("WEIR.CHECK", f"key-{number}-{turn}", "site")
            except ConnectionError:
                return
            asked.append(number)

    asking = threading.Thread(target=crowd, args=(partial(Caller, port), 8, keep_asking))
    asking.start()
    until(lambda: len(asked) > 500, "checks are answered", running=weir)
    assert weir.stop() == DONE, weir.said()
    asking.join()
    assert "error" not in weir.said().lower(), weir.said()


def test_who_may_ask(place):
    """Beyond this machine a password is needed; where there is one, nothing is answered without it."""
    config = place.config([zone("site", [sliding(10, "1h")])], [source(place.write("log", ""))],
                          listen={"resp": "*:6390"})
    refused = place.run("run", "--config", config, "--state", place.path("none"))
    assert refused.code() == USAGE and "listen.resp" in refused.said() and "checks.password" in refused.said()
    place.write("secret", "a secret\n")
    port = free_port()
    config = place.config([zone("site", [sliding(10, "1h")])], [source(place.path("log"))],
                          listen={"resp": f"127.0.0.1:{port}"}, checks={"password": {"file": place.path("secret")}})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
    until(lambda: "following" in weir.said(), "weir follows", running=weir)
    with Raw(port) as raw:
        raw.send(command("WEIR.CHECK", "ann", "site"))
        assert raw.take(7) == b"-NOAUTH"
    with Raw(port) as raw:
        raw.answers(command("AUTH", "a secret"), b"+OK\r\n")
        raw.send(command("WEIR.CHECK", "ann", "site"))
        assert raw.take(1) in (b"*", b"-")
    assert "a secret" not in weir.said()
    assert weir.stop() == DONE, weir.said()


def test_users_ask_in_their_zones(place):
    place.write("ops", "of ops\n")
    cell = zone("cell", [{"algorithm": "gcra", "rate": 30, "window": "1m", "burst": 15}], key=["user"])
    zones = [zone("api", [sliding(3, "1h")], key=["user"]), zone("site", [sliding(3, "1h")], key=["user"]), cell]
    users = {"shop": {"password": "of shop", "zones": ["api"]}, "ops": {"password": {"file": place.path("ops")}}}
    weir, port = started(place, zones, password="of all", users=users)
    with Raw(port) as raw:
        for words in (("AUTH", "of shop"), ("AUTH", "shop", "of ops"), ("AUTH", "nobody", "of shop")):
            raw.send(command(*words))
            assert raw.line().startswith(b"-WRONGPASS"), words
        raw.answers(command("AUTH", "shop", "of shop"), b"+OK\r\n")
        raw.answers(command("ACL", "WHOAMI"), b"$4\r\nshop\r\n")
        raw.answers(command("WEIR.ALLOW", "ann", "api"), b":1\r\n")
        denied = b"-NOPERM user 'shop' may not ask in zone '%s'\r\n"
        for words, where in ((("WEIR.CHECK", "ann", "site"), b"site"), (("WEIR.PEEK", "ann", "site"), b"site"),
                             (("WEIR.RESERVE", "ann", "site", "1"), b"site"), (("WEIR.RELEASE", "ann", "site", "0" * 32), b"site"),
                             (("WEIR.ALL", "2", "ann", "api", "1", "ann", "site", "1"), b"site")):
            raw.answers(command(*words), denied % where)
        raw.answers(command("CL.THROTTLE", "ann", "15", "30", "60"),
                    b"-ERR no zone that user 'shop' may ask in has gcra burst 15, rate 30, window 60s as its only limit: add it\r\n")
        # It hears of no other zone's name by a typing error.
        for words in (("WEIR.CHECK", "ann", "sit"), ("WEIR.CHECK", "ann", "x"), ("WEIR.ALL", "1", "ann", "SITE", "1")):
            raw.answers(command(*words), b'-ERR there is no zone "%s" (known: "api")\r\n' % words[-1 - (len(words) > 3)].encode())
        raw.answers(command("WEIR.CHECK", "ann", "apj"), b'-ERR there is no zone "apj" (did you mean "api"?)\r\n')
        raw.send(command("WEIR.PEEK", "ann", "api"))
        assert [raw.line() for _ in range(6)][3] == b":2", "WEIR.ALL counted although it was denied"
    for words in (("HELLO", "3", "AUTH", "ops", "of ops"), ("AUTH", "of all"), ("AUTH", "default", "of all")):
        with Raw(port) as raw:
            raw.send(command(*words))
            assert not raw.line().startswith(b"-"), words
    with Raw(port) as raw:
        raw.answers(command("AUTH", "ops", "of ops"), b"+OK\r\n")
        raw.answers(command("WEIR.ALLOW", "ann", "site"), b":1\r\n")
    assert not any(word in weir.said() for word in ("of shop", "of ops", "of all"))
    assert weir.stop() == DONE, weir.said()


def test_who_is_refused_takes_nothing_from_others(place):
    zones = [zone("tenant", [sliding(3, "1m")], key=["user"], block_for="1h"), zone("full", [sliding(1, "1h")], key=["user"])]
    weir, port = started(place, zones, threads=2, state="first")
    client = Redis(port)
    with Raw(port) as raw, Raw(port) as tenants:
        for i in range(8):  # some lie with the tenant's thread, some with the other
            client.call("WEIR.CHECK", f"full-{i}", "full")
        for i in range(400):
            raw.send(command("WEIR.ALL", 2, f"t{i}", "tenant", 1, f"full-{i % 8}", "full", 1) * 3)
            tenants.send(command("WEIR.CHECK", f"t{i}", "tenant"))
            assert [tenants.line() for _ in range(6)][1] == b":0", f"t{i} asked once, and is refused"
            for _ in range(3):
                assert [raw.line() for _ in range(14)][1] == b":1"
        answer = client.call("WEIR.ALL", 4, *("ann", "tenant", 1) * 4)
        assert answer[0] == 1 and {tuple(one) for one in answer[1:]} == {(1, 3, 3, -1, 0)}, answer
        assert client.call("WEIR.ALL", 3, *("ann", "tenant", 1) * 3) == [0] + [[0, 3, 0, -1, 60000]] * 3
    assert weir.stop() == DONE, weir.said()
    assert b'"tenant"' not in read(place.path("out-first")), "who was within the limit is blocked"


def test_what_is_no_user_is_refused(place):
    place.write("empty", "\n")
    wrong = {"must have 1 to 64 users": {}, "checks.users: must be an object": ["shop"], "checks.users.default: is the user whose": {"default": {"password": "x"}},
             "checks.users.a b: is no name": {"a b": {"password": "x"}}, "checks.users.shop.password: is missing": {"shop": {}},
             "zones: must list": {"shop": {"password": "x", "zones": []}}, "zones[0]: must be the name": {"shop": {"password": "x", "zones": [1]}},
             "checks.users.shop: must be an object": {"shop": "x"}, "zone": {"shop": {"password": "x", "zone": ["api"]}}}
    for words, users in wrong.items():
        config = place.config([zone("site", [sliding(5, "1m")])], [], listen={"resp": f"127.0.0.1:{free_port()}"}, checks={"users": users})
        for command_line in (("validate", "--config", config), ("run", "--config", config, "--state", place.path("none"))):
            done = place.run(*command_line)
            assert done.code() == USAGE and words in done.said(), (words, done.said())
    config = place.config([zone("site", [sliding(5, "1m")])], [], listen={"resp": f"*:{free_port()}"},
                          checks={"users": {"shop": {"password": {"file": place.path("empty")}}}})
    done = place.run("run", "--config", config, "--state", place.path("none"))
    assert done.code() == USAGE and "checks.users.shop.password: is empty" in done.said(), done.said()


def test_two_at_one_address_are_refused(place):
    """Threads share an address; two processes would each let as many pass as the limit says."""
    weir, port = started(place)
    config = place.config([zone("site", [sliding(5, "1m")])], [], listen={"resp": f"127.0.0.1:{port}"}, limiter={"threads": 2})
    other = place.run("run", "--config", config, "--state", place.path("other"))
    assert other.code() not in (DONE, None) and "listen.resp: " in other.said() and str(port) in other.said(), other.said()
    assert weir.stop() == DONE


def test_an_empty_password_is_none(place):
    place.write("empty", "\n")
    for password in ("", {"file": place.path("empty")}, {"env": "WEIR_TEST_NO_PASSWORD"}):
        config = place.config([zone("site", [sliding(5, "1m")])], [], listen={"resp": f"*:{free_port()}"}, checks={"password": password})
        os.environ["WEIR_TEST_NO_PASSWORD"] = ""
        for command_line in (("validate", "--config", config), ("run", "--config", config, "--state", place.path("none"))):
            done = place.run(*command_line)
            assert done.code() == USAGE and "checks.password: is empty, so anyone would know it" in done.said(), (password, done.said())


def test_a_zone_of_checks_alone_needs_no_source(place):
    """Whether log lines have its fields is of no matter, as long as checks can be in it."""
    limits = [sliding(10, "1m")]
    for feed in ("check", "both"):
        weir, _ = started(place, [zone("site", limits, key=["order"], feed=feed)],
                          sources=[source(place.write("log", ""), format="combined")])
        assert "never matches" not in weir.said(), weir.said()
        assert weir.stop() == 0, weir.said()


def test_it_serves_without_a_source_and_after_the_last(place):
    """Gateways ask on, whatever logs there are: without any, of a file that is read to its end, of a pipe whose writer has ended."""
    log = place.write("log", burst("ann", 2, start_ms=time.time_ns() // 1000000))
    with subprocess.Popen(["cat", log], stdout=subprocess.PIPE) as writer:
        for name, sources, stdin in (("none", [], subprocess.DEVNULL), ("file", [source(log, follow=False)], subprocess.DEVNULL),
                                     ("pipe", [{"type": "stdin", "format": FORMAT}], writer.stdout)):
            weir, port = start(place, [zone("site", [sliding(3, "1h")])], sources=sources, state=name, stdin=stdin)
            lines = 2 if sources else 0
            until(lambda weir=weir, lines=lines: value(weir, "weir_collector_lines_total") == lines, "lines are read", running=weir)
            used_s = cpu_s(weir.pid)
            time.sleep(2)  # it would have ended, or look at the pipe's end all the time
            assert weir.code() is None and cpu_s(weir.pid) - used_s < 1, (weir.code(), weir.said())
            with Caller(port) as caller:
                answers = [caller.ask("WEIR.CHECK", "ann", "site")[0] for _ in range(4)]
            assert answers == [0] * (3 - lines) + [1] * (1 + lines), (name, answers)
            assert weir.stop() == DONE, weir.said()


def test_an_exempt_key_is_not_counted(place):
    """By every command that names a key, as by fields: by a word, an address, an object, and a list in a file that changes."""
    listed, http = place.write("friends", "203.0.113.5\n"), free_port()
    many = place.write("many", "".join(f"10.{n >> 8}.{n & 255}.1\n" for n in range(12_000)))  # stays a file
    zones = [zone("site", [sliding(5, "1m"), sliding(2, "1h")], key=["ip"],
                  exempt=["192.0.2.9", "198.51.100.0/24", "2001:db8::7", {"file": listed}, {"file": many}, {"path": "/health"}]),
             zone("rest", [sliding(1, "1h")], key=["user", "path"], exempt=[{"path": "/health/*"}]),
             zone("cell", [{"algorithm": "gcra", "rate": 1, "window": "1m", "burst": 3}], key=["ip"], exempt=["192.0.2.9"])]
    weir, port = start(place, zones, listen={"check_http": f"127.0.0.1:{http}"})
    client, by_http = Redis(port), check_http.Caller(http)
    for key in ("192.0.2.9", "::ffff:192.0.2.9", "198.51.100.77", "2001:DB8::7", "203.0.113.5", "10.46.223.1"):
        for _ in range(4):
            assert client.call("WEIR.CHECK", key, "site") == [0, 2, 2, -1, 0], key
        assert client.call("WEIR.ALLOW", key, "site", 100) == 1 and client.call("WEIR.PEEK", key, "site", 100)[0] == 0
        assert by_http.check(zone="site", key=key, cost=100) == (200, {"allowed": True, "limit": 2, "window_ms": 3600000, "remaining": 2,
                                                                       "retry_after_ms": -1, "reset_after_ms": 0})
        assert by_http.check(fields={"ip": key})[1]["allowed"], "as by fields"
    for key, left in (("192.0.2.8", 1), ("2001:db8:1::8", 1), ("/health", 1)):
        assert client.call("WEIR.CHECK", key, "site")[:3] == [0, 2, left], key
    for _ in range(3):
        assert client.call("WEIR.CHECK", "ann|/health/live", "rest")[0] == 0
        assert client.call("CL.THROTTLE", "192.0.2.9", 3, 1, 60, 3) == [0, 4, 4, -1, 0]
    reserved = client.call("WEIR.RESERVE", "192.0.2.9", "site", 1000)
    assert reserved[:5] == [0, 2, 2, -1, 0] and len(reserved[5]) == 32, reserved
    for words in (("WEIR.SETTLE", "192.0.2.9", "site", reserved[5], 7), ("WEIR.RELEASE", "192.0.2.9", "site", reserved[5])):
        assert client.call(*words) == [0, 2, 2, -1, 0], words
    nothing = reserved[5]  # what it was told is settled, although the key is not exempt, or no more
    assert client.call("WEIR.SETTLE", "192.0.2.21", "site", nothing, 7) == [0, 2, 2, -1, 0]
    taken = client.call("WEIR.RESERVE", "192.0.2.22", "site", 1)[5]
    with open(listed, "a", encoding="ascii") as more:
        more.write("192.0.2.22\n")
    until(lambda: client.call("WEIR.PEEK", "192.0.2.22", "site", 100)[0] == 0, "the policy is read anew", running=weir)
    assert client.call("WEIR.RELEASE", "192.0.2.22", "site", taken)[0] == 0, "one that was taken before is given back"
    for again in (taken, "1" * 32):
        assert "reservation" in refused(client, "WEIR.SETTLE", "192.0.2.22", "site", again, 1)
    together = ("WEIR.ALL", 3, "192.0.2.9", "site", 50, "192.0.2.8", "site", 1, "ann|/x", "rest", 1)
    answer = client.call(*together)
    assert answer[:2] == [0, [0, 2, 2, -1, 0]] and [part[:3] for part in answer[2:]] == [[0, 2, 0], [0, 1, 0]], answer
    assert client.call("WEIR.PEEK", "192.0.2.8", "site")[2] == 0 and client.call("WEIR.PEEK", "ann|/x", "rest")[2] == 0
    answer = client.call(*together)
    assert answer[0] == 1 and answer[1] == [0, 2, 2, -1, 0] and [part[0] for part in answer[2:]] == [1, 1], answer
    assert client.call("WEIR.ALL", 1, "192.0.2.9", "site", 50) == [0, [0, 2, 2, -1, 0]], "all of them"
    with Raw(port) as raw:  # between others, in a pipeline: each has its own answer
        raw.send(b"".join(command("WEIR.ALLOW", key, "site") for key in ("192.0.2.9", "192.0.2.20", "192.0.2.9") * 40))
        assert raw.take(4 * 120) == (b":1\r\n:1\r\n:1\r\n" * 2 + b":1\r\n:0\r\n:1\r\n" * 38)
    with open(many, "a", encoding="ascii") as more:
        more.write("192.0.2.30\n")
    until(lambda: client.call("WEIR.PEEK", "192.0.2.30", "site")[4] == 0 and client.call("WEIR.CHECK", "192.0.2.30", "site")[2] == 2,
          "the list is read anew", running=weir)
    code = place.run("check", "192.0.2.9", "--zone", "site", "--config", place.path("weir.json"))
    assert code.code() == DONE and "192.0.2.9 passed in zone site: 2 of 2 left" in code.out().decode(), code.out()
    assert weir.stop() == DONE, weir.said()


def test_the_command_says_the_answer(place):
    weir, port = start(place, [zone("site", [sliding(3, "1h")], key=("user",), exempt=["root"]),
                                  zone("two", [sliding(3, "1h")], key=("user", "path"))])
    config = place.path("weir.json")

    def check(*words):
        done = place.run("check", *words)
        return done.code(), done.out().decode(), done.said()
    code, out, _ = check("ann", "--zone", "site", "--config", config)
    assert code == 0 and out == "ann passed in zone site: 2 of 3 left; all of it is free in 1h\n", out
    code, out, _ = check("ann", "--zone", "site", "--config", config, "--peek", "--cost", "2")
    assert code == 0 and out.startswith("ann would pass in zone site: 2 of 3 left"), out
    code, out, _ = check("ann", "--zone", "site", "--config", config, "--cost", "3")
    assert code == 1 and "is blocked in zone site: 2 of 3 left; the same passes in " in out, out
    code, out, _ = check("root", "--zone", "site", "--config", config, "--cost", "2")
    assert code == 0 and out == "root passed in zone site: 3 of 3 left; it is not counted, as the key is exempt or allowed\n", out
    for words, counted in ((["root"], False), (["root", "--peek"], False), (["eve"], True), (["eve", "--peek"], False),
                           (["eve", "--cost", "0"], False), (["eve", "--cost", "2"], True)):
        answer = json.loads(check(*words, "--zone", "site", "--config", config, "--json")[1])
        assert answer["counted"] is counted, (words, answer)
    code, out, _ = check("ann", "/a|b", "--zone", "two", "--config", config, "--json")
    answer = json.loads(out)
    assert code == 0 and answer["key"] == "ann|/a\\|b" and answer["counted"] and answer["remaining"] == 2, answer
    for left in (2, 1):
        code, out, _ = check("a|b", "--zone", "site", "--config", config)
        assert code == 0 and out.startswith(f"a|b passed in zone site: {left} of 3 left"), out
    code, out, _ = check("x" * 5000, "--zone", "site", "--config", config, "--json")
    assert code == 0 and json.loads(out)["key"] == "x" * 5000, out[:80]
    code, out, said = check("ann", "--zone", "sites", "--config", config)
    assert code == USAGE and "sites" in said and not out, said
    for words, wrong in (([], "the key has no user"), ([""], "a value is empty")):
        code, out, said = check(*words, "--zone", "site", "--config", config)
        assert code == USAGE and wrong in said and not out, (said, out)
    assert value(weir, "weir_checks_total", zone="two", surface="resp", answer="passed") == 1
    assert value(weir, "weir_checks_total", zone="site", surface="resp", answer="blocked") == 1
    code, out, said = check("ann", "--zone", "site", "--at", f"127.0.0.1:{port}", "--peek")
    assert code == 0 and "would pass" in out, (out, said)
    assert weir.stop() == DONE, weir.said()
    code, _, said = check("ann", "--zone", "site", "--config", config)
    assert code == USAGE and "refused" in said and "weir at 127.0.0.1" in said and "Redis" not in said, said


if __name__ == "__main__":
    cases.main(globals())
