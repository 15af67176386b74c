#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A newcomer with a fresh Debian, nginx and sshd types what the README says, and whoever guesses passwords is blocked."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.machine import Machine
from support.package import fetched, packed
from support.place import ROOT, until

COMMANDS_MOST, SECONDS_MOST = 5, 120
LIST = "/var/lib/weir/gateways/nginx.map"
SERVER, GUESSER, OTHER, SSH_GUESSER = "192.0.2.1", "192.0.2.10", "192.0.2.20", "192.0.2.30"
OUTSIDE = "ip netns exec outside"


def commands():
    """Those of the README, as they stand there."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        block = re.search(r"```sh\n(apt install .*?)```", file.read(), re.DOTALL).group(1)
    return [re.sub(r"\s+# .*", "", line) for line in block.strip().splitlines()]


def post(machine, client):
    """The status of a POST to /login."""
    return machine.do(f"{OUTSIDE} curl -sS -o /dev/null -w '%{{http_code}}' --interface {client} -d x http://{SERVER}/login")


def ssh(machine, client):
    """What ssh says of a login by a user that there is not. One that the block meets in its middle says nothing."""
    return machine.run("timeout", "6", *OUTSIDE.split(), "ssh", "-b", client, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
                       "ConnectTimeout=2", f"nobody-knows@{SERVER}")[1]


def give_addresses(machine):
    """The clients are another machine's, at the end of a wire: what a machine says to itself is not dropped."""
    machine.do("ip netns add outside && ip link add wire type veth peer name wire netns outside")
    machine.do(f"ip address add {SERVER}/24 dev wire && ip link set wire up && ip -n outside link set lo up")
    for address in (GUESSER, OTHER, SSH_GUESSER):
        machine.do(f"ip -n outside address add {address}/24 dev wire")
    machine.do("ip -n outside link set wire up")


def nginx_alone(machine):
    """Milliseconds from a list that was changed by hand, and nginx's signal, to 429: nginx lets its old workers accept for
    a tenth of a second more."""
    address = "192.0.2.40"
    machine.do(f"ip -n outside address add {address}/24 dev wire")
    took = []
    for _ in range(3):
        machine.do(f"cd {os.path.dirname(LIST)} && cp -p nginx.map was && (cat was; echo '\"{address}\" 3;') >next && mv next nginx.map")
        signalled = time.monotonic()
        machine.do("kill -HUP $(cat /run/nginx.pid)")
        until(lambda: post(machine, address) == "429", "nginx answers 429", patience_s=20)
        took.append((time.monotonic() - signalled) * 1000)
        machine.do(f"cd {os.path.dirname(LIST)} && mv was nginx.map && nginx -s reload")
        until(lambda: post(machine, address) != "429", "nginx lets it in again", patience_s=20)
    machine.do(f"ip -n outside address del {address}/24 dev wire")
    return sorted(took)


def test_guessers_are_blocked(place):
    typed = commands()
    assert len(typed) <= COMMANDS_MOST, typed
    with Machine(fetched([packed(place, "out")])) as machine:
        give_addresses(machine)
        machine.do("systemctl is-active nginx ssh")
        started = time.monotonic()
        for line in typed:
            machine.do(f"cd /root && echo y | {line}")  # what apt asks is answered
        assert machine.do("systemctl is-active weir weir-nginx.service").split() == ["active", "active"]

        # Five are let through, and not long after the sixth nginx answers 429.
        answers = [post(machine, GUESSER) for _ in range(6)]
        sixth = time.monotonic()
        assert "429" not in answers[:5], answers
        until(lambda: post(machine, GUESSER) == "429", "nginx answers 429", patience_s=20)
        blocked = time.monotonic()
        assert post(machine, OTHER) != "429"
        # A worker of nginx from before the list may still take a connection.
        until(lambda: "Retry-After" in machine.do(f"{OUTSIDE} curl -sS -i --interface {GUESSER} http://{SERVER}/"),
              "nginx says until when", patience_s=20)

        for _ in range(6):
            assert "Permission denied" in ssh(machine, SSH_GUESSER)
        until(lambda: "timed out" in ssh(machine, SSH_GUESSER), "a connection is dropped", patience_s=20)
        dropped = time.monotonic()
        assert "Permission denied" in ssh(machine, OTHER)
        assert machine.do("weir list --state /var/lib/weir").count("192.0.2.") == 2
        print(f"{len(typed)} commands; 6th POST to 429: {(blocked - sixth) * 1000:.0f} ms; to the first dropped connection: "
              f"{dropped - started:.1f} s")
        assert dropped - started < SECONDS_MOST

        machine.do("systemctl stop weir-nginx weir")
        print(f"nginx alone: {' '.join(f'{took:.0f}' for took in nginx_alone(machine))} ms")
        machine.do("systemctl start weir weir-nginx")

        # The blocks outlast the machine's end.
        machine.restart()
        give_addresses(machine)
        units = "weir", "nginx", "ssh", "weir-nginx.service"
        until(lambda: machine.run("systemctl", "is-active", *units)[1].split() == ["active"] * 4, "weir and its gateways run again")
        assert "ordering cycle" not in machine.run("systemd-analyze", "verify", "default.target")[1]
        assert "timed out" in ssh(machine, SSH_GUESSER) and "Permission denied" in ssh(machine, OTHER)
        assert post(machine, GUESSER) == "429" and post(machine, OTHER) != "429"

        # Removing weir ends the blocks, and leaves the gateways as they were.
        machine.do("apt-get remove -q -y weir")
        assert post(machine, GUESSER) != "429" and "Permission denied" in ssh(machine, SSH_GUESSER)
        machine.do("nginx -t && ! grep -r weir /etc/nginx /etc/nftables.conf")


if __name__ == "__main__":
    cases.main(globals())
