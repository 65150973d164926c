"""Prints changes for people: coloured diffs and receipts."""

from typing import TYPE_CHECKING

from surehold.front.cli.command import CommandContext, short_id
from surehold.front.cli.output import Output, TextStyle, escape_text, format_count
from surehold.front.shared.diff_rows import DiffRowKind, classify_rows, count_changed_lines
from surehold.front.shared.ledger_json import receipt_record

if TYPE_CHECKING:
    from surehold.workspace.receipt import FileReceipt, Receipt


_ROW_STYLES: dict[DiffRowKind, TextStyle] = {
    "header": "bold",
    "hunk": "cyan",
    "added": "green",
    "removed": "red",
    "note": "dim",
}


def format_line_counts(added: int, removed: int) -> str:
    """Return `+3 -1`, without what is zero."""
    return " ".join(f"{sign}{number}" for sign, number in (("+", added), ("-", removed)) if number)


def print_diff(out: Output, diff: str) -> None:
    """Print a diff for people on a terminal; into a pipe goes the very text, which `patch` understands."""
    if out.is_terminal or out.colour:
        paint_diff(out, diff)
        return
    try:
        out.write_bytes(diff.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        out.write_bytes(diff.encode("utf-8", "backslashreplace"))


def paint_diff(out: Output, diff: str) -> None:
    """Print a diff in colour."""
    found = list(classify_rows(diff))
    content = [row for kind, row in found if kind in {"added", "removed", "same"}]
    # CRLF everywhere is not news; CR in some rows only is the difference that one looks for.
    hide_cr = bool(content) and all(row.endswith("\r") for row in content)
    for kind, row in found:
        text = row.removesuffix("\r") if hide_cr else row
        out.print_line(out.paint(escape_text(text, keep="\t"), _ROW_STYLES.get(kind, "plain")))


def print_receipt(context: CommandContext, receipt: "Receipt", verb: str) -> int:
    """Say what a call did to which files, and how to take it back."""
    out = context.out
    if context.json:
        out.print_json(receipt_record(receipt))
    elif receipt.dry_run:
        _print_preview(context, receipt)
    elif not receipt.change_id:
        names = ", ".join(escape_text(one.path) for one in receipt.files)
        out.print_line(f"Nothing to change: {names} is like that already.")
    else:
        for one in receipt.files:
            _print_file(context, one, verb)
        for warning in receipt.warnings:
            out.print_line(f"  {out.paint('Warning', 'yellow')}: {escape_text(warning)}")
        context.print_hint(f"Take it back: {_undo_command(receipt)}")
    return 0


def _print_file(context: CommandContext, receipt: "FileReceipt", verb: str) -> None:
    out, change = context.out, receipt.change
    arrow = f" → {escape_text(change.to_path)}" if change.to_path else ""
    lines = format_line_counts(*count_changed_lines(change.diff))
    out.print_line(f"{out.paint(verb, 'green')}: {escape_text(receipt.path)}{arrow}{f' ({lines})' if lines else ''}")
    for correction in receipt.plan.corrections:
        out.print_line(f"  Note: {escape_text(correction.detail)}")


def _undo_command(receipt: "Receipt") -> str:
    """Return the command that takes the change back; what is gone is restored, an undo is made again."""
    call = receipt.entries[0].call if receipt.entries else None
    if call and call.operation == "undo":
        return f"surehold redo {short_id(call.undoes)}"
    trashed = [one.change.trash_id for one in receipt.files if one.change.trash_id]
    if call and call.operation == "delete" and trashed:
        return f"surehold restore {short_id(trashed[0])}"
    return f"surehold undo {short_id(receipt.change_id)}"


def _print_preview(context: CommandContext, receipt: "Receipt") -> None:
    changed = [one for one in receipt.files if one.changed]
    context.out.print_line(f"Nothing was written. This would change {format_count(len(changed), 'file')}:")
    for one in changed:
        if one.change.diff:
            paint_diff(context.out, one.change.diff)
        else:
            context.out.print_line(
                f"{escape_text(one.path)} → {escape_text(one.change.to_path)}"
                if one.change.to_path
                else escape_text(one.path)
            )
