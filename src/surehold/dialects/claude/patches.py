"""`structuredPatch`: the difference that a plan makes, as hunks for programs and as rows for a model."""

from collections.abc import Iterator
from itertools import accumulate

from surehold.dialects.shared.camel import CamelResult
from surehold.text.diff import Hunk, hunks, local_hunks
from surehold.text.plan import EditPlan
from surehold.text.visible import safe

_NO_NEWLINE = "\\ No newline at end of file"
PATCH_CHARACTERS = 64 * 1024
"""How much of a patch programs are given."""


class PatchHunk(CamelResult):
    """One hunk of a unified diff."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]
    """Each with a blank, `+` or `-` in front."""

    def rows(self) -> Iterator[str]:
        """Yield the hunk as a unified diff spells it."""
        yield f"@@ -{self.old_start},{self.old_lines} +{self.new_start},{self.new_lines} @@"
        yield from (safe(line, keep="\t") for line in self.lines)

    @property
    def size(self) -> int:
        """How many characters it takes."""
        return sum(len(line) + 1 for line in self.lines) + 40


def patch_of(plan: EditPlan, *, of_new_files: bool = False) -> tuple[tuple[PatchHunk, ...], bool]:
    """Return what a plan changes, as far as it fits, and whether that is all of it.

    Nothing is said of a new file, whose text the caller knows, unless that is asked for.
    """
    before, after = plan.before, plan.after
    if not (before.exists or of_new_files) or not after.exists or not plan.changes_bytes:
        return (), True
    if plan.spans and not before.needs_table and not after.needs_table:
        above = before.line_number(plan.spans[0].start) - 1
        found = local_hunks(before.data, after.data, plan.offsets(), above=above)
    else:
        found = hunks(before.lines.raw, after.lines.raw)
    # Most of a patch that is far too long is not worth decoding; no character has more than four bytes.
    sizes = accumulate(sum(map(len, hunk.lines)) for hunk in found)
    near = tuple(_spelled(hunk, plan) for hunk, size in zip(found, sizes, strict=False) if size <= 4 * PATCH_CHARACTERS)
    kept = fitting(near, PATCH_CHARACTERS)
    return kept, len(kept) == len(found)


def fitting(found: tuple[PatchHunk, ...], room: int) -> tuple[PatchHunk, ...]:
    """Return as many whole hunks as fit into so many characters."""
    kept = 0
    for hunk in found:
        room -= hunk.size
        if room < 0:
            break
        kept += 1
    return found[:kept]


def new_lines(found: tuple[PatchHunk, ...]) -> tuple[tuple[int, int], ...]:
    """Return the lines of the new version that hunks show."""
    return tuple((one.new_start, one.new_start + one.new_lines - 1) for one in found if one.new_lines)


def _spelled(hunk: Hunk, plan: EditPlan) -> PatchHunk:
    lines = list[str]()
    for row in hunk.lines:
        encoding = plan.after.encoding if row[:1] == b"+" else plan.before.encoding
        text = encoding.decode(row[1:])
        bare = text.rstrip("\n")
        lines.append(chr(row[0]) + bare.removesuffix("\r"))
        if bare == text and not text.endswith("\r"):
            lines.append(_NO_NEWLINE)
    return PatchHunk(
        old_start=hunk.old_start,
        old_lines=hunk.old_lines,
        new_start=hunk.new_start,
        new_lines=hunk.new_lines,
        lines=tuple(lines),
    )
