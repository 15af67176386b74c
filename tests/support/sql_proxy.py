# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy to an SQL server that breaks a connection at a chosen statement.

A statement goes up in packets of its own, so its text is found in what one of
them holds. Rules are used once each, in their order.
"""

import socket
import threading

BEFORE, AFTER, STALL = "before the server had it", "after the server had answered", "and nothing went through any more"


def without_rows(greeting):
    """A server's first packet, without its word that it takes many rows' parameters at once."""
    version_end = greeting.index(b"\0", 5)
    more = version_end + 1 + 4 + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 6  # MariaDB's own capabilities, from bit 32 on
    changed = bytearray(greeting)
    assert changed[more] & 4, "the server does not say so anyway"
    changed[more] &= ~4
    return bytes(changed)


class _Rule:
    def __init__(self, text, when, after_bytes):
        self.text, self.when, self.after_bytes = text, when, after_bytes
        self.done = threading.Event()


class SqlProxy:
    """Listens on a loopback port. Use it in a with statement."""

    def __init__(self, target_port, one_row=False):
        """With one_row MariaDB says, as MySQL does, that an execution takes the parameters of one row."""
        self._target_port, self.one_row = target_port, one_row
        self._lock = threading.Lock()
        self._rules, self._sockets = [], []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._refusing = False
        self.accepted = 0

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def cut(self, text, when, after_bytes=0):
        """Cuts the connection at the next statement with this text, or so many bytes later. The event tells when."""
        rule = _Rule(text.encode(), when, after_bytes)
        with self._lock:
            self._rules.append(rule)
        return rule.done

    def refuse(self, refusing=True):
        """Ends new connections at once."""
        self._refusing = refusing

    def drop(self):
        """Ends all connections."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for one in sockets:
            self._end(one)

    @staticmethod
    def _end(*sockets):
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target_port), timeout=30)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets += [client, server]
                self.accepted += 1
            connection = _Connection(self, client, server)
            for pump in (connection.up, connection.down):
                threading.Thread(target=connection.guard, args=(pump,), daemon=True).start()

    def match(self, data):
        """The next rule, if it is for this; it is used up."""
        with self._lock:
            if self._rules and self._rules[0].text in data:
                return self._rules.pop(0)
        return None


class _Connection:
    def __init__(self, proxy, client, server):
        self._proxy, self._client, self._server = proxy, client, server
        self._rule = None  # one that waits for the server's answer
        self._stalled = threading.Event()
        self._greeted = not proxy.one_row

    def guard(self, pump):
        """Runs one direction to its end, and ends both."""
        try:
            pump()
        except OSError:
            pass
        if not self._stalled.is_set():
            SqlProxy._end(self._client, self._server)  # pylint: disable=protected-access

    def up(self):
        """From the client."""
        left = None
        while True:
            data = self._client.recv(65536)
            if not data:
                return
            rule = self._proxy.match(data) if left is None else None
            if rule is not None and rule.when == AFTER:
                self._rule = rule
            elif rule is not None and rule.when == STALL:
                self._stalled.set()
                rule.done.set()
                return
            elif rule is not None:
                left, cutting = rule.after_bytes, rule
            if left is not None:
                self._server.sendall(data[:left])
                left -= len(data)
                if left <= 0:
                    cutting.done.set()
                    return
            else:
                self._server.sendall(data)

    def down(self):
        """From the server."""
        while True:
            data = self._server.recv(65536)
            if not data:
                return
            if self._rule is not None:
                self._rule.done.set()
                return
            if self._stalled.is_set():
                return
            if not self._greeted:
                data, self._greeted = without_rows(data), True
            self._client.sendall(data)
