"""Old versions of files: compressed, as deltas where that is smaller; large ones as files beside the database."""

import hashlib
import os
import sqlite3
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from surehold.errors import NotFound, StateCorrupt
from surehold.stores.base import Blob
from surehold.stores.sqlite import state_errors
from surehold.stores.sqlite.database import sync_folder
from surehold.stores.sqlite.state_errors import blob_damaged_error, blob_missing_error
from surehold.text.align import shared_ends

MAX_DEPTH = 8

_FULL, _DELTA = b"\x00", b"\x01"
_HEADER = struct.Struct(">32sQQ")  # the base's sha256, and how many bytes of it are at both ends
_LARGE_BYTES = 1024 * 1024
_DICTIONARY_BYTES = range(64, 8 * 1024 * 1024 + 1)  # smaller is useless, larger is slow
_DEFAULT_WINDOW_BYTES = 256 * 1024  # zstd sees at least this far back by itself
_OBVIOUS_RATIO = 32  # a delta that is this much smaller than the raw bytes needs no comparison with the full form


_of_thread = threading.local()  # a decompressor is costly to make, and serves one thread


class UnpackError(ValueError):
    """Packed bytes do not unpack to what was recorded of them."""


def pack_full(data: bytes) -> bytes:
    return _FULL + _compress(data, None)


def pack_smallest(data: bytes, *, base: bytes, base_sha256: str) -> bytes:
    """Pack bytes as a delta to `base`, or alone when that does not save half."""
    delta = _pack_delta(data, base=base, base_sha256=base_sha256)
    if len(delta) * _OBVIOUS_RATIO < len(data):
        return delta
    full = pack_full(data)
    return delta if len(delta) * 2 < len(full) else full


def base_of(packed: bytes) -> str:
    """Return the name of the base that these bytes need; empty when they unpack alone."""
    kind = packed[:1]
    if kind == _FULL:
        return ""
    if kind != _DELTA or len(packed) < 1 + _HEADER.size:
        raise UnpackError("The packed bytes have no header.")
    return _HEADER.unpack_from(packed, 1)[0].hex()


def unpack_blob(packed: bytes, *, size: int, base: bytes = b"") -> bytes:
    """Return the bytes again; `UnpackError` when they are not of that size."""
    if not base_of(packed):
        return _decompress(packed[1:], size=size, dictionary=None)
    _, prefix, suffix = _HEADER.unpack_from(packed, 1)
    if prefix + suffix > min(len(base), size):
        raise UnpackError("The delta does not fit its base.")
    tail = len(base) - suffix
    frame = packed[1 + _HEADER.size :]
    middle = _decompress(frame, size=size - prefix - suffix, dictionary=_usable_dictionary(base[prefix:tail]))
    return base[:prefix] + middle + base[tail:]


def _pack_delta(data: bytes, *, base: bytes, base_sha256: str) -> bytes:
    prefix, suffix = shared_ends(base, data)
    middle = data[prefix : len(data) - suffix]
    dictionary = _usable_dictionary(base[prefix : len(base) - suffix])
    header = _HEADER.pack(bytes.fromhex(base_sha256), prefix, suffix)
    return _DELTA + header + _compress(middle, dictionary)


def _usable_dictionary(middle: bytes) -> bytes | None:
    """Return the base's own middle where it helps; both directions decide alike."""
    return middle if len(middle) in _DICTIONARY_BYTES else None


def _compress(data: bytes, dictionary: bytes | None) -> bytes:
    import zstandard

    if dictionary is None:
        return zstandard.ZstdCompressor(level=1 if len(data) > _LARGE_BYTES else 3).compress(data)
    reach = len(dictionary) + len(data)
    window: dict[str, Any] = {"window_log": reach.bit_length()} if reach > _DEFAULT_WINDOW_BYTES else {}
    parameters_of = cast("Any", zstandard.ZstdCompressionParameters)  # its types are incomplete
    parameters = parameters_of.from_level(3, source_size=len(data), dict_size=len(dictionary), **window)
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=_raw_dictionary(dictionary)).compress(data)


def _decompress(frame: bytes, *, size: int, dictionary: bytes | None) -> bytes:
    import zstandard

    try:
        # Only the frame's own claim bounds the allocation, so it is compared first.
        if zstandard.get_frame_parameters(frame).content_size != size:
            raise UnpackError("The packed bytes claim another size than was recorded.")
        if dictionary is not None:
            return zstandard.ZstdDecompressor(dict_data=_raw_dictionary(dictionary)).decompress(frame)
        if not hasattr(_of_thread, "decompressor"):
            _of_thread.decompressor = zstandard.ZstdDecompressor()
        return _of_thread.decompressor.decompress(frame)
    except zstandard.ZstdError as error:
        raise UnpackError(f"The packed bytes cannot be unpacked ({error}).") from error


def _raw_dictionary(dictionary: bytes) -> Any:
    import zstandard

    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


_ROW_LIMIT_BYTES = 64 * 1024
_CHECKED_BYTES = 1 << 16  # names of larger bytes are only checked when they are read: hashing is most of the work
_DELTA_LIMIT_BYTES = 1024 * 1024  # a delta cannot be a file (2), and saves at least as much as it takes


_LATELY_STORED = 64
_KEPT_BYTES = 64 * 1024 * 1024
_PAGE_ROWS = 200
_SELECT_PAGE = "SELECT rowid, sha256, size, base, data FROM blobs WHERE rowid > ? ORDER BY rowid LIMIT ?"

BlobRow = tuple[int, str, int, str | None, bytes | None]
"""Its place in the table, then sha256, size, base and packed bytes; no bytes when they are in a file."""

PreparedBlob = tuple[Blob, bytes | None]
"""A blob, and its packing if it was not stored yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlobState:
    depth: int
    whole: bool
    """Whether the file that the row names, if it names one, has the right size."""


class Blobs:
    """The bytes of one state directory."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self.folder = folder
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
            elif blob.base in at_hand and self._lately.get(blob.base, MAX_DEPTH) < MAX_DEPTH:
                packed = _pack_blob(blob, at_hand[blob.base])
                if _needs_file(packed):
                    return None
                prepared.append((blob, packed))
            else:
                return None
        return prepared

    def pack_new(self, connection: sqlite3.Connection, blobs: Sequence[Blob]) -> list[PreparedBlob]:
        """Pack what is not stored yet, and put large packings on the disk; nothing is stored by that alone."""
        at_hand = {blob.sha256: blob.data for blob in blobs}
        prepared: list[PreparedBlob] = []
        for blob in blobs:
            stored = self._blob_state(connection, blob.sha256)
            if stored is not None and stored.whole:
                prepared.append((blob, None))
                continue
            if len(blob.data) <= _CHECKED_BYTES and hashlib.sha256(blob.data).hexdigest() != blob.sha256:
                raise ValueError(f"These bytes are not {blob.sha256}.")
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
        connection.executemany("UPDATE blobs SET stored = ? WHERE sha256 = ?", [(stored, one.sha256) for one in blobs])

    def insert_blobs(self, connection: sqlite3.Connection, prepared: Sequence[PreparedBlob], *, stored: str) -> None:
        states = dict[str, _BlobState | None]()
        for blob, early in prepared:
            there = states[blob.sha256] = self._blob_state(connection, blob.sha256)
            if there is not None and there.whole:
                continue
            packed, depth = early, 0
            if packed is not None and base_of(packed):
                name = base_of(packed)
                base = states[name] if name in states else self._blob_state(connection, name)
                depth = MAX_DEPTH + 1 if base is None else base.depth + 1
            if packed is None or depth > MAX_DEPTH or there is not None:
                packed, depth = pack_full(blob.data), 0
            self.put_row(connection, blob.sha256, len(blob.data), packed, depth=depth, stored=stored)
            states[blob.sha256] = _BlobState(depth=depth, whole=True)
        for name, state in states.items():
            if state is not None:
                self._lately[name] = state.depth
        while len(self._lately) > _LATELY_STORED:
            self._lately.pop(next(iter(self._lately)), None)

    def put_row(
        self, connection: sqlite3.Connection, sha256: str, size: int, packed: bytes, *, depth: int, stored: str
    ) -> None:
        """Write the row of a packing, and its file if it needs one that is not there."""
        in_file = _needs_file(packed)
        if in_file and not self._file_is(sha256, len(packed)):
            self._write_file(sha256, packed)
        connection.execute(
            "INSERT OR REPLACE INTO blobs (sha256, size, base, depth, packed, stored, data)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (sha256, size, base_of(packed) or None, depth, len(packed), stored, None if in_file else packed),
        )

    def has_blob(self, connection: sqlite3.Connection, sha256: str) -> bool:
        """Tell whether these bytes are stored; a row whose file is gone or short does not count."""
        stored = self._blob_state(connection, sha256)
        return stored is not None and stored.whole

    def load_blob(self, connection: sqlite3.Connection, sha256: str) -> bytes:
        rows = self._row_chain(connection, sha256)
        data = b""
        try:
            for name, size, stored in reversed(rows):
                packed = self._read_file(name) if stored is None else stored
                data = unpack_blob(packed, size=size, base=data)
        except UnpackError as error:
            raise blob_damaged_error(sha256, str(error)) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise blob_damaged_error(sha256, "The bytes have another hash.")
        return data

    def file_path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def _row_chain(self, connection: sqlite3.Connection, sha256: str) -> list[tuple[str, int, bytes | None]]:
        """Return the row and all bases below it, as (sha256, size, data); the last one unpacks alone."""
        rows: list[tuple[str, int, bytes | None]] = []
        wanted: str | None = sha256
        while wanted is not None:
            found = connection.execute("SELECT size, base, data FROM blobs WHERE sha256 = ?", (wanted,)).fetchone()
            if found is None and not rows:
                raise blob_missing_error(sha256)
            if found is None or len(rows) > MAX_DEPTH:
                raise blob_damaged_error(sha256, f"Its base {wanted} is missing.")
            size, base, data = found
            rows.append((wanted, size, data))
            wanted = base
        return rows

    def _find_base(self, connection: sqlite3.Connection, blob: Blob, at_hand: dict[str, bytes]) -> bytes | None:
        if blob.base in {"", blob.sha256}:
            return None
        stored = self._blob_state(connection, blob.base)
        if stored is not None and stored.depth >= MAX_DEPTH:
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
        for directory in (folder, self.folder, self.folder.parent) if self._fsync else ():
            sync_folder(directory)


def _pack_blob(blob: Blob, base: bytes | None) -> bytes:
    if base is None:
        return pack_full(blob.data)
    packed = pack_smallest(blob.data, base=base, base_sha256=blob.base)
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
            last, sha256 = row[:2]
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
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def is_whole(self, row: BlobRow) -> bool:
        """Tell whether a row holds what its name says. False also means that it has to be looked at in another way."""
        _, sha256, size, base, packed = row
        if packed is None or (base is not None and base not in self._kept):
            return False
        try:
            whole = base_of(packed) == (base or "")
            data = unpack_blob(packed, size=size, base=self._kept.get(base or "", b"")) if whole else b""
        except UnpackError:
            return False
        if not whole or hashlib.sha256(data).hexdigest() != sha256:
            return False
        self._keep(sha256, data)
        return True

    def _keep(self, sha256: str, data: bytes) -> None:
        self._kept[sha256] = data
        self._size += len(data)
        while self._size > _KEPT_BYTES:
            self._size -= len(self._kept.popitem(last=False)[1])
