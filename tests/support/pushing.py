# SPDX-License-Identifier: Apache-2.0
"""A weir that listens for what is pushed by HTTP, and senders that do not give up."""

import base64
import gzip
import http.client
import json
import threading
import time

from support import metrics
from support.place import PATIENCE_S, free_port, lines_of, until
from support.traffic import sliding, zone

TOKEN = "a-token-of-a-test"
FORMAT = {"type": "json", "unit": "ms"}


def http_source(place, port, **more):
    """The source."""
    members = {"type": "http", "name": "edge", "listen": f"127.0.0.1:{port}", "format": FORMAT,
               "token": {"file": place.write("token", TOKEN + "\n")}, **more}
    return {name: value for name, value in members.items() if value is not None}


class Receiver:
    """A `weir run` with the source, which may be killed and started again."""

    def __init__(self, place, zones=None, **more):
        self.place, self.port, self.pages = place, free_port(), free_port()
        self.zones = zones or [zone("site", [sliding(1, "1d")])]
        self.config = place.config(self.zones, [http_source(place, self.port, **more)],
                                   listen={"http": f"127.0.0.1:{self.pages}"})
        self.state = place.path("state")
        self.weir = None

    def start(self, *words, **more):
        """Starts it: the weir."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.state, "--decisions",
                                     self.place.path("out"), "--dead-letter", self.place.path("dead"), "--summary",
                                     "json", *words, **more)
        until(lambda: "following" in self.weir.said(), "it listens", running=self.weir)
        return self.weir

    def value(self, name, **labels):
        """A metric of the source."""
        page = metrics.scrape(self.pages)
        return page.value(name, source="push:edge", **labels) if page else None

    def blocked(self):
        """Who is blocked, sorted."""
        return sorted(decision["key"][0] for decision in lines_of(self.place.path("out"))
                      if decision["action"] == "block")

    def ask(self, method, path, body=None, token=TOKEN, **fields):
        """One request: (status, body, the answer's fields)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            if token is not None:
                headers.setdefault("Authorization", f"Bearer {token}")
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers
        finally:
            connection.close()

    def post(self, body, path="/ingest", **fields):
        """A POST that is taken: what it was answered."""
        status, said, _ = self.ask("POST", path, body, **fields)
        assert 200 <= status < 300, (status, said)
        return said


def lines(users, at_ms=None):
    """A line for each user, now."""
    at_ms = at_ms or int(time.time() * 1000)
    return "".join(json.dumps({"time": at_ms, "user": user}) + "\n" for user in users).encode()


def firehose(data, request_id):
    """(body, fields) of such a request."""
    records = [{"data": base64.b64encode(part).decode()} for part in data]
    body = json.dumps({"requestId": request_id, "timestamp": 1, "records": records})
    return body, {"X_Amz_Firehose_Request_Id": request_id, "X_Amz_Firehose_Access_Key": TOKEN, "token": None,
                  "Content_Type": "application/json"}


class Sender(threading.Thread):
    """Sends batches of users with an id each, one after another, and each until it is answered."""

    def __init__(self, receiver, name, with_ids=True, per_batch=5):
        super().__init__(daemon=True)
        self.receiver, self.label, self.with_ids, self.per_batch = receiver, name, with_ids, per_batch
        self.users, self.again, self.ending = [], 0, threading.Event()

    def run(self):
        number = 0
        while not self.ending.is_set():
            users = [f"{self.label}-{number}-{i}" for i in range(self.per_batch)]
            body = gzip.compress(lines(users)) if number % 3 == 0 else lines(users)
            fields = {"Idempotency_Key": f"{self.label}-{number}"} if self.with_ids else {}
            if number % 3 == 0:
                fields["Content_Encoding"] = "gzip"
            self.until_taken(body, fields)
            self.users += users
            number += 1

    def until_taken(self, body, fields):
        """Sends one until it is answered."""
        while True:
            try:
                status, said, _ = self.receiver.ask("POST", "/ingest", body, **fields)
                if status == 200:
                    return
                assert status == 503, (status, said)
            except (OSError, http.client.HTTPException):
                pass
            self.again += 1
            time.sleep(0.02)

    def end(self):
        """Ends it after its batch: the users that it has sent."""
        self.ending.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the sender waits for an answer"
        return self.users
