#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir suggest` against brute force: every limit is tried on small random logs, by the oracle's judge."""

import json
import os
import random
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "conformance", "oracle"))

# pylint: disable=wrong-import-position
from limits import FixedWindow, SlidingWindow
from support import cases, traffic
from support.cases import Skipped
from support.place import SANITIZED, lines_of, read
from support.run_local import Run
from support.traffic import START_MS, burst, fixed, line, sliding, zone

DONE, FAILED, USAGE = 0, 1, 2
CASES = 8 if SANITIZED else 24
FORMAT = {"type": "json", "unit": "ms", "cost": "cost"}
NAMES = {1: "1ms", 20: "20ms", 100: "100ms", 1000: "1s", 60000: "1m"}


class Events:
    """A log: requests of (time, user, cost)."""

    def __init__(self, requests, algorithm=SlidingWindow):
        self.requests, self.algorithm = requests, algorithm
        self.keys = sorted({user for _, user, _ in requests})
        self.most = sum(cost for _, _, cost in requests) + 1

    def text(self):
        """Its lines."""
        return "".join(line(time, user, cost=cost) for time, user, cost in self.requests)

    def blocked(self, limits):
        """The blocked requests of each key, judged by the limits {window: rate} as those of one zone."""
        states, blocked = {}, {}
        for time, user, cost in self.requests:
            own = states.setdefault(user, [self.algorithm(types.SimpleNamespace(rate=rate, window=window, lateness=0, precision=0,
                                                                                offset=0)) for window, rate in limits.items()])
            judging = [state for state in own if not state.late(time)]
            if any(state.over(time, cost) for state in judging):
                blocked[user] = blocked.get(user, 0) + 1
            elif cost > 0:
                for state in judging:
                    state.record(time, cost, False)
        return blocked


def draw(rng, algorithm):
    """A small log, with equal times, late ones, and costs in some."""
    time, requests, costs = START_MS, [], rng.random() < 0.4
    for _ in range(rng.randint(5, 120)):
        time += rng.choice([0, 0, 1, 1, 5, 20, 21, 100, rng.randint(0, 400)])
        early = rng.choice([1, 19, 20, 21, 99, 100, 150, 200, 2000]) if rng.random() < 0.2 else 0
        user = f"u{int(9 * rng.random() ** 2)}"
        requests.append((time - early, user, rng.choice([0, 1, 1, 2, 7]) if costs else 1))
    return Events(requests, algorithm)


class Brute:
    """All limits of each window, tried."""

    def __init__(self, events, windows, allowed, spared):
        self.allowed, self.spared, self.windows = allowed, set(spared), windows
        self.sets = {window: self._sets(events, window) for window in windows}

    @staticmethod
    def _sets(events, window):
        """By limit: the keys that it blocks; the last limit blocks nobody."""
        sets = [None]
        while not sets or sets[-1] is None or sets[-1]:
            sets.append(set(events.blocked({window: len(sets)})))
            assert len(sets) <= events.most + 1
        return sets

    def blocks(self, window, limit):
        """The keys that a limit blocks."""
        return self.sets[window][limit] if limit < len(self.sets[window]) else set()

    def smallest(self, window, allowed, others=frozenset()):
        """The smallest limit that blocks so many keys beside the others."""
        limit = 1
        while self.blocks(window, limit) & self.spared or len(self.blocks(window, limit) | others) > allowed:
            limit += 1
        return limit

    def union(self, limits):
        """The keys that limits {window: rate} block."""
        return set().union(*(self.blocks(window, limit) for window, limit in limits.items()))

    def together(self):
        """What is suggested: an equal share for each window, as large as it can be; then each as low as it goes."""
        each = max(share for share in range(self.allowed + 1)
                   if len(self.union({w: self.smallest(w, share) for w in self.windows})) <= self.allowed)
        limits = {w: self.smallest(w, each) for w in self.windows}
        for window in self.windows:
            others = self.union({w: limit for w, limit in limits.items() if w != window})
            limits[window] = self.smallest(window, self.allowed, others)
        return limits


def suggest(place, log, windows, *more, key="user"):
    """What it wrote with --json, and the zone."""
    place.good("suggest", "--key", key, "--window", ",".join(windows), "--json", place.path("r"), "--output", place.path("zone"),
               "--quiet", *more, log)
    with open(place.path("r"), encoding="utf-8") as file:
        return json.load(file), read(place.path("zone")).decode()


def formats(place):
    """A configuration that says how the logs are read."""
    return place.write("formats.json", json.dumps({"sources": [{"type": "file", "path": "/nowhere", "format": FORMAT}]}))


def check_zone(place, log, zone_text, blocked, shadow=True):
    """Requires that the zone is accepted as it stands, and blocks these requests {key: number}."""
    source = json.dumps({"type": "file", "path": log, "format": FORMAT, "follow": False})
    config = place.write("pasted.json", '{"sources": [%s], "zones": [%s]}' % (source, zone_text))
    place.good("validate", config)
    done = place.good("run", "--once", "--config", config, "--judged", place.path("judged"), "--decisions", place.path("d"),
                      "--quiet", "--summary", "json")
    got = {}
    for one in lines_of(place.path("judged")):
        if one["verdict"] == "block":
            got["|".join(one["key"])] = got.get("|".join(one["key"]), 0) + 1
    assert got == blocked, (got, blocked)
    assert not shadow or read(place.path("d")) == b"", "a zone in shadow mode blocks nobody"
    return done


def check_case(place, number):
    """One random log: each window alone, and all together."""
    rng = random.Random(number)
    algorithm = FixedWindow if number % 3 == 2 else SlidingWindow
    events = draw(rng, algorithm)
    if number % 5 == 4:
        events = Events(sorted(events.requests, key=lambda request: request[0]), algorithm)
    log = place.write("a.log", events.text() if number % 5 != 4 else
                      Events(rng.sample(events.requests, len(events.requests))).text())
    windows = sorted(rng.sample(sorted(NAMES), rng.choice([1, 2, 3])))
    share = rng.choice(["0", "0.1%", "10%", "25%", "0.5", "90%"])
    part = float(share.rstrip("%")) / (100 if "%" in share else 1)
    allowed = int(part * len(events.keys) + 1e-9)
    spared = rng.sample(events.keys, min(len(events.keys), rng.choice([0, 0, 1, 2])))
    brute = Brute(events, windows, allowed, spared)
    report, zone_text = suggest(place, log, [NAMES[w] for w in windows], "--blocked-keys", share, "--config", formats(place),
                                *(["--algorithm", "fixed_window"] if algorithm is FixedWindow else []),
                                *(["--spare", place.write("spare", "".join(f"{one}\n" for one in spared))] if spared else []),
                                *(["--sort"] if number % 5 == 4 else []))
    if number % 5 == 4:  # equal times: which of them is judged first does not change who is ever blocked
        check_limits(report, brute, events)
        return
    limits = check_limits(report, brute, events)
    blocked = events.blocked(limits)
    assert report["together"]["blocked_keys"] == len(blocked) <= allowed and not set(blocked) & set(spared)
    assert report["together"]["blocked_requests"] == sum(blocked.values())
    top = sorted(blocked.items(), key=lambda item: (-item[1], item[0]))[:5]
    assert [(one["key"], one["blocked_requests"]) for one in report["most_blocked"]] == top
    for window, figures in zip(windows, report["windows"]):
        for point in figures["points"]:
            tried = events.blocked({window: point["limit"]})
            assert (point["blocked_keys"], point["blocked_requests"]) == (len(tried), sum(tried.values())), (window, point)
        if limits[window] == 1:
            assert figures["one_lower"] is None
            continue
        lower = events.blocked({**limits, window: limits[window] - 1})
        assert len(lower) > allowed or set(lower) & set(spared), "one less would do"
        assert figures["one_lower"]["blocked_keys"] == len(lower)
        assert figures["one_lower"]["blocked_requests"] == sum(lower.values())
    check_zone(place, log, zone_text, blocked)


def check_limits(report, brute, events):
    """Requires the limits of brute force: {window: rate}."""
    assert (report["keys"], report["requests"]) == (len(events.keys), len(events.requests))
    assert report["keys_allowed"] == brute.allowed and report["spared_keys"] == len(brute.spared)
    limits = {figures["window"]: figures["limit"] for figures in report["windows"]}
    assert limits == brute.together(), (limits, brute.together())
    for figures in report["windows"]:
        window = figures["window"]
        assert figures["limit_alone"] == brute.smallest(window, brute.allowed)
        curve = {step["limit"]: step["blocked_keys"] for step in figures["curve"]}
        want = {limit: len(blocked) for limit, blocked in enumerate(brute.sets[window])
                if limit > 0 and (limit == 1 or blocked != brute.sets[window][limit - 1])}
        want = {limit: count for limit, count in want.items() if limit in curve or limit > 1}
        assert curve == want, (window, curve, want)
    return limits


def test_limits_are_those_of_brute_force(place):
    for number in range(CASES):
        try:
            check_case(place, number)
        except AssertionError as error:
            raise AssertionError(f"case {number}: {error}") from error


def test_a_spared_key_raises_the_limit_and_is_named(place):
    log = place.write("a.log", burst("robot", 90) + burst("office|x", 40) + "".join(burst(f"u{i}", 3) for i in range(8)))
    spare = place.write("spare", "# ours\n\n  office\\|x \nnobody\n")
    words = ("--key", "user", "--config", formats(place), "--blocked-keys", "20%", log)
    assert suggest(place, log, ["1m"], *words[2:-1])[0]["windows"][0]["limit"] == 3
    done = place.good("suggest", *words, "--spare", spare)
    for part in ("spared: 1 key", "Spared office\\|x had 40: without spared keys the limit would be 3.", "<- suggested",
                 "The window is longer than the log", "40 in 1m alone blocks 1 key; with 39 here, all limits would block 2 keys, "
                 "spared office\\|x among them", "             50  robot"):
        assert part in done.out().decode(), f"{part!r} is not in: {done.out().decode()}"
    report, _ = suggest(place, log, ["1m"], *words[2:-1], "--spare", spare)
    assert report["windows"][0]["spared"] == {"key": "office\\|x", "most": 40, "limit_without": 3}
    assert report["windows"][0]["longer_than_log"] is True


def test_fixed_windows_are_those_of_the_clock(place):
    """Whoever comes at the end of one minute and at the beginning of the next has half in each."""
    minute_ms = START_MS - START_MS % 60000 + 60000
    log = place.write("a.log", burst("u1", 5, minute_ms - 1000) + burst("u1", 5, minute_ms) + burst("u2", 3, minute_ms))
    words = (["1m"], "--config", formats(place), "--blocked-keys", "0")
    assert suggest(place, log, *words)[0]["windows"][0]["limit"] == 10
    report, zone_text = suggest(place, log, *words, "--algorithm", "fixed_window")
    assert report["zone"]["limits"] == [fixed(5, "1m")], report["zone"]
    assert "5 in each 1m alone blocks 0 keys; with 4 here, all limits would block 1 key" in zone_text, zone_text
    check_zone(place, log, zone_text, {})


def test_networks_are_spared(place):
    lines = [f'192.0.2.{i} - - [14/Nov/2023:22:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "x"\n' for i in (1, 1, 1, 1, 2, 2, 2, 3)]
    lines += ['198.51.100.7 - - [14/Nov/2023:22:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "x"\n'] * 6
    log = place.write("access.log", "".join(lines))
    assert suggest(place, log, ["1s"], key="ip", *("--blocked-keys", "0.5"))[0]["windows"][0]["limit"] == 3
    report, _ = suggest(place, log, ["1s"], "--blocked-keys", "0.5", "--spare", place.write("s", "192.0.2.0/30\n"), key="ip")
    assert report["windows"][0]["limit"] == 4 and report["spared_keys"] == 3
    report, _ = suggest(place, log, ["1s"], "--blocked-keys", "0.5", "--spare", place.write("s", "::ffff:198.51.100.7\n"), key="ip")
    assert report["windows"][0]["limit"] == 6


def test_whom_operators_let_go_is_spared(place):
    run = Run(place, log=burst("joe", 9) + burst("max", 12) + burst("ann", 20) + burst("eve", 30) + burst("bob", 2),
              limiter={"checkpoint_interval": "1h"}).start()
    run.override("allow", "--zone", "site", "joe", "--for", "1h")
    run.override("lift", "--zone", "site", "max")
    run.override("block", "--zone", "site", "eve")
    run.override("allow", "--zone", "pair", "ann", "/a")
    # Who is allowed no longer, or is forgotten, is spared no longer.
    run.override("allow", "--zone", "site", "eve", "--for", "1h")
    run.override("allow", "--zone", "site", "eve", "--for", "0s")
    run.override("allow", "--zone", "pair", "joe", "/a", "--for", "0s")
    run.command("forget", "ann", "--zone", "site", "--timeout", "100ms", code=FAILED)
    words = ("--config", formats(place), "--blocked-keys", "80%")
    assert suggest(place, run.log, ["1m"], *words)[0]["windows"][0]["limit"] == 2
    for more in ((), ("--zone", "site")):
        [window] = suggest(place, run.log, ["1m"], *words, "--state", run.state, *more)[0]["windows"]  # beside the run
        assert window["spared"] == {"key": "max", "most": 12, "limit_without": 2} and window["limit"] == 12, window
    run.stop()
    assert suggest(place, run.log, ["1m"], *words, "--state", run.state)[0]["spared_keys"] == 2
    assert suggest(place, run.log, ["1m"], *words, "--state", run.state, "--zone", "other")[0]["spared_keys"] == 0
    assert place.path("nothing") in refused(place, "--key", "user", *words, "--state", place.path("nothing"), run.log)


def test_a_zone_of_the_configuration_keeps_all_but_its_limits(place):
    log = place.write("a.log", burst("u1", 30, path="/login") + burst("u2", 50, path="/other") + burst("u3", 4, path="/login")
                      + burst("u4", 60, path="/login"))
    config = place.config([zone("login", [sliding(1, "1h")], match={"path": "/login"}, block_for="5m", exempt=["u4"], id=7)],
                          [{"type": "file", "path": log, "format": FORMAT, "follow": False}])
    place.good("suggest", "--config", config, "--zone", "login", "--blocked-keys", "50%", "--output", place.path("zone"),
               "--json", place.path("r"), "--quiet")
    report = json.loads(read(place.path("r")))
    assert report["zone"] == {"name": "login", "key": ["user"], "match": {"path": "/login"}, "block_for": "5m", "exempt": ["u4"],
                              "limits": [sliding(4, "1m")], "mode": "shadow"}, report["zone"]
    assert report["together"] == {"blocked_keys": 1, "blocked_requests": 26, "blocked_share_of_keys": 0.5,
                                  "blocked_share_of_requests": 26 / 34} | report["together"]
    check_zone(place, log, read(place.path("zone")).decode(), {"u1": 26})


def test_a_report_that_is_written_anew_stays_its_owners(place):
    """A command of the administrator takes no file away from who reads it."""
    if os.geteuid() != 0:
        raise Skipped("only root has files of others to write")
    log, out = place.write("a.log", burst("u1", 3)), place.path("owned", "zone")
    os.mkdir(place.path("owned"), 0o755)
    os.chown(place.path("owned"), 65534, 65533)
    suggest_into = ("suggest", "--key", "user", "--window", "1m", "--blocked-keys", "0%", "--config", formats(place), "--output", out,
                    "--json", place.path("r"), log)
    place.good(*suggest_into)
    about = os.stat(out)
    assert (about.st_uid, about.st_gid) == (65534, 65533), about  # a new one is its directory's owner's
    os.chown(out, 1234, 4321)
    os.chmod(out, 0o640)
    place.good(*suggest_into)
    about = os.stat(out)
    assert (about.st_uid, about.st_gid, about.st_mode & 0o777) == (1234, 4321, 0o640), about


def refused(place, *words, code=USAGE):
    """What it said when it refused, and wrote nothing."""
    done = place.run("suggest", *words, "--json", place.path("no"), "--output", place.path("none"))
    assert done.code() == code, (words, done.code(), done.said())
    assert not os.path.exists(place.path("no")) and not os.path.exists(place.path("none"))
    return done.said()


def test_what_cannot_be_suggested_is_said(place):
    log = place.write("access.log", '192.0.2.1 - - [14/Nov/2023:22:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "x"\n')
    good = ("--key", "ip", log)
    assert "--window must be" in refused(place, "--window", "1m,1m", *good)
    assert "--window must be" in refused(place, "--window", "0s", *good)
    assert "--window must be" in refused(place, "--window", "1ms,2ms,3ms,4ms,5ms,6ms,7ms,8ms,9ms", *good)
    for share in ("120%", "1.5", "-1", "x", "%", "0.0000000001"):
        assert "--blocked-keys" in refused(place, f"--blocked-keys={share}", *good)
    assert "give --key" in refused(place, log)
    assert "--algorithm" in refused(place, "--algorithm", "gcra", *good)
    assert "no source provides the field \"ipp\"" in refused(place, "--key", "ipp", log)
    assert "no request has a key, of 1 lines" in refused(place, "--key", "ipp", log)
    assert "malformed" not in refused(place, "--key", "ipp", log)
    said = refused(place, "--key", "ip", "--format", "json", log)
    assert "no line became a request: 1 of 1 lines are malformed (" in said and "--format" in said, said
    assert "check --key" not in said and "not json 1" in said, said
    mixed = place.write("mixed.log", '{"time":1700000000,"user":"ann"}\n' * 2 + "bad\n" * 3)
    said = refused(place, "--key", "ip", "--format", "json", mixed)
    assert "no request has a key, of 5 lines" in said and "3 of 5 lines are malformed (" in said, said
    assert "the lines are read twice" in refused(place, "--key", "ip", "-")
    os.mkfifo(place.path("pipe"))
    assert f"{place.path('pipe')} gives them once" in refused(place, "--key", "ip", place.path("pipe"))
    assert "cannot open" in refused(place, "--key", "ip", place.path("none.log"), code=FAILED)
    assert "name the logs" in refused(place, "--key", "ip")
    assert "--memory" in refused(place, "--memory", "1KiB", *good, code=FAILED)
    spare = place.write("spare", "# ours\n192.0.2.1\noffice\n")
    said = refused(place, "--spare", spare, *good)
    assert f'{spare}:3: "office" is neither an address nor a network' in said, said
    said = refused(place, "--spare", place.write("spare", "192.0.2.1/24\n"), *good)
    assert f"{spare}:1: " in said and "for the network give 192.0.2.0/24" in said, said
    said = refused(place, "--spare", place.write("spare", "192.0.2.1\n"), "--key", "ip,path", log)
    assert f'{spare}:1: "192.0.2.1" is no key of ip|path: write the 2 values with | between them' in said, said
    assert "none.txt" in refused(place, "--spare", place.path("none.txt"), *good, code=FAILED)
    huge = place.write("huge.log", line(START_MS, "u", cost=2 ** 35))
    assert "no limit in 1m would do" in refused(place, "--key", "user", "--config", formats(place), huge)
    before = read(log)
    for option in ("--json", "--output"):
        done = place.run("suggest", *good, option, log)
        assert done.code() == USAGE and log in done.said() and read(log) == before, done.said()


if __name__ == "__main__":
    cases.main(globals())
