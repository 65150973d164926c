"""What others do between two steps of a write: a lease is lost, a mount lags behind, a file is saved, a commit is not told."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

import pytest

from spec.marks import requirement
from surehold.disk.base import KeepBytes, Step, StoredFile, Target
from surehold.errors import RecoveryRequired, StaleFile, StateUnavailable, SureholdError
from surehold.stores.base import Blob, Change, Entry, Intent, LedgerQuery, Sighting, StoreView
from surehold.stores.owner import Owner, current_owner
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.snapshot import Version, sha256_hex
from surehold.workspace.history import History
from surehold.workspace.proposal import NO_AUTHOR, Exact, Proposal
from surehold.workspace.settings import Limits
from workspaces import PAIRS, Bench, DiskKind, StoreKind, call, make_bench

DEAD = Owner(host="elsewhere", boot="", pid=1, started="")


def edit(path: str, old: str, new: str) -> Proposal:
    return Proposal(path=path, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())


def version(data: bytes) -> Version:
    return Version(sha256=sha256_hex(data), size=len(data))


@pytest.fixture
def overdue(bench: Bench, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Bench:
    """Return a bench whose every lease is over as soon as it begins."""
    store, disk = request.node.callspec.params["bench"]
    return make_bench(store, disk, tmp_path_factory.mktemp("overdue"), limits=Limits(lease=-1))


@pytest.fixture
def impatient(bench: Bench, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Bench:
    """Return a bench that waits for nothing."""
    store, disk = request.node.callspec.params["bench"]
    return make_bench(store, disk, tmp_path_factory.mktemp("impatient"), limits=Limits(lock_timeout=0))


@requirement("engine:store:lease")
def test_a_write_that_took_longer_than_its_lease_and_was_settled_changes_nothing(
    overdue: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    overdue.put("a", b"one\n")
    apply = overdue.disk.apply

    def settled_while_staging(steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes) -> None:
        def settle_then_fence() -> None:
            (busy,) = overdue.store.open_intents()
            overdue.store.abort(busy.intent.id, error_kind="interrupted", message="Settled by another machine.")
            fence()

        apply(steps, tag=tag, fence=settle_then_fence, keep=keep)

    monkeypatch.setattr(overdue.disk, "apply", settled_while_staging)

    with pytest.raises(StateUnavailable) as caught:
        overdue.workspace.write(edit("a", "one", "two"), call=call())

    assert (caught.value.reason, overdue.get("a")) == ("lease_lost", b"one\n")
    assert [(entry.ok, entry.message) for entry in overdue.workspace.history.log()] == [
        (False, "Settled by another machine.")
    ]
    assert overdue.store.open_intents() == ()


@requirement("engine:store:lease")
def test_a_write_that_took_longer_than_its_lease_renews_it_and_goes_on(
    overdue: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    overdue.put("a", b"one\n")
    renew, renewed = overdue.store.renew, list[str]()

    def count_renewals(intent_id: str, *, lease: float) -> bool:
        renewed.append(intent_id)
        return renew(intent_id, lease=lease)

    monkeypatch.setattr(overdue.store, "renew", count_renewals)

    receipt = overdue.workspace.write(edit("a", "one", "two"), call=call())

    assert (renewed, overdue.get("a")) == ([receipt.change_id], b"two\n")


def show_older_bytes(bench: Bench, data: bytes, *, coherent: bool, patch: pytest.MonkeyPatch) -> None:
    """Let the disk show these bytes, as a mount does whose cache lags behind."""
    read = bench.disk.read

    def read_cached(target: Target, *, limit: int, in_place: bool = False) -> StoredFile | None:
        del in_place
        stored = read(target, limit=limit)
        return replace(stored, data=data) if stored else None

    patch.setattr(bench.disk, "read", read_cached)
    patch.setattr(bench.disk, "read_watched", read_cached)
    patch.setattr(type(bench.disk), "is_coherent", property(lambda _: coherent))


@requirement("engine:store:fence")
def test_a_mount_that_shows_an_older_version_of_ours_is_refused_and_nothing_is_written(
    impatient: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = impatient
    bench.put("a", b"one\n")
    bench.workspace.write(edit("a", "one", "two"), call=call())
    show_older_bytes(bench, b"one\n", coherent=False, patch=monkeypatch)

    with pytest.raises(StaleFile) as caught:
        bench.workspace.write(edit("a", "one", "three"), call=call())

    assert (caught.value.reason, caught.value.path) == ("stale_cache", "a")
    assert caught.value.details == {"newest_sha256": sha256_hex(b"two\n")}
    assert bench.get("a") == b"two\n"
    assert [(entry.call.operation, entry.ok) for entry in bench.workspace.history.log()] == [
        ("edit", False),
        ("edit", True),
    ]
    assert bench.store.open_intents() == ()


@requirement("engine:store:fence_local")
def test_a_local_disk_that_shows_an_older_version_of_ours_is_believed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a", b"one\n")
    bench.workspace.write(edit("a", "one", "two"), call=call())
    bench.put("a", b"one\n")
    show_older_bytes(bench, b"one\n", coherent=True, patch=monkeypatch)

    bench.workspace.write(edit("a", "one", "three"), call=call())

    assert bench.get("a") == b"three\n"
    assert [entry.call.operation for entry in bench.workspace.history.log()] == ["edit", "external", "edit"]


@requirement("engine:recover:again")
def test_a_change_that_was_recorded_although_the_store_failed_afterwards_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a", b"one\n")
    bench.put("b", b"old\n")
    finish = bench.store.finish

    def finish_untold(intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        finish(intent_id, shown=shown)
        raise StateUnavailable("The disk was removed just after the commit.", reason="io_error")

    monkeypatch.setattr(bench.store, "finish", finish_untold)

    receipt = bench.workspace.write(edit("a", "one", "two"), edit("b", "old", "new"), call=call())

    assert [bench.get(name) for name in "ab"] == [b"two\n", b"new\n"]
    assert [(entry.change.path, entry.ok) for entry in receipt.entries] == [("a", True), ("b", True)]
    assert receipt.entries == bench.store.list_entries(LedgerQuery())[::-1]
    assert receipt.change_id == receipt.entries[0].change_id


@requirement("engine:recover:lock_first", "engine:lock:timeout")
def test_a_write_waits_for_a_dead_change_whose_other_file_is_held_for_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_open_in_two_directories(bench)
    look, looks = bench.store.look, list[Sequence[str]]()
    with ExitStack() as held:
        held.enter_context(bench.disk.lock([bench.disk.resolve("d/x")], timeout=1))

        def look_and_let_go(paths: Sequence[str], **more: Any) -> StoreView:
            looks.append(paths)
            if len(looks) == 3:  # the change could not be settled, and was waited for once
                held.close()
            return look(paths, **more)

        monkeypatch.setattr(bench.store, "look", look_and_let_go)

        bench.workspace.write(edit("a", "old", "mine"), call=call())

    assert (bench.get("a"), bench.get("d/x"), len(looks)) == (b"mine a", b"old x", 4)
    assert [(entry.change.path, entry.ok) for entry in bench.workspace.history.log()] == [
        ("a", True),
        ("d/x", False),
        ("a", False),
    ]


@requirement("engine:lock:timeout")
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_a_dead_change_whose_other_file_stays_held_is_named(pair: tuple[StoreKind, DiskKind], tmp_path: Any) -> None:
    bench = make_bench(*pair, tmp_path, limits=Limits(lock_timeout=0.05))
    leave_open_in_two_directories(bench)

    with (
        bench.disk.lock([bench.disk.resolve("d/x")], timeout=1),
        pytest.raises(RecoveryRequired, match=r"An interrupted change \(left\) still holds `a`") as caught,
    ):
        bench.workspace.write(edit("a", "new", "mine"), call=call())

    assert (caught.value.path, bench.get("a")) == ("a", b"new a")
    bench.workspace.close()


@requirement("engine:store:living_owner")
def test_a_write_leaves_the_open_change_of_a_living_process_alone(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.put("b", b"new b")
    change = Change(path="b", before=version(b"old b"), after=version(b"new b"))
    intent = Intent(id="alive", call=call(), changes=(change,), owner=current_owner(), began=bench.clock().isoformat())
    blobs = [Blob(data=data, sha256=sha256_hex(data)) for data in (b"old b", b"new b")]
    bench.store.begin(intent, blobs, lease=60, fence=0)

    bench.workspace.write(edit("a", "one", "two"), call=call())

    assert (bench.get("a"), bench.get("b")) == (b"two\n", b"new b")
    assert [busy.intent for busy in bench.store.open_intents()] == [intent]


@requirement("engine:recover:backward")
def test_a_file_is_not_read_before_the_change_of_a_dead_process_is_settled(bench: Bench) -> None:
    leave_open_in_two_directories(bench)

    assert bench.workspace.read("a").data == b"old a"
    assert bench.store.open_intents() == ()


def leave_open_in_two_directories(bench: Bench) -> None:
    """Leave a change of two files open that is done in one of them, as a process does that dies between two steps."""
    bench.put("a", b"new a")
    bench.put("d/x", b"old x")
    changes = (
        Change(path="a", before=version(b"old a"), after=version(b"new a")),
        Change(path="d/x", before=version(b"old x"), after=version(b"new x")),
    )
    intent = Intent(id="left", call=call(), changes=changes, owner=DEAD, began=bench.clock().isoformat())
    blobs = [Blob(data=data, sha256=sha256_hex(data)) for data in (b"old a", b"new a", b"old x", b"new x")]
    bench.store.begin(intent, blobs, lease=-1, fence=0)


def save_before_each_lock(bench: Bench, saves: list[bytes], patch: pytest.MonkeyPatch) -> None:
    """Let another program save a file each time after it was looked at and before it is locked."""
    lock = bench.disk.lock

    def save_then_lock(targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        if saves:
            bench.put("a", saves.pop(0))
        return lock(targets, timeout=timeout)

    patch.setattr(bench.disk, "lock", save_then_lock)


def undo_by_id(history: History, change_id: str) -> None:
    history.undo(change_id)


def undo_by_selection(history: History, change_id: str) -> None:
    history.switch_entries(history.show(change_id).entries, "undo", author=NO_AUTHOR)


UNDO = pytest.mark.parametrize("undo", [undo_by_id, undo_by_selection])


@requirement("engine:undo:selective")
@UNDO
def test_an_undo_looks_again_when_the_file_is_saved_before_it_is_locked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, undo: Callable[[History, str], None]
) -> None:
    bench.put("a", b"one\n2\n3\n4\n")
    done = bench.workspace.write(edit("a", "one", "two"), call=call())
    save_before_each_lock(bench, [b"two\n2\n3\nfour\n", b"two\n2\n3\nfour!\n"], monkeypatch)

    undo(bench.workspace.history, done.change_id)

    assert bench.get("a") == b"one\n2\n3\nfour!\n"


@requirement("engine:undo:selective")
@UNDO
def test_an_undo_of_a_file_that_is_saved_again_and_again_is_refused_in_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, undo: Callable[[History, str], None]
) -> None:
    bench.put("a", b"one\n2\n3\n4\n")
    done = bench.workspace.write(edit("a", "one", "two"), call=call())
    saves = [b"two\n2\n3\n%d\n" % number for number in range(100)]
    save_before_each_lock(bench, saves, monkeypatch)

    with pytest.raises(StaleFile):
        undo(bench.workspace.history, done.change_id)

    assert bench.get("a") == b"two\n2\n3\n%d\n" % (99 - len(saves))
    assert len(saves) > 90


def test_an_undo_that_is_refused_for_another_reason_is_not_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a", b"one\n")
    done = bench.workspace.write(edit("a", "one", "two"), call=call())
    begun = list[Intent]()

    def refuse(intent: Intent, blobs: Sequence[Blob], **_: float) -> None:
        begun.append(intent)
        raise StateUnavailable("There is no room.", reason="disk_full")

    monkeypatch.setattr(bench.store, "begin", refuse)

    with pytest.raises(SureholdError, match="There is no room"):
        bench.workspace.history.undo(done.change_id)
    assert (len(begun), bench.get("a")) == (1, b"two\n")


@requirement("engine:store:retry")
def test_a_repeated_call_whose_first_attempt_died_at_another_path_is_made(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.put("b", b"old\n")
    change = Change(path="b", before=version(b"old\n"), after=version(b"new\n"))
    asked = call(idempotency_key="k")
    intent = Intent(id="left", call=asked, changes=(change,), owner=DEAD, began=bench.clock().isoformat())
    blobs = [Blob(data=data, sha256=sha256_hex(data)) for data in (b"old\n", b"new\n")]
    assert bench.store.begin(intent, blobs, lease=-1, fence=0)

    receipt = bench.workspace.write(edit("a", "one", "two"), call=asked)

    assert (receipt.replayed, bench.get("a"), bench.get("b")) == (False, b"two\n", b"old\n")
    assert bench.store.open_intents() == ()
