"""The contract of blob stores, the names of their objects, and what is said when one cannot be used.

1. An object is immutable. Its name ends with the sha256 of its bytes, which are checked whenever they are read.
2. `put` comes before the transaction that refers to the object, and gives it a name that no object had before: the hour,
   and if that is taken a random word. So a name that is older than `GRACE`, and to which nothing refers, is never referred
   to again, and removing it cannot race a begin.
3. Whoever refers to an object does so within half of `GRACE` after its `put`, or puts the bytes again.
4. An object is one zstd frame, which any tool can unpack.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from surehold.errors import BLOBS, VERIFY, BlobsUnavailable, InvalidArgument, StateCorrupt, spell

LARGE_BYTES = 64 * 1024
"""Versions above this go to a blob store, if there is one."""
GRACE = timedelta(hours=24)
"""How long an object without a reference is kept: its writer may be about to refer to it."""

_LEVEL_LIMIT_BYTES = 1024 * 1024  # above, speed counts for more than size


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One object as it is listed."""

    name: str
    modified: datetime
    """By the clock of the service."""


class BlobStore(Protocol):
    """Large versions of one workspace. Safe to use from several threads and several processes at once."""

    address: str
    """As a person names it: a directory, or `s3://bucket/prefix`."""

    def put(self, sha256: str, data: bytes) -> str:
        """Store bytes durably, and return the name of their object."""
        ...

    def get(self, name: str, *, size: int) -> bytes:
        """Return the bytes of an object; `StateCorrupt` if they are damaged or missing, else `BlobsUnavailable`."""
        ...

    def has(self, name: str) -> bool:
        """Tell whether there is such an object."""
        ...

    def list_objects(self) -> Iterator[StoredObject]:
        """List every object of this workspace."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects; those that are gone already count as removed."""
        ...

    def probe(self) -> None:
        """Try what the promises rest on; `BlobsUnavailable` with reason `blobs_unsafe` if the service does not keep them."""
        ...


def choose_name(sha256: str, *, is_taken: bool = False) -> str:
    """Return a name for new bytes; when the usual one is taken, one that no other process chooses."""
    hour = f"{datetime.now(UTC):%Y-%m-%dT%H}"
    return f"{hour}-{os.urandom(4).hex()}/{sha256}" if is_taken else f"{hour}/{sha256}"


def sha256_of_name(name: str) -> str:
    return name.rpartition("/")[2]


def pack_object(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=1 if len(data) > _LEVEL_LIMIT_BYTES else 3).compress(data)


def unpack_object(packed: bytes, sha256: str, *, size: int, address: str) -> bytes:
    """Return the bytes of an object, if they are what its name says."""
    import zstandard

    try:
        # Only the frame's own claim bounds the allocation, so it is compared first.
        if zstandard.get_frame_parameters(packed).content_size != size:
            raise _damaged_error(sha256, address, "The object claims another size than was recorded.")
        data = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise _damaged_error(sha256, address, f"The object cannot be unpacked ({error}).") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _damaged_error(sha256, address, "The bytes have another hash.")
    return data


def _damaged_error(sha256: str, address: str, cause: str) -> StateCorrupt:
    return StateCorrupt(
        f"The stored bytes {sha256} in `{address}` are damaged.",
        action=spell("Run {} to see what else is affected, and take this version from a backup.", VERIFY),
        sha256=sha256,
        cause=cause,
    )


def object_missing_error(sha256: str, address: str) -> StateCorrupt:
    return StateCorrupt(
        f"The stored bytes {sha256} are not in `{address}`.",
        action=spell("Name the directory or bucket that has them with {}, or put them back from a backup.", BLOBS),
        sha256=sha256,
        cause="The object is missing.",
    )


def blobs_unnamed_error(sha256: str) -> BlobsUnavailable:
    return BlobsUnavailable(
        f"The bytes {sha256} are in a blob store, and none is named.",
        reason="blobs_unnamed",
        action=spell(
            "Name the directory or bucket of large versions with {}, or as `blobs` in your config.toml.", BLOBS
        ),
        sha256=sha256,
    )


def blobs_away_error(address: str, cause: str) -> BlobsUnavailable:
    return BlobsUnavailable(f"The blob store `{address}` cannot be used: {cause}.", address=address)


def blobs_unsafe_error(address: str, cause: str) -> BlobsUnavailable:
    return BlobsUnavailable(
        f"The blob store `{address}` does not keep what it promises: {cause}.",
        reason="blobs_unsafe",
        action="Use a service with conditional writes (If-None-Match), such as Amazon S3, Ceph or SeaweedFS.",
        address=address,
    )


def bad_address_error(address: str, cause: str) -> InvalidArgument:
    return InvalidArgument(
        f"`{address}` is not a place for large versions: {cause}.",
        reason="bad_blobs",
        action="Name a directory, or s3://bucket/prefix.",
    )
