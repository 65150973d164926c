"""Questions that wait for a person, as a store keeps them for every process that shows or answers them.

1. One process asks; any may show the question and answer it. The first answer is kept, and no other.
2. A waiting question is open as long as its process lives and renews it. A process on another machine counts as dead
   when it has not renewed its questions for long.
3. A parked question belongs to no process: its call has ended, and whoever gets the next call takes the question.
4. Ages and limits go by the clock of the store.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from surehold.stores.owner import Owner, counts_as_dead

QuestionKind = Literal["waiting", "parked", "ended"]

SILENT_SECONDS = 15.0
"""A question that its process has not renewed for so long is no longer shown."""
FORGOTTEN_SECONDS = 24 * 3600.0
"""How long questions are kept whose time is over and that were never taken away."""
MAX_ENDED_QUESTIONS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuestion:
    """A question as it is written down."""

    id: str
    kind: QuestionKind
    owner: Owner
    """The process that asks."""
    facts: str
    """What is known about the question, as JSON in ASCII."""
    body: bytes
    """What is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion:
    """A question as it is found, without what is asked."""

    id: str
    kind: QuestionKind
    owner: Owner
    facts: str
    age: float
    left: float
    """Seconds since it was asked, and for which it waits yet."""
    silent: float
    """Seconds since its process was last heard of."""
    opened: tuple[int, ...] = ()
    """The pages of the change that a person opened."""
    answer: str = ""
    """The first answer; empty while there is none."""

    @property
    def is_open(self) -> bool:
        """Whether a call waits for the answer."""
        is_silent = self.silent >= SILENT_SECONDS or counts_as_dead(self.owner, lease_over=False)
        return self.kind == "waiting" and not self.answer and self.left > 0 and not is_silent

    @property
    def is_orphan(self) -> bool:
        """Whether the process that asked has ended, so that no call waits for the answer."""
        is_dead = counts_as_dead(self.owner, lease_over=self.silent >= 4 * SILENT_SECONDS)
        return self.kind == "waiting" and (is_dead or self.left <= -4 * SILENT_SECONDS)

    @property
    def is_overdue(self) -> bool:
        """Whether its call will never be made again, or not in time."""
        return self.kind == "parked" and self.left <= 0


class SessionAgreements(Protocol):
    """What people allowed for the rest of a session, for every process that serves it."""

    def allow_session(self, session_id: str, mode: str) -> None:
        """Remember that a person allowed all further changes of a session in a mode; an empty mode takes it back."""
        ...

    def is_session_allowed(self, session_id: str, mode: str) -> bool:
        """Tell whether a person did."""
        ...


class QuestionRecords(SessionAgreements, Protocol):
    """The questions of one workspace."""

    def add(self, question: NewQuestion, *, seconds: float) -> None:
        """Write a question down, which waits for so many seconds; forget what was forgotten by everybody else."""
        ...

    def list_all(self) -> tuple[StoredQuestion, ...]:
        """List every question, oldest first."""
        ...

    def find(self, question_id: str) -> StoredQuestion | None:
        """Return one question."""
        ...

    def read_body(self, question_id: str) -> bytes | None:
        """Return what is asked; None if the question is gone."""
        ...

    def read_answers(self, question_ids: Collection[str]) -> dict[str, str]:
        """Return the answers to some questions; those that are gone are missing."""
        ...

    def renew(self, question_ids: Collection[str]) -> None:
        """Say that the process which asks them still waits."""
        ...

    def note_page(self, question_id: str, page: int) -> None:
        """Remember that a person opened a page of the change."""
        ...

    def answer(self, question_id: str, answer: str) -> bool:
        """Keep the answer to a waiting question, if it is the first; no two answers are spelled alike."""
        ...

    def end(self, question_id: str, facts: str) -> bool:
        """Turn a waiting question without an answer into one that has ended; False if there is none."""
        ...

    def take(self, question_id: str) -> StoredQuestion | None:
        """Remove a question, and return it as it was; None if another was faster."""
        ...


class KeepsQuestions(Protocol):
    """A store with questions."""

    @property
    def questions(self) -> QuestionRecords:
        """The questions that wait for a person."""
        ...
