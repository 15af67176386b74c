#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Full disks, unreadable files, vanished directories: said once, tried again, nothing lost."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics, traffic
from support.place import SANITIZED, free_port, lines_of, read, until
from support.small_disk import SmallDisk, enter_namespace
from support.traffic import burst, by_bucket, site, source

MIB = 1 << 20
NOBODY = 65534
FULL = ("No space left", "File too large", "disk is full")
NO_NAMESPACE = enter_namespace()


@contextlib.contextmanager
def small_disk(place, size=64 * MIB):
    """A small file system in the place, or the test is skipped."""
    if NO_NAMESPACE:
        raise cases.Skipped(NO_NAMESPACE)
    try:
        disk = SmallDisk(place.path("disk"), size)
    except OSError as refused:
        raise cases.Skipped(str(refused)) from refused
    with disk:
        yield disk
        place.end_all()


def warnings(weir, *words):
    """In how many warnings and errors a weir said one of these."""
    return sum(any(word in line for word in words) for line in weir.said().splitlines()
               if " WARNING " in line or " ERROR " in line)


class Following:
    """A weir that follows one log, and what an undisturbed run decides on it."""

    def __init__(self, place, state, out, *, limits=(1, "1m"), more=(), bus=None, archive=False, **popen):
        self.place, self.out, self.port, self.api = place, out, free_port(), free_port()
        self.sent, self.users = b"", 0
        place.write("log", "")
        self.config = place.config(site(*limits), [source(place.path("log"))],
                                   listen={"http": f"127.0.0.1:{self.port}"}, bus=bus or {},
                                   limiter={"checkpoint_interval": "200ms"},
                                   archiver={"enabled": archive, "api": f"127.0.0.1:{self.api}", "interval": "100ms"})
        self.arguments = ("run", "--config", self.config, "--state", state, "--decisions", out,
                          "--dead-letter", place.path("dead"), *more)
        self.weir = place.start(*self.arguments, **popen)
        until(lambda: "following" in self.weir.said(), "weir follows", running=self.weir)

    def feed(self, count):
        """Appends the requests of new users, each of whom is to be blocked once."""
        lines = b"".join(burst(f"user-{self.users + i}", 2).encode() for i in range(count))
        self.users += count
        self.sent += lines
        self.place.append("log", lines)

    def verdicts(self):
        """How many events have been judged, by /metrics; -1 while it does not answer."""
        page = metrics.scrape(self.port)
        if page is None:
            self.weir.require_asked()
        return page.sum("weir_limiter_verdicts_total") if page else -1

    def page(self, path):
        """(status, text) of a page; (0, "") while it does not answer."""
        answer = metrics.get(self.port, path)
        if answer is None:
            self.weir.require_asked()
        return (answer[0], answer[2]) if answer else (0, "")

    def state_up(self):
        """weir_run_state_up; -1 while it does not answer."""
        page = metrics.scrape(self.port)
        if page is None:
            self.weir.require_asked()
        return page.value("weir_run_state_up") if page else -1

    def troubles(self):
        """What the System view says of the process."""
        answer = metrics.get(self.api, "/api/v1/status")
        return json.loads(answer[2])["troubles"] if answer else None

    def await_all(self):
        """Waits until every user was blocked, each once, and every line was counted once."""
        until(lambda: len(lines_of(self.out)) >= self.users, f"{self.users} decisions", running=self.weir)
        until(lambda: self.verdicts() == 2 * self.users, "all verdicts", running=self.weir)
        self.place.write("whole.log", self.sent)
        config = self.place.config(site(1, "1m"), [source(self.place.path("whole.log"))], "whole.json")
        self.place.good("run", "--once", "--config", config, "--decisions", self.place.path("whole"))
        assert by_bucket(lines_of(self.out)) == by_bucket(lines_of(self.place.path("whole")))

    def await_said(self, *words, before=0):
        """Waits until it says one of these."""
        until(lambda: any(word in self.weir.said()[before:] for word in words), f"weir says {words}",
              running=self.weir)

    def times_said(self, *words):
        """In how many warnings it said one of these."""
        return warnings(self.weir, *words)

    def end(self):
        """Ends it, which must be a good end."""
        assert self.weir.stop() == 0, self.weir.said()


def feed_until_full(follow, disk, step=200):
    """Fills the disk, and goes on feeding until weir notices."""
    disk.fill()

    def noticed():
        follow.feed(step)
        return follow.times_said(*FULL)

    until(noticed, "weir says that the disk is full", running=follow.weir)


def test_a_full_disk_under_the_decisions_file(place):
    with small_disk(place) as disk:
        follow = Following(place, place.path("state"), place.path("disk", "out"))
        follow.feed(10)
        until(lambda: len(lines_of(follow.out)) == 10, "ten decisions", running=follow.weir)
        feed_until_full(follow, disk)
        follow.feed(100)
        until(lambda: follow.verdicts() == 2 * follow.users, "it goes on judging", running=follow.weir)
        assert follow.times_said(*FULL) == 1, follow.weir.said()
        disk.drain()
        follow.await_all()
        follow.end()


def test_a_full_disk_under_the_state(place):
    with small_disk(place) as disk:
        follow = Following(place, place.path("disk", "state"), place.path("out"), archive=True)
        follow.feed(10)
        until(lambda: len(lines_of(follow.out)) == 10, "ten decisions", running=follow.weir)
        assert follow.page("/readyz") == (200, "ok\n") and follow.state_up() == 1
        assert follow.troubles() == []
        feed_until_full(follow, disk, 1000)
        until(lambda: follow.state_up() == 0, "its page says so")
        until(lambda: follow.page("/readyz")[0] == 503, "it is not ready")
        assert "reading waits, and new lines are not judged" in follow.page("/readyz")[1], follow.page("/readyz")
        assert any("reading waits" in words for words in follow.troubles()), follow.troubles()
        follow.feed(100)
        assert follow.times_said(*FULL) <= 4, f"each part may say it once: {follow.weir.said()}"
        disk.drain()
        follow.await_all()
        until(lambda: follow.page("/readyz")[0] == 200 and follow.state_up() == 1, "it is ready again")
        follow.end()
        follow.weir = place.start(*follow.arguments)
        follow.feed(10)
        follow.await_all()


def test_what_is_kept_to_explain_gives_way_to_a_full_disk(place):
    """Events that were judged are kept while there is room: on a disk without, the run goes on in their place."""
    with small_disk(place) as disk:
        bus = {"partitions": 1, "segment_size": "64KiB", "explain_size": "1GiB"}
        follow = Following(place, place.path("disk", "state"), place.path("out"), bus=bus)
        lines = burst("ann", 50000)

        def judge(count):
            place.append("log", lines)
            until(lambda: follow.verdicts() == count * 50000, f"{count} times 50000 verdicts", running=follow.weir)
        for count in range(1, 4):
            judge(count)
        log = place.path("disk", "state", "log", "events")
        kept = sorted(os.listdir(log))
        assert len(kept) > 8, kept
        # What no checkpoint has yet gives way to nothing, as a start would judge it again: all is in one after a stop.
        assert follow.weir.stop() == 0, follow.weir.said()
        follow.weir = place.start(*follow.arguments)
        until(lambda: follow.verdicts() == 3 * 50000, "it is back", running=follow.weir)
        disk.fill()
        judge(4)
        assert follow.times_said(*FULL) >= 1 and kept[0] not in os.listdir(log), (follow.weir.said(), os.listdir(log))
        disk.drain()
        follow.end()


def test_a_kill_while_the_disk_is_full(place):
    with small_disk(place) as disk:
        follow = Following(place, place.path("disk", "state"), place.path("disk", "out"))
        follow.feed(500)
        until(lambda: len(lines_of(follow.out)) == 500, "500 decisions", running=follow.weir)
        feed_until_full(follow, disk, 1000)
        follow.weir.kill()
        disk.drain()
        follow.weir = place.start(*follow.arguments)
        follow.feed(10)
        follow.await_all()
        follow.end()


def test_a_start_on_a_full_disk_fails_and_harms_nothing(place):
    with small_disk(place) as disk:
        follow = Following(place, place.path("disk", "state"), place.path("disk", "out"))
        follow.feed(100)
        until(lambda: len(lines_of(follow.out)) == 100, "100 decisions", running=follow.weir)
        follow.weir.kill()
        disk.fill()
        follow.feed(100)
        follow.weir = place.start(*follow.arguments)
        until(lambda: follow.weir.code() is not None or follow.times_said(*FULL, "full"), "it fails or says why")
        follow.weir.kill()
        disk.drain()
        follow.weir = place.start(*follow.arguments)
        follow.await_all()
        follow.end()


def test_a_start_on_a_disk_without_room_for_a_policy_says_so_at_once(place):
    """Nothing frees it: the wait for the log to take the policy ends with what the disk said."""
    with small_disk(place, size=600 << 10):
        place.write("log", "")
        config = place.config(site(1, "1m"), [source(place.path("log"))])
        weir = place.start("run", "--config", config, "--state", place.path("disk", "state"), "--decisions", place.path("out"))
        assert weir.wait() == 1 and "the log cannot take the policy: " in weir.said(), weir.said()
        assert "No space left on device" in weir.said() and "did not acknowledge" not in weir.said(), weir.said()


def test_too_few_descriptors_end_in_words(place):
    """However few they are, and whatever is being opened: a reason that says how more are allowed, and no signal."""
    config = place.config(site(1, "1m"), [source(place.write("log", ""))],
                          listen={name: f"127.0.0.1:{free_port()}" for name in ("http", "resp", "check_http")},
                          decisions={"path": place.path("out")})
    for most in (8, 12, 16, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30):
        weir = place.start("-c", f"ulimit -n {most}; exec \"$@\"", "sh", place.weir, "run", "--config", config, "--state",
                           place.path(f"state-{most}"), program="/bin/sh")
        assert weir.wait(60) == 1, (most, weir.code(), weir.said())
        said = weir.said().splitlines()[-1]
        assert "Too many open files (more are allowed by ulimit -n, or LimitNOFILE= of a service)" in said, (most, said)
        assert "--decisions PATH" not in said, (most, said)


def test_damage_to_the_newest_decisions_is_no_torn_end(place):
    """After a kill, too, and though nothing was written behind them: the start is refused, and the log left as it is."""
    follow = Following(place, place.path("state"), place.path("out"))
    follow.feed(8)
    until(lambda: len(lines_of(follow.out)) == 8, "eight decisions", running=follow.weir)
    follow.weir.kill()
    log = place.path("state", "log", "decisions", f"{1:020}.log")
    whole = bytearray(read(log))
    starts = [at for at in range(len(whole)) if whole[at:at + 4] == b"wRec"]
    whole[starts[-2] + 80] ^= 1  # the last one is the mark behind them
    with open(log, "wb") as file:
        file.write(whole)
    follow.weir = place.start(*follow.arguments)
    assert follow.weir.wait(60) == 2, follow.weir.said()
    assert f"decisions/{1:020}.log is damaged at byte {starts[-2]}: " in follow.weir.said(), follow.weir.said()
    assert read(log) == whole and len(lines_of(follow.out)) == 8
    whole[starts[-2] + 80] ^= 1
    with open(log, "wb") as file:
        file.write(whole)
    follow.weir = place.start(*follow.arguments)
    follow.feed(2)
    follow.await_all()
    follow.end()


def test_sigterm_ends_it_on_a_full_disk(place):
    with small_disk(place) as disk:
        follow = Following(place, place.path("state"), place.path("disk", "out"))
        follow.feed(10)
        until(lambda: len(lines_of(follow.out)) == 10, "ten decisions", running=follow.weir)
        feed_until_full(follow, disk)
        follow.weir.signal(signal.SIGTERM)
        assert follow.weir.wait(60) in (0, 1), follow.weir.said()
        disk.drain()
        follow.weir = place.start(*follow.arguments)
        follow.await_all()
        follow.end()


def test_a_limit_on_file_sizes_is_a_full_disk(place):
    """Where nothing can be mounted: writes fail at a size, and go on once the limit is raised."""
    follow = Following(place, place.path("state"), place.path("out"),
                       prepare=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
    follow.feed(10)
    until(lambda: len(lines_of(follow.out)) == 10, "ten decisions", running=follow.weir)
    follow.feed(50)
    until(lambda: len(lines_of(follow.out)) == 60, "sixty decisions", running=follow.weir)
    size = os.path.getsize(follow.out)
    _, hard = resource.prlimit(follow.weir.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(follow.weir.pid, resource.RLIMIT_FSIZE, (size + 100, hard))

    def noticed():
        follow.feed(20)
        return follow.times_said(*FULL)

    until(noticed, "weir says that it cannot write", running=follow.weir)
    resource.prlimit(follow.weir.pid, resource.RLIMIT_FSIZE, (hard, hard))
    follow.await_all()
    follow.end()


def test_once_on_a_full_disk_waits_for_room(place):
    log = place.write("log", b"".join(traffic.crowd(random.Random(5), 200000, 20000)))
    config = place.config(site(2), [source(log)], limiter={"checkpoint_interval": "100ms"})
    place.good("run", "--once", "--config", config, "--decisions", place.path("calm"))
    with small_disk(place) as disk:
        disk.fill()
        out = place.path("disk", "out")
        weir = place.start("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", out)
        until(lambda: any(word in weir.said() for word in FULL), "weir says that the disk is full", running=weir)
        disk.drain()
        assert weir.wait() == 0, weir.said()
        assert read(out) == read(place.path("calm"))
        assert warnings(weir, *FULL) == 1, weir.said()


def test_once_on_a_full_disk_can_be_stopped_and_goes_on(place):
    log = place.write("log", b"".join(traffic.crowd(random.Random(6), 200000, 20000)))
    config = place.config(site(2), [source(log)], limiter={"checkpoint_interval": "100ms"})
    place.good("run", "--once", "--config", config, "--decisions", place.path("calm"))
    with small_disk(place) as disk:
        disk.fill()
        out = place.path("disk", "out")
        arguments = ("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", out)
        weir = place.start(*arguments)
        until(lambda: any(word in weir.said() for word in FULL), "weir says that the disk is full", running=weir)
        assert weir.stop() == 3, weir.said()
        disk.drain()
        place.good(*arguments)
        assert read(out) == read(place.path("calm"))


def as_nobody(place, path):
    """Arguments for start(): a user who cannot read everything, who owns the place."""
    if os.geteuid() != 0 or NO_NAMESPACE and "user" in NO_NAMESPACE:
        return {}
    shutil.copy(place.weir, place.path("weir"))
    os.chmod(place.directory, 0o755)
    os.makedirs(path, exist_ok=True)
    os.chown(path, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "program": place.path("weir")}


def test_an_unreadable_file_is_said_once_and_read_when_it_can_be(place):
    own = place.path("own")
    who = as_nobody(place, own)
    open_log = place.write("open.log", burst("ann", 2))
    shut_log = place.write("shut.log", burst("bob", 2))
    os.chmod(shut_log, 0)
    os.mkdir(place.path("shut"))
    place.write("shut/a.log", burst("joe", 2))
    os.chmod(place.path("shut"), 0)
    config = place.config(site(1), [source(open_log), source(shut_log), source(place.path("shut", "*.log"))])
    out = os.path.join(own, "out")
    os.makedirs(own, exist_ok=True)
    weir = place.start("run", "--config", config, "--state", os.path.join(own, "state"), "--decisions", out, **who)
    until(lambda: len(lines_of(out)) == 1, "the other log is read", running=weir)
    until(lambda: "shut.log" in weir.said(), "it is said", running=weir)
    closed = (f"ERROR collector: {place.path('shut', '*.log')}: cannot read the directory {place.path('shut')}: "
              f"Permission denied (running as uid {who.get('user', os.geteuid())}). ")
    until(lambda: closed in weir.said(), "the directory is said, with the user", running=weir)
    place.append("open.log", burst("eve", 2))
    until(lambda: len(lines_of(out)) == 2, "the other log is followed", running=weir)
    os.chmod(shut_log, 0o644)
    os.chmod(place.path("shut"), 0o755)
    until(lambda: len(lines_of(out)) == 4, "they are read", running=weir)
    assert warnings(weir, "shut.log") == 1 and " ERROR collector: cannot open " in weir.said(), weir.said()
    assert "Permission denied: it belongs to " in weir.said() and "this process runs as " in weir.said(), weir.said()
    assert warnings(weir, "*.log") == 1 and "matches no file" not in weir.said(), weir.said()
    assert sorted(decision["key"][0] for decision in lines_of(out)) == ["ann", "bob", "eve", "joe"]
    assert weir.stop() == 0, weir.said()


def test_once_finishes_the_others_beside_an_unreadable_file(place):
    own = place.path("own")
    who = as_nobody(place, own)
    os.makedirs(own, exist_ok=True)
    open_log = place.write("open.log", burst("ann", 2))
    shut_log = place.write("shut.log", burst("bob", 2))
    os.chmod(shut_log, 0)
    config = place.config(site(1), [source(shut_log), source(open_log)])
    out = os.path.join(own, "out")
    done = place.run("run", "--once", "--config", config, "--decisions", out, **who)
    assert done.code() == 1 and "shut.log" in done.said(), done.said()
    assert [decision["key"] for decision in lines_of(out)] == [["ann"]]


def test_a_vanished_directory_that_comes_back_is_read_on(place):
    os.mkdir(place.path("logs"))
    place.write("logs/log", burst("ann", 2))
    config = place.config(site(1), [source(place.path("logs", "log")), source(place.path("logs", "more-*"))])
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))

    def until_users(*users):
        until(lambda: len(lines_of(place.path("out"))) >= len(users), f"decisions for {users}", running=weir)
        assert sorted(one["key"][0] for one in lines_of(place.path("out"))) == sorted(users)

    until_users("ann")
    os.rename(place.path("logs"), place.path("away"))
    place.append("away/log", burst("bob", 2))
    place.write("away/more-1", burst("eve", 2))
    os.rename(place.path("away"), place.path("logs"))
    until_users("ann", "bob", "eve")
    # Gone for good, and another in its place: new files, from their beginnings.
    shutil.rmtree(place.path("logs"))
    os.mkdir(place.path("logs"))
    place.write("logs/log", burst("joe", 2) + burst("zoe", 2))
    until_users("ann", "bob", "eve", "joe", "zoe")
    assert weir.stop() == 0, weir.said()


def test_a_directory_that_stays_away_is_said_once(place):
    os.mkdir(place.path("logs"))
    place.write("logs/log", burst("ann", 2))
    config = place.config(site(1), [source(place.path("logs", "log"))])
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
    until(lambda: lines_of(place.path("out")), "a decision", running=weir)
    os.rename(place.path("logs"), place.path("away"))
    until(lambda: warnings(weir, "logs/log"), "it is said", running=weir)
    place.append("away/log", burst("bob", 2))
    os.rename(place.path("away"), place.path("logs"))
    until(lambda: len(lines_of(place.path("out"))) == 2, "it is read on", running=weir)
    assert warnings(weir, "logs/log") == 1, weir.said()
    assert " WARNING collector: " in weir.said() and "there is nothing to judge until it is there" in weir.said()
    assert weir.stop() == 0, weir.said()


FAILING_SYNC = """
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd)
{
	char link[64], path[PATH_MAX] = "";
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof path - 1) > 0 && strcmp(path, getenv("FAILING_PATH")) == 0 &&
	    access(getenv("FAILING_WHILE"), F_OK) == 0) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}
"""


def failing_sync(place, path):
    """An environment in which the file's fsync fails while there is a file "broken" in the place."""
    compiler = shutil.which("cc")
    if compiler is None or SANITIZED:
        raise cases.Skipped("no C compiler, or a sanitizer that wants to be loaded first")
    place.write("sync.c", FAILING_SYNC)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place.path("sync.so"), place.path("sync.c")], check=True)
    return dict(os.environ, LD_PRELOAD=place.path("sync.so"), FAILING_PATH=os.path.realpath(path),
                FAILING_WHILE=place.path("broken"))


def test_a_failed_sync_ends_a_run_and_the_next_writes_each_decision_once(place):
    for name in ("out", "dead"):
        followed = Following(place, place.path("state-" + name), place.path("out-" + name))
        followed.feed(5)
        until(lambda: len(lines_of(followed.out)) == 5, "decisions", running=followed.weir)
        assert followed.weir.stop() == 0, followed.weir.said()
        target = followed.out if name == "out" else place.path("dead")
        weir = place.start(*followed.arguments, env=failing_sync(place, target))
        until(lambda: "following" in weir.said(), "weir follows", running=weir)
        place.write("broken", "")
        followed.feed(5)
        assert weir.wait() == 1 and "cannot sync" in weir.said(), weir.said()
        os.remove(place.path("broken"))
        again = place.start(*followed.arguments)
        until(lambda: "following" in again.said() and len(lines_of(followed.out)) == 10, "all decisions", running=again)
        assert again.stop() == 0, again.said()
        assert len(lines_of(followed.out)) == 10


def test_a_failed_sync_ends_once(place):
    log = place.write("log", burst("ann", 5))
    place.write("broken", "")
    done = place.run("run", "--once", "--config", place.config(site(1), [source(log)]), "--decisions",
                     place.path("out"), env=failing_sync(place, place.path("out")))
    assert done.code() == 1 and "cannot sync" in done.said(), done.said()


def test_a_pipe_that_nobody_reads_does_not_keep_a_run_from_stopping(place):
    log = place.write("log", "".join(burst(f"user-{i}", 2) for i in range(5000)))
    config = place.config(site(1), [source(log)])
    for more in (["--once"], ["--state", place.path("state"), "--dead-letter", place.path("dead")]):
        reading, writing = os.pipe()
        weir = place.start("run", *more, "--config", config, "--decisions", "-", stdout=writing)
        os.close(writing)
        until(lambda: "cannot write" in weir.said(), "it waits for the reader", running=weir)
        weir.signal(signal.SIGTERM)
        assert weir.wait() == (1 if "--state" in more else 3), weir.said()
        os.close(reading)


def test_decisions_that_cannot_be_written_are_told_on_the_pages(place):
    log, port = place.write("log", burst("ann", 5)), free_port()
    config = place.config(site(1), [source(log)], listen={"http": f"127.0.0.1:{port}"}, decisions={"path": "/dev/full"})
    weir = place.start("run", "--config", config, "--state", place.path("state"))
    until(lambda: "cannot write /dev/full" in weir.said(), "it cannot write", running=weir)
    status, _, said = metrics.get(port, "/readyz")
    assert status == 503 and "cannot write /dev/full: No space left on device: judging goes on" in said, (status, said)
    assert metrics.scrape(port).value("weir_run_decisions_up") == 0
    done = place.run("doctor", "--config", config, "--state", place.path("state"))
    assert "cannot write /dev/full" in done.out().decode(), done.out()
    weir.kill()


def test_decisions_wait_for_the_reader_of_a_named_pipe(place):
    log = place.write("log", "".join(burst(f"user-{i}", 2) for i in range(100)))
    pipe = place.path("pipe")
    os.mkfifo(pipe)
    config = place.config(site(1), [source(log)])
    stopped = []
    for more in (["--once"], ["--state", place.path("state"), "--dead-letter", place.path("dead")]):
        weir = place.start("run", *more, "--config", config, "--decisions", pipe)
        until(lambda: "nobody reads this pipe" in weir.said(), "it waits for the reader", running=weir)
        weir.signal(signal.SIGTERM)
        stopped.append(weir.wait())
        assert "nobody reads this pipe" in weir.said(), weir.said()
    assert stopped == [3, 1], stopped
    for more in (["--once"], ["--state", place.path("state"), "--dead-letter", place.path("dead")]):
        weir = place.start("run", *more, "--config", config, "--decisions", pipe)
        until(lambda: "nobody reads this pipe" in weir.said(), "it waits for the reader", running=weir)
        with open(pipe, "rb") as reader:
            got = [reader.readline() for _ in range(100)]
            assert len({json.loads(decision)["id"] for decision in got}) == 100
            if "--state" in more:
                weir.signal(signal.SIGTERM)
            assert weir.wait() == 0, weir.said()


def test_a_shadow_file_that_is_no_longer_asked_for_holds_nothing(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(1), [source(log)])
    arguments = ("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
    readers = place.path("state", "log", "decisions.shadow", "readers")
    for more, known in ((["--shadow", place.path("one")], True), ([], False), (["--shadow", place.path("two")], True)):
        weir = place.start(*arguments, *more)
        until(lambda: "following" in weir.said(), "weir follows", running=weir)
        assert weir.stop() == 0, weir.said()
        assert (b"sink-shadow" in read(readers)) == known, more


def test_a_state_that_may_only_be_read_is_looked_at(place):
    own = place.path("own")
    who = as_nobody(place, own)
    log = place.write("log", burst("ann", 5))
    state = place.path("state")
    place.good("run", "--once", "--config", place.config(site(1), [source(log)]), "--state", state, "--decisions",
               place.path("out"))
    os.chmod(state, 0o755)
    for name in os.listdir(state):
        os.chmod(os.path.join(state, name), 0o644)
    done = place.run("state", "--state", state, **who)
    assert done.code() == 0, done.said()


def test_a_damaged_state_is_refused_in_words(place):
    log = place.write("log", burst("ann", 5))
    config = place.config(site(), [source(log)])
    arguments = ("run", "--once", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"))
    place.good(*arguments)
    databases = [name for name in os.listdir(place.path("state")) if os.path.getsize(place.path("state", name)) > 4096]
    assert databases, os.listdir(place.path("state"))
    for name in databases:
        with open(place.path("state", name), "r+b") as file:
            file.write(b"\xff" * 4096)
    done = place.run(*arguments)
    assert done.code() in (1, 2) and place.path("state") in done.said(), (done.code(), done.said())


def test_a_state_that_is_taken_away_is_told_and_goes_on_when_it_is_back(place):
    """The archive's file, the log, or the whole directory: moved, or with another in its place."""
    state, away = place.path("state"), place.path("away")
    follow = Following(place, state, place.path("out"), archive=True)
    follow.feed(10)
    until(lambda: len(lines_of(follow.out)) == 10, "ten decisions", running=follow.weir)
    assert follow.troubles() == [] and follow.state_up() == 1
    first = len(follow.weir.said())
    for name in ("weir.db", "log", "lock", ""):
        for replaced in (False, True):
            before = len(follow.weir.said())
            path = os.path.join(state, name) if name else state
            os.rename(path, away)
            if replaced and os.path.isdir(away):
                os.mkdir(path)
            elif replaced:
                place.write(path, "")
            until(lambda: follow.state_up() == 0, f"its page says that {path} is gone", running=follow.weir)
            if before == first:
                follow.await_said(f"{path} was removed while it is open", before=before)
            word = "replaced" if replaced and name in ("weir.db", "log") else "removed"
            assert any(word in words and state in words for words in follow.troubles()), (path, follow.troubles())
            follow.feed(5)
            until(lambda: len(lines_of(follow.out)) == follow.users, "it goes on judging", running=follow.weir)
            if os.path.isdir(path):
                shutil.rmtree(path)
            os.rename(away, path)
            if before == first:
                follow.await_said("is there again", before=before)
            until(lambda: follow.state_up() == 1 and follow.troubles() == [], "all is well", running=follow.weir)
    follow.await_all()
    follow.end()
    follow.weir = place.start(*follow.arguments)
    follow.feed(10)
    follow.await_all()
    follow.end()
    with contextlib.closing(sqlite3.connect(os.path.join(state, "weir.db"))) as database:
        assert database.execute("SELECT SUM(passed + blocked) FROM zone_hourly").fetchone()[0] == 2 * follow.users


def of_servers(port):
    """A source of each kind that asks a server, which is at this port."""
    at = f"127.0.0.1:{port}"
    return {"nats": {"type": "nats", "url": f"nats://{at}", "stream": "S"},
            "amqp": {"type": "amqp", "url": f"amqp://{at}", "queue": "q", "user": "u", "password": "p"},
            "redis": {"type": "redis", "url": f"redis://{at}", "streams": ["s"]},
            "webhdfs": {"type": "webhdfs", "name": "h", "url": f"http://{at}", "path": "/logs/*", "user": "weir"},
            "s3": {"type": "s3", "name": "o", "bucket": "logs", "region": "r", "url": f"http://{at}"},
            "kafka": {"type": "kafka", "brokers": at, "topics": ["t"], "group": "g"}}


def test_a_server_that_is_away_or_says_nothing_holds_up_no_stop(place):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and never answers
        for way, port in (("away", free_port()), ("silent", silent.getsockname()[1])):
            weirs = {}
            for kind, reads in of_servers(port).items():
                config = place.config(site(), [{**reads, "format": "json"}], name=f"{kind}-{way}.json")
                weirs[kind] = place.start("run", "--config", config, "--state", place.path(f"{kind}-{way}"),
                                          "--decisions", place.path(f"{kind}-{way}.out"))
            for kind, weir in weirs.items():
                until(lambda: "run: following" in weir.said(), f"{kind} runs though its server is {way}", running=weir)  # pylint: disable=cell-var-from-loop
            for kind, weir in weirs.items():
                assert weir.stop() == 0, (way, kind, weir.said())


if __name__ == "__main__":
    cases.main(globals())
