"""Every alignment of two small texts: none could be shorter, and which of several is chosen does not change unnoticed.

Diffs, relocated lines and merges all follow from that choice. The choices of a whole table of texts are kept as one
number; where a better choice changes it on purpose, the new number is in the message of the test that fails.
"""

import zlib
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from surehold.text import align
from surehold.text.align import (
    EqualRun,
    TextRegion,
    align_from_below,
    align_lines,
    find_changes,
    regions_between,
    shared_ends,
    shared_length,
)

Texts = tuple[list[bytes], list[bytes]]


def small_texts(most: int) -> Iterator[Texts]:
    """Yield all pairs of texts of up to so many of three different lines."""
    texts = [list[bytes](text) for size in range(most + 1) for text in product((b"a", b"b", b"c"), repeat=size)]
    return ((a, b) for a in texts for b in texts)


def edited_texts(count: int, *, kinds: int, size: int) -> Iterator[Texts]:
    """Yield texts of few kinds of lines, each with what some edits make of it."""
    choose = Random(kinds)
    for _ in range(count):
        a = [b"%d" % choose.randrange(kinds) for _ in range(choose.randrange(1, size))]
        b = list(a)
        for _ in range(choose.randrange(1, 5)):
            at = choose.randrange(len(b) + 1)
            b[at : at + choose.randrange(4)] = [b"%d" % choose.randrange(kinds + 2) for _ in range(choose.randrange(4))]
        for _ in range(choose.randrange(4)):
            at, to = sorted(choose.randrange(len(b) + 1) for _ in range(2))
            b = b[at:to] + b[:at] + b[to:]
        yield a, b


def common_length(a: list[bytes], b: list[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        above, row = row, [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[-1]))
    return row[-1]


def is_sound(a: list[bytes], b: list[bytes], runs: list[EqualRun]) -> bool:
    """Tell whether runs ascend, are not empty, do not touch on both sides, and hold equal lines."""
    i = j = -1
    for run in runs:
        touches = (run.a, run.b) == (i, j)
        if run.size < 1 or run.a < i or run.b < j or touches or a[run.a :][: run.size] != b[run.b :][: run.size]:
            return False
        i, j = run.a + run.size, run.b + run.size
    return i <= len(a) and j <= len(b)


def digest(found: object) -> int:
    return zlib.crc32(repr(found).encode())


def test_no_alignment_of_small_texts_could_be_longer_and_the_choice_among_them_stays_as_it_is() -> None:
    found = list[object]()
    for a, b in small_texts(4):
        runs = align_lines(a, b)
        assert is_sound(a, b, runs), (a, b, runs)
        assert sum(run.size for run in runs) == common_length(a, b), (a, b, runs)
        found.append((list(map(tuple, runs)), list(map(tuple, align_from_below(a, b)))))

    assert digest(found) == 1712945824


_SMALL = {"_PATIENCE_ALLOWANCE_PER_LINE": 24, "_EXACT_ALLOWANCE": 0, "_RUNS_AS_ANCHORS_FROM": 8, "_LONGEST_RUN": 4}


@pytest.mark.parametrize(
    ("limits", "number"),
    [
        pytest.param({}, 218281392, id="exact"),
        pytest.param(_SMALL, 579671270, id="split by lines and runs that occur once"),
        pytest.param({**_SMALL, "_LONGEST_RUN": 1}, 248351817, id="split by lines alone"),
        pytest.param({**_SMALL, "_PATIENCE_ALLOWANCE_PER_LINE": 1}, 2081878629, id="with little patience"),
        pytest.param({**_SMALL, "_PATIENCE_ALLOWANCE_PER_LINE": 0}, 218281392, id="with none"),
        pytest.param(
            {**_SMALL, "_MYERS_ALLOWANCE": 60, "_SHALLOWEST_SEARCH": 2}, 3326229477, id="with an allowance that ends"
        ),
        pytest.param(
            {"_MYERS_ALLOWANCE": 9, "_SHALLOWEST_SEARCH": 1, "_EXACT_ALLOWANCE": 30}, 3658577776, id="at once"
        ),
        pytest.param({"_DEEPEST_SEARCH": 3, "_SHALLOWEST_SEARCH": 1}, 2201672262, id="not deep"),
        pytest.param({**_SMALL, "_LINES_PER_ANCHOR": 1, "_EXACT_ALLOWANCE": 40}, 1664781684, id="with many anchors"),
        pytest.param({"_CHUNK_ITEMS": 8}, 218281392, id="in small chunks"),
    ],
)
def test_texts_are_aligned_soundly_whatever_the_limits_and_always_in_the_same_way(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], number: int
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(align, name, value)
    found = list[tuple[tuple[int, ...], ...]]()
    for kinds, size in ((2, 30), (4, 120), (30, 90)):
        for a, b in edited_texts(40, kinds=kinds, size=size):
            runs = align_lines(a, b)
            assert is_sound(a, b, runs), (a, b, runs)
            found.append(tuple(map(tuple, runs)))

    assert digest(found) == number


@pytest.mark.parametrize("direction", [1, -1])
def test_the_length_that_two_regions_share_is_that_of_a_plain_loop(direction: int) -> None:
    choose = Random(direction)
    for _ in range(400):
        a = [choose.random() < 0.03 for _ in range(choose.randrange(60))]
        b = [*a[: choose.randrange(60)], *(choose.random() < 0.5 for _ in range(choose.randrange(4)))]
        if direction < 0:
            a, b = a[::-1], b[::-1]
        start_a, start_b = choose.randrange(len(a) + 1), choose.randrange(len(b) + 1)
        if choose.random() < 0.5:
            start_a = start_b = 0
        one, other = a[start_a:][::direction], b[start_b:][::direction]
        same = next(
            (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other))
        )

        assert shared_length(a, b, TextRegion(start_a, len(a), start_b, len(b)), direction) == same


@pytest.mark.parametrize(
    ("one", "other", "ends"),
    [
        (b"", b"", (0, 0)),
        (b"abc", b"abc", (3, 0)),
        (b"abc", b"aXc", (1, 1)),
        (b"aa", b"aaa", (2, 0)),
        (b"xaa", b"yaaa", (0, 2)),
        (b"abab", b"ab", (2, 0)),
        ([b"a", b"b"], [b"c", b"b"], (0, 1)),
    ],
)
def test_of_what_both_ends_could_share_the_beginning_has_more(one: bytes, other: bytes, ends: tuple[int, int]) -> None:
    assert shared_ends(one, other) == ends


@pytest.mark.parametrize(
    ("a", "b", "changes"),
    [
        (b"a", b"a", []),
        (b"a", b"b", [(0, 1, 0, 1)]),
        (b"", b"b", [(0, 0, 0, 1)]),
        (b"ab", b"b", [(0, 1, 0, 0)]),
        (b"a", b"ab", [(1, 1, 1, 2)]),
        (b"abc", b"xbyc", [(0, 1, 0, 1), (2, 2, 2, 3)]),
        (b"ab", b"ab", []),
    ],
)
def test_changes_are_what_is_between_equal_runs(a: bytes, b: bytes, changes: list[tuple[int, ...]]) -> None:
    one, other = ([bytes([sign]) for sign in text] for text in (a, b))

    assert find_changes(one, other) == changes
    assert find_changes(tuple(one), other) == changes
    whole = TextRegion(0, len(a), 0, len(b))
    assert [
        part for part in regions_between(align_lines(one, other), whole) if any((part[1] - part[0], part[3] - part[2]))
    ] == changes


def test_from_below_the_last_of_equal_lines_are_matched() -> None:
    one, other = [b"a", b"b"], [b"a", b"a", b"b", b"b"]

    assert align_lines([b"a"], [b"x", b"a", b"a"]) == [EqualRun(0, 2, 1)]
    assert align_from_below(one, other) == [EqualRun(0, 0, 1), EqualRun(1, 3, 1)]  # what both ends share comes first
    assert align_from_below([b"a", b"x"], [b"a", b"a"]) == [EqualRun(0, 0, 1)]
