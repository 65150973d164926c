import codecs

import pytest

from spec.marks import requirement
from surehold.errors import InvalidArgument, MultipleMatches, NotEncodable, OldTextNotFound, OverlappingEdits
from surehold.text.plan import EditOutcome, LineSpan
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.quoted.matching import Haystack
from surehold.text.snapshot import Snapshot


def edited(data: bytes, old: str, new: str, **options: object) -> bytes:
    edit = StringEdit(old=old, new=new, **options)  # type: ignore[arg-type]  # the options are StringEdit's own
    return SnapshotEdits((edit,)).plan(Snapshot(data)).after.data


@requirement(
    "text:strings:exact",
    "text:strings:line_ends",
    "text:new_line:neighbour",
    "text:splice:byte_order_mark",
    "text:splice:final_newline",
)
@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\nb\nc\n", "b", "B", b"a\nB\nc\n"),
        (b"a\r\nb\r\nc", "a\nb", "x\ny", b"x\r\ny\r\nc"),
        (b"a\r\nb\r\nc", "b", "b1\nb2", b"a\r\nb1\r\nb2\r\nc"),
        (b"a\rb\rc", "a\nb", "x\ny\nz", b"x\ry\rz\rc"),
        (b"a\nb\r\nc\n", "b", "1\n2", b"a\n1\r\n2\r\nc\n"),
        (b"a\nb\r\nc\n", "a\nb\n", "1\n2\n3\n", b"1\n2\r\n3\r\nc\n"),
        (b"x\r\nfoo", "\nfoo", " foo", b"x foo"),
        (b"x\r\nfoo\r\n", "foo\n", "bar\n", b"x\r\nbar\r\n"),
        (b"a\r\nb", "a\r\n", "a\n", b"a\nb"),
        (b"a\nb", "b", "b\r\nc", b"a\nb\nc"),
        (b"$& \\1 x", "x", "$& \\1 \\g<0>", b"$& \\1 $& \\1 \\g<0>"),
        (b"caf\xe9 old", "old", "new", b"caf\xe9 new"),
        (b"\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbfb"),
        (b"only", "only", "", b""),
        (b"a\n", "a\n", "", b""),
    ],
)
def test_only_the_quoted_bytes_change_and_line_breaks_follow_the_file(
    data: bytes, old: str, new: str, expected: bytes
) -> None:
    assert edited(data, old, new) == expected


@requirement("text:strings:characters")
def test_a_backslash_is_not_found_inside_a_shift_jis_character() -> None:
    text = "# coding: shift_jis\n表\\n\n"
    snapshot = Snapshot(text.encode("shift_jis"))

    plan = SnapshotEdits((StringEdit(old="\\", new="/"),)).plan(snapshot)

    assert plan.after.data == text.replace("\\", "/").encode("shift_jis")


@requirement("text:strings:characters")
def test_utf16_is_matched_between_its_units_only() -> None:
    data = "\u6100\u0061b".encode("utf-16-le")  # the bytes 61 00 occur also across two units
    snapshot = Snapshot(data, encoding="utf-16-le")

    assert SnapshotEdits((StringEdit(old="a", new="x"),)).plan(snapshot).after.text == "\u6100xb"


@requirement("text:strings:unique")
def test_text_that_overlaps_itself_is_ambiguous() -> None:
    with pytest.raises(MultipleMatches) as refused:
        edited(b"aaa", "aa", "b")

    assert refused.value.details["count"] == 2


@requirement("text:strings:unique", "promise:refusal:carries_data")
def test_several_places_are_refused_with_their_lines() -> None:
    with pytest.raises(MultipleMatches) as refused:
        edited(b"x\ny\nx\n", "x", "z")

    assert refused.value.details == {"edit_index": 0, "count": 2, "lines": [1, 3]}


@requirement("text:strings:replace_all")
def test_all_places_are_replaced_when_asked() -> None:
    assert edited(b"x\ny\nx\n", "x", "zz", replace_all=True) == b"zz\ny\nzz\n"


@requirement("text:strings:replace_all")
def test_an_expected_number_of_places_must_be_met() -> None:
    assert edited(b"x x", "x", "z", expected_occurrences=2) == b"z z"
    with pytest.raises(MultipleMatches) as refused:
        edited(b"x x", "x", "z", expected_occurrences=3)
    assert refused.value.reason == "other_count"


@requirement("text:strings:replace_all")
@pytest.mark.parametrize("expected", [1, 2])
def test_places_that_overlap_are_no_expected_number_of_places(expected: int) -> None:
    with pytest.raises(MultipleMatches) as refused:
        edited(b"aaa", "aa", "b", expected_occurrences=expected)

    assert refused.value.message == f"Expected {expected} occurrences of `aa`, found 2 that overlap."
    assert edited(b"aaaa", "aa", "b", expected_occurrences=2) == b"bb"


@requirement("text:strings:not_found")
def test_a_text_that_is_missing_is_explained_by_lines_that_differ_in_blanks() -> None:
    with pytest.raises(OldTextNotFound) as refused:
        edited(b"def f():\n\treturn 1\n", "    return 1", "    return 2")

    assert refused.value.details["closest"] == [{"line": 2, "text": "\treturn 1"}]


@requirement("text:strings:not_found")
def test_a_text_that_is_missing_because_the_edit_was_done_already_is_said_so() -> None:
    with pytest.raises(OldTextNotFound) as refused:
        edited(b"port = 4000\n", "port = 3000", "port = 4000")

    assert refused.value.details["already_applied"] is True


@requirement("text:strings:empty")
@pytest.mark.parametrize(("old", "new", "reason"), [("", "x", "empty_old_text"), ("a", "a", "same_text")])
def test_edits_that_say_nothing_are_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        edited(b"a", old, new)

    assert refused.value.reason == reason


@requirement("text:strings:empty")
@pytest.mark.parametrize("kind", [SnapshotEdits, SequentialEdits])
def test_no_edits_are_refused(kind: type[SnapshotEdits] | type[SequentialEdits]) -> None:
    with pytest.raises(InvalidArgument):
        kind(()).plan(Snapshot(b"a"))


@requirement("text:encoding:unencodable")
def test_characters_that_the_file_cannot_hold_are_refused() -> None:
    with pytest.raises(NotEncodable):
        edited(b"# coding: latin-1\n\xe9 x\n", "x", "€")


@requirement("text:strings:snapshot_mode")
def test_snapshot_edits_all_look_at_the_original() -> None:
    edits = SnapshotEdits((StringEdit(old="a", new="b"), StringEdit(old="b", new="c")))

    assert edits.plan(Snapshot(b"a b")).after.data == b"b c"


@requirement("text:strings:snapshot_mode")
def test_snapshot_edits_of_the_same_bytes_are_refused_naming_both() -> None:
    with pytest.raises(OverlappingEdits) as refused:
        SnapshotEdits((StringEdit(old="bc", new="1"), StringEdit(old="ab", new="2"))).plan(Snapshot(b"abc"))

    assert refused.value.details == {"edit_indices": [0, 1]}


@requirement("text:strings:sequential_mode", "text:strings:line_ranges")
def test_sequential_edits_look_at_the_result_of_the_one_before() -> None:
    edits = SequentialEdits((StringEdit(old="AAA", new="BBB"), StringEdit(old="BBB", new="CCC")))

    plan = edits.plan(Snapshot(b"x\nAAA\n"))

    assert plan.after.data == b"x\nCCC\n"
    span = LineSpan(start_line=2, end_line=2, new_start_line=2, new_end_line=2)
    assert plan.applied == (
        EditOutcome(index=0, occurrences=1, ranges=(span,)),
        EditOutcome(index=1, occurrences=1, ranges=(span,)),
    )


@requirement("text:strings:line_ranges")
def test_lines_of_a_match_do_not_include_the_line_behind_its_final_break() -> None:
    plan = SnapshotEdits((StringEdit(old="b\nc\n", new="x\n"),)).plan(Snapshot(b"a\nb\nc\nd\n"))

    assert plan.applied[0].ranges == (LineSpan(start_line=2, end_line=3, new_start_line=2, new_end_line=2),)


@pytest.mark.parametrize(
    ("piece", "old", "found"),
    [("ああab", "ab", 100_000), ("ソ", "\\", 0), ("ソ\r", "\\", 0), ("ソ", "\\ab", 0), ("ソb", "\\b", 0)],
    ids=["all", "none", "none with CR", "absent", "none, two characters"],
)
def test_no_byte_of_a_long_line_is_decoded_more_than_twice_for_the_matches_in_it(
    piece: str, old: str, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = Snapshot(piece.encode("shift_jis") * 100_000, encoding="shift_jis")
    assert snapshot.encoding.name == "shift_jis"
    decoded, make = list[int](), codecs.getincrementaldecoder("shift_jis")

    class Counting:
        def __init__(self, errors: str) -> None:
            self._decoder = make(errors)
            self.reset, self.getstate = self._decoder.reset, self._decoder.getstate

        def decode(self, data: bytes) -> str:
            decoded.append(len(data))
            return self._decoder.decode(data)

    def counting(_name: str) -> type[Counting]:
        return Counting

    monkeypatch.setattr("codecs.getincrementaldecoder", counting)
    matches = Haystack(snapshot).find(old)

    assert len(matches.found) == found
    assert sum(decoded) <= 2 * snapshot.size  # it took minutes when every match was decoded from the line's start


def test_a_match_behind_one_that_begins_inside_a_character_is_found() -> None:
    data = "ソ\\ソ\\\nソ\\".encode("shift_jis")
    edit = StringEdit(old="\\", new="/", replace_all=True)

    for edits in (SnapshotEdits((edit,)), SequentialEdits((StringEdit(old="\n", new="ソ"), edit))):
        after = edits.plan(Snapshot(data, encoding="shift_jis")).after

        assert after.text.replace("\n", "ソ") == "ソ/ソ/ソソ/"
