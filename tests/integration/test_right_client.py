#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whom weir counts, and for what: what an operator expects of logs as servers write them."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.traffic import sliding, zone

AT = "[17/May/2024:10:05:{:02} +0000]"
IP64 = {"field": "ip", "prefix6": 64}


def access(ip, request="GET /a HTTP/1.1", rest='200 12 "-" "curl/8"', second=3):
    """A line of an access log."""
    return f'{ip} - - {AT.format(second)} "{request}" {rest}\n'


def judged(place, lines, zones, log_format="combined", **more):
    """[(zone, key, verdict)] of each event."""
    log = place.write("access.log", lines if isinstance(lines, str) else "".join(lines))
    config = place.config(zones, [{"type": "file", "path": log, "format": log_format, **more}])
    done = place.run("run", "--once", "--config", config, "--judged", place.path("judged"), "--decisions", "/dev/null",
                     "--summary", "json")
    assert done.code() == (0 if done.summary()["events"] > 0 else 1), done.said()
    with open(place.path("judged"), encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    return [(event["zone"], event["key"], event["verdict"]) for event in events], done


def keys(place, lines, zones, log_format="combined", **more):
    """The keys of the events, joined."""
    return ["|".join(key) for _, key, _ in judged(place, lines, zones, log_format, **more)[0]]


def site(key=("ip",), rate=100, **more):
    """One zone."""
    return [zone("site", [sliding(rate, "1m")], key=key, **more)]


def test_virtual_hosts_are_no_clients(place):
    lines = [access(f"{host} 198.51.100.{i}") for i, host in enumerate(
        ("shop.example.net:443", "shop.example.net", "192.0.2.99", "[2001:db8::5]:8443", "-"))]
    assert keys(place, lines, site()) == [f"198.51.100.{i}" for i in range(5)]
    assert keys(place, [access(" 198.51.100.7")] * 2, site()) == ["198.51.100.7"] * 2  # nginx's $host where there is none
    headed = [f"<190>May 17 10:05:03 web nginx: {access(' 198.51.100.7')}"]
    assert keys(place, headed, site(), {"type": "syslog", "year": 2024, "message": "combined"}) == ["198.51.100.7"]
    assert keys(place, lines, site(("host",)))[:3] == ["shop.example.net", "shop.example.net", "192.0.2.99"]


def test_other_heads_are_told(place):
    lines = [head + access("198.51.100.7") for head in (
        "May 17 10:05:03 web nginx: ", "<190>May 17 10:05:03 web nginx: ", '"', "2024-05-17T10:05:03.1Z stdout F ",
        '{"log":"', "web-1  | ")]
    found, done = judged(place, lines, site())
    assert not found and done.summary()["malformed"] == {"not combined": 6}, (found, done.summary())


def test_a_line_whose_end_does_not_come_is_told(place):
    def part(stream, tag, text):
        return f"2024-05-17T10:05:09Z {stream} {tag} {text}"
    cri = {"type": "wrapped", "in": "cri", "message": "combined"}
    lines = [part("stdout", "F", access("198.51.100.7")), part("stderr", "P", "198.51.100.8 - -\n"),
             part("stdout", "P", access("198.51.100.9")), part("stdout", "F", access("198.51.100.10"))]
    for end, told in ((4, {"not wrapped": 1}), (3, {"not wrapped": 2}), (1, {})):
        found, done = judged(place, lines[:end], site(), cri)
        assert done.summary()["malformed"] == told, (end, done.summary())
        assert len(found) == (2 if end == 4 else 1), found


def test_one_address_is_one_key(place):
    spellings = ("2001:db8::7", "[2001:DB8::7]:443", "[2001:db8:0:0::7]", "2001:0db8:0:0:0:0:0:0007", "2001:db8::7%eth0")
    lines = [json.dumps({"time": 1 + i, "client": {"addr": text}}) + "\n" for i, text in enumerate(spellings)]
    form = {"type": "json", "unit": "s", "fields": {"ip": "/client/addr"}}
    found, done = judged(place, lines, site(rate=4, exempt=["2001:db9::/32"]), form)
    assert found == [("site", ["2001:db8::7"], "pass")] * 4 + [("site", ["2001:db8::7"], "block")], found
    assert done.summary()["ip_not_address"] == 0
    assert keys(place, lines, site([{"field": "ip", "prefix6": 32}]), form) == ["2001:db8::/32"] * 5
    assert not keys(place, lines, site(exempt=["2001:db8::/32"]), form)
    assert keys(place, "".join(access(ip) for ip in ("192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7:80")), site()) == \
        ["192.0.2.7"] * 3


def test_what_is_no_address_is_counted_and_told(place):
    lines = [access("gate.example.net"), access("192.0.2.1"), access("192.0.02.1")]
    log = place.write("access.log", "".join(lines))
    done = place.good("run", "--once", "--limit", "9/1m", "--decisions", "/dev/null", log)
    assert "no address 2" in " ".join(done.said().split()), done.said()
    assert keys(place, lines, site()) == ["gate.example.net", "192.0.2.1", "192.0.02.1"]
    config = place.config(site([IP64]), [{"type": "file", "path": log, "format": "combined"}])
    said = json.loads(place.good("validate", "--config", config, "--json").out())["warnings"]
    assert any("2 of the first 3 events have an ip that is no address, such as \"gate.example.net\"" in one["words"]
               for one in said), said


def test_one_path_is_one_path(place):
    requests = ("POST /login HTTP/1.1", "POST /login?next=/ HTTP/1.1", "POST https://www.example.net/login HTTP/2.0",
                "POST //login HTTP/1.1", "POST /%6Cogin HTTP/1.1", "POST /a/../login#x HTTP/1.1",
                "POST   /login   HTTP/1.1", "POST /login", "POST /./login HTTP/1.1", "POST /a/%2e%2e/login HTTP/1.1")
    lines = [access(f"198.51.100.{i}", request) for i, request in enumerate(requests)]
    login = site(match={"method": ["POST"], "path": ["/login"]})
    assert keys(place, lines, login) == [f"198.51.100.{i}" for i in range(len(requests))]
    assert keys(place, lines, site(("target",)))[:3] == ["/login", "/login?next=/", "https://www.example.net/login"]
    lines = [json.dumps({"time": i, "ip": "192.0.2.1", "path": request.split()[1]}) + "\n"
             for i, request in enumerate(requests)]
    assert keys(place, lines, site(("path",)), {"type": "json", "unit": "s"}) == ["/login"] * len(requests)


def test_a_line_that_is_not_whole_counts(place):
    lines = [access("198.51.100.1", rest='- - "-" "curl/8" 7 "-" "-" 0ms'), access("198.51.100.2", rest="499 -"),
             access("198.51.100.3", 'GET /a"b HTTP/1.1'), access("198.51.100.4")[:70] + "\n",
             access("198.51.100.5")[:45] + "\n", access("198.51.100.6", "GET /" + "\\x22" * 3000)]
    found, done = judged(place, lines, site(), line_max="1KiB")
    assert [key[0] for _, key, _ in found] == [f"198.51.100.{i}" for i in range(1, 7)], found
    assert not done.summary()["malformed"], done.summary()
    agent = "\\x90" * (8 << 10)
    long = access("198.51.100.7", "POST /login?" + "\\x90" * (8 << 10), f'200 1 "{agent}" "{agent}"')
    assert len(long) > 95 << 10 and keys(place, long, site(("ip", "path", "status"))) == ["198.51.100.7|/login|200"]


def test_numbers_that_are_none(place):
    lines = ['{"time":1,"ip":"198.51.100.1","upstream_time":-,"bytes":0}\n',
             '{"time":2,"ip":"198.51.100.2","upstream_time":0.1, 0.2 : 0.3,"bytes":NaN}\n',
             '{"time":3,"ip":"198.51.100.3","upstream_time":,"bytes":0}\n']
    found, done = judged(place, lines, site(), {"type": "json", "unit": "s"})
    assert [key[0] for _, key, _ in found] == [f"198.51.100.{i}" for i in range(1, 4)], done.summary()


def test_a_proxy_is_never_counted_for_its_clients(place):
    form = {"type": "json", "unit": "s", "client_ip": {"header": "xff", "trusted": ["10.0.0.0/8"]}}

    def line(header):
        return json.dumps({"time": 1, "ip": "10.0.0.1", "xff": header}) + "\n"
    assert keys(place, line(["6.6.6.6", "198.51.100.1, 10.0.0.2"]) + line("for=6.6.6.6, for=\"[2001:DB8::1]:80\";proto=https") +
                line('for=198.51.100.3;host="x, for=6.6.6.6"'), site(), form) == \
        ["198.51.100.1", "2001:db8::1", "198.51.100.3"]
    found, done = judged(place, line("198.51.100.1, unknown") + line("for=_hidden"), site(), form)
    assert not found and done.summary()["malformed"] == {"no client": 2}, done.summary()


def test_who_is_exempt(place):
    lines = [access("198.51.100.9"), access("198.51.100.21"), access("198.51.100.30", rest='200 1 "-" "10.0.0.1"')]
    assert keys(place, lines, site(("ip", "agent"), exempt=["198.51.100.1-198.51.100.20", "10.0.0.0/8"])) == \
        ["198.51.100.21|curl/8", "198.51.100.30|10.0.0.1"]
    assert keys(place, lines, site(exempt=[{"agent": ["curl/*"]}])) == ["198.51.100.30"]
    assert keys(place, lines, site(match={"ip": {"not": ["198.51.100.0/28"]}})) == ["198.51.100.21", "198.51.100.30"]
    assert len(keys(place, lines, site(sources=["front"]), name="front")) == 3
    assert not keys(place, lines, site(sources=["front"]), name="back")


def test_what_exempts_nobody_is_told(place):
    zones = site([IP64], exempt=["office.example.net", "192.0.2.1"], sources=["front"])
    log = place.write("access.log", access("192.0.2.7"))
    config = place.config(zones, [{"type": "file", "path": log, "format": "combined"}])
    said = {one["path"]: one["words"] for one in json.loads(
        place.good("validate", "--config", config, "--json").out())["warnings"]}
    assert "office.example.net" in said["zones[0].exempt"] and "front" in said["zones[0].sources[0]"], said
    done = place.good("run", "--once", "--config", config, "--decisions", "/dev/null")
    assert "office.example.net" in done.said() and "front" in done.said(), done.said()
    config = place.config(site(exempt=["192.0.2.*"]), [])
    refused = place.run("validate", "--config", config)
    assert refused.code() == 2 and "192.0.2.* " not in refused.said() and "give a network" in refused.said(), refused.said()


def test_ipv6_is_counted_by_networks(place):
    log = place.write("access.log", "".join(access(f"2001:db8::{i:x}") for i in range(20)))
    done = place.good("run", "--once", "--key", "ip", "--limit", "3/1m", log)
    assert json.loads(done.out().splitlines()[0])["key"] == ["2001:db8::/64"], done.out()
    config = place.config(site(), [{"type": "file", "path": log, "format": "combined"}])
    said = json.loads(place.good("validate", "--config", config, "--json").out())["warnings"]
    assert [one for one in said if one["path"] == "zones[0].key[0]" and "prefix6" in one["words"]], said
    config = place.config(site([IP64]), [{"type": "file", "path": log, "format": "combined"}])
    assert not json.loads(place.good("validate", "--config", config, "--json").out())["warnings"]


if __name__ == "__main__":
    cases.main(globals())
