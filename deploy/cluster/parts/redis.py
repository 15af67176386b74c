# SPDX-License-Identifier: Apache-2.0
"""A Redis that keeps nothing: what it holds is rebuilt by whoever filled it."""

import socket

from parts.programs import find
from parts.server import LOCAL, Server


class Redis(Server):
    """The cluster's Redis."""

    def __init__(self, cluster):
        super().__init__(cluster, "redis")
        self.port = cluster.settings["redis"]["port"]

    def command(self):
        return [find("redis-server"), "--port", str(self.port), "--bind", LOCAL, "--save", "", "--appendonly", "no",
                "--dir", self.directory, "--daemonize", "no", "--databases", "64"]

    def ready(self):
        try:
            with socket.create_connection((LOCAL, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
