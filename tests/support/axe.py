# SPDX-License-Identifier: Apache-2.0
"""axe-core on a page in the browser: what it finds that keeps somebody from reading or using it.

It is an npm package of one version, which deploy/npm_package fetches; skipped where it cannot be had.
"""

import os
import subprocess
import tarfile

from support.cases import SKIPPED, Skipped
from support.place import PATIENCE_S, ROOT

_VERSION, _SHA256 = "4.14.1", "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"


def source():
    """The script that a page runs."""
    done = subprocess.run([os.path.join(ROOT, "deploy", "npm_package"), "axe-core", _VERSION, _SHA256],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=10 * PATIENCE_S)
    if done.returncode == SKIPPED:
        raise Skipped(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    with tarfile.open(done.stdout.strip()) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


def found(page, script):
    """What all of its rules find on what is shown, also best practices: [(rule, element, what is wrong)]."""
    page.run(f"globalThis.axe === undefined && (() => {{ {script}; }})()")
    return page.run("""axe.run(document, { resultTypes: ["violations", "incomplete"] }).then((said) =>
        [...said.violations, ...said.incomplete.filter((one) => one.id !== "color-contrast")].flatMap((rule) =>
          rule.nodes.map((node) => [rule.id, node.target.join(" "), node.failureSummary])))""")
