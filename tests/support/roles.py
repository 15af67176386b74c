# SPDX-License-Identifier: Apache-2.0
"""weir's daemons and commands on a cluster: started, awaited, killed; ended always, their logs shown upon failure.

    with cluster.shared() as c, Roles(place, c, zones) as roles:
        roles.apply()
        limiter = roles.limiter(bus={"partitions": 4})
        collector = roles.collector([traffic.source(path)])
        limiter.until(lambda: limiter.metrics().value("weir_limiter_events_total") == 1000, "all is judged")
"""

import json
import os
import pwd
import shutil
import signal
import sys
import time

from support import metrics
from support.cases import Skipped
from support.place import PATIENCE_S, ROOT, free_port, until

_SHOWN = 60  # lines of each log


def program(place, name):
    """The path of one of weir's programs, beside the one under test."""
    path = os.path.join(os.path.dirname(place.weir), name)
    if not os.access(path, os.X_OK):
        raise Skipped(f"{name} is not built")
    return path


class Role:
    """One daemon with its configuration and state directory, through all its lives."""

    def __init__(self, roles, kind, name, sections, arguments=(), user=None):
        """user: as whom it runs, if not as this process; its configuration and state are his."""
        self.place, self.kind, self.name = roles.place, kind, name
        self.port = free_port()
        sections.setdefault("listen", {"http": f"127.0.0.1:{self.port}"})
        self.ca = None  # whose certificate its pages show
        self.config = self.place.write(f"{name}.json", json.dumps(sections, indent=1))
        self.state = self.place.path(f"{name}.state")
        self._arguments, self._popen = arguments, {}
        if user:
            self._popen = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            os.makedirs(self.state)
            for path in (self.config, self.state):
                shutil.chown(path, user)
        self.run = None  # the present life, or the last
        self._lives = []

    def start(self, **popen):
        """Starts it where it was, perhaps in another environment: itself."""
        self.run = self.place.start("--config", self.config, "--state", self.state, *self._arguments,
                                    program=program(self.place, f"weir-{self.kind}"), **{**self._popen, **popen})
        self._lives.append(self.run)
        return self

    # ---- ends ----

    def stop(self, patience_s=2 * PATIENCE_S):
        """SIGTERM, and waits for its end: the exit code."""
        return self.run.stop(patience_s)

    def kill(self):
        """SIGKILL, and waits for its end."""
        self.run.kill()

    def pause(self):
        """SIGSTOP: it stands still."""
        self.run.pause()

    def resume(self):
        """SIGCONT."""
        self.run.resume()

    def reload(self):
        """SIGHUP."""
        self.run.signal(signal.SIGHUP)

    # ---- questions ----

    def page(self, path):
        """(status, text) of an HTTP page; None while it does not answer: not yet, or as the test has ended it."""
        answer = metrics.get(self.port, path, ca=self.ca)
        if answer is None:
            self.run.require_asked()
        return answer and (answer[0], answer[2])

    def metrics(self):
        """Its metrics; None likewise."""
        page = metrics.scrape(self.port, self.ca)
        if page is None:
            self.run.require_asked()
        return page

    def value(self, name, **labels):
        """The sum of a metric's samples that have these labels; 0 likewise."""
        page = self.metrics()
        return page.sum(name, **labels) if page else 0

    def is_ready(self):
        """Whether /readyz says so."""
        answer = self.page("/readyz")
        return answer is not None and answer[0] == 200

    def said(self):
        """What it wrote to standard error, in all its lives."""
        return "".join(life.said() for life in self._lives)

    # ---- waiting ----

    def until(self, condition, what, patience_s=2 * PATIENCE_S):
        """Waits for condition(), as long as it runs."""
        return until(condition, f"{self.name}: {what}", patience_s, self.run)

    def until_up(self):
        """Waits until it answers, and so heeds signals, ready or not: itself."""
        self.until(lambda: self.page("/healthz"), "has come up")
        return self

    def until_ready(self):
        """Waits until it is ready: itself."""
        self.until(self.is_ready, "is ready")
        return self

    def until_says(self, words):
        """Waits until it has written these words in its present life: itself."""
        self.until(lambda: words in self.run.said(), f"says {words!r}")
        return self


class Roles:
    """The daemons of one test. Use it in a with statement."""

    def __init__(self, place, cluster, zones=None, **sections):
        """sections: in every configuration, beside the cluster's own; zones only in those that are applied."""
        self.place, self.cluster, self.zones, self._sections = place, cluster, zones, sections
        self.all = []
        self._applied = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and kind is not Skipped:
            self.show()
        for role in self.all:
            if role.run is not None:
                role.run.kill()

    def sections(self, **more):
        """A configuration's sections: the cluster's, the test's, and these."""
        merged = {name: dict(value) if isinstance(value, dict) else value for name, value in self._sections.items()}
        for name, section in more.items():
            both = isinstance(section, dict) and isinstance(merged.get(name), dict)
            merged[name] = {**merged[name], **section} if both else section
        return self.cluster.sections(**merged)

    def apply(self, zones=None):
        """`weir policy apply`: what it wrote."""
        if zones is not None:
            self.zones = zones
        self._applied += 1
        path = self.place.write(f"policy-{self._applied}.json", json.dumps(self.sections(zones=self.zones), indent=1))
        return self._good("policy", "apply", "--config", path)

    def command(self, *words, **sections):
        """Runs `weir WORDS… --config FILE` to its end, which must be a good one."""
        path = self.place.write("command.json", json.dumps(self.sections(**sections), indent=1))
        return self._good(*words, "--config", path)

    def _good(self, *words):
        """A command's good end. On a busy machine, or after the round before, a broker may not answer for as long as a command waits, or the
        store cut it off."""
        end = time.monotonic() + PATIENCE_S
        while True:
            done = self.place.run(*words)
            away = any(words in done.said() for words in ("no broker of", "Local: Timed out", "(runbook: store-away)"))
            if done.code() == 0 or not away or time.monotonic() > end:
                break
        assert done.code() == 0, f"weir {' '.join(map(str, words))} exited with status {done.code()}: {done.said()[-2000:]}"
        return done

    def override(self, *words):
        """Gives an operator's command: what it says was done."""
        return json.loads(self.command(*words, "--json").out())

    def collector(self, sources, name=None, arguments=(), user=None, **sections):
        """A weir-collector that is started; user: as whom."""
        return self._start("collector", name, arguments, {"sources": sources, **sections}, user)

    def limiter(self, name=None, arguments=(), **sections):
        """A weir-limiter that is started."""
        return self._start("limiter", name, arguments, sections)

    def archiver(self, name=None, arguments=(), **sections):
        """A weir-archiver that is started."""
        return self._start("archiver", name, arguments, sections)

    def _start(self, kind, name, arguments, sections, user=None):
        name = name or f"{kind}-{1 + sum(role.kind == kind for role in self.all)}"
        role = Role(self, kind, name, self.sections(**sections), arguments, user)
        self.all.append(role)
        return role.start()

    def show(self):
        """Prints the end of each role's log, and keeps the whole."""
        build = os.environ.get("WEIR_BUILD") or os.path.join(ROOT, "build", "release")
        script = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        kept = os.path.join(build, "failed", f"{script}-{os.getpid()}")
        os.makedirs(kept, exist_ok=True)
        for role in self.all:
            said = role.said()
            print(f"---- {role.name} (exit code {role.run.code() if role.run else None}) says at last:")
            print("\n".join(said.splitlines()[-_SHOWN:]))
            with open(os.path.join(kept, f"{role.name}.log"), "w", encoding="utf-8") as file:
                file.write(said)
            shutil.copy(role.config, kept)
        print(f"---- all logs are kept in {kept}", flush=True)
