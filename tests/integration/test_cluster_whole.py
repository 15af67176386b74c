#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every role at once: on servers that are reached by TLS and SASL alone, and with pages as Prometheus wants them.

One collector follows a log and a topic of logs and listens for syslog, one limiter judges, an archiver counts, and
Redis has who is blocked.
"""

import json
import os
import re
import shutil
import subprocess
import sys

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
                named = set(re.findall(r"\bweir_[a-z_]+\b", text.read()))
            assert named, file
            # A lag is shown once a watermark has been asked for.
            whole.limiter.until(lambda wanted=named: wanted <= whole.samples(), f"all that {file} names is shown")
        whole.stop()


if __name__ == "__main__":
    cases.main(globals())
