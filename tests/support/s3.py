# SPDX-License-Identifier: Apache-2.0
"""S3 for tests: one real server for a script, and one that shows the faults that a real one cannot be made to show."""

import atexit
import bisect
import datetime
import hashlib
import http.server
import shutil
import tempfile
import threading
import types
import urllib.parse
import xml.sax.saxutils

from support.cases import Skipped
from support.place import free_port

from parts import s3
from parts.words import Unavailable

KEY, SECRET = s3.KEY, s3.SECRET
_PAGE = 1000
_real = []


def server():
    """The script's server; started by the first that asks, ended with the script."""
    if not _real:
        directory = tempfile.mkdtemp(prefix="weir-s3-")
        atexit.register(shutil.rmtree, directory, True)
        one = s3.S3(types.SimpleNamespace(directory=directory), free_port())
        atexit.register(one.take_down, True)
        try:
            one.bring_up()
        except Unavailable as why:
            raise Skipped(f"no S3 server on this machine: {why}") from why
        _real.append(one)
    return _real[0]


def error(code, message="no"):
    """The document of a refusal."""
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


class Fake:
    """Serves objects from memory, without signatures. Use it in a with statement.

    objects    {key: (modified_s, bytes or (size, function from an offset and a length to bytes))}
    trouble    called for each request with its path and query: None, or (code, headers, body) in place of the answer
    """

    def __init__(self, objects=None, trouble=None):
        self.objects, self.trouble = dict(objects or {}), trouble or (lambda path, query: None)
        self.keys = sorted(self.objects)
        self._tags = {}  # {id of a body: (the body, its tag)}
        self.asked, self.headers = [], []  # (path, query) of each request, and its headers
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the end of each answer waits 40 ms for an acknowledgement

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers."""
                path, _, query = self.path.partition("?")
                path, query = urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))
                bucket, host, _ = self.headers["Host"].partition(".localhost:")
                path = f"/{bucket}{path}" if host else path
                outer.asked.append((path, query))
                outer.headers.append(self.headers)
                code, headers, body = outer.trouble(path, query) or outer.answer(path, query, self.headers)
                self.send_response(code)
                for name, value in {"Content-Length": len(body), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # whoever asked has enough, or is gone
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def put(self, key, modified_s, body):
        """Adds or replaces an object."""
        self.objects[key] = (modified_s, body)
        self.keys = sorted(self.objects)

    def delete(self, key):
        """Removes an object."""
        del self.objects[key]
        self.keys = sorted(self.objects)

    def _etag(self, body):
        tag = self._tags.get(id(body))
        if tag is None or tag[0] is not body:
            text = body if isinstance(body, bytes) else str(body[0]).encode()
            tag = self._tags[id(body)] = (body, f'"{hashlib.md5(text).hexdigest()}"')
        return tag[1]

    def answer(self, path, query, headers):
        """What an S3 answers."""
        key = path.split("/", 2)[2] if path.count("/") > 1 else ""
        return self._listing(query) if not key else self._object(key, headers)

    def _listing(self, query):
        after = query.get("continuation-token", query.get("start-after", ""))
        prefix, found, more = query.get("prefix", ""), [], False
        for at in range(bisect.bisect_right(self.keys, after), len(self.keys)):
            key = self.keys[at]
            if key.startswith(prefix):
                if len(found) == _PAGE:
                    more = True
                    break
                found.append(key)
        return 200, {"Content-Type": "application/xml"}, self._page(found, more)

    def _page(self, found, more):
        parts = ["<?xml version='1.0'?><ListBucketResult>",
                 f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"]
        if more:
            parts.append(f"<NextContinuationToken>{xml.sax.saxutils.escape(found[-1])}</NextContinuationToken>")
        for key in found:
            modified_s, body = self.objects[key]
            size = len(body) if isinstance(body, bytes) else body[0]
            parts.append(f"<Contents><Key>{xml.sax.saxutils.escape(key)}</Key><LastModified>{_time(modified_s)}</LastModified>"
                         f"<ETag>{self._etag(body)}</ETag><Size>{size}</Size></Contents>")
        return "".join([*parts, "</ListBucketResult>"]).encode()

    def _object(self, key, headers):
        if key not in self.objects:
            return 404, {}, error("NoSuchKey")
        _, body = self.objects[key]
        tag = self._etag(body)
        if headers.get("If-Match", tag) != tag:
            return 412, {}, error("PreconditionFailed")
        first, last = (int(number) for number in headers["Range"].partition("=")[2].split("-"))
        size = len(body) if isinstance(body, bytes) else body[0]
        if first >= size:
            return 416, {}, error("InvalidRange")
        length = min(last + 1, size) - first
        part = memoryview(body)[first:first + length] if isinstance(body, bytes) else body[1](first, length)
        return 206, {"ETag": tag, "Content-Range": f"bytes {first}-{first + length - 1}/{size}"}, part


def _time(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
