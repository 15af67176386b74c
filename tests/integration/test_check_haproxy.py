#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy asks weir before it serves: deploy/gateways/checks/haproxy.cfg and haproxy.lua."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import asking_logs, cases
from support.gateways import program
from support.place import read


def begin(place, number, port, weir, site, *changes):
    """HAProxy by the example, with (old, new) in it changed."""
    hop = f"abns@weir-{os.getpid()}-{port}"
    script = place.write(f"weir-{number}.lua", asking.recipe("haproxy.lua").replace("abns@weir-checks", hop))
    text = asking.recipe("haproxy.cfg", _8080=port, _8000=site, _8082=weir)
    for old, new in (("/etc/haproxy/weir.lua", script), ("abns@weir-checks", hop), *changes):
        assert old in text, old
        text = text.replace(old, new)
    config = place.write(f"haproxy-{number}.cfg", text)
    return place.start("-db", "-f", config, program=program("haproxy"))


globals().update(asking.tests(begin, {503: 200, 401: 500}))


def test_lines_say_what_was_asked(place):
    """As Debian has it: a log of all, of what Lua asks too, if that were not kept out. Threads that write at once would lose lines."""
    def with_log(*where):
        return begin(*where, ("global\n", "global\n    nbthread 1\n    log stdout format raw local0\n"),
                     ("    mode http\n", "    mode http\n    log global\n    option httplog\n"))

    def lines(stage):
        return b"".join(line + b"\n" for line in read(stage.program.out_path).split(b"\n") if b"] web " in line or b"weir" in line)
    asking_logs.lines_say_what_was_asked(place, with_log, "haproxy", lines, lacks=["host", "agent"])


if __name__ == "__main__":
    cases.main(globals())
