"""Commands for agents: serve the tools (mcp, serve, acp), run one, print their definitions."""

import argparse
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument, Unavailable, missing_extra
from surehold.front.cli.command import (
    CommandContext,
    UsageError,
    argument,
    as_path,
    choice,
    command,
    flag,
    parse_positive,
    repeatable,
)
from surehold.front.cli.permission_options import ask_at_keyboard, configure, permission_arguments, permission_settings
from surehold.front.shared.person import person_name
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.front.shared.http_settings import HttpSettings, LanSettings
    from surehold.tools.call import Answer

_DEFAULT_PORT = 8765
_HIGHEST_PORT = 65_535
_TOKEN_VARIABLE = "SUREHOLD_TOKEN"  # noqa: S105 - the name of a variable, not a secret
_SESSION_VARIABLE = "SUREHOLD_SESSION"
_ANSWER_WAIT_SECONDS = 600.0
_ANSWER_WAIT_HELP = f"how long to wait for an answer (default: {_ANSWER_WAIT_SECONDS:g})"


def _parse_families(text: str) -> str:
    from surehold.library.families import DEFAULT_FAMILIES, check_families

    try:
        check_families(text or DEFAULT_FAMILIES)
    except InvalidArgument as error:
        raise UsageError(f"--tools: {error.message}", hint=error.action) from None
    return text


_UNCHECKED_FLAG = flag("--allow-unchecked", "accept changes without expectedSha256")
_FAMILIES_OPTION = argument("--tools", "LIST", "tool families, such as anchored,files; or all", type=_parse_families)
_SERVER_ARGUMENTS = (
    argument("roots", "ROOT", "directories that agents may work in", nargs="*"),
    argument(
        "--tools", "LIST", "tool families: anchored, files, … or all (default: anchored,files)", type=_parse_families
    ),
    *permission_arguments(),
    argument("--ask-seconds", None, argparse.SUPPRESS, type=parse_positive, default=0),
    flag("--read-only", "serve only tools that change nothing"),
    _UNCHECKED_FLAG,
    flag("--contract-errors", "multi_edit reports refusals as JSON-RPC errors"),
    flag("--no-deprecated", "refuse deprecated argument names, such as file_path"),
    flag("--lean", "shorter descriptions, to save tokens"),
    argument("--max-chars", "N", "maximum characters in an answer", type=parse_positive, default=0),
    argument("--max-tokens", "N", "maximum estimated tokens in an answer", type=parse_positive, default=0),
    flag("--meta", "put the data of every answer into _meta, for programs"),
    argument("--always-load", "LIST", "tools that Claude Code loads at once, such as write_file; or all", default=""),
)
_HTTP_ARGUMENTS = (
    argument("--token-file", "FILE", f"file with the bearer token (or set {_TOKEN_VARIABLE})"),
    repeatable("--allow-host", "NAME", "another Host name by which clients reach the server"),
    repeatable("--allow-origin", "URL", "a web origin that may call the server"),
    argument(
        "--session-hours", "N", "forget clients that are idle so long (default: 24)", type=parse_positive, default=24
    ),
)


@command(
    "mcp",
    "Serve the file tools to an agent: MCP on stdin and stdout.",
    *_SERVER_ARGUMENTS,
    argument("--http", "HOST:PORT", "streamable HTTP at /mcp instead of stdio"),
    argument("--session", "ID", f"the session to go on with, over stdio (or set {_SESSION_VARIABLE})"),
    flag("--review", "serve the review page beside stdio, and print the link on stderr"),
    argument("--review-port", "PORT", "its port (default: the one of the last time)", type=int, default=0),
    *_HTTP_ARGUMENTS,
    example="surehold mcp ~/project\n  surehold mcp ~/project --review --mode default\n"
    "  surehold mcp ~/project --http 127.0.0.1:8765 --mode plan",
)
def mcp_command(context: CommandContext, args: argparse.Namespace) -> int:
    if args.http and args.session:
        raise UsageError("--session is for stdio; over HTTP each client has a session of its own.")
    if args.http and args.review:
        raise UsageError("--review is for stdio; over HTTP, `surehold serve` has the page.")
    if not 0 <= args.review_port <= _HIGHEST_PORT:
        raise UsageError(f"{args.review_port} is not a port.")
    http = _build_http_settings(*_parse_address(args.http), args) if args.http else None
    page_port = args.review_port if args.review or args.review_port else None
    return _launch_server(context, args, http, session=args.session or session_in(os.environ), page_port=page_port)


@command(
    "serve",
    "Serve the tools over HTTP, with a page to review what agents do.",
    *_SERVER_ARGUMENTS,
    argument("--host", None, "the address to listen on (default: 127.0.0.1)", default="127.0.0.1"),
    argument("--port", None, f"0 picks a free port (default: {_DEFAULT_PORT})", type=int, default=_DEFAULT_PORT),
    *_HTTP_ARGUMENTS,
    argument("--workers", "N", "processes that serve the port (default: 1)", type=parse_positive, default=1),
    choice("--log-format", ("text", "json"), "json: one document for each line on stderr, also for each call"),
    argument(
        "--drain-seconds", "N", "how long running calls may take at the end (default: 20)", type=float, default=20.0
    ),
    flag("--lan", "show the page to a phone in the same network too: over TLS, with a QR code"),
    argument(
        "--lan-address", "HOST[:PORT]", "the address for --lan (default: the one in the network, any port)", default=""
    ),
    argument("--tls-cert", "FILE", "a certificate for --lan (default: one is made)", default=""),
    argument("--tls-key", "FILE", "its key", default=""),
    example="surehold serve ~/project --port 8765\n  surehold serve ~/project --lan",
)
def serve_command(context: CommandContext, args: argparse.Namespace) -> int:
    import secrets
    from dataclasses import replace

    given = _build_http_settings(args.host, args.port, args)
    if not 0 <= args.drain_seconds < float("inf"):
        raise UsageError(f"{args.drain_seconds:g} is not a number of seconds.")
    given = replace(given, drain_seconds=args.drain_seconds)
    http = given if given.token else replace(given, token=secrets.token_urlsafe(24))
    more: dict[str, Any] = {"lan": _build_lan_settings(args), "log_format": args.log_format, "workers": args.workers}
    return _launch_server(context, args, http, page=True, show_token=http is not given, **more)


def _build_lan_settings(args: argparse.Namespace) -> "LanSettings | None":
    from surehold.front.shared.http_settings import CertificateFiles, LanSettings

    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together.")
    if not args.lan:
        if args.lan_address or args.tls_cert:
            raise UsageError("--lan-address, --tls-cert and --tls-key are for --lan.")
        return None
    certificate = CertificateFiles(certificate=args.tls_cert, key=args.tls_key) if args.tls_cert else None
    host, port = _parse_address(args.lan_address, default="") if ":" in args.lan_address else (args.lan_address, 0)
    return LanSettings(host=host, port=port, certificate=certificate)


def session_in(environment: Mapping[str, str]) -> str:
    """Return the session that the environment names: by our variable, or by that of the host that started this server."""
    is_claude = environment.get("CLAUDECODE") and "CLAUDE_CODE_CHILD_SESSION" not in environment  # else it is its shell
    return environment.get(_SESSION_VARIABLE) or (environment.get("CLAUDE_CODE_SESSION_ID", "") if is_claude else "")


def _launch_server(context: CommandContext, args: argparse.Namespace, http: "HttpSettings | None", **more: Any) -> int:
    import signal

    signal.signal(signal.SIGTERM, lambda _, __: sys.exit(0))  # in good order also before the server runs
    from surehold.front.mcp.options import ASK_SECONDS, ServerOptions
    from surehold.front.server_launch import ServerLaunch, choose_roots, launch_server

    roots, named_by = choose_roots(_given_roots(context, args))
    chosen = configure(context, args, roots)
    return launch_server(
        ServerLaunch(
            roots=roots,
            named_by=named_by,
            settings=permission_settings(context, chosen),
            options=ServerOptions(
                lean=chosen["lean"],
                read_only=chosen["read-only"],
                unchecked=chosen["allow-unchecked"],
                deprecated_names=not args.no_deprecated,
                contract_errors=_contract_names() if args.contract_errors else frozenset(),
                ask_seconds=args.ask_seconds or ASK_SECONDS,
                max_chars=chosen["max-chars"],
                max_tokens=chosen["max-tokens"],
                max_only_lowers=chosen.is_from_workspace("max-chars", "max-tokens"),
                meta=args.meta,
                always_load=_choose_tools_to_load(args.always_load, chosen["tools"]),
            ),
            tools=chosen["tools"],
            http=http,
            **more,
        )
    )


def _choose_tools_to_load(text: str, families: str) -> frozenset[str]:
    """Return the tools that are named; refuse the name of one that is not served."""
    from surehold.front.mcp.options import ALL_TOOLS
    from surehold.library.families import list_tools

    named = frozenset(filter(None, text.replace(" ", "").split(",")))
    served = [tool.name for tool in (list_tools(families) if families else list_tools())] if named else []
    if unknown := sorted(named - {*served, ALL_TOOLS}):
        hint = f"Choose from {', '.join(served)}, or all."
        raise UsageError(f"--always-load: `{unknown[0]}` is not among the tools that are served.", hint=hint)
    return named


def _contract_names() -> frozenset[str]:
    """Return the tools whose contract requires protocol errors: those of one family."""
    from surehold.library.families import list_tools

    return frozenset(tool.name for tool in list_tools("multi_edit"))


def _given_roots(context: CommandContext, args: argparse.Namespace) -> list[str]:
    return args.roots or ([context.root] if context.root != "." else [])


def _build_http_settings(host: str, port: int, args: argparse.Namespace) -> "HttpSettings":
    from surehold.front.shared.http_settings import HttpSettings

    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"{port} is not a port.")
    http = HttpSettings(
        host=host,
        port=port,
        token=_read_token(args.token_file),
        allow_hosts=tuple(args.allow_host),
        allow_origins=tuple(args.allow_origin),
        session_hours=args.session_hours,
    )
    if not http.is_local and not http.token:
        raise UsageError(
            f"{http.address} can be reached from other machines, so it needs a token: "
            f"name a file with --token-file, or set {_TOKEN_VARIABLE}."
        )
    return http


def _parse_address(text: str, *, default: str = "127.0.0.1") -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `:PORT` or `PORT`."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()):
        raise UsageError(f"`{text}` is not an address like 127.0.0.1:8765.")
    return (host.removeprefix("[").removesuffix("]") if colon else "") or default, int(port)


def _read_token(file: str) -> str:
    if not file:
        return os.environ.get(_TOKEN_VARIABLE, "")
    try:
        token = as_path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"The token file `{file}` cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"The token file `{file}` cannot be read: it is not UTF-8 text.") from None
    if not token:
        raise UsageError(f"The token file `{file}` is empty.")
    return token


def _positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return seconds


@command(
    "acp",
    "Run tool calls from an editor: an ACP agent without a model.",
    argument("roots", "ROOT", "sessions may start only in these directories (default: any)", nargs="*"),
    argument("--tools", "LIST", "tool families: anchored, files, … or all (default: all)", type=_parse_families),
    *permission_arguments(usual="default"),  # an editor can ask, so it is asked
    _UNCHECKED_FLAG,
    argument("--ask-seconds", "N", _ANSWER_WAIT_HELP, type=_positive_seconds, default=_ANSWER_WAIT_SECONDS),
    choice("--dialect", ("v1", "contract"), "event format (default: v1, which editors understand)"),
    example="surehold acp\n  surehold acp ~/project --mode acceptEdits",
)
def acp_command(context: CommandContext, args: argparse.Namespace) -> int:
    roots = tuple(_given_roots(context, args))
    if context.state_dir and not roots:
        raise UsageError("--state-dir is the history of one directory; name that directory as ROOT.")
    if find_spec("acp") is None:
        raise missing_extra("The ACP agent cannot start", "acp")
    try:
        from surehold_acp_agent.agent import AgentOptions
        from surehold_acp_agent.launch import launch_agent
    except ModuleNotFoundError as missing:
        if missing.name != "surehold_acp_agent":
            raise
        message = "The example agent `surehold_acp_agent` is not installed."
        action = "Install Surehold again; in a checkout, run `make`. Its files are in `examples/`."
        raise Unavailable(message, reason="example_missing", action=action) from None

    chosen = configure(context, args, roots, usual="default")
    profile = AgentOptions(
        roots=roots,
        settings=permission_settings(context, chosen),
        settings_of=lambda directories: permission_settings(
            context, configure(context, args, directories, usual="default")
        ),
        mode=chosen["mode"],
        dialect=args.dialect,
        patience=args.ask_seconds,
        unchecked=chosen["allow-unchecked"],
    )
    return launch_agent(profile, tools=chosen["tools"] or "all")


@command(
    "tool",
    "Run one tool once, as an agent would.",
    argument("name", "NAME", "such as read_file; see: surehold schema"),
    argument("--json", "ARGS", "the arguments as JSON; - reads them from stdin", dest="arguments", default="{}"),
    flag("--text", "print what a model would read instead of JSON"),
    argument("--session", "NAME", "continue the session of this name: what it read counts"),
    _UNCHECKED_FLAG,
    *permission_arguments(),
    note="It prints what the tool answers, refusals and wrong arguments included, as JSON in the format of its family; "
    "an unknown tool is refused in the format of read_file.",
    example='surehold tool read_file --json \'{"path": "README.md"}\'\n'
    '  surehold tool create_file --json \'{"path": "a.txt", "content": "x"}\' --mode default',
)
def tool_command(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.app import open_workspace
    from surehold.library.families import tool_named
    from surehold.tools.call import CallContext

    try:
        tool = tool_named(args.name)
    except InvalidArgument as error:
        return _print_answer(context, tool_named("read_file").refusal_answer(error), as_text=args.text)
    try:
        arguments = _parse_tool_arguments(args.arguments)
    except InvalidArgument as error:
        return _print_answer(context, tool.refusal_answer(error), as_text=args.text)
    chosen = configure(context, args, [context.root])
    with open_workspace(context.root, settings=permission_settings(context, chosen)) as workspace:
        name = f"shell-{args.session}" if args.session else ""
        session = workspace.session(agent=person_name(), id=name, approver=ask_at_keyboard(context))
        answer = tool.call(CallContext(session=session, unchecked=chosen["allow-unchecked"]), arguments)
    return _print_answer(context, answer, as_text=args.text)


def _print_answer(context: CommandContext, answer: "Answer", *, as_text: bool) -> int:
    with context.out.print_verdict(is_good=answer.ok):
        if as_text:
            context.out.print_line(reveal_text(answer.text, keep="\n\r\t"))
        else:
            context.out.print_json(answer.data)
    return 0 if answer.ok else 1


def _parse_tool_arguments(text: str) -> Mapping[str, Any]:
    from surehold.library.model_calls import parse_json_arguments

    source = sys.stdin.read() if text == "-" else text
    return parse_json_arguments(source, action='Quote them: --json \'{"path": "a.py"}\'')


@command(
    "schema",
    "Print the definitions of the tools.",
    choice(
        "--format",
        ("mcp", "openai", "openai-responses", "openai-chat", "anthropic"),
        "in the notation of this API (default: mcp)",
    ),
    _FAMILIES_OPTION,
    example="surehold schema --format openai",
)
def schema_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.library.families import DEFAULT_FAMILIES, list_tools
    from surehold.tools.export import export_tools

    context.out.print_json(export_tools(list_tools(args.tools or DEFAULT_FAMILIES), args.format))


@command(
    "prompt",
    "Print what a model should know about the tools.",
    _FAMILIES_OPTION,
    flag("--lean", "the short version"),
    example="surehold prompt --lean",
)
def prompt_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.library.families import DEFAULT_FAMILIES, list_tools
    from surehold.tools.export import build_guidance

    text = build_guidance(list_tools(args.tools or DEFAULT_FAMILIES), lean=args.lean)
    context.print_outcome(text, prompt=text)
