"""What surrounds a call: who calls, how much fits into the answer, and how to speak with the caller meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from surehold.errors import Cancelled
from surehold.workspace.gate import Gate
from surehold.workspace.session import Session

_CHARACTERS_PER_TOKEN = 4
_AROUND = 500
"""Characters of an answer that its page leaves for the line above and the notices below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much of an answer reaches a model in one piece."""

    lines: int = 2_000
    """Lines of a page."""
    characters: int = 40_000
    """Characters of a page."""
    tokens: int = 20_000
    """Estimated tokens of any answer."""

    @property
    def answer_characters(self) -> int:
        """How many characters any answer may have."""
        return self.tokens * _CHARACTERS_PER_TOKEN

    @property
    def page_characters(self) -> int:
        """How many characters a page may have: its own limit, and no more than an answer with what is said around it."""
        return self.page_beside("")

    def page_beside(self, notice: str) -> int:
        """Return how many characters a page may have, so that a notice reaches the model too."""
        answer = self.answer_characters
        return min(self.characters, max(answer - _AROUND - len(notice), answer // 2))


class Progress(Protocol):
    """Hears how far a long call has come."""

    def __call__(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report; cheap enough to be called often."""
        ...


def _silent(done: float, total: float | None = None, message: str = "") -> None:
    """Report to nobody."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One call's surroundings."""

    session: Session
    budget: Budget = Budget()
    unchecked: bool = False
    """Changes are accepted without the sha256 that proves what the caller saw."""
    deprecated_names: bool = True
    """Names of arguments that are on their way out still work, with a warning."""
    gate: Gate | None = None
    """What a session must have seen of a file before Write, Edit and NotebookEdit change it; None: as the workspace says."""
    progress: Progress = _silent
    cancelled: Callable[[], bool] = _never

    def go_on(self) -> None:
        """Raise `Cancelled` when the caller took the call back; asked before anything is written."""
        if self.cancelled():
            raise Cancelled("The call was cancelled.")
