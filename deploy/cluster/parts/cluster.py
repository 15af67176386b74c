# SPDX-License-Identifier: Apache-2.0
"""A cluster in a directory: what it is made of, its settings, and the files that others read.

DIR/cluster.json   what `up` decided once: ports, passwords, the number of brokers
DIR/weir.json      the sections bus, store and redis of weir's configuration
DIR/env            the same as shell assignments
DIR/broker-1, …    each server's files, its log and its pid
"""

import base64
import fcntl
import json
import os
import secrets
import shlex
import shutil
import uuid

from parts import kafka, tls
from parts.mariadb import MariaDB
from parts.ports import free_ports
from parts.process import together
from parts.redis import Redis
from parts.server import LOCAL
from parts.words import Failed

_SETTINGS = "cluster.json"


class Cluster:
    """The servers of one directory."""

    def __init__(self, directory, settings):
        self.directory, self.settings = directory, settings
        self.brokers = [kafka.Broker(self, number + 1) for number in range(len(settings["brokers"]))]
        self.mariadb, self.redis = MariaDB(self), Redis(self)

    @property
    def servers(self):
        """All of them."""
        return [*self.brokers, self.mariadb, self.redis]

    def named(self, name):
        """The servers of a name: kafka (all brokers), broker-N, mariadb, redis, all."""
        groups = {"kafka": self.brokers, "all": self.servers, **{one.name: [one] for one in self.servers}}
        if name not in groups:
            raise Failed(f"there is no {name} in this cluster; there are {', '.join(sorted(groups))}")
        return groups[name]

    def tls_files(self):
        """The PEM files by their use; none without --tls-sasl."""
        return tls.files(os.path.join(self.directory, "tls")) if self.settings["tls"] else {}

    def bring_up(self):
        """Starts what is down. When it fails, or is stopped, what it started is ended again."""
        try:
            if self.settings["tls"]:
                together([tls.making(os.path.join(self.directory, "tls"))])
            together(server.starting() for server in self.servers)
            self._describe()
        except BaseException:
            together(server.ending(at_once=True) for server in self.servers if server.started_here)
            raise

    def take_down(self, keep=True):
        """Ends all; removes the directory if `up` had made it, unless it is to be kept."""
        disposable = self.settings["temporary"] and not keep
        together(server.ending(at_once=disposable) for server in self.servers)
        socket_home = os.path.dirname(self.settings["mariadb"]["socket"])
        if socket_home != os.path.join(self.directory, "mariadb"):
            shutil.rmtree(socket_home, ignore_errors=True)
        if disposable:
            shutil.rmtree(self.directory)

    def bootstrap(self, name="clients"):
        """Kafka's addresses for clients; `proxy`: those that are advertised behind one."""
        return ",".join(f"{LOCAL}:{broker[name]}" for broker in self.settings["brokers"])

    def _kafka_properties(self):
        if not self.settings["tls"]:
            return {}
        sasl = self.settings["sasl"]
        return {"security.protocol": "SASL_SSL", "ssl.ca.location": self.tls_files()["ca"],
                "sasl.mechanism": kafka.MECHANISM, "sasl.username": sasl["user"], "sasl.password": sasl["password"]}

    def _describe(self):
        """Writes weir.json and env."""
        copies, maria = len(self.brokers), self.settings["mariadb"]
        bus = {"type": "kafka", "brokers": self.bootstrap(), "partitions": self.settings["partitions"],
               "replication": copies, "min_insync": min(copies, 2), "kafka": self._kafka_properties()}
        store = {"type": "mysql", "host": LOCAL, "port": maria["port"], "user": maria["user"],
                 "password": maria["password"], "database": "weir"}
        if self.settings["tls"]:
            store["tls_ca"] = self.tls_files()["ca"]
        redis_url = f"redis://{LOCAL}:{self.settings['redis']['port']}"
        write(self.directory, "weir.json",
              json.dumps({"bus": bus, "store": store, "redis": {"url": redis_url}}, indent=2) + "\n")
        values = {
            "WEIR_CLUSTER": self.directory,
            "KAFKA_BOOTSTRAP": self.bootstrap(),
            "KAFKA_BROKERS": len(self.brokers),
            "MARIADB_HOST": LOCAL, "MARIADB_PORT": maria["port"], "MARIADB_SOCKET": maria["socket"],
            "MARIADB_USER": maria["user"], "MARIADB_PASSWORD": maria["password"],
            "REDIS_HOST": LOCAL, "REDIS_PORT": self.settings["redis"]["port"], "REDIS_URL": redis_url}
        if "proxy" in self.settings["brokers"][0]:
            values["KAFKA_PROXY"] = self.bootstrap("proxy")
            values["KAFKA_BEHIND_PROXY"] = self.bootstrap("behind")
        if self.settings["tls"]:
            values.update(TLS_CA=self.tls_files()["ca"], KAFKA_SASL_MECHANISM=kafka.MECHANISM,
                          KAFKA_SASL_USER=self.settings["sasl"]["user"],
                          KAFKA_SASL_PASSWORD=self.settings["sasl"]["password"])
        write(self.directory, "env", "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in values.items()))


def make(directory, *, brokers, partitions=8, with_tls=False, proxy_port=None, temporary=False):
    """Decides what a new cluster is."""
    behind = proxy_port is not None
    ports = iter(free_ports(brokers * 5 + 2))
    listed = []
    for number in range(brokers):
        broker = {name: next(ports) for name in ("clients", "internal", "controller")}
        if behind:
            broker["behind"] = next(ports)
            broker["proxy"] = proxy_port + number if proxy_port else next(ports)
        listed.append(broker)
    settings = {
        "cluster_id": base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
        "temporary": temporary, "tls": with_tls, "partitions": partitions, "brokers": listed,
        "mariadb": {"port": next(ports), "socket": MariaDB.choose_socket(directory), "user": "weir",
                    "password": secrets.token_hex(12)},
        "redis": {"port": next(ports)}}
    if with_tls:
        settings["sasl"] = {"user": "weir", "password": secrets.token_hex(12)}
    write(directory, _SETTINGS, json.dumps(settings, indent=2) + "\n")
    return Cluster(directory, settings)


def load(directory):
    """The cluster of a directory; None if there is none."""
    try:
        with open(os.path.join(directory, _SETTINGS), encoding="utf-8") as file:
            return Cluster(os.path.abspath(directory), json.load(file))
    except FileNotFoundError:
        return None


def needed(directory):
    """The cluster of a directory, which must be there."""
    cluster = load(directory)
    if cluster is None:
        raise Failed(f"{directory} is no cluster's directory: it has no {_SETTINGS}")
    return cluster


def write(directory, name, text):
    """Writes a file whole, for this user alone: it may hold passwords."""
    path = os.path.join(directory, name)
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
    os.rename(part, path)


def lock(directory):
    """Keeps others' `up`, `down` and `part` away from a directory, for as long as the file that it gives is open."""
    # pylint: disable-next=consider-using-with
    file = open(os.path.join(directory, "lock"), "w", encoding="ascii")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file
