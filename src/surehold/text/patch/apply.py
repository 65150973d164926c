"""The files of a patch, and the edits that apply its hunks to their bytes.

1. Only lines with `-` or `+` are written; context keeps its bytes, terminators included.
2. A new line takes the terminator of the line it replaces, else of the one it follows, else of the one it precedes.
   Rows that quote CRLF and fit line by line are written as sent.
3. Whether the file ends in a newline changes only when the patch says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from surehold.errors import AlreadyExists, NotFound
from surehold.text.patch.hunks import EncodedHunk, EncodedLine, ParsedHunk, PatchLineIndex, encode_hunk
from surehold.text.patch.placement import HunkPlacement
from surehold.text.patch.refusals import PatchRefusals
from surehold.text.plan import Delete, Edit, EditOutcome, EditPlan, Keep, LineSpan, Span, splice_spans
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import ABSENT, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchUpdate:
    """Apply hunks, each in the one place where its lines are."""

    path: str
    hunks: tuple[ParsedHunk, ...]

    def plan(self, before: Snapshot) -> EditPlan:
        if not before.exists:
            raise NotFound(f"`{self.path}` does not exist.", path=self.path)
        if (span := _whole_file_span(before, self.hunks)) is not None:
            whole = splice_spans(before, [span])
            return replace(whole, applied=_applied_hunks(whole, [0], "exact"))
        blocks = [encode_hunk(number, hunk, before) for number, hunk in enumerate(self.hunks)]
        index = PatchLineIndex(before, blocks)
        trouble = PatchRefusals(self.path, index)
        places = HunkPlacement(index, trouble).find_places(blocks)
        wanted = list[tuple[Span, int, int]]()
        for block, at in zip(blocks, places, strict=True):
            spans = list(_changed_spans(index, block, at))
            if all(before.data[span.start : span.end] == span.new for span in spans):
                raise trouble.no_change(block, at)
            wanted += ((span, at, block.index) for span in spans)
        wanted.sort(key=lambda row: (row[0].start, row[0].end, row[1]))
        plan = splice_spans(before, [span for span, _, _ in wanted])
        tier = "exact" if before.lines.style in {"lf", "none"} else "line_endings"
        return plan.with_outcomes(_applied_hunks(plan, [owner for _, _, owner in wanted], tier))


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAddition:
    """Make a new file; one that exists is never overwritten."""

    path: str
    text: str

    def plan(self, before: Snapshot) -> EditPlan:
        if before.exists:
            raise AlreadyExists(f"`{self.path}` already exists.", path=self.path, actual_sha256=before.sha256)
        return WriteText(self.text).plan(before)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchDeletion(Delete):
    """Leave nothing of a file whose whole content the patch shows."""

    path: str
    hunks: tuple[ParsedHunk, ...]

    def plan(self, before: Snapshot) -> EditPlan:
        """Plan the absence, if the file holds what the patch deletes and nothing else."""
        if not before.exists:
            raise NotFound(f"`{self.path}` does not exist.", path=self.path)
        plan = PatchUpdate(path=self.path, hunks=self.hunks).plan(before) if self.hunks else None
        rest = plan.after if plan else before
        if rest.data != before.encoding.bom:
            raise PatchRefusals(self.path, PatchLineIndex(rest, ())).content_left(self.hunks)
        return EditPlan(before=before, after=ABSENT, applied=plan.applied if plan else ())


def _whole_file_span(before: Snapshot, hunks: Sequence[ParsedHunk]) -> Span | None:
    """Return the span of a hunk by a tool that takes a file of CR lines for one line, and so shows all of it."""
    old = hunks[0].old if len(hunks) == 1 and before.lines.style == "cr" else []
    if len(old) != 1 or old[0].ended or before.text != old[0].text:
        return None
    new = "".join(row.text + "\n" * row.ended for row in hunks[0].new)
    return Span(start=len(before.encoding.bom), end=before.size, new=before.encoding.encode(new))


def _changed_spans(index: PatchLineIndex, block: EncodedHunk, at: int) -> Iterator[Span]:
    as_sent = any(piece.has_cr for piece in block.pieces) and index.has_same_terminators(block, at)
    here = at
    for changed, group in groupby(block.pieces, key=lambda piece: piece.sign != " "):
        rows = list(group)
        gone = sum(piece.sign != "+" for piece in rows)
        if changed:
            added = [piece for piece in rows if piece.sign == "+"]
            yield _build_span(index.before, block, (here, here + gone), added, as_sent=as_sent)
        here += gone


def _build_span(
    before: Snapshot, block: EncodedHunk, old: tuple[int, int], added: list[EncodedLine], *, as_sent: bool
) -> Span:
    lines, (first, end) = before.lines, old
    ends = lines.inherited_terminators(first, end, len(added))
    if as_sent:
        ends = [before.encoding.encode_newline("\r\n" if piece.has_cr else "\n") for piece in added]
    head = b""
    if added and end == len(lines):
        keeps_open = len(lines) > 0 and not lines.final_newline and block.old_ended
        keeps_open = keeps_open and added[-1].content != b""  # a blank line is its terminator
        if not added[-1].ended or keeps_open:
            ends[-1] = b""
        if first == end and len(lines) and not lines.final_newline:
            # The line above was the last, and is not any more.
            head = lines.close_last_line(lines.inherited_terminators(first, end, 1)[0])
    new = head + b"".join(piece.content + stop for piece, stop in zip(added, ends, strict=True))
    return Span(start=lines.starts[first], end=lines.starts[end], new=new)


def _applied_hunks(plan: EditPlan, owners: Sequence[int], tier: str) -> tuple[EditOutcome, ...]:
    ranges: dict[int, list[LineSpan]] = {}
    for owner, row in zip(owners, plan.line_spans(), strict=True):
        ranges.setdefault(owner, []).append(row)
    return tuple(EditOutcome(index=i, occurrences=1, ranges=tuple(ranges[i]), tier=tier) for i in sorted(ranges))


PatchFormat = Literal["envelope", "unified", "git"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    operation: Literal["add", "update", "delete", "move"]
    path: str
    line: int
    """Where it begins in the patch."""
    to_path: str = ""
    hunks: tuple[ParsedHunk, ...] = ()
    mode: int | None = None
    """New permission bits, such as 0o755."""
    quotes_content: bool = False
    """A deletion shows all that it deletes, and that must be what is there."""

    @property
    def edit(self) -> Edit:
        if self.operation == "add":
            text = "".join(row.text + "\n" * row.ended for hunk in self.hunks for row in hunk.rows)
            return PatchAddition(path=self.path, text=text)
        if self.operation == "delete":
            return PatchDeletion(path=self.path, hunks=self.hunks) if self.quotes_content else Delete()
        return PatchUpdate(path=self.path, hunks=self.hunks) if self.hunks else Keep()

    @property
    def quotes_file(self) -> bool:
        """Whether rows of the patch quote the file, and so prove that its author saw it."""
        return any(hunk.old for hunk in self.hunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A whole patch, and in which notation it was written."""

    format: PatchFormat
    files: tuple[FilePatch, ...]

    @property
    def hunk_count(self) -> int:
        """How many hunks there are; the content of an added file is one."""
        return sum(len(file.hunks) for file in self.files)
