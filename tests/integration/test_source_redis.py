#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `redis`: each entry of a stream once, through kills of weir and of the server, cut connections and failovers.

WEIR_ROUNDS and WEIR_SEED choose how many kills there are, and which."""

import json
import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.following import keys, once, positions, start, user, value, verdicts
from support.own_redis import OwnRedis
from support.place import ROOT, SANITIZED, free_port, joined, lines_of, until
from support.proxy import Proxy
from support.redis import Redis, RedisError
from support.traffic import FORMAT, by_bucket, crowd, site, zone

from parts import tls  # pylint: disable=wrong-import-order
from parts.process import together  # pylint: disable=wrong-import-order

DONE, FAILED = 0, 1
ROUNDS = int(os.environ.get("WEIR_ROUNDS", "5"))
SEED = int(os.environ.get("WEIR_SEED", "26"))


def source(url, /, *streams, **more):
    """Streams whose entries have a field `line`."""
    return {**{"type": "redis", "url": url, "streams": list(streams or ["logs"]), "field": "line", "format": FORMAT}, **more}


def whole(url, /, *streams, **more):
    """Streams whose entries are lines as a whole."""
    return {"type": "redis", "url": url, "streams": list(streams), "format": "json", **more}


def reads(port, count=1):
    """Whether so many streams are being read."""
    return value(port, "weir_source_guarantee") >= count and value(port, "weir_source_problem") == 0


def position(entry_id):
    """Of an entry."""
    ms, sequence = entry_id.decode().split("-")
    return int(ms) << 21 | int(sequence)


def group_of(client, key="logs", name="weir-collector"):
    """The place of weir's group: (id, entries read)."""
    for members in client.call("XINFO", "GROUPS", key):
        about = dict(zip(members[::2], members[1::2]))
        if about[b"name"] == name.encode():
            return about[b"last-delivered-id"], about[b"entries-read"]
    return None


def test_a_stream_gives_what_its_lines_give_as_a_file(place):
    lines = crowd(random.Random(SEED), 20000, 300)
    path = place.write("log", b"".join(lines))
    with OwnRedis(place, "--appendfsync", "no") as server:
        ids = server.add("logs", *lines)
        wanted, counted = once(place, [{"type": "file", "path": path, "format": FORMAT}], "file")
        got, summary = once(place, [source(server.url)], "redis")
        assert len(wanted) > 100 and by_bucket(got) == by_bucket(wanted)
        assert (summary["lines"], summary["zones"]) == (counted["lines"], counted["zones"])
        weir, port = start(place, [source(server.url)])
        until(lambda: verdicts(port) == len(lines), "all verdicts", running=weir)
        until(lambda: value(port, "weir_source_lag_messages") == 0, "no lag", running=weir)
        assert value(port, "weir_source_guarantee", guarantee="exactly once") == 1
        until(lambda: group_of(server) == (ids[-1], len(lines)), "the group is at the end", running=weir)
        assert weir.stop() == DONE, weir.said()
    assert sorted(at for _, at in positions(place)) == sorted(map(position, ids))


def test_it_goes_on_where_it_was_and_begins_where_it_is_told(place):
    with OwnRedis(place) as server:
        server.add("logs", *(user(i, "old") for i in range(9)))
        for name in ("ann", "bob", "eve"):
            weir, port = start(place, [source(server.url, start="end")])
            until(lambda: reads(port), "it reads", running=weir)  # pylint: disable=cell-var-from-loop
            server.add("logs", *(user(i, name) for i in range(4)))
            until(lambda: name in keys(place), f"{name} is blocked", running=weir)  # pylint: disable=cell-var-from-loop
            weir.kill()
            server.add("logs", user(9, f"{name}-again"))
        assert keys(place) == ["ann", "bob", "eve"]


def test_another_machine_goes_on_where_the_group_is(place):
    with OwnRedis(place) as server:
        server.add("logs", *(user(i, "ann") for i in range(3)))
        weir, port = start(place, [source(server.url)])
        until(lambda: verdicts(port) == 3 and group_of(server), "three", running=weir)
        assert weir.stop() == DONE, weir.said()
        assert group_of(server)[1] == 3
        os.rename(place.path("state"), place.path("other"))
        ids = server.add("logs", *(user(i, "bob") for i in range(4)))
        weir, port = start(place, [source(server.url)])
        until(lambda: keys(place) == ["bob"], "bob is blocked", running=weir)
        until(lambda: group_of(server) == (ids[-1], 7), "it is kept", running=weir)
        assert verdicts(port) == 4 and weir.stop() == DONE, weir.said()


def test_what_is_trimmed_before_it_is_read_is_counted(place):
    with OwnRedis(place) as server:
        server.add("logs", *(user(i, "ann") for i in range(4)))
        weir, port = start(place, [source(server.url)])
        until(lambda: keys(place) == ["ann"], "ann is blocked", running=weir)
        assert weir.stop() == DONE, weir.said()
        ids = server.add("logs", *(user(i, "lost") for i in range(7)), *(user(i, "bob") for i in range(4)))
        server.call("XTRIM", "logs", "MINID", ids[6])
        server.call("XDEL", "logs", ids[6])
        weir, port = start(place, [source(server.url)])
        until(lambda: "bob" in keys(place), "bob is blocked", running=weir)
        until(lambda: value(port, "weir_source_lost_messages_total") == 7, "seven are lost", running=weir)
        until(lambda: "7 entries were removed before they were read" in weir.said(), "it is said", running=weir)
        assert metrics.get(port, "/readyz")[0] == 200
        server.call("XTRIM", "logs", "MAXLEN", 0)  # what was read may go
        server.add("logs", *(user(i, "eve") for i in range(4)))
        until(lambda: "eve" in keys(place), "eve is blocked", running=weir)
        assert value(port, "weir_source_lost_messages_total") == 7
        assert weir.stop() == DONE, weir.said()


def test_entries_of_any_size_and_form_are_taken_or_told(place):
    """No such field, bytes of any kind, several lines, 8 MB in one, many fields: with bounded memory."""
    with OwnRedis(place, "--appendfsync", "no") as server:
        large = b"x" * (8 << 20)
        weir, port = start(place, [source(server.url, line_max="4KiB"), whole(server.url, "many", name="many", line_max="4KiB")],
                           [*site(), zone("streams", [{"algorithm": "sliding_window", "rate": 3, "window": "1m"}],
                                          key=("_stream",), id=2)])
        server.add("logs", user(0, "ann"), {"other": "x", "a\x1bb": "y"}, b"", b"\r\n", b"\0\xff\n\0" * 100,
                   b'{"time": 1700000000001,\n "user": "ann"}\n', {"line": user(2, "ann"), "more": large})
        server.add("logs", *[large] * 4)
        server.add("logs", *(user(i, "ann") for i in range(3, 9)))
        server.add("many", {f"f{i}": i for i in range(100000)}, {"_stream": "forged", "time": "1999-01-01T00:00:00Z"},
                   *[{"n": i} for i in range(4)])
        until(lambda: keys(place) == ["ann", "many"], "ann is blocked", running=weir)
        until(lambda: value(port, "weir_source_skipped_total") == 3, "three are skipped", running=weir)
        until(lambda: len(lines_of(place.path("dead"))) == 6, "six are dead letters", running=weir)
        reasons = sorted(letter["reason"] for letter in lines_of(place.path("dead")))
        assert reasons == ["line too long"] * 5 + ["not json"], reasons
        if not SANITIZED:
            assert weir.peak_bytes() < 200 << 20, weir.peak_bytes()
        until(lambda: "has no field \"line\", but other, a?b" in weir.said(), "it is said", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_ids_that_are_not_the_clocks_stop_their_stream_alone(place):
    with OwnRedis(place) as server:
        weir, port = start(place, [source(server.url, "logs", "odd", "string", "later")])
        server.call("SET", "string", "x")
        server.call("XADD", "odd", "5-1", "line", user(0, "bob"))
        server.call("XADD", "odd", "5-2097152", "line", user(0, "eve"))
        server.add("logs", *(user(i, "ann") for i in range(4)))
        until(lambda: keys(place) == ["ann"], "ann is blocked", running=weir)
        until(lambda: "entry 5-2097152 has an id that weir cannot order" in weir.said(), "it is said", running=weir)
        until(lambda: "holds no stream under this key" in weir.said() and "has no such key" in weir.said(), "both",
              running=weir)
        assert value(port, "weir_source_problem") == 3
        server.add("later", *(user(i, "joe") for i in range(4)))
        until(lambda: keys(place) == ["ann", "joe"], "joe is blocked", running=weir)
        assert verdicts(port) == 9 and metrics.get(port, "/readyz")[0] == 200
        assert weir.stop() == DONE, weir.said()


def test_streams_that_may_be_looked_at_and_not_read_are_told_each(place):
    with OwnRedis(place, *"--user weir on >secret ~* +@all -xread".split()) as server:
        server.add("a", *(user(i, "ann") for i in range(4)))
        server.add("b", *(user(i, "bob") for i in range(4)))
        weir, port = start(place, [source(server.url, "a", "b", user="weir", password="secret")])
        until(lambda: value(port, "weir_source_problem") == 2, "both are told", running=weir)
        until(lambda: weir.said().count("does not allow this user to read it") == 2, "in the log, too", running=weir)
        server.call("ACL", "SETUSER", "weir", "+xread")
        until(lambda: keys(place) == ["ann", "bob"] and value(port, "weir_source_problem") == 0, "both are read", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_patterns_find_streams_that_come(place):
    with OwnRedis(place) as server:
        server.add("x:1", *(user(i, "ann") for i in range(4)))
        server.add("y:1", *(user(i, "no") for i in range(4)))
        weir, port = start(place, [source(server.url, "x:*", start="end")])
        until(lambda: reads(port), "it reads", running=weir)
        server.add("x:1", *(user(i, "bob") for i in range(4)))
        server.add("x:2", *(user(i, "eve") for i in range(4)))  # it came since: all of it is new
        until(lambda: keys(place) == ["bob", "eve"], "both are blocked", running=weir)
        assert weir.stop() == DONE, weir.said()


class Writer:
    """Adds entries until it is stopped, through whatever happens to the server; knows what was acknowledged."""

    def __init__(self, port):
        self.client, self._over = Redis(port, timeout_s=5), False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self):
        number = 0
        while not self._over:
            try:
                self.client.together([["XADD", "logs", "*", "line", user(number + i, f"u{(number + i) % 50}")]
                                      for i in range(40)])
                number += 40
                time.sleep(0.005)
            except (OSError, RedisError):
                self.client.close()
                time.sleep(0.05)

    def stop(self):
        """Ends it."""
        self._over = True
        joined(self._thread, "the writer")
        self.client.close()


def test_kills_and_cuts_at_any_moment_lose_and_double_nothing(place):
    rng = random.Random(SEED)
    with OwnRedis(place) as server, Proxy(server.port) as proxy:
        writer = Writer(server.port)
        sources = [source(f"redis://127.0.0.1:{proxy.port}")]
        weir, port = start(place, sources)
        for number in range(ROUNDS):
            what = ("weir", "server", "cut", "reset", "both")[(number + SEED) % 5]
            time.sleep(rng.uniform(0.05, 0.6))  # a kill comes when it comes: there is nothing to wait for
            if what in ("server", "both"):
                server.kill()
            if what in ("weir", "both"):
                weir.kill()
            if what in ("server", "both"):
                server.start()
            if what in ("weir", "both"):
                weir, port = start(place, sources)
            if what in ("cut", "reset"):
                proxy.drop(reset=what == "reset")
        writer.stop()
        server.client.close()
        ids = [entry[0] for entry in server.call("XRANGE", "logs", "-", "+")]
        until(lambda: verdicts(port) >= len(ids), f"{len(ids)} verdicts", running=weir)
        assert value(port, "weir_source_lost_messages_total") == 0
        assert value(port, "weir_source_unknown_losses_total") == 0, weir.said()
        assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == len(ids), (weir.summary(), len(ids))
    seen = [at for _, at in positions(place)]
    assert sorted(seen) == sorted(map(position, ids)), (len(seen), len(ids))
    print(f"seed {SEED}: {ROUNDS} rounds, {len(ids)} entries")


def test_departures_are_each_given_once(place):
    """Removed entries, through kills; what was removed before it was read does not depart."""
    zones = [zone("left", [{"algorithm": "sliding_window", "rate": 1000000, "window": "1m"}], key=("_stream",), id=1,
                  match={"_event": ["departed"]})]
    rng = random.Random(SEED)
    with OwnRedis(place) as server:
        sources = [whole(server.url, "jobs", name="jobs", departures="removed")]
        weir, port = start(place, sources, zones)
        until(lambda: "has no such key" in weir.said(), "it looks", running=weir)
        left, here = 0, []
        for number in range(ROUNDS):
            here += server.add("jobs", *({"n": i} for i in range(rng.randint(1, 50))))
            if number % 2 == 1:
                weir.kill()
                weir, port = start(place, sources, zones)
            until(lambda: reads(port, 2) and group_of(server, "jobs") == (here[-1], len(here) + left), "all are read",  # pylint: disable=cell-var-from-loop
                  running=weir)
            going = rng.sample(here, rng.randint(0, len(here)))
            if going:
                server.call("XDEL", "jobs", *going)
            left += len(going)
            here = [one for one in here if one not in going] or server.add("jobs", {"n": -1})
            if number % 3 == 2:
                weir.kill()
                weir, port = start(place, sources, zones)
        until(lambda: verdicts(port) == left, f"{left} departures", running=weir)
        assert weir.stop() == DONE, weir.said()
        ids = server.add("jobs", *({"n": i} for i in range(5)))
        server.call("XDEL", "jobs", *ids[:3], here[0])
        weir, port = start(place, sources, zones)
        until(lambda: verdicts(port) == left + 1, "one more", running=weir)
        until(lambda: value(port, "weir_source_lost_messages_total") == 3, "three were never read", running=weir)
        assert verdicts(port) == left + 1 and weir.stop() == DONE, weir.said()


def test_departures_free_no_places_of_zones_that_count_by_more(place):
    queue = {"algorithm": "queue", "length": 2, "hold": "10m", "done": {"_event": ["departed"]}}
    sources = [whole("redis://127.0.0.1:1", "jobs", departures="removed")]
    for number, (key, good) in enumerate(((("_stream",), True), (("user",), False), (("_stream", "user"), False))):
        config = place.config([zone("queue", [queue], key=key)], sources, name=f"zones-{number}.json")
        done = place.run("validate", "--config", config)
        assert (done.code() == DONE) == good, done.said()
        assert good or "says of entries only which stream they left, and zone \"queue\" counts by more" in done.said()


def test_acknowledged_entries_depart(place):
    zones = [zone("left", [{"algorithm": "sliding_window", "rate": 1000000, "window": "1m"}], key=("_stream",), id=1,
                  match={"_event": ["departed"]})]
    with OwnRedis(place) as server:
        server.add("jobs", {"n": 0})
        server.call("XGROUP", "CREATE", "jobs", "workers", 0)
        weir, port = start(place, [whole(server.url, "jobs", name="jobs", departures={"group": "workers"})], zones)
        until(lambda: reads(port, 2), "it reads", running=weir)
        ids = server.add("jobs", *({"n": i} for i in range(9)))
        server.call("XREADGROUP", "GROUP", "workers", "w", "STREAMS", "jobs", ">")
        assert server.call("XACK", "jobs", "workers", *ids[:6]) == 6
        until(lambda: verdicts(port) == 6, "six departures", running=weir)
        server.call("XACK", "jobs", "workers", *ids)
        until(lambda: verdicts(port) == 9, "nine departures", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_departures_go_on_in_a_stream_that_was_made_anew(place):
    """What was read of the old one has left with it, though the server counts from nothing again; also after a restart."""
    zones = [zone("left", [{"algorithm": "sliding_window", "rate": 1000000, "window": "1m"}], key=("_stream",), id=1,
                  match={"_event": ["departed"]})]
    with OwnRedis(place) as server:
        sources = [whole(server.url, "jobs", "mails", name="acked", group="a", departures={"group": "workers"}),
                   whole(server.url, "jobs", "mails", name="removed", group="b", departures="removed")]

        def fill(key, count):
            server.add(key, *({"n": i} for i in range(count)))
            server.call("XGROUP", "CREATE", key, "workers", 0)
            return [entry[0] for entry in server.call("XREADGROUP", "GROUP", "workers", "w", "STREAMS", key, ">")[0][1]]

        def finish(key, *ids):
            server.client.together([["XACK", key, "workers", *ids], ["XDEL", key, *ids]])

        weir, port = start(place, sources, zones)
        until(lambda: value(port, "weir_source_problem") == 4, "it looks", running=weir)
        ids = {key: fill(key, 5) for key in ("jobs", "mails")}
        until(lambda: all(group_of(server, key, group) == (ids[key][-1], 5) for key in ids for group in ("a", "b")),
              "all are read", running=weir)
        finish("jobs", *ids["jobs"][:3])
        until(lambda: verdicts(port) == 6, "three departures, twice", running=weir)
        server.client.together([["DEL", "jobs"], ["DEL", "mails"]])
        ids = {key: fill(key, 3) for key in ("jobs", "mails")}
        until(lambda: verdicts(port) == 20, "all ten of the old ones, twice", running=weir)
        until(lambda: value(port, "weir_source_unknown_losses_total") == 4, "it is said", running=weir)
        finish("jobs", ids["jobs"][0])
        until(lambda: verdicts(port) == 22, "one more", running=weir)
        until(lambda: all(group_of(server, key, group) == (ids[key][-1], 3) for key in ids for group in ("a", "b")),
              "all is kept, as the server counts it", running=weir)
        assert weir.stop() == DONE, weir.said()
        weir, port = start(place, sources, zones)
        finish("mails", *ids["mails"])
        finish("jobs", *ids["jobs"])
        until(lambda: verdicts(port) == 32, "all that is left", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_what_left_with_a_stream_that_was_removed_while_weir_was_down(place):
    """It took weir's groups along; this machine remembers how many entries it has read."""
    zones = [zone("left", [{"algorithm": "sliding_window", "rate": 1000000, "window": "1m"}], key=("_stream",), id=1,
                  match={"_event": ["departed"]})]
    with OwnRedis(place) as server:
        sources = [whole(server.url, "jobs", name="jobs", departures="removed")]

        def fill(weir, count):
            ids = server.add("jobs", *({"n": i} for i in range(count)))
            until(lambda: group_of(server, "jobs") == (ids[-1], count), "all are read", running=weir)
            return ids

        weir, port = start(place, sources, zones)
        until(lambda: value(port, "weir_source_problem") >= 1, "it looks", running=weir)
        ids = fill(weir, 5)
        server.call("XDEL", "jobs", *ids[:2])
        until(lambda: verdicts(port) == 2, "two departures", running=weir)
        assert weir.stop() == DONE, weir.said()
        server.call("DEL", "jobs")
        weir, port = start(place, sources, zones)
        until(lambda: verdicts(port) == 5, "the other three", running=weir)
        fill(weir, 4)
        assert weir.stop() == DONE, weir.said()
        server.call("DEL", "jobs")
        server.add("jobs", {"n": 0})
        weir, port = start(place, sources, zones)
        until(lambda: verdicts(port) == 9, "all four, and not the new one", running=weir)
        until(lambda: value(port, "weir_source_unknown_losses_total") == 1, "it is said", running=weir)
        assert weir.stop() == DONE, weir.said()
        server.call("DEL", "jobs")
        path = place.path("state", "sources.json")
        with open(path, encoding="utf-8") as file:
            kept = file.read()
        place.write(path, re.sub(r'"notes":\{"number":[^}]+\}', '"notes":{}', kept))  # as an earlier weir left it
        server.add("jobs", {"n": 0})
        weir, port = start(place, sources, zones)
        until(lambda: "nobody knows how many of its entries have left" in weir.said(), "it is said", running=weir)
        assert value(port, "weir_source_unknown_losses_total") == 1
        server.call("DEL", "jobs")
        until(lambda: verdicts(port) == 10, "while it runs, too", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_a_stream_that_was_made_anew_while_weir_was_down_is_told(place):
    """It took weir's groups along, and what nobody had read; this machine remembers how much there was."""
    with OwnRedis(place) as server:
        def unknown(port):
            return value(port, "weir_source_unknown_losses_total")

        def run(count, group="weir-collector"):
            weir, port = start(place, [source(server.url, group=group)])
            until(lambda: verdicts(port) == count, f"{count} are judged", running=weir)
            until(lambda: group_of(server, name=group), "its place is kept", running=weir)
            return weir, port

        def end(weir):
            assert weir.stop() == DONE, weir.said()

        server.add("logs", *(user(i, f"a{i}") for i in range(5)))
        end(run(5)[0])
        server.add("logs", *(user(i, f"b{i}") for i in range(3)))
        server.call("DEL", "logs")
        server.add("logs", user(0, "c"))
        weir, port = run(6)
        until(lambda: unknown(port) == 1, "it is counted", running=weir)
        assert "the server counts 1 entries, after 6 before: the stream was made anew" in weir.said(), weir.said()
        until(lambda: group_of(server)[1] == 1, "it is kept, as the server counts", running=weir)
        end(weir)
        # Told once. A group that somebody destroyed, or another one, is no stream that was made anew.
        for count, group in ((8, "weir-collector"), (10, "weir-collector"), (12, "other")):
            server.call("XGROUP", "DESTROY", "logs", "weir-collector")
            server.add("logs", *(user(i, f"{count}-{i}") for i in range(2)))
            weir, port = run(count, group)
            until(lambda: group_of(server, name=group)[1] is not None, "it has settled", running=weir)  # pylint: disable=cell-var-from-loop
            assert unknown(port) == 0 and value(port, "weir_source_lost_messages_total") == 0, weir.said()
            end(weir)
        # Killed before it could say so, it says so at the next start.
        server.call("DEL", "logs")
        server.add("logs", *(user(i, f"d{i}") for i in range(3)))
        weir, port = start(place, [source(server.url, group="other")])
        weir.kill()
        weir, port = start(place, [source(server.url, group="other")])
        until(lambda: unknown(port) == 1, "it is counted", running=weir)
        end(weir)


def test_the_example_of_the_document(place):
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        page = file.read()
    example = json.loads(re.search(r"## Redis\n.*?```json\n(.*?)```", page, re.DOTALL)[1])
    with OwnRedis(place) as server:
        example["sources"][0]["url"] = server.url
        weir, port = start(place, example["sources"], example["zones"])
        ids = server.add("jobs:mail", {"to": "ann"}, {"to": "bob"})
        until(lambda: verdicts(port) == 2, "two pass", running=weir)
        server.call("XDEL", "jobs:mail", ids[0])
        until(lambda: value(port, "weir_source_lines_total", source="redis:jobs:jobs:mail done") == 1, "one is done",
              running=weir)
        server.add("jobs:mail", {"to": "eve"}, {"to": "joe"})
        until(lambda: keys(place) == ["jobs:mail"], "the queue is full", running=weir)
        page = metrics.scrape(port)
        assert (page.value("weir_limiter_verdicts_total", zone="waiting", verdict="pass"),
                page.value("weir_limiter_verdicts_total", zone="waiting", verdict="block")) == (3, 1)
        assert weir.stop() == DONE, weir.said()


def follow(replica, way):
    """Makes a server the replica of what is behind a proxy, until it has all."""
    replica.call("REPLICAOF", "127.0.0.1", way.port)
    until(lambda: b"master_link_status:up" in replica.call("INFO", "replication"), "it replicates")


def test_failovers_lose_what_redis_loses_and_say_so(place):
    """A master dies, and its replica takes over: with all entries, or cut off before without the newest ones. What weir has read
    of those counts, and what comes then is read behind them."""
    rng, ids, lost = random.Random(SEED), [], 0
    with OwnRedis(place, name="one") as one, Proxy(one.port) as to_one, OwnRedis(place, name="two") as two, \
            Proxy(two.port) as to_two:
        follow(two, to_one)
        master, replica, way, back = one, two, to_one, to_two
        weir, port = start(place, [{**source(one.url), "url": [two.url, one.url]}])  # the replica is passed over
        for number in range(ROUNDS):
            ids += master.add("logs", *(user(i, f"u{i % 50}") for i in range(rng.randint(50, 500))))
            assert master.call("WAIT", 1, 10000) == 1
            if number % 2 == 0:
                way.cut()
                ids += master.add("logs", *(user(i, f"u{i % 50}") for i in range(3)))
                lost += 1
            until(lambda: verdicts(port) == len(ids), f"{len(ids)} verdicts", running=weir)
            master.kill()
            replica.call("REPLICAOF", "NO", "ONE")
            until(lambda: value(port, "weir_source_unknown_losses_total") == lost, "it is said", running=weir)  # pylint: disable=cell-var-from-loop
            ids += replica.add("logs", *(user(i, f"u{i % 50}") for i in range(40)))
            until(lambda: verdicts(port) == len(ids), f"{len(ids)} verdicts", running=weir)
            master.client.close()
            master.start()
            way.mend()
            follow(master, back)
            master, replica, way, back = replica, master, back, way
        until(lambda: (group_of(master) or [None])[0] == ids[-1], "the new master keeps the place", running=weir)
        assert "the server went back: it ends with" in weir.said()
        assert weir.stop() == DONE, weir.said()
    assert sorted(at for _, at in positions(place)) == sorted(map(position, ids))


def slot(key):
    """Of a cluster, by CRC-16."""
    crc = 0
    for byte in key.encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc % 16384


def clustered(*nodes, second=8192):
    """Makes one cluster of two nodes, of which the second has the slots from that one on."""
    for node, (first, last) in zip(nodes, ((0, second - 1), (second, 16383))):
        node.call("CLUSTER", "ADDSLOTSRANGE", first, last)
        node.call("CLUSTER", "SET-CONFIG-EPOCH", first + 1)
    nodes[0].call("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].bus)
    for node in nodes:
        until(lambda: b"cluster_state:ok" in node.call("CLUSTER", "INFO") and  # pylint: disable=cell-var-from-loop
              len(node.call("CLUSTER", "SLOTS")) == 2, "the cluster is made")  # pylint: disable=cell-var-from-loop


def cluster_node(place, name):
    """One, not yet of a cluster."""
    bus = free_port()
    node = OwnRedis(place, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", 60000, name=name)
    node.bus = bus
    return node


def test_streams_of_a_cluster_are_read_where_they_are(place):
    """Two nodes; a stream that moves from one to the other while it is read; patterns over both."""
    with cluster_node(place, "a") as a, cluster_node(place, "b") as b:
        clustered(a, b)
        low = [f"k{i}" for i in range(99) if slot(f"k{i}") < 8192][:2]
        high = [f"k{i}" for i in range(99) if slot(f"k{i}") >= 8192][:2]
        kept = [*a.add(low[0], *(user(i, "ann") for i in range(4))), *b.add(high[0], *(user(i, "bob") for i in range(4)))]
        weir, port = start(place, [source(a.url, *low, *high), source(b.url, "k*", name="all", group="all")])
        until(lambda: keys(place) == ["ann", "bob"], "both are blocked", running=weir)
        moving, ids = slot(low[0]), [node.call("CLUSTER", "MYID").decode() for node in (a, b)]
        b.call("CLUSTER", "SETSLOT", moving, "IMPORTING", ids[0])
        a.call("CLUSTER", "SETSLOT", moving, "MIGRATING", ids[1])
        a.call("MIGRATE", "127.0.0.1", b.port, low[0], 0, 5000)
        b.client.together([["ASKING"], ["XADD", low[0], "*", "line", user(5, "ann")]])
        until(lambda: verdicts(port) == 18, "it is read while it moves", running=weir)
        for node in (b, a):
            node.call("CLUSTER", "SETSLOT", moving, "NODE", ids[1])
        kept += b.add(low[0], *(user(i, "eve") for i in range(4)))
        kept += b.add(high[1], *(user(i, "joe") for i in range(4)))
        until(lambda: keys(place) == ["ann", "bob", "eve", "joe"], "all are blocked", running=weir)
        until(lambda: verdicts(port) == 34, "each twice", running=weir)
        until(lambda: group_of(b, low[0]) == (kept[-5], 9), "the place moves with the stream", running=weir)
        assert weir.stop() == DONE, weir.said()
    seen = positions(place)
    assert len(seen) == len(set(seen)) == 34, len(seen)


def calls(node, command):
    """How often a node was asked that."""
    found = re.search(rf"cmdstat_{re.escape(command)}:calls=(\d+)", node.call("INFO", "commandstats").decode())
    return int(found[1]) if found else 0


def test_a_node_that_has_no_slots_any_more_is_not_searched(place):
    with cluster_node(place, "a") as a, cluster_node(place, "b") as b:
        clustered(a, b, second=16383)
        weir, _ = start(place, [source(a.url, "k*")])
        until(lambda: calls(b, "scan") > 0, "both are searched", running=weir)
        to_a = a.call("CLUSTER", "MYID").decode()
        for node in (a, b):
            node.call("CLUSTER", "SETSLOT", 16383, "NODE", to_a)

        def search():
            before = calls(a, "scan")
            until(lambda: calls(a, "scan") >= before + 2, "it searches on", running=weir)
            return calls(b, "scan")

        assert search() == search()
        assert weir.stop() == DONE, weir.said()


def test_logins_and_tls(place):
    together([tls.making(place.path("tls")), tls.making(place.path("other"))])
    files, others = tls.files(place.path("tls")), tls.files(place.path("other"))
    place.write("password", "secret\n")
    secure = free_port()
    with OwnRedis(place, "--tls-port", secure, "--tls-cert-file", files["cert"], "--tls-key-file", files["key"],
                  "--tls-ca-cert-file", files["ca"], "--tls-auth-clients", "no", *"--user default on nopass ~* &* +@all --user weir on >secret ~logs +xread +xinfo +xgroup +multi +exec +role +select "
                  "--user blind on >secret ~logs +xadd +select".split()) as server:
        server.add("logs", *(user(i, "ann") for i in range(4)))
        url, login = f"rediss://127.0.0.1:{secure}?ca={files['ca']}", {"user": "weir", "password": {"file": place.path("password")}}
        decisions, _ = once(place, [source(url, **login)], "login")
        assert [decision["key"] for decision in decisions if decision["action"] == "block"] == [["ann"]]
        for number, (address, more, words) in enumerate((
                (url, {**login, "password": "wrong-secret"}, "WRONGPASS"),
                (url, {**login, "user": "blind"}, "does not allow this user to read it"),
                (f"rediss://127.0.0.1:{secure}?ca={others['ca']}", login, "certificate"),
                (f"redis://127.0.0.1:{free_port()}", {}, "Connection refused"))):
            config = place.config(site(), [source(address, **more)], name=f"refused-{number}.json")
            said = place.good("validate", "--config", config).out().decode()
            assert words in said and "secret" not in said.replace("wrong-secret", ""), (words, said)
            done = place.run("run", "--once", "--config", config)
            assert done.code() == FAILED and words in done.said(), (done.code(), done.said())
        weir, port = start(place, [source(url, **login)])
        until(lambda: keys(place) == ["ann"] and reads(port), "ann is blocked", running=weir)
        until(lambda: group_of(server), "it is kept", running=weir)
        assert weir.stop() == DONE, weir.said()
    with OwnRedis(place, "--tls-port", secure, "--tls-cert-file", files["cert"], "--tls-key-file", files["key"],
                  "--tls-ca-cert-file", files["ca"]) as server:  # as it is set up, it asks for a client's certificate
        server.add("logs", *(user(i, "bob") for i in range(4)))
        done = place.run("run", "--once", "--config", place.config(site(), [source(url)], name="bare.json"))
        assert done.code() == FAILED, done.said()
        decisions, _ = once(place, [source(f"{url}&certificate={files['cert']}&key={files['key']}")], "shown")
        assert [decision["key"] for decision in decisions if decision["action"] == "block"] == [["ann"], ["bob"]], decisions


if __name__ == "__main__":
    sys.exit(cases.main(globals()))
