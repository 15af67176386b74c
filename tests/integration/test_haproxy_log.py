#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy's own lines, as it sends them to syslog."""

import json
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.gateways import program
from support.place import PATIENCE_S, free_port, read, until
from support.traffic import sliding, source, zone

CLIENT = "127.0.8.7"
CONFIG = """
defaults
    mode http
    option httplog
    timeout client 10s
    timeout connect 1s
    timeout server 10s
    log 127.0.0.1:{syslog} {length} local0
frontend site
    bind 127.0.0.1:{port}
    http-request capture req.hdr(User-Agent) len 800
    http-request capture req.hdr(Referer) len 800
    http-request return status 401
"""


def _ask(port):
    """Asks for /login with long headers."""
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(CLIENT, 0)) as client:
            client.sendall(f"GET /login HTTP/1.1\r\nHost: a\r\nUser-Agent: {'a' * 600}\r\nReferer: {'b' * 600}\r\n"
                           "Connection: close\r\n\r\n".encode())
            return b" 401 " in client.recv(1000)
    except ConnectionError:
        return False


def _line_of(place, name, length):
    """What HAProxy sends of the request."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as syslog:
        syslog.bind(("127.0.0.1", 0))
        syslog.settimeout(PATIENCE_S)
        port = free_port()
        config = place.write(name, CONFIG.format(syslog=syslog.getsockname()[1], port=port, length=length))
        haproxy = place.start("-db", "-f", config, program=program("haproxy"))
        until(lambda: _ask(port), "it serves", running=haproxy)
        line = b""
        while CLIENT.encode() not in line:
            line = syslog.recv(1 << 16)
        haproxy.signal(15)
        haproxy.wait()
        return line.rstrip(b"\n")


def test_a_line_that_is_cut_before_the_path_is_told(place):
    for name, length, cut in (("short.cfg", "", True), ("long.cfg", "len 65535", False)):
        line = _line_of(place, name, length)
        log = place.write(name + ".log", line + b"\n")
        config = place.config([zone("login", [sliding(9, "1h")], key=["ip"], match={"path": ["/login"]}),
                               zone("site", [sliding(9, "1h")], key=["ip"])],
                              [source(log, format={"type": "haproxy", "year": 2026})])
        done = place.good("run", "--once", "--config", config, "--summary", "json", "--decisions", place.path("decisions"))
        summary = json.loads(done.said())
        assert (summary["events"], summary["cut"]) == (1, int(cut)), (summary, line)
        assert [summary["zones"][one]["passed"] for one in ("login", "site")] == [int(not cut), 1], summary
        for said in (place.run("run", "--once", "--config", config, "--decisions", place.path("decisions")).said(),
                     place.good("validate", "--config", config, "--json").out()):
            assert ("len 65535" in str(said)) == cut, said
        assert len(read(log)) > 1000


if __name__ == "__main__":
    cases.main(globals())
