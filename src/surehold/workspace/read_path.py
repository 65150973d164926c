"""Reading the files of a workspace, whole or page by page, within its rules and limits."""

import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self

from surehold.disk.base import Disk, Target
from surehold.errors import InvalidArgument, NotFound
from surehold.stores.base import Store
from surehold.text.encoding import Detector, Encoding, detect
from surehold.text.hashing import sha256
from surehold.text.snapshot import Snapshot
from surehold.workspace.editorconfig import charset_of
from surehold.workspace.limits import Limits
from surehold.workspace.names import Names
from surehold.workspace.policy import Policy
from surehold.workspace.recover import Recovery

if TYPE_CHECKING:
    from surehold.text.page import Page
    from surehold.workspace.finder import Finder

_LARGE = 4 << 20


class ReadPath:
    """Reads files; what a dead process left open is settled first."""

    def __init__(
        self,
        *,
        disk: Disk,
        store: Store,
        policy: Policy | None = None,
        limits: Limits | None = None,
        detector: Detector | None = None,
    ) -> None:
        self.disk = disk
        self.store = store
        self.policy = policy or Policy()
        self.names = Names(disk, self.policy)
        self.limits = limits or Limits()
        self._detector = detector
        self._recovery = Recovery(disk, store, limit=self.limits.max_file_bytes)

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories below which everything happens."""
        return self.disk.roots

    @cached_property
    def finder(self) -> "Finder":
        """The way to files whose names are not known: listing, globbing, searching."""
        from surehold.workspace.finder import Finder

        return Finder(self, detector=self._detector)

    def target(self, path: str) -> Target:
        """Resolve a path that may be read."""
        return self.names.readable(path)

    def read(self, path: str, *, encoding: str | None = None, limit: int | None = None) -> Snapshot:
        """Return a file as it is now; `FileTooLarge` above the limit."""
        self._recovery.settle_dead(timeout=0)
        snapshot = self._snapshot(self.target(path), encoding, limit=limit)
        if not snapshot.exists:
            raise NotFound(f"`{path}` does not exist.", path=path)
        return snapshot

    def fingerprint(self, path: str) -> str:
        """Return the sha256 of a file as it is now; empty when nothing is there."""
        stored = self.disk.read(self.target(path), limit=self.limits.max_file_bytes)
        return sha256(stored.data) if stored else ""

    def page(
        self, path: str, *, start: int = 1, count: int = 2000, max_bytes: int = 262_144, encoding: str | None = None
    ) -> "Page":
        """Return some lines of a file of any size, with the facts about all of it, in one pass."""
        if start < 1 or count < 1:
            raise InvalidArgument("Lines are counted from 1, and at least one is asked for.", reason="bad_lines")
        from surehold.text.page import read_page

        self._recovery.settle_dead(timeout=0)
        target = self.target(path)

        def decide(head: bytes) -> Encoding:
            configured = partial(charset_of, self.disk, target)
            return detect(head, requested=encoding, configured=configured, detector=self._detector)

        page = read_page(self.disk.chunks(target), start=start, count=count, max_bytes=max_bytes, decide=decide)
        if page.line_count > 1 or (page.rows and b"\r" not in page.rows[0]):
            return page
        chunks = self.disk.chunks(target)  # no LF in the whole file: here a lone CR ends lines
        return read_page(chunks, start=start, count=count, max_bytes=max_bytes, decide=decide, breaker=b"\r")

    def close(self) -> None:
        """Let go of files and connections."""
        self.store.close()
        self.disk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot(self, target: Target, encoding: str | None = None, *, limit: int | None = None) -> Snapshot:
        stored = self.disk.read(target, limit=self.limits.max_file_bytes if limit is None else limit)
        return Snapshot(
            stored.data if stored else None,
            meta=stored.meta if stored else None,
            name=_named_aside(stored.data) if stored and len(stored.data) > _LARGE else None,
            encoding=encoding,
            configured=lambda: charset_of(self.disk, target),
            detector=self._detector,
        )


def _named_aside(data: bytes) -> Callable[[], str]:
    """Hash large bytes while something else is done; hashing needs no interpreter, so this is real parallel work."""
    found = list[str]()
    thread = threading.Thread(target=lambda: found.append(sha256(data)), daemon=True)
    thread.start()

    def name() -> str:
        thread.join()
        return found[0] if found else sha256(data)

    return name
