"""Permission on the command line: the options that choose it, and the question to the person at the keyboard."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from surehold.front.cli.change_view import paint_rows
from surehold.front.cli.command import Argument, CommandContext, argument, as_path, repeatable
from surehold.front.shared.person import person_name
from surehold.workspace.settings import MODES

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.front.cli.config.configuration import Configuration
    from surehold.front.shared.pending_approval import Decision, PendingApproval
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.settings import Mode

_REQUIRE_READ_HELP = (
    "what must be read before a change: the touched lines (strict, default), "
    "nothing if the text is unique (matched), nothing (off)"
)
_ON_STALE_HELP = (
    "an Edit of a file that changed since it was read: refuse it (reject, default), "
    "or apply it if its lines are provably the same (rebase)"
)
_FIRST_VIEW_CHARS = 20_000
_ASKED_ABOUT = {"acceptEdits": "protected paths only", "default": "every change"}


def permission_arguments(usual: "Mode" = "acceptEdits") -> tuple[Argument, ...]:
    modes = f"{', '.join(MODES)} (default: {usual}, which asks about {_ASKED_ABOUT[usual]})"
    return (
        argument("--mode", "MODE", modes, choices=MODES, default=None),
        repeatable("--deny", "GLOB", "paths to hide"),
        repeatable("--ask", "GLOB", "paths that require approval before a change"),
        repeatable("--allow", "GLOB", "paths that change without approval, unless protected"),
        repeatable("--unprotect", "GLOB", "protected paths to treat like any other"),
        argument("--require-read", None, _REQUIRE_READ_HELP, choices=("strict", "matched", "off"), default=None),
        argument("--on-stale", None, _ON_STALE_HELP, choices=("reject", "rebase"), default=None),
    )


def configure(
    context: CommandContext, args: argparse.Namespace, roots: Sequence[str], *, usual: "Mode" = "acceptEdits"
) -> "Configuration":
    """Return the settings of these directories: what the options say, and what is kept in files."""
    from surehold.front.cli.config.configuration import SETTINGS, load_configuration

    given = {one.name: getattr(args, one.name.replace("-", "_"), None) for one in SETTINGS}
    # Without the option these are empty, which is not a choice.
    options = {name: value or None for name, value in given.items()}
    found = load_configuration(roots, options, mode=usual)
    for sentence in found.without_effect:
        context.print_note(sentence)
    return found


def permission_settings(context: CommandContext, chosen: "Configuration") -> "Settings":
    from surehold.app import Settings
    from surehold.workspace.settings import Limits, ReadGateSettings

    return Settings(
        state_dir=as_path(context.state_dir) if context.state_dir else None,
        blobs=context.blobs_address,
        state=context.state,
        mode=chosen["mode"],
        deny=tuple(chosen["deny"]),
        ask=tuple(chosen["ask"]),
        allow=tuple(chosen["allow"]),
        unprotected=tuple(chosen["unprotect"]),
        gate=ReadGateSettings(require_read=chosen["require-read"], on_stale=chosen["on-stale"]),
        limits=Limits(max_file_bytes=chosen["max-file-bytes"]),
    )


def ask_at_keyboard(context: CommandContext) -> "Approver | None":
    """Return an approver that asks the person at the terminal; None without a terminal."""
    if not (context.err.is_terminal and sys.stdin.isatty()):
        return None

    from concurrent.futures import Future

    from surehold.front.shared.approval_queue import ApprovalQueue
    from surehold.front.shared.pending_approval import PendingApproval, approval_for
    from surehold.workspace.access.permission import Approval

    def show_question(question: PendingApproval) -> Future[Approval]:
        decision, answer = _ask_page_by_page(context, question), Future[Approval]()
        note = "" if decision else "no answer was given"
        answer.set_result(approval_for(decision, where="terminal", who=person_name(), note=note))
        return answer

    return partial(ApprovalQueue().ask, show=show_question)


def _ask_page_by_page(context: CommandContext, question: "PendingApproval") -> "Decision | None":
    """Show the change as far as it fits, and more of it on request; return what the person decided."""
    out, text = context.err, question.text
    out.print_labelled("Approval required", question.request.why, "yellow", "bold")
    out.print_line(f"{text.totals}.")
    view = text.view(_FIRST_VIEW_CHARS)
    paint_rows(out, view.rows)
    opened = set[int]()
    while True:
        unseen = text.count_unseen(view, opened)
        decision = _read_decision(context, unseen, is_protected=question.request.is_protected)
        if decision != "more":
            return decision
        opened.add(len(opened) + 1)
        out.print_line(f"Page {len(opened)} of {text.page_count}:")
        paint_rows(out, text.page(len(opened)))


def _read_decision(context: CommandContext, unseen: int, *, is_protected: bool) -> "Decision | Literal['more'] | None":
    """Return what the person typed; None at the end of the input."""
    from surehold.front.shared.change_text import unseen_lines

    answers: dict[str, Decision | Literal["more"]] = {"y": "allow", "n": "refuse", "a": "always"}
    prompt = "Allow this change? y = yes, n = no, a = yes to all of this call: "
    if unseen and is_protected:
        answers = {"m": "more", "n": "refuse"}
        prompt = f"There are {unseen_lines(unseen)} of a protected file. m = show more, n = no: "
    elif unseen:
        answers = {"m": "more", "y": "allow", "n": "refuse"}
        prompt = f"Allow {unseen_lines(unseen)}? m = show more, y = yes, n = no: "
    while True:
        with context.err.guard_stream() as stream:
            stream.write(prompt)
            stream.flush()
        row = sys.stdin.readline()
        word = row.strip().casefold()[:1]
        if not row or word in answers:
            return answers.get(word)
