#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir against the oracle on random policies and logs: not one byte of difference.

usage: test_oracle_random.py [--weir PATH] [--cases N] [--seed S] [--first K] [--jobs J]

In two of five cases zones are queues, and in two of five zones count decisions of others. Case K of seed S is always the same; a failing one is made small and printed,
and `--seed S --first K --cases 1` runs it again.
"""

import argparse
import multiprocessing
import os
import sys

import compare
import compare_shrink
import random_cases


def differs(weir, case):
    """Words for how weir and the oracle differ on a case; None if they do not."""
    with compare.scratch() as where:
        config = case.config
        try:
            case.write(where)
            config = case.placed(where)
            return compare.differences(weir, config, where)
        except OSError as failed:
            return f"the test itself failed: {failed}"


def check(job):
    """One case: (number, None), or (number, what to print)."""
    weir, seed, number = job
    case = random_cases.case(seed, number)
    if number % 5 in (1, 3) and number % 1000 != 500:
        case = random_cases.with_queues(case, seed, number)
    if number % 5 in (3, 4) and number % 1000 != 500:
        case = random_cases.with_decisions(case, seed, number)
    wrong = differs(weir, case)
    if wrong is None:
        return number, None
    small = compare_shrink.shrink(case, lambda smaller: differs(weir, smaller) is not None)
    return number, (f"case {number} of seed {seed} differs: {wrong}\n"
                    f"made small: {differs(weir, small)}\n{compare_shrink.shown(small)}\n"
                    f"again: --seed {seed} --first {number} --cases 1")


def main():
    """Runs the cases; exit code 1 if one differs."""
    default = 300 if os.environ.get("WEIR_SANITIZED") else 10000
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir")
    parser.add_argument("--cases", type=int, default=int(os.environ.get("WEIR_CASES", default)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", help="not used here; all comparisons take the same arguments")
    args = parser.parse_args()
    weir = compare.find_weir(args.weir)
    passed = failed = 0
    jobs = ((weir, args.seed, number) for number in range(args.first, args.first + args.cases))
    with multiprocessing.Pool(args.jobs) as pool:
        for _, wrong in pool.imap_unordered(check, jobs, chunksize=1):
            passed += wrong is None
            failed += wrong is not None
            if wrong is not None:
                print(wrong, flush=True)
            if failed == 5:
                print("five differ: the rest is not run")
                break
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
