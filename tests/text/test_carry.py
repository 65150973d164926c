"""A text that is carried through later changes by its differing lines is what merging the whole texts gives."""

import random
import zlib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.text.carry import CarriedText, find_line_hunks
from surehold.text.diff import split_lines
from surehold.text.merge import MergeConflict, merge_changes
from surehold.text.plan import diff_between
from surehold.text.snapshot import Snapshot

pytestmark = requirement("text:merge:carried")
_CHANGES = 8


@dataclass(slots=True)
class Carrying:
    """One text, both ways: carried by its lines, and merged as a whole at every step."""

    random: random.Random
    kinds: int
    """How many different lines there are; 0 for lines that are all different."""
    base: bytes = b""
    whole: bytes = b""

    def new_line(self) -> bytes:
        return b"%d\n" % (self.random.randrange(self.kinds) if self.kinds else self.random.getrandbits(60))

    def changed(self, text: bytes) -> bytes:
        rows = split_lines(text)
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            at = self.random.randint(0, len(rows))
            rows[at : at + self.random.choice((0, 0, 1, 1, 2, 3))] = [
                self.new_line() for _ in range(self.random.choice((0, 1, 1, 2)))
            ]
        data = b"".join(
            row if row.endswith(b"\n") or at == len(rows) else row + b"\n" for at, row in enumerate(rows, 1)
        )
        return data.removesuffix(b"\n") if self.random.random() < 0.1 else data

    def run(self) -> list[tuple[bytes | None, bytes | None]]:
        """Return what both ways gave at each step; None for a conflict. It ends where they differ, or texts are not plain."""
        self.base = b"".join(self.new_line() for _ in range(self.random.choice((5, 30, 120))))
        self.whole = self.changed(self.base)
        carried, results = self.carry(), list[tuple[bytes | None, bytes | None]]()
        for _ in range(_CHANGES):
            after = self.changed(self.base)
            change = find_line_hunks(self.base, after)
            if not carried or not change:
                break
            told = carried.read_change(
                diff_between(Snapshot(self.base), Snapshot(after), from_name="a", to_name="a").text
            )
            assert told in ((), change) or self.kinds
            if self.random.random() < 0.3:
                carried.skip_change(change)
            else:
                results.append(self.merge(carried, after))
            self.base = after
            assert carried.base_to_bytes() == after or results[-1][0] is None
            if results and results[-1][0] != results[-1][1]:
                break
            if carried.base_to_bytes() != after:
                carried = self.carry()
        return results

    def carry(self) -> CarriedText | None:
        hunks = find_line_hunks(self.base, self.whole)
        return CarriedText.from_base(self.base, hunks) if hunks else None

    def merge(self, carried: CarriedText, after: bytes) -> tuple[bytes | None, bytes | None]:
        change, before = find_line_hunks(self.base, after), carried.to_bytes()
        merged = merge_changes(Snapshot(self.base), Snapshot(self.whole), Snapshot(after))
        whole = None if isinstance(merged, MergeConflict) else merged
        if not carried.make_change(change):
            assert (carried.to_bytes(), carried.base_to_bytes()) == (before, self.base)
            self.whole = whole if whole is not None else self.whole
            return None, None  # the whole texts are merged then
        self.whole = whole if whole is not None else self.whole
        return carried.to_bytes(), whole


@given(st.integers(0, 2**32))
def test_of_different_lines_a_clean_change_gives_what_merging_gives(seed: int) -> None:
    for carried, merged in Carrying(random.Random(seed), kinds=0).run():
        assert carried == merged


@given(st.integers(0, 2**32), st.sampled_from((2, 5, 40)))
def test_of_equal_lines_no_other_bytes_come_out(seed: int, kinds: int) -> None:
    for carried, merged in Carrying(random.Random(seed), kinds=kinds).run():
        assert merged is None or carried == merged


def test_what_is_not_plain_lines_is_left_to_a_merge() -> None:
    for odd in (
        b"",
        b"one line",
        b"a\rb\r",
        b"\xef\xbb\xbfa\n",
        b"a\n\xff\xfeb\n",
        b"a\0\n",
        "a\nb\n".encode("utf-16"),
    ):
        assert find_line_hunks(odd, b"a\nb\n") == find_line_hunks(b"a\nb\n", odd) == ()


def test_a_line_that_comes_beside_equal_ones_widens_the_difference() -> None:
    base = b"".join(b"%d\n" % number for number in range(40))
    carried = CarriedText.from_base(base, find_line_hunks(base, base.replace(b"\n20\n", b"\n")))
    grown = base.replace(b"\n20\n", b"\n20\n20\n")

    assert not carried.make_change(find_line_hunks(base, grown))  # which of both would be the one that is gone?
    carried.skip_change(find_line_hunks(base, grown))

    assert carried.to_bytes() == base.replace(b"\n20\n", b"\n")
    assert not carried.make_change(find_line_hunks(grown, grown.replace(b"\n20\n20\n", b"\n20\nx\n20\n")))


def test_a_diff_of_another_text_is_not_taken_for_a_change() -> None:
    base = b"".join(b"%d\n" % number for number in range(40))
    carried = CarriedText.from_base(base, find_line_hunks(base, base[2:]))
    other = base.replace(b"\n30\n", b"\nthirty\n")
    diff = diff_between(Snapshot(other), Snapshot(other + b"end\n"), from_name="a", to_name="a").text

    assert carried.read_change(diff)
    assert carried.read_change(diff.replace(" 39\n", " other\n")) == ()
    assert carried.read_change("Binary files differ\n") == ()
    assert carried.read_change("--- a\n+++ a\n@@ -40 +40 @@\n-39\n+39\n\\ No newline at end of file\n") == ()


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        (0, "100 of 154 clean; 2410484334"),
        (2, "64 of 99 clean; 2268975567"),
        (5, "124 of 166 clean; 1695455389"),
        (40, "140 of 186 clean; 2009179240"),
    ],
)
def test_what_is_carried_and_what_is_left_to_a_merge_stays_as_it_is(kinds: int, wanted: str) -> None:
    """Which changes are clean decides how often whole texts are merged; where that changes on purpose, so does this."""
    results = [pair for seed in range(40) for pair in Carrying(random.Random(seed), kinds=kinds).run()]
    clean = sum(carried is not None for carried, _ in results)

    assert f"{clean} of {len(results)} clean; {zlib.crc32(repr(results).encode())}" == wanted
