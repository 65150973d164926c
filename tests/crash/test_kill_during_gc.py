"""A clean-up that seals old entries is killed before its system calls, or meets a full disk: the history stays whole.

After each run every entry is there with its hash, `verify` finds nothing, and the next clean-up goes on to the end.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from crash import operation as program
from crash.rig import SOAK, Copy, Nursery, Outcome, Rig, tree
from spec.marks import requirement
from stores.scenes import fill_history
from surehold.stores.base import LedgerQuery
from surehold.stores.ledger_entries import utc_now

ENTRIES, SEALED = 540, 511
Hashes = dict[int, str]


def make_rig(place: Path) -> Rig:
    template = Copy(place=place / "template")
    template.place.mkdir()
    fill_history(template.state, ENTRIES, start=utc_now() - timedelta(days=40))
    program.prepare(template.root, template.state, 10)
    return Rig(operation="gc", directory=place, template=template, before=tree(template.root), past=ENTRIES)


def read_hashes(copy: Copy) -> Hashes:
    with copy.opened() as workspace:
        return {entry.seq: entry.hash for entry in workspace.history.log(LedgerQuery(limit=10_000))}


def find_problems(copy: Copy, outcome: Outcome, expected: Hashes) -> list[str]:
    problems = [f"an error that is not ours: {outcome.broken}"] if outcome.broken else []
    if not (outcome.killed or outcome.acknowledged or outcome.refused or outcome.broken):
        problems.append("it ended without an answer")
    with copy.opened() as workspace:
        sealed = SEALED - workspace.history.gc(keep=timedelta(days=1), dry_run=True).details["archived"]
        if sealed not in {0, 255, SEALED} or (outcome.acknowledged and sealed != SEALED):
            problems.append(f"{sealed} entries are sealed")
    for moment in ("after it", "after the next one"):
        found = read_hashes(copy)
        if {seq: found.get(seq) for seq in expected} != expected:
            problems.append(f"{moment} an entry is missing or altered")
        with copy.opened() as workspace:
            if not (verdict := workspace.history.verify()).ok:
                problems.append(f"{moment} the history is broken: {verdict}")
            left = workspace.history.gc(keep=timedelta(days=1)).details["archived"]
            if left != (SEALED - sealed if moment == "after it" else 0):
                problems.append(f"{moment} {left} entries were left to be sealed")
    return problems


@requirement("engine:archive:interrupted")
@pytest.mark.timeout(3600 if SOAK else 600)
@pytest.mark.parametrize("error", ["", "ENOSPC", "EIO"] if SOAK else ["", "ENOSPC"])
def test_a_clean_up_that_dies_or_fails_leaves_the_history_whole(
    place: Path, count: Callable[[str, int], None], error: str
) -> None:
    one, problems = make_rig(place), list[str]()
    expected = read_hashes(one.template)
    with Nursery(one.operation) as nursery:
        for fault, copy, outcome in one.every(nursery, one.template, error, chosen=_is_chosen):
            problems += [f"{fault}: {problem}" for problem in find_problems(copy, outcome, expected)]
    count("error runs" if error else "kill runs", one.runs)
    assert problems == []
    assert one.runs > 5


def _is_chosen(number: int) -> bool:
    return SOAK or number < 3 or number % 24 == 0
