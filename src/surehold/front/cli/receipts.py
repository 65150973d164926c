"""What a change did, in a few lines."""

from typing import TYPE_CHECKING

from surehold.front.cli.command import Context, short
from surehold.front.cli.diff_view import count, counted, paint_diff
from surehold.front.cli.output import plural, safe
from surehold.front.cli.records import receipt_record

if TYPE_CHECKING:
    from surehold.workspace.receipt import FileReceipt, Receipt


def print_receipt(context: Context, receipt: "Receipt", verb: str) -> int:
    """Say what a call did to which files, and how to take it back."""
    out = context.out
    if context.json:
        out.json(receipt_record(receipt))
    elif receipt.dry_run:
        _print_preview(context, receipt)
    elif not receipt.change_id:
        names = ", ".join(safe(one.path) for one in receipt.files)
        out.line(f"Nothing to change: {names} is like that already.")
    else:
        for one in receipt.files:
            _print_file(context, one, verb)
        for warning in receipt.warnings:
            out.line(f"  {out.paint('Warning', 'yellow')}: {safe(warning)}")
        context.hint(f"Take it back: {_way_back(receipt)}")
    return 0


def _print_file(context: Context, receipt: "FileReceipt", verb: str) -> None:
    out, change = context.out, receipt.change
    arrow = f" → {safe(change.to_path)}" if change.to_path else ""
    lines = counted(*count(change.diff))
    out.line(f"{out.paint(verb, 'green')}: {safe(receipt.path)}{arrow}{f' ({lines})' if lines else ''}")
    for correction in receipt.plan.corrections:
        out.line(f"  Note: {safe(correction.detail)}")


def _way_back(receipt: "Receipt") -> str:
    """Return the command that takes the change back; what is gone is restored, an undo is made again."""
    call = receipt.entries[0].call if receipt.entries else None
    if call and call.operation == "undo":
        return f"surehold redo {short(call.undoes)}"
    trashed = [one.change.trash_id for one in receipt.files if one.change.trash_id]
    if call and call.operation == "delete" and trashed:
        return f"surehold restore {short(trashed[0])}"
    return f"surehold undo {short(receipt.change_id)}"


def _print_preview(context: Context, receipt: "Receipt") -> None:
    changed = [one for one in receipt.files if one.changed]
    context.out.line(f"Nothing was written. This would change {plural(len(changed), 'file')}:")
    for one in changed:
        if one.change.diff:
            paint_diff(context.out, one.change.diff)
        else:
            context.out.line(f"{safe(one.path)} → {safe(one.change.to_path)}" if one.change.to_path else safe(one.path))
