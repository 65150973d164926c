"""Answers MCP requests without a protocol library: plain data in, plain data out.

1. It is synchronous, and safe to call from many threads at once.
2. A tool's refusal is a result; only a malformed request is an `RpcError`.
3. Every string that leaves it is valid UTF-8.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument, OutsideWorkspace, PermissionDenied, SureholdError
from surehold.front.hosts.table import budget_for
from surehold.front.mcp.approval import ApprovalRouter, InputRequired
from surehold.front.mcp.options import ALL_TOOLS, ServerOptions
from surehold.front.mcp.resources import (
    FileResources,
    LedgerResources,
    ResourceProvider,
    SavedAnswers,
    cut_resource,
    split_address,
)
from surehold.front.mcp.results import ResultOptions, cut_data_to_fit, tool_result
from surehold.front.mcp.sessions import INVALID_PARAMS, NO_SUCH_RESOURCE, Caller, RpcError, SessionRegistry
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.bug_report import answer_after_bug
from surehold.front.shared.sanitize import ensure_utf8, has_surrogates, lone_surrogate_error, without_surrogates
from surehold.text.measure import TextRoom
from surehold.tools.call import Answer, AnswerBudget, CallContext, Json
from surehold.tools.export import build_guidance, mcp_tool
from surehold.tools.listing import ListedTool
from surehold.workspace.current_server import CurrentServer
from surehold.workspace.proposal import ChangeRecord
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.tools.spec import AnyTool

_MAX_RESULT_CHARS = 200_000
"""Up to here a host that files large results away leaves ours alone: they are paged already."""


def tools_to_load(served: Iterable[ListedTool], named: frozenset[str]) -> frozenset[str]:
    """Return the tools that a host which loads definitions late should load at once: named ones, and what every task needs."""
    tools = tuple(served)
    usual = {one.name for one in tools if one.hints.always_loaded}
    alone = {one.name for one in tools if one.hints.loaded_when_alone}
    return frozenset(one.name for one in tools) if ALL_TOOLS in named else named | (usual or alone)


def check_tools_to_load(named: frozenset[str], served: Sequence[ListedTool]) -> None:
    """Refuse the name of a tool that is not served."""
    names = [one.name for one in served]
    if unknown := sorted(named - {*names, ALL_TOOLS}):
        raise InvalidArgument(
            f"`{unknown[0]}` is not among the tools that are served.", action=f"Choose from {', '.join(names)}, or all."
        )


def tool_entry(tool: ListedTool, *, lean: bool = False, always_load: bool = False) -> Json:
    """Return one tool as `tools/list` spells it, with what single hosts want to know."""
    entry = mcp_tool(tool)
    if lean:
        entry["description"] = tool.description.partition("\n\n")[0]
    meta: Json = {}
    if always_load:
        meta["anthropic/alwaysLoad"] = True
    if tool.hints.read_only:
        meta["anthropic/maxResultSizeChars"] = _MAX_RESULT_CHARS
    return {**entry, "_meta": meta} if meta else entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A named text, with arguments when it has any."""

    name: str
    title: str
    description: str
    render: Callable[[Mapping[str, str]], Sequence[Json]]
    """Returns the messages, as the protocol spells them."""
    arguments: tuple[Json, ...] = ()

    def list_entry(self) -> Json:
        entry: Json = {"name": self.name, "title": self.title, "description": self.description}
        return {**entry, "arguments": list(self.arguments)} if self.arguments else entry


def as_user_message(text: str) -> Sequence[Json]:
    return [{"role": "user", "content": {"type": "text", "text": text}}]


_RESOURCES_PER_PAGE = 500
_MAX_COMPLETIONS = 100
_SESSION_ARGUMENT = "session"


class Adapter:
    """Answers every request of the protocol that is not about the connection itself."""

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
    ) -> None:
        """`has_page`: where a client cannot ask, the review page shows the questions of `approvals`.

        `process`: this process, when it serves one client over stdio.
        """
        self.options = options or ServerOptions()
        self._workspace = workspace
        served = [one for one in tools if one.hints.read_only or not self.options.read_only]
        self._tools = {one.name: one for one in sorted(served, key=lambda one: one.name)}
        self._sessions = SessionRegistry(workspace, process)
        self._answers = SavedAnswers()
        self.approvals = ApprovalQueue(
            seconds=self.options.ask_seconds,
            note_unanswered=lambda request, error: workspace.record_unanswered(request.files, request.call, error),
        )
        self._router = ApprovalRouter(self.approvals, keep=self._answers.keep_text, has_page=has_page)
        files = FileResources(workspace)
        self._providers: tuple[ResourceProvider, ...] = (LedgerResources(workspace), *resources, self._answers, files)
        guidance = Prompt(
            name="surehold",
            title="How to use Surehold",
            description="What a model should know about these file tools.",
            render=lambda _: as_user_message(self.instructions),
        )
        self._prompts = {one.name: one for one in (guidance, *prompts)}

    def announce_page(self, url: str) -> None:
        """Say where the review page is, for the questions that point to it."""
        self._router.page_url = url

    # The server itself.
    def describe_server(self) -> Json:
        from surehold import __version__

        facts = {"name": "surehold", "title": "Surehold", "version": __version__, "instructions": self.instructions}
        return ensure_utf8({**facts, "description": "File tools for AI agents that never lose an edit."})

    @property
    def instructions(self) -> str:
        """How the tools are used: for the handshake, and as a prompt."""
        return ensure_utf8(build_guidance(self._tools.values(), roots=self._workspace.roots, lean=self.options.lean))

    # Tools.
    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def list_tools(self) -> list[Json]:
        """Return every tool, always in the same order."""
        loaded = tools_to_load(self._tools.values(), self.options.always_load)
        return [
            ensure_utf8(tool_entry(one, lean=self.options.lean, always_load=one.name in loaded))
            for one in self._tools.values()
        ]

    def input_schema(self, name: str) -> Json | None:
        return self._tools[name].input_schema if name in self._tools else None

    def may_write(self, name: str) -> bool:
        """Tell whether a call of this tool may write, and so must not be given up half-way."""
        return name in self._tools and not self._tools[name].hints.read_only

    def load_tool(self, name: str) -> None:
        """Import a tool, if it is not yet."""
        if name in self._tools:
            self._tools[name].load()

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Json:
        if name not in self._tools:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {ensure_utf8(name[:100])}", {"tools": list(self._tools)})
        tool = self._tools[name].load()
        given = dict(arguments or {})
        handle = "" if _SESSION_ARGUMENT in tool.params.known_names() else str(given.pop(_SESSION_ARGUMENT, "") or "")
        budget = self._budget_for(caller)
        asked = self._router.take_earlier_question(name, caller)
        shown_handle, record = "", ChangeRecord(cancelled=caller.cancelled)
        try:
            owner = self._sessions.find_session(caller, handle=handle, otherwise=asked.handle if asked else "")
            shown_handle = owner.handle if caller.era == "stateless" else ""
            approver = self._router.approver_for(owner, caller, name, asked, one_change=tool.is_one_change(given))
            session = owner.session.with_call_id(caller.call_id)
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
        return budget_for(caller.client, max_chars=self.options.max_chars, max_tokens=self.options.max_tokens)

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

    def list_templates(self) -> Json:
        rows = [row for provider in self._providers for row in provider.list_templates()]
        return {"resourceTemplates": ensure_utf8(rows)}

    def read_resource(self, uri: str, caller: Caller) -> Json:
        """Return a resource, or the part of it that fits the client."""
        base, start = split_address(uri)
        try:
            contents = (provider.read_resource(base) for provider in self._providers)
            found = next((rows for rows in contents if rows is not None), None)
            budget = self._budget_for(caller)
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

    # Prompts.
    def list_prompts(self) -> Json:
        return {"prompts": ensure_utf8([one.list_entry() for one in self._prompts.values()])}

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Json:
        prompt = self._prompts.get(name)
        if prompt is None:
            known = {"prompts": list(self._prompts)}
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {ensure_utf8(name[:100])}", known)
        return {"description": prompt.description, "messages": ensure_utf8(list(prompt.render(arguments or {})))}


def _run_tool(
    tool: "AnyTool", context: CallContext, arguments: Json, record: ChangeRecord, *, repaired: bool
) -> Answer:
    if repaired or has_surrogates(arguments):
        arguments = without_surrogates(arguments)
        if not tool.hints.read_only:
            return tool.record_refusal(context, arguments, lone_surrogate_error())
    try:
        answer = tool.call(context, arguments)
        failure = (answer.bug or answer.error) if record.change_ids else None
        return answer_after_bug(tool, failure, record, "mcp") if failure else answer
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
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours; begin without one.")
    return int(number), after


def _missing_resource(uri: str, caller: Caller, message: str, kind: str) -> RpcError:
    code = INVALID_PARAMS if caller.era == "stateless" else NO_SUCH_RESOURCE
    return RpcError(code, ensure_utf8(message), {"uri": ensure_utf8(uri), "kind": kind})
