# SPDX-License-Identifier: Apache-2.0
"""What the cluster's scripts say, and how they end when something cannot be had or goes wrong."""

import signal
import sys

FAILED, USAGE, UNAVAILABLE = 1, 2, 3


class Failed(Exception):
    """It did not work; the words say what, and where to look."""


class Unavailable(Exception):
    """This machine cannot have what is needed (no package, no network); the words say what to do."""


class Stopped(BaseException):
    """A signal asks to leave; what was started is ended on the way out."""


def say(text):
    """A line for the person who waits."""
    print(text, file=sys.stderr, flush=True)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_asked = []  # the signal that came


def _stop(number, _):
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)  # the way out is short, and must not be cut
    _asked.append(number)
    raise Stopped(number)


def heed():
    """Raises Stopped again where a signal came while Python threw exceptions away, as it does within __del__."""
    if _asked and sys.exc_info()[0] is None:
        raise Stopped(_asked[0])


def leave(main):
    """Runs main() and leaves with its code; what it raises becomes one line."""
    for number in _SIGNALS:
        signal.signal(number, _stop)
    name = sys.argv[0].rsplit("/", 1)[-1]
    try:
        sys.exit(main())
    except Failed as why:
        say(f"{name}: {why}")
        sys.exit(FAILED)
    except Unavailable as why:
        say(f"{name}: {why}")
        sys.exit(UNAVAILABLE)
    except Stopped as stopped:
        say(f"{name}: stopped; nothing that it started runs any more")
        sys.exit(128 + stopped.args[0])
