#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deploy/ gives to systemd, Prometheus and Grafana is what they take, and speaks of what weir has."""

import ast
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import PATIENCE_S, ROOT, free_port, until

UNITS = ("weir.service", "weir-collector.service", "weir-limiter.service", "weir-archiver.service", "weir-subscribe@.service",
         "weir-nginx.service")
ROOTS = "weir-nginx.service"  # may ask systemd to reload nginx
ALERTS = os.path.join(ROOT, "deploy/grafana/weir-alerts.yaml")
ALERT_TESTS = os.path.join(ROOT, "tests/data/weir-alerts-test.yaml")
DASHBOARD = os.path.join(ROOT, "deploy/grafana/weir-dashboard.json")
# Tenths, as systemd counts from 0 to 10: what a daemon on the network cannot do without.
EXPOSURE = {"weir.service": 16, "weir-collector.service": 16, "weir-limiter.service": 15, "weir-archiver.service": 15, "weir-subscribe@edge.service": 15,
            "weir-nginx.service": 10}


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def needed(program):
    """A program's path; without it the test is skipped."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise cases.Skipped(f"no {program} here (deploy/packages gateways)")
    return path


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=10 * PATIENCE_S, **more)


# ---- systemd ----

def program_of(place, name):
    path = os.path.join(os.path.dirname(place.weir), name)
    if not os.access(path, os.X_OK):
        raise cases.Skipped(f"{name} is not built")
    return path


def placed_units(place):
    """The units with the programs that were built: name to path; the template as an instance of it."""
    placed = {}
    for name in UNITS:
        text = read("deploy/systemd", name)
        for program in set(re.findall(r"/usr/local/bin/([\w-]+)", text)):
            text = text.replace(f"/usr/local/bin/{program} ", program_of(place, program) + " ")
        assert "/usr/local" not in text, text
        place.write(f"units/{name}", text)
        instance = name.replace("@.", "@edge.")
        placed[instance] = place.write(f"units/{instance}", text)
    return placed


def test_units_are_valid(place):
    analyze, units = needed("systemd-analyze"), placed_units(place)
    done = run(analyze, "verify", "--man=no", "--recursive-errors=no", *units.values())
    assert done.returncode == 0 and "weir" not in done.stdout, done.stdout
    # A unit with a fault is found: that is what the check above is worth.
    with open(units["weir-limiter.service"], encoding="utf-8") as file:
        text = file.read()
    for fault in (text.replace("Restart=on-failure", "Restart=sometimes"),
                  text.replace(program_of(place, "weir-limiter"), "/nonexistent/weir-limiter")):
        done = run(analyze, "verify", "--man=no", "--recursive-errors=no", place.write("units/weir-faulty.service", fault))
        assert "weir-faulty" in done.stdout, done.stdout


def test_units_expose_little(place):
    analyze, units = needed("systemd-analyze"), placed_units(place)
    for name, bound in EXPOSURE.items():
        done = run(analyze, "security", "--offline=true", "--no-pager", f"--threshold={bound}", units[name])
        if "unrecognized option" in done.stdout:
            raise cases.Skipped("this systemd-analyze looks at no files")
        assert done.returncode == 0 and "Overall exposure level" in done.stdout, done.stdout[-1500:]
        low = run(analyze, "security", "--offline=true", "--no-pager", "--threshold=1", units[name])
        assert low.returncode != 0, "no threshold is ever met"


def test_units_say_what_the_daemons_do(place):
    for name in UNITS:
        lines = read("deploy/systemd", name).splitlines()
        users = () if name == ROOTS else ("User=weir", "Group=weir")
        for line in ("Type=notify", *users, "Restart=on-failure", "RestartPreventExitStatus=2",
                     "ExecReload=/bin/kill -HUP $MAINPID", "ProtectSystem=strict", "NoNewPrivileges=yes",
                     "CapabilityBoundingSet="):
            assert line in lines, f"{name}: {line}"
        (command,) = [line.removeprefix("ExecStart=").split() for line in lines if line.startswith("ExecStart=")]
        program, words = program_of(place, os.path.basename(command[0])), command[1:]
        commands = list(itertools.takewhile(lambda word: word[0].isalpha(), words))
        told = run(program, *commands, "--help")
        assert told.returncode == 0
        for option in (word for word in words if word.startswith("--")):
            assert re.search(rf"^ *{option}\b", told.stdout, re.M), f"{name}: {option} is no option of {program}"
        directories = [line.split("=")[1] for line in lines if line.startswith("StateDirectory=")]
        if "--state" in words:
            assert words[words.index("--state") + 1] == f"/var/lib/{directories[0]}"


def test_the_user_can_be_made(place):
    sysusers = needed("systemd-sysusers")
    file = os.path.join(ROOT, "deploy/systemd/weir.sysusers")
    done = run(sysusers, "--dry-run", f"--root={place.directory}", file)
    assert done.returncode == 0 and "Failed" not in done.stdout, done.stdout
    os.makedirs(place.path("etc"), exist_ok=True)
    if os.geteuid() == 0:
        done = run(sysusers, f"--root={place.directory}", file)
        with open(place.path("etc", "passwd"), encoding="utf-8") as passwd:
            users = passwd.read()
        assert re.search(r"^weir:x:\d+:\d+:[^:]*:/var/lib/weir:/usr/sbin/nologin$", users, re.M), users + done.stdout


def test_install_puts_all_of_it_in_place(place):
    build = os.path.dirname(os.path.dirname(place.weir))
    done = run(needed("cmake"), "--install", build, "--prefix", place.path("usr"))
    assert done.returncode == 0, done.stdout
    found = {os.path.relpath(os.path.join(folder, name), place.path("usr"))
             for folder, _, names in os.walk(place.path("usr")) for name in names}
    programs = ("weir", "weir-archiver", "weir-collector", "weir-limiter")
    assert {name for name in found if not name.startswith("share/")} == {
        *(f"bin/{name}" for name in programs), *(f"lib/systemd/system/{name}" for name in UNITS),
        "lib/sysusers.d/weir.conf", "lib/tmpfiles.d/weir.conf"}, found
    assert {"share/man/man1/weir-run.1", "share/man/man5/weir.json.5", "share/man/man8/weir-limiter.8",
            "share/bash-completion/completions/weir", "share/bash-completion/completions/weir-limiter",
            "share/zsh/site-functions/_weir", "share/fish/vendor_completions.d/weir.fish",
            "share/weir/weir.schema.json", "share/weir/weir.test.schema.json", "share/doc/weir/examples/nginx.conf", "share/doc/weir/RUNBOOK.md"} <= found, found
    with open(place.path("usr/lib/systemd/system/weir.service"), encoding="utf-8") as file:
        assert f"ExecStart={place.path('usr')}/bin/weir run " in file.read()
    for name in programs:
        assert run(place.path("usr", "bin", name), "--version").stdout.startswith(name + " "), name


# ---- Prometheus ----

def test_rules_are_valid_and_fire_as_they_should(_place):
    promtool = needed("promtool")
    for command in (("check", "rules", ALERTS), ("test", "rules", ALERT_TESTS)):
        done = run(promtool, *command)
        assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout
    text = read("tests/data/weir-alerts-test.yaml")
    for alert in alerts():
        assert f"alertname: {alert}, exp_alerts: []" in text, f"{alert} is never seen quiet"
        assert re.search(rf"alertname: {alert}\n *exp_alerts:\n *- exp_labels", text), f"{alert} is never seen firing"


def alerts():
    """The text of each alert, by its name."""
    parts = re.split(r"^ *- alert: (\w+)$", read("deploy/grafana/weir-alerts.yaml"), flags=re.M)[1:]
    names = parts[::2]
    assert len(names) == len(set(names)) > 40, names
    return dict(zip(names, parts[1::2]))


def chaos_alerts(name):
    """The alerts that a file's table FAULTS names, without what makes their rules faster."""
    faults = next(node for node in ast.parse(read("tests/chaos", name)).body
                  if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "FAULTS")
    rows = [node.elts for node in ast.walk(faults) if isinstance(node, ast.Tuple) and len(node.elts) >= 6]
    told = itertools.chain.from_iterable(row[3].elts if isinstance(row[3], ast.Tuple) else [row[3]]
                                         for row in rows if isinstance(row[0], ast.Constant))
    return {one.value.partition("/")[0] for one in told if getattr(one, "value", None)}


def test_a_fault_brings_each_alert_about(_place):
    files = {name: chaos_alerts(name) for name in ("night_faults.py", "night_alerts.py")}
    assert all(len(told) > 15 for told in files.values()), files
    told = set.union(*files.values())
    assert told <= alerts().keys(), f"faults name {sorted(told - alerts().keys())}, which are no alerts"
    assert alerts().keys() <= told, f"no fault brings {sorted(alerts().keys() - told)} about"


def anchor_of(heading):
    """A heading's anchor, in GitHub's spelling."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_alert_says_what_to_do(_place):
    book = os.path.join(ROOT, "deploy", "RUNBOOK.md")
    pages = {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", read(book), re.M)} if os.path.exists(book) else None
    for name, text in alerts().items():
        severity = re.search(r"^ *labels: \{ severity: (page|ticket) \}$", text, re.M)
        assert severity, f"{name} has no severity"
        # With a scrape and an evaluation of 15 s, and what shows a fault for certain, a page comes within 90 s.
        wait = re.search(r"^ *for: (\w+)$", text, re.M)
        assert severity[1] == "ticket" or wait is None or wait[1] in ("15s", "30s", "45s"), f"{name} pages late"
        for part in ("summary", "description"):
            assert re.search(rf"^ *{part}: \S", text, re.M), f"{name} has no {part}"
        url = re.search(r"""^ *runbook_url: '\{\{ or \$externalLabels\.weir_runbook "file:///usr/share/doc/weir/RUNBOOK\.md" \}\}#([a-z-]+)'$""",
                        text, re.M)
        assert url, f"{name} names no page of the runbook"
        assert pages is None or url[1] in pages, f"{name}: the runbook has no page {url[1]}"


def test_a_live_page_is_as_prometheus_wants_it(place):
    promtool, port = needed("promtool"), free_port()
    log = place.write("access.log", b"".join(traffic_lines(200)))
    config = place.config([{"name": "site", "key": ["ip"],
                            "limits": [{"algorithm": "sliding_window", "rate": 3, "window": "1m"}]}],
                          [{"type": "file", "path": log, "format": "combined", "follow": True, "start": "beginning"}],
                          listen={"http": f"127.0.0.1:{port}"})
    weir = place.start("run", "--config", config, "--state", place.path("state"),
                       "--decisions", place.path("decisions"))

    def judged():
        page = metrics.scrape(port)
        return page is not None and page.value("weir_limiter_events_total") == 200
    until(judged, "all lines are judged", running=weir)
    status, _, text = metrics.get(port, "/metrics")
    assert status == 200
    done = run(promtool, "check", "metrics", input=text)
    assert done.returncode == 0 and done.stdout.strip() == "", done.stdout
    faulty = run(promtool, "check", "metrics", input="# TYPE weir_things counter\nweir_things 1\n")
    assert faulty.returncode != 0, "any page would do"
    assert weir.stop() == 0, weir.said()


def traffic_lines(count):
    for number in range(count):
        yield (f'192.0.2.{number % 50} - - [21/Nov/2024:07:{number // 60:02}:{number % 60:02} +0000] '
               f'"GET / HTTP/1.1" 200 1 "-" "-"\n').encode()


# ---- names ----

def named_metrics(text):
    return set(re.findall(r"\b(?:weir|process)_[a-z_]+\b", text))


def test_every_metric_that_is_named_exists(_place):
    known = {name: row.type for name, row in metrics.reference().items()}
    assert len(known) > 50, sorted(known)
    families = dict(known)
    for name, kind in known.items():
        if kind == "histogram":
            families.update({name + suffix: kind for suffix in ("_bucket", "_sum", "_count")})
    expressions = "\n".join(dashboard_expressions())
    for what, text in (("the dashboard", expressions), ("the alerts", read("deploy/grafana/weir-alerts.yaml")),
                       ("the alerts' tests", read("tests/data/weir-alerts-test.yaml"))):
        named = named_metrics(text)
        assert named, what
        named -= {"weir_runbook"}  # a label that an administrator sets
        assert not named - set(families), f"{what} names {sorted(named - set(families))}"
        for name in re.findall(r"(?:rate|increase)\((weir_[a-z_]+)", text):
            assert families[name] != "gauge", f"{what}: a rate of the gauge {name}"
    # A state is named as the limiter names it.
    for state in set(re.findall(r'state="(\w+)"', expressions + read("deploy/grafana/weir-alerts.yaml"))):
        assert state in metrics.reference()["weir_limiter_partitions"].labels["state"], state


def c_files():
    """The text of every C file of the product."""
    for top in ("common", "collector", "limiter", "archiver", "deploy"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            yield from (read(os.path.join(os.path.relpath(folder, ROOT), name)) for name in sorted(names) if name.endswith(".c"))


def test_every_metric_of_the_reference_is_written(_place):
    """A row that no page asks for would promise what nobody ever sees."""
    codes, rows = list(c_files()), {}
    for code in codes:
        rows.update((name, (index, code)) for index, name in re.findall(r'\[(\w+)\] =\s*\{\s*"((?:weir|process)_[a-z_]+)"', code))
        rows.update((name, (row + "_row", code)) for row, name in re.findall(r'(?:ROW\(|struct weir_metric )(\w+?)(?:_row|\)) =\s*\{\s*"((?:weir|process)_[a-z_]+)"', code))
    assert rows.keys() == metrics.reference().keys(), rows.keys() ^ metrics.reference().keys()
    for name, (index, code) in rows.items():
        use = re.compile(rf"metrics\[{index}\]|&{index}\b|\{{{index}, |\(page, {index}, |\[{index}\] = \w")
        own = index.startswith(("LIMITER_", "ARCHIVER_"))  # for the daemon, in another file
        assert any(use.search(other) for other in (codes if own else [code])), f"{name}: its row is never written"


# ---- Grafana ----

def dashboard():
    return json.loads(read("deploy/grafana/weir-dashboard.json"))


def dashboard_expressions():
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_is_whole(_place):
    whole = dashboard()
    assert whole["schemaVersion"] >= 36 and whole["uid"] and whole["title"]
    panels = whole["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = {}
    for panel in panels:
        at = panel["gridPos"]
        assert 0 <= at["x"] and at["x"] + at["w"] <= 24 and at["h"] > 0, panel["title"]
        for cell in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])):
            assert cell not in cells, f"{panel['title']} lies on {cells[cell]}"
            cells[cell] = panel["title"]
        if panel["type"] == "row":
            continue
        assert panel["targets"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert panel["datasource"]["uid"] == "${source}" and panel["fieldConfig"]["defaults"]["unit"]
    variables = {variable["name"] for variable in whole["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)", "".join(dashboard_expressions())))
    assert used <= variables, used - variables
    titles = " ".join(panel["title"] for panel in panels).lower()
    for watched in ("lag", "archive lag", "checkpoint age", "late share", "spill", "dead letters", "down"):
        assert watched in titles, f"no panel shows {watched}"


def plain(expression):
    """An expression of the dashboard as Grafana sends it."""
    return expression.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*")


# series, what they are at each quarter of a minute; the panel, the place of its target, what it shows at five minutes.
SHOWN = (
    # One process has them all: its limiter's and its archiver's have the same labels.
    ({'weir_source_lag_seconds{source="a"}': 1, "weir_limiter_lag_seconds": 5, "weir_archiver_lag_seconds": 60},
     "Farthest behind", 0, 60),
    ({"weir_limiter_lag_seconds": 5, "weir_archiver_lag_seconds": 2}, "Farthest behind", 0, 5),
    ({'weir_source_lag_seconds{source="a"}': 7, "weir_archiver_lag_seconds": 2}, "Farthest behind", 0, 7),
    # Where one of them is missing, the other counts.
    ({"weir_limiter_producer_restarts_total": (0, 1)}, "Failures", 2, 20),
    ({"weir_collector_producer_restarts_total": (0, 1)}, "Failures", 2, 20),
    ({"weir_limiter_producer_restarts_total": (0, 1), "weir_collector_producer_restarts_total": (0, 2)}, "Failures", 2, 60),
)


def test_the_dashboard_shows_what_each_of_its_parts_says(place):
    promtool, tests = needed("promtool"), []
    for series, title, target, value in SHOWN:
        (panel,) = [one for one in dashboard()["panels"] if one["title"] == title]
        steps = {name: one if isinstance(one, tuple) else (one, 0) for name, one in series.items()}
        labelled = {name.replace("{", '{job="weir",instance="a",') if "{" in name else name + '{job="weir",instance="a"}': step
                    for name, step in steps.items()}
        tests.append({"interval": "15s",
                      "input_series": [{"series": name, "values": f"{start}+{step}x40"} for name, (start, step) in labelled.items()],
                      "promql_expr_test": [{"expr": plain(panel["targets"][target]["expr"]), "eval_time": "5m",
                                            "exp_samples": [{"labels": "{}", "value": value}]}]})
    done = run(promtool, "test", "rules", place.write("test.yaml", json.dumps({"tests": tests})))
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout


def test_nothing_that_is_put_together_drops_a_part(_place):
    """"a or b" leaves out what b has with the labels that a has; a + b is nothing where one of them is missing."""
    reference, found = metrics.reference(), 0
    for expression in [*dashboard_expressions(), *alerts().values()]:
        for left, right in re.findall(r"\b(weir_\w+)(?:\{[^}]*\})?(?:\[\w+\]\))?(?= or (?:\w+\()?(weir_\w+))", expression):
            found += 1
            assert set(reference[left].labels) != set(reference[right].labels), f"{left} or {right}: {expression}"
        for part in (plain(expression).split(" + ") if " + " in expression and expression.startswith(("sum", "(")) else ()):
            found += 1
            assert part.endswith("or vector(0))"), expression
    assert found > 5, "nothing is put together"


def test_the_dashboards_expressions_are_promql(place):
    promtool = needed("promtool")
    rules = []
    for number, expression in enumerate(dashboard_expressions()):
        rules.append({"record": f"panel:{number}", "expr": plain(expression)})
    path = place.write("rules.yaml", json.dumps({"groups": [{"name": "panels", "rules": rules}]}))  # JSON is YAML
    done = run(promtool, "check", "rules", path)
    assert done.returncode == 0 and f"{len(rules)} rules found" in done.stdout, done.stdout


if __name__ == "__main__":
    cases.main(globals())
