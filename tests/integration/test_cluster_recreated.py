#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Topics that are deleted and made anew, under daemons at work and while they are away, and weir recover."""

import contextlib
import json
import os
import shutil
import sqlite3
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster, decisions, frames
from support.blocks_in_redis import block_key, held
from support.place import until
from support.roles import Roles
from support.run_local import PARTITIONS, Run
from support.traffic import burst, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2
LIFE = 10 ** 10  # so much higher are the numbers of a topic's second life
LONG_S = 120  # a partition that is parked is tried again after half a minute


def ask_archive(one):
    """What the archive of one machine has: (requests, decisions)."""
    with contextlib.closing(sqlite3.connect(f"file:{one.state}/weir.db?mode=ro", uri=True, timeout=30)) as store:
        (total,), = store.execute("SELECT coalesce(sum(passed + blocked), 0) FROM zone_hourly")
        (count,), = store.execute("SELECT count(*) FROM decision_history")
    return total, count


class Site:
    """A cluster whose daemons archive and block, and a log that grows."""

    def __init__(self, place, one, partitions=1):
        self.place, self.one = place, one
        self.roles = Roles(place, one, [zone("site", [sliding(3, "1h")], id=1)], bus={"partitions": partitions},
                           limiter={"checkpoint_interval": "200ms"}, archiver={"enabled": True, "interval": "100ms"})
        self.log = place.write("log", b"")
        self.lines, self.ids = 0, []
        self.collector = None
        self.config = place.write("recover.json", json.dumps(self.roles.sections()))

    def grow(self, user, count, each=1):
        """Appends lines of a user, in messages of `each` lines, and waits until the log of events has them."""
        for _ in range(count // each):
            before = sum(self.one.ends().values())
            self.place.append("log", burst(user, each, decisions.now_ms()))
            self.lines += each
            self.collector.until(lambda before=before: sum(self.one.ends().values()) > before, "has sent a message")

    def archived(self):
        """How many requests the archive has."""
        return int(self.one.mariadb.one("SELECT coalesce(sum(total), 0) FROM hourly WHERE zone = 'site'"))

    def archived_ids(self):
        """The decisions that the archive has."""
        return sorted(f"{partition}-{offset}-{pair}" for partition, offset, pair in self.one.mariadb.query(
            "SELECT partition_id, log_offset, pair FROM decision_history"))

    def blocked(self):
        """{user: id} of the decisions on their topic."""
        found = [json.loads(message.value) for message in self.one.kafka.consume(self.one.topic("decisions"))]
        return {decision["key"][0]: decision["id"] for decision in found if decision["action"] == "block"}

    def delete(self, name):
        """Deletes a topic, and waits until the brokers have it no more."""
        topic = self.one.topic(name)
        self.one.kafka.delete([topic])
        until(lambda: topic not in self.one.kafka.topics(), f"{topic} is gone")

    def recover(self, *words):
        """`weir recover --accept-gap`: the run, at its end."""
        return self.place.run("recover", "--accept-gap", "--config", self.config, "--all", *words)


@contextlib.contextmanager
def site(place, **more):
    """A site, whose daemons end with it."""
    with cluster.shared() as one:
        made = Site(place, one, **more)
        with made.roles:
            made.roles.apply()
            yield made


def test_events_made_anew_under_daemons_at_work(place):
    """The archive counts on, a gateway blocks, and no id is given twice."""
    with site(place) as here:
        one, roles = here.one, here.roles
        limiter, archiver = roles.limiter().until_ready(), roles.archiver().until_ready()
        here.collector = roles.collector([source(here.log)])
        subscriber = decisions.start(place, here.config, one.redis_url)
        here.grow("ann", 12)
        archiver.until(lambda: here.archived() == here.lines, "all is archived")
        subscriber.until(lambda: block_key("site", b"ann") in held(one.redis), "ann is blocked")
        before = here.blocked()
        here.delete("events")
        roles.apply()
        limiter.until_says("was recreated")
        told = next(one for one in limiter.run.said().splitlines() if "was recreated" in one)
        assert "topic-recreated" in told and "is lost" not in told, told
        told = here.recover()
        assert told.code() == USAGE and "was recreated" in told.out().decode(), (told.out(), told.said())
        forgotten = place.run("forget", "zoe", "--config", here.config)
        assert forgotten.code() == FAILED and "weir recover --accept-gap" in forgotten.out().decode(), forgotten.out()
        recovers = [here.recover("--yes"), here.recover("--yes")]  # at the same time: one finds what the other did
        assert [done.code() for done in recovers] == [DONE, DONE], [(done.out(), done.said()) for done in recovers]
        assert any("continues at offset 0" in done.out().decode() for done in recovers), [done.out() for done in recovers]
        limiter.until(lambda: limiter.value("weir_limiter_partitions", state="stuck") == 0, "goes on", LONG_S)
        here.grow("bob", 5)
        until(lambda: "bob" in here.blocked(), "bob is decided about", LONG_S, limiter.run)
        subscriber.until(lambda: block_key("site", b"bob") in held(one.redis), "bob is blocked")
        archiver.until(lambda: here.archived() == here.lines, "the archive counts on")
        assert archiver.value("weir_archiver_repeated_frames_total") == 0
        after = here.blocked()
        assert after["ann"] == before["ann"] and len(set(after.values())) == 2, after
        assert LIFE < int(after["bob"].split("-")[1]) < 2 * LIFE, after
        judged = [frames.decode(m.value) for m in one.kafka.consume(one.topic("judged"))]
        assert sum(frame.pairs for frame in judged) == here.lines
        numbers = [frame.judged_offset for frame in judged]
        assert numbers == sorted(set(numbers)), numbers
        again = here.recover("--yes")
        assert again.code() == DONE and "no gap" in again.out().decode(), again.out()
        for role in (here.collector, limiter, archiver):
            assert role.stop() == DONE, role.said()


def test_events_made_anew_and_grown_past_the_checkpoints(place):
    """While limiters were away the new topic has got more messages than they had judged: none of it is skipped."""
    with site(place) as here:
        one, roles = here.one, here.roles
        limiter, archiver = roles.limiter().until_ready(), roles.archiver().until_ready()
        here.collector = roles.collector([source(here.log)])
        here.grow("ann", 3)
        archiver.until(lambda: here.archived() == here.lines, "all is archived")
        assert limiter.stop() == DONE
        (judged,) = one.stored().values()
        here.delete("events")
        roles.apply()
        here.grow("bob", judged + 3)
        limiter.start()
        limiter.until_says("was recreated")
        limiter.until(lambda: limiter.value("weir_limiter_partitions", state="stuck") == 1, "shows it")
        assert limiter.page("/healthz")[0] == 503 and here.blocked() == {}
        told = here.recover()
        assert told.code() == USAGE and "was recreated" in told.out().decode(), (told.out(), told.said())
        assert here.recover("--yes").code() == DONE
        until(lambda: "bob" in here.blocked(), "bob is decided about", LONG_S, limiter.run)
        archiver.until(lambda: here.archived() == here.lines, "all of the new topic is judged, and archived")
        limiter.kill()
        limiter.start()
        here.grow("ann", 1)
        until(lambda: "ann" in here.blocked(), "what was counted before is kept", LONG_S, limiter.run)
        archiver.until(lambda: here.archived() == here.lines, "all is archived")


def topic_of_the_archive_is_made_anew(place, name):
    """Under daemons at work; it grows past what was archived before anybody says anything."""
    with site(place) as here:
        roles = here.roles
        limiter, archiver = roles.limiter().until_ready(), roles.archiver().until_ready()
        here.collector = roles.collector([source(here.log)])
        here.grow("ann", 4)
        archiver.until(lambda: here.archived() == here.lines and len(here.archived_ids()) == 1, "all is archived")
        assert archiver.stop() == DONE
        here.delete(name)
        here.grow("bob", 4)
        limiter.until(lambda: limiter.value("weir_limiter_publish_failures_total") > 0, "goes back", LONG_S)
        roles.apply()
        here.grow("eve", 4)
        until(lambda: set(here.blocked()) >= {"bob", "eve"}, "they are decided about", LONG_S, limiter.run)
        archiver.start()
        archiver.until_says("was recreated")
        archiver.until(lambda: archiver.value("weir_archiver_partitions_stuck") == 1, "shows it")
        assert here.recover("--yes").code() == DONE
        archiver.until_says("continues")
        archiver.until(lambda: here.archived() == here.lines, "what was judged is archived, without a restart")
        archiver.until(lambda: len(here.archived_ids()) == 3, "so are the decisions")
        assert archiver.value("weir_archiver_partitions_stuck") == 0
        assert limiter.value("weir_limiter_events_total") == here.lines, "what is judged again is not counted again"
        assert limiter.value("weir_limiter_decisions_total") == 3
        again = here.recover("--yes")
        assert again.code() == DONE and "archive: no gap" in again.out().decode(), again.out()


def test_decisions_made_anew(place):
    """The archive goes on with all that the new topic has."""
    topic_of_the_archive_is_made_anew(place, "decisions")


def test_judged_made_anew(place):
    """Likewise."""
    topic_of_the_archive_is_made_anew(place, "judged")


def test_the_log_of_one_machine_is_removed(place):
    """Beside a store that is kept: nothing is judged until a person says so, and then all that comes."""
    one = Run(place, zones=[zone("site", [sliding(3, "1h")], id=1)], archiver={"enabled": True, "interval": "100ms"})
    one.start()
    for number in range(6):
        one.append(burst("ann", 1, decisions.now_ms()))
        until(lambda number=number: ask_archive(one)[0] == number + 1, "it is archived", running=one.weir)
    before = one.published(key=["ann"])["id"]
    one.stop()
    shutil.rmtree(os.path.join(one.state, "log"))
    run = place.run("run", "--config", one.config, "--state", one.state, "--decisions", one.out)
    assert run.code() not in (None, DONE) and "was recreated" in run.said(), run.said()
    told = one.command("recover", "--accept-gap", "--all", code=USAGE)
    assert "was recreated" in told.out().decode(), told.out()
    for number in range(10):  # killed between its steps, or after them
        killed = place.run("recover", "--accept-gap", "--all", "--yes", "--state", one.state)
        time.sleep(number * 0.01)
        killed.kill()
    one.command("recover", "--accept-gap", "--all", "--yes")
    one.start()
    one.append(burst("bob", 4, decisions.now_ms()))
    after = one.published(key=["bob"])["id"]
    assert LIFE <= int(after.split("-")[1]) < 2 * LIFE, (before, after)
    until(lambda: ask_archive(one) == (10, 2), "the archive counts on", running=one.weir)
    assert [decision["id"] for decision in one.decisions()] == [before, after]
    why = json.loads(one.command("explain", after, "--json", "--config", one.config).out())
    assert why["again"]["id"] == after and why["equal"] and len(why["events"]) == 4, why
    gone = json.loads(one.command("explain", before, "--json", "--config", one.config, code=FAILED).out())
    assert gone["again"] is None and "was in the topic before the topic was recreated" in gone["missing"][0], gone
    one.stop()
    done = one.command("recover", "--accept-gap", "--all", "--yes")
    assert done.out().count(b"no gap: the checkpoint") == PARTITIONS and b"archive: no gap" in done.out(), done.out()


def test_the_store_of_one_machine_is_removed(place):
    """Beside a log that is kept: it is judged again from its beginning, with the same ids."""
    one = Run(place, zones=[zone("site", [sliding(3, "1h")], id=1)])
    one.start()
    one.append(burst("ann", 5, decisions.now_ms()))
    before = one.published(key=["ann"])
    one.stop()
    for name in os.listdir(one.state):
        if name.startswith("weir.db"):
            os.remove(os.path.join(one.state, name))
    os.rename(one.out, one.out + ".before")
    one.start()
    assert one.published(key=["ann"]) == before
    one.stop()


if __name__ == "__main__":
    cases.main(globals())
