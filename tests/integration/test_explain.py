#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir explain` as people use it: beside a run that follows, after a rotation, of an operator's block; what is missing."""

import contextlib
import csv
import gzip
import io
import json
import os
import signal
import socket
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import archiver_api, cases, metrics
from support.place import free_port, lines_of, read, until
from support.run_local import DONE, FAILED, USAGE, Run
from support.terminal import Terminal
from support.traffic import START_MS, burst, fixed, line, sliding, source, zone

LIMIT = ("--format", "combined", "--key", "ip", "--limit", "3/1m")


def combined(ip, count, minute=0, agent="x"):
    """Lines of a web server's log, a second apart."""
    return "".join(f'{ip} - - [14/Nov/2023:22:{minute:02}:{i:02} +0000] "GET /{i} HTTP/1.1" 200 5 "-" "{agent}"\n'
                   for i in range(count))


def explained(run, *words, code=DONE):
    """The answers about keys or ids."""
    return [json.loads(text) for text in run.command("explain", *words, "--json", code=code).out().splitlines()]


def shown(answer):
    """(file, offset, line) of its events."""
    return [(event["file"], event["offset"], event["line"]) for event in answer["events"]]


def at(path, text, begin=0):
    """Where lines stand in a file, as weir shows them."""
    places = []
    for one in text.splitlines(keepends=True):
        places.append((path, begin, one.rstrip("\n")))
        begin += len(one.encode())
    return places


def test_a_run_that_follows_is_explained_beside_it(place):
    run = Run(place).start()
    text = burst("ann", 4, path="/a") + burst("bob", 2, path="/b")
    run.append(text)
    decision = run.published(key=["ann"])
    answer, = explained(run, decision["id"])
    assert answer["decision"] == answer["again"] == decision and answer["equal"] and not answer["missing"], answer
    assert shown(answer) == at(run.log, text)[:4] and answer["policy"] == 1, answer
    assert [event["decided"] for event in answer["events"]] == [False] * 3 + [True], answer
    assert explained(run, "ann") == [answer]
    for words in (("bob",), ("ann|/x",)):
        assert "no decision of this key" in run.command("explain", *words, code=FAILED).said()
    run.append(burst("ann", 3, path="/a", start_ms=START_MS + 100))  # six of one user and path
    pair = run.published(key=["ann", "/a"])
    assert shown(explained(run, "ann|/a")[0])[-1][2] == line(START_MS + 101, "ann", path="/a").rstrip(), pair
    assert run.weir.code() is None
    run.stop()
    assert explained(run, decision["id"]) == [answer]
    assert explained(run, "ann|/a")[0]["equal"]


def test_lines_are_found_after_rotations_and_in_compressed_files(place):
    run = Run(place).start()
    first, second, third = burst("ann", 2), burst("ann", 1, START_MS + 10), burst("ann", 1, START_MS + 20)
    run.append(first)
    until(lambda: b"ann" in run.command("decode").out(), "the first lines are read", running=run.weir)
    for number, text in ((2, second), (1, third)):
        os.rename(run.log, run.log + f".{number}")
        place.write("log", text)
        until(lambda n=5 - number: run.command("decode").out().count(b'"time":') == n, "they are read", running=run.weir)
    run.published(key=["ann"])
    with gzip.open(run.log + ".2.gz", "wb") as file:
        file.write(read(run.log + ".2"))
    os.remove(run.log + ".2")
    answer, = explained(run, "ann")
    assert shown(answer) == at(run.log + ".2.gz", first) + at(run.log + ".1", second) + at(run.log, third), answer
    os.remove(run.log + ".1")
    answer, = explained(run, "ann", code=FAILED)
    assert answer["equal"] and [event["line"] is None for event in answer["events"]] == [False, False, True, False], answer
    assert answer["missing"] == ["1 of 4 lines: no file of the sources has them any more."]
    place.write("log.1", burst("eve", 1, START_MS + 10))  # another file with a line that ends there
    assert explained(run, "ann", code=FAILED)[0]["events"][2]["line"] is None
    joined = burst("eve", 1, START_MS) + burst("ann", 1, START_MS + 9) + second
    place.write("log.9", joined)
    answer, = explained(run, "ann", code=FAILED)
    assert answer["events"][2]["found"] == "time" and shown(answer)[2] == at(run.log + ".9", joined)[2], answer
    assert "found by key and time" in answer["missing"][0], answer
    run.stop()


def test_operators_and_policies_are_explained(place):
    run = Run(place, zones=[zone("site", [sliding(3, "1h")], id=1), zone("old", [fixed(99, "1h")], id=3)]).start()
    run.override("block", "--zone", "site", "ann", "--reason", "scraping", "--by", "kim")
    block = run.published(key=["ann"])
    answer, = explained(run, "ann")
    assert answer["decision"] == answer["again"] == block and answer["equal"] and answer["events"] == [], answer
    words = run.command("explain", "ann", "--zone", "site").out().decode()
    assert words.startswith("Blocked ann in zone site from ") and " until it is lifted, as kim commanded: scraping.\n" in words, words
    run.override("override", "--zone", "site", "bob", "--rate", "2")
    run.append(burst("bob", 7))
    run.published(key=["bob"])
    answer, = explained(run, "bob")
    assert answer["decision"]["limit"]["rate"] == 6 and len(answer["events"]) == 7, answer
    run.override("lift", "--zone", "site", "bob")
    lift = run.published(key=["bob"], action="lift")
    assert explained(run, "bob")[0]["again"] == lift
    run.append(burst("bob", 7, START_MS + 1000))
    again = until(lambda: [one for one in run.decisions() if one["key"] == ["bob"]][2:], "is blocked again", running=run.weir)
    answer, = explained(run, again[0]["id"])
    assert [event["at"] for event in answer["events"]] == [START_MS + 1000 + i for i in range(7)], answer
    run.stop()
    place.config([zone("site", [sliding(3, "1h")], id=1)], [source(run.log)], bus={"partitions": 4})
    run.start()
    lifted = run.published(zone="old")
    answer, = explained(run, lifted["id"])
    assert answer["again"] == lifted and answer["equal"] and answer["policy"] == 2, answer
    run.stop()


def test_what_operators_hold_for_a_member_of_a_network_is_explained(place):
    """The narrowest counts, the key's own first; an allow that ends no block is published nowhere."""
    def client(mode="enforce"):
        return zone("client", [fixed(3, "1h")], key=("ip",), id=1, mode=mode)
    run = Run(place, zones=[client()]).start()
    for words in (("block", "10.0.0.0/8"), ("allow", "10.2.0.0/16"), ("allow", "10.1.2.3"), ("block", "10.2.7.0/24")):
        run.override(*words, "--zone", "client", "--by", "kim")
    network = run.published(key=["10.2.7.0/24"])
    asked = {"10.9.9.9": ("block", "10.0.0.0/8", None), "10.1.2.3": ("allow", "10.1.2.3", "10.0.0.0/8"),
             "10.2.2.3": ("allow", "10.2.0.0/16", "10.0.0.0/8"), "10.2.7.1": ("block", "10.2.7.0/24", None)}
    for key, (order, holder, held) in asked.items():
        answer, = explained(run, key)
        assert (answer["order"]["order"], answer["order"]["key"], answer["gateways_hold"]) == (order, [holder], held), answer
        assert (answer["decision"] is None) == (order == "allow") and not answer["missing"], answer
    assert explained(run, "10.2.7.1")[0]["decision"] == network
    words = run.command("explain", "10.2.2.3").out().decode()
    assert words.startswith("10.2.2.3 is allowed in zone client, as part of 10.2.0.0/16, as kim commanded.\n"), words
    assert "they hold 10.0.0.0/8" in words and "Blocked" not in words, words
    run.append(burst("10.9.9.8", 1) + burst("10.1.2.3", 9))  # an allowed one's own limit blocks nobody
    run.override("block", "--zone", "client", "10.9.9.8", "--by", "ann")
    run.published(key=["10.9.9.8"])
    assert explained(run, "10.9.9.8")[0]["order"]["by"] == "ann", "its own counts first"
    run.override("allow", "--zone", "client", "10.0.0.0/8")
    run.published(key=["10.0.0.0/8"], action="lift")
    assert explained(run, "10.9.9.9")[0]["order"]["order"] == "allow", "all of it"
    run.stop()
    assert explained(run, "10.1.2.3")[0]["gateways_hold"] is None, "a stopped run's state says it"
    place.config([client("shadow")], [source(run.log)], bus={"partitions": 4})
    run.start()
    run.published(key=None, action="lift")
    words = run.command("explain", "10.2.7.1").out().decode()
    assert "10.2.7.1 would be blocked in zone client" in words and "Blocked" not in words, words
    run.stop()


def test_a_finished_run_is_explained_by_its_sources(place):
    log = place.write("access.log", combined("192.0.2.1", 5, agent="\x1b]0;you\x07\x1b[2J\x9b\u202e\u2066\ufeff"))
    here = {"cwd": place.directory}
    place.good("run", "--once", *LIMIT, "--state", "state", "--decisions", "out", "--quiet", "access.log", **here)
    decision, = lines_of(place.path("out"))
    answer = json.loads(place.good("explain", decision["id"], "--state", place.path("state"), "--json").out())
    assert answer["equal"] and not answer["missing"] and answer["found_in"] == place.path("out"), answer
    assert [event["offset"] for event in answer["events"]] == [0] + [
        sum(len(one) for one in read(log).splitlines(keepends=True)[:i]) for i in (1, 2, 3)], answer
    words = place.good("explain", "192.0.2.1", "--state", "state", env={**os.environ, "TZ": "Europe/Berlin"}, **here).out().decode()
    assert words.startswith("Blocked 192.0.2.1 in zone ip from 2023-11-14 23:00:03 CET until 2023-11-14 23:01:00 CET, "
                            "because of 3 events in 1m (policy 1). The fourth is one too many.\n"), words
    assert "Judged again: the same decision, byte for byte.\n" in words, words
    assert "\n> 2023-11-14 23:00:03 CET  access.log:" in words and '"GET /3 HTTP/1.1"' in words, words
    assert not [letter for letter in words if letter != "\n" and (ord(letter) < 32 or 127 <= ord(letter) < 160)], words
    assert "\\u202e\\u2066\\ufeff" in words and not set("\u202e\u2066\ufeff") & set(words), ascii(words)
    with gzip.open(log + ".1.gz", "wb") as file:
        file.write(read(log))
    place.write("access.log", combined("192.0.2.9", 5))  # what was read is compressed now, and another stands there
    packed = json.loads(place.good("explain", decision["id"], "--state", place.path("state"), "--json").out())
    assert [event["offset"] for event in packed["events"]] == [event["offset"] for event in answer["events"]], packed
    assert {event["file"] for event in packed["events"]} == {"access.log.1.gz"}, packed
    os.remove(log + ".1.gz")
    lost = place.run("explain", decision["id"], "--state", place.path("state"), "--json")
    gone = json.loads(lost.out())
    assert lost.code() == FAILED and gone["again"] is None and "are not what they were" in gone["missing"][0], gone
    os.remove(log)
    gone = json.loads(place.run("explain", decision["id"], "--state", place.path("state"), "--json").out())
    assert "Not every source can be read again" in gone["missing"][0] and gone["events"] == [], gone


def test_lines_are_cut_to_the_terminal(place):
    place.write("access.log", combined("192.0.2.1", 5, agent="é" * 300))
    place.good("run", "--once", *LIMIT, "--state", "state", "--decisions", "out", "--quiet", "access.log", cwd=place.directory)
    for columns in (100, 40):
        with Terminal(columns) as terminal:
            terminal.read()
            place.good("explain", "192.0.2.1", "--state", place.path("state"), stdout=terminal.fd)
            rows = [row for row in terminal.whole().splitlines() if "192.0.2.1 - -" in row]
        assert len(rows) == 4 and all(len(row) <= columns and row.endswith("…") for row in rows), rows


def test_a_run_to_standard_output_is_told_its_decisions(place):
    place.write("access.log", combined("192.0.2.1", 5) + combined("192.0.2.2", 4))
    out = place.good("run", "--once", *LIMIT, "--state", place.path("state"), place.path("access.log")).out()
    place.write("kept", out)
    identity = json.loads(out.splitlines()[1])["id"]
    done = place.run("explain", identity, "--state", place.path("state"), "--json")
    answer = json.loads(done.out())
    assert done.code() == FAILED and answer["decision"] is None and answer["again"]["id"] == identity, answer
    assert "--decisions" in answer["missing"][0] and len(answer["events"]) == 4, answer
    place.good("explain", identity, "--state", "../state", "--decisions", "../kept", cwd=os.path.dirname(place.write("in/it", "")))
    os.rename(place.path("kept"), place.path("kept.1"))
    place.good("explain", identity, "--state", "../state", "--decisions", "../kept", cwd=place.path("in"))
    done = place.run("explain", identity, "--state", place.path("state"), "--decisions", "../none", cwd=place.path("in"))
    assert done.code() == FAILED and "cannot open ../none: No such file" in done.said() and not done.out(), (done.said(), done.out())
    changed = place.write("changed", out.replace(b'"count":3', b'"count":2'))
    done = place.run("explain", identity, "--state", place.path("state"), "--decisions", changed)
    assert done.code() == FAILED and b"Judged again, the decision differs:\n" in done.out(), done.out()


def test_a_line_is_shown_for_one_event(place):
    run = Run(place).start()
    first, second = (line(START_MS, "ann", path=path) for path in ("/a", "/b"))
    run.append(first + first)
    until(lambda: b"ann" in run.command("decode").out(), "the first lines are read", running=run.weir)
    os.rename(run.log, run.log + ".1")
    place.write("log", second + second)
    run.published(key=["ann"])
    run.stop()
    os.remove(run.log + ".1")
    answer, = explained(run, "ann", code=FAILED)
    assert shown(answer) == [(None, None, None)] * 2 + at(run.log, second + second), answer
    assert "2 of 4 lines: no file" in answer["missing"][0], answer
    place.write("log.2", "eve\n" + first)
    answer, = explained(run, "ann", code=FAILED)
    assert [event["found"] for event in answer["events"]] == ["time", None, "position", "position"], answer
    for number in range(300):
        place.write(f"log.old{number}", "eve\n")
    assert "More files than 256 may have" in explained(run, "ann", code=FAILED)[0]["missing"][-1]


def test_only_so_many_decisions_are_searched_for(place):
    run = Run(place).start()
    run.append("".join(burst(f"u{number}", 4) for number in range(17)))
    until(lambda: len(run.decisions()) == 17, "all are blocked", running=run.weir)
    run.stop()
    os.remove(run.log)
    said = [any("at most 16 decisions at once" in one for one in answer["missing"])
            for answer in explained(run, *(f"u{number}" for number in range(17)), code=FAILED)]
    assert said == [False] * 16 + [True], said


def test_the_newest_of_many_events_are_kept(place):
    many = 25_000
    text = "".join(line(START_MS + i // 10, "ann") for i in range(many + 1))
    log = place.write("log", text)
    for algorithm, more in (("fixed_window", {"rate": many, "window": "1h"}), ("queue", {"length": many, "hold": "1h"}),
                            ("token_bucket", {"rate": many, "window": "1d"})):
        state = place.path(algorithm)
        config = place.config([zone("site", [{"algorithm": algorithm, **more}], id=1)], [source(log, follow=False)])
        out = place.good("run", "--once", "--config", config, "--state", state).out()
        done = place.run("explain", "ann", "--state", state, "--decisions", place.write("kept", out), "--json")
        answer = json.loads(done.out())
        assert done.code() == FAILED and answer["equal"] and len(answer["events"]) == 10_001, (algorithm, answer["missing"])
        assert shown(answer) == at(log, text)[-10_001:], algorithm
        assert answer["missing"] == ["15000 earlier counted events are left out: the newest 10000 are shown."], answer["missing"]


def test_fields_of_the_newest_events_are_kept(place):
    """Bounded in bytes: control characters take six times their room in an answer."""
    names, many = [f"f{i}" for i in range(16)], 900
    text = "".join(line(START_MS + i, "ann", **{name: "\x01" * 500 for name in names}) for i in range(many + 1))
    form = {"type": "json", "unit": "ms", "fields": {name: name for name in names}}
    config = place.config([zone("site", [fixed(many, "1h")], id=1, history={"fields": names})],
                          [source(place.write("log", text), format=form, follow=False)])
    out = place.good("run", "--once", "--config", config, "--state", place.path("once")).out()
    done = place.run("explain", "ann", "--state", place.path("once"), "--decisions", place.write("kept", out), "--json")
    answer = json.loads(done.out())
    gone = [event["fields"] is None for event in answer["events"]]
    assert done.code() == FAILED and answer["equal"] and gone == sorted(gone, reverse=True), answer["missing"]
    assert 0 < gone.count(True) < many / 2 and len(done.out()) < 90 << 20, gone.count(True)
    assert f"The fields of {gone.count(True)} of {many + 1} events are left out" in answer["missing"][0], answer["missing"]


def trim(run):
    """Fills the log of events until its beginning is deleted."""
    identity = run.decisions()[0]["id"]
    for number in range(40):
        run.append("".join(line(START_MS + number, f"u{number}-{i}-{'x' * 60}") for i in range(500)))
    until(lambda: explained_missing(run, identity), "the log is deleted", running=run.weir)


SMALL_LOG = {"bus": {"segment_size": "64KiB", "explain_size": "64KiB"}, "limiter": {"checkpoint_interval": "100ms"}}


def test_a_level_that_never_rested_is_told(place):
    limit = {"algorithm": "token_bucket", "rate": 4, "window": "1h"}
    # What stays is more than the frames of other partitions that may be written behind ann's.
    log = {**SMALL_LOG, "bus": {"segment_size": "64KiB", "explain_size": "512KiB"}}
    run = Run(place, zones=[zone("site", [limit], id=1)], **log).start()
    minute = 60_000
    run.append("".join(line(START_MS, "ann") for _ in range(5)))
    run.published(key=["ann"])
    trim(run)
    run.append("".join(line(START_MS + 45 * minute, "ann") for _ in range(6)))
    run.append("".join(line(START_MS + 61 * minute, "ann") for _ in range(3)))
    decision = until(lambda: [one for one in run.decisions() if one["at"] == START_MS + 61 * minute], "is blocked", running=run.weir)[0]
    answer, = explained(run, decision["id"], code=FAILED)
    assert answer["equal"] and "The level was never at rest since the log begins" in answer["missing"][0], answer
    run.append("".join(line(START_MS + 600 * minute, "ann") for _ in range(5)))
    decision = until(lambda: [one for one in run.decisions() if one["at"] == START_MS + 600 * minute], "is blocked", running=run.weir)[0]
    answer, = explained(run, decision["id"])
    assert len(answer["events"]) == 5, answer
    run.stop()


def test_exempt_lists_are_not_read_for_an_answer(place):
    many = "".join(f"root{number}\n" for number in range(10_001))  # so that the policy has the path alone
    listed = [zone("site", [sliding(3, "1h")], id=1, exempt={"file": place.write("exempt", many)})]
    run = Run(place, zones=listed).start()
    run.append(burst("ann", 4))
    run.published(key=["ann"])
    run.stop()
    os.remove(place.path("exempt"))
    assert explained(run, "ann")[0]["equal"]
    os.rename(run.log, place.path("log.1"))
    place.write("log.2", "eve\n" + read(place.path("log.1")).decode())
    os.remove(place.path("log.1"))
    answer, = explained(run, "ann", code=FAILED)
    assert [event["found"] for event in answer["events"]] == ["time"] * 4, answer


def test_a_file_of_decisions_may_hold_anything(place):
    place.write("access.log", combined("192.0.2.1", 5))
    out = place.good("run", "--once", *LIMIT, "--state", place.path("state"), place.path("access.log")).out().decode()
    identity = json.loads(out)["id"]

    def asked(text, code=FAILED):
        done = place.run("explain", identity, "--state", place.path("state"), "--json", "--decisions", place.write("kept", text))
        assert done.code() == code, done.said()
        return json.loads(done.out())

    other = out.replace(identity, "0-99999-0")
    for filler in (other * 3000, other[:-2] * 9000 + "\n", "\n{\n" * 9):
        assert asked(filler + out + other[:9], DONE)["equal"]
    for wrong in (out[:-2] + "\n", out.replace('"count":3', '"count":-1'), out.replace('"at":', '"at":-')):
        assert asked(wrong)["decision"] is None
    shown_ = place.run("explain", identity, "--state", place.path("state"), "--decisions",
                       place.write("kept", out.replace('"zone":"ip"', '"zone":"\\u001b[2J"')))
    assert b"\x1b" not in shown_.out() and b"in zone " in shown_.out(), shown_.out()
    place.write("kept", other)
    place.write("kept.3", out)
    place.good("explain", identity, "--state", place.path("state"), "--decisions", place.path("kept"))


def test_a_log_that_was_deleted_is_told(place):
    run = Run(place, **SMALL_LOG).start()
    run.append(burst("ann", 4))
    decision = run.published(key=["ann"])
    trim(run)
    answer, = explained(run, decision["id"], code=FAILED)
    assert answer["decision"] == decision and answer["again"] is None, answer
    assert "is not there any more" in answer["missing"][0] and "by key and time alone" in answer["missing"][1], answer
    assert shown(answer) == at(run.log, burst("ann", 4)) and {one["found"] for one in answer["events"]} == {"time"}, answer
    run.append(burst("eve", 4))
    assert explained(run, run.published(key=["eve"])["id"])[0]["equal"]
    run.stop()
    os.remove(run.log)
    for name in (".1", ".1.gz"):  # it is compressed at this moment: each line is there once
        with (gzip.open if name.endswith("gz") else open)(run.log + name, "wb") as file:
            file.write(("eve\n" + burst("ann", 2)).encode())
    found = shown(explained(run, decision["id"], code=FAILED)[0])
    assert sorted(one[2] for one in found) == sorted(burst("ann", 2).splitlines()), found


def explained_missing(run, identity):
    """Whether the record of a decision is gone."""
    done = run.place.run("explain", identity, "--state", run.state, "--json")
    return done.out() and json.loads(done.out())["again"] is None


def test_a_line_ahead_of_the_clock_is_found(place):
    run = Run(place).start()
    text = burst("ann", 4, START_MS + 10**12)
    run.append(text)
    run.published(key=["ann"])
    run.stop()  # by now the collector's memory is saved
    answer, = explained(run, "ann")
    assert shown(answer) == at(run.log, text) and answer["events"][0]["at"] < START_MS + 10**12, answer


def ask_why(port, query, token="0123456789abcdef"):
    """(status, object) of /api/v1/why, which is as openapi.json says."""
    path = "/api/v1/why"
    status, kind, text = metrics.get(port, path + query, {"Authorization": f"Bearer {token}"})
    answer = archiver_api.Answer(status, {"content-type": kind}, text.encode())
    archiver_api.CONTRACT.check(path, answer)
    return status, answer.json()


def test_the_api_says_why(place):
    port = free_port()
    archive = {"enabled": True, "api": f"127.0.0.1:{port}", "interval": "100ms", "tokens": ["0123456789abcdef"]}
    run = Run(place, archiver=archive).start()
    run.append(burst("ann", 4))
    identity = run.published(key=["ann"])["id"]
    assert ask_why(port, f"?id={identity}") == (200, explained(run, identity)[0])
    for query, why in (("", "missing"), ("?id=ann", "such as 3-1841-0"), ("?id=9-1-0", "there are 4 partitions"),
                       ("?zone=site", "expected one of id")):
        status, answer = ask_why(port, query)
        assert status == 400 and why in answer["error"]["message"], answer
    assert ask_why(port, f"?id={identity}", "fedcba9876543210")[0] == 401
    os.rename(os.path.join(run.state, "sources.json"), place.path("memory"))
    os.mkdir(os.path.join(run.state, "sources.json"))
    status, answer = ask_why(port, f"?id={identity}")
    assert status == 503 and "cannot explain it now" in answer["error"]["message"], answer
    assert "sources.json" in answer["error"]["message"] and run.weir.said().count(" api: ") == 1, run.weir.said()
    os.rmdir(os.path.join(run.state, "sources.json"))
    run.stop()
    os.remove(run.out)
    unlocked = Run(place, state="unlocked", archiver={name: one for name, one in archive.items() if name != "tokens"}).start()
    status, answer = ask_why(port, f"?id={identity}")
    assert status == 403 and "archiver.tokens" in answer["error"]["message"], answer
    unlocked.stop()
    os.remove(run.out)
    secret = place.write("secret", b"x" * 32)
    os.chmod(secret, 0o600)
    hashed = Run(place, state="hashed", archiver={**archive, "hash_keys": secret}).start()
    status, answer = ask_why(port, f"?id={identity}")
    assert status == 404 and "hashed" in answer["error"]["message"], answer
    hashed.stop()


def test_fields_of_the_history_outlive_the_log(place):
    """As strangers write them: a terminal, a spreadsheet, raw bytes and what is too long break nothing."""
    port = free_port()
    tokens = {"enabled": True, "api": f"127.0.0.1:{port}", "interval": "100ms", "tokens": ["0123456789abcdef"]}
    run = Run(place, archiver=tokens,
              zones=[zone("site", [sliding(3, "1h")], id=1, history={"fields": ["agent", "path", "tls"]}),
                     zone("other", [sliding(99, "1h")], id=2, history=True)]).start()
    paths = ["=1+1\x1b[2J", "/<b>\u009b", "/" + "\u00e4" * 300, "/x\n"]
    kept = [{"agent": "y", "path": path} for path in (*paths[:2], "/" + "\u00e4" * 254 + "\u2026", paths[3])]
    run.append("".join(line(START_MS + i, "ann", path=path, agent="y", host="unkept") for i, path in enumerate(paths)))
    decision = run.published(key=["ann"], zone="site")
    answer, = explained(run, decision["id"])
    assert answer["equal"] and [event["fields"] for event in answer["events"]] == kept, answer
    assert ask_why(port, f"?id={decision['id']}") == (200, answer)
    os.remove(run.log)
    answer, = explained(run, decision["id"], code=FAILED)
    assert [(event["line"], event["fields"]) for event in answer["events"]] == [(None, one) for one in kept], answer
    words = run.command("explain", decision["id"], code=FAILED).out().decode()
    assert '(line not found) kept: {"agent":"y","path":"=1+1\\u001b[2J"}' in words and "\x1b" not in words, words
    asked = {"Authorization": "Bearer 0123456789abcdef"}
    ask = lambda more: metrics.get(port, f"/api/v1/events?key=ann{more}", asked)[2]
    found = until(lambda: len(json.loads(ask("&zone=site"))["events"]) == 4 and json.loads(ask("&zone=site")), "4 events")
    assert [event["fields"] for event in reversed(found["events"])] == kept, found
    assert [event["fields"] for event in json.loads(ask("&zone=other"))["events"]] == [None] * 4
    rows = list(csv.reader(io.StringIO(ask("&zone=site&format=spreadsheet"), newline="")))
    assert rows[0][3] == "fields" and rows[4][3] == '{"agent":"y","path":"\'=1+1\\u001b[2J"}', rows
    decoded = [json.loads(one) for one in run.command("decode", "--flat").out().decode().splitlines()]
    assert [one["fields"] for one in decoded if one.get("kind") == "events"] == kept, decoded
    run.stop()


def test_lines_that_nothing_can_read_again_are_told(place):
    """Of syslog: their position, and what the history keeps."""
    port, run = free_port(), Run(place)
    run.config = place.config([zone("site", [sliding(3, "1h")], id=1, history={"fields": ["path"]})],
                              [source(run.log), {"type": "syslog", "listen": f"udp://127.0.0.1:{port}", "format": "json"}],
                              bus={"partitions": 4})
    run.start()
    until(lambda: "following" in run.weir.said(), "it listens", running=run.weir)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(4):
            sender.sendto(b'<190>1 2024-01-01T00:00:00Z www app - - - {"user": "ann", "path": "/p"}', ("127.0.0.1", port))
    decision = run.published(key=["ann"])
    answer, = explained(run, decision["id"], code=FAILED)
    assert answer["equal"] and [(one["line"], one["fields"]) for one in answer["events"]] == [(None, {"path": "/p"})] * 4, answer
    assert answer["missing"] == ['4 of 4 lines came from a source that is no file (syslog) and are not read again: of these, '
                                 'what the zone\'s "history" names is all that is known.'], answer
    run.stop()


def test_a_finished_run_keeps_fields_of_its_history(place):
    place.write("log", "".join(line(START_MS + i, "ann", path=f"/{i}") for i in range(4)))
    zones = [zone("site", [sliding(3, "1h")], id=1, history={"fields": ["path"]})]
    config = place.config(zones, [source(place.path("log"), follow=False)], archiver={"enabled": True})
    state = place.path("state")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("out"))
    with contextlib.closing(sqlite3.connect(os.path.join(state, "weir.db"))) as database:
        rows = database.execute("SELECT at_ms, fields FROM events WHERE zone = 'site' AND key_text = 'ann' ORDER BY 1").fetchall()
    assert rows == [(START_MS + i, f'{{"path":"/{i}"}}') for i in range(4)], rows
    decision, = lines_of(place.path("out"))
    answer = json.loads(place.good("explain", decision["id"], "--state", state, "--json").out())
    assert [event["fields"] for event in answer["events"]] == [{"path": f"/{i}"} for i in range(4)], answer


def test_each_policy_says_what_the_history_keeps(place):
    """Other fields, none, more, and the same beside another rate, while it runs."""
    policies = [["path"], ["path"], ["agent", "path"], None, ["tls"], ["tls", "path", "agent"]]
    zones_of = lambda number: [zone("site", [sliding(50 + number, "1h")], id=1,
                                    **({"history": {"fields": policies[number]}} if policies[number] else {"history": True}))]
    run = Run(place, zones=zones_of(0), archiver={"enabled": True, "interval": "100ms"}).start()
    rows = []
    for number in range(len(policies)):
        if number > 0:
            place.config(zones_of(number), [source(run.log)], bus={"partitions": 4}, archiver={"enabled": True, "interval": "100ms"})
            run.weir.signal(signal.SIGHUP)
            until(lambda n=number: f"policy {n + 1} is in force" in run.weir.said(), "the policy", running=run.weir)
        run.append(line(START_MS + number, "ann", path=f"/{number}", agent="y", tls="1.3"))
        with contextlib.closing(sqlite3.connect(os.path.join(run.state, "weir.db"), timeout=10)) as database:
            ask = lambda: database.execute("SELECT fields FROM events WHERE key_text = 'ann' ORDER BY at_ms").fetchall()
            rows = until(lambda n=number: len(ask()) == n + 1 and ask(), "its event", running=run.weir)
    run.stop()
    record = lambda number: {"path": f"/{number}", "agent": "y", "tls": "1.3"}
    want = [{name: record(number)[name] for name in names} if names else None for number, names in enumerate(policies)]
    assert [fields and json.loads(fields) for fields, in rows] == want, rows


def test_what_is_wrong_is_said(place):
    run = Run(place).start()
    for words, why in (((), "name a decision's id, or a key"), (("9-1-0",), "there are 4 partitions"),
                       (("ann", "--zone", "sit"), 'did you mean "site"?'), (("a|b|c",), "no zone's key has 3 values")):
        said = run.command("explain", *words, code=USAGE).said()
        assert why in said, said
    assert "no such" in explained(run, "0-7-0", code=FAILED)[0]["missing"][0]
    run.stop()
    assert place.run("explain", "ann", "--state", place.path("nowhere")).code() == USAGE


if __name__ == "__main__":
    cases.main(globals())
