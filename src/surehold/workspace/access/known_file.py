"""One file as it is now, and what the store remembers of it for one session. Made under the lock, once per attempt."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

from surehold.errors import SureholdError
from surehold.stores.base import Entry, LedgerQuery, PathRecord, Sighting, Store, WriterSpan
from surehold.text.align import align_lines
from surehold.text.line_ranges import LineRanges, merge_ranges
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.seen_lines import clip_spans, subtract_spans

_MAX_COMPARED_BYTES = 16 << 20
"""Versions are compared up to this size together; larger ones are told apart by their hashes alone."""


class KnownFile:
    """One file as it is now, what the session was shown of it, and who wrote it."""

    def __init__(self, record: PathRecord, current: Snapshot, *, store: Store | None = None, session: str = "") -> None:
        self.path, self.seen = record.key, record.sightings
        self.current, self.session = current, session
        self._head, self._store = record.head, store
        self._shown = next((one for one in self.seen if one.sha256 == current.sha256), None)

    @property
    def known_version(self) -> bool:
        """Whether anything of the version that is there was shown."""
        return self._shown is not None

    @property
    def spans(self) -> LineRanges:
        """Lines that were shown of this very version."""
        if self._shown is None:
            return ()
        return self.all_lines if self._shown.whole else self._shown.spans

    @property
    def is_fully_known(self) -> bool:
        """Whether every line is known."""
        return not subtract_spans(self.all_lines, self.spans) or not subtract_spans(self.all_lines, self.known)

    @cached_property
    def all_lines(self) -> LineRanges:
        """All lines."""
        total = self.current.line_count
        return ((1, total),) if total else ()

    @cached_property
    def known(self) -> LineRanges:
        """Lines that were shown, of this version, or of earlier ones in which they are the same."""
        found = list(self.spans)
        for base, spans in self.earlier_versions:
            found += _carry_over_lines(base, self.current, spans)
        return merge_ranges(found)

    @cached_property
    def earlier_versions(self) -> list[tuple[Snapshot, LineRanges]]:
        """Other versions whose bytes were kept, newest first, with the lines that were shown of them."""
        return list(self._load_earlier_versions())

    def _load_earlier_versions(self) -> Iterator[tuple[Snapshot, LineRanges]]:
        for one in self.seen:
            data = None if one is self._shown or not one.sha256 else self.load_version(one.sha256)
            if data is not None and len(data) + self.current.size <= _MAX_COMPARED_BYTES:
                base = Snapshot(data, encoding=self.current.encoding)
                total = base.line_count if one.whole else 0
                yield base, ((1, total),) if total else one.spans

    def load_version(self, sha256: str) -> bytes | None:
        """Return the bytes of a version; None if they were too large to be kept, or were pruned since."""
        if self._store is None:
            return None
        try:
            return self._store.read_blob(sha256)
        except SureholdError:
            return None

    @property
    def sighting(self) -> Sighting | None:
        """What the session has seen of the current version; with earlier versions, if those were asked."""
        return self.sighting_of(self.known) if "known" in self.__dict__ else self._shown

    def sighting_of(self, spans: LineRanges) -> Sighting:
        """Return these lines of the file, or its absence, as shown."""
        whole = not subtract_spans(self.all_lines, spans) if self.current.exists else True
        return Sighting(session=self.session, path=self.path, sha256=self.current.sha256, spans=spans, whole=whole)

    def newest_own_entry(self) -> Entry | None:
        """Return the newest change of the path, if this session made it."""
        if self._store is None:
            return None
        newest = self._store.list_entries(LedgerQuery(path=self.path, ok_only=True, limit=1))
        return newest[0] if newest and newest[0].call.session == self.session else None

    @property
    def last_writer(self) -> str:
        """Who wrote the version that is there: a tool family, `external`, or nothing if it was never written."""
        if self._head is None:
            return ""
        recorded = self._head.version.sha256 if self._head.version else ""
        return self._head.writer if recorded == self.current.sha256 else "external"

    @property
    def writers(self) -> tuple[str, ...]:
        """Who ever wrote the file, in the order of their first change, without repetition."""
        return self.with_outside_writer(one.writer for one in self._writer_spans)

    @property
    def baseline_continuity(self) -> Literal["clean", "mixed"]:
        """Whether anything but `edit` wrote the file since this session last read all of it with anchors."""
        full = max((one.seq for one in self.seen if one.read_with_anchors), default=0)
        names = self.with_outside_writer(one.writer for one in self._writer_spans if one.last_seq > full)
        return "mixed" if set(names) - {"edit"} else "clean"

    def with_outside_writer(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names, each once, and `external` if the version that is there is not recorded."""
        outside = ["external"] if self.last_writer == "external" else []
        return tuple(dict.fromkeys([*names, *outside]))

    @cached_property
    def _writer_spans(self) -> tuple[WriterSpan, ...]:
        return self._store.list_writers(self.path) if self._store else ()


def _carry_over_lines(base: Snapshot, current: Snapshot, spans: LineRanges) -> Iterator[tuple[int, int]]:
    """Yield the lines of a version that are the same as lines which were shown of another."""
    for block in align_lines(base.lines.raw, current.lines.raw):
        shift = block.b - block.a
        for start, end in clip_spans(spans, block.a + 1, block.a + block.size):
            yield start + shift, end + shift
