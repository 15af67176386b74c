# SPDX-License-Identifier: Apache-2.0
# A page that asks weir before it serves: redis-py. A check is not sent twice, as it would count twice; who is not answered
# within 100 ms, or with an error, serves.
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

weir = redis.Redis(host="127.0.0.1", port=6390, socket_timeout=0.1, socket_connect_timeout=0.1, retry=Retry(NoBackoff(), 0))


def asked(key):
    """Whether this key is limited, and for how many seconds; None: no time helps."""
    try:
        limited, _, _, retry_ms, _ = weir.execute_command("WEIR.CHECK", key, "site")
    except redis.RedisError:
        return False, None
    return bool(limited), max(1, -(-retry_ms // 1000)) if retry_ms >= 0 else None


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        limited, wait = asked(self.client_address[0])
        self.send_response(429 if limited else 200)
        if wait is not None:
            self.send_header("Retry-After", wait)
        self.send_header("Content-Length", 0)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", 8000), Page).serve_forever()
