# SPDX-License-Identifier: Apache-2.0
"""From a `format` of the configuration to records: time, cost and fields.

A record's fields are asked for by name, because which names there are is up
to the log: `fields` of the format renames, everything else keeps its name.
"""

import parse_json
import times
from addresses import client_ip, parse_network
from parse_lines import READY_PATTERNS, Combined, Delimited, Logfmt, Malformed, Pattern

COST_MAX = 2 ** 40
LINE_MAX = 65536


class Record:
    """One event's time, cost and fields."""

    def __init__(self, time, cost, field):
        self.time, self.cost, self._field, self.ip = time, cost, field, None
        self.has_client_ip = False

    def field(self, name):
        """The bytes of a field, or None."""
        if name == "ip" and self.has_client_ip:
            return self.ip
        return self._field(name)


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
            self.client = (client["header"],
                           [parse_network(text.encode()) for text in client["trusted"]])
        self.parser = _parser_of(kind, spec)

    def start(self):
        """Begins a new source."""
        if self.kind == "delimited":
            self.parser.start()

    def record(self, line):
        """The record of a line that is not empty; None for a line to skip.
        Raises Malformed."""
        if self.kind == "json":
            try:
                top = parse_json.parse_object(line)
            except parse_json.NotJson:
                raise Malformed("not json") from None
            look_up = lambda name: parse_json.find(top, name)
        else:
            fields = self.parser.parse(line)
            if fields is None:
                return None
            look_up = fields.get
        field = lambda name: look_up(self.renamed.get(name, name.encode()))
        record = Record(self._time(look_up(self.time_name)), self._cost(field), field)
        if self.client is not None:
            header, trusted = self.client
            record.ip = client_ip(field("ip"), field(header), trusted)
            record.has_client_ip = True
        return record

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
    if kind == "json":
        return None
    raise ValueError("unknown format " + kind)
