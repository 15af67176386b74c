#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real Redis clients ask for checks: redis-py, valkey-py, redis-cli and redis-benchmark, plain and as of a cluster; of the
surface over a judge of the tests' own, and of `weir run`."""

import itertools
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support import venv

venv.enter("checks")

import redis.backoff
import redis.retry
import valkey.backoff
import valkey.retry
from support import cases
from support.checks import SERVERS, model, served
from support.place import PATIENCE_S, SANITIZED, until

from parts import tls
from parts.process import together
from parts.programs import find

USER = "user=gate:pass word"
REQUESTS = 2_000 if SANITIZED else 50_000
LIBRARIES = (redis, valkey)
NUMBERS = itertools.count()  # a key of its own for each use


def plain_client(library, port, **more):
    """A client of one server."""
    plain = library.Redis if library is redis else library.Valkey
    return plain(host="127.0.0.1", port=port, socket_timeout=PATIENCE_S, **more)


def cluster_client(library, port, **more):
    """A client that asks where keys are."""
    of_cluster = library.RedisCluster if library is redis else library.ValkeyCluster
    return of_cluster(host="127.0.0.1", port=port, socket_timeout=PATIENCE_S, **more)


def ask(client, key, zone="site", *more):  # pylint: disable=keyword-arg-before-vararg
    """Limited, limit, remaining and retry of a check."""
    return client.execute_command("WEIR.CHECK", key, zone, *more)[:4]


def use(client, library):
    """What every client does: single calls, a pipeline with and without a transaction, an error."""
    key = f"{library.__name__}{next(NUMBERS)}"
    assert ask(client, key) == [0, 10, 9, -1]
    assert client.execute_command("CL.THROTTLE", key, 15, 30, 60) == [0, 16, 15, -1, 2]
    pipe = client.pipeline()
    for _ in range(12):
        pipe.execute_command("WEIR.ALLOW", key, "site")
    assert pipe.execute() == [1] * 9 + [0] * 3
    assert ask(client, key)[:3] == [1, 10, 0]
    try:
        ask(client, key, "nozone")
    except library.exceptions.ResponseError as error:
        assert "there is no zone" in str(error), error
    else:
        raise AssertionError("a zone that is not there was asked for")


def test_python_clients(place):
    """One server: both protocols, with and without transactions around a pipeline."""
    for kind in SERVERS:
        with served(place, kind) as port:
            for library in LIBRARIES:
                for protocol in (2, 3):
                    client = plain_client(library, port, protocol=protocol, client_name="gate")
                    use(client, library)
                    assert client.ping() and client.client_getname() in ("gate", b"gate")
                    assert client.client_info()["name"] == "gate" and client.info()["role"] == "master"
                    pipe = client.pipeline(transaction=False)
                    pipe.execute_command("WEIR.ALLOW", f"{protocol}", "site")
                    pipe.ping()
                    assert pipe.execute() == [1, True]
                    client.close()


def test_python_cluster_clients(place):
    """As of a cluster, of which this server is all."""
    for kind in SERVERS:
        with served(place, kind) as port:
            for library in LIBRARIES:
                client = cluster_client(library, port)
                use(client, library)
                assert [ask(client, f"{library.__name__}-{at}")[2] for at in range(100)] == [9] * 100
                client.close()


def test_users_and_tls(place):
    """Names, passwords and certificates as the clients take them."""
    directory = place.path("tls")
    together([tls.making(directory)])
    paths = tls.files(directory)
    with model(place, USER, f"certificate={paths['cert']}", f"key={paths['key']}") as port:
        secure = {"ssl": True, "ssl_ca_certs": paths["ca"]}
        for library in LIBRARIES:
            for protocol in (2, 3):
                client = plain_client(library, port, username="gate", password="pass word", protocol=protocol, **secure)
                use(client, library)
                client.close()
            try:
                once = library.retry.Retry(library.backoff.NoBackoff(), 0)
                plain_client(library, port, username="gate", password="other", retry=once, **secure).ping()
            except library.exceptions.AuthenticationError:
                pass
            else:
                raise AssertionError("a wrong password was taken")
            client = cluster_client(library, port, username="gate", password="pass word", **secure)
            use(client, library)
            client.close()
        said = run("redis-cli", port, "--tls", "--cacert", paths["ca"], "--user", "gate", "--pass", "pass word", "--no-auth-warning",
                   "WEIR.ALLOW", "a", "site")
        assert said == "1\n", said


def run(program, port, *words, given=""):
    """What it printed."""
    done = subprocess.run([find(program), "-p", str(port), *words], input=given, capture_output=True, text=True,
                          timeout=PATIENCE_S * 4, check=False)
    assert done.returncode == 0, (words, done.stdout[-500:], done.stderr[-500:])
    return done.stdout


def test_redis_cli(place):
    """Single calls, a session from standard input, both protocols, and what it asks of a cluster."""
    with model(place) as port:
        assert run("redis-cli", port, "WEIR.CHECK", "a", "site").splitlines()[:4] == ["0", "10", "9", "-1"]
        assert run("redis-cli", port, "-3", "-c", "WEIR.CHECK", "a", "site").splitlines()[:3] == ["0", "10", "8"]
        said = run("redis-cli", port, given="PING\nWEIR.ALLOW a site\nMULTI\nWEIR.ALLOW a site\nEXEC\n")
        assert said == "PONG\n1\nOK\nQUEUED\n1\n", said
        said = run("redis-cli", port, "--cluster", "check", f"127.0.0.1:{port}")
        assert "All 16384 slots covered" in said, said
        assert "max_burst" in run("redis-cli", port, "COMMAND", "DOCS", "cl.throttle")


def rows_of_stat(port, count):
    """Rows of `redis-cli --stat`, each by its columns; it would never end by itself."""
    # pylint: disable-next=consider-using-with
    asking = subprocess.Popen([find("redis-cli"), "-p", str(port), "-i", "0.05", "--stat"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        lines = [asking.stdout.readline().split() for _ in range(2 + count)]
    finally:
        asking.kill()
        asking.wait()
        asking.stdout.close()
    assert lines[1] == ["keys", "mem", "clients", "blocked", "requests", "connections"], lines
    return lines[2:]


def test_monitors(place):
    """What redis-cli shows of a server is there, and true of all threads together; what looks for keys ends, as there are none."""
    with served(place, "weir run") as port:
        clients = [plain_client(redis, port) for _ in range(16)]  # with both of its threads
        for client in clients:
            client.ping()
        first, *_, last = rows_of_stat(port, 4)
        for row in (first, last):
            keys, memory, connected, blocked, requests = row[:5]
            assert (keys, blocked) == ("0", "0") and memory[-1] in "KMG" and float(memory[:-1]) > 0, row
            assert int(connected) == 17 and int(requests) > 17 and int(row[-1]) >= 17, row
        assert int(last[4]) > int(first[4]) and row[5].startswith("(+"), (first, last)
        until(lambda: clients[0].info("clients")["connected_clients"] == 16, "redis-cli is gone")
        seen = {client.info("clients")["connected_clients"] for client in clients}
        assert len(seen) == 1, f"one number, whichever thread is asked: {seen}"
        assert {client.config_get("maxclients")["maxclients"] for client in clients} == {str(clients[0].info()["maxclients"])}
        for words, wanted in ((["--bigkeys"], "Sampled 0 keys"), (["--memkeys"], "Sampled 0 keys"), (["--hotkeys"], "summary"),
                              (["--scan"], ""), (["--latency", "-i", "0.2"], "0 "), (["INFO", "memory"], "used_memory_human:")):
            assert wanted in run("redis-cli", port, *words), words
        done = subprocess.run([find("redis-cli"), "-p", str(port), "--rdb", place.path("x.rdb")], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        assert done.returncode != 0 and "unknown command 'SYNC'" in done.stdout + done.stderr, done
        done = subprocess.run([find("redis-benchmark"), "-p", str(port), "-n", "100", "PING"], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=True)
        assert "CONFIG" not in done.stdout + done.stderr and 'host configuration "save"' in done.stdout, done
        for client in clients:  # as Datadog's check asks, and the exporter for Prometheus
            assert client.slowlog_get(int(client.config_get("slowlog-max-len")["slowlog-max-len"])) == [] and client.slowlog_len() == 0
            assert client.info("all")["total_commands_processed"] > 0 and client.latency_latest() == [] and list(client.scan_iter()) == []
            client.close()


def test_redis_benchmark(place):
    """Many connections and pipelines: every request is answered, and as many pass as the limit says."""
    with model(place) as port:
        benchmark(port)


def benchmark(port):
    """Of one server."""
    for words in (["-t", "ping"], ["-P", "16", "WEIR.CHECK", "192.0.2.1", "site"],
                  ["-P", "64", "-r", "100000", "CL.THROTTLE", "user:__rand_int__", "15", "30", "60"]):
        said = run("redis-benchmark", port, "-q", "-e", "-n", str(REQUESTS), *words)
        assert "requests per second" in said and "rror" not in said, said
    client = plain_client(redis, port)
    assert ask(client, "192.0.2.1")[:3] == [1, 10, 0]
    client.close()


def test_exact_among_many_clients(place):
    """Eight clients on one key: as many pass as the limit says."""
    for kind in SERVERS:
        with served(place, kind) as port:
            passed = []

            def caller(library, port=port, passed=passed):
                client = plain_client(library, port)
                passed.append(sum(client.execute_command("WEIR.ALLOW", "one", "site") for _ in range(10)))
                client.close()
            callers = [threading.Thread(target=caller, args=[library]) for library in LIBRARIES * 4]
            for thread in callers:
                thread.start()
            for thread in callers:
                thread.join()
            assert len(passed) == 8 and sum(passed) == 10, (kind, passed)


if __name__ == "__main__":
    cases.main(globals())
