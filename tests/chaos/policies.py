# SPDX-License-Identifier: Apache-2.0
"""Policies that have everything that a bucket can hold, for logs of support/traffic.py."""

from support.traffic import fixed, sliding, zone

TOKEN = {"algorithm": "token_bucket", "rate": 5, "window": "10s", "burst": 8}
PENALTY = {"algorithm": "token_bucket", "rate": 3, "window": "5s", "burst": 4, "penalize": True}
GCRA = {"algorithm": "gcra", "rate": 6, "window": "30s", "burst": 2}
QUEUE = {"algorithm": "queue", "length": 4, "hold": "20s", "done": {"path": ["/3"]}}
UNIFORM = {"algorithm": "uniform", "interval": "1500ms"}


def _numbered(*zones):
    return [dict(one, id=number) for number, one in enumerate(zones, 1)]


POLICIES = [
    _numbered(zone("site", [sliding(10, "1m"), fixed(30, "1h"), fixed(200, "1d")])),
    _numbered(zone("site", [sliding(3, "30s", precision="1s")], block_for=["20s", "2m", "10m"], forgive_after="5m"),
              zone("misses", [sliding(2, "5m")], match={"status": ["4xx"]}, count="all"),
              zone("watch", [sliding(1, "1m")], mode="shadow")),
    _numbered(zone("tokens", [TOKEN, GCRA]), zone("penalty", [PENALTY], block_for="10s"),
              zone("queue", [QUEUE]), zone("uniform", [UNIFORM], count="all")),
    _numbered(zone("everyone", [sliding(50, "1s"), fixed(2000, "1m", offset="7s")], key=[]),
              zone("paths", [sliding(400, "10s"), GCRA], key=["path"]),
              zone("both", [sliding(2, "10m"), QUEUE], key=["user", "path"])),
]
