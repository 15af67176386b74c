# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of a cluster share: servers of their own, logs, samples of counters, one JSON line a result."""

import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from support import cluster
from support.cases import SKIPPED, Skipped
from support.place import ROOT, Place, find_weir
from support.roles import Roles
from support.traffic import fixed, sliding, zone

SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
BUILD = os.environ.get("WEIR_BUILD") or os.path.join(ROOT, "build", "release")
ZONES = [zone("site", [sliding(10, "1m"), fixed(100, "1h"), fixed(1000, "1d")], key=["ip"], id=1)]
_TICKS = os.sysconf("SC_CLK_TCK")


def report(name, **fields):
    """Prints one measurement."""
    print(json.dumps({"bench": name, **fields}), flush=True)


def main(name, measure):
    """Runs measure(place); where it cannot run here, a line says why."""
    weir = find_weir()
    try:
        if weir is None:
            raise Skipped("weir is not built")
        with Place(weir) as place:
            measure(place)
    except Skipped as why:
        report(name, skipped=str(why))
        sys.exit(SKIPPED)


@contextlib.contextmanager
def stage(place, zones=None, **sections):
    """(servers, roles) of a cluster that nobody else uses."""
    with cluster.own(parent=place.directory) as servers, Roles(place, servers, zones or ZONES, **sections) as roles:
        yield servers, roles


def config(place, roles, **sections):
    """A configuration with the zones for what is no daemon: its path."""
    return place.write("bench.json", json.dumps(roles.sections(zones=roles.zones, **sections)))


def program(name):
    """The path of one of the benchmarks' programs."""
    path = os.path.join(BUILD, "bin", name)
    if not os.access(path, os.X_OK):
        raise Skipped(f"{name} is not built")
    return path


# ---- logs ----

def generate(place, name, lines, *options):
    """A log by `weir generate`: its path."""
    path = place.path(name)
    place.good("generate", "--lines", lines, "--users", 200_000 if not SMOKE else 2000, "--quiet", "--output", path,
               *options, patience_s=600)
    return path


def first_lines(place, path, name, lines):
    """The start of a log."""
    out = place.path(name)
    with open(out, "wb") as target:
        subprocess.run(["head", "-n", str(lines), path], check=True, stdout=target)
    return out


def combined(path, **more):
    """It as a source."""
    return {"type": "file", "path": path, "format": "combined", **more}


def grep_rate(path, lines, runs=3):
    """Lines a second of `LC_ALL=C grep -c POST` through a pipe: the median."""
    rates = []
    for _ in range(runs):
        begun = time.monotonic()
        subprocess.run(["grep", "-c", "POST", path], check=True, stdout=subprocess.PIPE,
                       env=dict(os.environ, LC_ALL="C"))
        rates.append(lines / (time.monotonic() - begun))
    return statistics.median(rates)


# ---- what processes use ----

def cpu_s(pid):
    """The processor time that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def cpu_ns(pid):
    """The same of the threads that it has now, in ns: for what takes few ticks of the clock."""
    tasks = f"/proc/{pid}/task"
    total = 0
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def ended_cpu_s():
    """The processor time of all processes that this one has started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def steal_s():
    """Seconds of processor that this machine's host has kept for itself, of all cores, since the start."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


# ---- a log on its way ----

def fill(roles, path, lines, patience_s):
    """Lets a collector send a log whole, and end."""
    collector = roles.collector([combined(path, follow=True)])
    collector.until(lambda: collector.value("weir_collector_lines_total") >= lines, "all lines are read", patience_s)
    assert collector.stop(patience_s) == 0


def judged(limiter):
    """The counter that shows how far a limiter is."""
    return lambda: limiter.value("weir_limiter_events_total")


def judge_all(servers, roles, count, patience_s):
    """Samples of a limiter with no state that goes through the log."""
    servers.forget()
    limiter = roles.limiter()
    samples = Samples(judged(limiter), {"limiter": limiter.run.pid, "broker": servers.pid_of("broker-1")},
                      every_s=0.02).until(count, patience_s)
    assert limiter.stop() == 0
    return samples


# ---- counters as they go ----

class Samples:
    """A counter on its way to an end: [(seconds, value, processor seconds by name)]."""

    def __init__(self, read, pids=None, every_s=0.1):
        self.points = []
        self._read, self._pids, self._every_s = read, pids or {}, every_s

    def until(self, end, patience_s):
        """Samples until the counter is at its end: itself."""
        give_up = time.monotonic() + patience_s
        while not self.points or self.points[-1][1] < end:
            assert time.monotonic() < give_up, f"only {self.points[-1][1]} of {end} after {patience_s} s"
            used = {name: cpu_s(pid) for name, pid in self._pids.items()}
            self.points.append((time.monotonic(), self._read(), used))
            time.sleep(self._every_s)
        return self

    def steady(self, since=0.1, until=0.95):
        """(seconds, growth of the counter, processor seconds by name) between two shares of the way."""
        end = self.points[-1][1]
        first = next(point for point in self.points if point[1] > since * end)
        last = next(point for point in self.points if point[1] >= until * end)
        if last[0] <= first[0]:  # too short a way to have a middle
            first, last = self.points[0], self.points[-1]
        used = {name: last[2][name] - first[2][name] for name in self._pids}
        return last[0] - first[0], last[1] - first[1], used

    def rate(self, since=0.1, until=0.95):
        """Its growth in a second between two shares of the way."""
        seconds, growth, _ = self.steady(since, until)
        return growth / seconds
