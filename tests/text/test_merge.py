"""Two changes of one text become one, or a conflict that names the lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.text.merge import MergeConflict, merge_changes
from surehold.text.snapshot import Snapshot

BASE = b"".join(b"line %d\n" % n for n in range(1, 21))
Edit = tuple[int, int, list[bytes]]
"""Lines from here to there become these."""


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | MergeConflict:
    return merge_changes(Snapshot(base), Snapshot(ours), Snapshot(theirs))


@requirement("text:merge:clean")
@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (
            BASE.replace(b"line 7\n", b"LINE 7\n"),
            b"new 1\nnew 2\n" + BASE,
            b"new 1\nnew 2\n" + BASE.replace(b"line 7\n", b"LINE 7\n"),
        ),
        (
            BASE.replace(b"line 5\n", b"line 5\nnew\n"),
            b"top\n" + BASE,
            b"top\n" + BASE.replace(b"line 5\n", b"line 5\nnew\n"),
        ),
        (
            BASE.replace(b"line 1\n", b"one\n"),
            BASE.replace(b"line 2\n", b"two\n"),
            BASE.replace(b"line 1\nline 2\n", b"one\ntwo\n"),
        ),
        (
            BASE.replace(b"line 9\n", b""),
            BASE.replace(b"line 10\n", b"ten\nmore\n"),
            BASE.replace(b"line 9\nline 10\n", b"ten\nmore\n"),
        ),
    ],
    ids=["below", "an insertion", "adjacent", "adjacent to a deletion"],
)
def test_changes_of_different_lines_are_merged_whichever_came_first(ours: bytes, theirs: bytes, merged: bytes) -> None:
    assert merge(BASE, ours, theirs) == merged
    assert merge(BASE, theirs, ours) == merged


@requirement("text:merge:touched")
@pytest.mark.parametrize(
    ("theirs", "line"),
    [
        (BASE.replace(b"line 7\n", b"other\n"), 7),
        (BASE.replace(b"line 7\n", b"") + b"line 7\n", 7),
        (BASE.replace(b"line 7\n", b"line 7\nline 7\n"), 7),
    ],
    ids=["changed", "moved across others", "copied"],
)
def test_a_line_that_both_touch_or_that_cannot_be_told_from_another_is_a_conflict(theirs: bytes, line: int) -> None:
    assert merge(BASE, BASE.replace(b"line 7\n", b"LINE 7\n"), theirs) == MergeConflict(lines=(line,))


@requirement("text:merge:touched")
def test_two_insertions_at_one_place_are_a_conflict() -> None:
    assert merge(b"a\nb\n", b"a\nx\nb\n", b"a\ny\nb\n") == MergeConflict(lines=(2,))


@requirement("text:merge:touched")
def test_an_unterminated_line_never_runs_into_the_next_one() -> None:
    assert merge(b"a\nb\n", b"a\nb", b"a\nb\nc\n") == MergeConflict(lines=(2, 3))


@requirement("text:merge:touched")
def test_bytes_that_are_no_text_and_another_encoding_are_a_conflict() -> None:
    assert merge(b"\0\n1\n2\n", b"\0\n1\nx\n", b"\0\ny\n2\n") == MergeConflict()
    wide = "a\nb\n".encode("utf-16")
    assert merge(wide, "x\nb\n".encode("utf-16"), b"a\nc\n") == MergeConflict()


@requirement("text:merge:clean")
def test_wide_text_and_every_terminator_are_merged_byte_for_byte() -> None:
    for codec in ("utf-16", "utf-8-sig", "latin-1"):
        base, ours, theirs, both = (text.encode(codec) for text in ("ä\r\nb\nc", "x\r\nb\nc", "ä\r\nb\nz", "x\r\nb\nz"))
        assert merge(base, ours, theirs) == both


def spliced(lines: list[bytes], edits: list[Edit]) -> bytes:
    """Apply edits of separate lines: the plain way, from the end."""
    out = list(lines)
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        out[start:end] = new
    return b"".join(out)


@st.composite
def separate_edits(draw: st.DrawFn) -> tuple[list[bytes], Edit, Edit]:
    """Draw a text and two edits of it that share no line and no gap, and that may touch."""
    kinds = draw(st.sampled_from((2, 5, 40)))
    row = st.integers(0, kinds).map(lambda n: b"row %d\n" % n)
    lines = draw(st.lists(row, max_size=12))
    cuts = sorted(draw(st.lists(st.integers(0, len(lines)), min_size=4, max_size=4)))
    news = draw(st.tuples(*[st.lists(st.one_of(row, st.just(b"new\n")), max_size=3)] * 2))
    return lines, (cuts[0], cuts[1], news[0]), (cuts[2], cuts[3], news[1])


@requirement("text:merge:clean", "engine:undo:adjacent")
@given(separate_edits())
def test_a_merge_is_what_splicing_both_edits_gives_or_a_conflict(case: tuple[list[bytes], Edit, Edit]) -> None:
    lines, first, second = case
    same_gap = first[0] == first[1] == second[0] == second[1]

    found = merge(b"".join(lines), spliced(lines, [first]), spliced(lines, [second]))

    if not same_gap and not isinstance(found, MergeConflict):
        assert found == spliced(lines, [first, second])


@requirement("text:merge:clean", "engine:undo:adjacent")
@given(st.integers(0, 11), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_adjacent_edits_of_lines_that_occur_once_always_merge(at: int, size: int, more: int, final: bool) -> None:
    lines = [b"row %d\n" % n for n in range(18)]
    if not final:
        lines[-1] = lines[-1].removesuffix(b"\n")
    first, second = (at, at + size, [b"first\n"]), (at + size, at + size + more, [b"second\n", b"third\n"])
    sides = [spliced(lines, [edit]) for edit in (first, second)]

    assert merge(b"".join(lines), *sides) == spliced(lines, [first, second])
    assert merge(b"".join(lines), *reversed(sides)) == spliced(lines, [first, second])
