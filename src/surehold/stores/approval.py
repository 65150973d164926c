"""What the ledger keeps about the approval of a change."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """Whether a person was asked about a change, by which rule, and what they answered."""

    asked: bool = False
    rule: str = ""
    """What decided whether to ask, such as `mode default`, `ask *.lock` or `protected .bashrc`."""
    where: str = ""
    """Where it was answered: `page`, `form`, `editor`, `terminal` or `callback`; empty when no answer came."""
    who: str = ""
    at: str = ""
    """When the answer came, or the question was given up: UTC, ISO 8601."""
    note: str = ""
    left_out: str = ""
    """The refused change that has the files which the person left out; empty when they left none out."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that do not hold their default: only those are part of an entry's hash."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name))}
