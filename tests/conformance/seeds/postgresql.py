# SPDX-License-Identifier: Apache-2.0
"""A temporary PostgreSQL with the seed's token bucket function, its sessions on a clock of ours."""

import contextlib
import signal
import subprocess

from seeds.packages import find
from seeds.servers import HERE, client, environment, own_folder, prepare, serving


class PostgreSQL:
    """The token bucket function behind a socket, its sessions on the shadow clock."""

    def __init__(self, client_program, folder):
        self.command = [client_program, "-X", "-q", "-A", "-t", "-U", "postgres", "-d", "postgres",
                        "-h", str(folder)]

    def sql(self, text, *, check=True):
        """Runs statements in one session; returns (lines, messages)."""
        stop = ["-v", "ON_ERROR_STOP=1"] if check else []
        return client([*self.command, *stop], self.preamble() + text, check=check)

    @staticmethod
    def preamble():
        return ("SET search_path = shadow_clock, public, pg_catalog;\n"
                "SET default_transaction_isolation = serializable;\n")

    def ready(self):
        return subprocess.run([*self.command, "-c", "SELECT 1"], env=environment(),
                              capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def postgresql():
    initdb, daemon, client_program = map(find, ("initdb", "postgres", "psql"))
    with own_folder() as folder:
        data = str(folder / "data")
        prepare([initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
                 "--no-sync"], folder)
        server = PostgreSQL(client_program, folder)
        command = [daemon, "-D", data, "-k", str(folder), "-c", "listen_addresses=", "-c",
                   "fsync=off"]
        # SIGQUIT is its immediate shutdown: it also ends its children and frees their memory.
        with serving(command, folder, server.ready, stop_by=signal.SIGQUIT):
            client(server.command, (HERE / "shadow_clock.sql").read_text())
            server.sql((HERE / "token_bucket.sql").read_text())
            yield server
