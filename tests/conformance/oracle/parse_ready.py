# SPDX-License-Identifier: Apache-2.0
"""The formats of three programs, each as its line is written: squid, alb, ingress_nginx.

Each parser takes one line without its ending and gives a dict of the record's fields, or raises Malformed.
"""

import re

from parse_lines import Malformed, present

_ADDRESS = re.compile(rb"(?=[^%]*[:.])[0-9A-Fa-f:.]+(?:%.+)?", re.DOTALL)
_PORT = re.compile(rb"(..*):[0-9]+", re.DOTALL)
_REQUEST = re.compile(rb"([A-Za-z0-9_-]+) +([^ ]+)")


def _is_address(word):
    return _ADDRESS.fullmatch(word) is not None


def _without_port(word):
    if len(word) > 2 and word[:1] == b"[":
        return word[1:].split(b"]")[0] if b"]" in word else word
    found = _PORT.fullmatch(word)
    if found and (_is_address(found[1]) or b":" not in found[1]):
        return found[1]
    return word


def _request(text):
    """method and path of a request line, or neither."""
    found = _REQUEST.match(text)
    return {b"method": found[1], b"path": found[2]} if found else {}


class Squid:
    """time duration ip action/status bytes method url user hierarchy/peer type, padded with blanks."""

    def parse(self, line):
        """The fields of one line."""
        columns = [None if column == b"-" else column for column in line.split(b" ") if column] + [None] * 10
        time, duration, ip, result, size, method, url, user, _, kind = columns[:10]
        if time is None or result is None or b"/" not in result:
            raise Malformed("no match")
        action, status = result.split(b"/", 1)
        return present({b"time": time, b"duration": duration, b"ip": ip, b"action": action, b"status": status,
                        b"bytes": size, b"method": method, b"path": url, b"user": user, b"type": kind}, False)


class Alb:
    """[type ]time elb client backend 3 times status backend_status received bytes "request" "agent" …"""

    def parse(self, line):
        """The fields of one line."""
        words = line.split(b" ", 12)
        if not self._is_time(words[0]):
            kind, words = words[0], line.split(b" ", 13)[1:]
        else:
            kind = b""
        words += [b""] * 13
        ip = _without_port(words[2])
        if not self._is_time(words[0]) or not _is_address(ip):
            raise Malformed("no match")
        fields = {b"time": words[0], b"type": kind, b"ip": ip, b"status": words[7], b"bytes": words[10]}
        request = {}
        if words[11][:1] == b'"':
            request = _request(line.split(b" ", 12 if kind else 11)[-1][1:].split(b'"')[0])
        return {**present({**fields, b"method": request.get(b"method")}, True),
                **present({b"path": request.get(b"path")}, False)}

    @staticmethod
    def _is_time(word):
        return re.match(rb"[0-9]...-.....T", word, re.DOTALL) is not None


class IngressNginx:
    """ip - [[ip] - ]user [time] "request" status bytes "referer" "agent" …"""

    _HEAD = re.compile(rb'([^ ]*) - ([^"]*)\[([^\["]*)\] "', re.DOTALL)
    _TAIL = re.compile(rb'" ([^ ]*)(?: ([^ ]*))?', re.DOTALL)

    def parse(self, line):
        """The fields of one line."""
        found = self._HEAD.match(line)
        if not found or not _is_address(found[1]):
            raise Malformed("no match")
        user = re.sub(rb"^\[[^\]]*\](?: - )?", b"", found[2])
        fields = {b"ip": found[1], b"time": found[3], b"user": user[:-1] if user[-1:] == b" " else user}
        rest = line[found.end():]
        request = rest.split(b'"')[0]
        tail = self._TAIL.match(rest, len(request))
        if tail:
            fields[b"status"], fields[b"bytes"] = tail[1], tail[2]
        return {**present(fields, True), **_request(request)}


READY_PARSERS = {"squid": Squid, "alb": Alb, "ingress_nginx": IngressNginx}
