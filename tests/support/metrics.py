# SPDX-License-Identifier: Apache-2.0
"""Prometheus text, read strictly: what a scraper would refuse is refused here, and what is not in common/metrics.md."""

import functools
import os
import re
import ssl
import urllib.error
import urllib.request

from support.place import PATIENCE_S

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_REFERENCE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "common", "metrics.md")
_ROW = re.compile(r"\| `(\w+)` \| (counter|gauge|histogram) \| ([^|]+) \|(?: ([^|]+))? \| ([^|]+) \|$")
_TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


class Row:
    """A metric as common/metrics.md has it."""

    def __init__(self, line, programs):
        match = _ROW.fullmatch(line)
        assert match, f"not a row of metrics: {line!r}"
        self.name, self.type, self.unit, labels, self.help = match.groups()
        self.programs = programs  # whose pages show it
        self.labels = {}          # by name: the values that there are; None: any
        for label in labels.split("; ") if labels else ():
            name, values = re.fullmatch(r"`(\w+)`: (.+)", label).groups()
            self.labels[name] = set(re.findall(r"`([^`]+)`", values)) or None


@functools.cache
def reference():
    """All rows of common/metrics.md, by name."""
    rows, programs = {}, []
    with open(_REFERENCE, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("## "):
                programs = re.findall(r"`(weir[-\w ]*)`", line)
                assert programs, line
            elif line.startswith("| `"):
                row = Row(line, programs)
                assert row.name not in rows, f"twice: {line}"
                rows[row.name] = row
    assert rows
    return rows


class Metrics:
    """One page: samples by name and labels."""

    def __init__(self, text):
        self.types, self.helps, self.samples = {}, {}, {}
        self.order = []  # families as they came
        assert text.endswith("\n"), "the page does not end with a line"
        for line in text[:-1].split("\n"):
            if line.startswith("# "):
                self._describe(line)
            else:
                self._sample(line)
        self._check_histograms()

    def _describe(self, line):
        kind, name, words = (line[2:].split(" ", 2) + [""])[:3]
        assert re.fullmatch(_NAME, name), line
        table = {"HELP": self.helps, "TYPE": self.types}[kind]
        assert name not in table, f"described twice: {line}"
        assert kind == "HELP" or words in _TYPES, line
        table[name] = words
        if kind == "TYPE":
            self.order.append(name)

    def _family(self, name):
        for suffix in ("", "_bucket", "_sum", "_count"):
            family = name.removesuffix(suffix) if suffix else name
            if family in self.types and (not suffix or self.types[family] == "histogram"):
                return family
        raise AssertionError(f"{name} has no TYPE before it")

    def _sample(self, line):
        match = _SAMPLE.fullmatch(line)
        assert match, f"not a sample: {line!r}"
        name, labels, number = match.groups()
        family = self._family(name)
        assert family == self.order[-1], f"{name} stands outside its family: {line}"
        pairs, at = {}, 0
        while labels and at < len(labels):
            label = _LABEL.match(labels, at)
            assert label, f"not labels: {line!r}"
            assert label[1] not in pairs, f"a label twice: {line}"
            pairs[label[1]] = re.sub(r'\\[n"\\]', lambda found: _ESCAPES[found[0]], label[2])
            at = label.end()
        key = name, tuple(sorted(pairs.items()))
        assert key not in self.samples, f"a sample twice: {line}"
        self.samples[key] = float(number)
        assert self.types[family] != "counter" or self.samples[key] >= 0, f"a negative counter: {line}"

    def _check_histograms(self):
        for family in (name for name, kind in self.types.items() if kind == "histogram"):
            series = {}
            for (name, labels), value in self.samples.items():
                if name == family + "_bucket":
                    rest = tuple(pair for pair in labels if pair[0] != "le")
                    series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
            assert series, f"{family} has no buckets"
            for rest, buckets in series.items():
                buckets.sort()
                counts = [count for _, count in buckets]
                assert counts == sorted(counts), f"{family} does not add up: {buckets}"
                assert buckets[-1][0] == float("inf"), f"{family} has no +Inf"
                assert self.samples[family + "_count", rest] == counts[-1], f"{family}: its count is another"
                assert (family + "_sum", rest) in self.samples, f"{family} has no sum"

    def check_reference(self):
        """Nothing is here but what common/metrics.md has, as it has it."""
        known = reference()
        for name, kind in self.types.items():
            assert name in known, f"{name} is not in common/metrics.md"
            row = known[name]
            assert (kind, self.helps[name]) == (row.type, row.help), f"{name}: {kind}, {self.helps[name]!r}"
        for name, pairs in self.samples:
            row, labels = known[self._family(name)], dict(pairs)
            if row.type == "histogram":
                labels.pop("le", None)
            assert labels.keys() == row.labels.keys(), f"{name}: {labels}"
            for label, value in labels.items():
                assert row.labels[label] is None or value in row.labels[label], f"{name}: {label} is {value}"

    def check_whole(self, program):
        """And all that common/metrics.md says of a program's page is here, each label's value too."""
        for row in reference().values():
            shown = row.name in self.types
            assert shown == (program in row.programs), f"{row.name}: {'not ' * (not shown)}on the page of {program}"
            for label in (label for label, values in row.labels.items() if shown and values):
                seen = {dict(pairs)[label] for name, pairs in self.samples if name == row.name}
                assert seen == row.labels[label], f"{row.name}: {label}: {seen ^ row.labels[label]}"

    def value(self, name, **labels):
        """One sample; None if it is not there."""
        return self.samples.get((name, tuple(sorted(labels.items()))))

    def sum(self, name, **labels):
        """The sum of the samples that have these labels, 0 of none."""
        return sum(value for (sample, pairs), value in self.samples.items()
                   if sample == name and labels.items() <= dict(pairs).items())


def get(port, path, headers=None, ca=None):
    """(status, content type, text) of a page; None while nobody answers. ca: whose certificate it shows, where it speaks TLS."""
    context = ssl.create_default_context(cafile=ca) if ca else None
    try:
        asked = urllib.request.Request(f"{'https' if ca else 'http'}://127.0.0.1:{port}{path}", headers=headers or {})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S, context=context) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read().decode()
    except OSError:
        return None


def scrape(port, ca=None):
    """The page at /metrics, which shows nothing that has no row in common/metrics.md; None while nobody answers."""
    answer = get(port, "/metrics", ca=ca)
    if answer is None:
        return None
    page = Metrics(answer[2])
    page.check_reference()
    return page
