"""How time is taken: a baseline and its subject in turns, so that a noisy machine disturbs both alike."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Work = Callable[[int], object]
"""Does one repetition; it is told its number, the warm-up being 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The seconds of both sides, repetition by repetition."""

    baseline: list[float]
    subject: list[float]

    @property
    def ratio(self) -> float:
        """The median of one side over the median of the other."""
        return median(self.subject) / median(self.baseline)

    @property
    def note(self) -> str:
        one, other = median(self.baseline), median(self.subject)
        return f"{one * 1e3:.2f} → {other * 1e3:.2f} ms, median of {len(self.subject)}"


def interleave(baseline: Work, subject: Work, *, repeat: int) -> Pair:
    """Run both sides in turns, after one warm-up each that does not count."""
    taken = Pair(baseline=[], subject=[])
    for number in range(repeat + 1):
        one, other = seconds(baseline, number), seconds(subject, number)
        if number:
            taken.baseline.append(one)
            taken.subject.append(other)
    return taken


def seconds(work: Work, number: int) -> float:
    start = time.perf_counter()
    work(number)
    return time.perf_counter() - start
