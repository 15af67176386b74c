# SPDX-License-Identifier: Apache-2.0
"""A MariaDB of a test's own: to be stopped, killed and started again, with any settings.

WEIR_MYSQLD=PATH names a mysqld of MySQL 8 to be used instead. The statements
go to it through MariaDB's client all the same.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

from support import cases
from support.place import PATIENCE_S, Weir, free_port, until

START_S = 4 * PATIENCE_S


def find(program):
    """A program's path, or None; servers lie where users have no way to."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")


def mysqld():
    """The MySQL server that stands in for MariaDB, or None."""
    return os.environ.get("WEIR_MYSQLD")


def missing():
    """Why there can be no server here; None if there can."""
    servers = [mysqld()] if mysqld() else ["mariadbd", "mariadb-install-db"]
    lacking = [name for name in (*servers, "mariadb") if find(name) is None]
    return f"no {', '.join(lacking)} here (deploy/packages cluster)" if lacking else None


class OwnMariaDB:
    """A server on a free loopback port with the user weir, whose password is `secret`; root comes by the socket."""

    def __init__(self, directory):
        self.directory = directory
        self.port = free_port()
        self.process = None
        self.socket = self._path("s")
        self._log = os.path.join(directory, "log")
        os.makedirs(self._path("tmp"))
        done = subprocess.run([*self._installer(), f"--datadir={self._path('data')}", *self._user(),
                               f"--log-error={self._log}", *self._small()],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10 * PATIENCE_S, check=False)
        if done.returncode != 0:
            with open(self._log, "ab+") as log:
                log.seek(0)
                raise AssertionError((done.stdout + log.read()).decode(errors="replace"))

    def __enter__(self):
        self.start()
        self.sql("CREATE USER weir@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO weir@'127.0.0.1'")
        return self

    def __exit__(self, *_):
        self.kill()

    def _path(self, name):
        return os.path.join(self.directory, name)

    @staticmethod
    def _program():
        if mysqld() is None:
            return [find("mariadbd"), "--no-defaults"]
        program = os.path.realpath(find(mysqld()))
        return [program, "--no-defaults", f"--basedir={os.path.dirname(os.path.dirname(program))}", "--mysqlx=OFF"]

    def _installer(self):
        if mysqld() is not None:
            return [*self._program(), "--initialize-insecure"]
        return [find("mariadb-install-db"), "--no-defaults", "--skip-test-db", "--skip-name-resolve",
                "--auth-root-authentication-method=normal"]

    @staticmethod
    def _user():
        return ["--user=root"] if os.geteuid() == 0 else []

    def _small(self):
        # A server that starts removes temporary tables from its directory for them, other servers' too.
        return [f"--tmpdir={self._path('tmp')}", "--innodb-use-native-aio=0", "--innodb-buffer-pool-size=64M",
                "--loose-innodb-log-file-size=48M", "--loose-innodb-redo-log-capacity=96M"]

    def start(self, *settings):
        """Starts it, and waits until it serves."""
        command = [*self._program(), f"--datadir={self._path('data')}", f"--socket={self.socket}",
                   f"--port={self.port}", "--bind-address=127.0.0.1",
                   f"--pid-file={self._path('pid')}", "--skip-name-resolve", "--skip-log-bin",
                   "--max-connect-errors=1000000", *self._user(), *self._small(), *settings]
        self.process = Weir(command, self._log, self._log)
        until(lambda: self._try("SELECT 1").returncode == 0, "MariaDB serves", START_S, running=self.process)

    def kill(self):
        """Ends it at once, wherever it is."""
        if self.process is not None:
            self.process.kill()

    def stop(self):
        """Ends it in good order."""
        self.process.signal(signal.SIGTERM)
        self.process.wait(START_S)

    def freeze(self):
        """Stops its process, connections and all, until thaw()."""
        self.process.pause()

    def thaw(self):
        """Lets it go on."""
        self.process.resume()

    def _try(self, text, database=None, *options):
        where = [f"--socket={self.socket}", *([f"--database={database}"] if database else [])]
        return subprocess.run([find("mariadb"), "--no-defaults", *where, "--user=root", "--batch",
                               "--skip-column-names", *options],
                              input=text.encode(), capture_output=True, timeout=START_S, check=False)

    def sql(self, text, database=None, *options):
        """Runs statements, as root unless the client's options say otherwise: the rows, as lists of words."""
        done = self._try(text, database, *options)
        assert done.returncode == 0, f"{text}: {done.stderr.decode(errors='replace')}"
        return [line.split("\t") for line in done.stdout.decode(errors="replace").splitlines()]

    def connections(self, user="weir"):
        """The ids of a user's connections."""
        return [int(row[0]) for row in self.sql(
            f"SELECT id FROM information_schema.processlist WHERE user = '{user}'")]


def main(names, take, why=None):
    """Runs a script's tests with a server of their own, which take() is given; without one they are skipped.

    why: another reason to skip them."""
    why = missing() or why
    if why is not None:
        print(f"skipped: {why}\n0 passed, 0 failed")
        sys.exit(cases.SKIPPED)
    directory = tempfile.mkdtemp(prefix="weir-db-")
    try:
        with OwnMariaDB(os.path.join(directory, "mariadb")) as own:
            take(own)
            cases.main(names)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
