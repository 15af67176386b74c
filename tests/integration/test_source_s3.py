#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `s3`: each line of each object once, through kills, cut connections, late and changed objects, and faults.

A real server, which checks signatures, holds the objects; where it cannot be made to fail, another one does.
WEIR_ROUNDS is how often collector and server are killed (5), WEIR_SEED how it begins.
"""

import collections
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics, s3, traffic
from support.following import events
from support.place import PATIENCE_S, ROOT, free_port, lines_of, until
from support.proxy import Proxy

DONE, FAILED, USAGE = 0, 1, 2
ROUNDS = int(os.environ.get("WEIR_ROUNDS", 5))
SEED = int(os.environ.get("WEIR_SEED", time.time_ns() % 1000000))
PEAK_MOST = 400 << 20
EVERY_LINE = [traffic.zone("site", [traffic.sliding(1, "1m")])]


def source(bucket, url=None, **more):
    """A bucket of lines of traffic.line()."""
    return {"type": "s3", "url": url or s3.server().url, "bucket": bucket, "path_style": True, "poll": "100ms",
            "key": s3.KEY, "secret": s3.SECRET, "format": traffic.FORMAT, **more}


def start(place, sources, *options, zones=None, following=True):
    """A weir that follows: (weir, port)."""
    port = free_port()
    config = place.config(zones or traffic.site(), sources, listen={"http": f"127.0.0.1:{port}"},
                          deadletter={"rate": 0})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--dead-letter", place.path("dead"), "--summary", "json", *options)
    if following:
        until(lambda: "following" in weir.said(), "it follows", running=weir)
    return weir, port


def once(place, name, sources, zones=None):
    """A run to the end: its decisions, without what tells their source."""
    config = place.config(zones or traffic.site(), sources, name=f"{name}.json")
    place.good("run", "--once", "--config", config, "--decisions", place.path(name), "--summary", "json")
    return [traffic.without_id(decision) for decision in lines_of(place.path(name))]


def seen(place):
    """{user: how many of its events limiters take}, of a log that weir wrote."""
    counts = collections.Counter()
    for _, _, key in events(place):
        counts[key[0] if isinstance(key, list) else key] += 1
    return counts


def until_lines(weir, port, count):
    """Waits until so many lines were read."""
    def read():
        page = metrics.scrape(port)
        return page and page.sum("weir_source_lines_total") >= count
    until(read, f"{count} lines", running=weir)


def bucket_of(name):
    """A new bucket."""
    s3.server().make_bucket(name)
    return name


def zstd(data):
    """Packed by zstd; None where that is not on this machine."""
    if shutil.which("zstd") is None:
        return None
    return subprocess.run(["zstd", "-q"], input=data, stdout=subprocess.PIPE, check=True).stdout


# ---- what it gives ----

def test_objects_give_the_decisions_of_the_file_that_they_make(place):
    """Plain ones and packed ones, in the order in which they were written; by keys from a file and the environment."""
    server, rng = s3.server(), random.Random(SEED)
    lines = traffic.crowd(rng, 6000, 40)
    bucket_of("equal")
    for number in range(12):
        part = b"".join(lines[number * 500:(number + 1) * 500])
        name, data = [(".log", part), (".log.gz", gzip.compress(part)), (".log.zst", zstd(part))][number % 3]
        server.put("equal", f"a b/{11 - number:02}+&{name}", data or part, traffic.START_MS // 1000 + number)
    server.put("equal", "a b/other.txt", b"no line of ours\n")
    server.put("equal", "folder/", b"")
    whole = place.write("whole.log", b"".join(lines))
    expected = once(place, "file", [{"type": "file", "path": whole, "format": traffic.FORMAT}])
    place.write("secret", s3.SECRET + "\n")
    os.environ["S3_TEST_KEY"] = s3.KEY
    found = once(place, "s3", [source("equal", prefix=["a b/", "folder"], match="*.log*", key={"env": "S3_TEST_KEY"},
                                      secret={"file": place.path("secret")})])
    assert found == expected and len(found) > 10, (len(found), len(expected), SEED)


def test_a_real_log_gives_the_decisions_of_its_file(place):
    path = os.path.join(os.environ.get("WEIR_DATA") or "../shared/data", "apache-semicomplete-2015.log.gz")
    if not os.path.exists(path):
        raise cases.Skipped(f"there is no {path}")
    with open(path, "rb") as file:
        s3.server().put(bucket_of("real"), "apache.log.gz", file.read())
    zones = [traffic.zone("ips", [traffic.sliding(20, "10m")], key=["ip"])]
    expected = once(place, "file", [{"type": "file", "path": path, "format": "combined"}], zones)
    assert once(place, "s3", [source("real", format="combined")], zones) == expected and expected


ALB = ('https 2024-05-17T10:05:{:02}.186641Z app/web/50dc6c495c0c9188 203.0.113.9:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 '
       '57 "GET https://www.example.com:443/a?b HTTP/1.1" "curl/7.46.0" ECDHE TLSv1.2 arn:aws:x "Root=1-58337281"\n')
CLOUDFRONT = ("#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status\n",
              "2024-05-17\t10:05:{:02}\tFRA56-P1\t2390\t203.0.113.9\tGET\td1.cloudfront.net\t/%2561\t304\n")


def test_the_logs_of_aws(place):
    """Objects of CloudFront each begin with their names of columns."""
    server = s3.server()
    bucket_of("aws")
    for number in range(3):
        seconds = range(number * 4, number * 4 + 4)
        server.put("aws", f"alb/{number}.log.gz", gzip.compress("".join(ALB.format(s) for s in seconds).encode()))
        server.put("aws", f"cf/{number}.gz",
                   gzip.compress((CLOUDFRONT[0] + "".join(CLOUDFRONT[1].format(s) for s in seconds)).encode()))
    zones = [traffic.zone("z", [traffic.sliding(11, "1m")], key=["ip", "path"])]
    for prefix, form, path in (("alb/", "alb", "/a"), ("cf/", "w3c", "/a")):
        decision, = once(place, form, [source("aws", prefix=prefix, format=form)], zones)
        assert decision["key"] == ["203.0.113.9", path] and decision["at"] == 1715940311186 // 1000 * 1000 + \
            (186 if form == "alb" else 0), decision


def test_the_pages_example(place):
    """The configuration that collector/sources.md shows, against another server than AWS's."""
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as page:
        text = page.read().partition("\n## S3\n")[2].partition("```json\n")[2].partition("```")[0]
    shown = json.loads(text)
    one = shown["sources"][0]
    s3.server().put(bucket_of(one["bucket"]), one["prefix"] + "2024/05/17/a.log.gz",
                    gzip.compress("".join(ALB.format(second) for second in range(9)).encode()))
    os.environ.update(AWS_ACCESS_KEY_ID=s3.KEY, AWS_SECRET_ACCESS_KEY=s3.SECRET)
    place.good("validate", "--config", place.write("shown.json", text))
    one["url"] = s3.server().url
    done = place.good("run", "--once", "--config", place.write("shown.json", json.dumps(shown)), "--summary", "json")
    assert done.summary()["zones"]["clients"]["matched"] == 9, done.summary()


def test_a_bucket_before_the_hosts_name_and_one_for_everybody(place):
    with s3.Fake({"a.log": (traffic.START_MS // 1000, traffic.burst("ann", 4).encode())}) as fake:
        for name, url, more in (("before", fake.url.replace("127.0.0.1", "localhost"), {"path_style": False}),
                                ("anybody", fake.url, {"key": None, "secret": None})):
            configured = {name: value for name, value in source("styles", url, **more).items() if value is not None}
            assert [decision["key"] for decision in once(place, name, [configured])] == [["ann"]]
            headers = fake.headers[-1]
            assert headers["Host"].startswith("styles.localhost:") == (name == "before"), headers
            assert ("Authorization" in headers) == (name == "before"), headers


def test_temporary_keys_are_read_again_for_each_request(place):
    """The session token comes from a file, and is renewed there."""
    place.write("token", "old\n")
    body = traffic.burst("ann", 4).encode()
    with s3.Fake({"a.log": (traffic.START_MS // 1000, body)}, lambda path, query: None if fake.headers[-1].get(
            "x-amz-security-token") == "new" else (400, {}, s3.error("ExpiredToken"))) as fake:
        weir, port = start(place, [source("logs", fake.url, session_token={"file": place.path("token")})])
        until(lambda: "has expired" in weir.said(), "words", running=weir)
        place.write("token", "new\n")
        until_lines(weir, port, 4)
        assert weir.stop() == DONE, weir.said()
        assert "x-amz-security-token" in fake.headers[-1]["Authorization"], "the token is signed, too"


# ---- what comes later ----

def test_late_changed_and_deleted_objects(place):
    """What is named before what was read is read; so is another object under a known key; a start at the end passes the rest."""
    server = s3.server()
    bucket_of("late")
    long_ago = time.time() - 40 * 3600
    server.put("late", "2024/05/10.log", traffic.burst("old", 4).encode(), long_ago)
    server.put("late", "2024/05/20.log", traffic.burst("new", 4).encode())
    one = source("late", prefix="2024/", start="end")
    weir, port = start(place, [one])
    until(lambda: metrics.scrape(port).sum("weir_source_problem") == 0, "the first listing", running=weir)
    time.sleep(0.5)
    server.put("late", "2024/05/15.log", traffic.burst("late", 4).encode())
    until_lines(weir, port, 4)
    server.put("late", "2024/05/11.log", traffic.burst("first", 4).encode())
    server.put("late", "2024/05/20.log", traffic.burst("again", 5).encode())
    server.delete("late", "2024/05/10.log")
    server.put("late", "2024/05/30.log.gz", gzip.compress(traffic.burst("last", 4).encode()))
    until_lines(weir, port, 17)
    until(lambda: "2024/05/20.log" in weir.said(), "the change is told", running=weir)
    weir.kill()
    weir, port = start(place, [one])
    server.put("late", "2024/05/31.log", traffic.burst("end", 4).encode())
    until(lambda: any(decision["key"] == ["end"] for decision in lines_of(place.path("out"))), "the last", running=weir)
    assert weir.stop() == DONE, weir.said()
    assert seen(place) == {"late": 4, "first": 4, "again": 5, "last": 4, "end": 4}, seen(place)


def test_what_is_cut_is_named_and_fails_a_run(place):
    """Each packed object whose end is missing is named; a run to the end reads what there is, and ends with 1."""
    server = s3.server()
    bucket_of("cut")
    names = [f"logs/{number}.log.gz" for number in range(8)]
    for number, name in enumerate(names):
        text = "".join(traffic.line(traffic.START_MS + i, f"u{number}-{i}") for i in range(20000)).encode()
        server.put("cut", name, gzip.compress(text)[:-2000])
    server.put("cut", "logs/whole.log.gz", gzip.compress(traffic.burst("ann", 4).encode()))
    config = place.config(traffic.site(), [source("cut")], name="cut.json")
    done = place.run("run", "--once", "--config", config, "--decisions", place.path("cut.out"), "--summary", "json")
    assert done.code() == FAILED and done.summary()["lines"] > 8 * 10000, done.said()
    assert all(name in done.said() for name in names), done.said()
    assert [decision["key"] for decision in lines_of(place.path("cut.out"))] == [["ann"]]
    weir, _ = start(place, [source("cut")])
    until(lambda: all(name in weir.said() for name in names), "each is named", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_keys_with_dots_are_read(place):
    """No segment of a key is a step up. The real server keeps keys as paths, and so has none of these."""
    keys = ("logs/../a.log", "logs/./b.log", "logs/...log", "../c.log")
    with s3.Fake({key: (traffic.START_MS // 1000, traffic.burst(key, 4).encode()) for key in keys}) as fake:
        decided = once(place, "dots", [source("logs", fake.url)])
    assert sorted(decision["key"][0] for decision in decided) == sorted(keys), decided


# ---- kills and cuts ----

class Writer:
    """Puts objects of lines, each with a user of its own."""

    def __init__(self, server, bucket, rng):
        self.server, self.bucket, self.rng = server, bucket, rng
        self.users, self.objects = 0, 0

    def write(self):
        """One object, plain or packed."""
        users = [f"u{self.users + number}" for number in range(self.rng.randint(1, 400))]
        text = "".join(traffic.line(traffic.START_MS + self.users + i, user) for i, user in enumerate(users)).encode()
        packed = self.rng.random() < 0.5
        key = f"{self.rng.randint(0, 9)}/{self.objects:05}.log{'.gz' if packed else ''}"
        self.server.put(self.bucket, key, gzip.compress(text) if packed else text)
        self.users += len(users)
        self.objects += 1


def test_kills_of_collector_and_server_and_cut_connections(place):
    server, rng = s3.server(), random.Random(SEED)
    writer = Writer(server, bucket_of("kills"), rng)
    with Proxy(server.port) as proxy:
        one = source("kills", f"http://127.0.0.1:{proxy.port}")
        weir, port = None, None
        for number in range(ROUNDS):
            if weir is None:
                weir, port = start(place, [one], zones=EVERY_LINE, following=number > 0)
            for _ in range(rng.randint(1, 6)):
                writer.write()
            time.sleep(rng.uniform(0, 0.3))
            what = number % 3
            if what == 0:
                weir.kill()
                weir = None
            elif what == 1:
                server.take_down(True)
                server.bring_up()
            else:
                proxy.cut()
                proxy.mend()
        if weir is None:
            weir, port = start(place, [one], zones=EVERY_LINE)
        writer.write()
        last = f"u{writer.users - 1}"
        until(lambda: metrics.scrape(port) and last.encode() in place.run(
            "decode", "--state", place.path("state")).out(), "the last line", 3 * PATIENCE_S, running=weir)
        until(lambda: metrics.scrape(port).sum("weir_source_lag_bytes") == 0, "the end", running=weir)
        assert weir.stop() == DONE, weir.said()
    counts = seen(place)
    lost = [f"u{number}" for number in range(writer.users) if counts[f"u{number}"] == 0]
    twice = [user for user, count in counts.items() if count > 1]
    assert not lost and not twice and len(counts) == writer.users, (SEED, lost[:5], len(lost), twice[:5], len(twice))


# ---- what goes wrong ----

def refused(place, words, url=None, code=None, bucket="equal", **more):
    """A run that cannot read its bucket says why, and names no secret."""
    config = place.config(traffic.site(), [source(bucket, url, **more)], name="refused.json")
    done = place.run("run", "--once", "--config", config)
    said = done.said()
    assert done.code() == (code or FAILED) and words in said, said
    assert s3.SECRET not in said and "AKIA" not in said, said


def test_refusals_say_what_helps(place):
    server = s3.server()
    refused(place, "the secret is not that of the key", secret="wrong")
    refused(place, "the server does not know the key", key="AKIAwrong")
    refused(place, "there is no such bucket", bucket="nowhere")
    refused(place, "environment variable NOT_THERE is not set", key={"env": "NOT_THERE"}, code=USAGE)
    for answer, words in (
            ((403, {}, s3.error("AccessDenied", "AKIA")), "s3:ListBucket"),
            ((400, {}, s3.error("ExpiredToken")), "has expired"),
            ((200, {}, b"<!DOCTYPE html><html><body>Please log in</body></html>"), "HTML"),
            ((403, {}, b"<html><body>proxy</body></html>"), "HTML"),
            ((200, {}, b"<?xml version='1.0'?><ListBucketResult><Contents><Key>a</K"), "is cut off"),
            ((301, {"Location": "http://example.org/"}, b""), "elsewhere")):
        with s3.Fake(trouble=lambda path, query, answer=answer: answer) as fake:
            refused(place, words, fake.url)
    assert server.process.identity()


def test_a_check_asks_the_bucket(place):
    """weir-collector --check and weir doctor say what a run would."""
    config = place.config(traffic.site(), [source("equal", secret="wrong")])
    done = place.run("doctor", "--config", config)
    said = done.out().decode() + done.said()
    assert "the secret is not that of the key" in said and s3.SECRET not in said, said


def test_a_server_that_fails_is_told_and_asked_again(place):
    """What may pass is no end: a source that follows says it, and goes on when it has passed."""
    with s3.Fake({"a": (traffic.START_MS // 1000, traffic.burst("ann", 4).encode())},
                 lambda path, query: (503, {"Retry-After": "1"}, s3.error("SlowDown"))) as fake:
        weir, port = start(place, [source("logs", fake.url)])
        until(lambda: "fewer requests" in weir.said(), "words", running=weir)
        fake.trouble = lambda path, query: None
        until_lines(weir, port, 4)
        assert weir.stop() == DONE, weir.said()


def test_a_busy_server_is_asked_again_and_nothing_is_lost(place):
    """503 for one request in three, answers that are cut, and one object that may not be read."""
    rng, objects = random.Random(SEED), {}
    for number in range(60):
        objects[f"{number:03}.log"] = (traffic.START_MS // 1000 + number, traffic.burst(f"u{number}", 4).encode())

    def trouble(path, _):
        if path.endswith("/007.log"):
            return 403, {}, s3.error("AccessDenied")
        draw = rng.random()
        if draw < 0.2:
            return 503, {}, s3.error("SlowDown")
        return (500, {"Connection": "close", "Content-Length": 100}, b"cut") if draw < 0.3 else None

    with s3.Fake(objects, trouble) as fake:
        weir, port = start(place, [source("logs", fake.url)])
        until_lines(weir, port, 59 * 4)
        until(lambda: "007.log" in weir.said(), "words on the one that may not be read", running=weir)
        fake.trouble = lambda path, query: None
        until_lines(weir, port, 60 * 4)
        assert weir.stop() == DONE, weir.said()
    assert seen(place) == {f"u{number}": 4 for number in range(60)}, (SEED, seen(place))


def test_a_whole_object_is_no_range(place):
    """A server that leaves the range out of account gives each from the beginning: what is no such range is not read."""
    body = traffic.burst("ann", 9000, pad="x" * 1000).encode()
    with s3.Fake({"a.log": (traffic.START_MS // 1000, body)},
                 lambda path, query: (200, {}, body) if path.endswith("/a.log") else None) as fake:
        weir, port = start(place, [source("logs", fake.url)], following=False)
        until(lambda: "gives whole objects only" in weir.said(), "words", running=weir)
        fake.trouble = lambda path, query: None
        until_lines(weir, port, 9000)
        assert weir.stop() == DONE, weir.said()
    assert seen(place) == {"ann": 9000}, seen(place)


def test_an_object_of_100_gb_takes_no_memory(place):
    """It is read range by range, in its turn."""
    text = traffic.line(traffic.START_MS, "big").encode()
    page = text * 4096

    def part(offset, length):
        first = offset % len(text)
        whole = page * (length // len(page) + 2)
        return whole[first:first + length]

    with s3.Fake({"big.log": (traffic.START_MS // 1000 + 1, (100 << 30, part)),
                  "small.log": (traffic.START_MS // 1000, traffic.burst("ann", 4).encode())}) as fake:
        weir, port = start(place, [source("logs", fake.url)], zones=[
            traffic.zone("site", [traffic.sliding(3, "1m")], match={"user": ["ann"]})])
        until_lines(weir, port, 1000000)
        until(lambda: any(decision["key"] == ["ann"] for decision in lines_of(place.path("out"))), "the small one",
              running=weir)
        assert weir.peak_bytes() < PEAK_MOST, weir.peak_bytes()
        assert weir.stop() == DONE, weir.said()


MANY = int(os.environ.get("WEIR_S3_OBJECTS", 100000))


def test_many_objects_take_little_memory(place):
    """A start at the end passes them; what comes then is read. WEIR_S3_OBJECTS is how many there are."""
    old = traffic.START_MS // 1000
    body = traffic.line(traffic.START_MS, "old").encode()
    with s3.Fake({f"{number:09}": (old, body) for number in range(MANY)}) as fake:
        weir, port = start(place, [source("logs", fake.url, start="end")])
        until(lambda: len(fake.asked) > MANY // 1000, "the first listing", 4 * PATIENCE_S, running=weir)
        fake.put(f"{MANY // 2:09}-new", time.time(), traffic.burst("new", 4).encode())
        until_lines(weir, port, 4)
        assert weir.peak_bytes() < PEAK_MOST, weir.peak_bytes()
        assert weir.stop() == DONE, weir.said()
        assert seen(place) == {"new": 4}, seen(place)


if __name__ == "__main__":
    print(f"seed {SEED}, {ROUNDS} rounds", flush=True)
    cases.main(globals())
