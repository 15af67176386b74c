#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a crash can forget of answers that did not wait for the log: what the gauge says, and no more is answered after half a second."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.check_cluster import SECTIONS, ask, limiter, until_answered
from support.check_http import Caller
from support.checks import Raw, command
from support.place import PATIENCE_S, free_port
from support.roles import Roles
from support.traffic import sliding, zone

LIMIT = 1_000_000
KEYS = [f"key-{number}" for number in range(16)]
GAUGE_S = 1  # it is set once a second
MOST_S = 0.5 + 1.5  # half a second, as partition_checks.h has it, and what a busy machine adds


def ask_all(raw):
    """How many of the keys passed; the others could not be judged, as the log acknowledges nothing."""
    passed = 0
    for key in KEYS:
        answer = ask(raw, "WEIR.CHECK", key, "site")
        assert answer[0] == 0 or answer.startswith("UNAVAILABLE unacknowledged"), answer
        passed += answer[0] == 0
    return passed


def ask_until_none_passes(raw):
    """(how many passed, after how many seconds none did)"""
    passed, begun_s = 0, time.monotonic()
    while more := ask_all(raw):
        passed += more
        assert time.monotonic() - begun_s < PATIENCE_S, "it goes on answering what the log does not acknowledge"
    return passed, time.monotonic() - begun_s


def counted(one):
    """How many checks of the keys count."""
    with Raw(one.checks) as raw:
        left = one.until(lambda: [answers for answers in [[ask(raw, "WEIR.PEEK", key, "site") for key in KEYS]]
                                  if not any(isinstance(answer, str) for answer in answers)], "all keys are answered")
        return sum(LIMIT - answer[2] for answer in left[0])


def test_what_a_crash_forgets_is_in_the_gauge(place):
    """The brokers stand still while checks are answered; then the limiter is killed. All before is counted, and of what was
    answered since at most as many are forgotten as weir_check_unacknowledged said."""
    with cluster.own(parent=place.directory) as servers, Roles(place, servers, [zone("site", [sliding(LIMIT, "1h")])], **SECTIONS) as roles:
        roles.apply()
        one = limiter(roles, "limiter")
        until_answered([one])
        with Raw(one.checks) as raw:
            before = sum(ask_all(raw) for _ in range(50))
            time.sleep(2 * GAUGE_S)  # what is read next was set after all of it was answered
            one.until(lambda: one.value("weir_check_unacknowledged") == 0, "the log has all of it")
            servers.part("pause", "kafka")
            since, took_s = ask_until_none_passes(raw)
            assert since > 0 and took_s < MOST_S, (since, took_s)
            # Another thread's answer may have come too late to be given, and is counted.
            (said,) = one.until(lambda: [count for count in [one.value("weir_check_unacknowledged")] if count >= since],
                                f"the gauge has the {since} that were answered")
        one.kill()
        servers.part("resume", "kafka")
        one.start()
        until_answered([one])
        count = counted(one)
        assert count >= before and before + since - count <= said, (before, since, count, said)
        assert one.stop() == 0, one.said()[-2000:]


def test_what_is_durable_waits_beside_what_is_not(place):
    """A zone's checks by all surfaces, and single calls in another: while the brokers stand still none of them is answered, and a
    plain one is at once."""
    zones = [zone("site", [sliding(LIMIT, "1h")], key=("user",)), {**zone("safe", [sliding(LIMIT, "1h")], key=("user",)), "durable": True}]
    with cluster.own(parent=place.directory) as servers, Roles(place, servers, zones, **SECTIONS) as roles:
        roles.apply()
        port = free_port()
        one = limiter(roles, "limiter", listen={"check_http": f"127.0.0.1:{port}"})
        until_answered([one], zone="safe")
        with Raw(one.checks) as raw, Caller(port) as caller:
            for words in (("WEIR.CHECK", "ann", "safe"), ("WEIR.CHECK", "ann", "site", "DURABLE"), ("WEIR.ALL", 2, "ann", "site", 1, "bob", "safe", 1)):
                one.until(lambda words=words: not isinstance(ask(raw, *words), str), f"{words} is answered")
            assert caller.check(zone="site", key="ann", durable=True)[0] == 200
            servers.part("pause", "kafka")
            with Raw(one.checks) as durable:
                durable.send(command("WEIR.CHECK", "ann", "safe") + command("WEIR.CHECK", "ann", "site", "DURABLE"))
                assert ask(raw, "WEIR.CHECK", "ann", "site")[0] == 0
                for _ in range(2):
                    assert durable.line().startswith(b"-UNAVAILABLE ")
            for members in ({"zone": "safe"}, {"zone": "site", "durable": True}):
                status, answer = caller.check(key="ann", **members)
                assert status == 503 and answer["unavailable"] == "unacknowledged", (status, answer)
            servers.part("resume", "kafka")
            one.until(lambda: not isinstance(ask(raw, "WEIR.CHECK", "ann", "safe"), str), "it is answered again")
        assert one.stop() == 0, one.said()[-2000:]


def test_nobody_waits_at_one_that_ends(place):
    """One without a partition has nothing to leave, but for the group, whose coordinator does not answer: that takes seconds."""
    with cluster.own(parent=place.directory) as servers, \
            Roles(place, servers, [zone("site", [sliding(LIMIT, "1h")])], **{**SECTIONS, "bus": {"partitions": 1}}) as roles:
        roles.apply()
        both = [limiter(roles, f"limiter-{number}") for number in range(2)]
        until_answered(both)
        both[0].until(lambda: sum(one.value("weir_limiter_partitions", state="live") for one in both) == 1, "one has it")
        (spare,) = [one for one in both if one.value("weir_limiter_partitions", state="live") == 0]
        servers.part("pause", "kafka")
        with Raw(spare.checks) as raw:
            begun_s = time.monotonic()
            spare.run.signal(signal.SIGTERM)
            assert raw.take(1) == b""
            assert time.monotonic() - begun_s < MOST_S and spare.run.code() is None, spare.said()[-2000:]
        servers.part("resume", "kafka")
        assert spare.run.wait(2 * PATIENCE_S) == 0, spare.said()[-2000:]
        for one in both:
            assert one is spare or one.stop() == 0, one.said()[-2000:]


if __name__ == "__main__":
    cases.main(globals())
