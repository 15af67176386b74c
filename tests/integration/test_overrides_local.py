#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators' commands on one machine: through the control socket of a weir that runs, into the log of one that does not.

What is judged, published and kept is what the oracle says of the log."""

import json
import os
import re
import socket
import stat
import sys
import time
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.check_http import Caller
from support.place import PATIENCE_S, free_port, until
from support.stepped_clock import SteppedClock
from support.run_local import DONE, FAILED, PARTITIONS, USAGE, Run, ask, zones
from support.traffic import burst, sliding, source, zone

HOUR_MS = 3600000


# ---- what commands do ----

def test_a_running_weir_does_what_is_commanded(place):
    """Block, allow, override, lift: published, judged by, and as the oracle has it."""
    port = free_port()
    run = Run(place, archiver={"enabled": True}, listen={"http": f"127.0.0.1:{port}"}).start()
    done = run.override("block", "--zone", "site", "ann", "--for", "1h", "--reason", 'too "much"', "--by", "bob")
    (placed,) = done["placed"]
    block = run.published(zone="site", key=["ann"], action="block")
    assert block["id"] == f"{placed['partition']}-{placed['offset']}-0", (block, placed)
    assert (block["by"], block["reason"], block["until"]) == ("bob", 'too "much"', done["until"]), block
    assert "limit" not in block and "count" not in block, block
    run.override("allow", "--zone", "site", "joe")
    run.override("override", "--zone", "site", "--rate", "2", "sue")
    assert len(run.override("override", "--zone", "site", "--prefix", "--rate", "0.4", "u")["placed"]) == PARTITIONS
    for user in ("ann", "joe", "sue", "u1", "max"):
        run.append(burst(user, 10))
    limits = {user: run.published(zone="site", key=[user], action="block")["limit"]["rate"]
              for user in ("sue", "u1", "max")}
    assert limits == {"sue": 6, "u1": 1, "max": 3}, limits
    run.override("lift", "--zone", "site", "max")
    run.published(key=["max"], action="lift")
    run.append(burst("max", 10, step_ms=2))
    until(lambda: len([one for one in run.decisions() if one["key"] == ["max"]]) == 3, "max is blocked again",
          running=run.weir)
    page = metrics.scrape(port)
    overrides = {kind: page.value("weir_limiter_overrides_total", command=kind) for kind in ("block", "lift", "allow", "override")}
    assert overrides == {"block": 1, "lift": 1, "allow": 1, "override": 1 + PARTITIONS}, overrides
    run.stop()
    decisions = run.compare()
    assert not [one for one in decisions if one["key"] == ["joe"]]
    assert [one["action"] for one in decisions if one["key"] == ["ann"]] == ["block"]
    judged = [json.loads(line) for line in run.command("decode", "--topic", "judged", "--flat").out().splitlines()]
    words = {user: [next(z["verdict"] for z in one["zones"] if z["id"] == 1) for one in judged
                    if one["key"] == user] for user in ("ann", "joe", "sue")}
    assert words == {"ann": ["block"] * 10, "joe": ["pass"] * 10, "sue": ["pass"] * 6 + ["block"] * 4}, words


def test_what_is_commanded_after_the_clock_was_ahead_for_a_moment_holds_until_its_end(place):
    """The log's clock is past the end of each command as it comes. It is said where people look."""
    clock, port, pages = SteppedClock(place), free_port(), free_port()
    run = Run(place, listen={"check_http": f"127.0.0.1:{port}", "http": f"127.0.0.1:{pages}"})
    run.start(env=clock.environment)
    with Caller(port) as caller:
        def verdict(user):
            answer = until(lambda: next((said for _, said in [caller.check(zone="site", key=user)] if "unavailable" not in said), None),
                           "it is judged", running=run.weir)
            return not answer["allowed"]
        for number in range(32):
            verdict(f"first{number}")
        clock.set(2 * HOUR_MS // 1000)
        for number in range(32):  # some for each partition
            until(lambda user=f"ahead{number}": caller.check(zone="site", key=user, durable=True)[0] == 200, "it is judged", running=run.weir)
        now = int(time.time() * 1000)
        run.append("".join(burst(f"line{number}", 4, start_ms=now) for number in range(32)))
        until(lambda: len(run.decisions()) == 32, "lines are judged meanwhile", running=run.weir)
        clock.set(0)
        until(lambda: (metrics.scrape(pages).value("weir_limiter_clock_ahead_seconds") or 0) > 7000, "its clock is behind", running=run.weir)
        run.override("block", "--zone", "site", "ann", "--for", "1h")
        run.override("allow", "--zone", "site", "joe", "--for", "1h")
        run.override("override", "--zone", "site", "--rate", "2", "sue", "--for", "1h")
        run.override("block", "--zone", "site", "max", "--for", "2s")
        assert verdict("ann")
        assert [verdict("joe") for _ in range(5)] == [False] * 5
        run.append("".join(burst(user, 8, start_ms=now) for user in ("ann", "joe", "sue")))
        assert run.published(key=["sue"], action="block")["limit"]["rate"] == 6
        until(lambda: not verdict("max"), "its block is over", running=run.weir)
        assert verdict("ann") and not verdict("joe")
    done = place.run("doctor", "--config", run.config, "--state", run.state)
    assert " min ahead of this machine's clock" in done.said() + done.out().decode(), done.said()
    run.stop()
    assert "1 h 59 min ahead of this machine's clock" in run.weir.said(), run.weir.said()
    assert not [one for one in run.compare() if one["key"] == ["joe"]]


def test_what_is_commanded_while_nothing_runs_holds_from_the_start_on(place):
    """The command goes into the log itself; the next start judges by it."""
    run = Run(place).start()
    run.stop()
    said = run.command("block", "--zone", "site", "ann").out().decode()
    assert "no process is running there" in said and "until it is lifted" in said, said
    run.append(burst("ann", 5))
    run.start()
    block = run.published(key=["ann"], action="block")
    assert block["until"] == 253402300800000, block
    run.stop()
    assert len(run.compare()) == 1


def test_what_a_run_knew_that_ended_is_told_as_such(place):
    """`list` and `explain` answer from the state of a run that ended. They say so, for people, and answer all the same."""
    words = f"state {place.path('state')}: no weir run is running there; this is what it knew when it ended"
    run = Run(place).start()
    assert not [done.said() for done in answers_about_nobody(run) if "running there" in done.said()]
    run.stop()
    assert not [done.said() for done in answers_about_nobody(run) if words not in done.said() or words in done.out().decode()]
    assert "no process is running there" in run.command("lift", "--all").said()


def answers_about_nobody(run):
    """What `list`, `list --json` and `explain` answer, of a state that knows of nobody."""
    return [run.command("list"), run.command("list", "--json"), run.command("explain", "ann", code=FAILED)]


def test_an_empty_value_is_a_variable_that_is_not_set(place):
    """It would be the key of everyone whose field is empty."""
    run = Run(place).start()
    for command in (("block", "--zone", "site"), ("allow", "--zone", "site", "--for", "1m"), ("lift", "--zone", "site"),
                    ("override", "--zone", "site", "--rate", "2")):
        done = place.run(command[0], "--state", place.path("state"), *command[1:], "")
        assert done.code() == 2 and "a value is empty" in done.said() and "--key-hex" in done.said(), (command, done.said())
    for command in ("forget", "check", "explain"):
        done = place.run(command, "", "--zone", "site")
        assert done.code() == 2 and "a value is empty" in done.said(), (command, done.said())
    run.stop()
    assert not run.decisions()


def test_what_was_acknowledged_outlives_a_crash(place):
    """kill -9 behind each acknowledgement: everything is published once, and holds."""
    run = Run(place)
    for number in range(4):
        run.start()
        run.override("block", "--zone", "site", f"k{number}")
        run.override("override", "--zone", "site", "--rate", "3", f"u{number}")
        run.weir.kill()
        if number == 1:
            run.append("".join(burst(f"u{i}", 12) for i in range(4)))
    run.start()
    run.append("".join(burst(f"k{i}", 2) for i in range(4)))
    for number in range(4):
        run.published(key=[f"k{number}"], action="block")
    run.stop()
    decisions = run.compare()
    assert len([one for one in decisions if "by" in one]) == 4
    overrides = [json.loads(line) for line in run.command("state", "--orders").out().splitlines()]
    assert sorted((one["order"], one["key"][0]) for one in overrides) == (
        [("block", f"k{i}") for i in range(4)] + [("override", f"u{i}") for i in range(4)]), overrides


def test_a_checkpoint_keeps_what_was_commanded(place):
    """Orders come back from the checkpoint alone: their records are not judged again."""
    run = Run(place).start()
    run.override("block", "--zone", "site", "ann", "--for", "1h")
    run.override("allow", "--zone", "site", "joe", "--for", "1h", "--reason", "test")
    run.override("override", "--zone", "pair", "--prefix", "--rate", "2", "su")
    run.override("override", "--zone", "site", "--rate", "0.5", "max")
    run.override("override", "--zone", "site", "--rate", "1", "max")
    run.stop()
    run.start()
    run.append(burst("ann", 4) + burst("joe", 9) + burst("sue", 20, path="/") + burst("max", 4))
    assert run.published(zone="pair", key=["sue", "/"])["limit"]["rate"] == 10
    run.published(zone="site", key=["max"])
    run.stop()
    overrides = [json.loads(line) for line in run.command("state", "--orders").out().splitlines()]
    assert sorted({(one["order"], one["zone"], tuple(one["key"])) for one in overrides}) == [
        ("allow", "site", ("joe",)), ("block", "site", ("ann",)), ("override", "pair", ("su",))], overrides
    assert {one["partition"] for one in overrides if one["order"] == "override"} == set(range(PARTITIONS))
    run.compare()


def test_a_key_is_what_the_collector_makes_of_it(place):
    """An address in any of its forms, grouped as the zone says; odd bytes; a dash; a key too long."""
    net = zone("net", [sliding(3, "1m")], key=({"field": "ip", "prefix4": 24, "prefix6": 64},), id=1)
    run = Run(place, zones=[net, zone("name", [sliding(3, "1m")], id=2)]).start()
    for value, key in (("203.0.113.9", "203.0.113.0/24"), ("::ffff:203.0.113.77", "203.0.113.0/24"),
                       ("2001:DB8::1", "2001:db8::/64"), ("10.0.0.0/24", "10.0.0.0/24"),
                       ("2001:DB8::/64", "2001:db8::/64"), ("2001:db8:0::/64", "2001:db8::/64"),
                       ("::ffff:10.0.0.0/120", "10.0.0.0/24"), ("gate.example", "gate.example"), ("unix:", "unix:")):
        assert run.override("block", "--zone", "net", value)["key"] == [key]
    for value in ("a|b\\", "-", "é", 'q"'):
        assert run.override("block", "--zone", "name", value)["key"] == [value]
    done = place.good("block", "--zone", "name", "--state", run.state, "--json", "--", "--for")
    assert json.loads(done.out())["key"] == ["--for"]
    assert run.override("block", "--zone", "name", "--key-hex", "ff")["key_hex"] == "ff"
    long = run.override("block", "--zone", "name", "x" * 2000)["key"][0]
    assert len(long) == 60 and long.startswith("x" * 27 + "~"), long
    run.append(burst("x" * 2000, 3) + burst("a|b\\", 3))
    run.stop()
    run.compare()


def test_an_address_and_a_path_are_keys_however_they_are_written(place):
    """What formats do to `ip`, `path` and `method` of a line, they do to a command's: its key is one that events have."""
    client = zone("client", [sliding(3, "1m")], key=("ip", "path"), id=1)
    run = Run(place, zones=[client, zone("verb", [sliding(3, "1m")], key=("method",), id=2)]).start()
    for ip, path, key in (("2001:DB8:0::1", "/a//b", ["2001:db8::1", "/a/b"]),
                          ("::FFFF:203.0.113.9", "/%6Cogin?next=/", ["203.0.113.9", "/login"]),
                          ("[2001:DB8::2]:443", "/x/../y", ["2001:db8::2", "/y"]), ("203.0.113.9/32", "/", ["203.0.113.9", "/"]),
                          ("gate.Example", "*", ["gate.Example", "*"])):
        assert run.override("block", "--zone", "client", ip, path)["key"] == key, (ip, path)
        assert run.override("lift", "--zone", "client", ip, path)["key"] == key, (ip, path)
    for method, key in (("post", "POST"), ("Delete", "DELETE"), ("password", "password")):
        assert run.override("block", "--zone", "verb", method)["key"] == [key], method
    for value in ("10.0.00.1", "203.0.113.0/24"):
        done = run.command("block", "--zone", "client", value, "/", code=USAGE)
        assert value in done.said(), done.said()
    run.stop()


def test_a_network_that_nobody_is_counted_as_is_refused(place):
    """Of another size, with host bits, or no address at all: it would do nothing. To end one is harmless."""
    net = zone("net", [sliding(3, "1m")], key=({"field": "ip", "prefix4": 24, "prefix6": 64}, "user"), id=1)
    single = zone("single", [sliding(3, "1m")], key=({"field": "ip", "prefix6": 64},), id=2)
    run = Run(place, zones=[net, single]).start()
    wide, none = "net counts ip by /{}: ", "net counts addresses by ip, but"
    for value, said in (("10.0.0.0/25", wide.format(24)), ("10.0.0.0/16", wide.format(24)),
                        ("10.0.0.7/24", wide.format(24)), ("2001:db8::/48", wide.format(64)),
                        ("2001:db8::1/64", wide.format(64)), ("10.0.0.0/", wide.format(24)),
                        ("203.0.113.999", none), ("2001:db8:", none), ("10.0.0", none)):
        for words in (("block",), ("allow",), ("override", "--rate", "2")):
            done = run.command(*words, "--zone", "net", value, "ann", code=USAGE)
            assert said in done.said() and value in done.said(), done.said()
        run.override("lift", "--zone", "net", value, "ann")
    assert run.override("block", "--zone", "net", "--key-hex", b"10.0.0.0/25|ann".hex())["key"] == ["10.0.0.0/25", "ann"]
    assert run.override("block", "--zone", "single", "10.0.0.7/32")["key"] == ["10.0.0.7"]
    assert "by /64" in run.command("block", "--zone", "single", "2001:db8::/65", code=USAGE).said()
    run.stop()
    run.compare()


# ---- networks ----

def by_address():
    """Two zones by one address, and two that are not."""
    return [zone("net", [sliding(3, "1m")], key=({"field": "ip", "prefix4": 24, "prefix6": 64},), id=1),
            zone("single", [sliding(3, "1m")], key=("ip",), id=2),
            zone("name", [sliding(1000, "1m")], id=3),
            zone("pair", [sliding(1000, "1m")], key=("ip", "user"), id=4)]


def calls(*addresses, count=1):
    """Requests of addresses, a minute apart from all others."""
    calls.at_ms += HOUR_MS
    return "".join(burst("u", count, start_ms=calls.at_ms, ip=address) for address in addresses)


calls.at_ms = 1700000000000


def test_an_override_names_what_it_takes_for_a_network(place):
    """It takes none: its help does not say so, and the refusal says what to give."""
    run = Run(place, zones=by_address()).start()
    said = run.command("override", "10.1.0.0/16", "--zone", "single", "--rate", "0.5", code=USAGE).said()
    assert "is not such a network" in said and "with --prefix (such as --prefix 10.1.)" in said, said
    run.override("override", "--prefix", "10.1.", "--zone", "single", "--rate", "0.5")
    helps = {verb: " ".join(place.good(verb, "--help").out().decode().split()) for verb in ("block", "lift", "allow", "override")}
    assert {verb for verb, text in helps.items() if "(10.0.0.0/8) stands for its members" in text} == set(helps) - {"override"}
    assert "--prefix" not in run.command("block", "10.1.0.0/33", "--zone", "single", code=USAGE).said()
    run.stop()


def test_a_network_blocks_its_members(place):
    """In every zone by address, in every partition, through kill -9; one decision, found by a member, lifted by name."""
    run = Run(place, zones=by_address(), archiver={"enabled": True}).start()
    members = [f"10.{i}.2.{i}" for i in range(12)] + ["2001:db8:7::1", "2001:DB8:0:0::2"]
    others = ["11.0.0.1", "2001:db9::1"]
    said = [run.override("block", "--zone", name, network, "--by", "op", "--reason", "why")
            for network in ("10.0.0.0/8", "2001:DB8::/32") for name in ("net", "single")]
    assert all(one["network"] and len(one["placed"]) == PARTITIONS for one in said), said
    assert [one["key"] for one in said] == [["10.0.0.0/8"]] * 2 + [["2001:db8::/32"]] * 2, said
    run.published(zone="single", key=["2001:db8::/32"], action="block")
    run.weir.kill()
    run.append(calls(*members, *others, count=5))
    run.start()
    run.override("allow", "--zone", "single", "10.0.2.0/24")
    run.append(calls(*members, *others))
    for name in ("net", "single"):
        rows = listed(run, "--zone", name)
        assert set(rows) == {("10.0.0.0/8",), ("2001:db8::/32",)}, rows
        for member in (members[3], "10.200.0.0/24", "2001:db8:ffff::1"):
            (found,) = [one for one in listed(run, "--key", member, "--zone", name).values()]
            assert (found["by"], found["reason"]) == ("op", "why") and found["key"][0].endswith(("/8", "/32")), found
    assert "10.0.0.0/8" in run.command("list", "--key", members[3]).out().decode()
    assert "that key is not blocked" in run.command("list", "--key", "12.0.0.1").said()
    for address, network in ((members[3], "10.0.0.0/8"), ("2001:db8:ffff::1", "2001:db8::/32")):
        why = run.command("explain", address, "--zone", "single")
        assert f"Blocked {network} in zone single" in why.out().decode() and "op commanded: why" in why.out().decode(), why.out()
        (answer,) = run.command("explain", address, "--zone", "single", "--json").objects()
        assert answer["equal"] and answer["decision"]["key"] == [network], answer
    run.override("lift", "--zone", "net", "10.0.0.0/8")
    run.override("block", "--zone", "net", "10.1.2.0/23")
    run.published(zone="net", key=["10.1.2.0/23"])
    run.append(calls(*members, *others))
    run.append(calls("12.0.0.1", count=4))
    run.published(zone="single", key=["12.0.0.1"])  # and so all before it is in the log
    run.stop()
    decisions = run.compare()
    assert sum(one["key"] == ["10.0.0.0/8"] for one in decisions) == 3, "a block of each zone and a lift of one"
    assert not [one for one in decisions if "limit" in one and one["key"][0] not in ("11.0.0.0/24", "11.0.0.1",
                "12.0.0.0/24", "12.0.0.1", "2001:db9::/64", "2001:db9::1")], decisions
    judged = [json.loads(row) for row in run.command("decode", "--topic", "judged", "--flat").out().splitlines()]
    words = {1: {}, 2: {}}
    for one in judged:
        for found in one["zones"]:
            if found["id"] in words:
                words[found["id"]].setdefault(one["key"], []).append(found["verdict"])
    assert words[2]["10.3.2.3"] == ["block"] * 7 and words[2]["10.0.2.0"] == ["block"] * 5 + ["pass"] * 2, words
    assert words[1]["10.3.2.0/24"] == ["block"] * 6 + ["pass"] and words[1]["10.1.2.0/24"] == ["block"] * 7, words
    assert words[2]["11.0.0.1"] == ["pass"] * 3 + ["block"] * 2 + ["pass"] * 2, words
    assert words[1]["2001:db8:7::/64"] == words[2]["2001:db8:7::1"] == ["block"] * 7, words
    kept = [json.loads(row) for row in run.command("state", "--orders").out().splitlines()]
    assert {(one["order"], one["zone"], one["key"][0], one["network"]) for one in kept} == {
        ("block", "single", "10.0.0.0/8", True), ("allow", "single", "10.0.2.0/24", True),
        ("block", "net", "10.1.2.0/23", True), ("block", "net", "2001:db8::/32", True),
        ("block", "single", "2001:db8::/32", True)}, kept
    assert len(kept) == 5 * PARTITIONS, kept


def test_whoever_lets_a_member_in_hears_of_its_network(place):
    """Gateways hold the network whatever is allowed in it: at once after the block, and of a state that nothing runs on."""
    run = Run(place, zones=by_address()).start()

    def said(*words):
        return run.command(*words, "--zone", "single").out().decode()

    assert "stays blocked" not in said("allow", "10.1.2.3")
    for network in ("10.0.0.0/8", "10.1.0.0/16"):
        said("block", network)
    for words in (("allow", "10.1.2.3"), ("lift", "10.1.2.9"), ("allow", "10.1.2.0/24"), ("allow", "10.1.2.3", "--for", "1h")):
        assert "; 10.1.0.0/16, 10.0.0.0/8 stay blocked, and gateways keep" in said(*words), words
    assert "; 10.0.0.0/8 stays blocked" in said("lift", "10.1.0.0/16")
    for words in (("allow", "11.1.2.3"), ("lift", "10.0.0.0/8"), ("lift", "10.1.2.9"), ("allow", "10.1.2.3", "--for", "0s")):
        assert "stays blocked" not in said(*words), words
    said("block", "10.0.0.0/8")
    run.stop()
    assert "; 10.0.0.0/8 stays blocked" in said("lift", "10.1.2.3")


def test_a_network_is_for_every_zone_by_address_or_refused_in_words(place):
    """Without --zone for all of them, or none. What nobody is counted by is not taken, nor what is no network."""
    run = Run(place, zones=by_address()).start()
    said = run.command("block", "10.0.0.0/8", "--for", "1h").out().decode().splitlines()
    assert [line.split()[:3] for line in said] == [["net", "10.0.0.0/8", "blocked"], ["single", "10.0.0.0/8", "blocked"]], said
    assert f"in all {PARTITIONS} partitions" in said[0], said
    assert run.override("block", "--zone", "single", "::FFFF:10.9.0.0/112")["key"] == ["10.9.0.0/16"]
    assert run.override("block", "--zone", "net", "10.8.1.0/24").get("network") is None, "it is a key of the zone"
    for words, wanted in (
            (("10.1.2.3/8",), "for the network give 10.0.0.0/8"), (("2001:db8::1/32",), "give 2001:db8::/32"),
            (("10.0.0.0/33",), "prefix above 32"), (("010.0.0.0/8",), '"010.0.0.0/8" is not a network'),
            (("10.0.0.0/",), "not a prefix length"), (("10.0/8",), "is not a network"),
            (("0.0.0.0/0",), "every address"), (("::/0",), "every address"),
            (("10.0.0.0/25",), "zone net counts ip by /24"), (("2001:db8::/65", "--zone", "net"), "by /64"),
            (("10.0.0.0/8", "--zone", "name"), "zone name does not count by one address"),
            (("10.0.0.0/8", "--zone", "name"), "these zones do: net, single"),
            (("1.2.3", "--zone", "single"), '"1.2.3" is not an address'),
            (("010.1.2.3", "--zone", "single"), '"010.1.2.3" is not an address'),
            (("a b", "--zone", "single"), '"a b" is not an address, nor the name of a host'),
            (("10.0.0.1, 10.0.0.2", "--zone", "net"), "is not an address"), (("12345", "--zone", "single"), "is not an address"),
            (("ann@example.org", "--zone", "single"), "is not an address"), (("x/y", "ann", "--zone", "pair"), '"x/y" is not an address'),
            (("a..b", "--zone", "single"), "is not an address"), (("host.7", "--zone", "single"), "is not an address"),
            (("", "--zone", "single"), "a value is empty")):
        for kind in ("block", "allow"):
            done = run.command(kind, *words, code=USAGE)
            assert wanted in done.said() and not done.out(), (words, done.said())
    # Servers that look names up write them in the place of an address.
    for name in ("localhost", "crawl-7.example.org", "cafe.de.", "7.example.org"):
        said = run.command("block", "--zone", "single", name).out().decode()
        assert f"{name} is a name and no address: gateways that compare addresses do not hold it" in said, said
        assert "gateways" not in run.command("lift", "--zone", "single", name).out().decode()
    assert "gateways" not in run.command("block", "--zone", "name", "ann").out().decode()
    assert run.override("lift", "--zone", "name", "ann") and run.override("lift", "--zone", "single", "a b")["key"] == ["a b"]
    until(lambda: len(listed(run)) == 3, "all are blocked", running=run.weir)
    assert len(run.command("lift", "--all").out().splitlines()) == 4
    until(lambda: not listed(run), "nobody is blocked", running=run.weir)
    assert run.override("block", "--zone", "net", "--key-hex", b"10.0.0.0/8".hex())["network"], "the same network"
    done = run.command("forget", "10.0.0.0/8", "--zone", "net", code=USAGE)
    assert "weir lift ends its block" in done.said(), done.said()
    assert ("10.0.0.0/8",) in listed(run, "--zone", "net"), "it is blocked still"
    run.command("allow", "10.0.0.0/8")
    said = run.command("lift", "10.0.0.0/8").out().decode()
    assert [line.split()[0] for line in said.splitlines()] == ["net", "single", "name"], said
    run.stop()
    run.compare()
    os.remove(run.out)
    nobody = Run(place, zones=[zone("name", [sliding(3, "1m")], id=1)], state="other").start()
    assert "no zone counts by one address" in nobody.command("block", "10.0.0.0/8", code=USAGE).said()
    nobody.stop()


# ---- what is refused ----

def test_what_cannot_be_done_is_refused_in_words(place):
    """Names near to those that there are, numbers of values, times, options: nothing reaches the log."""
    run = Run(place).start()
    cases_ = [
        (("block", "ann", "--zone", "sit"), 'did you mean "site"?'),
        (("block", "ann", "--zone", "elsewhere"), '"pair"'),
        (("block", "ann", "x", "y"), "pair (user, path)"),
        (("block", "ann", "--zone", "pair"), "takes 2 values (user, path), not 1"),
        (("block", "ann", "--unti", "1"), "did you mean --until?"),
        (("block", "ann", "--until", "2020-01-01T00:00:00Z"), "past"),
        (("allow", "ann", "--until", "2020-01-01T00:00:00Z"), "past"),
        (("block", "ann", "--until", "tomorrow"), "2026-11-22T10:00:00Z"),
        (("block", "ann", "--for", "1 hour"), "duration"),
        (("block", "ann", "--for", "1h", "--until", "2050-01-01T00:00:00Z"), "not both"),
        (("lift", "ann", "--for", "1h"), "unknown option --for"),
        (("allow", "ann", "--rate", "2"), "unknown option --rate"),
        (("override", "ann"), "--rate"),
        (("override", "ann", "--rate", "0"), "0.001"),
        (("override", "ann", "--rate", "1.2345"), "at most 3 decimal places"),
        (("override", "a", "b", "c", "--prefix", "--rate", "2"), "no zone's key"),
        (("block", "ann", "--reason", "x" * 257), "256"),
        (("block", "--key-hex", "0", "--zone", "site"), "two digits"),
        (("block", "ann", "--key-hex", "00"), "either"),
    ]
    for words, said in cases_:
        done = run.command(*words, code=USAGE)
        assert said in done.said(), (words, done.said())
    done = place.run("block", "ann")
    assert done.code() == USAGE and "--config" in done.said(), done.said()
    done = place.run("lift", "ann", "--state", place.path("nowhere"))
    assert done.code() == USAGE and not os.path.exists(place.path("nowhere")), done.said()
    place.write("once.log", burst("ann", 5))
    config = place.config(zones(), [source(place.path("once.log"), follow=False)], name="once.json")
    place.good("run", "--once", "--config", config, "--state", place.path("once"), "--decisions", place.path("o"))
    done = place.run("lift", "ann", "--zone", "site", "--state", place.path("once"))
    assert done.code() == USAGE and "--once" in done.said(), done.said()
    run.stop()
    assert b'"command"' not in run.command("decode").out()


def test_the_socket_bears_anything(place):
    """Its owner's alone; nonsense is answered; a slow asker holds up neither commands for long nor the end."""
    run = Run(place).start()
    path = os.path.join(run.state, "control")
    assert stat.S_ISSOCK(os.stat(path).st_mode) and stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for request in (b"\n", b"x\n", b"[]\n", b'{"command":1}\n', b'{"command":{"command":"block"}}\n', b'{"more":1}\n',
                    b'{"command":{"command":"block","zone":"nowhere","key":[],"by":"x"}}\n', b"\0\xff\n"):
        answer = json.loads(ask(run.state, request))
        assert answer["invalid"] is True and answer["error"], (request, answer)
    assert b"at most" in ask(run.state, b"x" * 100000 + b"\n")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(path)
        silent.sendall(b'{"comm')
        run.override("block", "--zone", "site", "ann")  # waits until the silent one is given up
        silent.settimeout(30)
        assert b"error" in silent.recv(1000)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(path)
        run.stop()
    assert not os.path.exists(path)
    run.start()
    run.weir.kill()
    assert os.path.exists(path)
    run.start()  # what the crash left is replaced
    run.override("lift", "--zone", "site", "ann")
    run.stop()


def test_a_state_directory_may_have_a_long_path(place):
    """Longer than a socket's address."""
    deep = os.path.join(*["d" * 60] * 3)
    os.makedirs(place.path(deep))
    run = Run(place, state=os.path.join(deep, "state")).start()
    run.override("block", "--zone", "site", "ann")
    run.published(key=["ann"])
    run.stop()


def test_a_process_that_is_not_weir_takes_no_commands(place):
    """The directory is held, and nobody listens: said, and left with 1."""
    run = Run(place).start()
    run.weir.pause()
    os.unlink(os.path.join(run.state, "control"))
    done = run.command("block", "--zone", "site", "ann", code=FAILED)
    assert "accepts no commands" in done.said(), done.said()
    run.weir.resume()
    run.stop()


# ---- who is blocked ----

def listed(run, *words):
    """What `weir list --json` prints, by key."""
    lines = [json.loads(line) for line in run.command("list", "--json", *words).out().splitlines()]
    return {tuple(one["key"]) if "key" in one else one["key_hash"]: one for one in lines}


def test_list_says_who_is_blocked(place):
    """By limits and by operators, until lifted or over; filters; as a table and as JSON."""
    run = Run(place).start()
    now = int(time.time() * 1000)
    run.append(burst("ann", 5, start_ms=now, path="/a") + burst("max", 4, start_ms=now - 2 * HOUR_MS))
    run.override("block", "--zone", "site", "bob", "--by", "op", "--reason", "why")
    run.override("block", "--zone", "site", "eve", "--for", "1h")
    run.override("lift", "--zone", "site", "eve")
    run.override("block", "--zone", "site", "joe", "--for", "1s")
    run.published(key=["ann"])
    run.published(key=["max"])
    run.published(key=["joe"])
    until(lambda: ("joe",) not in listed(run), "joe's block is over")
    found = listed(run)
    assert set(found) == {("ann",), ("bob",)}, found
    assert found[("ann",)]["limit"]["rate"] == 3 and found[("bob",)]["by"] == "op", found
    assert set(listed(run, "--key", "ann")) == {("ann",)}
    assert not listed(run, "--zone", "pair")
    table = run.command("list").out().decode().splitlines()
    assert table[0].split() == ["ZONE", "KEY", "SINCE", "UNTIL", "WHY"], table
    assert len(table) == 3 and "3 in 1h (held 3)" in table[1], table
    assert "until it is lifted" in table[2] and "by op: why" in table[2], table
    for column, part in (("SINCE", "20"), ("UNTIL", "20"), ("WHY", "3 in 1h")):
        assert table[1][table[0].index(column):].startswith(part), table
    assert "that key is not blocked" in run.command("list", "--key", "max").said()
    assert 'did you mean "site"?' in run.command("list", "--zone", "sitte", code=USAGE).said()
    run.stop()
    assert set(listed(run)) == {("ann",), ("bob",)}


def test_list_knows_what_the_log_no_longer_has(place):
    """Decisions whose files somebody removed: operators' blocks by name, limits' by their hash, from the checkpoint."""
    run = Run(place, bus={"segment_size": "64KiB"}).start()
    now = int(time.time() * 1000)
    run.override("block", "--zone", "site", "bob")
    run.override("block", "--zone", "site", "eve")
    run.append(burst("ann", 5, start_ms=now))
    run.published(key=["ann"])
    for number in range(4):  # files are full: others are blocked, long ago
        run.append("".join(burst(f"u{number}-{i:03d}" + "x" * 40, 4, start_ms=now - 3 * HOUR_MS) for i in range(500)))
        until(lambda: len(run.decisions()) >= 3 + 500 * (number + 1), "all are blocked", running=run.weir)
    run.override("lift", "--zone", "site", "eve")
    run.published(key=["eve"], action="lift")
    run.stop()
    assert {("ann",), ("bob",)} <= set(listed(run))
    folder = os.path.join(run.state, "log", "decisions")
    files = sorted(name for name in os.listdir(folder) if name.startswith("segment") or name[0].isdigit())
    assert len(files) > 2, os.listdir(folder)
    for name in files[:-1]:
        os.remove(os.path.join(folder, name))
    found = listed(run)
    unnamed = [key for key in found if isinstance(key, str)]
    assert ("bob",) in found and ("eve",) not in found and len(unnamed) == 1, found
    named = json.loads(run.command("state", "--key", "ann", "--zone", "site").out())
    assert named["blocked_until"] == found[unnamed[0]]["until"], (named, found)
    assert "# is a hash" in run.command("list").said()
    asked = listed(run, "--key", "ann")  # the hash of a key that is asked for is known
    assert asked[("ann",)]["until"] == named["blocked_until"] and asked[("ann",)]["zone"] == "site", asked
    assert "ann" in run.command("list", "--key", "ann").out().decode().splitlines()[1]
    assert not listed(run, "--key", "nobody") and not listed(run, "--key", "eve")
    all_of_them = run.command("lift", "--all", code=FAILED)
    assert "site  bob  lifted" in all_of_them.out().decode(), all_of_them.out()
    assert "1 more are blocked whose keys this machine knows by their hash alone" in all_of_them.said(), all_of_them.said()


def test_an_address_is_found_in_any_spelling_and_lifted_everywhere(place):
    """By the network that a zone counts it in, too; lift without a zone takes all that have it, --all takes all."""
    four = [zone("net", [sliding(3, "1h")], key=[{"field": "ip", "prefix4": 24, "prefix6": 64}]),
            zone("single", [sliding(3, "1h")], key=["ip"]), zone("user", [sliding(3, "1h")], key=["user"]),
            zone("pair", [sliding(3, "1h")], key=["ip", "user"])]
    run = Run(place, zones=four).start()
    for value in ("203.0.113.9", "2001:db8::7"):
        for name in ("net", "single"):
            run.override("block", "--zone", name, value)
    run.override("block", "--zone", "user", "ann")
    run.override("block", "--zone", "pair", "2001:db8::7", "ann")
    until(lambda: len(listed(run)) == 6, "all are blocked", running=run.weir)
    for value, wanted in (("203.0.113.9", {("203.0.113.0/24",), ("203.0.113.9",)}),
                          ("203.0.113.77", {("203.0.113.0/24",)}),
                          ("2001:DB8:0:0::0007", {("2001:db8::/64",), ("2001:db8::7",)}), ("2001:db8::7|ann", {("2001:db8::7", "ann")}),
                          ("ann", {("ann",)}), ("203.0.11.9", set())):
        assert set(listed(run, "--key", value)) == wanted, (value, listed(run, "--key", value))
    said = run.command("lift", "2001:DB8:0:0::0007").out().decode().splitlines()
    assert [line.split()[:3] for line in said] == [["net", "2001:db8::/64", "lifted"], ["single", "2001:db8::7", "lifted"],
                                                   ["user", "2001:DB8:0:0::0007", "lifted"]], said
    until(lambda: set(listed(run)) == {("203.0.113.0/24",), ("203.0.113.9",), ("ann",), ("2001:db8::7", "ann")}, "lifted")
    said = run.command("lift", "--all", "--zone", "single", "--json").objects()
    assert [(one["zone"], one["key"]) for one in said] == [("single", ["203.0.113.9"])], said
    assert len(run.command("lift", "--all").out().splitlines()) == 3
    until(lambda: not listed(run), "nobody is blocked", running=run.weir)
    assert "nobody is blocked" in run.command("lift", "--all").said()
    assert "several zones' keys" in run.command("block", "203.0.113.9", code=USAGE).said()
    run.command("lift", "--all", "ann", code=USAGE)
    run.command("lift", "a", "b", "c", code=USAGE)
    run.stop()


def test_a_key_of_any_script_is_shown_as_it_is_typed(place):
    """And a letter that is not seen by its bytes; so it can be copied into a command."""
    run = Run(place).start()
    names = ("Zoë", "李雷", "Иван", "a\u202eb", "n\u200bn")
    run.append("".join(burst(name, 4, start_ms=int(time.time() * 1000)) for name in names))
    until(lambda: len(listed(run)) == len(names), "all are blocked", running=run.weir)
    rows = run.command("list").out().decode().splitlines()
    assert {row.split()[1] for row in rows[1:]} == {"Zoë", "李雷", "Иван", r"a\xe2\x80\xaeb", r"n\xe2\x80\x8bn"}, rows
    before = [row[:re.search(r"\d{4}-|SINCE", row).start()] for row in rows]
    assert len({sum(2 if unicodedata.east_asian_width(letter) == "W" else 1 for letter in row) for row in before}) == 1, rows
    for name in names[:3]:
        run.command("lift", name)
    until(lambda: len(listed(run)) == 2, "they are let in", running=run.weir)
    run.stop()


def test_a_key_with_a_zero_byte_hides_from_nobody(place):
    """Listed, archived, shown live, and lifted as any other, by its name or by its bytes."""
    run = Run(place, archiver={"enabled": True, "interval": "1s"}).start()
    now = int(time.time() * 1000)
    run.append(burst("a\0b", 5, start_ms=now) + burst("plain", 5, start_ms=now))
    run.published(key=["a\0b"])
    assert set(listed(run)) == {("a\0b",), ("plain",)}
    row = next(line for line in run.command("list").out().decode().splitlines() if "a\\x00b" in line)
    assert "3 in 1h (held 3)" in row, row

    def shown():
        done = run.place.run("top", "--once", "--json", "--zone", "site", "--state", run.state)
        if done.code() != DONE:  # nothing is archived yet
            return None
        (sample,) = done.objects()
        return {one["key"] for one in sample["top"]}, {one["key"] for one in sample["blocks"]}

    until(lambda: shown() == ({"a\0b", "plain"}, {"a\0b", "plain"}), "both are shown live", running=run.weir)
    assert b"a\\x00b" in run.command("top", "--once").out()
    run.override("lift", "--zone", "site", "--key-hex", b"a\0b".hex())
    assert run.published(action="lift")["key"] == ["a\0b"]
    run.override("block", "--zone", "site", "--key-hex", b"c\0d".hex(), "--reason", "why")
    until(lambda: ("c\0d",) in listed(run), "it is blocked", running=run.weir)
    lifted = [one.get("key", one.get("key_hex")) for one in run.command("lift", "--all", "--json").objects()]
    assert sorted(lifted, key=str) == [b"c\0d".hex(), ["plain"]], lifted
    until(lambda: not listed(run), "nobody is blocked", running=run.weir)
    run.stop()
    assert "skipped" not in run.weir.said(), run.weir.said()


def test_a_configuration_that_nobody_names(place):
    """Every command of one machine works without --config: WEIR_CONFIG names it, and its state is where it always is."""
    if os.path.exists("/etc/weir/weir.json"):
        raise cases.Skipped("this machine has a configuration of its own")
    run = Run(place)
    named = {**os.environ, "WEIR_CONFIG": run.config, "XDG_STATE_HOME": place.path("xdg"), "HOME": place.directory}
    shown = place.good("validate", env=named).out().decode()
    assert f"{run.config} is valid" in shown, shown
    once = place.good("run", "--once", env=named)
    assert "weir: done" in once.said(), once.said()
    # What is named goes first; a log on the command line asks for no configuration.
    other = place.write("other.json", "{")
    assert place.run("validate", "--config", other, env=named).code() == USAGE
    assert place.run("run", "--once", "--key", "user", "--limit", "1/1m", run.log, env=named).code() == 0
    # Where there is none, each says what to do.
    none = {name: value for name, value in os.environ.items() if name != "WEIR_CONFIG"}
    for words in (["validate"], ["run"], ["list"], ["block", "ann"], ["state"], ["decode"], ["forget", "ann"],
                  ["policy", "history"], ["policy", "apply"], ["subscribe", "--to", "file:x"],
                  ["recover", "--accept-gap", "--partition", "1"]):
        done = place.run(*words, env=none)
        assert done.code() == USAGE and "set WEIR_CONFIG, or write /etc/weir/weir.json" in done.said(), (words, done.said())
    # A name that leads nowhere is an error, and never the next best.
    lost = place.run("list", env={**none, "WEIR_CONFIG": place.path("lost.json")})
    assert lost.code() != 0 and "lost.json" in lost.said(), lost.said()


if __name__ == "__main__":
    cases.main(globals())
