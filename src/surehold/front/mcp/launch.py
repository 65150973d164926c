"""From what was chosen on the command line to a server that runs, and to its end."""

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surehold import __version__
from surehold.front.mcp.door import Door
from surehold.front.mcp.pipes import Pipes, divert
from surehold.text.visible import safe

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.front.mcp.adapter import Adapter
    from surehold.front.mcp.profile import Profile
    from surehold.front.review.questions import Questions
    from surehold.workspace.workspace import Workspace

_PATIENCE = 30.0
"""Seconds that changes under way get when the server ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything that can be chosen about a server."""

    roots: tuple[str, ...]
    settings: "Settings"
    profile: "Profile"
    tools: str = ""
    """A comma list of families; empty for the usual ones."""
    named_by: str = ""
    """Where the roots come from, when nobody named them."""
    door: Door | None = None
    """Where HTTP is served; None for standard input and output."""
    page: bool = False
    """Show the review page beside the server."""
    show_token: bool = False
    """Print how a client connects, with the token: once, when it was made for this run."""


def roots_from(given: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the directories to serve, and where they come from when nobody named them."""
    if given:
        return tuple(given), ""
    if project := os.environ.get("CLAUDE_PROJECT_DIR"):
        return (project,), "CLAUDE_PROJECT_DIR"
    return (os.getcwd(),), "the current directory"  # noqa: PTH109 - names need not be UTF-8


def launch(order: Launch) -> int:
    """Open the workspace, serve it until the end, and close it; return the exit code."""
    from surehold.app import open_workspace

    gc.disable()  # nothing of what is loaded now is ever collected; looking for it costs a tenth of the start
    pipes = divert() if order.door is None else None
    with open_workspace(*order.roots, settings=order.settings) as workspace:
        from surehold.dialects.families import tools_of
        from surehold.front.mcp.adapter import Adapter

        tools = tools_of(order.tools) if order.tools else tools_of()
        if pipes is not None:
            return _over_stdio(Adapter(workspace=workspace, tools=tools, profile=order.profile), pipes, order)
        questions = _questions(order) if order.page else None
        ask = questions.ask if questions else None
        adapter = Adapter(workspace=workspace, tools=tools, profile=order.profile, elsewhere=ask)
        return _over_http(adapter, order, workspace, questions)


def _questions(order: Launch) -> "Questions":
    from surehold.front.review.questions import Questions

    return Questions(patience=order.profile.ask_seconds)


def _over_stdio(adapter: "Adapter", pipes: Pipes, order: Launch) -> int:
    _say(f"{_headline(adapter, order)}; Ctrl-C ends it.")
    from surehold.front.mcp.binding import make_server
    from surehold.front.mcp.stdio import serve_stdio

    bound = make_server(adapter)
    _settle_down()
    try:
        return serve_stdio(bound, pipes)
    finally:
        bound.calls.settle(_PATIENCE)


def _over_http(adapter: "Adapter", order: Launch, workspace: "Workspace", questions: "Questions | None") -> int:
    from surehold.front.mcp.binding import make_server
    from surehold.front.mcp.http import listen, serve_http

    place, door = listen(order.door or Door())
    _say(f"{_headline(adapter, order)} at http://{door.address}/mcp; Ctrl-C ends it.")
    if order.show_token:
        _say(_client_settings(door))
    if questions:
        secret = f"#{door.token}" if order.show_token else ""
        _say(f"Review what agents do: http://{door.address}/{secret}")
    bound = make_server(adapter)
    _settle_down()
    try:
        if questions is None:
            return serve_http(bound, place, door)
        from surehold.front.review.site import ReviewPage

        page = ReviewPage(workspace, questions, token=door.token)
        return serve_http(bound, place, door, routes=page.routes(), farewell=questions.close)
    finally:
        bound.calls.settle(_PATIENCE)


def _headline(adapter: "Adapter", order: Launch) -> str:
    count = len(adapter.names)
    roots = ", ".join(safe(root) for root in order.roots)
    source = f" ({order.named_by})" if order.named_by else ""
    return f"surehold {__version__}: {count} tools on {roots}{source} (mode {order.settings.mode or 'acceptEdits'})"


def _client_settings(door: Door) -> str:
    import json

    entry = {
        "type": "http",
        "url": f"http://{door.address}/mcp",
        "headers": {"Authorization": f"Bearer {door.token}"},
    }
    return f"Clients connect with: {json.dumps({'mcpServers': {'surehold': entry}})}"


def _settle_down() -> None:
    """Log to standard error, and let the collector pass over everything that was loaded."""
    import logging

    gc.freeze()
    gc.enable()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surehold: %(message)s")


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
