#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seed's four tests of its rate limiters, run on a real Redis, and the same requests in `weir backtest`.

A client asks until 150 of its requests got through, of which 100 may in ten seconds: by the sorted set, by the gate of
each caller, by the sorted set again, by the gate of new callers. Each test goes on when Redis lets it, so the scripts
make the log that weir then judges. Verdicts are equal where the scripts are sound. Where they are not, a script that
differs from the seed's by one word is equal, so that word is the reason.

The picture of both, and the table of differences, are those of deploy/weir/backtest/README.md; WEIR_WRITE_PAGE=1 rewrites
the picture and prints the table. WEIR_SEED_LIVE=1 lets the four tests run on Redis' own clock instead, for a minute, and
prints what differs.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from seeds import harness, picture
from seeds.exact import SECOND, Call, queue, sliding, token_bucket, uniform
from seeds.harness import same
from seeds.redis import redis
from seeds.sequences import START_MS
from seeds.servers import HERE
from seeds.weir import RUN_TIMEOUT_S, Case

PAGE = harness.ROOT / "deploy/weir/backtest"
PATH = "/tigerfeeding"
LOOPS, ALLOWED, SPAN = 150, 100, 10 * SECOND
GATE, SET, STREAM = "TTL gate", "sorted set", "stream"
TESTS = (SET, GATE, SET, GATE)
NEW_CALLERS = 900_000_000  # the number of the first caller of the fourth test
LATENCY_MS = (20, 40)  # of a request
LENGTH, STEP_MS = 10, 125  # the stream's entries, and how long its processor takes for one
WORDS = ("block", "pass")
# What is tried on the whole log: name, key, limit.
STRATEGIES = (("uniform", "user", uniform(SPAN)), ("sliding window", "path", sliding(ALLOWED, SPAN)),
              ("token bucket", "path", token_bucket(ALLOWED, SPAN, 30)), ("queue", "path", queue(LENGTH, 86400 * SECOND)))
SCRIPT_OF = {"uniform": GATE, "sliding window": SET, "queue": STREAM}


@dataclass(frozen=True)
class Request:
    """One of the log; test: 0 to 3; done: it is the processor's, which has finished the oldest entry."""
    at: int
    test: int = -1
    user: str = ""
    verdict: str = ""  # of the script that the test is of
    done: bool = False

    @property
    def in_tenth(self):
        """Whether the seed writes its microseconds with fewer than six digits."""
        return self.at % SECOND < 100


@dataclass
class Script:
    """One of the seed's, with keys of its own, and what may be put right in it; takes: which requests."""
    kind: str
    name: str
    right: tuple = None
    takes: object = None

    def load(self, seed):
        """Makes its number in Redis."""
        file = {GATE: "uniform_gate.lua", SET: "sorted_set_window.lua", STREAM: "stream_queue.lua"}[self.kind]
        text = (HERE / file).read_text()
        if self.right:
            assert text.count(self.right[0]) == 1, text
            text = text.replace(*self.right)
        self.number = seed.call("SCRIPT", "LOAD", text)  # pylint: disable=attribute-defined-outside-init

    def words(self, user):
        """The command that asks it."""
        more = {GATE: (f"{self.name}:{user}", SPAN), SET: (self.name, SPAN * 1000, ALLOWED),
                STREAM: (self.name, LENGTH, "request_details", user)}[self.kind]
        return ["EVALSHA", self.number, 1, *more]


PTTL = ("'ttl'", "'pttl'")
PADDED = ("'' .. t[1] .. t[2]", "t[1] .. string.format('%06d', t[2])")


def run_tests(seed, now):
    """The seed's four tests: each request, as the script of its test judged it. @param now  when the next one comes"""
    scripts, seen = {SET: Script(SET, "z"), GATE: Script(GATE, "rl")}, []
    seed.call("FLUSHALL")
    for script in scripts.values():
        script.load(seed)
    for test, kind in enumerate(TESTS):
        through = 0
        while through < LOOPS:
            user = f"user{through % ALLOWED + (NEW_CALLERS if test == 3 else 0)}"
            at_ms = now()
            verdict = WORDS[seed.call(*scripts[kind].words(user))]
            seen.append(Request(at_ms, test, user, verdict))
            through += verdict == "pass"
    return seen


def steps():
    """The times of the client's requests: whole ms, no two requests in one."""
    chance, at_ms = random.Random(1), START_MS
    while True:
        yield at_ms
        at_ms += chance.randint(*LATENCY_MS)


def own(kind):
    """Which requests the tests of a script have."""
    return lambda one: TESTS[one.test] == kind


SCRIPTS = {script.name: script for script in (
    Script(GATE, "gate"), Script(GATE, "gate right", PTTL), Script(GATE, "gate right, own", PTTL, own(GATE)),
    Script(SET, "set"), Script(SET, "set right", PADDED), Script(SET, "set right, own", PADDED, own(SET)),
    Script(SET, "set without tenths", None, lambda one: not one.in_tenth), Script(STREAM, "stream"))}


def ask_all(seed, requests):
    """The requests with what the stream's processor finishes in between, and by script all of its verdicts."""
    log, verdicts, due_ms = [], {name: [] for name in SCRIPTS}, START_MS + STEP_MS
    seed.call("FLUSHALL")
    for script in SCRIPTS.values():
        script.load(seed)
    for request in requests:
        for due_ms in range(due_ms, request.at + 1, STEP_MS):  # what it does depends on no clock
            entries = seed.call("XRANGE", "stream", "-", "+", "COUNT", 1)
            if entries and seed.call("XDEL", "stream", entries[0][0]):
                log.append(Request(due_ms, done=True))
        due_ms = START_MS + ((request.at - START_MS) // STEP_MS + 1) * STEP_MS
        log.append(request)
        seed.set_clock(request.at * 1000)
        asked = [script for script in SCRIPTS.values() if script.takes is None or script.takes(request)]
        for script, answer in zip(asked, seed.together([script.words(request.user) for script in asked])):
            verdicts[script.name].append(WORDS[answer])
    return log, verdicts


def calls(requests, key):
    """As weir is asked, by a limit that counts by caller, or all together."""
    return [Call(one.at, one.user if key == "user" else PATH, done=one.done) for one in requests]


def differing(requests, seen, exact):
    """Which requests two rules judge in different ways, for reading."""
    return [f"{(one.at - requests[0].at) / 1000:.3f} s, {one.user}, {ours}, exact {theirs}"
            for one, ours, theirs in zip(requests, seen, exact) if ours != theirs]


@dataclass
class All:
    """What is made once for all tests."""
    requests: list
    log: list
    scripts: dict  # verdicts by a script's name
    exact: dict    # weir's, by a strategy's name


MADE = []


def made(weir, seed):
    """The log, and everybody's verdicts on it."""
    if not MADE:
        clock = steps()

        def now():
            at_ms = next(clock)
            seed.set_clock(at_ms * 1000)
            return at_ms

        requests = run_tests(seed, now)
        log, verdicts = ask_all(seed, requests)
        exact = weir.verdicts(*(Case(limit, calls(log if name == "queue" else requests, key)) for name, key, limit in STRATEGIES))
        MADE.append(All(requests, log, verdicts, dict(zip((name for name, *_ in STRATEGIES), exact))))
    return MADE[0]


# ---- weir backtest ------------------------------------------------------------------------------


def line(one):
    """One of the log."""
    return json.dumps({"ts": one.at / 1000, "path": PATH, "op": "done" if one.done else "request",
                       **({"user": one.user} if one.user else {})}) + "\n"


def zone(key, limit):
    """The zone of a policy, times in whose limit are ms."""
    written = {name: f"{value}ms" if name in ("window", "interval", "hold") else value
               for name, value in limit.items() if value is not False}
    if limit["algorithm"] == "queue":
        written["done"] = {"op": ["done"]}
    return {"name": "tigerfeeding", "key": [key], "match": {"op": ["request"]}, "limits": [written]}


def backtest(weir, log):
    """The report of all strategies on a log."""
    with tempfile.TemporaryDirectory(prefix="weir-seed-") as name:
        folder = Path(name)
        (folder / "requests.log").write_text("".join(map(line, log)))
        source = {"type": "file", "path": str(folder / "requests.log"),
                  "format": {"type": "json", "time": "ts", "fields": {each: each for each in ("path", "op", "user")}}}
        words = []
        for policy, key, limit in STRATEGIES:
            (folder / f"{policy}.json").write_text(json.dumps({"zones": [zone(key, limit)], "sources": [source]}))
            words += ["--config", folder / f"{policy}.json"]
        done = subprocess.run([weir.program, "backtest", *words, "--json", folder / "report", "--quiet"], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        return json.loads((folder / "report").read_text())


def passed(requests, verdicts, bin_ms):
    """How many passed, by bin since the log's beginning."""
    counts = [0] * ((requests[-1].at - START_MS) // bin_ms + 1)
    for one, verdict in zip(requests, verdicts):
        counts[(one.at - START_MS) // bin_ms] += verdict == "pass"
    return counts


def passed_in(report):
    """By strategy of a backtest's report, how many passed by bin since the log's beginning."""
    over_time = report["over_time"]
    return {one["policy"]: {(at_ms - START_MS) // over_time["bin"]: count for at_ms, count in zip(over_time["at"], one["passed"])}
            for one in over_time["series"]}


# ---- what it shows ------------------------------------------------------------------------------


def test_each_test_of_the_seed_by_its_own_script(weir, seed):
    """Its own requests alone, as the seed ran them: where the script's word is right, weir's verdicts."""
    all_made = made(weir, seed)
    for kind, key, limit, right in ((SET, "path", sliding(ALLOWED, SPAN), "set right, own"),
                                    (GATE, "user", uniform(SPAN), "gate right, own")):
        requests = [one for one in all_made.requests if own(kind)(one)]
        exact = weir.verdict(limit, calls(requests, key))
        same(all_made.scripts[right], exact, right)
        differ = differing(requests, [one.verdict for one in requests], exact)
        print(f"   {kind}: {len(differ)} of the {len(requests)} requests of its own tests differ: {'; '.join(differ[:3])}")
        assert differ, "the flaw shows"


def test_every_request_by_every_strategy(weir, seed):
    """The requests of all four tests: equal to weir where the script is sound, as the stream's is."""
    all_made = made(weir, seed)
    for name, strategy in (("gate right", "uniform"), ("set right", "sliding window"), ("stream", "queue")):
        same(all_made.scripts[name], all_made.exact[strategy], name)


def test_the_gate_differs_by_the_rounding_of_ttl_alone(weir, seed):
    """It is weir's uniform of an interval 499 ms shorter."""
    all_made = made(weir, seed)
    same(all_made.scripts["gate"], weir.verdict(uniform(SPAN - 499), calls(all_made.requests, "user")), "499 ms less")
    assert all_made.scripts["gate"] != all_made.exact["uniform"]


def test_the_sorted_set_differs_by_the_first_tenths_of_seconds_alone(weir, seed):
    """Of the other requests, nothing differs; with them, nothing does before the first of that tenth."""
    all_made = made(weir, seed)
    kept = [one for one in all_made.requests if not one.in_tenth]
    same(all_made.scripts["set without tenths"], weir.verdict(sliding(ALLOWED, SPAN), calls(kept, "path")), "without them")
    first = next(i for i, pair in enumerate(zip(all_made.scripts["set"], all_made.exact["sliding window"])) if pair[0] != pair[1])
    assert any(one.in_tenth for one in all_made.requests[:first + 1]), first


def test_the_page_shows_this(weir, seed):
    """What weir backtest counts over time are the verdicts, and the page's picture and table are of them."""
    if weir.program is None:
        return
    all_made = made(weir, seed)
    report = backtest(weir, all_made.log)
    bin_ms, bins = report["over_time"]["bin"], passed_in(report)
    assert SECOND % bin_ms == 0, bin_ms
    for name, verdicts in all_made.exact.items():
        want = passed(all_made.requests, verdicts, bin_ms)
        same([bins[name].get(place, 0) for place in range(max(len(want), 1 + max(bins[name])))], want, f"bins of {name}")
    seconds = (all_made.requests[-1].at - START_MS) // SECOND + 1
    own_bins = {name: [sum(counts.get(place, 0) for place in range(second * SECOND // bin_ms, (second + 1) * SECOND // bin_ms))
                       for second in range(seconds)] for name, counts in bins.items()}
    names = {"uniform": "gate", "sliding window": "set", "queue": "stream"}
    on_redis = {SCRIPT_OF[name]: (name, passed(all_made.requests, all_made.scripts[script], SECOND))
                for name, script in names.items()}
    begins = [next((one.at - START_MS) / SECOND for one in all_made.requests if one.test == test) for test in range(len(TESTS))]
    drawn = picture.draw([("weir backtest", {name: (name, own_bins[name]) for name, *_ in STRATEGIES}),
                          ("the same requests, by the scripts on Redis", on_redis)],
                         [(f"test {test + 1}: {kind}", begins[test]) for test, kind in enumerate(TESTS)], seconds)
    rows = [f"| {SCRIPT_OF[name]} | `{STRATEGIES[place][2]['algorithm']}` | "
            f"{len(differing(all_made.requests, all_made.scripts[script], all_made.exact[name]))} of {len(all_made.requests)} | "
            for name, script in names.items() for place in range(len(STRATEGIES)) if STRATEGIES[place][0] == name]
    if os.environ.get("WEIR_WRITE_PAGE"):
        (PAGE / "backtest.svg").write_text(drawn)
        print("\n".join(rows))
    assert (PAGE / "backtest.svg").read_text() == drawn, "backtest.svg is not of these numbers: WEIR_WRITE_PAGE=1 rewrites it"
    page = (PAGE / "README.md").read_text()
    same([row for row in rows if row not in page], [], "rows that README.md lacks")


def live(weir, seed):
    """The four tests on Redis' own clock: what differs."""
    clock, begin_s = steps(), time.time()

    def now():
        time.sleep(max(0, begin_s + (next(clock) - START_MS) / 1000 - time.time()))
        return int(time.time() * 1000)

    requests = run_tests(seed, now)
    for kind, key, limit in ((SET, "path", sliding(ALLOWED, SPAN)), (GATE, "user", uniform(SPAN))):
        own_ones = [one for one in requests if own(kind)(one)]
        differ = differing(own_ones, [one.verdict for one in own_ones], weir.verdict(limit, calls(own_ones, key)))
        print(f"   {kind}: {len(differ)} of {len(own_ones)} requests differ: {'; '.join(differ[:5])}")


if __name__ == "__main__":
    if os.environ.get("WEIR_SEED_LIVE"):
        harness.TEST_TIMEOUT_S = 240
        sys.exit(harness.main({"test_live": live}, lambda: redis(clock=False)))
    sys.exit(harness.main(globals(), redis))
