"""How changes are presented: painted diffs, receipts for people, and plain data for `--json`.

A diff row is classified by its position, not by its first characters: inside a hunk `--- x` is a removed line, outside it
is a header.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from surehold.front.cli.command import CommandContext, short_id
from surehold.front.cli.output import Output, TextStyle, escape_text, format_count

if TYPE_CHECKING:
    from surehold.stores.base import Entry, TrashItem
    from surehold.text.snapshot import Version
    from surehold.workspace.receipt import FileReceipt, Receipt


_HUNK_HEADER = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_ROW_STYLES: dict[str, TextStyle] = {
    "header": "bold",
    "hunk": "cyan",
    "added": "green",
    "removed": "red",
    "note": "dim",
}

DiffRowKind = Literal["header", "hunk", "added", "removed", "same", "note"]


def count_changed_lines(diff: str) -> tuple[int, int]:
    """Return how many lines a diff adds and removes."""
    kinds = [kind for kind, _ in classify_rows(diff)]
    return kinds.count("added"), kinds.count("removed")


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


def classify_rows(diff: str) -> Iterator[tuple[DiffRowKind, str]]:
    """Yield every row with what it is."""
    old = new = 0
    for row in diff.removesuffix("\n").split("\n") if diff else ():
        if row.startswith("\\"):
            yield "note", row
        elif old <= 0 and new <= 0:
            match = _HUNK_HEADER.match(row)
            if match:
                old, new = (int(part or 1) for part in match.groups())
            yield ("hunk" if match else "header"), row
        else:
            old -= not row.startswith("+")
            new -= not row.startswith("-")
            yield ("added" if row.startswith("+") else "removed" if row.startswith("-") else "same"), row


def entry_record(entry: "Entry", *, undone_by: str = "") -> dict[str, Any]:
    """Return one line of the ledger."""
    call, change = entry.call, entry.change
    added, removed = count_changed_lines(change.diff)
    return {
        "seq": entry.seq,
        "change_id": entry.change_id,
        "timestamp": entry.timestamp,
        "agent": call.agent,
        "session": call.session,
        "tool": call.tool,
        "operation": call.operation,
        "reason": call.reason,
        "path": change.path,
        "to_path": change.to_path or None,
        "before": version_record(change.before),
        "after": version_record(change.after),
        "added": added,
        "removed": removed,
        "ok": entry.ok,
        "error_kind": entry.error_kind or None,
        "message": entry.message,
        "undoes": call.undoes or None,
        "undone_by": undone_by or None,
        "trash_id": change.trash_id or None,
        "hash": entry.hash,
    }


def version_record(version: "Version | None") -> dict[str, Any] | None:
    """Return the name of some bytes."""
    if version is None:
        return None
    return {
        "sha256": version.sha256,
        "size": version.size,
        "mode": f"{version.meta.mode:04o}" if version.meta else None,
    }


def receipt_record(receipt: "Receipt") -> dict[str, Any]:
    """Return what one call did."""
    return {
        "change_id": receipt.change_id or None,
        "dry_run": receipt.dry_run,
        "already_applied": receipt.already_applied,
        "replayed": receipt.replayed,
        "files": [_file_record(one) for one in receipt.files],
        "warnings": list(receipt.warnings),
    }


def trash_record(item: "TrashItem") -> dict[str, Any]:
    """Return one deleted file."""
    return {
        "id": item.id,
        "path": item.path,
        "sha256": item.version.sha256,
        "size": item.version.size,
        "trashed": item.trashed,
        "change_id": item.change_id,
        "agent": item.agent,
        "session": item.session,
        "state": item.state,
    }


def _file_record(receipt: "FileReceipt") -> dict[str, Any]:
    change = receipt.change
    added, removed = count_changed_lines(change.diff)
    return {
        "path": receipt.path,
        "to_path": change.to_path or None,
        "changed": receipt.changed,
        "before_sha256": receipt.before_sha256,
        "after_sha256": receipt.after_sha256,
        "added": added,
        "removed": removed,
        "diff": change.diff,
        "diff_truncated": change.diff_truncated,
        "trash_id": change.trash_id or None,
        "corrections": [{"type": one.type, "detail": one.detail} for one in receipt.plan.corrections],
        "warnings": list(receipt.warnings),
    }


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
