#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` killed at any moment and run again until it is done: as if nothing had happened.

Each round takes a policy and logs, runs them once undisturbed and once under
SIGKILL (at times SIGTERM), and requires the same bytes in the files of
decisions, shadow decisions, verdicts and dead letters, the same counts in the
summary and the same buckets in the state.
"""

import copy
import gzip
import json
import os
import signal
import subprocess
import sys

import rounds
from policies import POLICIES

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance", "oracle"))

# pylint: disable=wrong-import-position
import oracle
import random_cases
from support import archive_check, traffic
from support.place import SANITIZED, read

STOPPED = 3
MEMORIES = (None, None, "64KiB", "256KiB", "1MiB", "8MiB")
PATIENCE_S = 1200 if SANITIZED else 300
TRIES = 60


class Job:
    """A configuration in a round's place."""

    def __init__(self, one):
        self.one, self.place, self.rng = one, one.place, one.rng
        self.judged = False
        self.oracle_state = None  # bucket lines, where the oracle has read the logs
        self.grows = None  # a log's name and the part of it that is appended once the run is done
        kind = self.rng.choice(["small", "random", "crowd", "crowd"])
        self.config = self._crowd() if kind == "crowd" else self._random(kind == "small")
        self.config["bus"] = {"partitions": self.rng.choice([1, 4, 16, 16, 64])}
        self.config["zones"] = archive_check.some_history(self.rng, self.config["zones"])
        self.config["archiver"] = {"enabled": True, "memory": self.rng.choice(["1MiB", "256MiB"])}
        partitions = self.config["bus"]["partitions"]
        if kind == "crowd":
            self.place.write("keys", b"\n".join(traffic.joined_keys(*self.written)))
        else:
            run = oracle.Run(self.config)
            keys = {key for _, _, events in run.records for key, _ in events}
            self.place.write("keys", b"".join(key + b"\n" for key in keys))
            self.oracle_state = b"".join(run.state(partitions))
        one.tell(f"{kind}: {len(self.config['zones'])} zones, {len(self.config['sources'])} sources, "
                 f"{partitions} partitions{', the log grows' if self.grows else ''}")

    def _random(self, small):
        number = self.rng.randrange(10 ** 6)
        lines = None if small else self.rng.randint(2000, 4000 if SANITIZED else 15000)
        case = random_cases.case(self.one.seed, number, lines)
        if self.rng.random() < 0.4:
            case = random_cases.with_decisions(case, self.one.seed, number)
        self.judged = True
        with open(case.write(self.place.directory), encoding="utf-8") as file:
            config = json.load(file)
        plain = [name for name in case.files if not name.endswith(".gz")]
        if len(case.files) == 1 and plain and len(case.files[plain[0]]) > 2:
            self._grow(plain[0], case.files[plain[0]])
        return config

    def _crowd(self):
        rng, sources = self.rng, []
        self.written = []
        scale = 10 if SANITIZED else 1
        for number in range(rng.choice([1, 1, 2, 3])):
            count, users = rng.randint(20000, 150000) // scale, rng.choice([50, 3000, 100000]) // scale
            lines = traffic.crowd(rng, count, users, step_ms=rng.choice([1, 20, 500]), disorder=rng.choice([0, 0.1]))
            for _ in range(rng.choice([0, 0, 50])):
                lines.insert(rng.randrange(len(lines)), rng.choice([b"garbage\n", b"{}\n", b"\n"]))
            self.written.append(b"".join(lines))
            packed = rng.random() < 0.25
            name = f"log-{number}{'.gz' if packed else ''}"
            data = self.written[-1]
            self.place.write(name, gzip.compress(data, 1) if packed else data)
            sources.append(traffic.source(self.place.path(name)))
        if len(sources) == 1 and not packed:
            self._grow(name, lines)
        elif rng.random() < 0.3:
            sources = [traffic.source(self.place.path("log-*"))]
        zones = copy.deepcopy(rng.choice(POLICIES))
        if rng.random() < 0.4:  # who is blocked again and again
            zones.append(traffic.zone("often", [traffic.sliding(2, "1h")], id=99, sources=["decisions"], block_for=["1m", "1h"],
                                      match={"zone": [one["name"] for one in zones], "action": ["block"]}))
            sources.append({"type": "decisions"})
        return {"zones": zones, "sources": sources}

    def _grow(self, name, lines):
        """Sometimes: the log's last lines come when the run is done."""
        if self.rng.random() < 0.3:
            cut = self.rng.randrange(1, len(lines))
            if lines[cut - 1].endswith(b"\n"):
                self.grows = name, b"".join(lines[:cut]), b"".join(lines[cut:])

    def arguments(self, name, rng):
        """A command line; what may differ between runs does."""
        config = dict(self.config, deadletter={"rate": 0}, limiter={
            "threads": rng.choice([1, 2]), "checkpoint_interval": f"{rng.choice([20, 50, 100, 300, 1000])}ms"})
        path = self.place.write(f"{name}.json", json.dumps(config))
        memory = rng.choice(MEMORIES)
        outputs = ["decisions", "shadow", "dead-letter"] + (["judged"] if self.judged else [])
        return (["run", "--once", "--config", path, "--state", self.place.path(f"{name}-state"), "--summary", "json"]
                + (["--memory", memory] if memory else [])
                + [word for kind in outputs for word in (f"--{kind}", self.place.path(f"{name}-{kind}"))])

    def outcome(self, name, weir):
        """All that a run leaves, by name."""
        summary = {member: value for member, value in weir.summary().items()
                   if member not in ("seconds", "lines_per_second")}
        state = self.place.good("state", "--state", self.place.path(f"{name}-state"), "--keys", self.place.path("keys"))
        files = {kind: read(self.place.path(f"{name}-{kind}"))
                 for kind in ("decisions", "shadow", "dead-letter", "judged")}
        archive = archive_check.dump(self.archive(name))
        return dict(files, state=state.out(), summary=json.dumps(summary, indent=1).encode(), archive=archive)

    def archive(self, name):
        """read() of what a run has archived."""
        return archive_check.sqlite_reader(self.place.path(f"{name}-state", "weir.db"))


def first_difference(got, want):
    """Words for where two texts part."""
    got, want = got.split(b"\n"), want.split(b"\n")
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))

    def show(lines):
        return lines[at].decode(errors="backslashreplace")[:600] if at < len(lines) else "(end)"

    return f"line {at + 1} of {len(got)} and {len(want)}: {show(got)} is not {show(want)}"


def is_done(weir):
    """Whether a run has done all that its logs give."""
    return random_cases.ended_well(weir.code(), weir.said())


def done(job, name, moments):
    """A run that nothing disturbs, to its end."""
    weir = job.place.run(*job.arguments(name, moments), patience_s=PATIENCE_S)
    assert is_done(weir), f"left with {weir.code()}: {weir.said()[-2000:]}"
    return weir


def require_same(got, want, when):
    """Requires two outcomes to be equal."""
    for kind, bytes_wanted in want.items():
        assert got[kind] == bytes_wanted, f"{when}: {kind} differ at {first_difference(got[kind], bytes_wanted)}"


def disturb(job, name, length_s, whole):
    """Starts a run and ends it at some moment: the run, which may have been done before."""
    one, moments = job.one, job.one.moments
    weir = job.place.start(*job.arguments(name, moments))
    moment_s = moments.uniform(0, 0.03) if moments.random() < 0.25 else moments.uniform(0, 1.1 * length_s)
    number = signal.SIGTERM if moments.random() < 0.2 else signal.SIGKILL
    try:
        weir.process.wait(moment_s)
        one.tell(f"was done within {moment_s:.4f} s: {weir.code()}")
    except subprocess.TimeoutExpired:
        weir.signal(number)
        weir.wait(PATIENCE_S)
        one.tell(f"{number.name} after {moment_s:.4f} of {length_s:.4f} s: {weir.code()}")
    allowed = {STOPPED, -signal.SIGTERM} if number == signal.SIGTERM else {-signal.SIGKILL}
    assert weir.code() in allowed or is_done(weir), f"left with {weir.code()}: {weir.said()[-2000:]}"
    for kind in ("decisions", "shadow", "dead-letter", "judged"):
        so_far = read(job.place.path(f"{name}-{kind}"))
        assert whole[kind].startswith(so_far), f"{kind} so far: {first_difference(so_far, whole[kind])}"
    return weir


def finish_under_kills(job, name, length_s, whole):
    """Runs and kills, and then runs to the end: the last run."""
    weir = None
    for _ in range(job.one.moments.randint(1, 8)):
        weir = disturb(job, name, length_s, whole)
        if is_done(weir) and job.one.moments.random() < 0.5:
            return weir
    return done(job, name, job.one.moments)


def play(one):
    """One round."""
    job = Job(one)
    calm = done(job, "calm", one.rng)
    length_s = calm.summary()["seconds"] + 0.02
    whole = job.outcome("calm", calm)
    assert b"key_hash" not in whole["state"], "a bucket has a key that is in no log"
    if job.oracle_state is not None:
        assert whole["state"] == job.oracle_state, (
            f"undisturbed, the oracle's buckets: {first_difference(whole['state'], job.oracle_state)}")
    if job.judged:
        archive_check.require_judged_lines(job.archive("calm"), job.config["zones"], whole["judged"])
    assert whole["archive"].count(b"\n") > 2 or not job.judged or not whole["judged"], "nothing is archived"
    if job.grows:
        log, beginning, rest = job.grows
        job.place.write(log, beginning)
        finish_under_kills(job, "cut", length_s, whole)
        one.tell("the log grows")
        job.place.append(log, rest)
    last = finish_under_kills(job, "cut", length_s, whole)
    require_same(job.outcome("cut", last), whole, "after kills")
    again = done(job, "cut", one.moments)
    require_same(job.outcome("cut", again), whole, "run once more when done")


if __name__ == "__main__":
    rounds.main(play, __doc__)
