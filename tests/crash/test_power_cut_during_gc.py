"""The power is cut while a clean-up seals old entries: every entry is there with its hash, and the next clean-up ends it.

A clean-up that does not wait for the disk must be caught.
"""

import random
import shutil
from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import pytest

from crash.power import record
from crash.rig import SOAK
from spec.marks import requirement
from stores.scenes import fill_history
from surehold.app import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.stores.base import LedgerQuery
from surehold.stores.ledger_entries import utc_now

ENTRIES, SEALED = 540, 511
KEEP = timedelta(days=1)
CUTS = 100_000 if SOAK else 20
CLEAN_UP = """
import sys
from datetime import timedelta
from pathlib import Path
from surehold.app import Settings, open_workspace
settings = Settings(state_dir=Path(sys.argv[2]), durability=sys.argv[3])
with open_workspace(sys.argv[1], settings=settings) as workspace:
    assert workspace.history.gc(keep=timedelta(days=1)).details["archived"]
"""
Hashes = dict[int, str]


def read_hashes(place: Path) -> Hashes:
    with open_workspace(place / "root", settings=Settings(state_dir=place / "state", durability="none")) as workspace:
        return {entry.seq: entry.hash for entry in workspace.history.log(LedgerQuery(limit=10_000))}


def find_problems(place: Path, expected: Hashes) -> Iterator[str]:
    try:
        for moment in ("after it", "after the next one"):
            if read_hashes(place) != expected:
                yield f"{moment} an entry is missing or altered"
            settings = Settings(state_dir=place / "state", durability="none")
            with open_workspace(place / "root", settings=settings) as workspace:
                if not (verdict := workspace.history.verify()).ok:
                    yield f"{moment} the history is broken: {verdict}"
                left = workspace.history.gc(keep=KEEP).details["archived"]
                if left not in ({0, 256, SEALED - 255, SEALED} if moment == "after it" else {0}):
                    yield f"{moment} {left} entries were left to be sealed"
    except SureholdError as error:
        yield f"it cannot be opened: {error.message} {error.details}"


def cut_power(tmp_path: Path, durability: str, *, cuts: int) -> Iterator[tuple[str, list[str]]]:
    """Clean up once, and cut the power at so many moments; yield what each cut broke."""
    place, log, ruin = tmp_path / "place", tmp_path / "trace", tmp_path / "ruin"
    (place / "root").mkdir(parents=True)
    fill_history(place / "state", ENTRIES, start=utc_now() - timedelta(days=40))
    expected = read_hashes(place)
    drive = record(place, log, ["-c", CLEAN_UP, str(place / "root"), str(place / "state"), durability])
    drive.pauses_at_writes = True
    moments = sum(1 for _ in deepcopy(drive).play(log))
    chosen = set(random.Random(1).sample(range(moments), min(cuts, moments)))
    for number, what in enumerate(drive.play(log)):
        if number in chosen:
            for luck in (None, random.Random(number)):
                ruin.mkdir()
                drive.write_cut(ruin, luck)
                yield f"cut {number}, {what}, {luck and 'random'}", [*find_problems(ruin, expected)]
                shutil.rmtree(ruin)


@requirement("engine:archive:interrupted")
@pytest.mark.timeout(3600 if SOAK else 300)
def test_a_power_cut_during_a_clean_up_leaves_the_history_whole(tmp_path: Path) -> None:
    results = list(cut_power(tmp_path, "full", cuts=CUTS))

    assert [one for one in results if one[1]] == []
    assert len(results) > 30


def test_a_clean_up_that_does_not_wait_for_the_disk_is_caught(tmp_path: Path) -> None:
    assert any(found for _, found in cut_power(tmp_path, "none", cuts=CUTS))
