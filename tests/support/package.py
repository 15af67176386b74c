# SPDX-License-Identifier: Apache-2.0
"""The Debian package of the build under test."""

import atexit
import os
import shutil
import subprocess
import tempfile

from support import cases
from support.place import PATIENCE_S, ROOT

_MADE = {}
_FOLDERS = []


def _folder():
    if not _FOLDERS:
        _FOLDERS.append(tempfile.mkdtemp(prefix="weir-packages-"))
        atexit.register(shutil.rmtree, _FOLDERS[0], ignore_errors=True)
    return _FOLDERS[0]


def run(*command, **more):
    """Runs a command: what subprocess gives, with all that it says in its stdout."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=10 * PATIENCE_S, **more)


def packed(place, out, **environment):
    """The package of the build under test, built once under each name: its path."""
    if out not in _MADE:
        _MADE[out] = _pack(place, os.path.join(_folder(), out), environment)
    return _MADE[out]


def _pack(place, out, environment):
    if shutil.which("dpkg-shlibdeps") is None or shutil.which("cmake") is None:
        raise cases.Skipped("no dpkg-shlibdeps here (deploy/packages package)")
    done = run(os.path.join(ROOT, "deploy/package"), "--build", os.path.dirname(os.path.dirname(place.weir)),
               "--out", out, env={**os.environ, **environment})
    assert done.returncode == 0, (done.returncode, done.stdout)
    return done.stdout.strip().split("\n")[-1]


def fetched(deb_paths):
    """Brings the packages to a machine that is not running yet, and what they depend on, which it cannot fetch later."""
    def prepare(root, within):
        for path in deb_paths:
            shutil.copy(path, os.path.join(root, "root"))
        code, said = within("apt-get", "-q", "-y", "--download-only", "install", f"/root/{os.path.basename(deb_paths[-1])}")
        assert code == 0, said[-2000:]
    return prepare
