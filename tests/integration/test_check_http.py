#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks by HTTP: what each gateway's headers say, who is blocked, what the answer tells, and how much one can ask of it."""

import contextlib
import json
import os
import ssl
import subprocess
import sys
import time
from functools import partial

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.check_http import Caller, Weir
from support.checks import Raw, crowd
from support.place import PATIENCE_S, free_port, until
from support.redis import Redis
from support.traffic import burst, sliding, source, zone

SITE = zone("site", [sliding(3, "1h")], key=["ip"])
LOGIN = zone("login", [sliding(1, "1m")], key=["ip"], match={"method": "POST", "path": "/login"})
EXACT = zone("exact", [sliding(9, "1h")], key=["ip"], match={"target": ["/login?a"]})
SEEN = zone("seen", [sliding(1, "1h")], key=["ip"], mode="shadow")


def test_a_gateways_request_is_asked_in_each_of_its_zones(place):
    weir = Weir(place, [SITE, LOGIN, SEEN]).ready("site")
    with Caller(weir.port) as caller:
        status, headers, body = caller.nginx("/login?next=/", "POST")
        assert status == 200 and body == b"" and headers["Content-Length"] == "0"
        assert headers["RateLimit-Policy"] == '"login";q=1;w=60, "site";q=3;w=3600', headers
        assert headers["RateLimit"].startswith('"login";r=0;t='), headers
        assert "Retry-After" not in headers
        status, headers, body = caller.nginx("//login", "POST")
        problem = json.loads(body)
        assert status == 429 and headers["Content-Type"] == "application/problem+json"
        assert problem["violated-policies"] == ["login"] and problem["type"].endswith("#quota-exceeded")
        assert 0 < int(headers["Retry-After"]) <= 60
        assert headers["RateLimit"].startswith('"login";r=0;t=' + headers["Retry-After"] + ', "site";r=1;t='), headers
        # The zone that passes has counted it: zones are independent. One in shadow mode blocks nobody and is not told of.
        assert caller.nginx("/")[0] == 200
        assert caller.nginx("/")[0] == 429
        assert caller.nginx("/", query="?deny=403")[0] == 403
        assert caller.nginx("/", client="192.0.2.8")[0] == 200
        # The hop that counts is the last one that is not trusted.
        assert caller.nginx("/", client="192.0.2.8, 192.0.2.7")[0] == 429
        assert caller.nginx("/", client="192.0.2.7, 127.0.0.1")[0] == 429
        assert caller.nginx("/", client="192.0.2.7, nobody")[0] == 400
    weir.stop()


def test_each_path_believes_the_headers_of_its_gateway_alone(place):
    weir = Weir(place, [zone("path", [sliding(1, "1h")], key=["method", "host", "path"])]).ready("path", "a|b|")
    nginx = {"x_original_method": "GET", "x_original_uri": "/nginx", "Host": "a"}
    forwarded = {"x_forwarded_method": "PUT", "x_forwarded_uri": "/forwarded?a", "x_forwarded_host": "b"}
    with Caller(weir.port) as caller:
        def status(path, method="GET", **headers):
            return caller.ask(path, method, **headers)[0]
        assert status("/v1/nginx", **nginx, **forwarded) == 200
        assert caller.check(zone="path", key="GET|a|/nginx")[1]["allowed"] is False
        assert status("/v1/forwarded", **forwarded, **nginx) == 200
        assert caller.check(zone="path", key="PUT|b|/forwarded")[1]["allowed"] is False
        assert status("/v1/envoy/api/x?y=z", "DELETE", **{**nginx, **forwarded, "Host": "c"}) == 200
        assert caller.check(zone="path", key="DELETE|c|/api/x")[1]["allowed"] is False
        assert status("/v1/nginx", x_original_method="GET") == 400
        assert status("/v1/forwarded", **nginx) == 400
        assert status("/v1/nginx?deny=404", **nginx) == 400
        # Caddy hands on what its client wrote there.
        assert status("/v1/forwarded?deny=403&a", x_forwarded_method="PUT", x_forwarded_uri="/query", x_forwarded_host="b") == 200
        assert status("/v1/forwarded?deny=403", x_forwarded_method="PUT", x_forwarded_uri="/query", x_forwarded_host="b") == 429
        assert status("/v2") == 404 and status("/v1/nginxx") == 404 and status("/") == 404
    weir.stop()


def test_what_a_client_adds_does_not_count(place):
    """The gateway's own header stands last; one with an underscore is its client's, which a gateway may leave where it takes out X-Api-Key."""
    weir = Weir(place, [zone("api", [sliding(1, "1h")], key=["x_api_key"]), zone("user", [sliding(1, "1h")], key=["user"])]).ready("api")
    head = b"GET /v1/nginx HTTP/1.0\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nX-Forwarded-For: 192.0.2.1\r\n"
    for headers, key in ((b"X-Api-Key: client\r\nx-api-key: a\r\n", "a"), (b"X_Api_Key: client\r\nX-Api-Key: b\r\n", "b"),
                         (b"X-Api-Key: c\r\nX_Api_Key: client\r\n", "c"), (b"X_Api_Key: client\r\n", None), (b"X_Forwarded_User: client\r\n", None),
                         (b"X-Api-Key: client\r\nX-Api-Key:\r\n", None), (b"X_Api_Key: client\r\nX-Api-Key: \r\n", None)):
        with Raw(weir.port) as raw:
            raw.send(head + headers + b"\r\n")
            assert raw.ends().startswith(b"HTTP/1.1 200 "), headers
        if key is None:
            continue  # it is in no zone
        with Caller(weir.port) as caller:
            assert caller.check(zone="api", key=key, peek=True)[1]["remaining"] == 0, key
            assert caller.check(zone="api", key="client", peek=True)[1]["remaining"] == 1, key
    with Caller(weir.port) as caller:
        for name in ("api", "user"):
            assert caller.check(zone=name, key="client", peek=True)[1]["remaining"] == 1
    weir.stop()


def test_hops_in_several_lines_are_one_list(place):
    """A proxy may write a line of its own behind its client's, as HAProxy does."""
    weir = Weir(place, [SITE], client_ip={"header": "X-Forwarded-For", "trusted": ["127.0.0.0/8", "10.0.0.0/8"]}).ready("site")
    asked = b"X-Original-Method: GET\r\nX-Original-URI: /\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\n"
    for i, path in enumerate((b"/v1/nginx", b"/v1/forwarded", b"/v1/envoy/")):
        client = b"203.0.113.%d" % i
        for hops, status in ((b"X-Forwarded-For: " + client + b"\r\nX-Forwarded-For: 10.0.0.1\r\n", b"200"),
                             (b"X-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: " + client + b", 10.0.0.2\r\nX-Forwarded-For:\r\n", b"200"),
                             (b"X-Forwarded-For: nobody\r\nX-Forwarded-For: 10.0.0.1\r\n", b"400")):
            with Raw(weir.port) as raw:
                raw.send(b"GET " + path + b" HTTP/1.0\r\n" + asked + hops + b"\r\n")
                assert raw.ends().startswith(b"HTTP/1.1 " + status), (path, hops)
        with Caller(weir.port) as caller:
            assert caller.check(zone="site", key=client.decode(), peek=True)[1]["remaining"] == 1, path
            assert caller.check(zone="site", key="192.0.2.1", peek=True)[1]["remaining"] == 3, path
    weir.stop()


def test_a_host_has_one_form_in_requests_and_in_lines(place):
    """A client cannot step out of a zone, or have a bucket more, by the way it writes its host."""
    zones = [zone("api", [sliding(9, "1h")], key=["ip"], match={"host": ["API.example.com"]}), zone("each", [sliding(9, "1h")], key=["host"])]
    line = burst("ann", 1, int(time.time() * 1000), ip="192.0.2.7", host="Api.example.com.:443")
    weir = Weir(place, zones, sources=[source(place.write("hosts.log", line))])
    with Caller(weir.port) as caller:
        def left(name, key):
            return caller.check(zone=name, key=key, peek=True)[1].get("remaining")
        until(lambda: left("each", "api.example.com") == 8 and left("api", "192.0.2.7") == 8, "the line is counted", running=weir.process)
        for i, host in enumerate(("api.example.com", "API.example.com", "api.example.com:443", "api.example.com.")):
            assert caller.ask("/v1/envoy/", Host=host, x_forwarded_for="192.0.2.7")[0] == 200
            forwarded = {"x_forwarded_method": "GET", "x_forwarded_uri": "/", "x_forwarded_host": host, "x_forwarded_for": "192.0.2.7"}
            if i < 3:
                assert caller.ask("/v1/forwarded", **forwarded)[0] == 200
        assert caller.ask("/v1/envoy/", Host="aPI.example.com", x_forwarded_for="192.0.2.7")[0] == 200
        assert left("each", "api.example.com") == 0 and left("api", "192.0.2.7") == 0
        assert caller.check(fields={"ip": "192.0.2.8", "host": "API.EXAMPLE.COM"})[1]["allowed"] is False
    weir.stop()


def test_a_host_that_is_not_told_is_none(place):
    """The host of the question itself is not that of the client, who has none."""
    zones = [zone("all", [sliding(99, "1h")], key=["path"]), zone("host", [sliding(99, "1h")], key=["host"])]
    weir = Weir(place, zones).ready("all")
    with Caller(weir.port) as caller:
        forwarded = {"x_forwarded_method": "GET", "x_forwarded_uri": "/f", "x_forwarded_for": "192.0.2.7"}
        nginx = {"x_original_method": "GET", "x_original_uri": "/n", "x_forwarded_for": "192.0.2.7"}
        for form, headers in (("/v1/forwarded", forwarded), ("/v1/forwarded", {**forwarded, "x_forwarded_host": ""}),
                              ("/v1/forwarded", {**forwarded, "x_forwarded_host": "-"}), ("http://question/v1/forwarded", forwarded),
                              ("/v1/nginx", {**nginx, "Host": ""}), ("/v1/nginx", {**nginx, "Host": "", "x_forwarded_host": "question"}),
                              ("/v1/envoy/e", {"Host": "", "x_forwarded_host": "question", "x_forwarded_for": "192.0.2.7"})):
            assert caller.judged(form, **{"Host": "question", **headers})[0] == 200, (form, headers)
        assert [caller.left("all", key) for key in ("/f", "/n", "/e")] == [95, 97, 98]
        assert [caller.left("host", key) for key in ("question", "-", "127.0.0.1")] == [99, 99, 99]
        assert caller.judged("/v1/forwarded", **{"Host": "question", **forwarded, "x_forwarded_host": "told"})[0] == 200
        assert [caller.left("host", key) for key in ("question", "told")] == [99, 98]
    weir.stop()


def test_a_header_of_a_dash_is_none_whatever_it_is_for(place):
    """A gateway may write "-" for what it has not got, as logs do: such a header is as one that is empty, and no error."""
    zones = [zone("ip", [sliding(99, "1h")], key=["ip"]), zone("method", [sliding(99, "1h")], key=["method"]),
             zone("path", [sliding(99, "1h")], key=["path"]), zone("target", [sliding(99, "1h")], key=["target"]),
             zone("agent", [sliding(99, "1h")], key=["agent"]), zone("key", [sliding(99, "1h")], key=["x_api_key"])]
    for number, header in enumerate(("X-Forwarded-For", "X-Real-IP", "Forwarded")):
        weir = Weir(place, zones, state=f"state-{number}", client_ip={"header": header, "trusted": ["127.0.0.0/8"]}).ready("ip")
        with Caller(weir.port) as caller:
            none = {header.replace("-", "_"): "-", "User-Agent": "-", "X-Api-Key": "-"}
            for path, begin in (("/v1/nginx", "x_original"), ("/v1/forwarded", "x_forwarded")):
                asked = {f"{begin}_method": "GET", f"{begin}_uri": "/x"}
                assert caller.judged(path, **asked, **none)[0] == 200, (header, path)
                assert caller.judged(path, **asked, **{**none, header.replace("-", "_"): ""})[0] == 200, (header, path)
                assert caller.judged(path, **{**asked, f"{begin}_method": "-"}, **none)[0] == 200
                assert caller.judged(path, **{**asked, f"{begin}_uri": "-"}, **none)[0] == 200
                assert caller.judged(path, **{**asked, f"{begin}_uri": ""}, **none)[0] == 400
            assert caller.judged("/v1/envoy/x", "-", **none)[0] == 200
            assert [caller.left("ip", key) for key in ("127.0.0.1", "-")] == [90, 99], header
            assert [caller.left("method", key) for key in ("GET", "-")] == [93, 99]
            assert [caller.left("path", key) for key in ("/x", "-", "/-", "/")] == [92, 99, 99, 99]
            assert [caller.left("target", key) for key in ("/x", "-")] == [92, 99]
            assert [caller.left(name, "-") for name in ("agent", "key")] == [99, 99]
        with Raw(weir.port) as raw:  # lines of "-" alone are no list; an address in one of them is
            asked = b"GET /v1/nginx HTTP/1.0\r\nX-Original-Method: GET\r\nX-Original-URI: /lines\r\n"
            raw.send(asked + b"%b: -\r\n%b:\r\n%b: -\r\n\r\n" % ((header.encode(),) * 3))
            assert raw.ends().startswith(b"HTTP/1.1 200 "), header
        with Raw(weir.port) as raw:
            raw.send(asked + b"%b: 192.0.2.7\r\n%b: -\r\n\r\n" % ((header.encode(),) * 2))
            assert raw.ends().startswith(b"HTTP/1.1 400 "), header
        weir.stop()


def test_a_target_may_be_an_address(place):
    """As a client sends it that asks by way of a proxy; its host is the request's, and the field Host says nothing."""
    zones = [zone("host", [sliding(10, "1h")], key=["host"]), zone("path", [sliding(10, "1h")], key=["path"])]
    weir = Weir(place, zones).ready("path")
    with Caller(weir.port) as caller:
        status, _, body = caller.judged(f"http://127.0.0.1:{weir.port}/v1/check", "POST", b'{"zone": "path", "key": "/j"}')
        assert status == 200 and json.loads(body)["remaining"] == 9
        for form, own, others in (("http://API.example:80/v1/envoy/e", {}, {}), ("HTTP://api.example/v1/envoy/e", {"Host": "x"}, {}),
                                  ("http://api.example/v1/nginx?deny=403", {"Host": "x"}, {"x_original_uri": "/n", "x_original_method": "GET"})):
            assert caller.judged(form, x_forwarded_for="192.0.2.7", **own, **others)[0] == 200, form
        assert caller.judged("http://y/v1/forwarded", x_forwarded_for="192.0.2.7", x_forwarded_host="api.example", x_forwarded_uri="/f",
                          x_forwarded_method="GET")[0] == 200
        assert [caller.left("path", key) for key in ("/e", "/n", "/f", "/j")] == [8, 9, 9, 9]
        assert [caller.left("host", key) for key in ("api.example", "x", "y")] == [6, 10, 10]
        for form, wrong in (("http://x/v1/checks", 404), ("http://x", 404), ("http:///v1/check", 400), ("http://a:b@x/v1/check", 400)):
            with Caller(weir.port) as other:
                assert other.ask(form, "POST", b"{}", Host="x")[0] == wrong, form
    weir.stop()


def test_a_method_has_one_form_in_requests_and_in_lines(place):
    """Proxies pass `post` on, and Django, Flask and PHP serve it as POST: it is no way around a zone."""
    zones = [zone("login", [sliding(9, "1h")], key=["ip"], match={"method": ["POST"], "path": ["/login"]}),
             zone("each", [sliding(9, "1h")], key=["ip", "method"])]
    line = burst("ann", 1, int(time.time() * 1000), ip="192.0.2.7", method="post", path="/login")
    weir = Weir(place, zones, sources=[source(place.write("methods.log", line))])
    with Caller(weir.port) as caller:
        def left(name, key):
            return caller.check(zone=name, key=key, peek=True)[1].get("remaining")
        until(lambda: left("each", "192.0.2.7|POST") == 8 and left("login", "192.0.2.7") == 8, "the line is counted", running=weir.process)
        for method in ("POST", "post"):
            assert caller.ask("/v1/envoy/login", method, x_forwarded_for="192.0.2.7")[0] == 200
            for path, begin in (("/v1/forwarded", "x_forwarded"), ("/v1/nginx", "x_original")):
                asked = {f"{begin}_method": method, f"{begin}_uri": "/login", "x_forwarded_for": "192.0.2.7"}
                assert caller.ask(path, **asked)[0] == 200
        assert left("login", "192.0.2.7") == left("each", "192.0.2.7|post") == 2
        for method in ("Post", "pOST"):
            assert caller.check(fields={"ip": "192.0.2.7", "method": method, "path": "/login"})[1]["allowed"]
        assert caller.ask("/v1/envoy/login", "post", x_forwarded_for="192.0.2.7")[0] == 429
        assert caller.check(zone="each", key="192.0.2.7|post")[1]["allowed"] is False
        assert caller.check(zone="each", key="192.0.2.7|password")[1]["remaining"] == 8
    weir.stop()


def test_a_body_waits_until_it_is_asked_for(place):
    weir = Weir(place, [SITE]).ready("site")
    body = b'{"zone": "site", "key": "192.0.2.9"}'
    head = b"POST /v1/check HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    with Raw(weir.port) as raw:
        for remaining in (2, 1):
            raw.send(head)
            went_on = raw.take(25)
            assert went_on == b"HTTP/1.1 100 Continue\r\n\r\n", went_on
            raw.send(body[:7])
            raw.send(body[7:])
            reply = b""
            while not reply.endswith(b"}\n"):
                reply += raw.take(1)
            assert json.loads(reply[reply.index(b"{"):])["remaining"] == remaining, reply
        raw.send(head + body)  # all at once: it is not told to go on
        assert raw.take(12) == b"HTTP/1.1 200"
    with Raw(weir.port) as raw:
        raw.send(head.replace(b"%d" % len(body), b"512000000"))
        assert raw.ends().startswith(b"HTTP/1.1 413 ")
    with Raw(weir.port) as raw:  # of several words of Connection, "close" counts
        raw.send(b"POST /v1/check HTTP/1.1\r\nConnection: close\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert raw.ends().startswith(b"HTTP/1.1 200 ")
    weir.stop()


def test_json(place):
    weir = Weir(place, [SITE, LOGIN, SEEN, EXACT]).ready("site")
    with Caller(weir.port) as caller:
        status, answer = caller.check(zone="site", key="192.0.2.7")
        assert status == 200 and answer.pop("reset_after_ms") <= 3600000
        assert answer == {"allowed": True, "limit": 3, "window_ms": 3600000, "remaining": 2, "retry_after_ms": -1}, answer
        assert caller.check(zone="site", key="192.0.2.7", cost=2.0, peek=True)[1]["allowed"] is True
        assert caller.check(zone="site", key="192.0.2.7", cost=3)[1]["allowed"] is False
        answer = caller.check(checks=[{"zone": "site", "key": "192.0.2.7", "cost": 2}, {"zone": "site", "key": "192.0.2.9"},
                                      {"fields": {"ip": "192.0.2.7", "method": "POST", "path": "/login"}}])[1]
        assert [check["allowed"] for check in answer["checks"]] == [True, True, False] and answer["allowed"] is False
        zones = {zone["zone"]: zone for zone in answer["checks"][2]["zones"]}
        assert zones["login"]["key"] == "192.0.2.7" and zones["login"]["allowed"] and not zones["site"]["allowed"]
        assert zones["seen"]["shadow"] is True
        # The path is that of the target, and the target is the path as it is written, where one alone is given.
        for client, fields, names in (("198.51.100.1", {"target": "/x/..//login?a"}, {"site", "login", "seen"}),
                                      ("198.51.100.2", {"target": "/login", "path": "/other"}, {"site", "seen"}),
                                      ("198.51.100.3", {"path": "/login?a"}, {"site", "login", "seen", "exact"}),
                                      ("198.51.100.4", {"path": "/login?a", "target": "/login"}, {"site", "login", "seen"})):
            found = caller.check(fields={"ip": client, "method": "POST", **fields})[1]["zones"]
            assert {one["zone"] for one in found} == names, (fields, found)
        # A key that an answer names asks for the same bucket, whatever is in it.
        for client in ("a|b", "a\\", "x" * 3000):
            (told,) = [found for found in caller.check(fields={"ip": client})[1]["zones"] if found["zone"] == "site"]
            assert told["remaining"] == 2 and (len(client) > 100 or told["key"] == client), told
            assert [caller.check(zone="site", key=key)[1]["remaining"] for key in (client, told["key"])] == [1, 0], client
        # Nothing is counted where one is wrong, and the words say which and why.
        for members, words in (
                ({"checks": [{"zone": "site", "key": "192.0.2.9"}, {"zone": "sight", "key": "a"}]}, 'checks[1].zone: there is no zone "sight"'),
                ({"zone": "site"}, "key: is missing"),
                ({"zone": "site", "key": ""}, "key: the key has no ip"),
                ({"zone": "site", "key": "a", "cost": -1}, "cost: "),
                ({"zone": "site", "key": "a", "price": 1}, "price"),
                ({"fields": {"ip": 1}}, "fields.ip: "),
                ({"fields": {"ip": "a"}, "zone": "site"}, "fields: stand instead of"),
                ({"checks": []}, "checks: "),
                ({}, "zone: is missing")):
            status, problem = caller.check(**members)
            if words:
                assert status == 400 and words in problem["detail"], (members, status, problem)
        assert caller.check(zone="site", key="192.0.2.9", peek=True)[1]["remaining"] == 2
        assert caller.ask("/v1/check", "POST", "{")[0] == 400
        assert caller.ask("/v1/check", "POST", "")[0] == 400
        assert caller.ask("/v1/check", "GET")[0] == 405
    page = metrics.scrape(weir.pages)
    assert page.value("weir_check_requests_total", path="/v1/check") > 10
    weir.stop()


def test_of_a_block_without_end_no_time_is_told(place):
    """Not even one in the year 10000, by any protocol."""
    port, cell = free_port(), zone("cell", [{"algorithm": "gcra", "rate": 30, "window": "1m", "burst": 15}], key=["user"])
    weir = Weir(place, [SITE, cell], listen={"resp": f"127.0.0.1:{port}"}).ready("site")
    client = Redis(port)
    with Caller(weir.port) as caller:
        for name, key in (("site", "192.0.2.7"), ("cell", "ann")):
            blocked = place.run("block", key, "--zone", name, "--state", place.path("state"))
            assert blocked.code() == 0, blocked.said()
            until(lambda name=name, key=key: not caller.check(zone=name, key=key, peek=True)[1]["allowed"], "the block is there")
            answer = caller.check(zone=name, key=key)[1]
            assert (answer["remaining"], answer["retry_after_ms"], answer["reset_after_ms"]) == (0, -1, -1), answer
        status, headers, _ = caller.nginx()
        assert (status, headers["RateLimit"], headers["Retry-After"]) == (429, '"site";r=0', None), str(headers)
    assert client.call("WEIR.CHECK", "192.0.2.7", "site") == [1, 3, 0, -1, -1]
    assert client.call("CL.THROTTLE", "ann", 15, 30, 60) == [1, 16, 0, -1, -1]
    client.close()
    weir.stop()


def test_as_many_pass_as_the_limit_says(place):
    weir = Weir(place, [zone("site", [sliding(100, "1h")], key=["ip"])]).ready("site")
    for callers in (8, 64):
        def one_key(caller, _, callers=callers):
            return sum(caller.nginx(client=f"192.0.2.{callers}")[0] == 200 for _ in range(800 // callers))

        def many_keys(caller, _, callers=callers):
            return [sum(caller.check(zone="site", key=f"key-{callers}-{key}", cost=25)[1]["allowed"] for _ in range(2))
                    for key in range(4)]
        assert sum(crowd(partial(Caller, weir.port), callers, one_key)) == 100
        passed = [sum(each) for each in zip(*crowd(partial(Caller, weir.port), callers, many_keys))]
        assert passed == [4] * 4, passed
    weir.stop()


def test_who_may_ask(place):
    refused = place.run("run", "--config", place.config([SITE], [], listen={"check_http": "*:8082"}), "--state", place.path("none"))
    assert refused.code() == 2 and "listen.check_http" in refused.said() and "checks.password" in refused.said()
    weir = Weir(place, [SITE], password="a secret", rate_limit_fields="x-ratelimit")
    with Caller(weir.port) as caller:
        assert caller.nginx()[0] == 401
        assert caller.nginx(Authorization="Bearer a secre")[0] == 401
        assert caller.nginx(Authorization="Basic a secret")[0] == 401
        assert caller.ask("/v1/check", "POST", "{")[0] == 401
        until(lambda: caller.nginx(x_weir_password="a secret")[0] == 200, "it is answered", running=weir.process)
    with Caller(weir.port, "a secret") as caller:
        status, headers, _ = caller.nginx()
        assert status == 200 and "RateLimit" not in headers
        assert [headers[f"X-RateLimit-{name}"] for name in ("Limit", "Remaining")] == ["3", "1"], headers
        assert 0 < int(headers["X-RateLimit-Reset"]) <= 3600
    assert "a secret" not in weir.process.said()
    assert metrics.scrape(weir.pages).value("weir_check_failed_logins_total") == 4
    weir.stop()


def certified(place):
    """A certificate of this machine, and its key."""
    key, certificate = place.path("key.pem"), place.path("certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    os.chmod(key, 0o600)
    return certificate, key


def test_tls(place):
    certificate, key = certified(place)
    weir = Weir(place, [SITE], listen={"certificate": certificate, "key": key}, tls=True)
    with Caller(weir.port, context=ssl.create_default_context(cafile=certificate)) as caller:
        until(lambda: caller.nginx()[0] == 200, "it is answered", running=weir.process)
    context = ssl.create_default_context(cafile=certificate)
    body = b'{"zone": "site", "key": "192.0.2.9"}'.ljust(64 << 10)
    large = b"POST /v1/check HTTP/1.1\r\nX: " + b"x" * 15000 + b"\r\nContent-Length: 65536\r\n\r\n" + body
    with Raw(weir.port, lambda plain: context.wrap_socket(plain, server_hostname="127.0.0.1")) as raw:
        last = b"GET /v1/nginx HTTP/1.0\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nX: "
        last += b"x" * (5 * 16384 - len(large) - len(last) - 4) + b"\r\n\r\n"
        raw.send(b"\r\n")
        raw.send(large + last)  # five records, of which two bytes find no room beside what came before
        assert raw.ends().count(b"HTTP/1.1 ") == 2
    weir.stop()


def test_who_speaks_another_protocol_is_told_at_once(place):
    """On each port, before it has sent what its own protocol would have it wait for; and by TLS and without."""
    certificate, key = certified(place)
    hello, ping, request = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"*1\r\n$4\r\nPING\r\n", b"GET /a HTTP/1.1\r\n"
    told = {"check_http": ((hello, b"without TLS"), (ping, b"speaks HTTP"), (b"PING\r\n", b"speaks HTTP"), (b"PRI * HTTP/2.0\r\n", b"listen.grpc")),
            "resp": ((hello, b"without TLS"), (request, b"not HTTP"), (b"PRI * HTTP/2.0\r\n", b"not HTTP")),
            "grpc": ((hello, b"speaks gRPC"), (ping, b"speaks gRPC"), (request, b"speaks gRPC"))}
    ports = {name: free_port() for name in ("resp", "grpc")}
    for tls in (False, True):
        listen = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        if tls:
            listen.update(certificate=certificate, key=key)
        weir = Weir(place, [SITE], listen=listen, tls=tls, state=f"state-{tls}")
        for name, cases_of in told.items():
            port = ports.get(name, weir.port)
            for sent, words in cases_of:
                if tls and sent == hello:
                    continue
                with Raw(port) as raw:
                    raw.socket.settimeout(5)  # half the time that a request has to come
                    raw.send(sent)
                    came = raw.ends()
                    assert (b"port speaks TLS" if tls and sent != hello else words) in came, (name, tls, sent, came)
                    if came.startswith(b"HTTP/1.1 "):
                        head, body = came.split(b"\r\n\r\n")
                        assert head.startswith(b"HTTP/1.1 400 ") and b"Content-Length: %d" % len(body) in head, came
                        assert json.loads(body)["status"] == 400
            if tls or name != "resp":
                asked = place.run("check", "a", "--zone", "site", "--at", f"127.0.0.1:{port}")
                if tls:
                    assert f"listen.{name} refused a question of 127.0.0.1: it speaks no TLS" in weir.process.said(), weir.process.said()
                expected = "port speaks TLS" if name == "resp" else "what answers does not speak Redis' protocol"
                assert asked.code() == 2 and expected in asked.said(), (name, tls, asked.said())
        weir.stop()


def test_what_cannot_be_read_ends_its_connection_alone(place):
    weir = Weir(place, [SITE]).ready("site")
    for bad, status in ((b"GET / HTTP/1.1\nA: b\n\r\n\r\n", b"400"), (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
                        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
                        (b"POST / HTTP/1.1\r\nContent-Length: 512000000\r\n\r\n", b"413"),
                        (b"GET /" + b"a" * 40000, b"431"), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400")):
        with Raw(weir.port) as raw:
            raw.send(bad)
            assert raw.ends().startswith(b"HTTP/1.1 " + status + b" "), bad[:40]
    one = b"GET /v1/nginx HTTP/1.1\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
    with Raw(weir.port) as raw:  # a pipeline: answered in order, however it comes
        raw.send(one * 1000 + one.replace(b"HTTP/1.1", b"HTTP/1.0"))
        came = raw.ends()
        assert came.count(b"HTTP/1.1 200 OK\r\n") == 3 and came.count(b"HTTP/1.1 429 ") == 998
    with Raw(weir.port) as raw:
        for byte in one.replace(b"192.0.2.1", b"192.0.2.2"):
            raw.send(bytes([byte]))
        assert raw.take(12) == b"HTTP/1.1 200"
    with Raw(weir.port) as raw:  # HEAD: no body behind a refusal
        raw.send(one.replace(b"GET /v1", b"HEAD /v1") + one.replace(b"HTTP/1.1", b"HTTP/1.0"))
        heads = raw.ends().split(b"HTTP/1.1 ")
        assert heads[1].startswith(b"429") and heads[1].endswith(b"\r\n\r\n") and heads[2].startswith(b"429"), heads
    weir.stop()


def test_who_sends_too_much_reads_why(place):
    """A connection that is cut while a gateway still sends its head is a weir that is away to it, and lets its client pass."""
    weir = Weir(place, [SITE]).ready("site")
    for size in (33_000, 60_000, 200_000, 1_000_000) * 5:
        with Raw(weir.port) as raw:
            raw.send(b"GET /v1/forwarded HTTP/1.1\r\nUser-Agent: " + b"a" * size)
            raw.send(b"\r\n\r\n")
            assert raw.ends().startswith(b"HTTP/1.1 431 "), size
    with Raw(weir.port) as raw:  # but not without end
        with contextlib.suppress(OSError):
            while True:
                raw.send(b"a" * 100_000)
    with Raw(weir.port) as raw:
        raw.send(b"GET /" + b"a" * 40_000)
        assert raw.ends().startswith(b"HTTP/1.1 431 ")
        until(lambda: metrics.scrape(weir.pages).value("weir_check_connections") == 0, "its connection is closed")
    weir.stop()


def test_a_client_of_1_0_is_told_that_its_connection_goes_on(place):
    weir = Weir(place, [SITE]).ready("site")
    one = b"GET /v1/nginx HTTP/1.%d\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nX-Forwarded-For: 192.0.2.1\r\n%s\r\n"
    keeps = b"Connection: Keep-Alive\r\n"
    with Raw(weir.port) as raw:
        for version, asked, said in ((0, keeps, b"keep-alive"), (1, b"", None), (1, keeps, None), (0, keeps, b"keep-alive"), (0, b"", b"close")):
            raw.send(one % (version, asked))
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += raw.take(1)
            if head.startswith(b"HTTP/1.1 429 "):
                raw.take(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
            lines = [line for line in head.split(b"\r\n") if line.startswith(b"Connection:")]
            assert lines == ([b"Connection: " + said] if said else []), (version, asked, head)
        assert raw.ends() == b""
    weir.stop()


def test_slow_clients_are_ended(place):
    """Ten seconds a request, and a connection on which nothing comes at first likewise."""
    weir = Weir(place, [SITE]).ready("site")
    with Raw(weir.port) as silent, Raw(weir.port) as slow, Raw(weir.port) as idle:
        idle.send(b"GET /v1/nginx HTTP/1.1\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\n\r\n")
        assert idle.take(12) == b"HTTP/1.1 200"
        began = time.monotonic()
        slow.send(b"GET /v1/nginx HTTP/1.1\r\n")

        def drip():
            try:
                slow.send(b"A: b\r\n")
            except OSError:
                return True
            return metrics.scrape(weir.pages).value("weir_check_stalled_connections_total") == 2
        until(drip, "both are ended")
        assert 9 < time.monotonic() - began < 25
        assert silent.ends() == b""
        idle.send(b"GET /v1/nginx HTTP/1.0\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\n\r\n")
        assert b"HTTP/1.1 200" in idle.ends()
    weir.stop()


def test_a_refused_client_holds_its_connection_for_a_moment(place):
    """However slowly it goes on sending: it is read on, so that it sees why, and no longer."""
    weir = Weir(place, [SITE]).ready("site")
    with Raw(weir.port) as raw:
        began = time.monotonic()
        raw.send(b"X\r\n\r\n")
        assert raw.take(13) == b"HTTP/1.1 400 "

        def drip():
            try:
                raw.send(b"a")
            except OSError:
                return True
            time.sleep(0.2)
            return False
        until(drip, "it is ended")
        assert time.monotonic() - began > 1
    weir.stop()


def test_connections_are_bounded(place):
    weir = Weir(place, [SITE], threads=1, connections=20).ready("site")
    until(lambda: metrics.scrape(weir.pages).value("weir_check_connections") == 0, "who asked whether it is ready is gone")
    kept = [Raw(weir.port) for _ in range(20)]
    with Raw(weir.port) as beyond:
        beyond.socket.settimeout(PATIENCE_S)
        head, body = beyond.ends().split(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ") and b"Content-Length: %d\r\n" % len(body) in head, head
        assert json.loads(body)["detail"] == "raise checks.connections", body
    for raw in kept:
        raw.socket.close()
    weir.stop()


if __name__ == "__main__":
    cases.main(globals())
