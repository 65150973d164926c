"""Changes that take longer than a lease, that another machine settled, or that their own process had to give up."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from spec.marks import requirement
from surehold.disk.base import KeepBytes, Step, StoredFile, Target
from surehold.errors import RecoveryRequired, StateUnavailable
from surehold.stores import owner
from surehold.stores.base import Call, Entry, LedgerQuery, Sighting
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.workspace.proposal import Exact, Proposal
from surehold.workspace.settings import Limits
from waiting import HANG_SECONDS, wait_until
from workspaces import PAIRS, Bench, DiskKind, StoreKind, call, make_bench


@pytest.fixture(params=PAIRS, ids="+".join)
def brief(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Return a bench with short leases."""
    store, disk = cast("tuple[StoreKind, DiskKind]", request.param)
    return make_bench(store, disk, tmp_path, limits=Limits(lease=0.2))


def edit(path: str, old: str, new: str) -> Proposal:
    return Proposal(path=path, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())


def wait_before_the_fence(bench: Bench, patch: pytest.MonkeyPatch, wait: Callable[[], object]) -> None:
    """Let every change wait for something when all its bytes are staged and none of them is visible."""
    apply = bench.disk.apply

    def apply_slowly(steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes) -> None:
        def wait_then_fence() -> None:
            wait()
            fence()

        apply(steps, tag=tag, fence=wait_then_fence, keep=keep)

    patch.setattr(bench.disk, "apply", apply_slowly)


def settle_elsewhere(bench: Bench) -> None:
    (busy,) = bench.store.open_intents()
    bench.store.abort(busy.intent.id, error_kind="interrupted", message="Settled by another machine.")


@requirement("engine:store:renewed")
def test_a_change_that_takes_long_is_renewed_by_a_thread(brief: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    brief.put("a", b"one\n")
    renew, renewed, thrice = brief.store.renew, list[str](), threading.Event()

    def count(intent_id: str, *, lease: float) -> bool:
        renewed.append(intent_id)
        if len(renewed) == 3:
            thrice.set()
        return renew(intent_id, lease=lease)

    monkeypatch.setattr(brief.store, "renew", count)
    wait_before_the_fence(brief, monkeypatch, lambda: thrice.wait(HANG_SECONDS))

    receipt = brief.workspace.write(edit("a", "one", "two"), call=call())

    assert set(renewed) == {receipt.change_id}
    assert brief.get("a") == b"two\n"


@requirement("engine:store:renewed")
def test_a_lease_that_was_lost_is_noticed_before_anything_is_visible(
    brief: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief.put("a", b"one\n")
    renew, answers, noticed = brief.store.renew, list[bool](), threading.Event()

    def watch(intent_id: str, *, lease: float) -> bool:
        answers.append(renew(intent_id, lease=lease))
        if not answers[-1]:
            noticed.set()
        return answers[-1]

    def settle_and_wait() -> None:
        settle_elsewhere(brief)
        assert noticed.wait(HANG_SECONDS)

    monkeypatch.setattr(brief.store, "renew", watch)
    wait_before_the_fence(brief, monkeypatch, settle_and_wait)

    with pytest.raises(StateUnavailable) as caught:
        brief.workspace.write(edit("a", "one", "two"), call=call())

    assert (caught.value.reason, brief.get("a")) == ("lease_lost", b"one\n")
    assert [(entry.ok, entry.message) for entry in brief.workspace.history.log()] == [
        (False, "Settled by another machine.")
    ]


@requirement("engine:store:renewed")
def test_a_change_that_was_settled_after_it_became_visible_is_taken_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a", b"one\n")
    bench.put("b", b"old\n")
    finish = bench.store.finish

    def finish_too_late(intent_id: str, *, shown: Sequence[Sighting] = ()) -> tuple[Entry, ...]:
        settle_elsewhere(bench)
        return finish(intent_id, shown=shown)

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "finish", finish_too_late)
        with pytest.raises(StateUnavailable) as caught:
            bench.workspace.write(edit("a", "one", "two"), edit("b", "old", "new"), call=call())

    assert caught.value.reason == "intent_gone"
    assert [bench.get(name) for name in "ab"] == [b"one\n", b"old\n"]
    bench.workspace.write(edit("a", "one", "three"), call=call())
    assert [entry.call.operation for entry in bench.store.list_entries(LedgerQuery(ok_only=True))] == ["edit"]


def lose_the_store(bench: Bench, patch: pytest.MonkeyPatch) -> None:
    """Let the store fail in everything that ends a change."""

    def fail(*_: object, **__: object) -> Any:
        raise StateUnavailable("The database is away.", reason="state_unreachable")

    for name in ("finish", "abort", "withdraw", "is_open"):
        patch.setattr(bench.store, name, fail)


@requirement("fleet:state:unknown", "engine:store:given_up")
@pytest.mark.parametrize("key", ["", "the-key"])
def test_a_change_of_unknown_fate_is_settled_by_the_same_call_with_the_key_that_was_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    bench.put("a", b"one\n")
    asked = Call(tool="edit", operation="edit", writer="edit", idempotency_key=key)
    with monkeypatch.context() as patch:
        lose_the_store(bench, patch)
        with pytest.raises(RecoveryRequired) as caught:
            bench.workspace.write(edit("a", "one", "two"), call=asked)
    named = caught.value.details["idempotency_key"]

    again = bench.workspace.write(edit("a", "one", "two"), call=call(idempotency_key=named))

    assert f"`{named}`" in caught.value.action
    assert (again.replayed, again.change_id) == (True, caught.value.details["change_id"])
    assert bench.get("a") == b"two\n"
    assert [entry.ok for entry in bench.store.list_entries(LedgerQuery())] == [True]
    assert bench.store.open_intents() == ()


@requirement("engine:store:given_up")
def test_a_change_that_was_given_up_is_settled_when_the_store_is_back_without_another_call(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "_LONGEST_PAUSE_SECONDS", 0.01)
    bench.put("a", b"one\n")
    with monkeypatch.context() as patch:
        lose_the_store(bench, patch)
        with pytest.raises(RecoveryRequired):
            bench.workspace.write(edit("a", "one", "two"), call=call())
        assert len(bench.store.open_intents()) == 1

    wait_until(lambda: not bench.store.open_intents())

    assert bench.get("a") == b"two\n"
    assert [entry.ok for entry in bench.store.list_entries(LedgerQuery())] == [True]


@requirement("engine:store:given_up")
def test_an_intent_whose_begin_was_not_answered_holds_nobody_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put("a", b"one\n")
    begin = bench.store.begin

    def begin_untold(*args: Any, **more: Any) -> Any:
        begin(*args, **more)
        raise StateUnavailable("The database is away.", reason="state_unreachable")

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "begin", begin_untold)
        with pytest.raises(StateUnavailable):
            bench.workspace.write(edit("a", "one", "two"), call=call())
    bench.workspace.write(edit("a", "one", "three"), call=call())

    assert bench.get("a") == b"three\n"
    assert bench.store.open_intents() == ()


@requirement("engine:store:goes_round")
@pytest.mark.parametrize("quoted", ["last", "two"], ids=["old and new", "new only"])
def test_a_mount_that_lags_behind_is_read_again_and_nothing_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, quoted: str
) -> None:
    bench.put("a", b"one\nlast\n")
    bench.workspace.write(edit("a", "one", "two"), call=call())
    older, read, lag = b"one\nlast\n", bench.disk.read_watched, [3]

    def read_lagging(target: Target, *, limit: int, in_place: bool = False) -> StoredFile | None:
        stored = read(target, limit=limit, in_place=in_place)
        lag[0] -= 1
        return replace(stored, data=older) if stored and lag[0] >= 0 else stored

    monkeypatch.setattr(bench.disk, "read_watched", read_lagging)
    monkeypatch.setattr(type(bench.disk), "is_coherent", property(lambda _: False))

    bench.workspace.write(edit("a", quoted, "end"), call=call())

    assert bench.get("a") == b"two\nlast\n".replace(quoted.encode(), b"end")
    assert [(entry.call.operation, entry.ok) for entry in bench.store.list_entries(LedgerQuery())] == [
        ("edit", True),
        ("edit", True),
    ]
