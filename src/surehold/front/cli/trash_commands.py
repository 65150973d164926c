"""Commands on deleted files: trash list, trash restore, trash empty, restore."""

import argparse
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from surehold.errors import AlreadyExists, InvalidArgument, SureholdError
from surehold.front.cli.change_view import print_receipt
from surehold.front.cli.command import (
    CommandContext,
    argument,
    command,
    flag,
    parse_name,
    parse_positive,
    short_id,
    with_action,
)
from surehold.front.cli.output import TableColumn, format_count, format_size
from surehold.front.shared.ledger_json import trash_record
from surehold.stores.upkeep import TrashQuery

if TYPE_CHECKING:
    from surehold.workspace.workspace import Workspace

_TRASH_COLUMNS = (
    TableColumn(title="deleted", rank=1),
    TableColumn(title="id"),
    TableColumn(title="who", least=8, rank=2),
    TableColumn(title="size", align="right", rank=3),
    TableColumn(title="path", least=16, keep="end"),
)


@command(
    "list",
    "List deleted files, newest first (the default).",
    argument("--limit", "N", "how many to show (default: 100)", type=parse_positive, default=100),
    argument("--after", "ID", "go on after this one, the last of an earlier list", default=""),
    example="surehold trash list",
)
def list_trash_command(context: CommandContext, args: argparse.Namespace) -> None:
    if not context.has_history():
        context.print_outcome("The trash is empty.", items=[], more=False)
        return
    with context.open_workspace() as workspace:
        found = workspace.history.trash(TrashQuery(after=args.after, limit=args.limit + 1))
    items, more = found[: args.limit], len(found) > args.limit
    if context.json or not items:
        sentence = "There are no more." if args.after else "The trash is empty."
        context.print_outcome(sentence, items=[trash_record(item) for item in items], more=more)
        return
    out = context.out
    out.print_table(
        _TRASH_COLUMNS,
        [
            (
                (out.format_time(item.trashed), "dim"),
                (short_id(item.id), "yellow"),
                (item.agent or "-", "plain"),
                (format_size(item.version.size), "dim"),
                (item.path, "plain"),
            )
            for item in items
        ],
    )
    if more:
        context.print_note(f"There are more: surehold trash list --after {items[-1].id}")
    context.print_hint(f"To restore one: surehold restore {short_id(items[0].id)}")


@command(
    "restore",
    "Restore a deleted file, never over an existing file.",
    argument("item", "ID|PATH", "an id from `surehold trash list`, or the path the file had"),
    argument("--to", "PATH", "restore it to this path instead", type=parse_name, default=None),
    example="surehold restore notes/today.txt --to notes/yesterday.txt",
)
def restore_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_recorded_workspace() as workspace:
        name = _trash_id(workspace, args.item)
        try:
            receipt = workspace.history.restore(name, to_path=args.to or "", author=context.author)
        except AlreadyExists as error:
            raise with_action(error, f"Use another path: surehold restore {short_id(name)} --to PATH") from None
    print_receipt(context, receipt, "Restored")


def _trash_id(workspace: "Workspace", item: str) -> str:
    """Return the id of the newest deleted file with that path, else what was typed."""
    with suppress(SureholdError):
        key = workspace.target(item).key
        if found := workspace.history.trash(TrashQuery(path=key, limit=1)):
            return found[0].id
    return item


@command(
    "empty",
    "Permanently remove deleted files: all, or the given ones.",
    argument("ids", "ID", "which ones (default: all)", nargs="*"),
    flag("--yes", "do not ask for confirmation"),
    example="surehold trash empty",
)
def empty_trash_command(context: CommandContext, args: argparse.Namespace) -> None:
    with context.open_recorded_workspace() as workspace:
        for name in args.ids:
            workspace.history.trash_item(name)  # one that is unknown is refused before anything is asked
        number = len(args.ids) or workspace.history.count_trash()
        if number and not args.yes:
            _confirm_emptying(context, number)
        emptied = workspace.history.empty_trash(args.ids) if number else 0
    removed = f"Permanently removed {format_count(emptied, 'deleted file')}."
    context.print_outcome(removed if emptied else "The trash is empty.", emptied=emptied)
    if emptied:
        context.print_hint("The space is freed by the next: surehold gc --keep 30d")


def _confirm_emptying(context: CommandContext, number: int) -> None:
    files = format_count(number, "deleted file")
    answer = ""
    if sys.stdin.isatty() and not context.json:
        context.err.stream.write(f"Permanently remove {files}? [y/N] ")
        context.err.stream.flush()
        answer = sys.stdin.readline().strip().lower()
    if answer not in {"y", "yes"}:
        message = f"Permanently removing {files} requires confirmation; nothing was removed."
        raise InvalidArgument(message, reason="not_confirmed", action="Confirm with --yes.")


trash_command = replace(
    list_trash_command,
    name="trash",
    help="List, restore or permanently remove deleted files.",
    actions=(list_trash_command, restore_command, empty_trash_command),
)
