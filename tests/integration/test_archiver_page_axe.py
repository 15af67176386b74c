#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archiver's page and axe-core: it finds nothing, in any view, at any width, in both colours and other languages.

Skipped where there is no Chromium, or no axe-core (npm fetches it).
"""

import itertools
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import axe, cases
from support.archiver_api import on_sqlite
from support.archiver_page import Explained, looking, shared
from support.page_rows import Week

STAGE = []  # the browser and the API of all tests
VIEWS = (("overview", {}), ("top", {"zone": "api"}), ("decisions", {}), ("user", {"zone": "login", "key": "user1|198.51.0.1"}),
         ("user", {}), ("blocks", {}), ("system", {}), ("overview", {"span": "24h", "until": "2001-01-01"}))
# Widths, and whether dark: in CI each width and each colour once, as a browser is slow on its two cores.
FEW = ((390, True), (768, False), (1440, False))
LOOKS = FEW if os.environ.get("CI") else tuple(itertools.product((390, 768, 1440), (False, True)))
BERLIN = {"locale": "de-DE", "zone": "Europe/Berlin"}


def test_nothing_is_found(_):
    script = axe.source()
    for width, dark in LOOKS:
        with looking(*STAGE, width=width, dark=dark, **(BERLIN if dark else {})) as view:
            for name, more in VIEWS:
                view.open(name, **more)
                view.page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                view.page.run("document.querySelector('button.times')?.click()")
                view.page.until("[...document.querySelectorAll('details')].every((one) => one.querySelector('tbody'))")
                found = axe.found(view.page, script)
                assert found == [], (width, dark, name, found)


def test_nothing_is_found_where_there_is_little(place):
    """The dialog for a token, a store without zones, and what is said when something fails."""
    script = axe.source()
    api = on_sqlite(place, tokens=["a-secret-of-16-letters"])
    with looking(STAGE[0], api, allowed=["401 (Unauthorized)", "ERR_CONNECTION_"]) as view:
        view.page.open(view.origin)
        view.page.until("document.getElementById('token').open")
        assert axe.found(view.page, script) == []
        view.page.type("a-secret-of-16-letters")
        view.page.press("Enter", 13, "\r")
        view.shown()
        assert axe.found(view.page, script) == []
        view.open("blocks")
        api.program.kill()
        view.page.until("document.querySelector('[role=alert]') !== null")
        assert axe.found(view.page, script) == []


def test_nothing_is_found_where_a_decision_says_why(place):
    """With lines, without them, and without a token."""
    script = axe.source()
    told = Explained(place, tokens=[Explained.TOKEN])
    for gone in (False, True):
        for width, dark in LOOKS:
            with told.told(STAGE[0], width=width, dark=dark, **(BERLIN if dark else {})) as view:
                found = axe.found(view.page, script)
                assert found == [], (width, dark, gone, found)
        if not gone:
            os.remove(told.run.log)
    told.run.stop()


def main(browser, api):
    """Runs the tests on these."""
    STAGE.extend((browser, api))
    cases.main(globals())


if __name__ == "__main__":
    sys.exit(shared(Week(int(time.time() * 1000)), main))
