#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once`: what it reads, writes, refuses and says, and its exit codes."""

import contextlib
import glob
import gzip
import http.server
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, traffic
from support.place import PATIENCE_S, SANITIZED, lines_of, read, until
from support.terminal import ERASE, Terminal
from support.traffic import burst, line, site, sliding, source, zone

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3
SLOWER = 5 if SANITIZED else 1  # lines are so many times fewer, as each takes so much longer
LIMIT = ("--format", "combined", "--key", "ip", "--limit", "3/1m")


def combined(ip, count, minute=0):
    """Lines of a web server's log, a second apart."""
    return "".join(f'{ip} - - [14/Nov/2023:22:{minute:02}:{i:02} +0000] "GET /a HTTP/1.1" 200 5 "-" "x"\n'
                   for i in range(count))


def blocked(decisions):
    """The first key value of each decision."""
    return [decision["key"][0] for decision in decisions]


def refused(done, *words):
    """Requires that weir refused to start, with words that say why."""
    assert done.code() in (FAILED, USAGE), f"left with {done.code()}: {done.said()}"
    for word in words:
        assert word in done.said(), f"{word!r} is not in: {done.said()}"


def test_a_log_and_a_limit_on_the_command_line_are_enough(place):
    log = place.write("access.log", combined("192.0.2.1", 5) + combined("192.0.2.2", 3))
    done = place.good("run", "--once", *LIMIT, "--decisions", place.path("out"), log)
    decisions = lines_of(place.path("out"))
    assert blocked(decisions) == ["192.0.2.1"], decisions
    assert decisions[0]["action"] == "block" and decisions[0]["mode"] == "enforce"
    for word in ("lines", "events", "malformed", "passed", "blocked", "192.0.2.1", place.path("out")):
        assert word in done.said(), f"{word!r} is not in the summary: {done.said()}"


def test_decisions_go_to_standard_output_by_default(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    done = place.good("run", "--once", *LIMIT, log)
    assert blocked([json.loads(text) for text in done.out().splitlines()]) == ["192.0.2.1"]


def test_a_dash_is_standard_input(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    place.good("run", "--once", *LIMIT, "--decisions", place.path("from-file"), log)
    with open(log, "rb") as lines:
        place.good("run", "--once", *LIMIT, "--decisions", place.path("from-pipe"), "-", stdin=lines)
    assert read(place.path("from-file")) == read(place.path("from-pipe")) != b""


def test_standard_input_may_be_compressed(place):
    packed = place.write("packed", gzip.compress(combined("192.0.2.1", 5).encode()))
    with open(packed, "rb") as lines:
        done = place.good("run", "--once", *LIMIT, "-", stdin=lines)
    assert done.out().count(b"\n") == 1


def test_outputs_need_not_be_files(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    place.good("run", "--once", *LIMIT, "--decisions", "/dev/null", log)
    place.good("run", "--once", *LIMIT, "--state", place.path("state"), "--decisions", "/dev/null", log)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        place.good("run", "--once", *LIMIT, "--decisions", "/dev/stdout", log, stdout=cat.stdin)
        assert cat.communicate()[0].count(b"\n") == 1
    os.mkfifo(place.path("fifo"))
    with subprocess.Popen(["cat", place.path("fifo")], stdout=subprocess.PIPE) as cat:
        place.good("run", "--once", *LIMIT, "--decisions", place.path("fifo"), log)
        assert cat.communicate()[0].count(b"\n") == 1


def test_what_is_open_already_is_appended_to(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        out = place.write("out", "kept\n")
        with open(out, "ab") as stdout:
            place.good("run", "--once", *LIMIT, "--json", "--decisions", name, log, stdout=stdout)
        assert read(out).startswith(b"kept\n{") and read(out).count(b"\n") == 2, (name, read(out))
    for name in ("/dev/stderr", "/proc/self/fd/2"):
        done = place.good("run", "--once", "--quiet", *LIMIT, "--decisions", name, log)
        assert json.loads(done.said())["action"] == "block", done.said()
    done = place.run("run", "--once", *LIMIT, "--decisions", "/dev/fd/999", log)
    assert done.code() == FAILED and "cannot open /dev/fd/999: Bad file descriptor" in done.said(), done.said()


def test_dead_letters_that_were_not_written_are_not_counted_as_kept(place):
    log = place.write("access.log", combined("192.0.2.1", 5) + "junk\n" * 7)
    for dead, code, kept in ((place.path("dead"), DONE, 7), ("/dev/full", FAILED, 0)):
        done = place.run("run", "--once", "--quiet", *LIMIT, "--decisions", place.path("out"), "--dead-letter", dead, "--summary",
                         "json", log)
        summary = done.summary()
        assert done.code() == code and (summary["dead_letters"], summary["dead_letters_dropped"]) == (kept, 7 - kept), done.said()
    assert "7 malformed lines were counted and not kept" in done.said(), done.said()


def test_an_output_that_is_a_source_is_refused_and_left_alone(place):
    text = combined("192.0.2.1", 5)
    log = place.write("access.log", text)
    os.symlink(log, place.path("symlink"))
    os.link(log, place.path("link"))
    for option in ("--decisions", "--shadow", "--judged", "--dead-letter"):
        for name in ("access.log", "symlink", "link"):
            done = place.run("run", "--once", *LIMIT, option, place.path(name), "--state", place.path("state"), log)
            assert done.code() == USAGE and option in done.said() and log in done.said(), done.said()
            assert not os.path.exists(place.path("state"))
            done = place.run("run", "--once", *LIMIT, option, place.path(name), log)
            assert done.code() == USAGE and read(log) == text.encode(), done.said()
    with open(log, "rb") as lines:
        done = place.run("run", "--once", *LIMIT, "--decisions", log, "-", stdin=lines)
    assert done.code() == USAGE and read(log) == text.encode(), done.said()


def test_a_silent_pipe_does_not_hold_a_signal_up(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    state = ("--state", place.path("state"))
    for number, (more, out) in enumerate((((), "out"), (state, "in-parts"), (state, "in-parts"))):
        weir = place.start("run", "--once", *LIMIT, *more, "--decisions", place.path(out), log, "-",
                           stdin=subprocess.PIPE)
        weir.process.stdin.write(combined(f"198.51.100.{number}", 2).encode())
        weir.process.stdin.flush()
        time.sleep(0.5)  # nothing says that it waits
        assert weir.stop() == STOPPED, weir.said()
        weir.process.stdin.close()
    # what was read of the file is not read again, and nothing of it is lost
    place.good("run", "--once", *LIMIT, *state, "--decisions", place.path("in-parts"), log, "-")
    place.good("run", "--once", *LIMIT, "--decisions", place.path("at-once"), log)
    assert read(place.path("in-parts")) == read(place.path("at-once")) != b""


def test_a_closed_standard_output_is_nobody_elses(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    done = place.run("run", "--once", *LIMIT, "--state", place.path("state"), "--judged", place.path("judged"), log,
                     prepare=lambda: os.close(1))
    assert done.code() == 1 and "standard output" in done.said(), done.said()
    assert b"block" not in read(place.path("state", "lock")), read(place.path("state", "lock"))


def test_what_is_printed_and_does_not_arrive_is_not_done(place):
    """Whichever command it is of, and whether the disk is full or standard output was never open."""
    config = place.config([zone("site", [sliding(5, "1m")])], [])
    for words in (("--version",), ("--help",), ("validate", "--settings"), ("validate", "--config", config), ("reference", "bash"),
                  ("list", "--help")):
        for prepare in (lambda: os.close(1), lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1)):
            done = place.run(*words, prepare=prepare)
            assert done.code() == 1 and "cannot write" in done.said(), (words, done.code(), done.said())


def test_a_run_goes_on_with_the_lists_that_it_began_with(place):
    """What another server has by then is another run's, and so is a copy that somebody changed."""
    bodies = [b"192.0.2.1\n", b"192.0.2.2\n"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bodies.pop(0))

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    zones = site()
    zones[0] |= {"key": ["ip"], "exempt": {"list": f"http://127.0.0.1:{server.server_port}/bots"}}
    log = place.write("log", "".join(burst("x", 5, ip=ip) for ip in ("192.0.2.1", "192.0.2.2", "192.0.2.3")))
    arguments = ("run", "--once", "--config", place.config(zones, [source(log), {"type": "stdin", "format": {"type": "json", "unit": "ms"}}]),
                 "--state", place.path("state"), "--decisions", place.path("out"))
    weir = place.start(*arguments, stdin=subprocess.PIPE)
    until(lambda: not weir.process.poll() and os.path.exists(place.path("out")), "it reads", running=weir)
    assert weir.stop() == STOPPED, weir.said()
    copy, = glob.glob(place.path("state", "lists", "*.list"))
    place.write("lines", burst("x", 1, ip="192.0.2.9"))
    kept = read(copy)
    with open(copy, "ab") as file:
        file.write(b"192.0.2.3\n")
    with open(place.path("lines"), "rb") as lines:
        refused(place.run(*arguments, stdin=lines), 'holds an unfinished run with different lists of "exempt": use the same')
    with open(copy, "wb") as file:
        file.write(kept)
    with open(place.path("lines"), "rb") as lines:
        ended = place.run(*arguments, stdin=lines)
    server.shutdown()
    server.server_close()
    assert sorted(blocked(lines_of(place.path("out")))) == ["192.0.2.2", "192.0.2.3"]
    assert bodies == [b"192.0.2.2\n"]  # it was asked for once
    assert ended.code() == DONE, ended.said()


def test_a_newer_state_is_refused_and_left_as_it_is(place):
    """The run's own record of it, which a version stands in as in every form that weir keeps."""
    log = place.write("log", burst("ann", 5))
    arguments = ("run", "--once", "--config", place.config(site(), [source(log)]), "--state", place.path("state"))
    place.good(*arguments, "--decisions", place.path("out"))
    with contextlib.closing(sqlite3.connect(place.path("state", "weir.db"))) as database:
        (note,), = database.execute("SELECT value FROM note WHERE name = 'once'")
        for version, words in ((2, "the state was written by a newer version of weir"), (0, "record of the run is damaged")):
            changed = json.dumps(json.loads(note) | {"version": version}).encode()
            with database:
                database.execute("UPDATE note SET value = ? WHERE name = 'once'", (changed,))
            refused(place.run(*arguments, "--decisions", place.path("out")), words)
            assert database.execute("SELECT value FROM note WHERE name = 'once'").fetchall() == [(changed,)]


def test_once_overrides_follow(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(), [source(log, follow=True)])
    place.good("run", "--once", "--config", config, "--decisions", place.path("out"))
    assert blocked(lines_of(place.path("out"))) == ["ann"]


def test_what_cannot_be_understood_is_usage(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(), [source(log)])
    for arguments in (["run", "--no-such-option"], ["run", "--once"], ["run", "--once", "--config"],
                      ["run", "--once", log], ["run", "--once", "--limit", "10 a minute", log],
                      ["run", "--once", "--limit", "10/1m", "--format", "no-such-format", log],
                      ["run", "--once", "--config", config, log],
                      ["run", "--once", "--config", config, "--limit", "1/1m"],
                      ["run", "--once", "--config", config, "--memory", "much"],
                      ["run", "--once", "--config", config, "--summary", "verse"],
                      ["run", "--once", "--config", place.path("no-such-file")]):
        done = place.run(*arguments)
        assert done.code() == USAGE, f"{arguments} exited with status {done.code()}: {done.said()}"
        assert done.said().strip() and done.out() == b"", f"{arguments} said {done.said()!r}"


def test_a_mistyped_command_is_answered_with_the_nearest(place):
    for arguments, said in ((["rnu"], 'did you mean "run"?'), (["shwo"], "Usage: weir COMMAND"),
                            (["policy", "shwo", "--state", place.directory], 'did you mean "show"?')):
        done = place.run(*arguments)
        assert done.code() == USAGE and said in done.said() and done.out() == b"", done.said()


def test_a_bad_configuration_names_the_place_and_starts_nothing(place):
    log = place.write("log", burst("ann", 5))
    good = {"zones": site(), "sources": [source(log)]}
    for change, word in ((lambda c: c["zones"][0]["limits"][0].update(rate=0), "rate"),
                         (lambda c: c["zones"][0].update(macth={}), "match"),
                         (lambda c: c["sources"][0].update(format="combinde"), "combined"),
                         (lambda c: c.update(limiter={"threads": "two"}), "limiter.threads")):
        config = json.loads(json.dumps(good))
        change(config)
        path = place.write("bad.json", json.dumps(config, indent=1))
        done = place.run("run", "--once", "--config", path, "--state", place.path("state"),
                         "--decisions", place.path("out"))
        assert done.code() == USAGE, f"left with {done.code()}: {done.said()}"
        assert word in done.said() and "bad.json" in done.said(), f"{word!r}? {done.said()}"
        assert not os.path.exists(place.path("out")) and not os.path.exists(place.path("state"))


def test_an_unreadable_source_gives_1_and_the_others_are_finished(place):
    log = place.write("log", burst("ann", 5))
    packed = gzip.compress("".join(burst(f"user-{i}", 3) for i in range(500)).encode())
    cut = place.write("cut.gz", packed[:len(packed) // 2])
    for broken in (place.path("no-such-log"), cut):
        for order in ([broken, log], [log, broken]):
            config = place.config(site(), [source(path) for path in order])
            done = place.run("run", "--once", "--config", config, "--decisions", place.path("out"),
                             "--summary", "json")
            assert done.code() == FAILED, f"left with {done.code()}: {done.said()}"
            assert broken in done.said(), done.said()
            assert "ann" in blocked(lines_of(place.path("out"))), "the readable source was not finished"
            assert done.summary()["zones"]["site"]["matched"] >= 5


def big_job(place, lines=600000 // SLOWER):
    """A configuration whose run takes a while, cut often."""
    log = place.write("big.log", b"".join(traffic.crowd(random.Random(1), lines, 20000)))
    return place.config(site(5), [source(log)], limiter={"checkpoint_interval": "100ms"})


def halt_at(weir, condition):
    """Lets it run for moments at a time until the condition holds, and leaves it halted: so it has not ended before."""
    end = time.monotonic() + PATIENCE_S
    weir.pause()
    while not condition():
        assert weir.code() is None and time.monotonic() < end, f"it ended, or took too long: {weir.said()}"
        weir.resume()
        time.sleep(0.002)
        weir.pause()


def test_a_signal_stops_it_with_3_and_the_next_run_goes_on(place):
    config, out = big_job(place), place.path("out")
    calm = place.good("run", "--once", "--config", config, "--decisions", place.path("calm"), "--summary", "json")
    arguments = ("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", out,
                 "--summary", "json")
    for number in (signal.SIGTERM, signal.SIGINT):
        weir = place.start(*arguments)
        size = os.path.getsize(out) if os.path.exists(out) else 0
        halt_at(weir, lambda: os.path.exists(out) and os.path.getsize(out) > size)  # pylint: disable=cell-var-from-loop
        weir.signal(number)
        weir.resume()
        assert weir.wait() == STOPPED, f"left with {weir.code()}: {weir.said()}"
        assert weir.summary()["finished"] is False
        assert 0 < weir.summary()["lines"] < calm.summary()["lines"]
        assert read(place.path("calm")).startswith(read(out)), "what was written so far is no beginning"
    last = place.good(*arguments)
    assert read(out) == read(place.path("calm"))
    for name in ("lines", "events", "malformed", "zones", "top_blocked"):
        assert last.summary()[name] == calm.summary()[name], f"{name} do not cover the whole"


def test_what_was_read_until_a_signal_adds_up(place):
    config = big_job(place, 300000)
    reading, writing = os.pipe()
    with open(reading, "rb") as decisions:
        weir = place.start("run", "--once", "--config", config, "--summary", "json", stdout=writing)
        os.close(writing)
        decisions.read(1)  # what nobody reads further holds the run up, on any machine
        weir.signal(signal.SIGTERM)
        decisions.read()
        assert weir.wait() == STOPPED, weir.said()
    summary = weir.summary()
    counts = summary["zones"]["site"]
    assert 0 < summary["events"] == counts["matched"] == counts["passed"] + counts["blocked"], summary


def test_an_unfinished_run_refuses_other_zones_and_sources(place):
    config, out = big_job(place), place.path("out")
    arguments = ("--state", place.path("state"), "--decisions", out)
    weir = place.start("run", "--once", "--config", config, *arguments)
    halt_at(weir, lambda: os.path.exists(out) and os.path.getsize(out) > 0)
    weir.signal(signal.SIGTERM)
    weir.resume()
    assert weir.wait() == STOPPED, weir.said()
    before = read(out)
    log = place.path("big.log")
    other = place.write("other.log", burst("ann", 5))
    for zones, sources, word in ((site(6), [source(log)], "zones"),
                                 (site(5) + [zone("more", [sliding(1, "1s")], id=2)], [source(log)], "zones"),
                                 (site(5), [source(other)], "sources"),
                                 (site(5), [source(log), source(other)], "sources")):
        changed = place.config(zones, sources, "changed.json")
        done = place.run("run", "--once", "--config", changed, *arguments)
        refused(done, word, place.path("state"))
        assert read(out) == before, "the decisions file was touched"
    done = place.run("run", "--once", "--config", place.config(
        site(5), [source(log)], "changed.json", bus={"partitions": 4}), *arguments)
    refused(done, "partitions")
    place.good("run", "--once", "--config", config, *arguments)


def test_a_state_refuses_another_decisions_file(place):
    log, out = place.write("access.log", combined("192.0.2.1", 5)), place.path("out")
    other, mine = place.path("other"), place.write("mine", "not yours\n")
    arguments = ("run", "--once", *LIMIT, "--state", place.path("state"), log, "--decisions")
    place.good(*arguments, out)
    for name in (other, mine):
        done = place.run(*arguments, name)
        assert done.code() == USAGE, f"left with {done.code()}: {done.said()}"
        refused(done, name, place.path("state"), "give that file")
    assert not os.path.exists(other) and read(mine) == b"not yours\n"
    place.good(*arguments, out)


def cut_while_it_runs(place, *, goes_on):
    """
    A run that is stopped, and started again; then its decisions file is copied and cut, as copytruncate does, and it is
    killed. The next checkpoint would have come much later. (its arguments, the file, the copy, the decisions of a calm run)
    """
    log = place.write("big.log", b"".join(traffic.crowd(random.Random(1), 300000, 20000)))
    config, out, calm = place.config(site(5), [source(log)], limiter={"checkpoint_interval": "1h"}), place.path("out"), place.path("calm")
    place.good("run", "--once", "--config", config, "--decisions", calm)
    arguments = ("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", out, "--summary", "json")
    size = os.path.getsize(calm)
    weir = place.start(*arguments)
    halt_at(weir, lambda: os.path.exists(out) and os.path.getsize(out) > size // 10)
    weir.signal(signal.SIGTERM)
    weir.resume()
    assert weir.wait() == STOPPED, weir.said()
    weir, saved = place.start(*arguments), os.path.getsize(out)
    halt_at(weir, lambda: os.path.getsize(out) > saved)
    shutil.copy(out, out + ".1")
    os.truncate(out, 0)
    if goes_on:
        halt_at(weir, lambda: os.path.getsize(out) > size // 10)
    weir.signal(signal.SIGKILL)
    weir.wait()
    return arguments, out, out + ".1", calm


def test_a_decisions_file_that_is_cut_while_it_runs_has_each_decision_once(place):
    """Killed later: the state has the file as it is by then."""
    arguments, out, copy, calm = cut_while_it_runs(place, goes_on=True)
    place.good(*arguments)
    assert read(copy) + read(out) == read(calm)


def test_a_decisions_file_that_was_cut_before_a_kill_is_put_back(place):
    """The refusal says how, and with what it says nothing is missing or there twice."""
    arguments, out, copy, calm = cut_while_it_runs(place, goes_on=False)
    refused(place.run(*arguments), "has 0 bytes", f"(cp COPY {out})", place.path("state"))
    subprocess.run(["cp", copy, out], check=True)
    place.good(*arguments)
    assert read(out) == read(calm)


def test_a_finished_run_reads_only_what_was_appended(place):
    log = place.write("log", burst("ann", 5) + burst("bob", 2))
    config, out = place.config(site(), [source(log)]), place.path("out")
    arguments = ("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", out,
                 "--summary", "json")
    first = place.good(*arguments)
    assert blocked(lines_of(out)) == ["ann"]
    again = place.good(*arguments)
    assert blocked(lines_of(out)) == ["ann"], "it was read twice"
    assert again.summary()["zones"] == first.summary()["zones"], "nothing was appended, but the counts changed"
    place.append("log", burst("bob", 3, traffic.START_MS + 100) + "garbage\n")
    last = place.good(*arguments)
    assert blocked(lines_of(out)) == ["ann", "bob"]
    assert (last.summary()["lines"], last.summary()["events"]) == (11, 10)
    assert last.summary()["malformed"] == {"not json": 1}
    place.good("run", "--once", "--config", config, "--decisions", place.path("whole"))
    assert read(out) == read(place.path("whole"))


def test_a_last_line_without_its_end_is_read_once(place):
    log = place.write("log", burst("ann", 3) + line(traffic.START_MS + 10, "ann").rstrip("\n"))
    config, out = place.config(site(), [source(log)]), place.path("out")
    arguments = ("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", out,
                 "--summary", "json")
    place.good(*arguments)
    assert blocked(lines_of(out)) == ["ann"]
    place.append("log", "\n" + burst("bob", 5, traffic.START_MS + 100))
    last = place.good(*arguments)
    assert blocked(lines_of(out)) == ["ann", "bob"]
    assert last.summary()["events"] == 9 and last.summary()["malformed"] == {}


def test_a_fresh_state_refuses_a_decisions_file_that_is_not_empty(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(), [source(log)])
    mine = place.write("mine", "not yours\n")
    done = place.run("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", mine)
    refused(done, mine)
    assert read(mine) == b"not yours\n"
    place.good("run", "--once", "--config", config, "--state", place.path("state"),
               "--decisions", place.path("new"))
    assert blocked(lines_of(place.path("new"))) == ["ann"], "the refused start has left something behind"


def test_without_a_state_a_run_begins_anew(place):
    log = place.write("log", burst("ann", 5))
    config, out = place.config(site(), [source(log)]), place.path("out")
    place.good("run", "--once", "--config", config, "--decisions", out)
    first = read(out)
    place.good("run", "--once", "--config", config, "--decisions", out)
    assert read(out) == first != b""


def test_what_a_configuration_names_is_not_emptied(place):
    """A trial by the configuration of a run that follows leaves that run's files alone, and a file that cannot be had is no riddle."""
    log, theirs = place.write("log", burst("ann", 5)), place.write("theirs", b"not yours\n")
    for sections, option in (({"decisions": {"path": theirs}}, "--decisions"), ({"decisions": {"shadow_path": theirs}}, "--shadow"),
                             ({"deadletter": {"path": theirs}}, "--dead-letter")):
        program = place.run("run", "--once", "--config", place.config(site(), [source(log)], **sections))
        assert program.code() == 2 and f"{option} PATH names another" in program.said() and "is not empty" in program.said(), program.said()
        assert read(theirs) == b"not yours\n"
        place.good("run", "--once", "--config", place.config(site(), [source(log)], **sections), option, place.path("mine"))
        assert read(theirs) == b"not yours\n"
    empty = place.write("empty", b"")
    place.good("run", "--once", "--config", place.config(site(), [source(log)], decisions={"path": empty}))
    assert blocked(lines_of(empty)) == ["ann"]
    nowhere = place.config(site(), [source(log)], decisions={"shadow_path": place.path("nowhere/shadow")})
    for words in (["--once"], []):
        program = place.run("run", *words, "--config", nowhere, "--state", place.path(f"state{len(words)}"))
        assert program.code() == 1 and "--shadow PATH names another" in program.said(), program.said()
    assert place.good("run", "--once", "--config", nowhere, "--shadow", "-")


def test_a_second_process_on_one_state_is_refused(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(), [source(log, follow=True)])
    state = place.path("state")
    weir = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))
    until(lambda: read(place.path("out")), "a decision", running=weir)
    for once in ([], ["--once"]):
        done = place.run("run", *once, "--config", config, "--state", state, "--decisions", place.path("other"))
        refused(done, state)
        assert not read(place.path("other"))
    assert weir.code() is None, "the first one was disturbed"
    assert weir.stop() == DONE, weir.said()


def test_the_state_of_one_way_to_run_is_refused_by_the_other(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(), [source(log)])
    state = place.path("state")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("out"))
    done = place.run("run", "--config", config, "--state", state, "--decisions", place.path("other"))
    refused(done, state)


def test_the_summary_counts_lines_events_and_reasons(place):
    zones = site(2) + [zone("late", [sliding(100, "1s")], id=2), zone("quiet", [sliding(1, "1m")], id=3, mode="shadow")]
    text = (burst("ann", 4) + "\n" + "garbage\n" + '{"user":"ann"}\n' + line("soon", "ann") + line(-5, "ann")
            + line(traffic.START_MS - 60000, "ann") + burst("bob", 1))
    log = place.write("log", text)
    done = place.good("run", "--once", "--config", place.config(zones, [source(log)]), "--summary", "json",
                      "--decisions", place.path("out"), "--shadow", place.path("shadow"))
    summary = done.summary()
    assert (summary["lines"], summary["events"]) == (11, 6), summary
    assert summary["malformed"] == {"not json": 1, "no time": 1, "bad time": 1, "time out of range": 1}
    assert summary["zones"] == {
        "site": {"matched": 6, "passed": 4, "blocked": 2, "late": 1, "decisions": 1},
        "late": {"matched": 6, "passed": 6, "blocked": 0, "late": 1, "decisions": 0},
        "quiet": {"matched": 6, "passed": 3, "blocked": 3, "late": 1, "decisions": 1}}
    assert [decision["zone"] for decision in lines_of(place.path("out"))] == ["site"]
    assert [(decision["zone"], decision["mode"]) for decision in lines_of(place.path("shadow"))] == [
        ("quiet", "shadow")]


def test_malformed_lines_are_kept_with_source_position_and_reason(place):
    first = burst("ann", 1)
    log = place.write("log", first.encode() + b"garb\x00age\xff\n" + b"{}\n" + burst("ann", 1).encode())
    place.good("run", "--once", "--config", place.config(site(), [source(log)]), "--decisions", place.path("out"),
               "--dead-letter", place.path("dead"))
    letters = lines_of(place.path("dead"))
    offsets = [letter["position"] & (1 << 40) - 1 for letter in letters]
    assert [letter["source"] for letter in letters] == [log, log]
    assert offsets == [len(first) + 10, len(first) + 13], offsets
    assert [(letter["reason"], letter["text"]) for letter in letters] == [
        ("not json", "garb\0age\N{REPLACEMENT CHARACTER}"), ("no time", "{}")]


def test_the_bytes_are_the_same_for_any_number_of_threads(place):
    rng = random.Random(2)
    logs = [place.write(f"log-{i}", b"".join(traffic.crowd(rng, 40000 // SLOWER, 3000 // SLOWER))) for i in range(3)]
    zones = site(5) + [zone("paths", [sliding(50, "10s"), traffic.fixed(500, "1h")], key=["path"], id=2),
                       zone("everyone", [{"algorithm": "token_bucket", "rate": 100, "window": "1s"}], key=[], id=3)]
    seen = set()
    for threads in (1, 2, 4, 1, 4):
        config = place.config(zones, [source(log) for log in logs], limiter={"threads": threads})
        done = place.good("run", "--once", "--config", config, "--decisions", place.path("out"), "--summary", "json")
        counts = {name: done.summary()[name] for name in ("lines", "events", "malformed", "zones", "top_blocked")}
        seen.add((read(place.path("out")), json.dumps(counts)))
    assert len(seen) == 1, "runs differ"
    assert len(lines_of(place.path("out"))) > 1000 // SLOWER


def on_a_terminal(place, *arguments, errors=False, both=False):
    """Runs weir with a terminal for its output, its errors, or both: what it wrote there."""
    with Terminal() as screen:
        streams = ("stdout", "stderr") if both else ("stderr",) if errors else ("stdout",)
        weir = place.start(*arguments, **dict.fromkeys(streams, screen.fd))
        if both:
            time.sleep(0.5)  # read late, so that the run takes longer than progress waits, on any machine
        screen.read()
        assert weir.wait() == DONE, weir.said()
        return screen.whole()


def test_a_terminal_gets_words_and_json_only_when_asked(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    words = on_a_terminal(place, "run", "--once", *LIMIT, log).split("\n")
    assert len(words) == 2 and words[1] == "", words
    assert not words[0].startswith("{") and "192.0.2.1" in words[0] and "2023-11-14" in words[0], words
    forced = on_a_terminal(place, "run", "--once", "--json", *LIMIT, log)
    assert blocked([json.loads(text) for text in forced.split("\n")[:-1]]) == ["192.0.2.1"]


def test_a_terminal_for_errors_shows_progress_and_a_file_does_not(place):
    config = big_job(place)
    os.mkfifo(place.path("fifo"))  # read late, so that the run takes longer than progress waits, on any machine
    with subprocess.Popen(["sh", "-c", 'sleep 0.5; exec cat "$1" >"$2"', "late", place.path("fifo"), place.path("out")]):
        shown = on_a_terminal(place, "run", "--once", "--config", config, "--decisions", place.path("fifo"), errors=True)
    assert "\r" in shown and " a second" in shown and "left" in shown, shown
    done = place.good("run", "--once", "--config", config, "--decisions", place.path("out"))
    assert "\r" not in done.said() and "\x1b" not in done.said()


def test_progress_gives_way_to_decisions_on_the_same_terminal(place):
    shown = on_a_terminal(place, "run", "--once", "--json", "--config", big_job(place), both=True)
    drawn = [part for part in shown.split(ERASE) if " a second, " in part and "weir: done" not in part]
    assert drawn, "no progress was shown"
    assert not [part for part in drawn if "{" in part], "decisions stand behind the progress on its line"


def test_a_zone_that_no_source_can_match_is_told(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    done = place.good("run", "--once", "--key", "ipp", "--limit", "3/1m", log)
    assert 'zone "ipp" never matches' in done.said() and 'the field "ipp"' in done.said(), done.said()
    place.write("access.json", '{"time":1700000000,"user":"ann"}\n' * 5)  # a field of JSON may come with any line
    done = place.good("run", "--once", "--format", "json", "--key", "ipp", "--limit", "3/1m", place.path("access.json"))
    assert "never matches" not in done.said(), done.said()


def test_a_source_of_which_no_line_can_be_read_has_failed(place):
    """A script that asks only for the exit code would take it for a log in which nobody was over a limit."""
    good, foreign = place.write("good", combined("192.0.2.1", 5)), place.write("foreign", "what is this\n" * 3)
    done = place.run("run", "--once", "--quiet", *LIMIT, "--decisions", place.path("out"), foreign, good)
    assert done.code() == FAILED and blocked(lines_of(place.path("out"))) == ["192.0.2.1"], done.said()
    assert f"{foreign}: none of 3 lines became an event" in done.said() and "the first is: what is this" in done.said()
    assert f"{good}:" not in done.said(), done.said()
    place.append("foreign", combined("192.0.2.1", 1))
    assert not place.good("run", "--once", "--quiet", *LIMIT, foreign, good).said()
    assert not place.good("run", "--once", "--quiet", *LIMIT, place.write("empty", "")).said()
    skips = {"type": "pattern", "pattern": r"^\[(?<time>[^\]]+)\] (?<ip>\S+)$", "unmatched": "skip"}
    log = place.write("skipped", "what is this\n" * 3)
    config = place.config([zone("all", [sliding(9, "1m")], key=("ip",))], [source(log, format=skips, follow=False)])
    place.good("run", "--once", "--config", config)
    state = ("--state", place.path("state"), "--decisions", place.path("kept"))
    for _ in range(2):  # a finished run that is asked again says the same
        done = place.run("run", "--once", *LIMIT, *state, place.write("foreign", "what is this\n" * 3))
        assert done.code() == FAILED and "none of 3 lines became an event" in done.said(), done.said()


def test_a_field_that_no_line_has_had_is_told(place):
    """A request that is not directly behind the time is none: the lines are events, and in no zone of a path."""
    at = "14/Nov/2023:22:00:00 +0000"
    zones = [zone("login", [sliding(1, "1m")], key=("ip",), match={"path": ["/login"]}, id=1),
             zone("all", [sliding(1000, "1m")], key=("ip",), id=2)]
    words = 'zone "login" matches nothing so far: none of the first 300 events has the field "path"'
    for before in ("example.com", "0.003"):
        log = place.write("log", f'192.0.2.1 - - [{at}] {before} "POST /login HTTP/1.1" 200 1 "-" "-"\n' * 300)
        config = place.config(zones, [source(log, format="combined", follow=False)])
        done = place.good("run", "--once", "--config", config, "--decisions", place.path("out"))
        assert [said for said in done.said().splitlines() if " WARNING " in said and words in said], done.said()
        assert done.said().count("none of the first") == 1, done.said()
        told = place.good("validate", "--config", config).out().decode()
        assert 'zones[0]: none of the first 300 events has the field "path"' in told, told
        weir = place.start("run", "--config", place.config(zones, [source(log, format="combined")], name="follow.json"),
                           "--state", place.path("state" + before), "--decisions", place.path("followed" + before))
        place.append("log", f'192.0.2.1 - - [{at}] {before} "POST /login HTTP/1.1" 200 1 "-" "-"\n' * 700)
        until(lambda: "none of the first 1000 events" in weir.said(), "it is told", running=weir)  # pylint: disable=cell-var-from-loop
        assert weir.stop() == DONE and weir.said().count("none of the first") == 1, weir.said()
    late = f'192.0.2.1 - - [{at}] "GET /login HTTP/1.1" 200 1 "-" "-"\n'
    config = place.config(zones, [source(place.write("log", late.replace("GET /login", "-") * 2000 + late), format="combined",
                                         follow=False)])
    done = place.good("run", "--once", "--config", config, "--decisions", place.path("out"))
    assert "none of the first" not in done.said(), done.said()
    auth = place.write("auth", "Nov 14 22:00:00 h sshd[1]: Server listening on :: port 22.\n" * 300)
    config = place.config([zone("ssh", [sliding(1, "1m")], key=("ip",), match={"event": ["Failed"]}, id=1)],
                          [source(auth, format="sshd", follow=False)])
    done = place.good("run", "--once", "--config", config, "--decisions", place.path("out"))
    assert "none of the first" not in done.said(), done.said()


def test_quiet_says_nothing(place):
    log = place.write("access.log", combined("192.0.2.1", 5))
    done = place.good("run", "--once", "--quiet", *LIMIT, "--decisions", place.path("out"), log)
    assert done.said() == ""


def test_a_reader_that_goes_away_ends_the_run(place):
    log = place.write("big.log", b"".join(traffic.crowd(random.Random(3), 300000, 20000)))
    config = place.config(site(1, "1s"), [source(log)])
    reading, writing = os.pipe()
    weir = place.start("run", "--once", "--config", config, stdout=writing)
    os.close(writing)
    os.read(reading, 10)
    os.close(reading)
    started = time.monotonic()
    assert weir.wait() == FAILED, f"left with {weir.code()}: {weir.said()}"
    assert time.monotonic() - started < PATIENCE_S / 2, "it went on for long"


def test_a_log_that_is_named_twice_is_read_once(place):
    log = place.write("log-1", burst("ann", 3))
    os.link(log, place.path("log-2"))
    os.symlink(log, place.path("log-3"))
    both = source([place.path("log-*"), log, place.path("log-[12]")])
    config = place.config(site(), [both])
    done = place.good("run", "--once", "--config", config, "--summary", "json", "--decisions", place.path("out"))
    assert done.summary()["lines"] == 3, done.summary()


def test_help_teaches(place):
    for arguments in (["--help"], ["run", "--help"]):
        done = subprocess.run([place.weir, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == DONE and "weir run" in done.stdout, done
    assert "Exit codes" in done.stdout and "--once" in done.stdout


if __name__ == "__main__":
    cases.main(globals())
