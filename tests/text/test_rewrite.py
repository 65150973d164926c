import pytest

from spec.marks import requirement
from surehold.errors import InvalidArgument, NotEncodable
from surehold.text.plan import Correction, Delete, Edit, Horizon, Keep
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.rewrite import InsertLines, WriteBytes, WriteText
from surehold.text.snapshot import ABSENT, Snapshot


@requirement("text:rewrite:keeps_style", "text:splice:byte_order_mark")
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


@requirement("text:new_line:neighbour", "text:new_line:dominant")
@pytest.mark.parametrize(
    ("old", "text", "expected"),
    [
        (b"a\r\nb\nc\n", "a\nnew\nb\nc\n", b"a\r\nnew\r\nb\nc\n"),
        (b"a\nb\r\nc\r\n", "a\nnew\nb\nc\n", b"a\nnew\nb\r\nc\r\n"),
        (b"a\r\nb\nc\n", "new\na\nb\nc\n", b"new\r\na\r\nb\nc\n"),
        (b"a\r\nb\r\nc\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\nc\n", "x\ny\n", b"x\ny\n"),
        (b"a", "a\nb\n", b"a\nb\n"),
    ],
    ids=["above", "above again", "below", "dominant", "dominant again", "none"],
)
def test_a_new_line_ends_like_the_one_above_else_the_one_below_else_like_most(
    old: bytes, text: str, expected: bytes
) -> None:
    assert WriteText(text).plan(Snapshot(old)).after.data == expected


@requirement("text:plan:corrections")
def test_changed_line_endings_are_reported() -> None:
    plan = WriteText("a\nB\n").plan(Snapshot(b"a\r\nb\r\n"))

    assert plan.corrections == (Correction(type="line_endings_kept", detail="Line endings follow the file (crlf)."),)


@requirement("text:rewrite:new_file")
def test_a_new_file_gets_the_text_as_it_was_sent() -> None:
    assert WriteText("é\r\n").plan(ABSENT).after.data == "é\r\n".encode()


def test_text_that_the_file_cannot_hold_is_refused() -> None:
    with pytest.raises(NotEncodable):
        WriteText("中").plan(Snapshot(b"caf\xe9"))


@requirement("text:plan:horizon")
def test_the_horizon_is_the_first_line_that_really_differs() -> None:
    plan = WriteBytes(b"1\n2\n3 changed\n4\n").plan(Snapshot(b"1\n2\n3\n4\n"))

    assert plan.horizon == Horizon(anchors_valid_through=2, must_refresh_from_line=3)


@requirement("text:plan:horizon")
def test_lines_that_are_quoted_only_to_find_the_place_stay_before_the_horizon() -> None:
    edits = SnapshotEdits((StringEdit(old="2\n3\n4", new="2\n3\nfour"),))
    plan = edits.plan(Snapshot(b"1\n2\n3\n4\n5\n"))

    assert plan.horizon == Horizon(anchors_valid_through=3, must_refresh_from_line=4)


@requirement("text:plan:horizon")
def test_an_edit_that_writes_the_same_bytes_again_does_not_bring_the_horizon_closer() -> None:
    same = StringEdit(old="1\n2", new="1\r\n2")  # in a file with CRLF, both are the same bytes
    plan = SnapshotEdits((same, StringEdit(old="4", new="four"))).plan(Snapshot(b"1\r\n2\r\n3\r\n4\r\n"))

    assert plan.horizon == Horizon(anchors_valid_through=3, must_refresh_from_line=4)


@requirement("text:plan:pure")
@pytest.mark.parametrize(
    "edit",
    [
        WriteText("a\nnew\n"),
        WriteBytes(b"\0"),
        SnapshotEdits((StringEdit(old="a", new="b"), StringEdit(old="c", new="d\ne"))),
        SequentialEdits((StringEdit(old="a", new="b"), StringEdit(old="b", new="x", replace_all=True))),
        Delete(),
        Keep(),
    ],
    ids=lambda edit: type(edit).__name__,
)
def test_planning_changes_nothing_and_gives_the_same_plan_again(edit: Edit) -> None:
    data = b"a\r\nc\r\n"
    snapshot = Snapshot(data)

    plan = edit.plan(snapshot)

    assert plan == edit.plan(snapshot) == edit.plan(Snapshot(data))
    assert (snapshot.data, plan.before) == (data, snapshot)


def test_deleting_and_keeping_are_plans_too() -> None:
    here = Snapshot(b"x")

    assert Delete().plan(here).after == ABSENT
    assert Keep().plan(here).changes_bytes is False


@requirement("text:rewrite:new_file")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# coding: latin-1\né\n", b"# coding: latin-1\n\xe9\n"),
        ('<?xml version="1.0" encoding="shift_jis"?>\n日', b'<?xml version="1.0" encoding="shift_jis"?>\n\x93\xfa'),
        ('<meta charset="windows-1252">€', b'<meta charset="windows-1252">\x80'),
        ("# coding: nonsense\né\n", "# coding: nonsense\né\n".encode()),
        ("\ufeff\n# coding: latin-1\né\n", "\ufeff\n# coding: latin-1\né\n".encode()),
    ],
    ids=["python", "xml", "html", "unknown", "byte order mark"],
)
@pytest.mark.parametrize("before", [ABSENT, Snapshot(b"")], ids=["absent", "empty"])
def test_a_new_file_is_written_as_it_declares(before: Snapshot, text: str, expected: bytes) -> None:
    after = WriteText(text).plan(before).after

    assert (after.data, Snapshot(after.data).text) == (expected, text.removeprefix("\ufeff"))


def test_a_heading_that_only_reads_like_a_declaration_is_none() -> None:
    text = "# Encoding: ascii\n\ncafé\n"

    assert WriteText(text).plan(ABSENT).after.data == text.encode()


def test_a_new_file_that_cannot_hold_its_text_as_it_declares_is_refused() -> None:
    with pytest.raises(NotEncodable):
        WriteText("# coding: latin-1\n中\n").plan(ABSENT)


@requirement("text:encoding:editorconfig")
@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le"])
def test_the_configured_charset_of_a_new_file_outranks_its_declaration(charset: str) -> None:
    text = "# coding: latin-1\né中\n"
    after = WriteText(text).plan(Snapshot(None, configured=lambda: charset)).after

    assert (after.data, after.text) == (text.encode(charset), text)


_NOW_UTF8 = "The file now declares utf-8, but its bytes are iso8859-1; convert it."


@pytest.mark.parametrize(
    ("edit", "warnings"),
    [
        (SnapshotEdits((StringEdit(old="latin-1", new="utf-8"),)), (_NOW_UTF8,)),
        (SequentialEdits((StringEdit(old="latin-1", new="utf-8"),)), (_NOW_UTF8,)),
        (WriteText("# coding: utf-8\né\n"), (_NOW_UTF8,)),
        (WriteText("é\n"), ("The file now declares no encoding, but its bytes are iso8859-1; convert it.",)),
        (WriteText("# coding: utf-8\ne\n"), ()),
        (WriteText("# coding: iso8859-15\né\n"), ()),
        (WriteText("# coding: latin-1\nü\n"), ()),
    ],
)
def test_a_declaration_that_the_bytes_no_longer_follow_is_warned_about(edit: Edit, warnings: tuple[str, ...]) -> None:
    assert edit.plan(Snapshot(b"# coding: latin-1\n\xe9\n")).warnings == warnings


def test_a_declaration_is_not_warned_about_where_something_else_decides() -> None:
    edit = SnapshotEdits((StringEdit(old="utf-8", new="latin-1"),))
    data = "# coding: utf-8\né\n".encode()

    assert edit.plan(Snapshot(data)).warnings != ()
    assert edit.plan(Snapshot(data, configured=lambda: "utf-8")).warnings == ()
    assert edit.plan(Snapshot(b"\xef\xbb\xbf" + data)).warnings == ()


@requirement("text:rewrite:insert")
@pytest.mark.parametrize(
    ("old", "after", "text", "expected"),
    [
        (b"a\r\nb\n", 0, "new\n", b"new\r\na\r\nb\n"),
        (b"a\r\nb\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\n"),
        (b"a\nb\n", 2, "end", b"a\nb\nend\n"),
        (b"a\nb", 2, "end\n", b"a\nb\nend"),
        (b"", 0, "first\r\nsecond", b"first\nsecond\n"),
        (b"\xef\xbb\xbfa\n", 0, "\xe4\n", b"\xef\xbb\xbf\xc3\xa4\na\n"),
        ("a\n".encode("utf-16"), 1, "b", "a\nb\n".encode("utf-16")),
    ],
)
def test_inserted_lines_end_like_their_neighbours(old: bytes, after: int, text: str, expected: bytes) -> None:
    assert InsertLines(after, text).plan(Snapshot(old)).after.data == expected


@requirement("text:rewrite:insert")
@pytest.mark.parametrize("after", [-1, 3])
def test_a_line_that_is_not_there_is_refused_with_the_numbers_that_are(after: int) -> None:
    with pytest.raises(InvalidArgument, match="of 2") as caught:
        InsertLines(after, "x").plan(Snapshot(b"a\nb\n"))
    assert "to 2" in caught.value.action
