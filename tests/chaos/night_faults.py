# SPDX-License-Identifier: Apache-2.0
"""The faults of a night, one a row: what is done, what is undone, which alert tells of it, which words name the cause.

What costs verdicts or data is to page within 90 s; what costs neither is a ticket, or nothing at all.
"""

import collections
import json
import os
import shutil
import signal
import subprocess
import time

from night import HISTORY_S, PLAIN, SECURED, ZONES
from support import wrong_clock
from support.place import PATIENCE_S, until

VERDICTS, DATA, NOTHING = "verdicts", "data", "nothing"
WITHIN_S = 90

# alert: which tells of it first, or None; or all that have to, the first first; words: a pattern that a log line or a page
# has; also: pages that may follow; stage: of which servers; within_s: seconds to the
# last alert; history_s: for how long all was well before, as the rules ask for.
Fault = collections.namedtuple("Fault", "name inject repair alert words cost also stage within_s history_s",
                               defaults=((), PLAIN, None, HISTORY_S))


def alerts_of(fault):
    """The names of its alerts."""
    return (fault.alert,) if isinstance(fault.alert, str) else fault.alert or ()


def part(action, server):
    """A server of the cluster: stop, kill, start, pause, resume."""
    return lambda night: night.part(action, server)


def delete(topic):
    """A topic that somebody deletes."""
    return lambda night: night.delete(topic)


def make_topics(night):
    """Makes missing topics, and goes on behind what was lost."""
    night.roles.apply()
    night.recover()


def root(statement):
    """A statement of the store's administrator."""
    return lambda night: night.served.mariadb_root.query(statement)


# ---- what is done ----

def fill_broker(night):
    """Takes all room on the broker's disk."""
    night.served.disks["broker-1"].fill()


def drain_broker(night):
    """Gives it back; a broker that halted itself is started."""
    night.served.disks["broker-1"].drain()
    night.part("kill", "broker-1")
    night.part("start", "broker-1")


def trim_unjudged(night):
    """Deletes messages while nobody judges them."""
    for limiter in night.limiters:
        limiter.stop()
    held = night.served.stored()

    def grown():
        ends = night.served.ends()
        return all(ends.get(number, 0) > offset for number, offset in held.items()) and ends
    ends = until(grown, "every partition has more", 2 * PATIENCE_S)
    night.served.kafka.trim(night.served.topic("events"), ends)
    night.fault_s = time.time()
    for limiter in night.limiters:
        night.start(limiter)


def recreate_events(night):
    """Makes the topic anew while nobody judges, and lets it grow past the checkpoints."""
    for limiter in night.limiters:
        limiter.stop()
    held = night.served.stored()
    night.delete("events")
    night.roles.apply()

    def grown():
        ends = night.served.ends()
        return ends and all(ends.get(number, 0) > offset for number, offset in held.items())
    until(grown, "every partition has grown past its checkpoint", time.time() - night.began_s + 4 * PATIENCE_S)
    night.fault_s = time.time()  # before that limiters were away, which costs nothing
    for limiter in night.limiters:
        night.start(limiter)


def show_certificate(days):
    """The broker shows a certificate that ends in so many days, to everybody who connects from now on."""
    def change(night):
        night.part("stop", "broker-1")
        night.served.show_certificate(days)
        night.part("start", "broker-1")
    return change


def change_sasl_password(night):
    """The brokers get another password for weir's user. Connections that stand would go on: they are ended."""
    night.served.set_sasl_password("another")
    night.part("stop", "broker-1")
    night.part("start", "broker-1")


def restore_sasl_password(night):
    """They get the one that weir has."""
    night.served.set_sasl_password(night.served.kafka_properties["sasl.password"])


def make_dead_letters(night):
    """Makes the topic anew, as Kafka takes no partition away."""
    night.delete("deadletter")
    night.roles.apply()


def keep_events(milliseconds):
    """How long the topic of events keeps its messages."""
    return lambda night: night.served.kafka.change_settings(night.served.topic("events"), retention_ms=milliseconds)


def start_with_short_retention(night):
    """A limiter does not start on a topic that keeps nothing."""
    keep_events(1000)(night)
    night.restart(night.limiters[0])


def start_limiter_with_retention(night):
    """What the topic kept before, and the limiter."""
    keep_events(7 * 86400 * 1000)(night)
    night.start(night.limiters[0])


def change_password(night):
    """A limiter starts with a password that is no longer good."""
    night.restart(night.limiters[0], lambda: password(night, "another"))


def password(night, word):
    """The store's password."""
    night.served.mariadb_root.query(f"ALTER USER '{night.roles.sections()['store']['user']}'@'%' IDENTIFIED BY '{word}'")


def restore_password(night):
    """The password that weir has, and the limiter."""
    password(night, night.roles.sections()["store"]["password"])
    night.start(night.limiters[0])


def lock_row(night):
    """Somebody's transaction holds the checkpoint of a partition."""
    night.lock = night.served.mariadb.connect()
    cursor = night.lock.cursor()
    cursor.execute("BEGIN")
    cursor.execute("SELECT * FROM partition_state WHERE role = 1 AND partition_id = 0 FOR UPDATE")


def unlock_row(night):
    """It ends."""
    night.lock.close()


def set_clock(night):
    """A limiter whose clock is two hours ahead."""
    night.restart(night.limiters[0], env=wrong_clock.environment(night.place))


def remove_logs(night):
    """A collector that starts where no logs are, as if a disk was not mounted."""
    night.stop_writing()
    night.restart(night.collector, lambda: os.rename(night.place.path("logs"), night.place.path("logs-away")))


def restore_logs(night):
    """They are there again."""
    os.rename(night.place.path("logs-away"), night.place.path("logs"))
    night.write()


def rotate_twice(night):
    """Renames and compresses the log at once."""
    path = night.place.path("logs", "access.log")
    for number in (1, 2):
        os.rename(path, f"{path}.{number}")
        night.load.signal(signal.SIGHUP)
        until(lambda: os.path.exists(path), "the log is begun anew")
        subprocess.run(["gzip", f"{path}.{number}"], check=True, timeout=PATIENCE_S)


def change_format(night):
    """The service logs in another form from now on."""
    night.stop_writing()
    night.write("--format", "json")


def write_again(night):
    """It logs as before."""
    night.stop_writing()
    night.write()


def truncate_log(night):
    """A log of which much is not read yet is emptied."""
    path = night.burst(1_000_000)
    night.collector.until(lambda: night.collector.value("weir_source_lag_bytes") > 10_000_000, "has much to read")
    os.truncate(path, 0)


def set_memory(night, size):
    """Starts the limiters with so much memory."""
    for limiter in night.limiters:
        night.change(limiter, lambda sections: sections["limiter"].update(memory=size))


def flood(night):
    """More new keys than the least memory finds."""
    set_memory(night, "16MiB")
    night.burst(2_000_000, "--users", 2_000_000, "--zipf", 0)
    night.fault_s = time.time()  # that took its time, too


def restart_redis(night):
    """It forgets everything."""
    night.part("kill", "redis")
    night.part("start", "redis")


def redis_memory(size):
    """How much Redis may hold."""
    def change(night):
        night.served.redis.close()
        night.served.redis.call("CONFIG", "SET", "maxmemory", size)
    return change


def apply_typo(night):
    """A key that no policy has: refused."""
    path = night.place.write("typo.json", json.dumps(night.roles.sections(zones=[{**ZONES[0], "blok_for": "1m"}])))
    done = night.place.run("policy", "apply", "--config", path)
    assert done.code() == 2 and "blok_for" in done.said(), done.said()


def apply(**change):
    """The policy with a change."""
    return lambda night: night.roles.apply([{**ZONES[0], **change}])


def copy_collector(night):
    """A second collector starts from a copy of the state directory."""
    state = night.place.path("copied.state")
    shutil.copytree(night.collector.state, state, ignore=shutil.ignore_patterns("*.lock", "lock"))
    with open(night.collector.config, encoding="utf-8") as file:
        sections = json.load(file)
    del sections["listen"]
    config = night.place.write("copied.json", json.dumps(sections))
    night.second = night.place.start("--config", config, "--state", state,
                                     program=os.path.join(os.path.dirname(night.place.weir), "weir-collector"))


def end_second(night):
    """Ends it."""
    night.second.stop()


def fewer_partitions(night):
    """Refused: the topic has another number."""
    config = night.place.write("fewer.json", json.dumps(night.roles.sections(bus={"partitions": 4})))
    done = night.place.run("--config", config, "--state", night.place.path("fewer.state"),
                           program=os.path.join(os.path.dirname(night.place.weir), "weir-limiter"))
    assert done.code() == 2 and "partitions" in done.said(), done.said()


def one_state(night):
    """Refused: the directory is the first one's."""
    with open(night.limiters[0].config, encoding="utf-8") as file:
        sections = json.load(file)
    del sections["listen"]
    config = night.place.write("same.json", json.dumps(sections))
    done = night.place.run("--config", config, "--state", night.limiters[0].state,
                           program=os.path.join(os.path.dirname(night.place.weir), "weir-limiter"))
    assert done.code() != 0 and "in use" in done.said(), done.said()


def remove_gateway(night):
    """The directory of a gateway's file is gone."""
    os.rename(night.place.path("gateway"), night.place.path("gateway-away"))


def restore_gateway(night):
    """It is there again."""
    os.rename(night.place.path("gateway-away"), night.place.path("gateway"))


def fill_state(night):
    """Takes all room where the collector keeps its state."""
    night.disks["collector"].fill()


def drain_state(night):
    """Gives it back."""
    night.disks["collector"].drain()


def nothing(_night):
    """It ends by itself."""


# ---- the table ----

BUS, STORE = r"(?i)broker.*(refused|away|answer|reach)|no (Kafka )?broker", r"(?i)store|mariadb|3306|mysql"
USUAL_S, LONG_S = 680, 800  # of which rules ask what was usual, and what was ten minutes before a change
NO_LEADER = ("WeirTopicAway",)  # a broker that goes or comes says to some of them that topics have no leader, and then nothing

FAULTS = tuple(Fault(*row) for row in (
    # name, inject, repair, the alert, its words, what it costs, pages that may follow, the stage
    # -- of the 24 of NIGHT.md --
    ("broker stopped", part("stop", "kafka"), part("start", "kafka"), "WeirBusAway", BUS, VERDICTS, NO_LEADER),
    ("broker's disk full", fill_broker, drain_broker, "WeirBusAway", BUS, VERDICTS, NO_LEADER),
    ("topic decisions deleted", delete("decisions"), make_topics, "WeirTopicAway", r"decisions.*(does not exist|Unknown topic)", VERDICTS),
    ("gap", trim_unjudged, lambda night: night.recover(), "WeirPartitionsStuck", r"deleted before they were judged|in between are lost", VERDICTS),
    ("retention of a second at a start", start_with_short_retention, start_limiter_with_retention, "WeirDown", r"keeps.*1s", VERDICTS),
    ("store stopped", part("stop", "mariadb"), part("start", "mariadb"), "WeirStoreAway", STORE, NOTHING),
    ("store read-only", root("SET GLOBAL read_only = 1"), root("SET GLOBAL read_only = 0"), "WeirStoreAway", r"(?i)read.only", NOTHING),
    ("store's password changed", change_password, restore_password, "WeirDown", r"Access denied", VERDICTS),
    ("row of the store locked", lock_row, unlock_row, None, r"1205|[Ll]ock", NOTHING),
    ("limiter suspended", lambda night: night.limiters[0].pause(), lambda night: night.limiters[0].resume(), "WeirDown",
     r"limiter-1 /readyz: none", VERDICTS),
    ("limiter's clock two hours ahead", set_clock, lambda night: night.restart(night.limiters[0]), "WeirClock", r"clock", NOTHING),
    ("directory of the logs gone", remove_logs, restore_logs, "WeirSourcesUnreadable", r"No such file", VERDICTS, ("WeirNothingRead",)),
    ("log rotated and compressed, twice", rotate_twice, nothing, None, "", NOTHING),
    ("log in another format", change_format, write_again, "WeirFormatChanged", r"format", VERDICTS, ("WeirMostMalformed",)),
    ("flood of keys, 16 MiB", flood, lambda night: set_memory(night, "512MiB"), "WeirMemoryTooSmall", r"limiter\.memory", VERDICTS, ("WeirLimiterLag",)),
    ("Redis restarted empty", restart_redis, nothing, None, r"(?i)redis", NOTHING),
    ("Redis out of memory", redis_memory(1), redis_memory(0), "WeirListNotTrue", r"OOM|maxmemory", VERDICTS),
    ("policy with a typo", apply_typo, nothing, None, "", NOTHING),
    ("policy that matches nothing", apply(match={"method": ["PSOT"]}), apply(), ("WeirPolicyMatchesNothing", "WeirNothingJudged"),
     r"policy", VERDICTS, (), PLAIN, None, LONG_S),
    ("two collectors of one identity", copy_collector, end_second, "WeirDuplicateCollector", r"two collectors have one identity", VERDICTS),
    ("limiter with other bus.partitions", fewer_partitions, nothing, None, "", NOTHING),
    ("archiver stopped", lambda night: night.archiver.stop(), lambda night: night.start(night.archiver), "WeirArchiverDown", "", NOTHING),
    ("topic events deleted", delete("events"), make_topics, "WeirTopicAway", r"events.*(does not exist|Unknown topic)", VERDICTS),
    ("retention lowered", keep_events(15000), keep_events(7 * 86400 * 1000), "WeirRetentionShort", "", NOTHING),
    ("topic events made anew and grown", recreate_events, lambda night: night.recover(), "WeirPartitionsStuck", r"recreated", VERDICTS,
     ("WeirDown", "WeirSourceLag", "WeirLowWater", "WeirLimiterLag", "WeirPartitionsNotLive")),
    ("broker's certificate expired", show_certificate(-1), show_certificate(365), "WeirBusAway", r"certificate.*expired.*runbook: certificates",
     VERDICTS, NO_LEADER, SECURED),
    ("wrong SASL password", change_sasl_password, restore_sasl_password, "WeirBusAway",
     r"rejects the user: wrong .*password.*runbook: credentials", VERDICTS, NO_LEADER, SECURED),
    # -- ten more --
    ("limiter killed", lambda night: night.limiters[0].kill(), lambda night: night.start(night.limiters[0]), "WeirDown", "", VERDICTS),
    ("collector's disk full", fill_state, drain_state, "WeirPositionsUnsaved", r"/readyz: 503 .*could not be saved", NOTHING),
    ("partitions added to topic deadletter", lambda night: night.served.kafka.extend(night.served.topic("deadletter"), 3),
     make_dead_letters, "WeirPartitionsAdded", r"partitions were added to it", NOTHING),
    ("topic policy deleted", delete("policy"), make_topics, "WeirOtherTopicAway", r"policy", NOTHING),
    ("topic judged deleted", delete("judged"), make_topics, "WeirTopicAway", r"judged.*(does not exist|Unknown topic)", VERDICTS),
    ("broker suspended", part("pause", "kafka"), part("resume", "kafka"), "WeirBusAway", BUS, VERDICTS, NO_LEADER),
    ("store suspended", part("pause", "mariadb"), part("resume", "mariadb"), "WeirStoreAway", STORE, NOTHING),
    ("Redis suspended", part("pause", "redis"), part("resume", "redis"), "WeirListNotTrue", r"(?i)redis", VERDICTS),
    ("gateway's directory gone", remove_gateway, restore_gateway, "WeirListNotTrue", r"gateway.*No such file", VERDICTS),
    ("two limiters of one state directory", one_state, nothing, None, "", NOTHING),
    ("log truncated while it was read", truncate_log, nothing, "WeirLost", r"truncated", DATA),
    ("nothing is logged any more", lambda night: night.stop_writing(), lambda night: night.write(), "WeirNothingRead", "", VERDICTS, (), PLAIN,
     None, USUAL_S),
))
CI = ("store read-only", "log in another format", "gateway's directory gone", "broker stopped", "topic decisions deleted")
LASTING = {"WeirLost", "WeirLostUnknown", "WeirDropped"}  # alerts that go on for half an hour after what they tell of
# After these the log does not hold each line once: it was deleted, or cut, or lines are no lines of the format.
INEXACT = ("gap", "topic events deleted", "topic events made anew and grown", "log truncated while it was read",
           "retention of a second at a start", "retention lowered", "policy that matches nothing")
