# SPDX-License-Identifier: Apache-2.0
"""NATS for tests: a server of a test's own, and a client of JetStream that waits for each acknowledgement it needs."""

import json
import os
import socket
import ssl

from support.own_server import OwnServer
from support.place import free_port

from parts.nats import Nats  # pylint: disable=wrong-import-order


class OwnNats(OwnServer):
    """A server in a test's place."""

    def __init__(self, place, more="", name="nats"):
        self.directory = place.path()
        self.settings = {"nats": {"port": free_port(), "more": more}}
        self.server = Nats(self, name)
        self.port = self.server.port

    @property
    def url(self):
        """Its address."""
        return f"nats://127.0.0.1:{self.port}"


class NatsError(Exception):
    """The server's own words."""


class Client:
    """One connection. OSError: it broke."""

    def __init__(self, port, ca=None, timeout_s=30, **login):
        self._connection = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._stream = self._connection.makefile("rwb")
        self._stream.readline()  # INFO
        if ca:
            self._connection = ssl.create_default_context(cafile=ca).wrap_socket(self._connection,
                                                                                 server_hostname="127.0.0.1")
            self._stream = self._connection.makefile("rwb")
        self._inbox, self._number = f"_INBOX.{os.urandom(8).hex()}", 0
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, **login}
        self._stream.write(f"CONNECT {json.dumps(options)}\r\nSUB {self._inbox}.* 1\r\nPING\r\n".encode())
        self._stream.flush()
        while not self._line().startswith(b"PONG"):
            pass

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
        self._connection.close()

    def _line(self):
        line = self._stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("NATS closed the connection")
        if line.startswith(b"-ERR"):
            raise NatsError(line.decode(errors="replace").strip())
        if line.startswith(b"PING"):
            self._stream.write(b"PONG\r\n")
            self._stream.flush()
        return line

    def _answer(self):
        """The next message: (subject, bytes)."""
        while True:
            words = self._line().split()
            if words[0] not in (b"MSG", b"HMSG"):
                continue
            data = self._stream.read(int(words[-1]) + 2)[:-2]
            return words[1].decode(), data[int(words[-2]):] if words[0] == b"HMSG" else data

    def _send(self, subject, data):
        self._number += 1
        reply = f"{self._inbox}.{self._number}"
        self._stream.write(b"PUB %s %s %d\r\n" % (subject.encode(), reply.encode(), len(data)) + data + b"\r\n")
        return reply

    def ask(self, subject, request=None):
        """Asks JetStream's API: its answer."""
        reply = self._send(f"$JS.API.{subject}", json.dumps(request).encode() if request is not None else b"")
        self._stream.flush()
        while True:
            to, data = self._answer()
            if to != reply:
                continue
            answer = json.loads(data or b"{}")
            if "error" in answer:
                raise NatsError(answer["error"]["description"])
            return answer

    def add(self, stream, subjects, **more):
        """Makes a stream on disk."""
        return self.ask(f"STREAM.CREATE.{stream}", {"name": stream, "subjects": subjects, "storage": "file",
                                                    "retention": "limits", "num_replicas": 1, **more})

    def delete(self, stream):
        """Removes a stream."""
        self.ask(f"STREAM.DELETE.{stream}")

    def state(self, stream):
        """What a stream has."""
        return self.ask(f"STREAM.INFO.{stream}")["state"]

    def publish(self, messages, subject="logs.a", window=500):
        """Publishes messages, bytes or (subject, bytes), and waits until all are acknowledged: the last number."""
        waiting, last = 0, 0
        for message in messages:
            to, data = message if isinstance(message, tuple) else (subject, message)
            self._send(to, data)
            waiting += 1
            if waiting == window:
                self._stream.flush()
                while waiting > window // 2:
                    last, waiting = self._acknowledged(), waiting - 1
        self._stream.flush()
        for _ in range(waiting):
            last = self._acknowledged()
        return last

    def _acknowledged(self):
        answer = json.loads(self._answer()[1] or b'{"error": {"description": "nobody takes this subject"}}')
        if "error" in answer:
            raise NatsError(answer["error"]["description"])
        return answer["seq"]
