"""Prometheus text, read strictly: what a scraper would refuse is refused here."""

import re
import urllib.error
import urllib.request

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


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

    def value(self, name, **labels):
        """One sample; None if it is not there."""
        return self.samples.get((name, tuple(sorted(labels.items()))))

    def sum(self, name, **labels):
        """The sum of the samples that have these labels, 0 of none."""
        return sum(value for (sample, pairs), value in self.samples.items()
                   if sample == name and labels.items() <= dict(pairs).items())


def get(port, path):
    """(status, content type, text) of a page; None while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read().decode()
    except OSError:
        return None


def scrape(port):
    """The page at /metrics; None while nobody answers."""
    answer = get(port, "/metrics")
    return Metrics(answer[2]) if answer else None
