# SPDX-License-Identifier: Apache-2.0
"""Frames in plain Python, from the description in common/frame/frame.h."""

import ctypes
import json
import struct

_HEADER = struct.Struct("<2sBBIq16sQ")
_BASE = struct.Struct("<qQ")
_VERSION = 1
_EXTENDED = 2  # where events have fields of their records, or answers
_TIME_END_MS = 253402300800000  # the year 10000
_KINDS = {1: "events", 2: "judged", 3: "policy", 4: "command", 5: "checks"}

try:
    _HASH = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    _HASH.argtypes, _HASH.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64
except OSError:
    _HASH = None  # then checksums are not looked at

BLOCK, LATE, DECIDED, NONE = 1, 2, 4, 8


class Malformed(Exception):
    """Not a frame, or not a whole one."""


class Frame:
    """What a message says.

    events: dicts as the oracle's Follow takes them: key, time, cost, position, zones [(id, done)]. verdicts: of a
    judged frame the bits of each (event, zone) pair, in order; of checks what was answered, likewise, under an epoch.
    body: the bytes of a policy or command."""

    def __init__(self, kind, sent_ms, source, policy):
        self.kind, self.sent_ms, self.source, self.policy = kind, sent_ms, source, policy
        self.events, self.verdicts, self.judged_offset, self.epoch, self.body = [], [], None, None, b""

    @property
    def pairs(self):
        """How many (event, zone) pairs it has."""
        return sum(len(event["zones"]) for event in self.events)

    def content(self):
        """The body of a policy or command as an object."""
        return json.loads(self.body)


class _Bytes:
    def __init__(self, data, at):
        self.data, self.at = data, at

    def varint(self):
        """LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & 0xFFFFFFFFFFFFFFFF
            shift += 7
            if shift > 63:
                raise Malformed("a number of more than ten bytes")

    def svarint(self):
        """Zigzag."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def take(self, length):
        """So many bytes."""
        taken = self.data[self.at:self.at + length]
        if len(taken) != length:
            raise Malformed("cut")
        self.at += length
        return taken


def decode(message):
    """The Frame of a message; raises Malformed."""
    try:
        return _decode(message)
    except (IndexError, struct.error) as cut:
        raise Malformed(f"cut: {cut}") from cut


def _decode(message):
    magic, version, kind, checksum, sent_ms, source, policy = _HEADER.unpack_from(message)
    if magic != b"wF" or kind not in _KINDS:
        raise Malformed("not a frame")
    if version not in (_VERSION, _EXTENDED) or (_KINDS[kind] == "checks" and version != _EXTENDED):
        raise Malformed(f"version {version}")
    if _HASH is not None and _HASH(message[8:], len(message) - 8) & 0xFFFFFFFF != checksum:
        raise Malformed("checksum")
    if not 0 <= sent_ms < _TIME_END_MS:
        raise Malformed(f"sent at {sent_ms}")
    frame = Frame(_KINDS[kind], sent_ms, source.hex(), policy)
    if frame.kind in ("policy", "command"):
        frame.body = message[_HEADER.size:]
        return frame
    time_ms, position = _BASE.unpack_from(message, _HEADER.size)
    data = _Bytes(message, _HEADER.size + _BASE.size)
    sets = [[(word >> 1, bool(word & 1)) for word in [data.varint() for _ in range(data.varint())]]
            for _ in range(data.varint())]
    keys = [bytes(data.take(data.varint())) for _ in range(data.varint())]
    for _ in range(data.varint()):
        key = keys[data.varint()]
        time_ms += data.svarint()
        position += data.varint()
        word = data.varint()
        cost = data.varint() if word & 1 else 1
        frame.events.append({"key": key, "time": time_ms, "cost": cost, "position": position,
                             "zones": sets[word >> 1]})
    if version == _EXTENDED:
        at = 0
        for _ in range(data.varint()):
            at += data.varint()
            shared, fields = data.varint(), _Bytes(bytes(data.take(data.varint())), 0)
            named = {}
            while fields.at < len(fields.data):
                name = bytes(fields.take(fields.varint()))
                named[name] = bytes(fields.take(fields.varint()))
            for event in frame.events[at:at + shared]:
                event["fields"] = named
            at += shared
    if frame.kind == "checks":
        _read_reservations(frame, data, len(message) - 8 - (frame.pairs + 1) // 2 - 4)
    if frame.kind in ("judged", "checks"):
        number, = struct.unpack("<Q", data.take(8))
        frame.judged_offset, frame.epoch = (number, None) if frame.kind == "judged" else (None, number)
        pairs = frame.pairs
        halves = data.take((pairs + 1) // 2)
        frame.verdicts = [halves[pair // 2] >> (pair % 2 * 4) & 15 for pair in range(pairs)]
    if data.at != len(message):
        raise Malformed(f"{len(message) - data.at} bytes behind its end")
    return frame


def _read_reservations(frame, data, end):
    begin, at = data.at, 0
    while data.at < end:
        at += data.varint()
        event, at = frame.events[at], at + 1
        if any(done for _, done in event["zones"]):
            event["settles"] = bytes(data.take(16))
        else:
            event["reserves_for"] = data.varint()
    if data.at != end or struct.unpack("<I", data.take(4))[0] != end - begin:
        raise Malformed("reservations")


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sealed(kind, sent_ms, source, policy, rest, version=_VERSION):
    number = next(number for number, name in _KINDS.items() if name == kind)
    return seal(_HEADER.pack(b"wF", version, number, 0, sent_ms, source, policy) + rest)


def seal(message):
    """The same bytes with the checksum that they should have."""
    checksum = _HASH(message[8:], len(message) - 8) & 0xFFFFFFFF if _HASH is not None else 0
    return message[:4] + struct.pack("<I", checksum) + message[8:]


def control(kind, sent_ms, body, policy=0):
    """The message of a "policy" or "command"; body: an object, or bytes."""
    if not isinstance(body, bytes):
        body = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return _sealed(kind, sent_ms, bytes(16), policy, body)


def _lists(happened):
    time_ms, position = happened[0]["time"], happened[0]["position"]
    rest = _BASE.pack(time_ms, position)
    sets = sorted({tuple(event["zones"]) for event in happened})
    keys = sorted({event["key"] for event in happened})
    rest += _varint(len(sets)) + b"".join(
        _varint(len(one)) + b"".join(_varint(zone << 1 | done) for zone, done in one) for one in sets)
    rest += _varint(len(keys)) + b"".join(_varint(len(key)) + key for key in keys)
    rest += _varint(len(happened))
    for event in happened:
        step = event["time"] - time_ms
        has_cost = event["cost"] != 1
        rest += (_varint(keys.index(event["key"])) + _varint(step << 1 if step >= 0 else (-step << 1) - 1)
                 + _varint(event["position"] - position)
                 + _varint(sets.index(tuple(event["zones"])) << 1 | has_cost)
                 + (_varint(event["cost"]) if has_cost else b""))
        time_ms, position = event["time"], event["position"]
    return rest


def events(sent_ms, source, policy, happened):
    """The message of events; source: 16 bytes; happened: dicts as Frame.events has them, in order of position."""
    return _sealed("events", sent_ms, source, policy, _lists(happened))


def checks(sent_ms, source, policy, epoch, happened, answers):
    """The message of checks; answers: 0 or BLOCK of each (event, zone) pair. An event may have "reserves_for" (ms), or
    "settles" (16 bytes)."""
    reservations, end = b"", 0
    for at, event in enumerate(happened):
        if "reserves_for" in event or "settles" in event:
            reservations += _varint(at - end) + (event.get("settles") or _varint(event["reserves_for"]))
            end = at + 1
    return _sealed("checks", sent_ms, source, policy,
                   _lists(happened) + b"\0" + reservations + struct.pack("<IQ", len(reservations), epoch)
                   + _halves(answers), _EXTENDED)


def _halves(verdicts):
    halves = bytearray((len(verdicts) + 1) // 2)
    for pair, bits in enumerate(verdicts):
        halves[pair // 2] |= bits << (pair % 2 * 4)
    return bytes(halves)


def judged(message, offset, verdicts):
    """The message of an events message that was judged; verdicts: the bits of each pair."""
    frame = decode(message)
    return _sealed("judged", frame.sent_ms, bytes.fromhex(frame.source), frame.policy,
                   message[_HEADER.size:] + struct.pack("<Q", offset) + _halves(verdicts))
