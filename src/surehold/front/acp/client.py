"""Sends events and approval questions to the client of one session. Anything but an explicit yes is a no."""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from surehold.errors import PermissionRequired
from surehold.front.acp.events import EVENT_FORMATS, Dialect, ToolEvent, to_acp_update
from surehold.front.acp.file_diffs import preview_changes
from surehold.front.acp.locations import changed_locations
from surehold.front.shared.approval_queue import Decision, approval_for, client_gone_error
from surehold.front.shared.sanitize import ensure_utf8
from surehold.text.escape import escape_text
from surehold.tools.spec import Json
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.proposal import FileReceipt

if TYPE_CHECKING:
    from acp.interfaces import Client


PLAN_KEY = "surehold/plan"
OptionKind = Literal["allow_once", "allow_always", "reject_once"]
_OPTIONS: tuple[tuple[OptionKind, str, Decision], ...] = (
    ("allow_once", "Allow", "allow"),
    ("allow_always", "Allow every change in this session", "always"),
    ("reject_once", "Reject", "refuse"),
)
"""What can be chosen, and what it means. The kind is the id too; any other id does not approve."""


def pending_call(event: ToolEvent, request: PermissionRequest, *, root: str) -> Json:
    """Return the call that waits, with the difference it would make."""
    seen = preview_changes(request.files, root=root)
    text = "\n".join(row for row in (request.why, *map(_describe_outcome, request.files), *seen.notes) if row)
    locations = changed_locations(request.files, root=root) or event.locations
    spelled = to_acp_update(replace(event, locations=locations, text=text, diffs=seen.diffs))
    del spelled["sessionUpdate"]
    return spelled


def _describe_outcome(one: FileReceipt) -> str:
    """Say what happens to a file, where its diff does not."""
    path, plan = escape_text(one.path), one.plan
    if one.change.to_path:
        return f"{path} becomes {escape_text(one.change.to_path)}."
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


def approval_from_outcome(outcome: Any) -> Approval:
    if getattr(outcome, "outcome", None) != "selected":
        return approval_for("refuse", note="the question was closed without an answer")
    chosen = getattr(outcome, "option_id", None)
    return approval_for(next((decision for kind, _, decision in _OPTIONS if kind == chosen), None))


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

        options = [PermissionOption(option_id=kind, name=name, kind=kind) for kind, name, _ in _OPTIONS]
        try:
            answer = await self._client.request_permission(
                session_id=self._session_id,
                tool_call=ToolCallUpdate.model_validate(pending_call(begun, request, root=root)),
                options=options,
                **{PLAN_KEY: bound_plan(request)},
            )
        except ConnectionError:
            raise client_gone_error() from None
        except Exception as error:  # whatever a client does instead of answering is not an approval
            message = f"The client could not ask for approval: {ensure_utf8(str(error))[:200]}."
            action = "Ask the person, and make the change again if it is wanted."
            raise PermissionRequired(message, reason="approval_failed", action=action) from error
        return approval_from_outcome(answer.outcome)
