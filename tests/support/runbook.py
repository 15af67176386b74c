# SPDX-License-Identifier: Apache-2.0
"""deploy/RUNBOOK.md as its readers take it: entries by their anchors, each in five parts, and the commands in them."""

import re

PARTS = ("Symptom", "Meaning", "Lost", "Type", "Over")
FIRST = "woken-at-three"  # what stands before the entries


def entries(text):
    """{anchor: what stands under the heading} of the entries."""
    found = dict(_headed(text))
    found.pop(FIRST, None)
    return found


def _headed(text):
    pieces = re.split(r"^## +(.+)$", text, flags=re.M)
    for heading, under in zip(pieces[1::2], pieces[2::2]):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-"), under


def parts(entry):
    """[(name, text)] of an entry, in its order."""
    pieces = re.split(r"^\*\*(\w+)\.\*\*", entry, flags=re.M)
    return [(name, text.strip()) for name, text in zip(pieces[1::2], pieces[2::2])]


def commands(text):
    """The commands that a text says to type, one a line."""
    fences = re.findall(r"^ *```sh\n(.*?)^ *```", text, flags=re.S | re.M)
    return [line.strip() for fence in fences for line in fence.splitlines() if line.strip()]


def alert_anchors(text):
    """{alert: anchor} of the table."""
    found = {}
    for line in text.split("\n"):
        anchor = re.search(r"\]\(#([\w-]+)\) \|$", line)
        if line.startswith("| `Weir") and anchor:
            found.update(dict.fromkeys(re.findall(r"`(Weir\w+)`", line), anchor.group(1)))
    return found
