#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A queue follows its consumer: as it works, weir's list in Redis lets the producer in; beside it, the seed's own script.

A producer puts work into a Redis stream at twice the consumer's speed, and asks its gateway before: weir's block list in that
Redis, or the seed's script, which is both. The consumer deletes what it has done.
"""

import json
import os
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import PATIENCE_S, SANITIZED, free_port, lines_of, read, until
from support.redis import Redis
from support.run_local import Run
from support.traffic import burst, sliding, zone

LENGTH = 60
SPEED = 60  # entries a second that a consumer works through
PHASE_S = 7
SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance", "seeds", "stream_queue.lua")


def paced(stop, per_second, step):
    """Calls step() so often until stop is set; what a slow machine misses is made up for."""
    due = time.monotonic()
    while not stop.is_set():
        due += 1 / per_second()
        step()
        stop.wait(max(0, due - time.monotonic()))


class Stream:
    """A stream with a producer and consumers, on threads of their own. admit() puts an entry in; whether it might."""

    def __init__(self, port, key):
        self.port, self.key = port, key
        self.stop, self.threads = threading.Event(), []
        self.admitted, self.done = 0, 0
        self.redis = Redis(port)
        self.lock = threading.Lock()
        self.speed = SPEED

    def say(self, event):
        """What a log says of it; the seed has none."""

    def admit(self, redis):
        """Puts an entry in, if the gateway lets it."""
        raise NotImplementedError

    def _produce(self):
        redis = Redis(self.port)

        def step():
            if self.admit(redis):
                self.admitted += 1
        paced(self.stop, lambda: 2 * self.speed, step)

    def _consume(self):
        redis, name = Redis(self.port), f"c{len(self.threads)}"

        def step():
            found = redis.call("XREADGROUP", "GROUP", "workers", name, "COUNT", 1, "STREAMS", self.key, ">")
            for entry, _ in found[0][1] if found else ():
                redis.call("XDEL", self.key, entry)
                with self.lock:
                    self.done += 1
                    self.say("done")
        paced(self.stop, lambda: SPEED, step)

    def start(self):
        """Begins, with one consumer."""
        self.redis.call("XGROUP", "CREATE", self.key, "workers", "0", "MKSTREAM")
        self._thread(self._produce)
        self._thread(self._consume)

    def _thread(self, work):
        thread = threading.Thread(target=work, daemon=True)
        self.threads.append(thread)
        thread.start()

    def scale(self, consumers):
        """More consumers; the producer is at twice their speed."""
        self.speed = consumers * SPEED
        for _ in range(consumers - len(self.threads) + 1):
            self._thread(self._consume)

    def waiting(self):
        """How many entries wait."""
        return self.redis.call("XLEN", self.key)

    def end(self):
        """Ends all of it."""
        self.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)


class Seed(Stream):
    """The seed's way: a script that looks at the stream's length, and adds."""

    def __init__(self, port):
        super().__init__(port, "x:rl:seed")
        with open(SCRIPT, "rb") as file:
            self.script = self.redis.call("SCRIPT", "LOAD", file.read())

    def admit(self, redis):
        return redis.call("EVALSHA", self.script, 1, self.key, LENGTH, "request", "details") == 1


class Behind(Stream):
    """weir's way: its list of blocks, asked before the entry is added."""

    def __init__(self, port, log):
        super().__init__(port, "x:rl:weir")
        self.log = open(log, "ab", buffering=0)  # pylint: disable=consider-using-with
        self.refused = 0

    def say(self, event):
        self.log.write(json.dumps({"t": int(1000 * time.time()), "key": self.key, "event": event}).encode() + b"\n")

    def admit(self, redis):
        if redis.call("EXISTS", f"weir:jobs:{self.key}"):
            self.refused += 1
            return False
        with self.lock:  # so that the log has an entry before what is done of it
            redis.call("XADD", self.key, "*", "request", "details")
            self.say("add")
        return True


def measured(streams, seconds):
    """What each stream let in and worked through in so many seconds, a second."""
    before = [(one.admitted, one.done) for one in streams]
    begin = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begin
    return [((one.admitted - let_in) / took, (one.done - done) / took)
            for one, (let_in, done) in zip(streams, before)]


def start_weir(place, port, log):
    """weir with the log as its source and Redis as its gateway."""
    behind = {"name": "jobs", "key": ["key"], "match": {"event": ["add"]}, "count": "all", "id": 1,
            "limits": [{"algorithm": "queue", "length": LENGTH, "hold": "10m", "done": {"event": ["done"]}}]}
    http = free_port()
    config = place.config([behind], [{"type": "file", "path": log, "follow": True,
                                    "format": {"type": "json", "time": "t", "unit": "ms"}}],
                          gateways=[f"redis://127.0.0.1:{port}"], listen={"http": f"127.0.0.1:{http}"})
    weir = place.start("run", "--config", config, "--state", place.path("state"),
                       "--decisions", place.path("decisions.jsonl"))
    until(lambda: (metrics.get(http, "/readyz") or (0,))[0] == 200, "weir is ready", running=weir)
    return weir


def start_redis(place):
    """A Redis of the test's own: its port."""
    server = shutil.which("redis-server")
    if server is None:
        raise cases.Skipped("there is no redis-server")
    port = free_port()
    run = place.start("--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                      "--dir", place.directory, program=server)

    def answers():
        try:
            return Redis(port).call("PING")
        except OSError:
            return None
    until(answers, "Redis answers", running=run)
    return port


def test_the_admitted_rate_is_the_consumers(place):
    port, log = start_redis(place), place.write("jobs.log", "")
    weir = start_weir(place, port, log)
    streams = behind, seed = Behind(port, log), Seed(port)
    for stream in streams:
        stream.start()
    until(lambda: behind.refused and seed.waiting() >= LENGTH, "both queues are full", running=weir)
    with_one = measured(streams, PHASE_S)
    for stream in streams:
        stream.scale(3)
    time.sleep(1)  # it follows within a second
    with_three = measured(streams, PHASE_S)
    longest = [stream.waiting() for stream in streams]
    for stream in streams:
        stream.end()
    for name, one, three, waiting in zip(("weir", "seed"), with_one, with_three, longest):
        print(json.dumps({"who": name, "one": {"admitted": round(one[0], 1), "done": round(one[1], 1)},
                          "three": {"admitted": round(three[0], 1), "done": round(three[1], 1)}, "waiting": waiting}))
        assert abs(one[0] / one[1] - 1) < 0.1, (name, one)
        assert abs(three[0] / three[1] - 1) < 0.1, (name, three)
        if not SANITIZED:
            assert three[1] > 2 * one[1], (name, one, three)  # nobody waits for work
    with open(place.path("decisions.jsonl"), encoding="utf-8") as file:
        made = [json.loads(decision) for decision in file]
    lifts = [decision for decision in made if decision["action"] == "lift"]
    assert len(lifts) > 2 and all(lift["freed"] and lift["limit"]["algorithm"] == "queue" for lift in lifts), made[-3:]
    assert weir.stop() == 0, weir.said()


# ---- what everybody makes of a lift ----

def jobs(**more):
    """A queue for each user, whose block of a user another limit can hold."""
    queue = {"algorithm": "queue", "length": 2, "hold": "1h", "done": {"path": ["/done"]}}
    return zone("jobs", [queue, *more.pop("limits", [])], match={"path": ["/in"]}, **more)


def test_a_lift_is_published_once_whoever_is_killed(place):
    """kill -9 behind each line: the same decisions with the same ids, which are the oracle's; operators' blocks stay."""
    window = sliding(2, "10s")
    run = Run(place, zones=[jobs(id=1), jobs(id=2, limits=[window]) | {"name": "both"},
                            jobs(id=3, count="all") | {"name": "all"}, jobs(id=4, mode="shadow") | {"name": "shade"},
                            jobs(id=5, block_for="1h") | {"name": "penal"}],
              archiver={"enabled": True}, limiter={"checkpoint_interval": "200ms"},
              decisions={"shadow_path": place.path("shadow")}).start()
    now = int(1000 * time.time())
    for number in range(6):
        start_ms = now + 1000 * number
        run.append(burst("ann", 4, start_ms, path="/in") + burst("bob", 3, start_ms, path="/in"))
        run.append(burst("nobody", 1, start_ms + 10, path="/done") + burst("ann", 2, start_ms + 10, path="/done"))
        run.append(burst("bob", 3, start_ms + 20, path="/done"))
        if number == 2:
            run.override("block", "--zone", "jobs", "ann", "--for", "1h")
        if number == 4:
            run.override("lift", "--zone", "jobs", "ann")
        if number % 2:
            run.weir.kill()
            run.start()
    run.published(zone="jobs", key=["bob"], action="lift", at=now + 5020)
    run.stop()
    decisions = run.compare()
    seen = {(one["zone"], one["action"], one["key"][0]) for one in decisions if one.get("freed")}
    assert {one["zone"] for one in lines_of(place.path("shadow")) if one.get("freed")} == {"shade"}
    assert {("jobs", "lift", "ann"), ("jobs", "lift", "bob"), ("both", "block", "ann"),
            ("all", "lift", "bob")} <= seen and not [one for one in seen if one[0] in ("penal", "shade")], seen
    by_ann = [one for one in decisions if one["zone"] == "jobs" and one["key"] == ["ann"]]
    held = [one for one in by_ann if "by" in one]
    assert [one["action"] for one in held] == ["block", "lift"]
    between = by_ann[by_ann.index(held[0]) + 1:by_ann.index(held[1])]
    assert not [one for one in between if one.get("freed")], between


def test_everybody_reads_a_lift(place):
    """The list of a gateway, `weir list`, the archiver's lists, `weir explain` and a zone that counts lifts."""
    port, file = free_port(), place.path("blocks.jsonl")
    counts = {"name": "flaps", "key": ["user"], "sources": ["decisions"], "match": {"zone": ["jobs"], "action": ["lift"]},
              "limits": [sliding(1, "1h")], "id": 2}
    archiver = {"enabled": True, "interval": "100ms", "api": f"127.0.0.1:{port}"}
    run = Run(place, zones=[jobs(id=1), counts], archiver=archiver, gateways=[f"file:{file}"], sources=[{"type": "decisions"}]).start()
    now = int(1000 * time.time())

    def listed():
        return [json.loads(one)["key"] for one in read(file).splitlines() if json.loads(one)["zone"] == "jobs"]

    def archived(resource):
        return json.loads(metrics.get(port, f"/api/v1/{resource}?zone=jobs")[2])[resource]

    run.append(burst("ann", 3, now, path="/in") + burst("bob", 3, now, path="/in"))
    until(lambda: sorted(listed()) == [["ann"], ["bob"]], "both are blocked", running=run.weir)
    until(lambda: len(archived("blocks")) == 2, "the archiver has both", running=run.weir)
    run.append(burst("ann", 1, now + 10, path="/done"))
    lift = run.published(zone="jobs", key=["ann"], action="lift")
    until(lambda: listed() == [["bob"]], "ann is let in", running=run.weir)
    until(lambda: [one["key"] for one in archived("blocks")] == ["bob"], "the archiver knows it", running=run.weir)
    assert [one["key"] for one in run.command("list", "--json").objects()] == [["bob"]]
    (row,) = [one for one in archived("decisions") if one["action"] == "lift"]
    assert (row["key"], row["at_ms"], row["until_ms"], row["held"]) == ("ann", now + 10, now + 10, 1), row
    told = place.run("explain", lift["id"], "--state", run.state).out().decode()
    assert "Lifted the block of ann" in told and "something that waited is done" in told, told
    assert '"/done"' in told and '"/in"' in told, told
    run.append(burst("ann", 2, now + 20, path="/in") + burst("ann", 1, now + 30, path="/done"))
    run.published(zone="flaps", key=["ann"], action="block")
    run.stop()


if __name__ == "__main__":
    cases.main(globals())
