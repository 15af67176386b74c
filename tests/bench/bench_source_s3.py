#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir run --once` on objects of a bucket, against the plain file of the same lines in the same run.

The server is a script of this machine that gives slices of memory, and shares its processors with weir: beside the rates
are the nanoseconds of processor that a line takes, of weir from both and of the server. WEIR_BENCH=smoke runs a small size,
WEIR_BENCH_LINES another.
"""
import gzip
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, s3

LINES = int(os.environ.get("WEIR_BENCH_LINES", "20000" if bench.SMOKE else "1000000"))
ROUNDS = 1 if bench.SMOKE else 3
OBJECT_BYTES = 1 << 20 if bench.SMOKE else 8 << 20
GOAL = 0.7


def objects_of(data, pack):
    """The data in objects that end with a line."""
    found, begin = {}, 0
    while begin < len(data):
        end = data.find(b"\n", min(begin + OBJECT_BYTES, len(data) - 1)) + 1 or len(data)
        found[f"{len(found):06}"] = (len(found), pack(data[begin:end]))
        begin = end
    return found


def rate(place, name, source):
    """Lines a second, and nanoseconds of processor a line: weir's and this process's."""
    config = place.config(bench.ZONES, [{"format": "combined", **source}], name=f"{name}.json")
    own_s, weir_s = time.process_time(), bench.ended_cpu_s()
    summary = place.good("run", "--once", "--config", config, "--decisions", place.path("out"), "--summary", "json",
                         "--quiet", patience_s=600).summary()
    assert summary["lines"] == LINES, summary
    os.remove(place.path("out"))
    spent = bench.ended_cpu_s() - weir_s, time.process_time() - own_s
    return summary["lines"] / summary["seconds"], *(seconds * 1e9 / LINES for seconds in spent)


def measure(place):
    """Both ways, in turn."""
    path = place.path("plain.log")
    place.good("generate", "--lines", LINES, "--output", path, "--quiet", patience_s=600)
    with open(path, "rb") as file:
        data = file.read()
    for name, pack in (("plain", lambda part: part), ("gzip", lambda part: gzip.compress(part, 1))):
        with s3.Fake(objects_of(data, pack)) as fake:
            bucket = {"type": "s3", "url": fake.url, "bucket": "logs"}
            packed = place.write("packed.log", b"".join(fake.objects[key][1] for key in fake.keys))
            pairs = [(rate(place, "file", {"type": "file", "path": packed}), rate(place, "s3", bucket))
                     for _ in range(ROUNDS)]
        file_rate, file_ns, _ = (statistics.median(column) for column in zip(*(pair[0] for pair in pairs)))
        s3_rate, s3_ns, server_ns = (statistics.median(column) for column in zip(*(pair[1] for pair in pairs)))
        bench.report(f"source_s3_{name}", unit="of the file's rate", rate=round(s3_rate / file_rate, 3), goal=GOAL,
                     file_lines_per_s=round(file_rate), s3_lines_per_s=round(s3_rate), file_cpu_ns=round(file_ns),
                     s3_cpu_ns=round(s3_ns), server_cpu_ns=round(server_ns), lines=LINES)


if __name__ == "__main__":
    bench.main("source_s3", measure)
