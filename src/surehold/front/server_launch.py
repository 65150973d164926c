"""Starts the MCP server that the command line describes, with or without the review page, and runs it until it ends.

It is above `mcp` and `review`: the only module that knows both.
"""

import gc
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, Self

from surehold import __version__
from surehold.app import locate_workspace
from surehold.errors import missing_extra
from surehold.front.shared.http_settings import HttpSettings
from surehold.front.shared.stdio_lines import claim_stdio
from surehold.text.escape import reveal_text
from surehold.workspace.settings import check_session_name

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path
    from socket import socket

    from starlette.routing import Route

    from surehold.app import Settings
    from surehold.front.mcp.adapter import Adapter
    from surehold.front.mcp.catalog import ServerCatalog
    from surehold.front.mcp.options import ServerOptions
    from surehold.front.mcp.sdk.operations import CallMetrics
    from surehold.front.mcp.sdk.server import BoundServer
    from surehold.front.mcp.sdk.workers import WorkerPlace
    from surehold.front.mcp.tool_calls import FinishedCall
    from surehold.front.review.sign_in import SignIn
    from surehold.front.review.site import ReviewPage
    from surehold.front.shared.http_settings import LanSettings
    from surehold.tools.listing import ListedTool
    from surehold.workspace.session import CurrentServer

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
    log_format: Literal["text", "json"] = "text"
    workers: int = 1
    """How many processes serve the port."""
    page: bool = False
    """Show the review page at the same port as the server."""
    session: str = ""
    """The session that a server on standard input and output goes on with; empty for the one that fits."""
    show_token: bool = False
    """Print how a client connects, with the token: once, when it was made for this run."""
    lan: "LanSettings | None" = None
    """Where the page is served to other devices of the local network as well."""
    page_port: int | None = None
    """Serve the review page beside standard input and output, at this port; 0 for the last one, if it is free, or any."""


def choose_roots(given: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the directories to serve, and where they come from when they were not named."""
    if given:
        return tuple(given), ""
    if project := os.environ.get("CLAUDE_PROJECT_DIR"):
        return (project,), "CLAUDE_PROJECT_DIR"
    return (os.getcwd(),), "the current directory"  # noqa: PTH109 - names need not be UTF-8


def launch_server(order: ServerLaunch) -> int:
    """Serve a workspace until the end, and close it; return the exit code."""
    from surehold.front.mcp.catalog import ServerCatalog
    from surehold.library.families import list_tools

    gc.disable()  # nothing of what is loaded now is ever collected; looking for it costs a tenth of the start
    check_session_name(order.session)
    roots, state_dir = locate_workspace(list(order.roots), order.settings)
    if order.page_port is not None or order.page:
        _require_page_extra()
    tools = list_tools(order.tools) if order.tools else list_tools()
    if order.http is not None or os.environ.get(_SDK_VARIABLE) == "sdk":
        return _launch_through_sdk(order, tools, state_dir)
    from surehold.front.mcp.stdio import serve_stdio

    pipes = claim_stdio()
    catalog = ServerCatalog(tools, roots=roots, options=order.options)
    _print_to_stderr(f"{_startup_line(catalog, order)}; Ctrl-C ends it.")
    with LateWorkspace(order, tools) as late, _page_beside(order, late, state_dir):
        return serve_stdio(catalog, late.open_adapter, pipes)


class LateWorkspace:
    """Opens the workspace of a server on standard input and output when it is first needed, and closes it at the end."""

    def __init__(self, order: ServerLaunch, tools: "Sequence[ListedTool]") -> None:
        self._order, self._tools = order, tools
        self._lock = threading.Lock()
        self._end = ExitStack()
        self._adapter: Adapter | None = None
        self.page_url = ""
        """Where the review page beside it is; empty if there is none."""
        self._process: CurrentServer | None = None
        self._failure: Exception | None = None

    def open_adapter(self) -> "Adapter":
        """Return the adapter, the same each time; what once failed fails again."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._adapter is None:
                try:
                    self._adapter = self._open()
                except Exception as error:
                    self._failure = error
                    raise
                _finish_startup()
            return self._adapter

    def _open(self) -> "Adapter":
        from surehold.app import open_workspace
        from surehold.front.mcp.adapter import Adapter
        from surehold.workspace.session import CurrentServer

        order = self._order
        workspace = self._end.enter_context(open_workspace(*order.roots, settings=_settings_for_stdio(order)))
        self._process = CurrentServer(workspace, named=order.session)
        has_page = bool(self.page_url)
        adapter = Adapter(
            workspace=workspace, tools=self._tools, options=order.options, process=self._process, has_page=has_page
        )
        adapter.announce_page(self.page_url)
        return adapter

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the workspace; open it even now if it never was.

        A failure must be told, and a server that ended so soon is remembered (see `stores/server_runs.py`).
        """
        with self._end:
            if kind is None:
                self.open_adapter()
                if self._process is not None:
                    self._process.end()


@contextmanager
def _page_beside(order: ServerLaunch, late: LateWorkspace, state_dir: "Path") -> "Generator[None]":
    """Serve the review page beside standard input and output, if that is wanted."""
    if order.page_port is None:
        yield
        return
    from surehold.front.review.page_server import PageServer

    def open_page(sign_in: "SignIn") -> "ReviewPage":
        from surehold.front.review.site import ReviewPage

        adapter = late.open_adapter()
        return ReviewPage(adapter.workspace, adapter.approvals, sign_in)

    with PageServer(state_dir, open_page, port=order.page_port) as page:
        late.page_url = page.url
        _print_to_stderr(f"Review what agents do: {page.link}")
        page.start()
        yield


def _require_page_extra() -> None:
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise missing_extra("The review page cannot be served", "serve")


def _launch_through_sdk(order: ServerLaunch, tools: "Sequence[ListedTool]", state_dir: "Path") -> int:
    """Serve over HTTP, or over standard input and output for comparison, with the protocol's own library."""
    from surehold.app import open_workspace

    if order.http is None:
        if find_spec("mcp_types") is None:  # an older `mcp` has none
            raise missing_extra("The protocol's own library cannot be used", "serve")
        from surehold.front.mcp.sdk.stdio import serve_through_sdk

        pipes = claim_stdio()
        with LateWorkspace(order, tools) as late, _page_beside(order, late, state_dir):
            adapter = late.open_adapter()
            _print_to_stderr(f"{_startup_line(adapter.catalog, order)}; Ctrl-C ends it.")
            return _serve_bound(adapter, partial(serve_through_sdk, pipes=pipes))()
    if find_spec("mcp_types") is None or find_spec("uvicorn") is None:
        raise missing_extra("HTTP cannot be served", "serve")
    from surehold.front.shared.http_server import open_port

    listener, settings = open_port(order.http)
    serve = partial(_serve_http, replace(order, http=settings), tools, state_dir, listener)
    if order.workers == 1:
        return serve(None)
    from surehold.front.mcp.sdk.workers import run_workers

    with open_workspace(*order.roots, settings=order.settings):  # what cannot be served is said now, and once
        pass
    return run_workers(order.workers, serve, drain_seconds=settings.drain_seconds)


def _serve_http(
    order: ServerLaunch,
    tools: "Sequence[ListedTool]",
    state_dir: "Path",
    listener: "socket",
    place: "WorkerPlace | None",
) -> int:
    """Serve over HTTP in this process: the only one, or one of several."""
    from surehold.app import open_workspace
    from surehold.front.mcp.adapter import Adapter
    from surehold.front.mcp.sdk.operations import CallMetrics, log_call

    metrics = CallMetrics()

    def note_call(call: "FinishedCall") -> None:
        metrics.note_call(call)
        log_call(call)

    with open_workspace(*order.roots, settings=order.settings) as workspace, ExitStack() as end:
        adapter = Adapter(
            workspace=workspace,
            tools=tools,
            options=order.options,
            has_page=order.page,
            note_call=note_call,
            shares_answers=place is not None or bool(order.settings.state),
        )
        serve = _prepare_http(adapter, order, state_dir, end, metrics, listener, place)
        _finish_startup(order.log_format)
        return serve()


_IF_NOT_READ = (
    "If it was read before, the host may have started a new server since: then start the server with --session NAME,"
    " set SUREHOLD_SESSION=NAME for it, or start it with --require-read matched or --require-read off."
)


def _settings_for_stdio(order: ServerLaunch) -> "Settings":
    """Let refusals say what helps with a host that starts a server for each call, unless its session was named."""
    from surehold.workspace.settings import ReadGateSettings

    gate = order.settings.gate or ReadGateSettings()
    return order.settings if order.session else replace(order.settings, gate=replace(gate, if_not_read=_IF_NOT_READ))


def _serve_bound(adapter: "Adapter", serve: "Callable[[BoundServer], int]") -> "Callable[[], int]":
    """Bind the adapter to the SDK; return what serves it, and waits for its changes at the end."""
    from surehold.front.mcp.sdk.server import make_server

    bound = make_server(adapter)

    def serve_to_the_end() -> int:
        try:
            return serve(bound)
        finally:
            adapter.command_post.close()
            bound.calls.wait_for_changes(_CHANGE_WAIT_SECONDS)

    return serve_to_the_end


def _prepare_http(  # noqa: PLR0917 - what one process serves with
    adapter: "Adapter",
    order: ServerLaunch,
    state_dir: "Path",
    end: ExitStack,
    metrics: "CallMetrics",
    listener: "socket",
    place: "WorkerPlace | None",
) -> "Callable[[], int]":
    from surehold.front.mcp.sdk.http import MCP_PATH, serve_http
    from surehold.front.mcp.sdk.operations import ServerOperations

    say = partial(_print_to_stderr, log_format=order.log_format)
    settings, is_first = order.http or HttpSettings(), place is None or place.index == 0
    if is_first:
        say(f"{_startup_line(adapter.catalog, order)} at {settings.url}/mcp; Ctrl-C ends it.")
        if order.show_token:
            say(_client_config_line(settings))
    routes: Sequence[Route] = ()
    if order.page:
        from surehold.front.review.page_records import PageRecord, announce_page, load_key
        from surehold.front.review.sign_in import SignIn
        from surehold.front.review.site import ReviewPage

        secret, url = f"#{settings.token}" if order.show_token else "", settings.url
        adapter.announce_page(url)
        sign_in = SignIn(settings.token, key=load_key(state_dir), is_chosen=not order.show_token)
        page = ReviewPage(adapter.workspace, adapter.approvals, sign_in)
        routes = page.make_routes()
        if is_first:
            say(f"Review what agents do: {url}/{secret}")
            record = PageRecord(url=url, door=sign_in.door, pid=os.getpid())
            end.enter_context(announce_page(state_dir, record, port=settings.port))
        if is_first and order.lan is not None:
            from surehold.front.review.lan_page import LanPage

            lan = end.enter_context(LanPage(state_dir, page, sign_in, order.lan))
            say(lan.describe())
        adapter.command_post.open()
    operations = ServerOperations(adapter.workspace, metrics, mcp_path=MCP_PATH, place=place)
    serve = partial(serve_http, listener=listener, settings=settings, routes=routes, operations=operations)
    return _serve_bound(adapter, serve)


def _startup_line(catalog: "ServerCatalog", order: ServerLaunch) -> str:
    count = len(catalog.tools)
    roots = ", ".join(reveal_text(root) for root in order.roots)
    source = f" ({order.named_by})" if order.named_by else ""
    return f"surehold {__version__}: {count} tools on {roots}{source} (mode {order.settings.mode or 'acceptEdits'})"


def _client_config_line(settings: HttpSettings) -> str:
    import json

    headers = {"Authorization": f"Bearer {settings.token}"}
    entry = {"type": "http", "url": f"{settings.url}/mcp", "headers": headers}
    return f"Clients connect with: {json.dumps({'mcpServers': {'surehold': entry}})}"


def _finish_startup(log_format: Literal["text", "json"] = "text") -> None:
    """Log to standard error, and let the collector pass over everything that was loaded."""
    import logging

    gc.freeze()
    gc.enable()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surehold: %(message)s")
    if log_format == "json":
        from surehold.front.mcp.sdk.operations import JsonLogFormat

        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLogFormat())
        logging.getLogger("surehold.calls").setLevel(logging.INFO)


def _print_to_stderr(sentence: str, *, log_format: Literal["text", "json"] = "text") -> None:
    if log_format == "json":
        import logging

        from surehold.front.mcp.sdk.operations import JsonLogFormat

        record = logging.LogRecord("surehold", logging.INFO, "", 0, sentence, None, None)
        sentence = JsonLogFormat().format(record)
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - the server reports how it starts
