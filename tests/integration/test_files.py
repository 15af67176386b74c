#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files are read: whatever is named, once; what cannot be read is said by `weir validate` and by the run alike."""

import bz2
import gzip
import json
import lzma
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics, traffic
from support.place import PATIENCE_S, free_port, lines_of, until
from support.traffic import burst, fixed, line, source, zone

DONE, FAILED, USAGE = 0, 1, 2
SITE = [zone("site", [fixed(1000, "1d")], id=1)]


def once(place, sources, *more):
    """A run to the end: (how it ended, its summary)."""
    config = place.config(SITE, sources)
    done = place.run("run", "--once", "--config", config, "--decisions", place.path("out"), "--summary", "json", *more)
    return done, done.summary() if done.code() in (DONE, FAILED) else None


def lines_read(place, *paths, **more):
    """How many lines a run over these paths reads."""
    done, summary = once(place, [{"type": "file", "path": list(paths), "format": traffic.FORMAT, **more}])
    assert done.code() == DONE, done.said()
    return summary["lines"]


def validated(place, sources):
    """What validate warns of, as one text."""
    done = place.run("validate", "--config", place.config(SITE, sources), "--json")
    return done.code(), done.out().decode() + done.said()


def test_a_log_and_its_rotation_are_both_read(place):
    for first, second in (("access.log", "access.log.1"), ("web.log", "web-2.log"), ("site", "site.443"),
                          ("node.1", "node.2"), ("x.log", "x.log-old"), ("a.log", "a.log-20240131")):
        paths = [place.write(first, burst("ann", 3)), place.write(second, burst("bob", 4))]
        for order in (paths, paths[::-1]):
            assert lines_read(place, *order) == 7, order
            done, summary = once(place, [source(path, follow=False) for path in order])
            assert done.code() == DONE and summary["lines"] == 7, (order, done.said())
        done = place.run("run", "--once", "--summary", "json", "--format", "json", "--limit", "9/1m", *paths)
        assert done.code() == FAILED and done.summary()["lines"] == 7  # their times are of milliseconds, as none says
        for path in paths:
            assert f"{path}: none of" in done.said(), done.said()


def test_equal_logs_are_both_read(place):
    paths = [place.write(name, burst("ann", 3)) for name in ("access.log", "access.log.1", "other.log")]
    assert lines_read(place, *paths) == 9
    assert lines_read(place, place.path("*.log*")) == 9
    assert lines_read(place, place.path("*.log"), place.path("access.*"), paths[0]) == 9


def test_every_line_is_judged_though_the_names_are_rotated(place):
    """The case of the issue: six lines of one client in two files, four allowed."""
    new, old = (place.write(name, "".join(line(first + i, "ann") for i in range(3)))
                for name, first in (("access.log", 1700000010), ("access.log.1", 1700000000)))
    place.good("run", "--once", "--quiet", "--format", "json", "--key", "user", "--limit", "4/1m", "--decisions",
               place.path("decisions"), new, old)
    assert len(lines_of(place.path("decisions"))) == 1


def test_two_sources_cannot_name_one_file(place):
    place.write("logs/access.log", burst("ann", 3))
    error = place.write("logs/error.log", burst("bob", 4))
    os.symlink(error, place.path("soft.log"))
    os.link(error, place.path("hard.log"))
    whole = source(place.path("logs/*.log"), follow=False)
    for other in (error, place.path("soft.log"), place.path("hard.log"), place.path("logs/err*")):
        for follow in (False, True):
            pair = [dict(whole, follow=follow), source(other, follow=follow)]
            code, said = validated(place, pair)
            assert code == USAGE and "sources[1].path" in said and "sources[0]" in said and "error.log" in said, said
            done, _ = once(place, pair)
            assert done.code() == USAGE and "sources[0]" in done.said() and "exclude" in done.said(), done.said()
    pair = [dict(whole, exclude=["error*"]), source(error, follow=False)]
    code, said = validated(place, pair)
    assert code == DONE and "exclude" not in said, said
    done, summary = once(place, pair)
    assert done.code() == DONE and summary["lines"] == 7, done.said()


def test_files_can_be_excluded(place):
    for name in ("a.log", "b.log", "b.log.gz", "old/c.log"):
        place.write(name, burst(name[0] if "/" not in name else "c", 2))
    assert lines_read(place, place.path("*.log*"), exclude="*.gz") == 4
    assert lines_read(place, place.path("*.log*"), place.path("old/*"), exclude=[place.path("old/*"), "*.gz"]) == 4
    config = place.config(SITE, [source(place.path("*.log*"), exclude=["*.gz", "b*"])])
    assert "*.log* without *.gz, b*" in place.good("validate", "--config", config).out().decode()
    code, said = validated(place, [source(place.path("a.log"), exclude=["a.*"])])
    assert code == USAGE and "excludes" in said and "a.log" in said, said
    code, said = validated(place, [source(place.path("*.log"), exclude=7)])
    assert code == USAGE and "exclude" in said, said


def test_what_is_no_file_is_said(place):
    os.mkfifo(place.path("fifo.log"))
    os.mkdir(place.path("folder.log"))
    os.symlink("/dev/stdout", place.path("stdout.log"))
    os.symlink("/proc/self/fd/1", place.path("own.log"))
    for path, words in (("fifo.log", "FIFO"), ("folder.log", "is a directory"), ("stdout.log", "standard stream"),
                        ("own.log", "standard stream"), ("/dev/null", "is a device"), ("absent.log", "No such file")):
        path = place.path(path) if path[0] != "/" else path
        for follow in (False, True):
            code, said = validated(place, [source(path, follow=follow)])
            assert code == DONE and words in said and os.path.basename(path) in said, (path, said)
        done, _ = once(place, [source(path, follow=False)])
        assert done.code() == FAILED and words in done.said(), (path, done.said())


def test_what_holds_no_lines_is_refused_by_name(place):
    text = burst("ann", 3)
    for name, data, words in (("a.zip", b"PK\x03\x04" + text.encode(), "zip archive"),
                              ("a.7z", b"7z\xbc\xaf\x27\x1c" + text.encode(), "7z archive"),
                              ("a.lz4", b"\x04\x22\x4d\x18" + text.encode(), "lz4"),
                              ("a.Z", b"\x1f\x9d\x90" + text.encode(), "compress"),
                              ("wide.log", b"\xff\xfe" + text.encode("utf-16-le"), "UTF-16"),
                              ("big.log", b"\xfe\xff" + text.encode("utf-16-be"), "UTF-16"),
                              ("unmarked.log", text.encode("utf-16-le"), "UTF-16")):
        path = place.write(name, data)
        code, said = validated(place, [source(path, follow=False)])
        assert code == DONE and words in said, (name, said)
        done, _ = once(place, [source(path, follow=False)])
        assert done.code() == FAILED and words in done.said() and name in done.said(), (name, done.said())


def test_the_last_of_many_files_is_looked_at_too(place):
    for number in range(20):
        place.write(f"logs/{number:02}.log", burst("ann", 2))
    place.write("logs/99.log", b"PK\x03\x04" + burst("ann", 2).encode())
    code, said = validated(place, [source(place.path("logs", "*"))])
    assert code == DONE and "99.log" in said and "zip archive" in said, said


def test_packed_files_are_read(place):
    packers = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    for ending, pack in packers.items():
        whole = pack(burst("ann", 3).encode()) + pack(burst("bob", 2).encode())
        assert lines_read(place, place.write(f"a.log.{ending}", whole)) == 5
        cut = place.write(f"cut.log.{ending}", pack(burst("ann", 3000).encode())[:-20])
        done, _ = once(place, [source(cut, follow=False)])
        assert done.code() == FAILED and "ends in the middle of its" in done.said(), done.said()


def test_a_byte_order_mark_is_no_part_of_a_line(place):
    path = place.write("a.json", b"\xef\xbb\xbf" + burst("ann", 2).encode())
    done, summary = once(place, [source(path, follow=False)])
    assert done.code() == DONE and summary["events"] == 2 and not summary["malformed"], summary
    packed = place.write("a.json.gz", gzip.compress(b"\xef\xbb\xbf" + burst("bob", 2).encode()))
    assert lines_read(place, packed) == 2


def test_zeros_before_a_line_are_passed_over_and_said(place):
    for zeros in (10, 200_000):
        data = b"\0" * zeros + burst("ann", 2).encode() + b"\0" * zeros + burst("bob", 2).encode()
        done, summary = once(place, [source(place.write("a.log", data), follow=False)])
        assert done.code() == DONE and summary["events"] == 4 and not summary["malformed"], summary
        assert "bytes of 0" in done.said() and "a.log" in done.said(), done.said()


def follow(place, sources, **sections):
    """A weir that follows, with its decisions in a file: (the weir, a look at its decisions)."""
    config = place.config([zone("site", [fixed(1, "1d")], id=1)], sources,
                          decisions={"path": place.path("decisions")}, **sections)
    return place.start("run", "--config", config, "--state", place.path("state"))


def decided(place, key, running):
    """Waits for a decision about a key."""
    def seen():
        return os.path.exists(place.path("decisions")) and \
            any(decision["key"] == [key] for decision in lines_of(place.path("decisions")))
    until(seen, f"a decision about {key}", running=running)


def twice(user):
    """Two lines of one user, which bring a decision."""
    return burst(user, 2, start_ms=int(time.time() * 1000))


def test_a_link_that_was_rotated_while_stopped_is_read_on(place):
    log = place.write("pods/0.log", twice("u0"))
    os.mkdir(place.path("links"))
    os.symlink("../pods/0.log", place.path("links", "c.log"))
    sources = [source(place.path("links", "*.log"))]
    weir = follow(place, sources)
    decided(place, "u0", weir)
    weir.stop()
    place.append("pods/0.log", twice("u1"))
    os.rename(log, log + ".20240517-100503")
    place.append("pods/0.log", twice("u2"))
    weir = follow(place, sources)
    decided(place, "u1", weir)
    decided(place, "u2", weir)
    weir.stop()


def test_what_is_gone_is_told_with_its_position(place):
    log = place.write("access.log", twice("u0"))
    size = os.path.getsize(log)
    weir = follow(place, [source(log)])
    decided(place, "u0", weir)
    weir.stop()
    os.remove(log)
    place.write("access.log", twice("u1"))
    weir = follow(place, [source(log)])
    decided(place, "u1", weir)
    assert log in weir.said() and f"behind position {size} is lost" in weir.said(), weir.said()
    weir.stop()


def test_an_endless_line_starves_nobody(place):
    endless, other = place.write("endless.log", twice("u0")), place.write("other.log", twice("u1"))
    weir = follow(place, [source(endless), source(other)])
    decided(place, "u1", weir)
    os.truncate(endless, 1 << 40)
    with open(place.path("third.log"), "wb") as file:  # and one that is no hole
        file.write(b"x" * (64 << 20))
    place.append("other.log", twice("u2"))
    decided(place, "u2", weir)
    began = time.monotonic()
    weir.signal(signal.SIGTERM)
    assert weir.wait() == DONE and time.monotonic() - began < PATIENCE_S / 2


def test_streams_beyond_256_are_summed(place):
    count, port = 300, free_port()
    for number in range(count):
        place.write(f"logs/{number}.log", line(int(time.time() * 1000), f"u{number}"))
    weir = follow(place, [source(place.path("logs", "*.log"))], listen={"http": f"127.0.0.1:{port}"})

    def page():
        read = metrics.scrape(port)
        return read if read is not None and read.sum("weir_source_lines_total") == count else None
    seen = until(page, "all lines are counted", running=weir)
    assert seen.value("weir_source_lines_total", source="(others)") == count - 256
    assert seen.value("weir_source_problem", source="(others)") == 0
    assert seen.sum("weir_source_position") == sum(os.path.getsize(place.path("logs", f"{number}.log"))
                                                   for number in range(count))
    weir.stop()


if __name__ == "__main__":
    cases.main(globals())
