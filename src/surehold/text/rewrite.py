"""Edits by a whole content or a line number, for callers that quote nothing: create, overwrite, insert."""

import re
from dataclasses import dataclass

from surehold.errors import InvalidArgument
from surehold.text.align import align_lines, shared_ends
from surehold.text.encoding import Encoding, declaration_warnings, encoding_for_new_text
from surehold.text.plan import Correction, EditPlan, Span
from surehold.text.snapshot import Snapshot

_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class WriteBytes:
    """Make the file exactly these bytes."""

    data: bytes

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the bytes as they are, as one minimal span."""
        return _plan_replacement(before, self.data)


@dataclass(frozen=True, slots=True)
class WriteText:
    """Make the file say this text, in the encoding, byte order mark and line endings that it already has."""

    text: str

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the text; a new file gets it as it was sent."""
        encoding = before.encoding if before.data else encoding_for_new_text(self.text, before.encoding)
        text = self.text.removeprefix("\ufeff") if encoding.bom else self.text
        if not before.data:
            return _plan_replacement(before, encoding.bom + encoding.encode(text), encoding)
        adapted = _adapt_terminators(before, text)
        corrections = ()
        if adapted != encoding.encode(text):
            corrections = (
                Correction(type="line_endings_kept", detail=f"Line endings follow the file ({before.lines.style})."),
            )
        return _plan_replacement(before, encoding.bom + adapted, encoding, corrections)


@dataclass(frozen=True, slots=True)
class InsertLines:
    """Put lines after the line of this number, or at the top after 0, with the line endings of their neighbours."""

    after: int
    text: str

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the new lines; a last line without a line break stays the last, or gets one."""
        lines, encoding, after = before.lines, before.encoding, self.after
        if not 0 <= after <= len(lines):
            raise InvalidArgument(
                f"Nothing can be inserted after line {after} of {len(lines)}.",
                reason="no_such_line",
                action=f"Send a number from 0, the top of the file, to {len(lines)}.",
            )
        rows = self.text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        ends, head = lines.inherited_terminators(after, after, len(rows)), b""
        if after == len(lines) > 0 and not lines.final_newline:
            head, ends[-1] = lines.close_last_line(ends[0]), b""
        new = head + b"".join(encoding.encode(row) + end for row, end in zip(rows, ends, strict=True))
        at = lines.starts[after]
        return _plan_replacement(before, before.data[:at] + new + before.data[at:], encoding)


def _adapt_terminators(before: Snapshot, text: str) -> bytes:
    """Give the text's lines the terminators that the file uses."""
    lines, encoding = before.lines, before.encoding
    if lines.style == "none" or (lines.style == "lf" and "\r" not in text):
        return encoding.encode(text)
    split = _BREAK.split(text) if lines.style == "cr" else text.replace("\r\n", "\n").split("\n")
    rows = [encoding.encode(row) for row in split]
    last = rows.pop()  # what follows the final break; empty when the text ends with one
    if lines.style != "mixed":
        return b"".join(row + lines.dominant for row in rows) + last
    return b"".join(_keep_terminators(before, rows)) + last


def _keep_terminators(before: Snapshot, rows: list[bytes]) -> list[bytes]:
    """Let rows that the file has keep their terminator; new ones take that of the row above, else of the row below."""
    lines = before.lines
    known: dict[int, bytes] = {}
    ended = lines.contents if lines.final_newline else lines.contents[:-1]
    for block in align_lines(ended, rows):
        known.update((block.b + k, lines.terminator(block.a + k)) for k in range(block.size))
    out, current = list[bytes](), known[min(known)] if known else lines.dominant
    for number, row in enumerate(rows):
        current = known.get(number) or current
        out.append(row + current)
    return out


def _plan_replacement(
    before: Snapshot, data: bytes, encoding: Encoding | None = None, corrections: tuple[Correction, ...] = ()
) -> EditPlan:
    if not before.exists:
        return EditPlan(before=before, after=Snapshot(data, encoding=encoding), corrections=corrections)
    old = before.data
    head, tail = shared_ends(old, data)
    span = Span(start=head, end=len(old) - tail, new=data[head : len(data) - tail])
    if span.start == span.end and not span.new:
        return EditPlan(before=before, after=before, corrections=corrections)
    after = Snapshot(data, meta=before.meta, encoding=encoding)
    warnings = declaration_warnings(old, data, encoding) if encoding and old else ()
    return EditPlan(before=before, after=after, spans=(span,), corrections=corrections, warnings=warnings)
