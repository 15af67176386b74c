# SPDX-License-Identifier: Apache-2.0
"""Stores on a MariaDB of a script's own, and store_shell, which runs their operations line by line."""

import contextlib
import json
import os
import subprocess
import threading

from support import own_mariadb
from support.place import PATIENCE_S, ROOT

PROGRAMS = os.path.join(os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release")), "tests")
# Bounds of the store itself: 10 s for a read, 5 s for connecting, twice; and a slow machine.
CALL_S = 40 + PATIENCE_S
_SERVER = []
_NUMBERS = iter(range(1, 10000))


def server():
    """The one that all tests of a script share. Whoever ends it starts it again."""
    return _SERVER[0]


@contextlib.contextmanager
def restarted(*settings):
    """The server, with other settings for a while."""
    server().stop()
    try:
        server().start(*settings)
        yield
    finally:
        server().stop()
        server().start()


def new_database():
    """A name that no other test has."""
    return f"weir_{os.getpid()}_{next(_NUMBERS)}"


def configure(place, port=None, database=None, **store):
    """A configuration with a database of its own: its path, the database."""
    database = database or new_database()
    section = {"type": "mysql", "port": port or server().port, "password": "secret", "database": database, **store}
    path = place.write(f"{database}-{next(_NUMBERS)}.json", json.dumps(
        {"bus": {"type": "kafka", "brokers": "127.0.0.1:1"}, "store": section}))
    return path, database


class Shell:
    """A store_shell: a store, an operation at a time."""

    def __init__(self, place, config, opened=True):
        self._weir = place.start(config, program=os.path.join(PROGRAMS, "store_shell"), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        self._place = place
        if opened:
            self.good("open")

    def send(self, *words):
        """Begins an operation."""
        self._weir.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self._weir.process.stdin.flush()

    def answer(self):
        """Its status and words, once it is done."""
        line = []
        reader = threading.Thread(target=lambda: line.append(self._weir.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(CALL_S)
        assert line, f"no answer within {CALL_S} s"
        assert line[0], f"the shell has ended: {self._weir.said()[-2000:]}"
        status, _, words = line[0].decode().rstrip("\n").partition(" ")
        return status, words

    def __call__(self, *words):
        self.send(*words)
        return self.answer()

    def good(self, *words):
        """The words of an operation that must succeed."""
        status, told = self(*words)
        assert status == "OK", f"{words}: {status} {told}"
        return told.strip()

    def gives(self, status, *words):
        """The words of an operation that must give this status."""
        found, told = self(*words)
        assert found == status, f"{words}: {found} {told}, not {status}"
        return told

    def take(self, partition):
        """The epoch."""
        return int(self.good("take", partition).split()[0])

    def state(self, partition=0):
        """Epoch and checkpoint."""
        return [int(word) for word in self.good("look", partition).split()[:2]]

    def end(self):
        """Ends it as it may: nothing is left open (and, where that is looked for, no memory)."""
        self._weir.process.stdin.close()
        assert self._weir.wait() == 0, self._weir.said()


def main(names):
    """Runs a script's tests with a server of their own; without one they are skipped."""
    built = os.access(os.path.join(PROGRAMS, "store_shell"), os.X_OK)
    own_mariadb.main(names, _SERVER.append, None if built else f"no store_shell in {PROGRAMS}")
