#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir watch`: a command runs whenever a file has been replaced, however fast, and again until it has succeeded."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.place import until


def command(place, body):
    """A program that notes what it sees of the file, and then does what the body says."""
    path = place.write("bin/command", f"#!/bin/sh\ncat {place.path('list')} >>{place.path('seen')}\n{body}\n")
    os.chmod(path, 0o755)
    return path


def seen(place):
    try:
        with open(place.path("seen"), encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def replace(place, text):
    place.write("list.new", text + "\n")
    os.replace(place.path("list.new"), place.path("list"))


def test_each_list_is_taken_up(place):
    """Also one that comes within a run: here each run but the last brings the next list."""
    path = command(place, f"n=$(wc -l <{place.path('seen')}); [ $((n % 4)) -eq 0 ] || "
                          f"{{ echo r$n >{place.path('next')}; mv {place.path('next')} {place.path('list')}; }}")
    watch = place.start("watch", place.path("list"), "--", path, "ignored", "-x")
    until(lambda: "has been replaced" in watch.said(), "it watches", running=watch)
    assert seen(place) == []  # there is no file yet
    replace(place, "first")
    until(lambda: seen(place) == ["first", "r1", "r2", "r3"], "four lists", running=watch)
    replace(place, "second")
    until(lambda: seen(place)[4:] == ["second", "r5", "r6", "r7"], "four more", running=watch)
    assert watch.stop() == 0, watch.said()
    # What is there at the start counts as new.
    command(place, "")
    watch = place.start("watch", place.path("list"), "--", path)
    until(lambda: seen(place)[8:9] == ["r7"], "the last list again", running=watch)
    watch.signal(signal.SIGHUP)
    until(lambda: seen(place)[9:10] == ["r7"], "and again on demand", running=watch)
    assert watch.stop() == 0, watch.said()


def test_what_fails_is_tried_again(place):
    path = command(place, f"echo no such gateway >&2; [ -e {place.path('works')} ]")
    replace(place, "list")
    watch = place.start("watch", place.path("list"), "--", path)
    until(lambda: len(seen(place)) >= 2, "a second try", running=watch)
    assert watch.said().count("no such gateway") == 1 and "tried again until it succeeds" in watch.said(), watch.said()
    place.write("works", "")
    until(lambda: "recovered after" in watch.said(), "it has worked", running=watch)
    tries = len(seen(place))
    # A command that stays is killed, with what it started; so the end is near, too.
    command(place, "sleep 60")
    watch.stop()
    watch = place.start("watch", "--timeout", "200ms", place.path("list"), "--", path)
    until(lambda: "did not exit within 200 ms" in watch.said(), "it is killed", running=watch)
    assert watch.stop() == 0 and len(seen(place)) > tries, watch.said()


def test_the_folder_may_come_later_and_go(place):
    os.mkdir(place.path("in"))
    path = place.write("bin/command", f"#!/bin/sh\ncat {place.path('in/deep/list')} >>{place.path('seen')}\n")
    os.chmod(path, 0o755)
    watch = place.start("watch", place.path("in/deep/list"), "--", path)
    for text in ("one", "two", "three"):
        place.write("in/deep/list", text + "\n")
        until(lambda text=text: seen(place)[-1:] == [text], text, running=watch)
        os.rename(place.path("in/deep"), place.path("gone-" + text))
    assert watch.stop() == 0, watch.said()


def test_a_command_line_that_means_nothing(place):
    for words, expected in (((), "FILE is missing"), (("list",), "COMMAND is missing"),
                            (("--timeout", "0s", "list", "--", "true"), "--timeout")):
        done = place.run("watch", *words)
        assert done.code() == 2 and expected in done.said(), done.said()


if __name__ == "__main__":
    cases.main(globals())
