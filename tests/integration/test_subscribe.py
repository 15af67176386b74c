#!/usr/bin/env python3
"""`weir subscribe` on a real decisions topic: Redis, a file, a command; what it does when they, or it, go away."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, metrics
from support.decisions import PARTITIONS, Topic, joined, now_ms
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of, read, until
from support.redis import Redis

MANY = 100000


def seeded():
    """A random generator whose seed is said."""
    seed = int(os.environ.get("WEIR_SEED") or time.time())
    print(f"WEIR_SEED={seed}")
    return random.Random(seed)


def block_key(zone, key):
    """The key of a block in Redis."""
    return b"weir:" + zone.encode() + b":" + key


def keys_of(topic, zone=None):
    """The keys that Redis is to hold."""
    return sorted(block_key(*bucket) for bucket in topic.expected(zone))


def held(redis):
    """{key: (decision, end in Unix ms)} of the blocks in Redis."""
    blocks = {}
    for key in redis.keys("weir:*"):
        value, end = redis.call("GET", key), redis.call("PEXPIRETIME", key)
        if value is not None and end != -2:
            blocks[key] = json.loads(value), end
    return blocks


def check_redis(topic, redis, subscriber):
    """Waits until Redis holds what it is to hold, every decision whole and with its end."""
    def is_true():
        wanted = {block_key(*bucket): (decision, decision["until"] if decision["until"] < 2 ** 62 else -1)
                  for bucket, decision in topic.expected().items()}
        return held(redis) == wanted

    subscriber.until(is_true, "Redis holds what is live")


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


# ---- Redis ----

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
        assert said.count("trying again") <= 3, said  # each trouble once, however often it was tried
        redis.client.call("FLUSHALL")
        check_redis(topic, redis.client, subscriber)
        redis.client.call("SCRIPT", "FLUSH")
        topic.block("10.0.1.1")
        check_redis(topic, redis.client, subscriber)
        assert subscriber.weir.stop() == 0


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
            subscriber.until(lambda one=subscriber: one.value("lag_records") == 0, "it has read all")
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


def test_a_hundred_thousand_decisions(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        live = topic.subscribe(c.redis_url).until_ready()
        started = time.monotonic()
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",), for_s=0 if n % 10 == 9 else 3600)
                       for n in range(MANY)])
        count = len(topic.expected())
        live.until(lambda: live.value("decisions_total", result="applied") == count and
                   live.value("lag_records") == 0, "all are read", 10 * PATIENCE_S)
        live.until(lambda: c.redis.call("DBSIZE") >= count, "all are in Redis", 10 * PATIENCE_S)
        print(f"{MANY} decisions, produced and in Redis, in {time.monotonic() - started:.1f} s")
        assert c.redis.keys("weir:*") == keys_of(topic)
        # One that is started now reads all, then copies all.
        path, started = place.path("list"), time.monotonic()
        place.good("subscribe", "--config", topic.config, "--to", f"file:{path}", "--once")
        print(f"read and written to a file in {time.monotonic() - started:.1f} s")
        assert len(lines_of(path)) == count
        peak = live.weir.peak_bytes() / 2 ** 20
        print(f"peak memory {peak:.0f} MiB")
        assert SANITIZED or peak < 400
        assert live.weir.stop() == 0


# ---- files and commands ----

def live_lines(topic, zone=None):
    """The lines that a file is to hold, sorted."""
    return sorted(json.dumps(decision) for decision in topic.expected(zone).values())


def test_a_file_holds_what_is_live(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("blocked.jsonl")

        def is_true():
            return sorted(map(json.dumps, lines_of(path))) == live_lines(topic)

        topic.block("203.0.113.1")
        count = place.path("reloads")
        subscriber = topic.subscribe(f"file:{path}", "--reload", f"echo >>{count}").until_ready()
        assert is_true()
        topic.block("203.0.113.2", "x")
        topic.block("203.0.113.3", for_s=1.5)
        topic.lift("203.0.113.1")
        subscriber.until(is_true, "the changes")
        subscriber.until(lambda: is_true() and len(lines_of(path)) == 1, "one has ended")
        os.unlink(path)
        subscriber.until(is_true, "a file that was removed is there again")
        with open(path, "a", encoding="ascii") as file:
            file.write("{}\n")
        subscriber.until(is_true, "a file that was changed is right again")
        assert read(count).count(b"\n") >= 4
        assert subscriber.weir.stop() == 0
        assert is_true()


def test_a_reload_that_fails_is_tried_again(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("list")
        subscriber = topic.subscribe(f"file:{path}", "--reload", f"echo no luck; test -e {place.path('good')}")
        topic.block("203.0.113.1")
        subscriber.until(lambda: "no luck" in subscriber.weir.said(), "the command's words")
        assert not subscriber.is_ready()
        place.write("good", "")
        subscriber.until_ready()
        assert len(lines_of(path)) == 1


def test_a_command_gets_every_change(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("lines")
        topic.block("10.0.0.1")
        topic.block("10.0.0.2")
        subscriber = topic.subscribe(f"exec:echo $$ >>{path}.pids; echo start >>{path}; exec cat >>{path}")

        def lines():
            return [line if line == b"start" else json.loads(line) for line in read(path).split(b"\n")[:-1]]

        subscriber.until(lambda: len(lines()) == 3, "the start")
        assert lines()[0] == b"start"
        assert sorted(map(json.dumps, lines()[1:])) == live_lines(topic)
        # Not one of them is passed over, as quickly as they come.
        changes = [topic.decision(("10.0.0.3",), for_s=3600 * (n % 2 == 0)) for n in range(100)]
        topic.publish(changes)
        subscriber.until(lambda: len(lines()) == 103, "all changes")
        told = lines()[3:]
        assert [line["action"] for line in told] == ["block", "lift"] * 50
        assert [line["id"] for line in told] == [decision["id"] for _, decision in changes]
        assert all(line["zone"] == "site" and line["key"] == ["10.0.0.3"] for line in told)
        short = topic.block("10.0.0.4", for_s=1)
        subscriber.until(lambda: len(lines()) == 105, "an end")
        assert lines()[-1] == {"id": short["id"], "zone": "site", "key": ["10.0.0.4"], "action": "end",
                               "at": short["until"], "until": short["until"]}
        # Killed, it is started again, with all that is live.
        os.kill(int(read(f"{path}.pids").split()[0]), signal.SIGKILL)
        subscriber.until(lambda: len(lines()) == 108, "started again")
        assert lines()[105] == b"start" and sorted(map(json.dumps, lines()[106:])) == live_lines(topic)
        assert subscriber.weir.stop() == 0


def test_a_command_that_ends_at_once_is_not_started_all_the_time(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("starts")
        subscriber = topic.subscribe(f"exec:echo >>{path}; exit 3")
        subscriber.until(lambda: read(path).count(b"\n") >= 3, "three starts")
        started = time.monotonic()
        before = read(path).count(b"\n")
        subscriber.until(lambda: read(path).count(b"\n") >= before + 3, "three more")
        assert time.monotonic() - started > 2
        assert "left with 3" in subscriber.weir.said()
        assert subscriber.weir.stop() == 0


# ---- the daemon ----

def test_what_is_no_decision_is_counted_and_passed_over(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        good = [topic.decision((f"10.0.0.{n}",)) for n in range(10)]
        topic.publish(good[:5])
        other = dict(good[0][1], id="3-1-0" if not good[0][1]["id"].startswith("3") else "2-1-0")
        bad = [b"", b"{", b"\xff\xfe\x00", b"[]", b"{}" * 1000, b'{"id":"0-0-0"}', b"x" * 1000000]
        c.kafka.produce(c.topic("decisions"), [(b"site|x", value, 0) for value in bad])
        c.kafka.produce(c.topic("decisions"), [(b"site|10.0.0.0", json.dumps(other).encode(), 0)] * 2)
        c.kafka.produce(c.topic("decisions"), [(None, json.dumps(good[0][1]).encode(), 0)])
        topic.publish([topic.decision(("10.9.9.9",), mode="shadow")])
        del topic.live["site", b"10.9.9.9"]
        subscriber = topic.subscribe(c.redis_url)
        topic.publish(good[5:])
        check_redis(topic, c.redis, subscriber)
        malformed = subscriber.value("decisions_total", result="malformed")
        partition = int(good[0][1]["id"].split("-")[0])
        assert malformed in (len(bad) + 2, len(bad) + 3), (malformed, partition)
        assert subscriber.value("decisions_total", result="shadow") == 1
        assert subscriber.weir.said().count("are no decisions") == 1


def test_what_does_not_fit_is_said(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url, "--max", "50").until_ready()
        topic.publish([topic.decision((f"10.0.0.{n}",), for_s=3600 + 10 * n) for n in range(200)])
        first = 200 - 50
        topic.live = {bucket: decision for bucket, decision in topic.live.items()
                      if int(bucket[1].rsplit(b".", 1)[1]) >= first}
        check_redis(topic, c.redis, subscriber)
        assert subscriber.value("left_out_total") == first
        assert subscriber.value("entries") == 50
        assert "--max" in subscriber.weir.said()


def test_pages_and_the_service_manager(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(2 * PATIENCE_S)
            gate = place.path("gate")
            subscriber = topic.subscribe(f"file:{place.path('list')}", "--reload", f"test -e {gate}",
                                         env={**os.environ, "NOTIFY_SOCKET": path})
            subscriber.until(lambda: metrics.get(subscriber.port, "/healthz"), "it answers")
            answer = metrics.get(subscriber.port, "/readyz")
            assert answer[0] == 503 and answer[2].endswith("\n"), answer
            place.write("gate", "")
            assert b"READY=1" in manager.recv(1000)
            assert subscriber.is_ready()
            page = subscriber.page()
            for name, kind in page.types.items():
                assert name.startswith("weir_subscribe_") and page.helps[name], name
                assert (kind == "counter") == name.endswith("_total"), name
            topic.block("10.0.0.1")
            subscriber.until(lambda: subscriber.value("delay_seconds_count") == 1, "the delay of one decision")
            assert subscriber.weir.stop() == 0
            assert b"STOPPING=1" in manager.recv(1000)


def test_the_broker_goes_and_comes(place):
    with cluster.own(parent=place.directory) as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url)
        topic.block("10.0.0.1")
        check_redis(topic, c.redis, subscriber)
        c.part("kill", "kafka")
        subscriber.until(lambda: "WARNING bus" in subscriber.weir.said() or
                         "WARNING decisions" in subscriber.weir.said(), "it says that the broker is away",
                         6 * PATIENCE_S)
        assert subscriber.is_ready()  # the list is as true as can be
        c.part("start", "kafka")
        topic.block("10.0.0.2")
        subscriber.until(lambda: c.redis.keys("weir:*") == keys_of(topic), "it goes on", 6 * PATIENCE_S)
        assert subscriber.weir.stop() == 0


def test_once_says_how_it_went(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("10.0.0.1")
        refused = place.run("subscribe", "--config", topic.config, "--to", f"redis://127.0.0.1:{free_port()}", "--once")
        assert refused.code() == 1 and "Redis at 127.0.0.1" in refused.said(), refused.said()
        lines = place.path("lines")
        place.good("subscribe", "--config", topic.config, "--to", f"exec:cat >{lines}", "--once")
        assert len(lines_of(lines)) == 1
        failed = place.run("subscribe", "--config", topic.config, "--to", "exec:cat >/dev/null; exit 4", "--once")
        assert failed.code() == 1 and "left with 4" in failed.said(), failed.said()
        # The configuration's Redis, where no target is named.
        place.good("subscribe", "--config", topic.config, "--once")
        assert c.redis.keys("weir:*") == keys_of(topic)


def test_a_command_line_that_means_nothing(place):
    local = place.config([{"name": "site", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}], [])
    kafka = place.write("kafka.json", json.dumps({"bus": {"type": "kafka", "brokers": "127.0.0.1:1"}}))
    for words, said in (
            (["--to", "file:x"], "--config FILE is needed"),
            (["--config", place.path("none"), "--to", "file:x"], "none"),
            (["--config", local, "--to", "file:x"], "kafka"),
            (["--config", kafka], "--to TARGET is needed"),
            (["--config", kafka, "--to", "floppy:a"], "there is no target"),
            (["--config", kafka, "--to", "file:"], "no more than its kind"),
            (["--config", kafka, "--to", "redis://"], "redis://"),
            (["--config", kafka, "--to", "nft:inet/blocked"], "nft:FAMILY/TABLE/SET"),
            (["--config", kafka, "--to", "nft:inet/a/b;c"], "nft:FAMILY/TABLE/SET"),
            (["--config", kafka, "--to", "exec:true", "--reload", "true"], "--reload"),
            (["--config", kafka, "--to", "file:x", "--zone", "a b"], "--zone"),
            (["--config", kafka, "--to", "file:x", "--http", "nowhere"], "HOST:PORT"),
            (["--config", kafka, "--to", "file:x", "--interval", "5"], "--interval"),
            (["--config", kafka, "--to", "file:x", "--max", "0"], "--max"),
            (["--config", kafka, "file:x"], "--to")):
        refused = place.run("subscribe", *words)
        assert refused.code() == 2 and said in refused.said(), (words, refused.code(), refused.said())
    taught = place.good("subscribe", "--help").out().decode()
    for kind in ("redis://", "file:", "nginx-map:", "haproxy:", "nft:", "exec:"):
        assert f"--to {kind}" in taught or f"--to '{kind}" in taught, kind
    # Nobody is there: it waits, and ends when it is told to.
    waits = place.start("subscribe", "--config", kafka, "--to", "exec:true")
    until(lambda: waits.said(), "it says that it waits", running=waits)
    assert waits.stop() == 0, waits.said()


if __name__ == "__main__":
    cases.main(globals())
