#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A weir that follows, killed at any moment while logs grow and rotate: every line counts once.

Each round writes logs while weir is killed and started again, and requires at
the end: every event counted once; no decision twice in the file; the file and
the buckets as the oracle has them when it replays the local log; and, where no
two logs share a key, the decisions and buckets of `weir run --once` on the
same lines, but for the decisions' ids.
"""

import copy
import json
import os
import re
import shutil
import signal
import sys
import time

import rounds
from policies import POLICIES
from writer import Writer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance", "oracle"))

# pylint: disable=wrong-import-position
import follow as oracle_follow
import json_out
import oracle
import random_cases
from support import archive_check, metrics, traffic
from support.following import taken
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of, read, until

SCALE = 4 if SANITIZED else 1


class Logs:
    """What is to be written, and how it is to be counted."""

    def __init__(self, one):
        self.one, self.rng, self.place = one, one.rng, one.place
        os.mkdir(self.place.path("logs"))
        self.lines = {}  # of each log, by its name
        self.shares_keys, self.rotate = False, True
        if self.rng.random() < 0.3:
            self._random()
        else:
            self._crowd()
        one.tell(f"{len(self.lines)} logs of {sum(map(len, self.lines.values()))} lines, "
                 f"{'shared' if self.shares_keys else 'separate'} keys, {len(self.zones)} zones")

    def _random(self):
        while True:
            case = random_cases.case(self.one.seed, self.rng.randrange(10 ** 6), self.rng.randint(500, 4000) // SCALE)
            if self._can_follow(case):
                break
        self.zones, self.lines = case.config["zones"], case.files
        for lines in self.lines.values():
            # What follows waits for a line's end.
            lines[-1:] = [line.rstrip(b"\r\n") + b"\n" for line in lines[-1:]]
        form = case.config["sources"][0]["format"]
        self.formats = {name: form for name in self.lines}
        self.rotate = form["type"] != "delimited"  # the next file would have to begin with a header
        self.shares_keys = len(self.lines) > 1

    def _can_follow(self, case):
        """Whether weir would take a case's times as they stand, and its logs can grow."""
        probe = self.place.path("probe")
        os.makedirs(probe, exist_ok=True)
        with open(case.write(probe), encoding="utf-8") as file:
            records, _ = oracle.read_sources(json.load(file))
        shutil.rmtree(probe)
        return (records and max(record.time for record in records) < 1000 * time.time()
                and not any(name.endswith(".gz") for name in case.files) and all(case.files.values()))

    def _crowd(self):
        rng = self.rng
        self.zones = copy.deepcopy(rng.choice(POLICIES))
        count = rng.choice([1, 2, 3])
        self.shares_keys = count > 1 and (rng.random() < 0.5 or any("user" not in zone["key"] for zone in self.zones))
        for number in range(count):
            lines = traffic.crowd(rng, rng.randint(2000, 15000) // SCALE, rng.choice([20, 500, 20000]),
                                  prefix="u" if self.shares_keys else f"u{number}-", disorder=0.1)
            for _ in range(rng.choice([0, 20])):
                lines.insert(rng.randrange(len(lines)), rng.choice([b"garbage\n", b"{}\n", b"\n"]))
            self.lines[f"log-{number}"] = lines
        self.formats = {name: traffic.FORMAT for name in self.lines}

    def sources(self, directory):
        """The sources of a configuration, in a fixed order."""
        return [{"type": "file", "path": self.place.path(directory, name), "format": form, "follow": True}
                for name, form in sorted(self.formats.items())]

    def run_once(self):
        """What an undisturbed --once makes of all lines: the run that is done."""
        for name, lines in self.lines.items():
            self.place.write(os.path.join("whole", name), b"".join(lines))
        config = self.place.config(self.zones, self.sources("whole"), "whole.json", deadletter={"rate": 0})
        done = self.place.run("run", "--once", "--config", config, "--state", self.place.path("whole-state"),
                              "--decisions", self.place.path("whole-decisions"), "--shadow",
                              self.place.path("whole-shadow"), "--summary", "json")
        assert random_cases.ended_well(done.code(), done.said()), done.said()
        return done


class Service:
    """The weir that is killed."""

    def __init__(self, one, logs):
        self.one, self.place, self.port = one, one.place, free_port()
        self.rotates = one.rng.random() < 0.25
        self.renamed = []  # decisions files that were moved away
        self.memory = one.rng.choice([None, None, "64KiB", "1MiB"])
        self.zones = archive_check.some_history(one.rng, logs.zones)
        decisions = {"rotate_size": "16KiB", "keep": 1000} if self.rotates else {}
        self.config = self.place.config(
            self.zones, logs.sources("logs"), archiver={"enabled": True, "interval": f"{one.rng.choice([100, 700])}ms"},
            bus={"partitions": one.rng.choice([1, 4, 16])}, decisions=decisions,
            listen={"http": f"127.0.0.1:{self.port}"}, deadletter={"rate": 0},
            limiter={"threads": one.rng.choice([1, 2]),
                     "checkpoint_interval": f"{one.rng.choice([20, 100, 500, 10000])}ms"})
        self.weir = None

    def start(self):
        """Starts it where it was."""
        memory = ("--memory", self.memory) if self.memory else ()
        self.weir = self.place.start(
            "run", "--config", self.config, "--state", self.place.path("state"), "--decisions",
            self.place.path("decisions"), "--shadow", self.place.path("shadow"), "--dead-letter",
            self.place.path("dead"), "--summary", "json", *memory)

    def disturb(self):
        """Lets it run for a moment, and ends it."""
        moments = self.one.moments
        if moments.random() < 0.15 and not self.rotates:
            self._move_decisions()
        moment_s = moments.choice([moments.uniform(0, 0.05), moments.uniform(0, 0.5), moments.uniform(0, 1.5)])
        time.sleep(moment_s)  # a kill comes when it comes: there is nothing to wait for
        assert self.weir.code() is None, f"left by itself with {self.weir.code()}: {self.weir.said()[-2000:]}"
        number = signal.SIGTERM if moments.random() < 0.15 else signal.SIGKILL
        self.weir.signal(number)
        code = self.weir.wait()
        self.one.tell(f"{number.name} after {moment_s:.4f} s: {code}")
        # A SIGTERM that comes before weir has begun to listen ends it as it ends anyone.
        allowed = (0, -signal.SIGTERM) if number == signal.SIGTERM else (-signal.SIGKILL,)
        assert code in allowed, f"left with {code}: {self.weir.said()[-2000:]}"

    def _move_decisions(self):
        """What logrotate does: the file is renamed, and weir is told."""
        if not os.path.exists(self.place.path("decisions")):
            return
        moved = self.place.path(f"decisions-{len(self.renamed)}")
        os.rename(self.place.path("decisions"), moved)
        self.renamed.append(moved)
        until(lambda: "following" in self.weir.said(), "it follows", running=self.weir)
        self.weir.signal(signal.SIGHUP)
        self.one.tell("decisions moved away, SIGHUP")
        if self.one.moments.random() < 0.7:
            until(lambda: os.path.exists(self.place.path("decisions")), "the file is made again", running=self.weir)

    def _lines(self, base, before):
        """The lines of some files, then of those that were rotated, then of the one that is written."""
        rotated = sorted((int(name.split(".")[1]) for name in os.listdir(self.place.directory)
                          if re.fullmatch(rf"{base}\.\d+", name)), reverse=True)
        paths = before + [self.place.path(f"{base}.{number}") for number in rotated] + [self.place.path(base)]
        return b"".join(read(path) for path in paths).split(b"\n")[:-1]

    def decisions(self):
        """All decision lines, of all files."""
        return self._lines("decisions", self.renamed)

    def shadow(self):
        """The same of zones in shadow mode."""
        return self._lines("shadow", [])

    def lines(self):
        """How many lines it has read since its start; -1 while it does not answer."""
        page = metrics.scrape(self.port)
        if page is None:
            self.weir.require_asked()
        return page.value("weir_collector_lines_total") if page else -1

    def verdicts(self):
        """How many verdicts it has given in all its lives; -1 while it does not answer."""
        page = metrics.scrape(self.port)
        if page is None:
            self.weir.require_asked()
        return page.sum("weir_limiter_verdicts_total") if page else -1


def place_of(decision_line):
    """(partition, offset, index) of a decision."""
    return tuple(map(int, json.loads(decision_line)["id"].split("-")))


def require_equal(got, want, what):
    """Requires two lists of lines to be equal."""
    if got == want:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    raise AssertionError(f"{what}: line {at + 1} of {len(got)} and {len(want)}: "
                         f"{got[at:at + 1]} is not {want[at:at + 1]}")


def state_of(place, name):
    """The bucket lines of a state, sorted."""
    dumped = place.good("state", "--state", place.path(name), "--keys", place.path("keys"))
    return sorted(dumped.out().splitlines())


def require_oracle(service, frames):
    """Requires decisions, buckets and archive to be the oracle's, which replays the log."""
    place = service.place
    with open(service.config, encoding="utf-8") as file:
        logs, results = oracle_follow.replay(json.load(file), frames)
    for mode, seen in (("enforce", service.decisions()), ("shadow", service.shadow())):
        wanted = [json_out.decision_line(decision_id, verdict.decision).rstrip(b"\n")
                  for number in sorted(results) for decision_id, verdict in results[number]
                  if verdict.decision is not None and verdict.zone.mode == mode]
        require_equal(sorted(seen, key=place_of), wanted, f"{mode}d decisions, the oracle's replay")
    # A bucket's joined key is its own in the replay; the names of buckets are told to `weir state` by it.
    place.write("keys", b"".join({key + b"\n" for log in logs.values() for _, key in log.buckets}))
    states = sorted(json_out.dumps(line) for number in sorted(logs) for line in logs[number].state())
    require_equal(state_of(place, "state"), states, "buckets, the oracle's replay")
    archive_check.from_replay(frames, results, service.zones).require(
        archive_check.sqlite_reader(place.path("state", "weir.db")))


def require_explained(service):
    """Requires each decision to come out again when the log is judged again, with every line in some file."""
    published = [json.loads(line) for line in service.decisions() + service.shadow()]
    for at in range(0, len(published), 2000):
        ids = [decision["id"] for decision in published[at:at + 2000]]
        done = service.place.run("explain", *ids, "--state", service.place.path("state"), "--json")
        answers = done.objects()
        assert [answer["decision"] for answer in answers] == published[at:at + 2000], done.said()
        wrong = [answer for answer in answers if not answer["equal"] or answer["missing"]]
        assert not wrong and done.code() == 0, (len(wrong), wrong[:2])


def require_once(service, logs, whole):
    """Requires decisions, without ids, and buckets to be those of the undisturbed run."""
    place = service.place
    for name, seen in (("decisions", [json.loads(line) for line in service.decisions()]),
                       ("shadow", [json.loads(line) for line in service.shadow()])):
        got, want = traffic.by_bucket(seen), traffic.by_bucket(lines_of(place.path(f"whole-{name}")))
        assert got.keys() == want.keys(), f"{name}: other buckets: {list(got.keys() ^ want.keys())[:5]}"
        for bucket, decisions in want.items():
            require_equal(got[bucket], decisions, f"{name} of {bucket}, --once")
    want = [json.loads(line) for line in state_of(place, "whole-state")]
    got = [json.loads(line) for line in state_of(place, "state")]
    for line in want + got:
        del line["partition"]
    dumps = [sorted(json.dumps(line) for line in lines) for lines in (got, want)]
    require_equal(*dumps, "buckets, --once")
    assert whole.summary()["events"] == logs.one.events


def require_each_event_once(one, frames, whole, sources):
    """Requires the log to hold every event of every log once, but for repetitions that are passed over."""
    seen, fresh = set(), 0
    for source, event in taken(frames):
        seen.add((source, event["position"]))
        fresh += sum(not zone.get("done", False) for zone in event["zones"])
    matched = sum(counts["matched"] for counts in whole.summary()["zones"].values())
    assert fresh == matched, f"{fresh} judgements are in the log, {matched} are due"
    assert len({source for source, _ in seen}) <= sources, "a log has become two sources"
    one.tell(f"{len(seen)} records in the log")


def letters_of(path):
    """(log, text) of the dead letters in a file that may be growing."""
    letters = [json.loads(line) for line in read(path).split(b"\n")[:-1]] if os.path.exists(path) else []
    return {(letter["source"].rsplit("/", 1)[1], letter["text"]) for letter in letters}


def missing_letters(place):
    """Dead letters that the undisturbed run has and the killed one has not."""
    return letters_of(place.path("whole-state", "dead-letter.jsonl")) - letters_of(place.path("dead"))


def play(one):
    """One round."""
    logs = Logs(one)
    whole = logs.run_once()
    one.events = whole.summary()["events"]
    matched = sum(counts["matched"] for counts in whole.summary()["zones"].values())
    service = Service(one, logs)
    rotations = one.rng.choice([0, 2, 5]) if logs.rotate else 0
    # A log that was rotated before weir has ever seen it is none of its affair: each begins with a line that it sees.
    heads = {name: lines.pop(0) for name, lines in logs.lines.items()}
    for name, head in heads.items():
        one.place.write(os.path.join("logs", name), head)
    service.start()
    until(lambda: service.lines() == len(heads), "the first lines", running=service.weir)
    service.weir.kill()
    writers = [Writer(one.place.path("logs", name), lines, one.rng, rotations=rotations,
                      length_s=one.rng.choice([0, 1, 3])) for name, lines in sorted(logs.lines.items())]
    for writer in writers:
        writer.start()
    kills = 0
    while any(writer.is_alive() for writer in writers) or kills < 2:
        service.start()
        service.disturb()
        kills += 1
    assert not any(writer.failed for writer in writers), [writer.failed for writer in writers]
    service.start()
    until(lambda: service.verdicts() >= matched, f"{matched} verdicts", patience_s=4 * PATIENCE_S, running=service.weir)
    # The verdicts may come from the log, before the lines behind them that were not acknowledged are read again.
    until(lambda: not missing_letters(one.place), "the dead letters", running=service.weir)
    assert service.weir.stop() == 0, service.weir.said()
    counts = {name: zone["matched"] for name, zone in service.weir.summary()["zones"].items()}
    assert counts == {name: zone["matched"] for name, zone in whole.summary()["zones"].items()}, counts
    ids = [json.loads(line)["id"] for line in service.decisions()]
    assert len(ids) == len(set(ids)), "a decision is in the file twice"
    frames = one.place.good("decode", "--state", one.place.path("state")).out().splitlines()
    require_each_event_once(one, frames, whole, len(logs.lines))
    require_oracle(service, frames)
    require_explained(service)
    if not logs.shares_keys:
        require_once(service, logs, whole)


if __name__ == "__main__":
    rounds.main(play, __doc__)
