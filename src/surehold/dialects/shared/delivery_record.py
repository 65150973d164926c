"""Remember what a session has already been sent, and what its host can display.

A session has it as its attribute `deliveries`; a session without one is sent everything again. A program that relays a model's
calls switches on what its host can do:

    session.deliveries.says_unchanged = True
    session.deliveries.notify_compaction()      # whenever the conversation was shortened
    session.deliveries.raw_documents = True     # the host shows PDF documents itself
"""

from dataclasses import dataclass, field
from typing import Any

from surehold.workspace.session import Session

DeliveredRange = tuple[str, int, int, int, str]
"""Path, first line, number of lines, first column, encoding."""
_MAX_REMEMBERED = 1_000
_MAX_SHORT_ANSWERS = 1
"""After so many short answers the content is sent again: a model that asks once more has lost it."""


@dataclass(slots=True)
class DeliveryRecord:
    """What was delivered to one session. Which lines it has seen is the store's to remember; this may be forgotten."""

    says_unchanged: bool = False
    """Answer `file_unchanged` when the same range of the same bytes was delivered before."""
    raw_documents: bool = False
    """Hand small PDF documents over as they are."""
    _delivered: dict[DeliveredRange, tuple[str, int]] = field(default_factory=dict[DeliveredRange, tuple[str, int]])
    _reached: dict[tuple[str, str, int], int] = field(default_factory=dict[tuple[str, str, int], int])

    def notify_compaction(self) -> None:
        """Hear that the host shortened the conversation: what was delivered may not be there any more."""
        self._delivered.clear()

    def is_repeated(self, asked: DeliveredRange, sha256: str) -> bool:
        """Tell whether a short answer is enough, and remember what was said."""
        known, stubs = self._delivered.get(asked, ("", 0))
        repeated = self.says_unchanged and known == sha256 and stubs < _MAX_SHORT_ANSWERS
        self._delivered[asked] = (sha256, stubs + 1 if repeated else 0)
        _drop_oldest(self._delivered)
        return repeated

    def saw_columns(self, line: tuple[str, str, int], first: int, last: int, *, total: int | None) -> bool:
        """Remember which characters of a long line (path, sha256, number) were shown; tell whether that is all of it."""
        reached = self._reached.get(line, 0)
        if first <= reached + 1:
            reached = self._reached[line] = max(reached, last)
            _drop_oldest(self._reached)
        return total is not None and reached >= total


def deliveries_of(session: Session) -> DeliveryRecord:
    """Return the record of a session; a new one where it keeps none."""
    return getattr(session, "deliveries", None) or DeliveryRecord()


def _drop_oldest(memory: dict[Any, Any]) -> None:
    while len(memory) > _MAX_REMEMBERED:
        del memory[next(iter(memory))]
