"""Looking at the past: log, show, diff; and taking it back: undo, redo."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from surehold.errors import InvalidArgument, NotFound
from surehold.front.cli.command import Command, Context, as_path, person, short, with_action
from surehold.front.cli.diff_view import count, counted, hand_over, paint_diff
from surehold.front.cli.output import Cell, Column, moment, safe, size
from surehold.front.cli.receipts import print_receipt
from surehold.front.cli.records import entry_record

if TYPE_CHECKING:
    from surehold.stores.base import Change, Entry, Query
    from surehold.workspace.past import ChangeView, Past
    from surehold.workspace.workspace import Workspace

_PAGE = 500
_FULL_ID = 26

_LOG_COLUMNS = (
    Column(title="when", rank=2),
    Column(title="change"),
    Column(title="who", least=8, rank=3),
    Column(title="what", rank=1),
    Column(title="path", least=16, keep="end"),
    Column(title="result", least=20),
)


def _log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="only this file, or everything below this directory")
    parser.add_argument("--agent", metavar="A", default="", help="only what this agent or person did")
    parser.add_argument("--session", metavar="S", default="", help="only what happened in this session")
    parser.add_argument("--limit", metavar="N", type=_positive, default=20, help="how many to show (default: 20)")
    parser.add_argument("--all", action="store_true", help="show all of them")
    parser.add_argument("--failed", action="store_true", help="only what was refused")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _log(context: Context, args: argparse.Namespace) -> int:
    if not context.has_history():
        return _no_log(context)
    with context.look() as past:
        limit: int = 0 if args.all else args.limit
        entries, more = _listed(past, _query(context, past, args), limit, failed_only=args.failed)
        undone = {name: past.undone_by(name) for name in {e.change_id for e in entries if e.ok}}
    if context.json:
        rows = [entry_record(entry, undone_by=undone.get(entry.change_id, "")) for entry in entries]
        context.out.json({"entries": rows, "more": more})
    elif not entries:
        context.out.line("Nothing in the history matches that.")
        context.hint("All of it: surehold log --all")
    else:
        context.out.table(
            _LOG_COLUMNS, [_log_row(context, entry, undone.get(entry.change_id, "")) for entry in entries]
        )
        if more:
            context.hint("There is more: surehold log --all")
    return 0


def _no_log(context: Context) -> int:
    if context.json:
        context.out.json({"entries": [], "more": False})
        return 0
    context.out.line(f"Nothing has been changed through Surehold in {safe(os.path.realpath(context.root))} yet.")
    context.out.line(safe(context.elsewhere()) or "Try it: surehold edit PATH --old 'one text' --new 'another'")
    return 0


def _query(context: Context, past: "Past", args: argparse.Namespace) -> "Query":
    from surehold.stores.base import Query

    query = Query(agent=args.agent, session=args.session, limit=_PAGE)
    if not args.path:
        return query
    with context.open() as workspace:
        target = workspace.target(args.path.rstrip("/") or "/")
    if not target.parts:
        return query
    exact = replace(query, path=target.key)
    if not as_path(target.root, *target.parts).is_dir() and past.log(replace(exact, limit=1)):
        return exact
    return replace(query, under=target.key)


def _listed(past: "Past", query: "Query", limit: int, *, failed_only: bool) -> tuple[list["Entry"], bool]:
    """Return the newest entries, and whether there are more; 0 is no limit."""
    found = list["Entry"]()
    for entry in _entries(past, query):
        if failed_only and entry.ok:
            continue
        if limit and len(found) == limit:
            return found, True
        found.append(entry)
    return found, False


def _entries(past: "Past", query: "Query") -> Iterator["Entry"]:
    while rows := past.log(query):
        yield from rows
        query = replace(query, before_seq=rows[-1].seq)


def _log_row(context: Context, entry: "Entry", undone_by: str) -> list[Cell]:
    return [
        Cell(text=context.out.when(entry.timestamp), style="dim"),
        Cell(text=short(entry.change_id), style="yellow"),
        Cell(text=_who(entry)),
        Cell(text=entry.call.operation, style="cyan"),
        Cell(text=_place(entry)),
        Cell(text=_result(entry, undone_by), style="dim" if entry.ok else "red"),
    ]


def _who(entry: "Entry") -> str:
    call = entry.call
    if call.tool == call.operation or not call.tool:
        return call.agent or ("outside" if call.operation == "external" else "-")
    return f"{call.agent}/{call.tool}" if call.agent else call.tool


def _place(entry: "Entry") -> str:
    change = entry.change
    return f"{change.path} → {change.to_path}" if change.to_path else change.path


def _result(entry: "Entry", undone_by: str) -> str:
    if not entry.ok:
        return f"refused: {entry.error_kind}"
    lines = counted(*count(entry.change.diff)) + ("…" if entry.change.diff_truncated else "")
    of = f"of {short(entry.call.undoes)}" if entry.call.undoes else ""
    undone = f"undone by {short(undone_by)}" if undone_by else ""
    return ", ".join(filter(None, (lines, _mode_change(entry), undone, of)))


def _mode_change(entry: "Entry") -> str:
    """Say which permission bits changed; empty when they stayed."""
    one, other = (v.meta.mode if v and v.meta else None for v in (entry.change.before, entry.change.after))
    return "" if one is None or other is None or one == other else f"mode {one:04o} → {other:04o}"


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("change", metavar="CHANGE", help="a change id, or at least 4 letters of its beginning or end")


def _show(context: Context, args: argparse.Namespace) -> int:
    with context.open_past() as workspace:
        view = find(workspace, args.change)
        diff = workspace.history.diff(view.id)
    if context.json:
        entries = [entry_record(entry, undone_by=view.undone_by) for entry in view.entries]
        context.out.json({"change_id": view.id, "undone_by": view.undone_by or None, "entries": entries, "diff": diff})
        return 0
    for label, text in _facts(context, view):
        context.out.line(f"{context.out.paint(f'{label:<8}', 'dim')} {text}")
    if diff:
        context.out.line()
        paint_diff(context.out, diff)
    return 0


def _facts(context: Context, view: "ChangeView") -> Iterator[tuple[str, str]]:
    first, out = view.entries[0], context.out
    call = first.call
    yield "Change", out.paint(view.id, "yellow")
    exact = moment(first.timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    yield "When", f"{exact} ({out.when(first.timestamp)})" if out.is_terminal else exact
    yield "Who", safe(_who(first)) + (f", session {safe(call.session)}" if call.session else "")
    if call.reason:
        yield "Why", safe(call.reason)
    if call.undoes:
        yield "Undoes", safe(call.undoes)
    for entry in view.entries:
        change = entry.change
        yield "What", f"{out.paint(call.operation, 'cyan')} {safe(_place(entry))}{_sizes(change)}"
        if change.before != change.after:
            yield "Before", change.before.sha256 if change.before else "nothing there"
            yield "After", change.after.sha256 if change.after else "nothing there"
        if mode := _mode_change(entry):
            yield "Mode", mode.removeprefix("mode ")
        if change.trash_id:
            yield "Trash", change.trash_id
    yield "Outcome", _outcome(context, view)


def _sizes(change: "Change") -> str:
    before, after = change.before, change.after
    if before and after and before != after:
        return f" ({size(before.size)} → {size(after.size)})"
    version = after or before
    return f" ({size(version.size)})" if version else ""


def _outcome(context: Context, view: "ChangeView") -> str:
    failed = next((entry for entry in view.entries if not entry.ok), None)
    if failed:
        return f"{context.out.paint('refused', 'red')}: {failed.error_kind}. {safe(failed.message)}"
    if view.undone_by:
        return f"undone by {view.undone_by}"
    return "done; it stands"


def find(workspace: "Workspace", reference: str) -> "ChangeView":
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


def _diff(context: Context, args: argparse.Namespace) -> int:
    with context.open_past() as workspace:
        path = _recorded_path(workspace, args.subject or "")
        if path:
            return _diff_of_file(context, workspace, path)
        view = find(workspace, args.subject) if args.subject else _newest(workspace)
        diff = workspace.history.diff(view.id)
    if context.json:
        context.out.json({"change_id": view.id, "diff": diff})
    elif diff:
        hand_over(context.out, diff)
    else:
        context.out.line(f"Change {short(view.id)} changed no bytes.")
    return 0


def _recorded_path(workspace: "Workspace", subject: str) -> str:
    """Return the key of a file that is meant rather than a change; empty when a change is."""
    if not subject or (len(subject) == _FULL_ID and subject.isalnum()):
        return ""
    target = workspace.target(subject)
    known = workspace.store.head(target.key) is not None
    return target.key if known or os.path.lexists(as_path(target.root, *target.parts)) else ""


def _diff_of_file(context: Context, workspace: "Workspace", path: str) -> int:
    from surehold.text.plan_diff import diff_between
    from surehold.text.snapshot import ABSENT, Snapshot

    head = workspace.store.head(path)
    if head is None:
        raise NotFound(
            f"`{path}` is not in the history.",
            path=path,
            reason="no_history",
            action="Surehold remembers a file from its first change on.",
        )
    before = Snapshot(workspace.store.blob(head.version.sha256)) if head.version else ABSENT
    try:
        after = workspace.read(path)
    except NotFound:
        after = ABSENT
    diff = diff_between(before, after, from_name=path, to_name=path).text
    if context.json:
        context.out.json({"path": path, "before_sha256": before.sha256, "after_sha256": after.sha256, "diff": diff})
    elif before == after:
        context.out.line(f"{safe(path)} is as the last change in the history left it.")
    else:
        hand_over(context.out, diff)
    return 0


def _newest(workspace: "Workspace") -> "ChangeView":
    from surehold.stores.base import Query

    newest = workspace.history.log(Query(ok_only=True, limit=1))
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


def _undo(context: Context, args: argparse.Namespace) -> int:
    with context.open_past() as workspace:
        reference = find(workspace, args.change).id if args.change else ""
        receipt = workspace.history.undo(reference, agent=person(), dry_run=args.dry_run)
    return print_receipt(context, receipt, "Undone")


def _redo(context: Context, args: argparse.Namespace) -> int:
    with context.open_past() as workspace:
        reference = find(workspace, args.change).id if args.change else ""
        receipt = workspace.history.redo(reference, agent=person(), dry_run=args.dry_run)
    return print_receipt(context, receipt, "Redone")


HISTORY_COMMANDS = (
    Command(
        name="log",
        group="Look",
        help="List what was changed and what was refused, newest first.",
        example="surehold log src --agent claude --limit 50",
        add_arguments=_log_arguments,
        run=_log,
    ),
    Command(
        name="show",
        group="Look",
        help="Show one change: who, when, why, and its diff.",
        example="surehold show 7k2m9qxr",
        add_arguments=_show_arguments,
        run=_show,
    ),
    Command(
        name="diff",
        group="Look",
        help="Show what a change did, or what happened to a file since.",
        example="surehold diff src/app.py",
        add_arguments=_diff_arguments,
        run=_diff,
    ),
    Command(
        name="undo",
        group="Take back",
        help="Take back one change; later changes stay.",
        example="surehold undo 7k2m9qxr --dry-run",
        add_arguments=_undo_arguments,
        run=_undo,
    ),
    Command(
        name="redo",
        group="Take back",
        help="Make a change again that was undone.",
        example="surehold redo",
        add_arguments=_redo_arguments,
        run=_redo,
    ),
)
