"""Diffs are counted and painted by where a row is, not by how it begins."""

import io
from datetime import UTC, datetime

import pytest

from spec.marks import requirement
from surehold.front.cli.change_view import format_line_counts, paint_diff, print_diff
from surehold.front.cli.output import Output
from surehold.front.shared.ledger_json import count_changed_lines
from surehold.stores.base import Change
from surehold.text.diff_rows import classify_rows

TRICKY = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n same\n--- looks like a header\n+++ so does this\n same\n"


def changed(diff: str) -> Change:
    return Change(path="a", before=None, after=None, diff=diff)


def painted(diff: str, *, colour: bool = False) -> str:
    stream = io.StringIO()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    paint_diff(Output(stream, colour=colour, columns=0, now=now, is_terminal=False), diff)
    return stream.getvalue()


def test_a_changed_line_that_looks_like_a_header_counts_as_a_line() -> None:
    assert count_changed_lines(changed(TRICKY)) == (1, 1)
    assert [kind for kind, _ in classify_rows(TRICKY)] == [
        "header",
        "header",
        "hunk",
        "same",
        "removed",
        "added",
        "same",
    ]


def test_the_headers_of_a_second_file_are_not_lines() -> None:
    assert count_changed_lines(
        changed("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n--- b\n+++ b\n@@ -0,0 +1,2 @@\n+p\n+q\n")
    ) == (3, 1)


def test_a_missing_final_newline_is_a_note() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"

    assert count_changed_lines(changed(diff)) == (1, 1)
    assert [kind for kind, _ in classify_rows(diff)][-2:] == ["note", "added"]


def test_nothing_counts_as_nothing() -> None:
    assert count_changed_lines(changed("")) == (0, 0)
    assert list(classify_rows("")) == []
    assert count_changed_lines(changed("Binary files a and b differ\n")) == (0, 0)
    diffs = ("", "@@ -0,0 +1,2 @@\n+a\n+b\n", "@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", "@@ -1 +1 @@\n-a\n+b\n")
    assert [format_line_counts(changed(diff)) for diff in diffs] == ["", "+2", "-3", "+1 -1"]


def test_rows_have_their_colours() -> None:
    assert painted("@@ -1 +1 @@\n-x\n+y\n", colour=True) == (
        "\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n"
    )


@requirement("front:cli:safe_text")
def test_content_cannot_steer_the_terminal_and_tabs_stay() -> None:
    assert painted("@@ -1 +1 @@\n-\tx\n+\ty\x1b[2J\u202e\n") == "@@ -1 +1 @@\n-\tx\n+\ty\\x1b[2J\\u202e\n"


@pytest.mark.parametrize(("sign", "bytes_"), [("\udcff", b"\xff"), ("\ud800", b"\\ud800"), ("\x1b", b"\x1b")])
def test_a_pipe_gets_the_very_text_whatever_is_in_it(sign: str, bytes_: bytes) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8")
    out = Output(stream, colour=False, columns=0, now=datetime(2026, 1, 1, tzinfo=UTC), is_terminal=False)

    print_diff(out, f"@@ -1 +1 @@\n-x\r\n+{sign}\n")

    assert buffer.getvalue() == b"@@ -1 +1 @@\n-x\r\n+" + bytes_ + b"\n"


def test_carriage_returns_are_shown_only_where_they_are_the_difference() -> None:
    assert painted("@@ -1 +1 @@\n-x\r\n+y\r\n") == "@@ -1 +1 @@\n-x\n+y\n"
    assert painted("@@ -1 +1 @@\n-x\r\n+x\n") == "@@ -1 +1 @@\n-x\\r\n+x\n"
