# SPDX-License-Identifier: Apache-2.0
"""Holds what an archiver stored against a recount of what the oracle judged.

    recount = archive_check.Recount(history={3})
    recount.judged(partition, offset, events, bits)       # each frame once
    recount.decision(id, joined_key, decision)            # each decision once
    recount.require(read)                                 # read(sql): the rows, bytes for texts

Everything is counted the slow way: an event at a time, into dictionaries.
"""

import collections
import json
import os
import sqlite3
import sys

from support import frames
from support.place import ROOT

sys.path.append(os.path.join(ROOT, "tests", "conformance", "oracle"))

# pylint: disable=wrong-import-position
import follow
import keys

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
_SHOWN = 3


def some_history(rng, zones):
    """The zones, some of them with a history."""
    return [{**zone, "history": rng.random() < 0.3} for zone in zones]


def history_zones(zones):
    """The ids of those with a history: where they are not given they go by place."""
    return {zone.get("id", number) for number, zone in enumerate(zones, 1) if zone.get("history")}


def from_cluster(check, zones):
    """The recount of what a cluster_check.Check has replayed."""
    recount = Recount(history_zones(zones))
    for number, one in check.partitions.items():
        for offset, (events, bits) in one.judged.items():
            recount.judged(number, offset, events, bits)
        for decision_id, key, line in one.decisions + one.shadow:
            zone = json.loads(line)
            recount.decision(decision_id, key and key[len(zone["zone"].encode()) + 1:], zone)
    return recount


def from_replay(lines, results, zones):
    """The recount of a local log: what `weir decode` printed, and what the oracle's replay of it gave."""
    recount = Recount(history_zones(zones))
    verdicts = {decision_id: verdict for partition in results.values() for decision_id, verdict in partition}
    for line in lines:
        frame = json.loads(line)
        if frame["kind"] != "events":
            continue
        events = list(follow.events_of(frame))
        bits, place = [], f"{frame['partition']}-{frame['offset']}"
        for number in range(sum(len(event["zones"]) for event in events)):
            verdict = verdicts.get(f"{place}-{number}")
            bits.append(frames.NONE if verdict is None or verdict.word == "done" else
                        (frames.BLOCK if verdict.word == "block" else 0) | (frames.LATE if verdict.late else 0))
        recount.judged(frame["partition"], frame["offset"], events, bits)
    for decision_id, verdict in verdicts.items():
        if verdict.decision is not None:
            key = verdict.decision["key"]
            values = key and [value if isinstance(value, bytes) else value.encode() for value in key]
            recount.decision(decision_id, None if key is None else keys.joined(values), verdict.decision)
    return recount


def require_judged_lines(read, zones, lines):
    """Requires hourly counts to be those of the verdicts that `weir run --once --judged` has written.

    A key with bytes outside UTF-8 has other letters there: such are compared in sum."""
    names = {zone["name"]: zone.get("id", number) for number, zone in enumerate(zones, 1)}
    want = collections.Counter()
    for line in lines.splitlines():
        verdict = json.loads(line)
        bucket = keys.joined([value.encode() for value in verdict["key"]])
        place = names[verdict["zone"]], _plain(bucket), verdict["at"] // HOUR_MS * HOUR_MS
        want[(*place, "blocked" if verdict["verdict"] == "block" else "passed")] += 1
        want[(*place, "late")] += verdict["late"]
    got = collections.Counter()
    for zone, bucket, hour, *counts in read("SELECT zone_id, bucket, hour_ms, passed, blocked, late FROM count_hourly"):
        for name, count in zip(("passed", "blocked", "late"), counts):
            got[zone, _plain(bucket), hour, name] += count
    _require_equal("count_hourly", set((+got).items()), set((+want).items()))


def _plain(bucket):
    return None if "\ufffd" in bucket.decode(errors="replace") else bucket


def dump(read):
    """All that is archived, as lines: to compare two runs."""
    rows = [(table, *row) for table in ("count_hourly", "count_daily", "zone_hourly", "decision_history", "shadow_history", "zone_txn")
            for row in read(f"SELECT * FROM {table}")]
    return b"\n".join(sorted(repr(row).encode() for row in rows))


def sqlite_reader(path):
    """read() of a state directory's database."""
    def read(sql):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        connection.text_factory = bytes
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()
    return read


def mariadb_reader(mariadb):
    """read() of a server's database."""
    def read(sql):
        return [tuple(value.encode() if isinstance(value, str) else value for value in row)
                for row in mariadb.query(sql)]
    return read


class Recount:
    """What must have been stored."""

    def __init__(self, history=()):
        self._history = frozenset(history)
        self.hourly, self.daily, self.zones = (collections.Counter() for _ in range(3))
        self.decisions, self.shadows, self.events = set(), set(), set()
        self.total = 0

    def judged(self, partition, offset, events, bits):
        """A frame's events, as tests/support/frames.py decodes them, and the bits of its (event, zone) pairs."""
        pair = 0
        for event in events:
            for zone, _ in event["zones"]:
                if not bits[pair] & frames.NONE:
                    self._count(zone, event, bits[pair])
                    if zone in self._history:
                        self.events.add((zone, event["key"], event["time"], partition, offset, pair,
                                         bits[pair] & frames.BLOCK))
                pair += 1

    def _count(self, zone, event, bits):
        self.total += 1
        hour, day = (event["time"] // span * span for span in (HOUR_MS, DAY_MS))
        for name, counts in (("blocked" if bits & frames.BLOCK else "passed", True), ("late", bits & frames.LATE)):
            if counts:
                self.hourly[zone, event["key"], hour, name] += 1
                self.daily[zone, event["key"], day, name] += 1
                self.zones[zone, hour, name] += 1

    def decision(self, decision_id, key, decision):
        """A decision as it is published; key: the joined one, None where it has none."""
        limit = decision.get("limit", {})
        algorithm, rate, window, held = None, None, None, None
        if limit:
            algorithm = limit["algorithm"].encode()
            rate = limit.get("rate", limit.get("length", 1))
            window = limit.get("window", limit.get("hold", limit.get("interval")))
            held = decision["count"]
        texts = [decision[name].encode() if name in decision else None for name in ("by", "reason")]
        kept = self.shadows if decision["mode"] == "shadow" else self.decisions
        kept.add((decision["at"], *map(int, decision_id.split("-")), decision["zone"].encode(), key,
                  decision["action"].encode(), decision["until"], decision["mode"].encode(), algorithm, rate, window, held,
                  *texts, decision.get("nth")))

    def require(self, read):
        """Raises AssertionError where the store has anything else."""
        for table, time, want in (("count_hourly", "hour_ms", self.hourly), ("count_daily", "day_ms", self.daily)):
            rows = {(zone, bucket, at, name): count
                    for zone, bucket, at, *counts in
                    read(f"SELECT zone_id, bucket, {time}, passed, blocked, late FROM {table}")
                    for name, count in zip(("passed", "blocked", "late"), counts) if count}
            _require_equal(table, set(rows.items()), set(want.items()))
        rows = {(zone, at, name): int(count) for zone, at, *counts in
                read("SELECT zone_id, hour_ms, SUM(passed), SUM(blocked), SUM(late) FROM zone_hourly"
                     " GROUP BY zone_id, hour_ms")
                for name, count in zip(("passed", "blocked", "late"), counts) if count}
        _require_equal("zone_hourly", set(rows.items()), set(self.zones.items()))
        for table, want in (("decision_history", self.decisions), ("shadow_history", self.shadows)):
            _require_equal(table, set(read(
                "SELECT at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode, algorithm, rate,"
                f" window_ms, held, ordered_by, reason, nth FROM {table}")), want)
        _require_equal("zone_txn", set(read(
            "SELECT zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked FROM zone_txn")), self.events)

    def stored(self, read):
        """How many judgements the store has counted: to wait until it has all."""
        rows = read("SELECT SUM(passed) + SUM(blocked) FROM count_daily")
        return int(rows[0][0] or 0)


def _require_equal(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: {len(got)} rows and not {len(want)};\n  stored, and not due: "
                             f"{sorted(got - want, key=repr)[:_SHOWN]}\n  due, and not stored: "
                             f"{sorted(want - got, key=repr)[:_SHOWN]}")
