"""One call of a tool: who calls, how much fits into the answer, progress, and what came of it.

Light to import: a server lists its tools without loading them.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Protocol

from surehold.errors import Cancelled, SureholdError
from surehold.text.measure import DENSE_QUARTERS, QUARTERS_PER_TOKEN, TextRoom, Unit, count_quarter_tokens, count_units
from surehold.workspace.session import Session
from surehold.workspace.settings import ReadGateSettings

Json = dict[str, Any]

_SURROUNDING_UNITS = 500
"""What a page leaves of an answer for the line above and the notices below."""
_FIELDS_UNITS = 1_500
"""What the rows of a change leave of an answer for its other fields and the lines above the diff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBudget:
    """How much of an answer reaches a model in one piece, in the unit in which its host counts.

    Text that costs many tokens for its length (see `count_quarter_tokens`) counts as more, so that one number is enough.
    """

    lines: int = 2_000
    """Lines of a page."""
    page: int = 40_000
    """Size of a page."""
    answer: int = 80_000
    """Size of any answer: its text and its data together."""
    tokens: int = 20_000
    """Estimated tokens of any answer."""
    unit: Unit = "characters"

    def size_of(self, text: str) -> int:
        """Return how much of the answer a text takes: its size, or its share of the tokens where that is more."""
        return self._size_in_units(text, self.unit)

    def size_of_data(self, encoded: str) -> int:
        """Return the same for data that is encoded as JSON already."""
        return self._size_in_units(encoded, "characters" if self.unit == "json" else self.unit)

    def _size_in_units(self, text: str, unit: Unit) -> int:
        plain, per_quarter = text.isascii(), self.answer / self.tokens / QUARTERS_PER_TOKEN
        size = len(text) if plain and unit != "json" else count_units(text, unit)
        if plain and per_quarter * DENSE_QUARTERS <= 1:  # tokens never are what is short
            return size
        return max(size, math.ceil(count_quarter_tokens(text) * per_quarter))

    def delivers(self, text: str) -> bool:
        """Tell whether all of a text reaches the model; of one that is cut for a path of several KB, nothing counts as shown."""
        most = max(1.0, self.answer / self.tokens / QUARTERS_PER_TOKEN * DENSE_QUARTERS)  # of a character of ASCII
        is_short = text.isascii() and self.unit != "json" and len(text) * most <= self.answer - 1
        return is_short or self.size_of(text) <= self.answer

    def _size_in_both(self, text: str) -> int:
        encoded, unit = json.dumps(text, ensure_ascii=False), self.unit
        return self._size_in_units(text, unit) + self._size_in_units(encoded, "characters" if unit == "json" else unit)

    @property
    def page_room(self) -> TextRoom:
        """The room of a page: its own limit, and no more than an answer with what surrounds it."""
        return TextRoom(size=self._limit_page(self.answer), measure=self.size_of)

    @property
    def change_room(self) -> TextRoom:
        """The room of what a changing tool says twice, in its text and in its data; a quarter is left for the rest."""
        return TextRoom(size=self._limit_page(self.answer * 3 // 4), measure=self._size_in_both)

    def count_rows_beside(self, diff: str, rows: Sequence[Any]) -> int:
        """Return how many rows of data fit beside a diff that the answer has twice, as text and as data."""
        taken = self._size_in_both(diff) + _FIELDS_UNITS
        sizes = accumulate(self.size_of_data(json.dumps(row, ensure_ascii=False) + ", ") for row in rows)
        return sum(taken + size <= self.answer for size in sizes)

    def _limit_page(self, answer: int) -> int:
        return min(self.page, max(answer - _SURROUNDING_UNITS, answer // 2))

    def beside(self, text: str) -> "AnswerBudget":
        """Return what is left beside a text that the answer has in any case."""
        left = max(self.answer - self.size_of(text), self.answer // 2)
        return replace(self, answer=left, tokens=max(self.tokens * left // self.answer, 1)) if text else self


class ProgressListener(Protocol):
    """Hears how far a long call has come."""

    def __call__(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report; cheap enough to be called often."""
        ...


def ignore_progress(done: float, total: float | None = None, message: str = "") -> None:
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
    progress: ProgressListener = ignore_progress
    cancelled: Callable[[], bool] = _never_cancelled

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when the caller took the call back; asked before anything is written."""
        if self.cancelled():
            raise Cancelled("The call was cancelled.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to: plain data, ready for any front end."""

    ok: bool
    text: str
    """For a model."""
    data: Json
    """The same for a program."""
    structured: Json | None = None
    """As much of `data` as a model is given beside the text; None for tools that only look."""
    warnings: tuple[str, ...] = ()
    error: SureholdError | None = None
    bug: Exception | None = None
    """A failure of our own after the change was written; the answer says that it was, and a front end reports the bug."""
    change_ids: tuple[str, ...] = ()
    """The changes that it made."""
    content: tuple[Json, ...] = ()
    """More for a model than text: images, audio, embedded resources, as MCP spells them."""
