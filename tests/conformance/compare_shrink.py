# SPDX-License-Identifier: Apache-2.0
"""Makes a failing random case small: fewer lines, zones, limits and options."""

import copy
import json


def shrink(case, fails, tries=600):
    """The smallest case found within `tries` calls of fails(case) that still fails."""
    left = [tries]

    def still_fails(smaller):
        if left[0] <= 0:
            return False
        left[0] -= 1
        return fails(smaller)

    before = None
    while before != size(case) and left[0] > 0:
        before = size(case)
        for name in list(case.files):
            case = _fewer_lines(case, name, still_fails)
        for smaller_config in _simpler(case):
            smaller = copy.copy(case)
            smaller.config = smaller_config(case.config)
            if smaller.config is not None and still_fails(smaller):
                case = smaller
    return case


def size(case):
    """How large a case is, to see whether a round made it smaller."""
    return sum(len(lines) for lines in case.files.values()), len(str(case.config))


def _fewer_lines(case, name, fails):
    lines = case.files[name]
    step = max(1, len(lines) // 2)
    while step:
        at = 0
        while at < len(lines):
            kept = lines[:at] + lines[at + step:]
            smaller = copy.copy(case)
            smaller.files = dict(case.files, **{name: kept})
            if fails(smaller):
                case, lines = smaller, kept
            else:
                at += step
        step //= 2
    return case


def _simpler(case):
    """Functions from a configuration to one with something less, or to None."""
    def without(*path):
        def change(config):
            config = copy.deepcopy(config)
            inner = config
            try:
                for part in path[:-1]:
                    inner = inner[part]
                if isinstance(inner, list) and len(inner) < 2:
                    return None
                del inner[path[-1]]
            except (KeyError, IndexError):
                return None
            return config
        return change

    for z in reversed(range(len(case.config["zones"]))):
        yield without("zones", z)
    for z, zone in enumerate(case.config["zones"]):
        for limit in reversed(range(len(zone["limits"]))):
            yield without("zones", z, "limits", limit)
        for option in ("match", "exempt", "count", "block_for", "mode"):
            if option != "match" or "decisions" not in zone.get("sources", []):  # without it, it counts its own
                yield without("zones", z, option)
        for option in ("precision", "lateness", "offset", "penalize", "done"):
            for limit in range(len(zone["limits"])):
                yield without("zones", z, "limits", limit, option)
    yield without("exempt")
    for s in reversed(range(len(case.config["sources"]))):
        yield without("sources", s)


def shown(case, lines=40):
    """The case in words: configuration, then each log's lines."""
    text = json.dumps(case.config, indent=1)
    for name, content in case.files.items():
        text += f"\n--- {name} ({len(content)} lines)\n"
        text += "\n".join(repr(line)[2:-1][:300] for line in content[:lines])
    return text
