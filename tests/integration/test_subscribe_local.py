#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir subscribe` beside a `weir run`: it reads the log that another process holds, and changes nothing of it."""

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.blocks_in_redis import held
from support.decisions import Subscriber
from support.gateways import always, ask, program
from support.nginx import Nginx
from support.place import PATIENCE_S, SANITIZED, free_port, read, until
from support.redis import Redis
from support.stepped_clock import SteppedClock
from support.traffic import line, sliding, source, zone

START_MS = 1000 * int(time.time())
ROUNDS = 3 if SANITIZED else 8


def seeded():
    """A random generator whose seed is said."""
    seed = int(os.environ.get("WEIR_SEED") or time.time())
    print(f"WEIR_SEED={seed}")
    return random.Random(seed)


class Machine:
    """A `weir run` that may be killed, and subscribers beside it."""

    def __init__(self, place, zones, log=None, form=None, **sections):
        self.place, self.state, self.log = place, place.path("state"), log or place.write("log", "")
        self.config = place.config(zones, [source(self.log, **({"format": form} if form else {}))], **sections)
        self.weir = None

    def start(self, **popen):
        """Starts it, anew too."""
        self.weir = self.place.start("run", "--config", self.config, "--state", self.state,
                                     "--decisions", self.place.path("decisions.jsonl"), **popen)
        return self

    def subscribe(self, target, *options, config=True, **popen):
        """Starts a subscriber."""
        port = free_port()
        words = ["--config", self.config] if config else []
        weir = self.place.start("subscribe", *words, "--state", self.state, "--to", target,
                                "--http", f"127.0.0.1:{port}", *options, **popen)
        return Subscriber(weir, port, target)

    def say(self, text):
        """Appends to the log."""
        with open(self.log, "ab") as file:
            file.write(text.encode())

    def lift(self, key, zone_name):
        """An operator's lift, once the holder takes commands."""
        until(lambda: self.place.run("lift", key, "--zone", zone_name, "--state", self.state).code() == 0,
              "it is lifted", running=self.weir)

    def listed(self):
        """What `weir list` says: {(zone, key): until}; nothing while the state is being made."""
        done = self.place.run("list", "--state", self.state, "--json")
        lines = done.out().splitlines() if done.code() == 0 else []
        return {(one["zone"], one["key"][0]): one["until"] for one in map(json.loads, lines)}


def kill(run):
    """kill -9."""
    os.kill(run.pid, signal.SIGKILL)
    run.wait(PATIENCE_S)


def own_redis(place, *more):
    """A Redis of the test's own: its address, a client, and the server."""
    server = shutil.which("redis-server")
    if server is None:
        raise cases.Skipped("there is no redis-server")
    port = free_port()
    run = place.start("--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
                      place.directory, *more, program=server)
    client = Redis(port)

    def answers():
        try:
            return client.call("PING")
        except OSError:
            return None

    until(answers, "Redis answers")
    return f"redis://127.0.0.1:{port}", client, run


def in_redis(client):
    """{(zone, key): until} of what Redis holds."""
    return {(decision["zone"], decision["key"][0]): decision["until"] for decision, _ in held(client).values()}


def test_redis_holds_what_weir_list_says_whoever_is_killed(place):
    """Files of the log are succeeded and trimmed while it is read; either process is killed and started again."""
    rng, (url, client, _) = seeded(), own_redis(place)
    zones = [zone("long", [sliding(3, "1m")], id=1, match={"path": ["/long"]}, block_for="30d"),
             zone("short", [sliding(1, "1s")], id=2, match={"path": ["/short"]}, block_for="2s")]
    machine = Machine(place, zones, bus={"partitions": 3, "segment_size": "64KiB"}).start()
    subscriber = machine.subscribe(url).until_ready()
    users, lifted = [], 0
    for number in range(ROUNDS):
        fresh = [f"u{number}-{i}" for i in range(rng.randrange(1, 60))]
        users += fresh
        machine.say("".join(line(START_MS + i, user, path="/long") for user in fresh for i in range(4)))
        old = START_MS - 3600000 + 1000 * number
        machine.say("".join(line(old + i, f"s{number}-{i // 2}", path="/short") for i in range(2 * rng.randrange(2000))))
        who = rng.choice(("run", "subscribe", "both", "nobody"))
        if who in ("run", "both"):
            kill(machine.weir)
            machine.start()
        if who in ("subscribe", "both"):
            kill(subscriber.weir)
            subscriber = machine.subscribe(url, config=rng.random() < 0.5)
        if users and rng.random() < 0.5:
            until(lambda: ("long", users[0]) in machine.listed(), "the first is blocked", running=machine.weir)
            machine.lift(users.pop(0), "long")
            lifted += 1

        def equal():
            wanted = {("long", user) for user in users}
            return wanted == set(machine.listed()) == set(in_redis(client)) and machine.listed() == in_redis(client)

        until(equal, f"round {number}, killed: {who}", 2 * PATIENCE_S, subscriber.weir)
    print(f"{len(users)} blocks, {lifted} lifts")
    files = os.listdir(os.path.join(machine.state, "log", "decisions"))
    assert SANITIZED or len([name for name in files if name.endswith(".log")]) > 1, files
    # While the holder is away the list stays, and it is said by nobody that something is wrong.
    assert machine.weir.stop() == 0, machine.weir.said()
    before = in_redis(client)
    time.sleep(0.3)
    assert in_redis(client) == before and subscriber.is_ready()
    assert subscriber.value("errors_total") == 0
    assert subscriber.weir.stop() == 0, subscriber.weir.said()


def test_a_target_with_a_password_stays_out_of_the_command_line(place):
    url, client, _ = own_redis(place)
    client.call("ACL", "SETUSER", "weir", "on", ">hush-hush", "~*", "&*", "+@all")
    secret = url.replace("redis://", "redis://weir:hush-hush@")
    config = place.config([zone("site", [sliding(3, "1m")], id=1, block_for="1h")], [], name="redis.json",
                          redis={"url": {"file": place.write("in-config", secret + "\r\n")}})
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1, block_for="1h")]).start()
    machine.say("".join(line(START_MS + i, "ann") for i in range(4)))
    until(lambda: machine.listed(), "ann is blocked", running=machine.weir)
    with_file = ["--to-file", place.write("target", secret + "\nnot this\n")]
    for words, config_words in ((with_file, []), ([], ["--config", config])):
        client.call("FLUSHALL")
        done = place.good("subscribe", *config_words, "--state", machine.state, *words, "--once")
        assert set(in_redis(client)) == {("site", "ann")} and "warning" not in done.said(), done.said()
    done = place.good("subscribe", "--state", machine.state, "--to", secret, "--once")
    assert "can see the secret" in done.said() and "--to-file FILE" in done.said(), done.said()
    assert "hush-hush" not in done.said()
    done = place.run("subscribe", "--state", machine.state, "--to", url, *with_file)
    assert done.code() == 2 and "--to and --to-file" in done.said(), done.said()
    done = place.run("subscribe", "--state", machine.state, "--to-file", place.path("nothing"))
    assert done.code() == 2 and f"cannot open {place.path('nothing')}" in done.said(), done.said()
    done = place.run("subscribe", "--state", machine.state, "--to-file", place.write("empty", "\n"))
    assert done.code() == 2 and "empty: its first line must be a target" in done.said(), done.said()


def certificate(place, name, subject):
    """A certificate that signs itself: its path and its key's."""
    paths = place.path(f"{name}.crt"), place.path(f"{name}.key")
    subprocess.run([program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                    "-addext", f"subjectAltName={subject}", "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True)
    return paths


def test_redis_by_tls(place):
    here, other = certificate(place, "here", "IP:127.0.0.1"), certificate(place, "other", "IP:127.0.0.2")
    tls = free_port()
    words = ["--tls-port", tls, "--tls-auth-clients", "no"]
    url, client, server = own_redis(place, *words, "--tls-cert-file", here[0], "--tls-key-file", here[1])
    client.call("ACL", "SETUSER", "weir", "on", ">hush", "~*", "&*", "+@all")
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1, block_for="1h")]).start()
    users = [f"u{i}" for i in range(3000)]
    machine.say("".join(line(START_MS + i, user) for user in users for i in range(4)))
    until(lambda: len(machine.listed()) == len(users), "all are blocked", 2 * PATIENCE_S, machine.weir)
    secure = f"rediss://weir:hush@127.0.0.1:{tls}/0?ca="
    subscriber = machine.subscribe(secure + here[0]).until_ready()
    assert subscriber.page().value("weir_certificate_file_expires_timestamp_seconds", file=here[0]) > time.time()
    assert set(in_redis(client)) == {("site", user) for user in users}
    machine.say("".join(line(START_MS + i, "ann") for i in range(4)))
    subscriber.until(lambda: ("site", "ann") in in_redis(client), "ann is added")
    assert "hush" not in subscriber.weir.said()
    # A server that takes nothing holds up no end of it.
    os.kill(server.pid, signal.SIGSTOP)
    started = time.monotonic()
    assert subscriber.weir.stop(2 * PATIENCE_S) == 0 and time.monotonic() - started < PATIENCE_S, subscriber.weir.said()
    os.kill(server.pid, signal.SIGCONT)
    # Nobody else is taken for the server: by whom it is signed, whose it is, and whether TLS is spoken at all. A file is named.
    for address, why in ((secure + other[0], "self-signed"), (secure[:-4], "self-signed"),
                         (secure.replace(f":{tls}", ":" + url.rpartition(":")[2]) + here[0], "TLS"),
                         (secure + place.path("nowhere"), "No such file"),
                         (f"{secure}{here[0]}&certificate={here[0]}&key={other[1]}",
                          f"TLS: {other[1]}: key values mismatch"),
                         (f"{secure}{here[0]}&certificate={here[1]}&key={here[1]}", f"TLS: {here[1]}: no ")):
        port = free_port()
        refused = place.start("subscribe", "--state", machine.state, "--to", address, "--http", f"127.0.0.1:{port}")
        until(lambda refused=refused: "TLS: " in refused.said(), "it is refused", running=refused)
        assert why in refused.said() and "hush" not in refused.said(), refused.said()
        assert refused.stop() == 0
    foreign_port = free_port()
    place.start("--port", 0, "--tls-port", foreign_port, "--bind", "127.0.0.1", "--tls-auth-clients", "no", "--save", "",
                "--tls-cert-file", other[0], "--tls-key-file", other[1], "--dir", place.directory,
                program=shutil.which("redis-server"))
    refused = machine.subscribe(f"rediss://127.0.0.1:{foreign_port}?ca={other[0]}")
    until(lambda: "mismatch" in refused.weir.said(), "a certificate of another host", running=refused.weir)
    assert refused.weir.stop() == 0 and machine.weir.stop() == 0


def test_nginx_is_told_by_a_process_of_its_own(place):
    nginx = Nginx(place)
    zones = [zone("site", [sliding(5, "1m")], key=["ip"], match={"status": ["2xx"]}, id=1, block_for="1h")]
    machine = Machine(place, zones, log=nginx.log, form="combined")
    # It may be started first: it waits for a log to be there, and says so.
    subscriber = machine.subscribe(f"nginx-map:{nginx.map}", "--interval", "100ms", "--reload", nginx.reload)
    until(lambda: "waiting for weir run" in subscriber.weir.said(), "it waits", running=subscriber.weir)
    assert not subscriber.is_ready()
    machine.start()
    subscriber.until_ready()
    for _ in range(8):
        ask(nginx.port)
    subscriber.until(lambda: always(nginx.port, 429) and nginx.settled(), "the client stays out")
    assert ask(nginx.port, "127.0.0.2")[0] == 200
    kill(machine.weir)
    assert always(nginx.port, 429)
    machine.start()
    until(lambda: ("site", "127.0.0.1") in machine.listed(), "it is blocked still", running=machine.weir)
    machine.lift("127.0.0.1", "site")
    subscriber.until(lambda: (ask(nginx.port) or (0,))[0] == 200, "the client is let in")
    assert machine.weir.stop() == 0 and subscriber.weir.stop() == 0
    nginx.run.stop()


def test_a_zone_that_the_state_does_not_know_is_told(place):
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1)]).start()
    until(lambda: "following 1 source" in machine.weir.said(), "it runs", running=machine.weir)
    words = ("--state", machine.state, "--zone", "sit")
    for command in (("subscribe", "--to", f"file:{place.path('list')}", "--once"), ("list",), ("state",)):
        refused = place.run(*command, *words)
        assert refused.code() == 2, (command, refused.said())
        assert 'there is no zone "sit" (did you mean "site"?)' in refused.said(), (command, refused.said())
    assert not os.path.exists(place.path("list"))
    # A list that is kept waits for a policy that has the zone.
    subscriber = machine.subscribe(f"file:{place.path('list')}", "--zone", "sit", config=False).until_ready()
    assert '(did you mean "site"?)' in subscriber.weir.said()
    assert subscriber.weir.stop() == 0 and machine.weir.stop() == 0


def test_it_changes_nothing_of_the_log(place):
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1, block_for="1h")]).start()
    machine.say("".join(line(START_MS + i, "ann") for i in range(6)))
    until(lambda: ("site", "ann") in machine.listed(), "ann is blocked", running=machine.weir)
    assert machine.weir.stop() == 0

    def everything():
        return {path: (os.stat(path).st_mtime_ns, read(path)) for folder, _, names in os.walk(machine.state)
                for path in (os.path.join(folder, name) for name in names)}

    before, here = everything(), place.path("here.jsonl")
    place.good("subscribe", "--state", machine.state, "--to", f"file:{here}", "--once")
    assert [json.loads(one)["key"] for one in read(here).splitlines()] == [["ann"]]
    subscriber = machine.subscribe(f"file:{here}").until_ready()
    assert everything() == before
    # The holder starts beside it.
    machine.start()
    machine.say("".join(line(START_MS + i, "bob") for i in range(6)))
    subscriber.until(lambda: b'"bob"' in read(here), "bob is on the list")
    # A log that is another one now is not read as if it were the same; the list stays.
    assert machine.weir.stop() == 0
    shutil.rmtree(machine.state)
    place.write("log", "")
    machine.start()
    assert subscriber.weir.wait(PATIENCE_S) is None or subscriber.weir.code() == 1
    assert "recreated" in subscriber.weir.said() and b'"bob"' in read(here), subscriber.weir.said()


def test_a_clock_that_was_ahead_for_a_moment_lets_nobody_in_for_longer(place):
    """The blocks that ended too soon are back, exactly; what was lifted meanwhile is not."""
    clock, here = SteppedClock(place), place.path("here.jsonl")
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1, block_for="1h")], bus={"partitions": 3}).start()
    machine.say("".join(line(START_MS + i, user) for user in ("ann", "bob", "joe") for i in range(6)))
    until(lambda: len(machine.listed()) == 3, "they are blocked", running=machine.weir)
    subscriber = machine.subscribe(f"file:{here}", env=clock.environment).until_ready()

    def lines():
        return sorted(read(here).splitlines())

    before = lines()
    assert len(before) == 3, before
    clock.set(7200)
    subscriber.until(lambda: not lines(), "they are over")
    machine.lift("joe", "site")
    machine.say("".join(line(START_MS + i, "sue") for i in range(6)))
    until(lambda: ("site", "sue") in machine.listed() and ("site", "joe") not in machine.listed(), "others are blocked",
          running=machine.weir)
    subscriber.until(lambda: subscriber.value("decisions_total", result="over") == 2, "which is read")
    clock.set(0)
    subscriber.until(lambda: len(lines()) == 3, "they are not")
    assert {one for one in before if b'"joe"' not in one} == {one for one in lines() if b'"sue"' not in one}, lines()
    assert subscriber.weir.stop() == 0, subscriber.weir.said()
    said = subscriber.weir.said()
    assert said.count("was set forward by 7200 s") == said.count("was set back by 7200 s") == 1, said


def test_a_log_keeps_its_blocks_where_its_clock_was_ahead_for_a_moment(place):
    """What was over by that clock is not trimmed at once, nor later what is in force by the right one."""
    zones = [zone("long", [sliding(3, "1m")], id=1, match={"path": ["/long"]}, block_for="1h"),
             zone("short", [sliding(1, "1s")], id=2, match={"path": ["/short"]}, block_for="2s")]
    clock, said = SteppedClock(place), 0
    machine = Machine(place, zones, bus={"partitions": 1, "segment_size": "64KiB"}).start(env=clock.environment)
    machine.say("".join(line(START_MS + i, "ann", path="/long") for i in range(4)))
    until(lambda: ("long", "ann") in machine.listed(), "ann is blocked", running=machine.weir)

    def first_segment():
        """Blocks that are over soon fill the log: the name of its first file afterwards."""
        nonlocal said
        said += 600
        machine.say("".join(line(START_MS - 3600000 + i, f"s{said}-{i // 2}", path="/short") for i in range(2 * 600)))
        until(lambda: read(place.path("decisions.jsonl")).count(b'"short"') == said, "they are decided", running=machine.weir)
        time.sleep(1.5)  # within which it is trimmed
        folder = os.path.join(machine.state, "log", "decisions")
        return min(name for name in os.listdir(folder) if name.endswith(".log"))

    first = first_segment()
    clock.set(7200)
    assert first_segment() == first, "it is kept"
    clock.set(0)
    assert first_segment() == first and ("long", "ann") in machine.listed(), "it is kept still"
    machine.lift("ann", "long")
    assert machine.weir.stop() == 0, machine.weir.said()


def test_what_cannot_be_meant_is_refused(place):
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1)], bus={"partitions": 3})
    cluster = place.config([zone("site", [sliding(3, "1m")], id=1)], [source(machine.log)], name="cluster.json",
                           bus={"type": "kafka", "brokers": "127.0.0.1:1"})
    done = place.run("subscribe", "--config", cluster, "--state", machine.state, "--to", "file:/x")
    assert done.code() == 2 and "--state is for one machine" in done.said(), done.said()
    done = place.run("subscribe", "--state", machine.state)
    assert done.code() == 2 and "missing --to" in done.said(), done.said()
    os.makedirs(os.path.join(machine.state, "log"))
    place.write("state/log/partitions", "5\n")
    done = place.run("subscribe", "--config", machine.config, "--state", machine.state, "--to", "file:/x", "--once")
    assert done.code() == 1 and "5 partitions" in done.said(), done.said()
    place.write("state/log/partitions", "many\n")
    done = place.run("subscribe", "--state", machine.state, "--to", "file:/x", "--once")
    assert done.code() == 2 and "damaged" in done.said(), done.said()


def test_only_a_file_is_replaced(place):
    """A device, a pipe or standard output stays what it is, and a link leads to the new list."""
    machine = Machine(place, [zone("site", [sliding(3, "1m")], id=1, block_for="1h")])
    machine.start()
    os.mkfifo(place.path("pipe"))
    os.symlink("/dev/full", place.path("full"))
    for target in ("file:/dev/stdout", "nginx-map:" + place.path("pipe"), "nginx-geo:" + place.path("full")):
        done = place.run("subscribe", "--state", machine.state, "--to", target, "--once")
        assert done.code() == 2 and "only a regular file can be replaced; `weir list` prints" in done.said(), done.said()
        config = place.config([zone("site", [sliding(3, "1m")], id=1)], [source(machine.log)], name="to.json",
                              gateways=[target])
        done = place.run("run", "--config", config, "--state", place.path("other"))
        assert done.code() == 2 and "only a regular file can be replaced" in done.said(), done.said()
    assert stat.S_ISFIFO(os.lstat(place.path("pipe")).st_mode) and os.path.islink(place.path("full"))
    place.write("list", "")
    os.symlink("list", place.path("link"))
    machine.say("".join(line(START_MS + i, "192.0.2.1") for i in range(4)))
    until(lambda: place.run("subscribe", "--state", machine.state, "--to", "file:" + place.path("link"),
                            "--once").code() == 0 and b"192.0.2.1" in read(place.path("list")), "the list is there")
    assert os.path.islink(place.path("link"))


if __name__ == "__main__":
    cases.main(globals())
