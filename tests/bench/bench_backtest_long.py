#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir backtest` of one policy against `weir run --once` on a log that is longer than any disk would want, with more keys
than the ceiling has room for: buckets move to a temporary file and come back.

Lines come through a pipe, and the program that writes them is not counted. Figures are nanoseconds of the processor for
a line, user and system, of all threads; the peak of resident memory stands beside the ceiling, which a backtest may reach
twice: once for buckets, once for what is known of keys. Both must make as many decisions. WEIR_BENCH_LINES is the number
of lines, WEIR_BENCH=smoke runs a small size.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report
from support.place import find_weir
from support.traffic import sliding, zone

LINES = int(os.environ.get("WEIR_BENCH_LINES", 100_000 if SMOKE else 100_000_000))
USERS = LINES // 5
CEILING_MIB = 32 if SMOKE else 256


def read_lines(command, output):
    """Lets a program read the log: (its nanoseconds for a line, its peak of memory in MiB)."""
    written = ["generate", "--lines", LINES, "--users", USERS, "--rate", 200, "--quiet", "--output", "-"]
    weir = find_weir()
    with open(output, "wb") as said, subprocess.Popen([weir, *map(str, written)], stdout=subprocess.PIPE) as writer:
        # pylint: disable-next=consider-using-with
        reader = subprocess.Popen([weir, *command], stdin=writer.stdout, stdout=subprocess.DEVNULL, stderr=said)
        writer.stdout.close()
        _, status, used = os.wait4(reader.pid, 0)
        reader.returncode = os.waitstatus_to_exitcode(status)
    with open(output, encoding="utf-8") as said:
        assert reader.returncode == 0, said.read()
    return (used.ru_utime + used.ru_stime) / LINES * 1e9, used.ru_maxrss / 1024


def measure(place):
    """One after the other."""
    config = place.write("ten.json", json.dumps({
        "zones": [zone("site", [sliding(10, "1m")], key=["ip"])], "limiter": {"memory": f"{CEILING_MIB}MiB"},
        "sources": [{"type": "stdin", "format": "combined"}]}))
    summary, found = place.path("summary"), place.path("report")
    once_ns, once_mib = read_lines(["run", "--once", "--quiet", "--summary", "json", "--config", config, "--decisions",
                                    "/dev/null"], summary)
    own_ns, own_mib = read_lines(["backtest", "--quiet", "--config", config, "--json", found], place.path("said"))
    with open(summary, encoding="utf-8") as file:
        alone = json.load(file)["zones"]["site"]
    with open(found, encoding="utf-8") as file:
        whole = json.load(file)
    own = whole["policies"][0]["zones"][0]
    assert [alone[name] for name in ("passed", "blocked", "decisions")] == \
        [own[name] for name in ("passed", "blocked", "decisions")], (alone, own)
    report("backtest_long", unit="ns/line", once=round(once_ns), rate=round(own_ns), ratio=round(once_ns / own_ns, 2), goal=0.8,
           once_peak_mib=round(once_mib), peak_mib=round(own_mib), ceiling_mib=CEILING_MIB, lines=LINES, keys=own["keys"],
           keys_exact=whole["keys_exact"], decisions=own["decisions"])


if __name__ == "__main__":
    bench.main("backtest_long", measure)
