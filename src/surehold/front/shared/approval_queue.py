"""The one queue of questions that wait for a person's answer, for every way in which a person can be asked.

1. A call asks from its own thread and waits there; no lock is held while it waits.
2. A channel shows the question: a form at an MCP client, an editor, the terminal. Without a channel the question is only
   listed, and the review page shows the list. The first answer counts, once.
3. An answer is bound to what was shown. A question whose call has to be made again (`park`) is compared with the new call.
4. A question is withdrawn when its call is cancelled, when no answer comes in time, and when the server ends.
5. The number of waiting calls is limited, since each holds a thread that other calls need. A parked question holds no
   thread; when there are too many of those, the oldest are dropped.
"""

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from surehold.errors import Cancelled, NotFound, PermissionRequired, StaleFile, SureholdError
from surehold.stores.base import PathRecord
from surehold.workspace.access.permission import Approval, ApprovedVersion, PermissionRequest
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import FileReceipt

ANSWER_SECONDS = 600.0
_POLL_SECONDS = 0.1
_MAX_WAITING_CALLS = 16
_MAX_PARKED_QUESTIONS = 256
_MAX_PARKED_BYTES = 128 << 20

Decision = Literal["allow", "always", "refuse"]
ShowQuestion = Callable[[PermissionRequest], Future[Approval]]
"""Shows a question to a person. The future brings the answer, or the error that says why there is none."""


def approval_for(decision: Decision | None, *, note: str = "", contents: Mapping[str, str] | None = None) -> Approval:
    """Return what an answer means: only `allow` and `always` approve."""
    if decision in ("allow", "always"):
        return Approval(allowed=True, always=decision == "always", contents=contents or {}, note=note)
    return Approval(allowed=False, note=note or ("" if decision == "refuse" else "the answer contained no decision"))


def run_on_loop(question: Coroutine[Any, Any, Approval], loop: asyncio.AbstractEventLoop) -> Future[Approval]:
    """Ask by a coroutine of an event loop, from another thread."""
    try:
        return asyncio.run_coroutine_threadsafe(question, loop)
    except RuntimeError:  # the loop has ended
        question.close()
        raise client_gone_error() from None


def client_gone_error() -> PermissionRequired:
    action = "Ask the person, and make the change again if it is wanted."
    return PermissionRequired("The client disconnected before it answered.", reason="client_gone", action=action)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    request: PermissionRequest
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    answer: Future[Approval] = field(default_factory=Future[Approval])
    is_listed: bool = False
    """No channel shows it, so the review page lists it."""
    tool: str = ""
    handle: str = ""
    """Of a parked question: the tool to call again, and what identifies the session that was asked."""
    expires: float = 0.0

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
    ) -> None:
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        self._waiting = dict[str, PendingApproval]()
        self._parked = OrderedDict[str, PendingApproval]()
        self._lock = threading.Lock()
        self._closed = False

    def ask(
        self,
        request: PermissionRequest,
        *,
        show: ShowQuestion | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Approval:
        """Ask at a channel, or only list the question; wait for the answer as long as the call is wanted."""
        question = self._add_question(PendingApproval(request=request, is_listed=show is None))
        try:
            if show is not None:
                if cancelled():
                    raise _cancelled_error()
                question = replace(question, answer=show(request))
            approval = self._wait_for_answer(question, cancelled)
        finally:
            with self._lock:
                del self._waiting[question.id]
            question.answer.cancel()
        # The page has already confirmed an answer that was given there; a channel has not.
        if show is not None and cancelled():
            raise _cancelled_error()
        return approval

    def list_open(self) -> tuple[PendingApproval, ...]:
        """Return the questions that no channel shows, oldest first."""
        with self._lock:
            return tuple(one for one in self._waiting.values() if one.is_listed and not one.answer.done())

    def answer_question(self, question_id: str, approval: Approval) -> None:
        """Answer a listed question; it must still be open."""
        with self._lock:
            question = self._waiting.get(question_id)
        try:
            if question is not None and question.is_listed:
                question.answer.set_result(approval)
                return
        except InvalidStateError:
            pass
        action = "Look at the list: it was answered or withdrawn, or the agent went on."
        raise NotFound("This question is no longer open.", reason="no_such_question", action=action)

    def park(self, request: PermissionRequest, *, tool: str, handle: str) -> str:
        """Keep a question whose call ends now and is made again with the answer; return its id."""
        question = PendingApproval(request=request, tool=tool, handle=handle, expires=self._clock() + self._seconds)
        with self._lock:
            self._parked[question.id] = question
            size = sum(one.size for one in self._parked.values())
            while len(self._parked) > _MAX_PARKED_QUESTIONS or (len(self._parked) > 1 and size > _MAX_PARKED_BYTES):
                _, dropped = self._parked.popitem(last=False)
                size -= dropped.size
        return question.id

    def take_parked(self, question_id: str) -> PendingApproval | None:
        """Return a parked question, once; None when it is no longer open."""
        with self._lock:
            question = self._parked.pop(question_id, None)
        return question if question and self._clock() < question.expires else None

    def close(self) -> None:
        """Withdraw every question: the client has left, or the server ends."""
        self._closed = True

    def _add_question(self, question: PendingApproval) -> PendingApproval:
        with self._lock:
            if self._closed:
                raise _unanswered_error("The server ended before the change was approved.", question.request)
            if len(self._waiting) >= self._limit:
                message, path = "Too many questions are waiting for an answer.", _first_path(question.request)
                action = "Wait until the person has answered some of them, then call again."
                raise PermissionRequired(message, path=path, reason="too_many_questions", action=action)
            self._waiting[question.id] = question
        return question

    def _wait_for_answer(self, question: PendingApproval, cancelled: Callable[[], bool]) -> Approval:
        answer, deadline = question.answer, self._clock() + self._seconds
        while not answer.done():
            with suppress(TimeoutError, CancelledError):
                answer.exception(_POLL_SECONDS)
            reason = None if answer.done() else self._reason_to_withdraw(question.request, deadline, cancelled)
            if reason and answer.cancel():  # an answer that came in this moment counts
                raise reason
        try:
            return answer.result()
        except CancelledError:
            raise client_gone_error() from None

    def _reason_to_withdraw(
        self, request: PermissionRequest, deadline: float, cancelled: Callable[[], bool]
    ) -> SureholdError | None:
        if cancelled():
            return _cancelled_error()
        if self._closed:
            return _unanswered_error("The server ended before the change was approved.", request)
        if self._clock() >= deadline:
            return _unanswered_error(f"No answer came within {self._seconds:g} seconds.", request)
        return None


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
