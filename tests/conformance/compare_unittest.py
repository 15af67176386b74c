# SPDX-License-Identifier: Apache-2.0
"""Runs a script's unittest cases and ends with `N passed, N failed`."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "oracle"))


def main(name):
    """Runs all cases of a module; the exit code is 1 if one fails."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[name])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
