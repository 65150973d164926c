import tracemalloc

import pytest

from spec.marks import requirement
from surehold.errors import BinaryFile
from surehold.text.page import read_page
from surehold.text.snapshot import sha256_hex


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
