#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weir run` draws on a terminal while it follows, and that nothing else on that terminal suffers from it."""

import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import until
from support.terminal import ERASE, Terminal, rows
from support.traffic import burst, site, source

DONE = 0
DRAWN = re.compile(r"^[\d,]+ lines?, [\d,]+ a second, ([\d,]+ events?, [\d,]+ decisions?)?")


def follow(place, *more, decisions=None, **popen):
    """Starts a weir that follows one log."""
    config = place.config(site(3), [source(place.write("log", ""))])
    return place.start("run", "--config", config, "--state", place.path("state"), "--decisions",
                       decisions or place.path("out"), *more, **popen)


def drawn(wrote):
    """Each drawing of the progress."""
    return [part for part in wrote.replace("\n", ERASE).split(ERASE) if DRAWN.match(part)]


def test_what_is_read_and_decided_is_drawn_on_one_line(place):
    with Terminal() as screen:
        began = time.monotonic()
        weir = follow(place, stderr=screen.fd)
        screen.read()
        screen.shows("0 lines, 0 a second, 0 events, 0 decisions", weir)
        place.append("log", burst("ann", 5) + "garbage\n")
        screen.shows("6 lines, ", weir)
        screen.shows("5 events, 1 decision", weir)
        weir.signal(signal.SIGHUP)
        screen.shows("policy 1 is in force", weir)
        count, took = len(drawn(screen.wrote())), time.monotonic() - began
        assert count <= 4 * took + 4, f"{count} drawings in {took:.1f} s"
        assert weir.stop() == DONE
        wrote = screen.whole()
    assert any(re.search(", [1-9]\\d* a second", one) for one in drawn(wrote)), wrote
    assert drawn(wrote)[-1].startswith("6 lines, "), wrote
    for row in rows(wrote):
        assert not DRAWN.match(row), f"it stayed: {row!r}"
        assert "policy" not in row or re.match(r"\d{4}-", row), f"the log's line is not alone: {row!r}"


def test_what_waits_to_be_read_is_told(place):
    with Terminal() as screen:
        weir = follow(place, stderr=screen.fd)
        screen.read()
        screen.shows(" 0 decisions", weir)
        place.append("log", "x" * 4000)  # a line whose end has not come
        screen.shows("0 decisions, 3.9 KiB behind", weir)
        place.append("log", "\n")
        until(lambda: drawn(screen.wrote())[-1].endswith(" 0 decisions"), "it has caught up", running=weir)
        assert weir.stop() == DONE


def test_decisions_on_the_same_terminal_stand_alone(place):
    with Terminal() as screen:
        weir = follow(place, decisions="-", stdout=screen.fd, stderr=screen.fd, env={**os.environ, "NO_COLOR": "1"})
        screen.read()
        screen.shows(" 0 decisions", weir)
        for number in range(1, 6):
            place.append("log", burst(f"user-{number}", 4))
            screen.shows(f" {number} decision{'s' if number > 1 else ''}", weir)
        assert weir.stop() == DONE
        shown = [row for row in rows(screen.whole()) if " blocked for " in row]
    assert len(shown) == 5 and all(re.match(r"\d{4}-", row) for row in shown), shown


def test_colours_say_who_is_out_and_in(place):
    """Red and green on a terminal that has colours; none with NO_COLOR, for a dumb one, or in a file."""
    def run(**environment):
        out = place.path("-".join(environment.values()) + ".state")
        with Terminal() as screen:
            config = place.config(site(3), [source(place.write("log", ""))])
            weir = place.start("run", "--config", config, "--state", out, "--decisions", "-", stdout=screen.fd,
                               env={**os.environ, "TZ": "Asia/Tokyo", "TERM": "xterm", **environment})
            screen.read()
            until(lambda: "following" in weir.said(), "it follows", running=weir)
            place.append("log", burst("ann", 4))
            screen.shows("over 3 in 1m", weir)
            place.good("lift", "ann", "--state", out)
            screen.shows("lifted", weir)
            assert weir.stop() == DONE
            return screen.whole()

    coloured = run(NO_COLOR="")
    assert "\x1b[31mblocked\x1b[0m for " in coloured and "\x1b[32mlifted\x1b[0m by " in coloured, coloured
    assert " JST  site  ann  " in coloured and "UTC" not in coloured, coloured
    for plain in (run(NO_COLOR="1"), run(TERM="dumb", NO_COLOR="")):
        assert "\x1b[3" not in plain and "  blocked for " in plain, plain


def test_the_line_beneath_many_others_comes_back_seldom(place):
    """A second of decisions, each a line of its own: the progress is drawn five times in it, not as often as they."""
    with Terminal() as screen:
        weir = follow(place, decisions="-", stdout=screen.fd, stderr=screen.fd)
        screen.read()
        screen.shows(" 0 decisions", weir)
        began, before = time.monotonic(), len(drawn(screen.wrote()))
        for number in range(100):
            place.append("log", burst(f"user-{number}", 4))
            screen.shows(f"user-{number} ", weir)
        took, count = time.monotonic() - began, len(drawn(screen.wrote())) - before
        assert weir.stop() == DONE
    assert count <= 5 * took + 3, f"{count} drawings in {took:.1f} s"


def test_a_narrow_terminal_is_not_overrun(place):
    with Terminal(columns=30) as screen:
        weir = follow(place, stderr=screen.fd)
        screen.read()
        screen.shows("0 lines, ", weir)
        assert weir.stop() == DONE
        assert drawn(screen.whole()) and max(map(len, drawn(screen.wrote()))) == 29, screen.wrote()


def test_quiet_and_files_show_none(place):
    with Terminal() as screen:
        quiet = follow(place, "--quiet", stderr=screen.fd)
        screen.read()
        time.sleep(1)  # nothing says that it would be drawn by now
        assert quiet.stop() == DONE and not drawn(screen.whole()), screen.wrote()
    filed = follow(place)
    until(lambda: "following" in filed.said(), "it follows", running=filed)
    time.sleep(0.5)
    assert filed.stop() == DONE and ERASE not in filed.said(), filed.said()


if __name__ == "__main__":
    cases.main(globals())
