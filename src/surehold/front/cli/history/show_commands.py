"""`surehold show` and `surehold diff`: what changes did."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from surehold.errors import NotFound
from surehold.front.cli.change_view import paint_diff, print_diff
from surehold.front.cli.command import CommandContext, argument, command, flag, short_id
from surehold.front.cli.history.log_command import author_name, mode_change
from surehold.front.cli.history.progress import ProgressLine
from surehold.front.cli.history.selector_options import (
    SELECTOR_OPTIONS,
    SUBJECTS_ARGUMENT,
    find_change,
    recorded_path,
    selected_entries,
)
from surehold.front.cli.output import format_size, parse_timestamp
from surehold.front.shared.ledger_json import (
    describe_approval,
    entry_record,
    format_command,
    format_move,
    known_exit_code,
)
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.stores.base import Call, Change
    from surehold.workspace.past.net_diff import FileNetDiff
    from surehold.workspace.undo.switch_board import ChangeView
    from surehold.workspace.workspace import Workspace


@command(
    "show",
    "Show one change: who, when, why, and its diff.",
    argument("change", "CHANGE", "a change id, or at least 4 characters of its beginning or end"),
    is_paged=True,
    example="surehold show 7k2m9qxr",
)
def show_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_recorded_workspace() as workspace:
        view = find_change(workspace, args.change)
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
    yield "Who", reveal_text(author_name(first)) + (f", session {reveal_text(call.session)}" if call.session else "")
    yield from _call_facts(call)
    for entry in view.entries:
        change = entry.change
        if change.sets_times_only:
            continue
        path = reveal_text(format_move(change.path, change.to_path))
        yield "What", f"{out.paint(call.operation, 'cyan')} {path}{_size_text(change)}"
        if change.before != change.after:
            yield "Before", change.before.sha256 if change.before else "(no file)"
            yield "After", change.after.sha256 if change.after else "(no file)"
        if mode := mode_change(entry):
            yield "Mode", mode
        if change.trash_id:
            yield "Trash", change.trash_id
    for label, text in {
        key: value for entry in view.entries for key, value in describe_approval(entry).items()
    }.items():
        yield label, reveal_text(text)
    yield "Outcome", _outcome_text(context, view)


def _call_facts(call: "Call") -> Iterator[tuple[str, str]]:
    if call.turn:
        yield "Turn", reveal_text(call.turn)
    if call.reason:
        yield "Why", reveal_text(call.reason)
    if call.undoes:
        yield "Redoes" if call.operation == "redo" else "Undoes", _undone_text(call)
    if call.argv:
        code = known_exit_code(call)
        yield "Command", reveal_text(format_command(call))
        yield "Exit", "unknown: its supervisor was killed" if code is None else str(code)


def _undone_text(call: "Call") -> str:
    undone = reveal_text(call.undoes)
    return f"what {undone} undid" if call.operation == "redo" else undone


def _size_text(change: "Change") -> str:
    before, after = change.before, change.after
    if before and after and before != after:
        return f" ({format_size(before.size)} → {format_size(after.size)})"
    version = after or before
    return f" ({format_size(version.size)})" if version else ""


def _outcome_text(context: CommandContext, view: "ChangeView") -> str:
    failed = next((entry for entry in view.entries if not entry.ok), None)
    if failed:
        return f"{context.out.paint('refused', 'red')}: {failed.error_kind}. {reveal_text(failed.message)}"
    return f"undone by {view.undone_by}" if view.undone_by else "applied"


@command(
    "diff",
    "Show what changes did, or how a file differs from its last change.",
    SUBJECTS_ARGUMENT,
    *SELECTOR_OPTIONS,
    flag("--stat", "list the files only"),
    note="Without arguments: the newest change. With selectors: everything that they name, as one difference.",
    is_paged=True,
    example="surehold diff --session last\n  surehold diff src/app.py",
)
def diff_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_recorded_workspace() as workspace:
        if any((args.session, args.agent, args.turn, args.since, args.until)):
            _net_diff(context, workspace, args)
            return
        if len(args.subject) > 1:
            _diff_of_files(context, workspace, args.subject)
            return
        subject = args.subject[0] if args.subject else ""
        if recorded_path(workspace, subject):
            _diff_of_files(context, workspace, [subject])
            return
        view = _change_or_file(workspace, subject) if subject else _newest_change(workspace)
        diff = workspace.history.diff(view.id)
    if context.json:
        context.out.print_json({"change_id": view.id, "diff": diff})
    elif diff:
        print_diff(context.out, diff)
    else:
        context.out.print_line(f"Change {short_id(view.id)} did not change any content.")


def _net_diff(context: CommandContext, workspace: "Workspace", args: argparse.Namespace) -> None:
    from surehold.workspace.past.net_diff import net_diff

    with ProgressLine(context.err, "Comparing"):
        files = net_diff(workspace, selected_entries(workspace, args))
    if context.json:
        records = [
            {
                "path": one.key,
                "to_path": one.to_key or None,
                "added": one.added,
                "removed": one.removed,
                "conflict": one.conflict or None,
                "facts": list(one.facts),
                "diff": one.diff,
            }
            for one in files
        ]
        context.out.print_json({"files": records, "diff": "".join(one.diff for one in files)})
        return
    for one in files:
        counts = " ".join(f"{sign}{n}" for sign, n in (("+", one.added), ("-", one.removed)) if n)
        name = reveal_text(format_move(one.key, one.to_key))
        if args.stat:
            context.out.print_line(f"{name}  {', '.join((*map(reveal_text, one.facts), counts))}".rstrip(", "))
        if one.conflict:
            context.print_note(f"{one.key}: not one difference, but each change by itself, since {one.conflict}.")
        if args.stat:
            continue
        for fact in one.facts:
            context.out.print_line(f"{name}: {reveal_text(fact)}")
        if one.diff:
            print_diff(context.out, one.diff)
        elif not one.facts:
            context.print_note(f"{format_move(one.key, one.to_key)}: the content is the same.")
    if not files:
        context.print_note("Nothing of what was selected is in effect.")


def _diff_of_files(context: CommandContext, workspace: "Workspace", words: list[str]) -> None:
    """Print how files, and everything recorded below directories, differ from what was last recorded."""
    from surehold.workspace.past.recorded import recorded_keys
    from surehold.workspace.past.versions import diff_since_recorded

    keys = list(dict.fromkeys(key for word in words for key in recorded_keys(workspace, word)))
    found = [diff_since_recorded(workspace, key) for key in keys]
    if context.json and len(words) == 1 and len(found) == 1:
        context.out.print_json(_since_record(found[0]))
        return
    if context.json:
        records = [_since_record(one) for one in found]
        context.out.print_json({"files": records, "diff": "".join(one.diff for one in found)})
        return
    changed = [one for one in found if one.diff or one.facts]
    for one in changed:
        for fact in one.facts:
            context.out.print_line(f"{reveal_text(one.key)}: {reveal_text(fact)}")
        if one.diff:
            print_diff(context.out, one.diff)
    for word in words if not changed else ():
        context.out.print_line(f"{reveal_text(word)} is unchanged since its last recorded change.")


def _since_record(one: "FileNetDiff") -> dict[str, object]:
    versions = {"before_sha256": one.before.sha256, "after_sha256": one.after.sha256}
    return {"path": one.key, **versions, "facts": list(one.facts), "diff": one.diff}


def _change_or_file(workspace: "Workspace", subject: str) -> "ChangeView":
    try:
        return find_change(workspace, subject)
    except NotFound as error:
        if error.reason != "no_such_change":
            raise
        message = f"Neither a change nor a file in the history is called `{subject}`."
        raise NotFound(message, reason=error.reason, action=error.action) from None


def _newest_change(workspace: "Workspace") -> "ChangeView":
    from surehold.stores.base import LedgerQuery

    newest = workspace.history.log(LedgerQuery(ok_only=True, limit=1))
    if not newest:
        message = "The history has no change that was applied."
        raise NotFound(message, reason="no_such_change", action="Look at `surehold log`.")
    return workspace.history.show(newest[0].change_id)
