#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators' commands on a real cluster: judged as the oracle has them, through kills; and who is blocked by them."""

import json
import os
import random
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, cluster_check
from support.cluster_check import caught_up
from support.place import until
from support.roles import Roles
from support.traffic import burst, line, sliding, source, zone

DONE, FAILED = 0, 1
PARTITIONS = 4


def zones(rate=3):
    """Two keys, and addresses."""
    return [zone("site", [sliding(rate, "1h")], id=1), zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2),
            zone("client", [sliding(20, "1h")], key=({"field": "ip", "prefix6": 64},), id=3)]


def test_commands_are_judged_through_kills(place):
    """Random commands while logs come in and limiters are killed: decisions, verdicts and buckets as the oracle has them."""
    rng = random.Random(11)
    users = [f"u{i}" for i in range(12)]
    addresses = [f"10.0.{i}.{i}" for i in range(8)] + [f"2001:db8:{i}::1" for i in range(4)]
    networks = ["10.0.0.0/8", "10.0.0.0/22", "10.0.2.0/24", "2001:db8::/47", "2001:db8::/32"]
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS},
                                        archiver={"enabled": True},
                                        limiter={"checkpoint_interval": "300ms"}) as roles:
        roles.apply()
        log = place.write("log", "")
        limiters = [roles.limiter(), roles.limiter()]
        collector = roles.collector([source(log)])
        now = int(time.time() * 1000)
        for number in range(24):
            now += rng.randint(0, 400)
            place.append("log", "".join(line(now - rng.randint(0, 50), rng.choice(users), path="/" + rng.choice("ab"),
                                             ip=rng.choice(addresses))
                                        for _ in range(rng.randint(5, 40))))
            kind = rng.choice(["block", "lift", "allow", "override", "override"])
            words = [kind, "--zone", "site", rng.choice(users)]
            if kind == "override":
                words += ["--rate", rng.choice(["0.5", "2", "10", "1"])]
                if rng.random() < 0.4:
                    words = [kind, "--zone", "site", "u" + rng.choice(["", "1"]), "--prefix", *words[4:]]
            elif number % 2:
                words = [kind, "--zone", "client", rng.choice(networks)]
            if kind != "lift" and rng.random() < 0.6:
                words += ["--for", rng.choice(["100ms", "1s", "1h"])]
            roles.override(*words, "--by", f"op{number}")
            if number % 6 == 3:
                victim = rng.choice(limiters)
                victim.kill()
                victim.start()
        collector.until(lambda: collector.value("weir_source_lag_bytes") == 0, "has read its log")
        assert collector.stop() == DONE
        caught_up(one, roles)
        until(lambda: cluster_check.Check(one).missing_judged() == 0, "every frame is judged", running=limiters[0].run)
        decisions = [json.loads(message.value) for message in one.kafka.consume(one.topic("decisions"))]
        assert sum("by" in decision for decision in decisions) > 5
        assert {decision["limit"]["rate"] for decision in decisions if "limit" in decision} > {3}, "no rate was overridden"
        for limiter in limiters:
            assert limiter.stop() == DONE, limiter.said()[-2000:]
        check = cluster_check.Check(one)
        check.decisions()
        check.judged()
        check.state(place)
        listed = roles.command("state", "--orders").objects()
        overrides = {(text["order"], text["zone"], tuple(text["key"]), text.get("prefix", False), text["partition"])
                     for text in listed if "network" not in text}
        ranges = {(text["order"], text["key"][0], text["partition"]) for text in listed if "network" in text}
        want, want_ranges = set(), set()
        for number, partition in check.partitions.items():
            held = partition.log.overrides
            want_ranges |= {("block", key.decode(), number) for _, key in held.net_blocks}
            want_ranges |= {("allow", key.decode(), number) for _, key in held.net_allows}
            want |= {("block", "site", (key.decode(),), False, number) for _, key in held.blocks}
            want |= {("allow", "site", (key.decode(),), False, number) for _, key in held.allows}
            want |= {("override", "site", (key.decode(),), prefix, number) for _, key, prefix in held.rates}
        assert overrides == want, (overrides, want)
        assert ranges == want_ranges and ranges, (ranges, want_ranges)
        # Every partition took it, and one of them published it; whoever was killed may have published it again, as it was.
        ids = {}
        for decision in decisions:
            if decision["action"] == "block" and decision["key"][0] in networks:
                ids.setdefault(decision["by"], set()).add(decision["id"])
        assert ids and all(len(each) == 1 for each in ids.values()), ids


def test_list_says_who_is_blocked(place):
    """By limits and by operators, once lifted no more; in a cluster whose limiters are down, too."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        now = int(time.time() * 1000)
        log = place.write("log", burst("ann", 5, start_ms=now) + burst("old", 5, start_ms=now - 7200000))
        limiter = roles.limiter().until_ready()
        roles.collector([source(log)])
        roles.override("block", "--zone", "site", "bob", "--reason", "why", "--by", "op")
        roles.override("block", "--zone", "pair", "eve", "/x", "--for", "1h")
        roles.override("block", "--zone", "site", "max")
        roles.override("lift", "--zone", "site", "max")
        until(lambda: len(one.kafka.consume(one.topic("decisions"))) >= 6, "all decisions are there", 240)
        found = {(text["zone"], *text["key"]): text for text in roles.command("list", "--json").objects()}
        assert set(found) == {("site", "ann"), ("site", "bob"), ("pair", "eve", "/x")}, found
        assert found["site", "ann"]["limit"]["rate"] == 3 and found["site", "bob"]["by"] == "op"
        assert limiter.stop() == DONE
        rows = roles.command("list", "--zone", "site").out().decode().splitlines()
        assert len(rows) == 3 and "3 in 1h (held 3)" in rows[1] and "by op: why" in rows[2], rows
        roles.override("block", "--zone", "client", "10.0.0.0/8")
        roles.override("block", "--zone", "client", "2001:db8::/32", "--reason", "why")
        limiter = roles.limiter().until_ready()
        until(lambda: len(roles.command("list", "--zone", "client", "--json").objects()) == 2, "both networks are listed", 240)
        (found,) = roles.command("list", "--key", "2001:db8:5::/64", "--json").objects()
        assert found["key"] == ["2001:db8::/32"] and found["reason"] == "why", found
        said = roles.command("allow", "--zone", "client", "10.7.7.7").out().decode()
        assert "10.0.0.0/8 stays blocked" in said, said
        roles.override("lift", "--zone", "client", "2001:db8::/32")
        until(lambda: not roles.command("list", "--key", "2001:db8:5::1", "--json").objects(), "it is lifted", 240)
        assert limiter.stop() == DONE
        rows = roles.command("list", "--key", "eve|/x").out().decode().splitlines()
        assert len(rows) == 2 and "eve|/x" in rows[1], rows


def test_what_no_limiter_has_judged_is_said(place):
    """Without a limiter, or behind a log that one was killed over, nobody is told that nobody is blocked."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        config = place.write("asked.json", json.dumps(roles.sections()))

        def ask(*words, code):
            done = place.run(*words, "--config", config)
            assert done.code() == code, (words, done.said(), done.out())
            return done.said() + done.out().decode()
        limiter = roles.limiter().until_ready()
        said = ask("block", "--zone", "site", "ann", code=DONE)
        assert "limiter" not in said, said
        until(lambda: len(roles.command("list", "--json").objects()) == 1, "she is listed", 240)
        assert limiter.stop() == DONE
        assert "not judged" not in ask("list", code=DONE)
        said = ask("block", "--zone", "site", "bob", code=DONE)
        assert "no limiter is running: it takes effect once" in said, said
        said = ask("list", "--key", "bob", code=FAILED)
        assert "no limiter is running, and 1 message of the log is not judged" in said and "not blocked" not in said, said
        said = ask("lift", "--all", "--zone", "pair", code=FAILED)
        assert "who else is blocked is not known" in said and "nobody" not in said, said
        said = ask("explain", "--zone", "site", "bob", code=FAILED)
        assert "do not have it: no limiter is running" in said, said
        limiter = roles.limiter().until_ready()
        until(lambda: len(roles.command("list", "--json").objects()) == 2, "both are listed", 240)
        assert "limiter" not in ask("lift", "--all", code=DONE)
        until(lambda: not roles.command("list", "--json").objects(), "both are lifted", 240)
        assert limiter.stop() == DONE


if __name__ == "__main__":
    cases.main(globals())
