# SPDX-License-Identifier: Apache-2.0
"""Random policies and random logs for them: the same seed and number, the same case.

A case leans towards the edges: times exactly a window apart and a millisecond
to either side, many equal times, late ones, costs of 0 and above the limit,
keys of odd bytes, windows from a millisecond to a month.
"""

import gzip
import json
import os
import random

import random_logs

_SCALES = ((1, 20), (20, 2000), (1000, 60000), (60000, 3600000), (3600000, 30 * 86400000))
_FIELDS = ("ip", "user", "path", "method")


def ended_well(code, said):
    """Whether a run of a case has done all: of a random log, perhaps no line is an event, which a run tells by a 1."""
    return code == 0 or (code == 1 and ": none of " in said and " lines became an event" in said)


class Case:
    """A configuration (sources without their directory) and its logs' lines."""

    def __init__(self, config, files):
        self.config, self.files = config, files

    def placed(self, where):
        """The configuration with its sources in a directory."""
        return dict(self.config, sources=[dict(source, path=os.path.join(where, source["path"]))
                                          if "path" in source else source for source in self.config["sources"]])

    def write(self, where):
        """Writes logs and configuration into a directory; the configuration's path."""
        config = self.placed(where)
        for name, lines in self.files.items():
            data = b"".join(lines)
            with open(os.path.join(where, name), "wb") as out:
                out.write(gzip.compress(data, 1) if name.endswith(".gz") else data)
        path = os.path.join(where, "config.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(config, out, indent=1)
        return path


def duration(rng, ms):
    """A duration's text, in the largest unit that it is a multiple of, or in ms."""
    units = [(scale, unit) for scale, unit in
             ((86400000, "d"), (3600000, "h"), (60000, "m"), (1000, "s")) if ms % scale == 0]
    scale, unit = units[0] if units and rng.random() < 0.8 else (1, "ms")
    return f"{ms // scale}{unit}"


class _Policy:
    """Draws zones; remembers the spans at whose edges times should lie."""

    def __init__(self, rng, scale, pools):
        self.rng, self.scale, self.pools = rng, scale, pools
        self.spans, self.rates = [], []

    def span(self):
        """A window's length in ms, round or not."""
        low, high = self.scale
        ms = self.rng.randint(low, high)
        for step in (86400000, 3600000, 60000, 1000, 100):
            if ms >= step and self.rng.random() < 0.5:
                ms -= ms % step
                break
        return ms

    def limit(self, field_names):
        """One limit of any algorithm."""
        rng = self.rng
        algorithm = rng.choice(["sliding_window", "sliding_window", "fixed_window", "token_bucket",
                                "penalize", "uniform", "gcra", "queue"])
        span, rate = self.span(), rng.choice([1, 1, 2, 3, 4, 5, 10, rng.randint(1, 60)])
        self.spans.append(span)
        self.rates.append(rate)
        if algorithm == "uniform":
            return {"algorithm": algorithm, "interval": duration(rng, span)}
        if algorithm == "queue":
            limit = {"algorithm": algorithm, "length": rate, "hold": duration(rng, span)}
            if rng.random() < 0.7:
                limit["done"] = {"method": ["DELETE"]} if "method" in field_names else {
                    "user": ["b*"]}
            return limit
        limit = {"algorithm": algorithm, "rate": rate, "window": duration(rng, span)}
        if algorithm == "sliding_window" and rng.random() < 0.3:
            precision = rng.choice([1, span, max(1, span // 10), rng.randint(1, span)])
            limit["precision"] = duration(rng, precision)
        if algorithm == "sliding_window" and rng.random() < 0.4:
            lateness = rng.choice([1, span, 2 * span, max(1, span // 3), rng.randint(1, 5 * span), 120000])
            limit["lateness"] = duration(rng, min(lateness, 86400000))
        if algorithm == "fixed_window" and rng.random() < 0.3 and span > 1:
            limit["offset"] = duration(rng, rng.choice([1, span - 1, rng.randint(1, span - 1)]))
        if algorithm in ("token_bucket", "penalize") and rng.random() < 0.6:
            limit["burst"] = rng.choice([1, rate, rng.randint(1, 20)])
        if algorithm == "gcra":
            limit["burst"] = rng.choice([0, 1, rng.randint(0, 20)])
        if algorithm == "penalize":
            limit.update(algorithm="token_bucket", penalize=True)
        return limit

    def key(self, field_names):
        """A key template of 0 to 3 fields."""
        rng = self.rng
        key = rng.sample(field_names, rng.choice([0, 1, 1, 1, 1, 2, 2, 3]))
        for place, name in enumerate(key):
            if name == "ip" and rng.random() < 0.4:
                grouped = {"field": "ip"}
                if rng.random() < 0.7:
                    grouped["prefix6"] = rng.choice([48, 64, 128, 0, rng.randint(0, 128)])
                if rng.random() < 0.7 or len(grouped) == 1:
                    grouped["prefix4"] = rng.choice([8, 24, 32, 0, rng.randint(0, 32)])
                key[place] = grouped
        return key

    def match(self, field_names):
        """A filter, most often none."""
        rng, match = self.rng, {}
        if rng.random() < 0.3:
            match["method"] = rng.sample(["GET", "POST", "P*", "*T", "DELETE", "get", "p*"], rng.randint(1, 2))
        if rng.random() < 0.3 and "path" in field_names:
            match["path"] = rng.sample(["/", "/a", "/a*", "*", "/*/b", "*c", "/a*c*", "/A", "/A*"],
                                       rng.randint(1, 2))
        if rng.random() < 0.2:
            match["status"] = rng.sample(["2xx", "4xx", 200, "404", 500], rng.randint(1, 3))
        if rng.random() < 0.15:
            match[rng.choice(["ip", "user"])] = rng.sample(
                ["10.0.0.0/8", "192.0.2.1 - 192.0.2.99", "2001:db8::/32", "u*", "bob", "::1-::ff"],
                rng.randint(1, 3))
        for name in [name for name in match if rng.random() < 0.2]:
            match[name] = rng.choice([{"not": match[name]}, {"is": match[name]},
                                      {"is": match[name], "not": match[name][:1]}])
            if name != "status" and rng.random() < 0.5:
                match[name]["ignore_case"] = rng.random() < 0.8
        return match

    def exempt(self):
        """Networks and words, some of them in use."""
        rng = self.rng
        choices = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::ffff:10.1.0.0/112", "0.0.0.0/1",
                   "bob", "/a", "GET", "Post", "192.0.2.3-192.0.2.200", "2001:db8::1-2001:db8::ff:0", "b*", "/a*",
                   {"path": ["/a*"]}, {"user": {"not": ["u*"]}, "ip": ["10.0.0.0/8"]}]
        return rng.sample(choices, rng.randint(1, 3))

    def shared_exempt(self):
        """What all zones exempt: networks and records, no words."""
        choices = ["198.51.100.0/24", "192.0.2.7", "2001:db8::/40", "192.0.2.9-192.0.2.30", {"path": ["/b*"]},
                   {"user": ["u1*"]}]
        return self.rng.sample(choices, self.rng.randint(1, 2))

    def escalate(self, zone, ms):
        """A block that is longer each time; times should lie at the edge of forgiveness, too."""
        rng, blocks = self.rng, [ms]
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            blocks.append(blocks[-1] * rng.choice([1, 2, 3]))
        zone["block_for"] = [duration(rng, min(block, 366 * 86400000)) for block in blocks]
        if rng.random() < 0.8:
            forgive = rng.choice([1, ms, self.span(), 10 * self.span()])
            zone["forgive_after"] = duration(rng, min(forgive, 366 * 86400000))
            self.spans.append(forgive)

    def zone(self, number):
        """One zone."""
        rng = self.rng
        names = list(_FIELDS)
        zone = {"id": number, "name": f"zone-{number}", "key": self.key(names),
                "limits": [self.limit(names) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4]))]}
        match = self.match(names)
        if match:
            zone["match"] = match
        if rng.random() < 0.15:
            zone["exempt"] = self.exempt()
        if rng.random() < 0.05:
            zone["sources"] = rng.sample(["one", "two"], rng.randint(1, 2))
        if rng.random() < 0.4:
            zone["count"] = rng.choice(["all", "passed"])
        if rng.random() < 0.35:
            ms = rng.choice([1, self.span(), 2 * self.span()])
            self.spans.append(ms)
            zone["block_for"] = duration(rng, ms)
            if rng.random() < 0.4:
                self.escalate(zone, ms)
        if rng.random() < 0.12:
            zone["mode"] = rng.choice(["shadow", "enforce"])
        return zone


def _times(rng, count, spans, rates):
    """Times that hug the edges of the windows, in and out of order."""
    top = 253402300800000 - 1
    t = rng.choice([rng.randint(0, 3 * max(spans)), 1700000000000 + rng.randint(0, 10 ** 9),
                    1700000000000, top - rng.randint(0, max(spans))])
    disorder = rng.choice([0, 0, 0.03, 0.2, 0.5])
    still = rng.choice([0.1, 0.4, 0.8])
    edges = rng.choice([0.02, 0.1, 0.4])
    for _ in range(count):
        yield t
        draw = rng.random()
        span = rng.choice(spans)
        if draw < still:
            step = 0
        elif draw < still + (1 - still) * edges:
            step = span * rng.choice([1, 1, 1, 2]) + rng.choice([-1, 0, 1])
        else:
            step = rng.randint(0, max(1, 2 * span // rng.choice(rates)))
            if step and rng.random() < 0.3:
                step = rng.randint(0, 3)
        if rng.random() < disorder:
            step = -step
        t = min(max(t + step, 0), top)


def case(seed, number, lines=None):
    """The case of this seed and number; with so many lines, if said."""
    rng = random.Random(f"{seed}/{number}")
    count = rng.choice([rng.randint(1, 30), rng.randint(20, 150), rng.randint(20, 150)])
    keys = rng.choice([1, 1, 2, 3, 5, 20])
    if number % 100 == 50:
        count, keys = 1500, rng.choice([1, 10, 1500])
    if number % 1000 == 500:
        count, keys = 20000, rng.choice([3, 20000])
    count = lines or count
    pools = random_logs.Pools(rng, keys)
    policy = _Policy(rng, rng.choice(_SCALES), pools)
    zones = [policy.zone(i + 1) for i in range(rng.choice([1, 1, 1, 2, 2, 3, 4, 5, 6]))]
    if number % 1000 == 500:
        zones = zones[:2]
    costs = None
    if rng.random() < 0.4:
        costs = [0, 1, 1, 2, 3] + policy.rates + [rate + 1 for rate in policy.rates]
        costs += [rate - 1 for rate in policy.rates] + [2 ** 40]
    writer = random_logs.writer(rng, costs is not None)
    n_files = rng.choice([1, 1, 1, 2, 3])
    files = [[] for _ in range(n_files)]
    for t in _times(rng, count, policy.spans, policy.rates):
        event = pools.event(rng, t, rng.choice(costs) if costs else None)
        files[rng.randrange(n_files)].append(writer.line(rng, event))
    if rng.random() < 0.2:
        rng.choice(files).sort(key=lambda _: rng.random())
    config = {"zones": zones, "sources": []}
    names = {}
    for place, lines in enumerate(files):
        random_logs.spoil(rng, lines)
        names["log-%d%s" % (place, ".gz" if rng.random() < 0.1 else "")] = writer.head() + lines
    if n_files > 1 and rng.random() < 0.3:
        config["sources"] = [{"type": "file", "path": "log-*", "format": writer.format()}]
    else:
        order = sorted(names, key=lambda _: rng.random())
        config["sources"] = [{"type": "file", "path": name, "format": writer.format()}
                             for name in order]
    for source in config["sources"]:
        if rng.random() < 0.5:
            source["name"] = rng.choice(["one", "two"])
    if rng.random() < 0.1:
        config["exempt"] = policy.shared_exempt()
    return Case(config, names)


def _queue_zone(rng, policy, number, decides_alone):
    """A zone with a queue that what is done makes room in, mostly with nothing else that holds a block."""
    zone = policy.zone(number)
    zone["limits"] = [] if decides_alone else zone["limits"][:rng.choice([1, 1, 2])]
    for _ in range(rng.choice([1, 1, 1, 2])):
        span = policy.span() * rng.choice([1, 3, 10])
        limit = {"algorithm": "queue", "length": rng.choice([1, 1, 2, 3, 5, rng.randint(1, 40)]),
                 "hold": duration(rng, min(span, 366 * 86400000))}
        policy.spans.append(span)
        if rng.random() < 0.9:
            limit["done"] = {"method": rng.sample(["DELETE", "POST", "G*"], rng.choice([1, 1, 2]))}
        zone["limits"].insert(rng.randint(0, len(zone["limits"])), limit)
    for name in ("match", "exempt", "sources"):
        zone.pop(name, None)
    if rng.random() < 0.8:
        for name in ("block_for", "forgive_after"):
            zone.pop(name, None)
    zone["key"] = rng.choice([[], ["user"], ["ip"], ["user"]])
    return zone


def with_queues(base, seed, number):
    """A case whose zones are queues, in the log of another; few keys, so that what is done meets what waits."""
    rng = random.Random(f"{seed}/{number}/queues")
    policy = _Policy(rng, rng.choice(_SCALES), None)
    zones = [_queue_zone(rng, policy, i + 1, rng.random() < 0.5) for i in range(rng.choice([1, 1, 2, 3]))]
    return Case(dict(base.config, zones=zones), base.files)


def _counting(rng, policy, number, counted):
    """A zone over decisions of others, most of which are of a few."""
    zone = policy.zone(number)
    for limit in zone["limits"]:
        limit.pop("done", None)
        for name in ("rate", "length"):
            if name in limit:
                limit[name] = rng.choice([1, 1, 2, 3])
    zone["key"] = [name for name in zone["key"] if rng.random() < 0.7]
    if rng.random() < 0.2:
        zone["key"] = [rng.choice(["zone", "key", "mode"])]
    zone["match"] = {"zone": rng.sample(counted, rng.randint(1, len(counted)))}
    if rng.random() < 0.2:
        zone["match"]["mode"] = [rng.choice(["shadow", "enforce"])]
    zone["sources"] = ["decisions"] + rng.choice([[], [], [], ["one"], ["one", "two"]])
    return zone


def with_decisions(base, seed, number):
    """A case with more zones, which count the decisions of others, among its zones."""
    rng = random.Random(f"{seed}/{number}/decisions")
    policy = _Policy(rng, rng.choice(_SCALES), None)
    zones = list(base.config["zones"])
    for more in range(rng.choice([1, 1, 2, 3])):
        zone = _counting(rng, policy, 100 + more, [one["name"] for one in zones])
        zones.insert(rng.randint(0, len(zones)), zone)
    sources = list(base.config["sources"])
    sources.insert(rng.randint(0, len(sources)), {"type": "decisions"})
    return Case(dict(base.config, zones=zones, sources=sources), base.files)
