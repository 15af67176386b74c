# SPDX-License-Identifier: Apache-2.0
"""The real servers of deploy/cluster for tests: one cluster that many tests share, or one of a test's own.

    with cluster.shared() as c:               # started by the first that wants it
    with cluster.own("--brokers", "3") as c:  # for tests that stop, kill or fill servers

A shared cluster lies in the build directory. Tests use it side by side: each
gets a prefix of its own for topics and groups, a database and a Redis
database, and what it made is removed when it leaves. When nobody has used it
for a while, or ctest is through (cluster_watch.py), it is taken down.
WEIR_CLUSTER names the directory of one that is up and stays up.
"""

import contextlib
import copy
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile

from support.cases import Skipped
from support.kafka import Kafka
from support.mariadb import MariaDB
from support.place import ROOT
from support.proxy import Proxy
from support.redis import Redis
from support.small_disk import SmallDisk

_SCRIPTS = os.path.join(ROOT, "deploy", "cluster")
_WATCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster_watch.py")
_UP_S = 1500  # of which nearly all is the first fetch of packages
_PART_S = 300
_CANNOT = 3
_REDIS_DATABASES = 64


def _script(name, *words, patience_s=_PART_S):
    """Runs one of deploy/cluster's scripts: its output."""
    command = [os.path.join(_SCRIPTS, name), *map(str, words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=patience_s, check=False)
    said = done.stderr.decode(errors="replace")
    if done.returncode == _CANNOT:
        raise Skipped(f"no cluster on this machine: {said.strip()[-1000:]}")
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} exited with status {done.returncode}: {said[-4000:]}")
    return done.stdout.decode()


class Cluster:
    """One test's view of a cluster."""

    def __init__(self, directory, redis_database=0, prefix=None, database=None):
        """prefix, database: of its topics and its tables, where a name of this test's own would not do."""
        self.directory = directory
        with open(os.path.join(directory, "weir.json"), encoding="utf-8") as file:
            self._sections = json.load(file)
        with open(os.path.join(directory, "cluster.json"), encoding="utf-8") as file:
            self._settings = json.load(file)
        name = secrets.token_hex(4)
        self.prefix, self.database = prefix or f"t{name}", database or f"weir_t{name}"
        self.redis_database = redis_database
        bus, store = self._sections["bus"], self._sections["store"]
        self.brokers, self.kafka_properties = bus["brokers"], bus["kafka"]
        self.kafka = Kafka(self.brokers, self.kafka_properties)
        tls = {"ssl_ca": store["tls_ca"]} if "tls_ca" in store else {}
        self.mariadb_port = store["port"]
        self.mariadb_server = MariaDB(store["user"], store["password"], host=store["host"], port=store["port"], **tls)
        self.mariadb = MariaDB(store["user"], store["password"], self.database, host=store["host"],
                               port=store["port"], **tls)
        self.mariadb_socket = self._settings["mariadb"]["socket"]
        self.mariadb_root = MariaDB("root", unix_socket=self.mariadb_socket)
        self.redis_port = self._settings["redis"]["port"]
        self.redis_url = f"redis://127.0.0.1:{self.redis_port}" + (f"/{redis_database}" if redis_database else "")
        self.redis = Redis(self.redis_port, redis_database)
        self.disks = {}  # {server: its SmallDisk}

    def topic(self, name):
        """The full name of one of weir's topics: events, judged, decisions, decisions.shadow, policy, deadletter."""
        return f"{self.prefix}.{name}"

    def sections(self, **more):
        """weir's configuration for this test: bus, store and redis, with other sections merged in.

        partitions=N is short for bus={"partitions": N}."""
        whole = copy.deepcopy(self._sections)
        whole["bus"]["prefix"] = self.prefix
        whole["store"]["database"] = self.database
        whole["redis"]["url"] = self.redis_url
        if "partitions" in more:
            whole["bus"]["partitions"] = more.pop("partitions")
        for name, section in more.items():
            if isinstance(section, dict) and isinstance(whole.get(name), dict):
                whole[name].update(section)
            else:
                whole[name] = section
        return whole

    def ends(self, topic="events"):
        """{partition: next offset} of one of weir's topics."""
        return {number: last for number, (_, last) in self.kafka.extents(self.topic(topic)).items()}

    def stored(self):
        """{partition: next offset} of the limiters' checkpoints."""
        rows = self.mariadb.query("SELECT partition_id, next_offset FROM partition_state WHERE role = 1")
        return {int(number): int(offset) for number, offset in rows}

    def forget(self):
        """Throws away what limiters, who have left, have stored: the next begins with the log's first record."""
        self.mariadb.query("DELETE FROM segment_state")
        self.mariadb.query("DELETE FROM partition_state WHERE role = 1")

    def part(self, action, server):
        """deploy/cluster/part: stop, kill, start, pause or resume kafka, broker-N, mariadb or redis."""
        return _script("part", self.directory, action, server)

    def show_certificate(self, days):
        """A certificate of the servers that ends in so many days; a server shows it from its next start on. Of --tls-sasl."""
        at = lambda name: os.path.join(self.directory, "tls", name)
        subprocess.run(["openssl", "x509", "-req", "-days", str(days), "-in", at("request.pem"), "-CA", at("ca.pem"), "-CAkey", at("ca-key.pem"),
                        "-set_serial", str(secrets.randbits(60)), "-extfile", at("extensions"), "-out", at("cert.pem")],
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=_PART_S)
        whole = b""
        for name in ("key.pem", "cert.pem", "ca.pem"):
            with open(at(name), "rb") as file:
                whole += file.read()
        with open(at("chain.pem"), "wb") as file:
            file.write(whole)

    def set_sasl_password(self, password):
        """Changes the password that the brokers know of weir's user, as their administrator; what is connected goes on. Of --tls-sasl."""
        Kafka(self._internal()).set_password(self._settings["sasl"]["user"], password)

    def set_quota(self, client, **rates):
        """How many bytes a second the brokers let clients of this client.id send (producer_byte_rate) or fetch
        (consumer_byte_rate); None: as many as they like."""
        with open(f"/proc/{self.pid_of('broker-1')}/cmdline", "rb") as file:
            java = file.read().decode().split("\0")
        given = {name: rate for name, rate in rates.items() if rate is not None}
        change = ["--add-config", ",".join(f"{name}={rate}" for name, rate in given.items())] if given else []
        change += ["--delete-config", ",".join(rates.keys() - given.keys())] if len(given) < len(rates) else []
        subprocess.run([java[0], "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", java[java.index("-cp") + 1], "kafka.admin.ConfigCommand",
                        "--bootstrap-server", self._internal(), "--alter", "--entity-type", "clients", "--entity-name", client, *change],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=_PART_S)

    def allow_only(self, topic, *operations):
        """Takes all rights on a topic from weir's user but these. Of --tls-sasl; it holds for what is connected, too."""
        Kafka(self._internal()).allow_only(topic, self._settings["sasl"]["user"], operations)

    def allow_all(self, topic):
        """Gives them back."""
        Kafka(self._internal()).allow_all(topic)

    def _internal(self):
        """Where an administrator reaches the brokers, without TLS and SASL."""
        return f"127.0.0.1:{self._settings['brokers'][0]['internal']}"

    def log_of(self, server):
        """The end of a server's log."""
        with open(os.path.join(self.directory, server, "server.log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-8000:]

    def pid_of(self, server):
        """A server's process id."""
        with open(os.path.join(self.directory, server, "pid"), encoding="ascii") as file:
            return int(file.read().split()[0])

    @contextlib.contextmanager
    def proxied_kafka(self):
        """A list of Proxy, one for each broker, and the addresses to give to weir; needs own("--proxy-port", "0")."""
        with contextlib.ExitStack() as stack:
            proxies = [stack.enter_context(Proxy(broker["behind"], broker["proxy"]))
                       for broker in self._settings["brokers"]]
            yield proxies, ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies)

    def proxied_mariadb(self):
        """A Proxy before MariaDB: give its port to weir as store.port."""
        return Proxy(self.mariadb_port)

    def proxied_redis(self):
        """A Proxy before Redis."""
        return Proxy(self.redis_port)

    def clean(self):
        """Removes what the test left in the servers."""
        self.kafka.delete(name for name in self.kafka.topics() if name.startswith(f"{self.prefix}."))
        self.mariadb_server.query(f"DROP DATABASE IF EXISTS `{self.database}`")
        self.redis.call("FLUSHDB")
        self.redis.close()


# ---- one of a test's own ----

@contextlib.contextmanager
def own(*options, parent=None, disks=None, **names):
    """A cluster for this test alone, which it may break; options of deploy/cluster/up. parent: where its files go.

    names: prefix and database, Cluster's.
    disks: {server: bytes} of those whose files get a small file system, Cluster.disks; needs enter_namespace()."""
    directory = tempfile.mkdtemp(prefix="weir-own-", dir=parent)
    try:
        with contextlib.ExitStack() as stack:
            mounted = {server: stack.enter_context(SmallDisk(os.path.join(directory, server), size))
                       for server, size in (disks or {}).items()}
            stack.callback(_end_all, directory)
            _script("up", *options, directory, patience_s=_UP_S)
            one = Cluster(directory, **names)
            one.disks = mounted
            yield one
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _end_all(directory):
    """Ends every server of a directory that has some."""
    if os.path.exists(os.path.join(directory, "cluster.json")):
        _script("part", directory, "kill", "all")


# ---- the one for all ----

def home():
    """The directory of the shared cluster: locks, and `servers`."""
    build = os.environ.get("WEIR_BUILD") or os.path.join(ROOT, "build", "release")
    return os.path.join(build, "cluster")


def open_lock(name):
    """One of the shared cluster's lock files."""
    os.makedirs(home(), exist_ok=True)
    return open(os.path.join(home(), name), "a", encoding="ascii")  # pylint: disable=consider-using-with


def try_lock(file):
    """Locks a file for oneself if nobody has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def shared():
    """The cluster that tests share; it must not be broken: for that there is own()."""
    with contextlib.ExitStack() as stack:
        given = os.environ.get("WEIR_CLUSTER")
        if given:
            directory = given
        else:
            directory = os.path.join(home(), "servers")
            with open_lock("changes") as changes:
                fcntl.flock(changes, fcntl.LOCK_EX)
                _start_watch()
                _script("up", directory, patience_s=_UP_S)
                # Held until this test ends, however it ends: the watch sees by it who is here.
                fcntl.flock(stack.enter_context(open_lock("users")), fcntl.LOCK_SH)
        one = Cluster(directory, _take_redis_database(stack))
        one.redis.call("FLUSHDB")
        try:
            yield one
        finally:
            one.clean()


_idle = []  # numbers of Redis databases that are this process' own, and of no test of it now
_locks = []  # theirs: held until this process ends, as a weir that a test leaves running may write there a while longer


def _take_redis_database(stack):
    """The number of a Redis database that no other test has. What an ended one's programs wrote late may be there."""
    number = _idle.pop() if _idle else _lock_redis_database()
    stack.callback(_idle.append, number)
    return number


def _lock_redis_database():
    for number in range(1, _REDIS_DATABASES):
        lock = open_lock(f"redis-{number}")
        if try_lock(lock):
            _locks.append(lock)
            return number
        lock.close()
    raise AssertionError("all Redis databases are taken")


def _start_watch():
    """Lets a process of its own take the cluster down when it is no longer used; one is enough, others leave."""
    with open(os.path.join(home(), "watch.log"), "ab") as log:
        # It outlives this test on purpose. pylint: disable-next=consider-using-with
        subprocess.Popen([sys.executable, _WATCH, home()], stdin=subprocess.DEVNULL, stdout=log,
                         stderr=subprocess.STDOUT, start_new_session=True)
