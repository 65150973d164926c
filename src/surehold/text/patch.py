"""Patches: the `*** Begin Patch` envelope, unified diffs and git diffs, read into one shape.

1. Nothing is guessed. What can be read in two ways is refused, with the line of the patch and what was expected there.
2. A patch names every path once, and every hunk changes something.
3. Reading touches no file; `FilePatch.edit` is a recipe as any other, and refuses when the file is not as it says.
"""

from typing import Literal

from surehold.errors import PatchParseError
from surehold.text.patch_apply import AddPatched, DeletePatched, PatchHunks
from surehold.text.patch_envelope import BEGIN, SECTIONS, read_envelope
from surehold.text.patch_file import FilePatch, Format, Patch
from surehold.text.patch_hunk import Hunk, Row
from surehold.text.patch_names import same_key
from surehold.text.patch_source import Source
from surehold.text.patch_unified import is_header, read_unified

__all__ = ["AddPatched", "DeletePatched", "FilePatch", "Format", "Hunk", "Patch", "PatchHunks", "Row", "parse_patch"]

_EXPECTED = f"`{BEGIN}`, `diff --git a/path b/path`, or `--- a/path` and `+++ b/path`"


def parse_patch(text: str, *, format: Literal["auto", "envelope", "unified", "git"] = "auto") -> Patch:  # noqa: A002 - the tool's own word
    """Read a patch, or refuse with the line that cannot be read and what was expected there."""
    source = Source(text)
    found = _notation(source)
    if format != "auto" and found is not None and not _is_asked_for(found, format):
        source.skip_blank()
        raise source.refusal(
            f"a patch in the {format} notation",
            reason="other_format",
            said=f"this is the {found} notation, not {format}",
        )
    if found is None:
        source.skip_blank()
        reason = "empty" if source.row is None else "unknown_notation"
        raise source.refusal(_EXPECTED, reason=reason)
    files = read_envelope(source) if found == "envelope" else read_unified(source)
    if not files:
        raise source.refusal("a file to change", reason="empty")
    _refuse_duplicates(files)
    return Patch(format=found, files=files)


def _notation(source: Source) -> Format | None:
    """Recognise a notation by its first header; what stands before that may be a mail."""
    rows, found = source.rows, None
    for at in range(source.at, len(rows)):
        row = rows[at]
        if found is None and row.startswith("***") and row.strip().startswith((BEGIN, *SECTIONS)):
            return "envelope"
        if row.startswith("diff --git "):
            return "git"
        if found is None and is_header(row, rows[at + 1] if at + 1 < len(rows) else ""):
            found = "unified"
        elif found is None and row.strip() == BEGIN:
            return "envelope"
    return found


def _is_asked_for(found: Format, asked: str) -> bool:
    """Tell whether a notation is the one asked for; a git diff is a unified diff too."""
    return found == asked or (found, asked) == ("git", "unified")


def _refuse_duplicates(files: tuple[FilePatch, ...]) -> None:
    lines: dict[str, int] = {}
    for file in files:
        for path in filter(None, (file.path, file.to_path)):
            first = lines.setdefault(same_key(path), file.line)
            if first != file.line or (file.to_path and same_key(file.to_path) == same_key(file.path)):
                raise PatchParseError(
                    f"Line {file.line} of the patch: `{path}` is named again, after line {first}.",
                    path=path,
                    reason="duplicate_path",
                    action="Name every path once, with all of its hunks.",
                    line=file.line,
                    first_line=first,
                    expected="every path once",
                    found=path,
                )
