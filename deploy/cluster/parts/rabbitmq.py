# SPDX-License-Identifier: Apache-2.0
"""A RabbitMQ, and the name server that Erlang needs beside it: an epmd of its own, so that none runs on behind it."""

import glob
import os
import socket

from parts.programs import find
from parts.server import LOCAL, Server
from parts.words import Unavailable

_SERVERS = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # what Debian's wrapper of that name runs as another user


class NameServer(Server):
    """Erlang's epmd, in the foreground, on the loopback address alone."""

    stop_s = 0  # it refuses to end while nodes are registered

    def __init__(self, cluster, name="epmd"):
        super().__init__(cluster, name)
        self.port = cluster.settings["rabbitmq"]["epmd"]

    def command(self):
        beside = sorted(glob.glob("/usr/lib/erlang/erts-*/bin/epmd"))
        return [beside[-1] if beside else find("epmd"), "-address", LOCAL, "-port", str(self.port)]

    def ready(self):
        return _listens(self.port)


class RabbitMQ(Server):
    """One server. Further settings, in the words of rabbitmq.conf, may be added to it."""

    def __init__(self, cluster, name="rabbitmq"):
        super().__init__(cluster, name)
        self.settings = cluster.settings["rabbitmq"]
        self.port = self.settings["port"]

    def configure(self):
        os.makedirs(self.path("data"), exist_ok=True)
        self.write("rabbitmq.conf",
                   f"listeners.tcp.local = {LOCAL}:{self.port}\n"
                   f"vm_memory_high_watermark.relative = 0.6\ndisk_free_limit.absolute = 50MB\n"
                   f"{self.settings.get('more', '')}\n")
        self.write("enabled_plugins", "[].\n")

    def environment(self):
        """Nothing of it listens elsewhere, or writes elsewhere."""
        return {**super().environment(), "HOME": self.directory,
                "ERL_EPMD_ADDRESS": LOCAL, "ERL_EPMD_PORT": str(self.settings["epmd"]),
                "RABBITMQ_NODENAME": f"weir{self.port}@localhost", "RABBITMQ_DIST_PORT": str(self.settings["dist"]),
                "RABBITMQ_MNESIA_BASE": self.path("data"), "RABBITMQ_LOG_BASE": self.path("log"),
                "RABBITMQ_CONFIG_FILE": self.path("rabbitmq"), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
                "RUNNING_UNDER_SYSTEMD": "1",  # the process is the server itself, no script beside it
                "RABBITMQ_ENABLED_PLUGINS_FILE": self.path("enabled_plugins"),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none"}

    def command(self):
        if not os.access(_SERVERS, os.X_OK):
            raise Unavailable("there is no rabbitmq-server on this machine; deploy/packages cluster installs it")
        return [_SERVERS]

    def ready(self):
        """Whether it speaks AMQP: it answers a wrong greeting with its own."""
        try:
            with socket.create_connection((LOCAL, self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\0\0\0\0")
                return connection.recv(8) == b"AMQP\0\0\t\1"
        except OSError:
            return False


def _listens(port):
    try:
        with socket.create_connection((LOCAL, port), timeout=1):
            return True
    except OSError:
        return False
