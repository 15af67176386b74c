# SPDX-License-Identifier: Apache-2.0
"""Redis clients of other languages, with what their registries have: programs of integration/clients, and the examples of
deploy/gateways/clients. A program asks

    PROGRAM plain|cluster PORT KEY [USER PASSWORD]

and prints an object: `check` and `throttle` are the five numbers of a first check, of zone `site` and by CL.THROTTLE; `pipeline`
twelve answers of WEIR.ALLOW that were asked together; `error` the words of a check of no zone; `many` the checks of a hundred
other keys. What cannot be had here is skipped.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess

from support import cases, venv
from support.checks import BUILD
from support.place import PATIENCE_S, ROOT, read

from parts.jars import Jars, fetching, place as place_of_jars  # pylint: disable=wrong-import-order
from parts.process import together  # pylint: disable=wrong-import-order
from parts.words import Unavailable  # pylint: disable=wrong-import-order

HERE = os.path.join(ROOT, "tests", "integration", "clients")
FETCH_S = 300
NODE_LEAST = 20
GO_S = 120  # it builds its own library at first, a minute of a processor
JAVA = Jars("Redis-clients", "7.0.0", 12, ("redis.clients:jedis:7.0.0", "io.lettuce:lettuce-core:6.8.1.RELEASE"),
            ("jedis-7.0.0.jar", "lettuce-core-6.8.1.RELEASE.jar"))


def tool(name):
    """The path of a language's program."""
    found = shutil.which(name)
    if found is None:
        raise cases.Skipped(f"there is no {name} on this machine")
    return found


def fetched(command, directory):
    """Runs what fetches packages; skips where that cannot be."""
    try:
        done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except subprocess.TimeoutExpired:
        raise cases.Skipped(f"{' '.join(command[:3])} fetches for longer than {FETCH_S} s") from None
    if done.returncode != 0:
        raise cases.Skipped(f"{' '.join(command[:3])} cannot fetch the clients: {(done.stderr or done.stdout)[-400:]}")


def modules():
    """The directory of the packages for Node, made once in the build."""
    npm, names = tool("npm"), ("package.json", "package-lock.json")
    version = subprocess.run([tool("node"), "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < NODE_LEAST:
        raise cases.Skipped(f"the clients want Node {NODE_LEAST} or newer, not {version.strip()}")
    texts = [read(os.path.join(HERE, name)) for name in names]
    target = os.path.join(BUILD, f"clients-node-{hashlib.sha256(b''.join(texts)).hexdigest()[:12]}")
    os.makedirs(target, exist_ok=True)
    with open(os.path.join(target, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(target, "whole")):
            for name, text in zip(names, texts):
                with open(os.path.join(target, name), "wb") as file:
                    file.write(text)
            fetched([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"], target)
            with open(os.path.join(target, "whole"), "w", encoding="ascii"):
                pass
    return os.path.join(target, "node_modules")


def node_program(place, name, text):
    """The command of a program for Node."""
    os.makedirs(place.path("node"), exist_ok=True)
    if not os.path.lexists(place.path("node", "node_modules")):
        os.symlink(modules(), place.path("node", "node_modules"))
    return [tool("node"), place.write(f"node/{name}", text)]


def go_program(place, name, text):
    """The command of a program in Go, built."""
    go, directory = tool("go"), place.path(f"go-{name}")
    os.makedirs(directory)
    for file in ("go.mod", "go.sum"):
        shutil.copy(os.path.join(HERE, file), directory)
    place.write(f"go-{name}/main.go", text)
    fetched([go, "mod", "download"], directory)
    try:
        built = subprocess.run([go, "build", "-o", "program", "main.go"], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=GO_S, check=False, env={**os.environ, "CGO_ENABLED": "0"})
    except subprocess.TimeoutExpired as why:  # what is built so far is kept by go: the next try takes less
        raise cases.Skipped(f"go does not build a client within {GO_S} s here") from why
    assert built.returncode == 0, built.stderr
    return [os.path.join(directory, "program")]


def java_program(place, name, text):
    """The command of a program in Java, built."""
    compiler = tool("javac")
    try:
        together([fetching(JAVA)])
    except Unavailable as why:
        raise cases.Skipped(str(why)) from why
    path = f"{place_of_jars(JAVA)}/libs/*:{place.path('java')}"
    built = subprocess.run([compiler, "-cp", path, "-d", place.path("java"), place.write(f"java/{name}.java", text)],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FETCH_S, check=False)
    assert built.returncode == 0, built.stderr
    return [tool("java"), "-XX:TieredStopAtLevel=1", "-cp", path, name]


def python_program(place, name, text):
    """The command of a program for the Python that has Redis clients."""
    return [venv.made("checks"), place.write(name, text)]


def source(name):
    """The text of a program of integration/clients."""
    return read(os.path.join(HERE, name)).decode()


CLIENTS = {
    "ioredis": lambda place: node_program(place, "ioredis.mjs", source("ioredis.mjs")),
    "node-redis": lambda place: node_program(place, "node_redis.mjs", source("node_redis.mjs")),
    "go-redis": lambda place: go_program(place, "client", source("client.go")),
    "Jedis": lambda place: java_program(place, "AskJedis", source("AskJedis.java")),
    "Lettuce": lambda place: java_program(place, "AskLettuce", source("AskLettuce.java")),
    "hiredis": lambda _: [os.path.join(BUILD, "tests", "hiredis_ask")],
}


EXAMPLES = {
    "check.py": lambda place, text: python_program(place, "check.py", text),
    "check.mjs": lambda place, text: node_program(place, "check.mjs", text),
    "check.go": lambda place, text: go_program(place, "check", text),
    "Check.java": lambda place, text: java_program(place, "Check", text),
}


def told(command, mode, port, key, *login):
    """What a client printed."""
    done = subprocess.run([*command, mode, str(port), key, *login], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=4 * PATIENCE_S, check=False)
    assert done.returncode == 0, f"{command} {mode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)
