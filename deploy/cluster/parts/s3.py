# SPDX-License-Identifier: Apache-2.0
"""An S3 server that keeps objects as files, and checks signatures: s3proxy, by Java.

It is no part of what deploy/cluster/up starts: tests start their own.
"""

import datetime
import hashlib
import hmac
import os
import urllib.error
import urllib.parse
import urllib.request

from parts import jars
from parts.process import together
from parts.programs import find
from parts.server import LOCAL, Server

JARS = jars.Jars("s3proxy", "2.6.0", 43, ("org.gaul:s3proxy:2.6.0",),
                 ("s3proxy-2.6.0.jar", "jclouds-core-2.7.0.jar", "logback-classic-1.5.16.jar"))
KEY, SECRET, REGION = "weir", "a/secret+of=tests", "us-east-1"

_LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %p %m%n</pattern></encoder></appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


def _signature(secret, day, text):
    key = ("AWS4" + secret).encode()
    for part in (day, REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class S3(Server):
    """A server with the buckets that are made in it."""

    def __init__(self, place, port, name="s3"):
        """@param place  has a `directory`"""
        super().__init__(place, name)
        self.port = port

    @property
    def url(self):
        """Where clients reach it."""
        return f"http://{LOCAL}:{self.port}"

    def request(self, method, path, body=b""):
        """Sends a signed request without a query: the answer's body."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        path, hashed = urllib.parse.quote(path, safe="/-._~"), hashlib.sha256(body).hexdigest()
        headers = {"host": f"{LOCAL}:{self.port}", "x-amz-content-sha256": hashed, "x-amz-date": now}
        names, scope = ";".join(headers), f"{now[:8]}/{REGION}/s3/aws4_request"
        canonical = "\n".join([method, path, "", *(f"{name}:{value}" for name, value in headers.items()), "", names, hashed])
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, "
                                    f"Signature={_signature(SECRET, now[:8], text)}")
        request = urllib.request.Request(self.url + path, data=body if method == "PUT" else None, headers=headers,
                                         method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def make_bucket(self, bucket):
        """Makes a bucket."""
        self.request("PUT", f"/{bucket}")

    def put(self, bucket, key, body, modified_s=None):
        """Writes an object. @param modified_s  when it says that it was written; None: now"""
        self.request("PUT", f"/{bucket}/{key}", body)
        if modified_s is not None:
            os.utime(self.path("data", bucket, key), (modified_s, modified_s))

    def delete(self, bucket, key):
        """Deletes an object."""
        self.request("DELETE", f"/{bucket}/{key}")

    def making_data(self):
        yield from jars.fetching(JARS)
        os.makedirs(self.path("data"))
        os.makedirs(self.path("tmp"))

    def configure(self):
        self.write("logback.xml", _LOGGING)
        properties = {
            "s3proxy.endpoint": self.url,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "s3proxy.ignore-unknown-headers": "true",
            "jclouds.provider": "filesystem-nio2",
            "jclouds.identity": "none",
            "jclouds.credential": "none",
            "jclouds.filesystem.basedir": self.path("data"),
        }
        self.write("s3proxy.properties", "".join(f"{name}={value}\n" for name, value in properties.items()))

    def command(self):
        return [find("java"), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+PerfDisableSharedMem",
                f"-Djava.io.tmpdir={self.path('tmp')}", f"-Dlogback.configurationFile={self.path('logback.xml')}",
                "-cp", os.path.join(jars.place(JARS), "libs", "*"), "org.gaul.s3proxy.Main",
                "--properties", self.path("s3proxy.properties")]

    def ready(self):
        try:
            with urllib.request.urlopen(self.url, timeout=1):
                return True
        except urllib.error.HTTPError:
            return True  # it wants a signature
        except OSError:
            return False

    def bring_up(self):
        """Starts it, until it is ready."""
        together([self.starting()])

    def take_down(self, at_once=False):
        """Ends it; at once: as by kill -9."""
        together([self.ending(at_once)])
