#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weir refuses to be asked: its log says who asked, what was wrong and what to do, and a metric counts it, by each surface."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import cases, metrics
from support.check_http import Caller, Weir
from support.checks import Raw
from support.place import free_port, until
from support.redis import Redis, RedisError, refused
from support.traffic import sliding, zone

from test_check_haproxy import begin  # pylint: disable=wrong-import-order

SITE = zone("site", [sliding(3, "1h")], key=["ip"])
OTHER = zone("other", [sliding(3, "1h")], key=["user"])


def told(weir, listener):
    """The log's lines of what this listener refused."""
    return [line for line in weir.process.said().splitlines() if f"listen.{listener} refused a question of 127.0.0.1" in line]


def counted(weir, surface, reason):
    """How many were."""
    return metrics.scrape(weir.pages).value("weir_check_refused_total", surface=surface, reason=reason)


def tells(weir, surface, listener, reason, *words):
    """That one was counted and is in the log with these words."""
    assert counted(weir, surface, reason) == 1, (surface, reason)
    lines = [line for line in told(weir, listener) if all(word in line for word in words)]
    assert len(lines) == 1 and " WARNING checks: " in lines[0] and "Nothing was counted" in lines[0], (words, told(weir, listener))


def test_by_http(place):
    weir = Weir(place, [SITE], password="a secret")
    head = b"GET /v1/nginx HTTP/1.0\r\nX-Weir-Password: a secret\r\n"
    with Caller(weir.port) as caller:
        until(lambda: caller.nginx(x_weir_password="a secret")[0] == 200, "it is answered", running=weir.process)
        assert caller.nginx(Authorization="Bearer another word")[0] == 401
    tells(weir, "http", "check_http", "login", "by /v1/nginx: the password is wrong or missing: send checks.password as ")
    for reason, sent, status, words in (
            ("subject", head + b"X-Original-Method: GET\r\n\r\n", b"400", "by /v1/nginx: the gateway does not say what is asked for: it must set X-Original-Method"),
            ("client", head + b"X-Original-Method: GET\r\nX-Original-URI: /\r\nX-Forwarded-For: nobody\xff\r\n\r\n", b"400",
             "by /v1/nginx: the gateway does not say who asks: a hop that counts is no address: set checks.client_ip"),
            ("unknown", b"GET /v2?a HTTP/1.1\r\n\r\n", b"404", "unknown path: /v1/nginx, /v1/forwarded, /v1/envoy and /v1/check are known"),
            ("protocol", b"GET /v1/nginx HTTP/1.1\r\nX : y\r\n\r\n", b"400", "the request cannot be read: a header field must be NAME: VALUE"),
            ("asked", b"POST /v1/check HTTP/1.0\r\nX-Weir-Password: a secret\r\nContent-Length: 25\r\n\r\n" + b'{"zone": "none", "key":1}', b"400",
             "by /v1/check: the text cannot be read as checks: ")):
        with Raw(weir.port) as raw:
            raw.send(sent)
            assert raw.ends().startswith(b"HTTP/1.1 " + status), reason
        tells(weir, "http", "check_http", reason, words)
    assert "a secret" not in weir.process.said() and "another word" not in weir.process.said() and "\x1b" not in weir.process.said()
    # However many there are, the log has few lines of them.
    before = len(told(weir, "check_http"))
    with Caller(weir.port) as caller:
        for _ in range(200):
            caller.connection.close()
            assert caller.nginx()[0] == 401
    assert counted(weir, "http", "login") == 201 and len(told(weir, "check_http")) == before, told(weir, "check_http")
    weir.stop()


def test_by_resp(place):
    port = free_port()
    weir = Weir(place, [SITE, OTHER], listen={"resp": f"127.0.0.1:{port}"}, password="a secret",
                users={"shop": {"password": "another", "zones": ["site"]}})
    client = Redis(port)
    assert refused(client, "WEIR.CHECK", "192.0.2.1", "site").startswith("NOAUTH ")
    tells(weir, "resp", "resp", "login", "it has not logged in: send AUTH")
    assert refused(client, "AUTH", "a word").startswith("WRONGPASS ")
    assert counted(weir, "resp", "login") == 2 and "the user or the password is wrong: have it send " in told(weir, "resp")[-1]
    client.call("AUTH", "shop", "another")
    until(lambda: not refused_for_now(client), "it is answered", running=weir.process)
    assert refused(client, "WEIR.CHECK", "ann", "other").startswith("NOPERM ")
    tells(weir, "resp", "resp", "rights", "user 'shop' may not ask in zone 'other'")
    assert refused(client, "WEIR.CHECK", "192.0.2.1", "s\x1b\nite").startswith("ERR ")
    tells(weir, "resp", "resp", "asked", 'there is no zone "s  ite"')
    assert refused(client, "WEIR.CHEK", "192.0.2.1", "site").startswith("ERR unknown command")
    tells(weir, "resp", "resp", "unknown", "there is no command of this name that begins with WEIR.")
    assert refused(client, "GET", "a").startswith("ERR unknown command")  # a client of Redis may ask for anything
    assert counted(weir, "resp", "unknown") == 1
    with Raw(port) as raw:
        raw.send(b"*1\r\n:1\r\n")
        assert raw.ends().startswith(b"-ERR Protocol error")
    tells(weir, "resp", "resp", "protocol", "expected '$'")
    assert "a word" not in weir.process.said()
    client.close()
    weir.stop()


def refused_for_now(client):
    """Whether its partition cannot answer yet."""
    try:
        return not client.call("WEIR.PEEK", "192.0.2.1", "site")
    except RedisError:
        return True


def test_a_gateway_with_a_wrong_password_is_told_of(place):
    """The log that haproxy.cfg sends its operator to."""
    with asking.Stage(place, begin) as stage:
        other = Weir(place, [SITE], password="a secret", state="other")
        with stage.gateway(other.port) as port:
            assert asking.get(port)[0] == 500
            assert "by /v1/forwarded: the password is wrong or missing: " in told(other, "check_http")[0]
            assert counted(other, "http", "login") >= 1
        other.stop()


if __name__ == "__main__":
    cases.main(globals())
