"""The process that matches regular expressions for us: Python's `re` cannot be interrupted, but a process can be killed."""

import json
import re
import select
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from surehold.errors import DiskFailed
from surehold.search import regex_child
from surehold.search.deadline import Deadline
from surehold.search.engine import searched_bytes
from surehold.search.query import Search
from surehold.search.regex import translate
from surehold.search.ripgrep.errors import invalid_regex_error

_POLL_MS = 25


class RegexWorker:
    """Searches one file after the other for one expression."""

    def __init__(self, search: Search, budget: Deadline, *, whole: bool = False) -> None:
        self._expression = translate(
            search.query, multiline=search.multiline, dot_all=search.dot_all, look_around=search.look_around
        )
        self._whole = whole
        self._flags = 0 if search.case_sensitive else int(re.IGNORECASE)
        self._multiline = search.multiline
        self._budget = budget
        self._child: subprocess.Popen[bytes] | None = None
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()

    def find(self, data: bytes) -> list[int]:
        """Return where the matches in a file begin."""
        return self._ask(data)

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where the matches in a file begin and end; for a worker that was made for whole ones."""
        return [(start, end) for start, end in self._ask(data)]

    def _ask(self, data: bytes) -> list[Any]:
        child = self._started()
        assert child.stdin is not None
        text = searched_bytes(data)
        try:
            child.stdin.write(b"%d\n" % len(text))
            child.stdin.write(text)
            child.stdin.flush()
        except BrokenPipeError:
            pass  # it has said why
        answer = json.loads(self._answer(child) or b'{"error": "the matcher died"}')
        if "error" in answer:
            raise invalid_regex_error(str(answer["error"]))
        self._done += 1
        return answer["offsets"]

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._child is None:
            try:
                self._child = subprocess.Popen(  # noqa: S603 - our own file, in our own interpreter
                    [sys.executable, "-I", "-S", regex_child.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise DiskFailed(f"Python does not start: {error.strerror}.", reason="search_failed") from error
            assert self._child.stdin is not None
            header = [self._expression, self._flags, self._multiline, self._whole]
            self._child.stdin.write(json.dumps(header).encode() + b"\n")
        return self._child

    def _answer(self, child: "subprocess.Popen[bytes]") -> bytes:
        assert child.stdout is not None
        poll = select.poll()
        poll.register(child.stdout, select.POLLIN | select.POLLHUP)
        while not poll.poll(_POLL_MS):
            if self._budget.seconds_left < 0:
                self._budget.raise_timeout(self._done, "files were searched", reason="regex_budget")
            self._budget.check(self._done, None, "files searched")
        return child.stdout.readline()
