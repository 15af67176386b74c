#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_architecture finds what it is for: each deliberate fault, made in a copy of the tree, fails it in its own words."""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LICENCE = "SPDX-License-Identifier: Apache-2.0"
FOLDERS = ("common", "collector", "limiter", "archiver", "deploy", "tests")


def add_line(place, path, line):
    """Puts a line behind the comment that a file opens with."""
    path = os.path.join(place, path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    end = text.index("*/", text.index("*/") + 2) + 3  # behind the licence's
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:end] + line + "\n" + text[end:])


def write(place, path, text):
    path = os.path.join(place, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def include(path, header):
    return lambda place: add_line(place, path, f'#include "{header}"')


def change_row(old, new):
    def change(place):
        path = os.path.join(place, "tests/unit/test_architecture")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert old in text, old
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
    return change


def lend_a_name(place):
    """A call against the arrows, by a declaration of one's own: only the objects show it."""
    write(place, "common/base/lent.c", "/* Calls what it may not know. */\nvoid weir_policy_free(void *);\n"
          "void weir_lent(void);\nvoid weir_lent(void)\n{\n\tweir_policy_free((void *)0);\n}\n")
    write(place, "common/policy/lender.c", "/* What it calls. */\nvoid weir_policy_free(void *);\n"
          "void weir_policy_free(void *policy)\n{\n\t(void)policy;\n}\n")
    for path in ("common/base/lent.c", "common/policy/lender.c"):
        made = os.path.join(place, "build/CMakeFiles/weir_common.dir", path + ".o")
        os.makedirs(os.path.dirname(made), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-c", "-o", made, os.path.join(place, path)], check=True)


FAULTS = (
    ("a role that knows another", include("limiter/shard/shard.c", "collector/record/time_text.h"),
     "limiter/shard/ may not know collector/record/"),
    ("common/ that knows a role", include("common/base/text.c", "limiter/shard/shard.h"),
     "common/base/ may not know limiter/shard/"),
    ("a folder below that knows one above", include("limiter/bucket/bucket.c", "limiter/shard/shard.h"),
     "limiter/bucket/ may not know limiter/shard/"),
    ("an arrow that the table has not", include("collector/format/format.c", "collector/send/framer.h"),
     "collector/format/ may not know collector/send/"),
    ("a private header", include("limiter/lane/lane.c", "limiter/shard/internal.h"), "private to limiter/shard/"),
    ("a header that is not there", include("limiter/lane/lane.c", "limiter/lane/nothing.h"), "which is not there"),
    ("a circle in the table", change_row("memory         | filter slab swap table |", "memory         | filter slab table | bucket"),
     "which has no row above it"),
    ("an arrow that nothing uses", change_row("daemon         | policies service | follow", "daemon         | policies service | follow record"),
     "which nothing there includes"),
    ("a header that nobody needs to see", change_row("segment_blob shard shard_check |", "segment_blob shard shard_check shard_frame |"),
     "which no other folder includes"),
    ("a folder without a row", lambda place: write(place, "limiter/attic/thing.c", "/* A thing. */\n"), "is no room yet"),
    ("a folder with too many files", lambda place: [write(place, f"limiter/lane/more_{i}.c", "/* More. */\n") for i in range(40)],
     "which second module moved in?"),
    ("a library in two places", lambda place: add_line(place, "limiter/lane/lane.c", "#include <sqlite3.h>"),
     "<sqlite3.h> belongs in"),
    ("a file that has grown too long", lambda place: write(place, "limiter/lane/long.c", "/* Long. */\n" * 801), "801 lines, at most"),
    ("a function that has grown too long", lambda place: write(place, "limiter/lane/long.c", "/* Long. */\nvoid long_one(void)\n{\n" +
                                                              "\t;\n" * 51 + "}\n"), "a function of 51 lines, at most 50"),
    ("a source without its licence", lambda place: write(place, "limiter/lane/free.c", "/* Free. */\n"), "free.c:1: has no line"),
    ("a script without its licence", lambda place: write(place, "deploy/ask", "#!/bin/sh\n# Asks.\n"), "deploy/ask:1: has no line"),
    ("a file that does not say what it is for", lambda place: write(place, "limiter/lane/mute.c", f"/* {LICENCE} */\nint mute;\n"),
     "opens without saying what it is for"),
    ("a name of common/'s in a role", lambda place: write(place, "limiter/lane/named.c", "/* Named. */\nint weir_named(void)\n"),
     "is named as if it were in common/"),
    ("a call against the arrows", lend_a_name, "calls weir_policy_free: common/base/ may not know common/policy/"),
)


def run(place):
    done = subprocess.run([sys.executable, os.path.join(place, "tests/unit/test_architecture"), place], capture_output=True,
                          text=True, env={**os.environ, "WEIR_BUILD": os.path.join(place, "build")}, check=False)
    return done.returncode, done.stdout


def copy(place):
    for folder in FOLDERS:
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(place, folder),
                        ignore=lambda _, names: [name for name in names if "." in name and not name.endswith((".c", ".h"))])


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as whole:
        copy(os.path.join(whole, "clean"))
        returned, words = run(os.path.join(whole, "clean"))
        if returned != 0:
            print(f"not ok: the tree as it is\n{words}")
            failed += 1
        for number, (name, make, expected) in enumerate(FAULTS):
            place = os.path.join(whole, str(number))
            copy(place)
            make(place)
            returned, words = run(place)
            good = returned == 1 and expected in words
            print(f"{'ok' if good else 'not ok'}: {name}")
            if not good:
                print(f"expected \"{expected}\" and exit code 1, not {returned}:\n{words}")
                failed += 1
    print(f"{len(FAULTS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
