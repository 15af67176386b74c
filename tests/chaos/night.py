# SPDX-License-Identifier: Apache-2.0
"""A cluster as an operator watches it at night: all roles under an even load, and a Prometheus with the project's rules.

The rules are those of deploy/grafana, unchanged; only scrapes and evaluations are nearer to each other, so that a fault
costs less of the test's time. "WeirX/10" names a rule that would take too long: it is evaluated beside, on the same
signal, with its `for`, ranges, steps and offsets divided by ten. Its expression and its thresholds are as they are.
"""

import calendar
import contextlib
import gzip
import json
import os
import re
import shutil
import time
import urllib.parse
import urllib.request

import settled

from support import cases, decisions, metrics
from support.place import PATIENCE_S, ROOT, free_port, until
from support.roles import Roles, program

ALERTS = os.path.join(ROOT, "deploy/grafana/weir-alerts.yaml")
SUPPOSED_S, INTERVAL_S = 15, 2  # between two scrapes, and two evaluations: what the rules suppose, and here
LATER_S = 2 * (SUPPOSED_S - INTERVAL_S)  # what the supposed ones add at most
HISTORY_S = 80  # after that, the rules that ask what was before know it
RATE, PARTITIONS = 100, 8
ZONES = [{"name": "site", "id": 1, "key": ["ip"], "block_for": "10s",
          "limits": [{"algorithm": "sliding_window", "rate": 10, "window": "10s"}]}]
RECOVERY_S = 6 * PATIENCE_S


# The servers of a stage: one broker; one that clients reach by TLS and SASL; three, which one gateway reaches through proxies.
PLAIN, SECURED, SEVERAL = "one broker", "one broker by TLS and SASL", "three brokers"
STAGES = {PLAIN: (), SECURED: ("--tls-sasl",), SEVERAL: ("--brokers", "3", "--proxy-port", "0")}
RUN_JOB, SELDOM_JOB, SELDOM_S = "weir-run", "weir-seldom", 3 * INTERVAL_S  # jobs that have no targets at first
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def faster(name):
    """(alert, factor) of "WeirX/10"; 1 where it has none."""
    alert, _, factor = name.partition("/")
    return alert, int(factor or 1)


def _divided(rule, factor):
    """A rule's text with its durations divided."""
    shorter = lambda found: f"{max(1, int(found[1]) * _MS[found[2]] // factor)}ms"
    within = lambda found: re.sub(r"(\d+)(ms|[smhd])\b", shorter, found[0])
    return re.sub(r"\[[^]]*\d[smhd]\]|\boffset \d+\w+|(?m:^ *for: \w+$)", within, rule)


def faster_rules(names):
    """A file of rules: a group for each of these names that has a factor."""
    with open(ALERTS, encoding="utf-8") as file:
        parts = re.split(r"^ *- alert: (\w+)$", file.read(), flags=re.M)[1:]
    rules = {alert: re.sub(r"(?m)^ *#.*$", "", text) for alert, text in zip(parts[::2], parts[1::2])}
    groups = []
    for alert, factor in sorted({faster(name) for name in names}):
        if factor > 1:
            rule = _divided(rules[alert], factor).replace("labels: { ", f'labels: {{ faster: "{factor}", ')
            groups.append(f"  - name: {alert}-{factor}\n    rules:\n      - alert: {alert}{rule}")
    return "groups:\n" + "".join(groups) if groups else "groups: []\n"


class Prometheus:
    """A real one, which asks these targets: {job: [port]}. names: of the alerts that are asked for, for those with a factor."""

    def __init__(self, place, targets, names=()):
        self._place = place
        path = shutil.which("prometheus", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if path is None:
            raise cases.Skipped("no prometheus here (deploy/packages gateways)")
        self.port = free_port()
        settings = {"global": {"scrape_interval": f"{INTERVAL_S}s", "scrape_timeout": f"{INTERVAL_S - 1}s",
                               "evaluation_interval": f"{INTERVAL_S}s"},
                    "rule_files": [ALERTS, place.write("faster.yaml", faster_rules(names))],
                    "scrape_configs": [{"job_name": job, "scrape_interval": f"{SELDOM_S if job == SELDOM_JOB else INTERVAL_S}s",
                                        "file_sd_configs": [{"files": [place.path(f"targets-{job}.json")]}]}
                                       for job in (*targets, RUN_JOB, SELDOM_JOB)]}
        self.targets = {}  # what it asks now
        for job in (*targets, RUN_JOB, SELDOM_JOB):
            self.watch(job, targets.get(job, ()))
        config = place.write("prometheus.yaml", json.dumps(settings))  # JSON is YAML
        self._run = place.start(f"--config.file={config}", f"--storage.tsdb.path={place.path('prometheus')}",
                                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn", program=path)
        until(lambda: (metrics.get(self.port, "/-/ready") or (0,))[0] == 200, "Prometheus is ready", running=self._run)
        rules = {(rule["name"], int(rule["labels"].get("faster", 1))): rule
                 for group in self._ask("rules")["groups"] for rule in group["rules"]}
        self.pending_s = {name: rule["duration"] for name, rule in rules.items()}
        self.severity = {name: rule["labels"]["severity"] for (name, _), rule in rules.items()}

    def watch(self, job, ports):
        """From now on it asks these ports for a job."""
        self.targets[job] = list(ports)
        name = f"targets-{job}.json"
        os.rename(self._place.write(name + ".new", json.dumps([{"targets": [f"127.0.0.1:{port}" for port in ports]}])),
                  self._place.path(name))

    def _ask(self, what, **words):
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def alerts(self, factor=1, after_s=0):
        """{name: (Unix time since which its condition holds, whether it fires)} of the first of each name, of those
        that began after a moment; factor: of the rules that are faster by so much."""
        found = {}
        for alert in self._ask("alerts")["alerts"]:
            if int(alert["labels"].get("faster", 1)) != factor:
                continue
            name = alert["labels"]["alertname"]
            whole, _, rest = alert["activeAt"].removesuffix("Z").partition(".")
            since_s = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + (rest or "0"))
            if since_s >= after_s and (name not in found or since_s < found[name][0]):
                found[name] = since_s, alert["state"] == "firing"
        return found

    def fired(self, seconds, severity="page"):
        """The names of the alerts that have fired in the last seconds."""
        query = f'max by (alertname) (max_over_time(ALERTS{{alertstate="firing",severity="{severity}",faster=""}}[{int(seconds) + 1}s]))'
        return {one["metric"]["alertname"] for one in self._ask("query", query=query)["result"]}


class Night:
    """All of it. Use it in a with statement."""

    def __init__(self, place, served, names=(), proxied=None):
        """names: of the alerts that it is asked for; proxied: (proxies of the brokers, their addresses) for a gateway."""
        self.place, self.served, self._names = place, served, names
        self.proxies, self._addresses = proxied or ([], None)
        self.roles = Roles(place, served, ZONES, bus={"partitions": PARTITIONS}, deadletter={"rate": 10},
                           limiter={"threads": 2}, archiver={"enabled": True})
        self.began_s, self._marks, self._loads = time.time(), {}, 0
        self.fault_s = self.began_s  # when the fault began
        self._targets = {}
        self.disks = {}  # {name: its SmallDisk}
        self.known = {"WeirRestarts"}  # alerts that say no more: faults restart the same processes again and again
        self.load = self.collector = self.limiters = self.archiver = self.redis = self.file = self.prometheus = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.roles)
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *why):
        self._stack.__exit__(*why)

    def _start(self):
        self.roles.apply()
        self.limiters = [self.roles.limiter() for _ in range(2)]
        self.archiver = self.roles.archiver()
        self.collector = self.roles.collector([{"type": "file", "path": self.place.path("logs", "*.log"), "follow": True,
                                                "format": "combined", "start": "beginning"}])
        config = self.place.write("subscribe.json", json.dumps(self.roles.sections()))
        through = {"bus": {"brokers": self._addresses}} if self._addresses else {}
        other = self.place.write("subscribe-file.json", json.dumps(self.roles.sections(**through)))
        os.makedirs(self.place.path("gateway"))
        os.makedirs(self.place.path("logs"))
        self.redis = decisions.start(self.place, config, self.served.redis_url)
        self.file = decisions.start(self.place, other, "file:" + self.place.path("gateway", "blocks"))
        self._targets = {self.redis.port: self.served.redis_url, self.file.port: "file:" + self.place.path("gateway", "blocks")}
        self.prometheus = Prometheus(self.place, {
            "weir-collector": [self.collector.port], "weir-limiter": [one.port for one in self.limiters],
            "weir-archiver": [self.archiver.port], "weir-subscribe": [self.redis.port, self.file.port]}, self._names)
        self.write()

    # ---- the load ----

    def write(self, *options, log="access.log", **more):
        """Begins to write lines at an even rate, in another form if options say so; more: write_beside()'s."""
        self.load = self.write_beside(*options, log=log, **more)

    def write_beside(self, *options, log, rate=RATE, users=3000, seed=None):
        """The same beside the load: who writes; stop() ends it. seed: the same makes the same users."""
        self._loads += 1
        return self.place.start("generate", "--quiet", "--follow-rate", rate, "--for", "24h", "--users", users, "--abusers", 3,
                                "--seed", seed or self._loads, "--output", self.place.path("logs", log), *options)

    def stop_writing(self):
        """Writes no more."""
        self.load.stop()

    def until_exact(self):
        """Writes no more, and waits until every line was taken once, and is judged and stored: how many."""
        self.stop_writing()
        due = 0
        for name in os.listdir(self.place.path("logs")):
            with (gzip.open if name.endswith(".gz") else open)(self.place.path("logs", name), "rb") as log:
                due += sum(not line.startswith(b"{") for line in log)  # those of a format that it was not told of
        log = settled.Log(self.served)
        until(lambda: log.read() >= due, f"{due} lines are taken", RECOVERY_S)
        assert log.taken == due, f"{log.taken} lines were taken of {due}"
        until(lambda: not log.unjudged(), "every frame is judged", RECOVERY_S)
        until(lambda: self.served.stored() == self.served.ends(), "checkpoints hold all", RECOVERY_S)
        return due

    def burst(self, lines, *options, seed=None):
        """Writes many lines at once, to a log of their own: its path."""
        self._loads += 1
        path = self.place.path(f"burst-{self._loads}")
        self.place.good("generate", "--quiet", "--lines", lines, "--start", "now", "--seed", seed or self._loads, *options,
                        "--output", path)
        os.rename(path, self.place.path("logs", f"burst-{self._loads}.log"))
        return self.place.path("logs", f"burst-{self._loads}.log")

    # ---- what an operator has ----

    @property
    def processes(self):
        """{name: (its run, its port)} of all of weir's."""
        found = {role.name: (role.run, role.port) for role in self.roles.all}
        return {**found, "subscribe-redis": (self.redis.weir, self.redis.port), "subscribe-file": (self.file.weir, self.file.port)}

    def mark(self):
        """From here on: what said() gives."""
        self._marks = {run.said_path: len(run.said()) for run, _ in self.processes.values()}

    def said(self):
        """The lines of all logs since the mark, and the words of all pages now."""
        words = [f"{name}: {line}" for name, (run, _) in self.processes.items()
                 for line in run.said()[self._marks.get(run.said_path, 0):].splitlines()]
        for name, (_, port) in self.processes.items():
            for page in ("/readyz", "/healthz"):
                answer = metrics.get(port, page)
                words.append(f"{name} {page}: {answer[0]} {answer[2].strip()}" if answer else f"{name} {page}: none")
        return words

    def find(self, pattern):
        """The first line or page in which a pattern is found; None."""
        self.keep_up()
        return next((line for line in self.said() if re.search(pattern, line)), None)

    def unwell(self):
        """What is not as it should be, in words; empty in health."""
        self.keep_up()
        words = [f"{name} is not ready: {answer and answer[2].strip()}" for name, (_, port) in self.processes.items()
                 for answer in [metrics.get(port, "/readyz")] if answer is None or answer[0] != 200]
        for role in (*self.limiters, self.archiver):
            page, kind = role.metrics(), role.kind
            lag = page and page.value(f"weir_{kind}_lag_seconds")
            if lag is None or lag > 5:
                words.append(f"{role.name} is {lag} s behind")
        live = sum(role.value("weir_limiter_partitions", state="live") for role in self.limiters)
        if live != PARTITIONS:
            words.append(f"{live} partitions are live")
        words += [f"{name} is {'firing' if fires else 'pending'}" for name, (_, fires) in self.prometheus.alerts().items()
                  if self.prometheus.severity[name] == "page" and name not in self.known]
        return words

    def until_well(self, patience_s=RECOVERY_S):
        """Waits for health: seconds."""
        began, seen = time.monotonic(), []

        def is_well():
            seen[:] = self.unwell()
            time.sleep(0.5)
            return not seen
        try:
            until(is_well, "health", patience_s)
        except AssertionError as why:
            raise AssertionError(f"not well within {patience_s} s: {'; '.join(seen)}; {why}") from None
        return time.monotonic() - began

    def until_history(self, history_s=HISTORY_S):
        """Waits until the rules know what was before."""
        time.sleep(max(0, self.began_s + history_s - time.time()))

    def keep_up(self):
        """What a service manager does for a subscriber that ended; daemons are started by the fault that ended them."""
        for subscriber in (self.redis, self.file):
            if subscriber.weir.code() not in (None, 2):
                self.subscribe(subscriber)

    # ---- deeds ----

    def subscribe(self, subscriber, *options):
        """Starts a subscriber where it was."""
        config = self.place.path("subscribe-file.json" if subscriber is self.file else "subscribe.json")
        subscriber.weir = self.place.start("subscribe", "--config", config, "--to", self._targets[subscriber.port], "--http",
                                           f"127.0.0.1:{subscriber.port}", *options)

    def part(self, action, server):
        """deploy/cluster/part."""
        self.served.part(action, server)

    def restart(self, role, prepare=None, **popen):
        """Ends a role, does something, and starts it again, perhaps in another environment."""
        if role.run.code() is None:
            role.stop()
        if prepare:
            prepare()
        self.start(role, **popen)

    def start(self, role, arguments=(), **popen):
        """Starts a role where it was."""
        role.run = self.place.start("--config", role.config, "--state", role.state, *arguments,
                                    program=program(self.place, f"weir-{role.kind}"), **popen)

    def change(self, role, change):
        """Starts a role with its configuration changed: change(sections)."""
        with open(role.config, encoding="utf-8") as file:
            sections = json.load(file)
        change(sections)
        self.restart(role, lambda: self.place.write(os.path.basename(role.config), json.dumps(sections)))

    def sources(self):
        """What the collector reads."""
        with open(self.collector.config, encoding="utf-8") as file:
            return json.load(file)["sources"]

    def set_sources(self, sources):
        """Starts it with others."""
        self.change(self.collector, lambda sections: sections.update(sources=sources))

    def recover(self):
        """What the runbook says of gaps."""
        config = self.place.write("recover.json", json.dumps(self.roles.sections()))
        self.place.good("recover", "--accept-gap", "--all", "--yes", "--config", config)

    def delete(self, topic):
        """Deletes one of weir's topics."""
        self.served.kafka.delete([self.served.topic(topic)])
