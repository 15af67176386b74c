# SPDX-License-Identifier: Apache-2.0
"""The path that a server served, out of the target that a client wrote: the field `path`."""

import re

_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*|(?=/)|\Z)")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")


def _without_dots(path):
    """RFC 3986, 5.2.4, on the segments of a path that begins with a slash."""
    segments = path.split(b"/")[1:]
    kept = []
    for segment in segments:
        if segment == b"..":
            kept = kept[:-1]
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in (b".", b".."):
        kept.append(b"")
    return b"/" + b"/".join(kept)


def served(target):
    """The path of a target, or None."""
    path = re.split(rb"[?#]", target, maxsplit=1)[0]
    absolute = _ABSOLUTE.match(path)
    if absolute:
        path = path[absolute.end():]
    path = path or (b"/" if target else b"")
    if path.startswith(b"/"):
        path = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), path)
        path = _without_dots(re.sub(rb"/+", b"/", path))
    return path or None
