"""Base classes for arguments and results in camelCase, and what all changing tools take and return."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from surehold.errors import InvalidArgument, argument, spell
from surehold.stores.base import Operation
from surehold.text.escape import escape_lines
from surehold.text.measure import TextRoom
from surehold.text.plan import DIFF_LIMIT_BYTES
from surehold.tools.call import AnswerBudget, CallContext
from surehold.tools.params import NestedParams, Params
from surehold.tools.spec import Result, ResultPart
from surehold.workspace.proposal import Proof, Proposal, Receipt, proof_of

CAMEL_CONFIG = ConfigDict(alias_generator=to_camel)


class CamelParams(Params):
    """Arguments in camelCase; snake_case is understood too."""

    model_config = CAMEL_CONFIG


class CamelPart(NestedParams):
    """An object nested in such arguments."""

    model_config = CAMEL_CONFIG


class CamelResult(Result):
    model_config = CAMEL_CONFIG


class CamelResultPart(ResultPart):
    model_config = CAMEL_CONFIG


PATH_ALIASES = {"file_path": "path", "filePath": "path"}
CONTENT_ALIASES = {"file_text": "content", "text": "content"}
"""Other names that callers use."""


def quote_aliases(old: str, new: str) -> dict[str, str]:
    suffixes = ("_str", "_string", "String", "_text", "Text")
    found = {f"{word}{suffix}": name for word, name in (("old", old), ("new", new)) for suffix in suffixes}
    return {alias: name for alias, name in found.items() if alias != name}


_NEXT_CALL_FACTS = {
    "sha256": "sha256",
    "trash_id": "trashId",
    "before_sha256": "beforeSha256",
    "overwrote_trashed_to": "overwroteTrashedTo",
    "change_id": "changeId",
}
"""Fields that the text names, since a next call may need them."""
SHORT_DIFF_CHARS = 4_096
"""How much of a diff is sent back where the caller knows the text: a file it made, deleted or brought back."""


class ChangeParams(CamelParams):
    dry_run: bool = False
    reason: str = Field(default="", max_length=2_000)
    """For the audit log."""


class CheckedParams(ChangeParams):
    """Arguments of a change that wants a proof of what the caller saw."""

    DEMANDED: ClassVar = ("expectedSha256",)

    expected_sha256: str = ""
    """sha256 from read_file."""


class ChangeResult(CamelResult):
    change_id: str = ""
    """For `surehold undo`; empty when nothing had to be written."""
    diff: str = ""
    diff_truncated: bool = False
    warnings: tuple[str, ...] = ()
    dry_run: bool | None = None
    already_applied: bool | None = None

    @abstractmethod
    def headline(self) -> str:
        """Say what was done, in one line."""

    def cut_to_budget(self, budget: AnswerBudget) -> Self:
        shown = budget.change_room.cut_lines(self.diff)
        return self if shown == self.diff else self.model_copy(update={"diff": shown, "diff_truncated": True})

    def text(self, budget: AnswerBudget) -> str:
        """Say what was done, what the next call needs, and show the difference as far as it fits."""
        facts = [(name, getattr(self, field, "")) for field, name in _NEXT_CALL_FACTS.items()]
        fitted = self.cut_to_budget(budget)
        rest = f"surehold show {self.change_id}" if self.change_id else "`surehold show`, once it is written"
        rows = [
            heading_of(self.headline(), dry_run=self.dry_run),
            "The file already has this content; nothing was written." if self.already_applied else "",
            *(f"{name}: {value}" for name, value in facts if value),
            *(f"Warning: {warning}" for warning in self.warnings),
            fitted.diff.rstrip("\n"),
            f"[the diff goes on; all of it: {rest}]" * fitted.diff_truncated,
        ]
        return "\n".join(filter(None, rows))


def heading_of(headline: str, *, dry_run: bool | None) -> str:
    return f"Dry run, nothing was written. Would do: {headline}" if dry_run else headline


def receipt_fields(receipt: Receipt, *, diff_room: int = DIFF_LIMIT_BYTES) -> dict[str, Any]:
    diff = escape_lines(receipt.diff)
    shown = TextRoom(size=diff_room).cut_lines(diff)
    return {
        "change_id": receipt.change_id,
        "diff": shown,
        "diff_truncated": shown != diff or any(one.change.diff_truncated for one in receipt.files),
        "warnings": receipt.warnings,
        "dry_run": True if receipt.dry_run else None,
        "already_applied": True if receipt.already_applied else None,
    }


def file_fields(receipt: Receipt, *, diff_room: int = DIFF_LIMIT_BYTES) -> dict[str, Any]:
    """Return the same for a change of one file, with all that is known of it: a result takes what it has fields for."""
    one = receipt.files[0]
    return {
        **receipt_fields(receipt, diff_room=diff_room),
        "path": one.path,
        "before_sha256": one.before_sha256 or "",
        "after_sha256": one.after_sha256 or "",
        "sha256": one.after_sha256 or "",
        "size_bytes": one.plan.after.size,
    }


def submit_change(
    context: CallContext, params: ChangeParams, *proposals: Proposal, tool: str, operation: Operation
) -> Receipt:
    """Make a change happen as a tool asks for it: with its reason, or only on trial."""
    return context.session.submit(
        *proposals, tool=tool, operation=operation, reason=params.reason, dry_run=params.dry_run
    )


def check_text(text: str, name: str, *, path: str) -> None:
    """Refuse a zero byte: with it the file would be binary, and no text tool could open it again."""
    if "\0" in text:
        action = "Remove it, or write it as an escape sequence."
        raise InvalidArgument(f"`{name}` contains a NUL byte.", path=path, reason="zero_byte", action=action)


def required_proof(context: CallContext, expected: str, *, path: str) -> Proof:
    """Return the caller's evidence; without one only a workspace that allows it is changed."""
    if expected or context.unchecked:
        return proof_of(expected)
    name = argument("expectedSha256")
    message = spell("`{}` is missing for `{}`.", name, path)
    action = spell("Read the file with read_file and send its sha256 as {}.", name)
    raise InvalidArgument(message, path=path, reason="expected_sha256_missing", action=action)
