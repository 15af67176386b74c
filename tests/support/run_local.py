# SPDX-License-Identifier: Apache-2.0
"""A `weir run` that follows a log on one machine, through its lives, and the commands that people give it."""

import json
import os
import socket
import sys

from support.place import ROOT, lines_of, read, until
from support.traffic import sliding, source, zone

sys.path.append(os.path.join(ROOT, "tests", "conformance", "oracle"))

# pylint: disable=wrong-import-position
import follow
import json_out

DONE, FAILED, USAGE = 0, 1, 2
PARTITIONS = 4


def zones():
    """One that most tests use, and one with a key of two fields."""
    return [zone("site", [sliding(3, "1h")], id=1), zone("pair", [sliding(5, "1h")], key=("user", "path"), id=2)]


class Run:
    """A weir that follows a log, through its lives."""

    def __init__(self, place, **sections):
        self.place, self.state, self.out = place, place.path(sections.pop("state", "state")), place.path("decisions")
        self.log = place.write("log", sections.pop("log", ""))
        self.zones = sections.pop("zones", zones())
        sections["bus"] = {"partitions": PARTITIONS, **sections.get("bus", {})}
        self.config = place.config(self.zones, [source(self.log), *sections.pop("sources", [])], **sections)
        self.weir = None

    def start(self, **popen):
        """Starts it, and waits until it takes commands: itself."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.state, "--decisions", self.out,
                                     "--summary", "json", **popen)
        until(lambda: self.answers(), "takes commands", running=self.weir)
        return self

    def answers(self):
        """Whether someone answers at the control socket."""
        try:
            return b"error" in ask(self.state, b"{}\n")
        except OSError:
            return False

    def append(self, lines):
        """More lines of the log."""
        self.place.append("log", lines)

    def stop(self):
        """Ends it in order: all that was logged is judged."""
        assert self.weir.stop() == DONE, self.weir.said()

    def decisions(self):
        """What is in the decisions file."""
        return lines_of(self.out)

    def published(self, **wanted):
        """Waits for a decision that has these members: it."""
        return until(lambda: next((one for one in self.decisions() if wanted.items() <= one.items()), None),
                     f"a decision with {wanted}", running=self.weir)

    def command(self, *words, code=DONE):
        """Runs a command on its state directory: its run."""
        done = self.place.run(*words, "--state", self.state)
        assert done.code() == code, f"weir {words} exited with status {done.code()}: {done.said()}"
        return done

    def override(self, *words):
        """Gives an operator's command: what it says was done."""
        return json.loads(self.command(*words, "--json").out())

    def compare(self):
        """The decisions file is what the oracle makes of the log, each decision once."""
        frames = self.command("decode").out().splitlines()
        config = {"zones": self.zones, "bus": {"partitions": PARTITIONS}}
        _, results = follow.replay(config, frames)
        want = sorted(json_out.decision_line(name, verdict.decision) for number in results
                      for name, verdict in results[number]
                      if verdict.decision is not None and verdict.zone.mode == "enforce")
        got = sorted(line + b"\n" for line in read(self.out).split(b"\n")[:-1])
        assert got == want, f"{len(got)} decisions, the oracle has {len(want)}:\n{got[:5]}\n{want[:5]}"
        decisions = [json.loads(line) for line in want]
        self.explain(decisions)
        return decisions

    def explain(self, decisions):
        """Each decision comes out again when the log is judged again, as `weir explain` does it."""
        if not decisions:
            return
        done = self.place.run("explain", *[decision["id"] for decision in decisions], "--state", self.state, "--json")
        wrong = [answer for answer in done.objects() if not answer["equal"]]
        assert len(done.objects()) == len(decisions) and not wrong, (done.said(), wrong[:3])


def ask(state, request):
    """The answer to bytes at the control socket; OSError where nobody listens."""
    directory = os.open(state, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(30)
            asked.connect(f"/proc/self/fd/{directory}/control")
            asked.sendall(request)
            answer = b""
            while not answer.endswith(b"\n"):
                part = asked.recv(65536)
                if not part:
                    break
                answer += part
            return answer
    finally:
        os.close(directory)
