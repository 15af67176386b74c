# SPDX-License-Identifier: Apache-2.0
"""Holds what `weir run --once` archives in its state against a recount of the oracle's verdicts, row by row."""

import os
import sys

import compare

sys.path.insert(0, os.path.join(compare.ROOT, "tests"))

# pylint: disable=wrong-import-position
from support import archive_check, frames


def bits(verdict):
    """A verdict as a judged frame has it."""
    if verdict.word == "done":
        return frames.NONE
    return (frames.BLOCK if verdict.word == "block" else 0) | (frames.LATE if verdict.late else 0)


def recount(run, zones, partitions):
    """What must be archived of an oracle's run."""
    ids = {zone["name"]: zone["id"] for zone in zones}
    counted = archive_check.Recount(archive_check.history_zones(zones))
    for time, _, events in run.numbered(partitions):
        for partition, offset, key, verdicts in events:
            event = {"key": key, "time": time, "zones": [(ids[verdict.zone.name], None) for verdict in verdicts]}
            counted.judged(partition, offset, [event], [bits(verdict) for verdict in verdicts])
            for number, verdict in enumerate(verdicts):
                if verdict.decision is not None:
                    counted.decision(f"{partition}-{offset}-{number}", key, verdict.decision)
    return counted


def difference(weir, config, where, run, partitions=2, threads=2):
    """Words for the first rows that differ; None if none does. The last zone has a history."""
    zones = [*config["zones"][:-1], {**config["zones"][-1], "history": True}]
    state = os.path.join(where, "state")
    try:
        compare.run_weir(weir, {**config, "zones": zones, "archiver": {"enabled": True}}, where, partitions, threads,
                         "--state", state)
        recount(run, zones, partitions).require(archive_check.sqlite_reader(os.path.join(state, "weir.db")))
    except AssertionError as failed:
        return f"the archive: {failed}"
    return None
