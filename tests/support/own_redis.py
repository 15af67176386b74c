# SPDX-License-Identifier: Apache-2.0
"""A Redis of a test's own, that loses nothing it has acknowledged: to be killed and started again, on one port."""

import socket

from support.own_server import OwnServer
from support.place import free_port
from support.redis import Redis

from parts.programs import find  # pylint: disable=wrong-import-order
from parts.server import LOCAL, Server  # pylint: disable=wrong-import-order


class _Server(Server):
    def __init__(self, cluster, name, port, more):
        super().__init__(cluster, name)
        self.port, self.more = port, more

    def command(self):
        return [find("redis-server"), "--port", str(self.port), "--bind", LOCAL, "--save", "", "--appendonly", "yes",
                "--appendfsync", "always", "--dir", self.directory, "--daemonize", "no", "--shutdown-timeout", "0",
                "--repl-diskless-sync-delay", "0", *map(str, self.more)]

    def ready(self):
        """Whether it answers, if only that it wants a login."""
        try:
            with socket.create_connection((LOCAL, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


class OwnRedis(OwnServer):
    """One server; more: further words of its command."""

    def __init__(self, place, *more, name="redis"):
        self.directory, self.settings = place.path(), {}
        self.port = free_port()
        self.server = _Server(self, name, self.port, more)
        self.client = Redis(self.port)

    @property
    def url(self):
        """Its address."""
        return f"redis://127.0.0.1:{self.port}"

    def __exit__(self, *_):
        self.client.close()
        self.kill()

    def call(self, *words):
        """A command's answer."""
        return self.client.call(*words)

    def add(self, key, *entries):
        """Entries, each a dict of fields, or bytes that are the field `line`; sent together. Their ids."""
        words = [["XADD", key, "*", *(part for pair in _fields(entry) for part in pair)] for entry in entries]
        return self.client.together(words)


def _fields(entry):
    return entry.items() if isinstance(entry, dict) else {"line": entry}.items()
