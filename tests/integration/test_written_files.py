#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an output may not be: another output, or what is read. `weir validate` and `weir run` say it alike, and touch nothing."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import free_port, read
from support.traffic import burst, fixed, source, zone

DONE, USAGE = 0, 2
SITE = [zone("site", [fixed(3, "1d")], id=1), zone("late", [fixed(1, "1d")], id=2, mode="shadow")]


def refused(place, config, *words, state="state"):
    """`weir validate` and `weir run` refuse a configuration, and say these words."""
    for command in ("validate", "run"):
        done = place.run(command, "--config", config, "--state", place.path(state), cwd=place.directory)
        said = done.said() + done.out().decode()
        assert done.code() == USAGE, (command, done.code(), said)
        for word in words:
            assert word in said, (command, word, said)


def test_two_outputs_are_two_files(place):
    """However the file is called, and whether it is there or not."""
    log = source(place.write("log", burst("ann", 9)))
    there = place.write("there", "kept\n")
    os.symlink(there, place.path("soft"))
    os.link(there, place.path("hard"))
    os.makedirs(place.path("deep"))
    os.symlink("deep/none", place.path("dangling"))
    none = place.path("none")
    for one, other in ((there, there), (there, place.path("deep", "..", "there")), (there, place.path("soft")),
                       (there, place.path("hard")), (none, none), (none, "./none"), (none, place.path("deep", "..", "none")),
                       (place.path("dangling"), place.path("deep", "none"))):
        for sections, names in (({"decisions": {"path": one, "shadow_path": other}}, "decisions.path and decisions.shadow_path"),
                                ({"decisions": {"path": one}, "deadletter": {"path": other}}, "decisions.path and deadletter.path"),
                                ({"decisions": {"path": one}, "gateways": ["file:" + other]}, "decisions.path and gateways[0]"),
                                ({"deadletter": {"path": one}, "gateways": [{"to": "nginx-map:" + other}]},
                                 "deadletter.path and gateways[0]")):
            refused(place, place.config(SITE, [log], **sections), f"{names} would both write")
    assert read(there) == b"kept\n" and not os.path.exists(none), os.listdir(place.directory)


def test_no_output_has_the_name_that_another_is_put_away_under(place):
    log = source(place.write("log", burst("ann", 9)))
    rotated = {"path": place.path("out"), "rotate_size": "1MiB", "keep": 2, "shadow_path": place.path("out.2")}
    refused(place, place.config(SITE, [log], decisions=rotated), "decisions.path and decisions.shadow_path would both write")
    for apart in ("out.3", "out.1x", "out.01", "out2"):
        place.good("validate", "--config", place.config(SITE, [log], decisions={**rotated, "shadow_path": place.path(apart)}))


def test_two_outputs_of_a_run_to_the_end_are_two_files(place):
    log, out = source(place.write("log", burst("ann", 9)), follow=False), place.write("out", "kept\n")
    config = place.config(SITE, [log])
    for options in (("--decisions", out, "--shadow", out), ("--decisions", out, "--judged", place.path(".", "out")),
                    ("--decisions", place.path("none"), "--dead-letter", place.path("none")),
                    ("--shadow", out, "--dead-letter", out)):
        for state in ((), ("--state", place.path("state"))):
            done = place.run("run", "--once", "--config", config, *options, *state)
            assert done.code() == USAGE and f"{options[0]} and {options[2]} would both write" in done.said(), done.said()
    assert read(out) == b"kept\n"
    # what is no file takes any number of writers, and standard output is one descriptor
    done = place.good("run", "--once", "--config", config, "--decisions", "-", "--shadow", "-", "--judged", "/dev/null",
                      "--dead-letter", "/dev/null")
    assert {json.loads(line)["mode"] for line in done.out().splitlines()} == {"enforce", "shadow"}, done.out()


def test_no_output_is_the_configuration_or_a_file_that_it_names(place):
    log = place.write("log", burst("ann", 9))
    friends = place.write("friends", "10.0.0.0/8\n")
    os.symlink(place.path("weir.json"), place.path("soft"))
    zones = [zone("site", [fixed(3, "1d")], key=["ip"], id=1, exempt=[friends])]
    for path in (log, place.path("weir.json"), place.path("soft"), friends):
        for written, name in (({"decisions": {"path": path}}, "decisions.path"), ({"deadletter": {"path": path}}, "deadletter.path"),
                              ({"gateways": ["file:" + path]}, "gateways[0]"),
                              ({"gateways": [{"to": "nginx-map:" + path}]}, "gateways[0]")):
            config = place.config(zones, [source(log)], **written)
            before = read(config), read(log), read(friends)
            refused(place, config, f"{name} ", "would write into", "which is also read")
            assert (read(config), read(log), read(friends)) == before


def test_no_output_is_a_file_of_the_state(place):
    """Whether it is there or not. Others may be beside them."""
    log = source(place.write("log", burst("ann", 9)))
    os.makedirs(place.path("state"))
    os.symlink(place.path("state"), place.path("link"))
    for name in ("weir.db", "weir.db-wal", "sources.json", "lock", "log", "log/events", "control", "lists/x"):
        for path in (place.path("state", name), place.path("link", name), place.path("state", "..", "link", ".", name)):
            for written in ({"decisions": {"path": path}}, {"deadletter": {"path": path}}, {"gateways": ["file:" + path]}):
                refused(place, place.config(SITE, [log], **written), "would write over what weir keeps in the state directory")
    assert not os.listdir(place.path("state"))
    beside = place.config(SITE, [log], decisions={"path": place.path("state", "decisions.jsonl")},
                          gateways=["file:" + place.path("state", "weir.map")])
    place.good("validate", "--config", beside, "--state", place.path("state"))


def test_a_run_to_the_end_leaves_its_configuration(place):
    config = place.config(SITE, [source(place.write("log", burst("ann", 9)), follow=False)])
    before = read(config)
    for option in ("--decisions", "--shadow", "--judged", "--dead-letter"):
        done = place.run("run", "--once", "--config", config, option, config)
        assert done.code() == USAGE and f"{option} {config} would write into" in done.said(), done.said()
    assert read(config) == before


def test_a_subscriber_keeps_its_list_elsewhere(place):
    log, out = place.write("log", burst("ann", 9)), place.write("out", "kept\n")
    config = place.config(SITE, [source(log)], decisions={"path": out})
    target = place.write("target", "file:" + place.path("target") + "\n")
    state = place.path("state")
    for to in (("--to", "file:" + config), ("--to", "nginx-map:" + log), ("--to", "file:" + out), ("--to-file", target),
               ("--to", "file:" + place.path("state", "weir.db"))):
        done = place.run("subscribe", "--config", config, "--state", state, "--once", *to)
        assert done.code() == USAGE and f"{to[0]} " in done.said() and "would" in done.said(), done.said()
    assert read(out) == b"kept\n" and read(target).startswith(b"file:") and not os.path.exists(state)


def test_no_output_is_a_directory(place):
    os.makedirs(place.path("folder"))
    for written, name in (({"decisions": {"path": place.path("folder")}}, "decisions.path"),
                          ({"deadletter": {"path": place.path("folder")}}, "deadletter.path"),
                          ({"gateways": ["file:" + place.path("folder")]}, "gateways[0]:")):
        config = place.config(SITE, [source(place.write("log", ""))], **written)
        refused(place, config, f"{name} {place.path('folder')} is a directory")


def test_no_output_is_where_a_glob_would_find_it(place):
    """Before it is there: else the first start reads its own decisions, and the next one is refused."""
    place.write("logs/app.log", burst("ann", 9))
    os.symlink(place.path("logs"), place.path("link"))
    out = place.path("logs", "decisions.jsonl")
    rotated = {"path": place.path("logs", "out"), "rotate_size": "1MiB", "keep": 3}
    for written, glob in (({"decisions": {"path": out}}, place.path("logs", "*")), ({"deadletter": {"path": out}}, place.path("link", "*.json*")),
                          ({"gateways": ["file:" + place.path("link", "list")]}, place.path("logs", "l*")),
                          ({"decisions": rotated}, place.path("logs", "*.1")), ({"decisions": {"path": out}}, out)):
        refused(place, place.config(SITE, [source(glob)], **written), "would be read by sources[0]")
        done = place.run("validate", "--config", place.config(SITE, [source(glob, exclude=["decisions.*", "list*", "out.*"])], **written))
        assert done.code() == DONE or glob == out, done.said()
    assert os.listdir(place.path("logs")) == ["app.log"]


def test_a_descriptor_that_nobody_gave_is_none(place):
    """Those that weir opens itself, as its lock and its database, have small numbers, too."""
    log, out = place.write("access.log", burst("ann", 9)), place.path("given")
    config = place.config(SITE, [source(log)])
    for number in range(3, 10):
        done = place.run("run", "--once", "--config", config, "--state", place.path(f"s{number}"), "--decisions", f"/dev/fd/{number}")
        assert done.code() in (1, 2) and f"/dev/fd/{number}" in done.said(), (number, done.said())
        place.good("list", "--state", place.path(f"s{number}"))
    given = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.set_inheritable(given, True)
    place.good("run", "--once", "--config", config, "--state", place.path("s"), "--decisions", f"/dev/fd/{given}", pass_fds=(given,))
    assert read(out).count(b'"block"') == 1, read(out)
    for words in (("validate",), ("run",)):
        done = place.run(*words, "--config", config, "--state", "/dev/stdout")
        assert done.code() in (0, 1, 2), (words, done.code(), done.said())


def test_no_two_listen_at_one_port(place):
    log, port = source(place.write("log", "")), free_port()
    at, everywhere = f"127.0.0.1:{port}", f"*:{port}"
    forward = {"type": "forward", "name": "f", "listen": f"tcp://{at}", "format": "json"}
    syslog, http = {"type": "syslog", "listen": f"tcp://{at}", "format": "json", "follow": True}, {"type": "http", "name": "h", "listen": at, "format": "json"}
    udp = {**syslog, "listen": f"udp://{at}"}
    for sources, sections, word in (([log], {"listen": {"http": at}, "archiver": {"enabled": True, "api": everywhere, "tokens": ["x" * 40]}},
                                     "archiver.api: has the port of listen.http"),
                                    ([log, syslog], {"listen": {"http": at}}, "sources[1].listen: has the port of listen.http"),
                                    ([http], {"listen": {"resp": at}}, "sources[0].listen: has the port of listen.resp"),
                                    ([udp, {**udp, "listen": f"udp://{everywhere}"}], {}, "sources[1].listen: has the port of sources[0].listen"),
                                    ([forward, http], {}, "sources[1].listen: has the port of sources[0].listen")):
        refused(place, place.config(SITE, sources, **sections), word)
    place.good("validate", "--config", place.config(SITE, [udp, syslog]))
    # A socket of "::" takes IPv6 alone, so both families have a source each; what takes both stands alone.
    for one, other, good in (("0.0.0.0", "[::]", True), ("127.0.0.1", "[::]", True), ("0.0.0.0", "[::1]", True), ("0.0.0.0", "127.0.0.1", False),
                             ("[::]", "[::1]", False), ("*", "[::1]", False), ("*", "127.0.0.1", False), ("localhost", "0.0.0.0", False)):
        config = place.config(SITE, [{**udp, "listen": f"udp://{host}:{port}", "name": host.strip("[]*:") or "all"} for host in (one, other)])
        done = place.run("validate", "--config", config)
        assert ("has the port of" not in done.said()) == good, (one, other, done.said())


if __name__ == "__main__":
    cases.main(globals())
