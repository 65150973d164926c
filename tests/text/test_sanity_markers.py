import pytest

from spec.marks import requirement
from surehold.text.anchored.lines import anchor_lines
from surehold.text.snapshot import Snapshot
from text.sanity_scenes import kinds, report

TEXT = "first line\nsecond line\nthird line\n"


@requirement("anchored:sanity:markers")
@pytest.mark.parametrize(
    "marker", ["<<<<<<< HEAD", "<<<<<<<", ">>>>>>> feature/x", "||||||| merged common ancestors", "<<<<<<< SEARCH"]
)
@pytest.mark.parametrize("path", ["a.txt", "README.md", "a.py", "Makefile"])
def test_a_conflict_marker_that_was_not_there_is_suspicious(path: str, marker: str) -> None:
    assert "conflict_marker" in kinds(path, TEXT, TEXT + marker + "\n")


@requirement("anchored:sanity:markers")
def test_the_line_between_two_sides_of_a_conflict_is_a_marker_in_code_only() -> None:
    comment = "/*\nfirst text\nsecond text\n*/\n"

    assert kinds("a.js", comment, comment.replace("second", "=======\nsecond")) == ["conflict_marker"]
    assert kinds("a.rst", TEXT, TEXT + "=======\n") == []


@requirement("anchored:sanity:markers")
def test_a_heading_in_a_docstring_is_no_conflict() -> None:
    before = '"""A module.\n\nReturns\n-------\nnothing\n"""\n'

    assert kinds("a.py", before, before.replace("-------", "=======")) == []


@requirement("anchored:sanity:markers")
def test_markers_that_the_file_had_already_may_be_moved() -> None:
    before = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"

    assert kinds("a.txt", before, "new top\n<<<<<<< HEAD\nours, edited\n=======\ntheirs\n>>>>>>> other\n") == []
    assert kinds("a.txt", before + "end of it\n", "end of it\n" + before) == []


@requirement("anchored:sanity:markers")
@pytest.mark.parametrize("text", ["<<<<<<<< eight", ">>> doctest", "a <<<<<<< b", "<<<<<<<x"])
def test_what_only_resembles_a_conflict_marker_is_fine(text: str) -> None:
    assert kinds("a.txt", TEXT, f"{TEXT}{text}\n") == []


@requirement("anchored:sanity:markers")
def test_a_row_that_was_pasted_with_its_anchor_is_suspicious() -> None:
    snapshot = Snapshot(f"{TEXT}}}\n}}\n".encode())
    shown = anchor_lines(snapshot.lines.contents, [snapshot.digests], start=1, encoding=snapshot.encoding)

    found = [kinds("a.txt", snapshot.data, snapshot.data + f"{row}\n".encode()) for row in shown]

    assert found == [["anchor_prefix"]] * 5


@requirement("anchored:sanity:markers")
@pytest.mark.parametrize("text", ["12#abc|short", "issue #123456|", "1#zzzzzz|x", "| 1#5da3f1 | table |"])
def test_what_only_resembles_an_anchor_is_fine(text: str) -> None:
    assert kinds("a.txt", TEXT, f"{TEXT}{text}\n") == []


@requirement("anchored:sanity:only_warnings")
def test_a_pasted_line_number_is_a_warning() -> None:
    found = report("a.txt", TEXT, TEXT + "    12→copied\n", "strict")

    assert (found.status, [(f.kind, f.line) for f in found.findings]) == ("clean", [("line_number_prefix", 4)])


@requirement("anchored:sanity:markers")
def test_every_suspicion_is_reported_and_the_worst_comes_first() -> None:
    found = report("a.py", "x = 1\ny = 2\n", "x = 1\nx = 1\n<<<<<<< HEAD\nz = 3\nz = 3\n", "warn")

    assert [(f.kind, f.suspicious) for f in found.findings] == [
        ("conflict_marker", True),
        ("seam_duplicate", True),
        ("parse_error", True),
    ]


@requirement("anchored:sanity:habits")
@pytest.mark.parametrize("new", ["+second row", "+second row\n+and more", "+    second row", "+\n+second row"])
def test_the_plus_of_a_diff_is_mentioned(new: str) -> None:
    found = report("a.txt", TEXT, TEXT.replace("second line", new))

    assert found.status == "clean"
    assert "Line 2 begins with `+`, as in a diff, and what it replaces does not." in found.warnings


@requirement("anchored:sanity:habits")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- item one\n- item two\n", "- item one\n+ item two\n"),
        ("+ old item\nrest\n", "+new item\nrest\n"),
        ("one\ntwo\n", "one\n+two\nnot all of them\n"),
        ("one\ntwo\n", "one\n++count;\n"),
        ("one\n\n", "one\n+added where nothing was\n"),
    ],
)
def test_other_signs_are_not_taken_for_those_of_a_diff(before: str, after: str) -> None:
    assert "diff_sign" not in [finding.kind for finding in report("a.txt", before, after).findings]


@requirement("anchored:sanity:habits")
@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("if x {\n    let x = 1;\n}\n", "if x {\nlet x = 2;\n}\n", 2),
        ("    foo();\n    bar();\n    baz();\n", "foot();\nbart();\n    baz();\n", 1),
        ("\tone\n\ttwo\n", "\tone\n2\n", 2),
    ],
)
def test_a_replacement_that_loses_its_indentation_is_mentioned(before: str, after: str, line: int) -> None:
    found = report("a.txt", before, after)

    assert found.status == "clean"
    assert f"Line {line} is not indented, and what it replaces was." in found.warnings


@requirement("anchored:sanity:habits")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n    one\n", "a:\n  one more\n"),
        ("a\n    one\n", "a\n"),
        ("a\nb\n", "a\nc\n"),
        ("a:\n    one\ntwo\n", "a:\nthree\n"),
    ],
)
def test_indentation_that_is_kept_in_part_or_was_never_there_is_not_mentioned(before: str, after: str) -> None:
    assert "lost_indentation" not in [finding.kind for finding in report("a.txt", before, after).findings]
