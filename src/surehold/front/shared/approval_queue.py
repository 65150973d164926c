"""The one queue of questions that wait for a person's answer, for every way in which a person can be asked.

1. A call asks from its own thread and waits there; no lock is held while it waits.
2. A channel shows the question: a form at an MCP client, an editor, the terminal. The review page shows those that are
   listed: where there is a page, all of them. The first answer counts, once.
3. With a board, questions are in the history: the pages of all processes show and answer them, and what is on the board
   counts. Here are only those that this process waits for.
4. An answer is bound to what was shown. A question whose call has to be made again is parked (`parked_questions`).
5. A question is withdrawn when its call is cancelled, when its client is gone, when no answer comes in time, and when the
   server ends. One whose agent has gone stays listed as such, until it is dismissed.
6. The number of waiting calls is limited, since each holds a thread that other calls need: separately for questions that a
   channel shows and for the others.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from functools import partial

from surehold.errors import Cancelled, NotFound, PermissionRequired, SureholdError
from surehold.front.shared.parked_questions import NoteUnanswered, ParkedQuestions
from surehold.front.shared.pending_approval import (
    PendingApproval,
    ShowQuestion,
    cancelled_error,
    client_gone_error,
    first_path,
    unanswered_error,
)
from surehold.workspace.access.permission import AnswerPlace, Approval, PermissionRequest
from surehold.workspace.access.question_board import PostedQuestion, QuestionBoard, QuestionFacts

ANSWER_SECONDS = 600.0
_POLL_SECONDS = 0.1
_LOOK_SECONDS = 0.25
"""How often the board is looked at for answers that were given elsewhere."""
_RENEW_SECONDS = 3.0
_MAX_WAITING_CALLS = 16
_MAX_ENDED_QUESTIONS = 32
_MAX_SEEN_QUESTIONS = 64


class ApprovalQueue:
    """Every question of one server. Safe to use from many threads."""

    def __init__(
        self,
        *,
        seconds: float = ANSWER_SECONDS,
        limit: int = _MAX_WAITING_CALLS,
        clock: Callable[[], float] = time.monotonic,
        note_unanswered: NoteUnanswered = lambda _, __: None,
        board: QuestionBoard | None = None,
        outlives_us: bool = False,
    ) -> None:
        """`note_unanswered` records a question that ended without an answer when no call is left that could.

        `board`: where all processes of the workspace find the questions. `outlives_us`: parked ones stay there when this
        process ends, since others go on.
        """
        self.seconds = seconds
        self._limit = limit
        self._clock = clock
        self._board = board
        self._waiting = dict[str, PendingApproval]()
        self._posted = set[str]()
        self._next_look = self._next_renewal = 0.0
        self._ended = OrderedDict[str, PendingApproval]()
        self._seen = OrderedDict[str, PendingApproval]()
        self._lock = threading.Lock()
        self._closed = False
        self.parked = ParkedQuestions(
            seconds=seconds, clock=clock, note_unanswered=note_unanswered, board=board, outlives_us=outlives_us
        )

    def ask(
        self,
        request: PermissionRequest,
        *,
        show: ShowQuestion | None = None,
        listed: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
        gone: Callable[[], bool] = lambda: False,
    ) -> Approval:
        """Ask at a channel, on the page, or at both; wait for the answer as long as the call is wanted."""
        now = self._clock()
        question = PendingApproval(
            request=request,
            has_channel=show is not None,
            is_listed=listed or show is None,
            asked=now,
            expires=now + self.seconds,
        )
        self._add_question(question)
        shown: Future[Approval] | None = None
        try:
            self._post(question)
            if show is not None:
                if cancelled():
                    raise cancelled_error()
                shown = show(question)
                shown.add_done_callback(partial(_pass_on, to=question.answer))
            approval = self._wait_for_first(question, cancelled, gone)
        finally:
            with self._lock:
                del self._waiting[question.id]
            question.answer.cancel()
            if shown is not None:
                shown.cancel()
            with suppress(SureholdError):
                self._take_off(question)
        # The page has already confirmed an answer that was given there; a channel has not.
        if approval.where != "page" and cancelled():
            raise cancelled_error()
        return approval

    def list_own(self) -> tuple[PendingApproval, ...]:
        """Return the listed questions that calls of this process wait with, oldest first."""
        with self._lock:
            return tuple(one for one in self._waiting.values() if one.is_listed and not one.answer.done())

    def list_open(self) -> tuple[PendingApproval, ...]:
        """Return the questions that the review page shows, oldest first: those of all processes."""
        return tuple(one for one in self.list_shown() if not one.ended)

    def list_shown(self) -> tuple[PendingApproval, ...]:
        """Return the open questions, and after them those whose agent has gone; each oldest first."""
        posted = list[PendingApproval]()
        if self._board is not None:
            self.parked.end_left()
            posted = [self._remember_posted(one) for one in self._board.list_shown()]
        with self._lock:
            own = [one for one in self._waiting.values() if one.is_listed and not one.answer.done()]
            own = [one for one in own if one.id not in self._posted]
            ended = list(self._ended.values())
        return tuple(sorted((*own, *ended, *posted), key=lambda one: (bool(one.ended), one.asked)))

    def shown_mark(self) -> str:
        """Return a text that differs when another question is shown."""
        with self._lock:
            own = [one for one in self._waiting.values() if one.is_listed and not one.answer.done()]
            names = [one.id for one in own if one.id not in self._posted] + [f"-{one}" for one in self._ended]
        return " ".join([*names, *(self._board.mark() if self._board is not None else ())])

    def count_unposted(self) -> int:
        """Count the open questions that only this process knows of."""
        return sum(one.id not in self._posted for one in self.list_own())

    def find_question(self, question_id: str) -> PendingApproval | None:
        """Return a question that the review page shows, open or ended."""
        with self._lock:
            own = self._waiting.get(question_id) or self._ended.get(question_id)
            is_own = own is not None and question_id not in self._posted
        if is_own or self._board is None:
            return own if (own is not None and own.is_listed and not own.answer.done()) or (own and own.ended) else None
        found = self._board.find_shown(question_id)
        return self._remember_posted(found) if found else None

    def note_page(self, question: PendingApproval, page: int) -> None:
        """Remember that a person opened a page of a change."""
        question.opened.add(page)
        if self._board is not None:
            self._board.note_page(question.id, page)

    def dismiss_question(self, question_id: str) -> None:
        """Forget a question whose agent has gone."""
        with self._lock:
            self._ended.pop(question_id, None)
        if self._board is not None and (found := self._board.find_shown(question_id)) and found.facts.ended:
            self._board.take_answer(question_id)

    def waiting_seconds(self, question: PendingApproval) -> tuple[float, float]:
        """Return for how long a question has waited, and for how long it waits yet."""
        now = self._clock()
        return max(now - question.asked, 0.0), max(question.expires - now, 0.0)

    def answer_question(self, question_id: str, approval: Approval, *, where: AnswerPlace = "page") -> None:
        """Answer a question that is shown; it must still be open."""
        approval = replace(approval, where=where)
        with self._lock:
            question, is_posted = self._waiting.get(question_id), question_id in self._posted
        if self._board is not None and (question is None or is_posted):
            is_first = self._board.answer(question_id, approval)
        else:
            is_first = question is not None and question.is_listed
        try:
            if is_first and question is not None:
                question.answer.set_result(approval)
        except InvalidStateError:
            is_first = is_posted  # then the call sees what is on the board
        if not is_first:
            action = "Look at the list: it was answered or withdrawn, or the agent went on."
            raise NotFound("This question is no longer open.", reason="no_such_question", action=action)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Withdraw every question: the client has left, or the server ends."""
        with self._lock:
            self._closed = True
        self.parked.close()

    def _add_question(self, question: PendingApproval) -> None:
        with self._lock:
            if self._closed:
                raise unanswered_error("The server ended before the change was approved.", question.request)
            if sum(one.has_channel is question.has_channel for one in self._waiting.values()) >= self._limit:
                message, path = "Too many questions are waiting for an answer.", first_path(question.request)
                action = "Wait until the person has answered some of them, then call again."
                raise PermissionRequired(message, path=path, reason="too_many_questions", action=action)
            self._waiting[question.id] = question

    def _wait_for_first(
        self, question: PendingApproval, cancelled: Callable[[], bool], gone: Callable[[], bool]
    ) -> Approval:
        """Wait for an answer; one that is on the board came before it, and was confirmed to a person."""
        try:
            approval = self._wait_for_answer(question, cancelled, gone)
        except SureholdError:
            if earlier := self._take_off(question):
                return earlier
            raise
        return self._take_off(question) or approval

    def _wait_for_answer(
        self, question: PendingApproval, cancelled: Callable[[], bool], gone: Callable[[], bool]
    ) -> Approval:
        answer = question.answer
        while not answer.done():
            with suppress(TimeoutError, CancelledError):
                answer.exception(_POLL_SECONDS)
            self._look_at_board()
            reason = None if answer.done() else self._reason_to_withdraw(question, cancelled, gone)
            if reason and answer.cancel():  # an answer that came in this moment counts
                if approval := self._withdraw(question, reason):
                    return approval
                raise reason
        try:
            return answer.result()
        except CancelledError:
            raise client_gone_error() from None

    def _withdraw(self, question: PendingApproval, reason: SureholdError) -> Approval | None:
        """Show a question as one whose agent has gone, where it was listed; return an answer that the board has already."""
        is_kept = question.is_listed and not isinstance(reason, Cancelled) and not self._closed
        ended = replace(question, ended=reason.message)
        with self._lock:
            is_posted = question.id in self._posted
            if is_kept and not is_posted:
                self._ended[question.id] = ended
                while len(self._ended) > _MAX_ENDED_QUESTIONS:
                    self._ended.popitem(last=False)
        if not is_posted or self._board is None:
            return None
        with suppress(SureholdError):  # who cannot ask the board has no answer
            if not (is_kept and self._board.end(question.id, _facts_of(ended))):
                return self._take_off(question)
            self._posted.discard(question.id)
        return None

    def _post(self, question: PendingApproval) -> None:
        if self._board is None:
            return
        self.parked.end_left()
        if self._board.post(question.id, question.request, _facts_of(question), seconds=self.seconds):
            with self._lock:
                self._posted.add(question.id)

    def _take_off(self, question: PendingApproval) -> Approval | None:
        """Take a question off the board; return the answer that was given there, if there is one."""
        with self._lock:
            if self._board is None or question.id not in self._posted:
                return None
            self._posted.discard(question.id)
        return self._board.take_answer(question.id)

    def _look_at_board(self) -> None:
        """Take the answers that were given elsewhere: for all questions of this process, by one of its calls."""
        now = self._clock()
        with self._lock:
            if self._board is None or not self._posted or now < self._next_look:
                return
            self._next_look, names = now + _LOOK_SECONDS, tuple(self._posted)
            renews = now >= self._next_renewal
            self._next_renewal = now + _RENEW_SECONDS if renews else self._next_renewal
        with suppress(SureholdError):  # a database that is away now is asked again
            if renews:
                self._board.renew(names)
            for name, approval in self._board.read_answers(names).items():
                with suppress(InvalidStateError, KeyError):
                    self._waiting[name].answer.set_result(approval)

    def _remember_posted(self, one: PostedQuestion) -> PendingApproval:
        """Return a question of the board: the same object each time, since working out its text takes long."""
        now = self._clock()
        with self._lock:
            known = self._waiting.get(one.id) or self._seen.get(one.id)
            if known is None or known.ended != one.facts.ended:
                known = PendingApproval(
                    request=one.request,
                    id=one.id,
                    has_channel=one.facts.has_channel,
                    is_listed=True,
                    asked=now - one.age,
                    expires=now + one.left,
                    ended=one.facts.ended,
                )
                self._seen[one.id] = known
                while len(self._seen) > _MAX_SEEN_QUESTIONS:
                    self._seen.popitem(last=False)
            known.opened.update(one.opened)
            return known

    def _reason_to_withdraw(
        self, question: PendingApproval, cancelled: Callable[[], bool], gone: Callable[[], bool]
    ) -> SureholdError | None:
        request = question.request
        if gone():
            return client_gone_error()
        if cancelled():
            return cancelled_error()
        if self._closed:
            return unanswered_error("The server ended before the change was approved.", request)
        if self._clock() >= question.expires:
            return unanswered_error(f"No answer came within {self.seconds:g} seconds.", request)
        return None


def _facts_of(question: PendingApproval) -> QuestionFacts:
    return QuestionFacts(has_channel=question.has_channel, ended=question.ended)


def _pass_on(shown: Future[Approval], *, to: Future[Approval]) -> None:
    """Hand the answer of a channel to its question, unless that was answered elsewhere."""
    with suppress(InvalidStateError):
        if shown.cancelled():
            to.cancel()
        elif error := shown.exception():
            to.set_exception(error)
        else:
            to.set_result(shown.result())
