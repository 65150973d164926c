"""The cancel token of a turn: running work notices it, and open questions are withdrawn."""

import asyncio
import threading
from typing import Any


class CancelToken:
    """One turn's brake. It is pulled on the loop, and seen from any thread."""

    def __init__(self) -> None:
        self._pulled = threading.Event()
        self._questions = set[asyncio.Task[Any]]()

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is to end; no change begins any more."""
        return self._pulled.is_set()

    def cancel(self) -> None:
        """Stop; a question that nobody answered yet is answered by this."""
        self._pulled.set()
        for question in self._questions:
            question.cancel()

    def track_question(self) -> None:
        """Take the running task for a question that can be withdrawn."""
        question = asyncio.current_task()
        assert question is not None
        self._questions.add(question)
        question.add_done_callback(self._questions.discard)
        if self.is_cancelled:
            question.cancel()
