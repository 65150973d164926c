"""The ledger on every store: records, filters, paging."""

# One of these looks at how a query is answered.
# pyright: reportPrivateUsage=false

from dataclasses import replace

import psycopg
import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import Author, Clock, blob, call, change, intent, version
from surehold.stores.base import Begun, Entry, LedgerQuery, Store, WriterSpan
from surehold.stores.ledger_rules import EXTERNAL
from surehold.stores.postgres import rows
from surehold.stores.postgres.store import PostgresStore
from surehold.stores.sqlite import entry_rows
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.snapshot import Meta, Version

ODD = "dir/caf\udce9 \N{SNOWMAN}.txt"  # a name that is not UTF-8


@requirement("engine:ledger:entry")
def test_a_refused_call_is_recorded_without_a_head(store: Store, clock: Clock) -> None:
    refused = change("a", b"old", b"new")

    entry = store.record(call(), refused, change_id="c1", ok=False, error_kind="stale_file", message="Changed.")

    assert entry == Entry(
        seq=1,
        change_id="c1",
        index=0,
        timestamp=clock.text,
        call=call(),
        change=refused,
        ok=False,
        error_kind="stale_file",
        message="Changed.",
        hash=entry.hash,
    )
    assert store.list_entries(LedgerQuery()) == (entry,)
    assert store.head_of("a") is None


def test_a_recorded_outside_edit_is_the_new_head(store: Store, author: Author) -> None:
    author.write("a", b"one")

    store.record(EXTERNAL, change("a", b"one", b"two"), change_id="x", ok=True)

    head = store.head_of("a")
    assert head is not None
    assert (head.version, head.writer) == (version(b"two"), "external")


@pytest.fixture
def history(store: Store, author: Author) -> Store:
    author.write("src/a.py", b"1", session="s1", agent="ada")  # 1
    author.write("src/b.py", b"1", session="s2", agent="ada")  # 2
    author.write("srcs/c.py", b"1", session="s1", agent="bob")  # 3
    moved = change("src/a.py", b"1", b"1", to_path="lib/a.py")
    author.do(moved, b"1", b"1", asked=call("move", session="s1", agent="ada"))  # 4
    store.record(call("edit", agent="bob"), change("src/b.py", b"1", b"2"), change_id="x", ok=False)  # 5
    author.write("lib/a.py/deep/d", b"1", session="s3", undoes="change-3")  # 6
    return store


@requirement("engine:history:log")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (LedgerQuery(), [6, 5, 4, 3, 2, 1]),
        (LedgerQuery(path="src/a.py"), [4, 1]),
        (LedgerQuery(path="lib/a.py"), [4]),
        (LedgerQuery(path="nowhere"), []),
        (LedgerQuery(under="src"), [5, 4, 2, 1]),
        (LedgerQuery(under="src/"), [5, 4, 2, 1]),
        (LedgerQuery(under="lib"), [6, 4]),
        (LedgerQuery(under="lib/a.py"), [6]),
        (LedgerQuery(session="s1"), [4, 3, 1]),
        (LedgerQuery(agent="ada"), [4, 2, 1]),
        (LedgerQuery(session="s1", agent="ada", path="src/a.py"), [4, 1]),
        (LedgerQuery(change_id="change-3"), [3]),
        (LedgerQuery(operation="move"), [4]),
        (LedgerQuery(undoes="change-3"), [6]),
        (LedgerQuery(undoes="change-4"), []),
        (LedgerQuery(ok_only=True), [6, 4, 3, 2, 1]),
        (LedgerQuery(under="src", ok_only=True, operation="write"), [2, 1]),
        (LedgerQuery(before_seq=4), [3, 2, 1]),
        (LedgerQuery(after_seq=4), [6, 5]),
        (LedgerQuery(before_seq=5, after_seq=2), [4, 3]),
        (LedgerQuery(limit=2), [6, 5]),
        (LedgerQuery(limit=1, path="src/a.py"), [4]),
        (LedgerQuery(limit=1, path="src/a.py", before_seq=4), [1]),
        (LedgerQuery(limit=0), []),
    ],
    ids=repr,
)
def test_entries_are_found_newest_first_by(history: Store, query: LedgerQuery, expected: list[int]) -> None:
    assert [entry.seq for entry in history.list_entries(query)] == expected


def test_pages_follow_each_other_without_gap_or_overlap(store: Store, author: Author) -> None:
    for number in range(25):
        author.write("a", b"%d" % number)

    pages: list[int] = []
    while page := store.list_entries(LedgerQuery(path="a", before_seq=pages[-1] if pages else 0, limit=4)):
        pages += [entry.seq for entry in page]

    assert pages == list(range(25, 0, -1))


@requirement("engine:ledger:entry")
def test_names_that_are_not_text_and_every_fact_survive(store: Store) -> None:
    meta = Meta(mode=0o640, uid=7, gid=8, mtime_ns=9, xattrs=(("user.\udcff", b"\x00\xff"), ("user.z", b"")))
    after = Version(sha256=version(b"x").sha256, size=1, meta=meta)
    made = change(ODD, None, None, diff="+\udcff\n", diff_truncated=True, in_place=True)
    made = replace(made, after=after)
    asked = call("restore", agent="\ud800", session="\udc80", reason="\x00", undoes="u", idempotency_key="\udcff")

    assert store.begin(intent("c1", made, asked=asked), [], lease=10, fence=0) == Begun()
    (entry,) = store.finish("c1")

    assert (entry.change, entry.call) == (made, asked)
    assert store.list_entries(LedgerQuery(path=ODD)) == (entry,)
    assert store.list_entries(LedgerQuery(under="dir", session="\udc80", agent="\ud800")) == (entry,)
    head = store.head_of(ODD)
    assert head is not None
    assert head.version == after
    assert store.verify().ok


def test_a_call_with_a_path_that_no_file_can_have_is_still_recorded(store: Store) -> None:
    entry = store.record(call(), change("\ud800\x00", None, None), change_id="c", ok=False)

    assert store.list_entries(LedgerQuery(path="\ud800\x00")) == (entry,)


def test_a_clock_that_goes_back_does_not_break_the_chain(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", b"1")
    clock.turn(days=-400)
    author.write("a", b"2")

    assert [entry.seq for entry in store.list_entries(LedgerQuery())] == [2, 1]
    assert store.verify().ok


@requirement("engine:views:writers")
def test_writers_of_a_path_are_those_of_its_entries(store: Store, author: Author) -> None:
    for number, writer in enumerate(["edit", "edit", "write_file", "edit", "write_file", "undo", "undo"]):
        before = author.files.get("a")
        data = author.files["a"] = b"%d" % number
        author.do(change("a", before, data), before, data, asked=replace(call("edit"), writer=writer))
    moved = change("a", b"6", b"6", to_path="b")
    author.do(moved, b"6", b"6", asked=replace(call("move"), writer="move_file"))
    store.record(replace(call("edit"), writer="refused"), change("a", None, None), change_id="r", ok=False)
    store.keep_outside("c", blob(b"kept"))
    store.keep_outside("b", blob(b"kept too"))

    for path, after in (("a", 0), ("a", 3), ("b", 0), ("c", 0), ("d", 0)):
        spans = dict[str, WriterSpan]()
        for entry in reversed(store.list_entries(LedgerQuery(path=path, ok_only=True, after_seq=after))):
            first = spans[entry.call.writer].first_seq if entry.call.writer in spans else entry.seq
            spans[entry.call.writer] = WriterSpan(writer=entry.call.writer, first_seq=first, last_seq=entry.seq)
        assert store.list_writers(path, after_seq=after) == tuple(spans.values())


@requirement("engine:views:writers")
def test_writers_are_known_without_reading_entries(sqlite: SqliteStore) -> None:
    with sqlite._database.read_transaction() as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {entry_rows._SELECT_PATH_WRITERS}", (b"a",)).fetchall()

    steps = [step for _, _, _, step in plan]
    assert [step for step in steps if step.startswith("SCAN") or "entries" in step] == []
    assert len([step for step in steps if step.startswith("SEARCH")]) == 2


@requirement("fleet:state:tail")
def test_whoever_follows_the_ledger_gets_every_entry_once(store: Store) -> None:
    def note(name: str) -> None:
        store.record(call(), change(name, None, None), change_id=name, ok=False)

    note("before")
    start = store.tail()
    note("a")
    note("b")
    store.verify()  # no seal is younger than a second to a store that seals
    first = store.tail(start.cursor)
    nothing = store.tail(first.cursor)
    note("c")
    store.verify()

    assert start.entries == ()
    assert [one.change_id for one in first.entries] == ["a", "b"]
    assert (nothing.entries, nothing.cursor) == ((), first.cursor)
    assert [one.change_id for one in store.tail(first.cursor).entries] == ["c"]


@requirement("fleet:state:tail")
def test_an_entry_that_is_committed_late_is_not_missed(
    postgres: PostgresStore, postgres_schema: PostgresSchema
) -> None:
    start = postgres.tail()
    drafts = [Entry(change_id="late", timestamp="", call=call(), change=change("late", None, None), ok=False)]
    with psycopg.connect(postgres_schema.address.conninfo) as slow:
        ((ws,),) = slow.execute("UPDATE workspaces SET sealed = 'infinity' WHERE name = 'w' RETURNING ws")
        slow.commit()  # so that no append seals on the way
        slow.execute("SELECT append_entries(%s, %s::jsonb, NULL)", (ws, rows.entry_documents(drafts)))
        postgres.record(call(), change("early", None, None), change_id="early", ok=False)
        postgres.verify()
        first = postgres.tail(start.cursor)
        slow.commit()
    postgres.verify()

    second = postgres.tail(first.cursor)

    assert [one.change_id for one in first.entries] == ["early"]
    assert [one.change_id for one in second.entries] == ["late"]
    assert second.entries[0].seq < first.entries[0].seq
