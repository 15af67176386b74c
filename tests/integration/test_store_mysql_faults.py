#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MySQL store while connections are cut, servers end, rows are locked, and others take its partitions."""

import contextlib
import itertools
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import own_mariadb
from support.place import PATIENCE_S, until
from support.sql_proxy import AFTER, BEFORE, STALL, SqlProxy
from support.store_shell import Shell, configure, main, server

SEED = int(os.environ.get("WEIR_SEED", "5"))


# ---- connections that end ----

def test_a_commit_cut_off_before_the_server_had_it_is_made_again(place):
    with SqlProxy(server().port) as proxy:
        config, _ = configure(place, port=proxy.port)
        shell = Shell(place, config)
        epoch = shell.take(0)
        shell.good("write", 0, epoch, 1, "b", 0, 50, 1000, "a")
        cut = proxy.cut("COMMIT", BEFORE)
        # Blobs that went over a connection that broke are not relied on.
        words = shell.gives("IO", "commit", 0, epoch, 1, 77, "name", "value")
        assert "it must be written again" in words, words
        assert cut.is_set() and shell.state() == [epoch, 0]
        assert shell.good("note", "name") == ""
        shell.good("write", 0, epoch, 1, "b", 0, 50, 1000, "a")
        shell.good("commit", 0, epoch, 1, 77, "name", "value")
        assert shell.good("look", 0) == f"{epoch} 1 77"
        # Nothing written since: what is to be made current is there, and the call itself makes it so.
        cut = proxy.cut("COMMIT", BEFORE)
        shell.good("commit", 0, epoch, 2, 78)
        assert cut.is_set() and shell.good("look", 0) == f"{epoch} 2 78"
        shell.end()


def test_a_commit_whose_answer_is_lost_is_found_to_be_made(place):
    with SqlProxy(server().port) as proxy:
        config, _ = configure(place, port=proxy.port)
        shell = Shell(place, config)
        epoch = shell.take(0)
        for checkpoint in range(1, 6):
            shell.good("write", 0, epoch, checkpoint, "b", 0, 50, 1000, "a")
            cut = proxy.cut("COMMIT", AFTER)
            shell.good("commit", 0, epoch, checkpoint, 100 + checkpoint, "name", f"value{checkpoint}")
            assert cut.is_set()
            assert shell.good("look", 0) == f"{epoch} {checkpoint} {100 + checkpoint}"
            assert shell.good("note", "name") == f"value{checkpoint}"
            assert "is current and cannot be changed" in shell.gives(
                "INVALID", "write", 0, epoch, checkpoint, "b", 0, 1, 10, "z")
        shell.end()


@contextlib.contextmanager
def lost_with_the_server(place, when):
    """A commit whose answer is lost, and then nobody to ask: the shell, its epoch and configuration."""
    with SqlProxy(server().port) as proxy:
        config, _ = configure(place, port=proxy.port)
        shell = Shell(place, config)
        epoch = shell.take(0)
        shell.good("write", 0, epoch, 1, "b", 0, 50, 1000, "a")
        proxy.cut("COMMIT", when)
        proxy.refuse()
        words = shell.gives("IO", "commit", 0, epoch, 1, 55)
        assert "it is unknown whether the transaction was committed" in words, words
        assert "unknown" not in shell.gives("IO", "look", 0)
        proxy.refuse(False)
        yield shell, epoch, config
        shell.end()


def test_a_commit_that_was_made_is_known_once_the_server_is_back(place):
    with lost_with_the_server(place, AFTER) as (shell, epoch, _):
        assert "is current" in shell.gives("INVALID", "write", 0, epoch, 1, "b", 0, 50, 1000, "a")
        shell.good("commit", 0, epoch, 1, 55)
        assert shell.good("look", 0) == f"{epoch} 1 55"
        shell.good("write", 0, epoch, 2, "d", 0, 50, 1000, "b")
        shell.good("commit", 0, epoch, 2, 56)


def test_a_commit_that_was_not_made_is_made_once_the_server_is_back(place):
    with lost_with_the_server(place, BEFORE) as (shell, epoch, _):
        shell.good("write", 0, epoch, 1, "b", 0, 50, 1000, "a")
        shell.good("commit", 0, epoch, 1, 55)
        assert shell.good("look", 0) == f"{epoch} 1 55"


def test_a_lost_answer_while_another_takes_over_is_fenced(place):
    with lost_with_the_server(place, BEFORE) as (shell, epoch, config):
        other = Shell(place, config)
        above = other.take(0)
        assert above > epoch
        shell.gives("FENCED", "write", 0, epoch, 1, "b", 0, 50, 1000, "a")
        shell.gives("FENCED", "commit", 0, epoch, 1, 55)
        assert other.good("look", 0) == f"{above} 0 0"
        other.end()


def test_a_write_that_is_cut_off_leaves_nothing(place):
    with SqlProxy(server().port) as proxy:
        config, database = configure(place, port=proxy.port)
        shell = Shell(place, config)
        epoch = shell.take(0)
        write = ("write", 0, epoch, 1, "b", 0, 60, 70000, "a")
        for after_bytes in (0, 100, 70000, 1000000, 3000000):
            cut = proxy.cut("aaaaaaaa", BEFORE, after_bytes)
            shell.gives("IO", *write)
            assert cut.is_set()
            until(lambda: server().sql("SELECT count(*) FROM segment_state", database) == [["0"]], "it is rolled back")
        shell.good(*write)
        shell.good("commit", 0, epoch, 1, 1)
        assert shell.good("list", 0, epoch, 1).count(";") == 60
        # Reading is cut off, too.
        cut = proxy.cut("\x17", AFTER)  # the first prepared statement that is executed
        shell.gives("IO", "read", 0, epoch, 0, 60)
        assert shell.good("read", 0, epoch, 0, 60).count("b a*70000") == 60
        shell.end()


def test_idle_connections_that_were_ended_are_no_matter(place):
    config, database = configure(place)
    shell = Shell(place, config)
    epoch = shell.take(0)
    for operation in (("look", 0), ("write", 0, epoch, 1, "b", 0, 3, 10, "a"), ("note", "x"), ("clean", 0, epoch),
                      ("list", 0, epoch, 0), ("policies",), ("take", 1)):
        (mine,) = server().sql(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'")
        server().sql(f"KILL {mine[0]}")
        shell.good(*operation)
    shell.end()


def test_a_server_that_stands_still_is_left_in_bounded_time(place):
    with SqlProxy(server().port) as proxy:
        config, _ = configure(place, port=proxy.port)
        shell = Shell(place, config)
        epoch = shell.take(0)
        cut = proxy.cut("START TRANSACTION", STALL)
        began = time.monotonic()
        shell.good("write", 0, epoch, 1, "b", 0, 3, 10, "a")  # over a new connection
        took = time.monotonic() - began
        assert cut.is_set() and 8 < took < 25 + PATIENCE_S, took
        server().freeze()
        try:
            began = time.monotonic()
            shell.gives("IO", "look", 0)
            took = time.monotonic() - began
            assert took < 25 + PATIENCE_S, took
        finally:
            server().thaw()
        shell.good("look", 0)
        shell.end()


# ---- servers that end ----

def test_a_server_that_is_stopped_is_found_again(place):
    config, _ = configure(place)
    shell = Shell(place, config)
    epoch = shell.take(0)
    shell.good("write", 0, epoch, 1, "b", 0, 3, 10, "a")
    shell.good("commit", 0, epoch, 1, 5)
    server().stop()
    try:
        for operation in (("look", 0), ("take", 0), ("commit", 0, epoch, 2, 6)):
            assert "127.0.0.1" in shell.gives("IO", *operation)
        assert Shell(place, config, opened=False)("open")[0] == "IO"
    finally:
        server().start()
    assert shell.good("look", 0) == f"{epoch} 1 5"
    shell.good("commit", 0, epoch, 2, 6)
    shell.end()


def test_a_server_killed_between_write_and_commit_costs_the_write(place):
    config, _ = configure(place)
    shell = Shell(place, config)
    epoch = shell.take(0)
    shell.good("write", 0, epoch, 1, "b", 0, 40, 5000, "a")
    shell.good("commit", 0, epoch, 1, 5)
    for checkpoint in (2, 3):
        write = ("write", 0, epoch, checkpoint, "d", 0, 40, 5000, "b")
        shell.good(*write)
        server().kill()
        server().start()
        assert "it must be written again" in shell.gives("IO", "commit", 0, epoch, checkpoint, 6)
        assert shell.state() == [epoch, checkpoint - 1]
        shell.good(*write)
        shell.good("commit", 0, epoch, checkpoint, 6)
    read = shell.good("read", 0, epoch, 0, 40)
    assert read.count("b a*5000") == 40 and read.count("d b*5000") == 80
    shell.end()


# ---- several writers ----

def test_a_writer_that_was_taken_over_is_fenced_whenever_it_writes(place):
    config, database = configure(place)
    old, new = Shell(place, config), Shell(place, config)
    epoch = old.take(0)
    for round_number in range(40):
        # Both at once: the old one's transaction is before the other's taking, or refused.
        checkpoint = new.state()[1] + 1
        operation = [("write", 0, epoch, checkpoint, "b", 0, 20, 2000, "o"),
                     ("commit", 0, epoch, checkpoint, 1000 + round_number)][round_number % 2]
        old.send(*operation)
        new.send("take", 0)
        status, words = old.answer()
        taken, told = new.answer()
        assert taken == "OK" and status in ("OK", "FENCED"), (status, words, taken, told)
        new_epoch, found, offset = map(int, told.split())
        assert new_epoch > epoch
        if operation[0] == "commit":
            assert (found, offset) == (checkpoint, 1000 + round_number) if status == "OK" else found == checkpoint - 1
        old.gives("FENCED", "write", 0, epoch, checkpoint + 1, "b", 0, 1, 10, "z")
        old.gives("FENCED", "commit", 0, epoch, checkpoint + 1, 1)
        old.gives("FENCED", "read", 0, epoch, 0, 1)
        old.gives("FENCED", "clean", 0, epoch)
        # What the old one wrote and did not make current is gone.
        assert server().sql(f"SELECT count(*) FROM segment_state WHERE checkpoint > {found}", database) == [["0"]]
        old, new, epoch = new, old, new_epoch
    old.end()
    new.end()


@contextlib.contextmanager
def client_of(database):
    """Another client, in a session of its own: what it is asked, it is done with at the return."""
    client = subprocess.Popen(  # pylint: disable=consider-using-with
        [own_mariadb.find("mariadb"), "--no-defaults", f"--socket={server().directory}/s", "--user=root", "--batch",
         "--skip-column-names", "--unbuffered", f"--database={database}"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)

    def ask(statement):
        client.stdin.write(statement.encode() + b";\nSELECT 'done';\n")
        lines = []
        while not lines or lines[-1] != "done":
            line = client.stdout.readline()
            assert line, f"{statement}: {lines}"
            lines.append(line.decode().strip())
        return lines[:-1]
    try:
        yield ask
    finally:
        client.kill()
        client.wait()


def test_a_partition_that_is_locked_is_not_waited_for(place):
    """Whoever takes partitions has others to take; this one is tried again later."""
    config, database = configure(place)
    shell = Shell(place, config)
    for partition in (0, 1):
        shell.take(partition)
    with client_of(database) as ask:
        ask("BEGIN")
        ask("SELECT epoch FROM partition_state WHERE role = 1 AND partition_id = 0 FOR UPDATE")
        began = time.monotonic()
        shell.gives("IO", "take", 0)
        took = time.monotonic() - began
        assert took < 2.8, took  # a session's own patience is 3 s
        assert shell.take(1) > 0
        ask("ROLLBACK")
    assert shell.take(0) > 0
    shell.end()


def test_deadlocks_and_locked_rows_are_tried_again(place):
    config, database = configure(place)
    shell = Shell(place, config)
    epoch = shell.take(0)
    with client_of(database) as ask:
        # A row that stays locked for longer than a try waits.
        ask("BEGIN")
        ask("SELECT epoch FROM partition_state FOR UPDATE")
        shell.send("write", 0, epoch, 1, "b", 0, 3, 10, "a")
        (first,) = until(waiting_since, "the store waits")
        until(lambda: waiting_since() not in ([], [first]), "a second try waits")
        ask("ROLLBACK")
        assert shell.answer()[0] == "OK"
        shell.good("commit", 0, epoch, 1, 3)
        # A deadlock: each holds what the other asks for next. The lighter transaction is the one to give in.
        for _ in range(3):
            ask("BEGIN")
            ask("INSERT INTO note (name, value) WITH RECURSIVE counted (i) AS (SELECT 1 UNION ALL "
                "SELECT i + 1 FROM counted WHERE i < 300) SELECT concat('heavy', i), '' FROM counted")
            ask("REPLACE INTO segment_state VALUES (0, 9, 2, 1, 1, 'x')")
            deadlocks = deadlocks_so_far()
            shell.send("write", 0, epoch, 2, "b", 9, 1, 10, "b")
            until(waiting_since, "the store waits")
            ask("SELECT epoch FROM partition_state FOR UPDATE")
            assert deadlocks_so_far() > deadlocks
            ask("ROLLBACK")
            assert shell.answer()[0] == "OK"
    shell.good("commit", 0, epoch, 2, 7)
    assert shell.good("read", 0, epoch, 9, 1) == "9/2 b b*10;"
    shell.end()


def waiting_since():
    """When the transactions that wait for a row began; each try is one."""
    time.sleep(0.15)  # whoever looks within 100 ms of the last one is shown the same
    return [row[0] for row in server().sql(
        "SELECT trx_started FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")]


def deadlocks_so_far():
    return int(server().sql("SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'")[0][0])


def churn(shell, partition, enough, count, words):
    """Checkpoints as a limiter makes them, whatever breaks, each written again until it is current: epoch, how many."""
    epoch = shell.take_patiently(partition)
    for checkpoint in itertools.count(1):
        letter, status = chr(ord("a") + checkpoint % 26), None
        while status != "OK":
            for first in range(0, count, 20):
                status, told = shell("write", partition, epoch, checkpoint, "d" if checkpoint % 3 else "b", first, 20,
                                     1000 + checkpoint, letter)
                if status != "OK":
                    break
            if status in ("OK", "INVALID"):  # it may be current already
                assert status == "OK" or "is current" in told, told
                status, told = shell("commit", partition, epoch, checkpoint, checkpoint)
            words.append(f"{status} {told}")
            assert status in ("OK", "IO"), (status, told)
            if status == "IO":
                time.sleep(0.02)  # as a limiter waits, though not as long
        if checkpoint % 4 == 0:
            shell("clean", partition, epoch)
        if enough(checkpoint):
            return epoch, checkpoint
    raise AssertionError("never enough")


class PatientShell(Shell):
    """One that goes on where a connection ends."""

    def take_patiently(self, partition):
        while True:
            status, told = self("take", partition)
            if status == "OK":
                return int(told.split()[0])
            assert status == "IO", told
            time.sleep(0.02)


def expected(checkpoints, count):
    """What reading gives after churn(): from the newest base on."""
    base = checkpoints - checkpoints % 3
    return "".join(f"{segment}/{checkpoint} {'d' if checkpoint % 3 else 'b'} {chr(ord('a') + checkpoint % 26)}*"
                   f"{1000 + checkpoint}; " for segment in range(count) for checkpoint in range(base, checkpoints + 1)
                   ).strip()


def churn_two(place, disturb, enough, count=60):
    """Two writers on two partitions at once, disturbed until each has enough: the words of their commits."""
    config, database = configure(place)
    shells = [PatientShell(place, config) for _ in range(2)]
    failures, reached, words = [], [None, None], []

    def work(number):
        try:
            reached[number] = churn(shells[number], number, enough, count, words)
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        disturb(database)
    for thread in threads:
        thread.join()
    assert not failures, failures
    for number, (epoch, checkpoints) in enumerate(reached):
        assert shells[number].good("read", number, epoch, 0, count) == expected(checkpoints, count)
        assert shells[number].state(number) == [epoch, checkpoints]
    for shell in shells:
        shell.end()
    return words


def test_two_writers_work_at_once(place):
    words = churn_two(place, lambda _: time.sleep(0.01), lambda checkpoint: checkpoint == 60)
    assert set(words) == {"OK "}, set(words)


def report(what, kills, words):
    """What a round of kills did."""
    print(f"seed {SEED}: {len(kills)} {what} killed in {len(words)} tries of a checkpoint, "
          f"{sum(not word.startswith('OK') for word in words)} of which failed")


def test_connections_killed_at_any_moment_lose_nothing(place):
    chance, kills = random.Random(SEED), []

    def disturb(database):
        time.sleep(chance.random() * 0.08)
        for (one,) in server().sql(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"):
            if chance.random() < 0.5:
                with contextlib.suppress(AssertionError):  # it may have ended by itself
                    server().sql(f"KILL {one}")
                    kills.append(one)
    words = churn_two(place, disturb, lambda checkpoint: checkpoint >= 30 and len(kills) >= 20)
    report("connections", kills, words)


def test_servers_killed_at_any_moment_lose_nothing(place):
    chance, kills = random.Random(SEED), []

    def disturb(_):
        if len(kills) == 4:
            time.sleep(0.01)
            return
        time.sleep(chance.random() * 0.5)
        server().kill()
        server().start()
        kills.append(1)
    words = churn_two(place, disturb, lambda checkpoint: checkpoint >= 30 and len(kills) == 4, 20)
    report("servers", kills, words)


if __name__ == "__main__":
    main(globals())
