# SPDX-License-Identifier: Apache-2.0
"""Services that log all the time: lines of the present moment at an even rate, to logs that rotate, a socket, a topic.

    logs = [live.RotatingLog(path, every_s=5)]
    traffic = live.Traffic([(0.9, logs[0]), (0.1, live.SyslogSender(port))], rate=1000)
    traffic.begin()   # with one line each: a log that is rotated before it was ever seen is none of weir's affair
    …                 # until those are read
    with traffic:
        …
    traffic.total   # so many lines were written, each with the time at which it was
"""

import itertools
import os
import random
import signal
import socket
import threading
import time

from support.kafka import confluent_kafka
from support.place import PATIENCE_S, joined

_TICK_S = 0.02
_POOL = 20000  # lines that are used again and again, with other times
_NO_TIME = b"0000000000000"
_SYSLOG_HEAD = b"<190>1 2024-01-01T00:00:00Z www app - - - "


def _rename_aside(path, most=None):
    """path becomes path.1, what was that path.2, and so on; at most so many stay."""
    held = next(number for number in itertools.count() if not os.path.exists(f"{path}.{number + 1}"))
    if held == most:
        os.remove(f"{path}.{held}")
        held -= 1
    for number in range(held, 0, -1):
        os.rename(f"{path}.{number}", f"{path}.{number + 1}")
    os.rename(path, f"{path}.1")


class RotatingLog:
    """A log that is renamed now and then, and begun anew. What was rotated stays: its reader may be late.

    It belongs into a directory of logs: where other files come and go all the time a reader cannot wait until renaming
    is over, and may overlook a file while its name changes."""

    def __init__(self, path, every_s):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path, self.rotations = path, 0
        self._every_s, self._since_s = every_s, time.monotonic()
        self._file = open(path, "ab", buffering=0)  # pylint: disable=consider-using-with

    def write(self, lines):
        """Appends lines."""
        if time.monotonic() - self._since_s >= self._every_s:
            self._rotate()
        self._file.write(b"".join(lines))

    def _rotate(self):
        self._since_s = time.monotonic()
        _rename_aside(self.path)
        self.rotations += 1
        self._file.close()
        self._file = open(self.path, "ab", buffering=0)  # pylint: disable=consider-using-with

    def close(self):
        """No more is written."""
        self._file.close()


class GeneratedLog(threading.Thread):
    """A log of `weir generate`, for more lines than Python would write: at a rate, for so many seconds. It is
    renamed now and then, and a few of what was rotated stay: all of it would fill the disk."""
    _MOST = 4

    def __init__(self, place, path, rate, seconds, every_s, options=()):
        super().__init__(daemon=True)
        self.path, self.rotations, self.total = path, 0, rate * seconds
        self._every_s, self._bound_s = every_s, 2 * seconds + PATIENCE_S
        self._weir = place.start("generate", "--quiet", "--follow-rate", rate, "--lines", self.total,
                                 "--output", path, *options)
        self.start()

    def run(self):
        """Rotates until all is written."""
        while self._weir.code() is None:
            time.sleep(self._every_s)
            if not os.path.exists(self.path):
                continue  # a write to a full disk's queue takes its time, and a signal is heard behind it
            _rename_aside(self.path, self._MOST)
            self.rotations += 1
            self._weir.signal(signal.SIGHUP)

    def finish(self):
        """Waits until all is written."""
        assert self._weir.wait(self._bound_s) == 0, self._weir.said()
        joined(self, "the writing")


class SyslogSender:
    """A connection to a source `syslog`."""

    def __init__(self, port):
        self._connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)

    def write(self, lines):
        """Sends a message for each line."""
        self._connection.sendall(b"".join(_SYSLOG_HEAD + line for line in lines))

    def close(self):
        """No more is sent."""
        self._connection.close()


class TopicSender:
    """A service that logs to a topic of its own."""

    def __init__(self, brokers, properties, topic):
        self._topic = topic
        self._producer = confluent_kafka.Producer({"bootstrap.servers": brokers, "log_level": 0, "linger.ms": 20,
                                                   "enable.idempotence": True, **properties})

    def write(self, lines):
        """Sends a message for each line."""
        for line in lines:
            self._producer.produce(self._topic, line)
        self._producer.poll(0)

    def close(self):
        """Waits until all is written."""
        left = self._producer.flush(4 * PATIENCE_S)
        assert left == 0, f"{left} messages are not delivered"


class Traffic(threading.Thread):
    """Writes until its with statement ends. outlets: [(share of the lines, RotatingLog or the like)]."""

    def __init__(self, outlets, rate, users=2000, seed=1):
        super().__init__(daemon=True)
        self.written = [0] * len(outlets)
        self._due = 0  # lines that the rate has asked for so far
        self._outlets, self._rate = outlets, rate
        self._over, self._failed = threading.Event(), None
        rng = random.Random(seed)
        self._pool = [b'{"time":%s,"user":"u%d","path":"/%d","status":200}\n'
                      % (_NO_TIME, int(users * rng.random() ** 3), rng.randrange(7)) for _ in range(_POOL)]

    def begin(self):
        """Writes one line to each outlet."""
        for number in range(len(self._outlets)):
            self._write_to(number, 1)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        joined(self, "the thread")

    def finish(self):
        """Writes no more, and waits until what was written has left."""
        self.__exit__()
        if self._failed:
            raise self._failed

    def run(self):
        """Writes."""
        try:
            began_s = time.monotonic()
            while not self._over.wait(_TICK_S):
                # After a stall at most a second's worth comes at once: what was not written then is not made up for.
                due = int(self._rate * (time.monotonic() - began_s)) - self._due
                if due > self._rate:
                    began_s += due / self._rate - 1
                    due = int(self._rate)
                self._write(due)
            for _, outlet in self._outlets:
                outlet.close()
        except (OSError, AssertionError, confluent_kafka.KafkaException) as failed:
            self._failed = failed

    def _write(self, count):
        self._due += count
        for number, (share, _) in enumerate(self._outlets):
            self._write_to(number, int(share * self._due) - self.written[number])

    def _write_to(self, number, left):
        while left > 0:
            at = self.written[number] % _POOL
            lines = b"".join(self._pool[at:at + left])
            lines = lines.replace(_NO_TIME, b"%013d" % int(1000 * time.time())).splitlines(keepends=True)
            self._outlets[number][1].write(lines)
            self.written[number] += len(lines)
            left -= len(lines)

    @property
    def total(self):
        """How many lines were written."""
        return sum(self.written)
