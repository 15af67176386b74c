#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `forward`: what Fluentd's protocol brings is counted once, through kills, and what is wrong is said."""

import json
import os
import random
import socket
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, forward, metrics
from support.place import PATIENCE_S, free_port, lines_of, until
from support.traffic import site

DONE = 0
BEGIN_S = 1709251200
ROUNDS = int(os.environ.get("WEIR_ROUNDS", "5"))


def source_of(port, **more):
    """A source."""
    return {"type": "forward", "name": "apps", "listen": f"tcp://127.0.0.1:{port}", "format": "json", **more}


def start(place, source, state="state", zones=None, more=None):
    """A weir that listens and serves: (weir, the port of its metrics)."""
    http = free_port()
    config = place.config(zones or site(), [source], listen={"http": f"127.0.0.1:{http}"}, **(more or {}))
    weir = place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path("out"),
                       "--dead-letter", place.path("dead"), "--summary", "json")
    until(lambda: "following" in weir.said(), "it listens", running=weir)
    return weir, http


def value(http, name):
    """A metric of the only stream."""
    page = metrics.scrape(http)
    return None if page is None else sum(page.values(name).values()) if hasattr(page, "values") else None


def entries(user, count, at=BEGIN_S):
    """Requests of one user."""
    return [(forward.event_time(at + i / 1000), {"user": user}) for i in range(count)]


def counts(weir):
    """(passed, blocked) of a weir that has ended."""
    zone = weir.summary()["zones"]["site"]
    return zone["passed"], zone["blocked"]


def blocked(place):
    """The first key value of each decision that blocks."""
    return sorted(decision["key"][0] for decision in lines_of(place.path("out")) if decision["action"] == "block")


def test_every_mode_becomes_decisions(place):
    port = free_port()
    weir, _ = start(place, source_of(port))
    with forward.Sender(("127.0.0.1", port)) as sender:
        for mode in ("forward", "packed", "compressed"):
            sender.send_and_wait(forward.messages("app", entries(mode, 4), mode)[mode], mode)
        for i in range(4):
            at = entries("message", 4)[i:]
            sender.send_and_wait(forward.messages("app", at, f"message{i}")["message"], f"message{i}")
        sender.send(forward.pack(None))
    until(lambda: blocked(place) == ["compressed", "forward", "message", "packed"], "all are blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert counts(weir) == (12, 4), weir.said()


def test_what_comes_again_is_acknowledged_and_dropped(place):
    port = free_port()
    weir, _ = start(place, source_of(port))
    message = forward.messages("app", entries("ann", 3), "one")["packed"]
    for _ in range(3):
        with forward.Sender(("127.0.0.1", port)) as sender:
            sender.send_and_wait(message, "one")
    assert weir.stop() == DONE, weir.said()
    weir, _ = start(place, source_of(port))
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(message, "one")
        sender.send_and_wait(forward.messages("app", entries("bob", 4), "two")["packed"], "two")
    until(lambda: blocked(place) == ["bob"], "bob is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


if __name__ == "__main__":
    cases.main(globals())
