from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.text.align import EqualRun, align_lines, join_runs

few_lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=8)
some_lines = st.lists(st.integers(0, 30).map(lambda n: b"%d\n" % n), max_size=80)


def lcs(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        above, row = row, [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[-1]))
    return row[-1]


def matched(blocks: list[EqualRun]) -> int:
    return sum(block.size for block in blocks)


def shared_ends(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    shorter = min(len(a), len(b))
    head = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    tail = next((i for i in range(shorter - head) if a[-1 - i] != b[-1 - i]), shorter - head)
    return head + tail


def assert_sound(a: Sequence[bytes], b: Sequence[bytes], blocks: list[EqualRun]) -> None:
    assert all(block.size > 0 for block in blocks)
    assert all(a[i : i + size] == b[j : j + size] for i, j, size in blocks)
    for one, two in pairwise([EqualRun(0, 0, 0), *blocks, EqualRun(len(a), len(b), 0)]):
        assert one.a + one.size <= two.a
        assert one.b + one.size <= two.b


def numbered(count: int) -> list[bytes]:
    return [b"line %d\n" % n for n in range(count)]


@given(some_lines, some_lines)
def test_blocks_ascend_never_overlap_and_hold_equal_lines(a: list[bytes], b: list[bytes]) -> None:
    assert_sound(a, b, align_lines(a, b))


@given(some_lines, st.lists(st.tuples(st.integers(0, 80), st.integers(0, 5), some_lines), max_size=5))
def test_an_edited_text_is_aligned_soundly(a: list[bytes], edits: list[tuple[int, int, list[bytes]]]) -> None:
    b = list(a)
    for place, gone, new in edits:
        b[place : place + gone] = new
    assert_sound(a, b, align_lines(a, b))


@given(few_lines, few_lines)
def test_no_alignment_matches_more_than_possible_or_less_than_the_shared_ends(a: list[bytes], b: list[bytes]) -> None:
    assert shared_ends(a, b) <= matched(align_lines(a, b)) <= lcs(a, b)


@given(some_lines, some_lines)
def test_without_anchors_the_alignment_is_as_long_as_possible(a: list[bytes], b: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surehold.text.align._PATIENCE_ALLOWANCE_PER_LINE", 0)
        blocks = align_lines(a, b)
    assert_sound(a, b, blocks)
    assert matched(blocks) == lcs(a, b)


@requirement("text:diff:large")
@given(some_lines, some_lines)
def test_without_any_allowance_the_alignment_is_still_sound(a: list[bytes], b: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surehold.text.align._PATIENCE_ALLOWANCE_PER_LINE", 0)
        patch.setattr("surehold.text.align._MYERS_ALLOWANCE", 0)
        blocks = align_lines(a, b)
    assert_sound(a, b, blocks)
    assert matched(blocks) >= shared_ends(a, b)


@given(some_lines)
def test_a_text_aligns_with_itself_in_one_block(a: list[bytes]) -> None:
    assert align_lines(a, tuple(a)) == ([EqualRun(0, 0, len(a))] if a else [])


@pytest.mark.parametrize(
    ("a", "b", "blocks"),
    [
        (b"", b"", []),
        (b"a", b"", []),
        (b"abc", b"xyz", []),
        (b"abc", b"abxc", [EqualRun(0, 0, 2), EqualRun(2, 3, 1)]),
        (b"abxc", b"abc", [EqualRun(0, 0, 2), EqualRun(3, 2, 1)]),
        (b"abcde", b"aXcYe", [EqualRun(0, 0, 1), EqualRun(2, 2, 1), EqualRun(4, 4, 1)]),
        (b"a{x}b{y}c", b"a{x}b{z}b{y}c", [EqualRun(0, 0, 6), EqualRun(6, 10, 3)]),
    ],
)
def test_small_texts_align_as_expected(a: bytes, b: bytes, blocks: list[EqualRun]) -> None:
    assert align_lines([bytes([x]) for x in a], [bytes([y]) for y in b]) == blocks


def test_one_changed_line_among_many_splits_the_text_in_two() -> None:
    a = numbered(5000)
    b = [*a[:1234], b"new\n", *a[1235:]]
    assert align_lines(a, b) == [EqualRun(0, 0, 1234), EqualRun(1235, 1235, 3765)]


def test_a_moved_block_leaves_the_rest_matched() -> None:
    a = numbered(1000)
    b = [*a[:100], *a[200:900], *a[100:200], *a[900:]]
    assert align_lines(a, b) == [EqualRun(0, 0, 100), EqualRun(200, 100, 700), EqualRun(900, 900, 100)]


def test_a_lone_line_that_moved_does_not_undo_the_matches_of_repetitive_text() -> None:
    body = [b"a\n", b"b\n", b"b\n", b"c\n"] * 1000
    assert align_lines([b"title\n", *body], [*body, b"title\n"]) == [EqualRun(1, 0, 4000)]


def test_runs_of_lines_hold_repetitive_text_together_where_no_single_line_can() -> None:
    choose = Random(1)
    a = [choose.choice([b"a\n", b"b\n", b"c\n"]) for _ in range(20_000)]
    b = [*a[:5000], *a[8000:]]
    b[2000:2001] = [b"b\n", b"b\n"]
    b[12_000:12_003] = []
    blocks = align_lines(a, b)
    assert_sound(a, b, blocks)
    assert matched(blocks) >= len(a) - 3000 - 4 - 20


@requirement("text:diff:large")
@pytest.mark.parametrize("kinds", [1, 2, 3, 50, 40_000])
def test_large_repetitive_texts_do_not_stall(kinds: int) -> None:
    choose = Random(kinds)
    a = [b"%d\n" % choose.randrange(kinds) for _ in range(100_000)]
    b = a[1000:]
    choose.shuffle(b)
    assert_sound(a, b, align_lines(a, b))


@requirement("text:diff:large")
def test_a_text_made_to_nest_anchors_deeply_does_not_stall() -> None:
    a = [line for n in range(20_000) for line in (b"%d\n" % n, b"x\n", b"y\n", b"%d\n" % (n - 1))]
    b = [line for n in range(20_000) for line in (b"%d\n" % n, b"y\n", b"x\n", b"%d\n" % (n - 1))]
    assert_sound(a, b, align_lines(a, b))


def test_long_equal_runs_that_shifted_do_not_stall() -> None:
    filler, mark = [b"x\n"] * 30_000, [b"y\n"] * 2
    a, b = [*filler, *mark, *filler, *filler, *mark], [*mark, *filler, *filler, *mark, *filler]
    assert_sound(a, b, align_lines(a, b))


def test_joining_drops_empty_blocks_and_merges_those_that_touch() -> None:
    blocks = [
        EqualRun(0, 0, 0),
        EqualRun(0, 0, 2),
        EqualRun(2, 2, 1),
        EqualRun(3, 4, 1),
        EqualRun(5, 5, 1),
        EqualRun(9, 9, 0),
    ]
    assert join_runs(blocks) == [EqualRun(0, 0, 3), EqualRun(3, 4, 1), EqualRun(5, 5, 1)]
