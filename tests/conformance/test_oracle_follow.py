#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle's model of the log: positions, ids, clock, forgetting, policies."""

import unittest

import compare_unittest
import follow
import keys
import policy

T0 = 1_700_000_000_000


def zone(*limit_specs, **more):
    """A zone keyed by ip."""
    return policy.Zone({"id": 1, "name": "z", "key": ["ip"], "limits": list(limit_specs), **more})


def window(rate, span, **more):
    """A sliding window's specification."""
    return {"algorithm": "sliding_window", "rate": rate, "window": span, **more}


class InTheLog(unittest.TestCase):
    """Follow: positions, ids, clock and forgetting."""

    @staticmethod
    def event(t, position, zones=((1, False),)):
        """One event of the key `a`."""
        return {"key": b"a", "time": t, "cost": 1, "position": position, "zones": list(zones)}

    def test_what_is_not_newer_is_dropped_but_counted_in_the_index(self):
        log = follow.Follow([zone(window(1, "1s"))], 5)
        one, two = self.event(T0, 10), self.event(T0, 20)
        self.assertEqual(len(log.take_frame(7, "s", T0, [one])), 1)
        again = log.take_frame(8, "s", T0, [one, two])
        self.assertEqual([(i, v.word) for i, v in again], [("5-8-1", "block")])
        self.assertEqual(log.take_frame(9, "s", T0, [two, one]), [])
        self.assertEqual(log.dropped, 3)
        same = self.event(T0, 30, ((1, False), (9, False), (1, False)))
        self.assertEqual([i for i, _ in log.take_frame(10, "t", T0, [same, same])],
                         ["5-10-0", "5-10-2", "5-10-3", "5-10-5"])

    def test_forgotten_only_past_memory_and_lateness(self):
        for more, word in ((0, "block"), (1, "pass")):
            log = follow.Follow([zone(window(1, "1h", precision="1s"))], 0, lateness_ms=600000)
            log.take_frame(0, "s", T0 + 1, [self.event(T0, 1)])
            gone = T0 + 1000 + 3600000 + 1000 + 600000 + more
            late_in_log = self.event(T0 + 1000, 2)
            (_, verdict), = log.take_frame(1, "s", gone, [late_in_log])
            self.assertEqual(verdict.word, word)

    def test_a_running_block_is_not_forgotten(self):
        log = follow.Follow([zone(window(1, "1s"), block_for="1h")], 0, lateness_ms=0)
        log.take_frame(0, "s", T0, [self.event(T0, 1), self.event(T0, 2)])
        (_, verdict), = log.take_frame(1, "s", T0 + 3600000, [self.event(T0 + 3599999, 3)])
        self.assertEqual(verdict.word, "block")
        log.take_frame(2, "s", T0 + 3600000 + 1001, [])
        self.assertEqual(log.state(), [])

    def test_a_block_is_remembered_until_it_is_forgiven(self):
        more = {"block_for": ["1m", "1h"], "forgive_after": "1d"}
        for after, nth in ((0, 2), (1, 1)):
            log = follow.Follow([zone(window(1, "1s"), **more)], 0, lateness_ms=600000)
            log.take_frame(0, "s", T0, [self.event(T0, 1), self.event(T0, 2)])
            sent = T0 + 60000 + 86400000 + 600000 + after
            again = T0 + 60000 + 86400000 - 1
            _, (_, verdict) = log.take_frame(1, "s", sent, [self.event(again, 3), self.event(again, 4)])
            self.assertEqual(verdict.decision["nth"], nth)

    def test_an_overdue_event_is_blocked_from_its_sending_on(self):
        for sent, until in ((T0 + 5000, T0 + 60000), (T0 + 5001, T0 + 65001), (T0 + 3600000, T0 + 3660000),
                            (T0 + 3600001, T0 + 60000)):
            log = follow.Follow([zone(window(1, "1s"), block_for="1m")], 0)
            _, (_, verdict) = log.take_frame(0, "s", sent, [self.event(T0, 1), self.event(T0, 2)])
            self.assertEqual((verdict.decision["at"], verdict.decision["until"]), (T0, until))

    def test_a_lift_takes_the_last_block_back_once(self):
        log = follow.Follow([zone(window(1, "1s"), block_for=["1m", "1h", "1d"])], 0)
        log.take_frame(0, "s", T0, [self.event(T0, 1), self.event(T0, 2)])
        log.take_frame(1, "s", T0, [self.event(T0 + 60000, 3), self.event(T0 + 60000, 4)])
        lift = {"command": "lift", "zone": "z", "key": ["a"], "by": "ann"}
        for offset in (2, 3):
            log.take_command(offset, T0 + 61000, lift)
            self.assertEqual([(line["blocks"], line["blocked_until"]) for line in log.state()], [(1, T0 + 60000)])
        _, (_, verdict) = log.take_frame(4, "s", T0, [self.event(T0 + 62000, 5), self.event(T0 + 62000, 6)])
        self.assertEqual(verdict.decision["nth"], 2)

    def test_a_policy_in_the_log_keeps_what_did_not_change(self):
        many, few = window(5, "1h"), window(1, "1s")
        log = follow.Follow([zone(many, few)], 0)
        log.take_frame(0, "s", T0, [self.event(T0, 1)])
        self.assertEqual(log.take_policy(1, T0, [zone(few, window(6, "1h"))]), [])
        dumped = log.state()[0]["limits"]
        self.assertEqual(dumped, [{"times": [[T0, 1]]}, None])
        (decision_id, lift), = log.take_policy(2, T0 + 5, [])
        self.assertEqual((decision_id, lift.decision["key"], lift.decision["until"]),
                         ("0-2-0", None, T0 + 5))
        self.assertEqual(log.take_frame(3, "s", T0, [self.event(T0, 2)]), [])

    def test_a_joined_key_comes_apart_again(self):
        two = policy.Zone({"name": "k", "key": ["ip", "user"], "limits": []})
        for values in ((b"a|b", b"\\"), (b"|", b"x"), (b"\\|", b"\xff")):
            self.assertEqual(follow.split_key(two, keys.joined(values)), values)

    def test_replay_of_printed_frames(self):
        config = {"zones": [{"id": 1, "name": "z", "key": ["ip"], "limits": [window(1, "1s")]}]}
        event = '{"key":"a","time":%d,"cost":1,"position":%d,"zones":[{"id":1,"done":false}]}'
        frame = '{"partition":2,"offset":%d,"kind":"events","source":"s","sent":%d,"events":[%s]}'
        lines = [frame % (n, T0, event % (T0 + n, n)) for n in (4, 5)]
        logs, results = follow.replay(config, lines)
        self.assertEqual([(i, v.word) for i, v in results[2]],
                         [("2-4-0", "pass"), ("2-5-0", "block")])
        self.assertEqual(logs[2].positions, {"s": 5})


if __name__ == "__main__":
    compare_unittest.main(__name__)
