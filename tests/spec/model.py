"""What a requirement is."""

from collections.abc import Mapping
from dataclasses import dataclass

AREAS = ("promise", "text", "anchored", "files", "multi_edit", "claude", "host", "session", "front", "engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One sentence of the contract, and where it comes from."""

    id: str
    """`area:topic:detail`"""
    seed: str
    """The section of SPEC.md, the seed document (000 to 004), or the issue that says so."""
    behaviour: str
    divergence: str = ""
    """What we do instead of the seed, and why."""
    deferred: str = ""
    """The issue that delivers it; empty when it must hold now."""


def section(seed: str, rows: Mapping[str, str], *, deferred: str = "") -> tuple[Requirement, ...]:
    """Make requirements of a table of ids and sentences that share their source and their issue."""
    return tuple(Requirement(id=id_, seed=seed, behaviour=text, deferred=deferred) for id_, text in rows.items())
