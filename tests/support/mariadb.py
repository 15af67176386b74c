# SPDX-License-Identifier: Apache-2.0
"""MariaDB or MySQL for tests: statements, a connection each, so that a server that was down in between is no matter."""

from support import venv

venv.enter()

# pylint: disable=wrong-import-position,import-error
import pymysql

Error = pymysql.MySQLError  # what a statement raises that the server refused, or did not get


class MariaDB:
    """A user's way to a server."""

    def __init__(self, user, password="", database=None, **where):
        """where: host and port, or unix_socket."""
        self._settings = {"user": user, "password": password, "database": database, "autocommit": True,
                          "connect_timeout": 30, "read_timeout": 120, "write_timeout": 120, "charset": "utf8mb4",
                          **where}

    def connect(self, **more):
        """A connection of one's own: pymysql's, for transactions."""
        return pymysql.connect(**{**self._settings, **more})

    def query(self, statement, *values):
        """Runs a statement with %s for each value: its rows, as tuples."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def one(self, statement, *values):
        """The only value of the only row."""
        ((value,),) = self.query(statement, *values)
        return value

    def tables(self):
        """The names of the database's tables."""
        return sorted(name for (name,) in self.query("SHOW TABLES"))
