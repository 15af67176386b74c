# SPDX-License-Identifier: Apache-2.0
"""Sequences of calls that come near what they test: bursts, edges of the window, idle times."""

from seeds.exact import Call

START_MS = 1_700_000_000_000


def walk(chance, count, keys, span_ms, *, near_ms=(-1, 0, 1), settle=lambda at, key: at):
    """Calls of several users in time order.

    @param span_ms  the window, interval or the like: calls land on an earlier call + span, or near
    @param near_ms  how near
    @param settle   moves a time forward to one that the seed system can take, for this key
    """
    calls, now = [], START_MS
    for _ in range(count):
        kind = chance.random()
        if kind < 0.4:
            target = now
        elif kind < 0.7:
            target = now + chance.randrange(1, max(2, span_ms // 6))
        elif kind < 0.95 and calls:
            target = chance.choice(calls[-30:]).at + span_ms + chance.choice(near_ms)
        else:
            target = now + chance.randrange(span_ms, 3 * span_ms)
        key = chance.choice(keys)
        now = settle(max(now, target), key)
        calls.append(Call(now, key))
    return calls
