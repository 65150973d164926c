import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.text.excerpt import excerpt_changes, excerpt_lines
from surehold.text.snapshot import Snapshot

ROOM = 1 << 20


def test_a_difference_is_shown_with_the_lines_around_it() -> None:
    found = excerpt_changes(Snapshot(b"a\nb\nc\nd\ne\n"), Snapshot(b"a\nb\nX\nd\ne\n"), room=ROOM)

    assert found.text == "@@ -1,5 +1,5 @@\n a\n b\n-c\n+X\n d\n e"
    assert found.shown == ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5))
    assert not found.truncated


def test_what_has_no_room_is_not_shown() -> None:
    old, new = b"".join(b"%d\n" % n for n in range(100)), b"".join(b"%d!\n" % n for n in range(100))

    found = excerpt_changes(Snapshot(old), Snapshot(new), room=600)

    assert found.truncated
    assert len(found.text) <= 600
    assert found.shown == tuple((n, n) for n in range(1, len(found.shown) + 1))


def test_a_row_that_is_too_wide_is_cut_and_was_not_shown() -> None:
    found = excerpt_changes(Snapshot(b"a\n"), Snapshot(b"x" * 5_000 + b"\nend\n"), room=ROOM)

    assert found.shown == ((2, 2),)
    assert len(found.text) < 600


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "c"]), max_size=8))
def test_every_row_shows_the_line_that_is_counted_as_shown(old: list[str], new: list[str]) -> None:
    found = excerpt_changes(Snapshot("\n".join(old).encode()), Snapshot("\n".join(new).encode()), room=ROOM)
    rows = [row[1:] for row in found.text.split("\n") if row.startswith((" ", "+"))]

    assert rows == [new[line - 1] for line, _ in found.shown]


def test_an_excerpt_numbers_lines_as_read_does() -> None:
    page = excerpt_lines(Snapshot(b"one\r\ntwo\r\n\tthree"), [(1, 1), (3, 9)], room=ROOM)

    assert page.text == "1→one\n3→\tthree"
    assert page.shown == ((1, 1), (3, 3))
    assert page.complete


def test_an_excerpt_ends_where_its_room_ends_and_cuts_long_lines() -> None:
    snapshot = Snapshot(b"x" * 900 + b"\nshort\n" + b"row\n" * 1_000)

    assert excerpt_lines(snapshot, [(1, 2)], room=ROOM).shown == ((2, 2),)
    page = excerpt_lines(snapshot, [(2, 500)], room=100)
    assert not page.complete
    assert len(page.text) <= 100
    assert page.shown[-1] == (len(page.rows) + 1, len(page.rows) + 1)


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        (b"a\r\nb\r\n", b"a\r\nc\r\n", " a|-b|+c"),
        (b"a\nb\n", b"a\r\nb\n", "-a|+a\\r| b"),
        (b"a\r\n", b"a\n", "-a\\r|+a"),
    ],
)
def test_line_endings_are_shown_where_they_are_what_changed(old: bytes, new: bytes, rows: str) -> None:
    assert excerpt_changes(Snapshot(old), Snapshot(new), room=ROOM).text.partition("\n")[2] == rows.replace("|", "\n")


@pytest.mark.parametrize(
    ("room", "rows", "truncated"), [(8, ("1→a", "2→b"), False), (7, ("1→a",), True), (4, ("1→a",), True), (3, (), True)]
)
def test_a_row_and_its_line_break_must_fit(room: int, rows: tuple[str, ...], truncated: bool) -> None:
    page = excerpt_lines(Snapshot(b"a\nb\n"), [(1, 2)], room=room)

    assert (page.rows, page.truncated, page.complete) == (rows, truncated, not truncated)


def test_a_line_is_cut_where_it_is_wider_than_asked_for() -> None:
    page = excerpt_lines(Snapshot(b"abc\nab\n"), [(1, 2)], room=ROOM, width=2)

    assert (page.rows, page.shown, page.truncated, page.complete) == (("1→ab…", "2→ab"), ((2, 2),), False, False)


def test_rows_of_a_difference_count_the_lines_of_the_new_version() -> None:
    found = excerpt_changes(Snapshot(b"1\n2\n3\n4\n"), Snapshot(b"1\nX\nY\n4\n"), room=ROOM)

    assert found.rows == ("@@ -1,4 +1,4 @@", " 1", "-2", "-3", "+X", "+Y", " 4")
    assert found.shown == ((1, 1), (2, 2), (3, 3), (4, 4))
