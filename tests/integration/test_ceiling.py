#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ceiling: ten times the users that memory may hold, the same verdicts, and memory held."""

import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from support import cases, metrics, traffic
from support.place import SANITIZED, free_port, lines_of, read, until
from support.traffic import fixed, sliding, source, zone

MIB = 1 << 20
CEILING_BYTES = 16 * MIB
STORE_BYTES = 32 * MIB  # the store's page caches, and the cut that is being written
ZONES = [zone("site", [sliding(2, "10m"), fixed(3, "1h"), fixed(20, "1d")], id=1)]


def crowded_log(place, users, rounds=2):
    """Every user comes once a round, in another order each time, and some come twice."""
    rng = random.Random(7)
    names, at_ms = list(range(users)), traffic.START_MS
    with open(place.path("log"), "wb") as log:
        for _ in range(rounds):
            rng.shuffle(names)
            for name in names:
                at_ms += 1
                text = b'{"time":%d,"user":"user-%d"}\n' % (at_ms, name)
                log.write(text * (2 if name % 4 == 0 else 1))
    return place.path("log")


def once(place, config, out, *more):
    """Runs to the end: (the weir, the most memory that was resident)."""
    weir = place.start("run", "--once", "--config", config, "--decisions", place.path(out), "--summary", "json", *more)
    peak = 0
    while weir.code() is None:
        try:
            peak = max(peak, weir.peak_bytes())
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            break
        try:
            weir.process.wait(0.02)
        except Exception:  # pylint: disable=broad-exception-caught
            pass
    assert weir.wait() == 0, weir.said()
    return weir, peak


def users_that_fit(place):
    """How many users the ceiling holds, by the bytes that the program itself states."""
    few, port = 20000, free_port()
    log = crowded_log(place, few)
    config = place.config(ZONES, [source(log)], listen={"http": f"127.0.0.1:{port}"})
    weir = place.start("run", "--config", config, "--state", place.path("sizing"), "--decisions", place.path("sizing-out"))
    until(lambda: (page := metrics.scrape(port)) and page.value("weir_limiter_buckets") == few, "all buckets", running=weir)
    page = metrics.scrape(port)
    weir.kill()
    return int(CEILING_BYTES / (page.value("weir_limiter_state_bytes") / few))


def test_once_holds_its_memory_and_decides_the_same(place):
    fit = users_that_fit(place)
    users = fit // 10 if SANITIZED else 10 * fit
    config = place.config(ZONES, [source(crowded_log(place, 1000))])
    _, floor = once(place, config, "floor", "--memory", str(CEILING_BYTES))
    config = place.config(ZONES, [source(crowded_log(place, users))])
    free, free_peak = once(place, config, "free")
    held, peak = once(place, config, "held", "--memory", str(CEILING_BYTES), "--state", place.path("state"))
    seconds = [weir.summary()["seconds"] for weir in (free, held)]
    print(f"{users} users, of whom {fit} fit: resident {peak / MIB:.0f} MiB with a ceiling of "
          f"{CEILING_BYTES / MIB:.0f} MiB, {free_peak / MIB:.0f} MiB without, {floor / MIB:.0f} MiB with 1000 users; "
          f"{seconds[1]:.1f} s, without a ceiling {seconds[0]:.1f} s")
    assert read(place.path("held")) == read(place.path("free")) != b""
    assert held.summary()["zones"] == free.summary()["zones"]
    if not SANITIZED:
        assert free_peak > floor + 2 * CEILING_BYTES, "this is no test of the ceiling"  # few users take more each than many
        assert peak < floor + CEILING_BYTES + STORE_BYTES, "the ceiling was not held"


def deleted_files(pid, directory):
    """The files without a name that a process has in a directory, as paths that open them."""
    found = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            continue
        if target.startswith(directory + "/") and target.endswith("(deleted)"):
            found.append(f"/proc/{pid}/fd/{number}")
    return found


def test_changes_that_are_lost_with_their_file_end_the_run_which_then_goes_on(place):
    """Changed buckets leave memory before they are stored. A file that loses them must not go unseen."""
    users, state = 30000 if SANITIZED else 400000, place.path("state")
    log = crowded_log(place, users)
    config = place.config(ZONES, [source(log)], limiter={"checkpoint_interval": "1h"})
    once(place, config, "free")
    arguments = ("run", "--once", "--config", config, "--decisions", place.path("held"), "--memory", str(CEILING_BYTES // (16 if SANITIZED else 1)),
                 "--state", state)
    weir = place.start(*arguments)
    size = lambda: sum(os.stat(path).st_size for path in deleted_files(weir.process.pid, state))
    until(lambda: size() > MIB, "buckets have left memory", running=weir)
    weir.pause()
    for path in deleted_files(weir.process.pid, state):
        os.truncate(path, 0)
    weir.resume()
    assert weir.wait() == 1, weir.said()
    assert "had changes that were not stored yet: run it again" in weir.said(), weir.said()
    assert place.start(*arguments).wait() == 0
    assert read(place.path("held")) == read(place.path("free")) != b""


def test_following_holds_its_memory_and_decides_the_same(place):
    users = 30000 if SANITIZED else 400000
    log, port = crowded_log(place, users), free_port()
    config = place.config(ZONES, [source(log)])
    once(place, config, "free")
    config = place.config(ZONES, [source(log)], listen={"http": f"127.0.0.1:{port}"},
                          limiter={"checkpoint_interval": "1s"})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("held"),
                       "--memory", str(CEILING_BYTES), "--summary", "json")
    verdicts = 2 * (users + users // 4)
    pages = []

    def done():
        page = metrics.scrape(port)
        pages.append(page)
        return page is not None and page.sum("weir_limiter_verdicts_total") == verdicts

    until(done, "all verdicts", patience_s=600, running=weir)
    peak = weir.peak_bytes()
    most = max(page.value("weir_limiter_state_bytes") for page in pages if page is not None)
    print(f"{users} users: {most / MIB:.1f} MiB of buckets, resident {peak / MIB:.0f} MiB")
    assert weir.stop() == 0, weir.said()
    # A partition that is full is held behind a whole frame, and frames are the larger the busier the machine is.
    assert most <= 1.5 * CEILING_BYTES, "the ceiling was not held"
    held, free = (traffic.by_bucket(lines_of(place.path(name))) for name in ("held", "free"))
    wrong = [bucket for bucket in held.keys() | free.keys() if held.get(bucket) != free.get(bucket)]
    assert not wrong, (f"{len(wrong)} of {len(free)} buckets are decided otherwise: "
                       f"{[(bucket, held.get(bucket), free.get(bucket)) for bucket in sorted(wrong)[:5]]}")


def test_an_index_larger_than_the_ceiling_leaves_room_to_work(place):
    """Far more users than memory: that is said with the amount that would do, and users who come often stay in memory."""
    users, often, port = 60000 if SANITIZED else 1700000, 200, free_port()
    log = crowded_log(place, users, rounds=1)
    config = place.config(ZONES, [source(log)], listen={"http": f"127.0.0.1:{port}"},
                          limiter={"checkpoint_interval": "1s"})
    weir = place.start("run", "--config", config, "--state", place.path("state"), "--decisions", place.path("held"),
                       "--memory", str(CEILING_BYTES))
    verdicts = users + users // 4

    def judged():
        page = metrics.scrape(port)
        return page is not None and page.sum("weir_limiter_verdicts_total") == verdicts

    until(judged, "the crowd", patience_s=600, running=weir)

    def loads():
        time.sleep(1.5)  # the page has it anew each second
        page = metrics.scrape(port)
        return page.value("weir_limiter_segment_loads_total") + page.value("weir_limiter_bucket_recalls_total")

    if SANITIZED:
        weir.stop()
        return
    before, page, at_ms = loads(), metrics.scrape(port), traffic.START_MS + 2 * users
    assert page.value("weir_limiter_index_bytes") > CEILING_BYTES / 2, "this is no test of an index without room"
    until(lambda: "limiter.memory, 16.0 MiB, is too small: what finds the buckets takes " in weir.said(), "it is said", running=weir)
    for turn in range(20):
        place.append("log", "".join(traffic.line(at_ms + 1000 * turn + i, f"user-{i}") for i in range(often)))
        verdicts += often
        until(judged, "those who come often", running=weir)
    loaded = loads() - before
    print(f"{users} users: an index of {page.value('weir_limiter_index_bytes') / MIB:.1f} MiB, {page.value('weir_limiter_buckets'):.0f} buckets "
          f"in memory; {loaded:.0f} loads for {20 * often} events of {often} users")
    assert loaded < 4 * often
    assert weir.stop() == 0, weir.said()


if __name__ == "__main__":
    cases.main(globals())
