# SPDX-License-Identifier: Apache-2.0
"""A terminal for a weir to write to, and what it wrote there."""

import fcntl
import os
import pty
import struct
import termios
import threading

from support.place import PATIENCE_S, until

ERASE = "\r\x1b[K"


class Terminal:
    """A terminal of so many columns (0: unknown); use it in a with statement."""

    def __init__(self, columns=0):
        self._master, self.fd = pty.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        self._wrote = b""
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang_up()
        if self._reader.ident:
            self._reader.join(1)  # a writer of a test that failed is still there
        os.close(self._master)

    def _read(self):
        while True:
            try:
                part = os.read(self._master, 65536)
            except OSError:  # nobody has it open any more
                return
            if not part:
                return
            self._wrote += part

    def read(self):
        """Begins to read, as a screen does all the while."""
        self._reader.start()

    def hang_up(self):
        """Lets go of the writers' side, which those that were started keep open."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def resize(self, rows, columns):
        """Gives it another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, keys):
        """Presses keys."""
        os.write(self._master, keys.encode())

    def settings(self):
        """How it treats what is typed."""
        return termios.tcgetattr(self._master)

    def shows(self, word, running):
        """Waits until a word was written."""
        until(lambda: word in self.wrote(), f"{word!r} on the terminal", running=running)

    def wrote(self):
        """What was written so far, line ends as the writers wrote them."""
        return self._wrote.decode(errors="replace").replace("\r\n", "\n")

    def whole(self):
        """What was written, once all writers are gone."""
        self.hang_up()
        self._reader.join(PATIENCE_S)
        assert not self._reader.is_alive(), "somebody still has the terminal open"
        return self.wrote()


def rows(wrote):
    """What the rows of a screen without edges show in the end."""
    return [row.rsplit(ERASE, 1)[-1] for row in wrote.split("\n")]
