# SPDX-License-Identifier: Apache-2.0
"""A place for one test: a directory that goes away, and the weirs that run in it, which are ended."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "deploy", "cluster"))

from parts.ports import free_ports  # pylint: disable=wrong-import-position

SANITIZED = bool(os.environ.get("WEIR_SANITIZED"))
PATIENCE_S = 120 if SANITIZED else 30  # for what happens in a moment on a quiet machine

# By these a process ends that has a fault; a test ends one by others.
_OF_FAULTS = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL, -signal.SIGTRAP, -signal.SIGSYS}
_REPORT = re.compile(rb"runtime error: |ERROR: \w+Sanitizer|WARNING: ThreadSanitizer")  # a sanitizer's
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGKILL}

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def find_weir(given=None):
    """The program under test, or None where it is not built."""
    path = given or os.environ.get("WEIR_BIN") or os.path.join(ROOT, "build/release/bin/weir")
    return os.path.abspath(path) if os.access(path, os.X_OK) else None


def until(condition, what, patience_s=PATIENCE_S, running=None):
    """Waits until condition() is true and gives its value.

    running: a Weir that must not end before that."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if running is not None and running.code() is not None:
            value = condition()  # it may have come true with the last breath
            if value:
                return value
            raise AssertionError(f"weir exited with status {running.code()} before {what}: {running.said()[-2000:]}")
        if time.monotonic() > end:
            said = f": {running.said()[-2000:]}" if running is not None else ""
            raise AssertionError(f"not within {patience_s} s: {what}{said}")
        time.sleep(0.005)


def joined(thread, what, patience_s=PATIENCE_S):
    """Waits for a thread's end."""
    thread.join(patience_s)
    assert not thread.is_alive(), f"not within {patience_s} s: the end of {what}"


def free_port():
    """A port of this machine that nobody listens on."""
    return free_ports(1)[0]


class Weir:
    """A running weir. Its output goes to files, so that it never waits for a reader."""

    def __init__(self, command, out, said, **popen):
        self.out_path, self.said_path = out, said
        parent = os.getpid()

        def child():
            # A test that is killed must not leave it behind.
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            for prepare in prepares:
                prepare()

        prepares = [popen.pop("prepare")] if "prepare" in popen else []
        with open(out, "ab") as out_file, open(said, "ab") as said_file:
            popen.setdefault("stdin", subprocess.DEVNULL)
            popen.setdefault("stdout", out_file)
            popen.setdefault("stderr", said_file)
            # pylint: disable-next=subprocess-popen-preexec-fn,consider-using-with
            self.process = subprocess.Popen(command, preexec_fn=child, **popen)
        self.started_s = time.monotonic()
        self._asked = False  # whether the test ended it, or waits for its end

    @property
    def pid(self):
        """Its process id."""
        return self.process.pid

    def code(self):
        """Its exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    def fault(self):
        """By which fault of its own it ended: words; None where it runs, or ended in another way."""
        if self.code() is None:
            return None
        report = SANITIZED and _REPORT.search(read(self.said_path))
        return self._end() if self.code() in _OF_FAULTS or report else None

    def require_asked(self):
        """That it runs, or that its test has ended it: who asks a process that is gone gets no answer, and takes it for one."""
        assert self._asked or self.code() is None, self._end()

    def _end(self):
        return f"{' '.join(self.process.args)} ended with status {self.code()}: {self.said()[-4000:]}"

    def said(self):
        """What it wrote to standard error so far."""
        with open(self.said_path, "rb") as file:
            return file.read().decode(errors="replace")

    def out(self):
        """What it wrote to standard output so far."""
        with open(self.out_path, "rb") as file:
            return file.read()

    def objects(self):
        """The JSON lines that it wrote to standard output so far."""
        return [json.loads(line) for line in self.out().splitlines()]

    def signal(self, number):
        """Sends a signal; of no effect once it has ended."""
        self._asked |= number in _ENDING and self.code() is None
        self.process.send_signal(number)

    def pause(self):
        """Makes it stand still, every thread of it: under load some run on for a while after SIGSTOP was sent."""
        self.signal(signal.SIGSTOP)
        until(lambda: os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG), "it stands still")

    def resume(self):
        """Lets it go on."""
        self.signal(signal.SIGCONT)

    def wait(self, patience_s=PATIENCE_S):
        """Waits for its end: the exit code."""
        self._asked = True
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"weir still runs after {patience_s} s: {self.said()[-2000:]}") from None

    def stop(self, patience_s=PATIENCE_S):
        """Asks it to end, as systemd does: the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(patience_s)

    def kill(self):
        """Ends it at once, wherever it is."""
        self._asked = True
        if self.code() is None:
            self.process.kill()
        self.wait()

    def summary(self):
        """The object that --summary json wrote."""
        lines = [line for line in self.said().splitlines() if line.startswith('{"lines"')]
        assert lines, f"no summary was written: {self.said()[-2000:]}"
        return json.loads(lines[-1])

    def peak_bytes(self):
        """The most memory that was resident so far."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


class Place:
    """Where one test works."""

    def __init__(self, weir, parent=None):
        self.weir = weir
        self.directory = tempfile.mkdtemp(prefix="weir-test-", dir=parent)
        self._runs = 0
        self._started, self._faults = [], []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.end_all()
        shutil.rmtree(self.directory, ignore_errors=True)
        if kind is None:
            self.require_no_fault()

    def end_all(self):
        """Ends what was started and still runs."""
        self._let_go()
        for started in self._started:
            started.kill()
        self._started.clear()

    def require_no_fault(self):
        """That nothing that was started here ended by a fault of its own, whether or not anybody has looked."""
        self._let_go()
        faults, self._faults = self._faults, []
        assert not faults, "\n".join(faults)

    def _let_go(self):
        """Forgets what has ended, but not how."""
        ended = [one for one in self._started if one.code() is not None]
        self._faults += [words for words in (one.fault() for one in ended) if words]
        self._started = [one for one in self._started if one not in ended]

    def path(self, *names):
        """A path in the directory."""
        return os.path.join(self.directory, *names)

    def write(self, name, data):
        """Writes a file whole: its path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path

    def append(self, name, data):
        """Appends to a file in one write: its path."""
        path = self.path(name)
        with open(path, "ab", buffering=0) as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path

    def config(self, zones, sources, name="weir.json", **sections):
        """Writes a configuration: its path."""
        return self.write(name, json.dumps({"zones": zones, "sources": sources, **sections}, indent=1))

    def start(self, *arguments, **popen):
        """Starts weir with these arguments; the place ends it if the test does not."""
        self._runs += 1
        command = [popen.pop("program", self.weir), *map(str, arguments)]
        started = Weir(command, self.path(f"out-{self._runs}"), self.path(f"said-{self._runs}"), **popen)
        self._let_go()
        self._started.append(started)
        return started

    def run(self, *arguments, patience_s=4 * PATIENCE_S, **popen):
        """Runs weir to its end: a Weir that has ended."""
        started = self.start(*arguments, **popen)
        started.wait(patience_s)
        return started

    def good(self, *arguments, **popen):
        """Runs weir to its end, which must be a good one."""
        done = self.run(*arguments, **popen)
        assert done.code() == 0, f"weir {' '.join(map(str, arguments))} exited with status {done.code()}: {done.said()[-2000:]}"
        return done


def read(path):
    """The bytes of a file; none if it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def lines_of(path):
    """The objects of a file of JSON lines; one that is not whole is left out."""
    return [json.loads(line) for line in read(path).split(b"\n")[:-1]]
