"""Questions that wait for a person, as rows; nothing of them is waited for, since no file depends on them."""

import json
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from surehold.stores.ledger_entries import owner_from_text, owner_text, to_key
from surehold.stores.questions import FORGOTTEN_SECONDS, MAX_ENDED_QUESTIONS, NewQuestion, StoredQuestion
from surehold.stores.sqlite.database import Database

_COLUMNS = "id, kind, owner, facts, asked, expires, renewed, opened, answer"


class QuestionTable:
    """The questions of one workspace; `QuestionRecords` says what its methods promise."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    def add(self, question: NewQuestion, *, seconds: float) -> None:
        now = self._clock().timestamp()
        facts = (question.id, question.kind, owner_text(question.owner), now, now + seconds, now)
        with self._database.write_transaction(durable=False) as connection:
            connection.execute("DELETE FROM questions WHERE expires < ?", (now - FORGOTTEN_SECONDS,))
            connection.execute(
                "INSERT INTO questions (id, kind, owner, asked, expires, renewed, facts, body)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*facts, question.facts, question.body),
            )

    def list_all(self) -> tuple[StoredQuestion, ...]:
        with self._database.read_transaction() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM questions ORDER BY number").fetchall()  # noqa: S608 - constants
        return tuple(map(self._question_of, rows))

    def find(self, question_id: str) -> StoredQuestion | None:
        select = f"SELECT {_COLUMNS} FROM questions WHERE id = ?"  # noqa: S608 - constants
        with self._database.read_transaction() as connection:
            row = connection.execute(select, (question_id,)).fetchone()
        return self._question_of(row) if row else None

    def read_body(self, question_id: str) -> bytes | None:
        with self._database.read_transaction() as connection:
            row = connection.execute("SELECT body FROM questions WHERE id = ?", (question_id,)).fetchone()
        return row[0] if row else None

    def read_answers(self, question_ids: Collection[str]) -> dict[str, str]:
        select = "SELECT id, answer FROM questions WHERE id IN (SELECT value FROM json_each(?))"
        with self._database.read_transaction() as connection:
            return dict(connection.execute(select, (json.dumps([*question_ids]),)).fetchall())

    def renew(self, question_ids: Collection[str]) -> None:
        update = "UPDATE questions SET renewed = ? WHERE id IN (SELECT value FROM json_each(?))"
        with self._database.write_transaction(durable=False) as connection:
            connection.execute(update, (self._clock().timestamp(), json.dumps([*question_ids])))

    def note_page(self, question_id: str, page: int) -> None:
        with self._database.write_transaction(durable=False) as connection:
            row = connection.execute("SELECT opened FROM questions WHERE id = ?", (question_id,)).fetchone()
            if row and page not in (opened := json.loads(row[0])):
                update = "UPDATE questions SET opened = ? WHERE id = ?"
                connection.execute(update, (json.dumps([*opened, page]), question_id))

    def answer(self, question_id: str, answer: str) -> bool:
        update = "UPDATE questions SET answer = ? WHERE id = ? AND kind = 'waiting' AND answer = ''"
        with self._database.write_transaction(durable=False) as connection:
            return connection.execute(update, (answer, question_id)).rowcount > 0

    def end(self, question_id: str, facts: str) -> bool:
        update = "UPDATE questions SET kind = 'ended', facts = ? WHERE id = ? AND kind = 'waiting' AND answer = ''"
        surplus = "SELECT number FROM questions WHERE kind = 'ended' ORDER BY number DESC LIMIT -1 OFFSET ?"
        with self._database.write_transaction(durable=False) as connection:
            found = connection.execute(update, (facts, question_id)).rowcount > 0
            connection.execute(f"DELETE FROM questions WHERE number IN ({surplus})", (MAX_ENDED_QUESTIONS,))  # noqa: S608 - constants
        return found

    def take(self, question_id: str) -> StoredQuestion | None:
        delete = f"DELETE FROM questions WHERE id = ? RETURNING {_COLUMNS}"  # noqa: S608 - constants
        with self._database.write_transaction(durable=False) as connection:
            rows = connection.execute(delete, (question_id,)).fetchall()
        return self._question_of(rows[0]) if rows else None

    def allow_session(self, session_id: str, mode: str) -> None:
        with self._database.write_transaction(durable=False) as connection:
            connection.execute("UPDATE sessions SET agreed = ? WHERE id = ?", (mode, to_key(session_id)))

    def is_session_allowed(self, session_id: str, mode: str) -> bool:
        with self._database.read_transaction() as connection:
            select = "SELECT 1 FROM sessions WHERE id = ? AND agreed = ?"
            return connection.execute(select, (to_key(session_id), mode)).fetchone() is not None

    def _question_of(self, row: tuple[Any, ...]) -> StoredQuestion:
        id_, kind, owner, facts, asked, expires, renewed, opened, answer = row
        now = self._clock().timestamp()
        return StoredQuestion(
            id=id_,
            kind=kind,
            owner=owner_from_text(owner),
            facts=facts,
            age=max(now - asked, 0.0),
            left=expires - now,
            silent=now - renewed,
            opened=tuple(json.loads(opened)),
            answer=answer,
        )
