"""The view of a change inside a host that shows MCP Apps: its diff, with allow, refuse, undo and redo.

1. Only a client that announces the extension is offered the view, and the tools that the view calls. The host hides those
   from the model.
2. They also require a key that is only in the page of the view, so a model that calls one decides nothing.
3. A call that needs approval waits, as for the review page; the view shows its question while it does.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any

from surehold.errors import InvalidArgument, NotFound, PermissionDenied, SureholdError
from surehold.front.mcp.protocol import VIEW_TYPE
from surehold.front.mcp.resources import ResourceProvider
from surehold.front.mcp.sessions import Caller
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.change_text import unseen_lines
from surehold.front.shared.pending_approval import PendingApproval, approval_for
from surehold.front.shared.person import person_name
from surehold.text.diff_rows import classify_rows
from surehold.text.escape import ensure_utf8, reveal_lines, reveal_text
from surehold.tools.call import Json
from surehold.workspace.proposal import CallAuthor
from surehold.workspace.workspace import Workspace

VIEW_URI = "ui://surehold/change.html"
_MAX_ROWS = 2000
_TEXT = {"type": "string"}


def _app_tool(name: str, description: str, **properties: Json) -> Json:
    schema = {"type": "object", "properties": {"key": _TEXT, **properties}, "required": ["key", *properties]}
    return {
        "name": name,
        "description": f"For the view of a change, not for models: {description}",
        "inputSchema": schema,
        "_meta": {"ui": {"resourceUri": VIEW_URI, "visibility": ["app"]}},
    }


VIEW_TOOLS = {
    one["name"]: one
    for one in (
        _app_tool("view_questions", "what waits for the person."),
        _app_tool("view_decide", "their answer.", question=_TEXT, decision=_TEXT, unseen={"type": "integer"}),
        _app_tool("view_change", "the diff of a change.", change=_TEXT),
        _app_tool("view_switch", "undo or redo.", change=_TEXT, operation=_TEXT),
    )
}
VIEW_META: Json = {"ui": {"resourceUri": VIEW_URI, "visibility": ["model", "app"]}}


class AppView(ResourceProvider):
    """The page of the view, and what it calls. Called from any thread."""

    def __init__(self, workspace: Workspace, questions: ApprovalQueue) -> None:
        self._workspace, self._questions = workspace, questions
        self._key = secrets.token_urlsafe(24)
        self._answers: Mapping[str, Callable[[Json, Caller], Json]] = {
            "view_questions": lambda _, caller: self._list_questions(caller),
            "view_decide": self._decide,
            "view_change": self._show_change,
            "view_switch": self._switch_change,
        }

    def read_resource(self, uri: str) -> Sequence[Json] | None:
        if uri != VIEW_URI:
            return None
        meta: Json = {"ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}}
        return [{"uri": uri, "mimeType": VIEW_TYPE, "text": self._page.replace("@KEY@", self._key), "_meta": meta}]

    @cached_property
    def _page(self) -> str:
        return files(__package__ or "").joinpath("view.html").read_text(encoding="utf-8")

    def call(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Json:
        """Answer a call of the view; one without its key comes from elsewhere."""
        given = dict(arguments or {})
        try:
            if not secrets.compare_digest(str(given.get("key", "")).encode("utf-8", "replace"), self._key.encode()):
                action = "Leave it to the person."
                raise PermissionDenied("Only the view of a change can call this.", reason="not_the_view", action=action)
            return _text_result(self._answers[name](given, caller))
        except SureholdError as error:
            return {**_text_result(f"{error.message} {error.action}".strip()), "isError": True}

    def _list_questions(self, caller: Caller) -> Json:
        return {"questions": [_question_data(one) for one in self._questions_of(caller)]}

    def _questions_of(self, caller: Caller) -> list[PendingApproval]:
        return [one for one in self._questions.list_own() if one.request.call.agent == caller.client]

    def _decide(self, given: Json, caller: Caller) -> Json:
        question = next((one for one in self._questions_of(caller) if one.id == given.get("question")), None)
        decision = given.get("decision")
        if question is None:
            raise NotFound("This question is no longer open.", reason="no_such_question")
        if decision not in ("allow", "refuse"):
            raise InvalidArgument("The decision must be allow or refuse.", reason="no_decision")
        unseen = len(question.view.hidden)
        named = given.get("unseen") if not question.request.is_protected else 0
        if decision == "allow" and unseen > (named if isinstance(named, int) else 0):
            raise InvalidArgument(f"Nothing was decided: {unseen_lines(unseen)}.", reason="unseen")
        approval = approval_for(decision, where="form", who=caller.who)
        self._questions.answer_question(question.id, approval, where="form")
        return {"decided": decision}

    def _show_change(self, given: Json, caller: Caller) -> Json:
        history, view = self._workspace.history, self._change_of(given, caller)
        rows = list(classify_rows(reveal_lines(history.diff(view)).rstrip("\n")))
        if len(rows) > _MAX_ROWS:
            rows = [*rows[:_MAX_ROWS], ("note", f"… {len(rows) - _MAX_ROWS:,} more rows: surehold show {view}")]
        shown = history.show(view)
        first = shown.entries[0]
        names = ", ".join(dict.fromkeys(reveal_text(one.change.to_path or one.change.path) for one in shown.entries))
        return {"title": f"{first.call.operation} {names}", "rows": rows, "undone": bool(shown.undone_by)}

    def _switch_change(self, given: Json, caller: Caller) -> Json:
        history, change = self._workspace.history, self._change_of(given, caller)
        if given.get("operation") not in ("undo", "redo"):
            raise InvalidArgument("The operation must be undo or redo.", reason="no_operation")
        act = history.undo if given["operation"] == "undo" else history.redo
        return {"change": act(change, author=CallAuthor(agent=caller.who or person_name())).change_id}

    def _change_of(self, given: Json, caller: Caller) -> str:
        """Return the id of a change of this client; it sees no others."""
        shown = self._workspace.history.show(str(given.get("change", "")))
        paths = [name for one in shown.entries for name in (one.change.path, one.change.to_path) if name]
        if shown.entries[0].call.agent != caller.client or not all(map(self._workspace.may_show_recorded, paths)):
            raise NotFound("There is no such change here.", reason="no_such_change")
        return shown.id


def _question_data(one: PendingApproval) -> Json:
    request, unseen = one.request, len(one.view.hidden)
    return {
        "id": one.id,
        "agent": reveal_text(request.call.agent or "An agent"),
        "summary": reveal_text(request.summary),
        "totals": one.text.totals,
        "why": reveal_text(request.why),
        "rows": [[row.kind, row.text] for row in one.view.rows],
        "unseen": unseen,
        "allowable": not (unseen and request.is_protected),
    }


def _text_result(data: Json | str) -> Json:
    text = data if isinstance(data, str) else json.dumps(ensure_utf8(data))
    return {"content": [{"type": "text", "text": ensure_utf8(text)}], "isError": False}
