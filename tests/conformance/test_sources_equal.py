#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of source against the plain file of the same lines: the same decisions, lines, malformed lines and counts of zones.

Each source is read from its real server. The logs are a generated one and the same with lines that are hard to carry; what
the file gives is what the oracle says of each log's first lines.

WEIR_EQUAL_LINES: how many lines are generated (1500). With it, the real logs of ../shared/data (or WEIR_DATA) come too, and
servers that take long to start. WEIR_EQUAL_LOGS=zeek-dns,generated: these logs alone. WEIR_EQUAL_SAMPLE: how many first lines of
each log the oracle judges (20000).
WEIR_EQUAL_LINES=1000000 tests/conformance/test_sources_equal.py redis: the large run, of one source.
"""

import base64
import contextlib
import glob
import gzip
import http.client
import json
import os
import random
import shutil
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

# pylint: disable=wrong-import-position
from support import cases, cluster, forward, journal, nats, pushing, rabbitmq, s3, webhdfs
from support.following import once, start, value
from support.own_redis import OwnRedis
from support.place import ROOT, Place, find_weir, free_port, lines_of, until
from support.traffic import by_bucket
from support.work import generated

import compare  # pylint: disable=wrong-import-order
import test_oracle_data as oracle_data  # pylint: disable=wrong-import-order

LARGE = "WEIR_EQUAL_LINES" in os.environ
LINES = int(os.environ.get("WEIR_EQUAL_LINES", "1500"))
ONLY = [name for name in os.environ.get("WEIR_EQUAL_LOGS", "").split(",") if name]
DATA = os.path.abspath(os.environ.get("WEIR_DATA", os.path.join(ROOT, "..", "shared", "data")))
SAMPLE = min(LINES, int(os.environ.get("WEIR_EQUAL_SAMPLE", "20000")))
PART_LINES = max(1, min(20000, LINES // 3))  # of what is kept as files
BATCH_LINES = 2000          # of what is pushed
LONG_S = 1800 if LARGE else 60
START_S = 1700000000


class Log:
    """Lines, and how they are read."""

    def __init__(self, name, lines, form, zones, columns=None):
        """@param columns  of a format that has names in its first line: a message has no such line"""
        self.name, self.lines, self.form, self.columns = name, lines, form, columns
        self.zones = [{**zone, "id": 1 + number, "name": f"{number}-{zone['name']}"} for number, zone in enumerate(zones)]
        self.wanted = None
        self.blank = sum(not line.strip(b"\r\n") for line in lines)

    @property
    def format(self):
        """Of a line by itself."""
        return {**self.form, "header": False, "columns": self.columns} if self.columns else self.form

    def source(self, path):
        """The plain file."""
        return {"type": "file", "path": path, "format": self.format}


def zones_of(path, kind):
    """Zones of most kinds by two fields."""
    named = oracle_data.policies(path, kind)
    return [zone for name in ("10/1m + 100/1h + 1000/1d", "all sliding, all counted, held", "resources and filters")
            for zone in named[name]]


def real_logs():
    """Those of DATA."""
    for name, files, _ in oracle_data.datasets(DATA):
        if len(files) > 1:
            continue
        (pattern, form), lines = files[0], []
        paths = sorted(glob.glob(pattern), key=lambda path: (len(path), path), reverse=True)  # the oldest has the largest number
        for path in paths:
            with gzip.open(path) as file:
                lines += file.read().split(b"\n")[:-1]
        if not lines:
            continue
        columns = None
        if form["type"] == "delimited":
            columns = lines.pop(0).decode().split("\t")
        form = {member: of for member, of in form.items() if member != "cost"}
        if "cost" in form.get("fields", {}):
            form["fields"] = {member: of for member, of in form["fields"].items() if member != "cost"}
        fields = {"zeek-dns": ("query", "rcode_name"), "zeek-ssl": ("server_name", "version"), "nasa": ("path", "response")}
        yield Log(name, lines, form, zones_of(*fields.get(name, ("path", "status"))), columns)


def hard(lines, rng):
    """Lines with others between them that are hard to carry: blank, of any bytes, very long, halves, with line ends of all kinds."""
    strange = [b"", b" ", b"\r", b"\t\t", b"x\0y", b"\xff\xfe\x80", b"\xe2\x80\xa8", b"[", b"{}", b"[]", b'{"a":1}', b'"', b"\\", b"#Fields: a b",
               b"<13>1 - - - - - - x", b"x" * 70000, b"y" * 200000]
    made = []
    for line in lines:
        kind = rng.randrange(12)
        if kind == 0:
            made.append(rng.choice(strange))
        elif kind == 1:
            made.append(line[:rng.randrange(1, len(line))])
        made.append({2: line + b"\r", 3: line.replace(b'"-"', b'"\xe9\xff\x00\x1b"'), 4: b" " + line, 5: line + b" "}.get(kind, line))
    return made


def make_logs():
    """All logs, each with what its plain file gives."""
    with Place(find_weir(), LOGS.directory) as place:
        path = generated(place, "generated", LINES, users=max(20, LINES // 300), abusers=max(3, LINES // 10000))
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        web = zones_of("path", "status")
        logs = [Log("generated", lines, {"type": "combined"}, web),
                Log("hard", hard(lines[:50000], random.Random(26)), {"type": "combined"}, web), *(real_logs() if LARGE else ())]
        logs = [log for log in logs if not ONLY or log.name in ONLY]
        for log in logs:
            judge(place, log)
    return logs


def judge(place, log):
    """What the plain file gives; on its first lines, it is what the oracle says."""
    path = place.write("log", b"".join(line + b"\n" for line in log.lines))
    log.wanted = once(place, [log.source(path)], f"{log.name}-file", log.zones)
    first = place.write("first", b"".join(line + b"\n" for line in log.lines[:SAMPLE]))
    wrong = compare.differences(place.weir, {"zones": log.zones, "sources": [log.source(first)]}, place.path(), shards=((1, 1),))
    assert wrong is None, (log.name, wrong)
    assert len(log.wanted[0]) > 20, (log.name, len(log.wanted[0]))


class Logs:
    """The logs of this script, made for the first test that asks."""

    def __init__(self):
        self.directory, self._made = tempfile.mkdtemp(prefix="weir-equal-"), None

    def get(self):
        """They."""
        if self._made is None:
            self._made = make_logs()
        return self._made

    def end(self):
        """Removes what they left."""
        shutil.rmtree(self.directory, ignore_errors=True)


LOGS = Logs()


# ---- comparing ----

def buckets(decisions):
    """The decisions of each bucket, in their order."""
    return by_bucket([{name: of for name, of in one.items() if name != "policy"} for one in decisions])


def agree(log, by, got, since, skipped=0):
    """What a source gave is what the file gave. @param skipped  blank messages, of which a file's lines are counted and give nothing"""
    decisions, summary = got
    wanted, counted = log.wanted
    have, want = buckets(decisions), buckets(wanted)
    wrong = [name for name in have.keys() | want.keys() if have.get(name) != want.get(name)]
    assert not wrong, (log.name, by, len(wrong), sorted(wrong)[:3], have.get(wrong[0]), want.get(wrong[0]))
    assert summary["lines"] + skipped == counted["lines"], (log.name, by, summary["lines"], skipped, counted["lines"])
    # What writes a journal leaves an empty message out: such an entry has none, and is counted.
    without = summary["malformed"].pop("no message", 0)
    assert without == 0 or (by == "journal" and without <= log.blank), (log.name, by, without, log.blank)
    for name in ("malformed", "zones"):
        assert summary[name] == counted[name], (log.name, by, name, summary[name], counted[name])
    print(json.dumps({"source": by, "log": log.name, "lines": summary["lines"], "malformed": summary["malformed"],
                      "decisions": len(decisions), "differences": 0, "seconds": round(time.monotonic() - since, 1)}), flush=True)


def read_once(place, log, by, source, skipped=0):
    """A source that has an end."""
    since = time.monotonic()
    agree(log, by, once(place, [source], f"{log.name}-{by.replace(' ', '-')}", log.zones), since, skipped)


def followed(place, log, by, source, send=None, without=0):
    """A source that has none: until as many lines came as the file has.

    @param send     brings the lines once weir listens
    @param without  how many blank ones it does not bring"""
    with Place(place.weir, place.directory) as inner:
        since = time.monotonic()
        weir, port = start(inner, [source], log.zones)
        if send is not None:
            send()
        wanted = log.wanted[1]["lines"]
        skipped = lambda: without or max(0, value(port, "weir_source_skipped_total"))
        until(lambda: value(port, "weir_collector_lines_total") + skipped() >= wanted, f"{wanted} lines", LONG_S, weir)
        blank = skipped()
        assert without or blank in (0, log.blank), (log.name, by, blank, log.blank)
        assert weir.stop(LONG_S) == 0, weir.said()
        agree(log, by, (lines_of(inner.path("out")), weir.summary()), since, blank)


def slow_server(name):
    """Passes over servers that take long to start, but in the large run."""
    if not LARGE:
        raise cases.Skipped(f"{name} takes long to start: its own test reads a small log; WEIR_EQUAL_LINES reads these")


# ---- files ----

def parts(log):
    """(name, bytes) of files that are the log together; every other one is packed."""
    for number, first in enumerate(range(0, len(log.lines), PART_LINES)):
        data = b"".join(line + b"\n" for line in log.lines[first:first + PART_LINES])
        yield (f"{number:04}.log.gz", gzip.compress(data, 1)) if number % 2 else (f"{number:04}.log", data)


def test_webhdfs(place):
    slow_server("HDFS")
    logs, one = LOGS.get(), webhdfs.Shared.get(place)
    for log in logs:
        for name, data in parts(log):
            one.put(f"/{log.name}/{name}", data)
        read_once(place, log, "webhdfs", {"type": "webhdfs", "url": one.urls, "path": f"/{log.name}/*", "user": "weir",
                                          "format": log.format})


def test_s3(place):
    slow_server("s3proxy")
    logs, server = LOGS.get(), s3.server()
    for log in logs:
        server.make_bucket(log.name)
        for number, (name, data) in enumerate(parts(log)):
            server.put(log.name, name, data, START_S + number)
        read_once(place, log, "s3", {"type": "s3", "url": server.url, "bucket": log.name, "path_style": True, "key": s3.KEY,
                                     "secret": s3.SECRET, "format": log.format})


# ---- queues ----

def test_redis(place):
    logs = LOGS.get()
    with OwnRedis(place, "--appendfsync", "no") as server:
        for log in logs:
            for first in range(0, len(log.lines), 50000):
                server.add(log.name, *log.lines[first:first + 50000])
            read_once(place, log, "redis", {"type": "redis", "url": server.url, "streams": [log.name], "field": "line",
                                            "format": log.format}, log.blank)
            server.call("DEL", log.name)


def test_nats(place):
    logs = LOGS.get()
    with nats.OwnNats(place) as server, nats.Client(server.port) as client:
        for log in logs:
            client.add(log.name, [log.name])
            assert client.publish(log.lines, log.name, 20000) == len(log.lines)
            read_once(place, log, "nats", {"type": "nats", "url": server.url, "stream": log.name, "format": log.format},
                      log.blank)
            client.delete(log.name)


def test_amqp(place):
    slow_server("RabbitMQ")
    logs = LOGS.get()
    with rabbitmq.OwnRabbit(place) as server:
        for log in logs:
            for kind in ("stream", "classic"):
                with rabbitmq.Client(server.port) as client:
                    client.declare(f"{log.name}-{kind}", kind)
                    client.publish(log.lines, f"{log.name}-{kind}", 5000)
                followed(place, log, f"amqp {kind}", {"type": "amqp", "url": server.url, "queue": f"{log.name}-{kind}",
                                                      "stream": kind == "stream", "format": log.format})
                with rabbitmq.Client(server.port) as client:
                    client.delete(f"{log.name}-{kind}")


def test_kafka(place):
    logs = LOGS.get()
    with cluster.shared() as one:
        for log in logs:
            topic = one.topic(log.name)
            one.kafka.create(topic)
            for first in range(0, len(log.lines), 100000):
                one.kafka.produce(topic, log.lines[first:first + 100000])
            followed(place, log, "kafka", {"type": "kafka", "brokers": one.brokers, "topics": [topic], "group": one.topic("readers"),
                                           "kafka": one.kafka_properties, "format": log.format, "start": "beginning"})
            one.kafka.delete([topic])


def test_syslog(place):
    for log in LOGS.get():
        port = free_port()

        def send(log=log, port=port):
            with socket.create_connection(("127.0.0.1", port), timeout=LONG_S) as sender:
                for line in log.lines:
                    # a first blank is rsyslog's, and no part of the message
                    message = b"<190>1 2024-01-01T00:00:00Z www app - - - " + (b" " if line.startswith(b" ") else b"") + line
                    sender.sendall(b"%d %s" % (len(message), message))
        followed(place, log, "syslog", {"type": "syslog", "listen": f"tcp://127.0.0.1:{port}", "format": log.format}, send)


def test_journal(place):
    if not journal.available():
        raise cases.Skipped(f"there is no {journal.REMOTE}")
    for log in LOGS.get():
        directory = f"journal-{log.name}"
        with journal.Journal(place.path(directory, "system.journal")) as writer:
            for first in range(0, len(log.lines), 1000):
                writer.write(*(journal.entry(first + number, line) for number, line in enumerate(log.lines[first:first + 1000])))
            writer.close(LONG_S)
        read_once(place, log, "journal", {"type": "journal", "directory": place.path(directory), "units": ["shop"],
                                          "format": log.format})


# ---- pushed ----

def batches(log):
    """Lists of lines."""
    for first in range(0, len(log.lines), BATCH_LINES):
        yield first // BATCH_LINES, log.lines[first:first + BATCH_LINES]


def test_forward(place):
    for log in LOGS.get():
        port = free_port()

        def send(log=log, port=port):
            with forward.Sender(("127.0.0.1", port), timeout=LONG_S) as sender:
                modes = ("forward", "packed", "compressed")
                for number, lines in batches(log):
                    entries = [(forward.event_time(START_S), {"log": line}) for line in lines]
                    chunk = f"chunk-{number}"
                    sender.send_and_wait(forward.messages("app", entries, chunk)[modes[number % 3]], chunk)
        followed(place, log, "forward", {"type": "forward", "name": "apps", "listen": f"tcp://127.0.0.1:{port}",
                                         "format": {"type": "json", "message": log.format}}, send)


def post(port, path, body, number, **fields):
    """A batch, again until it is taken."""
    headers = {"Authorization": f"Bearer {pushing.TOKEN}", "Idempotency-Key": f"batch-{number}"}
    headers.update({name.replace("_", "-"): of for name, of in fields.items()})
    until_s = time.monotonic() + LONG_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_S)
        with contextlib.closing(connection):
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
        if answer.status != 503:
            assert 200 <= answer.status < 300, (answer.status, said)
            return
        assert time.monotonic() < until_s, said
        time.sleep(0.05)


def pushed(place, log, by, form, body_of, without=0):
    """By HTTP. @param body_of  gives of a number and lines (path, body, fields)"""
    port = free_port()

    def send():
        for number, lines in batches(log):
            path, body, fields = body_of(number, lines)
            if number % 2:
                body, fields = gzip.compress(body, 1), {**fields, "Content_Encoding": "gzip"}
            post(port, path, body, number, **fields)
    followed(place, log, f"http {by}", pushing.http_source(place, port, format=form), send, without)


def as_lines(_number, lines):
    return "/ingest", b"".join(line + b"\n" for line in lines), {}


def as_values(number, lines):
    """JSON values one after another, or in an array."""
    return "/ingest", b"[" + b",".join(lines) + b"]" if number % 3 == 0 else b"\n".join(lines), {"Content_Type": "application/json"}


def as_firehose(number, lines):
    records = [{"data": base64.b64encode(line).decode()} for line in lines]
    return "/ingest", json.dumps({"requestId": f"r-{number}", "timestamp": 1, "records": records}).encode(), {
        "X_Amz_Firehose_Request_Id": f"r-{number}", "Content_Type": "application/json"}


def as_raw(_number, lines):
    return "/services/collector/raw", b"\n".join(lines), {}


def as_events(_number, lines):
    return "/services/collector/event", b"".join(json.dumps({"time": START_S, "event": line.decode()}).encode() for line in lines), {}


def as_bulk(_number, lines):
    return "/_bulk", b"".join(b'{"create":{}}\n' + json.dumps({"message": line.decode()}).encode() + b"\n" for line in lines), {
        "Content_Type": "application/x-ndjson"}


def as_otlp(_number, lines):
    records = [{"timeUnixNano": f"{START_S}000000000", "body": {"stringValue": line.decode()}} for line in lines]
    return "/v1/logs", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode(), {
        "Content_Type": "application/json"}


def as_loki(_number, lines):
    values = [[f"{START_S}000000000", line.decode()] for line in lines]
    return "/loki/api/v1/push", json.dumps({"streams": [{"stream": {"app": "x"}, "values": values}]}).encode(), {
        "Content_Type": "application/json"}


def as_journal(number, lines):
    first = number * BATCH_LINES
    return "/upload", b"".join(journal.entry(first + at, line) for at, line in enumerate(lines)), {
        "Content_Type": "application/vnd.fdo.journal"}


def test_http_lines(place):
    for log in LOGS.get():
        pushed(place, log, "lines", log.format, as_lines)
        pushed(place, log, "hec raw", log.format, as_raw)


def test_http_values(place):
    for log in LOGS.get():
        if log.form["type"] == "json":
            pushed(place, log, "json", log.format, as_values)


def test_http_firehose(place):
    for log in LOGS.get():
        pushed(place, log, "firehose", log.format, as_firehose, log.lines.count(b""))  # an empty record is none


def test_http_documents(place):
    """Lines within documents: text alone, as JSON has no other."""
    for log in LOGS.get():
        if log.name == "hard":
            continue
        wrapped = {"type": "json", "message": log.format}
        pushed(place, log, "hec event", {"type": "wrapped", "in": "json", "line": "event", "message": log.format}, as_events)
        pushed(place, log, "bulk", wrapped, as_bulk)
        pushed(place, log, "otlp", wrapped, as_otlp)
        pushed(place, log, "loki", wrapped, as_loki)


def test_http_journal(place):
    for log in LOGS.get():
        pushed(place, log, "journal", {"type": "journal", "message": log.format}, as_journal)


if __name__ == "__main__":
    try:
        cases.main(globals())
    finally:
        webhdfs.Shared.end()
        LOGS.end()
