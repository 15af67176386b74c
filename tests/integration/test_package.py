#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package: what it holds, how it comes, is replaced and goes, on a machine that systemd runs."""

import hashlib
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.machine import Machine
from support.package import fetched, packed, run
from support.place import ROOT, until

PROGRAMS = ("weir", "weir-collector", "weir-limiter", "weir-archiver")
UNITS = ("weir.service", "weir-collector.service", "weir-limiter.service", "weir-archiver.service", "weir-nginx.service",
         "weir-subscribe@.service")
EXPOSURE_MOST = 20  # tenths
# What any program, and the package's own removal, leaves in a machine that runs.
OTHERS = re.compile(r"/(proc|sys|dev|run|tmp|var/(log|cache|tmp)|var/lib/(dpkg|systemd|apt)|root)(/|$)"
                    r"|/etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd\.lock)-?$")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def unpacked(place, deb):
    root = place.path("unpacked")
    assert run("dpkg-deb", "-R", deb, root).returncode == 0
    return root


def test_a_target_is_moved_as_systemd_read_it(place):
    """The piece of the package's script, in a folder of its own."""
    with open(os.path.join(ROOT, "deploy/debian/postinst"), encoding="utf-8") as file:
        piece = re.search(r"\n(\tfor env in .*?\n\tdone\n)", file.read(), re.S)[1]
    for name, env in {"last": "TARGET=file:/a\nOPTIONS=x\n  TARGET=file:/b  \n", "quoted": "TARGET='redis://:a b@c'\t\n",
                      "none": "OPTIONS=--to TARGET=\n", "dropped": "TARGET=file:/c\n", "full": "TARGET=file:/d\n"}.items():
        place.write(f"etc/weir/subscribe-{name}.env", env)
    place.write("etc/weir/subscribe-full.target", "file:/e\n")
    place.write("etc/systemd/system/weir-subscribe@dropped.service.d/own.conf", "ExecStart=weir subscribe --to ${TARGET}\n")
    place.write("etc/systemd/system/weir-subscribe@last.service.d/own.conf", "WantedBy=multi-user.target\n")
    done = run("sh", "-ec", "chgrp() { :; }\n" + piece.replace("/etc/", place.path("etc") + "/"))
    assert done.returncode == 0, done
    written = {name: open(place.path("etc/weir", name), encoding="utf-8").read() for name in os.listdir(place.path("etc/weir"))}
    assert written == {
        "subscribe-last.target": "file:/b\n", "subscribe-last.env": "OPTIONS=x\n",
        "subscribe-quoted.target": "redis://:a b@c\n", "subscribe-quoted.env": "",
        "subscribe-none.env": "OPTIONS=--to TARGET=\n",
        "subscribe-dropped.target": "file:/c\n", "subscribe-dropped.env": "TARGET=file:/c\n",
        "subscribe-full.target": "file:/e\n", "subscribe-full.env": "TARGET=file:/d\n"}, written


def test_it_holds_what_a_machine_needs(place):
    root = unpacked(place, packed(place, "out"))
    found = {os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names}
    wanted = {*(f"usr/bin/{name}" for name in PROGRAMS), *(f"usr/lib/systemd/system/{name}" for name in UNITS),
              "usr/lib/sysusers.d/weir.conf", "usr/lib/tmpfiles.d/weir.conf",
              "etc/weir/weir.json", "usr/share/weir/weir.schema.json", "usr/share/weir/weir.test.schema.json", "usr/share/doc/weir/copyright",
              "usr/share/doc/weir/RUNBOOK.md",
              "usr/share/doc/weir/changelog.gz", "usr/share/man/man1/weir.1.gz", "usr/share/man/man5/weir.json.5.gz",
              "usr/share/man/man8/weir-limiter.8.gz", "usr/share/bash-completion/completions/weir",
              "usr/share/zsh/vendor-completions/_weir", "usr/share/fish/vendor_completions.d/weir.fish",
              *(f"usr/share/doc/weir/examples/{name}" for name in ("nginx.conf", "haproxy.cfg", "weir-alerts.yaml",
                                                                    "weir-dashboard.json", "weir.test.json"))}
    assert wanted <= found, wanted - found
    with open(os.path.join(root, "DEBIAN/conffiles"), encoding="ascii") as file:
        assert file.read() == "/etc/weir/weir.json\n"
    for name in PROGRAMS:
        assert run(os.path.join(root, "usr/bin", name), "--version").stdout.startswith(name + " "), name
    done = run(os.path.join(root, "usr/bin/weir"), "validate", "--config", os.path.join(root, "etc/weir/weir.json"))
    assert done.returncode == 0 and done.stdout.count("in shadow mode") == 2, done.stdout
    for unit in UNITS:
        with open(os.path.join(root, "usr/lib/systemd/system", unit), encoding="utf-8") as file:
            assert "/usr/local" not in file.read().replace("in /usr/local", ""), unit


def test_units_expose_little(place):
    root = unpacked(place, packed(place, "out"))
    if shutil.which("systemd-analyze") is None:
        raise cases.Skipped("no systemd-analyze here (deploy/packages gateways)")
    for unit in UNITS:
        path = os.path.join(root, "usr/lib/systemd/system", unit)
        instance = place.path(unit.replace("@.", "@edge."))
        shutil.copy(path, instance)
        done = run("systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_MOST}", instance)
        assert done.returncode == 0 and "Overall exposure level" in done.stdout, done.stdout[-1500:]


def test_the_same_source_gives_the_same_bytes(place):
    first, second = packed(place, "out"), packed(place, "second")
    assert sha256(first) == sha256(second)
    assert sha256(first.replace(".deb", ".spdx.json")) == sha256(second.replace(".deb", ".spdx.json"))
    other = packed(place, "other", SOURCE_DATE_EPOCH="1700000000")
    assert sha256(first) != sha256(other), "no time is in it at all"


def test_lintian_finds_nothing(place):
    if shutil.which("lintian") is None:
        raise cases.Skipped("no lintian here (deploy/packages install)")
    done = run("lintian", "--allow-root", "--fail-on", "error,warning", packed(place, "out"))
    assert done.returncode == 0 and not re.search(r"^[EW]:", done.stdout, re.M), done.stdout


def test_the_sbom_lists_what_is_linked(place):
    deb = packed(place, "out")
    with open(deb.replace(".deb", ".spdx.json"), encoding="utf-8") as file:
        document = json.load(file)
    for member in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages",
                   "relationships"):
        assert document[member], member
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT" and re.match(r"https?://[^#]+$", document["documentNamespace"])
    created = document["creationInfo"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created["created"])
    assert all(re.match(r"(Tool|Person|Organization): \S", one) for one in created["creators"])
    ids = {document["SPDXID"]}
    for part in document["packages"]:
        assert part["name"] and part["downloadLocation"] and part["versionInfo"], part
        assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", part["SPDXID"]) and part["SPDXID"] not in ids, part
        assert part["licenseDeclared"] not in ("", "NOASSERTION"), f"{part['name']}: what is its licence?"
        ids.add(part["SPDXID"])
    related = {(one["spdxElementId"], one["relationshipType"], one["relatedSpdxElement"])
               for one in document["relationships"]}
    assert {end for first, _, second in related for end in (first, second)} == ids
    assert ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-weir") in related
    # Every library that dpkg knows a package of is there.
    depends = run("dpkg-deb", "-f", deb, "Depends").stdout
    libraries = {name for name in re.findall(r"(?:^|, )((?:lib|zlib)[^ ,]+)", depends)}
    assert libraries <= {part["name"] for part in document["packages"]}, depends


# ---- on a machine ----

def files_of(machine):
    said = machine.do("find / -xdev \\( -path /proc -o -path /sys \\) -prune -o -print")
    return {line for line in said.splitlines() if not OTHERS.match(line)}


def main_pid(machine, unit):
    return machine.do(f"systemctl show -P MainPID {unit}.service").strip()


def is_running(machine):
    return machine.run("systemctl", "is-active", "weir.service")[1].strip() == "active"


def test_it_comes_and_goes(place):
    old, new = packed(place, "old", WEIR_PACKAGE_VERSION="0.0.9"), packed(place, "out")
    with Machine(fetched([old, new])) as machine:
        # A machine without a log of nginx, and with a journal in which sshd has said nothing.
        machine.do("systemctl stop nginx && rm -rf /var/log/nginx")
        machine.do("apt-get install -q -y --download-only /root/weir_0.0.9_*.deb")
        before = files_of(machine)
        machine.do("apt-get install -q -y /root/weir_0.0.9_*.deb")
        until(lambda: is_running(machine), "weir runs")
        assert machine.do("systemctl is-enabled weir.service").strip() == "enabled"
        assert machine.run("systemctl", "is-enabled", "weir-limiter.service")[1].strip() == "disabled"
        assert machine.do("stat -c '%U %G %a' /etc/weir /etc/weir/weir.json /var/lib/weir/gateways").split("\n")[:3] == [
            "root weir 750", "root weir 640", "weir weir 755"]
        until(lambda: "/var/log/nginx/access*.log: matches no file yet" in machine.do("journalctl -q -u weir.service"),
              "it says what it waits for")
        assert machine.do("curl -sS http://127.0.0.1:9464/healthz") == "ok\n"
        # The log comes, and is picked up.
        machine.do("mkdir /var/log/nginx && systemctl start nginx && chmod 755 /var/log/nginx")
        machine.do("curl -sS -o /dev/null http://127.0.0.1/")
        lines = 'weir_source_lines_total{source="/var/log/nginx/access.log"} '
        until(lambda: re.search(r"^weir_collector_lines_total\S* [1-9]|^weir_source_lines_total\S* [1-9]",
                                machine.do("curl -sS http://127.0.0.1:9464/metrics"), re.M), f"{lines}1")

        # A second service of the package, which the operator has started.
        machine.do("echo file:/var/lib/weir/subscribe-edge/list >/etc/weir/subscribe-edge.target && "
                   "echo 'OPTIONS=--state /var/lib/weir' >/etc/weir/subscribe-edge.env && "
                   "systemctl start weir-subscribe@edge")
        # And one as it was written before: its target, and the password in it, were in the command line.
        machine.do("echo 'TARGET=\"redis://:pass word@127.0.0.1:1\"\nOPTIONS=--zone site' >/etc/weir/subscribe-old.env")
        # nginx was reloaded by a path unit.
        wants = "/etc/systemd/system/multi-user.target.wants/weir-nginx.path"
        machine.do(f"ln -s /lib/systemd/system/weir-nginx.path {wants}")
        second = main_pid(machine, "weir-subscribe@edge")

        # An upgrade: what was edited stays, and the new programs run.
        first = main_pid(machine, "weir")
        machine.do("sed -i 's/\"block_for\": \"10m\"/\"block_for\": \"20m\"/' /etc/weir/weir.json")
        machine.do("apt-get install -q -y /root/" + os.path.basename(new))
        until(lambda: is_running(machine), "weir runs again")
        assert main_pid(machine, "weir") not in (first, "0")
        assert main_pid(machine, "weir-subscribe@edge") not in (second, "0")
        assert machine.do("systemctl is-enabled weir-nginx && systemctl is-active weir-nginx") == "enabled\nactive\n"
        machine.do(f"! ls -l {wants}")
        assert machine.do("cat /etc/weir/subscribe-old.target") == "redis://:pass word@127.0.0.1:1\n"
        assert machine.do("cat /etc/weir/subscribe-old.env") == "OPTIONS=--zone site\n"
        assert machine.do("stat -c '%U %G %a' /etc/weir/subscribe-old.target").strip() == "root weir 640"
        assert '"block_for": "20m"' in machine.do("cat /etc/weir/weir.json")
        assert machine.do("stat -c '%U %G %a' /etc/weir/weir.json").strip() == "root weir 640"
        assert machine.do("weir list --state /var/lib/weir"), "the state can be read"

        # It goes, and its configuration stays; then all of it goes.
        machine.do("apt-get remove -q -y weir")
        assert not is_running(machine) and main_pid(machine, "weir-subscribe@edge") == "0"
        assert os.path.exists(machine.file("/etc/weir/weir.json"))
        machine.do("apt-get purge -q -y weir && apt-get autoremove -q -y --purge")
        left = files_of(machine) - before
        assert not left, sorted(left)


def test_what_is_the_operators_stays(place):
    deb = packed(place, "out")
    with Machine(fetched([deb])) as machine:
        machine.do("apt-get install -q -y /root/" + os.path.basename(deb))
        own = "/etc/systemd/system/weir.service.d/override.conf"
        machine.do("weir setup nginx --apply --reload && weir setup nft --apply --reload")
        machine.do(f"echo '[Service]' >{own} && echo '{{' >/etc/weir/weir.json")
        # The configuration is broken: the lines go even so, and it is said what could not be done.
        said = machine.do("apt-get remove -q -y weir")
        assert 'weir setup: the entry of "gateways" for nginx-geo:' in said, said
        machine.do("nginx -t && ! grep -r weir /etc/nginx /etc/nftables.conf && ! nft list table inet weir")
        # Files of the operator that bear setup's names, and one that names the list.
        kept = "/etc/nginx/conf.d/weir.conf", "/etc/nftables-weir.conf", own
        machine.do("apt-get install -q -y /root/" + os.path.basename(deb))
        machine.do(f"echo 'geo $x {{ default 0; include /var/lib/weir/gateways/nginx.map; }}' >{kept[0]}")
        machine.do(f"echo 'table inet weir {{ }}' >{kept[1]} && nft -f {kept[1]}")
        machine.do(": >/var/lib/weir/gateways/nginx.map && nginx -t && apt-get purge -q -y weir")
        machine.do(f"cat {' '.join(kept)} && nft list table inet weir && nginx -t")
        machine.do("ls /var/backups/weir/*nginx*")
        assert machine.do("find /var/lib/weir -type f -size -1").strip() == "/var/lib/weir/gateways/nginx.map"


if __name__ == "__main__":
    cases.main(globals())
