#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir backtest`: several policies on one log are each what `weir run --once` makes of it alone, and what it says of them."""

import contextlib
import csv
import fcntl
import glob
import json
import os
import random
import re
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import termios

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "conformance", "oracle"))

# pylint: disable=wrong-import-position
import random_cases
from support import cases, traffic
from support.place import SANITIZED, lines_of, read, until
from support.run_local import Run
from support.traffic import burst, fixed, line, sliding, zone

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3
CASES = 8 if SANITIZED else 32
SEED = 1


def policy(place, name, zones, **sections):
    """A configuration's path."""
    return place.config(zones, sections.pop("sources", []), name=name, **sections)


def user_log(place, name="a.log", text=None):
    """A log of JSON lines, and a source that reads it."""
    path = place.write(name, text if text is not None else burst("u1", 5) + burst("u2", 2) + burst("u3", 9))
    return path, dict(traffic.source(path), follow=False)


def backtest(place, configs, *more):
    """What it wrote with --json."""
    place.good("backtest", *(word for path in configs for word in ("--config", path)), "--json", place.path("report"),
               "--quiet", *more)
    with open(place.path("report"), encoding="utf-8") as file:
        return json.load(file)


def cat(path):
    """Reads a pipe to its end."""
    # pylint: disable-next=consider-using-with
    return subprocess.Popen(["cat", path], stdout=subprocess.PIPE)


def alone(place, config, *more):
    """The lines of a run's decisions by one policy, and its summary. Of zones in shadow mode, they are behind the others."""
    names = [place.path(name) for name in ("alone", "alone.shadow")]
    done = place.run("run", "--once", "--config", config, "--decisions", names[0], "--shadow", names[1], "--quiet",
                     "--summary", "json", *more)
    assert random_cases.ended_well(done.code(), done.said()), done.said()
    return read(names[0]).splitlines(), read(names[1]).splitlines(), done.summary()


def zones_of(report):
    """By policy and zone."""
    return {(one["policy"], each["zone"]): each for one in report["policies"] for each in one["zones"]}


def check_equal(place, configs, *more):
    """Requires that each policy decides, byte for byte, what it does alone; configs: their paths, all with their sources."""
    report = backtest(place, configs, "--decisions", place.path("out"), *more)
    zones = zones_of(report)
    for config in configs:
        name = os.path.basename(config).removesuffix(".json")
        enforced, shadow, summary = alone(place, config, *more)
        with open(place.path("out", name + ".jsonl"), "rb") as file:
            got = file.read().splitlines()
        assert sorted(got) == sorted(enforced + shadow), f"{name}: {len(got)} decisions, and {len(enforced + shadow)} alone"
        assert [one for one in got if one in set(enforced)] == enforced, f"{name}: not in the order of one alone"
        assert (report["lines"], report["records"]) == (summary["lines"], summary["events"]), summary
        for zone_name, figures in summary["zones"].items():
            own = zones[name, zone_name]
            assert {each: own[each] for each in ("passed", "blocked", "late", "decisions")} == \
                   {each: figures[each] for each in ("passed", "blocked", "late", "decisions")}, (name, zone_name)
            assert own["requests"] == figures["matched"]
    return report


def keys_of(judged, zone_name):
    """Keys that a run's --judged file has, and of those the ones that were ever blocked."""
    keys, blocked = set(), set()
    for one in judged:
        if one["zone"] == zone_name:
            keys.add(tuple(one["key"]))
            if one["verdict"] == "block":
                blocked.add(tuple(one["key"]))
    return keys, blocked


def test_each_policy_decides_what_it_does_alone(place):
    for number in range(CASES):
        with_queues = random_cases.with_queues(random_cases.case(SEED, number + 2), SEED, number + 2)
        rivals = [random_cases.case(SEED, number), random_cases.case(SEED, number + 1), with_queues]
        folder = place.path(f"case-{number}")
        os.mkdir(folder)
        rivals[0].write(folder)
        rest = {"sources": rivals[0].placed(folder)["sources"],
                "bus": {"partitions": random.Random(number).choice([1, 2, 8])}, "limiter": {"threads": 1 + number % 2}}
        configs = []
        for name, rival in zip("abc", rivals):
            zones = [{part: value for part, value in one.items() if part != "sources"} for one in rival.config["zones"]]
            more = {"exempt": rival.config["exempt"]} if "exempt" in rival.config else {}
            path = os.path.join(folder, name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"zones": zones, **rest, **more}, file)
            configs.append(path)
        check_equal(place, configs, *(["--sort"] if number % 4 == 3 else []))


def test_keys_and_differences_are_those_of_the_verdicts(place):
    rng = random.Random(7)
    text = b"".join(traffic.crowd(rng, 2000, 50)).decode()
    path, source = user_log(place, text=text)
    # with so many others that what is known of a key is more than one word
    others = [zone(f"other-{number}", [sliding(1000, "1m")]) for number in range(12)]
    zones = {"mild": [*others, zone("site", [sliding(12, "1m")])],
             "strict": [*others, zone("site", [fixed(5, "1m")], block_for="2m")]}
    configs = [policy(place, name + ".json", own, sources=[source], bus={"partitions": 4}) for name, own in zones.items()]
    report = backtest(place, configs)
    judged = {}
    for name, config in zip(zones, configs):
        place.good("run", "--once", "--config", config, "--judged", place.path("judged"), "--decisions",
                   place.path("alone"), "--quiet")
        judged[name] = [one for one in lines_of(place.path("judged")) if one["zone"] == "site"]
        keys, blocked = keys_of(judged[name], "site")
        figures = zones_of(report)[name, "site"]
        assert (figures["keys"], figures["blocked_keys"]) == (len(keys), len(blocked))
        assert abs(figures["blocked_share_of_keys"] - len(blocked) / len(keys)) < 1e-8
    differ = {}
    for mild, strict in zip(judged["mild"], judged["strict"]):
        assert (mild["key"], mild["at"]) == (strict["key"], strict["at"])
        if mild["verdict"] != strict["verdict"]:
            differ.setdefault(tuple(mild["key"]), (mild["at"], "mild" if mild["verdict"] == "block" else "strict"))
    *others, difference = report["differences"]
    assert [one["keys"] for one in others] == [0] * 12
    assert difference["keys"] == len(differ) > 10
    assert [(tuple(one["key"]), (one["at"], one["blocked_by"])) for one in difference["first"]] == list(differ.items())[:10]
    assert difference["requests"] == sum(a["verdict"] != b["verdict"] for a, b in zip(*judged.values()))
    check_over_time(place, report, configs, judged, path)


def check_over_time(place, report, configs, judged, log):
    """Requires that the bins are those of the verdicts, and that CSV says the same."""
    over_time = report["over_time"]
    for series in (one for one in over_time["series"] if one["zone"] == "site"):
        want = {"pass": {}, "block": {}}
        for one in judged[series["policy"]]:
            at = one["at"] // over_time["bin"] * over_time["bin"]
            want[one["verdict"]][at] = want[one["verdict"]].get(at, 0) + 1
        for name, verdict in (("passed", "pass"), ("blocked", "block")):
            got = {at: count for at, count in zip(over_time["at"], series[name]) if count}
            assert got == want[verdict], (series["policy"], name)
    place.good("backtest", *(word for path in configs for word in ("--config", path)), "--csv", place.path("csv"), "--quiet",
               log)
    with open(place.path("csv"), encoding="utf-8", newline="") as file:
        rows = [(int(row["at"]), row["policy"], row["zone"], int(row["passed"]), int(row["blocked"]))
                for row in csv.DictReader(file)]
    assert rows == [(at, series["policy"], series["zone"], series["passed"][i], series["blocked"][i])
                    for i, at in enumerate(over_time["at"]) for series in over_time["series"]]


def test_a_log_is_read_as_the_source_that_it_belongs_to(place):
    log, source = user_log(place)
    strict = policy(place, "strict.json", [zone("site", [sliding(3, "1m")])], sources=[dict(source, path="/nowhere/*.log")])
    mild = policy(place, "mild.json", [zone("site", [sliding(6, "1m")])])
    report = backtest(place, [strict, mild], log)
    figures = zones_of(report)
    assert figures["strict", "site"]["blocked_keys"] == 2 and figures["mild", "site"]["blocked_keys"] == 1, report
    with open(log, "rb") as lines:
        place.good("backtest", "--config", strict, "--json", place.path("piped"), "-", stdin=lines)
    assert json.loads(read(place.path("piped")))["policies"] == backtest(place, [strict], log)["policies"]
    combined = place.write("access.log", '192.0.2.1 - - [14/Nov/2023:22:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "x"\n' * 9)
    by_ip = policy(place, "ip.json", [zone("site", [sliding(3, "1m")], key=("ip",))])
    assert zones_of(backtest(place, [by_ip], combined))["ip", "site"]["blocked"] == 6
    two = policy(place, "two.json", [zone("site", [sliding(3, "1m")])],
                 sources=[source, {"type": "file", "path": "/nowhere/b", "format": "combined"}])
    done = place.run("backtest", "--config", two, place.write("other.log", "x\n"))
    assert done.code() == USAGE and "--format" in done.said(), done.said()
    assert zones_of(backtest(place, [two], log))["two", "site"]["blocked"] == 8


def test_a_table_is_said_to_people(place):
    log, source = user_log(place)
    configs = [policy(place, "strict.json", [zone("site", [sliding(3, "1m")])], sources=[source]),
               policy(place, "mild.json", [zone("site", [sliding(6, "1m")]), zone("more", [sliding(9, "1m")], key=("path",))])]
    done = place.good("backtest", "--config", configs[0], "--config", configs[1], log)
    said = done.out().decode()
    for words in ("2 policies on 16 lines", "strict  site", "mild    site", "50.000%", "33.333%",
                  "mild against strict, zone site: 2 keys and 5 requests differ", "u1  blocked by strict alone",
                  "mild, zone more: strict has no zone of this name with the same key"):
        assert words in said, f"{words!r} is not in: {said}"


def test_a_table_stands_below_its_head(place):
    log, source = user_log(place)
    names = ("sliding_window.json", "a.json", "a-policy-of-a-very-long-name-indeed.json")
    configs = [policy(place, name, [zone("site", [sliding(3, "1m")])], sources=[source]) for name in names]
    done = place.good("backtest", *(word for path in configs for word in ("--config", path)), log)
    table = done.out().decode().split("\n\n")[1].splitlines()
    assert len(table) == 4 and len({len(one) for one in table}) == 1, table
    assert [one.index("site") for one in table[1:]] == [table[0].index("zone")] * 3, table


def test_the_mistakes_of_all_policies_are_said_and_nothing_is_written(place):
    log, source = user_log(place)
    good = policy(place, "good.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    bad = [policy(place, "bad-1.json", [zone("site", [sliding(0, "1m")])]),
           policy(place, "bad-2.json", [zone("site", [sliding(3, "1x")], mach={"path": "/a"})]), place.path("none.json")]
    done = place.run("backtest", *(word for path in [good, *bad] for word in ("--config", path)), "--json", place.path("r"),
                     "--csv", place.path("c"), "--decisions", place.path("d"), log)
    assert done.code() == USAGE, done.said()
    for words in ("bad-1.json", "rate", "bad-2.json", "window", "did you mean \"match\"", "none.json"):
        assert words in done.said(), f"{words!r} is not in: {done.said()}"
    assert not any(os.path.exists(place.path(name)) for name in "rcd")


def test_policies_of_one_name_are_told_apart(place):
    log, source = user_log(place)
    os.mkdir(place.path("old"))
    zones = [zone("site", [sliding(3, "1m")])]
    configs = [policy(place, "weir.json", zones, sources=[source]), policy(place, "old/weir.json", zones)]
    report = backtest(place, configs, "--decisions", place.path("out"), log)
    assert [one["policy"] for one in report["policies"]] == configs
    assert sorted(os.listdir(place.path("out"))) == sorted(path.replace("/", "_") + ".jsonl" for path in configs)
    done = place.run("backtest", "--config", configs[0], "--config", configs[0], log)
    assert done.code() == USAGE and "is given twice" in done.said(), done.said()


def test_what_a_zone_lacks_is_said_by_its_name(place):
    log, source = user_log(place, text="".join(burst("u1", 1, traffic.START_MS - 2000 * i) for i in range(20)))
    configs = [policy(place, "a.json", [zone("early", [fixed(5, "1s")])], sources=[source]),
               policy(place, "b.json", [zone("codes", [fixed(5, "1s")], match={"code": ["x"]})])]
    done = place.good("backtest", "--config", configs[0], "--config", configs[1], log)
    assert "--sort judges in the order of time" in done.out().decode(), done.out()
    assert 'zone "0"' not in done.said(), done.said()
    assert zones_of(backtest(place, configs, "--sort", log))["a", "early"]["late"] == 0


def test_what_is_asked_of_others_is_said_of_each_policy(place):
    log, source = user_log(place)

    def exempt(name, *entries):
        return policy(place, name, [zone("site", [sliding(3, "1m")], exempt=list(entries), key=("ip",))], sources=[source])
    plain = policy(place, "plain.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    lists = exempt("lists.json", {"list": "https://lists.example/robots.txt"})
    done = place.run("backtest", "--config", plain, "--config", lists, "--json", place.path("r"), log)
    assert done.code() == USAGE and f"{lists}: an \"exempt\" names a list of another server" in done.said(), done.said()
    assert not os.path.exists(place.path("r"))
    robots = exempt("robots.json", {"verified": ["googlebot"]})
    done = place.good("backtest", "--config", plain, "--config", robots, log)
    assert f"{robots}: a backtest asks no name server" in done.said() and plain not in done.said(), done.said()
    odd = policy(place, "odd.json", [zone("site", [sliding(3, "1m")], match={"nothing": ["x"]})])
    done = place.good("backtest", "--config", plain, "--config", odd, "--format", "combined", log)
    assert f"{odd}: zone \"site\" never matches" in done.said(), done.said()


def test_different_sources_are_no_comparison(place):
    _, source = user_log(place)
    _, other = user_log(place, "b.log")
    zones = [zone("site", [sliding(3, "1m")])]
    configs = [policy(place, "a.json", zones, sources=[source]), policy(place, "b.json", zones, sources=[other])]
    done = place.run("backtest", "--config", configs[0], "--config", configs[1])
    assert done.code() == USAGE and "a.json" in done.said() and "b.json" in done.said(), done.said()
    done = place.run("backtest", "--config", policy(place, "c.json", zones))
    assert done.code() == USAGE and "name the logs" in done.said(), done.said()


def test_zones_that_count_decisions_are_refused(place):
    log, source = user_log(place)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")]),
                                      zone("again", [sliding(1, "1h")], key=("key",), sources=["decisions"], match={"zone": ["site"]})],
                    sources=[source, {"type": "decisions"}])
    done = place.run("backtest", "--config", config, log)
    assert done.code() == USAGE and "\"again\" counts the decisions" in done.said(), done.said()


def test_a_log_that_ends_in_the_middle_of_a_line(place):
    text = burst("u1", 5)
    log, source = user_log(place, text=text + line(traffic.START_MS + 9, "u1")[:-9])
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    report = check_equal(place, [config])
    assert (report["lines"], report["malformed"]) == (6, 1), report


def test_an_output_that_is_read_is_refused_and_left_alone(place):
    log, source = user_log(place)
    before = read(log)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    for option in ("--json", "--csv"):
        done = place.run("backtest", "--config", config, option, log)
        assert done.code() == USAGE and option in done.said() and read(log) == before, done.said()
    text = read(config)
    for more in ((log,), ("--state", place.path("state"))):
        done = place.run("backtest", "--config", config, "--json", config, *more)
        assert done.code() == USAGE and "--json" in done.said() and read(config) == text, done.said()
    for name in ("a.jsonl", "a.jsonl.unfinished"):
        own = place.write(name, before)
        done = place.run("backtest", "--config", config, "--decisions", place.path("."), "--format", "json", own)
        assert done.code() == USAGE and "--decisions" in done.said() and read(own) == before, done.said()


def test_what_is_no_file_is_written_and_not_replaced(place):
    log, source = user_log(place)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    want = backtest(place, [config], log)
    os.mkfifo(place.path("pipe"))
    with cat(place.path("pipe")) as reader:
        place.good("backtest", "--config", config, "--quiet", "--json", place.path("pipe"), log)
        assert json.loads(reader.communicate()[0]) == want
    assert stat.S_ISFIFO(os.lstat(place.path("pipe")).st_mode)
    read_end, write_end = os.pipe()
    place.good("backtest", "--config", config, "--quiet", "--json", f"/dev/fd/{write_end}", log, pass_fds=[write_end])
    os.close(write_end)
    with open(read_end, "rb") as file:
        assert json.load(file) == want
    os.chmod(place.write("there", "of before"), 0o600)
    for name in ("there", "made"):
        os.symlink(name, place.path("link"))
        place.good("backtest", "--config", config, "--quiet", "--json", place.path("link"), log)
        assert os.readlink(place.path("link")) == name and json.loads(read(place.path(name))) == want
        os.unlink(place.path("link"))
    assert stat.S_IMODE(os.stat(place.path("there")).st_mode) == 0o600
    os.mkfifo(place.path("a.jsonl"))
    done = place.run("backtest", "--config", config, "--decisions", place.path("."), log)
    assert done.code() == USAGE and "a.jsonl is not a regular file" in done.said(), done.said()
    assert stat.S_ISFIFO(os.lstat(place.path("a.jsonl")).st_mode)


def test_two_outputs_of_one_path_are_refused(place):
    log, source = user_log(place)
    os.makedirs(place.path("a", "b"))
    os.mkdir(place.path("a_b"))
    config = policy(place, "weir.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    os.symlink("r", place.path("link"))
    for words in (("--json", place.path("r"), "--csv", place.path("r")),
                  ("--json", place.path("r"), "--html", place.path("a/../r")),
                  ("--decisions", place.path("a"), "--csv", place.path("a/weir.jsonl"))):
        done = place.run("backtest", "--config", config, *words, log)
        assert done.code() == USAGE and "would both write" in done.said(), done.said()
    configs = [policy(place, name, [zone("site", [sliding(3, "1m")])], sources=[source])
               for name in ("a/b/weir.json", "a_b/weir.json")]
    done = place.run("backtest", "--config", configs[0], "--config", configs[1], "--decisions", place.path("d"), log)
    assert done.code() == USAGE and "would both write" in done.said(), done.said()
    assert not any(os.path.exists(place.path(name)) for name in ("r", "d", "a/weir.jsonl"))


def test_an_output_that_cannot_be_written_is_said_before_anything_is_judged(place):
    _, source = user_log(place)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    place.write("r", "of before")
    # standard input never ends: it is not read
    weir = place.start("backtest", "--config", config, "--json", place.path("r"), "--html", place.path("none", "r"), "-",
                       stdin=subprocess.PIPE)
    assert weir.wait() == FAILED and place.path("none", "r") in weir.said(), weir.said()
    weir.process.stdin.close()
    assert read(place.path("r")) == b"of before" and not os.path.exists(place.path("r.unfinished"))


def test_a_ceiling_bounds_the_buckets_of_all_policies(place):
    rng = random.Random(3)
    log, source = user_log(place, text=b"".join(traffic.crowd(rng, 3000, 1500)).decode())
    configs = [policy(place, name, [zone("site", [sliding(rate, "1h")])], sources=[source])
               for name, rate in (("a.json", 2), ("b.json", 3))]
    want = backtest(place, configs, log)
    got = backtest(place, configs, "--memory", "32KiB", log)
    assert not got["keys_exact"] and want["keys_exact"]
    for policy_name in "ab":
        for name in ("passed", "blocked", "decisions"):
            assert zones_of(got)[policy_name, "site"][name] == zones_of(want)[policy_name, "site"][name]
        assert 0 < zones_of(got)[policy_name, "site"]["keys"] < zones_of(want)[policy_name, "site"]["keys"]


def test_keys_that_are_not_known_are_not_none(place):
    """Numbers of keys that were left out are no zeros, and have no shares."""
    log, source = user_log(place)
    configs = [policy(place, name, [zone("site", [sliding(rate, "1h")])], sources=[source])
               for name, rate in (("a.json", 2), ("b.json", 3))]
    got = backtest(place, configs, "--memory", "1", log)
    for own in zones_of(got).values():
        assert own["keys"] is own["blocked_keys"] is own["blocked_share_of_keys"] is None and own["blocked"] > 0, own
    (difference,) = got["differences"]
    assert not got["keys_exact"] and difference["keys"] is None and difference["requests"] > 0, difference
    text = place.good("backtest", *(word for path in configs for word in ("--config", path)), "--memory", "1", log).out().decode()
    assert len(re.findall(r"(?m)^  [ab] .* unknown +unknown +unknown$", text)) == 2 and " 0 key" not in text, text
    with_some = backtest(place, configs, "--memory", "32KiB", log)
    assert all(own["keys"] == 3 and own["blocked_share_of_keys"] > 0 for own in zones_of(with_some).values()), with_some


def test_that_nothing_was_judged_is_said(place):
    log, source = user_log(place)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")], match={"path": ["/login"]})], sources=[source])
    for text, words in (("", "nothing was judged: what was read has no lines"),
                        ("x\ny\n", "nothing was judged: no line became a request: check --format"),
                        (burst("u1", 3, path="/"), "nothing was judged: no request is of these zones: check their match"),
                        (burst("u1", 1, path="/login"), None)):
        done = place.good("backtest", "--config", config, "--quiet", place.write(os.path.basename(log), text))
        assert (words or "") in done.said() and ("nothing was judged" in done.said()) == (words is not None), done.said()


def numbers_of(report):
    """What must not depend on how the events came."""
    return {name: {each: own[each] for each in ("passed", "blocked", "late", "decisions", "keys", "blocked_keys")}
            for name, own in zones_of(report).items()}


def test_the_log_of_a_run_is_judged_as_its_lines_are(place):
    run = Run(place, log=b"".join(traffic.crowd(random.Random(9), 8000, 80)).decode()).start()
    run.override("block", "--zone", "site", "u1", "--reason", "test")
    until(lambda: run.weir.process.poll() is None and run.published(key=["u1"], reason="test"), "the command is carried out")
    zones = {"weir": run.zones, "mild": [zone("site", [sliding(9, "1h")], block_for="2h"), zone("more", [fixed(2, "10m")])]}
    source = dict(traffic.source(run.log), follow=False)
    configs = [policy(place, f"{name}-1.json", own, sources=[source], bus={"partitions": 4}) for name, own in zones.items()]
    lines = backtest(place, configs)
    # beside the run, once it has read all of it
    until(lambda: backtest(place, configs, "--state", run.state)["events"] == 2 * lines["records"], "all events",
          running=run.weir)
    report = backtest(place, configs, "--state", run.state)
    assert numbers_of(report) == numbers_of(lines), (numbers_of(report), numbers_of(lines))
    assert report["over_time"] == lines["over_time"] and "lines" not in report
    assert [(one["keys"], one["requests"]) for one in report["differences"]] == \
           [(one["keys"], one["requests"]) for one in lines["differences"]]
    run.stop()
    own = [one for one in run.decisions() if "reason" not in one and one["zone"] == "pair"]
    assert zones_of(report)["weir-1", "pair"]["decisions"] == len(own) > 0
    nothing = backtest(place, configs[:1], "--state", run.state, "--topic", "1000000..")
    part = backtest(place, configs[:1], "--state", run.state, "--topic", "0..2")
    assert nothing["events"] == 0 < part["events"] <= report["events"]
    done = place.run("backtest", "--config", configs[0], "--state", run.state, "--memory", "64KiB")
    assert done.code() == FAILED and "--memory" in done.said() and "share of limiter.memory, 16.0 KiB" in done.said(), done.said()


def test_a_stretch_of_the_log_that_cannot_be_meant_is_refused(place):
    run = Run(place, log=burst("u1", 9)).start()
    run.published(key=["u1"])
    run.stop()
    for words in (("--state", run.state, "--topic", "5..3"), ("--state", run.state, "--topic", "5..5"),
                  ("--state", run.state, "--topic", "2026-01-01T00:00:00Z..2025-01-01T00:00:00Z"),
                  ("--topic", ".."), ("--state", run.state, "--topic", "2001-01-01T00:00:00Z..")):
        done = place.run("backtest", "--config", run.config, "--json", place.path("r"), *words)
        assert done.code() == USAGE and "--topic" in done.said() and not os.path.exists(place.path("r")), (words, done.said())
    for stretch, wrong in (("x..y", "FROM is neither"), ("0..y", "TO is neither"), ("5", "FROM..TO is meant"), ("5..3", "must be before")):
        done = place.run("backtest", "--config", run.config, "--state", run.state, "--topic", stretch)
        assert done.code() == USAGE and wrong in done.said(), (stretch, done.said())
        assert ("must be before" in done.said()) == (stretch == "5..3"), done.said()


def begin_again(run, rate, lines):
    """Another life of a run, with another limit and more lines: the version of its policy is the next one."""
    run.zones[0]["limits"] = [sliding(rate, "1h")]
    run.place.config(run.zones, [traffic.source(run.log)], bus={"partitions": 4})
    run.append(lines)
    run.start().published(key=["u2"])
    run.stop()


def one_zone_run(place):
    """A run that has judged nine lines by one zone, and ended."""
    run = Run(place, log=burst("u1", 9), zones=[zone("site", [sliding(3, "1h")], id=1)]).start()
    run.published(key=["u1"])
    run.stop()
    return run


def test_a_policy_that_comes_while_it_runs_is_loaded(place):
    run = one_zone_run(place)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1h")])])
    os.mkfifo(place.path("pipe"))
    weir = place.start("backtest", "--config", config, "--state", run.state, "--json", place.path("r"), "--csv",
                       place.path("pipe"))
    # it knows the policies, and waits for who reads the pipe before it reads the log
    until(lambda: os.path.exists(place.path("r.unfinished")), "it opens its outputs", running=weir)
    begin_again(run, 2, burst("u2", 5))
    with cat(place.path("pipe")) as reader:
        assert reader.communicate()[0].startswith(b"at,policy,zone")
    assert weir.wait() == DONE, weir.said()
    assert json.loads(read(place.path("r")))["events"] == 14


def test_events_of_a_policy_that_nobody_has_are_told(place):
    run = one_zone_run(place)
    begin_again(run, 2, burst("u2", 5))
    assert backtest(place, [run.config], "--state", run.state)["events"] == 14
    [store] = glob.glob(place.path("state", "*.db"))
    with contextlib.closing(sqlite3.connect(store)) as opened, opened:
        assert opened.execute("DELETE FROM policy_version WHERE version = 2").rowcount == 1
    done = place.run("backtest", "--config", run.config, "--state", run.state, "--json", place.path("r"))
    assert done.code() == FAILED and "there is no policy 2" in done.said(), done.said()
    assert json.loads(read(place.path("r")))["events"] == 9


def test_zones_that_a_log_does_not_carry_are_named(place):
    run = Run(place, log=burst("u1", 9)).start()
    run.published(key=["u1"])
    run.stop()
    config = policy(place, "other.json", [zone("site", [sliding(2, "1m")]), zone("paths", [sliding(3, "1m")], key=("path",)),
                                          zone("posts", [sliding(3, "1m")], match={"method": ["POST"]})])
    done = place.run("backtest", "--config", config, "--state", run.state, "--json", place.path("r"))
    assert done.code() == USAGE and not os.path.exists(place.path("r")), done.said()
    for words in ('other, zone "paths"', 'other, zone "posts"', "Name the raw logs"):
        assert words in done.said(), f"{words!r} is not in: {done.said()}"
    assert '"site"' not in done.said(), done.said()
    for words in (("--state", run.state, run.log), ("--state", run.state, "--sort"), ("--topic", "soon.."), ("--topic", "5")):
        done = place.run("backtest", "--config", config, *words)
        assert done.code() == USAGE and "Try " in done.said(), (words, done.said())


def handles(pid, number):
    """Whether a process has a function of its own for a signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt"))
    return caught >> number - 1 & 1 == 1


def unread(pipe):
    """Bytes that nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def is_waiting(pid):
    """Whether a process's first thread sleeps."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


def test_a_signal_ends_it_with_what_it_has(place):
    _, source = user_log(place)
    config = policy(place, "a.json", [zone("site", [sliding(3, "1m")])], sources=[source])
    weir = place.start("backtest", "--config", config, "--json", place.path("r"), "-",
                       stdin=subprocess.PIPE)
    until(lambda: handles(weir.pid, signal.SIGTERM), "it handles the signal", running=weir)
    weir.process.stdin.write(burst("u1", 50).encode())
    weir.process.stdin.flush()
    until(lambda: unread(weir.process.stdin) == 0 and is_waiting(weir.pid), "it has read all, and waits", running=weir)
    weir.signal(signal.SIGTERM)
    assert weir.wait() == STOPPED, weir.said()
    report = json.loads(read(place.path("r")))
    figures = zones_of(report)["a", "site"]
    assert not report["finished"] and (figures["passed"], figures["blocked"]) == (3, 47), report
    assert "stopped by a signal" in weir.out().decode()


if __name__ == "__main__":
    cases.main(globals())
