"""Runs seeded rounds of chaos: each in a place of its own, several at a time.

A round is a function play(round) that raises AssertionError. What it draws from
round.rng is the same for the same seed and number; where a kill falls is not,
so a failing round may have to be repeated some times: --times.
"""

import argparse
import contextlib
import faulthandler
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
import traceback
from multiprocessing import connection

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.place import SANITIZED, Place, find_weir  # pylint: disable=wrong-import-position

SKIPPED = 77
ROUND_S = 3600 if SANITIZED else 900  # what waits in a round has less patience; this ends what waits without any
LEAVE_S = 120  # for ending what a round has started


class Overdue(Exception):
    """A round that does not end."""


class Round:
    """One round: its number, what it draws from, and where it works."""

    def __init__(self, seed, number, place):
        self.seed, self.number, self.place = seed, number, place
        self.rng = random.Random(f"{seed}/{number}")
        self.moments = random.Random()  # when kills fall: another each time
        self.story = []

    def tell(self, words):
        """Notes what was done, for the case that the round fails."""
        self.story.append(words)


def _overdue(*_):
    raise Overdue(f"the round still runs after {ROUND_S} s")


def _play(play, weir, seed, number, keep, writer):
    """One round, in a process of its own: sends (None or how it failed, what was done)."""
    signal.signal(signal.SIGALRM, _overdue)
    signal.alarm(ROUND_S)
    # Where even that is not heard, within a library, nothing is left but to say where, and to go.
    faulthandler.dump_traceback_later(ROUND_S + LEAVE_S, exit=True)
    with Place(weir) as place:
        one = Round(seed, number, place)
        try:
            play(one)
            writer.send((None, one.story))
        except Exception as failed:  # pylint: disable=broad-exception-caught
            signal.alarm(0)
            words = str(failed) if isinstance(failed, AssertionError) else traceback.format_exc()
            if keep:
                kept = place.directory + "-kept"
                place.end_all()
                shutil.copytree(place.directory, kept, symlinks=True)
                words += f"\nkept in {kept}"
            writer.send((words, one.story))


def _ended(process, reader):
    """(None or how it failed, what was done) of a round whose process has said so, or ends without a word."""
    try:
        words, story = reader.recv()
    except EOFError:
        words, story = None, []
    process.join()
    if words is None and process.exitcode != 0:
        words = f"its process ended with {process.exitcode}"
    return words, story


def _played(jobs, at_once):
    """Plays rounds, so many at once: (number, None or how it failed, what was done) of each that has ended."""
    jobs, running = list(jobs), {}
    try:
        while jobs or running:
            while jobs and len(running) < at_once:
                job = jobs.pop(0)
                reader, writer = multiprocessing.Pipe(duplex=False)
                process = multiprocessing.Process(target=_play, args=(*job, writer))
                process.start()
                writer.close()
                running[reader] = process, job[3]
            for reader in connection.wait(running):
                process, number = running[reader]
                yield number, *_ended(process, reader)
                del running[reader]
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join(LEAVE_S)
            process.kill()


def main(play, description, ordinary=4 if SANITIZED else 20, around=None):
    """Plays the rounds that the command line asks for, and leaves.

    ordinary: how many, where nobody says so; around(jobs): what is entered while they are played."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the program (WEIR_BIN, build/release/bin/weir)")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("WEIR_ROUNDS", ordinary)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--times", type=int, default=1, help="how often each round is played")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tell", action="store_true", help="say what was done in rounds that passed, too")
    parser.add_argument("--keep", action="store_true", help="keep the directory of a round that failed")
    options = parser.parse_args()
    weir = find_weir(options.weir)
    if weir is None:
        print("skipped: weir is not built\n0 passed, 0 failed")
        sys.exit(SKIPPED)
    jobs = [(play, weir, options.seed, number, options.keep)
            for number in range(options.first, options.first + options.rounds) for _ in range(options.times)]
    failures = 0
    started = time.monotonic()
    # Everyone, the rounds' processes too, leaves through what ends all that runs in it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with around(options.jobs) if around else contextlib.nullcontext(), \
            contextlib.closing(_played(jobs, options.jobs)) as played:
        for number, words, story in played:
            failures += words is not None
            done = "".join(f"\n  {line}" for line in story)
            if options.tell and words is None:
                print(f"round {number}:{done}", flush=True)
            if words is not None:
                print(f"FAILED round {number} of seed {options.seed}: {words}\nwhat was done:{done}\n"
                      f"again: {sys.argv[0]} --seed {options.seed} --first {number} --rounds 1 --times 20", flush=True)
            if failures == 5:
                print("five failed: the rest is not played")
                break
    print(f"{len(jobs)} rounds of seed {options.seed} from {options.first} on, {time.monotonic() - started:.0f} s")
    print(f"{len(jobs) - failures} passed, {failures} failed", flush=True)
    sys.exit(1 if failures else 0)
