"""Keeps the approval questions that wait for the person at the review page."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from surehold.errors import Cancelled, NotFound, PermissionRequired
from surehold.workspace.access.permission import Approval, PermissionRequest

ANSWER_SECONDS = 600.0
"""Seconds until a question that nobody answers is given up."""
_POLL_SECONDS = 0.2
_MAX_OPEN_QUESTIONS = 16
"""So many may wait at once: each holds a thread of the server, which other calls need too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A change that waits for a yes."""

    id: str
    request: PermissionRequest
    answered: threading.Event = field(default_factory=threading.Event)
    answers: list[Approval] = field(default_factory=list[Approval])


class PendingApprovals:
    """Asks whoever looks at the page, and waits. Safe from many threads."""

    def __init__(self, *, patience: float = ANSWER_SECONDS) -> None:
        self._patience = patience
        self._open = dict[str, PendingApproval]()
        self._lock = threading.Lock()
        self._closed = False

    def __call__(self, request: PermissionRequest) -> Approval:
        """Ask, and wait for the answer."""
        return self.ask_person(request, cancelled=lambda: False)

    def ask_person(self, request: PermissionRequest, *, cancelled: Callable[[], bool]) -> Approval:
        """Ask, and wait for the answer, as long as the change is still wanted."""
        question = self._open_question(request)
        try:
            waited = 0.0
            while not question.answered.wait(_POLL_SECONDS):
                waited += _POLL_SECONDS
                gone, over = cancelled(), self._closed or waited >= self._patience
                if not (gone or over) or not self._take_back(question):
                    continue  # one that is not open any more was answered in this moment
                if gone:
                    raise Cancelled("The call was cancelled while somebody was asked.")
                raise _unanswered_error(request, "the server ended" if self._closed else "nobody answered")
            return question.answers[0]
        finally:
            self._take_back(question)

    def list_open(self) -> tuple[PendingApproval, ...]:
        """Return what waits, oldest first."""
        with self._lock:
            return tuple(self._open.values())

    def answer_question(self, question_id: str, approval: Approval) -> PendingApproval:
        """Answer one; it must still be open."""
        with self._lock:
            question = self._open.pop(question_id, None)
        if question is None:
            raise NotFound(
                "This question is not open any more.",
                reason="no_such_question",
                action="Look at the list: it was answered, given up, or the agent went on.",
            )
        question.answers.append(approval)
        question.answered.set()
        return question

    def close(self) -> None:
        """Give up what waits; nothing of it is written."""
        self._closed = True

    def _take_back(self, question: PendingApproval) -> bool:
        """Take a question back; False when it is not open any more."""
        with self._lock:
            return self._open.pop(question.id, None) is not None

    def _open_question(self, request: PermissionRequest) -> PendingApproval:
        question = PendingApproval(id=secrets.token_urlsafe(12), request=request)
        with self._lock:
            if self._closed:
                raise _unanswered_error(request, "the server ended")
            if len(self._open) >= _MAX_OPEN_QUESTIONS:
                raise PermissionRequired(
                    "Too many questions wait for an answer already.",
                    path=request.files[0].path,
                    reason="too_many_questions",
                    action="Wait until the person has answered some of them on the review page, then call again.",
                )
            self._open[question.id] = question
        return question


def _unanswered_error(request: PermissionRequest, why: str) -> PermissionRequired:
    return PermissionRequired(
        f"{request.why[:-1]}, and {why}.",
        path=request.files[0].path,
        reason="approval_timeout",
        action="Ask a person to answer on the review page, and call again.",
    )
