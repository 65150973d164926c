"""acp: the way in for editors."""

import argparse

from surehold.front.cli.approval import add_permission_arguments, permission_settings
from surehold.front.cli.command import Command, Context

_USAGE = 2
_DIALECTS = ("v1", "contract")
_PATIENCE = 600.0


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="sessions begin in these directories (default: any)")
    parser.add_argument(
        "--tools", metavar="LIST", default="all", help="families: anchored, files, … or all (default: all)"
    )
    add_permission_arguments(parser, usual="default")  # an editor can ask, so it is asked
    parser.add_argument("--allow-unchecked", action="store_true", help="let changes go without expectedSha256")
    parser.add_argument(
        "--ask-seconds",
        type=_seconds,
        default=_PATIENCE,
        metavar="N",
        help=f"how long an answer is waited for (default: {_PATIENCE:g})",
    )
    parser.add_argument(
        "--dialect", choices=_DIALECTS, default="v1", help="how events are spelled (default: v1, which editors read)"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return seconds


def _acp(context: Context, args: argparse.Namespace) -> int:
    roots = tuple(args.roots or ([context.root] if context.root != "." else []))
    if context.state_dir and not roots:
        wrong = context.err.paint("Wrong usage", "red", "bold")
        context.err.line(f"{wrong}: --state-dir is the history of one directory; name that as ROOT.")
        return _USAGE
    from surehold.front.acp.agent import Profile
    from surehold.front.acp.launch import launch

    profile = Profile(
        roots=roots,
        settings=permission_settings(context, args),
        mode=args.mode,
        dialect=args.dialect,
        patience=args.ask_seconds,
        unchecked=args.allow_unchecked,
    )
    return launch(profile, tools=args.tools)


ACP_COMMANDS = (
    Command(
        name="acp",
        group="For agents",
        help="Run tool calls from an editor: an ACP agent without a model.",
        example="surehold acp\n  surehold acp ~/project --mode acceptEdits",
        add_arguments=_arguments,
        run=_acp,
    ),
)
