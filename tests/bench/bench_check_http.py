#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks by HTTP against nginx' `return 200`, in turns: requests a second over 32 connections, and the server's processor time.

`weir run` as it is, with one worker: what is asked is judged, answered and goes into the log. Each request is of one of a
million clients at random, as nginx' auth_request asks. nginx has one worker, and gets the same requests.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import bench
from support.check_http import Weir
from support.place import free_port, until
from support.check_http import Caller
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


def run(port, pid, script):
    """(requests a second, ns of the server for a request)"""
    before = bench.cpu_s(pid)
    done = subprocess.run([find("wrk"), "-t1", "-c32", f"-d{SECONDS}s", "-s", script, f"http://127.0.0.1:{port}"],
                          capture_output=True, text=True, timeout=600, check=True)
    rate, errors = done.stdout.splitlines()[-1].split()
    # A log that is slow for a moment makes some checks unavailable, which costs as much to answer.
    assert int(errors) < float(rate) * SECONDS / 2, done.stdout
    return float(rate), (bench.cpu_s(pid) - before) / (float(rate) * SECONDS) * 1e9


def measure(place):
    """Both in turn."""
    script, port = place.write("load.lua", LOAD), free_port()
    os.makedirs(place.path("nginx"), exist_ok=True)
    paths = " ".join(f"{kind}_temp_path {place.path('nginx', kind)};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = place.write("nginx.conf", "daemon off; master_process off; error_log stderr; pid " + place.path("nginx", "pid") +
                         "; events {} http { access_log off; keepalive_requests 100000000; " + paths +
                         f" server {{ listen 127.0.0.1:{port}; location / {{ return 200; }} }} }}")
    weir = Weir(place, [zone("site", [sliding(1000000, "1m")], key=["ip"])], threads=1).ready("site")
    with subprocess.Popen([find("nginx"), "-p", place.path("nginx"), "-c", config], stderr=subprocess.DEVNULL) as nginx:
        try:
            def answers():
                with Caller(port) as caller:
                    return caller.ask("/")[0] == 200
            until(lambda: nginx.poll() is None and tries(answers), "nginx serves")
            seen = {"weir": [], "nginx": []}
            for _ in range(RUNS):
                seen["nginx"].append(run(port, nginx.pid, script))
                seen["weir"].append(run(weir.port, weir.process.pid, script))
        finally:
            nginx.terminate()
    weir.stop()
    rates = {name: sorted(rate for rate, _ in runs)[len(runs) // 2] for name, runs in seen.items()}
    costs = {name: sorted(ns for _, ns in runs)[len(runs) // 2] for name, runs in seen.items()}
    bench.report("check_http", weir=round(rates["weir"]), nginx=round(rates["nginx"]), of_nginx=round(rates["weir"] / rates["nginx"], 2),
                 weir_ns=round(costs["weir"]), nginx_ns=round(costs["nginx"]))


def tries(ask):
    """Whether it answers; False while nobody listens."""
    try:
        return ask()
    except OSError:
        return False


if __name__ == "__main__":
    bench.main("check_http", measure)
