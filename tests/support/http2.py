# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frame by frame, for what no client would send."""

import struct

from support.checks import Raw

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, body=b""):
    """Its bytes."""
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def number(value, bits):
    """An integer as HPACK has it, in so many bits of its first byte, whose others are 0."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    return bytes([most]) + varint(value - most)


def varint(value):
    """An integer, seven bits a byte, the lowest first: the rest of HPACK's, and protobuf's."""
    said = bytearray()
    while value >= 128:
        said.append(value & 127 | 128)
        value >>= 7
    return bytes(said) + bytes([value])


def field(name, value):
    """A header field that enters no table."""
    name, value = (part if isinstance(part, bytes) else part.encode() for part in (name, value))
    return b"\0" + number(len(name), 7) + name + number(len(value), 7) + value


def head(path=LIMIT, *more):
    """A call's fields."""
    usual = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "weir"), ("te", "trailers"),
             ("content-type", "application/grpc"))
    return b"".join(field(*one) for one in (*usual, *more))


def message(body):
    """A message of gRPC."""
    return b"\0" + struct.pack(">I", len(body)) + body


def part(at, body):
    """A member of a protobuf message: bytes."""
    return bytes([at << 3 | 2]) + varint(len(body)) + body


def request(key, value, more=b"", domain=b"rl"):
    """A RateLimitRequest of one descriptor with one entry."""
    return part(1, domain) + part(2, part(1, part(1, key) + part(2, value))) + more


class Http2(Raw):
    """A connection that has greeted, and takes as much as comes."""

    def __init__(self, port):
        super().__init__(port)
        self.send(PREFACE + frame(SETTINGS, 0, 0) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    def call(self, stream, body, fields=None):
        """The bytes of a whole call."""
        return frame(HEADERS, END_HEADERS, stream, head() if fields is None else fields) + \
            frame(DATA, END_STREAM, stream, message(body))

    def next(self):
        """The next frame: kind, flags, stream, body; None: the connection has ended."""
        start = self.take(9)
        if len(start) < 9:
            return None
        kind, flags, stream = start[3], start[4], struct.unpack(">I", start[5:])[0]
        return kind, flags, stream, self.take(int.from_bytes(start[:3], "big"))

    def passes(self, stream, body):
        """Whether a call's overall code is OK; None: it was refused by a status."""
        self.send(self.call(stream, body))
        said = None
        while (came := self.next()) is not None:
            kind, flags, of, data = came
            if of == stream and kind == DATA and data:
                said = data[5:7] == b"\x08\x01"  # its first member, 1: OK
            if of == stream and flags & END_STREAM:
                return said
        raise ConnectionResetError

    def fate(self, stream):
        """What becomes of a call: "answered", "refused" (by a status), "reset", "cut off" with the words of GOAWAY, "ended"."""
        answered = False
        while (came := self.next()) is not None:
            kind, flags, of, body = came
            if kind == GOAWAY and body[4:8] != b"\0\0\0\0":
                return "cut off"
            if of != stream:
                continue
            answered |= kind == DATA and len(body) > 0
            if kind == RST_STREAM and not answered:
                return "reset"
            if flags & END_STREAM:
                return "answered" if answered else "refused"
        return "ended"
