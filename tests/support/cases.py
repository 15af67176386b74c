# SPDX-License-Identifier: Apache-2.0
"""Runs a script's tests: functions test_NAME(place), each in a place of its own.

usage: test_….py [--weir PATH] [--parent DIR] [NAME…]

NAME: only the tests whose names have it in them. The last line of the output
is `N passed, N failed`; the exit code is 1 if one failed, 77 if none ran.
"""

import argparse
import faulthandler
import inspect
import os
import signal
import sys
import time
import traceback

from support.place import Place, find_weir

SKIPPED = 77
# Of one test: somewhat less than ctest gives its script (tests/CMakeLists.txt); 0: by hand a test may take its time.
LIMIT_S = int(os.environ.get("WEIR_TEST_LIMIT_S", 0))


class Skipped(Exception):
    """This test cannot run here; the words say why."""


def _run(test, weir, parent):
    """What became of a test: "passed", "FAILED" or "skipped"."""
    with Place(weir, parent) as place:
        # Whatever waits has a limit of its own. This one ends even a library that waits, and shows where.
        if LIMIT_S > 0:
            faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        try:
            test(place)
            place.require_no_fault()
        except Skipped as why:
            return "skipped", str(why)
        except Exception:  # pylint: disable=broad-exception-caught
            return "FAILED", traceback.format_exc()
        finally:
            faulthandler.cancel_dump_traceback_later()
    return "passed", ""


def main(names):
    """Runs the tests among a module's names, and leaves."""
    parser = argparse.ArgumentParser(description=names.get("__doc__"),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the program (WEIR_BIN, build/release/bin/weir)")
    parser.add_argument("--parent", help="where the tests' directories are made")
    parser.add_argument("only", nargs="*", metavar="NAME")
    options = parser.parse_args()
    weir = find_weir(options.weir)
    if weir is None:
        print("skipped: weir is not built\n0 passed, 0 failed")
        sys.exit(SKIPPED)
    # Leaves through the context managers, which end what runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by a signal"))
    tests = [(name.removeprefix("test_"), test) for name, test in names.items()
             if name.startswith("test_") and inspect.isfunction(test)
             and (not options.only or any(part in name for part in options.only))]
    counts = {"passed": 0, "FAILED": 0, "skipped": 0}
    for name, test in tests:
        started = time.monotonic()
        what, words = _run(test, weir, options.parent)
        counts[what] += 1
        reason = f": {words}" if what == "skipped" else ""
        print(f"{what:8} {name} ({time.monotonic() - started:.1f} s){reason}", flush=True)
        if what == "FAILED":
            print(words, flush=True)
    if counts["skipped"]:
        print(f"{counts['skipped']} skipped")
    print(f"{counts['passed']} passed, {counts['FAILED']} failed", flush=True)
    sys.exit(1 if counts["FAILED"] else 0 if counts["passed"] else SKIPPED)
