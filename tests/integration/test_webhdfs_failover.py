#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `webhdfs` with two NameNodes: a failover loses nothing, and repeats nothing."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.webhdfs import DONE, Home, Run, users

from parts import hdfs  # pylint: disable=wrong-import-order
from parts.words import Unavailable


def test_a_failover_is_followed(place):
    home = Home(place.path("pair"))
    one = hdfs.Hdfs(home, pair=True)
    try:
        try:
            one.bring_up()
        except Unavailable as why:
            raise cases.Skipped(str(why).splitlines()[0]) from why
        one.put("/ha/a.log", users("a"))
        run = Run(place, one, "/ha/*.log").start()
        run.until_lines(1)
        hdfs.together([one.namenodes[0].ending(at_once=True)])
        one.namenodes[1].make_active()
        one.until_writable()
        one.append("/ha/a.log", users("b"))
        one.put("/ha/b.log", users("c"))
        run.until_lines(3)
        # The first comes back in standby: it says so, and the second is asked again.
        hdfs.together([one.namenodes[0].starting()])
        one.put("/ha/all.log", users("a", "b", "c"))
        run.until_blocked(["a", "b", "c"])
        assert run.weir.stop() == DONE
    finally:
        one.take_down()


if __name__ == "__main__":
    cases.main(globals())
