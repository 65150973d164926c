"""Patches in the envelope notation, as the programs that invented it and their successors test them."""

from dataclasses import dataclass

import pytest

from dialects.every_tool import EveryTool
from dialects.peer_case import ALL_OR_NONE, AMBIGUOUS, NO_FUZZ, NO_OVERWRITE, PeerCase
from spec.marks import requirement

POEM = "roses are red\nviolets are blue\nsugar is sweet\n"
SHOP = "class Shop:\n    def open(self):\n        return 1\n\nclass Bank:\n    def open(self):\n        return 1\n"


@dataclass(frozen=True, kw_only=True)
class PatchCase(PeerCase):
    rows: tuple[str, ...]
    reads: tuple[str, ...] = ()
    """Files that the agent has read; a pure deletion or move needs that."""


def update(name: str, *rows: str) -> tuple[str, ...]:
    return ("*** Begin Patch", f"*** Update File: {{}}/{name}", *rows, "*** End Patch")


def patch(*rows: str) -> tuple[str, ...]:
    return ("*** Begin Patch", *rows, "*** End Patch")


CASES = [
    PatchCase(
        name="a new file",
        before={},
        rows=patch("*** Add File: {}/new.txt", "+one", "+two"),
        after={"new.txt": "one\ntwo\n"},
    ),
    PatchCase(
        name="a new file in new directories",
        before={},
        rows=patch("*** Add File: {}/deep/down/new.txt", "+x"),
        after={"deep/down/new.txt": "x\n"},
    ),
    PatchCase(
        name="a new file over an old one",
        before={"a.txt": "old\n"},
        rows=patch("*** Add File: {}/a.txt", "+new"),
        says=("already_exists",),
        because=NO_OVERWRITE,
    ),
    PatchCase(
        name="one line",
        before={"a.txt": POEM},
        rows=update("a.txt", "@@", "-sugar is sweet", "+salt is not"),
        after={"a.txt": POEM.replace("sugar is sweet", "salt is not")},
    ),
    PatchCase(
        name="two hunks",
        before={"a.txt": POEM},
        rows=update("a.txt", "@@", "-roses are red", "+tulips", "@@", "-sugar is sweet", "+salt"),
        after={"a.txt": "tulips\nviolets are blue\nsalt\n"},
    ),
    PatchCase(
        name="three files at once",
        before={"change.txt": "old\n", "gone.txt": "x\n"},
        reads=("gone.txt",),
        rows=patch(
            "*** Add File: {}/new.txt",
            "+n",
            "*** Update File: {}/change.txt",
            "@@",
            "-old",
            "+new",
            "*** Delete File: {}/gone.txt",
        ),
        after={"new.txt": "n\n", "change.txt": "new\n"},
    ),
    PatchCase(
        name="a deletion of a file that was not read",
        before={"gone.txt": "x\n"},
        rows=patch("*** Delete File: {}/gone.txt"),
        says=("stale_file",),
        because="a deletion quotes nothing, so it needs other evidence that the caller saw the file",
    ),
    PatchCase(name="a deletion of nothing", before={}, rows=patch("*** Delete File: {}/gone.txt"), says=("not_found",)),
    PatchCase(
        name="a move with a change",
        before={"old/name.txt": "from\nkept\n", "old/other.txt": "o\n"},
        rows=patch("*** Update File: {}/old/name.txt", "*** Move to: {}/new/name.txt", "@@", "-from", "+to"),
        after={"new/name.txt": "to\nkept\n", "old/other.txt": "o\n"},
    ),
    PatchCase(
        name="a move onto another file",
        before={"a.txt": "from\n", "b.txt": "precious\n"},
        rows=patch("*** Update File: {}/a.txt", "*** Move to: {}/b.txt", "@@", "-from", "+to"),
        says=("already_exists",),
        because=NO_OVERWRITE,
    ),
    PatchCase(
        name="an update of a missing file",
        before={},
        rows=update("nothing.txt", "@@", "-a", "+b"),
        says=("not_found", "nothing.txt"),
    ),
    PatchCase(
        name="a failure after a part that fits",
        before={},
        rows=patch("*** Add File: {}/made.txt", "+x", "*** Update File: {}/missing.txt", "@@", "-a", "+b"),
        says=("Nothing was written.",),
        because=ALL_OR_NONE,
    ),
    PatchCase(
        name="new lines without a place",
        before={"a.txt": "line one\nline two\n"},
        rows=update("a.txt", "@@", "+added"),
        says=("nothing says where", "*** End of File"),
        because="the end of the file would be a guess; `*** End of File` says it",
    ),
    PatchCase(
        name="new lines at the end",
        before={"a.txt": "line one\n"},
        rows=update("a.txt", "@@", "+added", "*** End of File"),
        after={"a.txt": "line one\nadded\n"},
    ),
    PatchCase(
        name="the class above tells equal methods apart",
        before={"s.py": SHOP},
        rows=update("s.py", "@@ class Bank:", "     def open(self):", "-        return 1", "+        return 2"),
        after={"s.py": SHOP[::-1].replace("1", "2", 1)[::-1]},
    ),
    PatchCase(
        name="class and method above",
        before={"s.py": SHOP},
        rows=update("s.py", "@@ class Shop:", "@@     def open(self):", "-        return 1", "+        return 0"),
        after={"s.py": SHOP.replace("1", "0", 1)},
    ),
    PatchCase(
        name="lines that fit twice",
        before={"s.py": SHOP},
        rows=update("s.py", "@@", "-        return 1", "+        return 2"),
        says=("lines 3, 7",),
        because=AMBIGUOUS,
    ),
    PatchCase(
        name="blanks around the outer markers",
        before={"a.txt": "one\n"},
        rows=(" *** Begin Patch ", "*** Update File: {}/a.txt", "@@", "-one", "+two", "  *** End Patch  "),
        after={"a.txt": "two\n"},
    ),
    PatchCase(
        name="a code fence around it",
        before={"a.txt": "one\n"},
        rows=("```", *update("a.txt", "@@", "-one", "+two"), "```"),
        after={"a.txt": "two\n"},
    ),
    PatchCase(
        name="a here-document around it",
        before={"a.txt": "one\n"},
        rows=("apply_patch <<'EOF'", *update("a.txt", "@@", "-one", "+two"), "EOF"),
        after={"a.txt": "two\n"},
    ),
    PatchCase(
        name="a last line without a newline",
        before={"a.txt": "first\nlast"},
        rows=update("a.txt", "@@", "-last", "+final"),
        after={"a.txt": "first\nfinal"},
        because="the file keeps its end as it was; the others add a newline that no row names",
    ),
    PatchCase(
        name="a file with CRLF",
        before={"a.txt": "one\r\ntwo\r\nthree\r\n"},
        rows=update("a.txt", "@@", " one", "-two", "+2", "+2b"),
        after={"a.txt": "one\r\n2\r\n2b\r\nthree\r\n"},
    ),
    PatchCase(
        name="a file with a byte order mark",
        before={"a.txt": "\ufeffone\ntwo\n"},
        rows=update("a.txt", "@@", "-one", "+1"),
        after={"a.txt": "\ufeff1\ntwo\n"},
    ),
    PatchCase(
        name="a CR inside of a line",
        before={"a.txt": "one\r\nhalf\rline\ntwo\r\n"},
        rows=update("a.txt", "@@", "-half", "+whole"),
        says=("half\\rline",),
        because="a CR ends lines only in a file without any LF; else it is content",
    ),
    PatchCase(
        name="straight quotes for curly ones",
        before={"a.txt": "she said “go”\n"},
        rows=update("a.txt", "@@", '-she said "go"', '+she said "stay"'),
        says=("1→she said “go”", "only looks the same"),
        because=NO_FUZZ,
    ),
    PatchCase(
        name="a hyphen for a dash",
        before={"a.txt": "one — two\n"},
        rows=update("a.txt", "@@", "-one - two", "+three"),
        says=("1→one — two", "only looks the same"),
        because=NO_FUZZ,
    ),
    PatchCase(
        name="other blanks",
        before={"a.txt": "\tkey = value\n"},
        rows=update("a.txt", "@@", "-    key = value  ", "+    key = other"),
        says=("1→\tkey = value", "differs in blanks only"),
        because=NO_FUZZ,
    ),
    PatchCase(
        name="an empty line of the file as an empty row",
        before={"a.txt": "top\n\nbottom\n"},
        rows=update("a.txt", "@@", " top", "", "-bottom", "+end"),
        after={"a.txt": "top\n\nend\n"},
    ),
    PatchCase(name="no file at all", before={}, rows=patch(), says=("patch_parse_error",)),
    PatchCase(
        name="a file without a hunk", before={"a.txt": "x\n"}, rows=update("a.txt"), says=("a hunk of this file",)
    ),
    PatchCase(
        name="an unknown marker",
        before={"a.txt": "x\n"},
        rows=patch("*** Change File: {}/a.txt", "@@", "-x", "+y"),
        says=("*** Update File:",),
    ),
    PatchCase(
        name="no end marker",
        before={"a.txt": "x\n"},
        rows=("*** Begin Patch", "*** Update File: {}/a.txt", "@@", "-x", "+y"),
        says=("*** End Patch",),
    ),
    PatchCase(
        name="a hunk header that leaves the numbers out",
        before={"a.txt": "x\n"},
        rows=("--- a/{}/a.txt", "+++ b/{}/a.txt", "@@ ... @@", "-x", "+y"),
        says=("@@ -line,count +line,count @@", "@@ ... @@"),
        because="numbers are part of that notation; the refusal names the form",
    ),
]


@requirement("files:apply_patch:peers")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_patch_does_what_is_expected_of_it(every_tool: EveryTool, case: PatchCase) -> None:
    every_tool.put(case.before)
    for name in case.reads:
        every_tool.call("read_file", path=every_tool.path(name))

    case.check(every_tool, every_tool.patch(*case.rows))


def test_what_others_do_differently_has_a_reason() -> None:
    assert [case.name for case in CASES if case.because] == [
        "a new file over an old one",
        "a deletion of a file that was not read",
        "a move onto another file",
        "a failure after a part that fits",
        "new lines without a place",
        "lines that fit twice",
        "a last line without a newline",
        "a CR inside of a line",
        "straight quotes for curly ones",
        "a hyphen for a dash",
        "other blanks",
        "a hunk header that leaves the numbers out",
    ]
