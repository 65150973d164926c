"""Finds where else what is below the roots can be reached: directories that are mounted at several places.

Only what was mounted before the command began is looked at: a command that mounts something is named as such.
"""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

_ESCAPED = re.compile(rb"\\([0-7]{3})")


class _Mount(NamedTuple):
    device: bytes
    source: bytes
    """The directory of the file system that is seen there."""
    place: bytes


class OtherPlaces:
    """The directories at which parts of the roots can be reached too, each with its path below a root."""

    def __init__(self, roots: Sequence[bytes], table: bytes) -> None:
        mounts = _read_mounts(table)
        self._pairs = sorted({pair for root in roots for pair in _find_pairs(root, mounts)}, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def path_in_roots(self, path: bytes) -> bytes:
        """Return the path below a root that leads to the same; the path itself if there is none."""
        for other, real in self._pairs:
            if _is_below(path, other):
                return _join(real, path[len(other) :])
        return path


def find_other_places(roots: Sequence[bytes]) -> OtherPlaces:
    with open("/proc/self/mountinfo", "rb") as table:
        return OtherPlaces(roots, table.read())


def _read_mounts(table: bytes) -> list[_Mount]:
    rows = [row.split(b" ") for row in table.splitlines()]
    return [_Mount(row[2], _unescape(row[3]), _unescape(row[4])) for row in rows]


def _unescape(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), text)


def _find_pairs(root: bytes, mounts: Sequence[_Mount]) -> list[tuple[bytes, bytes]]:
    """Pair the other places of a root, and of what is mounted below it, with their paths in the root."""
    above = [mount for mount in mounts if _is_below(root, mount.place)]
    if not above:
        return []
    home = max(above, key=lambda mount: len(mount.place))
    source = _join(home.source, root[len(home.place.rstrip(b"/")) :])
    inner = [mount for mount in mounts if _is_below(mount.place, root) and mount.place != root]
    parts = [(home.device, source, root)]
    parts += [tuple(mount) for mount in inner if not (mount.device == home.device and _is_below(mount.source, source))]
    pairs = list[tuple[bytes, bytes]]()
    for device, part, place in parts:
        for mount in mounts:
            if mount.device != device:
                continue
            if _is_below(part, mount.source):
                pairs.append((_join(mount.place, part[len(mount.source.rstrip(b"/")) :]), place))
            elif _is_below(mount.source, part):
                pairs.append((mount.place, _join(place, mount.source[len(part.rstrip(b"/")) :])))
    return [(other, real) for other, real in pairs if other != real and _is_same_directory(other, real)]


def _is_below(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")


def _join(directory: bytes, rest: bytes) -> bytes:
    return b"%b/%b" % (directory.rstrip(b"/"), rest.lstrip(b"/")) if rest.strip(b"/") else directory


def _is_same_directory(one: bytes, other: bytes) -> bool:
    """Tell whether both lead to one directory: another mount may hide one of them."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except OSError:
        return False
