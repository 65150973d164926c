"""How much of a file must have been seen before it is changed."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a session must have been shown before Write, Edit and NotebookEdit change a file."""

    require_read: Literal["strict", "matched", "off"] = "strict"
    """`matched`: an edit also goes on when its exact text stands once in a file that was not read. `off`: no question."""
    on_stale: Literal["reject", "rebase"] = "reject"
    """`rebase`: an edit goes on in lines that are provably the same, whoever changed the file."""
