# SPDX-License-Identifier: Apache-2.0
"""A Kafka broker in KRaft mode: broker and controller in one process, with a small heap.

Listeners, all on the loopback address: CLIENTS, the one that clients are given
(plain, or TLS with SASL); INTERNAL, among brokers and for the question whether
they are ready; CONTROLLER; and with --proxy-port BEHIND, which advertises the
port of somebody's proxy, so that a client that comes through the proxy is sent
nowhere else.
"""

import os
import socket
import struct

from parts import jars
from parts.process import running_command
from parts.programs import find
from parts.server import LOCAL, Server

_FORMAT_S = 120
MECHANISM = "SCRAM-SHA-256"
MESSAGE_MAX_BYTES = 8 * 1024 * 1024

_LOGGING = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %m (%c{1})%n
"""


class Broker(Server):
    """One broker of the cluster."""

    def __init__(self, cluster, number):
        super().__init__(cluster, f"broker-{number}")
        self.number = number
        self.settings = cluster.settings["brokers"][number - 1]
        self.class_options = None  # of Java, in place of the archive of its classes

    @property
    def port(self):
        """Where clients reach it."""
        return self.settings["clients"]

    def _properties(self):
        brokers = self.cluster.settings["brokers"]
        listeners = {"CLIENTS": self.settings["clients"], "INTERNAL": self.settings["internal"],
                     "CONTROLLER": self.settings["controller"]}
        advertised = {"CLIENTS": self.settings["clients"], "INTERNAL": self.settings["internal"]}
        if "proxy" in self.settings:
            listeners["BEHIND"], advertised["BEHIND"] = self.settings["behind"], self.settings["proxy"]
        tls = self.cluster.settings["tls"]
        protocols = {name: "SASL_SSL" if tls and name in ("CLIENTS", "BEHIND") else "PLAINTEXT" for name in listeners}
        voters = [f"{number}@{LOCAL}:{broker['controller']}" for number, broker in enumerate(brokers, 1)]
        copies = len(brokers)
        yield from {
            "process.roles": "broker,controller",
            "node.id": self.number,
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listeners": _addresses(listeners),
            "advertised.listeners": _addresses(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:{what}" for name, what in protocols.items()),
            "log.dirs": self.path("data"),
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": min(copies, 2),
            "transaction.state.log.num.partitions": 4,
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "message.max.bytes": MESSAGE_MAX_BYTES,
            "replica.fetch.max.bytes": MESSAGE_MAX_BYTES,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
            # A broker that was killed is let in again once its old session has run out.
            "broker.session.timeout.ms": 4000,
            "broker.heartbeat.interval.ms": 1000,
        }.items()
        if tls:  # rights may be taken from weir's user; INTERNAL is its administrator
            yield "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            yield "allow.everyone.if.no.acl.found", "true"
            yield "super.users", "User:ANONYMOUS"
        for listener, what in protocols.items():
            if what == "SASL_SSL":
                yield from self._secured(f"listener.name.{listener.lower()}.")

    def _secured(self, before):
        """The properties of a listener with TLS and SASL."""
        files = self.cluster.tls_files()
        yield before + "ssl.keystore.type", "PEM"
        yield before + "ssl.keystore.location", files["chain"]
        yield before + "ssl.truststore.type", "PEM"
        yield before + "ssl.truststore.location", files["ca"]
        yield before + "sasl.enabled.mechanisms", MECHANISM
        yield (before + MECHANISM.lower() + ".sasl.jaas.config",
               "org.apache.kafka.common.security.scram.ScramLoginModule required;")

    def configure(self):
        self.write("log4j.properties", _LOGGING)
        os.makedirs(self.path("tmp"), exist_ok=True)
        return self.write("server.properties", "".join(f"{name}={value}\n" for name, value in self._properties()))

    def making_data(self):
        command = self._java("-Xmx256m", "-XX:TieredStopAtLevel=1", *self._archive(), main="kafka.tools.StorageTool")
        command += ["format", f"--cluster-id={self.cluster.settings['cluster_id']}", "--config", self.configure()]
        if self.cluster.settings["tls"]:
            sasl = self.cluster.settings["sasl"]
            command += ["--add-scram", f"{MECHANISM}=[name={sasl['user']},password={sasl['password']}]"]
        yield from running_command(command, self.path("format.log"), _FORMAT_S, self.environment())

    def command(self):
        classes = self.class_options or self._archive()
        more = os.environ.get("WEIR_CLUSTER_JAVA", "").split()
        return self._java("-Xms256m", "-Xmx512m", *more, *classes, main="kafka.Kafka") + [self.path("server.properties")]

    @staticmethod
    def _archive():
        path = jars.archive()
        return [f"-XX:SharedArchiveFile={path}"] if path else []

    def _java(self, *options, main):
        # Nothing of it goes to /tmp, where what a killed process leaves would stay.
        return [find("java"), *options, "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-XX:+PerfDisableSharedMem",
                "-Xshare:auto", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={self.path('tmp')}",
                f"-Dlog4j.configuration=file:{self.path('log4j.properties')}",
                "-cp", os.path.join(jars.place(), "libs", "*"), main]

    def ready(self):
        """Whether it counts itself among the brokers that serve."""
        return self.number in brokers_at(self.settings["internal"])


def _addresses(listeners):
    return ",".join(f"{name}://{LOCAL}:{port}" for name, port in listeners.items())


def brokers_at(port):
    """The numbers of the brokers that serve, as the one on this port knows them; none if it does not answer.

    One request, Metadata in its version 1 without topics; its answer begins with the brokers."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection((LOCAL, port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as stream:
                answer = stream.read(struct.unpack(">i", stream.read(4))[0])
        return list(_broker_numbers(answer))
    except (OSError, struct.error):
        return []


def _broker_numbers(answer):
    """Behind the correlation id: a count, then number, host, port and rack of each."""
    count, at = struct.unpack_from(">i", answer, 4)[0], 8
    for _ in range(count):
        number, host = struct.unpack_from(">ih", answer, at)
        at += 6 + host + 4
        rack = struct.unpack_from(">h", answer, at)[0]
        at += 2 + max(rack, 0)
        yield number
