#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may send to a source that listens: whom other machines reach must know its senders, or says that it does not."""

import http.client
import json
import os
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, forward, metrics
from support.place import PATIENCE_S, free_port, until
from support.traffic import site

DONE, USAGE = 0, 2
KNOWN, STRANGER = "127.0.0.2", "127.0.0.1"
OPEN = "takes lines from everybody who reaches it"
HEAD = "<190>1 2024-01-01T00:00:00Z www app - - - "


def source(kind, listen, **more):
    """A source of a kind."""
    return {"type": kind, "name": kind, "listen": listen, "format": "json", **more}


def listening():
    """Each kind, on every address: (kind, listen, its example of loopback, the member by which it knows senders)."""
    return [("http", f"*:{free_port()}", "127.0.0.1:8089", "token"),
            ("forward", f"tcp://*:{free_port()}", "tcp://127.0.0.1:24224", "shared_key")]


def said(place, source_config):
    """What `weir validate` says: (exit code, words)."""
    done = place.run("validate", "--config", place.config(site(), [source_config]))
    return done.code(), done.said() + done.out().decode()


def test_whom_other_machines_reach_knows_its_senders(place):
    for kind, listen, example, secret in listening():
        code, words = said(place, source(kind, listen))
        assert code == USAGE and f'must be a loopback address such as "{example}"' in words and '"from"' in words, words
        refused = place.run("run", "--config", place.config(site(), [source(kind, listen)]), "--state", place.path("state"))
        assert refused.code() != DONE and "could have others blocked" in refused.said(), refused.said()
        for guard in ({secret: "a secret"}, {"from": ["10.0.0.0/8"]}):
            code, words = said(place, source(kind, listen, **guard))
            assert code == DONE and OPEN not in words, words
    code, words = said(place, source("forward", f"unix://{place.path('socket')}", **{"from": ["10.0.0.0/8"]}))
    assert code == USAGE and "is only for tcp://" in words, words


def test_who_takes_lines_from_everybody_is_warned(place):
    everybody = [source("syslog", f"udp://*:{free_port()}"), source("syslog", f"tcp://0.0.0.0:{free_port()}")]
    everybody += [source(kind, listen, **{"from": ["0.0.0.0/0"]}) for kind, listen, _, _ in listening()]
    for one in everybody:
        code, words = said(place, one)
        assert code == DONE and OPEN in words and '["10.0.0.0/8"]' in words, words
        if one["type"] != "syslog":
            continue
        for guard in ({"from": ["10.0.0.0/8"]}, {"listen": one["listen"].replace("*", "127.0.0.1").replace("0.0.0.0", "[::1]")}):
            code, words = said(place, {**one, **guard})
            assert code == DONE and OPEN not in words, words
    config = place.config(site(), everybody[:1])
    weir = place.start("run", "--config", config, "--state", place.path("state"))
    until(lambda: "following" in weir.said(), "it listens", running=weir)
    assert weir.stop() == DONE and f"sources[0]: {OPEN}" in weir.said(), weir.said()
    doctor = place.run("doctor", "--config", config, "--state", place.path("state"))
    assert OPEN in doctor.out().decode(), (doctor.out(), doctor.said())


def send_forward(port, address):
    """Whether a message from an address is taken."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S, source_address=(address, 0)) as sender:
        try:
            sender.sendall(forward.pack(["app", forward.event_time(1709251200), {"user": "ann"}, {"chunk": address}]))
            return sender.recv(100) != b""
        except ConnectionError:
            return False


def send_http(port, address):
    """Whether a line from an address is taken."""
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S, source_address=(address, 0))
    asking.request("POST", "/ingest", json.dumps({"time": 1709251200, "user": "ann"}))
    answer = asking.getresponse()
    words = answer.read()
    asking.close()
    assert answer.status == 200 or (answer.status == 403 and b'"from"' in words), (answer.status, words)
    return answer.status == 200


def test_only_named_networks_are_heard(place):
    ports = {kind: free_port() for kind in ("http", "forward")}
    page = free_port()
    sources = [source(kind, (f"tcp://*:{port}" if kind == "forward" else f"*:{port}"), **{"from": [KNOWN]})
               for kind, port in ports.items()]
    weir = place.start("run", "--config", place.config(site(), sources, listen={"http": f"127.0.0.1:{page}"}),
                       "--state", place.path("state"))
    until(lambda: "following" in weir.said(), "it listens", running=weir)
    for send, port in ((send_http, ports["http"]), (send_forward, ports["forward"])):
        assert not send(port, STRANGER) and send(port, KNOWN), send

    def refused():
        shown = metrics.scrape(page)
        return shown and sum(value for (name, _), value in shown.samples.items() if name == "weir_source_push_refused_total")
    until(lambda: refused() == 2, "both are counted", running=weir)
    until(lambda: re.search(rf"a connection of \S*{STRANGER}\S* was closed: its address is in no network of .*from", weir.said()),
          "it is said of forward, which gives no answer", running=weir)
    assert weir.stop() == DONE and OPEN not in weir.said(), weir.said()


if __name__ == "__main__":
    cases.main(globals())
