#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/metrics, /healthz and /readyz: a page that Prometheus reads, whose numbers are true."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics, traffic
from support.place import free_port, lines_of, until
from support.traffic import burst, line, site, sliding, source, zone

LOG = 'an "odd" \\log'
ZONES = site(2) + [zone("late", [sliding(100, "1s")], id=2),
                   zone("quiet", [sliding(1, "1m")], id=3, mode="shadow"),
                   zone("odd", [sliding(9, "1m")], id=4, match={"path": ["/odd"]})]
TEXT = (burst("ann", 4) + "garbage\n" + '{"user":"ann"}\n' + line("soon", "ann") + line(-5, "ann")
        + line(traffic.START_MS - 60000, "ann") + burst("bob", 1, path="/odd"))


def serve(place, zones, text, **sections):
    """A weir that follows a log and serves: (weir, port)."""
    port = free_port()
    config = place.config(zones, [source(place.write(LOG, text))], listen={"http": f"127.0.0.1:{port}"}, **sections)
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("out"),
                       "--shadow", place.path("shadow"), "--summary", "json")
    return weir, port


def await_page(weir, port, condition, what):
    """The first page that a condition holds for."""
    pages = []

    def good():
        page = metrics.scrape(port)
        pages.append(page)
        return page is not None and condition(page)

    until(good, what, running=weir)
    return pages[-1]


def test_counts_are_those_of_the_input(place):
    weir, port = serve(place, ZONES, TEXT)
    page = await_page(weir, port, lambda page: page.sum("weir_limiter_verdicts_total") == 19 and
                      page.value("weir_collector_lines_total") == 10, "all verdicts")
    assert page.value("weir_collector_records_total") == 6
    assert page.value("weir_source_lines_total", source=place.path(LOG)) == 10
    assert page.value("weir_limiter_events_total") >= 6
    for zone_name, passed, blocked, late, decisions in (
            ("site", 4, 2, 1, 1), ("late", 6, 0, 1, 0), ("quiet", 3, 3, 1, 1), ("odd", 1, 0, 0, 0)):
        seen = (page.value("weir_limiter_verdicts_total", zone=zone_name, verdict="pass"),
                page.value("weir_limiter_verdicts_total", zone=zone_name, verdict="block"),
                page.value("weir_limiter_late_total", zone=zone_name), page.value("weir_limiter_decisions_total", zone=zone_name))
        assert seen == (passed, blocked, late, decisions), f"{zone_name}: {seen}"
    for reason in ("not json", "no time", "bad time", "time out of range"):
        assert page.value("weir_collector_malformed_total", reason=reason) == 1, reason
    assert page.sum("weir_collector_malformed_total") == 4
    assert weir.stop() == 0, weir.said()
    assert weir.summary()["zones"]["site"]["passed"] == 4


def test_every_series_that_is_promised_is_there_and_described(place):
    weir, port = serve(place, ZONES, TEXT, limiter={"checkpoint_interval": "100ms"})
    page = await_page(weir, port, lambda page: page.sum("weir_limiter_verdicts_total") == 19 and
                      page.sum("weir_limiter_checkpoint_seconds_count") > 0 and
                      page.sum("weir_limiter_buckets") == 7, "all verdicts and a checkpoint")
    kinds = {"weir_limiter_events_total": "counter", "weir_limiter_verdicts_total": "counter", "weir_limiter_decisions_total": "counter",
             "weir_limiter_late_total": "counter", "weir_collector_malformed_total": "counter", "weir_source_lag_seconds": "gauge",
             "weir_limiter_buckets": "gauge", "weir_limiter_buckets_spilled": "gauge", "weir_limiter_state_bytes": "gauge",
             "weir_limiter_unsaved_age_seconds": "gauge", "weir_limiter_checkpoint_seconds": "histogram",
             "weir_limiter_batch_seconds": "histogram"}
    for name, kind in kinds.items():
        assert page.types.get(name) == kind, f"{name} is {page.types.get(name)}, not {kind}"
    for name in page.types:
        assert name.startswith(("weir_", "process_")) and page.helps.get(name), f"{name} is not described"
        assert (page.types[name] == "counter") == name.endswith("_total"), f"{name} is {page.types[name]}"
    assert page.value("weir_source_lag_seconds", source=place.path(LOG)) == 0
    assert page.value("weir_source_lag_bytes", source=place.path(LOG)) == 0
    assert page.value("weir_source_guarantee", source=place.path(LOG), guarantee="exactly once") == 1
    assert page.value("weir_limiter_buckets_spilled") == 0
    assert page.value("weir_limiter_state_bytes") > 0
    assert page.value("weir_limiter_batch_seconds_count") > 0
    assert page.sum("weir_limiter_decision_delay_seconds_count") == page.sum("weir_limiter_decisions_total") > 0
    assert page.value("weir_limiter_memory_limit_bytes") > page.value("weir_limiter_state_bytes")
    ((build, labels),) = [sample for sample in page.samples if sample[0] == "weir_build_info"]
    assert build and dict(labels)["role"] == "run" and dict(labels)["version"], labels
    assert page.value("process_resident_memory_bytes") > 1 << 20 and page.value("process_cpu_seconds_total") > 0
    assert 0 < page.value("process_open_fds") < page.value("process_max_fds")
    assert abs(page.value("process_start_time_seconds") - time.time()) < 600
    assert page.value("weir_limiter_unsaved_age_seconds") < 60


def test_the_page_is_that_of_the_reference(place):
    """It shows all that common/metrics.md says of it, and nothing else."""
    weir, port = serve(place, ZONES, TEXT, archiver={"enabled": True}, gateways=["file:" + place.path("list")])
    page = await_page(weir, port, lambda page: page.sum("weir_limiter_verdicts_total") == 19, "all verdicts")
    page.check_whole("weir run")
    assert weir.stop() == 0, weir.said()


def test_a_page_that_differs_from_the_reference_is_refused(_place):
    text = "# HELP weir_limiter_frames_total {}\n# TYPE weir_limiter_frames_total {}\nweir_limiter_frames_total{} 1\n"
    good = metrics.reference()["weir_limiter_frames_total"].help
    metrics.Metrics(text.format(good, "counter", "")).check_reference()
    for other in (text.format("Frames.", "counter", ""), text.format(good, "gauge", ""),
                  text.format(good, "counter", '{zone="site"}'),
                  "# HELP weir_none Nothing.\n# TYPE weir_none gauge\nweir_none 1\n"):
        page = metrics.Metrics(other)
        assert refuses(page.check_reference), other
        assert refuses(lambda whole=page: whole.check_whole("weir run")), other


def refuses(check):
    try:
        check()
    except AssertionError:
        return True
    return False


def test_counts_of_zones_go_on_after_a_restart(place):
    weir, port = serve(place, site(2), burst("ann", 4))
    await_page(weir, port, lambda page: page.sum("weir_limiter_verdicts_total") == 4, "four verdicts")
    assert weir.stop() == 0, weir.said()
    weir = place.start("run", "--config", place.path("weir.json"), "--state", place.path("state"),
                       "--decisions", place.path("out"))
    place.append(LOG, burst("bob", 3))
    page = await_page(weir, port, lambda page: page.sum("weir_limiter_verdicts_total") == 7, "seven verdicts")
    assert page.value("weir_limiter_decisions_total", zone="site") == 2
    until(lambda: len(lines_of(place.path("out"))) == 2, "two decisions in the file", running=weir)


def test_health_and_readiness(place):
    weir, port = serve(place, site(2), burst("ann", 4))
    for path in ("/healthz", "/readyz"):
        until(lambda: (metrics.get(port, path) or (0,))[0] == 200, f"{path} is good", running=weir)  # pylint: disable=cell-var-from-loop
    assert metrics.get(port, "/no-such-page")[0] == 404
    kind = metrics.get(port, "/metrics")[1]
    assert kind.startswith("text/plain") and "version=0.0.4" in kind, kind
    assert weir.stop() == 0, weir.said()
    assert metrics.get(port, "/healthz") is None, "it is still served"


def test_readers_at_once_and_in_bulk_do_not_disturb(place):
    weir, port = serve(place, ZONES, TEXT)
    await_page(weir, port, lambda page: page.sum("weir_limiter_verdicts_total") == 19, "all verdicts")
    for number in range(50):
        place.append(LOG, burst(f"user-{number}", 3))
        assert metrics.scrape(port) is not None
    await_page(weir, port, lambda page: page.value("weir_collector_lines_total") == 160, "all lines")
    assert weir.stop() == 0, weir.said()


if __name__ == "__main__":
    cases.main(globals())
