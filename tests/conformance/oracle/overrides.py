# SPDX-License-Identifier: Apache-2.0
"""Operators' overrides: what is commanded for keys, slow and obvious.

A command is the body of a command record, a dict. Blocks and allows are for
events before their end, and are forgotten when the clock is past it and the
lateness; overrides hold while the clock is before their end. The clock is the
highest sending time from the newest command that changed something on.
"""

import copy

import addresses

NO_END = 253402300800000
BY_MAX, REASON_MAX, ID_MAX, KEY_MAX = 64, 256, 64, 1024
OVERRIDES_MAX = 10000
KINDS = ("block", "lift", "allow", "override")
MEMBERS = {"command", "zone", "key", "key_hex", "until", "rate", "prefix", "network", "by",
           "reason", "id"}
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


def network_of(text):
    """(packed, bits) of an address or a network without host bits, or None."""
    network = addresses.parse_network(text)
    if network is None or addresses.masked(*network) != network[0]:
        return None
    return network


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
        self.network = body.get("network", False)
        _need(isinstance(self.network, bool), "network")
        if self.network:
            packed, bits = network_of(self.key) or (b"", 0)
            _need(self.kind != "override" and self.count == 1 and 0 < bits < 8 * len(packed)
                  and self.key == addresses.text_of(packed) + b"/%d" % bits, "network")
        _need("by" in body, "by")
        self.by, self.reason = _text(body, "by", BY_MAX), _text(body, "reason", REASON_MAX)
        _text(body, "id", ID_MAX)

    def check(self, zone, sent_ms):
        """Whether it is for this zone, and ends after it was given."""
        fields = len(zone.key)
        count = 0 if not fields and not self.key else self.count
        if self.network:
            packed, bits = network_of(self.key)
            _need(fields == 1 and (zone.key[0].grouped or zone.key[0].name == "ip"), "by address")
            _need(bits < (zone.key[0].prefix4 if len(packed) == 4 else zone.key[0].prefix6), "wider")
        _need(1 <= count <= fields if self.prefix else count == fields, "key")
        _need(self.kind == "allow" or self.until > sent_ms, "until")


class Overrides:
    """What was commanded last for each key, prefix of keys and network of one partition."""

    def __init__(self, lateness_ms):
        self.lateness_ms = lateness_ms
        self.clock_ms = 0
        self.blocks, self.allows = {}, {}  # (zone id, key): until
        self.net_blocks, self.net_allows = {}, {}  # (zone id, a network's text): until
        self.words = {}  # of blocks: by whom, and why
        self.net_words = {}
        self.rates = {}  # (zone id, key, is a prefix): (until, thousandths)

    def advance(self, sent_ms):
        """Forgets what has ended when a record comes."""
        self.clock_ms = clock_ms = max(self.clock_ms, sent_ms)
        for kept in (self.blocks, self.allows, self.net_blocks, self.net_allows):
            for place in [place for place, until in kept.items()
                          if until < NO_END and clock_ms > until + self.lateness_ms]:
                del kept[place]
        for place in [place for place, (until, _) in self.rates.items()
                      if until < NO_END and clock_ms >= until]:
            del self.rates[place]

    def keep_zones(self, zone_ids):
        """Drops what is commanded for other zones."""
        for kept in (self.blocks, self.allows, self.net_blocks, self.net_allows, self.rates):
            for place in [place for place in kept if place[0] not in zone_ids]:
                del kept[place]

    def count(self):
        """Keys, prefixes and networks that something holds for."""
        exact = set(self.blocks) | set(self.allows)
        exact |= {(zone, key) for zone, key, is_prefix in self.rates if not is_prefix}
        return (len(exact) + sum(is_prefix for _, _, is_prefix in self.rates)
                + len(set(self.net_blocks) | set(self.net_allows)))

    def blocked_alone(self, zone_id, key, t, network):
        """Whether there is a block of just this key, or network."""
        return t < (self.net_blocks if network else self.blocks).get((zone_id, key), -1)

    def blocked_until(self, zone_id, key, t):
        """When the block of just this key ends that holds at t; -1: there is none."""
        until = self.blocks.get((zone_id, key), -1)
        return until if t < until else -1

    def _word(self, zone_id, key, t):
        """What is commanded for an event: by the narrowest of its key and the networks that hold it."""
        found = [(1000, word) for word, kept in (("block", self.blocks), ("allow", self.allows))
                 if t < kept.get((zone_id, key), -1)]
        member = network_of(key)
        for word, kept in (("block", self.net_blocks), ("allow", self.net_allows)):
            for (zone, text), until in kept.items():
                network = network_of(text)
                if (zone == zone_id and t < until and member and network[1] <= member[1]
                        and addresses.contains(network, member[0])):
                    found.append((network[1], word))
        return max(found)[1] if found else None

    def blocked(self, zone_id, key, t):
        """Whether an operator blocks an event."""
        return self._word(zone_id, key, t) == "block"

    def allowed(self, zone_id, key, t):
        """Whether an operator lets an event pass, whatever its limits say."""
        return self._word(zone_id, key, t) == "allow"

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
        blocks, allows, words = self.blocks, self.allows, self.words
        if command.network:
            blocks, allows, words = self.net_blocks, self.net_allows, self.net_words
        ends = (command.kind == "lift" or (command.kind == "override" and command.times == 1000)
                or (command.kind == "allow" and command.until <= sent_ms))
        if command.kind == "override":
            place += (command.prefix,)
            known = place in self.rates or (not command.prefix and (
                place[:2] in self.blocks or place[:2] in self.allows))
        else:
            known = (place in blocks or place in allows
                     or (not command.network and place + (False,) in self.rates))
        _need(ends or known or self.count() < OVERRIDES_MAX, "too many orders")
        if not ends:
            self.clock_ms = sent_ms
        if command.kind == "override":
            self.rates.pop(place, None)
            if not ends:
                self.rates[place] = (command.until, command.times)
        elif command.kind == "block":
            allows.pop(place, None)
            blocks[place] = command.until
            words[place] = command.by, command.reason
        elif command.kind == "lift":
            blocks.pop(place, None)
        elif ends:
            allows.pop(place, None)
        else:
            blocks.pop(place, None)
            allows[place] = command.until
