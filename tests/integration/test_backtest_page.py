#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `weir backtest --html` in a headless Chromium: what it shows is what --json says, it asks nobody for anything,
and axe-core finds nothing.

Leaves pictures in page/ of the build directory. Skipped where there is no Chromium.
"""

import contextlib
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import axe, cases, traffic
from support.chromium import Chromium
from support.place import read
from support.run_local import Run
from support.traffic import burst, fixed, sliding, zone

MARKUP = "</script><img src=x onerror=alert(1)>"
DRAWN = "document.getElementById('report').drawn()"
ROWS = """[...document.querySelectorAll("[aria-label='%s'] tbody tr")].map((row) =>
          [...row.cells].map((cell) => cell.querySelector("data")?.value ?? cell.textContent))"""


def reported(place):
    """The report of three policies as JSON; the page beside it."""
    text = b"".join(traffic.crowd(random.Random(5), 3000, 60)).decode() + burst(MARKUP, 30)
    log = place.write("a.log", text)
    source = dict(traffic.source(log), follow=False)
    policies = {"mild": [zone("site", [sliding(12, "1m")])], "strict": [zone("site", [fixed(5, "1m")])],
                "bucket": [zone("site", [{"algorithm": "token_bucket", "rate": 9, "window": "1m"}])]}
    words = [word for name, zones in policies.items()
             for word in ("--config", place.config(zones, [source], name=name + ".json"))]
    place.good("backtest", *words, "--json", place.path("r.json"), "--html", place.path("r.html"), "--quiet", "--sort")
    return json.loads(read(place.path("r.json")))


@contextlib.contextmanager
def looking(browser, place, **window):
    """The page, which must not have gone wrong, nor have asked for anything."""
    page = browser.page(**window)
    page.open("file://" + place.path("r.html"))
    page.until("document.querySelector('h1') !== null")
    yield page
    page.run("1")
    assert not page.errors, page.errors
    assert all(one.startswith(("file://" + place.path("r.html"), "data:")) for one in page.requests), page.requests
    page.close()


def shot(page, name):
    """A picture of the whole page."""
    folder = os.path.join(os.environ.get("WEIR_BUILD", "build/release"), "page")
    os.makedirs(folder, exist_ok=True)
    page.screenshot(os.path.join(folder, f"backtest-{name}.png"))


def require_chart(page, report, kind):
    """Requires that the chart has a series' bins, and paints them."""
    page.until("(document.querySelector('.plot canvas')?.height ?? 1) > 0")
    data = page.run(DRAWN)
    if data is None:
        raise cases.Skipped("built without charts (deploy/packages charts, and build again)")
    assert data == [report["over_time"]["at"], *(one[kind] for one in report["over_time"]["series"])]
    colours = page.run("""(() => {
        const canvas = document.querySelector(".plot canvas");
        const dots = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(dots.buffer)).size;
    })()""")
    assert colours > 3, "the chart is blank"


def test_the_page_shows_the_report(place):
    report = reported(place)
    with Chromium(place) as browser:
        with looking(browser, place) as page:
            want = [[one["policy"], own["zone"], own["requests"], own["passed"], own["blocked"], own["decisions"], own["keys"],
                     own["blocked_keys"]] for one in report["policies"] for own in one["zones"]]
            rows = page.run(ROWS % "Zones")
            assert [[*row[:2], *(int(row[i]) for i in (2, 3, 4, 6, 7, 8))] for row in rows] == want, rows
            for one in report["differences"]:
                rows = page.run(ROWS % f"{one['policy']} against {one['against']}")
                assert [(row[0], row[2]) for row in rows] == [(" | ".join(each["key"]), each["blocked_by"])
                                                              for each in one["first"]]
            assert MARKUP in page.run("document.body.textContent") and page.run("document.images.length") == 0
            require_chart(page, report, "passed")
            shot(page, "wide")
            page.run("(() => { const one = document.getElementById('kind'); one.value = 'blocked';"
                     " one.dispatchEvent(new Event('change')); })()")
            require_chart(page, report, "blocked")
            page.run("document.querySelector('.numbers summary').click()")
            page.until("document.querySelector('.numbers tbody') !== null")
            rows = page.run("[...document.querySelectorAll('.numbers tbody tr')].map((row) => [...row.cells].slice(1)"
                            ".map((cell) => Number(cell.querySelector('data').value)))")
            series = report["over_time"]["series"]
            assert rows == [[one[kind][i] for one in series for kind in ("passed", "blocked")]
                            for i in range(len(report["over_time"]["at"]))]
        with looking(browser, place, zone="Europe/Berlin") as page:
            check_choices_last(page, report)
        for name, window in (("dark", {"dark": True}), ("phone", {"width": 360, "height": 740}),
                             ("german", {"locale": "de-DE", "zone": "Europe/Berlin"})):
            with looking(browser, place, **window) as page:
                require_chart(page, report, "passed")
                wide = page.run("Math.max(innerWidth, document.documentElement.scrollWidth)")
                assert wide <= window.get("width", 1280), f"{name}: {wide} px wide"
                shot(page, name)


BERLIN = {"locale": "de-DE", "zone": "Europe/Berlin"}
LOOKS = {"wide": {"width": 1440}, "wide-dark": {"width": 1440, "dark": True, **BERLIN}, "phone": {"width": 390, "height": 844, **BERLIN},
         "phone-dark": {"width": 390, "height": 844, "dark": True}}


def test_axe_finds_nothing(place):
    """At both widths, in both colours and two languages."""
    script = axe.source()
    report = reported(place)
    with Chromium(place) as browser:
        for name, window in LOOKS.items():
            with looking(browser, place, **window) as page:
                require_chart(page, report, "passed")
                if name == "wide":  # of the table's thousands of cells, one look is enough
                    page.run("document.querySelector('.numbers summary').click()")
                    page.until("document.querySelector('.numbers tbody') !== null")
                found = axe.found(page, script)
                assert found == [], (name, found)
                assert page.run("Math.max(innerWidth, document.documentElement.scrollWidth)") <= window["width"], name
                assert page.run("document.querySelector('header').clientHeight") < 60, name
                shot(page, f"axe-{name}")


def test_axe_finds_nothing_where_there_is_little(place):
    """One policy, on a log without a request."""
    script = axe.source()
    log = place.write("a.log", "")
    config = place.config([zone("site", [sliding(3, "1m")])], [dict(traffic.source(log), follow=False)], name="a.json")
    place.good("backtest", "--config", config, "--html", place.path("r.html"), "--quiet")
    with Chromium(place) as browser:
        for name in ("wide", "phone-dark"):
            with looking(browser, place, **LOOKS[name]) as page:
                assert "No request was judged." in page.run("document.body.textContent")
                found = axe.found(page, script)
                assert found == [], (name, found)
                shot(page, f"empty-{name}")


def check_choices_last(page, report):
    """Requires that the button of the time zone leaves what a reader has chosen."""
    require_chart(page, report, "passed")
    page.run("(() => { const one = document.getElementById('kind'); one.value = 'blocked';"
             " one.dispatchEvent(new Event('change')); })()")
    page.run("document.querySelectorAll('.choices input')[1].click()")
    page.run("document.querySelector('.numbers summary').click()")
    page.until("document.querySelector('.numbers tbody') !== null")
    for _ in range(2):
        before = page.run("document.getElementById('zone').textContent")
        page.run("document.getElementById('zone').click()")
        assert page.run("document.getElementById('zone').textContent") != before
        assert page.run("document.getElementById('kind').value") == "blocked"
        assert page.run("[...document.querySelectorAll('.choices input')].map((one) => one.checked)") == [True, False, True]
        assert page.run("document.querySelector('.numbers').open")
        require_chart(page, report, "blocked")
        assert page.run("document.querySelectorAll('.plot canvas').length") == 1
    page.run("document.getElementById('theme').click()")
    require_chart(page, report, "blocked")
    assert page.run("document.querySelectorAll('canvas').length") == 1


def test_what_nobody_sees_in_a_key_is_shown(place):
    """An order from right to left, a letter without width, a control character; also in a policy's name."""
    keys = {"\u202e1.0.0.721": r"\xe2\x80\xae1.0.0.721", "admin\u200b": r"admin\xe2\x80\x8b", "a\x1b[31mb": r"a\x1b[31mb"}
    log = place.write("a.log", "".join(burst(key, 6) for key in keys))
    source = dict(traffic.source(log), follow=False)
    words = [word for name, rate in (("mild", 5), ("st\u2066rict", 2))
             for word in ("--config", place.config([zone("site", [sliding(rate, "1m")])], [source], name=name + ".json"))]
    place.good("backtest", *words, "--html", place.path("r.html"), "--quiet", "--sort")
    with Chromium(place) as browser, looking(browser, place) as page:
        rows = page.run(ROWS.replace("='%s'", "$='rict against mild'"))
        assert {row[0] for row in rows} == set(keys.values()), rows
        said = page.run("document.getElementById('content').textContent")
        assert not set("\u202e\u200b\x1b\u2066") & set(said), said
        shot(page, "hidden")


def test_small_shares_and_short_times_are_shown(place):
    text = burst("u", 4) + "".join(burst(f"u{i}", 1, traffic.START_MS + i) for i in range(2496))
    log = place.write("a.log", text)
    config = place.config([zone("site", [sliding(3, "1m")])], [dict(traffic.source(log), follow=False)], name="a.json")
    place.good("backtest", "--config", config, "--html", place.path("r.html"), "--quiet")
    with Chromium(place) as browser, looking(browser, place, zone="UTC") as page:
        texts = page.run("[...document.querySelectorAll(\"[aria-label='Zones'] tbody td\")].map((one) => one.textContent)")
        assert "0.040%" in texts, texts
        if page.run("!document.querySelector('.numbers').open"):
            page.run("document.querySelector('.numbers summary').click()")
        page.until("document.querySelector('.numbers tbody') !== null")
        times = page.run("[...document.querySelectorAll('.numbers tbody time')].map((one) => one.textContent)")
        assert len(set(times)) == len(times) > 10 and ".100" in times[1], times
        if page.run(DRAWN) is not None:  # the first time stands below the chart's left edge, half of it beside it
            page.until("document.querySelector('.plot .u-over') !== null")
            room, time_px = page.run("""(() => {
                const canvas = document.createElement("canvas").getContext("2d");
                canvas.font = "12px system-ui, sans-serif";
                return [document.querySelector(".plot .u-over").offsetLeft, canvas.measureText("10:13:20.000 PM").width];
            })()""")
            assert room >= time_px / 2 - 1, (room, time_px)


def test_events_of_a_log_are_no_lines(place):
    run = Run(place, log=burst("u1", 9)).start()
    run.published(key=["u1"])
    run.stop()
    place.good("backtest", "--config", run.config, "--state", run.state, "--html", place.path("r.html"), "--quiet")
    with Chromium(place) as browser, looking(browser, place) as page:
        said = page.run("[...document.querySelectorAll('.figures div')].map((one) => one.textContent)")
        assert said == ["Events of the log9"], said


if __name__ == "__main__":
    cases.main(globals())
