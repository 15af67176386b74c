#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source `webhdfs` with two NameNodes: a failover loses nothing, and repeats nothing.

WEIR_ROUNDS  how many failovers (1); weir is killed in some, WEIR_SEED says in which
"""

import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import until
from support.webhdfs import BUSY_S, DONE, Home, Run, users

from parts import hdfs  # pylint: disable=wrong-import-order
from parts.words import Unavailable


def is_at(run, length):
    """Whether so many bytes were read, in all its runs."""
    position = run.value("weir_source_position", source="remote:webhdfs:logs")
    return position is not None and int(position) % (1 << 40) == length


def test_a_failover_is_followed(place):
    home = Home(place.path("pair"))
    one = hdfs.Hdfs(home, pair=True)
    try:
        try:
            one.bring_up()
        except Unavailable as why:
            raise cases.Skipped(str(why).splitlines()[0]) from why
        dice, names = random.Random(int(os.environ.get("WEIR_SEED", "1"))), ["first"]
        one.put("/ha/a.log", users("first"))
        run = Run(place, one, "/ha/*.log").start()
        run.until_lines(1)
        for number in range(int(os.environ.get("WEIR_ROUNDS", "1"))):
            active, other = one.namenodes[number % 2], one.namenodes[1 - number % 2]
            hdfs.together([active.ending(at_once=True)])
            if dice.random() < 0.3:
                run.weir.kill()
                run.start()
            other.make_active()
            one.until_writable()
            fresh = [f"u{number}-{place}" for place in range(dice.randint(2, 50))]
            half = len(fresh) // 2
            one.append("/ha/a.log", users(*fresh[:half]))
            one.put(f"/ha/{number}.log", users(*fresh[half:]))
            names += fresh
            until(lambda: is_at(run, len(users(*names))), "all is read", BUSY_S, run.weir)
            # The one that died comes back in standby: it says so, and the other is asked again.
            hdfs.together([active.starting()])
        assert run.blocked() == []
        one.put("/ha/all.log", users(*names))
        run.until_blocked(names)
        assert run.weir.stop() == DONE
    finally:
        one.take_down()


if __name__ == "__main__":
    cases.main(globals())
