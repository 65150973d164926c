"""The time limit of one search, with progress reports and cancellation."""

import time
from collections.abc import Callable
from typing import NoReturn

from surehold.errors import Cancelled, SearchTimeout

Progress = Callable[[int, int | None, str], None]
"""Receives how much is done, the total if it is known, and what is counted."""
DEFAULT_SECONDS = 20.0
_PROGRESS_SECONDS = 0.5


class Deadline:
    """The time of one call; `check` is called often, and raises when no time is left."""

    def __init__(
        self,
        seconds: float = DEFAULT_SECONDS,
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._progress = progress
        self._cancelled = cancelled
        self._reported = time.monotonic()

    @property
    def seconds_left(self) -> float:
        """The remaining time; negative when it is up."""
        return self._end - time.monotonic()

    def with_more_time(self, seconds: float) -> "Deadline":
        """Return a later deadline of the same call; messages still name the original limit."""
        more = Deadline(seconds, progress=self._progress, cancelled=self._cancelled)
        more.seconds = self.seconds
        return more

    def check(self, done: int, total: int | None, message: str) -> None:
        """Raise `Cancelled` or `SearchTimeout` when it is time to stop; report progress now and then."""
        now = time.monotonic()
        if self._cancelled and self._cancelled():
            raise Cancelled("The search was cancelled.")
        if now > self._end:
            self.raise_timeout(done, message)
        if self._progress and now - self._reported >= _PROGRESS_SECONDS:
            self._reported = now
            self._progress(done, total, message)

    def raise_timeout(self, done: int, message: str) -> NoReturn:
        """Report that time is up, and how much was done."""
        raise SearchTimeout(
            f"The search took longer than {self.seconds:g} s; {done} {message}.",
            reason="scan_budget",
            seconds=self.seconds,
            done=done,
        )
