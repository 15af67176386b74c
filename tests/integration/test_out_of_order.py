#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs that are not in the order of time: what `--sort` and `lateness` make of them, and what is said where they are
not used."""

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, traffic
from support.place import PATIENCE_S, lines_of, read, until
from support.traffic import burst, fixed, line, site, sliding, source, zone

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3
LIMIT = ("--format", "combined", "--key", "ip", "--limit", "3/1m")


def by_user(place, *logs):
    """A configuration that lets each user do three requests a minute."""
    sources = [source(log, follow=False) if log != "-" else {"type": "stdin", "format": traffic.FORMAT} for log in logs]
    return "--config", place.config(site(), sources)


def once(place, config, out, *more, good=True, **popen):
    """Runs weir over a configuration's sources: (the run, its decisions, its judged lines, its dead letters), as bytes."""
    for name in ("decisions", "judged", "dead"):
        if os.path.exists(place.path(f"{out}-{name}")):
            os.unlink(place.path(f"{out}-{name}"))
    done = (place.good if good else place.run)(
        "run", "--once", "--config", config, "--summary", "json", "--decisions", place.path(f"{out}-decisions"),
        "--judged", place.path(f"{out}-judged"), "--dead-letter", place.path(f"{out}-dead"), *more, **popen)
    return done, *(read(place.path(f"{out}-{name}")) for name in ("decisions", "judged", "dead"))


def counted(done):
    """A summary without what differs from run to run."""
    return {name: value for name, value in done.summary().items() if name not in ("seconds", "lines_per_second")}


def zones():
    """Zones by different keys, one with a queue, one that most records are not in."""
    return [zone("site", [sliding(3, "1m"), fixed(20, "1h")], id=1),
            zone("pair", [sliding(2, "10s")], key=("user", "path"), id=2, block_for="1m"),
            zone("jobs", [{"algorithm": "queue", "length": 2, "hold": "1m", "done": {"status": ["404"]}}], id=3),
            zone("few", [{"algorithm": "gcra", "rate": 1, "window": "1m", "burst": 0}], id=4,
                 match={"path": ["/3"]}),
            zone("whole", [fixed(500, "1h")], key=(), id=5)]


def distinct(rng, count, users):
    """Requests, no two of them at one time: lines (bytes) in order."""
    lines, time_ms = [], traffic.START_MS
    for _ in range(count):
        time_ms += rng.randint(1, 900)
        lines.append(line(time_ms, f"u{int(users * rng.random() ** 3)}", path=f"/{rng.randint(0, 5)}",
                          status=404 if rng.random() < 0.2 else 200).encode())
    return lines


def test_newest_first_is_judged_as_oldest_first(place):
    lines = [f'203.0.113.9 - - [17/May/2024:10:{m:02}:{s:02} +0000] "GET /a HTTP/1.1" 200 12 "-" "curl/8"\n'
             for m in range(10) for s in range(0, 60, 10)]
    oldest, newest = place.write("oldest", "".join(lines)), place.write("newest", "".join(reversed(lines)))
    place.good("run", "--once", *LIMIT, "--decisions", place.path("in-order"), oldest)
    place.good("run", "--once", *LIMIT, "--sort", "--decisions", place.path("sorted"), newest)
    assert read(place.path("in-order")) == read(place.path("sorted"))
    assert len(lines_of(place.path("sorted"))) == 10


def test_several_shuffled_sources_are_judged_as_if_in_order(place):
    rng = random.Random(5)
    logs = [distinct(rng, 1500, 30) for _ in range(4)]
    names = ("a.log", "b.log.gz", "c.log", "d.log")
    for turn in ("in-order", "shuffled"):
        for name, lines in zip(names, logs):
            data = b"".join(lines)
            place.write(f"{turn}/{name}", gzip.compress(data) if name.endswith(".gz") else data)
            rng.shuffle(lines)
    results = {}
    for turn in ("in-order", "shuffled"):
        sources = [source(place.path(turn, names[0]), follow=False), source(place.path(turn, names[1]), follow=False),
                   source(place.path(turn, "[cd].log"), follow=False)]
        results[turn] = place.config(zones(), sources, name=f"{turn}.json", bus={"partitions": 4})
    in_order = once(place, results["in-order"], "in-order")
    assert in_order[1] and in_order[0].summary()["zones"]["site"]["late"] == 0
    for config in (results["shuffled"], results["in-order"]):
        by_sort = once(place, config, "sorted", "--sort")
        assert by_sort[1:] == in_order[1:]
        assert counted(by_sort[0]) == counted(in_order[0])
    spilled = once(place, results["shuffled"], "spilled", "--sort", "--memory", "300KiB")
    assert spilled[1:] == in_order[1:], "buckets that move to a store and back change nothing"


def test_records_of_one_time_keep_the_order_of_sources_and_lines(place):
    # In the order in which they are read: the first limit is one for all, so the verdicts tell who came first.
    early, late = place.write("1", "".join(line(5000 + 9 * (i % 2), f"a{i}") for i in range(6))), place.write(
        "2", "".join(line(5009 - 9 * (i % 2), f"b{i}") for i in range(6)))
    config = place.config([zone("all", [sliding(9, "1m")], id=1)],
                          [source(late, follow=False), source(early, follow=False)])
    _, _, judged, _ = once(place, config, "ties", "--sort")
    order = [(one["at"], one["key"][0]) for one in map(json.loads, judged.splitlines())]
    assert order == [(5000, f"b{i}") for i in (1, 3, 5)] + [(5000, f"a{i}") for i in (0, 2, 4)] + [
        (5009, f"b{i}") for i in (0, 2, 4)] + [(5009, f"a{i}") for i in (1, 3, 5)], order


def test_malformed_lines_and_dead_letters_are_the_same(place):
    rng = random.Random(6)
    lines = distinct(rng, 400, 10)
    for _ in range(60):
        lines.insert(rng.randint(0, len(lines)), rng.choice([b"garbage\n", b"\n", b'{"user":"no time"}\n', b'{"time":-1}\n']))
    other = distinct(rng, 300, 10) + [b"the last one"]
    rng.shuffle(lines)
    config = place.config(zones(), [source(place.write("1", b"".join(lines)), follow=False),
                                    source(place.write("2", b"".join(other)), follow=False)])
    plain, by_sort = once(place, config, "plain"), once(place, config, "sorted", "--sort")
    assert plain[3] == by_sort[3] != b""
    for name in ("lines", "events", "malformed", "dead_letters"):
        assert plain[0].summary()[name] == by_sort[0].summary()[name], name
    assert by_sort[0].summary()["zones"]["site"]["late"] == 0 < plain[0].summary()["zones"]["site"]["late"]


def test_standard_input_can_be_sorted(place):
    lines = distinct(random.Random(7), 500, 10)
    log = place.write("log", b"".join(lines))
    place.good("run", "--once", *by_user(place, log), "--decisions", place.path("in-order"))
    packed = place.write("packed", gzip.compress(b"".join(reversed(lines))))
    with open(packed, "rb") as pipe:
        place.good("run", "--once", *by_user(place, "-"), "--sort", "--decisions", place.path("sorted"), stdin=pipe)
    assert read(place.path("sorted")) == read(place.path("in-order")) != b""


def large(place):
    """A log whose events are more than fit into memory, newest first, and the same in order: their paths."""
    rng, pad = random.Random(8), "x" * 900
    lines = [line(traffic.START_MS + 7 * i, f"{rng.randint(0, 3000)}-{pad}") for i in range(90000)]
    return place.write("newest", "".join(reversed(lines))), place.write("oldest", "".join(lines))


def test_more_than_fits_into_memory_goes_to_disk_and_leaves_nothing_there(place):
    newest, oldest = large(place)
    os.mkdir(place.path("tmp"))
    surroundings = dict(os.environ, TMPDIR=place.path("tmp"))
    place.good("run", "--once", *by_user(place, oldest), "--decisions", place.path("in-order"))
    weir = place.start("run", "--once", *by_user(place, newest), "--sort", "--decisions", place.path("sorted"), env=surroundings)
    seen = set()
    while weir.code() is None:
        seen.update(os.listdir(place.path("tmp")))
    assert weir.code() == DONE and not seen, (seen, weir.said())
    assert read(place.path("sorted")) == read(place.path("in-order")) != b""


def no_large_files():
    """In a child: a file cannot grow beyond 32 MiB."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (32 << 20, 32 << 20))


def test_a_disk_without_room_ends_it_and_says_what_is_needed(place):
    newest, _ = large(place)
    done = place.run("run", "--once", *by_user(place, newest), "--sort", "--decisions", place.path("out"),
                     prepare=no_large_files)
    assert done.code() == FAILED, done.said()
    assert "for sorting in" in done.said() and "MiB" in done.said() and "set TMPDIR" in done.said(), done.said()
    assert read(place.path("out")) == b""
    done = place.run("run", "--once", *by_user(place, newest), "--sort", "--decisions", place.path("out"),
                     env=dict(os.environ, TMPDIR=place.path("is", "not")))
    assert done.code() == FAILED and place.path("is", "not") in done.said(), done.said()


def test_a_signal_ends_it_while_it_reads_and_while_it_judges(place):
    with subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE) as silent:
        weir = place.start("run", "--once", *LIMIT, "--sort", "--decisions", place.path("out"), "-", stdin=silent.stdout)
        until(lambda: os.path.exists(place.path("out")), "it has begun", running=weir)
        assert weir.stop(PATIENCE_S) == STOPPED
        silent.kill()
    assert "stopped by a signal" in weir.said() and "nothing was judged" in weir.said(), weir.said()
    os.mkfifo(place.path("fifo"))
    log = place.write("log", burst("ann", 30000, step_ms=60000))
    weir = place.start("run", "--once", *by_user(place, log), "--sort", "--judged", place.path("fifo"), "--decisions", "/dev/null")
    with open(place.path("fifo"), "rb") as judged:  # which takes a few lines, and then no more
        assert judged.readline()
        assert weir.stop(PATIENCE_S) == STOPPED


def test_what_cannot_be_sorted_is_refused(place):
    log = place.write("log", burst("ann", 3))
    for more, words in (((), "--once"), (("--once", "--state", place.path("state")), "--state")):
        done = place.run("run", *LIMIT, "--sort", *more, log)
        assert done.code() == USAGE and "--sort" in done.said() and words in done.said(), done.said()
    assert not os.path.exists(place.path("state"))


def late_lines(share):
    """2,000 requests a second apart of one user, a share of them ten minutes early."""
    return "".join(line(traffic.START_MS + 1000000 + 1000 * i - (600000 if i >= 1000 and i % 1000 < share else 0), "ann")
                   for i in range(2000))


def test_many_late_events_are_told_with_what_helps(place):
    log = by_user(place, place.write("log", late_lines(40)))
    done = place.good("run", "--once", *log, "--decisions", "/dev/null")
    told = [text for text in done.said().splitlines() if "% of the events of zone \"site\" are late" in text]
    assert len(told) == 2 and all("2.0 %" in text and "--sort" in text for text in told), done.said()
    assert " WARNING run: " in told[0]
    done = place.good("run", "--once", *log, "--decisions", "/dev/null", "--quiet")
    assert done.said().count("--sort") == 1, done.said()
    for more in (("--sort",), ()):
        place.write("log", late_lines(40 if more else 20))
        done = place.good("run", "--once", *log, "--decisions", "/dev/null", *more)
        assert "are late" not in done.said(), done.said()


def test_many_late_events_are_told_live(place):
    log = place.write("log", late_lines(40))
    config = place.config(site(), [source(log)])
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
    until(lambda: "are late" in weir.said(), "it is told", running=weir)
    assert '"lateness" of a sliding_window' in weir.said(), weir.said()
    assert weir.stop() == DONE
    assert weir.said().count("are late") == 2 and "--sort" not in weir.said(), weir.said()


# ---- lateness ----

def delayed(rng, count, users, most_ms):
    """Requests of users, 5 % of them up to most_ms late: lines as they arrive, and each user's times."""
    times, arrivals, time_ms = {}, [], traffic.START_MS
    for _ in range(count):
        time_ms += rng.randint(0, 2000)
        user = f"u{rng.randrange(users)}"
        times.setdefault(user, []).append(time_ms)
        arrivals.append((time_ms + (rng.randint(1, most_ms) if rng.random() < 0.05 else 0), time_ms, user))
    return "".join(line(at, user) for _, at, user in sorted(arrivals)), times


def recounted(times, rate, window_ms):
    """The users with more than `rate` events in some span of the window: each user's sorted times, looked at once."""
    return {user for user, at in times.items()
            if any(later - earlier < window_ms for earlier, later in zip(sorted(at), sorted(at)[rate:]))}


def test_with_lateness_who_is_blocked_is_who_a_recount_by_event_time_blocks(place):
    rng = random.Random(9)
    differed = 0
    for rate, users in ((1, 600), (2, 200), (3, 100), (5, 40), (10, 20), (40, 2)):
        text, times = delayed(rng, 8000, users, 120000)
        log = place.write("log", text)
        expected = recounted(times, rate, 60000)
        blocked = {}
        for lateness in ("0s", "121s"):
            config = place.config([zone("site", [sliding(rate, "1m", lateness=lateness)], id=1)], [source(log, follow=False)])
            done, decisions, _, _ = once(place, config, "out")
            blocked[lateness] = {json.loads(one)["key"][0] for one in decisions.splitlines()}
        assert blocked["121s"] == expected, (rate, blocked["121s"] ^ expected)
        assert done.summary()["zones"]["site"]["late"] == 0
        differed += len(blocked["0s"] ^ expected)
    assert differed >= 5, "hardly a case in which it mattered"


def test_in_order_lateness_changes_no_byte_but_its_own(place):
    rng = random.Random(10)
    log = place.write("log", b"".join(traffic.crowd(rng, 20000, 300, disorder=0)))
    outs = []
    for lateness in ({}, {"lateness": "10s"}, {"lateness": "5m"}):
        limits = [sliding(5, "1m", **lateness), sliding(40, "1h", precision="1m", **lateness)]
        config = place.config([zone("site", limits, id=1), zone("all", limits, id=2, count="all")], [source(log, follow=False)])
        done, decisions, judged, _ = once(place, config, "out")
        assert done.summary()["zones"]["site"]["late"] == 0
        ms = {"10s": b',"lateness":10000', "5m": b',"lateness":300000'}.get(lateness.get("lateness"), b"")
        outs.append((decisions.replace(ms, b"") if ms else decisions, judged))
    assert outs[0] == outs[1] == outs[2] and outs[0][0]


if __name__ == "__main__":
    cases.main(globals())
