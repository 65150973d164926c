"""Commands that start a server: mcp and serve for agents, acp for editors."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from surehold.front.cli.command import Command, CommandContext, as_path
from surehold.front.cli.output import escape_text
from surehold.front.cli.permission_options import add_permission_arguments, permission_settings

if TYPE_CHECKING:
    from surehold.front.mcp.options import HttpSettings


_USAGE_EXIT_CODE = 2
_DEFAULT_PORT = 8765
_HIGHEST_PORT = 65_535
_TOKEN_VARIABLE = "SUREHOLD_TOKEN"  # noqa: S105 - the name of a variable, not a secret


class _UnusableOptions(Exception):
    """The options do not go together."""


def _mcp_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument("--http", metavar="HOST:PORT", default="", help="streamable HTTP instead of stdio, at /mcp")
    _http_arguments(parser)


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=_DEFAULT_PORT, help=f"0 takes any that is free (default: {_DEFAULT_PORT})"
    )
    _http_arguments(parser)


def _shared_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="directories that agents may work in")
    parser.add_argument(
        "--tools", metavar="LIST", default="", help="families: anchored, files, … or all (default: anchored,files)"
    )
    add_permission_arguments(parser)
    parser.add_argument("--ask-seconds", type=_positive_integer, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--read-only", action="store_true", help="serve only tools that change nothing")
    parser.add_argument("--allow-unchecked", action="store_true", help="let changes go without expectedSha256")
    parser.add_argument("--contract-errors", action="store_true", help="multi_edit refuses with JSON-RPC errors")
    parser.add_argument("--no-deprecated", action="store_true", help="refuse old names of arguments, such as file_path")
    parser.add_argument("--lean", action="store_true", help="shorter descriptions, for fewer tokens")
    parser.add_argument(
        "--max-chars", type=_positive_integer, default=0, metavar="N", help="characters in a page of a file"
    )
    parser.add_argument(
        "--max-tokens", type=_positive_integer, default=0, metavar="N", help="estimated tokens in an answer"
    )


def _http_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token-file", metavar="FILE", default="", help=f"the bearer token; or set {_TOKEN_VARIABLE}")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="another Host by which clients reach it"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="a web page that may call it"
    )


def _positive_integer(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _run_mcp(context: CommandContext, args: argparse.Namespace) -> int:
    try:
        door = _build_http_settings(*_parse_address(args.http), args) if args.http else None
    except _UnusableOptions as error:
        return _report_wrong_usage(context, error)
    return _launch_server(context, args, door)


def _run_serve(context: CommandContext, args: argparse.Namespace) -> int:
    from dataclasses import replace

    try:
        door = _build_http_settings(args.host, args.port, args)
    except _UnusableOptions as error:
        return _report_wrong_usage(context, error)
    if door.token:
        return _launch_server(context, args, door, page=True)
    import secrets

    return _launch_server(context, args, replace(door, token=secrets.token_urlsafe(24)), page=True, show_token=True)


def _launch_server(
    context: CommandContext,
    args: argparse.Namespace,
    door: "HttpSettings | None",
    *,
    page: bool = False,
    show_token: bool = False,
) -> int:
    _end_quietly()
    from surehold.front.mcp.options import ASK_SECONDS, ServerOptions
    from surehold.front.server_launch import ServerLaunch, choose_roots, launch_server

    given = args.roots or ([context.root] if context.root != "." else [])
    roots, named_by = choose_roots(given)
    return launch_server(
        ServerLaunch(
            roots=roots,
            named_by=named_by,
            settings=permission_settings(context, args),
            profile=ServerOptions(
                lean=args.lean,
                read_only=args.read_only,
                unchecked=args.allow_unchecked,
                deprecated_names=not args.no_deprecated,
                contract_errors=_contract_names() if args.contract_errors else frozenset(),
                ask_seconds=args.ask_seconds or ASK_SECONDS,
                max_chars=args.max_chars,
                max_tokens=args.max_tokens,
            ),
            tools=args.tools,
            door=door,
            page=page,
            show_token=show_token,
        )
    )


def _contract_names() -> frozenset[str]:
    """Return the tools whose contract asks for protocol errors: one family."""
    from surehold.library.families import tools_of

    return frozenset(tool.name for tool in tools_of("multi_edit"))


def _build_http_settings(host: str, port: int, args: argparse.Namespace) -> "HttpSettings":
    from surehold.front.mcp.options import HttpSettings

    if not 0 <= port <= _HIGHEST_PORT:
        raise _UnusableOptions(f"{port} is not a port.")
    door = HttpSettings(
        host=host,
        port=port,
        token=_read_token(args.token_file),
        allow_hosts=tuple(args.allow_host),
        allow_origins=tuple(args.allow_origin),
    )
    if not door.is_local and not door.token:
        raise _UnusableOptions(
            f"{door.address} can be reached from other machines, so it needs a token: "
            f"name a file with --token-file, or set {_TOKEN_VARIABLE}."
        )
    return door


def _parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `:PORT` or `PORT`."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()):
        raise _UnusableOptions(f"`{text}` is not an address like 127.0.0.1:8765.")
    return (host.removeprefix("[").removesuffix("]") if colon else "") or "127.0.0.1", int(port)


def _read_token(file: str) -> str:
    if not file:
        return os.environ.get(_TOKEN_VARIABLE, "")
    try:
        token = as_path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _UnusableOptions(f"The token file `{file}` cannot be read: {error}.") from None
    if not token:
        raise _UnusableOptions(f"The token file `{file}` is empty.")
    return token


def _report_wrong_usage(context: CommandContext, error: _UnusableOptions) -> int:
    context.err.print_line(f"{context.err.paint('Wrong usage', 'red', 'bold')}: {escape_text(str(error))}")
    return _USAGE_EXIT_CODE


def _end_quietly() -> None:
    """Let SIGTERM end the program in good order also before the server runs."""
    import signal

    def exit_quietly(_: int, __: object) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, exit_quietly)


SERVER_COMMANDS = (
    Command(
        name="mcp",
        group="For agents",
        help="Serve the file tools to an agent: MCP on standard input and output.",
        example="surehold mcp ~/project\n  surehold mcp ~/project --http 127.0.0.1:8765 --mode plan",
        add_arguments=_mcp_arguments,
        run=_run_mcp,
    ),
    Command(
        name="serve",
        group="For agents",
        help="Serve the tools over HTTP, with a page to review what agents do.",
        example="surehold serve ~/project --port 8765",
        add_arguments=_serve_arguments,
        run=_run_serve,
    ),
)


_ACP_USAGE_EXIT_CODE = 2
_EVENT_DIALECTS = ("v1", "contract")
_ANSWER_WAIT_SECONDS = 600.0


def _acp_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="sessions begin in these directories (default: any)")
    parser.add_argument(
        "--tools", metavar="LIST", default="all", help="families: anchored, files, … or all (default: all)"
    )
    add_permission_arguments(parser, usual="default")  # an editor can ask, so it is asked
    parser.add_argument("--allow-unchecked", action="store_true", help="let changes go without expectedSha256")
    parser.add_argument(
        "--ask-seconds",
        type=_positive_seconds,
        default=_ANSWER_WAIT_SECONDS,
        metavar="N",
        help=f"how long an answer is waited for (default: {_ANSWER_WAIT_SECONDS:g})",
    )
    parser.add_argument(
        "--dialect",
        choices=_EVENT_DIALECTS,
        default="v1",
        help="how events are spelled (default: v1, which editors read)",
    )


def _positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return seconds


def _run_acp(context: CommandContext, args: argparse.Namespace) -> int:
    roots = tuple(args.roots or ([context.root] if context.root != "." else []))
    if context.state_dir and not roots:
        wrong = context.err.paint("Wrong usage", "red", "bold")
        context.err.print_line(f"{wrong}: --state-dir is the history of one directory; name that as ROOT.")
        return _ACP_USAGE_EXIT_CODE
    from surehold.front.acp_agent.agent import AgentOptions
    from surehold.front.acp_agent.launch import launch_agent

    profile = AgentOptions(
        roots=roots,
        settings=permission_settings(context, args),
        mode=args.mode,
        dialect=args.dialect,
        patience=args.ask_seconds,
        unchecked=args.allow_unchecked,
    )
    return launch_agent(profile, tools=args.tools)


ACP_COMMANDS = (
    Command(
        name="acp",
        group="For agents",
        help="Run tool calls from an editor: an ACP agent without a model.",
        example="surehold acp\n  surehold acp ~/project --mode acceptEdits",
        add_arguments=_acp_arguments,
        run=_run_acp,
    ),
)
