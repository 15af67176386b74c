#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle's parsers: what is a record, what is malformed, what is absent."""

import gzip
import json
import os
import random
import tempfile
import unittest

import compare_unittest
import addresses
import formats
import json_out
import parse_json
import paths
import sources
from parse_lines import Malformed

FIELDS = ("ip", "ident", "user", "method", "path", "status", "bytes", "referer", "agent", "xff")
TARGET = FIELDS + ("target", "host")


def read(form, line, names=FIELDS):
    """(time, fields) of a line, or its reason."""
    try:
        record = formats.Format(form).record(line)
    except Malformed as why:
        return str(why)
    return record.time, {name: record.field(name).decode("latin-1") for name in names
                         if record.field(name) is not None}


class CombinedLines(unittest.TestCase):
    """ip ident user [time] "request" status bytes, and what may follow."""

    HEAD = b'1.2.3.4 - - [17/May/2015:10:05:03 +0000] '

    def test_a_whole_line(self):
        line = self.HEAD + b'"GET /a?b=c HTTP/1.1" 200 5 "http://r/" "A \\"b\\" c" "9.9.9.9" x"y'
        self.assertEqual(read("combined", line, TARGET), (1431857103000, {
            "ip": "1.2.3.4", "method": "GET", "path": "/a", "target": "/a?b=c", "status": "200", "bytes": "5",
            "referer": "http://r/", "agent": 'A "b" c', "xff": "9.9.9.9"}))

    def test_what_follows_is_ignored(self):
        for tail in (b"", b" ", b" -", b' "r', b' "r\\"', b" x"):
            got = read("common", self.HEAD + b'"GET / HTTP/1.1" 404 -' + tail)
            self.assertEqual(got[1], {"ip": "1.2.3.4", "method": "GET", "path": "/",
                                      "status": "404"}, tail)
        got = read("combined", self.HEAD + b'"GET / HTTP/1.1" 404 - "r" "agent')
        self.assertEqual((got[1]["referer"], got[1].get("agent")), ("r", None))

    def test_a_user_cannot_hide(self):
        for user in (b"", b"john doe", b"x [y] z", b"a [17/May/2015:10:05:03", b"]", b"["):
            got = read("combined", b"1.2.3.4 i " + user + b' [17/May/2015:10:05:03 +0000] "-" 400 0')
            want = {"ip": "1.2.3.4", "ident": "i", "status": "400", "bytes": "0"}
            if user:
                want["user"] = user.decode()
            self.assertEqual(got, (1431857103000, want), user)

    def test_requests(self):
        for request, want in (
                (b"GET /", ("GET", "/")), (b"GET / HTTP/1.1", ("GET", "/")),
                (b"GET ?x HTTP/1.1", ("GET", "/")), (b"M-SEARCH * HTTP/1.1", ("M-SEARCH", "*")),
                (b"GET /a b HTTP/1.1", ("GET", "/a b")), (b"GET  / HTTP/1.1", ("GET", "/")),
                (b"GET", (None, None)), (b"", (None, None)), (b"GET / ", ("GET", "/")),
                (b"POST   /login   HTTP/1.1 ", ("POST", "/login")), (b"GET / A B", (None, None)),
                (b"GET http://h/a//%62?c HTTP/1.1", ("GET", "/a/b")),
                (b"\\x16\\x03 a", (None, None)), (b'G\\"T /', (None, None)),
                (b'GET /\\"', ("GET", '/"')), (rb"GET /caf\xC3\xa9", ("GET", "/caf\xc3\xa9")),
                (rb"GET /\x5Cx2F\\x2F\t", ("GET", r"/\x2F\x2F" + "\t"))):
            _, fields = read("combined", self.HEAD + b'"' + request + b'" 200 1')
            self.assertEqual((fields.get("method"), fields.get("path")), want, request)

    def test_what_follows_the_head(self):
        for rest, want in ((b'"GET / HTTP/1.1', {"method": "GET"}), (b'"GET /x" 20 1', {}),
                           (b'"GET /\\" 200 1', {"status": "200"}), (b'"GET /x" 200', {"status": "200"}),
                           (b'"GET /x" - -', {}), (b'"GET /x"200 1', {}), (b"", {}), (b'"', {}),
                           (b'"GET /"x HTTP/1.1" 200 1', {"status": "200", "path": '/"x'})):
            got = read("combined", self.HEAD + rest)
            self.assertEqual((got[0], got[1]["ip"]), (1431857103000, "1.2.3.4"), rest)
            self.assertLessEqual(want.items(), got[1].items(), rest)

    def test_virtual_hosts(self):
        for head, ip, host in ((b"a.example:443 1.2.3.4 - -", "1.2.3.4", "a.example"),
                               (b"9.9.9.9 1.2.3.4:80 - -", "1.2.3.4", "9.9.9.9"),
                               (b"a.example:443 b.example - -", "b.example", "a.example"),
                               (b"b.example - -", "b.example", None), (b" 1.2.3.4 - -", "1.2.3.4", None)):
            got = read("combined", head + self.HEAD[11:] + b'"GET / HTTP/1.1" 200 1', TARGET)
            self.assertEqual((got[1]["ip"], got[1].get("host")), (ip, host), head)

    def test_malformed(self):
        for line in (b' "Mozilla/5.0"', b"x", b" ", b'1.2.3.4 - - "GET /" 200 1',
                     b"  " + self.HEAD + b'"GET /" 200 1', b" x" + self.HEAD + b'"GET /" 200 1',
                     b"May 17 10:05:03 web nginx: " + self.HEAD + b'"GET /" 200 1',
                     b'"' + self.HEAD + b'"GET /" 200 1', self.HEAD[:30],
                     b'1.2.3.4 - [17/May/2015:10:05:03 +0000] "GET /" 200 1',
                     b'1.2.3.4  - - [17/May/2015:10:05:03 +0000] "GET /" 200 1'):
            self.assertEqual(read("combined", line), "not combined", line)
            self.assertEqual(read("common", line), "not common", line)
        for time, reason in ((b"", "no time"), (b"-", "no time"), (b"x", "bad time"),
                             (b"01/Jan/1969:00:00:00 +0000", "time out of range")):
            self.assertEqual(read("combined", b'h - - [' + time + b'] "GET /" 200 1'), reason)


class OtherFormats(unittest.TestCase):
    """json, delimited, logfmt, pattern."""

    def test_json_is_what_json_is(self):
        rng = random.Random(6)

        def value(depth):
            kind = rng.randrange(8 if depth < 4 else 5)
            text = "".join(chr(rng.choice([34, 92, 47, 10, 97, 0xE9, 0x20AC, 0x1F600]))
                           for _ in range(rng.randrange(4)))
            if kind < 5:
                return [text, rng.randint(-9, 9), rng.random() * 1e9, rng.random() < 0.5, None][kind]
            if kind == 5:
                return [value(depth + 1) for _ in range(rng.randrange(3))]
            return {rng.choice("abc") + text: value(depth + 1) for _ in range(rng.randrange(3))}

        def as_read(item):
            if isinstance(item, dict):
                return {name.encode(): as_read(member) for name, member in item.items()}
            if isinstance(item, list):
                return [as_read(member) for member in item]
            return None if item is None else (item if isinstance(item, str)
                                              else json.dumps(item)).encode()
        for _ in range(3000):
            top = {"k": value(1), "l": value(1)}
            text = json.dumps(top, ensure_ascii=rng.random() < 0.5,
                              indent=rng.choice([None, " "])).replace("\n", "\t")
            self.assertEqual(parse_json.parse_object(text.encode()), as_read(top))
            for cut in range(0, len(text), 7):
                self.assertRaises(parse_json.NotJson, parse_json.parse_object,
                                  text[:cut].encode())

    def test_json_at_its_edges(self):
        form = {"type": "json", "unit": "s", "time": "t", "fields": {"a": "/x/y~1z", "b": "/l/1"}}
        names = ("a", "b", "c", "d")
        for line, want in (
                (rb'{"t":1,"x":{"y/z":1.50},"l":[0,"q"],"c":true,"d":null}',
                 {"a": "1.50", "b": "q", "c": "true"}),
                (rb'{"t":1,"x":{"y/z":1},"x":{},"c":1,"c":"","d":2,"d":3}', {"d": "3"}),
                (rb'{"t":1,"c":"\ud83d\x22\u00e9\ud83d\ude00\u12","d":{}}',
                 {"c": "\ufffd\"\u00e9\U0001f600\\u12".encode().decode("latin-1")}),
                (b'{"t":1,"c":"\0\xff\t"}', {"c": "\0\xff\t"}),
                (b'{"t":1,"\\u0063":"k"}', {"c": "k"}),
                (b'{"t":1,"c":' + b"[" * 63 + b"]" * 63 + b"}", {})):
            self.assertEqual(read(form, line, names), (1000, want), line)
        for line in (b"[]", b"{", b"", b"x", b'{"t":1}x', b'{"t":1,}', b'{"t":1,"c":"x",2}',
                     b"{'t':1}", b'{"t":1 "c":2}', b'{"t":"1}', b'{"t":"\\"}', b'{"t":1,"c":2',
                     b'{"t":1,"c":' + b"[" * 64 + b"]" * 64 + b"}"):
            self.assertEqual(read(form, line), "not json", line)
        for line in (b'{"t":1,"c":-}', b'{"t":1,"c":0.1, 0.2 : 0.3}', b'{"t":1,"c":}',
                     b'{"t":1,"c":[NaN, -]}', b'{"t":1,"ip":"1.1.1.1","c'):
            self.assertEqual(read(form, line, names), (1000, {}), line)
        for line in (b"{}", b'{"t":null}', b'{"t":{}}', b'{"t":""}', b'{"t":01}', b'{"t":NaN}'):
            self.assertEqual(read(form, line), "no time", line)
        self.assertEqual(read(form, b'{"t":true}'), "bad time")

    def test_cost(self):
        form = {"type": "json", "unit": "s", "time": "t", "fields": {"cost": "n"}, "cost": "cost"}
        for text, want in ((b"5", 5), (b'"007"', 7), (b"0", 0), (b"null", 1), (b'""', 1),
                           (b"[2]", 1), (b"1099511627776", 2 ** 40)):
            self.assertEqual(formats.Format(form).record(b'{"t":1,"n":%s}' % text).cost, want)
        for text in (b"-1", b"1.0", b"true", b'" 1"', b"1099511627777", b"1" * 5000, b'"x"'):
            self.assertEqual(read(form, b'{"t":1,"n":%s}' % text), "bad cost")

    def test_delimited(self):
        form = formats.Format({"type": "delimited", "unit": "s", "separator": ",", "quote": '"'})
        tally = sources.Tally()
        text = (b'\r\n\xef\xbb\xbftime,a,"b ""c""",a\r\n1,x,y,z\n2,-,"q,""r""",\n3\n4,"x\n'
                b'5,"x"y\n-,a\n6,a"b')
        got = [(r.time, r.field("a"), r.field('b "c"'))
               for r in sources.records_of(text, form, tally)]
        self.assertEqual(got, [(1000, b"z", b"y"), (2000, None, b'q,"r"'), (6000, None, None)])
        self.assertEqual((tally.lines, tally.events, tally.malformed),
                         (9, 3, {"not delimited": 3, "no time": 1}))
        bare = formats.Format({"type": "delimited", "unit": "s", "header": False, "time": "2"})
        self.assertEqual(bare.record(b"x\t7\ty").field("3"), b"y")
        self.assertEqual(bare.record(b"x\t7\ty").time, 7000)

    def test_logfmt(self):
        names = ("a", "b", "c")
        for line, want in ((b' time=1  a="x \\"y\\" \\u00e9" b= c\t', {
                "a": 'x "y" \u00e9'.encode().decode("latin-1"), "c": "true"}),
                           (b'time=1 a=/p?q=r&s="t" b=-', {"a": '/p?q=r&s="t"', "b": "-"}),
                           (b"time=1 a=1 a=", {})):
            self.assertEqual(read({"type": "logfmt", "unit": "s"}, line, names), (1000, want))
        for line in (b"plain words", b"time=1 =x", b'time=1 a"b=1', b'time=1 a="x',
                     b'time=1 a="x"y', b" "):
            self.assertEqual(read({"type": "logfmt", "unit": "s"}, line), "not logfmt", line)
        self.assertEqual(read("logfmt", b"a=1"), "no time")

    def test_patterns(self):
        form = {"type": "pattern", "unit": "s", "pattern": r"(?<time>\d+) (?<ip>\S*)(?: (?<user>\w+))?"}
        self.assertEqual(read(form, b"at 5 1.2.3.4 "), (5000, {"ip": "1.2.3.4"}))
        self.assertEqual(read(form, b"at"), "no match")
        for kind, line, time, want in (
                ("nginx_error", b'2024/01/02 10:20:30 [error] 12#13: *5 limiting requests, '
                 b'excess: 10.5 by zone "x", client: 1.2.3.4, server: a.example, '
                 b'request: "GET /p?q HTTP/1.1", host: "a.example"', 1704190830000,
                 {"ip": "1.2.3.4", "method": "GET", "path": "/p"}),
                ("nginx_error", b"2024/01/02 10:20:30 [notice] 12#13: start", 1704190830000, {}),
                ("haproxy", b'Feb  6 12:14:14 lb haproxy[14389]: 10.0.1.2:33317 '
                 b'[06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - '
                 b'---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html?x HTTP/1.1"', 1233922454655,
                 {"ip": "10.0.1.2", "status": "200", "bytes": "2750", "method": "GET",
                  "path": "/index.html"}),
                ("sshd", b"2024-01-02T10:20:30.123456+00:00 h sshd[1]: Failed password for "
                 b"invalid user a from 9.9.9.9 port 1 from 1.2.3.4 port 22 ssh2", 1704190830123,
                 {"ip": "1.2.3.4", "user": "a from 9.9.9.9 port 1", "method": "password"}),
                ("sshd", b"2024-01-02T10:20:30+00:00 h sshd[1]: Invalid user bob from ::1 port 9",
                 1704190830000, {"ip": "::1", "user": "bob"}),
                ("sshd", b"2024-01-02T10:20:30+00:00 h sshd[1]: Server listening.",
                 1704190830000, {})):
            self.assertEqual(read(kind, line), (time, want), line)


class TheRest(unittest.TestCase):
    """Addresses, proxies, lines of a source, merging, JSON output."""

    def test_addresses(self):
        group = addresses.group
        self.assertEqual(group(b"2001:DB8:0:1::9", 32, 64), b"2001:db8:0:1::/64")
        self.assertEqual(group(b"::ffff:1.2.3.4", 32, 64), b"1.2.3.4")
        self.assertEqual(group(b"1.2.3.4", 24, 64), b"1.2.3.0/24")
        self.assertEqual(group(b"01.2.3.4", 24, 64), b"01.2.3.4")
        inside = lambda net, ip: addresses.contains(addresses.parse_network(net),
                                                    addresses.parse(ip))
        self.assertTrue(inside(b"10.0.0.0/8", b"::ffff:10.9.9.9"))
        self.assertTrue(inside(b"::ffff:10.0.0.0/104", b"10.9.9.9"))
        self.assertFalse(inside(b"10.0.0.0/8", b"11.0.0.0"))
        self.assertFalse(inside(b"::/0", b"1.2.3.4"))

    def test_the_client_behind_proxies(self):
        trusted = [addresses.parse_network(b"10.0.0.0/8")]
        for peer, header in ((None, b"1.2.3.4"), (b"10.0.0.1", None)):
            with self.assertRaises(addresses.NoClient):
                addresses.client_ip(peer, header, trusted, True)
        for peer, header, want in (
                (b"10.0.0.1", b"6.6.6.6, 1.2.3.4, 10.0.0.2", b"1.2.3.4"),
                (b"9.9.9.9", b"1.2.3.4", b"9.9.9.9"), (b"10.0.0.1", None, b"10.0.0.1"),
                (b"10.0.0.1", b"x, 10.0.0.2", None), (b"10.0.0.1", b"unknown", None),
                (b"10.0.0.1", b"for=1.2.3.4;host=\"a, for=6.6.6.6\"", b"1.2.3.4"),
                (b"10.0.0.1", b"1.2.3.4,,", b"1.2.3.4"), (b"6.6.6.6, 1.2.3.4", None, b"1.2.3.4"),
                (None, b"1.2.3.4:80,[10::1]:9", b"10::1"), (b"host", b"1.2.3.4", b"host"),
                (b"10.0.0.1:77", b"1.2.3.4:80 ", b"1.2.3.4"), (None, b"", None),
                (b"10.0.0.1", b"10.0.0.3,10.0.0.2", b"10.0.0.3")):
            if want is None and header:
                with self.assertRaises(addresses.NoClient):
                    addresses.client_ip(peer, header, trusted)
                continue
            got = addresses.client_ip(peer, header, trusted)
            self.assertEqual(got and addresses.canonical(got), want, (peer, header))

    def test_paths(self):
        for target, want in ((b"/a?b#c", b"/a"), (b"/a#b?c", b"/a"), (b"http://h", b"/"), (b"*", b"*"),
                             (b"h:443", b"h:443"), (b"/%2561", b"/%61"), (b"//a/./b/../%zz", b"/a/%zz"),
                             (b"/..%2f..//a/..", b"/"), (b"?x", b"/"), (b"#x", b"/"), (b"http://h?x", b"/"), (b"", None), (b"HTTP://u@h:1//%6C?q", b"/l")):
            self.assertEqual(paths.served(target), want, target)

    def test_lines_of_a_source(self):
        tally = sources.Tally()
        data = b'\n\r\n{"time":1}\r\n{"time":2}' + b" " * 262134 + b"\n" + b" " * 262145 + b"\n \n{"
        form = formats.Format({"type": "json", "unit": "s"})

        self.assertEqual([r.time for r in sources.records_of(data, form, tally)], [1000, 2000])
        self.assertEqual((tally.lines, tally.malformed), (7, {"line too long": 1, "not json": 2}))

    def test_merging_by_running_maximum(self):
        with tempfile.TemporaryDirectory() as where:
            for name, seconds in (("b.log", (3, 1, 9)), ("a.log", (3, 2, 4)), ("c.log", (1, 3))):
                data = b"".join(b'{"time":%d,"s":"%s"}\n' % (s, name.encode()) for s in seconds)
                with open(os.path.join(where, name), "wb") as out:
                    out.write(gzip.compress(data[:9]) + gzip.compress(data[9:])
                              if name == "a.log" else data)
            specs = [{"path": os.path.join(where, "[bc].log"), "format": {"type": "json", "unit": "s"}},
                     {"path": os.path.join(where, "*.log"), "format": {"type": "json", "unit": "s"}}]
            got = [(r.time // 1000, r.field("s")[:1].decode())
                   for r in sources.merged(sources.open_all(specs, sources.Tally()))]
        self.assertEqual(got, [(1, "c"), (3, "b"), (1, "b"), (3, "c"), (3, "a"), (2, "a"),
                               (4, "a"), (9, "b")])

    def test_json_output_of_any_bytes(self):
        self.assertEqual(json_out.dumps([b'a"\\/\n\x01\x7f\xff\xe2\x82', "\u20ac\x9b\xa0".encode()]),
                         '["a\\"\\\\/\\n\\u0001\\u007f\ufffd\ufffd\ufffd","\u20ac\\u009b\xa0"]'.encode())


if __name__ == "__main__":
    compare_unittest.main(__name__)
