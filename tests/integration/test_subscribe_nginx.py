#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx with deploy/gateways/nginx.conf: whoever is blocked gets 429 with Retry-After, until the block ends."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.decisions import Topic
from support.gateways import Stage, always, ask, check_block_and_return, seconds_left
from support.nginx import Nginx
from support.place import PATIENCE_S, read, until


def test_nginx_blocks_and_lets_in_again(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place)
        subscriber = topic.subscribe(f"nginx-map:{nginx.map}", "--zone", "site", "--interval", "200ms",
                                     "--reload", nginx.reload).until_ready()
        check_block_and_return(topic, subscriber, nginx.port, nginx.settled)
        # A block of another zone is none of this gateway's.
        topic.block("127.0.0.1", zone="shop")
        topic.block("127.0.0.9")
        subscriber.until(lambda: b"127.0.0.9" in read(nginx.map), "the map")
        assert ask(nginx.port) == (200, None)
        assert subscriber.weir.stop() == 0
        nginx.run.stop()


def test_a_geo_finds_an_address_in_a_network(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place, geo=True)
        for key in ("127.0.0.2", "127.0.1.0/24", "::/64", "bob", "127.0.0.9|/login", "10.0.0.0/8", "default"):
            topic.block(key)
        subscriber = topic.subscribe(f"nginx-geo:{nginx.map}", "--zone", "site", "--interval", "200ms",
                                     "--reload", nginx.reload).until_ready()
        subscriber.until(lambda: always(nginx.port, 200) and nginx.settled(), "nginx has read it")
        assert read(nginx.map).count(b"\n") == 3 and subscriber.value("unfit_total") == 4, read(nginx.map)
        for source, status in (("127.0.0.2", 429), ("127.0.1.77", 429), ("::1", 429), ("127.0.0.3", 200)):
            assert ask(nginx.port, source)[0] == status, source
        topic.lift("::/64")
        subscriber.until(lambda: (ask(nginx.port, "::1") or (0,))[0] == 200, "a network is let in")
        assert ask(nginx.port, "127.0.1.77")[0] == 429
        assert subscriber.weir.stop() == 0
        nginx.run.stop()


def test_a_client_that_goes_over_the_limit(place):
    nginx = Nginx(place)
    with cluster.shared() as c, Stage(place, c) as stage:
        subscriber = stage.start(nginx.log, "combined", f"nginx-map:{nginx.map}", "--zone", "site",
                                 "--interval", "200ms", "--reload", nginx.reload)
        stage.check(subscriber, nginx.port, nginx.settled)


def test_nginx_takes_any_key(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place)
        for key in ("default", "include", "hostnames", "volatile", "~^.*$", "\\x", 'a "quoted" ; } one', "$remote_addr",
                    "Bob", "bob", "two\nlines", "", "a" * 255, "a" * 256, b"\xff\xfe", b"zero\x00"):
            topic.block(key)
        topic.block("127.0.0.1", for_s=1000)
        topic.block("127.0.0.1", zone="shop", for_s=3600)  # in two zones: the map has it once
        subscriber = topic.subscribe(f"nginx-map:{nginx.map}", "--reload", nginx.reload).until_ready()
        subscriber.until(lambda: always(nginx.port, 429), "nginx takes the map")
        assert seconds_left(ask(nginx.port)[1]) > 2000
        assert ask(nginx.port, "127.0.0.2") == (200, None)  # "$remote_addr" and "~^.*$" are but words
        assert read(nginx.map).lower().count(b'"bob"') == 1
        assert subscriber.value("unfit_total") >= 2
        subscriber.until(lambda: "cannot hold" in subscriber.weir.said(), "it is said")
        nginx.run.stop()


def test_nginx_with_a_hundred_thousand_blocks(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place)
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)) for n in range(100000)])
        topic.block("127.0.0.1")
        started = time.monotonic()
        subscriber = topic.subscribe(f"nginx-map:{nginx.map}", "--reload", nginx.reload).until_ready()
        print(f"read, written and told to nginx in {time.monotonic() - started:.1f} s")
        subscriber.until(lambda: always(nginx.port, 429), "nginx takes the map", 4 * PATIENCE_S)
        assert read(nginx.map).count(b"\n") == 100001
        nginx.run.stop()


if __name__ == "__main__":
    cases.main(globals())
