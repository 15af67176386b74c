# SPDX-License-Identifier: Apache-2.0
"""Servers that a zone's `exempt` asks: of lists, and of names of robots."""

import http.server
import socket
import struct
import threading


class ListServer:
    """Gives lists: {path: bytes}, which may change."""

    def __init__(self, lists):
        class Handler(http.server.BaseHTTPRequestHandler):
            """Other paths are not found."""
            def do_GET(self):  # pylint: disable=invalid-name
                body = lists.get(self.path, b"")
                self.send_response(200 if body else 404)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        """Nobody is answered any more."""
        self._server.shutdown()
        self._server.server_close()


class NameServer:
    """A name server of few names: {(name, type): bytes of the answer}."""

    def __init__(self, records):
        self._records = records
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @staticmethod
    def name(text):
        """A name as messages have it."""
        return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".")) + b"\0"

    def _serve(self):
        while True:
            query, client = self._socket.recvfrom(1024)
            end = query.index(b"\0", 12) + 1
            question, kind = query[12:end + 4], query[end + 1]
            data = self._records.get((query[12:end].lower(), kind))
            answer = b"" if data is None else b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data
            code = 0x8180 if data is not None else 0x8183
            self._socket.sendto(query[:2] + struct.pack(">HHHHH", code, 1, data is not None, 0, 0) + question + answer, client)
