"""The server without a protocol library: plain data in, plain data out.

1. It is synchronous, and safe to be called from many threads at once.
2. A tool's refusal is a result; only a request that makes no sense is an `RpcError`.
3. Every string that leaves it is valid UTF-8.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from surehold.errors import OutsideWorkspace, PermissionDenied, SureholdError
from surehold.front.mcp.answers import Answers
from surehold.front.mcp.approvers import Elsewhere, People
from surehold.front.mcp.budgets import budget_for
from surehold.front.mcp.caller import INVALID_PARAMS, NO_SUCH_RESOURCE, Caller, RpcError
from surehold.front.mcp.files_shelf import FilesShelf
from surehold.front.mcp.ledger_shelf import LedgerShelf
from surehold.front.mcp.listing import tool_entry
from surehold.front.mcp.profile import Profile
from surehold.front.mcp.prompts import Prompt, said
from surehold.front.mcp.results import tool_result
from surehold.front.mcp.rounds import Unanswered
from surehold.front.mcp.sessions import Seat, Sessions
from surehold.front.mcp.shelves import Shelf
from surehold.front.mcp.strings import half_a_character, has_surrogates, valid, without_surrogates
from surehold.tools.context import Context
from surehold.tools.guide import guidance, protocol
from surehold.tools.spec import Answer, AnyTool, Json
from surehold.workspace.workspace import Workspace

_PAGE = 500
_COMPLETIONS = 100
_SESSION = "session"


class Adapter:
    """Answers every request of the protocol that is not about the connection itself."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        tools: Sequence[AnyTool],
        profile: Profile | None = None,
        shelves: Sequence[Shelf] = (),
        prompts: Sequence[Prompt] = (),
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.profile = profile or Profile()
        self._workspace = workspace
        served = [one for one in tools if one.hints.read_only or not self.profile.read_only]
        self._tools = {one.name: one for one in sorted(served, key=lambda one: one.name)}
        self._sessions = Sessions(workspace)
        self._answers = Answers()
        self._people = People(keep=self._answers.keep, seconds=self.profile.ask_seconds, elsewhere=elsewhere)
        files = FilesShelf(workspace)
        self._shelves: tuple[Shelf, ...] = (LedgerShelf(workspace), *shelves, self._answers, files)
        guidance = Prompt(
            name="surehold",
            title="How to use Surehold",
            description="What a model should know about these file tools.",
            render=lambda _: said(self.guidance),
        )
        self._prompts = {one.name: one for one in (guidance, *prompts)}

    # The server itself.
    def describe(self) -> Json:
        """Return who this is, and what a model should know."""
        from surehold import __version__

        return valid(
            {
                "name": "surehold",
                "title": "Surehold",
                "version": __version__,
                "description": "File tools for AI agents that never lose an edit.",
                "instructions": self.instructions,
            }
        )

    @property
    def instructions(self) -> str:
        """What a host tells its model."""
        found, roots = self._tools.values(), self._workspace.roots
        brief = [one.brief for one in found if one.brief]
        return valid("\n\n".join([protocol(list(self._tools), roots=roots, lean=self.profile.lean), *brief]))

    @property
    def guidance(self) -> str:
        """The long form, for whoever asks for it."""
        return valid(guidance(self._tools.values(), roots=self._workspace.roots, lean=self.profile.lean))

    # Tools.
    @property
    def names(self) -> tuple[str, ...]:
        """Which tools are served."""
        return tuple(self._tools)

    def list_tools(self) -> list[Json]:
        """Return every tool, always in the same order."""
        return [valid(tool_entry(one, lean=self.profile.lean)) for one in self._tools.values()]

    def input_schema(self, name: str) -> Json | None:
        """Return what a tool takes."""
        return self._tools[name].input_schema if name in self._tools else None

    def changes(self, name: str) -> bool:
        """Tell whether a call of this tool may write, and so must not be given up half-way."""
        return name in self._tools and not self._tools[name].hints.read_only

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None, caller: Caller) -> Json:
        """Call a tool."""
        tool = self._tools.get(name)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {valid(name[:100])}", {"tools": list(self._tools)})
        given = dict(arguments or {})
        handle = "" if _SESSION in tool.params.known() else str(given.pop(_SESSION, "") or "")
        budget = budget_for(caller.client, max_chars=self.profile.max_chars, max_tokens=self.profile.max_tokens)
        asked = self._people.earlier(name, caller)
        seat: Seat | None = None
        try:
            seat = self._sessions.seat(caller, handle=handle, otherwise=asked.handle if asked else "")
            context = Context(
                session=self._people.beside(seat, caller, name, asked, atomic=given.get("atomic", True) is True),
                budget=budget,
                unchecked=self.profile.unchecked,
                deprecated_names=self.profile.deprecated_names,
                progress=caller.progress,
                cancelled=caller.cancelled,
            )
            answer = self._answer(tool, context, given, mended=caller.mended)
        except Unanswered as question:
            return question.result()
        except SureholdError as error:
            answer = tool.refusal(error)
        if answer.error is not None and name in self.profile.contract_errors:
            raise _by_contract(answer.error, answer.data, caller)
        shown_handle = seat.handle if seat and caller.era == "stateless" else ""
        return tool_result(tool, answer, budget=budget, handle=shown_handle, keep=self._answers.keep)

    def _answer(self, tool: AnyTool, context: Context, arguments: Json, *, mended: bool) -> Answer:
        halves = mended or has_surrogates(arguments)
        if halves and not tool.hints.read_only:
            return _recorded(tool, context, arguments, half_a_character())
        if halves:
            arguments = without_surrogates(arguments)
        try:
            return tool.call(context, arguments)
        except Unanswered:
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence: the host must get an answer
            from surehold.front.report import bug

            return tool.refusal(bug(error, ["mcp", tool.name]))

    # Resources.
    def list_resources(self, cursor: str | None = None) -> Json:
        """Return one page of resources: some of one shelf after the other."""
        number, after = _position(cursor, len(self._shelves))
        rows = list[Json]()
        while number < len(self._shelves) and len(rows) < _PAGE:
            try:
                found, after = self._shelves[number].page(after)
            except SureholdError as error:
                raise RpcError(INVALID_PARAMS, valid(error.message), {"kind": error.kind}) from None
            rows += found
            number += not after
        result: Json = {"resources": valid(rows)}
        return {**result, "nextCursor": f"{number}:{after}"} if number < len(self._shelves) else result

    def list_templates(self) -> Json:
        """Return every template of addresses."""
        return {"resourceTemplates": valid([row for shelf in self._shelves for row in shelf.templates()])}

    def read_resource(self, uri: str, caller: Caller) -> Json:
        """Return the contents of a resource."""
        try:
            found = next((rows for shelf in self._shelves if (rows := shelf.read(uri)) is not None), None)
        except SureholdError as error:
            raise _missing(uri, caller, f"{error.message} {error.action}".strip(), error.kind) from None
        except (OSError, ValueError) as error:  # a name that no file can have
            raise _missing(uri, caller, f"`{uri}` cannot be read: {error}.", "not_found") from None
        if found is None:
            raise _missing(uri, caller, f"There is no resource `{uri}`.", "not_found")
        return {"contents": valid(found)}

    def check_watchable(self, uri: str, caller: Caller) -> None:
        """Refuse to watch what may not be read; what does not exist yet may come."""
        try:
            known = any(shelf.mark(uri) is not None for shelf in self._shelves)
        except (PermissionDenied, OutsideWorkspace) as error:
            raise _missing(uri, caller, error.message, error.kind) from None
        except SureholdError:
            return
        if not known:
            raise _missing(uri, caller, f"There is no resource `{uri[:200]}`.", "not_found")

    def mark(self, uri: str) -> str:
        """Return a text that differs whenever the resource does; empty while it cannot be read."""
        try:
            return next((mark for shelf in self._shelves if (mark := shelf.mark(uri)) is not None), "")
        except SureholdError as error:
            return f"{error.kind} {error.reason}"
        except (OSError, ValueError) as error:
            return str(error)

    def complete(self, template: str, value: str) -> Json:
        """Return how the value of a template could go on."""
        try:
            found = [one for shelf in self._shelves for one in shelf.complete(template, value)]
        except (SureholdError, OSError, ValueError):  # what was typed so far leads nowhere
            found = []
        return {
            "completion": {
                "values": valid(found[:_COMPLETIONS]),
                "total": len(found),
                "hasMore": len(found) > _COMPLETIONS,
            }
        }

    # Prompts.
    def list_prompts(self) -> Json:
        """Return every prompt."""
        return {"prompts": valid([one.entry() for one in self._prompts.values()])}

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Json:
        """Return the messages of a prompt."""
        prompt = self._prompts.get(name)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {valid(name[:100])}", {"prompts": list(self._prompts)})
        return {"description": prompt.description, "messages": valid(list(prompt.render(arguments or {})))}


def _by_contract(error: SureholdError, data: Json, caller: Caller) -> RpcError:
    """Return a refusal as the contract spells it; the stateless era forbids one of its codes, which then stands in the data."""
    code = INVALID_PARAMS if caller.era == "stateless" and error.code == NO_SUCH_RESOURCE else error.code
    told = data.get("error", {}).get("data")
    return RpcError(code, valid(error.message), valid({"code": error.code, **told} if isinstance(told, dict) else data))


def _recorded(tool: AnyTool, context: Context, arguments: Json, error: SureholdError) -> Answer:
    """Refuse a change before the tool saw it; the ledger hears of it all the same."""
    if tool.hints.operation:
        path = next((arguments[name] for name in ("path", "fromPath") if isinstance(arguments.get(name), str)), "")
        context.session.record_refusal(
            without_surrogates(path), tool=tool.name, operation=tool.hints.operation, error=error
        )
    return tool.refusal(error)


def _position(cursor: str | None, shelves: int) -> tuple[int, str]:
    """Return the shelf to go on with, and where on it."""
    if cursor is None:
        return 0, ""
    number, colon, after = cursor.partition(":")
    if not (colon and number.isascii() and number.isdigit() and int(number) < shelves):
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours; begin without one.")
    return int(number), after


def _missing(uri: str, caller: Caller, message: str, kind: str) -> RpcError:
    code = INVALID_PARAMS if caller.era == "stateless" else NO_SUCH_RESOURCE
    return RpcError(code, valid(message), {"uri": valid(uri), "kind": kind})
