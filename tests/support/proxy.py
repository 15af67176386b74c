# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that breaks connections: cut, stalled, reset, or with their answers withheld.

A broker tells its clients by which address to reach it, so Kafka is put behind
one by its listener for that (see Cluster.proxied_kafka). Everything else is
reached by the proxy's port in place of its own.
"""

import socket
import struct
import threading

from support.place import joined

_CHUNK = 65536
UP, DOWN = "up", "down"  # from the client to the server, and back


class _Connection:
    """One client's: two threads, a direction each."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.over = False
        self.threads = [threading.Thread(target=self._pump, args=way, daemon=True)
                        for way in ((client, server, UP), (server, client, DOWN))]
        for thread in self.threads:
            thread.start()

    def _pump(self, source, target, direction):
        try:
            while True:
                data = source.recv(_CHUNK)
                if not data or not self.proxy.wait_open(self, direction):
                    break
                target.sendall(data)
                self.proxy.count(direction, len(data))
        except OSError:
            pass
        self.end()

    def end(self, reset=False):
        """Closes both ends; reset: as if their machine had forgotten them."""
        with self.proxy.changed:
            if self.over:
                return
            self.over = True
            self.proxy.changed.notify_all()
        for one in (self.client, self.server):
            try:
                if reset:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    one.shutdown(socket.SHUT_RD)  # wakes its thread, and tells the peer nothing yet
                else:
                    one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for one in (self.client, self.server):
            one.close()


class Proxy:
    """Listens on a loopback port and passes on to another one. Use it in a with statement."""

    def __init__(self, target_port, port=0):
        self.target_port, self.port = target_port, port
        self.changed = threading.Condition()
        self.passed = {UP: 0, DOWN: 0}  # bytes
        self.accepted = 0
        self._stalled = set()
        self._connections = []
        self._listener = None
        self._accepting = None

    def __enter__(self):
        self.mend()
        return self

    def __exit__(self, *_):
        self.cut()

    # ---- what tests do ----

    def cut(self):
        """Ends all connections, and refuses new ones until mend()."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
            joined(self._accepting, "the accepting thread")
            listener.close()
        self.drop()

    def mend(self):
        """Passes everything on again, and accepts."""
        with self.changed:
            self._stalled.clear()
            self.changed.notify_all()
        if self._listener is None:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port))
            listener.listen(128)
            self.port = listener.getsockname()[1]
            self._listener = listener
            self._accepting = threading.Thread(target=self._accept, args=(listener,), daemon=True)
            self._accepting.start()

    def stall(self, *directions):
        """Keeps connections and accepts new ones, but passes nothing on: a path that loses everything.

        directions: UP, DOWN, or both when none is given. DOWN: requests arrive, answers do not."""
        with self.changed:
            self._stalled |= set(directions or (UP, DOWN))

    def drop(self, reset=False):
        """Ends the connections there are; reset: by RST. New ones are accepted."""
        for connection in self._connections[:]:
            connection.end(reset)

    # ---- for its threads ----

    def wait_open(self, connection, direction):
        """Waits while the direction is stalled: whether the connection goes on."""
        with self.changed:
            while direction in self._stalled and not connection.over:
                self.changed.wait()
            return not connection.over

    def count(self, direction, size):
        """Bytes that went through."""
        with self.changed:
            self.passed[direction] += size
            self.changed.notify_all()

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), timeout=30)
            except OSError:
                client.close()
                continue
            for one in (client, server):
                one.settimeout(None)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            self._connections = [old for old in self._connections if not old.over]
            self._connections.append(_Connection(self, client, server))
