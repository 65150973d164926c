"""Trash, sessions and sightings on every store."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import Author, Clock, blob, call, change, intent, sighting, version
from surehold.stores.base import Store
from surehold.stores.conversations import SessionRow
from surehold.stores.sightings import PATHS_PER_SESSION
from surehold.stores.upkeep import TrashItem, TrashQuery, iterate_trash


@requirement("engine:trash:list")
def test_a_deleted_file_waits_in_the_trash(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", b"one")
    author.delete("a", trash_id="t1", agent="ada", session="s")

    item = TrashItem(
        id="t1", path="a", version=version(b"one"), change_id="change-2", trashed=clock.text, agent="ada", session="s"
    )
    assert store.list_trash() == (item,)
    assert store.trash_item("t1") == item
    assert store.trash_item("t2") is None


def test_trash_is_listed_newest_first(store: Store, author: Author) -> None:
    for name in ("t1", "t3", "t2"):
        author.write(name, b"x")
        author.delete(name, trash_id=name)

    assert [item.id for item in store.list_trash()] == ["t2", "t3", "t1"]


def test_a_restored_item_leaves_the_trash_but_is_remembered(store: Store, author: Author) -> None:
    author.write("a", b"one")
    author.delete("a", trash_id="t1")
    author.write("b", b"one", restores="t1")

    assert store.list_trash() == ()
    assert [item.id for item in store.list_trash(TrashQuery(state="restored"))] == ["t1"]
    assert store.empty_trash(["t1"]) == 0


def test_a_refused_restore_leaves_the_item_in_the_trash(store: Store, author: Author) -> None:
    author.write("a", b"one")
    author.delete("a", trash_id="t1")
    store.record(
        call("restore", restores="t1"), change("a", None, b"one"), change_id="r1", ok=False, error_kind="refused"
    )

    assert [item.id for item in store.list_trash()] == ["t1"]
    assert store.list_trash(TrashQuery(state="restored")) == ()


def test_a_failed_delete_puts_nothing_into_the_trash(store: Store, author: Author) -> None:
    author.write("a", b"one")
    store.begin(intent("c9", change("a", b"one", None, trash_id="t1"), asked=call("delete")), [], lease=9, fence=0)
    store.abort("c9", error_kind="unknown", message="")

    assert store.list_trash() == ()


@requirement("engine:trash:empty")
def test_emptying_counts_what_was_there(store: Store, author: Author) -> None:
    for name in ("t1", "t2", "t3"):
        author.write(name, b"x")
        author.delete(name, trash_id=name)

    assert store.empty_trash(["t1", "t3", "nothing", "t1"]) == 2
    assert [item.id for item in store.list_trash()] == ["t2"]
    assert [item.id for item in store.list_trash(TrashQuery(state="emptied"))] == ["t3", "t1"]


@requirement("engine:trash:pages")
def test_the_trash_is_listed_page_by_page_whatever_becomes_of_it(store: Store, author: Author) -> None:
    for number in range(7):
        author.write("a" if number % 2 else "b", b"x")
        author.delete("a" if number % 2 else "b", trash_id=f"t{number}")

    pages = iterate_trash(store, TrashQuery(limit=3))
    assert [item.id for item in next(pages)] == ["t6", "t5", "t4"]
    assert store.empty_trash(["t4", "t3"]) == 2
    author.write("later", b"x")
    author.delete("later", trash_id="t7")
    assert [[item.id for item in page] for page in pages] == [["t2", "t1", "t0"]]

    assert store.count_trash() == 6
    assert [item.id for item in store.list_trash(TrashQuery(path="a"))] == ["t5", "t1"]
    assert [item.id for item in store.list_trash(TrashQuery(path="a", after="t5", limit=1))] == ["t1"]
    assert [item.id for item in store.list_trash(TrashQuery(state="emptied"))] == ["t4", "t3"]
    assert store.list_trash(TrashQuery(after="t0")) == store.list_trash(TrashQuery(after="nothing")) == ()


def test_a_session_is_remembered_as_it_was_opened_first(store: Store) -> None:
    row = SessionRow(id="s\udcff", agent="ada", opened="2026-01-01T00:00:00Z")
    store.open_session(row)
    store.open_session(replace(row, agent="eve"))

    assert store.find_session("s\udcff") == row
    assert store.find_session("other") is None


@pytest.mark.parametrize("is_written", [False, True], ids=["buffered", "written"])
def test_whoever_looks_without_a_session_has_seen_nothing(store: Store, is_written: bool) -> None:
    store.record_sightings([sighting("a", b"one", (1, 1)), sighting("a", b"one", (2, 2), session="")])
    if is_written:
        store.flush_sightings()

    assert [one.spans for one in store.look(["a"], session="s").records["a"].sightings] == [((1, 1),)]
    assert tuple(store.look(["a"]).records["a"].sightings) == ()
    assert tuple(store.look(["a"], session="other").records["a"].sightings) == ()


def test_sightings_of_one_version_merge(store: Store, author: Author) -> None:
    author.write("a", b"one")
    store.record_sightings([sighting("a", b"one", (5, 7), (1, 2))], [blob(b"one")])
    store.record_sightings([replace(sighting("a", b"one", (3, 3), (20, 30)), whole=True)])
    store.record_sightings([replace(sighting("a", b"one", (6, 9)), anchored=((6, 9),))])

    expected = replace(sighting("a", b"one", (1, 3), (5, 9), (20, 30), seq=1), whole=True, anchored=((6, 9),))
    assert store.list_sightings("s", "a") == (expected,)
    assert store.list_sightings("other", "a") == ()
    assert store.list_sightings("s", "b") == ()


@requirement("session:store:bounded")
def test_the_newest_version_comes_first_and_eight_are_kept(store: Store) -> None:
    for number in range(10):
        store.record_sightings([sighting("a", b"%d" % number, (1, 1))])
    store.record_sightings([sighting("a", b"4", (2, 2))])

    found = store.list_sightings("s", "a")

    assert [each.sha256 for each in found] == [version(b"%d" % number).sha256 for number in (4, 9, 8, 7, 6, 5, 3, 2)]
    assert found[0].spans == ((1, 2),)


@requirement("session:store:bounded")
def test_a_session_forgets_the_paths_it_saw_longest_ago(store: Store) -> None:
    store.record_sightings([sighting("other", b"x", session="t")])
    store.record_sightings([sighting(f"{number}", b"x", (1, 1)) for number in range(PATHS_PER_SESSION)])
    store.record_sightings([sighting("0", b"x", (2, 2))])
    store.record_sightings([sighting("one more", b"x"), sighting("and another", b"x")])
    store.flush_sightings()

    assert store.list_sightings("s", "1") == ()
    assert store.list_sightings("s", "2") == ()
    for path in ("0", "3", "one more", "and another"):
        assert len(store.list_sightings("s", path)) == 1
    assert len(store.list_sightings("t", "other")) == 1


@requirement("session:store:bounded")
def test_what_a_search_showed_is_noted_without_reading_all_of_it_for_each_file(postgres_schema: PostgresSchema) -> None:
    count = 500
    shown = [["73", (b"%d" % number).hex(), "00" * 32, "[]", True, "[]", 0, "2026"] for number in range(count)]
    with postgres_schema.connect() as connection, connection.transaction():
        connection.execute("SELECT note_sightings(1, %s::jsonb, 8, 400)", (json.dumps(shown),))
        reads = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname = 'sightings'"
        (read,) = connection.execute(reads).fetchone() or (None,)
        (kept,) = connection.execute("SELECT count(*) FROM sightings").fetchone() or (None,)

    assert kept == 400
    assert isinstance(read, Decimal)
    assert read < 10 * count


@requirement("engine:store:intent")
def test_a_finished_edit_was_seen_by_its_author(store: Store) -> None:
    store.begin(intent("c1", change("a", None, b"one")), [blob(b"one")], lease=10, fence=0)
    (entry,) = store.finish("c1")
    store.record_sightings([sighting("a", b"one", (1, 1))], after_seq=entry.seq - 1)

    assert store.list_sightings("s", "a") == (sighting("a", b"one", (1, 1), seq=0),)


def test_every_sighting_says_when_the_session_first_saw_the_file(store: Store, author: Author) -> None:
    author.write("a", b"0")
    for number in range(12):
        store.record_sightings([sighting("a", b"%d" % number, (1, 1))])
        author.write("a", b"%d" % (number + 1))
    store.record_sightings([sighting("a", b"12", (1, 1), session="later")])

    assert {each.seq for each in store.list_sightings("s", "a")} == {1}
    assert [each.seq for each in store.list_sightings("later", "a")] == [13]


def test_the_newest_version_that_was_shown_as_a_whole_outlives_later_ones_that_were_not(store: Store) -> None:
    store.record_sightings([replace(sighting("a", b"old", (1, 9)), whole=True)])
    store.record_sightings([replace(sighting("a", b"whole", (1, 9)), whole=True)])
    for number in range(20):
        store.record_sightings([sighting("a", b"%d" % number, (1, 1))])

    kept = [one.sha256 for one in store.list_sightings("s", "a")]

    assert sighting("a", b"whole").sha256 in kept
    assert sighting("a", b"old").sha256 not in kept
    assert len(kept) == 9


def test_the_version_of_which_most_was_shown_outlives_later_ones(store: Store) -> None:
    store.record_sightings([sighting("a", b"most", (1, 50), (70, 90))])
    for number in range(20):
        store.record_sightings([sighting("a", b"%d" % number, (1, 1))])

    assert sighting("a", b"most").sha256 in [one.sha256 for one in store.list_sightings("s", "a")]
