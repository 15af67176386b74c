# SPDX-License-Identifier: Apache-2.0
"""One JSON object from a line of bytes, as weir's json format defines it.

Structure is strict. Strings are lenient: any byte but the quote and the
backslash stands for itself, and an escape that JSON does not know stays as it
is. Numbers keep their text. Of equal keys the last wins.
"""

import re

MAX_DEPTH = 64

_BLANK = re.compile(rb"[ \t\r]*")
_STRING = re.compile(rb'"([^"\\]*(?:\\[\x00-\xff][^"\\]*)*)"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX4 = re.compile(rb"\\u([0-9a-fA-F]{4})")
_SIMPLE = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f",
           b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_WORDS = {b"true": b"true", b"false": b"false", b"null": None}


class NotJson(Exception):
    """The line is not one JSON object."""


def unescape(raw):
    """The bytes that a string's raw inside stands for."""
    if b"\\" not in raw:
        return raw
    out = bytearray()
    at = 0
    while at < len(raw):
        if raw[at:at + 1] != b"\\":
            out += raw[at:at + 1]
            at += 1
            continue
        first = _hex4(raw, at)
        if first is None:
            pair = raw[at:at + 2]
            out += _SIMPLE.get(pair[1:], pair)
            at += 2
            continue
        at += 6
        if 0xD800 <= first < 0xDC00:
            second = _hex4(raw, at)
            if second is not None and 0xDC00 <= second < 0xE000:
                at += 6
                first = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        if 0xD800 <= first < 0xE000:
            first = 0xFFFD
        out += chr(first).encode("utf-8")
    return bytes(out)


def _hex4(raw, at):
    """The number of a \\uXXXX at this place, or None."""
    found = _HEX4.match(raw, at)
    return int(found[1], 16) if found else None


def parse_object(line):
    """The object as a dict from bytes to values: bytes, None, dict or list."""
    value, at = _value(line, _skip(line, 0), 1)
    if not isinstance(value, dict) or _skip(line, at) != len(line):
        raise NotJson
    return value


def _skip(line, at):
    return _BLANK.match(line, at).end()


def _value(line, at, depth):
    first = line[at:at + 1]
    if first == b'"':
        return _string(line, at)
    if first == b"{":
        return _object(line, at, depth)
    if first == b"[":
        return _array(line, at, depth)
    found = _NUMBER.match(line, at)
    if found:
        return found[0], found.end()
    for word, meaning in _WORDS.items():
        if line.startswith(word, at):
            return meaning, at + len(word)
    raise NotJson


def _string(line, at):
    found = _STRING.match(line, at)
    if not found:
        raise NotJson
    return unescape(found[1]), found.end()


def _object(line, at, depth):
    if depth > MAX_DEPTH:
        raise NotJson
    members = {}
    at = _skip(line, at + 1)
    if line[at:at + 1] == b"}":
        return members, at + 1
    while True:
        key, at = _string(line, at)
        at = _skip(line, at)
        if line[at:at + 1] != b":":
            raise NotJson
        members[key], at = _value(line, _skip(line, at + 1), depth + 1)
        at = _skip(line, at)
        if line[at:at + 1] == b"}":
            return members, at + 1
        if line[at:at + 1] != b",":
            raise NotJson
        at = _skip(line, at + 1)


def _array(line, at, depth):
    if depth > MAX_DEPTH:
        raise NotJson
    items = []
    at = _skip(line, at + 1)
    if line[at:at + 1] == b"]":
        return items, at + 1
    while True:
        item, at = _value(line, at, depth + 1)
        items.append(item)
        at = _skip(line, at)
        if line[at:at + 1] == b"]":
            return items, at + 1
        if line[at:at + 1] != b",":
            raise NotJson
        at = _skip(line, at + 1)


def find(top, name):
    """The value of a plain name or a JSON pointer as a field: bytes or None."""
    if not name.startswith(b"/"):
        value = top.get(name)
    else:
        value = top
        for token in name[1:].split(b"/"):
            token = token.replace(b"~1", b"/").replace(b"~0", b"~")
            if isinstance(value, dict):
                value = value.get(token)
            elif isinstance(value, list) and re.fullmatch(rb"0|[1-9][0-9]{0,8}", token):
                value = value[int(token)] if int(token) < len(value) else None
            else:
                return None
    return value if isinstance(value, bytes) and value else None
