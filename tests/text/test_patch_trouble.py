"""What is said about a hunk that does not apply: enough to repair it without reading the file again."""

import json
import pickle

import pytest

from spec.marks import requirement
from surehold.errors import PatchApplyError, PatchParseError
from surehold.text.patch.parse import parse_patch
from surehold.text.snapshot import Snapshot

pytestmark = requirement("files:apply_patch:apply_error")

FILE = b"import os\n\ndef f(x):\n    y = x + 1\n    return y\n\ndef g():\n    pass\n"


def refused(before: bytes, *rows: str, start: int = 1, notation: str = "unified") -> PatchApplyError:
    old, new = (sum(row[0] != sign for row in rows) for sign in "+-")
    text = "\n".join(["--- a/f.py", "+++ b/f.py", f"@@ -{start},{old} +{start},{new} @@", *rows, ""])
    if notation == "envelope":
        text = "\n".join(["*** Begin Patch", "*** Update File: f.py", "@@", *rows, "*** End Patch"])
    with pytest.raises(PatchApplyError) as caught:
        parse_patch(text).files[0].edit.plan(Snapshot(before))
    error = caught.value
    assert (error.path, error.kind, error.code) == ("f.py", "patch_apply_error", -32014)
    assert (error.details["hunk"], error.details["hunk_line"]) == (0, 3)
    assert json.loads(json.dumps(error.as_dict()))["message"] == error.message
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    return error


@pytest.mark.parametrize("notation", ["unified", "envelope"])
def test_the_line_that_differs_is_shown_with_what_stands_there_now(notation: str) -> None:
    error = refused(FILE, " def f(x):", "-    y = x", "+    y = 2", "     return y", notation=notation)
    best = error.details["closest"][0]

    assert error.reason == "context_not_found"
    assert "line 4 is `    y = x + 1` where the hunk has `    y = x`" in error.message
    assert best["line"] == 3
    assert (best["matching_lines"], best["of_lines"]) == (2, 3)
    assert best["differs"] == {"line": 4, "expected": "    y = x", "found": "    y = x + 1"}
    assert best["whitespace_only"] is False
    assert best["fresh"] == [
        {"line": 1, "text": "import os"},
        {"line": 2, "text": ""},
        {"line": 3, "text": "def f(x):"},
        {"line": 4, "text": "    y = x + 1"},
        {"line": 5, "text": "    return y"},
        {"line": 6, "text": ""},
        {"line": 7, "text": "def g():"},
        {"line": 8, "text": "    pass"},
    ]
    assert error.details["already_applied"] is False


@pytest.mark.parametrize("rows", [("-  y = x + 1", "+  y = 2"), (" def f(x):", "-\ty = x + 1", "+\ty = 2")])
def test_a_difference_in_blanks_only_is_called_so(rows: tuple[str, ...]) -> None:
    error = refused(FILE, *rows)

    assert "differs in blanks only" in error.message
    assert error.details["closest"][0]["whitespace_only"] is True
    assert error.details["closest"][0]["differs"]["line"] == 4


def test_a_difference_in_blanks_is_seen_in_a_wide_file_too() -> None:
    error = refused(FILE.decode().encode("utf-16"), "-  y = x + 1", "+  y = 2")

    assert error.details["closest"][0]["differs"] == {"line": 4, "expected": "  y = x + 1", "found": "    y = x + 1"}
    assert error.details["closest"][0]["whitespace_only"] is True


@pytest.mark.parametrize("notation", ["unified", "envelope"])
def test_a_hunk_that_was_applied_before_is_recognised(notation: str) -> None:
    error = refused(FILE, " def f(x):", "-    y = x", "+    y = x + 1", "     return y", notation=notation)

    assert error.reason == "already_applied"
    assert error.details["already_applied"] is True
    assert error.details["line"] == 3
    assert "Leave this hunk out" in error.action


def test_a_removal_that_happened_before_is_recognised() -> None:
    error = refused(FILE, " import os", "-import sys", " ", " def f(x):")

    assert error.details["already_applied"] is True


def test_rows_behind_the_end_of_the_file_are_said_to_be_missing() -> None:
    error = refused(FILE, " def g():", "     pass", "-    more", "+    less")

    assert "it expects `    more` at line 9, where the file has no line" in error.message
    assert error.details["closest"][0]["differs"]["found"] is None


def test_without_any_line_in_common_the_lines_at_its_number_are_shown() -> None:
    error = refused(FILE, "-nothing like it", "+x", start=7)

    assert error.details["closest"][0]["line"] == 7
    assert {"line": 7, "text": "def g():"} in error.details["closest"][0]["fresh"]


def test_a_file_without_lines_has_nothing_close() -> None:
    error = refused(b"", "-a", "+b", notation="envelope")

    assert error.details["closest"] == []
    assert "none of its lines are in the file" in error.message


def test_at_most_three_places_are_shown_best_first() -> None:
    before = b"a\nX\nX\n" + b"a\nb\nX\n" + b"a\nX\nX\n" * 9
    error = refused(before, " a", " b", "-c", "+C", notation="envelope")

    places = [(place["line"], place["matching_lines"]) for place in error.details["closest"]]
    assert places == [(4, 2), (1, 1), (7, 1)]


def test_a_line_that_a_hunk_repeats_does_not_say_which_place_resembles_it() -> None:
    before = b"    }\n" * 8 + b"other\n" * 4 + b"    last = 1\n"
    error = refused(before, *["   }"] * 4, "-  last = 1", "+  last = 2")

    assert [place["line"] for place in error.details["closest"]] == [9]


def test_the_hunk_that_fails_is_named_by_its_number_and_line() -> None:
    text = "--- f\n+++ f\n@@ -1 +1 @@\n-import os\n+import re\n@@ -4 +4 @@\n-nonsense\n+x\n"
    with pytest.raises(PatchApplyError) as caught:
        parse_patch(text).files[0].edit.plan(Snapshot(FILE))

    assert (caught.value.details["hunk"], caught.value.details["hunk_line"]) == (1, 6)
    assert "Hunk 1 of `f` (line 6 of the patch)" in caught.value.message


def test_long_lines_are_cut_in_the_message_but_not_for_copying() -> None:
    line = "x" * 500
    error = refused(f"a\n{line}\n".encode(), " a", "-b", "+c")

    assert len(error.message) < 400
    assert error.details["closest"][0]["differs"]["found"] == line


def test_many_equal_places_are_not_all_listed() -> None:
    error = refused(b"a\n" * 1000, "-a", "+b", start=5000)

    assert error.reason == "context_ambiguous"
    assert error.details["lines"] == list(range(1, 21))
    assert error.details["more"] is True


def test_in_a_file_of_equal_lines_an_applied_hunk_is_recognised_too() -> None:
    before = b"a\nb\n" * 1500 + b"a\na\nb\nb\n" + b"a\nb\n" * 1500
    error = refused(before, " a", " a", "-a", " b", " b", notation="envelope")

    assert error.details["already_applied"] is True
    assert error.details["line"] == 3001


def test_a_patch_whose_lines_are_above_its_anchor_is_told_so() -> None:
    text = "*** Begin Patch\n*** Update File: f\n@@ def g():\n-    y = x + 1\n*** End Patch\n"
    with pytest.raises(PatchApplyError) as caught:
        parse_patch(text).files[0].edit.plan(Snapshot(FILE))

    assert "are at line 4, but above its anchor at line 7" in caught.value.message


def test_blank_lines_do_not_make_a_place_resemble_a_hunk() -> None:
    text = "*** Begin Patch\n*** Update File: f\n@@\n \n-missing\n+x\n*** End Patch\n"
    (file,) = parse_patch(text).files

    with pytest.raises(PatchApplyError) as caught:
        file.edit.plan(Snapshot(b"one\n\ntwo\n\nthree\n"))

    assert (caught.value.reason, caught.value.details["closest"]) == ("context_not_found", [])


@pytest.mark.parametrize(
    ("text", "notation", "reason", "line"),
    [
        ("", "auto", "empty", 1),
        ("\n \n\t\n", "auto", "empty", 4),
        ("\nwords\n", "auto", "unknown_notation", 2),
        ("\n\n \nwords\n", "git", "unknown_notation", 4),
        ("\n\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "envelope", "other_format", 4),
        ("\n\n*** Begin Patch\n*** Delete File: f\n*** End Patch\n", "unified", "other_format", 3),
    ],
)
def test_blank_rows_are_not_what_was_found(text: str, notation: str, reason: str, line: int) -> None:
    with pytest.raises(PatchParseError) as refused:
        parse_patch(text, format=notation)  # type: ignore[arg-type]

    assert (refused.value.reason, refused.value.details["line"]) == (reason, line)


def test_blank_rows_between_the_parts_of_an_envelope_are_passed_over() -> None:
    blank = "\n\n \n"
    text = (
        f"{blank}*** Begin Patch\n{blank}*** Delete File: f\n{blank}*** Delete File: g\n{blank}*** End Patch\n{blank}"
    )

    assert [(file.path, file.line) for file in parse_patch(text).files] == [("f", 8), ("g", 12)]


def test_a_git_diff_is_a_unified_diff_too() -> None:
    git = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"

    assert [parse_patch(git, format=asked).format for asked in ("auto", "git", "unified")] == ["git"] * 3
