#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weir needs at sizes that nobody has run: the tables of limiter/scale.md, from figures that were measured.

usage: tests/bench/scale.py [FIGURES]

FIGURES (tests/bench/scale.json) has for each figure the lowest and the highest that was measured, and the words of
RESULTS.md that it is of. Bounds are read from the code. Everything else is assumed, and stands here: LOAD and PRICES. To see
what your own come to, change them and run this again.
"""

import json
import math
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SIZES = ((10_000_000, 1_000_000), (100_000_000, 10_000_000), (1_000_000_000, 100_000_000))  # users, events a second

LOAD = {  # assumed: each user is as likely as any other to be the next, which is the worst for memory, store and archive
    "busy": 0.5,             # share of a core that is used, so that one machine's work fits on the others
    "filled": 0.8,           # share of the memory that is given to buckets
    "copies": 3,             # of a message (bus.replication); each costs a broker as much as the first
    "key_bytes": 16,         # of a key, at most once for an event: the more users, the less often a frame repeats one
    "retention_s": 7200,     # bus.retention; the default is 7 days
    "collectors": 32,        # processes that read lines
    "linger_s": 0.05,        # bus.linger; the default is 2 ms
    "blocked": 1 / 10_000,   # share of users who are blocked anew in a minute
    "block_s": 600,          # how long each is blocked
    "decision_bytes": 300,
    "gateways": 100,
    "machine_cores": 16,
}
PRICES = {  # assumed, in any currency; an hour of a core, of a GiB of memory, a month of a GiB of disk, a GiB over the network
    "core_hour": 0.04, "memory_hour": 0.005, "disk_month": 0.08, "network": 0.01,
}
HOURS = 730  # of a month
GIB, MINUTE, DAY = 1 << 30, 60, 86_400

BOUNDS = {  # name -> the file that it is in
    "WEIR_PARTITIONS_MAX": "common/policy/policy.h",
    "OWNERS_PLACES_MAX": "limiter/owners/owners.h",
    "BLOCK_TABLE_MAX_DEFAULT": "deploy/gateways/table/block_table.h",
    "CLOUD_ADDRESSES_MAX": "deploy/gateways/target/cloud/cloud.h",
    "SLAB_CHUNK_SHIFT": "limiter/memory/slab.h",
    "SLAB_GRANULE": "limiter/memory/slab.h",
}
DEFAULTS = {"bus.partitions": None, "limiter.checkpoint_interval": "s", "archiver.interval": "s", "bus.linger": "ms"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def bound(name):
    """A number of the code."""
    return int(re.search(rf"\b{name}\b(?: =)? (\d+)", read(BOUNDS[name])).group(1))


def default(name):
    """A setting's default, as common/settings.md has it: a number, or seconds."""
    number = re.search(rf"^\| `{re.escape(name)}` \|[^|]*\| `(\d+)", read("common/settings.md"), re.MULTILINE).group(1)
    return int(number) / 1000 if DEFAULTS[name] == "ms" else int(number)


def short(number):
    """A number above 0: two digits that count, and a letter."""
    number = float(f"{number:.1e}")
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")):
        if number >= size:
            number /= size
            return f"{number:.{int(number < 10)}f}{letter}"
    return f"{number:.2f}"


def both(low, high):
    """From the one to the other."""
    low, high = sorted((low, high))
    return short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"


def distinct(users, events):
    """How many users are among so many events."""
    return users * -math.expm1(-events / users)


def partitions(rate, figures):
    """A power of two: no partition is more than a quarter of a thread, by the highest cost."""
    return 2 ** math.ceil(math.log2(max(16, rate * figures["limiter_ns"]["high"] / 1e9 / 0.25)))


def needs(users, rate, figures):
    """One size: what is needed, by name."""
    def cores(name, share=1):
        return [share * rate * figures[name][end] / 1e9 / LOAD["busy"] for end in ("low", "high")]
    need = {"collector": cores("collector_ns"), "broker": cores("broker_ns", LOAD["copies"]), "limiter": cores("limiter_ns")}
    need["memory"] = [users * figures["user_bytes"][end] / GIB / LOAD["filled"] for end in ("low", "high")]
    need["bus"] = [rate * figures["bus_bytes"]["low"], rate * (figures["bus_bytes"]["high"] + LOAD["key_bytes"])]
    need["disk"] = [bytes_s * LOAD["retention_s"] * LOAD["copies"] / GIB for bytes_s in need["bus"]]
    need["partitions"] = partitions(rate, figures)
    need["frame"] = rate / LOAD["collectors"] / need["partitions"] * LOAD["linger_s"]
    need["messages"] = LOAD["collectors"] * need["partitions"] / LOAD["linger_s"]
    need["interval"] = next(seconds for seconds in (10, 30, 60, 120, 300, 600, 1200, 1800, 3600)
                            if distinct(users, rate * seconds) / seconds <= figures["stored_per_s"]["low"])
    need["replay"] = [rate * need["interval"] / need["partitions"] / figures["replayed_per_s"][end] for end in ("low", "high")]
    need["decisions"] = users * LOAD["blocked"] / MINUTE
    need["blocks"] = need["decisions"] * LOAD["block_s"]
    need["told"] = need["decisions"] * LOAD["decision_bytes"] * LOAD["gateways"]
    return need


def money(need):
    """What one size costs in a month, by part: the lowest and the highest."""
    cost = {"cores": [sum(need[name][end] for name in ("collector", "broker", "limiter")) * HOURS * PRICES["core_hour"] for end in (0, 1)],
            "memory": [gib * HOURS * PRICES["memory_hour"] for gib in need["memory"]],
            "the log's disk": [gib * PRICES["disk_month"] for gib in need["disk"]],
            "network": [(bytes_s * (LOAD["copies"] + 1) + need["told"]) * HOURS * 3600 / GIB * PRICES["network"]
                        for bytes_s in need["bus"]]}
    cost["all"] = [sum(part[end] for part in cost.values()) for end in (0, 1)]
    cost["the log's disk by the default of 7 days"] = [part * 7 * DAY / LOAD["retention_s"] for part in cost["the log's disk"]]
    return cost


def table(head, rows):
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"


def head_of(first):
    return [first, *(f"{short(users)} users, {short(rate)} events/s" for users, rate in SIZES)]


def need_table(figures):
    """What each size needs."""
    found = [needs(users, rate, figures) for users, rate in SIZES]
    rows = (("memory for buckets, GiB", lambda need: both(*need["memory"])),
            ("cores of collectors", lambda need: both(*need["collector"])),
            ("cores of brokers", lambda need: both(*need["broker"])),
            ("cores of limiters", lambda need: both(*need["limiter"])),
            ("into the log, MB/s", lambda need: both(*(part / 1e6 for part in need["bus"]))),
            ("into one partition, MB/s", lambda need: both(*(part / 1e6 / need["partitions"] for part in need["bus"]))),
            ("disk of the log, GiB, all copies", lambda need: both(*need["disk"])),
            ("`bus.partitions`", lambda need: str(need["partitions"])),
            ("events in a frame", lambda need: short(need["frame"])),
            ("frames a second", lambda need: short(need["messages"])),
            ("`limiter.checkpoint_interval` that one MariaDB keeps up with, s", lambda need: str(need["interval"])),
            ("replay of a lost limiter's partitions, s", lambda need: both(*need["replay"])),
            ("decisions a second", lambda need: short(need["decisions"])),
            ("blocks that a gateway holds", lambda need: short(need["blocks"])),
            ("decisions to all gateways, MB/s", lambda need: short(need["told"] / 1e6)))
    return table(head_of("what"), [[name, *(of(need) for need in found)] for name, of in rows])


def money_table(figures):
    """What each size costs."""
    costs = [money(needs(users, rate, figures)) for users, rate in SIZES]
    return table(head_of("a month"), [[name, *(both(*cost[name]) for cost in costs)] for name in costs[0]])


def checks_table(figures):
    """What it takes where each event is a check."""
    rows = [[name, *(short(rate * figures["check_ns"][end] / 1e9 / LOAD["busy"]) for _, rate in SIZES)]
            for end, name in (("low", "64 at a time"), ("high", "one at a time"))]
    return table(head_of("cores for checks by RESP"), rows)


def break_table(figures):
    """At which events a second each bound is met, with ten users for each."""
    per_user = SIZES[0][0] / SIZES[0][1]
    seconds, archive_s = default("limiter.checkpoint_interval"), default("archiver.interval")
    thread = 1e9 / figures["limiter_ns"]["high"]
    most, few = bound("WEIR_PARTITIONS_MAX"), default("bus.partitions")
    changed = distinct(per_user, seconds) / seconds  # a second, of one event a second
    rows_of = 2 * distinct(per_user, archive_s) / archive_s  # of an hour and of a day
    live = LOAD["blocked"] / MINUTE * LOAD["block_s"]  # blocks of one user
    stored, hour = figures["stored_per_s"]["low"], 3600
    shard = (1 << 31) * bound("SLAB_GRANULE")  # references of 31 bits
    found = [
        (figures["archived_rows"]["low"] / rows_of, "an archiver on one MariaDB, a row for each key, hour and day"),
        (stored / changed, f"one store, a checkpoint each {seconds} s (the default)"),
        (bound("CLOUD_ADDRESSES_MAX") / live / per_user, "a cloud's address list (`CLOUD_ADDRESSES_MAX`)"),
        (thread, "one key, as its partition is one thread's"),
        (few * thread * LOAD["busy"], f"{few} partitions (the default), each on a thread"),
        (bound("BLOCK_TABLE_MAX_DEFAULT") / live / per_user, "blocks in one gateway's table (`BLOCK_TABLE_MAX_DEFAULT`)"),
        (stored * hour / distinct(per_user, hour), "one store, a checkpoint each hour (the most that can be set)"),
        (bound("OWNERS_PLACES_MAX") * LOAD["machine_cores"] * thread * LOAD["busy"],
         f"limiters of {LOAD['machine_cores']} cores that answer checks (`OWNERS_PLACES_MAX`)"),
        (most * thread * LOAD["busy"], f"{most} partitions (`WEIR_PARTITIONS_MAX`), each on a thread"),
        (most * shard / figures["user_bytes"]["high"] / per_user, f"buckets of {most} partitions, {short(shard / GIB)} GiB each (`SLAB_CHUNKS_MAX`)"),
    ]
    return table(["events/s", "users", "what is met there"],
                 [[short(rate), short(rate * per_user), what] for rate, what in sorted(found)])


def tables(figures):
    """All tables of the page."""
    return [need_table(figures), money_table(figures), break_table(figures), checks_table(figures)]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/bench/scale.json")
    with open(path, encoding="utf-8") as file:
        print("\n".join(tables(json.load(file))), end="")


if __name__ == "__main__":
    main()
