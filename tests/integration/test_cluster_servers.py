#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/cluster: up, every server used, stopped, killed and started again, down; and nothing is left."""

import os
import shutil
import signal
import subprocess
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.place import PATIENCE_S, ROOT, until

UP, DOWN, PART = (os.path.join(ROOT, "deploy", "cluster", name) for name in ("up", "down", "part"))
SERVERS = ("broker-1", "mariadb", "redis")
BUSY_S = 4 * PATIENCE_S


def status(directory):
    """{server: (state, pid)}"""
    said = subprocess.run([PART, directory, "status"], stdout=subprocess.PIPE, timeout=BUSY_S, check=True).stdout
    return {name: (state, pid) for name, state, pid in (line.split() for line in said.decode().splitlines())}


def processes_in(directory):
    """The commands that still name a directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if any(directory.encode() in word for word in words) and int(pid) != os.getpid():
            found.append(b" ".join(words))
    return found


def use_all(one):
    """Each server does its work."""
    one.kafka.create("test.a", partitions=2)
    assert one.kafka.produce("test.a", [("k", b"one", 0), ("k", b"two", 1), (None, b"three", 0)]) == [0, 0, 1]
    assert [(m.partition, m.offset, m.key, m.value) for m in sorted(one.kafka.consume("test.a"))] == [
        (0, 0, b"k", b"one"), (0, 1, None, b"three"), (1, 0, b"k", b"two")]
    one.mariadb_server.query(f"CREATE DATABASE `{one.database}`")
    one.mariadb.query("CREATE TABLE t (id INT PRIMARY KEY, data BLOB)")
    one.mariadb.query("INSERT INTO t VALUES (1, %s)", b"\0\xff'")
    assert one.redis.call("SET", "a", b"\0\r\n") == b"OK"
    assert_kept(one)


def assert_kept(one):
    """What Kafka and MariaDB were given is there; from the test's own connections again."""
    assert sorted(message.value for message in one.kafka.consume("test.a")) == [b"one", b"three", b"two"]
    assert one.mariadb.query("SELECT * FROM t") == [(1, b"\0\xff'")]
    assert one.redis.call("GET", "a") in (b"\0\r\n", None)


def test_up_used_broken_and_down(place):
    with cluster.own(parent=place.directory) as one:
        use_all(one)
        first = status(one.directory)
        assert sorted(first) == sorted(SERVERS) and all(state == "up" for state, _ in first.values())
        one.redis.close()
        for server in SERVERS:
            # A broker that was killed is let in again after seconds only; three_brokers has one.
            one.part("stop" if server == "broker-1" else "kill", server)
            assert status(one.directory)[server] == ("down", "-"), server
        # `up` starts what is down, on the same ports, and leaves alone what runs.
        subprocess.run([PART, one.directory, "start", "redis"], timeout=BUSY_S, check=True)
        redis = status(one.directory)["redis"]
        said = subprocess.run([UP, one.directory], stdout=subprocess.PIPE, timeout=BUSY_S, check=True).stdout.decode()
        assert said == one.directory + "\n"
        assert status(one.directory)["redis"] == redis
        assert_kept(one)
        one.part("stop", "mariadb")
        one.part("start", "mariadb")
        one.part("pause", "kafka")
        assert status(one.directory)["broker-1"][0] == "paused"
        one.part("resume", "kafka")
        assert_kept(one)
        refused = subprocess.run([UP, "--brokers", "3", one.directory], stderr=subprocess.PIPE, timeout=BUSY_S,
                                 check=False)
        assert refused.returncode == 1 and b"another kind" in refused.stderr
        subprocess.run([DOWN, one.directory], timeout=BUSY_S, check=True)
        assert {state for state, _ in status(one.directory).values()} == {"down"}
        assert processes_in(one.directory) == []


def test_a_signal_in_the_middle_leaves_nothing(place):
    for number, words in ((signal.SIGINT, "broker-1/pid"), (signal.SIGTERM, "mariadb/install.log")):
        directory = place.path(f"cut-{number}")
        up = subprocess.Popen([UP, directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            until(lambda: os.path.exists(os.path.join(directory, words)), f"{words} is there", BUSY_S)
            up.send_signal(number)
            _, said = up.communicate(timeout=BUSY_S)
        finally:
            up.kill()
            up.wait()
        assert up.returncode == 128 + number and b"stopped" in said, (up.returncode, said)
        # Those whose parent was killed are init's to bury.
        until(lambda: not processes_in(directory), f"nothing of {directory} runs", BUSY_S)


DEAF = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from parts import process, words

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass

def main():
    process.together((step for step in range(3)) for _ in range(2))  # nothing was asked
    Deaf()
    process.together((step for step in range(3)) for _ in range(2))
    return 0

words.leave(main)
"""


def test_a_signal_is_heeded_that_came_where_exceptions_are_ignored(_place):
    done = subprocess.run([sys.executable, "-c", DEAF, os.path.dirname(UP)], stderr=subprocess.PIPE, timeout=BUSY_S,
                          check=False)
    assert b"Exception ignored" in done.stderr, done.stderr
    assert done.returncode == 128 + signal.SIGTERM and b"stopped" in done.stderr, (done.returncode, done.stderr)


def test_down_without_up(place):
    done = subprocess.run([DOWN, place.directory], stderr=subprocess.PIPE, timeout=BUSY_S, check=False)
    assert done.returncode == 1 and b"no cluster's directory" in done.stderr


def test_a_shared_cluster_keeps_tests_apart_and_ends(place):
    os.environ["WEIR_BUILD"] = place.path("build")
    os.environ["WEIR_CLUSTER_IDLE_S"] = "2"
    os.environ.pop("WEIR_CLUSTER", None)
    with cluster.shared() as one:
        with cluster.shared() as two:
            assert one.directory == two.directory
            assert len({one.prefix, two.prefix}) == len({one.redis_url, two.redis_url}) == 2
            one.redis.call("SET", "a", "1")
            assert two.redis.call("GET", "a") is None
            two.kafka.create(two.topic("events"))
            two.mariadb_server.query(f"CREATE DATABASE `{two.database}`")
        until(lambda: two.topic("events") not in one.kafka.topics(), "the topic is gone")
        assert two.database not in {name for (name,) in one.mariadb_server.query("SHOW DATABASES")}
        assert one.redis.call("GET", "a") == b"1"
        watch = os.path.join(TESTS, "support", "cluster_watch.py")
        left = subprocess.run([sys.executable, watch, "--now", cluster.home()], stdout=subprocess.PIPE, timeout=BUSY_S,
                              check=True).stdout
        assert b"still uses" in left
        directory = one.directory
        assert processes_in(directory)
    # The watch ends it when nobody uses it, also if whoever used it was killed.
    began = time.monotonic()
    until(lambda: not processes_in(place.path("build")), "the shared cluster has ended", 4 * BUSY_S)
    assert not os.path.exists(directory)
    print(f"  gone {time.monotonic() - began:.0f} s after its last use")


def test_servers_end_that_lose_their_directory(place):
    os.environ["WEIR_BUILD"] = place.path("build")
    servers = os.path.join(cluster.home(), "servers")
    subprocess.run([UP, servers], stdout=subprocess.DEVNULL, timeout=BUSY_S, check=True)
    watch = subprocess.Popen([sys.executable, os.path.join(TESTS, "support", "cluster_watch.py"), cluster.home()],
                             stdout=subprocess.PIPE)
    try:
        assert watch.stdout.readline().startswith(b"watching")
        assert {state for state, _ in status(servers).values()} == {"up"}
        shutil.rmtree(place.path("build"), ignore_errors=True)
        until(lambda: not processes_in(servers), "they have ended", BUSY_S)
        assert watch.wait(BUSY_S) == 0
    finally:
        watch.kill()
        watch.communicate()


if __name__ == "__main__":
    cases.main(globals())
