#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run` as a daemon: it follows, reopens, reloads, goes on where it was, and ends when it is told."""

import json
import os
import signal
import socket
import statistics
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics, traffic
from support.exempt import ListServer, NameServer
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of, read, until
from support.traffic import burst, fixed, line, site, sliding, source, zone

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3


def now_ms():
    """The clock's time."""
    return time.time_ns() // 1000000


def follow(place, config, *more, state="state", out="out", **popen):
    """Starts a weir that follows."""
    return place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path(out),
                       "--summary", "json", *more, **popen)


def keys(place, out="out"):
    """The first key value of each decision that blocks."""
    return [decision["key"][0] for decision in lines_of(place.path(out)) if decision["action"] == "block"]


def until_keys(place, weir, *wanted, out="out"):
    """Waits until just these keys were blocked, in any order."""
    until(lambda: len(keys(place, out)) >= len(wanted), f"decisions for {wanted}", running=weir)
    assert sorted(keys(place, out)) == sorted(wanted), keys(place, out)


def said(weir, word):
    """Waits until weir says a word."""
    until(lambda: word in weir.said(), f"weir says {word!r}", running=weir)


def test_a_line_becomes_a_decision_within_milliseconds(place):
    log = place.write("log", "")
    weir = follow(place, place.config(site(1), [source(log)]))
    place.append("log", line(now_ms(), "first") * 2)
    until_keys(place, weir, "first")
    took_ms = []
    for number in range(40):
        wanted, size = len(keys(place)) + 1, os.path.getsize(place.path("out"))
        place.append("log", line(now_ms(), f"user-{number}") * 2)
        written = time.monotonic()
        while os.path.getsize(place.path("out")) == size:
            assert time.monotonic() - written < PATIENCE_S, f"no decision: {weir.said()}"
            time.sleep(0.0002)
        took_ms.append(1000 * (time.monotonic() - written))
        until(lambda: len(keys(place)) == wanted, "one decision", running=weir)  # pylint: disable=cell-var-from-loop
    took_ms.sort()
    print(f"from line to decision: median {statistics.median(took_ms):.1f} ms, worst {took_ms[-1]:.1f} ms")
    assert statistics.median(took_ms) < (1000 if SANITIZED else 50), took_ms
    assert weir.stop() == DONE, weir.said()


def test_a_changed_format_is_one_line_until_it_fits_again(place):
    """A thousand lines in another form: one error with a clean sample, a metric, a page; a flood of them adds nothing."""
    log, port = place.write("log", burst("ann", 1200)), free_port()
    weir = follow(place, place.config(site(1), [source(log)], listen={"http": f"127.0.0.1:{port}"}))

    def changed():
        page = metrics.scrape(port)
        return page and page.value("weir_source_format_changed", source="sources[0]")

    until(lambda: changed() == 0, "it fits", running=weir)
    other = "time=1 \x1b[31muser=zoe\x1b[0m path=/\n"
    place.append("log", other * 2500)
    until(lambda: changed() == 1, "the metric says it", running=weir)
    code, _, why = metrics.get(port, "/readyz")
    assert code == 503 and why == ('source sources[0]: most of its last lines do not fit its "format", and are not judged '
                                   "(runbook: format-changed)\n"), why
    place.append("log", other * 30000)
    until(lambda: metrics.scrape(port).sum("weir_collector_malformed_total") == 32500, "all are read", running=weir)
    (said_of_it,) = [said for said in weir.said().splitlines() if "do not fit its" in said]
    assert " ERROR collector: source sources[0], " in said_of_it and "user=zoe" in said_of_it, said_of_it
    assert "\x1b" not in said_of_it and "(runbook: format-changed)" in said_of_it, said_of_it
    place.append("log", burst("bob", 2500))
    said(weir, "its lines fit its format again")
    assert changed() == 0 and metrics.get(port, "/readyz")[0] == 200
    assert "INFO collector: recovered after " in weir.said()
    assert weir.stop() == DONE, weir.said()


def test_a_format_that_was_wrong_from_the_start_is_told_at_once(place):
    """Ten lines are enough, and nobody waits a minute for it; fewer may be of a scanner."""
    log, port = place.write("log", "time=1 user=zoe\n" * 9), free_port()
    weir = follow(place, place.config(site(1), [source(log)], listen={"http": f"127.0.0.1:{port}"}))
    until(lambda: (page := metrics.scrape(port)) and page.sum("weir_collector_malformed_total") == 9, "they are read", running=weir)
    assert "do not fit" not in weir.said()
    place.append("log", "time=2 user=zoe\n")
    said(weir, '10 of the last 10 lines do not fit its "format"')
    assert weir.stop() == DONE, weir.said()


def test_a_block_is_not_over_before_it_is_published(place):
    """Of a log with the times at which requests began: one that is just told counts from then on, an old one does not."""
    log = place.write("log", "")
    zones = [zone("site", [sliding(1, "1m")], block_for="10m", id=1)]
    config = place.config(zones, [source(log)])
    weir = follow(place, config)
    said(weir, "following")
    began, day = now_ms(), 86400000
    for user, at in (("slow", began - 1200000), ("old", began - day), ("quick", began)):
        place.append("log", line(at, user) * 2)
    until_keys(place, weir, "slow", "old", "quick")
    made = {decision["key"][0]: decision for decision in lines_of(place.path("out"))}
    assert made["slow"]["at"] == began - 1200000 and began + 600000 <= made["slow"]["until"] <= now_ms() + 600000, made
    assert made["old"]["until"] == began - day + 600000 and made["quick"]["until"] == began + 600000, made
    assert weir.stop() == DONE, weir.said()
    place.good("run", "--once", "--config", config, "--decisions", place.path("once"))
    assert [one["until"] - one["at"] for one in lines_of(place.path("once"))] == [600000] * 3


def test_blocks_get_longer_through_kills_and_a_lift_takes_one_back(place):
    log = place.write("log", "")
    zones = [zone("site", [sliding(2, "10ms")], block_for=["100ms", "1h", "1d"], forgive_after="7d", id=1)]
    config = place.config(zones, [source(log)])
    hour = 3600000

    def blocked(count):
        """The newest decision, once so many were made: another three requests make it."""
        weir = follow(place, config)
        said(weir, "following")
        place.append("log", burst("ann", 3, now_ms()))
        until(lambda: len(keys(place)) == count, f"block {count}", running=weir)
        return weir, lines_of(place.path("out"))[-1]

    weir, first = blocked(1)
    assert (first["nth"], first["until"] - first["at"]) == (1, 100), first
    weir.kill()
    time.sleep(0.1)
    weir, second = blocked(2)
    assert (second["nth"], second["until"] - second["at"]) == (2, hour), second
    assert ", block 2\n" in place.good("list", "--config", config, "--state", place.path("state")).out().decode()
    done = place.run("lift", "ann", "--config", config, "--state", place.path("state"))
    assert done.code() == DONE, done.said()
    until(lambda: len(lines_of(place.path("out"))) == 3, "a lift", running=weir)
    weir.kill()
    weir, again = blocked(3)
    assert (again["nth"], again["until"] - again["at"]) == (2, hour), again
    assert weir.stop() == DONE, weir.said()


def test_it_goes_on_where_it_was(place):
    log = place.write("log", burst("ann", 3))
    config = place.config(site(), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("marker", 4))
    until_keys(place, weir, "marker")
    assert weir.stop() == DONE, weir.said()
    place.append("log", burst("ann", 1) + burst("bob", 4))
    weir = follow(place, config)
    until_keys(place, weir, "marker", "ann", "bob")
    assert weir.stop() == DONE, weir.said()
    weir = follow(place, config)
    place.append("log", burst("eve", 4))
    until_keys(place, weir, "marker", "ann", "bob", "eve")


def test_it_says_where_it_goes_on(place):
    """A second run over the same log reads no line of it: it says why, once for all files."""
    logs = [place.write(f"log.{number}", burst(f"user-{number}", 3)) for number in range(3)]
    size, words = os.path.getsize(logs[0]), "an earlier run with this state has read what is before"

    def run(count, name, behind=0):
        config = place.config(site(1), [source(log) for log in logs[:count]], name=f"{name}.json")
        weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
        said(weir, "following")
        until(lambda: len(keys(place)) >= count + behind, "all is read", running=weir)
        assert weir.stop() == DONE, weir.said()
        return weir.said()

    first = run(1, "first")
    assert words not in first and "since the state began" not in first, first
    second = run(1, "second")
    assert f"{logs[0]}: goes on at byte {size}, its end: {words}" in second, second
    assert "since the state began, in earlier runs too" in second, second
    place.append("log.0", burst("ann", 3))
    third = run(3, "third", 1)
    assert f"{logs[0]}: goes on at byte {size}: {words}" in third and third.count(words) == 1, third
    last = run(3, "last")
    assert f"goes on in 3 files where it stopped, 3 of them read to their end: {words}" in last, last
    assert last.count(words) == 1, last


def test_a_kill_loses_nothing_and_doubles_nothing(place):
    log = place.write("log", "")
    config, wanted = place.config(site(), [source(log)]), []
    for number in range(4):
        weir = follow(place, config)
        place.append("log", burst(f"user-{number}", 5))
        wanted.append(f"user-{number}")
        until_keys(place, weir, *wanted)
        weir.kill()
    weir = follow(place, config)
    place.append("log", burst("last", 5))
    until_keys(place, weir, *wanted, "last")
    assert weir.stop() == DONE, weir.said()
    zones = weir.summary()["zones"]
    assert zones["site"] == {"matched": 25, "passed": 15, "blocked": 10, "late": 0, "decisions": 5}, zones


def test_a_header_is_known_again_wherever_it_stands(place):
    form = {"type": "delimited", "separator": ",", "quote": '"', "unit": "ms"}
    wide = "time," + "a column of many," * 200 + "user\n"
    heads = {"empty": "\n\r\ntime,user\n", "broken": '"b"x,c\n"broken\ntime,user\n',
             "wide": wide, "long": "x" * 1500 + "\ntime,user\n", "late": "\n"}
    def rows(name, user):
        between = "," * 200 if name == "wide" else ""
        return "".join(f"{traffic.START_MS + i},{between}{user}\n" for i in range(4))
    sources = [source(place.write(name, head + ("" if name == "late" else rows(name, f"before-{name}"))),
                      format=form, line_max="1KiB" if name == "long" else "64KiB") for name, head in heads.items()]
    config = place.config(site(), sources)
    weir = follow(place, config)
    until_keys(place, weir, *(f"before-{name}" for name in heads if name != "late"))
    assert weir.stop() == DONE, weir.said()
    place.append("late", "time,user\n")
    for name in heads:
        place.append(name, rows(name, f"after-{name}"))
    weir = follow(place, config)
    until_keys(place, weir, *(f"before-{name}" for name in heads if name != "late"), *(f"after-{name}" for name in heads))
    assert weir.stop() == DONE, weir.said()


def test_it_starts_at_the_end_when_told_to(place):
    log = place.write("log", burst("old", 9))
    config = place.config(site(), [source(log, start="end")])
    weir = follow(place, config)
    said(weir, "following")
    place.append("log", burst("new", 4))
    until_keys(place, weir, "new")
    weir.kill()
    place.append("log", burst("newer", 4))
    weir = follow(place, config)
    until_keys(place, weir, "new", "newer")


def test_files_that_appear_are_read(place):
    config = place.config(site(), [source(place.path("logs", "*.log"))])
    os.mkdir(place.path("logs"))
    weir = follow(place, config)
    said(weir, "following")
    for name in ("a", "b"):
        place.write(f"logs/{name}.log", burst(name, 4))
    until_keys(place, weir, "a", "b")
    place.write("logs/other.txt", burst("other", 4))
    place.append("logs/a.log", burst("again", 4))
    until_keys(place, weir, "a", "b", "again")


def test_decisions_go_to_standard_output_by_default(place):
    log = place.write("log", burst("ann", 4))
    weir = place.start("run", "--config", place.config(site(), [source(log)]), "--state", place.path("state"))
    decision = json.loads(until(lambda: weir.out().endswith(b"\n") and weir.out(), "a decision", running=weir))
    assert decision["key"] == ["ann"] and decision["zone"] == "site"
    assert weir.stop() == DONE, weir.said()


def test_a_hangup_with_a_cluster_s_configuration_changes_nothing(place):
    """One without zones, too, which a cluster may have and one machine may not."""
    log = place.write("log", "")
    config = place.config(site(), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("ann", 4))
    until_keys(place, weir, "ann")
    place.write("weir.json", json.dumps({"bus": {"type": "kafka", "brokers": "127.0.0.1:1"}, "sources": [source(log)]}))
    weir.signal(signal.SIGHUP)
    until(lambda: 'bus.type: must be "local" for weir run' in weir.said(), "it is refused", running=weir)
    place.append("log", burst("bob", 4))
    until_keys(place, weir, "ann", "bob")
    assert weir.stop() == DONE and "policy 1 stays in force" in weir.said(), weir.said()


def test_signals_are_heard_while_weir_asks_its_sources(place):
    """A server that takes connections and never answers holds up the start: logrotate and systemd do not wait for it."""
    for more, code in (((), DONE), (("--once",), INTERRUPTED)):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE_S)
            asked = {"type": "redis", "url": f"redis://127.0.0.1:{server.getsockname()[1]}", "streams": ["logs"], "format": "combined"}
            weir = follow(place, place.config(site(), [asked]), *more)
            connection, _ = server.accept()
            weir.signal(signal.SIGHUP)
            time.sleep(0.2)
            assert weir.code() is None, (weir.code(), weir.said())
            weir.signal(signal.SIGTERM)
            assert weir.wait() == code, weir.said()
            connection.close()


def test_a_hangup_reopens_decisions_and_dead_letters(place):
    log = place.write("log", "")
    config = place.config(site(), [source(log)])
    more = ("--dead-letter", place.path("dead"))
    weir = follow(place, config, *more)
    place.append("log", burst("ann", 4) + "bad one\n")
    until_keys(place, weir, "ann")
    until(lambda: lines_of(place.path("dead")), "a dead letter", running=weir)
    for name in ("out", "dead"):
        os.rename(place.path(name), place.path(name + ".1"))
    place.append("log", burst("bob", 4))
    until(lambda: "bob" in keys(place, "out.1"), "a decision in the renamed file", running=weir)
    weir.signal(signal.SIGHUP)
    for name in ("out", "dead"):
        until(lambda: os.path.exists(place.path(name)), f"{name} is made again", running=weir)  # pylint: disable=cell-var-from-loop
    place.append("log", burst("eve", 4) + "bad two\n")
    until_keys(place, weir, "eve")
    until(lambda: lines_of(place.path("dead")), "a dead letter in the new file", running=weir)
    weir.kill()
    place.append("log", burst("joe", 4))
    weir = follow(place, config, *more)
    until_keys(place, weir, "eve", "joe")
    assert weir.stop() == DONE, weir.said()
    assert keys(place, "out.1") == ["ann", "bob"]
    assert [letter["text"] for letter in lines_of(place.path("dead.1"))] == ["bad one"]
    # A line whose position was not yet saved when weir was killed is read, and kept, again.
    assert {letter["text"] for letter in lines_of(place.path("dead"))} == {"bad two"}


def test_a_list_of_exempt_users_is_read_again_when_it_changes(place):
    log, users = place.write("log", ""), place.write("users", "ann\n")
    zones = site()
    zones[0]["exempt"] = {"file": users}
    weir = follow(place, place.config(zones, [source(log)]))
    place.append("log", burst("ann", 4) + burst("bob", 4))
    until_keys(place, weir, "bob")
    place.write("new", "bob\n# a comment\neve\n")
    os.rename(place.path("new"), users)
    until(lambda: "policy 2 is in force" in weir.said(), "the list is read again", running=weir)
    place.append("log", burst("eve", 4) + burst("ann", 4))
    until_keys(place, weir, "bob", "ann")
    place.write("users", "10.0.0.1/8\n")
    until(lambda: "policy 2 stays in force" in weir.said(), "a bad list is refused", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_a_long_list_of_exempt_users_is_read_again_when_it_changes(place):
    many = "".join(f"user{n}\n" for n in range(20000))
    log, users = place.write("log", ""), place.write("users", many + "ann\n")
    zones = site()
    zones[0]["exempt"] = {"file": users}
    weir = follow(place, place.config(zones, [source(log)]))
    place.append("log", burst("ann", 4) + burst("user19999", 4) + burst("bob", 4))
    until_keys(place, weir, "bob")
    place.write("new", many + "bob\neve\n")
    os.rename(place.path("new"), users)
    until(lambda: "policy 1 is in force, unchanged" in weir.said(), "the list is read again", running=weir)
    place.append("log", burst("eve", 4) + burst("user7", 4) + burst("ann", 4))
    until_keys(place, weir, "bob", "ann")
    place.write("users", many + "10.0.0.1/8\n")
    until(lambda: "users:20001: \"10.0.0.1/8\" is not a network" in weir.said(), "a bad list is refused", running=weir)
    place.append("log", burst("eve", 4) + burst("user7", 4) + burst("joe", 4))
    until_keys(place, weir, "bob", "ann", "joe")
    assert weir.stop() == DONE, weir.said()


def test_a_list_of_another_server_is_fetched_and_kept(place):
    log, server = place.write("log", ""), ListServer({"/bots": b"198.51.100.0/24 # ours\nbob\n192.0.2.1\n"})
    zones = site()
    zones[0]["key"] = ["ip"]
    config = place.config(zones, [source(log)],
                          exempt=[{"list": f"{server.address}/bots"}])
    lines = "".join(burst("joe", 4, ip=ip) for ip in ("198.51.100.7", "192.0.2.1", "192.0.2.2"))
    weir = follow(place, config)
    until(lambda: "1 entries of the list" in weir.said(), "the list is there", running=weir)
    place.append("log", lines)
    until_keys(place, weir, "192.0.2.2")
    assert weir.stop() == DONE, weir.said()
    server.stop()
    weir = follow(place, config)
    until(lambda: "stays in use" in weir.said(), "the copy stays", running=weir)
    place.append("log", lines + burst("joe", 4, ip="192.0.2.3"))
    until_keys(place, weir, "192.0.2.2", "192.0.2.3")
    assert weir.stop() == DONE, weir.said()


def test_a_robot_is_exempt_once_its_name_is_known(place):
    name = NameServer.name
    server = NameServer({(name("1.2.0.192.in-addr.arpa"), 12): name("crawl-1.googlebot.com"),
                         (name("crawl-1.googlebot.com"), 1): bytes([192, 0, 2, 1]),
                         (name("2.2.0.192.in-addr.arpa"), 12): name("googlebot.com.evil.example"),
                         (name("googlebot.com.evil.example"), 1): bytes([192, 0, 2, 2])})
    log, port = place.write("log", ""), free_port()
    zones = site()
    zones[0]["key"] = ["ip"]
    weir = follow(place, place.config(zones, [source(log)], exempt=[{"verified": ["googlebot"]}],
                                      collector={"resolver": f"127.0.0.1:{server.port}"},
                                      listen={"http": f"127.0.0.1:{port}"}))

    def answered():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                return b"\nweir_verified_asked_total 2\n" in page.read()
        except OSError:
            return False  # it does not serve yet

    claims = [burst("x", 1, ip=ip, agent="Googlebot/2.1") for ip in ("192.0.2.1", "192.0.2.2")]
    place.append("log", "".join(claims))
    until(answered, "the names are known", running=weir)
    place.append("log", claims[0] * 5 + burst("x", 5, ip="192.0.2.1", agent="curl", start_ms=traffic.START_MS + 3600000)
                 + claims[1] * 5)
    until_keys(place, weir, "192.0.2.1", "192.0.2.2")
    late = {decision["key"][0]: decision["at"] >= traffic.START_MS + 3600000 for decision in lines_of(place.path("out"))}
    assert late == {"192.0.2.1": True, "192.0.2.2": False}  # the robot for what it said as somebody else
    assert weir.stop() == DONE, weir.said()


def test_a_file_renamed_before_it_was_saved_doubles_nothing(place):
    log = place.write("log", "")
    config = place.config(site(), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("ann", 4))
    until_keys(place, weir, "ann")
    os.rename(place.path("out"), place.path("out.1"))
    weir.signal(signal.SIGHUP)
    until(lambda: os.path.exists(place.path("out")), "the file is made again", running=weir)
    place.append("log", burst("bob", 4))
    until_keys(place, weir, "bob")
    os.rename(place.path("out"), place.path("out-kept"))
    weir.kill()
    weir = follow(place, config)
    place.append("log", burst("eve", 4))
    until(lambda: "eve" in keys(place), "eve is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert sorted(keys(place, "out.1") + keys(place, "out-kept") + keys(place)) == ["ann", "bob", "eve"]


def decide_after(place, lose, words):
    """A decision; the file is lost while nothing runs, by lose(config); then another, and words of what was found."""
    log = place.write("log", "")
    config = place.config(site(), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("ann", 4))
    until_keys(place, weir, "ann")
    assert weir.stop() == DONE, weir.said()
    lose(config)
    weir = follow(place, config)
    place.append("log", burst("bob", 4))
    until_keys(place, weir, "bob")
    assert words in weir.said(), weir.said()
    assert weir.stop() == DONE, weir.said()


def test_a_removed_decisions_file_is_made_again(place):
    decide_after(place, lambda _: os.unlink(place.path("out")), "neither")


def test_a_decisions_file_that_was_cut_before_a_crash_is_gone_on_with(place):
    def lose(config):
        follow(place, config).kill()  # the note says by now what was written
        os.truncate(place.path("out"), 0)  # as logrotate does with copytruncate

    decide_after(place, lose, "has 0 bytes")


def lose_and_grow_and_kill(place, lose):
    """Decisions after a loss of the file that make it longer than it was, and a kill before a second is over."""
    log = place.write("log", "")
    config = place.config(site(1), [source(log)])
    weir, out = follow(place, config), place.path("out")
    place.append("log", "".join(burst(f"before-{n}", 2) for n in range(10)))
    until(lambda: len(keys(place)) == 10, "decisions", running=weir)
    time.sleep(1.2)  # saved: what comes is saved at once, then not for a second
    place.append("log", burst("last", 2))
    until(lambda: len(keys(place)) == 11, "one more", running=weir)
    size = os.path.getsize(out)
    before = lose(out)
    place.append("log", "".join(burst(f"{'after' * (n % 5)}-{n}", 2) for n in range(200)))
    until(lambda: os.path.exists(out) and os.path.getsize(out) > 2 * size, "it grew past its old length", running=weir)
    weir.kill()
    weir = follow(place, config)
    place.append("log", burst("end", 2))
    until(lambda: b'"end"' in read(out), "the last decision", running=weir)
    assert weir.stop() == DONE, weir.said()
    found = [json.loads(text)["id"] for text in before + read(out).splitlines()]
    assert len(found) == len(set(found)) == 212, (len(found), len(set(found)))


def test_a_decisions_file_that_was_cut_and_grew_before_a_kill_has_each_once(place):
    def lose(path):
        before = read(path).splitlines()
        os.truncate(path, 0)  # as logrotate does with copytruncate
        return before

    lose_and_grow_and_kill(place, lose)


def test_a_decisions_file_that_was_removed_before_a_kill_has_each_once(place):
    def lose(path):
        before = read(path).splitlines()
        os.unlink(path)
        return before

    lose_and_grow_and_kill(place, lose)


def test_a_hangup_without_a_rename_changes_nothing(place):
    log = place.write("log", burst("ann", 4))
    weir = follow(place, place.config(site(), [source(log)]))
    until_keys(place, weir, "ann")
    inode = os.stat(place.path("out")).st_ino
    weir.signal(signal.SIGHUP)
    said(weir, "unchanged")
    place.append("log", burst("bob", 4))
    until_keys(place, weir, "ann", "bob")
    assert os.stat(place.path("out")).st_ino == inode
    assert weir.stop() == DONE, weir.said()


def test_files_rotate_by_size_when_told_to(place):
    log = place.write("log", "")
    config = place.config(site(1), [source(log)], decisions={"rotate_size": "4KiB", "keep": 100},
                          deadletter={"rotate_size": "4KiB", "keep": 100, "rate": 0})
    weir = follow(place, config, "--dead-letter", place.path("dead"))
    count = 100
    place.append("log", "".join(line(traffic.START_MS, f"user-{i}") * 2 + f"bad {i}\n" for i in range(count)))

    def files(name):
        number = 1
        while os.path.exists(place.path(f"{name}.{number}")):
            number += 1
        return [f"{name}.{i}" for i in reversed(range(1, number))] + [name]

    until(lambda: sum(len(keys(place, name)) for name in files("out")) == count, "all decisions", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert sorted(key for name in files("out") for key in keys(place, name)) == sorted(
        f"user-{i}" for i in range(count))
    letters = [letter["text"] for name in files("dead") for letter in lines_of(place.path(name))]
    assert letters == [f"bad {i}" for i in range(count)]
    for name in files("out") + files("dead"):
        assert os.path.getsize(place.path(name)) <= 4096, f"{name} is larger than told"
        assert name in ("out", "dead") or os.path.getsize(place.path(name)) > 3000, f"{name} was closed early"


def two_zones(site_limits, **more):
    """Zones whose second one stays as it is."""
    return [zone("site", site_limits, id=1, **more), zone("other", [sliding(4, "1h")], id=2)]


def test_a_new_policy_keeps_the_state_of_unchanged_limits(place):
    log = place.write("log", "")
    first = two_zones([sliding(10, "1h"), fixed(4, "1d")])
    config = place.config(first, [source(log)])
    weir = follow(place, config)
    place.append("log", burst("ann", 4) + burst("marker", 5))
    until(lambda: len(lines_of(place.path("out"))) == 2, "the marker is blocked in both zones", running=weir)
    # site: the sliding limit changes and starts empty, the fixed one stays and knows of ann's four;
    # other: untouched
    place.config(two_zones([sliding(2, "1h"), fixed(4, "1d")]), [source(log)])
    weir.signal(signal.SIGHUP)
    said(weir, "policy 2")
    place.append("log", burst("ann", 1, traffic.START_MS + 100))
    until(lambda: keys(place).count("ann") == 2, "ann is blocked in both zones", running=weir)
    limits = {decision["zone"]: decision["limit"]["algorithm"] for decision in lines_of(place.path("out"))
              if decision["key"] == ["ann"]}
    assert limits == {"site": "fixed_window", "other": "sliding_window"}, limits
    # a user new to the fixed one shows that the sliding one is in force
    place.append("log", burst("bob", 3, traffic.START_MS + 200))
    until(lambda: "bob" in keys(place), "bob is blocked", running=weir)
    bob = next(decision for decision in lines_of(place.path("out")) if decision["key"] == ["bob"])
    assert bob["zone"] == "site" and bob["limit"]["rate"] == 2, bob
    assert weir.stop() == DONE, weir.said()


def test_a_changed_limit_starts_empty(place):
    log = place.write("log", "")
    config = place.config(site(4, "1h"), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("ann", 4) + burst("marker", 5))
    until_keys(place, weir, "marker")
    place.config(site(5, "1h"), [source(log)])
    weir.signal(signal.SIGHUP)
    said(weir, "policy 2")
    place.append("log", burst("ann", 5, traffic.START_MS + 100) + burst("bob", 6, traffic.START_MS + 100))
    until_keys(place, weir, "marker", "bob")
    place.append("log", burst("ann", 1, traffic.START_MS + 200))
    until_keys(place, weir, "marker", "bob", "ann")
    assert weir.stop() == DONE, weir.said()


def test_a_removed_zone_is_lifted(place):
    log = place.write("log", "")
    zones = two_zones([sliding(3, "1h")])
    config = place.config(zones, [source(log)], bus={"partitions": 4})
    weir = follow(place, config)
    place.append("log", burst("ann", 5))
    until(lambda: len(lines_of(place.path("out"))) == 2, "ann is blocked in both zones", running=weir)
    place.config(zones[1:], [source(log)], bus={"partitions": 4})
    weir.signal(signal.SIGHUP)
    lifts = until(lambda: [one for one in lines_of(place.path("out")) if one["action"] == "lift"][3:] and
                  [one for one in lines_of(place.path("out")) if one["action"] == "lift"], "lifts", running=weir)
    assert sorted(int(lift["id"].split("-")[0]) for lift in lifts) == [0, 1, 2, 3], "not one for each partition"
    for lift in lifts:
        assert lift["zone"] == "site" and lift["key"] is None and lift["at"] == lift["until"], lift
    place.append("log", burst("bob", 5))
    until(lambda: "bob" in keys(place), "bob is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert [one["zone"] for one in lines_of(place.path("out")) if one["key"] == ["bob"]] == ["other"]


def test_a_policy_that_changed_while_it_was_down_takes_over_at_the_start(place):
    log = place.write("log", burst("ann", 3))
    config = place.config(site(3, "1h"), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("marker", 4))
    until_keys(place, weir, "marker")
    assert weir.stop() == DONE, weir.said()
    place.config(site(2, "1h"), [source(log)])
    place.append("log", burst("ann", 2) + burst("bob", 3))
    weir = follow(place, config)
    until_keys(place, weir, "marker", "bob")
    assert weir.stop() == DONE, weir.said()


def test_a_bad_file_leaves_the_running_policy(place):
    log = place.write("log", "")
    config = place.config(site(), [source(log)])
    weir = follow(place, config)
    place.append("log", burst("ann", 4))
    until_keys(place, weir, "ann")
    for number, (text, word) in enumerate((
            ("{ this is no JSON", "weir.json"),
            (json.dumps({"zones": [zone("site", [sliding(0, "1m")], id=1)], "sources": [source(log)]}), "rate"),
            (json.dumps({"zones": [zone("site", [sliding(1, "1m")], id=1, key=["ip"])],
                         "sources": [source(log)]}), "key"))):
        place.write("weir.json", text)
        before = len(weir.said())
        weir.signal(signal.SIGHUP)
        until(lambda: "in force" in weir.said()[before:], "weir says so", running=weir)  # pylint: disable=cell-var-from-loop
        assert word in weir.said()[before:] and "policy 1 stays" in weir.said()[before:], weir.said()[before:]
        place.append("log", burst(f"user-{number}", 4))
        until(lambda: f"user-{number}" in keys(place), "it goes on", running=weir)  # pylint: disable=cell-var-from-loop
    assert len(keys(place)) == 4
    assert weir.stop() == DONE, weir.said()


def test_a_reload_refuses_what_the_next_start_would(place):
    """By the same words; what runs goes on, and takes a good file afterwards."""
    log = place.write("log", "")
    os.chmod(place.write("short", "too short"), 0o600)
    config = place.config(site(), [source(log)])
    api = {"enabled": True, "api": f"127.0.0.1:{free_port()}"}
    nowhere, none = place.path("no/such"), place.path("none")
    refused = {
        "partitions": {"bus": {"partitions": 4}},
        "nosuch": {"gateways": [{"to": "nosuch:/x"}]},
        "/no-token": {"archiver": {**api, "tokens": [{"file": place.path("no-token")}]}},
        "/no-hash": {"archiver": {"enabled": True, "hash_keys": place.path("no-hash")}},
        "short": {"archiver": {"enabled": True, "hash_keys": place.path("short")}},
        none: {"listen": {"resp": f"127.0.0.1:{free_port()}"}, "checks": {"password": {"file": none}}},
        "/no.pem": {"listen": {"http": f"127.0.0.1:{free_port()}", "certificate": place.path("no.pem"), "key": place.path("no.key")}},
        "decisions.shadow_path": {"decisions": {"shadow_path": place.path("out")}},
        "shadow": {"decisions": {"shadow_path": nowhere + "/shadow"}},
        nowhere: {"deadletter": {"path": nowhere}},
    }
    for word, sections in refused.items():
        place.config(site(), [source(log)])
        weir = follow(place, config)
        said(weir, "following")
        place.config(site(2), [source(log)], **sections)
        before = len(weir.said())
        weir.signal(signal.SIGHUP)
        until(lambda: "in force" in weir.said()[before:], "weir says so", running=weir)  # pylint: disable=cell-var-from-loop
        told = weir.said()[before:]
        assert word in told and "ERROR" in told and "stays in force" in told, told
        assert weir.stop() == DONE, weir.said()
        started = follow(place, config)
        assert started.wait() != DONE and word in started.said(), started.said()
    place.config(site(), [source(log)])
    weir = follow(place, config)
    said(weir, "following")
    place.config(site(2), [source(log)], decisions={"shadow_path": place.path("shadow")})
    weir.signal(signal.SIGHUP)
    said(weir, "they take effect at a restart")
    assert "ERROR" not in weir.said(), weir.said()
    assert weir.stop() == DONE, weir.said()


def test_policies_may_ask_for_other_fields_again_and_again(place):
    log = place.write("log", "")

    def asking(first, count):
        wide = [zone(f"wide-{at}", [sliding(3, "1m")], id=2 + at,
                     match={f"field-{first + 10 * at + i}": ["x"] for i in range(10)}) for at in range(count // 10)]
        return place.config([*site(), *wide], [source(log)])

    weir = follow(place, asking(0, 30))
    said(weir, "following")
    for number in range(1, 5):
        asking(30 * number, 30)
        weir.signal(signal.SIGHUP)
        said(weir, f"policy {number + 1} is in force")
        place.append("log", burst(f"user-{number}", 4))
        until(lambda: f"user-{number}" in keys(place), "it goes on", running=weir)  # pylint: disable=cell-var-from-loop
    asking(0, 60)  # with the eight standard ones more than there may be
    weir.signal(signal.SIGHUP)
    said(weir, "policy 5 stays in force")
    place.append("log", burst("bob", 4))
    until_keys(place, weir, "user-1", "user-2", "user-3", "user-4", "bob")
    assert weir.stop() == DONE, weir.said()


def test_an_id_is_not_used_again_whatever_came_between(place):
    log = place.write("log", "")
    first, second = zone("first", [sliding(3, "1m")], id=2), zone("second", [sliding(3, "1m")], id=2)
    weir = follow(place, place.config([*site(), first], [source(log)]))
    said(weir, "following")
    place.config(site(), [source(log)])
    weir.signal(signal.SIGHUP)
    said(weir, "policy 2 is in force")
    assert "at a restart" not in weir.said(), weir.said()
    place.config([*site(), second], [source(log)])
    weir.signal(signal.SIGHUP)
    said(weir, "policy 2 stays in force")
    assert 'zone 2 is "first" in policy 1' in weir.said(), weir.said()
    place.config([*site(), first], [source(log)], log={"level": "warning"})
    weir.signal(signal.SIGHUP)
    said(weir, "they take effect at a restart")
    assert weir.stop() == DONE, weir.said()


def test_its_log_cannot_be_decoded_into_a_full_disk_unnoticed(place):
    log = place.write("log", burst("ann", 4))
    assert follow(place, place.config(site(), [source(log, follow=False)])).wait() == DONE
    with open("/dev/full", "wb") as full:
        done = place.run("decode", "--state", place.path("state"), stdout=full)
    assert done.code() == FAILED and "cannot write" in done.said(), f"left with {done.code()}: {done.said()}"


def test_it_ends_by_itself_when_nothing_follows(place):
    logs = [place.write(name, burst(name, 4)) for name in ("ann", "bob")]
    config = place.config(site(), [source(log, follow=False) for log in logs])
    weir = follow(place, config)
    assert weir.wait() == DONE, weir.said()
    assert sorted(keys(place)) == ["ann", "bob"]
    assert weir.summary()["lines"] == 8
    assert 'one with "follow": true would be waited for' in weir.said(), weir.said()
    place.append("ann", burst("eve", 4))
    weir = follow(place, config)
    assert weir.wait() == DONE, weir.said()
    assert sorted(keys(place)) == ["ann", "bob", "eve"]


def test_standard_input_ends_it_too(place):
    config = place.config(site(), [{"type": "stdin", "format": traffic.FORMAT}])
    with open(place.write("log", burst("ann", 4)), "rb") as log:
        weir = follow(place, config, stdin=log)
    assert weir.wait() == DONE, weir.said()
    assert keys(place) == ["ann"]


def test_a_part_whose_rest_nobody_reads_is_told_at_the_end(place):
    """Standard input is not read again; a file is, from before the part on."""
    whole, wrapped = '{"user":"ann"}\n', {"type": "wrapped", "in": "docker", "message": "json"}
    parts = "".join(json.dumps({"log": text, "stream": stream, "time": "2024-05-17T10:05:09Z"}) + "\n"
                    for text, stream in ((whole, "stdout"), (whole, "stdout"), ('{"user":"an', "stdout"), ("x", "stderr")))
    log = place.write("log", parts)
    with open(log, "rb") as stdin:
        weir = follow(place, place.config(site(1), [{"type": "stdin", "format": wrapped}]), "--dead-letter", place.path("dead"), stdin=stdin)
    assert weir.wait() == DONE, weir.said()
    assert "2 lines came without their last parts" in weir.said(), weir.said()
    assert weir.summary()["malformed"] == {"not wrapped": 2} and weir.summary()["events"] == 2, weir.summary()
    assert [(letter["reason"], letter["text"]) for letter in lines_of(place.path("dead"))] == \
        [("not wrapped", '{"user":"an'), ("not wrapped", "x")]
    weir = follow(place, place.config(site(1), [{**source(log), "format": wrapped}]), "--dead-letter", place.path("letters"),
                  state="other", out="again")
    until_keys(place, weir, "ann", out="again")
    assert weir.stop() == DONE, weir.said()
    assert weir.summary()["malformed"] == {} and not lines_of(place.path("letters")), weir.summary()


def test_sigterm_ends_it_soon_with_everything_decided(place):
    log = place.write("log", "")
    weir = follow(place, place.config(site(), [source(log)]))
    place.append("log", burst("ann", 4))
    until_keys(place, weir, "ann")
    for number in range(2000):
        place.append("log", burst(f"user-{number}", 5))
    asked = time.monotonic()
    weir.signal(signal.SIGTERM)
    assert weir.wait() == DONE, weir.said()
    took = time.monotonic() - asked
    assert took < (60 if SANITIZED else 10), f"it took {took:.1f} s"
    counts = weir.summary()["zones"]["site"]
    assert counts["decisions"] == len(keys(place)), "the file does not hold what was counted"


def test_a_quiet_weir_ends_at_once(place):
    weir = follow(place, place.config(site(), [source(place.path("no-log-yet"))]))
    said(weir, "following")
    asked = time.monotonic()
    assert weir.stop() == DONE, weir.said()
    assert time.monotonic() - asked < (30 if SANITIZED else 3)


def test_a_fresh_state_refuses_a_decisions_file_that_is_not_empty(place):
    log = place.write("log", burst("ann", 4))
    place.write("out", "not yours\n")
    weir = follow(place, place.config(site(), [source(log)]))
    assert weir.wait() in (FAILED, USAGE) and place.path("out") in weir.said(), weir.said()
    assert read(place.path("out")) == b"not yours\n"


def test_an_output_that_is_a_source_is_refused_and_left_alone(place):
    """It would feed itself for ever."""
    log = place.write("access-1.log", burst("ann", 4))
    os.symlink(log, place.path("symlink"))
    config = place.config(site(), [source(place.path("access-*.log"), follow=True)])
    for option in ("--decisions", "--shadow", "--dead-letter"):
        for name in ("access-1.log", "symlink"):
            done = place.run("run", "--config", config, "--state", place.path("state"), option, place.path(name))
            assert done.code() == USAGE and option in done.said() and log in done.said(), done.said()
    with open(log, "ab") as end:
        done = place.run("run", "--config", config, "--state", place.path("state"), stdout=end)
    assert done.code() == USAGE and "--decisions -" in done.said(), done.said()
    assert read(log) == burst("ann", 4).encode() and not os.path.exists(place.path("state"))


def test_an_address_that_is_taken_is_said(place):
    log = place.write("log", "")
    config = place.config(site(), [source(log)], listen={"http": f"127.0.0.1:{free_port()}"})
    first = follow(place, config)
    said(first, "following")
    second = follow(place, config, state="other", out="other-out")
    assert second.wait() == FAILED and "127.0.0.1" in second.said(), second.said()
    assert first.stop() == DONE, first.said()


def test_the_default_state_directory_is_of_the_user(place):
    if os.geteuid() == 0:
        raise cases.Skipped("as root it is /var/lib/weir, which is not a test's to write")
    log = place.write("log", burst("ann", 4))
    weir = place.start("run", "--config", place.config(site(), [source(log)]), "--decisions", place.path("out"),
                       env=dict(os.environ, XDG_STATE_HOME=place.path("xdg")))
    until_keys(place, weir, "ann")
    assert weir.stop() == DONE, weir.said()
    assert os.listdir(place.path("xdg", "weir"))


def owners(directory):
    """Who owns what is there."""
    return {os.lstat(os.path.join(parent, name)).st_uid
            for parent, folders, files in os.walk(directory) for name in folders + files}


def test_what_root_did_on_a_state_does_not_keep_its_user_out(place):
    """An administrator's command, and a run as root, on the state of a service that runs as another user."""
    if os.geteuid() != 0:
        raise cases.Skipped("only root can act for another user")
    user = {"user": 65534, "group": 65534, "extra_groups": []}
    os.chmod(place.directory, 0o755)
    os.mkdir(place.path("service"))
    os.chown(place.path("service"), 65534, 65534)
    log = place.write("log", burst("ann", 4))
    config = place.config(site(), [source(log)])
    where = {"state": "service/state", "out": "service/out"}
    weir = follow(place, config, **where)  # as root
    said(weir, "following")
    assert weir.stop() == DONE, weir.said()
    place.good("block", "bob", "--zone", "site", "--for", "1h", "--state", place.path("service/state"), "--config", config)
    assert owners(place.path("service")) == {65534}, owners(place.path("service"))
    weir = follow(place, config, **where, **user)
    until(lambda: {"ann", "bob"} <= set(keys(place, "service/out")), "both are blocked", running=weir)
    assert weir.stop() == DONE, weir.said()

    segments = place.path("service/state/log/events")
    for name in os.listdir(segments):  # as a version before this one left it
        os.chown(os.path.join(segments, name), 0, 0)
    told = place.run("doctor", "--state", place.path("service/state"), "--config", config).out().decode()
    assert f" belongs to root, and {place.path('service/state')} to nobody" in told, told
    assert f"chown -R nobody {place.path('service/state')}" in told, told
    weir = follow(place, config, **where, **user)
    assert weir.wait() == FAILED, weir.said()
    assert ("Permission denied: it belongs to root, and this process runs as nobody: chown -R nobody "
            f"{segments}") in weir.said(), weir.said()


if __name__ == "__main__":
    cases.main(globals())
