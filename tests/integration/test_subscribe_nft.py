#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nftables in a network namespace of the test's own: packets of the blocked are refused until the block ends."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.decisions import Topic, now_ms
from support.gateways import BLOCK_S, block_and_see
from support.network import Network
from support.place import read, until
from support.stepped_clock import SteppedClock


def test_nft_blocks_and_lets_in_again(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.10", for_s=3600)
        subscriber = topic.subscribe("nft:inet/weir/blocked,blocked6", env=network.environment).until_ready()
        assert not network.is_let_in("203.0.113.10")
        assert network.is_let_in("203.0.113.9") and network.is_let_in("2001:db8::9", "::1")
        topic.block("bob")
        topic.block("203.0.113.0/24")  # that set takes no networks
        for key, source, host in (("203.0.113.9", "203.0.113.9", "127.0.0.1"), ("2001:db8::/32", "2001:db8::9", "::1")):
            def let_in(source=source, host=host):
                return network.is_let_in(source, host)

            block = block_and_see(topic, subscriber, key, lambda: not let_in())  # pylint: disable=cell-var-from-loop
            subscriber.until(let_in, "it is let in again", 20 * BLOCK_S)
            assert now_ms() >= block["until"] - 20, "before its time"
        assert not network.is_let_in("203.0.113.10")
        assert subscriber.value("unfit_total") == 2 and subscriber.value("errors_total") == 0
        # A longer block in place of a shorter, a lift, a block without end.
        topic.block("203.0.113.10", for_s=7200)
        subscriber.until(lambda: any(left in network.elements("blocked") for left in ("2h", "1h59m")), "longer")
        topic.block("203.0.113.10", for_s=3 * 86400)
        subscriber.until(lambda: any(left in network.elements("blocked") for left in ("3d", "2d23h")), "days")
        topic.lift("203.0.113.10")
        subscriber.until(lambda: network.is_let_in("203.0.113.10"), "a lift lets in")
        topic.block("203.0.113.9", for_s=None)
        subscriber.until(lambda: "203.0.113.9" in network.elements("blocked"), "a block without end")
        assert "timeout" not in network.elements("blocked")
        assert subscriber.weir.stop() == 0


def test_nft_follows_a_clock_that_is_set(place):
    """It was behind as the set was filled, and is ahead for a moment."""
    network, clock = Network(place), SteppedClock(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.10", for_s=3600)
        clock.set(-3 * 86400)
        subscriber = topic.subscribe("nft:inet/weir/blocked",
                                     env={**clock.environment, "PATH": network.environment["PATH"]}).until_ready()
        assert "timeout 3d" in network.elements("blocked"), network.elements("blocked")
        clock.set(0)
        subscriber.until(lambda: "timeout 3d" not in network.elements("blocked"), "it has the time that is left")
        assert not network.is_let_in("203.0.113.10")
        clock.set(7200)
        subscriber.until(lambda: network.is_let_in("203.0.113.10"), "the block is over")
        clock.set(0)
        subscriber.until(lambda: not network.is_let_in("203.0.113.10"), "it is not")
        assert "timeout 5" in network.elements("blocked"), network.elements("blocked")
        assert subscriber.weir.stop() == 0, subscriber.weir.said()


def test_nft_sets_that_were_flushed_or_made_anew_get_the_list_again(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)) for n in range(20000)])
        topic.block("203.0.113.9")
        started = time.monotonic()
        subscriber = topic.subscribe("nft:inet/weir/blocked", env=network.environment).until_ready()
        print(f"20001 blocks read and in the kernel in {time.monotonic() - started:.1f} s")
        assert network.elements("blocked").count("expires") == 20001
        network.nft("flush set inet weir blocked")
        subscriber.until(lambda: subscriber.value("rebuilds_total") == 2, "the list is written again")
        assert not network.is_let_in("203.0.113.9")
        subscriber.until_ready()
        network.nft("delete table inet weir")
        subscriber.until(lambda: not subscriber.is_ready(), "it says that the set is gone")
        network.nft(network.RULES)
        subscriber.until(lambda: not network.is_let_in("203.0.113.9"), "the list is there again")
        assert "Retrying" in subscriber.weir.said()


def test_a_flush_shows_also_when_what_ended_last_was_lifted(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.10", for_s=3600)
        topic.block("203.0.113.9", for_s=1200)
        subscriber = topic.subscribe("nft:inet/weir/blocked", env=network.environment).until_ready()
        topic.lift("203.0.113.10")
        subscriber.until(lambda: network.is_let_in("203.0.113.10"), "the lift")
        network.nft("flush set inet weir blocked")
        subscriber.until(lambda: not network.is_let_in("203.0.113.9"), "the list is written again")
        assert subscriber.value("rebuilds_total") == 2


def test_a_flush_shows_also_when_others_are_blocked_behind_it(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.10", for_s=3600)
        subscriber = topic.subscribe("nft:inet/weir/blocked", env=network.environment).until_ready()
        for round_, key in enumerate(("203.0.113.9", "203.0.113.8")):
            network.nft("flush set inet weir blocked")
            topic.block(key, for_s=7200)
            subscriber.until(lambda key=key: not network.is_let_in(key), "one who was blocked since")
            if round_ == 1:  # of what is told the oldest stands for all, once the one of the copy is gone
                topic.block("203.0.113.9", for_s=7300)
            subscriber.until(lambda: not network.is_let_in("203.0.113.10"), "the list is written again")


def test_a_block_in_place_of_a_longer_one_ends_in_time(place):
    """Also where it is over before the set is told of it."""
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.10", for_s=3600)
        subscriber = topic.subscribe("nft:inet/weir/blocked", "--interval", "5s", env=network.environment).until_ready()
        assert not network.is_let_in("203.0.113.10")
        topic.block("203.0.113.9")
        subscriber.until(lambda: not network.is_let_in("203.0.113.9"), "a change: the next one waits")
        topic.block("203.0.113.10", for_s=1)
        subscriber.until(lambda: network.is_let_in("203.0.113.10"), "it is let in")
        assert subscriber.weir.stop() == 0


def test_sets_with_times_of_their_own(place):
    network = Network(place)
    network.nft("add set inet weir brief { type ipv4_addr; flags timeout; timeout 1h; }\n"
                "add set inet weir merged { type ipv4_addr; flags interval, timeout; auto-merge; }")
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.9", for_s=None)
        topic.subscribe("nft:inet/weir/brief", env=network.environment).until_ready()
        assert "timeout 3649" in network.elements("brief") or "timeout 36500d" in network.elements("brief")
        refused = place.run("subscribe", "--config", topic.config, "--to", "nft:inet/weir/merged", "--once",
                            env=network.environment)
        assert refused.code() == 1 and "auto-merge" in refused.said(), refused.said()


def test_nft_keeps_the_widest_of_what_overlaps(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        keys = [f"2001:db8:{n:x}::/48" for n in range(50)]
        topic.publish([topic.decision((key,)) for key in [*keys, "2001:db8:7::1"]])
        subscriber = topic.subscribe("nft:inet/weir/blocked6", env=network.environment).until_ready()
        assert network.elements("blocked6").count("expires") == 50
        assert subscriber.value("unfit_total") == 1
        topic.publish([topic.decision((key,)) for key in ("2001:db9::1", "2001:db8::/32", "2001:db8:8::1")])
        subscriber.until(lambda: network.elements("blocked6").count("expires") == 2, "the wider is in their place")
        assert not network.is_let_in("2001:db8::9", "::1")
        topic.publish([topic.decision((key,)) for key in ("2001:db8:8::2", "2001:db9::2")])
        subscriber.until(lambda: "2001:db9::2" in network.elements("blocked6"), "the rest of a refused transaction")
        topic.lift("2001:db8::/32")
        subscriber.until(lambda: network.elements("blocked6").count("expires") == 52, "what has room again")
        topic.lift("2001:db8:0::/48")
        subscriber.until(lambda: network.is_let_in("2001:db8::9", "::1"), "it is let in")
        assert subscriber.value("errors_total") == 0


def test_what_nft_has_refused_does_not_pass_for_lost(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("2001:db8::9", for_s=600)
        subscriber = topic.subscribe("nft:inet/weir/blocked6", env=network.environment).until_ready()
        topic.block("2001:db8::/64", for_s=1800)
        subscriber.until(lambda: "2001:db8::/64" in network.elements("blocked6"), "the wider network")
        topic.block("2001:db8::a", for_s=3600)
        subscriber.until(lambda: subscriber.value("unfit_total") == 2, "what lies in it is counted")
        copies, seen_s = subscriber.value("rebuilds_total"), time.monotonic() + 6
        subscriber.until(lambda: network.is_let_in("2001:db8::9", "::1") or time.monotonic() > seen_s, "a check")
        assert not network.is_let_in("2001:db8::9", "::1") and subscriber.is_ready()
        assert subscriber.value("rebuilds_total") == copies and subscriber.value("errors_total") == 0
        end = topic.block("2001:db8::/64", for_s=BLOCK_S)["until"]
        subscriber.until(lambda: "2001:db8::a" in network.elements("blocked6"), "what has room again", 20 * BLOCK_S)
        assert now_ms() >= end - 20 and not network.is_let_in("2001:db8::9", "::1")


def test_a_set_takes_what_it_has_room_for(place):
    network = Network(place)
    network.nft("add set inet weir few { type ipv6_addr; size 1190; flags timeout; }")
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.publish([topic.decision((f"2001:db8:1111:2222:3333:4444:5555:{n + 4096:x}",)) for n in range(1200)])
        subscriber = topic.subscribe("nft:inet/weir/few", env=network.environment).until_ready()
        assert network.elements("few").count("expires") == 1190
        assert subscriber.value("unfit_total") == 10 and subscriber.value("errors_total") == 0


def test_a_full_set_costs_few_runs(place):
    network = Network(place)
    network.nft("add set inet weir few { type ipv4_addr; size 100; flags timeout; }")
    runs = place.path("runs")
    network.let_nft(f"echo >>{runs}")
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.publish([topic.decision((f"10.0.{n // 100}.{n % 100}",), for_s=3600 + 10 * n) for n in range(300)])
        subscriber = topic.subscribe("nft:inet/weir/few", env=network.environment).until_ready()
        elements = network.elements("few")
        assert elements.count("expires") == elements.count("10.0.2.") == 100, "those that end last are in"
        assert subscriber.value("unfit_total") == 200 and subscriber.value("errors_total") == 0
        # What it has already is changed all the same.
        topic.publish([topic.decision((f"10.1.{n // 100}.{n % 100}",)) for n in range(300)])
        topic.publish([topic.decision(("10.0.2.7",), for_s=3 * 86400), topic.decision(("10.0.2.8",), for_s=0)])
        subscriber.until(lambda: any(left in network.elements("few") for left in ("3d", "2d23h")), "a longer block")
        subscriber.until(lambda: "10.0.2.8 " not in network.elements("few"), "a lift")
        assert subscriber.value("errors_total") == 0 and read(runs).count(b"\n") < 200


def test_what_a_full_set_left_out_comes_in_when_others_end(place):
    network = Network(place)
    network.nft("add set inet weir few { type ipv4_addr; size 2; flags timeout; }")
    network.nft("add set inet weir wide { type ipv4_addr; size 4; flags interval, timeout; }")
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.publish([topic.decision((f"10.0.0.{n}",), for_s=3 * BLOCK_S) for n in range(8)])
        lists = {name: topic.subscribe(f"nft:inet/weir/{name}", env=network.environment).until_ready()
                 for name in ("few", "wide")}
        left_out = {name: subscriber.value("unfit_total") for name, subscriber in lists.items()}
        topic.publish([topic.decision(("10.9.9.9",), for_s=600)])
        for name, subscriber in lists.items():
            subscriber.until(lambda of=name: lists[of].value("unfit_total") > left_out[of] > 0, "the set is full")
            assert "10.9.9.9" not in network.elements(name), "what came last has no room"
        for name, subscriber in lists.items():
            subscriber.until(lambda of=name: "10.9.9.9" in network.elements(of), "it has room", 20 * BLOCK_S)
            assert subscriber.value("errors_total") == 0


def test_a_key_of_two_zones_is_one_element(place):
    network = Network(place)
    runs = place.path("runs")
    network.let_nft(f"echo >>{runs}")
    with cluster.shared() as c:
        topic = Topic(place, c)
        subscriber = topic.subscribe("nft:inet/weir/blocked", env=network.environment).until_ready()
        topic.publish([topic.decision((f"10.0.0.{n}",), zone=zone, for_s=600 + n)
                       for n in range(64) for zone in ("api", "web")])
        before = read(runs).count(b"\n")
        subscriber.until(lambda: network.elements("blocked").count("expires") == 64, "they are blocked")
        assert read(runs).count(b"\n") - before < 20 and subscriber.value("errors_total") == 0


def test_an_nft_that_did_not_run_has_refused_nothing(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.9")
        subscriber = topic.subscribe("nft:inet/weir/blocked", env=network.environment).until_ready()
        network.let_nft('[ "$1" = -f ] && kill -9 $$')
        topic.block("203.0.113.10")
        subscriber.until(lambda: subscriber.value("errors_total"), "it says so")
        assert subscriber.value("unfit_total") == 0 and not network.is_let_in("203.0.113.9")
        network.let_nft("")
        subscriber.until(lambda: not network.is_let_in("203.0.113.10"), "the client is blocked")


if __name__ == "__main__":
    cases.main(globals())
