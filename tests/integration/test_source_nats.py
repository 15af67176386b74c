#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `nats`: each message of a JetStream stream once, through kills of weir and of the server, and cut connections.

WEIR_ROUNDS and WEIR_SEED choose how many kills there are, and which."""

import json
import os
import random
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.following import keys, once, positions, start, user, value, verdicts
from support.nats import Client, NatsError, OwnNats
from support.place import PATIENCE_S, ROOT, SANITIZED, joined, lines_of, until
from support.proxy import Proxy
from support.traffic import FORMAT, by_bucket, crowd, fixed, site, zone

from parts import tls  # pylint: disable=wrong-import-order
from parts.process import together  # pylint: disable=wrong-import-order

DONE, USAGE = 0, 2
ROUNDS = int(os.environ.get("WEIR_ROUNDS", "5"))
SEED = int(os.environ.get("WEIR_SEED", "26"))


def source(url, /, **more):
    """The stream LOGS."""
    return {**{"type": "nats", "url": url, "stream": "LOGS", "format": FORMAT}, **more}


def until_reading(weir, port):
    """Waits until it is settled where the stream begins."""
    until(lambda: value(port, "weir_source_replayable") == 1, "it reads", running=weir)


def test_a_stream_gives_what_its_lines_give_as_a_file(place):
    lines = crowd(random.Random(SEED), 20000, 300)
    path = place.write("log", b"".join(lines))
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>"])
        assert client.publish(lines) == len(lines)
        wanted, counted = once(place, [{"type": "file", "path": path, "format": FORMAT}], "file")
        got, summary = once(place, [source(server.url)], "nats")
        assert len(wanted) > 100 and by_bucket(got) == by_bucket(wanted)
        assert (summary["lines"], summary["zones"]) == (counted["lines"], counted["zones"])
        weir, port = start(place, [source(server.url)])
        until(lambda: verdicts(port) == len(lines), "all verdicts", running=weir)
        assert value(port, "weir_source_lag_messages") == 0 and value(port, "weir_source_position") == len(lines)
        assert value(port, "weir_source_guarantee", guarantee="exactly once") == 1
        assert weir.stop() == DONE, weir.said()
    assert sorted(positions(place)) == sorted({(at[0], number + 1) for at in positions(place)[:1]
                                               for number in range(len(lines))})


def test_the_example_of_the_documentation_works(place):
    """That of collector/sources.md, with the server's own address in it."""
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        example = json.loads(file.read().partition("## NATS")[2].partition("```json")[2].partition("```")[0])
    with OwnNats(place) as server, Client(server.port) as client:
        client.add(example["stream"], ["logs.>"])
        weir, port = start(place, [{**example, "url": server.url}], zones=[zone("site", [fixed(3, "1d")], key=["ip"])])
        until_reading(weir, port)
        client.publish([b'203.0.113.9 - - [10/Oct/2024:13:55:36 +0000] "GET / HTTP/1.1" 200 7 "-" "x"'] * 4, "logs.web.nginx")
        until(lambda: keys(place) == ["203.0.113.9"], "it is blocked", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_it_goes_on_where_it_was_and_begins_where_it_is_told(place):
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>"])
        client.publish(user(i, "old") for i in range(9))
        for name in ("ann", "bob", "eve"):
            weir, port = start(place, [source(server.url, start="end")])
            until(lambda: value(port, "weir_source_position") >= 9, "it reads", running=weir)  # pylint: disable=cell-var-from-loop
            client.publish(user(i, name) for i in range(4))
            until(lambda: name in keys(place), f"{name} is blocked", running=weir)  # pylint: disable=cell-var-from-loop
            weir.kill()
            client.publish([user(9, f"{name}-again")])
        assert keys(place) == ["ann", "bob", "eve"]


def test_only_wanted_subjects_are_taken_and_gaps_are_counted(place):
    """Of a stream with others' messages; what is removed before it is read is told, to the message."""
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>", "audit"])
        weir, port = start(place, [source(server.url, subjects=["logs.*.nginx", "audit"])])
        client.publish([("logs.a.nginx", user(0, "ann")), ("logs.a.sshd", user(1, "no")), ("audit", user(2, "ann")),
                        ("logs.nginx", user(3, "no"))])
        until(lambda: verdicts(port) == 2 and value(port, "weir_source_lag_messages") == 0, "two verdicts", running=weir)
        until(lambda: value(port, "weir_collector_low_water_age_seconds") >= 0, "a page", running=weir)
        assert weir.stop() == DONE, weir.said()
        client.publish([("audit", user(i, "lost")) for i in range(7)])
        client.ask("STREAM.PURGE.LOGS", {"seq": 10})
        client.ask("STREAM.MSG.DELETE.LOGS", {"seq": 11})
        client.publish([("audit", user(i, "bob")) for i in range(4)])
        weir, port = start(place, [source(server.url, subjects=["audit", "logs.*.nginx"])])
        until(lambda: "bob" in keys(place), "bob is blocked", running=weir)
        lost = value(port, "weir_source_lost_messages_total")
        assert lost == 6, (lost, weir.said(), client.state("LOGS"))
        until(lambda: "up to 5 messages after number 4 are lost" in weir.said() or
              "1 messages after number 10 are lost" in weir.said(), "it is said", running=weir)
        assert metrics.get(port, "/readyz")[0] == 200
        assert weir.stop() == DONE, weir.said()


def test_a_stream_that_was_made_anew_is_another(place):
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>"])
        weir, port = start(place, [source(server.url, start="end")])
        until_reading(weir, port)
        client.publish(user(i, "ann") for i in range(4))
        until(lambda: keys(place) == ["ann"], "ann is blocked", running=weir)
        client.delete("LOGS")
        until(lambda: "there is no stream LOGS on the server" in weir.said(), "it is said", running=weir)
        assert value(port, "weir_source_problem") == 1
        client.add("LOGS", ["logs.>"])
        client.publish(user(i, "bob") for i in range(4))
        until(lambda: keys(place) == ["ann", "bob"], "bob is blocked", running=weir)
        assert weir.stop() == DONE, weir.said()
        assert len({name for name, _ in positions(place)}) == 2
        weir, port = start(place, [source(server.url, start="end")])
        client.publish([user(9, "bob")])
        until(lambda: verdicts(port) >= 9, "one more", running=weir)
        assert verdicts(port) == 9 and weir.stop() == DONE, weir.said()


def made_anew_at_once(place, count):
    """Of eight messages that were read; the new stream has so many."""
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>"])
        client.publish(user(i, "ann") for i in range(8))
        weir, port = start(place, [source(server.url)])
        until(lambda: verdicts(port) == 8, "all verdicts", running=weir)
        client.delete("LOGS")
        client.add("LOGS", ["logs.>"])
        client.publish(user(i, "bob") for i in range(count))
        until(lambda: verdicts(port) == 8 + count, "those of the new stream", 4 * PATIENCE_S, running=weir)
        assert value(port, "weir_source_lost_messages_total") == 0, weir.said()
        told = [said for said in weir.said().splitlines() if " ERROR " in said]
        assert all("nothing was heard of the consumer" in said for said in told), told  # on a machine that stands still for a while
        assert weir.stop() == DONE, weir.said()


def test_a_shorter_stream_that_was_made_anew_at_once_loses_nothing(place):
    made_anew_at_once(place, 3)


def test_a_longer_stream_that_was_made_anew_at_once_loses_nothing(place):
    made_anew_at_once(place, 12)


def test_a_server_that_counts_from_the_beginning_again_is_told_after_a_restart(place):
    """Its stream is the same, of the moment of before. All that is newer than what was read is not judged, and counted so."""
    with OwnNats(place) as server:
        with Client(server.port) as client:
            client.add("LOGS", ["logs.>"])
        server.stop()
        shutil.copytree(server.server.path("data"), place.path("restored"))
        server.start()
        weir, port = start(place, [source(server.url)])
        with Client(server.port) as client:
            client.publish(user(i, "ann") for i in range(8))
        until(lambda: verdicts(port) == 8, "all verdicts", running=weir)
        assert weir.stop() == DONE, weir.said()
        server.kill()
        shutil.rmtree(server.server.path("data"))
        os.rename(place.path("restored"), server.server.path("data"))
        server.start()
        with Client(server.port) as client:
            assert client.publish(user(i, "bob") for i in range(3)) == 3
        weir, port = start(place, [source(server.url)])
        until(lambda: value(port, "weir_source_lost_messages_total") == 8, "all that may be new is counted", running=weir)
        until(lambda: "up to 8 new ones are not judged" in weir.said(), "it is said", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_messages_of_any_size_and_form_are_taken_or_told(place):
    """Empty ones, bytes of any kind, several lines, 30 MB in one: with bounded memory. Of what the server itself cannot
    read, 60 MB in one, it is told. All is there before it is read: NATS 2.9 begins to count again when it is asked for
    such a message while that is the last one."""
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>"])
        large = b"x" * (30 << 20)
        client.publish([user(0, "ann"), b"", b"\r\n", b"\0\xff\n\0" * 100, b'{"time": 1700000000001,\n "user": "ann"}\n'])
        for _ in range(4):
            client.publish([large])
        client.publish([2 * large])
        assert client.publish([user(i, "ann") for i in range(2, 9)]) == 17
        weir, port = start(place, [source(server.url, line_max="4KiB")])
        until(lambda: keys(place) == ["ann"] and len(lines_of(place.path("dead"))) == 5, "ann is blocked", running=weir)
        assert value(port, "weir_source_skipped_total") == 2
        letters = lines_of(place.path("dead"))
        assert [letter["position"] for letter in letters] == [4, 6, 7, 8, 9], letters
        assert [letter["reason"] for letter in letters[1:]] == ["line too long"] * 4, letters
        if not SANITIZED:
            assert weir.peak_bytes() < 300 << 20, weir.peak_bytes()
        # NATS 2.9 may not give the one behind it either
        assert value(port, "weir_source_lost_messages_total") in (1, 2)
        until(lambda: "the server has" in weir.said(), "it is said", running=weir)
        assert weir.stop() == DONE, weir.said()


class Writer:
    """Publishes until it is stopped, through whatever happens to the server."""

    def __init__(self, port):
        self._port, self._over = port, False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self):
        number = 0
        while not self._over:
            try:
                with Client(self._port, timeout_s=5) as client:
                    while not self._over:
                        client.publish(user(number + i, f"u{(number + i) % 50}") for i in range(40))
                        number += 40
                        time.sleep(0.005)
            except (OSError, NatsError, ValueError):
                time.sleep(0.05)

    def stop(self):
        """Ends it."""
        self._over = True
        joined(self._thread, "the writer")


def test_kills_and_cuts_at_any_moment_lose_and_double_nothing(place):
    rng = random.Random(SEED)
    with OwnNats(place) as server, Proxy(server.port) as proxy:
        with Client(server.port) as client:
            client.add("LOGS", ["logs.>"])
        writer = Writer(server.port)
        sources = [source(f"nats://127.0.0.1:{proxy.port}")]
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
        with Client(server.port) as client:
            state = client.state("LOGS")
        count = state["last_seq"]
        assert state["first_seq"] == 1 and state["messages"] == count, state
        until(lambda: verdicts(port) >= count, f"{count} verdicts", running=weir)
        assert value(port, "weir_source_lost_messages_total") == 0
        assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == count, (weir.summary(), count)
    seen = positions(place)
    assert len(seen) == len(set(seen)) == count, (len(seen), len(set(seen)), count)
    assert {at for _, at in seen} == set(range(1, count + 1))
    print(f"seed {SEED}: {ROUNDS} rounds, {count} messages")


def said_of(place, sources, name):
    """What validate says of sources."""
    return place.good("validate", "--config", place.config(site(), sources, name=f"{name}.json")).out().decode()


LOGINS = """
authorization {{
  users = [
    {{ user: weir, password: secret }}
    {{ user: blind, password: secret, permissions: {{ publish: "logs.>", subscribe: "_INBOX.>" }} }}
    {{ nkey: "{nkey}" }}
  ]
}}
tls {{ cert_file: "{cert}", key_file: "{key}", timeout: 10 }}
"""


def test_logins_and_tls(place):
    together([tls.making(place.path("tls")), tls.making(place.path("other"))])
    files, others = tls.files(place.path("tls")), tls.files(place.path("other"))
    nkey, seed = nkey_pair()
    place.write("password", "secret\n")
    place.write("seed", seed + "\n")
    more = LOGINS.format(nkey=nkey, cert=files["cert"], key=files["key"])
    with OwnNats(place, more) as server:
        with Client(server.port, ca=files["ca"], user="weir", **{"pass": "secret"}) as client:
            client.add("LOGS", ["logs.>"])
            client.publish(user(i, "ann") for i in range(4))
        login = {"user": "weir", "password": {"file": place.path("password")}}
        url = f"tls://127.0.0.1:{server.port}"
        for number, more in enumerate((login, {"nkey": nkey, "seed": {"file": place.path("seed")}})):
            decisions, _ = once(place, [source(url, ca=files["ca"], **more)], f"login-{number}")
            assert [decision["key"] for decision in decisions if decision["action"] == "block"] == [["ann"]]
        for more, words in (
                ({"ca": files["ca"]}, "Authorization Violation"),
                ({"ca": files["ca"], **login, "password": "wrong"}, "Authorization Violation"),
                ({"ca": files["ca"], "token": "t"}, "Authorization Violation"),
                ({"ca": files["ca"], "user": "blind", "password": "secret"}, "the login may not read stream LOGS"),
                ({"ca": others["ca"], **login}, "certificate"),
                ({"ca": files["ca"], "user": "weir", "password": {"file": place.path("absent")}}, "absent")):
            said = said_of(place, [source(url, **more)], "refused")
            assert words in said and "secret" not in said, (words, said)
        wrong_host = f"tls://localhost.localdomain:{server.port}"
        done = place.run("run", "--once", "--config", place.config(site(), [source(wrong_host, ca=files["ca"], **login)]))
        assert done.code() == 1, (done.code(), done.said())


def nkey_pair():
    """A public key and its seed in NATS's form: base32 of prefix, key and CRC-16."""
    import base64  # pylint: disable=import-outside-toplevel
    import subprocess  # pylint: disable=import-outside-toplevel
    pem = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-outform", "DER"], capture_output=True,
                         check=True).stdout
    public = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], input=pem,
                            capture_output=True, check=True).stdout[-32:]
    private = pem[-32:]

    def coded(raw):
        crc = 0
        for byte in raw:
            crc ^= byte << 8
            for _ in range(8):
                crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
        return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")

    user_prefix, seed_prefix = 20 << 3, 18 << 3
    first = seed_prefix | user_prefix >> 5
    second = (user_prefix & 31) << 3
    return coded(bytes([user_prefix]) + public), coded(bytes([first, second]) + private)


def test_what_is_said_beforehand(place):
    with OwnNats(place) as server, Client(server.port) as client:
        said = said_of(place, [source(server.url, start="end")], "absent")
        assert f"stream LOGS at {server.url}, json, followed; initially from the end" in said, said
        assert "there is no stream LOGS on the server: add it" in said, said
        client.add("LOGS", ["logs.>"])
        assert "there is no stream" not in said_of(place, [source(server.url)], "there")
    said = said_of(place, [source(server.url)], "away")
    assert f"{server.url}: cannot connect: No server available" in said, said
    done = place.run("run", "--once", "--config", place.config(site(), [source(server.url)]))
    assert done.code() != DONE and "cannot connect" in done.said(), (done.code(), done.said())
    for more, words in (({"stream": "a.b"}, "stream: is no name of a stream"),
                        ({"url": "http://x"}, "url: must be nats://HOST:PORT"),
                        ({"url": ["nats://u:p@x:1"]}, "url[0]: must not have a login in it"),
                        ({"subjects": ["a..b"]}, "subjects[0]: is no subject"),
                        ({"user": "a", "token": "t"}, "can log in one way"),
                        ({"password": "p"}, 'needs a "user" beside it'), ({"nkey": "U"}, 'needs both "nkey"'),
                        ({"certificate": "x"}, 'needs both "certificate"'), ({"path": "/x"}, "path")):
        done = place.run("validate", "--config", place.config(site(), [source(server.url, **more)]))
        assert done.code() == USAGE and words in done.said(), (words, done.code(), done.said())
    done = place.run("validate", "--config", place.config(site(), [source(server.url), source(server.url)]))
    assert done.code() == USAGE and 'give each its own "name"' in done.said(), done.said()


def test_a_server_without_jetstream_is_told(place):
    with OwnNats(place) as server:
        server.stop()
        path = server.server.path("nats.conf")
        with open(path, encoding="utf-8") as file:
            kept = "".join(text for text in file if not text.startswith("jetstream"))
        place.write("plain.conf", kept)
        plain = place.start("-c", place.path("plain.conf"), program=server.server.command()[0])
        until(lambda: "Server is ready" in plain.said(), "it serves", running=plain)
        said = said_of(place, [source(server.url)], "plain")
        assert "nobody answers for JetStream: enable it" in said, said
        plain.kill()


def test_it_ends_in_time_whatever_the_server_does(place):
    with OwnNats(place) as server, Client(server.port) as client:
        client.add("LOGS", ["logs.>"])
        weir, port = start(place, [source(server.url)])
        client.publish([user(0, "ann")])
        until(lambda: verdicts(port) == 1, "a verdict", running=weir)
        server.pause()
        began = time.monotonic()
        assert weir.stop() == DONE, weir.said()
        assert time.monotonic() - began < PATIENCE_S
        server.resume()


if __name__ == "__main__":
    print(f"patience {PATIENCE_S} s", flush=True)
    cases.main(globals())
