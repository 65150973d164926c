"""Commands on the history: log, show, diff, undo, redo."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from surehold.errors import InvalidArgument, NotFound
from surehold.front.cli.change_view import format_line_counts, paint_diff, print_diff, print_receipt
from surehold.front.cli.command import (
    DRY_RUN_FLAG,
    Command,
    CommandContext,
    argument,
    as_path,
    command,
    flag,
    parse_positive,
    short_id,
    with_action,
)
from surehold.front.cli.output import TableCell, TableColumn, format_size, parse_timestamp
from surehold.front.shared.ledger_json import describe_approval, entry_record, format_move
from surehold.text.escape import escape_text

if TYPE_CHECKING:
    from surehold.stores.base import Change, Entry, LedgerQuery
    from surehold.workspace.history import ChangeView, HistoryReader
    from surehold.workspace.workspace import Workspace

_PAGE_ENTRIES = 500
_FULL_ID_CHARS = 26
_DIFF_SUBJECT_HELP = (
    "a change: what it did; a file: how it differs from the last recorded change (default: the newest change)"
)

_LOG_COLUMNS = (
    TableColumn(title="when", rank=2),
    TableColumn(title="change"),
    TableColumn(title="who", least=8, rank=3),
    TableColumn(title="what", rank=1),
    TableColumn(title="path", least=16, keep="end"),
    TableColumn(title="result", least=20),
)


@command(
    "log",
    "List changes and refused calls, newest first.",
    argument("path", "PATH", "only this file, or everything below this directory", nargs="?"),
    argument("--agent", "A", "only what this agent or person did"),
    argument("--session", "S", "only what happened in this session"),
    argument("--limit", "N", "how many to show (default: 20)", type=parse_positive, default=20),
    flag("--all", "show all of them"),
    flag("--failed", "only what was refused"),
    example="surehold log src --agent claude --limit 50",
)
def log_command(context: CommandContext, args: argparse.Namespace) -> None:
    if not context.has_history():
        _print_empty_log(context)
        return
    with context.open_history() as past:
        found = _iterate_entries(past, _build_query(context, past, args), failed_only=args.failed)
        entries = list(islice(found, None if args.all else args.limit))
        more = next(found, None) is not None
        undone = {name: past.undone_by(name) for name in {e.change_id for e in entries if e.ok}}
    if context.json:
        records = [entry_record(entry, undone_by=undone.get(entry.change_id, "")) for entry in entries]
        context.out.print_json({"entries": records, "more": more})
    elif not entries:
        context.out.print_line("No entry of the history matches.")
        context.print_hint("To list everything: surehold log --all")
    else:
        rows = [_log_row(context, entry, undone.get(entry.change_id, "")) for entry in entries]
        context.out.print_table(_LOG_COLUMNS, rows)
        if more:
            context.print_hint("There is more: surehold log --all")


def _print_empty_log(context: CommandContext) -> None:
    root = escape_text(os.path.realpath(context.root))
    context.print_outcome(f"Nothing has been changed through Surehold in {root} yet.", entries=[], more=False)
    if not context.json:
        context.out.print_line("Try it: surehold edit PATH --old 'one text' --new 'another'")


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


def _iterate_entries(past: "HistoryReader", query: "LedgerQuery", *, failed_only: bool) -> Iterator["Entry"]:
    while rows := past.log(query):
        yield from (entry for entry in rows if not (failed_only and entry.ok))
        query = replace(query, before_seq=rows[-1].seq)


def _log_row(context: CommandContext, entry: "Entry", undone_by: str) -> list[TableCell]:
    return [
        (context.out.format_time(entry.timestamp), "dim"),
        (short_id(entry.change_id), "yellow"),
        (_author_name(entry), "plain"),
        (entry.call.operation, "cyan"),
        (format_move(entry.change.path, entry.change.to_path), "plain"),
        (_result_text(entry, undone_by), "dim" if entry.ok else "red"),
    ]


def _author_name(entry: "Entry") -> str:
    call = entry.call
    if call.tool == call.operation or not call.tool:
        return call.agent or ("outside" if call.operation == "external" else "-")
    return f"{call.agent}/{call.tool}" if call.agent else call.tool


def _result_text(entry: "Entry", undone_by: str) -> str:
    if not entry.ok:
        return f"refused: {entry.error_kind}"
    lines = format_line_counts(entry.change)
    mode = f"mode {bits}" if (bits := _mode_change(entry)) else ""
    undoes = f"undoes {short_id(entry.call.undoes)}" if entry.call.undoes else ""
    undone = f"undone by {short_id(undone_by)}" if undone_by else ""
    return ", ".join(filter(None, (lines, mode, undoes, undone)))


def _mode_change(entry: "Entry") -> str:
    """Return the permission bits before and after; empty if they are the same."""
    one, other = (v.meta.mode if v and v.meta else None for v in (entry.change.before, entry.change.after))
    return "" if one is None or other is None or one == other else f"{one:04o} → {other:04o}"


@command(
    "show",
    "Show one change: who, when, why, and its diff.",
    argument("change", "CHANGE", "a change id, or at least 4 characters of its beginning or end"),
    example="surehold show 7k2m9qxr",
)
def show_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_recorded_workspace() as workspace:
        view = _find_change(workspace, args.change)
        diff, proposed = workspace.history.diff(view.id), workspace.history.proposed_diff(view.id)
    if context.json:
        entries = [entry_record(entry, undone_by=view.undone_by) for entry in view.entries]
        facts = {"change_id": view.id, "undone_by": view.undone_by or None}
        other = {"proposed_diff": proposed} if proposed else {}
        context.out.print_json({**facts, "entries": entries, "diff": diff, **other})
        return
    for label, text in _change_facts(context, view):
        context.out.print_line(f"{context.out.paint(f'{label:<8}', 'dim')} {text}")
    if diff:
        context.out.print_line()
        paint_diff(context.out, diff)
    if proposed:
        context.out.print_line("\nThe agent had proposed:")
        paint_diff(context.out, proposed)


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
        path = escape_text(format_move(change.path, change.to_path))
        yield "What", f"{out.paint(call.operation, 'cyan')} {path}{_size_text(change)}"
        if change.before != change.after:
            yield "Before", change.before.sha256 if change.before else "(no file)"
            yield "After", change.after.sha256 if change.after else "(no file)"
        if mode := _mode_change(entry):
            yield "Mode", mode
        if change.trash_id:
            yield "Trash", change.trash_id
    for label, text in {
        key: value for entry in view.entries for key, value in describe_approval(entry).items()
    }.items():
        yield label, escape_text(text)
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
    return f"undone by {view.undone_by}" if view.undone_by else "applied"


def _find_change(workspace: "Workspace", reference: str) -> "ChangeView":
    """Return a change; an ambiguous reference is refused with the candidates."""
    try:
        return workspace.history.show(reference)
    except InvalidArgument as error:
        names = error.details.get("candidates")
        if not names:
            raise
        raise with_action(error, f"Use more characters; it could be {', '.join(names)}.") from None


@command(
    "diff",
    "Show what a change did, or how a file differs from its last change.",
    argument("subject", "CHANGE|PATH", _DIFF_SUBJECT_HELP, nargs="?"),
    example="surehold diff src/app.py",
)
def diff_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_recorded_workspace() as workspace:
        path = _recorded_path(workspace, args.subject or "")
        if path:
            _diff_of_file(context, workspace, path)
            return
        view = _find_change(workspace, args.subject) if args.subject else _newest_change(workspace)
        diff = workspace.history.diff(view.id)
    if context.json:
        context.out.print_json({"change_id": view.id, "diff": diff})
    elif diff:
        print_diff(context.out, diff)
    else:
        context.out.print_line(f"Change {short_id(view.id)} did not change any content.")


def _recorded_path(workspace: "Workspace", subject: str) -> str:
    """Return the key of a file if the subject is one; empty if it can only be a change."""
    if not subject or (len(subject) == _FULL_ID_CHARS and subject.isalnum()):
        return ""
    target = workspace.target(subject)
    known = workspace.history.last_recorded(target.key) is not None
    return target.key if known or os.path.lexists(as_path(target.root, *target.parts)) else ""


def _diff_of_file(context: CommandContext, workspace: "Workspace", path: str) -> None:
    from surehold.text.plan import diff_between
    from surehold.text.snapshot import ABSENT

    before = workspace.history.last_recorded(path)
    if before is None:
        action = "A file is in the history from its first change through Surehold on."
        raise NotFound(f"`{path}` is not in the history.", path=path, reason="no_history", action=action)
    try:
        after = workspace.read(path)
    except NotFound:
        after = ABSENT
    diff = diff_between(before, after, from_name=path, to_name=path).text
    if context.json:
        versions = {"before_sha256": before.sha256, "after_sha256": after.sha256}
        context.out.print_json({"path": path, **versions, "diff": diff})
    elif before == after:
        context.out.print_line(f"{escape_text(path)} is unchanged since its last recorded change.")
    else:
        print_diff(context.out, diff)


def _newest_change(workspace: "Workspace") -> "ChangeView":
    from surehold.stores.base import LedgerQuery

    newest = workspace.history.log(LedgerQuery(ok_only=True, limit=1))
    if not newest:
        message = "The history has no change that was applied."
        raise NotFound(message, reason="no_such_change", action="Look at `surehold log`.")
    return workspace.history.show(newest[0].change_id)


def _reversal_command(name: Literal["undo", "redo"], sentence: str, default: str, example: str) -> Command:
    reference = argument("change", "CHANGE", f"default: {default}", nargs="?", default="")

    @command(name, sentence, reference, DRY_RUN_FLAG, example=example)
    def run_reversal(context: CommandContext, args: argparse.Namespace) -> None:
        with context.open_recorded_workspace() as workspace:
            act = workspace.history.undo if name == "undo" else workspace.history.redo
            change_id = _find_change(workspace, args.change).id if args.change else ""
            receipt = act(change_id, author=context.author, dry_run=args.dry_run)
        print_receipt(context, receipt, "Undone" if name == "undo" else "Redone")

    return run_reversal


undo_command = _reversal_command(
    "undo",
    "Undo one change; later changes stay.",
    "the newest change that is not undone",
    "surehold undo 7k2m9qxr --dry-run",
)
redo_command = _reversal_command(
    "redo", "Redo a change that was undone.", "the change that was undone last", "surehold redo"
)
