#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A limiter on Kafka and MariaDB with less memory than its buckets need, against one with enough: the processor's time for an event.

The need is what the limiter itself states of its buckets at the end when it has enough. A quarter of it is given, for
requests that are spread widely over users (Zipf 0.6) and narrowly (1.0). As many events must be blocked. Figures are the user
and system time of all of the limiter's threads until it has judged all, beside that of the store and the broker; ratios are
medians of pairs. WEIR_BENCH=smoke runs a small size.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.bench import SMOKE, report
from support.traffic import sliding, zone

LINES = int(os.environ.get("WEIR_BENCH_LINES", 30_000 if SMOKE else 6_000_000))
USERS, PAIRS = LINES // 2, 1 if SMOKE else 3
MIB = 1 << 20
LEAST = 16 * MIB  # below that it is for tests alone
PATIENCE_S = 1800
PAGE_S = 0.1 if SMOKE else 0.5  # from one look at the limiter's page to the next, which costs it a millisecond
ZONES = [zone("site", [sliding(10, "1h")], key=["ip"], id=1)]  # longer than the log: no bucket is forgotten
SECTIONS = {"bus": {"partitions": 8}, "limiter": {"threads": 2}}


def judge(servers, roles, memory):
    """A limiter with no state goes through the log: ({process: ns of the processor an event}, its page at the end, resident bytes)."""
    servers.forget()
    pids = {"store": servers.pid_of("mariadb"), "broker": servers.pid_of("broker-1")}
    before = {name: bench.cpu_s(pid) for name, pid in pids.items()}
    limiter = roles.limiter(limiter={"memory": str(memory)})
    bench.Samples(bench.judged(limiter), every_s=PAGE_S).until(LINES, PATIENCE_S)
    used = {name: bench.cpu_s(pid) - before[name] for name, pid in pids.items()}
    used["limiter"] = bench.cpu_s(limiter.run.pid)
    limiter.until(lambda: limiter.value("weir_limiter_verdicts_total") >= LINES, "its page has all")
    time.sleep(1.5)  # the page has its gauges anew each second
    page, peak = limiter.metrics(), limiter.run.peak_bytes()
    assert limiter.stop(PATIENCE_S) == 0
    return {name: time_s / LINES * 1e9 for name, time_s in used.items()}, page, peak


def measure_share(servers, roles, zipf):
    """A quarter of the need."""
    _, page, free_peak = judge(servers, roles, 4 << 30)
    need = page.value("weir_limiter_state_bytes")
    ceiling = max(int(need) // 4, LEAST)
    pairs = []
    for _ in range(PAIRS):
        free, free_page, _ = judge(servers, roles, 4 << 30)
        held, held_page, peak = judge(servers, roles, ceiling)
        verdicts = [one.sum("weir_limiter_verdicts_total", verdict="block") for one in (free_page, held_page)]
        assert verdicts[0] == verdicts[1], f"as many events must be blocked: {verdicts}"
        pairs.append((free, held))
    median = {f"{kind}_{name}": round(statistics.median(pair[number][name] for pair in pairs))
              for number, kind in enumerate(("free", "held")) for name in ("limiter", "store", "broker")}
    report("memory_cluster", unit="ns/event", zipf=zipf, events=LINES, need_mib=round(need / MIB, 1), ceiling_mib=round(ceiling / MIB, 1),
           ratio=round(statistics.median(free["limiter"] / held["limiter"] for free, held in pairs), 3), goal=0.2,
           ratio_with_store=round(statistics.median((free["limiter"] + free["store"]) / (held["limiter"] + held["store"])
                                                    for free, held in pairs), 3),
           peak_mib=round(peak / MIB), free_peak_mib=round(free_peak / MIB), index_mib=round(held_page.value("weir_limiter_index_bytes") / MIB, 1), **median)


def measure(place):
    """Two kinds of traffic."""
    for zipf in (0.6, 1.0):
        log = bench.generate(place, f"log-{zipf}", LINES, "--users", USERS, "--zipf", zipf, "--rate", 20000)
        with bench.stage(place, ZONES, **SECTIONS) as (servers, roles):
            roles.apply()
            bench.fill(roles, log, LINES, PATIENCE_S)
            os.remove(log)
            measure_share(servers, roles, zipf)


if __name__ == "__main__":
    bench.main("memory_cluster", measure)
