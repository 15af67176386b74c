#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who asks for checks to do harm, by each surface of one `weir run`: he gets a clear error, weir's memory has a bound, and
somebody who asks beside him, by each surface, is answered all the time."""

import contextlib
import json
import os
import random
import resource
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support.rate_limits import Caller as GrpcCaller
from support.rate_limits import OK, descriptor

import grpc
from support import cases, http2, metrics
from support.check_http import Caller as HttpCaller
from support.checks import Raw, command, started
from support.http2 import Http2
from support.place import PATIENCE_S, SANITIZED, free_port, until
from support.redis import Redis, RedisError
from support.traffic import sliding, zone

MANY = 5_000 if SANITIZED else 100_000
SOCKETS = 1_000 if SANITIZED else 10_000
PASSWORD = "right words"
LATE_MS = 1000 if SANITIZED else 250  # of the median of answers to somebody else; on a quiet machine it is a millisecond
# Redis, HTTP and gRPC ask for a key of this zone by their own words.
ZONES = [zone("site", [sliding(10, "1h")], key=["user"]), zone("wide", [sliding(1000, "1h")], key=["crowd"])]
MIB = 1 << 20


class Weir:
    """A `weir run` with every surface, and somebody who asks by each of them for as long as the block runs."""

    def __init__(self, place, **checks):
        self.http, self.grpc = free_port(), free_port()
        self.password = checks.get("password")
        self.process, self.resp = started(place, ZONES, listen={
            "check_http": f"127.0.0.1:{self.http}", "grpc": f"127.0.0.1:{self.grpc}"}, **checks)
        self.took, self.failures, self.ends = {}, [], threading.Event()
        self.base = 0

    def __enter__(self):
        redis = Redis(self.resp)
        if self.password:
            redis.call("AUTH", self.password)
        http = HttpCaller(self.http, self.password)
        metadata = (("authorization", f"Bearer {PASSWORD}"),) if self.password else ()
        rls = GrpcCaller(self.grpc, metadata=metadata)
        asked = {"resp": lambda: redis.call("WEIR.PEEK", "somebody", "site"),
                 "http": lambda: http.check(zone="site", key="somebody", peek=True),
                 # keys of either thread: some calls wait for the other one
                 "grpc": lambda: rls.ask(descriptor(0, user=f"somebody-{random.randrange(16)}"))}
        for ask in asked.values():
            ask()
        self.base = self.process.peak_bytes()
        self.threads = [threading.Thread(target=self._ask, args=pair) for pair in asked.items()]
        for thread in self.threads:
            thread.start()
        return self

    def _ask(self, surface, ask):
        took = self.took[surface] = []
        while not took or not self.ends.wait(0.01):  # once at least
            began = time.monotonic()
            try:
                ask()
            except Exception as failure:  # pylint: disable=broad-exception-caught
                unavailable = str(failure).startswith("UNAVAILABLE ") or \
                    isinstance(failure, grpc.RpcError) and failure.code() == grpc.StatusCode.UNAVAILABLE  # pylint: disable=no-member
                if not unavailable:
                    self.failures.append(f"{surface}: {failure!r}")
                    return
            took.append(time.monotonic() - began)

    def grown(self):
        """By how many bytes its memory has ever grown since the block began."""
        return self.process.peak_bytes() - self.base

    def value(self, name, **labels):
        """A sample of its page."""
        return metrics.scrape(self.process.pages).value(name, **labels)

    def __exit__(self, kind, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        figures = {surface: [len(took), round(1000 * sorted(took)[len(took) // 2], 1), round(1000 * max(took), 1)]
                   for surface, took in self.took.items() if took}
        print(json.dumps({"others": figures, "grown_mib": round(self.grown() / MIB, 1)}), flush=True)
        if kind is not None:
            return
        assert not self.failures, self.failures
        assert len(figures) == 3 and all(median < LATE_MS for _, median, _ in figures.values()), figures
        assert self.process.stop() == 0, self.process.said()


@contextlib.contextmanager
def descriptors(count):
    """As many as this test needs, or as it may have: how many more connections there can be."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(count + 1000, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield most - 1000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# ---- connections ----

# Requests that can go on for long.
HALVES = {"resp": b"*3\r\n$10000\r\nWEIR", "http": b"GET /v1/nginx HTTP/1.1\r\nX-Orig",
          "grpc": http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + b"\0\x20\0\1\0\0\0\0\1"}
REFUSED = {"resp": b"-ERR max number of clients reached: raise checks.connections\r\n", "http": b"HTTP/1.1 503 ",
           "grpc": b"too many connections: raise checks.connections"}


def connected(port):
    """A socket that waits for nothing."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    connection.setblocking(False)
    return connection


def read_now(connection):
    """What has come; b"" where nothing has, None where the other end has closed and said nothing."""
    try:
        return connection.recv(1 << 12) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def test_ten_thousand_connections(place):
    """Each with half a request; those beyond the bound are told so. When they have gone all is as before."""
    with descriptors(SOCKETS) as count, Weir(place, connections=count * 45 // 100) as weir:
        for surface, half in HALVES.items():
            refused = weir.value("weir_check_refused_connections_total")
            port, connections = getattr(weir, surface), []
            for _ in range(count):
                connections.append(connected(port))
                with contextlib.suppress(OSError):
                    connections[-1].send(half)

            def all_taken(connections=connections, refused=refused):
                return weir.value("weir_check_refused_connections_total") - refused >= len(connections) // 10 - 10
            until(all_taken, "those beyond the bound are refused", running=weir.process)
            until(lambda connections=connections, surface=surface: any(
                REFUSED[surface] in (read_now(one) or b"") for one in connections), "they are told")
            print(json.dumps({"surface": surface, "grown_mib": round(weir.grown() / MIB, 1)}), flush=True)
            for connection in connections:
                connection.close()
            until(lambda: weir.value("weir_check_connections") <= 4, "they are gone", running=weir.process)
        assert weir.grown() < 400 * MIB or SANITIZED, weir.grown()


def test_slow_clients(place):
    """A byte a second: each is ended after its surface's time."""
    with Weir(place) as weir:
        slow = {surface: [connected(getattr(weir, surface)) for _ in range(100)] for surface in HALVES}
        for surface, half in HALVES.items():
            for connection in slow[surface]:
                connection.send(half)
        began = time.monotonic()
        while any(slow.values()) and time.monotonic() - began < 35 + PATIENCE_S:
            for surface, connections in slow.items():
                for connection in connections:
                    with contextlib.suppress(OSError):
                        connection.send(b"x")
                slow[surface] = [one for one in connections if read_now(one) is not None]
            time.sleep(1)
        assert not any(slow.values()), {surface: len(connections) for surface, connections in slow.items()}
        assert weir.value("weir_check_stalled_connections_total") >= 300
        assert weir.grown() < 64 * MIB or SANITIZED, weir.grown()


# ---- much at once ----

def sending(connection, data):
    """A thread that sends it."""
    thread = threading.Thread(target=connection.send, args=[data])
    thread.start()
    return thread


def test_a_hundred_thousand_at_once(place):
    """On one connection, before a reply is read: all are answered, as many pass as may, and little is kept."""
    with Weir(place) as weir:
        with Raw(weir.resp) as raw:
            sender = sending(raw, command("WEIR.ALLOW", "resp", "site") * MANY)
            passed = unavailable = 0
            with raw.socket.makefile("rb") as lines:
                for _ in range(MANY):
                    line = lines.readline()
                    passed += line == b":1\r\n"
                    unavailable += line.startswith(b"-UNAVAILABLE")
            sender.join()
            assert passed == 10 or passed < 10 and unavailable, (passed, unavailable)
        one = b"GET /v1/nginx HTTP/1.1\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nX-User: a\r\nUser: b\r\nCrowd: http\r\n\r\n"
        with Raw(weir.http) as raw:
            sender = sending(raw, one * MANY)
            counts = dict.fromkeys((b"200", b"429", b"503"), 0)
            with raw.socket.makefile("rb") as replies:
                for _ in range(MANY):
                    counts[replies.readline().split(b" ")[1]] += 1
                    length = 0
                    while (line := replies.readline()) != b"\r\n":
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    replies.read(length)
            sender.join()
            assert sum(counts.values()) == MANY, counts
        with Http2(weir.grpc) as calls:
            answered = stream = 0
            body = http2.request(b"user", b"grpc")
            for _ in range(MANY // 500):
                calls.send(b"".join(calls.call(stream + 1 + 2 * number, body) for number in range(500)))
                stream += 1000
                ends = 0
                while ends < 500:
                    kind, flags, _, data = calls.next()
                    answered += kind == http2.DATA and len(data) > 0
                    ends += kind == http2.RST_STREAM or kind == http2.HEADERS and flags & http2.END_STREAM
            # All ended: with an answer, but for those that a log on a busy machine leaves unavailable, which are counted.
            unavailable = weir.value("weir_checks_total", zone="site", surface="grpc", answer="unavailable") or 0
            assert answered + unavailable > MANY * 0.9, (answered, unavailable)
        assert weir.grown() < 64 * MIB or SANITIZED, weir.grown()


# ---- bytes ----

NUMBERS = ("9223372036854775808", "18446744073709551616", "-9223372036854775809", "9" * 300, "1e400", "0x10", "1.5", " 1", "+1", "")


def test_what_is_no_request_by_resp(place):
    with Weir(place) as weir:
        for sent, said in ((b"*3\r\n$10\r\nWEIR.CHECK\r\n$536870912\r\n", b"-ERR Protocol error: invalid bulk length"),
                           (b"*3\r\n$10\r\nWEIR.CHECK\r\n$999999999999999999999\r\n", b"-ERR Protocol error: invalid bulk length"),
                           (b"*3\r\n$9223372036854775807\r\n", b"-ERR Protocol error: invalid bulk length"),
                           (b"*3\r\n$-999999999\r\n", b"-ERR Protocol error: invalid bulk length"),
                           (b"*999999999999999999999\r\n", b"-ERR Protocol error: invalid multibulk length"),
                           (b"*9223372036854775807\r\n", b"-ERR Protocol error: invalid multibulk length"),
                           (b"*10000000\r\n", b"-ERR Protocol error: invalid multibulk length"),
                           (b"*1\r\n" * 200 + b":42\r\n", b"-ERR Protocol error: expected '$'"),
                           (b"*3\r\n:42\r\n$999999999999\r\n", b"-ERR Protocol error: expected '$'"),
                           (b"$999999" * 10000, b"-ERR Protocol error: too big inline request"),
                           (b"\0" * 70000, b"-ERR Protocol error: too big inline request")):
            with Raw(weir.resp) as raw:
                with contextlib.suppress(OSError):
                    raw.send(sent)
                came = raw.ends()
                assert came.startswith(said), (sent[:40], came[:200])
        client = Redis(weir.resp)
        for cost in NUMBERS:
            for words in (("WEIR.CHECK", "a", "site", cost), ("CL.THROTTLE", "a", cost, 1, 1), ("WEIR.RESERVE", "a", "site", 1, cost)):
                try:
                    assert words[0] == "CL.THROTTLE", client.call(*words)
                    client.call(*words)
                except RedisError as refused:
                    assert str(refused).startswith("ERR "), refused
        assert client.call("WEIR.CHECK", "a", "site", 9223372036854775807 >> 23)[0] == 1, "more than may ever pass"
        for key in (b"a\0b", b"\xff\xfe\xfd", b"\r\n+OK\r\n", "é|\\".encode()):
            for _ in range(2):  # bytes are a key as they are, or are refused by words
                with Raw(weir.resp) as raw:
                    raw.send(command("WEIR.CHECK", key, "site") + b"PING\r\n")
                    assert raw.line()[:1] in b"*-"
                    while raw.line() != b"+PONG":
                        pass
        assert weir.grown() < 32 * MIB or SANITIZED, weir.grown()


def test_what_is_no_request_by_http(place):
    begin = b"GET /v1/nginx HTTP/1.1\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\n"
    with Weir(place) as weir:
        for sent, status in ((begin + b"User: a\0b\r\n\r\n", b"400"), (begin + b"Us\0er: a\r\n\r\n", b"400"),
                             (begin + b"User : a\r\n\r\n", b"400"), (begin + b": a\r\n\r\n", b"400"),
                             (begin + b"User: a\r\n b\r\n\r\n", b"400"),
                             (b"GET /v1/ng\0inx HTTP/1.1\r\n\r\n", b"400"),
                             (b"POST /v1/check HTTP/1.1\r\nContent-Length: 536870912\r\n\r\n", b"413"),
                             (b"POST /v1/check HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", b"4"),
                             (b"POST /v1/check HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
                             (b"POST /v1/check HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", b"400"),
                             (b"POST /v1/check HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", b"411"),
                             (begin + b"A: b\r\n" * 10000, b"431"), (begin + b"User: " + b"a" * 40000, b"431"),
                             (begin.replace(b"/1.1", b"/9.9") + b"\r\n", b"400")):
            with Raw(weir.http) as raw:
                with contextlib.suppress(OSError):
                    raw.send(sent)
                came = raw.ends()
                assert came.startswith(b"HTTP/1.1 " + status), (sent[-40:], came[:300])
                assert b"application/problem+json" in came, came
        with HttpCaller(weir.http) as caller:
            for cost in ("9223372036854775808", "18446744073709551616", "1e400", "1.5", "-1", "9" * 300, '"1"', "null", "[]"):
                status, _, body = caller.ask("/v1/check", "POST", '{"zone": "site", "key": "a", "cost": %s}' % cost)  # pylint: disable=consider-using-f-string
                assert status == 400 and json.loads(body)["detail"], (cost, status, body)
            for text in ("[" * 30000, '{"checks": [' + '{"checks": [' * 2000, '{"zone": "site", "key": "a\\u0000b"', '{"zone": "\\ud800"}', "\0"):
                status, _, body = caller.ask("/v1/check", "POST", text)
                assert status == 400 and json.loads(body)["detail"], (text[:40], status, body)
            status, said = caller.check(zone="site", key="a\0b")
            assert status in (200, 400), (status, said)
        assert weir.grown() < 32 * MIB or SANITIZED, weir.grown()


def test_what_is_no_request_by_grpc(place):
    frame, good = http2.frame, http2.request(b"user", b"a")
    with Weir(place) as weir:
        def fate(sent):
            with Http2(weir.grpc) as calls:
                with contextlib.suppress(OSError):
                    calls.send(sent)
                return calls.fate(1)

        def call(body, *fields, path=http2.LIMIT):
            return frame(http2.HEADERS, http2.END_HEADERS, 1, http2.head(path, *fields)) + frame(http2.DATA, http2.END_STREAM, 1, body)
        assert fate(call(http2.message(good))) == "answered"
        # a field with NUL, of a bad name, of 100 KB
        for fields in ((("x", b"a\0b"),), (("x\0y", "a"),), (("X-Upper", "a"),), (("x", "a\r\nb"),), (("x", "a" * 100_000),)):
            assert fate(call(http2.message(good), *fields)) in ("reset", "cut off", "refused"), fields[0][0]
        # lengths that announce what does not come, or more than may come
        for body in (b"\0\x20\0\0\0" + good, b"\0\xff\xff\xff\xff" + good, b"\0\0\0\0\xff" + good, b"\1" + http2.message(good)[1:],
                     http2.message(good) * 2, b"\0\0"):
            assert fate(call(body)) in ("refused", "reset", "cut off"), body[:8]
        # numbers: hits of 2^64 - 1, a varint without an end; lengths beyond the message
        huge = b"\xff" * 9 + b"\1"
        for body in (b"\x18" + huge, part_of_hits(huge), b"\x18" + b"\xff" * 11, b"\x0a" + huge + good, b"\x0b" * 1000):
            assert fate(call(http2.message(http2.part(1, b"rl") + body))) in ("refused", "answered"), body[:12]
        assert fate(call(http2.message(good), ("grpc-timeout", "99999999H"))) == "answered"
        assert fate(call(http2.message(good), ("grpc-timeout", "9" * 40 + "H"))) in ("answered", "refused")
        for value in (b"a\0b", b"\xff\xfe"):
            assert fate(call(http2.message(http2.request(b"user", value)))) in ("answered", "refused")
        # frames: longer than may be, of a stream that is none, without an end of fields, settings that are none
        for sent in (frame(http2.HEADERS, 4, 1, b"\0" * 20000), frame(http2.DATA, 0, 1, b"x"), frame(http2.HEADERS, 4, 2, http2.head()),
                     frame(http2.HEADERS, 0, 1, http2.head()) + frame(http2.PING, 0, 0, b"\0" * 8),
                     frame(http2.HEADERS, 0, 1, http2.head()) + frame(http2.CONTINUATION, 0, 1, b"") * 100_000,
                     frame(http2.HEADERS, 0, 1, http2.head()) + frame(http2.CONTINUATION, 0, 1, http2.field("a", "b" * 8000)) * 2000,
                     frame(http2.SETTINGS, 0, 0, b"\0\4\xff\xff\xff\xff"), frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 0)),
                     frame(http2.HEADERS, 4, 1, b"\xff" * 100)):
            assert fate(sent) in ("cut off", "ended", "reset"), sent[:20]
        # rapid resets, pings and settings: cut off, by words
        resets = b"".join(frame(http2.HEADERS, 4, 1 + 2 * number, http2.head()) + frame(http2.RST_STREAM, 0, 1 + 2 * number, b"\0\0\0\x08")
                          for number in range(20_000))
        for sent in (resets, frame(http2.PING, 0, 0, b"\0" * 8) * 200_000, frame(http2.SETTINGS, 0, 0) * 200_000):
            assert fate(sent) in ("cut off", "ended"), sent[:20]
        # frames that nobody knows, and of a call that is over
        over = call(http2.message(good))
        for first, noise in ((b"", frame(0x77, 0, 0)), (b"", frame(0x77, 0, 0, b"x" * 16_000)), (b"", frame(0x0C, 0, 0)),
                             (b"", frame(0x10, 0, 0, b"\0\0\0\1u=1")), (over, frame(http2.WINDOW_UPDATE, 0, 1, b"\0\0\0\0")),
                             (over, frame(0x77, 0, 1)), (over, frame(http2.DATA, 0, 1, b"x"))):
            with Http2(weir.grpc) as calls:
                with contextlib.suppress(OSError):
                    calls.send(first + noise * min(200_000, 80_000_000 // len(noise)))
                assert calls.fate(3) in ("cut off", "ended"), noise[:20]
        for sent in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01" + b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"):
            with Raw(weir.grpc) as raw:
                raw.send(sent)
                raw.ends()
        with GrpcCaller(weir.grpc) as caller:
            assert caller.ask(descriptor(user="b")).overall_code == OK
        assert weir.grown() < 64 * MIB or SANITIZED, weir.grown()


def part_of_hits(varint):
    """A descriptor with hits_addend."""
    return http2.part(2, http2.part(1, http2.part(1, b"user") + http2.part(2, b"a")) + http2.part(3, b"\x08" + varint))


# ---- who is nobody, and who goes ----

def test_wrong_words(place):
    """Ten thousand tries by each surface pass nothing, and are counted; who has the right words is served."""
    tries = 500 if SANITIZED else 10_000
    with Weir(place, password=PASSWORD) as weir:
        with Raw(weir.resp) as raw:
            sender = sending(raw, (command("AUTH", "wrong words") + command("WEIR.CHECK", "a", "site")) * tries)
            for _ in range(tries):
                assert raw.line().startswith(b"-WRONGPASS ") and raw.line().startswith(b"-NOAUTH ")
            sender.join()
        one = b"POST /v1/check HTTP/1.1\r\nAuthorization: Bearer wrong words\r\nContent-Length: 29\r\n\r\n" + b'{"zone": "site", "key": "a"}\n'
        with Raw(weir.http) as raw:
            raw.send(one)
            assert raw.line().startswith(b"HTTP/1.1 401 ")
        for _ in range(tries // 100):
            with Raw(weir.http) as raw:
                raw.send(one)
                assert raw.line().startswith(b"HTTP/1.1 401 ")
        for word in ("", "Bearer", "Bearer ", "Bearer right word", "right words", "Basic right words"):
            with HttpCaller(weir.http) as caller:
                assert caller.ask("/v1/check", "POST", "{}", Authorization=word)[0] == 401, word
            with GrpcCaller(weir.grpc, metadata=(("authorization", word.rstrip()),)) as caller:
                assert caller.refusal(descriptor(user="a"))[0] == grpc.StatusCode.UNAUTHENTICATED, word
        client = Redis(weir.resp)
        client.call("AUTH", PASSWORD)
        assert client.call("WEIR.PEEK", "a", "site")[:3] == [0, 10, 10], "nobody has counted"
        assert weir.grown() < 32 * MIB or SANITIZED, weir.grown()


def test_half_closed(place):
    """Who sends no more is answered, and then let go, also in the middle of a request; by gRPC that is the connection's end."""
    with Weir(place) as weir:
        whole = {"resp": command("WEIR.ALLOW", "half", "site"),
                 "http": b"GET /v1/nginx HTTP/1.1\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nUser: half\r\n\r\n",
                 "grpc": http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + http2.frame(http2.HEADERS, 4, 1, http2.head()) +
                         http2.frame(http2.DATA, 1, 1, http2.message(http2.request(b"user", b"half")))}
        answer = {"resp": b":1\r\n", "http": b"HTTP/1.1 200 ", "grpc": b""}
        for surface, sent in whole.items():
            with Raw(getattr(weir, surface)) as raw:
                raw.send(sent)
                raw.socket.shutdown(socket.SHUT_WR)
                came = raw.ends()
                assert answer[surface] in came, (surface, came)
            for cut in range(1, len(sent), 7):
                with Raw(getattr(weir, surface)) as raw:
                    raw.send(sent[:cut])
                    raw.socket.shutdown(socket.SHUT_WR)
                    raw.ends()
            for _ in range(50):  # and who is gone at once, with a reset
                raw = Raw(getattr(weir, surface))
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raw.send(sent)
                raw.socket.close()
        until(lambda: weir.value("weir_check_connections") <= 4, "they are gone", running=weir.process)


if __name__ == "__main__":
    cases.main(globals())
