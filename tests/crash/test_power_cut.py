"""Several processes write at once, and the power is cut: nothing that was acknowledged may be gone.

The system calls of real processes are recorded, and what a disk would have kept at a moment is put into a directory, which is
opened as after a reboot. Two weakened versions must be caught.
"""

import os
import random
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from crash import power_work
from crash.power import Drive, record
from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.stores.base import LedgerQuery
from surehold.text.snapshot import sha256_hex

SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
WORKERS, EDITS = ("8", "20") if SOAK else ("3", "3")
CUTS = 100_000 if SOAK else 30


class Promises:
    """What must be there after a cut: every answered call, and perhaps those that were not answered."""

    def __init__(self, answers: list[tuple[Any, ...]]) -> None:
        self.files = dict[str, str | None]()
        self.maybe = dict[str, set[str | None]]()
        self.changes = list[str]()
        asked = dict[str, dict[str, str | None]]()
        for word, worker, what in answers:
            if word == "ask":
                asked[worker] = what
            else:
                self.files |= asked.pop(worker)
                self.changes.append(what)
        for what in asked.values():
            for path, sha256 in what.items():
                self.maybe.setdefault(path, set()).add(sha256)


def problems(place: Path, promises: Promises) -> Iterator[str]:
    root = place / "root"
    settings = Settings(state_dir=place / "state", durability="none")
    try:
        with open_workspace(root, settings=settings) as workspace:
            files = [path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".surehold-")]
            # That a temporary file was removed is not waited for: old bytes may come back under such a name.
            there = {str(path.relative_to(root)): sha256_hex(path.read_bytes()) for path in files}
            for path in {*there, *promises.files}:
                found = there.get(path)
                if found != promises.files.get(path) and found not in promises.maybe.get(path, ()):
                    yield f"{path} is not what was acknowledged"
                head = workspace.store.head_of(path)
                if found != (head.version.sha256 if head and head.version else None):
                    yield f"{path} is not what the ledger says"
            entries = workspace.history.log(LedgerQuery(limit=100_000))
            missing = {*promises.changes} - {entry.change_id for entry in entries if entry.ok}
            yield from (f"{change} was acknowledged and is not in the ledger" for change in missing)
            if any(entry.call.operation == "external" for entry in entries):
                yield "our own bytes were taken for an outside edit"
            if workspace.store.open_intents():
                yield "an intent is still open"
            if not (verdict := workspace.history.verify()).ok:
                yield f"the history is broken: {verdict}"
    except SureholdError as error:
        yield f"it cannot be opened: {error.message} {error.details}"


def cut_power(tmp_path: Path, *how: str, cuts: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Run the workers once, and cut the power at so many moments, or at all; yield what each cut broke."""
    place, diaries, log = tmp_path / "place", tmp_path / "diaries", tmp_path / "trace"
    (place / "root" / "shared").mkdir(parents=True)
    diaries.mkdir()
    places = (place / "root", place / "state", diaries)
    command = [power_work.__file__, *how, *map(str, places)]
    before = record(place, log, command)
    moments = sum(1 for _ in deepcopy(before).play(log)) if cuts else 0
    chosen = set(random.Random(1).sample(range(moments), min(cuts, moments)))
    drive = deepcopy(before)
    for number, what in enumerate(drive.play(log)):
        if cuts and number not in chosen:
            continue
        for luck in (None, random.Random(number)) if SOAK or number % 3 == 0 else (None,):
            ruin = tmp_path / "ruin"
            ruin.mkdir()
            drive.write_cut(ruin, luck)
            yield f"cut {number}, {what}, {luck and 'random'}", [*problems(ruin, Promises(drive.answers))]
            shutil.rmtree(ruin)


@requirement("engine:crash:power")
@pytest.mark.timeout(3600 if SOAK else 300)
def test_a_power_cut_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    results = list(cut_power(tmp_path, "nothing", WORKERS, EDITS, cuts=CUTS))
    assert [one for one in results if one[1]] == []
    assert len(results) >= min(CUTS, 30)


@pytest.mark.parametrize("broken", ["answer before the disk", "begin without the disk"])
def test_a_weakened_history_is_caught_by_the_power_cut(tmp_path: Path, broken: str) -> None:
    assert any(found for _, found in cut_power(tmp_path, broken, "2", "1"))


def test_of_two_syncs_of_a_directory_the_one_that_began_later_counts(tmp_path: Path) -> None:
    def spell(text: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in text.encode())

    folder, new = spell("/p"), spell("/p/a")
    log = tmp_path / "trace"
    log.write_text(
        f"""1 fsync(3<{folder}> <unfinished ...>
2 openat(AT_FDCWD<{folder}>, "{new}", O_WRONLY|O_CREAT, 0600) = 4<{new}>
2 fsync(5<{folder}>) = 0
1 <... fsync resumed>) = 0
"""
    )
    drive = Drive(place="/p", now={"/p": None}, synced={"/p": None})

    assert [*drive.play(log)] == ["synced", "synced"]
    assert "/p/a" in drive.synced
