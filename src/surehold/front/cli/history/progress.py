"""A line on the terminal while a command works for long: what it does, for how long, and how far it is."""

import time
from collections.abc import Iterable, Iterator
from threading import Event, Thread
from typing import Self, TypeVar

from surehold.front.cli.output import Output, OutputFailed

T = TypeVar("T")

_DELAY_SECONDS = 1.0
_EVERY_SECONDS = 0.5


class ProgressLine:
    """Shows on the error stream of a terminal, and nowhere else, that a command is at work; it leaves no trace."""

    def __init__(self, err: Output, what: str, *, delay: float = _DELAY_SECONDS) -> None:
        """Take what is done, in words; work that takes less than `delay` seconds shows nothing."""
        self._err, self._what, self._delay = err, what, delay
        self._done, self._ended = 0, Event()
        self._shown = 0
        self._thread = Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        if self._err.is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, and show how many there were."""
        for item in items:
            yield item
            self._done += 1

    def _show(self) -> None:
        began, pause = time.monotonic(), self._delay
        try:
            while not self._ended.wait(pause):
                done = f", {self._done:,} done" if self._done else ""
                self._write(f"{self._what} … {time.monotonic() - began:.0f} s{done}")
                pause = _EVERY_SECONDS
            self._write("")
        except OutputFailed:
            return

    def _write(self, text: str) -> None:
        if not (text or self._shown):
            return
        text = text[: max(self._err.columns - 1, 0)] if self._err.columns else text
        with self._err.guard_stream() as stream:
            stream.write(f"\r{text.ljust(self._shown)}" if text else f"\r{' ' * self._shown}\r")
            stream.flush()
        self._shown = len(text)
