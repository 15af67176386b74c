#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a limiter does to the log: partitions' frames in offset order.

Positions already taken are dropped, a policy in the log takes over at its
offset, and a bucket is forgotten by the clock, the highest sending time so
far. As a program it replays what `weir decode` prints:

usage: follow.py --config FILE [--decisions OUT] [--shadow OUT] [--state OUT] [FRAMES]

FRAMES (or standard input) has one JSON object a line, those of a partition in
the order of their offsets: {"partition", "offset", "kind": "events", "source",
"sent", "events": [{"key", "time", "cost", "position", "zones": [{"id", "done"}]}]}
or {…, "kind": "policy", "zones": […]}, or {…, "kind": "command", "command": {…}}. `key` is the joined key; `key_hex`
stands for one that is not UTF-8. Decisions come out by partition, then in
order. The configuration's zones hold until a policy record says otherwise.
"""

import argparse
import json
import sys

import json_out
from keys import joined, partition_of
from limits import state_of
from model import Bucket, Counts, Verdict, judge_event
from overrides import Command, Malformed, Overrides, scaled
from policy import Zone, duration_ms, zones_of


def split_key(zone, key):
    """The values of a joined key."""
    if not zone.key:
        return ()
    if b"\\" not in key:
        return tuple(key.split(b"|"))
    values, value = [], bytearray()
    at = 0
    while at < len(key):
        if key[at:at + 1] == b"\\":
            at += 1
            value += key[at:at + 1]
        elif key[at:at + 1] == b"|":
            values.append(bytes(value))
            value = bytearray()
        else:
            value += key[at:at + 1]
        at += 1
    return tuple(values + [bytes(value)])


class Follow:
    """One partition's log."""

    LATENESS_MS = 600000

    def __init__(self, zones, partition, lateness_ms=LATENESS_MS, partitions=1):
        self.zones = {zone.id: zone for zone in zones}
        self.partition, self.lateness_ms, self.partitions = partition, lateness_ms, partitions
        self.clock_ms = 0
        self.positions = {}
        self.buckets = {}
        self.counts = {zone.name: Counts() for zone in zones}
        self.dropped = self.malformed = 0
        self.overrides = Overrides(lateness_ms)

    def take_frame(self, offset, source, sent_ms, events):
        """Judges a frame: [(id, Verdict)] in its own order.

        events: dicts with key (the joined key), time, cost, position, zones (a
        list of (zone id, is_done)). `index` counts every (event, zone) pair of
        the frame, dropped ones and unknown zones too, so that a decision has
        the same id however often its frame is judged."""
        self.clock_ms = max(self.clock_ms, sent_ms)
        self.overrides.advance(sent_ms)
        held = self.positions.get(source, -1)
        index = 0
        results = []
        for event in events:
            is_new = event["position"] > held
            self.dropped += not is_new
            for zone_id, is_done in event["zones"]:
                zone = self.zones.get(zone_id)
                if is_new and zone is not None:
                    verdict = self._judge(zone, event, is_done, sent_ms)
                    self.counts[zone.name].add(verdict)
                    results.append((f"{self.partition}-{offset}-{index}", verdict))
                index += 1
        if events:
            newest = max(event["position"] for event in events)
            self.positions[source] = max(held, newest)
        return results

    def _judge(self, zone, event, is_done, sent_ms):
        t, place = event["time"], (zone.id, event["key"])
        if self.overrides.allowed(*place, t) and not is_done:
            return Verdict(zone, "pass")
        bucket = self._bucket(zone, event["key"])
        times = self.overrides.times(*place)
        if bucket.times != times:
            bucket.rescale(times)
        held_until = self.overrides.blocked_until(*place, t)
        return judge_event(bucket, t, event["cost"], is_done, self.overrides.blocked(*place, t), sent_ms, held_until)

    def take_command(self, offset, sent_ms, body):
        """Does what an operator commands: [(id, Verdict)] of what it publishes, one or none."""
        self.clock_ms = max(self.clock_ms, sent_ms)
        self.overrides.advance(sent_ms)
        try:
            command = Command(body, joined)
            zone = next((zone for zone in self.zones.values() if zone.name == command.zone), None)
            if zone is None:
                raise Malformed("zone")
            command.check(zone, sent_ms)
            place = (zone.id, command.key)
            was_blocked = self.overrides.blocked_alone(*place, sent_ms, command.network)
            self.overrides.apply(zone.id, command, sent_ms)
        except Malformed:
            self.malformed += 1
            return []
        if command.network and not self._publishes(command.key):
            return []
        bucket = None if command.network else self.buckets.get(place)
        if bucket is not None and self._is_forgotten(bucket):
            bucket = None
        until = bucket.blocked_until if bucket and bucket.blocked_until else 0
        decision = {"zone": zone.name, "key": list(split_key(zone, command.key)), "action": "lift",
                    "at": sent_ms, "until": sent_ms, "by": command.by, "reason": command.reason,
                    "mode": zone.mode}
        if command.kind == "block":
            decision.update(action="block", until=max(command.until, until))
        elif command.kind == "lift":
            if bucket is not None:
                left = self.buckets[place] = bucket.take_back()
                left.clock_s = -(-self.clock_ms // 1000)
        elif command.kind == "override" or command.until <= sent_ms:
            return []
        elif until > sent_ms:
            bucket.blocked_until = max(bucket.blocked_at, sent_ms)
        elif not was_blocked:
            return []
        return [(f"{self.partition}-{offset}-0", Verdict(zone, "order", decision=decision))]

    def take_policy(self, offset, sent_ms, zones):
        """Switches to these zones: [(id, Verdict)] of what that publishes.

        A limit keeps its state if the zone had one with the same algorithm and
        parameters (each serves once, in order); a changed or new one starts
        empty. Blocks that run go on. A zone that is removed is lifted, and so is one
        that goes into shadow mode. Where one leaves it limits' blocks are given up,
        and operators' are published, by zone and key."""
        self.clock_ms = max(self.clock_ms, sent_ms)
        self.overrides.advance(sent_ms)
        new = {zone.id: zone for zone in zones}
        published = []
        for zone in self.zones.values():
            if zone.id not in new or (zone.mode == "enforce" and new[zone.id].mode == "shadow"):
                lift = {"zone": zone.name, "key": None, "action": "lift", "at": sent_ms,
                        "until": sent_ms, "mode": zone.mode}
                published.append(Verdict(zone, "lift", decision=lift))
        leaving = {zone.id for zone in zones if zone.mode == "enforce" and zone.id in self.zones
                   and self.zones[zone.id].mode == "shadow"}
        kept = {}
        for (zone_id, key), bucket in self.buckets.items():
            if zone_id in new and not self._is_forgotten(bucket):
                _change_zone(bucket, new[zone_id])
                if zone_id in leaving:
                    bucket.blocked_at = bucket.blocked_until = None
                    bucket.nth = 0
                kept[zone_id, key] = bucket
        self.buckets, self.zones = kept, new
        self.overrides.keep_zones(new)
        for zone in zones:
            published += self._blocks(zone, sent_ms) if zone.id in leaving else []
        for zone in zones:
            self.counts.setdefault(zone.name, Counts())
        return [(f"{self.partition}-{offset}-{index}", verdict)
                for index, verdict in enumerate(published)]

    def _publishes(self, network):
        """Whether this partition speaks for a network, which every partition has."""
        return self.partitions == 1 or partition_of(network, self.partitions) == self.partition

    def _blocks(self, zone, sent_ms):
        """What operators block in a zone, as decisions: by the bytes of the keys."""
        held = self.overrides
        blocks = [(key, until, held.words[zone_id, key]) for (zone_id, key), until in held.blocks.items()
                  if zone_id == zone.id]
        blocks += [(key, until, held.net_words[zone_id, key]) for (zone_id, key), until in held.net_blocks.items()
                   if zone_id == zone.id and self._publishes(key)]
        for key, until, (by, reason) in sorted(blocks):
            if until > held.clock_ms:
                yield Verdict(zone, "order", decision={
                    "zone": zone.name, "key": list(split_key(zone, key)), "action": "block",
                    "at": sent_ms, "until": until, "by": by, "reason": reason, "mode": zone.mode})

    def _bucket(self, zone, key):
        bucket = self.buckets.get((zone.id, key))
        if bucket is None or self._is_forgotten(bucket):
            bucket = self.buckets[zone.id, key] = Bucket(zone, split_key(zone, key))
        bucket.clock_s = -(-self.clock_ms // 1000)
        return bucket

    def _is_forgotten(self, bucket):
        quiet = 1000 * bucket.clock_s + bucket.memory_ms() + self.lateness_ms
        blocked = bucket.blocked_until or 0
        if bucket.zone.escalates and blocked:
            blocked += bucket.zone.forgive_after + self.lateness_ms
        return self.clock_ms > max(blocked, quiet)

    def state(self):
        """State objects, zone for zone by joined key, of buckets not forgotten by now."""
        place = {zone_id: i for i, zone_id in enumerate(self.zones)}
        alive = [pair for pair, bucket in self.buckets.items() if not self._is_forgotten(bucket)]
        alive.sort(key=lambda pair: (place[pair[0]], pair[1]))
        lines = [self.buckets[pair].dump(self.partition) for pair in alive]
        return [line for line in lines if line is not None]


def _change_zone(bucket, zone):
    """Gives a bucket its zone's new limits."""
    old = list(zip(bucket.limits, bucket.states))
    states = []
    for limit in zone.limits:
        same = next((pair for pair in old if pair[0].same_as(limit)), None)
        if same is None:
            states.append(state_of(scaled(limit, bucket.times)))
        else:
            old.remove(same)
            states.append(same[1])
    bucket.zone, bucket.limits, bucket.states = zone, list(zone.limits), states


def events_of(frame):
    """The events of a frame as `weir decode` prints it: keys as bytes, zones as (id, is_done)."""
    for event in frame["events"]:
        key = bytes.fromhex(event["key_hex"]) if "key_hex" in event else event["key"].encode()
        yield dict(event, key=key,
                   zones=[(zone["id"], zone.get("done", False)) for zone in event["zones"]])


def replay(config, lines):
    """The partitions (a dict of Follow) and their results ([(id, Verdict)] each) of
    what `weir decode` printed."""
    lateness_ms = duration_ms(config.get("limiter", {}).get("lateness", "10m"))
    zones = zones_of(config)
    partitions = config.get("bus", {}).get("partitions", 1)
    logs, results = {}, {}
    for line in lines:
        frame = json.loads(line)
        number = frame["partition"]
        if number not in logs:
            logs[number] = Follow(zones, number, lateness_ms, partitions)
            results[number] = []
        if frame["kind"] == "events":
            results[number] += logs[number].take_frame(
                frame["offset"], frame["source"], frame["sent"], list(events_of(frame)))
        elif frame["kind"] == "command":
            results[number] += logs[number].take_command(
                frame["offset"], frame["sent"], frame["command"])
        elif frame["kind"] == "policy":
            results[number] += logs[number].take_policy(
                frame["offset"], frame["sent"], [Zone(zone) for zone in frame["zones"]])
    return logs, results


def main():
    """Replays a log from the command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    for name in ("decisions", "shadow", "state"):
        parser.add_argument("--" + name, metavar="OUT", type=argparse.FileType("wb"))
    parser.add_argument("frames", nargs="?", type=argparse.FileType("rb"),
                        default=sys.stdin.buffer)
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as file:
        config = json.load(file)
    logs, results = replay(config, args.frames)
    for out, mode in ((args.decisions, "enforce"), (args.shadow, "shadow")):
        for number in sorted(results) if out else []:
            for decision_id, verdict in results[number]:
                if verdict.decision is not None and verdict.zone.mode == mode:
                    out.write(json_out.decision_line(decision_id, verdict.decision))
    for number in sorted(logs) if args.state else []:
        for line in logs[number].state():
            args.state.write(json_out.dumps(line) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
