# SPDX-License-Identifier: Apache-2.0
"""Messages that weir did not write, in every form that a topic takes: for tests of what its readers do with them."""

import struct

from support import frames

_LARGE = 3 * 1024 * 1024  # below what weir's topics take, above any frame
_KEY = b"k" * (512 * 1024)


def no_frames():
    """Values that are nothing of weir's on any topic; None is a tombstone."""
    return [None, b"", b"\0", b"\n", b"wF", b"wF\x01\x01", b"garbage \xff\xfe", b"{}", b"[]", b'{"id":"0-0-0"}', b"null",
            b'{\n "a": [\n]}\n',
            b"[" * 5000, b"x" * 39, bytes(40), bytes(range(256)) * 40]


def spoiled(frame):
    """A frame's bytes with one thing wrong each: every result is malformed, whatever the frame was."""
    head, body = frame[:40], frame[40:]
    cuts = [frame[:length] for length in (39, 40, len(frame) - 1)]
    flips = [frame[:at] + bytes([frame[at] ^ 0x40]) + frame[at + 1:] for at in (4, 9, 20, 36, len(frame) - 1)]
    kinds = [frame[:3] + bytes([kind]) + frame[4:] for kind in (0, 5, 255)]
    return cuts + flips + kinds + [
        frame + b"\0", frame[:2] + b"\0" + frame[3:],  # the second is of version 0
        *(frames.seal(other) for other in (frame + b"\0", frame[:-1], head, head + b"\xff" * len(body))),
        *(frames.seal(frame[:8] + struct.pack("<q", sent_ms) + frame[16:]) for sent_ms in (-1, 1 << 62))]


def scatter(one, name, values, partitions):
    """Puts values on one of weir's topics, each in every partition: {(topic, partition, offset)}.

    As they are; some under headers and odd keys, compressed; on events in a transaction, too; and a large one."""
    topic, placed = one.topic(name), set()

    def put(batch, **more):
        messages = [(key, value, partition) for partition in range(partitions) for key, value in batch]
        offsets = one.kafka.produce(topic, messages, **more)
        placed.update((topic, message[2], offset) for message, offset in zip(messages, offsets))

    put([(b"foreign", value) for value in values])
    some = values[::4]
    put([(key, value) for key in (b"|", b"\xff\0", b"") for value in some] + [(_KEY, some[0])],
        headers=[(f"h{number}", b"v" * number) for number in range(100)], compression_type="zstd")
    if name == "events":
        put([(None, value) for value in some], transactional_id=f"{topic}.foreign")
    put([(b"large", b"L" * _LARGE)], compression_type="lz4")
    return placed
