# SPDX-License-Identifier: Apache-2.0
"""IP addresses as the policy sees them: parsing, canonical text, networks, hops."""

import ipaddress
import re
import socket

_MAPPED = b"\0" * 10 + b"\xff\xff"
_V4_PORT = re.compile(rb"([0-9.]+):[0-9]{1,5}")
_BRACKETS = re.compile(rb"\[([^\[\]]*)\](?::[0-9]{1,5})?")
_V6_ZONE = re.compile(rb"([^%]*:[^%]*)%.*", re.DOTALL)


def parse(text):
    """The packed address (4 or 16 bytes) of a text, v4-mapped unwrapped, or None."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, text.decode("ascii"))
        except (OSError, ValueError):
            continue
        return packed[12:] if packed[:12] == _MAPPED and len(packed) == 16 else packed
    return None


def read(text):
    """The packed address of a text as logs write it, with a port, brackets, a link's zone or blanks around it, or None."""
    text = text.strip(b" \t")
    packed = parse(text)
    if packed is not None:
        return packed
    found = _V4_PORT.fullmatch(text)
    if found:
        return parse(found[1])
    found = _BRACKETS.fullmatch(text)
    inside = found[1] if found else text
    zoned = _V6_ZONE.fullmatch(inside)
    inside = zoned[1] if zoned else inside
    return parse(inside) if found or b":" in inside else None


def canonical(text):
    """A value of `ip`: the canonical text of an address, anything else as it stands."""
    packed = read(text)
    return text if packed is None else text_of(packed)


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
    packed = read(text)
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


def parse_networks(text):
    """Every network of an address, a network or a range "a-b"; [] if it is none of them."""
    first, dash, last = text.partition(b"-")
    if not dash:
        text = text.strip(b" \t")
        bare = re.fullmatch(rb"\[([^\]%]*)\](/.*)?|([^%/\[]*:[^%/\[]*)%[^/]*", text, re.DOTALL)
        if bare:
            text = bare[3] if bare[3] is not None else bare[1] + (bare[2] or b"")
        network = parse_network(text)
        return [] if network is None else [network]
    first, last = parse(first.strip(b" \t")), parse(last.strip(b" \t"))
    if first is None or last is None or len(first) != len(last) or first > last:
        return []
    found = ipaddress.summarize_address_range(ipaddress.ip_address(first), ipaddress.ip_address(last))
    return [(network.network_address.packed, network.prefixlen) for network in found]


def contains(network, packed):
    """Whether a parsed network holds a packed address."""
    base, bits = network
    return len(base) == len(packed) and masked(packed, bits) == masked(base, bits)


class NoClient(Exception):
    """A trusted proxy does not say for whom it asked."""


def _strip(text):
    """The text without the blanks around it: also '+' and "%20", as logs in columns write them."""
    return re.sub(rb"\A(?:[ \t+]|%20)+|(?:[ \t+]|%20)+\Z", b"", text)


def _elements(text):
    """The elements of a list, the last one first; a comma within quotes separates nothing. Quotes
    are counted from the right: what lies left of an element says nothing about it."""
    end = at = len(text)
    quoted = False
    while at > 0:
        at -= 1
        byte = text[at:at + 1]
        if byte == b"," and not quoted:
            yield _strip(text[at + 1:end])
            end = at
        elif byte == b'"':
            before = text[:at]
            if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
                quoted = not quoted
    yield _strip(text[:end])


def _node(element):
    """What an element names: itself, or the value of RFC 7239's `for=`."""
    def bare(value):
        return value[1:-1] if len(value) > 1 and value[:1] == value[-1:] == b'"' else value

    if b"=" not in element:
        return bare(element)
    pairs, pair, quoted, escaped = [], b"", False, False
    for byte in (element[i:i + 1] for i in range(len(element))):
        if byte == b";" and not quoted:
            pairs.append(pair)
            pair = b""
            continue
        pair += byte
        if escaped:
            escaped = False
        elif quoted and byte == b"\\":
            escaped = True
        elif byte == b'"':
            quoted = not quoted
    for pair in pairs + [pair]:
        name, equals, value = pair.partition(b"=")
        if equals and _strip(name).lower() == b"for":
            return bare(_strip(value))
    return b""


def client_ip(peer, header, trusted, cut=False):
    """The rightmost hop that is not trusted, of `header` and then `peer`.

    peer and header are bytes or None; trusted is a list of parsed networks, and "unix:".
    A peer with a name is the client. Any other hop that is no address names nobody: NoClient.
    So does the absence of the header, or of the peer, in a line that is cut. A header of "-" is none."""
    if peer is None and cut:
        raise NoClient
    lists = []
    if peer is not None and read(_strip(peer)) is not None:
        peer = _strip(peer)
    client = peer
    if peer == b"unix:" and "unix:" in trusted:
        client = None
    elif peer is not None:
        if b"," not in peer and b"=" not in peer and read(peer) is None:
            return peer
        lists.append(peer)
    if header not in (None, b"-"):
        lists.append(header)
    for which in lists:
        for element in _elements(which):
            if not element:
                continue
            packed = read(_node(element))
            if packed is None:
                raise NoClient
            client = _node(element)
            if not any(contains(network, packed) for network in trusted if network != "unix:"):
                return client
    if header is None and cut:
        raise NoClient
    return client
