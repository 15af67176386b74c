#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The brute-force oracle: what `weir run --config FILE --once` must write.

Slow and obvious. It shares nothing with the C code but common/specification/semantics.md. Malformed
lines are counted by one of these reasons, the first that applies:

  line too long      more bytes than the limit, 262144 by default, and no record up to there
  not combined, not common, not json, not delimited, not logfmt
                     the line does not have its format's form (parse_*.py)
  no match           the pattern does not match
  no time            the time is absent
  bad time           the time has none of the known forms (times.py)
  time out of range  before 1970 or after 9999
  bad cost           the cost is no integer from 0 to 2^40
  no client          a trusted proxy names no address for whom it asked

usage: oracle.py --config FILE [--partitions P] [--decisions OUT] [--shadow OUT]
                 [--summary OUT] [--state OUT] [--judged OUT] [LOG...]

LOG... stand for the configuration's sources, in the format of its first one.
OUT may be `-`. Without any OUT the decisions go to standard output.
"""

import argparse
import json
import sys

import json_out
import sources
from decisions import Decision, are_counted, is_event
from keys import partition_of
from model import Once
from policy import zones_of


def read_sources(config, logs=()):
    """The records of a configuration's sources, or of logs, merged; and their tally."""
    specs = config.get("sources", [])
    if logs:
        specs = [{"type": "file", "path": path, "format": specs[0].get("format")} for path in logs]
    tally = sources.Tally()
    return list(sources.merged(sources.open_all(specs, tally))), tally


class Run:
    """The outcome of a run: what each output must hold, for any number of partitions."""

    def __init__(self, config, logs=(), read=None):
        self.zones = zones_of(config)
        self.once = Once(self.zones)
        records, self.tally = read or read_sources(config, logs)
        self.counted = are_counted(config)
        self.records = [taken for record in records for taken in self._take(record)]

    def _take(self, record):
        """A record, and behind it the decisions that come of it where zones count them:
        (time, cost, events) of each."""
        place = {zone.name: i for i, zone in enumerate(self.zones)}
        named = {zone.name: zone for zone in self.zones}
        waiting = [record]
        while waiting:
            one = waiting.pop(0)
            events = self.once.take(one)
            yield one.time, one.cost, events
            made = [verdict.decision for _, verdicts in events for verdict in verdicts if is_event(verdict.decision)]
            if self.counted:
                made.sort(key=lambda decision: place[decision["zone"]])
                waiting += [Decision(decision, named) for decision in made]

    def numbered(self, partitions):
        """(time, cost, [(partition, offset, joined key, verdicts), …]) of each record:
        an event's offset is the number of its partition's events before it."""
        offsets = [0] * partitions
        for time, cost, events in self.records:
            numbered = []
            for key, verdicts in events:
                partition = partition_of(key, partitions)
                numbered.append((partition, offsets[partition], key, verdicts))
                offsets[partition] += 1
            yield time, cost, numbered

    def decisions(self, partitions, mode="enforce"):
        """The decision lines (bytes) of the zones of one mode, in order."""
        place = {zone.name: i for i, zone in enumerate(self.zones)}
        lines = []
        for _, _, events in self.numbered(partitions):
            made = [(place[verdict.zone.name], f"{partition}-{offset}-{index}", verdict.decision)
                    for partition, offset, _, verdicts in events
                    for index, verdict in enumerate(verdicts)
                    if verdict.decision is not None and verdict.zone.mode == mode]
            for _, decision_id, decision in sorted(made, key=lambda item: item[0]):
                lines.append(json_out.decision_line(decision_id, decision))
        return lines

    def summary(self):
        """The counts that `--summary json` states."""
        return {"lines": self.tally.lines, "events": self.tally.events,
                "malformed": dict(sorted(self.tally.malformed.items())),
                "zones": {name: dict(vars(counts)) for name, counts in self.once.counts.items()}}

    def state(self, partitions):
        """State lines, bytes each."""
        return [json_out.dumps(line) + b"\n" for line in self.once.state(partitions)]

    def judged(self, partitions):
        """One line for each event, bytes each."""
        for time, cost, events in self.numbered(partitions):
            for partition, offset, key, verdicts in events:
                yield json_out.dumps({
                    "partition": partition, "offset": offset, "time": time, "cost": cost,
                    "key": key, "zones": [
                        {"zone": verdict.zone.name, "verdict": verdict.word, "late": verdict.late}
                        for verdict in verdicts]}) + b"\n"


def _write(path, lines):
    if path == "-":
        sys.stdout.buffer.writelines(lines)
    elif path is not None:
        with open(path, "wb") as out:
            out.writelines(lines)


def main():
    """Runs the oracle from the command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--partitions", type=int)
    outputs = ("decisions", "shadow", "summary", "state", "judged")
    for name in outputs:
        parser.add_argument("--" + name, metavar="OUT")
    parser.add_argument("logs", nargs="*", metavar="LOG")
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as file:
        config = json.load(file)
    partitions = args.partitions or config.get("bus", {}).get("partitions", 16)
    run = Run(config, args.logs)
    if not any(getattr(args, name) for name in outputs):
        args.decisions = "-"
    _write(args.decisions, run.decisions(partitions))
    _write(args.shadow, run.decisions(partitions, "shadow"))
    _write(args.summary, [json_out.dumps(run.summary()) + b"\n"])
    _write(args.state, run.state(partitions))
    _write(args.judged, run.judged(partitions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
