"""The line table of a file, for every terminator and encoding, compared with the same text cut by a plain loop."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surehold.text.encoding import RAW, UTF8, Encoding
from surehold.text.snapshot import (
    ABSENT,
    LineCounter,
    Meta,
    Snapshot,
    Version,
    digest_text,
    line_digests,
    merge_ranges,
    newline_style,
    sha256_hex,
)

ENCODINGS = (
    UTF8,
    Encoding(name="utf-8", bom=b"\xef\xbb\xbf"),
    Encoding(name="utf-16-le", width=2),
    Encoding(name="utf-16-be", bom=b"\xfe\xff", width=2),
    Encoding(name="utf-32-le", bom=b"\xff\xfe\0\0", width=4),
)
TEXTS = st.text("ab \r\n\u0a0d\u0d0a\u0a00\u0d00", max_size=14)
"""Half of an Indic letter may be the byte of a line feed or of a carriage return."""


def snapshot_of(text: str, encoding: Encoding) -> Snapshot:
    return Snapshot(encoding.bom + encoding.encode(text), encoding=encoding)


def cut_lines(text: str) -> list[tuple[str, str]]:
    """Cut a text into (content, terminator), at LF and CRLF; at CR if it has no LF."""
    ending = r"\r\n|\n" if "\n" in text else r"\r"
    pattern = re.compile(rf"(.*?)({ending}|\Z)", re.DOTALL)
    rows = [(match[1], match[2]) for match in pattern.finditer(text)]
    return [row for row in rows if row != ("", "")]


@example("\n", ENCODINGS[2])
@example("\r", ENCODINGS[2])
@example("\n\u0a00\n\u0a00a\n", ENCODINGS[2])
@example("\u0a00\u0a00b\na", ENCODINGS[2])
@example("\u0a00\nb\n\na", ENCODINGS[3])
@example("\u0d00\r\ra", ENCODINGS[2])
@example("a\n", UTF8)
@example("a\r", ENCODINGS[1])
@given(TEXTS, st.sampled_from(ENCODINGS))
def test_the_table_is_that_of_a_plain_loop(text: str, encoding: Encoding) -> None:
    snapshot, rows = snapshot_of(text, encoding), cut_lines(text)
    lines = snapshot.lines
    endings = [ending for _, ending in rows if ending]

    assert (len(lines), snapshot.line_count) == (len(rows), len(rows))
    assert snapshot_of(text, encoding).line_count == len(rows)
    assert lines.contents == [encoding.encode(content) for content, _ in rows]
    assert lines.raw == [encoding.encode(content + ending) for content, ending in rows]
    assert [lines.terminator(index) for index in range(len(rows))] == [encoding.encode(end) for _, end in rows]
    starts = [len(encoding.bom)]
    for line in lines.raw:
        starts.append(starts[-1] + len(line))
    assert lines.starts == starts
    assert lines.final_newline == bool(rows and rows[-1][1])
    assert lines.style == style_of(endings)
    most = max(("\n", "\r\n", "\r"), key=endings.count)
    assert lines.dominant == encoding.encode(most)
    assert snapshot.text == text


def style_of(endings: list[str]) -> str:
    names = {"\n": "lf", "\r\n": "crlf", "\r": "cr"}
    return "none" if not endings else "mixed" if len(set(endings)) > 1 else names[endings[0]]


@given(TEXTS, st.sampled_from(ENCODINGS), st.data())
def test_every_byte_belongs_to_the_line_that_holds_it(text: str, encoding: Encoding, data: st.DataObject) -> None:
    snapshot = snapshot_of(text, encoding)
    starts = snapshot.lines.starts
    offset = data.draw(st.integers(0, snapshot.size - 1)) if snapshot.size else 0

    holder = next((index for index in range(len(starts) - 1) if offset < starts[index + 1]), 0)

    assert snapshot.lines.index_at(offset) == holder
    assert snapshot_of(text, encoding).line_number(offset) == holder + 1


@pytest.mark.parametrize(
    ("data", "offset", "index"),
    [(b"", 0, 0), (b"", 5, 0), (b"a\nb\n", 4, 1), (b"a\nb\n", 9, 1), (b"a\nb\n", 2, 1), (b"a\nb\n", 1, 0)],
)
def test_an_offset_after_the_last_line_belongs_to_the_last_line(data: bytes, offset: int, index: int) -> None:
    assert Snapshot(data).lines.index_at(offset) == index


@given(TEXTS, st.sampled_from(ENCODINGS), st.lists(st.integers(0, 60), max_size=5))
def test_line_numbers_of_growing_offsets_are_those_of_each_offset_alone(
    text: str, encoding: Encoding, offsets: list[int]
) -> None:
    snapshot = snapshot_of(text, encoding)
    inside = sorted(min(offset, snapshot.size) for offset in offsets)
    counter = LineCounter(snapshot)

    assert [counter.line_at(offset) for offset in inside] == [
        LineCounter(snapshot_of(text, encoding)).line_at(offset) for offset in inside
    ]


def test_counting_goes_on_from_a_place_that_is_known() -> None:
    snapshot = Snapshot(b"a\nb\nc\nd\n")
    counter = LineCounter(snapshot, at=4, line=3)

    assert [counter.line_at(offset) for offset in (4, 5, 6, 6, 7)] == [3, 3, 4, 4, 4]
    assert [LineCounter(snapshot).line_at(offset) for offset in (2, 6, 2, 0)] == [2, 4, 2, 1]


def test_two_counters_of_one_version_share_the_first_place_alone() -> None:
    snapshot = Snapshot(b"a\nb\nc\n")

    assert [snapshot.line_number(2), snapshot.line_number(2), snapshot.line_number(4)] == [2, 2, 3]
    assert snapshot.mark == (4, 3)


@pytest.mark.parametrize(
    ("data", "first", "end", "count", "endings"),
    [
        pytest.param(b"a\nb\r\nc\n", 0, 2, 2, [b"\n", b"\r\n"], id="every line passes its own on"),
        pytest.param(b"a\nb\r\nc\n", 0, 2, 4, [b"\n", b"\r\n", b"\r\n", b"\r\n"], id="a further line has the last one"),
        pytest.param(b"a\nb\r\nc\n", 0, 2, 1, [b"\n"], id="fewer lines have the first ones"),
        pytest.param(b"a\nb\r\nc\n", 0, 2, 0, [], id="no line has none"),
        pytest.param(b"a\r\nb\n", 1, 1, 2, [b"\r\n", b"\r\n"], id="a gap has that of the line above"),
        pytest.param(b"a\r\nb\n", 0, 0, 1, [b"\r\n"], id="at the top that of the line below"),
        pytest.param(
            b"a\nb\nc\r\nd", 4, 4, 1, [b"\r\n"], id="above a last line without one that of the line before it"
        ),
        pytest.param(b"a\r\nb\nc", 2, 3, 1, [b"\n"], id="a last line without one has that of the line above"),
        pytest.param(b"a\nb\r\nc\r\nd\n", 0, 0, 1, [b"\n"], id="the line below comes before the usual one"),
        pytest.param(b"a\r\nb\nc\nd\r\ne\nf", 1, 1, 1, [b"\r\n"], id="the line above comes before the line below"),
        pytest.param(b"a", 0, 1, 2, [b"\n", b"\n"], id="without any it is LF"),
        pytest.param(b"", 0, 0, 1, [b"\n"], id="in an empty file it is LF"),
        pytest.param(b"a\rb", 1, 2, 1, [b"\r"], id="in a file of CR it is CR"),
    ],
)
def test_new_lines_inherit_terminators(data: bytes, first: int, end: int, count: int, endings: list[bytes]) -> None:
    assert Snapshot(data).lines.inherited_terminators(first, end, count) == endings


@pytest.mark.parametrize(
    ("data", "offset", "ending"),
    [
        (b"", 0, b"\n"),
        (b"a\r\nb\n", 1, b"\r\n"),
        (b"a\r\nb\n", 3, b"\n"),
        (b"a\nb\r\nc", 5, b"\r\n"),
        (b"ab", 1, b"\n"),
    ],
)
def test_a_line_break_inside_a_line_is_spelled_as_the_end_of_that_line(data: bytes, offset: int, ending: bytes) -> None:
    assert Snapshot(data).lines.terminator_near(offset) == ending


@pytest.mark.parametrize(
    ("data", "ending", "closed"),
    [(b"a\nb", b"\n", b"\n"), (b"a\nb\r", b"\n", b"\r\n"), (b"a\nb\r", b"\r\n", b"\r\n"), (b"", b"\n", b"\n")],
)
def test_a_carriage_return_at_the_end_of_a_file_stays_content(data: bytes, ending: bytes, closed: bytes) -> None:
    assert Snapshot(data).lines.close_last_line(ending) == closed


def test_the_more_frequent_of_two_terminators_is_the_usual_one() -> None:
    assert Snapshot(b"a\nb\r\nc\r\n").lines.dominant == b"\r\n"
    assert Snapshot(b"a\nb\r\n").lines.dominant == b"\n"
    assert Snapshot(b"a\nb\nc\r\n").lines.dominant == b"\n"


@pytest.mark.parametrize(
    ("lf", "crlf", "style"), [(0, 0, "none"), (1, 0, "lf"), (0, 1, "crlf"), (1, 1, "mixed"), (9, 1, "mixed")]
)
def test_a_style_is_named_by_what_there_is(lf: int, crlf: int, style: str) -> None:
    assert newline_style(lf, crlf) == style


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        ([], ()),
        ([(5, 6), (1, 2)], ((1, 2), (5, 6))),
        ([(1, 2), (3, 4)], ((1, 4),)),
        ([(1, 2), (4, 4)], ((1, 2), (4, 4))),
        ([(1, 9), (2, 3)], ((1, 9),)),
        ([(1, 3), (2, 9), (11, 12), (12, 13)], ((1, 9), (11, 13))),
    ],
)
def test_ranges_that_touch_are_joined(spans: list[tuple[int, int]], merged: tuple[tuple[int, int], ...]) -> None:
    assert merge_ranges(spans) == merged


@pytest.mark.parametrize("encoding", [*ENCODINGS, RAW], ids=str)
def test_the_digest_of_a_line_leaves_out_blanks_at_its_end_alone(encoding: Encoding) -> None:
    rows = [encoding.encode(row) for row in ("  a b", "  a b \t ", "a b", " \t", "", "a b\v")]

    one, padded, other, blank, empty, ended = line_digests(rows, encoding)

    assert (one, blank) == (padded, empty)
    assert len({one, other, blank, ended}) == 4
    assert snapshot_of("  a b \n\n", encoding).digests == [one, empty]


def test_bytes_that_spell_nothing_have_digests() -> None:
    assert line_digests([b"\xff", b"\xff "], UTF8)[:1] == line_digests([b"\xff \t"], RAW)


def test_a_digest_is_spelled_with_sixteen_digits() -> None:
    assert (digest_text(0xAB), digest_text((1 << 64) - 1)) == ("00000000000000ab", "f" * 16)


def test_a_line_of_half_a_surrogate_has_a_digest() -> None:
    encoding = Encoding(name="utf-16-le", width=2)

    one, other = line_digests([b"\x00\xd8", b"\x01\xd8 \x00"], encoding)

    assert one != other


def test_a_missing_file_is_not_an_empty_one() -> None:
    empty = Snapshot(b"")

    assert empty != ABSENT
    assert (ABSENT.exists, ABSENT.sha256, ABSENT.version, ABSENT.size, ABSENT.data) == (False, "", None, 0, b"")
    assert Meta(mode=0o644) == Meta(mode=0o644, uid=0, gid=0, mtime_ns=0, xattrs=())
    assert (empty.exists, empty.sha256, empty.is_text) == (True, sha256_hex(b""), True)
    assert Snapshot(None) == ABSENT
    assert Snapshot(b"a") == Snapshot(b"a", meta=Meta(mode=0o644))
    assert Snapshot(b"a") != b"a"
    assert [repr(one) for one in (ABSENT, Snapshot(b"a"))] == [
        "Snapshot(absent, 0 bytes)",
        "Snapshot(ca978112ca1b, 1 bytes)",
    ]
    assert len({Snapshot(b"a"), Snapshot(b"a"), Snapshot(b"b"), ABSENT}) == 3
    assert Snapshot(None).version is None


def test_a_version_says_what_the_ledger_remembers() -> None:
    meta = Meta(mode=0o755, uid=1)
    version = Snapshot(b"ab", meta=meta).version
    assert version is not None

    assert version == Version(sha256=sha256_hex(b"ab"), size=2, meta=meta)
    assert (version.mode, Version(sha256="", size=0).mode) == (0o755, None)
    assert len({version, Version(sha256=version.sha256, size=2)}) == 2
    assert hash(version) == hash(Snapshot(b"ab")) == hash(version.sha256)


def test_the_name_of_the_bytes_may_be_known_already() -> None:
    assert Snapshot(b"a", name=lambda: "known").sha256 == "known"
    assert Snapshot(None, name=lambda: "known").sha256 == ""


def test_how_bytes_spell_characters_is_found_with_what_the_caller_knows() -> None:
    assert Snapshot(b"caf\xe9", encoding="latin-1").text == "café"
    assert Snapshot(b"caf\xe9", configured=lambda: "latin-1").text == "café"
    assert Snapshot(b"caf\xe9", detector=lambda _: "cp1252").text == "café"
    assert not Snapshot(b"\0\1\2").is_text


@pytest.mark.parametrize(
    ("data", "needs"), [(b"a\nb\r\n", False), (b"a\rb", True), ("a\n".encode("utf-16"), True), (b"", False)]
)
def test_a_table_is_needed_where_lf_does_not_end_all_lines(data: bytes, needs: bool) -> None:
    assert Snapshot(data).needs_table == needs
