"""Reads the `*** Begin Patch` envelope.

    *** Begin Patch
    *** Add File: path            then rows with `+`
    *** Delete File: path
    *** Update File: path         [*** Move to: path]    then hunks
    *** Move File: path -> path   then hunks, or none
    *** End Patch

A hunk is `@@` or rows of `@@ a line above`, then rows with a blank, `-` or `+`, then perhaps `*** End of File`.
A row without any character is an empty line of the file, except beside a marker, where it is only spacing.
Blanks around the first and the last marker are only spacing too.
"""

import re
from typing import Literal

from surehold.text.patch.apply import FilePatch
from surehold.text.patch.hunks import LINE_SIGNS, ParsedHunk, PatchLine
from surehold.text.patch.source import PatchSource

BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move File:"
_MOVE_TO, _END_OF_FILE = "*** Move to:", "*** End of File"
SECTIONS = (_ADD, _DELETE, _UPDATE, _MOVE)
_KNOWN_MARKERS = ", ".join(f"`{marker}`" for marker in (*SECTIONS, _MOVE_TO, _END_OF_FILE, END))
_LINE_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
_NO_NEWLINE_NOTE = "\\ No newline at end of file"


def read_envelope(source: PatchSource) -> tuple[FilePatch, ...]:
    """Read all files of an envelope, or refuse with the row that does not fit."""
    _trim_end_marker(source.rows)
    if _next_marker(source) != BEGIN:
        raise source.build_refusal(f"`{BEGIN}`", "no_begin")
    source.at += 1
    files = list[FilePatch]()
    while True:
        source.skip_blank()
        marker = _next_marker(source)
        if marker == END:
            break
        files.append(_read_section(source, marker))
    source.at += 1
    source.skip_blank()
    if source.next_row is not None:
        raise source.build_refusal(f"nothing after `{END}`", "text_after_end")
    return tuple(files)


def _trim_end_marker(rows: list[str]) -> None:
    """Take blanks before the last marker away: the last row of a patch can be nothing else."""
    last = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].strip()), None)
    if last is not None and rows[last].strip() == END:
        rows[last] = END


def _read_section(source: PatchSource, marker: str | None) -> FilePatch:
    line = source.line_number
    kind = next((section for section in SECTIONS if marker and marker.startswith(section)), None)
    if marker is None:
        raise source.build_refusal(f"`{END}`", "truncated")
    if kind is None:
        reason = "unknown_header" if marker.startswith("***") else "bad_line"
        raise source.build_refusal(f"one of {_KNOWN_MARKERS}", reason)
    path = _path_after(source, marker, kind)
    source.at += 1
    if kind == _ADD:
        return FilePatch(operation="add", path=path, line=line, hunks=_read_added_file(source))
    if kind == _DELETE:
        return FilePatch(operation="delete", path=path, line=line)
    to_path = ""
    if kind == _MOVE:
        path, to_path = _split_move(source, path, line)
    source.skip_blank()
    moved = _next_marker(source)
    if moved and moved.startswith(_MOVE_TO) and not to_path:
        to_path = _path_after(source, moved, _MOVE_TO)
        source.at += 1
    hunks = _read_hunks(source)
    if not hunks and not to_path:
        raise source.build_refusal("a hunk of this file", "no_hunks")
    operation: Literal["move", "update"] = "move" if to_path else "update"
    return FilePatch(operation=operation, path=path, to_path=to_path, line=line, hunks=hunks)


def _read_added_file(source: PatchSource) -> tuple[ParsedHunk, ...]:
    """Read the rows of a new file: one hunk, or none for an empty file."""
    line, rows = source.line_number, list[PatchLine]()
    while (row := source.next_row) is not None and row.startswith(("+", _NO_NEWLINE_NOTE)):
        if row[0] == "+":
            rows.append(PatchLine("+", row[1:]))
        else:
            source.mark_unended(rows)
        source.at += 1
    source.skip_blank()
    if source.next_row is not None and not source.next_row.startswith("***"):
        raise source.build_refusal("a row that begins with `+`, or the next `***` marker")
    return (source.accept_hunk(ParsedHunk(rows=tuple(rows), line=line)),) if rows else ()


def _read_hunks(source: PatchSource) -> tuple[ParsedHunk, ...]:
    hunks = list[ParsedHunk]()
    while True:
        source.skip_blank()
        row = source.next_row
        if row is None or (row.startswith("***") and _next_marker(source) != _END_OF_FILE):
            return tuple(hunks)
        hunks.append(_read_hunk(source))


def _read_hunk(source: PatchSource) -> ParsedHunk:
    line, anchors = source.line_number, list[str]()
    while (head := source.next_header) is not None and head.startswith("@@"):
        anchors += _read_anchor(source, head)
        source.at += 1
    source.skip_empty()  # a row of one blank is context: an empty line of the file
    rows = _read_rows(source)
    at_end = _next_marker(source) == _END_OF_FILE
    if not rows:
        raise source.build_refusal("a row that begins with a blank, `-` or `+`", "empty_hunk")
    source.at += at_end
    return source.accept_hunk(ParsedHunk(rows=rows, line=line, anchors=tuple(anchors), at_end=at_end))


def _read_anchor(source: PatchSource, head: str) -> list[str]:
    text = head[2:]
    if text.strip() and not text.startswith((" ", "\t")):
        raise source.build_refusal("`@@`, a blank, and a line above the hunk")
    # Numbers that are not checked would be a guess; the rows themselves say where they belong.
    return [] if not text.strip() or _LINE_NUMBERS.fullmatch(text.strip()) else [text.strip()]


def _read_rows(source: PatchSource) -> tuple[PatchLine, ...]:
    rows, spacing = list[PatchLine](), 0
    while (row := source.next_row) is not None and not row.startswith(("***", "@@")):
        if row.startswith(_NO_NEWLINE_NOTE):
            source.mark_unended(rows)
        elif row[:1] in LINE_SIGNS:
            rows.append(PatchLine(LINE_SIGNS[row[0]], row[1:]))
        elif not row.strip():
            rows.append(PatchLine(" ", row))
        else:
            raise source.build_refusal("a row that begins with a blank, `-` or `+`, or a marker")
        spacing = 0 if row.removesuffix("\r") else spacing + 1
        source.at += 1
    return tuple(rows[: len(rows) - spacing])


def _next_marker(source: PatchSource) -> str | None:
    return None if source.next_row is None else source.next_row.strip()


def _path_after(source: PatchSource, marker: str, kind: str) -> str:
    path = marker[len(kind) :].strip()
    if not path:
        raise source.build_refusal(f"a path after `{kind}`", "no_path")
    return path


def _split_move(source: PatchSource, text: str, line: int) -> tuple[str, str]:
    pair = [part.strip() for part in text.split(" -> ")]
    if len(pair) != 2 or not all(pair):  # noqa: PLR2004 - from and to
        action = "When a path itself holds an arrow, write `*** Update File:` with `*** Move to:`."
        raise source.build_refusal("`*** Move File: from -> to`", "no_path", line=line, action=action)
    return pair[0], pair[1]
