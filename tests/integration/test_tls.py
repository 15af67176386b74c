#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages and API by TLS, as curl, Python and weir's own commands meet them; what cannot serve is refused before a start."""

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.gateways import program
from support.place import ROOT, free_port, until
from support.traffic import line, sliding, source, zone

TOKEN = "a-token-of-a-test"
START_MS = 1000 * int(time.time())


def certificate(place, name, *more, subject="IP:127.0.0.1"):
    """A certificate that signs itself: its path and its key's."""
    paths = place.path(f"{name}.crt"), place.path(f"{name}.key")
    subprocess.run([program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName={subject}", "-out", paths[0], "-keyout", paths[1],
                    *(more or ("-days", "3"))], check=True, capture_output=True)
    return paths


class Served:
    """A `weir run` whose pages and API speak TLS."""

    def __init__(self, place, pair, **more):
        self.place, self.pages, self.api = place, free_port(), free_port()
        self.config = place.config(
            [zone("site", [sliding(3, "1m")], id=1, block_for="1h")],
            [source(place.write("log", "".join(line(START_MS + i, "ann") for i in range(4))))],
            archiver={"enabled": True, "interval": "100ms", "api": f"127.0.0.1:{self.api}", "api_certificate": pair[0],
                      "api_key": pair[1], "tokens": [{"file": place.write("token", TOKEN + "\n")}]},
            listen={"http": f"127.0.0.1:{self.pages}", "certificate": pair[0], "key": pair[1], **more})

    def start(self, *more):
        """Starts it."""
        return self.place.start("run", "--config", self.config, "--state", self.place.path("state"), "--decisions",
                                self.place.path("decisions"), *more)


def curl(*words):
    """(its code, what it was answered, what it said)"""
    done = subprocess.run([program("curl"), "-sS", "--max-time", "20", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_pages_and_api_by_curl_and_weir(place):
    pair, other = certificate(place, "own"), certificate(place, "other")
    served = Served(place, pair)
    weir = served.start()
    page, api = f"https://127.0.0.1:{served.pages}", f"https://127.0.0.1:{served.api}"
    until(lambda: curl("--cacert", pair[0], page + "/readyz")[1] == "ok\n", "it is ready", running=weir)
    for words in (("--tls-max", "1.2"), ("--tlsv1.3",), ("--http1.0",)):
        assert curl(*words, "--cacert", pair[0], page + "/healthz")[:2] == (0, "ok\n"), words
    assert curl("--cacert", other[0], page + "/healthz")[:2] == (60, "")
    code, text, _ = curl("-k", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0", page + "/healthz")
    assert code == 35 and text == "", "TLS 1.1 is served"
    code, text, _ = curl(f"http://127.0.0.1:{served.pages}/healthz")
    assert code == 0 and text == "this port speaks TLS: ask it by https://\n", (code, text)
    metrics = curl("--cacert", pair[0], page + "/metrics")[1]
    assert "\nweir_http_certificate_expires_timestamp_seconds 1" in metrics, metrics
    assert "\nweir_api_certificate_expires_timestamp_seconds 1" in metrics, metrics
    # The API asks for its token as before; the page is there.
    assert '"error"' in curl("--cacert", pair[0], api + "/api/v1/status")[1]
    status = json.loads(curl("--cacert", pair[0], "-H", f"Authorization: Bearer {TOKEN}", api + "/api/v1/status")[1])
    assert status["store"] == "sqlite" and status["figures"]["weir_archiver_waiting_seconds"] >= 0, status["figures"]
    assert "<!doctype html>" in curl("--cacert", pair[0], api + "/")[1].lower()
    top = ["top", "--url", api, "--token", place.path("token"), "--once"]
    until(lambda: "ann" in place.run(*top, "--ca", pair[0]).out().decode(), "top shows who is blocked", running=weir)
    assert place.run(*top, "--ca", other[0]).code() == 1
    assert weir.stop() == 0, weir.said()
    assert TOKEN not in weir.said()
    # weir serve takes the API's certificate from the configuration.
    port = free_port()
    serve = place.start("serve", "--state", place.path("state"), "--http", f"127.0.0.1:{port}", "--config", served.config)
    until(lambda: curl("--cacert", pair[0], f"https://127.0.0.1:{port}/")[0] == 0, "the page is served", running=serve)
    assert serve.out().decode() == f"https://127.0.0.1:{port}/\n"
    assert serve.stop() == 0


def test_a_renewal_as_certbot_does_it_needs_no_restart(place):
    """Two links, to files that stay; Python asks before and after, on connections that are kept and on new ones."""
    pairs = [certificate(place, f"archive{i}", "-days", str(days)) for i, days in enumerate((3, 90))]
    links = place.path("fullchain.pem"), place.path("privkey.pem")

    def lead(to):
        for link, target in zip(links, to):
            os.symlink(target, link + ".new")
            os.replace(link + ".new", link)

    lead(pairs[0])
    served = Served(place, links)
    weir = served.start()
    url = f"https://127.0.0.1:{served.pages}/healthz"

    def trusts(pair):
        try:
            with urllib.request.urlopen(url, timeout=20, context=ssl.create_default_context(cafile=pair[0])) as answer:
                return answer.read() == b"ok\n"
        except OSError:
            return False

    until(lambda: trusts(pairs[0]), "it is ready", running=weir)
    assert not trusts(pairs[1])
    lead(pairs[1])
    until(lambda: trusts(pairs[1]), "the new certificate is shown", running=weir)
    assert not trusts(pairs[0])
    until(lambda: weir.said().count("the certificate was read again") == 2, "both listeners have said it", running=weir)
    assert weir.stop() == 0, weir.said()


def test_a_containers_check_asks_by_tls(place):
    served = Served(place, certificate(place, "own"))
    weir = served.start()

    def ask(page):
        done = subprocess.run([program("bash"), os.path.join(ROOT, "deploy/compose/ask"), page, str(served.pages)],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    until(lambda: ask("/readyz") == (0, ""), "it is ready", running=weir)
    code, words = ask("/nothing")
    assert code == 1 and "404" in words and weir.stop() == 0, (words, weir.said())


def test_what_cannot_serve_is_refused_before_a_start(place):
    pair, other = certificate(place, "own"), certificate(place, "other")
    mixed = Served(place, (pair[0], other[1]))
    for done in (place.run("validate", "--config", mixed.config), mixed.start()):
        done.wait()
        assert done.code() == 2 and f"listen.key: {other[1]} is not the key of" in done.said(), done.said()
    done = place.run("subscribe", "--config", mixed.config, "--to", f"file:{place.path('list')}", "--http", "127.0.0.1:0", "--once")
    assert done.code() == 2 and "is not the key of" in done.said(), done.said()
    missing = Served(place, (pair[0], place.path("nothing")))
    done = place.run("validate", "--config", missing.config)
    assert done.code() == 2 and f"listen.key: cannot open {place.path('nothing')}" in done.said(), done.said()
    for member, words in (({"key": None}, "listen.key: is missing"), ({"certificate": None}, "listen.certificate: is missing")):
        with open(Served(place, pair).config, encoding="utf-8") as file:
            whole = json.load(file)
        whole["listen"] = {name: value for name, value in whole["listen"].items() if name not in member}
        done = place.run("validate", "--config", place.write("half.json", json.dumps(whole)))
        assert done.code() == 2 and words in done.said(), done.said()
    # A daemon looks at its own files before it waits for servers, and at no others'.
    collector = os.path.join(os.path.dirname(place.weir), "weir-collector")
    if not os.access(collector, os.X_OK):
        raise cases.Skipped("weir-collector is not built")
    with open(Served(place, (pair[0], other[1])).config, encoding="utf-8") as file:
        whole = json.load(file)
    whole["bus"] = {"type": "kafka", "brokers": "127.0.0.1:1"}
    for words in (["--check"], ["--state", place.path("collector")]):
        done = place.run("--config", place.write("cluster.json", json.dumps(whole)), *words, program=collector)
        assert done.code() == 2 and "is not the key of" in done.said(), done.said()


def test_a_check_says_what_clients_of_the_api_will_refuse(place):
    archiver = os.path.join(os.path.dirname(place.weir), "weir-archiver")
    if not os.access(archiver, os.X_OK):
        raise cases.Skipped("weir-archiver is not built")
    pair = certificate(place, "own")
    os.chmod(pair[1], 0o644)
    with open(Served(place, pair).config, encoding="utf-8") as file:
        whole = json.load(file)
    whole.update(bus={"type": "kafka", "brokers": "127.0.0.1:1"}, store={"type": "mysql", "host": "127.0.0.1"})
    del whole["listen"]
    done = place.run("--config", place.write("cluster.json", json.dumps(whole)), "--check", program=archiver)
    assert "\nAPI: " in done.out().decode() and "every user on this machine can read" in done.out().decode(), done.out() + done.said().encode()


if __name__ == "__main__":
    cases.main(globals())
