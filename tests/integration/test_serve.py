#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir serve`: the page and the API over any state directory, of which not a byte changes; guarded as the archiver's are."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import PATIENCE_S, ROOT, free_port, until

DONE, FAILED, USAGE = 0, 1, 2
ZONES = [{"name": "site", "key": ["ip"], "block_for": "3h",
          "limits": [{"algorithm": "fixed_window", "rate": 5, "window": "1h"}]}]
BEGIN_S = 1_700_000_000
SPAN = {"zone": "site", "from": "2023-11-14", "to": "2023-11-16"}
TOKEN = "a-token-of-a-test"
END_S = 5  # after SIGTERM


def lines(key, count, at_s=BEGIN_S):
    """Lines of a log: a key's requests."""
    return "".join(f'{{"time": {at_s + number}, "ip": "{key}"}}\n' for number in range(count))


def configured(place, follow=False, **archiver):
    """A configuration with the log beside it: its path."""
    source = {"type": "file", "path": place.path("log"), "format": "json", "follow": follow,
              **({"start": "beginning"} if follow else {})}
    return place.config(ZONES, [source], archiver={"enabled": True, "interval": "100ms", **archiver})


def finished(place, **archiver):
    """The state of a run that has ended: its path."""
    place.write("log", lines("192.0.2.1", 40) + lines("192.0.2.2", 3))
    config, state = configured(place, **archiver), place.path("state")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("out"))
    return state


class Served:
    """A `weir serve`, and how to ask it."""

    def __init__(self, place, *arguments, **popen):
        self.weir = place.start("serve", *arguments, "--http", "127.0.0.1:0", **popen)
        until(lambda: self.weir.out().endswith(b"/\n"), "the address", running=self.weir)
        self.port = int(re.fullmatch(rb"http://127\.0\.0\.1:(\d+)/\n", self.weir.out())[1])

    def ask(self, path, **headers):
        """(status, body) of a path."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read()

    def get(self, resource, **parameters):
        """The JSON of a good answer."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        status, body = self.ask(f"/api/v1/{resource}?{query}" if query else f"/api/v1/{resource}")
        assert status == 200, (resource, status, body)
        return json.loads(body)

    def everything(self):
        """Asks for all that a page asks for: the counts of the zone."""
        assert self.ask("/")[0] == 200 and b"uPlot" in self.ask("/page/chart.js")[1]
        for resource, asked in (("zones", {}), ("status", {}), ("blocks", {}), ("decisions", {}), ("top", SPAN),
                                ("held", {**SPAN, "key": "192.0.2.1"})):
            self.get(resource, **asked)
        status, body = self.ask("/api/v1/decisions?format=csv")
        assert status == 200 and body.startswith(b"id,zone,key")
        return self.get("counts", **SPAN)["total"]

    def end(self):
        """Ends it as systemd does, within a bounded time."""
        begun = time.monotonic()
        assert self.weir.stop() == DONE, self.weir.said()
        assert time.monotonic() - begun < END_S


def fingerprint(directory):
    """All names in a directory, with sums, times and rights."""
    found = {}
    for where, folders, files in os.walk(directory):
        for name in folders + files:
            path = os.path.join(where, name)
            about = os.stat(path)
            data = b""
            if name in files and not os.path.islink(path) and os.path.isfile(path):
                with open(path, "rb") as file:
                    data = file.read()
            found[os.path.relpath(path, directory)] = (hashlib.sha256(data).hexdigest(), about.st_mtime_ns, about.st_mode,
                                                       about.st_ino)
    return found, os.stat(directory).st_mtime_ns


def in_rows(state):
    """(passed, blocked) in the state's rows; None where there are no tables yet."""
    with contextlib.suppress(sqlite3.OperationalError), \
            contextlib.closing(sqlite3.connect(f"file:{state}/weir.db?mode=ro", uri=True)) as database:
        return database.execute("SELECT SUM(passed), SUM(blocked) FROM zone_hourly").fetchone()
    return None


def test_a_finished_run_is_shown_and_stays_as_it_is(place):
    state = finished(place)
    before = fingerprint(state)
    assert not [name for name in before[0] if name.startswith("weir.db-")]
    served = Served(place, "--state", state)
    total = served.everything()
    assert fingerprint(state) == before
    held = served.get("held", **SPAN, key="192.0.2.1")["times"]
    decisions = served.get("decisions")["decisions"]
    served.end()
    assert fingerprint(state) == before
    assert [one["key"] for one in decisions] == ["192.0.2.1"] and total == {"passed": 8, "blocked": 35, "late": 0}
    assert held == [{"from_ms": decisions[0]["at_ms"], "to_ms": decisions[0]["until_ms"]}]
    assert in_rows(state) == (total["passed"], total["blocked"])


def test_a_state_that_a_crash_has_left_stays_as_it_is(place):
    """What was stored last is in SQLite's log alone: it is shown, and the next run finds all as the crash left it."""
    place.write("log", lines("192.0.2.1", 40))
    config, state = configured(place, follow=True), place.path("state")
    run = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))
    until(lambda: in_rows(state) == (5, 35), "it is archived", running=run)
    run.signal(signal.SIGKILL)
    run.wait()
    assert os.path.getsize(f"{state}/weir.db-wal") > 0
    before = fingerprint(state)
    served = Served(place, "--state", state)
    for _ in range(3):
        assert served.everything() == {"passed": 5, "blocked": 35, "late": 0}
    assert fingerprint(state) == before
    served.end()
    assert fingerprint(state) == before


def test_it_reads_along_with_a_run_that_holds_the_state(place):
    place.write("log", lines("192.0.2.1", 40))
    config, state = configured(place, follow=True), place.path("state")
    run = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))
    until(lambda: in_rows(state) == (5, 35), "it is archived", running=run)
    served = Served(place, "--state", state)
    assert "a running weir holds" in served.weir.said()
    assert served.everything() == {"passed": 5, "blocked": 35, "late": 0}
    place.append("log", lines("192.0.2.3", 4, BEGIN_S + 60))
    until(lambda: served.get("counts", **SPAN)["total"]["passed"] == 9, "what came since", running=run)
    # Between two questions nothing is held: SQLite's log can be emptied.
    with contextlib.closing(sqlite3.connect(f"{state}/weir.db")) as database:
        assert until(lambda: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "a checkpoint")
    assert run.stop() == 0, run.said()
    assert served.everything()["passed"] == 9, "also when it has ended"
    again = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))
    place.append("log", lines("192.0.2.3", 1, BEGIN_S + 90))
    until(lambda: served.get("counts", **SPAN)["total"]["passed"] == 10, "and begun again", running=again)
    served.end()


def test_what_is_deleted_is_told_without_a_configuration(place):
    """The archive itself says from when on all is there, of settings of before, too."""
    day_s = int(time.time()) // 86400 * 86400 - 3 * 86400
    place.write("log", lines("192.0.2.1", 40, day_s + 3600) + lines("192.0.2.2", 3, day_s + 7200) + lines("192.0.2.3", 1, int(time.time())))
    config, state = configured(place, follow=True, keep_hourly="30h"), place.path("state")
    run = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))

    def hours():
        with contextlib.suppress(sqlite3.OperationalError), \
                contextlib.closing(sqlite3.connect(f"file:{state}/weir.db?mode=ro", uri=True)) as database:
            return database.execute("SELECT COUNT(*), SUM(passed + blocked) FROM count_hourly").fetchone()
        return None
    until(lambda: in_rows(state) is not None and sum(filter(None, in_rows(state))) == 44, "it is archived", running=run)
    assert run.stop() == 0, run.said()
    run = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))
    until(lambda: "following" in run.said() and hours() == (1, 1), "the hours are deleted", running=run)
    assert run.stop() == 0, run.said()
    configured(place, follow=True, keep_hourly="900d")
    run = place.start("run", "--config", config, "--state", state, "--decisions", place.path("out"))
    until(lambda: "following" in run.said(), "it runs with another setting", running=run)
    served = Served(place, "--state", state)
    first = (day_s + 7200) * 1000
    top = served.get("top", **{"zone": "site", "grain": "hour", "from": first, "to": first + 3600000})
    assert (top["from_ms"], top["to_ms"]) == (day_s * 1000, (day_s + 86400) * 1000), top
    assert [(one["key"], one["total"]) for one in top["top"]] == [("192.0.2.1", 40), ("192.0.2.2", 3)], top
    counts = served.get("counts", **{"zone": "site", "key": "192.0.2.1", "from": first, "to": first + 3600000})
    assert counts["kept_from_ms"] > first and counts["counts"] == [], counts
    assert served.get("counts", **{"zone": "site", "from": first, "to": first + 3600000})["kept_from_ms"] is None
    served.end()
    assert run.stop() == 0, run.said()


def test_a_directory_that_cannot_be_written(place):
    """Mounted read-only, as a backup is."""
    state = finished(place)
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && ! touch "$1/x" 2>/dev/null && shift && exec "$@"'
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", state, "true"], check=False,
                                           stderr=subprocess.DEVNULL).returncode != 0:
        raise cases.Skipped("no mount namespace may be made here")
    weir = place.weir
    place.weir = "unshare"
    served = place.start("-m", "sh", "-c", script, "sh", state, weir, "serve", "--state", state, "--http", "127.0.0.1:0")
    place.weir = weir
    until(lambda: served.out().endswith(b"/\n"), "the address", running=served)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", int(served.out()[:-2].rsplit(b":")[-1]))) as connection:
        connection.request("GET", "/api/v1/counts?" + "&".join(f"{name}={value}" for name, value in SPAN.items()))
        assert json.load(connection.getresponse())["total"]["blocked"] == 35
    assert served.stop() == DONE


def test_the_archive_of_an_empty_log_is_one(place):
    """By --once, and of a run that follows."""
    log = place.write("empty", "")
    source = {"type": "file", "path": log, "format": "json"}
    once = place.config(ZONES, [source], name="once.json", archiver={"enabled": True})
    place.good("run", "--once", "--config", once, "--state", place.path("once"), "--decisions", place.path("out"))
    live = place.config(ZONES, [{**source, "follow": True}], name="live.json", archiver={"enabled": True})
    weir = place.start("run", "--config", live, "--state", place.path("live"), "--decisions", place.path("out2"))
    until(lambda: "following" in weir.said(), "follows", running=weir)
    assert weir.stop() == DONE, weir.said()
    for state in ("once", "live"):
        served = place.start("serve", "--state", place.path(state), "--http", "127.0.0.1:0")
        until(lambda: b"http://" in served.out(), "serves", running=served)  # pylint: disable=cell-var-from-loop
        assert served.stop() == DONE, served.said()
        done = place.run("top", "--state", place.path(state), "--json", "--once")
        assert done.code() == DONE and "nothing is archived" not in done.said(), done.said()


def test_errors_teach(place):
    state = finished(place)
    bare = place.path("bare")
    config = place.config(ZONES, [{"type": "file", "path": place.path("log"), "format": "json"}], name="bare.json")
    place.good("run", "--once", "--config", config, "--state", bare, "--decisions", place.path("out2"))
    os.makedirs(place.path("nothing"))
    port = free_port()
    for arguments, code, words in (
            (("--state", bare), USAGE, f"nothing is archived in {bare}: set archiver.enabled to true"),
            (("--state", bare), USAGE, "weir run --once --config FILE --state DIR"),
            (("--state", place.path("nothing")), USAGE, "there is no state in"),
            (("--state", place.path("absent")), USAGE, "there is no state in"),
            (("--state", state, "--http", "nowhere"), USAGE, "--http must be HOST:PORT"),
            (("--state", state, "--http", "0.0.0.0:0"), USAGE, "everybody who reaches 0.0.0.0 could read everything"),
            (("--state", state, "--http", "*:0"), USAGE, "with --config a configuration that has archiver.tokens"),
            (("--state", state, "--config", place.path("none.json")), FAILED, "none.json"),
            (("--state", state, "--http", f"127.0.0.1:{port}"), FAILED, f"{port}")):
        with socket.create_server(("127.0.0.1", port)):
            done = place.run("serve", *arguments)
        assert done.code() == code and words in done.said() and done.out() == b"", (arguments, done.code(), done.said())
        assert done.said().count("\n") <= 2, done.said()
    with open(os.path.join(ROOT, "common/settings.md"), encoding="utf-8") as file:
        taken = set(re.findall(r"^\| `archiver\.(api_\w+)`", file.read(), re.M))
    said = place.good("serve", "--help").out().decode()
    assert taken and all(name in said for name in taken), (taken, said)


def test_it_is_guarded_as_the_archivers_api(place):
    state = finished(place)
    served = Served(place, "--state", state)
    status, body = served.ask("/api/v1/status", Host="weir.example.com")
    assert status == 421 and b"archiver.tokens" in body
    assert served.ask("/api/v1/status", Host="localhost")[0] == 200
    with socket.create_connection(("127.0.0.1", served.port)) as half:  # which says nothing more
        half.sendall(b"GET / HTTP/1.1\r\nHost: ")
        served.end()
    config = configured(place, tokens=[TOKEN], api_rate=0)
    served = Served(place, "--state", state, "--config", config)
    assert served.ask("/api/v1/status")[0] == 401 and served.ask("/")[0] == 200
    assert served.ask("/api/v1/status", Authorization=f"Bearer {TOKEN}", Host="weir.example.com")[0] == 200
    served.end()


def test_hashed_keys_are_found_by_their_secret(place):
    secret = place.write("secret", "a secret of some bytes")
    os.chmod(secret, 0o600)
    state = finished(place, hash_keys=secret)
    done = place.run("serve", "--state", state, "--http", "127.0.0.1:0")
    assert done.code() == USAGE and "hash" in done.said(), done.said()
    served = Served(place, "--state", state, "--config", place.path("weir.json"))
    assert served.get("status")["hash_keys"] is True
    assert served.get("counts", **SPAN, key="192.0.2.1")["total"]["blocked"] == 35
    assert "192.0.2.1" not in str(served.get("top", **SPAN)["top"])
    served.end()


def test_a_copy_is_served_where_it_is(place):
    """A name with what means something in an address of SQLite's, and the default directory."""
    state, copy = finished(place), place.path("a copy?of #1 100%")
    shutil.copytree(state, copy)
    served = Served(place, "--state", copy)
    assert served.everything()["blocked"] == 35
    served.end()
    home = place.path("home")
    os.makedirs(home)
    if os.geteuid() == 0:
        return  # root's is the machine's
    shutil.copytree(state, f"{home}/weir")
    served = Served(place, env={**os.environ, "XDG_STATE_HOME": home})
    assert served.everything()["blocked"] == 35
    served.end()


if __name__ == "__main__":
    cases.main(globals())
