"""What a change does to files, in pieces that an editor can show.

1. A new file and a small one come whole; a large one comes as its hunks, so that a message stays as small as the edit.
2. A deleted file ends as nothing. A file that only moved has no difference.
3. What cannot be shown (bytes that are no text, or too much) is said in words, never left out silently.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from surehold.front.acp.event import FileDiff
from surehold.text.diff import Hunk, hunks, local_hunks
from surehold.text.plan import EditPlan
from surehold.text.snapshot import Snapshot
from surehold.text.visible import safe
from surehold.workspace.receipt import FileReceipt

_WHOLE = 32 * 1024
"""Bytes of both versions together up to which a file is shown whole."""
_MOST = 512 * 1024
"""Characters that one file may add to an event."""
_ALL = 4 << 20
"""Characters that all files together may; a client may refuse a larger message, or end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The pieces of a change, and what is to be said beside them."""

    diffs: tuple[FileDiff, ...] = ()
    notes: tuple[str, ...] = ()


def shown(files: Iterable[FileReceipt], *, root: str) -> Shown:
    """Return what a change does to each of its files."""
    diffs, notes, room, left = list[FileDiff](), list[str](), _ALL, 0
    for one in files:
        if not one.changed:
            continue
        name = one.change.to_path or one.path
        path = name if name.startswith("/") else f"{root.rstrip('/')}/{name}"
        pieces = _pieces(path, one.plan)
        size = sum(len(piece.new) + len(piece.old or "") for piece in pieces)
        if size <= min(_MOST, room):
            diffs += pieces
            room -= size
        elif size <= _MOST:
            left += 1
        else:
            notes.append(f"The difference in {safe(one.path)} is too large to be shown here.")
        if not _is_text(one.plan):
            sizes = f"{one.plan.before.size:,} before, {one.plan.after.size:,} after"
            notes.append(f"The bytes of {safe(one.path)} are no text: {sizes}.")
    if left:
        notes.append(
            f"The differences in {left:,} more {'file' if left == 1 else 'files'} are too many to be shown here."
        )
    return Shown(diffs=tuple(diffs), notes=tuple(notes))


def _is_text(plan: EditPlan) -> bool:
    return plan.before.is_text and plan.after.is_text


def _pieces(path: str, plan: EditPlan) -> list[FileDiff]:
    if not _is_text(plan) or not plan.changes_bytes:
        return []
    before, after = plan.before, plan.after
    if not before.exists:
        return [FileDiff(path=path, old=None, new=after.text)]
    if not after.exists or before.size + after.size <= _WHOLE:
        return [FileDiff(path=path, old=before.text, new=after.text if after.exists else "")]
    return [_piece(path, plan, hunk) for hunk in _hunks(plan)]


def _hunks(plan: EditPlan) -> list[Hunk]:
    before, after = plan.before, plan.after
    if plan.spans and not before.needs_table:
        return local_hunks(before.data, after.data, plan.offsets())
    return hunks(before.lines.raw, after.lines.raw)


def _piece(path: str, plan: EditPlan, hunk: Hunk) -> FileDiff:
    return FileDiff(
        path=path,
        old=_side(plan.before, hunk, b" -"),
        new=_side(plan.after, hunk, b" +"),
        old_start=max(hunk.old_start, 1),
        new_start=max(hunk.new_start, 1),
    )


def _side(snapshot: Snapshot, hunk: Hunk, signs: bytes) -> str:
    data = b"".join(row[1:] for row in hunk.lines if row[0] in signs)
    return snapshot.encoding.decode(data.removeprefix(snapshot.encoding.bom) if hunk.old_start <= 1 else data)
