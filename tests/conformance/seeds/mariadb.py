# SPDX-License-Identifier: Apache-2.0
"""A temporary MariaDB with the seed's check_velocity; its time comes with SET TIMESTAMP."""

import contextlib
import signal
import subprocess

from seeds.packages import find
from seeds.servers import HERE, client, environment, own_folder, prepare, serving


class MariaDB:
    """check_velocity behind a socket."""

    def __init__(self, client_program, socket_path):
        self.command = [client_program, "--no-defaults", f"--socket={socket_path}", "--user=root",
                        "--batch", "--skip-column-names"]

    def sql(self, text, *, check=True):
        """Runs statements in the seed's database; returns (rows as lists of words, messages)."""
        lines, messages = client([*self.command, "--database=seed"], text, check=check)
        return [line.split("\t") for line in lines], messages

    def ready(self):
        return subprocess.run([*self.command, "--execute=SELECT 1"], env=environment(),
                              capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def mariadb():
    daemon, installer, client_program = map(find, ("mariadbd", "mariadb-install-db", "mariadb"))
    with own_folder() as folder:
        data = f"--datadir={folder / 'data'}"
        # The data are thrown away: nothing needs to reach the disk. Asynchronous writing takes a share of what the
        # kernel gives to all servers of the machine; several at once run out of it. A server that starts removes
        # temporary tables from its directory for them, other servers' too.
        hasty = [f"--tmpdir={folder}", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin",
                 "--innodb-use-native-aio=0", "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M"]
        prepare([installer, "--no-defaults", data, "--skip-test-db", "--skip-name-resolve",
                 "--auth-root-authentication-method=normal", *hasty], folder)
        path = folder / "socket"
        server = MariaDB(client_program, path)
        command = [daemon, "--no-defaults", data, f"--socket={path}", "--skip-networking",
                   f"--pid-file={folder / 'pid'}", *hasty]
        with serving(command, folder, server.ready, stop_by=signal.SIGKILL):
            client(server.command, "CREATE DATABASE seed")
            server.sql((HERE / "check_velocity.sql").read_text())
            yield server
