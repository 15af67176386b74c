#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir-archiver keeps decisions of zones in shadow mode, each once, in MariaDB; and does without their topic."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster, decisions
from support.place import until
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

ZONES = [zone("site", [sliding(3, "1h")], id=1), zone("trial", [sliding(2, "1h")], id=2, mode="shadow")]
TABLES = ("decision_history", "shadow_history")
TOPIC = "decisions.shadow"
POSITION_BYTES = 8 + 24  # of a topic, behind what a partition's state had before: the next offset and a mark


class Scene:
    """A limiter, a collector, an archiver, and users that come too often."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        self.log = place.write("log", b"")
        self.users = []
        roles.apply()
        self.limiter = roles.limiter().until_ready()
        self.archiver = roles.archiver().until_ready()
        self.collector = roles.collector([source(self.log)])

    def visit(self, *users):
        """Requests that are too many in both zones."""
        self.place.append("log", "".join(burst(user, 5, decisions.now_ms()) for user in users))
        self.users += users

    def kept(self, table):
        """[(zone, key, mode)] of a table's decisions."""
        return sorted((zone, bucket.decode() if isinstance(bucket, bytes) else bucket, mode) for zone, bucket, mode in
                      self.one.mariadb.query(f"SELECT zone, bucket, mode FROM {table}"))

    def until_kept(self, table, *users):
        """Waits until each of them has a decision there."""
        self.archiver.until(lambda: set(users) <= {key for _, key, _ in self.kept(table)}, f"{table} has {users}")

    def require_once(self):
        """Each user's block is in both tables, once."""
        for table in TABLES:
            self.until_kept(table, *self.users)
        for table, name, mode in zip(TABLES, ("site", "trial"), ("enforce", "shadow")):
            assert self.kept(table) == sorted((name, user, mode) for user in self.users), table


def test_each_is_kept_once_and_nothing_waits_for_their_topic(place):
    """Through kills, an upgrade, and a topic that is away and made anew."""
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": 2}, limiter={"checkpoint_interval": "200ms"},
                                        archiver={"enabled": True, "interval": "100ms"}) as roles:
        scene = Scene(place, one, roles)
        for life in range(2):
            scene.visit(*(f"u{life}-{number}" for number in range(10)))
            if life > 0:
                scene.until_kept("shadow_history", f"u{life - 1}-9")
            scene.archiver.kill()
            scene.archiver.start().until_ready()
        scene.require_once()
        assert scene.archiver.value("weir_archiver_malformed_total") == 0
        an_archive_of_the_version_before_is_upgraded(scene)
        nothing_waits_for_the_topic(scene)
        assert all(role.stop() == 0 for role in (scene.collector, scene.limiter, scene.archiver))


def an_archive_of_the_version_before_is_upgraded(scene):
    """Its rows stay, and what the topic has comes, once."""
    assert scene.archiver.stop() == 0 and scene.limiter.stop() == 0
    with scene.one.mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP VIEW shadow_decisions")
        cursor.execute("DROP TABLE shadow_history")
        cursor.execute("UPDATE schema_version SET version = 3")
        cursor.execute("SELECT partition_id, extra FROM partition_state WHERE role = 2")
        for partition, extra in cursor.fetchall():
            assert extra[0] == 3, extra
            cursor.execute("UPDATE partition_state SET extra = %s WHERE role = 2 AND partition_id = %s",
                           (b"\x02" + extra[1:-POSITION_BYTES], partition))
        connection.commit()
    scene.archiver.start().until_ready()
    scene.limiter.start().until_ready()
    scene.visit("after")
    scene.require_once()


def nothing_waits_for_the_topic(scene):
    """Enforced decisions and counts are archived on, and those of the new topic by themselves."""
    one, topic = scene.one, scene.one.topic(TOPIC)
    before = [key for _, key, _ in scene.kept("shadow_history")]
    one.kafka.delete([topic])
    until(lambda: topic not in one.kafka.topics(), f"{topic} is gone")
    scene.archiver.until_says(f"topic {topic} does not exist any more")
    enforced = list(scene.users)
    for number in range(3):
        user = f"without-{number}"
        scene.visit(user)
        scene.until_kept("decision_history", user)
        enforced.append(user)
    assert scene.archiver.is_ready() and scene.archiver.page("/healthz")[0] == 200, scene.archiver.page("/healthz")
    assert scene.archiver.value("weir_archiver_partitions_stuck") == 0
    counted = "SELECT coalesce(sum(passed + blocked), 0) FROM hourly WHERE zone = 'trial'"
    scene.archiver.until(lambda: one.mariadb.one(counted) == 5 * len(enforced), "their requests are counted")
    scene.roles.apply()
    users = iter(range(1000))

    def is_kept_again():
        """A producer hears a little later than its process that a topic exists: until then it drops what is sent."""
        scene.visit(f"again-{next(users)}")
        return any(key.startswith("again-") for _, key, _ in scene.kept("shadow_history"))

    scene.archiver.until(is_kept_again, "reads the new topic")
    keys = [key for _, key, _ in scene.kept("shadow_history")]
    assert len(keys) == len(set(keys)) >= len(before) and set(before) <= set(keys), keys
    assert "is stopped" not in scene.archiver.said(), scene.archiver.said()


if __name__ == "__main__":
    cases.main(globals())
