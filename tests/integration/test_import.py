#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir import`: rules of other programs become zones that block the same clients, and nothing is left out in silence."""

import json
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases
from support.place import PATIENCE_S, until

FILTER = r"""
[INCLUDES]
before = shop-common.conf

[Definition]
failregex = ^denied (?:to )?<HOST>(?: as <F-USER>\S+</F-USER>)?$
            ^<F-NOFAIL>ping</F-NOFAIL> from <ADDR>$
            <more-<mode>>
more-normal =
more-strict = ^(?:ping|scan{,2}) from <ADDR>\s*$
              odd thing of <ADDR>
ignoreregex = as monitor$
prefregex = %(known/prefregex)s
mode = normal
"""

COMMON = r"""
[DEFAULT]
_daemon = shop(?:d|-\w+)?
[Definition]
prefregex = ^\s*<F-MLFID>\S+ %(_daemon)s\[\d+\]</F-MLFID>: (?:(?:error|info): )?<F-CONTENT>.+</F-CONTENT>$
"""

PLAIN = r"""
[Definition]
failregex = \bbad word "[^"]*" by <ADDR>,
            ^\[\] \[w\] <ADDR> (?P<x>a|b)=(?P=x)$
"""

JAILS = r"""
[INCLUDES]
before = paths.conf
[DEFAULT]
enabled = false
maxretry = 5
findtime = 10m
bantime = 1h
backend = polling
usedns = no
filter = %(__name__)s[mode=%(mode)s]
mode = normal
action = note
ignoreip = 127.0.0.1/8
[shop]
logpath = %(shop_log)s
[shop-plain]
filter = plain
logpath = %(shop_log)s
          %(logs)s/plain.log
[unused]
logpath = /nowhere
"""

LOCAL = r"""
[DEFAULT]
ignoreip = 192.0.2.77/24 2001:db8:1::/48
[shop]
enabled = true
maxretry = 3
mode = strict   ; all of it
[shop-plain]
enabled = yes
maxretry = 2
"""

NOTE = """
[Definition]
actionban = echo <name> <ip> >> {bans}
"""


def configuration(place):
    """A directory as fail2ban has it."""
    logs = place.path("logs")
    place.write("logs/shop.log", "")
    place.write("logs/plain.log", "")
    place.write("f2b/filter.d/shop.conf", FILTER)
    place.write("f2b/filter.d/shop-common.conf", COMMON)
    place.write("f2b/filter.d/plain.conf", PLAIN)
    place.write("f2b/paths.conf", f"[DEFAULT]\nlogs = {logs}\nshop_log = %(logs)s/none.log\n")
    place.write("f2b/paths.local", "[DEFAULT]\nshop_log = %(logs)s/shop.log\n")
    place.write("f2b/jail.conf", JAILS)
    place.write("f2b/jail.d/10-more.conf", "[shop]\nmaxretry = 9\n")
    place.write("f2b/jail.local", LOCAL)
    place.write("f2b/action.d/note.conf", NOTE.format(bans=place.path("bans")))
    place.write("f2b/fail2ban.conf", f"""[Definition]
loglevel = INFO
logtarget = {place.path("f2b.log")}
syslogsocket = auto
socket = {place.path("f2b.sock")}
pidfile = {place.path("f2b.pid")}
dbfile = None
allowipv6 = auto
dbpurgeage = 1d
""")
    return place.path("f2b")


def say(words, program="shopd", ago_s=60, process=iter(range(1, 10000))):
    """A line of syslog."""
    return time.strftime("%b %d %H:%M:%S", time.gmtime(time.time() - ago_s)) + f" host {program}[{next(process)}]: {words}\n"


def shop_log():
    """Lines that are failures, and lines that look like some."""
    def times(count, words, **more):
        return "".join(say(words, ago_s=60 - i, **more) for i in range(count))
    return "".join([
        times(3, "error: denied to 198.51.100.1"),
        times(2, "denied 198.51.100.2"),                         # too few
        times(3, "denied 198.51.100.3 as eve"),
        times(3, "denied 198.51.100.4 as monitor"),              # ignored
        times(4, "ping from 198.51.100.5"),                      # the first that matches says it is no failure
        times(3, "scan from 198.51.100.6"),
        times(3, "scannn from 198.51.100.7"),
        times(3, "info: an odd thing of 2001:db8::1 of 198.51.100.9"),
        times(3, "denied 192.0.2.1"),                            # exempt, by a network that was not written as one
        times(3, "denied 2001:db8:1::5"),
        times(3, "denied 198.51.100.10", program="other"),
        times(3, "denied 198.51.100.11", program="shop-web"),
        times(3, "denied evil.example as 198.51.100.12"),
        times(2, 'bad word "x" by 198.51.100.13, again'),
        times(1, 'bad word "x" by 198.51.100.14, again'),
        times(3, 'denied 198.51.100.15 as bad word "x" by 198.51.100.16,'),
    ])


def plain_log():
    """Lines whose time is in brackets."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 50))
    return "".join(f"[{at}] {words}\n" for words in 2 * ("[w] 203.0.113.1 a=a", "[w] 203.0.113.2 a=b", "[w] 203.0.113.3 b=b"))


def bans_of_fail2ban(place):
    """Whom a real fail2ban bans that reads the logs."""
    path = shutil.which("fail2ban-server") or "/usr/bin/fail2ban-server"
    if not os.path.exists(path):
        raise cases.Skipped("fail2ban is not installed")
    with subprocess.Popen([path, "-f", "-c", place.path("f2b"), "-s", place.path("f2b.sock"), "-p", place.path("f2b.pid"),
                           "start"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env={**os.environ, "TZ": "UTC"}) as server:
        try:
            # The last of its bans is that of the last file's last line.
            def banned():
                if not os.path.exists(place.path("bans")):
                    return None
                with open(place.path("bans"), encoding="ascii") as file:
                    found = {tuple(line.split()) for line in file}
                return found if {("shop-plain", "203.0.113.3"), ("shop-plain", "198.51.100.16"),
                                 ("shop", "198.51.100.11")} <= found else None
            until(banned, "fail2ban has banned")
            time.sleep(1)  # for bans that should not be
            return banned()
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


def imported(place, *words, code=1):
    """The configuration that an import writes, as text, and what it says."""
    done = place.run("import", *words)
    assert done.code() == code, (words, done.code(), done.said(), done.out().decode()[:2000])
    return done.out().decode(), done.said()


def judged(place, text, key=lambda values: values[0]):
    """Whom weir blocks by an imported configuration: zones and keys."""
    path = place.write("weir.json", text.replace(', "follow": true', ""))
    done = place.run("validate", "--config", path)
    assert done.code() == 0, (done.said(), done.out().decode())
    done = place.run("run", "--once", "--sort", "--config", path, "--decisions", place.path("decisions"))
    assert done.code() == 0, done.said()
    with open(place.path("decisions"), encoding="utf-8") as file:
        return {(found["zone"], key(found["key"])) for found in map(json.loads, file)}


def test_fail2ban_bans_the_same(place):
    folder = configuration(place)
    place.write("logs/shop.log", shop_log())
    place.write("logs/plain.log", plain_log())
    text, said = imported(place, "fail2ban", "--enforce", folder)
    assert "2 from fail2ban: 1 whole, 1 in part" in said and "1 jails that are not enabled" in said, said
    ours = judged(place, text)
    theirs = bans_of_fail2ban(place)
    assert ours == theirs, (sorted(ours - theirs), sorted(theirs - ours))


def test_what_is_imported_can_be_tried_as_it_is(place):
    """By whoever may read the logs: the page's three commands, and no file is written."""
    folder = configuration(place)
    place.write("logs/shop.log", shop_log())
    place.write("logs/plain.log", plain_log())
    text, _ = imported(place, "fail2ban", folder)
    command = next(line for line in text.splitlines() if "weir run --once" in line).partition(": ")[2]
    assert command == "weir run --once --config FILE --shadow -", command
    done = place.good(*command.replace("FILE", place.write("weir.json", text)).split()[1:])
    assert {json.loads(line)["mode"] for line in done.out().splitlines()} == {"shadow"}, done.said()


def test_fail2ban_explains_itself(place):
    folder = configuration(place)
    place.write("f2b/jail.d/20-odd.local", r"""
[shop]
maxretry = 1
bantime = -1
ignoreip = host.example
ignorecommand = /bin/true <ip>
datepattern = ^\{"at":"%%Y(?P<x>-)%%m"
[journal]
enabled = true
filter = sshd[mode=normal]
backend = systemd
journalmatch = _SYSTEMD_UNIT=sshd.service + _COMM=sshd + _COMM=sshd-session
bantime.increment = true
bantime.maxtime = 5h
failregex = ^two <SKIPLINES> lines of <HOST>
            ^one (of) \1 <HOST>
            ^look(?<=a+)behind <HOST>
[undefined]
enabled = true
filter = nowhere
logpath = %(nowhere)s
[recidive]
enabled = true
filter = recidive
logpath = /var/log/fail2ban.log
bantime = 1w
findtime = 1d
""")
    place.write("f2b/filter.d/sshd.conf", "[Definition]\nfailregex = ^no <HOST>$\nmode = normal\n")
    place.write("f2b/filter.d/recidive.conf", "[Definition]\nfailregex = Ban <HOST>\n")
    text, said = imported(place, "fail2ban", folder)
    for words in ("maxretry = 1 blocks with the first failure", "bantime is for ever", "host.example is no address",
                  "ignorecommand is left out", "datepattern is read as any usual form",
                  "_SYSTEMD_UNIT=sshd.service are not read", "it spans several lines (<SKIPLINES>)",
                  "refers to a group by its number", "lookbehind assertion is not", "%(nowhere)s is not defined",
                  "no filter of this name", "not imported: undefined"):
        assert words in said, (words, said)
    assert "note: counts the blocks of the zones above" in text, text
    assert '"block_for": ["1h", "2h", "4h", "5h"], "forgive_after": "1d"' in text, text
    assert '"match": {"_COMM": ["sshd", "sshd-session"]}' in text, text
    assert '"match": {"zone": ["shop", "shop-plain", "journal"], "action": ["block"]}' in text, text
    path = place.write("weir.json", text)
    done = place.run("validate", "--config", path)
    assert done.code() == 0, (done.said(), text)

    told = place.run("import", "fail2ban", "--json", "--all", folder)
    assert told.code() == 1 and told.said() == "", told.said()
    found = json.loads(told.out())
    results = {item["name"]: item["result"] for item in found["items"]}
    assert results == {"shop": "part", "shop-plain": "whole", "unused": "none", "journal": "part", "undefined": "none",
                       "recidive": "whole"}, results
    assert found["counts"] == {"whole": 2, "part": 2, "none": 2, "not_enabled": 0}, found["counts"]
    assert all(item["result"] == "whole" or any(note["differs"] for note in item["notes"]) for item in found["items"])
    assert [zone["name"] for zone in found["config"]["zones"]] == ["shop", "shop-plain", "journal", "recidive"]


def test_fail2ban_shares_files(place):
    """One source a file, whoever reads it and in whatever order the jails come."""
    logs = place.path("logs")
    place.write("f2b/jail.local", f"""
[DEFAULT]
enabled = true
maxretry = 2
ignoreself = false
[alone]
failregex = ^ one <ADDR>$
logpath = {logs}/alone.log
  {logs}/x-a.log
[glob]
failregex = ^ (?:one|two) <ADDR>$
logpath = {logs}/x-*.log
[long]
failregex = {(chr(10) + "  ").join(f"^one <ADDR> {i} {'x' * 500}$" for i in range(30))}
logpath = {logs}/x-b.log
""")
    at = time.strftime("%Y-%m-%d %H:%M:%S ", time.gmtime())
    for name, words in (("alone", "one 192.0.2.1"), ("x-a", "one 192.0.2.2"), ("x-b", "two 192.0.2.3")):
        place.write(f"logs/{name}.log", 2 * (at + words + "\n"))
    text, said = imported(place, "fail2ban", "--enforce", place.path("f2b"))
    assert "longer than the 15000 bytes" in said, said
    found = judged(place, text)
    assert found == {("alone", "192.0.2.1"), ("alone", "192.0.2.2"), ("glob", "192.0.2.2"), ("glob", "192.0.2.3")}, (found, text)


def test_fail2ban_jails_of_one_file_keep_their_addresses(place):
    """Each jail blocks the address that its own expression finds, whatever else reads the line; recidive knows them all."""
    log = place.path("logs/one.log")
    jail = f"enabled = true\nignoreself = false\nmaxretry = 2\nlogpath = {log}\n"
    place.write("f2b/jail.local", "".join(f"[{name}]\n{jail}failregex = {python}\n" for name, python in (
        ("a-b", "^ from <ADDR>"), ("a.b", "to <ADDR>$"), ("a_b", r"^ [(?<ip>]\(?<ip> <ADDR>$"),
        ("fold", "(?i)^ ODD <ADDR>$\n  ^ EVEN <ADDR>$"))) + f"""
[recidive]
enabled = true
filter = recidive
maxretry = 2
findtime = 1d
bantime = 1w
logpath = /var/log/fail2ban.log
""")
    place.write("f2b/filter.d/recidive.conf", "[Definition]\nfailregex = Ban <HOST>\n")
    start = time.time() - 7200
    lines = [(at, words) for at in (0, 3600) for words in 3 * ["from 192.0.2.8 to 2001:DB8::9"]]
    lines += [(3700, words) for words in 2 * ["odd 192.0.2.1", "even 192.0.2.2", "EVEN 192.0.2.3", "(<ip> 192.0.2.4"]]
    place.write("logs/one.log", "".join(time.strftime("%Y-%m-%d %H:%M:%S ", time.gmtime(start + at)) + words + "\n"
                                        for at, words in lines))
    text, _ = imported(place, "fail2ban", "--enforce", place.path("f2b"), code=0)
    assert judged(place, text) == {("a-b", "192.0.2.8"), ("a.b", "2001:db8::9"), ("recidive", "192.0.2.8"),
                                   ("recidive", "2001:db8::9"), ("fold", "192.0.2.1"), ("fold", "192.0.2.3"), ("a_b", "192.0.2.4")}, text


def test_fail2ban_leaves_out_what_would_be_too_large(place):
    """A short expression may become one that PCRE2 refuses, with those of other jails."""
    place.write("f2b/jail.local", "".join(
        f"[j{i}]\nenabled = true\nlogpath = /var/log/a.log\nfailregex = ^ (?:abcdefgh{i}){{1,250}} <ADDR>$\n" for i in range(9)))
    text, said = imported(place, "fail2ban", place.path("f2b"))
    assert "one expression for all of them would be too long" in said and "0 whole" not in said, said
    assert "weir refuses" not in said + text, said


def test_fail2ban_natives_are_filters_as_they_are_shipped(place):
    """What a jail gives to its filter changes it, and so does an edit of the filter, or of what that includes."""
    if not os.path.exists("/etc/fail2ban/filter.d/sshd.conf"):
        raise cases.Skipped("fail2ban is not installed")
    filters = place.path("f2b", "filter.d")
    shutil.copytree("/etc/fail2ban/filter.d", filters)

    def write_jails(*jails):
        place.write("f2b/jail.local", "".join(f"[{name}]\nenabled = true\nlogpath = /var/log/{name}.log\nfilter = {spec}\n"
                                              for name, spec in jails))

    def edit(name, old, new):
        with open(os.path.join(filters, name), encoding="utf-8") as file:
            text = file.read()
        assert old in text, text
        place.write(f"f2b/filter.d/{name}", text.replace(old, new, 1))

    def found(**formats):
        config = json.loads(place.run("import", "fail2ban", "--json", place.path("f2b")).out())["config"]
        assert [one["format"]["type"] for one in config["sources"]] == list(formats.values()), (formats, config["sources"])
        return config["sources"]

    write_jails(("all", "nginx-limit-req"), ("login", 'nginx-limit-req[ngx_limit_req_zones="login"]'), ("web", "nginx-http-auth"),
                ("ssh", "sshd[mode=normal]"))
    sources = found(all="nginx_error", login="pattern", web="nginx_error", ssh="sshd")
    assert "login" in sources[1]["format"]["pattern"], sources[1]
    text, _ = imported(place, "fail2ban", place.path("f2b"))
    assert 'its filter is weir\'s format "nginx_error", by what filter.d/nginx-limit-req.conf means as fail2ban ships it' in text, text
    # a remark says nothing, an expression does
    edit("sshd.conf", "[Definition]", "# seen by joe\n\n[Definition]")
    found(all="nginx_error", login="pattern", web="nginx_error", ssh="sshd")
    write_jails(("all", "nginx-limit-req"), ("ssh", "sshd[mode=normal]"))
    edit("sshd.conf", "cmnfailre = ", "cmnfailre = ^our own words about <ADDR>$\n            ")
    sources = found(all="nginx_error", ssh="pattern")
    assert "our own words about " in sources[1]["format"]["pattern"], sources[1]
    text, _ = imported(place, "fail2ban", place.path("f2b"))
    assert "filter.d/sshd.conf is as no fail2ban has it that weir knows (0x" in text and "its own expressions are taken" in text, text
    # a .local file counts, of the filter and of what it includes
    shutil.copy("/etc/fail2ban/filter.d/sshd.conf", filters)
    found(all="nginx_error", ssh="sshd")
    place.write("f2b/filter.d/nginx-limit-req.local", "[Definition]\nignoreregex = by the monitor$\n")
    found(all="pattern", ssh="sshd")
    place.write("f2b/filter.d/common.local", "[DEFAULT]\n__bsd_syslog_verbose = x\n")
    found(all="pattern", ssh="pattern")


def test_what_weir_refuses_is_said(place):
    """An import reads back what it writes: sources, too."""
    place.write("f2b/jail.local", """
[unit]
enabled = true
backend = systemd
failregex = ^no <ADDR>$
journalmatch = _SYSTEMD_UNIT=a.service PRIORITY=3 _SYSTEMD_UNIT=b.service
[deep]
enabled = true
failregex = ^no <ADDR>$
logpath = /var/log/**/x.log
""")
    text, said = imported(place, "fail2ban", place.path("f2b"))
    assert '"match": {"_SYSTEMD_UNIT": ["a.service", "b.service"], "PRIORITY": ["3"]}' in text, text
    refused = [line for line in said.splitlines() if line.startswith("weir refuses what was written until it is corrected: ")]
    assert len(refused) == 1 and 'sources[0].path[0]: has "**"' in refused[0], said
    words = refused[0].split("corrected: ")[1]
    assert f"// weir refuses this until it is corrected: {words}\n" in text, text
    told = place.run("validate", "--config", place.write("weir.json", text))
    assert words.split(": ", 1)[1] in told.said() + told.out().decode(), (words, told.said())
    done = place.run("import", "fail2ban", "--json", place.path("f2b"))
    assert done.code() == 1 and "sources[0].path[0]: has" in json.loads(done.out())["refused"], done.out()
    place.write("f2b/jail.local", "[a]\nenabled = true\nlogpath = /var/log/a.log\nfailregex = ^no <ADDR>$\n")
    _, said = imported(place, "fail2ban", "--time-zone", "Mars/Phobos", place.path("f2b"))
    assert "weir refuses what was written" in said and "sources[0].format.time_zone: " in said and "Mars/Phobos" in said, said


def test_fail2ban_says_what_it_does_not_take(place):
    place.write("f2b/jail.local", """
[DEFAULT]
failregex = ^no <ADDR>$
logpath = /var/log/a.log
[who]
enabled = %(nosuch)s
[many]
enabled = true
maxretry = 5000000000
bantime.increment = true
bantime.factor = nan
bantime.maxtime = soon
""")
    text, said = imported(place, "fail2ban", place.path("f2b"))
    for words in ("not imported: who", "enabled cannot be read: ", "%(nosuch)s is not defined", "maxretry = 5000000000 is taken as 1000000",
                  "bantime.factor = nan is taken as 1", "bantime.maxtime = soon is no time such as 10m; taken as 366d"):
        assert words in said, (words, said)
    assert '"block_for": ["10m", "20m",' in text, text


def test_fail2ban_says_which_zone_its_times_have(place):
    def jail(zone):
        place.write("f2b/jail.local", "[DEFAULT]\nlogpath = /var/log/a.log\nfailregex = ^no <ADDR>$\n"
                    f"[who]\nenabled = true\n{zone}\n")
        return place.path("f2b")
    _, said = imported(place, "fail2ban", jail("logtimezone = UTC-0500"))
    assert "differs: logtimezone = UTC-0500: its times are read as UTC" in said and "--time-zone" in said, said
    _, said = imported(place, "fail2ban", jail("logtimezone = UTC-0500"), "--time-zone", "-05:00", code=0)
    assert "1 whole" in said, said
    _, said = imported(place, "fail2ban", jail("logtimezone = UTC"), code=0)
    assert "1 whole" in said and "logtimezone" not in said, said
    _, said = imported(place, "fail2ban", jail(""), code=0)
    assert "note: Times without a zone are UTC here; fail2ban takes the machine's own zone: --time-zone NAME" in said, said


def test_only_regular_files_are_read(place):
    """A pipe would be waited for without end."""
    os.makedirs(place.path("rules"))
    os.mkfifo(place.path("rules/x.yaml"))
    for origin in ("crowdsec", "sigma"):
        _, said = imported(place, origin, place.path("rules"), code=2)
        assert "x.yaml is not a regular file" in said, said
    os.makedirs(place.path("f2b"))
    os.mkfifo(place.path("f2b/jail.local"))
    _, said = imported(place, "fail2ban", place.path("f2b"), code=2)
    assert "jail.local is not a regular file" in said, said


def test_names_are_told_apart(place):
    """However many are alike, in a time that grows with them."""
    place.write("many.yaml", "---\n".join(
        "{type: leaky, name: %s, filter: \"evt.Meta.service == 'http'\", groupby: evt.Meta.source_ip, capacity: 1, leakspeed: 1s}\n" % name
        for name in ["a", "a-3", *3000 * ["a"]]))
    done = place.run("import", "crowdsec", "--json", place.path("many.yaml"))
    names = [zone["name"] for zone in json.loads(done.out())["config"]["zones"]]
    assert names[:5] == ["a", "a-3", "a-2", "a-4", "a-5"] and len(set(names)) == len(names) > 50, names[:9]


def test_fail2ban_whole(place):
    place.write("f2b/jail.local", "[a]\nenabled = true\nlogpath = /var/log/a.log\nfailregex = ^no <ADDR>$\n")
    _, said = imported(place, "fail2ban", "--time-zone", "Europe/Berlin", place.path("f2b"), code=0)
    assert said == "1 from fail2ban: 1 whole, 0 in part, 0 not at all\n", said


def test_fail2ban_refuses(place):
    def refused(words, **files):
        shutil.rmtree(place.path("bad"), ignore_errors=True)
        for name, text in files.items():
            place.write("bad/" + name.replace("_", "."), text)
        out, said = imported(place, "fail2ban", place.path("bad"), code=2)
        assert out == "" and words in said, (words, said)

    refused("has neither jail.conf nor jail.local", other_conf="[a]\n")
    refused("jail.local:2: a section's name needs", jail_local="[a]\n[b\n")
    refused('jail.local:2: expected "[SECTION]" or "NAME = VALUE"', jail_local="[a]\nword\n")
    refused("jail.local:1: an option needs a section", jail_local="a = b\n")
    refused("is no text", jail_local="[a]\n\0 = 1\n")
    refused("include one another", jail_local="[INCLUDES]\nbefore = jail.local\n")
    # What only fills memory ends: each name doubles the last one.
    doubling = "[DEFAULT]\na0 = x\n" + "".join(f"a{i} = %(a{i - 1})s%(a{i - 1})s\n" for i in range(1, 60))
    place.write("bomb/jail.local", doubling + "[j]\nenabled = true\nlogpath = %(a59)s\nfailregex = ^no <HOST> %(a59)s\n")
    _, said = imported(place, "fail2ban", place.path("bomb"))
    assert "refers to itself, or becomes too long" in said, said
    place.write("loop/jail.local", "[j]\nenabled = true\nfilter = f\nlogpath = /a\n")
    place.write("loop/filter.d/f.conf", "[Definition]\nfailregex = <a>\na = x<b>\nb = <a>\n")
    _, said = imported(place, "fail2ban", place.path("loop"))
    assert "failregex of the filter cannot be read" in said, said


SCENARIOS = r"""
# what CrowdSec's hub has much of
type: leaky
name: me/probing
description: "many \"not found\""
filter: "evt.Meta.service == 'http' && evt.Meta.http_status in ['404', '403'] && evt.Parsed.static_ressource == 'false'"
groupby: evt.Meta.source_ip + '/' + evt.Parsed.target_fqdn
capacity: 3
leakspeed: 2.5s
blackhole: 1m
labels: {remediation: true}
---
type: leaky
name: me/login
filter: |
  evt.Meta.log_type in ["http_access-log"] and   // a remark
  (Upper(evt.Parsed.verb) == 'POST' or evt.Parsed.verb == "PUT") and
  evt.Meta.http_path startsWith '/login' and evt.Meta.http_status != '200' and not (evt.Parsed.http_user_agent contains 'monitor')
groupby: evt.Meta.source_ip
capacity: 2
leakspeed: 1m30s
labels: {remediation: true}
"""

ODD = r"""
- just a list
---
{type: leaky, name: a/distinct, filter: "evt.Meta.log_type == 'ssh_failed-auth'", distinct: evt.Meta.user, capacity: 5, leakspeed: 10s,
 groupby: evt.Meta.source_ip}
---
{type: trigger, name: a/trigger, filter: "evt.Meta.log_type == 'ssh_failed-auth' && evt.Meta.user == 'root'", groupby: evt.Meta.source_ip}
---
{type: leaky, name: a/or, filter: "evt.Meta.service == 'http' && (evt.Meta.http_status == '404' || evt.Parsed.verb == 'PUT')", capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/call, filter: "evt.Meta.service == 'http' && any(File('x'), {evt.Parsed.a contains #})", capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/kind, filter: "evt.Meta.log_type == 'wordpress'", capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/bound, filter: "evt.Meta.service == 'http'", capacity: -1, leakspeed: 1s}
---
{type: leaky, name: a/speed, filter: "evt.Meta.service == 'http'", capacity: 1, leakspeed: soon}
---
{type: leaky, name: a/text, filter: "evt.Meta.service == 'http' && evt.Meta.http_path == 'open", capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/fold, filter: "evt.Meta.service == 'http' && Lower(evt.Meta.http_path) == '/a'", capacity: 1, leakspeed: 1s}
---
{type: bayesian, name: a/bayes, filter: "evt.Meta.service == 'http'", bayesian_prior: 0.5}
---
{type: conditional, name: a/more, filter: "evt.Meta.service == 'http'", condition: "true", capacity: 1, leakspeed: 1s}
---
{name: a/parser, filter: "evt.Line.Labels.type == 'x'", onsuccess: next_stage}
---
{type: leaky, name: a/status, filter: "evt.Meta.service == 'http' && evt.Meta.http_status == '4o4'", groupby: evt.Meta.source_ip,
 capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/all, filter: "evt.Meta.service == 'http'", capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/host, filter: "evt.Meta.service == 'http'", groupby: evt.Parsed.target_fqdn, capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/user, filter: "evt.Meta.service == 'http'", groupby: evt.Meta.user, capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/range, filter: "evt.Meta.service == 'http'", groupby: evt.Meta.source_ip, scope: {type: Range}, capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/none, filter: "evt.Meta.log_type == 'http_access-log' && evt.Meta.log_type == 'http_error-log'",
 groupby: evt.Meta.source_ip, capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/both, filter: "evt.Meta.log_type in ['http_access-log', 'ssh_failed-auth']", groupby: evt.Meta.source_ip, capacity: 1,
 leakspeed: 1s}
---
{type: leaky, name: a/access, filter: "evt.Meta.service == 'http' && evt.Meta.log_type == 'http_access-log'", groupby: evt.Meta.source_ip,
 scope: {type: Ip}, capacity: 1, leakspeed: 1s}
---
{type: leaky, name: a/slow, filter: "evt.Meta.service == 'http'", groupby: evt.Meta.source_ip, capacity: 100, leakspeed: 1h}
"""


def overflows(events, capacity, leak_s):
    """Whom CrowdSec's buckets call out: golang.org/x/time/rate with a burst, one token for each event."""
    buckets, found = {}, set()
    for at_s, key in events:
        tokens, last_s = buckets.get(key, (capacity, at_s))
        tokens = min(capacity, tokens + (at_s - last_s) / leak_s)
        if tokens < 1:
            found.add(key)
        buckets[key] = (max(0, tokens - 1) if tokens >= 1 else tokens, at_s)
    return found


def test_crowdsec_overflows_the_same(place):
    path = place.write("me.yaml", SCENARIOS)
    text, said = imported(place, "crowdsec", "--enforce", path, code=0)
    assert said.endswith("2 from crowdsec: 2 whole, 0 in part, 0 not at all\n"), said
    rng = random.Random(7)
    lines, probing, login = [], [], []
    at_s = 1700000000
    for _ in range(3000):
        at_s += int(rng.random() < 0.1)
        key = f"198.51.100.{int(60 * rng.random() ** 2)}"
        verb, path, status, agent = (rng.choice(some) for some in (("GET", "POST", "PUT"), ("/login", "/login/x", "/a.PNG", "/a"),
                                                                  (200, 404, 403, 500), ("curl", "a monitor of ours")))
        stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at_s))
        lines.append(f'{key} - - [{stamp}] "{verb} {path} HTTP/1.1" {status} 5 "-" "{agent}"\n')
        if status in (404, 403) and path != "/a.PNG":
            probing.append((at_s, key))
        if verb != "GET" and path.startswith("/login") and status != 200 and "monitor" not in agent:
            login.append((at_s, key))
    place.write("access.log", "".join(lines))
    place.write("error.log", "")
    ours = judged(place, text.replace("/var/log/nginx/", place.path("")))
    theirs = {("me-probing", key) for key in overflows(probing, 3, 2.5)} | \
        {("me-login", key) for key in overflows(login, 2, 90)}
    assert all(1 < len([key for zone, key in theirs if zone == name]) < 55 for name in ("me-probing", "me-login")), theirs
    assert ours == theirs, (sorted(ours - theirs), sorted(theirs - ours))


def test_crowdsec_explains_itself(place):
    place.write("hub/a.yaml", ODD)
    place.write("hub/deep/b.yml", SCENARIOS)
    place.write("hub/no.txt", "{")
    told = place.run("import", "crowdsec", "--json", place.path("hub"))
    assert told.code() == 1, told.said()
    found = json.loads(told.out())
    assert found["counts"] == {"whole": 3, "part": 2, "none": 18, "not_enabled": 1}, found["counts"]
    notes = {item["name"]: " ".join(note["text"] for note in item["notes"]) for item in found["items"]}
    for name, words in (("a/distinct", "counts distinct values"), ("a/trigger", "blocks with the first event"),
                        ("a/or", 'no "or" of several fields'), ("a/call", "cannot ask this: any(File('x')"),
                        ("a/kind", "no format of weir's gives this type of lines: wordpress"),
                        ("a/bound", "a bucket without a bound"), ("a/speed", "leakspeed is no time"),
                        ("a/text", "a text has no end"), ("a/fold", "tells upper from lower case"),
                        ("a/bayes", "buckets of this type"), ("a/more", "no counterpart: condition"),
                        ("a/parser", "it is a parser"), ("a/status", "its zone is none of weir's"), ("a/slow", "takes longer than a block of 4h"),
                        ("a/all", "its bucket is of many clients"), ("a/host", "its bucket is of many clients"),
                        ("a/user", "its bucket is of many clients"), ("a/range", "something else than an address: scope: Range"),
                        ("a/none", "two kinds of lines at once"), ("a/both", "lines of sshd and of HTTP")):
        assert words in notes[name], (name, notes[name])
    assert [zone["sources"] for zone in found["config"]["zones"] if zone["name"] == "a-access"] == [["access-log"]]
    text, _ = imported(place, "crowdsec", place.path("hub"))
    done = place.run("validate", "--config", place.write("weir.json", text))
    assert done.code() == 0, (done.said(), text)


RULES = r"""
title: Failed login
name: failed_login
logsource: {product: shop, service: auth}
detection:
  selection:
    action: ["4625", "17"]
    src|cidr: 198.51.100.0/24
    code|startswith: "5"
  other:
    kind: null
  filter:
    user|cased|endswith: "$"
  condition: selection and not filter and all of oth*
---
title: Many failed logins
correlation:
  type: event_count
  rules: [failed_login]
  group-by: [src, host]
  timespan: 2m
  condition: {gte: 4}
"""

SUMS = r"""
title: Much
logsource: {product: shop, service: bytes}
detection: {selection: {dst: 53}, condition: selection}
id: 5638f7c0-ac70-491d-8465-2a65075e0d86
---
title: Much sent
correlation: {type: value_sum, rules: 5638f7c0-ac70-491d-8465-2a65075e0d86, group-by: src, timespan: 1m, condition: {field: bytes, gt: 1000}}
---
title: As it was
logsource: {product: shop, service: plain}
detection: {selection: {dst: 53}, timeframe: 30s, condition: selection | count() by src > 3}
"""

ODD_RULES = r"""
title: base
name: base
logsource: {category: webserver}
detection: {selection: {sc-status: [401, 403], cs-method: POST}, condition: selection}
---
{title: web, correlation: {type: event_count, rules: [base], group-by: [c-ip], timespan: 1m, condition: {gt: 5}}}
---
{title: distinct, correlation: {type: value_count, rules: [base], group-by: [c-ip], timespan: 1m, condition: {field: u, gt: 5}}}
---
{title: temporal, correlation: {type: temporal, rules: [base, base], group-by: [c-ip], timespan: 1m}}
---
{title: nobody, correlation: {type: event_count, rules: [who], timespan: 1m, condition: {gte: 5}}}
---
{title: few, correlation: {type: event_count, rules: [base], timespan: 1m, condition: {lt: 5}}}
---
{title: soon, correlation: {type: event_count, rules: [base], timespan: soon, condition: {gt: 5}}}
---
{title: once, correlation: {type: event_count, rules: [base], group-by: [c-ip], timespan: 1m, condition: {gte: 1}}}
---
{title: everyone, correlation: {type: event_count, rules: [base], timespan: 1m, condition: {gte: 9}}}
---
{title: named, correlation: {type: event_count, rules: [base], aliases: {a: {base: b}}, timespan: 1m, condition: {gt: 1}}}
---
{title: re, detection: {s: {a|re: ".*"}, timeframe: 1m, condition: s | count() > 5}}
---
{title: words, detection: {s: [one, two], timeframe: 1m, condition: s | count() > 5}}
---
{title: either, detection: {s: [{a: 1}, {b: 2}], timeframe: 1m, condition: s | count() > 5}}
---
{title: or, detection: {s: {a: 1}, t: {b: 1}, timeframe: 1m, condition: s or t | count() > 5}}
---
{title: parts, detection: {s: {a|contains|all: [x, y]}, timeframe: 1m, condition: s | count() > 5}}
---
{title: one, detection: {s: {a: "x?"}, timeframe: 1m, condition: s | count() > 5}}
---
{title: near, detection: {s: {a: 1}, timeframe: 1m, condition: s | near t}}
---
{title: several, detection: {s: {a: 1}, t: {b: 1}, timeframe: 1m, condition: [s | count() > 5, t]}}
---
{title: absent, detection: {s: {a: ~}, _t: {b: 1}, timeframe: 1m, condition: all of them | count() by b > 5}}
"""


def windows(events, most, window_ms):
    """Whom a window that slides blocks: above `most` of it within the time, by costs of events that pass."""
    passed, found = {}, set()
    for at_ms, key, cost in events:
        kept = [(then, more) for then, more in passed.get(key, []) if then > at_ms - window_ms]
        if sum(more for _, more in kept) + cost > most:
            found.add(key)
        else:
            kept.append((at_ms, cost))
        passed[key] = kept
    return found


def test_sigma_alerts_the_same(place):
    text, said = imported(place, "sigma", "--enforce", place.write("logins.yml", RULES), code=0)
    assert said.endswith("1 from sigma: 1 whole, 0 in part, 0 not at all; 1 rules that count nothing, left aside\n"), said
    rng = random.Random(11)
    at_ms, lines, events = 1700000000000, [], []
    for _ in range(4000):
        at_ms += rng.randrange(100)
        event = {"time": at_ms, "action": rng.choice(("4625", "17", "1")), "code": rng.choice(("500", "51", "45")),
                 "src": f"{rng.choice(('198.51.100', '203.0.113'))}.{int(40 * rng.random() ** 2)}", "user": rng.choice(("a", "b$")),
                 "host": rng.choice(("x", "y")), **({"kind": "z"} if rng.random() < 0.2 else {})}
        lines.append(json.dumps(event) + "\n")
        if event["action"] != "1" and event["code"] != "45" and event["src"].startswith("198") and event["user"] == "a" and \
                "kind" not in event:
            events.append((at_ms, (event["src"], event["host"]), 1))
    log = place.write("shop.log", "".join(lines))
    text = text.replace('"json"', '"json", "unit": "ms"').replace("/var/log/shop-auth.log", log)
    ours = {key for _, key in judged(place, text, tuple)}
    theirs = windows(events, 3, 120000)
    assert 3 < len(theirs) < 100 and ours == theirs, (sorted(ours - theirs), sorted(theirs - ours))


def test_sigma_sums(place):
    text, said = imported(place, "sigma", "--enforce", place.write("sums.yml", SUMS))
    assert "2 from sigma: 1 whole, 1 in part" in said and "the next one is blocked" in said, said
    rng = random.Random(12)
    at_ms, lines, sums, counts = 1700000000000, [], [], []
    for _ in range(2000):
        at_ms += rng.randrange(300)
        event = {"time": at_ms, "dst": rng.choice((53, 80)), "src": f"10.0.0.{int(200 * rng.random() ** 2)}", "bytes": rng.randrange(400)}
        lines.append(json.dumps(event) + "\n")
        if event["dst"] == 53:
            sums.append((at_ms, event["src"], event["bytes"]))
            counts.append((at_ms, event["src"], 1))
    text = text.replace('"json"', '"json", "unit": "ms"')
    for name in ("shop-bytes-by-bytes", "shop-plain"):
        text = text.replace(f"/var/log/{name}.log", place.write(f"{name}.log", "".join(lines)))
    ours = judged(place, text)
    theirs = {("As-it-was", key) for key in windows(counts, 3, 30000)}
    assert {one for one in ours if one[0] == "As-it-was"} == theirs and len(theirs) > 3, (ours, theirs)
    much = {key for zone, key in ours if zone == "Much-sent"}
    # Blocked is who comes again while the sum of what he sent before is too much.
    too_much = {key for i, (at_ms, key, _) in enumerate(sums)
                if sum(cost for then, who, cost in sums[:i] if who == key and then > at_ms - 60000) > 1000}
    assert much == too_much and 3 < len(much) < 190, (sorted(much - too_much), sorted(too_much - much))


def test_sigma_explains_itself(place):
    told = place.run("import", "sigma", "--json", place.write("odd.yml", ODD_RULES))
    assert told.code() == 1, told.said()
    found = json.loads(told.out())
    assert found["counts"] == {"whole": 1, "part": 2, "none": 15, "not_enabled": 1}, found["counts"]
    notes = {item["name"]: " ".join(note["text"] for note in item["notes"]) for item in found["items"]}
    for name, words in (("web", "letters in either case"), ("distinct", "counts distinct values"),
                        ("temporal", "events of several rules together"), ("nobody", "the rule that it counts is not there"),
                        ("few", "what is too much: gt and gte: lt"), ("soon", "expected a time"),
                        ("once", "alerts with the first event"), ("everyone", "would be everyone's: name fields in: group-by, or behind by"), ("named", "has no counterpart: aliases"),
                        ("re", "no such modifier: re"), ("words", "searches whole events for words"),
                        ("either", 'no "or" of several fields'), ("or", "selections that all hold"),
                        ("parts", "several parts (|all)"), ("one", "no ? for one character"), ("near", "relates events"),
                        ("several", "it has no single condition")):
        assert words in notes[name], (name, notes[name])
    zone = found["config"]["zones"][0]
    assert [one["match"] for one in found["config"]["zones"] if one["name"] == "absent"] == [{"a": {"not": ["*"]}}], found["config"]
    assert zone["key"] == ["ip"] and zone["match"] == {"status": ["401", "403"], "method": ["POST"]}, zone
    assert found["config"]["sources"][0]["format"] == {"type": "combined"}, found["config"]["sources"]
    text, _ = imported(place, "sigma", place.path("odd.yml"))
    done = place.run("validate", "--config", place.write("weir.json", text))
    assert done.code() == 0, (done.said(), text)


def test_yaml_is_bounded(place):
    def refused(text, words):
        out, said = imported(place, "crowdsec", place.write("bad.yaml", text), code=2)
        assert out == "" and words in said, (words, said)

    refused("a: &x [1]\nb: *x\n", "bad.yaml:2: an alias (*name) is not taken")
    refused("a: [1\nb: ]]\n", "bad.yaml:2: ")
    refused("[" * 100 + "]" * 100, "nested more than 64 deep")
    refused("{[1]: 2}", "a member's name must be a text")
    refused('a: "\\0"', "a text has a zero byte")
    refused("- a\n" * 200000, "there is more than an import takes")
    refused("a: b\n", "has no scenario")
    out, said = imported(place, "crowdsec", place.path("nowhere.yaml"), code=1)
    assert out == "" and "nowhere.yaml: cannot be read" in said, said


def test_command_line(place):
    for words, said in (((), "missing ORIGIN"), (("fail2ban",), "missing PATH"), (("netfilter", "x"), "unknown origin")):
        done = place.run("import", *words)
        assert done.code() == 2 and said in done.said(), (words, done.said())


if __name__ == "__main__":
    cases.main(globals())
