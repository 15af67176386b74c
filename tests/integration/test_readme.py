#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the README shows is typed as it stands: its configuration, and each command in turn, beside a weir that runs by it.

Only the log's place and the ports are others than there. The state is in the usual place, which root has in a namespace
of its own. The commands that install a package are test_newcomer's."""

import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases
from support.place import ROOT, free_port

SCRIPT = """
{mount}
cd {directory}
export PATH={programs}:$PATH HOME={directory} XDG_STATE_HOME={directory}/state
say() {{ echo "== $*"; }}
{validate}
echo "-> $?"
{run} 2>run.log &
running=$!
for _ in $(seq 300); do
  weir list --config weir.json 2>/dev/null | grep -q login && weir top --url http://127.0.0.1:{api} >/dev/null 2>&1 && break
  sleep 0.1
done
{commands}
kill $running
wait $running
say "weir run"
echo "-> $?"
"""


def section(title):
    """The text of one section of the README."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.search(rf"^## {title}\n(.*?)^## ", file.read(), re.DOTALL | re.MULTILINE)[1]


def blocks(text, language):
    """Its blocks in that language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def lines_of(block):
    """The commands of a block, without what is said of them."""
    return [re.sub(r"\s+# .*", "", line) for line in block.strip().splitlines()]


def request(address, method, path):
    """A line of an access log, of now."""
    now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
    return f'{address} - - [{now}] "{method} {path} HTTP/1.1" 401 17 "-" "curl/8.5.0"\n'


def told_by(place, script):
    """What its commands came to: {command: (exit code, what it printed)}."""
    words, path = ["bash"], place.write("script", script)
    if os.geteuid() == 0:
        if shutil.which("unshare") is None:
            raise cases.Skipped("the usual state of root is tried in a namespace, which needs unshare")
        words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash"]
    done = place.run(*words[1:], path, program=words[0])
    told = {}
    for part in re.split(r"^== ", done.out().decode(), flags=re.MULTILINE)[1:]:
        head, _, rest = part.partition("\n")
        said, _, code = rest.rpartition("-> ")
        told[head] = (int(code), said)
    assert told, done.said()
    return told


def test_commands_do_what_the_readme_says(place):
    use = section("Use it")
    config = json.loads(blocks(use, "json")[0])
    (validate, run), operators = map(lines_of, blocks(use, "sh"))
    api, pages = free_port(), free_port()
    config["sources"][0]["path"] = place.path("access*.log")
    config["listen"]["http"] = f"127.0.0.1:{pages}"
    config["archiver"] = {"enabled": True, "api": f"127.0.0.1:{api}", "interval": "1s"}
    place.write("weir.json", json.dumps(config))
    place.write("access.log", "".join(request("203.0.113.9", "POST", "/login") for _ in range(8)))
    operators = [line.replace("8642", str(api)) for line in operators] + ["weir explain 203.0.113.9 --zone login --config weir.json"]
    mount = "mount -t tmpfs none /var/lib && mkdir -p /var/lib/weir" if os.geteuid() == 0 else ""
    typed = "\n".join(f"say '{line}'\n{line} 2>&1\necho \"-> $?\"" for line in operators)
    told = told_by(place, SCRIPT.format(mount=mount, directory=place.directory, commands=typed, run=run, api=api,
                                        programs=os.path.dirname(os.path.abspath(place.weir)),
                                        validate=f"say '{validate}'\n{validate}"))
    assert len(told) == len(operators) + 2, told
    for line, (code, said) in told.items():
        assert code == 0, (line, code, said)
    said = {re.sub(r"weir +(\w+).*", r"\1", line): said for line, (_, said) in told.items()}
    assert 'zone "login"' in said["validate"] and "is valid" in said["validate"], said["validate"]
    assert re.search(r"login +203\.0\.113\.9 .* 5 in 1m \(held 5\)", said["list"]), said["list"]
    assert "site" in said["top"] and "BLOCKED NOW" in said["top"], said["top"]
    for command, words in (("block", "blocked until"), ("lift", "lifted"), ("allow", "allowed until"),
                           ("override", "rates times 0.5"), ("forget", "203.0.113.9")):
        assert words in said[command], (command, said[command])
    with open(place.path("decisions.jsonl"), encoding="utf-8") as file:
        decisions = [json.loads(line) for line in file]
    assert (decisions[0]["zone"], decisions[0]["key"], decisions[0]["count"]) == ("login", ["203.0.113.9"], 5), decisions
    shown = json.loads(blocks(use, "json")[1])
    assert list(decisions[0]) == list(shown), decisions[0]  # the members that the README shows, in their order


if __name__ == "__main__":
    cases.main(globals())
