"""Arguments and results that the changing tools of the multi_edit family share."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

from pydantic import Field

from surehold.dialects.shared.params import PATH_ALIASES, heading_of, quote_aliases
from surehold.text.diff import quote_name
from surehold.text.plan import diff_of_plan
from surehold.tools.call import AnswerBudget
from surehold.tools.params import Params
from surehold.tools.spec import Result, ResultPart
from surehold.workspace.proposal import Receipt

QUOTE_ALIASES = quote_aliases("old_string", "new_string")


class TextChangeParams(Params):
    """The arguments that all changes have, after their own: the path comes first in each."""

    ALIASES: ClassVar = {**PATH_ALIASES, "expectedSha256": "expected_sha256"}

    expected_sha256: str = ""
    """Optional: refuse unless the file still has this sha256."""
    dry_run: bool = False
    """Write nothing, and answer the same."""
    reason: str = Field(default="", max_length=2_000)
    """For the audit log."""


class TextChangeMeta(ResultPart):
    """What the contract does not know: names of both versions, and how to take the change back."""

    before_sha256: str | None = None
    sha256: str | None = None
    change_id: str = ""
    """For `surehold undo`; empty when nothing had to be written."""
    warnings: tuple[str, ...] = ()


class TextChangeResult(Result):
    success: bool = True
    dry_run: bool | None = None
    """There only after a dry run: nothing was written."""
    meta: TextChangeMeta | None = Field(default=None, serialization_alias="_meta")

    @property
    def sha256(self) -> str:
        """Name of the bytes as they are now."""
        return (self.meta.sha256 if self.meta else None) or ""

    @property
    def change_id(self) -> str:
        """For `surehold undo`; empty when nothing had to be written."""
        return self.meta.change_id if self.meta else ""

    @abstractmethod
    def headline(self) -> str:
        """Say what was done, in one line."""

    def changes_made(self) -> tuple[str, ...]:
        return (self.change_id,) if self.change_id else ()

    def cut_to_budget(self, budget: AnswerBudget) -> Self:  # noqa: ARG002 - only a diff can be long
        return self.model_copy(update={"meta": None})

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - only a diff can be long
        meta = self.meta or TextChangeMeta()
        facts = (("sha256", meta.sha256), ("change_id", meta.change_id))
        heading = heading_of(self.headline(), dry_run=self.dry_run)
        rows = [heading, *(f"{name}: {value}" for name, value in facts if value)]
        return "\n".join([*rows, *(f"Warning: {warning}" for warning in meta.warnings)])


class TextDiffResult(TextChangeResult):
    diff: str = ""
    """One unified diff from the original to the final text."""

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        """Return exactly what the contract names, with as much of the diff as fits; a cut diff says where the rest is."""
        diff = budget.change_room.cut_lines(self.diff)
        if diff != self.diff:
            rest = f"surehold show {self.meta.change_id}" if self.meta else "surehold show"
            diff = f"{diff}[the diff goes on; all of it: {rest}]\n"
        return self.model_copy(update={"meta": None, "diff": diff})

    def text(self, budget: AnswerBudget) -> str:
        diff = self.cut_to_budget(budget).diff.rstrip("\n")
        return "\n".join(row for row in (super().text(budget), diff) if row)


def _meta_of(receipt: Receipt) -> TextChangeMeta:
    one = receipt.files[0]
    unchanged = ("The file already has this content; nothing was written.",) if receipt.already_applied else ()
    return TextChangeMeta(
        before_sha256=one.before_sha256,
        sha256=one.after_sha256,
        change_id=receipt.change_id,
        warnings=(*receipt.warnings, *unchanged),
    )


def change_fields(receipt: Receipt) -> dict[str, Any]:
    """Return what every change says of itself."""
    return {"meta": _meta_of(receipt), "dry_run": receipt.dry_run or None}


def diff_fields(receipt: Receipt, path: str) -> dict[str, Any]:
    """Return the whole diff of a change, under the bare name of its file, and what every change says."""
    one, name = receipt.files[0], path.rstrip("/").rpartition("/")[2]
    if one.change.diff_truncated or not one.change.diff:
        diff = diff_of_plan(one.plan, from_name=name, to_name=name, limit=None).text
    else:
        diff = f"--- {quote_name(name)}\n+++ {quote_name(name)}\n" + one.change.diff.split("\n", 2)[2]
    return {"diff": diff, **change_fields(receipt)}
