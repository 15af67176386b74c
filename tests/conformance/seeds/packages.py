# SPDX-License-Identifier: Apache-2.0
"""Finds what the seed systems' servers and clients are run from.

What is missing is installed by deploy/packages, which lets no package start a service: each test
starts its own server.
"""

import fcntl
import glob
import shutil
import subprocess
from pathlib import Path

INSTALLER = Path(__file__).parents[3] / "deploy/packages"
INSTALL_TIMEOUT_S = 900
FOLDERS = ("/usr/sbin", "/usr/lib/postgresql/*/bin", "/usr/lib/*/faketime")


class Missing(Exception):
    """A seed system cannot be had on this machine; carries the reason in words."""


def find(*names):
    """The path of the first of these programs or libraries that is there; installs if none is."""
    path = look_up(names)
    if path is None:
        install(names[0])
        path = look_up(names)
    if path is None:
        raise Missing(f"the packages are installed, but there is no {names[0]}")
    return path


def look_up(names):
    for name in names:
        beside = (path for folder in FOLDERS for path in sorted(glob.glob(f"{folder}/{name}")))
        if path := shutil.which(name) or next(beside, None):
            return path
    return None


def install(wanted):
    """Installs the packages of all seed systems. Tests may run side by side; this may not."""
    try:
        with open(INSTALLER, encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run([INSTALLER, "seeds"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S,
                                  check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise Missing(f"{wanted} is not installed: {reason}") from reason
    if done.returncode != 0:
        words = " ".join(done.stderr.split())
        raise Missing(f"{wanted} is not installed: {words[-300:]}")
