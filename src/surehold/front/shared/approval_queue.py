"""The one queue of questions that wait for a person's answer, for every way in which a person can be asked.

1. A call asks from its own thread and waits there; no lock is held while it waits.
2. A channel shows the question: a form at an MCP client, an editor, the terminal. The review page shows those that are
   listed: where there is a page, all of them. The first answer counts, once.
3. An answer is bound to what was shown. A question whose call has to be made again (`park`) is compared with the new call.
4. A question is withdrawn when its call is cancelled, when its client is gone, when no answer comes in time, and when the
   server ends. One whose agent has gone stays listed as such, until it is dismissed.
5. The number of waiting calls is limited, since each holds a thread that other calls need: separately for questions that a
   channel shows and for the others. A parked question holds no thread; when there are too many, the oldest are dropped.
   One that is dropped, or whose answer never comes, is told to the ledger.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

from surehold.errors import Cancelled, NotFound, PermissionRequired, StaleFile, SureholdError
from surehold.front.shared.change_text import ChangeText, TextView
from surehold.stores.base import PathRecord
from surehold.workspace.access.permission import AnswerPlace, Approval, ApprovedVersion, PermissionRequest
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import FileReceipt

ANSWER_SECONDS = 600.0
_POLL_SECONDS = 0.1
_MAX_WAITING_CALLS = 16
_MAX_ENDED_QUESTIONS = 32
_MAX_PARKED_QUESTIONS = 256
_MAX_PARKED_BYTES = 128 << 20
_FIRST_VIEW_CHARS = 60_000
"""How much of a change the list of questions shows; the pages show the rest."""

Decision = Literal["allow", "always", "refuse"]
ShowQuestion = Callable[["PendingApproval"], Future[Approval]]
"""Shows a question to a person. The future brings the answer, or the error that says why there is none."""


def approval_for(
    decision: Decision | None,
    *,
    where: AnswerPlace,
    who: str = "",
    note: str = "",
    contents: Mapping[str, str] | None = None,
) -> Approval:
    """Return what an answer means: only `allow` and `always` approve."""
    if decision in ("allow", "always"):
        always = decision == "always"
        return Approval(allowed=True, always=always, contents=contents or {}, note=note, where=where, who=who)
    note = note or ("" if decision == "refuse" else "the answer contained no decision")
    return Approval(allowed=False, note=note, where=where, who=who)


def client_gone_error() -> PermissionRequired:
    action = "Ask the person, and make the change again if it is wanted."
    return PermissionRequired("The client disconnected before it answered.", reason="client_gone", action=action)


def duration_text(seconds: float) -> str:
    """Return how long a question waits, in whole minutes where it is some."""
    minutes, rest = divmod(seconds, 60)
    if minutes and not rest:
        return f"{minutes:g} {'minute' if minutes == 1 else 'minutes'}"
    return f"{seconds:g} {'second' if seconds == 1 else 'seconds'}"


def cannot_show_error(request: PermissionRequest, unseen: int, *, action: str) -> PermissionRequired:
    """Return the refusal of a change that must be shown whole before it can be allowed, and is not."""
    lines = f"{unseen:,} {'line' if unseen == 1 else 'lines'}"
    message = f"{request.why} {lines} of this change cannot be shown here, so it cannot be allowed here."
    return PermissionRequired(message, path=_first_path(request), reason="cannot_be_shown", action=action)


@dataclass(frozen=True, kw_only=True)
class PendingApproval:
    request: PermissionRequest
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    answer: Future[Approval] = field(default_factory=Future[Approval])
    has_channel: bool = False
    """A form, an editor or a terminal shows it."""
    is_listed: bool = False
    """The review page shows it."""
    asked: float = 0.0
    expires: float = 0.0
    """When it was asked, and until when it waits, by the clock of the queue."""
    ended: str = ""
    """Why the agent no longer waits for the answer; empty while it does."""
    opened: set[int] = field(default_factory=set[int])
    """The pages of the change that were opened on the review page."""
    tool: str = ""
    handle: str = ""
    """Of a parked question: the tool to call again, and what identifies the session that was asked."""

    @cached_property
    def text(self) -> ChangeText:
        return ChangeText(self.request.files, self.request.command)

    @cached_property
    def view(self) -> TextView:
        """What the list of questions shows of the change."""
        return self.text.view(_FIRST_VIEW_CHARS)

    @property
    def unseen(self) -> int:
        """How many lines neither the list nor an opened page has shown."""
        return self.text.count_unseen(self.view, self.opened)

    @property
    def size(self) -> int:
        return sum(one.plan.before.size + one.plan.after.size for one in self.request.files)

    def check_same_change(self, request: PermissionRequest) -> None:
        for shown, one in zip(self.request.files, request.files, strict=False):
            ApprovedVersion(shown.plan.before).check(KnownFile(PathRecord(key=one.path), one.plan.before))
        if [_file_outline(one) for one in self.request.files] != [_file_outline(one) for one in request.files]:
            message, path = "This is not the change that was shown for approval.", request.files[0].path
            action = "Make the call again, without the answer."
            raise StaleFile(message, path=path, reason="changed_while_asked", action=action)


class ApprovalQueue:
    """Every question of one server. Safe to use from many threads."""

    def __init__(
        self,
        *,
        seconds: float = ANSWER_SECONDS,
        limit: int = _MAX_WAITING_CALLS,
        clock: Callable[[], float] = time.monotonic,
        note_unanswered: Callable[[PermissionRequest, SureholdError], None] = lambda _, __: None,
    ) -> None:
        """`note_unanswered` records a parked question that ended without an answer; no call is left that could."""
        self._note_unanswered = note_unanswered
        self._timer: threading.Timer | None = None
        self.seconds = seconds
        self._limit = limit
        self._clock = clock
        self._waiting = dict[str, PendingApproval]()
        self._parked = OrderedDict[str, PendingApproval]()
        self._ended = OrderedDict[str, PendingApproval]()
        self._lock = threading.Lock()
        self._closed = False

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
            if show is not None:
                if cancelled():
                    raise _cancelled_error()
                shown = show(question)
                shown.add_done_callback(partial(_pass_on, to=question.answer))
            approval = self._wait_for_answer(question, cancelled, gone)
        finally:
            with self._lock:
                del self._waiting[question.id]
            question.answer.cancel()
            if shown is not None:
                shown.cancel()
        # The page has already confirmed an answer that was given there; a channel has not.
        if approval.where != "page" and cancelled():
            raise _cancelled_error()
        return approval

    def list_open(self) -> tuple[PendingApproval, ...]:
        """Return the questions that the review page shows, oldest first."""
        with self._lock:
            return tuple(one for one in self._waiting.values() if one.is_listed and not one.answer.done())

    def list_ended(self) -> tuple[PendingApproval, ...]:
        """Return the questions whose agent has gone, oldest first."""
        with self._lock:
            return tuple(self._ended.values())

    def find_question(self, question_id: str) -> PendingApproval | None:
        """Return a question that the review page shows, open or ended."""
        return next((one for one in (*self.list_open(), *self.list_ended()) if one.id == question_id), None)

    def dismiss_question(self, question_id: str) -> None:
        """Forget a question whose agent has gone."""
        with self._lock:
            self._ended.pop(question_id, None)

    def waiting_seconds(self, question: PendingApproval) -> tuple[float, float]:
        """Return for how long a question has waited, and for how long it waits yet."""
        now = self._clock()
        return max(now - question.asked, 0.0), max(question.expires - now, 0.0)

    def answer_question(self, question_id: str, approval: Approval, *, where: AnswerPlace = "page") -> None:
        """Answer a listed question; it must still be open."""
        with self._lock:
            question = self._waiting.get(question_id)
        try:
            if question is not None and question.is_listed:
                question.answer.set_result(replace(approval, where=where))
                return
        except InvalidStateError:
            pass
        action = "Look at the list: it was answered or withdrawn, or the agent went on."
        raise NotFound("This question is no longer open.", reason="no_such_question", action=action)

    def park(self, request: PermissionRequest, *, tool: str, handle: str) -> str:
        """Keep a question whose call ends now and is made again with the answer; return its id."""
        question = PendingApproval(request=request, tool=tool, handle=handle, expires=self._clock() + self.seconds)
        dropped = list[PendingApproval]()
        with self._lock:
            self._parked[question.id] = question
            size = sum(one.size for one in self._parked.values())
            while len(self._parked) > _MAX_PARKED_QUESTIONS or (len(self._parked) > 1 and size > _MAX_PARKED_BYTES):
                dropped.append(self._parked.popitem(last=False)[1])
                size -= dropped[-1].size
        self._end_parked(dropped, "Too many questions were waiting for an answer.")
        self._end_overdue()
        return question.id

    def take_parked(self, question_id: str) -> PendingApproval | None:
        """Return a parked question, once; None when it is no longer open."""
        self._end_overdue()
        with self._lock:
            return self._parked.pop(question_id, None)

    def _end_overdue(self) -> None:
        """End the parked questions whose time is over, and come back when that of the next one is."""
        with self._lock:
            now = self._clock()
            overdue = [one for one in self._parked.values() if now >= one.expires]
            for one in overdue:
                del self._parked[one.id]
            following = next(iter(self._parked.values()), None)
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(following.expires - now, self._end_overdue) if following else None
            if self._timer is not None:
                self._timer.daemon = True
                self._timer.start()
        self._end_parked(overdue, f"No answer came within {self.seconds:g} seconds.")

    def _end_parked(self, questions: Sequence[PendingApproval], why: str) -> None:
        for one in questions:
            self._note_unanswered(one.request, _unanswered_error(why, one.request))

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Withdraw every question: the client has left, or the server ends."""
        with self._lock:
            self._closed = True
            parked = list(self._parked.values())
            self._parked.clear()
            if self._timer is not None:
                self._timer.cancel()
        self._end_parked(parked, "The server ended before the change was approved.")

    def _add_question(self, question: PendingApproval) -> None:
        with self._lock:
            if self._closed:
                raise _unanswered_error("The server ended before the change was approved.", question.request)
            if sum(one.has_channel is question.has_channel for one in self._waiting.values()) >= self._limit:
                message, path = "Too many questions are waiting for an answer.", _first_path(question.request)
                action = "Wait until the person has answered some of them, then call again."
                raise PermissionRequired(message, path=path, reason="too_many_questions", action=action)
            self._waiting[question.id] = question

    def _wait_for_answer(
        self, question: PendingApproval, cancelled: Callable[[], bool], gone: Callable[[], bool]
    ) -> Approval:
        answer = question.answer
        while not answer.done():
            with suppress(TimeoutError, CancelledError):
                answer.exception(_POLL_SECONDS)
            reason = None if answer.done() else self._reason_to_withdraw(question, cancelled, gone)
            if reason and answer.cancel():  # an answer that came in this moment counts
                if question.is_listed and not isinstance(reason, Cancelled) and not self._closed:
                    self._keep_ended(replace(question, ended=reason.message))
                raise reason
        try:
            return answer.result()
        except CancelledError:
            raise client_gone_error() from None

    def _keep_ended(self, question: PendingApproval) -> None:
        with self._lock:
            self._ended[question.id] = question
            while len(self._ended) > _MAX_ENDED_QUESTIONS:
                self._ended.popitem(last=False)

    def _reason_to_withdraw(
        self, question: PendingApproval, cancelled: Callable[[], bool], gone: Callable[[], bool]
    ) -> SureholdError | None:
        request = question.request
        if gone():
            return client_gone_error()
        if cancelled():
            return _cancelled_error()
        if self._closed:
            return _unanswered_error("The server ended before the change was approved.", request)
        if self._clock() >= question.expires:
            return _unanswered_error(f"No answer came within {self.seconds:g} seconds.", request)
        return None


def _pass_on(shown: Future[Approval], *, to: Future[Approval]) -> None:
    """Hand the answer of a channel to its question, unless that was answered elsewhere."""
    with suppress(InvalidStateError):
        if shown.cancelled():
            to.cancel()
        elif error := shown.exception():
            to.set_exception(error)
        else:
            to.set_result(shown.result())


def _cancelled_error() -> Cancelled:
    return Cancelled("The call was cancelled while it waited for approval.")


def _unanswered_error(message: str, request: PermissionRequest) -> PermissionRequired:
    action = "Tell the person what you want to change; call again when they can answer."
    return PermissionRequired(message, path=_first_path(request), reason="approval_timeout", action=action)


def _first_path(request: PermissionRequest) -> str | None:
    return request.files[0].path if request.files else None


def _file_outline(one: FileReceipt) -> tuple[object, ...]:
    """Return what makes a change this one: its summary, both versions, what a move overwrites, and the file mode."""
    change = one.change
    kept = change.after.meta.mode if change.after and change.after.meta else None
    displaced = change.displaced.sha256 if change.displaced else ""
    return (one.path, one.summary, one.before_sha256, one.after_sha256, displaced, kept, one.mode)
