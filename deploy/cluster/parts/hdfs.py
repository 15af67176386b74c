# SPDX-License-Identifier: Apache-2.0
"""An HDFS on the loopback address: one or two NameNodes and a DataNode, each a process of Java; and what writes to it.

It is no part of what deploy/cluster/up starts: tests start their own. Two NameNodes share their edits by a directory,
and are made active by hand.
"""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

from parts import jars
from parts.ports import free_ports
from parts.process import running_command, together
from parts.programs import find
from parts.server import LOCAL, Server
from parts.words import Failed

JARS = jars.Jars("HDFS", "3.5.0", 68,
                 ("org.apache.hadoop:hadoop-hdfs:3.5.0", "org.apache.hadoop:hadoop-hdfs-client:3.5.0",
                  "org.apache.hadoop:hadoop-common:3.5.0", "org.slf4j:slf4j-reload4j:1.7.36"),
                 ("hadoop-hdfs-3.5.0.jar", "hadoop-common-3.5.0.jar", "slf4j-reload4j-1.7.36.jar"))
_FORMAT_S = 120
_WRITER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "HdfsWriter.java")
_LOGGING = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %m (%c{1})%n
"""


def _xml(properties):
    items = "".join(f"<property><name>{name}</name><value>{value}</value></property>\n"
                    for name, value in properties.items())
    return f"<configuration>\n{items}</configuration>\n"


class _Part(Server):
    """A NameNode or the DataNode."""

    main = ""

    def __init__(self, hdfs, name):
        super().__init__(hdfs.place, f"{hdfs.name}-{name}")
        self.hdfs = hdfs

    def own_properties(self):
        """Beside those that all have."""
        raise NotImplementedError

    def configure(self):
        os.makedirs(self.path("tmp"), exist_ok=True)
        with zipfile.ZipFile(self.path("web.jar"), "w") as jar:  # the jars have no web pages, but want folders for them
            for folder in ("hdfs", "datanode"):
                jar.writestr(f"webapps/{folder}/", "")
                jar.writestr(f"webapps/{folder}/none", "")
            jar.writestr("log4j.properties", _LOGGING)
        self.write("core-site.xml", _xml({"fs.defaultFS": self.hdfs.address, "hadoop.tmp.dir": self.path("data")}))
        self.write("hdfs-site.xml", _xml({**self.hdfs.properties(), **self.own_properties()}))

    def java(self, main, *arguments, heap="128m"):
        """A command that runs a class of HDFS with this part's settings."""
        path = self.path("web.jar") + ":" + os.path.join(jars.place(JARS), "libs", "*")
        return [find("java"), f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+PerfDisableSharedMem",
                f"-Djava.io.tmpdir={self.path('tmp')}", "-cp", path, main, *arguments]

    def settings(self):
        """The arguments that name its files of settings."""
        return ["-conf", self.path("core-site.xml"), "-conf", self.path("hdfs-site.xml")]

    def command(self):
        return self.java(self.main, *self.settings())

    def making_data(self):
        yield from jars.fetching(JARS)

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://{LOCAL}:{self.http_port}/jmx?qry=none", timeout=1):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False


class NameNode(_Part):
    """Knows the files' names and where their blocks are."""

    main = "org.apache.hadoop.hdfs.server.namenode.NameNode"

    def __init__(self, hdfs, number):
        super().__init__(hdfs, f"namenode-{number}")
        self.number = number
        self.rpc_port, self.http_port = free_ports(2)

    @property
    def url(self):
        """Of WebHDFS."""
        return f"http://{LOCAL}:{self.http_port}"

    def own_properties(self):
        return {"dfs.ha.namenode.id": f"nn{self.number}"} if self.hdfs.pair else {}

    def making_data(self):
        yield from super().making_data()
        self.configure()
        first = self.number == 1
        what = ["-format", "-force", "-nonInteractive"] if first else ["-bootstrapStandby", "-force", "-nonInteractive"]
        yield from running_command(self.java(self.main, *self.settings(), *what), self.path("format.log"), _FORMAT_S,
                                   self.environment())

    def make_active(self):
        """Of a pair; the other must be in standby, or dead."""
        subprocess.run(self.java("org.apache.hadoop.hdfs.tools.DFSHAAdmin", *self.settings(), "-transitionToActive",
                                 "--forceactive",
                                 f"nn{self.number}"),
                       input=b"Y\n", check=True, env=self.environment(), cwd=self.directory,
                       timeout=_FORMAT_S, capture_output=True)


class DataNode(_Part):
    """Holds the blocks."""

    main = "org.apache.hadoop.hdfs.server.datanode.DataNode"

    def __init__(self, hdfs):
        super().__init__(hdfs, "datanode")
        self.port, self.http_port, self.ipc_port = free_ports(3)

    def own_properties(self):
        return {"dfs.datanode.address": f"{LOCAL}:{self.port}", "dfs.datanode.http.address": f"{LOCAL}:{self.http_port}",
                "dfs.datanode.ipc.address": f"{LOCAL}:{self.ipc_port}", "dfs.datanode.hostname": LOCAL}


class Hdfs:
    """All of it; `place` has a `directory`."""

    def __init__(self, place, pair=False, name="hdfs"):
        self.place, self.name, self.pair = place, name, pair
        self.namenodes = [NameNode(self, number) for number in ((1, 2) if pair else (1,))]
        self.datanode = DataNode(self)
        self.writer = None

    @property
    def urls(self):
        """Of WebHDFS, of each NameNode."""
        return [one.url for one in self.namenodes]

    @property
    def address(self):
        """For clients of Java."""
        return "hdfs://pair" if self.pair else f"hdfs://{LOCAL}:{self.namenodes[0].rpc_port}"

    def properties(self):
        """What all parts have."""
        common = {"dfs.namenode.rpc-bind-host": LOCAL, "dfs.replication": 1, "dfs.webhdfs.enabled": "true",
                  "dfs.namenode.safemode.extension": 0, "dfs.heartbeat.interval": 1,
                  "dfs.namenode.fs-limits.min-block-size": 1024, "dfs.permissions.superusergroup": "root",
                  "dfs.client.block.write.replace-datanode-on-failure.enable": "false"}
        if not self.pair:
            # A writer outlives the kill of its NameNode; of a pair it goes to the other.
            return {**common, "dfs.namenode.http-address": self.namenodes[0].url[7:],
                    "dfs.client.retry.policy.enabled": "true"}
        each = {}
        for one in self.namenodes:
            each[f"dfs.namenode.rpc-address.pair.nn{one.number}"] = f"{LOCAL}:{one.rpc_port}"
            each[f"dfs.namenode.http-address.pair.nn{one.number}"] = one.url[7:]
        proxy = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        return {**common, **each, "dfs.nameservices": "pair", "dfs.ha.namenodes.pair": "nn1,nn2",
                "dfs.namenode.shared.edits.dir": "file://" + os.path.join(self.place.directory, self.name + "-edits"),
                "dfs.client.failover.proxy.provider.pair": proxy, "dfs.ha.tail-edits.period": 1}

    def bring_up(self):
        """Starts all, until a file can be written."""
        if self.pair:
            os.makedirs(os.path.join(self.place.directory, self.name + "-edits"), exist_ok=True)
            together([self.namenodes[0].starting()])
            together([self.namenodes[1].starting(), self.datanode.starting()])
            self.namenodes[0].make_active()
        else:
            together([self.namenodes[0].starting(), self.datanode.starting()])
        self.until_writable()

    def until_writable(self, patience_s=120):
        """The DataNode reports to a NameNode after both serve."""
        end = time.monotonic() + patience_s
        while True:
            try:
                return self.put("/ready", b"ready\n")
            except OSError:
                if time.monotonic() > end:
                    raise Failed("HDFS takes no file") from None
                time.sleep(0.1)

    def take_down(self):
        """Ends all, as by kill -9: nothing of it is needed again."""
        if self.writer is not None:
            self.writer.stop()
        together(one.ending(at_once=True) for one in (*self.namenodes, self.datanode))

    # ---- by WebHDFS ----

    def ask(self, method, path, body=None, **query):
        """One question to the active NameNode, followed to the DataNode: the answer's body."""
        last = OSError("there is no NameNode")
        for url in self.urls:
            try:
                return self._ask(url, method, path, body, query)
            except urllib.error.HTTPError as error:
                words = error.read()
                last = OSError(f"{error.code}: {words[:300]!r}")
                if b"StandbyException" not in words and b"RetriableException" not in words:
                    raise last from error
            except OSError as error:
                last = error
        raise last

    @staticmethod
    def _ask(url, method, path, body, query):
        address = f"{url}/webhdfs/v1{urllib.parse.quote(path)}?" + urllib.parse.urlencode({"user.name": "root", **query})
        opener = urllib.request.build_opener(_Stay)
        request = urllib.request.Request(address, method=method, headers={"Content-Length": "0"} if body else {})
        try:
            with opener.open(request, timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError as redirect:
            if redirect.code != 307:
                raise
            place = redirect.headers["Location"]
        request = urllib.request.Request(place, data=body, method=method,
                                         headers={"Content-Type": "application/octet-stream"})
        with opener.open(request, timeout=60) as answer:
            return answer.read()

    def put(self, path, body):
        """Writes a file."""
        self.ask("PUT", path, body, op="CREATE", overwrite="true")

    def append(self, path, body):
        """Appends to a file, and closes it."""
        self.ask("POST", path, body, op="APPEND")

    def rename(self, path, new):
        """Renames a file."""
        self.ask("PUT", path, op="RENAME", destination=new)

    def delete(self, path):
        """Deletes a file."""
        self.ask("DELETE", path, op="DELETE")

    def truncate(self, path, length):
        """Cuts a closed file."""
        self.ask("POST", path, op="TRUNCATE", newlength=length)

    def mkdir(self, path):
        """Makes a folder."""
        self.ask("PUT", path, op="MKDIRS")

    def status(self, path):
        """What the NameNode says of a file."""
        return json.loads(self.ask("GET", path, op="GETFILESTATUS"))["FileStatus"]

    def writing(self):
        """A writer that flushes without closing; needs Java's compiler."""
        if self.writer is None:
            self.writer = Writer(self)
        return self.writer


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


class Writer:
    """A client of HDFS by Java, told line by line what to do: see HdfsWriter.java."""

    def __init__(self, hdfs):
        find("javac")  # it comes with what compiles the writer
        part = hdfs.namenodes[0]
        command = part.java(_WRITER, part.path("core-site.xml"), part.path("hdfs-site.xml"), heap="200m")
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**part.environment(), "HADOOP_USER_NAME": "root"})
        self._answer("start")

    def _answer(self, what):
        line = self.process.stdout.readline()
        if line != "ok\n":
            raise Failed(f"the writer to HDFS cannot {what}: {line}{self.process.stderr.read() if not line else ''}")

    def tell(self, *words):
        """open PATH, append PATH, write PATH TEXT (a \\n ends a line), flush PATH, close PATH."""
        self.process.stdin.write("\t".join(word.replace("\n", "\\n") for word in words) + "\n")
        self.process.stdin.flush()
        self._answer(" ".join(words[:2]))

    def stop(self):
        """Ends it, without closing its files."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
