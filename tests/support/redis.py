# SPDX-License-Identifier: Apache-2.0
"""Redis for tests: one connection, made again when it broke."""

import socket

from support.place import PATIENCE_S


class RedisError(Exception):
    """The server's own words."""


class Redis:
    """call() sends a command; answers are bytes, int, None or lists of them."""

    def __init__(self, port, database=0, host="127.0.0.1", timeout_s=PATIENCE_S, wrap=None):
        """wrap: makes a TLS connection of a plain one"""
        self._where, self._database, self._timeout_s = (host, port), database, timeout_s
        self._stream, self._wrap = None, wrap or (lambda plain: plain)

    def _open(self):
        with self._wrap(socket.create_connection(self._where, self._timeout_s)) as connection:
            self._stream = connection.makefile("rwb")
        if self._database:
            self._ask("SELECT", self._database)

    def close(self):
        """Ends the connection; the next call makes one."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def call(self, *words):
        """One command: words of bytes, text or numbers. OSError: the connection broke."""
        try:
            if self._stream is None:
                self._open()
            return self._ask(*words)
        except OSError:
            stream, self._stream = self._stream, None
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
            raise

    def together(self, commands):
        """Commands, each a list of words, sent at once: their answers. OSError: the connection broke."""
        answers = []
        for first in range(0, len(commands), 1000):
            some = commands[first:first + 1000]
            if self._stream is None:
                self._open()
            for words in some:
                self._put(words)
            self._stream.flush()
            answers += [self._answer() for _ in some]
        return answers

    def next_push(self):
        """The next message of what was subscribed to."""
        return self._answer()

    def keys(self, pattern="*"):
        """All keys of a pattern, sorted."""
        found, cursor = set(), b"0"
        while True:
            cursor, names = self.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            found.update(names)
            if cursor == b"0":
                return sorted(found)

    def _ask(self, *words):
        self._put(words)
        self._stream.flush()
        return self._answer()

    def _put(self, words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self._stream.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))

    def _answer(self):
        line = self._stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return None if rest == b"-1" else [self._answer() for _ in range(int(rest))]
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self._stream.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise ConnectionResetError("Redis closed the connection")
            return data[:-2]
        return rest


def refused(client, *words):
    """The words of a command's error."""
    try:
        answer = client.call(*words)
    except RedisError as error:
        return str(error)
    raise AssertionError(f"{words} was answered with {answer}")
