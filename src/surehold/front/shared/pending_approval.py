"""A question that waits for a person's answer, what an answer to it means, and how it ends without one."""

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from surehold.errors import Cancelled, PermissionRequired, StaleFile
from surehold.front.shared.change_text import ChangeText, TextView
from surehold.stores.base import PathRecord
from surehold.workspace.access.approved import ApprovedVersion
from surehold.workspace.access.permission import AnswerPlace, Approval, PermissionRequest
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import FileReceipt

_FIRST_VIEW_CHARS = 60_000
"""How much of a change the list of questions shows; the pages show the rest."""

Decision = Literal["allow", "always", "refuse"]
ShowQuestion = Callable[["PendingApproval"], Future[Approval]]
"""Shows a question to a person. The future brings the answer, or the error that says why there is none."""


def approval_for(
    decision: Decision | None,
    *,
    where: AnswerPlace,
    who: str = "",
    note: str = "",
    contents: Mapping[str, str] | None = None,
    left_out: tuple[str, ...] = (),
) -> Approval:
    """Return what an answer means: only `allow` and `always` approve."""
    if decision in ("allow", "always"):
        approval = Approval(allowed=True, always=decision == "always", contents=contents or {}, left_out=left_out)
        return replace(approval, note=note, where=where, who=who)
    note = note or ("" if decision == "refuse" else "the answer contained no decision")
    return Approval(allowed=False, note=note, where=where, who=who)


def client_gone_error() -> PermissionRequired:
    action = "Ask the person, and make the change again if it is wanted."
    return PermissionRequired("The client disconnected before it answered.", reason="client_gone", action=action)


def duration_text(seconds: float) -> str:
    """Return how long a question waits, in whole minutes where it is some."""
    minutes, rest = divmod(seconds, 60)
    if minutes and not rest:
        return f"{minutes:g} {'minute' if minutes == 1 else 'minutes'}"
    return f"{seconds:g} {'second' if seconds == 1 else 'seconds'}"


def cannot_show_error(request: PermissionRequest, unseen: int, *, action: str) -> PermissionRequired:
    """Return the refusal of a change that must be shown whole before it can be allowed, and is not."""
    lines = f"{unseen:,} {'line' if unseen == 1 else 'lines'}"
    message = f"{request.why} {lines} of this change cannot be shown here, so it cannot be allowed here."
    return PermissionRequired(message, path=first_path(request), reason="cannot_be_shown", action=action)


@dataclass(frozen=True, kw_only=True)
class PendingApproval:
    request: PermissionRequest
    id: str = field(default_factory=lambda: secrets.token_hex(16))  # no `-`, which marks ended ones
    answer: Future[Approval] = field(default_factory=Future[Approval])
    has_channel: bool = False
    """A form, an editor or a terminal shows it."""
    is_listed: bool = False
    """The review page shows it."""
    asked: float = 0.0
    expires: float = 0.0
    """When it was asked, and until when it waits, by the clock of the queue."""
    ended: str = ""
    """Why the agent no longer waits for the answer; empty while it does."""
    opened: set[int] = field(default_factory=set[int])
    """The pages of the change that were opened on the review page."""
    tool: str = ""
    handle: str = ""
    """Of a parked question: the tool to call again, and what identifies the session that was asked."""

    @cached_property
    def text(self) -> ChangeText:
        return ChangeText.of_request(self.request)

    @cached_property
    def view(self) -> TextView:
        """What the list of questions shows of the change."""
        return self.text.view(_FIRST_VIEW_CHARS)

    @property
    def unseen(self) -> int:
        """How many lines neither the list nor an opened page has shown."""
        return self.text.count_unseen(self.view, self.opened)

    @property
    def size(self) -> int:
        return sum(one.plan.before.size + one.plan.after.size for one in self.request.files)

    def check_same_change(self, request: PermissionRequest) -> None:
        for shown, one in zip(self.request.files, request.files, strict=False):
            ApprovedVersion(shown.plan.before).check(KnownFile(PathRecord(key=one.path), one.plan.before))
        if [_file_outline(one) for one in self.request.files] != [_file_outline(one) for one in request.files]:
            message, path = "This is not the change that was shown for approval.", request.files[0].path
            action = "Make the call again, without the answer."
            raise StaleFile(message, path=path, reason="changed_while_asked", action=action)


def cancelled_error() -> Cancelled:
    return Cancelled("The call was cancelled while it waited for approval.")


def unanswered_error(message: str, request: PermissionRequest) -> PermissionRequired:
    action = "Tell the person what you want to change; call again when they can answer."
    return PermissionRequired(message, path=first_path(request), reason="approval_timeout", action=action)


def first_path(request: PermissionRequest) -> str | None:
    return request.files[0].path if request.files else None


def _file_outline(one: FileReceipt) -> tuple[object, ...]:
    """Return what makes a change this one: its summary, both versions, what a move overwrites, and the file mode."""
    change = one.change
    kept = change.after.meta.mode if change.after and change.after.meta else None
    displaced = change.displaced.sha256 if change.displaced else ""
    return (one.path, one.summary, one.before_sha256, one.after_sha256, displaced, kept, one.mode)
