"""The time limit of one search, with progress reports and cancellation."""

import time
from collections.abc import Callable
from typing import NoReturn

from surehold.errors import Cancelled, SearchTimeout

Progress = Callable[[int, int | None, str], None]
"""Is told how much is done, of how much if that is known, and of what."""
DEFAULT_SECONDS = 20.0
_PROGRESS_SECONDS = 0.5


class Deadline:
    """The time of one call; asked often, it says so when there is none left."""

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
        self._told = time.monotonic()

    @property
    def seconds_left(self) -> float:
        """How many seconds there still are."""
        return self._end - time.monotonic()

    def with_more_time(self, seconds: float) -> "Deadline":
        """Return a little more time, for the same caller; what is said about time stays the same."""
        more = Deadline(seconds, progress=self._progress, cancelled=self._cancelled)
        more.seconds = self.seconds
        return more

    def check(self, done: int, total: int | None, message: str) -> None:
        """Raise `Cancelled` or `SearchTimeout` when it is time to stop; tell how far it got, now and then."""
        now = time.monotonic()
        if self._cancelled and self._cancelled():
            raise Cancelled("The search was cancelled.")
        if now > self._end:
            self.raise_timeout(done, message)
        if self._progress and now - self._told >= _PROGRESS_SECONDS:
            self._told = now
            self._progress(done, total, message)

    def raise_timeout(self, done: int, message: str, *, reason: str = "scan_budget") -> NoReturn:
        """Say that time is up."""
        raise SearchTimeout(
            f"The search took longer than {self.seconds:g} s; {done} {message}.",
            reason=reason,
            seconds=self.seconds,
            done=done,
        )
