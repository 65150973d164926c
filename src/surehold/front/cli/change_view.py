"""Prints changes for people: coloured diffs and receipts."""

from typing import TYPE_CHECKING

from surehold.front.cli.command import CommandContext, short_id
from surehold.front.cli.output import Output, TextStyle, format_count, format_size
from surehold.front.shared.ledger_json import count_changed_lines, format_move, receipt_record
from surehold.text.diff_rows import RowKind, classify_rows
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from surehold.front.shared.change_text import TextRow
    from surehold.stores.base import Change, Intent
    from surehold.workspace.proposal import Receipt

_ROW_STYLES: dict[RowKind, TextStyle] = {
    "header": "bold",
    "hunk": "cyan",
    "added": "green",
    "removed": "red",
    "note": "dim",
}


def format_line_counts(change: "Change") -> str:
    """Return how many lines a change adds and removes as `+3 -1`; its sizes where the lines were not compared."""
    counts = count_changed_lines(change)
    before, after = change.before, change.after
    if not any(counts) and change.diff_truncated and before and after and before.sha256 != after.sha256:
        return f"{format_size(before.size)} → {format_size(after.size)}"
    return " ".join(f"{sign}{number}" for sign, number in zip("+-", counts, strict=True) if number)


def print_diff(out: Output, diff: str) -> None:
    """Print a diff: painted on a terminal; into a pipe the exact text, which `patch` accepts."""
    if out.is_terminal or out.colour:
        paint_diff(out, diff)
        return
    try:
        out.write_bytes(diff.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        out.write_bytes(diff.encode("utf-8", "backslashreplace"))


def paint_diff(out: Output, diff: str, *, header: TextStyle = "bold") -> None:
    found = list(classify_rows(diff))
    content = [row for kind, row in found if kind in {"added", "removed", "same"}]
    # CRLF in every row is not news; CR in some rows only is the difference one looks for.
    hide_cr = bool(content) and all(row.endswith("\r") for row in content)
    styles: dict[RowKind, TextStyle] = {**_ROW_STYLES, "header": header}
    for kind, row in found:
        text = row.removesuffix("\r") if hide_cr else row
        out.print_line(out.paint(reveal_text(text, keep="\t"), styles.get(kind, "plain")))


def paint_rows(out: Output, rows: "Iterable[TextRow]") -> None:
    """Print the rows of a question, which are escaped already."""
    for kind, text in rows:
        if kind == "warning":
            out.print_line(f"{out.paint('Warning', 'yellow')}: {text}")
        elif kind == "file" or kind == "moved":  # noqa: PLR1714 - this form narrows the type
            out.print_line(text)
        else:
            out.print_line(out.paint(text, _ROW_STYLES.get(kind, "plain")))


def print_receipt(context: CommandContext, receipt: "Receipt", verb: str, *, running: "Sequence[Intent]" = ()) -> None:
    """Print what a call did to which files, how to undo it, and which commands it left out because they still run."""
    out = context.out
    for one in running:
        context.print_note(f"Left out, since it still runs: {' '.join(one.call.argv)} (change {one.id})")
    if context.json:
        left_out = {"still_running": [one.id for one in running]} if running else {}
        out.print_json({**receipt_record(receipt), **left_out})
    elif receipt.dry_run:
        _print_preview(out, receipt)
    elif not receipt.change_id:
        names = ", ".join(one.path for one in receipt.files)
        out.print_labelled("Already up to date", names or "nothing of it is left in any file")
        _print_warnings(out, receipt)
    else:
        for one in receipt.files:
            if one.change.sets_times_only:
                continue
            lines = f" ({counts})" if (counts := format_line_counts(one.change)) else ""
            out.print_labelled(verb, format_move(one.path, one.change.to_path) + lines, "green")
            for correction in one.plan.corrections:
                out.print_labelled("  Note", correction.detail)
        _print_warnings(out, receipt)
        context.print_hint(f"To reverse this: {_reverse_command(receipt)}")


def _print_warnings(out: Output, receipt: "Receipt") -> None:
    for warning in receipt.left_out:
        out.print_labelled("Left out", warning, "yellow")
    for warning in receipt.warnings[len(receipt.left_out) :]:
        out.print_labelled("  Warning", warning, "yellow")


def _reverse_command(receipt: "Receipt") -> str:
    """Return the command that reverses the change: restore after a delete, redo after an undo."""
    call = receipt.entries[0].call if receipt.entries else None
    if call and call.operation == "undo" and call.undoes:
        return f"surehold redo {short_id(call.undoes)}"
    trashed = [one.change.trash_id for one in receipt.files if one.change.trash_id]
    if call and call.operation == "delete" and trashed:
        return f"surehold restore {short_id(trashed[0])}"
    return f"surehold undo {short_id(receipt.change_id)}"


def _size_note(change: "Change") -> str:
    """Say of a file whose diff is not shown how large it was and would be."""
    before, after = change.before, change.after
    if not any(one and one.kind == "file" for one in (before, after)) or (
        before and after and before.sha256 == after.sha256
    ):
        return ""
    sizes = (format_size(one.size) if one else "no file" for one in (before, after))
    return f": {' → '.join(sizes)}, not compared line by line"


def _print_preview(out: Output, receipt: "Receipt") -> None:
    changed = [one for one in receipt.files if one.changed and not one.change.sets_times_only]
    out.print_line(f"Nothing was written. This would change {format_count(len(changed), 'file')}:")
    for one in changed:
        if one.change.diff:
            paint_diff(out, one.change.diff)
        else:
            name = reveal_text(format_move(one.path, one.change.to_path))
            out.print_line(f"{name}{_size_note(one.change)}")
    for warning in receipt.left_out:
        out.print_labelled("Left out", warning, "yellow")
