import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.text.anchored import lines as lines_module
from surehold.text.anchored.lines import anchor_lines, stream_digests
from surehold.text.encoding import UTF8, Encoding
from surehold.text.escape import escape_lines, escape_text
from surehold.text.snapshot import Snapshot, line_digests

ROW = re.compile(r"(\d+)#([0-9a-f]{6,16})(?:\.(\d+))?([!~]?)\|(.*)", re.DOTALL)


def shown(text: str, start: int = 1, count: int = 10_000) -> list[str]:
    snapshot = Snapshot(text.encode())
    contents = snapshot.lines.contents[start - 1 : start - 1 + count]
    return [str(row) for row in anchor_lines(contents, [snapshot.digests], start=start, encoding=UTF8)]


@requirement("files:read_file:hashes")
def test_nothing_stands_between_the_bar_and_the_first_character() -> None:
    (row,) = shown("  indented text here\n")

    match = ROW.fullmatch(row)
    assert match
    assert match[5] == "  indented text here"


def test_indentation_is_part_of_the_name_and_trailing_blanks_are_not() -> None:
    one, other, padded = (ROW.fullmatch(row) for row in shown("call me\n  call me\ncall me   \n"))

    assert one
    assert other
    assert padded
    assert (one[2] == padded[2], one[2] == other[2]) == (True, False)
    assert (one[3], padded[3], other[3]) == ("1", "2", None)


def test_marks_say_how_safe_a_line_is_to_point_at() -> None:
    marks = [ROW.fullmatch(row) for row in shown("}\nreturn value\nx = 1\n" + "same line again\n" * 4)]

    assert [match[4] for match in marks if match] == ["!", "", "~", "~", "~", "~", "~"]


@requirement("anchored:anchor:collision")
def test_lines_that_begin_alike_are_spelled_with_a_longer_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {b"one": 0xABCDEF_1234567890, b"two": 0xABCDEF_1299999999, b"six": 0x111111_1111111111}

    def fake(lines: list[bytes], _: Encoding) -> list[int]:
        return [digests[line] for line in lines]

    monkeypatch.setattr(lines_module, "line_digests", fake)
    everything = [[digests[b"one"], digests[b"two"], digests[b"six"]]]

    found = anchor_lines([b"one", b"six"], everything, start=1, encoding=UTF8)

    assert [row.hash for row in found] == ["abcdef123", "111111"]


@given(st.lists(st.sampled_from(["a", "b", "  a", "", "}", "long enough line", "zeile"]), max_size=30), st.data())
def test_a_copied_anchor_names_exactly_one_line_whatever_part_of_the_file_is_shown(
    lines: list[str], data: st.DataObject
) -> None:
    text = "".join(line + "\n" for line in lines)
    start = data.draw(st.integers(1, max(len(lines), 1)))

    whole, part = shown(text), shown(text, start)

    assert part == whole[start - 1 :]
    names = [row.partition("|")[0].partition("#")[2] for row in whole]
    assert len(set(names)) == len(lines)


@given(st.binary(max_size=300), st.integers(1, 40), st.sampled_from([b"\n", b"\r"]))
def test_digests_of_a_stream_are_those_of_the_file(data: bytes, size: int, breaker: bytes) -> None:
    data = data.replace(b"\n", b"") if breaker == b"\r" else data
    if breaker == b"\n" and b"\n" not in data:
        data += b"\n"
    raw = Encoding(name="bytes")
    chunks = [data[at : at + size] for at in range(0, len(data), size)]

    streamed = [digest for part in stream_digests(chunks, raw, breaker=breaker) for digest in part]

    snapshot = Snapshot(data, encoding=raw)
    assert streamed == line_digests(snapshot.lines.contents, raw)


@requirement("host:text:escaped")
def test_what_could_fool_a_reader_is_escaped_and_line_breaks_stay() -> None:
    assert escape_text("a\u202eb\x1b[31m\udcff") == "a\\u202eb\\x1b[31m\\xff"
    assert escape_lines("one\r\n\ttwo\u2066\x07\n") == "one\r\n\ttwo\\u2066\\x07\n"
