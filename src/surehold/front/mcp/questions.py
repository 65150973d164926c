"""What a person at the client is asked, and what the answer means.

1. The question shows everything that would happen: which tool, why somebody is asked, which files, and the difference.
   What does not fit is kept as a resource, and the question says where.
2. Nothing in it can steer what shows it: names, words of agents and texts of files are escaped.
3. Only a clear yes is one. A form that comes back without a decision, and a window that was closed, are a no.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from surehold.front.mcp.results import Keep, fitting_text
from surehold.front.mcp.strings import valid
from surehold.text.visible import safe, safe_rows
from surehold.tools.spec import Json
from surehold.workspace.permission import Approval, PermissionRequest

ONCE, ALWAYS, REFUSE = "allow once", "allow all in this session", "refuse"
_LONGEST_MESSAGE = 8_000
_LONGEST_REASON = 300
_LONGEST_NOTE = 500
_MOST_FILES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A message, and a form to fill in."""

    message: str
    schema: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back from the client."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


Ask = Callable[[Question], Reply]
"""Asks and waits. Raises `Cancelled` or `PermissionRequired` when no answer can come any more."""


def question_about(request: PermissionRequest, *, keep: Keep) -> Question:
    """Return what a person is asked about a change."""
    message = fitting_text(_message(request), _LONGEST_MESSAGE, keep)
    properties: Json = {
        "decision": {"type": "string", "title": "Decision", "enum": [ONCE, ALWAYS, REFUSE]},
        "note": {"type": "string", "title": "Note to the agent", "maxLength": _LONGEST_NOTE},
    }
    if _may_be_rewritten(request):
        # Without the proposed text in it: a field of one line would flatten that, and it would come back as a wish.
        properties["content"] = {
            "type": "string",
            "title": "Other content",
            "description": "The whole file as you want it instead; leave it empty to take the change as it is.",
        }
    return Question(
        message=valid(message), schema={"type": "object", "properties": properties, "required": ["decision"]}
    )


def approval_in(reply: Reply, request: PermissionRequest) -> Approval:
    """Return what a reply means."""
    note = str(reply.content.get("note") or "")[:_LONGEST_NOTE].strip()
    if reply.action == "cancel":
        return Approval(allowed=False, note="the question was closed without an answer")
    if reply.action == "decline":
        return Approval(allowed=False, note=note)
    decision = reply.content.get("decision")
    if decision not in (ONCE, ALWAYS):
        return Approval(allowed=False, note=note or ("" if decision == REFUSE else "the answer held no decision"))
    return Approval(allowed=True, always=decision == ALWAYS, contents=_contents(reply, request), note=note)


def _message(request: PermissionRequest) -> str:
    call, files = request.call, request.files
    rows = [f"`{safe(call.tool)}` wants to change {len(files)} {'file' if len(files) == 1 else 'files'}."]
    rows.append(safe(request.why))
    if call.reason:
        rows.append(f"Reason given by the agent: {safe(_cut(call.reason, _LONGEST_REASON))}")
    rows += [f"- {safe(one.deed)}" for one in files[:_MOST_FILES]]
    if len(files) > _MOST_FILES:
        rows.append(f"- and {len(files) - _MOST_FILES} more")
    rows += [f"Warning: {safe(warning)}" for one in files for warning in one.warnings]
    diff = safe_rows(request.diff).rstrip("\n")
    rows += ["", diff] if diff else []
    if any(one.change.diff_truncated for one in files):
        rows.append("[The difference is longer than what can be shown.]")
    return "\n".join(rows)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _may_be_rewritten(request: PermissionRequest) -> bool:
    after = request.files[0].plan.after
    return len(request.files) == 1 and after.exists and after.is_text and request.files[0].plan.changes_bytes


def _contents(reply: Reply, request: PermissionRequest) -> Mapping[str, str]:
    content = reply.content.get("content")
    if not isinstance(content, str) or not content or not _may_be_rewritten(request):
        return {}
    one = request.files[0]
    ends = one.plan.after.data.endswith((b"\n", b"\r")) and not content.endswith(("\n", "\r"))
    return {one.path: content + "\n" if ends else content}  # a last line break can hardly be typed into a form
