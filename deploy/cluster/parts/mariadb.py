# SPDX-License-Identifier: Apache-2.0
"""A small MariaDB with a user `weir`, whose databases are those that begin with weir.

It does not use the kernel's asynchronous input and output, of which a machine
has few to give. root needs no password, but comes by the socket alone. Durability is what a server's is by default: a commit is on
the disk.
"""

import os
import socket
import tempfile

from parts.process import running_command
from parts.programs import find
from parts.server import LOCAL, Server

_INSTALL_S = 300
_SOCKET_BYTES = 100  # a path of a socket is limited to 107

# tmpdir: a server that starts removes temporary tables from there, other servers' too.
_CONFIGURATION = """[mariadbd]
datadir={data}
tmpdir={tmp}
socket={socket}
bind-address={host}
port={port}
skip-name-resolve
skip-log-bin
init-file={init}
innodb_use_native_aio=0
innodb_buffer_pool_size=128M
innodb_log_file_size=64M
key_buffer_size=1M
aria_pagecache_buffer_size=4M
max_allowed_packet=64M
max_connections=200
max_connect_errors=1000000
{tls}"""

# A statement is a line of its own.
_INIT = """DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');
FLUSH PRIVILEGES;
CREATE USER IF NOT EXISTS '{user}'@'%' IDENTIFIED BY '{password}';
GRANT ALL PRIVILEGES ON `weir%`.* TO '{user}'@'%';
"""


class MariaDB(Server):
    """The cluster's MariaDB."""

    def __init__(self, cluster):
        super().__init__(cluster, "mariadb")
        self.settings = cluster.settings["mariadb"]
        self.port = self.settings["port"]

    @property
    def socket_path(self):
        """Of the socket for this machine's clients."""
        return self.settings["socket"]

    @staticmethod
    def choose_socket(directory):
        """Where the socket goes: into the cluster's directory, or, where that has too long a path, a temporary one."""
        path = os.path.join(directory, "mariadb", "socket")
        if len(os.fsencode(path)) <= _SOCKET_BYTES:
            return path
        return os.path.join(tempfile.mkdtemp(prefix="weir-cluster-", dir="/tmp"), "socket")

    def making_data(self):
        os.makedirs(self.path("tmp"), exist_ok=True)
        yield from running_command(
            [find("mariadb-install-db"), "--no-defaults", f"--datadir={self.path('data')}", *self._user(),
             "--skip-test-db", "--skip-name-resolve", "--auth-root-authentication-method=normal",
             f"--tmpdir={self.path('tmp')}", "--innodb-use-native-aio=0", "--innodb-log-file-size=64M",
             "--innodb-buffer-pool-size=32M"],
            self.path("install.log"), _INSTALL_S, self.environment())

    def configure(self):
        os.makedirs(self.path("tmp"), exist_ok=True)
        files = self.cluster.tls_files()
        tls = "".join(f"ssl_{name}={files[name]}\n" for name in ("ca", "cert", "key")) if files else ""
        user, password = self.settings["user"], self.settings["password"]
        init = self.write("init.sql", _INIT.format(user=user, password=password))
        self.write("my.cnf", _CONFIGURATION.format(data=self.path("data"), tmp=self.path("tmp"), socket=self.socket_path,
                                                   host=LOCAL, port=self.port, init=init, tls=tls))
        os.makedirs(os.path.dirname(self.socket_path), mode=0o700, exist_ok=True)

    def command(self):
        return [find("mariadbd"), f"--defaults-file={self.path('my.cnf')}", *self._user()]

    @staticmethod
    def _user():
        """MariaDB runs as root only when it is told to."""
        return ["--user=root"] if os.geteuid() == 0 else []

    def ready(self):
        """Whether it greets; it listens once its first statements, those for the user, are done."""
        try:
            with socket.create_connection((LOCAL, self.port), timeout=1) as connection:
                greeting = connection.recv(5)
                return len(greeting) == 5 and greeting[4] == 10
        except OSError:
            return False
