"""Commands that go back and forth: undo, redo, rewind, revert."""

import argparse
import sys
from typing import Literal

from surehold.errors import InvalidArgument, NotFound
from surehold.front.cli.change_view import print_receipt
from surehold.front.cli.command import DRY_RUN_FLAG, Command, CommandContext, argument, command, flag, parse_name
from surehold.front.cli.history.progress import ProgressLine
from surehold.front.cli.history.selector_options import (
    SELECTOR_OPTIONS,
    SUBJECTS_ARGUMENT,
    find_change,
    named_change,
    read_selectors,
)
from surehold.front.cli.output import format_count
from surehold.text.escape import reveal_text

_PARTIAL_FLAG = flag("--partial", "do what can be done, and leave out what later changes depend on")


def _reversal_command(name: Literal["undo", "redo"], sentence: str, note: str, example: str) -> Command:
    @command(
        name, sentence, SUBJECTS_ARGUMENT, *SELECTOR_OPTIONS, _PARTIAL_FLAG, DRY_RUN_FLAG, example=example, note=note
    )
    def run_reversal(context: CommandContext, args: argparse.Namespace) -> None:
        what = "Undoing" if name == "undo" else "Redoing"
        with context.open_recorded_workspace() as workspace, ProgressLine(context.err, what):
            history, author, dry_run = workspace.history, context.author, args.dry_run
            change = named_change(workspace, args)
            words = read_selectors(args, [] if change else args.subject)
            running = history.open_runs(history.select(words)) if words and name == "undo" else []
            if words:
                many = history.undo_selected if name == "undo" else history.redo_selected
                receipt = many(words, author=author, partial=args.partial, dry_run=dry_run)
            else:
                one = history.undo if name == "undo" else history.redo
                receipt = one(change, author=author, dry_run=dry_run)
        print_receipt(context, receipt, "Undone" if name == "undo" else "Redone", running=running)

    return run_reversal


undo_command = _reversal_command(
    "undo",
    "Undo a change, or all that selectors name; later changes stay.",
    "Without arguments: the newest change that is not undone.",
    "surehold undo 7k2m9qxr --dry-run\n  surehold undo --agent claude --since 10:00",
)
redo_command = _reversal_command(
    "redo",
    "Redo a change that was undone, or everything that selectors name.",
    "Without arguments: what was undone last.",
    "surehold redo\n  surehold redo --session last",
)


@command(
    "rewind",
    "Undo the last turn of the last session, as one change.",
    flag("--yes", "do not ask for confirmation"),
    _PARTIAL_FLAG,
    DRY_RUN_FLAG,
    note="On a terminal it asks first. It can be undone itself: surehold undo CHANGE.",
    example="surehold rewind --dry-run",
)
def rewind_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.workspace.past.selectors import ChangeSelection

    with context.open_recorded_workspace() as workspace:
        entries = workspace.history.last_turn()
        if not entries:
            raise NotFound("No session has a turn to rewind.", reason="no_changes", action="See: surehold sessions")
        call, number = entries[0].call, len({entry.change_id for entry in entries})
        running = workspace.history.open_runs(ChangeSelection(session=call.session, turn=call.turn))
        turn = f"turn {call.turn}" if call.turn else "everything"
        what = reveal_text(f"{turn} of {call.agent or 'session'} {call.session[-8:]}: {format_count(number, 'change')}")
        if not (args.yes or args.dry_run):
            _confirm(context, f"Undo {what}?")
        with ProgressLine(context.err, "Undoing"):
            receipt = workspace.history.switch_entries(
                entries, "undo", author=context.author, partial=args.partial, dry_run=args.dry_run
            )
    print_receipt(context, receipt, "Undone", running=running)


def _confirm(context: CommandContext, question: str) -> None:
    """Ask on a terminal; elsewhere the command was meant."""
    if context.json or not sys.stdin.isatty() or not context.err.is_terminal:
        return
    with context.err.guard_stream() as stream:
        stream.write(f"{question} [y/N] ")
        stream.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise InvalidArgument("Nothing was undone.", reason="not_confirmed", action="Confirm with y, or --yes.")


@command(
    "revert",
    "Bring files back to their last recorded state, or an earlier one.",
    argument("paths", "FILE", "files, or directories for everything recorded below them", nargs="+"),
    argument("--to", "CHANGE", "as they were right after this change", dest="to_change", type=parse_name, default=None),
    DRY_RUN_FLAG,
    note="Without --to it removes what other programs did since, and brings deleted files back.",
    example="surehold revert src/app.py\n  surehold revert src/app.py --to 7k2m9qxr",
)
def revert_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.workspace.past.versions import point_at, revert_files

    with context.open_recorded_workspace() as workspace, ProgressLine(context.err, "Reverting"):
        point = None
        if args.to_change:
            view = find_change(workspace, args.to_change)
            point = point_at(view.entries, view.id)
        receipt = revert_files(workspace, args.paths, point, author=context.author, dry_run=args.dry_run)
    if not receipt.files and not context.json:
        context.out.print_line(f"{reveal_text(', '.join(args.paths))}: nothing to revert.")
        if not args.to_change:
            context.print_hint("To go further back: surehold log FILE, then surehold revert FILE --to CHANGE")
        return
    print_receipt(context, receipt, "Reverted")
