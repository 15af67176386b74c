#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir doctor on a real cluster: nothing is wrong in health; each fault is named first, and its remedy ends it."""

import contextlib
import http.server
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.cases import Skipped
from support.network import Network
from support.place import free_port, read, until
from support.redis import Redis
from support.small_disk import SmallDisk, enter_namespace
from support.roles import Roles
from support.traffic import burst, line, sliding, source, zone

DONE, WRONG, USAGE = 0, 1, 2
PARTITIONS = 4
BOUND_S = 25  # 20 s of its own, and a loaded machine's start
NO_NAMESPACE = enter_namespace()
ZONES = [zone("site", [sliding(3, "1h")], id=1)]


def check_shape(report):
    """The JSON form, whole."""
    assert set(report) == {"good", "findings", "fine"}, report
    assert isinstance(report["good"], bool) and all(isinstance(line, str) for line in report["fine"])
    for finding in report["findings"]:
        assert list(finding) == ["severity", "check", "what", "means", "remedy", "runbook"], finding
        assert finding["severity"] in ("page", "ticket", "note"), finding
        assert finding["check"] and finding["what"], finding
        assert finding["runbook"] is None or re.fullmatch(r"[a-z-]+", finding["runbook"]), finding
        if finding["severity"] != "note":
            assert finding["means"] and finding["remedy"], finding
    order = [("page", "ticket", "note").index(finding["severity"]) for finding in report["findings"]]
    assert order == sorted(order), "the worst stands first"
    assert report["good"] == all(number == 2 for number in order)


class Doctor:
    """The command on one configuration."""

    def __init__(self, place, sections, *words, name="doctor"):
        self.place, self.words = place, words
        self.config = place.write(f"{name}.json", json.dumps(sections))

    def start(self, **more):
        """The command, at work."""
        return self.place.start("doctor", "--config", self.config, "--json", *self.words, **more)

    def ask(self, started=None, **more):
        """(exit code, report)."""
        begin = time.monotonic()
        done = started or self.start(**more)
        done.wait(2 * BOUND_S)
        assert done.code() in (DONE, WRONG, USAGE), (done.code(), done.said())
        report = json.loads(done.out())
        assert time.monotonic() - begin < BOUND_S, report
        check_shape(report)
        return done.code(), report

    def finds(self, severity, runbook, words, code=WRONG, **more):
        """The first finding, which must be this."""
        got, report = self.ask(**more)
        assert report["findings"], report
        first = report["findings"][0]
        assert got == code and first["severity"] == severity and first["runbook"] == runbook and \
            re.search(words, first["what"]), (got, json.dumps(report, indent=1))
        return first

    def is_fine(self):
        """Nothing is wrong any more, which may take a moment to be seen."""
        def fine():
            nonlocal seen
            seen = self.ask()
            return seen[0] == DONE
        seen = None
        try:
            until(fine, "nothing is wrong")
        except AssertionError as late:
            raise AssertionError(json.dumps(seen[1], indent=1)) from late
        assert seen[1]["good"], seen

    def heals(self):
        """As an operator does: types what stands first, and asks again, until nothing is wrong."""
        for _ in range(5):
            code, report = self.ask()
            if code == DONE or not report["findings"][0]["remedy"].startswith("weir "):
                break
            self.type(report["findings"][0]["remedy"])
        self.is_fine()

    def type(self, remedy):
        """Runs a remedy as a shell is given it."""
        for command in remedy.split(" && "):
            words = shlex.split(command)
            assert words[0] == "weir", remedy
            done = self.place.run(*words[1:])
            assert done.code() == DONE, (remedy, done.out(), done.said())


class Scene:
    """A cluster at work."""

    def __init__(self, place, one, roles):
        self.place, self.one, self.roles = place, one, roles
        self.log = place.write("log", burst("ann", 40))
        roles.apply()
        self.limiter = roles.limiter().until_ready()
        self.archiver = roles.archiver().until_ready()
        self.collector = roles.collector([source(self.log)]).until_ready()
        self.doctor = Doctor(place, roles.sections(zones=ZONES, sources=[source(self.log)]))
        self.limiter.until(lambda: self.limiter.value("weir_limiter_events_total") == 40, "has judged all")

    def sections(self, **more):
        """Of a configuration that differs from what the daemons have."""
        return self.roles.sections(**{"zones": ZONES, "sources": [source(self.log)], **more})


@contextlib.contextmanager
def scene(place):
    """One for a test, with servers of its own."""
    with cluster.own(parent=place.directory) as one, \
            Roles(place, one, ZONES, bus={"partitions": PARTITIONS}, limiter={"checkpoint_interval": "200ms"},
                  archiver={"enabled": True, "interval": "100ms"}) as roles:
        yield Scene(place, one, roles)


def what_servers_have_lost(place, at):
    """Nothing is wrong in health; then topics and messages are deleted, and each printed command is typed."""
    kafka, doctor, one = at.one.kafka, at.doctor, at.one
    doctor.is_fine()
    said = place.run("doctor", "--config", doctor.config).out().decode()
    print(said)
    assert said.startswith("Nothing is wrong.\nGood:\n") and "\033" not in said, said
    # A topic that everything waits for.
    kafka.delete([one.topic("decisions")])
    until(lambda: one.topic("decisions") not in kafka.topics(), "it is gone")
    found = doctor.finds("page", "topic-deleted", f"topic {one.topic('decisions')} does not exist")
    assert found["remedy"] == f"weir policy apply --config {doctor.config}", found
    doctor.heals()
    kafka.delete([one.topic("policy")])
    until(lambda: one.topic("policy") not in kafka.topics(), "it is gone")
    doctor.heals()
    assert at.collector.stop() == DONE
    at.collector.start().until_ready()  # the policies are in the new topic
    # Settings that lose records.
    kafka.change_settings(one.topic("events"), retention_ms=100)
    found = doctor.finds("page", "retention", f"topic {one.topic('events')} keeps its messages for 100ms")
    assert f"--entity-name {one.topic('events')} --add-config retention.ms=604800000" in found["remedy"], found
    kafka.change_settings(one.topic("events"), retention_ms=604800000)
    kafka.change_settings(one.topic("policy"), cleanup_policy="delete")
    assert doctor.finds("page", "retention", "cleanup.policy")["remedy"].endswith("cleanup.policy=compact")
    kafka.change_settings(one.topic("policy"), cleanup_policy="compact")
    doctor.is_fine()
    # A gap: what no limiter has judged is deleted.
    assert at.limiter.stop() == DONE
    doctor.finds("page", "process-down", "no limiter is running")
    place.append("log", burst("ann", 40))
    at.collector.until(lambda: at.collector.value("weir_source_lag_bytes") == 0, "has read its log")
    ends = one.ends()
    (partition,) = [number for number, end in one.stored().items() if end < ends[number]]
    kafka.trim(one.topic("events"), {partition: ends[partition]})
    check = at.roles.limiter(arguments=["--check"])
    assert check.run.wait() == WRONG and " before they were done" in check.run.out().decode(), check.said()
    at.limiter.start().until_up()
    found = next(one for one in doctor.ask()[1]["findings"] if one["runbook"] == "gap")
    assert found["what"].endswith(f"in partition {partition}"), found
    assert found["remedy"] == f"weir recover --accept-gap --config {doctor.config} --all --yes", found
    doctor.heals()


class Unready:
    """A daemon of that role whose pages say that it is not ready."""

    def __init__(self, role):
        class Pages(http.server.BaseHTTPRequestHandler):
            """Its two."""

            def do_GET(self):  # pylint: disable=invalid-name
                """As common/daemon answers."""
                words = b"1 of 4 assigned partitions are stopped\n" if self.path == "/readyz" else \
                    f'# TYPE weir_build_info gauge\nweir_build_info{{version="1",role="{role}"}} 1\n'.encode()
                self.send_response(503 if self.path == "/readyz" else 200)
                self.send_header("Content-Length", str(len(words)))
                self.end_headers()
                self.wfile.write(words)

            def log_message(self, format, *args):  # pylint: disable=redefined-builtin
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """No more."""
        self._server.shutdown()
        self._server.server_close()


def test_pages_of_daemons(place):
    """An archiver's is no page; and none is missed on a machine without a daemon, as long as limiters work elsewhere."""
    with cluster.shared() as one, Roles(place, one, ZONES, bus={"partitions": PARTITIONS}) as roles:
        roles.apply()
        limiter = roles.limiter().until_ready()

        def doctor(address):
            return Doctor(place, roles.sections(zones=ZONES, sources=[], listen={"http": address}))

        for role, severity in (("limiter", "page"), ("archiver", "ticket")):
            pages = Unready(role)
            doctor(pages.address).finds(severity, "is-it-over", "/readyz says 503: 1 of 4 assigned partitions are stopped")
            pages.close()
        nowhere = doctor(f"127.0.0.1:{free_port()}")
        code, report = nowhere.ask()
        assert code == DONE and report["findings"][0]["severity"] == "note" and \
            "other machines" in report["findings"][0]["what"], report
        assert limiter.stop() == DONE
        code, report = nowhere.ask()
        (found,) = [finding for finding in report["findings"] if finding["check"] == "pages"]
        assert code == WRONG and found["severity"] == "ticket" and "does not answer" in found["what"], report


def servers_that_are_away_or_refuse(place, at):
    """One after the other: what it costs, in words; each is over when its cause is."""
    one, doctor = at.one, at.doctor
    one.mariadb_root.query("SET GLOBAL read_only = 1")
    doctor.finds("page", "store-read-only", "read-only.*the limiter cannot write")
    for kind in ("limiter", "archiver"):
        check = getattr(at.roles, kind)(arguments=["--check"])
        assert check.run.wait() == WRONG and "read-only" in check.run.out().decode(), (check.run.out(), check.said())
        assert "no mistake in the configuration" in check.run.out().decode().splitlines()[0]
    one.mariadb_root.query("SET GLOBAL read_only = 0")
    doctor.is_fine()
    other = Doctor(place, at.sections(store={"password": "wrong"}))
    other.finds("page", "credentials", "Access denied")
    other = Doctor(place, at.sections(bus={"partitions": PARTITIONS + 1}))
    assert other.finds("page", "partitions-changed", f"has {PARTITIONS} partitions, not {PARTITIONS + 1}")
    doctor = Doctor(place, at.sections())
    for sign, words in (("+", "behind"), ("-", "ahead of")):
        one.mariadb_root.query(f"SET GLOBAL init_connect = 'SET SESSION timestamp = UNIX_TIMESTAMP() {sign} 3600'")
        doctor.finds("ticket", "clock", f"clock is 3[56]\\d\\d s {words} that of the store")
    one.mariadb_root.query("SET GLOBAL init_connect = ''")
    one.part("stop", "mariadb")
    found = doctor.finds("page", "store-away", "weir@127.0.0.1")
    assert "one that starts waits for the store and judges nothing" in found["means"], found
    # A limiter that is restarted now runs and waits; nobody is told to start it.
    assert at.limiter.stop() == DONE
    at.limiter.start().until(lambda: "the store has not answered yet" in (at.limiter.page("/readyz") or ("", ""))[1], "waits")
    code, report = doctor.ask()
    (found,) = [finding for finding in report["findings"] if finding["check"] == "members"]
    assert code == WRONG and "no limiter is at work" in found["what"] and "waits for it" in found["means"], report
    assert not any("no limiter is running" in finding["what"] for finding in report["findings"]), report
    one.part("start", "mariadb")
    at.limiter.until_ready()
    doctor.is_fine()
    one.part("pause", "kafka")
    doctor.finds("page", "broker-away", f"no broker of {one.brokers} answers")
    one.part("resume", "kafka")
    one.part("stop", "kafka")
    doctor.finds("page", "broker-away", f"no broker of {one.brokers} answers")
    one.part("start", "kafka")
    doctor.is_fine()


def sources_that_cannot_be_read(place, at):
    """By its user, and by its format; the collector's --check finds the same."""
    folder = place.path("logs")
    os.mkdir(folder)
    log = os.path.join(folder, "access.log")
    sources = [source(os.path.join(folder, "access*.log"))]
    state = place.path("collector.state")
    doctor = Doctor(place, at.sections(sources=sources), "--state", state)
    code, report = doctor.ask()
    assert code == DONE and any("another's" in finding["what"] for finding in report["findings"]), report
    assert any("names no file" in finding["what"] for finding in report["findings"]), report
    os.mkdir(state)
    memory = {"version": 1, "collector": "0" * 31 + "1", "first_incarnation": 1, "streams": []}
    place.write("collector.state/sources.json", json.dumps(memory))  # a collector is at work here
    doctor.finds("ticket", "source-unreadable", r"access\*.log names no file")
    os.rmdir(folder)
    doctor.finds("ticket", "source-unreadable", r"access\*.log names no file")
    os.mkdir(folder)
    place.write("logs/access.log", "203.0.113.9 - - [x]\n" * 3 + "".join(burst("ann", 40)))
    doctor.is_fine()
    place.append("logs/access.log", "203.0.113.9 - - GET\n" * 990)
    found = doctor.finds("page", "format-changed", "990 of the last 1000 lines of .*/access.log are not of its format")
    assert "203.0.113.9 - - GET" in found["what"], found

    def check():
        daemon = at.roles.collector(sources, arguments=["--check"])
        return daemon.run.wait(), daemon.run.out().decode(), daemon.said()

    code, out, _ = check()
    assert code == WRONG and "990 of the last 1000 lines" in out, out
    place.write("logs/access.log", "".join(burst("ann", 40)))
    code, out, said = check()
    assert code == DONE and out.endswith("weir-collector: nothing keeps it from working\n"), (out, said)
    if os.geteuid() == 0:
        os.chmod(place.directory, 0o755)
        os.chmod(folder, 0o700)
        found = doctor.finds("ticket", "source-unreadable", f"cannot read directory {folder}: Permission denied, as "
                             "the user who runs this command .uid 65534.", user=65534, group=65534, extra_groups=[])
        assert "as root," in found["remedy"] and "setfacl" not in json.dumps(found), found


def collectors_of_one_identity(place, at):
    """A copied state directory; lines go on, as on any machine, and both send them."""
    at.doctor.is_fine()
    twin = at.roles.collector([source(at.log)], name="twin")
    twin.until_ready().stop()
    shutil.copy(os.path.join(at.collector.state, "sources.json"), os.path.join(twin.state, "sources.json"))
    twin.start().until_ready()
    for _ in range(30):  # more often in a minute than one collector makes producers anew
        before = at.limiter.value("weir_limiter_repeated_events_total")
        place.append("log", burst("twins", 2))
        at.limiter.until(lambda: at.limiter.value("weir_limiter_repeated_events_total") == before + 2, "drops the second ones")
    found = at.doctor.finds("page", "duplicate-collector", "two collectors have one identity: source [0-9a-f]{32} ")
    name = found["what"].split("source ")[1].split()[0]
    at.limiter.until_says(f"two collectors have one identity: source {name} goes back and forth")
    assert at.limiter.value("weir_limiter_shared_source_frames_total") > 0
    assert twin.stop() == DONE


def test_a_cluster(place):
    """One for all, as each of its faults is over before the next."""
    with scene(place) as at:
        what_servers_have_lost(place, at)
        sources_that_cannot_be_read(place, at)
        servers_that_are_away_or_refuse(place, at)
        collectors_of_one_identity(place, at)


# ---- certificates ----

def mysql_greeting():
    """What a MySQL server says first, here one that speaks TLS."""
    able = 0x800 | 0x200 | 0x8000 | 0x1 | 0x8 | 0x80000  # TLS among it
    words = (b"\x0a" + b"8.0.0\0" + struct.pack("<I", 1) + b"s" * 8 + b"\0" + struct.pack("<H", able & 0xffff) +
             b"\x21" + struct.pack("<HH", 2, able >> 16) + b"\x15" + bytes(10) + b"s" * 12 + b"\0" +
             b"mysql_native_password\0")
    return struct.pack("<I", len(words))[:3] + b"\0" + words


class TlsServer:
    """Shows a certificate to whoever comes."""

    def __init__(self, files, greet=None):
        self._greet = greet
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["chain"])
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, args=(context,), daemon=True).start()

    def _serve(self, context):
        while True:
            try:
                peer = self._socket.accept()[0]
            except OSError:
                return
            with contextlib.suppress(OSError), peer:
                peer.settimeout(5)
                if self._greet:
                    peer.sendall(self._greet)
                    peer.recv(36, socket.MSG_WAITALL)  # that TLS is to begin
                with context.wrap_socket(peer, server_side=True) as inside:
                    inside.recv(1)

    def close(self):
        """No more."""
        self._socket.close()


def make_certificates(place, name, days, subject="IP:127.0.0.1"):
    """An authority of the test's own, and a certificate by it for so many days."""
    files = {part: place.path(f"{name}-{part}.pem") for part in ("ca", "ca-key", "key", "cert", "chain", "request")}
    extensions = place.write(f"{name}-extensions", f"subjectAltName={subject}\nbasicConstraints=CA:FALSE\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    place.write(f"{name}-index", "")
    settings = place.write(f"{name}-settings", "[ca]\ndefault_ca = one\n[one]\ndefault_md = sha256\npolicy = any\n"
                           f"database = {place.path(name)}-index\nnew_certs_dir = {place.directory}\nrand_serial = yes\n"
                           "[any]\ncommonName = supplied\n")
    ends = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400 - 60))
    for arguments in (
            ["req", "-x509", "-days", "30", *key, "-subj", f"/CN={name} authority", "-keyout", files["ca-key"],
             "-out", files["ca"]],
            ["req", *key, "-subj", f"/CN={name}", "-keyout", files["key"], "-out", files["request"]],
            ["ca", "-batch", "-notext", "-config", settings, "-startdate", "20200101000000Z", "-enddate", ends,
             "-in", files["request"], "-cert", files["ca"], "-keyfile", files["ca-key"], "-extfile", extensions,
             "-out", files["cert"]]):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
    with open(files["chain"], "wb") as whole:
        for part in ("key", "cert"):
            with open(files[part], "rb") as file:
                whole.write(file.read())
    return files


def test_certificates(place):
    """Of brokers and of the store: expired, of another authority, of another name; of brokers soon to expire."""
    def broker(name, files, ca):
        server = TlsServer(files)
        doctor = Doctor(place, {
            "bus": {"type": "kafka", "brokers": f"127.0.0.1:{server.port}",
                    "kafka": {"security.protocol": "ssl", "ssl.ca.location": ca}},
            "zones": ZONES, "sources": []}, name=name)
        return server, doctor, doctor.start()

    def told(server, doctor, started):
        got, report = doctor.ask(started)
        server.close()
        assert got == WRONG, report  # it is no broker
        return [finding["what"] for finding in report["findings"] if finding["runbook"] == "certificates"], report

    good = make_certificates(place, "good", 30)
    old = make_certificates(place, "old", -3)
    named = make_certificates(place, "named", 30, "DNS:elsewhere.example")
    soon = make_certificates(place, "soon", 5)
    cases_of = {"expired": (old, old["ca"]), "stranger": (good, old["ca"]), "misnamed": (named, named["ca"]),
                "soon": (soon, soon["ca"]), "good": (good, good["ca"])}

    def store(name, files, ca):
        server = TlsServer(files, mysql_greeting())
        doctor = Doctor(place, {
            "bus": {"type": "kafka", "brokers": f"127.0.0.1:{free_port()}"}, "zones": ZONES, "sources": [],
            "store": {"type": "mysql", "host": "127.0.0.1", "port": server.port, "user": "weir", "database": "weir",
                      "tls_ca": ca}}, name=f"store-{name}")
        return server, doctor, doctor.start()

    at_work = {name: broker(name, *files) for name, files in cases_of.items()}
    at_work.update({f"store-{name}": store(name, *cases_of[name]) for name in ("expired", "stranger", "misnamed", "good")})
    asked = {name: told(*parts) for name, parts in at_work.items()}
    said, report = asked["expired"]
    assert re.search(r"certificate of broker 127.0.0.1:\d+ expired 3 days ago", said[0]), report
    said, report = asked["stranger"]
    assert "is not trusted" in said[0], report
    said, report = asked["misnamed"]
    assert "is not trusted" in said[0] and ("127.0.0.1" in said[0]), report
    said, report = asked["soon"]
    assert any("expires in 4 days" in words for words in said), report
    said, report = asked["good"]
    assert not said and any("has one for 29 days" in words for words in report["fine"]), report
    for name, remedy in (("expired", "renew the certificate"), ("stranger", '"store.tls_ca"'),
                         ("misnamed", 'call the server in "store.host"')):
        said, report = asked[f"store-{name}"]
        assert len(said) == 1 and "TLS" in said[0] and "(runbook" not in said[0], report
        (finding,) = [one for one in report["findings"] if one["runbook"] == "certificates"]
        assert remedy in finding["remedy"] and finding["severity"] == "page", finding
    assert not asked["store-good"][0], asked["store-good"]


# ---- on one machine ----

def test_pages_whose_certificate_is_of_another_name(place):
    """As of a machine that the world knows by its name: here it is asked at 127.0.0.1."""
    files = make_certificates(place, "site", 30, "DNS:weir.example")
    port, log = free_port(), place.write("access.log", "")
    sections = {"zones": ZONES, "sources": [{"type": "file", "path": log, "follow": True, "format": {"type": "json"}}],
                "listen": {"http": f"*:{port}", "certificate": files["cert"], "key": files["key"]}}
    doctor = Doctor(place, sections, "--state", place.path("state"))
    weir = place.start("run", "--config", doctor.config, "--state", place.path("state"), "--decisions", place.path("decisions"))
    until(lambda: "following" in weir.said(), "it runs", running=weir)
    until(lambda: not [one for one in doctor.ask()[1]["findings"] if one["check"] == "pages"], "its page is read", running=weir)
    assert weir.stop() == DONE, weir.said()


def test_a_run_on_one_machine(place):
    """Its state, its page, its gateway, its disk."""
    log = place.write("log", "".join(burst("ann", 40)))
    state, page = place.path("state"), free_port()
    config = {"zones": ZONES, "sources": [source(log)], "gateways": [f"file:{place.path('list')}"],
              "listen": {"http": f"127.0.0.1:{page}"}}
    doctor = Doctor(place, config, "--state", state)
    doctor.finds("page", "process-down", "there is no state of weir run")
    running = place.start("run", "--config", doctor.config, "--state", state, "--decisions", place.path("decisions"))
    doctor.is_fine()
    running.stop()
    doctor.finds("page", "process-down", "weir run is not running: nobody holds")
    mistaken = Doctor(place, {**config, "zoness": []}, "--state", state)
    code, report = mistaken.ask()
    assert code == USAGE and "zoness" in report["findings"][0]["what"], report
    if NO_NAMESPACE:
        raise Skipped(NO_NAMESPACE)
    with SmallDisk(place.path("small"), 1 << 20):
        small = Doctor(place, config, "--state", place.path("small"))
        code, report = small.ask()
        (found,) = [finding for finding in report["findings"] if finding["check"] == "disk" and finding["severity"] == "page"]
        assert found["runbook"] == "positions-unsaved", found
    with SmallDisk(place.path("files"), "1g,nr_inodes=50"):
        code, report = Doctor(place, config, "--state", place.path("files")).ask()
        (found,) = [finding for finding in report["findings"] if finding["check"] == "disk" and finding["severity"] == "page"]
        assert "more files" in found["what"] and "df -i" in found["remedy"], found


# ---- gateways ----

HAPROXY = """global
    stats socket {socket} level admin
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend one
    bind 127.0.0.1:{port}
    http-request deny if {{ src,map_ip({map}) -m found }}
    default_backend one
backend one
    server one 127.0.0.1:1
"""


class Lists:
    """A list of each kind that this machine has, and a weir that keeps them all."""

    def __init__(self, place, stack):
        self.place, self.network = place, Network(place)
        self.file, self.map = place.path("list"), place.path("map")
        self.targets = [f"file:{self.file}", f"nginx-geo:{self.map}", "nft:inet/weir/blocked"]
        self.ipset = self._make_ipset() if shutil.which("ipset") else None
        self._redis_port, self._socket = free_port(), place.path("haproxy.sock")
        self.redis = Redis(self._start_redis(stack)) if shutil.which("redis-server") else None
        self.haproxy = self._start_haproxy(stack) if shutil.which("haproxy") else None
        self.log = place.write("log", "")
        self.config = {"zones": [zone("site", [sliding(3, "1h")], key=[{"field": "ip", "prefix6": 64}], id=1, block_for="1h")],
                       "sources": [source(self.log)], "gateways": self.targets}
        self.doctor = Doctor(place, self.config, "--state", place.path("state"))

    def _make_ipset(self):
        wrapper = self.place.write("bin/ipset", f"#!/bin/sh\nexec {' '.join(self.network.enter)} "
                                   f"{shutil.which('ipset')} \"$@\"\n")
        os.chmod(wrapper, 0o755)
        if subprocess.run([wrapper, "create", "weir", "hash:ip", "timeout", "0"], check=False).returncode != 0:
            return None
        self.targets.append("ipset:weir")
        return wrapper

    def _start_redis(self, stack):
        self.targets.append(f"redis://127.0.0.1:{self._redis_port}")
        stack.enter_context(ended(subprocess.Popen(
            ["redis-server", "--port", str(self._redis_port), "--save", "", "--dir", self.place.directory],
            stdout=subprocess.DEVNULL)))
        until(lambda: not doctor_of_port(self._redis_port), "Redis answers")
        return self._redis_port

    def _start_haproxy(self, stack):
        self.targets.append({"to": f"haproxy:{self._socket}", "map": "weir.map"})
        config = self.place.write("haproxy.cfg", HAPROXY.format(
            socket=self._socket, port=free_port(), map=self.place.write("weir.map", "")))
        stack.enter_context(ended(subprocess.Popen(["haproxy", "-f", config], stderr=subprocess.DEVNULL)))
        until(lambda: os.path.exists(self._socket), "HAProxy answers")
        return self._socket

    def start(self):
        """The weir that keeps them."""
        return self.place.start("run", "--config", self.doctor.config, "--state", self.place.path("state"),
                                "--decisions", self.place.path("decisions"), env=self.network.environment)

    def say(self, *addresses):
        """These go over the limit."""
        now = 1000 * int(time.time())
        self.place.append("log", "".join(line(now + i, "u", ip=ip) for ip in addresses for i in range(5)))

    def ask_haproxy(self, command):
        """What it answers."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(self.haproxy)
            peer.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: peer.recv(65536), b"")).decode()

    def spoil(self):
        """One block is taken out of each list, and one entry added: what is said of how many."""
        with open(self.file, encoding="utf-8") as file:
            lines = file.readlines()
        kept = [one for one in lines if "203.0.113.7" not in one]
        self.place.write("list", "".join([*kept, kept[0].replace("203.0.113.8", "198.51.100.1")]))
        with open(self.map, encoding="utf-8") as file:
            lines = file.readlines()
        kept = [one for one in lines if "203.0.113.7" not in one]
        self.place.write("map", "".join([*kept, kept[0].replace("203.0.113.8", "198.51.100.1")]))
        self.network.nft("delete element inet weir blocked { 203.0.113.7 }")
        self.network.nft("add element inet weir blocked { 198.51.100.1 timeout 1h }")
        if self.ipset:
            subprocess.run([self.ipset, "del", "weir", "203.0.113.7"], check=True)
            subprocess.run([self.ipset, "add", "weir", "198.51.100.1", "timeout", "3600"], check=True)
        if self.redis:
            self.redis.call("DEL", "weir:site:203.0.113.7")
            self.redis.call("SET", "weir:site:198.51.100.1", "{}")
            self.redis.call("DEL", *self.redis.keys("weir-list:*"))  # as a minute later
        if self.haproxy:
            number = re.search(r"^(\d+) \(", self.ask_haproxy("show map"), re.M)[1]
            self.ask_haproxy(f"del map #{number} 203.0.113.7;add map #{number} 198.51.100.1 1")


@contextlib.contextmanager
def ended(process):
    """Ends it."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def doctor_of_port(port):
    """Why nobody listens there; "": somebody does."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError as why:
        return str(why)
    return ""


def test_what_gateways_have_against_what_they_should(place):
    """Of each kind that can be read back: a block is missing, an entry is nobody's, the list is gone; and it heals."""
    with contextlib.ExitStack() as stack:
        lists = Lists(place, stack)
        running = lists.start()
        lists.say("203.0.113.7", "203.0.113.8")
        env = {"env": lists.network.environment}
        until(lambda: sum("has all of the 2 blocks" in line for line in lists.doctor.ask(**env)[1]["fine"]) ==
              len(lists.targets), "each list has both")
        running.stop()  # so that nobody mends them
        lists.spoil()
        code, report = lists.doctor.ask(**env)
        assert code == WRONG and report["findings"][0]["runbook"] == "process-down", report
        of = [finding for finding in report["findings"] if finding["runbook"] == "gateway-not-blocking"]
        missing = [finding["what"] for finding in of if finding["severity"] == "page"]
        extra = [finding["what"] for finding in of if finding["severity"] == "ticket"]  # notes are of this machine's nginx
        assert len(missing) == len(extra) == len(lists.targets), json.dumps(of, indent=1)
        for words in missing:
            assert re.search(r"^1 of 2 blocks is missing in .*, the oldest decided at 2", words), words
        for words in extra:
            assert re.search(r"^1 entry is in .* that no decision of the topic blocks, such as .*198\.51\.100\.1", words), words
        assert sum("last written at 2" in words for words in missing) == 2, missing
        assert sum("no subscriber keeps it" in words for words in missing) == (1 if lists.redis else 0), missing
        # Lists that are not there.
        os.remove(lists.map)
        lists.network.nft("delete table inet weir")
        said = [finding["what"] for finding in lists.doctor.ask(**env)[1]["findings"]]
        assert any("nginx-geo" in words and "cannot be read" in words and "No such file" in words for words in said), said
        assert any("nft:" in words and "cannot be read" in words for words in said), said
        lists.network.nft(lists.network.RULES)
        lists.start()
        until(lambda: lists.doctor.ask(**env)[0] == DONE, "all is written again")
        # A subscriber's own target, beside the configuration and on the command line.
        place.write("subscribe-edge.target", f"file:{place.path('edge')}\n")
        place.write("subscribe-edge.env", "#OPTIONS=--zone other\nOPTIONS=--zone site --http 127.0.0.1:1\n")
        said = [finding["what"] for finding in lists.doctor.ask(**env)[1]["findings"]]
        assert sum(f"file:{place.path('edge')}" in words for words in said) == len(said) - sum("includes" in words for words in said) == 1, said
        place.write("edge", read(lists.file).decode())
        assert lists.doctor.ask(**env)[0] == DONE
        asked = Doctor(place, lists.config, "--state", place.path("state"), "--to", f"file:{place.path('none')}")
        assert any(place.path("none") in finding["what"] for finding in asked.ask(**env)[1]["findings"])


def test_gateways_that_are_too_many_are_told(place):
    """How many are not looked at; the one that is asked for is."""
    targets = [f"file:{place.path(f'list{number}')}" for number in range(67)]
    sections = {"zones": ZONES, "sources": [source(place.write("log", ""))], "gateways": targets[:60]}
    for number, target in enumerate((*targets[58:60], *targets[60:])):  # two are the configuration's, too
        place.write(f"subscribe-{number:02}.target", target + "\n")
    for to in (targets[0], f"file:{place.path('own')}"):
        _, report = Doctor(place, sections, "--state", place.path("none"), "--to", to).ask()
        said = [finding for finding in report["findings"] if "more gateways were not looked at" in finding["what"]]
        assert [finding["severity"] for finding in said] == ["note"] and said[0]["what"].startswith("3 "), report
        named = json.dumps(report)
        assert to in named and targets[63] in named and targets[64] not in named, report


if __name__ == "__main__":
    cases.main(globals())
