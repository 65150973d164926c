"""What a text costs is estimated quickly, and as if every character had been looked at."""

import math
import re
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.text.measure import ANY_SIZE, DENSE_QUARTERS, TextRoom, count_quarter_tokens, count_units
from surehold.tools.call import AnswerBudget

WORDS = st.one_of(
    st.text(alphabet="abcDEF019+/=_-", min_size=30, max_size=90), st.text(max_size=12), st.sampled_from(["=" * 60, "é"])
)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", "\n", ".", "\t", "", "\x1c"]))).map(
    lambda parts: "".join(word + end for word, end in parts)
)


@given(TEXTS)
def test_dense_runs_are_found_wherever_they_are(text: str) -> None:
    dense = [run for run in re.findall(r"[A-Za-z0-9+/=_-]{40,}", text) if len(set(run)) >= 12]
    extra = math.ceil(sum(map(len, dense)) * (DENSE_QUARTERS - 1))
    without = re.sub(r"[A-Za-z0-9+/=_-]", "a", text)

    assert count_quarter_tokens(text) == count_quarter_tokens(without) + extra


@given(TEXTS, st.integers(20, 400), st.integers(10, 400), st.sampled_from(["characters", "bytes", "json"]))
def test_a_text_is_delivered_if_its_size_fits(text: str, answer: int, tokens: int, unit: str) -> None:
    budget = AnswerBudget(answer=answer, tokens=tokens, unit=unit)  # type: ignore[arg-type]

    assert budget.delivers(text) == (budget.size_of(text) <= answer)


@pytest.mark.parametrize(
    ("text", "characters", "size", "json"),
    [
        ("", 0, 0, 0),
        ("abc", 3, 3, 3),
        ('a"\n\\', 4, 4, 7),
        ("é", 1, 2, 1),
        ("中", 1, 3, 1),
        ("😀", 2, 4, 2),
        ("\udcff", 6, 6, 6),
        ("é\x07", 2, 3, 7),
    ],
)
def test_a_text_is_counted_as_its_host_counts(text: str, characters: int, size: int, json: int) -> None:
    assert [count_units(text, unit) for unit in ("characters", "bytes", "json")] == [characters, size, json]


@pytest.mark.parametrize(
    ("text", "quarters"),
    [
        ("", 0),
        ("abcd", 4),
        ("é", 2),
        ("я" * 3, 6),
        ("中", 4),
        ("中a", 5),
        ("😀", 12),
        ("😀é中a", 19),
        ("\ud800", 4),
        ("a" * 40, 40),
        ("abcdefghijkl" + "a" * 27, 39),
        ("abcdefghijkl" + "a" * 28, 40 + 67),
        ("abcdefghijk" + "a" * 29, 40),
        ("abcdefghijkl" + "a" * 28 + "é", 40 + 67 + 2),
        ("x " + "abcdefghijkl" + "a" * 28 + ".", 43 + 67),
    ],
)
def test_tokens_are_estimated_by_script(text: str, quarters: int) -> None:
    assert count_quarter_tokens(text) == quarters


@given(st.lists(st.text("ab", max_size=4), max_size=150), st.integers(0, 400), st.sampled_from(["\n", "--"]))
def test_as_many_rows_fit_as_a_plain_loop_counts(rows: list[str], size: int, end: str) -> None:
    sums = accumulate(len(row) + len(end) for row in rows)

    assert TextRoom(size=size).count_fitting(iter(rows), end=end) == sum(total <= size for total in sums)


def test_rows_have_a_line_break_and_any_number_of_them_fits_into_any_room() -> None:
    assert TextRoom(size=4).count_fitting(["a", "b", "c"]) == 2
    assert ANY_SIZE.count_fitting(["a" * 99] * 999) == 999
    assert TextRoom().size == 1 << 40


def test_a_block_that_does_not_fit_as_a_whole_may_fit_row_by_row() -> None:
    def rounded_up(text: str) -> int:
        return len(text) + (len(text) > 2)

    assert TextRoom(size=4, measure=rounded_up).count_fitting(["a", "b"]) == 2


@given(st.text("aé中😀\n", max_size=12), st.integers(0, 40))
def test_the_beginning_of_a_text_is_as_long_as_fits(text: str, size: int) -> None:
    room = TextRoom(size=size, measure=lambda part: count_units(part, "bytes"))
    longest = next(text[:end] for end in range(len(text), -1, -1) if len(text[:end].encode()) <= size)

    assert room.cut_text(text) == longest
    assert room.cut_lines(text) == (text if longest == text else longest[: longest.rfind("\n") + 1])


def test_a_text_that_just_fits_is_not_cut() -> None:
    assert [TextRoom(size=size).cut_text("abc") for size in (4, 3, 2)] == ["abc", "abc", "ab"]


def test_what_is_used_is_no_longer_there() -> None:
    room = TextRoom(size=10, measure=lambda text: 2 * len(text))

    assert [room.less(used).size for used in (0, 3, 10, 11)] == [10, 7, 0, 0]
    assert room.less(3).measure is room.measure
