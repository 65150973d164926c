"""Takes the history of another store into an empty state directory."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from surehold.stores.base import Entry
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.migration import HistoryRest, StoredAnswer
from surehold.stores.sqlite import tables

if TYPE_CHECKING:
    from surehold.stores.sqlite.database import Database

_PAGE_ROWS = 1_000


class HistoryTables:
    """Whole tables of one database, for moving a history."""

    def __init__(self, database: "Database") -> None:
        self._database = database

    def list_blob_names(self) -> Iterator[str]:
        last, page = 0, [(0, b"")]
        while page:
            with self._database.read_transaction() as connection:
                select = "SELECT rowid, sha256 FROM blobs WHERE rowid > ? ORDER BY rowid LIMIT ?"
                page = connection.execute(select, (last, _PAGE_ROWS)).fetchall()
            last = page[-1][0] if page else last
            yield from (name.hex() for _, name in page)

    def list_answers(self) -> tuple[StoredAnswer, ...]:
        with self._database.read_transaction() as connection:
            found = connection.execute("SELECT idempotency_key, change_id, timestamp FROM answers").fetchall()
        return tuple(
            StoredAnswer(key=text_of(key), change_id=text_of(change_id), timestamp=timestamp)
            for key, change_id, timestamp in found
        )

    def import_entries(self, entries: Sequence[Entry]) -> None:
        """Append entries; the chain has no gaps, so they are numbered again if their numbers have some."""
        with self._database.write_transaction() as connection:
            for entry in entries:
                tables.append_entry(connection, entry)

    def import_rest(self, rest: HistoryRest) -> None:
        known = {to_key(head.path) for head in rest.heads}
        with self._database.write_transaction() as connection:
            paths = [path for (path,) in connection.execute("SELECT path FROM heads") if path not in known]
            connection.executemany("DELETE FROM heads WHERE path = ?", [(path,) for path in paths])
            connection.executemany(
                "UPDATE trash SET state = ? WHERE id = ?", [(item.state, to_key(item.id)) for item in rest.trash]
            )
            connection.executemany(
                "INSERT OR IGNORE INTO turns (session, id, title, began) VALUES (?, ?, ?, ?)",
                [(to_key(one.session), to_key(one.id), to_key(one.title), one.began) for one in rest.turns],
            )
            connection.executemany(
                "INSERT OR IGNORE INTO answers (idempotency_key, change_id, timestamp) VALUES (?, ?, ?)",
                [(to_key(one.key), to_key(one.change_id), one.timestamp) for one in rest.answers],
            )
