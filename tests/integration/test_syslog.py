#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `syslog`: what is sent over UDP and TCP comes out as decisions, and nothing is counted twice."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import PATIENCE_S, free_port, lines_of, until
from support.traffic import site, sliding, zone

DONE, USAGE = 0, 2
HEAD = "<190>1 2024-01-01T00:00:00Z www app - - - "


def syslog(kind, port, **more):
    """A source."""
    return {"type": "syslog", "listen": f"{kind}://127.0.0.1:{port}", "format": "json", **more}


def start(place, source, zones=None, state="state"):
    """A weir that listens and serves: (weir, the port of its metrics)."""
    port = free_port()
    config = place.config(zones or site(), [source], listen={"http": f"127.0.0.1:{port}"})
    weir = place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path("out"),
                       "--dead-letter", place.path("dead"), "--summary", "json")
    until(lambda: "following" in weir.said(), "it listens", running=weir)
    return weir, port


def keys(place):
    """The first key value of each decision that blocks."""
    return sorted(decision["key"][0] for decision in lines_of(place.path("out")) if decision["action"] == "block")


def received(weir, port, source, count):
    """Waits until so many messages were taken, and gives the page."""
    def page():
        shown = metrics.scrape(port)
        name = source["listen"]
        return shown if shown and shown.value("weir_source_received_total", source=name) == count else None
    return until(page, f"{count} messages", running=weir)


def user(name, count):
    """Messages of one user."""
    return [HEAD + json.dumps({"user": name}) for _ in range(count)]


def send_udp(port, messages):
    """Each a datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for message in messages:
            sender.sendto(message.encode(), ("127.0.0.1", port))


def send_tcp(port, data):
    """All over one connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sender:
        sender.sendall(data)


def test_datagrams_become_decisions(place):
    port = free_port()
    source = syslog("udp", port)
    weir, http = start(place, source)
    send_udp(port, user("ann", 4) + user("bob", 3) + ["no head", HEAD + "no json"])
    page = received(weir, http, source, 9)
    until(lambda: keys(place) == ["ann"], "ann is blocked", running=weir)
    assert page.value("weir_source_malformed_total", source=source["listen"]) == 1
    assert page.value("weir_source_dropped_total", source=source["listen"]) == 0
    assert page.value("weir_source_replayable", source=source["listen"]) == 0
    assert page.value("weir_source_guarantee", source=source["listen"], guarantee="at most once") == 1
    until(lambda: len(lines_of(place.path("dead"))) == 2, "the dead letters", running=weir)
    assert {letter["reason"] for letter in lines_of(place.path("dead"))} == {"not syslog", "not json"}
    assert "at most once" in weir.said(), weir.said()
    assert weir.stop() == DONE, weir.said()
    zones = weir.summary()["zones"]
    assert (zones["site"]["passed"], zones["site"]["blocked"]) == (6, 1), zones


def test_connections_become_decisions(place):
    port = free_port()
    source = syslog("tcp", port)
    weir, http = start(place, source)
    messages = [message.encode() for message in user("ann", 4) + user("bob", 4)]
    send_tcp(port, b"".join(b"%d %s" % (len(message), message) for message in messages[:3])
             + b"".join(message + b"\n" for message in messages[3:7]) + messages[7])
    received(weir, http, source, 8)
    until(lambda: keys(place) == ["ann", "bob"], "both are blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_a_stop_loses_nothing_that_was_taken(place):
    port, count = free_port(), 20000
    source = syslog("tcp", port)
    weir, http = start(place, source)
    send_tcp(port, "".join(message + "\n" for i in range(count // 4) for message in user(f"u{i}", 4)).encode())
    received(weir, http, source, count)
    assert weir.stop() == DONE, weir.said()
    zones = weir.summary()["zones"]
    assert (zones["site"]["passed"], zones["site"]["blocked"]) == (count // 4 * 3, count // 4), zones
    assert len(keys(place)) == count // 4


def test_after_a_start_the_count_goes_on(place):
    port = free_port()
    source = syslog("udp", port)
    for i in range(4):
        weir, http = start(place, source)
        send_udp(port, user("ann", 1))
        received(weir, http, source, 1)
        if i < 3:
            assert weir.stop() == DONE, weir.said()
            assert keys(place) == [], i
    until(lambda: keys(place) == ["ann"], "the fourth request is one too many", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_the_program_logger_is_understood(place):
    if shutil.which("logger") is None:
        raise cases.Skipped("there is no logger")
    port = free_port()
    source = syslog("udp", port, format="syslog")
    weir, http = start(place, source, [zone("site", [sliding(2, "1d")], key=["app", "severity"])])
    for form in ("--rfc3164", "--rfc5424"):
        for _ in range(2):
            subprocess.run(["logger", form, "-n", "127.0.0.1", "-P", str(port), "-d", "-t", "shop", "-p", "local0.err",
                            "an error"], check=True, timeout=PATIENCE_S, env={**os.environ, "TZ": "UTC"})
    page = received(weir, http, source, 4)
    assert page.value("weir_source_malformed_total", source=source["listen"]) == 0
    decision = until(lambda: lines_of(place.path("out")), "a decision", running=weir)[0]
    assert decision["key"] == ["shop", "err"], decision
    assert abs(decision["at"] - time.time() * 1000) < 3600000, decision
    assert weir.stop() == DONE, weir.said()


def test_the_program_logger_is_understood_over_tcp(place):
    if shutil.which("logger") is None:
        raise cases.Skipped("there is no logger")
    port = free_port()
    source = syslog("tcp", port, format="syslog")
    weir, http = start(place, source, [zone("site", [sliding(2, "1d")], key=["message"], match={"app": ["shop"]})])
    for more in ((), ("--octet-count",)):
        for _ in range(2):
            subprocess.run(["logger", "--rfc5424", *more, "-n", "127.0.0.1", "-P", str(port), "-T", "-t", "shop",
                            "an error"], check=True, timeout=PATIENCE_S)
    received(weir, http, source, 4)
    until(lambda: keys(place) == ["an error"], "a decision", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_a_zone_may_match_the_head_and_count_the_message(place):
    port = free_port()
    source = syslog("udp", port, format="combined")
    weir, http = start(place, source, [zone("site", [sliding(1, "1d")], key=["ip"], match={"app": ["nginx"]})])
    request = '192.0.2.{} - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5'
    send_udp(port, [f"<190>May 17 10:05:03 www {app}: " + request.format(number)
                    for app, number in (("nginx", 1), ("apache", 2)) for _ in range(2)])
    received(weir, http, source, 4)
    until(lambda: keys(place) == ["192.0.2.1"], "one is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == 2


def test_what_is_said_beforehand(place):
    port = free_port()
    config = place.config(site(), [syslog("udp", port)])
    said = place.good("validate", "--config", config).out().decode()
    assert f"udp://127.0.0.1:{port}, json, listened to; at most once" in said, said
    done = place.run("run", "--once", "--config", config)
    assert done.code() == USAGE and "has no end: run without --once" in done.said(), (done.code(), done.said())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", port))
        done = place.run("run", "--config", config, "--state", place.path("state"))
        assert done.code() != DONE and f"cannot listen on udp://127.0.0.1:{port}" in done.said(), done.said()


if __name__ == "__main__":
    cases.main(globals())
