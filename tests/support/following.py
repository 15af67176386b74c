# SPDX-License-Identifier: Apache-2.0
"""A weir that follows what a server holds, and what it made of it: for the tests of sources."""

import json

from support import metrics
from support.place import free_port, lines_of, until
from support.traffic import START_MS, line, site


def user(number, name, **more):
    """A line of one user's request, as a message's bytes."""
    return line(START_MS + number, name, **more).encode()


def start(place, sources, zones=None):
    """A weir that follows and serves: (weir, port)."""
    port = free_port()
    config = place.config(zones or site(), sources, listen={"http": f"127.0.0.1:{port}"}, deadletter={"rate": 1000})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--dead-letter", place.path("dead"), "--summary", "json")
    until(lambda: "following" in weir.said(), "it follows", running=weir)
    return weir, port


def once(place, sources, out, zones=None):
    """Reads sources to their end: (decisions, summary)."""
    done = place.good("run", "--once", "--config", place.config(zones or site(), sources, name=f"{out}.json"),
                      "--decisions", place.path(f"{out}.out"), "--summary", "json")
    return lines_of(place.path(f"{out}.out")), done.summary()


def value(port, name, **labels):
    """A sum of a metric; -1 while there is no page."""
    page = metrics.scrape(port)
    return page.sum(name, **labels) if page else -1


def verdicts(port):
    """How many were given in all of weir's lives."""
    return value(port, "weir_limiter_verdicts_total")


def keys(place):
    """The first key value of each decision that blocks."""
    return sorted(decision["key"][0] for decision in lines_of(place.path("out")) if decision["action"] == "block")


def taken(frames):
    """(source, event) of each event in the lines of `weir decode`, as a limiter takes them: repetitions are passed over."""
    held = {}
    for text in frames:
        frame = json.loads(text)
        if frame["kind"] != "events":
            continue
        reader = frame["partition"], frame["source"]
        before = held.get(reader, -1)
        for event in frame["events"]:
            held[reader] = max(held.get(reader, -1), event["position"])
            if event["position"] > before:
                yield frame["source"], event


def events(place):
    """(source, position, key) of every event in weir's log that limiters take."""
    frames = place.good("decode", "--state", place.path("state")).out().splitlines()
    return [(source, event["position"], event["key"]) for source, event in taken(frames)]


def positions(place):
    """(source, position) of each of events()."""
    return [(source, position) for source, position, _ in events(place)]
