#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir subscribe` on a real decisions topic: files and commands, bad records, bounds, pages, the broker's absence."""

import email.utils
import glob
import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, metrics
from support.blocks_in_redis import check_redis, keys_of
from support.decisions import PARTITIONS, Topic, now_ms, partition_of, start
from support.place import PATIENCE_S, free_port, lines_of, read, until


# ---- files and commands ----

def live_lines(topic, zone=None):
    """The lines that a file is to hold, sorted."""
    return sorted(json.dumps(decision) for decision in topic.expected(zone).values())


def is_true(topic, path):
    """Whether a file holds what is live."""
    return sorted(map(json.dumps, lines_of(path))) == live_lines(topic)


def test_a_file_holds_what_is_live(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("blocked.jsonl")
        topic.block("203.0.113.1")
        count = place.path("reloads")
        subscriber = topic.subscribe(f"file:{path}", "--reload", f"echo >>{count}").until_ready()
        assert is_true(topic, path)
        topic.block("203.0.113.2", "x")
        topic.block("203.0.113.3", for_s=1.5)
        topic.lift("203.0.113.1")
        subscriber.until(lambda: is_true(topic, path), "the changes")
        subscriber.until(lambda: is_true(topic, path) and len(lines_of(path)) == 1, "one has ended")
        os.unlink(path)
        subscriber.until(lambda: is_true(topic, path), "a file that was removed is there again")
        with open(path, "a", encoding="ascii") as file:
            file.write("{}\n")
        subscriber.until(lambda: is_true(topic, path), "a file that was changed is right again")
        assert read(count).count(b"\n") >= 4
        assert subscriber.weir.stop() == 0
        assert is_true(topic, path)


def test_a_reload_that_fails_is_tried_again(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c), place.path("list")
        subscriber = topic.subscribe(f"file:{path}", "--reload", f"echo no luck; test -e {place.path('good')}")
        topic.block("203.0.113.1")
        subscriber.until(lambda: "no luck" in subscriber.weir.said(), "the command's words")
        assert not subscriber.is_ready()
        place.write("good", "")
        subscriber.until_ready()
        subscriber.until(lambda: len(lines_of(path)) == 1, "its line")  # the failed reload may have been of the empty list


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
        # The end is told as well, of a block that was not over before it came.
        def taken():
            return subscriber.page().sum("weir_subscribe_decisions_total")

        before = taken()
        for tries, for_s in enumerate((1, 10, 60), 1):
            short = topic.block("10.0.0.4", for_s=for_s)
            subscriber.until(lambda n=before + tries: taken() == n, "it is taken in")
            if subscriber.value("decisions_total", result="over") < tries:
                break
        subscriber.until(lambda: len(lines()) == 105, "an end", 4 * PATIENCE_S)
        told = lines()[103:]
        assert told == [short, {"id": short["id"], "zone": "site", "key": ["10.0.0.4"], "action": "end",
                                "at": short["until"], "until": short["until"]}]
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
        assert "exited with status 3" in subscriber.weir.said()
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
        assert subscriber.weir.said().count("malformed records") == 1, subscriber.weir.said()


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
        subscriber.until(lambda: "--max" in subscriber.weir.said(), "it is said")


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
                assert name.startswith(("weir_subscribe_", "weir_http_", "weir_bus_", "weir_topic_", "weir_certificate_", "weir_build_info", "process_")) and page.helps[name], name
                assert (kind == "counter") == name.endswith("_total"), name
            topic.block("10.0.0.1")
            subscriber.until(lambda: subscriber.value("delay_seconds_count") == 1, "the delay of one decision")
            assert subscriber.weir.stop() == 0
            assert b"STOPPING=1" in manager.recv(1000)


def test_a_gap_is_passed_over(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url).until_ready()
        block = topic.block("10.0.0.1")
        topic.block("10.0.0.9", for_s=None)
        check_redis(topic, c.redis, subscriber)
        # While it stands still, a part of what it has not read goes, as it does behind a topic's retention.
        subscriber.weir.pause()
        lost = [topic.decision((f"10.0.1.{n}",)) for n in range(100)]
        topic.publish(lost)
        topic.lift("10.0.0.9")
        c.kafka.trim(c.topic("decisions"), c.ends("decisions"))
        for bucket in [bucket for bucket in topic.live if bucket[1].startswith(b"10.0.1.")]:
            del topic.live[bucket]
        topic.publish([(["10.0.0.1"], block)])  # what is live is published again before it goes
        topic.publish([topic.decision((f"10.0.2.{n}",)) for n in range(20)])
        subscriber.weir.resume()
        subscriber.until(lambda: set(keys_of(topic)) <= set(c.redis.keys("weir:*")), "what came behind the gap")
        subscriber.until(lambda: subscriber.value("lag_messages") == 0, "all is read")
        subscriber.until(lambda: b"weir:site:10.0.0.9" not in c.redis.keys("weir:*"), "the lift counts")
        assert subscriber.value("gaps_total") >= 1 or len(c.redis.keys("weir:*")) == len(topic.live) + len(lost)
        assert subscriber.weir.stop() == 0


def spoil(c, key):
    """Turns a letter of a decision around, in the broker's file of partition 0."""
    path, = glob.glob(f"{c.directory}/**/{c.topic('decisions')}-0/*0.log", recursive=True)
    with open(path, "r+b") as file:
        file.seek(read(path).index(f'"{key}"'.encode()) + 1)
        file.write(b"X")


def test_damaged_bytes_are_passed_over(place):
    with cluster.own(parent=place.directory) as c:
        topic, path = Topic(place, c), place.path("blocked.jsonl")
        first, *damaged, last = [key for key in (f"10.0.0.{n}" for n in range(250)) if partition_of([key]) == 0]
        for keys in [first], damaged, [last]:  # each a batch of its own
            topic.publish([topic.decision([key]) for key in keys])
        spoil(c, damaged[len(damaged) // 2])
        topic.publish([topic.decision([f"10.0.1.{n}"]) for n in range(50)])
        for key in damaged:
            del topic.live["site", key.encode()]
        subscriber = topic.subscribe(f"file:{path}").until_ready()
        assert is_true(topic, path)
        assert "damaged at offset 1:" in subscriber.weir.said(), subscriber.weir.said()
        assert subscriber.value("gaps_total") == 1 and subscriber.value("lag_messages") == 0
        topic.block(damaged[0])
        subscriber.until(lambda: is_true(topic, path), "what comes behind")
        # Nor does who lists them stumble over it.
        zones = [{"name": "site", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}]
        with_zones = place.write("zones.json", json.dumps(c.sections(partitions=PARTITIONS, zones=zones)))
        place.good("policy", "apply", "--config", with_zones)
        listed = place.run("list", "--config", with_zones, "--json")
        assert len(listed.objects()) == len(topic.expected()), listed.said()
        # No limiter runs, which it says once the brokers of a cluster this new can tell it.
        assert listed.code() == ("no limiter is running" in listed.said()), (listed.code(), listed.said())
        assert f"{len(damaged)} malformed messages of the decisions topic" in listed.said(), listed.said()
        assert subscriber.weir.stop() == 0


def test_a_topic_that_was_recreated_is_read_and_unblocks_nobody(place):
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe(c.redis_url).until_ready()
        topic.publish([topic.decision((f"10.0.0.{n}",)) for n in range(100)])
        check_redis(topic, c.redis, subscriber)
        settings = c.kafka.settings_of(c.topic("decisions"))
        c.kafka.delete([c.topic("decisions")])
        until(lambda: c.topic("decisions") not in c.kafka.topics(), "the topic is gone")
        c.kafka.create(c.topic("decisions"), partitions=PARTITIONS, retention_ms=settings["retention.ms"],
                       max_message_bytes=settings["max.message.bytes"])
        topic.block("192.0.2.1")
        subscriber.until(lambda: "was recreated" in subscriber.weir.said(), "it notices", 6 * PATIENCE_S)
        check_redis(topic, c.redis, subscriber)  # with those of before
        assert "runbook: topic-recreated" in subscriber.weir.said()
        topic.lift("10.0.0.1")
        check_redis(topic, c.redis, subscriber)
        assert subscriber.weir.stop() == 0


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
        subscriber.until(lambda: subscriber.value("ends_age_seconds") > 5, "it shows how long it has heard nothing")
        subscriber.until(lambda: not subscriber.is_ready(), "it says that it is blind", 6 * PATIENCE_S)
        assert "has not been heard of for" in metrics.get(subscriber.port, "/readyz")[2]
        c.part("start", "kafka")
        topic.block("10.0.0.2")
        subscriber.until(lambda: c.redis.keys("weir:*") == keys_of(topic), "it goes on", 6 * PATIENCE_S)
        subscriber.until(lambda: subscriber.value("ends_age_seconds") < 5, "it hears of the ends again")
        assert subscriber.is_ready()
        assert subscriber.weir.stop() == 0


def test_what_is_over_goes_while_it_waits(place):
    config = place.write("kafka.json", json.dumps({"bus": {"type": "kafka", "brokers": f"127.0.0.1:{free_port()}"}}))
    past, soon, later = now_ms() - 60000, now_ms() + 3000, now_ms() + 600000

    def date(until):
        return email.utils.formatdate(-(-until // 1000), usegmt=True)

    forms = {
        "nginx-map": [f'"{key}" "{date(until)}";\n' for key, until in
                      (("203.0.113.1", past), ('a \\"b\\"\nc', soon), ("203.0.113.2", later))],
        "file": [json.dumps({"zone": "site", "key": [key], "until": until}) + "\n"
                 for key, until in (("203.0.113.1", past), ("203.0.113.3", soon), ("203.0.113.2", later))]}
    for kind, lines in forms.items():
        path, reloads = place.write(kind, "".join(lines)), place.path(f"{kind}.reloads")
        waits = start(place, config, f"{kind}:{path}", "--reload", f"echo >>{reloads}")
        waits.until(lambda path=path, last=lines[2]: read(path).decode() == last, "what is over is gone")
        waits.until(lambda path=reloads: read(path), "a reload")
        assert waits.weir.stop() == 0 and read(path).decode() == lines[2]
        assert read(reloads).count(b"\n") <= 2
    # What it has not written stays.
    path = place.write("other", forms["nginx-map"][0] + "include more.map;\n")
    waits = start(place, config, f"nginx-map:{path}")
    waits.until(lambda: waits.weir.said(), "it says that it waits")
    assert waits.weir.stop() == 0 and b"more.map" in read(path) and b"203.0.113.1" in read(path)


def test_it_waits_for_its_topic_and_makes_none(place):
    with cluster.shared() as c:
        topic, path = Topic(place, c, make=False), place.path("list")
        words = f"{c.topic('decisions')} does not exist yet"
        subscriber, other = topic.subscribe(f"file:{path}"), topic.subscribe(f"file:{place.path('other')}")
        subscriber.until(lambda: words in subscriber.weir.said(), "what it waits for")
        other.until(lambda: words in other.weir.said(), "what it waits for")
        # It is well, and says that it is not ready.
        assert metrics.get(subscriber.port, "/healthz")[0] == 200
        answer = metrics.get(subscriber.port, "/readyz")
        assert answer[0] == 503 and "waiting for the bus" in answer[2] and words in answer[2], answer
        # It is the topic that is missing, and no broker.
        page = subscriber.page()
        assert page.value("weir_bus_up") == 1, page
        assert page.value("weir_topic_up", topic=c.topic("decisions")) == 0, page
        assert subscriber.value("ready") == 0
        assert other.weir.stop() == 0, other.weir.said()
        assert not [name for name in c.kafka.topics() if name.startswith(c.prefix)]
        topic.make()
        topic.block("203.0.113.1")
        subscriber.until_ready()
        subscriber.until(lambda: len(lines_of(path)) == 1, "the list")
        assert [name for name in c.kafka.topics() if name.startswith(c.prefix)] == [c.topic("decisions")]
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
        assert failed.code() == 1 and "exited with status 4" in failed.said(), failed.said()
        # The configuration's Redis, where no target is named.
        place.good("subscribe", "--config", topic.config, "--once")
        assert c.redis.keys("weir:*") == keys_of(topic)


def test_a_command_line_that_means_nothing(place):
    local = place.config([{"name": "site", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}], [])
    kafka = place.write("kafka.json", json.dumps({"bus": {"type": "kafka", "brokers": "127.0.0.1:1"}}))
    for words, said in (
            (["--to", "file:x"], "give --config FILE, set WEIR_CONFIG"),
            (["--config", place.path("none"), "--to", "file:x"], "none"),
            (["--config", local], "missing --to TARGET"),
            (["--config", kafka], "missing --to TARGET"),
            (["--config", kafka, "--to", "floppy:a"], "unknown target"),
            (["--config", kafka, "--to", "file:"], "is incomplete"),
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
    # A zone that the configuration does not have is said, and the last words are as the log is.
    sections = {"bus": {"type": "kafka", "brokers": f"127.0.0.1:{free_port()}"}, "log": {"format": "json"},
                "zones": [{"name": "site", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}]}
    with_zones = place.write("zones.json", json.dumps(sections))
    taken = socket.create_server(("127.0.0.1", 0))
    failed = place.run("subscribe", "--config", with_zones, "--to", f"file:{place.path('x')}", "--zone", "sit",
                       "--zone", "site", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    taken.close()
    records = [json.loads(line) for line in failed.said().splitlines()]
    assert failed.code() == 1 and len(records) == 2, failed.said()
    assert 'there is no zone "sit" (did you mean "site"?)' in failed.said().replace('\\"', '"'), failed.said()
    taught = place.good("subscribe", "--help").out().decode()
    for kind in ("redis://", "file:", "nginx-map:", "nginx-geo:", "haproxy:", "nft:", "exec:"):
        assert f"--to {kind}" in taught or f"--to '{kind}" in taught, kind
    # Nobody is there: it waits, and ends when it is told to.
    waits = place.start("subscribe", "--config", kafka, "--to", "exec:true")
    until(lambda: waits.said(), "it says that it waits", running=waits)
    assert waits.stop() == 0, waits.said()


if __name__ == "__main__":
    cases.main(globals())
