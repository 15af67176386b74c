# SPDX-License-Identifier: Apache-2.0
"""What the servers of a cluster have in common: made once, started, asked whether they are ready, ended."""

import os
import shutil
import signal
import time

from parts.process import Process
from parts.words import Failed

READY_S = 120  # of a machine that is busy with other things; seconds are usual
LOCAL = "127.0.0.1"


class Server:
    """One server in a directory of its own. A kind of server says what its command and its readiness are."""

    stop_s = 30  # how long it may take to end by itself

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.directory = os.path.join(cluster.directory, name)
        self.process = Process(self.directory)
        self.started_here = False

    def path(self, *names):
        """A path in its directory."""
        return os.path.join(self.directory, *names)

    def making(self):
        """Steps: makes what it starts with; done once, and again when it was cut short."""
        if os.path.exists(self.path("made")):
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory, mode=0o700, exist_ok=True)  # a file system of its own stays
        yield from self.making_data()
        self.write("made", "")

    def starting(self):
        """Steps: starts it where it is down, until it is ready."""
        yield from self.making()
        if self.process.paused():
            self.process.signal(signal.SIGCONT)
        elif not self.process.identity():
            self.configure()
            self.started_here = True
            self.process.start(self.command(), self.environment())
        end = time.monotonic() + READY_S
        while not self.ready():
            if not self.process.identity() and not self.ready():
                raise Failed(f"{self.name} did not start; the end of {self.process.log_path}:\n"
                             f"{self.process.last_words()}")
            if time.monotonic() > end:
                raise Failed(f"{self.name} runs but is not ready after {READY_S} s; the end of "
                             f"{self.process.log_path}:\n{self.process.last_words()}")
            yield

    def ending(self, at_once=False):
        """Steps: ends it."""
        yield from self.process.ending(0 if at_once else self.stop_s)

    def write(self, name, text):
        """Writes a file of its own, for this user alone."""
        with open(self.path(name), "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
        return self.path(name)

    @staticmethod
    def environment():
        """Of its process: nothing of the user's settings."""
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "TZ": "UTC"}

    def making_data(self):
        """Steps: its first data, if it needs any."""
        yield from ()

    def configure(self):
        """Writes its configuration."""

    def command(self):
        """What to run."""
        raise NotImplementedError

    def ready(self):
        """Whether it serves; asked again and again, and takes a second at most."""
        raise NotImplementedError


def _private(path, flags):
    return os.open(path, flags, 0o600)
