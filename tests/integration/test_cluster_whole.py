#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every role at once: on servers that are reached by TLS and SASL alone, and with pages as Prometheus wants them.

One collector follows a log and a topic of logs and listens for syslog, one limiter judges, an archiver counts, and
Redis has who is blocked.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, decisions, metrics, traffic
from support.blocks_in_redis import block_key, held
from support.place import PATIENCE_S, ROOT, free_port
from support.roles import Roles

ZONES = [traffic.zone("site", [traffic.sliding(3, "1m")], id=1, block_for="1h"),
         traffic.zone("watch", [traffic.fixed(5, "1h")], id=2, mode="shadow")]
PROGRAMS = {"collector": "weir-collector", "limiter": "weir-limiter", "archiver": "weir-archiver",
            "subscribe": "weir subscribe"}
OF_LOG, OF_TOPIC = 8, 7  # requests of the one user that stands in each
COUNTED = "SELECT coalesce(sum(passed + blocked), 0) FROM count_hourly WHERE zone_id = 1"


class Whole:
    """All roles, of which each has done some work by the time this is made."""

    def __init__(self, place, one, roles):
        self.one, self.roles = one, roles
        now_ms, topic = decisions.now_ms(), one.topic("logs")
        log = place.write("access.log", traffic.burst("ann", OF_LOG, now_ms))
        one.kafka.create(topic, partitions=2)
        one.kafka.produce(topic, [(None, line.encode(), number % 2) for number, line in
                                  enumerate(traffic.burst("bob", OF_TOPIC, now_ms).splitlines())])
        roles.apply()
        self.limiter = roles.limiter()
        self.archiver = roles.archiver()
        self.collector = roles.collector([
            traffic.source(log),
            {"type": "kafka", "brokers": one.brokers, "topics": [topic], "group": one.topic("collectors"),
             "kafka": one.kafka_properties, "format": traffic.FORMAT},
            {"type": "syslog", "listen": f"udp://127.0.0.1:{free_port()}", "format": traffic.FORMAT}])
        config = place.write("subscribe.json", json.dumps(roles.sections()))
        self.subscriber = decisions.start(place, config, one.redis_url)
        for role in (self.collector, self.limiter, self.archiver):
            role.until_ready()
        self.subscriber.until_ready()
        self.limiter.until(lambda: self.limiter.value("weir_limiter_verdicts_total", zone="site") == OF_LOG + OF_TOPIC,
                           "every request is judged")
        self.subscriber.until(lambda: held(one.redis).keys() == {block_key("site", user) for user in (b"ann", b"bob")},
                              "Redis has who is blocked")
        self.archiver.until(lambda: one.mariadb.one(COUNTED) == OF_LOG + OF_TOPIC, "every request is counted")

    @property
    def pages(self):
        """{role: the port of its pages}"""
        return {"collector": self.collector.port, "limiter": self.limiter.port, "archiver": self.archiver.port,
                "subscribe": self.subscriber.port}

    def samples(self):
        """The names of all samples on the pages."""
        return {name for port in self.pages.values() for name, _ in metrics.scrape(port).samples}

    def stop(self):
        """Lets everyone leave."""
        for role in (self.collector, self.limiter, self.archiver):
            assert role.stop() == 0, role.said()[-2000:]
        assert self.subscriber.weir.stop() == 0, self.subscriber.weir.said()[-2000:]


def roles_of(place, one):
    """The daemons, and what is in their configurations."""
    return Roles(place, one, ZONES, bus={"partitions": 4}, archiver={"enabled": True, "interval": "200ms"},
                 limiter={"checkpoint_interval": "200ms", "threads": 1})


def test_every_role_by_tls_and_sasl(place):
    """From a line and from a message to Redis, the archive, and what operators ask and command."""
    with cluster.own("--tls-sasl", parent=place.directory) as one, roles_of(place, one) as roles:
        assert one.kafka_properties["security.protocol"].lower() == "sasl_ssl", one.kafka_properties
        whole = Whole(place, one, roles)
        listed = roles.command("list").out().decode()
        assert "ann" in listed and "bob" in listed, listed
        roles.override("block", "--zone", "site", "--for", "1h", "eve")
        whole.subscriber.until(lambda: block_key("site", b"eve") in held(one.redis), "Redis has who was commanded")
        state = roles.command("state", "--zone", "site", "--key", "ann").out().decode()
        assert '"key":["ann"]' in state, state
        for name, port in whole.pages.items():
            page = metrics.scrape(port)
            shown = page.value("weir_bus_certificate_expires_timestamp_seconds", broker=one.brokers)
            trusted = page.value("weir_certificate_file_expires_timestamp_seconds", file=one.kafka_properties["ssl.ca.location"])
            assert shown > time.time() and trusted > time.time(), (name, shown, trusted)
        whole.stop()


def test_the_pages_are_those_of_the_reference(place):
    """Each daemon's shows all that common/metrics.md says of it, and nothing else."""
    with cluster.shared() as one, roles_of(place, one) as roles:
        whole = Whole(place, one, roles)
        # A lag is shown once a watermark has been asked for.
        for role in (whole.limiter, whole.archiver):
            role.until(lambda asked=role: f"weir_{asked.kind}_lag_seconds" in asked.metrics().types, "its lag is known")
        for name, port in whole.pages.items():
            metrics.scrape(port).check_whole(PROGRAMS[name])
        whole.stop()


def says(role, words):
    """Whether a role is not ready, and its page has these words."""
    answer = role.page("/readyz")
    return answer is not None and answer[0] == 503 and words in answer[1]


def states(limiter):
    """{state: how many partitions of a limiter are in it}, of those in which some are."""
    page = limiter.metrics()
    return {dict(labels)["state"]: int(value) for (name, labels), value in (page.samples.items() if page else ())
            if name == "weir_limiter_partitions" and value > 0}


def test_what_befalls_the_servers_is_on_the_pages(place):
    """A topic's retention, a topic, the brokers, the store: each is named by those that need it, and by no other."""
    with cluster.own(parent=place.directory) as one, roles_of(place, one) as roles:
        whole = Whole(place, one, roles)
        limiter, collector, archiver = whole.limiter, whole.collector, whole.archiver
        for role in (limiter, collector, archiver):
            assert role.value("weir_bus_up") == 1 and role.value("weir_bus_partitions") == 4, role.name
            assert role.metrics().sum("weir_topic_up") >= 3, role.name
        for role in (limiter, archiver):
            role.until(lambda role=role: role.value("weir_store_up") == 1, "its store answers")
        retention_is_followed(one, limiter, collector)
        topics_that_may_be_missed_are(one, roles, whole)
        a_topic_is_missed(one, roles, whole)
        brokers_are_missed(one, limiter, archiver)
        the_store_is_missed(one, limiter, archiver)
        for role in (limiter, collector, archiver):
            assert role.stop() == 0, role.said()[-2000:]


def retention_is_followed(one, limiter, collector):
    """Lower and higher, while it runs."""
    events = one.topic("events")
    for kept_ms, words in ((15000, f"topic {events} now keeps its messages for 15s instead of"),
                           (7 * 86400000, f"topic {events} now keeps its messages for 7d")):
        one.kafka.change_settings(events, **{"retention.ms": str(kept_ms)})
        limiter.until(lambda kept_ms=kept_ms: limiter.value("weir_topic_retention_seconds", topic=events) == kept_ms / 1000,
                      "knows for how long the topic keeps its messages")
        limiter.until_says(words)
        assert limiter.is_ready(), limiter.page("/readyz")
        collector.until_says(words)


def misses(one, whole):
    """How many messages were dropped: (dead letters of the collector, the limiter's decisions in shadow)."""
    return (whole.collector.value("weir_topic_dropped_messages_total", topic=one.topic("deadletter")),
            whole.limiter.value("weir_topic_dropped_messages_total", topic=one.topic("decisions.shadow")))


def topics_that_may_be_missed_are(one, roles, whole):
    """Without dead letters and decisions in shadow the others are published as ever, by the same producers."""
    missed = [one.topic("deadletter"), one.topic("decisions.shadow")]
    whole.limiter.until(lambda: misses(one, whole) == (0, 0), "nothing was dropped")

    def overdo(user):
        lines = ["no line of this format", *traffic.burst(user, 6, decisions.now_ms()).splitlines()]
        one.kafka.produce(one.topic("logs"), [(None, line.encode(), 0) for line in lines])
        whole.subscriber.until(lambda: block_key("site", user.encode()) in held(one.redis), f"Redis has {user}")

    one.kafka.delete(missed)
    for topic in missed:
        whole.limiter.until(lambda topic=topic: whole.limiter.metrics().value("weir_topic_up", topic=topic) == 0,
                            "tells of it")
        whole.limiter.until_says(f"topic {topic} does not exist any more")
    overdo("dan")
    whole.limiter.until(lambda: min(misses(one, whole)) >= 1, "both are counted")
    for role in (whole.limiter, whole.collector):
        assert role.value("weir_bus_up") == 1 and role.is_ready(), role.page("/readyz")
    whole.collector.until(lambda: whole.collector.value("weir_collector_low_water_age_seconds") < 5, "owes nothing")
    roles.apply()
    for topic in missed:
        whole.limiter.until(lambda topic=topic: whole.limiter.value("weir_topic_up", topic=topic) == 1, "has it again")
    users = itertools.count()

    def are_written():
        """A producer hears a little later than its process that a topic exists: until then it drops what is sent."""
        overdo(f"eli-{next(users)}")
        return all(one.kafka.count(topic) > 0 for topic in missed)
    whole.limiter.until(are_written, "both are written again")
    dropped = misses(one, whole)
    overdo("fay")
    assert misses(one, whole) == dropped
    assert whole.collector.value("weir_collector_producer_restarts_total") == 0
    assert whole.limiter.value("weir_limiter_publish_failures_total") == 0


def a_topic_is_missed(one, roles, whole):
    """Without decisions a collector is ready, and nobody who publishes or reads them is."""
    decided = one.topic("decisions")
    one.kafka.delete([decided])
    for role in (whole.limiter, whole.archiver):
        role.until(lambda role=role: says(role, decided), "names the topic")
        assert role.value("weir_topic_up", topic=decided) == 0 and role.value("weir_bus_up") == 1, role.name
    assert "waiting" not in states(whole.limiter), states(whole.limiter)
    whole.subscriber.until(lambda: not whole.subscriber.is_ready(), "is not ready without its topic")
    whole.subscriber.until(lambda: decided in metrics.get(whole.subscriber.port, "/readyz")[2], "names the topic")
    assert whole.collector.is_ready(), whole.collector.page("/readyz")
    assert whole.collector.value("weir_bus_up") == 1
    roles.apply()
    whole.limiter.until_ready()
    whole.archiver.until(lambda: whole.archiver.value("weir_topic_up", topic=decided) == 1, "has its topics again")


def brokers_are_missed(one, limiter, archiver):
    """No gauge says that all is well: nothing is judged, and how far behind it is nobody knows."""
    one.part("stop", "kafka")
    for role in (limiter, archiver):
        role.until(lambda role=role: says(role, "no broker of ") and says(role, " UTC\n"), "names the brokers")
        assert role.value("weir_bus_up") == 0 and "weir_topic_up" not in {name for name, _ in role.metrics().samples}, role.name
    assert says(limiter, "4 partitions last held\n"), limiter.page("/readyz")
    assert states(limiter) == {"waiting": 4}, states(limiter)
    limiter.until(lambda: limiter.metrics().value("weir_limiter_lag_seconds") is None, "does not know its lag")
    assert limiter.value("weir_bus_answer_age_seconds") > 3
    assert limiter.page("/healthz")[0] == 200
    one.part("start", "kafka")
    limiter.until_ready()
    limiter.until(lambda: states(limiter) == {"live": 4} and limiter.value("weir_bus_up") == 1, "judges again")
    # The topic that was made anew begins behind what it had read, which its page says.
    archiver.until(lambda: "is stopped: " + one.topic("decisions") in archiver.page("/healthz")[1], "says what it waits for")


def the_store_is_missed(one, limiter, archiver):
    """Judging goes on, and the limiter is ready; what archives is not."""
    one.part("stop", "mariadb")
    one.kafka.produce(one.topic("logs"), [(None, line.encode(), 0) for line in
                                          traffic.burst("cid", 2, decisions.now_ms()).splitlines()])
    for role in (limiter, archiver):
        role.until(lambda role=role: role.metrics().value("weir_store_up") == 0, "misses its store")
        assert role.value("weir_store_failures_total") > 0, role.name
    assert limiter.page("/healthz")[0] == 200, limiter.page("/healthz")
    assert limiter.is_ready() and states(limiter) == {"live": 4}, (limiter.page("/readyz"), states(limiter))
    assert says(archiver, "nothing is stored meanwhile"), archiver.page("/readyz")
    one.part("start", "mariadb")
    for role in (limiter, archiver):
        role.until(lambda role=role: role.value("weir_store_up") == 1, "has its store again")


def test_every_live_page_is_as_prometheus_wants_it(place):
    """And what alerts and dashboard name is on one of them."""
    promtool = shutil.which("promtool")
    if promtool is None:
        raise cases.Skipped("no promtool here (deploy/packages gateways)")
    with cluster.shared() as one, roles_of(place, one) as roles:
        whole = Whole(place, one, roles)
        for name, port in whole.pages.items():
            status, _, text = metrics.get(port, "/metrics")
            assert status == 200, name
            done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10 * PATIENCE_S)
            assert done.returncode == 0 and done.stdout.strip() == "", f"{name}: {done.stdout}"
        for file in ("weir-alerts.yaml", "weir-dashboard.json"):
            with open(os.path.join(ROOT, "deploy", "grafana", file), encoding="utf-8") as text:
                named = set(re.findall(r"\bweir_[a-z_]+\b", text.read())) - {
                    "weir_runbook",  # a label of Prometheus's own
                    "weir_run_state_up", "weir_run_decisions_up",  # of weir run
                    "weir_source_senders_wait_seconds",  # of sources that are pushed to
                    "weir_bus_clock_skew_seconds"}  # absent until the brokers' clock is known
            assert named, file
            # A lag is shown once a watermark has been asked for.
            whole.limiter.until(lambda wanted=named: wanted <= whole.samples(), f"all that {file} names is shown")
        whole.stop()


if __name__ == "__main__":
    cases.main(globals())
