# SPDX-License-Identifier: Apache-2.0
"""Logs for tests: JSON lines of users' requests, and the zones that count them."""

import json
import re

START_MS = 1700000000000
FORMAT = {"type": "json", "unit": "ms"}


def line(time_ms, user, **more):
    """One request."""
    return json.dumps({"time": time_ms, "user": user, **more}, separators=(",", ":")) + "\n"


def burst(user, count, start_ms=START_MS, step_ms=1, **more):
    """Requests of one user, one after another."""
    return "".join(line(start_ms + i * step_ms, user, **more) for i in range(count))


def crowd(rng, count, users, prefix="u", start_ms=START_MS, step_ms=20, disorder=0.05):
    """Requests of many users, some of them far busier than others: a list of lines (bytes).

    Times go on by step_ms on average; a share of them, disorder, is up to a minute early."""
    lines = []
    time_ms = start_ms
    draw, users_less_one = rng.random, users - 1
    for _ in range(count):
        time_ms += int(2 * step_ms * draw())
        at_ms = time_ms - int(60000 * draw()) if draw() < disorder else time_ms
        user = int(users_less_one * draw() ** 3)
        lines.append(b'{"time":%d,"user":"%s%d","path":"/%d","status":%d}\n'
                     % (at_ms, prefix.encode(), user, user % 7, 200 if draw() < 0.9 else 404))
    return lines


def joined_keys(*logs):
    """The keys of all buckets that a crowd's logs (bytes) can have: by user, path, both or none."""
    pairs = {pair for log in logs for pair in re.findall(rb'"user":"([^"]*)","path":"([^"]*)"', log)}
    users, paths = {user for user, _ in pairs}, {path for _, path in pairs}
    return sorted(users | paths | {user + b"|" + path for user, path in pairs} | {b""})


def source(path, **more):
    """A file of such lines."""
    return {"type": "file", "path": path, "format": FORMAT, "follow": True, **more}


def sliding(rate, window, **more):
    """A limit."""
    return {"algorithm": "sliding_window", "rate": rate, "window": window, **more}


def fixed(rate, window, **more):
    """A limit."""
    return {"algorithm": "fixed_window", "rate": rate, "window": window, **more}


def zone(name, limits, key=("user",), **more):
    """A zone."""
    return {"name": name, "key": list(key), "limits": limits, **more}


def site(rate=3, window="1m"):
    """One zone that blocks each user's request after the first few."""
    return [zone("site", [sliding(rate, window)], id=1)]


def without_id(decision):
    """A decision as two runs agree on it whatever their frames were."""
    return {name: value for name, value in decision.items() if name != "id"}


def by_bucket(decisions):
    """Decisions, without their ids, in the order of each bucket."""
    buckets = {}
    for decision in decisions:
        bucket = (decision["zone"], json.dumps(decision["key"]))
        buckets.setdefault(bucket, []).append(without_id(decision))
    return buckets
