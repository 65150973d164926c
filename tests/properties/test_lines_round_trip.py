from hypothesis import given

from properties.strategies import Sample, any_bytes, samples
from spec.marks import requirement
from surehold.text.encoding import RAW, UTF8
from surehold.text.page import read_page
from surehold.text.snapshot import Lines, Snapshot


@requirement("text:line:own_terminator")
@given(samples())
def test_raw_lines_after_the_byte_order_mark_join_to_the_file(sample: Sample) -> None:
    snapshot = Snapshot(sample.data, encoding=sample.encoding)

    assert sample.encoding.bom + b"".join(snapshot.lines.raw) == sample.data


@requirement("text:line:own_terminator")
@given(any_bytes())
def test_raw_lines_of_damaged_bytes_join_to_the_file(data: bytes) -> None:
    assert b"".join(Lines(data, RAW).raw) == data
    assert b"".join(Lines(data, UTF8).raw) == data


@requirement("text:line:own_terminator", "text:line:lone_cr", "text:line:lf_crlf")
@given(samples())
def test_every_line_keeps_its_content_and_its_own_terminator(sample: Sample) -> None:
    lines = Snapshot(sample.data, encoding=sample.encoding).lines
    only_cr = "\n" not in sample.text and "\r" in sample.text
    expected = _reference(sample.text, only_cr=only_cr)

    found = [
        (sample.encoding.decode(c), sample.encoding.decode(lines.terminator(i))) for i, c in enumerate(lines.contents)
    ]

    assert found == expected


@requirement("text:line:numbers")
@given(samples(("utf-8", "latin-1", "gbk"), styles=("lf", "crlf", "mixed", "stray")))
def test_line_numbers_are_those_of_grep(sample: Sample) -> None:
    snapshot = Snapshot(sample.data, encoding=sample.encoding)
    if snapshot.lines.breaker == b"\r":
        return

    numbers = [snapshot.line_number(start) for start in snapshot.lines.starts[:-1]]

    assert numbers == list(range(1, snapshot.line_count + 1))
    assert snapshot.line_count == sample.data.count(b"\n") + (
        len(sample.data) > len(sample.encoding.bom) and not sample.data.endswith(b"\n")
    )


@requirement("text:sha256:sliced")
@given(samples(("utf-8", "cp1252", "shift_jis", "utf-16-le", "utf-16-be"), styles=("lf", "crlf", "mixed")))
def test_a_streamed_page_says_the_same_as_the_whole_file(sample: Sample) -> None:
    snapshot = Snapshot(sample.data, encoding=sample.encoding)
    chunks = [sample.data[i : i + 3] for i in range(0, len(sample.data), 3)]

    page = read_page(iter(chunks), decide=lambda _: sample.encoding, start=2, count=3)

    assert page.sha256 == snapshot.sha256
    assert (page.line_count, page.style, page.final_newline) == (
        snapshot.line_count,
        snapshot.lines.style,
        snapshot.lines.final_newline,
    )
    expected = [sample.encoding.decode(row) for row in snapshot.lines.raw[1:4]]
    assert [page.encoding.decode(row) for row in page.rows] == expected


def _reference(text: str, *, only_cr: bool) -> list[tuple[str, str]]:
    """Split character by character, as slowly and plainly as possible."""
    rows, row, at = list[tuple[str, str]](), "", 0
    while at < len(text):
        two = text[at : at + 2]
        end = "\r\n" if two == "\r\n" else ("\n" if two[0] == "\n" else ("\r" if two[0] == "\r" and only_cr else ""))
        if end:
            rows.append((row, end))
            row = ""
        else:
            row += two[0]
        at += len(end) or 1
    return [*rows, (row, "")] if row else rows
