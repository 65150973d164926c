"""Whether what is read now is what another program saw a moment ago."""

from dataclasses import dataclass, field, replace

from surehold.disk.base import Reader, Target
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
        if not self.disk.coherent:
            return False
        depths = range(len(self.directory.parts), len(target.parts))
        if not all(self._is_older_directory(target, depth) for depth in depths):
            return False
        above = replace(target, parts=target.parts[:-1], key="")
        return self._has_rested(above, target.parts[-1])

    def _is_older_directory(self, target: Target, depth: int) -> bool:
        """Tell whether no name in a directory has changed: a link, or another directory, could have been there."""
        parts = target.parts[:depth]
        older = self.older.get(parts)
        if older is None:
            older = self.older[parts] = self._has_rested(replace(target, parts=parts, key=""), ".")
        return older

    def _has_rested(self, directory: Target, name: str) -> bool:
        look = self.disk.looks(directory, (name,))[0]
        return look is not None and max(look.ctime_ns, look.mtime_ns) < self.began - _MARGIN_NS
