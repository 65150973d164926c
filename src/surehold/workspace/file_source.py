"""Read lines of a file, either loaded into memory or, if it is large, streamed from disk."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surehold.disk.base import Target
from surehold.errors import FileTooLarge
from surehold.text.measure import TextRoom
from surehold.text.page import FilePage, page_from_snapshot
from surehold.text.snapshot import Snapshot
from surehold.workspace.paths import AnyPath
from surehold.workspace.session import Session
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.text.anchored.lines import AnchoredLine

_MAX_IN_MEMORY_BYTES = 8 << 20
"""Larger files are read in one pass without being held."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file to show lines of: in memory, or streamed from disk if it is too large to be held."""

    workspace: Workspace
    target: Target
    encoding: str | None
    snapshot: Snapshot | None
    """The whole of it, when it is held."""

    def read_page(self, start: int, count: int, max_bytes: int) -> FilePage:
        """Return some lines, and the facts about all of it; `BinaryFile` when there are none."""
        if self.snapshot is not None:
            return page_from_snapshot(self.snapshot, start=start, count=count, max_bytes=max_bytes)
        return self.workspace.page(self.target, start=start, count=count, max_bytes=max_bytes, encoding=self.encoding)

    def line_digests(self, page: FilePage) -> Iterator[Sequence[int]]:
        """Yield the digests of all lines; of a streamed file, in a second pass."""
        held = self.snapshot
        if held is None and page.file_encoding.width > 1:
            # Digests are of the file's own bytes, which a pass as UTF-8 does not show.
            held = self.workspace.read(self.target, encoding=self.encoding)
        if held is not None:
            yield held.digests
            return
        from surehold.text.anchored.lines import stream_digests

        breaker = b"\r" if page.style == "cr" else b"\n"
        yield from stream_digests(self.workspace.read_chunks(self.target), page.encoding, breaker=breaker)


def open_source(session: Session, path: AnyPath, encoding: str | None) -> FileSource:
    workspace, target = session.workspace, session.workspace.target(path)
    snapshot = None
    with suppress(FileTooLarge):
        snapshot = workspace.reader.read(target, encoding=encoding, limit=_MAX_IN_MEMORY_BYTES, session=session.id)
    return FileSource(workspace, target, encoding, snapshot)


def anchored_rows(source: FileSource, page: FilePage) -> tuple["AnchoredLine", ...]:
    """Return the lines of a page with their anchors; none for a line of which only the beginning is at hand."""
    from surehold.text.anchored.lines import anchor_lines  # most pages are read without anchors

    if source.snapshot is None and page.cut:
        return ()
    if source.snapshot is not None:  # an anchor is of the whole line, also where the page cuts it
        contents = source.snapshot.lines.contents[page.start - 1 : page.start - 1 + len(page.rows)]
        found = anchor_lines(contents, source.line_digests(page), start=page.start, encoding=page.encoding)
        return (replace(found[0], text=page.text),) if page.cut else found
    contents = [_strip_terminator(row, page) for row in page.rows]
    if page.file_encoding.width > 1:
        own = page.file_encoding  # the file's own bytes decide, not their UTF-8
        contents = [own.encode(page.encoding.decode(content)) for content in contents]
        return anchor_lines(contents, source.line_digests(page), start=page.start, encoding=own)
    return anchor_lines(contents, source.line_digests(page), start=page.start, encoding=page.encoding)


def cut_page_to_fit(
    page: FilePage, texts: Sequence[str], room: TextRoom, *, end: str = ""
) -> tuple[FilePage, Sequence[str]]:
    """Keep the whole lines that fit, as they are shown; the first one stays in any case, cut when it alone is too long."""
    kept = room.count_fitting(texts, end=end)
    if kept == len(page.rows):
        return page, texts
    if kept:
        return replace(page, rows=page.rows[:kept], cut=False), texts[:kept]
    return replace(page, rows=page.rows[:1], cut=True), [room.cut_text(texts[0])]


def _strip_terminator(row: bytes, page: FilePage) -> bytes:
    newline = page.encoding.encode_newline
    if page.style == "cr":
        return row.removesuffix(newline("\r"))
    bare = row.removesuffix(newline("\n"))
    return bare.removesuffix(newline("\r")) if len(bare) < len(row) else row
