#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir subscribe` and Redis: the list is true whatever comes, whoever else writes there, and whatever is killed."""

import json
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.blocks_in_redis import block_key, check_redis, keys_of
from support.decisions import PARTITIONS, Topic, now_ms
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of, until
from support.redis import Redis

MANY = 100000


def seeded():
    """A random generator whose seed is said."""
    seed = int(os.environ.get("WEIR_SEED") or time.time())
    print(f"WEIR_SEED={seed}")
    return random.Random(seed)


class OwnRedis:
    """A Redis of the test's own, which it stops and starts."""

    def __init__(self, place):
        server = shutil.which("redis-server")
        if server is None:
            raise cases.Skipped("there is no redis-server")
        self.place, self.server, self.port = place, server, free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client = Redis(self.port)
        self.run = None
        self.start()

    def start(self):
        """Starts it, empty."""
        self.run = self.place.start("--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                    "--dir", self.place.directory, program=self.server)
        until(self._answers, "Redis answers", running=self.run)

    def _answers(self):
        try:
            return self.client.call("PING")
        except OSError:
            return None

    def stop(self):
        """Ends it."""
        self.run.stop()


def test_redis_holds_what_is_live(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.1")
        topic.block("203.0.113.2")
        topic.lift("203.0.113.2")
        topic.block("203.0.113.3", for_s=None)
        topic.block("203.0.113.4", at_ms=now_ms() - 100000, for_s=1)
        subscriber = topic.subscribe(c.redis_url)
        check_redis(topic, c.redis, subscriber)
        # Then changes, of odd keys too.
        topic.block("2001:db8::1", zone="shop")
        topic.block("a|b", "c\\", zone="pair")
        topic.block(b"\xff\x00\n %*[a]:x", zone="odd")
        topic.block()
        topic.lift("203.0.113.3")
        topic.lift("203.0.113.99")
        topic.block("203.0.113.1", for_s=2 * 3600)
        check_redis(topic, c.redis, subscriber)
        assert block_key("pair", b"a\\|b|c\\\\") in c.redis.keys("weir:*")
        assert subscriber.value("rebuilds_total") == 1 and subscriber.value("errors_total") == 0
        assert subscriber.value("entries") == len(topic.expected())
        # What ends is gone by itself, in the table too.
        topic.block("203.0.113.5", for_s=1.5)
        check_redis(topic, c.redis, subscriber)
        subscriber.until(lambda: not c.redis.call("EXISTS", "weir:site:203.0.113.5"), "it ends")
        subscriber.until(lambda: subscriber.value("entries") == len(topic.expected()), "it ends in the table")
        assert subscriber.weir.stop() == 0, subscriber.weir.said()


def test_a_zone_that_was_removed_is_lifted_whole(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url)
        topic.publish([topic.decision((f"10.0.0.{n}",), zone="old" if n % 2 else "site") for n in range(40)])
        check_redis(topic, c.redis, subscriber)
        for partition in range(PARTITIONS):
            lift = {"id": f"{partition}-1000-0", "zone": "old", "key": None, "action": "lift", "at": now_ms(),
                    "until": now_ms(), "mode": "enforce"}
            c.kafka.produce(c.topic("decisions"), [(b"old|", json.dumps(lift).encode(), partition)])
        topic.live = {bucket: decision for bucket, decision in topic.live.items() if bucket[0] != "old"}
        check_redis(topic, c.redis, subscriber)


def test_older_versions_change_nothing(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url).until_ready()
        first = topic.decision(("1.1.1.1",))
        second = topic.decision(("1.1.1.1",), for_s=0)
        third = topic.decision(("2.2.2.2",), for_s=50)
        fourth = topic.decision(("2.2.2.2",), for_s=5000)
        topic.publish([first, second, fourth])
        check_redis(topic, c.redis, subscriber)
        topic.publish([first, third, second, first])
        topic.block("3.3.3.3")
        check_redis(topic, c.redis, subscriber)
        assert subscriber.value("decisions_total", result="older") == 4


def test_what_another_subscriber_has_gone_past_is_not_put_back(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url).until_ready()
        end = now_ms() + 3600000
        old = topic.decision(("1.1.1.1",))  # another has already lifted this one,
        c.redis.call("SET", "weir-lift:site:1.1.1.1", '{"id":"0-999-0"}', "PXAT", end)
        later = topic.decision(("2.2.2.2",))  # and already has a later version of this one
        newer = dict(later[1], id=later[1]["id"].replace("-1-0", "-998-7").replace("-2-0", "-998-7"))
        assert newer["id"] != later[1]["id"]
        c.redis.call("SET", "weir:site:2.2.2.2", json.dumps(newer), "PXAT", end)
        topic.publish([old, later])
        topic.block("3.3.3.3")
        keys = [b"weir:site:2.2.2.2", b"weir:site:3.3.3.3"]
        subscriber.until(lambda: c.redis.keys("weir:*") == keys, "only what is new")
        assert json.loads(c.redis.call("GET", "weir:site:2.2.2.2")) == newer
        # A whole copy takes out what is foreign or known to be over, and leaves what is newer than all it has read.
        c.redis.call("SET", "weir:site:4.4.4.4", json.dumps(dict(old[1], id="0-0-0")))
        c.redis.call("SET", "weir:site:5.5.5.5", json.dumps(dict(old[1], id="1-997-0")))
        c.redis.call("SET", "weir:site:6.6.6.6", "foreign")
        c.redis.call("RPUSH", "weir:site:7.7.7.7", "a list")
        c.redis.call("SET", "other", "stays")
        subscriber.weir.signal(signal.SIGHUP)
        keys.append(b"weir:site:5.5.5.5")
        subscriber.until(lambda: c.redis.keys("weir:*") == keys, "a copy has removed the strays")
        assert c.redis.call("GET", "other") == b"stays"
        assert json.loads(c.redis.call("GET", "weir:site:2.2.2.2")) == newer
        # What is newer than both is written.
        topic.block("2.2.2.2", id=newer["id"].replace("-998-7", "-999-0"))
        subscriber.until(lambda: json.loads(c.redis.call("GET", "weir:site:2.2.2.2"))["id"].endswith("-999-0"),
                         "the newest")


def test_redis_that_restarts_or_is_emptied_gets_the_list_again(place):
    with cluster.shared() as c:
        topic, redis = Topic(place, c), OwnRedis(place)
        subscriber = topic.subscribe(redis.url)
        topic.publish([topic.decision((f"10.0.0.{number}",)) for number in range(50)])
        check_redis(topic, redis.client, subscriber)
        redis.stop()
        subscriber.until(lambda: not subscriber.is_ready(), "it says that Redis is away")
        topic.publish([topic.decision((f"10.0.0.{number}",)) for number in range(50, 100)])
        topic.lift("10.0.0.1")
        redis.start()
        check_redis(topic, redis.client, subscriber)
        subscriber.until_ready()
        said = subscriber.weir.said()
        assert said.count("Retrying") <= 3, said  # each trouble once, however often it was tried
        redis.client.call("FLUSHALL")
        check_redis(topic, redis.client, subscriber)
        redis.client.call("SCRIPT", "FLUSH")
        topic.block("10.0.1.1")
        check_redis(topic, redis.client, subscriber)
        assert subscriber.weir.stop() == 0


def test_blocks_that_redis_has_evicted_come_back(place):
    with cluster.shared() as c:
        topic, redis = Topic(place, c), OwnRedis(place)
        subscriber = topic.subscribe(redis.url)
        topic.publish([topic.decision((f"10.0.0.{number}",)) for number in range(50)])
        check_redis(topic, redis.client, subscriber)
        for _ in range(5):  # where the subscriber's own mark is among them, the list comes back for that, and the next round tells
            evict_a_block(redis.client)
            check_redis(topic, redis.client, subscriber)
            if "maxmemory-policy" in subscriber.weir.said():
                break
        assert "maxmemory-policy" in subscriber.weir.said()
        assert subscriber.weir.stop() == 0


def evict_a_block(client):
    """Lets Redis run out of room until it has evicted one at least; then it has room again."""
    for name, value in (("maxmemory-policy", "allkeys-lru"), ("maxmemory", "8mb")):
        client.call("CONFIG", "SET", name, value)
    for number in range(40_000):
        client.call("SET", f"page:{number}", "x" * 1000)
        if number % 1000 == 0 and client.call("EXISTS", *[f"weir:site:10.0.0.{n}" for n in range(50)]) < 50:
            break
    else:
        raise AssertionError("Redis has evicted no block")
    client.call("CONFIG", "SET", "maxmemory", "0")


def test_killed_and_started_again(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        chance = seeded()
        for life in range(4):
            subscriber = topic.subscribe(c.redis_url)
            for _ in range(5):
                topic.publish([topic.decision((f"10.0.0.{chance.randrange(30)}",), for_s=chance.choice((0, 1, 2, 3600)))
                               for _ in range(5)])
            if life == 2:
                check_redis(topic, c.redis, subscriber)
            subscriber.weir.kill()
            topic.publish([topic.decision((f"10.0.0.{chance.randrange(30)}",), for_s=chance.choice((0, 3600)))
                           for _ in range(20)])
        check_redis(topic, c.redis, topic.subscribe(c.redis_url))


def test_two_subscribers_keep_one_redis(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        chance = seeded()
        both = [topic.subscribe(c.redis_url), topic.subscribe(c.redis_url, "--interval", "300ms")]
        for round_ in range(10):
            topic.publish([topic.decision((f"10.0.0.{chance.randrange(50)}",), for_s=chance.choice((0, 1, 3600)))
                           for _ in range(100)])
            if round_ % 3 == 1:
                both[round_ % 2].weir.signal(signal.SIGHUP)
            if round_ == 5:
                both[0].weir.kill()
                both[0] = topic.subscribe(c.redis_url)
        for subscriber in both:
            subscriber.until_ready()
            subscriber.until(lambda one=subscriber: one.value("lag_messages") == 0, "it has read all")
            check_redis(topic, c.redis, subscriber)
        # Blocks that were lifted stay away, whoever writes last.
        time.sleep(0.5)
        check_redis(topic, c.redis, both[1])


def test_zones_of_two_subscribers_do_not_meet(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        one = topic.subscribe(c.redis_url, "--zone", "site").until_ready()
        two = topic.subscribe(c.redis_url, "--zone", "shop", "--zone", "mail").until_ready()
        topic.publish([topic.decision((f"10.0.0.{n}",), zone=("site", "shop", "mail", "none")[n % 4])
                       for n in range(20)])
        topic.live = {bucket: decision for bucket, decision in topic.live.items() if bucket[0] != "none"}
        check_redis(topic, c.redis, one)
        for subscriber in (one, two):
            before = subscriber.value("rebuilds_total")
            subscriber.weir.signal(signal.SIGHUP)
            subscriber.until(lambda s=subscriber, b=before: s.value("rebuilds_total") > b, "a copy")
        check_redis(topic, c.redis, two)


def test_a_block_in_place_of_a_longer_one_ends_in_time(place):
    """Also where it is over before Redis is told of it."""
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url, "--interval", "5s").until_ready()
        topic.block("10.0.0.1")
        check_redis(topic, c.redis, subscriber)
        topic.block("10.0.0.1", for_s=1)
        time.sleep(1.5)
        check_redis(topic, c.redis, subscriber)
        assert subscriber.weir.stop() == 0


def test_a_hundred_thousand_decisions(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        live = topic.subscribe(c.redis_url).until_ready()
        started = time.monotonic()
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",), for_s=0 if n % 10 == 9 else 3600)
                       for n in range(MANY)])
        count = len(topic.expected())
        live.until(lambda: live.value("decisions_total", result="applied") == count and
                   live.value("lag_messages") == 0, "all are read", 10 * PATIENCE_S)
        live.until(lambda: c.redis.call("DBSIZE") >= count and c.redis.keys("weir:*") == keys_of(topic), "all are in Redis",
                   10 * PATIENCE_S)
        print(f"{MANY} decisions, produced and in Redis, in {time.monotonic() - started:.1f} s")
        # One that is started now reads all, then copies all.
        path, started = place.path("list"), time.monotonic()
        place.good("subscribe", "--config", topic.config, "--to", f"file:{path}", "--once")
        print(f"read and written to a file in {time.monotonic() - started:.1f} s")
        assert len(lines_of(path)) == count
        peak = live.weir.peak_bytes() / 2 ** 20
        print(f"peak memory {peak:.0f} MiB")
        assert SANITIZED or peak < 400
        assert live.weir.stop() == 0


if __name__ == "__main__":
    cases.main(globals())
