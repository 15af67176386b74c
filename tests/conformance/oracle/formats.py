# SPDX-License-Identifier: Apache-2.0
"""From a `format` of the configuration to records: time, cost and fields.

A record's fields are asked for by name, because which names there are is up
to the log: `fields` of the format renames, everything else keeps its name.
"""

import re

import addresses
import hosts
import methods
import parse_json
import paths
import times
from parse_lines import READY_PATTERNS, Combined, Delimited, Logfmt, Malformed, Pattern
from parse_ready import READY_PARSERS

COST_MAX = 2 ** 40
LINE_MAX = 262144


class Record:
    """One event's time, cost and fields."""

    def __init__(self, time, cost, field):
        self.time, self.cost, self._field = time, cost, field
        self.settled = {}

    source = None

    def field(self, name):
        """The bytes of a field, or None."""
        if name not in self.settled:
            self.settled[name] = self._one(name)
        return self.settled[name]

    def _one(self, name):
        value = self._field(name)
        if name == "path":
            return None if value is None else paths.served(value)
        if name == "host":
            return hosts.served(value) if value else value
        if name == "method":
            return None if value is None else methods.served(value)
        if name == "target":
            return self._field("path") if value is None else value
        return addresses.canonical(value) if name == "ip" and value is not None else value


_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b'"': b'"', b"\\": b"\\"}


def _unescaped(text):
    """A value of an access log without its escapes."""
    return re.sub(rb'\\(?:x([0-9a-fA-F]{2})|([bfnrtv"\\]))',
                  lambda found: bytes([int(found[1], 16)]) if found[1] else _LETTERS[found[2]], text)


def _without_hashes(text):
    """A value of HAProxy's log without its escapes."""
    return re.sub(rb"#([0-9a-fA-F]{2})", lambda found: bytes([int(found[1], 16)]), text)


# What a format's server has escaped, and how that is undone. None: all that a client writes.
_ESCAPED = {"combined": (None, _unescaped), "common": (None, _unescaped), "ingress_nginx": (None, _unescaped),
            "delimited": (("path", "target"), _unescaped), "pattern": (("path", "target"), _unescaped),
            "zeek": (("path", "target"), _unescaped), "haproxy": (("path", "target"), _without_hashes)}


class Format:
    """One `format` of the configuration; keeps a delimited file's header."""

    def __init__(self, spec):
        if isinstance(spec, str):
            spec = {"type": spec}
        if spec is None:
            raise ValueError("a source has no \"format\"")
        kind = spec["type"]
        self.kind = kind
        self.renamed = {name: source.encode() for name, source in spec.get("fields", {}).items()}
        self.time_name = spec.get("time", "time").encode()
        self.unit = spec.get("unit")
        self.zone = times.zone_of(spec.get("time_zone", "UTC"))
        self.year = spec.get("year")
        self.cost_name = spec.get("cost")
        client = spec.get("client_ip")
        self.client = None
        if client is not None:
            self.client = (client["header"], [text if text == "unix:" else
                                              addresses.parse_network(text.encode())
                                              for text in client["trusted"]])
        self.parser = _parser_of(kind, spec)

    def start(self):
        """Begins a new source."""
        if self.kind == "delimited":
            self.parser.start()

    def long_record(self, line):
        """The record of the first bytes of a line above the limit. Raises Malformed."""
        try:
            if self.kind in ("combined", "common", "json"):
                return self.record(line, True)
        except Malformed:
            pass
        raise Malformed("line too long")

    def record(self, line, is_cut=False):
        """The record of a line that is not empty; None for a line to skip.
        Raises Malformed."""
        if self.kind == "json":
            try:
                top, cut = parse_json.parse_object(line), False
            except parse_json.Cut as why:
                top, cut = why.args[0], True
            except parse_json.NotJson:
                raise Malformed("not json") from None
            lists = () if self.client is None else {
                self.renamed.get(name, name.encode()) for name in ("ip", self.client[0])}
            look_up = lambda name: parse_json.find(top, name, name in lists)
        else:
            fields = self.parser.parse(line)
            if fields is None:
                return None
            cut = fields.get(None, False)
            look_up = fields.get
        escaped, undo = _ESCAPED.get(self.kind, ((), None))
        if self.kind == "logfmt":
            escaped, undo = [name for name in ("path", "target")
                             if self.renamed.get(name, name.encode()) in self.parser.bare], _unescaped
        if escaped and self.client is not None and self.kind != "logfmt":
            escaped = (*escaped, self.client[0])

        def field(name):
            value = look_up(self.renamed.get(name, name.encode()))
            return undo(value) if value is not None and undo and (escaped is None or name in escaped) else value
        if self.kind == "json" and cut and look_up(self.time_name) is None:
            raise Malformed("not json")
        time = self._time(look_up(self.time_name))
        record = Record(time, self._cost(field), field)
        if self.client is not None:
            self._settle_client(record, field, cut or is_cut)
        elif self.kind == "json" and cut and field("ip") is None:
            raise Malformed("not json")
        return record

    def _settle_client(self, record, field, cut):
        header, trusted = self.client
        value = field(header)
        try:
            ip = addresses.client_ip(field("ip"), value, trusted, cut)
        except addresses.NoClient:
            raise Malformed("no client") from None
        record.settled["ip"] = None if ip is None else addresses.canonical(ip)

    def _time(self, text):
        if text is None:
            raise Malformed("no time")
        try:
            return times.parse(text, self.unit, self.zone, self.year)
        except times.BadTime:
            raise Malformed("bad time") from None
        except times.OutOfRange:
            raise Malformed("time out of range") from None

    def _cost(self, field):
        text = None if self.cost_name is None else field(self.cost_name)
        if text is None:
            return 1
        digits = text.lstrip(b"0") or b"0"
        if not (text.isdigit() and len(digits) < 20 and int(digits) <= COST_MAX):
            raise Malformed("bad cost")
        return int(digits)


def _parser_of(kind, spec):
    if kind in ("combined", "common"):
        return Combined(kind)
    if kind == "delimited":
        columns = spec.get("columns")
        quote = spec.get("quote")
        return Delimited(spec.get("separator", "\t").encode(), spec.get("header", True),
                         columns and [name.encode() for name in columns],
                         quote and quote.encode())
    if kind == "logfmt":
        return Logfmt()
    if kind == "pattern":
        return Pattern(spec["pattern"], False, spec.get("unmatched"))
    if kind in READY_PATTERNS:
        return Pattern(READY_PATTERNS[kind], True, spec.get("unmatched"))
    if kind in READY_PARSERS:
        return READY_PARSERS[kind]()
    if kind == "json":
        return None
    raise ValueError("unknown format " + kind)
