import pytest

from spec.marks import requirement
from surehold.errors import PatchApplyError, PatchParseError
from surehold.text.patch.apply import FilePatch, Patch
from surehold.text.patch.hunks import ParsedHunk, PatchLine
from surehold.text.patch.parse import parse_patch
from surehold.text.snapshot import ABSENT, Snapshot

pytestmark = requirement("files:apply_patch:unified")

NO_NEWLINE = r"\ No newline at end of file"


def diff(*rows: str, old: str = "a/f", new: str = "b/f") -> str:
    return "\n".join([f"--- {old}", f"+++ {new}", *rows, ""])


def applied(before: bytes, *rows: str) -> bytes:
    (file,) = parse_patch(diff(*rows)).files
    return file.edit.plan(Snapshot(before)).after.data


def refused(before: bytes, *rows: str) -> PatchApplyError:
    with pytest.raises(PatchApplyError) as caught:
        applied(before, *rows)
    return caught.value


def unread(text: str) -> PatchParseError:
    with pytest.raises(PatchParseError) as caught:
        parse_patch(text)
    assert f"Line {caught.value.details['line']} of the patch" in caught.value.message
    assert {"line", "expected", "found"} <= set(caught.value.details)
    return caught.value


@requirement("files:apply_patch:format")
def test_all_files_of_a_diff_are_read_with_their_lines() -> None:
    patch = parse_patch(
        "Some words.\n"
        "--- a/x.py\t2026-01-01 10:00:00.000000000 +0000\n+++ b/x.py\n@@ -1,2 +1,2 @@ def f():\n a\n-b\n+c\n"
        "diff -u new new\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\n"
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"
    )

    assert patch == Patch(
        format="unified",
        files=(
            FilePatch(
                operation="update",
                path="x.py",
                line=2,
                hunks=(
                    ParsedHunk(rows=(PatchLine(" ", "a"), PatchLine("-", "b"), PatchLine("+", "c")), line=4, start=1),
                ),
            ),
            FilePatch(
                operation="add", path="new", line=9, hunks=(ParsedHunk(rows=(PatchLine("+", "n"),), line=11, start=0),)
            ),
            FilePatch(
                operation="delete",
                path="gone",
                line=14,
                hunks=(ParsedHunk(rows=(PatchLine("-", "g"),), line=16, start=1),),
                quotes_content=True,
            ),
        ),
    )
    assert patch.hunk_count == 3


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("a/src/f", "b/src/f", "src/f"),
        ("src/f", "src/f", "src/f"),
        ("a/f", "a/f", "a/f"),
        ("b/f", "b/f", "b/f"),
        ("i/f", "w/f", "f"),
        ("a/with blank\t", "b/with blank\t2026-01-01", "with blank"),
        (r'"a/\303\274\t\"x\\"', r'"b/\303\274\t\"x\\"', 'ü\t"x\\'),
        (r'"a/\377"', r'"b/\377"', "\udcff"),
    ],
)
def test_names_lose_prefixes_dates_and_quotes(old: str, new: str, path: str) -> None:
    (file,) = parse_patch(diff("@@ -1 +1 @@", "-a", "+b", old=old, new=new)).files

    assert (file.operation, file.path) == ("update", path)


@pytest.mark.parametrize(
    ("old", "new", "operation", "path"),
    [
        ("/dev/null", "b/f", "add", "f"),
        ("/dev/null", "f", "add", "f"),
        ("a/f\t1970-01-01 00:00:00.000000000 +0000", "b/f\t2026-01-01 00:00:00.000000000 +0000", "add", "f"),
        ("a/f\t1969-12-31 16:00:00 -0800", "b/f", "add", "f"),
        ("a/f\t1970-01-01 01:00:00 +0100", "b/f", "add", "f"),
        ("a/f\t1970-01-01 01:00:00 +0000", "b/f", "update", "f"),
    ],
)
def test_a_file_that_was_not_there_is_added(old: str, new: str, operation: str, path: str) -> None:
    (file,) = parse_patch(diff("@@ -0,0 +1,2 @@", "+a", "+b", old=old, new=new)).files

    assert (file.operation, file.path) == (operation, path)
    if operation == "add":
        assert file.edit.plan(ABSENT).after.data == b"a\nb\n"


def test_an_old_date_alone_does_not_make_a_file_absent() -> None:
    (file,) = parse_patch(
        diff("@@ -1 +1 @@", "-a", "+b", old="f\t1970-01-01 00:00:00 +0000", new="f\t1970-01-01 00:00:00 +0000")
    ).files

    assert file.operation == "update"


def test_a_file_that_is_dated_away_is_deleted() -> None:
    (file,) = parse_patch(diff("@@ -1,2 +0,0 @@", "-a", "-b", new="b/f\t1970-01-01 00:00:00.000000000 +0000")).files

    assert file.operation == "delete"
    assert file.edit.plan(Snapshot(b"a\nb\n")).after == ABSENT


@pytest.mark.parametrize("there", [b"a\nb\nc\n", b"z\na\nb\n", b"a\nX\n"])
def test_a_deletion_that_does_not_show_the_whole_file_is_refused(there: bytes) -> None:
    (file,) = parse_patch(diff("@@ -1,2 +0,0 @@", "-a", "-b", new="/dev/null")).files

    with pytest.raises(PatchApplyError) as caught:
        file.edit.plan(Snapshot(there))

    assert caught.value.reason in {"content_left", "context_not_found"}


def test_all_hunks_are_applied_where_they_stand() -> None:
    before = b"".join(b"%d\n" % n for n in range(1, 21))
    after = applied(before, "@@ -2,2 +2,3 @@", " 2", "+2.5", " 3", "@@ -19 +20 @@", "-19", "+XIX")

    assert after == before.replace(b"\n3\n", b"\n2.5\n3\n").replace(b"19", b"XIX")


def test_every_hunk_is_reported_with_its_lines() -> None:
    (file,) = parse_patch(diff("@@ -1 +1,2 @@", "-1", "+a", "+b", "@@ -3 +4 @@", "-3", "+c")).files
    plan = file.edit.plan(Snapshot(b"1\n2\n3\n"))

    ranges = [
        (one.start_line, one.end_line, one.new_start_line, one.new_end_line)
        for done in plan.applied
        for one in done.ranges
    ]
    assert ranges == [(1, 1, 1, 2), (3, 3, 4, 4)]
    assert [(done.index, done.occurrences, done.tier) for done in plan.applied] == [(0, 1, "exact"), (1, 1, "exact")]


def test_wrong_numbers_do_not_matter_when_the_lines_stand_once() -> None:
    assert applied(b"x\ny\na\nb\n", "@@ -1,2 +1,2 @@", " a", "-b", "+B") == b"x\ny\na\nB\n"


@requirement("files:apply_patch:exact")
def test_numbers_choose_between_equal_places() -> None:
    before = b"a\nb\n" * 4

    assert applied(before, "@@ -3,3 +3,3 @@", " a", "-b", "+B", " a") == b"a\nb\na\nB\na\nb\na\nb\n"


@requirement("files:apply_patch:exact")
@pytest.mark.parametrize(("start", "rows"), [(3, (" a", "-b", "+B")), (2, ("-b", "+B", " a")), (2, (" b", "+B"))])
def test_numbers_do_not_choose_where_the_context_tells_of_an_edge_of_the_file(
    start: int, rows: tuple[str, ...]
) -> None:
    old = sum(row[0] != "+" for row in rows)
    new = sum(row[0] != "-" for row in rows)
    error = refused(b"a\nb\n" * 3, f"@@ -{start},{old} +{start},{new} @@", *rows)

    assert error.reason == "context_ambiguous"


@requirement("files:apply_patch:exact")
def test_numbers_choose_at_the_edges_of_the_file_too() -> None:
    before = b"a\nb\n" * 3

    assert applied(before, "@@ -5,2 +5,2 @@", " a", "-b", "+B") == b"a\nb\na\nb\na\nB\n"
    assert applied(before, "@@ -1,2 +1,2 @@", "-a", "+A", " b") == b"A\nb\na\nb\na\nb\n"


@requirement("files:apply_patch:exact")
@pytest.mark.parametrize("start", [2, 4, 6, 99, 0])
def test_numbers_that_name_none_of_the_equal_places_choose_none(start: int) -> None:
    error = refused(b"a\nb\n" * 3, f"@@ -{start},2 +{start},2 @@", " a", "-b", "+B")

    assert (error.reason, error.details["lines"]) == ("context_ambiguous", [1, 3, 5])


@requirement("files:apply_patch:exact")
def test_numbers_that_are_wrong_for_one_hunk_choose_for_none() -> None:
    # Two lines were added on top: line 3 is now the copy of what the patch meant.
    before = b"new\nnew\na\nb\na\nb\nend\n"
    error = refused(before, "@@ -3,2 +3,2 @@", " a", "-b", "+B", "@@ -5 +5 @@", "-end", "+END")

    assert (error.reason, error.details["lines"], error.details["hunk"]) == ("context_ambiguous", [3, 5], 0)


def test_rows_without_context_are_inserted_behind_the_line_of_their_number() -> None:
    assert applied(b"a\nb\n", "@@ -1,0 +2 @@", "+x") == b"a\nx\nb\n"
    assert applied(b"a\nb", "@@ -2,0 +3 @@", "+x") == b"a\nb\nx"
    assert applied(b"", "@@ -0,0 +1,2 @@", "+x", "+y") == b"x\ny\n"


def test_rows_without_context_go_above_the_first_line_where_another_hunk_quotes_the_file() -> None:
    hunks = ("@@ -0,0 +1 @@", "+x", "@@ -2 +3 @@", "-b", "+B")

    assert applied(b"a\nb\n", *hunks) == b"x\na\nB\n"
    assert refused(b"new\na\nb\n", *hunks).reason == "context_needed"


@pytest.mark.parametrize(("before", "start"), [(b"a\n", 0), (b"a\n", 2), (b"", 1)])
def test_rows_without_context_are_refused_where_the_number_cannot_be_right(before: bytes, start: int) -> None:
    assert refused(before, f"@@ -{start},0 +{start + 1} @@", "+x").reason == "context_needed"


def test_rows_without_context_are_refused_when_the_numbers_are_off_elsewhere() -> None:
    error = refused(b"new\na\nb\nc\n", "@@ -1,0 +2 @@", "+x", "@@ -3 +4 @@", "-c", "+C")

    assert (error.reason, error.details["hunk"]) == ("context_needed", 0)


def test_hunks_must_stand_in_their_order() -> None:
    error = refused(b"b\na\n", "@@ -1 +1 @@", "-a", "+A", "@@ -2 +2 @@", "-b", "+B")

    assert error.reason == "hunks_out_of_order"


def test_hunks_must_not_overlap() -> None:
    error = refused(b"a\nb\nc\n", "@@ -1,2 +1,2 @@", " a", "-b", "+B", "@@ -2,2 +2,2 @@", " b", "-c", "+C")

    assert (error.reason, error.details["hunks"]) == ("hunks_overlap", [0, 1])


def test_an_empty_row_is_an_empty_line() -> None:
    assert applied(b"a\n\nb\n", "@@ -1,3 +1,3 @@", "-a", "+A", "", " b") == b"A\n\nb\n"
    assert applied(b"a\n\n", "@@ -1,2 +1,2 @@", "-a", "+A", "") == b"A\n\n"


def test_rows_that_look_like_headers_are_rows() -> None:
    assert applied(b"-- x\n", "@@ -1 +1 @@", "--- x", "+++ x") == b"++ x\n"


@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        (b"a\nb", ("@@ -1,2 +1,2 @@", " a", "-b", NO_NEWLINE, "+b"), b"a\nb\n"),
        (b"a\nb\n", ("@@ -1,2 +1,2 @@", " a", "-b", "+b", NO_NEWLINE), b"a\nb"),
        (b"a\nb", ("@@ -1,2 +1,2 @@", "-a", "+A", " b", NO_NEWLINE), b"A\nb"),
        (b"a\nb", ("@@ -1,2 +1,3 @@", " a", "-b", NO_NEWLINE, "+b", "+c", NO_NEWLINE), b"a\nb\nc"),
        (b"a\nb", ("@@ -1,2 +1,2 @@", " a", "-b", "+B"), b"a\nB"),
        (b"a\nb", ("@@ -1,2 +1,3 @@", " a", " b", "+c"), b"a\nb\nc"),
        (b"a\r\nb", ("@@ -1,2 +1,3 @@", " a", " b", "+c"), b"a\r\nb\r\nc"),
        (b"a\r\nb", ("@@ -2 +2 @@", "-b", NO_NEWLINE, "+b"), b"a\r\nb\r\n"),
        (b"a\nb", ("@@ -1,2 +1 @@", " a", "-b"), b"a\n"),
    ],
)
def test_the_final_newline_changes_only_when_the_patch_says_so(
    before: bytes, rows: tuple[str, ...], after: bytes
) -> None:
    assert applied(before, *rows) == after


def test_a_file_with_a_final_newline_is_not_one_without() -> None:
    assert refused(b"a\nb\n", "@@ -2 +2 @@", "-b", NO_NEWLINE, "+B").reason == "final_newline"


def test_a_row_without_newline_stands_only_at_the_end() -> None:
    error = refused(b"a\nb\n", "@@ -1 +1 @@", "-a", "+A", NO_NEWLINE)

    assert error.reason == "not_at_end"


@requirement("files:apply_patch:parse_error")
@pytest.mark.parametrize(
    ("rows", "counted"),
    [
        (("@@ -1,2 +1,3 @@", " a", "-b", "+c"), (2, 2)),
        (("@@ -1,1 +1,1 @@", " a", "-b", "+c"), (2, 2)),
        (("@@ -1,2 +1,2 @@", " a", "-b"), (2, 1)),
        (("@@ -1 +1 @@", "-a", "+b", "+c", "@@ -9 +9 @@", "-x", "+y"), (1, 2)),
        (("@@ -1,9 +1,9 @@", "-a", "+b", "@@ -9 +9 @@", "-x", "+y"), (1, 1)),
        (("@@ -1 +1 @@", "-a", "+b", " "), (2, 2)),
        (("@@ -1,2 +1,2 @@", "-a", "+b", "c", " d"), (1, 1)),
    ],
)
def test_counts_that_are_wrong_are_refused_with_what_was_counted(
    rows: tuple[str, ...], counted: tuple[int, int]
) -> None:
    error = unread(diff(*rows))

    assert (error.reason, error.details["line"]) == ("wrong_count", 3)
    assert (error.details["old_rows"], error.details["new_rows"]) == counted
    assert f"{counted[0]} old and {counted[1]} new lines follow" in error.message


@requirement("files:apply_patch:parse_error")
@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("@@ -1 +1 @@\n-a\n+b\n", "unknown_notation", 1),
        ("--- a/f\n+++ b/f\n", "no_hunks", 3),
        ("--- a/f\n+++ b/f\n@@\n-a\n+b\n", "bad_hunk_header", 3),
        ("--- a/f\n+++ b/f\n@@ -1 +1\n-a\n+b\n", "bad_hunk_header", 3),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\nwords\n", "text_after_hunk", 6),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\n@@ -3 +3 @@\n-x\n+y\n", "no_header", 7),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n", "no_change", 3),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+a\n", "no_change", 3),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n", "stray_note", 4),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n", "rows_after_end", 3),
        ("--- f.orig\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "two_names", 1),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "no_path", 1),
        ('--- "a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n', "no_path", 1),
        ("--- \n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "no_path", 1),
        ("--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "old_lines_of_new_file", 1),
        ("--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "new_lines_of_deleted_file", 1),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-c\n+d\n", "duplicate_path", 6),
        ("Binary files a/f and b/f differ\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "binary_patch", 1),
    ],
)
def test_a_diff_that_cannot_be_read_names_the_line(text: str, reason: str, line: int) -> None:
    error = unread(text)

    assert (error.reason, error.details["line"]) == (reason, line)


def test_a_path_twice_is_refused_with_both_lines() -> None:
    one = diff("@@ -1 +1 @@", "-a", "+b")
    error = unread(one + one.replace("a/f", "a/./f").replace("b/f", "b/./f"))

    assert (error.details["first_line"], error.details["line"]) == (1, 6)


def test_the_whole_text_may_travel_with_crlf() -> None:
    (file,) = parse_patch(diff("@@ -1,2 +1,2 @@", " a", "-b", "+B").replace("\n", "\r\n")).files

    assert file.path == "f"
    assert file.edit.plan(Snapshot(b"a\nb\n")).after.data == b"a\nB\n"
    assert file.edit.plan(Snapshot(b"a\r\nb\r\n")).after.data == b"a\r\nB\r\n"


def test_where_one_number_is_wrong_a_hunk_that_fits_twice_is_not_trusted_either() -> None:
    text = b"a\nb\na\nb\na\nx\nc\nd\n"
    sure, doubtful = ("@@ -6 +6 @@", "-x", "+X"), ("@@ -1,3 +1,3 @@", " a", "-b", "+B", " a")
    right, wrong = ("@@ -7,2 +7,2 @@", " c", "-d", "+D"), ("@@ -9,2 +9,2 @@", " c", "-d", "+D")

    assert applied(text, *doubtful, *right) == b"a\nB\na\nb\na\nx\nc\nD\n"
    assert applied(text, *sure, *wrong) == b"a\nb\na\nb\na\nX\nc\nD\n"
    assert refused(text, *doubtful, *wrong).reason == "context_ambiguous"
