"""Large versions in object storage that speaks S3: `s3://bucket/prefix`.

Credentials, region and endpoint are the AWS_* variables of the environment, as `obstore` reads them. Plain http is for
endpoints on this machine, or where AWS_ALLOW_HTTP says so.
"""

import hashlib
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from surehold.errors import BlobsUnavailable, StateCorrupt
from surehold.stores.blobs.base import (
    StoredObject,
    bad_address_error,
    blobs_away_error,
    blobs_unsafe_error,
    choose_name,
    object_missing_error,
    pack_object,
    sha256_of_name,
    unpack_object,
)
from surehold.stores.blobs.object_cache import ObjectCache

if TYPE_CHECKING:
    from obstore.store import S3Store

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_CONNECT_SECONDS = 5
_REQUEST_SECONDS = 8
_MORE_SECONDS_PER_MB = 1
"""A service that hangs is given up after some seconds; a large version gets the time that a slow line needs."""
_RETRY_SECONDS = 10
_RETRIES = 2
_PROBED_FOR_SECONDS = 24 * 3600
_CAUSE_CHARS = 240


def endpoint_of_environment() -> str:
    return next((value for name in _ENDPOINT_VARIABLES if (value := os.environ.get(name))), "")


class S3Blobs:
    """Objects in a bucket, in a folder of the workspace below a prefix."""

    def __init__(
        self, address: str, *, folder: str, cache: Path | None = None, request_seconds: float = _REQUEST_SECONDS
    ) -> None:
        """`cache`: a directory for what was put or read last, and for which services were probed."""
        parts = urlsplit(address)
        if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            raise bad_address_error(address, "the name of a bucket is expected after s3://, and a prefix at most")
        self.address = address
        self._cache = ObjectCache(cache / "objects") if cache else None
        self._mark = cache / "probed" / _name_of_place(address) if cache else None
        self._is_probed = False
        self._bucket, self._prefix = parts.netloc, "/".join(filter(None, (parts.path.strip("/"), folder)))
        self._request_seconds = request_seconds
        self._opened: dict[int, S3Store] = {}

    def put(self, sha256: str, data: bytes) -> str:
        self.probe_once()
        packed, name = pack_object(data), choose_name(sha256)
        while not self._create(name, packed):
            name = choose_name(sha256, is_taken=True)
        if self._cache is not None:
            self._cache.add(sha256, packed)
        return name

    def get(self, name: str, *, size: int) -> bytes:
        sha256 = sha256_of_name(name)
        if self._cache is not None and (kept := self._cache.find(sha256)) is not None:
            try:
                return unpack_object(kept, sha256, size=size, address=self.address)
            except StateCorrupt:
                self._cache.drop(sha256)
        packed = self._fetch(name, size)
        if packed is None:
            raise object_missing_error(sha256, self.address)
        data = unpack_object(packed, sha256, size=size, address=self.address)
        if self._cache is not None:
            self._cache.add(sha256, packed)
        return data

    def has(self, name: str) -> bool:
        import obstore

        with self._translated():
            try:
                obstore.head(self._store, name)
            except FileNotFoundError as error:
                self._check_bucket(error)
                return False
        return True

    def list_objects(self) -> Iterator[StoredObject]:
        import obstore

        with self._translated():
            for page in obstore.list(self._store, return_arrow=False):  # pyright: ignore[reportUnknownMemberType] - of another kind of answer
                for one in page:
                    yield StoredObject(name=one["path"], modified=one["last_modified"])

    def delete(self, names: Sequence[str]) -> None:
        import obstore

        with self._translated():
            obstore.delete(self._store, list(names))

    def probe_once(self) -> None:
        """Probe the service, unless that was done lately by any process of this machine."""
        if self._is_probed:
            return
        if self._mark is None or not _is_fresh(self._mark):
            self.probe()
            if self._mark is not None:
                with suppress(OSError):
                    self._mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._mark.touch()
        self._is_probed = True

    def probe(self) -> None:
        """Create one object twice: the second time must be refused, and the first bytes must be there."""
        name = f"probe/{os.urandom(16).hex()}"
        self._create(name, b"first")
        try:
            if self._create(name, b"second"):
                raise blobs_unsafe_error(self.address, "it overwrites an object that must not exist yet")
            if self._fetch(name) != b"first":
                raise blobs_unsafe_error(self.address, "it accepts an object and then does not have it")
        finally:
            with suppress(BlobsUnavailable):  # then a clean-up removes it
                self.delete([name])

    def _create(self, name: str, packed: bytes) -> bool:
        """Store an object that was not there; False if there is one of that name."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._translated():
            try:
                obstore.put(self._store_for(len(packed)), name, packed, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def _fetch(self, name: str, size: int = 0) -> bytes | None:
        import obstore

        with self._translated():
            try:
                return bytes(obstore.get(self._store_for(size), name).bytes())
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None

    @property
    def _store(self) -> "S3Store":
        return self._store_for(0)

    def _store_for(self, size: int) -> "S3Store":
        """Return the service for a request of some bytes; those of one order of size share one."""
        step = (size >> 20).bit_length()
        if step not in self._opened:
            more = _MORE_SECONDS_PER_MB << step if step else 0
            self._opened[step] = self._open(self._request_seconds + more)
        return self._opened[step]

    def _open(self, seconds: float) -> "S3Store":
        from obstore.store import S3Store

        endpoint = endpoint_of_environment()
        client: dict[str, Any] = {
            "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, seconds)),
            "timeout": timedelta(seconds=seconds),
        }
        if urlsplit(endpoint).hostname in _LOOPBACK_HOSTS:
            client["allow_http"] = True
        chosen: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        return S3Store(
            self._bucket,
            prefix=self._prefix,
            client_options=client,  # pyright: ignore[reportArgumentType] - a typed dictionary, filled as it is needed
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
            **chosen,
        )

    def _check_bucket(self, error: FileNotFoundError) -> None:
        if "NoSuchBucket" in str(error):
            raise blobs_away_error(self.address, "there is no such bucket") from error

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Say in our own words why the service cannot be used."""
        from obstore.exceptions import BaseError

        try:
            yield
        except BlobsUnavailable:
            raise
        except FileNotFoundError as error:
            raise blobs_away_error(self.address, "there is no such bucket") from error
        except (BaseError, OSError, ValueError) as error:
            raise blobs_away_error(self.address, _first_words(error)) from error


def _name_of_place(address: str) -> str:
    return hashlib.sha256(os.fsencode(f"{endpoint_of_environment()} {address}")).hexdigest()


def _is_fresh(mark: Path) -> bool:
    try:
        return mark.stat().st_mtime > time.time() - _PROBED_FOR_SECONDS
    except OSError:
        return False


def _first_words(error: Exception) -> str:
    """Return what an error says, as one line without the debugging text below it."""
    words = " ".join(str(error).partition("Debug source")[0].split())
    return words if len(words) <= _CAUSE_CHARS else f"{words[:_CAUSE_CHARS]}…"
