#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx asks weir before it serves: deploy/gateways/checks/nginx.conf by auth_request, and nginx_lua.conf by Lua."""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import asking_logs, cases
from support.asking_gateways import LIMIT, Stage, get
from support.gateways import program
from support.place import free_port
from support.traffic import sliding, zone

MODULES = "/usr/lib/nginx/modules/"
LUA = [zone("site", [sliding(LIMIT, "1h")], key=["ip"]), zone("login", [sliding(2, "1m")], key=["ip"])]


def start(place, number, text, before="", within=""):
    """nginx with these lines in its http {}."""
    server, home = program("nginx"), place.path(f"nginx-{number}")
    os.mkdir(home)
    paths = " ".join(f"{kind}_temp_path {home}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = place.write(f"nginx-{number}.conf", f"""{before} daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;
events {{}} http {{ access_log off; {paths} {within} {text} }}""")
    tested = subprocess.run([server, "-t", "-p", home, "-c", config], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
    return place.start("-p", home, "-c", config, program=server)


def begin(place, number, port, weir, site):
    """nginx by the example with auth_request."""
    return start(place, number, asking.recipe("nginx.conf", _8082=weir, _8080=port, _8000=site))


def begin_lua(place, number, port, weir, site):
    """nginx by the example with Lua."""
    if not glob.glob(MODULES + "ngx_http_lua_module.so"):
        raise cases.Skipped("nginx has no Lua here")
    text = asking.recipe("nginx_lua.conf", _8080=port, _8000=site).replace('"127.0.0.1", 6390', f'"127.0.0.1", {weir}')
    return start(place, number, text, "".join(f"load_module {MODULES}{name}_module.so; " for name in ("ndk_http", "ngx_http_lua")))


globals().update(asking.tests(begin, {503: 200, 401: 401}))


def test_more_than_weir_takes_is_too_large(place):
    def with_buffers(where, number, port, weir, site):
        return start(where, number, asking.recipe("nginx.conf", _8082=weir, _8080=port, _8000=site),
                     within="large_client_header_buffers 4 64k;")
    with Stage(place, with_buffers) as stage:
        asking.large_heads_are_judged(stage, 431)


def lua_stage(place):
    """A weir that is asked by Redis' protocol."""
    return Stage(place, begin_lua, LUA, resp=free_port())


def test_lua_lets_as_many_pass_as_the_limit_says(place):
    with lua_stage(place) as stage:
        asking.limit_holds(stage, policy=False)


def test_lua_asks_the_zones_of_a_location(place):
    with lua_stage(place) as stage, stage.gateway() as port:
        assert get(port, "/login", "POST", b"a")[0] == 200
        asking.until_blocked(port, "/login", "POST", b"a")
        status, headers, _ = get(port, "/login?a=b", X_Forwarded_For="203.0.113.9")
        assert status == 429 and headers["RateLimit"].startswith('"login";r=0;t=') and 0 < int(headers["Retry-After"]) <= 60, str(headers)
        assert stage.left("127.0.0.2") <= LIMIT - 4 and stage.checks.check(zone="login", key="127.0.0.2", peek=True)[1]["remaining"] == 0
        assert stage.checks.check(zone="site", key="203.0.113.9", peek=True)[1]["remaining"] == LIMIT


def test_lua_says_no_time_of_a_block_without_end(place):
    with lua_stage(place) as stage, stage.gateway() as port:
        blocked = place.run("block", "127.0.0.2", "--zone", "site", "--state", place.path("state"))
        assert blocked.code() == 0, blocked.said()
        status, headers, _ = asking.until_blocked(port)
        assert (status, headers["RateLimit"], headers["Retry-After"]) == (429, '"site";r=0', None), str(headers)


def test_all_pass_lua_while_weir_is_away(place):
    with lua_stage(place) as stage:
        asking.away(stage, {})


def test_lines_say_what_was_asked(place):
    def with_log(where, number, port, weir, site):
        text = asking.recipe("nginx.conf", _8082=weir, _8080=port, _8000=site)
        form = "$host $remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\""
        return start(where, number, text.replace("    location / {", f"    access_log {where.path('access.log')} hosts;\n    location / {{"),
                     within=f"log_subrequest on; log_format hosts '{form}';")
    asking_logs.lines_say_what_was_asked(place, with_log, "combined", asking_logs.file_of("access.log"), unlike=[asking_logs.ABSOLUTE])


if __name__ == "__main__":
    cases.main(globals())
