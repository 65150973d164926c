"""Starts the MCP server that the command line describes, with or without the review page, and runs it until it ends.

It is above `mcp` and `review`: the only module that knows both.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from surehold import __version__
from surehold.errors import missing_extra
from surehold.front.mcp.options import HttpSettings
from surehold.front.shared.stdio_lines import StdioDescriptors, claim_stdio
from surehold.text.escape import escape_text

if TYPE_CHECKING:
    from starlette.routing import Route

    from surehold.app import Settings
    from surehold.front.mcp.adapter import Adapter
    from surehold.front.mcp.options import ServerOptions
    from surehold.front.mcp.sdk.server import BoundServer
    from surehold.workspace.workspace import Workspace

_CHANGE_WAIT_SECONDS = 30.0
"""Seconds that changes under way get when the server ends."""
_SDK_VARIABLE = "SUREHOLD_STDIO"
"""Set to `sdk`, it has the SDK serve standard input and output: the reference of the differential tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLaunch:
    """Everything that can be chosen about a server."""

    roots: tuple[str, ...]
    settings: "Settings"
    options: "ServerOptions"
    tools: str = ""
    """A comma list of families; empty for the usual ones."""
    named_by: str = ""
    """Where the roots come from, when they were not named."""
    http: HttpSettings | None = None
    """Where HTTP is served; None for standard input and output."""
    page: bool = False
    """Show the review page beside the server."""
    session: str = ""
    """The session that a server on standard input and output goes on with; empty for the one that fits."""
    show_token: bool = False
    """Print how a client connects, with the token: once, when it was made for this run."""


def choose_roots(given: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the directories to serve, and where they come from when they were not named."""
    if given:
        return tuple(given), ""
    if project := os.environ.get("CLAUDE_PROJECT_DIR"):
        return (project,), "CLAUDE_PROJECT_DIR"
    return (os.getcwd(),), "the current directory"  # noqa: PTH109 - names need not be UTF-8


def launch_server(order: ServerLaunch) -> int:
    """Open the workspace, serve it until the end, and close it; return the exit code."""
    from surehold.app import open_workspace

    gc.disable()  # nothing of what is loaded now is ever collected; looking for it costs a tenth of the start
    pipes = claim_stdio() if order.http is None else None
    settings = _settings_for_stdio(order) if pipes else order.settings
    with open_workspace(*order.roots, settings=settings) as workspace:
        from surehold.front.mcp.adapter import Adapter, check_tools_to_load
        from surehold.library.families import list_tools
        from surehold.workspace.current_server import CurrentServer

        tools = list_tools(order.tools) if order.tools else list_tools()
        check_tools_to_load(order.options.always_load, tools)
        process = CurrentServer(workspace, named=order.session) if pipes else None
        adapter = Adapter(workspace=workspace, tools=tools, options=order.options, has_page=order.page, process=process)
        serve = _prepare_stdio(adapter, pipes, order) if pipes else _prepare_http(adapter, order, workspace)
        _finish_startup()
        code = serve()
        if process:
            process.end()
        return code


_IF_NOT_READ = (
    "If it was read before, the host may have started a new server since: then start the server with --session NAME,"
    " set SUREHOLD_SESSION=NAME for it, or start it with --require-read matched or --require-read off."
)


def _settings_for_stdio(order: ServerLaunch) -> "Settings":
    """Let refusals say what helps with a host that starts a server for each call, unless its session was named."""
    from surehold.workspace.settings import ReadGateSettings

    gate = order.settings.gate or ReadGateSettings()
    return order.settings if order.session else replace(order.settings, gate=replace(gate, if_not_read=_IF_NOT_READ))


def _prepare_stdio(adapter: "Adapter", pipes: StdioDescriptors, order: ServerLaunch) -> "Callable[[], int]":
    _print_to_stderr(f"{_startup_line(adapter, order)}; Ctrl-C ends it.")
    if os.environ.get(_SDK_VARIABLE) == "sdk":
        from surehold.front.mcp.sdk.stdio import serve_through_sdk

        return _serve_bound(adapter, partial(serve_through_sdk, pipes=pipes))
    from surehold.front.mcp.stdio import serve_stdio

    return partial(serve_stdio, adapter, pipes)


def _serve_bound(adapter: "Adapter", serve: "Callable[[BoundServer], int]") -> "Callable[[], int]":
    """Bind the adapter to the SDK; return what serves it, and waits for its changes at the end."""
    from surehold.front.mcp.sdk.server import make_server

    bound = make_server(adapter)

    def serve_to_the_end() -> int:
        try:
            return serve(bound)
        finally:
            bound.calls.wait_for_changes(_CHANGE_WAIT_SECONDS)

    return serve_to_the_end


def _prepare_http(adapter: "Adapter", order: ServerLaunch, workspace: "Workspace") -> "Callable[[], int]":
    if find_spec("mcp_types") is None or find_spec("uvicorn") is None:  # an older `mcp` has no `mcp_types`
        raise missing_extra("HTTP cannot be served", "serve")
    from surehold.front.mcp.sdk.http import open_port, serve_http

    listener, settings = open_port(order.http or HttpSettings())
    _print_to_stderr(f"{_startup_line(adapter, order)} at http://{settings.address}/mcp; Ctrl-C ends it.")
    if order.show_token:
        _print_to_stderr(_client_config_line(settings))
    routes: Sequence[Route] = ()
    if order.page:
        from surehold.front.review.site import ReviewPage

        secret = f"#{settings.token}" if order.show_token else ""
        _print_to_stderr(f"Review what agents do: http://{settings.address}/{secret}")
        adapter.announce_page(f"http://{settings.address}")
        page = ReviewPage(workspace, adapter.approvals, token=settings.token, token_is_printed=order.show_token)
        routes = page.make_routes()
    return _serve_bound(adapter, partial(serve_http, listener=listener, settings=settings, routes=routes))


def _startup_line(adapter: "Adapter", order: ServerLaunch) -> str:
    count = len(adapter.tool_names)
    roots = ", ".join(escape_text(root) for root in order.roots)
    source = f" ({order.named_by})" if order.named_by else ""
    return f"surehold {__version__}: {count} tools on {roots}{source} (mode {order.settings.mode or 'acceptEdits'})"


def _client_config_line(settings: HttpSettings) -> str:
    import json

    headers = {"Authorization": f"Bearer {settings.token}"}
    entry = {"type": "http", "url": f"http://{settings.address}/mcp", "headers": headers}
    return f"Clients connect with: {json.dumps({'mcpServers': {'surehold': entry}})}"


def _finish_startup() -> None:
    """Log to standard error, and let the collector pass over everything that was loaded."""
    import logging

    gc.freeze()
    gc.enable()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surehold: %(message)s")


def _print_to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - the server reports how it starts
