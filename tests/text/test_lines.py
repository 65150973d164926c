import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.text.anchored.lines import judge_quality
from surehold.text.encoding import UTF8
from surehold.text.snapshot import ABSENT, Lines, Snapshot, digest_text

needs_grep = pytest.mark.skipif(shutil.which("grep") is None, reason="grep is not installed")


@requirement("text:line:lf_crlf", "text:line:lone_cr", "text:line:not_terminators", "text:line:count")
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


@requirement("text:line:wide_characters")
@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_lf_bytes_inside_wide_characters_do_not_end_a_line(name: str) -> None:
    text = "\u0a0a\u0d0a\u010a\n\u0a00\u0100\u0a00b\n\U00010000\U000a0000"  # LF's bytes occur across units too
    snapshot = Snapshot(text.encode(name), encoding=name)

    assert [snapshot.encoding.decode(c) for c in snapshot.lines.contents] == text.split("\n")


@requirement("text:line:count", "text:snapshot:absent")
def test_an_empty_file_has_no_lines_and_a_missing_one_neither() -> None:
    assert (Snapshot(b"").line_count, ABSENT.line_count) == (0, 0)
    assert (Snapshot(b"").exists, ABSENT.exists) == (True, False)
    assert (ABSENT.sha256, len(Snapshot(b"").sha256)) == ("", 64)
    assert Snapshot(b"") != ABSENT


@needs_grep
@requirement("text:line:numbers")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a",
        b"a\n\nb",
        b"a\r\nb\r\n",
        b"a\rb\nc\r\r\nd",
        "\ufeffa\u2028b\n\x0bc\x0cd\u0085e\n".encode(),
        b"caf\xe9\n\xff\n",
    ],
)
def test_line_numbers_are_those_that_grep_prints(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    command = ["grep", "--text", "--line-number", "", str(tmp_path / "a")]
    grep = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})

    snapshot = Snapshot(data)
    rows = list(zip(snapshot.lines.starts, snapshot.lines.raw, strict=False))  # one more start: the end
    ours = b"".join(b"%d:%s" % (snapshot.line_number(start), raw) for start, raw in rows)

    # grep shows the byte order mark as part of line 1, and ends every row
    theirs = grep.stdout.replace(snapshot.encoding.bom, b"") if snapshot.encoding.bom else grep.stdout
    assert theirs == (ours if not ours or ours.endswith(b"\n") else ours + b"\n")
    assert snapshot.line_count == len(rows) == theirs.count(b"\n")


@requirement("text:digest:indentation", "text:digest:trailing")
def test_indentation_is_identity_and_trailing_blanks_are_not() -> None:
    digests = Snapshot(b"x\n  x\nx  \nx\t\r\nx").digests

    assert digests[0] != digests[1]
    assert {digests[0], digests[2], digests[3], digests[4]} == {digests[0]}


@requirement("text:digest:stable")
def test_a_digest_is_the_published_xxh3_of_the_line_and_never_changes() -> None:
    digests = Snapshot("\n    return größe\n".encode()).digests

    # The first is the test vector of the algorithm for no bytes at all.
    assert [digest_text(digest) for digest in digests] == ["2d06800538d394c2", "909fda3f36b54d41"]


@requirement("text:sha256:full_bytes")
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbfa\r\nb", "\ufeffé\n".encode("utf-16-le"), b"\xff\0\n"])
def test_the_sha256_is_of_all_bytes_with_mark_and_terminators(data: bytes) -> None:
    assert Snapshot(data).sha256 == hashlib.sha256(data).hexdigest()


@requirement("text:digest:trailing")
def test_a_digest_does_not_depend_on_how_the_file_ends_its_lines() -> None:
    assert Snapshot(b"one\r\ntwo \r\n").digests == Snapshot(b"one\ntwo").digests == Snapshot(b"one\rtwo\r").digests


@requirement("text:quality:low")
@pytest.mark.parametrize(
    "line", ["", "   ", "}", "});", "],", "/>", "*/", "end", "  end;", "</div>", "</a></b>", "'''", "``", "<>"]
)
def test_lines_without_own_content_are_low(line: str) -> None:
    assert judge_quality(line, 1) == "low"


@requirement("text:quality:med")
@pytest.mark.parametrize(("line", "occurrences"), [("return x", 4), ("x = 1", 1), ("if a:", 1), ("--", 1)])
def test_common_lines_and_lines_without_a_word_are_medium(line: str, occurrences: int) -> None:
    assert judge_quality(line, occurrences) == "med"


@requirement("text:quality:high")
@pytest.mark.parametrize("line", ["return x", "def endless():", "ending", "größe = 1", "变量名 = 1"])
def test_lines_with_a_word_are_high(line: str) -> None:
    assert judge_quality(line, 3) == "high"
