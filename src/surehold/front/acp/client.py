"""Sends events and approval questions to the client of one session. Anything but an explicit yes is a no.

The approver is called in a tool's thread and waits there; the question itself goes over the event loop. No lock is
held
while it waits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.acp.cancel import CancelToken
from surehold.front.acp.events import EVENT_FORMATS, Dialect, ToolEvent, to_acp_update
from surehold.front.acp.file_diffs import preview_changes
from surehold.front.acp.locations import changed_locations
from surehold.front.shared.sanitize import ensure_utf8
from surehold.text.escape import escape_text
from surehold.tools.spec import Json
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.receipt import FileReceipt

if TYPE_CHECKING:
    from acp.interfaces import Client


PLAN_KEY = "surehold/plan"
OptionKind = Literal["allow_once", "allow_always", "reject_once"]
OPTIONS: tuple[tuple[OptionKind, str], ...] = (
    ("allow_once", "Allow"),
    ("allow_always", "Allow every change in this session"),
    ("reject_once", "Reject"),
)
"""What can be chosen. The kind is the id too; any other id is no approval."""


def permission_options() -> list[Json]:
    """Return what can be chosen, as ACP spells it."""
    return [{"optionId": kind, "name": name, "kind": kind} for kind, name in OPTIONS]


def pending_call(event: ToolEvent, request: PermissionRequest, *, root: str) -> Json:
    """Return the call that waits, with the difference it would make."""
    seen = preview_changes(request.files, root=root)
    text = "\n".join(row for row in (request.why, *map(_describe_outcome, request.files), *seen.notes) if row)
    waiting = ToolEvent(
        call_id=event.call_id,
        status="pending",
        title=event.title,
        kind=event.kind,
        locations=changed_locations(request.files, root=root) or event.locations,
        raw_input=event.raw_input,
        text=text,
        diffs=seen.diffs,
    )
    spelled = to_acp_update(waiting)
    del spelled["sessionUpdate"]
    return spelled


def _describe_outcome(one: FileReceipt) -> str:
    """Say what becomes of a file, where its difference does not."""
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
    """Read an answer. Only the two ids that mean yes are a yes."""
    chosen = getattr(outcome, "option_id", None)
    if getattr(outcome, "outcome", None) != "selected":
        return Approval(allowed=False, note="The question was closed without an answer.")
    if chosen in ("allow_once", "allow_always"):
        return Approval(allowed=True, always=chosen == "allow_always")
    if chosen == "reject_once":
        return Approval(allowed=False, note="The person rejected it.")
    return Approval(allowed=False, note=f"The client answered with `{chosen}`, which was not among the options.")


class ClientChannel:
    """Speaks to the client of one session, on the loop."""

    def __init__(self, client: "Client", session_id: str, *, dialect: Dialect = "v1") -> None:
        self._client = client
        self._session_id = session_id
        self._dialect: Dialect = dialect

    async def send_event(self, event: ToolEvent) -> None:
        """Report an event; when nobody listens any more, the call is not to suffer from that."""
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

        answer = await self._client.request_permission(
            session_id=self._session_id,
            tool_call=ToolCallUpdate.model_validate(pending_call(begun, request, root=root)),
            options=[PermissionOption.model_validate(one) for one in permission_options()],
            **{PLAN_KEY: bound_plan(request)},
        )
        return approval_from_outcome(answer.outcome)


Ask = Callable[[PermissionRequest], Awaitable[Approval]]


class EditorApprover:
    """Turns a question of the workspace into one to the client, and waits for the answer."""

    def __init__(self, ask: Ask, *, loop: asyncio.AbstractEventLoop, halt: CancelToken, patience: float) -> None:
        self._ask = ask
        self._loop = loop
        self._halt = halt
        self._patience = patience

    def __call__(self, request: PermissionRequest) -> Approval:
        """Return what the person said; raise when there is no answer."""
        question = self._ask_with_timeout(request)
        try:
            approval = asyncio.run_coroutine_threadsafe(question, self._loop).result()
        except TimeoutError:
            _refuse_change(f"Nobody answered within {self._patience:g} seconds.", "approval_timeout")
        except (CancelledError, ConnectionError, RuntimeError):
            question.close()  # a loop that has ended never began it
            self._check_cancelled()
            _refuse_change("The client went away before it answered.", "client_gone")
        except Exception as error:  # noqa: BLE001 - whatever a client does instead of answering is no approval
            _refuse_change(f"The client could not ask: {ensure_utf8(str(error))[:200]}.", "approval_failed")
        self._check_cancelled()
        return approval

    async def _ask_with_timeout(self, request: PermissionRequest) -> Approval:
        self._halt.track_question()
        async with asyncio.timeout(self._patience):
            return await self._ask(request)

    def _check_cancelled(self) -> None:
        if self._halt.is_cancelled:
            raise Cancelled("The call was cancelled while somebody was asked.")


def _refuse_change(message: str, reason: str) -> NoReturn:
    raise PermissionRequired(
        message, reason=reason, action="Ask the person, and make the change again if it is wanted."
    )
