# SPDX-License-Identifier: Apache-2.0
"""The servers of rounds that are played at the same time: each has some for itself, and leaves them clean to the next."""

import contextlib
import multiprocessing
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import cluster  # pylint: disable=wrong-import-position

_IDLE = multiprocessing.SimpleQueue()  # directories of those that no round uses


@contextlib.contextmanager
def of_our_own(jobs):
    """Servers for as many rounds as are played at the same time."""
    with contextlib.ExitStack() as stack:
        for _ in range(jobs):
            _IDLE.put(stack.enter_context(cluster.own()).directory)
        yield


@contextlib.contextmanager
def some(mend):
    """Servers that no other round uses now. mend(servers): undoes what a round that failed may have done to them."""
    directory = _IDLE.get()
    served = cluster.Cluster(directory)
    try:
        yield served
    finally:
        mend(served)
        served.clean()
        _IDLE.put(directory)
