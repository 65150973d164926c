"""Reads the files of a workspace, whole or page by page, within its rules and limits."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from surehold.disk.base import Disk, EntryStat, StoredFile, Target
from surehold.disk.side_threads import begin_aside
from surehold.errors import InvalidArgument, NotFound, StaleFile, SureholdError
from surehold.stores.base import Blob, Head, PathRecord, Sighting, StaleRead, Store
from surehold.stores.ledger_rules import OutsideEdit, is_stale_read
from surehold.stores.sightings import must_be_written_at_once
from surehold.text.encoding import Encoding, EncodingDetector, detect_encoding
from surehold.text.snapshot import Snapshot, Version, sha256_hex
from surehold.workspace.editorconfig import read_charset
from surehold.workspace.paths import AnyPath, PathResolver, Policy, spelled_path
from surehold.workspace.recovery import Recovery
from surehold.workspace.settings import Limits

if TYPE_CHECKING:
    from surehold.text.page import FilePage, PageIndex
    from surehold.workspace.access.seen_lines import KnownFile
    from surehold.workspace.runs.shared_paths import SharedPaths

_Place = tuple[str, tuple[str, ...]]
_MAX_INDEXES = 16
_MAX_NAMED_ENCODINGS = 1_000
_BACKGROUND_HASH_BYTES = 4 << 20
_MAX_CONFIG_BYTES = 1 << 20


_LONG_AGO = "1970-01-01T00:00:00.000000+00:00"
"""When a session was shown a version, as far as caches are concerned: before any of them."""


class _AskedPage(TypedDict):
    """Which lines are asked for, and how their bytes are read."""

    start: int
    count: int
    max_bytes: int
    decide: Callable[[bytes], Encoding]


class _PageIndexes:
    """What passes over the files read last learned, with the facts that the files had."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Place, tuple[tuple[int, ...], PageIndex]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, place: _Place, facts: tuple[int, ...]) -> "PageIndex | None":
        with self._lock:
            known, index = self._kept.get(place, ((), None))
            return index if known == facts else None

    def put(self, place: _Place, facts: tuple[int, ...], index: "PageIndex") -> None:
        with self._lock:
            self._kept.pop(place, None)
            self._kept[place] = (facts, index)
            while len(self._kept) > _MAX_INDEXES:
                self._kept.popitem(last=False)


class _NamedEncodings:
    """The encodings that calls named when they read a file, by session and path; the newest ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], str] = {}

    def get(self, session: str, key: str) -> str:
        return self._kept.get((session, key), "")

    def put(self, session: str, key: str, encoding: str) -> None:
        with self._lock:
            self._kept.pop((session, key), None)
            self._kept[session, key] = encoding
            while len(self._kept) > _MAX_NAMED_ENCODINGS:
                del self._kept[next(iter(self._kept))]


def _read_page(read: Callable[[], Iterator[bytes]], asked: _AskedPage) -> "tuple[FilePage, PageIndex]":
    """Read a page in one pass; in two if lines turn out to end in CR alone."""
    from surehold.text.page import PageIndex, read_page

    index = PageIndex()
    page = read_page(read(), **asked, index=index)
    if page.ends_lines_with_cr:
        index = PageIndex()
        page = read_page(read(), **asked, breaker=b"\r", index=index)
    return page, index


class WorkspaceReader:
    """Reads files; what a dead process left open at their paths is settled first."""

    def __init__(
        self,
        *,
        disk: Disk,
        store: Store,
        policy: Policy | None = None,
        limits: Limits | None = None,
        detector: EncodingDetector | None = None,
        runs: Path | None = None,
    ) -> None:
        self.disk, self.store, self.detector = disk, store, detector
        self.policy, self.limits = policy or Policy(), limits or Limits()
        self.names = PathResolver(disk, self.policy)
        self._indexes, self._named = _PageIndexes(), _NamedEncodings()
        self._looked = threading.local()
        self.recovery = Recovery(disk, store, limit=self.limits.max_file_bytes, runs=runs)
        self._runs = runs

    def target(self, path: AnyPath) -> Target:
        return self.names.resolve_readable(path)

    def read(
        self, path: AnyPath, *, encoding: str | None = None, limit: int | None = None, session: str = ""
    ) -> Snapshot:
        """Return a file as it is now; `FileTooLarge` above the limit. The session is the one that it will be shown to."""
        target = self.target(path)
        record = self._look_at(target, session)
        if encoding:
            self._named.put(session, target.key, encoding)
        snapshot = self.read_snapshot(target, encoding, limit=limit)
        self._notice_outside(target, record, lambda: snapshot.sha256 if snapshot.exists else "")
        if not snapshot.exists:
            raise NotFound(f"`{spelled_path(path)}` does not exist.", path=spelled_path(path))
        return snapshot

    def stat_target(self, target: Target) -> EntryStat | None:
        """Return what is known of the entry itself; None if there is none."""
        with suppress(NotFound):
            return self.names.stat_entry(target)
        return None

    def read_head(self, target: Target, count: int) -> bytes:
        """Return the first bytes; none of what is not a regular file, or cannot be read."""
        if not target.parts:
            return b""
        return self.disk.read_heads(self.names.parent_of(target), target.parts[-1:], count)[0] or b""

    def sibling_names(self, target: Target) -> list[str]:
        """List the names in the directory of a target; none if it cannot be listed."""
        if target.parts:
            with suppress(SureholdError), self.disk.open_listing(self.names.parent_of(target)) as listing:
                return list(listing.entries)
        return []

    def configured_charset(self, target: Target, *, read: Callable[..., StoredFile | None] | None = None) -> str | None:
        """Return the encoding that an `.editorconfig` names for a file: that of the nearest directory, up to its root.

        `read` is that of the disk, which may remember what it found.
        """
        for depth in range(len(target.parts) - 1, -1, -1):
            config = replace(target, parts=(*target.parts[:depth], ".editorconfig"), key="")
            try:
                stored = (read or self.disk.read)(config, limit=_MAX_CONFIG_BYTES)
            except SureholdError:  # a directory of that name, no permission: as if it were not there
                continue
            if stored is None:
                continue
            is_root, codec = read_charset(stored.data, "/".join(target.parts[depth:]))
            if is_root or codec is not None:
                return codec or None
        return None

    def fingerprint(self, path: AnyPath) -> str:
        """Return the sha256 of a file as it is now; empty when nothing is there."""
        stored = self.disk.read(self.target(path), limit=self.limits.max_file_bytes)
        return sha256_hex(stored.data) if stored else ""

    def page(
        self, path: AnyPath, *, start: int = 1, count: int = 2000, max_bytes: int = 262_144, encoding: str | None = None
    ) -> "FilePage":
        """Return some lines of a file of any size, with the facts about all of it, in one pass."""
        if start < 1 or count < 1:
            raise InvalidArgument("Lines are counted from 1, and at least one is asked for.", reason="bad_lines")
        target = self.target(path)
        record = self._look_at(target)

        def decide_encoding(head: bytes) -> Encoding:
            configured = partial(self.configured_charset, target)
            return detect_encoding(head, requested=encoding, configured=configured, detector=self.detector)

        asked = _AskedPage(start=start, count=count, max_bytes=max_bytes, decide=decide_encoding)
        page = self._read_steady_page(target, asked) or _read_page(partial(self.disk.read_chunks, target), asked)[0]
        self._notice_outside(target, record, lambda: page.sha256)
        return page

    def _read_steady_page(self, target: Target, asked: _AskedPage) -> "FilePage | None":
        """Read a page while no other program writes; a later one of the same bytes takes no pass over all of them."""
        place = (target.root, target.parts)
        with self.disk.open_steady(target) as steady, suppress(StaleFile):
            if steady is None:
                return None
            if index := self._indexes.get(place, steady.facts):
                page = index.cut_page(steady.read_from, **asked)
                if page is not None and steady.is_steady():
                    return page
            page, index = _read_page(partial(steady.read_from, 0), asked)
            if steady.is_steady():
                if steady.is_settled:
                    self._indexes.put(place, steady.facts, index)
                return page
        return None

    def _look_at(self, target: Target, session: str = "") -> PathRecord:
        """Return what the store knows of a path, after what a dead process left open there was settled."""
        view = self.store.look([target.key], session=session)
        if dead := [busy for busy in view.holding if self.recovery.leases.may_settle(busy)]:
            self.recovery.settle_intents(dead, timeout=0)
            view = self.store.look([target.key], session=session)
        record = view.records[target.key]
        self._looked.newest = (session, record)
        return record

    def record_for(self, target: Target, session: str) -> PathRecord:
        """Return what is known of a file that was just read in this thread, to be shown to a session; else look again."""
        asked, record = getattr(self._looked, "newest", ("", None))
        self._looked.newest = ("", None)  # it is true for one answer
        if record is not None and (asked, record.key) == (session, target.key):
            return record
        return self.store.look([target.key], session=session).records[target.key]

    def _notice_outside(self, target: Target, record: PathRecord, found: Callable[[], str]) -> None:
        """Record an outside edit as soon as it is seen. It is looked at again under the lock, where no writer is at work."""
        if record.head is None or not self.disk.shows_saved or record.head.has_bytes(found()):
            return
        with suppress(SureholdError), self.disk.lock([target], timeout=0):  # the read is what was asked for
            self.note_outside(target, self.read_snapshot(target))

    def notice_outside_many(self, found: Mapping[str, str]) -> None:
        """Record outside edits of files that were found to have these bytes."""
        for key, record in self.store.look([*found]).records.items() if found else ():
            if record.head and not record.head.has_bytes(found[key]):
                with suppress(SureholdError):  # what was found is what was asked for
                    self._notice_outside(self.target(key), record, lambda key=key: found[key])

    def note_outside(self, target: Target, current: Snapshot, *, shown: str = "") -> None:
        """Record what an outside program made of a file whose lock is held; `shown` is the version that a session saw."""
        self.credit_commands({target: current})
        blobs = [Blob(data=current.data, sha256=current.sha256)] if current.exists else []
        fence = 0.0 if self.disk.is_coherent else self.limits.fence
        head = None
        if shown:
            version = Version(sha256=shown, size=len(self.store.read_blob(shown)))
            head = Head(path=target.key, version=version, writer="", seq=0, timestamp=_LONG_AGO)
        self.store.note_outside(target.key, current.version, blobs, fence=fence, shown=head)

    def credit_commands(self, found: Mapping[Target, Snapshot]) -> None:
        """Record what commands that still run made of files whose locks are held, as theirs."""
        if self._runs is not None and self._runs.is_dir():
            with suppress(SureholdError, OSError):  # then it is an outside edit
                self.shared_paths(self._runs).credit_before_edit(found)

    def shared_paths(self, runs: Path) -> "SharedPaths":
        from surehold.workspace.runs.shared_paths import SharedPaths

        return SharedPaths(self, runs)

    def find_stale_read(self, record: PathRecord, current: Snapshot, *, now: datetime) -> StaleRead | None:
        """Tell whether a mount that caches showed an older version of ours, so soon after the newest that it may be lagging."""
        if (
            record.head is None
            or self.disk.is_coherent
            or record.head.has_bytes(current.sha256 if current.exists else "")
        ):
            return None
        surprise, knows = OutsideEdit(head=record.head, found=current.version), self.store.knows_version
        is_stale = is_stale_read(surprise, now=now, fence=self.limits.fence, knows=knows)
        return StaleRead(path=record.key, head=record.head) if is_stale else None

    def notice_other_version(self, target: Target, record: PathRecord, sha256: str) -> None:
        """Record that an outside program changed a file since a session saw it, if the ledger knows nothing of the file."""
        newest = record.sightings[0].sha256 if record.sightings else ""
        if record.head is not None or newest in ("", sha256) or not self.disk.shows_saved:
            return
        with suppress(SureholdError), self.disk.lock([target], timeout=0):  # the read is what was asked for
            self.note_outside(target, self.read_snapshot(target), shown=newest)

    def know_file(self, path: AnyPath, *, session: str = "") -> "KnownFile":
        """Return a file as it is now, with what the store knows of it and what a session was shown of it."""
        from surehold.workspace.access.seen_lines import KnownFile

        target = self.target(path)
        record = self.store.look([target.key], session=session).records[target.key]
        return KnownFile(record, self.read_snapshot(target), store=self.store, session=session)

    def record_shown(self, sighting: Sighting, known: Sequence[Sighting], snapshot: Snapshot | None) -> None:
        """Remember what a session was shown of a version; `known` is what it was shown of the path before."""
        self.store.record_sightings([sighting], self.blobs_to_keep(snapshot))
        if must_be_written_at_once(sighting, known):
            with suppress(SureholdError):  # the answer comes first; it is tried again with the next sighting
                self.store.flush_sightings()

    def blobs_to_keep(self, snapshot: Snapshot | None) -> list[Blob]:
        """Return a version that was shown, if it is small enough to be kept for rebasing."""
        if snapshot is None or not snapshot.exists or snapshot.size > self.limits.sighting_bytes:
            return []
        return [Blob(data=snapshot.data, sha256=snapshot.sha256)]

    def read_snapshot(self, target: Target, encoding: str | None = None, *, limit: int | None = None) -> Snapshot:
        """Return a file as it is now; an absent one is a snapshot too."""
        limit = self.limits.max_file_bytes if limit is None else limit
        return self._make_snapshot(target, self.disk.read(target, limit=limit), encoding)

    def as_named(self, target: Target, current: Snapshot, *, session: str) -> Snapshot:
        """Return a file whose bytes fit nothing in the encoding that the session named when it read it, if they fit that."""
        named = self._named.get(session, target.key)
        if not named or not current.is_text or not current.encoding.is_raw:
            return current
        found = Snapshot(current.data, meta=current.meta, encoding=named, name=lambda: current.sha256)
        with suppress(SureholdError):
            return found if not found.encoding.is_raw else current
        return current

    def read_watched(self, target: Target, *, in_place: bool) -> Snapshot:
        """Return a file that is to be changed and whose lock is held; it is watched until the lock is released."""
        stored = self.disk.read_watched(target, limit=self.limits.max_file_bytes, in_place=in_place)
        return self._make_snapshot(target, stored)

    def _make_snapshot(self, target: Target, stored: StoredFile | None, encoding: str | None = None) -> Snapshot:
        return Snapshot(
            stored.data if stored else None,
            meta=stored.meta if stored else None,
            name=_hash_in_background(stored.data) if stored and len(stored.data) > _BACKGROUND_HASH_BYTES else None,
            encoding=encoding,
            configured=partial(self.configured_charset, target),
            detector=self.detector,
        )


def _hash_in_background(data: bytes) -> Callable[[], str]:
    """Hash large bytes while something else is done; hashing needs no interpreter, so this is real parallel work."""
    return begin_aside(partial(sha256_hex, data))
