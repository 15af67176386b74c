#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` with less memory than its buckets need, against one without a ceiling: the processor's time for a line.

The need is what the run without a ceiling takes beyond one of a thousand users. A quarter and a tenth of it are given, for
requests that are spread widely over users (Zipf 0.6) and narrowly (1.0). All decisions must be the same, byte for byte.
Figures are the user and system time of all threads; ratios are medians of pairs. WEIR_BENCH=smoke runs a small size.
"""
import filecmp
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report
from support.place import find_weir
from support.traffic import sliding, zone

LINES, USERS, PAIRS = (60_000, 30_000, 1) if SMOKE else (6_000_000, 3_000_000, 3)
MIB = 1 << 20
ZONES = [zone("site", [sliding(10, "1m")], key=["ip"])]


def run(place, log, decisions, *options):
    """(nanoseconds of the processor for a line, peak of resident bytes)."""
    config = place.write("ten.json", json.dumps({"zones": ZONES, "sources": [{"type": "file", "path": log, "format": "combined"}]}))
    # pylint: disable-next=consider-using-with
    weir = subprocess.Popen([find_weir(), "run", "--once", "--quiet", "--config", config, "--decisions", decisions, *options])
    _, status, used = os.wait4(weir.pid, 0)
    weir.returncode = os.waitstatus_to_exitcode(status)
    assert weir.returncode == 0
    return (used.ru_utime + used.ru_stime) / LINES * 1e9, used.ru_maxrss * 1024



def measure(place):
    """Two kinds of traffic, two ceilings."""
    few = bench.generate(place, "few", LINES, "--users", 1000, "--rate", 20000)
    free, held = place.path("free.jsonl"), place.path("held.jsonl")
    _, floor = run(place, few, free)
    for zipf in (0.6, 1.0):
        log = bench.generate(place, f"log-{zipf}", LINES, "--users", USERS, "--zipf", zipf, "--rate", 20000)
        _, peak = run(place, log, free)
        need = max(peak - floor, 32 * MIB)
        for share in (4, 10):
            ceiling = max(need // share, 16 * MIB)  # below that it is for tests alone
            pairs = []
            for number in range(PAIRS):
                for path in (free, held):
                    if os.path.exists(path):
                        os.remove(path)
                unlimited, _ = run(place, log, free)
                limited, most = run(place, log, held, "--memory", str(ceiling), "--state", place.path(f"state-{zipf}-{share}-{number}"))
                assert filecmp.cmp(free, held, shallow=False), "decisions differ"
                pairs.append((unlimited, limited))
            report("memory", unit="ns/line", zipf=zipf, share=f"1/{share}", ceiling_mib=round(ceiling / MIB, 1),
                   free=round(statistics.median(one for one, _ in pairs)), held=round(statistics.median(two for _, two in pairs)),
                   ratio=round(statistics.median(one / two for one, two in pairs), 3), goal=0.1 if share == 10 else 0.25 if zipf < 1 else 0.5,
                   peak_mib=round(most / MIB), free_peak_mib=round(peak / MIB))
        os.remove(log)


if __name__ == "__main__":
    bench.main("memory", measure)
