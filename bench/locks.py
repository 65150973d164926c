"""The cost of a lock that no other process wants."""

import fcntl
import os

from sample import NAME, edited, scratch
from table import Row
from timing import interleave

_ROUNDS = 200


def rows() -> list[Row]:
    with scratch() as folder, edited(folder, 10_000, durability="none") as file:
        disk = file.workspace.disk
        target = disk.resolve(NAME)

        def hold(_: int) -> None:
            for _ in range(_ROUNDS):
                with disk.lock([target], timeout=1):
                    pass

        def bare(_: int) -> None:
            for _ in range(_ROUNDS):
                place = os.open(target.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.close(place)

        locks = interleave(bare, hold, repeat=15)
        edits = interleave(lambda _: None, file.edit, repeat=100)
    once = sorted(locks.subject)[len(locks.subject) // 2] / _ROUNDS
    whole = sorted(edits.subject)[len(edits.subject) // 2]
    note = f"of a bare open + flock + close; {100 * once / whole:.0f} % of an edit without fsync ({whole * 1e3:.2f} ms)"
    return [
        Row(name="lock of one file, uncontended", measured=once * 1e6, unit="µs"),
        Row(name="  the same as a ratio", measured=locks.ratio, note=note),
    ]
