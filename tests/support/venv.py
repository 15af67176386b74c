# SPDX-License-Identifier: Apache-2.0
"""Runs a script under the Python of tests/python, which has the packages that it needs.

Modules that need those packages call enter() when they are imported: the
script begins again under that Python, once.
"""

import os
import subprocess
import sys

from support import cases

_TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PATIENCE_S = 900
_ENTERED = "WEIR_TESTS_PYTHON"  # who has entered one, and which


def _make(name):
    """The exit code of tests/python, and what it printed."""
    made = subprocess.run([os.path.join(_TESTS, "python"), *name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=_PATIENCE_S, check=False)
    return made.returncode, made.stdout.decode().strip()


def made(*name):
    """The path of that Python, or that of a name; skips the test where it cannot be had."""
    code, interpreter = _make(name)
    if code != 0:
        raise cases.Skipped(f"the packages of {' '.join(name) or 'these tests'} cannot be had here")
    return interpreter


def enter(*name):
    """Returns under that Python, or that of a name; leaves with 77, saying why, where it cannot be had."""
    code, interpreter = _make(name)
    if code != 0:
        print("skipped: no Python packages for these tests", flush=True)
        sys.exit(cases.SKIPPED if code == cases.SKIPPED else 1)
    if os.path.abspath(sys.prefix) != os.path.dirname(os.path.dirname(interpreter)):
        # A process that enters two of them would go from one to the other without end.
        mine = f"{os.getpid()} {interpreter}"
        before, os.environ[_ENTERED] = os.environ.get(_ENTERED, ""), mine
        if before.startswith(f"{os.getpid()} "):
            sys.exit(f"{sys.argv[0]} needs the packages of two Pythons: of {before.split()[1]} and {interpreter}")
        sys.stdout.flush()
        os.execv(interpreter, [interpreter, *sys.orig_argv[1:]])
