#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes a shared cluster down when nobody uses it any more: cluster_watch.py [--now] HOME

Runs beside the tests, apart from them all, so that nothing stays behind whichever of them is killed. A test that
uses the cluster holds a shared lock on HOME/users. --now: takes it down at once if nobody uses it, and leaves.
"""

import argparse
import contextlib
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "cluster")
sys.path.insert(0, DEPLOY)

# pylint: disable=wrong-import-position
from parts.process import is_running

IDLE_S = float(os.environ.get("WEIR_CLUSTER_IDLE_S", "20"))
LOOK_S = 0.5
DOWN_S = 300


def locked(path, wait=False):
    """An open file that is locked for oneself; None if somebody has it. FileNotFoundError: its directory is gone."""
    file = open(path, "a", encoding="ascii")  # pylint: disable=consider-using-with
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        file.close()
        return None
    return file


class Watch:
    """What is known of the cluster of a directory."""

    def __init__(self, home):
        self.home = home
        self.servers = os.path.join(home, "servers")
        self.processes = set()

    def path(self, name):
        """A path at its home."""
        return os.path.join(self.home, name)

    def is_used(self):
        """Whether a test uses it."""
        lock = locked(self.path("users"))
        if lock is not None:
            lock.close()
        return lock is None

    def look(self):
        """Learns the servers' processes, for the case that their directory is removed under them."""
        for path in glob.glob(os.path.join(self.servers, "*", "pid")):
            try:
                with open(path, encoding="ascii") as file:
                    pid, start = file.read().split()
                self.processes.add((int(pid), start))
            except (OSError, ValueError):
                pass
        return os.path.exists(os.path.join(self.servers, "cluster.json"))

    def end_orphans(self):
        """Ends what runs without what tells of it."""
        for pid, start in self.processes:
            if is_running(pid, start):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def take_down(self, before=lambda: None):
        """Takes it down if it is still unused; whether it was."""
        with locked(self.path("changes"), wait=True):
            if self.is_used():
                return False
            before()
            try:
                if self.look():
                    subprocess.run([os.path.join(DEPLOY, "down"), self.servers], stdin=subprocess.DEVNULL,
                                   timeout=DOWN_S, check=True)
            except subprocess.CalledProcessError:
                if self.look():
                    raise
                # The directory was being removed meanwhile, so that nothing told any more what runs.
            finally:
                self.end_orphans()
            shutil.rmtree(self.servers, ignore_errors=True)
        return True


def watch(cluster):
    """Until nobody has used it for a while, or it is gone."""
    cluster.look()
    mine = locked(cluster.path("watch"))
    if mine is None:
        return  # there is a watch
    print(f"watching {cluster.servers}", flush=True)
    unused_since, was_there = time.monotonic(), False
    try:
        while True:
            time.sleep(LOOK_S)  # a lock that becomes free cannot be awaited without taking it
            there = cluster.look()
            if cluster.is_used():
                unused_since = time.monotonic()
            # Whoever comes next starts the next watch: this one stops being it first.
            elif ((time.monotonic() - unused_since > IDLE_S or (was_there and not there))
                  and cluster.take_down(mine.close)):
                return
            was_there = there
    except FileNotFoundError:  # the build directory was removed under it
        cluster.end_orphans()


def main():
    """Watches, or takes it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--now", action="store_true")
    parser.add_argument("home")
    options = parser.parse_args()
    cluster = Watch(options.home)
    if not options.now:
        watch(cluster)
    elif os.path.isdir(options.home) and not cluster.take_down():
        print("somebody still uses the cluster; it is left to them")


if __name__ == "__main__":
    main()
