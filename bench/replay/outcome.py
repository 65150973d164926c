"""What became of a call, and how many of each there were."""

from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Verdict = Literal["exact", "unsayable", "refused", "wrong", "left out"]
"""Unsayable: all lines are right, and what differs are line ends or a mark, for which the notation has no words."""

NOTATIONS = ("anchored", "edit_file", "multi_edit", "unified", "envelope")
STALE_MODES = ("single", "chained")
_SHOWN = 200
ANCHOR_TROUBLE = ("anchor_", "range_unseen", "invalid_range_order", "overlapping_operations", "schema_invalid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one call."""

    verdict: Verdict
    kind: str = ""
    """Of the refusal."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One call that deserves a look."""

    where: str
    path: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"  {self.where:10} {self.kind:26} {self.path}\n  {'':10} {self.message[:_SHOWN]}"


@dataclass(slots=True, kw_only=True)
class Score:
    """All calls of one package."""

    name: str
    files: int = 0
    hunks: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    """Changed files by the ending of their names."""
    strict_refusals: Counter[str] = field(default_factory=Counter[str])
    """Good edits that the safety check refused, by reason."""
    unaddressed: int = 0
    """Hunks whose lines could not be named by one copied anchor for each end."""
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter[str]() for name in NOTATIONS})
    stale: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter[str]() for name in STALE_MODES})
    """Batches for a file that moved on, by mode and verdict."""
    stale_refusals: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter[str]() for name in STALE_MODES}
    )
    not_begun: int = 0
    """Files whose first edit, by the other agent, was not exact."""
    incidents: list[Incident] = field(default_factory=list[Incident])
    seconds: float = 0.0

    def tell(self, where: str, path: str, outcome: Outcome) -> None:
        """Count an outcome; what is neither exact nor left out is kept for a look."""
        self.verdicts[where][outcome.verdict] += 1
        if outcome.verdict not in ("exact", "left out"):
            self.note(where, path, outcome.kind or outcome.verdict, outcome.message)

    def note(self, where: str, path: str, kind: str, message: str) -> None:
        """Keep something for a look."""
        self.incidents.append(Incident(where=where, path=path, kind=kind, message=message))

    def tried(self, where: str) -> int:
        """Return how many files were changed in one notation."""
        counts = self.verdicts[where]
        return counts.total() - counts["left out"]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**own, "incidents": [asdict(incident) for incident in self.incidents]}

    @property
    def wrong(self) -> int:
        """How many files ended with other bytes than they should have, in any notation."""
        return sum(counts["wrong"] for counts in self.verdicts.values())


def total(scores: list[Score]) -> Score:
    """Return the sum over all packages."""
    whole = Score(name="all")
    for score in scores:
        whole.files += score.files
        whole.hunks += score.hunks
        whole.unaddressed += score.unaddressed
        whole.seconds += score.seconds
        whole.kinds += score.kinds
        whole.strict_refusals += score.strict_refusals
        whole.not_begun += score.not_begun
        whole.incidents += score.incidents
        for where, counts in score.verdicts.items():
            whole.verdicts[where] += counts
        for mode in STALE_MODES:
            whole.stale[mode] += score.stale[mode]
            whole.stale_refusals[mode] += score.stale_refusals[mode]
    return whole
