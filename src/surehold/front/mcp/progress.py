"""Progress of a call: which reports of a worker are worth a message."""

import time

_REPORT_SECONDS = 0.1
_REPORT_FRACTION = 0.01
"""A part of the whole that is worth a report by itself."""


class ProgressThrottle:
    """Lets a report through ten times a second or at every hundredth, and only upwards."""

    def __init__(self) -> None:
        self._reported_at = 0.0
        self._highest = -1.0

    def accepts(self, done: float, total: float | None) -> bool:
        now = time.monotonic()
        leap = bool(total) and done - self._highest >= total * _REPORT_FRACTION
        if done <= self._highest or (now - self._reported_at < _REPORT_SECONDS and not leap):
            return False
        self._reported_at, self._highest = now, done
        return True
