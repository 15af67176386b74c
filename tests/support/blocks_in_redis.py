# SPDX-License-Identifier: Apache-2.0
"""What `weir subscribe` keeps in Redis: read back, and compared with what is to be live."""

import json


def block_key(zone, key):
    """The key of a block in Redis."""
    return b"weir:" + zone.encode() + b":" + key


def keys_of(topic, zone=None):
    """The keys that Redis is to hold."""
    return sorted(block_key(*bucket) for bucket in topic.expected(zone))


def held(redis):
    """{key: (decision, end in Unix ms)} of the blocks in Redis."""
    blocks = {}
    for key in redis.keys("weir:*"):
        value, end = redis.call("GET", key), redis.call("PEXPIRETIME", key)
        if value is not None and end != -2:
            blocks[key] = json.loads(value), end
    return blocks


def check_redis(topic, redis, subscriber):
    """Waits until Redis holds what it is to hold, every decision whole and with its end."""
    def is_true():
        wanted = {block_key(*bucket): (decision, decision["until"] if decision["until"] < 2 ** 62 else -1)
                  for bucket, decision in topic.expected().items()}
        return held(redis) == wanted

    subscriber.until(is_true, "Redis holds what is live")
