# SPDX-License-Identifier: Apache-2.0
"""Gateways for tests: the real programs with the examples of deploy/gateways, asked as a client asks."""

import email.utils
import http.client
import http.server
import json
import os
import shutil
import threading
import time

from support import cases
from support.decisions import now_ms, start
from support.place import PATIENCE_S, ROOT, read
from support.roles import Roles
from support.traffic import sliding, source, zone

EXAMPLES = os.path.join(ROOT, "deploy", "gateways")
BLOCK_S = 8  # long enough to be seen on a slow machine


def program(name):
    """The path of a program, which may lie where only root looks."""
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        raise cases.Skipped(f"there is no {name}")
    return found


def example(name, *changes):
    """The text of an example with (old, new) in it changed, each of which must be there."""
    text = read(os.path.join(EXAMPLES, name)).decode()
    for old, new in changes:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    return text


def ask(port, source="127.0.0.1"):
    """(status, Retry-After) of a page; None while nobody answers. "::1": by IPv6."""
    host = "::1" if ":" in source else "127.0.0.1"
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S, source_address=(source, 0))
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["Retry-After"]
    except OSError:
        return None
    finally:
        connection.close()


def always(port, status, times=20):
    """Whether a page is answered with this status, time after time: a process that is being replaced answers too."""
    return all((ask(port) or (0,))[0] == status for _ in range(times))


class Site:
    """What stands behind a proxy."""

    class _Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            """Answers."""
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"hi\n")

        def log_message(self, *_):  # pylint: disable=arguments-differ
            """Says nothing."""

    def __init__(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


def seconds_left(retry_after):
    """What a client makes of Retry-After: seconds, or an HTTP date."""
    if retry_after.isdigit():
        return int(retry_after)
    return email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()


class Stage:
    """All of weir behind a gateway's log: who asks more than LIMIT times in WINDOW_S is blocked. Use it with `with`."""

    LIMIT, WINDOW_S = 10, 12

    def __init__(self, place, servers):
        limits = [sliding(self.LIMIT, f"{self.WINDOW_S}s")]
        # What is refused does not count: nobody stays out by asking when he may come in.
        zones = [zone("site", limits, key=["ip"], match={"status": ["2xx"]}, id=1)]
        self.place, self.roles = place, Roles(place, servers, zones, bus={"partitions": 4})

    def __enter__(self):
        self.roles.__enter__()
        return self

    def __exit__(self, *why):
        self.roles.__exit__(*why)

    def start(self, log, form, target, *options):
        """Starts everything on the gateway's log: the Subscriber."""
        self.roles.apply()
        limiter = self.roles.limiter(limiter={"checkpoint_interval": "1s"})
        collector = self.roles.collector([source(log, format=form)])
        config = self.place.write("gateway.json", json.dumps(self.roles.sections()))
        subscriber = start(self.place, config, target, *options)
        limiter.until_ready()
        collector.until_ready()
        return subscriber.until_ready()

    def check(self, subscriber, port, settled=lambda: True):
        """A client goes over the limit, is told so with 429 and Retry-After, and is let in when the block ends.

        settled() says whether nobody is being replaced who still answers as it was told before.
        """
        passed = 0
        until_s = time.monotonic() + 4 * PATIENCE_S
        while (answer := ask(port))[0] == 200:
            passed += 1
            assert time.monotonic() < until_s, "nobody blocks the client"
            time.sleep(0.02)
        assert answer[0] == 429 and passed >= self.LIMIT, (answer, passed)
        subscriber.until(lambda: always(port, 429) and settled(), "nobody who is being replaced answers any more")
        left = seconds_left(answer[1])
        assert -1 <= left <= self.WINDOW_S + 1, answer
        end_s = time.time() + left
        print(f"blocked after {passed} requests, Retry-After: {answer[1]}")
        assert ask(port, "127.0.0.2") == (200, None)
        subscriber.until(lambda: always(port, 200, self.LIMIT // 2), "the client is let in again")
        assert time.time() >= end_s - 2, "before its time"


def block_and_see(topic, subscriber, key, is_seen):
    """Publishes a block and waits until it shows, which on a slow machine may be after its end: then a longer one."""
    for for_s in (BLOCK_S, 8 * BLOCK_S):
        block = topic.block(key, for_s=for_s)
        if subscriber.until(lambda end=block["until"]: "seen" if is_seen() else now_ms() > end and "missed",
                            f"{key} is blocked", 20 * BLOCK_S) == "seen":
            return block
    raise AssertionError(f"{key} was not seen to be blocked")


def check_block_and_return(topic, subscriber, port, settled=lambda: True):
    """A client is blocked, told when to come back, and let in when it does; another is let in all the time.

    settled() is as in Stage.check().
    """
    assert ask(port) == (200, None)
    block = block_and_see(topic, subscriber, "127.0.0.1", lambda: always(port, 429) and settled())
    status, retry_after = ask(port)
    if status == 429:
        left = seconds_left(retry_after)
        assert -1 <= left <= (block["until"] - block["at"]) / 1000 + 1, (retry_after, left)
        # Whoever waits as he was told does not come before the end.
        assert 1000 * (time.time() + left) >= block["until"] - 1100, (retry_after, block)
    assert ask(port, "127.0.0.2") == (200, None)
    subscriber.until(lambda: always(port, 200) and settled(), "the client is let in again", 20 * BLOCK_S)
    assert now_ms() >= block["until"], "before its time"
    assert ask(port) == (200, None)
    # An operator's lift lets in at once.
    topic.block("127.0.0.1", for_s=None)
    subscriber.until(lambda: always(port, 429) and settled(), "the client is blocked again")
    topic.lift("127.0.0.1")
    subscriber.until(lambda: always(port, 200), "the client is let in by a lift")
