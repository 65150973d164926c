"""Takes one part of a change back: the lines of one hunk become what they were, and everything else stays."""

from dataclasses import dataclass

from surehold.errors import NotFound, UndoConflict
from surehold.stores.base import Call
from surehold.text.diff_rows import HUNK_HEADER, classify_rows
from surehold.text.merge import MergeConflict, merge_changes
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.permission import Permission
from surehold.workspace.proposal import Proposal, Receipt, Sha256
from surehold.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedText:
    """One file before and after a change, and the diff that was shown of it."""

    key: str
    """What it is called now."""
    before: Snapshot
    after: Snapshot
    diff: str

    @property
    def has_parts(self) -> bool:
        """Whether single hunks can be taken back: both versions are texts of lines in the same encoding."""
        if not all(one.exists and one.is_text for one in (self.before, self.after)):
            return False
        return self.before.encoding == self.after.encoding and self.before.data != self.after.data

    def without_parts(self, numbers: frozenset[int]) -> bytes:
        """Return the text after the change as it is without some hunks; the first is number 0."""
        old, new = self.before.lines.raw, self.after.lines.raw
        kept, at = list[bytes](), 0
        for number, hunk in enumerate(_hunk_ranges(self.diff)):
            if number in numbers:
                kept += new[at : hunk.new] + old[hunk.old : hunk.old + hunk.old_lines]
                at = hunk.new + hunk.new_lines
        return self.after.encoding.bom + b"".join([*kept, *new[at:]])

    @property
    def part_count(self) -> int:
        return len(_hunk_ranges(self.diff)) if self.has_parts else 0


@dataclass(frozen=True, slots=True)
class HunkRange:
    """Which lines of both versions a hunk is about, counted from 0."""

    old: int
    old_lines: int
    new: int
    new_lines: int


def _hunk_ranges(diff: str) -> list[HunkRange]:
    found = list[HunkRange]()
    for kind, row in classify_rows(diff):
        if kind == "hunk" and (match := HUNK_HEADER.match(row)):
            old, old_lines, new, new_lines = (int(one) if one else 1 for one in match.groups())
            found.append(HunkRange(old - bool(old_lines), old_lines, new - bool(new_lines), new_lines))
    return found


def undo_part(workspace: Workspace, text: ChangedText, number: int, call: Call) -> Receipt:
    """Take back one hunk; later changes stay, and one of the same lines is a conflict."""
    if not 0 <= number < text.part_count:
        action = "Open the change again; it may be undone as a whole."
        raise NotFound("There is no such part of this change.", path=text.key, reason="no_such_part", action=action)
    current = workspace.read(text.key)
    wanted = text.without_parts(frozenset({number}))
    merged = wanted if current.data == text.after.data else merge_changes(text.after, current, Snapshot(wanted))
    if isinstance(merged, MergeConflict):
        lines = ", ".join(map(str, merged.lines)) or "unknown"
        message = f"This part cannot be undone by itself: later changes touch the same lines ({lines})."
        action = "Undo the later changes first."
        raise UndoConflict(message, path=text.key, reason="later_changes", action=action)
    proposal = Proposal(path=text.key, edit=WriteBytes(merged), proof=Sha256(current.sha256))
    return workspace.write(proposal, call=call, permission=Permission("bypassPermissions"))
