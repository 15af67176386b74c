#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archiver's page by day, in every time zone: all that is counted is in the chart, and where days are not the zone's,
or hours are deleted, the page says so.

Skipped where there is no Chromium.
"""

import contextlib
import datetime
import json
import os
import sqlite3
import sys
import time
import zoneinfo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.archiver_api import ZONES, OnSqlite
from support.archiver_page import looking
from support.archiver_rows import count_tables
from support.chromium import Chromium

HOUR_MS, DAY_MS = 3600_000, 86400_000
LIMITS = [{"algorithm": "sliding_window", "rate": 3, "window": "1h"}]
_DRAWN = """import(`${location.origin}/page/chart.js`).then(({ plot_of }) =>
  [...document.querySelectorAll(".plot")].map((box) => plot_of(box)?.data ?? null))"""

_NAMES = """import(`${location.origin}/page/chart.js`).then(({ plot_of }) =>
  plot_of(document.querySelector(".plot-blocked")).axes[0]._values)"""


def at(text):
    """An instant: 2026-11-20, or with a time and a zone."""
    moment = datetime.datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp() * 1000)


@contextlib.contextmanager
def stage(place, hourly, **archiver):
    """(a browser, an API of one zone that has these hours)."""
    api = OnSqlite(place, {"zones": ZONES}, archiver)
    api.insert("policy_version", [(1, json.dumps({"zones": [{"id": 1, "name": "site", "key": ["user"], "limits": LIMITS}]}))])
    for table, rows in count_tables(hourly).items():
        api.insert(table, rows)
    with Chromium(place) as browser:
        yield browser, api
    api.end()


def drawn(view, number=0):
    """{begin of a bar: requests} of those that have some."""
    if view.page.run("document.querySelector('.plot') === null"):
        raise cases.Skipped("built without charts (deploy/packages charts, and build again)")
    view.page.until("document.querySelector('.plot canvas') !== null")
    times, both, _ = view.page.run(_DRAWN)[number]
    return {begin: count for begin, count in zip(times, both) if count}


def test_winter_counts_are_drawn_in_a_span_that_begins_in_summer(place):
    """In London a winter's days are those of UTC, and a summer's are not."""
    hourly = [(1, b"winter", at("2026-01-05T12:00") + day * DAY_MS, 3, 1, 0) for day in range(30)]
    with stage(place, hourly) as (browser, api):
        for zone in ("Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Berlin", "America/New_York", "UTC"):
            with looking(browser, api, zone=zone) as view:
                view.open("user", zone="site", key="winter", span="365d", until="2026-07-10")
                assert view.figures()["Passed"] == 90
                local = zoneinfo.ZoneInfo(zone)
                days = {int(datetime.datetime(2026, 1, 5 + day, tzinfo=local).timestamp() * 1000): 4 for day in range(27)}
                got = drawn(view)
                assert sum(got.values()) == 120 and days.items() <= got.items(), (zone, got)
                if zone == "Europe/London":
                    view.shot("days-winter-london")
                view.open("overview", span="365d", until="2026-07-10")
                assert sum(drawn(view).values()) == 120, zone


def test_labels_of_a_chart_without_requests_are_whole(place):
    """A user who was blocked and did not come."""
    with stage(place, [(1, b"other", at("2026-01-05"), 1, 0, 0)]) as (browser, api):
        begin = at("2026-01-03T10:00")
        api.insert("decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode)",
                   [(begin, 0, 1, 0, b"site", b"held", b"block", begin + HOUR_MS, b"enforce")])
        with looking(browser, api, allowed=["willReadFrequently"]) as view:
            view.open("user", zone="site", key="held", span="7d", until="2026-01-05")
            assert drawn(view) == {}
            view.shot("days-nothing-counted")
            for box in (".plot", ".plot-blocked"):
                cut = view.page.run(f"""(() => {{
                    const canvas = document.querySelector("{box} canvas"), {{ width, height }} = canvas;
                    const dots = canvas.getContext("2d").getImageData(0, 0, width, height).data;
                    return [...Array(height).keys()].filter((y) => dots[4 * y * width + 3] > 0).length;
                }})()""")
                assert cut == 0, (box, cut)


# A zone's days, and whether they begin with hours of UTC.
HALVES = {"Asia/Kolkata": "+05:30", "America/St_Johns": "-02:30", "Asia/Kathmandu": "+05:45", "Pacific/Chatham": "+12:45"}


def test_days_that_hours_cannot_tell_are_those_of_utc_and_said_to_be(place):
    """Seven requests at 0:10 of a day in Kolkata: an hour of UTC has them that begins before that day."""
    hour = at("2026-09-10T00:10+05:30") // HOUR_MS * HOUR_MS
    with stage(place, [(1, b"u", hour, 7, 0, 0)]) as (browser, api):
        for zone in (*HALVES, "Australia/Lord_Howe"):
            with looking(browser, api, zone=zone) as view:
                for name, more in (("overview", {}), ("user", {"zone": "site", "key": "u"})):
                    view.open(name, span="365d", until="2026-10-20", **more)
                    said = " ".join(view.text().split())
                    assert drawn(view) == {at("2026-09-09"): 7}, (zone, name, drawn(view))
                    assert f"by whole hours of UTC, and days in {view.text('#zone')} do not begin with one." in said, said
                    assert (name == "user") or ", by UTC day." in said, said
                    view.press("details summary")
                    view.page.until("document.querySelector('.numbers tbody') !== null")
                    assert "Sep 9, 2026" in view.text(".numbers tbody"), "the day is named as UTC's"
                    if zone == "America/St_Johns":
                        view.shot(f"days-utc-{name}")
        with looking(browser, api, zone="Asia/Kolkata") as view:
            view.open("overview", span="7d", until="2026-09-12")
            assert drawn(view) == {hour: 7} and "Days are those of UTC" not in view.text()
            view.choose("span", "custom")  # whose ends are half past
            assert view.page.run("document.getElementById('field-from').value").endswith(":30")
            day = at("2026-09-09")
            view.page.run(f"""(() => {{
                const field = document.getElementById("field-from");
                field.value = "2026-09-09T05:30";
                field.dispatchEvent(new Event("change", {{ bubbles: true }}));
            }})()""")
            view.shown(span="custom", **{"from": "2026-09-09T00:00Z"})
            assert min(view.page.run(_DRAWN)[0][0]) == day and drawn(view) == {hour: 7}


def test_a_year_is_shown_in_every_zone_on_every_day(place):
    """Also where a summer ends on the last day, which has an hour more."""
    for newest, zones in (("2026-10-25T12:00", ("Europe/Berlin", "Asia/Kolkata")), ("2026-11-20T12:00", ("UTC", "Asia/Kolkata")),
                          ("2026-11-01T12:00", ("America/New_York", "America/St_Johns"))):
        with cases.Place(None) as own, \
                stage(own, [(1, b"u", at(newest) - day * DAY_MS, 1, 1, 0) for day in range(380)]) as (browser, api):
            for zone in zones:
                with looking(browser, api, zone=zone) as view:
                    for name, more in (("top", {"zone": "site"}), ("overview", {}), ("user", {"zone": "site", "key": "u"})):
                        view.open(name, span="365d", **more)
                        said = view.text()
                        assert "Cannot show" not in said and "Not available" not in said, (newest, zone, name, said[:400])
                    assert len(drawn(view)) == 365 and view.figures()["Passed"] == 365, (newest, zone)
                    view.open("overview", span="365d")
                    assert view.rows("Most blocked keys")[0][2] == 365, (newest, zone)
    del place


def test_keys_of_more_than_366_days_are_those_of_the_last_and_said_to_be(place):
    span = {"span": "custom", "from": "2025-06-01T00:00Z", "to": "2026-11-21T00:00Z"}
    with stage(place, [(1, b"u", at("2026-11-20") - day * DAY_MS, 1, 1, 0) for day in range(500)]) as (browser, api):
        for zone in ("UTC", "Europe/Berlin"):
            with looking(browser, api, zone=zone) as view:
                view.open("overview", **span)
                assert "Keys are listed for the last 366 days only." in view.text(), view.text()
                assert view.rows("Most blocked keys")[0][2] == 366 and view.figures(".headline")["Requests blocked"] == 500
                view.shot(f"days-long-{zone.replace('/', '-')}")
                view.open("top", zone="site", **span)
                assert "Keys are listed for the last 366 days only." in view.text(), view.text()
                assert view.rows("The busiest key")[0][2] == 732


def delete_hours(api, before_ms):
    """As archiver.keep_hourly does."""
    with sqlite3.connect(api.database) as archive:
        archive.execute("DELETE FROM count_hourly WHERE hour_ms < ?", (before_ms,))


def test_days_stand_for_hours_that_are_deleted(place):
    """Whatever the zone and the span, and also where this process does not know how long hours are kept."""
    now = int(time.time() * 1000) // HOUR_MS * HOUR_MS
    for archiver in ({"keep_hourly": "30d"}, {}):
        hourly = [(1, b"u", now - number * 6 * HOUR_MS, 1, 0, 0) for number in range(4 * 200)]
        with cases.Place(None) as own, stage(own, hourly, **archiver) as (browser, api):
            delete_hours(api, now - 30 * DAY_MS)
            day = now // DAY_MS * DAY_MS - 60 * DAY_MS
            until = time.strftime("%Y-%m-%d", time.gmtime(day / 1000))
            for zone in ("UTC", "Europe/Berlin", "Asia/Kolkata"):
                with looking(browser, api, zone=zone) as view:
                    view.open("user", zone="site", key="u", span="365d")
                    assert view.figures()["Passed"] == 800 == sum(drawn(view).values()), (zone, view.figures())
                    says = "Hours of this time are deleted, so whole days of UTC are shown."
                    assert (says in view.text()) == (zone == "Europe/Berlin"), (zone, view.text()[:400])
                    for span, least in (("31d", 31), ("24h", 1)):
                        view.open("user", zone="site", key="u", span=span, until=until)
                        ends = [int(view.asked("decisions")[name]) for name in ("from", "to")]
                        assert [one % DAY_MS for one in ends] == [0, 0] and ends[1] - ends[0] >= least * DAY_MS
                        days = (ends[1] - ends[0]) // DAY_MS
                        assert view.figures()["Passed"] == 4 * days == sum(drawn(view).values()), (zone, span, view.figures())
                        assert says in view.text(), (zone, span, view.text()[:400])
                        names = view.page.run(_NAMES)
                        assert len([name for name in names if name]) == len(set(names) - {""}), names
                    if zone == "Europe/Berlin":
                        view.shot(f"days-hours-deleted-{len(archiver)}")
                    view.open("user", zone="site", key="u", span="24h")  # whose hours are all there
                    assert view.figures()["Passed"] in (4, 5) and "deleted" not in view.text(), view.text()[:400]
    del place


def test_counts_that_are_deleted_are_missed_aloud(place):
    now = int(time.time() * 1000) // HOUR_MS * HOUR_MS
    with stage(place, [(1, b"u", now - HOUR_MS, 5, 2, 0)], keep_totals="30d", keep_daily="30d", keep_hourly="30d") as (browser, api):
        with looking(browser, api) as view:
            for name, more in (("overview", {}), ("user", {"zone": "site", "key": "u"}), ("top", {"zone": "site"})):
                view.open(name, span="365d", **more)
                assert "may be deleted." in view.text(), (name, view.text()[:400])
                view.open(name, span="7d", **more)
                assert "may be deleted." not in view.text(), (name, view.text()[:400])
            view.open("overview", span="31d")  # the span before it is deleted, and nothing to be held against
            assert "against the span before" not in view.text(), view.text()[:400]


# Half hours, a change of half an hour, of two, by religion; at midnight; twice midnight.
CLOCKS = ("Australia/Lord_Howe", "Asia/Kathmandu", "Antarctica/Troll", "Africa/Casablanca", "America/Santiago",
          "America/St_Johns", "Pacific/Chatham", "Asia/Gaza", "Asia/Amman", "America/Havana", "Asia/Beirut", "Africa/Cairo",
          "Pacific/Apia", "Europe/London", "Asia/Tehran")
FIRST_DAY, DAYS = datetime.date(2014, 1, 1), 11 * 365


def test_days_begin_when_another_calendar_says(place):
    """Python's zoneinfo: a midnight that comes twice is the first, one that is left out the moment after."""
    days = [FIRST_DAY + datetime.timedelta(number) for number in range(DAYS)]
    with stage(place, [(1, b"u", at("2026-01-05"), 1, 0, 0)]) as (browser, api):
        for zone in CLOCKS:
            local = zoneinfo.ZoneInfo(zone)
            want = [int(datetime.datetime(day.year, day.month, day.day, tzinfo=local).timestamp() * 1000) for day in days]
            with looking(browser, api, zone=zone) as view:
                view.open("blocks")
                got = view.page.run("import(`${location.origin}/page/clock.js`).then(({ day_start, day_begin }) =>"
                                    f" {json.dumps([str(day) for day in days])}.map((day) => [day_start(day),"
                                    " day_begin(day_start(day) + 1800e3), day_begin(day_start(day), 1)]))")
                wrong = [(str(day), *own) for day, own, begin, end in zip(days, got, want, [*want[1:], got[-1][2]])
                         if own != [begin, begin, end]]
                assert wrong == [], (zone, wrong[:5])


if __name__ == "__main__":
    cases.main(globals())
