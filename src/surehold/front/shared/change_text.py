"""A change as a person reads it before they allow it: its totals, its rows, and which of them were not shown.

1. Everything is a row: what happens to each file, the warnings, the lines of the diffs. Nothing in a row can control a display.
2. A view shows every row if all of them fit. Else long rows lose their middle, and the last rows are left out; a row that
   is not shown whole counts as unseen.
3. The pages together show every row whole. Bytes that are not text are shown as hexadecimal rows.
4. A file that a move overwrites is shown as removed. Where a protected path is among the files, what moves is shown whole:
   the person may not have been asked when it was written.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from surehold.text.diff_rows import RowKind, classify_rows
from surehold.text.escape import reveal_text
from surehold.text.plan import EditPlan, diff_of_plan
from surehold.text.snapshot import ABSENT
from surehold.workspace.access.permission import PermissionRequest
from surehold.workspace.proposal import FileReceipt

if TYPE_CHECKING:
    from surehold.workspace.runs.questions import CommandQuestion

PAGE_CHARS = 200_000
_CUT_ROW_CHARS = 400
_HEX_ROW_BYTES = 32
_DECISIVE_KINDS = frozenset({"file", "warning", "added", "removed", "moved"})
"""The kinds of rows that say what happens; the others are what stays, and headings."""


class TextRow(NamedTuple):
    """One row for the person who is asked, escaped, without its line break."""

    kind: RowKind | Literal["file", "warning", "moved"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextView:
    """The rows that fit in one place."""

    rows: tuple[TextRow, ...]
    hidden: frozenset[int] = frozenset()
    """Positions of the decisive rows that it does not show whole."""


class ChangeText:
    """A change of one or several files, or what a command does, as rows. Worked out when it is first looked at, and once."""

    def __init__(
        self, files: Sequence[FileReceipt], command: "CommandQuestion | None" = None, *, is_protected: bool = False
    ) -> None:
        self._files, self._command, self._is_protected = tuple(files), command, is_protected

    @classmethod
    def of_request(cls, request: PermissionRequest) -> "ChangeText":
        return cls(request.files, request.command, is_protected=request.is_protected)

    @cached_property
    def rows(self) -> tuple[TextRow, ...]:
        if self._command:
            return tuple(_command_rows(self._command))
        found = [TextRow("file", reveal_text(one.summary)) for one in self._files]
        found += (TextRow("warning", reveal_text(text)) for one in self._files for text in one.warnings)
        for one in self._files:
            found += _diff_rows(one)
            if one.change.to_path:
                found += _move_rows(one, is_protected=self._is_protected)
        return tuple(found)

    @cached_property
    def totals(self) -> str:
        """How much it is: files, lines and bytes."""
        if self._command:
            return self._command.totals
        kinds = [row.kind for row in self.rows]
        count = len(self._files)
        before = sum(one.plan.before.size + one.displaced.size for one in self._files)
        after = sum(one.plan.after.size for one in self._files)
        lines = f"+{kinds.count('added'):,} −{kinds.count('removed'):,} lines"
        return f"{count:,} {'file' if count == 1 else 'files'}, {lines}, {before:,} → {after:,} bytes"

    def view(self, chars: int) -> TextView:
        """Return the rows that fit into so many characters."""
        if sum(len(row.text) + 1 for row in self.rows) <= chars:
            return TextView(rows=self.rows)
        shown, cut, room = list[TextRow](), set[int](), chars
        for index, row in enumerate(self.rows):
            short = row._replace(text=_cut_middle(row.text))
            room -= len(short.text) + 1
            if room < 0:
                break
            shown.append(short)
            if short.text != row.text:
                cut.add(index)
        hidden = (*cut, *range(len(shown), len(self.rows)))
        decisive = frozenset(index for index in hidden if self.rows[index].kind in _DECISIVE_KINDS)
        return TextView(rows=tuple(shown), hidden=decisive)

    @property
    def page_count(self) -> int:
        return len(self._pages)

    def page(self, number: int) -> tuple[TextRow, ...]:
        """Return the rows of a page; the first is number 1."""
        return tuple(row for _, row in self._pages[number - 1])

    def count_unseen(self, view: TextView, opened: Collection[int] = ()) -> int:
        """Count the decisive rows that neither the view nor an opened page shows whole."""
        if not view.hidden:
            return 0
        closed = (page for number, page in enumerate(self._pages, 1) if number not in opened)
        return len({index for page in closed for index, _ in page} & view.hidden)

    @cached_property
    def _pages(self) -> list[list[tuple[int, TextRow]]]:
        pages, room = [list[tuple[int, TextRow]]()], PAGE_CHARS
        for index, row in enumerate(self.rows):
            for start in range(0, max(len(row.text), 1), PAGE_CHARS):
                piece = row._replace(text=row.text[start : start + PAGE_CHARS])
                if len(piece.text) >= room and pages[-1]:
                    pages.append([])
                    room = PAGE_CHARS
                pages[-1].append((index, piece))
                room -= len(piece.text) + 1
        return pages


def unseen_lines(count: int) -> str:
    """Return what was not shown, in the words of an answer that allows it."""
    return f"{count:,} unseen {'line' if count == 1 else 'lines'}"


def _cut_middle(text: str) -> str:
    left = len(text) - _CUT_ROW_CHARS
    if left <= 0:
        return text
    half = _CUT_ROW_CHARS // 2
    return f"{text[:half]}[… {left:,} characters are not shown …]{text[-half:]}"


def _command_rows(command: "CommandQuestion") -> Iterator[TextRow]:
    import shlex

    yield TextRow("file", f"Command: {reveal_text(shlex.join(command.argv))}")
    if more := command.removed_count - len(command.removed):
        yield TextRow("removed", f"… {more:,} more, which were deleted before these")
    for path in command.removed:
        yield TextRow("removed", f"deleted: {reveal_text(path)}")
    yield TextRow("removed", f"{'to be changed' if command.is_protected else 'next'}: {reveal_text(command.next)}")


def _diff_rows(one: FileReceipt) -> Iterator[TextRow]:
    plan, to_name = one.plan, one.change.to_path or one.path
    cut = one.change.diff_truncated
    diff = diff_of_plan(plan, from_name=one.path, to_name=to_name, limit=None).text if cut else one.change.diff
    found = list(classify_rows(diff))
    content = [row for kind, row in found if kind in {"added", "removed", "same"}]
    # CRLF in every row is not news; CR in some rows only is the difference one looks for.
    hide_cr = bool(content) and all(row.endswith("\r") for row in content)
    for kind, row in found:
        yield TextRow(kind, reveal_text(row.removesuffix("\r") if hide_cr else row, keep="\t"))
    if plan.changes_bytes and plan.after.exists and not (plan.before.is_text and plan.after.is_text):
        yield from (TextRow("added", f"+{row}") for row in _hex_rows(plan.after.data))


def _move_rows(one: FileReceipt, *, is_protected: bool) -> Iterator[TextRow]:
    gone, after, name = one.displaced, one.plan.after, one.change.to_path
    if gone.exists:
        diff = diff_of_plan(EditPlan(before=gone, after=ABSENT), from_name=name, to_name=name, limit=None).text
        yield from (TextRow(kind, reveal_text(row, keep="\t")) for kind, row in classify_rows(diff))
    if is_protected:
        yield TextRow("header", f"All of {reveal_text(name)}:")
        rows = after.text.removesuffix("\n").split("\n") if after.is_text and after.size else _hex_rows(after.data)
        yield from (TextRow("moved", " " + reveal_text(row, keep="\t")) for row in rows)


def _hex_rows(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), _HEX_ROW_BYTES):
        yield f"{start:08x}  {data[start : start + _HEX_ROW_BYTES].hex(' ', 4)}"
