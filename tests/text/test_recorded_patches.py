"""What is made of patches in every notation: of whole ones, and of each with one row left out, doubled or changed."""

from collections.abc import Iterator

from surehold.errors import SureholdError
from surehold.text.encoding import Encoding
from surehold.text.patch.parse import parse_patch
from surehold.text.snapshot import ABSENT, Snapshot
from text.recorded_answers import answer_of, check_answers, describe_error

CODE = b"""class A:
    def run(self):
        x = 1
        return x

class B:
    def run(self):
        x = 1
        return x
"""
LINES = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
UNIFIED = """\
--- a/f\t2026-01-01
+++ b/f
@@ -2,3 +2,4 @@ heading
 two
-three
+THREE
+more
 four
@@ -6,2 +7,1 @@
 six
-seven
"""
GIT = """\
diff --git a/f b/g h
old mode 100644
new mode 100755
similarity index 90%
rename from f
rename to g h
index 1234567..89abcde
--- a/f
+++ "b/g h"
@@ -1,2 +1,2 @@
-one
+ONE
 two
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1,2 @@
+n
+o
\\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-g
"""
ENVELOPE = """\
*** Begin Patch
*** Update File: f
*** Move to: g
@@ class B:
@@     def run(self):
         x = 1
-        return x
+        return -x
*** End of File
*** Add File: new
+n
*** Delete File: gone
*** End Patch
"""
FILES = {"f": LINES, "gone": b"g\n"}


def describe_patch(text: str, files: dict[str, bytes]) -> str:
    try:
        patch = parse_patch(text)
    except SureholdError as error:
        return describe_error(error)
    return f"{patch.format}, {patch.hunk_count} hunks: " + " / ".join(
        f"{file.operation} {file.path!r} {file.to_path!r} line {file.line} {file.mode} {file.quotes_content} "
        f"{file.quotes_file}: {answer_of(file.edit, Snapshot(files.get(file.path)))}"
        for file in patch.files
    )


def changed_rows(text: str) -> Iterator[tuple[str, str]]:
    rows = text.split("\n")
    for at, row in enumerate(rows[:-1], 1):
        before, after = rows[: at - 1], rows[at:]
        yield f"without row {at}", "\n".join(before + after)
        yield f"with row {at} twice", "\n".join([*before, row, row, *after])
        for sign in " +-\\@":
            if not row.startswith(sign):
                yield f"with row {at} begun by {sign!r}", "\n".join([*before, sign + row[1:], *after])
        yield f"up to row {at}", "\n".join([*before, row])
        yield f"with row {at} longer", "\n".join([*before, f"{row} x", *after])


def patch_answers() -> Iterator[tuple[str, str]]:
    for name, text in (("unified", UNIFIED), ("git", GIT), ("envelope", ENVELOPE)):
        files = FILES if name != "envelope" else {"f": CODE, "gone": b"g\n"}
        yield name, describe_patch(text, files)
        for change, changed in changed_rows(text):
            yield f"{name} {change}", describe_patch(changed, files)


def test_patches_with_one_row_that_is_wrong() -> None:
    check_answers("patches", patch_answers())


WIDE = Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)
TARGETS = {
    "lf": Snapshot(LINES),
    "crlf": Snapshot(LINES.replace(b"\n", b"\r\n")),
    "cr": Snapshot(LINES.replace(b"\n", b"\r")),
    "mixed": Snapshot(LINES.replace(b"two\n", b"two\r\n")),
    "open": Snapshot(LINES.removesuffix(b"\n")),
    "marked": Snapshot(b"\xef\xbb\xbf" + LINES),
    "wide": Snapshot(WIDE.bom + WIDE.encode(LINES.decode()), encoding=WIDE),
    "twice": Snapshot(LINES + b"--\n" + LINES),
    "moved": Snapshot(b"new\n" + LINES),
    "blanks": Snapshot(LINES.replace(b"two", b"two ").replace(b"three", b"\tthree")),
    "look": Snapshot(LINES.replace(b"three", "thr\u0435e".encode())),
    "done": Snapshot(LINES.replace(b"three", b"THREE\nmore")),
    "other": Snapshot(b"nothing\nof that\n"),
    "empty": Snapshot(b""),
    "absent": ABSENT,
}
HUNKS = (
    "@@ -2,3 +2,3 @@\n two\n-three\n+THREE\n four\n",
    "@@ -2,3 +2,4 @@\n two\n-three\n+THREE\n+more\n four\n",
    "@@ -3 +3 @@\n-three\n+THREE\n",
    "@@ -3,0 +4 @@\n+new\n",
    "@@ -0,0 +1 @@\n+new\n",
    "@@ -9,0 +9 @@\n+new\n",
    "@@ -1,2 +1,3 @@\n+new\n one\n two\n",
    "@@ -6,2 +6,3 @@\n six\n seven\n+new\n",
    "@@ -7 +7,2 @@\n-seven\n\\ No newline at end of file\n+seven\n+eight\n",
    "@@ -7 +7 @@\n-seven\n+SEVEN\n\\ No newline at end of file\n",
    "@@ -6,2 +6,1 @@\n six\n-seven\n",
    "@@ -2,2 +2,2 @@\n two\r\n-three\r\n+THREE\r\n",
    "@@ -2,2 +2,2 @@\n two\n-three\n+three\n",
    "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n@@ -2,2 +2,2 @@\n-two\n+2\n three\n",
    "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n@@ -2,2 +2,2 @@\n two\n-three\n+3\n",
    "@@ -5 +5 @@\n-five\n+5\n@@ -2 +2 @@\n-two\n+2\n",
    "@@ -1,2 +1,2 @@\n-\ufeffone\n+ONE\n two\n",
    "@@ -1,7 +0,0 @@\n-one\n-two\n-three\n-four\n-five\n-six\n-seven\n",
    "@@ -3,2 +3,2 @@\n-three\n+3\n four\n@@ -9,0 +10 @@\n+new\n",
)
SECTIONS = (
    "@@ two\n-three\n+3\n",
    "@@ five\n-three\n+3\n",
    "@@ missing\n-three\n+3\n",
    "@@ one\n@@ five\n six\n+new\n",
    "@@ six\n+new\n",
    "@@\n+new\n",
    "+new\n*** End of File\n",
    "-seven\n+7\n*** End of File\n",
    "-six\n+6\n*** End of File\n",
    "@@\n one\n-two\n+2\n@@\n-two\n+2\n three\n",
    "@@\n-four\n+4\n@@\n-one\n+1\n",
    "@@\n-seven\n+seven\n",
    " six\n+new\n seven\n",
    "-one\n+1\n one\n",
)
ANCHORED = (
    "@@ class B:\n         x = 1\n-        return x\n+        return 2\n",
    "@@     def run(self):\n         x = 1\n-        return x\n+        return 2\n",
    "@@ class A:\n@@     def run(self):\n         x = 1\n-        return x\n+        return 2\n",
    "@@ class A:\n class B:\n-    def run(self):\n+    def go(self):\n",
    "@@ class C:\n-x\n+y\n",
    "@@ class B:\n-class A:\n+class C:\n",
    "@@ return x\n+    y\n",
    "@@ class B:\n+    y = 1\n",
    "         x = 1\n-        return x\n+        return 2\n",
)


def hunk_answers() -> Iterator[tuple[str, str]]:
    for name, before in TARGETS.items():
        for hunks in HUNKS:
            yield f"{name} {hunks!r}", apply_to(before, f"--- a/f\n+++ b/f\n{hunks}")
        for section in SECTIONS:
            yield (
                f"{name} {section!r}",
                apply_to(before, f"*** Begin Patch\n*** Update File: f\n{section}*** End Patch\n"),
            )
    for section in ANCHORED:
        for name, data in (
            ("code", CODE),
            ("part of it", CODE.replace(b"        return x\n", b"        return 0\n", 1)),
        ):
            yield (
                f"{name} {section!r}",
                apply_to(Snapshot(data), f"*** Begin Patch\n*** Update File: f\n{section}*** End Patch\n"),
            )
    for text in ("g\n", "g\nh\n", "", "a\nb\nc\nd\ne\n"):
        deletion = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"
        yield f"deletion of {text!r}", apply_to(Snapshot(text.encode()), deletion)
        yield f"addition to {text!r}", apply_to(Snapshot(text.encode()), "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+g\n")


def apply_to(before: Snapshot, text: str) -> str:
    try:
        file = parse_patch(text).files[0]
    except SureholdError as error:
        return describe_error(error)
    return answer_of(file.edit, before)


def test_hunks_of_every_kind_on_files_of_every_kind() -> None:
    check_answers("hunks", hunk_answers())
