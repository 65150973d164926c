"""Patches that another tool would apply wrongly without a word."""

import pytest

from spec.marks import requirement
from surehold.errors import AlreadyExists, NotEncodable, NotFound, PatchApplyError, PatchParseError
from surehold.text.patch.parse import parse_patch
from surehold.text.snapshot import ABSENT, Snapshot

pytestmark = requirement("files:apply_patch:exact")


def envelope(*rows: str) -> str:
    return "\n".join(["*** Begin Patch", "*** Update File: f", *rows, "*** End Patch"])


def unified(*rows: str) -> str:
    return "\n".join(["--- a/f", "+++ b/f", *rows, ""])


def applied(text: str, before: bytes) -> bytes:
    return parse_patch(text).files[0].edit.plan(Snapshot(before)).after.data


def refused(text: str, before: bytes) -> str:
    with pytest.raises((PatchApplyError, PatchParseError)) as caught:
        applied(text, before)
    return caught.value.reason


@pytest.mark.parametrize(
    ("there", "quoted"),
    [
        ("x = 1 ", "x = 1"),
        ("x = 1", "x = 1 "),
        ("\tx = 1", "    x = 1"),
        ("say(“x”)", 'say("x")'),
        ("a\u00a0b", "a b"),
        ("a – b", "a - b"),
        ("é", "e\u0301"),
        ("X = 1", "x = 1"),
        ("x = 10", "x = 1"),
        ("xx = 1", "x = 1"),
    ],
)
def test_lines_that_only_look_alike_are_not_taken(there: str, quoted: str) -> None:
    before = f"a\n{there}\nb\n".encode()

    assert refused(envelope("@@", " a", f"-{quoted}", "+new"), before) == "context_not_found"
    assert refused(unified("@@ -1,2 +1,2 @@", " a", f"-{quoted}", "+new"), before) == "context_not_found"


def test_a_block_that_overlaps_itself_stands_twice() -> None:
    assert refused(envelope("@@", "-a", "-a", "+b"), b"a\na\na\n") == "context_ambiguous"


def test_a_block_is_made_of_whole_lines() -> None:
    assert applied(envelope("@@", "-a", "+b"), b"aa\na\nba\n") == b"aa\nb\nba\n"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_separators_do_not_end_a_row(separator: str) -> None:
    before = f"a{separator}b\nc\n".encode()

    assert applied(envelope("@@", f" a{separator}b", "-c", f"+d{separator}-e"), before) == (
        f"a{separator}b\nd{separator}-e\n".encode()
    )


def test_a_row_that_lost_its_blank_is_not_taken_for_a_note() -> None:
    assert refused(envelope("@@", "-a", "+b", "\\section{x}"), b"a\n\\section{x}\n") == "bad_line"
    assert refused(unified("@@ -1,2 +1,2 @@", "-a", "+b", "\\section{x}"), b"a\n\\section{x}\n") == "wrong_count"
    assert refused(unified("@@ -1 +1 @@", "-a", "+b", "\\section{x}"), b"a\n\\section{x}\n") == "wrong_count"


@pytest.mark.parametrize("behind", [[], [""], ["-c"], ["+c", ""], ["2.39", "+c"]])
def test_a_removed_row_that_looks_like_a_mail_signature_is_not_dropped(behind: list[str]) -> None:
    assert refused(unified("@@ -1 +1 @@", "-a", "+b", "-- ", *behind), b"a\n- \nc\n") == "wrong_count"


def test_the_signature_of_a_mail_is_dropped_and_nothing_behind_it() -> None:
    rows = ("@@ -1 +1 @@", "-a", "+b", "-- ", "2.39.5", "")

    assert applied(unified(*rows), b"a\n") == b"b\n"
    assert refused(unified(*rows, "words"), b"a\n") == "text_after_hunk"


@pytest.mark.parametrize(
    "rows", [("@@", " a", "+new"), ("@@", "+new", " b"), ("@@ a", "+new"), ("@@", " a", "+new", "+newer")]
)
def test_lines_are_not_inserted_twice_by_a_patch_that_is_sent_twice(rows: tuple[str, ...]) -> None:
    once = applied(envelope(*rows), b"a\nb\n")

    assert refused(envelope(*rows), once) == "already_applied"


def test_a_patch_that_appends_is_not_applied_twice() -> None:
    append = envelope("@@", "+new", "*** End of File")
    after = unified("@@ -1,2 +1,3 @@", " a", " b", "+new")

    assert refused(append, applied(append, b"a\nb\n")) == "already_applied"
    assert refused(after, applied(after, b"a\nb\n")) == "already_applied"


def test_with_context_on_both_sides_a_line_can_be_doubled() -> None:
    assert applied(envelope("@@", " a", "+x", " x", " c"), b"a\nx\nc\n") == b"a\nx\nx\nc\n"
    assert applied(envelope("@@", " a", "+"), b"a\n\nb\n") == b"a\n\n\nb\n"


def test_an_added_file_never_overwrites_even_without_any_proof() -> None:
    (file,) = parse_patch("*** Begin Patch\n*** Add File: f\n+a\n*** End Patch").files

    with pytest.raises(AlreadyExists) as caught:
        file.edit.plan(Snapshot(b""))
    assert caught.value.path == "f"


@pytest.mark.parametrize(
    "text",
    [
        envelope("@@", "+a"),
        unified("@@ -0,0 +1 @@", "+a"),
        "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        "diff --git a/f b/f\ndeleted file mode 100644\n",
    ],
)
def test_a_file_that_is_not_there_is_neither_updated_nor_deleted(text: str) -> None:
    with pytest.raises(NotFound) as caught:
        parse_patch(text).files[0].edit.plan(ABSENT)
    assert caught.value.path == "f"


class TestByteOrderMark:
    """Git shows it as the first character of the first line."""

    def test_it_stays_when_both_sides_show_it(self) -> None:
        assert applied(unified("@@ -1,2 +1,2 @@", " \ufeffa", "-b", "+B"), b"\xef\xbb\xbfa\nb\n") == (
            b"\xef\xbb\xbfa\nB\n"
        )
        assert applied(unified("@@ -1 +1 @@", "-\ufeffa", "+\ufeffA"), b"\xef\xbb\xbfa\nb\n") == b"\xef\xbb\xbfA\nb\n"

    def test_it_is_only_before_the_first_line(self) -> None:
        assert refused(envelope("@@", " \ufeffb", "-c", "+C"), b"\xef\xbb\xbfa\nb\nc\n") == "byte_order_mark"

    @pytest.mark.parametrize("rows", [("-\ufeffa", "+a"), ("-a", "+\ufeffa")])
    def test_a_hunk_does_not_take_it_away_or_double_it(self, rows: tuple[str, str]) -> None:
        assert refused(unified("@@ -1 +1 @@", *rows), b"\xef\xbb\xbfa\nb\n") == "byte_order_mark"

    def test_an_emptied_file_does_not_get_a_second_one(self) -> None:
        assert refused(envelope("@@", "+\ufeffa"), b"\xef\xbb\xbf") == "byte_order_mark"
        assert applied(envelope("@@", "+a"), b"\xef\xbb\xbf") == b"\xef\xbb\xbfa\n"

    def test_lines_that_begin_with_it_are_not_those_of_a_file_without_it(self) -> None:
        assert refused(unified("@@ -1 +1 @@", "-\ufeffa", "+\ufeffA"), b"a\nb\n") == "context_not_found"

    def test_a_file_without_it_can_get_it(self) -> None:
        assert applied(unified("@@ -1 +1 @@", "-a", "+\ufeffa"), b"a\n") == b"\xef\xbb\xbfa\n"


def test_a_final_newline_that_is_gone_already_is_not_taken_away_again() -> None:
    text = unified("@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file")

    assert applied(text, b"a\n") == b"a"
    assert refused(text, b"a") == "no_change"


def test_a_path_that_is_spelled_in_two_ways_is_one_path() -> None:
    text = "*** Begin Patch\n*** Delete File: a/b/../f\n*** Move File: x -> ./a//f\n*** End Patch"

    assert refused(text, b"") == "duplicate_path"


def test_a_padded_begin_is_still_an_envelope() -> None:
    assert applied("  " + envelope("@@", "-a", "+b"), b"a\n") == b"b\n"


def test_half_of_a_character_is_refused() -> None:
    with pytest.raises(NotEncodable):
        applied(envelope("@@", "-a", "+\ud800"), b"a\n")


def test_two_insertions_into_one_gap_are_refused() -> None:
    text = unified("@@ -1,0 +2 @@", "+x", "@@ -1,0 +3 @@", "+y")

    assert refused(text, b"a\nb\n") == "hunks_overlap"


def test_an_insertion_into_the_context_of_another_hunk_is_refused() -> None:
    text = envelope("@@", " a", " b", "-c", "@@", " a", "+x")

    assert refused(text, b"a\nb\nc\n") == "hunks_overlap"
