# SPDX-License-Identifier: Apache-2.0
"""`weir setup` for tests: gateways' configurations in a folder, and a machine that has other files than this one."""

import os
import shutil
import time

from support import cases
from support.gateways import program
from support.place import read, until
from support.traffic import FORMAT, line, sliding, source, zone

START_MS = 1000 * int(time.time())


class Setting:
    """A folder with a gateway's configuration and weir's, and `weir setup` for it."""

    def __init__(self, place, kind, main, zones=None, form=FORMAT, **more):
        self.place, self.kind, self.main = place, kind, place.path("etc", main)
        self.log = place.write("access.log", "")
        self.list = place.path("lib/gateways/nginx.map")
        self.config = place.config(zones or [zone("site", [sliding(5, "1m")], key=["ip"], id=1, block_for="1h")],
                                   [source(self.log, format=form)], name="etc/weir.json", **more)

    def run(self, *options, env=None):
        """weir setup with these options."""
        return self.place.run("setup", self.kind, "--file", self.main, "--list", self.list, "--config", self.config,
                              "--backup", self.place.path("backup"), *options, **({"env": env} if env else {}))

    def good(self, *options, env=None):
        """The same, which must go well: what it prints."""
        done = self.run(*options, env=env)
        assert done.code() == 0, (options, done.said(), done.out().decode())
        return done.out().decode()

    def tree(self):
        """Every file of the folder with its bytes, mode and what it leads to."""
        found = {}
        for folder, _, names in os.walk(self.place.path("etc")):
            for name in names:
                path = os.path.join(folder, name)
                found[path] = (os.lstat(path).st_mode, os.path.realpath(path), read(path))
        return found

    def follow(self, env=None):
        """weir run with the configuration as it was set up."""
        weir = self.place.start("run", "--config", self.config, "--state", self.place.path("state"),
                                **({"env": env} if env else {}))
        until(lambda: weir.said(), "weir runs", running=weir)
        return weir


def nginx_folder(place, port, *more):
    """A configuration as Debian has it, with a site that is a link."""
    os.makedirs(place.path("etc/conf.d"))
    os.makedirs(place.path("etc/sites-enabled"))
    place.write("etc/sites-available/default", f"""# a site; {{ is no block here
server {{
\tlisten 127.0.0.1:{port};
\tadd_header X-Site "of {{ its }} own";
\tlocation / {{
\t\treturn 200 "hi ${{uri}}\\n";
\t}}
}}
""")
    os.symlink("../sites-available/default", place.path("etc/sites-enabled/default"))
    temporary = "".join(f"{kind}_temp_path {place.path('tmp-' + kind)};\n"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    place.write("etc/nginx.conf", f"""{'user root;' * (os.geteuid() == 0)}
daemon off; pid {place.path('pid')}; error_log stderr; worker_shutdown_timeout 1m;
events {{ }}
http {{
    access_log {place.path('access.log')} combined;
    {temporary}
    upstream back {{ server 127.0.0.1:1; }}
    {''.join(more)}
    include conf.d/*.conf;
    include sites-enabled/*;
}}
""")


def haproxy_text(place, port, site):
    """A configuration of HAProxy with a frontend and what looks like one."""
    return f"""global
    maxconn 100
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend web # the site
    bind 127.0.0.1:{port}
    default_backend site
frontend raw
    mode tcp
    bind {place.path('raw.sock')}
    default_backend raw
backend site
    server one 127.0.0.1:{site}
backend raw
    mode tcp
    server one 127.0.0.1:{site}
"""


def flood(*clients):
    """More than the zone lets pass, of each."""
    return "".join(line(START_MS + i, "ann", ip=ip) for ip in clients for i in range(8))


class Apart:
    """Programs that see files of the test's own in place of some of the machine's: in a namespace of mounts."""

    def __init__(self, place, *script):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            raise cases.Skipped("a namespace of mounts needs root and unshare")
        self.place = place
        self.script = place.write("apart", "\n".join(("set -e", "mount -t tmpfs none /run", *script, 'exec "$@"')))

    def run(self, *words, code=0):
        """Runs a program to its end: what it said."""
        done = self.place.run("--mount", "sh", self.script, *words, program=program("unshare"))
        assert done.code() == code, (words, done.code(), done.said(), done.out().decode())
        return done.said() + done.out().decode()
