"""The text of a patch, row by row, without a code fence or here-document around it.

1. Rows are counted as they were sent, wrapping included, so that an error names the line its sender sees.
2. When every row ends in CRLF, the CR belongs to the transport and says nothing about the files.
"""

import re

from surehold.errors import PatchParseError
from surehold.text.escape import quote_line
from surehold.text.patch.hunks import ParsedHunk, PatchLine

_HEREDOC = re.compile(r"[^<]{0,200}<<-?[ \t]*(['\"]?)(\w{1,80})\1[ \t]*")
_PREVIEW_CHARS = 120


class PatchSource:
    """The rows of a patch, and how far they are read."""

    def __init__(self, text: str) -> None:
        travelled = "\r\n" in text and text.count("\n") == text.count("\r\n")
        rows = (text.replace("\r\n", "\n") if travelled else text).split("\n")
        begin, end = _unwrap_rows(rows)
        self.rows = rows[:end]
        self.at = begin

    @property
    def next_row(self) -> str | None:
        return self.rows[self.at] if self.at < len(self.rows) else None

    @property
    def next_header(self) -> str | None:
        """The next row as a header: without the CR that an editor may have left there."""
        return self.next_row and self.next_row.removesuffix("\r")

    @property
    def row_after_next(self) -> str:
        """The row after the next one; empty when there is none."""
        return self.rows[self.at + 1] if self.at + 1 < len(self.rows) else ""

    @property
    def line_number(self) -> int:
        return self.at + 1

    def skip_blank(self) -> None:
        while self.at < len(self.rows) and not self.rows[self.at].strip():
            self.at += 1

    def skip_empty(self) -> None:
        while self.at < len(self.rows) and not self.rows[self.at].removesuffix("\r"):
            self.at += 1

    def mark_unended(self, rows: list[PatchLine]) -> None:
        r"""Read the note `\ No newline at end of file` about the row before it."""
        if not rows or not rows[-1].ended:
            raise self.build_refusal("a row of the file before this note", "stray_note")
        rows[-1] = rows[-1]._replace(ended=False)

    def accept_hunk(self, hunk: ParsedHunk) -> ParsedHunk:
        """Return a hunk that makes sense, or refuse it."""
        if any(not row.ended for side in (hunk.old, hunk.new) for row in side[:-1]):
            said = "a row of this hunk follows `\\ No newline at end of file`, where the file ends"
            raise self.build_refusal("the end of the hunk after that note", "rows_after_end", line=hunk.line, said=said)
        if [row[1:] for row in hunk.old] == [row[1:] for row in hunk.new]:
            wanted = "a row with `-` or `+` that changes a line"
            said = "this hunk changes nothing: both of its sides are the same"
            raise self.build_refusal(wanted, "no_change", line=hunk.line, said=said)
        return hunk

    def build_refusal(
        self, expected: str, reason: str = "bad_line", *, line: int = 0, said: str = "", action: str | None = None
    ) -> PatchParseError:
        """Return the error for a row, by default the next one: what was expected there, and what was found."""
        number = line or self.line_number
        is_row = number <= len(self.rows)
        found = self.rows[number - 1].removesuffix("\r") if is_row else ""
        quoted = quote_line(found, _PREVIEW_CHARS) if is_row else "the end of the patch"
        message = f"Line {number} of the patch: {said or f'expected {expected}, found {quoted}'}."
        return PatchParseError(message, reason=reason, action=action, line=number, expected=expected, found=found)


def _unwrap_rows(rows: list[str]) -> tuple[int, int]:
    """Return where the patch begins and ends, without blank rows, a code fence and a here-document around it.

    Blank rows at the end stay: they may be empty lines of the last hunk.
    """
    begin, end = 0, len(rows) - (not rows[-1])
    for _ in range(3):  # a fence around a here-document around a fence; deeper wrapping is not known
        while begin < end and not rows[begin].strip():
            begin += 1
        last = end
        while last > begin and not rows[last - 1].strip():
            last -= 1
        word = _closing_word(rows[begin]) if last - begin > 1 else None
        if word is None or rows[last - 1].strip() != word:
            break
        begin, end = begin + 1, last - 1
    return begin, end


def _closing_word(row: str) -> str | None:
    opened = row.strip()
    if opened.startswith("```"):
        return "`" * (len(opened) - len(opened.lstrip("`")))
    match = _HEREDOC.fullmatch(opened)
    return match[2] if match else None
