#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A whole cluster with everything on, that works for a while: memory stays flat, lag bounded, and everything is right.

Two collectors follow logs that rotate, a syslog connection and a topic; three limiters publish decisions, shadow
decisions and judged frames; Redis and a file hold who is blocked. At the end decisions, verdicts and buckets are what
the oracle makes of the log; of more lines than it takes in a reasonable time they are counted. It prints what it saw
as one line of JSON.

WEIR_SOAK_SECONDS (60; 1800 by hand), WEIR_SOAK_RATE (lines a second, 800; Python writes some 60,000),
WEIR_SOAK_GENERATED (lines a second that `weir generate` writes besides, 0: as the bench cluster_whole has them, access
logs in one zone with three limits), WEIR_SOAK_ORACLE (most lines for the oracle, 400,000).
"""

import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, cluster_check, decisions, live, traffic
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of
from support.roles import Roles
from support.watching import Watching

SECONDS = int(os.environ.get("WEIR_SOAK_SECONDS", 60))
RATE = int(os.environ.get("WEIR_SOAK_RATE", 800))
GENERATED = int(os.environ.get("WEIR_SOAK_GENERATED", 0))
ORACLE_LINES = int(os.environ.get("WEIR_SOAK_ORACLE", 400000))
PARTITIONS = 8

# Buckets are few and windows short: after the first third there is nothing left that could grow.
OURS = {"path": [f"/{number}" for number in range(7)]}  # what Python writes
ZONES = [traffic.zone("site", [traffic.sliding(20, "5s"), traffic.fixed(300, "10s")], id=1, match=OURS),
         traffic.zone("paths", [traffic.sliding(100, "1s")], key=("path",), id=2, mode="shadow", match=OURS),
         traffic.zone("heavy", [traffic.fixed(100, "10s")], id=3, block_for="10m", match=OURS),
         traffic.zone("visitors", [traffic.sliding(20, "5s"), traffic.fixed(300, "10s"), traffic.fixed(3000, "1m")],
                      key=("ip",), id=4)]

LIMITER = {} if GENERATED else {"checkpoint_interval": "2s"}  # of a million users as anyone would have it
CROWD = ("--users", "1M", "--zipf", 0, "--abusers", 100)  # most far below their limits: decisions are to be counted, too

# Not all of so many lines fit on a disk; who reads them is seconds behind.
BIG_TOPICS = {"retention_ms": 300000, "segment_bytes": 64 << 20} if GENERATED else {}

MIB = 1 << 20
SECOND_BYTES = 100 * RATE + 230 * GENERATED
GROWTH_MIB = 6 + 2 * SECOND_BYTES / MIB  # of a role between the medians of the second and the last third
MOST_MIB = 64 + 10 * SECOND_BYTES / MIB  # ever; in a stall what comes so long may lie in memory
LAG_S = 5  # the median of each lag is less than what comes in so long


class Soak:
    """The cluster, and what is asked of it."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        syslog, topic = free_port(), one.topic("logs")
        logs = [place.path("logs", f"app-{number}.log") for number in range(3)]
        busy = [place.write(f"logs/busy-{number}.log", "") for number in range(2 if GENERATED else 0)]
        busy_sources = [traffic.source(path, format="combined") for path in busy]
        rotate_s = max(5, SECONDS / 40)
        one.kafka.create(topic, partitions=2)
        roles.apply()
        self.limiters = [roles.limiter() for _ in range(3)]
        if BIG_TOPICS:
            for name in ("events", "judged"):
                one.kafka.change_settings(one.topic(name), **BIG_TOPICS)
        self.outlets = [(0.3, live.RotatingLog(path, rotate_s)) for path in logs]
        self.collectors = [
            roles.collector([*map(traffic.source, logs[:2]), *busy_sources[:1]]),
            roles.collector([traffic.source(logs[2]), *busy_sources[1:],
                             {"type": "syslog", "listen": f"tcp://127.0.0.1:{syslog}", "format": traffic.FORMAT},
                             {"type": "kafka", "brokers": one.brokers, "topics": [topic], "format": traffic.FORMAT,
                              "group": one.topic("collectors"), "kafka": one.kafka_properties}])]
        config = place.write("subscribe.json", json.dumps(roles.sections()))
        self.blocked = place.path("blocked.jsonl")
        self.subscribers = [decisions.start(place, config, to) for to in (one.redis_url, f"file:{self.blocked}")]
        for limiter in self.limiters:
            limiter.until(lambda limiter=limiter: limiter.is_ready() and limiter.value(
                "weir_limiter_partitions", state="live") >= PARTITIONS // 4, "has its share")
        for collector in self.collectors:
            collector.until_ready()
        self.outlets += [(0.05, live.SyslogSender(syslog)),
                         (0.05, live.TopicSender(one.brokers, one.kafka_properties, topic))]
        self.generated = [live.GeneratedLog(place, path, GENERATED // 2, SECONDS, 10, CROWD) for path in busy]

    def total(self, name, **labels):
        """The sum of a metric of all limiters."""
        return sum(one.value(name, **labels) for one in self.limiters)

    def written(self, name):
        """Offsets that a topic has given, of what it still has and what it has no more."""
        return sum(end for _, end in self.one.kafka.extents(self.one.topic(name)).values())

    def watching(self):
        """What is looked at meanwhile."""
        roles = {role.name: role.run.pid for role in self.collectors + self.limiters}
        targets = {f"subscribe-{name}": one.weir.pid for name, one in zip(("redis", "file"), self.subscribers)}
        return Watching({**roles, **targets}, {
            "lag_messages": lambda: self.total("weir_limiter_lag_messages"),
            "lag_bytes": lambda: sum(one.value("weir_source_lag_bytes") for one in self.collectors),
            "lag_records": lambda: sum(one.value("weir_source_lag_messages") for one in self.collectors),
            "lag_decisions": lambda: sum(one.value("lag_messages") or 0 for one in self.subscribers),
            "checkpoint_age_s": lambda: max(one.value("weir_limiter_unsaved_age_seconds") for one in self.limiters)})

    def until_judged(self, verdicts):
        """Waits until every line has its verdicts, and there is nothing behind."""
        self.limiters[0].until(lambda: all(self.total("weir_limiter_verdicts_total", zone=zone["name"]) >= count
                                           for zone, count in zip(ZONES, verdicts)), "all is judged", 4 * PATIENCE_S)
        self.limiters[0].until(lambda: self.total("weir_limiter_lag_messages") == 0, "nothing is behind")

    def until_listed(self):
        """Waits until Redis and the file have whom the decisions block at that moment."""
        newest = {}
        for message in self.one.kafka.stream(self.one.topic("decisions")):
            decision = json.loads(message.value)
            newest[decision["zone"], decision["key"][0]] = decision["until"]

        def are_true():
            blocked = {bucket for bucket, until_ms in newest.items() if until_ms > decisions.now_ms()}
            in_file = {(line["zone"], line["key"][0]) for line in lines_of(self.blocked)}
            in_redis = {tuple(key.decode().split(":", 2)[1:]) for key in self.one.redis.keys("weir:*")}
            return in_file == in_redis == blocked
        self.limiters[0].until(are_true, "Redis and the file hold who is blocked")

    def require_counts(self, verdicts):
        """What can be counted, whoever had to judge what again: each line once a zone, each decision, no letter."""
        zones = {zone["id"]: [0, 0] for zone in ZONES}  # verdicts, decisions: what the limiters, who have left, counted
        for (extra,) in self.one.mariadb.query("SELECT extra FROM partition_state WHERE role = 1"):
            for zone, judged, decided in tallies(extra):
                zones[zone][0] += judged
                zones[zone][1] += decided
        count = {name: len({message.value.split(b'"', 4)[3] for message in
                            self.one.kafka.stream(self.one.topic(name))}) for name in ("decisions", "decisions.shadow")}
        for name in ("events", "judged", "deadletter"):
            count[name] = self.written(name)
        assert [judged for judged, _ in zones.values()] == verdicts, (zones, verdicts)
        assert count["decisions"] == zones[1][1] + zones[3][1] + zones[4][1], (count, zones)
        assert count["decisions.shadow"] == zones[2][1], (count, zones)
        assert count["judged"] >= count["events"] - PARTITIONS, count  # of which each has a policy
        assert count["deadletter"] == 0, count


def tallies(extra):
    """(zone, verdicts, decisions) of a partition's state: behind the shard's part, 8 bytes a number (limiter/lane/tally.c)."""
    extra = extra[44:]  # the base of its records' numbers, and the mark of the last message, stand before
    begin = 4 + int.from_bytes(extra[:4], "little")
    zones, _ = struct.unpack_from("<2Q", extra, begin)
    for number in range(zones):
        zone, passed, blocked, _, decided = struct.unpack_from("<5Q", extra, begin + 16 + 40 * number)
        yield zone, passed + blocked, decided


def show(soak, watched, report, rate):
    """Completes the report, and prints it."""
    for role in [one.name for one in soak.collectors + soak.limiters] + ["subscribe-redis", "subscribe-file"]:
        memory = watched.memory(role)
        report["roles"][role] = {f"{what}_mib": round(value / MIB, 2) for what, value in memory.items()}
    for name, most in (("lag_messages", LAG_S * rate * len(ZONES)), ("lag_bytes", LAG_S * SECOND_BYTES),
                       ("lag_records", LAG_S * rate), ("lag_decisions", LAG_S * rate), ("checkpoint_age_s", 60)):
        report[name] = {**watched.figure(name), "bound_of_median": most}
    print(json.dumps(report), flush=True)


def require_steady(report):
    """Memory is flat and lag bounded."""
    for role, seen in report["roles"].items():
        assert seen["last_mib"] - seen["middle_mib"] <= GROWTH_MIB, f"{role} grows: {seen}, {GROWTH_MIB=}"
        assert seen["max_mib"] <= MOST_MIB, f"{role}: {seen}, {MOST_MIB=}"
    for name, seen in report.items():
        if isinstance(seen, dict) and "bound_of_median" in seen:
            assert seen["median"] <= seen["bound_of_median"], (name, seen)


def test_everything_at_once_for_a_while(place):
    """Memory, lag, and what became of every line."""
    if SANITIZED:
        raise cases.Skipped("a sanitizer's memory is not weir's")
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}, archiver={"enabled": True},
                                        limiter=LIMITER) as roles:
        soak = Soak(place, one, roles)
        watched = soak.watching()
        lines = live.Traffic(soak.outlets, RATE)
        lines.begin()
        for collector, count in zip(soak.collectors, (2, 3)):
            collector.until(lambda collector=collector, count=count: collector.value("weir_collector_lines_total") >= count,
                            "has seen what it reads")
        with lines:
            watched.during(SECONDS)
            lines.finish()
        for log in soak.generated:
            log.finish()
        verdicts = [*3 * [lines.total], sum(log.total for log in soak.generated)]
        soak.until_judged(verdicts)
        soak.until_listed()
        total = verdicts[0] + verdicts[3]
        report = {"bench": "cluster_soak", "seconds": round(watched.seconds), "rate": RATE + GENERATED, "lines": total,
                  "rotations": sum(log.rotations for log in [outlet for _, outlet in soak.outlets[:3]] + soak.generated),
                  "roles": {},
                  **{name: soak.written(name) for name in ("events", "decisions", "decisions.shadow")},
                  "check": "oracle" if total <= ORACLE_LINES else "counts"}
        show(soak, watched, report, total / watched.seconds)
        for role in soak.collectors + soak.limiters:
            assert role.stop() == 0, role.said()[-2000:]
        soak.require_counts(verdicts)
        if total <= ORACLE_LINES:
            check = cluster_check.Check(one)
            check.decisions()
            check.judged()
            check.state(place)
        require_steady(report)


if __name__ == "__main__":
    cases.main(globals())
