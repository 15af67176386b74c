#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_velocity under fifty callers at once, on one key and on new ones, in every kind of session.

The number of an attempt is drawn under its bucket's lock, so that their order is the order of the verdicts: the
history is judged again by a slow model, and every verdict must be the same. WEIR_MYSQLD=PATH runs it on MySQL 8.
"""

import contextlib
import os
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support.mariadb import Error
from support.place import PATIENCE_S, until
from support.velocity import LEVELS, Model, Velocity, check, main, rows

CALLERS = 50
HOUR_MS = 3_600_000
WAITS_S = 4 * PATIENCE_S


@contextlib.contextmanager
def callers(velocity, ways=("own", "transaction", "autocommit off"), count=CALLERS):
    """[(connection, way)]: of each way, with each isolation level."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(count):
            way, level = ways[number % len(ways)], LEVELS[number // len(ways) % len(LEVELS)]
            connection = velocity.connect(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}",
                                          f"SET autocommit = {int(way != 'autocommit off')}")
            made.append((stack.enter_context(connection), way))
        yield made


def ask(connection, way, zone, key):
    """One attempt in a way: (blocked, number)."""
    if way == "transaction":
        rows(connection, "START TRANSACTION")
    told = check(connection, zone, key)
    if way != "own":
        connection.commit()
    return told


def all_at_once(work, asking):
    """work(connection, way, number of the caller) in a thread each: what they gave, one after another."""
    with ThreadPoolExecutor(len(asking)) as threads:
        begun = [threads.submit(work, connection, way, number) for number, (connection, way) in enumerate(asking)]
        return [told for one in begun for told in one.result(WAITS_S)]


def same_as_the_model(velocity, zone, rate, window_ms, answers):
    """Each verdict, as it was told and as it stands in the history, is the model's: how many of each."""
    history, model = velocity.history(zone), Model(rate, window_ms)
    for bucket, at_ms, blocked, number in history:
        assert model.judge(bucket, at_ms) == blocked, (bucket, at_ms, number)
    assert sorted(answers) == sorted((blocked, number) for _, _, blocked, number in history)
    assert len({number for _, number in answers}) == len(answers)
    return Counter(blocked for blocked, _ in answers)


def test_one_hot_key(_place):
    velocity, rate, window_ms, each = Velocity(), 5, 100, 40
    zone, before = velocity.zone(rate, window_ms), velocity.deadlocks()
    with callers(velocity) as asking:
        answers = all_at_once(lambda connection, way, _: [ask(connection, way, zone, b"hot") for _ in range(each)],
                              asking)
    counts = same_as_the_model(velocity, zone, rate, window_ms, answers)
    assert counts[0] > rate and counts[1] > 0 and counts.total() == CALLERS * each, counts
    assert velocity.deadlocks() == before


def test_fresh_keys(_place):
    """Of each new key that all ask for at the same moment, exactly the rate passes; between them keys of one's own."""
    velocity, rate, rounds = Velocity(), 5, 15
    zone, before = velocity.zone(rate, HOUR_MS), velocity.deadlocks()
    together = threading.Barrier(CALLERS, timeout=WAITS_S)

    def work(connection, way, number):
        told = []
        for turn in range(rounds):
            together.wait()
            told.append(ask(connection, way, zone, f"{turn} of all"))
            told.append(ask(connection, way, zone, f"{turn} of {number}"))
        return told

    with callers(velocity) as asking:
        answers = all_at_once(work, asking)
    counts = same_as_the_model(velocity, zone, rate, HOUR_MS, answers)
    assert counts == {0: rounds * (rate + CALLERS), 1: rounds * (CALLERS - rate)}, counts
    assert velocity.deadlocks() == before


def test_trimming_meanwhile(_place):
    """Rows go and come again under those who ask, and what passed in the window is not forgotten."""
    velocity, rate = Velocity(), 3
    day, moment = velocity.zone(rate, 24 * HOUR_MS), velocity.zone(1, 0)
    ended = threading.Event()

    def work(connection, way, _):
        return [(turn % 4, *ask(connection, way, *((day, f"{turn % 4}") if turn % 2 else (moment, f"{turn % 4}"))))
                for turn in range(40)]

    def trim():
        removed = [0, 0]
        with velocity.connect("SET TIMESTAMP = UNIX_TIMESTAMP() + 120") as connection:
            while not ended.is_set() or removed[1] == 0:
                for place, count in enumerate(rows(connection, "CALL trim_velocity(0, 7)")[0]):
                    removed[place] += count
        return removed

    with ThreadPoolExecutor(1) as threads, callers(velocity, ways=("own",), count=20) as asking:
        trimming = threads.submit(trim)
        try:
            answers = all_at_once(work, asking)
        finally:
            ended.set()
        removed = trimming.result(WAITS_S)
    passed = Counter(key for key, blocked, _ in answers if not blocked)
    assert (passed[1], passed[3]) == (rate, rate), passed
    assert len({number for *_, number in answers}) == len(answers) == 800
    assert removed[1] >= 1, removed


def test_a_deadlock_is_tried_again(_place):
    velocity = Velocity()
    zone = velocity.zone(5, HOUR_MS)
    velocity.sql("CREATE TABLE weight (id INT PRIMARY KEY)")
    for way, code in (("own", None), ("transaction", 1213)):
        key, before = f"{way} key", velocity.deadlocks()
        with velocity.connect() as caller, velocity.connect("START TRANSACTION") as other:
            assert ask(caller, "own", zone, key)[0] == 0
            # It holds where the history goes, and much else, so that it is not the one to be rolled back.
            rows(other, "INSERT INTO weight VALUES " + ", ".join(f"({number})" for number in range(200)))
            rows(other, "SELECT * FROM zone_txn WHERE zone_id = %s AND bucket = %s FOR UPDATE", zone, key)
            with ThreadPoolExecutor(1) as threads:
                asked = threads.submit(ask, caller, way, zone, key)
                until(lambda: rows(other, "SELECT id FROM information_schema.processlist"
                                          " WHERE info LIKE 'INSERT INTO zone_txn%'"), "it comes to the history")
                rows(other, "SELECT * FROM zone_bucket_lock WHERE zone_id = %s AND bucket = %s FOR UPDATE", zone, key)
                other.rollback()
                if code is None:
                    assert asked.result(WAITS_S)[0] == 0
                else:
                    try:
                        raise AssertionError(asked.result(WAITS_S))
                    except Error as error:
                        assert error.args[0] == code, error
                    caller.rollback()
            assert velocity.deadlocks() == before + 1
            assert [ask(caller, "own", zone, key)[0] for _ in range(5)].count(0) == (3 if code is None else 4)


if __name__ == "__main__":
    main(globals())
