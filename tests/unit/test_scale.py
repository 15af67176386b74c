#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""limiter/scale.md has the tables that tests/bench/scale.py makes, of figures whose words stand in RESULTS.md."""

import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))

import scale  # pylint: disable=wrong-import-position


def number(text):
    """160, 6,290."""
    return float(text.replace(",", ""))


def check_figures(figures):
    """Each figure's words stand in RESULTS.md, and but for those that follow from two numbers, each end stands in them."""
    results = re.sub(r"\s+", " ", scale.read("tests/bench/RESULTS.md"))
    for name, figure in figures.items():
        words = [figure["of"]] if isinstance(figure["of"], str) else figure["of"]
        numbers = {number(found) for text in words for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}
        for text in words:
            assert text in results, f"{name}: RESULTS.md does not say {text!r}"
        if name not in FOLLOW:
            assert {figure["low"], figure["high"]} <= numbers, f"{name}: not of {words}"
    for name, ends in FOLLOW.items():
        assert tuple(round(figures[name][end]) for end in ("low", "high")) == ends, f"{name}: {ends}"


# A million in 0.6 and in 0.3 s; ten million in 4.2 and in 1.3 s.
FOLLOW = {"stored_per_s": (round(1e6 / 0.6), round(1e6 / 0.3)), "replayed_per_s": (round(1e7 / 4.2), round(1e7 / 1.3))}


def check_arithmetic(figures):
    """Some by hand."""
    assert [scale.short(value) for value in (0.26, 9.04, 99.6, 996, 1_049_000, 3.4e9)] == \
        ["0.26", "9.0", "100", "1.0k", "1.0M", "3.4G"], "numbers"
    assert scale.bound("WEIR_PARTITIONS_MAX") == 1024 and scale.default("bus.linger") == 0.002
    need = scale.needs(1_000_000_000, 100_000_000, figures)
    assert abs(need["limiter"][1] - 100e6 * 260e-9 / scale.LOAD["busy"]) < 1e-6
    assert abs(need["memory"][1] - 70e9 / 2**30 / scale.LOAD["filled"]) < 1e-6
    assert abs(scale.distinct(1000, 1) - 1) < 1e-3 and scale.distinct(1000, 1e6) > 999.9


def main():
    with open(os.path.join(ROOT, "tests/bench/scale.json"), encoding="utf-8") as file:
        figures = json.load(file)
    check_figures(figures)
    check_arithmetic(figures)
    page = scale.read("limiter/scale.md")
    for text in scale.tables(figures):
        assert text in page, f"limiter/scale.md is not what tests/bench/scale.py prints; put this into it:\n\n{text}"
    assert page.count("\n| ---") == len(scale.tables(figures)), "a table of the page is not the program's"
    for name, price in scale.PRICES.items():
        assert re.search(rf"\b{price} for ", page), f"{name}: the page does not say {price}"
    print(f"{len(figures)} figures, {len(scale.tables(figures))} tables")


if __name__ == "__main__":
    main()
