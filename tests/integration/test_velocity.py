#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_velocity, one caller at a time: its rule against a slow model, its transactions, its words, its trimming.

Time is SET TIMESTAMP's, which the procedure's clock follows. The server's own zone puts its clocks back in autumn.
WEIR_MYSQLD=PATH runs it on MySQL 8.
"""

import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support.velocity import LEVELS, Model, Velocity, check, check_at, main, refused, rows, set_clock, text

START_MS = 1_700_000_000_123


def sessions(velocity):
    """A connection for each isolation level: outside of a transaction, and without autocommit."""
    return [velocity.connect(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}", f"SET autocommit = {autocommit}")
            for level in LEVELS for autocommit in (1, 0)]


# ---- the rule ----

def walk(chance, count, window_ms):
    """Times: bursts, pauses, the window's edges to the millisecond, and a clock that is set back."""
    at, seen = START_MS, []
    for _ in range(count):
        kind = chance.random()
        if kind < 0.25 and seen:  # by an edge of one that was
            at = chance.choice(seen[-8:]) + window_ms + chance.choice((-1, 0, 1))
        elif kind < 0.32:
            at -= chance.randrange(2 * window_ms)
        else:
            at += chance.choice((0, 0, 1, window_ms // 7, chance.randrange(2 * window_ms)))
        seen.append(at)
        yield at


def test_verdicts_equal_a_model(_place):
    velocity = Velocity()
    callers = sessions(velocity)
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    judged = {0: 0, 1: 0}
    for rate, window_ms in ((1, 10), (1, 60_000), (2, 7), (5, 60_000), (5, 1), (30, 1000), (0, 60_000)):
        zone, model = velocity.zone(rate, window_ms), Model(rate, window_ms)
        for at_ms in walk(chance, 150, window_ms):
            key = chance.choice((b"a", b"A", b"a "))
            caller = chance.choice(callers)
            told, wanted = check_at(caller, zone, key, at_ms), model.judge(key, at_ms)
            caller.commit()
            assert told == wanted, f"seed {seed}: {rate} in {window_ms}: {key} at {at_ms} gave {told}"
            judged[told] += 1
    assert min(judged.values()) > 100, judged


def test_a_changed_rate_counts_at_once(_place):
    velocity = Velocity()
    zone, model = velocity.zone(3, 1000), Model(3, 1000)
    with velocity.connect() as caller:
        for step in range(120):
            if step % 10 == 0:
                model.rate = (3, 9, 1, 5)[step // 10 % 4]
                rows(caller, "UPDATE zone_master SET rate = %s WHERE zone_id = %s", model.rate, zone)
            at_ms = START_MS + 90 * step
            assert check_at(caller, zone, b"k", at_ms) == model.judge(b"k", at_ms), step


def test_an_hour_that_comes_twice_is_two_hours(_place):
    velocity = Velocity()
    zone = velocity.zone(1, 600_000)
    with velocity.connect() as caller:
        half_past_two_ms = 1_792_888_200_000  # 2026-10-25T00:30Z, and half past two again an hour later
        if rows(caller, "SELECT @@session.time_zone, FROM_UNIXTIME(%s), FROM_UNIXTIME(%s)",
                half_past_two_ms // 1000, half_past_two_ms // 1000 + 3600)[0][1].hour != 2:
            raise AssertionError("the server's clocks are not put back")
        assert [check_at(caller, zone, b"k", half_past_two_ms + minutes * 60_000)
                for minutes in (0, 9, 60, 69, 71)] == [0, 1, 0, 1, 0]
        assert [at_ms for _, at_ms, _, _ in velocity.history(zone)][2] == half_past_two_ms + 3_600_000


def test_a_large_rate_is_held_to(_place):
    velocity = Velocity()
    zone = velocity.zone(2000, 60_000)
    with velocity.connect() as caller:
        at_ms = b"".join((START_MS + number).to_bytes(6, "big") for number in range(1999))
        rows(caller, "INSERT INTO zone_bucket_lock VALUES (%s, 'k', %s)", zone, at_ms)
        told = [check_at(caller, zone, b"k", START_MS + at) for at in (3000, 3000, 60_000, 60_001, 60_001, 60_002)]
        assert told == [0, 1, 1, 0, 1, 0], told


# ---- the caller's transaction ----

def test_an_old_snapshot_does_not_hide_attempts(_place):
    velocity = Velocity()
    zone = velocity.zone(2, 3_600_000)
    for level in LEVELS:
        for key in (f"{level} old", f"{level} new"):
            with velocity.connect() as other, velocity.connect(
                    f"SET SESSION TRANSACTION ISOLATION LEVEL {level}") as caller:
                if key.endswith("old"):
                    assert check(other, zone, key)[0] == 0
                rows(caller, "START TRANSACTION")
                rows(caller, "SELECT COUNT(*) FROM zone_txn" + (" LIMIT 0" if level == "SERIALIZABLE" else ""))
                while check(other, zone, key)[0] == 0:
                    pass
                assert check(caller, zone, key)[0] == 1, key
                caller.rollback()


def test_the_callers_transaction_is_the_callers(_place):
    velocity = Velocity()
    zone = velocity.zone(2, 3_600_000)
    velocity.sql("CREATE TABLE orders (id INT PRIMARY KEY)")
    for begin in ("START TRANSACTION", "SET autocommit = 0"):
        with velocity.connect(begin) as caller, velocity.connect() as other:
            rows(caller, "INSERT INTO orders VALUES (7)")
            key = f"{begin} back"
            assert [check(caller, zone, key)[0] for _ in range(3)] == [0, 0, 1]
            caller.rollback()
            assert rows(other, "SELECT COUNT(*) FROM orders") == [(0,)]
            assert [check(other, zone, key)[0] for _ in range(3)] == [0, 0, 1]
            rows(caller, begin)
            assert check(caller, zone, f"{begin} kept")[0] == 0
            caller.commit()
            assert [check(other, zone, f"{begin} kept")[0] for _ in range(2)] == [0, 1]
    assert len(velocity.history(zone)) == 2 * (3 + 3)


def test_a_lock_that_is_not_had_leaves_nothing_open(_place):
    velocity = Velocity()
    zone = velocity.zone(1, 3_600_000)
    with velocity.connect("START TRANSACTION") as holder, velocity.connect(
            "SET innodb_lock_wait_timeout = 1") as caller:
        assert check(holder, zone, b"k")[0] == 0
        assert refused(caller, "CALL check_velocity(%s, 'k')", zone)[0] == 1205
        rows(caller, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")  # an error within a transaction
        holder.rollback()
        assert [check(caller, zone, b"k")[0] for _ in range(2)] == [0, 1]


# ---- words ----

def test_what_is_wrong_is_said(_place):
    velocity = Velocity()
    zone, far = velocity.zone(1, 1000), velocity.zone(100_001, 1000)
    velocity.sql(f"INSERT INTO zone_master (zone_id, limit_number, name, algorithm, rate, window_ms)"
                 f" SELECT 77, 1, name, algorithm, 1, 1 FROM zone_master WHERE zone_id = {zone}")
    for mode in ("STRICT_ALL_TABLES", "", "ANSI"):
        with velocity.connect(f"SET sql_mode = '{mode}'") as caller:
            for number, key, words in ((999, b"k", "zone_master has no such zone_id with limit_number 0"),
                                       (77, b"k", "zone_master has no such zone_id with limit_number 0"),
                                       (None, b"k", "zone_master has no such zone_id with limit_number 0"),
                                       (far, b"k", "the rate of the zone is above 100000"),
                                       (zone, b"", "the bucket key must have 1 to 1024 bytes"),
                                       (zone, None, "the bucket key must have 1 to 1024 bytes"),
                                       (zone, b"k" * 1025, "the bucket key must have 1 to 1024 bytes")):
                code, said = refused(caller, "CALL check_velocity(%s, %s)", number, key)
                assert (code, said) == (1644, f"check_velocity: {words}"), (mode, said)
            assert check(caller, zone, f"{mode}\0\xff".encode("latin-1") + b"k" * 1000)[0] == 0
            for keep_ms, count in ((None, 1), (-1, 1), (1, None), (1, 0)):
                assert "trim_velocity: p_keep_ms must be" in refused(
                    caller, "CALL trim_velocity(%s, %s)", keep_ms, count)[1]
    assert {bytes(bucket)[-1000:] for bucket, *_ in velocity.history(zone)} == {b"k" * 1000}


def test_its_users_need_what_its_file_says(_place):
    velocity = Velocity()
    zone = velocity.zone(3, 60_000)
    keeper, login = (grant.replace("weir.", f"{velocity.database}.")
                     for grant in re.findall(r"^-- +(GRANT .*;)", text("velocity.sql"), flags=re.M))
    for user in ("keeper", "login"):
        velocity.sql(f"DROP USER IF EXISTS {user}@localhost; CREATE USER {user}@localhost IDENTIFIED BY 'secret'")
    velocity.sql("DROP PROCEDURE check_velocity; DROP PROCEDURE trim_velocity; DROP TABLE zone_bucket_lock;" + keeper)
    for _ in range(2):
        velocity.server.sql(text("velocity.sql"), velocity.database, "--user=keeper", "--password=secret")
    velocity.sql(login)
    with velocity.connect(user="keeper", password="secret") as caller:
        assert rows(caller, "CALL trim_velocity(0, 1)") == [(0, 0)]
    with velocity.connect(user="login", password="secret") as caller, caller.cursor() as cursor:
        cursor.execute("CALL check_velocity(%s, 'k')", (zone,))
        assert [column[0] for column in cursor.description] == [
            "v_blocked", "v_zone_txn_id", "p_zone_id", "p_bucket_key", "v_rate", "v_window_ms"]
        (blocked, number, *rest), = cursor.fetchall()
        assert not cursor.nextset() or cursor.description is None
        assert (blocked, *rest) == (0, zone, b"k", 3, 60_000)
        assert [one[3] for one in velocity.history(zone)] == [number]
        assert refused(caller, "CALL trim_velocity(0, 1)")[0] == 1370


def test_its_file_may_be_run_again_and_its_examples_run(_place):
    velocity = Velocity()
    remarks = "\n".join(re.findall(r"^-- ?(.*)", text("velocity.sql"), flags=re.M))
    example, event = (re.search(pattern, remarks, flags=re.S).group(0)
                      for pattern in (r"INSERT INTO zone_master.*?\);", r"CREATE EVENT.*?1000\);"))
    velocity.sql(re.sub(r"--[^\n]*", "", example))
    with velocity.connect() as caller:
        told = [check(caller, 1, b"k")[0] for _ in range(3)]
        before = velocity.sql("SELECT * FROM zone_bucket_lock; SELECT * FROM zone_txn; SELECT @@sql_mode")
        velocity.install()
        assert velocity.sql("SELECT * FROM zone_bucket_lock; SELECT * FROM zone_txn; SELECT @@sql_mode") == before
        told += [check(caller, 1, b"k")[0] for _ in range(3)]
        assert told == [0, 0, 0, 0, 0, 1]
    for _ in range(2):
        velocity.sql(event)
    assert len(velocity.sql("SHOW EVENTS")) == 1


# ---- trimming ----

def test_trimming(_place):
    velocity = Velocity()
    short, long = velocity.zone(2, 1000), velocity.zone(3, 120_000)
    with velocity.connect() as caller, velocity.connect() as other:
        for at in range(0, 20_000, 1000):
            for zone, key in ((short, b"idle"), (short, b"held"), (long, b"busy")):
                check_at(caller, zone, key, START_MS + at)
        check_at(caller, short, b"new", START_MS + 20_500)
        velocity.sql(f"INSERT INTO zone_txn VALUES ({short}, 'idle', {START_MS}, 3, 1, 0, 0, NULL)")  # another's
        buckets = "SELECT bucket FROM zone_bucket_lock ORDER BY zone_id, bucket"
        older = "SELECT bucket, COUNT(*) FROM zone_txn GROUP BY zone_id, bucket ORDER BY zone_id, bucket"

        def trim(at, keep_ms, count):
            set_clock(caller, START_MS + at)
            return rows(caller, "CALL trim_velocity(%s, %s)", keep_ms, count)[0]

        assert trim(20_000, 15_000, 4) == (15, 0)
        assert velocity.sql(older) == [["held", "15"], ["idle", "16"], ["new", "1"], ["busy", "15"]]
        rows(other, "START TRANSACTION")
        rows(other, "SELECT * FROM zone_bucket_lock WHERE zone_id = %s AND bucket = 'held' FOR UPDATE", short)
        # Not waited for; `busy` is needed: three passed in the window, and no history says so.
        assert trim(81_000, 61_000, 1) == (45, 1)
        assert velocity.sql(buckets) == [["held"], ["new"], ["busy"]]
        assert velocity.sql(older) == [["idle", "1"], ["new", "1"]]
        assert check_at(caller, long, b"busy", START_MS + 81_000) == 1
        other.rollback()
        # One at a time, and not within a transaction, which stays.
        guard = "SELECT GET_LOCK(CONCAT('trim_velocity ', LEFT(SHA2(%s, 256), 32)), 0)"
        assert rows(other, guard, velocity.database) == [(1,)]
        assert trim(300_000, 1000, 1000) == (0, 0)
        rows(other, "DO RELEASE_ALL_LOCKS()")
        rows(other, "START TRANSACTION")
        check(other, short, b"mine")
        assert refused(other, "CALL trim_velocity(0, 1)")[0] == 1568
        other.rollback()
        assert trim(300_000, 1000, 1000) == (2, 3)
        assert velocity.sql(buckets) == [] and velocity.sql(older) == [["idle", "1"]]


if __name__ == "__main__":
    main(globals(), TZ="CET-1CEST,M3.5.0,M10.5.0/3")
