# SPDX-License-Identifier: Apache-2.0
"""Random events and the lines that tell them, in each of the log formats."""

import datetime
import json

import times

_METHODS = ["GET", "GET", "POST", "PUT", "DELETE", "post", "Delete", "frob"]
_PATHS = ["/", "/a", "/a/b", "/abc", "/x/b", "/a|b", "/q?x=1", "/{t}/1", "/{t}/2", "/%20",
          "//a", "/x/../a", "http://h.example/a", "/%61", "/a/./b#c", "*", "/a/%2e%2e/abc"]
_STATUS = ["200", "200", "204", "404", "403", "500", "000"]
_ODD = [b"bob", b"|", b"\\", b"a|b", b"\xff\xfe", b"{u}1", b"{u}2", b"{}", "\u00e9\u20ac".encode(),
        b"x y", b'q"q', b"\x01\x7f", b"n" * 300, b"\xe2\x82", b"\xc2\x9b2J\xc2\xa0",
        b"tab\tbed", b"-", b"a\x00b", b"="]
# Around the bounds of a key and of the values that are shortened in it, alone and together.
_LONG = [b"k" * 1024, b"k" * 1025, b"k" * 1000 + b"|" * 12, b"k" * 1000 + b"|" * 13, b"|" * 600,
         b"\\" * 512, b"\\|" * 257, b"w" * 60, b"w" * 61, "\u00e9".encode() * 500,
         b"{t}" + b"m" * 700, b"{t}" + b"m" * 3000]
_LONG_PATHS = ["/" + "p" * 962, "/" + "p" * 963, "/p" * 500, "/|" * 300, "/" + "\\" * 58 + "p",
               "/" + "\\" * 400 + "p", "/{" + "p" * 1100 + "}"]
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Pools:
    """The values that a case's events draw from; `keys` is how many clients there are."""

    def __init__(self, rng, keys):
        self.ips = [self._ip(rng, i, keys) for i in range(keys)]
        self.users = [rng.choice(rng.choice([_ODD, _ODD, _LONG])) if rng.random() < 0.3 else b"u%d" % i
                      for i in range(keys)]
        self.paths = rng.sample(_PATHS, min(len(_PATHS), rng.choice([1, 2, 5, 10])))
        if rng.random() < 0.3:
            self.paths += rng.sample(_LONG_PATHS, rng.randint(1, 3))
        self.methods = rng.sample(_METHODS, rng.choice([1, 3, 5]))
        self.absent = rng.choice([0, 0, 0.05])

    @staticmethod
    def _ip(rng, number, keys):
        if rng.random() < 0.01:
            return b"host-%d." % number + b"example." * rng.choice([8, 150])
        if keys > 100:
            return b"10.%d.%d.%d" % (number >> 16, number >> 8 & 255, number & 255)
        if rng.random() < 0.02:
            return b"10.1.0.%d, 192.0.2.7" % (number % 250)
        return rng.choice([b"10.1.0.%d", b"192.0.2.%d", b"203.0.113.%d", b"2001:db8::%x",
                           b"2001:DB8:0:0:1:0:0:%d", b"::ffff:10.1.0.%d", b"host-%d.example",
                           b"::%x", b"010.1.1.%d", b"192.0.2.%d:443", b"[2001:DB8::%x]:80",
                           b"fe80::%x%%eth0"]) % (number % 250)

    def event(self, rng, time_ms, cost):
        """A dict of what is there: time, ip, user, method, path, status, cost."""
        at = min(rng.randrange(len(self.ips)), rng.randrange(len(self.ips)))
        event = {"ip": self.ips[at], "user": rng.choice(self.users),
                 "method": rng.choice(self.methods).encode(),
                 "path": rng.choice(self.paths).encode(), "status": rng.choice(_STATUS).encode()}
        if self.absent:
            event = {name: value for name, value in event.items() if rng.random() >= self.absent}
        event["time"] = time_ms
        if cost is not None and rng.random() < 0.95:
            event["cost"] = cost
        if rng.random() < 0.7:
            hops = [rng.choice([b"10.1.0.9", b"198.51.100.%d", b"[2001:db8::%d]:80", b"x", b"",
                                b"192.0.2.%d:1234", b"::ffff:10.0.0.1", b"for=192.0.2.%d",
                                b"For=\"[2001:db8::%d]\";by=x"]) for _ in range(3)]
            event["xff"] = rng.choice([b",", b", ", b"\t,"]).join(
                hop % rng.randrange(3) if b"%" in hop else hop for hop in hops[:rng.randint(1, 3)])
        return event


def writer(rng, with_cost):
    """A writer of one format; combined has no field for a cost but `bytes`."""
    return rng.choice([JsonLines, JsonLines, JsonLines, CombinedLines, DelimitedLines,
                       LogfmtLines, PatternLines, ReadyLines])(rng, with_cost)


def spoil(rng, lines):
    """Sometimes: malformed and empty lines, CRLF, a last line without its end."""
    if rng.random() < 0.3:
        for _ in range(rng.randint(1, 3)):
            lines.insert(rng.randint(0, len(lines)), rng.choice([
                b"\n", b"\r\n", b"garbage\n", b"{\n", b"{}\n", b'"\n', b"\xff\x00\n", b" \n",
                b"time=x\n", b"x" * 262145 + b"\n", b'{"t":-5,"time":-5}\n', b"1 2 3 4 5 6\n"]))
    if rng.random() < 0.1:
        lines[:] = [line[:-1] + b"\r\n" for line in lines]
    if lines and rng.random() < 0.1:
        lines[-1] = lines[-1].rstrip(b"\r\n")


def iso(rng, ms, style):
    """An ISO 8601 text of a time, in some zone and with some digits of fraction."""
    offset = rng.choice([0, 0, 330, -480]) if style == "iso-zones" else 0
    local = ms + offset * 60000
    if not 0 <= local < times.LIMIT_MS:
        local, offset = ms, 0
    then = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=local)
    text = then.isoformat("T" if rng.random() < 0.8 else " ", "milliseconds")
    text += rng.choice(["", "0", "999", "000001"])
    if offset:
        return text + f"{'+' if offset > 0 else '-'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    return text + rng.choice(["Z", "z", "+00:00", ""])


def common_log(rng, ms):
    """The Common Log Format's text of a time, in some zone."""
    seconds = ms // 1000
    offset = rng.choice([0, 0, 0, 120, -90])
    local = seconds + offset * 60
    if not 0 <= local * 1000 < times.LIMIT_MS:
        local, offset = seconds, 0
    then = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=local)
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}{abs(offset) % 60:02}"
    return (f"{then.day:02}/{_MONTHS[then.month - 1]}/{then.year:04}:{then.hour:02}:"
            f"{then.minute:02}:{then.second:02} {zone}").encode()


class _Lines:
    """What the formats share: the time's form and the configuration."""

    def __init__(self, rng, with_cost):
        self.time_style = rng.choice(["ms", "ms", "s", "us", "iso", "iso-zones"])
        self.spec = {"type": self.name}
        if self.time_style in ("ms", "us", "s"):
            self.spec["unit"] = self.time_style
        if with_cost:
            self.spec["cost"] = "cost"

        self.proxied(rng)

    def proxied(self, rng):
        """Sometimes: a time zone, and clients behind trusted proxies."""
        if rng.random() < 0.2:
            self.spec["time_zone"] = rng.choice(["UTC", "+05:30", "-08:00", "Europe/Berlin",
                                                 "America/New_York", "Australia/Lord_Howe"])
        if rng.random() < 0.2:
            self.spec["client_ip"] = {"header": "xff", "trusted": rng.sample(
                ["10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32", "203.0.113.1"], 2)}

    def format(self):
        """The `format` of the configuration."""
        return self.spec

    def head(self):
        """The lines before the first event."""
        return []

    def time(self, rng, ms):
        """A time's text."""
        if self.time_style == "ms":
            return str(ms) + rng.choice(["", ".999"])
        if self.time_style == "us":
            return str(ms * 1000 + rng.randrange(1000))
        if self.time_style == "s":
            return f"{ms // 1000}.{ms % 1000:03}" + rng.choice(["", "9"])
        return iso(rng, ms, self.time_style)


class JsonLines(_Lines):
    """JSON, with members at odd places and in any order."""

    name = "json"

    def __init__(self, rng, with_cost):
        super().__init__(rng, with_cost)
        self.nested = rng.random() < 0.5
        if self.nested:
            self.spec["time"] = "/meta/ts"
            self.spec["fields"] = {"ip": "id.orig_h", "user": "/meta/user~1id", "path": "/m/1"}

    @staticmethod
    def _text(rng, value):
        if rng.random() < 0.1:
            try:
                return json.dumps(value.decode()).encode()
            except UnicodeDecodeError:
                pass
        return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'

    def line(self, rng, event):
        """One line."""
        texts = {name: value if name == "status" and rng.random() < 0.5 and value != b"000"
                 else self._text(rng, value)
                 for name, value in event.items() if isinstance(value, bytes)}
        if "cost" in event:
            texts["cost"] = b"%d" % event["cost"]
        elif self.spec.get("cost") and rng.random() < 0.1:
            texts["cost"] = rng.choice([b"-1", b"1.5", b"true", b"null", b'"x"', b"1099511627777"])
        time = self.time(rng, event["time"]).encode()
        if self.time_style.startswith("iso") or rng.random() < 0.2:
            time = b'"' + time + b'"'
        if not self.nested:
            members = [b'"%s":%s' % item for item in
                       [(b"time", time)] + [(n.encode(), v) for n, v in texts.items()]]
        else:
            meta = [b'"ts":' + time] + ([b'"user\\/id": ' + texts.pop("user")]
                                        if "user" in texts else [])
            members = [b'"meta": {' + b" , ".join(meta) + b"}"]
            if "path" in texts:
                members.append(b'"m":[{"x":[]},' + texts.pop("path") + b",null]")
            if "ip" in texts:
                members.append(b'"id.orig_h":' + texts.pop("ip"))
            members += [b'"%s":%s' % (n.encode(), v) for n, v in texts.items()]
        if rng.random() < 0.1:
            members.append(rng.choice([b'"n":NaN', b'"n":-', b'"n":0.1, 0.2 : 0.3', b'"n":', b'"n":,1']))
        if rng.random() < 0.1:
            members.insert(0, rng.choice([b'"time":1,"meta":{"ts":1},"user":"dup"',
                                          b'"x":[[{"time":5}],-1.5e+3,true]']))
        return b"{" + b",".join(members) + b"}\n"


class CombinedLines(_Lines):
    """combined or common; whole seconds; the cost is `bytes`."""

    name = "combined"

    def __init__(self, rng, with_cost):
        super().__init__(rng, with_cost)
        self.spec = {"type": rng.choice(["combined", "common"])}
        if with_cost:
            self.spec["cost"] = "bytes"
        self.proxied(rng)

    def line(self, rng, event):
        """One line."""
        stamp = common_log(rng, event["time"])
        user = event.get("user", b"-").replace(b'"', b"\\x22")
        asked = b" ".join(event[name] for name in ("method", "path") if name in event)
        vhost = rng.choice([b"", b"", b"", b" ", b"www.example.com:443 ", b"WWW.Example.com ", b"198.51.100.1 "])
        head = b"%s%s - %s [%s] " % (vhost, event.get("ip", b"-").replace(b" ", b""), user, stamp)
        head += b'"%s%s" ' % (asked, rng.choice([b" HTTP/1.1", b"", b" HTTP/2.0"]))
        head += b"%s %s" % (event.get("status", b"200"),
                            b"%d" % event["cost"] if "cost" in event else b"-")
        return head + rng.choice([b"", b' "-" "agent"', b' "r\\"" "a" "%s"' % event.get("xff", b"-"),
                                  b' "cut', b" x"]) + b"\n"


class DelimitedLines(_Lines):
    """Separated values with a header, an unnamed order or quotes."""

    name = "delimited"
    _COLUMNS = ["time", "ip", "user", "method", "path", "status", "cost", "xff"]

    def __init__(self, rng, with_cost):
        super().__init__(rng, with_cost)
        self.separator = rng.choice(["\t", ",", ";", "|"])
        self.spec["separator"] = self.separator
        self.quoted = rng.random() < 0.5
        if self.quoted:
            self.spec["quote"] = '"'
        self.columns = rng.sample(self._COLUMNS, len(self._COLUMNS))
        self.headed = rng.random() < 0.7
        if not self.headed:
            self.spec["header"] = False
            if rng.random() < 0.5:
                self.spec["columns"] = self.columns
            else:
                number = {name: str(i + 1) for i, name in enumerate(self.columns)}
                self.spec["time"] = number["time"]
                self.spec["fields"] = {name: number[name] for name in self.columns
                                       if name != "time"}

    def head(self):
        return [self.separator.join(self.columns).encode() + b"\n"] if self.headed else []

    def _value(self, rng, event, name):
        if name == "time":
            value = self.time(rng, event["time"]).replace(",", ".").encode()
        else:
            value = event.get(name, rng.choice([b"", b"-"]))
            value = b"%d" % value if isinstance(value, int) else value
        separator = self.separator.encode()
        if self.quoted and (separator in value or value[:1] == b'"' or rng.random() < 0.1):
            return b'"' + value.replace(b'"', b'""') + b'"'
        return value if self.quoted else value.replace(separator, b"_")

    def line(self, rng, event):
        """One line; at times the last columns are missing."""
        values = [self._value(rng, event, name) for name in self.columns]
        if rng.random() < 0.03:
            del values[rng.randint(0, len(values)):]
        return self.separator.encode().join(values) + b"\n"


class LogfmtLines(_Lines):
    """key=value pairs."""

    name = "logfmt"

    def line(self, rng, event):
        """One line."""
        pairs = []
        for name, value in event.items():
            value = (self.time(rng, value) if name == "time" else
                     str(value)).encode() if isinstance(value, int) else value
            if any(byte in value for byte in b' \t"=') or rng.random() < 0.1:
                value = b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
            pairs.append(name.encode() + b"=" + value)
        if rng.random() < 0.1:
            pairs.insert(rng.randint(0, len(pairs)), rng.choice([b"flag", b"x=", b"level=info"]))
        return rng.choice([b" ", b"  "]).join(pairs) + b"\n"


class PatternLines(_Lines):
    """Lines that a regular expression takes apart."""

    name = "pattern"

    def __init__(self, rng, with_cost):
        super().__init__(rng, with_cost)
        # Anchored: one that is tried at each byte of a long line meets weir's limit on its time, which is no rule.
        self.spec["pattern"] = (r'^(?<ip>\S*) (?<user>.*?) "(?:(?<method>[A-Za-z]+)|-) (?<path>[^"?]*)" '
                                r'(?<status>\d{3})?(?: cost=(?<cost>\S+))?(?: for (?<xff>.*))? '
                                r'@(?<time>.+)$')

    def line(self, rng, event):
        """One line."""
        text = b'%s %s "%s %s" %s' % tuple(event.get(name, b"") for name in (
            "ip", "user", "method", "path", "status"))
        if "cost" in event:
            text += b" cost=%d" % event["cost"]
        if "xff" in event:
            text += b" for " + event["xff"]
        time = self.time(rng, event["time"]).encode()
        return rng.choice([b"", b"", b"head: "]) + text + b" @" + time + b"\n"


class ReadyLines(_Lines):
    """Lines of squid, alb or ingress_nginx, whose writers encode what would end a part of them; the cost is `bytes`."""

    name = "squid"

    def __init__(self, rng, with_cost):
        super().__init__(rng, with_cost)
        self.spec = {"type": rng.choice(["squid", "alb", "ingress_nginx"])}
        if with_cost:
            self.spec["cost"] = "bytes"

    @staticmethod
    def _word(event, name):
        return event.get(name, b"-").replace(b" ", b"%20").replace(b'"', b"%22")

    def line(self, rng, event):
        """One line; at times without its end."""
        ip, method, path = (self._word(event, name) for name in ("ip", "method", "path"))
        status, size = event.get("status", b"-"), b"%d" % event["cost"] if "cost" in event else b"-"
        ms = event["time"]
        if self.spec["type"] == "squid":
            text = b"%d.%03d %6d %s TCP_MISS/%s %s %s %s %s HIER_DIRECT/192.0.2.1 text/html" % (
                ms // 1000, ms % 1000, rng.randrange(9999), ip, status, size, method, path, self._word(event, "user"))
        elif self.spec["type"] == "alb":
            kind = rng.choice([b"", b"https ", b"h2 "])
            text = b'%s%s app/lb/1 %s:4000 10.0.0.1:80 0.1 0.2 0 %s 200 9 %s "%s %s HTTP/1.1" "agent" - -' % (
                kind, iso(rng, ms, "iso").replace(" ", "T").encode(), ip, status, size, method, path)
        else:
            user = event.get("user", b"-").replace(b'"', b"\\x22")
            user = rng.choice([b"", b"", b"[%s] - " % ip]) + user + rng.choice([b"", b"", b" [x] y"])
            text = b'%s - %s [%s] "%s %s HTTP/1.1" %s %s "-" "agent" 9 0.1 [a-b-80] [] 10.0.0.1:80 9 0.1 200 6d' % (
                ip, user, common_log(rng, ms), method, path, status, size)
        if rng.random() < 0.03:
            text = text[:rng.randrange(len(text))]
        return text + b"\n"
