"""Edits of lines that are named by a hash, as other tools of that kind test them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from dialects.every_tool import EveryTool
from dialects.peer_case import PeerCase
from spec.marks import requirement

THREE = "alpha one\nbeta two\ngamma three"
FIVE = "alpha one\nbeta two\ngamma three\ndelta four\nepsilon five\n"
CODE = "fn example() {\n    if true {\n        let x = 1;\n    }\n}\n"


def edit(op: str, line: int, *content: str) -> dict[str, Any]:
    """Name a line by its number; the anchor takes its place when the file was read."""
    return {"op": op, "hash": line, **({"content": "\n".join(content)} if content else {})}


def span(op: str, start: int, end: int, *content: str) -> dict[str, Any]:
    return {"op": op, "start_hash": start, "end_hash": end, **({"content": "\n".join(content)} if content else {})}


@dataclass(frozen=True, kw_only=True)
class LineCase(PeerCase):
    operations: tuple[dict[str, Any], ...]
    options: dict[str, Any] = field(default_factory=dict[str, Any])


def changed(name: str, text: str, after: str, *operations: dict[str, Any], because: str = "") -> LineCase:
    return LineCase(name=name, before={"f.txt": text}, after={"f.txt": after}, operations=operations, because=because)


CASES = [
    changed("replace", THREE, "alpha one\nBETA\ngamma three", edit("replace_line", 2, "BETA")),
    changed("replace by more", THREE, "alpha one\nb1\nb2\ngamma three", edit("replace_line", 2, "b1", "b2")),
    changed("replace a block", FIVE, "alpha one\nX\nepsilon five\n", span("replace_range", 2, 4, "X")),
    changed("insert after", THREE, "alpha one\nnew\nbeta two\ngamma three", edit("insert_after", 1, "new")),
    changed("insert before", THREE, "new\nalpha one\nbeta two\ngamma three", edit("insert_before", 1, "new")),
    changed("append", FIVE, FIVE + "new\n", {"op": "insert_after", "hash": "EOF", "content": "new"}),
    changed("prepend", FIVE, "new\n" + FIVE, {"op": "insert_before", "hash": "BOF", "content": "new"}),
    changed("delete", FIVE, FIVE.replace("beta two\n", ""), edit("delete_line", 2)),
    changed("delete a block", FIVE, "alpha one\nepsilon five\n", span("delete_range", 2, 4)),
    changed(
        "several at once, in any order",
        FIVE,
        "ALPHA\nbeta two\nnew\nepsilon five\n",
        span("replace_range", 3, 4, "new"),
        edit("replace_line", 1, "ALPHA"),
    ),
    changed(
        "replace a line and add below it",
        THREE,
        "alpha one\nBETA\nnew\ngamma three",
        edit("insert_after", 2, "new"),
        edit("replace_line", 2, "BETA"),
    ),
    changed(
        "delete the last line",
        THREE,
        "alpha one\nbeta two\n",
        edit("delete_line", 3),
        because="the line before keeps its own newline: only the bytes of the deleted line go",
    ),
    changed(
        "replace by nothing",
        THREE,
        "alpha one\n\ngamma three",
        {"op": "replace_line", "hash": 2, "content": ""},
        because="an empty content is an empty line; deleting has an operation of its own",
    ),
    changed(
        "a range from bottom to top",
        FIVE,
        "alpha one\nX\nepsilon five\n",
        span("replace_range", 4, 2, "X"),
        because="the contract swaps the ends and says so; `strict_order` refuses",
    ),
    LineCase(
        name="a range from bottom to top, strictly",
        before={"f.txt": FIVE},
        operations=(span("replace_range", 4, 2, "X"),),
        options={"strict_order": True},
        says=("invalid_range_order",),
    ),
    LineCase(
        name="a range of one line",
        before={"f.txt": THREE},
        operations=(span("replace_range", 2, 2, "BETA"),),
        says=("invalid_range_order", '"op": "replace_line"', '"content": "BETA"'),
        because="the contract refuses it; the refusal has the operation that is meant",
    ),
    LineCase(
        name="a hash that no line has",
        before={"f.txt": THREE},
        operations=({"op": "replace_line", "hash": "2#ffffff", "content": "x"},),
        says=("anchor_stale", "ffffff", "|beta two"),
    ),
    LineCase(
        name="one bad hash among good ones",
        before={"f.txt": THREE},
        operations=(edit("replace_line", 1, "x"), {"op": "delete_line", "hash": "ffffff"}),
        says=("Nothing was written.", "ffffff"),
    ),
    LineCase(
        name="two operations on one line",
        before={"f.txt": FIVE},
        operations=(span("replace_range", 1, 3, "x"), edit("replace_line", 2, "y")),
        says=("overlapping_operations",),
    ),
    changed(
        "the same operation twice",
        THREE,
        "alpha one\nBETA\ngamma three",
        edit("replace_line", 2, "BETA"),
        edit("replace_line", 2, "BETA"),
    ),
    LineCase(
        name="no operation",
        before={"f.txt": THREE},
        operations=(),
        says=("There is no operation to apply.",),
        because="a call without effect is a mistake that its author should see",
    ),
    LineCase(
        name="the line above repeated in an insertion",
        before={"f.txt": THREE},
        operations=(edit("insert_after", 2, "beta two", "new"),),
        says=("safety_check_failed", "repeats the line above it"),
        because="what is left out would be a guess; the refusal says which line is doubled",
    ),
    changed(
        "the sign of a diff before the text",
        THREE,
        "alpha one\n+BETA\ngamma three",
        edit("replace_line", 2, "+BETA"),
        because="a plus may be meant; it is written, with a warning",
    ),
    changed(
        "indentation left out",
        CODE,
        CODE.replace("        let x = 1;", "let x = 2;"),
        edit("replace_line", 3, "let x = 2;"),
        because="blanks may be meant; they are written as sent, with a warning",
    ),
    changed("indentation kept", CODE, CODE.replace("x = 1", "x = 2"), edit("replace_line", 3, "        let x = 2;")),
    LineCase(
        name="a brace by its hash alone",
        before={"f.txt": CODE},
        operations=({"op": "replace_line", "hash": -5, "content": "};"},),
        says=("anchor_low_entropy",),
        because="a line such as `}` is too common to be named by its content alone",
    ),
]


@requirement("anchored:operations:peers")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operations_on_lines_do_what_is_expected_of_them(every_tool: EveryTool, case: LineCase) -> None:
    every_tool.put(case.before)
    anchors = every_tool.anchors("f.txt")

    def named(value: Any) -> Any:
        if isinstance(value, int):  # a negative number: only the hash of that line
            return anchors[value] if value > 0 else anchors[-value].partition("#")[2].partition(".")[0]
        return value

    operations = [{key: named(value) for key, value in each.items()} for each in case.operations]
    answer = every_tool.edit_lines("f.txt", *operations, **case.options)

    case.check(every_tool, answer)
    if "warning" in case.because:
        assert "Warning: " in answer.text
