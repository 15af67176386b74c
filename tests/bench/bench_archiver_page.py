#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon the archiver's page shows something: a week of a million decisions, in a headless Chromium.

page_VIEW   from asking for the page to the view with its data painted, in a browser that has never seen it; the
            median and the worst of some runs, its slowest answer, the server's processor time for a view. Goal:
            the first view within a second. ratio: to the ceiling, which is the same view of a store with nothing in
            it, opened in turn with it: what a busy machine costs is in both.

WEIR_BENCH=smoke runs a small size.
"""

import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.archiver_api import on_sqlite
from support.archiver_page import filled, looking
from support.bench import SMOKE, report
from support.chromium import Chromium
from support.page_rows import Week
from support.place import Place

USERS = int(os.environ.get("WEIR_BENCH_USERS", 50 if SMOKE else 1000))
DECISIONS = int(os.environ.get("WEIR_BENCH_DECISIONS", 5000 if SMOKE else 1_000_000))
RUNS = 2 if SMOKE else 7
GOAL_MS = 1000
VIEWS = (("overview", {}), ("top", {"zone": "api"}), ("decisions", {}), ("user", {"zone": "api", "key": "198.51.0.1"}), ("blocks", {}),
         ("system", {}))

# By the browser's own clock, from the navigation on.
_SHOWN = """new Promise((done) => {
  const look = () => document.querySelector(".results")?.dataset.shown ?
    requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : requestAnimationFrame(look);
  look();
})"""
_API = """performance.getEntriesByType("resource").filter((one) => one.name.includes("/api/v1/"))
  .map((one) => one.responseEnd - one.requestStart)"""


def used_ms(pid):
    """The processor's time that a process has taken so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shown_ms(browser, api, name, parameters):
    """(ms until a view is painted, ms of its slowest answer)."""
    with looking(browser, api) as view:
        view.page.open(view.address(name, **parameters))
        return view.page.run(_SHOWN), max(view.page.run(_API))


def measure(place):
    """Fills a store, and opens each view."""
    with Chromium(place) as browser, Place(None) as second:
        empty = on_sqlite(second)
        started = time.monotonic()
        week = Week(int(time.time() * 1000), users=USERS, decisions=DECISIONS)
        api = filled(place, week)
        counts, filled_s = len(week.hourly), time.monotonic() - started
        del week
        for name, parameters in VIEWS:
            taken, slowest, ceiling, before = [], [], [], used_ms(api.program.pid)
            for _ in range(RUNS):
                one_ms, answer_ms = shown_ms(browser, api, name, parameters)
                taken.append(one_ms)
                slowest.append(answer_ms)
                ceiling.append(shown_ms(browser, empty, name, parameters)[0])
            report(f"page_{name}", unit="ms", median=round(statistics.median(taken)), worst=round(max(taken)),
                   ceiling=round(statistics.median(ceiling)),
                   ratio=round(statistics.median(taken) / statistics.median(ceiling), 2),
                   slowest_answer=round(statistics.median(slowest)),
                   server_cpu=round((used_ms(api.program.pid) - before) / RUNS), goal=GOAL_MS, runs=RUNS, decisions=DECISIONS,
                   counts=counts, filled_s=round(filled_s))


if __name__ == "__main__":
    bench.main("page", measure)
