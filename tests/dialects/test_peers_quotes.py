"""Edits that quote a text, as other exact-edit tools test them."""

from dataclasses import dataclass

import pytest

from dialects.every_tool import EveryTool
from dialects.peer_case import ALL_OR_NONE, AMBIGUOUS, NO_FUZZ, PeerCase
from spec.marks import requirement

TABBED = "func main() {\n\tif ok {\n\t\told()\n\t}\n}\n"


@dataclass(frozen=True, kw_only=True)
class QuoteCase(PeerCase):
    old: str
    new: str
    tools: tuple[str, ...] = ("Edit", "edit_file")


def changed(old: str, new: str, name: str, before: str, after: str, *says: str, because: str = "") -> QuoteCase:
    return QuoteCase(
        name=name, before={"f.txt": before}, old=old, new=new, after={"f.txt": after}, says=says, because=because
    )


def refused(old: str, new: str, name: str, before: str, *says: str, because: str = "") -> QuoteCase:
    return QuoteCase(name=name, before={"f.txt": before}, old=old, new=new, says=says, because=because)


CASES = [
    changed("blue", "green", "a word", "red blue\n", "red green\n"),
    changed("two\nthree", "2\n3\n4", "several lines", "one\ntwo\nthree\nfour\n", "one\n2\n3\n4\nfour\n"),
    changed("two\n", "", "a deletion", "one\ntwo\nthree\n", "one\nthree\n"),
    changed("price", r"$1 \1 \n & $&", "signs that mean something elsewhere", "price\n", "$1 \\1 \\n & $&\n"),
    changed("[a-z]+(x)?", "y", "an expression taken literally", "[a-z]+(x)?\n", "y\n"),
    changed("grün", "größer", "other scripts", "日本語 grün 🙂\n", "日本語 größer 🙂\n"),
    changed("last", "final", "no newline at the end", "first\nlast", "first\nfinal"),
    changed("one\ntwo", "1\n2", "a file with CRLF", "one\r\ntwo\r\n", "1\r\n2\r\n"),
    changed("one\r\ntwo", "one\n2", "CRLF quoted, LF sent", "one\r\ntwo\r\n", "one\r\n2\r\n"),
    changed("one", "1", "a byte order mark", "\ufeffone\n", "\ufeff1\n"),
    refused("four", "4", "a text that is not there", "one\ntwo\n", "Nothing was written."),
    refused("same", "same", "nothing to change", "same\n", "the same"),
    refused("", "x", "an empty quotation", "some text\n", "empty"),
    refused("line1", "new", "two places", "line1\nline2\nline1\n", "2 times", because=AMBIGUOUS),
    refused("aa", "b", "places that overlap", "aaa\n", "2 times"),
    refused(
        "    if ok {\n        old()",
        "x",
        "spaces for tabs",
        TABBED,
        "the file has tabs where you sent spaces",
        "2→\tif ok {",
        because=NO_FUZZ,
    ),
    refused("if ok {\n\told()", "x", "one level less", TABBED, "2→\tif ok {", "3→\t\told()", because=NO_FUZZ),
    refused(
        "line1\nline2",
        "x",
        "no indentation",
        "    line1\n    line2\n",
        "differs in blanks only",
        "1→    line1",
        because=NO_FUZZ,
    ),
    refused(
        "\n  line1\n  line2\n", "x", "a blank line first", "    line1\n    line2\n", "1→    line1", because=NO_FUZZ
    ),
    refused("key = 1 \n", "x\n", "blanks at the end", "key = 1\nrest\n", "differs in blanks only", because=NO_FUZZ),
    refused(
        "def f():\n...\n    return 2",
        "x",
        "an ellipsis for lines left out",
        "def f():\n    a = 1\n    b = 2\n    return 2\n",
        "1→def f():",
        because="the dots are not in the file; the refusal shows what is",
    ),
    refused("1→one\n2→two", "x", "line numbers that were copied", "one\ntwo\n", "Leave the line numbers"),
    refused(r"one\ntwo", "x", "escapes for line breaks", "one\ntwo\n", "Send real line breaks"),
    refused("total = 3", "total = 4", "an edit that was made before", "total = 4\n", "already there"),
    QuoteCase(
        name="straight quotes for curly ones",
        before={"f.txt": "she said “go”\n"},
        old='said "go"',
        new='said "stay"',
        after={"f.txt": "she said “stay”\n"},
        tools=("Edit",),
    ),
    QuoteCase(
        name="a new file by an empty quotation",
        before={},
        old="",
        new="hello",
        says=("Nothing was written.",),
        tools=("Edit",),
        because="Write makes new files; an edit changes one that is there",
    ),
]


@requirement("text:strings:peers")
@pytest.mark.parametrize(
    ("tool", "case"), [(tool, case) for case in CASES for tool in case.tools], ids=lambda one: getattr(one, "name", one)
)
def test_a_quoted_text_is_replaced_exactly_or_the_refusal_says_why(
    every_tool: EveryTool, tool: str, case: QuoteCase
) -> None:
    every_tool.put(case.before)

    case.check(every_tool, every_tool.quote_edit(tool, "f.txt", case.old, case.new))


@dataclass(frozen=True, kw_only=True)
class BatchCase(PeerCase):
    edits: tuple[tuple[str, str], ...]


BATCHES = [
    BatchCase(
        name="one after the other",
        before={"f.txt": "one\ntwo\nthree\n"},
        edits=(("one", "1"), ("1\ntwo", "1\n2")),
        after={"f.txt": "1\n2\nthree\n"},
    ),
    BatchCase(
        name="one of three is missing",
        before={"f.txt": "one\ntwo\nthree\n"},
        edits=(("one", "1"), ("nine", "9"), ("three", "3")),
        says=("Edit 1: String not found: nine",),
        because=ALL_OR_NONE,
    ),
    BatchCase(
        name="no file",
        before={},
        edits=(("", "text"), ("text", "more")),
        says=("File not found",),
        because="write_text_file makes new files; an edit changes one that is there",
    ),
    BatchCase(
        name="an edit makes the next one ambiguous",
        before={"f.txt": "a\nb\n"},
        edits=(("a", "b"), ("b", "c")),
        says=("Edit 1: String appears 2 times: b",),
    ),
    BatchCase(name="no edits", before={"f.txt": "a\n"}, edits=(), says=("Edits array cannot be empty",)),
]


@requirement("text:strings:peers")
@pytest.mark.parametrize("case", BATCHES, ids=lambda case: case.name)
def test_edits_of_one_call_are_made_in_order_and_all_of_them(every_tool: EveryTool, case: BatchCase) -> None:
    every_tool.put(case.before)
    edits = [{"old_string": old, "new_string": new} for old, new in case.edits]

    case.check(every_tool, every_tool.call("multi_edit_text_file", path=every_tool.path("f.txt"), edits=edits))
