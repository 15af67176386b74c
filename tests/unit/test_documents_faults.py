#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_documents finds what it is for: each deliberate fault, made in a copy of the tree, fails it in its own words."""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEST = os.path.join(ROOT, "tests/unit/test_documents.py")
PAGES = "common/specification"

# what is wrong | the file | what stands there | what stands there instead | what the test says
FAULTS = (
    ("a link to no file", "README.md", "(limiter/zones.md)", "(limiter/zone.md)", "the link limiter/zone.md leads to no file"),
    ("a link to no heading", f"{PAGES}/log.md", "(semantics.md#key)", "(semantics.md#keys)", "leads to no heading"),
    ("a heading that was renamed", f"{PAGES}/semantics.md", "## Forgetting", "## Oblivion", "#forgetting leads to no heading"),
    ("a member that is not defined", f"{PAGES}/decisions.md", "| `until` | time |", "| until | time |",
     "`until`, which limiter/lane/decision.c writes, is not defined"),
    ("a member that is written no more", "limiter/lane/decision.c", '\\"reason\\":', '\\"cause\\":',
     "`reason` in Members or Limit is nothing that limiter/lane/decision.c writes"),
    ("a new member of a dead letter", "collector/send/dead_letter.c", '\\"reason\\":', '\\"why\\":', "`why`, which"),
    ("an example with another member", "README.md", '"count":5', '"counted":5', "members of a decision that are unknown"),
    ("an example in another order", "README.md", '"zone":"login","key":["203.0.113.9"]', '"key":["203.0.113.9"],"zone":"login"',
     "in another order"),
    ("a member of the API without words", "archiver/openapi.json", ', "description": "Requests that passed"', "", "has no description"),
    ("a word twice", f"{PAGES}/glossary.md", "| burst |", "| bucket |", '"bucket" stands there twice'),
    ("a word at another place", f"{PAGES}/glossary.md", "| ceiling |", "| zebra |", "in the order of the alphabet"),
    ("a citation of no page", "archiver/ledger/ledger.h", f"{PAGES}/guarantees.md", f"{PAGES}/promises.md", "which is no page"),
    ("an entry without a part", "deploy/RUNBOOK.md", "## Gap\n\n**Symptom.**", "## Gap\n\n**Sign.**", "gap does not have the parts"),
    ("an entry without a command", "deploy/RUNBOOK.md", "```sh\nnamei", "```text\nnamei", "source-unreadable: there is no command under Type"),
    ("a log line that names no entry", "limiter/main.c", "#include", "/* (runbook: no-such-thing) */\n#include",
     'limiter/main.c: names the entry "no-such-thing"'),
    ("an alert that the table lacks", "deploy/grafana/weir-alerts.yaml", "alert: WeirFenced", "alert: WeirFencedOff",
     "the table of alerts does not have WeirFencedOff"),
    ("an alert that is none", "deploy/RUNBOOK.md", "`WeirFenced`", "`WeirFencing`", "has WeirFencing, which is no alert"),
    ("a symptom in words that are gone", "common/bus/kafka/bus_kafka_watch.c", "does not exist any more", "no longer exists",
     'topic-deleted: its symptom has "topic … does not exist any more", which no string'),
    ("a topic that costs more than its alert says", "deploy/RUNBOOK.md", "bad lines are missing | ticket |", "bad lines are missing | page |",
     "without deadletter comes a page, and the alerts say ['ticket']"),
    ("a topic whose fault costs more", "tests/chaos/night_faults.py", '"WeirOtherTopicAway", r"policy", NOTHING',
     '"WeirOtherTopicAway", r"policy", VERDICTS', "without policy comes a ticket, and tests/chaos says that it costs VERDICTS"),
    ("a topic that the table lacks", "deploy/RUNBOOK.md", "| `judged` | nobody", "| judged | nobody", "lacks the topic judged"),
    ("an Over that says yes while it lasts", "deploy/RUNBOOK.md", "good = $2 ^ 2 < 1", "good = 1", "clock: Over says yes to"),
    ("a citation of no section", f"{PAGES}/guarantees.md", "## How\n", "## Why\n", "which is no section of it"),
)


def run(place):
    done = subprocess.run([sys.executable, TEST, place], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def change(place, path, old, new):
    """Puts a fault in; gives what the file was."""
    path = os.path.join(place, path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, f"{path} does not have {old}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    return text


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        place = os.path.join(place, "weir")
        shutil.copytree(ROOT, place, symlinks=True, ignore=lambda folder, _: {".git"} if folder != ROOT else {
            name for name in os.listdir(ROOT) if name == "build" or name.startswith(".")})
        returned, words = run(place)
        if returned != 0:
            print(f"not ok: the tree as it is\n{words}")
            failed += 1
        for name, path, old, new, expected in FAULTS:
            text = change(place, path, old, new)
            returned, words = run(place)
            good = returned == 1 and expected in words
            print(f"{'ok' if good else 'not ok'}: {name}")
            if not good:
                print(f"expected \"{expected}\" and exit code 1, not {returned}:\n{words}")
                failed += 1
            with open(os.path.join(place, path), "w", encoding="utf-8") as file:
                file.write(text)
    print(f"{len(FAULTS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
