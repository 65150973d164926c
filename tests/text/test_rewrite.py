import pytest

from surehold.errors import NotEncodable
from surehold.text.plan import Correction, Delete, Horizon, Keep
from surehold.text.rewrite import WriteBytes, WriteText
from surehold.text.snapshot import ABSENT, Snapshot


@pytest.mark.parametrize(
    ("old", "text", "expected"),
    [
        (b"a\r\nb\r\n", "a\nB\n", b"a\r\nB\r\n"),
        (b"a\nb\n", "a\r\nB\r\n", b"a\nB\n"),
        (b"a\rb\r", "a\nB\n", b"a\rB\r"),
        (b"a\nb\r\nc\n", "a\nb\nc\nd\n", b"a\nb\r\nc\nd\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n"),
        (b"a\n", "a", b"a"),
        (b"a", "a\n", b"a\n"),
        (b"", "x\r\ny", b"x\r\ny"),
        ("é\n".encode("utf-16"), "ü\n", "ü\n".encode("utf-16")),
        (b"# coding: latin-1\n\xe9\n", "# coding: latin-1\nü\n", b"# coding: latin-1\n\xfc\n"),
    ],
)
def test_overwriting_keeps_encoding_mark_and_line_endings(old: bytes, text: str, expected: bytes) -> None:
    assert WriteText(text).plan(Snapshot(old)).after.data == expected


def test_changed_line_endings_are_reported() -> None:
    plan = WriteText("a\nB\n").plan(Snapshot(b"a\r\nb\r\n"))

    assert plan.corrections == (Correction(type="line_endings_kept", detail="Line endings follow the file (crlf)."),)


def test_a_new_file_gets_the_text_as_it_was_sent() -> None:
    assert WriteText("é\r\n").plan(ABSENT).after.data == "é\r\n".encode()


def test_text_that_the_file_cannot_hold_is_refused() -> None:
    with pytest.raises(NotEncodable):
        WriteText("中").plan(Snapshot(b"caf\xe9"))


def test_the_horizon_is_the_first_line_that_really_differs() -> None:
    plan = WriteBytes(b"1\n2\n3 changed\n4\n").plan(Snapshot(b"1\n2\n3\n4\n"))

    assert plan.horizon == Horizon(anchors_valid_through=2, must_refresh_from_line=3)


def test_deleting_and_keeping_are_plans_too() -> None:
    here = Snapshot(b"x")

    assert Delete().plan(here).after == ABSENT
    assert Keep().plan(here).changes_bytes is False
