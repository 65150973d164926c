"""What the tests of the stores are made of: a clock that is turned by hand, versions, calls and whole edits."""

import hashlib
import multiprocessing
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from surehold.stores.base import Begun, Blob, Call, Change, Entry, Intent, Operation, Sighting, Store
from surehold.stores.ledger_entries import microseconds, utc_timestamp
from surehold.stores.owner import Owner, current_owner
from surehold.stores.packing import with_base
from surehold.stores.sqlite import entry_rows, schema, tables
from surehold.stores.sqlite.database import Database
from surehold.text.snapshot import Version

START = datetime(2026, 1, 1, tzinfo=UTC)
ELSEWHERE = Owner(host="another-machine", boot="b", pid=1, started="1")
_LAST_PLAIN = 7
"""The last version of the database whose rows were plain."""
SPAWN: Any = multiprocessing.get_context("spawn")


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **delta: float) -> None:
        self.now += timedelta(**delta)

    @property
    def text(self) -> str:
        return utc_timestamp(self.now)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def version(data: bytes) -> Version:
    return Version(sha256=sha(data), size=len(data))


def blob(data: bytes, base: bytes | None = None) -> Blob:
    return Blob(data=data, sha256=sha(data), base="" if base is None else sha(base))


def sighting(path: str, data: bytes, *spans: tuple[int, int], session: str = "s", seq: int = 0) -> Sighting:
    return Sighting(session=session, path=path, sha256=version(data).sha256, spans=spans, seq=seq)


def call(operation: Operation = "edit", **more: Any) -> Call:
    return Call(tool=f"{operation}_file", operation=operation, writer="files", **more)


def change(path: str, before: bytes | None, after: bytes | None, **more: Any) -> Change:
    return Change(
        path=path,
        before=None if before is None else version(before),
        after=None if after is None else version(after),
        **more,
    )


def intent(name: str, *changes: Change, asked: Call | None = None, owner: Owner | None = None) -> Intent:
    return Intent(
        id=name, call=asked or call(), changes=changes, owner=owner or current_owner(), began="2026-01-01T00:00:00Z"
    )


@dataclass
class Author:
    """Makes whole edits and remembers what is where."""

    store: Store
    number: int = 0
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def write(self, path: str, data: bytes, **more: str) -> tuple[Entry, ...]:
        before = self.files.get(path)
        entries = self.do(change(path, before, data), before, data, asked=call("write", **more))
        self.files[path] = data
        return entries

    def delete(self, path: str, trash_id: str = "", **more: str) -> tuple[Entry, ...]:
        before = self.files.pop(path)
        return self.do(change(path, before, None, trash_id=trash_id), before, None, asked=call("delete", **more))

    def do(self, changed: Change, before: bytes | None, after: bytes | None, *, asked: Call) -> tuple[Entry, ...]:
        self.number += 1
        name = f"change-{self.number}"
        blobs = [] if before is None else [blob(before)]
        blobs += [] if after is None else [blob(after, before)]
        begun = self.store.begin(intent(name, changed, asked=asked), blobs, lease=10, fence=0)
        assert begun == Begun(), begun
        return self.store.finish(name)


def fill_history(state: Path, entries: int, *, start: datetime = START) -> None:
    """Write so many entries of every kind, a minute apart, without the bytes they speak of; two are one change."""
    database = Database(state, durability="none")
    with database.write_transaction() as connection:
        for number in range(entries):
            tables.append_entry(connection, _entry_of_any_kind(number, start + timedelta(minutes=number)))
    database.close()


def _entry_of_any_kind(number: int, when: datetime) -> Entry:
    path, before, after = f"d{number % 3}/deep/f{number % 7}.py", version(b"%d" % number), version(b"+%d" % number)
    asked = Call(
        tool="any",
        operation=("edit", "write", "move", "undo", "external")[number % 5 if number % 11 else 3],
        writer=f"writer-{number // 90}" if number % 4 else "edit",
        agent=f"agent-{number % 4}{number % 2}",
        session=f"session-{number // 100}",
        undoes=f"change-{number // 4}" if number % 13 == 0 else "",
    )
    made = Change(
        path=path,
        before=before if number % 6 else None,
        after=after,
        to_path=f"moved/g{number % 5}" if number % 8 == 0 else "",
        undoes=(f"change-{number // 3}#0",) if number % 17 == 0 else (),
        diff=f"-{number}\n+{number}\n",
    )
    refused = number % 19 == 0
    return Entry(
        change_id=f"change-{number // 2}",
        index=number % 2,
        timestamp=utc_timestamp(when),
        call=asked,
        change=made,
        ok=not refused,
        error_kind="not_found" if refused else "",
    )


def unpack_bodies(raw: sqlite3.Connection) -> None:
    """Write every body as the plain text that earlier versions wrote; the triggers must be gone."""
    for row in list(entry_rows.rows_between(raw)):
        raw.execute("UPDATE entries SET body = ? WHERE seq = ?", (entry_rows.body_of_row(row).decode(), row[0]))


def _hex_of(stored: bytes | None) -> str | None:
    return None if stored is None else stored.hex()


def _with_base(data: bytes | None, base: bytes | None) -> bytes | None:
    return None if data is None else with_base(data, base)


def _moment(stored: int) -> str:
    return utc_timestamp(START + timedelta(microseconds=stored - microseconds(START)))


def make_older(database: Path, version: int) -> None:
    """Turn a history into one as an earlier Surehold wrote it, before rows were packed."""
    newer = database.with_name("newer.db")
    database.rename(newer)
    raw = sqlite3.connect(database, isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.create_function("hex_of", 1, _hex_of)
    raw.create_function("with_base", 2, _with_base)
    raw.create_function("moment", 1, _moment)
    for name in schema.MIGRATIONS[: min(version, _LAST_PLAIN)]:
        raw.executescript((Path(schema.__file__).parent / "migrations" / name).read_text())
    raw.execute(f"PRAGMA user_version = {min(version, _LAST_PLAIN)}")
    raw.execute("ATTACH ? AS newer", (str(newer),))
    with closing(sqlite3.connect(newer)) as old:
        bodies = {row[0]: entry_rows.body_of_row(row).decode() for row in entry_rows.rows_between(old)}
    columns = "seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp"
    plain = f"SELECT {columns}, hex_of(previous), hex_of(hash), ? FROM newer.entries WHERE seq = ?"
    raw.executemany(f"INSERT INTO entries {plain}", [(body, seq) for seq, body in bodies.items()])
    raw.execute(
        "INSERT INTO blobs (sha256, size, base, depth, packed, stored, data) SELECT hex_of(sha256), size, hex_of(base),"
        " depth, packed, moment(stored), with_base(data, base) FROM newer.blobs ORDER BY rowid"
    )
    raw.execute("DELETE FROM tip")
    for table in ("tip", "heads", "locks", "answers", "trash", "sessions"):
        known = ", ".join(row[1] for row in raw.execute(f"PRAGMA table_info({table})"))
        raw.execute(f"INSERT INTO {table} ({known}) SELECT {known} FROM newer.{table}")
    raw.execute("DETACH newer")
    for number in range(_LAST_PLAIN, version):
        schema._run_script(raw, schema.MIGRATIONS[number], number + 1)  # pyright: ignore[reportPrivateUsage] - as an update did
    raw.close()
    newer.unlink()
