#!/usr/bin/env python3
"""Archivers of a cluster, as operators see them: how far they are behind, by metrics, before and after there is work."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, cluster, work
from support.place import PATIENCE_S
from support.roles import Roles

LINES = 3000
ZONES = [{"name": "site", "key": ["ip"], "limits": [{"algorithm": "sliding_window", "rate": 10, "window": "1m"}]}]


def lag_of(archiver):
    """What it shows of its lag: (messages, seconds), None where there is no sample."""
    page = archiver.metrics()
    return tuple(page and page.value(f"weir_archiver_lag_{unit}") for unit in ("messages", "seconds"))


def test_lag_is_told_once_it_is_known(place):
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": 4},
                                        archiver={"enabled": True, "interval": "100ms"}) as roles:
        roles.apply()
        limiter, archiver = roles.limiter(), roles.archiver()
        for role in (limiter, archiver):
            role.until(role.is_ready, "is ready", 4 * PATIENCE_S)
        archiver.until(lambda: lag_of(archiver) == (0, 0), "knows that there is nothing")
        archiver.pause()
        collector = roles.collector([work.source(work.generated(place, "log", LINES))])
        limiter.until(lambda: limiter.value("weir_events_total") >= LINES, "has judged")
        archiver.resume()
        archiver.until(lambda: archiver.value("weir_archiver_events_total") > 0, "goes on", 4 * PATIENCE_S)
        archiver.until(lambda: lag_of(archiver) == (0, 0), "has caught up", 4 * PATIENCE_S)
        for role in (collector, limiter, archiver):
            assert role.stop() == 0, role.said()


if __name__ == "__main__":
    cases.main(globals())
