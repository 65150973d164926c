"""One difference in the words of each tool.

A text or a hunk that must be unique is given as much context as that takes, and no more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from replay.change import Difference, Hunk, applied
from surehold.text.quoted.edits import StringEdit

Json = dict[str, Any]
_CONTEXT = 3
_SLOW_STEPS = 16
_NOTE = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines `start` to `end` of the old version that occur once, and the hunks among them."""

    start: int
    end: int
    hunks: tuple[Hunk, ...]

    def old(self, lines: Sequence[str]) -> str:
        return "".join(lines[self.start : self.end])

    def new(self, lines: Sequence[str]) -> str:
        moved = [Hunk(h.start - self.start, h.end - self.start, h.new) for h in self.hunks]
        return "".join(applied(lines[self.start : self.end], moved))


def anchors_of(rows: str) -> list[str]:
    """Return what a model copies from the rows that read_file prints: all before the bar but the quality mark."""
    return [row.partition("|")[0].rstrip("!~") for row in rows.split("\n")]


def operations(difference: Difference, anchors: Sequence[str], hunks: Sequence[Hunk] | None = None) -> list[Json]:
    """Return some hunks, or all, as operations of `edit`, with one copied anchor for each end."""
    return [_operation(hunk, anchors, _content(difference, hunk)) for hunk in hunks or difference.hunks]


def _content(difference: Difference, hunk: Hunk) -> str:
    """Return the new lines; that a last line without terminator gets one is said by an empty row behind it."""
    before = difference.before.lines
    was_open = len(before) > 0 and not before.final_newline
    closes = was_open and hunk.end == len(before) and difference.after.lines.final_newline
    lone_cr = before.style == "cr"
    return "".join(f"{_bare(row, lone_cr=lone_cr)}\n" for row in hunk.new) + "\n" * (closes and bool(hunk.new))


def _operation(hunk: Hunk, anchors: Sequence[str], text: str) -> Json:
    lines = anchors[hunk.start : hunk.end]
    content = {"content": text} if hunk.new else {}
    verb = "replace" if hunk.new else "delete"
    if len(lines) > 1:
        return {"op": f"{verb}_range", "start_hash": lines[0], "end_hash": lines[-1], **content}
    if lines:
        return {"op": f"{verb}_line", "hash": lines[0], **content}
    if hunk.start:
        return {"op": "insert_after", "hash": anchors[hunk.start - 1], **content}
    return {"op": "insert_before", "hash": anchors[0] if anchors else "BOF", **content}


def string_edits(difference: Difference) -> list[Json]:
    """Return the hunks as exact-string edits that all look at the old version."""
    lines = difference.lines
    return [{"oldText": b.old(lines), "newText": b.new(lines)} for b in blocks(lines, difference.hunks)]


def sequential_edits(difference: Difference) -> tuple[StringEdit, ...]:
    """Return the hunks as exact-string edits that each look at the result of the one before."""
    staged, shift, edits = list(difference.lines), 0, list[StringEdit]()
    for start, end, new in difference.hunks:
        hunk = Hunk(start + shift, end + shift, new)
        (block,) = blocks(staged, [hunk])
        edits.append(StringEdit(old=block.old(staged), new=block.new(staged)))
        staged[hunk.start : hunk.end] = new
        shift += len(new) - (end - start)
    return tuple(edits)


def unified_patch(difference: Difference, path: str) -> str:
    """Return the patch that git makes, for a file of another name."""
    name = f"{path}\t" if " " in path else path
    return f"--- a/{name}\n+++ b/{name}\n" + difference.before.encoding.decode(difference.unified)


def envelope_patch(difference: Difference, path: str) -> str:
    """Return the hunks in the `*** Begin Patch` notation, each with the context that makes it unique."""
    lines = difference.lines
    rows = [row for block in blocks(lines, difference.hunks, context=_CONTEXT) for row in _rows(block, lines)]
    return "".join([f"*** Begin Patch\n*** Update File: {path}\n", *rows, "*** End Patch\n"])


def blocks(lines: Sequence[str], hunks: Sequence[Hunk], *, context: int = 0) -> list[Block]:
    """Return the hunks with so much context that each occurs once; those that come to overlap are one block."""
    text, found = "".join(lines), list[Block]()
    for hunk in hunks:
        start, end = _grown(text, lines, max(0, hunk.start - context), min(len(lines), hunk.end + context))
        own = (hunk,)
        while found and start < found[-1].end:
            last = found.pop()
            start, end, own = min(start, last.start), max(end, last.end), (*last.hunks, *own)
        found.append(Block(start=start, end=end, hunks=own))
    return found


def _grown(text: str, lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Return lines around these that occur once in the text; one more in turns above and below, then in leaps."""
    step, size = 0, 1
    while not _is_unique(text, "".join(lines[start:end])) and (start > 0 or end < len(lines)):
        if (step % 2 == 0 and start > 0) or end == len(lines):
            start = max(0, start - size)
        else:
            end = min(len(lines), end + size)
        step += 1
        size = 1 if step < _SLOW_STEPS else size * 2
    return start, end


def _is_unique(text: str, part: str) -> bool:
    at = text.find(part) if part else -1
    return at >= 0 and text.find(part, at + 1) < 0


def _rows(block: Block, lines: Sequence[str]) -> Iterator[str]:
    yield "@@\n"
    at = block.start
    for hunk in block.hunks:
        yield from (_row(" ", line) for line in lines[at : hunk.start])
        yield from (_row("-", line) for line in lines[hunk.start : hunk.end])
        yield from (_row("+", line) for line in hunk.new)
        at = hunk.end
    yield from (_row(" ", line) for line in lines[at : block.end])


def _row(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{_NOTE}"


def _bare(row: str, *, lone_cr: bool) -> str:
    """Return a line without its terminator."""
    if row.endswith("\n"):
        return row[:-1].removesuffix("\r")
    return row.removesuffix("\r") if lone_cr else row
