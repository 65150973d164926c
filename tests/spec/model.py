"""What a requirement is."""

from collections.abc import Mapping
from dataclasses import dataclass

AREAS = {
    "promise": "The product and its promises",
    "text": "Text",
    "anchored": "The `anchored` tools",
    "files": "The `files` tools",
    "multi_edit": "The `multi_edit` tools",
    "claude": "The `claude` tools",
    "host": "Hosts and models",
    "outside": "Outside programs",
    "run": "Commands",
    "session": "Sessions",
    "history": "History for people",
    "front": "Front ends",
    "approval": "Approval",
    "engine": "The engine",
    "fleet": "Many machines",
}
"""The first part of an id, and its heading in docs/contract.md."""

SOURCES = frozenset(
    {
        "product contract",
        "history contract",
        "text model",
        "anchored contract",
        "file tool contract",
        "multi-edit contract",
        "claude contract",
        "host contract",
        "session contract",
        "run contract",
        "front end contract",
        "approval contract",
        "engine contract",
    }
)
"""The contracts that the requirements were taken from. Divergences are measured against these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One sentence of the contract."""

    id: str
    """`area:topic:detail`"""
    heading: str
    """The section of docs/contract.md that lists it."""
    source: str
    """The contract that the sentence was taken from."""
    statement: str
    divergence: str = ""
    """What we do instead of the original contract, and why."""


def section(heading: str, source: str, rows: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Make requirements of a table of ids and sentences that share their heading and their source."""
    return tuple(Requirement(id=id_, heading=heading, source=source, statement=text) for id_, text in rows.items())
