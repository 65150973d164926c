"""What surrounds one tool call: the session, the size limits of the answer, progress reports and cancellation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from surehold.errors import Cancelled
from surehold.workspace.session import Session
from surehold.workspace.settings import ReadGateSettings

_CHARACTERS_PER_TOKEN = 4
_SURROUNDING_CHARS = 500
"""Characters of an answer that its page leaves for the line above and the notices below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBudget:
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
        """How many characters a page may have: its own limit, and no more than an answer with what surrounds it."""
        return self.page_characters_beside("")

    def page_characters_beside(self, notice: str) -> int:
        """Return how many characters a page may have, so that a notice reaches the model too."""
        answer = self.answer_characters
        return min(self.characters, max(answer - _SURROUNDING_CHARS - len(notice), answer // 2))


class ProgressListener(Protocol):
    """Hears how far a long call has come."""

    def __call__(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report; cheap enough to be called often."""
        ...


def _ignore_progress(done: float, total: float | None = None, message: str = "") -> None:
    """Report nothing."""


def _never_cancelled() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """One call's surroundings."""

    session: Session
    budget: AnswerBudget = AnswerBudget()
    unchecked: bool = False
    """Changes are accepted without the sha256 that proves what the caller saw."""
    deprecated_names: bool = True
    """Names of arguments that are on their way out still work, with a warning."""
    gate: ReadGateSettings | None = None
    """What a session must have seen of a file before Write, Edit and NotebookEdit change it; None: as the workspace says."""
    progress: ProgressListener = _ignore_progress
    cancelled: Callable[[], bool] = _never_cancelled

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when the caller took the call back; asked before anything is written."""
        if self.cancelled():
            raise Cancelled("The call was cancelled.")
