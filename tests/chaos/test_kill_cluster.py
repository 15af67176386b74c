#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster whose daemons and servers are killed at any moment: every event counts once.

Each round has a prefix and a database of its own. Logs grow and rotate while
collectors, limiters and archivers are killed, stood still past their sessions,
stopped, started and joined by others; the broker and the database are killed;
policies change, and operators command. At the end the events topic holds every
line once, and decisions, judged frames, buckets and the archive are what the
oracle makes of that topic in its own order.
Rounds that are played at the same time have servers of their own.
"""

import copy
import os
import random
import sys
import time

import rounds
import servers
import settled
from policies import POLICIES
from settled import LONG_S
from writer import Writer

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import archive_check, cluster, traffic, venv
from support.place import SANITIZED, until
from support.roles import Roles

venv.enter()

SCALE = 4 if SANITIZED else 1
SESSION_MS = 2000


class Load:
    """The logs of one round, and who writes them."""

    def __init__(self, one, collectors):
        rng, self.place = one.rng, one.place
        self.lines = {}
        self.of = {}  # collector: its logs
        os.mkdir(self.place.path("logs"))
        shared = rng.random() < 0.5
        for number in range(collectors):
            for log in range(rng.choice([1, 2])):
                name = f"log-{number}-{log}"
                self.lines[name] = traffic.crowd(rng, rng.randint(2000, 12000) // SCALE, rng.choice([20, 500, 5000]),
                                                 prefix="u" if shared else f"u{number}{log}-", disorder=0.1)
                self.of.setdefault(number, []).append(name)
                # A log that is rotated before weir has ever seen it is none of its affair: each begins with a line.
                self.place.write(os.path.join("logs", name), self.lines[name][0])
        self.writers = [Writer(self.place.path("logs", name), lines[1:], rng, rotations=rng.choice([0, 0, 2]),
                               length_s=rng.choice([1, 3])) for name, lines in sorted(self.lines.items())]

    def sources(self, number):
        """A collector's sources."""
        return [traffic.source(self.place.path("logs", name)) for name in self.of[number]]


class Crew:
    """The daemons of one round, and what befalls them."""

    def __init__(self, one, roles, load, limiters):
        self.one, self.roles, self.load = one, roles, load
        self._killable = one.rng.choice([[], ["mariadb"], ["kafka"], ["kafka", "mariadb"]])  # servers, each once
        self.collectors = [roles.collector(load.sources(number)) for number in sorted(load.of)]
        self.limiters = [roles.limiter() for _ in range(limiters)]
        self.archivers = [roles.archiver() for _ in range(one.rng.choice([1, 2]))]
        self.halted = []  # (role, when it goes on)
        self._good_ends = (0, -9, -15)

    def disturb(self):
        """One thing happens, to one of them."""
        moments = self.one.moments
        time.sleep(moments.choice([moments.uniform(0, 0.05), moments.uniform(0, 0.4), moments.uniform(0, 1)]))
        self.go_on(False)
        free = [role for role in self.everyone if role not in [held for held, _ in self.halted]]
        if not free:
            return
        role, deed = moments.choice(free), moments.random()
        if role.run.code() is not None:
            self._require_good_end(role, role.run.code())
            self._tell(role, "started")
            role.start()
        elif deed < 0.5:
            self._tell(role, "killed")
            role.kill()
            if moments.random() < 0.8:
                role.start()
        elif deed < 0.7:
            self._tell(role, "halted")
            role.pause()
            self.halted.append((role, time.monotonic() + moments.choice([0.3, 1, 2.5 * SESSION_MS / 1000])))
        elif deed < 0.85:
            self._tell(role, "asked to stop")
            self._require_good_end(role, role.stop())
        elif self._killable:
            self._kill_server(self._killable.pop())
        elif len(self.limiters) < 4:
            self.limiters.append(self.roles.limiter())
            self._tell(self.limiters[-1], "joins")

    def _kill_server(self, name):
        """A server ends at once, and comes back while others may have met something, too."""
        self.one.tell(f"{name} killed")
        served = self.roles.cluster
        self._good_ends = (0, 1, -9, -15)  # 1: who finds no server as it starts, or is to store what it has and cannot
        served.part("kill", name)
        for _ in range(self.one.moments.choice([0, 1, 3])):
            self.disturb()
        served.part("start", name)
        self.one.tell(f"{name} is there again")

    @property
    def everyone(self):
        """All of them, in the order in which events flow."""
        return self.collectors + self.limiters + self.archivers

    def _require_good_end(self, role, code):
        assert code in self._good_ends, f"{role.name} exited with status {code}: {role.said()[-2000:]}"

    def _tell(self, role, words):
        self.one.tell(f"{role.name} {words}")

    def go_on(self, every):
        """Those that have stood still long enough go on."""
        for role, when in list(self.halted):
            if every or time.monotonic() >= when:
                self._tell(role, "goes on")
                role.resume()
                self.halted.remove((role, when))

    def all_run(self):
        """Everyone is there again: started as a supervisor does it, where a server was still away at the first try."""
        self.go_on(True)
        for role in self.everyone:
            until(lambda role=role: role.run.code() is not None or role.is_ready(), f"{role.name} is ready, or gone", LONG_S)
            if role.run.code() is not None:
                self._require_good_end(role, role.run.code())
                role.start()

    def stop(self):
        """Everyone leaves, in the order in which events flow."""
        for role in self.everyone:
            code = role.stop()
            assert code == 0, f"{role.name} stopped with {code}: {role.said()[-2000:]}"


def overrides(one, crew, zones):
    """Operators command, and the policy changes."""
    rng = one.rng
    zone = rng.choice([zone for zone in zones if zone["key"]] or zones)
    key = [rng.choice(["u1", "u7", "u00-3", "/3"]) for _ in zone["key"]]
    what = rng.choice([["block", "--for", "1h"], ["allow", "--for", "1h"], ["lift"], ["override", "--rate", "0.5"]])
    crew.roles.command(*what, *key, "--zone", zone["name"])
    one.tell(f"{what} {key} in {zone['name']}")


def change_policy(one, crew, zones):
    """The same zones with other rates."""
    changed = copy.deepcopy(zones)
    for zone in changed:
        for limit in zone["limits"]:
            if "rate" in limit:
                limit["rate"] += one.rng.randint(1, 5)
    crew.roles.apply(changed)
    one.tell("policy changed")
    return changed


def play(one):
    """One round."""
    rng = one.rng
    zones = archive_check.some_history(rng, copy.deepcopy(rng.choice(POLICIES)))
    partitions = rng.choice([1, 4, 8])
    load = Load(one, rng.choice([1, 2, 3]))
    limiter = {"checkpoint_interval": f"{rng.choice([20, 100, 500, 2000])}ms", "threads": rng.choice([1, 2])}
    if rng.random() < 0.3:
        limiter["memory"] = "16MiB"
    one.tell(f"{len(load.of)} collectors, {partitions} partitions, {len(zones)} zones, {limiter}")
    with servers.some(start) as served:
        properties = {**served.kafka_properties, "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300}
        with Roles(one.place, served, zones, bus={"partitions": partitions, "kafka": properties}, limiter=limiter,
                   archiver={"enabled": True, "interval": f"{rng.choice([100, 700])}ms"},
                   deadletter={"rate": 0}) as roles:
            roles.apply()
            crew = Crew(one, roles, load, rng.choice([1, 2, 3]))
            for number, role in enumerate(crew.collectors):
                logs = len(load.of[number])
                role.until(lambda role=role, logs=logs: role.value("weir_collector_lines_total") >= logs, "has seen its logs")
            for writer in load.writers:
                writer.start()
            deeds = 0
            while any(writer.is_alive() for writer in load.writers) or deeds < 3:
                crew.disturb()
                deeds += 1
                if rng.random() < 0.1:
                    zones = change_policy(one, crew, zones)
                if rng.random() < 0.15:
                    overrides(one, crew, zones)
            assert not any(writer.failed for writer in load.writers), [writer.failed for writer in load.writers]
            crew.all_run()
            settled.until_settled(one, served, zones, load.lines)
            settled.until_archived(served)
            crew.stop()
            check = settled.prove(one, served)
            settled.prove_archive(one, served, check, zones)


def start(served):
    """A round that failed may have left one down."""
    served.part("start", "all")


if __name__ == "__main__":
    random.seed()
    rounds.main(play, __doc__, around=servers.of_our_own)
