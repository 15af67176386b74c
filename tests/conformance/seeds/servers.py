# SPDX-License-Identifier: Apache-2.0
"""Starts the seed systems as temporary servers and feeds them calls at given times.

Each server is a context manager. It listens on a unix socket in a temporary folder of its own, runs
without privileges, is waited for by asking it, and is stopped by its process id whatever happens;
the kernel kills it if the test itself is killed. No server that is already running is touched.
"""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
READY_TIMEOUT_S = 120  # a machine may be busy with other tests
CLIENT_TIMEOUT_S = 240
PR_SET_PDEATHSIG = 1


def account():
    """Popen's arguments that drop root's privileges; none where there are none to drop."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def own_folder():
    """A temporary folder that belongs to the account the servers run under."""
    with tempfile.TemporaryDirectory(prefix="weir-seed-") as name:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(name, nobody.pw_uid, nobody.pw_gid)
        yield Path(name)


def environment(**more):
    """What a server or client sees: no user settings, UTC, plain messages."""
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC", **more}


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def prepare(command, folder):
    """Runs a setup command under the servers' account."""
    done = subprocess.run(command, cwd=folder, env=environment(HOME=str(folder)),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=CLIENT_TIMEOUT_S, check=False, **account())
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr or done.stdout}")


@contextlib.contextmanager
def serving(command, folder, ready, *, stop_by, env=None):
    """Runs a server until the block is left. ready() is asked until it says true."""
    log_path = folder / "server.log"
    with open(log_path, "wb") as log:
        server = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            command, cwd=folder, env=env or environment(), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_parent,
            **account())
    try:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not ready():
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log_path.read_text()}")
            time.sleep(0.01)
        yield server
    finally:
        server.send_signal(stop_by)
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def client(command, text, *, check=True):
    """Feeds a command-line client and returns (its output's lines, its messages)."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment(),
                          timeout=CLIENT_TIMEOUT_S, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr}")
    return done.stdout.splitlines(), done.stderr
