#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir backtest` of one policy against `weir run --once` on a long log that is on no disk, with more keys than the ceiling
has room for: buckets move to a temporary file and come back.

One program writes the lines, and both read them at once from pipes, so that both meet what else the machine does. Figures
are nanoseconds of the processor for a line, user and system, of all threads of each. The peaks of resident memory stand
beside the ceiling, which a backtest may reach twice: once for buckets, once for what is known of keys. Both must make as
many decisions. WEIR_BENCH_LINES is the number of lines, WEIR_BENCH=smoke runs a small size.
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
USERS = 20_000 if SMOKE else 2_000_000
CEILING_MIB = 32 if SMOKE else 64


def start(command, lines, output):
    """A program that reads the log."""
    with open(output, "wb") as said:
        # pylint: disable-next=consider-using-with
        return subprocess.Popen([find_weir(), *command], stdin=lines, stdout=subprocess.DEVNULL, stderr=said)


def end(reader, output):
    """(its nanoseconds for a line, its peak of memory in MiB)."""
    _, status, used = os.wait4(reader.pid, 0)
    reader.returncode = os.waitstatus_to_exitcode(status)
    with open(output, encoding="utf-8") as said:
        assert reader.returncode == 0, said.read()
    return (used.ru_utime + used.ru_stime) / LINES * 1e9, used.ru_maxrss / 1024


def read_lines(place, commands):
    """Lets two programs read the log: what each took, and the paths of what they said."""
    pipe = place.path("lines")
    os.mkfifo(pipe)
    outputs = [place.path(name) for name in ("said-1", "said-2")]
    written = ["generate", "--lines", LINES, "--users", USERS, "--rate", 200, "--quiet", "--output", "-"]
    with subprocess.Popen([find_weir(), *map(str, written)], stdout=subprocess.PIPE) as writer, \
            subprocess.Popen(["tee", pipe], stdin=writer.stdout, stdout=subprocess.PIPE) as both:
        writer.stdout.close()
        with open(pipe, "rb") as lines:
            readers = [start(commands[0], lines, outputs[0]), start(commands[1], both.stdout, outputs[1])]
        both.stdout.close()
        return [end(reader, output) for reader, output in zip(readers, outputs)], outputs


def measure(place):
    """Both at once."""
    config = place.write("ten.json", json.dumps({
        "zones": [zone("site", [sliding(10, "1m")], key=["ip"])], "limiter": {"memory": f"{CEILING_MIB}MiB"},
        "sources": [{"type": "stdin", "format": "combined"}]}))
    found = place.path("report")
    once = ["run", "--once", "--quiet", "--summary", "json", "--config", config, "--decisions", "/dev/null"]
    backtest = ["backtest", "--quiet", "--config", config, "--json", found]
    ((once_ns, once_mib), (own_ns, own_mib)), (summary, _) = read_lines(place, [once, backtest])
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
