#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir setup`: from the gateway's own configuration to the first refusal, and back to every byte that stood there."""

import grp
import json
import os
import re
import shutil
import signal
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.gateways import Site, always, ask, program, seconds_left
from support.network import Network, Outside
from support.place import PATIENCE_S, ROOT, free_port, read, until
from support.setup import START_MS, Apart, Setting, flood, haproxy_text, nginx_folder
from support.traffic import line, sliding, zone

def test_nginx_from_setup_to_429(place):
    program("nginx")
    port = free_port()
    nginx_folder(place, port)
    setting = Setting(place, "nginx", "nginx.conf", form="combined")
    os.chmod(setting.config, 0o640)
    before = setting.tree()
    shown = setting.good()
    assert "add --apply" in shown and "+    include" in shown and setting.tree() == before, shown
    assert not os.path.exists(setting.list) and not os.path.exists(place.path("backup"))
    shown = setting.good("--apply")
    assert "nginx -s reload" in shown and "systemctl restart weir" in shown, shown
    after = setting.tree()
    assert setting.good("--apply").startswith("Nothing to do") and setting.tree() == after
    assert os.stat(setting.config).st_mode & 0o777 == 0o640
    assert os.path.islink(place.path("etc/sites-enabled/default"))
    assert len(os.listdir(place.path("backup"))) == 2, "the site and weir's configuration"

    nginx = place.start("-c", setting.main, program=program("nginx"))
    until(lambda: ask(port), "nginx answers", running=nginx)
    weir = setting.follow()
    passed = 0
    end_s = time.monotonic() + 2 * PATIENCE_S
    while ask(port)[0] == 200:
        passed += 1
        assert time.monotonic() < end_s, weir.said()
        time.sleep(0.02)
    assert passed >= 5
    until(lambda: always(port, 429), "the client stays out", running=weir)
    assert 3500 < seconds_left(ask(port)[1]) < 3700
    assert ask(port, "127.0.0.2") == (200, None)
    assert weir.stop() == 0, weir.said()
    setting.good("--remove", "--apply", "--reload")
    assert setting.tree() == before
    until(lambda: always(port, 200), "nginx has forgotten it", running=nginx)
    assert setting.good("--remove", "--apply").startswith("Nothing to do")
    nginx.stop()


def test_no_copy_replaces_another(place):
    program("haproxy")
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    setting = Setting(place, "haproxy", "haproxy.cfg")
    texts = []
    for i in range(5):
        texts += [place.write("etc/haproxy.cfg", read(setting.main) + f"# {i}\n".encode()) and read(setting.main)]
        setting.good(*(("--remove",) if i % 2 else ()), "--apply")
    kept = [read(place.path("backup", name)) for name in os.listdir(place.path("backup")) if "haproxy.cfg" in name]
    assert sorted(kept) == sorted(texts), os.listdir(place.path("backup"))


def test_what_nginx_refuses_is_put_back(place):
    program("nginx")
    nginx_folder(place, free_port(), "a_word_that_nginx_does_not_know on;")
    setting = Setting(place, "nginx", "nginx.conf")
    before = setting.tree()
    done = setting.run("--apply")
    assert done.code() == 1 and "a_word_that_nginx" in done.said() and "as it was before" in done.said(), done.said()
    assert setting.tree() == before and not os.path.exists(setting.list)


def test_who_interrupts_it_finds_all_as_it_was(place):
    program("nginx")
    nginx_folder(place, free_port())
    checking, go = place.path("checking"), place.path("go")
    os.chmod(place.write("bin/nginx", f"#!/bin/sh\ntouch {checking}\nuntil [ -e {go} ]; do sleep 0.05; done\n"), 0o755)
    setting = Setting(place, "nginx", "nginx.conf")
    before = setting.tree()
    done = place.start("setup", "nginx", "--file", setting.main, "--list", setting.list, "--config", setting.config, "--backup",
                       place.path("backup"), "--apply", env={**os.environ, "PATH": f"{place.path('bin')}:{os.environ['PATH']}"})
    until(lambda: os.path.exists(checking), "it is written", running=done)
    assert setting.tree() != before and os.path.exists(setting.list)
    done.signal(signal.SIGINT)
    place.write("go", "")
    assert done.wait() == 1 and "interrupted" in done.said() and "as it was before" in done.said(), done.said()
    assert setting.tree() == before and not os.path.exists(setting.list)


def test_what_a_link_of_weirs_user_leads_to_stays(place):
    """The folder of the list belongs to weir's user, and setup runs as root."""
    program("nginx")
    nginx_folder(place, free_port())
    setting = Setting(place, "nginx", "nginx.conf")
    before = setting.tree()
    precious = place.write("precious/nginx.map", "nobody's but the operator's\n")
    setting.good("--apply")
    os.remove(setting.list)
    os.symlink(precious, setting.list)
    setting.good("--remove", "--apply")
    assert read(precious) and not os.path.lexists(setting.list) and setting.tree() == before
    os.rmdir(os.path.dirname(setting.list))
    os.symlink(os.path.dirname(precious), os.path.dirname(setting.list))
    done = setting.run("--apply")
    assert done.code() == 1 and "must not be a link" in done.said() and setting.tree() == before, done.said()
    setting.good("--remove", "--apply")
    assert read(precious)


def test_a_list_of_any_size_goes(place):
    program("nginx")
    nginx_folder(place, free_port())
    setting = Setting(place, "nginx", "nginx.conf")
    setting.good("--apply")
    place.write("lib/gateways/nginx.map", b"192.0.2.1 1;\n" * 1500000)
    assert len(setting.good("--remove", "--apply")) < 10000 and not os.path.exists(setting.list)
    assert not any("nginx.map" in name for name in os.listdir(place.path("backup")))


def test_lines_go_even_where_weirs_configuration_is_broken(place):
    program("nginx")
    nginx_folder(place, free_port())
    setting = Setting(place, "nginx", "nginx.conf")
    before = {path: what for path, what in setting.tree().items() if path != setting.config}
    for spoil in (lambda text: text[:-5], lambda text: text.replace(b'"site"', b'"site')):
        setting.good("--apply")
        whole = read(setting.config)
        broken = place.write("etc/weir.json", spoil(whole))
        assert setting.run("--apply").code() == 2
        done = setting.run("--remove", "--apply")
        assert done.code() == 0 and "the entry" in done.said() and f"nginx-geo:{setting.list}" in done.said(), done.said()
        assert read(broken) == spoil(whole) and not os.path.exists(setting.list)
        assert {path: what for path, what in setting.tree().items() if path != setting.config} == before
        place.write("etc/weir.json", whole)
        setting.good("--remove", "--apply")


def check_nothing_is_touched(setting, refused, **more):
    """Files that bear a name of setup's and are the operator's."""
    before = setting.tree()
    assert setting.good("--remove", "--apply", "--reload", **more).endswith("Nothing to do: everything is in place.\n")
    assert setting.tree() == before
    done = setting.run("--apply", **more)
    assert setting.tree() == before and not os.path.exists(setting.place.path("backup"))
    assert done.code() == 2 and f"{refused} is not of weir setup" in done.said(), done.said()


def test_an_operators_files_of_nginx_stay(place):
    program("nginx")
    nginx_folder(place, free_port())
    place.write("lib/gateways/nginx.map", "192.0.2.1 1;\n")
    own = place.write("etc/conf.d/weir.conf", "# geo, as `weir setup nginx` writes it\nmap $uri $x { default 1; }\n")
    setting = Setting(place, "nginx", "nginx.conf")
    check_nothing_is_touched(setting, own)
    os.remove(own)
    own = place.write("etc/weir-server.conf", "add_header X-Own 1;\n")
    place.write("etc/conf.d/own.conf", f"server {{\n    include {own};\n    listen 1;\n}}\n")
    check_nothing_is_touched(setting, own)
    assert read(setting.list)


def test_an_operators_files_of_nft_stay(place):
    network = Network(place)
    own = place.write("etc/nftables-weir.conf", "table inet weir {\n}\n")
    place.write("etc/nftables.conf", f'flush ruleset\ninclude "{own}"\n')
    check_nothing_is_touched(Setting(place, "nft", "nftables.conf"), own, env=network.environment)
    assert "inet weir" in network.good("nft", "list", "tables")


def test_an_operators_map_of_haproxy_stays(place):
    program("haproxy")
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    own = place.write("etc/weir.map", "192.0.2.1 4000000000\n")
    setting = Setting(place, "haproxy", "haproxy.cfg")
    assert setting.good("--remove", "--apply").startswith("Nothing to do") and read(own)


def test_every_server_of_nginx_is_found(place):
    """Blocks on one line, braces in quotes and comments, files included twice and by name, other things named server."""
    program("nginx")
    port, other = free_port(), free_port()
    nginx_folder(place, port, f"""
    # server {{
    map $uri $x {{ default "server {{"; "~^/a{{1,2}}$" 'its "}}'; "\\"{{" 1; }}
    server {{ listen 127.0.0.1:{other}; server_name a.example; return 301 "https://$host$request_uri"; }}
    server{{listen 127.0.0.1:{other}; server_name b.example; set $y "${{host}}{{"; location ~ "^/x{{2}}$" {{ if ($y) {{ return 204; }} }} }}
    include {place.path('etc')}/twice; server {{ # the last
    }}
""")
    place.write("etc/twice", f"server {{ listen 127.0.0.1:{other}; server_name c.example; include shared; }}\n")
    place.write("etc/shared", "# no server of its own\nlocation /shared { return 200; }")
    setting = Setting(place, "nginx", "nginx.conf")
    before = setting.tree()
    setting.good("--apply")
    mark = f"include {place.path('etc/weir-server.conf')};".encode()
    assert read(setting.main).count(mark) == 3 and read(place.path("etc/twice")).count(mark) == 1
    assert read(place.path("etc/sites-available/default")).count(mark) == 1 and mark not in read(place.path("etc/shared"))
    setting.good("--remove", "--apply")
    assert setting.tree() == before


def test_what_cannot_be_read_as_nginx_is_refused(place):
    for text, words in (("http { server { listen 1; }", "nginx.conf:1: ends within a block"),
                        ("http {\n} }", "nginx.conf:2: has a } too many"),
                        ('http { map "a', "nginx.conf:1: ends within quotes"),
                        ("events { }", "has no http block"), ("http { }", "no server in its http block"),
                        ("http { include loop; }", "too deeply")):
        place.write("etc/loop", "include loop;")
        place.write("etc/nginx.conf", text)
        setting = Setting(place, "nginx", "nginx.conf")
        done = setting.run("--apply")
        assert done.code() == 2 and words in done.said(), (text, done.said())
    os.remove(place.path("etc/nginx.conf"))
    done = Setting(place, "nginx", "nginx.conf").run()
    assert done.code() == 1 and "--file" in done.said(), done.said()


def test_haproxy_from_setup_to_429(place):
    haproxy_program = program("haproxy")
    port, site = free_port(), Site()
    text = haproxy_text(place, port, site.port)
    group = "group weir" if any(one.gr_name == "weir" for one in grp.getgrall()) else ""
    main = place.write("etc/haproxy.cfg", text.replace(
        "maxconn 100", f"maxconn 100\n    stats socket {place.path('admin')} {group} mode 600 level admin"))
    setting = Setting(place, "haproxy", "haproxy.cfg")
    before = setting.tree()
    setting.good("--apply")
    assert read(main).count(b"# weir setup") == 3
    assert setting.good("--apply").startswith("Nothing to do")
    haproxy = place.start("-db", "-f", main, program=haproxy_program)
    until(lambda: ask(port), "HAProxy answers", running=haproxy)
    weir = setting.follow()
    assert ask(port) == (200, None)
    place.append("access.log", "".join(line(START_MS + i, "ann", ip="127.0.0.1") for i in range(8)))
    until(lambda: always(port, 429), "the client is out", running=weir)
    assert 3500 < seconds_left(ask(port)[1]) < 3700 and ask(port, "127.0.0.2") == (200, None)
    assert weir.stop() == 0, weir.said()
    haproxy.stop()
    setting.good("--remove", "--apply")
    assert setting.tree() == before
    # A frontend has the mode of the defaults that it names, else of the latest.
    place.write("etc/haproxy.cfg", text.replace("defaults\n", "defaults one\n").replace(
        "frontend web # the site", "defaults two from one\n    maxconn 9\ndefaults three\n    mode tcp\n    timeout connect 5s\n"
        "    timeout client 30s\n    timeout server 30s\nfrontend web from two # the site").replace(
            "frontend raw\n    mode tcp", "frontend raw").replace("\nbackend site\n", "\nbackend site from one\n"))
    setting.good("--apply")
    web, raw = read(main).split(b"frontend raw")
    assert web.split(b"frontend web")[1].count(b"# weir setup") == 3 and b"# weir setup" not in raw, read(main)
    setting.good("--remove", "--apply")
    # Without a socket of level admin there is one more line; without a frontend of mode http there is nothing to do.
    place.write("etc/haproxy.cfg", text)
    assert read(setting.main).count(b"# weir setup") == 0 and "weir.sock" in setting.good()
    place.write("etc/haproxy.cfg", text.replace("mode http", "mode tcp"))
    assert "no frontend of mode http" in setting.run().said()


def ask_as(port, client):
    """The status for a client that a CDN names in a header; None while nobody answers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"X-Client": client}),
                                    timeout=PATIENCE_S) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return None


SET_SRC = "    http-request set-src hdr(X-Client) if { hdr(X-Client) -m found }\n"


def test_haproxy_looks_up_the_address_that_a_cdn_names(place):
    """Rules run in their order: weir's stand behind what sets the address, and in no block of conditions."""
    haproxy_program, port, site = program("haproxy"), free_port(), Site()
    admin = f"maxconn 100\n    stats socket {place.path('admin')} mode 600 level admin"
    if any(one.gr_name == "weir" for one in grp.getgrall()):
        admin = admin.replace("mode 600", "group weir mode 600")
    bare = haproxy_text(place, port, site.port).replace("maxconn 100", admin)
    usual = bare[bare.index("    mode http"):bare.index("frontend web")]
    place.write("etc/haproxy.cfg", bare)
    setting = Setting(place, "haproxy", "haproxy.cfg")
    for text in (bare.replace("    default_backend site\n", f"    http-request set-header X-A 1\n{SET_SRC}    default_backend site\n"),
                 bare.replace("    default_backend site\n", "    http-request set-src str(192.0.2.77) if { path /never }\n"
                              f"    .if !defined(HOME_X)\n    .if 1\n{SET_SRC}    .endif\n    .endif\n"
                              "    .if defined(HOME_X)\n    .else\n    http-request set-src src\n    .endif\n"
                              "    .if defined(HOME_X)\n    http-request set-src src\n    .endif\n    default_backend site\n"),
                 bare.replace("defaults\n", f"defaults cdn\n{usual}{SET_SRC}defaults\n").replace("frontend web", "frontend web from cdn"),
                 bare.replace("    default_backend site\n", "    tcp-request inspect-delay 1s\n    tcp-request content set-src "
                              "req.hdr(X-Client) if { req.hdr(X-Client) -m found }\n    default_backend site\n")):
        place.write("etc/haproxy.cfg", text)
        setting.good("--apply")
        assert setting.good("--apply").startswith("Nothing to do")
        haproxy = place.start("-db", "-f", setting.main, program=haproxy_program)
        until(lambda: ask_as(port, "198.51.100.1"), "HAProxy answers", running=haproxy)
        weir = setting.follow()
        place.append("access.log", flood("203.0.113.9"))
        until(lambda: ask_as(port, "203.0.113.9") == 429, "the client is out", running=weir)
        assert ask_as(port, "198.51.100.1") == 200 and ask(port) == (200, None)
        assert weir.stop() == 0, weir.said()
        haproxy.stop()
        setting.good("--remove", "--apply")
        assert read(setting.main).decode() == text
    # Behind a backend's there is no place.
    assert "set-src of backend" not in setting.good()
    place.write("etc/haproxy.cfg", bare.replace("\nbackend site\n", f"\nbackend site\n{SET_SRC}"))
    assert "set-src of backend site" in setting.good()


def test_doctor_tells_a_look_up_before_the_address_is_set(place):
    program("haproxy")
    late = SET_SRC + "    default_backend site\n"
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    setting = Setting(place, "haproxy", "haproxy.cfg")
    setting.good("--apply")
    made = read(setting.main).decode()
    bare = haproxy_text(place, free_port(), 1)
    for text, told in ((made, ""), (made.replace("    default_backend site\n", late), "web"),
                       (made.replace("frontend web # the site\n", "frontend web\n" + SET_SRC), ""),
                       (made.replace("frontend raw\n", "frontend raw\n" + SET_SRC), ""),
                       (made.replace("\nbackend site\n", "\nbackend site\n" + SET_SRC), "site"),
                       (bare.replace("    default_backend site\n", late), "")):
        machine = place.path("machine")
        own = place.write("haproxy.cfg", text)
        apart = Apart(place, f"rm -rf {machine} && cp -a /etc {machine} && mkdir -p {machine}/haproxy",
                      f"cp {own} {machine}/haproxy/haproxy.cfg && mount --bind {machine} /etc")
        said = apart.run("sh", "-c", f"{place.weir} doctor --config {setting.config} --state {place.path('none')} || true")
        assert ("before the set-src of" in said) == bool(told) and (not told or f"set-src of section {told} " in said), said


def test_an_operators_lines_that_name_setup_stay(place):
    program("haproxy"), program("nginx")  # pylint: disable=expression-not-assigned
    text = haproxy_text(place, free_port(), 1).replace(
        "    bind ", "    # weir setup\n    timeout client 31s # weir setup haproxy puts its lines below\n    bind ")
    place.write("etc/haproxy.cfg", text)
    nginx_folder(place, free_port())
    own = f"include {place.path('etc/weir-server.conf')};"
    place.write("etc/conf.d/own.conf", f"# {own} stands in each server\nserver {{ listen 1; # {own} is above\n}}\n")
    for kind, main in (("haproxy", "haproxy.cfg"), ("nginx", "nginx.conf")):
        setting = Setting(place, kind, main)
        before = setting.tree()
        assert setting.good("--remove").startswith("Nothing to do")
        setting.good("--apply")
        assert setting.good("--apply").startswith("Nothing to do")
        setting.good("--remove", "--apply")
        assert setting.tree() == before


def test_haproxys_socket_is_for_the_group_of_weirs_units(place):
    haproxy_program, port = program("haproxy"), free_port()
    admin = f"stats socket {place.path('admin')} mode 600 level admin"
    text = haproxy_text(place, port, 1).replace("maxconn 100", f"maxconn 100\n    {admin}")
    group = place.write("group", read("/etc/group") + b"weir:x:54321:\n")
    apart = Apart(place, "mkdir /run/haproxy", f"mount --bind {group} /etc/group")
    place.write("etc/haproxy.cfg", text)
    setting = Setting(place, "haproxy", "haproxy.cfg")
    before = setting.tree()
    words = (place.weir, "setup", "haproxy", "--file", setting.main, "--config", setting.config, "--backup",
             place.path("backup"))
    apart.run(*words, "--apply")
    assert b"/run/haproxy/weir.sock group weir mode 660 level admin" in read(setting.main)
    assert json.loads(read(setting.config))["gateways"][0]["to"] == "haproxy:/run/haproxy/weir.sock"
    assert apart.run("sh", "-c", f"{haproxy_program} -D -f {setting.main} -p /run/pid && stat -c '%g %a' /run/haproxy/weir.sock;"
                     "kill $(cat /run/pid)").endswith("54321 660\n")
    assert apart.run(*words, "--apply").startswith("Nothing to do")
    apart.run(*words, "--remove", "--apply")
    assert setting.tree() == before
    # One of this group is as good.
    place.write("etc/haproxy.cfg", text.replace("mode 600", "mode 660 group weir"))
    assert "weir.sock" not in apart.run(*words)


def test_the_runbooks_command_shows_haproxys_list(place):
    """As it stands there, on a machine that setup has changed and whose HAProxy has other maps."""
    haproxy_program, port = program("haproxy"), free_port()
    program("socat")
    (command,) = re.findall(r"^(echo 'show map .*)$", read(os.path.join(ROOT, "deploy/RUNBOOK.md")).decode(), re.M)
    machine = shutil.copytree("/etc", place.path("machine"), symlinks=True)
    os.makedirs(os.path.join(machine, "haproxy"), exist_ok=True)
    place.write("machine/haproxy/own.map", "own 1\n")
    place.write("machine/haproxy/haproxy.cfg", haproxy_text(place, port, 1).replace(
        "    default_backend site\n", "    http-request set-var(txn.own) path,map(/etc/haproxy/own.map)\n    default_backend site\n"))
    setting = Setting(place, "haproxy", "haproxy.cfg")
    apart = Apart(place, "mkdir /run/haproxy", f"mount --bind {machine} /etc")
    apart.run(place.weir, "setup", "haproxy", "--config", setting.config, "--backup", place.path("backup"), "--apply")
    add = command.replace("show map /etc/haproxy/weir.map", "add map /etc/haproxy/weir.map 192.0.2.7 4000000000")
    said = apart.run("sh", "-c", f"{haproxy_program} -D -f /etc/haproxy/haproxy.cfg -p /run/pid; {add}; {command}; kill $(cat /run/pid)")
    assert "192.0.2.7 4000000000" in said and "own" not in said, said


def test_the_unit_that_looks_at_the_list_is_used(place):
    """And no other: nginx would not take up another list, and another nginx would not be reloaded."""
    nginx_folder(place, free_port())
    wrapper = place.write("bin/nginx", f'#!/bin/sh\nif [ "$1" = -V ]; then echo --conf-path={place.path("etc/nginx.conf")}; fi\n')
    os.chmod(wrapper, 0o755)
    setting = Setting(place, "nginx", "nginx.conf")
    apart = Apart(place, "mkdir -p /run/systemd/system", f"PATH={place.path('bin')}:$PATH",
                  f"printf '[Service]\\nExecStart=/opt/weir watch %s -- nginx -s reload\\n' {setting.list} "
                  ">/run/systemd/system/weir-own-nginx.service")
    words = (place.weir, "setup", "nginx", "--config", setting.config, "--backup", place.path("backup"))
    by_weir = '"reload": "nginx -s reload'
    assert by_weir in apart.run(*words, "--list", place.path("lib/other.map"))
    assert by_weir in apart.run(*words, "--list", setting.list, "--file", setting.main)
    said = apart.run(*words, "--list", setting.list, "--apply")
    assert by_weir not in said and "systemctl enable --now weir-own-nginx.service" in said, said
    said = apart.run(*words, "--list", setting.list, "--remove", "--apply")
    assert "systemctl disable --now weir-own-nginx.service" in said, said


def test_what_an_earlier_run_wrote_is_taken_up(place):
    """A run that only wrote, or that ended at a reload: the next has nothing to write, and restarts weir all the same."""
    nginx_folder(place, free_port())
    calls = place.write("calls", "")
    for name in ("nginx", "systemctl"):
        os.chmod(place.write(f"bin/{name}", f'#!/bin/sh\necho {name} "$@" >>{calls}\n'
                             f'if [ "$1" = -V ]; then echo --conf-path={place.path("etc/nginx.conf")}; fi\n'), 0o755)
    setting = Setting(place, "nginx", "nginx.conf")
    apart = Apart(place, "mkdir -p /run/systemd/system", f"PATH={place.path('bin')}:$PATH")
    words = (place.weir, "setup", "nginx", "--config", setting.config, "--backup", place.path("backup"), "--list",
             setting.list)
    restart = b"systemctl try-restart weir.service\n"
    apart.run(*words, "--apply")
    assert restart not in read(calls), read(calls)
    assert "Nothing to do" in apart.run(*words, "--apply", "--reload")
    assert b"nginx -s reload\n" in read(calls) and restart in read(calls), read(calls)
    apart.run(*words, "--remove", "--apply")
    place.write("calls", "")
    said = apart.run(*words, "--remove", "--apply", "--reload")
    assert "nothing was reloaded" in said and "  nginx -s reload\n  systemctl restart weir\n" in said, said
    assert b"reload" not in read(calls) and restart not in read(calls), read(calls)


def test_nft_from_setup_to_a_dropped_connection(place):
    network = Network(place)
    outside = Outside(network, "192.0.2.9", "192.0.2.10")
    place.write("etc/nftables.conf", "flush ruleset\ntable inet filter {\n\tchain input {\n"
                                     "\t\ttype filter hook input priority filter; policy accept;\n\t}\n}\n")
    setting = Setting(place, "nft", "nftables.conf")
    before = setting.tree()
    setting.good("--port", "8080", "--apply", "--reload", env=network.environment)
    assert setting.good("--port", "8080", "--apply", env=network.environment).startswith("Nothing to do")
    weir = setting.follow(env=network.environment)
    assert outside.is_let_in("192.0.2.9")
    place.append("access.log", flood("192.0.2.9"))
    until(lambda: "192.0.2.9" in network.good("nft", "list", "set", "inet", "weir", "blocked4"), "it is listed",
          running=weir)
    assert not outside.is_let_in("192.0.2.9", patience_s=1) and outside.is_let_in("192.0.2.10")
    # The machine's rules are loaded anew, which flushes all: the block is back.
    network.good("nft", "-f", setting.main)
    until(lambda: "192.0.2.9" in network.good("nft", "list", "set", "inet", "weir", "blocked4"), "it is listed again",
          running=weir)
    assert weir.stop() == 0, weir.said()
    # Loaded once more by itself, which a start of weir.service does, it has the same rules and keeps the block.
    rules = network.good("nft", "list", "chain", "inet", "weir", "early")
    network.good("nft", "-f", place.path("etc/nftables-weir.conf"))
    assert network.good("nft", "list", "chain", "inet", "weir", "early") == rules and rules.count("saddr") == 2, rules
    assert not outside.is_let_in("192.0.2.9", patience_s=1) and outside.is_let_in("192.0.2.10")
    setting.good("--remove", "--apply", "--reload", env=network.environment)
    assert setting.tree() == before and "inet weir" not in network.good("nft", "list", "tables")
    assert outside.is_let_in("192.0.2.9")


def test_nft_lets_the_machine_talk_to_itself(place):
    """Its own addresses are blocked as any, by the log of a proxy or a monitor: what it says to itself is not dropped."""
    network = Network(place)
    network.nft("delete table inet weir")  # its rules have no part in this
    outside = Outside(network, "192.0.2.9")
    place.write("etc/nftables.conf", "flush ruleset\n")
    setting = Setting(place, "nft", "nftables.conf")
    setting.good("--apply", "--reload", env=network.environment)
    own = place.path("etc/nftables-weir.conf")
    made = read(own).decode()
    weir = setting.follow(env=network.environment)
    place.append("access.log", flood("127.0.0.1", "::1", outside.HOST, "192.0.2.9"))

    def listed():
        return all(one in network.good("nft", "list", "table", "inet", "weir")
                   for one in ("127.0.0.1", "::1", outside.HOST, "192.0.2.9"))

    def to_itself(patience_s):
        return [network.is_let_in(source, host, patience_s) for source, host in (
            ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), (outside.HOST, outside.HOST))]

    until(listed, "all of them are listed", running=weir)
    assert to_itself(10) == [True] * 3, to_itself(1)
    assert not outside.is_let_in("192.0.2.9", patience_s=1)
    assert weir.stop() == 0, weir.said()
    # Rules that an earlier setup made are replaced by the next, and their blocks stay.
    spares = '        iif "lo" accept\n'
    assert made.count(spares) == 1
    place.write("etc/nftables-weir.conf", made.replace(spares, ""))
    network.good("nft", "-f", own)
    assert to_itself(1) == [False] * 3
    assert spares.strip() in setting.good("--apply", "--reload", env=network.environment)
    assert read(own).decode() == made and listed() and to_itself(10) == [True] * 3
    assert not outside.is_let_in("192.0.2.9", patience_s=1)


UDP_SERVER = """
import socket
at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at.bind(("0.0.0.0", 8080))
while True:
    at.sendto(b"yes", at.recvfrom(99)[1])
"""
UDP_CLIENT = """
import socket, sys
at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at.bind((sys.argv[2], 0))
at.settimeout(float(sys.argv[3]))
at.sendto(b"may I?", (sys.argv[1], 8080))
try: at.recv(9)
except OSError: sys.exit(9)
"""


def test_a_port_of_nft_is_that_of_udp_too(place):
    """By which HTTP/3 comes: who is blocked gets no answer by either."""
    network = Network(place)
    network.nft("delete table inet weir")
    outside = Outside(network, "192.0.2.9", "192.0.2.10")
    server = place.start(*network.enter[1:], sys.executable, "-c", UDP_SERVER, program=network.enter[0])

    def answers(source, patience_s="1"):
        return place.run(*outside.enter[1:], sys.executable, "-c", UDP_CLIENT, outside.HOST, source, patience_s,
                         program=outside.enter[0]).code() == 0

    until(lambda: answers("192.0.2.9"), "it is answered by UDP", running=server)
    place.write("etc/nftables.conf", "flush ruleset\n")
    setting, own = Setting(place, "nft", "nftables.conf"), place.path("etc/nftables-weir.conf")
    ports = ("--port", "8080", "--port", "8443")
    setting.good(*ports, "--apply", "--reload", env=network.environment)
    made = read(own).decode()
    # As an earlier version made it.
    place.write("etc/nftables-weir.conf", made.replace("meta l4proto { tcp, udp } th dport", "tcp dport"))
    network.good("nft", "-f", own)
    network.nft("add element inet weir blocked4 { 192.0.2.9 timeout 1h }")
    assert answers("192.0.2.9") and not outside.is_let_in("192.0.2.9", patience_s=1)
    assert "+        meta l4proto" in setting.good(*ports, "--apply", "--reload", env=network.environment)
    assert read(own).decode() == made
    assert not answers("192.0.2.9") and not outside.is_let_in("192.0.2.9", patience_s=1)
    assert answers("192.0.2.10", "10") and outside.is_let_in("192.0.2.10")
    assert setting.good(*ports, "--apply", env=network.environment).startswith("Nothing to do")
    # Other ports are not touched.
    setting.good("--port", "8443", "--apply", "--reload", env=network.environment)
    assert answers("192.0.2.9", "10") and outside.is_let_in("192.0.2.9")


def test_doctor_tells_rules_that_are_outdated(place):
    setting = Setting(place, "nft", "nftables.conf", gateways=["nft:inet/weir/blocked4,blocked6"])
    place.write("etc/nftables.conf", "flush ruleset\n")
    setting.good("--port", "443", "--apply", env=Network(place).environment)
    made = read(place.path("etc/nftables-weir.conf")).decode()
    old = made.replace("meta l4proto { tcp, udp } th dport", "tcp dport")
    for text, outdated, tcp in ((made, False, False), (made.replace('iif "lo" accept', ""), True, False), (old, False, True),
                                ("# mine\n" + old.replace('iif "lo" accept', ""), False, False)):
        own = place.write("nftables-weir.conf", text)
        apart = Apart(place, f"rm -rf {place.path('machine')} && cp -a /etc {place.path('machine')}",
                      f"cp {own} {place.path('machine')} && mount --bind {place.path('machine')} /etc")
        said = apart.run("sh", "-c", f"{place.weir} doctor --config {setting.config} --state {place.path('none')} || true")
        assert ("do not spare loopback" in said) == outdated and ("drop only TCP" in said) == tcp, said


def test_comments_and_last_commas_stay(place):
    """The entry goes into a text that is more than JSON, as into any other, and out again."""
    program("haproxy")
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    setting = Setting(place, "haproxy", "haproxy.cfg")
    whole = json.loads(read(setting.config))
    zones, sources = json.dumps(whole["zones"]), json.dumps(whole["sources"])
    for text in (f'{{ // "gateways": [\n  "zones": {zones}, /* ] }} */\n  "sources": {sources}, // the last\n}}\n',
                 f'{{\n  "gateways": [ /* none yet: [ */\n    "file:/x", // one\n  ],\n  "zones": {zones},\n  "sources": {sources},\n}}\n'):
        place.write("etc/weir.json", text)
        setting.good("--apply")
        shown = place.good("validate", "--offline", "--json", setting.config).objects()[0]["gateways"]
        assert shown[-1]["to"].startswith("haproxy:/") and len(shown) == text.count("file:/x") + 1, shown
        for kept in ("//", "/*", "*/"):
            assert read(setting.config).decode().count(kept) == text.count(kept), kept
        setting.good("--remove", "--apply")
        assert read(setting.config).decode() == text, read(setting.config).decode()


def test_the_entry_leaves_the_rest_of_the_text_alone(place):
    program("haproxy")
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    setting = Setting(place, "haproxy", "haproxy.cfg")
    whole = json.loads(read(setting.config))
    zones, sources = json.dumps(whole["zones"]), json.dumps(whole["sources"])
    for text in (f'{{"zones": {zones}, "sources": {sources}}}',
                 f'{{ "gateways" : [ ] , "zones":{zones},"sources":{sources} }}',
                 f'{{\n\t"gateways": ["file:/x/[y]"],\n\t"zones": {zones},\n\t"sources": {sources}\n}}\n',
                 f'{{\n  "zones": {zones},\n  "gateways": [\n    {{"to": "exec:echo \\"}}]\\""}},\n    "file:/x"\n  ],\n'
                 f'  "sources": {sources}\n}}\n',
                 json.dumps(whole, indent=4), json.dumps(whole, separators=(",", ":"))):
        place.write("etc/weir.json", text)
        had = json.loads(text).get("gateways", [])
        setting.good("--apply")
        made = read(setting.config).decode()
        assert json.loads(made)["gateways"][:-1] == had, made
        assert json.loads(made)["gateways"][-1]["to"].startswith("haproxy:/"), made
        assert {**json.loads(made), "gateways": had} == {**json.loads(text), "gateways": had}
        setting.good("--remove", "--apply")
        if '[ ]' not in text:
            assert read(setting.config).decode() == text, text
        else:
            assert json.loads(read(setting.config)).get("gateways", []) == []


def test_an_entry_names_the_zones_that_a_gateway_can_ask_about(place):
    program("haproxy")
    place.write("etc/haproxy.cfg", haproxy_text(place, free_port(), 1))
    zones = [zone("site", [sliding(5, "1m")], key=["ip"], id=1), zone("user", [sliding(5, "1m")], key=["user"], id=2),
             zone("both", [sliding(5, "1m")], key=["ip", "path"], id=3)]
    setting = Setting(place, "haproxy", "haproxy.cfg", zones=zones)
    assert '"zones": ["site"]' in setting.good()
    assert '"zones": ["user"]' in setting.good("--zone", "user")
    setting.good("--zone", "site", "--zone", "user", "--apply")
    for more in ((), ("--zone", "user", "--zone", "site")):
        assert setting.good("--apply", *more).startswith("Nothing to do")
    for other in (("user",), ("site", "--zone", "both"), ("site", "--zone", "user", "--zone", "both")):
        done = setting.run("--zone", *other, "--apply")
        assert done.code() == 1 and 'other zones than --zone names: change its "zones"' in done.said(), done.said()
    setting.good("--zone", "site", "--remove", "--apply")
    # Where none is fit, nobody guesses.
    setting = Setting(place, "haproxy", "haproxy.cfg", zones=zones[1:])
    before = setting.tree()
    done = setting.run("--apply")
    assert done.code() == 2 and "with --zone" in done.said() and setting.tree() == before, done.said()
    setting.good("--zone", "user", "--apply")
    assert setting.good().startswith("Nothing to do")
    done = setting.run("--zone", "usr")
    assert done.code() == 2 and 'did you mean "user"' in done.said(), done.said()


def test_the_command_line_is_checked(place):
    for words, said in (((), "missing GATEWAY"), (("apache",), "nginx, nft"), (("nginx", "--reload"), "--apply"),
                        (("nginx", "--list", "a b"), "--list"), (("nginx", "--list", "/a;b"), "--list"),
                        (("nft", "--port", "0"), "--port")):
        done = place.run("setup", *words)
        assert done.code() == 2 and said in done.said(), (words, done.said())


if __name__ == "__main__":
    cases.main(globals())
