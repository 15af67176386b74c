#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Container engines cut lines of more than 16 KiB: where the parts fall apart, the last one passes for no line."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import lines_of, until
from support.traffic import sliding, zone

CUT = 16384


def outer(form, text, stream="stdout"):
    """A line as the engine writes it; one without a newline at its end is a part."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime())
    if form == "docker":
        return json.dumps({"log": text, "stream": stream, "time": at}) + "\n"
    return f"{at} {stream} {'F' if text.endswith(chr(10)) else 'P'} {text.rstrip(chr(10))}\n"


def access(ip, middle=""):
    """A line of an access log."""
    at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
    return f'{ip} - - [{at}] "GET /{middle} HTTP/1.1" 200 5 "-" "-"\n'


def cut_line():
    """A stranger's request whose bytes from the cut on look like a line about somebody else. @return its parts"""
    head = access("203.0.113.66")
    head = head[:head.index('"-"')]
    head += '"' + "b" * 9000 + '" "'
    line = head + "c" * (CUT - len(head)) + access("198.51.100.1").replace('"', "\\x22").rstrip("\n") + '"\n'
    return line[:CUT], line[CUT:]


def follow(place, form):
    """Starts a weir that follows the engine's log."""
    zones = [zone("site", [sliding(2, "1h")], key=["ip"], id=1)]
    log_format = {"type": "wrapped", "in": form, "message": "combined"}
    config = place.config(zones, [{"type": "file", "path": place.path("log"), "follow": True, "format": log_format}])
    return lambda: place.start("run", "--config", config, "--state", place.path("state"), "--decisions",
                               place.path("out"), "--summary", "json")


def blocked(place):
    """Who was blocked."""
    return [decision["key"][0] for decision in lines_of(place.path("out")) if decision["action"] == "block"]


def read_so_far(place, form, weir, number):
    """Waits until all that was written is read: a line behind it that makes a decision is."""
    who = f"192.0.2.{number}"
    place.append("log", outer(form, access(who), "stderr") * 3)
    until(lambda: who in blocked(place), f"{who} is blocked", running=weir)


def rotated_between_parts(place, form):
    place.write("log", "")
    weir = follow(place, form)()
    for number in range(4):
        first, last = cut_line()
        place.append("log", outer(form, first))
        read_so_far(place, form, weir, 2 * number + 1)
        if number > 0:
            os.replace(place.path("log.1"), place.path("log.2"))
        os.rename(place.path("log"), place.path("log.1"))
        place.append("log", outer(form, last))
        read_so_far(place, form, weir, 2 * number + 2)
    weir.stop()
    assert "203.0.113.66" in blocked(place) and "198.51.100.1" not in blocked(place), blocked(place)
    assert not weir.summary()["malformed"], weir.summary()


def killed_between_parts(place, form):
    place.write("log", "")
    start = follow(place, form)
    weir = start()
    for number in range(4):
        first, last = cut_line()
        place.append("log", outer(form, first))
        read_so_far(place, form, weir, 2 * number + 1)
        time.sleep(1.5)  # positions are saved each second; that one is not moved cannot be awaited
        weir.kill()
        weir = start()
        place.append("log", outer(form, last))
        read_so_far(place, form, weir, 2 * number + 2)
    weir.stop()
    assert "203.0.113.66" in blocked(place) and "198.51.100.1" not in blocked(place), blocked(place)


def test_docker_rotates_between_the_parts_of_a_line(place):
    rotated_between_parts(place, "docker")


def test_cri_rotates_between_the_parts_of_a_line(place):
    rotated_between_parts(place, "cri")


def test_weir_is_killed_between_the_parts_of_a_line_of_docker(place):
    killed_between_parts(place, "docker")


def test_weir_is_killed_between_the_parts_of_a_line_of_cri(place):
    killed_between_parts(place, "cri")


if __name__ == "__main__":
    cases.main(dict(globals()))
