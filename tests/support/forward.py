# SPDX-License-Identifier: Apache-2.0
"""A sender of the Fluent Forward protocol: what no real one can be made to do, too."""

import gzip
import hashlib
import os
import socket
import ssl
import struct
import time

PATIENCE_S = 30


class Ext(bytes):
    """An extension: its type and its bytes."""

    def __new__(cls, kind, data):
        made = super().__new__(cls, data)
        made.kind = kind
        return made


def event_time(seconds):
    """An EventTime, of a number with a fraction."""
    whole = int(seconds)
    return Ext(0, struct.pack(">II", whole, round((seconds - whole) * 1e9)))


def pack(value):
    """MessagePack, in the long forms where that is simpler."""
    if value is None or isinstance(value, bool):
        return b"\xc0" if value is None else b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return struct.pack(">BQ", 0xcf, value) if value >= 0 else struct.pack(">Bq", 0xd3, value)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xcb, value)
    if isinstance(value, Ext):
        return struct.pack(">BBb", 0xc7, len(value), value.kind) + bytes(value)
    if isinstance(value, str):
        data = value.encode()
        return struct.pack(">BI", 0xdb, len(data)) + data
    if isinstance(value, (bytes, bytearray)):
        return struct.pack(">BI", 0xc6, len(value)) + value
    if isinstance(value, dict):
        return struct.pack(">BI", 0xdf, len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    return struct.pack(">BI", 0xdd, len(value)) + b"".join(pack(element) for element in value)


def unpack(data):
    """One value and the rest; IndexError or struct.error: it is cut off. Only what a server sends."""
    byte, rest = data[0], data[1:]

    def take(count, rest):
        if len(rest) < count:
            raise IndexError
        return rest[:count], rest[count:]
    if 0xa0 <= byte < 0xc0:
        return take(byte & 31, rest)
    if byte in (0xd9, 0xda):
        size = byte - 0xd8
        length, rest = take(size, rest)
        return take(int.from_bytes(length, "big"), rest)
    if byte in (0xc2, 0xc3):
        return byte == 0xc3, rest
    if 0x80 <= byte < 0xa0:
        values = []
        for _ in range((byte & 15) * (2 if byte < 0x90 else 1)):
            value, rest = unpack(rest)
            values.append(value)
        return (dict(zip(values[::2], values[1::2])) if byte < 0x90 else values), rest
    raise ValueError(f"byte {byte:02x}")


def packed(entries):
    """Entries as PackedForward has them."""
    return b"".join(pack([at, record]) for at, record in entries)


def messages(tag, entries, chunk=None):
    """The same entries in each of the modes that take many; with Message, of the first entry alone."""
    options = {"size": len(entries), **({"chunk": chunk} if chunk else {})}
    body = packed(entries)
    return {
        "message": pack([tag, entries[0][0], entries[0][1], options]),
        "forward": pack([tag, [list(entry) for entry in entries], options]),
        "packed": pack([tag, body, options]),
        "compressed": pack([tag, gzip.compress(body[:len(body)]), {**options, "compressed": "gzip"}]),
    }


class Sender:
    """A connection."""

    def __init__(self, address, tls=None, timeout=PATIENCE_S):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, timeout=timeout)
        if tls is not None:
            context = ssl.create_default_context(cafile=tls)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """All of it."""
        self.socket.sendall(data)

    def answer(self):
        """The next value that the server sends; EOFError: it has closed."""
        while True:
            try:
                value, self.data = unpack(self.data)
                return value
            except IndexError:
                more = self.socket.recv(65536)
                if not more:
                    raise EOFError from None
                self.data += more

    def wait_unread(self):
        """Until there is an answer, which stays unread."""
        self.socket.recv(1, socket.MSG_PEEK)

    def send_and_wait(self, data, chunk):
        """A message, until it is acknowledged."""
        self.send(data)
        answer = self.answer()
        assert answer == {b"ack": chunk.encode()}, answer

    def greet(self, key, user="", password=""):
        """The handshake: the PONG."""
        word, options = self.answer()
        assert word == b"HELO", word
        salt, host = os.urandom(16).hex(), "here"
        digest = hashlib.sha512(salt.encode() + host.encode() + options[b"nonce"] + key.encode()).hexdigest()
        secret = hashlib.sha512(options[b"auth"] + user.encode() + password.encode()).hexdigest()
        self.send(pack(["PING", host, salt, digest, user, secret]))
        pong = self.answer()
        if pong[1]:
            mine = hashlib.sha512(salt.encode() + pong[3] + options[b"nonce"] + key.encode()).hexdigest()
            assert pong[4] == mine.encode(), pong
        return pong


def send_until_acknowledged(address, data, chunk, until_s):
    """As a sender that asks for acknowledgements does: again over a new connection until it has one."""
    while True:
        try:
            with Sender(address, timeout=5) as sender:
                sender.send_and_wait(data, chunk)
                return
        except (OSError, EOFError):
            if time.monotonic() > until_s:
                raise
            time.sleep(0.02)
