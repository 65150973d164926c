"""What Write and Edit have in common: what they take, return and say."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from pydantic import Field

from surehold.dialects.claude.patches import PatchHunk, fitting, new_lines, patch_of
from surehold.dialects.claude.read_names import Place
from surehold.dialects.shared.camel import CamelResult
from surehold.text.visible import safe
from surehold.tools.context import Budget, Context
from surehold.tools.spec import Params
from surehold.workspace.receipt import Receipt

_REPEATED = 1_000
"""Longer texts that the caller knows are for programs alone."""


class FileParams(Params):
    """The arguments of every change."""

    PATHS: ClassVar = {"path": "file_path", "filePath": "file_path", "filepath": "file_path"}

    file_path: str
    """Absolute, or relative to the first root."""
    expected_sha256: str = ""
    """Refuse unless the file is exactly this version."""
    dry_run: bool = False
    reason: str = Field(default="", max_length=2_000)
    """Note for the audit log."""


class FileResult(CamelResult):
    """What every change returns."""

    file_path: str
    structured_patch: tuple[PatchHunk, ...]
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

    def headline(self) -> str:
        """Say what was done, in one line."""
        raise NotImplementedError

    def notes(self) -> Iterator[str]:
        """Say what else is worth knowing."""
        yield from ()

    def fitted(self, budget: Budget) -> Self:
        """Return it with as many hunks as fit, and without long texts that the caller knows."""
        shown = fitting(self.structured_patch, budget.page_characters // 2)
        known = {name for name in self.REPEATED if len(str(getattr(self, name) or "")) > _REPEATED}
        if shown == self.structured_patch and not known:
            return self
        values: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set - known}
        if shown != self.structured_patch:
            values |= {"structured_patch": shown, "structured_patch_truncated": True}
        return self.model_construct(set(values), **values)

    def text(self, budget: Budget) -> str:
        """Say what was done, and show the changed lines as far as they fit."""
        shown = self.fitted(budget)
        head = f"Dry run, nothing was written. Would do: {self.headline()}" if self.dry_run else self.headline()
        rows = [
            head,
            *self.notes(),
            "A person changed the content before it was written; the lines below are what is there now."
            * self.user_modified,
            f"sha256: {self.sha256}",
            f"changeId: {self.change_id}" * bool(self.change_id),
            *(f"Warning: {warning}" for warning in self.warnings),
            *(row for hunk in shown.structured_patch for row in hunk.rows()),
            "[more lines changed; Read shows them]" * shown.structured_patch_truncated,
        ]
        return "\n".join(row for row in rows if row)

    @property
    def name(self) -> str:
        """The path as it may be shown."""
        return safe(self.file_path)


def facts(context: Context, place: Place, receipt: Receipt) -> dict[str, Any]:
    """Return the fields that all changes have; the lines that they show count as shown."""
    one = receipt.files[0]
    found, whole = patch_of(one.plan, of_new_files=receipt.user_modified)
    if receipt.change_id:
        reached = fitting(found, context.budget.page_characters // 2)
        if spans := new_lines(reached):
            context.session.saw(place.path, one.plan.after, spans=spans)
    fields: dict[str, Any] = {
        "file_path": place.absolute,
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
