#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir's daemons cut off from their bus and their store: they show how far behind they are, end in time, log JSON."""

import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, cluster_check, decisions, traffic
from support.place import PATIENCE_S
from support.roles import Roles

ZONES = [traffic.zone("site", [traffic.sliding(3, "1h")], id=1)]
ENDS_S = 40 + PATIENCE_S  # a last checkpoint, the group and the end have some 10 s each at most
FLOOD = 40000  # messages of a kilobyte: more than a collector has in flight


@contextlib.contextmanager
def cut_off(place, **sections):
    """A cluster with a proxy before each server: (it, roles that go through them, proxies of brokers, MariaDB's)."""
    with cluster.own("--proxy-port", "0", parent=place.directory) as one, one.proxied_kafka() as (brokers, addresses), \
            one.proxied_mariadb() as mariadb, \
            Roles(place, one, ZONES, bus={"partitions": 4, "brokers": addresses}, store={"port": mariadb.port},
                  limiter={"checkpoint_interval": "200ms"}, **sections) as roles:
        yield one, roles, brokers, mariadb


def each(proxies, deed):
    """Has something done to each proxy."""
    for proxy in proxies:
        getattr(proxy, deed)()


# ---- sources ----

def lag(collector):
    """(records, seconds) that its source is behind."""
    return collector.value("weir_source_lag_messages"), collector.value("weir_source_lag_seconds")


def test_a_source_says_how_far_behind_it_is(place):
    """A topic of which nothing is read while the bus takes nothing."""
    with cut_off(place) as (one, roles, brokers, _):
        topic = one.topic("logs")
        one.kafka.create(topic, partitions=1)
        roles.apply()
        collector = roles.collector([{"type": "kafka", "brokers": one.brokers, "topics": [topic],
                                      "group": one.topic("collectors"), "kafka": one.kafka_properties,
                                      "format": traffic.FORMAT}]).until_ready()
        one.kafka.produce(topic, [(None, traffic.line(traffic.START_MS, "bob").encode(), 0)])
        collector.until(lambda: collector.value("weir_collector_lines_total") == 1, "reads")
        collector.until(lambda: lag(collector) == (0, 0), "is behind with nothing")
        each(brokers, "cut")
        pad = "x" * 1000
        one.kafka.produce(topic, [(None, traffic.line(traffic.START_MS, f"{number}{pad}").encode(), 0)
                                  for number in range(FLOOD)])
        collector.until(lambda: lag(collector)[0] > FLOOD // 4 and lag(collector)[1] > 1, "shows what it has not read")
        each(brokers, "mend")
        collector.until(lambda: collector.value("weir_collector_lines_total") == 1 + FLOOD and lag(collector) == (0, 0),
                        "has read all", 4 * PATIENCE_S)
        assert collector.stop() == 0, collector.said()[-2000:]


# ---- ends ----

def end_in_time(role, status):
    """SIGTERM to one that has no servers. A status of 1 tells that its last checkpoints were not stored."""
    begun = time.monotonic()
    code = role.stop(ENDS_S)
    assert code == status, f"{role.name} exited with status {code} after {time.monotonic() - begun:.1f} s: {role.said()[-2000:]}"


def test_a_limiter_ends_in_time_without_its_servers(place):
    """MariaDB is away, then the brokers are, while it has what no checkpoint holds: the next start judges the rest."""
    with cut_off(place) as (one, roles, brokers, mariadb):
        roles.apply()
        log = place.write("log", traffic.burst("ann", 100))
        collector = roles.collector([traffic.source(log)])
        limiter = roles.limiter().until_ready()
        lines = 100
        for proxies, part in (([mariadb], "store"), (brokers, "bus")):
            limiter.until(lambda: one.stored() == one.ends(), "has stored all")
            each(proxies, "cut")
            if part == "store":
                place.append("log", traffic.burst("bob", 100))
                lines += 100
                limiter.until(lambda seen=lines: limiter.value("weir_limiter_verdicts_total") == seen, "judges on")
            limiter.until_says(f"WARNING {part}: ")
            end_in_time(limiter, 1 if part == "store" else 0)
            each(proxies, "mend")
            limiter.start().until_ready()
        collector.until(lambda: cluster_check.Check(one).events == lines, "all is in the log")
        cluster_check.caught_up(one, roles, 2)
        assert collector.stop() == 0 and limiter.stop() == 0
        cluster_check.Check(one).state(place)


# ---- logs ----

def require_json(name, said):
    """Every line is an object with what a log's line has."""
    assert said, f"{name} has said nothing"
    for line in said.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            raise AssertionError(f"{name}: {line!r} is no JSON") from None
        assert isinstance(told, dict) and told, line


def test_every_line_of_a_log_in_json_is_json(place):
    """Of each role, from its start through an outage to its end, and of starts that fail."""
    with cut_off(place, archiver={"enabled": True}, log={"format": "json"}) as (one, roles, brokers, mariadb):
        roles.apply()
        log = place.write("log", traffic.burst("ann", 100))
        crew = [roles.limiter(), roles.archiver(), roles.collector([traffic.source(log)])]
        config = place.write("subscribe.json", json.dumps(roles.sections()))
        subscriber = decisions.start(place, config, one.redis_url).until_ready()
        for role in crew:
            role.until_ready()
        each([*brokers, mariadb], "cut")
        for role in crew:
            role.until(lambda role=role: "WARNING" in role.said().upper(), "says that it misses its servers")
        subscriber.until(lambda: "WARNING" in subscriber.weir.said().upper(), "says that it misses its brokers")
        each([*brokers, mariadb], "mend")
        for role in crew:
            role.until_ready()
        role.reload()
        # Starts that fail: the pages' port is taken, or the configuration cannot serve.
        taken = {"http": f"127.0.0.1:{crew[0].port}"}
        local = {"bus": {"type": "local"}, "zones": ZONES}
        refused = [(roles.limiter(listen=taken), 1), (roles.archiver(listen=taken), 1),
                   (roles.collector([traffic.source(log)], listen=taken), 1),
                   (roles.limiter(**local), 2), (roles.archiver(**local), 2),
                   (roles.collector([traffic.source(log)], **local), 2)]
        for role, code in refused:
            assert role.run.wait() == code, (role.name, role.run.code(), role.said())
            require_json(role.name, role.said())
        late = place.run("subscribe", "--config", config, "--to", one.redis_url, "--http", taken["http"])
        assert late.code() == 1, late.said()
        require_json("a subscriber without a port", late.said())
        for role in crew:
            assert role.stop() == 0, role.said()[-2000:]
            require_json(role.name, role.said())
        assert subscriber.weir.stop() == 0
        require_json("the subscriber", subscriber.weir.said())


if __name__ == "__main__":
    cases.main(globals())
