#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs that rotate under a writer at full speed: every line is read once, through kills and restarts too.

Each case runs against the source alone (follow_source, which writes down what it reads) and against `weir run`,
where each user has two requests and is allowed one: a lost line is a decision that is missing, a line read twice
is one at the wrong time.
"""

import contextlib
import gzip
import json
import os
import random
import re
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, traffic
from support.place import PATIENCE_S, ROOT, SANITIZED, until

FOLLOW_SOURCE = os.path.join(os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release")), "tests/follow_source")
LINES = 60_000 if SANITIZED else 400_000
SEED = int(os.environ.get("WEIR_SEED", "1"))


def line(number):
    """The line of a number: two of each user."""
    return b'{"time":%d,"user":"u%d"}\n' % (traffic.START_MS + number, number // 2)


class Writer:
    """Writes numbered lines to a log, as a service does, in a thread of its own; rotates it when asked."""

    def __init__(self, path, rng, rotate=None, rotate_lines=0):
        self.path, self.rng = path, rng
        self.rotate, self.rotate_lines = rotate, rotate_lines
        self.written = 0  # the next line's number
        self.limit = LINES
        self._fd = self._open()
        self._go, self._paused = threading.Event(), threading.Event()
        self._end = False
        self._go.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure = None
        self.write(10)

    def begin(self, follower):
        """Goes to work once the log is followed: what was rotated away before that is no part of it."""
        follower.start()
        until(lambda: follower.has_read(self.written - 1), "the first lines are read", running=follower.process)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end = True
        self._go.set()
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._fd)
        if self.failure is not None:
            raise self.failure

    def _open(self):
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, count):
        """Some lines in one write; always whole pairs."""
        numbers = range(self.written, self.written + 2 * count)
        data = b"".join(map(line, numbers))
        assert os.write(self._fd, data) == len(data)
        self.written += 2 * count

    def reopen(self):
        """Begins a new file, as after a signal."""
        os.close(self._fd)
        self._fd = self._open()

    def _run(self):
        try:
            due = self.rotate_lines
            while not self._end:
                if not self._go.is_set():
                    self._paused.set()
                    self._go.wait()
                    self._paused.clear()
                if self.written >= self.limit:
                    time.sleep(0.005)
                    continue
                self.write(self.rng.choice((1, 2, 5, 50, 300)))
                if self.rotate is not None and self.written >= due:
                    self.rotate(self)
                    due = self.written + self.rng.randrange(2 * self.rotate_lines)
        except BaseException as failure:  # pylint: disable=broad-exception-caught
            self.failure = failure

    def pause(self):
        """Stops writing between two writes."""
        self._go.clear()
        until(self._paused.is_set, "the writer pauses")

    def resume(self):
        """Writes on."""
        self._go.set()
        until(lambda: not self._paused.is_set(), "the writer goes on")

    def wait(self):
        """Until all lines are written."""
        until(lambda: self.written >= self.limit or self.failure, "the writer ends", 4 * PATIENCE_S)

    def finish(self):
        """A few lines more, whatever came before, and their highest number."""
        self.pause()
        self.write(10)
        self.resume()
        return self.written - 1


class Source:
    """Follows with follow_source."""

    def __init__(self, place, *patterns):
        self.place, self.patterns = place, patterns
        self.out = place.path("out")
        os.makedirs(place.path("state"), exist_ok=True)
        self.process = None

    def start(self):
        """Starts it, on the state that is there."""
        if not os.access(FOLLOW_SOURCE, os.X_OK):
            raise cases.Skipped(f"{FOLLOW_SOURCE} is not built")
        self._mend()
        self.process = self.place.start(self.place.path("state"), self.out, *self.patterns, program=FOLLOW_SOURCE)

    def _mend(self):
        """What a kill left of a line is cut off: it was not acknowledged."""
        if not os.path.exists(self.out):
            return
        with open(self.out, "rb+") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - (1 << 20))
            file.seek(start)
            tail = file.read()
            file.truncate(start + tail.rfind(b"\n") + 1)

    def kill(self):
        """Ends it wherever it is."""
        self.process.kill()

    def stop(self):
        """Ends it in order: its streams' status."""
        assert self.process.stop() == 0, self.process.said()
        return json.loads(self.process.out().splitlines()[-1])

    def has_read(self, number):
        """Whether this line was read."""
        if not os.path.exists(self.out):
            return False
        with open(self.out, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4096))
            return line(number).rstrip() in file.read()

    def missing(self, written, may_miss=()):
        """The numbers of lines that were not read yet, though no truncation took them."""
        return _without(set(range(written)) - set(self.numbers(may_miss)), may_miss)

    @property
    def whole(self):
        """Whether the pattern names the log alone. A glob names rotated files, too: one that was rotated twice before it was
        looked at is then a log of its own (collector/formats.md), which is read when its turn comes."""
        return not self.patterns[0].endswith("*")

    def numbers(self, may_miss=()):
        """The lines' numbers in the order of reading, what came again by position left out.

        may_miss: a copy may end within a line that the truncation took; that part of it is passed over."""
        newest, numbers = {}, []
        with open(self.out, "rb") as file:
            for row in file:
                if not row.endswith(b"\n"):
                    break  # it is being written
                name, position, text = row.rstrip(b"\n").split(b"\t")
                position = int(position)
                if position <= newest.get(name, 0):
                    continue
                newest[name] = position
                try:
                    numbers.append(json.loads(text)["time"] - traffic.START_MS)
                except ValueError:
                    assert any(line(number).startswith(text) for first, end in may_miss for number in range(first, end)), row
        assert len(newest) == 1 or not self.whole, f"one log, but {len(newest)} sources: {list(newest)}"
        return numbers if len(newest) == 1 else sorted(numbers)

    def check(self, expected):
        """Every line once; in order too, but where files were renamed faster than a directory can be read."""
        numbers = self.numbers()
        assert sorted(numbers) == list(expected), _difference(sorted(numbers), expected)
        back = sum(1 for a, b in zip(numbers, numbers[1:]) if b < a)
        print(f"{len(numbers)} lines, {back} times out of order")
        assert back <= 3, f"{back} times out of order: {_difference(numbers, expected)}"

    def check_lossy(self, written, may_miss):
        """No line twice, and none missing but where a truncation took it."""
        numbers = self.numbers(may_miss)
        assert numbers == sorted(set(numbers)), _difference(numbers, sorted(set(numbers)))
        wrong = self.missing(written, may_miss)
        assert not wrong, f"{len(wrong)} lines are missing: {wrong[:10]} of {may_miss}"
        return sum(len(line(number)) for number in set(range(written)) - set(numbers))


class Run:
    """Follows with `weir run`."""

    def __init__(self, place, *patterns):
        self.place = place
        zones = [traffic.zone("once", [traffic.fixed(1, "1d")], id=1)]
        self.config = place.config(zones, [traffic.source(list(patterns), follow=True)], log={"level": "debug"})
        self.out = place.path("decisions")
        self.process = None
        self._seen, self._seen_bytes = set(), 0

    def start(self):
        """Starts it, on the state that is there."""
        self.process = self.place.start("run", "--config", self.config, "--state", self.place.path("state"),
                                        "--decisions", self.out, "--summary", "json")

    def kill(self):
        """Ends it wherever it is."""
        self.process.kill()

    def stop(self):
        """Ends it in order."""
        assert self.process.stop() == 0, self.process.said()
        return []

    def has_read(self, number):
        """Whether the decision on this line is there."""
        if os.path.exists(self.out):
            with open(self.out, "rb") as file:
                file.seek(self._seen_bytes)
                data = file.read()
            whole = data.rfind(b"\n") + 1
            self._seen_bytes += whole
            self._seen.update(re.findall(rb'\["u(\d+)"\]', data[:whole]))
        return b"%d" % (number // 2) in self._seen

    def missing(self, written, may_miss=()):
        """The first lines of the users that are not decided on yet, though no truncation took them."""
        self.has_read(0)
        return _without({2 * user for user in range(written // 2) if b"%d" % user not in self._seen}, may_miss)

    def _decided(self):
        decided = {}
        with open(self.out, "rb") as file:
            for row in file:
                decision = json.loads(row)
                user = int(decision["key"][0][1:])
                assert user not in decided, f"u{user} is decided on twice"
                decided[user] = decision["at"] - traffic.START_MS
        return decided

    def check(self, expected):
        """One decision on each user, at the second line."""
        decided = self._decided()
        users = [number // 2 for number in expected if number % 2]
        missing = [user for user in users if user not in decided]
        assert not missing, f"{len(missing)} decisions are missing: {missing[:10]}"
        wrong = [user for user, at in decided.items() if at != 2 * user + 1]
        assert not wrong, f"{len(wrong)} are decided at their first line: {wrong[:10]}"
        assert len(decided) == len(users)

    def check_lossy(self, written, may_miss):
        """As check(), but for the users whose lines a truncation took."""
        decided = self._decided()
        wrong = [user for user, at in decided.items() if at != 2 * user + 1]
        assert not wrong, f"{len(wrong)} are decided at their first line: {wrong[:10]}"
        missing = _without({2 * user for user in range(written // 2) if user not in decided}, may_miss)
        assert not missing, f"{len(missing)} decisions are missing: {missing[:10]}"
        return None


def _without(numbers, may_miss):
    """Those that are in no [first, end) of may_miss."""
    return sorted(number for number in numbers if not any(first <= number < end for first, end in may_miss))


def await_all(follower, writer, may_miss=()):
    """Waits until the writer is through, and all that no truncation took is read: of every file, also of those that are
    looked at last."""
    writer.wait()
    last = writer.finish()
    until(lambda: follower.has_read(last), "all is read", 4 * PATIENCE_S, follower.process)

    def is_whole():
        missing = follower.missing(writer.written, may_miss)
        time.sleep(0.2 if missing else 0)
        return not missing
    try:
        until(is_whole, "every file is read", PATIENCE_S, follower.process)
    except AssertionError:
        pass  # the check says what is missing


def _difference(numbers, expected):
    """Where two lists begin to differ."""
    expected = list(expected)
    for i, (got, wanted) in enumerate(zip(numbers, expected)):
        if got != wanted:
            return f"at {i} of {len(numbers)}: {numbers[max(0, i - 3):i + 5]}, expected {expected[max(0, i - 3):i + 5]}"
    return f"{len(numbers)} lines, expected {len(expected)}: {numbers[-3:]}"


class Rename:
    """logrotate by renaming: shifts the numbers, may create the new file, packs the second oldest."""

    def __init__(self, path, rng):
        self.path, self.rng = path, rng
        self.rotations = 0

    def __call__(self, writer):
        for number in range(self.rotations, 0, -1):
            for ending in ("", ".gz"):
                old = f"{self.path}.{number}{ending}"
                if os.path.exists(old):
                    os.rename(old, f"{self.path}.{number + 1}{ending}")
        os.rename(self.path, self.path + ".1")
        self.rotations += 1
        if self.rng.random() < 0.5:
            with open(self.path, "xb"):
                pass
        # The writer does not know yet.
        for _ in range(self.rng.choice((0, 1, 3, 20))):
            writer.write(self.rng.choice((1, 10)))
        if self.rng.random() < 0.3:
            time.sleep(0.05)
            writer.write(5)
        writer.reopen()
        plain = self.path + ".2"
        if os.path.exists(plain) and self.rng.random() < 0.7:
            with open(plain, "rb") as source, open(plain + ".gz", "wb") as packed:
                with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
                    shutil.copyfileobj(source, file)
            about = os.stat(plain)
            os.utime(plain + ".gz", ns=(about.st_atime_ns, about.st_mtime_ns))
            os.unlink(plain)


def patterns_of(place, rng):
    """The log's path, or a glob that its rotated files match too."""
    log = place.path("log", "access.log")
    os.makedirs(os.path.dirname(log))
    return log, log + "*" if rng.random() < 0.5 else log


def rename_rotation(place, kind, seed):
    """Twenty rotations."""
    rng = random.Random(seed)
    log, pattern = patterns_of(place, rng)
    follower = kind(place, pattern)
    with Writer(log, rng, Rename(log, rng), LINES // 20) as writer:
        writer.begin(follower)
        await_all(follower, writer)
        follower.stop()
        follower.check(range(writer.written))


def restarts(place, kind, seed):
    """Killed again and again, while the log rotates on: once, twice and more while nobody follows."""
    rng = random.Random(seed)
    log, pattern = patterns_of(place, rng)
    follower = kind(place, pattern)
    with Writer(log, rng, Rename(log, rng), LINES // 40) as writer:
        writer.begin(follower)
        while writer.written < writer.limit:
            time.sleep(rng.uniform(0.02, 0.5))
            follower.kill()
            time.sleep(rng.choice((0, 0.05, 0.3)))
            follower.start()
        await_all(follower, writer)
        follower.stop()
        follower.check(range(writer.written))


def copytruncate(place, kind, seed):
    """Copied and truncated in place: only what came between the end of the copy and the truncation is lost."""
    rng = random.Random(seed)
    log, pattern = patterns_of(place, rng)
    follower = kind(place, pattern)
    may_miss = []
    with Writer(log, rng) as writer:
        writer.begin(follower)
        for _ in range(12):
            time.sleep(rng.uniform(0.05, 0.2))
            for number in range(12, 0, -1):
                if os.path.exists(f"{log}.{number}"):
                    os.rename(f"{log}.{number}", f"{log}.{number + 1}")
            if rng.random() < 0.3:
                writer.pause()
            with open(log, "rb") as source, open(log + ".1", "wb") as copy:
                while True:
                    first = writer.written
                    data = source.read(1 << 16)
                    if not data:
                        break
                    copy.write(data)
            os.truncate(log, 0)
            may_miss.append((first, writer.written + 700))  # a write may be under way
            writer.resume()
        await_all(follower, writer, may_miss)
        statuses = follower.stop()
        missing = follower.check_lossy(writer.written, may_miss)
        if statuses:
            assert statuses[0]["lost"] <= missing, (statuses, missing)


def truncation(place, kind, seed):
    """Truncated in place without a copy: what was seen and not read is counted, and nothing is read twice."""
    rng = random.Random(seed)
    log, pattern = patterns_of(place, rng)
    follower = kind(place, pattern)
    may_miss = []
    with Writer(log, rng) as writer:
        writer.begin(follower)
        begun = 0
        for _ in range(12):
            time.sleep(rng.uniform(0.05, 0.2))
            os.truncate(log, 0)
            may_miss.append((begun, writer.written + 700))
            begun = writer.written
        # A line that is awaited below must have been written after the last truncation, or it may be gone; a writer
        # that is through with its lines by now writes some more.
        writer.limit = max(writer.limit, begun + LINES // 10)
        until(lambda: writer.written > begun + 1, "lines after the last truncation", running=follower.process)
        # With the writer at rest, all is read before it is truncated: nothing is lost.
        for _ in range(5):
            writer.pause()
            last = writer.written - 1
            until(lambda: follower.has_read(last), "all is read", running=follower.process)  # pylint: disable=W0640
            os.truncate(log, 0)
            writer.resume()
        await_all(follower, writer, may_miss)
        statuses = follower.stop()
        missing = follower.check_lossy(writer.written, may_miss)
        if statuses:
            assert statuses[0]["lost"] <= missing, (statuses, missing)


def has_open(process, path):
    """Whether a process has this file open."""
    directory, log = f"/proc/{process.pid}/fd", os.path.realpath(path)
    for number in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            if os.readlink(os.path.join(directory, number)) == log:
                return True
    return False


def shrinking(place, kind, seed):
    """Cut to a part of its length, read to its end: what is left is not read again, and what follows is read once."""
    rng = random.Random(seed)
    log, pattern = patterns_of(place, rng)
    follower = kind(place, pattern)
    with Writer(log, rng) as writer:
        writer.limit = LINES // 4
        writer.begin(follower)
        for i in range(8):
            time.sleep(rng.uniform(0.05, 0.1))
            writer.pause()
            last = writer.written - 1
            until(lambda: follower.has_read(last), "all is read", running=follower.process)  # pylint: disable=W0640
            if i % 2:
                follower.stop()
            os.truncate(log, rng.randrange(2000, os.path.getsize(log)))
            if i % 2:
                follower.start()
            # It is noticed before more is written: else it cannot be told how far it was cut.
            until(lambda: has_open(follower.process, log), "it has the log open", running=follower.process)
            time.sleep(0.5)
            writer.resume()
        await_all(follower, writer)
        follower.stop()
        follower.check(range(writer.written))


def _for_each(case):
    """A test against the source, and one against `weir run`."""
    def of_source(place):
        case(place, Source, SEED)

    def of_run(place):
        case(place, Run, SEED + 1)

    return of_source, of_run


test_rename_rotation, test_rename_rotation_of_weir = _for_each(rename_rotation)
test_restarts, test_restarts_of_weir = _for_each(restarts)
test_copytruncate, test_copytruncate_of_weir = _for_each(copytruncate)
test_truncation, test_truncation_of_weir = _for_each(truncation)
test_shrinking, test_shrinking_of_weir = _for_each(shrinking)

if __name__ == "__main__":
    cases.main(dict(globals()))
