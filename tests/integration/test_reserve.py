#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reservations over sockets: an estimate now, the real cost later, through restarts and kill -9."""

import contextlib
import os
import random
import sqlite3
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, frames
from support.place import free_port, until
from support.redis import Redis, RedisError
from support.traffic import sliding, source, zone

HOUR = 3600000
ZONES = [
    zone("tokens", [sliding(1000, "1h")], key=("user",)),
    zone("bucket", [{"algorithm": "token_bucket", "rate": 1, "window": "1h", "burst": 100}], key=("user",)),
    zone("turns", [{"algorithm": "gcra", "rate": 1, "window": "1h", "burst": 99}], key=("user",)),
    zone("day", [{"algorithm": "fixed_window", "rate": 100, "window": "366d"}], key=("user",)),
    zone("jobs", [{"algorithm": "queue", "length": 10, "hold": "1h"}], key=("user",)),
]


def start(place, *, state="state", zones=None, archiver=None, **checks):
    """A weir run that takes checks, once it answers: it, a client, and its port."""
    port = free_port()
    config = place.config(zones or ZONES, [source(place.write("log", ""))], bus={"partitions": 4},
                          limiter={"threads": 2, "memory": "64MiB"}, listen={"resp": f"127.0.0.1:{port}"}, checks=checks,
                          **({"archiver": archiver} if archiver else {}))
    weir = place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path("out"))
    until(lambda: "following" in weir.said(), "weir follows", running=weir)
    client = Redis(port)

    def answers(key):
        try:
            return client.call("WEIR.PEEK", key, (zones or ZONES)[0]["name"])
        except RedisError as error:
            assert str(error).startswith("UNAVAILABLE"), error
            return None
    for number in range(32):
        until(lambda key=f"other-{number}": answers(key), "checks are answered", running=weir)
    return weir, client, port


def left(client, key, name):
    """What remains, without counting."""
    return client.call("WEIR.PEEK", key, name)[2]


def refused(client, *words):
    """The error's words."""
    try:
        client.call(*words)
    except RedisError as error:
        return str(error)
    raise AssertionError(f"{words} was taken")


def test_the_real_cost_counts(place):
    weir, client, _ = start(place)
    for name, limit in (("tokens", 1000), ("bucket", 100), ("turns", 100), ("day", 100), ("jobs", 10)):
        reply = client.call("WEIR.RESERVE", "ann", name, 8)
        assert reply[:3] == [0, limit, limit - 8] and len(reply[5]) == 32, (name, reply)
        # Less: what was too much is back. Twice is refused, and changes nothing.
        assert client.call("WEIR.SETTLE", "ann", name, reply[5], 3)[:3] == [0, limit, limit - 3], name
        assert "is open" in refused(client, "WEIR.SETTLE", "ann", name, reply[5], 1)
        assert left(client, "ann", name) == limit - 3, name
        # More: it was done, so it counts.
        reply = client.call("WEIR.RESERVE", "ann", name, 1)
        assert client.call("WEIR.SETTLE", "ann", name, reply[5], 5)[2] == limit - 8, name
        reply = client.call("WEIR.RESERVE", "ann", name, 2)
        assert client.call("WEIR.RELEASE", "ann", name, reply[5])[2] == limit - 8, name
        # What does not fit is blocked, and opens nothing.
        reply = client.call("WEIR.RESERVE", "ann", name, limit)
        assert reply[0] == 1 and reply[5] is None, reply
    assert weir.stop() == 0, weir.said()


def test_an_override_that_began_and_ended_leaves_nothing_to_give_back(place):
    weir, client, _ = start(place)
    for whose, command in (("ann", ["ann"]), ("anton", ["--prefix", "an"])):
        reply = client.call("WEIR.RESERVE", whose, "day", 8)
        for rate, limit in (("2", 200), ("1", 100)):
            place.good("override", "--state", place.path("state"), "--zone", "day", "--rate", rate, *command)
            until(lambda whose=whose, limit=limit: client.call("WEIR.PEEK", whose, "day")[1] == limit, "it is in force")
            client.call("WEIR.CHECK", whose, "day", 8)  # the limit that changed starts empty, and has this
        assert left(client, whose, "day") == 92
        assert client.call("WEIR.RELEASE", whose, "day", reply[5])[2] == 92
    assert weir.stop() == 0, weir.said()


def test_nothing_is_left_while_the_key_is_held_up(place):
    """What was given back is of no use while a penalty, or an operator's block, goes on: the settlement says so, and a peek says
    how long as the check does."""
    zones = [{**zone("penalty", [sliding(4, "1m")], key=("user",)), "block_for": "10m"}, zone("plain", [sliding(4, "1m")], key=("user",))]
    weir, client, _ = start(place, zones=zones)
    reply = client.call("WEIR.RESERVE", "ann", "penalty", 4)
    assert client.call("WEIR.PEEK", "ann", "penalty")[:4] == [1, 4, 0, 600000]
    assert client.call("WEIR.CHECK", "ann", "penalty")[:4] == [1, 4, 0, 600000]
    settled = client.call("WEIR.SETTLE", "ann", "penalty", reply[5], 0)
    assert settled[:4] == [0, 4, 0, -1] and 590000 < settled[4] <= 600000, settled
    assert client.call("WEIR.CHECK", "ann", "penalty")[0] == 1
    reply = client.call("WEIR.RESERVE", "ann", "plain", 4)
    done = place.run("block", "ann", "--zone", "plain", "--for", "1h", "--state", place.path("state"))
    assert done.code() == 0, done.said()
    until(lambda: client.call("WEIR.PEEK", "ann", "plain")[3] > 60000, "the key is blocked", running=weir)
    settled = client.call("WEIR.SETTLE", "ann", "plain", reply[5], 0)
    assert settled[:4] == [0, 4, 0, -1] and settled[4] > 3500000, settled
    # Without either, what is given back is left.
    reply = client.call("WEIR.RESERVE", "bob", "plain", 4)
    assert client.call("WEIR.CHECK", "bob", "plain")[0] == 1
    assert client.call("WEIR.SETTLE", "bob", "plain", reply[5], 1)[:3] == [0, 4, 3]
    assert weir.stop() == 0, weir.said()


def test_a_reservation_ends_at_its_estimate(place):
    weir, client, _ = start(place)
    reply = client.call("WEIR.RESERVE", "ann", "tokens", 100, 50)
    over = time.time() + 0.1
    assert "time is over" in refused(client, "WEIR.SETTLE", "bob", "tokens", reply[5], 1), "another key has none"
    until(lambda: time.time() > over, "its time is over")
    assert "time is over" in refused(client, "WEIR.SETTLE", "ann", "tokens", reply[5], 1)
    assert left(client, "ann", "tokens") == 900
    assert weir.stop() == 0, weir.said()


def test_what_has_left_a_queue_is_not_told_of(place):
    weir, client, _ = start(place, zones=[zone("jobs", [{"algorithm": "queue", "length": 3, "hold": "200ms"}], key=("user",))])
    for cost, real in ((2, 2), (3, 3), (2, 1)):
        reply = client.call("WEIR.RESERVE", "ann", "jobs", cost)
        until(lambda: left(client, "ann", "jobs") == 3, "the entry has left")
        assert client.call("WEIR.SETTLE", "ann", "jobs", reply[5], real) == [0, 3, 3, -1, 0], (cost, real)
    assert weir.stop() == 0, weir.said()


def test_what_is_wrong_is_said(place):
    weir, client, _ = start(place)
    assert "from 1 to" in refused(client, "WEIR.RESERVE", "ann", "tokens", 0)
    assert "ttl_ms" in refused(client, "WEIR.RESERVE", "ann", "tokens", 1, 0)
    assert "ttl_ms" in refused(client, "WEIR.RESERVE", "ann", "tokens", 1, 86400001)
    assert "32 hexadecimal" in refused(client, "WEIR.SETTLE", "ann", "tokens", "0" * 31, 1)
    assert "32 hexadecimal" in refused(client, "WEIR.RELEASE", "ann", "tokens", "g" * 32)
    assert "is open" in refused(client, "WEIR.RELEASE", "ann", "tokens", "0" * 32)
    assert weir.stop() == 0, weir.said()


def test_open_ones_are_bounded(place):
    weir, client, _ = start(place, zones=[zone("many", [sliding(1000000, "1h")], key=("user",))])
    opened = full = 0
    while opened + full < 5000:
        try:
            opened += client.call("WEIR.RESERVE", "ann", "many", 1)[5] is not None
        except RedisError as error:
            if str(error).startswith("UNAVAILABLE unacknowledged"):
                time.sleep(0.1)  # a busy machine's log; it was not opened
                continue
            assert str(error).startswith("UNAVAILABLE full"), error
            full += 1
    assert 4032 <= opened <= 4096 and full == 5000 - opened, (opened, full)
    assert client.call("WEIR.CHECK", "ann", "many")[0] == 0
    assert weir.stop() == 0, weir.said()


def test_they_survive_kill_9_and_the_log_says_the_same(place):
    rng = random.Random(8)
    weir, client, _ = start(place, durable=True)
    open_ones, want = {}, {}
    for restart in range(4):
        for _ in range(120):
            user, name = rng.choice("abcd"), rng.choice(("tokens", "day"))
            limit = {"tokens": 1000, "day": 100}[name]
            held = open_ones.setdefault((user, name), [])
            used = want.get((user, name), 0)
            if held and rng.random() < 0.5:
                identity, estimate = held.pop(rng.randrange(len(held)))
                real = rng.choice((0, 1, estimate))
                client.call("WEIR.SETTLE", user, name, identity, real)
                want[(user, name)] = used - estimate + real
                continue
            estimate = rng.randint(1, 20)
            reply = client.call("WEIR.RESERVE", user, name, estimate, HOUR)
            assert (reply[0] == 0) == (used + estimate <= limit), (reply, used, estimate)
            if reply[0] == 0:
                held.append((reply[5], estimate))
                want[(user, name)] = used + estimate
        for (user, name), used in want.items():
            assert left(client, user, name) == {"tokens": 1000, "day": 100}[name] - used, (user, name, restart)
        client.close()
        if restart < 3:
            weir.kill()
            weir, client, _ = start(place, durable=True)
    assert weir.stop() == 0, weir.said()


def test_callers_beside_one_another_pass_no_limit(place):
    weir, client, port = start(place)
    lock, used, most = threading.Lock(), [0], [0]

    def call(number):
        rng, mine = random.Random(number), Redis(port)
        for _ in range(60):
            cost = rng.randint(1, 4)
            reply = mine.call("WEIR.RESERVE", "all", "jobs", cost)
            if reply[5] is None:
                continue
            with lock:
                used[0] += cost
                most[0] = max(most[0], used[0])
            threading.Event().wait(0.002)  # the work
            with lock:
                used[0] -= cost
            mine.call("WEIR.RELEASE", "all", "jobs", reply[5])
        mine.close()
    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 4 < most[0] <= 10, most
    until(lambda: left(client, "all", "jobs") == 10, "all is back")
    assert weir.stop() == 0, weir.said()


def test_the_log_has_no_event_of_a_settlement(place):
    weir, client, _ = start(place)
    reply = client.call("WEIR.RESERVE", "ann", "tokens", 100)
    client.call("WEIR.SETTLE", "ann", "tokens", reply[5], 30)
    assert weir.stop() == 0, weir.said()
    out = place.good("decode", "--state", place.path("state"), "--flat").objects()
    asked = [event for event in out if event["kind"] == "checks" and "time" in event]
    assert [("reserves_for" in event, "settles" in event) for event in asked] == [(True, False), (False, True)], asked
    assert asked[1]["settles"] == reply[5].decode() and asked[1]["zones"][0]["done"], asked
    assert frames.NONE == 8


def test_all_count_or_none(place):
    weir, client, _ = start(place)
    # One partition and several: the answer is the same.
    for keys in (("a{x}", "b{x}", "c{x}"), ("a", "b", "c", "d", "e", "f", "g")):
        words = [word for key in keys for word in (key, "day", 40)]
        reply = client.call("WEIR.ALL", len(keys), *words)
        assert reply[0] == 0 and [part[:3] for part in reply[1:]] == [[0, 100, 60]] * len(keys), reply
        client.call("WEIR.CHECK", keys[1], "day", 30)
        reply = client.call("WEIR.ALL", len(keys), *words)
        assert reply[0] == 1 and [part[0] for part in reply[1:]] == [key == keys[1] for key in keys], reply
        for key in keys:
            until(lambda key=key: left(client, key, "day") == (30 if key == keys[1] else 60), f"{key} was not counted")
    # Two zones of one key; a key twice in a zone counts twice.
    assert client.call("WEIR.ALL", 2, "ann", "day", 1, "ann", "tokens", 500)[0] == 0
    assert client.call("WEIR.ALL", 2, "ann", "day", 1, "ann", "tokens", 501)[0] == 1
    assert (left(client, "ann", "day"), left(client, "ann", "tokens")) == (99, 500)
    assert client.call("WEIR.ALL", 2, "ann", "day", 50, "ann", "day", 50)[0] == 1
    assert client.call("WEIR.ALL", 2, "ann", "day", 49, "ann", "day", 50)[0] == 0
    assert left(client, "ann", "day") == 0
    assert "1 to 16" in refused(client, "WEIR.ALL", 17, *["ann", "day", 1] * 17)
    assert "1 to 16" in refused(client, "WEIR.ALL", 2, "ann", "day", 1)
    assert "dya" in refused(client, "WEIR.ALL", 1, "ann", "dya", 1)
    assert client.call("WEIR.CHECK", "zoe", "day")[0] == 0
    assert weir.stop() == 0, weir.said()


def test_all_or_none_passes_no_limit_among_many_callers(place):
    for durable in (False, True):
        weir, client, port = start(place, state=f"state-{durable}", durable=durable)
        passed = []

        def call(number, port=port, passed=passed):
            rng, mine = random.Random(number), Redis(port)
            for _ in range(60):
                keys = rng.sample("abcdefgh", 3)
                if mine.call("WEIR.ALL", 3, *[word for key in keys for word in (key, "day", 3)])[0] == 0:
                    passed.append(keys)
            mine.close()
        threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for key in "abcdefgh":
            used = 3 * sum(key in keys for keys in passed)
            assert used <= 100, (key, used)
            until(lambda key=key, used=used: left(client, key, "day") == 100 - used, f"{key}: what passed alone counts")
        assert len(passed) > 60, len(passed)
        assert weir.stop() == 0, weir.said()


def test_checks_are_in_the_archive_as_events(place):
    site = [zone("site", [sliding(5, "1h")], key=("user",), history=True)]
    weir, client, _ = start(place, zones=site, archiver={"enabled": True, "interval": "100ms"})
    for _ in range(8):
        client.call("WEIR.CHECK", "ann", "site")
    reply = client.call("WEIR.RESERVE", "bob", "site", 2)
    client.call("WEIR.SETTLE", "bob", "site", reply[5], 1)

    def rows(sql):
        with contextlib.closing(sqlite3.connect(place.path("state", "weir.db"))) as store:
            return sorted(store.execute(sql).fetchall())
    counts = "SELECT sum(passed), sum(blocked) FROM count_hourly GROUP BY bucket"
    until(lambda: rows(counts) == [(1, 0), (5, 3)], "five passed, three were blocked, a settlement is no event",
          running=weir)
    until(lambda: len(rows("SELECT * FROM zone_txn")) == 9, "each check is in the history", running=weir)
    top = place.good("top", "--state", place.path("state"), "--once", "--json").objects()[0]
    assert [(row["key"], row["passed"], row["blocked"]) for row in top["top"]] == [("ann", 5, 3), ("bob", 1, 0)], top
    assert weir.stop() == 0, weir.said()


if __name__ == "__main__":
    cases.main(globals())
