# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the script that starts them, known by pid and the moment of their start.

A pid alone may be another process's by the time that somebody sends it a
signal; with the start time from /proc beside it, only the right one is ever
touched. The child writes both before it becomes the server, so that there is
no moment at which a server runs that nobody knows.
"""

import os
import signal
import subprocess
import time

from parts.words import Failed, heed

TICK_S = 0.02
_GROUP_S = 3
_STILL_S = 30
_STATE, _START = 0, 19  # fields of /proc/PID/stat, counted behind the name


def _stat(pid):
    """(state, start time) of a process, or of a thread by PID/task/THREAD; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[_STATE], fields[_START]


class Process:
    """A server's process; what is known of it lies in a directory."""

    def __init__(self, directory):
        self.directory = directory
        self.log_path = os.path.join(directory, "server.log")
        self._pid_path = os.path.join(directory, "pid")

    def identity(self):
        """(pid, start time) while it runs; else None."""
        try:
            with open(self._pid_path, encoding="ascii") as file:
                pid, start = file.read().split()
        except (FileNotFoundError, ValueError):
            return None
        return (int(pid), start) if is_running(int(pid), start) else None

    def pid(self):
        """Its pid while it runs; else None."""
        known = self.identity()
        return known and known[0]

    def paused(self):
        """Whether it stands still by SIGSTOP, every thread of it: under load some run on for a while."""
        known = self.identity()
        if not known:
            return False
        try:
            threads = os.listdir(f"/proc/{known[0]}/task")
        except (FileNotFoundError, ProcessLookupError):
            return False
        stats = [_stat(f"{known[0]}/task/{thread}") for thread in threads]
        return all(stat is None or stat[_STATE] == "T" for stat in stats)

    def pausing(self):
        """Steps: makes it stand still."""
        self.signal(signal.SIGSTOP)
        end = time.monotonic() + _STILL_S
        while self.identity() and not self.paused():
            if time.monotonic() > end:
                raise Failed(f"process {self.pid()} does not stand still after {_STILL_S} s")
            yield

    def start(self, command, environment):
        """Starts it in a session of its own, its output going to its log."""
        def register():
            pid = os.getpid()
            with open(self._pid_path, "w", encoding="ascii") as file:
                file.write(f"{pid} {_stat(pid)[1]}\n")

        with open(self.log_path, "ab") as log:
            # pylint: disable-next=subprocess-popen-preexec-fn,consider-using-with
            subprocess.Popen(command, cwd=self.directory, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                             stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=register)

    def signal(self, number):
        """Sends a signal; of no effect when it does not run."""
        known = self.identity()
        if known:
            try:
                os.kill(known[0], number)
            except ProcessLookupError:
                pass

    def ending(self, patience_s):
        """Steps: asks it to end, ends it after so long; 0 ends it at once."""
        end = time.monotonic() + patience_s
        if patience_s > 0:
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)  # one that stands still would not hear it
        while self.identity():
            if time.monotonic() >= end:
                self.signal(signal.SIGKILL)
            yield

    def last_words(self, lines=15):
        """The end of its log."""
        return last_lines(self.log_path, lines)


def is_running(pid, start):
    """Whether that very process runs; one that has ended and that nobody has waited for does not."""
    stat = _stat(pid)
    return stat is not None and stat[1] == start and stat[0] not in "ZX"


def last_lines(path, lines):
    """The last lines of a text file, each behind two spaces."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = file.read()[-20000:].splitlines()[-lines:]
    except FileNotFoundError:
        found = []
    return "\n".join("  " + line for line in found)


def running_command(command, log_path, patience_s, environment=None):
    """Steps: runs a command to its end, which must be a good one; closed early, it is killed with its children."""
    with open(log_path, "ab") as log:
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   env=environment, start_new_session=True)
    end = time.monotonic() + patience_s
    try:
        while process.poll() is None:
            if time.monotonic() > end:
                raise Failed(f"{command[0]} took more than {patience_s} s:\n{last_lines(log_path, 15)}")
            yield
    finally:
        if process.poll() is None:
            _kill_group(process)
    if process.returncode != 0:
        raise Failed(f"{command[0]} left with {process.returncode}:\n{last_lines(log_path, 15)}")


def _kill_group(process):
    """Kills a command and its children, and waits a moment until the last of them is gone."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    end = time.monotonic() + _GROUP_S
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(TICK_S)


def together(tasks):
    """Takes the steps of several tasks in turn until all are done; the first failure closes the others."""
    tasks = list(tasks)
    try:
        while tasks:
            heed()
            for task in list(tasks):
                try:
                    next(task)
                except StopIteration:
                    tasks.remove(task)
            if tasks:
                time.sleep(TICK_S)
    finally:
        for task in tasks:
            task.close()
