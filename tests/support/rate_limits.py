# SPDX-License-Identifier: Apache-2.0
"""Checks by gRPC for tests: a `weir run` that takes them, and calls as Envoy makes them."""

import contextlib
import os
import queue
import threading

from support import venv

venv.enter("grpc")
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # else its threads may fail in a child before it becomes weir

# pylint: disable=wrong-import-position
import grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.rate_limit_quota.v3 import rlqs_pb2
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf import wrappers_pb2

from support.checks import run, until_answered
from support.place import PATIENCE_S, free_port

STREAM = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas"
OK, OVER_LIMIT = rls_pb2.RateLimitResponse.OK, rls_pb2.RateLimitResponse.OVER_LIMIT


def entries(**fields):
    """A descriptor's entries."""
    return [ratelimit_pb2.RateLimitDescriptor.Entry(key=key, value=value) for key, value in fields.items()]


def descriptor(hits=None, **fields):
    """A descriptor. hits: its own hits_addend."""
    made = ratelimit_pb2.RateLimitDescriptor(entries=entries(**fields))
    if hits is not None:
        made.hits_addend.CopyFrom(wrappers_pb2.UInt64Value(value=hits))
    return made


class Caller:
    """A channel of its own, and ShouldRateLimit by it."""

    def __init__(self, port, credentials=None, metadata=()):
        options = [("grpc.use_local_subchannel_pool", 1)]
        target = f"127.0.0.1:{port}"
        self.channel = grpc.insecure_channel(target, options) if credentials is None else \
            grpc.secure_channel(target, credentials, options)
        self.metadata = metadata
        self._stub = rls_pb2_grpc.RateLimitServiceStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def ask(self, *descriptors, domain="rl", hits=0, timeout=PATIENCE_S):
        """The response."""
        request = rls_pb2.RateLimitRequest(domain=domain, descriptors=descriptors, hits_addend=hits)
        return self._stub.ShouldRateLimit(request, timeout=timeout, metadata=self.metadata)

    def passes(self, *descriptors, **more):
        """Whether the overall code is OK."""
        return self.ask(*descriptors, **more).overall_code == OK

    def refusal(self, *descriptors, **more):
        """The status of an error: its code and words."""
        try:
            answer = self.ask(*descriptors, **more)
        except grpc.RpcError as error:
            return error.code(), error.details()  # pylint: disable=no-member
        raise AssertionError(f"answered: {answer}")


def headers(response):
    """response_headers_to_add, by name."""
    return {header.key: header.value for header in response.response_headers_to_add}


@contextlib.contextmanager
def serving(place, zones, *, listen=None, metadata=(), credentials=None, **more):
    """A weir run that takes checks by gRPC: it, and its port, once each partition answers. more: of checks.run()."""
    port = free_port()
    ready = {"name": "ready", "key": ["ready"], "limits": [{"algorithm": "sliding_window", "rate": 1000, "window": "1s"}]}
    weir = run(place, [*zones, ready], {"grpc": f"127.0.0.1:{port}", **(listen or {})}, **more)

    def answers(key):
        try:
            return bool(caller.ask(descriptor(0, ready=key)).statuses[0].current_limit.requests_per_unit)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error  # pylint: disable=no-member
            return False

    with Caller(port, credentials, metadata) as caller:
        until_answered(weir, answers)
    yield weir, port
    assert weir.stop() == 0, weir.said()


class Quotas:
    """A stream of quotas on a channel: reports go out, what buckets are told comes back."""

    def __init__(self, channel):
        self.told = {}  # bucket's id -> the last assignment
        self.ended = None  # (code, words)
        self.messages = 0
        self.actions = []  # of the last message: (the bucket's id, the assignment)
        self._reports, self._changed = queue.Queue(), threading.Condition()
        stream = channel.stream_stream(STREAM, response_deserializer=rlqs_pb2.RateLimitQuotaResponse.FromString)
        self._stream = stream(iter(self._reports.get, None))
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._reports.put(None)
        self._stream.cancel()
        self._reading.join()

    def _read(self):
        try:
            for response in self._stream:
                with self._changed:
                    self.messages += 1
                    self.actions = [(bucket_id(action.bucket_id.bucket), action.quota_assignment_action)
                                    for action in response.bucket_action]
                    self.told.update(self.actions)
                    self._changed.notify_all()
        except grpc.RpcError as error:
            with self._changed:
                self.ended = error.code(), error.details()  # pylint: disable=no-member
                self._changed.notify_all()

    def report(self, *usages, domain="rl", denied=0):
        """Usages: (the bucket's fields, requests let pass), in the last second; denied: and refused, of each. Fields are
        written in their order."""
        reports = rlqs_pb2.RateLimitQuotaUsageReports(domain=domain).SerializeToString()
        for fields, allowed in usages:
            usage = rlqs_pb2.RateLimitQuotaUsageReports.BucketQuotaUsage(num_requests_allowed=allowed,
                                                                         num_requests_denied=denied)
            usage.time_elapsed.seconds = 1
            name = b"".join(rlqs_pb2.BucketId(bucket={key: value}).SerializeToString() for key, value in pairs(fields))
            reports += part(2, part(1, name) + usage.SerializeToString())
        self._reports.put(reports)

    def until(self, condition, what):
        """Waits for what comes to make a condition true."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), (what, self.ended, self.told)

    def tokens(self, **fields):
        """The tokens of a bucket's assignment, once it is told one; None: a blanket rule."""
        name = bucket_id(fields)
        self.until(lambda: name in self.told, f"{name} is told")
        strategy = self.told[name].rate_limit_strategy
        return strategy.token_bucket.max_tokens if strategy.HasField("token_bucket") else None


def pairs(fields):
    """The pairs of fields: of a mapping, or of pairs in an order of their own."""
    return fields.items() if hasattr(fields, "items") else fields


def part(number, message):
    """A message as a field of another."""
    length, size = bytearray(), len(message)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + message


def bucket_id(fields):
    """A bucket's name here."""
    return tuple(sorted(dict(fields).items()))
