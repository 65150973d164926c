"""`surehold log`: changes and refused calls, newest first, or as they happen."""

import argparse
import os
import time
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from surehold.front.cli.change_view import format_line_counts, paint_diff, print_diff
from surehold.front.cli.command import CommandContext, argument, command, flag, parse_positive, short_id
from surehold.front.cli.history.selector_options import PATHS_ARGUMENT, SELECTOR_OPTIONS, read_selectors
from surehold.front.cli.output import TableCell, TableColumn, format_count
from surehold.front.shared.ledger_json import entry_record, format_command, format_move
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from surehold.stores.base import Entry
    from surehold.workspace.past.history_reader import HistoryReader
    from surehold.workspace.past.selectors import ChangeSelection
    from surehold.workspace.undo.switch_board import ChangeView
    from surehold.workspace.workspace import Workspace

_FOLLOW_SECONDS = 0.3
_LOG_COLUMNS = (
    TableColumn(title="when", rank=2),
    TableColumn(title="change"),
    TableColumn(title="who", least=6, rank=3),
    TableColumn(title="what", rank=5),
    TableColumn(title="path", least=14, keep="end"),
    TableColumn(title="result", least=8, rank=1),
    TableColumn(title="reason", least=16, rank=4),
)


@command(
    "log",
    "List changes and refused calls, newest first.",
    PATHS_ARGUMENT,
    *SELECTOR_OPTIONS,
    argument("--limit", "N", "how many changes to show (default: 20)", type=parse_positive, default=20),
    flag("--all", "show all of them"),
    flag("--failed", "only what was refused"),
    flag("--follow", "then show changes as they happen, until interrupted"),
    (
        flag("--oneline", "one line for each change"),
        flag("--stat", "list the files of each change"),
        flag("--patch", "show the diff of each change"),
    ),
    is_paged=True,
    example="surehold log src --agent claude --since 2h --stat",
)
def log_command(context: CommandContext, args: argparse.Namespace) -> None:
    if not context.has_history() and not args.follow:
        _print_empty_log(context)
        return
    _wait_for_history(context)
    if context.is_removed() or args.paths or args.patch or args.follow:
        with context.open_workspace(recover=False, remake=True) as workspace:
            _show_log(context, args, workspace.history, workspace)
    else:
        with context.open_history() as history:
            _show_log(context, args, history)


def _show_log(
    context: CommandContext, args: argparse.Namespace, history: "HistoryReader", workspace: "Workspace | None" = None
) -> None:
    """Print what happened; a workspace is needed for what leads to files, and for what happens from now on."""
    cursor = workspace.follow_history().cursor if workspace and args.follow else ""
    words = read_selectors(args)
    selection = history.select(words, now=context.out.now)
    outside = not (words.session or words.agent or words.turn or words.since or words.until)
    entries = history.iterate(selection, ok_only=False, outside=outside)
    found = history.group_changes(one for one in entries if not (args.failed and one.ok))
    changes = list(islice(found, None if args.all else args.limit))
    more = next(found, None) is not None
    _print_log(context, args, workspace, changes, more=more)
    if workspace and args.follow:
        shown = {entry.seq for one in changes for entry in one.entries}
        _follow_log(context, args, workspace, selection, cursor, shown)


def _print_log(
    context: CommandContext,
    args: argparse.Namespace,
    workspace: "Workspace | None",
    changes: "list[ChangeView]",
    *,
    more: bool,
) -> None:
    if context.json and args.follow:
        for one in reversed(changes):
            _print_json_lines(context, one)
    elif context.json:
        records = [entry_record(entry, undone_by=one.undone_by) for one in changes for entry in reversed(one.entries)]
        context.out.print_json({"entries": records, "more": more})
    elif not changes and not args.follow:
        context.out.print_line("No entry of the history matches.")
        context.print_hint("To list everything: surehold log --all")
    elif args.oneline or args.stat or args.patch:
        for one in reversed(changes) if args.follow else changes:
            _print_change(context, args, workspace, one)
    elif changes:
        ordered = reversed(changes) if args.follow else changes
        context.out.print_table(_LOG_COLUMNS, [_log_row(context, one) for one in ordered])
        if more:
            context.print_hint("There is more: surehold log --all")


def _print_empty_log(context: CommandContext) -> None:
    root = reveal_text(os.path.realpath(context.root))
    context.print_outcome(f"Nothing has been changed through Surehold in {root} yet.", entries=[], more=False)
    if not context.json:
        context.out.print_line("Try it: surehold edit PATH --old 'one text' --new 'another'")


def _print_json_lines(context: CommandContext, one: "ChangeView") -> None:
    for entry in one.entries:
        context.out.print_json_line(entry_record(entry, undone_by=one.undone_by))


def _wait_for_history(context: CommandContext) -> None:
    """Wait for the first change of a workspace, until the person interrupts."""
    if not context.has_history():
        context.print_note("Nothing has been changed here yet; waiting for the first change.")
    while not context.has_history():
        time.sleep(_FOLLOW_SECONDS)


def _follow_log(  # noqa: PLR0917 - what was printed, and where to go on
    context: CommandContext,
    args: argparse.Namespace,
    workspace: "Workspace",
    selection: "ChangeSelection",
    cursor: str,
    shown: set[int],
) -> None:
    """Print changes as they happen, until the person interrupts."""
    context.out.flush()
    while True:
        time.sleep(_FOLLOW_SECONDS)
        recorded = workspace.follow_history(cursor)
        new, cursor = {one.seq for one in recorded.entries} - shown, recorded.cursor
        rows = _entries_among(new, workspace.history.iterate(selection, ok_only=False, outside=True))
        found = list(workspace.history.group_changes(rows))
        for one in reversed(found):
            if context.json:
                _print_json_lines(context, one)
            else:
                _print_change(context, args, workspace, one)
        context.out.flush()


def _entries_among(seqs: set[int], entries: "Iterable[Entry]") -> "Iterator[Entry]":
    oldest = min(seqs, default=0)
    return (one for one in takewhile(lambda one: one.seq >= oldest, entries if seqs else ()) if one.seq in seqs)


def _log_row(context: CommandContext, one: "ChangeView") -> list[TableCell]:
    first = one.entries[0]
    return [
        (context.out.format_time(first.timestamp), "dim"),
        (short_id(one.id), "yellow"),
        (author_name(first), "plain"),
        (first.call.operation, "cyan"),
        (paths_text(one), "plain"),
        (_result_text(one), "dim" if first.ok else "red"),
        (_purpose_text(one), "plain"),
    ]


def paths_text(one: "ChangeView") -> str:
    """Return the first file of a change, and how many more there are."""
    shown = shown_entries(one)
    change, others = shown[0].change, len(shown) - 1
    more = f" and {others} more" if others else ""
    return f"{format_move(change.path, change.to_path)}{more}"


def shown_entries(one: "ChangeView") -> "Sequence[Entry]":
    """Return the entries without those of directories whose time follows from the others."""
    return [entry for entry in one.entries if not entry.change.sets_times_only] or one.entries


def _purpose_text(one: "ChangeView") -> str:
    """Return the reason of a change, or the command that made it."""
    call = one.entries[0].call
    return call.reason or (f"$ {format_command(call)}" if call.argv else "")


def author_name(entry: "Entry") -> str:
    call = entry.call
    if call.tool == call.operation or not call.tool:
        return call.agent or ("outside" if call.operation == "external" else "-")
    return f"{call.agent}/{call.tool}" if call.agent else call.tool


def _result_text(one: "ChangeView") -> str:
    first = one.entries[0]
    if not first.ok:
        return f"refused: {first.error_kind}"
    lines = " ".join(f"{sign}{number}" for sign, number in (("+", one.added), ("-", one.removed)) if number)
    if not lines and len(shown := shown_entries(one)) == 1:
        lines = format_line_counts(shown[0].change)
    mode = f"mode {bits}" if len(one.entries) == 1 and (bits := mode_change(first)) else ""
    several = one.undoes if any(entry.change.undoes for entry in one.entries) else ()
    is_redo = first.call.operation == "redo"
    undoes = ""
    if target := short_id(first.call.undoes):
        undoes = f"redoes what {target} undid" if is_redo else f"undoes {target}"
    if several:
        word = "redoes" if is_redo else "undoes"
        undoes = f"{word} {format_count(len(several), 'change')}"
    undone = f"undone by {short_id(one.undone_by)}" if one.undone_by else "partly undone" if one.partly_undone else ""
    ended = f"exit {first.call.exit_code}" if first.call.argv and first.call.exit_code > 0 else ""
    return ", ".join(filter(None, (lines, mode, ended, undoes, undone)))


def mode_change(entry: "Entry") -> str:
    """Return the permission bits before and after; empty if they are the same."""
    one, other = (v.meta.mode if v and v.meta else None for v in (entry.change.before, entry.change.after))
    return "" if one is None or other is None or one == other else f"{one:04o} → {other:04o}"


def _print_change(
    context: CommandContext, args: argparse.Namespace, workspace: "Workspace | None", one: "ChangeView"
) -> None:
    out, first = context.out, one.entries[0]
    words = [
        out.paint(short_id(one.id), "yellow"),
        out.paint(out.format_time(first.timestamp), "dim"),
        reveal_text(author_name(first)),
        out.paint(first.call.operation, "cyan"),
        reveal_text(paths_text(one)),
        out.paint(f"({text})", "dim") if (text := reveal_text(_result_text(one))) else "",
        reveal_text(_purpose_text(one)),
    ]
    out.print_line("  ".join(word for word in words if word))
    if args.stat:
        for entry in shown_entries(one):
            path = reveal_text(format_move(entry.change.path, entry.change.to_path))
            out.print_line(f"    {path}  {format_line_counts(entry.change)}".rstrip())
    if workspace and args.patch:
        diff = workspace.history.diff(one.id) if first.ok else "".join(entry.change.diff for entry in one.entries)
        (paint_diff if out.is_terminal or out.colour else print_diff)(out, diff)
        out.print_line()
