# SPDX-License-Identifier: Apache-2.0
"""Limiters on one filled topic, and one that nothing disturbs, to hold them against.

Frames follow from their numbers (limiter_feed), so that two topics can be given the same: decisions and the states of
all partitions must be equal in the end.
"""

import os
import struct

from support import cluster
from support.cases import Skipped
from support.place import PATIENCE_S, ROOT
from support.roles import Roles
from support.traffic import fixed, sliding, zone

PARTITIONS = 8
EVENTS = 100  # in each frame
USERS = 200  # of each partition
ZONES = [zone("site", [sliding(20, "1m"), fixed(100, "1h")], id=1)]
SECTIONS = {"partitions": PARTITIONS, "archiver": {"enabled": True},
            "limiter": {"threads": 2, "memory": "64MiB", "checkpoint_interval": "300ms"}}
# Without the time at which the brokers took the last message: the rest of `extra` is of the messages alone.
STATE = ("SELECT partition_id, next_offset, clock_ms, policy_version, CONCAT(LEFT(extra, 28), SUBSTRING(extra, 37)) "
         "FROM partition_state WHERE role = 1")


class Stage:
    """A cluster's view with its limiters, and what fills its topic."""

    def __init__(self, place, name, servers, hot=False, **sections):
        """hot: every second frame goes to partition 0."""
        self.place, self.name, self.servers, self.hot = place, name, servers, hot
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
        run = self.place.start(self._config, self.fed, self.fed + frames, rate, *["hot"][:self.hot], program=self._feed)
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
        return self.servers.ends()

    def stored(self):
        """The next offset of each partition's checkpoint."""
        return self.servers.stored()

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

    def judged(self):
        """{(partition, offset): (hash of its judged frame, when it came first)}; what comes again must be the same."""
        found = {}
        for message in self.servers.kafka.stream(self.servers.topic("judged")):
            # Every frame has so many events of one zone: the offset stands before the verdicts, half a byte each.
            offset, = struct.unpack_from("<Q", message.value, len(message.value) - 8 - EVENTS // 2)
            place, same = (message.partition, offset), hash(message.value)
            assert found.setdefault(place, (same, message.time_ms))[0] == same, f"{place} is judged in two ways"
        return found

    def buckets(self):
        """The buckets of all partitions' checkpoints, sorted; the limiters have stopped."""
        users = [f"user{partition}-{number}\n" for partition in range(PARTITIONS) for number in range(USERS)]
        named = self.place.write(f"{self.name}.keys", "".join(users))
        return sorted(self.roles.command("state", "--keys", named).out().splitlines())

    def pauses_s(self, since_ms):
        """{partition: the longest time from a moment or a frame's verdict to the next}, of what was judged since the moment."""
        pauses, before = dict.fromkeys(range(PARTITIONS), 0), {}
        for (partition, _), (_, at_ms) in sorted(self.judged().items()):
            if at_ms >= since_ms:
                pauses[partition] = max(pauses[partition], (at_ms - before.get(partition, since_ms)) / 1000)
                before[partition] = at_ms
        return pauses


def end_feed(run):
    """Waits until it has sent everything."""
    assert run.wait(8 * PATIENCE_S) == 0, run.said()


def compare(place, stage):
    """Judges the same frames by one undisturbed limiter in a place of their own, and compares."""
    with cluster.shared() as servers, Stage(place, "undisturbed", servers, hot=stage.hot) as reference:
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
        judged, reference_judged = stage.judged(), reference.judged()
        assert judged.keys() == reference_judged.keys(), "other frames are judged"
        assert all(judged[at][0] == same for at, (same, _) in reference_judged.items()), "frames are judged otherwise"
        assert sorted(stage.servers.mariadb.query(STATE)) == sorted(servers.mariadb.query(STATE))
        require_buckets(stage.buckets(), reference.buckets())


def require_buckets(found, expected):
    """Requires the buckets of two stages, lines of `weir state`, to be the same; there are some."""
    assert expected, "the undisturbed limiter has stored no bucket"
    missing, more = set(expected) - set(found), set(found) - set(expected)
    assert len(found) == len(expected) and not missing and not more, \
        f"{len(found)} buckets and not {len(expected)}; {len(missing)} are missing ({sorted(missing)[:3]}), " \
        f"{len(more)} are too many ({sorted(more)[:3]})"


def all_live(limiters):
    """Whether these have all partitions between them."""
    return sum(one.value("weir_limiter_partitions", state="live") for one in limiters) == PARTITIONS


def until_all_live(limiters):
    """Waits for that."""
    limiters[0].until(lambda: all_live(limiters) and all(one.is_ready() for one in limiters), "all partitions are live")
