import pytest

from spec.marks import requirement
from surehold.errors import PatchApplyError, PatchParseError
from surehold.text.patch.apply import FilePatch, Patch
from surehold.text.patch.hunks import ParsedHunk, PatchLine
from surehold.text.patch.parse import parse_patch
from surehold.text.plan import Delete, Keep
from surehold.text.snapshot import ABSENT, Snapshot

pytestmark = requirement("files:apply_patch:envelope")

CODE = b"""class A:
    def run(self):
        x = 1
        return x

class B:
    def run(self):
        x = 1
        return x
"""


def envelope(*rows: str) -> str:
    return "\n".join(["*** Begin Patch", *rows, "*** End Patch", ""])


def update(*rows: str) -> FilePatch:
    (file,) = parse_patch(envelope("*** Update File: f", *rows)).files
    return file


def applied(before: bytes, *rows: str) -> bytes:
    return update(*rows).edit.plan(Snapshot(before)).after.data


def refused(before: bytes, *rows: str) -> PatchApplyError:
    with pytest.raises(PatchApplyError) as caught:
        applied(before, *rows)
    assert caught.value.path == "f"
    return caught.value


@requirement("files:apply_patch:format")
def test_every_header_is_read_with_its_line() -> None:
    patch = parse_patch(
        envelope(
            *("*** Add File: new.txt", "+one", "+", "+two"),
            "*** Delete File: old.txt",
            *("*** Update File: src/a.py", "@@ def f():", " x", "-y", "+z"),
            *("*** Update File: from.txt", "*** Move to: to.txt", "@@", "-1", "+2", "*** End of File"),
            "*** Move File: left.png -> right.png",
        )
    )

    assert patch == Patch(
        format="envelope",
        files=(
            FilePatch(
                operation="add",
                path="new.txt",
                line=2,
                hunks=(ParsedHunk(rows=(PatchLine("+", "one"), PatchLine("+", ""), PatchLine("+", "two")), line=3),),
            ),
            FilePatch(operation="delete", path="old.txt", line=6),
            FilePatch(
                operation="update",
                path="src/a.py",
                line=7,
                hunks=(
                    ParsedHunk(
                        rows=(PatchLine(" ", "x"), PatchLine("-", "y"), PatchLine("+", "z")),
                        line=8,
                        anchors=("def f():",),
                    ),
                ),
            ),
            FilePatch(
                operation="move",
                path="from.txt",
                to_path="to.txt",
                line=12,
                hunks=(ParsedHunk(rows=(PatchLine("-", "1"), PatchLine("+", "2")), line=14, at_end=True),),
            ),
            FilePatch(operation="move", path="left.png", to_path="right.png", line=18),
        ),
    )
    assert patch.hunk_count == 3


def test_a_new_file_has_a_newline_behind_every_row() -> None:
    (file,) = parse_patch(envelope("*** Add File: f", "+a", "+", "+ü")).files

    assert file.edit.plan(ABSENT).after.data == "a\n\nü\n".encode()


def test_a_new_file_may_be_empty_or_end_without_a_newline() -> None:
    empty, open_ended = parse_patch(
        envelope("*** Add File: e", "*** Add File: f", "+a", "+b", r"\ No newline at end of file")
    ).files

    assert empty.edit.plan(ABSENT).after == Snapshot(b"")
    assert open_ended.edit.plan(ABSENT).after == Snapshot(b"a\nb")


def test_a_deletion_and_a_plain_move_look_at_no_byte() -> None:
    deleted, moved = parse_patch(envelope("*** Delete File: a", "*** Update File: b", "*** Move to: c")).files

    assert deleted.edit == Delete()
    assert moved.edit == Keep()
    assert (moved.operation, moved.path, moved.to_path) == ("move", "b", "c")


def test_a_hunk_changes_its_lines_and_nothing_else() -> None:
    assert applied(b"a\nb\nc\nd\n", "@@", " b", "-c", "+C", "+C2") == b"a\nb\nC\nC2\nd\n"


def test_the_first_hunk_needs_no_marker() -> None:
    assert applied(b"a\nb\n", "-a", "+A") == b"A\nb\n"


def test_several_hunks_all_look_at_the_original() -> None:
    after = applied(b"a\nb\nc\nd\n", "@@", "-a", "+b", "@@", "-b", "+a", "@@", "-d")

    assert after == b"b\na\nc\n"


def test_hunks_that_are_unique_may_come_in_any_order() -> None:
    plan = update("@@", "-d", "+D", "@@", "-a", "+A").edit.plan(Snapshot(b"a\nb\nc\nd\n"))

    assert plan.after.data == b"A\nb\nc\nD\n"
    assert [(done.index, done.ranges[0].start_line) for done in plan.applied] == [(0, 4), (1, 1)]


def test_two_hunks_may_share_their_context() -> None:
    assert applied(b"a\nb\nc\nd\n", "@@", "-a", "+A", " b", " c", "@@", " b", " c", "-d", "+D") == b"A\nb\nc\nD\n"


@pytest.mark.parametrize("second", [("@@", " a", " b", "-c"), ("@@", "-b", "+X"), ("@@", " a", "+X", " b", " c")])
def test_a_hunk_may_not_show_lines_that_another_one_changes(second: tuple[str, ...]) -> None:
    error = refused(b"a\nb\nc\nd\n", "@@", " a", "-b", "+B", " c", *second)

    assert error.reason == "hunks_overlap"
    assert error.details["hunks"] == [0, 1]


@requirement("files:apply_patch:exact")
def test_a_block_in_two_places_is_refused_with_both_lines() -> None:
    error = refused(CODE, "@@", "         x = 1", "-        return x", "+        return 2")

    assert error.reason == "context_ambiguous"
    assert error.details["lines"] == [3, 8]
    assert error.details["hunk"] == 0
    assert error.details["hunk_line"] == 3


def test_an_earlier_hunk_does_not_make_a_later_one_unique() -> None:
    error = refused(b"x\na\nm\nx\nb\n", "@@", "-m", "+M", "@@", "-x", "+X")

    assert (error.reason, error.details["lines"]) == ("context_ambiguous", [1, 4])


@pytest.mark.parametrize("anchor", ["class B:", "class B:  "])
def test_an_anchor_narrows_a_hunk_to_what_follows(anchor: str) -> None:
    after = applied(CODE, f"@@ {anchor}", "-        return x", "+        return 2")

    assert after == CODE[:-17] + b"        return 2\n"


def test_anchors_nest() -> None:
    before = b"class A:\n  def f():\n    1\n  def g():\n    1\n\nclass B:\n  def g():\n    1\n\nclass C:\n  def g():\n    2\n"
    rows = ("@@ class B:", "@@   def g():", "-    1", "+    3")

    assert applied(before, *rows) == before.replace(b"class B:\n  def g():\n    1", b"class B:\n  def g():\n    3")


def test_the_same_anchor_may_be_named_for_two_hunks() -> None:
    before = b"class A:\n  a\n  b\n  c\n"

    assert applied(before, "@@ class A:", "-  a", "@@ class A:", "-  c") == b"class A:\n  b\n"


def test_the_block_may_begin_with_the_anchor_itself() -> None:
    assert applied(b"def f():\n  x\n", "@@ def f():", " def f():", "-  x", "+  y") == b"def f():\n  y\n"


def test_rows_below_an_anchor_are_inserted_there() -> None:
    assert applied(b"a\ndef f():\n  x\n", "@@ def f():", "+  new") == b"a\ndef f():\n  new\n  x\n"


def test_rows_below_an_anchor_that_stands_twice_are_refused() -> None:
    error = refused(CODE, "@@ def run(self):", "+        pass")

    assert (error.reason, error.details["lines"]) == ("context_ambiguous", [2, 7])


@requirement("files:apply_patch:exact")
def test_a_hunk_that_fits_below_two_lines_like_its_anchor_is_refused() -> None:
    one, other = b"class A:\n  def f():\n    x\n  def g():\n    x\n", b"class B:\n  def f():\n    x\n"
    error = refused(one + other, "@@ def f():", "-    x", "+    y")

    assert (error.reason, error.details["lines"]) == ("context_ambiguous", [3, 8])
    changed = other.replace(b"x", b"y")
    assert applied(one + other, "@@ class B:", "@@ def f():", "-    x", "+    y") == one + changed
    assert applied(one + other, "@@ class A:", "@@ def f():", "-    x", "+    y") == one.replace(b"x", b"y", 1) + other
    twice = refused(one + one, "@@ class A:", "@@ def g():", "-    x", "+    y")
    assert (twice.reason, twice.details["lines"]) == ("context_ambiguous", [5, 10])
    assert (
        applied(one.replace(b"x", b"z") + other, "@@ def f():", "-    x", "+    y") == one.replace(b"x", b"z") + changed
    )
    assert applied(one + other.replace(b"x", b"z"), "@@ def f():", "-    x", "+    y") == (
        one.replace(b"x", b"y", 1) + other.replace(b"x", b"z")
    )


def test_an_anchor_that_is_nowhere_is_refused() -> None:
    error = refused(CODE, "@@ class C:", "-        return x")

    assert error.reason == "anchor_not_found"
    assert "`class C:`" in error.message


def test_an_anchor_that_only_stands_above_the_hunk_before_is_refused_with_its_lines() -> None:
    before = b"@\n1\n@\n2\nx\ny\n"
    error = refused(before, "@@", "-x", "+X", "@@ @", "-y", "+Y")

    assert (error.reason, error.details["lines"]) == ("anchor_not_found", [1, 3])


def test_a_hunk_is_not_applied_behind_what_its_anchor_opens() -> None:
    before = b"def f():\n  return 0\n\ndef g():\n  return x\n"
    error = refused(before, "@@ def f():", "-  return x", "+  return y")

    assert error.reason == "outside_anchor"
    assert (error.details["anchor_line"], error.details["line"]) == (1, 5)
    assert {"line": 2, "text": "  return 0"} in error.details["fresh"]


def test_numbers_in_an_envelope_decide_nothing() -> None:
    assert applied(b"a\nb\n", "@@ -7,2 +7,2 @@ def f():", "-a", "+A") == b"A\nb\n"
    assert refused(b"a\na\n", "@@ -2,1 +2,1 @@", "-a", "+A").reason == "context_ambiguous"


def test_the_end_of_the_file_chooses_the_last_place() -> None:
    assert applied(b"a\nb\na\nb\n", "@@", " a", "-b", "+B", "*** End of File") == b"a\nb\na\nB\n"


def test_a_block_that_does_not_reach_the_end_is_refused_with_end_of_file() -> None:
    assert refused(b"a\nb\nc\n", "@@", "-a", "+A", "*** End of File").reason == "not_at_end"


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"a\n", b"a\nnew\n"), (b"a", b"a\nnew"), (b"a\r\nb\r\n", b"a\r\nb\r\nnew\r\n"), (b"", b"new\n")],
)
def test_rows_without_context_are_appended_at_the_end_of_file(before: bytes, after: bytes) -> None:
    assert applied(before, "@@", "+new", "*** End of File") == after


def test_rows_without_context_fill_an_empty_file_and_no_other() -> None:
    assert applied(b"", "@@", "+a", "+b") == b"a\nb\n"
    error = refused(b"x\n", "@@", "+a", "+b")
    assert error.reason == "context_needed"
    assert "*** End of File" in error.action


def test_an_empty_row_is_an_empty_line_inside_a_hunk_and_spacing_at_its_ends() -> None:
    assert applied(b"a\n\nb\n", "", "@@", "", "-a", "", "-b", "+c", "", "") == b"\nc\n"


PLAIN = envelope("*** Update File: f", "@@", "-a", "+b")


@pytest.mark.parametrize(
    "text",
    [
        f"\n\n{PLAIN}\n\n",
        f"```\n{PLAIN}```\n",
        f"```diff\n{PLAIN}\n```",
        f"<<'EOF'\n{PLAIN}EOF\n",
        f"apply_patch <<EOF\n{PLAIN}EOF",
        f'```bash\napply_patch <<"PATCH"\n{PLAIN}PATCH\n```\n',
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("*** Begin Patch", "*** Begin Patch  ").replace("*** End", "\n*** End"),
        PLAIN.rstrip("\n"),
    ],
)
def test_what_is_wrapped_around_a_patch_does_not_matter(text: str) -> None:
    (file,) = parse_patch(text).files

    assert file.path == "f"
    assert file.edit.plan(Snapshot(b"a\n")).after.data == b"b\n"


def test_content_that_looks_like_a_marker_is_content() -> None:
    before = b"*** End Patch\n@@\n--- a/f\n"

    assert applied(before, "@@", " *** End Patch", "-@@", "+*** Begin Patch", " --- a/f") == (
        b"*** End Patch\n*** Begin Patch\n--- a/f\n"
    )


@requirement("files:apply_patch:parse_error")
@pytest.mark.parametrize(
    ("rows", "reason", "line"),
    [
        (["*** Update File: f", "@@", "-a"], "truncated", 5),
        ([], "truncated", 2),
        (["*** Rename File: f", "*** End Patch"], "unknown_header", 2),
        (["*** Environment ID: x", "*** End Patch"], "unknown_header", 2),
        (["hello", "*** End Patch"], "bad_line", 2),
        (["*** Update File:", "@@", "-a", "*** End Patch"], "no_path", 2),
        (["*** Update File: f", "*** End Patch"], "no_hunks", 3),
        (["*** Update File: f", "@@", "*** End Patch"], "empty_hunk", 4),
        (["*** Update File: f", "@@", " a", "*** End Patch"], "no_change", 3),
        (["*** Update File: f", "@@", "-a", "+a", "*** End Patch"], "no_change", 3),
        (["*** Update File: f", "@@", "-a", "b", "*** End Patch"], "bad_line", 5),
        (["*** Update File: f", "@@def f():", "-a", "*** End Patch"], "bad_line", 3),
        (["*** Update File: f", "-a", "*** Unknown", "*** End Patch"], "unknown_header", 4),
        (["*** Add File: f", "+a", "b", "*** End Patch"], "bad_line", 4),
        (["*** Add File: f", "+a", "", "+b", "*** End Patch"], "bad_line", 5),
        (["*** Add File: f", r"\ No newline at end of file", "*** End Patch"], "stray_note", 3),
        (["*** Move File: a", "*** End Patch"], "no_path", 2),
        (["*** Move File: a -> b -> c", "*** End Patch"], "no_path", 2),
        (["*** Delete File: f", "-a", "*** End Patch"], "bad_line", 3),
        (["*** Delete File: f", "*** End Patch", "more"], "text_after_end", 4),
        (["*** Delete File: f", "*** Add File: ./f", "+a", "*** End Patch"], "duplicate_path", 3),
        (["*** Move File: a -> b", "*** Delete File: b", "*** End Patch"], "duplicate_path", 3),
        (["*** Move File: a -> a", "*** End Patch"], "duplicate_path", 2),
        (["*** End Patch"], "empty", 3),
        (["*** Update File: f", "-a", r"\ No newline at end of file", "-b", "*** End Patch"], "rows_after_end", 3),
    ],
)
def test_an_envelope_that_cannot_be_read_names_the_line(rows: list[str], reason: str, line: int) -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_patch("\n".join(["*** Begin Patch", *rows]))

    assert (caught.value.reason, caught.value.details["line"]) == (reason, line)
    assert f"Line {line} of the patch" in caught.value.message
    assert caught.value.details["expected"]


def test_an_unknown_header_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_patch(envelope("*** Rename File: f"))

    for known in ("*** Add File:", "*** Delete File:", "*** Update File:", "*** Move File:", "*** Move to:"):
        assert known in caught.value.message
    assert caught.value.details["found"] == "*** Rename File: f"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("hello\n", "unknown_notation"),
        ("*** Update File: f\n@@\n-a\n", "no_begin"),
        ("Here it is:\n*** Begin Patch\n*** Delete File: f\n*** End Patch\n", "no_begin"),
    ],
)
def test_a_text_that_is_no_patch_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_patch(text)

    assert caught.value.reason == reason
    assert "*** Begin Patch" in caught.value.details["expected"]


def test_the_line_of_an_error_is_counted_with_the_wrapping() -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_patch("\n```\n*** Begin Patch\nnonsense\n*** End Patch\n```\n")

    assert caught.value.details["line"] == 4


def test_another_notation_than_the_one_asked_for_is_refused() -> None:
    with pytest.raises(PatchParseError) as caught:
        parse_patch(envelope("*** Delete File: f"), format="unified")

    assert caught.value.reason == "other_format"
    assert parse_patch(envelope("*** Delete File: f"), format="envelope").format == "envelope"


@requirement("files:apply_patch:markers")
@pytest.mark.parametrize("end", [" *** End Patch", "*** End Patch  ", "\t*** End Patch\n\n"])
def test_blanks_around_the_last_marker_do_not_matter(end: str) -> None:
    rows = ["*** Begin Patch", "*** Update File: f", "@@", "-one", "+two", end]

    (file,) = parse_patch("\n".join(rows)).files

    assert file.edit.plan(Snapshot(b"one\n")).after.data == b"two\n"
