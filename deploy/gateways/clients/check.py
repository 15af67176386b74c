# SPDX-License-Identifier: Apache-2.0
# A page that asks weir before it serves: redis-py. A check is not sent twice, as it would count twice; who is not answered
# within 100 ms, or with an error, serves.
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

weir = redis.Redis(host="127.0.0.1", port=6390, socket_timeout=0.1, socket_connect_timeout=0.1, retry=Retry(NoBackoff(), 0))


def wait_s(key):
    """For how long this key is limited; None: it may pass."""
    try:
        limited, _, _, retry_ms, _ = weir.execute_command("WEIR.CHECK", key, "site")
    except redis.RedisError:
        return None
    return max(1, -(-retry_ms // 1000)) if limited else None


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        wait = wait_s(self.client_address[0])
        self.send_response(200 if wait is None else 429)
        if wait is not None:
            self.send_header("Retry-After", wait)
        self.send_header("Content-Length", 0)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", 8000), Page).serve_forever()
