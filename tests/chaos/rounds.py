# SPDX-License-Identifier: Apache-2.0
"""Runs seeded rounds of chaos: each in a place of its own, several at a time.

A round is a function play(round) that raises AssertionError. What it draws from
round.rng is the same for the same seed and number; where a kill falls is not,
so a failing round may have to be repeated some times: --times.
"""

import argparse
import contextlib
import faulthandler
import functools
import glob
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from multiprocessing import connection

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.place import ROOT, SANITIZED, Place, find_weir  # pylint: disable=wrong-import-position

SKIPPED = 77
ROUND_S = 2400 if SANITIZED else 600  # what waits in a round has less patience; this ends what waits without any
LEAVE_S = 330  # for ending what a round has started
LOOK_S = 5
TOLD, ENDED = "told", "ended"  # what a round's process sends


class Overdue(Exception):
    """A round that does not end."""


class Round:
    """One round: its number, what it draws from, and where it works."""

    def __init__(self, seed, number, place, writer):
        self.seed, self.number, self.place = seed, number, place
        self.rng = random.Random(f"{seed}/{number}")
        self.moments = random.Random()  # when kills fall: another each time
        self._writer = writer

    def tell(self, words):
        """Notes what was done, for the case that the round fails."""
        self._writer.send((TOLD, words))


def _overdue(*_):
    raise Overdue(f"the round still runs after {ROUND_S} s")


def _play(play, weir, seed, keep, home, number, writer):
    """One round, in a process of its own: sends what it tells, and None or how it failed."""
    signal.signal(signal.SIGALRM, _overdue)
    signal.alarm(ROUND_S)
    # Where even that is not heard, within a library, nothing is left but to say where, and to go.
    faulthandler.dump_traceback_later(ROUND_S + LEAVE_S, exit=True)
    with Place(weir, home) as place:
        try:
            play(Round(seed, number, place, writer))
            writer.send((ENDED, None))
        except Exception as failed:  # pylint: disable=broad-exception-caught
            signal.alarm(0)
            words = str(failed) if isinstance(failed, AssertionError) else traceback.format_exc()
            if keep:
                kept = home + "-kept-" + os.path.basename(place.directory)
                place.end_all()
                shutil.copytree(place.directory, kept, symlinks=True)
                words += f"\nkept in {kept}"
            writer.send((ENDED, words))


class _Playing:
    """A round that is being played."""

    def __init__(self, play_it, number):
        self.number, self.story, self.words = number, [], "its process ended without a word"
        self.reader, writer = multiprocessing.Pipe(duplex=False)
        self._process = multiprocessing.Process(target=play_it, args=(number, writer))
        self._process.start()
        writer.close()

    def hear(self):
        """Takes what it has sent: whether it has ended."""
        gone = self._process.exitcode is not None
        try:
            while self.reader.poll():
                kind, words = self.reader.recv()
                if kind == ENDED:
                    self.words = words
                else:
                    self.story.append(words)
        except (EOFError, OSError):  # none of its end holds the pipe any more, or it was killed as it spoke
            return True
        return gone

    def result(self):
        """(number, None or how it failed, what was done)"""
        self.end()
        if self._process.exitcode != 0:
            self.words = f"{self.words or 'passed, but'}: exit code {self._process.exitcode}"
        return self.number, self.words, self.story

    def stop(self):
        """Asks it to end."""
        self._process.terminate()

    def end(self):
        """Waits until it is gone."""
        self._process.join(LEAVE_S)
        self._process.kill()
        self._process.join()


def _played(play_it, numbers, at_once):
    """Plays rounds, so many at once: (number, None or how it failed, what was done) of each that has ended."""
    left, playing = list(numbers), []
    try:
        while left or playing:
            while left and len(playing) < at_once:
                playing.append(_Playing(play_it, left.pop(0)))
            connection.wait([one.reader for one in playing], LOOK_S)
            for one in [one for one in playing if one.hear()]:
                yield one.result()
                playing.remove(one)
    finally:
        for one in playing:
            one.stop()
        for one in playing:
            one.end()


@contextlib.contextmanager
def _home(weir):
    """A directory for all rounds' places, without a server when it is left: a round that was killed has left some."""
    with Place(weir) as place:
        try:
            yield place.directory
        finally:
            for settings in glob.glob(place.path("*", "*", "cluster.json")):
                subprocess.run([os.path.join(ROOT, "deploy", "cluster", "part"), os.path.dirname(settings), "kill", "all"],
                               stdin=subprocess.DEVNULL, timeout=LEAVE_S, check=False)


def main(play, description, ordinary=4, around=None, skipped=None):
    """Plays the rounds that the command line asks for, and leaves.

    ordinary: how many, where nobody says so; around(jobs): what is entered while they are played; skipped: what no
    round can do on this machine, and why."""
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
    numbers = [number for number in range(options.first, options.first + options.rounds) for _ in range(options.times)]
    failures = 0
    started = time.monotonic()
    # Everyone, the rounds' processes too, leaves through what ends all that runs in it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with around(options.jobs) if around else contextlib.nullcontext(), _home(weir) as home, \
            contextlib.closing(_played(functools.partial(_play, play, weir, options.seed, options.keep, home), numbers,
                                       options.jobs)) as played:
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
    print(f"{len(numbers)} rounds of seed {options.seed} from {options.first} on, {time.monotonic() - started:.0f} s")
    if skipped:
        print(f"skipped: {skipped}")
    print(f"{len(numbers) - failures} passed, {failures} failed", flush=True)
    sys.exit(1 if failures else 0)
