"""Permission on the command line: the options that choose it, and the question to the person at the keyboard."""

import argparse
import sys
from typing import TYPE_CHECKING

from surehold.front.cli.command import CommandContext, as_path
from surehold.front.cli.output import escape_text
from surehold.workspace.settings import MODES

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.workspace.access.permission import Approval, Approver, PermissionRequest
    from surehold.workspace.settings import Mode

_ASKED_ABOUT = {"acceptEdits": "protected paths only", "default": "every change"}


def add_permission_arguments(parser: argparse.ArgumentParser, *, usual: "Mode" = "acceptEdits") -> None:
    """Add the mode, the rules, and what must have been read before."""
    parser.add_argument(
        "--mode",
        metavar="MODE",
        choices=MODES,
        default=usual,
        help=f"{', '.join(MODES)}; without it {usual}, which asks about {_ASKED_ABOUT[usual]}",
    )
    for flag, words in (
        ("--deny", "paths to hide; may be repeated"),
        ("--ask", "paths that somebody is asked about before they change"),
        ("--allow", "paths that change without a question; protected ones do not"),
        ("--unprotect", "protected paths that are like any other"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="GLOB", help=words)
    parser.add_argument(
        "--require-read",
        choices=("strict", "matched", "off"),
        default="strict",
        help="what Write, Edit and NotebookEdit must have read before: the lines they touch (default: strict), "
        "nothing where the text of an edit stands once (matched), or nothing (off)",
    )
    parser.add_argument(
        "--on-stale",
        choices=("reject", "rebase"),
        default="reject",
        help="an Edit in a file that changed since it was read: refused (default: reject), or made where its lines "
        "are provably the same (rebase)",
    )


def permission_settings(context: CommandContext, args: argparse.Namespace) -> "Settings":
    """Return the settings of a workspace for agents, as chosen."""
    from surehold.app import Settings
    from surehold.workspace.settings import ReadGateSettings

    return Settings(
        state_dir=as_path(context.state_dir) if context.state_dir else None,
        mode=args.mode,
        deny=tuple(args.deny),
        ask=tuple(args.ask),
        allow=tuple(args.allow),
        unprotected=tuple(args.unprotect),
        gate=ReadGateSettings(require_read=args.require_read, on_stale=args.on_stale),
    )


def ask_at_keyboard(context: CommandContext) -> "Approver | None":
    """Return who asks the person at the terminal; None when there is nobody."""
    out = context.err
    if not (out.is_terminal and sys.stdin.isatty()):
        return None

    def ask_person(request: "PermissionRequest") -> "Approval":
        from surehold.front.cli.change_view import paint_diff
        from surehold.workspace.access.permission import Approval

        out.print_line(f"{out.paint('Asked', 'yellow', 'bold')}: {escape_text(request.why)}")
        for one in request.files:
            out.print_line(escape_text(one.summary))
            for warning in one.warnings:
                out.print_line(f"{out.paint('Warning', 'yellow')}: {escape_text(warning)}")
            paint_diff(out, one.change.diff)
            if one.change.diff_truncated:
                out.print_line(out.paint("[The difference is longer than what can be shown.]", "dim"))
        word = _read_answer(context)
        return Approval(allowed=word in {"y", "a"}, always=word == "a", note="" if word else "nobody answered")

    return ask_person


def _read_answer(context: CommandContext) -> str:
    """Return y, n or a; nothing when the input ends."""
    while True:
        with context.err.guard_stream() as stream:
            stream.write("Allow this change? y = yes, n = no, a = all of this call: ")
            stream.flush()
        row = sys.stdin.readline()
        word = row.strip().casefold()[:1]
        if not row or word in {"y", "n", "a"}:
            return word
