#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `webhdfs` against a real HDFS: each line once, of files that grow, are renamed, packed, cut, through kills.

WEIR_ROUNDS  how many rounds of kills (2); with it, a folder has a million files
"""

import gzip
import http.server
import json
import os
import random
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import ROOT, SANITIZED, free_port, lines_of, until
from support.webhdfs import BUSY_S, DONE, FAILED, Run, Shared, user, users, writer_of

from parts import hdfs  # pylint: disable=wrong-import-order

def test_files_are_read_to_their_end(place):
    one = Shared.get(place)
    one.put("/once/a.log", users("a", "b"))
    one.put("/once/b.log.gz", gzip.compress(users("a", "c")))
    one.put("/once/2026/11/c.log", users("b", "c") + b'{"time": 1700000000, "user": "last"}')
    one.put("/once/.hidden", users("x", "x"))
    one.put("/once/d.log._COPYING_", users("x", "x"))
    run = Run(place, one, ["/once/*", "/once/*/*/*.log"])
    code, said = run.once()
    assert code == DONE, said
    assert run.blocked() == ["a", "b", "c"]


def test_the_pages_example_runs(place):
    one = Shared.get(place)
    with open(os.path.join(ROOT, "collector", "sources.md"), encoding="utf-8") as file:
        example = json.loads(file.read().split("## WebHDFS")[1].split("```json")[1].split("```")[0])
    line = '192.0.2.1 - - [26/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl"\n'
    one.put("/logs/access.log.1", line.encode())
    one.put("/flume/2026-11-26/13/x.log", line.encode())
    example["sources"][0]["url"] = one.urls
    done = place.run("run", "--once", "--config", place.write("example.json", json.dumps(example)), "--decisions",
                     place.path("out"))
    assert done.code() == DONE, done.said()
    assert [decision["key"] for decision in lines_of(place.path("out"))] == [["192.0.2.1"]]


def test_growing_renamed_and_closed_files_are_followed(place):
    one = Shared.get(place)
    writer = writer_of(one)
    writer.tell("open", "/grow/a.log.tmp")
    writer.tell("write", "/grow/a.log.tmp", user("tmp"))
    writer.tell("flush", "/grow/a.log.tmp")
    writer.tell("open", "/grow/b.log")
    writer.tell("write", "/grow/b.log", user("b1"))
    writer.tell("flush", "/grow/b.log")
    run = Run(place, one, "/grow/*").start()
    run.until_lines(1)
    # The NameNode's length stands still; the DataNode gives what was flushed, and half a line waits for its end.
    writer.tell("write", "/grow/b.log", user("b2") + user("b3")[:10])
    writer.tell("flush", "/grow/b.log")
    run.until_lines(2)
    assert one.status("/grow/b.log")["length"] < len(users("b1", "b2"))
    one.rename("/grow/b.log", "/grow/b.log.1")
    one.put("/grow/b.log", users("other"))
    writer.tell("write", "/grow/b.log", user("b3")[10:])
    writer.tell("flush", "/grow/b.log")
    run.until_lines(4)
    writer.tell("close", "/grow/b.log")
    one.append("/grow/b.log.1", users("b4"))
    one.rename("/grow/a.log.tmp", "/grow/a.log")
    run.until_lines(6)
    assert run.blocked() == []
    one.put("/grow/again.log", users("tmp", "b1", "b2", "b3", "b4", "other"))
    run.until_blocked(["tmp", "b1", "b2", "b3", "b4", "other"])
    assert run.weir.stop() == DONE


def test_truncated_is_told(place):
    one = Shared.get(place)
    one.put("/cut/a.log", users("a", "b"))
    run = Run(place, one, "/cut/a.log", poll="100ms").start()
    run.until_lines(2)
    one.truncate("/cut/a.log", len(users("a")))
    until(lambda: "was truncated" in run.weir.said(), "it is told", BUSY_S, run.weir)
    one.append("/cut/a.log", users("c", "a"))
    run.until_blocked(["a"])
    assert run.weir.stop() == DONE


def test_each_line_once_through_kills(place):
    one = Shared.get(place)
    run = Run(place, one, "/kills/*").start()
    seed = int(os.environ.get("WEIR_SEED", "1"))
    dice, number = random.Random(seed), 0
    writer = writer_of(one)
    writer.tell("open", "/kills/grows.log")
    names = []
    for _ in range(int(os.environ.get("WEIR_ROUNDS", "2"))):
        for _ in range(dice.randint(3, 8)):
            fresh = [f"u{number + i}" for i in range(dice.randint(1, 300))]
            names, number = names + fresh, number + len(fresh)
            if dice.random() < 0.5:
                writer.tell("write", "/kills/grows.log", users(*fresh).decode())
                writer.tell("flush", "/kills/grows.log")
            else:
                one.put(f"/kills/{number}.log", users(*fresh))
            time.sleep(dice.random() * 0.2)
        what = dice.choice(["weir", "weir", "namenode", "datanode"])
        if what == "weir":
            run.weir.kill()
            run.start()
        else:
            part = one.datanode if what == "datanode" else one.namenodes[0]
            if what == "datanode":  # a writer has no other to go to
                writer.tell("close", "/kills/grows.log")
            hdfs.together([part.ending(at_once=True)])
            hdfs.together([part.starting()])
            one.until_writable()
            if what == "datanode":
                writer.tell("append", "/kills/grows.log")
    assert run.blocked() == []
    one.put("/kills/all.log", users(*names))
    run.until_blocked(names)
    assert run.weir.stop() == DONE


def test_what_is_wrong_is_said(place):
    one = Shared.get(place)
    one.put("/wrong/a.log", users("a"))
    for words, more in (("there is no such file or folder", {"path": "/nowhere/a.log"}),
                        ("Permission denied", {"path": "/secret/*"}),
                        ("no NameNode of 2 serves", {"url": [f"http://127.0.0.1:{free_port()}"] * 2, "path": "/x"}),
                        ("is a folder", {"path": "/wrong"})):
        if "secret" in more["path"]:
            one.put("/secret/a.log", users("a"))
            one.ask("PUT", "/secret", op="SETPERMISSION", permission="700")
        run = Run(place, one, **more)
        code, said = run.once()
        assert code == FAILED and words in said, (words, code, said)


class Fake:
    """What answers as a NameNode in trouble does; the real one cannot be made to. `answers` has, by operation, the code,
    the body and a place that it redirects to."""

    def __init__(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers."""
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                answer = fake.answers[query["op"][0]]
                code, body, *place = answer(query) if callable(answer) else answer
                self.send_response(code)
                self.send_header("Content-Length", str(fake.lies or len(body)))
                for where in place:
                    self.send_header("Location", where)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except ConnectionError:  # whoever asks has enough
                    self.close_connection = True

            def log_message(self, *_):
                """Nothing."""

        self.lies = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # whoever asked is gone
        self.urls = [f"http://127.0.0.1:{self.server.server_port}"]
        self.answers = {
            "GETFILESTATUS": (200, json.dumps({"FileStatus": {**entry("", 1), "type": "DIRECTORY"}}).encode()),
            "LISTSTATUS_BATCH": (200, page([entry("a.log", 2)], 0)),
            "GET_BLOCK_LOCATIONS": (200, b'{"LocatedBlocks": {"isUnderConstruction": false}}'),
            "OPEN": (307, b"", self.urls[0] + "/webhdfs/v1/x?op=BYTES&offset=0&token=t"),
            "BYTES": (200, users("a", "a"))}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def entry(name, number, length=0):
    """One of a listing."""
    return {"pathSuffix": name, "type": "FILE", "fileId": number, "length": length or len(users("a", "a")),
            "modificationTime": int(time.time() * 1000)}


def page(entries, remaining):
    """A page of a listing."""
    return json.dumps({"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": entries}},
                                            "remainingEntries": remaining}}).encode()


def test_bad_answers_are_said(place):
    with Fake() as fake:
        run = Run(place, fake, "/logs/*")
        assert run.once()[0] == DONE and run.blocked() == ["a"]
        for words, more in (
                ("answers 403", {"LISTSTATUS_BATCH": (403, b'{"RemoteException": {"exception": "X", "message": "no"}}')}),
                ("answers 500: a web page", {"LISTSTATUS_BATCH": (500, b"<html>HTTP ERROR 500</html>")}),
                ("a web page came in place of JSON", {"LISTSTATUS_BATCH": (200, b"<html>Sign in</html>")}),
                ("it cannot be parsed", {"LISTSTATUS_BATCH": (200, page([entry("a.log", 2)], 0)[:-30])}),
                ("the listing does not go on", {"LISTSTATUS_BATCH": (200, page([entry("a.log", 2)], 5))}),
                ("which is no address of a DataNode", {"OPEN": (307, b"", "http://login.example/?from=hdfs")}),
                ("redirects elsewhere", {"BYTES": (302, b"", "http://login.example/")}),
                ("does not take the token", {"BYTES": (
                    403, b'{"RemoteException": {"exception": "InvalidToken", "message": "token (weir) is expired"}}')}),
                ("does not take the token", {"LISTSTATUS_BATCH": (403, json.dumps({"RemoteException": {
                    "exception": "SecurityException",
                    "message": "Failed to obtain user group information: SecretManager$InvalidToken: not found"}}).encode())}),
                ('does not know who asks (401): set "negotiate"', {
                    "LISTSTATUS_BATCH": (401, b"<html>Authentication required</html>")}),
                ("ends before byte", {"BYTES": (200, b"")})):
            usual = dict(fake.answers)
            fake.answers.update(more)
            code, said = run.once()
            fake.answers = usual
            assert code == FAILED and words in said, (words, code, said)


def test_a_server_without_redirections(place):
    """HttpFS gives the bytes itself; an old one lists without pages, and does not say what is open."""
    body = users("a", "a", "b")

    def bytes_of(query):
        at = int(query["offset"][0])
        return 200, body[at:at + int(query["length"][0])]

    with Fake() as fake:
        fake.answers.update({
            "OPEN": bytes_of, "LISTSTATUS_BATCH": (400, b"<html>"), "GET_BLOCK_LOCATIONS": (400, b"<html>"),
            "LISTSTATUS": (200, json.dumps({"FileStatuses": {"FileStatus": [entry("a.log", 2)]}}).encode())})
        code, said = Run(place, fake, "/logs/*").once()
        assert code == DONE, said
        assert [line["key"] for line in lines_of(place.path("out"))] == [["a"]]
        # What changed within two hours may be written to: it is read once that is over, though nothing else changes.
        body = gzip.compress(users("b", "b", "c"))
        packed = {**entry("b.log.gz", 3, len(body)), "modificationTime": int((time.time() - 7200 + 2) * 1000)}
        fake.answers.update({
            "GETFILESTATUS": lambda _: (
                200, json.dumps({"FileStatus": {**entry("", 1), "type": "DIRECTORY"}}).encode()),
            "LISTSTATUS": (200, json.dumps({"FileStatuses": {"FileStatus": [packed]}}).encode())})
        os.remove(place.path("out"))
        run = Run(place, fake, "/logs/*", follow=True).start()
        run.until_lines(3)
        # Another server that has its name by now redirects: that is no end of a file.
        body = users("d", "e")
        fake.answers.update({
            "LISTSTATUS": (200, json.dumps({"FileStatuses": {"FileStatus": [
                packed, {**entry("c.log", 4, len(body)), "modificationTime": 1}]}}).encode()),
            "OPEN": (307, b"", fake.urls[0] + "/webhdfs/v1/x?op=BYTES&offset=0"), "BYTES": (200, body)})
        run.until_lines(5)
        run.weir.kill()


def test_lengths_that_lie_and_a_million_files(place):
    with Fake() as fake:
        run = Run(place, fake, "/logs/*", follow=True)
        # It says 100 GB, and more comes than was asked for.
        fake.answers["LISTSTATUS_BATCH"] = (200, page([entry("a.log", 2, 100 << 30), entry("b.log", 3)], 0))
        fake.answers["BYTES"] = (200, (users("a") + b"x" * 1000 + b"\n") * 10000)
        run.start()
        run.until_lines(10000)
        assert run.weir.peak_bytes() < 300 << 20
        run.weir.kill()
        if SANITIZED:
            return  # what follows is minutes of a sanitizer's own memory
        # A folder with very many files: those that are more than weir remembers wait, and it says so.
        lately = int((time.time() - 3 * 3600) * 1000)
        entries = [{**entry(f"{number:04d}", 0), "modificationTime": lately} for number in range(5000)]

        pages = 200 if "WEIR_ROUNDS" in os.environ else 30

        def million(query):
            at = int((query["startafter"][0] if "startafter" in query else "0-0").split("-")[0]) + 1
            for number, one in enumerate(entries):
                one.update(pathSuffix=f"{at}-{number}", fileId=at * 5000 + number, length=0)
            return 200, page(entries, (pages - at) * 5000)

        fake.answers["LISTSTATUS_BATCH"] = million
        fake.answers["GET_BLOCK_LOCATIONS"] = (400, b"<html>")  # else each is asked for
        run = Run(place, fake, "/logs/*", follow=True, name="many").start()
        until(lambda: "more than 131072 files" in run.weir.said(), "it is said", BUSY_S, run.weir)
        assert run.weir.peak_bytes() < 300 << 20
        run.weir.kill()


def main():
    """Runs them, and ends the servers."""
    try:
        cases.main(globals())
    finally:
        Shared.end()


if __name__ == "__main__":
    main()
