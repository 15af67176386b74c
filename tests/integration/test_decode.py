#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir decode`: the messages of a log as JSON lines, all that is whole, beside a weir that runs."""

import json
import os
import random
import signal
import struct
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "conformance", "oracle")]

# pylint: disable=wrong-import-position
import follow
import json_out
from support import cases, frames as weir_frames, traffic
from support.place import lines_of, read, until
from support.traffic import burst, fixed, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2
PARTITIONS = 4


def zones():
    """Two keys, three zones, one of which is let go by `done`."""
    return [zone("site", [sliding(3, "1m"), fixed(20, "1h")], id=1),
            zone("paths", [sliding(5, "10s")], key=("user", "path"), id=2),
            zone("jobs", [{"algorithm": "queue", "length": 2, "hold": "1h", "done": {"status": ["404"]}}], id=3)]


def run(place, log, **more):
    """Follows a log to its end: (configuration's path, state's path, the run)."""
    config = place.config(more.pop("zones", zones()), [source(log, follow=False)], bus={"partitions": PARTITIONS},
                          archiver={"enabled": True}, **more)
    state = place.path("state")
    return config, state, place.good("run", "--config", config, "--state", state, "--decisions", place.path("out"),
                                     "--summary", "json")


def crowd(place, count=3000):
    """A log of many users."""
    return place.write("log", b"".join(traffic.crowd(random.Random(5), count, 40, step_ms=400)))


def decode(place, state, *options):
    """The objects that it prints."""
    return [json.loads(line) for line in place.good("decode", "--state", state, *options).out().splitlines()]


def records(path):
    """(place, header and body) of each record of a segment file."""
    data = read(path)
    at = 48 + 8 * struct.unpack_from("<I", data, 12)[0]
    while at < len(data):
        length = 48 + struct.unpack_from("<I", data, at + 20)[0]
        yield at, data[at:at + length]
        at += length


def segment(state, topic="events"):
    """The first file of a topic."""
    return os.path.join(state, "log", topic, f"{1:020}.log")


def test_what_it_prints_is_the_whole_log(place):
    config, state, done = run(place, crowd(place))
    frames = decode(place, state)
    with open(config, encoding="utf-8") as file:
        logs, results = follow.replay(json.load(file), [json.dumps(frame) for frame in frames])
    assert sorted(logs) == list(range(PARTITIONS))
    want = sorted(json_out.decision_line(name, verdict.decision)
                  for partition in results.values() for name, verdict in partition if verdict.decision)
    got = sorted(read(place.path("out")).splitlines(keepends=True))
    assert got == want and len(got) > 20, (len(got), len(want))
    for partition in range(PARTITIONS):
        own = [frame for frame in frames if frame["partition"] == partition]
        assert [frame["offset"] for frame in own] == list(range(len(own)))
        assert [frame["kind"] for frame in own[:2]] == ["policy", "events"]
        assert own == decode(place, state, "--partition", partition)
        assert own[2:] == decode(place, state, "--partition", partition, "--from", "2")
    assert done.summary()["events"] == 3000


def test_flat_lines_say_the_same(place):
    _, state, _ = run(place, crowd(place))
    frames, flat = decode(place, state), decode(place, state, "--flat")
    apart = []
    for frame in frames:
        if frame["kind"] == "policy":
            apart.append(frame)
            continue
        head = {name: value for name, value in frame.items() if name != "events"}
        apart += [dict(head, **event) for event in frame["events"]]
    assert flat == apart and len(flat) > 3000


def test_judged_frames_have_their_verdicts(place):
    _, state, done = run(place, crowd(place))
    counts, decisions = {}, lines_of(place.path("out"))
    judged = decode(place, state, "--topic", "judged", "--flat")
    for event in judged:
        assert event["kind"] == "judged" and event["judged_offset"] > 0
        for member in event["zones"]:
            if not member.get("done"):
                own = counts.setdefault(member["id"], {"pass": 0, "block": 0, "late": 0, "decided": 0})
                own[member["verdict"]] += 1
                own["late"] += member.get("late", False)
                own["decided"] += member.get("decided", False)
    for number, name in ((1, "site"), (2, "paths"), (3, "jobs")):
        want = done.summary()["zones"][name]
        decided = sum(one["action"] == "block" and one["zone"] == name and not one.get("freed") for one in decisions)
        assert counts[number] == {"pass": want["passed"], "block": want["blocked"], "late": want["late"],
                                  "decided": decided}, (name, counts[number], want)
        assert want["decisions"] == sum(one["zone"] == name for one in decisions)  # done records' among them
    assert any(member.get("done") for event in judged for member in event["zones"])


def test_every_topic_is_printed(place):
    _, state, _ = run(place, crowd(place))
    decisions = decode(place, state, "--topic", "decisions")
    assert sorted(json.dumps(line["decision"]) for line in decisions) == \
        sorted(json.dumps(line) for line in lines_of(place.path("out")))
    for line in decisions:
        assert line["topic"] == "weir.decisions"
        assert line["key"] == "|".join([line["decision"]["zone"], *line["decision"]["key"]]), line
    policies = decode(place, state, "--topic", "weir.policy")
    assert [policy["policy"] for policy in policies] == [1]
    assert [member["name"] for member in policies[0]["zones"]] == ["site", "paths", "jobs"]
    for topic in ("shadow", "deadletter"):
        assert decode(place, state, "--topic", topic) == []


def test_keys_are_printed_byte_for_byte(place):
    log = place.write("log", b"".join(b'{"time":1700000000000,"user":"%s"}\n' % user
                                      for user in (b"a|b\\\\c", b"caf\xc3\xa9", b"caf\xe9", b"\\u0001")))
    _, state, _ = run(place, log, zones=[zone("site", [sliding(3, "1m")])])
    keys = [(event.get("key"), event.get("key_hex")) for event in decode(place, state, "--flat")
            if event["kind"] == "events"]
    assert sorted(keys, key=str) == sorted([("a\\|b\\\\c", None), ("café", None), (None, "636166e9"), ("\x01", None)],
                                           key=str), keys


def test_a_weir_that_runs_is_not_disturbed(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(traffic.site(), [source(log, follow=True)], bus={"partitions": PARTITIONS})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--summary", "json")
    until(lambda: lines_of(place.path("out")), "a decision", running=weir)
    for turn in range(1, 20):
        users = [event["key"] for event in decode(place, place.path("state"), "--flat") if event["kind"] == "events"]
        assert users.count("ann") == 5, users
        place.append("log", burst(f"user-{turn}", 5))
        until(lambda: len(lines_of(place.path("out"))) > turn, "the next decision", running=weir)
    assert weir.stop() == DONE
    assert weir.summary()["events"] == 100


def test_what_is_damaged_is_said_and_the_rest_printed(place):
    _, state, _ = run(place, crowd(place))
    whole = decode(place, state)
    places = [at for at, _ in records(segment(state))]
    with open(segment(state), "r+b") as file:
        file.seek(places[6] + 60)
        byte = file.read(1)
        file.seek(places[6] + 60)
        file.write(bytes([byte[0] ^ 1]))
    done = place.run("decode", "--state", state)
    assert done.code() == FAILED
    assert f"bytes {places[6]} to {places[7]} are not messages" in done.said(), done.said()
    assert [json.loads(line) for line in done.out().splitlines()] == whole[:6] + whole[7:]


def test_one_frame_in_a_file_or_pipe(place):
    _, state, _ = run(place, crowd(place))
    whole = decode(place, state)
    _, record = list(records(segment(state)))[5]
    frame = record[48 + max(0, struct.unpack_from("<I", record, 16)[0] - 1):]
    want = {name: value for name, value in whole[5].items() if name not in ("topic", "partition", "offset")}
    path = place.write("frame", frame)
    assert json.loads(place.good("decode", path).out()) == want
    with open(path, "rb") as file:
        assert json.loads(place.good("decode", "-", stdin=file).out()) == want
    assert len(place.good("decode", "--flat", path).out().splitlines()) == len(want["events"])
    for number in (0, 2, 3, 7, 30, 60, len(frame) - 1):
        broken = place.write("broken", frame[:number] + bytes([frame[number] ^ 0x20]) + frame[number + 1:])
        done = place.run("decode", broken)
        assert done.code() == FAILED and broken in done.said() and not done.out(), (number, done.said())
    for cut in (b"", frame[:1], frame[:-1], frame + b"x", bytes(3 << 20)):
        done = place.run("decode", place.write("cut", cut))
        assert done.code() == FAILED and done.said().count("\n") == 1 and not done.out(), done.said()
    done = place.run("decode", place.path("none"))
    assert done.code() == FAILED and "No such file" in done.said()


def test_checks_are_shown_with_their_answers(place):
    happened = [{"key": b"ann", "time": 1000 + i, "cost": 1, "position": 7 + i, "zones": [(3, False)]} for i in range(2)]
    message = weir_frames.checks(9, bytes(range(16)), 4, 1 << 40, happened, [0, weir_frames.BLOCK])
    assert weir_frames.decode(message).verdicts == [0, weir_frames.BLOCK]
    out = json.loads(place.good("decode", place.write("checks", message)).out())
    assert (out["kind"], out["epoch"], out["sent"], out["policy"]) == ("checks", 1 << 40, 9, 4), out
    assert [event["zones"] for event in out["events"]] == [[{"id": 3, "verdict": word}] for word in ("pass", "block")]


def test_reservations_are_shown(place):
    happened = [{"key": b"ann", "time": 1000, "cost": 9, "position": 7, "zones": [(3, False)], "reserves_for": 60000},
                {"key": b"ann", "time": 1001, "cost": 4, "position": 8, "zones": [(3, True)], "settles": bytes(range(16))}]
    message = weir_frames.checks(9, bytes(range(16)), 4, 1 << 40, happened, [0, 0])
    assert [event.get("reserves_for") for event in weir_frames.decode(message).events] == [60000, None]
    out = json.loads(place.good("decode", place.write("checks", message)).out())
    assert out["events"][0]["reserves_for"] == 60000 and out["events"][1]["settles"] == bytes(range(16)).hex(), out


def test_a_message_is_one_line(place):
    for body, want in ((b'{\n "a": [1,\r\n 2]}\n', {"a": [1, 2]}), (b"no\njson\r", "no\njson\r"), (b"", ""),
                       (b'\xef\xbb\xbf{"a":1}', '\ufeff{"a":1}')):
        out = place.good("decode", place.write("command", weir_frames.control("command", 1, body))).out()
        assert out.count(b"\n") == 1 and b"\r" not in out, out
        assert json.loads(out)["command"] == want, out


def test_a_reader_may_leave(place):
    _, state, _ = run(place, crowd(place, 30000))
    with subprocess.Popen([place.weir, "decode", "--state", state, "--flat"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait() in (-signal.SIGPIPE, FAILED)
        assert not process.stderr.read()


def test_what_is_wrong_is_said(place):
    os.mkdir(place.path("empty"))
    for words, *options in (("no local log in", "--state", place.path("empty")),
                            ("no local log in", "--state", place.path("none")),
                            ("or name a --state directory or a file",),
                            ("give only one of", "--state", "a", "b"), ("give only one of", "--state", "a", "--config", "b"),
                            ('one of events, judged', "--state", "a", "--topic", "event"),
                            ("--partition must be a number", "--state", "a", "--partition", "one"),
                            ("--from must be a number", "--state", "a", "--from", "-1"),
                            ("unknown option --stat (did you mean --state?)", "--stat", "a"),
                            ("one file at a time", "a", "b")):
        done = place.run("decode", *options)
        assert done.code() == USAGE and words in done.said() and not done.out(), (options, done.said())
    assert "--topic" in place.good("decode", "--help").out().decode()
    _, state, _ = run(place, crowd(place, 100))
    done = place.run("decode", "--state", state, "--partition", str(PARTITIONS))
    assert done.code() == USAGE and "expected 0 to 3" in done.said(), done.said()


cases.main(globals())
