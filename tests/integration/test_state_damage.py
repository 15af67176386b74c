#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A state directory of which a file is damaged: `weir doctor` says beforehand what `weir run` would refuse, and both say what
to type; a spool that has lost its id, or its batches, counts nothing twice and loses nothing in silence."""

import ctypes
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import read, until
from support.pushing import Receiver, http_source, lines
from support.traffic import burst, sliding, source, zone

DONE = 0
MORE = 4  # one more than the limit, so that it shows when they are judged
RUNBOOK = "state-file-damaged"
STATE = """a state; of $HOME "and" it's"""  # a path that a shell must be given as one word

# From prctl(2) and capability(7): so that root's process, too, is refused what a file's rights refuse.
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2
_LIBC = ctypes.CDLL(None)

FIRST = "00000000000000000001.log"
FILES = ["sources.json", f"log/events/{FIRST}", "log/events/readers", f"log/decisions/{FIRST}", "log/partitions",
         "spool-edge/id", "spool-edge/ids-1", "spool-edge/partitions", "spool-edge/events/readers", f"spool-edge/events/{FIRST}", "weir.db"]


def obey_rights():
    """In a process before it becomes weir."""
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


# ---- damages ----

def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def flip(path):
    """One bit in its middle; of a database at its beginning, as a page in its middle may be one that nobody uses."""
    with open(path, "r+b") as file:
        file.seek(0 if path.endswith(".db") else os.path.getsize(path) // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def flip_first(path):
    """One bit of what a segment begins with."""
    with open(path, "r+b") as file:
        file.write(bytes([read(path)[0] ^ 1]))


def empty(path):
    os.truncate(path, 0)


def replace_by_a_directory(path):
    os.unlink(path)
    os.mkdir(path)


def close(path):
    os.chmod(path, 0)


DAMAGES = (cut, flip, empty, replace_by_a_directory, close)


def damages_of(number):
    """Of a file: all of them by hand, else one, which differs from file to file."""
    return DAMAGES if os.environ.get("WEIR_DAMAGES") == "all" else (DAMAGES[(number + 1) % len(DAMAGES)],)


class State(Receiver):
    """A weir that follows a log and takes what is pushed; its state is kept as it was at a stop."""

    def __init__(self, place, **sections):
        super().__init__(place, [zone("site", [sliding(3, "1d")], block_for="1d")])
        self.state = place.path(STATE)
        log = place.write("log", burst("ann", 40, start_ms=1000 * int(time.time())))
        self.config = place.config(self.zones, [source(log), http_source(place, self.port)], bus={"partitions": 2},
                                   listen={"http": f"127.0.0.1:{self.pages}"}, **sections)

    def make(self):
        """A state with something in each file."""
        self.start()
        for i in range(3):
            self.post(lines([f"user-{i}"]), Idempotency_Key=f"key-{i}")
        self.until_read(3)
        until(lambda: "ann" in self.blocked(), "ann is blocked", running=self.weir)
        until(lambda: len(read(os.path.join(self.state, "spool-edge/ids-1"))) == 16 + 3 * 48, "ids are saved", running=self.weir)
        assert self.weir.stop() == DONE, self.weir.said()
        shutil.copytree(self.state, self.place.path("good"))
        shutil.copy(self.place.path("out"), self.place.path("good-out"))

    def shown(self, name):
        """A metric without labels."""
        page = metrics.scrape(self.pages)
        return page.value(name) if page else None

    def until_read(self, count):
        """Waits until so many pushed lines were read."""
        until(lambda: self.value("weir_source_lines_total") == count, f"{count} lines", running=self.weir)

    def restore(self):
        """The state as it was, with its decisions."""
        shutil.rmtree(self.state)
        shutil.copy(self.place.path("good-out"), self.place.path("out"))
        shutil.copytree(self.place.path("good"), self.state)

    def files(self):
        """All there is: {path: (inode, size, when it was changed)}."""
        found = {}
        for directory, _, names in os.walk(self.state):
            for name in names:
                about = os.lstat(os.path.join(directory, name))
                found[os.path.join(directory, name)] = (about.st_ino, about.st_size, about.st_mtime_ns)
        return found

    def doctor(self):
        """What it finds of the state's files. It changes nothing."""
        before = self.files()
        done = self.place.run("doctor", "--config", self.config, "--state", self.state, "--json", prepare=obey_rights)
        assert self.files() == before, done.out()
        return [finding for finding in json.loads(done.out())["findings"]
                if finding["check"] in ("state", "sources") and "is not running" not in finding["what"]]

    def try_start(self):
        """Starts it: whether it works. It is left running."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.state, "--decisions",
                                     self.place.path("out"), prepare=obey_rights)
        until(lambda: self.weir.code() is not None or "following" in self.weir.said(), "it works, or has ended")
        return "following" in self.weir.said()

    def mend(self):
        """Types what a doctor says, and what a start says then, until it starts."""
        for _ in range(4):
            found = self.doctor()
            if found:
                self.type(found[0]["remedy"])
            if self.try_start():
                return
            recover = re.search(r"`weir (recover .*)--partition \d+ --yes`", self.weir.said())
            if recover:
                self.place.good(*shlex.split(recover[1]), "--all", "--yes")
            elif "is not empty, but this state has written nothing yet" in self.weir.said():
                os.unlink(self.place.path("out"))
        raise AssertionError(self.weir.said())

    def type(self, remedy):
        """As a shell is given it."""
        assert re.match(r"(mv|mkdir|chmod|weir recover) ", remedy), remedy
        path = f"{os.path.dirname(os.path.abspath(self.place.weir))}:{os.environ['PATH']}"
        subprocess.run(["sh", "-c", remedy], check=True, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL)


def require_told(state, path, case):
    """That a doctor says of a file what a start refuses, with a remedy, and that the start says the same."""
    found = state.doctor()
    refused = not state.try_start()
    if not refused:
        state.weir.kill()
        assert not found, (case, found)
        return
    said = state.weir.said()
    assert state.weir.code() not in (None, DONE), case
    assert found, f"{case}: weir run refuses, and weir doctor says nothing: {said}"
    first = found[0]
    assert first["runbook"] in (RUNBOOK, "process-down") and first["severity"] == "page", (case, found)
    assert os.path.dirname(path) in first["what"] and first["means"], (case, found)
    assert f". To start: {first['remedy']} (runbook: {first['runbook']})" in said, (case, found, said)
    assert first["what"].partition(": disk I/O")[0].partition(":")[0] in said, (case, found, said)


def test_a_doctor_says_what_a_start_refuses(place):
    state = State(place)
    state.make()
    assert not state.doctor()
    for number, name in enumerate(FILES):
        for damage in damages_of(number):
            if name == "weir.db" and damage is empty:
                continue  # a start makes it anew: see below
            state.restore()
            damage(os.path.join(state.state, name))
            require_told(state, os.path.join(state.state, name), f"{name}: {damage.__name__}")
    require_told_that_the_database_is_gone(state)
    require_told_of_another_number(state)
    require_told_of_pages(state)
    require_validate_to_warn(state)
    require_one_word_to_name_the_state(state)
    require_what_is_typed_to_help(state)


def require_told_that_the_database_is_gone(state):
    """A start would make another, and say nothing."""
    for damage, words in ((empty, "is empty, though there is a log beside it"), (os.unlink, "is missing, though")):
        state.restore()
        damage(os.path.join(state.state, "weir.db"))
        if damage is empty:
            require_readers_to_leave_its_log(state)
        first = state.doctor()[0]
        assert words in first["what"] and first["runbook"] == RUNBOOK, first


def require_readers_to_leave_its_log(state):
    """A copy of the database that is put back may need it."""
    state.place.write(f"{STATE}/weir.db-wal", "of the database")
    before = state.files()
    for words in (("validate", state.config), ("list", "--config", state.config), ("doctor", "--config", state.config)):
        done = state.place.run(*words, "--state", state.state)
        assert state.files() == before, (words, done.said(), done.out())


def require_told_of_another_number(state):
    """Where the files of the topics say what the configuration says, the file that says another number is the damaged one."""
    state.restore()
    path = state.place.write(f"{STATE}/log/partitions", "17\n")
    first = state.doctor()[0]
    assert first["runbook"] == RUNBOOK and "it says 17 partitions, and the files of its topics have 2" in first["what"], first
    assert b"a start would refuse: " in state.place.good("validate", state.config, "--state", state.state).out()
    assert first["remedy"].startswith("mv ") and not state.try_start() and "nothing is lost" in state.weir.said(), first
    state.mend()
    state.weir.kill()
    assert read(path) == b"2\n"
    state.restore()
    state.place.config(state.zones, [], name="other.json", bus={"partitions": 17})
    done = state.place.run("doctor", "--config", state.place.path("other.json"), "--state", state.state)
    assert b'set "bus.partitions" to 2,' in done.out(), done.out()


def require_told_of_pages(state):
    """A start reads some of a database's pages, of which the first one knows nothing."""
    path, refused = os.path.join(state.state, "weir.db"), 0
    for page in (2, 3, 7):
        state.restore()
        with open(path, "r+b") as file:
            file.seek(page * 16384)
            file.write(b"\xa5" * 64)
        found = state.doctor()
        assert found and "weir.db" in found[0]["what"] and found[0]["runbook"] == RUNBOOK, (page, found)
        refused += not state.try_start()
        state.weir.kill()
    assert refused, "no start reads them"


def require_validate_to_warn(state):
    """As the files are no part of the configuration, it is a good one."""
    for name in ("sources.json", f"log/events/{FIRST}", f"spool-edge/events/{FIRST}"):
        state.restore()
        cut(os.path.join(state.state, name))
        done = state.place.good("validate", state.config, "--state", state.state)
        said = done.said() + done.out().decode()
        assert "a start would refuse: " in said and "To start: mv " in said, said


def require_one_word_to_name_the_state(state):
    """In what a doctor says to type of a state that is not run, is nobody's, is not there, or has another owner's file."""
    def remedies(path):
        done = state.place.run("doctor", "--config", state.config, "--state", path, "--json")
        found = [shlex.split(finding["remedy"].replace(", or", " or")) for finding in json.loads(done.out())["findings"] if finding["check"] == "state"]
        assert found and all(path in words for words in found), (found, done.out())
        return found
    state.restore()
    assert remedies(state.state)[0][:2] == ["systemctl", "start"]
    assert remedies(state.state + "/none")
    if os.geteuid() == 0:
        os.chown(os.path.join(state.state, "sources.json"), 65534, 65534)
        assert any(words[0] == "chown" for words in remedies(state.state))


def require_what_is_typed_to_help(state):
    """For each file; then it starts, and reads on. The database comes last: without it, another file of decisions is begun."""
    state.restore()
    close(state.place.write(f"{STATE}/dead-letter.jsonl", ""))
    state.mend()
    state.weir.kill()
    for name in FILES:
        state.restore()
        (replace_by_a_directory if name.endswith("ids-1") else cut)(os.path.join(state.state, name))
        state.mend()
        state.post(lines(["more"]))
        until(lambda: (state.value("weir_source_lines_total") or 0) >= 1, "a line is read", running=state.weir)
        state.weir.kill()


def test_a_log_that_was_moved_away_is_archived_on(place):
    """What the archiver reads: it goes on after the whole remedy, and says what is missing after half of it."""
    state = State(place, archiver={"enabled": True})
    state.make()
    for topic, lost in (("decisions", "gateways let those through who are blocked now"), ("judged", "what is not archived of it yet")):
        state.restore()
        flip_first(os.path.join(state.state, "log", topic, FIRST))
        move, recover = state.doctor()[0]["remedy"].split(" && ")
        assert shlex.split(recover) == ["weir", "recover", "--accept-gap", "--state", state.state, "--all", "--yes"]
        assert not state.try_start() and lost in state.weir.said(), state.weir.said()
        state.type(move)
        assert state.try_start(), state.weir.said()
        words = f"Stop weir run, then `weir recover --accept-gap --state '{place.directory}/a state;"
        line = until(lambda: re.search(f"{re.escape(words)}.*", state.weir.said()), "the archiver says why it stands", running=state.weir)
        assert "(runbook: topic-recreated)" in line[0], line[0]
        state.weir.kill()
        state.type(recover)
        assert state.try_start(), state.weir.said()
        until(lambda: state.shown("weir_archiver_partitions") == 2, "all of it is archived", running=state.weir)
        assert "ERROR" not in state.weir.said(), state.weir.said()
        state.weir.kill()


def test_beside_one_that_runs_it_finds_what_is_there_alone(place):
    """What is just written is no damage; what is damaged while it runs is told before it starts again."""
    state = State(place)
    state.make()
    assert state.try_start(), state.weir.said()
    for i in range(8):
        place.append("log", burst(f"busy-{i}", 2000, start_ms=1000 * int(time.time())))
        done = place.run("doctor", "--config", state.config, "--state", state.state, "--json")
        assert RUNBOOK not in done.out().decode(), done.out()
    flip(os.path.join(state.state, "log/events", FIRST))
    flip(os.path.join(state.state, "spool-edge/id"))
    done = place.run("doctor", "--config", state.config, "--state", state.state, "--json")
    found = [finding["what"] for finding in json.loads(done.out())["findings"] if finding["runbook"] == RUNBOOK]
    assert any("log/events" in what for what in found) and any("spool-edge/id" in what for what in found), done.out()
    assert state.weir.code() is None
    state.weir.kill()


def become_nobody():
    """In a process before it becomes weir."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def test_who_may_not_read_a_state_claims_nothing_of_it(place):
    """It may run well, and what is said to be typed by mistake would take it from its user."""
    if os.geteuid() != 0:
        raise cases.Skipped("only root can become another user")
    state = State(place)
    assert state.try_start(), state.weir.said()
    os.chmod(place.directory, 0o755)
    os.chmod(state.config, 0o644)
    os.mkdir(place.path("closed"), 0o700)
    os.symlink(state.state, place.path("closed/state"))
    subprocess.run(["chmod", "-R", "a+rX", state.state], check=True)
    for closed, named in ((".", state.state), ("weir.db", state.state), ("log/decisions", state.state), (None, place.path("closed/state"))):
        if closed:
            mode = os.stat(os.path.join(state.state, closed)).st_mode
            os.chmod(os.path.join(state.state, closed), mode & 0o770)
        done = place.run("doctor", "--config", state.config, "--state", named, "--json", prepare=become_nobody)
        found = [finding for finding in json.loads(done.out())["findings"] if finding["check"] == "state"]
        assert len(found) == 1 and "this command runs as nobody, who may not read it" in found[0]["what"], done.out()
        assert shlex.split(found[0]["remedy"]) == \
            ["sudo", "-u", "root", "weir", "doctor", "--config", state.config, "--state", named], found
        said = done.out().decode()
        assert "chown" not in said and "never ran" not in said and "lost" not in said and "there is no state" not in said, said
        done = place.run("validate", state.config, "--state", named, prepare=become_nobody)
        assert done.code() == DONE and b"chown" not in done.out() and b"would refuse: " not in done.out(), done.out()
        if closed:
            os.chmod(os.path.join(state.state, closed), mode)
    state.weir.kill()


# ---- the id of a spool ----

def push_again(state, lost):
    """Damages a state that has judged three pushed lines, starts it, and pushes others: how many lines it reads up to them."""
    state.restore()
    lost()
    state.start()
    state.post(lines(["more"] * MORE))
    until(lambda: "more" in state.blocked(), "the last line is judged", running=state.weir)
    count = until(lambda: state.value("weir_source_lines_total"), "its count is shown", running=state.weir)
    state.weir.kill()
    return count


def test_a_spool_that_lost_its_id_counts_nothing_twice(place):
    state = State(place)
    state.make()
    path = os.path.join(state.state, "spool-edge")
    with open(os.path.join(path, "id"), "rb") as file:
        before = file.read()
    assert push_again(state, lambda: os.unlink(os.path.join(path, "id"))) == MORE
    said = state.weir.said()
    assert 'has lost its file "id", and has it again from sources.json' in said and f"(runbook: {RUNBOOK})" in said, said
    with open(os.path.join(path, "id"), "rb") as file:
        assert file.read() == before

    def of_an_earlier_version():
        os.truncate(os.path.join(path, "id"), 16)
    assert push_again(state, of_an_earlier_version) == MORE
    assert "WARNING" not in state.weir.said(), state.weir.said()
    with open(os.path.join(path, "id"), "rb") as file:
        assert file.read() == before

    def both():
        os.unlink(os.path.join(path, "id"))
        os.unlink(os.path.join(state.state, "sources.json"))
    assert push_again(state, both) == MORE
    assert "sources.json does not have it either" in state.weir.said(), state.weir.said()

    def another():
        with open(os.path.join(path, "id"), "wb") as file:
            file.write(bytes(16))
    assert push_again(state, another) == MORE
    assert "is not the one that sources.json knows" in state.weir.said(), state.weir.said()


    assert push_again(state, lambda: shutil.rmtree(os.path.join(path, "events"))) == MORE  # its positions begin anew
    assert "batches of its spool are gone" in state.weir.said(), state.weir.said()

    def ids():
        with open(os.path.join(path, "ids-1"), "r+b") as file:
            file.seek(20)
            file.write(b"\xff")
    assert push_again(state, ids) == MORE
    assert "ids-1 may be damaged at byte 16" in state.weir.said() and "may be taken twice" in state.weir.said(), state.weir.said()


if __name__ == "__main__":
    cases.main(globals())
