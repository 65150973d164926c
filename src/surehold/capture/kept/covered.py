"""Which paths are kept."""

from collections.abc import Sequence

_UNKEPT_PLACES = (b"/proc/", b"/sys/", b"/dev/")
"""Files of these are the kernel's: nothing that is written to them stays there."""
_SHARED_MEMORY = b"/dev/shm/"


class CoveredPaths:
    """Which paths are kept: those below the roots, but for some directories such as the state of Surehold itself."""

    def __init__(self, roots: Sequence[bytes], excluded: Sequence[bytes] = ()) -> None:
        self.roots = tuple(roots)
        self.prefixes = tuple(root if root == b"/" else root + b"/" for root in roots)
        self._excluded = tuple(path + b"/" for path in excluded)

    def covers(self, path: bytes) -> bool:
        """Tell whether a path is below a root, or a root itself."""
        if not (path.startswith(self.prefixes) or path in self.roots) or path.startswith(self._excluded):
            return False
        return not path.startswith(_UNKEPT_PLACES) or path.startswith(_SHARED_MEMORY)
