# SPDX-License-Identifier: Apache-2.0
"""What brings the other alerts about: those that follow a fault, take long, compare with what was, or are of few places.

"WeirX/10" is the rule with its times divided by ten, see night.py: a signal that lasts for twenty minutes is then needed for
two. What a rule compares with (300 s of waiting, seven days of a certificate) is not divided, and is really reached.
Rows are played by hand: --all, or by name.
"""

import contextlib
import http.client
import os
import socket
import threading
import time

from night import PARTITIONS, PLAIN, RATE, RUN_JOB, SECURED, SELDOM_JOB, SEVERAL, ZONES
from night_faults import (BUS, DATA, LONG_S, NO_LEADER, NOTHING, STORE, VERDICTS, Fault, apply, keep_events, make_topics, nothing, part,
                          set_memory, show_certificate, write_again)
from support import pushing, wrong_clock
from support.place import PATIENCE_S, free_port, joined, until
from support.redis import Redis, RedisError
from support.small_disk import SmallDisk


def all_of(*deeds):
    """One deed after the other."""
    def do(night):
        for deed in deeds:
            deed(night)
    return do


def quota(role, **rates):
    """The brokers let a role send or fetch so many bytes a second; None: as many as it likes."""
    return lambda night: night.served.set_quota(f"weir-{role}", **rates)


def setting(topic, **settings):
    """A topic's configuration."""
    return lambda night: night.served.kafka.change_settings(night.served.topic(topic), **settings)


def each_limiter(deed):
    """Something that is done to both."""
    def do(night):
        for limiter in night.limiters:
            deed(night, limiter)
    return do


# ---- what is done ----

def throttle_source(night):
    """A topic of lines, of which the brokers give the collector next to nothing."""
    topic, client = night.served.topic("logs"), night.served.topic("throttled")
    night.served.kafka.create(topic, partitions=1)
    night.kept_sources = night.sources()
    night.set_sources([*night.kept_sources, {"type": "kafka", "brokers": night.served.brokers, "topics": [topic], "format": "combined",
                                             "group": night.served.topic("collectors"),
                                             "kafka": {**night.served.kafka_properties, "client.id": client}}])
    with open(night.place.path("logs", "access.log"), "rb") as log:
        lines = log.read().splitlines()[:200]
    night.served.kafka.produce(topic, lines)
    night.collector.until(lambda: night.collector.value("weir_source_lines_total", source=f"kafka:{topic}/0") == len(lines), "reads")
    night.served.set_quota(client, consumer_byte_rate=20)
    night.over = threading.Event()

    def produce():
        while not night.over.wait(1):
            night.served.kafka.produce(topic, lines)
    night.pusher = threading.Thread(target=produce, daemon=True)
    night.pusher.start()
    night.fault_s = time.time()


def let_source_go_on(night):
    """It gets what it asks for, until it has read all."""
    night.over.set()
    joined(night.pusher, "the sender", 4 * PATIENCE_S)
    night.served.set_quota(night.served.topic("throttled"), consumer_byte_rate=None)
    night.collector.until(lambda: night.collector.value("weir_source_lag_messages") == 0, "has read the topic", 8 * PATIENCE_S)
    kept_sources(night)


def cut_gateway_off(night):
    """One gateway does not reach one of the brokers any more; everybody else does."""
    topic = night.served.topic("decisions")
    partitions = night.served.kafka.admin().list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    night.proxies[partitions[0].leader - 1].cut()


def let_gateway_hear(night):
    """It reaches it again."""
    for proxy in night.proxies:
        proxy.mend()


def forbid_reading(topic):
    """Who reads it has no right to it any more; who writes there has."""
    return lambda night: night.served.allow_only(night.served.topic(topic), "DESCRIBE", "DESCRIBE_CONFIGS", "WRITE")


def allow_reading(topic):
    """It has it again."""
    return lambda night: night.served.allow_all(night.served.topic(topic))


def log_little_otherwise(night):
    """Many sources of few lines each, in another form: too few for a source's own count, which wants ten lines."""
    night.kept_sources, logs = night.sources(), [night.place.path(f"few-{number}") for number in range(30)]
    night.set_sources([*night.kept_sources, *({**night.kept_sources[0], "path": path} for path in logs)])
    night.stop_writing()
    night.write(rate=1)
    time.sleep(75)  # of the minute that the rule looks at, all but these
    night.fault_s = time.time()
    night.beside = night.place.start("-c", f"while :; do for log in {' '.join(logs)}; do echo '{{}}' >> $log; done; sleep 15; done",
                                     program="/bin/sh")


def log_as_before(night):
    """They are gone."""
    night.beside.kill()
    night.stop_writing()
    kept_sources(night)
    night.write()


def write_foreign(night):
    """Somebody writes to weir's topics."""
    for topic in ("events", "judged", "decisions", "policy"):
        night.served.kafka.produce(night.served.topic(topic), [(b"foreign", b"no message of weir's", 0)])


def small_list(night):
    """A gateway that is to hold one block."""
    night.file.weir.stop()
    night.subscribe(night.file, "--max", 1)


def whole_list(night):
    """It may hold all of them."""
    night.file.weir.stop()
    night.subscribe(night.file)


def cut_log(night):
    """Somebody empties a log in place, all of which was read."""
    night.stop_writing()
    night.collector.until(lambda: night.collector.value("weir_source_lag_bytes") == 0, "has read all")
    os.truncate(night.place.path("logs", "access.log"), 0)
    night.write()


def drop_datagrams(night):
    """Senders of UDP are too fast for the kernel's buffer while the collector gets no processor."""
    port = free_port()
    night.kept_sources = night.sources()
    night.set_sources([*night.kept_sources, {"type": "syslog", "listen": f"udp://127.0.0.1:{port}", "format": "json",
                                             "receive_buffer": 8192}])
    night.collector.until_ready()
    time.sleep(5)  # two scrapes, which see nothing dropped
    night.collector.pause()
    night.fault_s = time.time()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(1000):
            sender.sendto(b'<13>{"time":"2026-01-01T00:00:00Z","ip":"192.0.2.%d"}' % (number % 250), ("127.0.0.1", port))
    night.collector.resume()


def advertise_one_address(night):
    """Gateways ask, and both limiters say that they are where the first one is."""
    ports = [free_port() for _ in night.limiters]
    for limiter, port in zip(night.limiters, ports):
        limiter.until_ready()
        night.change(limiter, lambda sections, port=port: sections.update(
            listen={**sections["listen"], "resp": f"127.0.0.1:{port}"}, checks={"advertise": f"127.0.0.1:{ports[0]}"}))
        limiter.until_ready()
    night.over = threading.Event()

    def ask():
        client, number = None, 0
        while not night.over.wait(0.01):
            try:
                client = client or Redis(ports[0])
                client.call("WEIR.PEEK", f"asker-{number}", ZONES[0]["name"])
            except RedisError:
                pass  # unavailable
            except OSError:
                client = None
            number += 1
    night.pusher = threading.Thread(target=ask, daemon=True)
    night.pusher.start()
    night.fault_s = time.time()


def ask_no_more(night):
    """No gateway asks."""
    night.over.set()
    joined(night.pusher, "the gateway")
    for limiter in night.limiters:
        def quiet(sections):
            del sections["listen"]["resp"], sections["checks"]
        night.change(limiter, quiet)
        limiter.until_ready()


def kept_sources(night):
    """The collector reads what it read before."""
    night.set_sources(night.kept_sources)


def make_senders_wait(night):
    """The bus is away, and what is pushed fills the spool."""
    port = free_port()
    night.kept_sources = night.sources()
    night.set_sources([*night.kept_sources, pushing.http_source(night.place, port, spool="1MiB", max_body="256KiB")])
    night.collector.until_ready()
    night.part("stop", "kafka")
    night.fault_s = time.time()
    night.over = threading.Event()

    def push():
        while not night.over.wait(0.2):
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                body = pushing.lines(f"user-{number}-{time.time()}" for number in range(2000))
                connection.request("POST", "/ingest", body, {"Authorization": f"Bearer {pushing.TOKEN}"})
                connection.getresponse().read()
                connection.close()
    night.pusher = threading.Thread(target=push, daemon=True)
    night.pusher.start()


def let_senders_go_on(night):
    """Everything as before."""
    night.over.set()
    joined(night.pusher, "the sender")
    night.part("start", "kafka")
    night.collector.until(lambda: night.collector.value("weir_source_lag_bytes") == 0, "has read the spool", 8 * PATIENCE_S)
    kept_sources(night)


def fill_machine(folder):
    """A `weir run` of its own, whose disk is full where it keeps one thing: "one.state" or "one.decisions"."""
    def fill(night):
        stack = night.extra = contextlib.ExitStack()
        port = free_port()
        log = night.place.write("one/access.log", "")
        for name in ("one.state", "one.decisions"):
            os.makedirs(night.place.path(name), exist_ok=True)
        disk = stack.enter_context(SmallDisk(night.place.path(folder), 8 << 20))
        config = night.place.config(ZONES, [{"type": "file", "path": log, "format": "combined", "follow": True}], "one.json",
                                    listen={"http": f"127.0.0.1:{port}"},
                                    decisions={"path": night.place.path("one.decisions/blocked.jsonl")})
        weir = night.place.start("run", "--config", config, "--state", night.place.path("one.state"))
        stack.callback(weir.kill)
        load = night.place.start("generate", "--quiet", "--follow-rate", RATE, "--for", "24h", "--output", log)
        stack.callback(load.kill)
        night.prometheus.watch(RUN_JOB, [port])
        stack.callback(night.prometheus.watch, RUN_JOB, [])
        time.sleep(10)
        night.fault_s = time.time()
        disk.fill()
    return fill


def end_extra(night):
    """What a row had beside."""
    night.extra.close()


def forget_targets(night):
    """Prometheus's discovery finds nothing any more."""
    night.kept_targets = dict(night.prometheus.targets)
    for job in night.kept_targets:
        night.prometheus.watch(job, [])


def know_targets(night):
    """It finds them again."""
    for job, ports in night.kept_targets.items():
        night.prometheus.watch(job, ports)


def restart_often(night):
    """A process that ends again and again, as a service manager starts it anew."""
    for _ in range(5):
        night.file.weir.kill()
        night.subscribe(night.file)
        night.file.until_ready()
        time.sleep(5)  # two scrapes


def apply_absent_list(night):
    """A policy that names a list, too long to be copied into it, which is where the policy is written, not at the collector's."""
    path = night.place.write("list", "".join(f"user-{number}\n" for number in range(10_001)))
    night.collector.pause()
    night.roles.apply([{**ZONES[0], "exempt": [{"file": path}]}])
    os.unlink(path)
    night.collector.resume()


def apply_strict_zone(night):
    """A zone of which nothing is known, and in which few may pass."""
    night.roles.apply([*ZONES, {**ZONES[0], "name": "strict", "id": 2, "key": ["method"]}])


def pause_judging(night):
    """Topics that keep little, and no store: limiters wait for checkpoints after half of that."""
    keep_events(60_000)(night)
    each_limiter(lambda _, limiter: limiter.until(
        lambda: limiter.value("weir_topic_retention_seconds", topic=night.served.topic("events")) == 60, "knows it", 4 * PATIENCE_S))(night)
    night.part("stop", "mariadb")
    night.fault_s = time.time()


def log_late(night):
    """A log whose lines arrive two minutes after their time, of blocks that last longer than that."""
    night.roles.apply([{**ZONES[0], "block_for": "10m"}])
    night.stop_writing()
    night.write("--start", int(time.time()) - 120, "--rate", RATE)


def log_out_of_order(night):
    """A third of the lines come up to a minute after others of the same users."""
    night.stop_writing()
    night.write("--out-of-order", "0.3", "--late-by", "60s")


def log_in_time(night):
    """As before."""
    night.stop_writing()
    apply()(night)
    night.write()


def suspend_again_and_again(night):
    """A limiter does not run for longer than its session, in each of the rule's three windows."""
    for _ in range(4):
        night.limiters[0].pause()
        time.sleep(15)
        night.limiters[0].resume()
        time.sleep(38)


def write_beside(night):
    """A service beside logs in another form, to the same files."""
    night.beside = night.write_beside("--format", "json", log="beside.log", rate=30)


def end_beside(night):
    """It does not."""
    night.beside.stop()


def loop_of_links(night):
    """One of the logs is a link to itself."""
    os.symlink("loop.log", night.place.path("logs", "loop.log"))


def no_loop(night):
    """It is gone."""
    os.unlink(night.place.path("logs", "loop.log"))


def spill(night):
    """As many keys as the least memory finds with effort, all of them in use."""
    set_memory(night, "16MiB")
    night.burst(1_500_000, "--users", 1_500_000, "--zipf", 0, seed=7)
    night.stop_writing()
    night.write("--zipf", 0, rate=500, users=1_500_000, seed=7)


def no_spill(night):
    """As before."""
    night.stop_writing()
    set_memory(night, "512MiB")
    night.write()


def attack(night):
    """Few addresses make most of the requests, which was not so before."""
    night.stop_writing()
    night.write("--zipf", 0)
    time.sleep(130)  # the rule's hour, and the one before
    night.fault_s = time.time()
    night.beside = night.write_beside("--zipf", 0, log="attack.log", rate=400, users=20)


def stop_archiver(night):
    """It ends."""
    night.archiver.stop()


def start_archiver(night):
    """It goes on."""
    night.start(night.archiver)


def restore_other_backup(night):
    """Its rows of the store are those of another time, at which more had been counted than is on the topic now."""
    night.archiver.stop()
    night.kept_states = night.served.mariadb.query(
        "SELECT partition_id, next_offset, HEX(extra) FROM partition_state WHERE role = 2")
    ahead = (1 << 40).to_bytes(8, "big").hex()
    for number, _, extra in night.kept_states:
        extra = extra if isinstance(extra, str) else extra.decode()
        night.served.mariadb.query(f"UPDATE partition_state SET extra = UNHEX('{extra[:18]}{ahead}{extra[34:]}') "
                                   f"WHERE role = 2 AND partition_id = {int(number)}")
    night.fault_s = time.time()
    night.start(night.archiver)


def restore_own_backup(night):
    """The right ones."""
    night.archiver.stop()
    for number, offset, extra in night.kept_states:
        extra = extra if isinstance(extra, str) else extra.decode()
        night.served.mariadb.query(f"UPDATE partition_state SET extra = UNHEX('{extra}'), next_offset = {int(offset)} "
                                   f"WHERE role = 2 AND partition_id = {int(number)}")
    night.start(night.archiver)


def trim_unarchived(night):
    """Messages are deleted that no archiver has read."""
    night.archiver.stop()
    held = {int(number): int(offset) for number, offset in
            night.served.mariadb.query("SELECT partition_id, next_offset FROM partition_state WHERE role = 2")}

    def grown():
        ends = night.served.ends("judged")
        return len(held) == PARTITIONS and all(ends.get(number, 0) > offset for number, offset in held.items()) and ends
    ends = until(grown, "every partition has more", 2 * PATIENCE_S)
    night.served.kafka.trim(night.served.topic("judged"), ends)
    night.fault_s = time.time()
    night.start(night.archiver)


def keep_for_the_archive(milliseconds):
    """How long the topics that are archived keep their messages."""
    return all_of(*(setting(topic, retention_ms=milliseconds) for topic in ("judged", "decisions")))


def forget_archive(night):
    """The archiver is away for nearly as long as the topics keep what it has not read."""
    keep_for_the_archive(60_000)(night)
    night.archiver.stop()


WEEK_MS = 7 * 86400 * 1000

FAULTS = tuple(Fault(*row) for row in (
    # name, inject, repair, its alerts, words, what it costs, pages that may follow, the stage, seconds to the last
    # alert, seconds of health before
    # -- those of processes and of Prometheus itself --
    ("process that ends again and again", restart_often, nothing, "WeirRestarts", "", VERDICTS),
    ("Prometheus finds nothing", forget_targets, know_targets, "WeirAbsent", "", VERDICTS),
    ("targets scraped seldom", lambda night: night.prometheus.watch(SELDOM_JOB, [night.file.port]),
     lambda night: night.prometheus.watch(SELDOM_JOB, []), "WeirScrapeTooSlow/10", "", NOTHING),
    ("all limiters stopped", each_limiter(lambda _, limiter: limiter.stop()), each_limiter(lambda night, limiter: night.start(limiter)),
     ("WeirDown", "WeirPartitionsNotLive"), r"limiter-1 /readyz: none", VERDICTS),
    ("one machine's disk full", fill_machine("one.state"), end_extra, "WeirStateUnwritable", "", VERDICTS),
    ("one machine's disk of decisions full", fill_machine("one.decisions"), end_extra, "WeirDecisionsUnwritten", "", VERDICTS),
    # -- of the bus --
    ("broker stopped for half an hour", part("stop", "kafka"), part("start", "kafka"), ("WeirBusAway", "WeirArchiverBusAway/10"), BUS, VERDICTS,
     NO_LEADER),
    ("events too large for the brokers", setting("events", max_message_bytes=60), setting("events", max_message_bytes=4 << 20),
     ("WeirLowWater", "WeirProducerRestarts"), r"(?i)too large|size", VERDICTS, ("WeirSourceLag",), PLAIN, 120),
    ("decisions too large for the brokers", setting("decisions", max_message_bytes=60), setting("decisions", max_message_bytes=4 << 20),
     "WeirNotPublishing", r"(?i)too large|size", VERDICTS, (), PLAIN, 150),
    ("brokers throttle the limiters", quota("limiter", consumer_byte_rate=200), quota("limiter", consumer_byte_rate=None),
     "WeirLimiterLag", "", VERDICTS, ("WeirPartitionsNotLive",), PLAIN, 120),
    ("brokers throttle what a collector reads", throttle_source, let_source_go_on, "WeirSourceLag", "", VERDICTS),
    ("one gateway does not reach one broker", cut_gateway_off, let_gateway_hear, "WeirListBlind",
     r"subscribe-file.*(not been heard|refused|no broker)", VERDICTS, (), SEVERAL),
    ("no right to read decisions", forbid_reading("decisions"), allow_reading("decisions"), "WeirListStuck", "", VERDICTS, (), SECURED),
    ("foreign messages", write_foreign, nothing, ("WeirDeadLetters", "WeirArchiverMalformed", "WeirPolicyBadMessages"),
     r"skipped|not a frame|no frame", NOTHING),
    # -- of logs --
    ("logs of few lines in another format", log_little_otherwise, log_as_before, "WeirMostMalformed", "", VERDICTS, ("WeirFormatChanged",)),
    ("some lines in another format", write_beside, end_beside, ("WeirMalformed/10", "WeirDeadLettersDropped/10"), "", NOTHING,
     ("WeirFormatChanged",), PLAIN, 180),
    ("one log of several unreadable", loop_of_links, no_loop, "WeirSourceProblem/10", r"loop\.log.*symbolic", NOTHING),
    ("log emptied in place", cut_log, nothing, "WeirLostUnknown", r"access\.log", NOTHING),
    ("datagrams too fast", drop_datagrams, kept_sources, "WeirDropped", r"(?i)dropped", DATA),
    ("spool of pushed lines full", make_senders_wait, let_senders_go_on, ("WeirBusAway", "WeirSendersWait/10"), BUS, VERDICTS, NO_LEADER),
    ("log arrives late", log_late, log_in_time, ("WeirDecisionDelay/10", "WeirListDelay/10"), "", NOTHING, (), PLAIN, 150),
    ("lines out of order", log_out_of_order, write_again, "WeirLateShare/10", "", NOTHING, (), PLAIN, 180),
    ("collector's clock two hours ahead", lambda night: night.restart(night.collector, env=wrong_clock.environment(night.place)),
     lambda night: night.restart(night.collector), "WeirSenderClock/10", r"clock", NOTHING),
    # -- of limiters and policies --
    ("limiter suspended again and again", suspend_again_and_again, nothing, "WeirFenced/10", "", NOTHING, ("WeirDown",), PLAIN, 300),
    ("limiters with one address", advertise_one_address, ask_no_more, "WeirChecksUnavailable",
     r"another limiter says that it answers checks at", VERDICTS),
    ("keys that do not fit", spill, no_spill, ("WeirIndexLarge/10", "WeirSpill/10"), "", NOTHING, ("WeirLimiterLag", "WeirMemoryTooSmall", "WeirPaused"),
     PLAIN, 400),
    ("policy with a list that is not there", apply_absent_list, apply(), "WeirPolicyBehind/10", r"cannot use policy", NOTHING),
    ("policy that blocks nearly all", apply_strict_zone, apply(), "WeirPolicyBlocks", "", VERDICTS, (), PLAIN, None, LONG_S),
    ("attack", attack, all_of(end_beside, write_again), "WeirBlockShare/60", "", NOTHING, (), PLAIN, 120),
    # -- of the store and the archive --
    ("judging waits for the store", pause_judging, all_of(part("start", "mariadb"), keep_events(WEEK_MS)), "WeirPaused", STORE, VERDICTS, (), PLAIN, 90),
    ("store stopped for six minutes", part("stop", "mariadb"), part("start", "mariadb"),
     ("WeirStoreAway", "WeirCheckpointAge", "WeirArchiverNotStoring"), STORE, NOTHING, (), PLAIN, 420),
    ("brokers throttle the archiver", all_of(keep_for_the_archive(300_000), quota("archiver", consumer_byte_rate=200)),
     all_of(quota("archiver", consumer_byte_rate=None), keep_for_the_archive(WEEK_MS)), ("WeirArchiveLosing", "WeirArchiverLag/10"), "", DATA,
     (), PLAIN, 480),
    ("archiver away for as long as topics keep", forget_archive, all_of(start_archiver, keep_for_the_archive(WEEK_MS)),
     "WeirArchiveLosing/1000", "", DATA),
    ("archiver's rows of another time", restore_other_backup, restore_own_backup, "WeirArchiveNotGrowing/10", "", NOTHING, (), PLAIN, 180),
    ("judged deleted before it was archived", trim_unarchived, lambda night: night.recover(), "WeirArchiverStuck", r"archiver.*(deleted|gone)",
     NOTHING, (), PLAIN, 180),
    ("no right to read decisions in shadow mode", forbid_reading("decisions.shadow"), allow_reading("decisions.shadow"),
     "WeirArchiverShadowAway/10", r"cannot read the decisions of zones in shadow mode", NOTHING, (), SECURED, 120),
    # -- of gateways and certificates --
    ("more blocks than a gateway may hold", small_list, whole_list, "WeirListFull", r"--max", NOTHING),
    ("broker's certificate ends in five days", show_certificate(5), show_certificate(365), "WeirCertificateExpires/10", "", NOTHING,
     (*NO_LEADER, "WeirBusAway"), SECURED, 180),
))
# After these the log does not hold each line once, or lines are no lines of the format.
INEXACT = ("logs of few lines in another format", "some lines in another format", "log emptied in place", "datagrams too fast", "spool of pushed lines full",
           "log arrives late", "lines out of order", "attack", "policy that blocks nearly all", "foreign messages",
           "brokers throttle what a collector reads")
