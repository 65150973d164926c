"""Stores bytes under their sha256: small ones in rows, large ones in files that a row names.

1. A row is written only after its file is complete on the disk, and removed before it. A file without a row is ignored.
2. A file unpacks alone, so it may be replaced by another packing of the same bytes at any time. Deltas are rows.
3. Packing happens before the write transaction; inside it, what was assumed is checked again (`prune` may have run).
4. Bytes are checked against their name whenever they are read.
"""

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from surehold.errors import StateCorrupt
from surehold.stores.base import Blob
from surehold.stores.sqlite import deltas, state_errors
from surehold.stores.sqlite.database import sync_folder
from surehold.stores.sqlite.state_errors import blob_damaged_error, blob_missing_error

ROW_LIMIT_BYTES = 64 * 1024
_CHECKED_BYTES = 1 << 20  # names of larger bytes are only checked when they are read: hashing is most of the work
_DELTA_LIMIT_BYTES = 1024 * 1024  # a delta cannot be a file (2), and saves at least as much as it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedBlob:
    """A blob, and its packing if it was not stored yet."""

    blob: Blob
    packed: deltas.PackedBlob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlobState:
    depth: int
    whole: bool
    """Whether the file that the row names, if it names one, has the right size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlobRow:
    sha256: str
    size: int
    base: str | None
    data: bytes | None


class Blobs:
    """The bytes of one state directory."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self.folder = folder
        self._fsync = fsync

    def pack_new(self, connection: sqlite3.Connection, blobs: Sequence[Blob]) -> list[PreparedBlob]:
        """Pack what is not stored yet, and put large packings on the disk; nothing is stored by that alone."""
        at_hand = {blob.sha256: blob.data for blob in blobs}
        prepared: list[PreparedBlob] = []
        for blob in blobs:
            stored = self._blob_state(connection, blob.sha256)
            if stored is not None and stored.whole:
                prepared.append(PreparedBlob(blob=blob))
                continue
            if len(blob.data) <= _CHECKED_BYTES and hashlib.sha256(blob.data).hexdigest() != blob.sha256:
                raise ValueError(f"These bytes are not {blob.sha256}.")
            # A row whose file was lost may be the base of its own base: packed alone, it ends the circle.
            base = self._find_base(connection, blob, at_hand) if stored is None else None
            packed = _pack_blob(blob, base)
            if _needs_file(packed):
                self._write_file(blob.sha256, packed.data)
            prepared.append(PreparedBlob(blob=blob, packed=packed))
        return prepared

    def insert_blobs(self, connection: sqlite3.Connection, prepared: Sequence[PreparedBlob], *, stored: str) -> None:
        """Store prepared blobs inside the caller's write transaction."""
        for item in prepared:
            blob, packed = item.blob, item.packed
            there = self._blob_state(connection, blob.sha256)
            if there is not None and there.whole:
                continue
            depth = 0
            if packed is not None and packed.base:
                base = self._blob_state(connection, packed.base)
                depth = deltas.MAX_DEPTH + 1 if base is None else base.depth + 1
            if packed is None or depth > deltas.MAX_DEPTH or there is not None:
                packed, depth = deltas.pack_full(blob.data), 0
            self.put_row(connection, blob.sha256, len(blob.data), packed, depth=depth, stored=stored)

    def put_row(
        self,
        connection: sqlite3.Connection,
        sha256: str,
        size: int,
        packed: deltas.PackedBlob,
        *,
        depth: int,
        stored: str,
    ) -> None:
        """Write the row of a packing, and its file if it needs one that is not there."""
        in_file = _needs_file(packed)
        if in_file and not self._file_is(sha256, len(packed.data)):
            self._write_file(sha256, packed.data)
        connection.execute(
            "INSERT OR REPLACE INTO blobs (sha256, size, base, depth, packed, stored, data)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (sha256, size, packed.base or None, depth, len(packed.data), stored, None if in_file else packed.data),
        )

    def has_blob(self, connection: sqlite3.Connection, sha256: str) -> bool:
        """Tell whether these bytes are stored; a row whose file is gone or short does not count."""
        stored = self._blob_state(connection, sha256)
        return stored is not None and stored.whole

    def load_blob(self, connection: sqlite3.Connection, sha256: str) -> bytes:
        """Return stored bytes, checked against their name."""
        rows = self._row_chain(connection, sha256)
        data = b""
        try:
            for row in reversed(rows):
                packed = self._read_file(row.sha256) if row.data is None else row.data
                data = deltas.unpack_blob(packed, size=row.size, base=data)
        except deltas.UnpackError as error:
            raise blob_damaged_error(sha256, str(error)) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise blob_damaged_error(sha256, "The bytes have another hash.")
        return data

    def file_path(self, sha256: str) -> Path:
        """Return where the file of a large blob lies."""
        return self.folder / sha256[:2] / sha256

    def _row_chain(self, connection: sqlite3.Connection, sha256: str) -> list[_BlobRow]:
        """Return the row and all bases below it; the last one unpacks alone."""
        rows: list[_BlobRow] = []
        wanted: str | None = sha256
        while wanted is not None:
            found = connection.execute("SELECT size, base, data FROM blobs WHERE sha256 = ?", (wanted,)).fetchone()
            if found is None and not rows:
                raise blob_missing_error(sha256)
            if found is None or len(rows) > deltas.MAX_DEPTH:
                raise blob_damaged_error(sha256, f"Its base {wanted} is missing.")
            size, base, data = found
            rows.append(_BlobRow(sha256=wanted, size=size, base=base, data=data))
            wanted = base
        return rows

    def _find_base(self, connection: sqlite3.Connection, blob: Blob, at_hand: dict[str, bytes]) -> bytes | None:
        if blob.base in {"", blob.sha256}:
            return None
        stored = self._blob_state(connection, blob.base)
        if stored is not None and stored.depth >= deltas.MAX_DEPTH:
            return None
        if stored is None or blob.base in at_hand:
            return at_hand.get(blob.base)
        with suppress(StateCorrupt):  # an unreadable base must not refuse new bytes
            return self.load_blob(connection, blob.base)
        return None

    def _blob_state(self, connection: sqlite3.Connection, sha256: str) -> _BlobState | None:
        row = connection.execute("SELECT depth, data IS NULL, packed FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            return None
        depth, in_file, packed = row
        return _BlobState(depth=depth, whole=not in_file or self._file_is(sha256, packed))

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
        if not self._fsync:
            return
        for directory in (folder, self.folder, self.folder.parent):
            sync_folder(directory)


def _pack_blob(blob: Blob, base: bytes | None) -> deltas.PackedBlob:
    if base is None:
        return deltas.pack_full(blob.data)
    packed = deltas.pack_smallest(blob.data, base=base, base_sha256=blob.base)
    return packed if len(packed.data) <= _DELTA_LIMIT_BYTES or not packed.base else deltas.pack_full(blob.data)


def _needs_file(packed: deltas.PackedBlob) -> bool:
    return len(packed.data) > ROW_LIMIT_BYTES and not packed.base
