# SPDX-License-Identifier: Apache-2.0
"""Loopback ports for servers that come and go.

They are taken from below the range of which the kernel gives ports to outgoing
connections: while a server is down, its port must not become the local end of
somebody's connection, and a client that tries it again and again must not
reach itself.
"""

import random
import socket

_FIRST = 10000
_TRIES = 1000
_RANGE_FILE = "/proc/sys/net/ipv4/ip_local_port_range"
_given = set()  # by this process: whoever was given one may be about to listen there, or be down for a while


def _ephemeral_from():
    try:
        with open(_RANGE_FILE, encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError):
        return 32768


def is_free(port):
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """So many different ports that nobody listens on."""
    last = _ephemeral_from() - 1
    if last - _FIRST < 1000:
        return _any_ports(count)
    found = set()
    for _ in range(_TRIES):
        port = random.randint(_FIRST, last)
        if port not in _given and is_free(port):
            found.add(port)
        if len(found) == count:
            _given.update(found)
            return list(found)
    return _any_ports(count)


def _any_ports(count):
    """Where the kernel keeps almost all ports to itself: those that it gives."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
