# SPDX-License-Identifier: Apache-2.0
"""A network namespace of a test's own, in which nftables may be used and a server listens on port 8080."""

import os
import subprocess
import sys

from support import cases
from support.gateways import program
from support.place import PATIENCE_S, until


class Network:
    """A network namespace in which nft may be used; gone with the process that holds it."""

    RULES = """
        add table inet weir
        add set inet weir blocked { type ipv4_addr; flags timeout; }
        add set inet weir blocked6 { type ipv6_addr; flags interval, timeout; }
        add chain inet weir input { type filter hook input priority 0; }
        add rule inet weir input tcp dport 8080 ip saddr @blocked reject with tcp reset
        add rule inet weir input tcp dport 8080 ip6 saddr @blocked6 reject with tcp reset
    """

    def __init__(self, place):
        self.place = place
        nft, unshare, nsenter = program("nft"), program("unshare"), program("nsenter")
        words = ["--net"] if os.geteuid() == 0 else ["--net", "--user", "--map-root-user"]
        may = subprocess.run([unshare, *words, nft, "add", "table", "inet", "weir"], capture_output=True, check=False,
                             timeout=PATIENCE_S)
        if may.returncode != 0:
            raise cases.Skipped(f"nft cannot be used here, in a network namespace: {may.stderr.decode().strip()}")
        self.holder = place.start(*words, "sh", "-c", "echo ready; exec sleep 3600", program=unshare)
        until(self.holder.out, "the namespace", running=self.holder)
        self.enter = [nsenter, "--target", str(self.holder.pid), "--net"]
        if os.geteuid() != 0:
            self.enter += ["--user", "--preserve-credentials"]
        self.run = f"exec {' '.join(self.enter)} {nft} \"$@\"\n"
        self.let_nft("")
        self.environment = {**os.environ, "PATH": f"{place.path('bin')}:{os.environ['PATH']}"}
        for command in ("ip link set lo up", "ip address add 203.0.113.9/32 dev lo",
                        "ip address add 203.0.113.10/32 dev lo", "ip address add 2001:db8::9/128 dev lo nodad"):
            self.good(*command.split())
        self.nft(self.RULES)
        self.server = place.start(*self.enter[1:], sys.executable, "-m", "http.server", "8080", "--bind", "::",
                                  "--directory", place.path("bin"), program=self.enter[0])
        until(lambda: self.is_let_in("203.0.113.10"), "the server answers", running=self.server)

    def let_nft(self, first):
        """What weir finds as nft does this first."""
        wrapper = self.place.write("bin/nft.new", f"#!/bin/sh\n{first}\n{self.run}")
        os.chmod(wrapper, 0o755)
        os.replace(wrapper, self.place.path("bin/nft"))

    def good(self, *words, **more):
        """Runs a program in the namespace: its output."""
        more.setdefault("timeout", 4 * PATIENCE_S)
        done = subprocess.run([*self.enter, *words], capture_output=True, check=False, **more)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode()

    def nft(self, script):
        """Runs a script of nft."""
        return self.good("nft", "-f", "-", input=script.encode())

    def elements(self, name):
        """The lines of a set that tell of elements."""
        return self.good("nft", "list", "set", "inet", "weir", name).partition("elements = ")[2]

    def is_let_in(self, source, host="127.0.0.1", patience_s=10, enter=None):
        """Whether a connection from an address is accepted. enter: the words that begin it elsewhere."""
        script = ("import socket, sys\n"
                  "try: socket.create_connection((sys.argv[1], 8080), float(sys.argv[3]), (sys.argv[2], 0)).close()\n"
                  "except OSError: sys.exit(9)\n")
        done = subprocess.run([*(enter or self.enter), sys.executable, "-c", script, host, source, str(patience_s)],
                              check=False, timeout=patience_s + PATIENCE_S)
        assert done.returncode in (0, 9)
        return done.returncode == 0


class Outside:
    """Another machine, in a namespace of its own, joined by a wire: what it sends is not loopback traffic."""

    HOST = "192.0.2.1"  # the first machine's end

    def __init__(self, network, *sources):
        """sources: its addresses, of 192.0.2.0/24."""
        self.network = network
        holder = network.place.start(*network.enter[1:], program("unshare"), "--net", "sh", "-c",
                                     "echo ready; exec sleep 3600", program=network.enter[0])
        until(holder.out, "the other namespace", running=holder)
        self.enter = [*network.enter]
        self.enter[network.enter.index("--target") + 1] = str(holder.pid)
        wire = ("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(holder.pid))
        made = subprocess.run([*network.enter, *wire], check=False, stderr=subprocess.PIPE, timeout=PATIENCE_S)
        if made.returncode != 0:
            raise cases.Skipped(f"no wire between namespaces can be made here: {made.stderr.decode().strip()}")
        for command in (f"ip address add {self.HOST}/24 dev wire", "ip link set wire up"):
            network.good(*command.split())
        for command in ("ip link set lo up", *(f"ip address add {one}/24 dev wire" for one in sources),
                        "ip link set wire up"):
            subprocess.run([*self.enter, *command.split()], check=True, timeout=PATIENCE_S)

    def is_let_in(self, source, patience_s=10):
        """Whether a connection from one of its addresses is accepted."""
        return self.network.is_let_in(source, self.HOST, patience_s, self.enter)
