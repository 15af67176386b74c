#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archiver's page in a headless Chromium: what it shows is what the API gives, and what the rows have.

Leaves pictures of each view in page/ of the build directory. Skipped where there is no Chromium.
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.archiver_page import looking, shared
from support.page_rows import DAY_MS, HOUR_MS, ODD, ZONES, Week

WEEK = Week(int(time.time() * 1000))
STAGE = []  # the browser and the API of all tests
USER = "user1|198.51.0.1"


def look(**more):
    """A page on what all tests share."""
    return looking(*STAGE, **more)


def counted(zone, first, last, key=None):
    """[[hour, passed, blocked, late]] as the rows have them."""
    sums = {}
    for row_zone, row_key, hour, *counts in WEEK.hourly:
        if ZONES[row_zone] == zone and first <= hour < last and key in (None, row_key.decode()):
            sums[hour] = [a + b for a, b in zip(sums.get(hour, [0, 0, 0]), counts)]
    return [[hour, *sums[hour]] for hour in sorted(sums)]


def plotted(view, number=0):
    """The columns of a chart: times, passed and blocked together, passed."""
    view.page.until(f"(document.querySelectorAll('.plot')[{number}]?.childElementCount ?? 1) > 0")
    return view.page.run("import(`${location.origin}/page/chart.js`).then(({ plot_of }) =>"
                         f" plot_of(document.querySelectorAll('.plot')[{number}])?.data ?? null)")


def require_chart(view, rows, first, last, number=0):
    """Every hour of the time is in the chart, those without a request as zeros."""
    data = plotted(view, number)
    if data is None:
        raise cases.Skipped("built without charts (deploy/packages charts, and build again)")
    known = {hour: (passed + blocked, passed) for hour, passed, blocked, _ in rows}
    hours = list(range(first, last, HOUR_MS))
    assert data == [hours, *([known.get(hour, (0, 0))[which] for hour in hours] for which in (0, 1))]
    painted = view.page.run(f"""(() => {{
        const canvas = document.querySelectorAll(".plot canvas")[{number}];
        const dots = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(dots.buffer)).size;
    }})()""")
    assert painted > 3, "the chart is blank"


def test_the_overview_has_every_zone(_):
    with look() as view:
        started_ms = time.time() * 1000
        view.open()
        asked = view.asked("top")  # the counts are asked for twice: also of the span before
        first, last = int(asked["from"]), int(asked["to"])
        assert last - first == 7 * DAY_MS and last - HOUR_MS <= time.time() * 1000 and started_ms <= last
        for number, (zone_id, zone) in enumerate(ZONES.items()):
            said = STAGE[1].get("counts", zone=zone, from_=first, to=last)
            card = f"section[aria-labelledby=zone-{zone_id}]"
            shown = view.figures(card)
            assert {name.lower(): shown[name] for name in ("Passed", "Blocked", "Late")} == said["total"], zone
            view.press(f"{card} summary")
            view.page.until(f"document.querySelector('{card} tbody') !== null")
            rows = view.rows(f"{zone}: requests by hour")
            assert rows == [list(one.values()) for one in said["counts"]] == counted(zone, first, last)
            view.press(f"{card} summary")
            require_chart(view, rows, first, last, number)
        said = [STAGE[1].get("counts", zone=zone, from_=first, to=last)["total"] for zone in ZONES.values()]
        head = view.figures(".headline")
        shadow = list(ZONES.values()).index("search")  # in shadow mode
        blocked = sum(one["blocked"] for one in said) - said[shadow]["blocked"]
        assert head == {"Blocked now": len(STAGE[1].get("blocks", limit=1000)["blocks"]), "Blocked share": head["Blocked share"],
                        "Requests passed": sum(one["passed"] for one in said),
                        "Requests blocked": blocked, "Would have been blocked": said[shadow]["blocked"]}
        newest = STAGE[1].get("decisions", from_=first, to=last, limit=5)["decisions"]
        assert view.rows("Newest decisions") == [[one["key"], one["zone"], one["action"], one["at_ms"]] for one in newest]
        talkers = [(one["key"], zone + ("shadow" if zone == "search" else ""), one["blocked"]) for zone in ZONES.values()
                   for one in STAGE[1].get("top", zone=zone, by="blocked", from_=first, to=last, grain="hour")["top"]]
        assert [tuple(row[:3]) for row in view.rows("Most blocked keys")] == \
            sorted(talkers, key=lambda one: -one[2])[:5]
        view.shot("overview")
        view.choose("span", "365d")
        assert view.asked("counts")["grain"] == "day"
        (day,) = {int(view.asked("counts")[name]) % DAY_MS for name in ("from", "to")}
        assert day == 0
        view.open("overview", span="24h", until="2001-01-01")
        assert "No requests in this time range." in view.text()
        view.press("#newest")
        (newest,) = STAGE[1].get("decisions", limit=1)["decisions"]
        view.shown(until=time.strftime("%Y-%m-%d", time.gmtime(newest["at_ms"] / 1000)))
        assert view.figures("section[aria-labelledby=zone-1]")["Passed"] > 0


def test_top_talkers_are_in_order_and_lead_to_their_stories(_):
    with look() as view:
        view.open("top", zone="api", span="31d")
        for by in ("total", "blocked", "passed"):
            view.choose("by", by)
            said = STAGE[1].get("top", **{**{k.replace("from", "from_"): v for k, v in view.asked("top").items()}})
            assert said["by"] == by and len(said["top"]) > 3
            rows = view.rows(f"The {len(said['top'])} busiest keys in api")
            assert [(row[0], *row[2:5], row[6]) for row in rows] == \
                [(one["key"], one["total"], one["passed"], one["blocked"], one["late"]) for one in said["top"]]
        assert view.page.run("location.hash") == "#/top?by=passed&span=31d"
        view.shot("top")
        for key in ODD:
            view.open("top", zone="api", span="31d").press(f"a[href$='key={_encoded(view, key)}&span=31d']")
            view.shown(key=key, zone="api")
            total = view.figures()
            assert total["Passed"] == sum(row[1] for row in counted("api", 0, WEEK.now_ms, key)), key
            assert view.text("h1") == "One user" and view.page.run("document.title") == "One user – weir"


def _encoded(view, key):
    return view.page.run(f"new URLSearchParams({{ key: {json.dumps(key)} }}).toString().slice(4)").replace("'", "\\'")


def test_a_user_has_a_story(_):
    with look() as view:
        view.open("user", zone="login", key=USER)
        asked = {name: view.asked("held")[name] for name in ("from", "to")}
        span = {"zone": "login", "key": USER, "from_": asked["from"], "to": asked["to"]}
        counts = STAGE[1].get("counts", **span)
        require_chart(view, [list(one.values()) for one in counts["counts"]], int(asked["from"]), int(asked["to"]))
        decisions = STAGE[1].get("decisions", **span, limit=1000)["decisions"]
        rows = view.rows("Decisions, newest first")  # in each day those that are alike together
        assert sorted((row[0], row[1], row[3]) for row in rows) == \
            sorted((one["at_ms"], one["action"], one["until_ms"]) for one in decisions) and len(rows) > 3
        assert {(row[2], row[4]) for row in rows} == {("5 min", "5 in 1 min (gcra), held 6 Why?")}
        events = STAGE[1].get("events", **span, limit=1000)["events"]
        assert len(events) > 100
        for _ in range(len(events) // 50):
            count = len(view.rows("Requests, newest first"))
            view.page.run("[...document.querySelectorAll('button')].findLast((one) =>"
                          " one.textContent === 'Show older').click()")
            view.page.until(f"[...document.querySelectorAll('table')].at(-1).tBodies[0].rows.length > {count}")
        assert view.rows("Requests, newest first") == \
            [[one["at_ms"], "blocked" if one["blocked"] else "passed",
              *((one["fields"] or {}).get(name, "–") for name in ("method", "path", "status")), one["id"]] for one in events]
        view.shot("user")
        view.open("user", zone="login", key="nobody")
        assert "No requests of this user" in view.text() and "No decisions about this user" in view.text()
        view.open("user", zone="login", key="")
        assert "Which user?" in view.text()


def test_blocks_are_live_and_leave_the_focus(_):
    with look() as view:
        view.open("blocks")
        said = STAGE[1].get("blocks", limit=1000)["blocks"]
        rows = view.rows("Blocked keys")
        assert [(row[0], row[1], row[3], row[4]) for row in rows] == \
            [(one["key"], one["zone"], one["until_ms"], one["at_ms"]) for one in said]
        assert rows[-1][5] == "ordered by jo: a scraper – “again” Why?" and view.figures()["Blocked now"] == len(rows)
        view.shot("blocks")
        view.page.run("document.querySelector('#content td a, #content tbody a').focus()")
        focus = view.page.run("document.activeElement.href")
        now = int(time.time() * 1000)
        STAGE[1].insert("decision_history"
                        " (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode)",
                        [(now, 0, 10**9, 0, b"login", b"new one", b"block", now + HOUR_MS, b"enforce")])
        view.page.until("document.querySelector('#content tbody').innerText.includes('new one')")
        assert view.page.run("document.activeElement.href") == focus
        view.choose("zone", "login")
        assert {row[1] for row in view.rows("Blocked keys")} == {"login"}


def test_decisions_of_all_users_are_grouped_by_day(_):
    with look() as view:
        view.open("decisions", span="31d")
        asked = view.asked("decisions")
        said, after = [], None
        while not said or after:
            page = STAGE[1].get("decisions", from_=asked["from"], to=asked["to"], limit=100, after=after)
            said, after = said + page["decisions"], page["next"]
            count = len(view.rows("Decisions"))
            assert count == len(said), "as many as the API has"
            if after:
                view.page.run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Show older').click()")
                view.page.until(f"document.querySelectorAll('tbody tr:not(.group)').length > {count}")
        rows = view.rows("Decisions")
        assert sorted((row[0].split("×")[0], row[1], row[3].removesuffix("shadow"), row[5]) for row in rows) == \
            sorted((one["key"], one["at_ms"], one["action"], one["until_ms"]) for one in said)
        days = view.page.run("[...document.querySelectorAll('tbody')].map((one) => [one.querySelector('.group').textContent,"
                             " [...one.querySelectorAll('tr:not(.group)')].map((row) => row.querySelector('time').dateTime)])")
        assert len(days) > 5 and len({name for name, _ in days}) == len(days)
        assert all(len({at[:10] for at in times}) == 1 for _, times in days), "a day is in one place"
        hidden = view.page.run("document.querySelectorAll('tr.again[hidden]').length")
        assert hidden == view.page.run("document.querySelectorAll('tr.again').length") > 0
        view.page.run("document.querySelector('button.times').click()")
        assert view.page.run("document.querySelectorAll('tr.again[hidden]').length") < hidden
        view.choose("zone", "login")
        assert {row[2] for row in view.rows("Decisions")} == {"login"}
        view.choose("action", "lift")
        assert "No decisions in this time range." in view.text()


def test_decisions_in_shadow_mode_are_asked_for_and_marked(_):
    """Without that, a list has none of them, and says where they are; a user's story has them, marked."""
    with look() as view:
        view.open("decisions", span="31d", zone="search")
        assert "No decisions in this time range." in view.text() and "Zone search is in shadow mode" in view.text()
        view.choose("mode", "shadow")
        asked = view.asked("decisions")
        said = STAGE[1].get("decisions", zone="search", mode="shadow", from_=asked["from"], to=asked["to"], limit=100)["decisions"]
        rows = view.rows("Decisions")
        assert sorted((row[0].split("×")[0], row[1], row[3]) for row in rows) == \
            sorted((one["key"], one["at_ms"], f"{one['action']}shadow") for one in said) and len(rows) > 5
        assert "block nobody" in view.text()
        view.shot("decisions-shadow")
        view.open("decisions", span="31d", mode="all")
        assert view.asked("decisions")["mode"] == "all"
        assert {row[3].endswith("shadow") for row in view.rows("Decisions") if row[2] == "search"} <= {True}
        assert {row[3].endswith("shadow") for row in view.rows("Decisions") if row[2] != "search"} == {False}
        key = said[0]["key"]
        view.open("user", zone="search", key=key, span="31d")
        rows = view.rows("Decisions, newest first")
        asked = view.asked("decisions")
        said = STAGE[1].get("decisions", zone="search", key=key, mode="all", from_=asked["from"], to=asked["to"], limit=50)
        assert [(row[0], row[1]) for row in rows] == [(one["at_ms"], "blockshadow") for one in said["decisions"]] and rows
        view.shot("user-shadow")
        view.open("overview", span="31d")
        assert not [row for row in view.rows("Newest decisions") if row[1] == "search"]


def test_a_press_and_a_brush_look_closer(_):
    with look() as view:
        view.open("user", zone="login", key=USER)
        first, last = (int(view.asked("held")[name]) for name in ("from", "to"))
        if view.page.run("document.querySelector('.plot') === null"):
            raise cases.Skipped("built without charts (deploy/packages charts, and build again)")
        view.page.until("document.querySelector('.plot canvas') !== null")
        at = view.page.run("""(async () => {
            const { plot_of } = await import(`${location.origin}/page/chart.js`);
            const plot = plot_of(document.querySelector(".plot"));
            const box = plot.over.getBoundingClientRect();
            plot.over.scrollIntoView({ block: "center" });
            const { top, left, width } = plot.over.getBoundingClientRect();
            return [left, width, top + box.height / 2];
        })()""")
        def point(hour):  # the middle of an hour's bar
            return at[0] + at[1] * (hour + 0.5) / ((last - first) / HOUR_MS)
        view.page.drag(point(20), at[2], point(40), at[2])
        view.shown(span="custom")
        asked = {name: int(view.asked("held")[name]) for name in ("from", "to")}
        assert asked == {"from": first + 20 * HOUR_MS, "to": first + 41 * HOUR_MS}, (asked, first)
        assert view.page.run("document.getElementById('field-from').value") == \
            time.strftime("%Y-%m-%dT%H:%M", time.gmtime(asked["from"] / 1000))
        assert not view.page.run("document.getElementById('field-from').parentNode.hidden")
        assert view.page.run("document.getElementById('field-until').parentNode.hidden")
        view.page.run("history.back()")
        view.shown(span="7d")
        view.choose("span", "custom")  # at first of what was shown
        assert [int(view.asked("held")[name]) for name in ("from", "to")] == [first, last]
        view.page.run("history.back()")
        view.shown(span="7d")
        view.open("overview", span="365d")
        view.press("section[aria-labelledby=zone-1] summary")
        link = "section[aria-labelledby=zone-1] tbody a"
        view.page.until(f"document.querySelector('{link}') !== null")
        day = view.page.run(f"Date.parse(document.querySelector('{link} time').dateTime)")
        view.press(link)
        view.shown(zone="api", span="custom")
        assert [int(view.asked("top")[name]) for name in ("from", "to")] == [day, day + DAY_MS]


def test_a_command_to_copy_is_what_a_shell_reads(_):
    """Whatever strangers put into keys: a shell gives the command the values of the key, and runs nothing."""
    odd = ["203.0.113.9", "2001:db8::/64", "a b", "it's", "$(touch /tmp/x)`id`", "-n", "", "a\nb\x1b[31m", "back\\slash",
           "\u202eright", "zürich 東", "'; echo x #", "!history", "~", "*", "x\u2028y"]
    with look() as view:
        view.open("blocks")
        for value in odd:
            line = view.page.run(f"import(`${{location.origin}}/page/command.js`).then(({{ command }}) =>"
                                 f" command('lift', 'api', {json.dumps(joined(value, 'second'))}, {{ hash_keys: false }}))")
            assert not any(ord(letter) < 32 for letter in line), line
            read = subprocess.run(["bash", "-c", f"weir() {{ printf '%s\\0' \"$@\"; }}; {line}"], stdout=subprocess.PIPE,
                                  check=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.decode().split("\0")[:-1]
            dashes = ["--"] if value.startswith("-") else []
            assert read == ["lift", "--zone", "api", *dashes, value, "second"], (line, read)
        button = view.page.run("document.querySelector('button.copy').title")
        said = STAGE[1].get("blocks", limit=1)["blocks"][0]
        assert button == f"weir lift --zone {said['zone']} '{said['key']}'".replace("'live0'", "live0")
        view.page.run("navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }")
        view.press("button.copy")
        view.page.until("globalThis.copied !== undefined")
        assert view.page.run("globalThis.copied") == button


def joined(*values):
    """A key as the store has it."""
    return "|".join(value.replace("\\", "\\\\").replace("|", "\\|") for value in values)


def test_the_system_says_how_it_is(_):
    with look() as view:
        view.open("system", refresh="off")
        status, zones = STAGE[1].get("status"), STAGE[1].get("zones")["zones"]
        rows = view.rows("Partitions")
        assert [(row[0], row[3], *row[4:]) for row in rows] == \
            [(f"{one['role']} {one['partition']}", one["clock_ms"], one["next_offset"], one["checkpoint"],
              f"{one['epoch']} times" if one["epoch"] > 1 else "1 time",
              one["policy_version"]) for one in status["partitions"]] and len(rows) == 8
        assert {row[0]: row[2] for row in rows if row[0].startswith("archiver")} == \
            {f"archiver {number}": 37 * number for number in range(4)}
        assert "All is well" in view.text(".verdict.good")
        assert view.rows("Metrics") == [[name, value] for name, value in status["figures"].items()]
        assert [row[0] for row in view.rows("Zones")] == [zone["name"] for zone in zones]
        assert view.rows("Zones")[1][1:4] == ["user, ip", "5 in 1 min, burst 3 (gcra)", "5 min"]
        view.shot("system")


# The API while the store is away; status is as it was told before, with what the store has taken out of it.
_AWAY = """(() => {
  const real = globalThis.fetch;
  globalThis.fetch = async (url, options) => {
    const path = new URL(url).pathname;
    if (!path.endsWith("/status"))
      return new Response(JSON.stringify({ error: { status: 503, parameter: null, message: "the store is down" } }), { status: 503 });
    const status = await (await real(url, options)).json();
    Object.assign(status, { store_error: "the store is down or too slow", schema_version: null, policy_version: null,
      newest_hour_ms: null, partitions: [], troubles: ["partition 3 is stopped: its log begins at 40"],
      figures: { ...status.figures, weir_archiver_lag_seconds: 1200 } });
    return new Response(JSON.stringify(status), { status: 200 });
  };
})()"""


def test_the_system_is_shown_while_the_store_is_away(_):
    for window in ({"width": 1440}, {"width": 390, "dark": True}):
        with look(**window) as view:
            view.open("top")
            view.page.run("globalThis.Date = class extends Date { static now() { return super.now() + 60000; } }")
            view.page.run(_AWAY)
            view.page.run("location.hash = '#/system?refresh=off'")
            view.shown(refresh="off")
            said = view.text(".verdict.bad")
            for words in ("What is archived cannot be read: the store is down or too slow.", "partition 3 is stopped: its log",
                          "behind its topics by 20 min", "weir doctor --config FILE", "/usr/share/doc/weir/RUNBOOK.md"):
                assert words in said, said
            assert "Nothing is stored yet" not in view.text() and "Not known while the store is away." in view.text()
            assert view.figures()["Store"] == "sqlite, away" and view.figures()["Policy"] == "–"
            assert view.wide() == window["width"]
            view.shot(f"system-away-{window['width']}")


def test_a_server_says_when_a_partition_was_taken(_):
    with look() as view:
        view.open("top")
        view.page.run(_AWAY.replace("partitions: []", """partitions: [{ role: "limiter", partition: 0, epoch: 1795575773375,
          checkpoint: 1, next_offset: 1, next_number: 1, clock_ms: 0, policy_version: 1 }]"""))
        view.page.run("location.hash = '#/system?refresh=off'")
        view.shown(refresh="off")
        assert view.rows("Partitions")[0][6] == 1795575773375


def main(browser, api):
    """Runs the tests on these."""
    STAGE.extend((browser, api))
    cases.main(globals())


if __name__ == "__main__":
    sys.exit(shared(WEEK, main))
