# SPDX-License-Identifier: Apache-2.0
"""The programs that drive the Kafka bus for its tests: tests/integration/bus_kafka.c and bus_kafka_load.c."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time

from support.cases import Skipped
from support.place import PATIENCE_S, ROOT, until

BUSY_S = 4 * PATIENCE_S
PARTITIONS = 4
MESSAGE_BYTES = 2000
# Timeouts shortened, so that they really fire in the seconds that a test has.
HASTY = {"socket.timeout.ms": 3000, "request.timeout.ms": 2000}


def program(name):
    """The path of a driver."""
    path = os.path.join(os.environ.get("WEIR_BUILD") or os.path.join(ROOT, "build/release"), "tests", name)
    if not os.access(path, os.X_OK):
        raise Skipped(f"{name} is not built")
    return path


def config(place, cluster, name="weir.json", **bus):
    """Writes a configuration for the bus alone: its path."""
    sections = cluster.sections(bus=bus)
    return place.write(name, json.dumps({"bus": sections["bus"], "sources": []}, indent=1))


class Driver:
    """A process with an open bus. Use it in a with statement; call it with a command's words."""

    def __init__(self, place, path, wait_ms=60000, expect="OK"):
        self._run = place.start(path, wait_ms, program=program("bus_kafka"), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)
        self.process = self._run.process
        self._code = 0 if expect == "OK" else 1
        self.opened = self._answer()
        if self.opened["status"] != expect:
            raise AssertionError(f"opening gave {self.opened}: {self.said()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.end()

    def _answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], BUSY_S)
        line = self.process.stdout.readline() if ready else b""
        assert line, f"no answer: {self.said()[-2000:]}"
        return json.loads(line)

    def __call__(self, *words):
        """Runs a command: its answer."""
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        return self._answer()

    def good(self, *words):
        """Runs a command that must succeed: its answer."""
        answer = self(*words)
        assert answer["status"] == "OK", (words, answer)
        return answer

    def said(self):
        """What it logged."""
        return self._run.said()

    def pid(self):
        """Its process id."""
        return self.process.pid

    def end(self):
        """Ends its input and waits: the exit code must be as expected."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        code = self._run.wait(BUSY_S)
        assert code == self._code, f"left with {code}: {self.said()[-2000:]}"

    def kill(self):
        """Ends it at once."""
        self._run.kill()

    # ---- what several tests do ----

    def deliveries(self, producer, count):
        """Polls until so many have come: all of them."""
        found = []

        def poll():
            found.extend(self.good("poll", producer, 1000, 100)["deliveries"])
            return len(found) >= count

        until(poll, f"{count} deliveries", BUSY_S)
        return found

    def receive(self, consumer, count, most=100):
        """Receives until so many messages have come: all of them."""
        found = []

        def some():
            answer = self("receive", consumer, most, 100)
            assert answer["status"] in ("OK", "IO"), answer
            found.extend(answer["messages"])
            return len(found) >= count

        until(some, f"{count} messages; {len(found)} came", BUSY_S)
        return found


class Load:
    """One bus_kafka_load that runs until it is ended. Use it in a with statement."""

    def __init__(self, place, path, what, number, name):
        self.out = place.path(name)
        self._run = place.start(path, what, number, self.out, program=program("bus_kafka_load"), stdin=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._run.code() is None:
            self._run.kill()

    def said(self):
        """What it logged."""
        return self._run.said()

    def running(self):
        """The process, for until()."""
        return self._run

    def delivered(self):
        """How many lines it has written."""
        try:
            with open(self.out, "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def end(self):
        """Lets it finish: the words of its last line."""
        self._run.process.stdin.close()
        code = self._run.wait(2 * BUSY_S)
        assert code == 0, f"left with {code}: {self.said()[-2000:]}"
        with open(self.out, encoding="ascii") as file:
            last = file.read().splitlines()[-1].split()
        assert last[0] == "end", last
        return last

    def sent(self):
        """{(partition, offset): number} of all deliveries."""
        found = {}
        with open(self.out, encoding="ascii") as file:
            for line in file:
                if not line.startswith("end"):
                    partition, number, offset = map(int, line.split())
                    found[partition, offset] = number
        return found


# ---- load through outages ----

@contextlib.contextmanager
def load(place, one, path, name=""):
    """Sender and follower at work; at the end everything is compared."""
    with Load(place, path, "send", MESSAGE_BYTES, f"sent{name}") as sender:
        until(lambda: sender.delivered() > 1000, "load flows", BUSY_S, sender.running())
        with Load(place, path, "follow", os.getpid(), f"followed{name}") as follower:
            yield sender
            flows(sender, "load flows again")
            end = sender.end()
            followed = follower.end()
        sent = sender.sent()
        print(f"  {len(sent)} delivered, {end[1]} producers broke; {followed[1]} read, {followed[3]} troubles")
        assert end[1] == "0", sender.said()
        assert all(offset == number for (_, offset), number in sent.items())
        assert one.ends() == {
            partition: sum(1 for at, _ in sent if at == partition) for partition in range(PARTITIONS)}


def flows(sender, what):
    """Waits until deliveries go on."""
    before = sender.delivered()
    until(lambda: sender.delivered() > before + 5000, what, BUSY_S, sender.running())


def stands(sender):
    """Waits until nothing is delivered any more."""
    last = [-1, time.monotonic()]

    def still():
        now = sender.delivered()
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] > 1

    until(still, "deliveries stand", BUSY_S, sender.running())


def told(sender, count=1):
    """Waits until the trouble was said, once."""
    until(lambda: sender.said().count("no broker of ") >= count, "the trouble is said", BUSY_S, sender.running())
