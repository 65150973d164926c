"""Answers MCP requests without a protocol library: plain data in, plain data out.

1. It is synchronous, and safe to call from many threads at once.
2. A tool's refusal is a result; only a malformed request is an `RpcError`.
3. Every string that leaves it is valid UTF-8.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from surehold.errors import OutsideWorkspace, PermissionDenied, SureholdError
from surehold.front.hosts.table import budget_for
from surehold.front.mcp.app_view import VIEW_TOOLS, VIEW_URI, AppView
from surehold.front.mcp.approval import ApprovalRouter, CommandDesk, InputRequired
from surehold.front.mcp.catalog import Prompt, ServerCatalog
from surehold.front.mcp.options import ServerOptions
from surehold.front.mcp.protocol import (
    INVALID_PARAMS,
    NO_SUCH_RESOURCE,
    RpcError,
    require_first_page,
    unknown_cursor_error,
)
from surehold.front.mcp.resources import (
    FileResources,
    LedgerResources,
    ResourceProvider,
    SavedAnswers,
    cut_resource,
    split_address,
)
from surehold.front.mcp.results import ResultOptions, cut_data_to_fit, tool_result
from surehold.front.mcp.sessions import Caller, SessionRegistry
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.bug_report import answer_after_bug
from surehold.text.escape import ensure_utf8, has_surrogates, lone_surrogate_error, without_surrogates
from surehold.text.measure import TextRoom
from surehold.tools.call import Answer, AnswerBudget, CallContext, Json
from surehold.tools.listing import ListedTool
from surehold.workspace.proposal import ChangeRecord
from surehold.workspace.session import CurrentServer
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.tools.spec import AnyTool

_RESOURCES_PER_PAGE = 500
_MAX_COMPLETIONS = 100
_SESSION_ARGUMENT = "session"


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


class Adapter:
    """Answers every request of the protocol that needs the workspace."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        tools: Sequence[ListedTool],
        options: ServerOptions | None = None,
        resources: Sequence[ResourceProvider] = (),
        prompts: Sequence[Prompt] = (),
        has_page: bool = False,
        process: CurrentServer | None = None,
        note_call: Callable[[FinishedCall], None] = lambda _: None,
        shares_answers: bool = False,
    ) -> None:
        """`has_page`: where a client cannot ask, the review page shows the questions of `approvals`.

        `process`: this process, when it serves one client over stdio. `note_call` hears of every call that ended.
        `shares_answers`: other processes serve the same clients, and may be asked for what was too large.
        """
        self._note_call = note_call
        self.options = options or ServerOptions()
        self.workspace = workspace
        self.catalog = ServerCatalog(tools, roots=workspace.roots, options=self.options, prompts=prompts)
        self._tools = self.catalog.tools
        self._sessions = SessionRegistry(workspace, process)
        self._answers = SavedAnswers(workspace if shares_answers else None)
        self.approvals = ApprovalQueue(
            seconds=self.options.ask_seconds,
            note_unanswered=workspace.record_unanswered,
            board=workspace.questions,
            outlives_us=process is None,
        )
        with suppress(SureholdError):  # the next question tries it again
            self.approvals.parked.end_left()
        self._router = ApprovalRouter(self.approvals, has_page=has_page)
        self.command_post = CommandDesk(self._router, workspace.runs_dir, has_page=has_page)
        files = FileResources(workspace)
        self._view = AppView(workspace, self.approvals)
        self._providers: tuple[ResourceProvider, ...] = (
            LedgerResources(workspace),
            *resources,
            self._view,
            self._answers,
            files,
        )

    def announce_page(self, url: str) -> None:
        """Say where the review page is, for the questions that point to it."""
        self._router.page_url = url

    # Tools.
    def call_tool(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Json:
        if caller.shows_views and name in VIEW_TOOLS:
            return self._view.call(name, arguments, caller)
        if name not in self._tools:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {ensure_utf8(name[:100])}", {"tools": list(self._tools)})
        tool = self._tools[name].load()
        given = dict(arguments or {})
        handle = "" if _SESSION_ARGUMENT in tool.params.known_names() else str(given.pop(_SESSION_ARGUMENT, "") or "")
        budget = self._budget_for(caller)
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
                unchecked=self.options.unchecked,
                deprecated_names=self.options.deprecated_names,
                progress=caller.progress,
                cancelled=caller.cancelled,
            )
            answer = _run_tool(tool, context, given, record, repaired=caller.repaired)
        except InputRequired as question:
            return question.to_result()
        except SureholdError as error:
            answer = tool.refusal_answer(error)
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
        if answer.error is not None and name in self.options.contract_errors:
            room = TextRoom(size=budget.answer, measure=budget.size_of_data)
            raise _contract_error(answer.error, cut_data_to_fit(answer.data, room, self._answers.keep_text), caller)
        presented = ResultOptions(
            budget=budget,
            handle=shown_handle,
            keep=self._answers.keep_text,
            with_data=self.options.meta or caller.wants_data,
        )
        present = partial(tool_result, tool, options=presented)
        try:
            return present(answer)
        except Exception as error:  # noqa: BLE001 - the host must get an answer
            return present(answer_after_bug(tool, error, record, "mcp"))

    def _budget_for(self, caller: Caller) -> AnswerBudget:
        options = self.options
        return budget_for(
            caller.client,
            max_chars=options.max_chars,
            max_tokens=options.max_tokens,
            only_lower=options.max_only_lowers,
        )

    # Resources.
    def list_resources(self, cursor: str | None = None) -> Json:
        """Return one page of resources: some of one provider after the other."""
        number, after = _parse_cursor(cursor, len(self._providers))
        rows = list[Json]()
        while number < len(self._providers) and len(rows) < _RESOURCES_PER_PAGE:
            try:
                found, after = self._providers[number].list_page(after)
            except SureholdError as error:
                raise RpcError(INVALID_PARAMS, ensure_utf8(error.message), {"kind": error.kind}) from None
            rows += found
            number += not after
        result: Json = {"resources": ensure_utf8(rows)}
        return {**result, "nextCursor": f"{number}:{after}"} if number < len(self._providers) else result

    def list_templates(self, cursor: str | None = None) -> Json:
        require_first_page(cursor)
        rows = [row for provider in self._providers for row in provider.list_templates()]
        return {"resourceTemplates": ensure_utf8(rows)}

    def read_resource(self, uri: str, caller: Caller) -> Json:
        """Return a resource, or the part of it that fits the client."""
        base, start = split_address(uri)
        try:
            contents = (provider.read_resource(base) for provider in self._providers)
            found = next((rows for rows in contents if rows is not None), None)
            budget = self._budget_for(caller)
            if base == VIEW_URI:  # for the host, not for its model
                return {"contents": list(found or ())}
            room = TextRoom(size=budget.answer, measure=budget.size_of)
            parts = [
                part for one in ensure_utf8(found or ()) for part in cut_resource({**one, "uri": uri}, start, room)
            ]
        except SureholdError as error:
            raise _missing_resource(uri, caller, f"{error.message} {error.action}".strip(), error.kind) from None
        except (OSError, ValueError) as error:  # a name that no file can have
            raise _missing_resource(uri, caller, f"`{uri}` cannot be read: {error}.", "not_found") from None
        if found is None:
            raise _missing_resource(uri, caller, f"There is no resource `{uri}`.", "not_found")
        return {"contents": parts}

    def check_watchable(self, uri: str, caller: Caller) -> None:
        """Refuse to watch what may not be read; what does not exist yet may come."""
        try:
            known = any(provider.content_mark(uri) is not None for provider in self._providers)
        except (PermissionDenied, OutsideWorkspace) as error:
            raise _missing_resource(uri, caller, error.message, error.kind) from None
        except SureholdError:
            return
        if not known:
            raise _missing_resource(uri, caller, f"There is no resource `{uri[:200]}`.", "not_found")

    def resource_mark(self, uri: str) -> str:
        """Return a text that differs whenever the resource does; empty while it cannot be read."""
        try:
            return next((mark for provider in self._providers if (mark := provider.content_mark(uri)) is not None), "")
        except SureholdError as error:
            return f"{error.kind} {error.reason}"
        except (OSError, ValueError) as error:
            return str(error)

    def complete_template(self, template: str, value: str) -> Json:
        try:
            found = [one for provider in self._providers for one in provider.complete_value(template, value)]
        except (SureholdError, OSError, ValueError):  # what was typed so far leads nowhere
            found = []
        shown = {"values": ensure_utf8(found[:_MAX_COMPLETIONS]), "total": len(found)}
        return {"completion": {**shown, "hasMore": len(found) > _MAX_COMPLETIONS}}


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


def _parse_cursor(cursor: str | None, providers: int) -> tuple[int, str]:
    """Return the provider to go on with, and where in it."""
    if cursor is None:
        return 0, ""
    number, colon, after = cursor.partition(":")
    if not (colon and number.isascii() and number.isdigit() and int(number) < providers):
        raise unknown_cursor_error()
    return int(number), after


def _missing_resource(uri: str, caller: Caller, message: str, kind: str) -> RpcError:
    code = INVALID_PARAMS if caller.era == "stateless" else NO_SUCH_RESOURCE
    return RpcError(code, ensure_utf8(message), {"uri": ensure_utf8(uri), "kind": kind})
