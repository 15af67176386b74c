# SPDX-License-Identifier: Apache-2.0
"""What every server of a test's own can do: be stopped, killed, held up and started again, on one port."""

import signal

from support import cases

from parts.process import together  # pylint: disable=wrong-import-order
from parts.words import Unavailable  # pylint: disable=wrong-import-order


class OwnServer:
    """Runs while its block does; `server`, which who derives from it sets, is a part of deploy/cluster."""

    server = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Starts it, until it serves."""
        try:
            together([self.server.starting()])
        except Unavailable as why:
            raise cases.Skipped(str(why)) from why

    def stop(self):
        """Ends it in good order."""
        together([self.server.ending()])

    def kill(self):
        """Ends it at once, wherever it is."""
        together([self.server.ending(at_once=True)])

    def pause(self):
        """Makes it stand still."""
        self.server.process.signal(signal.SIGSTOP)

    def resume(self):
        """Lets it go on."""
        self.server.process.signal(signal.SIGCONT)
