#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MySQL store on a real MariaDB: what every store must do, its schema, its users, what it says of a server."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, own_mariadb
from support.place import PATIENCE_S, ROOT
from support.sql_proxy import SqlProxy
from support.store_shell import CALL_S, PROGRAMS, Shell, configure, main, new_database, restarted, server

SCHEMA = os.path.join(ROOT, "deploy/mysql/schema.sql")


# ---- what every store must do ----

def run_suite(place, **store):
    config, _ = configure(place, **store)
    done = place.run(config, program=os.path.join(PROGRAMS, "store_mysql_suite"), patience_s=10 * PATIENCE_S)
    assert done.code() == 0, (done.out() + done.said().encode())[-3000:].decode(errors="replace")


def test_suite(place):
    run_suite(place)


def test_suite_on_a_server_that_takes_a_row_at_a_time(place):
    if own_mariadb.mysqld() is not None:
        raise cases.Skipped("MySQL takes one at a time anyway")
    with SqlProxy(server().port, one_row=True) as proxy:
        run_suite(place, port=proxy.port)
        assert proxy.accepted > 0


# ---- the schema ----

def described(database, count=17):
    """Each table and view as the server would make it, and the version."""
    tables = [row[0] for row in server().sql("SHOW TABLES", database)]
    assert len(tables) == count, tables
    def made(name):
        """Without whoever made it, and the letters that his connection had."""
        (row,) = server().sql(f"SHOW CREATE TABLE {name}", database)
        return [re.sub(r"DEFINER=\S+ ", "", word) for word in row[:2]]
    return ([made(name) for name in tables],
            server().sql("SELECT program, version FROM schema_version", database))


def test_schema_file_makes_the_tables_that_the_store_makes(place):
    config, made = configure(place)
    Shell(place, config).end()
    by_hand = new_database()
    with open(SCHEMA, encoding="utf-8") as file:
        text = file.read()
    server().sql(f"CREATE DATABASE {by_hand} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    for _ in range(2):
        server().sql(text, by_hand)
        assert described(by_hand) == described(made)
    config, _ = configure(place, database=by_hand)
    shell = Shell(place, config)
    assert shell.take(0) > 0
    shell.end()


def test_an_epoch_is_not_given_twice(place):
    """Not by a server that has lost the last one, as one that replaces another may have."""
    config, database = configure(place)
    old, new = Shell(place, config), Shell(place, config)
    before, epoch = old.take(0), old.take(0)
    old.good("write", 0, epoch, 1, "b", 0, 1, 10, "a")
    server().sql(f"UPDATE partition_state SET epoch = {before}", database)
    assert new.take(0) > epoch
    old.gives("FENCED", "commit", 0, epoch, 1, 5)
    # A clock that was set back does not lead back.
    server().sql("UPDATE partition_state SET epoch = 1 << 62", database)
    assert new.take(0) == (1 << 62) + 1
    old.end()
    new.end()


def test_large_blobs_are_removed_in_small_transactions(place):
    """A server's binary log has all that a transaction removes, and a group of servers refuses too much of it."""
    config, database = configure(place)
    shell = Shell(place, config)
    epoch = shell.take(0)
    for checkpoint in (1, 2):
        for first in range(0, 40, 5):
            shell.good("write", 0, epoch, checkpoint, "b", first, 5, 2000000, "a")
        shell.good("commit", 0, epoch, checkpoint, 1)
    def commits():
        return int(server().sql("SHOW GLOBAL STATUS LIKE 'Com_commit'")[0][1])
    before = commits()
    shell.good("clean", 0, epoch)
    assert commits() - before >= 3  # 80 MB, by 32 MiB
    assert server().sql("SELECT checkpoint, count(*) FROM segment_state GROUP BY 1", database) == [["2", "40"]]
    shell.end()


def test_daemons_may_start_together_on_nothing(place):
    config, database = configure(place)
    shells = [Shell(place, config, opened=False) for _ in range(6)]
    for shell in shells:
        shell.send("open")
    for shell in shells:
        assert shell.answer() == ("OK", ""), database
    epochs = [shell.take(0) for shell in shells]
    assert epochs == sorted(set(epochs)) and epochs[0] > 0, epochs
    for shell in shells:
        shell.end()


def version(database):
    return server().sql("SELECT version FROM schema_version", database)


def with_next_step(place, sql):
    """A file of the schema of today and one more step."""
    with open(SCHEMA, encoding="utf-8") as file:
        text = file.read()
    assert "-- ---- step 4" in text and "-- ---- step 5" not in text
    return place.write(f"schema-{abs(hash(sql))}.sql", f"{text}\n-- ---- step 5 ----\n\n{sql}")


TODAY = "4"  # the steps of the schema

NEXT_STEP = ("CREATE TABLE IF NOT EXISTS owner (zone_id INT PRIMARY KEY, name VARCHAR(64) NOT NULL DEFAULT 'none; yet');\n"
          "INSERT IGNORE INTO owner (zone_id) SELECT zone_id FROM zone_master; -- of the rows; that there are\n"
          "CREATE OR REPLACE VIEW owners AS SELECT zone_master.name AS zone, owner.name\n"
          "  FROM zone_master JOIN owner USING (zone_id);\n"
          "UPDATE schema_version SET version = 5 WHERE program = 'weir' AND version < 5;\n")


def test_a_step_that_was_cut_off_is_done_again(place):
    config, database = configure(place)
    server().sql(f"CREATE DATABASE {database}")
    with open(SCHEMA, encoding="utf-8") as file:
        statements = file.read().partition("-- ---- step 1")[2].split(";\n")
    server().sql("-- " + ";\n".join(statements[:3]) + ";\n", database)
    assert version(database) == [] and len(server().sql("SHOW TABLES", database)) == 3
    Shell(place, config).end()
    assert version(database) == [[TODAY]]
    server().sql("DELETE FROM schema_version; DROP TABLE note; DROP VIEW hourly", database)
    Shell(place, config).end()
    assert version(database) == [[TODAY]] and len(described(database)[0]) == 17


def test_the_first_version_is_brought_up_to_date(place):
    """Made by hand by the first step alone, with a decision and an event in it; later steps may be run twice."""
    config, database = configure(place)
    server().sql(f"CREATE DATABASE {database}")
    with open(SCHEMA, encoding="utf-8") as file:
        first, _, later = file.read().partition("-- ---- step 2")
    second, _, later = later.partition("-- ---- step 3")
    third, _, fourth = later.partition("-- ---- step 4")
    server().sql(first, database)
    assert version(database) == [["1"]] and not [row for row in described(database, 15)[0] if "nth" in str(row)]
    server().sql("INSERT INTO decision_history VALUES (5, 1, 2, 3, 'site', 'ann', 'block', 9, 'enforce', 'gcra', 3, 1, 3, NULL, NULL)",
                 database)
    server().sql("INSERT INTO zone_txn VALUES (7, 'ann', 5, 1, 2, 3, 1)", database)
    for step in (second, third, fourth):
        server().sql("--" + step.partition("UPDATE schema_version")[0], database)  # cut off before its end
    Shell(place, config).end()
    assert version(database) == [[TODAY]]
    assert server().sql("SELECT zone, nth FROM decisions", database) == [["site", "NULL"]]
    assert server().sql("SELECT bucket, fields FROM events", database) == [["ann", "NULL"]]
    assert server().sql("SELECT * FROM shadow_decisions", database) == []


def test_an_older_schema_is_brought_up_to_date(place):
    """From 4 to 5, with rows in it; a weir that knows only 4 then refuses it."""
    config, database = configure(place)
    shell = Shell(place, config)
    server().sql("INSERT INTO zone_master (zone_id, limit_number, name, algorithm, rate, window_ms, policy_version)"
                 " VALUES (4, 1, 'site', 'gcra', 3, 1000, 1)", database)
    newer = with_next_step(place, NEXT_STEP)
    assert "schema 5 in " in shell.good("missing", newer)
    assert version(database) == [[TODAY]]
    for _ in range(2):
        shell.good("upgrade", newer)
        assert version(database) == [["5"]]
        assert server().sql("SELECT * FROM owners", database) == [["site", "none; yet"]]
        assert shell.good("missing", newer) == ""
    shell.end()
    other = Shell(place, config, opened=False)
    assert "written by a newer version of weir (schema 5, known: 4)" in other.gives("NEWER", "open")
    other.end()


def test_all_steps_are_run_on_an_empty_database(place):
    config, database = configure(place)
    server().sql(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    shell = Shell(place, config, opened=False)
    newer = with_next_step(place, NEXT_STEP)
    assert "the tables of " in shell.good("missing", newer)
    assert server().sql("SHOW TABLES", database) == []
    shell.good("upgrade", newer)
    assert version(database) == [["5"]] and server().sql("SELECT * FROM owners", database) == []
    shell.end()


def test_a_step_that_fails_is_said_and_run_again(place):
    """What it has done stays, its version does not; once what was in the way is gone it goes through."""
    config, database = configure(place)
    shell = Shell(place, config)
    server().sql("CREATE TABLE owners (theirs INT)", database)
    newer = with_next_step(place, NEXT_STEP)
    assert "owners" in shell.gives("IO", "upgrade", newer)
    assert version(database) == [[TODAY]]
    assert server().sql("SELECT count(*) FROM owner", database) == [["0"]]
    server().sql("DROP TABLE owners", database)
    shell.good("upgrade", newer)
    assert version(database) == [["5"]] and server().sql("SELECT * FROM owners", database) == []
    shell.end()


def test_days_are_utc_and_keys_are_text(place):
    """The views for people, whatever the session's time zone, and for keys that are no text."""
    config, database = configure(place)
    Shell(place, config).end()
    server().sql("INSERT INTO zone_master (zone_id, limit_number, name, algorithm, rate, window_ms, policy_version)"
                 " VALUES (4, 1, 'site', 'gcra', 3, 1000, 1);"
                 "INSERT INTO count_daily VALUES (86400000, 4, 'k', 5, 6, 7)", database)
    day = "SET time_zone = '+05:00'; SELECT zone, key_text, day, total FROM daily"
    assert server().sql(day, database) == [["site", "k", "1970-01-02", "11"]]
    server().sql("INSERT INTO count_daily VALUES (0, 4, x'ff00', 1, 0, 0)", database)  # as hexadecimal digits
    assert server().sql("SELECT key_text FROM daily WHERE day = '1970-01-01'", database) == [["FF00"]]


def test_other_databases_are_refused(place):
    for statements, status, words in (
            ("CREATE TABLE theirs (x INT)", "INVALID", "this database belongs to another program: give weir its own"),
            ("CREATE TABLE schema_version (installed_rank INT)", "INVALID", "schema_version belongs to another program"),
            (None, "NEWER", "written by a newer version of weir (schema 99, known: ")):
        config, database = configure(place)
        shell = Shell(place, config, opened=False)
        if statements is None:
            shell.good("open")
            shell.good("close")
            statements = "UPDATE schema_version SET version = 99"
        else:
            server().sql(f"CREATE DATABASE {database}")
        server().sql(statements, database)
        assert words in shell.gives(status, "open")
        shell.end()


# ---- who may ---

def test_a_user_works_without_making_databases(place):
    database = new_database()
    server().sql(f"CREATE DATABASE {database}; CREATE USER narrow@'127.0.0.1' IDENTIFIED BY 'secret';"
                 f"GRANT CREATE, CREATE VIEW, ALTER, DROP, SELECT, INSERT, UPDATE, DELETE ON {database}.* TO narrow@'127.0.0.1'")
    try:
        config, _ = configure(place, database=database, user="narrow")
        shell = Shell(place, config)
        epoch = shell.take(0)
        shell.good("write", 0, epoch, 1, "b", 0, 3, 10, "x")
        shell.good("commit", 0, epoch, 1, 5)
        # Another one may only look.
        server().sql(f"CREATE USER looker@'127.0.0.1' IDENTIFIED BY 'secret';"
                     f"GRANT SELECT ON {database}.* TO looker@'127.0.0.1'")
        config, _ = configure(place, database=database, user="looker")
        looker = Shell(place, config)
        assert looker.good("look", 0) == f"{epoch} 1 5"
        assert looker.good("read", 0, epoch, 0, 1) == "0/1 b x*10;"
        assert "denied" in looker.gives("IO", "take", 0)
        # Where there is no database, it says so.
        config, missing = configure(place, user="narrow")
        words = Shell(place, config, opened=False).gives("INVALID", "open")
        assert "denied" in words and missing in words, words
        config, _ = configure(place, database=database, user="narrow", password="wrong")
        assert "Access denied" in Shell(place, config, opened=False).gives("INVALID", "open")
        looker.end()
        shell.end()
    finally:
        server().sql("DROP USER IF EXISTS narrow@'127.0.0.1', looker@'127.0.0.1'")


def test_a_new_password_is_taken_at_the_next_connection(place):
    database, secret = new_database(), place.write("password", "one\n")
    server().sql(f"CREATE DATABASE {database}; CREATE USER turned@'127.0.0.1' IDENTIFIED BY 'one';"
                 f"GRANT ALL ON {database}.* TO turned@'127.0.0.1'")

    def cut():
        (mine,) = server().sql(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'")
        server().sql(f"KILL {mine[0]}")

    try:
        config, _ = configure(place, database=database, user="turned", password={"file": secret})
        shell = Shell(place, config)
        epoch = shell.take(0)
        server().sql("ALTER USER turned@'127.0.0.1' IDENTIFIED BY 'two'")
        place.write("password", "two\n")
        cut()
        assert shell.state()[0] == epoch
        # One that is away for a moment is waited for, as a server would be.
        os.remove(secret)
        cut()
        assert f"store.password.file: cannot open {secret}" in shell.gives("IO", "look", 0)
        place.write("password", "two\n")
        assert shell.state()[0] == epoch
        shell.end()
    finally:
        server().sql("DROP USER turned@'127.0.0.1'")


def certificates(place):
    """An authority, another one, and a certificate for 127.0.0.1."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=place.directory, check=True, capture_output=True, timeout=CALL_S)

    place.write("names", "subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    place.write("other-names", "subjectAltName=IP:127.0.0.2,DNS:elsewhere.example\n")
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
                "-out", f"{name}.pem")
    for name, names, subject in (("cert", "names", "localhost"), ("elsewhere", "other-names", "elsewhere.example")):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={subject}", "-keyout", f"{name}.key",
                "-out", f"{name}.request")
        openssl("x509", "-req", "-in", f"{name}.request", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1",
                "-extfile", names, "-out", f"{name}.pem")


def test_tls_asks_for_the_authority_and_the_name(place):
    if shutil.which("openssl") is None:
        raise cases.Skipped("no openssl here")
    certificates(place)
    config, database = configure(place, tls_ca=place.path("ca.pem"))
    assert "INVALID" != Shell(place, config, opened=False)("open")[0]  # a server without TLS: refused, not for good
    def tls(name):
        return [f"--ssl-ca={place.path('ca.pem')}", f"--ssl-cert={place.path(name + '.pem')}",
                f"--ssl-key={place.path(name + '.key')}", "--require-secure-transport=ON"]
    with restarted(*tls("cert")):
        shell = Shell(place, config)
        assert shell.take(0) > 0
        shell.end()
        assert int(server().sql("SHOW GLOBAL STATUS LIKE 'Ssl_finished_accepts'")[0][1]) > 0
        other, _ = configure(place, database=database, tls_ca=place.path("other-ca.pem"))
        words = Shell(place, other, opened=False).gives("IO", "open")
        assert "SSL" in words or "TLS" in words or "certificate" in words, words
    with restarted(*tls("elsewhere")):
        words = Shell(place, config, opened=False).gives("IO", "open")
        assert "SSL" in words or "TLS" in words or "certificate" in words, words


def test_a_server_that_has_just_started_takes_a_password_without_tls(place):
    config, _ = configure(place)
    without = "--loose-skip-ssl" if own_mariadb.mysqld() is None else "--tls-version="
    with restarted(without):  # MySQL knows no hash of it yet that would do without a key
        shell = Shell(place, config)
        assert shell.take(0) > 0
        shell.end()


def test_a_small_packet_is_refused_in_words(place):
    config, _ = configure(place)
    with restarted("--max-allowed-packet=2M"):
        words = Shell(place, config, opened=False).gives("INVALID", "open")
        assert "max_allowed_packet is 2097152 bytes: set it to 4194304 or more" in words, words
    with restarted("--max-allowed-packet=4M"):
        shell = Shell(place, config)
        epoch = shell.take(0)
        shell.good("write", 0, epoch, 1, "b", 0, 100, 100000, "x")
        shell.good("commit", 0, epoch, 1, 9)
        words = shell.gives("IO", "write", 0, epoch, 2, "b", 200, 1, 5000000, "y")
        assert "do not fit the server's max_allowed_packet: raise it" in words, words
        shell.good("commit", 0, epoch, 2, 9)
        assert shell.good("read", 0, epoch, 98, 200) == "98/1 b x*100000; 99/1 b x*100000;"
        # Once it is raised the next try goes through.
        server().sql("SET GLOBAL max_allowed_packet = 64 * 1024 * 1024")
        words = shell("write", 0, epoch, 3, "b", 200, 1, 5000000, "y")
        if words[0] == "IO":  # a connection that was made before, to commit
            shell.good("write", 0, epoch, 3, "b", 200, 1, 5000000, "y")
        shell.good("commit", 0, epoch, 3, 9)
        assert shell.good("read", 0, epoch, 200, 1) == "200/3 b y*5000000;"
        shell.end()


# ---- how fast ----

def test_bench_runs_on_it(place):
    config, _ = configure(place)
    done = place.run(program=os.path.join(os.path.dirname(PROGRAMS), "bin", "bench_store_mysql"),
                     env={**os.environ, "WEIR_BENCH": "smoke", "WEIR_STORE": config})
    assert done.code() == 0, done.said()
    names = [json.loads(line)["bench"] for line in done.out().splitlines()]
    assert "store_mysql_write_million" in names and "store_mysql_read_million" in names, names


if __name__ == "__main__":
    main(globals())
