#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that make a server's line longer than `line_max`: who sends them is counted all the same, for what the server answered."""

import json
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import cases
from support.place import PATIENCE_S, free_port, read, until
from support.traffic import sliding, source, zone

LONG = 600_000  # Go's servers take 1 MiB of headers
CLIENT = "127.0.8.7"


def _ask(port, path, agent):
    """The status of a request; 0 where nobody answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(CLIENT, 0)) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: site.example\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n".encode())
            with client.makefile("rb") as answer:
                return int((answer.readline().split() or [0, 0])[1])
    except ConnectionError:
        return 0


def _judged(place, log, form, status):
    """How many of a log's lines count for the client where the zone asks for a status."""
    config = place.config([zone("site", [sliding(9, "1m")], key=["ip"], match={"status": [status]})], [source(log, format=form)])
    place.good("run", "--once", "--config", config, "--quiet", "--judged", place.path("judged"), "--decisions", place.path("decisions"))
    keys = [line["key"] for line in map(json.loads, read(place.path("judged")).splitlines())]
    assert all(key == [CLIENT] for key in keys), keys
    return len(keys)


def _sends(place, server, port, log, form, status):
    """A server that writes the log: each request counts, wherever its line is too long."""
    until(lambda: _ask(port, "/ready", "x") == int(status) and read(log), "it serves and logs", running=server)
    for path, agent in (("/" + "a" * LONG, "x"), ("/", "a" * LONG), ("/" + "%22,}" * (LONG // 5), '"status":200,"time":1,\\' * 1000)):
        assert _ask(port, path, agent) == int(status), (path[:20], read(log)[-300:])
    server.stop()
    lines = read(log).splitlines()
    assert sum(len(line) > 256 << 10 for line in lines) >= 3, [len(line) for line in lines]
    assert _judged(place, log, form, status) == len(lines)


def test_caddy(place):
    port, log = free_port(), place.path("access.log")
    config = place.write("Caddyfile", "{\n\tadmin off\n\tpersist_config off\n\tservers {\n\t\tmax_header_size 1MiB\n\t}\n}\n"
                         f"http://:{port} {{\n\tbind 127.0.0.1\n"
                         f"\tlog {{\n\t\toutput file {log}\n\t\tformat json\n\t}}\n\trespond 401\n}}\n")
    server = place.start("run", "--adapter", "caddyfile", "--config", config, program=asking.packaged("caddy"),
                         env={"HOME": place.path("caddy"), "XDG_DATA_HOME": place.path("caddy")})
    _sends(place, server, port, log, "caddy", "401")


def test_traefik(place):
    port, log = free_port(), place.path("access.log")
    config = place.write("traefik.yaml", f"entryPoints: {{web: {{address: '127.0.0.1:{port}'}}}}\nproviders: {{file: {{filename: /dev/null}}}}\n"
                         f"accessLog: {{filePath: '{log}', format: json, fields: {{headers: {{names: {{User-Agent: keep}}}}}}}}\n")
    server = place.start(f"--configFile={config}", program=asking.packaged("traefik"))
    _sends(place, server, port, log, "traefik", "404")


if __name__ == "__main__":
    cases.main(globals())
