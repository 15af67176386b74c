#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir generate`: logs that weir reads back whole, the same bytes every time, of the traffic that was asked for."""

import collections
import hashlib
import json
import os
import resource
import signal
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "conformance", "oracle")]

# pylint: disable=wrong-import-position
import formats
import sources
from support import cases
from support.place import read, until

DONE, USAGE = 0, 2
FORMATS = ("combined", "common", "json", "logfmt", "delimited", "nginx_error", "haproxy", "sshd")
START_MS = 1735689600000

# Of the first 3000 lines of seed 7: bytes may only change on purpose.
OPTIONS = ("--lines", "3000", "--users", "500", "--abusers", "3", "--bursts", "20%", "--ipv6", "25%", "--seed", "7",
           "--out-of-order", "10%", "--duplicates", "2%", "--malformed", "3%", "--methods", "GET=80,POST=15,HEAD=5")
GOLDEN = {
    "combined": "d64a6477353d5734ef0eaf0ac69a38938183910abccc0ef91e441b73cd36cfff",
    "common": "7cfa12b632d15cbf6e475fee516a076f786b0cbf337b256615087d262b254c01",
    "json": "8426f6a57fb441d2c97a5d7ccd6b1f36dd02fcc42810783c5dd91534013c83bd",
    "logfmt": "1c2afea5c0e89bb6a84e128fb57dc09b72cd437e4178758dffae33480892a3d9",
    "delimited": "f43852437fdc02fda4b7110c0edc3f92b9d0cca0e4c232007fac612902d8764c",
    "nginx_error": "0060b89b87cee120214e23356e0c51e21a321998f7fd5bece3cc081d792959d2",
    "haproxy": "e4dd48b126bdcd83baec63e3eb08d3f5e6c6f303b414aca248200d3361e9046e",
    "sshd": "ee9a44ef8ed9756d40d1078c52e757f14fe4ca3641722e2ebe874b9d809071cb",
}


def generate(place, *options):
    """The bytes of a log."""
    return place.good("generate", *options).out()


def records(form, data):
    """What the oracle reads: records, and the tally."""
    tally = sources.Tally()
    return list(sources.records_of(data, formats.Format(form), tally)), tally


def events(form, data):
    """(time, ip) of each record, and more where the format has it."""
    names = ("ip",) if form in ("sshd",) else ("ip", "method", "path")
    return [(record.time, *(record.field(name) for name in names)) for record in records(form, data)[0]]


def clients(data):
    """How many lines each address has, in a combined log."""
    return collections.Counter(line.split(b" ", 1)[0] for line in data.splitlines())


def test_every_format_is_read_back_whole(place):
    for form in FORMATS:
        data = generate(place, "--format", form, *OPTIONS[:14])
        got, tally = records(form, data)
        header = form == "delimited"
        assert not tally.malformed, (form, tally.malformed)
        assert len(got) == 3000 and tally.lines == 3000 + header, (form, len(got), tally.lines)
        assert all(record.field("ip") for record in got), form


def test_weir_reads_every_format_back_whole(place):
    for form in FORMATS:
        log = place.write(form, generate(place, "--format", form, "--lines", "20000", "--ipv6", "0.1"))
        done = place.good("run", "--once", "--format", form, "--key", "ip", "--limit", "10/1m", "--summary", "json",
                          "--decisions", place.path("out"), log)
        summary = done.summary()
        assert not any(summary["malformed"].values()), (form, summary)
        assert summary["events"] == 20000, (form, summary)


def test_every_format_tells_of_the_same_events(place):
    data = {form: generate(place, "--format", form, *OPTIONS[:14]) for form in FORMATS}
    want = events("json", data["json"])
    for form in FORMATS:
        got = events(form, data[form])
        if form in ("combined", "common", "nginx_error"):  # to the second
            assert [event[0] for event in got] == [event[0] // 1000 * 1000 for event in want], form
            got = [(times[0], *event[1:]) for times, event in zip(want, got)]
        if form == "sshd":
            got = [(*event, *rest[2:]) for event, rest in zip(got, want)]
        assert got == want, (form, next(pair for pair in zip(got, want) if pair[0] != pair[1]))


def test_bytes_are_a_function_of_the_options(place):
    for form in FORMATS:
        data = generate(place, "--format", form, *OPTIONS)
        assert data == generate(place, "--format", form, *OPTIONS), form
        assert hashlib.sha256(data).hexdigest() == GOLDEN[form], f"{form}: {hashlib.sha256(data).hexdigest()}"
    assert generate(place, "--lines", "100") != generate(place, "--lines", "100", "--seed", "2")


def test_lines_look_like_those_of_real_logs(place):
    data = generate(place, "--lines", "20000")
    lines = data.splitlines()
    assert 180 < len(data) / len(lines) < 260, len(data) / len(lines)
    got = records("combined", data)[0]
    statuses = collections.Counter(record.field("status") for record in got)
    assert statuses[b"200"] > 12000 and statuses[b"404"] > 100 and statuses[b"304"] > 500, statuses
    assert len({record.field("path") for record in got}) > 1000
    assert len({record.field("agent") for record in got}) > 15


def test_users_come_by_zipfs_law(place):
    users, count = 1000, 200000
    for exponent in (0.0, 0.5, 1.1, 2.0):
        seen = clients(generate(place, "--lines", count, "--users", users, "--zipf", exponent))
        weights = [rank ** -exponent for rank in range(1, users + 1)]
        for rank, (_, lines) in list(enumerate(seen.most_common(), 1))[:20 if exponent else 0]:
            expected = count * weights[rank - 1] / sum(weights)
            assert abs(lines - expected) < 5 * expected ** 0.5 + 0.05 * expected, (exponent, rank, lines, expected)
        if exponent == 0:
            assert len(seen) == users and max(seen.values()) < 2 * count / users, max(seen.values())


def test_every_user_has_an_address_of_their_own(place):
    for share in ("0", "0.5", "1"):
        seen = clients(generate(place, "--lines", "200000", "--users", "20000", "--zipf", "0", "--ipv6", share))
        assert abs(len(seen) - 20000) < 20, (share, len(seen))
        sixth = sum(b":" in address for address in seen) / len(seen)
        assert abs(sixth - float(share)) < 0.02, sixth


def test_methods_have_their_weights(place):
    for options, want in ((("--post", "8%"), {"GET": 0.92, "POST": 0.08}), ((), {"GET": 0.92, "POST": 0.08}),
                          (("--post", "0.5"), {"GET": 0.5, "POST": 0.5}), (("--post", "1"), {"POST": 1}),
                          (("--methods", "PUT=3,DELETE=1"), {"PUT": 0.75, "DELETE": 0.25})):
        data = generate(place, "--format", "common", "--lines", "5000", *options)
        seen = collections.Counter(record.field("method").decode() for record in records("common", data)[0])
        assert seen.keys() == want.keys(), (options, seen)
        assert all(abs(seen[name] / 5000 - share) < 0.025 for name, share in want.items()), (options, seen)


def test_abusers_break_limits(place):
    def decisions(*options):
        log = place.write("log", generate(place, "--lines", "60000", "--users", "50000", "--zipf", "0", "--format",
                                          "json", *options))
        place.good("run", "--once", "--format", "json", "--key", "ip", "--limit", "10/1m", "--limit", "100/1h",
                   "--decisions", place.path("out"), log)
        return {json.loads(line)["key"][0] for line in read(place.path("out")).splitlines()}
    assert len(decisions("--abusers", "5") - decisions()) == 5


def test_bursts_bring_a_users_requests_close_together(place):
    def repeats(*options):
        addresses = [line.split(b" ", 1)[0] for line in
                     generate(place, "--lines", "20000", "--users", "100000", "--zipf", "0", *options).splitlines()]
        return sum(address in addresses[max(0, i - 100):i] for i, address in enumerate(addresses))
    assert repeats() < 100
    assert 7000 < repeats("--bursts", "50%") < 10500


def test_times_go_on_at_the_rate_and_some_are_late(place):
    times = [record.time for record in records("json", generate(place, "--format", "json", "--lines", "8000",
                                                                "--rate", "250"))[0]]
    assert times == sorted(times) and START_MS <= times[0] < START_MS + 100
    assert 31000 < times[-1] - times[0] < 33000, times[-1] - times[0]
    times = [record.time for record in records("json", generate(place, "--format", "json", "--lines", "8000",
                                                                "--out-of-order", "0.1", "--late-by", "30s"))[0]]
    newest, late = 0, []
    for at_ms in times:
        newest = max(newest, at_ms)
        if at_ms < newest - 5:
            late.append(newest - at_ms)
    assert 700 < len(late) < 900 and 25000 < max(late) <= 30005, (len(late), max(late))


def test_start_is_where_times_begin(place):
    for text, want_ms in (("2001-09-09T01:46:40Z", 1000000000000), ("1000000000.5", 1000000000500)):
        got = records("json", generate(place, "--format", "json", "--lines", "1", "--start", text))[0]
        assert 0 <= got[0].time - want_ms < 10, (text, got[0].time)
    got = records("json", generate(place, "--format", "json", "--lines", "1", "--start", "now"))[0]
    assert abs(got[0].time / 1000 - time.time()) < 60
    last = records("json", generate(place, "--format", "json", "--lines", "9", "--start", "253402300799", "--rate",
                                    "0.001"))[0][-1]
    assert last.time == 253402300799999, last.time


def test_malformed_lines_are_malformed_in_every_format(place):
    for form in FORMATS:
        good, tally = records(form, generate(place, "--format", form, "--lines", "4000", "--malformed", "0.1"))
        broken = sum(tally.malformed.values())
        assert broken + len(good) == 4000 and 300 < broken < 500, (form, tally.malformed)
        assert len(tally.malformed) >= 2, (form, tally.malformed)


def test_duplicates_are_whole_lines_again(place):
    lines = generate(place, "--lines", "20000", "--duplicates", "0.1").splitlines()
    twice = sum(a == b for a, b in zip(lines, lines[1:]))
    assert len(lines) == 20000 and 1600 < twice < 2000, twice


def test_bytes_bound_whole_lines(place):
    for form in ("combined", "delimited"):
        data = generate(place, "--format", form, "--bytes", "1MiB")
        assert data.endswith(b"\n") and (1 << 20) - 2048 < len(data) <= 1 << 20, len(data)
    assert generate(place, "--lines", "0") == b""


def test_output_is_a_file(place):
    place.good("generate", "--lines", "1000", "--output", place.path("log"))
    first = read(place.path("log"))
    place.good("generate", "--lines", "10", "--output", place.path("log"))
    assert first.startswith(read(place.path("log"))) and read(place.path("log")).count(b"\n") == 10
    done = place.run("generate", "--output", place.path("none", "log"))
    assert done.code() == 1 and place.path("none", "log") in done.said(), done.said()


def test_a_full_disk_is_said(place):
    with open("/dev/full", "wb") as full:
        done = place.run("generate", "--lines", "10000", stdout=full)
    assert done.code() == 1 and "standard output: No space left" in done.said(), done.said()


def test_live_lines_come_at_their_pace_with_the_clocks_time(place):
    started = time.time()
    done = place.good("generate", "--format", "json", "--follow-rate", "500", "--for", "1s", "--output",
                      place.path("log"))
    took = time.time() - started
    got, tally = records("json", read(place.path("log")))
    assert not tally.malformed and 300 < len(got) <= 510 and took < 10, (len(got), took)
    assert started - 1 < got[0].time / 1000 <= got[-1].time / 1000 < started + took + 1
    assert done.code() == DONE


def test_a_live_log_can_be_rotated_and_loses_nothing(place):
    log = place.path("log")
    weir = place.start("generate", "--format", "delimited", "--start", "2025-01-01T00:00:00Z", "--rate", "100",
                       "--follow-rate", "5000", "--lines", "5000", "--output", log)
    for turn in range(3):
        until(lambda: read(log).count(b"\n") > 10, "lines", running=weir)
        os.rename(log, f"{log}.{turn}")
        weir.signal(signal.SIGHUP)
        until(lambda: os.path.exists(log), "a new file", running=weir)
    assert weir.wait() == DONE
    parts = [read(f"{log}.{turn}") for turn in range(3)] + [read(log)]
    header = parts[0].split(b"\n", 1)[0] + b"\n"
    assert all(part.startswith(header) and part.endswith(b"\n") for part in parts)
    whole = generate(place, "--format", "delimited", "--rate", "100", "--lines", "5000")
    assert header + b"".join(part[len(header):] for part in parts) == whole


def test_a_live_log_ends_at_a_signal_with_a_whole_line(place):
    weir = place.start("generate", "--follow-rate", "20000", "--output", place.path("log"))
    until(lambda: read(place.path("log")).count(b"\n") > 1000, "lines", running=weir)
    assert weir.stop() == DONE
    data = read(place.path("log"))
    assert data.endswith(b"\n") and not records("combined", data)[1].malformed
    more = place.good("generate", "--follow-rate", "1000", "--lines", "5", "--output", place.path("log"))
    assert more.code() == DONE and read(place.path("log")).startswith(data), "appended, not written anew"


def test_what_is_wrong_is_said_with_what_would_be_right(place):
    for words, *options in (("--lines must be a number", "--lines", "many"),
                            ("unknown option --lnes (did you mean --lines?)", "--lnes", "5"),
                            ('not "jsn" (did you mean "json"?)', "--format", "jsn"),
                            ("--format must be one of combined, common", "--format", "xml"),
                            ("--zipf must be a number, from 0 to 10", "--zipf", "-1"),
                            ("--zipf must be a number, from 0 to 10", "--zipf", "1.23456789"),
                            ("--malformed must be a share", "--malformed", "101%"),
                            ("--methods must be a list", "--methods", "GET=1,TEAPOT=2"),
                            ("--start must be a time", "--start", "yesterday"),
                            ("--late-by must be a duration", "--late-by", "0s"),
                            ("--users must be a number, from 1 to 100M", "--users", "0"),
                            ("--for needs --follow-rate", "--for", "1s"),
                            ("--lines needs a value", "--lines"),
                            ("--quiet takes no value", "--quiet=yes"),
                            ("write to a file with --output", "access.log")):
        done = place.run("generate", *options)
        assert done.code() == USAGE and words in done.said(), (options, done.said())
        assert "--help" in done.said() and not done.out()
    help_page = place.good("generate", "--help").out().decode()
    for form in FORMATS:
        assert form in help_page
    assert max(map(len, help_page.splitlines())) <= 80


def test_it_is_quick(place):
    if os.environ.get("WEIR_SANITIZED"):
        raise cases.Skipped("measured without sanitizers")

    def used_s():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    best = 0
    for _ in range(5):  # of the processor's time: other work on the machine does not count
        before_s = used_s()
        with open(os.devnull, "wb") as nothing:
            place.good("generate", "--lines", "1M", stdout=nothing)
        best = max(best, 1e6 / (used_s() - before_s))
    print(f"{best:.0f} lines a second")
    assert best >= 1e6, f"{best:.0f} lines a second"


cases.main(globals())
