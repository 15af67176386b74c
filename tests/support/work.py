# SPDX-License-Identifier: Apache-2.0
"""What daemons are given to do: logs made by `weir generate`, and logs that grow while they are read."""

import threading

from support.place import PATIENCE_S, joined
from support.traffic import START_MS


def generated(place, name, lines, *, users=1000, abusers=20, seed=1, form="combined", rate=1000, options=()):
    """The path of a log by `weir generate`; options: further ones of its."""
    path = place.path(name)
    place.good("generate", "--format", form, "--lines", lines, "--users", users, "--abusers", abusers, "--seed", seed,
               "--rate", rate, "--start", str(START_MS // 1000), "--output", path, "--quiet", *options)
    return path


def source(path, form="combined", **more):
    """A source that follows such a log."""
    return {"type": "file", "path": path, "format": form, "follow": True, **more}


class Feed(threading.Thread):
    """Appends lines (bytes) to a log in pieces, evenly over a time; use it in a with statement."""

    def __init__(self, path, lines, length_s, pieces=100):
        super().__init__(daemon=True)
        self.path, self.lines, self.length_s = path, lines, length_s
        self.pieces = max(1, min(pieces, len(lines)))
        self.failed = None
        self._stop = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        joined(self, "the writing")

    def finish(self):
        """Waits until all is written."""
        joined(self, "the writing", self.length_s + PATIENCE_S)
        if self.failed:
            raise self.failed

    def run(self):
        """Writes."""
        try:
            with open(self.path, "ab", buffering=0) as file:
                for piece in range(self.pieces):
                    first, last = (len(self.lines) * at // self.pieces for at in (piece, piece + 1))
                    file.write(b"".join(self.lines[first:last]))
                    if self._stop.wait(self.length_s / self.pieces):
                        return
        except OSError as failed:
            self.failed = failed
