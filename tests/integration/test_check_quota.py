#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotas by gRPC in `weir run`: what streams may hold, what zones in shadow mode count, and buckets that are in too many zones."""

import contextlib
import http.client
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position,wrong-import-order
from support.rate_limits import Quotas, bucket_id, serving

import grpc
from support import cases, metrics
from support.place import PATIENCE_S, free_port, until
from support.traffic import sliding, zone

SITE = zone("site", [sliding(1000, "1h")], key=["user"])
DARK = zone("dark", [sliding(1000, "1h")], key=["user"], mode="shadow")
MIB = 1 << 20


@contextlib.contextmanager
def channel_to(port):
    """A connection that streams share."""
    with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel


def left(port, name, key):
    """What is left to a key in a zone, by a peek over HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/v1/check", json.dumps({"zone": name, "key": key, "peek": True}))
        return json.loads(connection.getresponse().read())["remaining"]
    finally:
        connection.close()


def test_what_streams_hold_is_bounded(place):
    with serving(place, [SITE]) as (weir, port):
        def held():
            return metrics.scrape(weir.pages).value("weir_check_buffered_bytes")
        with contextlib.ExitStack() as stack:
            channel = stack.enter_context(channel_to(port))
            streams = []
            while len(streams) < 12 and not any(stream.ended for stream in streams):
                stream = stack.enter_context(Quotas(channel))
                streams.append(stream)
                for first in range(0, 990, 15):  # 256 KiB a message at most
                    stream.report(*[({"blob": f"{number:04}" + "x" * 4000}, 0) for number in range(first, first + 15)])
                stream.until(lambda stream=stream: stream.ended or len(stream.told) == 990, "all buckets are told")
            assert len(streams) > 2 and streams[-1].ended == (
                grpc.StatusCode.RESOURCE_EXHAUSTED, "buckets hold too much: 16 MiB of a connection at most, 128 MiB in all"), [
                    stream.ended for stream in streams]
            # what it held is given back, and the others go on
            assert not any(stream.ended for stream in streams[:-1])
            until(lambda: 10 * MIB < held() < 17 * MIB, "what is held is counted", running=weir)
            streams[0].report(({"user": "ann"}, 0))
            assert streams[0].tokens(user="ann") == 8
        until(lambda: held() < MIB, "what was held is given back", running=weir)


def test_a_stream_has_so_many_buckets(place):
    with serving(place, [SITE]) as (_, port), channel_to(port) as channel:
        with Quotas(channel) as stream:
            stream.report(*[({"n": str(number)}, 0) for number in range(1001)])
            stream.until(lambda: stream.ended, "the stream ends")
            assert stream.ended == (grpc.StatusCode.RESOURCE_EXHAUSTED, "a stream has at most 1000 buckets")
        with Quotas(channel) as stream:
            stream.report(({"blob": "x" * 5000}, 0))
            stream.until(lambda: stream.ended, "the stream ends")
            assert stream.ended == (grpc.StatusCode.INVALID_ARGUMENT, "a bucket's id has at most 4 KiB")


def test_a_message_has_as_many_usages_as_a_stream_has_buckets(place):
    """Each usage looks its bucket up, so a message that names one over and over would hold up its thread."""
    with serving(place, [SITE]) as (_, port), channel_to(port) as channel:
        with Quotas(channel) as stream:
            stream.report(*[({"user": "ann"}, 0)] * 1000)
            assert stream.tokens(user="ann")
            stream.report(*[({"user": "ann"}, 0)] * 1001)
            stream.until(lambda: stream.ended, "the stream ends")
            assert stream.ended == (grpc.StatusCode.INVALID_ARGUMENT, "a message has at most 1000 usages: one of each bucket")
        with Quotas(channel) as stream:  # the connection's others go on
            stream.report(({"user": "bob"}, 0))
            assert stream.tokens(user="bob")


def test_fields_of_a_bucket_have_no_order(place):
    """Protobuf writes a map in any order, and of a key that comes twice the last value counts."""
    pages = free_port()
    both = zone("both", [sliding(1000, "1h")], key=["user", "tenant"])
    with serving(place, [both], listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        one, other = [("user", "ann"), ("tenant", "t")], [("tenant", "t"), ("user", "ann")]
        given = [0]
        for fields in (one, other, [("user", "bob"), *other], one):
            stream.told.clear()
            stream.report((fields, given[-1]))  # its tokens pay, so nothing is counted but what it is given
            given.append(stream.tokens(user="ann", tenant="t"))
            assert left(pages, "both", "ann|t") == 1000 - sum(given), given


def test_zones_count_all_or_none(place):
    """A bucket in two zones takes nothing from the one that has room while the other has none."""
    pages = free_port()
    zones = [zone("mine", [sliding(1000, "1h")], key=["user"]), zone("shared", [sliding(5, "1h")], key=["domain"]),
             zone("seen", [sliding(1000, "1h")], key=["user"], mode="shadow")]
    for threads in (1, 4):  # one judges all zones, or each its own
        with serving(place, zones, listen={"check_http": f"127.0.0.1:{pages}"}, threads=threads,
                     state=f"state-{threads}") as (weir, port), channel_to(port) as channel, Quotas(channel) as stream:
            def told(allowed, stream=stream):
                stream.told.clear()
                stream.report(({"user": "ann"}, allowed), denied=20)
                return stream.tokens(user="ann")
            assert told(0) is None  # for what it asks there is no room in one of them, and in the other there is
            until(lambda stream=stream: stream.tokens(user="ann"), "it is given what there is room for", running=weir)
            given, total = stream.tokens(user="ann"), 0
            while given is not None:
                total += given
                assert (left(pages, "mine", "ann"), left(pages, "shared", "rl")) == (1000 - total, 5 - total), threads
                given = told(given)
            assert (total, left(pages, "mine", "ann"), left(pages, "shared", "rl")) == (5, 995, 0), threads
            until(lambda: left(pages, "seen", "ann") == 995, "what passed is counted in shadow mode", running=weir)


def test_a_stream_that_fell_silent_takes_no_more(place):
    """It is asked for again until it is given what it asked for, and then as long as it reports requests."""
    pages = free_port()
    short, small = zone("short", [sliding(1000, "11s")], key=["user"]), zone("small", [sliding(10, "1h")], key=["tenant"])
    with serving(place, [short, small], listen={"check_http": f"127.0.0.1:{pages}"}) as (weir, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        stream.report(({"tenant": "t"}, 3))
        assert stream.tokens(tenant="t") is None  # 3 and the tokens that it asks for are more than 10
        until(lambda: stream.tokens(tenant="t"), "it is asked again without a report", running=weir)
        stream.report(({"user": "ann"}, 0), denied=20)
        given = stream.tokens(user="ann")
        assert left(pages, "short", "ann") == 1000 - given
        life = stream.told[bucket_id({"user": "ann"})].assignment_time_to_live
        assert (life.seconds, life.nanos) == (2, 0)  # whole seconds, as Envoy counts them
        others = 0
        until_s = time.monotonic() + 5
        while time.monotonic() < until_s:  # the stream is looked at whatever comes on it
            others += 1
            stream.report(({"n": str(others)}, 0), ({"user": "ann"}, 0))
            stream.tokens(n=str(others))
            assert left(pages, "short", "ann") == 1000 - given, others
            time.sleep(0.1)
        stream.told.clear()
        stream.report(({"user": "ann"}, 1))
        assert stream.tokens(user="ann"), "it is given tokens once it reports something"


def test_nothing_is_taken_for_a_stream_that_says_nothing(place):
    pages = free_port()
    with serving(place, [SITE], listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        stream.report(({"user": "ann"}, 0), denied=20)
        given, until_s = stream.tokens(user="ann"), time.monotonic() + 12  # an assignment lasts 10 s
        while time.monotonic() < until_s:
            assert left(pages, "site", "ann") == 1000 - given
            time.sleep(0.5)
        assert stream.messages == 1


def test_tokens_pay_once(place):
    """What is used of an assignment until the next one has arrived is paid by both; all that passed is counted once."""
    pages = free_port()
    with serving(place, [SITE], listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        given, rest = [], 0
        for used in (0, 6, None, None):
            stream.told.clear()
            stream.report(({"user": "ann"}, given[-1] + rest if used is None else used))
            rest = given[-1] - used if used else 0  # used between the report and the next assignment
            given.append(stream.tokens(user="ann"))
            assert left(pages, "site", "ann") == 1000 - sum(given), given
            # what Envoy has left of the assignment before is no part of the next one
            blanket, tokens = stream.actions
            assert blanket[0] == tokens[0] and blanket[1].rate_limit_strategy.blanket_rule == 1, stream.actions
            assert tokens[1].rate_limit_strategy.token_bucket.max_tokens == given[-1]


def test_tokens_pay_once_where_assignments_are_shorter_than_reports(place):
    pages = free_port()
    with serving(place, [zone("short", [sliding(1000, "13s")], key=["user"])], listen={"check_http": f"127.0.0.1:{pages}"}) as \
            (_, port), channel_to(port) as channel, Quotas(channel) as stream:
        stream.report(({"user": "ann"}, 0), denied=20)
        stream.until(lambda: stream.messages >= 3, "it is given several, one after another")
        stream.told.clear()
        counted = 1000 - left(pages, "short", "ann")
        stream.report(({"user": "ann"}, counted))
        tokens = stream.tokens(user="ann")
        assert 1000 - left(pages, "short", "ann") == counted + tokens


def test_limits_without_a_burst_let_pass_what_reports_allow(place):
    """One token at a time is asked for as soon as there is one, at a report; and kept until it is used or ends."""
    cell = zone("cell", [{"algorithm": "gcra", "rate": 5, "window": "1s", "burst": 0}], key=["user"])
    with serving(place, [cell]) as (_, port), channel_to(port) as channel, Quotas(channel) as stream:
        passed, began_s = 0, time.monotonic()
        stream.report(({"user": "ann"}, 0), denied=1)
        stream.tokens(user="ann")
        while passed < 15:
            assert time.monotonic() < began_s + PATIENCE_S, passed
            used = stream.tokens(user="ann") or 0
            passed += used
            stream.told[bucket_id({"user": "ann"})].Clear()
            stream.report(({"user": "ann"}, used), denied=1)
            time.sleep(0.1)
        assert passed <= 5 * (time.monotonic() - began_s) + 1, passed


def test_zones_in_shadow_mode_count_what_was_let_pass(place):
    pages = free_port()
    low = zone("low", [sliding(2, "1h")], key=["user"], mode="shadow")
    with serving(place, [SITE, DARK, low], listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        stream.report(({"user": "ann"}, 0))
        assert stream.tokens(user="ann") == 8
        assert (left(pages, "site", "ann"), left(pages, "dark", "ann")) == (992, 1000)
        # whether tokens paid or not, and whether a new assignment is due or not
        passed = 0
        for allowed in (1, 3, 2, 9, 1, 0, 40):
            passed += allowed
            stream.report(({"user": "ann"}, allowed))
            until(lambda: left(pages, "dark", "ann") == 1000 - passed, f"{passed} are counted")
        assert stream.tokens(user="ann") > 8  # whatever the zone with a limit of 2 would say
        assert left(pages, "site", "ann") < 1000 - passed


def test_a_bucket_with_an_empty_address_is_in_no_zone(place):
    pages = free_port()
    zones = [zone("net", [sliding(100, "1h")], key=["ip"])]
    with serving(place, zones, listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        stream.report(({"remote_address": ""}, 9))
        assert stream.tokens(remote_address="") is None
        told = stream.told[bucket_id({"remote_address": ""})].rate_limit_strategy
        assert told.HasField("blanket_rule") and told.blanket_rule == 0, told  # ALLOW_ALL
        stream.report(({"remote_address": " 192.0.2.7"}, 1))
        tokens = stream.tokens(remote_address=" 192.0.2.7")
        until(lambda: left(pages, "net", "192.0.2.7") == 99 - tokens, "an address is counted without its blanks")


def decided(place):
    """The zones of the decisions that were published."""
    with open(place.path("out-state"), encoding="utf-8") as file:
        return [json.loads(line)["zone"] for line in file if line.endswith("\n")]


def test_asking_for_more_than_may_pass_is_nobodys_breach(place):
    """weir asks for tokens by itself: what it does not get is not counted, and blocks nobody. What Envoy refused meanwhile is."""
    pages = free_port()
    zones = [zone("ban", [sliding(10, "1h")], key=["user"], match={"user": ["ann"]}, block_for="2h"),
             zone("every", [sliding(10, "1h")], key=["user"], match={"user": ["bob"]}, count="all")]
    with serving(place, zones, listen={"check_http": f"127.0.0.1:{pages}"}) as (_, port), \
            channel_to(port) as channel, Quotas(channel) as stream:
        def told(user, allowed, denied=0):
            """The tokens that it is given after a report."""
            stream.told.clear()
            stream.report(({"user": user}, allowed), denied=denied)
            return stream.tokens(user=user)
        for name, user in (("ban", "ann"), ("every", "bob")):
            assert told(user, 3) is None  # which had passed before it had a token: with the first 8 these are more than 10
            assert left(pages, name, user) == 10
            assert told(user, 0) == 4 and left(pages, name, user) == 3
            assert [told(user, 4), told(user, 1), told(user, 1)] == [1, 1, 1] and left(pages, name, user) == 0
            assert told(user, 1, denied=1) is None  # its last token is used, and nothing is left; it does not know that yet
        assert not decided(place)
        stream.report(({"user": "ann"}, 0), denied=1)  # now it does
        until(lambda: decided(place) == ["ban"], "who was refused is blocked")


def test_a_bucket_in_too_many_zones_holds_up_nobody(place):
    for on_unavailable, blanket, size in (("error", None, 70), ("deny", 1, 70), ("allow", 0, 70), ("deny", 1, 17)):
        crowd = [zone(f"crowd-{number}", [sliding(1000, "1h")], key=["crowd"]) for number in range(size)]
        with serving(place, [SITE, *crowd], on_unavailable=on_unavailable, state=f"state-{on_unavailable}-{size}") as (weir, port), \
                channel_to(port) as channel, Quotas(channel) as stream:
            stream.report(({"crowd": "x"}, 1), ({"user": "ann"}, 1))
            assert stream.tokens(user="ann")
            for number in range(3):
                stream.report(({"crowd": "x"}, 1), ({"user": f"bob-{number}"}, 1))
                assert stream.tokens(user=f"bob-{number}")
            assert stream.ended is None
            told = [action for name, action in stream.told.items() if name[0][0] == "crowd"]
            assert [action.rate_limit_strategy.blanket_rule for action in told] == [blanket] * (blanket is not None)
            assert f"a request is in more than {64 if size > 64 else 16} zones" in weir.said(), weir.said()


if __name__ == "__main__":
    cases.main(globals())
