# SPDX-License-Identifier: Apache-2.0
"""Puts calls to weir as a log and reads its verdicts back."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from seeds import exact

RUN_TIMEOUT_S = 60
ZONES_A_RUN = 32
TIMES = ("window", "interval", "hold")


class Differs(AssertionError):
    """weir and the exact rule do not agree."""


@dataclass
class Case:
    """A limit and the calls that one zone with this limit judges, in their order."""
    limit: dict
    calls: list
    count: str = "passed"


class Weir:
    """The program under test; without a program the exact rule answers in its place."""

    def __init__(self, program):
        self.program = program
        self.judged = 0

    def verdicts(self, *cases):
        """For each case a list with "pass", "block" or "late" for each call that is not done.

        Raises Differs where weir departs from the exact rule.
        """
        wanted = [exact.verdicts(case.limit, case.calls, case.count) for case in cases]
        if self.program is None:
            return wanted
        seen = []
        for start in range(0, len(cases), ZONES_A_RUN):
            seen += self.run(cases[start:start + ZONES_A_RUN])
        for case, ours, theirs in zip(cases, wanted, seen):
            if ours != theirs:
                raise Differs(first_difference(case, ours, theirs))
        self.judged += sum(map(len, seen))
        return seen

    def verdict(self, limit, calls, count="passed"):
        """The verdicts of one case."""
        return self.verdicts(Case(limit, calls, count))[0]

    def after(self, limit, asked):
        """For each (calls, last) the verdict of last, after those calls.

        Each is asked of a key of its own with the same calls before it, so the answers are
        verdicts, not weir's own account of its state.
        """
        calls, ends = [], []
        for place, (before, last) in enumerate(asked):
            calls += [exact.Call(call.at, f"{place}", call.cost) for call in (*before, last)]
            ends.append(len(calls) - 1)
        given = self.verdict(limit, calls)
        return [given[end] for end in ends]

    def most(self, limit, asked):
        """For each (calls, at) the greatest cost up to burst + 1 that still passes at that time
        after those calls; None if not even a cost of 0 does."""
        costs = range(limit["burst"] + 2)
        given = iter(self.after(limit, [(before, exact.Call(at, cost=cost))
                                        for before, at in asked for cost in costs]))
        return [max((cost for cost in costs if next(given) == "pass"), default=None)
                for _ in asked]

    def run(self, cases):
        """One run of the program over all cases: a zone and a stretch of the log for each."""
        with tempfile.TemporaryDirectory(prefix="weir-seed-") as name:
            folder = Path(name)
            (folder / "calls.log").write_text("".join(
                f"{line(place, call)}\n" for place, case in enumerate(cases)
                for call in case.calls))
            (folder / "weir.json").write_text(json.dumps(
                {"zones": [zone(place, case) for place, case in enumerate(cases)],
                 "sources": [source(folder / "calls.log")]}, indent=1))
            done = subprocess.run(
                [self.program, "run", "--config", folder / "weir.json", "--once", "--decisions",
                 folder / "decisions", "--judged", folder / "judged"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_TIMEOUT_S,
                env={**os.environ, "TZ": "UTC"}, check=False)
            if done.returncode != 0:
                raise Differs(f"weir run exited with status {done.returncode}: {done.stderr}")
            seen = {f"case-{place}": [] for place in range(len(cases))}
            for text in (folder / "judged").read_text().splitlines():
                judged = json.loads(text)
                seen[judged["zone"]].append("late" if judged["late"] else judged["verdict"])
        return list(seen.values())


def line(place, call):
    return json.dumps({"ts": call.at / 1000, "case": f"case-{place}", "user": call.key,
                       "cost": call.cost, "op": "done" if call.done else "call"})


def source(path):
    names = ("case", "user", "cost", "op")
    return {"type": "file", "path": str(path),
            "format": {"type": "json", "time": "ts", "cost": "cost",
                       "fields": {name: name for name in names}}}


def zone(place, case):
    name = f"case-{place}"
    limit = {key: f"{value}ms" if key in TIMES else value for key, value in case.limit.items()}
    if limit.get("penalize") is False:
        del limit["penalize"]
    if limit["algorithm"] == "queue":
        limit["done"] = {"case": [name], "op": ["done"]}
    return {"id": place + 1, "name": name, "key": ["user"], "match": {"case": [name]},
            "limits": [limit], "count": case.count}


def first_difference(case, ours, theirs):
    judged = [call for call in case.calls if not call.done]
    if len(ours) != len(theirs):
        return f"{case.limit}: weir judged {len(theirs)} of {len(judged)} calls"
    place = next(i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1])
    return (f"{case.limit}: call {place} {judged[place]}: weir says {theirs[place]}, "
            f"the rule {ours[place]}")
