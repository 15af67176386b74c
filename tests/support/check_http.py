# SPDX-License-Identifier: Apache-2.0
"""A `weir run` that answers checks by HTTP, and who asks it."""

import http.client
import json

from support.checks import run, until_answered
from support.place import PATIENCE_S, free_port, until


class Weir:
    """It, its port, and the port of its pages."""

    def __init__(self, place, zones, *, listen=None, **more):
        """more: of checks.run()."""
        self.port = free_port()
        self.process = run(place, zones, {"check_http": f"127.0.0.1:{self.port}", **(listen or {})}, **more)
        self.pages = self.process.pages

    def ready(self, name, before=""):
        """Once every partition answers."""
        with Caller(self.port) as caller:
            until_answered(self.process, lambda key: caller.check(zone=name, key=key, peek=True)[0] == 200, before)
        return self

    def stop(self):
        """Ends it as it should end."""
        assert self.process.stop() == 0, self.process.said()


class Caller:
    """A connection that asks one request at a time."""

    def __init__(self, port, password=None, context=None):
        self.password = password
        if context is not None:
            self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_S, context=context)
        else:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def ask(self, path, method="GET", body=None, **headers):
        """Status, headers and body. Header X-Original-URI is given as x_original_uri."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.password is not None:
            given["Authorization"] = f"Bearer {self.password}"
        self.connection.request(method, path, body=body, headers=given)
        reply = self.connection.getresponse()
        return reply.status, reply.headers, reply.read()

    def nginx(self, uri="/", method="GET", client="192.0.2.7", query="", **headers):
        """As nginx asks."""
        return self.ask("/v1/nginx" + query, x_original_method=method, x_original_uri=uri, x_forwarded_for=client, **headers)

    def judged(self, path, method="GET", body=None, **headers):
        """As ask(), asked again while the log has acknowledged nothing for a while: what is told so has not counted."""
        return until(lambda: next((said for said in [self.ask(path, method, body, **headers)] if said[0] != 503), None), "it is judged")

    def left(self, name, key):
        """What remains to a key, once that is known."""
        said = until(lambda: next((said for _, said in [self.check(zone=name, key=key, peek=True)] if "remaining" in said), None),
                     "it is told")
        return said["remaining"]

    def check(self, **members):
        """By JSON: status and what came."""
        status, _, body = self.ask("/v1/check", "POST", json.dumps(members))
        return status, json.loads(body)
