#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the archiver's API answers, on SQLite and on MariaDB: against a recount of the rows, and its own description."""

import contextlib
import csv
import io
import json
import os
import re
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.archiver_api import CONTRACT, OnMariadb, on_sqlite, served
from support.archiver_rows import DAY_MS, DAYS, FIRST_MS, HOUR_MS, NAMES, ODD_KEYS, Rows, policies, shown
from support.place import until

APIS, SERVERS = [], []
ROWS = Rows(int(os.environ.get("WEIR_SEED", "5")), int(time.time() * 1000))
NO_END_MS = 253402300800000
LAST_MS = FIRST_MS + (DAYS + 2) * DAY_MS


def table(api, resource, **parameters):
    """The lines of CSV, without the first; the answer must be whole."""
    if "from_" in parameters:
        parameters["from"] = parameters.pop("from_")
    answer = api.ask(resource, parameters, Accept="text/csv", Accept_Encoding="gzip")
    assert answer.status == 200, answer.body
    packed = api.ask(resource, {**parameters, "format": "csv"})
    assert packed.body == answer.body
    first, *lines = csv.reader(io.StringIO(answer.body.decode(), newline=""))
    return first, lines


def texts(rows):
    """Rows as CSV has them."""
    return [["" if one is None else shown(one) if isinstance(one, bytes) else str(one) for one in row] for row in rows]


def for_spreadsheet(lines):
    """As a spreadsheet gets them: what it would take for a formula stands behind an apostrophe."""
    return [[re.sub(r'(^|[; \t\r\n"])([=+@-].)', r"\1'\2", one, flags=re.DOTALL) for one in line] for line in lines]


def as_time(text):
    """A time of CSV as a spreadsheet gets it."""
    if int(text) >= NO_END_MS:
        return "no end"
    seconds, ms = divmod(int(text), 1000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{ms:03}"


def test_a_spreadsheet_gets_times(_):
    """What a person opens has no milliseconds since 1970 in it."""
    for api in APIS:
        for resource, asked in (("counts", {"zone": "site", "from": FIRST_MS, "to": LAST_MS}),
                                ("counts", {"zone": "site", "key": "192.0.2.1", "from": FIRST_MS, "to": LAST_MS,
                                            "grain": "day"}),
                                ("events", {"zone": "login", "key": "192.0.2.1"})):
            place = 1 if resource == "events" else 0
            columns, lines = table(api, resource, **asked)
            sheet = api.ask(resource, {**asked, "format": "spreadsheet"}).body.decode()
            first, *rows = csv.reader(io.StringIO(sheet, newline=""))
            assert columns[place] == "at_ms" and first == [*columns[:place], "at_utc", *columns[place + 1:]]
            told = [[*line[:place], as_time(line[place]), *line[place + 1:]] for line in lines]
            assert rows == for_spreadsheet(told) and rows


def test_zones(_):
    for api in APIS:
        said = api.get("zones")
        assert said["policy_version"] == 2
        assert [(zone["id"], zone["name"], zone["live"], zone["policy_version"]) for zone in said["zones"]] == \
            [(1, "site", True, 2), (2, "login", True, 2), (3, "gone", False, 1)]
        login = said["zones"][1]
        assert login["key"] == ["user", "ip"] and login["history"] and login["mode"] == "shadow"
        assert login["limits"] == [{"algorithm": "gcra", "rate": 5, "window_ms": 60000, "burst": 3, "lateness_ms": 0},
                                   {"algorithm": "queue", "rate": 7, "window_ms": 10000, "burst": 0, "lateness_ms": 0},
                                   {"algorithm": "sliding_window", "rate": 9, "window_ms": 60000, "burst": 0,
                                    "lateness_ms": 120000}]
        assert login["block_for_ms"] == 300000 and login["description"] == 'who "logs" in'


def test_counts(_):
    for api in APIS:
        for zone, name in NAMES.items():
            for grain, span_ms in (("hour", HOUR_MS), ("day", DAY_MS)):
                for key in ROWS.keys[25:]:
                    # Rounded outwards: the beginning to its bucket, the end to the bucket's end.
                    first, last = FIRST_MS + 3 * DAY_MS, LAST_MS - 2 * DAY_MS
                    said = api.get("counts", zone=name, key=key, grain=grain, from_=first + 1, to=last - span_ms + 1)
                    wanted = ROWS.counts(zone, key, span_ms, first, last)
                    assert [list(one.values()) for one in said["counts"]] == wanted, (name, key, said, wanted)
                    assert list(said["total"].values()) == [sum(row[place] for row in wanted) for place in (1, 2, 3)]
                    assert (said["from_ms"], said["to_ms"], said["key"]) == (first, last, shown(key))
                wanted = ROWS.counts(zone, None, span_ms, FIRST_MS + 12 * DAY_MS, LAST_MS)
                said = api.get("counts", zone=name, grain=grain, from_=FIRST_MS + 12 * DAY_MS, to=LAST_MS)
                assert [list(one.values()) for one in said["counts"]] == wanted and said["key"] is None
                lines = table(api, "counts", zone=name, grain=grain, from_=FIRST_MS + 12 * DAY_MS, to=LAST_MS)
                assert lines == (["at_ms", "passed", "blocked", "late"], texts(wanted))


def test_times(_):
    api = APIS[0]
    for text, ms in (("2023-11-15", 1700006400000), ("2023-11-15T01:00:00.999Z", 1700010000000),
                     ("2023-11-15T03:30:00+02:30", 1700010000000), ("1700010000000", 1700010000000)):
        assert api.get("counts", zone="site", from_=text, to="2023-11-16T00:00")["from_ms"] == ms, text
    now_ms = time.time() * 1000
    said = api.get("counts", zone="site", key="192.0.2.1")
    assert said["to_ms"] - said["from_ms"] in (24 * HOUR_MS, 25 * HOUR_MS)
    assert said["to_ms"] - 2 * HOUR_MS < now_ms < said["to_ms"] + HOUR_MS


def test_top(_):
    crowded = FIRST_MS + (DAYS + 1) * DAY_MS
    for api in APIS:
        for by in ("passed", "blocked", "total"):
            for first, last, where in ((crowded, crowded + DAY_MS, {"day": crowded + 5}),
                                       (FIRST_MS, FIRST_MS + 31 * DAY_MS, {"from": FIRST_MS, "to": FIRST_MS + 31 * DAY_MS})):
                wanted = ROWS.top(1, first, last, by)
                said = api.get("top", zone="site", by=by, limit=1000, **where)
                assert [list(one.values()) for one in said["top"]] == [[shown(key), *row] for key, *row in wanted[:1000]]
                assert (said["from_ms"], said["to_ms"], said["by"]) == (first, last, by)
                assert len(api.get("top", zone="site", by=by, **where)["top"]) == min(100, len(wanted))
                columns, lines = table(api, "top", zone="site", by=by, **where)
                assert columns == ["key", "passed", "blocked", "late", "total"]
                assert lines == texts(wanted)
                sheet = api.ask("top", {"zone": "site", "by": by, "format": "spreadsheet", **where})
                assert list(csv.reader(io.StringIO(sheet.body.decode(), newline="")))[1:] == for_spreadsheet(lines)
    assert len(ROWS.top(1, crowded, crowded + DAY_MS, "total")) < len(ROWS.crowd)  # some have none
    middle = FIRST_MS + 8 * DAY_MS
    for api in APIS:  # rounded outwards to hours: within a day, over a midnight, whole days and parts at both ends
        for first, last in ((5, 9), (0, 7), (17, 24), (20, 28), (24, 48), (3, 24 * 9 + 5), (0, 30), (30, 72)):
            first, last = middle + first * HOUR_MS, middle + last * HOUR_MS
            for by in ("passed", "blocked", "total"):
                said = api.get("top", zone="login", by=by, limit=1000, grain="hour", from_=first + 1, to=last - 1)
                assert (said["from_ms"], said["to_ms"]) == (first, last)
                assert [list(one.values()) for one in said["top"]] == \
                    [[shown(key), *row] for key, *row in ROWS.top(2, first, last, by)], (first, last, by)
        first = crowded + 24 * HOUR_MS  # one part of CSV after another
        lines = table(api, "top", zone="site", grain="hour", from_=crowded - 3 * HOUR_MS, to=first - 3 * HOUR_MS)[1]
        assert lines == texts(ROWS.top(1, crowded - 3 * HOUR_MS, first - 3 * HOUR_MS, "total")) and len(lines) > 9000
    assert len(table(APIS[0], "top", zone="site", day=crowded, limit=9000)[1]) == 9000


def test_what_is_deleted_is_no_part_of_a_sum(place):
    """Answers say from when on all is kept; a part of a day whose hours are gone is counted as the day."""
    day = FIRST_MS + 20 * DAY_MS
    kept = {"hourly": day + 10 * HOUR_MS, "daily": day - DAY_MS, "totals": day + 3 * HOUR_MS}
    now_ms = int(time.time() * 1000)
    api = on_sqlite(place, **{f"keep_{table}": f"{(now_ms - from_ms + HOUR_MS // 2) // 1000}s" for table, from_ms in kept.items()})
    for name, rows in ROWS.tables().items():
        api.insert(name, rows)
    with contextlib.closing(sqlite3.connect(api.database)) as database, database:
        database.execute("DELETE FROM count_hourly WHERE hour_ms < ?", (kept["hourly"],))
        database.execute("DELETE FROM count_daily WHERE day_ms < ?", (kept["daily"],))
        database.execute("DELETE FROM zone_hourly WHERE hour_ms < ?", (kept["totals"],))

    def top(first, last):
        said = api.get("top", zone="login", limit=1000, grain="hour", from_=day + first * HOUR_MS, to=day + last * HOUR_MS)
        assert said["kept_from_ms"] == kept["daily"]
        whole = max(said["from_ms"], kept["daily"])
        assert [list(one.values()) for one in said["top"]] == \
            [[shown(key), *row] for key, *row in ROWS.top(2, whole, said["to_ms"], "total")], (first, last)
        return (said["from_ms"] - day) // HOUR_MS, (said["to_ms"] - day) // HOUR_MS

    for first, last, wanted in ((10, 13, (10, 13)), (9, 13, (0, 24)), (5, 9, (0, 24)), (0, 13, (0, 24)), (12, 30, (12, 30)),
                                (5, 30, (0, 30)), (-20, 13, (-24, 24)), (-24, 24, (-24, 24)), (-60, 13, (-72, 24)),
                                (-20, -10, (-24, 0))):
        assert top(first, last) == wanted, (first, last)
        sheet = api.ask("top", {"zone": "login", "grain": "hour", "from": day + first * HOUR_MS, "to": day + last * HOUR_MS, "format": "csv"})
        assert sheet.status == (200 if wanted == (first, last) else 400), (first, last, sheet.status)
    first, last = day - 5 * DAY_MS, day + DAY_MS
    for asked, span_ms, kept_ms in (({"key": "192.0.2.1"}, HOUR_MS, kept["hourly"]),
                                    ({"key": "192.0.2.1", "grain": "day"}, DAY_MS, kept["daily"]),
                                    ({}, HOUR_MS, kept["totals"]), ({"grain": "day"}, DAY_MS, day + DAY_MS)):
        said = api.get("counts", zone="site", from_=first, to=last + DAY_MS, **asked)
        assert said["kept_from_ms"] == kept_ms, (asked, said)
        key = asked["key"].encode() if "key" in asked else None
        assert [list(one.values()) for one in said["counts"] if one["at_ms"] >= kept_ms] == \
            ROWS.counts(1, key, span_ms, kept_ms, last + DAY_MS)
    assert APIS[0].get("top", zone="site")["kept_from_ms"] is None
    assert APIS[0].get("counts", zone="site")["kept_from_ms"] is None
    api.end()


def pages(api, **parameters):
    """All of the decisions, page by page."""
    found, after = [], None
    while True:
        said = api.get("decisions", after=after, **parameters)
        found += said["decisions"]
        after = said["next"]
        if after is None:
            return found
        assert len(said["decisions"]) == parameters.get("limit", 100)


def test_decisions(_):
    for api in APIS:
        everything = ROWS.newest()
        assert pages(api, limit=997) == everything
        assert pages(api, limit=7, zone="login", key="192.0.2.1") == \
            ROWS.newest(zone="login", bucket=b"192.0.2.1")
        assert pages(api, zone="site", action="lift") == ROWS.newest(zone="site", action="lift")
        for key in ODD_KEYS:
            assert pages(api, zone="gone", key=key) == ROWS.newest(zone="gone", bucket=key), key
        some = [one for one in everything if FIRST_MS + 100 <= one["at_ms"] < FIRST_MS + 400]
        assert pages(api, limit=1000, from_=FIRST_MS + 100, to=FIRST_MS + 400) == some
        columns, lines = table(api, "decisions")
        assert columns[:6] == ["id", "zone", "key", "action", "at_ms", "until_ms"]
        assert lines == texts([[one["id"], one["zone"], one["key"], one["action"], one["at_ms"], one["until_ms"],
                                one["mode"], *(one["limit"] or {"algorithm": None, "rate": None, "window": None}).values(),
                                one["held"], one["ordered_by"], one["reason"], one["nth"]] for one in everything])
        assert len(table(api, "decisions", mode="all", limit=2001)[1]) == 2001  # more than a part
        sheet = api.ask("decisions", {"format": "spreadsheet"})
        first, *safe = csv.reader(io.StringIO(sheet.body.decode(), newline=""))
        assert first == [{"at_ms": "at_utc", "until_ms": "until_utc"}.get(one, one) for one in columns]
        assert safe == for_spreadsheet([[*line[:4], *map(as_time, line[4:6]), *line[6:]] for line in lines])
        assert safe != [[*line[:4], *map(as_time, line[4:6]), *line[6:]] for line in lines]
        assert "no end" in {line[5] for line in safe} and re.fullmatch(r"20\d\d-\d\d-\d\d [0-9:]{8}\.\d{3}", safe[-1][4])
        for separator in ",;\t":
            cells = [cell for line in csv.reader(io.StringIO(sheet.body.decode(), newline=""), delimiter=separator)
                     for cell in line]
            assert not [cell for cell in cells if len(cell) > 1 and cell.lstrip()[:1] in ("=", "+", "-", "@")]


def test_decisions_in_shadow_mode_are_told_apart(_):
    """Given where they are asked for alone, by pages and as CSV; what is asked for without a mode knows nothing of them."""
    both = ("enforce", "shadow")
    for api in APIS:
        assert api.get("decisions", mode="enforce") == api.get("decisions")
        for asked, modes in (("shadow", ("shadow",)), ("all", both)):
            wanted = ROWS.newest(modes)
            assert {one["mode"] for one in wanted} == set(modes) and len(wanted) > 1000
            assert pages(api, mode=asked, limit=997) == wanted, asked
            assert [line[0] for line in table(api, "decisions", mode=asked)[1]] == [one["id"] for one in wanted]
            assert pages(api, mode=asked, limit=7, zone="login", key="192.0.2.1") == \
                ROWS.newest(modes, zone="login", bucket=b"192.0.2.1")
            assert pages(api, mode=asked, zone="site", action="lift") == ROWS.newest(modes, zone="site", action="lift")
            some = [one for one in wanted if FIRST_MS + 100 <= one["at_ms"] < FIRST_MS + 400]
            assert pages(api, mode=asked, limit=10, from_=FIRST_MS + 100, to=FIRST_MS + 400) == some
        for wrong in ("both", "Shadow", ""):
            answer = api.ask("decisions", {"mode": wrong})
            assert answer.status == 400 and answer.json()["error"]["parameter"] == "mode", answer.body
        assert api.ask("blocks", {"mode": "shadow"}).status == 400


def test_blocks(_):
    wanted = ROWS.blocked_now()
    assert len(wanted) > 20
    for api in APIS:
        said = api.get("blocks", limit=1000)
        assert sorted(one["id"] for one in said["blocks"]) == wanted
        assert not said["more"] and abs(said["now_ms"] - time.time() * 1000) < 600_000
        assert [one["at_ms"] for one in said["blocks"]] == sorted((one["at_ms"] for one in said["blocks"]), reverse=True)
        few = api.get("blocks", limit=5)
        assert few["blocks"] == said["blocks"][:5] and few["more"]
        assert {one["zone"] for one in api.get("blocks", zone="login")["blocks"]} == {"login"}


def flapping(times):
    """Rows of a key that was blocked for an hour so often, a second apart, and lifted half a second later each time."""
    first = int(time.time() * 1000) - times * 1000
    return [(first + number * 500, 2, 10 ** 9 + number, 0, "site", b"192.0.2.250", "lift" if number % 2 else "block",
             first + number * 500 + (0 if number % 2 else 3_600_000), "enforce", "queue", 5, 3_600_000, 4, None, None, None)
            for number in range(2 * times)]


def test_blocks_that_were_lifted_are_read_once(_):
    """Their ends are ahead, so all of them are looked at; but not all the key's decisions for each of them."""
    api, times = APIS[1], 1000
    before = api.get("blocks", limit=1000)["blocks"]
    with api.mariadb.connect() as connection, connection.cursor() as cursor:
        def rows_read():
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Handler_read%'")
            return sum(int(value) for _, value in cursor.fetchall())

        marks = ", ".join(["%s"] * 16)
        cursor.executemany(f"INSERT INTO decision_history VALUES ({marks})", flapping(times))
        connection.commit()
        at_first = rows_read()
        assert api.get("blocks", limit=1000)["blocks"] == before
        read = rows_read() - at_first
        cursor.execute("DELETE FROM decision_history WHERE partition_id = 2 AND log_offset >= 1000000000")
        connection.commit()
    assert read < 30 * times, f"{read} rows read for {times} blocks"


def held(first, last, **about):
    """[(from, to)] in which a key was blocked, by a walk over its decisions; about: zone and bucket."""
    rows = sorted((row for row in ROWS.decisions if row["zone"] == about["zone"] and row["mode"] == "enforce"
                   and row["bucket"] in (about["bucket"], None)),
                  key=lambda row: (row["partition_id"], row["log_offset"], row["pair"]))
    times = []
    for row, after in zip(rows, rows[1:] + [None]):
        if row["action"] != "block":
            continue
        end = row["until_ms"]
        if after is not None and after["partition_id"] == row["partition_id"]:
            end = min(end, after["at_ms"])
        times.append((max(first, row["at_ms"]), min(last, end)))
    joined = []
    for begin, end in sorted(one for one in times if one[0] < one[1]):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def test_when_a_key_was_blocked(_):
    """Lifted blocks end there, a block that began before is in it, one in shadow mode is not, pieces are joined."""
    now = ROWS.now_ms
    some = ([("site", key) for key in ROWS.keys if shown(key).encode() == key] +
            [(zone, b"b%d" % one) for zone in ("site", "login") for one in range(60)] + [("gone", b"g0"), ("gone", b"g1"), ("site", b"long"),
             ("gone", b"days"), ("login", b"days")])
    for api in APIS:
        met = 0
        for first, last in ((FIRST_MS - HOUR_MS, FIRST_MS + DAY_MS), (FIRST_MS + 300, FIRST_MS + 1200),
                            (now - HOUR_MS, now + HOUR_MS), (now - 60_000, now),
                            (now - 7 * DAY_MS, now - 4 * DAY_MS), (now - 3 * DAY_MS, now)):
            for zone, key in some:
                said = api.get("held", zone=zone, key=shown(key), from_=first, to=last)
                wanted = held(first, last, zone=zone, bucket=key)
                assert [(one["from_ms"], one["to_ms"]) for one in said["times"]] == wanted, (zone, key, said, wanted)
                assert (said["from_ms"], said["to_ms"], said["key"], said["more"]) == (first, last, shown(key), False)
                met += len(wanted)
        assert met > 100, met
        (whole,) = api.get("held", zone="site", key="long", from_=now - HOUR_MS, to=now)["times"]
        assert whole == {"from_ms": now - HOUR_MS, "to_ms": now}
        for missing in ("key", "from", "to"):
            asked = {"zone": "site", "key": "long", "from": FIRST_MS, "to": LAST_MS}
            answer = api.ask("held", {name: one for name, one in asked.items() if name != missing})
            assert answer.status == 400 and answer.json()["error"]["parameter"] == missing


def test_events(_):
    for api in APIS:
        for key in ROWS.keys[:3] + ODD_KEYS[:8]:
            rows = sorted((row for row in ROWS.events if row[1] == key), key=lambda row: row[2:6], reverse=True)
            wanted = [{"id": f"{row[3]}-{row[4]}-{row[5]}", "at_ms": row[2], "blocked": bool(row[6]),
                       "fields": json.loads(row[7] or "null")} for row in rows]
            found, after = [], None
            while found == [] or after is not None:
                said = api.get("events", zone="login", key=key, limit=600, after=after)
                found, after = found + said["events"], said["next"]
            assert found == wanted and said["history"] and said["key"] == shown(key)
            lines = table(api, "events", zone="login", key=key)
            assert lines == (["id", "at_ms", "blocked", "fields"],
                             texts([[one["id"], one["at_ms"], int(one["blocked"]), row[7] or ""]
                                    for one, row in zip(wanted, rows)]))
            sheet = api.ask("events", {"zone": "login", "key": key, "format": "spreadsheet"}).body.decode()
            assert [row[3] for row in csv.reader(io.StringIO(sheet, newline=""))][1:] == \
                [row[0] for row in for_spreadsheet([[row[7] or ""] for row in rows])]
            some = api.get("events", zone="login", key=key, limit=1000, from_=FIRST_MS + 500, to=FIRST_MS + 900)
            assert some["events"] == [one for one in wanted if FIRST_MS + 500 <= one["at_ms"] < FIRST_MS + 900]
        said = api.get("events", zone="site", key="192.0.2.1")
        assert said["events"] == [] and not said["history"] and said["from_ms"] is None


def test_large_events_come_in_parts(_):
    """A page, and a part of CSV, ends once its text exceeds 1 MiB: it goes on from there, and nothing is left out."""
    for api in APIS:
        found, after, pages = [], None, 0
        while pages == 0 or after is not None:
            answer = api.ask("events", {"zone": "login", "key": "large", "limit": 1000, **({"after": after} if after else {})})
            assert len(answer.body) < 1_200_000, len(answer.body)
            said = answer.json()
            found, after, pages = found + said["events"], said["next"], pages + 1
        assert [one["at_ms"] for one in found] == [FIRST_MS + number for number in reversed(range(90))] and pages == 5, pages
        _, lines = table(api, "events", zone="login", key="large")
        assert [line[0] for line in lines] == [one["id"] for one in found]
        _, lines = table(api, "events", zone="login", key="large", limit=50)
        assert [line[0] for line in lines] == [one["id"] for one in found[:50]]


def test_status(_):
    for api, kind in zip(APIS, ("sqlite", "mysql")):
        answer = api.ask("status")
        said = answer.json()
        assert said["store"] == kind and said["policy_version"] == 2 and said["schema_version"] == 4
        assert said["newest_hour_ms"] == max(hour for _, _, hour in ROWS.hourly)
        assert said["figures"] == {"weir_test_figure": 42}
        assert [(one["role"], one["partition"], one["epoch"], one["checkpoint"], one["next_offset"])
                for one in said["partitions"]] == [(role, number, 3, 40 + number, 1000 + number)
                                                   for role in ("limiter", "archiver") for number in range(3)]
        assert [one["next_number"] for one in said["partitions"]] == [1000, 10**10 + 1001, 1002, None, 10**10 + 990, None], said
        assert b"secret" not in answer.body and all(one["clock_ms"] == FIRST_MS for one in said["partitions"])


def test_a_new_policy_is_seen(_):
    """The last of the tests: it changes the zones."""
    for api in APIS:
        text = policies()[1][1].replace('"name": "site"', '"name": "place"').replace('"id": 1', '"id": 9')
        assert api.ask("counts", {"zone": "place"}).status == 404
        api.insert("policy_version", [(3, text)])
        assert api.get("counts", zone="place")["zone"] == "place"
        assert {zone["name"]: zone["live"] for zone in api.get("zones")["zones"]} == \
            {"site": False, "login": True, "gone": False, "place": True}


def test_a_store_that_is_away_and_comes_back(place):
    servers = SERVERS[0]
    with servers.proxied_mariadb() as proxy:
        api = OnMariadb(place, servers, port=proxy.port)
        assert api.get("zones")["policy_version"] > 0
        proxy.cut()
        for resource, parameters in (("zones", {}), ("counts", {"zone": "login"}),
                                     ("decisions", {"format": "csv"})):
            answer = api.ask(resource, parameters)
            assert answer.status == 503 and int(answer.headers["retry-after"]) > 0, (resource, answer.body)
            assert servers.database not in answer.body.decode() and "store is down" in answer.json()["error"]["message"]
        assert api.ask("openapi.json").status == 200
        said = api.get("status")
        assert "store is down" in said["store_error"] and servers.database not in said["store_error"]
        assert said["policy_version"] is None and said["partitions"] == [] and said["figures"] == {"weir_test_figure": 42}
        proxy.mend()
        until(lambda: api.ask("zones").status == 200, "the store is back", running=api.program)
        assert api.get("status")["store_error"] is None and api.get("status")["policy_version"] > 0
        assert api.get("decisions", zone="login", limit=3)["decisions"] == ROWS.newest(zone="login")[:3]
        assert api.program.said().count("WARNING") < 4, api.program.said()  # not one for each request
        api.end()


def test_description_is_what_the_tree_has(_):
    answer = APIS[0].ask("openapi.json", None, Accept_Encoding="gzip")
    assert answer.packed and answer.json() == CONTRACT.document


if __name__ == "__main__":
    try:
        with cluster.shared() as servers, served(servers, ROWS) as APIS:
            SERVERS.append(servers)
            cases.main(globals())
    except cases.Skipped as why:
        print(f"skipped: {why}")
        sys.exit(cases.SKIPPED)
