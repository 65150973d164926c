"""What a person is asked before a change, and what an answer means."""

from typing import Any, Literal

from surehold.front.acp.diffs import shown
from surehold.front.acp.event import ToolEvent
from surehold.front.acp.places import changed_places
from surehold.front.acp.spelling import canonical
from surehold.front.mcp.strings import valid
from surehold.text.visible import safe
from surehold.tools.spec import Json
from surehold.workspace.permission import Approval, PermissionRequest
from surehold.workspace.receipt import FileReceipt

PLAN_KEY = "surehold/plan"
OptionKind = Literal["allow_once", "allow_always", "reject_once"]
OPTIONS: tuple[tuple[OptionKind, str], ...] = (
    ("allow_once", "Allow"),
    ("allow_always", "Allow every change in this session"),
    ("reject_once", "Reject"),
)
"""What can be chosen. The kind is the id too; any other id is no approval."""


def options() -> list[Json]:
    """Return what can be chosen, as ACP spells it."""
    return [{"optionId": kind, "name": name, "kind": kind} for kind, name in OPTIONS]


def asked_call(event: ToolEvent, request: PermissionRequest, *, root: str) -> Json:
    """Return the call that waits, with the difference it would make."""
    seen = shown(request.files, root=root)
    text = "\n".join(row for row in (request.why, *map(_fate, request.files), *seen.notes) if row)
    waiting = ToolEvent(
        call_id=event.call_id,
        status="pending",
        title=event.title,
        kind=event.kind,
        locations=changed_places(request.files, root=root) or event.locations,
        raw_input=event.raw_input,
        text=text,
        diffs=seen.diffs,
    )
    spelled = canonical(waiting)
    del spelled["sessionUpdate"]
    return spelled


def _fate(one: FileReceipt) -> str:
    """Say what becomes of a file, where its difference does not."""
    path, plan = safe(one.path), one.plan
    if one.change.to_path:
        return f"{path} becomes {safe(one.change.to_path)}."
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
    return valid({"why": request.why, "operation": request.call.operation, "files": files})


def approval_of(outcome: Any) -> Approval:
    """Read an answer. Only the two ids that mean yes are a yes."""
    chosen = getattr(outcome, "option_id", None)
    if getattr(outcome, "outcome", None) != "selected":
        return Approval(allowed=False, note="The question was closed without an answer.")
    if chosen in ("allow_once", "allow_always"):
        return Approval(allowed=True, always=chosen == "allow_always")
    if chosen == "reject_once":
        return Approval(allowed=False, note="The person rejected it.")
    return Approval(allowed=False, note=f"The client answered with `{chosen}`, which was not among the options.")
