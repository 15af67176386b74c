#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cloudflare-list and aws-waf-ipset against a stand-in that checks each call as the provider would."""

import hashlib
import hmac
import http.server
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import PATIENCE_S, free_port, until
from support.traffic import FORMAT, line, sliding, source, zone

START_MS = 1000 * int(time.time())
SECRET = "a/secret+key=0"


class Standin:
    """A server whose answer(method, path, headers, body) is a test's: (status, headers, object)."""

    def __init__(self):
        self.faults, self.seen = [], []  # answers that come first; what was asked
        standin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                standin.seen.append((self.command, self.path, self.headers.get("X-Amz-Target")))
                fault = standin.faults.pop(0) if standin.faults else None
                status, headers, what = fault or standin.answer(self.command, self.path, self.headers, body)
                words = what if isinstance(what, bytes) else json.dumps(what).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(words))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(words)

            do_GET = do_PUT = do_POST = _any

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Says nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Cloudflare(Standin):
    """An account with one list."""

    def __init__(self):
        super().__init__()
        self.items, self._operations, self.fail_next = None, {}, False

    def answer(self, method, path, headers, body):
        """As the API answers."""
        if headers["Authorization"] != "Bearer cf-token":
            return 403, {}, {"success": False, "errors": [{"message": "cf-token is wrong"}]}
        if method == "PUT" and path == "/v4/accounts/acc/rules/lists/lst/items":
            items = [item["ip"] for item in json.loads(body)]
            number = f"op{len(self._operations)}"
            self._operations[number] = [items, 1, self.fail_next]
            self.fail_next = False
            return 200, {}, {"success": True, "errors": [], "result": {"operation_id": number}}
        operation = self._operations[path.rpartition("/")[2]]
        assert method == "GET" and path.startswith("/v4/accounts/acc/rules/lists/bulk_operations/"), path
        if operation[1] > 0:
            operation[1] -= 1
            return 200, {}, {"success": True, "result": {"status": "pending"}}
        if operation[2]:
            return 200, {}, {"success": True, "result": {"status": "failed", "error": "too\u001b[1m many"}}
        self.items = operation[0]
        return 200, {}, {"success": True, "result": {"status": "completed"}}


class Aws(Standin):
    """A WAF with one IP set, which knows who signs."""

    def __init__(self, family="IPV4"):
        super().__init__()
        self.family, self.addresses, self.lock, self.changes_between = family, None, 0, 0

    def _signed(self, headers, body):
        """Whether the call is signed as version 4 says."""
        words = headers["Authorization"].removeprefix("AWS4-HMAC-SHA256 ")
        parts = dict(part.strip().split("=", 1) for part in words.split(","))
        key, date, region, service, end = parts["Credential"].split("/")
        assert (key, region, service, end) == ("AKID", "eu-west-1", "wafv2", "aws4_request"), parts
        names = parts["SignedHeaders"].split(";")
        assert {"host", "x-amz-date"} <= set(names), names
        canonical = "\n".join(["POST", "/", "", *[f"{name}:{headers[name].strip()}" for name in names], "",
                               ";".join(names), hashlib.sha256(body).hexdigest()])
        text = "\n".join(["AWS4-HMAC-SHA256", headers["X-Amz-Date"], f"{date}/{region}/{service}/{end}",
                          hashlib.sha256(canonical.encode()).hexdigest()])
        sign = b"AWS4" + SECRET.encode()
        for part in (date, region, service, end, text):
            sign = hmac.new(sign, part.encode(), hashlib.sha256).digest()
        return sign.hex() == parts["Signature"]

    def answer(self, method, path, headers, body):
        """As the API answers."""
        asked = json.loads(body)
        if not self._signed(headers, body) or headers["X-Amz-Security-Token"] != "session":
            return 403, {}, {"__type": "InvalidSignatureException"}
        assert {name: asked[name] for name in ("Name", "Scope", "Id")} == {"Name": "set", "Scope": "REGIONAL", "Id": "i-d"}
        if headers["X-Amz-Target"] == "AWSWAF_20190729.GetIPSet":
            return 200, {}, {"IPSet": {"IPAddressVersion": self.family, "Addresses": []}, "LockToken": f'"{self.lock}'}
        assert headers["X-Amz-Target"] == "AWSWAF_20190729.UpdateIPSet"
        if self.changes_between > 0:
            self.changes_between -= 1
            self.lock += 1
        if asked["LockToken"] != f'"{self.lock}':
            return 400, {}, {"__type": "com.amazonaws#WAFOptimisticLockException"}
        self.lock += 1
        self.addresses = asked["Addresses"]
        return 200, {}, {"NextLockToken": f'"{self.lock}'}


class Machine:
    """A weir that keeps one list of addresses and networks."""

    def __init__(self, place, kind, settings):
        self.place, self.port = place, free_port()
        self.target = f"{kind}:" + place.write("cloud.json", json.dumps(settings))
        zones = [zone("site", [sliding(3, "1m")], key=["ip"], id=1, block_for="1h"),
                 zone("net", [sliding(3, "1m")], key=[{"field": "ip", "prefix4": 24, "prefix6": 64}], id=2,
                      match={"path": ["/net"]}, block_for="1h")]
        config = place.config(zones, [source(place.write("log", ""), format=FORMAT)],
                              gateways=[{"to": self.target, "interval": "50ms"}],
                              listen={"http": f"127.0.0.1:{self.port}"})
        self.weir = place.start("run", "--config", config, "--state", place.path("state"))

    def say(self, *addresses, **more):
        """So many addresses go over the limit."""
        self.place.append("log", "".join(line(START_MS + i, "u", ip=ip, **more) for ip in addresses for i in range(5)))

    def lift(self, key):
        """An operator's lift."""
        self.place.good("lift", key, "--zone", "site", "--state", self.place.path("state"))

    def until(self, condition, what):
        """Waits for as long as it runs."""
        return until(condition, what, 2 * PATIENCE_S, self.weir)

    def value(self, name):
        """A metric of the gateway."""
        page = metrics.scrape(self.port)
        return page and page.value(f"weir_subscribe_{name}", gateway=self.target)


def test_a_list_at_cloudflare(place):
    api = Cloudflare()
    machine = Machine(place, "cloudflare-list", {"account": "acc", "list": "lst", "token": "cf-token",
                                                 "url": f"http://{api.host}/v4/"})
    machine.until(lambda: api.items == [], "the list is emptied at the start")
    machine.say("203.0.113.9", "2001:db8::9")
    machine.say("198.51.100.7", "2001:db8:1:2::3", path="/net")
    machine.until(lambda: set(api.items) == {"203.0.113.9", "2001:db8::9", "198.51.100.7", "198.51.100.0/24", "2001:db8:1:2::3",
                                             "2001:db8:1:2::/64"}, "it holds everyone")
    assert machine.value("unfit_total") == 0
    # A call that is refused, one that is to wait, one that says nothing, and an operation that fails: then it is done.
    api.faults = [(429, {"Retry-After": "1"}, b""), (500, {}, b"x" * 100000), (200, {}, b"no json"),
                  (200, {}, {"success": True, "result": {"operation_id": "../../x"}})]
    api.fail_next = True
    machine.lift("203.0.113.9")
    machine.until(lambda: "203.0.113.9" not in api.items, "it is let in")
    said = machine.weir.said()
    assert not api.faults and "cf-token" not in said and "\x1b" not in said
    assert not any("x/../" in path or path.endswith("/x") for _, path, _ in api.seen), api.seen
    assert machine.weir.stop() == 0, said


def test_a_wrong_token_is_said(place):
    api = Cloudflare()
    machine = Machine(place, "cloudflare-list", {"account": "acc", "list": "lst", "token": "other-token",
                                                 "url": f"http://{api.host}/v4"})
    machine.until(lambda: "are the credentials right" in machine.weir.said(), "it is said")
    assert "token is wrong" not in machine.weir.said() and "other-token" not in machine.weir.said()
    assert machine.weir.stop() == 0


def test_an_ip_set_at_aws(place):
    for family, held in (("IPV4", {"203.0.113.9/32", "198.51.100.0/24", "198.51.100.7/32"}),
                         ("IPV6", {"2001:db8::9/128", "2001:db8:1:2::/64", "2001:db8:1:2::3/128"})):
        api = Aws(family)
        os.makedirs(place.path(family))
        machine = Machine(place, "aws-waf-ipset",
                          {"region": "eu-west-1", "scope": "REGIONAL", "name": "set", "id": "i-d", "access_key": "AKID",
                           "secret_key": SECRET, "session_token": "session", "url": f"http://{api.host}"})
        machine.say("203.0.113.9", "2001:db8::9")
        machine.say("198.51.100.7", "2001:db8:1:2::3", path="/net")
        machine.until(lambda: api.addresses is not None and set(api.addresses) == held, "the set holds its family")
        # Somebody else changes it in between; a server that fails, that asks for a pause, that says nothing.
        api.changes_between = 1
        api.faults = [(503, {}, b""), (400, {"Retry-After": "1"}, {"__type": "ThrottlingException"}), (200, {}, b"{}")]
        gone = sorted(held)[0].rpartition("/")[0]
        gone = "203.0.113.9" if family == "IPV4" else "2001:db8::9"
        machine.lift(gone)
        machine.until(lambda: not any(one.startswith(gone + "/") for one in api.addresses), "it is let in")
        said = machine.weir.said()
        assert SECRET not in said and "AKID" not in said and api.changes_between == 0
        assert machine.weir.stop() == 0, said
        os.rename(place.path("state"), place.path(family, "state"))


def test_what_cannot_be_meant_is_refused(place):
    log = [source(place.write("log", ""), format=FORMAT)]
    full = {"account": "a", "list": "l", "token": "t"}
    waf = {"region": "r", "scope": "REGIONAL", "name": "n", "id": "i", "access_key": "k", "secret_key": "s"}
    for kind, settings, words in (("cloudflare-list", {**full, "account": "a/b"}, "account"),
                                  ("cloudflare-list", {**full, "token": "a\nb"}, "blanks"),
                                  ("cloudflare-list", {**full, "tokn": "x"}, 'did you mean "token"'),
                                  ("cloudflare-list", {**full, "url": "ftp://x"}, "url"),
                                  ("cloudflare-list", {"list": "l", "token": "t"}, "account"),
                                  ("cloudflare-list", [], "object"), ("cloudflare-list", "relative.json", "absolute path"),
                                  ("aws-waf-ipset", {**waf, "scope": "a b"}, "scope"),
                                  ("aws-waf-ipset", {**waf, "secret_key": {"env": "NO_SUCH"}}, "NO_SUCH"),
                                  ("aws-waf-ipset", {**full}, "unknown key")):
        path = settings if isinstance(settings, str) else place.write("cloud.json", json.dumps(settings))
        config = place.config([zone("site", [sliding(3, "1m")], id=1)], log, gateways=[f"{kind}:{path}"])
        done = place.run("validate", "--config", config)
        assert done.code() == 2 and words in done.said(), (settings, done.said())
    for kind, settings in (("cloudflare-list", full), ("aws-waf-ipset", waf)):
        config = place.config([zone("site", [sliding(3, "1m")], id=1)], log,
                              gateways=[f"{kind}:" + place.write("cloud.json", json.dumps(settings))])
        place.good("validate", "--config", config)


if __name__ == "__main__":
    cases.main(globals())
