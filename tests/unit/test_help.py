#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The help of every command and daemon can be read: no wide line, no long sentence, the same parts everywhere."""

import os
import re
import subprocess
import sys

BIN = os.path.join(os.environ.get("WEIR_BUILD", "build/dev"), "bin")
COLUMNS, WORDS = 80, 35


def told(*command):
    done = subprocess.run([os.path.join(BIN, command[0]), *command[1:], "--help"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, (command, done)
    return done.stdout


def commands():
    listed = told("weir").split("Commands:\n")[1].split("\n\n")[0]
    return [("weir", name) for name in re.findall(r"^  (\w+) ", listed, re.M)]


def sentences(page):
    """Those of the paragraphs that are wrapped: examples and other lines that stand as they are have no full stop."""
    page = re.sub(r"\n\w[\w ,]*:\n(?=   )", "\n\n", page)
    for part in re.split(r"\n\n|\n(?=  \S)", page):
        yield from re.split(r"[.:;](?:\s|$)", " ".join(part.split()))


def check(*command):
    page = told(*command)
    name = " ".join(command)
    assert page.startswith(f"Usage: {name} "), name
    for line in page.split("\n"):
        assert len(line) <= COLUMNS, f"{name}: {len(line)} columns: {line}"
        assert line == line.rstrip(), f"{name}: a space at the end of: {line}"
    for sentence in sentences(page.split("\nExamples:\n")[0]):
        assert len(sentence.split()) <= WORDS, f"{name}: {len(sentence.split())} words: {sentence}"
    for part in ("Examples:", "Exit codes:", "  -h, --help", f"\n  {name} "):
        assert part in page, f"{name}: its help has no {part!r}"
    usage = page.split("\n\n")[0]
    named = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", page, re.M))
    for option in re.findall(r"--[\w-]+", usage):
        assert option in named, f"{name}: {option} is not explained"


def check_refusals(*command):
    """Each says what is wrong in the same words, and where the help is."""
    for words, argument in (("unknown option --halp (did you mean --help?)", "--halp"), ("unknown option -%", "-%")):
        done = subprocess.run([os.path.join(BIN, command[0]), *command[1:], argument], capture_output=True, text=True,
                              check=False, timeout=60)
        name = " ".join(command)
        assert done.returncode == 2 and done.stdout == "", done
        assert done.stderr == f'{name}: {words}\nTry "{name} --help".\n', done.stderr


def main():
    found = commands()
    assert len(found) == 26, found
    for command in [*found, ("weir-collector",), ("weir-limiter",), ("weir-archiver",)]:
        if os.path.exists(os.path.join(BIN, command[0])):
            check(*command)
            check_refusals(*command)
    print(f"{len(found)} commands are taught")


if __name__ == "__main__":
    sys.exit(main())
