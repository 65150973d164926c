"""The same edit after a short and after a long history."""

from sample import edited, scratch
from table import Row
from timing import interleave

_SHORT, _LONG = 10, 10_000
_REPEAT = 300
_SIZE = 10_000


def rows() -> list[Row]:
    """Without waiting for the disk: a fsync would hide what the history costs."""
    with (
        scratch() as one,
        scratch() as other,
        edited(one, _SIZE, durability="none") as short,
        edited(other, _SIZE, durability="none") as long,
    ):
        for file, length in ((short, _SHORT), (long, _LONG)):
            for number in range(length):
                file.edit(number)
        pair = interleave(short.edit, long.edit, repeat=_REPEAT)
    name = f"edit after {_LONG:,} entries over after {_SHORT}"
    return [Row(name=name, measured=pair.ratio, goal=1.2, note=f"no fsync: {pair.note}")]
