# SPDX-License-Identifier: Apache-2.0
"""A NATS server with JetStream, whose streams lie on disk."""

import json
import socket

from parts.programs import find
from parts.server import LOCAL, Server

PAYLOAD_MAX_BYTES = 64 * 1024 * 1024


class Nats(Server):
    """One server. Further settings, in NATS's own words, may be added to it."""

    def __init__(self, cluster, name="nats"):
        super().__init__(cluster, name)
        self.port = cluster.settings["nats"]["port"]
        self.more = cluster.settings["nats"].get("more", "")

    def configure(self):
        self.write("nats.conf",
                   f"listen: \"{LOCAL}:{self.port}\"\n"
                   f"max_payload: {PAYLOAD_MAX_BYTES}\n"
                   f"jetstream {{ store_dir: {json.dumps(self.path('data'))} }}\n"
                   f"{self.more}\n")

    def command(self):
        return [find("nats-server"), "-c", self.path("nats.conf")]

    def ready(self):
        """Whether it says who it is, and JetStream is there."""
        try:
            with socket.create_connection((LOCAL, self.port), timeout=1) as connection:
                with connection.makefile("rb") as stream:
                    return b'"jetstream":true' in stream.readline()
        except OSError:
            return False
