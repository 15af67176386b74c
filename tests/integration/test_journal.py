#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `journal`: each entry once, through restarts, kills, rotations and removed files."""

import glob
import json
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, journal, metrics
from support.following import positions, verdicts
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of, until
from support.traffic import site, sliding, zone

DONE, USAGE = 0, 2


def source(place, **more):
    """The journal of a test."""
    return {"type": "journal", "directory": place.path("journal"), "units": ["shop"], "format": "json", **more}


def require_journals():
    """Skips where nothing can write one."""
    if not journal.available():
        raise cases.Skipped(f"there is no {journal.REMOTE}")


def start(place, sources, zones=None, until_following=True):
    """A weir that follows and serves: (weir, port)."""
    require_journals()
    port = free_port()
    config = place.config(zones or site(), sources, listen={"http": f"127.0.0.1:{port}"}, deadletter={"rate": 0})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--dead-letter", place.path("dead"), "--summary", "json")
    if until_following:
        until(lambda: "following" in weir.said(), "it follows", running=weir)
    return weir, port


def user(number, name, **fields):
    """An entry of a user's request."""
    return journal.entry(number, json.dumps({"user": name}), **fields)


def rotating(number, name):
    """The same, with field names of its own: these soon fill a file's table, and another is begun."""
    return user(number, name, **{f"EXTRA_{number}_{i}": "1" for i in range(8)})


def keys(place):
    """The first key value of each decision that blocks."""
    return sorted(decision["key"][0] for decision in lines_of(place.path("out")) if decision["action"] == "block")


def until_keys(place, weir, *wanted):
    """Waits until just these keys were blocked."""
    until(lambda: len(keys(place)) >= len(wanted), f"decisions for {wanted}", running=weir)
    assert keys(place) == sorted(wanted), keys(place)


def test_entries_become_decisions(place):
    require_journals()
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(*(user(i, "ann") for i in range(4)), *(user(i, "eve", unit="other.service") for i in range(9)))
        weir, port = start(place, [source(place)])
        until_keys(place, weir, "ann")
        writer.write(*(user(10 + i, "bob") for i in range(4)))
        until_keys(place, weir, "ann", "bob")
        page = metrics.scrape(port)
        assert page.sum("weir_source_replayable") == 1 and page.sum("weir_source_lost_messages_total") == 0
        until(lambda: metrics.scrape(port).sum("weir_source_lines_total") == 8, "the lines", running=weir)
        assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == 8, weir.summary()


def test_entries_are_found_again_to_explain_a_decision(place):
    """By their numbers, also in a file that was rotated since; one whose file is gone is told."""
    require_journals()
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(*(user(i, "ann") for i in range(4)))
        weir, _ = start(place, [source(place)], until_following=True)
        until_keys(place, weir, "ann")
        assert weir.stop() == DONE, weir.said()
        writer.close()
    decision, = lines_of(place.path("out"))
    answer = json.loads(place.good("explain", decision["id"], "--state", place.path("state"), "--json").out())
    assert answer["equal"] and not answer["missing"], answer
    assert [(event["file"], event["offset"], json.loads(json.loads(event["line"])["MESSAGE"])) for event in answer["events"]] == \
        [(place.path("journal", "system.journal"), number, {"user": "ann"}) for number in (1, 2, 3, 4)], answer
    os.remove(place.path("journal", "system.journal"))
    done = place.run("explain", decision["id"], "--state", place.path("state"), "--json")
    answer = json.loads(done.out())
    assert done.code() == 1 and answer["missing"] == ["4 of 4 lines: no file of the sources has them any more."], answer


def test_fields_of_the_journal_are_fields(place):
    require_journals()
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(*(journal.entry(i, f"said \"{i}\"\n\tand more\x01", unit=unit, _COMM=comm)
                       for i, (unit, comm) in enumerate([("a.service", "x"), ("a.service", "x"), ("b.service", "x"),
                                                         ("a.service", "y"), ("a.service", "z")])))
        weir, _ = start(place, [source(place, format="journal", units=["a", "b.service"], match={"_COMM": ["x", "z"]})],
                        [zone("site", [sliding(1, "1d")], key=["_SYSTEMD_UNIT", "_COMM"]),
                         zone("message", [sliding(9, "1d")], key=["MESSAGE"], match={"PRIORITY": ["6"]})])
        until(lambda: lines_of(place.path("out")), "a decision", running=weir)
        writer.write(journal.entry(9, "last", unit="b.service", _COMM="x"))
        until(lambda: len(lines_of(place.path("out"))) == 2, "another", running=weir)
        assert [decision["key"] for decision in lines_of(place.path("out"))] == [["a.service", "x"], ["b.service", "x"]]
        assert lines_of(place.path("out"))[0]["at"] == journal.START_US // 1000 + 1
        assert weir.stop() == DONE, weir.said()
    assert {name: counts["matched"] for name, counts in weir.summary()["zones"].items()} == {"site": 5, "message": 5}


def test_it_goes_on_where_it_was(place):
    require_journals()
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        number = 0
        for stop in ("stop", "kill", "stop", "kill", "stop"):
            if number > 0:
                os.utime(place.path("journal"), (1, 1))  # the directory has not changed for long: its files may
            weir, port = start(place, [source(place)])
            writer.write(user(number, "ann"), user(number, f"u{number}"))
            number += 1
            until(lambda: verdicts(port) == 2 * number, "the verdicts", running=weir)  # pylint: disable=cell-var-from-loop
            if stop == "stop":
                assert weir.stop() == DONE, weir.said()
            weir.kill()
        assert keys(place) == ["ann"]
    seen = positions(place)
    assert len(seen) == len(set(seen)) == 2 * number, seen


def test_it_starts_at_the_end_when_told_to(place):
    require_journals()
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(*(user(i, "old") for i in range(9)))
        other = source(place, name="all")
        config_of_all = place.config(site(), [other], name="all.json")
        until(lambda: os.path.exists(place.path("journal", "system.journal")) and json.loads(
            place.good("run", "--once", "--config", config_of_all, "--decisions", place.path("all"), "--summary",
                       "json").said().splitlines()[-1])["lines"] == 9, "the entries are there")
        weir, _ = start(place, [source(place, start="end")])
        writer.write(*(user(10 + i, "new") for i in range(4)))
        until_keys(place, weir, "new")
        weir.kill()
        writer.write(*(user(20 + i, "newer") for i in range(4)))
        weir, _ = start(place, [source(place, start="end")])
        until_keys(place, weir, "new", "newer")
        assert weir.stop() == DONE, weir.said()


def test_rotations_lose_and_double_nothing(place):
    weir, port = start(place, [source(place)])
    count = 800
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        for i in range(count):
            writer.write(rotating(i, f"u{i % 100}"))
        until(lambda: verdicts(port) >= count, f"{count} verdicts", running=weir)
        writer.close()
    assert len(glob.glob(place.path("journal", "*.journal"))) >= 5, os.listdir(place.path("journal"))
    page = metrics.scrape(port)
    assert page.sum("weir_source_lost_messages_total") == 0 and page.sum("weir_source_errors_total") == 0
    assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == count
    # and so when it is read again from the beginning
    done = place.good("run", "--once", "--config", place.config(site(), [source(place)], name="once.json"),
                      "--decisions", place.path("once"), "--summary", "json")
    assert done.summary()["events"] == count


def test_kills_at_any_moment_lose_and_double_nothing(place):
    require_journals()
    rng, moments = random.Random(1), random.Random()
    rounds = 8 if SANITIZED else 25
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        count = 0
        for _ in range(rounds):
            weir, _ = start(place, [source(place)], until_following=False)
            for _ in range(rng.randint(1, 6)):
                size = rng.randint(1, 60)
                writer.write(*((rotating if rng.random() < 0.5 else user)(count + i, f"u{(count + i) % 50}")
                               for i in range(size)), user(count, "eve", unit="other.service"))
                count += size
                time.sleep(moments.uniform(0, 0.03))  # a kill comes when it comes: there is nothing to wait for
            time.sleep(moments.uniform(0, 0.6))
            assert weir.code() is None, weir.said()
            weir.kill()
        weir, port = start(place, [source(place)])
        until(lambda: verdicts(port) >= count, f"{count} verdicts", running=weir)
        page = metrics.scrape(port)
        assert page.sum("weir_source_lost_messages_total") == 0
        assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == count, (weir.summary(), count)
    seen = positions(place)
    assert len(seen) == len(set(seen)) == count, (len(seen), len(set(seen)), count)
    assert len(glob.glob(place.path("journal", "*.journal"))) > 1, "nothing was rotated"
    print(f"{rounds} kills, {count} entries, {len(glob.glob(place.path('journal', '*.journal')))} files")


def test_what_was_removed_before_it_was_read_is_counted(place):
    require_journals()
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        weir, port = start(place, [source(place)])
        writer.write(user(0, "ann"), user(1, "ann"))
        until(lambda: verdicts(port) == 2, "two verdicts", running=weir)
        assert weir.stop() == DONE, weir.said()
        writer.write(*(rotating(i, "bob") for i in range(2, 300)))
        until(lambda: len(glob.glob(place.path("journal", "*@*.journal"))) >= 4, "rotated files")
        writer.write(*(user(1000 + i, "eve") for i in range(4)))
        writer.close()
    removed = sorted(glob.glob(place.path("journal", "*@*.journal")))[:2]
    for path in removed:
        os.unlink(path)
    # its name has the number of the first entry
    oldest = int(sorted(glob.glob(place.path("journal", "*@*.journal")))[0].rsplit("-", 2)[1], 16)
    weir, port = start(place, [source(place)])
    until(lambda: "eve" in keys(place), "eve is blocked", running=weir)
    page = metrics.scrape(port)
    assert page.sum("weir_source_lost_messages_total") == oldest - 3
    assert page.sum("weir_source_problem") == 0 and metrics.get(port, "/readyz")[0] == 200
    until(lambda: f"up to {oldest - 3} entries after number 2 are lost" in weir.said(), "it is said", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == 2 + (300 + 4) - (oldest - 1)


def remove_rotated(place):
    gone = glob.glob(place.path("journal", "*@*.journal"))
    assert gone, os.listdir(place.path("journal"))
    for path in gone:
        os.unlink(path)


def test_a_removed_file_that_was_read_is_no_loss(place):
    weir, port = start(place, [source(place)])
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(*(rotating(i, f"u{i}") for i in range(200)))
        until(lambda: verdicts(port) == 200, "all verdicts", running=weir)
        remove_rotated(place)
        writer.write(*(rotating(i, f"u{i}") for i in range(200, 400)))
        until(lambda: verdicts(port) == 400, "all verdicts", running=weir)
        assert weir.stop() == DONE, weir.said()
        remove_rotated(place)
        weir, port = start(place, [source(place)])
        writer.write(*(rotating(i, f"u{i}") for i in range(400, 500)))
        until(lambda: verdicts(port) == 500, "all verdicts", running=weir)
        assert metrics.scrape(port).sum("weir_source_lost_messages_total") == 0
        assert weir.stop() == DONE, weir.said()


def test_a_journal_that_was_made_anew_is_another_stream(place):
    require_journals()
    weir, port = start(place, [source(place)])
    for i, name in enumerate(("ann", "bob")):
        with journal.Journal(place.path("journal", "system.journal")) as writer:
            writer.write(*(user(10 * i + j, name) for j in range(4)))
            until(lambda: verdicts(port) == 4 * (i + 1), "the verdicts", running=weir)  # pylint: disable=cell-var-from-loop
            writer.close()
        os.unlink(place.path("journal", "system.journal"))
    until_keys(place, weir, "ann", "bob")
    assert weir.stop() == DONE, weir.said()
    # times that go back: a clock that was set back must not hide what came after
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(*(user(j, "old", __REALTIME_TIMESTAMP=str(journal.START_US - 10**9 + j)) for j in range(4)))
        weir, _ = start(place, [source(place)])
        until_keys(place, weir, "ann", "bob", "old")
        assert weir.stop() == DONE, weir.said()
    with open(place.path("state", "sources.json"), encoding="utf-8") as file:
        streams = json.load(file)["streams"]
    assert len(streams) == 3 and all(stream["path"].startswith("journal:") for stream in streams), streams


def test_a_damaged_file_is_said_and_passed(place):
    require_journals()
    journal.write_whole(place.path("journal", "system.journal"), [user(i, f"u{i}") for i in range(2000)])
    weir, port = start(place, [source(place)])
    until(lambda: verdicts(port) == 2000, "all verdicts", running=weir)
    assert weir.stop() == DONE, weir.said()
    shutil.rmtree(place.path("state"))
    path = place.path("journal", "system.journal")
    with open(path, "r+b") as file:  # the entries' objects lie in the used part, behind the tables
        data = bytearray(file.read())
        used = max(at for at in range(0, len(data), 4096) if any(data[at:at + 4096]))
        middle = used - (used - 3700000) // 2
        data[middle:middle + 65536] = b"\xff" * 65536
        file.seek(0)
        file.write(data)
    with journal.Journal(place.path("journal", "other.journal")) as writer:
        writer.write(*(user(5000 + i, "other") for i in range(4)))
        weir, port = start(place, [source(place)])
        until(lambda: "other" in keys(place), "the other file is read", running=weir)
        until(lambda: metrics.scrape(port).sum("weir_source_errors_total") > 0, "an error", running=weir)
        until(lambda: "system.journal: is damaged" in weir.said(), "it is said", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_long_entries_are_counted(place):
    require_journals()
    long_one = json.dumps({"user": "x" * 3000})
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(user(0, "ann"), journal.entry(1, long_one), user(2, "ann"), journal.entry(3, "\0" * 300000),
                     user(4, "ann"), user(5, "ann", BIG="y" * 5000))
        weir, _ = start(place, [source(place, line_max="2KiB")])
        until_keys(place, weir, "ann")
        assert weir.stop() == DONE, weir.said()
    letters = lines_of(place.path("dead"))
    assert [letter["reason"] for letter in letters] == ["line too long"] * 2, letters
    assert [letter["position"] - (1 << 40) for letter in letters] == [2, 4], letters
    assert weir.summary()["lines"] == 6


def requests(address, agent):
    """Entries of a web server's access log: four requests of one client within a second."""
    head = f'{address} - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 5 "-" "'.encode()
    return [journal.entry(number, head + agent + b'"') for number in range(4)]


def test_what_journalctl_leaves_out_is_told(place):
    """It prints what is long as null, unless it is told --all, and what is no UTF-8 as numbers."""
    require_journals()
    path, log = place.path("journal", "system.journal"), place.path("printed")
    journal.write_whole(path, requests("192.0.2.1", b"-") + requests("192.0.2.2", b"\xff") + requests("192.0.2.3", b"x" * 5000))
    zones = [zone("site", [sliding(3, "1m")], key=["ip"])]
    printed = {"type": "file", "path": log, "format": {"type": "journal", "message": "combined"}}
    for options, found, malformed in ((["--all"], ["192.0.2.1", "192.0.2.2", "192.0.2.3"], {}),
                                      ([], ["192.0.2.1", "192.0.2.2"], {"message left out": 4})):
        with open(log, "wb") as file:
            subprocess.run(["journalctl", "--file", path, "-o", "json", *options], stdout=file, check=True)
        arguments = ("run", "--once", "--config", place.config(zones, [printed]), "--decisions", place.path("once"))
        assert place.good(*arguments, "--summary", "json").summary()["malformed"] == malformed
        assert [decision["key"][0] for decision in lines_of(place.path("once"))] == found
        assert ("--all" in place.good(*arguments).said()) == bool(malformed)
    weir, _ = start(place, [{**printed, "follow": True}], zones, until_following=False)
    until(lambda: "with --all" in weir.said(), "it is said while it follows", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert {(letter["reason"], letter["source"]) for letter in lines_of(place.path("dead"))} == {("message left out", log)}


def test_long_fields_are_fields(place):
    """As long as the entry has room for them."""
    require_journals()
    journal.write_whole(place.path("journal", "system.journal"), [user(number, "ann", CLIENT="c" * 6000) for number in range(4)])
    weir, _ = start(place, [source(place)], [zone("site", [sliding(3, "1d")], key=["user"], match={"CLIENT": ["ccc*"]})])
    until_keys(place, weir, "ann")
    assert weir.stop() == DONE, weir.said()


def test_long_fields_leave_room_for_the_message_when_they_are_escaped(place):
    """A quote becomes two bytes, a control byte six: who fills a field with them hides no line."""
    require_journals()
    hidden = [journal.entry(number, json.dumps({"user": name}), **{f"FIELD_{i}": bad * length for i in range(fields)})
              for name, bad, length, fields in (("quotes", '"', 32000, 1), ("control", "\1", 4000, 9))
              for number in range(4)]
    journal.write_whole(place.path("journal", "system.journal"), hidden)
    weir, _ = start(place, [source(place, line_max="64KiB")])
    until_keys(place, weir, "control", "quotes")
    assert weir.stop() == DONE, weir.said()


def test_what_is_said_beforehand(place):
    require_journals()
    config = place.config(site(), [source(place, start="end")])
    said = place.good("validate", "--config", config).out().decode()
    assert f"journal of shop in {place.path('journal')}, json, followed; initially from the end" in said, said
    assert f"no journal found: {place.path('journal')}" in said, said
    weir, _ = start(place, [source(place)])
    until(lambda: "no journal found" in weir.said(), "it is said", running=weir)
    with journal.Journal(place.path("journal", "a.journal")) as writer:
        writer.write(*(user(i, "ann") for i in range(4)))
        until_keys(place, weir, "ann")
        assert weir.stop() == DONE, weir.said()
    for more, words in (({"units": []}, "units"), ({"match": {"low": "x"}}, "match.low: is not a journal field"),
                        ({"match": ["x"]}, "match: must be an object"), ({"path": "/x"}, "path")):
        done = place.run("validate", "--config", place.config(site(), [source(place, **more)]))
        assert done.code() == USAGE and words in done.said(), (done.code(), done.said())
    done = place.run("run", "--config", place.config(site(), [source(place), source(place)]), "--state",
                     place.path("twice"))
    assert done.code() != DONE and 'give each its own "name"' in done.said(), done.said()


if __name__ == "__main__":
    print(f"patience {PATIENCE_S} s", flush=True)
    cases.main(globals())
