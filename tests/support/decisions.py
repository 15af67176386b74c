# SPDX-License-Identifier: Apache-2.0
"""The decisions topic for tests of `weir subscribe`: decisions as a limiter publishes them, and what ought to be live.

    with cluster.shared() as c:
        topic = Topic(place, c)
        weir = topic.subscribe("file:" + path)
        topic.block("203.0.113.9", for_s=60)
"""

import itertools
import json
import re
import time
import zlib

from support import metrics
from support.place import PATIENCE_S, free_port, until

PARTITIONS = 4
_HOUR_S = 3600


def now_ms():
    """The time of the wall clock, by which blocks end."""
    return int(1000 * time.time())


def joined(key):
    """A key's values (bytes or text) as the message key has them."""
    raw = [value if isinstance(value, bytes) else value.encode() for value in key]
    return b"|".join(value.replace(b"\\", b"\\\\").replace(b"|", b"\\|") for value in raw)


def partition_of(key):
    """Any function of the key: a bucket's decisions are all in one partition."""
    return zlib.crc32(joined(key)) % PARTITIONS


class Subscriber:
    """A running `weir subscribe`."""

    def __init__(self, weir, port, target):
        self.weir, self.port = weir, port
        self.gateway = re.sub(r"(?<=://)[^@]*@", "", target)  # as a label: without a password
        if target.startswith("exec:"):
            self.gateway = target.split()[0]

    def page(self):
        """Its metrics; None while it does not answer: not yet, or as the test has ended it."""
        page = metrics.scrape(self.port)
        if page is None:
            self.weir.require_asked()
        return page

    def value(self, name, **labels):
        """A metric of weir_subscribe_…; None while it does not answer."""
        page = self.page()
        return page and page.value(f"weir_subscribe_{name}", gateway=self.gateway, **labels)

    def is_ready(self):
        """Whether /readyz says so."""
        answer = metrics.get(self.port, "/readyz")
        if answer is None:
            self.weir.require_asked()
        return answer is not None and answer[0] == 200

    def until(self, condition, what, patience_s=2 * PATIENCE_S):
        """Waits for condition() for as long as it runs."""
        return until(condition, what, patience_s, self.weir)

    def until_ready(self):
        """Waits until its list is in place: itself."""
        self.until(self.is_ready, "the list is in place")
        return self


def start(place, config, target, *options, **popen):
    """Starts a subscriber: a Subscriber."""
    port = free_port()
    weir = place.start("subscribe", "--config", config, "--to", target, "--http", f"127.0.0.1:{port}", *options, **popen)
    return Subscriber(weir, port, target)


class Topic:
    """A topic, its own configuration, and the decisions that were published: what is live follows from those."""

    def __init__(self, place, cluster, make=True, **sections):
        """make: else the test makes the topic itself, by make()."""
        self.place, self.cluster = place, cluster
        sections = cluster.sections(partitions=PARTITIONS, **sections)
        self.config = place.write("subscribe.json", json.dumps(sections))
        self._offsets = [itertools.count(1) for _ in range(PARTITIONS)]
        self.live = {}  # (zone, joined key): the newest decision
        if make:
            self.make()

    def make(self):
        """Makes the topic, as the first limiter would."""
        self.cluster.kafka.create(self.cluster.topic("decisions"), PARTITIONS, max_message_bytes=4 << 20)

    def decision(self, key, zone="site", for_s=_HOUR_S, until_ms=None, at_ms=None, **more):
        """A decision that was not published yet; for_s 0: a lift, None: without end."""
        partition = partition_of(key)
        at_ms = at_ms or now_ms()
        decision = {"id": f"{partition}-{next(self._offsets[partition])}-0", "zone": zone,
                    "key": [value.decode(errors="replace") if isinstance(value, bytes) else value for value in key],
                    "action": "lift" if for_s == 0 else "block", "at": at_ms, "until": at_ms}
        if for_s != 0:
            decision["until"] = until_ms or (at_ms + int(1000 * for_s) if for_s else 2 ** 63 - 1)
            decision |= {"limit": {"algorithm": "sliding_window", "rate": 10, "window": 60000}, "count": 10,
                         "mode": "enforce"}
        decision |= more
        self.live[zone, joined(key)] = decision
        return key, decision

    def publish(self, decisions):
        """Publishes (key, decision) pairs."""
        self.cluster.kafka.produce(self.cluster.topic("decisions"), [
            (decision["zone"].encode() + b"|" + joined(key),
             json.dumps(decision, separators=(",", ":")).encode(), partition_of(key)) for key, decision in decisions])

    def block(self, *key, **more):
        """Publishes one block: the decision."""
        pair = self.decision(key, **more)
        self.publish([pair])
        return pair[1]

    def lift(self, *key, **more):
        """Publishes one lift."""
        return self.block(*key, for_s=0, **more)

    def expected(self, zone=None, at_ms=None):
        """{(zone, joined key): decision} of what is to be live at a moment: now."""
        at_ms = at_ms or now_ms()
        return {bucket: decision for bucket, decision in self.live.items()
                if decision["until"] > at_ms and decision["action"] == "block" and zone in (None, bucket[0])}

    def subscribe(self, target, *options, **popen):
        """Starts a subscriber: a Subscriber."""
        return start(self.place, self.config, target, *options, **popen)
