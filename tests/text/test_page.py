import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.errors import BinaryFile
from surehold.text.encoding import RAW, UTF8, Encoding, detect_encoding
from surehold.text.page import FilePage, PageIndex, page_from_snapshot, read_page
from surehold.text.snapshot import Snapshot, sha256_hex


def pages(data: bytes, size: int = 7) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@requirement("text:sha256:sliced")
def test_a_page_holds_the_asked_lines_and_the_facts_of_the_whole_file() -> None:
    data = b"".join(b"line %d\r\n" % n for n in range(1, 101))

    page = read_page(pages(data), start=10, count=3)

    assert page.rows == (b"line 10\r\n", b"line 11\r\n", b"line 12\r\n")
    assert (page.line_count, page.size, page.style, page.next_line) == (100, len(data), "crlf", 13)
    assert page.sha256 == sha256_hex(data)


@requirement("text:page:streamed")
def test_a_page_of_a_huge_file_is_read_in_one_pass_and_holds_only_itself() -> None:
    chunk, count = b"0123456789abcde\n" * 4096, 1000
    tracemalloc.start()
    page = read_page((chunk for _ in range(count)), start=2_000_000, count=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (page.rows, page.line_count, page.size) == ((chunk[:16],) * 2, 4096 * count, len(chunk) * count)
    assert peak < len(chunk) * 4


def test_a_page_stops_at_whole_lines_when_it_is_full() -> None:
    page = read_page(pages(b"aaaa\nbbbb\ncccc\n"), max_bytes=12)

    assert (page.rows, page.cut, page.next_line, page.line_count) == ((b"aaaa\n", b"bbbb\n"), False, 3, 3)


@requirement("text:page:long_line")
def test_a_line_longer_than_the_page_is_cut_and_said_so() -> None:
    page = read_page(pages(b"x" * 50 + b"\ny\n"), max_bytes=10)

    assert (page.rows, page.cut, page.line_count) == ((b"x" * 10,), True, 2)


def test_a_page_behind_the_end_is_empty() -> None:
    page = read_page([b"a\n"], start=5)

    assert (page.rows, page.next_line, page.line_count) == ((), None, 1)


def test_an_empty_file_has_an_empty_page() -> None:
    page = read_page([])

    assert (page.rows, page.line_count, page.style, page.final_newline) == ((), 0, "none", False)


@pytest.mark.parametrize("size", [9001, 9004])
def test_a_character_cut_between_two_chunks_is_one_character(size: int) -> None:
    text = "é中\n" * 5000
    page = read_page(pages(text.encode(), size), count=5000)

    assert (page.text, page.encoding.name) == (text, "utf-8")


def test_binary_bytes_are_refused() -> None:
    with pytest.raises(BinaryFile):
        read_page([b"a\0b"])


BOM = b"\xef\xbb\xbf"
MARKED = Encoding(name="utf-8", bom=BOM)
WIDE = Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)
ASKED = st.tuples(st.integers(1, 7), st.integers(1, 6), st.sampled_from([1, 2, 3, 5, 8, 13, 500]))
"""The first line, how many lines, and how many bytes."""
TEXTS = st.lists(st.sampled_from(["a", "bb", "", "\r", "\n", "\r\n", "long line"]), max_size=12).map("".join)


def cut_rows(data: bytes, breaker: bytes) -> list[bytes]:
    *whole, last = data.split(breaker)
    return [row + breaker for row in whole] + ([last] if last else [])


def fitting_rows(rows: list[bytes], max_bytes: int) -> tuple[tuple[bytes, ...], bool]:
    """Whole rows as far as they fit; of a first one that does not, its beginning."""
    sums = list(accumulate(map(len, rows)))
    whole = [row for row, size in zip(rows, sums, strict=True) if size <= max_bytes]
    cut = bool(rows) and not whole
    return (rows[0][:max_bytes],) if cut else tuple(whole), cut


def style_of(data: bytes, breaker: bytes) -> str:
    if breaker == b"\r":
        return "cr" if b"\r" in data else "none"
    crlf, lf = data.count(b"\r\n"), data.count(b"\n")
    return "none" if not lf else "lf" if not crlf else "crlf" if crlf == lf else "mixed"


@example("a\nb", UTF8, 1, (2, 1, 500))
@example("a\n", UTF8, 1, (2, 1, 500))
@example("\ra", UTF8, 9, (1, 1, 500))
@given(TEXTS, st.sampled_from([UTF8, MARKED, WIDE]), st.integers(1, 9), ASKED)
def test_a_page_of_a_stream_is_what_a_plain_loop_over_the_whole_file_finds(
    text: str, encoding: Encoding, size: int, asked: tuple[int, int, int]
) -> None:
    start, count, max_bytes = asked
    data, body = encoding.bom + encoding.encode(text), text.encode()
    breaker = b"\r" if "\n" not in text and len(text) % 2 else b"\n"
    all_rows, index = cut_rows(body, breaker), PageIndex()
    size = max(size, len(encoding.bom))  # the first chunk has the mark

    page = read_page(
        pages(data, size),
        start=start,
        count=count,
        max_bytes=max_bytes,
        decide=lambda _: encoding,
        breaker=breaker,
        index=index,
    )

    rows, cut = fitting_rows(all_rows[start - 1 : start - 1 + count], max_bytes)
    assert page == FilePage(
        start=start,
        rows=rows,
        cut=cut,
        line_count=len(all_rows),
        size=len(data),
        sha256=sha256_hex(data),
        style=style_of(body, breaker),  # type: ignore[arg-type]
        final_newline=body.endswith(breaker),
        encoding=MARKED if encoding == MARKED else replace(UTF8, bom=encoding.bom),
        file_encoding=encoding,
        ends_lines_with_cr=breaker == b"\n" and "\n" not in text and "\r" in text,
    )
    assert (index.facts, index.breaker) == (replace(page, rows=()), breaker)
    assert len(index.marks) == len(index.offsets)


@example("long line\nlong line\n", UTF8, 4, (2, 1, 500))
@example("long line\nlong line\n", MARKED, 4, (2, 1, 500))
@given(TEXTS, st.sampled_from([UTF8, MARKED]), st.integers(3, 9), ASKED)
def test_an_index_gives_every_other_page_without_reading_what_is_before_it(
    text: str, encoding: Encoding, size: int, asked: tuple[int, int, int]
) -> None:
    start, count, max_bytes = asked
    data = encoding.bom + text.encode()
    breaker = b"\r" if "\n" not in text and "\r" in text else b"\n"
    index, wanted = PageIndex(), {"start": start, "count": count, "max_bytes": max_bytes}
    read_page(pages(data, size), decide=lambda _: encoding, breaker=breaker, index=index)
    fresh = read_page(pages(data, size), decide=lambda _: encoding, breaker=breaker, **wanted)  # type: ignore[arg-type]
    begins = list[int]()

    def read_from(offset: int) -> list[bytes]:
        begins.append(offset)
        return pages(data[offset:], size)

    found = index.cut_page(read_from, decide=lambda _: encoding, **wanted)  # type: ignore[arg-type]

    assert found == (fresh if data else None)
    rows = cut_rows(text.encode(), breaker)
    if found and start <= len(rows):
        begin = len(encoding.bom) + sum(map(len, rows[: start - 1]))
        assert begin - size <= begins[-1] <= begin


def test_an_empty_piece_changes_nothing() -> None:
    assert read_page([b"a\r", b"", b"\n", b""]) == read_page([b"a\r\n"])


def test_an_index_of_a_wide_or_empty_file_or_of_another_encoding_gives_no_page() -> None:
    data = WIDE.bom + WIDE.encode("a\nb\n")
    wide, plain = PageIndex(), PageIndex()
    read_page([data], index=wide)
    read_page([b"a\nb\n"], index=plain)
    asked = {"start": 1, "count": 1, "max_bytes": 9}

    assert wide.cut_page(lambda _: [data], decide=detect_encoding, **asked) is None  # type: ignore[arg-type]
    assert PageIndex().cut_page(lambda _: [b""], decide=detect_encoding, **asked) is None  # type: ignore[arg-type]
    assert plain.cut_page(lambda _: [b"a\nb\n"], decide=lambda _: RAW, **asked) is None  # type: ignore[arg-type]
    assert plain.cut_page(lambda _: [b"a\nb\n"], decide=detect_encoding, **asked) == read_page([b"a\nb\n"], count=1)  # type: ignore[arg-type]


def test_no_more_of_a_file_is_read_than_the_page_needs() -> None:
    data = b"".join(b"%d\n" % n for n in range(10))
    index, read = PageIndex(), list[bytes]()
    read_page(pages(data, 4), index=index)

    def read_from(offset: int) -> Iterator[bytes]:
        for part in pages(data[offset:], 4):
            read.append(part)
            yield part

    first, second, third = b"0\n1\n", b"2\n3\n", b"4\n5\n"
    for start, count, max_bytes, parts in ((3, 2, 99, [second]), (3, 9, 3, [second]), (4, 2, 99, [second, third])):
        read.clear()
        index.cut_page(read_from, start=start, count=count, max_bytes=max_bytes, decide=detect_encoding)
        assert read == [first, *parts]  # the first decides the encoding


@given(
    TEXTS,
    st.sampled_from([UTF8, MARKED, WIDE]),
    st.integers(1, 6),
    st.integers(0, 6),
    st.sampled_from([0, 1, 5, 9, 500]),
)
def test_a_page_of_a_file_in_memory_keeps_its_encoding(
    text: str, encoding: Encoding, start: int, count: int, max_bytes: int
) -> None:
    snapshot = Snapshot(encoding.bom + encoding.encode(text), encoding=encoding)
    all_rows = snapshot.lines.raw
    rows, cut = fitting_rows(all_rows[start - 1 : start - 1 + count], max_bytes)
    if cut and encoding == WIDE:
        rows = (all_rows[start - 1][: max_bytes // 2 * 2],)

    assert page_from_snapshot(snapshot, start=start, count=count, max_bytes=max_bytes) == FilePage(
        start=start,
        rows=rows,
        cut=cut,
        line_count=len(all_rows),
        size=snapshot.size,
        sha256=snapshot.sha256,
        style=snapshot.lines.style,
        final_newline=snapshot.lines.final_newline,
        encoding=encoding,
        file_encoding=encoding,
    )


def test_the_page_that_is_asked_for_without_numbers_has_2000_lines_and_256_kib() -> None:
    short, long = b"a\n" * 2001, (b"a" * 131_071 + b"\n") * 3

    for data, rows in ((short, 2000), (long, 2)):
        for page in (read_page([data]), page_from_snapshot(Snapshot(data))):
            assert (page.start, len(page.rows), page.next_line, page.cut) == (1, rows, rows + 1, False)
    assert page_from_snapshot(Snapshot(b"a\nb"), start=2).next_line is None


@pytest.mark.parametrize(
    ("first", "name"),
    [
        pytest.param(b"a" * 8191 + "é".encode() + b"a", "utf-8", id="a long line is judged whole"),
        pytest.param(b"a" * 9000 + "é".encode()[:1], "utf-8", id="one byte of two at its end"),
        pytest.param(b"a" * 9000 + "中".encode()[:2], "utf-8", id="two of three"),
        pytest.param(b"a" * 9000 + "𝄞".encode()[:3], "utf-8", id="three of four"),
        pytest.param(b"a" * 9000 + "𝄞".encode(), "utf-8", id="four of four"),
        pytest.param(b"a\n" * 4096 + b"\xff\xff", "utf-8", id="nothing after the last line break counts"),
        pytest.param(b"a\n" * 4095 + b"a\xff\xff", "bytes", id="but 8 KiB are judged at least"),
        pytest.param(b"a" * 8192 + b"\xff", "bytes", id="and a long line is judged to its end"),
        pytest.param(b"a\xff\n" * 4096 + b"a", "bytes", id="what is before a line break counts"),
        pytest.param(b"\xff", "bytes", id="a short chunk is judged whole"),
        pytest.param(("a\n" * 4100 + "é").encode("utf-16-le"), "utf-16-le", id="UTF-16 is cut between its units"),
        pytest.param(("a\n" * 4100).encode("utf-16-le") + b"\x01", "utf-16-le", id="and an odd byte does not count"),
        pytest.param(("a\n" * 4100).encode("utf-16-be"), "utf-16-be", id="a line break may be a whole unit already"),
    ],
)
def test_the_first_chunk_decides_the_encoding_and_a_character_cut_at_its_end_does_not_count(
    first: bytes, name: str
) -> None:
    assert read_page([first, b"\n"]).file_encoding.name == name
