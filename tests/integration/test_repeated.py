#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A line that stands for several, as rsyslog writes it, counts as those that it stands for."""

import json
import os
import random
import sys
from datetime import datetime, timezone

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import read
from support.run_local import Run
from support.traffic import sliding, zone

BEGIN_S = 1715940000
SEEDS = range(4)


def failed(user, address, at_s, times):
    """What sshd's log has of so many failed logins, one by one and repeated."""
    head = f"{datetime.fromtimestamp(at_s, timezone.utc).isoformat()} h sshd[7]: "
    what = f"Failed password for {user} from {address} port 4002 ssh2"
    alone = f"{head}{what}\n"
    return alone * times, alone if times == 1 else f"{head}message repeated {times} times: [ {what}]\n"


def logs(seed, most):
    """A log one by one, and the same as rsyslog shortens it."""
    rng = random.Random(seed)
    at_s, all_of_them, shortened = BEGIN_S, [], []
    for _ in range(300):
        at_s += rng.choice((0, 0, 1, 7, 40, 300))
        user, address = rng.choice(("root", "ann")), f"192.0.2.{rng.randrange(6)}"
        for text, line in zip((all_of_them, shortened), failed(user, address, at_s, rng.choice((1, 1, 2, 5, rng.randint(1, most))))):
            text.append(line)
    return "".join(all_of_them), "".join(shortened)


def zones(seed, most):
    """One of each kind, with limits that are soon reached, by address, user and both."""
    rng = random.Random(seed)
    rate = rng.choice((1, 3, 6, 40))
    kinds = [sliding(rate, "5m"), {"algorithm": "fixed_window", "rate": rate, "window": "5m"},
             {"algorithm": "token_bucket", "rate": rate, "window": "5m", "burst": rate + 2},
             {"algorithm": "gcra", "rate": rate, "window": "5m", "burst": rate}]
    made = []
    for i, limit in enumerate(kinds):
        more = {"block_for": rng.choice(("0s", "10m"))}
        if most <= 32:
            more["count"] = rng.choice(("passed", "all"))
        made.append(zone(f"z{i}", [limit, sliding(100, "1h")], key=rng.choice((["ip"], ["user"], ["user", "ip"])), **more))
    return made


def decided(place, text, made, *options):
    """What is decided, and how often each was counted, but for the numbers of lines."""
    log, config = place.write("a.log", text), place.path("weir.json")
    place.write("weir.json", json.dumps({"zones": made, "sources": [{"type": "file", "path": log, "format": "sshd"}]}))
    place.good("run", "--once", "--config", config, "--quiet", "--decisions", place.path("out"), "--judged",
               place.path("judged"), *options)
    found = [json.loads(line) for line in read(place.path("out")).splitlines()]
    costs = {}
    for line in map(json.loads, read(place.path("judged")).splitlines()):
        name = (line["zone"], *line["key"], line["at"], line["verdict"])
        costs[name] = costs.get(name, 0) + line["cost"]
    return sorted(json.dumps({**each, "id": 0}) for each in found), costs


def test_as_if_each_had_a_line(place):
    for seed in SEEDS:
        for most in (32, 2000):
            one_by_one, shortened = logs(seed, most)
            made = zones(seed, most)
            expected = decided(place, one_by_one, made)
            assert expected[0], "nothing was decided: the test says nothing"
            assert decided(place, shortened, made) == expected, (seed, most, made)
            lines = shortened.splitlines(keepends=True)
            assert decided(place, "".join(reversed(lines)), made, "--sort")[1] == expected[1], (seed, most)


def test_five_guesses_and_their_repetition_are_blocked(place):
    text = "".join(failed("root", "192.0.2.7", BEGIN_S + 10 * i, times)[1] for i, times in enumerate((1, 5)))
    (decision,), costs = decided(place, text, [zone("ssh", [sliding(5, "10m")], key=["ip"], block_for="1h")])
    assert json.loads(decision)["count"] == 5 and json.loads(decision)["at"] == (BEGIN_S + 10) * 1000, decision
    assert sum(costs.values()) == 6, costs


def test_a_million_are_few_events(place):
    text = failed("root", "192.0.2.7", BEGIN_S, 2)[1].replace("repeated 2 times", "repeated 999999999 times")
    (decision,), costs = decided(place, text, [zone("ssh", [sliding(1000, "10m")], key=["ip"])])
    assert json.loads(decision)["count"] == 1000 and sum(costs.values()) == 1000000, (decision, costs)
    assert len(read(place.path("judged")).splitlines()) < 50


def test_with_many_zones_one_event_is_for_all(place):
    made = [zone(f"z{i}", [sliding(9, "10m")], key=["ip"]) for i in range(400)]
    _, costs = decided(place, failed("root", "192.0.2.7", BEGIN_S, 3)[1], made)
    assert len(costs) == 400 and set(costs.values()) == {3}, costs
    assert len(read(place.path("judged")).splitlines()) == 400, "more than a frame may have of a record"


def test_killed_in_between_they_count_once(place):
    made = [zone("ssh", [sliding(20, "1h")], key=["ip"], id=1)]
    run = Run(place, zones=made, sources=[{"type": "file", "path": place.write("auth.log", ""), "format": "sshd", "follow": True}])
    run.start()
    now_s = int(datetime.now(timezone.utc).timestamp())
    for i in range(4):
        place.append("auth.log", failed("root", "192.0.2.7", now_s, 5)[1])
        if i % 2:
            run.weir.kill()
            run.start()
    run.stop()
    (bucket,) = place.good("state", "--state", run.state, "--zone", "ssh", "--key", "192.0.2.7").objects()
    assert sum(count for _, count in bucket["limits"][0]["times"]) == 20, bucket
    run.start()
    place.append("auth.log", failed("root", "192.0.2.7", now_s, 2)[1])
    decision = run.published()
    run.stop()
    (answer,) = place.run("explain", decision["id"], "--state", run.state, "--json").objects()
    assert answer["equal"] and [event["found"] for event in answer["events"]] == ["position"] * 21, answer
    assert len({event["line"] for event in answer["events"]}) == 2, answer


if __name__ == "__main__":
    cases.main(globals())
