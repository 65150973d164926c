"""A durable edit of one line, against the least that makes bytes and one record durable from Python."""

import os
import sqlite3
from pathlib import Path
from statistics import mean, median

from sample import NAME, Edited, edited, scratch, source
from table import Row
from timing import Pair, interleave, seconds

_SIZES = {"10 KB": (10_000, 250, 2.0), "20 MB": (20_000_000, 27, 3.0)}
"""Name of a size: its bytes, repetitions (27 = three rounds of nine, since every ninth version is stored whole), goal."""
_GROWTH = (10_000, 100_000, 1_000_000, 5_000_000, 20_000_000)


def rows() -> list[Row]:
    found = list[Row]()
    with scratch() as folder:
        for name, (size, repeat, goal) in _SIZES.items():
            with edited(folder, size) as file:
                pair = interleave(_bare(folder / f"bare-{size}", size), file.edit, repeat=repeat)
            found += _rows(name, pair, goal)
        found += _growth(folder)
    return found


def _rows(name: str, pair: Pair, goal: float) -> list[Row]:
    note = f"of temp + fsync + rename + fsync + WAL commit: {pair.note}"
    average = mean(pair.subject) / mean(pair.baseline)
    return [
        Row(name=f"durable edit of one line, {name}", measured=pair.ratio, goal=goal, note=note),
        Row(name=f"  the same, mean instead of median, {name}", measured=average, note="with every full version"),
    ]


def _bare(folder: Path, size: int):  # noqa: ANN202 - a Work
    """Return the baseline: it is handed the new bytes ready-made, and neither reads nor compares anything."""
    folder.mkdir()
    path, data = folder / NAME, source(size).encode()
    path.write_bytes(data)
    database = sqlite3.connect(folder / "record.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE records (number INTEGER PRIMARY KEY, path TEXT, what TEXT)")

    def run(number: int) -> None:
        temporary = folder / f"{NAME}.{number}.tmp"
        place = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(place, view) :]
        os.fsync(place)
        os.close(place)
        os.rename(temporary, path)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(place)
        os.close(place)
        database.execute("INSERT INTO records (path, what) VALUES (?, ?)", (NAME, "edit"))

    return run


def _growth(folder: Path) -> list[Row]:
    """Without waiting for the disk, so that only our own work is seen."""
    taken = {size: _alone(folder, size) for size in _GROWTH}
    steps = ", ".join(f"{size / 1e6:g} MB {taken[size] * 1e3:.1f} ms" for size in _GROWTH)
    smallest, middle, largest = _GROWTH[0], _GROWTH[2], _GROWTH[-1]
    slopes = [(taken[size] - taken[smallest]) / (size - smallest) for size in (middle, largest)]
    return [
        Row(name="edit, per further MB", measured=slopes[1] * 1e9, unit="ms", note=f"no fsync: {steps}"),
        Row(
            name="edit grows linearly: ms per MB, 1 … 20 MB over 10 KB … 1 MB",
            measured=slopes[1] / slopes[0],
            goal=1.5,
            note="no fsync; 1 is a straight line",
        ),
    ]


def _alone(folder: Path, size: int) -> float:
    with edited(folder, size, durability="none") as file:
        return median([_once(file, number) for number in range(20)][2:])


def _once(file: Edited, number: int) -> float:
    return seconds(file.edit, number)
