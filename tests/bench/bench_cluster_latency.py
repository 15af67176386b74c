#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a decision takes: from a log line's write to its decision on the topic, and to the block in Redis.

While a service writes 100k lines a second, users nobody has seen before go over their limit in one write each; both
ends are watched. The peer is bare: as many messages by way of two topics, by librdkafka, on the same broker, at the
same time: what holds the machine up (its host's own work, stated as `steal`, the broker's compiler) holds up both.
Times are milliseconds, by one clock. WEIR_BENCH=smoke runs a small size.
"""
import os
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, decisions
from support.bench import SMOKE, report
from support.kafka import confluent_kafka
from support.place import until
from support.redis import Redis

RATE = 1000 if SMOKE else 100_000
PROBES = 20 if SMOKE else 2000
EVERY_S = 0.02
WARM_S = 1 if SMOKE else 40  # the broker compiles its code meanwhile
SETTLE_S = 1 if SMOKE else 5  # the watching threads start and connect meanwhile
OVER = 11  # requests that go over ten a minute
GOAL_P99_MS = 25
_LINE = '%s - - [%s] "GET /probe HTTP/1.1" 200 17 "-" "probe"\n'


def percentile(values, share):
    """The value below which that share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def address(number):
    """A user that only this benchmark has: of the addresses kept for benchmarks."""
    return f"198.18.{number >> 8}.{number & 255}"


class Watch:
    """A thread that notes when it first saw each probe."""

    def __init__(self, watch, wake=lambda: None):
        """watch(note, ended): notes texts until it is ended; wake() ends its waiting."""
        self.seen, self._wake = {}, wake
        self._ended = threading.Event()
        self._thread = threading.Thread(target=watch, args=(self._note, self._ended), daemon=True)
        self._thread.start()

    def _note(self, text):
        at = text.find(b"198.18.")
        if at >= 0:
            user = text[at:at + 15].split(b'"', 1)[0].decode()
            self.seen.setdefault(user, time.monotonic())

    def end(self):
        """Ends it."""
        self._ended.set()
        self._wake()
        self._thread.join()


def watch_topic(servers):
    """Watches the decisions' topic, from its end on."""
    topic = servers.topic("decisions")
    where = [confluent_kafka.TopicPartition(topic, number, last)
             for number, last in servers.ends("decisions").items()]

    def watch(note, ended):
        with servers.kafka.reader(**{"fetch.wait.max.ms": 500}) as consumer:
            consumer.assign(where)
            while not ended.is_set():
                first = consumer.poll(0.1)
                for message in [first, *consumer.consume(1000, 0)] if first else []:
                    if message.error() is None:
                        note(message.value())

    return Watch(watch)


def watch_redis(servers):
    """Watches the keys of Redis by its notifications."""
    servers.redis.call("CONFIG", "SET", "notify-keyspace-events", "K$")

    def watch(note, ended):
        client = Redis(servers.redis_port, timeout_s=None)
        client.call("PSUBSCRIBE", f"__keyspace@{servers.redis_database}__:*")
        while not ended.is_set():
            note(client.next_push()[2])
        client.close()

    return Watch(watch, wake=lambda: servers.redis.call("SET", "end", ""))


def write_probes(path):
    """Lets users go over their limit, one after another: {user: when its line was written}."""
    rng, written = random.Random(1), {}
    with open(path, "ab", buffering=0) as log:
        for number in range(PROBES):
            time.sleep(EVERY_S * rng.uniform(0.5, 1.5))  # in no step with anything
            user = address(number)
            line = _LINE % (user, time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime()))
            written[user] = time.monotonic()
            log.write(OVER * line.encode())
    return written


class Hops:
    """Bare messages by way of two topics, as a line goes, as often as probes are written: seconds from the first producer
    to the second consumer.

    They are sent in time whether the last has come or not: a broker that stands still holds up as many of them as of
    probes."""

    def __init__(self, servers):
        self.times, self._ended = [], threading.Event()
        self._topics = [f"{servers.prefix}.bare.{hop}" for hop in (1, 2)]
        for topic in self._topics:
            servers.kafka.create(topic)
        self._threads = [threading.Thread(target=work, args=(servers,), daemon=True)
                         for work in (self._send, self._pass_on, self._receive)]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _producer(servers):
        return confluent_kafka.Producer({"bootstrap.servers": servers.brokers, "acks": "all", "linger.ms": 0,
                                         "socket.nagle.disable": True})

    def _send(self, servers):
        producer, rng = self._producer(servers), random.Random(2)
        while not self._ended.wait(EVERY_S * rng.uniform(0.5, 1.5)):
            producer.produce(self._topics[0], repr(time.monotonic()).encode().ljust(300))
            producer.poll(0)
        producer.flush(30)

    def _messages(self, servers, topic):
        with servers.kafka.reader(**{"fetch.wait.max.ms": 500, "enable.partition.eof": False}) as consumer:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
            while not self._ended.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    yield message.value()

    def _pass_on(self, servers):
        producer = self._producer(servers)
        for value in self._messages(servers, self._topics[0]):
            producer.produce(self._topics[1], value)
            producer.poll(0)
        producer.flush(30)

    def _receive(self, servers):
        for value in self._messages(servers, self._topics[1]):
            self.times.append(time.monotonic() - float(value))

    def settle(self):
        """Lets it and what was started with it come to their steady state; what it saw until then does not count."""
        time.sleep(SETTLE_S)
        self.times.clear()

    def end(self):
        """Ends it once it has seen enough; what it saw."""
        until(lambda: len(self.times) > PROBES // 4, "the bare messages come")
        self._ended.set()
        for thread in self._threads:
            thread.join()
        return self.times


def state(name, written, watch, bare, **more):
    """Reports what a watch saw."""
    times = [(watch.seen[user] - begun) * 1000 for user, begun in written.items()]
    report(name, unit="ms", rate=round(statistics.median(times), 2), p99=round(percentile(times, 0.99), 2),
           most=round(max(times), 2), ceiling=round(statistics.median(bare) * 1000, 2),
           ceiling_p99=round(percentile(bare, 0.99) * 1000, 2), ceiling_most=round(max(bare) * 1000, 2),
           ratio=round(statistics.median(times) / statistics.median(bare) / 1000, 2),
           ratio_p99=round(percentile(times, 0.99) / percentile(bare, 0.99) / 1000, 2), probes=len(times), **more)


def measure(place):
    """Both ways' ends."""
    path = place.path("access.log")
    with bench.stage(place, bus={"partitions": 8}, limiter={"threads": 2}) as (servers, roles):
        roles.apply()
        limiter = roles.limiter().until_ready()
        generator = place.start("generate", "--follow-rate", RATE, "--for", "1h", "--quiet", "--output", path)
        until(lambda: os.path.exists(path), "the log is there", running=generator)
        roles.collector([bench.combined(path, follow=True)]).until_ready()
        decisions.start(place, bench.config(place, roles), servers.redis_url).until_ready()
        time.sleep(WARM_S)  # lets the first flood of decisions go by
        watches = [watch_topic(servers), watch_redis(servers)]
        hops = Hops(servers)
        hops.settle()
        begun, before, stolen = time.monotonic(), limiter.value("weir_limiter_events_total"), bench.steal_s()
        written = write_probes(path)
        seconds = time.monotonic() - begun
        rate = (limiter.value("weir_limiter_events_total") - before) / seconds
        steal = round((bench.steal_s() - stolen) / seconds / os.cpu_count(), 3)
        bare = hops.end()
        for watch in watches:
            until(lambda watch=watch: written.keys() <= watch.seen.keys(), "all decisions are seen")
            watch.end()
        assert generator.code() is None, generator.said()
    state("cluster_latency", written, watches[0], bare, goal_p99=GOAL_P99_MS, goal_ratio_p99=2, lines_a_second=round(rate), steal=steal)
    state("cluster_latency_redis", written, watches[1], bare, lines_a_second=round(rate), steal=steal)


if __name__ == "__main__":
    bench.main("cluster_latency", measure)
