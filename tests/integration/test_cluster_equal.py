#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three collectors and three limiters come to what one process comes to, and to what the oracle says.

Every event of every line is in the log once; decisions, shadow decisions,
judged frames and final buckets are the oracle's, which replays the events topic
in its own order. Where the logs share no key, order within each key is the
same as in one process: then decisions are also those of `weir run --once`.
WEIR_EQUAL_LINES: lines of the generated logs (30,000; 5M by hand); of a Zeek log a third of that is read.
"""

import gzip
import itertools
import json
import os
import random
import shutil
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, cluster_check, traffic, work
from support.place import PATIENCE_S, ROOT, SANITIZED
from support.roles import Roles

DATA = os.environ.get("WEIR_DATA") or os.path.join(ROOT, "..", "shared", "data")
LINES = int(os.environ.get("WEIR_EQUAL_LINES", 6000 if SANITIZED else 30000))
# A log's many lines are judged in a time that grows with them.
PATIENCE = 4 * PATIENCE_S + LINES // 2000

LIMITS = [traffic.sliding(10, "1m"), traffic.fixed(100, "1h"), traffic.fixed(1000, "1d")]


def numbered(*zones):
    """Zones with ids."""
    return [dict(zone, id=number) for number, zone in enumerate(zones, 1)]


def judge(place, served, zones, sources, partitions, limiters=3):
    """Runs the cluster on the sources (one list a collector) to their end; gives its check and its Roles."""
    with Roles(place, served, zones, bus={"partitions": partitions}, archiver={"enabled": True},
               limiter={"checkpoint_interval": "200ms"}, deadletter={"rate": 0}) as roles:
        roles.apply()
        crew = [roles.limiter() for _ in range(limiters)]
        for role in crew:
            role.until(role.is_ready, "is ready", PATIENCE)
        collectors = [roles.collector(own) for own in sources]
        whole = once(place, zones, [source for own in sources for source in own])
        matched = sum(counts["matched"] for counts in whole["zones"].values())
        crew[0].until(lambda: sum(role.value("weir_limiter_verdicts_total") for role in crew) >= matched,
                      f"{matched} verdicts", PATIENCE)
        for role in collectors + crew:
            assert role.stop(PATIENCE) == 0, role.said()[-2000:]
        verdicts = cluster_check.Check(served)
        verdicts.decisions()
        verdicts.judged()
        verdicts.state(place)
        judgements = sum(len(bits) for one in verdicts.partitions.values() for _, bits in one.judged.values())
        fresh = judgements - dropped_pairs(verdicts)
        assert fresh == matched, f"{fresh} judgements of {judgements} count, {matched} are due"
        return verdicts


def dropped_pairs(verdicts):
    """Pairs that count no more: whoever had to make a new producer has sent their events again, at old positions."""
    return sum(bit == 8 for one in verdicts.partitions.values() for _, bits in one.judged.values() for bit in bits)


def once(place, zones, sources):
    """The summary of one undisturbed process; its decisions are in the file `once`."""
    config = place.config(zones, [{name: value for name, value in source.items() if name != "follow"}
                                  for source in sources], "once.json", deadletter={"rate": 0})
    return place.good("run", "--once", "--config", config, "--decisions", place.path("once"), "--shadow",
                      place.path("once-shadow"), "--summary", "json").summary()


def require_once(place, verdicts):
    """Decisions, bucket by bucket and without their ids, are those of the one process."""
    for name, path in (("decisions", "once"), ("shadow", "once-shadow")):
        got = traffic.by_bucket([json.loads(line) for one in verdicts.partitions.values()
                                 for _, _, line in getattr(one, name)])
        with open(place.path(path), "rb") as file:
            want = traffic.by_bucket([json.loads(line) for line in file])
        assert got.keys() == want.keys(), f"{name}: other buckets: {list(got.keys() ^ want.keys())[:5]}"
        for bucket, decisions in want.items():
            assert got[bucket] == decisions, f"{name} of {bucket}: {got[bucket][:3]} is not {decisions[:3]}"


def real_log(*names):
    """The path of a log of ../shared/data."""
    path = os.path.join(DATA, *names)
    if not os.path.exists(path):
        raise cases.Skipped(f"there is no {path}")
    return path


def web_logs(place):
    """Sources of Apache's, nginx's and NASA's logs."""
    shutil.copytree(real_log("nginx-erddap-2024"), place.path("nginx"))
    apache, nasa = real_log("apache-semicomplete-2015.log.gz"), real_log("nasa-http-1995-08-01.tsv.gz")
    return [{"type": "file", "path": apache, "format": "combined", "follow": True},
            {"type": "file", "path": place.path("nginx", "access.log.*.gz"), "format": "combined", "follow": True},
            {"type": "file", "path": nasa, "follow": True,
             "format": {"type": "delimited", "unit": "s", "fields": {"ip": "host", "path": "url"}}}]


def zeek_log(place, name, path):
    """A source of a Zeek log's first lines, where path names the field that stands for one."""
    with gzip.open(real_log(f"zeek-{name}-2018.json.gz")) as file:
        log = place.write(f"zeek-{name}.json", b"".join(itertools.islice(file, LINES // 3)))
    return {"type": "file", "path": log, "follow": True,
            "format": {"type": "json", "time": "ts", "fields": {"ip": "id.orig_h", "path": path}}}


def real_zones():
    """Zones that all of these logs have the fields for."""
    return numbered(traffic.zone("site", LIMITS, key=["ip"]),
                    traffic.zone("tried", [traffic.sliding(3, "1s")], key=["ip"], mode="shadow", block_for="1m"),
                    traffic.zone("page", [traffic.sliding(20, "1m")], key=["ip", "path"], count="all"))


def test_real_logs_on_8_partitions(place):
    """Apache, nginx and NASA's logs, one a collector: each client is in one log alone, or order decides."""
    with cluster.shared() as served:
        verdicts = judge(place, served, real_zones(), [[source] for source in web_logs(place)], 8)
        assert verdicts.wanted > 100, verdicts.wanted


def test_real_logs_on_64_partitions(place):
    """The same and two of Zeek's, which are JSON, full of late lines, and have their clients in common."""
    apache, nginx, nasa = web_logs(place)
    sources = [[apache, nginx], [nasa, zeek_log(place, "dns", "query")], [zeek_log(place, "ssl", "server_name")]]
    with cluster.shared() as served:
        verdicts = judge(place, served, real_zones(), sources, 64)
        assert verdicts.wanted > 100, verdicts.wanted


def test_logs_with_shared_keys_on_64_partitions(place):
    """Three logs race on the same users: the log's own order decides, and the oracle follows it."""
    zones = numbered(traffic.zone("site", LIMITS),
                     traffic.zone("paths", [traffic.sliding(200, "10s")], key=["path"]),
                     traffic.zone("all", [traffic.fixed(2000, "1m")], key=[]))
    with cluster.shared() as served:
        sources = [[traffic.source(crowd(place, number, "u"))] for number in range(3)]
        verdicts = judge(place, served, zones, sources, 64)
        assert verdicts.wanted > 100, verdicts.wanted


def test_logs_without_shared_keys_equal_one_process(place):
    """Each user is in one log: decisions are those of one process, in each bucket's order."""
    zones = numbered(traffic.zone("site", LIMITS), traffic.zone("held", [traffic.sliding(3, "30s")], block_for="2m"),
                     traffic.zone("watch", [traffic.sliding(1, "1m")], mode="shadow"))
    with cluster.shared() as served:
        sources = [[traffic.source(crowd(place, number, f"u{number}-"))] for number in range(3)]
        verdicts = judge(place, served, zones, sources, 8)
        require_once(place, verdicts)
        assert verdicts.wanted > 100, verdicts.wanted


def test_a_generated_log_equals_one_process(place):
    """Lines of `weir generate` with abusers, split by client among three collectors."""
    path = work.generated(place, "access.log", LINES, users=max(1000, LINES // 25), abusers=20)
    parts = [open(place.path(f"part-{number}.log"), "wb") for number in range(3)]
    with open(path, "rb") as file:
        for line in file:
            parts[zlib.crc32(line.split(b" ", 1)[0]) % 3].write(line)
    for part in parts:
        part.close()
    with cluster.shared() as served:
        zones = numbered(traffic.zone("site", LIMITS, key=["ip"]))
        verdicts = judge(place, served, zones, [[work.source(part.name)] for part in parts], 8)
        require_once(place, verdicts)
        assert verdicts.wanted > 10, verdicts.wanted


def crowd(place, number, prefix):
    """The path of a log of many users."""
    lines = traffic.crowd(random.Random(number), LINES // 3, 500, prefix=prefix, disorder=0.05)
    return place.write(f"log-{number}", b"".join(lines))


if __name__ == "__main__":
    cases.main(globals())
