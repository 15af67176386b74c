#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may ask the archiver's API, how often, and what others can do to it: tokens, rates, fuzz, crowds, slow readers.

    WEIR_IDLE_CONNECTIONS=10000 tests/integration/test_archiver_api_guards.py idle   # needs ulimit -n 25000
    WEIR_API_FUZZ=100000 tests/integration/test_archiver_api_guards.py fuzz
"""

import os
import random
import resource
import socket
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.archiver_api import CONTRACT, on_sqlite, started_with
from support.archiver_rows import FIRST_MS, policies
from support.place import PATIENCE_S, SANITIZED, until

TOKEN, OTHER = "a-token-of-16-or-more", "another-token-0123456789"
# Of the process, with hundreds of connections and answers under way; a sanitizer's shadow is not counted.
MEMORY_BYTES = 200 << 20


def filled(api):
    """The same API, with zones."""
    api.insert("policy_version", policies())
    return api


def refused(api, status, parameter, resource, parameters=None, **headers):
    """Asks for what is refused: the message."""
    answer = api.ask(resource, parameters, **headers)
    assert answer.status == status, (answer.status, answer.body)
    assert answer.json()["error"]["parameter"] == parameter, answer.body
    return answer.json()["error"]["message"]


# ---- who may ask ----

def test_tokens(place):
    os.environ["WEIR_TEST_TOKEN"] = OTHER
    api = filled(on_sqlite(place, tokens=[{"file": place.write("token", TOKEN + "\n")}, {"env": "WEIR_TEST_TOKEN"}]))
    assert "missing" in refused(api, 401, "Authorization", "zones")
    for wrong in ("x" * 21, TOKEN[:-1], TOKEN + "x", TOKEN + TOKEN, "", OTHER.upper()):
        assert "wrong" in refused(api, 401, "Authorization", "counts", {"zone": "site"}, Authorization=f"Bearer {wrong}")
    assert refused(api, 401, "Authorization", "zones", Authorization=TOKEN)
    assert api.ask("zones").headers["www-authenticate"] == "Bearer"
    for scheme, token in (("Bearer", TOKEN), ("bearer", OTHER)):
        assert api.ask("zones", Authorization=f"{scheme} {token}").status == 200
    assert api.ask("openapi.json").status == 200
    assert api.ask("zones", Host="weir.example", Authorization=f"Bearer {TOKEN}").status == 200
    api.end()


def test_without_tokens_only_this_machine_is_listened_to(place):
    for address, words in (("0.0.0.0:0", "must be a loopback address"), (":0", "tokens"),
                           ("10.0.0.1:80", "tokens"), ("nonsense", "must be HOST:PORT")):
        program = started_with(place, address)
        assert program.wait() == 1 and words in program.said(), program.said()
    program = started_with(place, "127.0.0.1:0", tokens=["short"])
    assert program.wait() == 1 and "archiver.tokens[0]: a token must be 16 to 1024" in program.said(), program.said()
    program = started_with(place, "*:0", tokens=[TOKEN])
    until(lambda: program.out().endswith(b"\n"), "it listens", running=program)
    assert program.stop() == 0


def test_without_tokens_nobody_asks_by_a_name(place):
    """A site whose name is made to lead to this machine would read the archive through its visitors' browsers."""
    api = filled(on_sqlite(place))
    for name in ("evil.example", "evil.example:8642", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil", ""):
        assert "archiver.tokens" in refused(api, 421, "Host", "zones", Host=name), name
    for name in ("127.0.0.1", "127.0.0.1:1", "[::1]:8642", "localhost", "LocalHost:8642", "192.0.2.7"):
        assert api.ask("zones", Host=name).status == 200, name
    # of a target in absolute form the name is what it says, whatever Host says
    for host, other, status in (("evil.example", "127.0.0.1", b"421"), ("127.0.0.1", "evil.example", b"200")):
        with socket.create_connection(("127.0.0.1", api.port), PATIENCE_S) as one:
            one.sendall(f"GET http://{host}/api/v1/zones HTTP/1.1\r\nHost: {other}\r\nConnection: close\r\n\r\n".encode())
            assert one.makefile("rb").readline().split()[1] == status, host
    api.end()


def test_rate_is_each_clients_own(place):
    api = filled(on_sqlite(place, tokens=[TOKEN, OTHER], api_rate=1))
    def ask(token):
        return api.ask("zones", Authorization=f"Bearer {token}")
    begin = time.monotonic()
    good, refused_one = 0, None
    while refused_one is None:
        answer = ask(TOKEN)
        if answer.status == 200:
            good += 1
        else:
            refused_one = answer
        assert good <= 5 + time.monotonic() - begin
    assert good >= 4 and refused_one.status == 429 and int(refused_one.headers["retry-after"]) >= 1
    assert ask(OTHER).status == 200
    assert api.ask("zones").status == 401  # without a token: a client of its own
    until(lambda: ask(TOKEN).status == 200, "the next is let in")


# ---- what is refused ----

def test_refusals_name_what_is_expected(place):
    api = filled(on_sqlite(place))
    zone = {"zone": "site"}
    assert "/api/v1/zones" in refused(api, 404, "zone", "counts", {"zone": "nobody"})
    assert "missing" in refused(api, 400, "zone", "counts")
    assert "missing" in refused(api, 400, "zone", "decisions", {"key": "x"})
    assert "missing" in refused(api, 400, "key", "events", zone)
    for bad in ("yesterday", "2024-13-01", "2023-02-29", "2024-01-01T24:00", "1e3", "9" * 15, "2024-01-01T00:00:00."):
        assert "ISO 8601" in refused(api, 400, "from", "counts", {**zone, "from": bad})
    assert "before" in refused(api, 400, "from", "counts", {**zone, "from": 2, "to": 2})
    assert "at most 10000 hours" in refused(api, 400, "from", "counts", {**zone, "key": "x", "from": 0})
    assert "at most 3660 days" in refused(api, 400, "from", "counts", {**zone, "grain": "day", "from": 0})
    assert "at most 366 days" in refused(api, 400, "from", "top", {**zone, "from": 0, "to": FIRST_MS})
    assert "either" in refused(api, 400, "day", "top", {**zone, "day": 5, "to": FIRST_MS})
    assert "\"day\"" in refused(api, 400, "to", "top", {**zone, "from": 0})
    assert "hour, day" in refused(api, 400, "grain", "counts", {**zone, "grain": "week"})
    assert "1 to 1000" in refused(api, 400, "limit", "decisions", {"limit": 1001})
    assert "1 to 1000000" in refused(api, 400, "limit", "decisions", {"limit": 1000001, "format": "csv"})
    for most, asked in ((1000, {}), (1000, {"format": "json"}), (1000000, {"format": "spreadsheet"})):
        assert f"1 to {most}" in refused(api, 400, "limit", "decisions", {"limit": 0, **asked})
        assert f"1 to {most}" in refused(api, 400, "limit", "decisions", {**asked, "limit": 0})
    assert "1 to 1000" in refused(api, 400, "limit", "blocks", {"limit": 0})
    assert refused(api, 400, "action", "decisions", {"action": "allow"}).endswith("block, lift"), "no decision has it"
    assert refused(api, 400, "mode", "decisions", {"mode": "dark"}).endswith("enforce, shadow, all")
    for bad in ("0", "-1", "1.5", "1" * 30, " 1"):
        refused(api, 400, "limit", "blocks", {"limit": bad})
    for bad in ("x", "1.2.3", "1.2.3.4.5", "1.2.3.4 ", "99999999999999999999.0.0.0", "1.0x2.3.4"):
        assert "next" in refused(api, 400, "after", "decisions", {"after": bad})
    assert "expected one of zone, limit" in refused(api, 400, "nonsense", "blocks", {"nonsense": 1})
    assert "none is expected" in refused(api, 400, "zone", "status", zone)
    assert "text/csv" in refused(api, 406, "Accept", "counts", zone, Accept="image/png")
    assert refused(api, 406, "Accept", "zones", Accept="text/csv") == "expected application/json"
    assert api.ask("counts", {**zone, "key": "x", "format": "csv"}, Accept="image/png").status == 200
    assert api.raw("/api/v1/blocks?limit=1&limit=1").json()["error"]["message"] == "given twice: expected once"
    for target, status in (("/api/v1", 404), ("/nothing", 404), ("/api/v1/zones/", 404), ("/api/v1/zones?x=" + 9000 * "x", 414)):
        answer = api.raw(target)
        assert answer.status == status and answer.json()["error"]["status"] == status, (target, answer.body[:200])
    assert api.raw("/api/v1/zones", method="POST").status == 405
    assert api.raw("/api/v1/zones", method="DELETE").headers["allow"] == "GET, HEAD"
    assert api.raw("/api/v1/zones", method="HEAD").body == b""
    api.end()


def test_a_range_ends_after_it_begins(place):
    """One rule, whatever is asked for: no range is empty without a word."""
    api = filled(on_sqlite(place))
    key = {"zone": "site", "key": "x"}
    for resource, wanted in (("counts", key), ("top", {"zone": "site"}), ("decisions", {}), ("events", key), ("held", key)):
        for span in ({"from": "2025-03-30", "to": "2025-03-29"}, {"from": 2, "to": 2}):
            assert refused(api, 400, "from", resource, {**wanted, **span}) == 'expected a time before "to"', resource
        assert api.ask(resource, {**wanted, "from": "2025-03-29", "to": "2025-03-30"}).status == 200, resource
    api.end()


def test_a_nul_ends_nothing(place):
    api = filled(on_sqlite(place))
    for target in ("/api/v1/zones%00", "/api/v1/zones%00junk", "/%00", "/api/v1/zones%00?limit=1", "/api/v1%00/zones"):
        assert api.raw(target).status == 404, target
    assert api.raw("/api/v1/counts?zone=site%00junk").status == 404
    for query in ("zone%00=site", "zone=site&from=2025-03-29%00", "zone=site&grain=day%00", "zone=site&format=csv%00x"):
        assert api.raw("/api/v1/counts?" + query).status == 400, query
    assert api.raw("/api/v1/counts?zone=site&key=a%00b").json()["key"] == "a\0b"
    api.end()


def test_accept_is_weighed(place):
    """By RFC 9110: the most exact range counts, and weight 0 is a refusal. JSON is the default."""
    api = filled(on_sqlite(place))
    json_type, csv = "application/json", "text/csv; charset=utf-8"
    for field, kind in (("text/csv;q=0, application/json", json_type), ("text/csv", csv), ("*/*", json_type), ("", json_type),
                        ("text/csv, application/json", csv), ("application/json, text/csv", json_type),
                        ("text/csv;q=0.5, application/json", json_type), ("application/json;q=0.001,TEXT/CSV ; Q=0.002", csv),
                        ("text/*", csv), ("application/json;q=0, */*", csv), ("text/csv, */*;q=0.1", csv),
                        ("text/html, */*;q=0.8", json_type), ('x/y;a="text/csv,", application/*;q=0.1', json_type),
                        ("*/*;q=0", None), ("text/csv;q=0", None), ("text/csv;q=0.000, application/json;q=0.0", None),
                        ("application/json;q=0, text/csv;q=0, */*", None), ("text/csvx, application/jsonp", None)):
        answer = api.ask("counts", {"zone": "site"}, Accept=field)
        assert answer.status == (406 if kind is None else 200), (field, answer.status)
        assert kind is None or answer.headers["content-type"] == kind, (field, answer.headers)
    for field, status in (("application/json;q=0, */*", 406), ("text/csv, */*;q=0", 406), ("text/csv, */*;q=0.1", 200)):
        assert api.ask("zones", Accept=field).status == status, field
    api.end()


def test_a_tag_is_good_until_something_changes(place):
    api = filled(on_sqlite(place))
    wanted = {"zone": "site", "from": FIRST_MS, "to": FIRST_MS + 3600_000, "key": "x"}
    first = api.ask("counts", wanted)
    again = api.ask("counts", wanted, If_None_Match=first.headers["etag"])
    assert first.status == 200 and again.status == 304
    api.insert("count_hourly", [(1, b"x", FIRST_MS, 3, 0, 0)])  # late, in an hour that was over
    assert api.ask("counts", wanted, If_None_Match=first.headers["etag"]).json()["total"]["passed"] == 3


# ---- anything at all ----

def odd(chance):
    """A value that somebody may send."""
    return chance.choice([
        "", "site", "login", "hour", "day", "block", "shadow", "all", "csv", "json", "total", "0", "1", "-1", "5", "1000", str(FIRST_MS),
        "2023-11-15", "2023-11-15T00:00:00Z", "1700000000000.0.0.0", "\x00", "a\x00b", "\u00fc", "%", "'", "' OR 1=1 --",
        '"', "\\", "../../etc/passwd", "9" * 40, "1" * 1500, "NaN", "null", "\xff", "|", "\r\nX: y", "{}", "-0", "+1",
        "".join(chr(chance.randrange(1, 300)) for _ in range(chance.randrange(40)))])


def test_fuzz(place):
    api = filled(on_sqlite(place))
    seed = int(os.environ.get("WEIR_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    names = ["zone", "key", "from", "to", "day", "grain", "by", "action", "mode", "limit", "after", "format", "\x00", "Zone", ""]
    seen = set()
    for _ in range(int(os.environ.get("WEIR_API_FUZZ", "600"))):
        path = chance.choice(list(CONTRACT.document["paths"]))
        known = [one["name"] for one in CONTRACT.document["paths"][path]["get"].get("parameters", [])] or names
        some = [(chance.choice(known if chance.random() < 0.95 else names), odd(chance))
                for _ in range(chance.randrange(5))]
        if chance.random() < 0.6:
            some.append(("zone", "login"))
        query = urllib.parse.urlencode(some, quote_via=chance.choice([urllib.parse.quote, urllib.parse.quote_plus]))
        if chance.random() < 0.1:
            query = "".join(chance.choice("%&=+?;zone'\"a0\\") for _ in range(20))
        answer = api.raw(f"{path}?{query}", Accept=chance.choice(["*/*", "text/csv", "application/json", "x", ""]))
        expected = (200, 400, 404, 406, 414) if path != "/api/v1/why" else (400, 403, 404, 406, 414)  # without a token
        assert answer.status in expected, (path, query, answer.status)
        CONTRACT.check(path, answer)
        seen.add(answer.status)
    assert {200, 400, 404} <= seen
    assert api.get("zones")["zones"]
    api.end()


# ---- many, and slow ones ----

def resident(api):
    """Bytes that the process holds."""
    with open(f"/proc/{api.program.pid}/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def answers_well(api):
    """The API answers others, and its memory is bounded."""
    assert api.get("zones")["zones"]
    assert SANITIZED or resident(api) < MEMORY_BYTES, resident(api)


def test_idle_connections(place):
    wanted = int(os.environ.get("WEIR_IDLE_CONNECTIONS", "400"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * wanted + 500)), hard))
    api = filled(on_sqlite(place))
    held = []
    try:
        for number in range(wanted):
            one = socket.create_connection(("127.0.0.1", api.port), timeout=PATIENCE_S)
            held.append(one)
            if number % 2:
                one.sendall(b"GET /api/v1/zones HTTP/1.1\r\nHost: x\r\nX-" + b"y" * (number % 4000))
            if number % 100 == 0:
                answers_well(api)
        answers_well(api)
        print(f"{wanted} connections, {resident(api) >> 20} MiB")
    finally:
        for one in held:
            one.close()
    answers_well(api)
    api.end()


def crowd(api):
    """Connections that ask for a long answer and do not read it, once so many come at a time that some are refused."""
    held = []
    for _ in range(24):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(PATIENCE_S)
        one.connect(("127.0.0.1", api.port))
        one.sendall(b"GET /api/v1/decisions?format=csv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        held.append(one)
    begun = [one.recv(12)[9:] for one in held]
    assert set(begun) <= {b"200", b"503"}, begun
    if b"503" in begun:
        return held
    for one in held:
        one.close()
    return None


def test_slow_readers_of_long_answers(place):
    api = filled(on_sqlite(place))
    rows = [(FIRST_MS + number, 0, number, 0, "site", b"%d-" % number + b"k" * 900, "block", FIRST_MS, "enforce",
             "uniform", 1, 1000, 1, None, None, None) for number in range(25000)]
    api.insert("decision_history", rows)
    held = until(lambda: crowd(api), "some of a crowd are refused")
    for _ in range(20):
        answers_well(api)
    for one in held:
        one.close()
    whole = until(lambda: (lambda one: one.status == 200 and one)(api.ask("decisions", {"format": "csv"})),
                  "a long answer is given again")
    assert whole.body.count(b"\r\n") == 25001
    api.end()


if __name__ == "__main__":
    cases.main(globals())
