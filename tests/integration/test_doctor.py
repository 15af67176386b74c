#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir doctor on a real cluster: nothing is wrong in health; each fault is named first, and its remedy ends it."""

import contextlib
import json
import os
import re
import shlex
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cases import Skipped
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE, WRONG, USAGE = 0, 1, 2
PARTITIONS = 4
BOUND_S = 25  # 20 s of its own, and a loaded machine's start
ZONES = [zone("site", [sliding(3, "1h")], id=1)]


def check_shape(report):
    """The JSON form, whole."""
    assert set(report) == {"good", "findings", "fine"}, report
    assert isinstance(report["good"], bool) and all(isinstance(line, str) for line in report["fine"])
    for finding in report["findings"]:
        assert list(finding) == ["severity", "check", "what", "means", "remedy", "runbook"], finding
        assert finding["severity"] in ("page", "ticket", "note"), finding
        assert finding["check"] and finding["what"], finding
        assert finding["runbook"] is None or re.fullmatch(r"[a-z-]+", finding["runbook"]), finding
        if finding["severity"] != "note":
            assert finding["means"] and finding["remedy"], finding
    order = [("page", "ticket", "note").index(finding["severity"]) for finding in report["findings"]]
    assert order == sorted(order), "the worst stands first"
    assert report["good"] == all(number == 2 for number in order)


class Doctor:
    """The command on one configuration."""

    def __init__(self, place, sections, *words):
        self.place, self.words = place, words
        self.config = place.write("doctor.json", json.dumps(sections))

    def ask(self, **more):
        """(exit code, report)."""
        begin = time.monotonic()
        done = self.place.run("doctor", "--config", self.config, "--json", *self.words, **more)
        assert done.code() in (DONE, WRONG, USAGE), (done.code(), done.said())
        report = json.loads(done.out())
        assert time.monotonic() - begin < BOUND_S, report
        check_shape(report)
        return done.code(), report

    def finds(self, severity, runbook, words, code=WRONG, **more):
        """The first finding, which must be this."""
        got, report = self.ask(**more)
        assert report["findings"], report
        first = report["findings"][0]
        assert got == code and first["severity"] == severity and first["runbook"] == runbook and \
            re.search(words, first["what"]), (got, json.dumps(report, indent=1))
        return first

    def is_fine(self):
        """Nothing is wrong any more, which may take a moment to be seen."""
        def fine():
            nonlocal seen
            seen = self.ask()
            return seen[0] == DONE
        seen = None
        try:
            until(fine, "nothing is wrong")
        except AssertionError as late:
            raise AssertionError(json.dumps(seen[1], indent=1)) from late
        assert seen[1]["good"], seen

    def heals(self):
        """As an operator does: types what stands first, and asks again, until nothing is wrong."""
        for _ in range(5):
            code, report = self.ask()
            if code == DONE or not report["findings"][0]["remedy"].startswith("weir "):
                break
            self.type(report["findings"][0]["remedy"])
        self.is_fine()

    def type(self, remedy):
        """Runs a remedy as a shell is given it."""
        for command in remedy.split(" && "):
            words = shlex.split(command)
            assert words[0] == "weir", remedy
            done = self.place.run(*words[1:])
            assert done.code() == DONE, (remedy, done.out(), done.said())


class Scene:
    """A cluster at work."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        self.log = place.write("log", burst("ann", 40))
        roles.apply()
        self.limiter = roles.limiter().until_ready()
        self.archiver = roles.archiver().until_ready()
        self.collector = roles.collector([source(self.log)]).until_ready()
        self.doctor = Doctor(place, roles.sections(zones=ZONES, sources=[source(self.log)]))
        self.limiter.until(lambda: self.limiter.value("weir_limiter_events_total") == 40, "has judged all")

    def sections(self, **more):
        """Of a configuration that differs from what the daemons have."""
        return self.roles.sections(**{"zones": ZONES, "sources": [source(self.log)], **more})


@contextlib.contextmanager
def scene(place):
    """One for a test, with servers of its own."""
    with cluster.own(parent=place.directory) as one, \
            Roles(place, one, ZONES, bus={"partitions": PARTITIONS}, limiter={"checkpoint_interval": "200ms"},
                  archiver={"enabled": True, "interval": "100ms"}) as roles:
        yield Scene(place, one, roles)


def test_what_servers_have_lost(place):
    """Nothing is wrong in health; then topics and messages are deleted, and each printed command is typed."""
    with scene(place) as at:
        kafka, doctor, one = at.one.kafka, at.doctor, at.one
        doctor.is_fine()
        said = place.run("doctor", "--config", doctor.config).out().decode()
        print(said)
        assert said.startswith("Nothing is wrong.\nGood:\n") and "\033" not in said, said
        # A topic that everything waits for.
        kafka.delete([one.topic("decisions")])
        until(lambda: one.topic("decisions") not in kafka.topics(), "it is gone")
        found = doctor.finds("page", "topic-deleted", f"topic {one.topic('decisions')} does not exist")
        assert found["remedy"] == f"weir policy apply --config {doctor.config}", found
        doctor.heals()
        # Settings that lose records.
        kafka.change_settings(one.topic("events"), retention_ms=100)
        found = doctor.finds("page", "retention", f"topic {one.topic('events')} keeps its messages for 100ms")
        assert f"--entity-name {one.topic('events')} --add-config retention.ms=604800000" in found["remedy"], found
        kafka.change_settings(one.topic("events"), retention_ms=604800000)
        kafka.change_settings(one.topic("policy"), cleanup_policy="delete")
        assert doctor.finds("page", "retention", "cleanup.policy")["remedy"].endswith("cleanup.policy=compact")
        kafka.change_settings(one.topic("policy"), cleanup_policy="compact")
        doctor.is_fine()
        # A gap: what no limiter has judged is deleted.
        assert at.limiter.stop() == DONE
        doctor.finds("page", "process-down", "no limiter is running")
        place.append("log", burst("ann", 40))
        at.collector.until(lambda: at.collector.value("weir_source_lag_bytes") == 0, "has read its log")
        ends = one.ends()
        (partition,) = [number for number, end in one.stored().items() if end < ends[number]]
        kafka.trim(one.topic("events"), {partition: ends[partition]})
        check = at.roles.limiter(arguments=["--check"])
        assert check.run.wait() == WRONG and "deleted before they were done" in check.run.out().decode(), check.said()
        at.limiter.start().until_up()
        found = next(one for one in doctor.ask()[1]["findings"] if one["runbook"] == "gap")
        assert f"in partition {partition} " in found["what"], found
        assert found["remedy"] == f"weir recover --accept-gap --config {doctor.config} --all --yes", found
        doctor.heals()


if __name__ == "__main__":
    cases.main(globals())
