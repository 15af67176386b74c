# SPDX-License-Identifier: Apache-2.0
"""The host that a client asked for, in its one form: the field `host`."""

import ipaddress
import re

_HOST = re.compile(rb"((?:[A-Za-z0-9._*\x80-\xff-]+|\[[0-9A-Fa-f:.]+\]))(?::.*)?", re.DOTALL)


def _is_bare_address(host):
    """IPv6 without brackets, perhaps with a zone."""
    try:
        return ipaddress.IPv6Address(host.partition(b"%")[0].decode("ascii")) is not None
    except ValueError:
        return False


def served(host):
    """The one form of a host; anything else as it is."""
    found = _HOST.fullmatch(host)
    if not found or len(found[1]) > 256 or found[1].endswith(b"..") or _is_bare_address(host):
        return host
    name = found[1][:-1] if found[1].endswith(b".") and len(found[1]) > 1 else found[1]
    return re.sub(rb"[A-Z]", lambda capital: capital[0].lower(), name)
