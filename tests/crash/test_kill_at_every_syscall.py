"""A real process, killed before every single system call that changes something, and failing at every one of them.

The long runs also kill it before calls that only read, lock or sync and in the middle of a long series of writes to one
file, and let every call fail with every error.

After each run the workspace is opened anew, which recovers it, and must keep every promise:
I1 a file is its old or its new version     I4 what was acknowledged can be undone, bytes and mode
I2 several files change together            I5 no temporary file and no open intent is left
I3 what was acknowledged is there           I6 ledger, blobs and disk agree
Directories that were made for a file that never came may stay; they are empty.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.operation import OPERATIONS, RECOVER
from crash.rig import SOAK, Copy, Nursery, Rig, rig, tree
from spec.marks import requirement
from surehold.stores.ledger_entries import utc_now
from surehold.stores.sqlite.store import SqliteStore

SIZES = (10, 10_000, 3_000_000) if SOAK else (10,)
ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EMFILE") if SOAK else ("ENOSPC", "EIO")
TWICE = tuple(OPERATIONS) if SOAK else ("patch", "edit in place", "move over")
Count = Callable[[str, int], None]


@requirement(
    "engine:crash:kill",
    "engine:recover:temporaries",
    "engine:recover:backward",
    "engine:recover:forward",
    "promise:half_done:one_file",
    "promise:half_done:many_files",
    "promise:nothing_lost:checkpoint",
)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kill_before_any_system_call_breaks_no_promise(operation: str, size: int, place: Path, count: Count) -> None:
    with rig(operation, place, size=size) as (one, nursery):
        for fault, copy, outcome in one.every(nursery, one.template):
            one.check(copy, outcome, str(fault))
    _report(one, "kill runs", count)


@requirement("engine:crash:disk_errors", "engine:bad_input:disk_full", "engine:bad_input:nothing_left")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_error_of_any_system_call_is_reported_and_breaks_no_promise(
    operation: str, error: str, size: int, place: Path, count: Count
) -> None:
    with rig(operation, place, size=size) as (one, nursery):
        for fault, copy, outcome in one.every(nursery, one.template, error, chosen=_chosen(error)):
            one.check(copy, outcome, str(fault))
    _report(one, "error runs", count)


@requirement("engine:bad_input:disk_full")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operation", OPERATIONS if SOAK else TWICE)
def test_a_disk_that_stays_full_breaks_no_promise(operation: str, size: int, place: Path, count: Count) -> None:
    with rig(operation, place, size=size) as (one, nursery):
        for fault, copy, outcome in one.every(nursery, one.template, "ENOSPC", lasting=True):
            one.check(copy, outcome, str(fault))
    _report(one, "error runs", count)


@requirement("engine:recover:again")
@pytest.mark.timeout(3600 if SOAK else 1200)
@pytest.mark.parametrize("operation", TWICE)
def test_a_kill_during_the_recovery_from_a_kill_breaks_no_promise(operation: str, place: Path, count: Count) -> None:
    with rig(operation, place, size=SIZES[0]) as (one, nursery), Nursery(RECOVER) as rescuer:
        seen = set[object]()
        for fault, copy, outcome in one.every(nursery, one.template):
            if (state := _unfinished(copy)) is None or state in seen:
                continue
            seen.add(state)
            turn = len(seen) % 2  # one state is left at the even calls of its recovery, the next at the odd ones
            for again, ruin, _ in one.every(rescuer, copy, chosen=lambda number, turn=turn: SOAK or number % 2 == turn):
                one.check(ruin, outcome, f"{fault}, then {again}")
    assert len(seen) >= 3, "the kills left too few states to recover from"
    _report(one, "kill runs", count)


def _chosen(error: str) -> Callable[[int], bool]:
    """Let the errors take turns: each strikes the first call of every kind, and the others go round."""
    turn = ERRORS.index(error)
    return lambda number: SOAK or number == 1 or number % len(ERRORS) == turn


def _unfinished(copy: Copy) -> object | None:
    """Return what a recovery would find, the same for equal finds; None when there is nothing to recover."""
    store = SqliteStore(copy.state, clock=utc_now, durability="none")
    try:
        intents = store.open_intents()
    finally:
        store.close()
    if not intents:
        return None
    return frozenset((re.sub(r"surehold-\w+-", "surehold-", path), file) for path, file in tree(copy.root).items())


def _report(one: Rig, kind: str, count: Count) -> None:
    count(kind, one.runs)
    count("violations", len(one.violations))
    assert one.violations == []
