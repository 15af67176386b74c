# SPDX-License-Identifier: Apache-2.0
"""When a cluster has done all that a log gives it to do, and the proof that it did so once: for rounds of chaos.

The events topic must hold every line once, as limiters take it; then every
frame is to be judged, and the store to have checkpoints of the whole log.
"""

import os

from support import archive_check, cluster_check, frames, traffic
from support.place import PATIENCE_S, until

LONG_S = 8 * PATIENCE_S


class Log:
    """What the events topic holds: judgements that are due, each event's once, as limiters take it."""

    def __init__(self, served):
        self.served = served
        self.taken = self.again = 0
        self.frames = set()  # (partition, offset) of those with events

    def unjudged(self):
        """Frames that are not on the judged topic yet."""
        judged = {(message.partition, frames.decode(message.value).judged_offset)
                  for message in self.served.kafka.stream(self.served.topic("judged"))}
        return self.frames - judged

    def read(self):
        """Reads it from its beginning."""
        held = {}
        self.taken = self.again = 0
        for message in self.served.kafka.stream(self.served.topic("events")):
            frame = frames.decode(message.value)
            if frame.kind != "events":
                continue
            self.frames.add((message.partition, message.offset))
            reader = message.partition, frame.source
            before = held.get(reader, -1)
            for event in frame.events:
                judgements = sum(not done for _, done in event["zones"])
                if event["position"] > before:
                    self.taken += judgements
                else:
                    self.again += judgements
                held[reader] = max(held.get(reader, -1), event["position"])
        return self.taken


def due_judgements(place, zones, logs):
    """How many the lines make, by `weir run --once`; rates have no say in it. logs: {name: lines}"""
    for name, lines in logs.items():
        place.write(os.path.join("whole", name), b"".join(lines))
    config = place.config(zones, [traffic.source(place.path("whole", name)) for name in sorted(logs)],
                          "whole.json", deadletter={"rate": 0})
    done = place.good("run", "--once", "--config", config, "--decisions", place.path("whole-decisions"),
                      "--summary", "json")
    return sum(counts["matched"] for counts in done.summary()["zones"].values())


def until_settled(one, served, zones, logs):
    """Waits until all lines are in the log, each once, judged, and in checkpoints."""
    due = due_judgements(one.place, zones, logs)
    log = Log(served)
    try:
        until(lambda: log.read() >= due, f"{due} judgements in the log", patience_s=LONG_S)
    except AssertionError as failed:
        raise AssertionError(f"{failed}, but {log.taken} and {log.again} again") from None
    assert log.taken == due, f"{log.taken} judgements are in the log, {due} are due"
    one.tell(f"{sum(map(len, logs.values()))} lines, {log.taken} judgements, {log.again} sent again")
    until(lambda: not log.unjudged(), "every frame is judged", patience_s=LONG_S)
    # It may have been judged by who was killed since: buckets are compared once the store has the whole log.
    until(lambda: served.stored() == served.ends(), "checkpoints hold the whole log", patience_s=LONG_S)


def prove(one, served):
    """Holds decisions, judged frames and buckets against the oracle, once everyone has left: the check."""
    check = cluster_check.Check(served)
    check.decisions()
    check.judged()
    check.state(one.place)
    one.tell(f"{check.wanted} decisions, {check.again} published again")
    return check


def until_archived(served):
    """Waits until the archivers have stored all that was judged and decided."""
    statement = "SELECT partition_id, next_offset, extra FROM partition_state WHERE role = 2"

    def all_stored():
        stored = {partition: (judged, *(int.from_bytes(extra[at:at + 8], "little") for at in (1, 65)))
                  for partition, judged, extra in served.mariadb.query(statement) if extra}
        return all(stored.get(number, (0, 0, 0))[place] == last
                   for place, topic in enumerate(("judged", "decisions", "decisions.shadow"))
                   for number, last in served.ends(topic).items() if last > 0)
    until(all_stored, "all is archived", patience_s=LONG_S)


def prove_archive(one, served, check, zones):
    """Holds counts, histories and decisions in the store against a recount of the check."""
    recount = archive_check.from_cluster(check, zones)
    recount.require(archive_check.mariadb_reader(served.mariadb))
    one.tell(f"{recount.total} judgements archived, {len(recount.events)} with their history")
