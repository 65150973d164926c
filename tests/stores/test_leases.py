"""Whether an owner lives, as far as that can be seen, and the leases of the changes that this process makes."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from stores.scenes import change, intent
from surehold.errors import StateUnavailable, SureholdError
from surehold.stores import owner as module
from surehold.stores.base import Busy
from surehold.stores.owner import HeldLease, IntentLost, LeaseKeeper, Owner, counts_as_dead, current_owner, is_dead
from waiting import wait_until

HERE = Owner(host="machine", boot="boot", pid=7, started="50")


def facts(state: str = "S", *, threads: int = 1, started: str = "50") -> list[str]:
    """Return what is said of a process after its name: its state, its parent, …, its threads, and when it started."""
    return [state, "1", *["0"] * 15, str(threads), "0", started]


@pytest.fixture(autouse=True)
def no_other_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process gave changes up too."""
    monkeypatch.setattr(module, "_given_up", {})


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[bool, bool, bool]]:
    """Return a look at an owner: is it dead, and does it count as dead, before and after its lease?"""

    def look(
        owner: Owner, *, said: list[str] | None, signal: type[BaseException] | None = None, boot: str = "boot"
    ) -> tuple[bool, bool, bool]:
        def kill(pid: int, number: int) -> None:
            assert (pid, number) == (owner.pid, 0)
            if signal:
                raise signal

        monkeypatch.setattr(module, "current_owner", lambda: replace(HERE, boot=boot))
        monkeypatch.setattr(module, "_proc_stat", lambda _: said)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        monkeypatch.setattr(os, "kill", kill)
        module._look_lately.cache_clear()  # pyright: ignore[reportPrivateUsage] - what was found is believed for a moment
        return is_dead(owner), counts_as_dead(owner, lease_over=False), counts_as_dead(owner, lease_over=True)

    return look


ALIVE, DEAD, UNSEEN = (False, False, False), (True, True, True), (False, False, True)


@pytest.mark.parametrize(
    ("owner", "how", "found"),
    [
        (HERE, {"said": facts()}, ALIVE),
        (replace(HERE, host="another"), {"said": facts()}, UNSEEN),
        (replace(HERE, host="another", boot="another"), {"said": facts()}, UNSEEN),
        (replace(HERE, boot="another"), {"said": facts()}, DEAD),
        (replace(HERE, boot=""), {"said": facts()}, ALIVE),
        (HERE, {"said": facts(), "boot": ""}, ALIVE),
        (HERE, {"said": facts(), "signal": ProcessLookupError}, DEAD),
        (HERE, {"said": facts(), "signal": OverflowError}, DEAD),
        (HERE, {"said": facts(), "signal": PermissionError}, ALIVE),
        (HERE, {"said": None}, UNSEEN),
        (replace(HERE, started=""), {"said": facts()}, UNSEEN),
        (HERE, {"said": facts(started="51")}, DEAD),
        (HERE, {"said": facts("Z")}, DEAD),
        (HERE, {"said": facts("X")}, DEAD),
        (HERE, {"said": facts("Z", threads=0)}, DEAD),
        (HERE, {"said": facts("Z", threads=2)}, ALIVE),
        (HERE, {"said": facts("D")}, ALIVE),
    ],
)
def test_an_owner_is_dead_when_that_is_proven_and_its_lease_decides_when_it_cannot_be_seen(
    look: Callable[..., tuple[bool, bool, bool]], owner: Owner, how: dict[str, Any], found: tuple[bool, bool, bool]
) -> None:
    assert look(owner, **how) == found


def test_what_was_found_is_believed_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now = list[Owner](), [100.0]

    def ask(owner: Owner) -> str:
        asked.append(owner)
        return "dead"

    monkeypatch.setattr(module, "_look_for", ask)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    module._look_lately.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert counts_as_dead(HERE, lease_over=False)
    assert counts_as_dead(HERE, lease_over=False)
    now[0] += 0.2
    assert counts_as_dead(HERE, lease_over=False)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("namespace", "host"),
    [(module._FIRST_PID_NAMESPACE, ""), ("pid:[1]", "/pid:[1]"), (None, "")],  # pyright: ignore[reportPrivateUsage]
)
def test_a_process_is_named_with_its_namespace_and_its_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str | None, host: str
) -> None:
    link, boot = tmp_path / "ns", tmp_path / "boot"
    if namespace:
        link.symlink_to(namespace)
        boot.write_text("1234\n")
    monkeypatch.setattr(module, "_PID_NAMESPACE", link)
    monkeypatch.setattr(module, "_BOOT_ID", boot)
    module._describe_process.cache_clear()  # pyright: ignore[reportPrivateUsage]
    owner = current_owner()
    assert (owner.host, owner.boot, owner.pid) == (
        f"{os.uname().nodename}{host}",
        "1234" if namespace else "",
        os.getpid(),
    )
    module._describe_process.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_a_process_that_cannot_be_seen_has_no_start_and_no_name() -> None:
    module._describe_process.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert module._describe_process(2**22 + 5).started == ""  # pyright: ignore[reportPrivateUsage]
    assert module._command_name(2**22 + 5) == ""  # pyright: ignore[reportPrivateUsage]
    assert module._command_name(os.getpid()) == Path(f"/proc/{os.getpid()}/comm").read_text().strip()  # pyright: ignore[reportPrivateUsage]


def test_launchers_are_passed_over_on_the_way_to_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {40: "uv", 30: "uvx", 20: "editor", 10: "uv"}
    parents = {40: "30", 30: "20", 20: "10"}
    monkeypatch.setattr(os, "getppid", lambda: 40)
    monkeypatch.setattr(module, "_command_name", lambda pid: names.get(pid, ""))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(module, "_proc_stat", lambda pid: ["S", parents[pid], *["0"] * 15, "1", "0", "50"])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    module._describe_process.cache_clear()  # pyright: ignore[reportPrivateUsage]
    parent = module.parent_owner()
    assert parent is not None
    assert (parent.pid, parent.started) == (20, "50")
    monkeypatch.setattr(module, "_proc_stat", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    module._describe_process.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert module.parent_owner() is None
    module._describe_process.cache_clear()  # pyright: ignore[reportPrivateUsage]


# Leases


@dataclass
class Renewals:
    """A store that only renews, as it is told."""

    answers: list[bool | SureholdError] = field(default_factory=list[bool | SureholdError])
    asked: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    def renew(self, intent_id: str, *, lease: float) -> bool:
        self.asked.append((intent_id, lease))
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, SureholdError):
            raise answer
        return answer


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which is turned by hand."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def lease_of(store: Renewals, *, seconds: float = 10, **more: Any) -> HeldLease:
    return HeldLease(store=store, intent_id="i", seconds=seconds, renewed=100.0, pid=os.getpid(), **more)  # pyright: ignore[reportArgumentType]


def test_a_lease_is_renewed_at_the_fence_when_it_is_more_than_half_over(now: list[float]) -> None:
    store = Renewals()
    lease = lease_of(store)
    now[0] = 105
    lease.check()
    assert (store.asked, lease.renewed) == ([], 100)
    now[0] = 105.1
    lease.check()
    assert (store.asked, lease.renewed) == ([("i", 10)], 105.1)
    now[0] = 110
    lease.check()
    assert len(store.asked) == 1


def test_a_lease_that_another_process_ended_lets_nothing_become_visible(now: list[float]) -> None:
    store = Renewals([False])
    lease = lease_of(store)
    now[0] = 110
    for _ in range(2):
        with pytest.raises(StateUnavailable) as caught:
            lease.check()
        assert caught.value.reason == "lease_lost"
    assert (lease.lost, len(store.asked)) == (True, 1)


def test_the_disk_is_waited_for_before_anything_becomes_visible(now: list[float]) -> None:
    waited = list[int]()
    lease_of(Renewals(), reach_disk=lambda: waited.append(1)).check()
    assert (waited, now) == ([1], [100.0])
    problem = StateUnavailable("gone")

    def fail() -> None:
        raise problem

    with pytest.raises(IntentLost) as caught:
        lease_of(Renewals(), reach_disk=fail).check()
    assert caught.value.error is problem


@pytest.fixture
def keeper() -> Iterator[LeaseKeeper]:
    keeper = LeaseKeeper(Renewals(), settle=lambda _: False)  # pyright: ignore[reportArgumentType]
    yield keeper
    keeper.close()


def test_a_lease_is_due_when_a_quarter_of_it_is_over(keeper: LeaseKeeper, now: list[float]) -> None:
    keeper._watch = lambda: None  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - no thread
    due = keeper._due  # pyright: ignore[reportPrivateUsage]
    one = intent("one", change("a", None, b"x"))
    waited = list[int]()
    with keeper.hold(one, seconds=10, reach_disk=lambda: waited.append(1)) as lease:
        lease.check()
        assert waited == [1]
        assert (lease.intent_id, lease.seconds, lease.renewed, lease.lost) == ("one", 10, 100, False)
        now[0] = 102.4
        assert due() == []
        now[0] = 102.5
        assert due() == [lease]
        lease.lost = True
        assert due() == []
        lease.lost, lease.pid = False, os.getpid() + 1
        assert due() == []
        lease.pid, lease.seconds = os.getpid(), 0
        assert due() == []
    assert due() == []


def test_the_thread_looks_four_times_in_the_shortest_lease(keeper: LeaseKeeper) -> None:
    keeper._watch = lambda: None  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - no thread
    one = intent("one", change("a", None, b"x"))
    paused = list[float]()
    for seconds in (0, 100, 1, 8):
        with keeper.hold(one, seconds=seconds):
            paused.append(keeper._pause_seconds)  # pyright: ignore[reportPrivateUsage]
    assert paused == [2.5, 2.5, 0.25, 0.25]


def test_what_is_held_is_renewed_by_a_thread_that_ends_with_the_work() -> None:
    store = Renewals([StateUnavailable("away"), True])
    keeper = LeaseKeeper(store, settle=lambda _: False)  # pyright: ignore[reportArgumentType]
    with keeper.hold(intent("one", change("a", None, b"x")), seconds=0.02) as lease:
        wait_until(lambda: len(store.asked) > 2, "nothing was renewed")
        thread = keeper._thread  # pyright: ignore[reportPrivateUsage]
        assert thread is not None
        assert (thread.daemon, lease.lost) == (True, False)
    wait_until(lambda: not thread.is_alive(), "the thread goes on without work")
    assert keeper._thread is None  # pyright: ignore[reportPrivateUsage]
    with keeper.hold(intent("two", change("a", None, b"x")), seconds=0.02):
        wait_until(lambda: store.asked[-1] == ("two", 0.02), "nothing was renewed by another thread")
    keeper.close()


def test_what_was_given_up_is_settled_by_the_thread_as_soon_as_that_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[bool | SureholdError] = [StateUnavailable("away"), False, True]
    tried = list[str]()

    def settle(one: Any) -> bool:
        tried.append(one.id)
        answer = answers.pop(0)
        if isinstance(answer, SureholdError):
            raise answer
        return answer

    monkeypatch.setattr(module, "_LONGEST_PAUSE_SECONDS", 0.01)
    keeper = LeaseKeeper(Renewals(), settle=settle)  # pyright: ignore[reportArgumentType]
    keeper.give_up(intent("one", change("a", None, b"x")))
    wait_until(lambda: not keeper.list_given_up(), "it was not settled")
    wait_until(lambda: keeper._thread is None, "the thread goes on without work")  # pyright: ignore[reportPrivateUsage]
    assert tried == ["one"] * 3
    keeper.close()


def test_what_was_given_up_may_be_settled_by_this_process_and_what_lives_may_not(keeper: LeaseKeeper) -> None:
    keeper._watch = lambda: None  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - no thread
    one, other = (intent(name, change("a", None, b"x")) for name in ("one", "other"))
    keeper.give_up(one)
    assert keeper.list_given_up() == (one,)
    settled = [
        keeper.may_settle(Busy(intent=which, owner_is_dead=dead)) for which in (one, other) for dead in (False, True)
    ]
    assert settled == [True, True, False, True]
    keeper.forget("one")
    assert (keeper.list_given_up(), keeper.may_settle(Busy(intent=one, owner_is_dead=False))) == ((), False)
