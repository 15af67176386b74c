#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Local times that are read as another zone's: weir says so while it follows, in doctor and in validate."""

import calendar
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.faketime import stepped
from support.place import free_port, until
from support.traffic import sliding, source, zone

DONE, WRONG = 0, 1
HOUR = 3600
LEAST_S = 60  # three windows of 20 s must agree
ZONES = [zone("ssh", [sliding(3, "10m")], key=("ip",), match={"event": ["Failed"]}, block_for="1h", id=1)]


def failed(offset_s, address="192.0.2.1"):
    """A failed login, as rsyslog writes it on a machine so far from UTC."""
    return time.strftime("%b %e %H:%M:%S", time.gmtime(time.time() + offset_s)) + \
        f" h sshd[1]: Failed password for root from {address} port 1 ssh2\n"


class Followed:
    """A weir that follows a log of its own."""

    def __init__(self, place, name, before="", form="sshd"):
        self.place, self.name, self.port = place, name, free_port()
        self.log = place.write(name + ".log", before)
        self.config = place.config(ZONES, [source(self.log, format=form)], name=name + ".json",
                                   listen={"http": f"127.0.0.1:{self.port}"})
        self.weir = place.start("run", "--config", self.config, "--state", place.path(name), "--decisions",
                                place.path(name + ".out"), "--summary", "json")
        until(lambda: metrics.scrape(self.port), "its page", running=self.weir)

    def behind(self):
        """By how much it says that its source is behind."""
        return metrics.scrape(self.port).value("weir_source_behind_clock_seconds", source="sources[0]")


def test_a_log_of_another_zone_is_said_and_a_backlog_is_not(place):
    old = "".join(failed(-5 * HOUR + second) for second in range(600))
    west, east = Followed(place, "west"), Followed(place, "east")
    right, backlog = Followed(place, "right"), Followed(place, "backlog", before=old)
    began, second = time.monotonic(), 0
    while time.monotonic() - began < LEAST_S + 15:  # these are what is tested: a line each half second, as time goes by
        place.append("west.log", failed(-5 * HOUR))
        place.append("east.log", failed(2 * HOUR))
        place.append("right.log", failed(-1))
        place.append("backlog.log", "".join(failed(-4 * HOUR + second + more) for more in range(60)))
        second += 60
        if time.monotonic() - began < LEAST_S - 25:
            assert west.behind() == 0 and east.behind() == 0
        time.sleep(0.5)
    until(lambda: west.behind() != 0 and east.behind() != 0, "both are found", running=west.weir)
    assert 5 * HOUR <= west.behind() <= 5 * HOUR + 25, west.behind()
    assert -2 * HOUR <= east.behind() <= -2 * HOUR + 25, east.behind()
    assert right.behind() == 0 and backlog.behind() == 0, (right.behind(), backlog.behind())
    (said,) = [line for line in west.weir.said().splitlines() if " ERROR " in line and "runbook: clock" in line]
    for words in ("sources[0]", west.log, "5 h behind the clock", "nobody is blocked", '"time_zone": "-05:00"',
                  "(runbook: clock)"):
        assert words in said, (words, said)
    (said,) = [line for line in east.weir.said().splitlines() if " WARN" in line and "runbook: clock" in line]
    assert "2 h ahead of the clock" in said and '"time_zone": "+02:00"' in said, said
    assert "runbook: clock" not in right.weir.said(), right.weir.said()
    assert "written just now" not in backlog.weir.said(), backlog.weir.said()
    assert metrics.get(west.port, "/readyz")[0] == 200
    page = metrics.scrape(west.port)
    assert page.value("weir_limiter_decisions_over_total") == 1 and "1 block was over as it was made" in west.weir.said()
    assert metrics.scrape(right.port).value("weir_limiter_decisions_over_total") == 0
    place.append("west.log", failed(-5 * HOUR))
    told = place.run("doctor", "--config", west.config, "--state", place.path("west"), "--json")
    found = [finding["what"] for finding in json.loads(told.out())["findings"] if finding["runbook"] == "clock"]
    assert told.code() == WRONG and any("300 min behind the clock" in what for what in found), found
    assert any("5 h behind the file's last change" in what for what in found), found
    for each in (west, east, right, backlog):
        assert each.weir.stop() == DONE, each.weir.said()


def test_a_log_that_is_right_again_is_said(place):
    west = Followed(place, "west")

    def behind_after(offset_s):
        place.append("west.log", failed(offset_s))
        time.sleep(0.5)  # a log is written as time goes by
        return west.behind()

    until(lambda: behind_after(-3 * HOUR) != 0, "it is found", patience_s=3 * LEAST_S, running=west.weir)
    until(lambda: behind_after(0) == 0, "it is right", patience_s=3 * LEAST_S, running=west.weir)
    assert "its times are those of the clock" in west.weir.said(), west.weir.said()
    assert west.weir.stop() == DONE, west.weir.said()


def test_a_doubled_hour_is_said_once(place):
    """Lines of the second time count as the first: no block can come of it, and only these words tell."""
    for name, hour, told in (("second", "06:30:00", 1), ("after", "07:30:00", 0)):
        start = calendar.timegm(time.strptime("2026-11-01 " + hour, "%Y-%m-%d %H:%M:%S"))
        log = place.write(name + ".log", "")
        form = {"type": "sshd", "time_zone": "America/New_York"}
        config = place.config(ZONES, [source(log, format=form)], name=name + ".json")
        weir = place.start("run", "--config", config, "--state", place.path(name), "--decisions", place.path(name + ".out"),
                           env={**os.environ, **stepped(int(start - time.time()))})
        until(lambda: "following" in weir.said(), "follows", running=weir)  # pylint: disable=cell-var-from-loop
        local = time.strftime("%b %e %H", time.gmtime(start - 5 * HOUR))
        for second in range(20):
            place.append(name + ".log", f"{local}:30:{second:02} h sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2\n")
            time.sleep(0.1)  # these are what is tested: lines as they are written
        if told:
            def said_after_one_more():
                # pylint: disable=cell-var-from-loop
                place.append(name + ".log", f"{local}:31:00 h sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2\n")
                time.sleep(0.1)
                return "exist twice" in weir.said()
            until(said_after_one_more, "the doubled hour", running=weir)
        assert weir.stop() == DONE, weir.said()
        lines = [line for line in weir.said().splitlines() if "exist twice" in line]
        assert len(lines) == told and all("WARNING" in line and log in line for line in lines), weir.said()


def test_validate_compares_the_newest_line_with_the_file(place):
    at = calendar.timegm((2024, 6, 1, 5, 0, 0))
    log = place.write("auth.log", "Jun  1 05:00:00 h sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2\n" * 3)

    def warned(changed_s, form="sshd"):
        os.utime(log, (changed_s, changed_s))
        config = place.config(ZONES, [source(log, format=form)])
        told = place.run("validate", "--config", config)
        return [line for line in (told.out().decode() + told.said()).splitlines() if "last change" in line]

    (said,) = warned(at + 5 * HOUR + 1)
    assert "5 h behind the file's last change" in said and '"time_zone": "-05:00"' in said, said
    assert not warned(at + 1) and not warned(at + 5 * HOUR + 400)
    assert not warned(at + 5 * HOUR + 1, {"type": "sshd", "time_zone": "-05:00"})


if __name__ == "__main__":
    cases.main(globals())
