#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limiters that join and leave all the time, in good order and killed: no difference, and how long partitions pause.

Two topics are given the same frames (support/limiters.py). One is judged by a crew that changes every second or two:
in the first half of the time they join and leave in good order, in the second they are killed as well. The other is
judged by one limiter that nothing disturbs. Decisions, judged frames and states must be equal. What it saw, above all
the longest pause of a partition from outside, between two of its judged frames, is printed as one line of JSON; while
nobody is killed no partition pauses for long, whether it moves or stays.

WEIR_MOVE_SECONDS (20; 300 by hand), WEIR_MOVE_RATE (frames of 100 events a second, 200), WEIR_SEED.
"""

import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.limiters import PARTITIONS, Stage, compare, end_feed, until_all_live
from support.place import SANITIZED

SECONDS = int(os.environ.get("WEIR_MOVE_SECONDS", 20))
RATE = int(os.environ.get("WEIR_MOVE_RATE", 50 if SANITIZED else 200))
MOST_LIMITERS = 4
MOST_PAUSE_S = 8  # of the ten without kills; half a second where the machine has nothing else to do, six under a load of 19
# Who is killed is missed soon; a session that ends too early costs time, and nothing else.
QUICK = {"bus": {"kafka": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}}}


class Crew:
    """The limiters, and what becomes of them."""

    def __init__(self, stage, dice):
        self.stage, self.dice = stage, dice
        self.members = [stage.limiter(f"limiter-{number}") for number in range(3)]
        until_all_live(self.members)
        self.deeds = {"joined": 0, "left": 0, "killed": 0}
        self.takes = {}  # the most seconds that a bucket of the histogram stands for: how many

    def running(self):
        """Those that run."""
        return [one for one in self.members if one.run.code() is None]

    def change(self, kills):
        """One joins, leaves, or is killed."""
        running = self.running()
        if len(running) < 2 or (len(running) < MOST_LIMITERS and self.dice.random() < 0.5):
            self._join()
            return
        one = self.dice.choice(running)
        self.note_takes(one)
        if kills and self.dice.random() < 0.5:
            one.kill()
            self.deeds["killed"] += 1
        else:
            code = one.stop()
            assert code in (0, -15), f"{one.name} exited with status {code}: {one.said()[-2000:]}"
            self.deeds["left"] += 1

    def _join(self):
        away = [one for one in self.members if one.run.code() is not None]
        assert all(one.run.code() in (0, -9, -15) for one in away), [one.run.code() for one in away]
        if away:
            self.dice.choice(away).start()
        else:
            self.members.append(self.stage.limiter(f"limiter-{len(self.members)}"))
        self.deeds["joined"] += 1

    def note_takes(self, one):
        """How long it has taken to get partitions, before it goes."""
        page, before = one.metrics(), 0
        name = "weir_limiter_take_seconds_bucket"
        buckets = [] if page is None else sorted((float(dict(labels)["le"]), count)
                                                 for (sample, labels), count in page.samples.items() if sample == name)
        for most_s, count in buckets:
            self.takes[most_s] = self.takes.get(most_s, 0) + int(count) - before
            before = int(count)

    def taken(self):
        """(how many partitions were taken, as far as noted, the most seconds that one took)."""
        return sum(self.takes.values()), max((most_s for most_s, count in self.takes.items() if count), default=0)


def pauses(stage, since_ms, kills_from_ms):
    """Seconds from outside: between two judged frames of a partition, and from a frame to its verdicts, at most."""
    sent, longest = {}, {"pause_s": 0, "pause_with_kills_s": 0, "wait_s": 0, "wait_with_kills_s": 0}
    for message in stage.servers.kafka.stream(stage.servers.topic("events")):
        sent[message.partition, message.offset] = message.time_ms
    before = {}
    for (partition, offset), (_, at_ms) in sorted(stage.judged().items()):
        if sent[partition, offset] < since_ms:
            continue
        when = "" if at_ms < kills_from_ms else "with_kills_"
        wait_ms, pause_ms = at_ms - sent[partition, offset], at_ms - before.get(partition, at_ms)
        before[partition] = max(at_ms, before.get(partition, at_ms))
        for name, value_ms in ((f"wait_{when}s", wait_ms), (f"pause_{when}s", pause_ms)):
            longest[name] = max(longest[name], value_ms / 1000)
    return longest


def test_limiters_that_join_and_leave_all_the_time(place):
    """Under load, for so long."""
    seed = int(os.environ.get("WEIR_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}: WEIR_SEED={seed} runs it again", flush=True)
    with cluster.shared() as servers, Stage(place, "stage", servers, **QUICK) as stage:
        stage.feed(PARTITIONS)
        crew = Crew(stage, random.Random(seed))
        since_ms = int(1000 * time.time())
        feed = stage.start_feed(RATE * SECONDS, RATE)
        half_s, kills_from_ms = time.monotonic() + SECONDS / 2, 2**62
        while feed.code() is None:
            kills = time.monotonic() > half_s
            if kills:
                kills_from_ms = min(kills_from_ms, int(1000 * time.time()))
            crew.change(kills)
            time.sleep(crew.dice.uniform(0.3, 2))  # moments are what is drawn
        end_feed(feed)
        while len(crew.running()) < 2:
            crew.change(False)
        running = crew.running()
        stage.until_stored(running[0])
        for one in running:
            crew.note_takes(one)
            assert one.until_up().stop() == 0, one.said()[-2000:]
        taken, take_s = crew.taken()
        longest = pauses(stage, since_ms, kills_from_ms)
        print(json.dumps({"bench": "cluster_moves", "seconds": SECONDS, "frames": stage.fed, **crew.deeds,
                          "partitions_taken": taken, "take_s_at_most": take_s,
                          **longest}), flush=True)
        assert longest["pause_s"] < MOST_PAUSE_S, longest
        compare(place, stage)


if __name__ == "__main__":
    cases.main(globals())
