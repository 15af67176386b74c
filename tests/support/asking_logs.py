# SPDX-License-Identifier: Apache-2.0
"""What a gateway's own log says of the requests that it asked weir about: a line each, of what weir was asked."""

import collections
import contextlib
import re
import socket

from support.asking_gateways import Stage
from support.place import PATIENCE_S, lines_of, read, until
from support.traffic import sliding, source, zone

TIMES = 3  # each request is sent: one passes, and one decision is made of the others
CLIENTS = "127.0.8."
SETTLED_S = PATIENCE_S
ZONES = [zone("site", [sliding(1, "1h")], key=["ip"]),
         zone("target", [sliding(1, "1h")], key=["ip", "method", "target"]),
         zone("path", [sliding(1, "1h")], key=["ip", "path"]),
         zone("host", [sliding(1, "1h")], key=["ip", "host"]),
         zone("agent", [sliding(1, "1h")], key=["ip", "agent"])]
ABSOLUTE, NO_HOST, DASH = "absolute", "no host", "method of -"

_HOST = b"Host: site.example\r\n"
REQUESTS = {"GET": (b"GET /seen/a%20b?x=%2F&y HTTP/1.1\r\n" + _HOST + b"User-Agent: tester/1\r\n", b""),
            "HEAD": (b"HEAD /seen/head HTTP/1.1\r\n" + _HOST, b""),
            "OPTIONS": (b"OPTIONS /seen/options?a HTTP/1.1\r\n" + _HOST, b""),
            "POST": (b"POST /seen/post HTTP/1.1\r\n" + _HOST + b"Content-Length: 4\r\n", b"body"),
            "DELETE": (b"DELETE /seen/delete HTTP/1.1\r\n" + _HOST, b""),
            "capitals": (b"GET /seen/host HTTP/1.1\r\nHost: Site.Example:80\r\n", b""),
            "brackets": (b"GET /seen/host HTTP/1.1\r\nHost: [2001:DB8::A]\r\n", b""),
            "brackets and port": (b"GET /seen/host HTTP/1.1\r\nHost: [2001:DB8::a]:8080\r\n", b""),
            "odd host": (b"GET /seen/odd HTTP/1.1\r\nHost: 192.0.2.7 - - [x\r\n", b""),
            NO_HOST: (b"GET /seen/none HTTP/1.0\r\n", b""),
            "agent of -": (b"GET /seen/dash HTTP/1.1\r\n" + _HOST + b"User-Agent: -\r\n", b""),
            "no agent": (b"GET /seen/empty HTTP/1.1\r\n" + _HOST + b"User-Agent:\r\n", b""),
            DASH: (b"- /seen/method HTTP/1.1\r\n" + _HOST, b""),
            "hash": (b"GET /seen/a#b?c HTTP/1.1\r\n" + _HOST, b""),
            ABSOLUTE: (b"GET http://site.example/seen/absolute?a HTTP/1.1\r\n" + _HOST, b"")}


def _answer(port, address, head, body):
    """The status of one request."""
    with socket.create_connection(("127.0.0.1", port), 4 * PATIENCE_S, source_address=(address, 0)) as client:
        client.sendall(head + b"Connection: close\r\n\r\n" + body)
        with client.makefile("rb") as answer:
            status = int(answer.readline().split()[1])
            with contextlib.suppress(ConnectionResetError):
                answer.read()
            return status


def _decided(objects, address):
    """The zones and keys of its decisions."""
    return {(one["zone"], *one["key"][1:]) for one in objects if one["key"][0] == address}


def _of_log(place, lines, form):
    """The decisions that weir makes of a log."""
    config = place.config(ZONES, [source(place.write("taken.log", lines), format=form)], name="of-log.json")
    return place.good("run", "--once", "--config", config).objects()


def _lines(log):
    """But those of who asked whether the gateway serves."""
    return [line for line in log.split(b"\n") if line and b"127.0.0.9" not in line]


def _address(line):
    """Its client's."""
    found = re.search(re.escape(CLIENTS.encode()) + rb"\d+", line)
    return found[0].decode() if found else line


def _settled(stage, address, of_line, lacks):
    """What the checks decided, once it is what the log says, or would have been for long."""
    def of_check():
        return {one for one in _decided(lines_of(stage.place.path("out-state")), address) if one[0] not in lacks}
    with contextlib.suppress(AssertionError):
        until(lambda: of_check() == of_line, "the same is decided", SETTLED_S, running=stage.weir.process)
    return of_check()


def lines_say_what_was_asked(place, begin, form, log, lacks=(), unlike=()):
    """A request is one line of the log, by which weir counts it as by the check.

    begin: as of Stage, of a gateway that writes its log. form: its format. log(stage): its bytes. lacks: the
    fields that no line has. unlike: the requests whose target is another one in the log."""
    with Stage(place, begin, ZONES) as stage:
        with stage.gateway() as port:
            statuses = {name: [_answer(port, f"{CLIENTS}{number + 1}", *REQUESTS[name]) for _ in range(TIMES)]
                        for number, name in enumerate(REQUESTS)}
            asked = [name for name in REQUESTS if 429 in statuses[name]]  # else it is an answer of the gateway's own
            logged = [f"{CLIENTS}{number + 1}" for number, name in enumerate(REQUESTS) if name in asked]

            def whole():
                counts = collections.Counter(_address(line) for line in _lines(log(stage)))
                return all(counts[address] >= TIMES for address in logged)
            with contextlib.suppress(AssertionError):
                until(whole, "all is logged", SETTLED_S)
        lines = _lines(log(stage))
        of_log = _of_log(place, b"\n".join(lines) + b"\n", form)
        counts = collections.Counter(_address(line) for line in lines)
        for number, (name, came) in enumerate(statuses.items()):
            address = f"{CLIENTS}{number + 1}"
            print(f"{name}: {came}")
            count = counts.pop(address, 0)
            if name not in asked:
                assert count in (0, TIMES), (name, count)
                continue
            # The site behind it knows no method of "-".
            assert came == [501 if name == DASH else 200] + [429] * (TIMES - 1) and count == TIMES, (name, came, count)
            of_line = _decided(of_log, address)
            without = {*lacks, *(["target"] if name in unlike else [])}
            of_line = {one for one in of_line if one[0] not in without}
            of_check = _settled(stage, address, of_line, without)
            assert of_line == of_check and {one[0] for one in of_line} >= {"site", "path"}, (name, "log", of_line, "check", of_check)
        assert not counts, counts


def file_of(name):
    """The log as bytes of a file."""
    return lambda stage: read(stage.place.path(name))
