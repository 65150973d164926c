"""Old versions of files in rows: packed, as the difference to an earlier version where that is smaller.

1. What this process stored lately is not sent again; the database says when it was dropped since, and then it is sent.
2. A version is read with all its bases in one round trip; small ones that this process had in its hands lately in none.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from surehold.errors import NotFound, StateCorrupt
from surehold.stores.base import Blob
from surehold.stores.blobs.base import blobs_unnamed_error
from surehold.stores.packing import UnpackError, base_of, pack_full, pack_smallest, unpack_blob, with_base, without_base
from surehold.stores.store_errors import blob_damaged_error, blob_missing_error

if TYPE_CHECKING:
    from surehold.stores.blobs.large_versions import LargeVersions
    from surehold.stores.postgres.database import PostgresDatabase

MAX_DEPTH = 8
_LATELY_STORED = 512
_CHECKED_BYTES = 1 << 16  # names of larger bytes are only checked when they are read: hashing is most of the work
_RECENT_BYTES = 8 << 20
_PAGE_ROWS = 200
_SELECT_CHAIN = """
    WITH RECURSIVE chain AS (
        SELECT sha256, size, base, data, object, 0 AS level FROM blobs WHERE ws = %s AND sha256 = %s
        UNION ALL
        SELECT lower.sha256, lower.size, lower.base, lower.data, lower.object, level + 1 FROM chain
        JOIN blobs AS lower ON lower.ws = %s AND lower.sha256 = chain.base WHERE level < 512
    ) SELECT sha256, size, base, data, object FROM chain ORDER BY level DESC
"""
PUT_BLOBS = (
    "put_blobs(%s, %s::bytea[], %s::bigint[], %s::bytea[], %s::integer[], %s::bigint[], %s::bytea[], %s::text[], %s)"
)


@dataclass(slots=True, kw_only=True)
class BlobColumns:
    """Versions to store, as columns, and those that must be stored already."""

    kept: list[bytes] = field(default_factory=list[bytes])
    names: list[bytes] = field(default_factory=list[bytes])
    sizes: list[int] = field(default_factory=list[int])
    bases: list[bytes | None] = field(default_factory=list[bytes | None])
    depths: list[int] = field(default_factory=list[int])
    packed_sizes: list[int] = field(default_factory=list[int])
    packings: list[bytes | None] = field(default_factory=list[bytes | None])
    objects: list[str | None] = field(default_factory=list[str | None])

    def add(self, blob: Blob, packed: bytes, depth: int) -> None:
        base = base_of(packed)
        self.names.append(bytes.fromhex(blob.sha256))
        self.sizes.append(len(blob.data))
        self.bases.append(bytes.fromhex(base) if base else None)
        self.depths.append(depth)
        self.packed_sizes.append(len(packed))
        self.packings.append(without_base(packed, base))
        self.objects.append(None)

    def add_object(self, blob: Blob, name: str) -> None:
        """Add bytes that are in the blob store."""
        self.names.append(bytes.fromhex(blob.sha256))
        self.sizes.append(len(blob.data))
        self.bases.append(None)
        self.depths.append(MAX_DEPTH)
        self.packed_sizes.append(0)
        self.packings.append(None)
        self.objects.append(name)

    @property
    def arrays(self) -> tuple[object, ...]:
        names, bases = array_of(self.names), array_of(self.bases)
        sizes, depths, packed_sizes = array_of(self.sizes), array_of(self.depths), array_of(self.packed_sizes)
        return names, sizes, bases, depths, packed_sizes, self.packings, array_of(self.objects)


def array_of(values: Sequence[bytes | str | int | None]) -> str:
    """Return short values as PostgreSQL writes an array, which costs less than a list that the driver writes."""
    return "{" + ",".join(map(_element_of, values)) + "}"


def _element_of(value: bytes | str | int | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class BlobRows:
    """The versions of one workspace."""

    def __init__(self, database: "PostgresDatabase", ws: int, *, outside: "LargeVersions | None") -> None:
        self._database, self._ws, self._outside = database, ws, outside
        self._lately: OrderedDict[bytes, int] = OrderedDict()
        """The depths of the versions stored last."""
        self._recent: OrderedDict[str, bytes] = OrderedDict()
        self._recent_bytes = 0
        self._guard = threading.Lock()

    def pack(self, blobs: Sequence[Blob]) -> BlobColumns:
        """Pack what was not stored lately; nothing is stored by that alone."""
        columns, at_hand = BlobColumns(), {blob.sha256: blob.data for blob in blobs}
        depths = dict[str, int]()
        for blob in blobs:
            if blob.sha256 in depths:
                continue
            name, base = bytes.fromhex(blob.sha256), blob.base if blob.base != blob.sha256 else ""
            if name in self._lately:
                columns.kept.append(name)
                depths[blob.sha256] = self._lately[name]
                continue
            if len(blob.data) <= _CHECKED_BYTES and hashlib.sha256(blob.data).hexdigest() != blob.sha256:
                raise ValueError(f"These bytes are not {blob.sha256}.")
            self._keep_recent(blob.sha256, blob.data)
            if self._outside and self._outside.takes(blob.data):
                columns.add_object(blob, self._outside.put(blob.sha256, blob.data).name)
                depths[blob.sha256] = MAX_DEPTH  # nothing is packed as a difference to it
                continue
            below = depths.get(base, MAX_DEPTH)
            packed = (
                pack_smallest(blob.data, base=at_hand[base], base_sha256=base)
                if below < MAX_DEPTH
                else pack_full(blob.data)
            )
            depths[blob.sha256] = below + 1 if base_of(packed) else 0
            columns.add(blob, packed, depths[blob.sha256])
        return columns

    def remember(self, columns: BlobColumns) -> None:
        """Know that these are stored."""
        for name, depth in zip(columns.names, columns.depths, strict=True):
            self._lately[name] = depth
        for name in columns.kept:
            if name in self._lately:
                self._lately.move_to_end(name)
        while len(self._lately) > _LATELY_STORED:
            self._lately.popitem(last=False)

    def forget(self, names: Iterable[bytes] = ()) -> None:
        """Know that some, or any, may have been dropped."""
        for name in names:
            self._lately.pop(name, None)
        if not names:
            self._lately.clear()
        with self._guard:
            for name in [bytes(one).hex() for one in names] or list(self._recent):
                self._recent_bytes -= len(self._recent.pop(name, b""))

    def load_recent(self, sha256: str) -> bytes:
        """Return bytes that this process had lately, or load them."""
        with self._guard:
            found = self._recent.get(sha256)
        if found is None:
            found = self.load(sha256)
            self._keep_recent(sha256, found)
        return found

    def _keep_recent(self, sha256: str, data: bytes) -> None:
        with self._guard:
            if len(data) > _CHECKED_BYTES or sha256 in self._recent:
                return
            self._recent[sha256] = data
            self._recent_bytes += len(data)
            while self._recent_bytes > _RECENT_BYTES:
                self._recent_bytes -= len(self._recent.popitem(last=False)[1])

    def load(self, sha256: str) -> bytes:
        rows = self._database.rows(_SELECT_CHAIN, (self._ws, bytes.fromhex(sha256), self._ws))
        if not rows:
            raise blob_missing_error(sha256)
        if rows[0][2] is not None:
            raise blob_damaged_error(sha256, f"Its base {rows[0][2].hex()} is missing.")
        *_, size, base, stored, name = rows[-1]
        if stored is None:
            return self._load_object(sha256, name, size)
        data = b""
        try:
            for _, size, base, stored, _ in rows:
                data = unpack_blob(with_base(stored, base), size=size, base=data)
        except UnpackError as error:
            raise blob_damaged_error(sha256, str(error)) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise blob_damaged_error(sha256, "The bytes have another hash.")
        return data

    def _load_object(self, sha256: str, name: str, size: int) -> bytes:
        if self._outside is None:
            raise blobs_unnamed_error(sha256)
        return self._outside.get(name, size=size)

    def sweep(self, *, now: datetime, dry_run: bool) -> None:
        """Remove objects of the blob store that no row refers to."""
        if self._outside is None:
            return
        select = "SELECT object FROM blobs WHERE ws = %s AND object IS NOT NULL"
        self._outside.sweep(
            lambda: {name for (name,) in self._database.rows(select, (self._ws,))}, now=now, dry_run=dry_run
        )

    def has(self, sha256: str) -> bool:
        return self._database.call(
            "SELECT EXISTS (SELECT 1 FROM blobs WHERE ws = %s AND sha256 = %s)", (self._ws, bytes.fromhex(sha256))
        )[0]

    def check(self) -> tuple[int, tuple[str, ...]]:
        """Compare all stored bytes with their names; return how many there are, and which are damaged."""
        checked, last, broken = 0, 0, list[str]()
        select = "SELECT number, sha256 FROM blobs WHERE ws = %s AND number > %s ORDER BY number LIMIT %s"
        while page := self._database.rows(select, (self._ws, last, _PAGE_ROWS)):
            for number, name in page:
                last = number
                try:
                    self.load(name.hex())
                except NotFound:
                    continue  # pruned since the page was read
                except StateCorrupt:
                    broken.append(name.hex())
                checked += 1
        return checked, tuple(sorted(broken))
