"""What a patch does to bytes that it does not name."""

import pytest

from spec.marks import requirement
from surehold.errors import BinaryFile, NotEncodable, PatchApplyError
from surehold.text.patch.apply import PatchDeletion
from surehold.text.patch.parse import parse_patch
from surehold.text.plan import Delete
from surehold.text.snapshot import Snapshot

UNIFIED = "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n+2b\n three\n"
ENVELOPE = "*** Begin Patch\n*** Update File: f\n@@\n one\n-two\n+TWO\n+2b\n three\n*** End Patch\n"


def applied(text: str, before: bytes, encoding: str | None = None) -> bytes:
    (file,) = parse_patch(text).files
    return file.edit.plan(Snapshot(before, encoding=encoding)).after.data


def refused(text: str, before: bytes) -> PatchApplyError:
    with pytest.raises(PatchApplyError) as caught:
        applied(text, before)
    return caught.value


@requirement(
    "text:new_line:neighbour", "text:splice:outside", "text:splice:byte_order_mark", "text:splice:final_newline"
)
@pytest.mark.parametrize("text", [UNIFIED, ENVELOPE, UNIFIED.replace("\n", "\r\n"), ENVELOPE.replace("\n", "\r\n")])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\ntwo\nthree\n", b"one\nTWO\n2b\nthree\n"),
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\nTWO\r\n2b\r\nthree\r\n"),
        (b"one\ntwo\r\nthree\n", b"one\nTWO\r\n2b\r\nthree\n"),
        (b"one\r\ntwo\nthree\r\n", b"one\r\nTWO\n2b\nthree\r\n"),
        (b"one\rtwo\rthree\r", b"one\rTWO\r2b\rthree\r"),
        (b"one\ntwo\nthree", b"one\nTWO\n2b\nthree"),
        (b"\xef\xbb\xbfone\r\ntwo\r\nthree", b"\xef\xbb\xbfone\r\nTWO\r\n2b\r\nthree"),
        (b"one\ntwo\nthree\n\xff\xfe damaged\r\n", b"one\nTWO\n2b\nthree\n\xff\xfe damaged\r\n"),
        (b"\x0c\nx\x0b\xc2\x85\none\ntwo\nthree\n", b"\x0c\nx\x0b\xc2\x85\none\nTWO\n2b\nthree\n"),
        (b"lone\rCR\none\ntwo\nthree\n", b"lone\rCR\none\nTWO\n2b\nthree\n"),
    ],
)
def test_only_the_named_lines_change_and_new_ones_end_as_their_neighbours(
    text: str, before: bytes, after: bytes
) -> None:
    assert applied(text, before) == after


@requirement("text:splice:final_newline")
@pytest.mark.parametrize(
    ("rows", "after"),
    [
        (" two\n+\n", b"one\ntwo\n\n"),
        ("-two\n+\n", b"one\n\n"),
        (" two\n+three\n+\n*** End of File\n", b"one\ntwo\nthree\n\n"),
        (" two\n+\n+three\n", b"one\ntwo\n\nthree"),
    ],
)
def test_a_blank_line_at_the_end_of_a_file_without_a_final_newline_is_there(rows: str, after: bytes) -> None:
    assert applied(f"*** Begin Patch\n*** Update File: f\n@@\n{rows}*** End Patch\n", b"one\ntwo") == after


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_wide_file_keeps_its_encoding_and_mark(codec: str, end: str) -> None:
    mark = "" if codec == "utf-8-sig" else "\ufeff"
    before = f"{mark}one{end}two{end}three ਊ{end}".encode(codec)
    text = UNIFIED.replace("three", "three ਊ").replace("TWO", "ZWÖ")

    assert applied(text, before) == f"{mark}one{end}ZWÖ{end}2b{end}three ਊ{end}".encode(codec)


@pytest.mark.parametrize(("codec", "word"), [("latin-1", "größe"), ("shift_jis", "表ソ"), ("cp1251", "привет")])
def test_a_patch_speaks_the_encoding_of_the_file(codec: str, word: str) -> None:
    before = f"{word}\none\ntwo\nthree\n".encode(codec)
    text = UNIFIED.replace("@@ -1,3 +1,4 @@", "@@ -1,4 +1,5 @@").replace(" one", f" {word}\n one").replace("2b", word)

    assert applied(text, before, codec) == f"{word}\none\nTWO\n{word}\nthree\n".encode(codec)


def test_characters_that_the_file_cannot_hold_are_refused() -> None:
    with pytest.raises(NotEncodable) as caught:
        applied(UNIFIED.replace("2b", "€"), b"one\ntwo\nthree\n\xe9\n", "latin-1")

    assert caught.value.details["characters"] == ["U+20AC"]


def test_a_backslash_inside_a_shift_jis_character_is_no_line() -> None:
    before = "表\n\\\n".encode("shift_jis")
    text = "--- f\n+++ f\n@@ -2 +2 @@\n-\\\n+/\n"

    assert applied(text, before, "shift_jis") == "表\n/\n".encode("shift_jis")


def test_a_binary_file_is_not_patched() -> None:
    with pytest.raises(BinaryFile):
        applied(UNIFIED, b"one\ntwo\nthree\n\0\x01\x02")


class TestRowsThatQuoteCrlf:
    """As git shows a file with CRLF: the rows end in CRLF, the headers do not."""

    def quoting(self, *rows: str) -> str:
        old, new = (sum(row[0] != sign for row in rows) for sign in "+-")
        return "\n".join(["--- a/f", "+++ b/f", f"@@ -1,{old} +1,{new} @@", *rows, ""])

    def test_they_fit_a_file_with_crlf(self) -> None:
        assert applied(self.quoting(" a\r", "-b\r", "+B\r"), b"a\r\nb\r\n") == b"a\r\nB\r\n"

    def test_they_fit_a_file_with_lf_which_keeps_its_line_ends(self) -> None:
        assert applied(self.quoting(" a\r", "-b\r", "+B\r", "+c\r"), b"a\nb\n") == b"a\nB\nc\n"

    def test_they_can_change_the_line_ends(self) -> None:
        to_lf, to_crlf = self.quoting("-a\r", "-b\r", "+a", "+b"), self.quoting("-a", "-b", "+a\r", "+b\r")

        assert applied(to_lf, b"a\r\nb\r\n") == b"a\nb\n"
        assert applied(to_crlf, b"a\nb\n") == b"a\r\nb\r\n"

    @pytest.mark.parametrize("before", [b"a\nb\n", b"a\r\nb\n"])
    def test_a_change_of_line_ends_that_are_not_there_is_refused(self, before: bytes) -> None:
        assert refused(self.quoting("-a\r", "-b\r", "+a", "+b"), before).reason == "line_endings"

    def test_a_mixed_hunk_keeps_every_line_as_it_was_quoted(self) -> None:
        text = self.quoting(" a\r", "-b", "+B", "+c\r", " d")

        assert applied(text, b"a\r\nb\nd\n") == b"a\r\nB\nc\r\nd\n"

    def test_they_fill_an_empty_file_as_sent(self) -> None:
        assert applied("--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\r\n+b\r\n", b"") == b"a\r\nb\r\n"

    def test_a_new_file_gets_them_as_sent(self) -> None:
        (file,) = parse_patch("--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\r\n+b\r\n").files

        assert file.edit.plan(Snapshot(None)).after.data == b"a\r\nb\r\n"


class TestFilesOfCrLines:
    """A tool that knows LF only takes such a file for one line."""

    NO_NEWLINE = "\\ No newline at end of file\n"

    def test_a_hunk_that_shows_the_whole_file_as_one_line_is_applied(self) -> None:
        text = f"--- f\n+++ f\n@@ -1 +1 @@\n-a\rb\rc\r\n{self.NO_NEWLINE}+a\rB\rc\r\n{self.NO_NEWLINE}"

        assert applied(text, b"a\rb\rc\r") == b"a\rB\rc\r"

    def test_it_can_bring_in_lf(self) -> None:
        text = f"--- f\n+++ f\n@@ -1 +1,2 @@\n-a\rb\r\n{self.NO_NEWLINE}+a\n+b\n"

        assert applied(text, b"a\rb\r") == b"a\nb\n"

    def test_lf_for_cr_is_refused_when_the_file_has_moved_on(self) -> None:
        text = f"--- f\n+++ f\n@@ -1 +1,2 @@\n-a\rb\r\n{self.NO_NEWLINE}+a\n+b\n"

        assert refused(text, b"x\ra\rb\r").reason == "line_endings"


@requirement("text:splice:outside")
def test_context_is_not_part_of_any_span() -> None:
    (file,) = parse_patch(UNIFIED).files
    plan = file.edit.plan(Snapshot(b"one\ntwo\nthree\n"))

    assert [(span.start, span.end, span.new) for span in plan.spans] == [(4, 8, b"TWO\n2b\n")]


def test_a_deletion_that_shows_its_content_is_a_deletion_to_the_engine() -> None:
    (file,) = parse_patch("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").files

    assert isinstance(file.edit, Delete)
    assert isinstance(file.edit, PatchDeletion)
    assert not file.edit.plan(Snapshot(b"\xef\xbb\xbfa\r\n")).after.exists


def test_an_edit_that_contradicts_the_declared_encoding_is_warned_about() -> None:
    (file,) = parse_patch("--- f\n+++ f\n@@ -1 +1 @@\n-# coding: latin-1\n+# coding: utf-8\n").files
    plan = file.edit.plan(Snapshot("# coding: latin-1\né\n".encode("latin-1")))

    assert plan.after.data == b"# coding: utf-8\n\xe9\n"
    assert plan.warnings == ("The file now declares utf-8, but its bytes are iso8859-1; convert it.",)
