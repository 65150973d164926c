"""Colours, tables, times, sizes, and text that cannot attack a terminal."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.front.cli.output import (
    Output,
    TableCell,
    TableColumn,
    cut_to_width,
    display_width,
    format_age,
    format_count,
    format_size,
    output_to,
)
from surehold.text.escape import escape_editable, escape_text, reveal_lines, reveal_text, unescape_editable

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def output(*, columns: int = 0, colour: bool = False) -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(stream, colour=colour, columns=columns, now=NOW, is_terminal=bool(columns)), stream


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve 漢字 🎉", "naïve 漢字 🎉"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b31m", r"\x9b31m"),
        ("gpj.\u202eexe", r"gpj.\u202eexe"),
        ("\u2066x\u2069\u200f", r"\u2066x\u2069\u200f"),
        ("bad\udcff", r"bad\xff"),
        ("half\ud800", r"half\ud800"),
        ("tag\U000e0041", r"tag\U000e0041"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_escaped(text: str, shown: str) -> None:
    assert escape_text(text) == shown


@requirement("approval:shown:no_room")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("admin\u200b", r"admin\u200b"),
        ("soft\u00adhyphen \u3164 \u2060.", r"soft\xadhyphen \u3164 \u2060."),
        ("a\u200db\u200cc", r"a\u200db\u200cc"),
        ("\u200c", r"\u200c"),
        ("\ufe0fx", r"\ufe0fx"),
        ("a\ufe0f🙂\U000e0101", r"a\ufe0f🙂\U000e0101"),
        ("\u0645\u06cc\u200c\u200c\u062e", "\u0645\u06cc\\u200c\\u200c\u062e"),
        ("👩\u200d\u200d💻", r"👩\u200d\u200d💻"),
        ("\x1b\u200b\t", r"\x1b\u200b\t"),
    ],
)
def test_what_takes_no_room_is_shown_to_a_person_who_decides(text: str, shown: str) -> None:
    assert reveal_text(text) == shown
    assert reveal_lines(f"{text}\n") == f"{shown}\n".replace(r"\t", "\t")
    assert unescape_editable(escape_editable(text)) == text
    assert "\u200b" not in escape_editable(text)


@requirement("approval:shown:no_room")
@pytest.mark.parametrize(
    "text",
    [
        "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ☎\ufe0e",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "漢字 naïve",
    ],
)
def test_words_and_pictures_that_need_a_character_without_room_stay_readable(text: str) -> None:
    assert (reveal_text(text), reveal_lines(text), escape_editable(text)) == (text, text, text)


def test_kept_controls_stay_and_the_others_do_not() -> None:
    assert escape_text("a\tb\n\x07", keep="\t\n") == "a\tb\n\\x07"


@requirement("front:cli:safe_text")
@given(st.text(st.characters()))
def test_safe_text_is_printable_on_any_terminal(text: str) -> None:
    shown = escape_text(text)

    shown.encode("utf-8")
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in shown)


@given(st.text(), st.integers(0, 20), st.sampled_from(["start", "end"]))
def test_cut_text_always_fits(text: str, columns: int, keep: str) -> None:
    assert (
        display_width(cut_to_width(text, columns, keep="start" if keep == "start" else "end")) <= columns
        or display_width(text) == 0
    )


def test_wide_and_combining_characters_are_counted_as_a_terminal_does() -> None:
    assert [display_width(text) for text in ("abc", "漢字", "e\u0301", "ＡＢ")] == [3, 4, 1, 4]
    assert cut_to_width("漢字漢字", 5) == "漢字…"
    assert cut_to_width("src/deep/file.py", 9, keep="end") == "…/file.py"


def test_sizes_are_said_as_people_say_them() -> None:
    numbers = [0, 1023, 1024, 1536, 10_240, 1_048_000, 5 << 20, 3 << 30, 5000 << 40]

    assert [format_size(number) for number in numbers] == [
        *("0 B", "1023 B", "1.0 KB", "1.5 KB", "10 KB", "1.0 MB", "5.0 MB", "3.0 GB", "5000 TB")
    ]


def test_times_are_said_as_people_say_them() -> None:
    spans = [0, 9, 10, 59, 60, 3599, 3600, 86_399, 86_400, 3 * 86_400]

    assert [format_age(NOW - timedelta(seconds=span), NOW) for span in spans] == [
        *("just now", "just now", "10 s ago", "59 s ago", "1 min ago", "59 min ago"),
        *("1 h ago", "23 h ago", "1 day ago", "3 days ago"),
    ]
    assert format_age(NOW - timedelta(days=45), NOW) == "2026-01-15"
    assert format_age(NOW + timedelta(days=2), NOW) == "2026-03-03"


def test_a_recorded_time_is_exact_in_a_pipe_and_relative_on_a_terminal() -> None:
    assert output()[0].format_time("2026-03-01T11:00:00+00:00") == "2026-03-01T11:00:00Z"
    assert output(columns=80)[0].format_time("2026-03-01T11:00:00+00:00") == "1 h ago"


def test_plural_says_one_and_many() -> None:
    assert [format_count(n, "entry", "entries") for n in (0, 1, 2000)] == ["0 entries", "1 entry", "2,000 entries"]


COLUMNS = (
    TableColumn(title="id"),
    TableColumn(title="path", least=12, keep="end"),
    TableColumn(title="size", align="right", rank=1),
    TableColumn(title="note"),
)


def rows(*paths: str) -> list[list[TableCell]]:
    return [[("x1", "plain"), (path, "plain"), ("5 B", "plain"), ("", "plain")] for path in paths]


def test_a_table_is_aligned_also_with_wide_characters_and_leaves_out_empty_columns() -> None:
    out, stream = output()

    out.print_table(COLUMNS, rows("漢字.txt", "a.txt"))

    assert stream.getvalue() == "ID  PATH      SIZE\nx1  漢字.txt   5 B\nx1  a.txt      5 B\n"


@pytest.mark.parametrize("columns", [10, 20, 24, 40])
def test_a_table_fits_the_terminal(columns: int) -> None:
    out, stream = output(columns=columns)

    out.print_table(COLUMNS, rows("src/a/rather/long/path/漢字/file.py", "b"))

    assert all(display_width(line) <= columns for line in stream.getvalue().splitlines())
    assert "file.py" in stream.getvalue() or columns < 20


def test_a_cell_cannot_break_out_of_its_table() -> None:
    out, stream = output()

    out.print_table(COLUMNS, rows("a\nb\x1b[2J"))

    assert stream.getvalue().splitlines()[1].startswith(r"x1  a\nb\x1b[2J")


def test_colour_is_only_added_where_it_is_wanted() -> None:
    assert output()[0].paint("x", "red") == "x"
    assert output(colour=True)[0].paint("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
    assert output(colour=True)[0].paint("x", "plain") == "x"


@pytest.mark.parametrize(
    ("no_color", "environment", "wanted"),
    [
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_flags_and_variables_decide_about_colour(
    no_color: bool, environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert output_to(io.StringIO(), no_color=no_color).colour is wanted


def test_a_json_document_is_ascii_whatever_is_in_it() -> None:
    out, stream = output()

    out.print_json({"name": "ü\udcff\u202e"})

    assert stream.getvalue() == '{\n  "name": "\\u00fc\\udcff\\u202e"\n}\n'
