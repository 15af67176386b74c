# SPDX-License-Identifier: Apache-2.0
"""The sources of a configuration, read to their end, merged by time."""

import glob
import gzip
import heapq
import os
import subprocess
import sys

from formats import LINE_MAX, Format
from parse_lines import Malformed


class Tally:
    """Lines, events and malformed lines by reason, over all sources."""

    def __init__(self):
        self.lines = self.events = 0
        self.malformed = {}


def _plain(data):
    """The uncompressed bytes; gzip and zstd are known by their first bytes."""
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dcq"], input=data, check=True,
                              stdout=subprocess.PIPE).stdout
    return data


def _files(path):
    """The paths (bytes) of a source's path, which may be a glob."""
    if path == "-" or os.path.lexists(path):
        return [os.fsencode(path)]
    return sorted(name for name in glob.glob(os.fsencode(path)) if os.path.isfile(name))


def _content(path):
    if path == b"-":
        return _plain(sys.stdin.buffer.read())
    with open(path, "rb") as file:
        return _plain(file.read())


def records_of(data, form, tally, line_max=LINE_MAX):
    """The well-formed records of a source's bytes, in order."""
    form.start()
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        tally.lines += 1
        try:
            if len(line) > line_max:
                record = form.long_record(line[:line_max])
                tally.events += 1
                yield record
                continue
            if line.endswith(b"\r"):
                line = line[:-1]
            record = form.record(line) if line else None
        except Malformed as why:
            reason = str(why)
            tally.malformed[reason] = tally.malformed.get(reason, 0) + 1
            continue
        if record is not None:
            tally.events += 1
            yield record


def open_all(specs, tally):
    """The records of each file of each source, in the configuration's order."""
    seen = set()
    streams = []
    for spec in specs:
        if spec.get("type") == "decisions":
            continue
        paths = ["-"] if spec.get("type") == "stdin" else spec["path"]
        for path in [paths] if isinstance(paths, str) else paths:
            for name in _files(path):
                if name != b"-":
                    known = os.stat(name)
                    if (known.st_dev, known.st_ino) in seen:
                        continue
                    seen.add((known.st_dev, known.st_ino))
                line_max = _size(spec.get("line_max", LINE_MAX))
                streams.append(_named(spec.get("name"), records_of(
                    _content(name), Format(spec.get("format")), tally, line_max)))
    return streams


def _named(name, records):
    for record in records:
        record.source = name
        yield record


def _size(text):
    if isinstance(text, int):
        return text
    for unit, scale in (("KiB", 1024), ("MiB", 1048576), ("GiB", 1 << 30), ("B", 1)):
        if text.endswith(unit):
            return int(text[:-len(unit)]) * scale
    raise ValueError("bad size " + text)


def merged(streams):
    """All records by (running maximum of their source's times, place of the source)."""
    def keyed(place, stream):
        newest = 0
        for record in stream:
            newest = max(newest, record.time)
            yield newest, place, record
    return (record for _, _, record in heapq.merge(
        *(keyed(place, stream) for place, stream in enumerate(streams)),
        key=lambda item: item[:2]))
