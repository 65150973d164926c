"""The `*** Begin Patch` envelope.

    *** Begin Patch
    *** Add File: path            then rows with `+`
    *** Delete File: path
    *** Update File: path         [*** Move to: path]    then hunks
    *** Move File: path -> path   then hunks, or none
    *** End Patch

A hunk is `@@` or rows of `@@ a line above`, then rows with a blank, `-` or `+`, then perhaps `*** End of File`.
A row without any character is an empty line of the file, except beside a marker, where it is only spacing.
"""

import re
from typing import Literal

from surehold.text.patch_file import FilePatch
from surehold.text.patch_hunk import Hunk, Row, Sign
from surehold.text.patch_source import Source

BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move File:"
_MOVE_TO, _END_OF_FILE = "*** Move to:", "*** End of File"
SECTIONS = (_ADD, _DELETE, _UPDATE, _MOVE)
_KNOWN = ", ".join(f"`{marker}`" for marker in (*SECTIONS, _MOVE_TO, _END_OF_FILE, END))
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
_NOTE = "\\ No newline at end of file"
_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}


def read_envelope(source: Source) -> tuple[FilePatch, ...]:
    """Read all files of an envelope, or refuse with the row that does not fit."""
    if _marker(source) != BEGIN:
        raise source.refusal(f"`{BEGIN}`", reason="no_begin")
    source.at += 1
    files = list[FilePatch]()
    while True:
        source.skip_blank()
        marker = _marker(source)
        if marker == END:
            break
        files.append(_file(source, marker))
    source.at += 1
    source.skip_blank()
    if source.row is not None:
        raise source.refusal(f"nothing behind `{END}`", reason="text_after_end")
    return tuple(files)


def _file(source: Source, marker: str | None) -> FilePatch:
    line = source.line
    kind = next((section for section in SECTIONS if marker and marker.startswith(section)), None)
    if marker is None:
        raise source.refusal(f"`{END}`", reason="truncated")
    if kind is None:
        raise source.refusal(f"one of {_KNOWN}", reason="unknown_header" if marker.startswith("***") else "bad_line")
    path = _path(source, marker, kind)
    source.at += 1
    if kind == _ADD:
        return FilePatch(operation="add", path=path, line=line, hunks=_content(source))
    if kind == _DELETE:
        return FilePatch(operation="delete", path=path, line=line)
    to_path = ""
    if kind == _MOVE:
        path, to_path = _both(source, path, line)
    source.skip_blank()
    moved = _marker(source)
    if moved and moved.startswith(_MOVE_TO) and not to_path:
        to_path = _path(source, moved, _MOVE_TO)
        source.at += 1
    hunks = _hunks(source)
    if not hunks and not to_path:
        raise source.refusal("a hunk of this file", reason="no_hunks")
    operation: Literal["move", "update"] = "move" if to_path else "update"
    return FilePatch(operation=operation, path=path, to_path=to_path, line=line, hunks=hunks)


def _content(source: Source) -> tuple[Hunk, ...]:
    """Read the rows of a new file: one hunk, or none for an empty file."""
    line, rows = source.line, list[Row]()
    while (row := source.row) is not None and row.startswith(("+", _NOTE)):
        if row[0] == "+":
            rows.append(Row("+", row[1:]))
        else:
            source.mark_unended(rows)
        source.at += 1
    source.skip_blank()
    if source.row is not None and not source.row.startswith("***"):
        raise source.refusal("a row that begins with `+`, or the next `***` marker")
    return (source.accepted(Hunk(rows=tuple(rows), line=line)),) if rows else ()


def _hunks(source: Source) -> tuple[Hunk, ...]:
    hunks = list[Hunk]()
    while True:
        source.skip_blank()
        row = source.row
        if row is None or (row.startswith("***") and _marker(source) != _END_OF_FILE):
            return tuple(hunks)
        hunks.append(_hunk(source))


def _hunk(source: Source) -> Hunk:
    line, anchors = source.line, list[str]()
    while (head := source.head) is not None and head.startswith("@@"):
        anchors += _anchor(source, head)
        source.at += 1
    source.skip_empty()  # a row of one blank is context: an empty line of the file
    rows = _rows(source)
    at_end = _marker(source) == _END_OF_FILE
    if not rows:
        raise source.refusal("a row that begins with a blank, `-` or `+`", reason="empty_hunk")
    source.at += at_end
    return source.accepted(Hunk(rows=rows, line=line, anchors=tuple(anchors), at_end=at_end))


def _anchor(source: Source, head: str) -> list[str]:
    text = head[2:]
    if text.strip() and not text.startswith((" ", "\t")):
        raise source.refusal("`@@`, a blank, and a line that stands above the hunk")
    # Numbers that nobody checks would be a guess; the rows themselves say where they belong.
    return [] if not text.strip() or _NUMBERS.fullmatch(text.strip()) else [text.strip()]


def _rows(source: Source) -> tuple[Row, ...]:
    rows, spacing = list[Row](), 0
    while (row := source.row) is not None and not row.startswith(("***", "@@")):
        if row.startswith(_NOTE):
            source.mark_unended(rows)
        elif row[:1] in _SIGNS:
            rows.append(Row(_SIGNS[row[0]], row[1:]))
        elif not row.strip():
            rows.append(Row(" ", row))
        else:
            raise source.refusal("a row that begins with a blank, `-` or `+`, or a marker")
        spacing = 0 if row.removesuffix("\r") else spacing + 1
        source.at += 1
    return tuple(rows[: len(rows) - spacing])


def _marker(source: Source) -> str | None:
    return None if source.row is None else source.row.strip()


def _path(source: Source, marker: str, kind: str) -> str:
    path = marker[len(kind) :].strip()
    if not path:
        raise source.refusal(f"a path behind `{kind}`", reason="no_path")
    return path


def _both(source: Source, text: str, line: int) -> tuple[str, str]:
    pair = [part.strip() for part in text.split(" -> ")]
    if len(pair) != 2 or not all(pair):  # noqa: PLR2004 - from and to
        raise source.refusal(
            "`*** Move File: from -> to`",
            line=line,
            reason="no_path",
            action="When a path itself holds an arrow, write `*** Update File:` with `*** Move to:`.",
        )
    return pair[0], pair[1]
