"""Permission on the command line: the options that choose it, and the question to the person at the keyboard."""

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from surehold.front.cli.change_view import paint_diff
from surehold.front.cli.command import Argument, CommandContext, argument, as_path, choice, repeatable
from surehold.text.escape import escape_text
from surehold.workspace.settings import MODES

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.front.shared.approval_queue import Decision
    from surehold.workspace.access.permission import Approver, PermissionRequest
    from surehold.workspace.settings import Mode

_REQUIRE_READ_HELP = (
    "what must be read before a change: the touched lines (strict, default), "
    "nothing if the text is unique (matched), nothing (off)"
)
_ON_STALE_HELP = (
    "an Edit of a file that changed since it was read: refuse it (reject, default), "
    "or apply it if its lines are provably the same (rebase)"
)
_ASKED_ABOUT = {"acceptEdits": "protected paths only", "default": "every change"}


def permission_arguments(usual: "Mode" = "acceptEdits") -> tuple[Argument, ...]:
    modes = f"{', '.join(MODES)} (default: {usual}, which asks about {_ASKED_ABOUT[usual]})"
    return (
        argument("--mode", "MODE", modes, choices=MODES, default=usual),
        repeatable("--deny", "GLOB", "paths to hide"),
        repeatable("--ask", "GLOB", "paths that require approval before a change"),
        repeatable("--allow", "GLOB", "paths that change without approval, unless protected"),
        repeatable("--unprotect", "GLOB", "protected paths to treat like any other"),
        choice("--require-read", ("strict", "matched", "off"), _REQUIRE_READ_HELP),
        choice("--on-stale", ("reject", "rebase"), _ON_STALE_HELP),
    )


def permission_settings(context: CommandContext, args: argparse.Namespace) -> "Settings":
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
    """Return an approver that asks the person at the terminal; None without a terminal."""
    out = context.err
    if not (out.is_terminal and sys.stdin.isatty()):
        return None

    from concurrent.futures import Future

    from surehold.front.shared.approval_queue import ApprovalQueue, approval_for
    from surehold.workspace.access.permission import Approval

    def show_question(request: "PermissionRequest") -> "Future[Approval]":
        out.print_labelled("Approval required", request.why, "yellow", "bold")
        for one in request.files:
            out.print_line(escape_text(one.summary))
            for warning in one.warnings:
                out.print_labelled("Warning", warning, "yellow")
            paint_diff(out, one.change.diff)
            if one.change.diff_truncated:
                out.print_line(out.paint("[The diff is too long to show in full.]", "dim"))
        decision, answer = _read_decision(context), Future[Approval]()
        answer.set_result(approval_for(decision, note="" if decision else "no answer was given"))
        return answer

    return partial(ApprovalQueue().ask, show=show_question)


def _read_decision(context: CommandContext) -> "Decision | None":
    """Return what the person typed; None at the end of the input."""
    decisions: dict[str, Decision] = {"y": "allow", "n": "refuse", "a": "always"}
    while True:
        with context.err.guard_stream() as stream:
            stream.write("Allow this change? y = yes, n = no, a = yes to all of this call: ")
            stream.flush()
        row = sys.stdin.readline()
        word = row.strip().casefold()[:1]
        if not row or word in decisions:
            return decisions.get(word)
