# SPDX-License-Identifier: Apache-2.0
"""Logs whose lines tell their numbers, and what has become of each on the events topic."""

import threading

from support import frames, traffic
from support.place import PATIENCE_S, joined, until

LONG_S = 6 * PATIENCE_S
_INCARNATION = 1 << 40  # a position is the file's incarnation, then the offset behind the line


def zones(*names, key=("user",)):
    """Zones by one key, so that each record is one event."""
    return [traffic.zone(name, [traffic.fixed(1000, "1h")], key=key, id=1 + number)
            for number, name in enumerate(names)]


class Log:
    """A log file whose lines tell their numbers, and where each of them ends."""

    def __init__(self, place, name="log"):
        self.path, self.ends, self.bytes = place.write(name, ""), {}, 0
        self._lock = threading.Lock()

    def _append(self, data):
        with open(self.path, "ab", buffering=0) as file:
            file.write(data)
        self.bytes += len(data)

    def feed(self, count, pad="", **more):
        """Appends so many lines in one write; pad makes their keys longer."""
        with self._lock:
            first, data, at = len(self.ends), [], self.bytes
            for number in range(first, first + count):
                key = f"n{number}{pad}"
                data.append(traffic.line(traffic.START_MS + number, key, **more).encode())
                at += len(data[-1])
                self.ends[key.encode()] = _INCARNATION + at
            self._append(b"".join(data))

    def spoil(self, data):
        """Appends what is no line of the format."""
        with self._lock:
            self._append(data)

    def source(self):
        """As configured."""
        return traffic.source(self.path)


class Writer:
    """Appends to logs until told to stop, in small pieces, as services do."""

    def __init__(self, *logs, lines=200, pause_s=0.005):
        self._logs, self._lines, self._pause_s = logs, lines, pause_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        joined(self._thread, "the writing")

    def _write(self):
        while not self._over.wait(self._pause_s):
            for log in self._logs:
                log.feed(self._lines)


class Arrived:
    """What is on the events topic, taken as a limiter takes it."""

    def __init__(self, one):
        self.kafka, self.topic = one.kafka, one.topic("events")
        self.positions, self.repeated = {}, 0
        self.frames = []  # (partition, frame)
        self._since, self._newest = {}, {}

    def read(self):
        """Reads on to the topic's end: itself."""
        for message in self.kafka.stream(self.topic, self._since):
            self._since[message.partition] = message.offset + 1
            frame = frames.decode(message.value)
            if frame.kind != "events":
                continue
            self.frames.append((message.partition, frame))
            place = message.partition, frame.source
            before = self._newest.get(place, 0)
            for event in frame.events:
                if event["position"] <= before:
                    self.repeated += 1
                    continue
                self._newest[place] = event["position"]
                assert event["key"] not in self.positions, f"{event['key']} came twice: {frame.source}"
                self.positions[event["key"]] = event["position"]
        return self

    def await_all(self, log, role, patience_s=LONG_S):
        """Waits until every line of a log has arrived, each under its position."""
        until(lambda: len(self.read().positions) >= len(log.ends), "every line arrives", patience_s, role.run)
        assert self.positions == log.ends
