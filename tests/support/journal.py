# SPDX-License-Identifier: Apache-2.0
"""Real journals: written by systemd-journal-remote, which takes entries in journald's export format."""

import os
import subprocess

from support.place import PATIENCE_S

REMOTE = "/lib/systemd/systemd-journal-remote"
BOOT_ID = "0123456789abcdef0123456789abcdef"
START_US = 1700000000000000


def available():
    """Whether journals can be written here."""
    return os.access(REMOTE, os.X_OK)


def entry(number, message, unit="shop.service", **fields):
    """One entry. Its times grow with its number, unless they are given."""
    lines = {"__REALTIME_TIMESTAMP": str(START_US + number * 1000), "__MONOTONIC_TIMESTAMP": str(1000 + number),
             "_BOOT_ID": BOOT_ID, "_SYSTEMD_UNIT": unit, "PRIORITY": "6", **fields}
    data = "".join(f"{name}={value}\n" for name, value in lines.items()).encode()
    body = message if isinstance(message, bytes) else message.encode()
    return data + b"MESSAGE\n" + len(body).to_bytes(8, "little") + body + b"\n\n"


class Journal:
    """A file of a journal, and the process that writes it. Used as a context."""

    def __init__(self, path):
        self.path = path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".said", "ab") as said:
            # pylint: disable-next=consider-using-with
            self.process = subprocess.Popen([REMOTE, "-o", path, "-"], stdin=subprocess.PIPE, stdout=said, stderr=said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def write(self, *entries):
        """Hands entries over; they are in the file a moment later."""
        self.process.stdin.write(b"".join(entries))
        self.process.stdin.flush()

    def close(self, patience_s=60):
        """Ends the writing: all that was handed over is in the file."""
        self.process.stdin.close()
        self.process.wait(patience_s)

    def kill(self):
        """Ends it wherever it is."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass


def write_whole(path, entries):
    """Writes a file of these entries and ends."""
    with Journal(path) as journal:
        journal.write(*entries)
        journal.close()
