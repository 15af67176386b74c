#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests stand on tells of a process that is gone: one that ended by a fault fails its test, whoever has looked."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import Place


def refused(deed):
    """The words of the assertion that a deed fails with."""
    try:
        deed()
    except AssertionError as words:
        return str(words)
    raise AssertionError("it passed")


def shell(place, script):
    """A process that does that."""
    return place.start("-c", script, program="/bin/sh")


def crashed(inner, script):
    """Starts one, and another after its end."""
    one = shell(inner, script)
    while one.code() is None:
        pass
    shell(inner, "exit 0").wait()


def test_a_fault_is_told_even_where_nobody_looks(place):
    for number in (4, 6, 7, 8, 11):
        with Place(place.weir, place.directory) as inner:
            crashed(inner, f"echo why >&2; kill -{number} $$")
            words = refused(inner.require_no_fault)
            assert f"status -{number}" in words and "why" in words, words
            inner.require_no_fault()  # once

    def leave():
        with Place(place.weir, place.directory) as inner:
            crashed(inner, "kill -11 $$")
    assert "status -11" in refused(leave)


def test_other_ends_are_no_faults(place):
    with Place(place.weir, place.directory) as inner:
        for number in (9, 15):
            crashed(inner, f"kill -{number} $$")
        crashed(inner, "exit 2")
        shell(inner, "sleep 600")  # which the place ends


def test_who_asks_a_process_that_is_gone_is_told_so(place):
    run = shell(place, "echo why >&2; exit 3")
    run.process.wait()
    words = refused(run.require_asked)
    assert "status 3" in words and "why" in words, words
    run.wait()
    run.require_asked()  # its test knows
    for end in (lambda one: one.stop(), lambda one: one.kill()):
        run = shell(place, "sleep 600")
        run.require_asked()
        end(run)
        run.require_asked()


if __name__ == "__main__":
    cases.main(globals())
