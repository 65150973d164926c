from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from surehold.dialects.claude.read_text import number_lines
from surehold.text.measure import TextRoom
from surehold.text.page import page_from_snapshot
from surehold.text.snapshot import Snapshot

LINES = st.lists(st.tuples(st.text("aé€😀\t \r\f\u2028", max_size=12), st.sampled_from(["\n", "\r\n"])), max_size=30)


@given(LINES, st.booleans(), st.integers(1, 400))
def test_rows_are_the_lines_that_fit_with_their_numbers(lines: list[tuple[str, str]], ended: bool, room: int) -> None:
    text = "".join(line + end for line, end in lines)
    snapshot = Snapshot((text if ended else text.removesuffix("\n").removesuffix("\r")).encode())
    contents = [snapshot.encoding.decode(line) for line in snapshot.lines.contents]

    found = number_lines(page_from_snapshot(snapshot), 1, TextRoom(size=room))

    expected, left = list[str](), room
    for number, line in enumerate(contents, 1):
        left -= len(f"{number}→{line}") + 1
        if left < 0:
            break
        expected.append(f"{number}→{line}")
    if expected or not contents:
        assert (list(found.rows), found.lines, found.next_column) == (expected, len(expected), None)
    else:
        assert found.lines == 1
        assert contents[0].startswith("".join(row.partition("→")[2] for row in found.rows))


def test_a_line_that_fits_is_one_row_also_in_little_room() -> None:
    found = number_lines(page_from_snapshot(Snapshot(b"x" * 80 + b"\n" + b"y" * 3_000 + b"\n")), 1, TextRoom(size=100))

    assert (found.rows, found.lines) == (("1→" + "x" * 80,), 1)


@given(st.text("ab€", min_size=1, max_size=9_000), st.integers(2_100, 5_000))
def test_the_parts_of_a_long_line_are_the_line(line: str, room: int) -> None:
    page = page_from_snapshot(Snapshot(line.encode() + b"\n"))

    parts, column = list[str](), 1
    while column:
        found = number_lines(page, column, TextRoom(size=room))
        assert sum(map(len, found.rows)) + len(found.rows) <= room
        assert all(len(row.partition("→")[2]) <= 2_000 for row in found.rows)
        parts += [row.partition("→")[2] for row in found.rows]
        column = found.next_column or 0

    assert "".join(parts) == line


def test_rows_are_measured_many_at_once() -> None:
    measured = list[str]()

    def measure(text: str) -> int:
        measured.append(text)
        return len(text)

    rows = [f"{number}→of a page" for number in range(1, 1_001)]
    assert TextRoom(size=100_000, measure=measure).count_fitting(rows) == len(rows)
    assert len(measured) <= len(rows) // 50

    measured.clear()
    fitting = TextRoom(size=sum(len(row) + 1 for row in rows[:700]), measure=measure).count_fitting(iter(rows))
    assert fitting == 700
    assert len(measured) <= 100


@given(st.lists(st.text("ab€", max_size=60), max_size=200), st.integers(0, 4_000))
def test_rows_that_count_as_fitting_fit_together_and_no_fewer_than_one_by_one(rows: list[str], size: int) -> None:
    def measure(text: str) -> int:
        return -(-3 * len(text) // 4)  # as tokens are: less for one text than for its parts

    kept = TextRoom(size=size, measure=measure).count_fitting(rows)

    assert measure("".join(f"{row}\n" for row in rows[:kept])) <= size
    alone = list(accumulate(measure(row) + measure("\n") for row in rows))
    assert kept >= sum(total <= size for total in alone)
