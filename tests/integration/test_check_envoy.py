#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real Envoy asks weir: deploy/gateways/envoy.yaml as it stands, quotas by its filter rate_limit_quota, and by HTTP
deploy/gateways/checks/envoy.yaml."""

import contextlib
import glob
import http.client
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support.rate_limits import Caller, descriptor, serving

from support import asking_gateways as asking
from support import asking_logs, cases, venv
from support.gateways import Site, example
from support.place import PATIENCE_S, free_port, until
from support.traffic import sliding, zone

QUOTA = """
                  - name: envoy.filters.http.rate_limit_quota
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig
                      domain: site
                      rlqs_server: { envoy_grpc: { cluster_name: weir } }
                      bucket_matchers:
                        on_no_match:
                          action:
                            name: rate_limit_quota
                            typed_config:
                              "@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings
                              bucket_id_builder: { bucket_id_builder: { user: { string_value: all } } }
                              reporting_interval: 0.2s
                              no_assignment_behavior: { fallback_rate_limit: { blanket_rule: DENY_ALL } }
                              expired_assignment_behavior: { fallback_rate_limit: { blanket_rule: DENY_ALL } }
"""


def program():
    """The path of Envoy."""
    home = os.path.dirname(os.path.dirname(venv.made("envoy")))
    return glob.glob(os.path.join(home, "lib/python*/site-packages/envoy/_bin/envoy"))[0]


def get(port, path="/"):
    """(status, headers) of a page; (None, None) while nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    except OSError:
        return None, None
    finally:
        connection.close()


@contextlib.contextmanager
def envoy(place, weir_port, *changes, number=0):
    """Envoy by the example: its port."""
    port = free_port()
    config = place.write(f"envoy-{number}.yaml", example(
        "envoy.yaml", ("port_value: 8000", f"port_value: {port}"), ("port_value: 8080", f"port_value: {Site().port}"),
        ("port_value: 8081", f"port_value: {weir_port}"), *changes))
    with open(place.path(f"envoy-{number}.log"), "wb") as log:
        # pylint: disable-next=consider-using-with
        server = subprocess.Popen([program(), "-c", config, "--use-dynamic-base-id", "--concurrency", "2", "-l", "warning"],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: get(port, "/up")[0], "Envoy answers")
        yield port
        assert server.poll() is None, "Envoy ended"
    finally:
        server.kill()
        server.wait()


def test_the_example(place):
    zones = [zone("client", [sliding(20, "1m")], key=["ip"], match={"domain": ["site"]}),
             zone("login", [sliding(5, "1h")], key=["ip"], match={"domain": ["site"], "path": ["/login*"]})]
    with serving(place, zones) as (weir, port), envoy(place, port) as site:
        until(lambda: (get(site, "/login")[1] or {}).get("RateLimit"), "Envoy asks weir")
        answers = [get(site, "/login") for _ in range(5)]
        assert [status for status, _ in answers][-1] == 429, answers
        limited = answers[-1][1]
        assert limited["RateLimit"].startswith('"login";r=0;t='), limited["RateLimit"]
        assert '"login";q=5;w=3600' in limited["RateLimit-Policy"] and 3500 < int(limited["Retry-After"]) <= 3600
        assert limited["x-envoy-ratelimited"] == "true"
        statuses = [get(site)[0] for _ in range(20)]
        assert statuses[0] == 200 and statuses[-1] == 429, statuses
        # nobody is kept out while weir is away
        assert weir.stop() == 0, weir.said()
        until(lambda: get(site)[0] == 200, "all pass while weir is away")


def test_the_longest_path_counts(place):
    """What Envoy takes from its client weir takes too, in several descriptors: Envoy lets pass what weir refuses."""
    one = "                              - actions: # one descriptor"
    more = "".join(f"""                              - actions:
                                  - generic_key: {{ descriptor_key: number, descriptor_value: "{number}" }}
                                  - request_headers: {{ header_name: ":path", descriptor_key: path }}
""" for number in range(3))
    zones = [zone("client", [sliding(20, "1h")], key=["ip"], match={"domain": ["site"]})]
    with serving(place, zones) as (_, port), envoy(place, port, (one, more + one)) as site:
        for size in (100, 15000, 17000, 30000, 60000):
            before = int(until(lambda: (get(site, "/")[1] or {}).get("RateLimit"), "Envoy asks weir").split(";")[1][2:])
            status, headers = get(site, "/" + "a" * size)
            assert status == 200 and headers["RateLimit"].startswith(f'"client";r={before - 1};'), (size, status, str(headers))


def test_several_envoys_share_a_limit_exactly(place):
    """As many pass as the limit says, however many workers and gateways ask."""
    with serving(place, [zone("client", [sliding(100, "1h")], key=["path"], match={"path": ["/exact"]})]) as (_, port), \
            envoy(place, port) as one, envoy(place, port, number=1) as two:
        passed, lock = [], threading.Lock()

        def ask(site):
            for _ in range(20):
                status, headers = get(site, "/exact")
                assert status in (200, 429), status
                if status == 200:
                    with lock:
                        passed.append("RateLimit" in headers)
        threads = [threading.Thread(target=ask, args=(site,)) for site in (one, two) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # an answer without fields was let pass by Envoy itself, after its timeout
        assert sum(passed) <= 100 and (sum(passed) == 100 or not all(passed)), passed


def by_quotas():
    """The change of the example that asks for quotas in place of checks."""
    text = example("envoy.yaml")
    start, end = text.index("                  - name: envoy.filters.http.ratelimit\n"), text.index(
        "                  - name: envoy.filters.http.router")
    return text[start:end], QUOTA[1:]


def counted(port, limit):
    """What is counted of the quota's bucket."""
    with Caller(port) as caller:
        return limit - caller.ask(descriptor(0, user="all"), domain="site").statuses[0].limit_remaining


def test_a_quota_is_used(place):
    """One assignment after another is let pass, and nearly nothing is counted that is not."""
    limit = 100000
    zones = [zone("all", [sliding(limit, "1h")], key=["user"], match={"domain": ["site"]})]
    with serving(place, zones) as (_, port), envoy(place, port, by_quotas()) as site:
        until(lambda: get(site)[0] == 200, "the first assignment has come")
        asked, passed, began_s = [0, 0], [0, 0], time.monotonic()
        while time.monotonic() < began_s + 22:
            steady = time.monotonic() > began_s + 7  # Envoy reports every 5 s: what it needs is known then
            asked[steady] += 1
            passed[steady] += get(site)[0] == 200
            time.sleep(0.02)  # nothing is caught up: that would be another demand
        assert asked[1] > 100 and passed[1] >= asked[1] * 0.95, (passed, asked)
        assert sum(passed) <= counted(port, limit) <= 3 * sum(asked), (passed, asked, counted(port, limit))


def test_quotas(place):
    """Two gateways with assignments: together they pass what the limit says, neither more nor less."""
    limit = 60
    change = by_quotas()
    zones = [zone("all", [sliding(limit, "1h")], key=["user"], match={"domain": ["site"]})]
    with serving(place, zones) as (_, port), envoy(place, port, change) as one, envoy(place, port, change, number=1) as two:
        passed, until_s = [0, 0], time.monotonic() + 40
        while time.monotonic() < until_s and sum(passed) < limit:
            for number, site in enumerate((one, two)):
                passed[number] += get(site)[0] == 200
            time.sleep(0.01)
        for _ in range(100):
            for number, site in enumerate((one, two)):
                passed[number] += get(site)[0] == 200
        assert sum(passed) == limit == counted(port, limit) and min(passed) > 0, passed


# ---- by HTTP: ext_authz ----

def begin(place, number, port, weir, site, *changes):
    """Envoy by the example that asks by HTTP."""
    config = place.write(f"ext-authz-{number}.yaml", example(
        "checks/envoy.yaml", ("port_value: 8080", f"port_value: {port}"), ("port_value: 8000", f"port_value: {site}"),
        ("port_value: 8082", f"port_value: {weir}"), *changes))
    return place.start("-c", config, "--file-flush-interval-msec", "100", "--use-dynamic-base-id", "--concurrency", "2", "-l", "warning", program=program())


globals().update(asking.tests(begin, {503: 200, 401: 401}, "by_http_"))


def test_lines_say_what_was_asked(place):
    names = {"start_time": "START_TIME", "method": "REQ(:METHOD)", "path": "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)", "authority": "REQ(:AUTHORITY)",
             "user_agent": "REQ(USER-AGENT)", "downstream_remote_address": "DOWNSTREAM_REMOTE_ADDRESS", "response_code": "RESPONSE_CODE"}
    form = ", ".join(f'{name}: "%{value}%"' for name, value in names.items())
    log = f"""                stat_prefix: site
                access_log:
                  - name: envoy.access_loggers.file
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
                      path: {place.path("access.log")}
                      log_format: {{ json_format: {{ {form} }} }}
"""

    def with_log(*where):
        return begin(*where, ("                stat_prefix: site\n", log))
    asking_logs.lines_say_what_was_asked(place, with_log, "envoy", asking_logs.file_of("access.log"))


if __name__ == "__main__":
    cases.main(globals())
