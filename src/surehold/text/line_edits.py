"""Operations on lines that are named by their anchors.

1. All operations address the file as it is before the call; their order matters only for inserts into one gap.
2. One operation that cannot be done refuses the whole call, with every problem that was found.
3. What is fixed for the caller is reported: a range that was turned around, anchors that were copied along with text,
   an operation that was sent twice.
"""

from dataclasses import dataclass

from surehold.errors import NotFound, SchemaInvalid
from surehold.text.anchor_index import Shown
from surehold.text.line_call import LineCall
from surehold.text.line_operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.plan import EditPlan
from surehold.text.snapshot import Snapshot

__all__ = [
    "AnchoredEdits",
    "DeleteLine",
    "DeleteRange",
    "InsertAfter",
    "InsertBefore",
    "Operation",
    "ReplaceLine",
    "ReplaceRange",
    "Shown",
    "Unkept",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unkept:
    """A version that a session was shown and that was too large to be kept."""

    sha256: str
    spans: tuple[tuple[int, int], ...]
    anchored: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredEdits:
    """Operations on lines, and what the session that sends them was shown of the file."""

    operations: tuple[Operation, ...]
    shown: tuple[Shown, ...] = ()
    """Newest first; without any, anchors are looked up in the file as it is."""
    strict_order: bool = False
    """A range from bottom to top is refused, not turned around."""
    allow_rebase: bool = True
    """Anchors of earlier versions are carried over; off when the caller has named the version that it means."""
    unkept: tuple[Unkept, ...] = ()
    """Versions that were shown and whose bytes were not kept."""

    def plan(self, before: Snapshot) -> EditPlan:
        """Find every line, then splice all operations at once; refuse all of them if one cannot be done."""
        if not before.exists:
            raise NotFound("There is no file to edit.")
        if not self.operations:
            raise SchemaInvalid("There is no operation to apply.", reason="no_operations", field="operations")
        shown = self.shown if self.allow_rebase else tuple(each for each in self.shown if each.snapshot == before)
        same = [each for each in self.unkept if each.sha256 == before.sha256]
        shown = (*(Shown(snapshot=before, spans=each.spans, anchored=each.anchored) for each in same), *shown)
        call = LineCall(
            operations=self.operations,
            before=before,
            shown=shown,
            guards_unseen=bool(self.shown or self.unkept),
            forgotten=self.allow_rebase and len(same) < len(self.unkept),
            strict_order=self.strict_order,
        )
        return call.plan()
