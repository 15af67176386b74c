# SPDX-License-Identifier: Apache-2.0
"""IP addresses as the policy sees them: parsing, canonical text, networks, hops."""

import re
import socket

_MAPPED = b"\0" * 10 + b"\xff\xff"
_V4_PORT = re.compile(rb"([0-9.]+):[0-9]{1,5}")
_V6_BRACKETS = re.compile(rb"\[([^\[\]]*)\](?::[0-9]{1,5})?")


def parse(text):
    """The packed address (4 or 16 bytes) of a text, v4-mapped unwrapped, or None."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, text.decode("ascii"))
        except (OSError, ValueError):
            continue
        return packed[12:] if packed[:12] == _MAPPED and len(packed) == 16 else packed
    return None


def text_of(packed):
    """The canonical text of a packed address."""
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, packed).encode()


def masked(packed, bits):
    """The address with all bits after the first `bits` cleared."""
    width = len(packed) * 8
    number = int.from_bytes(packed, "big") >> (width - bits) << (width - bits)
    return number.to_bytes(len(packed), "big")


def group(text, prefix4, prefix6):
    """A key's value grouped by prefix: a network, or the value if it is no address."""
    packed = parse(text)
    if packed is None:
        return text
    bits = prefix4 if len(packed) == 4 else prefix6
    if bits == len(packed) * 8:
        return text_of(packed)
    return text_of(masked(packed, bits)) + b"/%d" % bits


def parse_network(text):
    """(packed, bits) of an address or a network, or None if it is neither."""
    address, slash, length = text.partition(b"/")
    packed = parse(address)
    if packed is None:
        return None
    width = len(packed) * 8
    if not slash:
        return packed, width
    if not re.fullmatch(rb"[0-9]{1,3}", length):
        return None
    bits = int(length)
    if len(packed) == 4 and b":" in address:
        bits -= 96
    if not 0 <= bits <= width:
        return None
    return packed, bits


def contains(network, packed):
    """Whether a parsed network holds a packed address."""
    base, bits = network
    return len(base) == len(packed) and masked(packed, bits) == masked(base, bits)


def client_ip(peer, header, trusted):
    """The rightmost hop that is not trusted, of `header` and then `peer`.

    peer and header are bytes or None; trusted is a list of parsed networks.
    A hop that is no address ends the walk: what lies left of it was written
    by nobody who is trusted."""
    hops = [] if header is None else [hop.strip(b" \t") for hop in header.split(b",")]
    if peer is not None:
        hops.append(peer)
    client = peer
    for hop in reversed(hops):
        found = _V4_PORT.fullmatch(hop) or _V6_BRACKETS.fullmatch(hop)
        if found:
            hop = found[1]
        packed = parse(hop)
        if packed is None:
            break
        client = hop
        if not any(contains(network, packed) for network in trusted):
            break
    return client
