# SPDX-License-Identifier: Apache-2.0
"""A `weir run` that answers checks by HTTP, and who asks it."""

import http.client
import json

from support.place import PATIENCE_S, free_port, until
from support.traffic import source


class Weir:
    """It, its port, and the port of its pages."""

    def __init__(self, place, zones, *, sources=None, listen=None, state="state", threads=2, **checks):
        self.port, self.pages = free_port(), free_port()
        config = place.config(zones, sources or [source(place.write("log", ""))], bus={"partitions": 4},
                              limiter={"threads": threads, "memory": "64MiB"}, checks=checks,
                              listen={"check_http": f"127.0.0.1:{self.port}", "http": f"127.0.0.1:{self.pages}", **(listen or {})})
        self.process = place.start("run", "--config", config, "--state", place.path(state), "--decisions", place.path("out"))
        until(lambda: "following" in self.process.said(), "weir follows", running=self.process)

    def ready(self, name, before=""):
        """Once every partition answers: each does when its marker has come back."""
        with Caller(self.port) as caller:
            for number in range(32):
                until(lambda key=f"{before}other-{number}": caller.check(zone=name, key=key, peek=True)[0] == 200, "checks are answered",
                      running=self.process)
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

    def check(self, **members):
        """By JSON: status and what came."""
        status, _, body = self.ask("/v1/check", "POST", json.dumps(members))
        return status, json.loads(body)
