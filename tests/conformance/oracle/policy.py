# SPDX-License-Identifier: Apache-2.0
"""Zones of the configuration: who is in a zone, under which key, with which limits."""

import re

import addresses
import hosts
import methods
import paths

_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
_STATUS = re.compile(r"[0-9]xx|[0-9]{3}")


def duration_ms(text):
    """Milliseconds of "250ms", "10s", "1m", "1h", "1d"."""
    number, unit = _DURATION.fullmatch(text).groups()
    return int(number) * _UNIT_MS[unit]


def wildcard(pattern, value, small=False):
    """Whether a value matches a text in which `*` is any run of bytes. small: letters of ASCII are alike."""
    text = pattern.encode("utf-8", "surrogateescape")
    if small:
        text, value = text.lower(), value.lower()
    parts = [re.escape(part) for part in text.split(b"*")]
    return re.fullmatch(b".*".join(parts), value, re.DOTALL) is not None


def as_path(text):
    """A path of the policy as records have it; one with a query, a fragment or a star stays as it is."""
    plain = text.startswith(b"/") and not set(b"?#*") & set(text)
    return paths.served(text) if plain else text


def as_methods(text):
    """What a method of the policy stands for: a pattern with small letters for its capitals, too."""
    raw = text.encode("utf-8", "surrogateescape")
    forms = {raw, raw.upper()} if b"*" in raw else {methods.served(raw)}
    return [form.decode("utf-8", "surrogateescape") for form in sorted(forms)]


class Filter:
    """A `match`: fields ANDed, the values of one field ORed; `not` is the opposite of that."""

    def __init__(self, spec):
        self.tests = []
        for name, values in spec.items():
            if not isinstance(values, dict):
                values = {"is": values}
            small = bool(values.get("ignore_case"))
            for how, listed in values.items():
                if how == "ignore_case":
                    continue
                listed = listed if isinstance(listed, list) else [listed]
                if name == "path":
                    listed = [as_path(value.encode()).decode("utf-8", "surrogateescape") for value in listed]
                if name == "host":
                    listed = [hosts.served(value.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape") for value in listed]
                if name == "method":
                    listed = [form for value in listed for form in as_methods(value)]
                self.tests.append((name, listed, how == "is", small))

    def matches(self, record):
        """Whether a record is of this filter."""
        return all(self._one(name, values, record.field(name), small) == wanted
                   for name, values, wanted, small in self.tests)

    @staticmethod
    def _one(name, values, value, small):
        if value is None:
            return False
        if name != "status":
            packed = addresses.read(value)
            return any(wildcard(pattern, value, small) or packed is not None and any(
                addresses.contains(network, packed)
                for network in addresses.parse_networks(pattern.encode("utf-8", "surrogateescape"))) for pattern in values)
        for pattern in values:
            pattern = str(pattern)
            assert _STATUS.fullmatch(pattern)
            if pattern.endswith("xx"):
                if re.fullmatch(pattern[0].encode() + rb"[0-9][0-9]", value):
                    return True
            elif pattern.encode() == value:
                return True
        return False


class Exempt:
    """What is let through unseen: networks and words of a key, records by their fields."""

    def __init__(self, spec):
        self.networks, self.words, self.filters = [], set(), []
        for entry in spec:
            if not isinstance(entry, dict):
                self._add(entry.encode())
            elif "verified" in entry:
                pass  # a run to the end asks no name server
            elif "file" in entry or isinstance(entry.get("list"), str):
                with open(entry.get("file", entry.get("list")), "rb") as listing:
                    lines = [line.strip() for line in listing.read().split(b"\n")]
                for line in lines:
                    if line and not line.startswith((b"#", b";")):
                        self._add(re.split(rb"[ \t]+#(?:[ \t]|$)", line, maxsplit=1)[0])
            else:
                self.filters.append(Filter(entry))

    def _add(self, entry):
        networks = addresses.parse_networks(entry)
        self.networks += networks
        if not networks:
            self.words.add(entry)

    def holds(self, value, names):
        """Whether a key's value, before grouping, is one of the words, which may be paths or methods where the key has one."""
        return any(wildcard(word.decode(), value) or "path" in names and as_path(word) == value
                   or "method" in names and methods.served(word) == value for word in self.words)

    def holds_address(self, value):
        """Whether an address is in one of the networks."""
        if value is None or not self.networks:
            return False
        packed = addresses.read(value)
        return packed is not None and any(
            addresses.contains(network, packed) for network in self.networks)


def listed(spec):
    """The entries of an `exempt`."""
    return [spec] if isinstance(spec, dict) else spec


class KeyField:
    """One field of a key template, grouped by prefix or as it stands."""

    def __init__(self, spec):
        if isinstance(spec, str):
            spec = {"field": spec}
        self.name = spec["field"]
        self.grouped = "prefix4" in spec or "prefix6" in spec
        self.prefix4, self.prefix6 = spec.get("prefix4", 32), spec.get("prefix6", 128)

    def value(self, raw):
        """The value of the key for a field's own value."""
        return addresses.group(raw, self.prefix4, self.prefix6) if self.grouped else raw


class Limit:
    """One limit's algorithm and parameters, times in ms."""

    def __init__(self, spec):
        self.algorithm = spec["algorithm"]
        self.rate = spec.get("rate")
        self.window = duration_ms(spec["window"]) if "window" in spec else None
        self.precision = duration_ms(spec.get("precision", "0ms"))
        self.lateness = duration_ms(spec.get("lateness", "0s"))
        self.offset = duration_ms(spec.get("offset", "0s"))
        self.penalize = spec.get("penalize", False)
        self.burst = spec.get("burst", self.rate)
        self.length = spec.get("length")
        self.hold = duration_ms(spec["hold"]) if "hold" in spec else None
        self.done = Filter(spec["done"]) if "done" in spec else None
        self.interval = duration_ms(spec["interval"]) if "interval" in spec else None
        if self.algorithm == "uniform":
            self.rate, self.window = 1, self.interval

    def same_as(self, other):
        """Whether a changed policy's limit goes on where this one stood."""
        return self.described() == other.described()

    def memory_ms(self):
        """How long after its last event a bucket can still matter (forgetting)."""
        if self.algorithm == "queue":
            return self.hold
        if self.algorithm == "token_bucket":
            return -(-self.burst * self.window // self.rate)
        if self.algorithm == "gcra":
            return -(-(self.burst + 1) * self.window // self.rate)
        # a precision of 1 ms is none: times are whole milliseconds as they are
        return self.window + self.lateness + (self.precision if self.precision > 1 else 0)

    def described(self):
        """The `limit` member of a decision."""
        said = {"algorithm": self.algorithm}
        if self.algorithm == "uniform":
            said["interval"] = self.interval
        elif self.algorithm == "queue":
            said.update(length=self.length, hold=self.hold)
        elif self.algorithm == "gcra":
            said.update(burst=self.burst, rate=self.rate, window=self.window)
        else:
            said.update(rate=self.rate, window=self.window)
            if self.algorithm == "sliding_window" and self.precision > 1:
                said["precision"] = self.precision
            if self.algorithm == "sliding_window" and self.lateness:
                said["lateness"] = self.lateness
            if self.algorithm == "fixed_window" and self.offset:
                said["offset"] = self.offset
            if self.algorithm == "token_bucket":
                said["burst"] = self.burst
                if self.penalize:
                    said["penalize"] = True
        return said


class Zone:
    """One zone of the policy."""

    def __init__(self, spec, exempt=()):
        self.id, self.name = spec.get("id"), spec["name"]
        self.key = [KeyField(field) for field in spec["key"]]
        self.match = Filter(spec.get("match", {}))
        self.exempt = Exempt([*listed(exempt), *listed(spec.get("exempt", []))])
        self.limits = [Limit(limit) for limit in spec["limits"]]
        self.counts_all = spec.get("count", "passed") == "all"
        block_for = spec.get("block_for", "0s")
        self.escalates = isinstance(block_for, list)
        self.blocks = [duration_ms(one) for one in (block_for if self.escalates else [block_for])]
        self.block_for = self.blocks[0]
        self.forgive_after = 0
        if self.escalates:
            self.forgive_after = duration_ms(spec.get("forgive_after", block_for[-1]))
        mode = spec.get("mode", "enforce")
        if isinstance(mode, dict):
            mode = "enforce" if "armed" in mode["shadow_until"] else "shadow"
        self.mode = mode
        self.sources = spec.get("sources", [])
        self.takes_lines = spec.get("feed", "both") != "check"

    def takes(self, record):
        """(key values, "judge" or "done") of a record in this zone, or None."""
        raw = [record.field(field.name) for field in self.key]
        names = {field.name for field in self.key}
        if not self.takes_lines or None in raw or any(self.exempt.holds(value, names) for value in raw):
            return None
        of_address = [field.name for field in self.key if field.grouped or field.name == "ip"]
        if any(known.matches(record) for known in self.exempt.filters):
            return None
        source = getattr(record, "source", None)
        if (self.sources or source == "decisions") and source not in self.sources:
            return None
        if any(self.exempt.holds_address(record.field(name)) for name in of_address or ["ip"]):
            return None
        values = tuple(field.value(value) for field, value in zip(self.key, raw))
        if any(limit.done is not None and limit.done.matches(record) for limit in self.limits):
            return values, "done"
        return (values, "judge") if self.match.matches(record) else None


def zones_of(config):
    """The zones of a configuration, which all have its `exempt` beside their own."""
    return [Zone(zone, config.get("exempt", [])) for zone in config["zones"]]
