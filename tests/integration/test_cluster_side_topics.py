#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Topics that weir may miss, dead letters and decisions in shadow mode, refuse what is published: events and decisions go on."""

import itertools
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, decisions, traffic
from support.roles import Roles

ZONES = [traffic.zone("site", [traffic.sliding(3, "1m")], id=1, block_for="1h"),
         traffic.zone("watch", [traffic.fixed(5, "1h")], id=2, mode="shadow")]
SIDES = ("deadletter", "decisions.shadow")
LARGEST = str(4 << 20)
NOTHING = "ALTER_CONFIGS"  # a right that weir has no use for


class Scene:
    """A collector that follows a log, and a limiter."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        self.users = itertools.count()
        self.log = place.write("access.log", b"")
        roles.apply()
        self.limiter = roles.limiter().until_ready()
        self.collector = roles.collector([traffic.source(self.log)]).until_ready()
        self.both = (self.collector, self.limiter)

    def overdo(self):
        """A bad line, and a user who is blocked by one zone and would be by the other; the first is published."""
        user = f"user-{next(self.users)}"
        self.place.append("access.log", "no line of this format\n" + traffic.burst(user, 8, decisions.now_ms()))
        self.limiter.until(lambda: any(one["key"] == [user] for one in published(self.one)), f"{user} is blocked")

    def dropped(self):
        """How many: (dead letters of the collector, the limiter's decisions in shadow mode)."""
        return (self.collector.value("weir_topic_dropped_messages_total", topic=self.one.topic(SIDES[0])),
                self.limiter.value("weir_topic_dropped_messages_total", topic=self.one.topic(SIDES[1])))

    def restarts(self):
        """How many producers the collector has made anew."""
        return self.collector.value("weir_collector_producer_restarts_total")

    def refused(self, words):
        """Both topics refuse everything: it is said, and nothing else is the matter."""
        before = self.dropped()
        for _ in range(3):
            self.overdo()
        self.limiter.until(lambda: all(now > then for now, then in zip(self.dropped(), before)), "both are counted")
        for role, topic in zip(self.both, SIDES):
            role.until_says(words.format(self.one.topic(topic)))
            role.until(lambda role=role, topic=topic: role.value("weir_topic_up", topic=self.one.topic(topic)) == 0, "has it down")
            role.until_ready()
        self.fine()

    def fine(self):
        """No producer broke."""
        assert self.restarts() == 0
        assert self.limiter.value("weir_limiter_publish_failures_total") == 0
        self.collector.until(lambda: self.collector.value("weir_collector_low_water_age_seconds") < 5, "owes nothing")

    def taken(self):
        """Both topics take messages again: found out without another message, said once, and what comes then is kept."""
        for role, topic in zip(self.both, SIDES):
            role.until_says(f"topic {self.one.topic(topic)} can be written again")
            role.until(lambda role=role, topic=topic: role.value("weir_topic_up", topic=self.one.topic(topic)) == 1, "has it again")
        before, kept = self.dropped(), [self.one.kafka.count(self.one.topic(topic)) for topic in SIDES]
        self.overdo()
        self.limiter.until(lambda: all(self.one.kafka.count(self.one.topic(topic)) > count for topic, count in zip(SIDES, kept)),
                           "both are written")
        assert self.dropped() == before, (self.dropped(), before)
        self.fine()


def published(one):
    """The decisions there are."""
    return [json.loads(message.value) for message in one.kafka.consume(one.topic("decisions")) if message.value]


def test_a_topic_that_may_be_missed_and_refuses_messages_stops_nothing(place):
    """Their size, and the right to write, and to read."""
    with cluster.own("--tls-sasl", parent=place.directory) as one, \
            Roles(place, one, ZONES, archiver={"enabled": True, "interval": "100ms"}) as roles:
        scene = Scene(place, one, roles)
        scene.overdo()
        for topic in SIDES:
            one.kafka.change_settings(one.topic(topic), **{"max.message.bytes": "100"})
        scene.refused("topic {} ")
        for topic in SIDES:
            one.kafka.change_settings(one.topic(topic), **{"max.message.bytes": LARGEST})
        scene.taken()
        for topic in SIDES:
            one.allow_only(one.topic(topic), "READ", "DESCRIBE_CONFIGS")
        scene.refused("topic {} does not take what is published there: Broker: Topic authorization failed")
        for role in scene.both:
            assert role.said().count("(runbook: credentials)") == 1, role.said()[-3000:]
        for topic in SIDES:
            one.allow_all(one.topic(topic))
        scene.taken()
        an_archiver_goes_on_without_the_right_to_read(scene)
        a_start_goes_on_without_them(scene)
        a_start_without_a_right_that_is_needed_waits_for_it(scene)


def an_archiver_goes_on_without_the_right_to_read(scene):
    """Its metric, `weir doctor` and `--check` say so; it archives everything else, and them once it has the right."""
    one, topic = scene.one, scene.one.topic("decisions.shadow")
    denied = "decisions of zones in shadow mode cannot be read: "
    kept = lambda table: one.mariadb.one(f"SELECT count(*) FROM {table}")
    archiver = scene.roles.archiver().until_ready()
    archiver.until(lambda: kept("shadow_history") > 0 and archiver.value("weir_archiver_shadow_up") == 1, "reads them")
    assert denied not in doctor(scene), "it has the right"
    one.allow_only(topic, "DESCRIBE", "DESCRIBE_CONFIGS", "WRITE")
    scene.overdo()
    archiver.until(lambda: archiver.value("weir_archiver_shadow_up") == 0, "shows it")
    for _ in range(2):  # what was read before is stored with the first
        before = kept("decision_history"), kept("shadow_history")
        scene.overdo()
        archiver.until(lambda: kept("decision_history") > before[0], "archives others")  # pylint: disable=cell-var-from-loop
    archiver.until_ready()
    said = doctor(scene)
    assert denied in said and "(runbook: archive-behind)" in said, said
    assert kept("shadow_history") == before[1]
    one.allow_all(topic)
    archiver.until(lambda: kept("shadow_history") > before[1], "reads them again")
    one.allow_only(topic, NOTHING)
    archiver.until_says("cannot read the decisions of zones in shadow mode")
    archiver.until(lambda: archiver.value("weir_topic_up", topic=topic) == 0, "has it down")
    time.sleep(2)  # its bus looks once a second
    assert not re.search("does not take|dropped", archiver.said()), archiver.said()[-2000:]
    one.allow_all(topic)
    assert archiver.stop() == 0, archiver.said()[-2000:]


def doctor(scene):
    """What `weir doctor` says."""
    path = scene.place.write("doctor.json", json.dumps(scene.roles.sections(zones=ZONES)))
    return scene.place.run("doctor", "--config", path).out().decode()


def a_start_goes_on_without_them(scene):
    """No right at all, and settings that a start would refuse of others."""
    one = scene.one
    for role in scene.both:
        assert role.stop() == 0, role.said()[-2000:]
    one.allow_only(one.topic("deadletter"), NOTHING)
    one.allow_only(one.topic("decisions.shadow"), "DESCRIBE")
    for role in scene.both:
        role.start().until_ready()
    scene.refused("topic {} does not take what is published there: Broker: Topic authorization failed")
    for topic in SIDES:
        one.allow_all(one.topic(topic))
    scene.taken()
    one.kafka.change_settings(one.topic("decisions.shadow"), **{"max.message.bytes": "100"})
    assert scene.limiter.stop() == 0, scene.limiter.said()[-2000:]
    scene.limiter.start().until_ready()
    scene.limiter.until_says("max.message.bytes 100")
    scene.overdo()
    scene.limiter.until(lambda: re.search(larger(one.topic("decisions.shadow"), 100), scene.limiter.said()), "says what is too large")
    one.kafka.change_settings(one.topic("decisions.shadow"), **{"max.message.bytes": LARGEST})


def larger(topic, most):
    """What the log says of a message that is dropped as it is too large."""
    return rf"a message of [0-9]+ bytes is larger than topic {re.escape(topic)} takes \(max[.]message[.]bytes {most}\), and was dropped"


def a_start_without_a_right_that_is_needed_waits_for_it(scene):
    """No configuration is wrong, which would end it for good: service managers do not start it again after that."""
    one = scene.one
    for role, topic in zip(scene.both, ("events", "judged")):
        assert role.stop() == 0, role.said()[-2000:]
        one.allow_only(one.topic(topic), NOTHING)
        one.part("pause", "kafka")  # nobody answers at first, and then what stands in the way is another thing
        role.start().until_says("no broker of ")
        one.part("resume", "kafka")
        role.until_says(f"topic {one.topic(topic)}: Broker: Topic authorization failed")
        role.until_says("(runbook: credentials)")
        one.allow_all(one.topic(topic))
        role.until_ready()
    scene.overdo()


def test_a_dead_letter_that_is_too_large_is_cut_and_the_others_go_on(place):
    """Also where it becomes too large while weir runs; and what is sent together is no more than the topic takes."""
    with cluster.shared() as one, Roles(place, one, ZONES) as roles:
        scene = Scene(place, one, roles)
        topic, most = one.topic("deadletter"), 700
        scene.overdo()
        one.kafka.change_settings(topic, **{"max.message.bytes": str(most)})
        place.append("access.log", "x" * 900 + "\n")  # who runs learns it by a refusal
        scene.collector.until_says("max.message.bytes 700")
        scene.collector.until(lambda: any(letter.get("cut") for letter in letters(one)), "a cut one is written")
        before = scene.dropped()
        place.append("access.log", "".join(f"{number} \x01\u00e9{'y' * length}\n" for number in range(40) for length in (1, 900)))
        scene.collector.until(lambda: len([letter for letter in letters(one) if letter["text"][0].isdigit()]) == 80, "all are there")
        for message in one.kafka.consume(topic):
            letter = json.loads(message.value)
            assert len(message.value) <= most and list(letter)[:5] == ["host", "source", "position", "reason", "text"], letter
            assert (len(letter["text"]) > 300 and letter["cut"]) or ("cut" not in letter and len(letter["text"]) < 30), letter
        assert scene.dropped() == before, (scene.dropped(), before)
        scene.fine()


def letters(one):
    """The dead letters there are."""
    return [json.loads(message.value) for message in one.kafka.consume(one.topic("deadletter")) if message.value]


def test_a_topic_that_is_needed_and_refuses_messages_is_named(place):
    """By who sends there; and producers that are made anew again and again are not taken for two collectors."""
    with cluster.shared() as one, Roles(place, one, ZONES) as roles:
        scene = Scene(place, one, roles)
        scene.overdo()
        events, decided = one.topic("events"), one.topic("decisions")
        one.kafka.change_settings(events, **{"max.message.bytes": "300"})
        for user in range(200):
            place.append("access.log", traffic.burst(f"few-{user % 40}", 1 + user % 3, decisions.now_ms()))
        scene.collector.until_says(f"weir.events: {events}: ")
        for user in range(40):
            place.append("access.log", traffic.burst(f"few-{user}", 4, decisions.now_ms()))
            scene.collector.until(lambda made=user: scene.restarts() > made // 5, "has made producers anew")
        one.kafka.change_settings(events, **{"max.message.bytes": LARGEST})
        scene.overdo()
        assert scene.limiter.value("weir_limiter_shared_source_frames_total") == 0
        one.kafka.change_settings(decided, **{"max.message.bytes": "100"})
        place.append("access.log", traffic.burst("many", 8, decisions.now_ms()))
        # a message's own refusal, or that of the producer, whichever comes first
        refused = f"(cannot publish to partition [0-9]+ of |WARNING limiter: ){re.escape(decided)}: "
        scene.limiter.until(lambda: re.search(refused, scene.limiter.said()), "names the topic")
        one.kafka.change_settings(decided, **{"max.message.bytes": LARGEST})
        scene.overdo()


if __name__ == "__main__":
    cases.main(globals())
