#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Varnish asks weir before it serves: deploy/gateways/checks/varnish.vcl."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import asking_logs, cases
from support.asking_gateways import Stage, get
from support.gateways import EXAMPLES, example, program
from support.place import read


def begin(place, number, port, weir, site):
    """Varnish by the example."""
    vcl = place.write(f"varnish-{number}.vcl", example("checks/varnish.vcl", ('.port = "8082"', f'.port = "{weir}"'),
                                                       ('.port = "8000"', f'.port = "{site}"')))
    return place.start("-F", "-a", f"127.0.0.1:{port}", "-f", vcl, "-n", place.path(f"varnish-{number}"), "-s", "malloc,32m",
                       "-j", "none", program=program("varnishd"))


globals().update(asking.tests(begin, {503: 200, 401: 401}, caches=True))


def test_a_body_that_is_too_large_is_refused(place):
    with Stage(place, begin) as stage, stage.gateway() as port:
        for megabytes, status in ((9, 200), (11, 413)):
            try:
                came = get(port, "/up", "POST", b"a" * (megabytes * 1000000))[0]
            except (BrokenPipeError, ConnectionResetError):
                came = 413  # it is told before all is sent
            assert came == status, (megabytes, came)
        assert stage.site.asked == ("POST", "/up", 9000000), stage.site.asked


def test_lines_say_what_was_asked(place):
    """By the form that the example gives."""
    form = re.search(r"varnishncsa -F '(.*)'", read(os.path.join(EXAMPLES, "checks", "varnish.vcl")).decode())[1]
    kept = []

    def lines(stage):
        if stage.program.code() is None:  # its log goes with it
            done = place.run("-d", "-n", place.path("varnish-1"), "-F", form, program=program("varnishncsa"))
            kept[:] = [done.out()]
        return kept[0]
    asking_logs.lines_say_what_was_asked(place, begin, "combined", lines)


if __name__ == "__main__":
    cases.main(globals())
