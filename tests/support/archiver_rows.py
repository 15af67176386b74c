# SPDX-License-Identifier: Apache-2.0
"""Rows as an archiver keeps them, made at random from a seed, and what the API is to say of them: a recount in Python."""

import json
import random
import struct

HOUR_MS, DAY_MS = 3600 * 1000, 24 * 3600 * 1000
FIRST_MS = 1_700_006_400_000  # a day's beginning
DAYS = 40
ODD_KEYS = [b"", b"a|b", b"back\\\\slash", b'quo"te, and comma', b"two\nlines", "z\u00fcrich \u6771".encode(),
            b"\xff\xfe\x80 no text", b"\xed\xa0\x80", b"%41+b&c=d", b"'; DROP TABLE x; --", b"k" * 1024,
            b'=HYPERLINK("http://x")', b"-1", b"-", b"@x", b"+4, 5", b"\t=tab", b"a;=b", b'a;"=b', b"a\n-b"]
NAMES = {1: "site", 2: "login", 3: "gone"}
_LIMIT = {"algorithm": "sliding_window", "rate": 10, "window": "1m"}


def shown(key):
    """Bytes as JSON and CSV show them: a byte that is not part of UTF-8 as U+FFFD."""
    text, at = "", 0
    while at < len(key):
        for length in (1, 2, 3, 4):
            try:
                text += key[at:at + length].decode()
                at += length
                break
            except UnicodeDecodeError:
                pass
        else:
            text += "\ufffd"
            at += 1
    return text


def policies():
    """[(version, text)]: the second has removed a zone."""
    zones = [{"id": 1, "name": "site", "key": ["ip"], "limits": [_LIMIT]},
             {"id": 2, "name": "login", "description": "who \"logs\" in", "key": ["user", "ip"],
              "history": {"fields": ["path", "agent"]},
              "mode": "shadow", "block_for": "5m", "limits": [
                  {"algorithm": "gcra", "rate": 5, "window": "1m", "burst": 3},
                  {"algorithm": "queue", "length": 7, "hold": "10s"},
                  {"algorithm": "sliding_window", "rate": 9, "window": "1m", "lateness": "2m"}]},
             {"id": 3, "name": "gone", "key": [], "limits": [_LIMIT]}]
    return [(1, json.dumps({"zones": zones})), (2, json.dumps({"zones": zones[:2]}))]


def count_tables(hourly):
    """{table: rows} of all counts; hourly: (zone, key, hour, passed, blocked, late) of each."""
    daily, zones = {}, {}
    for zone, key, hour, *counts in hourly:
        for sums, where in ((daily, (hour // DAY_MS * DAY_MS, zone, key)), (zones, (zone, hour, len(key) % 3))):
            row = sums.setdefault(where, [0, 0, 0])
            row[:] = (one + more for one, more in zip(row, counts))
    return {"count_hourly": hourly, "count_daily": [(*where, *counts) for where, counts in daily.items()],
            "zone_hourly": [(*where, *counts) for where, counts in zones.items()]}

# What was kept with an event: nothing, as of an older policy; a formula of a stranger's; markup, quotes and line ends.
FIELDS = [None, '{"path":"/login"}', '{"path":"=HYPERLINK(1)","agent":"@x"}',
          '{"path":"/<script>\\"\\n,\u00e9","agent":"\ufffd"}']


class Rows:
    """All of them. Keys are bytes; a decision's id is (at_ms, partition, offset, pair)."""

    def __init__(self, seed, now_ms):
        self.random = random.Random(seed)
        self.now_ms = now_ms
        self.keys = [f"192.0.2.{number}".encode() for number in range(30)] + ODD_KEYS
        self.hourly = {}  # (zone, key, hour): [passed, blocked, late]
        for zone in NAMES:
            for key in self.random.sample(self.keys, 25) + ODD_KEYS[:3]:
                for _ in range(self.random.randint(1, 60)):
                    hour = FIRST_MS + self.random.randrange(DAYS * 24) * HOUR_MS
                    self.hourly[zone, key, hour] = [self.random.randint(0, 9) for _ in range(3)]
        # One day of many keys, with many ties: more than one part of CSV.
        self.crowd = [b"c%05d" % number for number in range(10500)]
        for key in self.crowd:
            self.hourly[1, key, FIRST_MS + (DAYS + 1) * DAY_MS] = [self.random.randint(0, 3), self.random.randint(0, 1), 0]
        self.decisions = [self._decision(number) for number in range(2300)] + self._blocks()
        events = {(2, self.random.choice([self.keys[0], self.random.choice(self.keys[1:3] + ODD_KEYS[:8])]),
                   FIRST_MS + self.random.randrange(3000), self.random.randrange(3), number, 0,
                   self.random.randrange(2)) for number in range(4600)}
        self.events = [(*event, FIELDS[event[4] % len(FIELDS)]) for event in sorted(events)]
        # As large as a stranger can make them.
        self.events += [(2, b"large", FIRST_MS + number, 0, 9000 + number, 0, 0, json.dumps({"path": "x" * 50_000}))
                        for number in range(90)]

    def _decision(self, number, **more):
        """A row of decision_history, as a dictionary."""
        at_ms = FIRST_MS + self.random.randrange(700)  # several at a time
        ordered = self.random.random() < 0.1
        row = {"at_ms": at_ms, "partition_id": self.random.randrange(3), "log_offset": number,
               "pair": self.random.randrange(2), "zone": self.random.choice(list(NAMES.values())),
               "bucket": self.random.choice(self.keys), "action": "lift" if self.random.random() < 0.1 else "block",
               "until_ms": at_ms + 1000, "mode": self.random.choice(["enforce", "shadow"]),
               "algorithm": None if ordered else "sliding_window", "rate": None if ordered else 10,
               "window_ms": None if ordered else 60000, "held": None if ordered else 10,
               "ordered_by": "jo" if ordered else None, "reason": 'too "much", said \u00e9ve' if ordered else None,
               "nth": None if ordered else self.random.choice([None, 1, 2, 300])}
        return {**row, **more}

    def _blocks(self):
        """Decisions about the present moment: (block, whether something later undoes it) in many forms."""
        made, number = [], 10000
        for count in range(60):
            key, begin = b"b%d" % count, self.now_ms - 600_000 + count
            about = {"zone": NAMES[1 + count % 2], "bucket": key, "partition_id": count % 3, "mode": "enforce"}
            block = {**about, "action": "block", "at_ms": begin, "until_ms": self.now_ms + 3600_000}
            made.append(self._decision(number, **block))
            if count % 5 == 1:  # lifted, by an operator's clock that is a little behind
                made.append(self._decision(number + 1, **{**block, "action": "lift", "at_ms": begin - 2000,
                                                          "until_ms": begin - 2000}))
            if count % 5 == 2:  # lifted, and blocked again
                made.append(self._decision(number + 1, **{**block, "action": "lift", "until_ms": begin}))
                made.append(self._decision(number + 2, **{**block, "at_ms": begin + 5}))
            if count % 5 == 3:  # over by itself
                made[-1]["until_ms"] = self.now_ms - 1000
            if count % 10 == 4:  # of a zone in shadow mode
                made[-1]["mode"] = "shadow"
            number += 10
        # Long ago, and without an end.
        made.append(self._decision(number, zone="site", bucket=b"long", partition_id=1, mode="enforce", action="block",
                                   at_ms=self.now_ms - 9 * DAY_MS, until_ms=253402300800000))
        number += 10
        # A zone that was removed: one lift for each partition.
        for partition in range(2):
            block = {"zone": "gone", "bucket": b"g%d" % partition, "partition_id": partition, "mode": "enforce",
                     "action": "block", "at_ms": self.now_ms - 1000, "until_ms": self.now_ms + 3600_000}
            made.append(self._decision(number, **block))
            if partition == 0:
                made.append(self._decision(number + 1, **{**block, "bucket": None, "action": "lift"}))
        # A policy that removes a zone, or puts it into shadow mode, ends blocks of days before.
        for count, zone in enumerate(("gone", "login")):
            block = {"zone": zone, "bucket": b"days", "partition_id": 2, "mode": "enforce", "action": "block",
                     "at_ms": self.now_ms - 9 * DAY_MS, "until_ms": self.now_ms + 20 * DAY_MS}
            lift = {"bucket": None, "action": "lift", "at_ms": self.now_ms - 5 * DAY_MS, "until_ms": self.now_ms - 5 * DAY_MS}
            made.append(self._decision(9000 + 10 * count, **block))
            made.append(self._decision(9001 + 10 * count, **{**block, **lift}))
        return made

    def tables(self):
        """{table: rows} to insert."""
        def decided(mode, with_key):
            return [tuple(row.values()) for row in self.decisions
                    if row["mode"] == mode and (row["bucket"] is not None) == with_key]
        recreated = {1: struct.pack("<4sQ4Q", b"\x08", 3, 10**10, 0, 0, 0), 2: struct.pack("<BQQ6Q", 2, 70, 10**10 + 990, *6 * (0,))}
        return {"policy_version": policies(), **count_tables([(*at, *counts) for at, counts in self.hourly.items()]),
                "decision_history": decided("enforce", True), "shadow_history": decided("shadow", True),
                "decision_history (at_ms, partition_id, log_offset, pair, zone, bucket,"
                " action, until_ms, mode, algorithm, rate, window_ms, held, ordered_by, reason, nth)": decided("enforce", False),
                "zone_txn": self.events,
                "partition_state": [(role, partition, 3, 40 + partition, 1000 + partition, FIRST_MS, 2,
                                     recreated[role] if partition == 1 else b"\x00secret")
                                    for role in (1, 2) for partition in range(3)]}

    # ---- what is to be answered ----

    def counts(self, zone, key, span_ms, first_ms, last_ms):
        """[[at, passed, blocked, late]] of first <= at < last; key None: all of them."""
        found = {}
        for (one_zone, one_key, hour), counts in self.hourly.items():
            at_ms = hour // span_ms * span_ms
            if one_zone == zone and key in (None, one_key) and first_ms <= at_ms < last_ms:
                row = found.setdefault(at_ms, [at_ms, 0, 0, 0])
                for place, count in enumerate(counts):
                    row[place + 1] += count
        return [found[at_ms] for at_ms in sorted(found)]

    def top(self, zone, first_ms, last_ms, by):
        """[[key, passed, blocked, late, total]], the most first."""
        found = {}
        for (one_zone, key, hour), counts in self.hourly.items():
            if one_zone == zone and first_ms <= hour < last_ms:
                row = found.setdefault(key, [key, 0, 0, 0, 0])
                for place, count in enumerate(counts):
                    row[place + 1] += count
                row[4] = row[1] + row[2]
        place = {"passed": 1, "blocked": 2, "total": 4}[by]
        return sorted((row for row in found.values() if row[place] > 0), key=lambda row: (-row[place], row[0]))

    def newest(self, modes=("enforce",), **wanted):
        """Decisions with these values, newest first, as the API shows them."""
        rows = [row for row in self.decisions
                if row["mode"] in modes and all(row[name] == value for name, value in wanted.items())]
        rows.sort(key=lambda row: (row["at_ms"], row["partition_id"], row["log_offset"], row["pair"]), reverse=True)
        return [decision_shown(row) for row in rows]

    def blocked_now(self):
        """The ids of the decisions that hold."""
        held, recent = [], [row for row in self.decisions if row["at_ms"] > self.now_ms - 10 * DAY_MS]
        for row in recent:
            later = [one for one in recent
                     if one["zone"] == row["zone"] and one["bucket"] in (row["bucket"], None)
                     and one["mode"] == "enforce" and one["partition_id"] == row["partition_id"]
                     and (one["log_offset"], one["pair"]) > (row["log_offset"], row["pair"])]
            if row["action"] == "block" and row["mode"] == "enforce" and row["until_ms"] > self.now_ms + 60_000 \
                    and not later:
                held.append(identity(row))
        return sorted(held)


def identity(row):
    """A decision's id."""
    return f"{row['partition_id']}-{row['log_offset']}-{row['pair']}"


def decision_shown(row):
    """A row as the API's object."""
    limit = {"algorithm": row["algorithm"], "rate": row["rate"], "window_ms": row["window_ms"]}
    return {"id": identity(row), "zone": row["zone"], "key": None if row["bucket"] is None else shown(row["bucket"]),
            "action": row["action"], "at_ms": row["at_ms"], "until_ms": row["until_ms"], "mode": row["mode"],
            "limit": None if row["algorithm"] is None else limit, "held": row["held"],
            "ordered_by": row["ordered_by"], "reason": row["reason"], "nth": row["nth"]}
