"""Takes the history of another store into an empty state directory."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surehold.stores.base import Entry
from surehold.stores.ledger_entries import text_of, to_key
from surehold.stores.migration import HistoryRest, StoredAnswer
from surehold.stores.sqlite import tables
from surehold.stores.store_errors import import_unfinished_error
from surehold.stores.upkeep import TrashItem

if TYPE_CHECKING:
    from surehold.stores.sqlite.database import Database

_PAGE_ROWS = 1_000


MARK_NAME = "importing"


def refuse_unfinished(state_dir: Path) -> None:
    """Refuse a directory to which a history was moved in part."""
    if (state_dir / MARK_NAME).exists():
        raise import_unfinished_error(str(state_dir))


class HistoryTables:
    """Whole tables of one database, for moving a history."""

    def __init__(self, database: "Database") -> None:
        self._database = database
        self._mark = database.path.with_name(MARK_NAME)

    def is_importing(self) -> bool:
        return self._mark.exists()

    def mark_importing(self, *, unfinished: bool) -> None:
        """Say on the disk that only a part of a history is here, or that it is whole."""
        if unfinished:
            self._mark.touch(mode=0o600)
        else:
            self._database.sync()
            self._mark.unlink(missing_ok=True)
        folder = os.open(self._mark.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

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

    def import_trash(self, items: Sequence[TrashItem]) -> None:
        states = [(item.state, to_key(item.id)) for item in items]
        with self._database.write_transaction() as connection:
            connection.executemany("UPDATE trash SET state = ? WHERE id = ?", states)

    def import_rest(self, rest: HistoryRest) -> None:
        known = {to_key(head.path) for head in rest.heads}
        with self._database.write_transaction() as connection:
            paths = [path for (path,) in connection.execute("SELECT path FROM heads") if path not in known]
            connection.executemany("DELETE FROM heads WHERE path = ?", [(path,) for path in paths])
            connection.executemany(
                "INSERT OR IGNORE INTO turns (session, id, title, began) VALUES (?, ?, ?, ?)",
                [(to_key(one.session), to_key(one.id), to_key(one.title), one.began) for one in rest.turns],
            )
            connection.executemany(
                "INSERT OR IGNORE INTO answers (idempotency_key, change_id, timestamp) VALUES (?, ?, ?)",
                [(to_key(one.key), to_key(one.change_id), one.timestamp) for one in rest.answers],
            )
