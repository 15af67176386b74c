# SPDX-License-Identifier: Apache-2.0
"""One JSON object from a line of bytes, as weir's json format defines it.

Structure is strict. Strings are lenient: any byte but the quote and the
backslash stands for itself, and an escape that JSON does not know stays as it
is. Numbers keep their text; what servers write in place of one (NaN, -, `0.1, 0.2`,
nothing) is no value. Of equal keys the last wins. Of an object that ends too early,
what was whole counts.
"""

import re

MAX_DEPTH = 64

_BLANK = re.compile(rb"[ \t\r]*")
_STRING = re.compile(rb'"([^"\\]*(?:\\[\x00-\xff][^"\\]*)*)"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX4 = re.compile(rb"\\u([0-9a-fA-F]{4})")
_HEX2 = re.compile(rb"\\x([0-9a-fA-F]{2})")
_SIMPLE = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f",
           b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_WORDS = {b"true": b"true", b"false": b"false", b"null": None}


_BARE = re.compile(rb"[0-9A-Za-z.+: \t\r-]*")


class NotJson(Exception):
    """The line is not one JSON object."""


class Cut(NotJson):
    """It is one as far as it goes, and ends too early; the argument is what was whole."""


class List(list):
    """An array; `raw` is how it was written, None where it does not end; `strings` says which of
    its items are."""

    raw = None

    def __init__(self):
        super().__init__()
        self.strings = []


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
        byte = _HEX2.match(raw, at)  # of servers that write JSON without knowing it
        if byte:
            out.append(int(byte[1], 16))
            at += 4
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
    at = _skip(line, len(b"@cee:") if line.startswith(b"@cee:") else 0)
    if line[at:at + 1] != b"{":
        raise NotJson
    top = {}
    try:
        at = _object(line, at, 1, top)
    except Cut:
        raise Cut(top) from None
    if _skip(line, at) != len(line):
        raise NotJson
    return top


def _skip(line, at):
    return _BLANK.match(line, at).end()


def _more(line, at):
    """The place, if the line goes on there."""
    if at >= len(line):
        raise Cut(None)
    return at


def _value(line, at, depth, put):
    """Hands the value at this place to `put`; gives the place behind it."""
    put(None)
    first = line[_more(line, at):at + 1]
    if first == b'"':
        text, at = _string(line, at)
        put(text)
        return at
    if first == b"{":
        members = {}
        put(members)
        return _object(line, at, depth, members)
    if first == b"[":
        items = List()
        put(items)
        end = _array(line, at, depth, items)
        items.raw = line[at:end]
        return end
    value, end = None, None
    found = _NUMBER.match(line, at)
    if found:
        value, end = found[0], found.end()
    for word, meaning in _WORDS.items():
        if line.startswith(word, at):
            value, end = meaning, at + len(word)
    if end is None or line[_skip(line, end):][:1] not in (b",", b"}", b"]"):
        return _bare(line, at)
    put(value)
    return end


def _bare(line, at):
    end = _more(line, _BARE.match(line, at).end())
    if line[end:end + 1] not in (b",", b"}", b"]"):
        raise NotJson
    return end


def _string(line, at):
    found = _STRING.match(line, at)
    if not found:
        raise Cut(None)
    return unescape(found[1]), found.end()


def _object(line, at, depth, members):
    if depth > MAX_DEPTH:
        raise NotJson
    at = _skip(line, at + 1)
    if line[at:at + 1] == b"}":
        return at + 1
    while True:
        if line[_more(line, at):at + 1] != b'"':
            raise NotJson
        key, at = _string(line, at)
        at = _more(line, _skip(line, at))
        if line[at:at + 1] != b":":
            raise NotJson
        begin = at = _skip(line, at + 1)
        at = _value(line, at, depth + 1, lambda value: members.__setitem__(key, value))
        at = _more(line, _skip(line, at))
        while line[at:at + 1] == b",":
            at = _more(line, _skip(line, at + 1))
            if line[at:at + 1] == b'"':
                break
            more = _bare(line, at) if line[begin:begin + 1] not in b'"{[' else at
            if more == at:
                raise NotJson
            members[key] = None
            at = more
        else:
            if line[at:at + 1] == b"}":
                return at + 1
            raise NotJson


def _array(line, at, depth, items):
    if depth > MAX_DEPTH:
        raise NotJson
    at = _skip(line, at + 1)
    if line[at:at + 1] == b"]":
        return at + 1
    while True:
        if line[at:at + 1] in (b",", b"}", b"]"):
            raise NotJson
        items.append(None)
        items.strings.append(line[at:at + 1] == b'"')
        at = _value(line, at, depth + 1, lambda value: items.__setitem__(-1, value))
        at = _more(line, _skip(line, at))
        if line[at:at + 1] == b"]":
            return at + 1
        if line[at:at + 1] != b",":
            raise NotJson
        at = _skip(line, at + 1)


def find(top, name, joins=False):
    """The value of a plain name or a JSON pointer as a field: bytes or None. `joins`: an array of
    strings is one list of them; any other array stands as it is written."""
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
    if joins and isinstance(value, List) and value.raw is not None:
        if all(isinstance(item, bytes) and written
               for item, written in zip(value, value.strings)):
            value = b",".join(item for item in value if item)
        else:
            value = value.raw
    return value if isinstance(value, bytes) and value else None
