#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `http`: what is answered is judged, once where it has an id, whoever is killed; what is refused says why."""

import gzip
import http.client
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, journal, small_disk
from support.gateways import program
from support.place import PATIENCE_S, ROOT, free_port, lines_of, until
from support.pushing import FORMAT, TOKEN, Receiver, Sender, firehose, http_source, lines
from support.traffic import crowd, sliding, zone

DONE, USAGE = 0, 2
ROUNDS = int(os.environ.get("WEIR_ROUNDS", "5"))
SEED = int(os.environ.get("WEIR_SEED", "26"))
MIB = 1 << 20
NO_NAMESPACE = small_disk.enter_namespace()


def certificate(place, name):
    """A certificate that signs itself: its path and its key's."""
    paths = place.path(f"{name}.crt"), place.path(f"{name}.key")
    subprocess.run([program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1],
                    "-days", "3"], check=True, capture_output=True)
    return paths


def judged(receiver, count):
    """Waits until so many lines were read."""
    until(lambda: receiver.value("weir_source_lines_total") == count, f"{count} lines", running=receiver.weir)


def test_pushed_lines_are_judged_as_those_of_a_file(place):
    zones = [zone("site", [sliding(5, "1m")]), zone("path", [sliding(30, "10m")], key=["user", "path"])]
    log = crowd(random.Random(SEED), 20000, 300, disorder=0)
    log_file = {"type": "file", "path": place.write("log", b"".join(log)), "format": FORMAT}
    config = place.config(zones, [log_file], name="file.json")
    place.good("run", "--once", "--config", config, "--decisions", place.path("expected"))
    receiver = Receiver(place, zones)
    weir = receiver.start()
    for i in range(0, len(log), 1000):
        assert json.loads(receiver.post(b"".join(log[i:i + 1000]))) == {"lines": 1000}
    judged(receiver, len(log))
    assert weir.stop() == DONE, weir.said()

    def decisions(path):
        kept = [{name: value for name, value in decision.items() if name not in ("id", "policy")}
                for decision in lines_of(place.path(path))]
        return sorted(map(json.dumps, kept))
    assert len(decisions("expected")) > 100
    assert decisions("out") == decisions("expected")


def test_what_is_refused_says_why(place):
    receiver = Receiver(place, max_body="64KiB")
    weir = receiver.start()
    body = lines(["ann"])
    assert receiver.ask("POST", "/ingest", body, token=None)[0] == 401
    status, said, _ = receiver.ask("POST", "/ingest", body, token="wrong")
    assert status == 401 and "token is wrong" in said and "wrong" not in said.replace("is wrong", ""), said
    assert receiver.ask("POST", "/other", body)[0] == 404
    status, said, fields = receiver.ask("GET", "/ingest")
    assert status == 405 and "POST" in said, (status, said)
    assert receiver.ask("DELETE", "/ingest")[0] == 405
    status, said, _ = receiver.ask("POST", "/ingest", body, Content_Encoding="br")
    assert status == 415 and "gzip, zstd" in said, said
    status, said, _ = receiver.ask("POST", "/v1/logs", body, Content_Type="application/x-protobuf")
    assert status == 415 and "protobuf" in said, said
    status, said, _ = receiver.ask("POST", "/ingest", gzip.compress(body)[:-4], Content_Encoding="gzip")
    assert status == 400 and "too early" in said, said
    status, said, _ = receiver.ask("POST", "/v1/logs", "{")
    assert status == 400 and "no JSON" in said, said
    assert receiver.ask("POST", "/ingest", b"x" * 70000)[0] == 413
    status, said, _ = receiver.ask("POST", "/ingest", (b"x" * 1000 for _ in range(70)))
    assert status == 413 and "smaller" in said, said
    bomb = gzip.compress(b"\n" * (64 * MIB))
    assert len(bomb) < 70000
    status, said, _ = receiver.ask("POST", "/ingest", bomb[:65000], Content_Encoding="gzip")
    assert status == 413 and "unpacks to more" in said, said
    # So much in each line: 300 MB.
    around = {"resource": {"attributes": [{"key": "x" * 30000, "value": {}}]}, "scopeLogs": [{"logRecords": [{}] * 8000}]}
    status, said, _ = receiver.ask("POST", "/v1/logs", gzip.compress(json.dumps({"resourceLogs": [around]}).encode()),
                                   Content_Encoding="gzip")
    assert status == 413 and "send fewer events" in said, said
    assert receiver.value("weir_source_push_refused_total") >= 10
    # A bad line is the dead letter's.
    assert json.loads(receiver.post(b"no json\n" + body)) == {"lines": 2}
    until(lambda: len(lines_of(place.path("dead"))) == 1, "the dead letter", running=weir)
    assert weir.peak_bytes() < 400 * MIB
    assert TOKEN not in weir.said()
    assert weir.stop() == DONE, weir.said()


def test_a_target_may_be_an_address(place):
    """As a shipper sends it that goes by way of a proxy."""
    receiver = Receiver(place, [zone("site", [sliding(5, "1m")])])
    weir = receiver.start()
    for target, status in (("http://logs.example:80/ingest", 200), ("HTTP://logs.example/ingest?x=y", 200), ("http://logs.example/v1/logs", 400),
                           ("http://logs.example", 405), ("http://logs.example/none", 404), ("http:///ingest", 400)):
        sender = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=PATIENCE_S)
        sender.request("POST", target, body=lines(["ann", "bob", "cid"]), headers={"Authorization": f"Bearer {TOKEN}", "Host": "x"})
        assert sender.getresponse().status == status, target
        sender.close()
    judged(receiver, 6)
    assert weir.stop() == DONE, weir.said()


def test_a_batch_with_an_id_counts_once(place):
    receiver = Receiver(place)
    weir = receiver.start()
    assert "again" not in receiver.post(lines(["ann"], 1), Idempotency_Key="one")
    assert receiver.value("weir_source_guarantee", guarantee="exactly once") == 1
    assert "again" in receiver.post(lines(["ann"], 1), Idempotency_Key="one")
    status, said, _ = receiver.ask("POST", "/ingest", lines(["bob"], 1), Idempotency_Key="one")
    assert status == 422 and "an id of its own" in said, said
    for _ in range(2):
        body, fields = firehose([lines(["eve"], 1)], "r-1")
        answer = json.loads(receiver.post(body, **fields))
        assert answer["requestId"] == "r-1" and answer["timestamp"] > 0 and "errorMessage" not in answer, answer
    body, fields = firehose([b""], "r-2")
    status, said, _ = receiver.ask("POST", "/ingest", body.replace('""', '"*"'), **fields)
    assert status == 400 and "base64" in json.loads(said)["errorMessage"], said
    assert receiver.value("weir_source_known_batches_total") == 2
    weir.kill()
    weir = receiver.start()
    assert "again" in receiver.post(lines(["ann"], 1), Idempotency_Key="one")
    receiver.post(lines(["zed", "zed"]))
    until(lambda: receiver.blocked() == ["zed"], "the last one is judged", running=weir)
    assert receiver.value("weir_source_guarantee", guarantee="at least once") == 1
    assert weir.stop() == DONE, weir.said()


def test_what_shippers_send(place):
    zones = [zone("site", [sliding(1, "1d")], key=["message"])]
    receiver = Receiver(place, zones, format={"type": "json", "fields": {"message": "message"}, "unit": "ms"})
    weir = receiver.start()
    now_ms = int(time.time() * 1000)
    otlp = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"timeUnixNano": f"{now_ms}000000", "body": {"stringValue": "otlp"}}] * 2}]}]})
    assert receiver.post(otlp, "/v1/logs", Content_Type="application/json") == "{}"
    loki = json.dumps({"streams": [{"stream": {}, "values": [[f"{now_ms}000000", "loki"]] * 2}]})
    assert receiver.post(loki, "/loki/api/v1/push", Content_Type="application/json") == ""
    event = json.dumps({"time": now_ms, "message": "hec", "event": "x"})
    said = receiver.post(event + event, "/services/collector/event", token=None, Authorization=f"Splunk {TOKEN}",
                         X_Splunk_Request_Channel="c")
    assert json.loads(said) == {"text": "Success", "code": 0, "ackId": 0}
    assert json.loads(receiver.post('{"acks": [0, 12]}', "/services/collector/ack")) == {"acks": {"0": True, "12": True}}
    assert json.loads(receiver.ask("POST", "/services/collector/event", event, token=None)[1])["code"] == 4
    assert receiver.ask("GET", "/services/collector/health")[0] == 200
    document = json.dumps({"time": now_ms, "message": "bulk"})
    bulk = f'{{"create":{{"_index":"logs"}}}}\n{document}\n{{"index":{{}}}}\n{document}\n{{"delete":{{"_id":"1"}}}}\n'
    answer = json.loads(receiver.post(bulk, "/logs/_bulk", Content_Type="application/x-ndjson"))
    assert answer["errors"] and [list(item.values())[0]["status"] for item in answer["items"]] == [201, 201, 400], answer
    status, said, fields = receiver.ask("GET", "/")
    assert status == 200 and json.loads(said)["version"]["number"] and fields["X-Elastic-Product"] == "Elasticsearch"
    assert receiver.ask("HEAD", "/")[0] == 200
    array = json.dumps([{"time": now_ms, "message": "array"}] * 2, indent=2)
    assert json.loads(receiver.post(array, Content_Type="application/json")) == {"lines": 2}
    until(lambda: receiver.blocked() == ["array", "bulk", "hec", "loki", "otlp"], "all are judged", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_times_of_collectors_need_no_unit(place):
    """They are read whatever the format says of the unit, as some say ms for what they push themselves."""
    now_ms = int(time.time() * 1000)
    zones = [zone("site", [sliding(1, "1d")], key=["message"])]
    expected = set()
    for unit in ({}, {"unit": "ms"}, {"unit": "s"}):
        receiver = Receiver(place, zones, format={"type": "json", "fields": {"message": "message"}, **unit})
        weir = receiver.start()
        names = [f"{path}{unit.get('unit', '')}" for path in ("otlp", "loki")]
        otlp = {"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"timeUnixNano": f"{now_ms}123456", "body": {"stringValue": names[0]}}] * 2}]}]}
        receiver.post(json.dumps(otlp), "/v1/logs", Content_Type="application/json")
        loki = {"streams": [{"stream": {}, "values": [[f"{now_ms}123456", names[1]]] * 2}]}
        receiver.post(json.dumps(loki), "/loki/api/v1/push", Content_Type="application/json")
        expected.update(names)
        until(lambda r=receiver: set(r.blocked()) == expected, f"{names} are judged", running=weir)
        assert weir.stop() == DONE, weir.said()
    assert {decision["at"] for decision in lines_of(place.path("out"))} == {now_ms}


def test_the_journal_is_uploaded_by_its_own_program(place):
    program = "/lib/systemd/systemd-journal-upload"
    if not journal.available() or not os.access(program, os.X_OK):
        raise cases.Skipped("systemd-journal-upload is not installed (deploy/packages tests)")
    count = 5000
    entries = [journal.entry(i, f"m{i}" + ("\nsecond line" if i % 7 == 0 else "")) for i in range(count)]
    journal.write_whole(place.path("journal", "system.journal"), entries)
    zones = [zone("site", [sliding(1, "1d")], key=["MESSAGE"])]
    receiver = Receiver(place, zones, format={"type": "journal"}, token=None)
    weir = receiver.start()
    upload = [program, "-u", f"http://127.0.0.1:{receiver.port}", "-D", place.path("journal"),
              f"--save-state={place.path('cursor')}", "--follow=no"]
    subprocess.run(upload, check=True, capture_output=True, timeout=2 * PATIENCE_S)
    judged(receiver, count)
    os.unlink(place.path("cursor"))
    subprocess.run(upload, check=True, capture_output=True, timeout=2 * PATIENCE_S)
    judged(receiver, 2 * count)
    until(lambda: len(receiver.blocked()) == count, "each came", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_the_answer_to_a_journal_that_is_cut_says_what_was_taken(place):
    """It is stored in pieces: all of it sent again would count twice."""
    count = 6000
    body = b"".join(journal.entry(i, f"m{i}") for i in range(count))
    receiver = Receiver(place, [zone("site", [sliding(1, "1d")], key=["MESSAGE"])], format={"type": "journal"})
    weir = receiver.start()
    status, said, _ = receiver.ask("POST", "/upload", body[:-7])
    found = re.search(r"ends within an entry, behind byte (\d+) \(behind the body's first (\d+) bytes, which were taken: "
                      r"send only what follows them again\)", said)
    assert status == 400 and found, (status, said)
    taken = int(found[2])
    assert body[:taken].endswith(b"\n\n") and taken + int(found[1]) < len(body), (said, len(body))
    receiver.post(body[taken:], "/upload")
    judged(receiver, count)
    assert not receiver.blocked(), "none came twice"
    receiver.post(body, "/upload")
    until(lambda: len(receiver.blocked()) == count, "each came", running=weir)
    status, said, _ = receiver.ask("POST", "/upload", body[:5])
    assert status == 400 and "were taken" not in said, (status, said)
    assert weir.stop() == DONE, weir.said()


def all_came(receiver, users):
    """Sends each user once more: who came before is now blocked; so nobody may have been lost."""
    for i in range(0, len(users), 1000):
        receiver.post(lines(users[i:i + 1000]))
    until(lambda: set(receiver.blocked()) >= set(users), "each came once before", running=receiver.weir)


def test_a_kill_at_any_moment_loses_nothing_and_counts_nothing_twice(place):
    rng = random.Random(SEED)
    receiver = Receiver(place)
    receiver.start()
    senders = [Sender(receiver, f"s{i}") for i in range(4)]
    for sender in senders:
        sender.start()
    for _ in range(ROUNDS):
        time.sleep(0.1 + rng.random() * 0.6)
        receiver.weir.kill()
        time.sleep(rng.random() * 0.05)
        receiver.start()
    users = [user for sender in senders for user in sender.end()]
    again = sum(sender.again for sender in senders)
    time.sleep(0.2)
    assert not receiver.blocked(), f"counted twice, seed {SEED}: {receiver.blocked()[:5]}"
    all_came(receiver, users)
    assert len(receiver.blocked()) == len(users), f"seed {SEED}"
    print(f"{len(users)} lines, sent again {again} times, seed {SEED}")
    assert receiver.weir.stop() == DONE, receiver.weir.said()


def test_without_ids_nothing_is_lost(place):
    rng = random.Random(SEED)
    receiver = Receiver(place)
    receiver.start()
    sender = Sender(receiver, "plain", with_ids=False)
    sender.start()
    for _ in range(max(1, ROUNDS // 2)):
        time.sleep(0.1 + rng.random() * 0.4)
        receiver.weir.kill()
        receiver.start()
    users = sender.end()
    all_came(receiver, users)
    assert receiver.weir.stop() == DONE, receiver.weir.said()


def test_a_stop_while_senders_go_on_is_short_and_loses_nothing(place):
    receiver = Receiver(place)
    weir = receiver.start()
    senders = [Sender(receiver, f"s{i}") for i in range(8)]
    for sender in senders:
        sender.start()
    # One whose body never ends must not hold it up.
    endless = socket.create_connection(("127.0.0.1", receiver.port))
    endless.sendall(f"POST /ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n5\r\n{}\n{}\r\n".encode())
    time.sleep(0.5)
    began = time.monotonic()
    assert weir.stop() == DONE, weir.said()
    took_s = time.monotonic() - began
    assert took_s < PATIENCE_S / 2, took_s
    endless.close()
    receiver.start()
    users = [user for sender in senders for user in sender.end()]
    all_came(receiver, users)
    assert len(receiver.blocked()) == len(users)
    assert receiver.weir.stop() == DONE, receiver.weir.said()


def test_a_spool_that_no_source_has_any_more_is_said_and_kept(place):
    receiver = Receiver(place)
    weir = receiver.start()
    receiver.post(lines(["ann"]))
    judged(receiver, 1)
    assert weir.stop() == DONE, weir.said()
    spool = place.path("state", "spool-edge")
    receiver.config = place.config(receiver.zones, [http_source(place, receiver.port, name="other")],
                                   listen={"http": f"127.0.0.1:{receiver.pages}"})
    weir = receiver.start()
    words = f'{spool} is the spool of a source "edge" that is not configured: it holds 0 requests with 0 lines'
    assert words in weir.said(), weir.said()
    said = place.run("doctor", "--config", receiver.config, "--state", place.path("state")).out().decode()
    assert words in said and f"rm -r {spool}" in said and os.path.isdir(spool), said
    assert weir.stop() == DONE, weir.said()


def test_a_body_of_many_lines_is_stored_in_parts_under_its_id(place):
    receiver = Receiver(place, spool="256MiB", max_body="64MiB")
    weir = receiver.start()
    body = b"".join(lines([f"u{i}"], 1).rstrip(b"\n") + b" " * 1000 + b"\n" for i in range(40000))
    assert len(body) > 32 * MIB
    status, said, _ = receiver.ask("POST", "/ingest", body)
    assert status == 413 and "give each an id of its own, such as an Idempotency-Key" in said, (status, said)
    for answer in ({"lines": 40000}, {"lines": 40000, "again": True}):
        assert json.loads(receiver.post(body, Idempotency_Key="large")) == answer
    assert receiver.ask("POST", "/ingest", body.replace(b"u39999", b"other "), Idempotency_Key="large")[0] == 422
    judged(receiver, 40000)
    assert weir.stop() == DONE, weir.said()
    assert weir.summary()["zones"]["site"]["matched"] == 40000


def test_a_full_spool_makes_senders_wait(place):
    if NO_NAMESPACE:
        raise cases.Skipped(NO_NAMESPACE)
    with small_disk.SmallDisk(place.path("state", "log"), 32 * MIB) as disk:
        receiver = Receiver(place, spool="1MiB", max_body="200KiB")
        weir = receiver.start()
        receiver.post(lines(["ann"]))
        judged(receiver, 1)
        disk.fill()  # what is read is not acknowledged any more, so it stays in the spool
        filler = (b'{"time":1,"user":"x"}' + b" " * 1000 + b"\n") * 100
        taken, status = 0, 200
        while status == 200 and taken < 100:
            status, said, fields = receiver.ask("POST", "/ingest", filler)
            taken += status == 200
        assert status == 503 and "spool is full" in said and int(fields["Retry-After"]) >= 1, (status, said)
        until(lambda: "senders are told to wait" in weir.said(), "the log says it", running=weir)
        assert receiver.value("weir_source_pushed_back_total") >= 1 and receiver.value("weir_source_senders_wait_seconds") > 0
        disk.drain()
        until(lambda: receiver.ask("POST", "/ingest", filler)[0] == 200, "there is room again", running=weir)
        judged(receiver, 1 + 100 * (taken + 1))
        assert weir.stop() == DONE, weir.said()


def test_a_full_disk_makes_senders_wait(place):
    if NO_NAMESPACE:
        raise cases.Skipped(NO_NAMESPACE)
    with small_disk.SmallDisk(place.path("state", "spool-edge"), 8 * MIB) as disk:
        receiver = Receiver(place, spool="16MiB", max_body="1MiB")
        weir = receiver.start()
        receiver.post(lines(["ann"]), Idempotency_Key="1")
        disk.fill()
        batch = lines([f"u{i}" for i in range(2000)])
        status, number = 200, 0
        while status == 200 and number < 200:
            number += 1
            status, said, _ = receiver.ask("POST", "/ingest", batch, Idempotency_Key=f"b{number}")
        assert status == 503, (status, said)
        disk.drain()
        until(lambda: receiver.ask("POST", "/ingest", batch, Idempotency_Key=f"b{number}")[0] == 200, "room again",
              running=weir)
        receiver.post(lines(["bob", "bob"]))
        until(lambda: "bob" in receiver.blocked(), "it goes on", running=weir)
        assert weir.stop() == DONE, weir.said()


def test_many_connections_keep_nobody_out(place):
    receiver = Receiver(place, connections=200)
    weir = receiver.start()
    idle = []
    head = f"POST /ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    for i in range(10000 if ROUNDS > 5 else 1000):
        connection = socket.socket()
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect(("127.0.0.1", receiver.port))
            connection.sendall((b"", head, b"GET /")[i % 3])
        except OSError:
            pass
        idle.append(connection)
    receiver.post(lines(["ann", "ann"]))
    until(lambda: receiver.blocked() == ["ann"], "she is judged", running=weir)
    for connection in idle:
        connection.close()
    assert weir.peak_bytes() < 400 * MIB
    assert weir.stop() == DONE, weir.said()


def test_curl_speaks_tls_and_a_new_certificate_cuts_nobody_off(place):
    own, other = (certificate(place, name) for name in ("own", "other"))
    names = [place.path("live.crt"), place.path("live.key")]
    for pair in (own, other):
        for origin, name in zip(pair, names):
            shutil.copy(origin, name + ".new")
            os.rename(name + ".new", name)
        if pair is own:
            receiver = Receiver(place, tls={"certificate": names[0], "key": names[1]})
            weir = receiver.start()
        body = place.write("body", lines(["ann"]))

        def send(pair=pair, body=body):
            return subprocess.run(
                [program("curl"), "-sS", "--max-time", "20", "--cacert", pair[0], "-H", f"Authorization: Bearer {TOKEN}",
                 "--data-binary", f"@{body}", f"https://127.0.0.1:{receiver.port}/ingest"], capture_output=True, text=True,
                check=False)
        until(lambda send=send: send().stdout == '{"lines": 1}\n', "it is taken", running=weir)
    until(lambda: receiver.blocked() == ["ann"], "both are judged", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_what_the_page_shows_works(place):
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        section = re.search(r"^## HTTP\n(.*?)(?:^## |\Z)", file.read(), re.DOTALL | re.MULTILINE)[1]
    config, command = (re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)[1] for language in ("json", "sh"))
    port = free_port()
    token = place.write("edge.token", TOKEN + "\n")
    config = json.loads(config.replace("/etc/weir/edge.token", token).replace("8089", str(port)))
    now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
    log = place.write("access.log", f'192.0.2.7 - - [{now}] "GET / HTTP/1.1" 200 1 "-" "-"\n' * 200)
    weir = place.start("run", "--config", place.write("page.json", json.dumps(config)), "--state", place.path("state"),
                       "--decisions", place.path("out"))
    until(lambda: "following" in weir.said(), "it listens", running=weir)
    command = command.replace("/var/log/nginx/access.log", log).replace("8089", str(port)).replace("uuidgen", "date +%s%N")
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "TOKEN": TOKEN}, capture_output=True, text=True,
                          check=False, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stdout == '{"lines": 200}\n', (done.stdout, done.stderr)
    until(lambda: [decision["key"] for decision in lines_of(place.path("out"))] == [["192.0.2.7"]], "a block", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_what_is_said_beforehand(place):
    port = free_port()
    zones = [zone("site", [sliding(1, "1d")])]
    config = place.config(zones, [http_source(place, port)])
    said = place.good("validate", "--config", config).out().decode()
    assert f"http://127.0.0.1:{port}/ingest, json, listened to" in said and "at least once" in said, said
    done = place.run("run", "--once", "--config", config)
    assert done.code() == USAGE and "has no end: run without --once" in done.said(), (done.code(), done.said())
    for more, words in (({"listen": f"0.0.0.0:{port}", "token": None}, "must be a loopback address"),
                        ({"name": "../x"}, "letters, digits"), ({"max_body": "16MiB", "spool": "32MiB"}, "a quarter"),
                        ({"path": "ingest"}, "must begin with /")):
        done = place.run("validate", "--config", place.config(zones, [http_source(place, port, **more)]))
        assert done.code() == USAGE and words in done.said() + done.out().decode(), (words, done.said())
    # Tokens and certificates need not be on the machine that validates, but on that of the collector.
    absent = http_source(place, port, token={"file": place.path("absent")})
    place.good("validate", "--config", place.config(zones, [absent]))
    done = place.run("run", "--config", place.config(zones, [absent]), "--state", place.path("state"))
    assert done.code() != DONE and "absent" in done.said(), done.said()
    empty = http_source(place, port, token="")
    done = place.run("run", "--config", place.config(zones, [empty]), "--state", place.path("state"))
    assert done.code() != DONE and "is empty" in done.said(), done.said()
    twice = place.config(zones, [http_source(place, port), http_source(place, free_port())])
    done = place.run("validate", "--config", twice)
    assert done.code() == USAGE and "another http source" in done.said() + done.out().decode(), done.said()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = place.run("run", "--config", place.config(zones, [http_source(place, port)]), "--state",
                         place.path("state"))
        assert done.code() != DONE and f"cannot listen on 127.0.0.1 port {port}" in done.said(), done.said()


if __name__ == "__main__":
    cases.main(globals())
