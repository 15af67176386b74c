#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run` with "gateways": one process on one machine reads a log, and keeps the lists of who is blocked."""

import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.faketime import stepped
from support.gateways import always, ask
from support.network import Network
from support.nginx import Nginx
from support.place import PATIENCE_S, free_port, read, until
from support.traffic import FORMAT, line, sliding, source, zone

START_MS = 1000 * int(time.time())


def refused_in(place, config, *words):
    """`weir validate` and `weir run` refuse a configuration alike, and say these words."""
    for command in (("validate", "--config", config), ("run", "--config", config, "--state", place.path("refused"))):
        done = place.run(*command)
        assert done.code() == 2, (command, done.code(), done.said())
        for word in words:
            assert word in done.said() + done.out().decode(), (command, word, done.said())


class Machine:
    """A weir that follows one log and keeps some lists."""

    def __init__(self, place, gateways, zones, log=None, form=FORMAT, env=None, **sections):
        self.place, self.port, self.env = place, free_port(), env
        self.log = log or place.write("log", "")
        self.config = place.config(zones, [source(self.log, format=form)], gateways=gateways,
                                   listen={"http": f"127.0.0.1:{self.port}"}, **sections)
        self.weir = None

    def start(self, **more):
        """Starts it, anew too: itself, once it answers."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.place.path("state"),
                                     "--decisions", self.place.path("decisions.jsonl"), **{"env": self.env, **more})
        until(lambda: metrics.get(self.port, "/healthz"), "weir answers", running=self.weir)
        return self

    def kill(self):
        """kill -9."""
        os.kill(self.weir.pid, signal.SIGKILL)
        self.weir.wait(PATIENCE_S)

    def say(self, *lines):
        """Appends lines to the log."""
        with open(self.log, "ab") as file:
            file.write("".join(lines).encode())

    def until(self, condition, what):
        """Waits for as long as it runs."""
        return until(condition, what, 2 * PATIENCE_S, self.weir)

    def ready(self):
        """(status, text) of /readyz."""
        return metrics.get(self.port, "/readyz")[::2]


def flood(user, start_ms, count=6):
    """A user's requests within a second."""
    return "".join(line(start_ms + i, user) for i in range(count))


def flood_of_others(machine, prefix, count=2000):
    """So many users are blocked an hour ago, which is over by now: until the decisions are written."""
    written = read(machine.place.path("decisions.jsonl")).count(b"\n")
    machine.say("".join(line(START_MS - 3600000 + i, f"{prefix}{i // 2}", path="/short") for i in range(2 * count)))
    machine.until(lambda: read(machine.place.path("decisions.jsonl")).count(b"\n") == written + count, "many decisions")


def listed(path):
    """The keys in a list of kind file:."""
    return sorted(json.loads(one)["key"][0] for one in read(path).splitlines())


def test_nginx_blocks_who_floods_it(place):
    nginx = Nginx(place)
    zones = [zone("site", [sliding(5, "1m")], key=["ip"], match={"status": ["2xx"]}, id=1, block_for="1h")]
    gateways = [{"to": f"nginx-map:{nginx.map}", "zones": ["site"], "interval": "100ms", "reload": nginx.reload}]
    machine = Machine(place, gateways, zones, log=nginx.log, form="combined").start()
    until_s = time.monotonic() + 2 * PATIENCE_S
    passed = 0
    while ask(nginx.port)[0] == 200:
        passed += 1
        assert time.monotonic() < until_s, "nobody blocks the client"
        time.sleep(0.02)
    assert passed >= 5
    machine.until(lambda: always(nginx.port, 429) and nginx.settled(), "the client stays out")
    assert ask(nginx.port, "127.0.0.2")[0] == 200
    # Killed, and its list emptied while it is away: the block is back as soon as it is.
    machine.kill()
    place.write("weir.map", "")
    machine.start()
    machine.until(lambda: always(nginx.port, 429) and nginx.settled(), "the client is out again")
    # An operator's lift.
    place.good("lift", "127.0.0.1", "--zone", "site", "--state", place.path("state"))
    machine.until(lambda: (ask(nginx.port) or (0,))[0] == 200, "the client is let in")
    assert machine.weir.stop() == 0, machine.weir.said()
    nginx.run.stop()


def check_networks(machine, network, one, other, is_out):
    """An address that its own block and its network's keep out stays out until the last of them is over.

    one and other are of the network; is_out(address) says whether the gateway keeps it out."""
    def command(*words):
        machine.place.good(*words, "--zone", "site", "--state", machine.place.path("state"))

    def until_out(*wanted):
        machine.until(lambda: (is_out(one), is_out(other)) == wanted, f"{one}, {other} are out: {wanted}")

    until_out(False, False)
    command("block", network, "--reason", "why")
    until_out(True, True)
    command("block", one)
    command("lift", one)
    until_out(True, True)
    command("block", one)
    command("lift", network)
    until_out(True, False)
    command("block", network, "--for", "6s")
    until_out(True, True)
    until_out(True, False)
    command("block", network)
    until_out(True, True)
    machine.kill()
    machine.start()
    until_out(True, True)
    command("lift", one)
    command("lift", network)
    until_out(False, False)
    assert machine.weir.stop() == 0, machine.weir.said()


def by_address():
    """A zone in which an operator blocks."""
    return [zone("site", [sliding(5, "1m")], key=["ip"], id=1, block_for="1h")]


def test_nginx_blocks_the_members_of_a_network(place):
    nginx = Nginx(place, geo=True)
    gateways = [{"to": f"nginx-geo:{nginx.map}", "interval": "100ms", "reload": nginx.reload}]
    machine = Machine(place, gateways, by_address(), env=os.environ).start()

    def is_out(address):
        return (nginx.settled() or None) and ask(nginx.port, address)[0] == 429

    check_networks(machine, "127.0.0.0/9", "127.0.0.9", "127.9.1.2", is_out)
    nginx.run.stop()


def check_socket_of_both(place, kind):
    """nginx calls a client ::ffff:127.0.0.2 there, and weir 127.0.0.2: from the log, and on the list."""
    nginx = Nginx(place, geo=kind == "geo", both=True)
    gateways = [{"to": f"nginx-{kind}:{nginx.map}", "interval": "100ms", "reload": nginx.reload}]
    machine = Machine(place, gateways, by_address(), log=nginx.log, form="combined").start()
    for _ in range(8):
        ask(nginx.port, "127.0.0.2")
    assert b"::ffff:127.0.0.2 - " in read(nginx.log), read(nginx.log)
    machine.until(lambda: ask(nginx.port, "127.0.0.2")[0] == 429, "it is out")
    assert ask(nginx.port, "127.0.0.3")[0] == 200
    assert machine.weir.stop() == 0, machine.weir.said()
    nginx.run.stop()


def test_a_map_finds_a_client_of_ipv4_at_a_socket_of_both(place):
    check_socket_of_both(place, "map")


def test_a_geo_finds_a_client_of_ipv4_at_a_socket_of_both(place):
    check_socket_of_both(place, "geo")


def test_which_zones_a_list_misses_is_said(place):
    """At the start, with a later policy, by a subscriber and by weir doctor."""
    counted = zone("net", [sliding(5, "1m")], key=[{"field": "ip", "prefix6": 64}], id=2, block_for="1h")
    target = f"nginx-map:{place.path('weir.map')}"
    words = f"zone net counts IPv6 in networks of /64, and {target} finds no members of a network"
    machine = Machine(place, [target], by_address()).start()
    whole = json.loads(read(machine.config))
    whole["zones"].append(counted)
    assert words not in machine.weir.said()
    place.write(os.path.basename(machine.config), json.dumps(whole))
    machine.weir.signal(signal.SIGHUP)
    machine.until(lambda: words in machine.weir.said(), "it is said of a policy that comes later")
    assert machine.weir.stop() == 0, machine.weir.said()
    machine.start()
    assert machine.weir.said().count(words) == 1 and "zone site counts" not in machine.weir.said()
    said = place.run("doctor", "--config", machine.config, "--state", place.path("state"))
    said.code()
    assert words in said.out().decode() and "weir setup nginx" in said.out().decode(), said.out().decode()
    subscriber = place.start("subscribe", "--config", machine.config, "--state", place.path("state"), "--to", target)
    until(lambda: words in subscriber.said() or None, "it is said there, too", running=subscriber)
    assert subscriber.stop() == 0 and machine.weir.stop() == 0


def test_a_list_that_finds_no_members_is_said(place):
    """A map compares texts: who blocks a network hears that this list does not help, or which form of it does."""
    others = ("nft:inet/weir/nets", "ipset:weir", f"haproxy:{place.path('none')}", "redis://:hush@127.0.0.1:1")
    counted = zone("net", [sliding(5, "1m")], key=[{"field": "ip", "prefix6": 64}], id=2, block_for="1h")
    machine = Machine(place, [f"nginx-map:{place.path('weir.map')}", *others], [*by_address(), counted]).start()
    words = ("--zone", "site", "--config", machine.config, "--state", place.path("state"))
    said = place.good("block", "10.0.0.0/8", *words).out().decode()
    assert f"nginx-map:{place.path('weir.map')} finds no members of a network: use nginx-geo" in said, said
    for one, why in zip(others, ("`flags interval`", "hash:net", "map_ip_int", "networks around")):
        name = one.replace(":hush@", "")
        assert name in said and why in said.split(name)[1].split(";")[0], (name, said)
    assert "hush" not in said, "no password"
    # As of a network that an operator names, so of one that the zone counts an address by.
    words = ("--config", machine.config, "--state", place.path("state"), "--zone")
    for key, name, out in (("10.0.0.7", "site", False), ("2001:db8::7", "net", True), ("10.0.0.7", "net", False)):
        assert ("nginx-geo" in place.good("block", key, *words, name).out().decode()) == out, (key, name)
    machine.kill()  # the lists that are not there are tried until then


def test_nft_blocks_the_members_of_a_network(place):
    network = Network(place)
    network.nft("add set inet weir nets { type ipv4_addr; flags interval, timeout; }\n"
                "add rule inet weir input tcp dport 8080 ip saddr @nets reject with tcp reset")
    machine = Machine(place, ["nft:inet/weir/nets,blocked6"], by_address(), env=network.environment).start()
    check_networks(machine, "203.0.0.0/8", "203.0.113.9", "203.0.113.10", lambda address: not network.is_let_in(address))


def status_of(port, path):
    """How a page is answered, whose path is sent as it is."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        connection.sendall(b"GET " + path + b" HTTP/1.0\r\nHost: x\r\n\r\n")
        return int(connection.makefile("rb").read().split(b" ")[1])


def test_everything_at_once_while_it_is_away(place):
    """kill -9, the rules flushed, the log rotated, the clock stepped: who is blocked is so again before a line is judged."""
    network, nginx = Network(place), Nginx(place, geo=True)
    stepped(0)
    kept, ended, late = ("203.0.113.9", "127.0.0.2"), "127.0.0.3", ("203.0.113.10", "203.0.113.11")
    zones = [zone(name, [sliding(3, "1m")], key=["ip"], match={"path": [f"/{name}"]}, block_for=block_for)
             for name, block_for in (("ssh", "2h"), ("site", "2h"), ("brief", "5m"))]
    gateways = [{"to": "nft:inet/weir/blocked", "zones": ["ssh"]},
                {"to": f"nginx-geo:{nginx.map}", "zones": ["site", "brief"], "interval": "10ms", "reload": nginx.reload}]
    form = {**FORMAT, "fields": {"ip": "ip"}}
    machine = Machine(place, gateways, zones, log=place.write("log", ""), form=form).start(env=network.environment)

    def say(address, path, now_ms=START_MS):
        return "".join(line(now_ms + i, "-", ip=address, path=path) for i in range(6))

    def blocked():
        """Who is out: the listed of each gateway, by its own word."""
        return network.elements("blocked").count(kept[0]), kept[1] in read(nginx.map).decode(), \
            ended in read(nginx.map).decode()

    machine.say(say(kept[0], "/ssh"), say(kept[1], "/site"), say(ended, "/brief"))
    machine.until(lambda: blocked() == (1, True, True), "three are blocked")
    machine.until(lambda: (ask(nginx.port, kept[1]) or (0,))[0] == 429, "nginx blocks")
    # Half an hour later, then an hour and a half too early: the clock says whose block is over.
    for turn, (offset_s, brief) in enumerate(((1800, False), (-5400, True))):
        machine.kill()
        network.good("nft", "flush", "set", "inet", "weir", "blocked")
        place.write("weir.map", "")
        machine.say(say(late[turn], "/ssh")[:-10])  # the last line is cut by the kill
        os.rename(place.path("log"), place.path(f"log.{turn}"))
        machine.say(say(late[turn], "/ssh", START_MS + 1000))
        network.let_nft("sleep 0.5\n")  # time for a line to overtake it
        machine.start(env={**network.environment, **stepped(offset_s)})
        machine.until(lambda turn=turn: late[turn] in read(place.path("decisions.jsonl")).decode(), "lines are judged")
        assert blocked() == (1, True, brief), (turn, blocked())
        network.let_nft("")
        machine.until(lambda turn=turn: late[turn] in network.elements("blocked"), "the next one is blocked")
        machine.until(lambda: (ask(nginx.port, kept[1]) or (0,))[0] == 429 and nginx.settled(), "nginx blocks")
        assert not network.is_let_in(kept[0], patience_s=1)
        assert ask(nginx.port, ended)[0] == (429 if brief else 200)
    assert machine.weir.stop() == 0, machine.weir.said()
    nginx.run.stop()


def test_nginx_finds_paths_however_they_are_written(place):
    """A zone by address and path: what is looked up is what the key says, also where a client writes it in escapes."""
    nginx = Nginx(place, key="$weir_ip|$weir_path")
    zones = [zone("site", [sliding(2, "1m")], key=["ip", "path"], id=1, block_for="1h")]
    gateways = [{"to": f"nginx-map:{nginx.map}", "interval": "100ms", "reload": nginx.reload}]
    machine = Machine(place, gateways, zones, log=nginx.log, form="combined").start()
    paths = [b"/plain", b"/a%20b", b"/a%2Fb", b"/%C3%A9", b"/%e9x", b"/p%7Cq", b"/b%5Cs", b"/x|y", b"/q%22z", b"//d//e",
             b"/f/../g", b"/pl+us", b"/c%0Ad", b"/s;t", b"/d%25e", b"/~t", b"/i/?a=b", b"/%41BC", b"/h%23x", b"/h%3Fx"]
    for path in paths:
        assert [status_of(nginx.port, path) for _ in range(4)][0] == 404, path
    machine.until(lambda: read(nginx.map).count(b'";\n') == len(paths) and nginx.settled(), "all are listed")
    machine.until(lambda: all(status_of(nginx.port, path) == 429 for path in paths) and nginx.settled(),
                  "each is refused")
    # Other spellings of the same, and another path.
    assert [status_of(nginx.port, path) for path in (b"/pl%61in", b"/./plain", b"/plain?x=1", b"/other")] == \
        [429, 429, 429, 404]
    assert machine.weir.stop() == 0, machine.weir.said()
    nginx.run.stop()


def test_keys_that_are_aimed_at_one_bucket_do_not_stop_the_list(place):
    """nginx refuses a map with 64 KiB in one bucket of its hash, and would take no change any more."""
    nginx = Nginx(place, key="$arg_user")
    zones = [zone("site", [sliding(1, "1m")], key=["user"], id=1, block_for="1h")]
    gateways = [{"to": f"nginx-map:{nginx.map}", "interval": "100ms", "reload": nginx.reload}]
    machine = Machine(place, gateways, zones)
    aimed = ["user-" + "".join("b_" if number >> bit & 1 else "a~" for bit in range(14)) for number in range(4000)]
    machine.say("".join(flood(user, START_MS, 3) for user in aimed))
    machine.start()
    machine.until(lambda: "cannot hold" in machine.weir.said(), "some are left out")
    machine.say(flood("zed", START_MS))
    machine.until(lambda: status_of(nginx.port, b"/?user=zed") == 429, "whoever aims at nothing is on the list")
    listed_keys = read(nginx.map).count(b"\n")
    assert 50 < listed_keys < 1000, listed_keys
    page = metrics.scrape(machine.port)
    assert page.value("weir_subscribe_errors_total", gateway=f"nginx-map:{nginx.map}") == 0
    assert machine.weir.stop() == 0, machine.weir.said()
    nginx.run.stop()


def test_each_list_has_its_zones(place):
    zones = [zone("site", [sliding(3, "1m")], id=1, block_for="1h"),
             zone("odd", [sliding(3, "1m")], id=2, match={"path": ["/odd"]}, block_for="1h"),
             zone("quiet", [sliding(1, "1m")], id=3, mode="shadow", block_for="1h")]
    all_of_it, odd, piped = place.path("all.jsonl"), place.path("odd.jsonl"), place.path("piped")
    gateways = [f"file:{all_of_it}", {"to": f"file:{odd}", "zones": ["odd"], "interval": "0ms"},
                {"to": f"exec:cat >> {piped}", "max": 1}]
    machine = Machine(place, gateways, zones).start()
    machine.say(flood("ann", START_MS))
    machine.until(lambda: read(all_of_it) and listed(all_of_it) == ["ann"], "ann is on the list")
    machine.say("".join(line(START_MS + 10 + i, "bob", path="/odd") for i in range(6)))
    machine.until(lambda: read(odd) and listed(odd) == ["bob"], "bob is on the list")
    machine.until(lambda: listed(all_of_it) == ["ann", "bob", "bob"], "both are on the other")
    machine.until(lambda: b'"ann"' in read(piped) or b'"bob"' in read(piped), "the command is told")
    page = metrics.scrape(machine.port)
    assert page.value("weir_subscribe_entries", gateway=f"file:{all_of_it}") == 3
    assert page.value("weir_subscribe_entries", gateway=f"file:{odd}") == 1
    assert page.value("weir_subscribe_entries", gateway="exec:cat") == 1, "max"
    assert page.value("weir_subscribe_decisions_total", gateway=f"file:{odd}", result="other_zone") == 2
    assert machine.ready()[0] == 200
    # Whoever empties a list gets it back by SIGHUP.
    os.remove(all_of_it)
    os.kill(machine.weir.pid, signal.SIGHUP)
    machine.until(lambda: read(all_of_it) and listed(all_of_it) == ["ann", "bob", "bob"], "the list is written again")
    assert machine.weir.stop() == 0, machine.weir.said()


def test_a_gateway_that_is_away_holds_up_nobody(place):
    port, here = free_port(), place.path("here.jsonl")
    gateways = [f"redis://:secret@127.0.0.1:{port}", f"file:{here}"]
    machine = Machine(place, gateways, [zone("site", [sliding(3, "1m")], id=1, block_for="1h")])
    machine.say(flood("ann", START_MS))
    machine.start()
    machine.until(lambda: read(here) and listed(here) == ["ann"], "ann is on the list that can be written")
    status, why = machine.ready()
    assert status == 503 and f"redis://127.0.0.1:{port}" in why, (status, why)
    said = machine.weir.said()
    assert "judging begins without it" in said and "secret" not in said + why, said
    page = metrics.scrape(machine.port)
    assert page.value("weir_subscribe_ready", gateway=f"redis://127.0.0.1:{port}") == 0
    assert page.value("weir_subscribe_ready", gateway=f"file:{here}") == 1
    assert machine.weir.stop() == 0, machine.weir.said()


def test_a_long_block_outlasts_the_log(place):
    """The log of decisions is trimmed, yet whoever is in force stays in it: for the lists, and for `weir list`."""
    here = place.path("here.jsonl")
    zones = [zone("long", [sliding(3, "1m")], id=1, match={"path": ["/long"]}, block_for="30d"),
             zone("short", [sliding(1, "1s")], id=2, match={"path": ["/short"]})]
    machine = Machine(place, [f"file:{here}"], zones, bus={"partitions": 1, "segment_size": "64KiB"}).start()
    machine.say("".join(line(START_MS + i, "ann", path="/long") for i in range(5)))
    machine.until(lambda: read(here) and listed(here) == ["ann"], "ann is blocked")
    flood_of_others(machine, "u")
    reader = os.path.join(place.path("state"), "log", "decisions", "readers")

    def sink_is_far():
        """Whether the decisions file, the other reader of that log, has let go of ann's."""
        words = [one.split() for one in read(reader).decode().splitlines()[1:]]
        return any(name == "sink-decisions" and int(offset) > 1000 for name, _, offset in words)

    machine.until(sink_is_far, "the decisions are written")
    flood_of_others(machine, "v")
    machine.kill()
    os.remove(here)
    machine.start()
    machine.until(lambda: read(here) and listed(here) == ["ann"], "ann is still blocked")
    assert "ann" in place.good("list", "--state", place.path("state")).out().decode()
    # Once it is lifted, the log goes.
    place.good("lift", "ann", "--zone", "long", "--state", place.path("state"))
    machine.until(lambda: not read(here).strip(), "ann is let in")
    assert machine.weir.stop() == 0, machine.weir.said()


def test_what_cannot_be_meant_is_refused(place):
    zones, log = [zone("site", [sliding(3, "1m")], id=1, block_for="1h")], [source(place.write("log", ""))]
    for gateways, words in (
            (["nginx:/etc/x"], ("gateways[0]", 'unknown target "nginx:..."', "nginx-map:PATH")),
            ([7], ("gateways[0]", "must be a target")),
            ([{"zones": ["site"]}], ("gateways[0].to", "is missing")),
            ([{"to": "file:x", "zone": "site"}], ("gateways[0]", 'unknown key "zone"', 'did you mean "zones"')),
            ([{"to": "file:x", "zones": ["sites"]}], ("gateways[0].zones[0]", 'did you mean "site"')),
            ([{"to": "file:x", "zones": []}], ("gateways[0].zones",)),
            ([{"to": "file:x", "max": 0}], ("gateways[0].max",)),
            ([{"to": "file:x", "interval": "1d"}], ("gateways[0].interval",)),
            ([{"to": "exec:cat", "reload": "true"}], ("gateways[0]", "reload")),
            (["file:x", {"to": "file:x", "zones": ["site"]}], ("gateways[1]", "gateways[0] keeps the same list"))):
        refused_in(place, place.config(zones, log, gateways=gateways), *words)
    cluster = place.config(zones, log, gateways=["file:x"], bus={"type": "kafka", "brokers": "127.0.0.1:1"})
    done = place.run("validate", "--config", cluster)
    assert done.code() == 2 and "gateways: is for `weir run`" in done.said(), done.said()


def test_one_list_under_two_names_is_refused(place):
    """Both are named; lists that only look alike are not."""
    os.makedirs(place.path("deep", "er"))
    os.symlink(place.path("deep"), place.path("link"))
    os.symlink(place.path("deep", "map"), place.path("other"))
    deep = place.write("deep/map", "")
    hook = place.write("hook.json", json.dumps({"url": "https://h.example/x"}))
    os.symlink(hook, place.path("same.json"))
    zones, log = [zone("site", [sliding(3, "1m")], id=1, block_for="1h")], [source(place.write("log", ""))]
    for one, other in ((f"nginx-map:{deep}", "nginx-map:" + place.path("deep", "er", "..", "map")),
                       (f"nginx-map:{deep}", "nginx-geo:" + place.path("link", ".", "map")),
                       (f"file:{deep}", "file:" + place.path("other")),
                       ("file:" + place.path("none", "map"), "nginx-map:" + place.path("none", "x", "..", "map")),
                       ("file:x", f"file:{os.path.realpath(place.directory)}/x"),
                       ("redis://h/0", "redis://H"), ("redis://h:6379", "redis://u:secret@h"),
                       ("redis://localhost/2", "redis://127.0.0.1:6379/2"),
                       ("nft:inet/filter/a,b", "nft:inet/filter/c,b"), ("ipset:a", "ipset:b,a"),
                       ("haproxy:" + place.path("deep", "socket"), "haproxy:" + place.path("link", "socket")),
                       ({"to": "haproxy:/s"}, {"to": "haproxy:/s", "map": "/etc/haproxy/weir.map"}),
                       ({"to": "haproxy:/s", "map": "/a/b/c.map"}, {"to": "haproxy:/s", "map": "b/c.map"}),
                       ({"to": "nft:inet/filter/a"}, {"to": "nft:inet/filter/a", "map": "b"}),
                       ("exec:cat", {"to": "exec:cat", "interval": "1s"}),
                       (f"webhook:{hook}", "webhook:" + place.path("same.json")), (f"webhook:{hook}", "webhook:https://h.example/x")):
        more = [{"to": one, "map": "m"}, {"to": other, "map": "m"}] if str(one).startswith("haproxy") else [one, other]
        one = one["to"] if isinstance(one, dict) else one
        config = place.config(zones, log, gateways=more)
        done = place.run("validate", "--config", config, cwd=place.directory)
        assert done.code() == 2 and "gateways[0] keeps the same list" in done.said(), (one, other, done.said())
        assert "secret" not in done.said() and (one.split(":")[0] in done.said()), done.said()
    apart = ["nginx-map:" + place.path("a"), "nginx-map:" + place.path("ab"), "redis://h/0", "redis://h/1", "redis://h:1",
             "nft:inet/filter/a", "nft:ip/filter/a", "ipset:a", "ipset:ab", {"to": "haproxy:/s", "map": "a"},
             {"to": "haproxy:/s/../s", "map": "b"}, {"to": "haproxy:/s", "map": "/x/c"}, {"to": "haproxy:/s", "map": "/y/c"},
             {"to": "haproxy:/s", "map": "cc"}, "haproxy:/s"]
    shown = place.good("validate", "--config", place.config(zones, log, gateways=apart)).out().decode()
    assert "haproxy:/s /x/c: blocks of all zones" in shown and "haproxy:/s weir.map: blocks" in shown, shown
    shown = place.good("validate", "--config", place.config(zones, log, gateways=["haproxy:/s"])).out().decode()
    assert "haproxy:/s: blocks of all zones" in shown, shown


def test_validate_shows_them(place):
    config = place.config([zone("site", [sliding(3, "1m")], id=1, block_for="1h")], [source(place.write("log", ""))],
                          gateways=["redis://u:secret@h:1", {"to": "nft:inet/filter/weir", "zones": ["site"]}])
    shown = place.good("validate", "--config", config).out().decode()
    assert "redis://h:1: blocks of all zones" in shown and "nft:inet/filter/weir: blocks of site" in shown, shown
    assert "secret" not in shown
    report = json.loads(place.good("validate", "--json", "--config", config).out())
    assert report["gateways"] == [{"to": "redis://h:1", "zones": []}, {"to": "nft:inet/filter/weir", "zones": ["site"]}]
    once = place.good("run", "--once", "--config", config)
    assert "no gateway's list is written" in once.said()


if __name__ == "__main__":
    cases.main(globals())
