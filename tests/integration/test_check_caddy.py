#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Caddy asks weir before it serves: deploy/gateways/checks/Caddyfile."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import asking_logs, cases


def begin(place, number, port, weir, site, more=""):
    """Caddy by the example, without its administration."""
    text = asking.recipe("Caddyfile", _8082=weir, _8000=site)
    assert ":8080 {" in text
    config = place.write(f"Caddyfile-{number}", "{\n\tadmin off\n\tpersist_config off\n}\n"
                         + text.replace(":8080 {", f"http://:{port} {{\n\tbind 127.0.0.1{more}"))
    return place.start("run", "--adapter", "caddyfile", "--config", config, program=asking.packaged("caddy"),
                       env={"HOME": place.path("caddy"), "XDG_DATA_HOME": place.path("caddy")})


globals().update(asking.tests(begin, {503: 200, 401: 401}))


def test_lines_say_what_was_asked(place):
    def with_log(*where):
        return begin(*where, more=f"\n\tlog {{\n\t\toutput file {place.path('access.log')}\n\t\tformat json\n\t}}")
    asking_logs.lines_say_what_was_asked(place, with_log, "caddy", asking_logs.file_of("access.log"), unlike=[asking_logs.ABSOLUTE])


if __name__ == "__main__":
    cases.main(globals())
