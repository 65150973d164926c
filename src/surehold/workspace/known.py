"""What a session knows of a file as it is now: lines that it was shown, in this version or unchanged since an earlier one."""

from collections.abc import Iterator
from functools import cached_property

from surehold.errors import SureholdError
from surehold.stores.base import Sighting, Store
from surehold.text.align import align
from surehold.text.relocate import LineRange, Moved, relocate
from surehold.text.snapshot import Snapshot
from surehold.workspace.sightings import LineSpans, lacking, merged, within

_COMPARED = 16 << 20
"""Versions are compared up to this size together; larger ones are told apart by their hashes alone."""


class Known:
    """One file as it is now, and what the session was shown of it."""

    def __init__(self, store: Store, path: str, current: Snapshot, seen: tuple[Sighting, ...]) -> None:
        self.path, self.current, self.seen = path, current, seen
        self._store = store
        self._shown = next((one for one in seen if one.sha256 == current.sha256), None)

    @property
    def known_version(self) -> bool:
        """Whether anything of the version that is there was shown."""
        return self._shown is not None

    @property
    def spans(self) -> LineSpans:
        """Lines that were shown of this very version."""
        if self._shown is None:
            return ()
        return self.everything if self._shown.whole else self._shown.spans

    @property
    def whole(self) -> bool:
        """Whether every line is known."""
        return not lacking(self.everything, self.spans) or not lacking(self.everything, self.known)

    @cached_property
    def everything(self) -> LineSpans:
        """All lines."""
        total = self.current.line_count
        return ((1, total),) if total else ()

    @property
    def carries(self) -> bool:
        """Whether earlier versions were asked for what they know."""
        return "known" in self.__dict__

    @cached_property
    def known(self) -> LineSpans:
        """Lines that were shown, of this version, or of earlier ones in which they are the same."""
        found = list(self.spans)
        for base, spans in self.kept:
            found += _carried(base, self.current, spans)
        return merged(found)

    @cached_property
    def kept(self) -> list[tuple[Snapshot, LineSpans]]:
        """Other versions whose bytes were kept, newest first, with the lines that were shown of them."""
        return list(self._kept())

    def _kept(self) -> Iterator[tuple[Snapshot, LineSpans]]:
        for one in self.seen:
            if one is self._shown or not one.sha256:
                continue
            try:
                data = self._store.blob(one.sha256)
            except SureholdError:  # too large to be kept, or given up since
                continue
            base = Snapshot(data, encoding=self.current.encoding)
            if len(data) + self.current.size <= _COMPARED:
                total = base.line_count if one.whole else 0
                yield base, ((1, total),) if total else one.spans

    def sighting(self, session: str, spans: LineSpans) -> Sighting:
        """Return these lines of the file, or its absence, as shown."""
        whole = not lacking(self.everything, spans) if self.current.exists else True
        return Sighting(session=session, path=self.path, sha256=self.current.sha256, spans=spans, whole=whole)


def relocated(touched: LineSpans, current: Snapshot, base: Snapshot) -> LineSpans:
    """Return where lines stood in an earlier version; none when that is not proven for all of them."""
    ranges = [LineRange(start=first - 1, end=last) for first, last in touched]
    places = relocate(current.lines.raw, base.lines.raw, ranges)
    found = [(place.start + 1, place.end) for place in places if isinstance(place, Moved)]
    return merged(found) if len(found) == len(places) else ()


def _carried(base: Snapshot, current: Snapshot, spans: LineSpans) -> Iterator[tuple[int, int]]:
    """Yield the lines of a version that are the same as lines which were shown of another."""
    for block in align(base.lines.raw, current.lines.raw):
        shift = block.b - block.a
        for start, end in within(spans, block.a + 1, block.a + block.size):
            yield start + shift, end + shift
