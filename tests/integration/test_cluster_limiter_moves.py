#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-limiter on real servers: partitions that move while frames come, limiters that are killed, zombies, hot users.

Each test gives the same frames to two topics; one of them is judged by one undisturbed limiter (support/limiters.py).
"""

import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.limiters import EVENTS, PARTITIONS, Stage, all_live, compare, end_feed, until_all_live

QUICK = {"bus": {"kafka": {"session.timeout.ms": 6000}}}  # so that who is dead is found so


def test_limiters_that_come_and_go_share_the_work(place):
    """One, then three, then one other; nothing is judged again when all leave in good order."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(8)
        feed = stage.start_feed(4000, rate=400)
        first = stage.limiter("first").until_ready()
        others = [stage.limiter(name) for name in ("second", "third")]
        until_all_live([first, *others])
        for one in (first, *others):
            one.until(lambda one=one: one.value("weir_limiter_partitions", state="live") >= 2, "has its share")
        assert first.stop() == 0
        until_all_live(others)
        assert others[0].stop() == 0
        until_all_live(others[1:])
        end_feed(feed)
        stage.until_stored(others[1])
        assert others[1].stop() == 0
        compare(place, stage)


def test_limiters_that_are_killed_at_random_moments(place):
    """kill -9, SIGTERM and new starts, while frames come."""
    seed = int(os.environ.get("WEIR_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}: WEIR_SEED={seed} runs it again", flush=True)
    dice = random.Random(seed)
    with cluster.shared() as servers, Stage(place, "stage", servers, **QUICK) as stage:
        stage.feed(8)
        feed = stage.start_feed(5000, rate=400)
        limiters = [stage.limiter(name).until_ready() for name in ("a", "b", "c")]
        for _ in range(6):
            victim = dice.choice(limiters)
            time.sleep(dice.uniform(0.1, 1.5))
            if dice.random() < 0.7:
                victim.kill()
            else:
                assert victim.until_up().stop() == 0
            time.sleep(dice.uniform(0, 1))
            victim.start()
        end_feed(feed)
        stage.until_stored(limiters[0])
        for one in limiters:
            assert one.until_up().stop() == 0
        compare(place, stage)


def test_only_the_partitions_of_who_is_killed_wait(place):
    """For as long as the session of the dead lasts; the others stop neither then nor when it is over."""
    with cluster.shared() as servers, \
            Stage(place, "stage", servers, bus={"kafka": {"session.timeout.ms": 12000}}) as stage:
        stage.feed(8)
        limiters = [stage.limiter(name).until_ready() for name in ("a", "b", "c")]
        until_all_live(limiters)
        victim, others = limiters[0], limiters[1:]
        had = victim.value("weir_limiter_partitions", state="live")
        assert 0 < had < PARTITIONS, had
        since_ms = int(1000 * time.time())
        feed = stage.start_feed(8000, rate=400)
        victim.until(lambda: victim.value("weir_limiter_events_total") > 100 * EVENTS, "judges")
        victim.kill()
        until_all_live(others)
        end_feed(feed)
        stage.until_stored(others[0])
        assert all(one.stop() == 0 for one in others)
        pauses = stage.pauses_s(since_ms)
        # Its last heartbeat, up to 3 s before its end, began the session of 12 s.
        assert sum(pause_s > 8 for pause_s in pauses.values()) == had, f"{had} were the victim's: {pauses}"
        compare(place, stage)


def test_a_zombie_is_fenced_and_joins_again(place):
    """SIGSTOP past the session, with changes that no checkpoint holds, while another works on; then SIGCONT."""
    with cluster.shared() as servers, Stage(place, "stage", servers, **QUICK) as stage:
        stage.feed(8)
        feed = stage.start_feed(6000, rate=400)
        # Its checkpoints are so far apart that none can come between the look at their age and the pause.
        zombie = stage.limiter("zombie", limiter={"checkpoint_interval": "5s"}).until_ready()
        other = stage.limiter("other")
        until_all_live([zombie, other])
        zombie.until(lambda: 0.5 < zombie.value("weir_limiter_unsaved_age_seconds") < 2, "has changes that are not stored")
        zombie.pause()
        other.until(lambda: all_live([other]), "has everything")
        assert zombie.value("weir_limiter_fenced_total") == 0
        zombie.resume()
        zombie.until(lambda: zombie.value("weir_limiter_fenced_total") > 0, "its checkpoint is refused")
        until_all_live([zombie, other])
        zombie.until(lambda: zombie.value("weir_limiter_partitions", state="live") > 0, "has its share again")
        end_feed(feed)
        stage.until_stored(other)
        assert zombie.stop() == 0 and other.stop() == 0
        compare(place, stage)


def test_a_group_that_gives_nothing_is_told_of(place):
    """It waits for a member that hangs, until its session ends: nothing fails meanwhile, and nothing goes on."""
    with cluster.shared() as servers, \
            Stage(place, "stage", servers, bus={"kafka": {"session.timeout.ms": 60000}}) as stage:
        stage.feed(8)
        member = stage.limiter("member").until_ready()
        member.pause()
        other = stage.limiter("other")
        other.until_says("group: the limiters' consumer group has assigned nothing for 15 s")
        member.resume()
        until_all_live([member, other])
        other.until_says("INFO group: recovered after")
        # Who was stopped blames itself, and no broker.
        member.until_says("WARNING process: this process did not run for ")
        assert "has assigned nothing" not in member.said(), member.said()
        assert member.stop() == 0 and other.stop() == 0


def test_a_hot_partition_moves_others_to_another_thread(place):
    """Time in which the limiter stands still amid its work is time in which its threads were busy, on any machine."""
    with cluster.shared() as servers, Stage(place, "stage", servers, hot=True) as stage:
        stage.feed(8)
        limiter = stage.limiter("only").until_ready()

        def moves_after_more():
            feed = stage.start_feed(2000)
            limiter.until(lambda: limiter.value("weir_limiter_events_total") > (stage.fed - 1900) * EVENTS, "judges")
            limiter.pause()
            end_feed(feed)
            time.sleep(0.6)  # longer than the balance looks back: this is what is measured
            limiter.resume()
            return limiter.value("weir_limiter_moves_total")

        limiter.until(moves_after_more, "a thread gives something away")
        limiter.until(lambda: all_live([limiter]), "what moved is live")
        limiter.until_says("which is less busy")
        assert limiter.value("weir_limiter_fenced_total") == 0
        stage.until_stored(limiter)
        assert limiter.stop() == 0
        compare(place, stage)


if __name__ == "__main__":
    cases.main(globals())
