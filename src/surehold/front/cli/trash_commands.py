"""Commands on deleted files: trash list, trash restore, trash empty, restore."""

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from surehold.errors import AlreadyExists, InvalidArgument, SureholdError
from surehold.front.cli.change_view import print_receipt
from surehold.front.cli.command import Command, CommandContext, person_name, short_id, with_action
from surehold.front.cli.output import TableCell, TableColumn, format_count, format_size
from surehold.front.shared.ledger_json import trash_record

if TYPE_CHECKING:
    from surehold.workspace.workspace import Workspace

_TRASH_COLUMNS = (
    TableColumn(title="deleted", rank=1),
    TableColumn(title="id"),
    TableColumn(title="who", least=8, rank=2),
    TableColumn(title="size", align="right", rank=3),
    TableColumn(title="path", least=16, keep="end"),
)


def _trash_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(action="list", ids=[], yes=False)
    actions = parser.add_subparsers(title="actions", metavar="list|restore|empty", parser_class=type(parser))
    listing = actions.add_parser("list", help="list deleted files, newest first (the default)")
    listing.set_defaults(action="list")
    restoring = actions.add_parser("restore", help="bring a deleted file back, never over an existing file")
    restoring.set_defaults(action="restore")
    _restore_arguments(restoring)
    emptying = actions.add_parser("empty", help="give up deleted files for good: all, or the named ones")
    emptying.set_defaults(action="empty")
    emptying.add_argument("ids", nargs="*", metavar="ID", help="which ones (default: all)")
    emptying.add_argument("--yes", action="store_true", help="do not ask")


def _restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("item", metavar="ID|PATH", help="an id from `surehold trash list`, or the path the file had")
    parser.add_argument("--to", metavar="PATH", default="", help="put it there instead of where it was")


def _run_trash(context: CommandContext, args: argparse.Namespace) -> int:
    match args.action:
        case "restore":
            return _run_restore(context, args)
        case "empty":
            return _empty_trash(context, args)
        case _:
            return _list_trash(context)


def _list_trash(context: CommandContext) -> int:
    if not context.has_history():
        context.print_outcome("The trash is empty.", items=[])
        if hint := context.parent_history_hint():
            context.print_hint(hint)
        return 0
    with context.open_workspace() as workspace:
        items = workspace.history.trash()
    if context.json or not items:
        context.print_outcome("The trash is empty.", items=[trash_record(item) for item in items])
        return 0
    out = context.out
    rows = [
        [
            TableCell(text=out.format_time(item.trashed), style="dim"),
            TableCell(text=short_id(item.id), style="yellow"),
            TableCell(text=item.agent or "-"),
            TableCell(text=format_size(item.version.size), style="dim"),
            TableCell(text=item.path),
        ]
        for item in items
    ]
    out.print_table(_TRASH_COLUMNS, rows)
    context.print_hint(f"Bring one back: surehold restore {short_id(items[0].id)}")
    return 0


def _run_restore(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_recorded_workspace() as workspace:
        name = _trash_id(workspace, args.item)
        try:
            receipt = workspace.history.restore(name, to_path=args.to, agent=person_name())
        except AlreadyExists as error:
            raise with_action(error, f"Put it elsewhere: surehold restore {short_id(name)} --to PATH") from None
    return print_receipt(context, receipt, "Restored")


def _trash_id(workspace: "Workspace", item: str) -> str:
    """Return the id that is meant: the newest deleted file of that path, else what was typed."""
    with suppress(SureholdError):
        key = workspace.target(item).key
        found = next((one.id for one in workspace.history.trash() if one.path == key), None)
        if found:
            return found
    return item


def _empty_trash(context: CommandContext, args: argparse.Namespace) -> int:
    with context.open_recorded_workspace() as workspace:
        number = len(args.ids) or len(workspace.history.trash())
        if number and not args.yes:
            _confirm_emptying(context, number)
        emptied = workspace.history.empty_trash(args.ids) if number else 0
    context.print_outcome(
        f"Gave up {format_count(emptied, 'deleted file')}." if emptied else "The trash is empty.", emptied=emptied
    )
    if emptied:
        context.print_hint("The bytes go with the next clean-up: surehold gc --keep 30d")
    return 0


def _confirm_emptying(context: CommandContext, number: int) -> None:
    files = format_count(number, "deleted file")
    answer = ""
    if sys.stdin.isatty() and not context.json:
        context.err.stream.write(f"Give up {files} for good? [y/N] ")
        context.err.stream.flush()
        answer = sys.stdin.readline().strip().lower()
    if answer not in {"y", "yes"}:
        raise InvalidArgument(
            f"Nothing was given up: {files} would be gone for good.",
            reason="not_confirmed",
            action="Say so with --yes.",
        )


TRASH_COMMANDS = (
    Command(
        name="trash",
        group="Take back",
        help="List, restore, or give up deleted files.",
        example="surehold trash list",
        add_arguments=_trash_arguments,
        run=_run_trash,
    ),
    Command(
        name="restore",
        group="Take back",
        help="Bring a deleted file back, never over an existing file.",
        example="surehold restore notes/today.txt --to notes/yesterday.txt",
        add_arguments=_restore_arguments,
        run=_run_restore,
    ),
)
