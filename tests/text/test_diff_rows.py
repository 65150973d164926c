"""A row of a unified diff is read by its place, whatever its first characters look like."""

import pytest

from surehold.text.diff_rows import classify_rows, count_rows

DIFF = """\
--- a
+++ b
@@ -1,3 +1,2 @@ heading
 same
--- removed
-gone
+++ added
\\ No newline at end of file
@@ -9 +9,0 @@
-@@ -1 +1 @@
between
@@ -20,0 +20 @@
+last
+++ after
"""


def test_rows_are_told_by_what_their_hunk_still_expects() -> None:
    assert [kind for kind, _ in classify_rows(DIFF)] == [
        *("header", "header", "hunk", "same", "removed", "removed", "added", "note"),
        *("hunk", "removed", "header", "hunk", "added", "header"),
    ]
    assert [row for _, row in classify_rows(DIFF)] == DIFF.splitlines()
    assert count_rows(DIFF) == (2, 3)


@pytest.mark.parametrize(
    ("diff", "kinds"),
    [
        ("", []),
        ("\n", ["header"]),
        ("@@ -1,2 +1 @@\n-a\n\n+b\n", ["hunk", "removed", "same", "header"]),
        ("@@ -1 +1,2 @@\n+a\n+b\n-c\n-d\n", ["hunk", "added", "added", "removed", "header"]),
        ("@@ -1,2 +1,2 @@\n a\n\\ x\n-b\n+c\n x", ["hunk", "same", "note", "removed", "added", "header"]),
        ("Binary files a and b differ\n", ["header"]),
    ],
)
def test_a_hunk_ends_where_its_header_says(diff: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in classify_rows(diff)] == kinds
