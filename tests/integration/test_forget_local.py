#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weir forget` and archiver.hash_keys on one machine: a key goes from everywhere, and nobody else's with it.

Rows are read from the state's own database, beside the process that runs."""

import contextlib
import hashlib
import hmac
import json
import os
import re
import sqlite3
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from support import cases, metrics
from support.place import PATIENCE_S, free_port, until
from support.run_local import DONE, FAILED, USAGE, Run, zones
from support.traffic import burst, source

TABLES = ("count_hourly", "count_daily", "decision_history", "zone_txn")
QUICK = {"limiter": {"checkpoint_interval": "200ms"}, "archiver": {"enabled": True, "interval": "100ms"}}
SECRET = b"a secret of some bytes\x00\xff\x0a"


def kept_zones():
    """The zones, one of which keeps every request."""
    return [{**zones()[0], "history": True}, zones()[1]]


def ask_rows(state, sql, *parameters):
    """Rows of the state's database."""
    with contextlib.closing(sqlite3.connect(os.path.join(state, "weir.db"), timeout=PATIENCE_S)) as database:
        return database.execute(sql, parameters).fetchall()


def buckets(state, table):
    """{bucket: rows} of a table."""
    return dict(ask_rows(state, f"SELECT CAST(bucket AS TEXT), count(*) FROM {table} GROUP BY 1"))


def counts(state, bucket):
    """(passed, blocked) of a bucket in zone 1."""
    return ask_rows(state, "SELECT coalesce(sum(passed), 0), coalesce(sum(blocked), 0) FROM count_hourly WHERE zone_id = 1"
                           " AND CAST(bucket AS TEXT) = ?", bucket)[0]


def until_counted(run, bucket, passed, blocked):
    """Waits until a bucket's requests are archived."""
    until(lambda: counts(run.state, bucket) == (passed, blocked), f"{bucket}: {passed} passed, {blocked} blocked",
          running=run.weir)


def blocked(run):
    """Who is listed as blocked."""
    return {tuple(one["key"]) for one in map(json.loads, run.command("list", "--json").out().splitlines())}


def hashed(key):
    """A key as the store has it."""
    return hmac.new(SECRET[:-1], key.encode(), hashlib.sha256).hexdigest()[:32]


def forget(run, *words, code=DONE):
    """What `weir forget` says that it has done."""
    return json.loads(run.command("forget", *words, "--json", code=code).out())


def test_a_key_is_gone_and_others_stay(place):
    run = Run(place, zones=kept_zones(), **QUICK).start()
    run.append(burst("ann", 5, path="/") + burst("bob", 5, path="/"))
    for user in ("ann", "bob"):
        until_counted(run, user, 3, 2)
    run.override("override", "--zone", "site", "ann", "--rate", "2")
    run.override("block", "--zone", "site", "ann", "--reason", "too much")
    run.override("block", "--zone", "site", "bob")
    for user in ("ann", "bob"):
        until(lambda u=user: buckets(run.state, "decision_history").get(u) == 2, "both blocks are kept", running=run.weir)
    before = {table: buckets(run.state, table) for table in TABLES}
    assert blocked(run) == {("ann",), ("bob",)}
    done = forget(run, "ann")
    assert done["done"] and done["left"] == "", done
    assert [(one["zone"], one["key"], one["shared"]) for one in done["zones"]] == [("site", "ann", False),
                                                                                   ("pair", "ann|/", False)], done
    assert done["rows"] == {"count_hourly": 2, "count_daily": 2, "decision_history": 4, "shadow_history": 0, "zone_txn": 5,
                            "zone_bucket_lock": 0}, done
    assert [one["topic"] for one in done["topics"]] == ["weir.events", "weir.judged", "weir.decisions",
                                                       "weir.decisions.shadow"], done
    for table in TABLES:
        assert buckets(run.state, table) == {key: rows for key, rows in before[table].items() if key not in ("ann", "ann|/")}, table
    assert blocked(run) == {("bob",)}
    assert not [one for one in run.command("state", "--orders").out().splitlines() if b'"ann"' in one]
    assert not [one for one, in ask_rows(run.state, "SELECT extra FROM partition_state") if one and b"ann" in one]
    run.append(burst("ann", 5, path="/"))  # of the same times: the bucket knows nothing of them
    until_counted(run, "ann", 3, 2)
    assert counts(run.state, "bob") == (3, 2)
    again = forget(run, "--zone", "site", "ann")
    assert again["done"] and again["rows"]["count_hourly"] == 1, again
    assert run.published(key=["ann"], action="lift")["reason"] == "weir forget"
    run.stop()
    run.compare()
    for table in TABLES:
        assert "ann" not in buckets(run.state, table), table


def test_keys_of_several_fields_and_what_is_wrong(place):
    run = Run(place, zones=kept_zones(), **QUICK).start()
    run.append(burst("ann", 7, path="/a") + burst("ann", 2, path="/b"))
    until(lambda: buckets(run.state, "count_hourly") == {"ann": 1, "ann|/a": 1, "ann|/b": 1}, "all is kept",
          running=run.weir)
    words = run.command("forget", "ann", "/a").out().decode()
    assert "pair  ann|/a" in words and "rows removed: count_hourly 1, count_daily 1, decision_history" in words, words
    assert "what may still hold it:" in words and "/log: until weir run removes its files" in words, words
    assert f"free space in {run.state}/weir.db, from rows that were deleted or changed before" in words, words
    assert buckets(run.state, "count_hourly") == {"ann": 1, "ann|/b": 1}
    for wrong, why in ((("ann", "/a", "/x"), "no zone's key takes these values"), ((), "missing VALUE"),
                       (("ann", "--zone", "sit"), 'did you mean "site"?'), (("ann", "--zone", "pair"), "takes 2 values"),
                       (("ann", "--key-hex", "616e6e"), "either values"), (("--timeout", "soon", "x"), "a duration")):
        said = run.command("forget", *wrong, code=USAGE).said()
        assert why in said, said
    assert forget(run, "--key-hex", "616e6e7c2f62")["rows"]["count_hourly"] == 1
    assert buckets(run.state, "count_hourly") == {"ann": 1}
    run.stop()


def by_address():
    """Zones that count an address alone, beside others, behind others, and as one of a network; and one bucket of all."""
    limits = [{"algorithm": "sliding_window", "rate": 2, "window": "1m"}]
    keys = {"site": ["ip"], "login": ["ip", "path"], "late": ["method", "path", "ip"], "net": [{"field": "ip", "prefix4": 24}],
            "nets": ["path", {"field": "ip", "prefix4": 24}], "all": []}
    return [{"name": name, "key": key, "limits": limits, "history": name == "late"} for name, key in keys.items()]


def requests(count):
    """Lines of three addresses of a network, whose texts begin alike, and odd paths."""
    return "".join(json.dumps({"time": 1743242400000 + number, "ip": ip, "path": path, "method": "GET"}) + "\n"
                   for number in range(count) for ip in ("203.0.113.5", "203.0.113.50", "203.0.113.6")
                   for path in ("/login", "/a|203.0.113.5", "/\\|"))


def test_keys_of_more_fields_go_too(place):
    """An address is a part of other zones' keys, and lies in a network that one of them counts as one."""
    log = place.write("log", requests(4))
    config = place.config(by_address(), [source(log, follow=False)], archiver={"enabled": True})
    state = place.path("once")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("decisions"))
    before = {table: buckets(state, table) for table in TABLES}
    assert len(before["count_daily"]) == 3 + 9 + 9 + 1 + 3 + 1, before
    words = place.run("forget", "203.0.113.5", "--zone", "login", "--state", state).said()
    assert "takes 2 values" in words, words
    words = place.good("forget", "203.0.113.5", "--state", state).out().decode()
    assert "login  203.0.113.5|/login" in words and "NOT" not in words, words
    assert words.count("shared: the zone counts a network as one") == 1 + 3, words

    def stays(key):
        return not {"203.0.113.5", "203.0.113.0/24"} & set(re.findall(r"(?:[^|\\]|\\.)+", key))
    for table in TABLES:
        assert buckets(state, table) == {key: rows for key, rows in before[table].items() if stays(key)}, table
    done = json.loads(place.good("forget", "203.0.113.6", "--state", state, "--json").out())
    assert done["done"] and {(one["zone"], one["shared"]) for one in done["zones"]} == \
        {("site", False), ("login", False), ("late", False), ("net", True)}, done
    # a zone of one bucket has no value to name it by
    said = json.loads(place.good("forget", "--zone", "all", "--state", state, "--json").out())
    assert [(one["zone"], one["key"]) for one in said["zones"]] == [("all", "")] and said["rows"]["count_daily"] == 1, said
    assert "takes 1 value" in place.run("forget", "--zone", "site", "--state", state).said()
    assert "--zone" in place.run("forget", "--state", state).said()
    said = place.run("explain", "--zone", "all", "--config", config, "--state", state)
    assert said.code() == DONE and b"all" in said.out(), said.said()
    assert "takes 1 value" in place.run("explain", "--zone", "site", "--state", state).said()
    assert "--zone" in place.run("explain", "--state", state).said()


def test_a_key_goes_whatever_the_order_of_its_fields(place):
    """The same values, in a zone that has them the other way round; also where the archive knows no such key."""
    limits = [{"algorithm": "sliding_window", "rate": 2, "window": "1m"}]
    zones = [{"name": "login", "key": ["ip", "path"], "limits": limits}, {"name": "turned", "key": ["path", "ip"], "limits": limits}]
    log = place.write("log", requests(4))
    config = place.config(zones, [source(log, follow=False)], archiver={"enabled": True})
    state = place.path("once")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("decisions"))
    before = set(buckets(state, "count_daily"))
    words = place.good("forget", "203.0.113.5", "/login", "--state", state).out().decode()
    assert "login  203.0.113.5|/login" in words and "turned  /login|203.0.113.5" in words, words
    assert before - set(buckets(state, "count_daily")) == {"203.0.113.5|/login", "/login|203.0.113.5"}, words
    words = place.good("forget", "203.0.113.5", "/none", "--state", state).out().decode()
    assert "turned  /none|203.0.113.5" in words and "/none|203" not in words.replace("turned  /none|203", "", 1), words
    # Where nothing tells the values apart, who is meant is not guessed.
    zones = [{"name": "sent", "key": ["from", "to"], "limits": limits}, {"name": "got", "key": ["to", "from"], "limits": limits}]
    turned = {"type": "json", "unit": "ms", "fields": {"from": "ip", "to": "path"}}
    config = place.config(zones, [source(log, follow=False, format=turned)], name="both", archiver={"enabled": True})
    place.good("run", "--once", "--config", config, "--state", place.path("both.state"), "--decisions", place.path("both.decisions"))
    done = place.run("forget", "ann", "bob", "--state", place.path("both.state"))
    assert done.code() == 1 and "choose one with --zone" in done.said() + done.out().decode() and b"bob|ann" not in done.out(), done.said()
    place.good("forget", "ann", "bob", "--zone", "sent", "--state", place.path("both.state"))


def test_keys_that_nobody_can_find_are_named(place):
    """Hashes do not say what is in them; without an archive nobody has a list of keys."""
    log = place.write("log", requests(4))
    secret = place.write("secret", SECRET)
    os.chmod(secret, 0o600)
    config = place.config(by_address(), [source(log, follow=False)],
                          archiver={"enabled": True, "hash_keys": secret})
    state = place.path("hashed")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("others"))
    words = place.run("forget", "203.0.113.5", "--config", config, "--state", state)
    assert words.code() == FAILED and b"NOT FOUND, so not removed:\nzone login: its key (ip, path) also has ip, and keys are kept " \
        b"as hashes" in words.out(), words.out()
    done = json.loads(place.run("forget", "203.0.113.5", "--config", config, "--state", state, "--json").out())
    assert not done["done"] and "zone late: its key (method, path, ip) also has ip" in done["left"], done
    place.good("forget", "203.0.113.5", "--zone", "site", "--config", config, "--state", state)
    run = Run(place, state="bare").start()  # without an archive
    run.override("block", "--zone", "site", "ann")
    run.override("block", "--zone", "pair", "ann", "/")
    until(lambda: blocked(run) == {("ann",), ("ann", "/")}, "both are blocked", running=run.weir)
    done = forget(run, "ann", code=FAILED)
    assert "zone pair: its key (user, path) also has user, and no archive says" in done["left"], done
    assert blocked(run) == {("ann", "/")}
    assert forget(run, "ann", "/")["done"] and blocked(run) == set()
    run.stop()


def test_what_is_not_done_is_said(place):
    """A limiter that makes no checkpoint; then nothing that runs at all: what is left is done when it is given again."""
    run = Run(place, zones=kept_zones(), **{**QUICK, "limiter": {"checkpoint_interval": "1h"}}).start()
    run.append(burst("ann", 5, path="/"))
    until_counted(run, "ann", 3, 2)
    until(lambda: "ann|/" in buckets(run.state, "count_hourly"), "its other key is archived", running=run.weir)
    done = forget(run, "ann", "--timeout", "200ms", code=FAILED)
    assert not done["done"] and "zone site: no limiter's checkpoint covers partition" in done["left"], done
    assert "zone pair: it was not asked whether it is done: --timeout was over" in done["left"], done
    assert done["rows"]["count_hourly"] == 2
    run.stop()
    words = run.command("forget", "ann", code=FAILED).out().decode()
    assert "NOT DONE YET:\nzone site: no process is running there: the next start empties its bucket" in words, words
    assert buckets(run.state, "decision_history") == {}
    run = Run(place, zones=kept_zones(), **QUICK)
    run.start()
    assert forget(run, "ann")["done"]
    assert buckets(run.state, "decision_history") == {}
    run.stop()


def test_a_once_run_gives_up_its_rows(place):
    log = place.write("log", burst("ann", 5) + burst("bob", 5))
    config = place.config(kept_zones(), [{key: value for key, value in source(log).items() if key != "follow"}], **QUICK)
    state = place.path("once")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("decisions"))
    done = json.loads(place.good("forget", "ann", "--state", state, "--json").out())
    assert done["done"] and done["rows"]["zone_txn"] == 5 and done["topics"] == [], done
    assert all(set(buckets(state, table)) == {"bob"} for table in TABLES)
    assert counts(state, "bob") == (3, 2)
    words = place.good("forget", "ann", "--state", state).out().decode()
    assert "only rows: the run has ended" in words and "remove it once no run continues" in words, words
    secret = place.write("secret", SECRET)
    os.chmod(secret, 0o600)
    config = place.config(kept_zones(), [{key: value for key, value in source(log).items() if key != "follow"}],
                          archiver={"enabled": True, "hash_keys": secret})
    state = place.path("hashed")
    place.good("run", "--once", "--config", config, "--state", state, "--decisions", place.path("others"))
    assert all(set(buckets(state, table)) == {hashed("ann"), hashed("bob")} for table in TABLES)
    done = json.loads(place.good("forget", "ann", "--config", config, "--state", state, "--json").out())
    assert done["rows"]["zone_txn"] == 5 and set(buckets(state, "zone_txn")) == {hashed("bob")}, done


# ---- hashed keys ----

def api(port, resource, **parameters):
    """What the API answers."""
    answer = metrics.get(port, f"/api/v1/{resource}?{urllib.parse.urlencode(parameters)}")
    assert answer is not None and answer[0] == 200, (resource, parameters, answer)
    return json.loads(answer[2])


def test_no_key_is_kept_in_clear(place):
    """Tables have hashes; the API finds a key by itself, and by its hash; weir forget removes it by its hash."""
    port = free_port()
    secret = place.write("secret", SECRET)
    os.chmod(secret, 0o600)
    run = Run(place, zones=kept_zones(), limiter=QUICK["limiter"],
              archiver={**QUICK["archiver"], "hash_keys": secret, "api": f"127.0.0.1:{port}"}).start()
    run.append(burst("ann", 5) + burst("bob", 5))
    until_counted(run, hashed("ann"), 3, 2)
    until_counted(run, hashed("bob"), 3, 2)
    until(lambda: len(buckets(run.state, "decision_history")) == 2, "decisions are kept", running=run.weir)
    assert all(set(buckets(run.state, table)) == {hashed("ann"), hashed("bob")} for table in TABLES)
    assert api(port, "status")["hash_keys"] is True
    span = {"zone": "site", "from": "2023-11-14", "to": "2023-11-16"}
    for one in ({"key": "ann"}, {"bucket": hashed("ann")}):
        said = api(port, "counts", **one, **span)
        assert said["key"] == list(one.values())[0] and said["total"] == {"passed": 3, "blocked": 2, "late": 0}, said
        assert len(api(port, "events", **one, **span)["events"]) == 5
        assert [row["key"] for row in api(port, "decisions", **one, **span)["decisions"]] == [hashed("ann")]
    assert api(port, "counts", key=hashed("ann"), **span)["counts"] == []
    assert {row["key"] for row in api(port, "top", **span)["top"]} == {hashed("ann"), hashed("bob")}
    # Without the secret nobody can say which rows are meant.
    said = run.command("forget", "ann", code=USAGE).said()
    assert "set archiver.hash_keys to the file" in said, said
    assert forget(run, "ann", "--config", run.config)["rows"]["zone_txn"] == 5
    assert all(set(buckets(run.state, table)) == {hashed("bob")} for table in TABLES)
    run.stop()


def test_the_secret_stays_the_same(place):
    """Another secret, or none, or one where keys are in clear: refused, in words that say what to do."""
    secret = place.write("secret", SECRET)
    os.chmod(secret, 0o640)
    other = place.write("other", SECRET * 2)

    def refused(run, words):
        started = place.run("run", "--config", run.config, "--state", run.state, "--decisions", run.out)
        assert started.code() == USAGE and words in started.said(), started.said()

    archiver = QUICK["archiver"]
    run = Run(place, archiver={**archiver, "hash_keys": secret}).start()
    run.stop()
    refused(Run(place, archiver={**archiver, "hash_keys": other}), "every user on this machine can read")
    os.chmod(other, 0o600)
    refused(Run(place, archiver={**archiver, "hash_keys": other}), "is not the secret that")
    refused(Run(place, archiver=archiver), "set archiver.hash_keys to the file")
    run = Run(place, state="clear", archiver=archiver).start()
    run.stop()
    refused(Run(place, state="clear", archiver={**archiver, "hash_keys": secret}), "the archive has keys in clear")
    Run(place, archiver={**archiver, "hash_keys": secret}).start().stop()


if __name__ == "__main__":
    cases.main(globals())
