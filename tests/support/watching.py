# SPDX-License-Identifier: Apache-2.0
"""What daemons show over a time, in figures that one slow moment does not change.

    watched = Watching({"limiter": limiter.run.pid}, {"lag": lambda: limiter.value("weir_limiter_lag_messages")})
    watched.during(60)
    watched.memory("limiter")   # {"middle": …, "last": …, "max": …, "a_minute": …} in bytes
"""

import statistics
import time

_PAGE_BYTES = 4096


def resident_bytes(pid):
    """The memory of a process that is resident."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return _PAGE_BYTES * int(file.read().split()[1])


class Watching:
    """Looks at processes' memory and at other figures again and again."""

    def __init__(self, pids, figures):
        self._pids, self._figures = pids, figures
        self.seconds = 0
        self.seen = {name: [] for name in [*pids, *figures]}

    def during(self, seconds, looks=60):
        """Looks so often, evenly, for so long; a look that takes longer makes them fewer."""
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            for name, pid in self._pids.items():
                self.seen[name].append(resident_bytes(pid))
            for name, ask in self._figures.items():
                self.seen[name].append(ask())
            time.sleep(max(0, begun + len(next(iter(self.seen.values()))) * seconds / looks - time.monotonic()))
        self.seconds = time.monotonic() - begun

    def _third(self, name, number):
        seen = self.seen[name]
        assert len(seen) >= 3, f"{name} was looked at {len(seen)} times in {self.seconds:.0f} s"
        return seen[number * len(seen) // 3:(number + 1) * len(seen) // 3]

    def memory(self, name):
        """Behind a warm-up of a third: medians of the second and the last, the most, and growth a minute between."""
        middle, last = (statistics.median(self._third(name, number)) for number in (1, 2))
        return {"middle": middle, "last": last, "max": max(self.seen[name]),
                "a_minute": (last - middle) / (self.seconds / 3 / 60)}

    def figure(self, name):
        """The median, and the most."""
        return {"median": statistics.median(self.seen[name]), "max": max(self.seen[name])}
