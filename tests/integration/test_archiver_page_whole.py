#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archiver's page leaves nothing out and takes nothing for something else: zones that are not drawn, a zone that never
was, keys with letters that nobody sees.

Skipped where there is no Chromium.
"""

import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.archiver_api import ZONES, OnSqlite
from support.archiver_page import looking
from support.archiver_rows import count_tables
from support.chromium import Chromium

HOUR_MS = 3600_000
NOW_MS = int(time.time() * 1000)
HOUR = NOW_MS // HOUR_MS * HOUR_MS - HOUR_MS
LIMITS = [{"algorithm": "sliding_window", "rate": 3, "window": "1h"}]
# What a reader sees of each; what is in the key.
HIDDEN = {"\u202e1.0.0.721": r"\xe2\x80\xae1.0.0.721", "admin\u200b": r"admin\xe2\x80\x8b", "a\nb": r"a\x0ab",
          "a\x1b[31mb": r"a\x1b[31mb", "\u3164": r"\xe3\x85\xa4", "a\\\\x41": r"a\\x41", " lead": " lead",
          "admin": "admin", "tab\t": r"tab\x09", "a\u2066b": r"a\xe2\x81\xa6b"}


@contextlib.contextmanager
def stage(place, zones, hourly, **archiver):
    """(a browser, an API of these zones, by id, that has these hours)."""
    api = OnSqlite(place, {"zones": ZONES}, archiver)
    policy = [{"id": number, "name": name, "key": ["user"], "limits": LIMITS, **more} for number, (name, more) in zones.items()]
    api.insert("policy_version", [(1, json.dumps({"zones": policy}))])
    for table, rows in count_tables(hourly).items():
        api.insert(table, rows)
    with Chromium(place) as browser:
        yield browser, api
    api.end()


def many(count):
    """Zones, the last ones the busiest; of the first nobody was blocked."""
    zones = {number: (f"z{number:03d}", {}) for number in range(1, count + 1)}
    return zones, [(number, b"u%d" % user, HOUR, 10 * number + user, number // 2 * 3 + user * (number > 1), 1)
                   for number in zones for user in range(3)]


def require_headline(view, zones, hourly):
    """Sums and the keys that were blocked most are those of all zones."""
    head = view.figures(".headline")
    assert head["Requests passed"] == sum(row[3] for row in hourly), head
    assert head["Requests blocked"] == sum(row[4] for row in hourly), head
    want = sorted(((row[1].decode(), zones[row[0]][0], row[4]) for row in hourly), key=lambda one: -one[2])[:5]
    rows = [tuple(row[:3]) for row in view.rows("Most blocked keys")]
    assert [row[2] for row in rows] == [row[2] for row in want] and rows[0] == want[0], (rows, want)


def test_the_headline_is_of_all_zones(place):
    zones, hourly = many(12)
    with stage(place, zones, hourly) as (browser, api):
        with looking(browser, api) as view:
            view.open("overview")
            assert view.page.run("document.querySelectorAll('section[aria-labelledby^=zone-]').length") == 8
            require_headline(view, zones, hourly)
            view.shot("whole-headline")
            asked = [one for one in view.page.requests if "/api/v1/top?" in one]
            assert len(asked) == 9, "of the last nine: the others cannot have one of the five"


def test_a_headline_is_of_the_ninth_zone_alone(place):
    """The others have nothing: the page does not say that nobody came."""
    zones, _ = many(9)
    with stage(place, zones, [(9, b"x", HOUR, 2, 8, 0)]) as (browser, api), looking(browser, api) as view:
        view.open("overview")
        assert view.figures(".headline")["Requests blocked"] == 8 and view.rows("Most blocked keys")[0][:3] == ["x", "z009", 8]
        assert "Go to the newest decision" not in view.text() and view.page.run("document.getElementById('newest')") is None


def test_a_headline_waits_where_many_questions_are_refused(place):
    zones, hourly = many(40)
    with stage(place, zones, hourly, api_rate=20) as (browser, api), \
            looking(browser, api, allowed=["429", "Too Many"]) as view:
        view.page.open(view.address("overview"))
        view.page.until("document.querySelector('.headline .figures') !== null && document.querySelector('.results').dataset.shown")
        require_headline(view, zones, hourly)


def test_a_zone_that_is_unknown_is_said_to_be(place):
    """No other zone is shown in its place, nor a command for it."""
    with stage(place, *many(2)) as (browser, api), looking(browser, api) as view:
        for name, more in (("user", {"key": "u1"}), ("top", {}), ("decisions", {}), ("blocks", {})):
            view.open(name, zone="gone", **more)
            assert "Unknown value for Zone: “gone”." in view.text(), (name, view.text())
            assert view.page.run("document.querySelectorAll('.results table, .results button').length") == 0, name
            assert view.page.run("document.getElementById('field-zone').value") == "", name
            assert "gone" not in view.page.run("[...document.querySelectorAll('#views a')].map((one) => one.href).join()")
        view.open("user", zone="gone", key="u1")
        view.shot("whole-unknown-zone")
        view.choose("span", "24h")
        assert "Unknown value for Zone: “gone”." in view.text()
        view.choose("zone", "z002")
        assert view.figures()["Passed"] == 21 and "unknown" not in view.text()
        view.open("top", by="foo", zone="z001")
        assert "Unknown value for Sorted by: “foo”." in view.text()
        view.page.open(view.address("user", zone="", key="u1"))
        view.shown(zone="z001", key="u1")
        assert view.figures()["Passed"] == 11, "an empty one is none"


def test_a_long_name_of_a_zone_fits_a_phone(place):
    name = "a" * 64
    zones = {1: (name, {"description": "b" * 300})}
    with stage(place, zones, [(1, b"c" * 300, HOUR, 5, 9, 0)]) as (browser, api):
        api.insert("decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode)",
                   [(HOUR, 0, 1, 0, name.encode(), b"c" * 300, b"block", NOW_MS + HOUR_MS, b"enforce")])
        for width in (360, 390):
            with looking(browser, api, width=width, height=740) as view:
                for view_name, more in (("overview", {}), ("top", {}), ("decisions", {}), ("blocks", {}), ("system", {}),
                                        ("user", {"key": "c" * 300})):
                    view.open(view_name, **more)
                    view.shot(f"whole-long-{view_name}")
                    assert view.wide() == width, (view_name, view.wide())


def test_what_nobody_sees_in_a_key_is_shown(place):
    """An order from right to left, letters without width, control characters, blanks at the ends."""
    hourly = [(1, key.encode(), HOUR, 20 + number, 30 + number, 0) for number, key in enumerate(HIDDEN)]
    with stage(place, {1: ("site", {"history": {"fields": ["path"]}})}, hourly) as (browser, api):
        api.insert("decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode, ordered_by,"
                   " reason)", [(HOUR + number, 0, number, 0, b"site", key.encode(), b"block", NOW_MS + HOUR_MS, b"enforce",
                                 "j\u200bo".encode(), "no\u202epe".encode()) for number, key in enumerate(HIDDEN)])
        with looking(browser, api, width=1440) as view:
            for name in ("overview", "top", "decisions", "blocks"):
                view.open(name)
                links = dict(view.page.run("[...document.querySelectorAll('a.key')].map((one) => ["
                                           " new URLSearchParams(one.hash.split('?')[1]).get('key'), one.textContent])"))
                assert links.items() <= HIDDEN.items() and len(links) >= 5, (name, links)
                assert name == "overview" or len(links) == len(HIDDEN), name
                require_nothing_unseen(view, name)
                view.shot(f"whole-hidden-{name}")
            assert r"ordered by j\xe2\x80\x8bo: no\xe2\x80\xaepe" in view.text()
            view.open("top", part=r"\x1b")
            assert len(view.rows("The ")) == 1, "what is shown is what is looked for"
            for number, (key, shown) in enumerate(HIDDEN.items()):
                view.open("user", zone="site", key=key)
                assert view.page.run("document.getElementById('field-key').value") == shown
                assert view.page.run("document.querySelector('.results .key').textContent") == shown
                require_nothing_unseen(view, key)
                assert view.figures()["Passed"] == 20 + number
                view.choose("span", "24h")  # a field that nobody has touched keeps what it has
                assert view.asked("decisions")["key"] == key and view.figures()["Passed"] == 20 + number, key
                if key == key.strip():
                    view.open("user", zone="site", key="other")
                    view.page.run(f"""(() => {{
                        const field = document.getElementById("field-key");
                        field.value = {json.dumps(shown)};
                        field.dispatchEvent(new Event("change", {{ bubbles: true }}));
                    }})()""")
                    view.shown(key=key)  # one that is typed as it is shown is the same
                    assert view.figures()["Passed"] == 20 + number, key


def require_nothing_unseen(view, where):
    """No letter of the page's text is one that nobody sees."""
    said = view.page.run("document.getElementById('content').textContent")
    hidden = {letter for key in HIDDEN for letter in key if letter in "\u202e\u200b\n\x1b\u3164\t\u2066"}
    assert not hidden & set(said), (where, hidden & set(said))


if __name__ == "__main__":
    cases.main(globals())
