#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir forget` on a real cluster: from MariaDB's tables, through limiter and archiver, with hashed keys, too."""

import hashlib
import hmac
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.place import PATIENCE_S
from support.roles import Roles
from support.traffic import burst, sliding, source, zone

DONE, FAILED, USAGE = 0, 1, 2
DAY_MS = 86400000
TABLES = ("count_hourly", "count_daily", "decision_history", "zone_txn")
SECRET = "a secret of some bytes"
SECTIONS = {"bus": {"partitions": 4}, "limiter": {"checkpoint_interval": "300ms"},
            "archiver": {"enabled": True, "interval": "200ms"}}


def zones():
    """One that keeps every request, and one with a key of two fields."""
    return [zone("site", [sliding(3, "1h")], id=1, history=True),
            zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2)]


def hashed(key):
    """A key as the store has it."""
    return hmac.new(SECRET.encode(), key.encode(), hashlib.sha256).hexdigest()[:32]


def buckets(servers, table):
    """{bucket: rows} of a table."""
    rows = servers.mariadb.query(f"SELECT bucket, COUNT(*) FROM {table} WHERE bucket IS NOT NULL GROUP BY bucket")
    return {(bucket.decode() if isinstance(bucket, bytes) else bucket): count for bucket, count in rows}


def counts(servers, bucket):
    """(passed, blocked) of a bucket in zone 1."""
    (row,) = servers.mariadb.query("SELECT COALESCE(SUM(passed), 0), COALESCE(SUM(blocked), 0) FROM count_hourly"
                                   f" WHERE zone_id = 1 AND bucket = '{bucket}'")
    return tuple(map(int, row))


def run_forget(roles, *words, code=DONE, **sections):
    """`weir forget`: what it says."""
    merged = roles.sections(**sections)
    merged["archiver"] = {name: value for name, value in merged["archiver"].items() if value is not None}
    config = roles.place.write("forget.json", json.dumps(merged))
    run = roles.place.run("forget", *words, "--config", config)
    assert run.code() == code, (words, run.code(), run.said(), run.out())
    return run


def forget(roles, *words, **how):
    """The same as JSON."""
    return json.loads(run_forget(roles, *words, "--json", **how).out())


def until_kept(servers, archiver, key):
    """Waits until five requests of a key are archived, three of which passed, and that it is blocked."""
    archiver.until(lambda: counts(servers, key) == (3, 2) and key in buckets(servers, "decision_history"),
                   f"{key} is kept")


def test_a_key_goes_through_limiter_and_archiver(place):
    """With what check_velocity has of it; others' rows, and what comes later, stay."""
    with cluster.shared() as servers, Roles(place, servers, zones(), **SECTIONS) as roles:
        roles.apply()
        now = int(time.time() * 1000)
        log = place.write("log", burst("ann", 5, start_ms=now) + burst("bob", 5, start_ms=now))
        limiter, archiver = roles.limiter().until_ready(), roles.archiver().until_ready()
        collector = roles.collector([source(log)])
        for user in ("ann", "bob"):
            until_kept(servers, archiver, user)
        with servers.mariadb.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE zone_bucket_lock (zone_id INT UNSIGNED NOT NULL, bucket VARBINARY(1024) NOT NULL,"
                           " passed MEDIUMBLOB NOT NULL, PRIMARY KEY (zone_id, bucket))")
            cursor.execute("INSERT INTO zone_master (zone_id, limit_number, name, algorithm, rate, window_ms)"
                           " VALUES (900, 0, 'velocity', 'sliding_window', 5, 60000)")
            for user in ("ann", "bob"):
                cursor.execute("INSERT INTO zone_bucket_lock VALUES (900, %s, '')", (user,))
                cursor.execute("INSERT INTO zone_txn VALUES (900, %s, %s, 4294967295, 7, 0, 1, NULL)", (user, now))
            connection.commit()
        before = {table: buckets(servers, table) for table in TABLES}
        done = forget(roles, "ann")
        assert done["done"], done
        assert [(one["zone"], one["placed"] is not None) for one in done["zones"]] == [("site", True), ("velocity", False)]
        assert done["rows"] == {"count_hourly": 1, "count_daily": 1, "decision_history": 2, "shadow_history": 0,
                                "zone_txn": 6, "zone_bucket_lock": 1}, done
        for table in TABLES:
            assert buckets(servers, table) == {key: rows for key, rows in before[table].items() if key != "ann"}, table
        assert buckets(servers, "zone_bucket_lock") == {"bob": 1}
        # Topics go by the brokers' settings: seven days, and as long as a file may be open.
        topics = {one["topic"].rsplit(".", 1)[1]: one["until_ms"] for one in done["topics"]}
        assert {"events", "judged", "decisions", "deadletter"} <= set(topics), topics
        assert all(now + 14 * DAY_MS <= until_ms < now + 15 * DAY_MS for until_ms in topics.values()), (now, topics)
        blocked = {tuple(one["key"]) for one in roles.command("list", "--json").objects()}
        assert blocked == {("bob",)}, blocked
        place.append("log", burst("ann", 5, start_ms=now + 10))
        until_kept(servers, archiver, "ann")
        words = run_forget(roles, "ann", "--zone", "site").out().decode()
        assert "rows removed: count_hourly 1, count_daily 1, decision_history 2, shadow_history 0, zone_txn 5\n" in words, words
        assert f"topic {servers.topic('judged')}: until 20" in words, words
        assert forget(roles, "--key-hex", b"bob".hex())["rows"]["zone_bucket_lock"] == 1
        assert buckets(servers, "zone_bucket_lock") == {}
        assert all(role.stop() == DONE for role in (collector, limiter, archiver))


def test_what_waits_is_said_and_done_later(place):
    """Without an archiver, then without a limiter, it ends in time, and says for whom it has waited."""
    with cluster.shared() as servers, Roles(place, servers, zones(), **SECTIONS) as roles:
        roles.apply()
        log = place.write("log", burst("ann", 5, start_ms=int(time.time() * 1000)))
        limiter, archiver = roles.limiter().until_ready(), roles.archiver().until_ready()
        roles.collector([source(log)])
        until_kept(servers, archiver, "ann")
        assert archiver.stop() == DONE
        for seconds in (2, 10, 50):  # of which the limiter may need some
            # the archiver has a configuration of its own
            done = forget(roles, "ann", "--timeout", f"{seconds}s", code=FAILED, archiver={"enabled": None})
            if "no archiver" in done["left"]:
                break
        assert not done["done"] and "zone site: no archiver has stored partition" in done["left"], done
        # there is none any more: none is waited for, and none says with which paths joe came
        assert forget(roles, "joe", "--zone", "site", "--timeout", "4m", archiver={"enabled": False})["done"]
        done = forget(roles, "joe", "--timeout", "4m", code=FAILED, archiver={"enabled": False})
        assert done["left"].startswith("zone pair: ") and "\n" not in done["left"], done
        assert limiter.stop() == DONE
        words = run_forget(roles, "ann", "--timeout", "300ms", code=FAILED).out().decode()
        assert "NOT DONE YET:\nzone site: no limiter's checkpoint covers partition" in words, words
        limiter.start()
        archiver.start()
        assert forget(roles, "ann", "--timeout", "4m")["done"]
        assert all("ann" not in buckets(servers, table) for table in TABLES)


def test_hashed_keys(place):
    """An archiver that hashes; one without the secret is refused; a key goes by its hash."""
    secret = place.write("secret", SECRET + "\n")
    os.chmod(secret, 0o600)
    hashing = {"archiver": {**SECTIONS["archiver"], "hash_keys": secret}}
    with cluster.shared() as servers, Roles(place, servers, zones(), **{**SECTIONS, **hashing}) as roles:
        roles.apply()
        now = int(time.time() * 1000)
        log = place.write("log", burst("ann", 5, start_ms=now) + burst("bob", 5, start_ms=now))
        roles.limiter().until_ready()
        archiver = roles.archiver().until_ready()
        roles.collector([source(log)])
        for user in ("ann", "bob"):
            until_kept(servers, archiver, hashed(user))
        assert all(set(buckets(servers, table)) == {hashed("ann"), hashed("bob")} for table in TABLES)
        plain = roles.archiver(name="plain", archiver={"hash_keys": place.write("other", SECRET * 2)})
        assert plain.run.wait(2 * PATIENCE_S) == USAGE and "chmod o-rw" in plain.said(), plain.said()
        os.chmod(place.path("other"), 0o600)
        assert plain.start().run.wait(2 * PATIENCE_S) == FAILED and "is not the secret that" in plain.said(), plain.said()
        assert "is not the secret that" in run_forget(roles, "ann", code=USAGE,
                                                      archiver={"hash_keys": place.path("other")}).said()
        done = forget(roles, "ann")
        assert done["done"] and done["rows"]["zone_txn"] == 5 and done["rows"]["decision_history"] == 2, done
        assert all(set(buckets(servers, table)) == {hashed("bob")} for table in TABLES)


if __name__ == "__main__":
    cases.main(globals())
