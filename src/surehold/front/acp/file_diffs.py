"""Previews what a change does to files, as diffs that an editor can show.

1. A new file and a small one are shown whole; a large one as its hunks, so that a message stays as small as the edit.
2. A deleted file becomes a diff to nothing. A file that only moved has no diff, unless it overwrites another one, or a
   person is asked about a protected path: then what was there and all that will be there are shown.
3. What cannot be shown (bytes that are not text, or too much) is described in words, never left out silently.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from surehold.front.acp.events import FileDiff
from surehold.text.diff import Hunk
from surehold.text.escape import reveal_text
from surehold.text.plan import EditPlan
from surehold.workspace.proposal import FileReceipt

_WHOLE_FILE_BYTES = 32 * 1024
"""Bytes of both versions together up to which a file is shown whole."""
_MAX_FILE_CHARS = 512 * 1024
"""Characters that one file may add to an event."""
_MAX_TOTAL_CHARS = 4 << 20
"""Characters that all files together may; a client may refuse a larger message, or end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePreview:
    diffs: tuple[FileDiff, ...] = ()
    notes: tuple[str, ...] = ()
    """About what the diffs do not show."""
    hidden: tuple[FileReceipt, ...] = ()
    """Files whose content changes and is not in the diffs."""


def preview_changes(files: Iterable[FileReceipt], *, root: str, shows_moved: bool = False) -> ChangePreview:
    diffs, notes, hidden, room, left = list[FileDiff](), list[str](), list[FileReceipt](), _MAX_TOTAL_CHARS, 0
    for one in files:
        if not one.changed:
            continue
        name = one.change.to_path or one.path
        path = name if name.startswith("/") else f"{root.rstrip('/')}/{name}"
        plan = one.plan
        if one.change.to_path and (shows_moved or one.displaced.exists):
            plan = EditPlan(before=one.displaced, after=one.plan.after)
        pieces = _file_diffs(path, plan)
        size = sum(len(piece.new) + len(piece.old or "") for piece in pieces)
        if plan.changes_bytes and (size > min(_MAX_FILE_CHARS, room) or not _is_text(plan)):
            hidden.append(one)
        if size <= min(_MAX_FILE_CHARS, room):
            diffs += pieces
            room -= size
        elif size <= _MAX_FILE_CHARS:
            left += 1
        else:
            notes.append(f"The diff of {reveal_text(one.path)} is too large to be shown here.")
        if not _is_text(plan):
            before, after = plan.before.size, plan.after.size
            notes.append(f"{reveal_text(one.path)} is binary ({before:,} → {after:,} bytes).")
    if left:
        notes.append(f"The diffs of {left:,} more {'file' if left == 1 else 'files'} are too large to be shown here.")
    return ChangePreview(diffs=tuple(diffs), notes=tuple(notes), hidden=tuple(hidden))


def _is_text(plan: EditPlan) -> bool:
    return plan.before.is_text and plan.after.is_text


def _file_diffs(path: str, plan: EditPlan) -> list[FileDiff]:
    if not _is_text(plan) or not plan.changes_bytes:
        return []
    before, after = plan.before, plan.after
    if not before.exists:
        return [FileDiff(path=path, old=None, new=after.text)]
    if not after.exists or before.size + after.size <= _WHOLE_FILE_BYTES:
        return [FileDiff(path=path, old=before.text, new=after.text if after.exists else "")]
    return [
        FileDiff(
            path=path,
            old=_hunk_side(plan, hunk, b" -"),
            new=_hunk_side(plan, hunk, b" +"),
            old_start=max(hunk.old_start, 1),
            new_start=max(hunk.new_start, 1),
        )
        for hunk in plan.hunks()
    ]


def _hunk_side(plan: EditPlan, hunk: Hunk, signs: bytes) -> str:
    return "".join(plan.decode_row(row)[1:] for row in hunk.lines if row[0] in signs)
