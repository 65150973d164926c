"""A history moves to a database and back, and loses nothing on the way."""

import itertools
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import START, Clock, blob, call, change, intent, version
from surehold.app import Settings, open_store
from surehold.errors import StateUnavailable
from surehold.stores import migration
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.conversations import SessionRow
from surehold.stores.migration import MovedHistory, PortableStore, copy_history
from surehold.stores.postgres.store import PostgresStore, open_postgres_store
from surehold.stores.sqlite.importing import HistoryTables
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.upkeep import TrashItem, TrashQuery

_CHANGES = 10_000 if "SUREHOLD_SOAK" in os.environ else 200


def open_database(schema: PostgresSchema, workspace: str, clock: Clock | None = None) -> PostgresStore:
    return open_postgres_store(schema.address, workspace=workspace, root="/w", host="here", clock=clock)


def make_history(store: Store, clock: Clock, changes: int) -> None:
    """Write, edit, move, delete, restore, refuse, and be edited by others; with keys, sessions and turns."""
    files = dict[str, bytes]()
    store.open_session(SessionRow(id="s1", agent="ada", opened=clock.text))
    store.begin_turn("s1", title="Please.")
    for number in range(changes):
        clock.turn(seconds=1)
        path, name = f"d{number % 5}/f{number % 23}", f"c{number}"
        before = files.get(path)
        asked = call(
            "edit", agent="ada", session="s1", turn="1", idempotency_key=f"k{number}" if number % 3 == 0 else ""
        )
        if number % 17 == 16 and before is not None:
            made, after = change(path, before, None, trash_id=f"t{number}"), None
        elif number % 11 == 10 and before is not None and f"{path}-moved" not in files:
            made, after = change(path, before, before, to_path=f"{path}-moved"), None
            files[f"{path}-moved"] = before
        else:
            after = (before or b"x = 0\n" * 50) + b"%d\n" % number
            made = change(path, before, after, diff=f"+{number}")
        found = b"theirs %d" % number if number % 29 == 28 and before is not None and after is not None else before
        if found != before:
            made = change(path, found, after)
        blobs = [blob(data) for data in {found, before} if data is not None]
        blobs += [blob(after, before)] if after is not None else []
        store.begin(intent(name, made, asked=asked), blobs, lease=10, fence=0)
        store.finish(name)
        if after is None:
            files.pop(path, None)
        else:
            files[path] = after
        if number % 13 == 12:
            store.record(call(), change(path, None, None), change_id=f"r{number}", ok=False, error_kind="stale_file")
    store.empty_trash(["t16"])
    store.keep_outside("elsewhere", blob(b"never known"))


def described(store: PortableStore) -> dict[str, object]:
    return {
        "entries": [_without_links(entry) for entry in store.list_entries(LedgerQuery(limit=99_999))],
        "heads": [(head.path, head.version, head.writer, head.timestamp) for head in store.list_heads()],
        "trash": {state: set(store.list_trash(TrashQuery(state=state))) for state in ("kept", "restored", "emptied")},
        "sessions": store.list_sessions(),
        "turns": store.list_turns("s1"),
        "answers": set(store.whole_history().list_answers()),
        "blobs": {name: store.read_blob(name) for name in store.whole_history().list_blob_names()},
    }


def _without_links(entry: Entry) -> tuple[object, ...]:
    return (
        entry.change_id,
        entry.index,
        entry.timestamp,
        entry.call,
        entry.change,
        entry.ok,
        entry.error_kind,
        entry.message,
    )


@requirement("fleet:state:moved")
def test_a_history_moves_to_a_database_and_back(
    tmp_path: Path, clock: Clock, postgres_schema: PostgresSchema, count: Callable[[str, int], None]
) -> None:
    first = SqliteStore(tmp_path / "first", clock=clock, durability="none")
    make_history(first, clock, _CHANGES)
    database, other = open_database(postgres_schema, "w"), open_database(postgres_schema, "other", clock)
    make_history(other, Clock(START + timedelta(days=1)), 5)  # a neighbour in the same database draws numbers too
    last = SqliteStore(tmp_path / "last", clock=clock, durability="none")

    there, back = copy_history(first, database), copy_history(database, last)

    length = len(first.list_entries(LedgerQuery(limit=99_999)))
    assert there.entries == back.entries == length > _CHANGES
    assert there == MovedHistory(entries=length, blobs=back.blobs, sessions=1)
    assert described(first) == described(database) == described(last)
    assert {one.key for one in last.whole_history().list_answers()} == {f"k{n}" for n in range(0, _CHANGES, 3)}
    newest = LedgerQuery(limit=99_999)
    assert first.list_entries(newest) == last.list_entries(newest)  # hash for hash
    assert all(store.verify().ok for store in (first, database, last, other))
    count("changes moved", length)
    for store in (first, database, last, other):
        store.close()


def test_the_ledger_goes_on_after_a_move(tmp_path: Path, clock: Clock, postgres_schema: PostgresSchema) -> None:
    first = SqliteStore(tmp_path / "first", clock=clock, durability="none")
    make_history(first, clock, 20)
    database = open_database(postgres_schema, "w", clock)
    copy_history(first, database)
    head = database.head_of("d0/f0")
    assert head is not None

    database.begin(intent("new", change("d0/f0", b"x", b"y")), [], lease=10, fence=0)
    (entry,) = database.finish("new")

    assert entry.seq > max(one.seq for one in first.list_entries(LedgerQuery()))
    assert [one.change.before for one in database.list_entries(LedgerQuery(path="d0/f0", limit=2))] == [
        version(b"x"),
        head.version,
    ]
    assert database.verify().ok
    first.close()
    database.close()


def test_a_target_with_a_history_or_a_source_in_use_is_refused(
    tmp_path: Path, clock: Clock, postgres_schema: PostgresSchema
) -> None:
    first = SqliteStore(tmp_path / "first", clock=clock, durability="none")
    make_history(first, clock, 3)
    database = open_database(postgres_schema, "w", clock)
    first.begin(intent("open", change("a", None, b"1")), [], lease=10, fence=0)

    with pytest.raises(StateUnavailable) as in_use:
        copy_history(first, database)
    first.withdraw("open")
    copy_history(first, database)
    with pytest.raises(StateUnavailable) as not_empty:
        copy_history(first, database)

    assert in_use.value.reason == "changes_under_way"
    assert not_empty.value.reason == "target_not_empty"
    assert len(database.list_entries(LedgerQuery())) == len(first.list_entries(LedgerQuery()))
    first.close()
    database.close()


class Killed(BaseException):
    """The process ends here."""


@requirement("fleet:state:moved")
def test_the_trash_moves_a_page_at_a_time(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = (SqliteStore(tmp_path / name, clock=clock, durability="none") for name in ("first", "there"))
    make_history(source, clock, 120)
    import_trash, sizes = HistoryTables.import_trash, list[int]()

    def noting(self: HistoryTables, items: Sequence[TrashItem]) -> None:
        sizes.append(len(items))
        import_trash(self, items)

    monkeypatch.setattr(HistoryTables, "import_trash", noting)
    monkeypatch.setattr(migration, "TrashQuery", partial(TrashQuery, limit=1))
    copy_history(source, target)

    assert described(target) == described(source)
    assert sizes == [1] * source.count_trash()
    assert len(sizes) > 1


def die_at(monkeypatch: pytest.MonkeyPatch, home: type, name: str, number: int, *, after: bool) -> None:
    """Let the process end at one of the calls of a method, before or after it has done its work."""
    method, calls = getattr(home, name), itertools.count(1)

    def dying(self: object, *args: object, **words: object) -> object:
        is_last = next(calls) == number
        if is_last and not after:
            raise Killed
        done = method(self, *args, **words)
        if is_last:
            raise Killed
        return done

    monkeypatch.setattr(home, name, dying)


MOMENTS = [
    ("mark_importing", 1, True),
    ("keep_blobs", 2, True),
    ("import_entries", 1, False),
    ("import_entries", 1, True),
    ("import_entries", 3, False),
    ("import_entries", 3, True),
    ("import_trash", 1, False),
    ("import_trash", 1, True),
    ("import_rest", 1, False),
    ("import_rest", 1, True),
    ("mark_importing", 2, False),
]


@requirement("fleet:state:half")
@pytest.mark.parametrize("to_database", [True, False], ids=["to a database", "to a directory"])
@pytest.mark.parametrize(("name", "number", "after"), MOMENTS)
def test_a_move_that_is_killed_anywhere_is_refused_until_it_goes_on(
    *,
    tmp_path: Path,
    clock: Clock,
    postgres_schema: PostgresSchema,
    monkeypatch: pytest.MonkeyPatch,
    to_database: bool,
    name: str,
    number: int,
    after: bool,
) -> None:
    monkeypatch.setattr(migration, "_PAGE_ENTRIES", 10)
    state = f"{postgres_schema.url}&workspace=there" if to_database else ""
    settings = Settings(state=state, state_dir=None if to_database else tmp_path / "there", durability="none")

    def open_target(*, importing: bool = False) -> PortableStore:
        return open_store(tmp_path / "there", settings, root=str(tmp_path), importing=importing)

    source = SqliteStore(tmp_path / "first", clock=clock, durability="none")
    make_history(source, clock, 30)
    target = open_target(importing=True)
    with monkeypatch.context() as dying:
        home = type(target) if name == "keep_blobs" else type(target.whole_history())
        die_at(dying, home, name, number, after=after)
        with pytest.raises(Killed):
            copy_history(source, target)
    target.close()

    with pytest.raises(StateUnavailable) as refused:
        open_target()
    target = open_target(importing=True)
    copy_history(source, target)
    target.close()

    assert refused.value.reason == "import_unfinished"
    assert "state migrate" in refused.value.action
    whole = open_target()
    assert described(whole) == described(source)
    assert whole.verify().ok
    whole.close()
    source.close()


@requirement("fleet:state:half")
def test_a_part_of_another_history_is_not_gone_on_with(tmp_path: Path, clock: Clock) -> None:
    stores = [SqliteStore(tmp_path / name, clock=clock, durability="none") for name in ("first", "second", "there")]
    first, second, target = stores
    make_history(first, clock, 5)
    make_history(second, clock, 5)
    copy_history(first, target)
    target.whole_history().mark_importing(unfinished=True)

    with pytest.raises(StateUnavailable) as refused:
        copy_history(second, target)

    assert refused.value.reason == "target_not_empty"
    for store in stores:
        store.close()
