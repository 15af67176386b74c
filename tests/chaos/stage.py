# SPDX-License-Identifier: Apache-2.0
"""A whole cluster under load, for outages of its servers: collectors, limiters and a subscriber to Redis.

None of them is ever started again: what a server's absence does to them they
get over by themselves, in the memory that they may take.
"""

import copy
import json
import random
import time

import settled
from policies import POLICIES
from writer import Endless

from support import decisions, traffic
from support.blocks_in_redis import held
from support.place import PATIENCE_S, SANITIZED, until
from support.roles import Roles

MIB = 1 << 20
RECOVERY_S = 4 * PATIENCE_S  # seconds on a quiet machine
LAP_LINES, LAP_S = 100, 0.3
MOST_LINES = 4000  # of a log, before it slows down: the oracle has to replay them all

# librdkafka's timeouts shortened, the longest (max.poll.interval.ms, 5 minutes) to 4 s: so 8 s without brokers are 10
# minutes to it. Those of a connection stay long enough for a machine that is busy.
HASTY = {"socket.timeout.ms": 4000, "request.timeout.ms": 3000, "session.timeout.ms": 3000,
         "heartbeat.interval.ms": 300, "max.poll.interval.ms": 4000, "metadata.max.age.ms": 4000,
         "topic.metadata.refresh.interval.ms": 1000, "topic.metadata.propagation.max.ms": 2000,
         "socket.connection.setup.timeout.ms": 4000, "queued.max.messages.kbytes": 8192}
TEN_MINUTES_S = 8

# What a role may take. A producer holds 16 MiB at most (WEIR_BUS_PRODUCER_MAX_BYTES), and half as much again in
# requests; a consumer prefetches the 8 MiB of HASTY, beyond which one fetch may go. The rest is a program's code,
# librdkafka's handles with their buffers, the store's connections, and what is being read or judged: 11 to 15 at rest.
PRODUCER_BYTES, CONSUMER_BYTES, PROGRAM_BYTES = 24 * MIB, 16 * MIB, 24 * MIB
LIMITER_MIB, LIMITER_THREADS = 16, 2
BOUNDS = {"collector": PROGRAM_BYTES + PRODUCER_BYTES,
          "limiter": PROGRAM_BYTES + LIMITER_MIB * MIB + LIMITER_THREADS * (PRODUCER_BYTES + CONSUMER_BYTES),
          "subscribe": PROGRAM_BYTES + CONSUMER_BYTES}

# More than a collector may take, in lines of few judgements and of long keys, which go into frames as they are.
FLOOD_LINES, FLOOD_BYTES = 40000, 1000
FLOOD = traffic.zone("flood", [traffic.sliding(1, "1m")], key=["flood"], id=8)

# Blocks that are still live when Redis is looked at.
BLOCKS = traffic.zone("blocks", [traffic.sliding(20, "1m")], block_for="1d", id=9)


class Load:
    """The logs, which grow until the end."""

    def __init__(self, one, collectors):
        self.place, self.writers, self.of = one.place, {}, {}
        self._start_ms = decisions.now_ms() - 3600 * 1000
        users = one.rng.choice([20, 500, 5000])
        for number in range(collectors):
            for log in range(one.rng.choice([1, 2])):
                name, rng = f"log-{number}-{log}", random.Random(one.rng.random())
                first = traffic.crowd(rng, 1, users, start_ms=self._start_ms)[0]
                path = self.place.write(f"logs/{name}", first)
                self.writers[name] = Endless(path, first, self._lap(name, rng, users), rng, LAP_S)
                self.of.setdefault(number, []).append(name)
        self._flood = [traffic.line(self._start_ms, "first").encode()]
        self._flood_path = self.place.write("logs/flood", self._flood[0])

    def _lap(self, name, rng, users):
        def lap():
            written = len(self.writers[name].lines)
            # Their time goes by about as the clock does, an hour behind it.
            return traffic.crowd(rng, LAP_LINES if written < MOST_LINES else LAP_LINES // 10, users,
                                 start_ms=self._start_ms + 2 * written, step_ms=2, disorder=0.1)
        return lap

    def sources(self, number):
        """A collector's sources; the flood is the first one's."""
        paths = [self.place.path("logs", name) for name in self.of[number]]
        return [traffic.source(path) for path in paths + [self._flood_path] * (number == 0)]

    def start(self):
        """Begins."""
        for writer in self.writers.values():
            writer.start()

    def flood(self):
        """Writes much at once, to the first collector's logs."""
        pad = "x" * FLOOD_BYTES
        lines = [b'{"time":%d,"flood":"%d%s"}\n' % (self._start_ms + number, number, pad.encode())
                 for number in range(FLOOD_LINES)]
        self.place.append("logs/flood", b"".join(lines))
        self._flood += lines

    def stop(self):
        """Ends it: {name: lines}."""
        for writer in self.writers.values():
            writer.stop()
        for writer in self.writers.values():
            writer.join()
            assert writer.failed is None, writer.failed
        return {**{name: writer.lines for name, writer in self.writers.items()}, "flood": self._flood}

    def count(self, number):
        """How many lines a collector's logs have at least."""
        return (sum(max(1, len(self.writers[name].lines) - LAP_LINES) for name in self.of[number])
                + len(self._flood) * (number == 0))


class Stage:
    """The daemons of one round. Use it in a with statement."""

    def __init__(self, one, served, bus=None, store=None, redis_port=None):
        """bus, store: settings beside the cluster's own; redis_port: where the subscriber finds Redis."""
        rng = one.rng
        self.one, self.served = one, served
        self.zones = [*copy.deepcopy(rng.choice(POLICIES)), FLOOD, BLOCKS]
        self.partitions = rng.choice([4, 8])
        limiter = {"checkpoint_interval": rng.choice(["50ms", "200ms"]), "threads": LIMITER_THREADS,
                   "memory": f"{LIMITER_MIB}MiB"}
        self.roles = Roles(one.place, served, self.zones, limiter=limiter, store=store or {},
                           bus={"partitions": self.partitions, "kafka": {**served.kafka_properties, **HASTY},
                                **(bus or {})}, archiver={"enabled": True}, deadletter={"rate": 0})
        self.load = Load(one, rng.choice([2, 3]))
        self._limiters = rng.choice([2, 3])
        self._redis_url = f"redis://127.0.0.1:{redis_port or served.redis_port}"
        self.collectors = self.limiters = self.subscriber = None

    def __enter__(self):
        self.roles.__enter__()
        return self

    def __exit__(self, *why):
        if why[0] is not None and self.subscriber is not None:
            print(f"---- the subscriber says at last:\n{self.subscriber.weir.said()[-4000:]}")
        self.roles.__exit__(*why)

    def start(self):
        """Starts everything: itself."""
        self.roles.apply()
        self.collectors = [self.roles.collector(self.load.sources(number)) for number in sorted(self.load.of)]
        self.limiters = [self.roles.limiter() for _ in range(self._limiters)]
        config = self.one.place.write("subscribe.json", json.dumps(self.roles.sections()))
        self.subscriber = decisions.start(self.one.place, config, self._redis_url)
        for number, role in enumerate(self.collectors):
            first = self.load.count(number)
            role.until(lambda role=role, first=first: role.value("weir_collector_lines_total") >= first, "has seen its logs")
        self.load.start()
        self.one.tell(f"{len(self.collectors)} collectors with {len(self.load.writers)} logs, "
                      f"{self._limiters} limiters, {self.partitions} partitions, {len(self.zones)} zones")
        return self

    @property
    def everyone(self):
        """{name: its process}"""
        return {**{role.name: role.run for role in self.collectors + self.limiters}, "subscribe": self.subscriber.weir}

    # ---- what they say ----

    def mark(self):
        """How much each has said so far."""
        return {name: len(run.said()) for name, run in self.everyone.items()}

    def until_says(self, name, words, mark):
        """Waits until one has said these words since a mark."""
        run = self.everyone[name]
        until(lambda: words in run.said()[mark[name]:], f"{name} says {words!r}", RECOVERY_S, run)

    def judged(self):
        """How many events the limiters have judged, again and again included."""
        return sum(role.value("weir_limiter_events_total") for role in self.limiters)

    def until_judges_on(self, what):
        """Waits until more is judged."""
        seen = self.judged()
        until(lambda: self.judged() >= seen + LAP_LINES, f"judged on {what}", RECOVERY_S, self.limiters[0].run)

    # ---- how they are ----

    def until_well(self):
        """Waits until all that is logged by now is judged and stored, and everyone is well: words on it."""
        began = time.monotonic()
        for number, role in enumerate(self.collectors):
            self._until(began, lambda role=role, lines=self.load.count(number): self._has_sent(role, lines, began),
                        f"{role.name} has sent what it had")
        sent = time.monotonic()
        ends = until(self._ends, "all partitions are known", RECOVERY_S)
        self._until(began, lambda: self._has_stored(ends), f"checkpoints hold {ends}")
        self._until(began, self._all_live, "all partitions are live")
        judged = time.monotonic()
        self._until(began, lambda: self.subscriber.is_ready() and self.subscriber.value("lag_messages") < LAP_LINES,
                    "the subscriber is there")
        for name, run in self.everyone.items():
            # Trouble that is not over would not be told anew.
            self._until(began, lambda run=run: _last_of(run, "bus") != "WARNING", f"{name} says that it is over")
            assert run.code() is None, f"{name} has exited with status {run.code()}: {run.said()[-2000:]}"
        return (f"well after {time.monotonic() - began:.1f} s: sent {sent - began:.1f}, stored {judged - sent:.1f}, "
                f"in Redis {time.monotonic() - judged:.1f}")

    @staticmethod
    def _has_sent(role, lines, began):
        """Whether it has read so many lines, and all that it had read by then is acknowledged."""
        return (role.value("weir_collector_lines_total") >= lines and role.is_ready()
                and role.value("weir_collector_low_water_age_seconds") < time.monotonic() - began)

    def _ends(self):
        """{partition: next offset} once the brokers know all partitions again."""
        ends = self.served.ends()
        return ends if len(ends) == self.partitions else None

    def _has_stored(self, ends):
        stored = self.served.stored()
        return all(stored.get(number, 0) >= end for number, end in ends.items())

    def _all_live(self):
        live = [one.value("weir_limiter_partitions", state="live") for one in self.limiters]
        return sum(live) == self.partitions and all(live) and all(one.is_ready() for one in self.limiters)

    @staticmethod
    def _until(began, condition, what):
        until(condition, f"in time: {what}", max(1, began + RECOVERY_S - time.monotonic()))

    def check_memory(self):
        """No one has ever taken more than he may."""
        peaks = {name: run.peak_bytes() for name, run in self.everyone.items()}
        self.one.tell("memory: " + ", ".join(f"{name} {peak // MIB} MiB" for name, peak in peaks.items()))
        for name, peak in peaks.items():
            bound = BOUNDS[name.split("-")[0]]
            assert SANITIZED or peak <= bound, f"{name} has taken {peak // MIB} MiB, more than {bound // MIB}"

    # ---- the end ----

    def finish(self):
        """Stops the load, waits until all is done, lets everyone leave, and holds the result against the oracle."""
        settled.until_settled(self.one, self.served, self.zones, self.load.stop())
        self._until(time.monotonic(), lambda: self.subscriber.is_ready() and self.subscriber.value("lag_messages") == 0,
                    "the subscriber has read all")
        self.check_memory()
        for role in self.collectors + self.limiters:
            assert role.stop() == 0, f"{role.name}: {role.said()[-2000:]}"
        check = settled.prove(self.one, self.served)
        self._check_redis(check)
        assert self.subscriber.weir.stop() == 0, self.subscriber.weir.said()[-2000:]

    def _check_redis(self, check):
        newest = {key: json.loads(line) for one in check.partitions.values() for _, key, line in one.decisions}

        def is_true():
            now_ms = decisions.now_ms()
            wanted = {b"weir:" + key.replace(b"|", b":", 1): (decision, decision["until"])
                      for key, decision in newest.items()
                      if decision["action"] == "block" and decision["until"] > now_ms}
            return held(self.served.redis) == wanted
        until(is_true, "Redis holds the blocks that are live", RECOVERY_S, self.subscriber.weir)


def _last_of(run, part):
    """The level of what a part of a program said last; None if it said nothing."""
    levels = [line.split(" ", 2)[1] for line in run.said().splitlines() if f" {part}: " in line]
    return levels[-1] if levels else None
