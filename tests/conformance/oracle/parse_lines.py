# SPDX-License-Identifier: Apache-2.0
"""The line formats that are not JSON: combined, common, delimited, logfmt, pattern.

Each parser takes one line without its ending and gives a dict of the record's
own fields (bytes to bytes, absent fields left out), or raises Malformed with
its reason. The grammar is spelled out at each parser.
"""

import re

import addresses
from parse_json import unescape


class Malformed(Exception):
    """A line that is not a record; the argument is the reason."""


def present(fields, dash_is_absent):
    """The fields that are there: an empty value is none, nor `-` where it says so."""
    return {name: value for name, value in fields.items()
            if value and not (dash_is_absent and value == b"-")}


def _quoted(line, at):
    """The raw text of a quoted string whose inside begins at `at`, and the place
    after its closing quote; None where it does not end."""
    start = at
    while at < len(line):
        if line[at] == 0x5C:
            at += 2
        elif line[at] == 0x22:
            return line[start:at], at + 1
        else:
            at += 1
    return None


class Combined:
    """[vhost] ip ident user [time] "request" status bytes ["referer" ["agent" ["xff"]]] …

    The head must be whole; what follows it is taken as far as it goes."""

    _TAIL = re.compile(rb" ([0-9]{3}|-) (-|[0-9]+)(?: |$)")
    _STATUS = re.compile(rb" ([0-9]{3})(?: |$)")
    _NAME = re.compile(rb"[A-Za-z0-9_.-]+")
    _PORT = re.compile(rb"(.+):[0-9]{1,5}", re.DOTALL)

    def __init__(self, name):
        self.reason = "not " + name

    def parse(self, line):
        """The fields of one line; the key None says that it is cut."""
        fields, rest, cut = self._head(line)
        request, at = (rest, len(rest)) if cut else self._request(rest)
        fields.update(self._method_and_path(request))
        tail = self._TAIL.match(rest, at)
        if tail is None:
            status = self._STATUS.match(rest, at)
            if status:
                fields[b"status"] = status[1]
            return {None: True, **present(fields, True)}
        fields[b"status"], fields[b"bytes"] = tail[1], tail[2]
        at = tail.end(2)
        for name in (b"referer", b"agent", b"xff"):
            if rest[at:at + 2] != b' "' or at + 2 >= len(rest):
                break
            found = _quoted(rest, at + 2)
            if found is None:
                fields[None] = True
                break
            fields[name], at = found
        return present(fields, True)

    def _is_client(self, word):
        return self._NAME.fullmatch(word) or addresses.read(word) or word == b"unix:"

    @staticmethod
    def _time_end(rest):
        """Where `] "` ends a bracket that begins with a digit; else the first that ends any; else -1."""
        places = [found.start() for found in re.finditer(rb'\] "', rest)]
        inside = [(place, rest[rest.rfind(b" [", 0, place) + 2:place]) for place in places if b" [" in rest[:place]]
        times = [place for place, text in inside if len(text) >= 8 and text[:1].isdigit()]
        return times[0] if times else inside[0][0] if inside else -1

    def _head(self, line):
        """The fields up to the time, what follows the quote, and whether there is none."""
        words = line.split(b" ", 2)
        if line.startswith(b" "):  # a virtual host that is empty
            behind = line[1:].split(b" ", 2)
            if len(behind) < 3 or behind[1] != b"-" or not addresses.read(behind[0]):
                raise Malformed(self.reason)
            words = [b"-", behind[0], b"- " + behind[2]]
        if len(words) < 3 or not words[0] or not words[1]:
            raise Malformed(self.reason)
        fields = {}
        first, second, rest = words
        ported = self._PORT.fullmatch(first)
        named = ported and self._NAME.fullmatch(ported[1]) and not addresses.read(first)
        may_be_head = False
        if (named or addresses.read(second)) and rest.startswith(b"- ") and rest[2:] and rest[2:3] != b"[":
            fields[b"host"] = ported[1] if ported else first
            client, ident, rest = second, b"-", rest[2:]
        elif (named or addresses.read(second)) and not addresses.read(first):
            raise Malformed(self.reason)
        else:
            client, ident = first, second
            may_be_head = ident != b"-" and not addresses.read(client)
        if not self._is_client(client):
            raise Malformed(self.reason)
        end, cut = self._time_end(rest), False
        if end < 0 and b'] "' not in rest:
            cut = True
            end = rest.find(b"]", rest.rfind(b" [") + 1) if b" [" in rest else -1
            if end >= 0 and rest[end + 1:end + 2] not in (b"", b" "):
                end = -1
        begin = rest.rfind(b" [", 0, end) if end >= 0 else -1
        if begin < 0 or (may_be_head and b" " in rest[:begin]):
            raise Malformed(self.reason)
        if b"host" in fields and b" " in rest[:begin] and addresses.read(rest.split(b" ")[0]):
            raise Malformed(self.reason)
        fields.update({b"ip": client, b"ident": ident, b"user": rest[:begin],
                       b"time": rest[begin + 2:end]})
        return fields, b"" if cut else rest[end + 3:], cut

    def _request(self, rest):
        """The request, and the place behind its closing quote: the first one that status and bytes
        follow; an escaped one only if no other one may close it."""
        found = _quoted(rest, 0)
        first = found
        while found is not None:
            if self._TAIL.match(rest, found[1]):
                return rest[:found[1] - 1], found[1]
            found = _quoted(rest, found[1])
        if first is None or rest[first[1]:first[1] + 1] not in (b"", b" "):
            for at, byte in enumerate(rest):
                if byte == 0x22 and self._TAIL.match(rest, at + 1):
                    return rest[:at], at + 1
        return first if first is not None else (rest, len(rest))

    @staticmethod
    def _method_and_path(request):
        method, blank, rest = request.partition(b" ")
        words = [word for word in rest.split(b" ") if word]
        if not blank or not words or not re.fullmatch(rb"[A-Za-z0-9_-]+", method):
            return {}
        target = words[0]
        if len(words) > 2:
            if not words[-1].startswith(b"HTTP/"):
                return {}
            target = rest.strip(b" ")[:-len(words[-1])].rstrip(b" ")
        return {b"method": method, b"path": target}


class Delimited:
    """Values between single separator bytes, named by a header line or by place."""

    def __init__(self, separator, header, columns, quote):
        self.separator, self.header, self.columns, self.quote = separator, header, columns, quote
        self.start()

    def start(self):
        """Begins a new file: its header is still to come."""
        self.names = self.columns
        self.awaits_header = self.header

    def parse(self, line):
        """The fields of one line; None for the header."""
        if self.awaits_header:
            if line.startswith(b"\xef\xbb\xbf"):
                line = line[3:]
            names = self._split(line)
            self.awaits_header = False
            if self.columns is None:
                self.names = names
            return None
        values = self._split(line)
        names = self.names
        if names is None:
            names = [b"%d" % (i + 1) for i in range(len(values))]
        elif len(names) > 1 and len(values) == 1:
            raise Malformed("not delimited")
        places = {name: place for place, name in enumerate(names)}
        return present({name: values[place] for name, place in places.items()
                        if place < len(values)}, True)

    def _split(self, line):
        if self.quote is None:
            return line.split(self.separator)
        values = []
        at = 0
        while True:
            if line[at:at + 1] == self.quote:
                value = bytearray()
                at += 1
                while True:
                    close = line.find(self.quote, at)
                    if close < 0:
                        raise Malformed("not delimited")
                    value += line[at:close]
                    at = close + 1
                    if line[at:at + 1] != self.quote:
                        break
                    value += self.quote
                    at += 1
                values.append(bytes(value))
                if at < len(line) and line[at:at + 1] != self.separator:
                    raise Malformed("not delimited")
            else:
                end = line.find(self.separator, at)
                end = len(line) if end < 0 else end
                values.append(line[at:end])
                at = end
            if at >= len(line):
                return values
            at += 1  # the separator; a line that ends with it has one more, empty value


class Logfmt:
    """key=value key="quoted value" key= key, separated by blanks."""

    bare = ()

    _KEY = re.compile(rb'[^ \t="]+')
    _VALUE = re.compile(rb"[^ \t]*")

    def parse(self, line):
        """The fields of one line."""
        fields = {}
        self.bare = set()  # the names whose values are not quoted
        pairs = 0
        at = 0
        while True:
            while line[at:at + 1] in (b" ", b"\t"):
                at += 1
            if at >= len(line):
                break
            key = self._KEY.match(line, at)
            if not key:
                raise Malformed("not logfmt")
            at = key.end()
            if line[at:at + 1] == b"=":
                pairs += 1
                if line[at + 1:at + 2] == b'"':
                    found = _quoted(line, at + 2)
                    if found is None:
                        raise Malformed("not logfmt")
                    value, at = unescape(found[0]), found[1]
                    self.bare.discard(key[0])
                else:
                    found = self._VALUE.match(line, at + 1)
                    value, at = found[0], found.end()
                    self.bare.add(key[0])
            else:
                value = b"true"
            if line[at:at + 1] not in (b" ", b"\t", b""):
                raise Malformed("not logfmt")
            fields[key[0]] = value
        if not pairs:
            raise Malformed("not logfmt")
        return present(fields, False)


class Pattern:
    """The named groups of a regular expression, searched anywhere in the line."""

    def __init__(self, pattern, is_ready, unmatched):
        self.is_ready, self.skips = is_ready, unmatched == "skip"
        self.expression = re.compile(
            re.sub(rb"\(\?<(?![=!])", rb"(?P<", pattern.encode()), re.DOTALL)

    def parse(self, line):
        """The fields of one line; None for one to skip."""
        found = self.expression.search(line)
        if not found and self.skips:
            return None
        if not found:
            raise Malformed("no match")
        fields = {name.encode(): value for name, value in found.groupdict().items() if value}
        if self.is_ready:
            for name in [n for n in fields if n.endswith(b"2")]:
                fields.setdefault(name[:-1], fields[name])
        return present(fields, False)


READY_PATTERNS = {
    "nginx_error":
        r'^(?<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?<level>[a-z]+)\] (?<pid>\d+)#\d+: '
        r'(?:\*\d+ )?(?<message>.*?)(?:, client: (?<ip>[^, ]+), server: (?<server>[^, ]*)'
        r'(?:, request: "(?:(?<method>[A-Za-z0-9_-]+) (?<path>[^ ?"]+)[^"]*|[^"]*)")?'
        r'(?:, .*)?)?$',
    "haproxy":
        r'(?:^|\s)(?<ip>[0-9A-Fa-f.:]+):\d+ \[(?<time>[^\]]+)\] (?<frontend>\S+) '
        r'(?<backend>[^\s/]+)/(?<server>\S+) [-+0-9/]+ (?<status>-?\d+) \+?(?<bytes>\d+) '
        r'.*"(?:(?<method>[A-Za-z0-9_-]+) (?<path>[^ ?"]+)[^"]*|[^"]*)"$',
    "sshd":
        r'^(?<time>\d{4}-\d\d-\d\dT\S+|[A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d) (?<host>\S+) sshd(?:-session)?\[(?<pid>\d+)\]: '
        r'(?<message>(?:(?<event>Failed|Accepted) (?<method>\S+) for (?:invalid user )?'
        r'(?<user>.*) from (?<ip>\S+) port \d+.*|'
        r'(?<event2>Invalid) user (?<user2>.*) from (?<ip2>\S+) port \d+.*|.*))$',
}
