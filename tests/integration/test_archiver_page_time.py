#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archiver's page and time: every bar is drawn, every block is shaded, in one time zone that is named.

Skipped where there is no Chromium.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.archiver_page import looking, shared
from support.page_rows import DAY_MS, HOUR_MS, Week
from support.place import until

NO_END_MS = 253402300800000
WEEK = Week(int(time.time() * 1000))
STAGE = []  # the browser and the API of all tests
USER = "user1|198.51.0.1"
BERLIN = {"locale": "de-DE", "zone": "Europe/Berlin"}
OFTEN, LONG = b"often", b"since long"

# What a chart has painted, as tests ask for it.
_PAINTED = """((number, more) => import(`${location.origin}/page/chart.js`).then(({ plot_of }) => {
  const plot = plot_of(document.querySelectorAll(".plot")[number]);
  const canvas = plot.ctx.canvas, dots = plot.ctx.getImageData(0, 0, canvas.width, canvas.height).data;
  const colour = (name) => { const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = `var(${name})`; const said = getComputedStyle(probe).color; probe.remove();
    return said.match(/\\d+/g).slice(0, 3).map(Number); };
  const at = (x, y) => { const place = 4 * (Math.floor(y) * canvas.width + Math.floor(x)); return [...dots.slice(place, place + 3)]; };
  const is = (dot, name) => colour(name).every((part, i) => Math.abs(part - dot[i]) < 3);
  return more({ plot, canvas, dots, at, is });
}))"""


def painted(view, more, number=0):
    """The value of a function of what a chart has painted."""
    if view.page.run("document.querySelector('.plot') === null"):
        raise cases.Skipped("built without charts (deploy/packages charts, and build again)")
    view.page.until("document.querySelector('.plot canvas') !== null")
    return view.page.run(f"{_PAINTED}({number}, {more})")


def look(**more):
    """A page on what all tests share."""
    return looking(*STAGE, allowed=["willReadFrequently"], **more)


def test_every_bar_is_drawn_from_the_first_to_the_newest(_):
    for span, width in (("24h", 1440), ("24h", 390), ("7d", 1440), ("31d", 1440)):
        with look(width=width) as view:
            view.open("overview", span=span)
            missing = painted(view, """({ plot, at, is }) => plot.data[0].flatMap((time, i) => {
                const next = plot.data[0][i + 1] ?? plot.scales.x.max;
                if (plot.data[2][i] < plot.scales.y.max / 40) return []; // lower than what can be seen
                const [left, right] = [time, next].map((one) => plot.valToPos(one, "x", true));
                const near = right - left < 2 ? [-1, 0, 1] : [0]; // less than a pixel has one of its own or a neighbour's
                return near.some((more) => is(at((left + right) / 2 + more, plot.valToPos(0, "y", true) - 2), "--passed")) ?
                    [] : [i - plot.data[0].length];
            })""")
            assert missing == [], (span, width, missing)
            newest = painted(view, "({ plot }) => [plot.data[2].at(-1), plot.scales.x.max - plot.data[0].at(-1),"
                                   " plot.valToPos(plot.scales.x.max, 'x', true) - plot.bbox.left - plot.bbox.width]")
            assert newest[0] > 0 and newest[1] == HOUR_MS and abs(newest[2]) < 1, newest


def test_the_pointer_is_told_of_the_bar_that_it_is_on(_):
    with look() as view:
        view.open("user", zone="login", key=USER, span="24h")
        begins = painted(view, "({ plot }) => { plot.over.scrollIntoView({ block: 'center' }); return plot.data[0]; }")
        box = painted(view, "({ plot }) => { const box = plot.over.getBoundingClientRect();"
                            " return [box.left, box.width, box.top + box.height / 2]; }")
        for place, begin in enumerate(begins):
            for part in (0.1, 0.9):
                view.page.point(box[0] + box[1] * (place + part) / len(begins), box[2])
                said = view.page.run("document.querySelector('.readout').innerText")
                assert begin_said(view, begin) in said, (place, part, said)
        counts = STAGE[1].get("counts", zone="login", key=USER, from_=begins[-1], to=begins[-1] + HOUR_MS)["total"]
        assert f"{counts['passed']:,} passed" in said and f"{counts['blocked']:,} blocked" in said, (said, counts)


def begin_said(view, begin):
    """How the page names an hour."""
    return view.page.run(f"import(`${{location.origin}}/page/words.js`).then((one) => one.period_text({begin}, 'hour'))")


def test_all_blocks_are_shaded_also_older_ones_than_the_newest_page(_):
    """300 blocks of a minute each in a week; a block without an end that began before the week, and is lifted in it."""
    end = WEEK.end_ms
    often = [end - 6 * DAY_MS + number * 25 * 60_000 for number in range(300)]
    STAGE[1].insert("decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode)",
                    [(at, 0, 10**8 + number, 0, b"api", OFTEN, b"block", at + 60_000, b"enforce")
                     for number, at in enumerate(often)] +
                    [(end - 9 * DAY_MS, 0, 10**8 + 1000, 0, b"api", LONG, b"block", NO_END_MS, b"enforce"),
                     (end - 3 * DAY_MS, 0, 10**8 + 1001, 0, b"api", LONG, b"lift", end - 3 * DAY_MS, b"enforce")])
    STAGE[1].insert("shadow_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode)",
                    [(end - 2 * DAY_MS, 0, 10**8 + 1002, 0, b"api", LONG, b"block", end - DAY_MS, b"shadow")])
    shaded = """({ plot, at, is }) => %s.filter((time) => {
        const x = plot.valToPos(time, "x", true);
        return ![0, 1, 2, -1].some((more) => is(at(x + more, plot.bbox.top + 2), "--held"));
    })"""
    with look(width=1440) as view:
        view.open("user", zone="api", key=OFTEN.decode())
        assert len(view.rows("Decisions, newest first")) == 50 < len(often)
        said = STAGE[1].get("held", zone="api", key=OFTEN.decode(), from_=end - 7 * DAY_MS, to=end + HOUR_MS)["times"]
        assert [one["from_ms"] for one in said] == often
        assert painted(view, shaded % json.dumps(often)) == []
        view.open("user", zone="api", key=LONG.decode())
        hours = [end - 7 * DAY_MS + number * HOUR_MS for number in range(1, 7 * 24)]
        free = painted(view, shaded % json.dumps(hours))
        assert free == [hour for hour in hours if hour > end - 3 * DAY_MS], "until it was lifted; shadow blocks nobody"


def test_a_block_without_an_end_has_none(_):
    now = int(time.time() * 1000)
    STAGE[1].insert("decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode,"
                    " ordered_by, reason)",
                    [(now - 60_000, 1, 10**8 + 2000, 0, b"login", b"jo|192.0.2.9", b"block", NO_END_MS, b"enforce", b"ann",
                      b"a long reason that somebody has typed who had the time for it, " * 4)])
    for locale in (BERLIN, {}):
        with look(width=1440, **locale) as view:
            view.open("blocks", zone="login")
            (row,) = [row for row in view.rows("Blocked keys") if row[0] == "jo|192.0.2.9"]
            assert row[2:4] == ["no end", "no end"], row
            view.open("user", zone="login", key="jo|192.0.2.9")
            (row,) = view.rows("Decisions")
            assert row[2:4] == ["no end", "no end"], row
            assert "2,9" not in view.text() and "9999" not in view.text() and "10000" not in view.text()


def test_nothing_is_pushed_off_the_screen(_):
    """Whatever the reason, key and language: every column is to be seen without scrolling sideways."""
    for width in (390, 768, 1024, 1280, 1440):
        for locale in (BERLIN, {}):
            with look(width=width, **locale) as view:
                for name, more in (("overview", {}), ("top", {"zone": "api"}), ("blocks", {}), ("decisions", {}), ("system", {}),
                                   ("user", {"zone": "login", "key": "jo|192.0.2.9"})):
                    view.open(name, **more)
                    wide = view.page.run("[...document.querySelectorAll('.scroll')].filter((one) =>"
                                         " one.scrollWidth > one.clientWidth).map((one) => [one.ariaLabel, one.scrollWidth])")
                    assert wide == [] and view.wide() == width, (name, width, locale, wide)


def test_labels_of_the_axes_are_whole(_):
    """In every language: none is cut at the canvas's edge, none lies over its neighbour."""
    many = b"a crowd"
    hours = [WEEK.end_ms - back * HOUR_MS for back in range(30)]
    STAGE[1].insert("count_hourly", [(1, many, hour, 9000 + 31 * place, 700, 0) for place, hour in enumerate(hours)])
    for locale in (BERLIN, {}, {"locale": "hu-HU", "zone": "Asia/Kolkata"}):
        for width in (390, 1440):
            with look(width=width, **locale) as view:
                view.open("user", zone="api", key=many.decode(), span="24h")
                words = painted(view, "({ plot }) => plot.axes[1]._values")
                for box in (".plot", ".plot-blocked"):
                    edges = view.page.run(f"""(() => {{
                        const canvas = document.querySelector("{box} canvas"), {{ width, height }} = canvas;
                        const dots = canvas.getContext("2d").getImageData(0, 0, width, height).data;
                        const ink = (x, y) => dots[4 * (y * width + x) + 3] > 0;
                        const rows = [...Array(height).keys()];
                        return [0, width - 1].map((x) => rows.filter((y) => ink(x, y)).length);
                    }})()""")
                    assert edges == [0, 0], (locale, width, box, edges)
                if locale == BERLIN:
                    assert "10.000" in words, words


def test_one_time_zone_is_named_and_everything_is_in_it(_):
    with look(width=1440, **BERLIN) as view:
        for name, more in (("overview", {}), ("top", {"zone": "api"}), ("blocks", {}), ("decisions", {}), ("system", {}),
                           ("user", {"zone": "login", "key": USER})):
            view.open(name, **more)
            for zone, letters in (("Europe/Berlin", ("MEZ", "MESZ")), ("UTC", ("UTC",)), ("Europe/Berlin", ("MEZ", "MESZ"))):
                assert view.text("#zone") == zone
                wrong = view.page.run(f"""[...document.querySelectorAll("#content time")].filter((one) => {{
                    const at = Date.parse(one.dateTime);
                    const written = (form) => new Intl.DateTimeFormat("de-DE", {{ ...form, timeZone: {json.dumps(zone)} }}).format(at);
                    return ![{{ dateStyle: "medium", timeStyle: "medium" }}, {{ timeStyle: "medium" }}, {{ dateStyle: "medium" }},
                        {{ year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" }},
                        {{ month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" }}]
                        .some((form) => written(form) === one.textContent);
                }}).map((one) => one.outerHTML)""")
                assert wrong == [], (name, zone, wrong)
                sentence = until(lambda: view.page.run("document.querySelector('#content .soft, .figures')?.parentNode.innerText"),
                                 "the view is there")
                assert any(one in sentence for one in letters), (name, zone, sentence)
                if "span" not in more and name in ("overview", "top", "decisions", "user"):
                    assert zone in view.text("label[for=field-until]")
                view.page.run("delete document.querySelector('.results').dataset.shown")
                view.press("#zone")
                view.shown()
            view.press("#zone")  # the next view begins in the reader's own


def test_days_are_those_of_the_zone(_):
    berlin_ms = HOUR_MS * (2 if time.gmtime(WEEK.end_ms / 1000).tm_mon in range(4, 10) else 1)
    if time.gmtime(WEEK.end_ms / 1000).tm_mon in (3, 4, 10, 11) and time.gmtime(WEEK.end_ms / 1000).tm_mday < 9:
        raise cases.Skipped("the clocks were changed within this week")
    midnight = (WEEK.end_ms + berlin_ms) // DAY_MS * DAY_MS - berlin_ms  # Berlin's last one
    day = time.strftime("%Y-%m-%d", time.gmtime((midnight + berlin_ms) / 1000 - 86400))
    with look(**BERLIN) as view:
        view.open("top", zone="api", span="24h", until=day)
        assert [int(view.asked("top")[name]) for name in ("from", "to")] == [midnight - DAY_MS, midnight]
        view.open("user", zone="api", key="198.51.0.0", span="365d")
        view.press(".numbers summary")
        view.page.until("document.querySelector('.numbers tbody') !== null")
        rows = view.rows("requests: requests by day")
        assert len(rows) in (7, 8)
        for begin, *counts in rows:
            assert (begin + berlin_ms) % DAY_MS == 0
            said = STAGE[1].get("counts", zone="api", key="198.51.0.0", from_=begin, to=begin + DAY_MS)["total"]
            assert counts == list(said.values()), (begin, counts, said)
        plotted = painted(view, "({ plot }) => plot.data[0].filter((at) => at >= %d)" % rows[0][0])
        assert plotted == [row[0] for row in rows] or plotted[:len(rows)] == [row[0] for row in rows]


def test_a_link_leads_to_the_same_time(_):
    first = WEEK.end_ms // DAY_MS * DAY_MS - 3 * DAY_MS
    day = time.strftime("%Y-%m-%d", time.gmtime(first / 1000))
    with look() as view:
        for name, more, link in (("top", {"zone": "api"}, "tbody a.key"), ("decisions", {"zone": "api"}, "tbody a.key"),
                                 ("overview", {}, "section[aria-labelledby=zone-1] h2 a"),
                                 ("top", {"zone": "login"}, "a[data-view=user]"), ("top", {"zone": "login"}, "a[data-view=decisions]"),
                                 ("user", {"zone": "api", "key": "198.51.0.1"}, "a[data-view=top]")):
            view.open(name, span="24h", until=day, **more)
            view.page.run("delete document.querySelector('.results').dataset.shown")
            view.press(link)
            view.shown(span="24h", until=day)
            hash_now = view.page.run("location.hash")
            if hash_now.startswith("#/user") and "key=" not in hash_now:
                continue  # which asks for a key first
            resource = {"#/top": "top", "#/dec": "decisions"}.get(hash_now[:5], "counts")
            assert [int(view.asked(resource)[end]) for end in ("from", "to")] == [first, first + DAY_MS], (name, link)
        # A block of long ago is to be seen where its link leads.
        view.open("blocks")
        STAGE[1].insert("decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode)",
                        [(WEEK.end_ms - 30 * DAY_MS, 2, 10**8 + 3000, 0, b"api", b"old", b"block", NO_END_MS, b"enforce")])
        view.page.until("document.querySelector('a[href*=\"key=old\"]') !== null")
        view.press("a[href*='key=old']")
        view.shown(key="old", span="custom")
        assert [row[0] for row in view.rows("Decisions")] == [WEEK.end_ms - 30 * DAY_MS]


def main(browser, api):
    """Runs the tests on these."""
    STAGE.extend((browser, api))
    cases.main(globals())


if __name__ == "__main__":
    sys.exit(shared(WEEK, main))
