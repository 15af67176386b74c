#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `forward`: what Fluentd's protocol brings is counted once, through kills, and what is wrong is said."""

import hashlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, forward, metrics, small_disk, venv
from support.place import PATIENCE_S, ROOT, free_port, joined, lines_of, until
from support.traffic import by_bucket, site, sliding, zone

DONE = 0
BEGIN_S = 1709251200
ROUNDS = int(os.environ.get("WEIR_ROUNDS", "5"))
NO_NAMESPACE = small_disk.enter_namespace()


def source_of(port, **more):
    """A source."""
    return {"type": "forward", "name": "apps", "listen": f"tcp://127.0.0.1:{port}", "format": "json", **more}


def start(place, source, state="state", zones=None, more=None):
    """A weir that listens and serves: (weir, the port of its metrics)."""
    http = free_port()
    config = place.config(zones or site(), [source], listen={"http": f"127.0.0.1:{http}"}, **(more or {}))
    weir = place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path("out"),
                       "--dead-letter", place.path("dead"), "--summary", "json")
    until(lambda: "following" in weir.said(), "it listens", running=weir)
    return weir, http


def value(http, name):
    """Of the only stream: a metric of the source, 0 where it has none yet."""
    page = metrics.scrape(http)
    return page and sum(value for (one, _), value in page.samples.items() if one == "weir_source_" + name)


def entries(user, count, at=BEGIN_S):
    """Requests of one user."""
    return [(forward.event_time(at + i / 1000), {"user": user}) for i in range(count)]


def counts(weir):
    """(passed, blocked) of a weir that has ended."""
    zone = weir.summary()["zones"]["site"]
    return zone["passed"], zone["blocked"]


def blocked(place):
    """The first key value of each decision that blocks."""
    return sorted(decision["key"][0] for decision in lines_of(place.path("out")) if decision["action"] == "block")


def test_every_mode_becomes_decisions(place):
    port = free_port()
    weir, _ = start(place, source_of(port))
    with forward.Sender(("127.0.0.1", port)) as sender:
        for mode in ("forward", "packed", "compressed"):
            sender.send_and_wait(forward.messages("app", entries(mode, 4), mode)[mode], mode)
        for i in range(4):
            at = entries("message", 4)[i:]
            sender.send_and_wait(forward.messages("app", at, f"message{i}")["message"], f"message{i}")
        sender.send(forward.pack(None))
    until(lambda: blocked(place) == ["compressed", "forward", "message", "packed"], "all are blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert counts(weir) == (12, 4), weir.said()


def test_what_comes_again_is_acknowledged_and_dropped(place):
    port = free_port()
    weir, _ = start(place, source_of(port))
    message = forward.messages("app", entries("ann", 3), "one")["packed"]
    for _ in range(3):
        with forward.Sender(("127.0.0.1", port)) as sender:
            sender.send_and_wait(message, "one")
    assert weir.stop() == DONE, weir.said()
    weir, _ = start(place, source_of(port))
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(message, "one")
        sender.send_and_wait(forward.messages("app", entries("bob", 4), "two")["packed"], "two")
    until(lambda: blocked(place) == ["bob"], "bob is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


def hashed(tag, user, at=BEGIN_S):
    """(message, chunk) of Fluent Bit, whose chunk is a hash of its records alone."""
    data = forward.packed([([forward.event_time(at), {}], {"user": user})])
    chunk = hashlib.sha512(data).hexdigest()[:32]
    return forward.pack([tag, data, {"chunk": chunk, "size": 1}]), chunk


def test_equal_records_of_other_moments_hosts_and_tags_are_no_repeats(place):
    port = free_port()
    weir, http = start(place, source_of(port))
    message, chunk = hashed("app", "ann")
    for _ in range(2):  # a connection for each
        with forward.Sender(("127.0.0.1", port)) as sender:
            sender.send_and_wait(message, chunk)
    with forward.Sender(("127.0.0.1", port)) as sender:
        for _ in range(2):  # of one connection
            sender.send_and_wait(message, chunk)
    until(lambda: blocked(place) == ["ann"], "the fourth is blocked", running=weir)
    for tag in ("one", "two", "three", "four"):
        with forward.Sender(("127.0.0.1", port)) as sender:
            sender.send_and_wait(*hashed(tag, "bob"))
    until(lambda: blocked(place) == ["ann", "bob"], "the fourth tag's is blocked", running=weir)
    assert value(http, "known_batches_total") == 0
    assert weir.stop() == DONE, weir.said()


def test_a_hash_whose_acknowledgement_did_not_arrive_comes_again(place):
    port = free_port()
    weir, http = start(place, source_of(port))
    message, chunk = hashed("app", "ann")
    for _ in range(4):
        with forward.Sender(("127.0.0.1", port)) as sender:
            sender.send(message)
            sender.wait_unread()  # and the end of this connection is a reset
    until(lambda: value(http, "known_batches_total") == 3, "three came again", running=weir)
    weir.kill()
    weir, http = start(place, source_of(port))
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(message, chunk)
    until(lambda: value(http, "known_batches_total") == 1, "it came again", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert not blocked(place)


def test_a_chunk_with_other_records_is_said(place):
    port = free_port()
    weir, http = start(place, source_of(port))
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(forward.messages("app", entries("ann", 3), "one")["packed"], "one")
        sender.send(forward.messages("app", entries("bob", 3), "one")["packed"])
        until(lambda: value(http, "push_refused_total") == 1, "it is refused", running=weir)
    until(lambda: 'its "chunk" came within the last hour with the same tag and other records' in weir.said(), "it is said",
          running=weir)
    assert weir.stop() == DONE, weir.said()


def crowd(rng, users):
    """Entries of users of whom each has 3 or 4, and those who have 4, who are to be blocked: mixed, in messages."""
    every, fours = [], set()
    for i in range(users):
        four = rng.random() < 0.5
        fours |= {f"u{i}"} if four else set()
        every += entries(f"u{i}", 4 if four else 3)
    rng.shuffle(every)
    parts = []
    while every:
        count = rng.choice([1, 2, 20, 100])
        parts.append(every[:count])
        del every[:count]
    return parts, sorted(fours)


def test_killed_at_any_moment_every_line_counts_once(place):
    seed = int(os.environ.get("WEIR_SEED", "1"))
    for number in range(ROUNDS):
        round_of(place, random.Random(f"{seed}-{number}"), f"state{number}")


def round_of(place, rng, state):
    """Four senders go on while weir is killed and started again."""
    port, until_s = free_port(), time.monotonic() + 60
    if os.path.exists(place.path("out")):
        os.remove(place.path("out"))
    parts, fours = crowd(rng, 300)
    jobs = [(f"{state}-{i}", forward.messages("app", part, f"{state}-{i}")) for i, part in enumerate(parts)]
    modes = [rng.choice(["forward", "packed", "compressed"] + ["message"] * (len(part) == 1)) for part in parts]
    failed, mutex, todo = [], threading.Lock(), list(zip(jobs, modes))

    def send():
        try:
            while True:
                with mutex:
                    if not todo:
                        return
                    (chunk, message), mode = todo.pop()
                forward.send_until_acknowledged(("127.0.0.1", port), message[mode], chunk, until_s)
                if rng.random() < 0.1:  # as a sender whom the acknowledgement did not reach
                    forward.send_until_acknowledged(("127.0.0.1", port), message[mode], chunk, until_s)
        except Exception as why:  # pylint: disable=broad-exception-caught
            failed.append(why)
    senders = [threading.Thread(target=send) for _ in range(4)]
    weir, _ = start(place, source_of(port), state)
    for sender in senders:
        sender.start()
    for _ in range(rng.randrange(1, 4)):
        time.sleep(rng.uniform(0, 0.4))
        weir.kill()
        weir, _ = start(place, source_of(port), state)
    for sender in senders:
        sender.join(60)
    assert not failed, failed
    until(lambda: len(blocked(place)) >= len(fours), "all are blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert blocked(place) == fours, (set(blocked(place)) ^ set(fours))


def test_without_a_chunk_nothing_is_acknowledged_and_it_is_said(place):
    port = free_port()
    weir, http = start(place, source_of(port))
    assert guarantee(http) == "exactly once"
    with forward.Sender(("127.0.0.1", port)) as sender:
        for at in entries("ann", 3):
            sender.send(forward.messages("app", [at])["message"])
        sender.send(forward.messages("app", entries("ann", 1))["packed"])
    until(lambda: blocked(place) == ["ann"], "ann is blocked", running=weir)
    assert value(http, "forward_unacknowledged_total") == 4
    assert guarantee(http) == "at most once"
    assert weir.stop() == DONE, weir.said()


def guarantee(http):
    """That of the only stream."""
    page = until(lambda: metrics.scrape(http), "the page")
    return next(dict(labels)["guarantee"] for (name, labels), _ in page.samples.items() if name == "weir_source_guarantee")


def test_who_does_not_know_the_key_is_refused(place):
    port = free_port()
    weir, http = start(place, source_of(port, shared_key="a secret", user="ann", password="pass word"))
    message = forward.messages("app", entries("ann", 4), "one")["packed"]
    for key, user, password, why in (("wrong", "ann", "pass word", b"shared_key mismatch"),
                                     ("a secret", "bob", "pass word", b"username/password mismatch"),
                                     ("a secret", "ann", "wrong", b"username/password mismatch")):
        with forward.Sender(("127.0.0.1", port)) as sender:
            pong = sender.greet(key, user, password)
            assert pong[:3] == [b"PONG", False, why], pong
            assert sender.socket.recv(1) == b""
    with forward.Sender(("127.0.0.1", port)) as sender:
        assert sender.answer()[0] == b"HELO"
        sender.send(message)
        assert sender.socket.recv(1) == b""
    until(lambda: value(http, "push_refused_total") == 4, "they are counted", running=weir)
    assert blocked(place) == []
    with forward.Sender(("127.0.0.1", port)) as sender:
        pong = sender.greet("a secret", "ann", "pass word")
        assert pong[1], pong
        sender.send_and_wait(message, "one")
    until(lambda: blocked(place) == ["ann"], "ann is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert "a secret" not in weir.said() and "pass word" not in weir.said()


def test_tls_with_a_certificate_that_is_renewed(place):
    port = free_port()
    pair = certificate(place, "one")
    weir, _ = start(place, source_of(port, tls={"certificate": pair[0], "key": pair[1]}))
    message = forward.messages("app", [(BEGIN_S, {"user": "ann", "more": "x" * 200000})] * 2, "one")["packed"]
    kept = forward.Sender(("127.0.0.1", port), tls=pair[0])
    kept.send_and_wait(message, "one")
    with forward.Sender(("127.0.0.1", port)) as plain:
        plain.send(message)
        try:
            assert plain.socket.recv(1) in (b"", b"\x15")  # an alert of TLS
        except ConnectionError:
            pass
    newer = certificate(place, "two")
    for old, new in zip(pair, newer):
        os.replace(new, old)

    def is_served():
        try:
            with forward.Sender(("127.0.0.1", port), tls=pair[0]) as sender:
                sender.send_and_wait(forward.messages("app", entries("ann", 1), "two")["forward"], "two")
                return True
        except (OSError, EOFError):
            return False
    until(is_served, "the newer certificate is served", running=weir)
    kept.send_and_wait(forward.messages("app", entries("ann", 1), "three")["forward"], "three")
    until(lambda: blocked(place) == ["ann"], "ann is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


def certificate(place, name):
    """A certificate that signs itself: its path and its key's."""
    paths = place.path(f"{name}.crt"), place.path(f"{name}.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                    f"/CN={name}", "-addext", "subjectAltName=DNS:localhost", "-out", paths[0], "-keyout", paths[1], "-days",
                    "3"], check=True, capture_output=True, timeout=PATIENCE_S)
    return paths


def test_a_unix_socket_and_tags(place):
    path = place.path("forward.sock")
    source = {**source_of(1), "listen": "unix://" + path, "tags": ["shop.*", "exact"]}
    for round_number in range(2):  # the second finds the socket of the first, which was killed
        weir, http = start(place, source)
        with forward.Sender(path) as sender:
            for tag in ("shop.web", "exact", "exactly", "other"):
                chunk = f"{tag}{round_number}"
                sender.send_and_wait(forward.messages(tag, entries(tag, 2), chunk)["packed"], chunk)
        assert value(http, "forward_skipped_total") == 2
        if round_number == 0:
            weir.kill()
    until(lambda: blocked(place) == ["exact", "shop.web"], "both are blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_heartbeats_by_udp_and_by_connections(place):
    port = free_port()
    weir, http = start(place, source_of(port))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beat:
        beat.settimeout(PATIENCE_S)
        beat.sendto(b"\0", ("127.0.0.1", port))
        assert beat.recv(10) == b"\0"
    for _ in range(3):
        forward.Sender(("127.0.0.1", port)).socket.close()
    assert value(http, "push_refused_total") == 0
    assert weir.stop() == DONE, weir.said()


def test_what_cannot_be_read_is_refused_and_nothing_else_is_lost(place):
    port = free_port()
    weir, http = start(place, source_of(port, max_message="64KiB"))
    good = forward.messages("app", entries("ann", 1), "good")["packed"]
    deep = b"\x91" * 10000
    bomb = zlib.compress(b"\x92\x00\x80" * 1000000, 9, 31)
    records = b"".join(forward.pack([BEGIN_S + i, {"user": "bob"}]) for i in range(4))
    bad = {"endless map": b"\x93\xa1t\x00\xdf\xff\xff\xff\xff", "long string": b"\x93\xdb\x7f\xff\xff\xff", "deep": deep,
           "no type": b"\xc1", "no array": forward.pack({"a": 1}), "http": b"GET / HTTP/1.1\r\n\r\n",
           "no tag": forward.pack([1, 2]),
           "compressed": forward.pack(["t", b"x", {"compressed": "lz4", "chunk": "x"}]),
           "damaged": forward.pack(["t", zlib.compress(records, 9, 31)[:-9], {"compressed": "gzip", "chunk": "x"}]),
           "no entries": forward.pack(["t", records[:-1], {"chunk": "x"}]),
           "bomb": forward.pack(["t", bomb, {"compressed": "gzip", "chunk": "bomb"}])}
    for i, (name, data) in enumerate(bad.items()):
        with forward.Sender(("127.0.0.1", port)) as sender:
            chunk = f"good{i}"
            sender.send_and_wait(forward.messages("app", entries(name, 4), chunk)["packed"], chunk)
            sender.send(data)
            try:
                assert sender.socket.recv(1) == b"", name
            except ConnectionError:
                pass
        until(lambda i=i: value(http, "push_refused_total") == i + 1, f"{name} is counted", running=weir)
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(good, "good")
    until(lambda: len(blocked(place)) == len(bad), "all that was good before is counted", running=weir)
    page = metrics.scrape(http)
    assert page is not None and weir.peak_bytes() < 400 << 20, weir.peak_bytes()
    assert weir.stop() == DONE, weir.said()
    assert blocked(place) == sorted(bad), weir.said()


def test_a_thousand_connections_that_say_nothing(place):
    port = free_port()
    weir, http = start(place, source_of(port, connections=1000))
    silent = [forward.Sender(("127.0.0.1", port)) for _ in range(1000)]
    halves = silent[:300]
    for sender in halves:
        sender.send(b"\x93\xa1t\xc6\x00\x10\x00\x00" + b"x" * 50000)  # a message that does not end
    time.sleep(1.1)  # so long nobody is taken for silent
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(forward.messages("app", entries("ann", 4), "one")["packed"], "one")
    until(lambda: blocked(place) == ["ann"], "ann is blocked", running=weir)
    until(lambda: "1000 connections are open" in weir.said(), "it is said", running=weir)
    assert weir.peak_bytes() < 400 << 20, weir.peak_bytes()
    for sender in silent:
        sender.socket.close()
    assert weir.stop() == DONE, weir.said()


def test_a_full_spool_lets_senders_wait(place):
    if NO_NAMESPACE:
        raise cases.Skipped(NO_NAMESPACE)
    with small_disk.SmallDisk(place.path("state", "log"), 32 << 20) as disk:
        fill_the_spool(place, disk)


def fill_the_spool(place, disk):
    """Four senders send more than a spool takes, while nothing that is read from it is acknowledged."""
    port = free_port()
    weir, http = start(place, source_of(port, spool="16MiB"))
    with forward.Sender(("127.0.0.1", port)) as sender:
        sender.send_and_wait(forward.messages("app", entries("ann", 4), "first")["packed"], "first")
    until(lambda: blocked(place) == ["ann"], "ann is blocked", running=weir)
    disk.fill()  # what is read is not acknowledged any more, so it stays in the spool
    big = [(BEGIN_S, {"user": "bob", "more": "x" * 60000})] * 40
    sent, failed = [], []

    def send(number):
        try:
            for i in range(3):
                chunk = f"{number}-{i}"
                forward.send_until_acknowledged(("127.0.0.1", port), forward.messages("app", big, chunk)["packed"], chunk,
                                                time.monotonic() + 2 * PATIENCE_S)
                sent.append(chunk)
        except Exception as why:  # pylint: disable=broad-exception-caught
            failed.append(why)
    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for sender in senders:
        sender.start()
    until(lambda: value(http, "pushed_back_total"), "the spool is full", running=weir)
    until(lambda: "senders are told to wait" in weir.said(), "the log says it", running=weir)
    assert len(sent) < 12
    disk.drain()
    for sender in senders:
        joined(sender, "a sender", 2 * PATIENCE_S)
    assert not failed and len(sent) == 12, failed
    assert value(http, "lost_messages_total") == 0
    until(lambda: value(http, "lines_total") == 4 + 12 * 40, "all are read", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert sum(counts(weir)) == 4 + 12 * 40, weir.said()


def test_what_is_wrong_is_said_before_a_start(place):
    key = place.path("key")
    config = place.config(site(), [source_of(1, shared_key={"file": key})])
    assert f"cannot open {key}" in place.good("validate", "--config", config).out().decode()
    doctor = place.run("doctor", "--config", config)
    assert f"cannot open {key}" in doctor.out().decode() + doctor.said(), doctor.said()
    place.write("key", "secret\n")
    assert "cannot open" not in place.good("validate", "--config", config).out().decode()
    for wrong, words in (({"name": "a/b"}, "use letters, digits"), ({"listen": "udp://127.0.0.1:1"}, "tcp://127.0.0.1:24224"),
                         ({"listen": "unix://x"}, "give a whole path"), ({"user": "ann"}, "give both"),
                         ({"user": "ann", "password": "x"}, 'needs a "shared_key"'), ({"follow": False}, "has no end"),
                         ({"tls": {"certificate": "x"}}, "give the path of the certificate's key"),
                         ({"spool": "1MiB"}, "16MiB"), ({"tags": []}, "tags")):
        refused = place.run("validate", "--config", place.config(site(), [source_of(1, **wrong)]))
        assert refused.code() == 2 and words in refused.said() + refused.out().decode(), (wrong, refused.said())
    twice = place.run("validate", "--config", place.config(site(), [source_of(1), source_of(2)]))
    assert twice.code() == 2 and "is that of another forward source" in twice.said(), twice.said()


def example():
    """The source in the documentation."""
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        section = file.read().split("\n## Forward\n")[1].split("\n## ")[0]
    return json.loads(re.search(r"```json\n(.*?)```", section, re.DOTALL)[1])


def test_the_example_of_the_documentation_takes_what_docker_sends(place):
    port = free_port()
    source = {**example(), "listen": f"tcp://127.0.0.1:{port}"}
    weir, _ = start(place, source, zones=[zone("site", [sliding(3, "1m")], key=["ip"])])
    log = '203.0.113.9 - - [01/Mar/2024:00:00:00 +0000] "GET / HTTP/1.1" 200 2 "-" "x"'
    with forward.Sender(("127.0.0.1", port)) as sender:
        for i in range(4):
            record = {"container_id": "1f0c", "container_name": "/web", "source": "stdout", "log": log}
            sender.send(forward.pack(["docker.web", forward.event_time(BEGIN_S + i), record, {"chunk": f"c{i}"}]))
            assert sender.answer() == {b"ack": f"c{i}".encode()}
    until(lambda: blocked(place) == ["203.0.113.9"], "the client is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_the_same_lines_as_a_file_give_the_same_decisions(place):
    rng = random.Random(4)
    users = ["ann", "bob", "a\"b\\c", "ü\u2028", "x\u0000y", *(f"u{i}" for i in range(300))]
    every = [(BEGIN_S + i // 100, {"user": rng.choice(users), "path": "/" + "p" * rng.randrange(50)}) for i in range(20000)]
    port = free_port()
    zones = [zone("site", [sliding(10, "1m")]), zone("few", [sliding(3, "1s")], key=["tag", "user"])]
    weir, _ = start(place, source_of(port), zones=zones)
    with forward.Sender(("127.0.0.1", port)) as sender:
        for i in range(0, len(every), 500):
            mode = rng.choice(["forward", "packed", "compressed"])
            sender.send_and_wait(forward.messages("app", every[i:i + 500], str(i))[mode], str(i))
    log = place.write("log", "".join(json.dumps({"time": at, "tag": "app", **record}) + "\n" for at, record in every))
    file = {"type": "file", "path": log, "format": "json"}
    place.good("run", "--config", place.config(zones, [file], name="file.json"), "--once", "--decisions", place.path("same"))
    wanted = lines_of(place.path("same"))
    until(lambda: len(lines_of(place.path("out"))) >= len(wanted), "the same decisions", running=weir)
    assert weir.stop() == DONE, weir.said()
    seen, wanted = by_bucket(lines_of(place.path("out"))), by_bucket(wanted)
    assert seen == wanted, [(key, seen.get(key), wanted.get(key)) for key in seen.keys() | wanted.keys()
                            if seen.get(key) != wanted.get(key)][:3]
    assert len(wanted) > 100


def test_what_a_real_logger_sends(place):
    """The logger of PyPI: one message a line, without a chunk."""
    python = venv.made()
    port = free_port()
    weir, _ = start(place, source_of(port))
    script = ("import sys, fluent.sender as f\n"
              "s = f.FluentSender('app', host='127.0.0.1', port=int(sys.argv[1]), nanosecond_precision=True)\n"
              "assert all(s.emit_with_time('web', 1709251200 + i / 10, {'user': 'ann', 'n': i}) for i in range(4))\n"
              "s.close()\n")
    subprocess.run([python, "-c", script, str(port)], check=True, timeout=PATIENCE_S)
    until(lambda: blocked(place) == ["ann"], "ann is blocked", running=weir)
    assert weir.stop() == DONE, weir.said()


if __name__ == "__main__":
    cases.main(globals())
