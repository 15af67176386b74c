#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archiver's page for every reader: on a phone, by keyboard alone, in both colours, with a token; shut to others.

Leaves pictures in page/ of the build directory. Skipped where there is no Chromium.
"""

import hashlib
import hmac
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.archiver_api import on_sqlite
from support.archiver_page import Explained, looking, shared
from support.page_rows import Week
from support.place import ROOT, until

HOUR_MS, DAY_MS = 3600_000, 86400_000
STAGE = []  # the browser and the API of all tests
USER = "user1|198.51.0.1"

# How much of what was seen has moved by itself, as Chromium weighs it.
_MOVED = """new Promise((done) => {
  new PerformanceObserver((list) => done(list.getEntries().filter((one) => !one.hadRecentInput)
    .reduce((sum, one) => sum + one.value, 0))).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(0), 300);
})"""


def look(**more):
    """A page on what all tests share."""
    return looking(*STAGE, **more)


def test_every_view_fits_a_phone_in_both_colours_and_stands_still(_):
    for dark in (False, True):
        with look(width=360, height=740, dark=dark) as view:
            for name, parameters in (("overview", {}), ("top", {"zone": "api"}),
                                     ("user", {"zone": "login", "key": USER}), ("blocks", {}), ("system", {})):
                view.open(name, **parameters)
                assert view.wide() == 360, (name, view.wide())
                view.shot(f"phone-{name}-{'dark' if dark else 'light'}")
            assert view.page.run(_MOVED) < 0.05
            colour = view.page.run("getComputedStyle(document.body).backgroundColor")
            view.press("#theme")
            assert view.page.run("getComputedStyle(document.body).backgroundColor") != colour


def test_what_is_shown_stands_still_at_any_width(_):
    """Also where a table becomes stacks: before it is seen for the first time."""
    for width in (390, 768, 1024, 1440):
        for name, parameters in (("overview", {}), ("top", {"zone": "api"}), ("decisions", {}), ("blocks", {}), ("system", {}),
                                 ("user", {"zone": "login", "key": USER})):
            with look(width=width) as view:
                view.open(name, **parameters)
                moved = view.page.run(_MOVED)
                assert moved < 0.05, (width, name, moved)


def test_the_keyboard_reaches_everything(_):
    with look() as view:
        view.open("top", zone="api")
        view.page.run("document.activeElement.blur()")
        met = []
        for _ in range(80):
            view.page.press("Tab", 9)
            one = view.page.run("""(() => { const at = document.activeElement; const style = getComputedStyle(at);
                if (at === document.body) return { at: "", seen: true };
                return { at: at.id || at.getAttribute("href") || at.ariaLabel || at.textContent,
                         seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
            })()""")
            assert one["seen"], f"no focus to be seen: {one['at']}"
            if not one["at"] or one["at"] in met[:-1]:
                break
            if one["at"] not in met:  # a date has several places
                met.append(one["at"])
        assert met[0] == "skip" and "theme" in met and "Save as CSV" in met[-1], met
        everything = view.page.run("[...document.querySelectorAll('a[href], button:not(:disabled), select, input, [tabindex=\"0\"]')]"
                                   ".filter((one) => one.checkVisibility() && !one.closest('dialog')).length")
        assert len(met) == everything, (len(met), everything, met)
        view.press("#skip")
        assert view.page.run("document.activeElement.id") == "content" and "top" in view.page.run("location.hash")
        view.press("a[href='#/system']")
        view.shown(refresh="on")
        assert view.page.run("document.activeElement.tagName") == "H1"
        assert view.page.run("document.querySelector('nav [aria-current]').textContent") == "System"
        view.page.until("document.getElementById('news').textContent === 'System: loaded.'")


BERLIN = {"locale": "de-DE", "zone": "Europe/Berlin"}


def test_a_decision_says_why(place):
    """At any width, in both colours and in another language; as the API has it; after the log is gone, in words."""
    told = Explained(place, tokens=[Explained.TOKEN])
    identity = told.decision["id"]
    for width, dark in ((390, False), (390, True), (768, False), (768, True), (1440, False), (1440, True)):
        with told.told(STAGE[0], width=width, dark=dark, **(BERLIN if dark else {})) as view:
            assert view.wide() == width, (width, view.wide())
            over = view.page.run("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog.why'))")
            assert over <= 0, (width, over)
            view.shot(f"why-{width}-{'dark-de' if dark else 'light-en'}")
    with told.told(STAGE[0]) as view:
        rows = view.rows("5 counted events")
        log = view.text("dialog.why")
        assert "the same decision, byte for byte. Policy 1 was in force." in log and f"weir explain {identity}" in log, log
        with open(told.run.log, encoding="utf-8") as file:
            lines = file.read().splitlines()
        assert [row[2] for row in rows] == lines, rows
        assert rows[1][1] == f"{told.run.log}, byte {len(lines[0]) + 1}", rows
        assert "decided" in view.text("dialog.why tbody tr:last-child") and view.text("dialog.why tbody").count("decided") == 1
        view.page.press("Escape", 27)
        view.page.until("document.querySelector('dialog.why') === null")
        assert view.page.run("document.activeElement.className").endswith("why-button")
        kept = view.rows("Requests, newest first")
        assert [row[2:5] for row in kept] == [["POST", "/login", json.loads(lines[i])["agent"]
                                               .replace("\u202e", "\\xe2\\x80\\xae").replace("\x1b", "\\x1b")]
                                              for i in (4, 3, 2, 1, 0)], kept
    os.remove(told.run.log)
    for width, dark in ((390, True), (1440, False)):
        with told.told(STAGE[0], width=width, dark=dark, **(BERLIN if dark else {})) as view:
            said = view.text("dialog.why")
            assert "What is missing" in said and "5 of 5 lines" in said, said
            assert "The line is gone. Kept: method POST" in said.replace("\n", " "), said
            view.shot(f"why-gone-{width}-{'dark-de' if dark else 'light-en'}")
    told.run.stop()


def test_without_tokens_the_page_says_how_to_ask(place):
    told = Explained(place)
    with told.told(STAGE[0], allowed=["403 (Forbidden)"], width=390) as view:
        said = view.text("dialog.why")
        assert "archiver.tokens" in said and f"weir explain {told.decision['id']}" in said, said
        view.shot("why-no-token")
    told.run.stop()
    with look(width=1440) as view:  # an archiver alone has no log of events
        view.open("decisions")
        view.shot("why-decisions")


def test_a_token_is_asked_for_and_an_empty_store_says_what_to_do(place):
    api = on_sqlite(place, tokens=["a-secret-of-16-letters", "another-of-16-letters"])
    with looking(STAGE[0], api, allowed=["401 (Unauthorized)"]) as view:
        view.page.open(view.origin)
        # One from a chat may have a letter that nobody sees, and no request can carry.
        for token, words in (("wrong", ""), ("a-secret-of-16-letters\u200b", "does not accept"), ("a-secret-of-16-letters", "of ASCII")):
            view.page.until("document.getElementById('token').open && document.activeElement.id === 'token-text'"
                            " && document.activeElement.value === ''"
                            f" && document.getElementById('token-why').textContent.includes({json.dumps(words)})")
            if token == "wrong":
                view.shot("token")
            view.page.type(token)
            view.page.press("Enter", 13, "\r")
        view.shown()
        assert "There are no zones yet." in view.text() and "weir policy apply" in view.text()
        view.shot("empty")
        for name, words in (("top", "There are no zones yet."), ("user", "Which user?"),
                            ("blocks", "Nobody is blocked."), ("system", "Nothing is stored yet.")):
            assert words in view.open(name).text()  # the token is kept
        view.page.call("Page.reload")
        view.page.until("document.querySelector('.results')?.innerText.includes('Nothing is stored')")
    with looking(STAGE[0], api, allowed=["ERR_CONNECTION_", "401 (Unauthorized)"]) as view:
        view.page.open(view.origin)
        view.page.until("document.getElementById('token').open")
        api.program.kill()
        view.page.type("a-secret-of-16-letters")
        view.page.press("Enter", 13, "\r")
        view.page.until("document.querySelector('[role=alert]')?.innerText.includes('The archiver does not answer')")
        view.shot("failed")
        on_sqlite(place, api=f"127.0.0.1:{api.port}")
        view.shown()  # by itself, once there is an archiver again


def test_what_could_not_be_loaded_again_is_asked_for_until_it_comes(place):
    api = on_sqlite(place)
    with looking(STAGE[0], api, allowed=["ERR_CONNECTION_"]) as view:
        view.open("blocks")
        api.program.kill()
        view.page.until("document.querySelector('[role=alert]')?.innerText.includes('The page retries automatically')")
        view.page.run("globalThis.said = document.querySelector('[role=alert]')")
        asked = len(view.page.requests)
        until(lambda: view.page.run("1") and len(view.page.requests) > asked, "another try")
        view.page.run("new Promise((done) => setTimeout(done, 200))")
        assert view.page.run("globalThis.said.isConnected"), "a reader would be told once more"
        on_sqlite(place, api=f"127.0.0.1:{api.port}")
        view.page.until("document.querySelector('.results').innerText.includes('Nobody is blocked.')")


def test_counts_of_long_ago_are_shown_at_once(place):
    """As of a run over old logs, whose partitions say nothing of event times."""
    api = on_sqlite(place)
    hour = int(time.time() * 1000) // HOUR_MS * HOUR_MS - 500 * DAY_MS
    zone = {"id": 1, "name": "api", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}
    api.insert("policy_version", [(1, json.dumps({"zones": [zone]}))])
    api.insert("zone_hourly", [(1, hour, 0, 17, 3, 0)])
    api.insert("partition_state", [(1, 0, 1, 1, 1, 0, 1, None)])
    with looking(STAGE[0], api) as view:
        view.open()
        assert view.figures(".headline")["Requests passed"] == 17, view.text()
        asked = view.asked("top")
        assert (int(asked["from"]), int(asked["to"])) == (hour + HOUR_MS - 7 * DAY_MS, hour + HOUR_MS)
        assert "All is well" not in view.open("system", refresh="off").text(), "no archiver, though this process has figures"


def test_where_keys_are_hashed_lists_lead_to_stories_and_people_type_keys(place):
    """A story is found by what a list has, and by what it is of."""
    secret = place.write("secret", "a secret of some bytes")
    os.chmod(secret, 0o600)
    hashed = hmac.new(b"a secret of some bytes", b"198.51.0.7", hashlib.sha256).hexdigest()[:32]
    api = on_sqlite(place, hash_keys=secret)
    now = int(time.time() * 1000)
    zone = {"id": 1, "name": "api", "key": ["ip"], "limits": [{"algorithm": "uniform", "interval": "1s"}]}
    api.insert("policy_version", [(1, json.dumps({"zones": [zone]}))])
    for day, table in enumerate(("count_hourly", "count_daily")):
        begin = now - now % (DAY_MS if day else HOUR_MS)
        key = (begin, 1, hashed.encode()) if day else (1, hashed.encode(), begin)
        api.insert(table, [(*key, 41, 1, 0)])
    with looking(STAGE[0], api) as view:
        view.open("top", zone="api")
        view.press(f"a[href*='{hashed}']")
        assert view.shown(key=hashed).figures()["Passed"] == 41, view.text()
        assert view.open("user", zone="api", key="198.51.0.7").figures()["Blocked"] == 1, view.text()


def test_the_files_are_those_of_the_tree_and_shut_everything_else_out(_):
    for name in sorted(os.listdir(os.path.join(ROOT, "archiver", "page"))):
        if name.endswith((".cmake", ".h")):
            continue
        answer = STAGE[1].raw("/" if name == "index.html" else f"/page/{name}", Accept_Encoding="gzip")
        with open(os.path.join(ROOT, "archiver", "page", name), "rb") as file:
            assert answer.status == 200 and answer.body == file.read(), name
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        again = STAGE[1].raw("/" if name == "index.html" else f"/page/{name}", If_None_Match=answer.headers["etag"])
        assert again.status == 304 and again.body == b""
    licence = STAGE[1].raw("/page/uPlot.LICENSE.txt").body
    assert b"Permission is hereby granted" in licence or licence == b"This build has no uPlot in it.\n"
    with look(allowed=["Content Security Policy"]) as view:
        view.open("system")
        view.page.run("(() => { const one = document.createElement('script'); one.textContent = 'window.broken = 1';"
                      " document.body.append(one); })()")
        assert view.page.run("window.broken === undefined")
        until(lambda: view.page.run("1") and view.page.errors, "the browser says what it refused")


def main(browser, api):
    """Runs the tests on these."""
    STAGE.extend((browser, api))
    cases.main(globals())


if __name__ == "__main__":
    sys.exit(shared(Week(int(time.time() * 1000)), main))
