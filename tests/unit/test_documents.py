#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages say what is there: links lead somewhere, members are defined, and words have one meaning.

Every relative link in a *.md leads to a file, and behind # to a heading of it. The JSON members that the code writes are
those that the specification defines, and examples have no others. Each member in archiver/openapi.json has a
description. Each word of the glossary stands there once. Where code cites a section of the specification, it exists.
Each entry of the runbook has its five parts; what a log line, a page or an alert names is one of them, and its table has
every alert. The words that its symptoms quote stand in the code; what a topic costs is what the alerts say; what it
says to type until it is over tells a page of metrics of the trouble from one of health.

    tests/unit/test_documents.py [ROOT]      the tree to look at; without it, the one that this file is in
"""

import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import runbook  # pylint: disable=wrong-import-position

ROOT = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else \
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PAGES = "common/specification"
NOT_OURS = {"build", "node_modules", "__pycache__"}

# The files that write JSON, and how they name members | the page | its sections with the members' tables
#   "      in their text, as \"name\":, or given to the writer of JSON
#   NAME   given to that function or list, or, with a dot, assigned to that member
#   +NAME  in no literal of theirs
#   -NAME  something else
NO_MEMBERS = "-done -sliding_window -fixed_window -uniform -token_bucket -gcra -queue"
WRITERS = (
    (('limiter/lane/decision.c | " member +algorithm', f"common/algorithm/*.[ch] | .name {NO_MEMBERS}"),
     "decisions.md", ("Members", "Limit")),
    (("limiter/overrides/override_command.c | members",), "log.md", ("Commands",)),
    (('collector/send/dead_letter*.c limiter/worker/*.c | "',), "log.md", ("Dead letters",)),
    (('deploy/weir/inspect/decode_json.c | " put_int put_uint put_json +command',), "output.md", ("weir decode",)),
    (('deploy/weir/inspect/state_lines.c | " put_time weir_text_printf', 'common/algorithm/*.c | " -algorithm -precision'),
     "output.md", ("weir state",)),
    (('deploy/weir/inspect/state_overrides.c | "',), "output.md", ("weir state --orders",)),
    (('deploy/weir/explain/answer_json.c | " put_value',), "output.md", ("weir explain --json",)),
    (('deploy/weir/test/output.c | "',), "output.md", ("weir test --json",)),
    (('deploy/weir/run/outputs.c | "',), "output.md", ("weir run --judged",)),
    (('deploy/weir/run/summary.c | " json_member',), "output.md", ("weir run --summary json",)),
)

faults = []


def fault(place, words):
    faults.append(f"{place}: {words}")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def files(*endings):
    for folder, inner, names in os.walk(ROOT):
        inner[:] = sorted(name for name in inner if name not in NOT_OURS and name != ".git")
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


# ---- Markdown ----

def prose(text):
    """The text without code: its lines stay, so that a fault has a line."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())
    return re.sub(r"`[^`\n]*`", blank, re.sub(r"^```.*?^```", blank, text, flags=re.S | re.M))


def headings(text):
    """Headings outside of code, as they stand."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return [found.strip() for found in re.findall(r"^#+ +(.+)$", bare, flags=re.M)]


def anchors(text):
    """What # may name: as GitHub makes it of headings."""
    made = {}
    for heading in headings(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        made[slug] = made.get(slug, -1) + 1
        yield slug if made[slug] == 0 else f"{slug}-{made[slug]}"


def section(text, name):
    """What stands under a heading, up to the next one."""
    found = re.search(rf"^#+ +{re.escape(name)}\n(.*?)(?=^#|\Z)", text, flags=re.S | re.M)
    return found.group(1) if found else None


def rows(text):
    """The tables' rows as lists of cells."""
    for line in text.split("\n"):
        if line.startswith("|") and not line.startswith("|---"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def check_links():
    for path in files(".md"):
        text = prose(read(path))
        for number, line in enumerate(text.split("\n"), 1):
            for link in re.findall(r"\]\(([^)\s]+)\)", line):
                if not re.match(r"[a-z]+:", link):
                    check_link(path, number, link)


def check_link(path, number, link):
    name, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if not os.path.exists(os.path.join(ROOT, target)):
        fault(f"{path}:{number}", f"the link {link} leads to no file")
    elif anchor and not (target.endswith(".md") and anchor in anchors(read(target))):
        fault(f"{path}:{number}", f"the link {link} leads to no heading")


# ---- members ----

def named(code, how):
    """The member names in C code that one word of WRITERS finds."""
    if how == '"':
        return set(re.findall(r'\\"(\w+)\\":', code)) | set(re.findall(r'\bweir_json_write_\w+\([^,;]+, "(\w+)"', code))
    if how.startswith("."):
        return set(re.findall(rf'{re.escape(how)} = "(\w+)"', code))
    calls = re.findall(rf"\b{how}(?:\(|\[\] = \{{)([^;]*);", code)
    return {name for call in calls for name in re.findall(r'(?<!\\)"(\w+)"', call)}


def written(parts):
    """The member names that some files write."""
    names, seen = set(), False
    for part in parts:
        patterns, _, how = part.partition(" | ")
        for path in (path for pattern in patterns.split() for path in glob.glob(os.path.join(ROOT, pattern))):
            seen = True
            for word in how.split():
                names |= {word[1:]} if word[0] == "+" else set() if word[0] == "-" else named(read(path), word)
        names -= {word[1:] for word in how.split() if word[0] == "-"}
    if not seen:
        fault(str(parts), "there is no such file: WRITERS in this test names it")
    return names


def defined(path, names):
    """The members in the first cells of a page's tables whose head says that they are."""
    found = set()
    for name in names:
        text = section(read(path), name)
        if text is None:
            fault(path, f'there is no section "{name}"')
            continue
        for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
            cells = [row[0] for row in rows(table)]
            if cells[0] == "member":
                found |= {word for cell in cells[1:] for word in re.findall(r"`(\w+)`", cell)}
    return found


def check_members():
    for parts, page, names in WRITERS:
        path = f"{PAGES}/{page}"
        first = parts[0].split()[0]
        code, page_has = written(parts), defined(path, names)
        for name in sorted(code - page_has):
            fault(path, f"`{name}`, which {first} writes, is not defined in {' or '.join(names)}")
        for name in sorted(page_has - code):
            fault(path, f"`{name}` in {' or '.join(names)} is nothing that {first} writes")


def check_examples():
    """Decisions in code blocks have the members of decisions, in their order."""
    known = list(dict.fromkeys(re.findall(r"^\| `(\w+)` \|", section(read(f"{PAGES}/decisions.md"), "Members"), flags=re.M)))
    parts = defined(f"{PAGES}/decisions.md", ["Limit"])
    seen = 0
    for path in files(".md"):
        for line in read(path).split("\n"):
            if not (line.startswith("{") and '"action":' in line):
                continue
            decision = json.loads(line)
            seen += 1
            if any(name not in known for name in decision) or sorted(decision, key=known.index) != list(decision):
                fault(path, f"members of a decision that are unknown, or in another order: {line[:60]}…")
            for name in sorted(set(decision.get("limit", {})) - parts):
                fault(path, f"no limit has `{name}`: {line[:60]}…")
    if seen == 0:
        fault(PAGES, "there is no example of a decision")


def check_openapi():
    schemas = json.loads(read("archiver/openapi.json"))["components"]["schemas"]

    def is_described(schema):
        target = schema.get("$ref", "").rpartition("/")[2]
        return "description" in schema or (target and "description" in schemas[target])

    def walk(place, schema):
        for name, member in schema.get("properties", {}).items():
            if not is_described(member):
                fault("archiver/openapi.json", f"{place}.{name} has no description")
            walk(f"{place}.{name}", member)
        if "items" in schema:
            walk(place, schema["items"])

    for name, schema in schemas.items():
        walk(name, schema)


# ---- words and citations ----

def check_glossary():
    path = f"{PAGES}/glossary.md"
    words = [row[0] for row in rows(read(path))][1:]
    folded = [word.casefold() for word in words]
    for word, before in zip(folded[1:], folded):
        if word == before:
            fault(path, f'"{word}" stands there twice')
        elif word < before:
            fault(path, f'"{word}" stands behind "{before}": the words are in the order of the alphabet')
    if len(words) < 50:
        fault(path, f"{len(words)} words are too few to be all")


def check_citations():
    """FILE.md, Section in code and tests: lines of a comment are read as one."""
    for path in files(".c", ".h", ".py", ".sql", ".js"):
        if path.startswith("tests/unit/test_documents"):
            continue
        text = re.sub(r"\n[ \t]*(\*|//|#|--)?[ \t]*", " ", read(path))
        for name, rest in re.findall(rf"({PAGES}(?:/\w+)?\.md)(.{{0,60}})", text):
            if not os.path.exists(os.path.join(ROOT, name)):
                fault(path, f"cites {name}, which is no page")
            elif rest.startswith(", ") and not any(rest[2:].startswith(each) for each in headings(read(name))):
                fault(path, f'cites {name}{rest[:30]}…, which is no section of it')


# ---- the runbook ----

RUNBOOK = "deploy/RUNBOOK.md"
ALERTS = "deploy/grafana/weir-alerts.yaml"


def check_runbook():
    text = read(RUNBOOK)
    entries = runbook.entries(text)
    for anchor, entry in entries.items():
        parts = runbook.parts(entry)
        if tuple(name for name, _ in parts) != runbook.PARTS or not all(under for _, under in parts):
            fault(RUNBOOK, f"{anchor} does not have the parts {', '.join(runbook.PARTS)}, in this order")
        for name, under in parts:
            if name in ("Type", "Over") and not runbook.commands(under):
                fault(RUNBOOK, f"{anchor}: there is no command under {name}")
    for path in files(".c", ".h", ".yaml", ".js", ".py"):
        if not path.startswith("tests/"):
            check_anchors(path, re.findall(r"runbook: ([a-z-]+)", read(path)), entries)
    check_alerts(text, entries)
    check_symptoms(entries)
    check_topics(entries)
    check_over(entries)


def check_anchors(path, named_anchors, entries):
    for anchor in sorted(set(named_anchors) - set(entries)):
        fault(path, f'names the entry "{anchor}", which {RUNBOOK} does not have')


def check_alerts(text, entries):
    table = runbook.alert_anchors(text)
    rules = re.split(r"^ *- alert: (\w+)$", read(ALERTS), flags=re.M)
    alerts = dict(zip(rules[1::2], rules[2::2]))
    for name, rule in alerts.items():
        urls = re.findall(r"runbook_url: .*#([\w-]+)", rule)
        check_anchors(ALERTS, urls, entries)
        if name not in table:
            fault(RUNBOOK, f"the table of alerts does not have {name}")
        elif urls and urls != [table[name]]:
            fault(RUNBOOK, f"the table sends {name} to {table[name]}, and the alert to {urls[0]}")
    for name in sorted(set(table) - set(alerts)):
        fault(RUNBOOK, f"the table of alerts has {name}, which is no alert")


# What a symptom quotes of others: servers, systems, and weir's own configuration
OTHERS = ("all log dirs have failed", "No space left on device", "Lock wait timeout exceeded", "Access denied", "WRONGPASS", "NOAUTH",
          "failed")


def check_symptoms(entries):
    """What a symptom quotes is an alert, a metric, a page, a setting, a command, or words of one string of the code."""
    literals = "\n".join(strings_of_code())
    names = "\n".join(read(path) for path in (ALERTS, "common/metrics.md", "common/settings.md"))
    seen = set()
    for anchor, entry in entries.items():
        symptom = re.sub(r"\s+", " ", dict(runbook.parts(entry)).get("Symptom", ""))
        ticks = re.findall(r"`([^`]+)`", symptom)
        for words in ticks + re.findall(r'"([^"]+)"', re.sub(r"`[^`]+`", "", symptom)):
            pattern = "[^\n]*".join(re.escape(part) for part in re.split(r" ?… ?", words))
            if words in OTHERS:
                seen.add(words)
            elif not (re.search(pattern, literals) or re.search(rf"(?<![\w.]){re.escape(words.partition('{')[0])}(?!\w)", names)):
                fault(RUNBOOK, f'{anchor}: its symptom has "{words}", which no string of the code has')
    for words in sorted(set(OTHERS) - seen):
        fault("tests/unit/test_documents.py", f'OTHERS has "{words}", which no symptom has')


def strings_of_code():
    """The strings in C, each on a line: those that stand side by side are one, and a number or a name in it is nothing."""
    for path in files(".c", ".h"):
        if not path.startswith("tests/"):
            code = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", read(path))
            for words in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code):
                yield words.replace('\\"', '"')


def check_topics(entries):
    """The table of what a topic costs has every topic, and the severity of the alert that fires without it."""
    table = {topic: cells[-1] for cells in rows(entries["topic-deleted"]) for topic in re.findall(r"`([^`]+)`", cells[0])}
    code = set(re.findall(r'"weir\.([a-z.]+)"', read("common/bus/bus.c")))
    for topic in sorted(code ^ set(table)):
        fault(RUNBOOK, f"topic-deleted: the table or the code lacks the topic {topic}")
    rules = re.findall(r'weir_topic_up\{[^}]*?topic(=~|!~)"([^"]+)"[^}]*\}\)? == 0\n(?:.*\n)*? *labels: \{ severity: (\w+) \}',
                       read(ALERTS))
    for topic, severity in sorted(table.items()):
        found = {told for how, pattern, told in rules if bool(re.fullmatch(pattern, f"weir.{topic}")) == (how == "=~")}
        if found != {severity}:
            fault(RUNBOOK, f"topic-deleted: without {topic} comes a {severity}, and the alerts say {sorted(found)}")
    for topic, costs in re.findall(r'\("topic ([a-z.]+) deleted", .*, (VERDICTS|NOTHING)[,)]', read("tests/chaos/night_faults.py")):
        if (table.get(topic) == "page") != (costs == "VERDICTS"):
            fault(RUNBOOK, f"topic-deleted: without {topic} comes a {table.get(topic)}, and tests/chaos says that it costs {costs}")


# entry | a page of metrics while it lasts | one when it is over: where a state is too dear for test_runbook, or passes by itself
OVER = (
    ("limiter-lag", "weir_limiter_lag_seconds 31.5", "weir_limiter_lag_seconds 5e-05"),
    ("limiter-lag", "weir_limiter_lag_messages 0", "weir_limiter_lag_seconds 0"),  # absent: not known
    ("memory", "weir_limiter_index_bytes 9000000\nweir_limiter_memory_limit_bytes 16777216\nweir_limiter_lag_seconds 0",
     "weir_limiter_index_bytes 8000000\nweir_limiter_memory_limit_bytes 16777216\nweir_limiter_lag_seconds 1.5"),
    ("clock", "weir_bus_clock_skew_seconds -7200.25\nweir_limiter_clock_ahead_seconds 0",
     "weir_bus_clock_skew_seconds -0.25\nweir_limiter_clock_ahead_seconds 0"),
    ("clock", "weir_bus_clock_skew_seconds 1.5\nweir_limiter_clock_ahead_seconds 0",
     "weir_bus_clock_skew_seconds 3e-06\nweir_limiter_clock_ahead_seconds 0"),
    ("clock", "weir_bus_clock_skew_seconds 0\nweir_limiter_clock_ahead_seconds 7170.4",
     "weir_bus_clock_skew_seconds 0\nweir_limiter_clock_ahead_seconds 4.9"),
    ("store-locked", "weir_store_up 1\nweir_limiter_unsaved_age_seconds 112.4", "weir_store_up 1\nweir_limiter_unsaved_age_seconds 9.3"),
    ("store-locked", "weir_store_up 0\nweir_limiter_unsaved_age_seconds 20", "weir_store_up 1\nweir_limiter_unsaved_age_seconds 0"),
    ("store-read-only", "weir_store_up 0", "weir_store_up 1"),
    ("format-changed", 'weir_source_format_changed{source="a b"} 0\nweir_source_format_changed{source="c"} 1',
     'weir_source_format_changed{source="a b"} 0'),
    ("archive-behind", "weir_archiver_lag_seconds 4000", "weir_archiver_lag_seconds 0.5"),
    ("is-it-over", "weir_limiter_lag_seconds 5.5", "weir_limiter_lag_seconds 4.5"),
)


def says_yes(commands, page):
    """Whether each of the commands ends with 0, given that page by curl."""
    return all(subprocess.run(["bash", "-o", "pipefail", "-c", f'curl() {{ echo "$PAGE"; }}; {command}'], check=False,
                              env={**os.environ, "PAGE": page}, stdout=subprocess.DEVNULL).returncode == 0 for command in commands)


def check_over(entries):
    """Over says no while it lasts."""
    for anchor, lasting, ended in OVER:
        commands = [each for each in runbook.commands(dict(runbook.parts(entries[anchor]))["Over"]) if "/metrics | " in each]
        if not commands or says_yes(commands, lasting):
            fault(RUNBOOK, f"{anchor}: Over says yes to {lasting}")
        if not says_yes(commands, ended):
            fault(RUNBOOK, f"{anchor}: Over says no to {ended}")


def main():
    for check in (check_links, check_members, check_examples, check_openapi, check_glossary, check_citations, check_runbook):
        check()
    for words in faults:
        print(words)
    print(f"{len(faults)} faults in {len(list(files('.md')))} pages")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
