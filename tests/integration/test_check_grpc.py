#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks by gRPC in `weir run`, asked by gRPC's own client: Envoy's ShouldRateLimit, the health service, and who may ask."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support.rate_limits import OK, OVER_LIMIT, Caller, descriptor, headers, serving

import grpc
from functools import partial
from support import cases, metrics
from support.check_http import Caller as HttpCaller
from support.checks import crowd
from support.place import PATIENCE_S, free_port, until
from support.redis import Redis, refused
from support.traffic import sliding, zone

from parts import tls
from parts.process import together

HEALTH = "/grpc.health.v1.Health/"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"
SITE = zone("site", [sliding(10, "1m")], key=["user"])


def test_as_many_pass_as_the_limit_says(place):
    for durable in (False, True):
        with serving(place, [zone("site", [sliding(100, "1h")], key=["user"])], durable=durable,
                     state=f"state-{durable}") as (weir, port):
            for callers in (8, 64):
                unavailable = []

                def passes(caller, asked, unavailable=unavailable):
                    try:
                        return caller.passes(asked)
                    except grpc.RpcError as error:  # a disk that took too long
                        assert error.code() == grpc.StatusCode.UNAVAILABLE, error  # pylint: disable=no-member
                        unavailable.append(error)
                        return False

                def one_key(caller, _, callers=callers, passes=passes):
                    return sum(passes(caller, descriptor(user=f"ann-{callers}")) for _ in range(320 // callers))

                def many_keys(caller, _, callers=callers, passes=passes):
                    return [sum(passes(caller, descriptor(25, user=f"key-{callers}-{key}")) for _ in range(2))
                            for key in range(8)]

                one = sum(crowd(partial(Caller, port), callers, one_key))
                many = [sum(passed) for passed in zip(*crowd(partial(Caller, port), callers, many_keys))]
                assert one <= 100 and max(many) <= 4, (one, many)
                assert unavailable or (one, many) == (100, [4] * 8), (one, many)
            calls = metrics.scrape(weir.pages).value("weir_check_calls_total", method="RateLimitService/ShouldRateLimit")
            assert calls >= 2 * 320 + (8 + 64) * 16


def test_each_descriptor_has_its_status(place):
    zones = [SITE,
             zone("burst", [sliding(3, "1s")], key=["user"], match={"domain": ["fast"]}),
             zone("tokens", [{"algorithm": "fixed_window", "rate": 100, "window": "1h"}], key=["tenant"], count="all"),
             zone("pair", [sliding(1, "1h")], key=["foo", "baz"], match={"baz": ["not-so-shady"]}),
             zone("bucket", [{"algorithm": "token_bucket", "rate": 10, "window": "1s", "burst": 50}], key=["drops"]),
             zone("cells", [{"algorithm": "gcra", "rate": 30, "window": "1m", "burst": 15}], key=["cells"])]
    with serving(place, zones) as (_, port), Caller(port) as caller:
        answer = caller.ask(descriptor(user="ann"), descriptor(nobody="x"), descriptor(tenant="t"))
        assert answer.overall_code == OK and [status.code for status in answer.statuses] == [OK] * 3
        first, none, last = answer.statuses
        assert (first.current_limit.requests_per_unit, first.current_limit.unit, first.current_limit.name) == (10, 2, "site")
        assert first.limit_remaining == 9 and 59 <= first.duration_until_reset.seconds <= 60
        assert not none.HasField("current_limit") and not none.HasField("duration_until_reset")
        assert (last.current_limit.requests_per_unit, last.current_limit.unit, last.limit_remaining) == (100, 3, 99)
        assert headers(answer)["RateLimit-Policy"] == '"site";q=10;w=60, "tokens";q=100;w=3600'
        # what a burst takes at once comes back in a time of its own
        assert headers(caller.ask(descriptor(drops="a")))["RateLimit-Policy"] == '"bucket";q=50;w=5'
        assert headers(caller.ask(descriptor(cells="a")))["RateLimit-Policy"] == '"cells";q=16;w=32'
        # hits: of the request, of a descriptor, and none at all
        assert caller.ask(descriptor(user="ann"), hits=4).statuses[0].limit_remaining == 5
        assert caller.ask(descriptor(2, user="ann"), hits=4).statuses[0].limit_remaining == 3
        assert [caller.ask(descriptor(0, user="ann")).statuses[0].limit_remaining for _ in range(3)] == [3, 3, 3]
        answer = caller.ask(descriptor(user="bob"), descriptor(4, user="ann"))
        assert answer.overall_code == OVER_LIMIT and [status.code for status in answer.statuses] == [OK, OVER_LIMIT]
        blocked = headers(answer)
        assert blocked["RateLimit"].startswith('"site";r=3;t=') and 0 < int(blocked["Retry-After"]) <= 60, blocked
        assert answer.statuses[1].duration_until_reset.seconds + 1 >= int(blocked["Retry-After"])
        # two descriptors of one zone: a zone is told of once, by the tighter of both
        answer = caller.ask(descriptor(4, user="dan"), descriptor(2, user="eve"), descriptor(tenant="u"))
        assert headers(answer)["RateLimit"].startswith('"site";r=6;t=') and headers(answer)["RateLimit"].count('"site"') == 1, headers(answer)
        assert headers(answer)["RateLimit-Policy"] == '"site";q=10;w=60, "tokens";q=100;w=3600', headers(answer)
        # costs that were spent already, in a zone that counts all: the next asker is over
        assert caller.passes(descriptor(0, tenant="t"))
        assert not caller.passes(descriptor(150, tenant="t"))
        assert not caller.passes(descriptor(0, tenant="t"))
        # what Envoy would give back (is_negative_hits, a field that these descriptors have no name for) is no cost, nor over
        refund = descriptor(3, user="ann")
        refund.MergeFromString(b"\x20\x01")
        assert caller.ask(refund).overall_code == OK and not caller.ask(refund).statuses[0].HasField("current_limit")
        assert caller.ask(descriptor(0, user="ann")).statuses[0].limit_remaining == 3
        full = descriptor(0, tenant="t")
        full.MergeFromString(b"\x20\x01")
        assert caller.passes(full)
        # the domain is a field, and two zones may have one descriptor: the tighter one is told
        assert [caller.passes(descriptor(user="cid"), domain="fast") for _ in range(4)] == [True] * 3 + [False]
        # several entries
        assert [caller.passes(descriptor(foo="*", baz="not-so-shady")) for _ in range(2)] == [True, False]
        assert all(caller.passes(descriptor(foo="*", baz="shady")) for _ in range(3))


def test_what_can_never_pass_is_told_first(place):
    """The order of zones that block, by gRPC as by HTTP: where no time helps, none is told."""
    pages, slow = free_port(), zone("slow", [sliding(4, "1h")], key=["user"])
    zones = [zone("small", [sliding(3, "1s")], key=["user"]), slow]
    with serving(place, zones, listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), Caller(port) as caller:
        blocked = place.run("block", "eve", "--zone", "small", "--state", place.path("state"))  # without end
        assert blocked.code() == 0, blocked.said()
        until(lambda: not caller.passes(descriptor(0, user="eve")), "the block is there")
        answer = caller.ask(descriptor(user="eve"))
        assert headers(answer)["RateLimit"].startswith('"small";r=0, "slow";r=3;t='), headers(answer)
        assert not answer.statuses[0].HasField("duration_until_reset") and "Retry-After" not in headers(answer), answer
        assert caller.passes(descriptor(3, user="ann"))
        answer = caller.ask(descriptor(4, user="ann"))  # would pass in small never, in slow in an hour
        assert answer.overall_code == OVER_LIMIT and answer.statuses[0].current_limit.name == "small", answer
        fields = headers(answer)
        assert "Retry-After" not in fields and fields["RateLimit"].startswith('"small";r='), fields
        assert answer.statuses[0].duration_until_reset.seconds <= 1
        # one more passes in slow; of two that block, or of one, the longest is first, by both
        with HttpCaller(pages) as other:
            other.nginx(x_forwarded_user="ann")
            fields, (status, by_http, _) = headers(caller.ask(descriptor(user="ann"))), other.nginx(x_forwarded_user="ann")
        assert status == 429 and fields["RateLimit-Policy"] == by_http["RateLimit-Policy"] == '"slow";q=4;w=3600, "small";q=3;w=1'
        assert 3500 < int(by_http["Retry-After"]) <= int(fields["Retry-After"]) <= 3600


def test_an_address_and_shadow(place):
    zones = [zone("net", [sliding(2, "1h")], key=[{"field": "ip", "prefix6": 64}]),
             zone("dark", [sliding(1, "1h")], key=["user"], mode="shadow")]
    with serving(place, zones, rate_limit_fields="x-ratelimit") as (_, port), Caller(port) as caller:
        assert caller.passes(descriptor(remote_address="2001:db8::1"))
        assert caller.passes(descriptor(remote_address="2001:DB8:0::2"))
        answer = caller.ask(descriptor(remote_address="2001:db8::3"))
        assert answer.overall_code == OVER_LIMIT
        fields = headers(answer)
        assert fields["X-RateLimit-Limit"] == "2" and fields["X-RateLimit-Remaining"] == "0"
        assert 3500 < int(fields["X-RateLimit-Reset"]) <= 3600 and "RateLimit" not in fields
        assert caller.passes(descriptor(remote_address="no address"))
        answers = [caller.ask(descriptor(user="ann")) for _ in range(3)]
        assert all(answer.overall_code == OK and not answer.statuses[0].HasField("current_limit") for answer in answers)


def test_an_address_is_one_key_by_each_surface(place):
    """However it is written: blanks, brackets, a port, a link's zone. An empty one is none."""
    redis_port, pages = free_port(), free_port()
    zones = [zone("site", [sliding(100, "1h")], key=["ip"])]
    with serving(place, zones, listen={"resp": f"127.0.0.1:{redis_port}", "check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            Caller(port) as caller, HttpCaller(pages) as http:
        redis = Redis(redis_port)

        def left(address):
            return http.check(zone="site", key=address, peek=True)[1]["remaining"]
        for number, (address, ways) in enumerate((
                ("192.0.2.77", (" 192.0.2.77", "192.0.2.77 ", "\t192.0.2.77:443", "[192.0.2.77]", "[192.0.2.77]:443", "::ffff:192.0.2.77")),
                ("fe80::1", ("fe80::1%eth0", "FE80::1%eth1", " fe80::1", "[fe80::1%25eth0]:80", "fe80::1%")))):
            for way in ways:
                redis.call("WEIR.CHECK", way, "site")
                assert http.check(zone="site", key=way)[0] == 200
                assert http.check(fields={"ip": way})[0] == 200
                assert caller.passes(descriptor(ip=way)) and caller.passes(descriptor(remote_address=way))
            assert left(address) == 100 - 5 * len(ways), (number, left(address))
        # no value is in no zone, by all that are told fields; who names a key names all of it
        for nothing in (descriptor(remote_address=""), descriptor(ip=""), descriptor(remote_address="", ip="")):
            assert not caller.ask(nothing).statuses[0].HasField("current_limit"), nothing
        assert http.check(fields={"ip": ""})[1]["zones"] == []
        assert "the key has no ip" in http.check(zone="site", key="")[1]["detail"]
        assert "the key has no ip" in refused(redis, "WEIR.CHECK", "", "site")
        redis.close()


def test_what_is_no_request_is_refused(place):
    with serving(place, [SITE]) as (weir, port), Caller(port) as caller:
        code = grpc.StatusCode
        assert caller.refusal()[0] == code.INVALID_ARGUMENT
        assert caller.refusal(descriptor(user="a"), domain="")[0] == code.INVALID_ARGUMENT
        assert caller.refusal(*[descriptor(user="a")] * 65) == (code.INVALID_ARGUMENT, "a request has at most 64 descriptors")
        assert caller.refusal(descriptor(1 << 41, user="a"))[0] == code.INVALID_ARGUMENT
        assert caller.refusal(descriptor(user="a" * (1 << 18)))[0] == code.RESOURCE_EXHAUSTED
        assert len(caller.ask(*[descriptor(user="many")] * 64).statuses) == 64

        def call(path, data=b"", **more):
            try:
                return caller.channel.unary_unary(path)(data, timeout=PATIENCE_S, **more)
            except grpc.RpcError as error:
                return error.code()  # pylint: disable=no-member
        limit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
        assert call(limit, b"\xff\xff") == code.INVALID_ARGUMENT
        assert call("/some.Service/Method") == code.UNIMPLEMENTED
        assert call(limit, b"\x0a\x01x" * 100, compression=grpc.Compression.Gzip) == code.UNIMPLEMENTED
        reflection = caller.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        endless = threading.Event()
        try:
            list(reflection(iter(lambda: endless.wait(PATIENCE_S) and b"", None), timeout=PATIENCE_S))
            raise AssertionError("answered")
        except grpc.RpcError as error:
            assert error.code() == code.UNIMPLEMENTED  # pylint: disable=no-member
        endless.set()
        assert caller.passes(descriptor(user="b"))
        assert metrics.scrape(weir.pages).value("weir_check_calls_total", method="(unknown)") == 2
        page, line = metrics.scrape(weir.pages), "listen.grpc refused a question of 127.0.0.1"
        assert {reason: page.value("weir_check_refused_total", surface="grpc", reason=reason) for reason in ("asked", "protocol", "unknown")} == {
            "asked": 5, "protocol": 1, "unknown": 3}
        for words in (" by RateLimitService/ShouldRateLimit: a request has at most 64 descriptors. ", ": weir has no such method. "):
            assert line + words in weir.said(), weir.said()


def test_health(place):
    with serving(place, [SITE]) as (weir, port), Caller(port) as caller:
        check = caller.channel.unary_unary(HEALTH + "Check")
        assert check(b"", timeout=PATIENCE_S) == SERVING
        name = b"envoy.service.ratelimit.v3.RateLimitService"
        assert check(b"\x0a" + bytes([len(name)]) + name, timeout=PATIENCE_S) == SERVING
        try:
            check(b"\x0a\x04none", timeout=PATIENCE_S)
            raise AssertionError("answered")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND  # pylint: disable=no-member
        watch = caller.channel.unary_stream(HEALTH + "Watch")
        unknown, known = watch(b"\x0a\x04none"), watch(b"")
        assert next(unknown) == SERVICE_UNKNOWN and next(known) == SERVING
        assert weir.stop() == 0, weir.said()
        try:
            next(known)
            raise AssertionError("the stream goes on")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE  # pylint: disable=no-member


def test_tls_and_a_password(place):
    directory = place.path("tls")
    os.makedirs(directory)
    together([tls.making(directory)])
    paths = tls.files(directory)
    with open(paths["ca"], "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    right = (("authorization", "Bearer a secret"),)
    with serving(place, [SITE], listen={"certificate": paths["cert"], "key": paths["key"]}, tls=True, password="a secret",
                 credentials=credentials, metadata=right) as (weir, port):
        for metadata in ((), (("authorization", "Bearer a secreT"),), (("authorization", "a secret"),)):
            with Caller(port, credentials, metadata) as caller:
                assert caller.refusal(descriptor(user="ann"))[0] == grpc.StatusCode.UNAUTHENTICATED
        with Caller(port, credentials, right) as caller:
            assert [caller.passes(descriptor(user="ann")) for _ in range(11)] == [True] * 10 + [False]
        with Caller(port) as caller:
            assert caller.refusal(descriptor(user="ann"), timeout=2)[0] in (
                grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        assert "listen.grpc refused a question of 127.0.0.1 by RateLimitService/ShouldRateLimit: send the password of checks.password as authorization: Bearer PASSWORD. " in weir.said()
        assert "a secret" not in weir.said()


def test_it_ends_while_callers_ask(place):
    with serving(place, [SITE]) as (weir, port):
        asked = []

        def keep_asking(caller, number):
            for turn in range(1000000):
                try:
                    caller.ask(descriptor(user=f"key-{number}-{turn}"), timeout=5)
                except grpc.RpcError as error:
                    return error.code()  # pylint: disable=no-member
                asked.append(time.monotonic())
            return None

        results = []
        asking = threading.Thread(target=lambda: results.extend(crowd(partial(Caller, port), 8, keep_asking)))
        asking.start()
        until(lambda: len(asked) > 300, "checks are answered", running=weir)
        assert weir.stop() == 0, weir.said()
        asking.join()
        assert results == [grpc.StatusCode.UNAVAILABLE] * 8, results
        assert "error" not in weir.said().lower(), weir.said()


if __name__ == "__main__":
    cases.main(globals())
