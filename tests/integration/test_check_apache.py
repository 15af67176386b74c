#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Apache asks weir before it serves: deploy/gateways/checks/apache.conf and apache.lua."""

import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import asking_logs, cases
from support.asking_gateways import Stage, get
from support.gateways import example, program


MODULES = ("mpm_event", "authz_core", "proxy", "proxy_http", "lua")


def begin(place, number, port, weir, site, more=()):
    """Apache by the example, its modules and files beside it."""
    server, modules = program("apache2"), "/usr/lib/apache2/modules"
    if not os.path.exists(f"{modules}/mod_lua.so") or not glob.glob("/usr/share/lua/5.*/socket.lua"):
        raise cases.Skipped("Apache has no Lua here, or Lua no sockets")
    home = place.path(f"apache-{number}")
    script = place.write(f"weir-{number}.lua", example("checks/apache.lua", ('"127.0.0.1", 8082', f'"127.0.0.1", {weir}')))
    os.mkdir(home)
    lines = [f"ServerName localhost\nListen 127.0.0.1:{port}",
             f'DefaultRuntimeDir "{home}"\nPidFile "{home}/pid"\nErrorLog "{home}/error.log"']
    lines += [f'LoadModule {name}_module "{modules}/mod_{name}.so"' for name in MODULES]
    lines += more
    lines += [asking.recipe("apache.conf", _8000=site).replace("/etc/apache2/weir.lua", script)]
    return place.start("-X", "-f", place.write(f"apache-{number}.conf", "\n".join(lines)), program=server)


globals().update(asking.tests(begin, {503: 200, 401: 500}))


def test_more_than_weir_takes_is_too_large(place):
    def with_limits(*where):
        return begin(*where, more=["LimitRequestLine 65536", "LimitRequestFieldSize 65536"])
    with Stage(place, with_limits) as stage:
        asking.large_heads_are_judged(stage, 431)


def test_a_page_of_its_own_is_not_asked_for(place):
    place.write("pages/seen-page", "a page")

    def with_page(*where):
        return begin(*where, more=[f'DocumentRoot "{place.path("pages")}"', "ErrorDocument 429 /seen-page", 'ProxyPass "/seen-page" "!"',
                                   '<Location "/seen-page">\nRequire all granted\n</Location>'])
    with Stage(place, with_page) as stage, stage.gateway() as port:
        assert get(port, "/seen/one", Host="site.example")[::2] == (200, b"served")
        _, headers, body = asking.until_blocked(port, "/seen/one", Host="site.example")
        assert body == b"a page" and int(headers["Retry-After"]) > 3500 and headers["RateLimit"].startswith('"'), str(headers)
        assert not stage.counted("line", "127.0.0.2", "GET", "site.example", "/seen-page")


def test_lines_say_what_was_asked(place):
    form = '%V %h %l %u %t \\"%r\\" %>s %O \\"%{Referer}i\\" \\"%{User-Agent}i\\"'

    def with_log(*where):
        return begin(*where, more=[f'LogFormat "{form}" hosts', f'CustomLog "{place.path("access.log")}" hosts'])
    asking_logs.lines_say_what_was_asked(place, with_log, "combined", asking_logs.file_of("access.log"))


if __name__ == "__main__":
    cases.main(globals())
