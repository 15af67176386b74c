# SPDX-License-Identifier: Apache-2.0
"""check_velocity of deploy/mysql/velocity.sql: its database, its zones, and the rule as slowly as it can be said."""

import itertools
import os

from support import own_mariadb
from support.mariadb import Error, MariaDB
from support.place import ROOT

LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
NO_PARTITION = 4294967295  # partition_id in the history, where weir's own rows have their partition of the log
_NUMBERS = itertools.count(1)
_SERVER = []


def text(name):
    """A file of deploy/mysql."""
    with open(os.path.join(ROOT, "deploy", "mysql", name), encoding="ascii") as file:
        return file.read()


class Velocity:
    """check_velocity in a database of its own, on a server that is given or main()'s."""

    def __init__(self, server=None):
        self.server = server or _SERVER[0]
        self.database = f"velocity_{next(_NUMBERS)}"
        self._zones = itertools.count(1)
        self.server.sql(f"CREATE DATABASE {self.database}")
        self.install()

    def install(self):
        """As its file says: after schema.sql."""
        for part in (text("schema.sql"), text("velocity.sql")):
            self.sql(part)

    def sql(self, statements):
        """Runs statements as root: the rows, as lists of words."""
        return self.server.sql(statements, self.database)

    def zone(self, rate, window_ms):
        """The id of a new zone."""
        number = next(self._zones)
        self.sql(f"INSERT INTO zone_master (zone_id, limit_number, name, algorithm, rate, window_ms)"
                 f" VALUES ({number}, 0, 'z', 'sliding_window', {rate}, {window_ms})")
        return number

    def connect(self, *statements, user="root", password="", **more):
        """A connection that has had some statements; more: pymysql's own settings."""
        one = MariaDB(user, password, self.database, unix_socket=self.server.socket).connect(**more)
        with one.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        return one

    def history(self, zone):
        """[(bucket, at_ms, blocked, number)] of a zone, in the order in which its attempts were judged."""
        with self.connect() as connection:
            return [(bucket, at_ms, blocked, number) for bucket, at_ms, blocked, number in rows(
                connection, "SELECT bucket, at_ms, blocked, log_offset FROM zone_txn WHERE zone_id = %s"
                " AND partition_id = %s AND pair = 0 ORDER BY log_offset", zone, NO_PARTITION)]

    def deadlocks(self):
        """How many the server has met."""
        return int(self.sql("SELECT count FROM information_schema.innodb_metrics"
                            " WHERE name = 'lock_deadlocks'")[0][0])


def rows(connection, statement, *values):
    """The rows that a statement gives, as tuples."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())


def check(connection, zone, key):
    """One attempt: (blocked, number)."""
    ((blocked, number, *_),) = rows(connection, "CALL check_velocity(%s, %s)", zone, key)
    return blocked, number


def set_clock(connection, at_ms):
    """Lets a session's time stand still; in the middle of a millisecond, for the server reads it as a float."""
    rows(connection, f"SET TIMESTAMP = {at_ms // 1000}.{at_ms % 1000:03}5")


def check_at(connection, zone, key, at_ms):
    """1 if an attempt at that time is blocked."""
    set_clock(connection, at_ms)
    return check(connection, zone, key)[0]


def refused(connection, statement, *values):
    """(number, words) of the error that a statement must end with."""
    try:
        given = rows(connection, statement, *values)
    except Error as error:
        return error.args
    raise AssertionError(f"{statement} {values} gave {given}")


class Model:
    """The seed's rule: all that ever passed, counted anew for each attempt."""

    def __init__(self, rate, window_ms):
        self.rate, self.window_ms = rate, window_ms
        self._passed = {}

    def judge(self, bucket, at_ms):
        """1 if blocked, else 0 and it counts."""
        passed = self._passed.setdefault(bucket, [])
        if sum(x >= at_ms - self.window_ms for x in passed) >= self.rate:
            return 1
        passed.append(at_ms)
        return 0


def main(names, **environment):
    """Runs a script's tests with a server of their own, in this environment; without one they are skipped."""
    os.environ.update(environment)
    own_mariadb.main(names, _SERVER.append)
