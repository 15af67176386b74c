#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator sees of each fault of a night: a page in time where it costs verdicts or data, the cause in words,
nothing else; and after the repair, health.

usage: test_night.py [--weir PATH] [--all | --list | NAME…] [--health SECONDS] [--fire]

Without names: the five faults that everybody runs, and a minute of health with restarts and rebalances, in which no
page may come. An alert counts as found when it is pending, at the moment at which it would fire; --fire waits for that.
"""

import argparse
import contextlib
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
import night_alerts
import night_faults
from night import LATER_S, PLAIN, SEVERAL, STAGES, Night, faster
from night_faults import NOTHING, WITHIN_S, alerts_of
from support import cases, cluster, venv
from support.place import Place, find_weir, until
from support.small_disk import SmallDisk, enter_namespace

venv.enter()

MIB = 1 << 20
HEALTH_S = 30
NO_NAMESPACE = enter_namespace()
NEED_DISKS = ("broker's disk full", "collector's disk full", "one machine's disk full", "one machine's disk of decisions full")
FAULTS = night_faults.FAULTS + night_alerts.FAULTS


def own(night, fault):
    """Which of its alerts there are already; those that last for long are not waited for."""
    return [alert for alert in alerts_of(fault) for name, factor in [faster(alert)]
            if alert not in night.known and name in night.prometheus.alerts(factor)]


def look(night, fault, fire):
    """Injects a fault and waits for its signs: ({alert: seconds to it}, seconds to its words, the words)."""
    night.mark()
    night.fault_s = began_s = time.time()  # a fault that needs preparation says when it began
    fault.inject(night)
    found, words_s, words = {}, None, None

    def is_told():
        nonlocal words_s, words
        if words_s is None:
            words = night.find(fault.words)
            words_s = words and time.time() - night.fault_s
        for alert in alerts_of(fault):
            name, factor = faster(alert)
            since_s, fires = night.prometheus.alerts(factor, began_s).get(name, (None, False))
            if alert not in found and since_s is not None and (fires or not fire):
                found[alert] = since_s + night.prometheus.pending_s[name, factor] - night.fault_s
        time.sleep(0.25)
        return words_s is not None and len(found) == len(alerts_of(fault))
    try:
        until(is_told, "told", max(2 * WITHIN_S, fault.within_s or 0))
    except AssertionError:
        raise AssertionError(f"{fault.alert}: {found}; the words {fault.words!r} after {words_s} s; alerts: "
                             f"{sorted(night.prometheus.alerts())}; it says:\n" + "\n".join(night.said()[-40:])) from None
    return found, words_s, words


def judge(night, fault, found, fired):
    """What it has to be: in time, as severe as it costs, alone."""
    names = [faster(alert)[0] for alert in alerts_of(fault)]
    others = fired - {*names, *fault.also, *night.known}
    assert not others, f"{sorted(others)} fired, too"
    first = next(iter(names), None)
    if fault.cost != NOTHING:
        assert night.prometheus.severity[first] == "page", f"{first} is no page"
    elif fault.within_s is None:
        assert first is None or night.prometheus.severity[first] == "ticket", f"{first} is a page"
    if fault.within_s is not None:
        assert all(seconds <= fault.within_s for seconds in found.values()), f"{found}: later than {fault.within_s} s"
    elif fault.cost != NOTHING:
        first_s = found[alerts_of(fault)[0]]
        assert first_s + LATER_S <= WITHIN_S, f"{first} after {first_s:.0f} s, and {LATER_S} s with the scrapes supposed"


def play(night, fault, fire):
    """One fault, from health to health: a line that tells of it."""
    night.until_well()
    night.until_history(fault.history_s)
    until(lambda: not own(night, fault), f"{fault.alert} of before is over", 3 * WITHIN_S)
    began = time.monotonic()
    try:
        found, words_s, words = look(night, fault, fire)
    finally:
        fault.repair(night)
        night.known |= {*alerts_of(fault)} & night_faults.LASTING
    well_s = night.until_well()
    fired = night.prometheus.fired(time.monotonic() - began)
    judge(night, fault, found, fired)
    told = ", ".join(f"{alert} {seconds:.1f} s" for alert, seconds in found.items()) or "no alert"
    return f"{told}, words {words_s:.1f} s, well {well_s:.1f} s, pages {sorted(fired)}: {words[:200]}"


def be_healthy(night, seconds):
    """Restarts and rebalances for so long, of which no page comes."""
    night.until_well()
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        for role in (*night.limiters, night.collector, night.archiver):
            night.restart(role)
            role.until_ready()
            time.sleep(seconds / 12 if seconds <= 90 else 60)  # four starts of one in ten minutes are a page, rightly
    night.until_well()
    fired = night.prometheus.fired(time.monotonic() - began)
    assert not fired, f"{sorted(fired)} fired in health"
    return f"no page in {time.monotonic() - began:.0f} s"


def stage(stack, weir, kind, names):
    """Everything, as it stands before the first fault. kind: of STAGES; names: of the alerts."""
    place = stack.enter_context(Place(weir))
    disks = None if NO_NAMESPACE else {"broker-1": 256 * MIB}
    served = stack.enter_context(cluster.own(*STAGES[kind], parent=place.directory, disks=disks))
    proxied = stack.enter_context(served.proxied_kafka()) if kind == SEVERAL else None
    held = {}
    if not NO_NAMESPACE:
        held["collector"] = stack.enter_context(SmallDisk(place.path("collector-1.state"), 4 * MIB))
    night = stack.enter_context(Night(place, served, names, proxied))
    night.disks = held
    return night


def comes_to_health(night):
    """Whether the next fault can begin here, after one that was not as it should be."""
    try:
        night.until_well()
    except AssertionError as why:
        print(why, flush=True)
        return False
    return True


def main():
    """Plays what the command line asks for, and leaves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the program (WEIR_BIN, build/release/bin/weir)")
    parser.add_argument("--all", action="store_true", help="every fault")
    parser.add_argument("--list", action="store_true", help="lists the faults and plays none")
    parser.add_argument("--health", type=int, default=int(os.environ.get("WEIR_NIGHT_HEALTH", HEALTH_S)), metavar="SECONDS")
    parser.add_argument("--fire", action="store_true", help="wait until alerts fire")
    parser.add_argument("only", nargs="*", metavar="NAME", help="faults whose names have it in them")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS
              if options.all or options.list or any(word in fault.name for word in options.only)
              or not options.only and fault.name in night_faults.CI]
    if options.list:
        for fault in chosen:
            print(f"{fault.name}: {', '.join(alerts_of(fault)) or 'no alert'}; costs {fault.cost}")
        sys.exit(0)
    weir = find_weir(options.weir)
    if weir is None:
        print("skipped: weir is not built\n0 passed, 0 failed")
        sys.exit(cases.SKIPPED)
    if NO_NAMESPACE:
        print(f"skipped: {', '.join(NEED_DISKS)}: {NO_NAMESPACE}")
        chosen = [fault for fault in chosen if fault.name not in NEED_DISKS]
    sys.exit(run(weir, chosen, options))


def run(weir, chosen, options):
    """Plays them, each until all is well again: the exit code.

    The stage is made anew where one did not come to health, and where the next needs one of the other kind."""
    failed = []
    left = [("health", lambda night: be_healthy(night, options.health), PLAIN)] if options.health else []
    left += [(fault.name, lambda night, fault=fault: play(night, fault, options.fire), fault.stage)
             for fault in sorted(chosen, key=lambda fault: list(STAGES).index(fault.stage))]
    if not any(fault.name in night_faults.INEXACT + night_alerts.INEXACT for fault in chosen):
        kind = left[-1][2] if left else PLAIN
        left.append(("exact", lambda night: f"{night.until_exact()} lines, each taken once, judged and stored", kind))
    count, names = len(left), {name for fault in chosen for name in alerts_of(fault)}
    while left:
        with contextlib.ExitStack() as stack:
            kind = left[0][2]
            try:
                night = stage(stack, weir, kind, names)
            except cases.Skipped as why:
                print(f"skipped: {why}\n0 passed, 0 failed")
                return cases.SKIPPED
            while left and left[0][2] == kind:
                name, deed, _ = left.pop(0)
                began = time.monotonic()
                try:
                    words = deed(night)
                    print(f"passed   {name} ({time.monotonic() - began:.0f} s): {words}", flush=True)
                except Exception as why:  # pylint: disable=broad-exception-caught
                    words = str(why) if isinstance(why, AssertionError) else traceback.format_exc()
                    print(f"FAILED   {name} ({time.monotonic() - began:.0f} s): {words}", flush=True)
                    failed.append(name)
                    night.roles.show()
                    if not comes_to_health(night):
                        break
    print(f"{count - len(failed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    main()
