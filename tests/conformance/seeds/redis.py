# SPDX-License-Identifier: Apache-2.0
"""A temporary Redis for the seed's scripts; its time comes from a file, through libfaketime."""

import contextlib
import datetime
import signal
import socket

from seeds.packages import find
from seeds.servers import CLIENT_TIMEOUT_S, HERE, environment, own_folder, serving


class Redis:
    """A Redis whose clock the test sets."""

    def __init__(self, socket_path, clock_path):
        self.socket_path = str(socket_path)
        self.clock_path = clock_path
        self.stream = None

    def set_clock(self, at_us):
        """Stops the server's clock at a time, Unix microseconds."""
        moment = datetime.datetime.fromtimestamp(at_us // 1_000_000, datetime.timezone.utc)
        # The half nanosecond keeps libfaketime's floating point from falling one short.
        words = f"{moment:%Y-%m-%d %H:%M:%S}.{at_us % 1_000_000:06d}0005\n"
        fresh = self.clock_path.with_suffix(".new")
        fresh.write_text(words)
        fresh.chmod(0o644)
        fresh.rename(self.clock_path)

    def ready(self):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(self.socket_path)
        except OSError:
            connection.close()
            return False
        connection.settimeout(CLIENT_TIMEOUT_S)
        self.stream = connection.makefile("rwb")
        connection.close()
        return True

    def call(self, *words):
        """Sends one command and returns its reply: int, str, list or None."""
        return self.together([words])[0]

    def together(self, commands):
        """Sends commands, each a list of words, at once, and returns their replies."""
        for words in commands:
            parts = [str(word).encode() for word in words]
            self.stream.write(b"*%d\r\n" % len(parts))
            for part in parts:
                self.stream.write(b"$%d\r\n%s\r\n" % (len(part), part))
        self.stream.flush()
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(f"Redis: {rest.decode()}")
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2].decode()
        return rest.decode()

    def load(self, script):
        """Loads one of the seeds' scripts and returns its name for EVALSHA."""
        return self.call("SCRIPT", "LOAD", (HERE / script).read_text())


@contextlib.contextmanager
def redis(*options, clock=True):
    """A Redis on libfaketime; options are added to its command line. Without `clock` it has its own."""
    daemon = find("redis-server")
    library = find("libfaketimeMT.so.1")
    with own_folder() as folder:
        server = Redis(folder / "socket", folder / "clock")
        server.set_clock(0)
        # libc comes before jemalloc, so that malloc is libc's: jemalloc asks for the time while it
        # initializes, within libfaketime's own first malloc, and never comes back.
        env = environment(LD_PRELOAD=f"{library}:libc.so.6", FAKETIME_NO_CACHE="1",
                          FAKETIME_DONT_FAKE_MONOTONIC="1",
                          FAKETIME_TIMESTAMP_FILE=str(server.clock_path)) if clock else None
        command = [daemon, "--port", "0", "--unixsocket", server.socket_path, "--save", "",
                   "--dir", str(folder), *options]
        with serving(command, folder, server.ready, env=env, stop_by=signal.SIGKILL):
            with contextlib.closing(server.stream):
                yield server
