import pytest

from spec.marks import requirement
from surehold.errors import OldTextNotFound
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.quoted.near_miss import strip_line_numbers
from surehold.text.quoted.nearest import find_nearest
from surehold.text.snapshot import Snapshot

CODE = b"def one():\n\treturn compute(1)\n\n\ndef two(argument):\n\tvalue = compute(2)\n\treturn value\n"


def refused(old: str, new: str = "something else", data: bytes = CODE) -> OldTextNotFound:
    with pytest.raises(OldTextNotFound) as caught:
        SnapshotEdits((StringEdit(old=old, new=new),)).plan(Snapshot(data))
    return caught.value


def test_lines_that_differ_in_blanks_are_shown_as_they_stand() -> None:
    error = refused("def two(argument):\n    value = compute(2)\n    return value")

    assert error.details["closest"] == [{"line": 5, "text": "def two(argument):\n\tvalue = compute(2)\n\treturn value"}]
    assert "line 5 differs in blanks only" in error.message


def test_a_block_with_one_other_line_is_shown_with_how_many_differ() -> None:
    error = refused("def two(argument):\n\tvalue = compute(3)\n\treturn value")

    assert error.details["closest"] == [
        {"line": 5, "text": "def two(argument):\n\tvalue = compute(2)\n\treturn value", "differing_lines": 1}
    ]
    assert "the closest lines begin at line 5" in error.message


def test_without_any_equal_line_the_most_words_in_common_decide() -> None:
    error = refused("def two(other):")

    assert error.details["closest"][0]["line"] in (1, 5)
    assert refused("nothing of this kind anywhere").details["closest"] == []


GO = b"def go(x):\n    if x:\n\n        return run(x)\n    return None\n\n\ndef stop(x):\n    return None\n"


@requirement("text:strings:closest_whole")
@pytest.mark.parametrize(
    ("old", "line", "count", "differing"),
    [
        ("  if x:\n      return run(x)\n  return None", 2, 4, 1),  # a blank line fewer
        ("if x:\n\n\n    return run(x)\nreturn None", 2, 4, 1),  # one more
        ("def go(x):\n  if x:\n    return run(x)", 1, 4, 1),  # in the lower half
        ("  if x:\n      other()\n  return None", 2, 4, 2),
        ("def go(x):\n    return run(x)\n    return None", 1, 5, 2),  # lines of the file are missing
        ("def go(x):\n    return None\n\n\ndef stop(x):\n    return None", 1, 9, 3),
        ("def go(x):\n    if x:\n\n        return walk(x)\n    return None", 1, 5, 1),
        ("wrong first\n\n    if x:\n        return run(x)", 1, 4, 2),
    ],
)
def test_all_lines_that_the_quotation_corresponds_to_are_shown(old: str, line: int, count: int, differing: int) -> None:
    error = refused(old, data=GO)

    rows = GO.decode().split("\n")
    shown = {"line": line, "text": "\n".join(rows[line - 1 : line - 1 + count]), "differing_lines": differing}
    assert error.details["closest"][0] == shown


@requirement("text:strings:closest_whole")
def test_a_text_copied_from_the_closest_lines_replaces_all_that_was_meant() -> None:
    closest = refused("  if x:\n      return run(x)\n  return None", data=GO).details["closest"]

    (place,) = closest
    plan = SnapshotEdits((StringEdit(old=place["text"], new="    pass"),)).plan(Snapshot(GO))
    assert plan.after.data == b"def go(x):\n    pass\n\n\ndef stop(x):\n    return None\n"


def test_a_line_that_the_file_has_often_is_not_looked_for_across_others() -> None:
    data = b"open {\n  first = 1\n)\nother {\n}\n}\n"

    (place,) = refused("  open {\n  first = 1\n}", data=data).details["closest"]

    assert place == {"line": 1, "text": "open {\n  first = 1\n)", "differing_lines": 1}


def test_two_parts_of_one_place_are_shown_once() -> None:
    data = b"one = 1\ntwo = 2\nfresh = 0\nthree = 3\nfour = 4\n"

    closest = refused("one = 1\ntwo = 2\nthree = 3\nfour = 4", data=data).details["closest"]

    assert closest == [{"line": 1, "text": data.decode().rstrip("\n"), "differing_lines": 1}]


@pytest.mark.parametrize("prefix", ["5\t", "5→", "     5\t", "5: ", "5|", "5#5da3f1|", "5#5da3f1.7!|"])
def test_line_numbers_that_were_copied_are_named_as_the_cause(prefix: str) -> None:
    error = refused(f"{prefix}def two(argument):")

    assert "line numbers" in error.message
    assert error.details["closest"][0] == {"line": 5, "text": "def two(argument):"}


def test_a_text_whose_lines_are_not_all_numbered_has_no_line_numbers() -> None:
    assert strip_line_numbers("1\tone\ntwo") is None
    assert strip_line_numbers("1\tone\n2\ttwo\n") == "one\ntwo\n"
    assert strip_line_numbers("") is None


def test_an_edit_that_was_made_before_says_so() -> None:
    error = refused("compute(0)", new="compute(2)")

    assert error.details["already_applied"] is True
    assert "already" in error.message


def test_a_file_of_one_line_a_thousand_times_is_no_trap() -> None:
    data = b"same line here\n" * 100_000

    near = find_nearest(Snapshot(data), "\n".join(["same line here"] * 50 + ["another"]))

    assert len(near) == 3
    assert all(place.differing == 1 for place in near)
