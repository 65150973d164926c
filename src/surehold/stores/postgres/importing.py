"""Takes the history of another store into an empty workspace of a database."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from surehold.stores.base import Entry
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.migration import HistoryRest, StoredAnswer
from surehold.stores.postgres import rows
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.upkeep import TrashItem

if TYPE_CHECKING:
    from surehold.stores.postgres.database import Connection, PostgresDatabase

_NUMBERS_AHEAD = 1_000
_PAGE_ROWS = 1_000


class HistoryRows:
    """Whole tables of one workspace, for moving a history."""

    def __init__(self, database: "PostgresDatabase", ws: int) -> None:
        self._database, self._ws = database, ws

    def list_blob_names(self) -> Iterator[str]:
        last, select = 0, "SELECT number, sha256 FROM blobs WHERE ws = %s AND number > %s ORDER BY number LIMIT %s"
        while page := self._database.rows(select, (self._ws, last, _PAGE_ROWS)):
            last = page[-1][0]
            yield from (name.hex() for _, name in page)

    def list_answers(self) -> tuple[StoredAnswer, ...]:
        found = self._database.rows("SELECT key, change_id, timestamp FROM answers WHERE ws = %s", (self._ws,))
        return tuple(
            StoredAnswer(key=text_of(key), change_id=text_of(change_id), timestamp=timestamp)
            for key, change_id, timestamp in found
        )

    def is_importing(self) -> bool:
        return self._database.call("SELECT importing FROM workspaces WHERE ws = %s", (self._ws,))[0]

    def mark_importing(self, *, unfinished: bool) -> None:
        self._database.change("UPDATE workspaces SET importing = %s WHERE ws = %s", (unfinished, self._ws))

    def import_entries(self, entries: Sequence[Entry]) -> None:
        """Append entries under their own numbers; numbers that are drawn from now on are higher."""

        def work(connection: "Connection") -> None:
            documents = rows.entry_documents(entries, dated=True)
            fetch_rows(connection, "SELECT append_entries(%s, %s::jsonb, NULL)", (self._ws, documents))
            last = max(entry.seq for entry in entries)
            ahead = "SELECT CASE WHEN last_value <= %s THEN setval('entry_numbers', %s) END FROM entry_numbers"
            fetch_rows(connection, ahead, (last, last + _NUMBERS_AHEAD))

        self._database.transact(work, twice=False)

    def import_trash(self, items: Sequence[TrashItem]) -> None:
        states = [(item.state, self._ws, to_key(item.id)) for item in items]

        def work(connection: "Connection") -> None:
            with connection.cursor() as cursor:
                cursor.executemany("UPDATE trash SET state = %s WHERE ws = %s AND id = %s", states)

        self._database.transact(work)

    def import_rest(self, rest: HistoryRest) -> None:
        def work(connection: "Connection") -> None:
            known = [to_key(head.path) for head in rest.heads]
            unknown = (
                "UPDATE paths SET seq = NULL, version = NULL, sha256 = '' WHERE ws = %s AND NOT path = ANY(%s::bytea[])"
            )
            fetch_rows(connection, unknown, (self._ws, known))
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO turns (ws, session, id, title, began) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    [
                        (self._ws, to_key(one.session), to_key(one.id), to_key(one.title), one.began)
                        for one in rest.turns
                    ],
                )
                cursor.executemany(
                    "INSERT INTO answers (ws, key, change_id, timestamp) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    [(self._ws, to_key(one.key), to_key(one.change_id), one.timestamp) for one in rest.answers],
                )

        self._database.transact(work)
