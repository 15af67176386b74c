#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traefik asks weir before it serves: deploy/gateways/checks/traefik.yaml."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import asking_logs, cases
from support.place import free_port


def begin(place, number, port, weir, site, more=()):
    """Traefik by the example."""
    inner = free_port()
    config = place.write(f"traefik-{number}.yaml", asking.recipe("traefik.yaml", _8082=weir, _8083=inner, _8000=site))
    return place.start(f"--entrypoints.web.address=127.0.0.1:{port}", f"--entrypoints.weir.address=127.0.0.1:{inner}",
                       "--entrypoints.weir.forwardedheaders.trustedips=127.0.0.1", "--ping.manualrouting=true",
                       f"--providers.file.filename={config}", "--global.checknewversion=false", "--global.sendanonymoususage=false", *more,
                       program=asking.packaged("traefik"))


globals().update(asking.tests(begin, {503: 200, 401: 401}, tells=False, tidies=True))


def test_lines_say_what_was_asked(place):
    def with_log(*where):
        return begin(*where, more=["--accesslog=true", f"--accesslog.filepath={place.path('access.log')}", "--accesslog.format=json",
                                   "--accesslog.fields.headers.names.User-Agent=keep"])
    asking_logs.lines_say_what_was_asked(place, with_log, "traefik", asking_logs.file_of("access.log"))


if __name__ == "__main__":
    cases.main(globals())
