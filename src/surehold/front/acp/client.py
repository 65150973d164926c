"""Sends events and approval questions to the client of one session. Anything but an explicit yes is a no."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from surehold.errors import PermissionRequired
from surehold.front.acp.events import EVENT_FORMATS, Dialect, ToolEvent, to_acp_update
from surehold.front.acp.file_diffs import ChangePreview, preview_changes
from surehold.front.acp.locations import changed_locations
from surehold.front.shared.change_text import ChangeText, unseen_lines
from surehold.front.shared.pending_approval import Decision, approval_for, cannot_show_error, client_gone_error
from surehold.front.shared.person import person_name
from surehold.text.escape import ensure_utf8, reveal_text
from surehold.tools.call import Json
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.proposal import FileReceipt

if TYPE_CHECKING:
    from acp.interfaces import Client


PLAN_KEY = "surehold/plan"
OptionKind = Literal["allow_once", "allow_always", "reject_once"]
_COMMAND_CHARS = 60_000
"""How much is shown of what a command deleted."""
_SPLIT_IT = "Make it in smaller changes that can be shown, or ask the person to make it."


class ApprovalOption(NamedTuple):
    """What can be chosen, and what it means. The kind is the id too; any other id does not approve."""

    kind: OptionKind
    name: str
    decision: Decision


_REJECT = ApprovalOption("reject_once", "Reject", "refuse")
_PLAIN_OPTIONS = (
    ApprovalOption("allow_once", "Allow", "allow"),
    ApprovalOption("allow_always", "Allow every change in this session", "always"),
    _REJECT,
)


def options_for(request: PermissionRequest, seen: ChangePreview) -> tuple[ApprovalOption, ...]:
    """Return what can be chosen; a protected path whose diff the editor does not show cannot be allowed."""
    hidden = ChangeText(seen.hidden, is_protected=request.is_protected)
    unseen = sum(row.kind in {"added", "removed", "moved"} for row in hidden.rows)
    if request.command:
        text = ChangeText((), request.command)
        unseen = text.count_unseen(text.view(_COMMAND_CHARS))
    if not unseen:
        return (_PLAIN_OPTIONS[0], _REJECT) if request.command else _PLAIN_OPTIONS
    if request.is_protected:
        raise cannot_show_error(request, unseen, action=_SPLIT_IT)
    return (ApprovalOption("allow_once", f"Allow {unseen_lines(unseen)}", "allow"), _REJECT)


def pending_call(event: ToolEvent, request: PermissionRequest, seen: ChangePreview, *, root: str) -> Json:
    """Return the call that waits, with the difference it would make."""
    whole = ChangeText.of_request(request)
    listed = [row.text for row in whole.view(_COMMAND_CHARS).rows] if request.command else ()
    rows = (request.why, f"{whole.totals}.", *map(_describe_outcome, request.files), *listed, *seen.notes)
    text = "\n".join(row for row in rows if row)
    locations = changed_locations(request.files, root=root) or event.locations
    spelled = to_acp_update(replace(event, locations=locations, text=text, diffs=seen.diffs))
    del spelled["sessionUpdate"]
    return spelled


def _describe_outcome(one: FileReceipt) -> str:
    """Say what happens to a file, where its diff does not."""
    path, plan = reveal_text(one.path), one.plan
    if one.change.to_path:
        over = ", which is overwritten" if one.change.displaced else ""
        return f"{path} becomes {reveal_text(one.change.to_path)}{over}."
    if not plan.before.exists:
        return f"{path} is new."
    return "" if plan.after.exists else f"{path} is deleted."


def bound_plan(request: PermissionRequest) -> Json:
    """Return what exactly is asked about. An answer holds for these bytes and no others."""
    files: list[Json] = [
        {
            "path": one.path,
            "toPath": one.change.to_path or None,
            "beforeSha256": one.before_sha256,
            "afterSha256": one.after_sha256,
        }
        for one in request.files
    ]
    return ensure_utf8({"why": request.why, "operation": request.call.operation, "files": files})


def approval_from_outcome(outcome: Any, options: Sequence[ApprovalOption]) -> Approval:
    answer = partial(approval_for, where="editor", who=person_name())
    if getattr(outcome, "outcome", None) != "selected":
        return answer("refuse", note="the question was closed without an answer")
    chosen = getattr(outcome, "option_id", None)
    return answer(next((one.decision for one in options if one.kind == chosen), None))


class ClientChannel:
    """Speaks to the client of one session, on the loop."""

    def __init__(self, client: "Client", session_id: str, *, dialect: Dialect = "v1") -> None:
        self._client = client
        self._session_id = session_id
        self._dialect: Dialect = dialect

    async def send_event(self, event: ToolEvent) -> None:
        """Report an event; a client that has left does not stop the call."""
        update = EVENT_FORMATS[self._dialect](event)
        with suppress(ConnectionError):
            if self._dialect == "v1":
                from acp.schema import ToolCallProgress, ToolCallStart

                model = ToolCallStart if event.status == "pending" else ToolCallProgress
                await self._client.session_update(session_id=self._session_id, update=model.model_validate(update))
                return
            wire = vars(self._client)["_conn"]  # the package's own methods refuse a shape that they do not know
            await wire.send_notification("session/update", {"sessionId": self._session_id, "update": update})

    async def ask_approval(self, begun: ToolEvent, request: PermissionRequest, *, root: str) -> Approval:
        """Ask the person, and wait for the answer as long as it takes."""
        from acp.schema import PermissionOption, ToolCallUpdate

        seen = preview_changes(request.files, root=root, shows_moved=request.is_protected)
        offered = options_for(request, seen)
        options = [PermissionOption(option_id=kind, name=name, kind=kind) for kind, name, _ in offered]
        try:
            answer = await self._client.request_permission(
                session_id=self._session_id,
                tool_call=ToolCallUpdate.model_validate(pending_call(begun, request, seen, root=root)),
                options=options,
                **{PLAN_KEY: bound_plan(request)},
            )
        except ConnectionError:
            raise client_gone_error() from None
        except Exception as error:  # whatever a client does instead of answering is not an approval
            message = f"The client could not ask for approval: {ensure_utf8(str(error))[:200]}."
            action = "Ask the person, and make the change again if it is wanted."
            raise PermissionRequired(message, reason="approval_failed", action=action) from error
        return approval_from_outcome(answer.outcome, offered)
