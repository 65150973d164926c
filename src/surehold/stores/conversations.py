"""What a store remembers of conversations: sessions, and the turns in them."""

from dataclasses import dataclass
from typing import Protocol

MAX_TITLE_CHARS = 500
"""How much is kept of what a person asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One agent's conversation with one workspace."""

    id: str
    agent: str
    opened: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """One request of a person in a session."""

    session: str
    id: str
    """Unique in its session: the host's own name for it, or its number."""
    title: str
    """The beginning of what the person asked for."""
    began: str


def next_turn_number(used: set[str]) -> str:
    """Return the next number that no turn of a session has as its id."""
    number = len(used) + 1
    while str(number) in used:
        number += 1
    return str(number)


class Conversations(Protocol):
    """Sessions and their turns, as a store keeps them."""

    def open_session(self, session: SessionRow) -> None:
        """Remember a session; opening it again is nothing."""
        ...

    def find_session(self, session_id: str) -> SessionRow | None:
        """Return one session."""
        ...

    def list_sessions(self) -> tuple[SessionRow, ...]:
        """List every session that the store or its ledger knows, the one that did something last first."""
        ...

    def begin_turn(self, session_id: str, *, title: str = "", turn_id: str = "") -> SessionTurn:
        """Begin a turn, by default under the next number; a turn of that id that has begun before is returned as it is."""
        ...

    def list_turns(self, session_id: str) -> tuple[SessionTurn, ...]:
        """List the turns of a session, oldest first; the last one is under way."""
        ...
