"""Reads unified diffs, plain or as git writes them.

1. The counts in a hunk's header must match its rows: a missing or extra row is an error, never skipped.
2. Text before the first file is skipped, such as that of a mail; after a hunk only known rows are allowed.
3. What cannot be applied exactly is refused: copies, binary patches, links, submodules, one header with two names.
"""

import re
from typing import NamedTuple

from surehold.errors import PatchParseError
from surehold.text.patch.apply import FilePatch
from surehold.text.patch.headers import GitHeader, is_absent_side, read_git_header, read_name, strip_prefixes
from surehold.text.patch.hunks import LINE_SIGNS, ParsedHunk, PatchLine
from surehold.text.patch.source import PatchSource
from surehold.text.plan import DEV_NULL

_RANGES = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?:[ \t].*)?")
_MAIL_SIGNATURE = "-- "
_NO_NEWLINE_NOTE = "\\ "
"""How the note about a missing newline begins, in any language."""
_ROWS_BETWEEN_FILES = ("diff ", "Index: ", "index ", "=====", "Only in ", "From ", "Prereq: ")
"""How rows between two files may begin; anything else could be a row of the hunk before."""


class _HeaderNames(NamedTuple):
    old: str
    new: str
    line: int
    raw: tuple[str, str]
    """As they are written there, prefixes included."""


def read_unified(source: PatchSource) -> tuple[FilePatch, ...]:
    """Read all files of a diff, or refuse with the row that does not fit."""
    files = list[FilePatch]()
    while _find_header(source, is_first=not files):
        files.append(_read_file_patch(source))
    return tuple(files)


def is_header(row: str, following: str) -> bool:
    return row.startswith("diff --git ") or (row.startswith("--- ") and following.startswith("+++ "))


def _find_header(source: PatchSource, *, is_first: bool) -> bool:
    """Skip what is between two files; False when there is no further one."""
    in_mail = is_first
    while (row := source.next_row) is not None:
        if is_header(row, source.row_after_next):
            return True
        if row.startswith("@@ -"):
            raise source.build_refusal("`--- a/path` and `+++ b/path` before the hunk", "no_header")
        _refuse_binary(source)
        in_mail = in_mail or row.startswith("From ")
        if _is_signature(source):
            source.at += 1  # and with it the version of git below it
        elif not in_mail and row.strip() and not row.startswith(_ROWS_BETWEEN_FILES):
            raise source.build_refusal("a hunk, the header of the next file, or the end", "text_after_hunk")
        source.at += 1
    return False


def _read_file_patch(source: PatchSource) -> FilePatch:
    line = source.line_number
    head = source.next_header or ""
    header = read_git_header(source) if head.startswith("diff --git ") else GitHeader(line=line)
    _refuse_binary(source)
    names = None
    if (row := source.next_row) is not None and row.startswith("--- ") and source.row_after_next.startswith("+++ "):
        names = _read_names(source)
    hunks = _read_hunks(source) if names else ()
    if names and not hunks:
        raise source.build_refusal("a hunk that begins with `@@ -line,count +line,count @@`", "no_hunks")
    return _build_file_patch(source, _with_names(source, header, names), hunks)


def _read_names(source: PatchSource) -> _HeaderNames:
    line, found = source.line_number, list[tuple[str, str]]()
    for marker in ("--- ", "+++ "):
        read = read_name((source.next_header or "").removeprefix(marker))
        if read is None or not read[0]:
            raise source.build_refusal(f"`{marker}` and a path, quoted as git does", "no_path")
        found.append(read)
        source.at += 1
    (old, old_date), (new, new_date) = found
    was_there, is_there = _first_counts(source)
    bare_old, bare_new = strip_prefixes(old, new)
    if not was_there and is_absent_side(old, old_date):
        bare_old = DEV_NULL
    if not is_there and is_absent_side(new, new_date):
        bare_new = DEV_NULL
    return _HeaderNames(bare_old, bare_new, line, (old, new))


def _first_counts(source: PatchSource) -> tuple[bool, bool]:
    """Tell which sides of the first hunk have any line at all: an old date alone does not make a file absent."""
    match = _RANGES.fullmatch(source.next_header or "")
    if not match:
        return True, True
    return (match[1], match[2]) != ("0", "0"), (match[3], match[4]) != ("0", "0")


def _with_names(source: PatchSource, header: GitHeader, names: _HeaderNames | None) -> GitHeader:
    """Join what both headers say about the names, which must agree."""
    if names is None:
        return header
    old, new, line, _ = names
    if old == new == DEV_NULL:
        raise source.build_refusal("a path on one side at least", "no_path", line=line)
    header = header._replace(adds=header.adds or old == DEV_NULL, deletes=header.deletes or new == DEV_NULL)
    if header.old:  # else the first row alone did not tell the names
        _require_same_names(source, header, names)
        return header
    if DEV_NULL not in {old, new} and old != new:
        said = f"the header names two files, `{old}` and `{new}`"
        action = "Write the file's own path on both sides, or a git diff with `rename from` and `rename to`."
        raise source.build_refusal("the same path on both sides", "two_names", line=line, said=said, action=action)
    return header._replace(old=old, new=new)


def _require_same_names(source: PatchSource, header: GitHeader, names: _HeaderNames) -> None:
    """Compare with the names that the rows above gave, which say which prefix there is."""
    given = (DEV_NULL if header.adds else header.old, DEV_NULL if header.deletes else header.new)
    for name, expected, row in zip(names.raw, given, (names.line, names.line + 1), strict=True):
        if name != expected and (name[1:2] != "/" or name[2:] != expected or expected == DEV_NULL):
            said = f"this name (`{name}`) is not that of the rows above (`{expected}`)"
            raise source.build_refusal(f"`{expected}`, as in the rows above", "names_disagree", line=row, said=said)


def _build_file_patch(source: PatchSource, header: GitHeader, hunks: tuple[ParsedHunk, ...]) -> FilePatch:
    line, old, new = header.line, header.old, header.new
    if not (old or new):
        raise source.build_refusal("two paths that can be told apart", "no_path", line=line)
    if header.adds and header.deletes:
        raise source.build_refusal("a file that is added or deleted, not both", "contradiction", line=line)
    if header.adds:
        if len(hunks) > 1 or any(row.sign != "+" for hunk in hunks for row in hunk.rows):
            raise source.build_refusal("one hunk with only `+` rows for a new file", "old_lines_of_new_file", line=line)
        return FilePatch(operation="add", path=new, line=line, hunks=hunks, mode=header.mode)
    if header.deletes:
        if any(row.sign != "-" for hunk in hunks for row in hunk.rows):
            raise source.build_refusal("only `-` rows for a deleted file", "new_lines_of_deleted_file", line=line)
        return FilePatch(operation="delete", path=old, line=line, hunks=hunks, quotes_content=True)
    if header.renames:
        return FilePatch(operation="move", path=old, to_path=new, line=line, hunks=hunks, mode=header.mode)
    if not hunks and header.mode is None:
        raise source.build_refusal("a hunk, a rename or another mode", "no_hunks")
    return FilePatch(operation="update", path=old, line=line, hunks=hunks, mode=header.mode)


def _read_hunks(source: PatchSource) -> tuple[ParsedHunk, ...]:
    hunks = list[ParsedHunk]()
    while (head := source.next_header) is not None and head.startswith("@@"):
        hunks.append(_read_hunk(source, head))
    return tuple(hunks)


def _read_hunk(source: PatchSource, head: str) -> ParsedHunk:
    match = _RANGES.fullmatch(head)
    if not match:
        raise source.build_refusal("`@@ -line,count +line,count @@`", "bad_hunk_header")
    line = source.line_number
    said = (int(match[2] or 1), int(match[4] or 1))
    source.at += 1
    rows = _read_rows(source, said)
    if rows is None or _has_uncounted_rows(source):
        raise _miscount_refusal(source, line, said)
    return source.accept_hunk(ParsedHunk(rows=tuple(rows), line=line, start=int(match[1])))


def _read_rows(source: PatchSource, said: tuple[int, int]) -> list[PatchLine] | None:
    """Read as many rows as the header counts; None when they are fewer, or do not add up."""
    old, new = said
    rows = list[PatchLine]()
    while (row := source.next_row) is not None and (old > 0 or new > 0 or row.startswith(_NO_NEWLINE_NOTE)):
        if row.startswith(_NO_NEWLINE_NOTE):
            source.mark_unended(rows)
        elif row[:1] in LINE_SIGNS or not row.removesuffix("\r"):
            sign = LINE_SIGNS.get(row[:1], " ")
            rows.append(PatchLine(sign, row[1:] if row[:1] in LINE_SIGNS else row))
            old, new = old - (sign != "+"), new - (sign != "-")
        else:
            return None
        source.at += 1
    return rows if (old, new) == (0, 0) else None


def _has_uncounted_rows(source: PatchSource) -> bool:
    row = source.next_row or ""
    is_row = row[:1] in {*LINE_SIGNS, "\\"} and not is_header(row, source.row_after_next)
    return is_row and not _is_signature(source)


def _is_signature(source: PatchSource) -> bool:
    """Tell whether a mail ends here; a removed line that begins with `- ` looks alike, but rows follow it."""
    below = source.rows[source.at + 1 : source.at + 3]
    if source.next_header != _MAIL_SIGNATURE or not (below and below[0].strip()):
        return False
    return not any(row[:1] in {*LINE_SIGNS, "\\", "@"} for row in below)


def _miscount_refusal(source: PatchSource, line: int, said: tuple[int, int]) -> PatchParseError:
    """Count the rows that are there, up to the next header, and say both numbers."""
    old = new = 0
    source.at = line
    while (row := source.next_row) is not None and not is_header(row, source.row_after_next):
        if row.removesuffix("\r") and row[0] not in {*LINE_SIGNS, "\\"}:
            break
        blank_end = not row.removesuffix("\r") and not source.row_after_next
        old += row[:1] not in {"+", "\\"} and not blank_end
        new += row[:1] not in {"-", "\\"} and not blank_end
        source.at += 1
    expected = f"{said[0]} old and {said[1]} new lines"
    stop, row = "", source.next_row
    if row and not row.startswith("@@") and not is_header(row, source.row_after_next):
        stop = f", then comes line {source.line_number}, which is not a row of a hunk"
    told = f"the header of this hunk counts {expected}, but {old} old and {new} new lines follow{stop}"
    action = "Correct the counts, or complete the rows; every row begins with a blank, `-` or `+`."
    error = source.build_refusal(expected, "wrong_count", line=line, said=told, action=action)
    error.details.update(old_lines=said[0], new_lines=said[1], old_rows=old, new_rows=new)
    return error


def _refuse_binary(source: PatchSource) -> None:
    if (source.next_row or "").startswith(("GIT binary patch", "Binary files ")):
        said = "this is a binary patch, which cannot be applied here"
        action = "Leave that file out of the patch and copy it instead."
        raise source.build_refusal("a text patch", "binary_patch", said=said, action=action)
