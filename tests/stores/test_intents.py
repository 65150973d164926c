"""Opening, renewing and closing an intent, on every store."""

from dataclasses import replace

import pytest

from spec.marks import requirement
from stores.scenes import ELSEWHERE, Author, Clock, blob, call, change, intent, sha, version
from surehold.errors import StateUnavailable
from surehold.stores.base import (
    Begun,
    Busy,
    Change,
    Entry,
    Head,
    LedgerQuery,
    PathRecord,
    Replay,
    Sighting,
    StaleRead,
    Store,
    StoreView,
    WriterSpan,
)
from surehold.stores.ledger_rules import EXTERNAL
from surehold.stores.owner import Owner, current_owner
from surehold.stores.postgres.store import PostgresStore


def begin(
    store: Store, name: str, *changes: Change, fence: float = 0, key: str = "", owner: Owner | None = None
) -> object:
    asked = call(idempotency_key=key)
    wanted = intent(name, *changes, asked=asked, owner=owner)
    return store.begin(wanted, (), lease=10, fence=fence)


@requirement("engine:store:intent")
def test_a_finished_intent_is_an_entry_a_head_and_a_known_version(store: Store, clock: Clock) -> None:
    made = change("a.txt", None, b"one", diff="+one")
    wanted = intent("c1", made, asked=call("create", agent="ada", session="s", reason="because"))

    assert store.begin(wanted, [blob(b"one")], lease=10, fence=0) == Begun()
    assert store.open_intents() == (Busy(intent=wanted, owner_is_dead=False),)
    assert store.head_of("a.txt") is None
    entries = store.finish("c1")

    assert entries == (
        Entry(
            seq=1,
            change_id="c1",
            index=0,
            timestamp=clock.text,
            call=wanted.call,
            change=made,
            previous="",
            hash=entries[0].hash,
        ),
    )
    assert store.open_intents() == ()
    assert store.head_of("a.txt") == Head(
        path="a.txt", version=version(b"one"), writer="files", seq=1, timestamp=clock.text
    )
    assert store.knows_version("a.txt", version(b"one").sha256)
    assert not store.knows_version("b.txt", version(b"one").sha256)
    assert store.read_blob(version(b"one").sha256) == b"one"
    assert store.list_entries(LedgerQuery()) == entries
    assert store.verify().ok


@requirement("engine:ledger:chained")
def test_every_change_of_a_call_is_an_entry_in_order(store: Store) -> None:
    changes = [change(f"{name}.txt", None, b"x") for name in "abc"]

    assert begin(store, "c1", *changes) == Begun()
    entries = store.finish("c1")

    assert [(entry.seq, entry.index, entry.change) for entry in entries] == [
        (number + 1, number, made) for number, made in enumerate(changes)
    ]


@requirement("engine:ledger:chained")
def test_every_entry_has_the_hash_of_the_one_before_it(store: Store, author: Author) -> None:
    entries = [author.write(path, b"%d" % number)[0] for number, path in enumerate("abab")]
    a_path_has_its_own_chain = isinstance(store, PostgresStore)

    links = [(0, 2), (1, 3)] if a_path_has_its_own_chain else [(0, 1), (1, 2), (2, 3)]

    assert [entries[later].previous for _, later in links] == [entries[earlier].hash for earlier, _ in links]


@requirement("engine:store:abort")
def test_an_aborted_intent_leaves_failed_entries_and_no_head(store: Store) -> None:
    begin(store, "c1", change("a", None, b"x"), change("b", None, b"y"))

    entries = store.abort("c1", error_kind="disk_full", message="No room.")

    assert [(entry.ok, entry.error_kind, entry.message) for entry in entries] == [(False, "disk_full", "No room.")] * 2
    assert store.open_intents() == ()
    assert store.head_of("a") is None
    assert not store.knows_version("a", version(b"x").sha256)
    assert begin(store, "c2", change("a", None, b"z")) == Begun()


@requirement("engine:store:settled_once")
@pytest.mark.parametrize("how", ["finish", "abort"])
def test_an_intent_that_somebody_settled_cannot_be_closed_again(store: Store, how: str) -> None:
    begin(store, "c1", change("a", None, b"x"))
    store.abort("c1", error_kind="unknown", message="Settled by recovery.")

    with pytest.raises(StateUnavailable) as caught:
        store.finish("c1") if how == "finish" else store.abort("c1", error_kind="", message="")

    assert caught.value.reason == "intent_gone"
    assert not store.renew("c1", lease=10)
    assert len(store.list_entries(LedgerQuery())) == 1


@requirement("engine:store:exclusive")
def test_a_path_belongs_to_one_intent_at_a_time(store: Store) -> None:
    first = intent("c1", change("a", None, b"x"), change("b", None, b"y"))
    store.begin(first, (), lease=10, fence=0)

    assert begin(store, "c2", change("c", None, b"z"), change("b", None, b"z")) == Busy(
        intent=first, owner_is_dead=False
    )
    assert begin(store, "c3", change("c", None, b"z")) == Begun()
    store.finish("c1")
    assert begin(store, "c2", change("b", b"y", b"z")) == Begun()


@requirement("engine:store:exclusive")
def test_a_move_locks_both_of_its_paths(store: Store) -> None:
    begin(store, "c1", change("a", b"x", b"x", to_path="b"))

    assert isinstance(begin(store, "c2", change("a", None, b"")), Busy)
    assert isinstance(begin(store, "c3", change("b", None, b"")), Busy)


def test_the_same_intent_cannot_be_opened_twice(store: Store) -> None:
    begin(store, "c1", change("a", None, b"x"))

    assert isinstance(begin(store, "c1", change("b", None, b"x")), Busy)


@requirement("engine:store:lease")
def test_a_lease_that_is_over_makes_an_unreachable_owner_dead(store: Store, clock: Clock) -> None:
    begin(store, "c1", change("a", None, b"x"), owner=ELSEWHERE)

    clock.turn(seconds=9.9)
    assert [busy.owner_is_dead for busy in store.open_intents()] == [False]
    clock.turn(seconds=0.1)
    assert [busy.owner_is_dead for busy in store.open_intents()] == [True]
    second = begin(store, "c2", change("a", None, b"y"))
    assert isinstance(second, Busy)
    assert second.owner_is_dead


@requirement("engine:store:living_owner")
def test_an_owner_that_is_seen_to_live_is_alive_however_old_its_lease_is(store: Store, clock: Clock) -> None:
    begin(store, "c1", change("a", None, b"x"), key="once")

    clock.turn(hours=9)

    assert [busy.owner_is_dead for busy in store.open_intents()] == [False]
    assert [busy.owner_is_dead for busy in store.look(["a"]).holding] == [False]
    assert store.dead_intents(limit=9) == ()
    for asked in (begin(store, "c2", change("a", None, b"y")), begin(store, "c3", change("b", None, b"y"), key="once")):
        assert isinstance(asked, Busy)
        assert not asked.owner_is_dead


@requirement("engine:store:lease")
def test_a_lease_that_is_over_makes_an_owner_without_a_start_time_dead(store: Store, clock: Clock) -> None:
    begin(store, "c1", change("a", None, b"x"), owner=replace(current_owner(), started=""))

    assert [busy.owner_is_dead for busy in store.open_intents()] == [False]
    clock.turn(seconds=10)
    assert [busy.owner_is_dead for busy in store.open_intents()] == [True]


@requirement("engine:store:lease")
def test_a_renewed_lease_counts_from_now(store: Store, clock: Clock) -> None:
    begin(store, "c1", change("a", None, b"x"), owner=ELSEWHERE)

    clock.turn(seconds=9)
    assert store.renew("c1", lease=10)
    clock.turn(seconds=9)
    assert [busy.owner_is_dead for busy in store.open_intents()] == [False]
    clock.turn(seconds=1)
    assert [busy.owner_is_dead for busy in store.open_intents()] == [True]


def test_a_clock_that_goes_back_only_makes_a_lease_longer(store: Store, clock: Clock) -> None:
    begin(store, "c1", change("a", None, b"x"), owner=ELSEWHERE)

    clock.turn(hours=-1)

    assert [busy.owner_is_dead for busy in store.open_intents()] == [False]
    assert len(store.finish("c1")) == 1
    assert store.verify().ok


def test_open_intents_are_listed_oldest_first(store: Store) -> None:
    for name in ("c2", "c1", "c3"):
        begin(store, name, change(name, None, b"x"))
    store.renew("c2", lease=99)

    assert [busy.intent.id for busy in store.open_intents()] == ["c2", "c1", "c3"]


@requirement("engine:store:retry")
def test_a_retry_gets_the_first_answer(store: Store) -> None:
    begin(store, "c1", change("a", None, b"x"), change("b", None, b"y"), key="once")
    entries = store.finish("c1")

    assert begin(store, "c2", change("a", None, b"x"), key="once") == Replay(entries=entries)
    assert isinstance(begin(store, "c3", change("a", b"x", b"z"), key="twice"), Begun)


@requirement("engine:store:retry")
def test_the_id_of_a_change_is_its_key_too(store: Store) -> None:
    first = intent("c1", change("a", None, b"x"))
    store.begin(first, (), lease=10, fence=0)

    waiting = (begin(store, "c2", change("b", None, b"x"), key="c1"), store.look(["b"], idempotency_key="c1").earlier)
    entries = store.finish("c1")
    answered = (begin(store, "c3", change("b", None, b"x"), key="c1"), store.look(["b"], idempotency_key="c1").earlier)

    assert waiting == (Busy(intent=first, owner_is_dead=False),) * 2
    assert answered == (Replay(entries=entries),) * 2


@requirement("engine:store:retry_waits")
def test_a_retry_waits_while_the_first_attempt_is_under_way(store: Store) -> None:
    begin(store, "c1", change("a", None, b"x"), key="once")

    answer = begin(store, "c2", change("elsewhere", None, b"x"), key="once")

    assert isinstance(answer, Busy)
    assert answer.intent.id == "c1"


@requirement("engine:store:retry_waits")
def test_a_retry_after_a_failure_is_a_first_attempt(store: Store) -> None:
    begin(store, "c1", change("a", None, b"x"), key="once")
    store.abort("c1", error_kind="unknown", message="")

    assert begin(store, "c2", change("a", None, b"x"), key="once") == Begun()


@requirement("engine:store:external")
@pytest.mark.parametrize(
    ("ours", "found"), [(b"ours", b"theirs"), (b"ours", None), (None, b"theirs")], ids=["edit", "delete", "create"]
)
def test_an_outside_edit_becomes_an_entry_before_ours(
    store: Store, author: Author, clock: Clock, ours: bytes | None, found: bytes | None
) -> None:
    author.write("a", b"first")
    author.write("a", ours) if ours is not None else author.delete("a")
    clock.turn(seconds=5)

    answer = store.begin(intent("c9", change("a", found, b"new")), [], lease=10, fence=0)

    assert isinstance(answer, Begun)
    (external,) = answer.external
    assert (external.seq, external.change_id, external.call) == (3, "outside-3", EXTERNAL)
    assert external.change == change("a", ours, found)
    expected = None if found is None else version(found)
    assert store.head_of("a") == Head(path="a", version=expected, writer="external", seq=3, timestamp=clock.text)
    assert found is None or store.knows_version("a", version(found).sha256)
    assert store.finish("c9")[0].previous == external.hash
    assert store.verify().ok


def test_only_the_first_step_on_a_path_speaks_of_the_disk(store: Store, author: Author) -> None:
    author.write("a", b"one")
    moved, made = change("a", b"one", b"one", to_path="b"), change("a", None, b"two")

    assert begin(store, "c9", moved, made) == Begun()
    store.finish("c9")

    heads = [store.head_of(path) for path in ("a", "b")]
    assert [head and head.version for head in heads] == [version(b"two"), version(b"one")]


@requirement("engine:store:fence")
def test_older_bytes_of_ours_are_a_stale_cache_while_the_head_is_young(
    store: Store, author: Author, clock: Clock
) -> None:
    author.write("a", b"one")
    author.write("a", b"two")
    head = store.head_of("a")
    assert head is not None

    clock.turn(seconds=2)
    assert begin(store, "c9", change("a", b"one", b"x"), fence=3) == StaleRead(path="a", head=head)
    assert len(store.list_entries(LedgerQuery())) == 2
    clock.turn(seconds=1)
    assert isinstance(begin(store, "c9", change("a", b"one", b"x"), fence=3), Begun)


@requirement("engine:store:fence")
def test_unknown_bytes_are_never_fenced(store: Store, author: Author) -> None:
    author.write("a", b"one")
    author.write("a", b"two")

    answer = begin(store, "c9", change("a", b"theirs", b"x"), fence=3)

    assert isinstance(answer, Begun)
    assert len(answer.external) == 1


def test_a_fenced_call_records_nothing_of_its_other_paths(store: Store, author: Author) -> None:
    author.write("a", b"one")
    author.write("b", b"one")
    author.write("b", b"two")

    answer = begin(store, "c9", change("a", b"theirs", b"x"), change("b", b"one", b"x"), fence=3)

    assert isinstance(answer, StaleRead)
    assert len(store.list_entries(LedgerQuery())) == 3
    assert store.open_intents() == ()


def test_a_clock_that_was_set_back_does_not_fence_for_ever(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", b"one")
    author.write("a", b"two")

    clock.turn(days=-1)

    assert isinstance(begin(store, "c9", change("a", b"one", b"x"), fence=3), Begun)


def test_a_move_over_a_file_changes_both_heads(store: Store, author: Author) -> None:
    author.write("a", b"mine")
    author.write("b", b"other")
    moved = change("a", b"mine", b"mine", to_path="b", displaced=version(b"other"), trash_id="t1")

    assert begin(store, "c9", moved) == Begun()
    store.finish("c9")

    heads = [store.head_of(path) for path in ("a", "b")]
    assert [head and (head.version, head.seq) for head in heads] == [(None, 3), (version(b"mine"), 3)]
    (item,) = store.list_trash()
    assert (item.id, item.path, item.version, item.change_id) == ("t1", "b", version(b"other"), "c9")


def test_a_deleted_path_has_a_head_without_a_version(store: Store, author: Author, clock: Clock) -> None:
    author.write("a", b"one")
    author.delete("a")

    assert store.head_of("a") == Head(path="a", version=None, writer="files", seq=2, timestamp=clock.text)


def test_one_look_tells_what_a_write_must_know(store: Store) -> None:
    store.begin(intent("one", change("a", None, b"1")), [blob(b"1")], lease=10, fence=0)
    sighting = Sighting(session="s", path="a", sha256=sha(b"1"), spans=((1, 1),), whole=True)
    store.finish("one")
    store.record_sightings([sighting])
    store.begin(intent("two", change("b", None, b"2"), asked=call(idempotency_key="k")), [], lease=10, fence=0)

    view = store.look(["a", "b"], session="s", idempotency_key="k")

    assert [busy.intent.id for busy in view.holding] == ["two"]
    assert isinstance(view.earlier, Busy)
    assert view.records["a"].head == store.head_of("a")
    assert tuple(view.records["a"].sightings) == store.list_sightings("s", "a") != ()
    assert view.records["b"] == PathRecord(key="b")
    assert store.look(["a"]) == StoreView(
        holding=(), earlier=None, records={"a": PathRecord(key="a", head=store.head_of("a"))}
    )


def test_writers_are_listed_once_by_their_first_change_after_an_entry(store: Store) -> None:
    for number, writer in enumerate(["edit", "write_file", "edit"]):
        asked = replace(call(), writer=writer)
        before = str(number - 1).encode() if number else None
        store.begin(intent(writer, change("a", before, str(number).encode()), asked=asked), [], lease=10, fence=0)
        store.finish(writer)

    assert store.list_writers("a") == (
        WriterSpan(writer="edit", first_seq=1, last_seq=3),
        WriterSpan(writer="write_file", first_seq=2, last_seq=2),
    )
    assert [one.writer for one in store.list_writers("a", after_seq=1)] == ["write_file", "edit"]
    assert store.list_writers("b") == ()
