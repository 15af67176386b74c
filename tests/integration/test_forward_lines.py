#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the source `forward` makes of MessagePack and of messages, against another reader of it: random values, all modes."""

import gzip
import json
import math
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import venv

venv.enter()

import msgpack
from support import cases
from support.place import PATIENCE_S

VALUES, FRAMES = 3000, 300


class Extension:
    """One of any type."""

    def __init__(self, code, data):
        self.code, self.data = code, data


class Pairs(list):
    """A map as it stands: equal keys, in their order."""


def shell(kind, data):
    """(its code, the lines that it printed)."""
    build = os.environ.get("WEIR_BUILD", "build/release")
    done = subprocess.run([os.path.join(build, "tests", "forward_shell"), kind], input=data, capture_output=True,
                          check=False, timeout=4 * PATIENCE_S)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout.split(b"\n")[:-1]


def text_of(data):
    """Bytes as the lines have them."""
    return data.decode("utf-8", "surrogateescape")


def read_json(line):
    """A line, with its maps as they stand."""
    return json.loads(text_of(line), object_pairs_hook=Pairs)


def time_of(kind, data):
    """The text of an extension that is a time; None: it is none."""
    seconds, nanos = None, 0
    if kind == 0 and len(data) == 8:
        seconds, nanos = struct.unpack(">II", data)
    elif kind == -1 and len(data) == 4:
        seconds = struct.unpack(">I", data)[0]
    elif kind == -1 and len(data) == 8:
        both = struct.unpack(">Q", data)[0]
        seconds, nanos = both & (2 ** 34 - 1), both >> 34
    elif kind == -1 and len(data) == 12:
        nanos, seconds = struct.unpack(">Iq", data)
    return None if seconds is None or nanos >= 10 ** 9 else f"{seconds}.{nanos:09d}"


def wanted(value):
    """What a value has to be in JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, Extension):
        time = time_of(value.code, value.data)
        return float(time) if time is not None else value.data.hex()
    if isinstance(value, msgpack.Timestamp):
        return float(stamp_of(value))
    if isinstance(value, Pairs):
        return Pairs((key_of(key), wanted(inner)) for key, inner in value)
    return [wanted(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def stamp_of(stamp):
    """The text of a timestamp."""
    return f"{stamp.seconds}.{stamp.nanoseconds:09d}"


def key_of(key):
    """What a key has to be."""
    if isinstance(key, msgpack.Timestamp):
        return stamp_of(key)
    if isinstance(key, bytes):
        return text_of(key)
    if isinstance(key, Extension):
        return time_of(key.code, key.data) or key.data.hex()
    if isinstance(key, Pairs):
        return "{}"
    if isinstance(key, float):
        return key if math.isfinite(key) else "null"
    return "[]" if isinstance(key, (list, tuple)) else json.dumps(key)


def read_msgpack(data):
    """The values of a stream, by the other reader."""
    limits = {name: len(data) + 1 for name in ("max_str_len", "max_bin_len", "max_array_len", "max_map_len", "max_ext_len")}
    unpacker = msgpack.Unpacker(raw=True, object_pairs_hook=Pairs, strict_map_key=False, ext_hook=raw_ext, timestamp=0,
                                **limits)
    unpacker.feed(data)
    return list(unpacker)


def raw_ext(kind, data):
    """Extensions as they are, timestamps too."""
    return Extension(kind, bytes(data))


def some_bytes(rng):
    """A string's bytes: often text, at times anything."""
    if rng.random() < 0.7:
        return "".join(rng.choice("abcäß€😀\"\\\n\t\x00 /") for _ in range(rng.choice([0, 1, 5, 31, 32, 40]))).encode()
    return rng.randbytes(rng.choice([0, 1, 8, 255, 256, 300]))


def pack(rng, depth=0):
    """A random value, packed, in a form that needs not be the shortest."""
    kind = rng.randrange(12 if depth < 5 else 9)
    if kind == 0:
        return rng.choice([b"\xc0", b"\xc2", b"\xc3"])
    if kind in (1, 2):
        size = rng.randrange(4)
        bits = 8 << size
        if rng.random() < 0.5:
            number = rng.choice([0, 1, 2 ** bits - 1, rng.randrange(2 ** bits)])
            return bytes([0xcc + size]) + number.to_bytes(1 << size, "big")
        number = rng.choice([-1, -2 ** (bits - 1), 2 ** (bits - 1) - 1, rng.randrange(-2 ** (bits - 1), 2 ** (bits - 1))])
        return bytes([0xd0 + size]) + number.to_bytes(1 << size, "big", signed=True)
    if kind == 3:
        return bytes([rng.choice([rng.randrange(0x80), rng.randrange(0xe0, 0x100)])])
    if kind == 4:
        number = rng.choice([0.0, -0.0, 0.1, 1e300, 5e-324, math.inf, -math.inf, math.nan, rng.uniform(-1e9, 1e9)])
        single = rng.random() < 0.3 and abs(number) < 1e30
        return struct.pack(">Bf", 0xca, number) if single else struct.pack(">Bd", 0xcb, number)
    if kind in (5, 6):
        data = some_bytes(rng)
        form = rng.choice([0xd9, 0xda, 0xdb, 0xc4, 0xc5, 0xc6, 0xa0])
        if form == 0xa0:
            return bytes([0xa0 + len(data[:31])]) + data[:31]
        size = 1 << (form - (0xd9 if form >= 0xd9 else 0xc4))
        data = data[:255] if size == 1 else data
        return bytes([form]) + len(data).to_bytes(size, "big") + data
    if kind == 7:
        code = rng.choice([0, -1, 5, -128])
        data = rng.randbytes(rng.choice([0, 1, 2, 4, 8, 12, 16, 17]))
        if code == -1:  # the other reader refuses what is no time
            data = rng.choice([b"abcd", b"\0\0\0\1abcd", b"\0\0\0\1abcdefgh"])
        if len(data) in (1, 2, 4, 8, 16) and rng.random() < 0.5:
            return bytes([0xd4 + len(data).bit_length() - 1]) + struct.pack("b", code) + data
        return bytes([0xc7, len(data)]) + struct.pack("b", code) + data
    if kind == 8:
        return b"\xa3key"
    count = rng.choice([0, 1, 2, 3, 16])
    if kind in (9, 10):
        head = rng.choice([b"\xdc" + count.to_bytes(2, "big"), b"\xdd" + count.to_bytes(4, "big")])
        return head + b"".join(pack(rng, depth + 1) for _ in range(count))
    head = rng.choice([b"\xde" + count.to_bytes(2, "big"), b"\xdf" + count.to_bytes(4, "big")])
    return head + b"".join(pack(rng, depth + 1 if rng.random() < 0.2 else 9) + pack(rng, depth + 1) for _ in range(count))


def same(one, other):
    """As ==, but tells 1 from True."""
    if isinstance(one, float) and isinstance(other, str):  # a key
        other = float(other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return (len(one) == len(other) and isinstance(one, Pairs) == isinstance(other, Pairs)
                and all(same(*both) for both in zip(one, other)))
    if isinstance(one, float) and isinstance(other, (int, float)):
        # One of 32 bits is written so that it reads back as the same with 32 bits.
        return one == other or (abs(one) < 3e38 and struct.pack("f", one) == struct.pack("f", other) and
                                struct.unpack("f", struct.pack("f", one))[0] == one)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def test_values(_):
    rng = random.Random(1)
    packed = [pack(rng) for _ in range(VALUES)]
    code, lines = shell("values", b"".join(packed))
    assert code == 0 and len(lines) == VALUES, (code, len(lines))
    for data, line in zip(packed, lines):
        value = read_msgpack(data)[0]
        assert same(wanted(value), read_json(line)), (data[:200], line[:500])


def test_what_is_cut_off_or_damaged_is_refused(_):
    rng = random.Random(2)
    for _ in range(100):
        data = bytearray(pack(rng))
        if rng.random() < 0.5:
            del data[rng.randrange(len(data)):]
        else:
            data[rng.randrange(len(data))] = rng.choice([0xc1, 0xdb, 0xdd, 0xdf, rng.randrange(256)])
        code, lines = shell("values", bytes(data))
        assert (code == 0) == is_whole(bytes(data)), (bytes(data)[:200], code, len(lines))


def is_whole(data):
    """Whether a stream ends where a value does, to the other reader."""
    unpacker = msgpack.Unpacker(raw=True, object_pairs_hook=Pairs, strict_map_key=False, ext_hook=raw_ext)
    unpacker.feed(data)
    try:
        while unpacker.tell() < len(data):
            unpacker.skip()
    except (msgpack.exceptions.OutOfData, msgpack.exceptions.FormatError, msgpack.exceptions.StackError, ValueError):
        return False
    return True


def entry_of(rng, i):
    """A time and a record."""
    at = rng.choice([1709251200 + i, msgpack.ExtType(0, struct.pack(">II", 1709251200 + i, rng.randrange(10 ** 9))), float(i)])
    record = {rng.choice(["user", "time", "tag", "metadata", "a\nb", "é"]): rng.choice([1, "x", None, [1, {"b": 2.5}], b"\xff"])
              for _ in range(rng.randrange(4))}
    if rng.random() < 0.3:
        at = [at, {"meta": 1} if rng.random() < 0.5 else {}]
    return [at, record]


def line_of(tag, entry):
    """The members that a line has to have, in their order."""
    at, record = entry
    metadata = None
    if isinstance(at, list):
        at, metadata = at
    if isinstance(at, msgpack.ExtType):
        at = float(time_of(at.code, at.data))
    members = Pairs([("time", at), ("tag", tag)])
    if metadata:
        members.append(("metadata", Pairs(metadata.items())))
    for key, value in record.items():
        own = key in ("time", "tag") or (metadata and key == "metadata")
        members.append(("_" + key if own else key, wanted(pairs(value))))
    return members


def pairs(value):
    """With Pairs for its maps."""
    if isinstance(value, dict):
        return Pairs((key.encode(), pairs(inner)) for key, inner in value.items())
    return [pairs(inner) for inner in value] if isinstance(value, list) else value


def frame(rng, tag, entries, chunk):
    """A message in some mode."""
    options = {"chunk": chunk, "size": rng.randrange(10)}
    body = b"".join(msgpack.packb(entry) for entry in entries)
    mode = rng.randrange(4)
    if mode == 0 and len(entries) == 1 and not isinstance(entries[0][0], list):
        return msgpack.packb([tag, *entries[0], options])
    if mode == 1:
        return msgpack.packb([tag, entries, options])
    if mode == 2:
        halves = body[:len(body) // 2], body[len(body) // 2:]  # two members, as fluentd appends them
        return msgpack.packb([tag, b"".join(map(gzip.compress, halves)), {**options, "compressed": "gzip"}])
    return msgpack.packb([tag, body, options])


def test_messages(_):
    rng = random.Random(3)
    data, expected = b"", []
    for i in range(FRAMES):
        entries = [entry_of(rng, i) for _ in range(rng.choice([0, 1, 1, 2, 30]))]
        data += frame(rng, f"tag\"{i}", entries, f"chunk{i}")
        expected += [line_of(f"tag\"{i}", entry) for entry in entries] + [f".chunk{i}"]
    code, lines = shell("frames", data)
    assert code == 0 and len(lines) == len(expected), (code, len(lines), len(expected))
    for line, members in zip(lines, expected):
        if isinstance(members, str):
            assert line.decode() == members, (line, members)
        else:
            assert same(read_json(line), members), (line, members)


def test_entries_that_are_none_become_lines_without_a_time(_):
    entries = [[1], "x", [1709251200, "no map"], [None, {"user": "ann"}], [[1, 2, 3], {}], [1709251200, {"user": "bob"}]]
    code, lines = shell("frames", msgpack.packb(["t", entries]))
    assert code == 0, lines
    assert [json.loads(line) for line in lines[:-1]] == [
        {"tag": "t", "entry": [1]}, {"tag": "t", "entry": "x"}, {"tag": "t", "entry": [1709251200, "no map"]},
        {"tag": "t", "user": "ann"}, {"tag": "t", "entry": [[1, 2, 3], {}]},
        {"time": 1709251200, "tag": "t", "user": "bob"}], lines


def test_marks_of_groups_are_no_lines(_):
    marks = [[[-1, {"schema": "otlp"}], {"resource": {}}], [[1709251200, {}], {"user": "ann"}], [[-2, {}], {}]]
    code, lines = shell("frames", msgpack.packb(["t", marks]))
    assert code == 0 and [json.loads(line) for line in lines[:-1]] == [{"time": 1709251200, "tag": "t", "user": "ann"}], lines


if __name__ == "__main__":
    cases.main(globals())
