"""What a server offers before anything is called: its tools, its instructions and its prompts.

Light to import: hosts ask for all of this when they start a server, some of them wait only a few seconds for it, and none
of it needs the workspace.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surehold.front.mcp.options import ALL_TOOLS, ServerOptions
from surehold.front.mcp.protocol import INVALID_PARAMS, RpcError, require_first_page
from surehold.text.escape import ensure_utf8
from surehold.tools.export import build_guidance, mcp_tool

if TYPE_CHECKING:
    from surehold.tools.listing import ListedTool

Json = dict[str, Any]

_MAX_RESULT_CHARS = 200_000
"""Up to here a host that files large results away leaves ours alone: they are paged already."""


def tools_to_load(served: "Iterable[ListedTool]", named: frozenset[str]) -> frozenset[str]:
    """Return the tools that a host which loads definitions late should load at once: named ones, and what every task needs."""
    tools = tuple(served)
    usual = {one.name for one in tools if one.hints.always_loaded}
    alone = {one.name for one in tools if one.hints.loaded_when_alone}
    return frozenset(one.name for one in tools) if ALL_TOOLS in named else named | (usual or alone)


def tool_entry(tool: "ListedTool", *, lean: bool = False, always_load: bool = False) -> Json:
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


class ServerCatalog:
    """The tools and prompts of one server, and how they are announced."""

    def __init__(
        self,
        tools: "Iterable[ListedTool]",
        *,
        roots: Sequence[str],
        options: ServerOptions | None = None,
        prompts: Sequence[Prompt] = (),
    ) -> None:
        self._options = options or ServerOptions()
        self._roots = roots
        served = [one for one in tools if one.hints.read_only or not self._options.read_only]
        self.tools = {one.name: one for one in sorted(served, key=lambda one: one.name)}
        self.writing = frozenset(one.name for one in served if not one.hints.read_only)
        """The tools whose calls may write, and so must not be given up half-way."""
        guidance = Prompt(
            name="surehold",
            title="How to use Surehold",
            description="What a model should know about these file tools.",
            render=lambda _: as_user_message(self.instructions),
        )
        self._prompts = {one.name: one for one in (guidance, *prompts)}

    def describe_server(self) -> Json:
        from surehold import __version__

        facts = {"name": "surehold", "title": "Surehold", "version": __version__, "instructions": self.instructions}
        return ensure_utf8({**facts, "description": "File tools for AI agents that never lose an edit."})

    @property
    def instructions(self) -> str:
        """How the tools are used: for the handshake, and as a prompt."""
        return ensure_utf8(build_guidance(self.tools.values(), roots=self._roots, lean=self._options.lean))

    def list_tools(self, cursor: str | None = None, *, views: bool = False) -> list[Json]:
        """Return every tool, always in the same order; `views`: for a client that shows the view of a change."""
        require_first_page(cursor)
        loaded = tools_to_load(self.tools.values(), self._options.always_load)
        found = [
            ensure_utf8(tool_entry(one, lean=self._options.lean, always_load=one.name in loaded))
            for one in self.tools.values()
        ]
        if not views:
            return found
        from surehold.front.mcp.app_view import VIEW_META, VIEW_TOOLS

        for entry in found:
            if entry["name"] in self.writing:
                entry["_meta"] = {**entry.get("_meta", {}), **VIEW_META}
        return [*found, *VIEW_TOOLS.values()]

    def input_schema(self, name: str) -> Json | None:
        return self.tools[name].input_schema if name in self.tools else None

    def list_prompts(self, cursor: str | None = None) -> Json:
        require_first_page(cursor)
        return {"prompts": ensure_utf8([one.list_entry() for one in self._prompts.values()])}

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Json:
        prompt = self._prompts.get(name)
        if prompt is None:
            known = {"prompts": list(self._prompts)}
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {ensure_utf8(name[:100])}", known)
        return {"description": prompt.description, "messages": ensure_utf8(list(prompt.render(arguments or {})))}
