"""Questions whose call has ended and is made again with the answer: they hold no thread.

1. A parked question is taken once. Where there is a board it is there, and any process may take it.
2. When there are too many, the oldest are dropped. One that is dropped, or whose answer never comes, is told to the ledger;
   so are the questions of processes that were killed, by whoever finds them.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress

from surehold.errors import SureholdError
from surehold.front.shared.pending_approval import PendingApproval, unanswered_error
from surehold.workspace.access.permission import PermissionRequest
from surehold.workspace.access.question_board import PostedQuestion, QuestionBoard, QuestionFacts

NoteUnanswered = Callable[[PermissionRequest, SureholdError], None]

_MAX_PARKED_QUESTIONS = 256
_MAX_PARKED_BYTES = 128 << 20
_SLACK_SECONDS = 0.2
"""The board goes by the clock of the history."""
_SERVER_ENDED = "The server ended before the change was approved."
_ENDED_TOO_EARLY = "The server ended after a person answered and before the answer reached it, so nothing was changed."
_TOO_MANY = "Too many questions were waiting for an answer."


class ParkedQuestions:
    """The parked questions of one server. Safe to use from many threads."""

    def __init__(
        self,
        *,
        seconds: float,
        clock: Callable[[], float],
        note_unanswered: NoteUnanswered,
        board: QuestionBoard | None,
        outlives_us: bool,
    ) -> None:
        self._seconds, self._clock, self._note_unanswered = seconds, clock, note_unanswered
        self._board, self._outlives_us = board, outlives_us
        self._kept = OrderedDict[str, PendingApproval]()
        """Those that are not on the board."""
        self._posted = OrderedDict[str, float]()
        """When the time of those that this process posted is over."""
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def park(self, request: PermissionRequest, *, tool: str, handle: str) -> str:
        """Keep a question whose call ends now and is made again with the answer; return its id."""
        question = PendingApproval(request=request, tool=tool, handle=handle, expires=self._clock() + self._seconds)
        dropped = list[PendingApproval]()
        if self._board is not None and self._post(question, self._board):
            with self._lock:
                self._posted[question.id] = question.expires + _SLACK_SECONDS
            self._end_posted(self._board.take_surplus(_MAX_PARKED_QUESTIONS), _TOO_MANY)
        else:
            with self._lock:
                self._kept[question.id] = question
                size = sum(one.size for one in self._kept.values())
                while len(self._kept) > _MAX_PARKED_QUESTIONS or (len(self._kept) > 1 and size > _MAX_PARKED_BYTES):
                    dropped.append(self._kept.popitem(last=False)[1])
                    size -= dropped[-1].size
        self._end_kept(dropped, _TOO_MANY)
        self._end_overdue()
        return question.id

    def take(self, question_id: str) -> PendingApproval | None:
        """Return a parked question, once; None when it is no longer open."""
        self._end_overdue()
        with self._lock:
            kept = self._kept.pop(question_id, None)
            self._posted.pop(question_id, None)
        if kept is not None or self._board is None:
            return kept
        found = self._board.take_parked(question_id)
        if found is None:
            return None
        return PendingApproval(request=found.request, id=found.id, tool=found.facts.tool, handle=found.facts.handle)

    def end_left(self) -> int:
        """Tell the ledger of the questions on the board that no call waits for any more; return how many there were."""
        if self._board is None:
            return 0
        left_over = self._board.take_left()
        for one in left_over:
            overdue = f"No answer came within {self._seconds:g} seconds."
            left = _ENDED_TOO_EARLY if one.is_answered else _SERVER_ENDED
            self._end_posted([one], overdue if one.facts.tool else left)
        return len(left_over)

    def close(self) -> None:
        """End what this process keeps, and what it posted, unless others go on with that."""
        with self._lock:
            kept, posted = list(self._kept.values()), list(self._posted)
            self._kept.clear()
            self._posted.clear()
            if self._timer is not None:
                self._timer.cancel()
        self._end_kept(kept, _SERVER_ENDED)
        if self._board is not None and not self._outlives_us:
            with suppress(SureholdError):
                self._end_posted([one for name in posted if (one := self._board.take_parked(name))], _SERVER_ENDED)

    def _post(self, question: PendingApproval, board: QuestionBoard) -> bool:
        facts = QuestionFacts(tool=question.tool, handle=question.handle)
        return board.post(question.id, question.request, facts, seconds=self._seconds, kind="parked")

    def _end_overdue(self) -> None:
        """End the parked questions whose time is over, and come back when that of the next one is."""
        with self._lock:
            now = self._clock()
            overdue = [one for one in self._kept.values() if now >= one.expires]
            for one in overdue:
                del self._kept[one.id]
            over = [name for name, expires in self._posted.items() if now >= expires]
            for name in over:
                del self._posted[name]
            moments = [one.expires for one in self._kept.values()] + list(self._posted.values())
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(min(moments) - now, self._end_overdue) if moments else None
            if self._timer is not None:
                self._timer.daemon = True
                self._timer.start()
        self._end_kept(overdue, f"No answer came within {self._seconds:g} seconds.")
        if over:
            with suppress(SureholdError):  # another process finds them later
                self.end_left()

    def _end_kept(self, questions: Iterable[PendingApproval], why: str) -> None:
        for one in questions:
            self._note_unanswered(one.request, unanswered_error(why, one.request))

    def _end_posted(self, questions: Iterable[PostedQuestion], why: str) -> None:
        for one in questions:
            self._note_unanswered(one.request, unanswered_error(why, one.request))
