#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runbook's commands, typed as they stand in deploy/RUNBOOK.md, on a cluster in the state that the entry describes.

One cluster for all. Each case brings a state about, types what stands under Type, one command after another, and what
stands under Over until it says that it is over. Placeholders come from one table; daemons are units of a systemd that is
this script, Kafka's scripts the classes that they start. A command that no case types fails, unless NOT_TYPED says why.

    WEIR_RUNBOOK_ONLY=gap,memory tests/integration/test_runbook.py     these cases alone
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, decisions, runbook, wrong_clock
from support.place import PATIENCE_S, ROOT, SANITIZED, free_port, until
from support.roles import Roles
from support.traffic import FORMAT, burst, line, sliding, zone

from parts import jars

PARTITIONS = 2
PAGE = os.path.join(ROOT, "deploy", "RUNBOOK.md")
DONE, FAILED, USAGE = 0, 1, 2

# The start of a command | why no case types it
NOT_TYPED = {
    "weir policy rollback --version ": "the case of policy-rollback types it without; a zone that armed itself takes days of lines",
    "journalctl ": "no systemd here; the daemons' logs are files of the test",
    "systemctl status ": "no systemd here",
    "mv /var/lib/weir/sources.json": "test_state_damage types what weir doctor says of each file of a state",
    "df ": "the disk is the test machine's own; tests/chaos fills one",
    "openssl s_client ": "the brokers of this cluster have no TLS; test_tls asks those that have",
    "date --utc": "it is no clock of weir's",
    "timedatectl ": "no test changes the machine's clock",
    "chronyc ": "no test changes the machine's clock",
    "systemctl restart chrony": "no test changes the machine's clock",
    "sysctl ": "the kernel's, and the same for every process",
    "vmstat ": "the machine's, not weir's",
    "dmesg ": "the machine's, and not for every user",
    "kafka-acls.sh ": "these brokers have no authorizer",
    "nft ": "a table of the kernel's: test_subscribe_nft has a network of its own for it",
    "echo 'show map": "test_subscribe_haproxy asks a HAProxy by its socket",
}

_KAFKA = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-configs.sh": "kafka.admin.ConfigCommand",
          "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"}


def zones(rate=3):
    """Users are blocked for a day, so that a block outlives the test."""
    return [zone("site", [sliding(rate, "1h")], id=1, block_for="1d")]


def now_ms():
    """The time of the wall clock."""
    return int(1000 * time.time())


class Night:
    """The cluster, its daemons, and the page."""

    def __init__(self, place, served, roles):
        self.place, self.served, self.roles = place, served, roles
        with open(PAGE, encoding="utf-8") as file:
            self.text = file.read()
        self.entries = {anchor: dict(runbook.parts(entry)) for anchor, entry in runbook.entries(self.text).items()}
        self.typed = set()
        self.log, self.directory = place.path("logs", "access.log"), place.path("logs")
        place.write("logs/access.log", line(now_ms(), "first"))
        self.sources = [{"type": "file", "path": place.path("logs", "access*.log"), "format": FORMAT, "follow": True}]
        self.limiter = self.collector = self.archiver = self.subscriber = None
        self._written = 1
        self._programs()
        self.filled = {}

    def start(self):
        """Everything runs and is well."""
        self.file = self.place.write("weir.json", json.dumps(self.roles.sections(zones=zones(), sources=self.sources)))
        self.roles.apply(zones())
        self.limiter = self.roles.limiter()
        self.collector = self.roles.collector(self.sources)
        self.archiver = self.roles.archiver()
        self.start_subscriber()
        for role in (self.limiter, self.collector, self.archiver):
            role.until_ready()
        self.subscriber.until_ready()
        self.fill()

    def start_subscriber(self):
        """The gateway is Redis."""
        self.subscriber = decisions.start(self.place, self.file, self.served.redis_url)

    def fill(self):
        """The table of placeholders."""
        self.filled = {
            "FILE": self.file, "BROKER": self.served.brokers, "LOG": self.log, "DIRECTORY": self.directory,
            "AGAIN": self.place.path("logs", "access-again.log"), "ZONE": "site", "REDIS": self.served.redis_url,
            "LIMITER": f"127.0.0.1:{self.limiter.port}", "COLLECTOR": f"127.0.0.1:{self.collector.port}",
            "ARCHIVER": f"127.0.0.1:{self.archiver.port}", "SUBSCRIBER": f"127.0.0.1:{self.subscriber.port}",
            "NAME": "op", "-u weir": "-u nobody", "/var/lib/weir/weir-collector": self.collector.state,
            "/var/lib/weir/gateways/nginx.map": self.place.path("nginx.map")}

    def _programs(self):
        """Kafka's scripts, the client of the store as root, and weir's programs, in one directory of PATH."""
        directory = self.place.path("bin")
        os.makedirs(directory)
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:+PerfDisableSharedMem",
                *([f"-XX:SharedArchiveFile={jars.archive()}", "-Xshare:auto"] if jars.archive() else []),
                f"-Dlog4j.configuration=file:{self.served.directory}/broker-1/log4j.properties",
                "-cp", os.path.join(jars.place(), "libs", "*")]
        self._script("mariadb", ["/usr/bin/mariadb", "--no-defaults", "--socket", self.served.mariadb_socket, "--user",
                                 "root", self.served.database])
        for name, main in _KAFKA.items():
            self._script(name, [*java, main])
        self._path = f"{directory}:{os.path.dirname(self.place.weir)}:{os.environ['PATH']}"

    def _script(self, name, command):
        path = self.place.write(f"bin/{name}", f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        os.chmod(path, 0o755)

    # ---- traffic ----

    def write(self, text):
        """Appends to the log."""
        self._written += text.count("\n")
        self.place.append("logs/access.log", text)

    def block(self, user):
        """A user exceeds the limit."""
        self.write(burst(user, 5, start_ms=now_ms()))

    def until_blocked(self, user):
        """Waits until the gateway has him. A subscriber that failed is started again, as its unit does."""
        def blocked():
            if self.subscriber.weir.code() == FAILED:
                self._systemctl("restart", "weir-subscribe@NAME")
            return self.in_redis(user)
        until(blocked, f"{user} is blocked at the gateway", 2 * PATIENCE_S, self.limiter.run)

    def in_redis(self, user):
        """Whether the gateway's list has a user."""
        return self.served.redis.call("EXISTS", f"weir:site:{user}") == 1

    def until_works(self, user):
        """Somebody new is blocked: all of it works."""
        self.block(user)
        self.until_blocked(user)

    def until_read(self):
        """Waits until the collector has read its log."""
        self.collector.until(lambda: self.collector.value("weir_source_lag_bytes") == 0, "has read its log")

    def until_stored(self):
        """Waits until the limiter's checkpoints hold everything."""
        self.limiter.until(lambda: self.served.stored() == self.served.ends(), "has stored everything")

    # ---- typing ----

    def commands(self, anchor, part="Type"):
        """What the page says."""
        return runbook.commands(self.entries[anchor][part])

    def fill_in(self, command):
        """A command with its placeholders filled in."""
        words = sorted(self.filled, key=len, reverse=True)
        pattern = "|".join(re.escape(word) if word[0] in "/-" else rf"(?<![\w-]){word}(?![\w-])" for word in words)
        return re.sub(pattern, lambda found: self.filled[found.group()], command)

    def type_one(self, command, codes=(DONE,)):
        """Types a command of the page: what it wrote."""
        assert command in self.text, f"the page has no {command}"
        self.typed.add(command)
        if command.startswith("systemctl "):
            self._systemctl(*shlex.split(command)[1:])
            return ""
        done = subprocess.run(["bash", "-o", "pipefail", "-c", self.fill_in(command)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * PATIENCE_S, check=False,
                              env={**os.environ, "PATH": self._path}, cwd=self.place.directory)
        said = done.stdout.decode(errors="replace")
        assert codes is None or done.returncode in codes, \
            f"{self.fill_in(command)} exited with status {done.returncode}: {said[-2000:]}"
        return said

    def type(self, anchor, codes=None, part="Type"):
        """Types an entry's commands, but those of NOT_TYPED: {command: what it wrote}.

        codes: {the start of a command: the exit codes that are good}, where it is not 0 alone."""
        wrote = {}
        for command in self.commands(anchor, part):
            if not any(command.startswith(start) for start in NOT_TYPED):
                good = next((these for start, these in (codes or {}).items() if command.startswith(start)), (DONE,))
                wrote[command] = self.type_one(command, good)
        return wrote

    def doctor(self, anchor):
        """`weir doctor`, which stands first on the page, names the entry."""
        (command,) = runbook.commands(self.text.split("\n## ")[1])
        said = self.type_one(command, (FAILED,))
        assert f"(runbook: {anchor})" in said, said

    def over(self, anchor, seen=None, patience_s=2 * PATIENCE_S):
        """Types what stands under Over until each command ends with 0, and seen(what they wrote) is true."""
        end = time.monotonic() + patience_s
        while True:
            try:
                wrote = self.type(anchor, part="Over")
                if seen is None or seen("".join(wrote.values())):
                    return
                why = f"{anchor} is not over: {wrote}"
            except AssertionError as not_yet:
                why = str(not_yet)
            assert time.monotonic() < end, why
            time.sleep(0.3)

    def not_over(self, anchor):
        """What stands under Over says, while the trouble lasts, that it does."""
        try:
            wrote = self.type(anchor, part="Over")
        except AssertionError:
            return
        raise AssertionError(f"{anchor}: Over says yes while it lasts: {wrote}")

    def _systemctl(self, action, unit):
        """A systemd that knows the daemons, and the servers that they need."""
        if unit in ("kafka", "mariadb"):
            self.served.part(action, unit)
        elif unit.startswith("weir-subscribe"):
            if action == "restart":
                self.subscriber.weir.kill()
                self.start_subscriber()
                self.fill()
        else:
            role = getattr(self, unit.removeprefix("weir-"))
            if action in ("stop", "restart") and role.run.code() is None:
                role.stop()
            if role.run.code() is not None and action in ("start", "restart"):
                role.start().until_up()

    def rewrite(self, role, change):
        """An operator's hand in a daemon's configuration."""
        with open(role.config, encoding="utf-8") as file:
            sections = json.load(file)
        change(sections)
        with open(role.config, "w", encoding="utf-8") as file:
            json.dump(sections, file)


# ---- cases: those that break nothing first ----

def user_blocked(night):
    night.filled["KEY"] = "ann"
    night.block("ann")
    night.until_blocked("ann")
    night.until_stored()
    wrote = night.type("user-blocked")
    assert "ann" in wrote["weir list --key KEY --config FILE"]
    night.over("user-blocked", lambda said: "nobody" in said or "ann" not in said)
    until(lambda: not night.in_redis("ann"), "the gateway has forgotten him")


def gateway_not_blocking(night):
    night.filled["KEY"] = "bob"
    night.subscriber.weir.kill()
    night.block("bob")
    until(lambda: b"bob" in night.roles.command("list", "--key", "bob").out(), "he is decided")
    night.place.good("subscribe", "--config", night.file, "--to", f"nginx-map:{night.place.path('nginx.map')}", "--once")
    night.place.append("nginx.map", '"KEY" "another";\n')
    wrote = night.type("gateway-not-blocking", {"curl ": (7,)})
    assert "bob" in wrote["weir list --key KEY --config FILE"]
    night.filled["KEY"] = "bob"
    night.over("gateway-not-blocking", lambda said: '"bob"' in said.replace("\\", ""))


def policy_rollback(night):
    night.filled["KEY"] = "eve"
    night.write(burst("eve", 2, start_ms=now_ms()))
    night.roles.apply(zones(rate=1))
    night.write(burst("eve", 2, start_ms=now_ms()))
    night.until_blocked("eve")
    wrote = night.type("policy-rollback")
    assert "rate" in wrote["weir policy history --config FILE"], wrote
    assert night.served.mariadb.one("SELECT max(version) FROM policy_version") == 3
    night.over("policy-rollback", lambda said: "eve" not in said and '3' in said)
    until(lambda: not night.in_redis("eve"), "the gateway lets her in")


def limiter_lag(night):
    night.type("limiter-lag")
    night.over("limiter-lag")


def memory(night):
    assert night.limiter.value("weir_limiter_state_bytes") > 0
    night.rewrite(night.limiter, lambda sections: sections["limiter"].update(memory="128MiB"))
    night.type("memory")
    night.over("memory")


def clock(night):
    """Messages show the brokers' clock. Where a process can be given a wrong one, the limiter has it first."""
    def known():
        night.write(line(now_ms(), "first"))
        return "\nweir_bus_clock_skew_seconds " in (night.limiter.page("/metrics") or (0, ""))[1]
    if not SANITIZED:
        night.limiter.stop()
        night.limiter.start(env=wrong_clock.environment(night.place))
        night.limiter.until(lambda: known() and night.limiter.value("weir_bus_clock_skew_seconds") > 7000, "has a wrong clock")
        night.not_over("clock")
        night.limiter.stop()
        night.limiter.start().until_ready()
    night.limiter.until(known, "knows how the clocks differ")
    night.type("clock")
    night.over("clock")


def checks_unavailable(night):
    night.filled["KEY"], night.filled["CHECKS"] = "nobody", f"127.0.0.1:{free_port()}"
    night.limiter.stop()
    night.rewrite(night.limiter, lambda sections: sections["listen"].update(resp=night.filled["CHECKS"]))
    night.limiter.start().until_ready()
    night.limiter.until(lambda: night.limiter.value("weir_limiter_partitions", state="live") == PARTITIONS, "has its partitions")
    wrote = night.type("checks-unavailable")
    assert night.filled["CHECKS"] in wrote["redis-cli -u redis://CHECKS CLUSTER NODES"], wrote
    night.over("checks-unavailable")


def process_suspended(night):
    night.limiter.pause()
    wrote = night.type("process-suspended")
    stopped = [each.split()[:2] for each in wrote["ps -eo pid,stat,pcpu,rss,args | grep '[w]eir-'"].splitlines()]
    assert any(pid == str(night.limiter.run.pid) and "T" in stat for pid, stat in stopped), stopped
    night.limiter.resume()
    night.over("process-suspended")


def lines_lost(night):
    """A log is truncated before all of it was read."""
    lines = night.collector.value("weir_collector_lines_total")
    log = night.place.write("logs/access-lost.log", line(now_ms(), "read"))
    night.collector.until(lambda: night.collector.value("weir_collector_lines_total") > lines, "reads it")
    night.collector.pause()
    night.place.append("logs/access-lost.log", line(now_ms(), "unread"))
    os.truncate(log, 0)
    night.collector.resume()
    night.collector.until_says("is lost, if anything was")
    assert "weir_source_lost_bytes_total{" in "".join(night.type("lines-lost").values())
    night.over("lines-lost")


def senders_wait(night):
    """The spool of a source is full, as the brokers take nothing from it."""
    port = free_port()
    before, address = night.collector, night.filled["COLLECTOR"]
    pushed = night.roles.collector([{"type": "http", "name": "edge", "listen": f"127.0.0.1:{port}", "spool": "16MiB", "max_body": "4MiB",
                                     "format": FORMAT}], name="pushed")
    pushed.until_ready()
    night.collector = pushed
    night.filled.update(COLLECTOR=f"127.0.0.1:{pushed.port}")
    lines = (line(now_ms(), "pushed").rstrip("\n") + " " * 1000 + "\n").encode() * 3000

    def push():
        request = urllib.request.Request(f"http://127.0.0.1:{port}/ingest", lines)
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE_S) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code

    night.served.part("stop", "kafka")
    until(lambda: push() == 503, "its senders wait", 2 * PATIENCE_S, pushed.run)
    pushed.until_says("(runbook: senders-wait)")
    assert "weir_source_senders_wait_seconds{" in "".join(night.type("senders-wait").values())
    night.served.part("start", "kafka")
    until(lambda: push() == 200, "they wait no longer", 2 * PATIENCE_S, pushed.run)
    night.over("senders-wait")
    assert pushed.stop() == DONE
    night.collector = before
    night.filled.update(COLLECTOR=address)


def foreign_messages(night):
    night.served.kafka.produce("weir.events", [(None, b"no frame", 0)])
    night.limiter.until(lambda: night.limiter.value("weir_limiter_dead_letters_total") == 1, "finds it")
    until(lambda: night.served.kafka.count("weir.deadletter") > 0, "it is kept")
    wrote = "".join(night.type("foreign-messages").values())
    assert "weir.events" in wrote, wrote
    night.over("foreign-messages", lambda said: " 1" in said)


def format_changed(night):
    night.until_read()
    begins = os.path.getsize(night.log)
    other = "".join(f"time={now_ms()} user=zoe path=/{number}\n" for number in range(1200))
    night.place.append("logs/access.log", other)
    night.collector.until(lambda: night.collector.value("weir_collector_malformed_total") == 1200, "finds them")
    night.collector.until(lambda: night.collector.value("weir_source_format_changed") == 1, "says so")
    night.not_over("format-changed")
    until(lambda: night.served.kafka.count("weir.deadletter") >= 100, "they are kept")
    night.rewrite(night.collector, lambda sections: sections["sources"][0].update(format={**FORMAT, "type": "logfmt"}))
    night.filled.update(BEGIN=str(begins + 1), COUNT=str(len(other)))
    wrote = night.type("format-changed")
    first = next(said for command, said in wrote.items() if "sort -n" in command)
    assert int(first) == begins + other.index("\n") + 1, (first, begins)
    with open(night.filled["AGAIN"], encoding="utf-8") as file:
        assert file.read() == other
    night.over("format-changed")
    night.until_blocked("zoe")
    night.rewrite(night.collector, lambda sections: sections["sources"][0].update(format=FORMAT))
    night.collector.stop()
    night.collector.start().until_ready()
    night.write("".join(burst(f"v{number}", 1, start_ms=now_ms()) for number in range(1200)))  # for doctor: well again


def source_unreadable(night):
    if os.geteuid() != 0:
        print("a file that a collector may not read needs root: these commands are not typed")
        night.typed.update(night.commands("source-unreadable"))
        return
    os.makedirs(night.place.path("own"), mode=0o700)
    log = night.place.write("own/other.log", line(now_ms(), "who"))
    os.chown(log, 0, 65534)
    os.chown(night.place.path("own"), 0, 65534)
    os.chmod(log, 0o640)
    os.chmod(night.place.directory, 0o755)
    before, port, log_before = night.collector, night.filled["COLLECTOR"], night.filled["LOG"]
    nobody = night.roles.collector([{**night.sources[0], "path": log}], name="nobody", user="nobody")
    nobody.until_up()
    until(lambda: nobody.page("/readyz")[0] == 503, "it cannot read it", 2 * PATIENCE_S, nobody.run)
    night.collector = nobody
    night.filled.update(COLLECTOR=f"127.0.0.1:{nobody.port}", LOG=log, DIRECTORY=os.path.dirname(log))
    night.type("source-unreadable", {"runuser": (FAILED,)})
    night.over("source-unreadable")
    assert nobody.stop() == DONE
    night.collector = before
    night.filled.update(COLLECTOR=port, LOG=log_before)


def duplicate_collector(night):
    twin = night.roles.collector(night.sources, name="twin")
    twin.until_up().stop()  # ready it need not be: it has read lines of another format
    shutil.copy(os.path.join(night.collector.state, "sources.json"), os.path.join(twin.state, "sources.json"))
    twin.start().until_up()
    before = night.limiter.value("weir_limiter_repeated_events_total")
    night.block("twins")
    night.limiter.until(lambda: night.limiter.value("weir_limiter_repeated_events_total") > before, "drops the second ones")
    one, state = night.collector, night.filled["/var/lib/weir/weir-collector"]
    night.collector, night.filled["/var/lib/weir/weir-collector"] = twin, twin.state
    night.rewrite(twin, lambda sections: sections["sources"][0].update(start="end"))
    same = night.type("duplicate-collector")
    night.over("duplicate-collector")
    ids = []
    for role in (one, twin):
        with open(os.path.join(role.state, "sources.json"), encoding="utf-8") as file:
            ids.append(json.load(file)["collector"])
    assert ids[0] != ids[1] and ids[0] in "".join(same.values()), (ids, same)
    assert twin.stop() == DONE
    night.collector, night.filled["/var/lib/weir/weir-collector"] = one, state


def limiter_down(night):
    """Its group waits for who was killed, for as long as a session lasts."""
    night.limiter.kill()
    for anchor in ("nothing-judged", "process-down"):
        night.not_over(anchor)
    night.type("nothing-judged", {"curl ": (7,), "weir doctor": None})
    night.over("nothing-judged")
    night.type("process-down")
    night.over("process-down")


def archive_behind(night):
    night.archiver.stop()
    night.not_over("archive-behind")
    night.until_works("archived")
    night.type("archive-behind", {"curl ": (7, 1, 2)})
    night.over("archive-behind")


# ---- the store ----

def store_read_only(night):
    night.served.mariadb_root.query("SET GLOBAL read_only = ON")
    night.block("stored")
    night.limiter.until(lambda: "read-only" in night.limiter.run.said(), "says so")
    night.doctor("store-read-only")
    night.not_over("store-read-only")
    night.type("store-read-only")
    night.over("store-read-only")
    night.until_stored()


def store_locked(night):
    with night.served.mariadb.connect(autocommit=False) as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM partition_state WHERE role = 1 AND partition_id = 0 FOR UPDATE")
        for user in range(4 * PARTITIONS):  # of each partition there is something to store
            night.block(f"locked-{user}")
        night.limiter.until(lambda: night.limiter.value("weir_store_up") == 0, "waits for the row")
        night.not_over("store-locked")
        find, status, end = night.commands("store-locked")
        found = night.type_one(find)
        night.type_one(status)
        night.filled["ID"] = found.splitlines()[1].split()[0]
        assert int(night.filled["ID"]) == holder.thread_id(), found
        night.type_one(end)
        night.over("store-locked")


def store_away(night):
    night.served.part("stop", "mariadb")
    night.block("away")
    night.type("store-away", {"mariadb ": (DONE, FAILED), "weir-limiter": (DONE, FAILED)})
    night.over("store-away")
    night.until_stored()


def store_failed_over(night):
    night.type("store-failed-over")
    night.over("store-failed-over")


def credentials(night):
    password = night.place.path("store-password")
    night.served.mariadb_root.query("ALTER USER weir@'%' IDENTIFIED BY 'another'")
    night.limiter.stop()
    night.limiter.start()
    until(lambda: night.limiter.run.code() == FAILED, "it does not start", 4 * PATIENCE_S)
    night.place.write("store-password", "another\n")
    night.type("credentials")
    night.over("credentials")
    assert password in night.roles.sections()["store"]["password"].values()
    night.served.mariadb_root.query(f"ALTER USER weir@'%' IDENTIFIED BY '{night.password}'")
    night.place.write("store-password", night.password + "\n")


# ---- topics ----

def retention(night):
    night.served.kafka.change_settings("weir.events", retention_ms=600000)
    check, = night.commands("retention", "Over")
    assert "less than" in night.type_one(check, (DONE, USAGE))
    wrote = "".join(night.type("retention").values())
    assert "retention.ms=600000" in wrote, wrote
    night.over("retention", lambda said: "less than" not in said)


def partitions_changed(night):
    good = night.file
    with open(good, encoding="utf-8") as file:
        sections = json.load(file)
    sections["bus"]["partitions"] = PARTITIONS + 1
    night.filled["FILE"] = night.place.write("other.json", json.dumps(sections))
    wrote = night.type("partitions-changed", {"weir-limiter": (USAGE,)})
    assert f"PartitionCount: {PARTITIONS}" in "".join(wrote.values()), wrote
    night.filled["FILE"] = good
    night.over("partitions-changed")


def prefix_changed(night):
    good = night.file
    with open(good, encoding="utf-8") as file:
        sections = json.load(file)
    sections["bus"]["prefix"] = "other"
    night.filled["FILE"] = night.place.write("other.json", json.dumps(sections))
    wrote = "".join(night.type("prefix-changed", {"weir-limiter": (USAGE,)}).values())
    assert "weir\n" in wrote and 'whose "bus.prefix" is "weir"' in wrote, wrote
    night.filled["FILE"] = good
    night.over("prefix-changed")


def gaps(night):
    """Of limiters and of the archive at once. They look again after half a minute, as topic_deleted has it, or once restarted."""
    night.archiver.stop()
    night.until_works("unarchived")
    night.until_stored()
    night.limiter.stop()
    before = night.served.ends()
    night.block("skipped")
    until(lambda: night.served.ends() != before, "the collector has sent it")
    night.served.kafka.trim("weir.events", night.served.ends())
    night.served.kafka.trim("weir.judged", night.served.ends("judged"))
    for role in (night.limiter, night.archiver):
        role.start()
        role.until(lambda role=role: (role.page("/healthz") or (0,))[0] == 503, "stands still")
    night.doctor("gap")
    for anchor in ("gap", "archive-stuck"):
        night.not_over(anchor)
    night.write(line(now_ms(), "waits"))
    night.limiter.until(lambda: night.limiter.value("weir_limiter_lag_seconds") > 5, "is late")
    for anchor in ("limiter-lag", "memory", "is-it-over"):
        night.not_over(anchor)
    see, accept = night.commands("gap")
    night.type_one(see, (USAGE,))
    night.type_one(accept)
    night.type("archive-stuck")
    night.type("what-may-be-restarted")
    night.over("what-may-be-restarted")
    night.over("gap")
    night.over("archive-stuck")
    night.until_works("behind-the-gap")


def store_limits(night):
    """A server that takes too little at once, which a new connection learns."""
    packet = night.served.mariadb_root.one("SELECT @@GLOBAL.max_allowed_packet")
    night.served.mariadb_root.query("SET GLOBAL max_allowed_packet = 1024")
    night.doctor("store-limits")
    night.not_over("store-limits")
    night.type("store-limits")
    night.over("store-limits")
    night.served.mariadb_root.query(f"SET GLOBAL max_allowed_packet = {packet}")


def store_tables(night):
    """A table under another name is one that is missing; renamed, it is restored."""
    night.until_stored()
    rename = lambda *names: night.served.mariadb_root.query("RENAME TABLE " + " TO ".join(f"{night.served.database}.{name}" for name in names))
    rename("note", "note_away")
    night.doctor("store-tables")
    night.not_over("store-tables")
    rename("note_away", "note")
    night.type("store-tables")
    night.over("store-tables")
    night.until_works("restored")


def state_damaged(night):
    """One blob of the store, as a limiter starts. Another segment's are read."""
    night.until_works("kept")
    night.until_stored()
    night.limiter.stop()
    night.served.mariadb.query("UPDATE segment_state SET bytes = CONCAT('xx', bytes) LIMIT 1")
    night.limiter.start()
    night.limiter.until(lambda: (night.limiter.page("/healthz") or (0,))[0] == 503, "stands still")
    night.limiter.until(lambda: "state-damaged" in night.type_one("weir doctor --config FILE", None), "the store says why")
    night.doctor("state-damaged")
    for anchor in ("state-damaged", "partition-stopped"):
        night.not_over(anchor)
    see, drop = night.commands("state-damaged")
    night.type_one(see, (USAGE,))
    night.type_one(drop)
    night.over("state-damaged")
    night.over("partition-stopped")
    night.until_works("undamaged")


def topic_recreated(night):
    """While no limiter runs."""
    night.until_stored()
    night.limiter.stop()
    night.served.kafka.delete(["weir.events"])
    night.roles.apply(zones())
    see, accept = night.commands("topic-recreated")
    night.type_one(see, (USAGE,))
    night.type_one(accept)
    night.limiter.start()
    night.over("topic-recreated")
    night.until_works("after-recreation")


def topic_deleted(night):
    """With everything running. The subscriber goes on by itself. Who is parked looks again after half a minute; what does not
    need him is typed meanwhile."""
    night.served.kafka.delete(["weir.events", "weir.decisions"])
    night.doctor("topic-deleted")
    night.not_over("topic-deleted")
    night.type("topic-deleted")
    retention(night)
    partitions_changed(night)
    prefix_changed(night)
    night.over("topic-deleted")
    night.until_works("after-deletion")
    before = "after-recreation"
    assert night.in_redis(before) and before.encode() not in night.roles.command("list").out()


# ---- the broker ----

def broker_outage(night):
    """To weir it is the same whether the broker's disk is full."""
    night.served.part("stop", "kafka")
    night.block("late")
    night.type("broker-disk-full")
    night.type("broker-away")
    night.over("broker-disk-full")
    night.over("broker-away")
    night.until_blocked("late")
    night.until_works("after-outage")


def is_it_over(night):
    night.type("is-it-over")
    night.over("is-it-over")


CASES = (user_blocked, gateway_not_blocking, policy_rollback, limiter_lag, memory, clock, checks_unavailable, process_suspended, lines_lost,
         foreign_messages, format_changed, source_unreadable, duplicate_collector, limiter_down, archive_behind,
         store_read_only, store_locked, store_away, store_failed_over, credentials, store_limits, store_tables, state_damaged, gaps, topic_recreated, topic_deleted,
         senders_wait, broker_outage, is_it_over)


def require_all_typed(night):
    """Every command of the page was typed, or NOT_TYPED says why not; and that names nothing else."""
    printed = {command for entry in night.entries.values() for part in entry.values() for command in runbook.commands(part)}
    left = {command for command in printed - night.typed if not any(command.startswith(one) for one in NOT_TYPED)}
    assert not left, f"no case types {sorted(left)}"
    unused = {one for one in NOT_TYPED if not any(command.startswith(one) for command in printed)}
    assert not unused, f"the page has none of {sorted(unused)}"


def test_the_page_is_typed(place):
    """Case after case on one cluster."""
    only = [name for name in os.environ.get("WEIR_RUNBOOK_ONLY", "").replace("-", "_").split(",") if name]
    with cluster.own(parent=place.directory, prefix="weir", database="weir") as one:
        old = one.sections()["store"]["password"]
        secret = place.write("store-password", old + "\n")
        with Roles(place, one, zones(), bus={"partitions": PARTITIONS, "kafka": {**one.kafka_properties, "session.timeout.ms": 6000}},
                   store={"password": {"file": secret}}, archiver={"enabled": True, "interval": "100ms"},
                   limiter={"checkpoint_interval": "200ms", "memory": "64MiB"}) as roles:
            night = Night(place, one, roles)
            night.password = old
            night.start()
            for case in CASES:
                if not only or case.__name__ in only:
                    began = time.monotonic()
                    case(night)
                    print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
            if not only:
                require_all_typed(night)


if __name__ == "__main__":
    cases.main(globals())
