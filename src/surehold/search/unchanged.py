"""Whether what is read now is what another program saw a moment ago."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from surehold.disk.base import Look, Reader, Target
from surehold.errors import SureholdError
from surehold.search.engine import Parts

_MARGIN_NS = 50_000_000
"""How much older than the search a file must be to count as unchanged: clocks of file systems are coarse."""


@dataclass(kw_only=True)
class Unchanged:
    """Tells of files below a directory whether they have rested since before a moment, and the way to them too."""

    disk: Reader
    directory: Target
    began: int
    """The moment, in nanoseconds."""
    older: dict[Parts, bool] = field(default_factory=dict[Parts, bool])
    """Which directories have not changed since."""

    def __call__(self, target: Target) -> bool:
        """Tell whether a file that was just read has not changed, nor the way to it."""
        return self.each(replace(target, parts=target.parts[:-1], key=""), target.parts[-1:])[0]

    def each(self, directory: Target, names: Sequence[str]) -> list[bool]:
        """Tell the same of several files of one directory, all of them just read."""
        depths = range(len(self.directory.parts), len(directory.parts) + 1)
        if not self.disk.coherent or not all(self._is_older_directory(directory, depth) for depth in depths):
            return [False] * len(names)
        return self._have_rested(directory, names)

    def _is_older_directory(self, below: Target, depth: int) -> bool:
        """Tell whether no name in a directory has changed: a link, or another directory, could have been there."""
        parts = below.parts[:depth]
        older = self.older.get(parts)
        if older is None:
            older = self.older[parts] = self._have_rested(replace(below, parts=parts, key=""), (".",))[0]
        return older

    def _have_rested(self, directory: Target, names: Sequence[str]) -> list[bool]:
        try:
            looks = self.disk.looks(directory, names)
        except SureholdError:  # the whole directory is gone
            return [False] * len(names)
        return [look is not None and self._is_old(look) for look in looks]

    def _is_old(self, look: Look) -> bool:
        return max(look.ctime_ns, look.mtime_ns) < self.began - _MARGIN_NS
