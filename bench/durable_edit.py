"""A durable edit of one line, against the least that makes bytes and one record durable from Python."""

import os
import sqlite3
from pathlib import Path
from statistics import mean, median

from sample import NAME, Edited, edited, scratch, source
from table import Row
from timing import Pair, interleave, seconds

_SIZES = {"10 KB": (10_000, 250, 1.8), "20 MB": (20_000_000, 27, 2.5)}
"""Name of a size: its bytes, repetitions (27 = three rounds of nine, since every ninth version is stored whole), goal."""
_GROWTH = (10_000, 100_000, 1_000_000, 5_000_000, 20_000_000)


def rows() -> list[Row]:
    found = list[Row]()
    with scratch() as folder:
        for name, (size, repeat, goal) in _SIZES.items():
            with edited(folder, size) as file:
                bare = Bare(folder / f"bare-{size}", size)
                pair = interleave(bare.write, file.edit, repeat=repeat)
                whole = median([seconds(bare.edit, number) for number in range(repeat)])
            found += _rows(name, pair, whole, goal)
        found += _growth(folder)
    return found


def _rows(name: str, pair: Pair, whole: float, goal: float) -> list[Row]:
    note = f"of temp + fsync + rename + fsync + WAL commit: {pair.note}"
    return [
        Row(name=f"durable edit of one line, {name}", measured=pair.ratio, goal=goal, note=note),
        Row(
            name="  of the same edit in bare Python",
            measured=median(pair.subject) / whole,
            note=f"which also reads the file and replaces the line: {whole * 1e3:.2f} ms",
        ),
        Row(
            name="  mean instead of median",
            measured=mean(pair.subject) / mean(pair.baseline),
            note="with every ninth version, which is stored whole",
        ),
    ]


class Bare:
    """The baseline: the new bytes are handed to it, and it neither reads, compares, locks nor keeps anything."""

    def __init__(self, folder: Path, size: int) -> None:
        folder.mkdir()
        self.folder, self.path, self.data = folder, folder / NAME, source(size).encode()
        self.path.write_bytes(self.data)
        self.line = self.data.splitlines()[len(self.data.splitlines()) // 2]
        self.database = sqlite3.connect(folder / "record.db", isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute("CREATE TABLE records (number INTEGER PRIMARY KEY, path TEXT, what TEXT)")

    def write(self, number: int) -> None:
        self._put(self.data, number)

    def edit(self, number: int) -> None:
        """What a careful script would do: read, replace the one line, put it back."""
        data = self.path.read_bytes()
        new = b"%b %03d" % (self.line.removesuffix(b"step"), number)
        assert data.count(self.line) == 1
        self._put(data.replace(self.line, new), number)
        self.line = new

    def _put(self, data: bytes, number: int) -> None:
        temporary = self.folder / f"{NAME}.{number}.tmp"
        place = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(place, view) :]
        os.fsync(place)
        os.close(place)
        temporary.rename(self.path)
        place = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(place)
        os.close(place)
        self.database.execute("INSERT INTO records (path, what) VALUES (?, ?)", (NAME, "edit"))


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
