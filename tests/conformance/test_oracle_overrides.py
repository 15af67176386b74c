#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators' commands mixed with events, through a real lane against the oracle: 0 differences.

usage: test_oracle_overrides.py [--cases N] [--seed S] [--first K]

Case K of seed S is always the same. The lane stores checkpoints, starts again from
them and evicts while it goes (tests/integration/replay_log.c); what it publishes and
every verdict must be what the oracle says of the same log.
"""

import argparse
import json
import os
import random
import subprocess
import sys

import compare
import random_cases

import follow  # pylint: disable=wrong-import-order
import json_out
import keys
import policy

PARTITION, PARTITIONS = 3, 4
ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.0.0/24", "10.0.0.1/24", "2001:db8::1", "2001:db8::/64",
             "2001:db8:0:1::/64", "::1", "gate.example")
NETWORKS = ("10.0.0.0/31", "10.0.0.0/30", "10.0.0.0/23", "10.0.0.0/8", "0.0.0.0/1", "2001:db8::/127", "2001:db8::/63",
            "2001:db8::/32", "::/1", "2000::/3")
RATES = ("0.001", "0.1", "0.5", "0.999", "1", "1", "1.5", "2", "10", "100")


def is_by_address(zone):
    """Whether a zone counts by one address."""
    (field,) = zone["key"] if len(zone["key"]) == 1 else ("",)
    return field == "ip" or isinstance(field, dict)


class Log:
    """A random policy and a random log of it."""

    def __init__(self, seed, number):
        self.rng = rng = random.Random(f"orders/{seed}/{number}")
        self.scale = rng.choice(((1, 20), (20, 2000), (1000, 60000), (60000, 3600000)))
        self.draw = random_cases._Policy(rng, self.scale, None)  # pylint: disable=protected-access
        self.queues = rng.random() < 0.4  # all is about a few queues, and much is done
        self.zones = [self.zone(i + 1) for i in range(rng.choice([1, 1, 2, 3]))]
        self.next_id = len(self.zones) + 1
        self.in_force = list(self.zones)
        self.pool = ["a", "ab", "abc", "a|b", "\\", "10.0.0.1", "10.0.0.2", "10.0.1.1", "", "é"]
        self.pool += [f"u{i}" for i in range(rng.choice([0, 0, 30, 2000]))]
        self.now = rng.choice([0, 1_700_000_000_000])
        self.positions = {"s": 1, "t": 1}
        self.ahead = rng.random() < 0.4  # some sender's clock is ahead for a moment, now and then
        self.lateness = rng.choice([0, 1, self.scale[0], self.scale[1], 600000])
        self.frames = [self.frame(offset) for offset in range(rng.choice([10, 60, 250]))]

    def zone(self, number):
        """A zone, often one that counts by address alone."""
        if self.queues:
            # pylint: disable-next=protected-access
            zone = random_cases._queue_zone(self.rng, self.draw, number, self.rng.random() < 0.5)
            return dict(zone, key=["user"])
        zone = self.draw.zone(number)
        if self.rng.random() < 0.5:
            zone["key"] = [self.rng.choice(["ip", {"field": "ip", "prefix4": 24, "prefix6": 64},
                                            {"field": "user", "prefix6": 64}])]
        return zone

    def config(self):
        """What both are started with."""
        return {"zones": self.zones, "limiter": {"lateness": f"{self.lateness}ms"}}

    def value(self):
        """One value of a key; now and then any of them, mostly one of few."""
        rng = self.rng
        if self.queues:
            return self.pool[rng.randrange(2)]
        return self.pool[rng.randrange(4)] if rng.random() < 0.6 else rng.choice(self.pool)

    def step(self):
        """Time goes on, most often little."""
        rng, span = self.rng, self.rng.choice(self.draw.spans)
        if rng.random() < 0.5:
            self.now += rng.choice([0, 1, rng.randint(0, max(1, span // 4)), span, span + 1])
        if rng.random() < 0.02:
            self.now += self.lateness + 3 * span
        return self.now

    def frame(self, offset):
        """The frame at an offset."""
        rng = self.rng
        sent = max(0, self.step() - (rng.randint(0, 3) if rng.random() < 0.2 else 0))
        frame = {"partition": PARTITION, "offset": offset, "sent": sent}
        draw = rng.random()
        if draw < 0.03:
            return dict(frame, kind="policy", zones=self.change())
        if draw < 0.05:
            return dict(frame, kind="command", **self.nonsense())
        if draw < 0.35:
            return dict(frame, kind="command", command=self.command(sent))
        source = rng.choice(list(self.positions))
        if self.ahead and rng.random() < 0.08:
            frame["sent"] += rng.choice([1, 5, 60]) * rng.choice(self.draw.spans) + rng.choice([0, self.lateness])
        return dict(frame, kind="events", source=source, events=self.events(source))

    def change(self):
        """The next policy."""
        rng = self.rng
        zones = [json.loads(json.dumps(zone)) for zone in self.in_force]
        if len(zones) > 1 and rng.random() < 0.3:
            zones.remove(rng.choice(zones))
        if rng.random() < 0.3:
            zones.append(self.zone(self.next_id))
            self.next_id += 1
        zone = rng.choice(zones)
        zone["limits"][rng.randrange(len(zone["limits"]))] = self.draw.limit(
            ["ip", "user", "path", "method"])
        if rng.random() < 0.5:
            zone = rng.choice(zones)
            zone["mode"] = "enforce" if zone.get("mode") == "shadow" else "shadow"
        if rng.random() < 0.5:
            zone = rng.choice(zones)
            zone.pop("forgive_after", None)
            zone["block_for"] = "0s"
            if rng.random() < 0.7:
                self.draw.escalate(zone, max(1, rng.choice(self.draw.spans) // 10))
        self.in_force = zones
        return zones

    def key(self, zone):
        """The values of a key of the zone."""
        if is_by_address(zone) and self.rng.random() < 0.8:
            return [self.rng.choice(ADDRESSES)]
        return [self.value() for _ in zone["key"]]

    def events(self, source):
        """Events of one frame: keys of each zone, and those of several zones at once."""
        rng, events = self.rng, []
        for _ in range(rng.randint(0, 12)):
            zone = rng.choice(self.in_force)
            zones = [{"id": other["id"], "done": rng.random() < (0.4 if self.queues else 0.1)} for other in self.in_force
                     if other is zone or (len(other["key"]) == len(zone["key"])
                                          and rng.random() < 0.5)]
            if rng.random() < 0.05:
                zones.append({"id": 999, "done": False})
            t = self.now
            if rng.random() < 0.3:
                t = max(0, t - rng.randint(0, 2 * rng.choice(self.draw.spans)))
            self.positions[source] += rng.choice([0, 1, 1, 1])
            events.append({"key": keys.joined([value.encode() for value in self.key(zone)]).decode(),
                           "time": t, "cost": rng.choice([1] * 8 + [0, 2, 5, 100]),
                           "position": self.positions[source], "zones": zones})
            if rng.random() < 0.3:
                self.step()
        if rng.random() < 0.1:
            self.positions[source] = max(1, self.positions[source] - 5)
            events.sort(key=lambda event: event["position"])
        return events

    def command(self, sent):
        """A command; now and then one that is not for its zone."""
        rng, zone = self.rng, self.rng.choice(self.in_force)
        kind = rng.choice(["block"] * (6 if self.queues else 1) + ["lift", "allow", "override", "override"])
        body = {"command": kind, "zone": zone["name"], "key": self.key(zone), "by": "ann"}
        if kind == "override":
            body["rate"] = rng.choice(RATES)
            if rng.random() < 0.4 and zone["key"]:
                body["key"] = body["key"][:rng.randint(1, len(body["key"]))]
                body["key"][-1] = body["key"][-1][:rng.randint(0, 3)]
                body["prefix"] = True
        elif rng.random() < (0.6 if is_by_address(zone) else 0.03):
            body["key"], body["network"] = [rng.choice(NETWORKS)], True
        if kind != "lift" and rng.random() < 0.7:
            span = rng.choice(self.draw.spans)
            body["until"] = sent + rng.choice([1, 2, span, span, 5 * span, 50 * span, 1 + span // 8])
            if kind == "allow" and rng.random() < 0.15:
                body["until"] = max(0, sent - rng.randint(0, 2))
        if rng.random() < 0.5:
            body["reason"] = rng.choice(["scraping", 'a "word"', "é", ""])
        if rng.random() < 0.05:
            body.update(rng.choice([{"zone": "nowhere"}, {"key": body["key"] + ["x"]},
                                    {"until": sent}, {"rate": "1.2345"}, {"command": "bloc"},
                                    {"by": "b" * 65}, {"more": 1}, {"prefix": True},
                                    {"network": True}, {"network": 1}, {"key": ["10.0.0.1/8"], "network": True},
                                    {"key": ["2001:DB8::/32"], "network": True}]))
        return body

    def nonsense(self):
        """What is no command at all."""
        body = self.rng.choice(["", "{", "[]", "null", '{"command":"block"}', "\\u0000",
                                '{"command":"block","command":"lift"}'])
        return {"body": body, "command": None}


def expected(log):
    """What replay_log must print."""
    lines = [json.dumps(frame) for frame in log.frames]
    config, out = log.config(), []
    lane = follow.Follow([policy.Zone(zone) for zone in config["zones"]], PARTITION, log.lateness, PARTITIONS)
    for line in lines:
        frame = json.loads(line)
        malformed = lane.malformed
        if frame["kind"] == "events":
            events = list(follow.events_of(frame))  # pylint: disable=protected-access
            results = lane.take_frame(frame["offset"], frame["source"], frame["sent"], events)
        elif frame["kind"] == "policy":
            results = lane.take_policy(frame["offset"], frame["sent"],
                                       [policy.Zone(zone) for zone in frame["zones"]])
        else:
            results = lane.take_command(frame["offset"], frame["sent"], frame["command"])
        out += [json_out.decision_line(name, verdict.decision).decode()
                for name, verdict in results if verdict.decision is not None]
        if lane.malformed > malformed:
            out.append(f"malformed {frame['offset']}\n")
            continue
        pairs = sum(len(event["zones"]) for event in frame.get("events", []))
        digits = ["8"] * pairs
        for name, verdict in results if frame["kind"] == "events" else []:
            if verdict.word != "done":
                digits[int(name.rsplit("-", 1)[1])] = "%x" % (
                    (verdict.word == "block") + 2 * verdict.late + 4 * (verdict.decision is not None))
        out.append(f"verdicts {frame['offset']} {''.join(digits)}\n")
    return out


def differs(program, seed, number):
    """Words for how the lane and the oracle differ on a case; None if they do not."""
    log = Log(seed, number)
    with compare.scratch() as where:
        config = os.path.join(where, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(log.config(), file)
        lines = "".join(json.dumps(frame) + "\n" for frame in log.frames)
        ran = subprocess.run([program, config, where, str(number + 1)], input=lines.encode(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                             timeout=300)
        if ran.returncode != 0:
            return f"replay_log exited with status {ran.returncode}: {ran.stderr.decode()[-2000:]}"
    got, want = ran.stdout.decode().splitlines(True), expected(log)
    for at, (mine, other) in enumerate(zip(got + [None] * len(want), want + [None] * len(got))):
        if mine != other:
            return f"line {at + 1}: the lane says {mine!r}, the oracle {other!r}"
    return None


def main():
    """Runs the cases; exit code 1 if one differs."""
    default = 60 if os.environ.get("WEIR_SANITIZED") else 400
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=int(os.environ.get("WEIR_CASES", default)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    build = os.environ.get("WEIR_BUILD", os.path.join(compare.ROOT, "build/release"))
    program = os.path.join(build, "tests", "replay_log")
    if not os.access(program, os.X_OK):
        print(f"skipped: no program at {program}")
        return compare.SKIPPED
    failed = 0
    for number in range(args.first, args.first + args.cases):
        wrong = differs(program, args.seed, number)
        if wrong is not None:
            print(f"case {number} of seed {args.seed} differs: {wrong}\n"
                  f"again: --seed {args.seed} --first {number} --cases 1", flush=True)
            failed += 1
        if failed == 5:
            break
    print(f"{args.cases - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
