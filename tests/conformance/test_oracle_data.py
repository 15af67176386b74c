#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir against the oracle on the real logs of ../shared/data (or WEIR_DATA).

usage: test_oracle_data.py [--weir PATH] [--data DIR]

Each log is judged under several policies, on 1, 2 and 8 shards, and archived.
Where the logs are absent the test says that it was skipped.

WEIR_LINES: of each file no more than its first lines, so many; all, if nothing is said.
"""

import argparse
import contextlib
import glob
import gzip
import itertools
import multiprocessing
import os
import sys
import tempfile

import compare
import compare_archive
import oracle


def _limit(algorithm, rate, window, **more):
    return {"algorithm": algorithm, "rate": rate, "window": window, **more}


SHARDS = ((1, 1), (2, 2), (8, 8))
SLIDING_10_1M = _limit("sliding_window", 10, "1m")


def policies(path, kind):
    """Policies by name; `path` and `kind` are the log's two most telling fields."""
    return {
        "10/1m + 100/1h + 1000/1d": [
            {"id": 1, "name": "site", "key": ["ip"], "limits": [
                SLIDING_10_1M, _limit("fixed_window", 100, "1h"),
                _limit("fixed_window", 1000, "1d")]}],
        "all sliding, all counted, held": [
            {"id": 1, "name": "exact", "key": ["ip"], "count": "all", "block_for": "10m",
             "limits": [SLIDING_10_1M, _limit("sliding_window", 100, "1h", precision="1s"),
                        _limit("sliding_window", 1000, "1d", precision="1m")]},
            {"id": 2, "name": "tried", "key": ["ip"], "mode": "shadow", "limits": [
                _limit("sliding_window", 3, "1s")]}],
        "buckets and rates": [
            {"id": 1, "name": "tokens", "key": ["ip", path], "limits": [
                _limit("token_bucket", 5, "10s", burst=8)]},
            {"id": 2, "name": "penal", "key": ["ip"], "limits": [
                _limit("token_bucket", 1, "3s", burst=10, penalize=True)]},
            {"id": 3, "name": "gcra", "key": [{"field": "ip", "prefix4": 24, "prefix6": 48}],
             "count": "all", "limits": [_limit("gcra", 7, "1s", burst=20)]},
            {"id": 4, "name": "steady", "key": ["ip"], "block_for": "30s", "limits": [
                {"algorithm": "uniform", "interval": "250ms"}]}],
        "resources and filters": [
            {"id": 1, "name": "whole", "key": [], "limits": [
                _limit("sliding_window", 200, "10s"), _limit("fixed_window", 2000, "1h")]},
            {"id": 2, "name": "of-kind", "key": ["ip", kind], "match": {"ip": ["*1*", "*com*"]},
             "exempt": ["10.47.0.0/16", "66.249.64.0/19", "piweba3y.prodigy.com"],
             "limits": [SLIDING_10_1M]},
            {"id": 3, "name": "waiting", "key": [kind], "limits": [
                {"algorithm": "queue", "length": 30, "hold": "20s", "done": {"ip": ["*3"]}}]},
            {"id": 4, "name": "place", "key": [path], "limits": [
                _limit("fixed_window", 40, "1m", offset="17s")]}],
        "costs": [
            {"id": 1, "name": "volume", "key": ["ip"], "limits": [
                _limit("fixed_window", 1000000, "1h"),
                _limit("token_bucket", 100000, "1m", burst=3000000)]},
            {"id": 2, "name": "all-volume", "key": [], "count": "all", "limits": [
                _limit("gcra", 1000000, "1m", burst=2000000)]}],
    }


def some(named, *names):
    """Those of the policies."""
    return {name: named[name] for name in names}


def datasets(data):
    """(name, [(path, format)], policies) of each log, and of all of them together."""
    apache = [(os.path.join(data, "apache-semicomplete-2015.log.gz"),
               {"type": "combined", "cost": "bytes"})]
    nginx = [(os.path.join(data, "nginx-erddap-2024", "access.log.*.gz"),
              {"type": "combined", "cost": "bytes"})]
    dns, ssl = ([(os.path.join(data, f"zeek-{name}-2018.json.gz"), {
        "type": "json", "time": "ts", "cost": "cost", "fields": {"ip": "id.orig_h", "cost": cost}})]
        for name, cost in (("dns", "qclass"), ("ssl", "id.resp_p")))
    nasa = [(os.path.join(data, "nasa-http-1995-08-01.tsv.gz"), {
        "type": "delimited", "unit": "s", "cost": "bytes", "fields": {"ip": "host", "path": "url"}})]
    web = policies("path", "status")
    return [("apache", apache, web), ("nginx", nginx, web),
            ("zeek-dns", dns, policies("query", "rcode_name")),
            ("zeek-ssl", ssl, policies("server_name", "version")),
            ("nasa", nasa, policies("path", "response")),
            # Several sources at once differ in the order of their records alone: few policies show it.
            ("zeek, both", dns + ssl, some(policies("proto", "id.resp_h"), "resources and filters")),
            ("everything", nginx + nasa + apache + ssl + dns, some(web, "all sliding, all counted, held", "costs"))]


def compare_log(job):
    """One log under each policy: [(what, words for the difference or None)]."""
    weir, data, wanted = job
    files, zones_by_name = next((f, z) for name, f, z in datasets(data) if name == wanted)
    results = []
    for with_cost in (False, True):
        specs = [{"type": "file", "path": path, "format": dict(form)} for path, form in files]
        for spec in specs:
            if not with_cost:
                del spec["format"]["cost"]
        read = oracle.read_sources({"sources": specs})
        for policy, zones in zones_by_name.items():
            if with_cost == (policy == "costs"):
                with compare.scratch() as where:
                    config = {"zones": zones, "sources": specs}
                    run = oracle.Run(config, read=read)
                    wrong = (compare.differences(weir, config, where, run, SHARDS)
                             or compare_archive.difference(weir, config, where, run))
                results.append((f"{wanted}, {policy}", wrong))
    return results


@contextlib.contextmanager
def first_lines(data, most):
    """A directory with the first lines of each of the logs; the logs themselves where nothing bounds them."""
    if most is None:
        yield data
        return
    with tempfile.TemporaryDirectory() as cut:
        for path in glob.glob(os.path.join(data, "**", "*.gz"), recursive=True):
            shorter = os.path.join(cut, os.path.relpath(path, data))
            os.makedirs(os.path.dirname(shorter), exist_ok=True)
            with gzip.open(path) as whole, gzip.open(shorter, "w") as file:
                file.writelines(itertools.islice(whole, int(most)))
        yield cut


def main():
    """Runs every log under every policy; exit code 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir")
    parser.add_argument("--data", default=os.environ.get(
        "WEIR_DATA", os.path.join(compare.ROOT, "..", "shared", "data")))
    parser.add_argument("--cases", help="not used here; all comparisons take the same arguments")
    parser.add_argument("--seed", help="not used here")
    args = parser.parse_args()
    weir = compare.find_weir(args.weir)
    data = os.path.abspath(args.data)
    if not os.path.isdir(data):
        print(f"skipped: no logs in {data}")
        return compare.SKIPPED
    names = [name for name, _, _ in datasets(data)]
    if os.environ.get("WEIR_SANITIZED"):
        names = ["apache", "nginx", "nasa"]
    passed = failed = 0
    with first_lines(data, os.environ.get("WEIR_LINES")) as data, multiprocessing.Pool(2) as pool:
        for results in pool.imap(compare_log, [(weir, data, name) for name in names], chunksize=1):
            for what, wrong in results:
                print(f"{'ok' if wrong is None else 'DIFFERS'}: {what}", flush=True)
                if wrong is not None:
                    print("  " + wrong, flush=True)
                passed += wrong is None
                failed += wrong is not None
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
