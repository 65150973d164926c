"""Large versions in a directory, on a disk of its own or shared by several machines."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from surehold.errors import BlobsUnavailable, DiskFull
from surehold.stores.blobs.base import (
    GRACE,
    StoredObject,
    blobs_away_error,
    choose_name,
    object_missing_error,
    pack_object,
    sha256_of_name,
    unpack_object,
)

_TEMPORARY_ENDING = ".tmp"


class DirectoryBlobs:
    """Objects as files, in a folder of the workspace below a directory."""

    def __init__(self, directory: Path, *, folder: str, fsync: bool = True) -> None:
        self.address = str(directory)
        self._directory, self._folder, self._fsync = directory, directory / folder, fsync

    def put(self, sha256: str, data: bytes) -> str:
        packed, name = pack_object(data), choose_name(sha256)
        try:
            while not self._create(name, packed):
                name = choose_name(sha256, is_taken=True)
        except OSError as error:
            raise self._translate(error) from error
        return name

    def get(self, name: str, *, size: int) -> bytes:
        sha256 = sha256_of_name(name)
        try:
            packed = (self._folder / name).read_bytes()
        except FileNotFoundError:
            if not self._directory.is_dir():
                raise blobs_away_error(self.address, "the directory is missing") from None
            raise object_missing_error(sha256, self.address) from None
        except OSError as error:
            raise self._translate(error) from error
        return unpack_object(packed, sha256, size=size, address=self.address)

    def has(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def list_objects(self) -> Iterator[StoredObject]:
        for path in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):
                modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                if path.suffix != _TEMPORARY_ENDING:
                    yield StoredObject(name=f"{path.parent.name}/{path.name}", modified=modified)
                elif modified < datetime.now(UTC) - GRACE:  # its writer died
                    path.unlink()

    def delete(self, names: Sequence[str]) -> None:
        try:
            for name in names:
                path = self._folder / name
                path.unlink(missing_ok=True)
                with suppress(OSError):  # others are in it
                    path.parent.rmdir()
        except OSError as error:
            raise self._translate(error) from error

    def probe(self) -> None:
        try:
            self._make_folder(self._folder)
        except OSError as error:
            raise self._translate(error) from error

    def _create(self, name: str, packed: bytes) -> bool:
        """Write a file that was not there; False if there is one of that name."""
        path = self._folder / name
        temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}{_TEMPORARY_ENDING}")
        while True:
            self._make_folder(path.parent)
            try:
                place = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                break
            except FileNotFoundError:  # a clean-up removed the empty folder just now
                continue
        try:
            with os.fdopen(place, "wb") as file:
                file.write(packed)
                file.flush()
                if self._fsync:
                    os.fsync(place)
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        self._sync_folders(path.parent)
        return True

    def _make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _sync_folders(self, folder: Path) -> None:
        for directory in (folder, self._folder, self._directory) if self._fsync else ():
            place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(place)
            finally:
                os.close(place)

    def _translate(self, error: OSError) -> DiskFull | BlobsUnavailable:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return DiskFull("There is no room in the blob store.", path=self.address)
        return blobs_away_error(self.address, error.strerror or str(error))
