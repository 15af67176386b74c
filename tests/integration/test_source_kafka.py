#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `kafka`: every message of a topic becomes its events once, whichever collector reads it, and in which state.

What stands on the events topic is taken as a limiter takes it: of each source only what is newer than what was taken.
"""

import collections
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, frames
from support.place import PATIENCE_S, until
from support.roles import Roles

import confluent_kafka  # pylint: disable=wrong-import-position,wrong-import-order,import-error

BUSY_S = 4 * PATIENCE_S
T0 = 1700000000
ZONES = [{"name": "users", "key": ["user"],
          "limits": [{"algorithm": "fixed_window", "rate": 1000000, "window": "1h"}]}]
PARTITIONS = 4


def source(one, **more):
    """A source of the test's own topic."""
    return {"type": "kafka", "brokers": one.brokers, "topics": [one.topic("logs")], "group": one.topic("collectors"),
            "kafka": {**one.kafka_properties, "session.timeout.ms": 6000},
            "format": {"type": "json", "time": "ts", "fields": {"user": "user"}}, **more}


def record(user, **more):
    """A message with one user in it."""
    return json.dumps({"ts": T0, "user": user, **more}).encode()


def taken(one):
    """What limiters take of the events: ({user: how often}, {source: {user: position}}, events sent again)."""
    counts, places, again = collections.Counter(), collections.defaultdict(dict), 0
    newest = {}
    for message in one.kafka.consume(one.topic("events")):
        frame = frames.decode(message.value)
        if frame.kind != "events":
            continue
        at = (message.partition, frame.source)
        before = newest.get(at, 0)
        for event in frame.events:
            if event["position"] <= before:
                again += 1
                continue
            counts[event["key"].decode()] += 1
            places[frame.source][event["key"].decode()] = event["position"]
            newest[at] = max(newest.get(at, 0), event["position"])
    return counts, places, again


def roles_of(place, one):
    """The policy is there before anything else."""
    roles = Roles(place, one, ZONES, partitions=3)
    roles.apply()
    return roles


def committed(one):
    """{partition: offset} of the collectors' group; None while no broker says."""
    try:
        return one.kafka.committed(one.topic("collectors"), one.topic("logs"))
    except confluent_kafka.KafkaException:
        return None


def ends(one):
    """{partition: next offset} of the logs; {} while no broker says."""
    try:
        return one.ends("logs")
    except confluent_kafka.KafkaException:
        return {}


def test_each_message_is_one_record(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=PARTITIONS)
        pretty = json.dumps({"ts": T0, "user": "pretty"}, indent=2).encode()
        offsets = one.kafka.produce(one.topic("logs"), [
            (None, record("a"), 0), (None, record("b") + b"\n", 0), (None, record("c") + b"\r\n\r\n", 0),
            (None, pretty, 1), ("key", None, 1), (None, b"", 1), (None, b"\n", 1), (None, record("d"), 1),
            (None, b"no json", 2), (None, record("long", pad="x" * 5000), 2), (None, record("e"), 2)])
        collector = roles.collector([source(one, line_max="4KiB")])
        collector.until(lambda: committed(one) == ends(one), "all is committed")
        counts, places, again = taken(one)
        assert counts == dict.fromkeys(["a", "b", "c", "pretty", "d", "e"], 1), counts
        assert again == 0
        # A partition is a source of its own, a position the offset behind the message.
        assert sorted(sorted(users.items()) for users in places.values()) == [
            [("a", 1), ("b", 2), ("c", 3)], [("d", offsets[7] + 1), ("pretty", 1)], [("e", offsets[10] + 1)]]
        letters = [json.loads(message.value) for message in one.kafka.consume(one.topic("deadletter"))]
        name = f"kafka:{one.topic('logs')}"
        assert [(letter["source"], letter["position"], letter["reason"]) for letter in letters] == [
            (f"{name}/2", 1, "not json"), (f"{name}/2", 2, "line too long")], letters
        collector.until(lambda: collector.value("weir_collector_lines_total") == 8, "the lines are counted")
        assert collector.value("weir_source_skipped_total", source=f"{name}/1") == 3
        assert collector.value("weir_source_position", source=f"{name}/0") == 3
        assert collector.value("weir_source_lag_messages") == 0
        assert collector.value("weir_source_replayable") == PARTITIONS
        assert collector.stop() == 0


def test_marks_of_transactions_are_no_lag(place):
    """The last offset of a topic that is written in transactions is the mark of one, and never delivered."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=1)
        collector = roles.collector([source(one)])
        for number in range(1, 3):
            one.kafka.produce(one.topic("logs"), [record("a"), record("b")], transactional_id=one.topic("writer"))
            until(lambda: ends(one) == {0: 3 * number}, "the mark is there")  # pylint: disable=cell-var-from-loop
            collector.until(lambda: collector.value("weir_collector_lines_total") == 2 * number, "all is read")  # pylint: disable=cell-var-from-loop
            collector.until(lambda: collector.metrics().value("weir_source_lag_messages", source=f"kafka:{one.topic('logs')}/0")
                            == 0, "lags no longer")
        assert collector.stop() == 0
        assert taken(one)[0] == {"a": 2, "b": 2}


def test_what_brokers_hold_back_is_lag(place):
    """They let it fetch next to nothing: no fetch says then how far the topic has grown."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        client = one.topic("throttled")
        one.kafka.create(one.topic("logs"), partitions=1)
        collector = roles.collector([source(one, kafka={**one.kafka_properties, "client.id": client})]).until_ready()
        value = lambda name: collector.value(f"weir_source_{name}", source=f"kafka:{one.topic('logs')}/0")
        one.kafka.produce(one.topic("logs"), [record("ann")])
        collector.until(lambda: value("lines_total") == 1 and value("lag_messages") == 0, "has read all")
        one.set_quota(client, consumer_byte_rate=20)
        one.kafka.produce(one.topic("logs"), [record("bob", pad="x" * 2000) for _ in range(100)])
        one.kafka.produce(one.topic("logs"), [record("cid", pad="x" * 2000) for _ in range(100)])
        collector.until(lambda: value("lag_messages") > 0 and value("lag_seconds") > 15, "says that it is behind", BUSY_S)
        one.set_quota(client, consumer_byte_rate=None)
        collector.until(lambda: value("lines_total") == 201 and value("lag_messages") == value("lag_seconds") == 0,
                        "has read all", 2 * BUSY_S)
        assert collector.stop() == 0


def test_messages_of_any_size_and_form_are_taken_or_told(place):
    """10 MB, keys and headers that are larger than what they belong to, every compression."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=1, max_message_bytes=16 << 20)

        def send(number, pad=0, key=None, headers=None, codec="none"):
            one.kafka.produce(one.topic("logs"), [(key, record(f"u{number}", pad="x" * pad))], headers,
                              message_max_bytes=16 << 20, compression_type=codec)

        send(0, pad=10 << 20)
        send(1, key=b"k" * (1 << 20), codec="gzip")
        send(2, headers=[(f"h{number}", b"v" * 1000) for number in range(1000)], codec="lz4")
        send(3, pad=10 << 20, codec="zstd")
        send(4, codec="snappy")
        collector = roles.collector([source(one)])
        collector.until(lambda: committed(one) == ends(one), "all is committed")
        assert taken(one)[0] == {"u1": 1, "u2": 1, "u4": 1}
        letters = [json.loads(message.value) for message in one.kafka.consume(one.topic("deadletter"))]
        assert [letter["reason"] for letter in letters] == ["line too long"] * 2
        assert collector.stop() == 0


def test_a_restart_goes_on_where_the_group_is(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=PARTITIONS)
        users = [f"u{number}" for number in range(2000)]
        one.kafka.produce(one.topic("logs"), [(None, record(user), number % 4) for number, user in enumerate(users[:1000])])
        collector = roles.collector([source(one)])
        collector.until(lambda: collector.value("weir_collector_records_total") == 1000, "all is read")
        assert collector.stop() == 0
        assert committed(one) == ends(one)
        one.kafka.produce(one.topic("logs"), [(None, record(user), number % 4) for number, user in enumerate(users[1000:])])
        collector.start()
        collector.until(lambda: committed(one) == ends(one), "all is committed")
        assert collector.stop() == 0
        counts, _, again = taken(one)
        assert counts == dict.fromkeys(users, 1) and again == 0


def test_start_at_the_end_is_settled_once(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=2)
        one.kafka.produce(one.topic("logs"), [(None, record(f"old{number}"), number % 2) for number in range(10)])
        collector = roles.collector([source(one, start="end")])
        collector.until(lambda: committed(one) == {0: 5, 1: 5}, "the beginning is settled")
        collector.kill()
        # What comes while nobody is there lies behind the beginning.
        one.kafka.produce(one.topic("logs"), [(None, record(f"new{number}"), number % 2) for number in range(10)])
        collector.start()
        collector.until(lambda: committed(one) == {0: 10, 1: 10}, "all is committed")
        assert taken(one)[0] == {f"new{number}": 1 for number in range(10)}


def test_partitions_that_are_added_begin_at_their_beginning(place):
    """Where the topic begins is settled at its end; what is put on new partitions before anyone reads them comes later."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=2)
        one.kafka.produce(one.topic("logs"), [(None, record(f"old{number}"), number % 2) for number in range(10)])
        properties = {**one.kafka_properties, "topic.metadata.refresh.interval.ms": 2000}
        collector = roles.collector([source(one, start="end", kafka=properties)])
        collector.until(lambda: committed(one) == {0: 5, 1: 5}, "the beginning is settled")
        one.kafka.extend(one.topic("logs"), 4)
        one.kafka.produce(one.topic("logs"), [(None, record(f"new{number}"), number) for number in range(4)])
        collector.until(lambda: committed(one) == {0: 6, 1: 6, 2: 1, 3: 1}, "all is committed")
        assert collector.stop() == 0
        # So do all under another generation: what was read under the one before is read again, and nothing is left out.
        again = roles.collector([source(one, start="end", generation=2)], name="generation-2")
        again.until(lambda: again.value("weir_collector_records_total") == 14, "all is read")
        assert again.stop() == 0
        assert taken(one)[0] == {**{f"old{n}": 1 for n in range(10)}, **{f"new{n}": 2 for n in range(4)}}


class Producer(threading.Thread):
    """Puts records on the logs until it is told to stop: their users."""

    def __init__(self, one):
        super().__init__(daemon=True)
        self.one, self.users, self.failed = one, [], None
        self.over = threading.Event()

    def run(self):
        """Produces."""
        try:
            while not self.over.is_set():
                first = len(self.users)
                users = [f"u{first + number}" for number in range(200)]
                self.one.kafka.produce(self.one.topic("logs"), [
                    (None, record(user), number % PARTITIONS) for number, user in enumerate(users)])
                self.users += users
                self.over.wait(0.05)
        except Exception as failed:  # pylint: disable=broad-exception-caught
            self.failed = failed

    def finish(self):
        """Waits for its end: what it put there."""
        self.over.set()
        self.join(BUSY_S)
        assert not self.is_alive() and self.failed is None, self.failed
        return self.users


def shared_out(one, members):
    """Whether so many members have all partitions between them, about the same part each."""
    parts = [len(partitions) for partitions in one.kafka.members(one.topic("collectors")).values()]
    return len(parts) == members and sum(parts) == PARTITIONS and max(parts) - min(parts) <= 1


def test_collectors_share_come_and_go(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=PARTITIONS)
        producer = Producer(one)
        producer.start()
        one_of = roles.collector([source(one)])
        one_of.until(lambda: shared_out(one, 1), "one has all")
        other = roles.collector([source(one)])
        other.until(lambda: shared_out(one, 2), "two share")
        other.until(lambda: other.value("weir_collector_records_total") > 0, "the second reads, too")
        assert other.stop() == 0
        one_of.until(lambda: shared_out(one, 1), "one has all again")
        other.start()
        other.until(lambda: shared_out(one, 2), "two share again")
        other.kill()
        one_of.until(lambda: shared_out(one, 1), "the dead one is replaced")
        other.start()
        other.until(lambda: shared_out(one, 2), "two share once more")
        other.until(lambda: other.value("weir_collector_records_total") > 0, "the second reads again")
        other.pause()
        one_of.until(lambda: shared_out(one, 1), "the one that stands still is replaced")
        other.resume()
        other.until(lambda: shared_out(one, 2), "it is back")
        users = producer.finish()
        one_of.until(lambda: committed(one) == ends(one), "all is committed")
        assert other.stop() == 0 and one_of.stop() == 0
        counts, places, again = taken(one)
        print(f"  {len(users)} records, {again} events sent again and dropped")
        assert len(places) == PARTITIONS
        assert counts == dict.fromkeys(users, 1), (
            [user for user in users if counts[user] != 1][:10], sum(counts.values()), len(users))


def recreate(one, count):
    """Deletes the topic, and makes one with so many other records."""
    one.kafka.delete([one.topic("logs")])
    until(lambda: one.topic("logs") not in one.kafka.topics(), "the topic is gone", BUSY_S)
    one.kafka.create(one.topic("logs"), partitions=1)
    one.kafka.produce(one.topic("logs"), [record(f"b{number}") for number in range(count)])


def test_a_trimmed_log_is_counted_and_gone_on_with(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=1)
        one.kafka.produce(one.topic("logs"), [record(f"a{number}") for number in range(10)])
        collector = roles.collector([source(one)])
        collector.until(lambda: committed(one) == {0: 10}, "all is committed")
        assert collector.stop() == 0
        one.kafka.produce(one.topic("logs"), [record(f"b{number}") for number in range(10)])
        one.kafka.trim(one.topic("logs"), {0: 15})
        collector.start()
        collector.until(lambda: committed(one) == {0: 20}, "the rest is committed")
        assert collector.value("weir_source_lost_messages_total") == 5
        assert taken(one)[0] == {**{f"a{n}": 1 for n in range(10)}, **{f"b{n}": 1 for n in range(5, 10)}}


def test_a_topic_made_anew_needs_a_new_generation(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=1)
        one.kafka.produce(one.topic("logs"), [record(f"a{number}") for number in range(10)])
        collector = roles.collector([source(one)], name="collector")
        collector.until(lambda: committed(one) == {0: 10}, "all is committed")
        assert collector.stop() == 0
        before = committed(one)
        recreate(one, 5)
        if committed(one) == before:  # brokers may forget the offsets of a topic that is gone
            collector.start()
            collector.until_says("the topic was recreated; to read it from its beginning, raise \"generation\"")
            assert collector.stop() == 0
        again = roles.collector([source(one, generation=2)], name="generation-2")
        again.until(lambda: committed(one) == {0: 5}, "the new topic is committed")
        counts, places, _ = taken(one)
        assert counts == {**{f"a{n}": 1 for n in range(10)}, **{f"b{n}": 1 for n in range(5)}}
        assert len(places) == 2


def test_a_topic_made_anew_stays_stopped(place):
    """However far the new log grows: what it holds up to the old offset would be passed over."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        name = f"kafka:{one.topic('logs')}/0"
        one.kafka.create(one.topic("logs"), partitions=1)
        one.kafka.produce(one.topic("logs"), [record(f"a{number}") for number in range(10)])
        properties = {**one.kafka_properties, "topic.metadata.refresh.interval.ms": 1000}
        collector = roles.collector([source(one, kafka=properties)])
        collector.until(lambda: committed(one) == {0: 10}, "all is committed")
        recreate(one, 5)
        collector.until_says("the topic was recreated; to read it from its beginning, raise \"generation\"")
        one.kafka.produce(one.topic("logs"), [record(f"b{number}") for number in range(5, 15)])
        time.sleep(12)  # past the second look
        assert collector.value("weir_source_problem", source=name) == 1
        assert collector.stop() == 0
        collector.start()  # the group knows, too
        collector.until(lambda: collector.value("weir_source_problem", source=name) == 1, "it is stopped as before")
        assert collector.stop() == 0
        assert taken(one)[0] == {f"a{number}": 1 for number in range(10)}
        again = roles.collector([source(one, generation=2)], name="generation-2")
        again.until(lambda: committed(one) == {0: 15}, "the new topic is committed")
        assert again.stop() == 0
        assert taken(one)[0] == {**{f"a{n}": 1 for n in range(10)}, **{f"b{n}": 1 for n in range(15)}}


def test_a_topic_made_anew_while_nobody_read_it(place):
    """It has grown past what was read, and the brokers have forgotten the group's offsets: its positions are old ones."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=1)
        one.kafka.produce(one.topic("logs"), [record(f"a{number}") for number in range(10)])
        collector = roles.collector([source(one)])
        collector.until(lambda: committed(one) == {0: 10}, "all is committed")
        assert collector.stop() == 0
        collector.start()  # the same topic is read on
        one.kafka.produce(one.topic("logs"), [record("c")])
        collector.until(lambda: committed(one) == {0: 11}, "more is committed")
        assert collector.stop() == 0 and "recreated" not in collector.said()
        recreate(one, 15)
        collector.start()
        collector.until_says("the topic was recreated; to read it from its beginning, raise \"generation\"")
        assert collector.stop() == 0
        assert taken(one)[0] == {**{f"a{number}": 1 for number in range(10)}, "c": 1}
        again = roles.collector([source(one, generation=2)], name="generation-2")
        again.until(lambda: committed(one) == {0: 15}, "the new topic is committed")
        assert again.stop() == 0
        assert taken(one)[0] == {**{f"a{n}": 1 for n in range(10)}, "c": 1, **{f"b{n}": 1 for n in range(15)}}


def test_a_topic_that_is_missing_is_told_while_others_are_read(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        name = f"kafka:{one.topic('missing')}"
        one.kafka.create(one.topic("logs"), partitions=1)
        properties = {**one.kafka_properties, "topic.metadata.refresh.interval.ms": 500}
        collector = roles.collector([source(one, topics=[one.topic("logs"), one.topic("missing")], kafka=properties)])
        collector.until_says(f"{name}: Subscribed topic not available: {one.topic('missing')}")
        for number in range(1, 4):
            one.kafka.produce(one.topic("logs"), [record("a")])
            collector.until(lambda: committed(one) == {0: number}, "it is read")  # pylint: disable=cell-var-from-loop
            assert collector.value("weir_source_problem") == 1
            assert collector.value("weir_source_problem", source=name) == 1
        assert collector.is_ready()
        one.kafka.create(one.topic("missing"), partitions=1)
        collector.until(lambda: collector.value("weir_source_problem") == 0, "there is no problem any more")
        assert collector.stop() == 0


def test_a_topic_that_comes_later(place):
    with cluster.shared() as one, roles_of(place, one) as roles:
        collector = roles.collector([source(one, kafka={**one.kafka_properties,
                                                        "topic.metadata.refresh.interval.ms": 500})])
        collector.until_says("Subscribed topic not available")
        one.kafka.create(one.topic("logs"), partitions=2)
        one.kafka.produce(one.topic("logs"), [(None, record(f"u{number}"), number % 2) for number in range(10)])
        collector.until(lambda: committed(one) == {0: 5, 1: 5}, "all is committed")
        assert sum(taken(one)[0].values()) == 10
        collector.until(lambda: collector.value("weir_source_problem") == 0, "there is no problem any more")


def test_through_an_outage_of_the_broker(place):
    with cluster.own(parent=place.directory) as one, roles_of(place, one) as roles:
        one.kafka.create(one.topic("logs"), partitions=PARTITIONS)
        users = [f"u{number}" for number in range(20000)]
        one.kafka.produce(one.topic("logs"), [
            (None, record(user), number % PARTITIONS) for number, user in enumerate(users[:10000])])
        collector = roles.collector([source(one)])
        collector.until(lambda: collector.value("weir_collector_records_total") > 0, "reading has begun")
        one.part("kill", "kafka")
        collector.until_says("no broker of ")
        one.part("start", "kafka")
        one.kafka.produce(one.topic("logs"), [
            (None, record(user), number % PARTITIONS) for number, user in enumerate(users[10000:])])
        collector.until(lambda: committed(one) == ends(one), "all is committed", BUSY_S)
        one.part("pause", "kafka")
        time.sleep(8)  # past the session
        one.part("resume", "kafka")
        one.kafka.produce(one.topic("logs"), [(None, record("last"), 0)])
        collector.until(lambda: committed(one) == ends(one), "all is committed again", BUSY_S)
        collector.until(lambda: collector.value("weir_source_problem") == 0, "there is no problem any more")
        assert collector.stop() == 0
        counts, _, again = taken(one)
        print(f"  {again} events sent again and dropped")
        assert counts == dict.fromkeys([*users, "last"], 1)


if __name__ == "__main__":
    cases.main(globals())
