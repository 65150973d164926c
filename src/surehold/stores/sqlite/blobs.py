"""Old versions of files: packed, in rows; large ones as files beside the database, or in a blob store."""

import hashlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from surehold.errors import BlobsUnavailable, NotFound, StateCorrupt
from surehold.stores.base import Blob
from surehold.stores.blobs.base import LARGE_BYTES, blobs_unnamed_error
from surehold.stores.blobs.large_versions import LargeVersions, PutObject
from surehold.stores.ledger_entries import microseconds
from surehold.stores.packing import UnpackError, base_of, pack_full, pack_smallest, unpack_blob, with_base, without_base
from surehold.stores.sqlite import state_errors
from surehold.stores.sqlite.database import select_keys, sync_folder
from surehold.stores.store_errors import blob_damaged_error, blob_missing_error

MAX_DEPTH = 8

_ROW_LIMIT_BYTES = LARGE_BYTES + 1024  # packing makes noise longer by a few bytes
_CHECKED_BYTES = 1 << 16  # names of larger bytes are only checked when they are read: hashing is most of the work
_DELTA_LIMIT_BYTES = 1024 * 1024  # a delta cannot be a file (2), and saves at least as much as it takes


_LATELY_STORED = 64
_KEPT_BYTES = 64 * 1024 * 1024
_PAGE_ROWS = 200
_FEW_BLOBS = 8
_SELECT_STATES = "SELECT sha256, depth, data IS NULL AND object IS NULL, packed FROM blobs WHERE sha256 IN"
_SELECT_PAGE = "SELECT rowid, sha256, size, base, data FROM blobs WHERE rowid > ? ORDER BY rowid LIMIT ?"
_INSERT = (
    "INSERT OR REPLACE INTO blobs (sha256, size, base, depth, packed, stored, data, object)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)

BlobRow = tuple[int, bytes, int, bytes | None, bytes | None]
"""Its place in the table, then sha256, size, base and packed bytes without it; no bytes when they are elsewhere."""

PreparedBlob = tuple[Blob, bytes | PutObject | None]
"""A blob, and its packing or its object if it was not stored yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedAlone:
    """Stored bytes that were packed again, without a base; on the disk already if they need a file."""

    sha256: str
    size: int
    packed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlobState:
    depth: int
    whole: bool
    """Whether the file that the row names, if it names one, has the right size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChainRow:
    sha256: str
    size: int
    data: bytes | None
    """Packed; None when the bytes are in a file or in an object."""
    object: str | None


class Blobs:
    """The bytes of one state directory."""

    def __init__(self, folder: Path, *, fsync: bool, outside: LargeVersions | None = None) -> None:
        self.folder, self.outside = folder, outside
        self._fsync = fsync
        self._lately = dict[str, int]()
        """The depths of the versions stored last; whether they are still there is asked when they are needed."""

    def pack_lately(self, blobs: Sequence[Blob]) -> list[PreparedBlob] | None:
        """Pack new versions of what was stored a moment ago, without asking the database; None if it must be asked."""
        at_hand = {blob.sha256: blob.data for blob in blobs}
        prepared: list[PreparedBlob] = []
        for blob in blobs:
            if blob.sha256 in self._lately:
                prepared.append((blob, None))
            elif self.goes_outside(blob):
                return None
            elif blob.base in at_hand and self._lately.get(blob.base, MAX_DEPTH) < MAX_DEPTH:
                packed = _pack_blob(blob, at_hand[blob.base])
                if _needs_file(packed):
                    return None
                prepared.append((blob, packed))
            else:
                return None
        return prepared

    def pack_new(
        self, connection: sqlite3.Connection, blobs: Sequence[Blob], *, is_optional: bool = False
    ) -> list[PreparedBlob]:
        """Pack what is not stored yet, and put large packings on the disk; nothing is stored by that alone.

        What is optional is left out where it cannot be put.
        """
        at_hand = {blob.sha256: blob.data for blob in blobs}
        prepared: list[PreparedBlob] = []
        states = self._blob_states(connection, list(at_hand))
        for blob in blobs:
            stored = states.get(blob.sha256)
            if stored is not None and stored.whole:
                prepared.append((blob, None))
                continue
            if len(blob.data) <= _CHECKED_BYTES and hashlib.sha256(blob.data).hexdigest() != blob.sha256:
                raise ValueError(f"These bytes are not {blob.sha256}.")
            if self.outside is not None and self.goes_outside(blob):
                try:
                    prepared.append((blob, self.outside.put(blob.sha256, blob.data)))
                except BlobsUnavailable:
                    if not is_optional:
                        raise
                continue
            # A row whose file was lost may be the base of its own base: packed alone, it ends the circle.
            base = self._find_base(connection, blob, at_hand) if stored is None else None
            packed = _pack_blob(blob, base)
            if _needs_file(packed):
                self._write_file(blob.sha256, packed)
            prepared.append((blob, packed))
        return prepared

    @staticmethod
    def make_younger(connection: sqlite3.Connection, blobs: Sequence[Blob], *, stored: str) -> None:
        """Let bytes that may have been there before count as stored now, so that they are not removed as unused."""
        when = microseconds(stored)
        rows = [(when, bytes.fromhex(one.sha256)) for one in blobs]
        connection.executemany("UPDATE blobs SET stored = ? WHERE sha256 = ?", rows)

    def insert_blobs(
        self, connection: sqlite3.Connection, prepared: Sequence[PreparedBlob], *, stored: str
    ) -> list[Blob]:
        """Store what was packed; return what was stored before."""
        when, rows, known = microseconds(stored), list[tuple[object, ...]](), list[Blob]()
        states = self._blob_states(connection, list(dict.fromkeys(blob.sha256 for blob, _ in prepared)))
        for blob, early in prepared:
            there = states[blob.sha256]
            if there is not None and there.whole:
                known.append(blob)
                continue
            if self.outside is not None and self.goes_outside(blob):
                put = early if isinstance(early, PutObject) else self.outside.put(blob.sha256, blob.data)
                name = self.outside.name_for(put, blob.data)
                rows.append((bytes.fromhex(blob.sha256), len(blob.data), None, MAX_DEPTH, 0, when, None, name))
                states[blob.sha256] = _BlobState(depth=MAX_DEPTH, whole=True)
                continue
            packed, depth = None if isinstance(early, PutObject) else early, 0
            if packed is not None and base_of(packed):
                name = base_of(packed)
                base = states[name] if name in states else self._blob_state(connection, name)
                depth = MAX_DEPTH + 1 if base is None else base.depth + 1
            if packed is None or depth > MAX_DEPTH or there is not None:
                packed, depth = pack_full(blob.data), 0
            rows.append(self._make_row(blob.sha256, len(blob.data), packed, depth=depth, stored=when))
            states[blob.sha256] = _BlobState(depth=depth, whole=True)
        connection.executemany(_INSERT, rows)
        for name, state in states.items():
            if state is not None:
                self._lately[name] = state.depth
        while len(self._lately) > _LATELY_STORED:
            self._lately.pop(next(iter(self._lately)), None)
        return known

    def _make_row(self, sha256: str, size: int, packed: bytes, *, depth: int, stored: int) -> tuple[object, ...]:
        """Return the row of a packing, and write its file if it needs one that is not there."""
        in_file, base = _needs_file(packed), base_of(packed)
        if in_file and not self._file_is(sha256, len(packed)):
            self._write_file(sha256, packed)
        row = (bytes.fromhex(sha256), size, bytes.fromhex(base) if base else None, depth, len(packed), stored)
        return (*row, None if in_file else without_base(packed, base), None)

    def pack_alone(self, connection: sqlite3.Connection, sha256: str) -> PackedAlone:
        """Pack stored bytes without their base; nothing is changed by that alone."""
        data = self.load_blob(connection, sha256)
        packed = pack_full(data)
        if _needs_file(packed):
            self._write_file(sha256, packed)
        return PackedAlone(sha256=sha256, size=len(data), packed=packed)

    def put_alone(self, connection: sqlite3.Connection, alone: PackedAlone, *, stored: int) -> None:
        connection.execute(_INSERT, self._make_row(alone.sha256, alone.size, alone.packed, depth=0, stored=stored))

    def has_blob(self, connection: sqlite3.Connection, sha256: str) -> bool:
        """Tell whether these bytes are stored; a row whose file is gone or short does not count."""
        stored = self._blob_state(connection, sha256)
        return stored is not None and stored.whole

    def load_blob(self, connection: sqlite3.Connection, sha256: str) -> bytes:
        rows = self._row_chain(connection, sha256)
        data = b""
        try:
            for row in reversed(rows):
                data = self._unpack_row(row, data)
        except UnpackError as error:
            raise blob_damaged_error(sha256, str(error)) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise blob_damaged_error(sha256, "The bytes have another hash.")
        return data

    def goes_outside(self, blob: Blob) -> bool:
        return self.outside is not None and self.outside.takes(blob.data)

    def file_path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def _unpack_row(self, row: "_ChainRow", base: bytes) -> bytes:
        if row.object is None:
            packed = self._read_file(row.sha256) if row.data is None else row.data
            return unpack_blob(packed, size=row.size, base=base)
        if self.outside is None:
            raise blobs_unnamed_error(row.sha256)
        return self.outside.get(row.object, size=row.size)

    def _row_chain(self, connection: sqlite3.Connection, sha256: str) -> list["_ChainRow"]:
        """Return the row and all bases below it; the last one unpacks alone."""
        rows: list[_ChainRow] = []
        wanted: str | None = sha256
        while wanted is not None:
            key = (bytes.fromhex(wanted),)
            found = connection.execute("SELECT size, base, data, object FROM blobs WHERE sha256 = ?", key).fetchone()
            if found is None and not rows:
                raise blob_missing_error(sha256)
            if found is None or len(rows) > MAX_DEPTH:
                raise blob_damaged_error(sha256, f"Its base {wanted} is missing.")
            size, base, data, name = found
            rows.append(_ChainRow(sha256=wanted, size=size, data=data and with_base(data, base), object=name))
            wanted = base and base.hex()
        return rows

    def _find_base(self, connection: sqlite3.Connection, blob: Blob, at_hand: dict[str, bytes]) -> bytes | None:
        if blob.base in {"", blob.sha256}:
            return None
        stored = self._blob_state(connection, blob.base)
        if stored is not None and stored.depth >= MAX_DEPTH:
            return None
        if stored is None or blob.base in at_hand:
            at_once = at_hand.get(blob.base)
            return None if self.outside and at_once and self.outside.takes(at_once) else at_once
        with suppress(StateCorrupt):  # an unreadable base must not refuse new bytes
            return self.load_blob(connection, blob.base)
        return None

    def _blob_state(self, connection: sqlite3.Connection, sha256: str) -> _BlobState | None:
        key = (bytes.fromhex(sha256),)
        query = "SELECT depth, data IS NULL AND object IS NULL, packed FROM blobs WHERE sha256 = ?"
        row = connection.execute(query, key).fetchone()
        if row is None:
            return None
        depth, in_file, packed = row
        return _BlobState(depth=depth, whole=not in_file or self._file_is(sha256, packed))

    def _blob_states(self, connection: sqlite3.Connection, names: Sequence[str]) -> dict[str, _BlobState | None]:
        """Return what is known of many blobs; None for those that are not stored."""
        if len(names) <= _FEW_BLOBS:
            return {name: self._blob_state(connection, name) for name in names}
        states: dict[str, _BlobState | None] = dict.fromkeys(names)
        for key, depth, in_file, packed in select_keys(
            connection, _SELECT_STATES, [bytes.fromhex(one) for one in names]
        ):
            name = key.hex()
            states[name] = _BlobState(depth=depth, whole=not in_file or self._file_is(name, packed))
        return states

    def _file_is(self, sha256: str, size: int) -> bool:
        try:
            return self.file_path(sha256).stat().st_size == size
        except OSError:
            return False

    def _read_file(self, sha256: str) -> bytes:
        path = self.file_path(sha256)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise blob_damaged_error(sha256, f"`{path}` is missing.") from None
        except OSError as error:
            raise state_errors.translate_os_error(error, path) from error

    def _write_file(self, sha256: str, data: bytes) -> None:
        path = self.file_path(sha256)
        temporary = path.with_name(f"{sha256}.{os.urandom(8).hex()}.tmp")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._file_is(sha256, len(data)) or path.read_bytes() != data:
                try:
                    self._write_whole(temporary, data)
                    temporary.replace(path)
                except BaseException:
                    temporary.unlink(missing_ok=True)
                    raise
            # Also when the file was there: the one who wrote it may not have come this far yet.
            self._sync_folders(path.parent)
        except OSError as error:
            raise state_errors.translate_os_error(error, path) from error

    def _write_whole(self, path: Path, data: bytes) -> None:
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(place, "wb") as file:
            file.write(data)
            file.flush()
            if self._fsync:
                os.fsync(place)

    def _sync_folders(self, folder: Path) -> None:
        for directory in (folder, self.folder, self.folder.parent) if self._fsync else ():
            sync_folder(directory)


def _pack_blob(blob: Blob, base: bytes | None) -> bytes:
    if base is None:
        return pack_full(blob.data)
    packed = pack_smallest(blob.data, base=base, base_sha256=blob.base, shared=blob.shared)
    return packed if len(packed) <= _DELTA_LIMIT_BYTES or not base_of(packed) else pack_full(blob.data)


def _needs_file(packed: bytes) -> bool:
    return len(packed) > _ROW_LIMIT_BYTES and not base_of(packed)


def check_blobs(
    transaction: Callable[[], AbstractContextManager[sqlite3.Connection]], read_blob: Callable[[str], bytes]
) -> tuple[int, tuple[str, ...]]:
    """Compare all stored bytes with their names; return how many there are, and which are damaged."""
    checked, last, broken, recent = 0, 0, list[str](), _RecentVersions()
    while True:
        with transaction() as connection:
            page: list[BlobRow] = connection.execute(_SELECT_PAGE, (last, _PAGE_ROWS)).fetchall()
        if not page:
            return checked, tuple(sorted(broken))
        for row in page:
            last, sha256 = row[0], row[1].hex()
            try:
                if not recent.is_whole(row):
                    read_blob(sha256)
            except NotFound:
                continue  # pruned since the page was read
            except StateCorrupt:
                broken.append(sha256)
            checked += 1


class _RecentVersions:
    """The versions that were checked last, up to a limit: what follows from one of them need not unpack it again.

    Versions are checked in the order in which they were stored, and most are the difference to one stored shortly before.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0

    def is_whole(self, row: BlobRow) -> bool:
        """Tell whether a row holds what its name says. False also means that it has to be looked at in another way."""
        _, sha256, size, base, stored = row
        if stored is None or (base is not None and base not in self._kept):
            return False
        try:
            data = unpack_blob(with_base(stored, base), size=size, base=self._kept.get(base or b"", b""))
        except UnpackError:
            return False
        if hashlib.sha256(data).digest() != sha256:
            return False
        self._keep(sha256, data)
        return True

    def _keep(self, sha256: bytes, data: bytes) -> None:
        self._kept[sha256] = data
        self._size += len(data)
        while self._size > _KEPT_BYTES:
            self._size -= len(self._kept.popitem(last=False)[1])
