"""Commands on the agent tools: run one tool once, and export their definitions."""

import argparse
import json
import sys
from typing import Any, cast

from surehold.errors import InvalidArgument
from surehold.front.cli.command import Command, CommandContext, person_name
from surehold.front.cli.output import escape_text
from surehold.front.cli.permission_options import add_permission_arguments, ask_at_keyboard, permission_settings

_SCHEMA_FORMATS = ("openai", "anthropic", "mcp")


def _tool_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="such as read_file; see: surehold schema")
    parser.conflict_handler = "resolve"  # here --json carries the arguments; a group made now takes it over
    parser.add_argument_group("the call").add_argument(
        "--json", metavar="ARGS", dest="arguments", default="{}", help="the arguments as JSON; - reads them from stdin"
    )
    parser.add_argument("--text", action="store_true", help="print what a model would read instead of JSON")
    parser.add_argument(
        "--session", metavar="NAME", default="", help="go on with the session of that name: what it read counts"
    )
    parser.add_argument("--allow-unchecked", action="store_true", help="take changes without expectedSha256")
    add_permission_arguments(parser)


def _run_tool(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.app import open_workspace
    from surehold.library.families import tool_named
    from surehold.tools.context import CallContext

    tool, arguments = tool_named(args.name), _parse_arguments(args.arguments)
    with open_workspace(context.root, settings=permission_settings(context, args)) as workspace:
        name = f"shell-{args.session}" if args.session else ""
        session = workspace.session(agent=person_name(), id=name, approver=ask_at_keyboard(context))
        answer = tool.call(CallContext(session=session, unchecked=args.allow_unchecked), arguments)
    if args.text:
        context.out.print_line(escape_text(answer.text, keep="\n\r\t"))
    else:
        context.out.print_json(answer.data)
    return 0 if answer.ok else 1


def _parse_arguments(text: str) -> dict[str, Any]:
    source = sys.stdin.read() if text == "-" else text
    try:
        arguments = json.loads(source)
    except ValueError as error:
        raise InvalidArgument(
            f"The arguments are not JSON: {error}.", reason="bad_json", action='Quote them: --json \'{"path": "a.py"}\''
        ) from None
    if not isinstance(arguments, dict):
        raise InvalidArgument("The arguments must be one JSON object.", reason="bad_json")
    return cast("dict[str, Any]", arguments)


def _schema_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=_SCHEMA_FORMATS, default="mcp", help="whose notation (default: mcp)")
    parser.add_argument("--tools", metavar="LIST", default="", help="families, such as anchored,files; or all")


def _print_schema(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.library.families import DEFAULT_FAMILIES, tools_of
    from surehold.tools.export import export_tools

    context.out.print_json(export_tools(tools_of(args.tools or DEFAULT_FAMILIES), args.format))
    return 0


def _prompt_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tools", metavar="LIST", default="", help="families, such as anchored,files; or all")
    parser.add_argument("--lean", action="store_true", help="the same in fewer words")


def _print_prompt(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.library.families import DEFAULT_FAMILIES, tools_of
    from surehold.tools.guide import build_guidance

    text = build_guidance(tools_of(args.tools or DEFAULT_FAMILIES), lean=args.lean)
    context.print_outcome(text, prompt=text)
    return 0


TOOL_COMMANDS = (
    Command(
        name="tool",
        group="For agents",
        help="Run one tool once, as an agent would.",
        example='surehold tool read_file --json \'{"path": "README.md"}\'\n'
        '  surehold tool create_file --json \'{"path": "a.txt", "content": "x"}\' --mode default',
        add_arguments=_tool_arguments,
        run=_run_tool,
    ),
    Command(
        name="schema",
        group="For agents",
        help="Print the definitions of the tools.",
        example="surehold schema --format openai",
        add_arguments=_schema_arguments,
        run=_print_schema,
    ),
    Command(
        name="prompt",
        group="For agents",
        help="Print what a model should know about the tools.",
        example="surehold prompt --lean",
        add_arguments=_prompt_arguments,
        run=_print_prompt,
    ),
)
