# SPDX-License-Identifier: Apache-2.0
"""A service that logs: it appends lines to a file, which is rotated by renaming now and then."""

import os
import threading


class Writer(threading.Thread):
    """Appends lines in small writes, some of which end inside a line.

    path: where it logs; path.1 is the last rotated file, path.2 the one before.
    length_s: how long that takes, about."""

    def __init__(self, path, lines, rng, *, length_s, rotations):
        super().__init__(daemon=True)
        self.path, self.lines, self.rng = path, lines, rng
        self.length_s, self.rotations = length_s, rotations
        self.rotated = 0
        self.failed = None
        self._pause = threading.Event()

    def run(self):
        """Writes everything."""
        try:
            self._write_all()
        except OSError as failed:
            self.failed = failed

    def _write_all(self):
        rng, data, at = self.rng, b"".join(self.lines), 0
        turns = sorted(rng.sample(range(len(data)), min(self.rotations, len(data))))
        file = self._open()
        try:
            while at < len(data):
                began = at
                end = min(len(data), at + rng.choice([1, 100, 5000, 60000]))
                if turns and turns[0] < end:
                    # Rotation: at a line's end, with some lines still written to the renamed file.
                    end = data.index(b"\n", max(at, turns.pop(0))) + 1
                    late = min(len(data), data.find(b"\n", min(len(data) - 1, end + rng.choice([0, 300]))) + 1) or end
                    self._append(file, data[at:end])
                    self._rotate()
                    self._append(file, data[end:late])
                    os.close(file)
                    file = self._open()
                    at = max(end, late)
                else:
                    self._append(file, data[at:end])
                    at = end
                self._pause.wait(2 * rng.random() * self.length_s * (at - began) / len(data))
        finally:
            os.close(file)

    def _open(self):
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    @staticmethod
    def _append(file, data):
        while data:
            data = data[os.write(file, data):]

    def _rotate(self):
        for number in range(self.rotated, 0, -1):
            os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        os.rename(self.path, f"{self.path}.1")
        self.rotated += 1


class Endless(threading.Thread):
    """A service that logs until it is told to stop: lap after lap of lines, rotated now and then.

    path: where it logs; what is there already is its first line. lap: gives some more lines each time.
    length_s: how long a lap takes, about."""

    def __init__(self, path, first, lap, rng, length_s):
        super().__init__(daemon=True)
        self.path, self.rng, self.length_s = path, rng, length_s
        self.lines = [first]  # all that there will be once it has ended
        self.failed = None
        self._lap = lap
        self._over = threading.Event()

    def stop(self):
        """Ends with the lap."""
        self._over.set()

    def run(self):
        """Writes."""
        rotated = 0
        while not self._over.is_set() and self.failed is None:
            lines = self._lap()
            self.lines += lines
            writer = Writer(self.path, lines, self.rng, length_s=self.length_s, rotations=self.rng.random() < 0.1)
            writer.rotated = rotated
            writer.run()
            rotated, self.failed = writer.rotated, writer.failed
