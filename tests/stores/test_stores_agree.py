"""Memory, SQLite and PostgreSQL tell the same story, whatever is asked of them; the first two hash for hash."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from databases.schemas import PostgresSchema
from doubles.memory_store import MemoryStore
from spec.marks import requirement
from stores.scenes import ELSEWHERE, Clock, blob, call, change, intent, sha, version
from surehold.errors import SureholdError
from surehold.stores.base import Begun, Call, Change, Entry, LedgerQuery, Replay, Sighting, Store
from surehold.stores.conversations import SessionRow
from surehold.stores.postgres.store import open_postgres_store
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.upkeep import TrashQuery

PATHS = ["a", "d/a", "d/b", "\udcff"]
BYTES = [b"", b"one", b"two\n" * 400, b"two\n" * 399 + b"2\n"]
IDS = ["i1", "i2", "i3"]

_paths = st.sampled_from(PATHS)
_bytes = st.sampled_from(BYTES)
_maybe = st.one_of(st.none(), _bytes)
_ids = st.sampled_from(IDS)
_trash = st.sampled_from(["", "t1", "t2"])
_plain = st.builds(change, _paths, _maybe, _maybe, trash_id=_trash)
_move = st.builds(
    change, _paths, _bytes, _bytes, to_path=_paths, displaced=st.one_of(st.none(), _bytes.map(version)), trash_id=_trash
)
_changes = st.lists(st.one_of(_plain, _move), min_size=0, max_size=3)
_calls = st.builds(
    call,
    st.sampled_from(["edit", "delete", "move", "external"]),
    session=st.sampled_from(["", "s1"]),
    agent=st.sampled_from(["", "ada"]),
    idempotency_key=st.sampled_from(["", "", "k1", "k2"]),
    restores=_trash,
    undoes=st.sampled_from(["", "i1"]),
)
_sightings = st.lists(
    st.builds(
        Sighting,
        session=st.sampled_from(["s1", "s2"]),
        path=_paths,
        sha256=_bytes.map(sha),
        spans=st.lists(st.sampled_from([(1, 3), (2, 5), (7, 7)]), max_size=2).map(tuple),
        whole=st.booleans(),
        anchored=st.sampled_from([(), ((1, 1),), ((2, 4), (9, 9))]),
    ),
    max_size=3,
)

Step = Callable[[Store, Clock], object]


def begin(name: str, asked: Call, changes: list[Change], fence: float) -> Step:
    wanted = intent(name, *changes, asked=asked, owner=ELSEWHERE)
    blobs = [blob(data) for data in BYTES[:3]] + [blob(BYTES[3], BYTES[2])]
    return lambda store, _: store.begin(wanted, blobs, lease=100, fence=fence)


def finish(name: str, shown: list[Sighting]) -> Step:
    return lambda store, _: store.finish(name, shown=shown)


def abort(name: str) -> Step:
    return lambda store, _: store.abort(name, error_kind="e", message="m")


def renew(name: str) -> Step:
    return lambda store, _: store.renew(name, lease=50)


def record(asked: Call, made: Change, ok: bool) -> Step:
    return lambda store, _: store.record(asked, made, change_id="r", ok=ok)


def see(shown: list[Sighting]) -> Step:
    return lambda store, _: store.record_sightings(shown, [blob(BYTES[1])])


def keep(data: bytes) -> Step:
    return lambda store, _: store.keep_blob(blob(data))


def open_session(name: str) -> Step:
    return lambda store, _: store.open_session(SessionRow(id=name, agent="", opened="x"))


def empty_trash(name: str) -> Step:
    return lambda store, _: store.empty_trash([name])


def prune(days: float) -> Step:
    return lambda store, clock: _prune(store, clock, days)


def turn(seconds: float) -> Step:
    return lambda _, clock: clock.turn(seconds=seconds)


_steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(begin, _ids, _calls, _changes, st.sampled_from([0.0, 50.0])),
    st.builds(begin, _ids, _calls, _changes, st.sampled_from([0.0, 50.0])),
    st.builds(finish, _ids, _sightings),
    st.builds(finish, _ids, _sightings),
    st.builds(abort, _ids),
    st.builds(renew, _ids),
    st.builds(record, _calls, _plain, st.booleans()),
    st.builds(see, _sightings),
    st.builds(keep, _bytes),
    st.builds(open_session, _ids),
    st.builds(empty_trash, _trash),
    st.builds(prune, st.sampled_from([0.0, 1.0, 40.0])),
    st.builds(turn, st.sampled_from([-60.0, 1.0, 70.0, 86_400.0 * 20])),
)


def _prune(store: Store, clock: Clock, days: float) -> object:
    then = Clock(clock.now)
    then.turn(days=-days)
    pruned = store.prune(before=then.text)
    return pruned.blobs, pruned.sightings, pruned.details["sessions"], pruned.details["answers"]


def answer(step: Step, store: Store, clock: Clock) -> object:
    try:
        return step(store, clock)
    except SureholdError as error:
        return error.as_dict()


def everything(store: Store) -> object:
    queries = [
        LedgerQuery(limit=999),
        LedgerQuery(path="a"),
        LedgerQuery(under="d"),
        LedgerQuery(session="s1", ok_only=True),
        LedgerQuery(undoes="i1"),
    ]
    store.flush_sightings()
    return {
        "entries": [store.list_entries(query) for query in queries],
        "heads": [store.head_of(path) for path in PATHS],
        "known": [store.knows_version(path, sha(data)) for path in PATHS for data in BYTES],
        "intents": store.open_intents(),
        "trash": [store.list_trash(TrashQuery(state=state)) for state in ("kept", "restored", "emptied")],
        "blobs": [store.has_blob(sha(data)) and store.read_blob(sha(data)) for data in BYTES],
        "sessions": [store.find_session(name) for name in IDS],
        "sightings": [store.list_sightings(session, path) for session in ("s1", "s2") for path in PATHS],
        "verdict": store.verify(),
    }


def without_hashes(value: object) -> object:
    """Leave out what depends on whether the ledger has one chain or one for each path, and where it was when a file was shown."""
    match value:
        case Entry():
            return replace(value, hash="", previous="")
        case Sighting():
            return replace(value, seq=0)
        case Begun(external=external):
            return Begun(external=tuple(replace(one, hash="", previous="") for one in external))
        case Replay(entries=entries):
            return [replace(one, hash="", previous="") for one in entries]
        case tuple() | list():
            return [without_hashes(one) for one in cast("list[object]", value)]
        case dict():
            return {key: without_hashes(one) for key, one in cast("dict[str, object]", value).items()}
        case _:
            return value


@requirement("engine:store:two_stores")
@settings(max_examples=max(settings().max_examples // 4, 15))
@given(script=st.lists(_steps, max_size=40))
def test_a_database_answers_and_remembers_alike(script: list[Step], worker_schema: PostgresSchema) -> None:
    clocks = Clock(), Clock()
    worker_schema.empty()
    memory: Store = MemoryStore(clock=clocks[0])
    address = worker_schema.address
    postgres: Store = open_postgres_store(address, workspace="w", root="/w", host="here", clock=clocks[1])
    try:
        for step in script:
            expected = without_hashes(answer(step, memory, clocks[0]))
            assert expected == without_hashes(answer(step, postgres, clocks[1]))
        assert without_hashes(everything(memory)) == without_hashes(everything(postgres))
        assert postgres.verify().ok
    finally:
        postgres.close()


@requirement("engine:store:two_stores")
@given(script=st.lists(_steps, max_size=40))
def test_both_stores_answer_and_remember_alike(script: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clocks = Clock(), Clock()
        memory: Store = MemoryStore(clock=clocks[0])
        sqlite: Store = SqliteStore(Path(folder), clock=clocks[1], durability="none")
        try:
            for step in script:
                assert answer(step, memory, clocks[0]) == answer(step, sqlite, clocks[1])
            assert everything(memory) == everything(sqlite)
            assert memory.verify().ok
        finally:
            sqlite.close()
