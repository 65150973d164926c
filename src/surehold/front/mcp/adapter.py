"""Answers MCP requests without a protocol library: plain data in, plain data out.

1. It is synchronous, and safe to call from many threads at once.
2. Every string that leaves it is valid UTF-8.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from surehold.errors import OutsideWorkspace, PermissionDenied, SureholdError
from surehold.front.mcp.app_view import VIEW_URI, AppView
from surehold.front.mcp.approval import CommandDesk
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
from surehold.front.mcp.sessions import Caller, SessionRegistry
from surehold.front.mcp.tool_calls import ApprovalRouter, FinishedCall, ToolCalls, host_budget
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.text.escape import ensure_utf8
from surehold.text.measure import TextRoom
from surehold.tools.call import Json
from surehold.tools.listing import ListedTool
from surehold.workspace.session import CurrentServer
from surehold.workspace.workspace import Workspace

_RESOURCES_PER_PAGE = 500
_MAX_COMPLETIONS = 100


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
        note_call: Callable[[FinishedCall], None] | None = None,
        shares_answers: bool = False,
    ) -> None:
        """`has_page`: where a client cannot ask, the review page shows the questions of `approvals`.

        `process`: this process, when it serves one client over stdio. `note_call` hears of every call that ended.
        `shares_answers`: other processes serve the same clients, and may be asked for what was too large.
        """
        self.options = options or ServerOptions()
        self.workspace = workspace
        self.catalog = ServerCatalog(tools, roots=workspace.roots, options=self.options, prompts=prompts)
        answers = SavedAnswers(workspace if shares_answers else None)
        self.approvals = ApprovalQueue(
            seconds=self.options.ask_seconds,
            note_unanswered=workspace.record_unanswered,
            board=workspace.questions,
            outlives_us=process is None,
        )
        with suppress(SureholdError):  # the next question tries it again
            self.approvals.parked.end_left()
        self._router = ApprovalRouter(self.approvals, has_page=has_page)
        self.command_post = CommandDesk(self._router.ask_about_command, workspace.runs_dir, has_page=has_page)
        view = AppView(workspace, self.approvals)
        calls = ToolCalls(
            self.catalog.tools,
            options=self.options,
            sessions=SessionRegistry(workspace, process),
            router=self._router,
            answers=answers,
            view=view,
            note_call=note_call,
        )
        self.call_tool = calls.call_tool
        self._providers: tuple[ResourceProvider, ...] = (
            LedgerResources(workspace),
            *resources,
            view,
            answers,
            FileResources(workspace),
        )

    def announce_page(self, url: str) -> None:
        """Say where the review page is, for the questions that point to it."""
        self._router.page_url = url

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
            budget = host_budget(self.options, caller)
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
