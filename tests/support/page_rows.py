# SPDX-License-Identifier: Apache-2.0
"""A week as an archiver keeps it, for its page: days and nights, a few users who come far too often, their blocks.

    rows = Week(now_ms)
    for table, some in rows.tables().items():
        api.insert(table, some)
"""

import json
import math
import random
import struct

from support.archiver_rows import count_tables

HOUR_MS, DAY_MS = 3600 * 1000, 24 * 3600 * 1000
HOURS = 7 * 24
ZONES = {1: "api", 2: "login", 3: "search", 4: "old-login"}
LIMITS = {1: ("sliding_window", 600, 60_000), 2: ("gcra", 5, 60_000), 3: ("token_bucket", 100, 1000),
          4: ("fixed_window", 10, 3600_000)}
# What a page must show as it stands.
ODD = ["a|b\\|c", "<b>bold</b>&amp;", "zürich 東", "with space+plus%41", "k" * 300]


def policies():
    """[(version, text)]: the second has removed a zone."""
    zones = [{"id": 1, "name": "api", "description": "every call of the API, by client", "key": ["client"],
              "limits": [{"algorithm": "sliding_window", "rate": 600, "window": "1m"},
                         {"algorithm": "fixed_window", "rate": 10000, "window": "1h"}]},
             {"id": 2, "name": "login", "description": "attempts to log in, by user and address", "key": ["user", "ip"],
              "history": {"fields": ["method", "path", "status"]}, "block_for": "5m",
              "limits": [{"algorithm": "gcra", "rate": 5, "window": "1m", "burst": 3}]},
             {"id": 3, "name": "search", "key": ["ip"], "mode": "shadow",
              "limits": [{"algorithm": "token_bucket", "rate": 100, "window": "1s", "burst": 200}]},
             {"id": 4, "name": "old-login", "key": ["ip"],
              "limits": [{"algorithm": "fixed_window", "rate": 10, "window": "1h"}]}]
    return [(1, json.dumps({"zones": zones})), (2, json.dumps({"zones": zones[:3]}))]

# What requests asked for: of a user, of a stranger, and of one who would break the page.
PATHS = ["/login", "/api/session?next=%2Faccount%2Forders%2F2026&lang=de", "/<img src=x onerror=alert(1)>",
         "/" + "very-long-" * 45 + "\u2026", "=cmd|' /C calc'!A0"]


class Week:
    """Its rows, as tuples in the columns' order; users: for each zone; more decisions: of the first zone's users."""

    def __init__(self, now_ms, users=24, decisions=0, seed=11):
        self.random = random.Random(seed)
        self.now_ms, self.end_ms = now_ms, now_ms // HOUR_MS * HOUR_MS
        self.hourly, self.decisions, self.events = [], [], []
        for zone in ZONES:
            keys = [f"198.51.{number // 250}.{number % 250}" for number in range(users)]
            if zone == 2:
                keys = [f"user{number}|{key}" for number, key in enumerate(keys)]
            for number, key in enumerate(keys + (ODD if zone == 1 else [])):
                self._user(zone, key.encode(), 400 / (1 + number) + 1, noisy=number % 7 == 1)
        for number in range(decisions):
            self._block(1, f"198.51.{number % users // 250}.{number % users % 250}".encode(),
                        self.end_ms - self.random.randrange(HOURS * HOUR_MS))
        self._live()

    def _user(self, zone, key, rate, noisy):
        for back in range(HOURS, 0, -1):
            hour = self.end_ms - (back - 1) * HOUR_MS
            daily = 1 + 0.8 * math.sin(hour / DAY_MS * 2 * math.pi - 2)
            came = int(self.random.gammavariate(2, rate * daily / 2))
            if came == 0:
                continue
            over = int(came * self.random.uniform(0.1, 0.6)) if noisy and self.random.random() < 0.15 else 0
            late = int(came * 0.02) if self.random.random() < 0.05 else 0
            self.hourly.append((zone, key, hour, came - over, over, late))
            if over > 0 and hour < self.end_ms:
                self._block(zone, key, hour + self.random.randrange(HOUR_MS))
            if zone == 2:
                self._requests(zone, key, hour, min(came, 3))

    def _requests(self, zone, key, hour, count):
        for _ in range(count):
            number = len(self.events)
            fields = {"method": "POST", "path": PATHS[number % len(PATHS)], "status": "401"} if number % 7 else None
            self.events.append((zone, key, hour + self.random.randrange(HOUR_MS), 0, number, 0,
                                self.random.randrange(2), fields and json.dumps(fields)))

    def _block(self, zone, key, at_ms, **more):
        algorithm, rate, window_ms = LIMITS[zone]
        row = {"at_ms": at_ms, "partition_id": len(self.decisions) % 4, "log_offset": len(self.decisions), "pair": 0,
               "zone": ZONES[zone].encode(), "bucket": key, "action": b"block", "until_ms": at_ms + 300_000,
               "mode": b"shadow" if zone == 3 else b"enforce", "algorithm": algorithm.encode(), "rate": rate,
               "window_ms": window_ms, "held": rate + 1, "ordered_by": None, "reason": None}
        self.decisions.append(tuple({**row, **more}.values()))

    def _live(self):
        """What is in force now; one of them ordered, and without an end in sight."""
        for number in range(12):
            self._block(1 + number % 2, b"live%d" % number, self.now_ms - 60_000 * (number + 1),
                        until_ms=self.now_ms + 3600_000 * (number + 1))
        self._block(1, b"banned <script>", self.now_ms - DAY_MS, until_ms=self.now_ms + 400 * DAY_MS, algorithm=None,
                    rate=None, window_ms=None, held=None, ordered_by=b"jo", reason="a scraper – “again”".encode())

    def _states(self):
        """The topic of events was recreated in partitions 2 and 3: their numbers go on above their offsets."""
        made = []
        for partition in range(4):
            base, offset = 10**10 * (partition // 2), 900_000 - 37 * partition
            extras = struct.pack("<4sQ4Q", b"\x08", 3, base, 0, 0, 0), \
                struct.pack("<BQQ6Q", 2, 70, base + offset - 37 * partition, *6 * (0,))
            made += [(role, partition, 1 + role, 5000 + partition, next_offset, self.now_ms - 900 * role, 2, extra)
                     for role, next_offset, extra in zip((1, 2), (offset, 9000 + partition), extras)]
        return sorted(made)

    def tables(self):
        """{table: rows} to insert."""
        ordered = [tuple(one for one in row if one is not None) for row in self.decisions if row[9] is None]
        limited = {mode: [row[:13] for row in self.decisions if row[9] is not None and row[8] == mode]
                   for mode in (b"enforce", b"shadow")}
        short = ("at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode, algorithm, rate,"
                 " window_ms, held")
        return {"policy_version": policies(), "partition_state": self._states(), **count_tables(self.hourly),
                f"decision_history ({short})": limited[b"enforce"], f"shadow_history ({short})": limited[b"shadow"],
                "decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode,"
                " ordered_by, reason)": ordered,
                "zone_txn": self.events}
