#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx's old workers: they leave some time after a reload whatever their connections do, or weir says that they stay."""

import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.gateways import ask, program
from support.nginx import Nginx
from support.place import free_port, read, until
from support.setup import Apart, Setting, nginx_folder

BOUND = "worker_shutdown_timeout 1m;"


def test_workers_leave_though_a_connection_stays(place):
    """With the example: a download that does not end is of an old worker after a reload."""
    nginx = Nginx(place, bound="1s")
    with open(place.write("html/large", ""), "wb") as file:
        file.truncate(100 << 20)
    with socket.create_connection(("127.0.0.1", nginx.port)) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        place.good("-c", nginx.reload, program="/bin/sh")
        until(lambda: not nginx.settled(), "a worker is being replaced", running=nginx.run)
        until(nginx.settled, "it has left", running=nginx.run)
    nginx.run.stop()


def test_setup_says_where_nothing_ends_them(place):
    program("nginx")
    nginx_folder(place, free_port())
    setting = Setting(place, "nginx", "nginx.conf")
    bounded = read(setting.main).decode()
    assert bounded.count(BOUND) == 1
    assert "worker_shutdown_timeout" not in setting.good()
    bare = bounded.replace(BOUND, f"# {BOUND}\n")
    for text, told in ((bare, True), (bounded.replace(BOUND, "worker_shutdown_timeout 0;"), True),
                       (f"include {place.write('etc/main/workers.conf', BOUND)};\n{bare}", False)):
        place.write("etc/nginx.conf", text)
        said = setting.good()
        assert (f"\n  {BOUND}\n" in said) == told and ("has no worker_shutdown_timeout" in said) == told, said
    # What it says to add is what nginx takes, and it is all.
    place.write("etc/nginx.conf", bare)
    setting.good("--apply")
    place.write("etc/nginx.conf", f"{BOUND}\n{read(setting.main).decode()}")
    place.good("-t", "-c", setting.main, program=program("nginx"))
    assert setting.good("--apply").startswith("Nothing to do")


def test_doctor_says_where_nothing_ends_them(place):
    port = free_port()
    nginx_folder(place, port)
    setting = Setting(place, "nginx", "nginx.conf")
    setting.good("--apply")
    bounded = read(setting.main).decode()
    nginx = place.start("-c", setting.main, program=program("nginx"))
    until(lambda: ask(port), "nginx answers", running=nginx)
    machine = place.path("machine")
    for text, told in ((bounded, False), (bounded.replace(BOUND, ""), True)):
        place.write("etc/nginx.conf", text)
        apart = Apart(place, f"rm -rf {machine} && cp -a /etc {machine} && mkdir -p {machine}/nginx",
                      f"cp {setting.main} {machine}/nginx/nginx.conf",
                      f"cp -r {place.path('etc/conf.d')} {place.path('etc/sites-enabled')} {place.path('etc/sites-available')} "
                      f"{machine}/nginx/", f"mount --bind {machine} /etc")
        said = apart.run("sh", "-c", f"{place.weir} doctor --config {setting.config} --state {place.path('none')} || true")
        assert ("/etc/nginx/nginx.conf has no worker_shutdown_timeout" in said) == told, said
        assert "blocks nobody by it" not in said, said
    nginx.stop()


if __name__ == "__main__":
    cases.main(globals())
