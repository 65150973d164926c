"""Results that Write and Edit share, and their `structuredPatch`: the change as hunks for programs and models."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any, ClassVar, Self

from surehold.dialects.claude.located_file import LocatedFile
from surehold.dialects.shared.params import CamelResult, CamelResultPart, heading_of
from surehold.text.diff import Hunk
from surehold.text.escape import escape_text
from surehold.text.measure import TextRoom
from surehold.text.plan import EditPlan
from surehold.text.snapshot import LineRanges
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.spec import Result
from surehold.workspace.proposal import Receipt

FILE_PATH_ALIASES = {"path": "file_path", "filePath": "file_path", "filepath": "file_path"}
_NO_NEWLINE = "\\ No newline at end of file"
PATCH_CHARS = 64 * 1024
"""How much of a patch programs are given."""


_HUNK_UNITS = 100
"""What the header of a hunk takes, and its lines as data."""


class StructuredHunk(CamelResultPart):
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]
    """Each with a blank, `+` or `-` in front."""

    def unified_rows(self) -> Iterator[str]:
        yield f"@@ -{self.old_start},{self.old_lines} +{self.new_start},{self.new_lines} @@"
        yield from (escape_text(line, keep="\t") for line in self.lines)

    def size_in(self, room: TextRoom) -> int:
        rows = "".join(f"{escape_text(line, keep=chr(9))}\n" for line in self.lines)
        return room.measure(rows) + len(self.lines) + _HUNK_UNITS


def structured_patch_of(plan: EditPlan, *, of_new_files: bool = False) -> tuple[tuple[StructuredHunk, ...], bool]:
    """Return what a plan changes, as far as it fits, and whether that is all of it.

    Nothing is said of a new file, whose text the caller knows, unless that is asked for.
    """
    before, after = plan.before, plan.after
    if not (before.exists or of_new_files) or not after.exists or not plan.changes_bytes:
        return (), True
    found = list(plan.hunks())
    # Most of a patch that is far too long is not worth decoding; no character has more than four bytes.
    sizes = accumulate(sum(map(len, hunk.lines)) for hunk in found)
    near = tuple(_structured_hunk(one, plan) for one, size in zip(found, sizes, strict=True) if size <= 4 * PATCH_CHARS)
    kept = hunks_that_fit(near, TextRoom(size=PATCH_CHARS))
    return kept, len(kept) == len(found)


def hunks_that_fit(found: tuple[StructuredHunk, ...], room: TextRoom) -> tuple[StructuredHunk, ...]:
    sizes = accumulate(hunk.size_in(room) for hunk in found)
    return tuple(hunk for hunk, size in zip(found, sizes, strict=True) if size <= room.size)


def new_line_spans(found: tuple[StructuredHunk, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((one.new_start, one.new_start + one.new_lines - 1) for one in found if one.new_lines)


def _structured_hunk(hunk: Hunk, plan: EditPlan) -> StructuredHunk:
    lines = list[str]()
    for row in hunk.lines:
        text = plan.decode_row(row)
        bare = text.rstrip("\n")
        lines.append(bare.removesuffix("\r"))
        if bare == text and not text.endswith("\r"):
            lines.append(_NO_NEWLINE)
    fields: dict[str, Any] = {**asdict(hunk), "lines": tuple(lines)}
    return StructuredHunk(**fields)


_MAX_REPEATED_CHARS = 1_000
"""Longer texts that the caller knows are for programs alone."""
_REPEATED_PART = 20
"""Such a text never is more than this part of an answer."""


def values_to_tell(result: Result, repeated: Sequence[str], budget: AnswerBudget) -> dict[str, Any]:
    """Return what was set, without those repeated texts that are long."""
    most = min(_MAX_REPEATED_CHARS, budget.answer // _REPEATED_PART)
    known = {name for name in repeated if budget.size_of(getattr(result, name) or "") > most}
    return {name: getattr(result, name) for name in result.model_fields_set - known}


class FileChangeResult(CamelResult):
    file_path: str
    structured_patch: tuple[StructuredHunk, ...]
    structured_patch_truncated: bool = False
    user_modified: bool
    """A person changed the content before it was written."""
    sha256: str
    change_id: str = ""
    """For `surehold undo`; empty when nothing had to be written."""
    unchanged: bool = False
    dry_run: bool = False
    warnings: tuple[str, ...] = ()

    REPEATED: ClassVar[tuple[str, ...]] = ()
    """Fields that hold what the caller sent or has read."""

    @abstractmethod
    def headline(self) -> str:
        """Say what was done, in one line."""

    def extra_notes(self) -> Iterator[str]:
        yield from ()

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        """Return it with as many hunks as fit, and without long texts that the caller knows."""
        shown = hunks_that_fit(self.structured_patch, budget.change_room)
        values = values_to_tell(self, self.REPEATED, budget)
        if shown != self.structured_patch:
            values |= {"structured_patch": shown, "structured_patch_truncated": True}
        return self.model_construct(set(values), **values)

    def text(self, budget: AnswerBudget) -> str:
        shown = self.cut_to_budget(budget)
        rows = [
            heading_of(self.headline(), dry_run=self.dry_run),
            *self.extra_notes(),
            "A person changed the content before it was written; the lines below are what is there now."
            * self.user_modified,
            f"sha256: {self.sha256}",
            f"changeId: {self.change_id}" * bool(self.change_id),
            *(f"Warning: {warning}" for warning in self.warnings),
            *(row for hunk in shown.structured_patch for row in hunk.unified_rows()),
            "[more lines changed; Read shows them]" * shown.structured_patch_truncated,
        ]
        return "\n".join(row for row in rows if row)

    @property
    def display_path(self) -> str:
        return escape_text(self.file_path)


def lines_in_patch(budget: AnswerBudget, plan: EditPlan) -> LineRanges:
    return new_line_spans(hunks_that_fit(structured_patch_of(plan)[0], budget.change_room))


def change_fields(context: CallContext, place: LocatedFile, receipt: Receipt) -> dict[str, Any]:
    """Return the fields that all changes have; the lines that a person wrote are shown by this answer."""
    one = receipt.files[0]
    found, whole = structured_patch_of(one.plan, of_new_files=receipt.user_modified)
    if receipt.change_id and receipt.user_modified:
        reached = hunks_that_fit(found, context.budget.change_room)
        if spans := new_line_spans(reached):
            context.session.record_shown_lines(place.target, one.plan.after, spans=spans)
    fields: dict[str, Any] = {
        "file_path": place.absolute_path,
        "structured_patch": found,
        "user_modified": receipt.user_modified,
        "sha256": one.after_sha256 or "",
        "change_id": receipt.change_id,
    }
    extras = {
        "structured_patch_truncated": not whole,
        "unchanged": not one.changed,
        "dry_run": receipt.dry_run,
        "warnings": tuple(dict.fromkeys(filter(None, (place.notice, *one.warnings)))),
    }
    return {**fields, **{name: value for name, value in extras.items() if value}}
