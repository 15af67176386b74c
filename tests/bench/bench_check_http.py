#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks by HTTP against nginx' `return 200`, in turns: requests a second over 32 connections, and the server's processor time.

`weir run` as it is, with one worker: what is asked is judged, answered and goes into the log. Each request is of one of a
million clients at random, as nginx' auth_request asks. nginx has one worker, and gets the same requests.

check_auth_request: an nginx that gives a small file, without asking anybody, asking an nginx that says 200 to everything by
auth_request, and asking weir. What asking costs nginx itself is the second.
"""

import contextlib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench, metrics
from support.cases import Skipped
from support.check_http import Caller, Weir
from support.place import free_port, until
from support.traffic import sliding, zone

from parts.programs import find  # pylint: disable=wrong-import-order

RUNS, SECONDS = (1, 1) if bench.SMOKE else (5, 5)

LOAD = """
request = function()
  return wrk.format("GET", "/v1/nginx", {["X-Original-Method"] = "GET", ["X-Original-URI"] = "/a/page?x=y",
    ["X-Forwarded-For"] = math.random(1, 223) .. "." .. math.random(0, 255) .. "." .. math.random(0, 15) .. ".1"})
end
done = function(summary)
  io.write(string.format("%f %d\\n", summary.requests / summary.duration * 1e6, summary.errors.status + summary.errors.timeout))
end
"""


ASKS = """location / { auth_request /asked; } location = /asked { internal; proxy_pass http://%s%s; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_pass_request_body off; proxy_pass_request_headers off; proxy_set_header Content-Length "";
proxy_set_header X-Original-Method $request_method; proxy_set_header X-Original-URI $request_uri;
proxy_set_header X-Forwarded-For $http_x_forwarded_for; proxy_set_header Host $host; }"""


def run(port, pids, script):
    """(requests a second, ns of the servers for a request)"""
    before = sum(map(bench.cpu_s, pids))
    done = subprocess.run(["wrk", "-t1", "-c32", f"-d{SECONDS}s", "-s", script, f"http://127.0.0.1:{port}"],
                          capture_output=True, text=True, timeout=600, check=True)
    rate, errors = done.stdout.splitlines()[-1].split()
    # A log that is slow for a moment makes some checks unavailable, which costs as much to answer.
    assert int(errors) < float(rate) * SECONDS / 2, done.stdout
    return float(rate), (sum(map(bench.cpu_s, pids)) - before) / (float(rate) * SECONDS) * 1e9


@contextlib.contextmanager
def nginx(place, name, servers, before=""):
    """One worker, with servers: {port: what each has}; its pid."""
    os.makedirs(place.path(name), exist_ok=True)
    paths = " ".join(f"{kind}_temp_path {place.path(name, kind)};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = place.write(f"{name}.conf", "daemon off; master_process off; error_log stderr; pid " + place.path(name, "pid") +
                         "; events {} http { access_log off; keepalive_requests 100000000; " + paths + before +
                         " ".join(f"server {{ listen 127.0.0.1:{port}; {has} }}" for port, has in servers.items()) + " }")
    with subprocess.Popen([find("nginx"), "-p", place.path(name), "-c", config], stderr=subprocess.DEVNULL) as process:
        try:
            for port in servers:
                def answers(port=port):
                    with Caller(port) as caller:
                        return caller.ask("/v1/nginx", x_forwarded_for="192.0.2.1")[0] == 200
                until(lambda answers=answers: process.poll() is None and tries(answers), "nginx serves")
            yield process.pid
        finally:
            process.terminate()


def in_turns(targets, script):
    """{name: (port, pids)} to medians: {name: requests a second}, {name: ns}"""
    seen = {name: [] for name in targets}
    for _ in range(RUNS):
        for name, (port, pids) in targets.items():
            seen[name].append(run(port, pids, script))
    middle = lambda of: {name: round(sorted(pair[of] for pair in runs)[len(runs) // 2]) for name, runs in seen.items()}
    return middle(0), middle(1)


def measure(place):
    """Alone, and behind a gateway."""
    if shutil.which("wrk") is None:
        raise Skipped("no wrk here (deploy/packages bench)")
    script, direct = place.write("load.lua", LOAD), free_port()
    place.write("pages/v1/nginx", "a page\n")
    weir = Weir(place, [zone("site", [sliding(1000000, "1m")], key=["ip"])], threads=1).ready("site")
    with nginx(place, "direct", {direct: "location / { return 200; }"}) as said:
        rates, costs = in_turns({"nginx": (direct, [said]), "weir": (weir.port, [weir.process.pid])}, script)
        bench.report("check_http", weir=rates["weir"], nginx=rates["nginx"], of_nginx=round(rates["weir"] / rates["nginx"], 2),
                     weir_ns=costs["weir"], nginx_ns=costs["nginx"])
        plain, asks, checks = free_port(), free_port(), free_port()
        root = f"root {place.path('pages')}; "
        upstreams = f" upstream asked {{ server 127.0.0.1:{direct}; keepalive 32; }} upstream weir {{ server 127.0.0.1:{weir.port}; keepalive 32; }} "
        with nginx(place, "gateway", {plain: root, asks: root + ASKS % ("asked", "/"), checks: root + ASKS % ("weir", "/v1/nginx")},
                   upstreams) as gateway:
            before = metrics.scrape(weir.pages).sum("weir_check_answers_total")
            rates, costs = in_turns({"plain": (plain, [gateway]), "asks": (asks, [gateway, said]), "checks": (checks, [gateway, weir.process.pid])}, script)
        asked = metrics.scrape(weir.pages).sum("weir_check_answers_total") - before
        assert asked > rates["checks"] * SECONDS * RUNS / 4, f"weir was asked {asked} times"
    weir.stop()
    bench.report("check_auth_request", plain=rates["plain"], asks_nginx=rates["asks"], asks_weir=rates["checks"],
                 of_plain=round(rates["checks"] / rates["plain"], 2), of_asking_nginx=round(rates["checks"] / rates["asks"], 2),
                 plain_ns=costs["plain"], asks_nginx_ns=costs["asks"], asks_weir_ns=costs["checks"])


def tries(ask):
    """Whether it answers; False while nobody listens."""
    try:
        return ask()
    except OSError:
        return False


if __name__ == "__main__":
    bench.main("check_http", measure)
