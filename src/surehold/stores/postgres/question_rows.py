"""Questions that wait for a person, as rows; nothing of them is waited for, since no file depends on them."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from surehold.stores.ledger_entries import owner_from_text, owner_text, to_key
from surehold.stores.questions import FORGOTTEN_SECONDS, MAX_ENDED_QUESTIONS, NewQuestion, StoredQuestion

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from surehold.stores.postgres.database import PostgresDatabase

_FACTS = (
    "id, kind, owner, facts, extract(epoch FROM the_moment(%(at)s) - asked)::float8,"
    " extract(epoch FROM expires - the_moment(%(at)s))::float8,"
    " extract(epoch FROM the_moment(%(at)s) - renewed)::float8, opened, answer"
)
_NAMED = "ws = %(ws)s AND id = %(id)s"
_ADD = (
    "WITH forgotten AS (DELETE FROM questions WHERE ws = %(ws)s"
    " AND expires < the_moment(%(at)s) - make_interval(secs => %(forgotten)s))"
    " INSERT INTO questions (ws, id, kind, owner, asked, expires, renewed, facts, body)"
    " SELECT %(ws)s, %(id)s, %(kind)s, %(owner)s, now, now + make_interval(secs => %(seconds)s), now, %(facts)s, %(body)s"
    " FROM the_moment(%(at)s) AS now ON CONFLICT DO NOTHING"
)
_END = (
    "WITH surplus AS (DELETE FROM questions WHERE ws = %(ws)s AND kind = 'ended' AND number <= (SELECT number"
    " FROM questions WHERE ws = %(ws)s AND kind = 'ended' ORDER BY number DESC OFFSET %(most)s LIMIT 1))"
    " UPDATE questions SET kind = 'ended', facts = %(facts)s WHERE ws = %(ws)s AND id = %(id)s AND answer = ''"
    " AND (kind = 'waiting' OR (kind = 'ended' AND facts = %(facts)s))"
)


class QuestionRows:
    """The questions of one workspace; `QuestionRecords` says what its methods promise."""

    def __init__(self, database: "PostgresDatabase", ws: int, *, clock: "Callable[[], datetime] | None" = None) -> None:
        """`clock` instead of the database's own, for tests."""
        self._database, self._ws, self._clock = database, ws, clock

    def add(self, question: NewQuestion, *, seconds: float) -> None:
        facts = {"id": question.id, "kind": question.kind, "owner": owner_text(question.owner), "facts": question.facts}
        limits = {"seconds": seconds, "forgotten": FORGOTTEN_SECONDS, "body": question.body}
        self._database.change(_ADD, self._values(**facts, **limits))

    def list_all(self) -> tuple[StoredQuestion, ...]:
        select = f"SELECT {_FACTS} FROM questions WHERE ws = %(ws)s ORDER BY number"  # noqa: S608 - constants
        return tuple(map(_question_of, self._database.rows(select, self._values())))

    def find(self, question_id: str) -> StoredQuestion | None:
        rows = self._database.rows(f"SELECT {_FACTS} FROM questions WHERE {_NAMED}", self._values(id=question_id))  # noqa: S608 - constants
        return _question_of(rows[0]) if rows else None

    def read_body(self, question_id: str) -> bytes | None:
        rows = self._database.rows(f"SELECT body FROM questions WHERE {_NAMED}", self._values(id=question_id))  # noqa: S608 - constants
        return rows[0][0] if rows else None

    def read_answers(self, question_ids: Collection[str]) -> dict[str, str]:
        select = "SELECT id, answer FROM questions WHERE ws = %(ws)s AND id = ANY(%(ids)s)"
        return dict(self._database.rows(select, self._values(ids=[*question_ids])))

    def renew(self, question_ids: Collection[str]) -> None:
        update = "UPDATE questions SET renewed = the_moment(%(at)s) WHERE ws = %(ws)s AND id = ANY(%(ids)s)"
        self._database.change(update, self._values(ids=[*question_ids]))

    def note_page(self, question_id: str, page: int) -> None:
        update = (
            f"UPDATE questions SET opened = opened || %(page)s::integer WHERE {_NAMED} AND NOT %(page)s = ANY(opened)"  # noqa: S608 - constants
        )
        self._database.change(update, self._values(id=question_id, page=page))

    def answer(self, question_id: str, answer: str) -> bool:
        update = f"UPDATE questions SET answer = %(answer)s WHERE {_NAMED} AND kind = 'waiting' AND answer IN ('', %(answer)s)"  # noqa: S608 - constants
        return self._database.change(update, self._values(id=question_id, answer=answer)) > 0

    def end(self, question_id: str, facts: str) -> bool:
        return self._database.change(_END, self._values(id=question_id, facts=facts, most=MAX_ENDED_QUESTIONS - 1)) > 0

    def take(self, question_id: str) -> StoredQuestion | None:
        delete = f"DELETE FROM questions WHERE {_NAMED} RETURNING {_FACTS}"  # noqa: S608 - constants
        rows = self._database.rows(delete, self._values(id=question_id))
        return _question_of(rows[0]) if rows else None

    def allow_session(self, session_id: str, mode: str) -> None:
        update = "UPDATE sessions SET agreed = %(mode)s WHERE ws = %(ws)s AND id = %(id)s"
        self._database.change(update, self._values(id=to_key(session_id), mode=mode))

    def is_session_allowed(self, session_id: str, mode: str) -> bool:
        select = "SELECT 1 FROM sessions WHERE ws = %(ws)s AND id = %(id)s AND agreed = %(mode)s"
        return bool(self._database.rows(select, self._values(id=to_key(session_id), mode=mode)))

    def _values(self, **others: object) -> dict[str, Any]:
        return {"ws": self._ws, "at": self._clock() if self._clock else None, **others}


def _question_of(row: tuple[Any, ...]) -> StoredQuestion:
    id_, kind, owner, facts, age, left, silent, opened, answer = row
    return StoredQuestion(
        id=id_,
        kind=kind,
        owner=owner_from_text(owner),
        facts=facts,
        age=max(age, 0.0),
        left=left,
        silent=silent,
        opened=tuple(opened),
        answer=answer,
    )
