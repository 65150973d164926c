"""What a command changed, and what of it cannot be undone exactly."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surehold.stores.base import Change
    from surehold.text.snapshot import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class UnkeptPath:
    """Something that cannot be undone exactly, and why."""

    key: str
    """Empty for what concerns the whole run."""
    why: str


@dataclass(slots=True, kw_only=True)
class Settlement:
    """What a command changed."""

    changes: "list[Change]" = field(default_factory=list["Change"])
    not_kept: list[UnkeptPath] = field(default_factory=list[UnkeptPath])
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    """Where entries are now that got another path."""

    displaced: "list[tuple[str, Version]]" = field(default_factory=list[tuple[str, "Version"]])
    """What paths were before that no change begins with."""

    unrecorded: list[str] = field(default_factory=list[str])
    """What became of paths whose change is not in the history."""

    def count_paths(self) -> dict[str, int]:
        """Return how many paths were created, changed, deleted and moved; times of a directory alone do not count."""
        counts: dict[str, int] = dict.fromkeys(("created", "changed", "deleted", "moved"), 0)
        paths: dict[str, set[str]] = {"deleted": set(), "created": set()}
        for change in self.changes:
            if name := _name_effect(change):
                counts[name] += 1
                if self.renamed and name in paths:
                    paths[name].add(change.path)
        for name in self.unrecorded:
            counts[name] += 1
        gone, new = paths["deleted"], paths["created"]
        pairs = sum(path in gone and to in new for path, to in self.renamed.items())
        for name, more in (("created", -pairs), ("deleted", -pairs), ("moved", pairs)):
            counts[name] += more
        return counts

    @property
    def has_effects(self) -> bool:
        """Whether anything changed besides the times of directories."""
        return bool(self.unrecorded) or any(_name_effect(change) for change in self.changes)

    @property
    def complete(self) -> bool:
        """Whether taking the changes back gives exactly what was there before."""
        return not self.not_kept


def _name_effect(change: "Change") -> str:
    if change.to_path:
        return "moved"
    if change.before is None or change.after is None:
        return "created" if change.before is None else "deleted"
    return "" if change.sets_times_only else "changed"
