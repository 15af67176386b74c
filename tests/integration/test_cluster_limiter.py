#!/usr/bin/env python3
"""weir-limiter on real servers: partitions that move, limiters that are killed, stopped or cut off from their store.

Each test gives the same frames (limiter_feed) to two topics; one of them is judged by one undisturbed limiter. Decisions
and the states of all partitions must be equal.
"""

import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cases import Skipped
from support.place import PATIENCE_S, ROOT
from support.roles import Roles
from support.traffic import sliding, zone

PARTITIONS = 8
EVENTS = 100  # in each frame
ZONES = [zone("site", [sliding(20, "1m"), {"algorithm": "fixed_window", "rate": 100, "window": "1h"}], id=1)]
SECTIONS = {"partitions": PARTITIONS, "archiver": {"enabled": True},
            "limiter": {"threads": 2, "memory": "64MiB", "checkpoint_interval": "300ms"}}
STATE = "SELECT partition_id, next_offset, clock_ms, policy_version, extra FROM partition_state WHERE role = 1"


class Stage:
    """A cluster's view with its limiters, and what fills its topic."""

    def __init__(self, place, name, servers, **sections):
        self.place, self.name, self.servers = place, name, servers
        sections = {**SECTIONS, **sections}
        sections["bus"] = {"partitions": sections.pop("partitions"), **sections.get("bus", {})}
        self.roles = Roles(place, servers, ZONES, **sections)
        self.fed = 0
        build = os.environ.get("WEIR_BUILD") or os.path.join(ROOT, "build", "release")
        self._feed = os.path.join(build, "tests", "limiter_feed")
        if not os.access(self._feed, os.X_OK):
            raise Skipped("limiter_feed is not built")
        self._config = place.config(ZONES, [], name=f"{name}-feed.json",
                                    **{key: value for key, value in self.roles.sections().items() if key != "zones"})

    def __enter__(self):
        self.roles.__enter__()
        return self

    def __exit__(self, *why):
        self.roles.__exit__(*why)

    def start_feed(self, frames, rate=0):
        """Lets so many more frames be sent: the process."""
        run = self.place.start(self._config, self.fed, self.fed + frames, rate, program=self._feed)
        self.fed += frames
        return run

    def feed(self, frames):
        """The same, to its end."""
        end_feed(self.start_feed(frames))

    def limiter(self, name, **sections):
        """A limiter that is started."""
        return self.roles.limiter(name=f"{self.name}-{name}", **sections)

    def ends(self):
        """The next offset of each partition of the events."""
        return {number: last for number, (_, last) in self.servers.kafka.extents(self.servers.topic("events")).items()}

    def stored(self):
        """The next offset of each partition's checkpoint."""
        return {row[0]: row[1] for row in self.servers.mariadb.query(STATE)}

    def until_stored(self, limiter):
        """Waits until checkpoints hold all of the log."""
        ends = self.ends()
        limiter.until(lambda: self.stored() == ends, "checkpoints hold all of the log")

    def decisions(self):
        """{id: bytes}; what is published again must be the same."""
        found = {}
        for message in self.servers.kafka.stream(self.servers.topic("decisions")):
            name = message.value.split(b'"', 4)[3]
            assert found.setdefault(name, message.value) == message.value, f"{name}: {found[name]}, {message.value}"
        return found


def end_feed(run):
    """Waits until it has sent everything."""
    assert run.wait(8 * PATIENCE_S) == 0, run.said()


def compare(place, stage):
    """Judges the same frames by one undisturbed limiter in a place of their own, and compares."""
    with cluster.shared() as servers, Stage(place, "undisturbed", servers) as reference:
        reference.feed(stage.fed)
        limiter = reference.limiter("only")
        reference.until_stored(limiter)
        assert limiter.stop() == 0
        expected, found = reference.decisions(), stage.decisions()
        assert len(expected) > 100, len(expected)
        missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
        assert not missing and not more, f"{len(missing)} are missing ({sorted(missing)[:3]}), " \
                                         f"{len(more)} are too many ({sorted(more)[:3]})"
        assert all(found[name] == value for name, value in expected.items())
        assert sorted(stage.servers.mariadb.query(STATE)) == sorted(servers.mariadb.query(STATE))


def all_live(limiters):
    """Whether these have all partitions between them."""
    return sum(one.value("weir_limiter_partitions", state="live") for one in limiters) == PARTITIONS


def until_all_live(limiters):
    """Waits for that."""
    limiters[0].until(lambda: all_live(limiters) and all(one.is_ready() for one in limiters), "all partitions are live")


# ---- partitions move ----

def test_one_limiter_judges_everything(place):
    """From the start to the pages and a good end."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(400)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        limiter.until(lambda: limiter.value("weir_limiter_lag_messages") == 0, "no lag is shown")
        assert limiter.value("weir_events_total") == 400 * EVENTS
        assert limiter.value("weir_verdicts_total", zone="site") == 400 * EVENTS
        assert limiter.value("weir_limiter_partitions_taken_total") == PARTITIONS
        assert limiter.page("/healthz")[0] == 200
        begun = time.monotonic()
        assert limiter.stop() == 0
        assert time.monotonic() - begun < PATIENCE_S
        compare(place, stage)


def test_limiters_that_come_and_go_share_the_work(place):
    """One, then three, then one other; nothing is judged again when all leave in good order."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(8)
        feed = stage.start_feed(6000, rate=400)
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
    quick = {"bus": {"kafka": {"session.timeout.ms": 6000}}}
    with cluster.shared() as servers, Stage(place, "stage", servers, **quick) as stage:
        stage.feed(8)
        feed = stage.start_feed(8000, rate=400)
        limiters = [stage.limiter(name).until_ready() for name in ("a", "b", "c")]
        for _ in range(8):
            victim = dice.choice(limiters)
            time.sleep(dice.uniform(0.1, 1.5))
            if dice.random() < 0.7:
                victim.kill()
            else:
                assert victim.stop() == 0
            time.sleep(dice.uniform(0, 1))
            victim.start()
        end_feed(feed)
        stage.until_stored(limiters[0])
        for one in limiters:
            assert one.stop() == 0
        compare(place, stage)


def test_a_zombie_is_fenced_and_joins_again(place):
    """SIGSTOP past the session, while another works on; then SIGCONT."""
    quick = {"bus": {"kafka": {"session.timeout.ms": 6000}}}
    with cluster.shared() as servers, Stage(place, "stage", servers, **quick) as stage:
        stage.feed(8)
        feed = stage.start_feed(8000, rate=400)
        zombie = stage.limiter("zombie").until_ready()
        other = stage.limiter("other")
        until_all_live([zombie, other])
        zombie.pause()
        other.until(lambda: all_live([other]), "has everything")
        zombie.resume()
        until_all_live([zombie, other])
        zombie.until(lambda: zombie.value("weir_limiter_partitions", state="live") > 0, "has its share again")
        end_feed(feed)
        stage.until_stored(other)
        assert zombie.value("weir_limiter_fenced_total") > 0, zombie.said()
        assert zombie.stop() == 0 and other.stop() == 0
        compare(place, stage)


# ---- trouble ----

def test_a_store_that_is_cut_off_stops_only_checkpoints(place):
    """Verdicts go on; checkpoints when it is back."""
    with cluster.shared() as servers, servers.proxied_mariadb() as proxy, \
            Stage(place, "stage", servers, store={"host": "127.0.0.1", "port": proxy.port}) as stage:
        stage.feed(400)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        proxy.cut()
        before = limiter.value("weir_events_total")
        stage_frames = 400
        stage_feed = stage.start_feed(stage_frames)
        limiter.until(lambda: limiter.value("weir_events_total") == before + stage_frames * EVENTS, "judges on")
        end_feed(stage_feed)
        limiter.until_says("trying again each second")
        assert stage.stored() != stage.ends()
        proxy.mend()
        stage.until_stored(limiter)
        assert limiter.page("/healthz")[0] == 200
        assert limiter.stop() == 0
        compare(place, stage)


def test_a_gap_in_the_log_stops_its_partition(place):
    """It names the way out; the other partitions go on."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(80)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        assert limiter.stop() == 0
        stage.feed(80)
        gap = stage.stored()[3] + 2
        servers.kafka.trim(servers.topic("events"), {3: gap})
        limiter.start()
        ends = stage.ends()
        limiter.until(lambda: {number: last for number, last in stage.stored().items() if number != 3}
                      == {number: last for number, last in ends.items() if number != 3}, "the others go on")
        limiter.until(lambda: limiter.page("/healthz")[0] == 503, "is not well")
        assert "partition 3 stands still" in limiter.page("/healthz")[1]
        assert "weir recover --accept-gap" in limiter.page("/healthz")[1]
        assert limiter.page("/readyz")[0] == 503
        assert limiter.value("weir_limiter_partitions", state="stuck") == 1
        assert limiter.stop() == 0


def test_what_is_no_frame_is_kept_in_the_dead_letters(place):
    """Garbage, a cut frame and an empty message."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(80)
        limiter = stage.limiter("one").until_ready()
        stage.until_stored(limiter)
        servers.kafka.produce(servers.topic("events"), [(None, b"garbage \xff", 2), (b"key", b"wF\x01", 2),
                                                        (None, b"", 2)])
        stage.feed(80)
        stage.until_stored(limiter)
        assert limiter.value("weir_malformed_frames_total") == 3
        assert limiter.value("weir_events_total") == 160 * EVENTS
        letters = servers.kafka.consume(servers.topic("deadletter"))
        assert len(letters) == 3 and all(b'"partition":2' in letter.value for letter in letters), letters
        assert limiter.stop() == 0


# ---- starting and ending ----

def test_it_says_what_hinders_a_start(place):
    """--check and the exit codes."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        stage.feed(8)

        def check(**sections):
            limiter = stage.limiter(f"check-{len(stage.roles.all)}", arguments=["--check"], **sections)
            code = limiter.run.wait()
            return code, limiter.run.out().decode() + limiter.run.said()

        code, said = check()
        assert code == 0 and "8 partitions" in said and "policy 1" in said, said
        code, said = check(bus={"type": "local"})
        assert code == 2 and "kafka" in said, said
        code, said = check(bus={"partitions": 4})
        assert code == 1 and "8" in said, said
        code, said = check(store={"password": "wrong"})
        assert code == 1 and "Access denied" in said, said
        limiter = stage.limiter("real").until_ready()
        limiter.reload()
        limiter.until_says("reload")
        assert limiter.stop() == 0


def test_it_ends_while_it_waits_for_its_servers(place):
    """SIGTERM before there is anything to stop."""
    with cluster.shared() as servers, Stage(place, "stage", servers) as stage:
        limiter = stage.limiter("early", store={"host": "127.0.0.1", "port": 1})
        limiter.until_says("trying again each second")
        assert limiter.page("/healthz")[0] == 200 and limiter.page("/readyz")[0] == 503
        assert limiter.stop() == 0


if __name__ == "__main__":
    cases.main(globals())
