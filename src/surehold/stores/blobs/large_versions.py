"""What a store keeps outside of its own rows: the large versions, each put once, before it is referred to; and where."""

import importlib.util
import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from surehold.errors import BlobsUnavailable, SureholdError, missing_extra
from surehold.stores.blobs.base import GRACE, LARGE_BYTES, BlobStore, bad_address_error

_REFERRED_WITHIN_SECONDS = GRACE.total_seconds() / 2
_PUT_LATELY = 64
_PER_REQUEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PutObject:
    """An object that was stored a moment ago, and that nothing refers to yet."""

    sha256: str
    name: str
    at: float
    """When, in seconds since 1970."""


class LargeVersions:
    """The blob store of one history, as its tables use it."""

    def __init__(self, blobs: BlobStore) -> None:
        self.blobs = blobs
        self._guard = threading.Lock()
        self._lately = dict[str, PutObject]()
        self._under_way = dict[str, threading.Lock]()

    def takes(self, data: bytes) -> bool:
        """Tell whether these bytes go to the blob store."""
        return len(data) > LARGE_BYTES

    def put(self, sha256: str, data: bytes) -> PutObject:
        """Store bytes, at most once however many threads want to; before the transaction that refers to them."""
        with self._guard:
            turn = self._under_way.setdefault(sha256, threading.Lock())
        with turn:
            known = self._lately.get(sha256)
            if known is None or not _may_be_referred_to(known):
                known = PutObject(at=time.time(), sha256=sha256, name=self.blobs.put(sha256, data))
            with self._guard:
                self._lately[sha256] = known
                self._under_way.pop(sha256, None)
                while len(self._lately) > _PUT_LATELY:
                    self._lately.pop(next(iter(self._lately)))
        return known

    def name_for(self, put: PutObject, data: bytes) -> str:
        """Return the name to refer to; in the rare case that too much time passed since the put, the bytes are put again."""
        return (put if _may_be_referred_to(put) else self.put(put.sha256, data)).name

    def get(self, name: str, *, size: int) -> bytes:
        return self.blobs.get(name, size=size)

    def sweep(self, referenced: Callable[[], Collection[str]], *, now: datetime, dry_run: bool = False) -> int:
        """Remove objects that are older than `GRACE` and have no reference when that is asked after the listing."""
        old = [one.name for one in self.blobs.list_objects() if one.modified < now - GRACE]
        names = referenced() if old else ()
        gone = [name for name in old if name not in names]
        for at in range(0, 0 if dry_run else len(gone), _PER_REQUEST):
            self.blobs.delete(gone[at : at + _PER_REQUEST])
        return len(gone)


def _may_be_referred_to(put: PutObject) -> bool:
    return 0 <= time.time() - put.at < _REFERRED_WITHIN_SECONDS


def open_blobs(address: str, *, folder: str, fsync: bool = True, cache: Path | None = None) -> LargeVersions:
    """Open a directory or a bucket for the large versions of one history, whose objects are below `folder`.

    A service that was not probed lately is probed now. If it cannot be reached, that is said when it is needed; if it
    does not keep its promises, it is refused.
    """
    scheme, found, _ = address.partition("://")
    if "\0" in address or (found and scheme != "s3"):
        raise bad_address_error(address, "it is neither a directory nor a bucket")
    if not found:
        from surehold.stores.blobs.directory import DirectoryBlobs

        directory = Path(os.path.abspath(address))  # noqa: PTH100 - a link stays one
        return LargeVersions(DirectoryBlobs(directory, folder=folder, fsync=fsync))
    if importlib.util.find_spec("obstore") is None:
        raise missing_extra("Object storage", "s3")
    from surehold.stores.blobs.s3 import S3Blobs

    blobs = S3Blobs(address, folder=folder, cache=cache or _default_cache())
    try:
        blobs.probe_once()
    except BlobsUnavailable as error:
        if error.reason == "blobs_unsafe":
            raise
    return LargeVersions(blobs)


def probe_blobs(address: str) -> str:
    """Say what is wrong with a place for large versions; nothing if it can be used."""
    try:
        open_blobs(address, folder="probe").blobs.probe()
    except SureholdError as error:
        return f"{error.message} {error.details.get('cause', '')}".strip()
    return ""


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "surehold" / "blobs"
