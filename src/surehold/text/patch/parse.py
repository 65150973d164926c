"""Parses a patch in any notation: the `*** Begin Patch` envelope, a unified diff or a git diff.

1. Nothing is guessed. What can be read in two ways is refused, with the line of the patch and what was expected there.
2. A patch names every path once, and every hunk changes something.
3. Parsing reads no file; `FilePatch.edit` is an edit like any other and refuses when the file does not match.
"""

from typing import Literal

from surehold.errors import PatchParseError
from surehold.text.patch.apply import FilePatch, Patch, PatchFormat
from surehold.text.patch.envelope import BEGIN, SECTIONS, read_envelope
from surehold.text.patch.headers import path_key
from surehold.text.patch.source import PatchSource
from surehold.text.patch.unified import is_header, read_unified

_EXPECTED_START = f"`{BEGIN}`, `diff --git a/path b/path`, or `--- a/path` and `+++ b/path`"


def parse_patch(text: str, *, format: Literal["auto", "envelope", "unified", "git"] = "auto") -> Patch:  # noqa: A002 - the tool's own word
    """Read a patch, or refuse with the line that cannot be read and what was expected there."""
    source = PatchSource(text)
    found = _find_notation(source)
    # A git diff is a unified diff too.
    if found is not None and format not in {"auto", found} and (found, format) != ("git", "unified"):
        source.skip_blank()
        said = f"this is the {found} notation, not {format}"
        raise source.build_refusal(f"a patch in the {format} notation", "other_format", said=said)
    if found is None:
        source.skip_blank()
        reason = "empty" if source.next_row is None else "unknown_notation"
        raise source.build_refusal(_EXPECTED_START, reason)
    files = read_envelope(source) if found == "envelope" else read_unified(source)
    if not files:
        raise source.build_refusal("a file to change", "empty")
    _refuse_duplicates(files)
    return Patch(format=found, files=files)


def _find_notation(source: PatchSource) -> PatchFormat | None:
    """Recognise a notation by its first header; what comes before that may be a mail."""
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


def _refuse_duplicates(files: tuple[FilePatch, ...]) -> None:
    lines: dict[str, int] = {}
    for file in files:
        for path in filter(None, (file.path, file.to_path)):
            first = lines.setdefault(path_key(path), file.line)
            if first != file.line or (file.to_path and path_key(file.to_path) == path_key(file.path)):
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
