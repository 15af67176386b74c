#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weir reference` writes is what the programs do: manual pages, completions, and the schemas of configurations and of their tests."""

import concurrent.futures
import copy
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, venv
from support.place import PATIENCE_S, ROOT, SANITIZED

venv.enter()

import jsonschema  # pylint: disable=wrong-import-position,import-error

DAEMONS = ("weir-collector", "weir-limiter", "weir-archiver")

# Something of every table: each member of it is taken away, and given values that it cannot have.
RICH = {
    "$schema": "weir.schema.json",
    "zones": [
        {"id": 1, "name": "login", "description": "guessing", "key": ["ip", {"field": "net", "prefix4": 24, "prefix6": 64}],
         "match": {"method": ["POST"], "path": {"is": "/login", "not": ["/login/x"]}, "status": [404, "4xx"]},
         "exempt": ["10.0.0.0/8", {"agent": ["monitor*"]}], "sources": ["web"], "count": "all",
         "block_for": "10m", "mode": "shadow", "history": True,
         "limits": [{"algorithm": "sliding_window", "rate": 5, "window": "1m", "precision": "1s", "lateness": "2s"},
                    {"algorithm": "fixed_window", "rate": 5, "window": "1h", "offset": "1m"},
                    {"algorithm": "token_bucket", "rate": 5, "window": "1h", "burst": 7, "penalize": True},
                    {"algorithm": "gcra", "rate": 5, "window": "1m", "burst": 3},
                    {"algorithm": "uniform", "interval": "5ms"},
                    {"algorithm": "queue", "length": 2, "hold": "1m", "done": {"path": ["/done"]}}]},
        {"id": 2, "name": "site", "key": [], "exempt": {"agent": "x"}, "block_for": ["1m", "1h"], "forgive_after": "1d",
         "limits": [{"algorithm": "uniform", "interval": "5ms"}]}],
    "exempt": ["192.0.2.0/24", {"agent": ["probe*"]}, {"list": "https://example.org/networks"},
               {"verified": ["googlebot", {"agent": "Ours", "hosts": ["bots.example.org"]}]}],
    "sources": [
        {"type": "file", "name": "web", "path": ["/nonexistent/a*.log"], "exclude": "*.gz", "olddir": "old", "follow": True,
         "start": "end", "line_max": "8KiB",
         "format": {"type": "delimited", "separator": "|", "quote": "'", "header": False, "columns": ["date", "clock", "client", "bytes", "xff"],
                    "time": ["date", "clock"], "unit": "ms", "time_zone": "UTC", "year": 2024,
                    "fields": {"ip": "client"}, "cost": "bytes",
                    "client_ip": {"header": "xff", "trusted": ["10.0.0.0/8"]}}},
        {"type": "syslog", "name": "udp", "listen": "udp://127.0.0.1:5140", "format": "syslog", "time_zone": "UTC",
         "receive_buffer": 8192, "from": ["10.0.0.0/8"], "follow": True, "line_max": 4096},
        {"type": "syslog", "listen": "tcp://127.0.0.1:5141", "connections": 9, "connections_per_address": 3,
         "idle_timeout": "1m", "format": {"type": "syslog", "message": {"type": "sshd", "unmatched": "skip"}}},
        {"type": "journal", "name": "j", "units": ["ssh"], "match": {"PRIORITY": ["3"]}, "directory": "/nonexistent",
         "start": "end", "follow": True, "line_max": 4096, "format": {"type": "journal", "message": "sshd"}},
        {"type": "amqp", "name": "a", "url": ["amqp://127.0.0.1:9"], "queue": "q", "stream": True, "vhost": "v", "user": "u",
         "password": "p", "generation": 2, "prefetch": 9, "start": "end", "line_max": 4096, "format": "combined"},
        {"type": "nats", "name": "n", "url": ["nats://127.0.0.1:9"], "stream": "S", "subjects": ["a.*", "b.>"], "user": "u",
         "password": "p", "start": "end", "follow": True, "line_max": 4096, "format": "combined"},
        {"type": "kafka", "name": "k", "brokers": "127.0.0.1:9", "topics": ["logs"], "group": "g", "generation": 2,
         "start": "end", "line_max": 4096, "kafka": {"client.id": "x"},
         "format": {"type": "json", "time_format": "%d.%m.%Y %H:%M:%S"}},
        {"type": "file", "path": "/nonexistent/b.log", "follow": True,
         "format": {"type": "pattern", "pattern": "^(?<time>\\S+) (?<ip>\\S+)", "unmatched": "skip"}},
        {"type": "file", "path": "/nonexistent/c.log", "follow": True,
         "format": {"type": "wrapped", "in": "json", "line": "log", "message": "combined"}},
        {"type": "decisions", "generation": 2}],
    "gateways": ["file:/nonexistent/list",
                 {"to": "nginx-map:/nonexistent/map", "zones": ["login"], "interval": "1s", "reload": "true", "max": 9}],
    "bus": {"partitions": 4, "linger": "1ms", "prefix": "w", "kafka": {"client.id": "x"}},
    "store": {"type": "sqlite", "port": 3306, "password": {"file": "/dev/null"}},
    "redis": {"url": "redis://127.0.0.1:6379"},
    "collector": {"max_skew": "5s", "line_max": "64KiB", "list_interval": "2h", "resolver": "127.0.0.1:53"},
    "limiter": {"threads": 2, "memory": "64MiB"},
    "archiver": {"enabled": True, "api": "127.0.0.1:8642", "tokens": ["0123456789abcdef"], "keep_daily": "1d"},
    "listen": {"http": "127.0.0.1:9464"},
    "log": {"level": "info", "format": "json"},
    "decisions": {"path": "-", "keep": 3},
    "deadletter": {"rate": 5, "max_size": "1MiB"},
}
# Likewise of the tables of `weir test`.
RICH_TEST = {
    "$schema": "weir.test.schema.json", "config": "weir.json", "start": "2026-03-01T10:00:00Z",
    "cases": [
        {"name": "all that can be given", "start": 1767225600000,
         "given": ['{"ts": 1767225600, "ip": "203.0.113.9"}',
                   {"lines": ['{"ts": {time_s}, "ip": "203.0.113.9"}'], "at": "1s", "repeat": 2, "every": "1s", "source": "web"},
                   {"lines": "203.0.113.9 - - [01/Jan/2026:00:00:04 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"",
                    "source": 0, "format": "combined"},
                   {"path": "lines.log", "source": "web", "format": {"type": "json", "time": "ts"}},
                   {"fields": {"ip": "203.0.113.9", "status": 404, "robot": False}, "at": "5s", "repeat": 2, "every": "0ms",
                    "source": 0, "cost": 3},
                   {"command": "override", "at": "6s", "zone": "login", "key": ["203.0.113.9"], "for": "1h", "rate": "0.5",
                    "by": "joe", "reason": "why"},
                   {"command": "block", "at": "7s", "zone": "login", "key": "203.0.113.8", "until": "1h"}],
         "expect": {"decisions": [{"zone": "login", "key": ["203.0.113.9"], "action": "block", "mode": "enforce", "line": 3,
                                   "at": "2s", "until": "62s", "for": "1m", "count": 2, "counted": [1, 2, 3],
                                   "says": ["because of"]}],
                    "counts": [{"zone": "login", "key": "203.0.113.9", "passed": 2, "blocked": 0, "decisions": 1}],
                    "malformed": 0, "skipped": 0}},
        {"name": "little", "given": {"fields": {"ip": "203.0.113.9"}, "at": "2026-03-01T10:00:00Z"},
         "expect": {"decisions": []}}],
}
# Members under names of the user's: what is unknown there is no mistake.
SEED = int(os.environ.get("WEIR_SEED", "1"))
CHANGES = 40 if SANITIZED else int(os.environ.get("WEIR_CASES", "400"))  # of about 3,000, each of which is a run of `weir validate`
FREE = {"match", "exempt", "done", "fields", "kafka"}
WRONG = ("", 0, -1, 10**15, True, None, [], {}, "zzz", [[]], {"zzz": 1}, 1.5)


def said(place, *command, **more):
    done = subprocess.run([place.weir, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=2 * PATIENCE_S, **more)
    assert done.returncode == 0 and not done.stderr, (command, done.stderr)
    return done.stdout


def schema_of(place, which="schema"):
    schema = json.loads(said(place, "reference", which))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def is_loaded(place, text, name):
    """Whether the loader takes a configuration; else its words."""
    path = place.write(f"configurations/{name}.json", text)
    done = subprocess.run([place.weir, "validate", "--config", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=2 * PATIENCE_S)
    assert done.returncode in (0, 2), done.stdout
    return done.returncode == 0, done.stdout


def examples():
    """The configurations of the tree: files, and whole ones within documents."""
    for path in [os.path.join(ROOT, "deploy/compose/weir.json"), *glob.glob(os.path.join(ROOT, "deploy/package/*.json")),
                 *glob.glob(os.path.join(ROOT, "tests/fuzz/corpus/config/*.json"))]:
        with open(path, encoding="utf-8") as file:
            yield os.path.relpath(path, ROOT), file.read()
    for path in glob.glob(os.path.join(ROOT, "**/*.md"), recursive=True):
        if "/build/" in path:
            continue
        with open(path, encoding="utf-8") as file:
            blocks = re.findall(r"```json\n(.*?)```", file.read(), re.DOTALL)
        for number, block in enumerate(blocks):
            if re.match(r'\s*\{\s*"(zones|sources)"', block):
                yield f"{os.path.relpath(path, ROOT)}-{number}", block


def test_what_the_loader_takes_is_valid(place):
    validator, taken = schema_of(place), 0
    found = [*examples(), ("rich", json.dumps(RICH))]
    for number, (name, text) in enumerate(found):
        loaded, words = is_loaded(place, text, str(number))
        assert loaded or name != "rich", words
        if loaded:
            errors = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(json.loads(text))]
            assert not errors, (name, errors)
            taken += 1
    assert taken >= 6, [name for name, _ in found]


def paths_of(value, path=()):
    """Every value within another, by its path."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from paths_of(inner, (*path, name))


def at(root, path):
    for name in path:
        root = root[name]
    return root


def changed(rich):
    """Files that differ from the rich one by one value: what was done, where, and the result."""
    for path in paths_of(rich):
        if path and isinstance(path[-1], str):
            less = copy.deepcopy(rich)
            del at(less, path[:-1])[path[-1]]
            yield "less", path, less
        if isinstance(at(rich, path), dict):
            more = copy.deepcopy(rich)
            at(more, path)["zzz"] = {"zzz": [1]}
            yield "unknown", path, more
        for wrong in WRONG if path else ():
            other = copy.deepcopy(rich)
            at(other, path[:-1])[path[-1]] = wrong
            yield f"{wrong!r}", path, other


def require_as_strict(validator, rich, load, free):
    """Never stricter than the loader; and as strict for what is unknown, missing, or of another type.

    load(text, name): whether the loader takes it, and its words; free: members under whose names anything may stand."""
    assert load(json.dumps(rich), "rich")[0], load(json.dumps(rich), "rich")[1]
    every = list(changed(rich))
    cases_ = random.Random(SEED).sample(every, min(CHANGES, len(every)))

    def judge(number):
        return load(json.dumps(cases_[number][2]), f"changed-{number}")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        loaded = list(pool.map(judge, range(len(cases_))))
    lax, refused, faults = 0, 0, []
    for (what, path, config), (good, words) in zip(cases_, loaded):
        valid = validator.is_valid(config)
        refused += not good
        if good and not valid:
            faults.append(f"the loader takes {what} at {path}, the schema does not")
        if not good and valid:
            lax += 1
            if what in ("unknown", "None", "[[]]", "{'zzz': 1}") and not free & set(path):
                faults.append(f"the schema takes {what} at {path}: {words[-200:]}")
    assert not faults, "\n".join([f"{len(faults)} of {len(cases_)}", *faults[:20]])
    assert refused > len(cases_) / 2 and lax < refused / 4, (len(cases_), refused, lax)
    print(f"{len(cases_)} changes: the loader refuses {refused}, the schema all but {lax} of them")


def test_what_the_loader_refuses_is_refused(place):
    require_as_strict(schema_of(place), RICH, lambda text, name: is_loaded(place, text, name), FREE)


def is_test_loaded(place, text, name):
    """Whether `weir test` takes a file, whatever becomes of its cases; else its words."""
    path = place.write(f"tests/{name}.json", text)
    done = subprocess.run([place.weir, "test", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=2 * PATIENCE_S)
    assert done.returncode in (0, 1, 2), done.stdout
    return done.returncode != 2, done.stdout


def tested_configuration(place):
    """What the rich tests are of."""
    place.write("tests/lines.log", '{"ts": 1767225600, "ip": "203.0.113.9", "path": "/login"}\n')
    place.write("tests/weir.json", json.dumps({
        "zones": [{"name": "login", "key": ["ip"], "limits": [{"algorithm": "sliding_window", "rate": 2, "window": "1m"}]},
                  {"name": "robots", "key": ["ip"], "match": {"status": [404], "robot": ["false"]},
                   "limits": [{"algorithm": "sliding_window", "rate": 2, "window": "1m"}]}],
        "sources": [{"type": "file", "name": "web", "path": "/nonexistent/a.log",
                     "format": {"type": "json", "time": "ts", "fields": {name: name for name in ("ip", "status", "robot")}}}]}))


def test_what_weir_test_takes_is_valid(place):
    tested_configuration(place)
    validator = schema_of(place, "test-schema")
    with open(os.path.join(ROOT, "deploy/debian/weir.test.json"), encoding="utf-8") as file:
        text = re.sub(r"^\s*//.*$", "", file.read(), flags=re.M)
    for one in (RICH_TEST, json.loads(text)):
        errors = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(one)]
        assert not errors, errors


def test_what_weir_test_refuses_is_refused(place):
    tested_configuration(place)
    require_as_strict(schema_of(place, "test-schema"), RICH_TEST, lambda text, name: is_test_loaded(place, text, name),
                      {"fields", "format"})


def help_of(place, program, *command):
    program = os.path.join(os.path.dirname(place.weir), program)
    done = subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=PATIENCE_S)
    return done.stdout


def options_of(page):
    """Those that a help page explains."""
    return {"--help", *re.findall(r"^  (?:-\w, )?(--[\w-]+)", page.split("\n  -h, --help")[0], re.M)}


def commands_of(place):
    return re.findall(r"^  (\w+) ", help_of(place, "weir").split("Commands:\n")[1].split("\n\n")[0], re.M)


def tree_of(place):
    tree = place.path("share")
    said(place, "reference", "--dir", tree, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    return tree


def test_every_command_has_a_page(place):
    tree, commands = tree_of(place), commands_of(place)
    wanted = {"man1/weir.1", "man5/weir.json.5", *(f"man1/weir-{name}.1" for name in commands),
              *(f"man8/{name}.8" for name in DAEMONS)}
    pages = {os.path.relpath(path, os.path.join(tree, "man")) for path in glob.glob(os.path.join(tree, "man/*/*"))}
    assert pages == wanted, pages ^ wanted
    for name in sorted(pages):
        with open(os.path.join(tree, "man", name), encoding="ascii") as file:
            page = file.read()
        assert page.startswith(".TH ") and '"2023-11-14"' in page.split("\n", maxsplit=1)[0], page[:80]
        program = re.sub(r"\.\d$", "", os.path.basename(name))
        if program in DAEMONS or program.removeprefix("weir-") in commands:
            command = (program,) if program in DAEMONS else ("weir", program.removeprefix("weir-"))
            written = {option.replace("\\-", "-") for option in re.findall(r"\\fB(\\-\\-\S+?)\\fR", page)}
            assert options_of(help_of(place, *command)) == written, name
    for checker in (["groff", "-man", "-ww", "-z", "-Tutf8"], ["mandoc", "-T", "lint", "-W", "warning"]):
        if shutil.which(checker[0]) is None:
            print(f"no {checker[0]} here: it has not looked at the pages")
            continue
        for name in sorted(pages):
            done = subprocess.run([*checker, os.path.join(tree, "man", name)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE_S)
            assert done.returncode == 0 and not done.stdout, done.stdout


def test_shells_take_the_completions(place):
    tree = tree_of(place)
    for shell, path in (("bash", "bash-completion/completions/weir"), ("zsh", "zsh/site-functions/_weir"),
                        ("fish", "fish/vendor_completions.d/weir.fish")):
        if shutil.which(shell) is None:
            print(f"no {shell} here: it has not looked at its completion")
            continue
        done = subprocess.run([shell, "-n", os.path.join(tree, path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0 and not done.stdout, done.stdout


def completed(tree, *words):
    """What bash offers for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir 2>/dev/null; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, "bash", os.path.join(tree, "bash-completion/completions/weir"), *words],
                          stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_S, cwd=tree)
    return set(done.stdout.split())


def test_bash_completes(place):
    tree, commands = tree_of(place), commands_of(place)
    assert completed(tree, "weir", "") == {*commands, "help", "--help", "--version"}
    assert completed(tree, "weir", "va") == {"validate"}
    for name in commands:
        assert completed(tree, "weir", name, "--") == options_of(help_of(place, "weir", name)), name
    assert completed(tree, "weir", "reference", "") == {"bash", "fish", "zsh", "schema", "test-schema"}
    assert completed(tree, "weir", "policy", "--json", "h") == {"history"}
    assert completed(tree, "weir", "run", "--summary", "") == {"json"}
    assert completed(tree, "weir", "run", "--summary", "=", "j") == {"json"}
    assert completed(tree, "weir", "run", "--memory", "") == set()
    for words in (("run", "--config", ""), ("run", ""), ("run", "--once", "")):
        assert completed(tree, "weir", *words) == set(os.listdir(tree)), words
    assert completed(tree, "weir", "run", "--state", "") == set(os.listdir(tree))
    assert completed(tree, "/usr/bin/weir-limiter", "--c") == {"--config", "--check"}


if __name__ == "__main__":
    cases.main(globals())
