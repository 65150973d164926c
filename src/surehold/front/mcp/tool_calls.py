"""Calls the tools: finds the session and who approves, and turns the answer into the result that a host understands.

1. A tool's refusal is a result; only a malformed request is an `RpcError`.
2. A read-only tool answers with text; hosts would show its data instead of the text.
3. A tool that changes something answers with text and data that each suffice alone. A host may show both, so together they
   fit its budget.
4. All of the data for programs is in `_meta`, for a client that asks: other hosts would show it to their model.
5. What exceeds the host's budget is saved as a resource, and the result says where. Nothing is cut silently.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from surehold.errors import PermissionRequired, SureholdError
from surehold.front.hosts.table import budget_for
from surehold.front.mcp.app_view import VIEW_TOOLS, AppView
from surehold.front.mcp.approval import PERMISSION_KEY, SPLIT_IT, ApprovalForm, InputRequired
from surehold.front.mcp.options import ServerOptions
from surehold.front.mcp.protocol import INVALID_PARAMS, NO_SUCH_RESOURCE, RESULT_KEY, SESSION_KEY, RpcError
from surehold.front.mcp.resources import SavedAnswers
from surehold.front.mcp.sessions import Caller, CallerSession, ElicitationReply, SessionRegistry, ShowForm
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.bug_report import answer_after_bug
from surehold.front.shared.pending_approval import PendingApproval, cannot_show_error
from surehold.text.escape import (
    encode_json,
    ensure_utf8,
    escape_data,
    escape_lines,
    has_surrogates,
    lone_surrogate_error,
    without_surrogates,
)
from surehold.text.measure import TextRoom
from surehold.tools.call import Answer, AnswerBudget, CallContext, Json
from surehold.tools.listing import ListedTool
from surehold.workspace.access.permission import Approval, Approver, PermissionRequest
from surehold.workspace.proposal import ChangeRecord

if TYPE_CHECKING:
    from surehold.tools.spec import AnyTool

_SESSION_ARGUMENT = "session"
_SAVED_KEY = "answerSavedAs"
_TRUNCATED_FLAGS = ("diffTruncated", "diff_truncated")
"""What says of a diff beside it that it was cut."""
_MIN_TEXT_CHARS = 200
_MIN_LIST_ITEMS = 5

KeepText = Callable[[str, str], str]
"""Keeps a text of some MIME type and returns the address of the resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """One call of a tool, as those who watch the server are told of it."""

    tool: str
    session: str
    changes: bool
    """Whether the tool can change files."""
    changed: bool
    refusal: str
    """Its kind; empty if the call was not refused."""
    reason: str
    seconds: float


class ToolCalls:
    """Calls the tools of one server, from many threads at once."""

    def __init__(
        self,
        tools: Mapping[str, ListedTool],
        *,
        options: ServerOptions,
        sessions: SessionRegistry,
        router: "ApprovalRouter",
        answers: SavedAnswers,
        view: AppView,
        note_call: Callable[[FinishedCall], None] | None,
    ) -> None:
        """`answers` keeps what is too large for a host; `note_call` hears of every call that ended."""
        self._tools, self._options, self._sessions = tools, options, sessions
        self._router, self._answers, self._view, self._note_call = router, answers, view, note_call

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Json:
        if caller.shows_views and name in VIEW_TOOLS:
            return self._view.call(name, arguments, caller)
        if name not in self._tools:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {ensure_utf8(name[:100])}", {"tools": list(self._tools)})
        tool = self._tools[name].load()
        given = dict(arguments or {})
        handle = "" if _SESSION_ARGUMENT in tool.params.known_names() else str(given.pop(_SESSION_ARGUMENT, "") or "")
        budget = host_budget(self._options, caller)
        asked = self._router.take_earlier_question(name, caller)
        shown_handle, record = "", ChangeRecord(cancelled=caller.cancelled)
        began, session_name = time.perf_counter(), ""
        try:
            owner = self._sessions.find_session(caller, handle=handle, otherwise=asked.handle if asked else "")
            shown_handle = owner.handle if caller.era == "stateless" else ""
            approver = self._router.approver_for(owner, caller, name, asked, one_change=tool.is_one_change(given))
            session = owner.session.with_call_id(caller.call_id)
            if caller.idempotency_key and not tool.hints.read_only:
                given.setdefault("idempotencyKey", caller.idempotency_key)
            session_name = session.id
            session = session.with_approver(approver) if approver else session
            context = CallContext(
                session=session if tool.hints.read_only else session.with_record(record),
                budget=budget,
                unchecked=self._options.unchecked,
                deprecated_names=self._options.deprecated_names,
                progress=caller.progress,
                cancelled=caller.cancelled,
            )
            answer = _run_tool(tool, context, given, record, repaired=caller.repaired)
        except InputRequired as question:
            return question.to_result()
        except SureholdError as error:
            answer = tool.refusal_answer(error)
        if self._note_call is not None:
            self._note_call(
                FinishedCall(
                    tool=name,
                    session=session_name,
                    changes=not tool.hints.read_only,
                    changed=bool(record.change_ids),
                    refusal=answer.error.kind if answer.error else "",
                    reason=answer.error.reason if answer.error else "",
                    seconds=time.perf_counter() - began,
                )
            )
        if answer.error is not None and name in self._options.contract_errors:
            room = TextRoom(size=budget.answer, measure=budget.size_of_data)
            raise _contract_error(answer.error, cut_data_to_fit(answer.data, room, self._answers.keep_text), caller)
        presented = ResultOptions(
            budget=budget,
            handle=shown_handle,
            keep=self._answers.keep_text,
            with_data=self._options.meta or caller.wants_data,
        )
        present = partial(tool_result, tool, options=presented)
        try:
            return present(answer)
        except Exception as error:  # noqa: BLE001 - the host must get an answer
            return present(answer_after_bug(tool, error, record, "mcp"))


def _run_tool(
    tool: "AnyTool", context: CallContext, arguments: Json, record: ChangeRecord, *, repaired: bool
) -> Answer:
    if repaired or has_surrogates(arguments):
        arguments = without_surrogates(arguments)
        if not tool.hints.read_only:
            return tool.record_refusal(context, arguments, lone_surrogate_error())
    try:
        answer = tool.call(context, arguments)
        failure = answer.bug or answer.error
        return answer_after_bug(tool, failure, record, "mcp") if failure and record.change_ids else answer
    except InputRequired:
        raise
    except Exception as error:  # noqa: BLE001 - the host must get an answer
        return answer_after_bug(tool, error, record, "mcp")


def _contract_error(error: SureholdError, data: Json, caller: Caller) -> RpcError:
    """Return a refusal as the contract spells it; the stateless era forbids one of its codes, which then is in the data."""
    code = INVALID_PARAMS if caller.era == "stateless" and error.code == NO_SUCH_RESOURCE else error.code
    details = data.get("error", {}).get("data")
    shown: Json = {"code": error.code, **details} if isinstance(details, dict) else data
    return RpcError(code, ensure_utf8(error.message), ensure_utf8(shown))


def host_budget(options: ServerOptions, caller: Caller) -> AnswerBudget:
    """Return how large an answer the host of a caller takes."""
    return budget_for(
        caller.client, max_chars=options.max_chars, max_tokens=options.max_tokens, only_lower=options.max_only_lowers
    )


class ApprovalRouter:
    """Chooses who approves the changes of a call: the person at its client, or the one at the review page."""

    def __init__(self, queue: ApprovalQueue, *, has_page: bool) -> None:
        self._queue = queue
        self._has_page = has_page
        self.page_url = ""
        """Where the review page is, once the port is open."""

    def take_earlier_question(self, tool: str, caller: Caller) -> PendingApproval | None:
        if caller.round is None or not caller.round.state:
            return None
        asked = self._queue.parked.take(caller.round.state)
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
            return partial(self._ask_at_client, caller.show_form, caller)
        if caller.round is None or caller.shows_views:
            return partial(self._ask_on_page, caller) if self._has_page or caller.shows_views else None
        if not one_change:
            return _refuse_one_by_one
        reply = caller.round.replies.get(PERMISSION_KEY)
        answered = [(asked, reply)] if asked and reply else []
        return partial(self._ask_between_calls, answered, tool, owner.handle, caller)

    def ask_about_command(self, caller: Caller, request: PermissionRequest) -> Approval:
        """Ask whoever can be asked about a command that another process runs."""
        if caller.show_form is not None:
            return self._ask_at_client(caller.show_form, caller, request)
        return self._ask_on_page(caller, request)

    def _ask_on_page(self, caller: Caller, request: PermissionRequest) -> Approval:
        return self._queue.ask(request, cancelled=caller.cancelled, gone=caller.gone)

    def _ask_at_client(self, show_form: ShowForm, caller: Caller, request: PermissionRequest) -> Approval:
        form = ApprovalForm.for_request(request)
        if form.unseen and not self._has_page:
            raise cannot_show_error(request, form.unseen, action=SPLIT_IT)

        def show(question: PendingApproval) -> Future[Approval]:
            page = f"{self.page_url}/review/question/{question.id}" if self._has_page else ""
            read = partial(form.read_reply, who=caller.who, page=page)
            return show_form(form.as_params(page=page, seconds=self._queue.seconds), read)

        return self._queue.ask(
            request,
            show=show,
            listed=self._has_page or caller.shows_views,
            cancelled=caller.cancelled,
            gone=caller.gone,
        )

    def _ask_between_calls(
        self,
        answered: list[tuple[PendingApproval, ElicitationReply]],
        tool: str,
        handle: str,
        caller: Caller,
        request: PermissionRequest,
    ) -> Approval:
        form = ApprovalForm.for_request(request)
        if form.unseen and self._has_page:
            return self._ask_on_page(caller, request)  # a parked question cannot be answered there
        if form.unseen:
            raise cannot_show_error(request, form.unseen, action=SPLIT_IT)
        if not answered:
            state = self._queue.parked.park(request, tool=tool, handle=handle)
            raise InputRequired(form.as_params(seconds=self._queue.seconds), state)
        asked, reply = answered.pop()
        asked.check_same_change(request)
        return form.read_reply(reply, who=caller.who)


def _refuse_one_by_one(request: PermissionRequest) -> Approval:
    message = f"{request.why} The files of one call cannot be approved one by one here."
    action = "Send it with `atomic: true`, or each file in a call of its own."
    raise PermissionRequired(message, path=request.files[0].path, action=action)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOptions:
    budget: AnswerBudget
    keep: KeepText
    handle: str = ""
    """The session to go on with, where the client must name it."""
    with_data: bool = False
    """Put the data for programs into `_meta`."""


def tool_result(tool: ListedTool, answer: Answer, *, options: ResultOptions) -> Json:
    budget = options.budget
    text = ensure_utf8(answer.text) if tool.hints.read_only else escape_lines(answer.text)
    plain, structured = False, None
    if tool.output_schema is not None or options.with_data:
        encoded = encode_json(answer.data)
        plain = encoded.isascii() and "\x7f" not in encoded  # then there is nothing to escape
    if tool.output_schema is not None:
        same = answer.structured is None or answer.structured is answer.data
        data = answer.data if plain and same else escape_data(answer.structured or answer.data)
        text, structured = _fit_both(text, data, options)
    elif not budget.delivers(text):
        text = cut_text_to_fit(text, TextRoom(size=budget.answer, measure=budget.size_of), options.keep)
    content: list[Json] = [{"type": "text", "text": text}] if text or not answer.content else []
    result: Json = {
        "content": [*content, *ensure_utf8(answer.content)] if answer.content else content,
        "isError": not answer.ok,
    }
    if structured is not None:
        result["structuredContent"] = structured
    meta: Json = {}
    if options.with_data and structured != answer.data:
        meta[RESULT_KEY] = answer.data if plain else ensure_utf8(answer.data)
    if options.handle:
        meta[SESSION_KEY] = options.handle
    return {**result, "_meta": meta} if meta else result


def _fit_both(text: str, data: Json, options: ResultOptions) -> tuple[str, Json]:
    """Return a text and data that fit together; if they do not, each gets at least half."""
    budget = options.budget
    size = budget.size_of_data(encode_json(data))
    if budget.size_of(text) + size <= budget.answer:
        return text, data
    for_text = TextRoom(size=max(budget.answer - size, budget.answer // 2), measure=budget.size_of)
    text = cut_text_to_fit(text, for_text, options.keep)
    for_data = TextRoom(size=budget.answer - budget.size_of(text), measure=budget.size_of_data)
    return text, cut_data_to_fit(data, for_data, options.keep)


def cut_text_to_fit(text: str, room: TextRoom, keep: KeepText) -> str:
    """Return a text that fits; the whole one is kept when it does not."""
    if room.measure(text) <= room.size:
        return text
    uri = keep(text, "text/plain")
    longest = _rest_note(len(text), uri)
    head = room.less(room.measure(longest)).cut_text(text)
    head = head[: head.rfind("\n") + 1] or head
    return head + _rest_note(len(text) - len(head), uri)


def _rest_note(count: int, uri: str) -> str:
    return f"\n[{count:,} more characters did not fit. All of it is the resource {uri}]"


def cut_data_to_fit(data: Json, room: TextRoom, keep: KeepText) -> Json:
    """Return data that fits as JSON: the longest texts and lists in it are shortened, and all of it is kept."""
    whole = encode_json(data)
    if room.measure(whole) <= room.size:
        return data
    uri = keep(whole, "application/json")
    for length, count in _shortening_steps(room.size):
        small = {**cast("Json", _shorten_values(data, length, count, uri)), _SAVED_KEY: uri}
        if room.measure(encode_json(small)) <= room.size:
            return small
    return {_SAVED_KEY: uri}


def _shortening_steps(size: int) -> Iterator[tuple[int, int]]:
    """Yield shorter and shorter texts and lists; below what makes sense only when nothing else helps."""
    length = count = size
    while length > _MIN_TEXT_CHARS or count > _MIN_LIST_ITEMS:
        length, count = max(length // 2, _MIN_TEXT_CHARS), max(count // 2, _MIN_LIST_ITEMS)
        yield length, count
    while length:
        length, count = length // 2, count // 2
        yield length, count


def _shorten_values(value: Any, length: int, count: int, uri: str) -> Any:
    if isinstance(value, str):
        rest = len(value) - length
        note = f"\n[{rest:,} more characters: {uri}]" if length >= _MIN_TEXT_CHARS else "…"
        return value if rest <= 0 else f"{value[:length]}{note}"
    if isinstance(value, dict):
        rows = cast("Json", value)
        short = {key: _shorten_values(inner, length, count, uri) for key, inner in rows.items()}
        return short | {
            flag: True for flag in _TRUNCATED_FLAGS if flag in rows and short.get("diff") != rows.get("diff")
        }
    if isinstance(value, (list, tuple)):
        return [_shorten_values(inner, length, count, uri) for inner in cast("list[Any]", value)[:count]]
    return value
