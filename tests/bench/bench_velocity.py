#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_velocity of deploy/mysql against the procedure that it grew from, on one server, fifty callers, in turn.

velocity_hot      all ask for one key
velocity_uniform  they ask for keys drawn evenly from those of the history

rate and ceiling are their calls a second; indexed those of a third, the old one with the index that it lacks. All
have the same history. The callers are mariadb clients, a process each, that read their statements from a file and
throw the answers away: programs in C, for Python would measure itself, and no loop within the server, for who asks
pays for the way there and back. server_cpu and callers_cpu are their shares of the machine's processors at weir's
turn; what the callers take the server has not. WEIR_BENCH=smoke runs a small size; WEIR_MYSQLD=PATH is MySQL 8.
"""
import contextlib
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, own_mariadb
from support.bench import SMOKE, report
from support.cases import Skipped
from support.place import ROOT, Weir, until
from support.velocity import Velocity

CALLERS = 4 if SMOKE else 50
HISTORY = 1000 if SMOKE else 1_000_000
KEYS = HISTORY // 5
SECONDS = 0.5 if SMOKE else 10
TURNS = 1 if SMOKE else 3
RATE, WINDOW_S = 5, 60
GOAL = 5
PATIENCE_S = 300
SEED = os.path.join(ROOT, "tests", "conformance", "seeds", "check_velocity.sql")
TEN = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5" \
      " UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
# A day of attempts, a hundredth of them of the hot key, a fifth blocked; none of the last hour: all start level.
PAST = f"""
CREATE TABLE past AS SELECT IF(n % 100 = 0, 'hot', CONCAT('u', n % {KEYS})) AS k, n % 5 = 0 AS blocked,
    UNIX_TIMESTAMP() - 3600 - 86400 + FLOOR(n * 86400 / {HISTORY}) AS at_s
  FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d AS n
          FROM {TEN} a, {TEN} b, {TEN} c, {TEN} d, {TEN} e, {TEN} f) numbers WHERE n < {HISTORY};
"""
SEED_PAST = f"""
INSERT INTO zone_master VALUES (1, 'bench', {RATE}, {WINDOW_S});
INSERT INTO zone_bucket_lock SELECT DISTINCT k FROM past;
INSERT INTO zone_txn (zone_id, bucket_key, blocked, created_at) SELECT 1, k, blocked, FROM_UNIXTIME(at_s) FROM past
  ORDER BY at_s;
DROP TABLE past;
"""
INDEX = "CREATE INDEX passed ON zone_txn (bucket_key, zone_id, blocked, created_at);"
WEIR_PAST = """
INSERT INTO zone_txn SELECT 1, k, 1000 * at_s, 4294967295, UUID_SHORT(), 0, blocked, NULL FROM past;
INSERT INTO zone_bucket_lock SELECT 1, k, UNHEX(LPAD(HEX(1000 * MAX(at_s)), 12, '0')) FROM past GROUP BY k;
DROP TABLE past;
"""
ABOVE = f"""
SELECT COUNT(*) FROM (SELECT at_ms - LAG(at_ms, {RATE}) OVER (PARTITION BY bucket ORDER BY at_ms) AS apart
  FROM zone_txn WHERE NOT blocked AND at_ms > 1000 * (UNIX_TIMESTAMP() - 3600)) passes WHERE apart <= {1000 * WINDOW_S};
"""
KEY = {"hot": "'hot'", "uniform": f"CONCAT('u', FLOOR(RAND() * {KEYS}))"}


@contextlib.contextmanager
def server(place):
    """One with memory for all of it, durable as a server is by default."""
    why = own_mariadb.missing()
    if why is not None:
        raise Skipped(why)
    with own_mariadb.OwnMariaDB(place.path("server")) as one:
        if not SMOKE:
            one.stop()
            one.start("--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M")
        yield one


def prepare(one):
    """The databases of the three."""
    for database, more in (("seed", ""), ("indexed", INDEX)):
        one.sql(f"CREATE DATABASE {database}")
        with open(SEED, encoding="ascii") as file:
            one.sql(file.read(), database)
        one.sql(PAST + SEED_PAST + more, database)
    weir = Velocity(one)
    weir.zone(RATE, 1000 * WINDOW_S)
    weir.sql(PAST + WEIR_PAST)
    return {"seed": "seed", "indexed": "indexed", "weir": weir.database}


def calls(one):
    """How many the server has begun."""
    return int(one.sql("SHOW GLOBAL STATUS LIKE 'Com_call_procedure'")[0][1])


@contextlib.contextmanager
def calling(place, one, database, keys):
    """The callers, for a while."""
    script = place.path(f"{keys}.sql")
    if not os.path.exists(script):
        place.write(f"{keys}.sql", f"CALL check_velocity(1, {KEY[keys]});\n" * (10_000 if SMOKE else 200_000))
    said, running = place.path("said"), []
    command = [own_mariadb.find("mariadb"), "--no-defaults", f"--socket={one.socket}", "--user=root", "--batch",
               f"--database={database}"]
    before = calls(one)
    try:
        for _ in range(CALLERS):
            with open(script, "rb") as statements:
                running.append(Weir(command, os.devnull, said, stdin=statements))
        until(lambda: calls(one) >= before + CALLERS, "all have begun", PATIENCE_S)
        yield [caller.pid for caller in running]
        assert all(caller.code() is None for caller in running), running[0].said()
    finally:
        for caller in running:
            caller.kill()
        for (number,) in one.sql(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"):
            with contextlib.suppress(AssertionError):  # it has just gone by itself
                one.sql(f"KILL {number}")
        until(lambda: not one.sql(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"),
              "the last call has ended", PATIENCE_S)


def rate(place, one, database, keys):
    """(calls a second, the server's share of the processors, the callers')."""
    with calling(place, one, database, keys) as callers:
        def point():
            return (time.monotonic(), calls(one), bench.cpu_s(one.process.pid), sum(map(bench.cpu_s, callers)))
        begun = point()
        time.sleep(SECONDS * (2 if database == "seed" else 1))
        seconds, called, *used = (end - start for start, end in zip(begun, point()))
        return (called / seconds, *(share / seconds / os.cpu_count() for share in used))


def measure(place):
    """All three by turns, on one key and on many."""
    with server(place) as one:
        databases = prepare(one)
        for keys in KEY:
            turns = [{who: rate(place, one, database, keys) for who, database in databases.items()}
                     for _ in range(TURNS)]
            median = {who: statistics.median(turn[who][0] for turn in turns) for who in databases}
            above = int(one.sql(ABOVE, databases["weir"])[0][0])
            assert above == 0, f"{above} above the rate"
            report(f"velocity_{keys}", unit="calls/s", rate=round(median["weir"]), ceiling=round(median["seed"], 1),
                   ratio=round(statistics.median(turn["weir"][0] / max(turn["seed"][0], 0.1) for turn in turns), 1),
                   **({"goal": GOAL} if keys == "hot" else {}), indexed=round(median["indexed"], 1), above=above,
                   callers=CALLERS, history=HISTORY, server=one.sql("SELECT VERSION()")[0][0], turns=TURNS,
                   server_cpu=round(statistics.median(turn["weir"][1] for turn in turns), 2),
                   callers_cpu=round(statistics.median(turn["weir"][2] for turn in turns), 2))


if __name__ == "__main__":
    bench.main("velocity", measure)
