# SPDX-License-Identifier: Apache-2.0
"""Runs weir and the oracle on the same configuration and says where they differ."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "oracle"))

# pylint: disable=wrong-import-position
import oracle
import random_cases

# (partitions, threads): one shard, two, and eight on as many threads or fewer
SHARDS = ((1, 1), (2, 2), (8, 8), (8, 1))
SKIPPED = 77


def find_weir(given):
    """The program under test; leaves the test as skipped if it is not built."""
    path = given or os.environ.get("WEIR_BIN") or os.path.join(ROOT, "build/release/bin/weir")
    if not os.access(path, os.X_OK):
        print(f"skipped: no program at {path}")
        sys.exit(SKIPPED)
    return os.path.abspath(path)


def scratch():
    """A directory that goes away; in memory where there is room for that."""
    shm = "/dev/shm"
    return tempfile.TemporaryDirectory(
        prefix="weir-conformance-", dir=shm if os.access(shm, os.W_OK) else None)


def run_weir(weir, config, where, partitions, threads, *more, timeout=120):
    """(decision bytes, summary object) of a run; raises AssertionError if it fails."""
    config = dict(config, bus={"partitions": partitions}, limiter={"threads": threads})
    path, out = os.path.join(where, "weir.json"), os.path.join(where, "decisions")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    if os.path.exists(out):
        os.unlink(out)
    done = subprocess.run([weir, "run", "--config", path, "--once", "--decisions", out,
                           "--summary", "json", *more], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    said = done.stderr.decode(errors="replace")
    assert random_cases.ended_well(done.returncode, said), f"weir exited with status {done.returncode}: {said[-2000:]}"
    summaries = [line for line in said.splitlines() if line.startswith('{"lines"')]
    assert summaries, f"no summary on standard error: {said[-2000:]}"
    with open(out, "rb") as file:
        return file.read(), json.loads(summaries[-1])


def first_difference(got, want, shown=3):
    """Words for the first lines that differ of two outputs; None if none does."""
    if got == want:
        return None
    got, want = got.split(b"\n"), want.split(b"\n")
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    show = lambda lines: "\n".join("    " + line.decode(errors="backslashreplace")
                                   for line in lines[at:at + shown]) or "    (end)"
    return f"decision {at + 1}: weir says\n{show(got)}\n  the oracle says\n{show(want)}"


def summary_difference(got, want):
    """Words for the counts that differ; None if none does."""
    wrong = []
    for name in ("lines", "events", "malformed"):
        if got.get(name) != want[name]:
            wrong.append(f"{name}: weir {got.get(name)}, oracle {want[name]}")
    for zone, counts in want["zones"].items():
        mine = {name: got.get("zones", {}).get(zone, {}).get(name) for name in counts}
        if mine != counts:
            wrong.append(f"zone {zone}: weir {mine}, oracle {counts}")
    return "summary: " + "; ".join(wrong) if wrong else None


def differences(weir, config, where, run=None, shards=SHARDS):
    """Words for the first difference between weir and the oracle, whose run may be there already; None if none."""
    run = run or oracle.Run(config)
    for partitions, threads in shards:
        try:
            decisions, summary = run_weir(weir, config, where, partitions, threads)
        except (AssertionError, subprocess.TimeoutExpired) as failed:
            return f"{partitions} partitions, {threads} threads: {failed}"
        wrong = (first_difference(decisions, b"".join(run.decisions(partitions)))
                 or summary_difference(summary, run.summary()))
        if wrong:
            return f"{partitions} partitions, {threads} threads: {wrong}"
    return None
