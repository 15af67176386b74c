#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy with deploy/gateways/haproxy.cfg: blocks without a reload, in memory, and again after one."""

import json
import os
import re
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, metrics
from support.decisions import Topic, now_ms
from support.gateways import Site, Stage, always, ask, check_block_and_return, example, program
from support.place import PATIENCE_S, free_port, read, until
from support.traffic import line, sliding, source, zone


TWO_MAPS = """
global
    stats socket {socket} mode 600 level admin
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend web
    bind 127.0.0.1:{port}
    http-request set-var(txn.weir_now) date
    http-request deny deny_status 429 if {{ src,map_ip_int({by_address},0),sub(txn.weir_now) gt 0 }}
    http-request deny deny_status 503 if {{ url_param(user),map_str_int({by_user},0),sub(txn.weir_now) gt 0 }}
    http-request return status 200
"""


class HAProxy:
    """HAProxy with the example's configuration, as master and worker."""

    LOOKS_UP = "    http-request set-var(txn.weir_left) src,"  # how the line begins that does

    def __init__(self, place, keys="str", own_pids=False, by_path=False):
        """keys: what HAProxy takes the map's keys for, as in map_KEYS_int. by_path: with the lines for ["ip", "path"], at a
        socket of IPv6 that takes IPv4, too.

        own_pids: in a namespace of its own, as in a container, where it has the same pid each time.
        """
        self.program, self.port = program("haproxy"), free_port()
        self.socket, self.map = place.path("weir.sock"), place.write("weir.map", "")
        text = example("haproxy.cfg", ("bind :80", f"bind :::{self.port} v4v6" if by_path else f"bind 127.0.0.1:{self.port}"),
                       ("src,map_ip_int(/etc/haproxy/weir.map", f"src,map_{keys}_int({self.map}"),
                       ("map_str_int(/etc/haproxy/weir.map", f"map_str_int({self.map}"),
                       ("/run/haproxy/weir.sock mode", f"{self.socket} mode"),
                       ("127.0.0.1:8080", f"127.0.0.1:{Site().port}"),
                       ("mode http\n", "mode http\nlog stdout format raw local0\noption httplog\n"))
        if by_path:
            shown = "".join(f"    {one}\n" for one in re.findall(r"^    # (http-request .*)$", text, re.M))
            before, line_of_src, behind = text.partition(self.LOOKS_UP)
            text = before + shown + behind.partition("\n")[2]
            assert line_of_src and shown.count("http-request") == 8, text
        self._words = [self.program, "-W", "-db", "-f", place.write("haproxy.cfg", text)]
        if own_pids:
            self._words = [program("unshare"), *["--map-root-user"] * (os.geteuid() != 0), "--pid", "--fork",
                           "--kill-child", *self._words]
        self._place = place
        self.start()

    def start(self):
        """Starts it; it has been stopped before."""
        self.run = self._place.start(*self._words[1:], program=self._words[0])
        until(lambda: (ask(self.port) or (0,))[0], "HAProxy answers", running=self.run)

    def pid(self):
        """Its worker's, as it says."""
        return self.tell("show info").split(b"\nPid: ")[1].split(b"\n")[0]

    def tell(self, command):
        """The answer to a command of the runtime interface."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(self.socket)
            client.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: client.recv(65536), b""))

    def entries(self):
        """{key: value} of the map."""
        return self.entries_of("")

    def entries_of(self, version):
        """The same of a version, "@N ", that may not be in use."""
        lines = self.tell(f"show map {version}{self.map}").decode(errors="surrogateescape").split("\n")
        return dict(line.split(" ", 1)[1].rsplit(" ", 1) for line in lines if line)


def test_haproxy_blocks_and_lets_in_again(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--zone", "site").until_ready()
        check_block_and_return(topic, subscriber, haproxy.port)
        topic.block("127.0.0.1", zone="shop")
        topic.block("127.0.0.9")
        subscriber.until(lambda: "127.0.0.9" in haproxy.entries(), "the map")
        assert ask(haproxy.port) == (200, None)
        assert subscriber.value("rebuilds_total") == 1, "all of it were to be changes"
        assert subscriber.weir.stop() == 0
        assert haproxy.run.code() is None


def test_a_client_that_goes_over_the_limit(place):
    haproxy = HAProxy(place)
    with cluster.shared() as c, Stage(place, c) as stage:
        subscriber = stage.start(haproxy.run.out_path, "haproxy", f"haproxy:{haproxy.socket}", "--zone", "site")
        stage.check(subscriber, haproxy.port)


def test_the_example_finds_the_members_of_a_network(place):
    """As it is shipped: an operator's network keeps its members out, beside a block of one of them."""
    haproxy = HAProxy(place, keys="ip")
    config = place.config([zone("site", [sliding(99, "1m")], key=["ip"], id=1)], [source(place.write("log", ""))],
                          gateways=[f"haproxy:{haproxy.socket}"])
    words, state = ("--zone", "site", "--state", place.path("state")), place.path("state")
    weir = place.start("run", "--config", config, "--state", state)
    until(lambda: "following 1 source" in weir.said() or None, "it runs", running=weir)
    assert ask(haproxy.port) == (200, None)
    said = place.good("block", "127.0.0.0/8", *words, "--config", config).out().decode()
    assert "map_ip_int" in said and haproxy.socket in said, said
    until(lambda: ask(haproxy.port)[0] == 429 or None, "a member is out", running=weir)
    place.good("block", "127.0.0.9", *words)
    place.good("lift", "127.0.0.0/8", *words)
    until(lambda: ask(haproxy.port)[0] == 200 or None, "it is in again", running=weir)
    assert weir.stop() == 0, weir.said()


def test_a_network_around_the_mapped_addresses_keeps_nobody_of_ipv4_out(place):
    """HAProxy looks for an IPv4 client as ::ffff:a.b.c.d, too: ::/64, in which ::1 is counted, would be everybody's."""
    haproxy, log = HAProxy(place, keys="ip"), place.write("log", "")
    zones = [zone("site", [sliding(5, "1m")], key=[{"field": "ip", "prefix6": 64}], id=1, block_for="1h")]
    config = place.config(zones, [source(log)], gateways=[f"haproxy:{haproxy.socket}"])
    words = ("--zone", "site", "--state", place.path("state"))
    weir = place.start("run", "--config", config, "--state", place.path("state"))
    until(lambda: "following 1 source" in weir.said() or None, "it runs", running=weir)
    place.append("log", "".join(line(now_ms() + i, "ann", ip=ip) for ip in ("::1", "2001:db8::1") for i in range(8)))
    until(lambda: list(haproxy.entries()) == ["2001:db8::/64"], "the other network is listed", running=weir)
    until(lambda: "haproxy cannot hold every key" in weir.said() or None, "it is said", running=weir)
    shown = place.good("list", "--config", config, *words[2:]).out().decode()
    assert "::/64" in shown and "2001:db8::/64" in shown, shown
    assert ask(haproxy.port) == (200, None) and ask(haproxy.port, "127.0.0.9") == (200, None)
    # An operator's, too, and he hears of it.
    for network, out in (("::/8", True), ("::1", True), ("2001:db8:1::/48", False)):
        said = place.good("block", network, *words, "--config", config).out().decode()
        assert ("leaves it out" in said) == out and ("map_ip_int" in said) != out, said
    until(lambda: "2001:db8:1::/48" in haproxy.entries(), "the next block", running=weir)
    assert not {"::/8", "::/64"} & set(haproxy.entries()) and ask(haproxy.port) == (200, None)
    # In a copy as in a change; and what is left out is not missed in the map.
    haproxy.tell(f"clear map {haproxy.map}")
    until(lambda: set(haproxy.entries()) == {"2001:db8::/64", "2001:db8:1::/48"}, "a copy", running=weir)
    time.sleep(2.5)  # two looks at it
    assert weir.said().count("WARNING haproxy: the list is not written") == 1 and weir.stop() == 0, weir.said()


def status_of(port, target):
    """The status of a target that is sent as it stands here."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(b"GET " + target + b" HTTP/1.0\r\n\r\n")
        return int(b"".join(iter(lambda: client.recv(65536), b"")).split()[1])


def test_the_example_finds_paths_however_they_are_written(place):
    """A zone by address and path: every way to write a path that is blocked is refused, and no other path is."""
    haproxy, log = HAProxy(place, by_path=True), place.write("log", "")
    zones = [zone("site", [sliding(2, "1m")], key=["ip", "path"], id=1, block_for="1h")]
    config = place.config(zones, [source(log, format="combined")], gateways=[f"haproxy:{haproxy.socket}"])
    weir = place.start("run", "--config", config, "--state", place.path("state"))
    paths = {b"/login": (b"/login", b"/%6Cogin", b"//login", b"/x/../login", b"/./login", b"/login?x", b"/%25%32../../login",
                         b"/a/b/c/../../../login", b"/../../login", b"/x%2F..%2Flogin", b"/x%zz/../%6Cogin", b"/.%2e/login",
                         b"/a/..//b/./../login", b"http://other/login", b"/." * 2000 + b"/login"),
             b"/a|b": (b"/a|b", b"/a%7Cb"), b"/a|b|c": (b"/a|b|c", b"/a%7cb%7Cc"), b"/b\\c": (b"/b\\c", b"/b%5Cc"),
             b"/": (b"/", b"//", b"/x/..", b"/.", b"/?", b"http://other"), b"/a b": (b"/a%20b",), b"/a+b": (b"/a+b", b"/a%2Bb"),
             b"/%25/": (b"/%25/", b"/%/", b"/%25//"), b"/%C3%A9": (b"/%C3%A9", b"/%c3%a9/x/../../%c3%A9"),
             b"/d/": (b"/d/", b"/d/e/..", b"/d/.")}
    for path in paths:
        clock = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime()).encode()
        request = b"GET " + path.replace(b" ", b"%20") + b" HTTP/1.1"
        with open(log, "ab") as file:
            file.write(b'127.0.0.1 - - [%s] "%s" 200 2 "-" "-"\n' % (clock, request) * 4)
    until(lambda: len(haproxy.entries()) == len(paths), "all of them are listed", running=weir)
    for path, ways in paths.items():
        for way in ways:
            assert status_of(haproxy.port, way) == 429, (path, way[:80])
    for other in (b"/Login", b"/login/", b"/x/login", b"/%256Cogin", b"/log%zzin", b"/a|", b"/a%20b%7Cc", b"/d", b"/...", b"/login%0A",
                  b"/a/" * 100 + b"../" * 99):
        assert status_of(haproxy.port, other) == 200, other
    # What the expression does not take is not let past.
    assert status_of(haproxy.port, b"/a" * 1500 + b"/.." * 1500 + b"/login") in (400, 429)
    assert weir.stop() == 0, weir.said()


def test_two_maps_by_one_socket(place):
    """Each zone in a map of its own: both are kept, seen apart on pages, and by weir doctor."""
    port, log, pages = free_port(), place.write("log", ""), free_port()
    maps = {name: place.write(f"{name}.map", "") for name in ("by_address", "by_user")}
    haproxy = place.start("-db", "-f", place.write("haproxy.cfg", TWO_MAPS.format(
        socket=place.path("socket"), port=port, **maps)), program=program("haproxy"))
    until(lambda: ask(port), "HAProxy answers", running=haproxy)
    zones = [zone("address", [sliding(3, "1m")], key=["ip"], id=1, block_for="1h"),
             zone("user", [sliding(3, "1m")], key=["user"], id=2, block_for="1h")]
    target = f"haproxy:{place.path('socket')}"
    gateways = [{"to": target, "zones": ["address"], "map": maps["by_address"]},
                {"to": target, "zones": ["user"], "map": maps["by_user"]}]
    config = place.config(zones, [source(log)], gateways=gateways, listen={"http": f"127.0.0.1:{pages}"})
    weir = place.start("run", "--config", config, "--state", place.path("state"))
    until(lambda: "following 1 source" in weir.said() or None, "it runs", running=weir)
    place.append("log", "".join(line(now_ms() + i, "ann", ip=f"203.0.113.{i}") for i in range(5)))
    until(lambda: status_of(port, b"/?user=ann") == 503, "the user is out", running=weir)
    assert status_of(port, b"/?user=bob") == 200
    place.append("log", "".join(line(now_ms() + i, f"u{i}", ip="127.0.0.1") for i in range(5)))
    until(lambda: status_of(port, b"/?user=bob") == 429, "the address is out", running=weir)
    page = metrics.scrape(pages)
    for path in maps.values():
        assert page.value("weir_subscribe_entries", gateway=f"{target} {path}") == 1
    said = place.run("doctor", "--config", config, "--state", place.path("state"))
    said.code()
    for path in maps.values():
        assert f"{target} {path} has all of the 1 blocks" in said.out().decode(), said.out().decode()
    assert weir.stop() == 0, weir.said()
    # setup's map is another one than these.
    place.write("weir.map", "")
    shown = place.run("setup", "haproxy", "--file", place.path("haproxy.cfg"), "--config", config, "--zone", "address",
                      "--backup", place.path("backup"), "--apply")
    assert shown.code() == 0, shown.said()
    kept = json.loads(read(config))["gateways"]
    assert [one["map"] for one in kept] == [*maps.values(), place.path("weir.map")], kept
    shown = place.run("setup", "haproxy", "--file", place.path("haproxy.cfg"), "--config", config, "--remove",
                      "--backup", place.path("backup"), "--apply")
    assert shown.code() == 0 and json.loads(read(config))["gateways"] == gateways, (shown.said(), read(config))


def test_haproxy_that_was_reloaded_or_emptied_gets_the_list_again(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        topic.block("127.0.0.1")
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}")
        subscriber.until(lambda: always(haproxy.port, 429), "the client is blocked")
        haproxy.tell(f"clear map {haproxy.map}")
        subscriber.until(lambda: subscriber.value("rebuilds_total") == 2, "a copy after it was emptied")
        assert ask(haproxy.port)[0] == 429
        before = haproxy.pid()

        def reloaded():
            try:
                return haproxy.pid() != before
            except OSError:
                return False

        haproxy.run.signal(signal.SIGUSR2)
        subscriber.until(reloaded, "HAProxy has reloaded")
        subscriber.until(lambda: always(haproxy.port, 429), "the new process has the list")
        topic.lift("127.0.0.1")
        subscriber.until(lambda: always(haproxy.port, 200), "the client is let in by a lift")


def test_haproxy_that_was_restarted_with_the_same_pid_gets_the_list_again(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place, own_pids=True)
        topic.block("127.0.0.1")
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}").until_ready()
        before = haproxy.pid()
        # Between two looks at it.
        subscriber.weir.pause()
        haproxy.run.kill()
        place.write("weir.map", "127.0.0.9 1\n")
        haproxy.start()
        assert haproxy.pid() == before
        subscriber.weir.resume()
        subscriber.until(lambda: set(haproxy.entries()) == {"127.0.0.1"}, "the new process has the list")
        assert "restarted or reloaded" in subscriber.weir.said(), subscriber.weir.said()


def test_an_emptied_map_is_told_from_one_that_was_never_filled(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        topic.publish([topic.decision((f"10.0.0.{n}",)) for n in range(50)])
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}").until_ready()
        # One more comes before the next look: the map is not empty.
        haproxy.tell(f"clear map {haproxy.map}")
        topic.block("10.0.1.0")
        subscriber.until(lambda: len(haproxy.entries()) == 51, "the list is there again")
        assert subscriber.value("rebuilds_total") == 2 and "was emptied" in subscriber.weir.said()
        assert subscriber.weir.stop() == 0
        # What waits for its interval is not lost.
        topic.publish([topic.decision((f"10.0.0.{n}",), for_s=0) for n in range(50)])
        topic.lift("10.0.1.0")
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--interval", "3s").until_ready()
        topic.block("10.0.2.1")
        subscriber.until(lambda: len(haproxy.entries()) == 1, "the first")
        topic.block("10.0.2.2")
        subscriber.until(lambda: len(haproxy.entries()) == 2, "the second")
        topic.publish([topic.decision((f"10.0.2.{n}",), for_s=0) for n in (1, 2)])
        subscriber.until(lambda: not haproxy.entries(), "the lifts")
        topic.block("10.0.2.3")
        subscriber.until(lambda: len(haproxy.entries()) == 1, "the third")
        assert subscriber.value("errors_total") == 0 and subscriber.value("rebuilds_total") == 1


def test_haproxy_takes_any_key(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        odd = ["a b", "a;b", "a\\b", "a|b", "a\tb", "<<", "x<", "'q'", '"q"', "Bob", "bob", "$x", "%[src]", "é", "@1"]

        def words():
            return {key.replace("\\", "\\\\").replace("|", "\\|") for key in odd}

        for key in odd[::2]:
            topic.block(key)
        for key in ("", "#1", "two\nlines"):
            topic.block(key)
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--map", haproxy.map).until_ready()  # in a copy,
        topic.publish([topic.decision((key,)) for key in odd[1::2]])  # and by changes

        def keys():
            return {key.encode(errors="surrogateescape").decode() for key in haproxy.entries()}

        subscriber.until(lambda: keys() == words(), "all keys")
        assert subscriber.value("unfit_total") == 3
        topic.publish([topic.decision((key,), for_s=0) for key in odd])
        subscriber.until(lambda: not haproxy.entries(), "all are lifted")
        assert subscriber.value("errors_total") == 0


def test_a_map_of_addresses_leaves_out_what_is_none(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place, keys="ip")
        words = ["unknown", "unix:", "gate.example", "a b", "10.0.0.1/8"]
        topic.publish([topic.decision((key,)) for key in [*words, *(f"10.0.0.{n}" for n in range(1, 200)), *words]])
        topic.block("127.0.0.0/24")
        topic.block("198.0.0.0/8", by="op", reason="")  # wide: an operator may, a limit would be left out
        topic.block("199.0.0.0/8")
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--map", haproxy.map).until_ready()
        assert len(haproxy.entries()) == 201 and subscriber.value("unfit_total") == 6
        assert "198.0.0.0/8" in haproxy.entries() and "199.0.0.0/8" not in haproxy.entries()
        assert ask(haproxy.port)[0] == 429
        topic.publish([topic.decision((key,)) for key in ("nobody", "127.0.1.0/24", "<<", "2001:db8::/32")])
        subscriber.until(lambda: {"127.0.1.0/24", "2001:db8::/32"} <= set(haproxy.entries()), "the changes")
        assert ask(haproxy.port, "127.0.1.1")[0] == 429
        subscriber.until(lambda: subscriber.value("unfit_total") == 8, "what does not fit is counted")
        topic.publish([topic.decision((key,), for_s=0) for key in ("127.0.0.0/24", "nobody", "unknown")])
        subscriber.until(lambda: "127.0.0.0/24" not in haproxy.entries(), "a lift")
        assert subscriber.value("rebuilds_total") == 1 and subscriber.value("errors_total") == 0
        haproxy.tell(f"clear map {haproxy.map}")
        subscriber.until(lambda: subscriber.value("rebuilds_total") == 2, "a copy after it was emptied")
        assert len(haproxy.entries()) == 202


def test_what_a_failed_copy_has_put_in_haproxy_is_taken_out(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place, keys="int")
        topic.publish([topic.decision((str(n),)) for n in range(200)] + [topic.decision(("no number",))])
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--map", haproxy.map)
        subscriber.until(lambda: (subscriber.value("errors_total") or 0) >= 2, "copies fail")
        assert "is not a number" in subscriber.weir.said()
        assert not haproxy.entries_of("@1 ") and not haproxy.entries()


def test_haproxy_with_a_hundred_thousand_blocks(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)) for n in range(100000)])
        started = time.monotonic()
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}")
        subscriber.until(subscriber.is_ready, "the copy", 10 * PATIENCE_S)
        print(f"read and copied in {time.monotonic() - started:.1f} s")
        assert len(haproxy.entries()) == 100000
        started = time.monotonic()
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",), for_s=0) for n in range(20000)])
        topic.publish([topic.decision((f"11.0.{n >> 8 & 255}.{n & 255}",)) for n in range(20000)])
        subscriber.until(lambda: subscriber.value("lag_messages") == 0, "all are read", 10 * PATIENCE_S)
        wanted = {key.decode() for _, key in topic.expected()}
        subscriber.until(lambda: set(haproxy.entries()) == wanted, "the changes", 10 * PATIENCE_S)
        print(f"20000 lifts and 20000 blocks in {time.monotonic() - started:.1f} s")


def test_a_haproxy_without_the_map_is_told_in_words(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        wrong = place.run("subscribe", "--config", topic.config, "--to", f"haproxy:{haproxy.socket}",
                          "--map", "other.map", "--once")
        assert wrong.code() == 1 and 'has no map "other.map"' in wrong.said(), wrong.said()
        wrong = place.run("subscribe", "--config", topic.config, "--to", f"haproxy:{place.path('none')}", "--once")
        assert wrong.code() == 1 and "cannot reach HAProxy" in wrong.said(), wrong.said()


if __name__ == "__main__":
    cases.main(globals())
