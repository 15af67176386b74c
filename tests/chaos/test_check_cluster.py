#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks asked at several limiters all the time, while these join, leave, are killed and stand still, and servers go away.

In half of the rounds checks are durable: then never one more passes than the limit says. In the others a limiter that is
killed forgets what was not acknowledged, half a second's answers at most, and one that stood still may answer until it reads
the next owner's marker. Each call ends in time, with an answer or an error, unless the limiter that was asked stands still.
What is in the log is what was answered: as many as passed there are counted in the end, and a limiter that begins again with
the first record comes to the same buckets. Other callers ask for pairs of keys, which count both or none, where the keys have
two owners by reservations: durable, no key passes more often than its limit says there, either.

    test_check_cluster.py --rounds 300
"""

import collections
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
import rounds
import servers

from support import check_cluster, cluster, frames
from support.check_cluster import QUICK, SECTIONS, ask
from support.checks import Raw
from support.place import PATIENCE_S, SANITIZED
from support.roles import Roles
from support.traffic import sliding, zone

CALLERS = 6
BUNDLERS = 2  # of these
KEYS = [f"key-{number}" for number in range(24)]
PAIRED = [f"paired-{number}" for number in range(8)]
LIMIT = 60
TIMEOUT_S = 8  # of a caller
MOST_S = 4 * (1 + SANITIZED)  # of a call to a limiter that runs: far above what weir allows itself, as the machine may be busy
FORGOTTEN_S = 0.5 + 0.5  # nothing is answered once something was not acknowledged for so long; and for this process to note it
ZOMBIE_S = 2  # from going on until it has read the next owner's marker

# key: of a pair two; outcome: 0, 1, "unavailable", "error", "late"
Call = collections.namedtuple("Call", "began_s, ended_s, port, key, outcome")


class Caller(threading.Thread):
    """One client: asks a limiter, one call after another, and goes to another limiter where one ends the connection."""

    def __init__(self, ports, rng, stop):
        super().__init__()
        self.calls, self.failed = [], None
        self._ports, self._rng, self._stopped = ports, rng, stop

    def run(self):
        try:
            while not self._stopped.is_set():
                self._connect_and_ask(self._rng.choice(self._ports))
        except Exception as failed:  # pylint: disable=broad-exception-caught
            self.failed = failed

    def _connect_and_ask(self, port):
        try:
            raw = Raw(port)
        except OSError:
            time.sleep(0.02)
            return
        raw.socket.settimeout(TIMEOUT_S)
        with raw:
            for _ in range(self._rng.randrange(20, 400)):
                if self._stopped.is_set() or not self._ask(raw, port, self._choose()):
                    return

    def _choose(self):
        return self._rng.choice(KEYS)

    def _say(self, raw, key):
        return ask(raw, "WEIR.CHECK", key, "site")

    def _ask(self, raw, port, key):
        began_s, good = time.monotonic(), True
        try:
            outcome = self._say(raw, key)
            if isinstance(outcome, str):
                assert outcome.startswith("UNAVAILABLE ") or "there is no policy" in outcome, outcome
                outcome = "unavailable"
                time.sleep(0.005)
            else:
                outcome = outcome[0]
        except TimeoutError:
            outcome, good = "late", False
        except (OSError, AssertionError) as failed:
            if isinstance(failed, AssertionError) and failed.args[0] != b"":
                raise
            outcome, good = "error", False  # the limiter has ended the connection
        self.calls.append(Call(began_s, time.monotonic(), port, key, outcome))
        return good


class Bundler(Caller):
    """One that asks for two keys at once."""

    def _choose(self):
        return tuple(self._rng.sample(PAIRED, 2))

    def _say(self, raw, key):
        return ask(raw, "WEIR.ALL", 2, key[0], "site", 1, key[1], "site", 1)


class Crew:
    """The limiters, and what happens to them."""

    def __init__(self, one, served, roles, durable):
        self.one, self.served, self.roles, self.durable = one, served, roles, durable
        self.members, self.events = [], []  # events: (kind, when it began, when it was done, when it ended, port)
        for _ in range(2):
            self._join()
        check_cluster.until_answered(self.members)

    def _join(self):
        self.members.append(check_cluster.limiter(self.roles, f"limiter-{len(self.members)}", durable=self.durable))

    def _note(self, kind, began_s, done_s, port=None):
        self.events.append((kind, began_s, done_s, time.monotonic(), port))
        self.one.tell(f"{kind} {port or ''} for {time.monotonic() - began_s:.1f} s")

    def running(self):
        """Those that run."""
        return [member for member in self.members if member.run.code() is None]

    def disturb(self):
        """One deed."""
        rng, began_s = self.one.rng, time.monotonic()
        one = rng.choice(self.running())
        deed = rng.choice(["kill", "kill", "pause", "pause", "leave", "join", "broker", "store"])
        if deed == "kill":
            one.kill()
            done_s = time.monotonic()
            time.sleep(self.one.moments.uniform(0, 1.5))
            one.start()
        elif deed == "pause":
            one.pause()
            done_s = time.monotonic()
            time.sleep(self.one.moments.choice([0.3, 3, 4]))
            one.resume()
        elif deed == "leave":
            # One that is ended as it starts has nothing to leave.
            assert one.stop() in (0, -15), one.said()[-2000:]
            done_s = time.monotonic()
            time.sleep(self.one.moments.uniform(0, 1))
            one.start()
        elif deed == "join":
            if len(self.members) == 3:
                return
            self._join()
            done_s = time.monotonic()
        else:
            server = "kafka" if deed == "broker" else "mariadb"
            self.served.part("pause", server)
            done_s = time.monotonic()
            time.sleep(self.one.moments.uniform(0.2, 2))
            self.served.part("resume", server)
        self._note(deed, began_s, done_s, one.checks if deed in ("kill", "pause", "leave") else None)
        time.sleep(self.one.moments.uniform(0, 1.5))


def require_in_time(calls, events):
    """Each call has ended in time, but those of a limiter that stood still, or was killed, meanwhile."""
    for call in calls:
        spent_s = call.ended_s - call.began_s
        excused = any(port == call.port and began_s - 0.1 <= call.ended_s and call.began_s <= ended_s + MOST_S
                      for kind, began_s, _, ended_s, port in events if kind in ("pause", "kill"))
        assert excused or spent_s < MOST_S, f"a call took {spent_s:.1f} s, and nothing had happened to its limiter: {call}"


def busiest(passed, before_s):
    """How many passed at most within FORGOTTEN_S before a moment: so many may wait for an acknowledgement then."""
    times = sorted(call.ended_s for call in passed if call.ended_s <= before_s)
    first = most = 0
    for last, at_s in enumerate(times):
        while times[first] < at_s - FORGOTTEN_S:
            first += 1
        most = max(most, last + 1 - first)
    return most


def passed_in_log(served):
    """{key: how many checks of it passed, as the log says; each once}"""
    found, held = collections.Counter(), {}
    for message in served.kafka.stream(served.topic("events")):
        frame = frames.decode(message.value)
        if frame.kind != "checks":
            continue
        reader = message.partition, frame.source
        for event, verdict in zip(frame.events, frame.verdicts):
            if event["position"] > held.get(reader, 0):
                held[reader] = event["position"]
                found[event["key"].decode()] += verdict == 0
    return found


def require_counts(calls, events, durable, log, remaining):
    """As many pass as may, and as many are counted as the log says."""
    passed = [call for call in calls if call.outcome == 0 and call.key in KEYS]
    paired = collections.Counter(key for call in calls if call.outcome == 0 and call.key not in KEYS for key in call.key)
    assert not durable or all(count <= LIMIT for count in paired.values()), paired
    told = collections.Counter(call.key for call in passed)
    over = sum(max(0, told[key] - LIMIT) for key in KEYS)
    for key in KEYS:
        assert remaining[key] == max(0, LIMIT - log[key]), f"{key}: {log[key]} passed in the log, and {remaining[key]} are left"
    forgotten = sum(max(0, told[key] - log[key]) for key in KEYS)
    twice = sum(max(0, log[key] - LIMIT) for key in KEYS)
    if durable:
        assert over == 0, {key: (count, log[key]) for key, count in told.items() if count > LIMIT}
        assert forgotten == 0, f"{forgotten} passed, and are not in the log"
        return over
    # Killed, with what was not acknowledged; or another has the partition meanwhile: what stood still, or left too late.
    # On a busy machine a while passes until it is killed, or stands still, and it answers meanwhile.
    may_forget = sum(busiest(passed, done_s + 0.1) for kind, _, done_s, _, _ in events if kind in ("kill", "pause", "leave"))
    may_repeat = sum(busiest(passed, ended_s + ZOMBIE_S) for _, _, _, ended_s, _ in events)
    assert forgotten <= may_forget, f"{forgotten} of at most {may_forget} are forgotten"
    assert twice <= may_repeat, f"{twice} of at most {may_repeat} passed at two limiters"
    return over


def require_same_on_replay(one, served, roles, crew):
    """A limiter that begins with the first record comes to the same buckets."""
    named = one.place.write("keys", "".join(f"{key}\n" for key in [*KEYS, *PAIRED]))

    def settled():
        if served.stored() != served.ends():  # the last one may have been ended before it had read what others left
            crew.members[0].start()
            crew.members[0].until(lambda: served.stored() == served.ends(), "checkpoints hold the whole log", 4 * PATIENCE_S)
            assert crew.members[0].stop() == 0
        return sorted(roles.command("state", "--keys", named).out().splitlines())

    lived = settled()
    served.forget()
    replayed = settled()
    assert lived == replayed and lived, (lived[:3], replayed[:3])


def remaining_now(member):
    """{key: how many more would pass}"""
    left = {}
    with Raw(member.checks) as raw:
        for key in KEYS:
            answer = member.until(lambda key=key: [answer for answer in [ask(raw, "WEIR.PEEK", key, "site")]
                                                   if not isinstance(answer, str)], "the key is answered")
            left[key] = answer[0][2]
    return left


def play(one):
    """One round."""
    durable = one.rng.random() < 0.5
    one.tell("durable" if durable else "not durable")
    with servers.some(resume) as served:
        kafka = {**served.kafka_properties, **QUICK["bus"]["kafka"]}
        with Roles(one.place, served, [zone("site", [sliding(LIMIT, "1h")])],
                   **{**SECTIONS, "bus": {"partitions": 8, "kafka": kafka}}) as roles:
            roles.apply()
            crew, stop = Crew(one, served, roles, durable), threading.Event()
            ports = [member.checks for member in crew.members]
            callers = [(Bundler if number < BUNDLERS else Caller)(ports, random.Random(one.rng.random()), stop) for number in range(CALLERS)]
            for caller in callers:
                caller.start()
            try:
                for _ in range(one.rng.randrange(2, 5)):
                    crew.disturb()
                check_cluster.until_answered(crew.running())
            finally:
                stop.set()
                for caller in callers:
                    caller.join()
            assert not any(caller.failed for caller in callers), [caller.failed for caller in callers]
            calls = [call for caller in callers for call in caller.calls]
            require_in_time(calls, crew.events)
            check_cluster.until_answered(crew.running())
            remaining = remaining_now(crew.running()[0])
            for member in crew.running():
                assert member.stop() == 0, member.said()[-2000:]
            over = require_counts(calls, crew.events, durable, passed_in_log(served), remaining)
            require_same_on_replay(one, served, roles, crew)
            outcomes = collections.Counter(call.outcome for call in calls)
            slowest_s = max(call.ended_s - call.began_s for call in calls if call.outcome != "late")
            one.tell(f"{len(calls)} calls: {dict(outcomes)}; {over} over; the slowest answer took {slowest_s:.2f} s")


def resume(served):
    """A round that failed may have left one standing."""
    for server in ("kafka", "mariadb"):
        served.part("resume", server)


if __name__ == "__main__":
    rounds.main(play, __doc__, ordinary=10, around=servers.of_our_own)
