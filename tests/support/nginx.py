# SPDX-License-Identifier: Apache-2.0
"""A real nginx with deploy/gateways/nginx.conf."""

import os

from support.gateways import ask, example, program
from support.place import free_port, until


class Nginx:
    """nginx with the example's configuration."""

    def __init__(self, place, geo=False, key="$weir_ip", both=False, bound="1m"):
        """geo: as it stands there, and by IPv6 too; else a map. key: what the map looks up. both: by a socket of IPv6 that
        takes IPv4, too. bound: how long an old worker's connections may live on."""
        self.program, self.port = program("nginx"), free_port()
        self.map, self.log = place.write("weir.map", ""), place.write("access.log", "")
        os.makedirs(place.path("html"))
        place.write("html/index.html", "hi\n")
        temporary = "".join(f"{kind}_temp_path {place.path('tmp-' + kind)};\n"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        main = f"daemon off; pid {place.path('nginx.pid')}; error_log stderr;\n"
        if os.geteuid() == 0:
            main = "user root;\n" + main
        text = main + example(
            "nginx.conf", ("listen 80;", f"listen 127.0.0.1:{self.port};"),
            ("worker_shutdown_timeout 1m;", f"worker_shutdown_timeout {bound};"),
            *[("geo $weir_until {", f'map "{key}" $weir_until {{')] * (not geo),
            *[(f"listen 127.0.0.1:{self.port};", f"listen 127.0.0.1:{self.port}; listen [::1]:{self.port};")] * geo,
            *[(f"listen 127.0.0.1:{self.port};", f"listen [::]:{self.port} ipv6only=off;")] * both,
            ("include weir.map;", f"include {self.map};"), ("/usr/share/nginx/html", place.path("html")),
            ("http {\n", f"http {{\naccess_log {self.log} combined;\n{temporary}"))
        self._words = ["-p", place.directory, "-c", place.write("nginx.conf", text)]
        self.reload = " ".join([self.program, *self._words, "-s", "reload"])
        self.run = place.start(*self._words, program=self.program)
        until(lambda: ask(self.port), "nginx answers", running=self.run)
        self._workers = len(self._children())

    def _children(self):
        with open(f"/proc/{self.run.pid}/task/{self.run.pid}/children", encoding="ascii") as file:
            return file.read().split()

    def settled(self):
        """Whether no worker is left that a reload replaces: until it leaves, it answers as it was told before."""
        return len(self._children()) == self._workers
