#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir policy on a real cluster: numbered once, in every partition before the policy topic, mended after a crash."""

import json
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cluster_check import caught_up
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

USAGE = 2
PARTITIONS = 4


def zones(rate=3):
    """Two keys."""
    return [zone("site", [sliding(rate, "1h")], id=1), zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2)]


def test_policies_are_numbered_applied_and_shown(place):
    """The first, the same again, a next one, one that cannot follow; beside daemons that work by them."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        refused = place.run("policy", "show", "--config", place.write("none.json", json.dumps(roles.sections())))
        assert refused.code() == USAGE and "weir policy apply" in refused.said(), refused.said()
        assert f"policy 1 is in force in {PARTITIONS} partitions: site new, pair new" in roles.apply().out().decode()
        assert "in force already" in roles.apply().out().decode()
        log = place.write("log", burst("ann", 5))
        roles.limiter().until_ready()
        collector = roles.collector([source(log)])
        caught_up(one, roles, 1)
        said = roles.apply(zones(2) + [zone("new", [sliding(1, "1m")], id=7)]).out().decode()
        assert "policy 2" in said and "site changed (limits[0].rate 3 -> 2), new new" in said, said
        other = place.write("other.json", json.dumps(roles.sections(zones=[zone("site", [sliding(3, "1h")],
                                                                                key=("path",), id=1)])))
        wrong = place.run("policy", "apply", "--config", other)
        assert wrong.code() == USAGE and "key" in wrong.said() and "--state" not in wrong.said(), wrong.said()
        collector.until_says("policy 2 is in force")
        place.append("log", burst("joe", 5) + burst("eve", 5))
        caught_up(one, roles, 5)
        history = roles.command("policy", "history", "--json").objects()
        assert [(text["version"], text["zones"], text["in_log"]) for text in history] == [(1, 2, True), (2, 3, True)]
        shown = json.loads(roles.command("policy", "show", "--version", "1", "--json").out())
        assert shown["version"] == 1 and [z["name"] for z in shown["zones"]] == ["site", "pair"]
        assert "site" in roles.command("policy", "show").out().decode()
        frames = roles.command("decode", "--partition", "0").objects()
        assert [frame["policy"] for frame in frames if frame["kind"] == "policy"] == [1, 2]
        assert [frame["policy"] for frame in roles.command("decode", "--topic", "policy").objects()] == [1, 2]
        assert [m.key for m in one.kafka.consume(one.topic("policy"))] == [b"1", b"2"]


def test_a_change_can_be_looked_at_before_and_taken_back(place):
    """--dry-run and diff change nothing; a rollback is a new version with the zones of an old one; who and when is kept."""
    def history():
        return [(line["version"], line["changes"], line.get("by")) for line in roles.command("policy", "history", "--json").objects()]

    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        first = place.write("first.json", json.dumps(roles.sections(zones=zones())))
        tried = place.good("policy", "apply", "--dry-run", "--config", first).out().decode()
        assert f"policy 1 would be in force in {PARTITIONS} partitions: site new, pair new" in tried, tried
        assert not one.mariadb_server.query(f"SHOW DATABASES LIKE '{one.database}'")
        roles.apply()
        sections = roles.sections(zones=[{key: value for key, value in each.items() if key != "id"} for each in reversed(zones(7))])
        second = place.write("second.json", json.dumps(sections))
        change = "site changed (limits[0].rate 3 -> 7)"
        assert change in place.good("policy", "diff", "--config", second).out().decode()
        tried = place.good("policy", "apply", "--dry-run", "--json", "--config", second).objects()
        assert tried == [{"version": 2, "changed": True, "changes": change, "dry_run": True}], tried
        assert f"policy 1 is in force; this would change it: {change}" in place.good("validate", second).out().decode()
        assert len(history()) == 1
        slip = json.dumps(roles.sections(zones=[{**zones(30)[0], "match": {"method": "PSOT"}}]))
        said = place.good("policy", "apply", "--dry-run", "--config", place.write("slip.json", slip)).said()
        assert 'zone "site", limits[0]: lets pass 30 where it let pass 3:' in said and 'did you mean "POST"?' in said, said
        applied = place.good("policy", "apply", "--by", "ann", "--config", second).said()
        assert "lets pass" not in applied, applied
        shown = json.loads(roles.command("policy", "show", "--json").out())
        assert [(each["id"], each["name"]) for each in shown["zones"]] == [(2, "pair"), (1, "site")], shown
        back = place.good("policy", "rollback", "--dry-run", "--config", second).out().decode()
        assert "policy 3 would be in force" in back and "limits[0].rate 7 -> 3" in back, back
        place.good("policy", "rollback", "--by", "joe", "--config", second)
        assert history()[1:] == [(2, change, "ann"), (3, "site changed (limits[0].rate 7 -> 3)", "joe")], history()
        done = place.run("policy", "rollback", "--config", second)
        assert done.code() == USAGE and "policy 3 has put the zones of policy 1 in force again: the rollback" in done.said(), done.said()
        assert len(history()) == 3
        assert "in force already" in place.good("policy", "rollback", "--version", "1", "--config", second).out().decode()
        place.good("policy", "rollback", "--version", "2", "--config", second)
        assert history()[3][1] == change, history()
        assert "is in force already" in place.good("policy", "apply", "--config", second).out().decode()
        done = place.run("policy", "rollback", "--version", "9", "--config", second)
        assert done.code() == USAGE and "there is no policy 9; the newest is 4" in done.said(), done.said()
        for number in range(PARTITIONS):
            versions = [frame["policy"] for frame in roles.command("decode", "--partition", str(number)).objects()]
            assert versions == [1, 2, 3, 4], versions


def test_a_rollback_that_is_typed_again_brings_nothing_back(place):
    """Its answer was lost, and somebody applied a policy meanwhile, or the log did not take it."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        roles.apply(zones(7))
        config = place.write("asked.json", json.dumps(roles.sections()))
        place.good("policy", "rollback", "--config", config)
        roles.apply(zones(4))
        for words in ([], ["--dry-run"]):
            done = place.run("policy", "rollback", "--config", config, *words)
            assert done.code() == USAGE and "again, and others came after it" in done.said(), done.said()
        place.good("policy", "rollback", "--version", "3", "--config", config)
        newest = roles.command("policy", "history", "--json").objects()[-1]
        assert (newest["version"], newest["changes"]) == (5, "site changed (limits[0].rate 4 -> 3)"), newest
        # What came long ago is another matter.
        roles.apply(zones(9))
        one.mariadb.query("UPDATE note SET value = '{\"at\": 1, \"by\": \"x\"}' WHERE name LIKE 'policy-author:%'")
        place.good("policy", "rollback", "--config", config)
        newest = roles.command("policy", "history", "--json").objects()[-1]
        assert (newest["version"], newest["changes"]) == (7, "site changed (limits[0].rate 9 -> 3)"), newest


def test_a_policy_whose_tests_fail_is_not_put_in_force(place):
    """--require, once or more: whatever fails or cannot be run leaves what is in force, on a dry run, too."""
    given = {"at": "0s", "repeat": 4, "every": "1s", "fields": {"user": "ann"}}
    case = {"name": "the fourth is blocked", "given": [given], "expect": {"decisions": [{"zone": "site", "line": 4}]}}
    tests = place.write("policy.test.json", json.dumps({"config": "elsewhere.json", "cases": [case]}))
    unusable = place.write("unusable.json", json.dumps({"cases": [{**case, "expect": {}}]}))
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        def apply(rate, *words):
            path = place.write("new.json", json.dumps(roles.sections(zones=zones(rate))))
            return place.run("policy", "apply", "--config", path, *words)

        def versions():
            return [text["version"] for text in roles.command("policy", "history", "--json").objects()]

        done = apply(3, "--require", tests)
        assert done.code() == 0 and "policy 1 is in force" in done.out().decode() and "ann" not in done.said(), done.said()
        for words, said in ((["--require", tests], "it fails its tests"),
                            (["--require", tests, "--dry-run"], "it fails its tests"),
                            (["--require", unusable], "some of its tests cannot be run"),
                            (["--require", tests, "--require", place.path("none.json")], "cannot be run")):
            done = apply(2, *words)
            assert done.code() == USAGE and said in done.said() and not done.out(), (words, done.code(), done.said())
            assert tests not in words or "decisions[0].line: expected 4, got 3" in done.said(), done.said()
            assert versions() == [1], versions()
        assert {frame["policy"] for frame in roles.command("decode", "--partition", "0").objects()} == {1}
        done = apply(2)
        assert done.code() == 0 and versions() == [1, 2], done.said()
        done = place.run("policy", "show", "--config", place.path("new.json"), "--require", tests)
        assert done.code() == USAGE and "--require is for apply" in done.said(), done.said()
        done = place.run("policy", "apply", "--config", place.path("new.json"), "--version", "1")
        assert done.code() == USAGE and "--version is for show, diff and rollback" in done.said(), done.said()


def test_a_policy_that_a_crash_left_out_is_appended_by_the_next(place):
    """Numbered and in the store, but in no partition, or in some: the next apply puts all of them everywhere."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        roles.apply(zones(4))
        # As a crash leaves it: numbered, and the note not yet moved on.
        one.mariadb.query("UPDATE note SET value = '1' WHERE name = 'policy-appended'")
        assert [entry["in_log"] for entry in roles.command("policy", "history", "--json").objects()] == [True, False]
        roles.apply(zones(5))
        for number in range(PARTITIONS):
            versions = [frame["policy"] for frame in roles.command("decode", "--partition", str(number)).objects()]
            assert versions == [1, 2, 2, 3], versions
        assert [frame["policy"] for frame in roles.command("decode", "--topic", "policy").objects()] == [1, 2, 2, 3]
        log = place.write("log", burst("ann", 8))
        roles.limiter().until_ready()
        roles.collector([source(log)])
        check = caught_up(one, roles, 1)
        assert check.wanted == 1
        decision = json.loads(one.kafka.consume(one.topic("decisions"))[0].value)
        assert decision["limit"]["rate"] == 5, decision


def test_gateways_hold_the_blocks_of_an_enforced_zone_and_no_others(place):
    """A zone leaves shadow mode: who is over is published, though decided before. It goes back: all is lifted."""
    def site(mode):
        return [zone("site", [sliding(3, "1h")], id=1, block_for="1d", mode=mode)]

    def published(topic="decisions"):
        return [json.loads(message.value) for message in one.kafka.consume(one.topic(topic))]

    with cluster.shared() as one, Roles(place, one, site("shadow"), bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5))
        limiter = roles.limiter().until_ready()
        roles.collector([source(log)])
        said = roles.command("block", "joe", "--reason", "why").out().decode()
        assert "blocked" in said and "shadow mode: gateways are not told" in said, said
        limiter.until(lambda: len(published("decisions.shadow")) == 2, "both blocks are on the shadow topic")
        assert not published() and not roles.command("list", "--json").out()
        roles.apply(site("enforce"))
        caught_up(one, roles, 1)
        (block,) = published()
        assert (block["key"], block["action"], block["reason"]) == (["joe"], "block", "why"), block
        assert "gateways are not" not in roles.command("block", "max").out().decode()
        place.append("log", burst("ann", 1, start_ms=1700000001000))
        caught_up(one, roles, 3)
        (block,) = (decision for decision in published() if decision["key"] == ["ann"])
        assert block["at"] == 1700000001000 and block["mode"] == "enforce", block
        live = [json.loads(line)["key"] for line in roles.command("list", "--json").out().splitlines()]
        assert sorted(live) == [["joe"], ["max"]], live  # ann's ended in the log's time, long ago
        roles.apply(site("shadow"))
        caught_up(one, roles, 3 + PARTITIONS)
        lifts = [decision for decision in published() if decision["action"] == "lift"]
        assert [(lift["key"], lift["mode"]) for lift in lifts] == [(None, "enforce")] * PARTITIONS, lifts
        assert not roles.command("list", "--json").out()


def test_what_only_reads_makes_nothing(place):
    """Neither topics nor tables come of a look at a cluster that has none, or of a mistyped prefix."""
    with cluster.shared() as one:
        config = place.write("c.json", json.dumps(one.sections(bus={"partitions": PARTITIONS})))
        for words, code, said in ((("policy", "show"), USAGE, "no policy yet: run `weir policy apply --config FILE`"),
                                  (("policy", "history"), USAGE, "no policy yet: run `weir policy apply --config FILE`"),
                                  (("list",), 0, "nobody is blocked: no policy yet"),
                                  (("state",), USAGE, "no policy yet"), (("block", "ann"), USAGE, "no policy yet"),
                                  (("recover", "--partition", "0", "--accept-gap"), USAGE, "no policy yet"),
                                  (("decode", "--topic", "judged"), USAGE, f"{one.topic('judged')} does not exist yet")):
            done = place.run(*words, "--config", config)
            assert done.code() == code and said in done.said() and not done.out(), (words, done.code(), done.said())
        assert not [name for name in one.kafka.topics() if name.startswith(one.prefix)]
        assert not one.mariadb_server.query(f"SHOW DATABASES LIKE '{one.database}'")
        # A prefix that is mistyped, on a store that remembers its own, and on one of before: it has a policy, and no topics.
        with_zones = place.write("z.json", json.dumps(one.sections(bus={"partitions": PARTITIONS}, zones=zones())))
        place.good("policy", "apply", "--config", with_zones)
        sections = one.sections(bus={"partitions": PARTITIONS, "prefix": one.prefix + ".x"})
        mistyped = place.write("m.json", json.dumps(sections))
        for words in (("list",), ("block", "ann", "--zone", "site")):
            done = place.run(*words, "--config", mistyped)
            assert done.code() == USAGE and f'"bus.prefix" is "{one.prefix}"' in done.said(), (words, done.code(), done.said())
        one.mariadb.query("DELETE FROM note WHERE name = 'prefix'")
        for words, code in ((("list",), 1), (("block", "ann", "--zone", "site"), USAGE), (("decode",), USAGE)):
            done = place.run(*words, "--config", mistyped)
            assert done.code() == code and ".x." in done.said() and "does not exist yet" in done.said(), done.said()
            assert words != ("list",) or "cannot tell who is blocked" in done.said(), done.said()
        assert not [name for name in one.kafka.topics() if name.startswith(one.prefix + ".x")]
        done = place.run("list", "--config", with_zones)  # nobody has read the policy
        assert done.code() == 1 and "no limiter is running" in done.said() and "does not exist" not in done.said(), done.said()


def test_what_cannot_be_done_is_refused_in_words(place):
    """Zones, values, sections, a cluster without a policy: nothing reaches the log."""
    with cluster.shared() as one, Roles(place, one, zones(), bus={"partitions": PARTITIONS}) as roles:
        config = place.write("c.json", json.dumps(roles.sections()))
        refused = place.run("block", "ann", "--config", config)
        assert refused.code() == USAGE and "weir policy apply" in refused.said(), refused.said()
        refused = place.run("policy", "apply", "--config", config)
        assert refused.code() == USAGE and "zones: is missing" in refused.said(), refused.said()
        roles.apply()
        for words, said in ((("block", "ann", "--zone", "sit"), 'did you mean "site"?'),
                            (("lift", "a", "b", "c"), "site (user), pair (user, path)"),
                            (("recover", "--accept-gap", "--partition", "9"), "0 to 3"),
                            (("recover", "--partition", "0"), "--accept-gap"),
                            (("list", "--zone", "pairs"), 'did you mean "pair"?'),
                            (("decode", "--topic", "event"), "--topic must be one of events"),
                            (("decode", "--partition", "9"), "0 to 3"),
                            (("state", "--partition", "9"), "0 to 3")):
            refused = place.run(*words, "--config", config)
            assert refused.code() == USAGE and said in refused.said(), (words, refused.said())
        assert not [f for f in roles.command("decode").objects() if f["kind"] == "command"]
        local = place.write("local.json", json.dumps({"zones": zones(), "sources": []}))
        refused = place.run("policy", "apply", "--config", local)
        assert refused.code() == USAGE, refused.said()


if __name__ == "__main__":
    cases.main(globals())
