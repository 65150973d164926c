"""A bounded cache of objects on the local disk: what was put or read last need not be fetched."""

import os
import threading
from contextlib import suppress
from pathlib import Path

_LIMIT_BYTES = 256 * 1024 * 1024
_LARGEST_PART = 4  # an object above a quarter of the cache would push out everything else
_KEPT_PART = 0.9  # how full it is after it was cleared out
_TEMPORARY_ENDING = ".tmp"


class ObjectCache:
    """Packed objects by the sha256 of their bytes. Others may share it; its loss costs time, nothing else."""

    def __init__(self, folder: Path, *, limit: int = _LIMIT_BYTES) -> None:
        self._folder, self._limit = folder, limit
        self._guard = threading.Lock()
        self._unlooked = limit
        """How many bytes were added since the folder was last looked through."""

    def find(self, sha256: str) -> bytes | None:
        path = self._path(sha256)
        with suppress(OSError):
            packed = path.read_bytes()
            os.utime(path)
            return packed
        return None

    def add(self, sha256: str, packed: bytes) -> None:
        path = self._path(sha256)
        if len(packed) * _LARGEST_PART > self._limit or path.exists():
            return
        temporary = path.with_name(f"{sha256}.{os.urandom(8).hex()}{_TEMPORARY_ENDING}")
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                place = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(place, "wb") as file:
                    file.write(packed)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            self._keep_bound(len(packed))

    def drop(self, sha256: str) -> None:
        with suppress(OSError):
            self._path(sha256).unlink()

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _keep_bound(self, added: int) -> None:
        """Remove what was used longest ago, when there is too much."""
        with self._guard:
            self._unlooked += added
            if self._unlooked * (1 - _KEPT_PART) * 2 < self._limit * (1 - _KEPT_PART) ** 2:
                return
            self._unlooked = 0
            used = list[tuple[float, int, Path]]()
            for path in self._folder.glob("??/*"):
                with suppress(OSError):
                    facts = path.stat()
                    used.append((facts.st_mtime, facts.st_size, path))
            total = sum(size for _, size, _ in used)
            if total <= self._limit:
                return
            for _, size, path in sorted(used):
                with suppress(OSError):
                    path.unlink()
                total -= size
                if total <= self._limit * _KEPT_PART:
                    return
