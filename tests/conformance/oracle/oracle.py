#!/usr/bin/env python3
"""The brute-force oracle: what `weir run --config FILE --once` must write.

Slow and obvious. It shares nothing with the C code but the design. Malformed
lines are counted by one of these reasons, the first that applies:

  line too long      more bytes than the limit, 65536 by default
  not combined, not common, not json, not delimited, not logfmt
                     the line does not have its format's form (parse_*.py)
  no match           the pattern does not match
  no time            the time is absent
  bad time           the time has none of the known forms (times.py)
  time out of range  before 1970 or after 9999
  bad cost           the cost is no integer from 0 to 2^40

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
from model import Once
from policy import Zone


class Run:
    """The outcome of a run: lines (bytes) for each output, the summary's object."""

    def __init__(self, config, partitions=None, logs=(), with_judged=False):
        self.zones = [Zone(zone) for zone in config["zones"]]
        specs = config.get("sources", [])
        if logs:
            form = specs[0].get("format", "combined") if specs else "combined"
            specs = [{"type": "file", "path": path, "format": form} for path in logs]
        partitions = partitions or config.get("bus", {}).get("partitions", 16)
        self.once = Once(self.zones, partitions)
        if with_judged:
            self.once.judged = []
        self.tally = sources.Tally()
        self.decisions, self.shadow = [], []
        for record in sources.merged(sources.open_all(specs, self.tally)):
            for decision_id, verdict in self.once.take(record):
                if verdict.decision is not None:
                    out = self.shadow if verdict.zone.mode == "shadow" else self.decisions
                    out.append(json_out.decision_line(decision_id, verdict.decision))

    def summary(self):
        """The counts that `--summary json` states."""
        return {"lines": self.tally.lines, "events": self.tally.events,
                "malformed": dict(sorted(self.tally.malformed.items())),
                "zones": {name: dict(vars(counts)) for name, counts in self.once.counts.items()}}

    def state(self):
        """State lines, bytes each."""
        return [json_out.dumps(line) + b"\n" for line in self.once.state()]

    def judged(self):
        """One line for each event, bytes each."""
        for partition, offset, time, cost, key, verdicts in self.once.judged:
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
    run = Run(config, args.partitions, args.logs, args.judged is not None)
    if not any(getattr(args, name) for name in outputs):
        args.decisions = "-"
    _write(args.decisions, run.decisions)
    _write(args.shadow, run.shadow)
    _write(args.summary, [json_out.dumps(run.summary()) + b"\n"])
    _write(args.state, run.state())
    _write(args.judged, run.judged() if args.judged else [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
