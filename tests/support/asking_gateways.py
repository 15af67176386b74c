# SPDX-License-Identifier: Apache-2.0
"""Gateways that ask weir before they serve: the real programs with the examples of deploy/gateways/checks, a weir behind them,
and what must be so whichever gateway it is."""

import contextlib
import http.client
import http.server
import os
import socket
import threading
import time

from support import venv
from support.check_http import Caller, Weir
from support.checks import crowd
from support.gateways import example
from support.place import PATIENCE_S, free_port, until
from support.traffic import sliding, zone

LIMIT = 20
GATEWAY = "127.0.0.1"  # whom weir trusts; a client has another address
CONNECT_S, ANSWER_S = 0.2, 1.5  # how long the examples wait for weir
LATE_S = 0.4  # weir says that it cannot judge after 0.5 s at the earliest, and an answer that is later need not be waited for
SLACK_S = 3  # beyond that, on a busy machine: less than the programs wait if they are not told

# Keys of requests to /seen… say all of it that a policy may look at. "user" may be told by a client alone: then none is in it.
ZONES = [zone("site", [sliding(LIMIT, "1h")], key=["ip"], match={"path": ["/page"]}),
         zone("line", [sliding(1, "1h")], key=["ip", "method", "host", "target"], match={"path": ["/seen*"]}),
         zone("path", [sliding(1, "1h")], key=["ip", "method", "path", "agent"], match={"path": ["/seen*"]}),
         zone("user", [sliding(1, "1h")], key=["user"], match={"path": ["/seen*"]}),
         zone("options", [sliding(1, "1h")], key=["ip", "target"], match={"method": ["OPTIONS"]}),
         zone("root", [sliding(1, "1h")], key=["ip"], match={"path": ["/"], "method": ["GET"]})]
# What some servers take for the root.
ROOTS = (b"/?s=1", b"?s=1", b"?", b"http://site.example", b"http://site.example?s=1", b"HTTP://site.example?s=1", b"http://site.example#x",
         b"http:?s=1", b"#x", b"//?s=1", b"/.?s=1", b"/a/..", b"/%2e")

FORGED = {"X-Original-Method": "PUT", "X-Original-URI": "/page", "X-Forwarded-Method": "PUT", "X-Forwarded-Uri": "/page",
          "X-Forwarded-Host": "other.example", "X-Forwarded-User": "max", "X-Forwarded-For": "203.0.113.9",
          "X-Real-IP": "203.0.113.9", "Forwarded": "for=203.0.113.9", "X_Forwarded_For": "203.0.113.9",
          "X_Forwarded_Uri": "/page", "X-Weir-Limit": "forged", "X-Envoy-External-Address": "203.0.113.9",
          "X-Envoy-Original-Path": "/page"}


def packaged(name):
    """The path of a program that comes as a Python package: tests/requirements-NAME.txt."""
    return os.path.join(os.path.dirname(venv.made(name)), name)


def recipe(name, **ports):
    """An example of deploy/gateways/checks with ports of this test: _8082=1234 instead of 127.0.0.1:8082."""
    return example(os.path.join("checks", name), *((f"127.0.0.1:{old.strip('_')}", f"127.0.0.1:{new}") for old, new in ports.items()))


class _Server(http.server.ThreadingHTTPServer):
    """A server on a thread of its own, which takes it that connections are cut."""

    daemon_threads = True

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Says nothing."""

    def close(self):
        """No more."""
        self.shutdown()
        self.server_close()


class Backend:
    """The site behind a gateway: answers "served", and knows what it was asked last."""

    def __init__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Any method."""

            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def answer(self):
                """Takes the body, and answers."""
                length = int(self.headers["Content-Length"] or 0)
                outer.asked = (self.command, self.path, len(self.rfile.read(length)))
                self.send_response(200)
                self.send_header("Content-Length", "6")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"served")

            do_GET = do_HEAD = do_POST = do_DELETE = do_OPTIONS = answer  # pylint: disable=invalid-name

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Says nothing."""

        self.asked = None
        server = _Server(Handler)
        self.port, self.close = server.server_port, server.close


class Client:
    """A connection to a gateway from an address of its own."""

    def __init__(self, port, address="127.0.0.2"):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4 * PATIENCE_S, source_address=(address, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def ask(self, path="/page", method="GET", body=None, **headers):
        """Status, headers and body."""
        self._connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            for one in value if isinstance(value, list) else [value]:
                self._connection.putheader(name, one)
        if body is not None:
            self._connection.putheader("Content-Length", str(len(body)))
        self._connection.endheaders(body)
        answer = self._connection.getresponse()
        return answer.status, answer.headers, answer.read()


def get(port, path="/page", method="GET", body=None, address="127.0.0.2", **headers):
    """Status, headers and body of one request on a connection of its own."""
    with Client(port, address) as client:
        return client.ask(path, method, body, **headers)


class Stage:
    """A weir, a site and a gateway before it. begin(place, number, port, weir, site) starts the program: a running one of place."""

    def __init__(self, place, begin, zones=None, resp=None):
        self.place, self.begin, self.started, self.program = place, begin, 0, None
        self.weir = Weir(place, zones or ZONES, listen={"resp": f"127.0.0.1:{resp}"} if resp else None,
                         client_ip={"header": "x-forwarded-for", "trusted": [GATEWAY]})
        self.weir.ready("site")
        self.asked = resp or self.weir.port
        self.site, self.checks = Backend(), Caller(self.weir.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.checks.__exit__()
        self.site.close()

    @contextlib.contextmanager
    def gateway(self, weir=None):
        """The gateway, which asks the real weir if no other port is named: its port."""
        port, self.started = free_port(), self.started + 1
        self.program = program = self.begin(self.place, self.started, port, weir or self.asked, self.site.port)

        def serves():
            try:
                return get(port, "/up", address="127.0.0.9")[0] != 404  # Traefik's, until it has read its routes
            except OSError:
                return False
        try:
            until(serves, "the gateway serves", running=program)
            yield port
            assert program.code() is None, program.said()
        finally:
            program.stop()

    def peek(self, name, key):
        """What weir has counted of a key in a zone, once it is not late with its answer."""
        def ask():
            said = self.checks.check(zone=name, key=key, peek=True)[1]
            return said if "remaining" in said else None
        return until(ask, f"weir says what is left of {key} in {name}", running=self.weir.process)

    def left(self, address):
        """What remains of the site's limit."""
        return self.peek("site", address)["remaining"]

    def counted(self, name, *parts):
        """Whether a zone has counted a request with just this key."""
        return not self.peek(name, "|".join(parts))["allowed"]

    def counted_any(self, name, address, *ways):
        """Whether it has with one of these as the last part."""
        return any(self.counted(name, address, way) for way in ways)


# ---- what must be so ----

def limit_holds(stage, tells=True, policy=True):
    """As many pass as the limit says, of many at once too, and who is blocked is told when to come back.

    tells: who passes is told what is left. policy: RateLimit-Policy is there, too."""
    with stage.gateway() as port:
        def ask(client, _):
            answers = []
            for _ in range(6):
                began_s = time.monotonic()
                status, headers, body = client.ask()
                answers.append((status, headers["RateLimit"], body, time.monotonic() - began_s > LATE_S))
            return answers
        answers = [answer for some in crowd(lambda: Client(port), 8, ask) for answer in some]
        passed = [told for status, told, body, _ in answers if (status, body) == (200, b"served")]
        late = sum(late for *_, late in answers)
        assert LIMIT <= len(passed) <= LIMIT + late, answers
        assert all(status == 429 and told.startswith('"site";r=0;t=') for status, told, *_ in answers if status != 200), answers
        assert stage.left("127.0.0.2") == 0
        # Each of those that passed was told another number of what is left.
        told = [f'"site";r={left};t=3600' for left in range(LIMIT)]
        assert not tells or late or sorted(passed) == sorted(told), answers
        status, headers, _ = until_blocked(port)
        assert headers["RateLimit"].startswith('"site";r=0;t=') and 3500 < int(headers["Retry-After"]) <= 3600, str(headers)
        assert not policy or headers["RateLimit-Policy"] == f'"site";q={LIMIT};w=3600', str(headers)
        assert until_blocked(port, method="HEAD")[2] == b""
        assert get(port, address="127.0.0.3")[0] == 200


def until_blocked(port, path="/page", method="GET", body=None, address="127.0.0.2", **headers):
    """The answer 429, which comes at once but where weir was late."""
    def ask():
        answer = get(port, path, method, body, address, **headers)
        return answer if answer[0] == 429 else None
    return until(ask, f"{method} {path} is blocked")


def requests_are_seen(stage, tidies=False, caches=False):
    """Method, address, host, path and query come to weir as the client wrote them; the site gets the request whole.

    tidies: a path that is not in its plain form is brought into it, before weir is asked. caches: the site need not be asked."""
    with stage.gateway() as port:
        for number, (target, path) in enumerate((("/seen/a%20b?x=%2F&y", "/seen/a b"), ("/seen//c/../d;e?", "/seen/d;e"))):
            for method, body in (("GET", None), ("POST", b"a" * 300000), ("HEAD", None), ("DELETE", None)):
                address = f"127.0.1.{number + 1}"
                asked = {"Host": "site.example", "User-Agent": "tester/1"}
                status, _, text = get(port, target, method, body, address, **asked)
                assert (status, text) == (200, b"" if method == "HEAD" else b"served"), (method, target, status, text)
                if not caches or body is not None:
                    assert stage.site.asked[::2] == (method, len(body or b"")), stage.site.asked
                    assert number > 0 or stage.site.asked[1] == target, stage.site.asked
                until_blocked(port, target, method, body, address, **asked)
                assert number > 0 and tidies or stage.counted("line", address, method, "site.example", target), (method, target)
                assert stage.counted("path", address, method, path, "tester/1"), (method, target)


def nothing_is_forged(stage):
    """What a client writes stands for nothing else, however it writes it."""
    with stage.gateway() as port:
        ways = (FORGED, {name.lower(): [value, value] for name, value in FORGED.items()},
                {**FORGED, "Connection": "close, X-Forwarded-Method, X-Forwarded-Uri, X-Original-Method, X-Original-URI"},
                {**FORGED, "Connection": "close, X-Forwarded-For"})
        for number, headers in enumerate(ways):
            address, path = f"127.0.2.{number + 1}", f"/seen/{number}"
            asked = {**headers, "Host": "site.example", "User-Agent": "tester/1"}
            status, _, body = get(port, path, address=address, **asked)
            if status == 400 and "Connection" in headers and b"gateway does not say" not in body:
                continue  # a gateway may refuse that by itself
            assert status == 200, (headers, status)
            until_blocked(port, path, address=address, **asked)
            assert stage.counted("line", address, "GET", "site.example", path), headers
            assert stage.counted("path", address, "GET", path, "tester/1"), headers
            assert not stage.counted("user", "max"), headers
        # A head that is too large for weir lets nobody pass, and neither does one of many fields.
        for number, headers in enumerate(({f"X-Large-{i}": "a" * 4000 for i in range(5)}, {f"X-Many-{i}": "a" for i in range(88)})):
            passed = [get(port, address=f"127.0.3.{number + 1}", **headers)[0] for _ in range(2 * LIMIT)].count(200)
            print(f"{len(headers)} headers: {passed} passed")
            assert passed < 1.5 * LIMIT, (number, passed)


def odd_requests_are_no_fault(stage):
    """A request that HTTP allows, or that the gateway takes all the same, is judged: its client sees no fault of the two."""
    with stage.gateway() as port:
        for number, agent in enumerate((b"a\x7fb", b"a\x01b", b"a\x1b[31mb", b"\xc3\xa9\xff", b"a\tb", b"")):
            address = f"127.0.5.{number + 1}"
            status = _status(port, address, b"GET /page HTTP/1.1\r\nHost: a\r\nUser-Agent: " + agent + b"\r\n")
            print(f"User-Agent {agent}: {status}")
            assert status in (200, 400), (agent, status)  # some gateways refuse control characters by themselves
            assert (LIMIT - stage.left(address) == 1) == (status == 200), (agent, status, stage.left(address))
        for number, target in enumerate((b"*", b"http://site.example", b"http://site.example/page?a")):
            address, stage.site.asked = f"127.0.6.{number + 1}", None
            status = _status(port, address, b"OPTIONS " + target + b" HTTP/1.1\r\nHost: site.example\r\n")
            print(f"OPTIONS {target.decode()}: {status}, the site was asked {stage.site.asked}")
            assert status < 500, (target, status)
            assert stage.site.asked is None or stage.counted_any("options", address, "*", "/", target.decode(), "/page?a"), target
        for number, target in enumerate(ROOTS):
            address, stage.site.asked = f"127.0.7.{number + 1}", None
            status = _status(port, address, b"GET " + target + b" HTTP/1.1\r\nHost: site.example\r\n")
            print(f"GET {target.decode()}: {status}, the site was asked {stage.site.asked}")
            assert stage.site.asked is None or stage.counted("root", address), target


def large_heads_are_judged(stage, refuses=None):
    """Whatever a client writes that the gateway takes: it is judged, or its client is told that it is too large.

    refuses: by this status, too."""
    with stage.gateway() as port:
        number, met = 0, set()
        for size in (4000, 8100, 12000, *range(14200, 15600, 100), 16100, 16200, 16300, 20000, 24000, 32000, 33000, 50000, 60000, 70000):
            one, half, third = b"a" * size, b"a" * (size // 2), b"a" * (size // 3)
            for target, host, agent in ((b"", b"a", one), (one, b"a", b"a"), (half, b"a", half), (third, third, third)):
                head = b"GET /page?" + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nUser-Agent: " + agent + b"\r\n"
                for _ in range(3):
                    number += 1
                    address, began_s = f"127.0.{8 + number // 250}.{number % 250 + 1}", time.monotonic()
                    try:
                        status = _status(port, address, head)
                    except (OSError, IndexError):
                        status = 0  # a gateway may end the connection
                    if time.monotonic() - began_s < LATE_S:
                        break  # else weir may have been late, and all pass
                met.add(status)
                assert status in (200, 400, 413, 414, 431, 0), (size, status, len(target), len(host), len(agent))
                assert (LIMIT - stage.left(address) == 1) == (status == 200), (size, status, len(target), len(host), len(agent))
        assert 200 in met and len(met) > 1 and refuses in (None, *met), met


def _status(port, address, head):
    """Of a request that is sent as it is."""
    with socket.create_connection(("127.0.0.1", port), 4 * PATIENCE_S, source_address=(address, 0)) as client:
        client.sendall(head + b"Connection: close\r\n\r\n")
        return int(client.makefile("rb").readline().split()[1])


class Deaf:
    """A port at which nobody answers: not even a connection is made."""

    def __init__(self):
        self._sockets = [socket.create_server(("127.0.0.1", 0), backlog=0)]
        self.port = self._sockets[0].getsockname()[1]
        for _ in range(8):
            self._sockets.append(socket.socket())
            self._sockets[-1].setblocking(False)
            self._sockets[-1].connect_ex(("127.0.0.1", self.port))

    def close(self):
        """No more."""
        for one in self._sockets:
            one.close()


class Refusing(_Server):
    """A stand-in for weir that answers any question with its status."""

    def __init__(self, status):
        outer, self.status = self, status

        class Handler(http.server.BaseHTTPRequestHandler):
            """GET."""

            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers."""
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Says nothing."""

        super().__init__(Handler)


def timed(port, address):
    """(status, seconds)."""
    began_s = time.monotonic()
    status = get(port, address=address)[0]
    return status, time.monotonic() - began_s


def away(stage, statuses):
    """While weir cannot be asked, requests pass, within the time that the examples say; once it can, it is asked again.

    statuses: what becomes of an answer of weir's with such a status."""
    with stage.gateway() as port:
        until(lambda: get(port, address="127.0.4.1")[0] == 200 and stage.left("127.0.4.1") < LIMIT, "weir is asked")
        stage.weir.process.pause()
        came, took_s = timed(port, "127.0.4.1")
        print(f"weir stands still: {came} after {took_s:.2f} s")
        stage.weir.process.resume()
        assert came == 200 and took_s < ANSWER_S + SLACK_S, (came, took_s)
        for _ in range(LIMIT):
            get(port, address="127.0.4.1")
        until_blocked(port, address="127.0.4.1")
        assert stage.left("127.0.4.1") == 0
        stage.weir.stop()
        for _ in range(2):
            came, took_s = timed(port, "127.0.4.1")
            print(f"weir is gone: {came} after {took_s:.2f} s")
            assert came == 200 and took_s < SLACK_S, (came, took_s)
    deaf = Deaf()
    with stage.gateway(deaf.port) as port:
        came, took_s = timed(port, "127.0.4.1")
        print(f"nobody takes a connection: {came} after {took_s:.2f} s")
        assert came == 200 and took_s < CONNECT_S + SLACK_S, (came, took_s)
    deaf.close()
    if statuses:
        other = Refusing(503)
        with stage.gateway(other.server_port) as port:
            for other.status, expected in statuses.items():
                came = get(port)[0]
                assert came == expected, (other.status, came)
        other.close()


def tests(begin, statuses, prefix="", tells=True, tidies=False, caches=False):
    """What must be so, as tests of a gateway: for a module's globals().update().

    statuses: as of away(). prefix: of the tests' names. tells, tidies, caches: as of limit_holds() and requests_are_seen()."""
    checks = {"as_many_pass_as_the_limit_says": lambda stage: limit_holds(stage, tells),
              "weir_is_asked_what_the_client_asked": lambda stage: requests_are_seen(stage, tidies, caches),
              "what_a_client_writes_is_not_believed": nothing_is_forged,
              "odd_requests_are_no_fault": odd_requests_are_no_fault,
              "large_heads_are_judged": large_heads_are_judged,
              "all_pass_while_weir_is_away": lambda stage: away(stage, statuses)}

    def test_of(check):
        def test(place):
            with Stage(place, begin) as stage:
                check(stage)
        return test
    return {f"test_{prefix}{name}": test_of(check) for name, check in checks.items()}
