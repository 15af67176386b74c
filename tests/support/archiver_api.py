# SPDX-License-Identifier: Apache-2.0
"""The archiver's API on a store that is filled by SQL: on SQLite, and on the MariaDB that tests share.

served() gives an Api for each kind of store, with rows of archiver_rows in it; each answer of it that is asked for by
get() is held against openapi.json.
"""

import contextlib
import gzip
import http.client
import json
import os
import sqlite3
import urllib.parse

from support import venv
from support.place import PATIENCE_S, ROOT, Place, until

venv.enter()

# pylint: disable=wrong-import-position,import-error
import jsonschema

_PROGRAM = os.path.join(os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release")), "tests", "archiver_api")
_BATCH = 1000
_ENDS = 20


class Answer:
    """A reply: status, headers (lower case), body (unpacked)."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.packed = status, headers, headers.get("content-encoding") == "gzip"
        self.body = gzip.decompress(body) if self.packed else body

    def json(self):
        """The body, parsed."""
        return json.loads(self.body)


def schema_of(node):
    """JSON Schema of OpenAPI 3.0's dialect, which says of null in its own way."""
    if isinstance(node, list):
        return [schema_of(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {name: schema_of(value) for name, value in node.items() if name != "nullable"}
    if node.get("nullable") and "type" in made:
        return {**made, "type": [made["type"], "null"]}
    if node.get("nullable"):
        return {"anyOf": [made, {"type": "null"}]}
    return made


def shortened(value):
    """The same with long lists without their middle: their elements are alike, and validating is slow."""
    if isinstance(value, list) and len(value) > 2 * _ENDS:
        return value[:_ENDS] + value[-_ENDS:]
    if isinstance(value, dict):
        return {name: shortened(one) for name, one in value.items()}
    return value


class Contract:
    """openapi.json, as what answers are held against."""

    def __init__(self):
        with open(os.path.join(ROOT, "archiver", "openapi.json"), encoding="utf-8") as file:
            self.document = json.load(file)
        self._components = {"components": schema_of(self.document["components"])}
        self._validators = {}

    def _validate(self, schema, value):
        name = json.dumps(schema)
        if name not in self._validators:
            self._validators[name] = jsonschema.Draft202012Validator({**self._components, **schema_of(schema)})
        self._validators[name].validate(shortened(value))

    def check(self, path, answer):
        """Fails unless the answer is one that the document has for the path."""
        if answer.status == 404 and path not in self.document["paths"]:
            self._validate({"$ref": "#/components/schemas/Error"}, answer.json())
            return
        said = self.document["paths"][path]["get"]["responses"]
        assert str(answer.status) in said, f"{path}: {answer.status} {answer.body[:300]}"
        entry = said[str(answer.status)]
        if "$ref" in entry:
            entry = self.document["components"]["responses"][entry["$ref"].rsplit("/", 1)[1]]
        if "content" not in entry:
            assert answer.body == b""
            return
        kind = answer.headers["content-type"].split(";")[0]
        assert kind in entry["content"], f"{path}: {kind}"
        if kind == "application/json":
            self._validate(entry["content"][kind]["schema"], answer.json())
            if answer.status >= 400:
                assert answer.json()["error"]["status"] == answer.status


CONTRACT = Contract()


class Api:
    """A running archiver_api, and how to ask it."""

    def __init__(self, place, sections, archiver=None):
        state = place.path("state")
        settings = {"api": "127.0.0.1:0", "api_rate": 0, **(archiver or {})}
        config = place.write("api.json", json.dumps({**sections, "archiver": settings}))
        self.program = place.start(config, state, program=_PROGRAM)
        self.database = os.path.join(state, "weir.db")
        until(lambda: self.program.out().endswith(b"\n"), "the API's port", running=self.program)
        self.port = int(self.program.out())

    def raw(self, target, method="GET", patience_s=PATIENCE_S, **headers):
        """Asks for a path with its query as it stands; headers by their names with _ for -."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience_s)
        with contextlib.closing(connection):
            connection.request(method, target, headers={name.replace("_", "-"): one for name, one in headers.items()})
            reply = connection.getresponse()
            return Answer(reply.status, {name.lower(): one for name, one in reply.getheaders()}, reply.read())

    def ask(self, resource, parameters=None, **headers):
        """Asks for /api/v1/RESOURCE: an answer that is as openapi.json says."""
        query = urllib.parse.urlencode({name: one for name, one in (parameters or {}).items() if one is not None})
        path = f"/api/v1/{resource}"
        answer = self.raw(path + (f"?{query}" if query else ""), **headers)
        CONTRACT.check(path, answer)
        return answer

    def get(self, resource, **parameters):
        """The JSON of a good answer; from_ is from."""
        if "from_" in parameters:
            parameters["from"] = parameters.pop("from_")
        answer = self.ask(resource, parameters)
        assert answer.status == 200, (resource, parameters, answer.status, answer.body)
        return answer.json()

    def insert(self, table, rows):
        """Puts rows, whose bytes are text as the store writes it."""
        raise NotImplementedError

    def end(self):
        """Ends it as systemd would."""
        assert self.program.stop() == 0, self.program.said()


class OnSqlite(Api):
    """On a file."""

    def insert(self, table, rows):
        marks = ", ".join("CAST(? AS TEXT)" if isinstance(one, bytes) else "?" for one in rows[0])
        with contextlib.closing(sqlite3.connect(self.database, timeout=PATIENCE_S)) as database, database:
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


class OnMariadb(Api):
    """On a database of the cluster's."""

    def __init__(self, place, servers, port=None, archiver=None):
        sections = servers.sections()
        if port is not None:
            sections["store"]["port"] = port
        super().__init__(place, sections, archiver)
        self.mariadb = servers.mariadb

    def insert(self, table, rows):
        with self.mariadb.connect() as connection, connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(rows[0]))
            for first in range(0, len(rows), _BATCH):
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[first:first + _BATCH])


ZONES = [{"name": "any", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}]


def on_sqlite(place, **archiver):
    """An empty one."""
    return OnSqlite(place, {"zones": ZONES}, archiver)


def started_with(place, address, **archiver):
    """The program alone, with a configuration that it may refuse."""
    config = place.write("api.json", json.dumps({"zones": ZONES, "archiver": {"api": address, **archiver}}))
    return place.start(config, place.path("state"), program=_PROGRAM)


@contextlib.contextmanager
def served(servers, rows):
    """(an Api on SQLite, one on the MariaDB of a cluster), filled."""
    with Place(None) as first, Place(None) as second:
        apis = on_sqlite(first), OnMariadb(second, servers)
        for api in apis:
            for table, some in rows.tables().items():
                api.insert(table, some)
        yield apis
        for api in apis:
            api.end()
