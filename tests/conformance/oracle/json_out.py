# SPDX-License-Identifier: Apache-2.0
"""Compact JSON as weir writes it, from bytes that may not be UTF-8."""

import re

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
          "\t": "\\t"}
_PLAIN = re.compile('[^"\\\\\0-\x1f\x7f-\x9f\udc80-\udcff]*')  # what stays as it is


def _char(char):
    if char in _SHORT:
        return _SHORT[char]
    if char < " " or "\x7f" <= char <= "\x9f":
        return f"\\u{ord(char):04x}"
    if "\udc80" <= char <= "\udcff":  # a byte that is no part of UTF-8
        return "\ufffd"
    return char


def dumps(value):
    """The bytes of a value: dict, list, bytes, str, int, bool or None."""
    return _text(value).encode("utf-8")


def _text(value):
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        if _PLAIN.fullmatch(value):
            return f'"{value}"'
        return '"' + "".join(_char(char) for char in value) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(_text(name) + ":" + _text(member)
                              for name, member in value.items()) + "}"
    return "[" + ",".join(_text(item) for item in value) + "]"


def decision_line(decision_id, decision):
    """One line of the decisions file, with its newline."""
    return dumps({"id": decision_id, **decision}) + b"\n"
