#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir state`: the buckets of a state as the oracle has them, byte for byte; beside a weir that runs."""

import json
import os
import random
import re
import signal
import sys
import tarfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "conformance", "oracle")]

# pylint: disable=wrong-import-position
import follow
import json_out
import oracle
from support import cases, traffic
from support.place import lines_of, read, until
from support.traffic import START_MS, burst, fixed, line, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2

EVERY_LIMIT = [
    sliding(3, "1m"), sliding(40, "1h", precision="1m"), fixed(5, "10s"), fixed(20, "1h", offset="7s"),
    {"algorithm": "uniform", "interval": "2s"}, {"algorithm": "token_bucket", "rate": 5, "window": "1m", "burst": 8},
    {"algorithm": "token_bucket", "rate": 5, "window": "1m", "penalize": True},
    {"algorithm": "gcra", "rate": 1000000, "window": "1h", "burst": 2},
    {"algorithm": "queue", "length": 4, "hold": "30s", "done": {"status": ["404"]}},
    sliding(4, "20s", lateness="2m")]


def zones():
    """A zone for each algorithm, and others for every kind of key."""
    every = [zone(f"limit-{i}", [limit], id=i + 1) for i, limit in enumerate(EVERY_LIMIT)]
    return every + [
        zone("all", EVERY_LIMIT[:8], id=20, block_for="30s"),
        zone("counted", [sliding(3, "1m"), fixed(5, "10s")], id=21, count="all"),
        zone("pair", [sliding(3, "1m"), EVERY_LIMIT[7]], key=("user", "path"), id=22),
        zone("one", [fixed(100, "1h")], key=(), id=23),
        zone("shadow", [sliding(3, "1m")], id=24, mode="shadow"),
        zone("net", [sliding(5, "1m")], id=25, key=({"field": "ip", "prefix4": 24, "prefix6": 64},))]


def crowd(count=2000, seed=3, users=80):
    """Lines of many users with addresses."""
    rng = random.Random(seed)
    lines = traffic.crowd(rng, count, users, step_ms=50)
    for i, text in enumerate(lines):
        ip = f"198.51.{rng.randrange(3)}.{rng.randrange(256)}" if rng.random() < 0.7 else \
            f"2001:db8:0:{rng.randrange(4)}::{rng.randrange(1, 99):x}"
        lines[i] = text[:-2] + b',"ip":"%s"}\n' % ip.encode()
    return b"".join(lines)


def keys_of(lines):
    """A file of the keys that state lines (bytes) name."""
    return b"".join(sorted({json.dumps(json.loads(text)["key"]).encode() + b"\n" for text in lines}))


def dump(place, state, *options):
    """What it prints: lines."""
    return place.good("state", "--state", place.path(state), *options).out().splitlines(keepends=True)


def once(place, config, state="state", *options):
    """Runs to the end."""
    place.good("run", "--once", "--config", config, "--state", place.path(state), "--decisions",
               place.path(f"{state}.out"), "--quiet", *options)


def same(got, want):
    """Requires equal lines."""
    for number, (a, b) in enumerate(zip(got, want), 1):
        assert a == b, f"line {number}: {a!r} is not {b!r}"
    assert len(got) == len(want), (len(got), len(want))


def model(config):
    """The oracle's lines for --once."""
    with open(config, encoding="utf-8") as file:
        config = json.load(file)
    return oracle.Run(config).state(config.get("bus", {}).get("partitions", 16))


def replay(place, config, state="state"):
    """The oracle's lines for a log that was followed, zone for zone by joined key."""
    frames = place.good("decode", "--state", place.path(state)).out().splitlines()
    with open(config, encoding="utf-8") as file:
        config = json.load(file)
    logs, _ = follow.replay(config, frames)
    lines = [value for number in logs for value in logs[number].state()]
    order = [member["name"] for member in json.loads(
        place.good("decode", "--state", place.path(state), "--topic", "policy").out().splitlines()[-1])["zones"]]

    def joined(value):
        return b"|".join(part.replace(b"\\", b"\\\\").replace(b"|", b"\\|") for part in value["key"])
    lines.sort(key=lambda value: (order.index(value["zone"]), joined(value)))
    return [json_out.dumps(value) + b"\n" for value in lines]


def test_once_gives_the_oracles_lines(place):
    config = place.config(zones(), [source(place.write("log", crowd()))])
    want = model(config)
    place.write("keys", keys_of(want))
    for state, *more in (("plain",), ("spilled", "--memory", "16MiB")):
        once(place, config, state, *more)
        same(dump(place, state, "--keys", place.path("keys")), want)
    assert len(want) > 800 and {json.loads(text)["zone"] for text in want} == {member["name"] for member in zones()}


def test_a_follower_gives_the_lines_of_its_log(place):
    config = place.config(zones(), [source(place.write("log", crowd()), follow=False)], bus={"partitions": 4})
    place.good("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"), "--quiet")
    want = replay(place, config)
    place.write("keys", keys_of(want))
    same(dump(place, "state", "--keys", place.path("keys")), want)
    assert len(want) > 800


def test_policies_that_changed_are_followed(place):
    first = [zone("a", [sliding(3, "1m"), fixed(9, "1h")], id=1), zone("gone", [sliding(3, "1m")], id=2)]
    second = [zone("a", [fixed(9, "1h"), fixed(50, "1d"), sliding(3, "1m")], id=1), zone("new", [sliding(2, "1m")], id=3)]
    log = place.write("log", burst("ann", 5) + burst("bob", 2))
    config = place.config(first, [source(log, follow=True)], bus={"partitions": 2})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
    until(lambda: len(lines_of(place.path("out"))) >= 2, "decisions of the first policy", running=weir)
    place.config(second, [source(log, follow=True)], bus={"partitions": 2})
    weir.signal(signal.SIGHUP)
    until(lambda: "policy 2 is in force" in weir.said(), "the second policy", running=weir)
    place.append("log", burst("ann", 1, START_MS + 100) + burst("cyd", 4, START_MS + 100))
    until(lambda: any(decision.get("key") == ["cyd"] for decision in lines_of(place.path("out"))), "cyd's decision",
          running=weir)
    assert weir.stop() == DONE
    want = replay(place, config)
    place.write("keys", "ann\nbob\ncyd\n")
    same(dump(place, "state", "--keys", place.path("keys")), want)
    zones_now = [json.loads(text)["zone"] for text in want]
    assert zones_now.count("a") == 3 and zones_now.count("new") == 2 and "gone" not in zones_now, zones_now


def test_forgotten_buckets_are_left_out(place):
    log = place.write("log", line(START_MS, "ann") + line(START_MS, "zoe"))
    config = place.config([zone("brief", [sliding(3, "1s")], id=1), zone("long", [sliding(3, "1h")], id=2)],
                          [source(log, follow=True)], bus={"partitions": 1}, limiter={"lateness": "0s"})
    state = ("--state", place.path("state"), "--decisions", place.path("out"), "--quiet")
    weir = place.start("run", "--config", config, *state)
    def users():
        frames = place.run("decode", "--state", place.path("state"), "--flat").out().decode()
        return [name for name in ("ann", "bob") if f'"key":"{name}"' in frames]
    until(lambda: users() == ["ann"], "ann's event", running=weir)
    time.sleep(2.5)
    place.append("log", line(START_MS + 5, "bob"))
    until(lambda: users() == ["ann", "bob"], "bob's event", running=weir)
    assert weir.stop() == DONE
    want = replay(place, config)
    place.write("keys", "zoe\nbob\nann\n")
    same(dump(place, "state", "--keys", place.path("keys"), "--lateness", "0s"), want)
    assert [(value["zone"], value["key"]) for value in map(json.loads, want)] == \
        [("brief", ["bob"]), ("long", ["ann"]), ("long", ["bob"]), ("long", ["zoe"])], want


def test_keys_that_are_not_named_are_hashes(place):
    config = place.config([zone("site", [sliding(3, "1m")]), zone("one", [sliding(3, "1m")], key=())],
                          [source(place.write("log", burst("ann", 2) + burst("bob", 2)))])
    once(place, config)
    plain = [json.loads(text) for text in dump(place, "state")]
    assert sorted(len(value.get("key_hash", "")) for value in plain) == [0, 19, 19], plain
    place.write("keys", "bob\n")
    named = [json.loads(text) for text in dump(place, "state", "--keys", place.path("keys"))]
    assert [(value["zone"], value.get("key")) for value in named] == \
        [("site", ["bob"]), ("site", None), ("one", [])], named
    assert list(named[1]) == ["zone", "key_hash", "partition", "blocked_at", "blocked_until", "limits"]


def test_every_form_of_a_key(place):
    values = [b"plain", b"a|b", b"back\\\\slash", b"caf\xc3\xa9", b"caf\xe9", b"[list]", b"\\u0001", b" space ",
              b"long" * 500]
    log = place.write("log", b"".join(b'{"time":1700000000000,"user":"%s","path":"/x|y"}\n' % user for user in values))
    config = place.config([zone("user", [sliding(3, "1m")]), zone("pair", [sliding(3, "1m")], key=("user", "path"))],
                          [source(log)])
    once(place, config)
    want = model(config)
    joined = [b"plain", b"a\\|b", b"back\\\\slash", b"caf\xc3\xa9", b"caf\xe9", b"[list]", b"\x01", b" space ",
              b"long" * 500]
    place.write("joined", b"\n".join(joined + [key + b"|/x\\|y" for key in joined]) + b"\n\n")
    same(dump(place, "state", "--keys", place.path("joined")), want)
    arrays = [[value.encode().decode("unicode_escape" if "u0001" in value else "utf-8").replace("\\\\", "\\")]
              for value in (text.decode("latin-1") if text == values[4] else text.decode() for text in values)]
    arrays[4] = ["caf\udce9"]
    good = [json.dumps(value) for i, value in enumerate(arrays) if i != 4]
    place.write("arrays", "\n".join(good + [json.dumps([json.loads(text)[0], "/x|y"]) for text in good]))
    got = dump(place, "state", "--keys", place.path("arrays"))
    assert sorted(text for text in got if b"key_hash" not in text) == \
        sorted(text for text in want if b"caf\xef\xbf\xbd" not in text), got
    with open(place.path("joined"), "rb") as file:
        assert dump(place, "state", "--keys", "-") != want
        same(place.good("state", "--state", place.path("state"), "--keys", "-", stdin=file).out()
             .splitlines(keepends=True), want)


def test_one_key_or_one_zone(place):
    config = place.config(zones(), [source(place.write("log", crowd(800, users=40)))])
    once(place, config)
    want = model(config)
    place.write("keys", keys_of(want))
    pair = [text for text in want if b'"zone":"pair"' in text]
    same(dump(place, "state", "--zone", "pair", "--keys", place.path("keys")), pair)
    same(dump(place, "state", "--key", "u3"), [text for text in want if b'"key":["u3"]' in text or b'"key":[]' in text])
    same(dump(place, "state", "--zone", "pair", "--key", "u3|/2", "--key", '["u4","/1"]'),
         [text for text in pair if b'["u3","/2"]' in text or b'["u4","/1"]' in text])
    nets = {address: [json.loads(text)["key"] for text in dump(place, "state", "--zone", "net", "--key", address)]
            for address in ("198.51.1.7", "2001:db8:0:2::9999", "198.51.1.0/24", "192.0.2.1")}
    assert nets == {"198.51.1.7": [["198.51.1.0/24"]], "2001:db8:0:2::9999": [["2001:db8:0:2::/64"]],
                    "198.51.1.0/24": [["198.51.1.0/24"]], "192.0.2.1": []}, nets


def test_a_weir_that_runs_is_not_disturbed(place):
    log = place.write("log", burst("ann", 2))
    config = place.config([zone("site", [sliding(100, "1h")], id=1)], [source(log, follow=True)],
                          bus={"partitions": 2}, limiter={"checkpoint_interval": "100ms"})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--summary", "json")
    until(lambda: os.path.exists(place.path("state", "weir.db")), "a state", running=weir)

    def users():
        done = place.run("state", "--state", place.path("state"), "--key", "ann", "--key", "bob")
        return [sum(count for _, count in json.loads(text)["limits"][0]["times"]) for text in done.out().splitlines()]
    for turn in range(1, 30):
        until(lambda: users() in ([turn + 1], [turn + 1, turn - 1]), f"checkpoint {turn}", running=weir)
        place.append("log", line(START_MS + turn, "ann") + line(START_MS + turn, "bob"))
    until(lambda: users() == [31, 29], "the last checkpoint", running=weir)
    assert weir.stop() == DONE
    assert weir.summary()["events"] == 60
    assert users() == [31, 29]


def test_a_state_without_a_checkpoint_is_empty(place):
    config = place.config(traffic.site(), [source(place.write("log", b""))])
    once(place, config)
    assert dump(place, "state") == []


def test_what_is_wrong_is_said(place):
    os.mkdir(place.path("empty"))
    for code, words, *options in ((USAGE, "there is no state in", "--state", place.path("empty")),
                                  (USAGE, "there is no state in", "--state", place.path("none")),
                                  (USAGE, "or name a directory with --state",),
                                  (USAGE, "give the directory with --state", place.path("empty")),
                                  (USAGE, "No such file", "--state", "x", "--keys", place.path("none")),
                                  (USAGE, "--lateness must be a duration", "--state", "x", "--lateness", "soon"),
                                  (USAGE, "did you mean --zone?", "--state", "x", "--zoen", "y")):
        done = place.run("state", *options)
        assert done.code() == code and words in done.said() and not done.out(), (options, done.code(), done.said())
    assert sorted(os.listdir(place.path("empty"))) == [], "nothing is made"
    config = place.config(traffic.site(), [source(place.write("log", burst("ann", 5)))])
    once(place, config)
    done = place.run("state", "--state", place.path("state"), "--zone", "sight")
    assert done.code() == USAGE and 'no zone "sight"' in done.said(), done.said()
    done = place.run("state", "--state", place.path("state"), "--keys", place.write("keys", 'ann\n["bob", 5]\n'))
    assert done.code() == USAGE and f"{place.path('keys')}:2: a key's values must be strings" in done.said(), done.said()
    assert "--keys" in place.good("state", "--help").out().decode()
    database = read(place.path("state", "weir.db"))
    place.write("state/weir.db", database[:100] + b"\xff" * (len(database) - 100))
    done = place.run("state", "--state", place.path("state"))
    assert done.code() in (FAILED, USAGE) and "weir.db" in done.said(), (done.code(), done.said(), done.out())


EARLIER = {"name": "site", "id": 1, "key": ["ip"], "block_for": "1h",
           "limits": [sliding(3, "366d"), {"algorithm": "token_bucket", "rate": 60, "window": "1h", "burst": 8}]}


def test_a_state_of_an_earlier_version(place):
    """tests/data/earlier-state: before marks and bases were stored (partition state 2). A run of seven lines in two
    partitions, which has blocked 203.0.113.2, and `weir allow 198.51.100.0/24`; what its own `weir state` printed. Of a hash,
    which had 32 digits then, the first three and the last sixteen are kept."""
    data = os.path.join(TESTS, "data", "earlier-state")
    with tarfile.open(data + ".tar.xz") as archive:
        archive.extractall(place.directory)
    state, log, out = place.path("state"), place.write("access.log", ""), place.path("out")

    def printed():
        return place.good("state", "--state", state).out() + place.good("state", "--orders", "--state", state).out()
    expected = re.sub(rb'"key_hash":"(...).{13}(.{16})"', rb'"key_hash":"\1\2"', read(data + ".jsonl"))
    refused = place.run("state", "--state", state)
    assert refused.code() == USAGE and "written by an older version of weir; `weir run` upgrades it" in refused.said(), refused.said()
    config = place.config([EARLIER], [{"type": "file", "path": log, "format": "combined", "follow": True, "start": "beginning"}],
                          bus={"partitions": 2}, archiver={"enabled": True})
    run = place.start("run", "--config", config, "--state", state, "--decisions", out)
    until(lambda: "following" in run.said(), "weir follows", running=run)
    assert run.stop() == DONE and " ERROR " not in run.said(), run.said()
    assert printed() == expected, printed()
    for life in range(2):
        run = place.start("run", "--config", config, "--state", state, "--decisions", out)
        at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        place.append("access.log", f'192.0.2.{life} - - [{at}] "GET / HTTP/1.1" 200 5 "-" "-"\n' * 4)
        until(lambda life=life: any(one["key"] == [f"192.0.2.{life}"] for one in lines_of(out)), "blocks", running=run)
        assert run.stop() == DONE and " ERROR " not in run.said(), run.said()
    ids = [one["id"] for one in lines_of(out)]
    assert len({"1-1-3", *ids}) == 3, ids  # the one that it had published is not published again
    assert place.good("state", "--orders", "--state", state).out().splitlines() == \
        [text for text in read(data + ".jsonl").splitlines() if b'"order"' in text]
    done = place.run("state", "--orders", "--key", "192.0.2.1", "--state", state)
    assert done.code() == USAGE and "for buckets" in done.said(), done.said()


cases.main(globals())
