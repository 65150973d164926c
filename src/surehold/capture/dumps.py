"""Core dumps: the kernel writes them when a process dies, without a call that could be reported.

Rules:
1. Nothing is done unless the limit of their size is above 0, and the kernel writes them as files that may be in the tree.
2. From then on, whatever has the name of a core dump is kept, and what gets such a name later was not there before.
3. In the end the tree is searched for new ones.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from surehold.capture.kept.keeper import Keeper

_PATTERN, _USES_PID = "core_pattern", "core_uses_pid"
_UNKNOWN_NAME = "core dumps may have been written, under names that cannot be told from others"
_SPECIFIER = re.compile(rb"%(.?)", re.DOTALL)


def name_core_dumps(pattern: bytes, *, uses_pid: bool) -> re.Pattern[bytes] | None:
    """Return which file names core dumps have; None where the kernel gives them to a program or a socket instead."""
    if not pattern or pattern[:1] in {b"|", b"@"}:
        return None
    name, has_pid = b"", b"%p" in pattern
    parts = _SPECIFIER.split(pattern.rpartition(b"/")[2])
    for literal, specifier in zip(parts[::2], [*parts[1::2], b""], strict=True):
        name += re.escape(literal) + (b"%" if specifier == b"%" else b".*" if specifier else b"")
    return re.compile(name + (rb"\.[0-9]+" if uses_pid and not has_pid else b""), re.DOTALL)


def may_be_below(root: bytes, pattern: bytes) -> bool:
    """Tell whether core dumps may be written below a root: into working directories, or to a place in there."""
    if pattern[:1] != b"/":
        return True
    known = pattern.partition(b"%")[0]
    inside = root.rstrip(b"/") + b"/"
    return known.startswith(inside) or (b"%" in pattern and inside.startswith(known))


class DumpWatch:
    """Keeps what core dumps replace, once they may be written."""

    def __init__(self, open_keeper: "Callable[[], Keeper]") -> None:
        self._open_keeper = open_keeper
        self._is_on = False

    def begin(self) -> None:
        """Keep what has the name of a core dump, before the first one can be written."""
        if self._is_on:
            return
        self._is_on = True
        pattern = _read_setting(_PATTERN)
        name = name_core_dumps(pattern, uses_pid=_read_setting(_USES_PID) not in {b"", b"0"})
        if name is None:
            return
        keeper = self._open_keeper()
        if not any(may_be_below(root, pattern) for root in keeper.roots):
            return
        if name.fullmatch(b"\n"):  # any name at all
            keeper.add_note(b"", _UNKNOWN_NAME)
            return
        for path in _find_named(keeper, name):
            keeper.touch_directory(path.rpartition(b"/")[0])
            keeper.keep_removed(path)
        keeper.dump_name = name

    def end(self) -> None:
        """Find the core dumps that were written."""
        keeper = self._open_keeper() if self._is_on else None
        if keeper is not None and keeper.dump_name is not None:
            for path in _find_named(keeper, keeper.dump_name):
                keeper.touch(path)


def _find_named(keeper: "Keeper", name: re.Pattern[bytes]) -> list[bytes]:
    found = [
        path for root in keeper.roots for path in keeper.list_below(root) if name.fullmatch(path.rpartition(b"/")[2])
    ]
    return [path for path in found if keeper.covers(path)]


def _read_setting(name: str) -> bytes:
    try:
        with open(f"/proc/sys/kernel/{name}", "rb") as file:
            return file.read().rstrip(b"\n")
    except OSError:
        return b""
