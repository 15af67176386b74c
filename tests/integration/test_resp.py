#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The surface of checks, byte by byte: order, bounds, logins, TLS. Behind it is a judge of the tests' own (resp_model)."""

import json
import os
import re
import resource
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.checks import Raw, command, five, model
from support.place import SANITIZED, until
from support.redis import Redis, RedisError, refused

from parts import tls  # pylint: disable=wrong-import-order
from parts.process import together  # pylint: disable=wrong-import-order

MANY = 5_000 if SANITIZED else 100_000
SOCKETS = 300 if SANITIZED else 3_000


def about(client):
    """INFO's members."""
    return dict(line.split(":", 1) for line in client.call("INFO").decode().splitlines() if ":" in line)


def test_verdicts_and_numbers(place):
    """Ten pass, the eleventh does not; a peek counts nothing; each key and zone by itself."""
    with model(place) as port:
        client = Redis(port)
        for left in range(9, -1, -1):
            limited, limit, remaining, retry_ms, reset_ms = client.call("weir.CHECK", "192.0.2.1", "site")
            assert (limited, limit, remaining, retry_ms) == (0, 10, left, -1) and 0 < reset_ms <= 60000
        assert client.call("WEIR.PEEK", "192.0.2.2", "site", 10)[:4] == [0, 10, 10, -1]
        limited, limit, remaining, retry_ms, _ = client.call("WEIR.CHECK", "192.0.2.1", "site")
        assert (limited, limit, remaining) == (1, 10, 0) and 0 < retry_ms <= 60000
        assert client.call("WEIR.ALLOW", "192.0.2.1", "site") == 0
        assert client.call("WEIR.ALLOW", "192.0.2.3", "site", 10) == 1
        assert client.call("WEIR.ALLOW", "192.0.2.3", "site") == 0
        assert client.call("WEIR.CHECK", "192.0.2.4", "site", 11)[:4] == [1, 10, 10, -1], "it can never pass"
        assert client.call("WEIR.CHECK", "192.0.2.4", "site", 0)[:3] == [0, 10, 10], "cost 0 peeks"


def test_throttle_as_redis_cell(place):
    """Its documentation's and its tests' replies, by the zone that has the numbers."""
    with model(place) as port:
        client = Redis(port)
        throttle = lambda *words: client.call("CL.THROTTLE", *words)
        assert throttle("a", 15, 30, 60) == [0, 16, 15, -1, 2]
        assert throttle("a", 15, 30, 60, 0) == [0, 16, 15, -1, 2]
        assert throttle("a", 15, 30, 60, 100) == [1, 16, 15, -1, 2]
        assert throttle("b", 0, 1, 1) == [0, 1, 0, -1, 1] and throttle("b", 0, 1, 1) == [1, 1, 0, 1, 1]
        assert refused(client, "CL.THROTTLE", "a", 15, 0, 60) == "ERR Zero rates are not supported"
        assert refused(client, "CL.THROTTLE", "a", 15, 30, 0) == "ERR Zero rates are not supported"
        assert "no zone has gcra burst 15, rate 30, window 61s as its only limit: add it" in \
            refused(client, "CL.THROTTLE", "a", 15, 30, 61)
        for wrong in ((15,), (15, 30, 60, 1, 1)):
            assert refused(client, "CL.THROTTLE", "a", *wrong).startswith("ERR "), wrong
        assert throttle("a", 15, 30, 60, 1 << 40)[0] == 1
        for name, most, wrong in (("max_burst", 10 ** 9, ("x", 30, 60)), ("max_burst", 10 ** 9, (-1, 30, 60)),
                                  ("max_burst", 10 ** 9, (1 << 32, 30, 60)), ("count", 10 ** 9, (15, -1, 60)),
                                  ("count", 10 ** 9, (15, 10 ** 9 + 1, 60)), ("quantity", 1 << 40, (15, 30, 60, -1)),
                                  ("quantity", 1 << 40, (15, 30, 60, (1 << 40) + 1)), ("period", 366 * 86400, (15, 30, "9" * 30)),
                                  ("period", 366 * 86400, (15, 30, 366 * 86400 + 1)), ("period", 366 * 86400, (15, 30, 9223372036854775807))):
            said = refused(client, "CL.THROTTLE", "a", *wrong)
            assert said.startswith(f"ERR {name}") and said.endswith(f"from 0 to {most}"), (wrong, said)


def test_two_zones_of_the_same_numbers_are_refused(place):
    """Which of them would be meant is not guessed."""
    zones = [{"name": name, "key": ["user"], "limits": [{"algorithm": "gcra", "rate": 1, "window": "1s", "burst": 2}]}
             for name in ("one", "other")]
    with model(place, zones=zones) as port:
        said = refused(Redis(port), "CL.THROTTLE", "a", 2, 1, 1)
        assert "'one' and 'other'" in said and "WEIR.CHECK" in said, said


def test_keys_meet_the_buckets_of_the_log(place):
    """However an address is written, it is counted where log lines of it are; a key of two fields has a bar."""
    with model(place) as port:
        client = Redis(port)
        left = lambda key, zone: client.call("WEIR.CHECK", key, zone)[2]
        assert [left(key, "site") for key in ("2001:db8::1", "2001:DB8::1", "[2001:db8::1]:80")] == [9, 8, 7]
        same = ("2001:db8::1", "2001:DB8:0::1", "[2001:db8::1]:443", "2001:db8:0:0:0:0:0:1")
        assert [left(key, "whole") for key in same] == [99, 98, 97, 96]
        assert [left(key, "whole") for key in ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1:80")] == [99, 98, 97]
        assert [left(key, "nets") for key in ("2001:db8::1", "2001:db8::ffff", "2001:db8::/64", "2001:db8:0:1::")] == \
            [99, 98, 97, 99]
        assert [left(key, "nets") for key in ("192.0.2.1", "192.0.2.255", "192.0.2.0/24", "192.0.3.1")] == [99, 98, 97, 99]
        assert [left(key, "two") for key in ("2001:db8::1|/a", "2001:DB8::1|/a", r"2001:db8::1|/a\|b")] == [2, 1, 2]
        assert left("no address", "site") == 9
        for key, zone in (("192.0.2.1", "two"), ("a|b|c", "two"), (r"a\b|c", "two")):
            assert "write | and \\ inside of a value" in refused(client, "WEIR.CHECK", key, zone), key
        # One value is taken as it is: what a client writes into it makes no error, after which a gateway would serve.
        for key in ("a|b", "a\\", r"a\b", r"a\|b", "x" * 1024, "x" * 1025, "|" * 1000, "x" * 100000):
            assert [left(key, "cell") for _ in range(2)] == [15, 14], key[:10]
        long, other = ("192.0.2.7|/" + "x" * 5000 + end for end in "ab")
        assert [left(key, "two") for key in (long, long, other)] == [2, 1, 2]
        # From limiter to limiter a key is joined already: it is not escaped again.
        whole = client.call("WEIR.FORWARD", r"a\|b", "cell", 1, 0, 0, 0)
        assert whole[2] == left("a|b", "cell") + 1 == 13, whole
        assert "write | and" in refused(client, "WEIR.FORWARD", "a|b", "cell", 1, 0, 0, 0)


def test_numbers_are_read_as_by_whose_command_it_is(place):
    """CL.THROTTLE takes what redis-cell, in Rust, takes: a plus, zeros in front. All else is read as Redis reads it, which takes neither."""
    with model(place) as port:
        client = Redis(port)
        for burst in ("15", "+15", "0015", "+0015", "0" * 40 + "15"):
            for count, period in (("30", "60"), ("+30", "060")):
                assert client.call("CL.THROTTLE", "a", burst, count, period, "+0") == [0, 16, 16, -1, 0], burst
        assert client.call("CL.THROTTLE", "b", "-0", "1", "+1") == [0, 1, 0, -1, 1]
        assert client.call("CL.THROTTLE", "c", 15, 30, 60, "+2")[2] == 14
        for wrong in ("", "+", "-", "+-1", "-+1", "--1", "++1", " 15", "15 ", "1_5", "0x10", "15.0", "1" + "0" * 18 + "0", "9" * 30, "\u0661"):
            assert "must be a whole number" in refused(client, "CL.THROTTLE", "a", wrong, 30, 60), wrong
        for wrong in ("+1", "01", "-0", " 1", "1 ", "", "-", "1.0"):
            for words in (["WEIR.CHECK", "a", "site", wrong], ["WEIR.PEEK", "a", "site", wrong], ["WEIR.ALLOW", "a", "site", wrong],
                          ["WEIR.RESERVE", "a", "site", wrong], ["WEIR.RESERVE", "a", "site", 1, wrong], ["WEIR.ALL", wrong, "a", "site", 1],
                          ["WEIR.ALL", 1, "a", "site", wrong], ["WEIR.SETTLE", "a", "site", "0" * 32, wrong]):
                assert refused(client, *words).startswith("ERR "), words
            assert refused(client, "HELLO", wrong) == "ERR Protocol version is not an integer or out of range"
            assert refused(client, "CLUSTER", "COUNTKEYSINSLOT", wrong) == "ERR value is not an integer or out of range"
            assert refused(client, "SELECT", wrong).startswith("ERR ")
        assert refused(client, "CLUSTER", "COUNTKEYSINSLOT", 16384) == "ERR Invalid slot"
        assert client.call("WEIR.CHECK", "a", "site")[2] == 9, "none of these was counted"
        for head in (b"*01\r\n$4\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n"):
            with Raw(port) as raw:
                raw.send(head)
                assert raw.ends().startswith(b"-ERR Protocol error: invalid "), head


def test_what_monitors_ask(place):
    """INFO by sections, settings, logs that are kept empty, and no keys: all of it true, and an error for what weir does not have."""
    with model(place) as port:
        client = Redis(port)
        for _ in range(5):
            client.call("WEIR.CHECK", "a", "site")
        refused(client, "GET", "a")
        told = about(client)
        assert (told["total_commands_processed"], told["connected_clients"], told["total_connections_received"]) == ("6", "1", "1"), told
        assert about(client)["total_commands_processed"] == "7", "of which the first INFO is one"
        assert 1 << 20 < int(told["used_memory"]) <= int(told["used_memory_peak"]) < 1 << 30 and told["used_memory_human"][-1] in "KMG", told
        assert float(told["used_cpu_user"]) + float(told["used_cpu_sys"]) > 0 and told["blocked_clients"] == "0"
        assert not any(name.startswith("db") for name in told), "whoever has no keys has no line of them"
        sections = lambda *words: [line[2:] for line in client.call("INFO", *words).decode().splitlines() if line.startswith("# ")]
        everything = ["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Cluster", "Keyspace"]
        for words in ([], ["all"], ["ALL"], ["everything"], ["default"], ["memory", "default"]):
            assert sections(*words) == everything, words
        assert sections("memory", "clients", "Memory") == ["Clients", "Memory"] and client.call("INFO", "commandstats") == b""
        settings = lambda *words: dict(zip(*[iter(client.call("CONFIG", "GET", *words))] * 2))
        assert settings("save") == {b"save": b""} and settings("APPENDONLY") == {b"appendonly": b"no"}
        assert settings("slowlog-*", "maxclients", "max*") == {b"slowlog-log-slower-than": b"-1", b"slowlog-max-len": b"0",
                                                              b"maxclients": told["maxclients"].encode(), b"maxmemory-policy": b"noeviction"}
        assert len(settings("*")) == 10 and not settings("nosuch", "requirepass", "x" * 100, "*" * 60 + "x")
        assert refused(client, "CONFIG", "GET") == "ERR wrong number of arguments for 'config|get' command"
        assert client.call("KEYS", "*") == [] and client.call("DBSIZE") == 0
        for words in ([0], [0, "MATCH", "a*", "COUNT", 1000], [17, "TYPE", "string"]):
            assert client.call("SCAN", *words) == [b"0", []], words
        for words, why in ((["x"], "invalid cursor"), ([0, "COUNT"], "syntax error"), ([0, "COUNT", "x"], "value is not an integer or out of range"),
                           ([0, "COUNT", 0], "syntax error"), ([0, "OF", 1], "syntax error")):
            assert refused(client, "SCAN", *words) == f"ERR {why}", words
        assert client.call("SLOWLOG", "GET") == client.call("SLOWLOG", "GET", 128) == client.call("LATENCY", "LATEST") == []
        assert client.call("SLOWLOG", "LEN") == client.call("LATENCY", "RESET") == 0 and client.call("MODULE", "LIST") == []
        assert client.call("LATENCY", "HISTOGRAM") == client.call("LATENCY", "HISTORY", "command") == []
        for words in (["SLOWLOG", "x"], ["LATENCY", "DOCTOR"], ["MODULE", "LOAD", "x"], ["SLOWLOG", "GET", "x"], ["SLOWLOG", "GET", -2]):
            assert refused(client, *words).startswith("ERR "), words
        for words in (["MEMORY", "USAGE", "a"], ["OBJECT", "ENCODING", "a"], ["TYPE", "a"], ["MONITOR"], ["SYNC"], ["COMMANDLOG", "LEN"]):
            assert refused(client, *words).startswith(f"ERR unknown command '{words[0]}'"), words


def test_errors_say_what_to_do(place):
    """Of each kind one."""
    with model(place) as port:
        client = Redis(port)
        assert 'did you mean "site"' in refused(client, "WEIR.CHECK", "a", "sit")
        assert "cost must be a number" in refused(client, "WEIR.CHECK", "a", "site", "x")
        assert "cost must be a number" in refused(client, "WEIR.CHECK", "a", "site", -1)
        assert "WEIR.CHECK key zone [cost]" in refused(client, "WEIR.CHECK", "a")
        assert "in a pipeline" in refused(client, "WEIR.CHECK", "a", "site", 1, "b")
        assert refused(client, "GET", "a").startswith("ERR unknown command 'GET'")
        assert "the key has no ip: a key of zone 'site' is ip" in refused(client, "WEIR.CHECK", "", "site")
        assert "the key has no path: a key of zone 'two' is ip|path" in refused(client, "WEIR.CHECK", "192.0.2.1|", "two")
        assert "64 words" in refused(client, "PING", *["a"] * 64)
        assert refused(client, "SELECT", 1).startswith("ERR DB index")
        assert refused(client, "HELLO", 4) == "NOPROTO unsupported protocol version"
        assert client.call("PING") == b"PONG"


def test_replies_keep_their_order(place):
    """Checks that are answered at once or later, and other commands between them, on several connections."""
    sent = b"".join([command("ECHO", 1), command("WEIR.CHECK", "a", "site", 4), command("WEIR.CHECK", "b", "site"),
                     command("GET", "x"), command("WEIR.CHECK", "a", "site", 7), command("WEIR.CHECK", "a", "nozone"),
                     command("WEIR.ALLOW", "a", "site", 6), command("ECHO", 2), b"PING\r\n"])
    wanted = re.compile(rb"\$1\r\n1\r\n\*5\r\n:0\r\n:10\r\n:6\r\n:-1\r\n:\d+\r\n\*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:\d+\r\n"
                        rb"-ERR unknown [^\r]*\r\n\*5\r\n:1\r\n:10\r\n:6\r\n:\d+\r\n:\d+\r\n-ERR there is no zone [^\r]*\r\n"
                        rb":1\r\n\$1\r\n2\r\n\+PONG\r\n")
    for mode in ("now", "later"):
        with model(place, mode) as port, Raw(port) as whole:
            whole.send(sent)
            whole.socket.shutdown(1)  # who sends no more is answered anyway
            came = whole.ends()
            assert wanted.fullmatch(came), came
        with model(place, mode) as port, Raw(port) as slow:
            for at in range(len(sent)):
                slow.send(sent[at:at + 1])
            slow.send(b"QUIT\r\n")
            came = slow.ends()
            assert wanted.fullmatch(came[:-5]) and came.endswith(b"+OK\r\n"), came


def test_pipelines_of_a_hundred_thousand(place):
    """All of it is answered, and little is kept for whoever reads late."""
    for mode in ("now", "later"):
        with model(place, mode) as port, Raw(port) as connection:
            some = b"".join(command("WEIR.ALLOW", f"user{at}", "wide") for at in range(MANY // 2)) + b"PING\r\n" * (MANY // 2)
            sender = threading.Thread(target=connection.send, args=[some])
            sender.start()
            wanted = b":1\r\n" * (MANY // 2) + b"+PONG\r\n" * (MANY // 2)
            assert connection.take(len(wanted)) == wanted
            sender.join()


def test_who_reads_no_replies_is_not_read(place):
    """Replies of one client are kept up to a bound; then its commands stay in its kernel, and nothing is lost."""
    echo = command("ECHO", "x" * 60_000)
    with model(place) as port, Raw(port) as connection:
        sender = threading.Thread(target=connection.send, args=[echo * 500])
        sender.start()
        client = Redis(port)
        kept = []
        for _ in range(20):
            kept.append(int(about(client)["buffered_bytes"]))
            time.sleep(0.01)
        assert 1 << 20 < max(kept) < 4 << 20, kept
        wanted = b"$60000\r\n" + b"x" * 60_000 + b"\r\n"
        for _ in range(500):
            assert connection.take(len(wanted)) == wanted
        sender.join()
        until(lambda: int(about(client)["buffered_bytes"]) < 100_000, "buffers are given back")


def test_what_is_no_command_ends_the_connection(place):
    """At once, with a word, and nobody else is disturbed."""
    with model(place) as port, Raw(port) as other:
        for sent, said in (
                (b"*1\r\n$536870912\r\n", b"-ERR Protocol error: invalid bulk length: the command would be too long\r\n"),
                (b"*2147483647\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
                (b"*1\r\n$-5\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
                (b"*1\r\n*1\r\n$4\r\nPING\r\n", b"-ERR Protocol error: expected '$': a command is an array of bulk strings\r\n"),
                (b"x" * 20_000, b"-ERR Protocol error: too big inline request\r\n"),
                (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nPING\r\n", b"-ERR Protocol error: this port speaks Redis' protocol, not HTTP\r\n"),
                (b"\x16\x03\x01\x02\x00", b"-ERR Protocol error: this port speaks Redis' protocol without TLS\r\n"),
                (b"POST / HTTP/0.9\r\n\r\nPING\r\n", b"-ERR Protocol error: this port speaks Redis' protocol, not HTTP\r\n"),
                (b"POST /\r\n\r\nPING\r\n", b""), (b"Host: localhost\r\nPING\r\n", b"")):
            with Raw(port) as connection:
                connection.send(sent)
                came = connection.ends()
                assert came == said, (sent[:40], came)
        other.answers(b"PING\r\n", b"+PONG\r\n")
        with Raw(port) as connection:
            some = b"*2\r\n$4\r\nECHO\r\n$1000000\r\n" + b"x" * 1_000_000 + b"\r\n"
            connection.answers(some, b"$1000000\r\n" + b"x" * 1_000_000 + b"\r\n")


def test_quotes_of_a_line_are_taken_off(place):
    """As Redis does. Words of checks that are not answered yet stay as they are while others come."""
    for mode in ("now", "later"):
        with model(place, mode) as port, Raw(port) as raw:
            keys = [b"a b", b"a'b", b"c\x01d", b'"', b"plain", b"e\n"]
            lines = [b'"a b"', b'"a\'b"', b'"c\\x01d"', b"'\"'", b"plain", b'e"\\n"']
            for _ in range(2):
                raw.send(b"".join(b"WEIR.CHECK " + line + b" 'cell'\r\n" for line in lines))
                raw.send(b"".join(command("WEIR.PEEK", key, "cell") for key in keys))
            raw.send(b'MULTI\r\nWEIR.CHECK "a b" cell\r\nEXEC\r\nECHO "a\r\nPING\r\n')
            numbers = [line for line in raw.ends().split(b"\r\n") if line]
            ends = numbers[numbers.index(b"+OK"):]
            left = [int(line[1:]) for line in numbers[3:24 * 6:6]]
            assert left == [15] * 12 + [14] * 12, (mode, left)
            assert ends[1] == b"+QUEUED" and ends[2] == b"*1" and ends[6] == b":13", ends
            assert ends[-1] == b"-ERR Protocol error: unbalanced quotes in request", ends


def test_multi_and_exec(place):
    """Commands between them are answered by one array, checks among them; what cannot be queued spoils it."""
    for mode in ("now", "later"):
        with model(place, mode) as port, Raw(port) as connection:
            sent = [command("MULTI"), command("PING"), command("WEIR.ALLOW", "a", "site"), command("CL.THROTTLE", "a", 15, 30, 60),
                    b"EXEC\r\n", b"PING\r\n"]
            connection.answers(b"".join(sent), b"+OK\r\n" + b"+QUEUED\r\n" * 3 + b"*3\r\n+PONG\r\n:1\r\n" +
                               five(0, 16, 15, -1, 2) + b"+PONG\r\n")
            connection.answers(b"MULTI\r\nEXEC\r\n", b"+OK\r\n*0\r\n")
            connection.answers(b"MULTI\r\nPING\r\nDISCARD\r\nDISCARD\r\n", b"+OK\r\n+QUEUED\r\n+OK\r\n-ERR DISCARD without MULTI\r\n")
            connection.answers(b"EXEC\r\nMULTI\r\nMULTI\r\n", b"-ERR EXEC without MULTI\r\n+OK\r\n-ERR MULTI calls can not be nested\r\n")
            connection.answers(b"ECHO\r\nEXEC\r\n", b"-ERR wrong number of arguments for 'echo' command: ECHO message\r\n"
                               b"-EXECABORT Transaction discarded because of previous errors.\r\n")
            connection.send(b"MULTI\r\n" + b"WEIR.ALLOW a site\r\n" * 2000 + b"EXEC\r\nPING\r\n")
            came = connection.take(5 + 1024 * 9)
            assert came == b"+OK\r\n" + b"+QUEUED\r\n" * 1024, came[-100:]
            connection.send(b"QUIT\r\n")
            came = connection.ends()
            assert came.endswith(b"-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n+OK\r\n"), came[-200:]


def test_both_protocols(place):
    """RESP2 until HELLO 3, and what differs: maps and nothing."""
    with model(place) as port, Raw(port) as connection:
        connection.answers(command("CLIENT", "GETNAME"), b"$-1\r\n")
        connection.answers(command("CONFIG", "GET", "save"), b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n")
        connection.send(command("HELLO", 3, "SETNAME", "gate") + command("CLIENT", "GETNAME"))
        connection.send(b"RESET\r\nQUIT\r\n")
        came = connection.ends()
        assert came.startswith(b"%7\r\n") and b"$5\r\nproto\r\n:3\r\n" in came and b"$4\r\ngate\r\n+RESET\r\n+OK\r\n" in came, came
    with model(place) as port, Raw(port) as connection:
        connection.send(b"HELLO 3\r\nCONFIG GET nosuch\r\nCLIENT GETNAME\r\nHELLO 2\r\nCLIENT GETNAME\r\nQUIT\r\n")
        came = connection.ends()
        assert b"%0\r\n_\r\n*14\r\n" in came and came.endswith(b"$-1\r\n+OK\r\n"), came


def test_users(place):
    """Who does not log in asks nothing; wrong words are told apart from none, and both from what is open."""
    with model(place, "user=default:secret word", "user=gate:other") as port:
        client = Redis(port)
        for words in (["PING"], ["WEIR.CHECK", "a", "site"], ["MULTI"], ["INFO"], ["HELLO", 3]):
            assert refused(client, *words).startswith("NOAUTH "), words
        for words in (["AUTH", "x"], ["AUTH", "gate", "secret word"], ["AUTH", "default", ""], ["AUTH", "nobody", "other"],
                      ["AUTH", "secret wor"], ["HELLO", 3, "AUTH", "gate", "x"]):
            assert refused(client, *words).startswith("WRONGPASS "), words
        assert client.call("AUTH", "secret word") == b"OK" and client.call("ACL", "WHOAMI") == b"default"
        assert client.call("AUTH", "gate", "other") == b"OK" and client.call("ACL", "WHOAMI") == b"gate"
        assert client.call("WEIR.ALLOW", "a", "site") == 1
        assert client.call("RESET") == b"RESET" and refused(client, "PING").startswith("NOAUTH ")
        # a long command is for those alone who are known
        with Raw(port) as connection:
            connection.send(b"*2\r\n$4\r\nAUTH\r\n$100000\r\n")
            assert b"too long" in connection.ends()
    with model(place) as port:
        said = refused(Redis(port), "AUTH", "x")
        assert "without any password" in said and "set checks.password" in said, said


def test_tls(place):
    """The same over TLS; who speaks plainly is cut off."""
    directory = place.path("tls")
    together([tls.making(directory)])
    paths = tls.files(directory)
    context = ssl.create_default_context(cafile=paths["ca"])
    wrap = lambda plain: context.wrap_socket(plain, server_hostname="127.0.0.1")
    with model(place, f"certificate={paths['cert']}", f"key={paths['key']}") as port:
        with Raw(port, wrap) as connection:
            connection.answers(command("WEIR.ALLOW", "a", "site") + b"PING\r\n", b":1\r\n+PONG\r\n")
            long = b"x" * 300_000
            connection.answers(command("ECHO", long), b"$300000\r\n" + long + b"\r\n")
            connection.answers(b"PING\r\n" * 5000, b"+PONG\r\n" * 5000)
        with Raw(port) as plain:
            plain.send(b"PING\r\n")
            assert b"PONG" not in plain.ends()


def test_many_connections(place):
    """Thousands wait without memory of their own; beyond the bound a client is told, and room is made by who leaves."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(SOCKETS, most[1] - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 200, most[1]), most[1]))
    with model(place, f"connections={count}") as port:
        connections = [Raw(port) for _ in range(count)]
        for connection in connections[::100]:
            connection.answers(b"PING\r\n", b"+PONG\r\n")
        with Raw(port) as late:
            assert late.ends().startswith(b"-ERR max number of clients reached")
        for connection in connections[::2]:
            connection.socket.close()
        client = Redis(port)

        def asked():
            try:
                return about(client)
            except (OSError, RedisError):
                return None
        figures = until(asked, "there is room again")
        assert int(figures["buffered_bytes"]) < 1 << 20, figures
        for connection in connections[1::2]:
            connection.socket.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_idle_connections_end(place):
    """Where a time for that is set."""
    with model(place, "idle=200") as port, Raw(port) as connection:
        connection.answers(b"PING\r\n", b"+PONG\r\n")
        assert connection.ends() == b""


def test_slow_clients_end(place):
    """A command that comes byte by byte, replies that nobody reads, a login that does not come; others go on."""
    with model(place, "stall=300", "login=300", "user=default:p") as port:
        other = Redis(port)
        assert other.call("AUTH", "p") == b"OK"
        with Raw(port) as silent:
            assert silent.ends() == b""
        with Raw(port) as writer:
            writer.answers(command("AUTH", "p"), b"+OK\r\n")
            writer.socket.settimeout(0.02)

            def cut_off():
                try:
                    writer.send(b"x")
                    return writer.socket.recv(1) == b""
                except TimeoutError:
                    return False
                except OSError:
                    return True
            until(cut_off, "who sends a byte at a time is cut off")
        with Raw(port) as reader:
            reader.answers(command("AUTH", "p"), b"+OK\r\n")
            sender = threading.Thread(target=lambda: sent_until_cut(reader, command("ECHO", "x" * 60_000) * 1000))
            sender.start()
            sender.join()
        assert other.call("PING") == b"PONG" and int(about(other)["connected_clients"]) == 1


def sent_until_cut(connection, data):
    """Sends what the server takes before it ends the connection."""
    try:
        connection.send(data)
    except OSError:
        pass


def test_unavailable(place):
    """What cannot be judged is neither passed nor blocked but said."""
    with model(place, "away") as port:
        said = refused(Redis(port), "WEIR.CHECK", "a", "site")
        assert said.startswith("UNAVAILABLE loading"), said


def test_a_zone_is_named_whole(place):
    """A name with more bytes behind it is another name, whichever bytes; and the words are of what was asked."""
    with model(place) as port:
        client = Redis(port)
        for name in (b"site\0", b"site\0tail", b"\0site", b"site" + b"\0" * 200, b"s" * 70, b"", b"site "):
            for words in (("WEIR.CHECK", "a", name), ("WEIR.PEEK", "a", name), ("WEIR.ALLOW", "a", name),
                          ("WEIR.RESERVE", "a", name, 1), ("WEIR.ALL", 1, "a", name, 1)):
                said = refused(client, *words)
                assert said.startswith("ERR ") and "there is no zone \"" in said and "\0" not in said, (words, said)
        assert client.call("WEIR.CHECK", "a", "site")[0] == 0


def test_a_call_may_be_durable(place):
    """By its last word. Where the log takes nothing, such a one is told so, and others are answered."""
    with model(place, "unsafe") as port:
        client = Redis(port)
        cases_of = (("WEIR.CHECK", "a", "site"), ("WEIR.CHECK", "a", "site", 1), ("WEIR.ALLOW", "a", "site"), ("WEIR.RESERVE", "a", "site", 1),
                    ("WEIR.RESERVE", "a", "site", 1, 1000), ("WEIR.ALL", 2, "a", "site", 1, "b", "cell", 1))
        for words in cases_of:
            assert refused(client, *words, "DURABLE").startswith("UNAVAILABLE unacknowledged"), words
            assert refused(client, *words, "durable").startswith("UNAVAILABLE unacknowledged"), words
            assert client.call(*words) is not None, words
        assert client.call("WEIR.PEEK", "a", "site")[2] == 10 - len(cases_of)
        assert "a peek counts nothing" in refused(client, "WEIR.PEEK", "a", "site", "DURABLE")
        assert "there is no zone" in refused(client, "WEIR.CHECK", "a", "durable")
        assert "cost must be a number" in refused(client, "WEIR.CHECK", "a", "site", "DURABLE", "DURABLE")
        assert "then DURABLE, or nothing" in refused(client, "WEIR.ALL", 1, "a", "site", 1, "SOON")
        done = place.run("check", "a", "--zone", "site", "--at", f"127.0.0.1:{port}", "--durable")
        assert done.code() == 2 and "unacknowledged" in done.said(), done.said()
        done = place.run("check", "a", "--zone", "site", "--at", f"127.0.0.1:{port}", "--durable", "--peek")
        assert done.code() == 2 and "--peek counts nothing" in done.said(), done.said()


def test_what_is_made_up_is_told_from_an_answer(place):
    """Of a check that on_unavailable lets pass, or blocks, the limit is 0, and nothing is reserved. A settlement is never made up."""
    for setting, limited, retry in (("allow", 0, -1), ("deny", 1, 1000)):
        with model(place, "away", f"unavailable={setting}") as port:
            client = Redis(port)
            made_up = [limited, 0, 0, retry, 0]
            assert client.call("WEIR.CHECK", "a", "site") == client.call("WEIR.PEEK", "a", "site") == made_up
            assert client.call("WEIR.RESERVE", "a", "cell", 3) == [*made_up, None]
            assert client.call("WEIR.ALL", 2, "a", "site", 1, "b", "cell", 1) == [limited, made_up, made_up]
            for words in (("WEIR.SETTLE", "a", "cell", "0" * 32, 1), ("WEIR.RELEASE", "a", "cell", "0" * 32)):
                assert refused(client, *words).startswith("UNAVAILABLE loading"), (setting, words)
            done = place.run("check", "ann", "--zone", "cell", "--at", f"127.0.0.1:{port}")
            does = "blocks it" if limited else "lets it pass"
            assert done.code() == limited
            assert done.out().decode() == f"ann cannot be judged in zone cell now: checks.on_unavailable {does}\n", done.out()
            done = place.run("check", "ann", "--zone", "cell", "--at", f"127.0.0.1:{port}", "--json")
            answer = json.loads(done.out())
            assert answer == {"key": "ann", "zone": "cell", "answer": "block" if limited else "pass", "cost": 1,
                              "unavailable": True}, answer


def test_exact_among_many_callers(place):
    """Sixteen at a time on one key: as many pass as the limit says."""
    for mode in ("now", "later"):
        with model(place, mode) as port:
            passed = []

            def caller():
                client = Redis(port)
                passed.append(sum(client.call("WEIR.ALLOW", "192.0.2.1", "site") for _ in range(20)))
                passed.append(sum(client.together([["WEIR.ALLOW", "192.0.2.2", "site"]] * 20)))
            callers = [threading.Thread(target=caller) for _ in range(16)]
            for thread in callers:
                thread.start()
            for thread in callers:
                thread.join()
            assert sum(passed) == 20, passed


if __name__ == "__main__":
    cases.main(globals())
