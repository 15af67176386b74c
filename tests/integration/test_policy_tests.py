#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir test`: cases that the policy satisfies pass, all others fail, and what cannot be meant is refused.

The oracle says what random policies decide of random logs: what it says passes, and each change of it fails.
"""

import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "conformance", "oracle")]

# pylint: disable=wrong-import-position
import oracle
import random_cases
from support import cases
from support.place import ROOT, SANITIZED
from support.traffic import burst, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2
EXAMPLE = os.path.join(ROOT, "deploy", "debian", "weir.test.json")
IP = "203.0.113.9"


def given(count=6, every="1s", at="0s", **fields):
    """Records of one user."""
    return {"at": at, "repeat": count, "every": every, "fields": {"user": "ann", **fields}}


def case(name, entries, **expect):
    """One case."""
    return {"name": name, "given": entries, "expect": expect}


def suite(place, *tests, name="policy.test.json", **more):
    """A file of cases."""
    return place.write(name, json.dumps({"cases": list(tests), **more}))


def report(place, config, *tests, code=None):
    """{name of a case: its object in --json}; all of them pass if no exit code is said."""
    done = place.run("test", "--config", config, "--json", suite(place, *tests))
    said = json.loads(done.out() or b"{}")
    assert done.code() == (DONE if code is None else code), (done.code(), done.said(), said)
    return {one["name"]: one for file in said["files"] for one in file["cases"]}


def failures(place, config, one):
    """[(words, why)] of a case that fails."""
    return [(failure["words"], failure["why"])
            for failure in report(place, config, one, code=FAILED)[one["name"]]["failures"]]


def site(place, *zones, sources=()):
    """A configuration; without zones, one of five requests a minute by user."""
    return place.config(list(zones) or [zone("site", [sliding(5, "1m")], block_for="10m")], list(sources))


def refused(place, config, text):
    """What is said of a file, or a case, that cannot be used."""
    done = place.run("test", "--config", config, place.write("bad.test.json", text))
    assert done.code() == USAGE, (done.code(), done.out())
    return done.out().decode()


# ---- what passes, what fails ----

def test_the_example_passes_and_each_of_its_expectations_can_fail(place):
    """The one that documents show: deploy/debian/weir.test.json."""
    done = place.good("test", EXAMPLE)
    assert done.out().decode().endswith("5 passed, 0 failed\n"), done.out()
    lines = [line for line in open(EXAMPLE, encoding="utf-8") if not line.lstrip().startswith("//")]
    example = json.loads("".join(lines))
    example["config"] = os.path.join(os.path.dirname(EXAMPLE), "weir.json")
    changed = 0
    for number, one in enumerate(example["cases"]):
        for expect in changes(one["expect"]):
            altered = copy.deepcopy(example)
            altered["cases"][number]["expect"] = expect
            done = place.run("test", "--json", place.write("altered.json", json.dumps(altered)))
            said = json.loads(done.out())["files"][0]["cases"]
            assert done.code() == FAILED and [i for i, one in enumerate(said) if not one["passed"]] == [number], \
                (expect, said[number])
            changed += 1
    assert changed > 20, changed


def changes(expect):
    """Each expectation with one thing changed, so that it is not met."""
    for i, decision in enumerate(expect.get("decisions", ())):
        for name in decision:
            other = copy.deepcopy(expect)
            other["decisions"][i][name] = {
                "zone": None, "key": None, "line": decision.get("line", 0) + 1, "for": "1ms",
                "mode": {"enforce": "shadow", "shadow": "enforce"}.get(decision.get("mode")),
                "counted": [1], "says": "nobody says this", "at": abs(decision.get("at", 0) - 1),
                "action": {"block": "lift", "lift": "block"}.get(decision.get("action")),
                "until": decision.get("until", 0) + 1, "count": decision.get("count", 0) + 1}[name]
            if other["decisions"][i][name] is not None:
                yield other
        yield {**expect, "decisions": expect["decisions"][:i] + expect["decisions"][i + 1:]}
        yield {**expect, "decisions": expect["decisions"][:i + 1] + expect["decisions"][i:]}
        if i > 0 and decision != expect["decisions"][i - 1]:
            yield {**expect, "decisions": expect["decisions"][:i - 1] + [decision, expect["decisions"][i - 1]] + expect["decisions"][i + 1:]}
    for i, count in enumerate(expect.get("counts", ())):
        for name in ("passed", "blocked", "decisions"):
            if name in count:
                other = copy.deepcopy(expect)
                other["counts"][i][name] += 1
                yield other
    for name in ("malformed", "skipped"):
        if name in expect:
            yield {**expect, name: expect[name] + 1}


def test_lines_that_a_format_skips_are_expected(place):
    """A misspelt line gives no record, so it would pass as a line that blocks nobody."""
    pattern = {"type": "pattern", "pattern": r"^(?<time>\S+Z) (?<user>\w+)$", "unmatched": "skip"}
    config = site(place, sources=[{**source(place.path("x.log")), "format": pattern}])
    lines = ["2026-01-01T00:00:00Z ann"] * 5 + ["2026-01-01T00:00:00Z-ann", "", "2026-01-01T00:00:00Z ann"]
    report(place, config, case("said", lines, skipped=1, decisions=[{"line": 7}]), case("none", lines[:5], skipped=0))
    [(words, why)] = failures(place, config, case("unsaid", lines, decisions=[{"line": 7}]))
    assert "line 6 is malformed, and its format skips such lines" in words and "expected 0 skipped lines, got 1" in words, words
    assert why == "2026-01-01T00:00:00Z-ann\n", why
    [(words, _)] = failures(place, config, case("few", lines, skipped=2))
    assert "expected 2 skipped lines, got 1" in words, words
    place.write("blank.log", "\n\r\n")
    for name in ("empty.log", "blank.log"):
        place.write("empty.log", "")
        done = report(place, config, case("empty", [{"path": place.path(name)}], decisions=[]), code=USAGE)
        assert "has no line, so the case gives nothing" in json.dumps(done), done


def test_decisions_are_in_order(place):
    """As limiter/tests.md has it."""
    entries, first, second = [given(6), given(6, at="1h", user="bob")], {"zone": "site", "key": "ann"}, {"zone": "site", "key": "bob"}
    report(place, site(place), case("as made", entries, decisions=[first, second]))
    [(words, _)] = failures(place, site(place), case("swapped", entries, decisions=[second, first]))
    assert "decisions[1]: was decided, but before one that is expected before it" in words, words


def test_a_failure_says_what_came_and_why(place):
    """Expected and got, the lines that counted, and what was there instead."""
    config = site(place)
    one = case("late", [given(7)], decisions=[{"zone": "site", "key": "ann", "line": 5, "for": "1m"}])
    (words, why), (more, whole) = failures(place, config, one)
    assert words.endswith("cases[0].expect.decisions[0].line: expected 5, got 6") and why == "", words
    assert more.endswith("decisions[0].for: expected 1m, got 10m"), more
    assert "Blocked ann in zone site" in whole and "because of 5 events in 1m" in whole, whole
    assert [f"line:{n}" in whole for n in range(1, 8)] == [True] * 6 + [False], whole
    [(words, why)] = failures(place, config, case("none", [given(5)], decisions=[{"zone": "site", "line": 5}]))
    assert "expected a block in zone site at line 5, but none was decided" in words, words
    assert "At line 5 the event passed; the limit of 5 in 1m holds 5." in why and '"user":"ann"' in why, why
    [(words, why)] = failures(place, config, case("far", [given(5)], decisions=[{"zone": "site", "line": 9}]))
    assert "has only 5 lines" in why, why
    [(words, why)] = failures(place, config, case("other", [given(6)], decisions=[]))
    assert "expected no decision, but this was decided" in words and "over 5 in 1m, at line 6" in words, words
    assert "line:6" in why, why
    [(words, _)] = failures(place, config, case("count", [given(6)], counts=[{"zone": "site", "blocked": 0}]))
    assert words.endswith("expected 0, got 1 (passed 5, blocked 1, decisions 1)"), words


def test_a_case_begins_with_nothing(place):
    """What one case counts is not there in the next, and the order of cases says nothing."""
    fine = [case(str(n), [given(5)], counts=[{"zone": "site", "passed": 5, "blocked": 0}]) for n in range(3)]
    report(place, site(place), *fine, case("over", [given(6)], decisions=[{"line": 6}]), fine[0] | {"name": "last"})


def test_times_are_what_lines_say(place):
    """Since the start, in Unix ms, as ISO 8601; and of two entries each in its own time, in the order given."""
    config = site(place)
    start = 1767225600000
    for at, ms in (("90s", start + 90000), (1700000000000, 1700000000000), ("2026-03-01T10:00:00+01:00", 1772355600000)):
        report(place, config, case("times", [given(6, "0ms", at)],
                                   decisions=[{"at": ms, "until": ms + 600000, "count": 5, "counted": [1, 2, 3, 4, 5, 6]}]))
    report(place, config, {"start": "2030-01-01", **case("own", [given(6, "0ms")], decisions=[{"at": 1893456000000}])})
    # five in the first minute, then a late one, which is of that minute
    report(place, config, case("late", [given(3), given(2, at="100s"), given(3, at="50s")],
                               decisions=[{"line": 6, "at": "50s", "counted": [1, 2, 3, 4, 5, 6]}]))


def test_lines_of_formats_sources_and_files(place):
    """Raw lines by their source's format or one of their own; a file with a header; what a zone takes of which source."""
    text = place.write("log.csv", "time,user\n" + "".join(f"{1700000000 + n},ann\n" for n in range(6)))
    config = site(place, zone("site", [sliding(5, "1m")], sources=["web"]), zone("all", [sliding(5, "1m")]),
                  sources=[source("/nowhere/a.log", name="web"), source("/nowhere/b.log", name="app")])
    line = burst("ann", 1).strip()
    numbered = '{"time": {time_ms}, "user": "u{n}", "x": "{time} {time_s} {time:%H:%M} {other} {"}'
    report(place, config,
           case("named", [{"source": "web", "lines": [line] * 6}], decisions=[{"zone": "site"}, {"zone": "all"}]),
           case("by place", [{"source": 1, "lines": [line] * 6}], decisions=[{"zone": "all"}]),
           case("format", [{"format": {"type": "delimited", "separator": ","}, "path": os.path.basename(text)}],
                decisions=[{"zone": "all", "line": 7}]),
           case("template", [{"source": "web", "at": "0s", "repeat": 9, "every": "1s", "lines": numbered}],
                counts=[{"zone": "site", "passed": 9}, {"zone": "site", "key": "u9", "passed": 1}]),
           case("several", [{"source": "app", "lines": burst("ann", 5)}, {"source": "web", "lines": line}],
                counts=[{"zone": "all", "key": "ann", "passed": 5, "blocked": 1}, {"zone": "site", "passed": 1}]))
    said = refused(place, config, json.dumps({"cases": [case("x", [line], decisions=[])]}))
    assert "several sources: say which by \"source\"" in said, said
    report(place, site(place, sources=[source("/nowhere/a.log")]), case("only", [line] * 6, decisions=[{"line": 6}]))


def test_a_malformed_line_is_an_error_unless_it_is_expected(place):
    """With its number, the reason and what would help."""
    config = site(place, sources=[source("/nowhere/a.log")])
    one = case("bad", ["gibberish", burst("ann", 1).strip()], decisions=[])
    [(words, why)] = failures(place, config, one)
    assert "given[0]: line 1 is malformed: not json" in words and why == "gibberish\n", (words, why)
    report(place, config, case("good", one["given"], malformed=1, counts=[{"zone": "site", "passed": 1}]))
    [(words, _)] = failures(place, config, case("none", one["given"][1:], malformed=1))
    assert "expected 1 malformed lines, got 0" in words, words


def test_operators_commands_lie_between_lines(place):
    """block, lift, allow and override, as the log has them; what they publish are decisions, too."""
    block = {"command": "block", "at": "10s", "zone": "site", "key": "ann", "for": "1h", "reason": "scraping"}
    config = site(place)
    report(place, config,
           case("block", [given(1), block, given(3, at="20s")],
                decisions=[{"action": "block", "line": 1, "at": "10s", "for": "1h"}],
                counts=[{"zone": "site", "passed": 1, "blocked": 3, "decisions": 1}]),
           case("lift", [given(6), {"command": "lift", "at": "10s", "zone": "site", "key": "ann"}, given(6, at="11s")],
                decisions=[{"line": 6}, {"action": "lift", "line": 6, "at": "10s"}, {"line": 12, "counted": list(range(7, 13))}]),
           case("allow", [{**block, "command": "allow", "at": "0s"}, given(50, "1ms")], decisions=[]),
           case("half", [{**block, "command": "override", "at": "0s", "rate": "0.4"}, given(3, at="1s")],
                decisions=[{"line": 3, "count": 2}]))
    net = {**block, "at": "0s", "key": "203.0.113.0/24"}
    report(place, site(place, zone("site", [sliding(5, "1m")], key=("ip",))),
           case("network", [net, {"at": "1s", "repeat": 20, "every": "1s", "fields": {"ip": "203.0.113.{n}"}},
                            {"command": "lift", "at": "30s", "zone": "site", "key": net["key"]}, {"at": "31s", "fields": {"ip": IP}}],
                decisions=[{"zone": "site", "key": "203.0.113.0/24", "line": 0}, {"action": "lift", "line": 20}],
                counts=[{"zone": "site", "passed": 1, "blocked": 20}]))
    config = site(place)
    [(words, _)] = failures(place, config, case("why", [block], decisions=[{"says": "scraping"}]))
    assert "an operator's command decided it" in words, words


def test_queues_and_zones_that_count_decisions(place):
    """A done record frees a place, and a decision is an event of the zones above."""
    queue = zone("jobs", [{"algorithm": "queue", "length": 2, "hold": "1h", "done": {"path": ["/done"]}}])
    above = zone("often", [sliding(1, "1d")], match={"action": ["block"], "zone": ["site"]}, sources=["decisions"],
                 block_for="7d")
    report(place, place.config([queue], []),
           case("done", [given(2, path="/new"), given(1, at="5s", path="/done"), given(2, at="6s", path="/new")],
                decisions=[{"zone": "jobs", "line": 5}], counts=[{"zone": "jobs", "passed": 3, "blocked": 1}]))
    report(place, place.config([zone("site", [sliding(5, "1m")]), above], [{"type": "decisions"}]),
           case("again", [given(6), given(6, at="1h")],
                decisions=[{"zone": "site", "line": 6}, {"zone": "site", "line": 12},
                           {"zone": "often", "key": "ann", "line": 12, "for": "7d", "counted": [6, 12]}]))


# ---- the oracle ----

def wanted_of(config):
    """What the oracle makes of a configuration's only file: a case's "expect", and how many decisions there are."""
    run = oracle.Run(config)
    order = [zone["name"] for zone in config["zones"]]
    # What one record decides is in the order of the zones, whatever events it makes.
    made = [decision for _, _, events in run.records for decision in sorted(
        (verdict.decision for _, verdicts in events for verdict in verdicts if verdict.decision is not None),
        key=lambda decision: order.index(decision["zone"]))]
    decisions = []
    for decision in made:
        one = {name: decision[name] for name in ("zone", "action", "at", "until", "mode")}
        if decision["action"] == "block":
            one["count"] = decision["count"]
        values = [value.decode("ascii", "replace") for value in decision["key"]]
        # The others are told by zone, time and count: what looks like an address and is none is refused as a key.
        if values and all(re.fullmatch("[a-z][a-z0-9]*|(1?[0-9][0-9]?[.]){3}1?[0-9][0-9]?", value) for value in values):
            one["key"] = values
        decisions.append(one)
    words = [(verdict.zone.name, verdict.word) for _, _, events in run.records for _, verdicts in events
             for verdict in verdicts]
    counts = [{"zone": zone["name"], "passed": words.count((zone["name"], "pass")),
               "blocked": words.count((zone["name"], "block"))} for zone in config["zones"]]
    return {"decisions": decisions, "counts": counts, "malformed": sum(run.tally.malformed.values())}


def random_case(place, number):
    """A random policy over one random log: (configuration, the case's "given", its "expect"); None: no decision."""
    drawn = random_cases.case(11, number, lines=random.Random(number).randint(20, 200))
    if number % 5 in (1, 3):
        drawn = random_cases.with_queues(drawn, 11, number)
    if number % 5 in (3, 4):
        drawn = random_cases.with_decisions(drawn, 11, number)
    lines = max(drawn.files.values(), key=len)
    place_of = next(i for i, one in enumerate(drawn.config["sources"]) if "path" in one)
    spec = {**drawn.config["sources"][place_of], "path": place.path(f"log-{number}")}
    kept = [one for one in drawn.config["sources"] if "path" not in one]
    place.write(f"log-{number}", b"".join(lines))
    config = {**drawn.config, "sources": [spec, *kept]}
    return config, [{"path": f"log-{number}"}], wanted_of(config)


def test_what_the_oracle_says_passes_and_each_change_of_it_fails(place):
    """Random policies and logs; of each case every single change of what is expected, up to a few."""
    met = altered = 0
    for number in range(20 if SANITIZED else 60):
        config, entries, expect = random_case(place, number)
        if len(expect["decisions"]) > 900:
            continue
        path = place.write("config.json", json.dumps(config))
        rng = random.Random(number)
        others = list(changes(expect))
        others = rng.sample(others, min(len(others), 12))
        tests = [case("as the oracle says", entries, **expect)]
        tests += [case(f"changed {n}", entries, **other) for n, other in enumerate(others)]
        done = place.run("test", "--config", path, "--json", suite(place, *tests))
        said = json.loads(done.out() or b"{}")
        assert done.code() in (DONE, FAILED), (number, done.code(), done.said(), said)
        verdicts = [one["passed"] for one in said["files"][0]["cases"]]
        assert verdicts[0], (number, config, said["files"][0]["cases"][0])
        assert not any(verdicts[1:]), (number, others[verdicts[1:].index(True)], expect)
        met += len(expect["decisions"]) > 0
        altered += len(others)
    assert met > (5 if SANITIZED else 25) and altered > 5 * met, (met, altered)


# ---- what cannot be meant ----

def test_what_cannot_be_meant_is_refused(place):
    """With the file, its line, the place and what would be accepted."""
    config = site(place)
    good = case("good", [given(1)], decisions=[])
    for one, words in (
            ({**good, "expect": {}}, "expects nothing, so the case cannot fail"),
            ({"name": "x", "given": [given(1)]}, "expect: is missing; say what the policy must do"),
            ({**good, "given": [{"line": "x"}]}, "did you mean \"lines\"?"),
            ({**good, "given": [{"at": "0s"}]}, "gives nothing: it must have \"lines\", \"path\""),
            ({**good, "given": [{"fields": {"user": "x"}}]}, "must have \"at\": when the record is of"),
            ({**good, "given": [{"at": "0s", "repeat": 2, "fields": {"user": "x"}}]}, "must have \"every\""),
            ({**good, "given": [{"at": "soon", "fields": {"user": "x"}}]}, "given[0].at: must be a time"),
            ({**good, "given": [{"at": -1, "fields": {"user": "x"}}]}, "must be from 1970 to 9999"),
            ({**good, "given": [given(1, usr="x")]}, "no zone asks for this field (did you mean \"user\"?)"),
            ({**good, "given": [given(1, user=None)]}, "must be a string, a whole number, true or false"),
            ({**good, "given": [{"at": "0s", "repeat": 1000000, "every": "0ms", "fields": {"user": "x"}}] * 2},
             "above 1000000"),
            ({**good, "given": [{"path": "none.log", "format": "combined"}]}, "none.log"),
            ({**good, "given": ["x"]}, "say the lines' \"format\""),
            ({**good, "given": [{"lines": "{time}", "repeat": 2, "format": "json"}]}, "a place for the time"),
            ({**good, "given": [{"lines": "x", "format": "combind"}]}, "combined"),
            ({**good, "given": [{"command": "lift", "at": "0s", "zone": "sit", "key": "x"}]}, "did you mean \"site\"?"),
            ({**good, "given": [{"command": "lift", "at": "0s", "zone": "site", "key": "x", "for": "1h"}]}, "lifts"),
            ({**good, "given": [{"command": "override", "at": "0s", "zone": "site", "key": "x"}]}, "a \"rate\""),
            ({**good, "given": [{"command": "override", "at": "0s", "zone": "site", "key": "x", "rate": "half"}]},
             "0.001"),
            ({**good, "given": [{"command": "ban", "at": "0s", "zone": "site", "key": "x"}]}, "block"),
            (case("x", [given(1)], decisions=[{"zone": "sight"}]), "decisions[0].zone: there is no zone \"sight\""),
            (case("x", [given(1)], decisions=[{"zone": "site", "key": ["a", "b"]}]), "takes 1 value (user), not 2"),
            (case("x", [given(1)], decisions=[{"key": "a"}]), "must have the \"zone\" that this is a key of"),
            (case("x", [given(1)], decisions=[{"lin": 3}]), "did you mean \"line\"?"),
            (case("x", [given(1)], decisions=[{"action": "blocks"}]), "lift"),
            (case("x", [given(1)], decisions=[{"counted": ["1"]}]), "decisions[0].counted[0]"),
            (case("x", [given(1)], decisions=[{"says": ""}]), "decisions[0].says: must have a byte"),
            (case("x", [given(1)], counts=[{"zone": "site"}]), "counts nothing"),
            (case("x", [given(1)], counts=[{"passed": 1}]), "counts[0].zone: is missing"),
            (case("", [given(1)], decisions=[]), "must have from 1 to 256 bytes")):
        said = refused(place, config, json.dumps({"cases": [one]}, indent=1))
        assert words in said and "bad.test.json:" in said, (one, said)
    assert "is the name of cases[0], too" in refused(place, config, json.dumps({"cases": [good, good]}))
    assert "cases: is missing; list the cases" in refused(place, config, "{}")
    for text in ("", "[]", "{", '{"cases": []}', '{"cases": [1]}', '{"cases": [{"name": 1}]}'):
        refused(place, config, text)
    # a file with comments, its own configuration beside it, and one that names none
    place.write("own.test.json", '// why\n{"config": "weir.json", "cases": [%s,]}' % json.dumps(good))
    place.good("test", place.path("own.test.json"))
    assert "config: is missing" in place.run("test", suite(place, good)).out().decode()


def test_a_bad_file_beside_good_ones_ends_with_2_and_hides_nothing(place):
    """The others run, and a failure beside it is shown, too."""
    config = site(place)
    good = suite(place, case("good", [given(1)], decisions=[]), name="good.json")
    fails = suite(place, case("fails", [given(6)], decisions=[]), name="fails.json")
    done = place.run("test", "--config", config, good, place.path("missing.json"), fails)
    said = done.out().decode()
    assert done.code() == USAGE and "1 passed, 1 failed, 1 could not be run" in said and "missing.json" in said, said
    assert place.run("test", "--config", config, good, fails).code() == FAILED
    for words in ([], ["--config", place.path("no"), good], [good, "--tap", "--json"], [good, "--tpa"]):
        assert place.run("test", *words).code() == USAGE, words
    assert place.run("test", "--config", config, good, "--junit", place.path("no/such/folder")).code() == FAILED


def blocks(page, kind):
    """The code blocks of a page."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return re.findall(rf"^```{kind}\n(.*?)^```$", file.read(), re.S | re.M)


def test_the_page_shows_what_passes_and_names_every_member(place):
    """limiter/tests.md: its example against the policy of README.md; and what each object may have."""
    example, command = blocks("limiter/tests.md", "json")
    place.write("weir.json", blocks("README.md", "json")[0])
    done = place.good("test", place.write("policy.test.json", example))
    assert "2 passed, 0 failed" in done.out().decode()
    assert json.loads(command)["command"] == "allow"
    with open(os.path.join(ROOT, "limiter/tests.md"), encoding="utf-8") as file:
        documented = set(re.findall("`([a-z$]+)`", file.read()))
    good = case("x", [given(1)], decisions=[])
    for wrong in ({"x": 1}, {"cases": [{**good, "x": 1}]}, {"cases": [{**good, "given": [{"x": 1}]}]},
                  *({"cases": [{**good, "given": [{kind: "block", "x": 1}]}]}
                    for kind in ("lines", "path", "fields", "command")),
                  {"cases": [case("x", ["y"], x=1)]}, {"cases": [case("x", ["y"], decisions=[{"x": 1}])]},
                  {"cases": [case("x", ["y"], counts=[{"x": 1}])]}):
        said = refused(place, place.path("weir.json"), json.dumps(wrong))
        known = set(re.search(r"\(known: (.*)\)", said)[1].split(", "))
        assert len(known) >= 3 and known <= documented, (wrong, known - documented)


# ---- other readers ----

def strange(place):
    """A configuration, and files whose names and failures have what other forms must escape."""
    config = site(place)
    suite(place, case("good", [given(1)], decisions=[]), case("a # b \\ \"<&>'\" \u00e9 \u0001", [given(6)], decisions=[]),
          case("cannot", ["x"], decisions=[]), name="strange.json")
    suite(place, case("fine", [given(1)], decisions=[]), name="fine.json")
    return config


def test_prove_reads_tap(place):
    """perl's own harness agrees about what passed."""
    config = strange(place)
    command = f"{place.weir} test --tap --config {config}"
    if shutil.which("prove") is None:
        raise cases.Skipped("perl's prove is not here")
    done = subprocess.run(["prove", "--exec", command, place.path("fine.json")], capture_output=True, check=False, text=True)
    assert done.returncode == 0 and "All tests successful" in done.stdout, done
    done = subprocess.run(["prove", "--exec", command, place.path("strange.json")], capture_output=True, check=False,
                          text=True)
    assert done.returncode != 0 and "Failed tests:  2-3" in done.stdout and "Failed 2/3" in done.stdout, done


def test_a_junit_file_that_is_read_is_refused_and_left_alone(place):
    config = site(place)
    good = suite(place, case("good", [given(1)], decisions=[]), name="good.json")
    for path in (config, good):
        with open(path, "rb") as file:
            before = file.read()
        done = place.run("test", "--config", config, good, "--junit", path)
        assert done.code() == USAGE and "--junit" in done.said(), done.said()
        with open(path, "rb") as file:
            assert file.read() == before


def test_junit_is_read_as_xml(place):
    """By a reader of XML: each case once, failures apart from errors, sums that agree."""
    config = strange(place)
    out = place.path("report.xml")
    done = place.run("test", "--config", config, "--junit", out, place.path("strange.json"), place.path("fine.json"),
                     place.path("none.json"))
    assert done.code() == USAGE, done.code()
    root = xml.etree.ElementTree.parse(out).getroot()
    assert root.tag == "testsuites" and (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "2")
    suites = root.findall("testsuite")
    assert [[one.get(name) for name in ("tests", "failures", "errors")] for one in suites] == \
        [["3", "1", "1"], ["1", "0", "0"], ["1", "0", "1"]]
    found = [(one.get("name"), [child.tag for child in one]) for one in root.iter("testcase")]
    assert found == [("good", []), ("a # b \\ \"<&>'\" \u00e9 \ufffd", ["failure"]), ("cannot", ["error"]), ("fine", []),
                     ("the file can be used", ["error"])], found
    failure = next(root.iter("failure"))
    assert "expected no decision" in failure.get("message") and "line:6" in failure.text, failure.text
    assert all(float(one.get("time")) >= 0 for one in root.iter("testcase"))


def test_junit_ends_no_file_that_is_read(place):
    """And a report is replaced as a whole, behind a link, and keeps who may read it."""
    config = strange(place)
    tests = place.path("fine.json")
    os.symlink(tests, place.path("link.xml"))
    place.write("named.json", json.dumps({"config": config, "cases": [case("good", [given(1)], decisions=[])]}))
    for out in (tests, config, place.path("link.xml"), place.path("named.json")):
        with open(out, "rb") as file:
            before = file.read()
        done = place.run("test", "--junit", out, "--config", config, tests, place.path("named.json"))
        assert done.code() == USAGE and "would end a file that is read" in done.said(), (out, done.said())
        assert open(out, "rb").read() == before, out
    assert place.run("test", "--junit", config, place.path("named.json")).code() == USAGE
    place.write("report.xml", "before")
    os.chmod(place.path("report.xml"), 0o604)
    os.symlink(place.path("report.xml"), place.path("latest.xml"))
    place.good("test", "--junit", place.path("latest.xml"), "--config", config, tests)
    assert os.path.islink(place.path("latest.xml")) and os.stat(place.path("report.xml")).st_mode & 0o777 == 0o604
    xml.etree.ElementTree.parse(place.path("report.xml"))
    out = place.run("test", "--json", "--junit", "/dev/stderr", "--config", config, tests)
    assert out.code() == DONE and "<testsuites" in out.said(), out.said()


if __name__ == "__main__":
    cases.main(globals())
