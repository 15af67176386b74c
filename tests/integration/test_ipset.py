#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ipset in a network namespace of the test's own: its sets hold who is blocked, for as long as that is."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.gateways import program
from support.network import Network
from support.place import PATIENCE_S, free_port, until
from support.stepped_clock import SteppedClock
from support.traffic import FORMAT, line, sliding, source, zone

START_MS = 1000 * int(time.time())


class Sets:
    """Sets in a namespace, and a weir that keeps them."""

    def __init__(self, place, target, *makes, zones=None):
        ipset = program("ipset")
        self.place, self.network, self.port = place, Network(place), free_port()
        self.network.let_nft("")
        wrapper = place.write("bin/ipset", f"#!/bin/sh\nexec {' '.join(self.network.enter)} {ipset} \"$@\"\n")
        os.chmod(wrapper, 0o755)
        self.ipset = ipset
        for make in makes:
            try:
                self.network.good(ipset, *f"create {make}".split())
            except AssertionError as why:
                raise cases.Skipped(f"ipset cannot be used here: {why}") from None
        self.target = f"ipset:{target}"
        config = place.config(zones or [zone("site", [sliding(3, "1m")], key=["ip"], id=1, block_for="1h")],
                              [source(place.write("log", ""), format=FORMAT)], gateways=[self.target],
                              listen={"http": f"127.0.0.1:{self.port}"})
        self.weir = place.start("run", "--config", config, "--state", place.path("state"),
                                env=self.network.environment)
        until(lambda: (metrics.get(self.port, "/readyz") or (0,))[0] == 200, "the lists stand", 2 * PATIENCE_S, self.weir)

    def say(self, *addresses, user="u", **more):
        """So many addresses go over the limit."""
        self.place.append("log", "".join(line(START_MS + i, user, ip=ip, **more) for ip in addresses for i in range(5)))

    def held(self, name):
        """{element: seconds left} of a set."""
        members = self.network.good(self.ipset, "list", name).partition("Members:\n")[2]
        return {element: int(left) for element, left in re.findall(r"(\S+) timeout (\d+)", members)}

    def until(self, condition, what):
        """Waits for as long as weir runs."""
        return until(condition, what, 2 * PATIENCE_S, self.weir)

    def value(self, name):
        """A metric of the gateway."""
        return metrics.scrape(self.port).value(f"weir_subscribe_{name}", gateway=self.target)


def test_sets_hold_who_is_blocked(place):
    zones = [zone("site", [sliding(3, "1m")], key=["ip"], id=1, block_for="1h", match={"path": ["/site"]}),
             zone("net", [sliding(3, "1m")], key=[{"field": "ip", "prefix4": 24}], id=2, block_for="40d",
                  match={"path": ["/net"]}),
             zone("short", [sliding(3, "2s")], key=["ip"], id=3, block_for="3s", match={"path": ["/short"]})]
    sets = Sets(place, "four,six", "four hash:net timeout 0", "six hash:ip family inet6 timeout 0", zones=zones)
    sets.say("203.0.113.9", "2001:db8::9", path="/site")
    sets.say("198.51.100.7", path="/net")
    sets.until(lambda: set(sets.held("four")) == {"203.0.113.9", "198.51.100.0/24"} and
               set(sets.held("six")) == {"2001:db8::9"}, "they are listed")
    assert 3500 < sets.held("four")["203.0.113.9"] <= 3600 and sets.held("four")["198.51.100.0/24"] == 0
    place.append("log", "".join(line(1000 * int(time.time()) + i, "u", ip="203.0.113.77", path="/short")
                                for i in range(5)))
    sets.until(lambda: "203.0.113.77" in sets.held("four"), "a short one is listed")
    sets.until(lambda: "203.0.113.77" not in sets.held("four"), "the kernel ends it")
    # Flushed by others: it is all there again.
    sets.network.good(sets.ipset, "flush", "four")
    sets.until(lambda: set(sets.held("four")) == {"203.0.113.9", "198.51.100.0/24"}, "the list is back")
    for key, of in (("203.0.113.9", "site"), ("198.51.100.0/24", "net")):
        place.good("lift", key, "--zone", of, "--state", place.path("state"))
    sets.until(lambda: not sets.held("four"), "both are let in")
    assert sets.network.good(sets.ipset, "list", "-n").split() == ["four", "six"], "nothing else is left"
    assert sets.weir.stop() == 0, sets.weir.said()


def test_a_flush_shows_also_when_others_are_blocked_behind_it(place):
    sets = Sets(place, "four", "four hash:ip timeout 0")
    sets.say("203.0.113.9")
    sets.until(lambda: set(sets.held("four")) == {"203.0.113.9"}, "it is listed")
    time.sleep(1.1)  # so that the next one is decided later
    sets.network.good(sets.ipset, "flush", "four")
    sets.place.append("log", "".join(line(START_MS + 2000 + i, "u", ip="203.0.113.10") for i in range(5)))
    sets.until(lambda: set(sets.held("four")) == {"203.0.113.9", "203.0.113.10"}, "the list is back")
    assert sets.weir.stop() == 0, sets.weir.said()


def test_a_set_holds_networks_that_an_operator_blocks(place):
    """Of any size, beside addresses in them: each goes when its own block does."""
    sets = Sets(place, "four,six", "four hash:net timeout 0", "six hash:ip family inet6 timeout 0")
    state = place.path("state")
    for words in (("block", "10.0.0.0/8"), ("block", "10.1.2.3"), ("block", "2001:db8::/32")):
        place.good(*words, "--zone", "site", "--state", state)
    sets.until(lambda: set(sets.held("four")) == {"10.0.0.0/8", "10.1.2.3"}, "both are listed")
    assert not sets.held("six") and sets.value("unfit_total") == 1, "that one takes no networks"
    place.good("lift", "10.0.0.0/8", "--zone", "site", "--state", state)
    sets.until(lambda: set(sets.held("four")) == {"10.1.2.3"}, "the network is let in")
    assert sets.value("errors_total") == 0 and sets.weir.stop() == 0, sets.weir.said()


def test_an_operators_network_is_held_beside_a_limits(place):
    """A zone whose key a client writes counts a text as wide as that, and blocks it for longer: the set holds it all the same."""
    text = {"name": "text", "key": ["user"], "limits": [sliding(1, "1h")], "block_for": "2h", "id": 2}
    sets = Sets(place, "four", "four hash:net timeout 0", zones=[{"name": "site", "key": ["ip"], "limits": [sliding(1, "1h")], "id": 1}, text])
    state = place.path("state")
    sets.say("203.0.113.1", user="10.0.0.0/8")
    sets.until(lambda: sets.value("unfit_total") > 0, "no limit is about so many")
    assert "10.0.0.0/8" not in sets.held("four")
    place.good("block", "10.0.0.0/8", "--zone", "site", "--for", "10m", "--state", state)
    sets.until(lambda: "10.0.0.0/8" in sets.held("four"), "an operator's is")
    place.good("lift", "10.0.0.0/8", "--zone", "site", "--state", state)
    sets.until(lambda: "10.0.0.0/8" not in sets.held("four"), "the limit's alone is not")
    assert sets.value("errors_total") == 0 and sets.weir.stop() == 0, sets.weir.said()


def test_a_set_follows_a_clock_that_is_set(place):
    """It was behind as the set was filled, by more than an element can hold, and is ahead for a moment."""
    sets, clock = Sets(place, "four", "four hash:net timeout 0", "late hash:net timeout 0"), SteppedClock(place)
    sets.say("203.0.113.9", "198.51.100.7")
    sets.until(lambda: len(sets.held("four")) == 2, "they are blocked")
    listed = set(sets.held("four"))
    clock.set(-40 * 86400)
    late = place.start("subscribe", "--state", place.path("state"), "--to", "ipset:late",
                       env={**clock.environment, "PATH": sets.network.environment["PATH"]})
    until(lambda: set(sets.held("late")) == listed, "the list stands", 2 * PATIENCE_S, late)
    assert set(sets.held("late").values()) == {0}, "for ever"
    clock.set(0)
    until(lambda: all(0 < left <= 3600 for left in sets.held("late").values()), "for an hour", 2 * PATIENCE_S, late)
    assert set(sets.held("late")) == listed
    clock.set(7200)
    until(lambda: not sets.held("late"), "they are over", 2 * PATIENCE_S, late)
    clock.set(0)
    until(lambda: set(sets.held("late")) == listed, "they are not", 2 * PATIENCE_S, late)
    assert all(3000 < left <= 3600 for left in sets.held("late").values()), sets.held("late")
    assert late.stop() == 0 and sets.weir.stop() == 0, late.said()


def test_a_set_that_is_full_holds_what_ends_last(place):
    sets = Sets(place, "small", "small hash:ip timeout 0 maxelem 8")
    sets.say(*[f"10.0.0.{i}" for i in range(30)])
    sets.until(lambda: len(sets.held("small")) == 8 and sets.value("unfit_total") > 0, "it is full")
    gone = sorted(sets.held("small"))[0]
    place.good("lift", gone, "--zone", "site", "--state", place.path("state"))
    sets.until(lambda: gone not in sets.held("small") and len(sets.held("small")) == 8, "another has its room")
    assert sets.value("errors_total") == 0 and sets.weir.stop() == 0, sets.weir.said()


def test_a_set_that_cannot_serve_is_said(place):
    log = [source(place.write("log", ""), format=FORMAT)]
    for name in ("", "a b", "-x", "a,b,c", "x" * 32, "a;b"):
        config = place.config([zone("site", [sliding(3, "1m")], id=1)], log, gateways=[f"ipset:{name}"])
        done = place.run("validate", "--config", config)
        assert done.code() == 2 and "gateways[0]" in done.said(), (name, done.said())


def test_a_set_that_is_not_there_is_told_with_what_makes_it(place):
    sets = Sets(place, "four", "four hash:net timeout 0")
    config = place.config([zone("site", [sliding(3, "1m")], key=["ip"])], [source(place.path("log"), format=FORMAT)],
                          gateways=["nft:inet/weir/none", "ipset:none"])
    weir = place.start("run", "--config", config, "--state", place.path("other"), env=sets.network.environment)
    for words in ("status 1: Error: No such file or directory", "nft add set inet weir none", "weir setup nft",
                  "name does not exist", "ipset create none hash:net timeout 0"):
        until(lambda words=words: words in weir.said(), words, running=weir)
    assert "^^" not in weir.said(), weir.said()


if __name__ == "__main__":
    cases.main(globals())
