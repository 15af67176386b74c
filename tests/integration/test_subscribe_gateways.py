#!/usr/bin/env python3
"""`weir subscribe` with real gateways and the examples beside it: who is blocked gets 429 with Retry-After, and is let
in again when the block ends."""

import email.utils
import http.client
import http.server
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, cluster
from support.decisions import Topic, now_ms
from support.place import PATIENCE_S, ROOT, free_port, read, until

EXAMPLES = os.path.join(ROOT, "deploy", "gateways")
BLOCK_S = 10  # long enough to be seen on a slow machine


def program(name):
    """The path of a program, which may lie where only root looks."""
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        raise cases.Skipped(f"there is no {name}")
    return found


def example(name, *changes):
    """The text of an example with (old, new) in it changed, each of which must be there."""
    text = read(os.path.join(EXAMPLES, name)).decode()
    for old, new in changes:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    return text


def ask(port, source="127.0.0.1"):
    """(status, Retry-After) of a page; None while nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S, source_address=(source, 0))
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["Retry-After"]
    except OSError:
        return None
    finally:
        connection.close()


def always(port, status, times=8):
    """Whether a page is answered with this status, time after time: a process that is being replaced answers too."""
    return all((ask(port) or (0,))[0] == status for _ in range(times))


class Site:
    """What stands behind a proxy."""

    class _Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            """Answers."""
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"hi\n")

        def log_message(self, *_):  # pylint: disable=arguments-differ
            """Says nothing."""

    def __init__(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


def seconds_left(retry_after):
    """What a client makes of Retry-After: seconds, or an HTTP date."""
    if retry_after.isdigit():
        return int(retry_after)
    return email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()


def check_block_and_return(topic, subscriber, port):
    """A client is blocked, told when to come back, and let in when it does; another is let in all the time."""
    assert ask(port) == (200, None)
    block = topic.block("127.0.0.1", for_s=BLOCK_S)
    subscriber.until(lambda: always(port, 429), "the client is blocked")
    status, retry_after = ask(port)
    if status == 429:
        left = seconds_left(retry_after)
        assert -1 <= left <= BLOCK_S + 1, (retry_after, left)
        # Whoever waits as he was told does not come before the end.
        assert 1000 * (time.time() + left) >= block["until"] - 1100, (retry_after, block)
    assert ask(port, "127.0.0.2") == (200, None)
    subscriber.until(lambda: always(port, 200), "the client is let in again")
    assert now_ms() >= block["until"], "before its time"
    assert ask(port) == (200, None)
    # An operator's lift lets in at once.
    topic.block("127.0.0.1", for_s=None)
    subscriber.until(lambda: always(port, 429), "the client is blocked again")
    topic.lift("127.0.0.1")
    subscriber.until(lambda: always(port, 200), "the client is let in by a lift")


# ---- nginx ----

class Nginx:
    """nginx with the example's configuration."""

    def __init__(self, place):
        self.program, self.port = program("nginx"), free_port()
        self.map, self.place = place.write("weir.map", ""), place
        os.makedirs(place.path("html"))
        place.write("html/index.html", "hi\n")
        temporary = "".join(f"{kind}_temp_path {place.path('tmp-' + kind)};\n"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        main = f"daemon off; pid {place.path('nginx.pid')}; error_log stderr;\n"
        if os.geteuid() == 0:
            main = "user root;\n" + main
        text = main + example(
            "nginx.conf", ("listen 80;", f"listen 127.0.0.1:{self.port};"), ("include weir.map;", f"include {self.map};"),
            ("/usr/share/nginx/html", place.path("html")), ("http {\n", f"http {{\naccess_log off;\n{temporary}"))
        self._words = ["-p", place.directory, "-c", place.write("nginx.conf", text)]
        self.reload = " ".join([self.program, *self._words, "-s", "reload"])
        self.run = place.start(*self._words, program=self.program)
        until(lambda: ask(self.port), "nginx answers", running=self.run)


def test_nginx_blocks_and_lets_in_again(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place)
        subscriber = topic.subscribe(f"nginx-map:{nginx.map}", "--zone", "site", "--interval", "200ms",
                                     "--reload", nginx.reload).until_ready()
        check_block_and_return(topic, subscriber, nginx.port)
        # A block of another zone is none of this gateway's.
        topic.block("127.0.0.1", zone="shop")
        topic.block("127.0.0.9")
        subscriber.until(lambda: b"127.0.0.9" in read(nginx.map), "the map")
        assert ask(nginx.port) == (200, None)
        assert subscriber.weir.stop() == 0
        nginx.run.stop()


def test_nginx_takes_any_key(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place)
        for key in ("default", "include", "hostnames", "volatile", "~^.*$", "\\x", 'a "quoted" ; } one', "$remote_addr",
                    "Bob", "bob", "two\nlines", "", "a" * 255, "a" * 256, b"\xff\xfe", b"zero\x00"):
            topic.block(key)
        topic.block("127.0.0.1", for_s=1000)
        topic.block("127.0.0.1", zone="shop", for_s=3600)  # in two zones: the map has it once
        subscriber = topic.subscribe(f"nginx-map:{nginx.map}", "--reload", nginx.reload).until_ready()
        subscriber.until(lambda: always(nginx.port, 429), "nginx takes the map")
        assert seconds_left(ask(nginx.port)[1]) > 2000
        assert ask(nginx.port, "127.0.0.2") == (200, None)  # "$remote_addr" and "~^.*$" are but words
        assert read(nginx.map).lower().count(b'"bob"') == 1
        assert subscriber.value("unfit_total") >= 2 and "cannot hold" in subscriber.weir.said()
        nginx.run.stop()


def test_nginx_with_a_hundred_thousand_blocks(place):
    with cluster.shared() as c:
        topic, nginx = Topic(place, c), Nginx(place)
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)) for n in range(100000)])
        topic.block("127.0.0.1")
        started = time.monotonic()
        subscriber = topic.subscribe(f"nginx-map:{nginx.map}", "--reload", nginx.reload).until_ready()
        print(f"read, written and told to nginx in {time.monotonic() - started:.1f} s")
        subscriber.until(lambda: always(nginx.port, 429), "nginx takes the map", 4 * PATIENCE_S)
        assert read(nginx.map).count(b"\n") == 100001
        nginx.run.stop()


# ---- HAProxy ----

class HAProxy:
    """HAProxy with the example's configuration, as master and worker."""

    def __init__(self, place):
        self.program, self.port = program("haproxy"), free_port()
        self.socket, self.map = place.path("weir.sock"), place.write("weir.map", "")
        text = example("haproxy.cfg", ("bind :80", f"bind 127.0.0.1:{self.port}"),
                       ("(/etc/haproxy/weir.map", f"({self.map}"), ("/run/haproxy/weir.sock mode", f"{self.socket} mode"),
                       ("127.0.0.1:8080", f"127.0.0.1:{Site().port}"))
        self.run = place.start("-W", "-db", "-f", place.write("haproxy.cfg", text), program=self.program)
        until(lambda: ask(self.port) == (200, None), "HAProxy answers", running=self.run)

    def tell(self, command):
        """The answer to a command of the runtime interface."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(self.socket)
            client.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: client.recv(65536), b""))

    def entries(self):
        """{key: value} of the map."""
        lines = self.tell(f"show map {self.map}").decode(errors="surrogateescape").split("\n")
        return dict(line.split(" ", 1)[1].rsplit(" ", 1) for line in lines if line)


def test_haproxy_blocks_and_lets_in_again(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--zone", "site").until_ready()
        check_block_and_return(topic, subscriber, haproxy.port)
        topic.block("127.0.0.1", zone="shop")
        topic.block("127.0.0.9")
        subscriber.until(lambda: "127.0.0.9" in haproxy.entries(), "the map")
        assert ask(haproxy.port) == (200, None)
        assert subscriber.value("rebuilds_total") == 1, "all of it were to be changes"
        assert subscriber.weir.stop() == 0
        assert haproxy.run.code() is None


def test_haproxy_that_was_reloaded_or_emptied_gets_the_list_again(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        topic.block("127.0.0.1")
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}")
        subscriber.until(lambda: always(haproxy.port, 429), "the client is blocked")
        haproxy.tell(f"clear map {haproxy.map}")
        subscriber.until(lambda: subscriber.value("rebuilds_total") == 2, "a copy after it was emptied")
        assert ask(haproxy.port)[0] == 429
        before = haproxy.tell("show info").split(b"\nPid: ")[1].split(b"\n")[0]

        def reloaded():
            try:
                return haproxy.tell("show info").split(b"\nPid: ")[1].split(b"\n")[0] != before
            except OSError:
                return False

        haproxy.run.signal(signal.SIGUSR2)
        subscriber.until(reloaded, "HAProxy has reloaded")
        subscriber.until(lambda: always(haproxy.port, 429), "the new process has the list")
        topic.lift("127.0.0.1")
        subscriber.until(lambda: always(haproxy.port, 200), "the client is let in by a lift")


def test_haproxy_takes_any_key(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        odd = ["a b", "a;b", "a\\b", "a|b", "a\tb", "<<", "x<", "'q'", '"q"', "Bob", "bob", "$x", "%[src]", "é", "@1"]

        def words():
            return {key.replace("\\", "\\\\").replace("|", "\\|") for key in odd}

        for key in odd[::2]:
            topic.block(key)
        for key in ("", "#1", "two\nlines"):
            topic.block(key)
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}", "--map", haproxy.map).until_ready()  # in a copy,
        topic.publish([topic.decision((key,)) for key in odd[1::2]])  # and by changes

        def keys():
            return {key.encode(errors="surrogateescape").decode() for key in haproxy.entries()}

        subscriber.until(lambda: keys() == words(), "all keys")
        assert subscriber.value("unfit_total") == 3
        topic.publish([topic.decision((key,), for_s=0) for key in odd])
        subscriber.until(lambda: not haproxy.entries(), "all are lifted")
        assert subscriber.value("errors_total") == 0


def test_haproxy_with_a_hundred_thousand_blocks(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)) for n in range(100000)])
        started = time.monotonic()
        subscriber = topic.subscribe(f"haproxy:{haproxy.socket}")
        subscriber.until(subscriber.is_ready, "the copy", 10 * PATIENCE_S)
        print(f"read and copied in {time.monotonic() - started:.1f} s")
        assert len(haproxy.entries()) == 100000
        started = time.monotonic()
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",), for_s=0) for n in range(20000)])
        topic.publish([topic.decision((f"11.0.{n >> 8 & 255}.{n & 255}",)) for n in range(20000)])
        subscriber.until(lambda: subscriber.value("lag_records") == 0, "all are read", 10 * PATIENCE_S)
        wanted = {key.decode() for _, key in topic.expected()}
        subscriber.until(lambda: set(haproxy.entries()) == wanted, "the changes", 10 * PATIENCE_S)
        print(f"20000 lifts and 20000 blocks in {time.monotonic() - started:.1f} s")


def test_a_haproxy_without_the_map_is_told_in_words(place):
    with cluster.shared() as c:
        topic, haproxy = Topic(place, c), HAProxy(place)
        wrong = place.run("subscribe", "--config", topic.config, "--to", f"haproxy:{haproxy.socket}", "--map", "other.map",
                          "--once")
        assert wrong.code() == 1 and 'uses no map "other.map"' in wrong.said(), wrong.said()
        wrong = place.run("subscribe", "--config", topic.config, "--to", f"haproxy:{place.path('none')}", "--once")
        assert wrong.code() == 1 and "cannot reach HAProxy" in wrong.said(), wrong.said()


# ---- nft ----

class Network:
    """A network namespace in which nft may be used; gone with the process that holds it."""

    RULES = """
        add table inet weir
        add set inet weir blocked { type ipv4_addr; flags timeout; }
        add set inet weir blocked6 { type ipv6_addr; flags interval, timeout; }
        add chain inet weir input { type filter hook input priority 0; }
        add rule inet weir input tcp dport 8080 ip saddr @blocked reject with tcp reset
        add rule inet weir input tcp dport 8080 ip6 saddr @blocked6 reject with tcp reset
    """

    def __init__(self, place):
        self.place = place
        nft, unshare, nsenter = program("nft"), program("unshare"), program("nsenter")
        words = ["--net"] if os.geteuid() == 0 else ["--net", "--user", "--map-root-user"]
        may = subprocess.run([unshare, *words, nft, "add", "table", "inet", "weir"], capture_output=True, check=False)
        if may.returncode != 0:
            raise cases.Skipped(f"nft cannot be used here, in a network namespace: {may.stderr.decode().strip()}")
        self.holder = place.start(*words, "sh", "-c", "echo ready; exec sleep 3600", program=unshare)
        until(self.holder.out, "the namespace", running=self.holder)
        self.enter = [nsenter, "--target", str(self.holder.pid), "--net"]
        if os.geteuid() != 0:
            self.enter += ["--user", "--preserve-credentials"]
        wrapper = place.write("bin/nft", f"#!/bin/sh\nexec {' '.join(self.enter)} {nft} \"$@\"\n")
        os.chmod(wrapper, 0o755)
        self.environment = {**os.environ, "PATH": f"{place.path('bin')}:{os.environ['PATH']}"}
        for command in ("ip link set lo up", "ip address add 203.0.113.9/32 dev lo",
                        "ip address add 203.0.113.10/32 dev lo", "ip address add 2001:db8::9/128 dev lo nodad"):
            self.good(*command.split())
        self.nft(self.RULES)
        self.server = place.start(*self.enter[1:], sys.executable, "-m", "http.server", "8080", "--bind", "::",
                                  "--directory", place.path("bin"), program=self.enter[0])
        until(lambda: self.is_let_in("203.0.113.10"), "the server answers", running=self.server)

    def good(self, *words, **more):
        """Runs a program in the namespace: its output."""
        done = subprocess.run([*self.enter, *words], capture_output=True, check=False, **more)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode()

    def nft(self, script):
        """Runs a script of nft."""
        return self.good("nft", "-f", "-", input=script.encode())

    def elements(self, name):
        """The lines of a set that tell of elements."""
        return self.good("nft", "list", "set", "inet", "weir", name).partition("elements = ")[2]

    def is_let_in(self, source, host="127.0.0.1"):
        """Whether a connection from an address is accepted."""
        script = ("import socket, sys\n"
                  "try: socket.create_connection((sys.argv[1], 8080), 10, (sys.argv[2], 0)).close()\n"
                  "except OSError: sys.exit(9)\n")
        done = subprocess.run([*self.enter, sys.executable, "-c", script, host, source], check=False)
        assert done.returncode in (0, 9)
        return done.returncode == 0


def test_nft_blocks_and_lets_in_again(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.block("203.0.113.10", for_s=3600)
        subscriber = topic.subscribe("nft:inet/weir/blocked,blocked6", env=network.environment).until_ready()
        assert not network.is_let_in("203.0.113.10")
        assert network.is_let_in("203.0.113.9") and network.is_let_in("2001:db8::9", "::1")
        block = topic.block("203.0.113.9", for_s=BLOCK_S)
        topic.block("2001:db8::/32", for_s=BLOCK_S)
        topic.block("bob")
        topic.block("203.0.113.0/24")  # that set takes no networks
        subscriber.until(lambda: not network.is_let_in("203.0.113.9"), "the address is blocked")
        subscriber.until(lambda: not network.is_let_in("2001:db8::9", "::1"), "the network is blocked")
        subscriber.until(lambda: network.is_let_in("203.0.113.9"), "it is let in again")
        assert now_ms() >= block["until"] - 20, "before its time"
        subscriber.until(lambda: network.is_let_in("2001:db8::9", "::1"), "the network is let in again")
        assert not network.is_let_in("203.0.113.10")
        assert subscriber.value("unfit_total") == 2 and subscriber.value("errors_total") == 0
        # A longer block in place of a shorter, a lift, a block without end.
        topic.block("203.0.113.10", for_s=7200)
        subscriber.until(lambda: "2h" in network.elements("blocked") or "1h59m" in network.elements("blocked"), "longer")
        topic.lift("203.0.113.10")
        subscriber.until(lambda: network.is_let_in("203.0.113.10"), "a lift lets in")
        topic.block("203.0.113.9", for_s=None)
        subscriber.until(lambda: "203.0.113.9" in network.elements("blocked"), "a block without end")
        assert "timeout" not in network.elements("blocked")
        assert subscriber.weir.stop() == 0


def test_nft_sets_that_were_flushed_or_made_anew_get_the_list_again(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        topic.publish([topic.decision((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)) for n in range(20000)])
        topic.block("203.0.113.9")
        started = time.monotonic()
        subscriber = topic.subscribe("nft:inet/weir/blocked", env=network.environment).until_ready()
        print(f"20001 blocks read and in the kernel in {time.monotonic() - started:.1f} s")
        assert network.elements("blocked").count("expires") == 20001
        network.nft("flush set inet weir blocked")
        subscriber.until(lambda: not network.is_let_in("203.0.113.9"), "the list is there again")
        network.nft("delete table inet weir")
        subscriber.until(lambda: not subscriber.is_ready(), "it says that the set is gone")
        network.nft(network.RULES)
        subscriber.until_ready()
        assert not network.is_let_in("203.0.113.9")
        assert "trying again" in subscriber.weir.said()


def test_nft_refuses_what_overlaps_and_keeps_the_rest(place):
    network = Network(place)
    with cluster.shared() as c:
        topic = Topic(place, c)
        keys = [f"2001:db8:{n:x}::/48" for n in range(50)] + ["2001:db8::/32", "2001:db8:7::1"]
        topic.publish([topic.decision((key,)) for key in keys[:30]])
        subscriber = topic.subscribe("nft:inet/weir/blocked6", env=network.environment).until_ready()
        topic.publish([topic.decision((key,)) for key in keys[30:]])
        subscriber.until(lambda: network.elements("blocked6").count("expires") >= 50, "what fits")
        subscriber.until(lambda: subscriber.value("unfit_total") == 2, "what does not is counted")
        before = subscriber.value("rebuilds_total")
        subscriber.weir.signal(signal.SIGHUP)
        subscriber.until(lambda: subscriber.value("rebuilds_total") > before, "a copy")
        assert network.elements("blocked6").count("expires") >= 1
        assert not network.is_let_in("2001:db8::9", "::1")


if __name__ == "__main__":
    cases.main(globals())
