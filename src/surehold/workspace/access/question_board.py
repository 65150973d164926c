"""The questions of a workspace as all of its processes see them: posted by one, shown and answered by any.

1. What is asked is written down whole, so an answer given elsewhere is about exactly what was shown there.
2. The first answer counts. Who takes a question away takes its answer along.
3. Questions about very large changes, and those of commands, stay with the process that asks.
"""

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace

from surehold.stores.owner import Owner
from surehold.stores.questions import NewQuestion, QuestionKind, QuestionRecords, StoredQuestion
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.access.question_document import pack_request, unpack_request

_MAX_POSTED_BYTES = 64 << 20
_MAX_REMEMBERED = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFacts:
    """What is known about a question beside what is asked."""

    has_channel: bool = False
    """A form, an editor or a terminal shows it too."""
    tool: str = ""
    handle: str = ""
    """Of a parked question: the tool to call again, and what identifies the session that was asked."""
    ended: str = ""
    """Why its agent no longer waits."""

    def to_text(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value})


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedQuestion:
    """A question of any process, as it is shown."""

    id: str
    request: PermissionRequest
    facts: QuestionFacts
    age: float
    left: float
    opened: frozenset[int]
    is_answered: bool
    """A person answered it, and its process has not taken the answer."""


class QuestionBoard:
    """Posts, finds and answers questions. Safe to use from many threads."""

    def __init__(self, records: QuestionRecords, owner: Callable[[], Owner]) -> None:
        self._records, self._owner = records, owner
        self._lock = threading.Lock()
        self._requests = OrderedDict[str, PermissionRequest]()

    def post(
        self,
        question_id: str,
        request: PermissionRequest,
        facts: QuestionFacts,
        *,
        seconds: float,
        kind: QuestionKind = "waiting",
    ) -> bool:
        """Let all processes know of a question; False for one that stays with its process."""
        size = sum(one.plan.before.size + one.plan.after.size for one in request.files)
        if request.command is not None or size > _MAX_POSTED_BYTES:
            return False
        body = pack_request(request)
        new = NewQuestion(id=question_id, kind=kind, owner=self._owner(), facts=facts.to_text(), body=body)
        self._records.add(new, seconds=seconds)
        return True

    def list_shown(self) -> list[PostedQuestion]:
        """Return the questions that wait for an answer or whose agent has gone, oldest first."""
        found = (one for one in self._records.list_all() if one.is_open or one.kind == "ended")
        return [posted for one in found if (posted := self._read(one))]

    def mark(self) -> list[str]:
        """Return words that differ when the questions that are shown do."""
        rows = self._records.list_all()
        return [one.id if one.is_open else f"-{one.id}" for one in rows if one.is_open or one.kind == "ended"]

    def count_open(self) -> int:
        return sum(one.is_open for one in self._records.list_all())

    def find_shown(self, question_id: str) -> PostedQuestion | None:
        """Return a question that waits or whose agent has gone."""
        found = self._records.find(question_id)
        return self._read(found) if found and (found.is_open or found.kind == "ended") else None

    def note_page(self, question_id: str, page: int) -> None:
        self._records.note_page(question_id, page)

    def answer(self, question_id: str, approval: Approval) -> bool:
        """Answer a question that waits; False if it was answered or withdrawn before."""
        found = self._records.find(question_id)
        return found is not None and found.is_open and self._records.answer(question_id, _answer_text(approval))

    def read_answers(self, question_ids: Collection[str]) -> dict[str, Approval]:
        """Return the answers to some questions that were answered."""
        found = self._records.read_answers(question_ids)
        return {one: _approval_of(answer) for one, answer in found.items() if answer}

    def renew(self, question_ids: Collection[str]) -> None:
        self._records.renew(question_ids)

    def end(self, question_id: str, facts: QuestionFacts) -> bool:
        """Show a question as one whose agent has gone; False if it was answered before."""
        return self._records.end(question_id, facts.to_text())

    def take_answer(self, question_id: str) -> Approval | None:
        """Take a question away; return the answer that was given before, if there was one."""
        with self._lock:
            self._requests.pop(question_id, None)
        taken = self._records.take(question_id)
        return _approval_of(taken.answer) if taken and taken.answer else None

    def take_parked(self, question_id: str) -> PostedQuestion | None:
        """Take a question away whose call is made again; None if it is gone, or its time is over."""
        found = self._records.find(question_id)
        return self._take(found) if found and found.kind == "parked" and not found.is_overdue else None

    def take_left(self) -> list[PostedQuestion]:
        """Take away what no call waits for: questions of processes that ended, and calls that were not made again in time."""
        left = [one for one in self._records.list_all() if one.is_orphan or one.is_overdue]
        return [taken for one in left if (taken := self._take(one))]

    def take_surplus(self, limit: int) -> list[PostedQuestion]:
        """Take away the oldest parked questions that are more than so many."""
        parked = [one for one in self._records.list_all() if one.kind == "parked"]
        return [taken for one in parked[: max(len(parked) - limit, 0)] if (taken := self._take(one))]

    def _take(self, found: StoredQuestion) -> PostedQuestion | None:
        posted, taken = self._read(found), self._records.take(found.id)
        with self._lock:
            self._requests.pop(found.id, None)
        return replace(posted, is_answered=bool(taken.answer)) if posted and taken else None

    def _read(self, found: StoredQuestion) -> PostedQuestion | None:
        """Return a question with what is asked; None if it goes in this moment."""
        with self._lock:
            request = self._requests.get(found.id)
        if request is None:
            body = self._records.read_body(found.id)
            if body is None:
                return None
            request = unpack_request(body)
            with self._lock:
                self._requests[found.id] = request
                while len(self._requests) > _MAX_REMEMBERED:
                    self._requests.popitem(last=False)
        facts = QuestionFacts(**json.loads(found.facts))
        return PostedQuestion(
            id=found.id,
            request=request,
            facts=facts,
            age=found.age,
            left=max(found.left, 0.0),
            opened=frozenset(found.opened),
            is_answered=bool(found.answer),
        )


def _answer_text(approval: Approval) -> str:
    """Return an answer as text; the word makes it another one than the same answer of another person."""
    said = {**asdict(approval), "contents": dict(approval.contents), "word": secrets.token_hex(8)}
    if not approval.left_out:
        del said["left_out"]
    return json.dumps(said)


def _approval_of(answer: str) -> Approval:
    said = json.loads(answer)
    del said["word"]
    left_out = tuple(said.pop("left_out", ()))
    return Approval(**said, left_out=left_out)
