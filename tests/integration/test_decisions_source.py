#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decisions as events: zones that count the blocks of others, within `weir run`, killed at any moment.

What such a zone decides is what the oracle makes of the decisions of the zones that it counts, in their order.
"""

import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance", "oracle"))

# pylint: disable=wrong-import-position
import decisions
import model
import oracle
import policy
from support import cases, traffic
from support.place import SANITIZED, lines_of, until
from support.traffic import START_MS, burst, line, sliding, source, zone

DONE = 0
DECISIONS = {"type": "decisions"}


def again(name, rate, window, of, key=("user",), **more):
    """A zone that counts the blocks of others."""
    match = {"zone": list(of), "action": ["block"]}
    return zone(name, [sliding(rate, window)], key=key, match=match, sources=["decisions"], **more)


def expected(config, base, above):
    """By bucket, what zones decide of a log and what those above them decide of that, level by level."""
    run = oracle.Run({**config, "zones": base, "sources": config["sources"][:-1]})
    made = [verdict.decision for _, _, events in run.records for _, verdicts in events
            for verdict in verdicts if verdict.decision is not None]
    zones = {one["name"]: policy.Zone(one) for one in base + above}
    total, level = list(made), made
    once = model.Once([policy.Zone(one) for one in above])
    while level:
        level = [verdict.decision for decision in level
                 for _, verdicts in once.take(decisions.Decision(decision, zones))
                 for verdict in verdicts if verdict.decision is not None]
        total += level
    return traffic.by_bucket({**one, "key": [value.decode() for value in one["key"]]} for one in total)


def start(place, config):
    """A weir that follows."""
    return place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--shadow", place.path("shadow"))


def decided(place):
    """All decisions that were written, in enforce and in shadow mode."""
    return [one for name in ("out", "shadow") if os.path.exists(place.path(name))
            for one in lines_of(place.path(name))]


def require(place, wanted):
    """Raises AssertionError where other decisions were written."""
    found = traffic.by_bucket(decided(place))
    for bucket in sorted(set(found) | set(wanted)):
        assert found.get(bucket) == wanted.get(bucket), (bucket, found.get(bucket), wanted.get(bucket))


def test_who_is_blocked_again_and_again(place):
    """A zone of blocks, and one of the blocks of that, which no other zone is concerned by."""
    zones = [zone("login", [sliding(2, "1m")], id=1), again("often", 2, "1d", ["login"], id=2, block_for="7d"),
             again("ever", 1, "30d", ["of*"], id=3, mode="shadow")]
    text = "".join(burst("ann", 3, START_MS + hour * 3600000) for hour in range(30))
    config = place.config(zones, [source(place.write("log", text)), DECISIONS])
    wanted = expected(json.loads(open(config, encoding="utf-8").read()), zones[:1], zones[1:])
    assert {zone for zone, _ in wanted} == {"login", "often"}
    weir = start(place, config)
    until(lambda: len(decided(place)) == sum(map(len, wanted.values())), "all decisions", running=weir)
    assert weir.stop() == DONE, weir.said()
    require(place, wanted)


def once(place, config, *options):
    """What a run to the end decides, in both modes."""
    outs = [place.path("once"), place.path("once-shadow")]
    place.good("run", "--once", "--config", config, "--decisions", outs[0], "--shadow", outs[1], *options)
    return [json.loads(text) for out in outs for text in open(out, encoding="utf-8")]


def test_one_run_to_the_end_decides_what_the_followed_run_does(place):
    """Sorting changes nothing, nor does a run that is done in parts."""
    rng = random.Random(3)
    text = b"".join(traffic.crowd(rng, 4000 if SANITIZED else 20000, 60, disorder=0)).decode()
    zones = [zone("site", [sliding(5, "1s")], id=1), zone("quiet", [sliding(9, "10s")], id=2, mode="shadow")]
    above = [again("often", 3, "1m", ["site"], id=3, block_for=["10s", "1m"], forgive_after="2m"),
             again("ever", 2, "1h", ["often"], id=4), again("unseen", 2, "1m", ["quiet"], id=5)]
    log = place.write("log", text)
    config = place.config(above + zones, [DECISIONS, source(log)])
    wanted = traffic.by_bucket(once(place, config))
    levels = {"often", "unseen"} if SANITIZED else {"often", "ever", "unseen"}
    assert levels <= {name for name, _ in wanted}, wanted.keys()
    weir = start(place, config)
    until(lambda: len(decided(place)) >= sum(map(len, wanted.values())), "all decisions", running=weir)
    assert weir.stop() == DONE, weir.said()
    require(place, wanted)
    assert traffic.by_bucket(once(place, config, "--sort")) == wanted
    half = text.index("\n", len(text) // 2) + 1
    place.write("log", text[:half])
    state = ("--state", place.path("in-parts"))
    for name in ("once", "once-shadow"):
        os.unlink(place.path(name))
    once(place, config, *state)
    place.append("log", text[half:])
    assert traffic.by_bucket(once(place, config, *state)) == wanted


def test_a_decision_of_one_run_is_explained_with_those_it_counted(place):
    """By its id, which is a number among all events, and with the blocks that were counted."""
    text = "".join(burst("ann", 3, START_MS + hour * 3600000) + burst("bob", 3, START_MS + hour * 3600000 + 9)
                   for hour in range(4))
    zones = [zone("login", [sliding(2, "1m")], id=1), again("often", 2, "1d", ["login"], id=2, block_for="7d")]
    config = place.config(zones, [source(place.write("log", text)), DECISIONS])
    made = once(place, config, "--state", place.path("state"))
    assert sorted(one["key"][0] for one in made if one["zone"] == "often") == ["ann", "bob"], made
    for one in made:
        (why,) = place.run("explain", "--state", place.path("state"), "--json", one["id"]).objects()
        assert why["equal"] and why["decision"] == one, (one, why)
        blocks = [other["at"] for other in made if other["zone"] == "login" and other["key"] == one["key"]]
        assert one["zone"] == "login" or [event["at"] for event in why["events"]] == blocks[:3], why


def test_fields_within_objects_are_those_of_the_decisions_too(place):
    """Named by JSON pointers, which the decision's own line cannot have as they are."""
    text = "".join(json.dumps({"time": START_MS + number, "request": {"user": user, "from": "x"}}) + "\n"
                   for number, user in enumerate(["ann"] * 9 + ["bob"] * 9))
    key = ("/request/user", "/request/from")
    zones = [zone("login", [{"algorithm": "uniform", "interval": "2ms"}], key=key, id=1),
             again("often", 2, "1h", ["login"], key=key, id=2)]
    config = place.config(zones, [source(place.write("log", text)), DECISIONS])
    assert [one["key"] for one in once(place, config) if one["zone"] == "often"] == [["ann", "x"], ["bob", "x"]]


def killed_rounds(place, zones, above, text, partitions, seed):
    """Runs under SIGKILL until all is decided, then once more: nothing is lost and nothing counts twice."""
    rng = random.Random(seed)
    log = place.write("log", "")
    config = place.config(zones + above, [source(log), DECISIONS], bus={"partitions": partitions})
    place.write("log", text)
    wanted = expected(json.loads(open(config, encoding="utf-8").read()), zones, above)
    place.write("log", "")
    total = sum(map(len, wanted.values()))
    assert any(zone == above[0]["name"] for zone, _ in wanted), wanted
    lines = text.splitlines(keepends=True)
    for _ in range(6):
        weir = start(place, config)
        some, lines = lines[:len(lines) // 3], lines[len(lines) // 3:]
        place.append("log", "".join(some))
        time.sleep(rng.uniform(0.05, 0.6))
        weir.kill()
    place.append("log", "".join(lines))
    weir = start(place, config)
    until(lambda: len(decided(place)) >= total, f"{total} decisions", running=weir)
    assert weir.stop() == DONE, weir.said()
    weir = start(place, config)
    place.append("log", burst("last", 99, START_MS + 10 ** 9, ip="198.51.100.99"))
    until(lambda: any("last" in one["key"] or "198.51.100.99" in one["key"] for one in decided(place)), "the last one",
          running=weir)
    assert weir.stop() == DONE, weir.said()
    found = {bucket: made for bucket, made in traffic.by_bucket(decided(place)).items()
             if "last" not in bucket[1] and "198.51.100" not in bucket[1]}
    for bucket in sorted(set(found) | set(wanted)):
        assert found.get(bucket) == wanted.get(bucket), (bucket, found.get(bucket), wanted.get(bucket))


def test_kills_lose_nothing_and_double_nothing(place):
    """The decisions of one key come in order, however many partitions there are."""
    rng = random.Random(7)
    lines = traffic.crowd(rng, 4000 if SANITIZED else 20000, 150, disorder=0)
    zones = [zone("site", [sliding(5, "1s")], id=1), zone("slow", [sliding(20, "1m")], id=2),
             zone("quiet", [sliding(9, "10s")], id=5, mode="shadow")]
    above = [again("often", 3, "1m", ["site", "slow"], id=3, block_for=["10s", "1m"], forgive_after="2m"),
             again("ever", 2, "1h", ["often"], id=4), again("unseen", 2, "1m", ["quiet"], id=6)]
    killed_rounds(place, zones, above, b"".join(lines).decode(), 4, 11)


def test_a_network_with_many_blocked_hosts(place):
    """With one partition, decisions of different keys come in order, too."""
    rng = random.Random(5)
    text = "".join(line(START_MS + 5 * number, "x", ip=f"10.0.{rng.randrange(4)}.{int(40 * rng.random() ** 2)}")
                   for number in range(3000 if SANITIZED else 12000))
    zones = [zone("host", [sliding(4, "2s")], key=["ip"], id=1)]
    above = [again("net", 6, "5s", ["host"], key=[{"field": "ip", "prefix4": 24}], id=2, block_for="1s")]
    killed_rounds(place, zones, above, text, 1, 13)


def test_only_zones_that_name_them_count_decisions(place):
    zones = [zone("login", [sliding(2, "1m")], id=1), zone("all", [sliding(4, "1d")], id=2)]
    config = place.config(zones, [source(place.write("log", burst("ann", 4))), DECISIONS])
    weir = start(place, config)
    until(lambda: len(decided(place)) >= 1, "a block", running=weir)
    time.sleep(1)
    assert weir.stop() == DONE, weir.said()
    assert [one["zone"] for one in decided(place)] == ["login"], decided(place)


def test_they_hide_no_zone_that_no_other_source_can_match(place):
    zones = [zone("user", [sliding(2, "1m")], key=["session"], id=1),
             again("often", 1, "1d", ["user"], key=["session"], id=2)]
    log = {"type": "file", "path": place.write("log", ""), "format": "combined"}
    done = place.good("run", "--once", "--config", place.config(zones, [log, DECISIONS]), "--decisions", "/dev/null")
    assert 'zone "user"' in done.said() and 'zone "often"' not in done.said(), done.said()


def test_what_cannot_be_meant_is_refused(place):
    """By all who read a configuration or a policy."""
    login = zone("login", [sliding(2, "1m")], id=1)
    circles = [
        ([again("often", 1, "1d", ["often"])], '"often" counts "often"'),
        ([again("often", 1, "1d", ["*"])], '"often" counts "often"'),
        ([{**again("often", 1, "1d", []), "match": {}}], '"often" counts "often"'),
        ([again("a", 1, "1d", ["b"]), again("b", 1, "1d", ["c", "login"]), again("c", 1, "1d", ["a"])],
         '"a" counts "b" counts "c" counts "a"'),
    ]
    log = source(place.write("log", ""))
    for above, words in circles:
        zones = [login] + [{**one, "id": number} for number, one in enumerate(above, 2)]
        config = place.config(zones, [log, DECISIONS])
        for command in (("validate", config), ("run", "--once", "--config", config),
                        ("run", "--config", config, "--state", place.path("state"))):
            done = place.run(*command)
            assert done.code() == 2 and "would count its own decisions" in done.said() and words in done.said(), \
                done.said()
    good = [login, again("often", 1, "1d", ["login"], id=2),
            {**again("ever", 1, "1d", [], id=3), "match": {"zone": {"not": ["ever"]}}}]
    done = place.good("validate", place.config(good, [log, DECISIONS]))
    assert "weir's own decisions" in done.said() + done.out().decode(), done.said()
    for sources, words in (([log, {**log, "name": "decisions"}], 'the name of the source of type "decisions"'),
                           ([log, DECISIONS, DECISIONS], "there is a source of weir's decisions already"),
                           ([log, {**DECISIONS, "format": "json"}], 'unknown key "format"')):
        done = place.run("validate", place.config([login], sources))
        assert done.code() == 2 and words in done.said(), done.said()


if __name__ == "__main__":
    cases.main(globals())
