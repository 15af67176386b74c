#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on users with three limits: a shard of weir against Rust's governor, the best in-process limiter known.

Both judge the same requests of the same 10M users on one thread, by its own time, in turn; medians. governor asks
three keyed limiters a verdict; beside it stands what it does with the first of them alone. It is built with cargo;
where that is not there, or cannot fetch what it needs, a line says so and nothing is measured. WEIR_BENCH=smoke runs
a small size, only to show that it works.
"""
import json
import os
import shutil
import statistics
import subprocess

BUILD = os.environ.get("WEIR_BUILD", "build/release")
HERE = os.path.dirname(os.path.abspath(__file__))
SMOKE = os.environ.get("WEIR_BENCH") == "smoke"
USERS = 50_000 if SMOKE else 10_000_000
TURNS = 1 if SMOKE else 3
GOAL = 10


def skip(why):
    print(json.dumps({"bench": "peer_governor", "skipped": why}), flush=True)


def build_peer():
    """The peer's program, None where it cannot be built."""
    if shutil.which("cargo") is None:
        return skip("cargo is not installed")
    # In a copy: cargo writes its lock beside the manifest.
    target = os.path.join(BUILD, "peer_governor")
    shutil.copytree(os.path.join(HERE, "peer_governor"), target, dirs_exist_ok=True)
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", os.path.join(target, "Cargo.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return skip("cargo could not build it: " + " ".join(done.stderr.split())[:300])
    return os.path.join(target, "target", "release", "peer_governor")


def rates(command):
    """What a program printed: the rate of each measurement that has one."""
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line["bench"]: line["rate"] for line in map(json.loads, printed) if "rate" in line}


def main():
    peer = build_peer()
    if peer is None:
        return
    os.environ["WEIR_BENCH_USERS"] = str(USERS)
    turns = []
    for _ in range(TURNS):
        turns.append({**rates([os.path.join(BUILD, "bin", "bench_judge"), "one"]), **rates([peer, str(USERS)])})
    weir = [turn["judge"] for turn in turns]
    for name in ("governor_one_limit", "governor"):
        rate = statistics.median(turn[name] for turn in turns)
        ratio = statistics.median(turn["judge"] / turn[name] for turn in turns)
        print(json.dumps({"bench": "peer_" + name, "unit": "verdicts/s", "rate": round(statistics.median(weir)),
                          "ceiling": round(rate), "ratio": round(ratio, 2),
                          **({"goal": GOAL} if name == "governor" else {}), "users": USERS, "turns": TURNS}), flush=True)


if __name__ == "__main__":
    main()
