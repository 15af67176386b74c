#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""webhook: a server that is told of every change in order, whatever it answers; words for people in chats and by mail."""

import hashlib
import hmac
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.gateways import program
from support.place import PATIENCE_S, free_port, read, until
from support.traffic import FORMAT, line, sliding, source, zone

START_MS = 1000 * int(time.time())


class Standin:
    """A server that keeps what it is told, and answers as a test says."""

    def __init__(self, certificate=None, key=None):
        self.calls, self.answers, self.wait_s = [], [], 0
        standin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                """Takes a call down and answers."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(standin.wait_s)
                status, headers, words = standin.answers.pop(0) if standin.answers else (200, {}, b"ok")
                standin.calls.append((status, self.path, dict(self.headers), body, time.monotonic()))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(words))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(words)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def taken(self):
        """The bodies that were taken, as JSON."""
        return [json.loads(body) for status, _, _, body, _ in list(self.calls) if status == 200]

    def live(self):
        """Who is blocked by what it was told: {key: until}; each list of changes in its order."""
        blocks = {}
        for told in self.taken():
            if told["first"]:
                blocks = {}
            for change in told["changes"]:
                if change["action"] == "block":
                    blocks[change["key"][0]] = change["until"]
                else:
                    blocks.pop(change["key"][0], None)
        return blocks


class Machine:
    """A weir with one gateway, told of in a file of its own."""

    def __init__(self, place, settings, zones=None, **more):
        self.place, self.port = place, free_port()
        self.log, self.state = place.write("log", ""), place.path("state")
        to = settings if isinstance(settings, str) else place.write("hook.json", json.dumps(settings))
        self.config = place.config(zones or [zone("site", [sliding(3, "1m")], id=1, block_for="1h")],
                                   [source(self.log, format=FORMAT)],
                                   gateways=[{"to": f"webhook:{to}", "interval": "50ms", **more}],
                                   listen={"http": f"127.0.0.1:{self.port}"})
        self.weir = None

    def start(self, **popen):
        """Starts it."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.state, **popen)
        until(lambda: metrics.get(self.port, "/healthz"), "weir answers", running=self.weir)
        return self

    def block(self, *users):
        """Users go over the limit, one after another."""
        self.place.append("log", "".join(line(START_MS + i, user) for user in users for i in range(5)))

    def lift(self, user):
        """An operator's lift."""
        self.place.good("lift", user, "--zone", "site", "--state", self.state)

    def until(self, condition, what):
        """Waits for as long as it runs."""
        return until(condition, what, 2 * PATIENCE_S, self.weir)


def test_a_server_is_told_of_every_change_in_order(place):
    standin = Standin()
    machine = Machine(place, {"url": f"{standin.url}/in?token=hidden", "secret": "a secret", "token": "bearer"}).start()
    machine.until(standin.taken, "it is told of an empty list")
    assert standin.taken() == [{"first": True, "changes": []}]
    machine.block("ann", "bob")
    machine.until(lambda: sorted(standin.live()) == ["ann", "bob"], "both are told")
    for _, path, headers, body, _ in standin.calls:
        signed = headers["X-Weir-Timestamp"].encode() + b"." + body
        wanted = "sha256=" + hmac.new(b"a secret", signed, hashlib.sha256).hexdigest()
        assert headers["X-Weir-Signature"] == wanted and abs(int(headers["X-Weir-Timestamp"]) - time.time()) < 60
        assert headers["Authorization"] == "Bearer bearer" and headers["Content-Type"] == "application/json"
        assert path == "/in?token=hidden"
    # Whatever it answers, in the end it has been told all; a pause that it asks for is kept.
    standin.answers = [(429, {"Retry-After": "2"}, b"later"), (503, {}, b"x" * 200000), (500, {}, b"no")]
    before = len(standin.calls)
    machine.lift("bob")
    machine.block("cid")
    machine.until(lambda: sorted(standin.live()) == ["ann", "cid"], "all is told again")
    after = standin.calls[before:]
    assert [call[0] for call in after[:3]] == [429, 503, 500] and after[1][4] - after[0][4] >= 1.9, after
    assert standin.taken()[-1]["first"] or any(told["first"] for told in standin.taken()[1:])
    page = str(metrics.get(machine.port, "/metrics"))
    assert "hidden" not in page + machine.weir.said() and "a secret" not in machine.weir.said()
    assert machine.weir.stop() == 0, machine.weir.said()


def test_a_long_list_comes_in_parts(place):
    standin, users = Standin(), [f"user-{i}" for i in range(1200)]
    machine = Machine(place, f"{standin.url}/x")
    machine.block(*users)
    machine.start()
    machine.until(lambda: sorted(standin.live()) == sorted(users), "all are told")
    assert all(len(told["changes"]) <= 500 and len(json.dumps(told)) < 400000 for told in standin.taken())
    # Killed and started again: the whole list, in parts of which only the first is one.
    before = len(standin.taken())
    machine.weir.kill()
    machine.start()
    machine.until(lambda: sum(len(told["changes"]) for told in standin.taken()[before:]) == 1200, "the list again")
    assert [told["first"] for told in standin.taken()[before:]][:3] == [True, False, False]
    assert machine.weir.stop() == 0
    page = machine.weir.said()
    assert f"{standin.url}/x" not in page


def words_of(standin, path):
    """What people read, in one text."""
    texts = []
    for told in standin.taken():
        for name in path:
            told = told[name]
        texts.append(told)
    return "".join(texts)


def chats():
    """Templates, what else they need, and where the words stand."""
    return (("slack", {}, ["text"]), ("discord", {}, ["content"]), ("telegram", {"chat": "-100"}, ["text"]))


def test_people_are_told_in_words(place):
    for template, more, path in chats():
        standin = Standin()
        os.makedirs(place.path(template))
        machine = Machine(place, {"template": template, "url": f"{standin.url}/{template}", **more})
        machine.log, machine.state = place.write(f"{template}/log", ""), place.path(template, "state")
        machine.config = place.config([zone("site", [sliding(3, "1m")], id=1, block_for="1h")],
                                      [source(machine.log, format=FORMAT)], name=f"{template}.json",
                                      gateways=[{"to": "webhook:" + place.path("hook.json"), "interval": "50ms"}],
                                      listen={"http": f"127.0.0.1:{machine.port}"})
        place.append(f"{template}/log", "".join(line(START_MS + i, "early") for i in range(5)))
        machine.start()

        def block(*users, log=f"{template}/log"):
            place.append(log, "".join(line(START_MS + i, user) for user in users for i in range(5)))

        block("ann", "<!channel> & @everyone", "two\nlines\u202e\u009b", "x" * 500, "[reset](https://evil.example) `" + "*" * 300, "a\u061c\u00ad\U000e0041b")
        machine.until(lambda: words_of(standin, path).count(" in zone site until 20") == 7, "all seven are told")
        text = words_of(standin, path)
        assert "blocked ann in zone site until 20" in text, text
        assert "\u202e" not in text and "\u009b" not in text and "two?lines" in text and "x" * 200 not in text
        if template == "slack":
            assert "<" not in text and "&lt;!channel&gt; &amp; @everyone" in text, text
        if template == "discord":
            assert all(told["allowed_mentions"] == {"parse": []} and len(told["content"]) <= 2000
                       for told in standin.taken())
            assert "\\[reset\\]\\(https://evil.example\\) \\`" + "\\*" * 9 in text and "a???b" in text, text
        if template == "telegram":
            assert all(told["chat_id"] == "-100" and "parse_mode" not in told for told in standin.taken())
        # What is refused for what it says holds up no other; a failure loses none, and says none twice.
        standin.answers = [(503, {}, b""), (503, {}, b"")]
        block("bob", "cid")
        machine.until(lambda: "blocked cid" in words_of(standin, path), "it is told later")
        standin.answers = [(400, {}, b"")]
        block("dan")
        machine.until(lambda: any(call[0] == 400 for call in standin.calls), "it is refused")
        block("eve")
        machine.until(lambda: "blocked eve" in words_of(standin, path), "the next one is told")
        text = words_of(standin, path)
        assert text.count("blocked bob") == text.count("blocked cid") == text.count("blocked ann") == 1, text
        # A start is no news.
        before = len(standin.calls)
        machine.weir.kill()
        machine.start()
        block("fay")
        machine.until(lambda: len(standin.calls) > before, "the new one is told")
        told = b"".join(call[3] for call in standin.calls[before:])
        assert b"fay" in told and b"ann" not in told, told
        assert machine.weir.stop() == 0, machine.weir.said()


def told(machine, name):
    """A metric of the gateway, 0 before it is there."""
    page = metrics.get(machine.port, "/metrics")
    return next((int(float(one.rsplit(" ", 1)[1])) for one in str(page).replace("\\n", "\n").splitlines()
                 if one.startswith(f"weir_subscribe_{name}{{")), 0)


def test_a_part_of_a_list_that_is_refused_for_good_is_given_up(place):
    """After five tries, and the rest is told; a list that has no place waits for it."""
    standin = Standin()
    machine = Machine(place, f"{standin.url}/x").start()
    machine.until(standin.taken, "it is told of an empty list")
    standin.answers = [(422, {}, b"")] * 5
    machine.block("ann")
    machine.until(lambda: "gave up on 1 changes" in machine.weir.said(), "it is given up")
    assert [call[0] for call in standin.calls].count(422) == 5 and told(machine, "given_up_total") == 1
    machine.block("bob")
    machine.until(lambda: "bob" in standin.live(), "the next one is told")
    standin.answers = [(404, {}, b"")] * 7
    machine.block("cid")
    machine.until(lambda: any(call[0] == 404 for call in standin.calls) and told(machine, "ready") == 0, "it is not ready")
    standin.answers = []
    machine.until(lambda: sorted(standin.live()) == ["ann", "bob", "cid"], "all is told in the end")
    assert told(machine, "given_up_total") == 1
    assert machine.weir.stop() == 0, machine.weir.said()


def test_words_that_are_refused_for_good_are_given_up(place):
    """Those of one message at once, by whatever status; others once they have waited long enough."""
    standin = Standin()
    machine = Machine(place, {"template": "slack", "url": f"{standin.url}/x", "give_up_after": "1s"}).start()
    standin.answers = [(451, {}, b"")]
    machine.block("ann")
    machine.until(lambda: "gave up on 1 messages" in machine.weir.said(), "it is given up")
    machine.block("bob")
    machine.until(lambda: "blocked bob" in words_of(standin, ["text"]), "the next one is told")
    standin.answers = [(403, {}, b"")] * 99
    machine.block("cid", "dan")
    machine.until(lambda: "gave up on 2 messages" in machine.weir.said(), "they are given up")
    failed = told(machine, "errors_total")
    machine.until(lambda: told(machine, "errors_total") > failed + 1, "it fails still, though nothing waits")
    assert told(machine, "ready") == 0 and "recovered" not in machine.weir.said(), machine.weir.said()
    standin.answers = []
    machine.block("eve")
    machine.until(lambda: "blocked eve" in words_of(standin, ["text"]), "the next one is told")
    text = words_of(standin, ["text"])
    assert "ann" not in text and "cid" not in text and "dan" not in text and told(machine, "given_up_total") == 3, text
    assert machine.weir.stop() == 0, machine.weir.said()


def test_who_is_let_in_while_the_chat_is_away_is_told_of(place):
    """Once, as is who was blocked; and who was blocked and let in meanwhile."""
    standin = Standin()
    machine = Machine(place, {"template": "slack", "url": f"{standin.url}/x"}).start()
    machine.block("ann")
    machine.until(lambda: "blocked ann" in words_of(standin, ["text"]), "it is told")
    standin.answers = [(503, {}, b"")] * 99
    machine.block("bob")
    machine.until(lambda: any(call[0] == 503 for call in standin.calls), "it is away")
    machine.lift("ann")
    machine.until(lambda: told(machine, "entries") == 1, "ann is let in")
    machine.block("cid")
    machine.until(lambda: told(machine, "entries") == 2, "cid is blocked")
    machine.lift("cid")
    machine.until(lambda: told(machine, "entries") == 1, "cid is let in")
    standin.answers = []
    machine.until(lambda: "let in again cid" in words_of(standin, ["text"]), "it is told later")
    text = words_of(standin, ["text"])
    assert [text.count(words) for words in ("blocked ann", "let in again ann", "blocked bob", "let in again bob", "blocked cid", "let in again cid")] \
        == [1, 1, 1, 0, 1, 1], text
    assert machine.weir.stop() == 0, machine.weir.said()


def test_words_are_not_given_up_for_refusals_far_apart(place):
    standin = Standin()
    machine = Machine(place, {"template": "slack", "url": f"{standin.url}/x", "give_up_after": "1s"}).start()
    standin.answers = [(404, {}, b"")] + [(503, {}, b"")] * 3 + [(404, {}, b"")]  # 200 ms, 400 ms, ... after one another
    machine.block("ann")
    machine.until(lambda: "blocked ann" in words_of(standin, ["text"]), "it is told in the end")
    assert told(machine, "given_up_total") == 0 and machine.weir.stop() == 0, machine.weir.said()


def test_mail_that_is_refused_for_good_is_given_up(place):
    mails, status = place.path("mails"), place.write("status", "67")
    sendmail = place.write("sendmail", f"#!/bin/sh\ncat >> {mails}\nexit $(cat {status})\n")
    os.chmod(sendmail, 0o755)
    machine = Machine(place, {"template": "mail", "to": "nobody@example.com", "sendmail": sendmail, "give_up_after": "1s"}).start()
    machine.block("ann")
    machine.until(lambda: "gave up on 1 messages" in machine.weir.said() and "67" in machine.weir.said(), "it is given up")
    assert read(mails).count(b"blocked ann") == 1
    place.write("status", "75")
    machine.block("bob")
    machine.until(lambda: read(mails).count(b"blocked bob") > 2, "it is tried again")
    place.write("status", "0")
    machine.until(lambda: told(machine, "ready") == 1, "it is taken")
    place.write("status", "78")
    machine.block("cid")
    machine.until(lambda: machine.weir.said().count("gave up on 1 messages") == 2, "it is given up after a while")
    assert told(machine, "given_up_total") == 2 and machine.weir.stop() == 0, machine.weir.said()


def test_mail_by_a_local_sendmail(place):
    mails = place.path("mails")
    sendmail = place.write("sendmail", f"#!/bin/sh\n(echo \"ARGUMENTS $*\"; cat; echo ENDED) >> {mails}\n")
    os.chmod(sendmail, 0o755)
    machine = Machine(place, {"template": "mail", "to": "ops@example.com", "from": "weir@example.com",
                              "sendmail": sendmail}).start()
    machine.block("ann", "x\nBcc: all@example.com\n\n.\nSubject: y", "-f")
    machine.until(lambda: b"blocked -f" in read(mails), "a mail is sent")
    for mail in read(mails).decode().split("ENDED\n")[:-1]:
        first, _, rest = mail.partition("\n")
        headers, _, body = rest.partition("\n\n")
        assert first == "ARGUMENTS -i -- ops@example.com", first
        names = [one.split(":")[0] for one in headers.split("\n")]
        assert names[:4] == ["From", "To", "Date", "Subject"] and "Bcc" not in names and "ann" not in headers, headers
        assert all(one.startswith("blocked ") for one in body.splitlines()), body
    assert machine.weir.stop() == 0, machine.weir.said()


def test_certificates_are_verified(place):
    openssl = program("openssl")
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", place.path("key"), "-out", place.path("crt")],
                   check=True, capture_output=True)
    standin = Standin(place.path("crt"), place.path("key"))
    machine = Machine(place, {"url": f"{standin.url}/x"}).start()
    machine.until(lambda: "certificate" in machine.weir.said(), "it is refused")
    assert not standin.calls and machine.weir.stop() == 0
    place.write("hook.json", json.dumps({"url": f"{standin.url}/x", "ca": place.path("crt")}))
    machine.start()
    machine.until(standin.taken, "it is told")
    assert machine.weir.stop() == 0


def test_a_server_that_hangs_ends_no_stop(place):
    standin = Standin()
    standin.wait_s = 60
    machine = Machine(place, f"{standin.url}/x").start()
    started = time.monotonic()
    assert machine.weir.stop(PATIENCE_S) == 0 and time.monotonic() - started < 15


def test_what_cannot_be_meant_is_refused(place):
    log = [source(place.write("log", ""))]
    for hook, words in (("ftp://x/", "needs https://HOST"), ("http://hooks.example/x", "only on this machine"),
                        ("http://127.0.0.1.example/x", "only on this machine"), ("https://", "needs https://HOST"),
                        ("/nowhere/hook.json", "cannot open"),
                        ({"url": "nothing-of-a-secret"}, "must be https://HOST"),
                        ({"template": "pigeon"}, "template"), ({"template": "telegram", "url": "https://x/s"}, "chat"),
                        ({"template": "mail"}, "to"), ({"template": "mail", "to": "a@b\nBcc: c"}, "blanks"),
                        ({"template": "mail", "to": "-oQ/tmp"}, "dash"), ({"url": {"env": "NO_SUCH"}}, "NO_SUCH"),
                        ({"url": "https://x/s", "token": "a\r\nX: y"}, "token"), ([], "must be an object")):
        to = hook if isinstance(hook, str) else place.write("hook.json", json.dumps(hook))
        config = place.config([zone("site", [sliding(3, "1m")], id=1)], log, gateways=[f"webhook:{to}"])
        done = place.run("validate", "--config", config)
        assert done.code() == 2 and words in done.said(), (hook, done.said())
        assert "nothing-of-a-secret" not in done.said()
    config = place.config([zone("site", [sliding(3, "1m")], id=1)], log,
                          gateways=["webhook:https://u:p@hooks.example/services/secret"])
    shown = place.good("validate", "--config", config).out().decode()
    assert "webhook:https://hooks.example#" in shown and "secret" not in shown and "u:p" not in shown, shown


if __name__ == "__main__":
    cases.main(globals())
