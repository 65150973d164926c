"""Asks a person about a change over MCP: the form, the meaning of the reply, and who is asked for which call.

1. The form shows everything that would happen: the tool, why approval is required, the files, and the diff. What does
   not fit is saved as a resource, and the form says where.
2. Nothing in it can control the display: names, text from agents and text from files are escaped.
3. Only an explicit yes approves. A form that comes back without a decision, and a window that was closed, mean no.
4. In the stateless era a call ends with the question, and is made again with the answer. The client carries only the id
   of the question. The answer counts once, for the session that was asked, and for exactly the change that was shown.
5. Such a call starts again from the beginning. So only calls that make a single change can ask: anything done before the
   question would happen twice.
"""

from collections.abc import Callable, Mapping
from functools import partial

from surehold.errors import PermissionRequired
from surehold.front.mcp.results import KeepText, cut_text_to_fit
from surehold.front.mcp.sessions import INVALID_PARAMS, Caller, CallerSession, ElicitationReply, RpcError, ShowForm
from surehold.front.shared.approval_queue import ApprovalQueue, Decision, PendingApproval, approval_for
from surehold.front.shared.sanitize import ensure_utf8
from surehold.text.escape import escape_lines, escape_text, preview_text
from surehold.text.measure import TextRoom
from surehold.tools.spec import Json
from surehold.workspace.access.permission import Approval, Approver, PermissionRequest

ONCE, ALWAYS, REFUSE = "allow once", "allow all in this session", "refuse"
_DECISIONS: Mapping[str, Decision] = {ONCE: "allow", ALWAYS: "always", REFUSE: "refuse"}
_PERMISSION_KEY = "permission"
_MAX_MESSAGE_CHARS = 8_000
_MAX_REASON_CHARS = 300
_MAX_NOTE_CHARS = 500
_MAX_LISTED_FILES = 50


class InputRequired(Exception):
    """A call needs a person's answer first; not an error, and nothing was written."""

    def __init__(self, form: Json, state: str) -> None:
        super().__init__("A person must answer first.")
        self._form = form
        self._state = state

    def to_result(self) -> Json:
        return {
            "resultType": "input_required",
            "inputRequests": {_PERMISSION_KEY: {"method": "elicitation/create", "params": self._form}},
            "requestState": self._state,
        }


class ApprovalRouter:
    """Chooses who approves the changes of a call: the person at its client, or the one at the review page."""

    def __init__(self, queue: ApprovalQueue, *, keep: KeepText, has_page: bool) -> None:
        self._queue = queue
        self._keep = keep
        self._has_page = has_page

    def take_earlier_question(self, tool: str, caller: Caller) -> PendingApproval | None:
        if caller.round is None or not caller.round.state:
            return None
        asked = self._queue.take_parked(caller.round.state)
        if asked is None or asked.tool != tool:
            raise RpcError(INVALID_PARAMS, "No question is open under this requestState; call again without it.")
        return asked

    def approver_for(
        self, owner: CallerSession, caller: Caller, tool: str, asked: PendingApproval | None, *, one_change: bool
    ) -> Approver | None:
        """Return who approves; None when no one can be asked."""
        if asked and asked.request.call.session != owner.session.id:
            raise RpcError(INVALID_PARAMS, "Another session was asked; call again without requestState.")
        if caller.show_form is not None:
            return partial(self._ask_at_client, caller.show_form, caller.cancelled)
        if caller.round is None:
            return partial(self._queue.ask, cancelled=caller.cancelled) if self._has_page else None
        if not one_change:
            return _refuse_one_by_one
        reply = caller.round.replies.get(_PERMISSION_KEY)
        answered = [(asked, reply)] if asked and reply else []
        return partial(self._ask_between_calls, answered, tool, owner.handle)

    def _ask_at_client(
        self, show_form: ShowForm, cancelled: Callable[[], bool], request: PermissionRequest
    ) -> Approval:
        form = form_for_request(request, keep=self._keep)
        read = partial(approval_from_reply, request=request)
        return self._queue.ask(request, show=lambda _: show_form(form, read), cancelled=cancelled)

    def _ask_between_calls(
        self,
        answered: list[tuple[PendingApproval, ElicitationReply]],
        tool: str,
        handle: str,
        request: PermissionRequest,
    ) -> Approval:
        if not answered:
            state = self._queue.park(request, tool=tool, handle=handle)
            raise InputRequired(form_for_request(request, keep=self._keep), state)
        asked, reply = answered.pop()
        asked.check_same_change(request)
        return approval_from_reply(reply, request)


def _refuse_one_by_one(request: PermissionRequest) -> Approval:
    message = f"{request.why} The files of one call cannot be approved one by one here."
    action = "Send it with `atomic: true`, or each file in a call of its own."
    raise PermissionRequired(message, path=request.files[0].path, action=action)


def form_for_request(request: PermissionRequest, *, keep: KeepText) -> Json:
    """Return the question with a form to fill in, as the protocol spells it."""
    message = cut_text_to_fit(_message_text(request), TextRoom(size=_MAX_MESSAGE_CHARS), keep)
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
    schema: Json = {"type": "object", "properties": properties, "required": ["decision"]}
    return {"mode": "form", "message": ensure_utf8(message), "requestedSchema": schema}


def approval_from_reply(reply: ElicitationReply, request: PermissionRequest) -> Approval:
    note = str(reply.content.get("note") or "")[:_MAX_NOTE_CHARS].strip()
    if reply.action == "cancel":
        return approval_for("refuse", note="the question was closed without an answer")
    if reply.action == "decline":
        return approval_for("refuse", note=note)
    decision = _DECISIONS.get(str(reply.content.get("decision")))
    return approval_for(decision, note=note, contents=_edited_contents(reply, request))


def _message_text(request: PermissionRequest) -> str:
    call, files = request.call, request.files
    rows = [f"`{escape_text(call.tool)}` wants to change {len(files)} {'file' if len(files) == 1 else 'files'}."]
    rows.append(escape_text(request.why))
    if call.reason:
        rows.append(f"Reason given by the agent: {escape_text(preview_text(call.reason, _MAX_REASON_CHARS))}")
    rows += [f"- {escape_text(one.summary)}" for one in files[:_MAX_LISTED_FILES]]
    if len(files) > _MAX_LISTED_FILES:
        rows.append(f"- and {len(files) - _MAX_LISTED_FILES} more")
    rows += [f"Warning: {escape_text(warning)}" for one in files for warning in one.warnings]
    diff = escape_lines(request.diff).rstrip("\n")
    rows += ["", diff] if diff else []
    if any(one.change.diff_truncated for one in files):
        rows.append("[The difference is longer than what can be shown.]")
    return "\n".join(rows)


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
