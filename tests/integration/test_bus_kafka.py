#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kafka bus on a real broker: what every bus promises (common/bus/bus.h), topics made and checked, a group's members."""

import contextlib
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.bus_driver import BUSY_S, Driver, config
from support.place import until

MIB = 1 << 20
PARTITIONS = 4


def opened(place, one, **bus):
    """A driver on the test's own topics."""
    return Driver(place, config(place, one, **{"partitions": PARTITIONS, **bus}))


# ---- as any bus ----

def test_messages_come_back_as_sent(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        for tag, (key, payload) in enumerate([("key", "payload"), ("-", "no_key"), ('""', "empty_key"), ("only", "-")]):
            bus.good("send", 0, "events", 1, key, payload, tag)
        deliveries = bus.deliveries(0, 4)
        assert [(d["topic"], d["partition"], d["offset"], d["tag"], d["status"]) for d in deliveries] == [
            ("events", 1, number, number, "OK") for number in range(4)]
        assert bus.good("poll", 0, 8, 10)["deliveries"] == []
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 1, 0)
        messages = bus.receive(0, 4)
        assert [(m["partition"], m["offset"]) for m in messages] == [(1, number) for number in range(4)]
        assert [(m["key"], m["payload"] or "") for m in messages] == [
            ("key", "payload"), (None, "no_key"), ("", "empty_key"), ("only", "")]
        assert bus.good("receive", 0, 8, 10)["messages"] == []


def test_order_and_offsets_within_each_partition(place):
    with cluster.shared() as one:
        for run in range(3):  # each time another process, which goes on
            with opened(place, one) as bus:
                bus.good("new_producer", 0)
                for number in range(100):
                    for partition in range(3):
                        bus.good("send", 0, "decisions", partition, "-", f"{partition}.{run * 100 + number}", number)
                seen = {partition: [] for partition in range(3)}
                for delivery in bus.deliveries(0, 300):
                    seen[delivery["partition"]].append((delivery["offset"], delivery["tag"]))
                for partition in range(3):
                    assert seen[partition] == [(run * 100 + number, number) for number in range(100)]
        with opened(place, one) as bus:
            bus.good("new_consumer", 0, "decisions")
            for partition in range(PARTITIONS):
                bus.good("assign", 0, partition, 0)
            found = {partition: [] for partition in range(3)}
            for message in bus.receive(0, 900):
                found[message["partition"]].append((message["offset"], message["payload"]))
            for partition in range(3):
                assert found[partition] == [(n, f"{partition}.{n}") for n in range(300)]


def test_an_answer_comes_at_once_not_with_the_timeout(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        bus.receive(0, 0)
        times = []
        for number in range(30):
            bus.good("send", 0, "events", 0, "-", "x", number)
            # Far more room than there are messages, and far more time than one takes.
            answer = bus.good("receive", 0, 1000, 60000)
            assert len(answer["messages"]) == 1
            times.append(answer["ms"])
            bus.deliveries(0, 1)
        times.sort()
        print(f"  send to receive: median {times[15]} ms, worst {times[-1]} ms")
        assert times[-1] < 30000 and times[5] < 100, times
        began = time.monotonic()
        assert bus.good("receive", 0, 1000, 300)["messages"] == [] and time.monotonic() - began >= 0.29


def test_a_descriptor_tells_of_messages_and_acknowledgements(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        # Nothing but the descriptor is waited for: a wake-up that is lost runs into the limit.
        answer = bus.good("wakes", 0, 0, 0, 300, 30000)
        assert answer["sent"] == sum(1 + burst % 9 for burst in range(300)) and not answer["lost"], answer
        assert answer["waits"] > 0, answer


def test_any_offset_and_none_beyond(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        for number in range(50):
            bus.good("send", 0, "events", 2, "-", str(number), number)
        bus.deliveries(0, 50)
        bus.good("new_consumer", 0, "events")
        for number in range(0, 50, 7):
            offset = number * 13 % 50
            bus.good("assign", 0, 2, offset)
            message = bus.receive(0, 1, most=1)[0]
            assert (message["offset"], message["payload"]) == (offset, str(offset))
        bus.good("assign", 0, 2, 50)
        assert bus.good("receive", 0, 8, 50)["messages"] == []
        extent = bus.good("extent", "events", 2)
        assert (extent["first"], extent["next"]) == (0, 50)
        refused = bus("assign", 0, 2, 51)
        assert refused["status"] == "INVALID"
        assert refused["words"] == f"{one.topic('events')} partition 2 has offsets 0 to 50, not 51"
        # A refused assignment leaves the one before it.
        bus.good("send", 0, "events", 2, "-", "next", 0)
        assert bus.receive(0, 1)[0]["offset"] == 50
        for words in (("assign", 0, PARTITIONS, 0), ("extent", "events", PARTITIONS), ("extent", "policy", 1)):
            assert bus(*words)["status"] == "INVALID", words


def test_what_waits_is_known_without_asking(place):
    with cluster.shared() as one, opened(place, one) as bus:
        def waiting(partition):
            return bus.good("waiting", 0, partition)["messages"]

        bus.good("new_producer", 0)
        for number in range(20):
            bus.good("send", 0, "events", 1, "-", str(number), number)
        bus.deliveries(0, 20)
        bus.good("new_consumer", 0, "events")
        assert waiting(1) == 0
        bus.good("assign", 0, 1, 5)
        assert waiting(1) == 15
        bus.receive(0, 4, most=1)
        assert waiting(1) == 11
        bus.receive(0, 11)
        assert waiting(1) == 0 and waiting(0) == 0 and waiting(PARTITIONS) == 0
        for number in range(3):
            bus.good("send", 0, "events", 1, "-", str(number), number)
        bus.deliveries(0, 3)
        bus.receive(0, 1, most=1)
        until(lambda: waiting(1) == 2, "later answers count", BUSY_S)
        bus.good("unassign", 0, 1)
        assert waiting(1) == 0


def test_a_trimmed_offset_is_an_error_that_says_where(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        for number in range(20):
            for partition in (0, 1):
                bus.good("send", 0, "events", partition, "-", str(number), number)
        bus.deliveries(0, 40)
        bus.good("new_consumer", 0, "events")
        one.kafka.trim(one.topic("events"), {0: 10})
        refused = bus("assign", 0, 0, 9)
        assert (refused["status"], refused["words"]) == (
            "INVALID", f"{one.topic('events')} partition 0 has offsets 10 to 20, not 9")
        bus.good("assign", 0, 0, 10)
        bus.good("assign", 0, 1, 0)
        assert len(bus.receive(0, 30)) == 30


def test_a_log_trimmed_under_a_reader(place):
    """More than a reader fetches ahead (128 MiB and one answer of 8), so that it has not read all when the rest goes."""
    count = 50
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        for number in range(count):
            until(lambda n=number: bus("send", 0, "events", 0, "-", f"@{3 * MIB}", n)["status"] == "OK"
                  or bus.good("poll", 0, 100, 100) is None, "room in the producer", BUSY_S)
        bus.good("send", 0, "events", 1, "-", "other", 99)
        until(lambda: bus.good("extent", "events", 0)["next"] == count or bus.good("poll", 0, 100, 50) is None,
              "all is written", BUSY_S)
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        assert bus.receive(0, 1, most=1)[0]["offset"] == 0
        one.kafka.trim(one.topic("events"), {0: count})
        received, end_s = 1, time.monotonic() + BUSY_S
        while True:
            answer = bus("receive", 0, 1, 1000)
            if answer["status"] == "INVALID":
                break
            assert time.monotonic() < end_s, f"no gap is told after {received} messages: {bus.said()[-1000:]}"
            assert answer["status"] == "OK" and all(m["offset"] == received for m in answer["messages"]), answer
            received += len(answer["messages"])
        assert received < count
        assert answer["words"] == f"{one.topic('events')} partition 0 has offsets {count} to {count}, not {received}"
        assert (answer["partition"], answer["offset"]) == (0, received)
        # Other partitions go on; it is told again while it lasts; another assignment mends it.
        bus.good("assign", 0, 1, 0)
        answers = [bus("receive", 0, 8, 500) for _ in range(6)]
        assert [m["payload"] for a in answers for m in a["messages"]] == ["other"]
        assert answers[-1]["status"] == "INVALID" and answers[-1]["offset"] == received
        bus.good("assign", 0, 0, count)
        assert bus.good("receive", 0, 8, 50)["messages"] == []


def test_a_paused_partition_keeps_its_place(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        for number in range(200):
            bus.good("send", 0, "events", number % 2, "-", str(number), number)
        bus.deliveries(0, 200)
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        bus.good("assign", 0, 1, 0)
        first = bus.receive(0, 10, most=10)
        bus.good("pause", 0, 0, 1)
        rest = bus.receive(0, 100 - sum(m["partition"] for m in first))
        assert all(message["partition"] == 1 for message in rest)
        assert bus.good("receive", 0, 100, 100)["messages"] == []
        bus.good("pause", 0, 0, 0)
        again = bus.receive(0, 100 - sum(1 for m in first if m["partition"] == 0), most=7)
        offsets = [m["offset"] for m in first + again if m["partition"] == 0]
        assert offsets == list(range(100))


def test_a_long_pause_holds_no_more_than_its_bound(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        sent = 0
        while sent < 120:  # 120 MiB of the paused partition, and some of another
            if bus("send", 0, "events", 0, "-", f"@{MIB}", sent)["status"] == "OK":
                sent += 1
            bus.good("poll", 0, 100, 0)
        bus.good("send", 0, "events", 1, "-", "other", 0)
        until(lambda: bus.good("extent", "events", 0)["next"] == 120 or bus.good("poll", 0, 100, 50) is None,
              "all is written", BUSY_S)
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        bus.good("pause", 0, 0, 1)
        bus.good("assign", 0, 1, 0)
        assert [m["payload"] for m in bus.receive(0, 1)] == ["other"]
        for _ in range(10):
            assert bus.good("receive", 0, 100, 100)["messages"] == []
        with open(f"/proc/{bus.pid()}/status", encoding="ascii") as file:
            resident = next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))
        print(f"  {resident} MiB resident")
        bus.good("pause", 0, 0, 0)
        offsets = [m["offset"] for m in bus.receive(0, 120, most=5)]
        assert offsets == list(range(120))


def test_the_producer_is_bounded_and_refuses_what_is_too_large(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        assert bus("send", 0, "events", PARTITIONS, "-", "x", 0)["status"] == "INVALID"
        assert bus("send", 0, "policy", 1, "-", "x", 0)["status"] == "INVALID"
        large = bus("send", 0, "events", 0, "-", f"@{4 * MIB}", 0)
        assert large["status"] == "INVALID" and "too large" in large["words"]
        bus.good("send", 0, "events", 0, "-", f"@{4 * MIB - 2048}", 0)
        taken = 1
        while True:
            answer = bus("send", 0, "events", 1, "-", f"@{MIB}", taken)
            if answer["status"] != "OK":
                break
            taken += 1
        assert answer["status"] == "FULL" and "are not delivered yet" in answer["words"]
        assert taken == 1 + 12  # 16 MiB, with what a message costs beside its bytes
        assert {d["status"] for d in bus.deliveries(0, taken)} == {"OK"}
        bus.good("send", 0, "events", 1, "-", f"@{MIB}", 0)
        bus.deliveries(0, 1)
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        assert bus.receive(0, 1)[0]["bytes"] == 4 * MIB - 2048


def test_a_message_larger_than_weir_sends_is_received(place):
    with cluster.shared() as one, opened(place, one) as bus:
        one.kafka.change_settings(one.topic("events"), max_message_bytes=16 * MIB)

        def taken(message):
            # The broker heeds a topic's settings a moment after they were acknowledged.
            with contextlib.suppress(AssertionError):
                one.kafka.produce(one.topic("events"), [(None, message, 0)])
                return True
            return False
        for message in (b"s", bytes(7 * MIB), b"t"):
            until(lambda message=message: taken(message), "the broker takes it")
        bus.good("new_consumer", 0, "events")
        bus.good("assign", 0, 0, 0)
        assert [m["bytes"] for m in bus.receive(0, 3)] == [1, 7 * MIB, 1]


def test_a_failed_delivery_breaks_its_producer(place):
    with cluster.shared() as one, opened(place, one) as bus:
        bus.good("new_producer", 0)
        bus.good("send", 0, "events", 0, "-", "first", 0)
        assert bus.deliveries(0, 1)[0]["status"] == "OK"
        one.kafka.change_settings(one.topic("events"), max_message_bytes=1000)
        sent, found = set(), []

        def broken():
            # A large one, which the broker refuses once it knows of the setting, and others behind it.
            for tag in range(len(sent) + 1, len(sent) + 4):
                if bus("send", 0, "events", tag % 3 // 2, "-", "@100000" if tag % 3 == 1 else "later", tag)["status"] == "OK":
                    sent.add(tag)
            found.extend(bus.good("poll", 0, 100, 100)["deliveries"])
            return any(delivery["status"] == "IO" for delivery in found)

        until(broken, "a delivery fails", BUSY_S)
        found += bus.deliveries(0, len(sent) - len(found)) if len(sent) > len(found) else []
        assert sorted(delivery["tag"] for delivery in found) == sorted(sent), found
        # Whether or not they stand in the log: behind the first failure none counts.
        statuses = [delivery["status"] for delivery in found]
        assert set(statuses[statuses.index("IO"):]) == {"IO"}, found
        assert ".events" in found[-1]["why"] and "too large" in found[-1]["why"], found[-1]
        refused = bus("send", 0, "events", 1, "-", "x", 9)
        assert refused["status"] == "IO" and "all later messages of this producer are discarded" in refused["words"], refused
        assert bus.good("poll", 0, 100, 100)["deliveries"] == []
        one.kafka.change_settings(one.topic("events"), max_message_bytes=4 * MIB)
        bus.good("new_producer", 1)
        bus.good("send", 1, "events", 0, "-", "again", 1)
        assert bus.deliveries(1, 1)[0]["status"] == "OK"
        # Within a partition the log has no gap: what was delivered, perhaps some more, and nothing behind a lost one.
        log = [len(m.value) for m in one.kafka.consume(one.topic("events")) if m.partition == 0]
        order = [5] + [100000 if tag % 3 == 1 else 5 for tag in sorted(sent) if tag % 3 // 2 == 0]
        delivered = sum(d["status"] == "OK" and d["partition"] == 0 for d in found)
        assert len(log) >= delivered + 2 and log[:-1] == order[:len(log) - 1], (log, order)


# ---- topics ----

def test_topics_are_made_as_configured(place):
    with cluster.shared() as one:
        with opened(place, one, retention="3d", min_insync=1) as bus:
            assert bus.said().count("created topic") == 6, bus.said()
        made = {name: partitions for name, partitions in one.kafka.topics().items() if name.startswith(one.prefix)}
        assert made == {one.topic(name): PARTITIONS if name not in ("policy", "deadletter") else 1 for name in (
            "events", "judged", "decisions", "decisions.shadow", "policy", "deadletter")}
        settings = one.kafka.settings_of(one.topic("events"))
        assert [settings[name] for name in ("min.insync.replicas", "retention.ms", "max.message.bytes",
                                            "cleanup.policy", "unclean.leader.election.enable")] == [
            "1", str(3 * 86400000), str(4 * MIB), "delete", "false"]
        assert one.kafka.settings_of(one.topic("policy"))["cleanup.policy"] == "compact"
        stamps = {name: one.kafka.settings_of(one.topic(name))["message.timestamp.type"] for name in ("events", "judged")}
        assert stamps == {"events": "LogAppendTime", "judged": "CreateTime"}, stamps
        with opened(place, one, retention="3d") as bus:
            assert bus.said() == ""
        # Where one is missing, it alone is made.
        one.kafka.delete([one.topic("judged")])
        until(lambda: one.topic("judged") not in one.kafka.topics(), "the topic is gone", BUSY_S)
        with opened(place, one, retention="3d") as bus:
            assert bus.said().count("created topic") == 1


def refused(place, one, **bus):
    """The words of a bus that must not open."""
    path = config(place, one, **{"partitions": PARTITIONS, **bus})
    with Driver(place, path, expect="INVALID") as driver:
        assert driver.process.wait(BUSY_S) == 1
        return driver.opened["words"]


def test_topics_that_cannot_serve_are_refused(place):
    with cluster.shared() as one:
        with opened(place, one):
            pass
        events, policy = one.topic("events"), one.topic("policy")
        assert f"topic {events} has 4 partitions, not 5" in refused(place, one, partitions=5)
        said = refused(place, one, replication=3, min_insync=2)
        assert "has replication factor 1, less than the 2 of \"bus.min_insync\"" in said, said
        with opened(place, one, replication=3, min_insync=1) as bus:
            assert f"topic {events} has replication factor 1, not the 3 of \"bus.replication\"" in bus.said(), bus.said()
        for topic, settings, words in (
                (events, {"cleanup_policy": "compact"}, "it must be delete"),
                (events, {"max_message_bytes": 1048588}, "max.message.bytes 1048588, less than weir's largest message (4194304)"),
                (events, {"retention_ms": 1000}, "keeps its messages for 1s (retention.ms)"),
                (policy, {"cleanup_policy": "delete"}, "it must be compact")):
            before = {name: one.kafka.settings_of(topic)[name.replace("_", ".")] for name in settings}
            one.kafka.change_settings(topic, **settings)
            said = refused(place, one)
            assert topic in said and words in said, said
            one.kafka.change_settings(topic, **before)
        one.kafka.change_settings(events, retention_bytes=1 << 30)
        with opened(place, one) as bus:
            assert "WARNING bus: topic" in bus.said() and "(retention.bytes)" in bus.said(), bus.said()


def test_more_replicas_than_brokers_is_waited_for_and_said(place):
    with cluster.shared() as one:
        path = config(place, one, partitions=PARTITIONS, replication=3, min_insync=1)
        with Driver(place, path, wait_ms=1500, expect="IO") as driver:
            assert driver.process.wait(BUSY_S) == 1
            words = driver.opened["words"]
            assert "cannot be created with \"bus.replication\" 3" in words, words
            assert driver.said().count("WARNING") == 1, driver.said()


# ---- a group ----

def speak(members, condition, what):
    """Polls all members until condition(answers)."""
    answers = []

    def poll():
        answers[:] = [member("group", 20) for member in members]
        return condition(answers)

    until(poll, what, BUSY_S)
    return answers


def shares(answers):
    """Whether each partition has exactly one owner, and each member about its part."""
    owned = [answer["owned"] for answer in answers]
    return sorted(sum(owned, [])) == list(range(PARTITIONS)) and len({len(one) for one in owned}) == 1


def test_members_share_leave_and_come_back(place):
    with cluster.shared() as one, opened(place, one) as a, opened(place, one) as b:
        a.good("join", "limiter")
        assert speak([a], shares, "one member has all")[0]["generation"] == 1
        b.good("join", "limiter")
        first = speak([a, b], shares, "two members share")
        assert first[0]["generation"] == 2 and first[1]["generation"] == 1
        assert one.kafka.committed(f"{one.prefix}.limiter", one.topic("events")) == {}
        began = time.monotonic()
        b.good("leave")
        took = time.monotonic() - began
        speak([a], shares, "the one that stays has all")
        print(f"  left in {took:.2f} s, taken over after {time.monotonic() - began:.2f} s")
        b.good("join", "limiter")
        again = speak([a, b], shares, "two members share again")
        assert again[0]["generation"] > first[0]["generation"]
        a.end()
        speak([b], shares, "the other has all")


def test_a_member_that_stands_still_loses_its_membership(place):
    # The broker allows no session below 6 s.
    with cluster.shared() as one:
        properties = {**one.kafka_properties, "session.timeout.ms": 6000}
        with opened(place, one, kafka=properties) as a, opened(place, one, kafka=properties) as b:
            for member in (a, b):
                member.good("join", "limiter")
            speak([a, b], shares, "two members share")
            os.kill(b.pid(), signal.SIGSTOP)
            alone = speak([a], shares, "the other has all")[0]["generation"]
            os.kill(b.pid(), signal.SIGCONT)
            lost = []

            def rejoined(answers):
                lost.append(answers[1]["generation"] == 0 and answers[1]["owned"] == [])
                return shares(answers)

            back = speak([a, b], rejoined, "it is back")
            assert any(lost) and back[0]["generation"] > alone and back[1]["generation"] > 1
            assert "removed from the consumer group" in b.said()


def test_a_killed_member_is_replaced(place):
    with cluster.shared() as one:
        properties = {**one.kafka_properties, "session.timeout.ms": 6000}
        with opened(place, one, kafka=properties) as a, opened(place, one, kafka=properties) as b:
            for member in (a, b):
                member.good("join", "limiter")
            speak([a, b], shares, "two members share")
            b.kill()
            speak([a], shares, "the other has all")


def test_a_member_stays_however_long_nothing_is_fetched(place):
    """A poll of the membership is a sign of life: max.poll.interval.ms is not exceeded by fetching nothing."""
    with cluster.shared() as one:
        properties = {**one.kafka_properties, "session.timeout.ms": 6000, "max.poll.interval.ms": 6000}
        with opened(place, one, kafka=properties) as a:
            a.good("join", "limiter")
            speak([a], shares, "one member has all")
            end = time.monotonic() + 9
            while time.monotonic() < end:
                answer = a("group", 100)  # IO: a broker on a busy machine did not answer in time, which is no end of membership
                assert answer["status"] in ("OK", "IO") and len(answer["owned"]) == PARTITIONS, answer
            assert a.good("group", 0)["generation"] == 1


if __name__ == "__main__":
    cases.main(globals())
