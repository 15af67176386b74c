#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir top`: its numbers are the API's, from the API and from a state directory, and the terminal is left as it was."""

import http.server
import json
import os
import re
import signal
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import PATIENCE_S, free_port, until
from support.terminal import Terminal

DONE, FAILED, USAGE = 0, 1, 2
HOUR_MS, DAY_MS = 3600 * 1000, 24 * 3600 * 1000
ZONES = [{"name": "site", "key": ["ip"], "block_for": "3h",
          "limits": [{"algorithm": "fixed_window", "rate": 5, "window": "1h"}]},
         {"name": "all", "key": [], "limits": [{"algorithm": "sliding_window", "rate": 100000, "window": "1h"}]}]
TOKEN = "a-token-of-a-test"
# Another screen and no cursor; then as it was.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def lines(key, count):
    """Lines of a log: a key's requests."""
    return f'{{"time": {int(time.time())}, "ip": "{key}"}}\n' * count


def within_a_day():
    """A day that ends while a test runs would take its top keys away."""
    until(lambda: time.time() % 86400 < 86400 - 20, "the day is not about to end")


class Site:
    """A `weir run` that follows a log, archives it and serves it."""

    def __init__(self, place, log="", **archiver):
        self.place, self.port = place, free_port()
        self.log = place.write("log", log)
        source = {"type": "file", "path": self.log, "format": "json", "follow": True, "start": "beginning"}
        config = place.config(ZONES, [source], archiver={
            "enabled": True, "interval": "100ms", "api": f"127.0.0.1:{self.port}", **{"api_rate": 0, **archiver}})
        self.state = place.path("state")
        self.weir = place.start("run", "--config", config, "--state", self.state, "--decisions", place.path("out"))
        self.url = f"http://127.0.0.1:{self.port}"
        until(lambda: "listening" in self.weir.said(), "the API listens", running=self.weir)

    def get(self, resource, **parameters):
        """What the API answers."""
        query = urllib.parse.urlencode({name.rstrip("_"): one for name, one in parameters.items()})
        request = urllib.request.Request(f"{self.url}/api/v1/{resource}?{query}",
                                         headers={"Authorization": f"Bearer {TOKEN}"})
        return until(lambda: self._ask(request), "an answer", running=self.weir)

    @staticmethod
    def _ask(request):
        """The answer; None where there were too many questions."""
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as fault:
            if fault.code != 429:
                raise
            return None

    def add(self, **counts):
        """Appends so many requests of each key, and waits until they are archived."""
        before = self.total()
        self.place.append("log", "".join(lines(key, count) for key, count in counts.items()))
        until(lambda: self.total() == before + 2 * sum(counts.values()), "all is archived", running=self.weir)

    def total(self):
        """How many requests are archived, in both zones: their partitions differ."""
        now = int(time.time() * 1000)
        sums = [self.get("counts", zone=zone["name"], grain="hour", from_=now - DAY_MS, to=now + DAY_MS)["total"]
                for zone in ZONES]
        return sum(one["passed"] + one["blocked"] for one in sums)


def filled(place, **archiver):
    """A site where three have come: eve is blocked."""
    within_a_day()
    site = Site(place, **archiver)
    until(lambda: site.get("zones")["zones"], "its zones", running=site.weir)
    site.add(ann=2, bob=4, eve=9)
    until(lambda: site.get("blocks")["blocks"], "the block is archived", running=site.weir)
    return site


def sources(site):
    """The options that name each kind of source."""
    return ("--url", site.url), ("--state", site.state)


def sample(site, *options):
    """What --json --once prints."""
    done = site.place.good("top", "--json", "--once", *options)
    (one,) = done.objects()
    return one


def require_as_the_api(site, one, by):
    """The sample's numbers must be what the API answers."""
    hour = {"from_": one["hour_ms"], "to": one["hour_ms"] + HOUR_MS, "grain": "hour"}
    assert one["hour_ms"] == one["at_ms"] // HOUR_MS * HOUR_MS and one["by"] == by
    assert [zone["zone"] for zone in one["zones"]] == ["site", "all"]
    for zone in one["zones"]:
        sums = {name: zone[name] for name in ("passed", "blocked", "late")}
        assert sums == site.get("counts", zone=zone["zone"], **hour)["total"], zone
    top = site.get("top", zone=one["zone"], day=one["at_ms"], by=by)["top"]
    assert len(top) > 0
    assert [{**row, "hour": None} for row in one["top"]] == [
        {**{name: row[name] for name in ("key", "passed", "blocked", "late")}, "hour": None} for row in top]
    for row in one["top"]:
        assert row["hour"] == site.get("counts", zone=one["zone"], bucket=row["key"], **hour)["total"], row
    blocks = site.get("blocks")
    assert one["blocks"] == blocks["blocks"] and one["more_blocks"] == blocks["more"]


def test_numbers_are_those_of_the_api(place):
    site = filled(place)
    for source in sources(site):
        for by in ("passed", "blocked"):
            one = sample(site, *source, "--zone", "site", "--by", by)
            require_as_the_api(site, one, by)
            assert one["blocks"][0]["key"] == "eve" and one["blocks"][0]["limit"]["rate"] == 5, one["blocks"]
        require_as_the_api(site, sample(site, *source, "--zone", "all"), "passed")
        assert [row["key"] for row in sample(site, *source, "--rows", "1")["top"]] == ["eve"]


def test_hashed_keys_are_followed_by_their_hashes(place):
    secret = place.write("secret", "s" * 32 + "\n")
    os.chmod(secret, 0o600)
    site = filled(place, hash_keys=secret)
    for source in sources(site):
        one = sample(site, *source)
        require_as_the_api(site, one, "passed")
        assert [row["passed"] for row in one["top"]] == [5, 4, 2] and one["top"][0]["key"] != "eve", one["top"]
        assert one["blocks"][0]["key"] == one["top"][0]["key"]


def test_a_table_where_there_is_no_terminal(place):
    site = filled(place)
    for source in sources(site):
        text = place.good("top", *source, "--by", "blocked").out().decode()
        assert "\x1b" not in text and "\r" not in text
        assert re.search(r"(?m)^> site +\d+ +\d+ +0 +-$", text), text
        assert re.search(r"(?m)^eve +\d+ +\d+ +\d+ +[1-9]\d*$", text), text
        assert re.search(r"(?m)^eve +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC +site +fixed_window, 5 in 1h \(held 5\)$",
                         text), text


def test_json_lines_follow_what_happens(place):
    site = filled(place)
    for number, source in enumerate(sources(site)):
        top = place.start("top", *source, "--json", "--every", "100ms")
        until(top.objects, "the first line", running=top)
        site.add(**{f"new{number}": 3})
        until(lambda: any(row["key"] == f"new{number}" for row in top.objects()[-1]["top"]),  # pylint: disable=cell-var-from-loop
              "the new key", running=top)
        rated = until(lambda: [one for one in top.objects() if one["zones"][0]["per_second"]],  # pylint: disable=cell-var-from-loop
                      "a rate", running=top)
        assert 0 < rated[0]["zones"][0]["per_second"] <= 60 / 0.1, rated[0]
        assert top.stop() == DONE, top.said()
        assert top.said() == ""


# 2024-11-20 10:20 UTC, and 30 hours of it: every half hour as many requests of a key as hours have passed.
PAST_MS = 1732098000000


def finished(place, **archiver):
    """The state of a finished run over a log of some time ago."""
    log = "".join(f'{{"time": {PAST_MS + half * HOUR_MS // 2}, "ip": "{("ann", "bob")[half % 2]}"}}\n' * (1 + half // 2)
                  for half in range(60))
    source = {"type": "file", "path": place.write("past", log), "format": {"type": "json", "unit": "ms"}}
    config = place.config(ZONES, [source], archiver={"enabled": True, **archiver})
    place.good("run", "--once", "--config", config, "--state", place.path("finished"), "--decisions", place.path("decided"))
    return place.path("finished")


def counted(since_ms, until_ms):
    """By key, how many requests a span of the past has."""
    sums = {}
    for half in range(60):
        if since_ms <= PAST_MS + half * HOUR_MS // 2 < until_ms:
            key = ("ann", "bob")[half % 2]
            sums[key] = sums.get(key, 0) + 1 + half // 2
    return sums


def require_span(place, state, options, asked, covered, grain="hour", **environment):
    """The sums of a span, and the blocks that were decided in it."""
    done = place.good("top", "--state", state, "--json", "--once", *options, env={**os.environ, **environment})
    (one,) = done.objects()
    assert (one["asked_from_ms"], one["asked_to_ms"]) == asked, (options, one)
    assert (one["from_ms"], one["to_ms"], one["grain"]) == (*covered, grain), (options, one)
    sums = {row["key"]: row["passed"] + row["blocked"] for row in one["top"]}
    assert sums == counted(*covered), (options, sums)
    site = one["zones"][0]
    assert site["passed"] + site["blocked"] == sum(sums.values()) and "hour" not in one["top"][0], one
    decided = [json.loads(line) for line in open(place.path("decided"), encoding="utf-8")]
    wanted = [(one["key"][0], one["at"]) for one in decided if asked[0] <= one["at"] < asked[1]]
    assert sorted((block["key"], block["at_ms"]) for block in one["blocks"]) == sorted(wanted), (options, one["blocks"])
    return one


def test_a_zone_in_shadow_mode_is_marked(place):
    """What such a zone would have blocked is not told as blocked."""
    log = place.write("log", lines("eve", 9))
    zones = [dict(ZONES[0], mode="shadow"), dict(ZONES[0], name="login")]
    config = place.config(zones, [{"type": "file", "path": log, "format": "json"}], archiver={"enabled": True})
    state = place.path("once")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("decided"))
    for span in ((), ("--last", "1d")):
        one = json.loads(place.good("top", "--state", state, "--once", "--json", *span).out())
        assert [(zone["zone"], zone["mode"], zone["blocked"]) for zone in one["zones"]] == \
            [("site", "shadow", 4), ("login", "enforce", 4)], one
        text = place.good("top", "--state", state, "--once", *span).out().decode()
        assert re.search(r"(?m)^> site \(shadow\) +5 +4 +0 ", text) and re.search(r"(?m)^  login +5 +4 +0 ", text), text
        assert re.search(r"(?m)^KEY, by (blocked|passed)( today)?, in shadow mode ", text), text
        assert "in shadow mode" not in place.good("top", "--state", state, "--once", "--zone", "login", *span).out().decode()


def test_a_span_of_the_past_is_shown_with_what_it_covers(place):
    state = finished(place)
    hour = PAST_MS // HOUR_MS * HOUR_MS
    one = require_span(place, state, ("--since", "2024-11-20T10:30Z", "--until", "2024-11-20T18:10Z"),
                       (PAST_MS + 600000, hour + 490 * 60000), (hour, hour + 9 * HOUR_MS))
    assert one["zones"][0]["first_ms"] == hour and one["blocks"], one
    day = hour // DAY_MS * DAY_MS
    one = require_span(place, state, ("--since", "2024-11-19", "--until", "2024-11-21 03:00"), (day - DAY_MS, day + 27 * HOUR_MS),
                       (day - DAY_MS, day + 27 * HOUR_MS), TZ="UTC")
    assert one["zones"][0]["first_ms"] == hour
    # New York is five hours behind
    require_span(place, state, ("--since", "2024-11-20 06:00", "--until", "2024-11-20T08:00:00"),
                 (day + 11 * HOUR_MS, day + 13 * HOUR_MS), (day + 11 * HOUR_MS, day + 13 * HOUR_MS), TZ="America/New_York")
    require_span(place, state, ("--last", "90m", "--until", str(hour + 4 * HOUR_MS)),
                 (hour + 150 * 60000, hour + 4 * HOUR_MS), (hour + 2 * HOUR_MS, hour + 4 * HOUR_MS))
    text = place.good("top", "--state", state, "--since", "2024-11-20 00:10", "--until", "2024-11-20 23:00",
                      env={**os.environ, "TZ": "UTC"}).out().decode()
    assert "counts of whole hours: 2024-11-20 00:00:00 UTC to 2024-11-20 23:00:00 UTC\n" in text, text
    assert re.search(r"\n> site .* 2024-11-20 10:00:00 UTC\n", text), text
    assert "BLOCKED from 2024-11-20 00:10:00 UTC to 2024-11-20 23:00:00 UTC" in text and "this hour" not in text, text
    # a zone that does not exist gives times of UTC, which are said to be UTC's
    for zone in ("Nonsense", "Europe/Berln"):
        other = place.good("top", "--state", state, "--since", "2024-11-20 00:10", "--until", "2024-11-20 23:00",
                           env={**os.environ, "TZ": zone}).out().decode()
        assert text.split("\n")[1:] == other.split("\n")[1:], other  # the first line has the present time
        assert re.search(r" UTC$", other.split("\n")[0]), other
    empty = place.good("top", "--state", state, "--last", "1h").out().decode()
    assert "the archive has none of them" in empty and "\nnobody\n" in empty, empty


def test_a_time_of_day_is_of_today_in_its_own_zone(place):
    state = finished(place)
    within_a_day()
    day = int(time.time() * 1000) // DAY_MS * DAY_MS
    for zone in ("AAA12", "BBB-12"):  # it is another day there than in UTC, in one of them
        for since in ("00:00Z", "00:00:00+00:00"):
            (one,) = place.good("top", "--state", state, "--json", "--once", "--since", since,
                                env={**os.environ, "TZ": zone}).objects()
            assert one["asked_from_ms"] == day, (zone, since, one["asked_from_ms"], day)


def test_zones_begin_apart_and_a_span_has_366_days(place):
    state = finished(place)
    hour = PAST_MS // HOUR_MS * HOUR_MS
    with sqlite3.connect(os.path.join(state, "weir.db")) as archive:
        zones = [one for one, in archive.execute("SELECT DISTINCT zone_id FROM zone_hourly ORDER BY zone_id")]
        archive.execute("DELETE FROM zone_hourly WHERE zone_id = ? AND hour_ms < ?", (zones[1], hour + 3 * HOUR_MS))
    (one,) = place.good("top", "--state", state, "--json", "--once", "--since", "2023-11-21", "--until", "2024-11-21",
                        env={**os.environ, "TZ": "UTC"}).objects()
    assert [zone["first_ms"] for zone in one["zones"]] == [hour, hour + 3 * HOUR_MS] and "first_ms" not in one, one
    assert one["to_ms"] - one["from_ms"] == 366 * DAY_MS


def test_a_span_is_of_days_where_no_hours_are_kept(place):
    state = finished(place)
    with sqlite3.connect(os.path.join(state, "weir.db")) as archive:
        archive.execute("DELETE FROM count_hourly")  # as archiver.keep_hourly does
    day = PAST_MS // DAY_MS * DAY_MS
    require_span(place, state, ("--since", "2024-11-20T12:30Z", "--until", "2024-11-20T14:00Z"),
                 (day + 750 * 60000, day + 14 * HOUR_MS), (day, day + DAY_MS), "day")
    text = place.good("top", "--state", state, "--since", "2024-11-20T12:30Z", "--until", "2024-11-20T14:00Z").out().decode()
    assert "counts of whole days: " in text, text
    # Who deletes them notes it, and the answer is of the whole day then.
    with sqlite3.connect(os.path.join(state, "weir.db")) as archive:
        archive.execute("INSERT INTO note (name, value) VALUES ('archive.kept-from', ?)",
                        (json.dumps({"count_hourly": day + DAY_MS}).encode(),))
    require_span(place, state, ("--since", "2024-11-20T12:30Z", "--until", "2024-11-20T14:00Z"),
                 (day + 750 * 60000, day + 14 * HOUR_MS), (day, day + DAY_MS), "day")


def test_a_span_is_of_days_where_its_first_hours_are_not_kept(place):
    """Hours that are left do not stand for those that are deleted; nor passed requests for blocked ones."""
    state = finished(place)
    day, hour = PAST_MS // DAY_MS * DAY_MS, PAST_MS // HOUR_MS * HOUR_MS
    with sqlite3.connect(os.path.join(state, "weir.db")) as archive:
        archive.execute("DELETE FROM count_hourly WHERE hour_ms <= ?", (hour + 2 * HOUR_MS,))
    span = ("--since", str(hour + 60000), "--until", str(hour + 8 * HOUR_MS))
    require_span(place, state, span, (hour + 60000, hour + 8 * HOUR_MS), (day, day + DAY_MS), "day")
    with sqlite3.connect(os.path.join(state, "weir.db")) as archive:
        for table in ("zone_hourly", "count_daily"):
            archive.execute(f"UPDATE {table} SET blocked = passed + blocked, passed = 0")
    (one,) = place.good("top", "--state", state, "--json", "--once", "--by", "blocked", *span).objects()
    assert one["grain"] == "day" and one["top"], one


def test_the_last_hours_of_a_running_one_by_each_source(place):
    site = filled(place)
    for source in sources(site):
        (one,) = place.good("top", *source, "--last", "2h", "--json", "--once").objects()
        assert one["from_ms"] == one["asked_from_ms"] // HOUR_MS * HOUR_MS and one["to_ms"] - one["at_ms"] <= HOUR_MS
        assert {row["key"]: row["passed"] + row["blocked"] for row in one["top"]} == {"ann": 2, "bob": 4, "eve": 9}, one
        assert [block["key"] for block in one["blocks"]] == ["eve"], one


def on_screen(site, screen, *options, **environment):
    """A `weir top` on a terminal."""
    return site.place.start("top", "--state", site.state, "--every", "200ms", *options, stdin=screen.fd, stdout=screen.fd,
                            env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment})


def frames(screen):
    """What was drawn, picture by picture."""
    return screen.wrote().split("\x1b[H")[1:]


def test_a_terminal_heeds_keys_and_is_given_back(place):
    site = filled(place)
    with Terminal(100) as screen:
        screen.resize(30, 100)
        before = screen.settings()
        screen.read()
        top = on_screen(site, screen)
        screen.shows("> site", top)
        screen.shows("eve", top)
        assert "\x1b[7mZONE" in screen.wrote()
        screen.type("z")
        screen.shows("> all", top)
        screen.type("b")
        screen.shows("by blocked today", top)
        screen.type("zt")
        until(lambda: "> site" in frames(screen)[-1] and "by passed today" in frames(screen)[-1], "back", running=top)
        screen.resize(12, 40)
        until(lambda: frames(screen)[-1].count("\n") == 11, "a smaller picture", running=top)
        for row in frames(screen)[-1].split("\n"):
            assert len(re.sub(r"\x1b\[\d*[mKJ]|\r", "", row)) <= 40, row
        site.add(late_comer=30)
        screen.resize(30, 100)
        screen.shows("late_comer", top)
        screen.type("q")
        assert top.wait() == DONE, top.said()
        assert screen.settings() == before
        wrote = screen.whole()
    assert wrote.startswith(ENTER) and wrote.endswith(LEAVE), (wrote[:40], wrote[-40:])


def test_signals_give_the_terminal_back_and_colours_are_left_out(place):
    site = filled(place)
    for number in (signal.SIGTERM, signal.SIGINT):
        with Terminal(100) as screen:
            before = screen.settings()
            screen.read()
            top = on_screen(site, screen, NO_COLOR="1")
            screen.shows("> site", top)
            top.signal(number)
            assert top.wait() == DONE, top.said()
            assert screen.settings() == before
            wrote = screen.whole()
        assert wrote.endswith(LEAVE) and not re.search(r"\x1b\[\d*m", wrote), wrote
    with Terminal(100) as screen:  # one that cannot place its cursor gets a table
        screen.read()
        assert on_screen(site, screen, TERM="dumb").wait() == DONE
        assert "\x1b" not in screen.whole()


def test_a_source_that_goes_away_is_told_and_waited_for(place):
    site = filled(place)
    with Terminal(120) as screen:
        screen.read()
        top = place.start("top", "--url", site.url, "--every", "100ms", stdin=screen.fd, stdout=screen.fd,
                          env={**os.environ, "TERM": "xterm"})
        screen.shows("> site", top)
        site.weir.stop()
        screen.shows("Couldn't connect", top)
        assert "> site" in frames(screen)[-1]
        screen.type("q")
        assert top.wait() == DONE
    done = place.run("top", "--url", site.url)
    assert done.code() == FAILED and "onnect" in done.said(), done.said()
    stream = place.run("top", "--url", site.url, "--json")
    assert stream.code() == FAILED and stream.out() == b""
    assert place.good("top", "--state", site.state).out()  # of one that has ended, too


def test_an_api_that_asks_for_patience_gets_it(place):
    site = filled(place, tokens=[TOKEN, TOKEN + "-2"], api_rate=5)  # 20 at once, and a table is some 8 questions
    for _ in range(4):
        done = place.good("top", "--url", site.url, env={**os.environ, "WEIR_TOKEN": TOKEN + "-2"})
        assert b"> site" in done.out() and not done.said()


class Hostile(http.server.BaseHTTPRequestHandler):
    """An API whose every word moves the cursor, or is none."""
    WORD = "a\x1b[2J\x1b]0;title\x07\x9b1m"
    ANSWERS = {"/api/v1/blocks": {"now_ms": 1732173600000, "more": False, "blocks": [
                   {"key": WORD, "zone": WORD, "until_ms": 1, "limit": {"algorithm": WORD, "rate": 1, "window_ms": 1000}, "held": 1},
                   {"key": WORD, "zone": 5, "until_ms": 2 ** 62, "ordered_by": WORD, "reason": WORD}, {}]},
               "/api/v1/zones": {"zones": [{"name": WORD, "live": True}, {"name": 7, "live": True}]},
               "/api/v1/top": {"top": [{"key": WORD, "passed": 1, "blocked": WORD}, {}]}}

    def do_GET(self):  # pylint: disable=invalid-name
        body = json.dumps(self.ANSWERS.get(self.path.split("?")[0], {"counts": [], "sums": {}, "hours": []})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing is told."""


def test_a_servers_words_do_not_reach_the_terminal_as_they_are(place):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = place.run("top", "--url", f"http://127.0.0.1:{server.server_address[1]}", "--once")
        server.shutdown()
    shown = done.out().decode()
    assert done.code() == DONE and "a\\x1b[2J" in shown, (done.said(), shown)
    assert not [c for c in shown if ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0], shown


def test_what_is_wrong_is_said(place):
    site = filled(place, tokens=[TOKEN])
    token = place.write("token", TOKEN + "\n")
    done = place.good("top", "--url", site.url, "--token", token)
    assert done.out() and "in clear" not in done.said()
    # An address that is not this machine's by its words may be anyone's on the way.
    done = place.good("top", "--url", site.url.replace("127.0.0.1", "0.0.0.0"), "--token", token)
    assert done.out() and "the token goes through the network in clear" in done.said(), done.said()
    assert place.good("top", "--url", site.url + "/", env={**os.environ, "WEIR_TOKEN": TOKEN}).out()
    for options, words in (
            (("--url", site.url), "Authorization: missing"),
            (("--url", site.url, "--token", place.write("wrong", "left\n")), "Authorization: wrong"),
            (("--url", site.url, "--token", place.write("empty", "\n")), "its first line is not a token"),
            (("--url", site.url, "--token", place.path("none")), "No such file"),
            (("--url", site.url, "--token", token, "--zone", "sitte"), "there is no zone \"sitte\" (did you mean \"site\"?)"),
            (("--url", f"{site.url}/nothing", "--token", token), "not found"),
            (("--url", "127.0.0.1:8642"), "expected http://HOST:PORT"),
            (("--url", site.url, "--state", site.state), "not both"),
            (("--state", site.state, "--token", token), "--token needs --url"),
            (("--state", place.path("nowhere")), "there is no state"),
            (("--state", site.state, "--by", "late"), "one of passed, blocked"),
            (("--state", site.state, "--rows", "0"), "from 1 to 50"),
            (("--state", site.state, "--every", "1"), "a duration"),
            (("--state", site.state, "--since", "soon"), "a time, such as"),
            (("--state", site.state, "--since", "2024-02-30"), "a time, such as"),
            (("--state", site.state, "--since", "10:00", "--last", "2h"), "not both"),
            (("--state", site.state, "--until", "10:00"), "needs --since or --last"),
            (("--state", site.state, "--since", "2024-02-03", "--until", "2024-02-02"), "earlier than --until"),
            (("--state", site.state, "--since", "2999-01-01"), "earlier than now"),
            (("--state", site.state, "--last", "367d"), "give a shorter one"),
            (("--state", site.state, "--since", "2021-01-01", "--until", "2024-01-01"), "with this --since it covers more than 366"),
            (("--state", site.state, "word"), "unexpected argument \"word\""),
            ((), "with --url, or a directory with --state")):
        done = place.run("top", *options)
        assert done.code() == USAGE and words in done.said() and not done.out(), (options, done.code(), done.said())
    assert "Examples" in place.good("top", "--help").out().decode()


if __name__ == "__main__":
    cases.main(globals())
