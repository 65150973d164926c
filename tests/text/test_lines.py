import pytest

from surehold.text.encoding import UTF8
from surehold.text.lines import Lines
from surehold.text.quality import quality
from surehold.text.snapshot import ABSENT, Snapshot


@pytest.mark.parametrize(
    ("data", "contents", "style", "final"),
    [
        (b"", [], "none", False),
        (b"a", [b"a"], "none", False),
        (b"a\n", [b"a"], "lf", True),
        (b"\n", [b""], "lf", True),
        (b"a\n\n", [b"a", b""], "lf", True),
        (b"a\r\nb\r\n", [b"a", b"b"], "crlf", True),
        (b"a\r\nb\n", [b"a", b"b"], "mixed", True),
        (b"a\rb\r", [b"a", b"b"], "cr", True),
        (b"a\rb\n", [b"a\rb"], "lf", True),
        (b"a\nb\r", [b"a", b"b\r"], "lf", False),
        (b"a\r\r\nb", [b"a\r", b"b"], "crlf", False),
        ("a\u2028b\x0bc\x0cd\u0085e\n".encode(), ["a\u2028b\x0bc\x0cd\u0085e".encode()], "lf", True),
    ],
)
def test_lines_end_where_grep_says_they_end(data: bytes, contents: list[bytes], style: str, final: bool) -> None:
    lines = Lines(data, UTF8)

    assert (lines.contents, lines.style, lines.final_newline) == (contents, style, final)


def test_lf_bytes_inside_wide_characters_do_not_end_a_line() -> None:
    text = "\u0a0a\u0d0a\u010a\n\u0a00b"
    snapshot = Snapshot(text.encode("utf-16-le"), encoding="utf-16-le")

    assert [snapshot.encoding.decode(c) for c in snapshot.lines.contents] == text.split("\n")


def test_an_empty_file_has_no_lines_and_a_missing_one_neither() -> None:
    assert (Snapshot(b"").line_count, ABSENT.line_count) == (0, 0)
    assert (Snapshot(b"").exists, ABSENT.exists) == (True, False)
    assert (ABSENT.sha256, len(Snapshot(b"").sha256)) == ("", 64)


def test_indentation_is_identity_and_trailing_blanks_are_not() -> None:
    digests = Snapshot(b"x\n  x\nx  \nx\t\r\nx").digests

    assert digests[0] != digests[1]
    assert {digests[0], digests[2], digests[3], digests[4]} == {digests[0]}


def test_a_digest_does_not_depend_on_how_the_file_ends_its_lines() -> None:
    assert Snapshot(b"one\r\ntwo \r\n").digests == Snapshot(b"one\ntwo").digests == Snapshot(b"one\rtwo\r").digests


@pytest.mark.parametrize(
    "line", ["", "   ", "}", "});", "],", "/>", "*/", "end", "  end;", "</div>", "</a></b>", "'''", "``", "<>"]
)
def test_lines_without_own_content_are_low(line: str) -> None:
    assert quality(line, 1) == "low"


@pytest.mark.parametrize(("line", "occurrences"), [("return x", 4), ("x = 1", 1), ("if a:", 1), ("--", 1)])
def test_common_lines_and_lines_without_a_word_are_medium(line: str, occurrences: int) -> None:
    assert quality(line, occurrences) == "med"


@pytest.mark.parametrize("line", ["return x", "def endless():", "ending", "größe = 1", "变量名 = 1"])
def test_lines_with_a_word_are_high(line: str) -> None:
    assert quality(line, 3) == "high"
