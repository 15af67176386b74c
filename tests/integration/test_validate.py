#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir validate`: what a configuration means, what may not be meant, and what is wrong with it."""

import gzip
import json
import os
import random
import re
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "conformance", "oracle")]

# pylint: disable=wrong-import-position
from model import Bucket, judge_event
from policy import Zone
from support import cases
from support.place import ROOT, read, until
from support.traffic import burst, fixed, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2


def report(place, zones, sources=(), **sections):
    """What --json says of a good configuration."""
    config = place.config(zones, list(sources), **sections)
    return json.loads(place.good("validate", "--config", config, "--json").out())


def warnings(place, zones, sources=(), **sections):
    """{path: words} of the warnings; that there is no source is passed over."""
    said = {}
    for warning in report(place, zones, sources, **sections)["warnings"]:
        if warning["path"] != "sources":
            said[warning["path"]] = "; ".join([*filter(None, [said.get(warning["path"])]), warning["words"]])
    return said


def words(place, zones, sources=(), **sections):
    """What it says to people."""
    return place.good("validate", "--config", place.config(zones, list(sources), **sections)).out().decode()


def refusal(place, text):
    """What it says to a bad file."""
    done = place.run("validate", "--config", place.write("bad.json", text))
    assert done.code() == USAGE and not done.out(), (done.code(), done.said(), done.out())
    said = json.loads(place.run("validate", "--config", place.path("bad.json"), "--json").out())
    assert said == {"good": False, "errors": done.said().splitlines()}, said
    return done.said()


def test_a_configuration_is_said_in_words(place):
    log = place.write("access.log", burst("ann", 50))
    said = words(place, [zone("site", [sliding(100, "1m"), fixed(1000, "1h")], description="requests per client"),
                         zone("login", [sliding(5, "1m")], match={"path": ["/login"]}, block_for="10m")],
                 [source(log, follow=True), {"type": "stdin", "format": "combined"}],
                 listen={"http": "127.0.0.1:9464"}, decisions={"path": place.path("decisions.jsonl"),
                                                              "rotate_size": "10MiB", "keep": 3},
                 bus={"partitions": 4}, limiter={"threads": 2, "memory": "64MiB", "checkpoint_interval": "5s"})
    for expected in ('zone "site" (1)', "100 in any 1m", "requests per client", 'zone "login" (2)', "for at least 10m",
                     "a user seen once takes about", f"{log}, json, followed", f"{log}: 1.8 KiB; of the first 50 lines "
                     "50 are events", "standard input, combined", "50 are in it",
                     f"{place.path('decisions.jsonl')}, rotated at 10.0 MiB, 3 kept",
                     "dead-letter.jsonl in the state directory", "127.0.0.1:9464: /metrics", "4, on 2 threads",
                     "64.0 MiB; room for about", "every 5s", "weir.json is valid"):
        assert expected in said, f"{expected!r} is not in: {said}"


def test_where_checks_are_asked_is_said(place):
    api = [zone("api", [sliding(5, "1m")], key=["user"])]
    assert "checks" not in words(place, api)
    one = words(place, api, listen={"resp": "127.0.0.1:6390"})
    assert "  checks           127.0.0.1:6390 by RESP; one that cannot be judged gets an error\n" in one, one
    places = {"resp": "127.0.0.1:6390", "check_http": "127.0.0.1:8082", "grpc": "[::1]:8081"}
    said = words(place, api, listen=places, checks={"on_unavailable": "allow"})
    assert "127.0.0.1:6390 by RESP, 127.0.0.1:8082 by HTTP, [::1]:8081 by gRPC; one that cannot be judged passes\n" in said, said
    assert report(place, api, listen=places)["checks"] == {"resp": "127.0.0.1:6390", "http": "127.0.0.1:8082", "grpc": "[::1]:8081"}
    assert report(place, api)["checks"] == {"resp": None, "http": None, "grpc": None}


def test_a_clusters_configuration_is_said_in_words(place):
    said = words(place, [zone("site", [sliding(100, "1m")])], [],
                 bus={"type": "kafka", "brokers": "k1:9092,k2:9092", "prefix": "edge"},
                 store={"type": "mysql", "host": "db.example", "database": "limits"})
    for expected in ("Kafka at k1:9092,k2:9092, topics edge.events", "database limits, at db.example:3306"):
        assert expected in said, f"{expected!r} is not in: {said}"
    assert "dead-letter.jsonl" not in said and "standard output" not in said, said
    bus = {"type": "kafka", "brokers": "k1:9092", "kafka": {"compression.typo": "zstd"}}
    bare = {"bus": {"type": "kafka", "brokers": "k1:9092"}, "store": {"type": "mysql", "host": "db.example"}}
    said = place.good("validate", place.write("bare.json", json.dumps(bare))).out().decode()
    assert "none here: those that the cluster has in force" in said and "room for" not in said, said
    assert "bus.kafka.compression.typo" in refusal(place, json.dumps({"bus": bus}))


def test_the_documents_are_true(place):
    """The tables of settings and metrics, and the page on zones: what it names is there, and its example is good."""
    with open(os.path.join(ROOT, "common", "settings.md"), encoding="utf-8") as file:
        assert file.read().endswith("\n\n" + place.good("validate", "--settings").out().decode())
    with open(os.path.join(ROOT, "common", "metrics.md"), encoding="utf-8") as file:
        assert file.read() == place.good("validate", "--metrics").out().decode(), "weir validate --metrics >common/metrics.md"
    with open(os.path.join(ROOT, "limiter", "zones.md"), encoding="utf-8") as file:
        page = file.read()
    place.good("validate", place.write("zones.json", re.search(r"```json\n(.*?)```", page, re.DOTALL)[1]))
    for table, where in ((page.split("## Algorithms")[0], "zones[0]"), (page.split("## Algorithms")[1], "zones[0].limits[0]")):
        zones = [{"name": "a", "key": [], "limits": [{"algorithm": "sliding_window", "rate": 1, "window": "1m"}]}]
        (zones[0] if where == "zones[0]" else zones[0]["limits"][0])["none"] = 1
        known = set(re.findall(r"[a-z_0-9]+", refusal(place, json.dumps({"zones": zones})).split("known: ")[1].splitlines()[0]))
        rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
        column = 1 if where == "zones[0]" else 2
        named = {word for row in rows for word in re.findall(r"`([a-z_0-9]+)`", row[column])}
        assert named == known - {"algorithm"}, (named ^ known, where)


def test_the_tables_of_sources_are_true(place):
    """Every member of each type has its row, here or where its section leads, and the example is good."""
    with open(os.path.join(ROOT, "collector", "formats.md"), encoding="utf-8") as file:
        page = file.read().split("\n## Formats\n")[0]
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        sections = re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", file.read(), re.DOTALL | re.MULTILINE)
    others = {name.lower(): text for name, text in sections}
    zones = [{"name": "a", "key": ["ip"], "limits": [sliding(1, "1m")]}]
    example = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    place.good("validate", place.write("sources.json", json.dumps({"zones": zones, **example})))
    types = re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", page, re.DOTALL | re.MULTILINE)
    told = refusal(place, json.dumps({"zones": zones, "sources": [{"type": "none"}]}))
    known = re.findall(r'"(\w+)"', told.split("one of ")[1].split(", not ")[0])
    assert sorted(name for name, _ in types) == sorted(known) and len(known) >= 5, (told, types)
    for name, text in types:
        said = refusal(place, json.dumps({"zones": zones, "sources": [{"type": name, "format": "combined", "none": 1}]}))
        known = set(re.findall(r"[a-z_]+", said.split("known: ")[1].splitlines()[0])) - {"type", "format", "line_max", "name"}
        rows = re.search(r"^\| member \|(?:.*\n)+?(?=\n)", text if "| member |" in text else others[name], re.MULTILINE)[0]
        cells = [row.split("|")[1] for row in rows.splitlines()]
        named = {word for cell in cells for word in re.findall(r"`([a-z_]+)`", cell)} - {"name"}
        assert named == known, (name, named ^ known)


def test_the_file_may_be_named_alone(place):
    config = place.config([zone("site", [sliding(1, "1m")])], [])
    assert place.good("validate", config).out() == place.good("validate", "--config", config).out()


WRONG = """{ // every mistake is told, once
  "zones": [
    { "name": "login", "key": ["ip"], "limits": [ { "algorithm": "sliding_window", "rate": "x", "window": "1m" }, ], },
    { "name": "site", "kee": ["ip"], "key": ["ip"], "limits": [ { "algorithm": "fixed_window", "rate": 5, "window": 1 } ] },
    { "name": "third", "limits": 4 },
  ],
  "sources": [ {"type": "fil", "path": "/x"}, {"type": "file", "path": "/tmp/x.log", "format": "combine"} ],
  "gateways": [ {"to": "nginx-map:/tmp/a", "zones": ["third"]}, {"to": "nginx-map:/tmp/b", "speed": 1} ],
  /* and this */ "listen": {"http": "nonsense"},
}
"""


def test_all_mistakes_are_told_at_once(place):
    """By validate, by run, and by a daemon as far as it looks; and none that only follows from another."""
    path = place.write("wrong.json", WRONG)
    wanted = ["3: zones[0].limits[0].rate: ", '4: zones[1]: unknown key "kee"', "4: zones[1].limits[0].window: ",
              "5: zones[2].key: is missing", "9: listen.http: ", "7: sources[0].type: ", "7: sources[1].format: ",
              '8: gateways[1]: unknown key "speed"']
    said = place.run("validate", path).said().splitlines()
    assert len(said) == len(wanted), said
    for line, begin in zip(said, wanted):
        assert line.startswith(f"{path}:{begin}"), (line, begin)
    run = place.run("run", "--config", path)
    assert run.code() == USAGE and run.said().splitlines() == ["weir: " + line for line in said[:5]], run.said()
    rest = place.write("rest.json", WRONG.replace('"x"', "1").replace('"kee": ["ip"], ', "").replace('"window": 1 ', '"window": "1m" ')
                       .replace('"limits": 4', '"key": [], "limits": [{"algorithm": "fixed_window", "rate": 5, "window": "1m"}]')
                       .replace("nonsense", "127.0.0.1:0"))
    run = place.run("run", "--config", rest)
    assert run.code() == USAGE and [line.split(": ")[2] for line in run.said().splitlines()] == [
        "sources[0].type", "sources[1].format", "gateways[1]"], run.said()


def test_what_the_state_would_refuse_or_change_is_told(place):
    """Ids go by name, a limit is told with both values; a key, an id and the partitions are refused as a start would."""
    def config(*zones, **sections):
        names.append(f"{len(names)}.json")
        return place.config(list(zones), [source(log, follow=True)], name=names[-1], **sections)

    def validate(path, *more):
        return place.run("validate", "--config", path, "--state", place.path("state"), *more)

    def start(path):
        return place.start("run", "--config", path, "--state", place.path("state"), "--quiet")

    def follow(path, version):
        run = start(path)
        until(lambda: f"policy {version}; state" in run.said(), f"it follows by policy {version}", running=run)
        assert run.stop() == 0, run.said()

    names, log = [], place.write("access.log", "")
    login, site = zone("login", [sliding(5, "1m")], exempt=["10.0.0.0/8"]), zone("site", [sliding(9, "1m")])
    first = config(login, site)
    assert "in force" not in validate(first).out().decode()
    follow(first, 1)
    assert "policy 1 is in force; these are its zones" in validate(first).out().decode()
    next_one = config(zone("new", [sliding(1, "1m")]), site, {**login, "limits": [sliding(20, "1m")], "exempt": ["::1", "10.0.0.0/8"]})
    wanted = "new new, login changed (exempt +::1, limits[0].rate 5 -> 20)"
    said = validate(next_one).out().decode()
    assert 'zone "login" (1)' in said and 'zone "site" (2)' in said and 'zone "new" (3)' in said, said
    assert f"policy 1 is in force; this would change it: {wanted}" in said, said
    assert 'zone "new" (1)' in validate(next_one, "--offline").out().decode()
    told = json.loads(place.good("policy", "diff", "--json", "--config", next_one, "--state", place.path("state")).out())
    assert told == {"version": 1, "changed": True, "changes": wanted}, told
    follow(next_one, 2)
    history = place.good("policy", "history", "--json", "--state", place.path("state")).objects()
    assert [line["changes"] for line in history] == ["login new, site new", wanted] and history[0]["by"], history
    for path, words in ((config({**login, "key": ["path"]}), "another key in policy 2, and a zone's key cannot change"),
                        (config({**login, "id": 7}), 'has id 1 in policy 2: it cannot become 7; give it "id": 1'),
                        (config({**zone("other", [sliding(1, "1m")]), "id": 2}), 'leave out the id of "other"'),
                        (config(login, bus={"partitions": 3}), "bus.partitions")):
        done = validate(path)
        assert done.code() == USAGE and words in done.said(), (done.said(), words)
        assert start(path).wait() != 0, words
    follow(config(site), 3)
    follow(config(login, site), 4)  # the id that it had


def test_every_mistake_comes_to_an_end(place):
    """Also where the state refuses what stands in for zones; a cluster that is away is asked once, not for each mistake."""
    log = place.write("access.log", "")
    first = place.config([zone("-", [sliding(5, "1m")], key=["ip"])], [source(log, follow=True)])
    run = place.start("run", "--config", first, "--state", place.path("state"), "--quiet")
    until(lambda: "policy 1; state" in run.said(), "it follows", running=run)
    assert run.stop() == 0
    other = place.config([zone("-", [sliding(5, "1m")], key=["path"])], [source(log, follow=True)])
    done = place.run("validate", "--config", other, "--state", place.path("state"))
    assert done.code() == USAGE and len(done.said().splitlines()) == 1 and "another key" in done.said(), done.said()
    for text in ("[1, 2,]", "{}", "7", '{"zones": 5}', '{"zones": [], "sources": 3}', '{"a\\u0000b": 1}'):
        told = place.run("validate", place.write("odd.json", text)).said().splitlines()
        assert 1 <= len(told) <= 3 and len(set(told)) == len(told) and "JSON_" not in "".join(told), (text, told)
    sections = {"bus": {"type": "kafka", "brokers": "127.0.0.1:1"}, "store": {"type": "mysql", "host": "127.0.0.1", "port": 1},
                "zones": [zone("site", [sliding(1, "1m")])], "sources": [source(place.write(f"log-{i}", ""), format=f"no-{i}") for i in range(4)]}
    told = place.run("validate", place.write("c.json", json.dumps(sections))).said().splitlines()
    assert [line.split(": ")[1] for line in told] == [f"sources[{i}].format" for i in range(4)], told
    # and no word of the store, which is asked once nothing else is wrong


def test_a_policy_too_long_for_a_record_is_refused_before_it_is_stored(place):
    """Its ids grow once the state is known: the state must not be left with what nobody can read."""
    log = place.write("access.log", "")
    config = place.config([zone("high", [sliding(1, "1m")], id=60000)], [source(log, follow=True)], name="high.json")
    run = place.start("run", "--config", config, "--state", place.path("state"), "--quiet")
    until(lambda: "policy 1; state" in run.said(), "it follows", running=run)
    assert run.stop() == 0
    many = [zone(f"z{i:03d}", [sliding(1, "1m")], description="x" * 500) for i in range(900)]

    def fits(pad):
        return place.run("validate", "--offline", place.config([{**each, "description": "x" * pad} for each in many],
                                                               [source(log)], name="many.json")).code() == DONE
    low, high = 500, 1024
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    config = place.config([{**each, "description": "x" * low} for each in many], [source(log, follow=True)], name="many.json")
    done = place.run("run", "--config", config, "--state", place.path("state"), "--quiet")
    assert done.code() == 2 and "fit in a record" in done.said(), done.said()
    assert len(place.good("policy", "history", "--json", "--state", place.path("state")).objects()) == 1


def test_what_is_wrong_is_said_with_file_line_and_path(place):
    good = '{"zones": [\n {"name": "site", "key": ["ip"],\n  "limits": [{"algorithm": "sliding_window", "rate": 1, ' \
           '"window": "1m"}]}],\n "sources": [\n {"type": "file", "path": "/tmp/x", "format": "json"}]}\n'
    bad = place.path("bad.json")
    for old, new, line, *expected in (
            ('"rate": 1', '"rat": 1', 3, 'zones[0].limits[0]: unknown key "rat"; did you mean "rate"?'),
            ('"rate": 1', '"rate": -1', 3, "zones[0].limits[0].rate"),
            ('"1m"', '"1 minute"', 3, "zones[0].limits[0].window", '"10s"'),
            ('"sliding_window"', '"sliding"', 3, "zones[0].limits[0].algorithm", '"sliding_window"'),
            ('"type": "file"', '"type": "fil"', 5, "sources[0].type", 'did you mean "file"?'),
            ('"json"', '"jsn"', 5, "sources[0].format", 'did you mean "json"?'),
            (', "format": "json"', "", 5, 'sources[0].format: is missing: give one of "combined", ', '"journal", or an object with'),
            ('"json"', '{"type": "json", "tine": "x"}', 5, "sources[0].format", 'did you mean "time"?'),
            ('"json"', '{"type": "pattern", "pattern": "("}', 5, "sources[0].format.pattern"),
            ('"path"', '"paht"', 5, "sources[0]", 'did you mean "path"?'),
            ('"zones"', '"zone"', 1, 'did you mean "zones"?'),
            ('"1m"}', '"1m"', 3, "")):
        assert old in good
        said = refusal(place, good.replace(old, new))
        assert said.startswith(f"{bad}:{line}:"), said
        for part in expected:
            assert part in said, (part, said)
    done = place.run("validate", "--config", place.path("none.json"))
    assert done.code() == USAGE and done.said().startswith("cannot open " + place.path("none.json") + ": "), done.said()


def test_a_list_that_cannot_be_read_is_a_mistake_at_its_place(place):
    """By the same words and exit code in a check and at a start, wherever the list is named."""
    bad, good = place.write("bad.list", "ann\n10.0.0.1/8\n"), place.write("good.list", "10.0.0.1\n")
    missing, long = place.path("missing.list"), place.write("long.list", "".join(f"u{i}\n" for i in range(10001)) + "10.0.0.1/8\n")
    log = place.write("access.log", burst("ann", 5))
    for exempt, where, words in (([{"list": good}, {"list": missing}], "exempt[1].list", f"cannot open {missing}: No such file"),
                                 ({"list": missing}, "exempt.list", f"cannot open {missing}"),
                                 (["ann", {"file": missing}], "exempt[1].file", f"cannot open {missing}"),
                                 (["ann", {"list": bad}], "exempt[1].list", f'{bad}:2: "10.0.0.1/8" is not a network'),
                                 ([{"file": long}], "exempt[0].file", f"{long}:10002: ")):
        zones = [zone("other", [sliding(1, "1m")]), zone("site", [sliding(1, "1m")], exempt=exempt)]
        config = place.config(zones, [source(log)])
        for command in (("validate",), ("run", "--once", "--decisions", "/dev/null"), ("run", "--state", place.path("state"))):
            done = place.run(*command, "--config", config)
            assert done.code() == USAGE, (command, done.code(), done.said())
            assert f"zones[1].{where}: {words}" in done.said() and "weir.json:" in done.said(), (command, done.said())


def test_a_list_s_address_keeps_its_secret(place):
    """An account is refused, as all who read the policy would have it; a query is not said."""
    log = place.write("access.log", burst("ann", 5))
    for address, code in (("https://ann:secret@lists.example/bots", USAGE), ("https://lists.example/bots?token=secret", DONE)):
        config = place.config([zone("site", [sliding(1, "1m")], exempt={"list": address})], [source(log)])
        done = place.run("validate", "--config", config)
        assert done.code() == code and "secret" not in done.said() + done.out().decode(), (done.said(), done.out())
        assert ("zones[0].exempt.list: must have no account" in done.said()) == (code == USAGE), done.said()


def test_doubts_are_said_by_a_check_and_by_a_run(place):
    """Values that nothing can have: the same words in both."""
    zones = [zone("site", [sliding(1, "1m")], match={"method": "gte", "path": ["/a?b"], "status": {"is": "4xx", "not": ["4xx"]}},
                  key=("ip",), exempt=["gate.example", {"referer": "10.0.0.0/8"}])]
    log = place.write("access.log", burst("ann", 5))
    said = warnings(place, zones, [source(log)])
    expected = {"match.method", "match.path", "match.status", "exempt", "exempt.referer"}
    found = {path[len("zones[0]."):]: said[path] for path in said if path[len("zones[0]."):] in expected}
    assert set(found) == expected, said
    done = place.good("run", "--once", "--decisions", "/dev/null", "--config", place.config(zones, [source(log)]))
    for member, words_ in found.items():
        assert f'zone "site", {member}: {words_}' in done.said().replace('\\"', '"'), (member, words_, done.said())


def test_a_zone_that_no_source_can_match_is_said(place):
    """By the words of a run, and only where the sources are known and nobody asks."""
    limits, login = [sliding(5, "1m")], {"path": ["/login"]}
    log = source(place.write("access.log", ""), format="combined", name="web")
    auth = source(place.write("auth.log", ""), format="sshd", name="ssh")
    lacks = 'never matches: no source provides the field "%s"'
    listen = {"resp": "127.0.0.1:0"}
    for members, sources, more, expected in (
            ({"key": ("IP",)}, [log], {}, {"zones[0]": lacks % "IP" + ' (did you mean "ip"?)'}),
            ({"key": ("country",)}, [log, auth], {}, {"zones[0]": lacks % "country"}),
            ({"match": {"agnt": ["x"]}}, [log], {}, {"zones[0]": lacks % "agnt" + ' (did you mean "agent"?)'}),
            ({"match": {"methode": ["POST"]}}, [log], {}, {"zones[0]": lacks % "methode" + ' (did you mean "method"?)'}),
            ({"match": {"event": ["Failed"], **login}}, [auth], {}, {"zones[0]": lacks % "path"}),
            ({"match": login, "sources": ["ssh"]}, [log, auth], {}, {"zones[0]": lacks % "path"}),
            ({"match": {"agnt": {"not": ["x"]}}}, [log], {},
             {"zones[0].match.agnt": 'no source provides the field "agnt" (did you mean "agent"?), so "not" holds for every record'}),
            ({"match": login}, [log, auth], {}, {}),
            ({"key": ("IP",)}, [], {}, {}),
            ({"key": ("IP",)}, [{**log, "format": "json"}], {}, {}),
            ({"key": ("IP",), "feed": "log"}, [log], {"listen": listen}, {"zones[0]": lacks % "IP" + ' (did you mean "ip"?)'}),
            ({"key": ("IP",)}, [log], {"listen": listen}, {})):
        zones = [zone("site", limits, **members)]
        said = warnings(place, zones, sources, **more)
        said.pop("zones[0].feed", None)
        assert said == expected, (members, said)
        if sources and not more:
            done = place.good("run", "--once", "--decisions", "/dev/null", "--config", place.config(zones, sources))
            told = done.said().replace('\\"', '"')
            for path, words_ in expected.items():
                assert f'zone "site"{path[len("zones[0]"):].replace(".", ", ", 1)}{": " if "." in path else " "}{words_}' in told, told
            assert ("no source provides" in told) == bool(expected), told


def test_a_value_that_no_source_can_give_is_said(place):
    """A lone "-" where the format takes it for absent, and an event that is none: by the words of a run."""
    log = source(place.write("access.log", ""), format="combined")
    auth = source(place.write("auth.log", ""), format="sshd")
    tables = source(place.write("table.log", ""), format={"type": "delimited", "header": False, "columns": ["time", "user", "agent"]})
    dash = '"-" is no value that a source can give: it stands for an absent field, which {"not": ["*"]} matches'
    queue = {"algorithm": "queue", "length": 1, "hold": "1m", "done": {"referer": "-"}}
    for members, sources, more, expected in (
            ({"match": {"agent": ["-", "curl/*"]}}, [log], {}, {"zones[0].match.agent": dash}),
            ({"match": {"referer": {"not": ["-"]}}}, [log], {}, {"zones[0].match.referer": dash}),
            ({"match": {"user": ["-"]}}, [log, tables], {}, {"zones[0].match.user": dash}),
            ({"exempt": [{"agent": ["-"]}]}, [{**auth, "format": "squid"}, log], {}, {"zones[0].exempt.agent": dash}),
            ({"limits": [queue]}, [log], {}, {"zones[0].limits[0].done.referer": dash}),
            ({"match": {"agent": ["-"]}}, [{**log, "format": "caddy"}], {}, {"zones[0].match.agent": dash}),
            ({"match": {"agent": ["-"]}}, [{**log, "format": "json"}], {}, {}),
            ({"match": {"agent": ["-"]}}, [log, {**tables, "format": "logfmt"}], {}, {}),
            ({"match": {"agent": {"not": ["*"]}, "referer": ["-*"]}}, [log], {}, {}),
            ({"match": {"agent": ["-"]}}, [log], {"listen": {"check_http": "127.0.0.1:0"}}, {}),
            ({"match": {"event": ["failed"]}}, [auth], {},
             {"zones[0].match.event": '"failed" is no value that a source can give: did you mean "Failed"?'}),
            ({"match": {"event": ["Closed*"]}}, [auth], {},
             {"zones[0].match.event": '"Closed*" is no value that a source can give, as "event" can be Failed, Invalid, Maximum, Denied, '
                                      'Preauth, Disconnect, PAM or Accepted'}),
            ({"match": {"event": ["Login"]}}, [{**auth, "format": "dovecot"}], {},
             {"zones[0].match.event": '"Login" is no value that a source can give: did you mean "login"?'}),
            ({"match": {"event": ["Failed", "In*", "*"]}}, [auth], {}, {}),
            ({"match": {"event": ["login"]}}, [auth, {**log, "format": "dovecot"}], {}, {}),
            ({"match": {"event": ["RBL"]}}, [{**auth, "format": "postfix"}], {}, {})):
        zones = [zone("site", **{"limits": [sliding(5, "1m")], **members})]
        said = warnings(place, zones, sources, **more)
        said.pop("zones[0].feed", None)
        assert said == expected, (members, said)
        if not more:
            told = place.good("run", "--once", "--decisions", "/dev/null", "--config", place.config(zones, sources)).said().replace('\\"', '"')
            for path, words_ in expected.items():
                assert f'zone "site", {path[len("zones[0]."):]}: {words_}' in told, told
            assert ("is no value" in told) == bool(expected), told


def test_names_that_may_be_meant_are_said(place):
    """The time and the client that a log has under other names, and objects behind a syslog header: in a check and a run."""
    zones = [zone("site", [sliding(1, "1m")], key=({"field": "ip", "prefix6": 64},))]
    for line, words_ in (('{"ts": 1732173600, "ip": "192.0.2.1"}', 'say "format": {"type": "json", "time": "ts"}'),
                         ('{"time": 1732173600, "remote_addr": "192.0.2.1"}', '"format": {"type": "json", "fields": {"ip": "remote_addr"}}'),
                         ('<134>Nov 21 10:00:00 h app: @cee: {"time": 1732173600}', '"message": "json"')):
        config = place.config(zones, [{"type": "file", "path": place.write("log", f"{line}\n" * 3), "format": "json"}])
        said = json.loads(place.good("validate", "--config", config, "--json").out())["warnings"]
        assert any(words_ in one["words"] and one["path"] == "sources[0]" for one in said), said
        done = place.run("run", "--once", "--decisions", "/dev/null", "--config", config)
        assert done.code() == (DONE if "remote_addr" in line else FAILED), done.said()  # without a client it is an event
        assert words_ in done.said() and line in done.said(), done.said()


def test_an_option_of_a_format_is_told_where_it_belongs(place):
    """It is put beside the format, where a hint that named it alone did not say otherwise."""
    zones = [zone("site", [sliding(1, "1m")], key=({"field": "ip", "prefix6": 64},))]
    for form, said in (("json", '"format": {"type": "json", "time": "ts"}'),
                       ({"type": "json", "unit": "ms"}, '"format": {"type": "json", ..., "time": "ts"}')):
        done = place.run("validate", "--config", place.config(zones, [
            {"type": "file", "path": place.write("log", ""), "format": form, "time": "ts"}]))
        assert done.code() == 2 and f"sources[0].time: belongs into the source's {said}" in done.said(), done.said()


def test_sources_say_which_files_are_there(place):
    for name in ("access.log", "access.log.1", "other.log"):
        place.write(name, burst(name, 3))
    place.write("access.log.2.gz", gzip.compress(burst("bob", 2000).encode()))
    found = report(place, [zone("site", [sliding(1, "1m")])],
                   [source([place.path("access.log*"), place.path("none*.log"), place.path("missing.log")])])
    files = found["sources"][0]["files"]
    assert [(os.path.basename(file["path"]), file["sample"]["lines"], file["sample"]["events"]) for file in files] == \
        [("access.log", 3, 3), ("access.log.1", 3, 3), ("access.log.2.gz", 1000, 1000)], files
    assert files[2]["bytes"] == os.path.getsize(place.path("access.log.2.gz"))
    said = [warning["words"] for warning in found["warnings"] if warning["path"] == "sources[0]"]
    assert said == [f"{place.path('none*.log')} matches no file now",
                    f"cannot find {place.path('missing.log')} now: No such file or directory"], said
    for path, words_ in (("~/a.log", "; ~ stands for no directory here: write it out"), ("$HOME/a.log", "; variables are not put in"),
                         (place.path("{a,b}.log"), "; {} stands for no names here: give a list of paths")):
        (warning,) = report(place, [zone("site", [sliding(1, "1m")])], [source(path)])["warnings"]
        assert words_ in warning["words"], warning


def test_what_trusts_everybody_and_groups_no_address_is_said(place):
    at = "[17/May/2024:10:05:03 +0000]"
    log = place.write("log", f'192.0.2.1 - - {at} "GET /a HTTP/1.1" 200 1 "-" "x" "198.51.100.7"\n' * 30)

    def warned(trusted, key):
        form = {"type": "combined", "client_ip": {"header": "xff", "trusted": trusted}}
        config = place.config([zone("site", [sliding(3, "1m")], key=[key], id=1)], [source(log, format=form, follow=False)])
        report = json.loads(place.good("validate", "--json", "--config", config).out())
        return {warning["path"]: warning["words"] for warning in report["warnings"] if warning["path"] != "sources"}

    proxies, networks = ["192.0.2.0/24", "2001:db8::/32"], {"field": "ip", "prefix6": 64}
    for everybody in ("0.0.0.0/0", "::/0", "128.0.0.0/1"):
        said = warned(["192.0.2.0/24", everybody], networks)
        assert f'trusts everybody ("{everybody}")' in said.pop("sources[0]") and not said, said
    assert not warned(proxies, networks)
    for trusted, warns in ((["10.0.0.0/8", "::/0"], True), (["10.0.0.0/8"], False)):
        checks = {"client_ip": {"header": "x-forwarded-for", "trusted": trusted}}
        config = place.config([zone("site", [sliding(3, "1m")])], [], checks=checks, listen={"check_http": "127.0.0.1:0"})
        said = {warning["path"]: warning["words"]
                for warning in json.loads(place.good("validate", "--json", "--config", config).out())["warnings"]}
        assert ('trusts everybody ("::/0")' in said.get("checks.client_ip.trusted", "")) == warns, said
    said = warned(proxies, {"field": "path", "prefix4": 24})
    assert said == {"zones[0].key[0]": 'groups addresses, and none of the first 30 values of "path" is one: each counts by '
                                       "itself, as with the field's name alone"}, said


def test_the_first_lines_show_a_wrong_format_or_field(place):
    log = place.write("log", burst("ann", 500))
    limits = [sliding(1, "1m")]
    said = warnings(place, [zone("site", limits)], [source(log, format="combined")])
    assert "500 of the first 500 lines are malformed, mostly \"not combined\"" in said["sources[0]"], said
    said = warnings(place, [zone("site", limits, key=("user", {"field": "ip", "prefix6": 64})),
                            zone("none", limits, match={"path": ["/nowhere"]}),
                            zone("fine", limits)], [source(log)])
    assert said == {"zones[0].key[1]": 'none of the first 500 events has the field "ip" of the key',
                    "zones[1]": 'none of the first 500 events has the field "path", which the zone\'s match asks for: does the log '
                                "write it where the format expects it?"}, said
    few = place.write("few", burst("ann", 3))
    assert not warnings(place, [zone("site", limits, key=({"field": "ip", "prefix6": 64},))], [source(few)])


def test_a_file_that_cannot_be_read_is_said(place):
    cut = gzip.compress(burst("ann", 20000).encode())[:300]
    found = warnings(place, [zone("site", [sliding(1, "1m")])], [source(place.write("cut.gz", cut))])
    assert place.path("cut.gz") in found["sources[0]"], found


def test_outputs_that_cannot_be_written_are_said(place):
    said = warnings(place, [zone("site", [sliding(1, "1m")], mode="shadow")],
                    decisions={"path": place.path("none", "decisions.jsonl")})
    assert said == {"decisions.path": f"the directory {place.path('none')} does not exist",
                    "zones[0].mode": 'is shadow, but "decisions" has no "shadow_path", and there is no archive: its decisions are '
                                     'only counted'}, said


def test_a_list_that_finds_nobody_in_a_zones_networks_is_said(place):
    keys = (["ip"], ["user"], [{"field": "ip", "prefix6": 64}], [{"field": "ip", "prefix4": 24}],
            [{"field": "ip", "prefix4": 24, "prefix6": 48}], [{"field": "ip", "prefix6": 64}, "path"],
            [{"field": "ip", "prefix6": 128}])
    zones = [zone(f"z{i}", [sliding(5, "1m")], key=key, id=i + 1) for i, key in enumerate(keys)]
    log = source(place.write("few.log", b""))

    def of(*gateways):
        found = report(place, zones, [log], gateways=list(gateways))["warnings"]
        return [(one["path"], one["words"]) for one in found if one["path"].startswith("gateways")]

    said = of("nginx-geo:/tmp/geo", "nginx-map:/tmp/map")
    assert [(path, words.split()[1]) for path, words in said] == [("gateways[1]", f"z{i}") for i in (2, 3, 4, 5)], said
    assert "counts IPv6 in networks of /64, and nginx-map:/tmp/map" in said[0][1], said
    assert "lets its blocked IPv6 clients in: use nginx-geo" in said[0][1], said
    assert "its blocked IPv4 clients" in said[1][1] and "whom the zone blocks" in said[2][1], said
    assert "take the prefix out of the key" in said[3][1] and "nginx-geo" not in said[3][1], said
    others = ("redis://127.0.0.1:1", "file:/tmp/list", "haproxy:/tmp/socket", "nft:inet/weir/a", "exec:true")
    assert not of({"to": "nginx-map:/tmp/map", "zones": ["z0", "z1", "z6"]}, *others)


def test_the_gateway_that_the_readme_names_finds_its_zones(place):
    """What stands there together is right together."""
    for name in ("README.md", "deploy/gateways/README.md"):
        text, first = (read(os.path.join(ROOT, one)).decode() for one in (name, "README.md"))
        config = json.loads(re.search(r"```json\n(\{ \"zones\".*?)```", first, re.S).group(1))
        gateways, _ = json.JSONDecoder().raw_decode(text.partition('"gateways": ')[2])
        config["gateways"] = [one for one in gateways if "ssh" not in json.dumps(one)]
        path = place.write("readme.json", json.dumps(config))
        found = place.good("validate", "--offline", "--json", path).objects()[0]
        assert len(found["gateways"]) == len(config["gateways"]) > 0
        assert not [one for one in found["warnings"] if one["path"].startswith("gateways")], found["warnings"]


def test_what_may_count_twice_is_said(place):
    zones = [zone("site", [sliding(5, "1h")]), zone("lines", [sliding(5, "1h")], feed="log"),
             zone("asked", [sliding(5, "1h")], feed="check")]
    listen = {"resp": "127.0.0.1:6390"}
    said = warnings(place, zones, [source(place.write("few.log", b""))], listen=listen)
    assert "counts twice" in said["zones[0].feed"], said
    assert "zones[1].feed" not in said and "zones[2].feed" not in said, said
    assert "zones[0].feed" not in warnings(place, zones, [source(place.write("few.log", b""))])


def test_a_zone_of_checks_that_nobody_asks_is_said(place):
    asked = [zone("asked", [sliding(5, "1h")], feed="check")]
    named = [zone("asked", [sliding(5, "1h")], feed="check", sources=["nginx"])]
    log = [source(place.write("few.log", b""), name="nginx")]
    assert "nobody listens for them: set listen.resp" in warnings(place, asked, log)["zones[0].feed"]
    for listen in ({"resp": "127.0.0.1:0"}, {"grpc": "127.0.0.1:0"}, {"check_http": "127.0.0.1:0"}):
        assert "zones[0].feed" not in warnings(place, asked, log, listen=listen)
        assert "no request by HTTP or gRPC is in it" in warnings(place, named, log, listen=listen)["zones[0].feed"]
    cluster = {"bus": {"type": "kafka", "brokers": "k1:9092"}, "store": {"type": "mysql", "host": "db.example"}}
    assert "zones[0].feed" not in warnings(place, asked, **cluster)


def test_what_comes_to_nothing_without_checks_is_said(place):
    """Users of zones that the policy lacks, and what is said of checks that nobody listens for."""
    site, durable = [zone("site", [sliding(5, "1h")])], [zone("site", [sliding(5, "1h")], durable=True)]
    users = {"shop": {"password": "of shop", "zones": ["nope", "site"]}, "ops": {"password": "of ops", "zones": ["sit"]}, "all": {"password": "of all"}}
    listen, nobody = {"resp": "127.0.0.1:0"}, "is about checks, and nobody listens for them: set listen.resp, listen.check_http or listen.grpc"

    def about(zones, **sections):
        found = warnings(place, zones, **sections)
        return {path: said for path, said in found.items() if "durable" in path or path == "checks.users" or ".zones[" in path}
    assert about(site, listen=listen, checks={"users": users}) == {
        "checks.users.shop.zones[0]": 'there is no zone "nope" (known: "site"): until a policy has it, the user is refused there',
        "checks.users.ops.zones[0]": 'there is no zone "sit" (did you mean "site"?): until a policy has it, the user is refused there'}
    assert not about(site, listen=listen, checks={"users": {"shop": users["all"]}})
    assert about(durable) == {"zones[0].durable": nobody}
    assert about(site, checks={"durable": True}) == {"checks.durable": nobody}
    one = {"shop": {"password": "of shop", "zones": ["site"]}}
    for place_ in (listen, {"grpc": "127.0.0.1:0"}, {"check_http": "127.0.0.1:0"}):
        told = {} if place_ is listen else {"checks.users": "ask by Redis' protocol alone, and nobody listens for it: set listen.resp"}
        assert about(durable, listen=place_, checks={"durable": True, "users": one}) == told, place_
    cluster = {"bus": {"type": "kafka", "brokers": "k1:9092"}, "store": {"type": "mysql", "host": "db.example"}}
    assert not about(durable, checks={"durable": True}, **cluster)
    bare = {**cluster, "listen": {"resp": "127.0.0.1:6390"}, "checks": {"users": users, "password": "of limiters"}}
    assert "there is no zone" not in place.good("validate", place.write("bare.json", json.dumps(bare))).out().decode()


def test_what_a_start_refuses_of_checks_is_a_mistake(place):
    """Whatever is listened on: a rule that nobody reads yet is a mistake, too."""
    site, listed = [zone("site", [sliding(5, "1h")])], ["10.0.0.0/8"]
    bad = (({"header": "x-real-ip"}, "checks.client_ip.trusted: is missing"),
           ({"header": "x-real-ip", "trusted": []}, "checks.client_ip.trusted: must list the proxies' networks"),
           ({"header": "x-real-ip", "trusted": ["300.0.0.0/8"]}, 'checks.client_ip.trusted[0]: "300.0.0.0/8": not an address'),
           ({"header": "X Forwarded", "trusted": listed}, "checks.client_ip.header: can be no header's name"),
           ({"header": "x-réal-ip", "trusted": listed}, "checks.client_ip.header: can be no header's name"),
           ({"header": "x" * 257, "trusted": listed}, "checks.client_ip.header: can be no header's name"),
           ({"header": "x", "trusted": listed, "more": 1}, 'checks.client_ip: unknown key "more"'))
    for rule, words_of_it in bad:
        for listen in ({"check_http": "127.0.0.1:0"}, {"grpc": "127.0.0.1:0"}, {}):
            config = {"zones": site, "sources": [], "listen": listen, "checks": {"client_ip": rule}}
            assert words_of_it in refusal(place, json.dumps(config)), (rule, listen)
            run = place.run("run", "--config", place.path("bad.json"), "--state", place.path("none"))
            assert run.code() == USAGE and words_of_it in run.said(), (rule, listen, run.said())
    assert not os.path.exists(place.path("none"))
    for listen in ({"http": "192.0.2.200:9464"}, {"resp": "192.0.2.200:6390"}, {"grpc": "192.0.2.200:8081"}, {"check_http": "192.0.2.200:8082"}):
        said = warnings(place, site, listen=listen, checks={"password": "a secret"})
        assert said["listen." + next(iter(listen))].endswith("Cannot assign requested address; weir run would not start here"), said
        place.good("validate", "--offline", place.path("weir.json"))
    warnings(place, site, listen={"check_http": "127.0.0.1:0"}, checks={"client_ip": {"header": "X-Real-IP", "trusted": listed}})


def test_a_short_block_is_said(place):
    assert "zones[0].block_for" in warnings(place, [zone("site", [sliding(5, "1h")], block_for="10m")])
    kept = {"fields": ["path", "tls", "agent"]}
    said = warnings(place, [zone("site", [sliding(5, "1m")], key=("user",), history=kept)],
                    [source(place.write("few.log", b""), format="combined")])
    assert said["zones[0].history.fields"] == 'no source provides the field "tls", so none is kept', said
    assert not warnings(place, [zone("site", [sliding(5, "1h")], block_for="1h")])
    assert not warnings(place, [zone("site", [sliding(5, "1h")])])


def test_robots_of_logs_without_agents_are_said(place):
    robots = {"verified": ["googlebot"]}
    for form, lacks in (("nginx_error", True), ("combined", False)):
        log = place.write(f"{form}.log", "")
        config = place.config([zone("site", [sliding(5, "1m")], key=("ip",), exempt=robots)],
                              [{"type": "file", "path": log, "format": form}], name=f"{form}.json")
        done = place.run("validate", "--config", config)
        words = 'no source provides the field "agent", so no robot is exempt as verified'
        assert (words in done.said() + done.out().decode()) == lacks, (done.said(), done.out())
        done = place.run("run", "--once", "--config", config, "--decisions", "/dev/null")
        words = 'zone "site", exempt: no source provides the field "agent", so no robot is exempt as verified'
        assert (words in done.said()) == lacks, done.said()


def test_a_costly_window_is_said_with_what_helps(place):
    said = warnings(place, [zone("site", [sliding(5000, "1h")])])
    assert '"precision": "1m"' in said["zones[0].limits[0]"], said
    assert not warnings(place, [zone("site", [sliding(5000, "1h", precision="1m")])])
    assert not warnings(place, [zone("site", [sliding(100, "1h")])])
    costly, cheap = report(place, [zone("a", [sliding(5000, "1h")]),
                                   zone("b", [sliding(5000, "1h", precision="1m")])])["zones"]
    assert costly["bytes_at_limits"] > 10000 and cheap["bytes_at_limits"] < 1000, (costly, cheap)
    # What a user costs at most: README.md, Sizing, with some room.
    usual, = report(place, [zone("site", [sliding(10, "1m"), fixed(100, "1h"), fixed(1000, "1d")])])["zones"]
    assert usual["bytes_seen_once"] <= 48 and usual["bytes_at_limits"] <= 96 + 12, usual


def test_turns_that_are_no_whole_milliseconds_are_said(place):
    def said(rate, window, burst):
        return warnings(place, [zone("site", [{"algorithm": "gcra", "rate": rate, "window": window, "burst": burst}])])
    for rate, burst, words in ((999, 0, "of 999 only 500 pass in 1s; a burst of 1 evens"), (2000, 0, "only 1000 pass"),
                               (5000, 1, "only 2000 pass in 1s; a burst of 5 evens"), (1667, 1, "only 1500 pass")):
        assert words in said(rate, "1s", burst)["zones[0].limits[0]"], (rate, burst)
    for rate, window, burst in ((999, "1s", 1), (1000, "1s", 0), (3, "1s", 0), (5000, "1s", 5), (999, "2s", 1), (100, "1m", 0),
                                (11, "1s", 0), (13, "1s", 0), (50, "3s", 0), (1, "30ms", 0)):
        assert not said(rate, window, burst), (rate, window, burst)


def test_a_limit_that_another_keeps_from_being_reached_is_said(place):
    def unreached(*limits, **more):
        said = warnings(place, [zone("site", list(limits), **more)])
        return sorted(path for path, text in said.items() if "never be reached" in text)
    assert unreached(sliding(1, "1m"), fixed(100, "1h")) == ["zones[0].limits[1]"]
    assert unreached(sliding(10, "1m"), fixed(100, "1h")) == []
    assert unreached(fixed(10, "1m"), fixed(600, "1h")) == ["zones[0].limits[1]"]
    assert unreached(fixed(10, "1m"), fixed(600, "1h", offset="1s")) == []
    assert unreached(fixed(10, "1m"), sliding(600, "1h")) == []
    assert unreached(fixed(10, "1m"), sliding(610, "1h")) == ["zones[0].limits[1]"]
    assert unreached(sliding(5, "1m"), sliding(5, "1m")) == ["zones[0].limits[1]"]
    assert unreached(sliding(10, "1m"), sliding(5, "1m")) == ["zones[0].limits[0]"]
    assert unreached(sliding(1, "1m"), fixed(100, "1h"), count="all") == []
    assert unreached({"algorithm": "gcra", "rate": 1, "window": "1m", "burst": 5}, fixed(100, "1h")) == \
        ["zones[0].limits[1]"]
    assert unreached({"algorithm": "queue", "length": 2, "hold": "1m"}, fixed(100, "1h")) == []


def random_limit(rng):
    """A limit of small numbers."""
    window = rng.choice([1000, 2000, 3000, 10000, 60000])
    rate, span = rng.choice([1, 2, 5, 12, 40, 70]), f"{window}ms"
    return rng.choice([
        sliding(rate, span), fixed(rate, span), fixed(rate, span, offset=f"{rng.choice([500, 999])}ms"),
        {"algorithm": "uniform", "interval": span},
        {"algorithm": "token_bucket", "rate": rate, "window": span, "burst": rng.choice([1, 3, 30])},
        {"algorithm": "gcra", "rate": rate, "window": span, "burst": rng.choice([0, 3, 30])}])


def test_what_is_said_to_be_out_of_reach_is_never_over_in_the_model(place):
    rng = random.Random(11)
    zones = [zone(f"zone-{i}", [random_limit(rng) for _ in range(rng.choice([2, 2, 3]))]) for i in range(150)]
    said = warnings(place, zones)
    checked = 0
    for number, text in enumerate(zones):
        unreached = [i for i in range(len(text["limits"]))
                     if "never be reached" in said.get(f"zones[{number}].limits[{i}]", "")]
        if not unreached:
            continue
        bucket, t = Bucket(Zone(dict(text, id=1)), ()), 1700000000000
        for _ in range(800):
            t += rng.choice([0, 1, 20, 100, rng.randrange(1, 3000)])
            over = [state.over(t, 1) for state in bucket.states]
            for i in unreached:
                assert not over[i] or any(over[j] for j in range(len(over)) if j != i), (text, i, t)
            judge_event(bucket, t, 1, False)
        checked += 1
    assert checked > 30, checked


def test_what_is_wrong_with_the_command_line_is_said(place):
    for expected, *options in (("give --config FILE, set WEIR_CONFIG",), ("--config needs a value", "--config"),
                               ("did you mean --config?", "--confg", "x"), ("one configuration at a time", "a", "b")):
        done = place.run("validate", *options)
        assert done.code() == USAGE and expected in done.said(), (options, done.said())
    assert "The smallest configuration" in place.good("validate", "--help").out().decode()


def test_a_missing_secret_of_kafka_is_its_users(place):
    """In a cluster a warning that names who would not start, and hides no other; on one machine a mistake."""
    sasl = {"file": place.path("nowhere", "sasl")}
    topic = {"type": "kafka", "brokers": "127.0.0.1:1", "topics": ["access"], "format": "combined",
             "kafka": {"sasl.password": {"env": "NOT_SET_HERE"}, "client.rack": "a"}}
    bus = {"type": "kafka", "brokers": "127.0.0.1:1", "kafka": {"sasl.password": sasl}}
    said = warnings(place, [zone("site", [sliding(3, "1m")], id=1)], [topic], bus=bus, decisions={"path": "/nowhere/decisions"})
    assert "nowhere/sasl" in said["bus.kafka.sasl.password"], said
    assert "whatever connects to the brokers would not start here" in said["bus.kafka.sasl.password"], said
    assert "NOT_SET_HERE is not set: weir-collector would not start here" in said["sources[0].kafka.sasl.password"], said
    assert "does not exist" in said["decisions.path"], said
    wrong = place.config([zone("site", [sliding(3, "1m")], id=1)], [topic], bus={**bus, "kafka": {"sasl.password": {"fil": "x"}}})
    done = place.run("validate", "--config", wrong)
    assert done.code() == USAGE and "bus.kafka.sasl.password" in done.said(), done.said()
    done = place.run("validate", "--config", place.config([zone("site", [sliding(3, "1m")], id=1)], [topic]))
    assert done.code() == USAGE and "NOT_SET_HERE is not set" in done.said(), done.said()


cases.main(globals())
