#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Container engines and journald cut long lines: where the parts fall apart, the last one passes for no line."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, forward, journal
from support.place import free_port, lines_of, until
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


def start(place, source):
    """A weir that counts what a source brings by its clients."""
    zones = [zone("site", [sliding(2, "1h")], key=["ip"], id=1)]
    weir = place.start("run", "--config", place.config(zones, [source]), "--state", place.path("state"), "--decisions",
                       place.path("out"), "--summary", "json")
    until(lambda: "following" in weir.said(), "it follows", running=weir)
    return weir


def of_docker(number, container="c1", **more):
    """The parts of a stranger's line as Docker's driver `fluentd` sends them."""
    first, last = cut_line()
    return [{"container_id": container, "container_name": "/web", "source": "stdout", "log": text.rstrip("\n"),
             "partial_message": "true", "partial_id": f"{container}{number}", "partial_ordinal": str(i + 1),
             "partial_last": "true" if i == 1 else "false", **more} for i, text in enumerate((first, last))]


def send(sender, name, *records):
    """Hands records over, each of this moment."""
    entries = [(forward.event_time(time.time()), record) for record in records]
    sender.send_and_wait(forward.messages("docker", entries, name)["forward"], name)


def test_docker_sends_parts_to_a_forward_source(place):
    port = free_port()
    weir = start(place, {"type": "forward", "name": "apps", "listen": f"tcp://127.0.0.1:{port}",
                         "format": {"type": "json", "message": "combined"}})
    with forward.Sender(("127.0.0.1", port)) as sender:
        for number in range(4):
            one, other = of_docker(number), of_docker(number, "c2")
            send(sender, f"first{number}", one[0], other[0])
            send(sender, f"last{number}", other[1], one[1])
            send(sender, f"stray{number}", of_docker(100 + number)[1])
        send(sender, "other", *[{"container_id": "c1", "source": "stdout", "log": access("192.0.2.1")}] * 3)
        until(lambda: "192.0.2.1" in blocked(place), "what came behind is read", running=weir)
    weir.stop()
    assert sorted(set(blocked(place))) == ["192.0.2.1", "203.0.113.66"], blocked(place)
    assert weir.summary()["zones"]["site"]["matched"] == 11, weir.summary()
    assert weir.summary()["malformed"] == {"line too long": 4}, weir.summary()


def test_journald_cuts_lines_and_weir_is_killed_between_their_parts(place):
    if not journal.available():
        raise cases.Skipped(f"there is no {journal.REMOTE}")
    source = {"type": "journal", "directory": place.path("journal"), "format": "combined"}
    with journal.Journal(place.path("journal", "system.journal")) as writer:
        writer.write(journal.entry(0, access("192.0.2.200").rstrip("\n")))
        weir = start(place, source)
        for number in range(4):
            first, last = (text.rstrip("\n") for text in cut_line())
            at = 10 * number + 1
            writer.write(journal.entry(at, first, _STREAM_ID="s", _LINE_BREAK="line-max"))
            for i in range(3):
                writer.write(journal.entry(at + 1 + i, access(f"192.0.2.{number}").rstrip("\n"), _STREAM_ID="t"))
            until(lambda: f"192.0.2.{number}" in blocked(place), "the first part is read", running=weir)  # pylint: disable=cell-var-from-loop
            time.sleep(1.5)  # positions are saved each second; that one is not moved cannot be awaited
            weir.kill()
            weir = start(place, source)
            writer.write(journal.entry(at + 4, last, _STREAM_ID="s"))
            for i in range(3):
                writer.write(journal.entry(at + 5 + i, access(f"192.0.2.{100 + number}").rstrip("\n"), _STREAM_ID="t"))
            until(lambda: f"192.0.2.{100 + number}" in blocked(place), "the last is", running=weir)  # pylint: disable=cell-var-from-loop
        weir.stop()
    assert "203.0.113.66" in blocked(place) and "198.51.100.1" not in blocked(place), blocked(place)


if __name__ == "__main__":
    cases.main(dict(globals()))
