# SPDX-License-Identifier: Apache-2.0
"""Operators' overrides: what is commanded for keys, slow and obvious.

A command is the body of a command record, a dict. Blocks and allows are for
events before their end, and are forgotten when the clock is past it and the
lateness; overrides hold while the clock is before their end.
"""

import copy

NO_END = 253402300800000
BY_MAX, REASON_MAX, ID_MAX, KEY_MAX = 64, 256, 64, 1024
OVERRIDES_MAX = 10000
KINDS = ("block", "lift", "allow", "override")
MEMBERS = {"command", "zone", "key", "key_hex", "until", "rate", "prefix", "by", "reason", "id"}
RATE_MAX = 10 ** 9
BURST_WINDOW_MAX = 4 * 10 ** 18


class Malformed(Exception):
    """A command that cannot be done."""


def _need(condition, words):
    if not condition:
        raise Malformed(words)


def thousandths(text):
    """What rates are multiplied by."""
    whole, point, digits = text.partition(".")
    _need(whole.isdigit() and whole.isascii(), "rate")
    _need(not point or (digits.isdigit() and digits.isascii() and len(digits) <= 3), "rate")
    number = int(whole) * 1000 + int((digits + "000")[:3])
    _need(1 <= number <= 100000, "rate")
    return number


def _text(body, name, most):
    value = body.get(name, "")
    _need(isinstance(value, str) and len(value.encode()) <= most, name)
    return value


def scaled(limit, times):
    """A limit with its rates multiplied by so many thousandths."""
    if times == 1000:
        return limit
    changed = copy.copy(limit)

    def more(number, least, most=RATE_MAX):
        return min(max(number * times // 1000, least), most)

    if limit.algorithm == "uniform":
        changed.interval = changed.window = min(-(-limit.interval * 1000 // times), 366 * 86400000)
    elif limit.algorithm == "queue":
        changed.length = more(limit.length, 1)
    else:
        changed.rate = more(limit.rate, 1)
        most = min(RATE_MAX, BURST_WINDOW_MAX // limit.window)
        if limit.algorithm == "token_bucket":
            changed.burst = more(limit.burst, 1, most)
        if limit.algorithm == "gcra":
            changed.burst = more(limit.burst, 0, most - 1)
    return changed


class Command:
    """A command that was read and checked, without a policy."""

    def __init__(self, body, join):
        _need(isinstance(body, dict) and not set(body) - MEMBERS, "members")
        self.kind = body.get("command")
        _need(self.kind in KINDS, "command")
        self.zone = body.get("zone")
        _need(isinstance(self.zone, str), "zone")
        _need(("key" in body) != ("key_hex" in body), "key")
        if "key" in body:
            values = body["key"]
            _need(isinstance(values, list) and len(values) <= 4
                  and all(isinstance(value, str) for value in values), "key")
            self.key, self.count = join([value.encode() for value in values]), len(values)
        else:
            self.key = bytes.fromhex(body["key_hex"])
            bare = self.key.replace(b"\\\\", b"").replace(b"\\|", b"")
            self.count = bare.count(b"|") + 1
        _need(len(self.key) <= KEY_MAX, "key")
        self.until = body.get("until", NO_END)
        _need(type(self.until) is int and 0 <= self.until <= NO_END, "until")
        _need(self.kind != "lift" or "until" not in body, "until")
        _need(self.kind == "override" or not {"rate", "prefix"} & set(body), "rate")
        self.times, self.prefix = 1000, False
        if self.kind == "override":
            _need(isinstance(body.get("rate"), str), "rate")
            self.times = thousandths(body["rate"])
            self.prefix = body.get("prefix", False)
            _need(isinstance(self.prefix, bool), "prefix")
        _need("by" in body, "by")
        self.by, self.reason = _text(body, "by", BY_MAX), _text(body, "reason", REASON_MAX)
        _text(body, "id", ID_MAX)

    def check(self, zone, sent_ms):
        """Whether it is for this zone, and ends after it was given."""
        fields = len(zone.key)
        count = 0 if not fields and not self.key else self.count
        _need(1 <= count <= fields if self.prefix else count == fields, "key")
        _need(self.kind == "allow" or self.until > sent_ms, "until")


class Overrides:
    """What was commanded last for each key and each prefix of keys of one partition."""

    def __init__(self, lateness_ms):
        self.lateness_ms = lateness_ms
        self.blocks, self.allows = {}, {}  # (zone id, key): until
        self.words = {}  # of blocks: by whom, and why
        self.rates = {}  # (zone id, key, is a prefix): (until, thousandths)

    def purge(self, clock_ms):
        """Forgets what has ended."""
        for kept in (self.blocks, self.allows):
            for place in [place for place, until in kept.items()
                          if until < NO_END and clock_ms > until + self.lateness_ms]:
                del kept[place]
        for place in [place for place, (until, _) in self.rates.items()
                      if until < NO_END and clock_ms >= until]:
            del self.rates[place]

    def keep_zones(self, zone_ids):
        """Drops what is commanded for other zones."""
        for kept in (self.blocks, self.allows, self.rates):
            for place in [place for place in kept if place[0] not in zone_ids]:
                del kept[place]

    def count(self):
        """Keys and prefixes that something holds for."""
        exact = set(self.blocks) | set(self.allows)
        exact |= {(zone, key) for zone, key, is_prefix in self.rates if not is_prefix}
        return len(exact) + sum(is_prefix for _, _, is_prefix in self.rates)

    def blocked(self, zone_id, key, t):
        """Whether an operator blocks an event."""
        return t < self.blocks.get((zone_id, key), -1)

    def allowed(self, zone_id, key, t):
        """Whether an operator lets an event pass, whatever its limits say."""
        return t < self.allows.get((zone_id, key), -1)

    def times(self, zone_id, key):
        """Thousandths that a key's rates are multiplied by."""
        exact = self.rates.get((zone_id, key, False))
        if exact:
            return exact[1]
        longest = max((prefix for zone, prefix, is_prefix in self.rates
                       if is_prefix and zone == zone_id and key.startswith(prefix)),
                      key=len, default=None)
        return 1000 if longest is None else self.rates[zone_id, longest, True][1]

    def apply(self, zone_id, command, sent_ms):
        """Changes the overrides; raises Malformed where there are too many."""
        place = (zone_id, command.key)
        ends = (command.kind == "lift" or (command.kind == "override" and command.times == 1000)
                or (command.kind == "allow" and command.until <= sent_ms))
        if command.kind == "override":
            place += (command.prefix,)
            known = place in self.rates or (not command.prefix and (
                place[:2] in self.blocks or place[:2] in self.allows))
        else:
            known = (place in self.blocks or place in self.allows
                     or place + (False,) in self.rates)
        _need(ends or known or self.count() < OVERRIDES_MAX, "too many orders")
        if command.kind == "override":
            self.rates.pop(place, None)
            if not ends:
                self.rates[place] = (command.until, command.times)
        elif command.kind == "block":
            self.allows.pop(place, None)
            self.blocks[place] = command.until
            self.words[place] = command.by, command.reason
        elif command.kind == "lift":
            self.blocks.pop(place, None)
        elif ends:
            self.allows.pop(place, None)
        else:
            self.blocks.pop(place, None)
            self.allows[place] = command.until
