#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A zone that stays in shadow until it would block few: it arms itself once, by a record of the log, or says why not."""

import json
import os
import random
import sqlite3
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import free_port, lines_of, until
from support.run_local import PARTITIONS, Run
from support.traffic import burst, sliding, source, zone

USAGE = 2
DAY_MS = 86400000
FIRST_MS = 19700 * DAY_MS  # 2023-12-09
KEYS = 120  # a day: with "1%" a day needs 100, and one key of 120 is below it
ROUNDS = int(os.environ.get("WEIR_SHADOW_KILLS", 3))


def until_below(share="1%", span="3d"):
    """The mode."""
    return {"shadow_until": {"blocked_keys_below": share, "for": span}}


def site(rate=3, mode=None, **more):
    """The zone."""
    return [zone("site", [sliding(rate, "1m")], id=1, mode=mode or until_below(), **more)]


def day(number, blocked=1, keys=KEYS):
    """A day's lines: so many keys, of which the first are over the limit."""
    begin_ms = FIRST_MS + number * DAY_MS + 3600000
    return "".join(burst(f"k{key}", 6 if key < blocked else 1, start_ms=begin_ms + key * 600000)
                   for key in range(keys))


def running(place, days, **more):
    """A run over such days, which archives and stores often."""
    sections = {"zones": site(), "archiver": {"enabled": True, "interval": "100ms"},
                "limiter": {"checkpoint_interval": "100ms", "threads": 1}, **more}
    run = Run(place, log="".join(days), **sections)
    return run


def history(run):
    """(version, author, in the log, changes) of each policy."""
    return [(one["version"], one.get("by"), one["in_log"], one["changes"])
            for one in run.command("policy", "history", "--json").objects()]


def until_armed(run, version=2):
    """Waits for the policy that arms it: its words."""
    until(lambda: len(history(run)) >= version and history(run)[version - 1][2], "it is armed", running=run.weir)
    (last,) = history(run)[version - 1:]
    assert last[1] == "weir" and "armed" in last[3], last
    return last[3]


def versions_of(run):
    """The versions of policies that each partition has, each once: a run that ends may append some again."""
    found = {}
    for frame in run.command("decode").objects():
        if frame["kind"] == "policy" and frame["policy"] not in found.setdefault(frame["partition"], []):
            found[frame["partition"]].append(frame["policy"])
    return [found[number] for number in range(PARTITIONS)]


def zones_of(port):
    """The zones as the API has them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/zones", timeout=30) as answer:
        return json.load(answer)["zones"]


def test_it_arms_itself_by_a_record_and_a_replay_of_the_log_gives_the_same(place):
    """Days, a policy of the log's, and from there on decisions; restarts, reloads and a changed file; the oracle's replay."""
    port = free_port()
    run = running(place, [day(n) for n in range(5)], listen={"http": f"127.0.0.1:{port}"},
                  decisions={"shadow_path": place.path("shadow")}).start()
    words = until_armed(run)
    assert "at most 1 of 120 keys (0.8333%) would have been blocked on a day, on 3 days from 2023-12-10 to 2023-12-12" in words, words
    assert 'zone "site" leaves shadow mode and blocks from policy 2 on' in run.weir.said(), run.weir.said()
    assert "enforces, as weir armed it" in run.command("policy", "show").out().decode()
    assert not run.decisions() and lines_of(place.path("shadow")), "before that, it blocks nobody"
    run.append(day(5, blocked=2))
    run.published(key=["k0"], mode="enforce", action="block")
    run.published(key=["k1"])
    # The file still says shadow_until: neither a reload nor a start puts it back.
    run.weir.signal(1)
    until(lambda: "policy 2 is in force, unchanged" in run.weir.said(), "reloaded", running=run.weir)
    run.stop()
    run.start()
    assert 'zone "site" enforces, as weir armed it' in run.weir.said(), run.weir.said()
    run.append(day(6))
    until(lambda: len(run.decisions()) == 3, "it still blocks", running=run.weir)
    # Another limit is another question.
    place.config(site(4), [source(run.log)], bus={"partitions": PARTITIONS}, listen={"http": f"127.0.0.1:{port}"},
                 archiver={"enabled": True, "interval": "100ms"}, limiter={"checkpoint_interval": "100ms", "threads": 1},
                 decisions={"shadow_path": place.path("shadow")})
    run.weir.signal(1)
    until(lambda: "goes back into shadow mode" in run.weir.said(), "shadow again", running=run.weir)
    assert [one[0] for one in history(run)] == [1, 2, 3]
    until(lambda: metrics.scrape(port).value("weir_archiver_shadow_days_needed", zone="site") == 3, "metrics",
          running=run.weir)
    run.append(day(7))
    until(lambda: any(decision["at"] > FIRST_MS + 7 * DAY_MS for decision in lines_of(place.path("shadow"))), "shadow",
          running=run.weir)
    run.stop()
    assert versions_of(run) == [[1, 2, 3]] * PARTITIONS
    assert all(decision["action"] == "lift" or decision["at"] < FIRST_MS + 7 * DAY_MS for decision in run.decisions())
    run.zones = site()
    run.compare()


def test_it_stays_in_shadow_and_says_why(place):
    """Too many would be blocked, or too few keys came: the log, the metrics, the policy and the API say so."""
    port, api = free_port(), free_port()
    run = running(place, [day(0), day(1), day(2, blocked=2), day(3), day(4, keys=90), day(5)],
                  archiver={"enabled": True, "interval": "100ms", "api": f"127.0.0.1:{api}"},
                  zones=site() + [zone("quiet", [sliding(3, "1m")], id=2, match={"path": ["/none"]}, mode=until_below())],
                  listen={"http": f"127.0.0.1:{port}"}).start()
    why = ("1 of 3 days in a row below 1%; on 2023-12-13, 1 of 90 keys (1.1111%) would have been blocked, but a day with "
           "fewer than 100 keys says nothing; the last day that was not below is 2023-12-11 with 2 of 120 keys (1.6667%)")
    until(lambda: why in run.weir.said(), "it says why", running=run.weir)
    assert run.weir.said().count(why) == 1, run.weir.said()
    assert f'zone "site" stays in shadow: {why}' in run.command("policy", "show").out().decode()
    until(lambda: metrics.scrape(port).value("weir_archiver_shadow_days", zone="site") == 1, "metrics", running=run.weir)
    shown, quiet = zones_of(api)
    assert (shown["mode"], shown["shadow_until"]) == ("shadow", why), shown
    assert (quiet["mode"], quiet["shadow_until"]) == ("shadow", "nobody has come to it yet"), quiet
    run.append(day(6) + day(7))
    words = until_armed(run)
    shown, quiet = zones_of(api)
    assert quiet["mode"] == "shadow", quiet
    assert shown["mode"] == "enforce" and shown["shadow_until"] in words, shown
    assert "on 3 days from 2023-12-12 to 2023-12-15" in words, words
    run.stop()


def test_a_kill_at_any_moment_leaves_one_record(place):
    """Killed around the moment at which it arms, and started again: one policy, by weir, in every partition."""
    rng = random.Random(5)
    for number in range(ROUNDS):
        run = running(place, [day(n) for n in range(5)], state=f"state-{number}").start()
        path = os.path.join(run.state, "weir.db")

        def newest():
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10) as store:  # pylint: disable=cell-var-from-loop
                return store.execute("SELECT MAX(version) FROM policy_version").fetchone()[0]

        until(lambda: newest() == 2, "the number is taken", running=run.weir)  # pylint: disable=cell-var-from-loop
        time.sleep(rng.choice((0, 0, 0.001, 0.003, 0.01, 0.05)))
        run.weir.kill()
        run.start()
        until_armed(run)
        run.append(day(5))
        run.published(key=["k0"], mode="enforce", at=FIRST_MS + 5 * DAY_MS + 3600003)
        run.stop()
        assert [one[:3] for one in history(run)][1:] == [(2, "weir", True)], history(run)
        assert versions_of(run) == [[1, 2]] * PARTITIONS
        run.compare()
        os.remove(run.out)


def test_a_number_that_was_taken_before_a_crash_is_finished(place):
    """Only the store has the policy, as right behind a crash: the start puts it into the log, under weir's name."""
    run = running(place, [day(n) for n in range(6)]).start()
    until_armed(run)
    run.stop()
    with sqlite3.connect(os.path.join(run.state, "weir.db")) as store:
        (text,) = store.execute("SELECT text FROM policy_version WHERE version = 2").fetchone()
    other = running(place, [day(n) for n in range(3)], state="other").start()
    until(lambda: "stays in shadow" in other.weir.said(), "it looks", running=other.weir)
    other.stop()
    with sqlite3.connect(os.path.join(other.state, "weir.db")) as store:
        store.execute("INSERT INTO policy_version (version, text) VALUES (2, ?)", (text,))
    other.start()
    until_armed(other)
    assert [one[:3] for one in history(other)][1:] == [(2, "weir", True)], history(other)
    other.stop()
    assert versions_of(other) == [[1, 2]] * PARTITIONS


REFUSES = "CREATE TRIGGER refuses BEFORE INSERT ON policy_version BEGIN SELECT RAISE(ABORT, 'disk is full'); END"


def store_of(run):
    """The store of a run, for what it cannot be made to do otherwise."""
    store = sqlite3.connect(os.path.join(run.state, "weir.db"), timeout=30)
    store.isolation_level = None
    return store


def test_a_store_that_refuses_the_policy_leaves_the_one_before_in_force(place):
    """A reload of a broken file and an end in order meanwhile; it says that zones stay in shadow, and arms them later."""
    run = running(place, [day(0)], zones=site(mode=until_below(span="1d"))).start()
    store_of(run).execute(REFUSES)
    run.append(day(1) + day(2) + day(3, keys=6))
    until(lambda: "disk is full" in run.weir.said(), "it is refused", running=run.weir)
    whole = open(run.config, encoding="utf-8").read()
    place.write(os.path.basename(run.config), "{")
    run.weir.signal(1)
    until(lambda: "policy 1 stays in force" in run.weir.said(), "the broken file is refused", running=run.weir)
    place.write(os.path.basename(run.config), whole)
    run.weir.signal(1)
    until(lambda: "policy 1 is in force, unchanged" in run.weir.said(), "reloaded", running=run.weir)
    run.stop()
    assert "the policy for that cannot be written: they stay in shadow meanwhile" in run.weir.said(), run.weir.said()
    store_of(run).execute("DROP TRIGGER refuses")
    run.start()
    until_armed(run)
    until(lambda: 'zone "site" leaves shadow mode and blocks from policy 2 on' in run.weir.said(), "it says so",
          running=run.weir)
    run.stop()


def test_a_policy_that_was_taken_but_not_noted_is_told_once_it_is_whole(place):
    """The log has it, but the store's note of that fails: partitions block already, and the log of weir says so."""
    run = running(place, [day(0)], zones=site(mode=until_below(span="1d"))).start()
    store_of(run).execute("CREATE TRIGGER refuses BEFORE INSERT ON note WHEN NEW.name = 'policy-appended' "
                          "BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    run.append(day(1) + day(2) + day(3, keys=6))
    until(lambda: "disk is full" in run.weir.said(), "it is refused", running=run.weir)
    until(lambda: "policy 2, in which zones leave shadow mode, is not known to be in the whole log: they block where"
          in run.weir.said(), "it says what that means", running=run.weir)
    assert "they stay in shadow meanwhile" not in run.weir.said(), run.weir.said()
    assert "leaves shadow mode and blocks" not in run.weir.said(), run.weir.said()
    store_of(run).execute("DROP TRIGGER refuses")
    until(lambda: 'zone "site" leaves shadow mode and blocks from policy 2 on: at most 1 of 120 keys' in run.weir.said(),
          "it says that it blocks", running=run.weir)
    run.stop()
    assert [one[:3] for one in history(run)][1:] == [(2, "weir", True)], history(run)


def test_the_day_on_which_a_later_zone_came_does_not_count(place):
    """Not even where a line from before midnight comes after the zone."""
    run = running(place, [day(0), day(1, keys=60)], zones=[zone("other", [sliding(3, "1m")], id=1)]).start()
    sections = json.loads(open(run.config, encoding="utf-8").read())
    sections["zones"] += site(mode=until_below(span="1d"))
    sections["zones"][1]["id"] = 2
    place.write(os.path.basename(run.config), json.dumps(sections))
    run.weir.signal(1)
    until(lambda: "policy 2 is in force" in run.weir.said(), "the zone is there", running=run.weir)
    until(lambda: "no archiver has looked" not in run.command("policy", "show").out().decode(), "it is seen", running=run.weir)
    late = burst("late", 1, start_ms=FIRST_MS + DAY_MS - 60000)
    rest = "".join(burst(f"r{key}", 1, start_ms=FIRST_MS + DAY_MS + 12 * 3600000 + key * 60000) for key in range(KEYS))
    run.append(late + rest + day(2, keys=6))
    until(lambda: run.weir.said().count('zone "site" stays in shadow') == 2 or len(history(run)) > 2, "it is looked at",
          running=run.weir)
    assert len(history(run)) == 2, history(run)
    run.append(day(2) + day(3, keys=6))
    words = until_armed(run, version=3)
    assert "on 1 day from 2023-12-11 to 2023-12-11" in words, words
    run.stop()


def test_who_writes_armed_himself_is_its_author(place):
    """The history says that it was not weir."""
    run = running(place, [day(0)]).start()
    terms = until_below()
    terms["shadow_until"]["armed"] = "as I say"
    sections = json.loads(open(run.config, encoding="utf-8").read())
    sections["zones"] = site(mode=terms)
    place.write(os.path.basename(run.config), json.dumps(sections))
    run.weir.signal(1)
    until(lambda: "policy 2 is in force" in run.weir.said(), "reloaded", running=run.weir)
    run.stop()
    first, second = history(run)
    assert second[1] == first[1] != "weir" and "as I say" in second[3], (first, second)


def test_what_was_found_of_an_earlier_wait_is_not_shown(place):
    """The note is of another policy than that since which the zone waits."""
    run = running(place, [day(0)]).start()
    until(lambda: "no whole day has been counted yet" in run.command("policy", "show").out().decode(), "it is seen",
          running=run.weir)
    run.stop()
    store_of(run).execute("UPDATE note SET value = REPLACE(value, '\"version\":1', '\"version\":9') WHERE name = 'shadow-until:1'")
    shown = run.command("policy", "show").out().decode()
    assert 'zone "site" stays in shadow: no archiver has looked at it yet' in shown, shown


def test_a_day_of_many_keys_is_counted_in_steps(place):
    """Each key once, of which there are more than one step has."""
    run = running(place, [day(0)], zones=site(mode=until_below(span="1d"))).start()
    run.append(day(1))
    until(lambda: store_of(run).execute("SELECT COUNT(*) FROM count_daily WHERE day_ms = ?", (FIRST_MS + DAY_MS,)).fetchone()
          == (KEYS,), "it is archived", running=run.weir)
    run.stop()
    store = store_of(run)
    columns = [row[1] for row in store.execute("PRAGMA table_info(count_daily)")]
    chosen = ", ".join("'more' || n" if name == "bucket" else "0" if name == "blocked" else name for name in columns)
    store.execute(f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200001) "
                  f"INSERT INTO count_daily SELECT {chosen} FROM (SELECT * FROM count_daily WHERE day_ms = "
                  f"{FIRST_MS + DAY_MS} AND bucket = 'k1' LIMIT 1) CROSS JOIN numbers")
    run.start()
    run.append(day(2, keys=6))
    words = until_armed(run)
    assert "at most 1 of 200121 keys" in words, words
    run.stop()


def test_once_takes_it_for_shadow(place):
    """Whatever the days say; and it needs no archive."""
    log = place.write("log", "".join(day(n) for n in range(6)))
    config = place.config(site(), [source(log)], decisions={"shadow_path": place.path("shadow")})
    place.good("run", "--once", "--config", config, "--decisions", place.path("out"))
    assert not lines_of(place.path("out"))
    assert {decision["mode"] for decision in lines_of(place.path("shadow"))} == {"shadow"}


def test_what_cannot_work_is_refused_with_its_place(place):
    """By validate and by a run: without an archive, beyond what it keeps, without a key."""
    log = place.write("log", "")
    terms = "zones[0].mode.shadow_until"
    cases_ = ((site(), {}, terms, '"archiver": {"enabled": true}'),
              (site(), {"archiver": {"enabled": True, "keep_daily": "13d"}}, f"{terms}.for", "archiver.keep_daily must be at least 14d"),
              (site(mode=until_below("51%")), {"archiver": {"enabled": True}}, f"{terms}.blocked_keys_below", '"50%"'),
              ([zone("all", [sliding(3, "1m")], key=(), mode=until_below())], {"archiver": {"enabled": True}}, terms, "a key"))
    for zones, sections, path, words in cases_:
        config = place.config(zones, [source(log)], **sections)
        for command in (("validate", "--offline"), ("run", "--state", place.path("state"))):
            done = place.run(*command, "--config", config)
            assert done.code() == USAGE and path in done.said() and words in done.said(), (command, done.said())
    config = place.config(site(), [source(log)], archiver={"enabled": True, "keep_daily": "14d"})
    said = place.good("validate", "--offline", config).out().decode()
    assert "in shadow mode until on 3 days in a row less than 1% of the day's keys would have been blocked" in said, said


if __name__ == "__main__":
    cases.main(globals())
