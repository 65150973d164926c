"""What is shown of characters that steer a terminal, reorder a line or take no room, alone and beside others."""

from collections.abc import Iterator
from itertools import product
from types import MappingProxyType

import pytest

from surehold.errors import InvalidArgument
from surehold.text.escape import (
    encode_json,
    ensure_utf8,
    escape_data,
    escape_editable,
    escape_lines,
    escape_text,
    has_surrogates,
    lone_surrogate_error,
    preview_text,
    quote_line,
    reveal_lines,
    reveal_text,
    unescape_editable,
    without_surrogates,
)
from text.recorded_answers import check_answers

SIGNS = (
    *"a\t\n\r\x00\x1b\x7f\x80\x9f\u00a0é中😀",
    *"\u00ad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u2028\u202e\u2060\u2066\u3164\ufe0e\ufe0f\ufeff\ufff9",
    *"\U0001bca0\U0001d173\U000e0001\U000e0041\U000e0100\ud800\udc7f\udc80\udcff\udd00",
)
AROUND = (
    ("", ""),
    ("a", "b"),
    ("م", "ن"),
    ("م", "b"),
    ("a", "ن"),
    ("क", "ष"),
    ("👩", "👧"),
    ("👩\ufe0f", "👧"),
    ("❤", "🔥"),
    ("a\ufe0f", "👧"),
    ("1", "\u20e3"),
    ("1", "a"),
    ("a", "\u20e3"),
    ("👩", "b"),
    ("‼", ""),
    ("↔", ""),
    ("", "👧"),
    ("👩", ""),
    ("👩", "\u200b"),
    ("\u200b", "😀"),
)


def shown_characters() -> Iterator[tuple[str, str]]:
    for sign, (before, after) in product(SIGNS, AROUND):
        text = before + sign + after
        shown = escape_text(text), reveal_text(text), reveal_text(text, keep="\t\u200b"), escape_editable(text)
        yield ascii(text), ascii(shown)
        assert unescape_editable(shown[3]) == text


def test_every_special_character_among_others() -> None:
    check_answers("characters", shown_characters())


@pytest.mark.parametrize(
    ("text", "lines", "revealed"),
    [
        ("a\tb\nc", "a\tb\nc", "a\tb\nc"),
        ("a\r\nb\r", "a\r\nb\r", "a\r\nb\r"),
        ("a\rb\n", "a\\rb\n", "a\\rb\n"),
        ("\x07\n\x1b\tx", "\\x07\n\\x1b\tx", "\\x07\n\\x1b\tx"),
        ("é\u200bx\r\n\té", "é\u200bx\r\n\té", "é\\u200bx\r\n\té"),
        ("é\u202e\n", "é\\u202e\n", "é\\u202e\n"),
        ("", "", ""),
    ],
)
def test_line_breaks_and_tabs_stay_in_lines(text: str, lines: str, revealed: str) -> None:
    assert (escape_lines(text), reveal_lines(text)) == (lines, revealed)


@pytest.mark.parametrize(("chars", "shown"), [(5, "abcde"), (4, "abc…"), (6, "abcde"), (1, "…")])
def test_a_preview_ends_with_an_ellipsis_where_the_text_goes_on(chars: int, shown: str) -> None:
    assert preview_text("abcde", chars) == shown


def test_a_quoted_line_is_cut_and_escaped_and_keeps_its_tabs() -> None:
    assert quote_line("\ta\x07bcdef", 5) == "`\ta\\x07b…`"


def test_controls_that_may_stay_are_named() -> None:
    assert escape_text("a\tb\n", keep="\t") == "a\tb\\n"
    assert reveal_text("a\tb\n", keep="\n") == "a\\tb\n"


@pytest.mark.parametrize(
    "text", ["⟦U+200B⟧", "⟦U+10FFFF⟧", "⟦U+27E6⟧U+200B⟧", "⟦U+12⟧", "a⟦b", "x\ty\nz", "\u200b⟦U+200B⟧\x07"]
)
def test_what_looks_like_an_escape_comes_back_as_it_was(text: str) -> None:
    assert unescape_editable(escape_editable(text)) == text


def test_an_editable_text_shows_what_it_escapes() -> None:
    assert escape_editable("a\u200b\x07\n\té") == "a⟦U+200B⟧⟦U+0007⟧\n\té"
    assert escape_editable("⟦U+0041⟧") == "⟦U+27E6⟧U+0041⟧"
    assert escape_editable("plain\n\ttext") == "plain\n\ttext"
    assert unescape_editable("⟦U+110000⟧ ⟦U+0041⟧") == "⟦U+110000⟧ A"


def test_halves_of_characters_are_found_and_mended_wherever_they_are() -> None:
    data = MappingProxyType({"a\ud800": ["x", ("y\udcff",), 1, None], "b": {"c": "\ud83d\ude00"}})

    assert [has_surrogates(one) for one in ("a", "é", "\ud800", data, {"a": "é"}, 3)] == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert ensure_utf8(data) == {"a\\ud800": ["x", ["y\\xff"], 1, None], "b": {"c": "\\ud83d\\ude00"}}
    assert without_surrogates(data) == {"a\ufffd": ["x", ["y\ufffd"], 1, None], "b": {"c": "\ufffd\ufffd"}}
    plain = {"a": ("é\u202e",)}
    assert ensure_utf8(plain) is plain
    assert ensure_utf8("é\ud800") == "é\\ud800"


def test_json_escapes_early_controls_itself() -> None:
    assert escape_data("\x7f\x07") == "\\x7f\x07"
    assert escape_data({"k\u202e": ["\x1b\x9b", ("é",)], "n": 1}) == {"k\\u202e": ["\x1b\\x9b", ["é"]], "n": 1}


def test_plain_data_becomes_json_with_every_character_as_it_is() -> None:
    assert encode_json({"a": MappingProxyType({"é": 1}), "b": ValueError("x")}) == '{"a": {"é": 1}, "b": "x"}'


def test_a_lone_surrogate_is_refused_with_the_way_out() -> None:
    error = lone_surrogate_error()

    assert isinstance(error, InvalidArgument)
    assert error.reason == "lone_surrogate"
    assert error.action is not None
