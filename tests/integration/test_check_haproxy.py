#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy asks weir before it serves: deploy/gateways/checks/haproxy.cfg and haproxy.lua."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import cases
from support.gateways import program


def begin(place, number, port, weir, site):
    """HAProxy by the example."""
    hop = f"abns@weir-{os.getpid()}-{port}"
    script = place.write(f"weir-{number}.lua", asking.recipe("haproxy.lua").replace("abns@weir-checks", hop))
    config = place.write(f"haproxy-{number}.cfg", asking.recipe("haproxy.cfg", _8080=port, _8000=site, _8082=weir)
                         .replace("/etc/haproxy/weir.lua", script).replace("abns@weir-checks", hop))
    return place.start("-db", "-f", config, program=program("haproxy"))


globals().update(asking.tests(begin, {503: 200, 401: 500}))


if __name__ == "__main__":
    cases.main(globals())
