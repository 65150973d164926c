"""Asks a person about a change over MCP: the form, and the meaning of the reply.

1. The form says how much it is, and shows everything that would happen: the tool, why approval is required, the files,
   and the diff, and until when it waits. What does not fit is shown on the review page, and the form says where. Then the
   answer is "allow N unseen lines", and a protected path cannot be allowed in the form at all. Without a page, a change
   that does not fit is refused.
2. Nothing in it can control the display: names, text from agents and text from files are escaped.
3. Only an explicit yes approves. A form that comes back without a decision, and a window that was closed, mean no.
4. In the stateless era a call ends with the question, and is made again with the answer. The client carries only the id
   of the question. The answer counts once, for the session that was asked, and for exactly the change that was shown.
5. Such a call starts again from the beginning. So only calls that make a single change can ask: anything done before the
   question would happen twice.
"""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from surehold.errors import PermissionRequired
from surehold.front.mcp.protocol import CONNECTION_CLOSED
from surehold.front.mcp.request_shapes import is_elicitation_result
from surehold.front.mcp.sessions import Caller, ElicitationReply, RoundInput, ShowForm
from surehold.front.shared.approval_queue import ANSWER_SECONDS
from surehold.front.shared.change_text import ChangeText, TextRow, TextView, unseen_lines
from surehold.front.shared.pending_approval import Decision, approval_for, client_gone_error, duration_text
from surehold.front.shared.person import person_name
from surehold.text.escape import ensure_utf8, preview_text, reveal_text
from surehold.tools.call import Json
from surehold.workspace.access.permission import Approval, PermissionRequest

if TYPE_CHECKING:
    from surehold.front.shared.command_channels import CommandPost
    from surehold.workspace.runs.questions import CommandCall

ONCE, ALWAYS, REFUSE = "allow once", "allow all in this session", "refuse"
PERMISSION_KEY = "permission"
_MAX_MESSAGE_CHARS = 8_000
_MAX_REASON_CHARS = 300
_MAX_NOTE_CHARS = 500
_NOTE_CHARS = 400
"""Characters for the sentences that say what is not shown, and where it is."""
SPLIT_IT = "Make it in smaller changes that can be shown; or the person starts this server with `--review`: its review page shows all of a change."


class InputRequired(Exception):
    """A call needs a person's answer first; not an error, and nothing was written."""

    def __init__(self, form: Json, state: str) -> None:
        super().__init__("A person must answer first.")
        self._form = form
        self._state = state

    def to_result(self) -> Json:
        return {
            "resultType": "input_required",
            "inputRequests": {PERMISSION_KEY: {"method": "elicitation/create", "params": self._form}},
            "requestState": self._state,
        }


class CommandDesk:
    """Takes the questions of commands that other processes run in the workspace: for the page, and for the client."""

    def __init__(
        self, approve: Callable[[Caller, PermissionRequest], Approval], runs: Path | None, *, has_page: bool
    ) -> None:
        self._approve, self._runs, self._has_page = approve, runs, has_page
        self._lock = threading.Lock()
        self._post: CommandPost | None = None
        self._host = 0
        self._show_form: ShowForm | None = None

    def open(self, show_form: ShowForm | None = None) -> None:
        """Listen; `show_form` asks at the client, about commands of the process that started us."""
        if self._runs is None or not (self._has_page or show_form):
            return
        from surehold.front.shared.command_channels import CommandPost

        with self._lock:
            if self._post is not None and show_form and not self._show_form:  # now the client is known too
                self._post.close()
                self._post = None
            if self._post is None:
                self._show_form, self._host = show_form, os.getppid() if show_form else 0
                self._post = CommandPost(self._runs.parent, self._ask, host=self._host, has_page=self._has_page)
                self._post.open()

    def close(self) -> None:
        with self._lock:
            if self._post is not None:
                self._post.close()
                self._post = None

    def _ask(self, command: "CommandCall") -> Approval:
        caller = Caller(
            show_form=self._show_form if self._host in command.ancestors else None,
            who=person_name(),
            gone=command.is_gone,
            cancelled=command.is_withdrawn,
        )
        return self._approve(caller, command.to_request())


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalForm:
    """A question as a form: what of the change it shows, and which answers follow from that."""

    request: PermissionRequest
    head: str
    text: ChangeText
    view: TextView

    @classmethod
    def for_request(cls, request: PermissionRequest) -> "ApprovalForm":
        text = ChangeText.of_request(request)
        head = _head_text(request, text)
        return cls(request=request, head=head, text=text, view=text.view(_MAX_MESSAGE_CHARS - _NOTE_CHARS - len(head)))

    @property
    def unseen(self) -> int:
        return self.text.count_unseen(self.view)

    @property
    def decisions(self) -> Mapping[str, Decision]:
        if not self.unseen:
            always: Mapping[str, Decision] = {} if self.request.command else {ALWAYS: "always"}
            return {ONCE: "allow", **always, REFUSE: "refuse"}
        if self.request.is_protected:
            return {REFUSE: "refuse"}
        return {f"allow {unseen_lines(self.unseen)} once": "allow", REFUSE: "refuse"}

    def as_params(self, *, page: str = "", seconds: float = ANSWER_SECONDS) -> Json:
        """Return the question with a form to fill in, as the protocol spells it; it waits for so many seconds."""
        properties: Json = {
            "decision": {"type": "string", "title": "Decision", "enum": list(self.decisions)},
            "note": {"type": "string", "title": "Note to the agent", "maxLength": _MAX_NOTE_CHARS},
        }
        if _is_editable(self.request) and len(self.decisions) > 1:
            # Without the proposed text in it: a field of one line would flatten that, and it would come back as a wish.
            properties["content"] = {
                "type": "string",
                "title": "Other content",
                "description": "The whole file as you want it instead; leave it empty to take the change as it is.",
            }
        schema: Json = {"type": "object", "properties": properties, "required": ["decision"]}
        return {"mode": "form", "message": ensure_utf8(self._message(page, seconds)), "requestedSchema": schema}

    def _message(self, page: str, seconds: float) -> str:
        rows = [
            self.head,
            f"Asked at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; waits {duration_text(seconds)} for an answer.",
        ]
        if self.unseen:
            rows.append(f"Not everything fits here: {unseen_lines(self.unseen)}.")
            rows += [f"Read all of it, and answer, at {page}"] if page else []
        diff = next((i for i, row in enumerate(self.view.rows) if row.kind not in {"file", "warning"}), None)
        rows += map(_row_text, self.view.rows[:diff])
        rows += ["", *map(_row_text, self.view.rows[diff:])] if diff is not None else []
        if self.unseen:
            rows.append(f"[{unseen_lines(self.unseen)} did not fit]")
        return "\n".join(rows)

    def read_reply(self, reply: ElicitationReply, *, who: str = "", page: str = "") -> Approval:
        """Return what the reply means; an answer that was not offered approves nothing."""
        note = str(reply.content.get("note") or "")[:_MAX_NOTE_CHARS].strip()
        answer = partial(approval_for, where="form", who=who)
        if reply.action == "cancel":
            return answer("refuse", note="the question was closed without an answer")
        if reply.action == "decline":
            return answer("refuse", note=note)
        decision = self.decisions.get(str(reply.content.get("decision")))
        if decision is None and self.unseen:
            where = f"; read all of it, and answer, at {page}" if page else ""
            return answer(None, note=f"the form did not show all of it ({unseen_lines(self.unseen)}){where}")
        return answer(decision, note=note, contents=_edited_contents(reply, self.request))


def _head_text(request: PermissionRequest, text: ChangeText) -> str:
    call = request.call
    wants = f"`{reveal_text(call.tool)}` wants to change {text.totals}."
    if request.command:
        wants = f"{reveal_text(call.agent or 'A command')} wants to {reveal_text(request.summary)}. {text.totals}."
    rows = [wants, reveal_text(request.why)]
    if call.reason:
        rows.append(f"Reason given by the agent: {reveal_text(preview_text(call.reason, _MAX_REASON_CHARS))}")
    return "\n".join(rows)


def _row_text(row: TextRow) -> str:
    match row.kind:
        case "file":
            return f"- {row.text}"
        case "warning":
            return f"Warning: {row.text}"
        case _:
            return row.text


def _is_editable(request: PermissionRequest) -> bool:
    if len(request.files) != 1:
        return False
    after = request.files[0].plan.after
    return after.exists and after.is_text and request.files[0].plan.changes_bytes


def _edited_contents(reply: ElicitationReply, request: PermissionRequest) -> Mapping[str, str]:
    content = reply.content.get("content")
    if not isinstance(content, str) or not content or not _is_editable(request):
        return {}
    one = request.files[0]
    ends = one.plan.after.data.endswith((b"\n", b"\r")) and not content.endswith(("\n", "\r"))
    return {one.path: content + "\n" if ends else content}  # a last line break can hardly be typed into a form


def round_input(params: Json) -> RoundInput:
    """Return what a call of the stateless era brings along."""
    given = cast("Json", params.get("inputResponses") or {})
    replies = {key: _reply_from(one) for key, one in given.items() if is_elicitation_result(one)}
    return RoundInput(state=params.get("requestState") or "", replies=replies)


def elicitation_reply(result: Json | None, error: Json | None) -> ElicitationReply:
    """Return the reply of a client that was shown a form; raise when it could not show it."""
    if error is not None:
        if error["code"] == CONNECTION_CLOSED:
            raise client_gone_error()
        raise PermissionRequired("The client could not ask for approval.", cause=error["message"])
    if not is_elicitation_result(result):
        cause = "its answer does not follow the protocol"
        raise PermissionRequired("The client could not ask for approval.", cause=cause)
    return _reply_from(cast("Json", result))


def _reply_from(result: Json) -> ElicitationReply:
    return ElicitationReply(action=result["action"], content=result.get("content") or {})
