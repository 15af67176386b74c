#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `amqp`: a stream queue's messages once, another queue's at least once, whatever is killed or cut.

WEIR_ROUNDS and WEIR_SEED choose how many kills there are, and which. A RabbitMQ of the script's own serves all tests."""

import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.following import events, keys, start, user, value, verdicts
from support.place import PATIENCE_S, ROOT, SANITIZED, Place, free_port, joined, lines_of, until
from support.proxy import Proxy
from support.rabbitmq import Client, OwnRabbit, RabbitError
from support.traffic import FORMAT, by_bucket, crowd, fixed, site, zone

from parts import tls  # pylint: disable=wrong-import-order
from parts.process import together  # pylint: disable=wrong-import-order

DONE, USAGE = 0, 2
ROUNDS = int(os.environ.get("WEIR_ROUNDS", "5"))
SEED = int(os.environ.get("WEIR_SEED", "26"))
SERVER_S = 4 * PATIENCE_S  # RabbitMQ takes its time to start

OWN = {}  # the server, and its files


def source(queue, /, **more):
    """A queue of the server."""
    return {**{"type": "amqp", "url": OWN["server"].url, "queue": queue, "format": FORMAT}, **more}


def stream(queue, /, **more):
    """A stream queue of the server."""
    return source(queue, stream=True, **more)


def client():
    """A connection to the server."""
    return Client(OWN["server"].port)


def until_reading(weir, port):
    """Waits until it is settled where the queue begins."""
    until(lambda: value(port, "weir_source_replayable") == 1 and value(port, "weir_source_problem") == 0, "it reads",
          SERVER_S, running=weir)


def test_a_server_that_is_slow_to_begin_is_waited_for(place):
    """It answers nothing while it gathers what it sends ahead: were it asked, the connection would end, again and again."""
    with client() as one:
        one.declare("sluggish", "stream")
    weir, port = start(place, [stream("sluggish")])
    until_reading(weir, port)
    OWN["server"].pause()
    time.sleep(11.5)  # longer than a question and its answer may take
    OWN["server"].resume()
    with client() as one:
        one.publish([user(i, "ann") for i in range(4)], "sluggish")
    until(lambda: keys(place) == ["ann"], "ann is blocked", SERVER_S, weir)
    assert value(port, "weir_source_errors_total") == 0, weir.said()
    assert weir.stop() == DONE, weir.said()


def test_queues_give_what_their_lines_give_as_a_file(place):
    lines = crowd(random.Random(SEED), 6000, 200)
    path = place.write("log", b"".join(lines))
    done = place.good("run", "--once", "--config", place.config(site(), [{"type": "file", "path": path, "format": FORMAT}]),
                      "--decisions", place.path("wanted"))
    assert done.code() == DONE
    wanted = by_bucket(lines_of(place.path("wanted")))
    assert len(wanted) > 50
    for kind, read in (("stream", stream("equal-stream")), ("quorum", source("equal-quorum")),
                       ("classic", source("equal-classic"))):
        with client() as one:
            one.declare(read["queue"], kind)
            one.publish(lines, read["queue"])
        with Place(place.weir, place.directory) as inner:
            weir, port = start(inner, [read])
            until(lambda: verdicts(port) == len(lines), "all verdicts", running=weir)  # pylint: disable=cell-var-from-loop
            wanted_guarantee = "exactly once" if kind == "stream" else "at least once"
            assert value(port, "weir_source_guarantee", guarantee=wanted_guarantee) == 1
            assert weir.stop() == DONE, weir.said()
            got = by_bucket(lines_of(inner.path("out")))
            for decisions in got.values():  # a stop that came in between would end blocks; there is none
                assert decisions
            assert {bucket: [one["at"] for one in decisions if one["action"] == "block"] for bucket, decisions in got.items()} == \
                {bucket: [one["at"] for one in decisions if one["action"] == "block"] for bucket, decisions in wanted.items()}
        if kind != "stream":
            with client() as one:
                assert one.count(read["queue"]) == 0  # all is acknowledged


def test_the_examples_of_the_documentation_work(place):
    """Those of collector/sources.md, with the server's own address in them."""
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        parts = file.read().partition("## AMQP")[2].partition("\n## ")[0].split("```json")[1:]
    examples = [json.loads(part.partition("```")[0]) for part in parts]
    assert len(examples) == 2
    with client() as one:
        for example in examples:
            one.declare(example["queue"], "stream" if example.get("stream") else "quorum")
            example.update(url=OWN["server"].url, user="guest", password="guest")
            example.pop("ca", None)
            example.pop("vhost", None)
        weir, port = start(place, examples, zones=[zone("site", [fixed(3, "1d")], key=["ip"])])
        until(lambda: value(port, "weir_source_replayable") == 2, "both are read", running=weir)
        text = '%s - - [10/Oct/2024:13:55:36 +0000] "GET / HTTP/1.1" 200 7 "-" "x"'
        for number, example in enumerate(examples):
            one.publish([(text % f"203.0.113.{number}").encode()] * 4, example["queue"])
        until(lambda: keys(place) == ["203.0.113.0", "203.0.113.1"], "both are blocked", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_the_end_is_settled_before_anything_is_read(place):
    """What comes while weir is down counts from the first start on, of a queue that had messages and of one that had none."""
    with client() as one:
        for queue in ("end-some", "end-none"):
            one.declare(queue, "stream")
        one.publish([user(i, "old") for i in range(9)], "end-some")
        sources = [stream("end-some", start="end"), stream("end-none", start="end")]
        weir, port = start(place, sources)
        until(lambda: value(port, "weir_source_replayable") == 2, "both are found", SERVER_S, running=weir)
        weir.kill()
        for queue in ("end-some", "end-none"):
            one.publish([user(i, queue) for i in range(4)], queue)
        weir, port = start(place, sources)
        until(lambda: keys(place) == ["end-none", "end-some"], "both are blocked", SERVER_S, running=weir)
        assert verdicts(port) == 8 and weir.stop() == DONE, weir.said()


def test_foreign_messages_and_gaps_are_told(place):
    """Empty ones, bytes of any kind, 60 MB in one; of a queue of the other kind, nothing is taken."""
    with client() as one:
        one.declare("foreign", "stream")
        one.declare("plain", "classic")
        large = b"x" * (60 << 20)
        one.publish([user(0, "ann"), b"", b"\r\n", b"\0\xff\n\0" * 100, b'{"time": 1700000000001,\n "user": "ann"}\n'], "foreign")
        one.publish([large], "plain")
        one.publish([user(2, "ann"), user(3, "ann")], "foreign")
        weir, port = start(place, [stream("foreign", line_max="4KiB"), source("plain", line_max="4KiB")])
        until(lambda: keys(place) == ["ann"] and len(lines_of(place.path("dead"))) == 2, "ann is blocked", running=weir)
        assert value(port, "weir_source_skipped_total") == 2
        assert sorted(letter["reason"] for letter in lines_of(place.path("dead"))) == ["line too long", "not json"]
        if not SANITIZED:
            assert weir.peak_bytes() < 300 << 20, weir.peak_bytes()
        assert weir.stop() == DONE, weir.said()
        one.publish([user(0, "ann")], "plain")
    with Place(place.weir, place.directory) as inner:
        weir, port = start(inner, [source("foreign"), stream("plain", name="other")])
        until(lambda: 'queue plain is no stream queue: remove "stream"' in weir.said(), "it is said", running=weir)
        with client() as one:
            one.publish([user(4, "eve")], "foreign")
        until(lambda: 'queue foreign is a stream queue: set "stream" to true' in weir.said(), "it is said", running=weir)
        assert verdicts(port) == 0 and weir.stop() == DONE, weir.said()
    with client() as one:
        until(lambda: one.count("plain") == 1, "nothing is lost")


def test_a_stream_queue_that_was_made_anew_is_not_taken_for_the_old_one(place):
    with client() as one:
        one.declare("anew", "stream")
        weir, port = start(place, [stream("anew")])
        one.publish([user(i, "ann") for i in range(4)], "anew")
        until(lambda: keys(place) == ["ann"], "ann is blocked", running=weir)
        one.delete("anew")
        until(lambda: "the queue was deleted" in weir.said() or "NOT_FOUND" in weir.said(), "it is said", running=weir)
        one.declare("anew", "stream")
        one.publish([user(i, "bob") for i in range(2)], "anew")
        until(lambda: 'raise "generation"' in weir.said(), "it is said", SERVER_S, running=weir)
        assert verdicts(port) == 4 and value(port, "weir_source_problem") == 1
        assert weir.stop() == DONE, weir.said()
        weir, port = start(place, [stream("anew", generation=2)])
        one.publish([user(i, "bob") for i in range(2, 4)], "anew")
        until(lambda: keys(place) == ["ann", "bob"], "bob is blocked", running=weir)
        assert weir.stop() == DONE, weir.said()


class Writer:
    """Publishes numbered messages until it is stopped, through whatever happens to the server; notes what was confirmed."""

    def __init__(self, port, queues):
        self._port, self._queues, self._over = port, queues, False
        self.confirmed = 0
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self):
        number = 0
        while not self._over:
            try:
                with Client(self._port, timeout_s=10) as one:
                    while not self._over:
                        for queue in self._queues:
                            one.publish([user(number + i, f"{queue}-{number + i}") for i in range(20)], queue)
                        number += 20
                        self.confirmed = number
                        time.sleep(0.005)
            except (OSError, RabbitError):
                time.sleep(0.1)

    def stop(self):
        """Ends it."""
        self._over = True
        joined(self._thread, "the writer", SERVER_S)


def test_kills_and_cuts_at_any_moment(place):
    """Each confirmed message of a quorum queue at least once; each message of a stream queue exactly once.

    A stream queue writes nothing through to its disk by itself: a kill of RabbitMQ may take the newest confirmed messages.
    What it has counts."""
    rng, server = random.Random(SEED), OWN["server"]
    with Proxy(server.port) as proxy:
        with client() as one:
            one.declare("killed-stream", "stream")
            one.declare("killed-quorum", "quorum")
        writer = Writer(server.port, ["killed-stream", "killed-quorum"])
        url = f"amqp://127.0.0.1:{proxy.port}"
        sources = [stream("killed-stream", url=url), source("killed-quorum", url=url)]
        weir, port = start(place, sources)
        for number in range(ROUNDS):
            what = ("weir", "cut", "server", "weir", "reset", "cut", "weir", "reset")[number % 8]
            time.sleep(rng.uniform(0.1, 0.8))  # a kill comes when it comes: there is nothing to wait for
            if what == "weir":
                weir.kill()
                weir, port = start(place, sources)
            elif what == "server":
                server.kill()
                server.start()
            else:
                proxy.drop(reset=what == "reset")
        writer.stop()
        confirmed = writer.confirmed
        until(lambda: value(port, "weir_source_position", source="amqp:killed-stream") > 0, "it reads", SERVER_S, running=weir)
        with client() as one:
            until(lambda: one.count("killed-quorum") == 0, "the queue is empty", SERVER_S, running=weir)
            # How many a stream has is known to RabbitMQ seconds later.
            until(lambda: 0 < one.count("killed-stream") == value(port, "weir_source_position", source="amqp:killed-stream"),
                  "it is read", SERVER_S, running=weir)
            held = one.count("killed-stream")
        until(lambda: value(port, "weir_source_lag_messages", source="amqp:killed-quorum") == 0, "no lag", SERVER_S, running=weir)
        until(lambda: value(port, "weir_collector_low_water_age_seconds") < 1, "all is sent", SERVER_S, running=weir)
        assert value(port, "weir_source_lost_messages_total") == 0
        assert weir.stop() == DONE, weir.said()
    seen = events(place)
    exact = [(name, position, key) for name, position, key in seen if key.startswith("killed-stream")]
    others = [key for _, _, key in seen if key.startswith("killed-quorum")]
    # one id of the stream through all starts, and each offset once
    assert len({name for name, _, _ in exact}) == 1
    assert sorted(position for _, position, _ in exact) == list(range(1, len(exact) + 1))
    assert len(exact) == held, (len(exact), held)
    lost = {f"killed-quorum-{number}" for number in range(confirmed)} - set(others)
    assert not lost, sorted(lost)[:5]
    print(f"seed {SEED}: {ROUNDS} rounds, {confirmed} confirmed, {len(exact)} of the stream, {len(others)} of the queue")


def said_of(place, sources, name):
    """What validate says of sources."""
    return place.good("validate", "--config", place.config(site(), sources, name=f"{name}.json")).out().decode()


def test_what_is_said_beforehand(place):
    with client() as one:
        one.declare("said", "stream")
    said = said_of(place, [stream("said", start="end")], "there")
    assert f"stream queue said at {OWN['server'].url}, json, followed; initially from the end" in said, said
    assert "cannot" not in said, said
    for more, words in (({"queue": "nowhere"}, "NOT_FOUND - no queue 'nowhere' in vhost '/'"),
                        ({"password": "wrong"}, "ACCESS_REFUSED"), ({"vhost": "none"}, "cannot log in"),
                        ({"url": f"amqp://127.0.0.1:{free_port()}"}, "cannot connect"),
                        ({"password": {"file": place.path("absent")}}, "absent")):
        said = said_of(place, [source("said", **more)], "problem")
        assert words in said, (words, said)
    for more, words in (({"url": "http://x"}, "url: must be amqp://HOST:PORT"),
                        ({"url": ["amqp://u:p@x"]}, "url[0]: must not have a login in it"),
                        ({"url": "amqp://x:99999"}, "url: must be"), ({"queue": ""}, "queue: must have 1 to"),
                        ({"start": "end"}, "start: is for stream queues"), ({"generation": 2}, "generation: is for stream"),
                        ({"url": "amqps://x"}, "ca: is missing"), ({"prefetch": 70000}, "prefetch"), ({"path": "/x"}, "path")):
        done = place.run("validate", "--config", place.config(site(), [source("said", **more)]))
        assert done.code() == USAGE and words in done.said(), (words, done.code(), done.said())
    done = place.run("validate", "--config", place.config(site(), [source("said"), source("said")]))
    assert done.code() == USAGE and 'give each its own "name"' in done.said(), done.said()


def test_tls(place):
    together([tls.making(place.path("other"))])
    with client() as one:
        one.declare("tls", "classic")
        one.publish([user(i, "ann") for i in range(4)], "tls")
    url = f"amqps://localhost:{OWN['tls']}"
    said = said_of(place, [source("tls", url=url, ca=tls.files(place.path("other"))["ca"])], "foreign")
    assert "cannot connect" in said, said
    assert "hostname" in said_of(place, [source("tls", url=url.replace("localhost", "127.0.0.1"), ca=OWN["files"]["ca"])], "host")
    weir, _ = start(place, [source("tls", url=url, ca=OWN["files"]["ca"])])
    until(lambda: keys(place) == ["ann"], "ann is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_it_ends_in_time_whatever_the_server_does(place):
    with client() as one:
        one.declare("slow", "classic")
        weir, port = start(place, [source("slow")])
        one.publish([user(0, "ann")], "slow")
        until(lambda: verdicts(port) == 1, "a verdict", running=weir)
        OWN["server"].pause()
        began = time.monotonic()
        try:
            assert weir.stop() == DONE, weir.said()
            assert time.monotonic() - began < PATIENCE_S
        finally:
            OWN["server"].resume()


def main():
    """Starts the server, and runs the tests."""
    directory = tempfile.mkdtemp(prefix="weir-rabbit-")
    try:
        where = Place(None, directory)
        together([tls.making(where.path("tls"))])
        OWN["files"], OWN["tls"] = tls.files(where.path("tls")), free_port()
        more = (f"listeners.ssl.local = 127.0.0.1:{OWN['tls']}\nssl_options.cacertfile = {OWN['files']['ca']}\n"
                f"ssl_options.certfile = {OWN['files']['cert']}\nssl_options.keyfile = {OWN['files']['key']}\n")
        with OwnRabbit(where, more) as OWN["server"]:
            cases.main(globals())
    except cases.Skipped as why:
        print(f"skipped: {why}\n0 passed, 0 failed")
        sys.exit(cases.SKIPPED)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    print(f"patience {PATIENCE_S} s", flush=True)
    main()
