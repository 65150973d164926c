"""A change of very many places: it is worked out before its directory is locked, and others do not wait for it."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.disk.base import Target
from surehold.text.plan import EditPlan
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.snapshot import Snapshot
from surehold.workspace.proposal import Proposal, Unproven
from workspaces import Bench, make_bench

ROW = b"foo and bar\n"
EDITS = (StringEdit(old="foo", new="quux", replace_all=True),)


class WatchedEdits(SnapshotEdits):
    """Notes at which version they are planned, and whether a lock is held then."""

    noted: list[tuple[int, bool]]
    locked: list[bool]

    def plan(self, before: Snapshot) -> EditPlan:
        self.noted.append((before.size, bool(self.locked)))
        return super().plan(before)


def watch(bench: Bench, monkeypatch: pytest.MonkeyPatch, *, meddle: bytes = b"") -> WatchedEdits:
    edits, lock = WatchedEdits(EDITS), bench.disk.lock
    noted, locked = list[tuple[int, bool]](), list[bool]()
    monkeypatch.setattr(WatchedEdits, "noted", noted, raising=False)
    monkeypatch.setattr(WatchedEdits, "locked", locked, raising=False)

    @contextmanager
    def watched_lock(targets: Sequence[Target], *, timeout: float) -> Generator[None]:
        if meddle:
            bench.put("a", meddle)
        with lock(targets, timeout=timeout):
            locked.append(True)
            yield
            locked.clear()

    monkeypatch.setattr(bench.disk, "lock", watched_lock)
    return edits


@pytest.fixture
def place(tmp_path: Path) -> Generator[Bench]:
    bench = make_bench("memory", "local", tmp_path)
    yield bench
    bench.workspace.close()


@requirement("engine:write:planned_ahead")
def test_a_change_of_many_places_is_planned_without_a_lock(place: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put("a", ROW * 50_000)
    edits = watch(place, monkeypatch)

    place.workspace.session().apply(Proposal(path="a", edit=edits, proof=Unproven()))

    assert edits.noted == [(50_000 * len(ROW), False)]
    assert place.get("a") == ROW.replace(b"foo", b"quux") * 50_000


@requirement("engine:write:planned_ahead")
def test_a_file_that_changed_before_the_lock_is_planned_again(place: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put("a", ROW * 50_000)
    edits = watch(place, monkeypatch, meddle=ROW * 40_000 + b"an outside line\n")

    place.workspace.session().apply(Proposal(path="a", edit=edits, proof=Unproven()))

    assert edits.noted == [(50_000 * len(ROW), False), (40_000 * len(ROW) + 16, True)]
    assert place.get("a") == ROW.replace(b"foo", b"quux") * 40_000 + b"an outside line\n"


def test_a_small_file_is_planned_once_under_the_lock(place: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put("a", ROW)
    edits = watch(place, monkeypatch)

    place.workspace.session().apply(Proposal(path="a", edit=edits, proof=Unproven()))

    assert edits.noted == [(len(ROW), True)]


def count_calls(bench: Bench, places: int) -> int:
    """Count the calls of functions that a change of so many places takes."""
    bench.put("a", ROW * places)
    session, calls = bench.workspace.session(), 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        session.apply(Proposal(path="a", edit=SnapshotEdits(EDITS), proof=Unproven()))
    finally:
        sys.setprofile(None)
    return calls


@requirement("engine:write:planned_ahead")
def test_each_further_place_takes_a_few_calls(place: Bench) -> None:
    count_calls(place, 10)  # imports
    few, many = count_calls(place, 30_000), count_calls(place, 60_000)
    assert (many - few) / 30_000 < 20
