#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir setup` in a cluster, where subscribers keep the gateways' lists: what it says is all that they need."""

import json
import os
import re
import shlex
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.gateways import program
from support.network import Network
from support.place import ROOT, free_port, read, until
from support.setup import Apart, Setting, haproxy_text, nginx_folder
from support.traffic import sliding, zone

CLUSTER = {"type": "kafka", "brokers": "127.0.0.1:1"}
MIXED = [zone("site", [sliding(5, "1m")], key=["ip"], id=1), zone("user", [sliding(5, "1m")], key=["user"], id=2)]


def test_a_subscriber_of_a_cluster_gets_all_that_an_entry_has(place):
    program("nginx"), program("haproxy")  # pylint: disable=expression-not-assigned
    nginx_folder(place, free_port())
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    for kind, main, more in (("nginx", "nginx.conf", {"reload": f"nginx -s reload -c {place.path('etc/nginx.conf')}"}),
                             ("haproxy", "haproxy.cfg", {"map": place.path("etc/weir.map")})):
        setting = Setting(place, kind, main, zones=MIXED, bus=CLUSTER)
        for zones in (["site"], ["user", "site"]):
            said = setting.good(*(word for name in zones if len(zones) > 1 for word in ("--zone", name)))
            (command,) = re.findall(r"^In a cluster, start here: (.*)$", said, re.M)
            words = shlex.split(command)
            assert words[:2] == ["weir", "subscribe"], words
            options = list(zip(words[2::2], words[3::2]))
            assert [value for name, value in options if name == "--zone"] == zones, options
            assert {name[2:]: value for name, value in options if name != "--zone"} == {
                "config": setting.config, "to": f"nginx-geo:{setting.list}" if kind == "nginx" else "haproxy:/run/haproxy/weir.sock",
                **more}, options
            assert len(words) % 2 == 0
        # What it says is a command that runs: it waits for the brokers.
        weir = place.start(*words[1:2], *words[2:])
        until(lambda: "127.0.0.1:1" in weir.said(), "it asks for its brokers", running=weir)
        assert weir.stop() == 0, weir.said()
        # Where none is fit, nobody guesses, nor where they are not known.
        for zones, words in ((MIXED[1:], "no zone counts by one address"), ([], "has no zones")):
            setting = Setting(place, kind, main, zones=zones or MIXED, bus=CLUSTER)
            if not zones:
                place.write("etc/weir.json", json.dumps({"bus": CLUSTER}))
            done = setting.run("--apply")
            assert done.code() == 2 and words in done.said() and "--zone" in done.said(), done.said()
            assert "--zone user" in setting.good("--zone", "user")


def test_what_goes_into_the_files_of_the_unit_of_a_cluster(place):
    """With systemd: files of weir-subscribe@NAME, a list that it may write, and the right to change rules."""
    Network(place)
    nginx_folder(place, free_port())
    calls = place.write("calls", "")
    unit = read(os.path.join(ROOT, "deploy/systemd/weir-subscribe@.service")).decode()
    for name in ("nginx", "systemctl", "nft"):
        os.chmod(place.write(f"bin/{name}", f'#!/bin/sh\necho {name} "$@" >>{calls}\n'
                             f'if [ "$1" = -V ]; then echo --conf-path={place.path("etc/nginx.conf")}; fi\n'), 0o755)
    Setting(place, "nft", "nftables.conf", zones=MIXED, bus=CLUSTER)
    machine, lib = place.path("machine"), place.path("machine-lib")
    os.makedirs(lib)
    shutil.copytree("/etc", machine, symlinks=True)
    for folder in ("weir", "systemd/system/weir.service.d"):
        os.makedirs(os.path.join(machine, folder), exist_ok=True)
    shutil.copy(place.path("etc/weir.json"), os.path.join(machine, "weir/weir.json"))
    place.write("machine/nftables.conf", "flush ruleset\n")
    # As an earlier setup has written it, for a service that keeps nothing in a cluster.
    place.write("machine/systemd/system/weir.service.d/nft.conf", "# weir.service keeps a list of nftables: `weir setup nft` made this.\n")
    shutil.copy(os.path.join(ROOT, "deploy/systemd/weir-nginx.service"), os.path.join(machine, "systemd/system"))
    place.write("machine/systemd/system/weir-own-nginx.service", "[Service]\nExecStart=weir watch /srv/own.map -- nginx -s reload\n")
    apart = Apart(place, "mkdir -p /run/systemd/system", f"PATH={place.path('bin')}:$PATH", f"mount --bind {machine} /etc",
                  f"mount --bind {lib} /var/lib")
    for kind, to in (("nft", "nft:inet/weir/blocked4,blocked6"), ("nginx", "nginx-geo:/var/lib/weir/gateways/nginx.map")):
        words = (place.weir, "setup", kind, "--backup", place.path("backup"))
        said = apart.run(*words, "--apply")
        lines = re.findall(r"^  (echo .*|systemctl enable .*subscribe.*)$", said, re.M)
        assert len(lines) == 3 and f"weir-subscribe@{kind} && systemctl restart" in lines[2], said
        apart.run("sh", "-c", "; ".join(lines[:2]))
        assert read(os.path.join(machine, f"weir/subscribe-{kind}.target")).decode() == to + "\n"
        assert read(os.path.join(machine, f"weir/subscribe-{kind}.env")).decode() == "OPTIONS=--zone site\n"
        assert f"--config /etc/weir/weir.json --to {to} --zone site\n" in said and "systemctl restart weir\n" not in said, said
        assert ("systemctl edit" in said, "ReadWritePaths=-/var/lib/weir/gateways\n" in unit) == (False, True), said
        # Without a service that reloads nginx, the unit could not.
        if kind == "nginx":
            assert "weir-subscribe@nginx keeps" not in apart.run(*words, "--list", "/srv/nginx.map")
            assert "ReadWritePaths=" in apart.run(*words, "--list", "/srv/own.map")
        said = apart.run(*words, "--remove", "--apply")
        assert f"systemctl disable --now weir-subscribe@{kind}" in said, said
        if kind == "nft":
            apart.run(*words, "--apply", "--reload")
            drop_in = read(os.path.join(machine, "systemd/system/weir-subscribe@nft.service.d/nft.conf")).decode()
            assert "CAP_NET_ADMIN" in drop_in and not os.path.exists(
                os.path.join(machine, "systemd/system/weir.service.d/nft.conf"))
            assert b"systemctl try-restart weir-subscribe@nft.service\n" in read(calls), read(calls)


if __name__ == "__main__":
    cases.main(globals())
