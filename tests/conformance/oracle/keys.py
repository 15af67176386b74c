# SPDX-License-Identifier: Apache-2.0
"""The joined key of a zone's values, what it stands for if it is too long, and its partition."""

import ctypes

KEY_MAX_BYTES = 1024
WHOLE_BYTES, HEAD_BYTES = 60, 27


class _Hash(ctypes.Structure):  # pylint: disable=too-few-public-methods
    """What XXH3_128bits returns."""

    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def _library():
    """libxxhash, which weir is built with too: any Python can call it without a module of its own."""
    try:
        library = ctypes.CDLL("libxxhash.so.0")
    except OSError as why:
        raise ImportError(f"the oracle needs libxxhash (Debian: libxxhash0): {why}") from why
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.XXH3_128bits.restype = _Hash
    return library


_XXHASH = _library()


def xxh128(data):
    """The 32 hexadecimal digits of XXH128, seed 0."""
    found = _XXHASH.XXH3_128bits(data, len(data))
    return b"%016x%016x" % (found.high, found.low)


def shortened(value):
    """A long value as it stands in a key that would be too long."""
    return value if len(value) <= WHOLE_BYTES else value[:HEAD_BYTES] + b"~" + xxh128(value)


def bounded(values):
    """The values of a zone's key: long ones shortened if the joined key would be too long."""
    if len(joined(values)) <= KEY_MAX_BYTES:
        return values
    return tuple(shortened(value) for value in values)


def joined(values):
    """The key's values as one: `\\` and `|` escaped, joined by `|`."""
    return b"|".join(value.replace(b"\\", b"\\\\").replace(b"|", b"\\|") for value in values)


def crc16(data):
    """CRC16 XMODEM, bit by bit."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def partition_of(joined_key, partitions):
    """The partition of a joined key; a hash tag `{…}` stands for the whole."""
    begin = joined_key.find(b"{")
    end = joined_key.find(b"}", begin + 1)
    if begin >= 0 and end > begin + 1:
        joined_key = joined_key[begin + 1:end]
    return crc16(joined_key) % 16384 * partitions >> 14
