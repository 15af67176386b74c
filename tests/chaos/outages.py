# SPDX-License-Identifier: Apache-2.0
"""What can befall the servers of a cluster, and what each of weir's roles has to say while it lasts.

An outage begins, is felt, and ends: for each server those who need it say that
they miss it, and everyone else works on.
"""

import contextlib
import time

from stage import FLOOD_BYTES, FLOOD_LINES, TEN_MINUTES_S
from support import mariadb
from support.proxy import DOWN, UP

KAFKA, MARIADB, REDIS = "kafka", "mariadb", "redis"
NO_PARTITION = 4000000000


class Outages:
    """The outages of one round: each is a method of its words, such as kafka_stopped()."""

    def __init__(self, stage, proxies):
        """proxies: {server: [Proxy]}"""
        self.stage, self.served, self.proxies = stage, stage.served, proxies
        self._moments = stage.one.moments

    def play(self, server, what):
        """One outage, from its beginning until all is well again."""
        mark = self.stage.mark()
        began = time.monotonic()
        getattr(self, what)(server, mark)
        lasted_s = time.monotonic() - began
        self.stage.one.tell(f"{server} {what} for {lasted_s:.1f} s; {self.stage.until_well()}")

    # ---- kinds: each lasts until it is over ----

    def stopped(self, server, mark):
        """Asked to end, and started again."""
        self._without(server, mark, lambda: self.served.part("stop", server),
                      lambda: self.served.part("start", server))

    def killed(self, server, mark):
        """Ended at once, and started again."""
        self._without(server, mark, lambda: self.served.part("kill", server),
                      lambda: self.served.part("start", server))

    def away(self, server, mark):
        """Away for so long that every timeout has run out, while more is logged than a collector may hold."""
        self.served.part("stop", server)
        began = time.monotonic()
        self._until_felt(server, mark)
        self.stage.load.flood()
        for limiter in self.stage.limiters:
            limiter.until(lambda one=limiter: "partitions last held" in one.page("/readyz")[1], "says that it waits")
        self._until_at_rest(self.stage.collectors[0])
        time.sleep(max(0, began + TEN_MINUTES_S - time.monotonic()))  # it is the time that counts
        self.served.part("start", server)

    def full(self, server, mark):
        """Nothing more goes to its disk. A broker ends itself then, MariaDB may: it is given room and started again."""
        name = "broker-1" if server == KAFKA else server
        disk = self.served.disks[name]
        self._without(server, mark, lambda: self._fill(server, disk), disk.drain)
        self.stage.one.tell(f"{name} is " + self.served.part("status", name).split()[1])
        if server == KAFKA:
            self.served.part("kill", name)  # whatever is left of it
        try:
            self.served.part("start", name)
        except AssertionError:  # it was about to end itself
            self.served.part("start", name)
        if server == MARIADB:
            self.served.mariadb.query("DELETE FROM segment_state WHERE partition_id = %s", NO_PARTITION)

    def _fill(self, server, disk):
        disk.fill()
        if server == MARIADB:
            with contextlib.suppress(mariadb.Error):  # it may end with that
                self._fill_tables()

    def _fill_tables(self):
        """Takes what the table of checkpoints has free within its file, so that the next one needs the disk."""
        with self.served.mariadb.connect() as connection, connection.cursor() as cursor:
            segment = 0
            for size in (1 << 18, 1 << 14, 1 << 10):
                with contextlib.suppress(mariadb.Error):
                    while True:
                        segment += 1
                        cursor.execute("INSERT INTO segment_state VALUES (%s, %s, 1, 1, %s, repeat('x', %s))",
                                       (NO_PARTITION, segment, size, size))

    def cut(self, server, mark):
        """No connection is there, and none is made."""
        self._without(server, mark, lambda: self._proxies(server, "cut"), lambda: self._proxies(server, "mend"))

    def stalled(self, server, mark):
        """Connections stay, and nothing goes through them, or no answers."""
        ways = self._moments.choice([(), (DOWN,), (UP,)])
        self._without(server, mark, lambda: self._proxies(server, "stall", *ways),
                      lambda: self._proxies(server, "mend"), stalled=True)

    def reset(self, server, _):
        """Connections break again and again, at any moment; new ones are made."""
        for _ in range(self._moments.randint(4, 8)):
            time.sleep(self._moments.uniform(0, 0.4))
            self._proxies(server, "drop", True)

    # ---- what is felt ----

    def _without(self, server, mark, begin, end, stalled=False):
        if server == MARIADB:
            self._until_all_live()
        begin()
        try:
            self._until_felt(server, mark, stalled)
            time.sleep(self._moments.uniform(0, 1))
        finally:
            end()

    def _until_all_live(self):
        """Who was given partitions a moment ago waits for their state, and could not judge on without a store."""
        for role in self.stage.limiters:
            role.until(lambda role=role: all(not role.value("weir_limiter_partitions", state=state) for state in ("taking", "paused", "waiting")),
                       "its partitions are live")
        time.sleep(1)  # the page has its gauges anew each second

    def _until_felt(self, server, mark, stalled=False):
        """Waits until those who need it say so, and sees that others work on."""
        stage = self.stage
        if server == KAFKA:
            for role in stage.collectors:
                role.until(lambda role=role: not role.is_ready(), "is not ready")
            for name in stage.everyone:
                stage.until_says(name, "WARNING bus: ", mark)
        elif server == MARIADB:
            for role in stage.limiters:
                role.until(lambda role=role: role.value("weir_limiter_unsaved_age_seconds") > 1, "its checkpoint grows old")
                if not stalled:  # it waits for an answer for 10 s before it says so
                    stage.until_says(role.name, "WARNING store: ", mark)
            stage.until_judges_on("without a store")
        else:
            stage.until_says("subscribe", "WARNING redis: ", mark)
            stage.subscriber.until(lambda: not stage.subscriber.is_ready(), "is not ready")
            stage.until_judges_on("without Redis")

    @staticmethod
    def _until_at_rest(collector):
        """Waits until it reads no more, though there is more."""
        seen = []

        def rests():
            seen.append(collector.value("weir_source_position"))
            return len(seen) > 40 and len(set(seen[-40:])) == 1
        collector.until(rests, "reads no more")
        assert collector.value("weir_source_lag_bytes") > FLOOD_LINES * FLOOD_BYTES // 4

    def _proxies(self, server, deed, *words):
        for proxy in self.proxies[server]:
            getattr(proxy, deed)(*words)
