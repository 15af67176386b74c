#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs as people have them, through the program: which client each line is counted for, and what is said of others."""

import json
import os
import socket
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.gateways import ask, program
from support.place import free_port, read, until
from support.traffic import sliding, zone

DONE, FAILED = 0, 1


def source(log, form):
    """A file and its format."""
    return {"type": "file", "path": log, "format": form}


def judged(place, form, text, key=("ip",), **members):
    """The keys that the lines of a text are counted for."""
    log = place.write("a.log", text)
    if "mtime" in members:
        os.utime(log, (members["mtime"], members["mtime"]))
    config = place.config([zone("site", [sliding(9, "1m")], key=list(key))], [source(log, form)])
    done = place.run("run", "--once", "--config", config, "--quiet", "--judged", place.path("judged"),
                     "--decisions", place.path("decisions"))
    found = [(line["key"], line["at"]) for line in map(json.loads, read(place.path("judged")).splitlines())]
    assert done.code() == (DONE if found else FAILED), done.said()
    return found


def keys(place, form, text, key=("ip",)):
    """The keys alone."""
    return [found for found, _ in judged(place, form, text, key)]


def said_of(place, form, text):
    """What validate and run say of lines; a log of which none is an event has failed."""
    log = place.write("a.log", text)
    config = place.config([zone("site", [sliding(9, "1m")], key=["ip"])], [source(log, form)])
    validated = json.loads(place.good("validate", "--config", config, "--json").out())["warnings"]
    ran = place.run("run", "--once", "--config", config, "--summary", "json", "--decisions", place.path("decisions"))
    assert ran.code() == (DONE if ran.summary()["events"] > 0 else FAILED), ran.said()
    ran = place.run("run", "--once", "--config", config, "--decisions", place.path("decisions"))
    return "; ".join(warning["words"] for warning in validated), ran.said()


def test_a_url_does_not_frame(place):
    head, tail = "2024/05/17 10:05:03 [error] 31#31: *45 ", ', server: b.example, request: "GET /%2c HTTP/1.1", host: "b"\n'
    text = (head + 'open() "/srv/a, client: 198.51.100.9, server: c, d" failed (2: No such file), client: 192.0.2.7' + tail +
            head + "access forbidden by rule, client: 192.0.2.8" + tail.replace('"b"', '"b, client: 198.51.100.9, server: c"'))
    assert keys(place, "nginx_error", text) == [["192.0.2.7"], ["192.0.2.8"]]


def test_a_line_feed_in_a_url_is_no_line(place):
    """nginx writes a decoded URL: what stands behind a line feed in it looks like a line of its own."""
    port = free_port()
    os.makedirs(place.path("logs"))
    temporary = "".join(f"{kind}_temp_path {place.path('tmp-' + kind)};"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    main = place.write("nginx.conf", f"""{'user root;' * (os.geteuid() == 0)}
daemon off; pid {place.path('nginx.pid')}; error_log {place.path('error.log')};
events {{}}
http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; root {place.directory}; }} }}
""")
    nginx = place.start("-p", place.directory, "-c", main, program=program("nginx"))
    until(lambda: ask(port), "nginx answers", running=nginx)
    now = time.strftime("%Y/%m/%d %H:%M:%S", time.gmtime())
    tail = ', client: 203.0.113.9, server: a, request: "GET / HTTP/1.1", host: "a"'
    forged = f"{now} [error] 1#1: *5 access forbidden by rule{tail}"
    urls = ["x\n" + forged + "\n", 'x" failed (2: x)' + tail + "\n" + forged + "\n", "x\n\" failed" + tail + "\n" + forged,
            "1" * 900 + '" failed (2: x)' + tail + "\n" + f'{now} [error] 1#1: *5 open() "x']
    for url in urls:
        with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.77", 0)) as client:
            client.sendall(f"GET /{urllib.parse.quote(url)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            while client.recv(4096):
                pass
    text = read(place.path("error.log")).decode(errors="replace")
    assert text.count("203.0.113.9") > len(urls), text
    assert not {found[0] for found in keys(place, "nginx_error", text)} & {"203.0.113.9"}, text


def test_a_login_without_a_port_counts(place):
    head = "2024-05-17T10:05:03+00:00 h sshd[7]: "
    text = (head + "Invalid user ann from 192.0.2.7\n" + head + "Failed password for root from 192.0.2.7\n" +
            head + "error: maximum authentication attempts exceeded for root from 192.0.2.8 port 9 ssh2 [preauth]\n" +
            head + "Failed password for invalid user a from 198.51.100.9 port 1 ssh2 from 192.0.2.7 port 9 ssh2\n")
    assert keys(place, "sshd", text, ("event", "ip")) == [["Invalid", "192.0.2.7"], ["Failed", "192.0.2.7"],
                                                          ["Maximum", "192.0.2.8"], ["Failed", "192.0.2.7"]]


def test_attempts_of_one_connection_count(place):
    text = ("2024-05-17T10:05:03Z h dovecot: imap-login: Disconnected: Connection closed (auth failed, 9 attempts in 107 secs): "
            "user=<x (auth failed, 99 attempts in 1 secs)>, method=PLAIN, rip=192.0.2.7, lip=192.0.2.1, session=<a>\n")
    assert keys(place, "dovecot", text, ("event", "ip")) == [["auth_failed", "192.0.2.7"]] * 9


def test_the_year_is_that_of_the_file(place):
    text = ("Dec 31 23:59:59 h sshd[1]: Invalid user a from 192.0.2.7\n"
            "Jan  1 00:00:01 h sshd[1]: Invalid user a from 192.0.2.7\n")
    times = [at for _, at in judged(place, "sshd", text, mtime=1641081600)]  # 2022-01-02
    assert times == [1640995199000, 1640995201000], times


def test_haproxy_says_more_behind_the_request_or_less(place):
    head = "192.0.2.7:4002 [17/May/2024:10:05:03.323] fe~ "
    text = (head + 'be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 "GET /a HTTP/1.1" 0/0000000000000000/0/0/0 a.b/TLSv1.3/X\n' +
            head + 'be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 "POST /login?aaaaaaaaaaaaaaa\n' +
            head.replace("fe~", "fe/1:") + "SSL handshake failure\n")
    assert keys(place, "haproxy", text) == [["192.0.2.7"]] * 3


def test_columns_that_change_in_the_middle(place):
    text = ("#Software: a server\n#Fields: date time c-ip cs-method cs-uri-stem\n2024-05-17 10:05:03 192.0.2.7 GET /a\n"
            "#Fields: time date cs-uri-stem c-ip\n10:05:04 2024-05-17 /b 192.0.2.8\n")
    for form in ({"type": "delimited", "separator": " ", "fields": {"ip": "c-ip", "path": "cs-uri-stem"}}, "w3c"):
        assert judged(place, form, text, ("ip", "path")) == [(["192.0.2.7", "/a"], 1715940303000),
                                                              (["192.0.2.8", "/b"], 1715940304000)], form


def test_times_of_other_forms(place):
    form = {"type": "pattern", "pattern": r"^\[(?<time>[^\]]+)\] .*\[client (?<ip>[^\]:]+)"}
    text = "[Fri May 17 10:05:03.133721 2024] [core:error] [client 192.0.2.7:4] x\n"
    assert judged(place, form, text) == [(["192.0.2.7"], 1715940303133)]
    assert judged(place, "apache_error", text) == [(["192.0.2.7"], 1715940303133)]
    form = {"type": "delimited", "separator": ";", "time": ["day", "clock"], "time_format": "%d.%m.%Y %H:%M:%S"}
    assert judged(place, form, "day;clock;ip\n17.05.2024;10:05:03;192.0.2.7\n") == [(["192.0.2.7"], 1715940303000)]


def test_lines_within_lines(place):
    inner = '192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\"GET /a HTTP/1.1\\" 200 12'
    docker = '{"log":"%s\\n","stream":"stdout","time":"2024-05-17T10:05:09Z"}\n' % inner
    for form in ({"type": "json", "message": "combined"}, {"type": "wrapped", "in": "docker", "message": "combined"}):
        assert judged(place, form, docker) == [(["192.0.2.7"], 1715940303000)]
    cri = "".join(f"2024-05-17T10:05:09Z stdout {tag} {part}\n" for tag, part in (
        ("P", "192.0.2.7 - - [17/May"), ("F", '/2024:10:05:03 +0000] "GET /a HTTP/1.1" 200 12')))
    assert keys(place, {"type": "wrapped", "in": "cri", "message": "combined"}, cri) == [["192.0.2.7"]]


def test_a_log_of_traefik_that_lets_lines_be_forged_is_said(place):
    line = '192.0.2.7 - - [17/May/2024:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-"'
    for said in said_of(place, "combined", line + ' 1 "r@file" "http://127.0.0.1:80" 0ms\n'):
        assert "Traefik" in said and '"json"' in said, said
    for said in said_of(place, "combined", line + "\n"):
        assert "Traefik" not in said, said


def test_what_would_help_is_said(place):
    for form, line, help_words in (("json", '{"time":1715940303133,"ip":"192.0.2.7"}', '"unit": "ms"'),
                                   ("json", '{"time":12,"ip":"192.0.2.7"}', '"unit"'),
                                   ("json", '{"time":"17.05.2024 10:05","ip":"192.0.2.7"}', '"time_format"'),
                                   ("combined", '192.0.2.7, 192.0.2.8 - - [17/May/2024:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "x"',
                                    'for "client_ip"'),
                                   ("sshd", "May 17 10:05:03 h last message repeated 3 times", "syslogd with -c")):
        for said in said_of(place, form, line + "\n"):
            assert help_words in said and line in said, (help_words, said)


if __name__ == "__main__":
    cases.main(globals())
