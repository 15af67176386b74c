# SPDX-License-Identifier: Apache-2.0
"""Programs of the distribution's packages, installed where they are missing."""

import glob
import os
import shutil
import signal
import subprocess

from parts.words import Unavailable, say

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_INSTALLER = os.path.join(_ROOT, "deploy", "packages")
_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/lib/jvm/*/bin")
_NEEDED = ("java", "mvn", "mariadbd", "mariadb-install-db", "mariadb", "redis-server", "openssl")
_INSTALL_S = 900


def _look_up(name):
    beside = (path for folder in _FOLDERS for path in sorted(glob.glob(f"{folder}/{name}")))
    return shutil.which(name) or next(beside, None)


def find(name):
    """The path of a program; raises Unavailable."""
    path = _look_up(name)
    if path is None:
        raise Unavailable(f"there is no {name} on this machine; deploy/packages cluster installs it")
    return path


def install(needed=_NEEDED):
    """Installs the packages of what is missing; touches nothing when all is there."""
    missing = [name for name in needed if _look_up(name) is None]
    if not missing:
        return
    # In a session of its own, so that the way out can end apt-get with it.
    # pylint: disable-next=consider-using-with
    installer = subprocess.Popen([_INSTALLER, "cluster"], stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    try:
        code = installer.wait(_INSTALL_S)
    except subprocess.TimeoutExpired:
        code = f"no end within {_INSTALL_S} s"
    finally:
        if installer.poll() is None:
            os.killpg(installer.pid, signal.SIGTERM)
            installer.wait()
    if code != 0:
        raise Unavailable(f"{', '.join(missing)} cannot be installed ({_INSTALLER} cluster: {code})")
    say("Installed what was missing.")
