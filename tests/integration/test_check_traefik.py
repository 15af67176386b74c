#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traefik asks weir before it serves: deploy/gateways/checks/traefik.yaml."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import asking_gateways as asking
from support import cases
from support.asking_gateways import Stage
from support.place import free_port


def begin(place, number, port, weir, site):
    """Traefik by the example."""
    inner = free_port()
    config = place.write(f"traefik-{number}.yaml", asking.recipe("traefik.yaml", _8082=weir, _8083=inner, _8000=site))
    return place.start(f"--entrypoints.web.address=127.0.0.1:{port}", f"--entrypoints.weir.address=127.0.0.1:{inner}",
                       "--entrypoints.weir.forwardedheaders.trustedips=127.0.0.1", "--ping.manualrouting=true",
                       f"--providers.file.filename={config}", "--global.checknewversion=false", "--global.sendanonymoususage=false",
                       program=asking.packaged("traefik"))


def test_as_many_pass_as_the_limit_says(place):
    with Stage(place, begin) as stage:
        asking.limit_holds(stage, tells=False)


def test_weir_is_asked_what_the_client_asked(place):
    with Stage(place, begin) as stage:
        asking.requests_are_seen(stage, tidies=True)


def test_what_a_client_writes_is_not_believed(place):
    with Stage(place, begin) as stage:
        asking.nothing_is_forged(stage)


def test_all_pass_while_weir_is_away(place):
    with Stage(place, begin) as stage:
        asking.away(stage, {503: 200, 401: 401})


if __name__ == "__main__":
    cases.main(globals())
