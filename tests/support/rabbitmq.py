# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ for tests: a server of a test's own, and a client that publishes with confirmations."""

import socket
import struct

from support.own_server import OwnServer

from parts.ports import free_ports  # pylint: disable=wrong-import-order
from parts.process import together  # pylint: disable=wrong-import-order
from parts.rabbitmq import NameServer, RabbitMQ  # pylint: disable=wrong-import-order

_FRAME_BYTES = 131072


class OwnRabbit(OwnServer):
    """A server in a test's place, with its name server."""

    def __init__(self, place, more=""):
        self.directory = place.path()
        port, dist, epmd = free_ports(3)
        self.settings = {"rabbitmq": {"port": port, "dist": dist, "epmd": epmd, "more": more}}
        self.names, self.server = NameServer(self), RabbitMQ(self)
        self.port = port

    @property
    def url(self):
        """Its address."""
        return f"amqp://127.0.0.1:{self.port}"

    def __enter__(self):
        try:
            together([self.names.starting()])
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        together([self.names.ending(at_once=True)])


class RabbitError(Exception):
    """The server's own words."""


def _short(text):
    data = text.encode()
    return struct.pack(">B", len(data)) + data


def _table(values):
    body = b""
    for name, value in values.items():
        if isinstance(value, str):
            body += _short(name) + b"S" + struct.pack(">I", len(value.encode())) + value.encode()
        else:
            body += _short(name) + b"l" + struct.pack(">q", value)
    return struct.pack(">I", len(body)) + body


class Client:
    """One connection with one channel, on which all that is published is confirmed. OSError: it broke."""

    def __init__(self, port, user="guest", password="guest", vhost="/", timeout_s=30):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._stream = self._socket.makefile("rwb")
        self._waiting, self._published = set(), 0  # tags that are not confirmed; how many there were
        self._stream.write(b"AMQP\0\0\t\1")
        self._expect(10, 10)
        self._method(0, 10, 11, _table({}) + _short("PLAIN") + struct.pack(">I", len(user) + len(password) + 2) +
                     b"\0" + user.encode() + b"\0" + password.encode() + _short("en_US"))
        self._expect(10, 30)
        self._method(0, 10, 31, struct.pack(">HIH", 16, _FRAME_BYTES, 0))
        self._method(0, 10, 40, _short(vhost) + _short("") + b"\0")
        self._expect(10, 41)
        self._method(1, 20, 10, _short(""))
        self._expect(20, 11)
        self._method(1, 85, 10, b"\0")
        self._expect(85, 11)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection."""
        try:
            self._stream.close()
        except OSError:
            pass
        self._socket.close()

    def _frame(self, kind, channel, data):
        self._stream.write(struct.pack(">BHI", kind, channel, len(data)) + data + b"\xce")

    def _method(self, channel, group, number, data):
        self._frame(1, channel, struct.pack(">HH", group, number) + data)

    def _next(self):
        """The next method: (class, method, its arguments)."""
        self._stream.flush()
        while True:
            head = self._stream.read(7)
            if len(head) < 7:
                raise ConnectionResetError("RabbitMQ closed the connection")
            kind, _, size = struct.unpack(">BHI", head)
            data = self._stream.read(size + 1)
            if kind != 1:
                continue
            group, number = struct.unpack_from(">HH", data)
            if (group, number) in ((10, 50), (20, 40)):
                raise RabbitError(data[7:7 + data[6]].decode(errors="replace"))
            return group, number, data[4:-1]

    def _expect(self, group, number):
        while True:
            got = self._next()
            if got[:2] == (group, number):
                return got[2]
            self._take(got)

    def _take(self, got):
        if got[:2] == (60, 80):
            tag, multiple = struct.unpack_from(">QB", got[2])
            self._waiting -= {one for one in self._waiting if one <= tag} if multiple else {tag}
        elif got[:2] == (60, 120):
            raise RabbitError("a message was not taken")

    def declare(self, queue, kind="classic", **arguments):
        """Makes a durable queue: how many messages it has."""
        self._method(1, 50, 10, b"\0\0" + _short(queue) + b"\2" + _table({"x-queue-type": kind, **arguments}))
        return self._counted(self._expect(50, 11))

    def count(self, queue):
        """How many messages a queue has that nobody has taken."""
        self._method(1, 50, 10, b"\0\0" + _short(queue) + b"\1" + _table({}))
        return self._counted(self._expect(50, 11))

    @staticmethod
    def _counted(answer):
        return struct.unpack_from(">I", answer, 1 + answer[0])[0]

    def delete(self, queue):
        """Removes a queue."""
        self._method(1, 50, 40, b"\0\0" + _short(queue) + b"\0")
        self._expect(50, 41)

    def publish(self, messages, queue="logs", window=1000):
        """Publishes durable messages, and waits until all are confirmed."""
        for data in messages:
            self._method(1, 60, 40, b"\0\0" + _short("") + _short(queue) + b"\0")
            self._frame(2, 1, struct.pack(">HHQHB", 60, 0, len(data), 0x1000, 2))
            for at in range(0, len(data), _FRAME_BYTES - 8):
                self._frame(3, 1, data[at:at + _FRAME_BYTES - 8])
            self._published += 1
            self._waiting.add(self._published)
            while len(self._waiting) >= window:
                self._take(self._next())
        while self._waiting:
            self._take(self._next())
