#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle's own model against textbook cases, brute force and second models."""

import random
import unittest
from fractions import Fraction

import compare_unittest
import keys
import limits
import model
import policy

T0 = 1_700_000_000_000


def zone(*limit_specs, **more):
    """A zone keyed by ip."""
    return policy.Zone({"id": 1, "name": "z", "key": ["ip"], "limits": list(limit_specs), **more})


def verdicts(one_zone, events):
    """The Verdict of each (time, cost) for one key."""
    answers = model.judge([one_zone], [(t, c, {"ip": b"a"}) for t, c in events])
    return [answer[0] for answer in answers]


def words(one_zone, events):
    """p or b for each event."""
    return "".join(verdict.word[0] for verdict in verdicts(one_zone, events))


def window(rate, span, **more):
    """A sliding window's specification."""
    return {"algorithm": "sliding_window", "rate": rate, "window": span, **more}


class Textbook(unittest.TestCase):
    """Cases worked out by hand from the tables of common/specification/semantics.md, Algorithms."""

    def test_sliding_window_at_its_edges(self):
        z = zone(window(2, "10ms"))
        self.assertEqual(words(z, [(T0, 1), (T0 + 5, 1), (T0 + 9, 1), (T0 + 10, 1),
                                   (T0 + 14, 1), (T0 + 15, 1)]), "ppbpbp")

    def test_postgresql_trace_with_penalize(self):
        limit = policy.Limit({"algorithm": "token_bucket", "rate": 10, "window": "10s",
                              "burst": 10, "penalize": True})
        state = limits.state_of(limit)
        trace, t = [], T0
        for _ in range(13):
            state.record(t, 1, False)
            trace.append(state.tokens)
            t += 100
        t += 4900
        for _ in range(5):
            state.record(t, 1, False)
            trace.append(state.tokens)
            t += 100
        self.assertEqual(trace, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, 3, 2, 1, 0, -1])

    def test_round_half_away_from_zero(self):
        limit = policy.Limit({"algorithm": "token_bucket", "rate": 1, "window": "10ms",
                              "burst": 3, "penalize": True})
        state = limits.state_of(limit)
        for t, tokens in ((0, 2), (5, 2), (5, 1), (5, 0), (10, -1), (25, -1), (41, 0)):
            state.record(t, 1, False)
            self.assertEqual(state.tokens, tokens, t)

    def test_blocks_get_longer_until_they_are_forgiven(self):
        z = zone(window(1, "10ms"), block_for=["20ms", "50ms"], forgive_after="100ms")
        got = verdicts(z, [(T0 + t, 1) for t in (0, 1, 21, 22, 72, 73, 222, 223, 300, 301, 471, 472)])
        made = [(v.decision["at"] - T0, v.decision["until"] - T0, v.decision["nth"]) for v in got if v.decision]
        # 223 is 100 ms after the end of the third block, which is forgiven then; 301 is less than that after the fourth
        self.assertEqual(made, [(1, 21, 1), (22, 72, 2), (73, 123, 3), (223, 243, 1), (301, 351, 2), (472, 492, 1)])

    def test_late_events_pass_and_are_not_recorded(self):
        z = zone(window(1, "10ms"))
        got = verdicts(z, [(T0, 1), (T0 - 10, 1), (T0 - 9, 1), (T0 - 10, 9)])
        self.assertEqual([(v.word, v.late) for v in got],
                         [("pass", False), ("pass", True), ("block", False), ("pass", True)])

    def test_fixed_window_keeps_the_bucket_before(self):
        z = zone({"algorithm": "fixed_window", "rate": 1, "window": "10ms", "offset": "3ms"})
        base = 1000 * 10 - 3
        got = verdicts(z, [(base, 1), (base + 9, 1), (base + 10, 1), (base + 9, 1),
                           (base - 1, 1)])
        self.assertEqual([(v.word, v.late) for v in got],
                         [("pass", False), ("block", False), ("pass", False), ("block", False),
                          ("pass", True)])
        self.assertEqual(got[1].decision["until"], base + 10)

    def test_one_breach_gives_one_decision(self):
        z = zone(window(2, "10ms"))
        got = verdicts(z, [(T0, 1), (T0 + 1, 1), (T0 + 2, 1), (T0 + 9, 1), (T0 + 10, 1),
                           (T0 + 10, 1), (T0 + 11, 1)])
        self.assertEqual("".join(v.word[0] for v in got), "ppbbpbp")
        made = [(v.decision["at"], v.decision["until"]) for v in got if v.decision]
        self.assertEqual(made, [(T0 + 2, T0 + 10), (T0 + 10, T0 + 11)])

    def test_block_for_holds_what_would_pass(self):
        z = zone(window(1, "10ms"), block_for="50ms")
        got = verdicts(z, [(T0, 1), (T0 + 1, 1), (T0 + 50, 1), (T0 + 51, 1)])
        self.assertEqual("".join(v.word[0] for v in got), "pbbp")
        self.assertEqual(got[1].decision["until"], T0 + 51)

    def test_a_block_for_too_large_a_cost_publishes_nothing(self):
        got = verdicts(zone(window(3, "10ms")), [(T0, 1), (T0, 4), (T0, 3), (T0, 2)])
        self.assertEqual("".join(v.word[0] for v in got), "pbbp")
        self.assertFalse(any(v.decision for v in got))

    def test_the_limit_with_the_latest_reset_is_named(self):
        first, second = window(1, "10ms"), window(1, "10ms", precision="1ms")
        z = zone(window(1, "5ms"), first, second)
        got = verdicts(z, [(T0, 1), (T0, 1)])
        self.assertEqual(got[1].decision["limit"],
                         {"algorithm": "sliding_window", "rate": 1, "window": 10})
        self.assertEqual(got[1].decision["until"], T0 + 10)

    def test_count_all_extends_the_block(self):
        z = zone(window(2, "10ms"), count="all")
        events = [(T0 + 4 * i, 1) for i in range(8)]
        self.assertEqual(words(z, events), "ppbbbbbb")
        self.assertEqual(words(zone(window(2, "10ms")), events), "ppbppbpp")

    def test_queue_lets_out_the_oldest(self):
        z = policy.Zone({"id": 1, "name": "q", "key": [], "limits": [
            {"algorithm": "queue", "length": 2, "hold": "100ms", "done": {"path": ["/out*"]}}]})
        events = [(T0, 1, {"path": b"/in"}), (T0 + 1, 1, {"path": b"/in"}),
                  (T0 + 2, 1, {"path": b"/in"}), (T0 + 3, 1, {"path": b"/out/1"}),
                  (T0 + 4, 1, {"path": b"/in"}), (T0 + 100, 1, {"path": b"/in"}),
                  (T0 + 101, 1, {"path": b"/in"})]
        got = [answer[0] for answer in model.judge([z], events)]
        self.assertEqual("".join(v.word[0] for v in got), "ppbdpbp")
        self.assertEqual(got[2].decision["until"], T0 + 100)
        self.assertEqual(got[5].decision["until"], T0 + 101)

    def test_zones_of_one_key_are_one_event(self):
        zones = [policy.Zone({"name": n, "key": k, "limits": [window(1, "1s")]})
                 for n, k in (("a", ["ip"]), ("b", ["user"]), ("c", ["ip"]), ("d", ["ip", "user"]))]

        class Record:
            """A record with an ip and a user."""
            field = staticmethod({"ip": b"x|\\", "user": b"u"}.get)
        events = model.events_of(zones, Record)
        self.assertEqual([(key, [z.name for z, _, _ in members]) for key, members in events],
                         [(b"x\\|\\\\", ["a", "c"]), (b"u", ["b"]), (b"x\\|\\\\|u", ["d"])])

    def test_a_key_that_is_too_long_has_its_long_values_shortened(self):
        x, h = (b"x" * 27 + b"~ae69e0b3ccd9c7399cd2e05a61b8a761",
                b"h" * 27 + b"~47d0ef6cd0769558d4c3a90050e3d975")
        for values, want in (((b"x" * 1024,), (b"x" * 1024,)), ((b"x" * 1025,), (x,)),
                             ((b"x" * 1025, b"h" * 60), (x, b"h" * 60)),
                             ((b"x" * 1025, b"h" * 61), (x, h)), ((x, h), (x, h)),
                             ((b"|" * 512,), (b"|" * 512,)), ((b"\\" * 60,) * 4, (b"\\" * 60,) * 4)):
            self.assertEqual(keys.bounded(values), want)
        self.assertEqual(keys.bounded((b"|" * 513,))[0][:28], b"|" * 27 + b"~")
        self.assertEqual(keys.bounded(("\u00e9".encode() * 513,))[0][24:28], b"\xc3\xa9\xc3~")

    def test_partitions(self):
        self.assertEqual(keys.crc16(b"123456789"), 0x31C3)
        slot = lambda key: keys.partition_of(key, 16384)
        self.assertEqual(slot(b"foo"), 12182)
        self.assertEqual(slot(b"{user1000}.following"), slot(b"user1000"))
        self.assertEqual(slot(b"foo{{bar}}zap"), slot(b"{bar"))
        self.assertEqual(slot(b"foo{}{bar}"), keys.crc16(b"foo{}{bar}") % 16384)


def random_limit(rng):
    """A small limit of any algorithm."""
    algorithm = rng.choice(["sliding_window", "fixed_window", "token_bucket", "penalize",
                            "gcra", "queue", "uniform"])
    rate, span_ms = rng.randint(1, 5), rng.randint(1, 40)
    span = f"{span_ms}ms"
    if algorithm == "uniform":
        return {"algorithm": "uniform", "interval": span}
    if algorithm == "queue":
        return {"algorithm": "queue", "length": rate, "hold": span}
    spec = {"algorithm": algorithm, "rate": rate, "window": span}
    if algorithm == "sliding_window" and rng.random() < 0.3:
        spec["precision"] = f"{rng.randint(1, span_ms)}ms"
    if algorithm == "sliding_window" and rng.random() < 0.3:
        spec["lateness"] = f"{rng.randint(1, 3 * span_ms)}ms"
    if algorithm in ("token_bucket", "penalize", "gcra"):
        spec["burst"] = rng.randint(1, 5)
    if algorithm == "penalize":
        spec.update(algorithm="token_bucket", penalize=True)
    return spec


class BruteForce(unittest.TestCase):
    """Properties that hold on any input."""

    def test_reset_is_the_first_time_at_which_one_passes(self):
        rng = random.Random(1)
        checked = 0
        for _ in range(6000):
            state = limits.state_of(policy.Limit(random_limit(rng)))
            all_counted = rng.random() < 0.5
            t = T0
            for _ in range(rng.randint(1, 15)):
                t += rng.choice([0, 0, 1, 2, 7, 30, -1, -5])
                if state.late(t):
                    continue
                state.leave(t)
                over_one = state.over(t, 1)
                c = rng.choice([1, 1, 1, 2, 3])
                blocked = state.over(t, c)
                if state.charged_by_all or all_counted or not blocked:
                    state.record(t, c, blocked)
                if not (blocked and over_one):
                    continue
                if isinstance(state, limits.FixedWindow) and t // state.window < state.newest:
                    continue  # its own bucket's end, where the newer one may be full too
                if state.limit.lateness and t < state.times[-1]:
                    continue  # as of the newest time: its own spans may be free before
                reset = state.reset(t)
                queue_left = list(getattr(state, "entries", []))
                for when in range(t, reset + 1):
                    if isinstance(state, limits.Queue):
                        state.entries = [[x, c] for x, c in queue_left if x + state.limit.hold > when]
                    over = not state.late(when) and state.over(when, 1)
                    self.assertEqual(over, when < reset, (vars(state.limit), vars(state), t, when))
                    checked += 1
                if isinstance(state, limits.Queue):
                    state.entries = queue_left
        self.assertGreater(checked, 5000)

    def test_what_is_done_leaves_nobody_blocked_whom_the_limits_would_let_pass(self):
        rng, lifts, kept = random.Random(3), 0, 0
        for _ in range(600):
            others = [random_limit(rng) for _ in range(rng.choice([0, 1, 2]))]
            spec = [{"algorithm": "queue", "length": rng.randint(1, 6), "hold": f"{rng.randint(20, 500)}ms"}] + [
                one for one in others if one["algorithm"] != "queue"]
            z = zone(*spec, count=rng.choice(["all", "passed"]))
            bucket, t, until = model.Bucket(z, ()), T0, 0
            for _ in range(60):
                t += rng.choice([0, 0, 1, 2, 7])
                is_done, in_queue = rng.random() < 0.4, bucket.states[0].entries
                verdict = model.judge_event(bucket, t, 1 if is_done else rng.choice([1, 1, 2]), is_done)
                if verdict.decision is not None:
                    until = verdict.decision["until"]
                    lifts += is_done
                if is_done and in_queue and bucket.states[0].entries != in_queue and t < until:
                    self.assertTrue(any(state.over(t, 1) for state in bucket.states), (spec, t, until))
                    kept += 1
        self.assertGreater(lifts, 300)
        self.assertGreater(kept, 300)

    def test_no_span_holds_more_than_the_rate(self):
        rng = random.Random(2)
        for _ in range(1500):
            rate, span, step = rng.randint(1, 4), rng.randint(1, 30), rng.choice([1, 1, 3, 10])
            z = zone(window(rate, f"{span}ms", precision=f"{step}ms"))
            events = [(T0 + rng.randint(0, 100), 1) for _ in range(60)]
            if rng.random() < 0.5:
                events.sort()
            got = verdicts(z, events)
            kept = sorted(-(-t // step) * step for (t, _), v in zip(events, got)
                          if v.word == "pass" and not v.late)
            for earlier, later in zip(kept, kept[rate:]):
                self.assertGreaterEqual(later - earlier, span)

    def test_with_lateness_an_event_is_over_where_a_span_of_its_own_is_full(self):
        rng = random.Random(5)
        for _ in range(800):
            rate, span = rng.randint(1, 4), rng.randint(1, 30)
            late = rng.randint(1, 90)
            z = zone(window(rate, f"{span}ms", lateness=f"{late}ms"))
            times = [T0 + rng.randint(0, 200) for _ in range(80)]
            kept, newest = [], 0
            for t, verdict in zip(times, verdicts(z, [(t, 1) for t in times])):
                if not kept or t > newest - late:
                    fullest = max(sum(start < x <= start + span for x in kept)
                                  for start in range(t - span, t))
                    self.assertFalse(verdict.late)
                    self.assertEqual(verdict.word == "block", fullest + 1 > rate)
                elif t > newest - span:
                    self.assertEqual(verdict.word == "block",
                                     sum(x > t - span for x in kept) + 1 > rate)
                else:
                    self.assertTrue(verdict.late)
                if verdict.word == "pass" and not verdict.late:
                    kept.append(t)
                    newest = max(newest, t)

    def test_sliding_window_in_order_is_the_textbook_one(self):
        rng = random.Random(3)
        for _ in range(500):
            rate, span = rng.randint(1, 6), rng.randint(1, 50)
            events = sorted((T0 + rng.randint(0, 300), rng.randint(0, 3)) for _ in range(80))
            passed, want = [], ""
            for t, c in events:
                ok = sum(k for x, k in passed if t - span < x <= t) + c <= rate
                want += "p" if ok else "b"
                if ok:
                    passed.append((t, c))
            self.assertEqual(words(zone(window(rate, f"{span}ms")), events), want)

    def test_token_bucket_is_a_fraction_that_fills(self):
        rng = random.Random(4)
        for _ in range(500):
            rate, span, burst = rng.randint(1, 6), rng.randint(1, 50), rng.randint(1, 6)
            limit = {"algorithm": "token_bucket", "rate": rate, "window": f"{span}ms",
                     "burst": burst}
            events = sorted((T0 + rng.randint(0, 300), rng.randint(0, 3)) for _ in range(80))
            level, last, want = Fraction(burst), events[0][0], ""
            for t, c in events:
                level = min(Fraction(burst), level + Fraction(rate * (t - last), span))
                last = t
                want += "p" if level >= c else "b"
                level -= c if level >= c else 0
            self.assertEqual(words(zone(limit), events), want)
            gcra = {"algorithm": "gcra", "rate": rate, "window": f"{span}ms", "burst": burst - 1}
            self.assertEqual(words(zone(gcra), events), want)  # the same rule told differently


if __name__ == "__main__":
    compare_unittest.main(__name__)
