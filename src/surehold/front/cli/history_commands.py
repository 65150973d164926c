"""Commands on the history: log, show, diff, undo, redo."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from surehold.errors import InvalidArgument, NotFound
from surehold.front.cli.change_view import format_line_counts, paint_diff, print_diff, print_receipt
from surehold.front.cli.command import Command, CommandContext, as_path, person_name, short_id, with_action
from surehold.front.cli.output import TableCell, TableColumn, escape_text, format_size, parse_timestamp
from surehold.front.shared.diff_rows import count_changed_lines
from surehold.front.shared.ledger_json import entry_record

if TYPE_CHECKING:
    from surehold.stores.base import Change, Entry, LedgerQuery
    from surehold.workspace.history import ChangeView, HistoryReader
    from surehold.workspace.workspace import Workspace

_PAGE_ENTRIES = 500
_FULL_ID_CHARS = 26

_LOG_COLUMNS = (
    TableColumn(title="when", rank=2),
    TableColumn(title="change"),
    TableColumn(title="who", least=8, rank=3),
    TableColumn(title="what", rank=1),
    TableColumn(title="path", least=16, keep="end"),
    TableColumn(title="result", least=20),
)


def _log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="only this file, or everything below this directory")
    parser.add_argument("--agent", metavar="A", default="", help="only what this agent or person did")
    parser.add_argument("--session", metavar="S", default="", help="only what happened in this session")
    parser.add_argument(
        "--limit", metavar="N", type=_positive_integer, default=20, help="how many to show (default: 20)"
    )
    parser.add_argument("--all", action="store_true", help="show all of them")
    parser.add_argument("--failed", action="store_true", help="only what was refused")


def _positive_integer(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _run_log(context: CommandContext, args: argparse.Namespace) -> int:
    if not context.has_history():
        return _print_empty_log(context)
    with context.open_history() as past:
        limit: int = 0 if args.all else args.limit
        entries, more = _newest_entries(past, _build_query(context, past, args), limit, failed_only=args.failed)
        undone = {name: past.undone_by(name) for name in {e.change_id for e in entries if e.ok}}
    if context.json:
        rows = [entry_record(entry, undone_by=undone.get(entry.change_id, "")) for entry in entries]
        context.out.print_json({"entries": rows, "more": more})
    elif not entries:
        context.out.print_line("Nothing in the history matches that.")
        context.print_hint("All of it: surehold log --all")
    else:
        context.out.print_table(
            _LOG_COLUMNS, [_log_row(context, entry, undone.get(entry.change_id, "")) for entry in entries]
        )
        if more:
            context.print_hint("There is more: surehold log --all")
    return 0


def _print_empty_log(context: CommandContext) -> int:
    if context.json:
        context.out.print_json({"entries": [], "more": False})
        return 0
    context.out.print_line(
        f"Nothing has been changed through Surehold in {escape_text(os.path.realpath(context.root))} yet."
    )
    context.out.print_line(
        escape_text(context.parent_history_hint()) or "Try it: surehold edit PATH --old 'one text' --new 'another'"
    )
    return 0


def _build_query(context: CommandContext, past: "HistoryReader", args: argparse.Namespace) -> "LedgerQuery":
    from surehold.stores.base import LedgerQuery

    query = LedgerQuery(agent=args.agent, session=args.session, limit=_PAGE_ENTRIES)
    if not args.path:
        return query
    with context.open_workspace() as workspace:
        target = workspace.target(args.path.rstrip("/") or "/")
    if not target.parts:
        return query
    exact = replace(query, path=target.key)
    if not as_path(target.root, *target.parts).is_dir() and past.log(replace(exact, limit=1)):
        return exact
    return replace(query, under=target.key)


def _newest_entries(
    past: "HistoryReader", query: "LedgerQuery", limit: int, *, failed_only: bool
) -> tuple[list["Entry"], bool]:
    """Return the newest entries, and whether there are more; 0 is no limit."""
    found = list["Entry"]()
    for entry in _iterate_entries(past, query):
        if failed_only and entry.ok:
            continue
        if limit and len(found) == limit:
            return found, True
        found.append(entry)
    return found, False


def _iterate_entries(past: "HistoryReader", query: "LedgerQuery") -> Iterator["Entry"]:
    while rows := past.log(query):
        yield from rows
        query = replace(query, before_seq=rows[-1].seq)


def _log_row(context: CommandContext, entry: "Entry", undone_by: str) -> list[TableCell]:
    return [
        TableCell(text=context.out.format_time(entry.timestamp), style="dim"),
        TableCell(text=short_id(entry.change_id), style="yellow"),
        TableCell(text=_author_name(entry)),
        TableCell(text=entry.call.operation, style="cyan"),
        TableCell(text=_changed_path(entry)),
        TableCell(text=_result_text(entry, undone_by), style="dim" if entry.ok else "red"),
    ]


def _author_name(entry: "Entry") -> str:
    call = entry.call
    if call.tool == call.operation or not call.tool:
        return call.agent or ("outside" if call.operation == "external" else "-")
    return f"{call.agent}/{call.tool}" if call.agent else call.tool


def _changed_path(entry: "Entry") -> str:
    change = entry.change
    return f"{change.path} → {change.to_path}" if change.to_path else change.path


def _result_text(entry: "Entry", undone_by: str) -> str:
    if not entry.ok:
        return f"refused: {entry.error_kind}"
    lines = format_line_counts(*count_changed_lines(entry.change.diff)) + ("…" if entry.change.diff_truncated else "")
    of = f"of {short_id(entry.call.undoes)}" if entry.call.undoes else ""
    undone = f"undone by {short_id(undone_by)}" if undone_by else ""
    return ", ".join(filter(None, (lines, _mode_change(entry), undone, of)))


def _mode_change(entry: "Entry") -> str:
    """Say which permission bits changed; empty when they stayed."""
    one, other = (v.meta.mode if v and v.meta else None for v in (entry.change.before, entry.change.after))
    return "" if one is None or other is None or one == other else f"mode {one:04o} → {other:04o}"


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("change", metavar="CHANGE", help="a change id, or at least 4 letters of its beginning or end")


def _run_show(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_recorded_workspace() as workspace:
        view = find_change(workspace, args.change)
        diff = workspace.history.diff(view.id)
    if context.json:
        entries = [entry_record(entry, undone_by=view.undone_by) for entry in view.entries]
        context.out.print_json(
            {"change_id": view.id, "undone_by": view.undone_by or None, "entries": entries, "diff": diff}
        )
        return 0
    for label, text in _change_facts(context, view):
        context.out.print_line(f"{context.out.paint(f'{label:<8}', 'dim')} {text}")
    if diff:
        context.out.print_line()
        paint_diff(context.out, diff)
    return 0


def _change_facts(context: CommandContext, view: "ChangeView") -> Iterator[tuple[str, str]]:
    first, out = view.entries[0], context.out
    call = first.call
    yield "Change", out.paint(view.id, "yellow")
    exact = parse_timestamp(first.timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    yield "When", f"{exact} ({out.format_time(first.timestamp)})" if out.is_terminal else exact
    yield "Who", escape_text(_author_name(first)) + (f", session {escape_text(call.session)}" if call.session else "")
    if call.reason:
        yield "Why", escape_text(call.reason)
    if call.undoes:
        yield "Undoes", escape_text(call.undoes)
    for entry in view.entries:
        change = entry.change
        yield "What", f"{out.paint(call.operation, 'cyan')} {escape_text(_changed_path(entry))}{_size_text(change)}"
        if change.before != change.after:
            yield "Before", change.before.sha256 if change.before else "nothing there"
            yield "After", change.after.sha256 if change.after else "nothing there"
        if mode := _mode_change(entry):
            yield "Mode", mode.removeprefix("mode ")
        if change.trash_id:
            yield "Trash", change.trash_id
    yield "Outcome", _outcome_text(context, view)


def _size_text(change: "Change") -> str:
    before, after = change.before, change.after
    if before and after and before != after:
        return f" ({format_size(before.size)} → {format_size(after.size)})"
    version = after or before
    return f" ({format_size(version.size)})" if version else ""


def _outcome_text(context: CommandContext, view: "ChangeView") -> str:
    failed = next((entry for entry in view.entries if not entry.ok), None)
    if failed:
        return f"{context.out.paint('refused', 'red')}: {failed.error_kind}. {escape_text(failed.message)}"
    if view.undone_by:
        return f"undone by {view.undone_by}"
    return "done; it stands"


def find_change(workspace: "Workspace", reference: str) -> "ChangeView":
    """Return a change, or say which ones could be meant."""
    try:
        return workspace.history.show(reference)
    except InvalidArgument as error:
        names = error.details.get("candidates")
        if not names:
            raise
        raise with_action(error, f"Give more letters; it could be {', '.join(names)}.") from None


def _diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "subject",
        nargs="?",
        metavar="CHANGE|PATH",
        help="a change: what it did; a file: what happened to it since the last change in the history (default: the newest change)",
    )


def _run_diff(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_recorded_workspace() as workspace:
        path = _recorded_path(workspace, args.subject or "")
        if path:
            return _diff_of_file(context, workspace, path)
        view = find_change(workspace, args.subject) if args.subject else _newest_change(workspace)
        diff = workspace.history.diff(view.id)
    if context.json:
        context.out.print_json({"change_id": view.id, "diff": diff})
    elif diff:
        print_diff(context.out, diff)
    else:
        context.out.print_line(f"Change {short_id(view.id)} changed no bytes.")
    return 0


def _recorded_path(workspace: "Workspace", subject: str) -> str:
    """Return the key of a file that is meant rather than a change; empty when a change is."""
    if not subject or (len(subject) == _FULL_ID_CHARS and subject.isalnum()):
        return ""
    target = workspace.target(subject)
    known = workspace.store.head_of(target.key) is not None
    return target.key if known or os.path.lexists(as_path(target.root, *target.parts)) else ""


def _diff_of_file(context: CommandContext, workspace: "Workspace", path: str) -> int:
    from surehold.text.plan_diff import diff_between
    from surehold.text.snapshot import ABSENT, Snapshot

    head = workspace.store.head_of(path)
    if head is None:
        raise NotFound(
            f"`{path}` is not in the history.",
            path=path,
            reason="no_history",
            action="Surehold remembers a file from its first change on.",
        )
    before = Snapshot(workspace.store.read_blob(head.version.sha256)) if head.version else ABSENT
    try:
        after = workspace.read(path)
    except NotFound:
        after = ABSENT
    diff = diff_between(before, after, from_name=path, to_name=path).text
    if context.json:
        context.out.print_json(
            {"path": path, "before_sha256": before.sha256, "after_sha256": after.sha256, "diff": diff}
        )
    elif before == after:
        context.out.print_line(f"{escape_text(path)} is as the last change in the history left it.")
    else:
        print_diff(context.out, diff)
    return 0


def _newest_change(workspace: "Workspace") -> "ChangeView":
    from surehold.stores.base import LedgerQuery

    newest = workspace.history.log(LedgerQuery(ok_only=True, limit=1))
    if not newest:
        raise NotFound(
            "The history has no change that happened.", reason="no_such_change", action="Look at `surehold log`."
        )
    return workspace.history.show(newest[0].change_id)


def _undo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("change", nargs="?", default="", metavar="CHANGE", help="default: the newest that stands")
    parser.add_argument("--dry-run", action="store_true", help="show what would happen, and change nothing")


def _redo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("change", nargs="?", default="", metavar="CHANGE", help="default: the one undone last")
    parser.add_argument("--dry-run", action="store_true", help="show what would happen, and change nothing")


def _run_undo(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_recorded_workspace() as workspace:
        reference = find_change(workspace, args.change).id if args.change else ""
        receipt = workspace.history.undo(reference, agent=person_name(), dry_run=args.dry_run)
    return print_receipt(context, receipt, "Undone")


def _run_redo(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_recorded_workspace() as workspace:
        reference = find_change(workspace, args.change).id if args.change else ""
        receipt = workspace.history.redo(reference, agent=person_name(), dry_run=args.dry_run)
    return print_receipt(context, receipt, "Redone")


HISTORY_COMMANDS = (
    Command(
        name="log",
        group="Look",
        help="List what was changed and what was refused, newest first.",
        example="surehold log src --agent claude --limit 50",
        add_arguments=_log_arguments,
        run=_run_log,
    ),
    Command(
        name="show",
        group="Look",
        help="Show one change: who, when, why, and its diff.",
        example="surehold show 7k2m9qxr",
        add_arguments=_show_arguments,
        run=_run_show,
    ),
    Command(
        name="diff",
        group="Look",
        help="Show what a change did, or what happened to a file since.",
        example="surehold diff src/app.py",
        add_arguments=_diff_arguments,
        run=_run_diff,
    ),
    Command(
        name="undo",
        group="Take back",
        help="Take back one change; later changes stay.",
        example="surehold undo 7k2m9qxr --dry-run",
        add_arguments=_undo_arguments,
        run=_run_undo,
    ),
    Command(
        name="redo",
        group="Take back",
        help="Make a change again that was undone.",
        example="surehold redo",
        add_arguments=_redo_arguments,
        run=_run_redo,
    ),
)
