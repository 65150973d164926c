import pytest

from spec.marks import requirement
from surehold.errors import MultipleMatches, OldTextNotFound
from surehold.text.encoding import encoding_named
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.snapshot import Snapshot

CODE = b"def one():\n\treturn compute(1)\n\n\ndef two(argument):\n\tvalue = compute(2)\n\treturn value\n"


def refused(old: str, new: str = "something else", data: bytes = CODE, encoding: str | None = None) -> OldTextNotFound:
    snapshot = Snapshot(data, encoding=encoding_named(encoding) if encoding else None)
    with pytest.raises(OldTextNotFound) as caught:
        StyledEdit(old=old, new=new).plan(snapshot)
    return caught.value


@requirement("claude:edit:not_found", "claude:edit:no_similarity")
def test_spaces_for_tabs_are_named_with_the_blanks_made_visible() -> None:
    error = refused("def two(argument):\n    value = compute(2)")

    assert error.reason == "blanks"
    assert error.message == (
        "`old_string` is not in the file: line 5 differs in blanks only: the file has tabs where you sent spaces."
    )
    assert error.details["first_difference"] == {
        "line": 6,
        "in_file": "\\tvalue = compute(2)",
        "in_old_string": "····value = compute(2)",
    }
    assert error.details["closest"] == [{"line": 5, "text": "def two(argument):\n\tvalue = compute(2)"}]


@requirement("claude:edit:not_found")
@pytest.mark.parametrize("prefix", ["5→", "     5\t", "5\t", "5#5da3f1|"])
def test_copied_line_numbers_are_named(prefix: str) -> None:
    error = refused(f"{prefix}def two(argument):")

    assert (error.reason, error.action) == ("line_numbers_copied", "Leave the line numbers and the arrow out.")


@requirement("claude:edit:not_found")
def test_an_edit_that_was_made_before_is_named() -> None:
    error = refused("return compute(0)", new="return compute(1)")

    assert (error.reason, error.details["already_applied"]) == ("already_applied", True)


@requirement("claude:edit:not_found")
def test_a_missing_final_line_break_is_named() -> None:
    error = refused("last line\n", data=b"first\r\nlast line")

    assert "the file's last line has no line break" in error.message
    assert refused("last line\n\n", data=b"first\nlast line\n").reason == "line_breaks"
    assert refused("\nlast line", data=b"the last line").reason == "no_match"


@requirement("claude:edit:not_found")
@pytest.mark.parametrize(
    ("data", "old", "names"),
    [
        ("cafe\u0301 = 1\n", "café = 1", "the file has U+0301 where you sent U+00E9"),
        ("café = 1\n", "cafe\u0301 = 1", "the file has U+00E9 where you sent U+0301"),
        ("a\u00a0= 1\n", "a = 1", "the file has U+00A0"),
        ("a \u2013 b\n", "a - b", "the file has U+2013"),
        ("a\u200bb = 1\n", "ab = 1", "the file has U+200B"),
        ("a = 1\n", "a\u202f= 1", "you sent U+202F"),
    ],
)
def test_look_alikes_are_named_by_code_point(data: str, old: str, names: str) -> None:
    error = refused(old, data=data.encode())

    assert error.reason == "look_alikes"
    assert names in error.message


@requirement("claude:edit:not_found")
def test_escapes_that_should_be_line_breaks_are_named_and_the_other_way_round() -> None:
    assert refused("def one():\\n\\treturn").reason == "escaped"
    assert refused("print('a\nb')", data=b"print('a\\nb')\n").reason == "unescaped"


@requirement("claude:edit:not_found", "claude:edit:no_similarity")
def test_a_line_that_drifted_is_shown_and_never_replaced() -> None:
    error = refused("func f() {\n\ty := 99\n}", data=b"func f() {\n\ty := 2\n}\n")

    assert error.message == "`old_string` is not in the file: the closest lines begin at line 1."
    assert error.details["first_difference"] == {"line": 2, "in_file": "\\ty := 2", "in_old_string": "\\ty := 99"}


def test_characters_that_the_encoding_cannot_hold_are_named() -> None:
    error = refused("naïve ✓ text", data="naïve text\n".encode("latin-1"), encoding="latin-1")

    assert "cannot hold U+2713" in error.message


def test_a_text_of_blanks_that_is_not_there_has_no_closest_lines() -> None:
    error = refused("   \n   ", data=b"a\nb\n")

    assert error.details["closest"] == []


@requirement("claude:edit:not_unique")
def test_several_places_are_listed_with_their_lines_and_what_stands_around_them() -> None:
    with pytest.raises(MultipleMatches) as caught:
        StyledEdit(old="compute(", new="x").plan(Snapshot(CODE))

    assert caught.value.details["count"] == 2
    assert caught.value.details["lines"] == [2, 6]
    assert caught.value.details["places"] == [
        {"line": 2, "context": "1→def one():\n2→\treturn compute(1)\n3→"},
        {"line": 6, "context": "5→def two(argument):\n6→\tvalue = compute(2)\n7→\treturn value"},
    ]


@requirement("claude:edit:not_unique")
def test_places_in_one_long_line_are_shown_as_windows() -> None:
    with pytest.raises(MultipleMatches) as caught:
        StyledEdit(old="needle", new="x").plan(Snapshot(b"a" * 500 + b"needle" + b"b" * 500 + b"needle" + b"c" * 500))

    first, second = caught.value.details["places"]
    assert "needlebbb" in first["context"]
    assert "needleccc" in second["context"]
    assert len(first["context"]) < 200


def test_a_large_file_is_explained_within_bounds() -> None:
    data = b"".join(b"row %d of many\n" % number for number in range(60_000))

    error = refused("row 59999  of many", data=data)

    assert error.details["closest"][0]["line"] == 60_000


@requirement("claude:edit:not_found")
def test_a_quotation_of_very_many_words_is_answered() -> None:
    lines = [f"def {chr(97 + number % 26)}{number}(argument, other):" for number in range(20_000)]
    words = " ".join(f"{chr(97 + number % 26)}x{number}y" for number in range(20_000))

    error = refused(words, data="\n".join(lines).encode())

    assert (error.reason, error.details["closest"]) == ("no_match", [])


@requirement("claude:edit:not_found")
def test_the_line_with_the_most_words_in_common_is_named() -> None:
    error = refused("    the_value = compute(2, value)\n    nothing")

    assert error.message == "`old_string` is not in the file: the closest lines begin at line 6."


@requirement("claude:edit:not_found")
@pytest.mark.parametrize(("line", "told"), [(b"x" * 9_000 + b"\n", 1_864), (b"x\n", 200_000)])
def test_how_much_of_a_large_file_was_compared_is_said(line: bytes, told: int) -> None:
    error = refused("nothing like it", data=line * (told + 1) + b"nothing like this\n")

    assert error.message == f"`old_string` is not in the file: nothing like it is among its first {told:,} lines."


@requirement("claude:edit:not_found")
def test_a_long_text_that_differs_in_a_word_is_not_said_to_differ_in_blanks() -> None:
    lines = [f"value_{number} = compute({number}, width={number * 7})" for number in range(400)]
    sent = [*lines[:390], lines[390].replace("compute", "computed"), *lines[391:]]

    error = refused("\n".join(sent), data=("\n".join(lines) + "\n").encode())

    assert error.reason == "no_match"
    assert "the closest lines begin at line 1" in error.message
