from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random

import pytest

from spec.marks import requirement
from surehold.text.relocate import LineBlock, MovedLines, relocate_lines

BODIES = (
    ("    check(request)", "    return None", ""),
    ("    x = load()", "    if not x:", "        return None", "    return x", ""),
    ("    assert 1", ""),
    (*(f"    step({n})" for n in range(20)), ""),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A line, known by its number wherever it goes."""

    text: str
    number: int


class Blocks:
    """Functions, most of them with one and the same body, and what is done to them."""

    def __init__(self, choose: Random) -> None:
        self.choose = choose
        self.numbers = count()
        self.body = choose.choice(BODIES)
        bodies = [self.body if choose.random() < 0.8 else choose.choice(BODIES) for _ in range(choose.randint(2, 5))]
        self.now = [self.function(f"handler_{n}", body) for n, body in enumerate(bodies)]
        self.base = [row for block in self.now for row in block]

    def function(self, name: str, body: tuple[str, ...]) -> list[Row]:
        return [Row(text, next(self.numbers)) for text in (f"def {name}(request):", *body)]

    @property
    def current(self) -> list[Row]:
        return [row for block in self.now for row in block]

    def any_place(self) -> int:
        return self.choose.randrange(len(self.now))

    def swap(self) -> None:
        one = self.any_place()
        other = (one + 1) % len(self.now)
        self.now[one], self.now[other] = self.now[other], self.now[one]

    def move(self) -> None:
        block = self.now.pop(self.any_place())
        self.now.insert(self.choose.randint(0, len(self.now)), block)

    def insert(self) -> None:
        self.now.insert(self.any_place(), self.function("fresh", self.body))

    def delete(self) -> None:
        self.now.pop(self.any_place())

    def copy(self) -> None:
        place = self.any_place()
        self.now.insert(place, self.function("copied", tuple(row.text for row in self.now[place][1:])))


@requirement("text:rebase:two_proofs")
@pytest.mark.parametrize(
    ("change", "least_found"),
    [(Blocks.swap, 0.45), (Blocks.move, 0.45), (Blocks.insert, 0.75), (Blocks.delete, 0.75), (Blocks.copy, 0.75)],
)
def test_lines_are_never_found_in_another_block_with_an_equal_body(
    change: Callable[[Blocks], None], least_found: float
) -> None:
    choose = Random(change.__name__)
    found = still_there = 0
    for _ in range(60):
        blocks = Blocks(choose)
        change(blocks)
        base, current = blocks.base, blocks.current
        where = {row: index for index, row in enumerate(current)}
        sizes = (0, 1, choose.randint(2, 4))
        wanted = [LineBlock(start=n, end=n + size) for size in sizes for n in range(len(base) + 1 - size)]
        places = relocate_lines(encode(base), encode(current), wanted)
        for each, place in zip(wanted, places, strict=True):
            gap = each.start == each.end
            rows = base[max(each.start - gap, 0) : each.end + gap]
            there = where.get(rows[0])
            if there is not None and current[there : there + len(rows)] != rows:
                there = None
            still_there += there is not None
            if isinstance(place, MovedLines):
                assert there == max(place.start - gap, 0), (change.__name__, each, base, current)
                found += 1
    print(f"{change.__name__}: found {found} of {still_there}")
    assert found >= least_found * still_there


def encode(rows: list[Row]) -> list[bytes]:
    return [f"{row.text}\n".encode() for row in rows]
