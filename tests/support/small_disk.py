# SPDX-License-Identifier: Apache-2.0
"""Small file systems of memory that fill up, and files of the system's, seen by this process and its children alone.

Mounting needs a mount namespace of one's own: as root, or in a user namespace
where the kernel lets users have them. What is mounted goes away with the process.
"""

import contextlib
import ctypes
import os

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x1000, 0x4000, 1 << 18, 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def enter_namespace():
    """Gives this process mounts of its own: None, or why it cannot have them."""
    uid, gid = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNS if uid == 0 else _CLONE_NEWNS | _CLONE_NEWUSER
    if _LIBC.unshare(flags) != 0:
        return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    if _LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return f"mounts cannot be made private: {os.strerror(ctypes.get_errno())}"
    return None


@contextlib.contextmanager
def instead(path, file):
    """Has a file seen at another's path."""
    if _LIBC.mount(os.fsencode(file), os.fsencode(path), None, _MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        _LIBC.umount2(os.fsencode(path), _MNT_DETACH)


class SmallDisk:
    """A file system of so many bytes at a path."""

    def __init__(self, path, size):
        self.path = path
        os.makedirs(path, exist_ok=True)
        if _LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, f"size={size},mode=0777".encode()) != 0:
            raise OSError(ctypes.get_errno(), f"cannot mount: {os.strerror(ctypes.get_errno())}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _LIBC.umount2(os.fsencode(self.path), _MNT_DETACH)

    @property
    def _filler(self):
        return os.path.join(self.path, "filler")

    def fill(self):
        """Takes all that is free."""
        with open(self._filler, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def drain(self):
        """Gives back what fill() took."""
        os.unlink(self._filler)
