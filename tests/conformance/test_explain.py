#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir explain` against an oracle that reads the files itself: the same events, the same lines, for every decision.

usage: test_explain.py [--weir PATH] [--cases N] [--seed S] [--data DIR]

Three kinds of logs: random ones with random policies of every algorithm, the real ones of ../shared/data (or WEIR_DATA),
and one of `weir generate`, read once and followed.

WEIR_EXPLAIN_LINES: how many lines of each real log (default 2000; 0: all), and WEIR_EXPLAIN_GENERATED: how many are
generated (default 20000). The large run is WEIR_EXPLAIN_LINES=0 WEIR_EXPLAIN_GENERATED=5000000; of more than a thousand
decisions of the generated log, a thousand are explained.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time

import compare
import random_cases
import test_oracle_data

import explained  # pylint: disable=wrong-import-order
from policy import zones_of  # pylint: disable=wrong-import-order

MOST_AT_ONCE, SAMPLE = 50, 1000  # a level may rest on all events of a day: answers to many take much memory
PARTITIONS, SHOWN_MOST = 4, 10_000


class Differs(Exception):
    """What weir and the oracle have in common ends here."""


def run(weir, *words, codes=(0,)):
    """Runs weir: its standard output."""
    done = subprocess.run([weir, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=3600)
    said = done.stderr.decode(errors="replace")
    if done.returncode not in codes and not random_cases.ended_well(done.returncode, said):
        raise Differs(f"weir {' '.join(words)[:200]} exited with status {done.returncode}: {said[-1000:]}")
    return done.stdout


def decided(*paths):
    """The decisions of files, each with how many of its zone, key and time came before it."""
    for path in paths:
        seen = {}
        with open(path, encoding="utf-8") as file:
            for text in file:
                decision = json.loads(text)
                place = (decision["zone"], tuple(decision["key"]), decision["at"])
                seen[place] = seen.get(place, -1) + 1
                yield decision, place, seen[place]


def explain(weir, state, wanted):
    """The answers for decisions, and the seconds that one call took for each of them."""
    began, answers = time.monotonic(), []
    for at in range(0, len(wanted), MOST_AT_ONCE):
        ids = [decision["id"] for decision, _, _ in wanted[at:at + MOST_AT_ONCE]]
        out = run(weir, "explain", *ids, "--state", state, "--json", codes=(0, 1))
        answers += [json.loads(text) for text in out.splitlines()]
    return answers, time.monotonic() - began


def check(wanted, answers, why):
    """Holds answers against the oracle. @return how many events, with their lines, were compared"""
    compared = 0
    if len(answers) != len(wanted):
        raise Differs(f"{len(answers)} answers to {len(wanted)} questions")
    for (decision, place, number), answer in zip(wanted, answers):
        lines = why[place][number]
        want = [(os.fsdecode(line.path), line.offset, explained.shown(line.text)) for line in lines]
        got = [(event["file"], event["offset"], event["line"]) for event in answer["events"]]
        left_out = len(want) - len(got)
        if left_out > 0 and len(got) >= SHOWN_MOST:
            want, begin = want[left_out:], f"{left_out} earlier counted events are left out"
            answer["missing"] = [one for one in answer["missing"] if not one.removeprefix("Up to ").startswith(begin)]
        if answer["decision"] != decision or not answer["equal"] or answer["missing"]:
            raise Differs(f"{decision['id']} is not explained: {json.dumps(answer)[:1500]}")
        if got != want:
            raise Differs(f"{decision['id']} {decision}: weir shows {len(got)} events\n{got[:5]}\n"
                          f"the oracle has {len(want)}\n{want[:5]}")
        if not answer["events"][-1]["decided"] or any(event["decided"] for event in answer["events"][:-1]):
            raise Differs(f"{decision['id']}: the last event alone decided: {answer['events']}")
        compared += len(got)
    return compared


def oracle(config, wanted_line=None):
    """Why each decision was made, by the oracle."""
    model = explained.Explained(zones_of(config))
    for record in explained.read(config["sources"], wanted_line):
        model.take(record)
    return model.why


def run_once(weir, config, where):
    """Runs to the end with a state: (its directory, its decisions)."""
    path, state = os.path.join(where, "weir.json"), os.path.join(where, "state")
    outs = [os.path.join(where, name) for name in ("decisions", "shadow")]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(config, bus={"partitions": PARTITIONS}), file)
    run(weir, "run", "--once", "--config", path, "--state", state, "--decisions", outs[0], "--shadow", outs[1], "--quiet")
    return state, list(decided(*outs))


def compare_once(weir, config):
    """Every decision of a run to the end: (decisions, events)."""
    with compare.scratch() as where:
        state, wanted = run_once(weir, config, where)
        answers, _ = explain(weir, state, wanted)
        return len(wanted), check(wanted, answers, oracle(config))


def random_logs(weir, seed, first, count):
    """Random policies and logs: (what, words or None) of each."""
    decisions = events = 0
    for number in range(first, first + count):
        case = random_cases.case(seed, number)
        with compare.scratch() as where:
            case.write(where)
            config = case.placed(where)
            try:
                some = compare_once(weir, config)
            except Differs as differs:
                yield f"case {number} of seed {seed}", str(differs)
                continue
            decisions, events = decisions + some[0], events + some[1]
    yield f"{count} random logs: {decisions} decisions, {events} events", None if decisions > 0 else "there are none"


def real_logs(weir, data, most):
    """The logs of ../shared/data under each policy: (what, words or None)."""
    with test_oracle_data.first_lines(data, most) as cut:
        for name, files, zones_by_name in test_oracle_data.datasets(cut):
            for policy, zones in zones_by_name.items():
                specs = [{"type": "file", "path": path, "format": dict(form)} for path, form in files]
                for spec in specs if policy != "costs" else ():
                    del spec["format"]["cost"]
                try:
                    decisions, events = compare_once(weir, {"zones": zones, "sources": specs})
                    yield f"{name}, {policy}: {decisions} decisions, {events} events", None
                except Differs as differs:
                    yield f"{name}, {policy}", str(differs)


def limits():
    """Of the generated log: as the README has them."""
    return [{"id": 1, "name": "site", "key": ["ip"], "limits": [
        {"algorithm": "sliding_window", "rate": 10, "window": "1m"},
        {"algorithm": "fixed_window", "rate": 100, "window": "1h"},
        {"algorithm": "fixed_window", "rate": 1000, "window": "1d"}]}]


def follow(weir, config, where, lines):
    """A run that follows, while it is explained, until all lines are read: (its state, its decisions)."""
    path, state, out = (os.path.join(where, name) for name in ("weir.json", "followed", "out"))
    config = dict(config, bus={"partitions": PARTITIONS, "explain_size": "1GiB"})
    config["sources"] = [dict(source, follow=True) for source in config["sources"]]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    with subprocess.Popen([weir, "run", "--config", path, "--state", state, "--decisions", out, "--summary", "json"],
                          stderr=subprocess.PIPE) as following:
        before, until = -1, time.monotonic() + 600
        while time.monotonic() < until:  # all decisions are there once no more come, and the summary has every line
            time.sleep(1)
            size = os.path.getsize(out) if os.path.exists(out) else -1
            if size == before and size > 0:
                break
            before = size
        some = list(decided(out))[:1]
        answers, _ = explain(weir, state, some)
        following.send_signal(signal.SIGTERM)
        said = following.stderr.read().decode()
    summary = json.loads(said.splitlines()[-1])
    if summary["lines"] != lines or not answers[0]["equal"]:
        raise Differs(f"{summary['lines']} of {lines} lines were followed: {answers}")
    return state, list(decided(out))


def generated_log(weir, lines):
    """A generated log, read once, then followed: (what, words or None)."""
    with compare.scratch() as where:
        log = os.path.join(where, "access.log")
        run(weir, "generate", "--lines", str(lines), "--abusers", "200", "--quiet", "--output", log)
        config = {"zones": limits(), "sources": [{"type": "file", "path": log, "format": "combined"}]}
        for how, (state, wanted) in (("once", run_once(weir, config, where)),
                                     ("followed", follow(weir, config, where, lines))):
            if len(wanted) > SAMPLE:
                wanted = sorted(random.Random(1).sample(range(len(wanted)), SAMPLE)), wanted
                wanted = [wanted[1][place] for place in wanted[0]]
            keys = {decision["key"][0].encode() for decision, _, _ in wanted}
            why = oracle(config, lambda text: text[:text.index(b" ")] in keys)
            try:
                answers, seconds = explain(weir, state, wanted)
                events = check(wanted, answers, why)
                began = time.monotonic()
                explain(weir, state, wanted[-1:])
                yield (f"generated, {lines} lines, {how}: {len(wanted)} decisions, {events} events in {seconds:.1f} s; "
                       f"the last one alone in {time.monotonic() - began:.2f} s", None)
            except Differs as differs:
                yield f"generated, {how}", str(differs)


def main():
    """Runs all; exit code 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir")
    parser.add_argument("--cases", type=int, default=60 if os.environ.get("WEIR_SANITIZED") else 300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--data", default=os.environ.get("WEIR_DATA", os.path.join(compare.ROOT, "..", "shared", "data")))
    parser.add_argument("--only", choices=("random", "real", "generated"))
    args = parser.parse_args()
    weir = compare.find_weir(args.weir)
    most = int(os.environ.get("WEIR_EXPLAIN_LINES", "2000"))
    kinds = {"random": lambda: random_logs(weir, args.seed, args.first, args.cases),
             "generated": lambda: generated_log(weir, int(os.environ.get("WEIR_EXPLAIN_GENERATED", "20000")))}
    if os.path.isdir(args.data):
        kinds["real"] = lambda: real_logs(weir, os.path.abspath(args.data), most or None)
    failed = 0
    for name, kind in kinds.items():
        for what, wrong in kind() if args.only in (None, name) else ():
            print(f"{'ok' if wrong is None else 'DIFFERS'}: {what}", flush=True)
            if wrong is not None:
                print("  " + wrong, flush=True)
                failed += 1
                if failed == 5:
                    return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
