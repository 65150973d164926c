"""mcp, serve: the ways in for agents."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from surehold.front.cli.approval import add_permission_arguments, permission_settings
from surehold.front.cli.command import Command, Context, as_path
from surehold.front.cli.output import safe

if TYPE_CHECKING:
    from surehold.front.mcp.door import Door

_USAGE = 2
_PORT = 8765
_HIGHEST_PORT = 65_535
_TOKEN = "SUREHOLD_TOKEN"  # noqa: S105 - the name of a variable, not a secret


class _Unusable(Exception):
    """The options do not go together."""


def _mcp_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument("--http", metavar="HOST:PORT", default="", help="streamable HTTP instead of stdio, at /mcp")
    _http_arguments(parser)


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=_PORT, help=f"0 takes any that is free (default: {_PORT})")
    _http_arguments(parser)


def _shared_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="directories that agents may work in")
    parser.add_argument(
        "--tools", metavar="LIST", default="", help="families: anchored, files, … or all (default: anchored,files)"
    )
    add_permission_arguments(parser)
    parser.add_argument("--ask-seconds", type=_positive, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--read-only", action="store_true", help="serve only tools that change nothing")
    parser.add_argument("--allow-unchecked", action="store_true", help="let changes go without expectedSha256")
    parser.add_argument("--contract-errors", action="store_true", help="multi_edit refuses with JSON-RPC errors")
    parser.add_argument("--no-deprecated", action="store_true", help="refuse old names of arguments, such as file_path")
    parser.add_argument("--lean", action="store_true", help="shorter descriptions, for fewer tokens")
    parser.add_argument("--max-chars", type=_positive, default=0, metavar="N", help="characters in a page of a file")
    parser.add_argument("--max-tokens", type=_positive, default=0, metavar="N", help="estimated tokens in an answer")


def _http_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token-file", metavar="FILE", default="", help=f"the bearer token; or set {_TOKEN}")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="another Host by which clients reach it"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="a web page that may call it"
    )


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _mcp(context: Context, args: argparse.Namespace) -> int:
    try:
        door = _door(*_address(args.http), args) if args.http else None
    except _Unusable as error:
        return _wrong(context, error)
    return _launch(context, args, door)


def _serve(context: Context, args: argparse.Namespace) -> int:
    from dataclasses import replace

    try:
        door = _door(args.host, args.port, args)
    except _Unusable as error:
        return _wrong(context, error)
    if door.token:
        return _launch(context, args, door, page=True)
    import secrets

    return _launch(context, args, replace(door, token=secrets.token_urlsafe(24)), page=True, show_token=True)


def _launch(
    context: Context,
    args: argparse.Namespace,
    door: "Door | None",
    *,
    page: bool = False,
    show_token: bool = False,
) -> int:
    _end_quietly()
    from surehold.front.mcp.launch import Launch, launch, roots_from
    from surehold.front.mcp.profile import ASK_SECONDS, Profile

    given = args.roots or ([context.root] if context.root != "." else [])
    roots, named_by = roots_from(given)
    return launch(
        Launch(
            roots=roots,
            named_by=named_by,
            settings=permission_settings(context, args),
            profile=Profile(
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
    from surehold.dialects.families import tools_of

    return frozenset(tool.name for tool in tools_of("multi_edit"))


def _door(host: str, port: int, args: argparse.Namespace) -> "Door":
    from surehold.front.mcp.door import Door

    if not 0 <= port <= _HIGHEST_PORT:
        raise _Unusable(f"{port} is not a port.")
    door = Door(
        host=host,
        port=port,
        token=_token(args.token_file),
        allow_hosts=tuple(args.allow_host),
        allow_origins=tuple(args.allow_origin),
    )
    if not door.is_local and not door.token:
        raise _Unusable(
            f"{door.address} can be reached from other machines, so it needs a token: "
            f"name a file with --token-file, or set {_TOKEN}."
        )
    return door


def _address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `:PORT` or `PORT`."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()):
        raise _Unusable(f"`{text}` is not an address like 127.0.0.1:8765.")
    return (host.removeprefix("[").removesuffix("]") if colon else "") or "127.0.0.1", int(port)


def _token(file: str) -> str:
    if not file:
        return os.environ.get(_TOKEN, "")
    try:
        token = as_path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _Unusable(f"The token file `{file}` cannot be read: {error}.") from None
    if not token:
        raise _Unusable(f"The token file `{file}` is empty.")
    return token


def _wrong(context: Context, error: _Unusable) -> int:
    context.err.line(f"{context.err.paint('Wrong usage', 'red', 'bold')}: {safe(str(error))}")
    return _USAGE


def _end_quietly() -> None:
    """Let SIGTERM end the program in good order also before the server runs."""
    import signal

    def leave(_: int, __: object) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, leave)


SERVER_COMMANDS = (
    Command(
        name="mcp",
        group="For agents",
        help="Serve the file tools to an agent: MCP on standard input and output.",
        example="surehold mcp ~/project\n  surehold mcp ~/project --http 127.0.0.1:8765 --mode plan",
        add_arguments=_mcp_arguments,
        run=_mcp,
    ),
    Command(
        name="serve",
        group="For agents",
        help="Serve the tools over HTTP, with a page to review what agents do.",
        example="surehold serve ~/project --port 8765",
        add_arguments=_serve_arguments,
        run=_serve,
    ),
)
