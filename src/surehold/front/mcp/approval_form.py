"""Builds the form that asks a person about a change, and reads the reply.

1. The form shows everything that would happen: the tool, why approval is required, the files, and the diff. What does
   not fit
   is saved as a resource, and the form says where.
2. Nothing in it can control the display: names, text from agents and text from files are escaped.
3. Only an explicit yes approves. A form that comes back without a decision, and a window that was closed, mean no.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from surehold.front.mcp.results import Keep, cut_text_to_fit
from surehold.front.shared.sanitize import ensure_utf8
from surehold.text.escape import escape_lines, escape_text
from surehold.tools.spec import Json
from surehold.workspace.access.permission import Approval, PermissionRequest

ONCE, ALWAYS, REFUSE = "allow once", "allow all in this session", "refuse"
_MAX_MESSAGE_CHARS = 8_000
_MAX_REASON_CHARS = 300
_MAX_NOTE_CHARS = 500
_MAX_LISTED_FILES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationForm:
    """A message, and a form to fill in."""

    message: str
    schema: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationReply:
    """What came back from the client."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


Ask = Callable[[ElicitationForm], ElicitationReply]
"""Asks and waits. Raises `Cancelled` or `PermissionRequired` when no answer can come any more."""


def form_for_request(request: PermissionRequest, *, keep: Keep) -> ElicitationForm:
    """Return what a person is asked about a change."""
    message = cut_text_to_fit(_message_text(request), _MAX_MESSAGE_CHARS, keep)
    properties: Json = {
        "decision": {"type": "string", "title": "Decision", "enum": [ONCE, ALWAYS, REFUSE]},
        "note": {"type": "string", "title": "Note to the agent", "maxLength": _MAX_NOTE_CHARS},
    }
    if _is_editable(request):
        # Without the proposed text in it: a field of one line would flatten that, and it would come back as a wish.
        properties["content"] = {
            "type": "string",
            "title": "Other content",
            "description": "The whole file as you want it instead; leave it empty to take the change as it is.",
        }
    return ElicitationForm(
        message=ensure_utf8(message), schema={"type": "object", "properties": properties, "required": ["decision"]}
    )


def approval_from_reply(reply: ElicitationReply, request: PermissionRequest) -> Approval:
    """Return what a reply means."""
    note = str(reply.content.get("note") or "")[:_MAX_NOTE_CHARS].strip()
    if reply.action == "cancel":
        return Approval(allowed=False, note="the question was closed without an answer")
    if reply.action == "decline":
        return Approval(allowed=False, note=note)
    decision = reply.content.get("decision")
    if decision not in (ONCE, ALWAYS):
        return Approval(allowed=False, note=note or ("" if decision == REFUSE else "the answer held no decision"))
    return Approval(allowed=True, always=decision == ALWAYS, contents=_edited_contents(reply, request), note=note)


def _message_text(request: PermissionRequest) -> str:
    call, files = request.call, request.files
    rows = [f"`{escape_text(call.tool)}` wants to change {len(files)} {'file' if len(files) == 1 else 'files'}."]
    rows.append(escape_text(request.why))
    if call.reason:
        rows.append(f"Reason given by the agent: {escape_text(_cut_text(call.reason, _MAX_REASON_CHARS))}")
    rows += [f"- {escape_text(one.summary)}" for one in files[:_MAX_LISTED_FILES]]
    if len(files) > _MAX_LISTED_FILES:
        rows.append(f"- and {len(files) - _MAX_LISTED_FILES} more")
    rows += [f"Warning: {escape_text(warning)}" for one in files for warning in one.warnings]
    diff = escape_lines(request.diff).rstrip("\n")
    rows += ["", diff] if diff else []
    if any(one.change.diff_truncated for one in files):
        rows.append("[The difference is longer than what can be shown.]")
    return "\n".join(rows)


def _cut_text(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _is_editable(request: PermissionRequest) -> bool:
    after = request.files[0].plan.after
    return len(request.files) == 1 and after.exists and after.is_text and request.files[0].plan.changes_bytes


def _edited_contents(reply: ElicitationReply, request: PermissionRequest) -> Mapping[str, str]:
    content = reply.content.get("content")
    if not isinstance(content, str) or not content or not _is_editable(request):
        return {}
    one = request.files[0]
    ends = one.plan.after.data.endswith((b"\n", b"\r")) and not content.endswith(("\n", "\r"))
    return {one.path: content + "\n" if ends else content}  # a last line break can hardly be typed into a form
