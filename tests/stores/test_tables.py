"""The tables of the SQLite store: what each statement leaves, for few rows and for many, and at every boundary."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stores.scenes import ELSEWHERE, START, call, change, intent, sha, sighting, version
from surehold.errors import NotFound, StateUnavailable, SureholdError
from surehold.stores import sightings as shown_sightings
from surehold.stores.base import Busy, Change, Entry, Head, Replay
from surehold.stores.ledger_entries import ChainTip, utc_timestamp
from surehold.stores.ledger_rules import EXTERNAL, entries_of
from surehold.stores.owner import Owner, current_owner
from surehold.stores.sqlite import tables
from surehold.stores.sqlite.database import Database
from surehold.stores.upkeep import LedgerCheck, TrashQuery

WHEN = utc_timestamp(START)
DEAD = replace(current_owner(), started="1")


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection inside a transaction."""
    database = Database(tmp_path / "state", durability="none")
    with database.write_transaction() as connection:
        yield connection
    database.close()


def entry(one: Change, *, name: str = "c", when: str = WHEN, **asked: Any) -> Entry:
    return Entry(change_id=name, timestamp=when, call=call(asked.pop("operation", "edit"), **asked), change=one)


def append(rows: sqlite3.Connection, drafts: list[Entry], *, many: bool) -> tuple[Entry, ...]:
    """Append entries one by one, or all at once: it comes to the same."""
    return tables.append_entries(rows, drafts) if many else tuple(tables.append_entry(rows, one) for one in drafts)


def everything(rows: sqlite3.Connection) -> dict[str, list[Any]]:
    names = ("tip", "heads", "path_writers", "trash", "switches")
    found = {name: rows.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    return {name: sorted(one, key=repr) for name, one in found.items()}


BY_OTHER = {"operation": "write"}
DRAFTS: dict[str, list[Entry]] = {
    "one": [entry(change("a", None, b"1"))],
    "one after another": [entry(change("a", None, b"1")), entry(change("a", b"1", b"2"), name="d")],
    "two writers in turn": [
        entry(change("a", None, b"1")),
        replace(entry(change("a", b"1", b"2")), call=replace(call(), writer="other")),
        entry(change("a", b"2", b"3")),
        replace(entry(change("a", b"3", b"4")), call=replace(call(), writer="other")),
        replace(entry(change("a", b"4", b"5")), call=replace(call(), writer="other")),
    ],
    "a move": [entry(change("a", None, b"1")), entry(change("a", b"1", b"1", to_path="b"))],
    "a deletion": [entry(change("a", None, b"1")), entry(change("a", b"1", None, trash_id="t1"))],
    "a deletion taken back": [
        entry(change("a", b"1", None, trash_id="t1")),
        entry(change("a", None, b"1"), name="d", operation="undo", undoes="c"),
    ],
    "an item brought back": [
        entry(change("a", b"1", None, trash_id="t1")),
        entry(change("b", b"1", None, trash_id="t2")),
        entry(change("b", None, b"1"), name="d", operation="restore", restores="t2"),
    ],
    "a displaced file": [entry(change("a", b"1", b"1", to_path="b", displaced=version(b"2"), trash_id="t1"))],
}


@pytest.mark.parametrize("name", list(DRAFTS))
def test_many_entries_at_once_leave_what_they_leave_one_by_one(tmp_path: Path, name: str) -> None:
    left = list[tuple[tuple[Entry, ...], dict[str, list[Any]]]]()
    for many in (False, True):
        database = Database(tmp_path / str(many), durability="none")
        with database.write_transaction() as connection:
            sealed = append(connection, DRAFTS[name], many=many)
            left.append((sealed, everything(connection)))
            assert tables.verify_chain(connection) == LedgerCheck(entries=len(DRAFTS[name]), blobs=0)
            assert tables.read_tip(connection) == ChainTip(seq=len(sealed), hash=sealed[-1].hash)
        database.close()
    assert left[0] == left[1]
    assert [one.seq for one in left[0][0]] == list(range(1, len(DRAFTS[name]) + 1))


@pytest.mark.parametrize("many", [False, True])
def test_heads_writers_and_trash_follow_from_the_entries(rows: sqlite3.Connection, *, many: bool) -> None:
    append(rows, DRAFTS["two writers in turn"], many=many)
    append(rows, [entry(change("m", b"1", b"1", to_path="n", displaced=version(b"2"), trash_id="t1"))], many=many)
    assert tables.read_heads(rows) == (
        Head(path="a", version=version(b"5"), writer="other", seq=5, timestamp=WHEN),
        Head(path="m", version=None, writer="files", seq=6, timestamp=WHEN),
        Head(path="n", version=version(b"1"), writer="files", seq=6, timestamp=WHEN),
    )
    spans = sorted(rows.execute("SELECT path, writer, first, last FROM path_writers"))
    assert spans == [(b"a", "files", 1, 3), (b"a", "other", 2, 4), (b"m", "files", 6, 6), (b"n", "files", 6, 6)]
    (item,) = tables.list_trash(rows, TrashQuery(state="kept"))
    assert (item.id, item.path, item.version, item.change_id) == ("t1", "n", version(b"2"), "c")


@pytest.mark.parametrize("many", [False, True])
def test_a_writer_that_another_one_follows_has_changed_a_path_up_to_its_last_entry(
    rows: sqlite3.Connection, *, many: bool
) -> None:
    other = replace(entry(change("a", b"2", b"3")), call=replace(call(), writer="other"))
    append(rows, [entry(change("a", None, b"1")), entry(change("a", b"1", b"2")), other], many=many)
    spans = sorted(rows.execute("SELECT writer, first, last FROM path_writers"))
    assert spans == [("files", 1, 2), ("other", 3, 3)]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    ("name", "kept", "restored"), [("a deletion taken back", [], ["t1"]), ("an item brought back", ["t1"], ["t2"])]
)
def test_what_is_brought_back_is_not_in_the_trash_any_more(
    rows: sqlite3.Connection, name: str, kept: list[str], restored: list[str], *, many: bool
) -> None:
    append(rows, DRAFTS[name], many=many)
    assert [one.id for one in tables.list_trash(rows, TrashQuery(state="kept"))] == kept
    assert [one.id for one in tables.list_trash(rows, TrashQuery(state="restored"))] == restored


def test_what_was_refused_and_what_was_cleaned_up_changes_no_head(rows: sqlite3.Connection) -> None:
    refused = replace(entry(change("a", None, b"1", trash_id="t", undoes=("c#0",))), ok=False)
    tables.append_entry(rows, refused)
    tables.append_entry(rows, entry(change("a", None, b"1"), operation="gc"))
    found = everything(rows)
    assert (found["heads"], found["trash"], found["switches"], found["tip"][0][1]) == ([], [], [], 2)


def test_a_change_that_takes_others_back_names_them_and_brings_their_files_back(rows: sqlite3.Connection) -> None:
    for name, path in (("c1", "a"), ("c2", "b"), ("c3", "a")):
        tables.append_entry(rows, entry(change(path, b"1", None, trash_id=f"t-{name}"), name=name))
    back = change("a", None, b"1", undoes=("c1#0", "c2#0"))
    tables.append_entry(rows, entry(back, name="u", operation="undo"))
    assert rows.execute("SELECT change_id, made_by FROM switches ORDER BY change_id").fetchall() == [
        (b"c1", b"u"),
        (b"c2", b"u"),
    ]
    assert [one.id for one in tables.list_trash(rows, TrashQuery(state="restored"))] == ["t-c1"]
    tables.append_entry(rows, entry(change("b", b"1", None, undoes=("c2#0",)), name="v", operation="undo"))
    assert [one.id for one in tables.list_trash(rows, TrashQuery(state="kept"))] == ["t-c3", "t-c2"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (TrashQuery(), ["t5", "t4", "t3", "t2", "t1"]),
        (TrashQuery(limit=2), ["t5", "t4"]),
        (TrashQuery(after="t4"), ["t3", "t2", "t1"]),
        (TrashQuery(after="t4", limit=1), ["t3"]),
        (TrashQuery(path="p1"), ["t5", "t3", "t1"]),
        (TrashQuery(path="p1", after="t5"), ["t3", "t1"]),
        (TrashQuery(path="p1", after="t4"), ["t3", "t1"]),
        (TrashQuery(path="none"), []),
        (TrashQuery(state="emptied"), []),
    ],
)
def test_the_trash_is_listed_page_by_page_newest_first(
    rows: sqlite3.Connection, query: TrashQuery, found: list[str]
) -> None:
    for number in range(1, 6):
        tables.append_entry(rows, entry(change(f"p{number % 2}", b"1", None, trash_id=f"t{number}")))
    assert [one.id for one in tables.list_trash(rows, query)] == found


@pytest.mark.parametrize("count", [1, 8, 9, 20])
def test_many_paths_are_looked_at_as_one_is(rows: sqlite3.Connection, count: int) -> None:
    held = intent("i", change("p1", None, b"1"), change("p3", None, b"1"))
    tables.add_intent(rows, held, opened=1, expires=2)
    for number in range(0, count, 2):
        tables.append_entry(rows, entry(change(f"p{number}", None, b"%d" % number)))
    tables.append_entry(rows, entry(change("p1", None, b"1")))
    paths = [f"p{number}" for number in range(count)]
    found = tables.look_at_paths(rows, paths)
    assert list(found) == paths
    assert found == {path: tables.look_at_path(rows, path) for path in paths}
    assert [path for path, (_, holder) in found.items() if holder] == [path for path in ("p1", "p3") if path in paths]
    for path, (head, _) in found.items():
        assert head == tables.read_head(rows, path)
        number = int(path[1:])
        assert (head.version if head else None) == (
            version(path[1:].encode()) if number % 2 == 0 or number == 1 else None
        )


def test_what_others_did_before_a_command_is_recorded_before_it(rows: sqlite3.Connection) -> None:
    tables.append_entry(rows, entry(change("a", None, b"1")))
    tables.append_entry(rows, entry(change("b", None, b"1")))
    ran = intent("run", change("a", b"theirs", b"2"), change("b", b"1", b"2"), change("new", None, b"2"))
    entries = tables.append_run(rows, ran, timestamp=WHEN)
    assert [(one.seq, one.change_id, one.index, one.change.path) for one in entries] == [
        (4, "run", 0, "a"),
        (5, "run", 1, "b"),
        (6, "run", 2, "new"),
    ]
    head = tables.read_head(rows, "a")
    assert head is not None
    assert (head.seq, head.version) == (4, version(b"2"))
    names = [row[0] for row in rows.execute("SELECT change_id FROM entries ORDER BY seq")]
    assert names[2] in {b"outside-3", "outside-3"}


@pytest.mark.parametrize("known", [True, False])
def test_kept_bytes_are_a_version_that_others_wrote_and_lie_in_the_trash(
    rows: sqlite3.Connection, *, known: bool
) -> None:
    if known:
        tables.append_entry(rows, entry(change("a", None, b"1")))
    wrote, left = tables.append_kept(rows, "a", version(b"theirs"), timestamp=WHEN)
    there, first = (version(b"1"), 2) if known else (None, 1)
    assert (wrote.seq, wrote.change_id, wrote.change) == (
        first,
        f"outside-{first}",
        Change(path="a", before=there, after=version(b"theirs")),
    )
    assert (left.seq, left.change_id, left.change.before, left.change.after) == (
        first + 1,
        f"kept-{first + 1}",
        version(b"theirs"),
        there,
    )
    head = tables.read_head(rows, "a")
    assert (head.version if head else "unknown") == (there if known else "unknown")
    (item,) = tables.list_trash(rows, TrashQuery(state="kept"))
    assert (item.id, item.version) == (left.change_id, version(b"theirs"))
    spans = rows.execute("SELECT first, last FROM path_writers WHERE writer = ?", (EXTERNAL.writer,)).fetchall()
    assert spans == [(first, first + (not known))]


# The end of the chain


@pytest.mark.parametrize(
    ("change_tip", "verdict"),
    [
        ("UPDATE tip SET seq = 3", (2, 3, "Entry 3 is missing: the ledger had 3 entries.")),
        ("UPDATE tip SET seq = 1", (2, 2, "Entry 2 is not the one that ended the ledger.")),
        ("UPDATE tip SET seq = 0, hash = ''", (2, 1, "Entry 1 is not the one that ended the ledger.")),
        ("UPDATE tip SET hash = 'other'", (2, 2, "Entry 2 is not the one that ended the ledger.")),
    ],
)
def test_the_end_of_the_ledger_is_known(
    rows: sqlite3.Connection, change_tip: str, verdict: tuple[int, int, str]
) -> None:
    for number in range(2):
        tables.append_entry(rows, entry(change("a", None, b"%d" % number)))
    assert tables.verify_chain(rows) == LedgerCheck(entries=2, blobs=0)
    rows.execute(change_tip)
    entries, broken, problem = verdict
    assert tables.verify_chain(rows) == LedgerCheck(entries=entries, blobs=0, broken_seq=broken, problem=problem)


def test_the_first_entry_that_is_not_what_was_written_is_named(rows: sqlite3.Connection) -> None:
    for number in range(3):
        tables.append_entry(rows, entry(change("a", None, b"%d" % number)))
    for (trigger,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        rows.execute(f"DROP TRIGGER {trigger}")
    rows.execute("UPDATE entries SET timestamp = timestamp + 1 WHERE seq = 2")
    verdict = tables.verify_chain(rows)
    assert (verdict.entries, verdict.broken_seq, verdict.blobs, bool(verdict.problem)) == (1, 2, 0, True)


# Intents


def test_an_intent_holds_its_paths_until_it_is_taken(rows: sqlite3.Connection) -> None:
    one = intent("one", change("a", b"1", b"1", to_path="b"))
    tables.add_intent(rows, one, opened=1, expires=START.timestamp() + 10)
    other = intent("other", change("c", None, b"1"))
    tables.add_intent(rows, other, opened=2, expires=START.timestamp() + 10)
    assert [tables.is_open(rows, name) for name in ("one", "other", "none")] == [True, True, False]
    assert [tables.look_at_path(rows, path)[1] for path in "abcd"] == [b"one", b"one", b"other", None]
    assert tables.find_by_id(rows, b"one", START) == Busy(intent=one, owner_is_dead=False)
    assert tables.find_by_id(rows, b"none", START) is None
    assert tables.take_intent(rows, "one", known=other) == one
    assert tables.take_intent(rows, "other", known=other) == other
    assert rows.execute("SELECT count(*) FROM locks").fetchone() == (0,)
    for known in (None, one):
        with pytest.raises((NotFound, StateUnavailable, SureholdError)):
            tables.take_intent(rows, "one", known=known)


def test_a_lease_is_extended_as_long_as_the_intent_is_open(rows: sqlite3.Connection) -> None:
    tables.add_intent(rows, intent("one", change("a", None, b"1"), owner=ELSEWHERE), opened=1, expires=5)
    assert tables.renew_lease(rows, "one", expires=9) is True
    assert rows.execute("SELECT expires FROM intents").fetchall() == [(9,)]
    assert tables.renew_lease(rows, "none", expires=9) is False


@pytest.mark.parametrize(("seconds", "dead"), [(1, False), (0, True), (-1, True)])
def test_the_lease_of_an_owner_elsewhere_is_over_at_its_moment(
    rows: sqlite3.Connection, seconds: int, *, dead: bool
) -> None:
    far = intent("far", change("a", None, b"1"), owner=ELSEWHERE)
    tables.add_intent(rows, far, opened=1, expires=START.timestamp() + seconds)
    assert tables.find_by_id(rows, b"far", START) == Busy(intent=far, owner_is_dead=dead)
    found = tables.list_dead(rows, now=START, limit=9, skip=())
    assert found == ((Busy(intent=far, owner_is_dead=True),) if dead else ())
    assert [one.owner_is_dead for one in tables.list_open(rows, now=START)] == [dead]


def test_the_oldest_of_dead_owners_are_listed_and_living_ones_are_not(rows: sqlite3.Connection) -> None:
    owners: list[Owner] = [DEAD, current_owner(), DEAD, DEAD]
    for number, owner in enumerate(owners):
        one = intent(f"i{number}", change(f"p{number}", None, b"1"), owner=owner)
        tables.add_intent(rows, one, opened=10 - number, expires=START.timestamp() - 5)

    def listed(limit: int, skip: tuple[str, ...] = ()) -> list[str]:
        return [one.intent.id for one in tables.list_dead(rows, now=START, limit=limit, skip=skip)]

    assert [listed(9), listed(2), listed(1), listed(2, ("i3",)), listed(3)] == [
        ["i3", "i2", "i0"],
        ["i3", "i2"],
        ["i3"],
        ["i2", "i0"],
        ["i3", "i2", "i0"],
    ]
    assert [(one.intent.id, one.owner_is_dead) for one in tables.list_open(rows, now=START)] == [
        ("i3", True),
        ("i2", True),
        ("i1", False),
        ("i0", True),
    ]


def test_an_intent_without_a_named_owner_is_judged_by_its_lease(rows: sqlite3.Connection) -> None:
    for name, seconds in (("over", -1), ("not over", 1)):
        one = intent(name, change(name, None, b"1"), owner=ELSEWHERE)
        tables.add_intent(rows, one, opened=1, expires=START.timestamp() + seconds)
    rows.execute("UPDATE intents SET owner = ''")  # as earlier versions left it
    assert [one.intent.id for one in tables.list_dead(rows, now=START, limit=9, skip=())] == ["over"]


def test_a_repeated_call_is_answered_by_its_key_or_by_the_id_of_its_change(rows: sqlite3.Connection) -> None:
    keyed = intent("one", change("a", None, b"1"), asked=call(idempotency_key="key"))
    tables.add_intent(rows, keyed, opened=1, expires=START.timestamp() + 9)
    busy = Busy(intent=keyed, owner_is_dead=False)
    assert [tables.find_by_key(rows, key, START) for key in ("key", "one", "")] == [busy, None, None]
    assert [tables.earlier_attempt(rows, key, START) for key in ("key", "one", "none", "")] == [busy, busy, None, None]
    tables.take_intent(rows, "one")
    made = tuple(tables.append_entry(rows, one) for one in entries_of(keyed, timestamp=WHEN))
    assert tables.earlier_attempt(rows, "one", START) == Replay(entries=made)
    assert tables.earlier_attempt(rows, "key", START) is None
    rows.execute("INSERT INTO answers (idempotency_key, change_id, timestamp) VALUES (?, ?, ?)", (b"key", b"one", WHEN))
    assert tables.earlier_attempt(rows, "key", START) == Replay(entries=made)
    assert tables.earlier_attempt(rows, "", START) is None
    refused = replace(entry(change("b", None, b"1"), name="two"), ok=False)
    tables.append_entry(rows, refused)
    assert tables.earlier_attempt(rows, "two", START) is None


def test_the_entries_of_a_change_are_answered_in_their_order(rows: sqlite3.Connection) -> None:
    one = intent("one", change("a", None, b"1"), change("b", None, b"1"), change("c", None, b"1"))
    made = tables.append_entries(rows, entries_of(one, timestamp=WHEN))
    assert tables.earlier_attempt(rows, "one", START) == Replay(entries=made)


# Sightings


def list_shown(rows: sqlite3.Connection, path: str, session: str = "s") -> list[tuple[str, tuple[Any, ...], bool, int]]:
    return [(one.sha256, one.spans, one.whole, one.seq) for one in tables.sightings_of_path(rows, session, path)]


def test_sightings_of_one_version_are_one_and_keep_their_first_entry(rows: sqlite3.Connection) -> None:
    one = sighting("a", b"1", (1, 2), seq=5)
    tables.add_sightings(
        rows, [(one, WHEN), (replace(one, spans=((3, 4),), whole=True, anchored=((1, 1),), seq=9), WHEN)]
    )
    tables.add_sightings(rows, [(sighting("a", b"2", (1, 1), seq=8), WHEN), (sighting("b", b"1", seq=7), WHEN)])
    tables.add_sightings(rows, [(sighting("a", b"3", (1, 1), session="t", seq=6), WHEN)])
    assert list_shown(rows, "a") == [(sha(b"2"), ((1, 1),), False, 5), (sha(b"1"), ((1, 4),), True, 5)]
    assert [tables.sightings_of_path(rows, "s", "a")[1].anchored, list_shown(rows, "b")] == [
        ((1, 1),),
        [(sha(b"1"), (), False, 7)],
    ]
    assert (list_shown(rows, "a", "t"), list_shown(rows, "none")) == ([(sha(b"3"), ((1, 1),), False, 6)], [])
    tables.add_sightings(rows, [(one, utc_timestamp(START + timedelta(days=1)))])
    assert [sha256 for sha256, *_ in list_shown(rows, "a")] == [sha(b"1"), sha(b"2")], "shown again is the newest"


def test_the_newest_versions_of_a_path_are_remembered_and_the_one_seen_best(rows: sqlite3.Connection) -> None:
    versions = [b"%d" % number for number in range(shown_sightings.VERSIONS_PER_PATH + 2)]
    for data in versions[:-2]:
        tables.add_sightings(rows, [(sighting("a", data, (1, 9 if data == b"0" else 1)), WHEN)])
    assert [one[0] for one in list_shown(rows, "a")] == [sha(data) for data in versions[-3::-1]]
    for data in versions[-2:]:
        tables.add_sightings(rows, [(sighting("a", data, (1, 1)), WHEN)])
    assert [one[0] for one in list_shown(rows, "a")] == [sha(data) for data in [*versions[:1:-1], versions[0]]]


def test_the_paths_of_a_session_that_were_shown_last_are_remembered(
    rows: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PATHS_PER_SESSION", 3)
    for number in range(3):
        tables.add_sightings(rows, [(sighting(f"p{number}", b"1"), WHEN), (sighting(f"p{number}", b"2"), WHEN)])
    tables.add_sightings(rows, [(sighting("p0", b"1"), WHEN), (sighting("q", b"1", session="t"), WHEN)])

    def known() -> list[str]:
        return [path for path in ("p0", "p1", "p2", "p3") if list_shown(rows, path)]

    assert known() == ["p0", "p1", "p2"]
    tables.add_sightings(rows, [(sighting("p3", b"1"), WHEN)])
    assert known() == ["p0", "p2", "p3"]
    assert list_shown(rows, "q", "t")
