# SPDX-License-Identifier: Apache-2.0
"""Programs that find the wall clock stepped, and the other clocks as they are: by libfaketime."""

import glob
import os

from support import cases


def _preloaded():
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not found or os.environ.get("WEIR_SANITIZED"):  # a sanitizer's library must come first
        raise cases.Skipped("no libfaketime that a clock can be stepped by (deploy/packages seeds)")
    return {"LD_PRELOAD": found[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def stepped(offset_s):
    """What a program's environment needs besides, for a clock that is stepped by so much."""
    return {**_preloaded(), "FAKETIME": f"{offset_s:+d}"}


def stepped_by_file(path):
    """The same, for a clock that is stepped by what a file says, such as "-600": it may change while the program runs."""
    return {**_preloaded(), "FAKETIME_TIMESTAMP_FILE": path, "FAKETIME_NO_CACHE": "1"}
