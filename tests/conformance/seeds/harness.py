# SPDX-License-Identifier: Apache-2.0
"""Runs a script's tests against weir and, where one is named, a seed system.

A test is a function test_<what it shows>(weir, seed). The last line of the output counts them; the
script fails if one failed. If the seed system cannot be had, its tests are skipped and say why.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from seeds.packages import Missing
from seeds.weir import Weir

ROOT = Path(__file__).parents[3]
TEST_TIMEOUT_S = 60
SKIPPED = 77  # ctest is told that this is neither passed nor failed


def same(seen, wanted, what):
    """Requires two lists of answers to be equal; what, or what(place), says what they answer."""
    if seen == wanted:
        return
    where = what if callable(what) else lambda place: f"{what}, answer {place}"
    if isinstance(seen, list) and len(seen) == len(wanted):
        place = next(i for i, pair in enumerate(zip(seen, wanted)) if pair[0] != pair[1])
        raise AssertionError(f"{where(place)}: {seen[place]}, not {wanted[place]}")
    raise AssertionError(f"{what}: {seen}, not {wanted}")


def told(limit, calls):
    """Says for same() which call of a limit an answer is for."""
    return lambda place: f"{limit}, call {place} {calls[place]}"


def flaw(seed, exact, *, seed_says, exact_says):
    """Requires that the seed shows its flaw and the exact rule does not."""
    same(seed, seed_says, "the seed system")
    same(exact, exact_says, "the exact rule")
    if seed_says == exact_says:
        raise AssertionError("this shows no flaw")


def main(names, serve=None):
    """Runs the tests among a module's names; serve is the seed system's context manager."""
    options = parse()
    tests = [(name.removeprefix("test_"), test) for name, test in names.items()
             if name.startswith("test_") and (options.only or "") in name]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        # Leaves through the context managers, which stop the servers.
        signal.signal(number, lambda number, _: sys.exit(f"stopped: {signal.strsignal(number)}"))
    weir = Weir(None if options.without_weir else options.weir)
    started = time.monotonic()
    try:
        with (serve or contextlib.nullcontext)() as seed:
            failed = sum(not passes(name, test, weir, seed) for name, test in tests)
    except Missing as reason:
        for name, _ in tests:
            print(f"skipped: {name}: {reason}")
        print(f"0 passed, 0 failed, {len(tests)} skipped")
        return SKIPPED
    print(f"{weir.judged} verdicts of weir compared" if weir.program else
          "weir itself was not run: the exact rule stood in for it", end="")
    print(f", {time.monotonic() - started:.1f} s")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--weir", metavar="PATH",
                        default=os.environ.get("WEIR_BIN", str(ROOT / "build/release/bin/weir")),
                        help="the program under test (WEIR_BIN, build/release/bin/weir)")
    parser.add_argument("--without-weir", action="store_true",
                        help="compare the seed system with the exact rule alone")
    parser.add_argument("--only", metavar="WORD", help="only tests with this in their name")
    options = parser.parse_args()
    if not options.without_weir and not os.access(options.weir, os.X_OK):
        parser.error(f"there is no program {options.weir}: build it, or name it with --weir")
    return options


def passes(name, test, weir, seed):
    signal.alarm(TEST_TIMEOUT_S)
    try:
        test(weir, seed)
    except AssertionError as difference:
        print(f"FAILED: {name}: {difference}", flush=True)
        return False
    except Exception:  # pylint: disable=broad-except
        print(f"FAILED: {name}:\n{traceback.format_exc()}", flush=True)
        return False
    print(f"ok: {name}", flush=True)
    return True
