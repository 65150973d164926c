import json
from typing import Any, cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.errors import CellAmbiguous, InvalidArgument, NotebookInvalid, NotEncodable
from surehold.text.notebook.edit import CellKind, EditMode
from surehold.text.notebook.model import read_notebook
from surehold.text.snapshot import Snapshot
from text.notebook_scenes import (
    BACKWARDS,
    COLAB,
    JUPYTER,
    OLD_COLAB,
    Hand,
    Json,
    changed,
    code,
    edit,
    edited,
    printed,
    prose,
)

HAND = Hand()
OUTPUT = printed("one\ntwo\n")
FRESH = "abcdef01"
SOURCES = st.text(st.sampled_from("ab =\n\"'\\/\t\r<é→😀\x7f\u2028\x1b"), max_size=12)
HANDS = st.builds(
    Hand,
    indent=st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    ascii_only=st.booleans(),
    listed=st.booleans(),
    crlf=st.booleans(),
    tight=st.booleans(),
    mark=st.booleans(),
    final_newline=st.booleans(),
    order=st.sampled_from([JUPYTER, COLAB, OLD_COLAB, BACKWARDS]),
    minor=st.sampled_from([2, 4, 5]),
)


@st.composite
def cells_of(draw: st.DrawFn, *, smallest: int = 0) -> list[Json]:
    """Some cells, of which the first two show every key and a character beyond ASCII."""
    shown = [
        code(draw(SOURCES), count=draw(st.none() | st.integers(1, 9)), outputs=[OUTPUT]),
        prose("é " + draw(SOURCES)),
    ]
    more = st.builds(code, SOURCES) | st.builds(prose, SOURCES, kind=st.sampled_from(["markdown", "raw"]))
    return [*shown, *draw(st.lists(more, max_size=3))] if smallest or draw(st.booleans()) else []


def with_ids(hand: Hand, cells: list[Json]) -> list[Json]:
    return [{**one, "id": f"id{n}"} for n, one in enumerate(cells)] if hand.minor >= 5 else cells


def name_at(hand: Hand, index: int) -> str:
    return f"id{index}" if hand.minor >= 5 else f"cell-{index}"


@requirement("claude:notebook:replace", "claude:notebook:untouched")
@given(HANDS, cells_of(smallest=1), st.data(), SOURCES)
def test_a_replaced_cell_looks_as_if_the_same_program_had_written_it(
    hand: Hand, cells: list[Json], data: st.DataObject, source: str
) -> None:
    cells = with_ids(hand, cells)
    index = data.draw(st.integers(0, len(cells) - 1))
    assume(source != cells[index]["source"])
    cleared: Json = {"outputs": [], "execution_count": None} if cells[index]["cell_type"] == "code" else {}
    expected = [*cells[:index], {**cells[index], "source": source, **cleared}, *cells[index + 1 :]]

    after = edited(hand.written(cells), edit("replace", name_at(hand, index), source))

    assert after == hand.written(expected)


@requirement("claude:notebook:insert", "claude:notebook:ids", "claude:notebook:untouched")
@given(HANDS, cells_of(), st.data(), SOURCES, st.sampled_from(["code", "markdown"]))
@example(Hand(indent=None), [], None, "a\nb", "code")
def test_an_inserted_cell_looks_as_if_the_same_program_had_written_it(
    hand: Hand, cells: list[Json], data: st.DataObject | None, source: str, kind: CellKind
) -> None:
    assume(
        cells or (source.isascii() and "\x7f" not in source)
    )  # an empty notebook does not show how it would spell the rest
    assume(cells or hand.order == JUPYTER)
    hand = hand if cells or hand.listed else Hand(indent=hand.indent)
    cells = with_ids(hand, cells)
    after_index = data.draw(st.integers(-1, len(cells) - 1)) if data else -1
    name = name_at(hand, after_index) if after_index >= 0 else ""
    new = code(source) if kind == "code" else prose(source)
    new |= {"id": FRESH} if hand.minor >= 5 else {}
    expected = [*cells[: after_index + 1], new, *cells[after_index + 1 :]]

    after = edited(hand.written(cells), edit("insert", name, source, kind=kind))

    assert after == hand.written(expected)


@requirement("claude:notebook:delete", "claude:notebook:untouched")
@given(HANDS, cells_of(smallest=1), st.data())
def test_a_deleted_cell_leaves_no_trace(hand: Hand, cells: list[Json], data: st.DataObject) -> None:
    cells = with_ids(hand, cells[: data.draw(st.integers(1, len(cells)))])
    index = data.draw(st.integers(0, len(cells) - 1))

    after = edited(hand.written(cells), edit("delete", name_at(hand, index)))

    assert after == hand.written([*cells[:index], *cells[index + 1 :]])


@given(HANDS, cells_of(smallest=1), st.data())
def test_the_same_source_changes_no_byte(hand: Hand, cells: list[Json], data: st.DataObject) -> None:
    cells = with_ids(hand, cells)
    index = data.draw(st.integers(0, len(cells) - 1))
    before = Snapshot(hand.written(cells))

    plan = edit("replace", name_at(hand, index), cells[index]["source"]).plan(before)

    assert not plan.spans
    assert plan.after.data == before.data


@given(HANDS.filter(lambda hand: hand.order == JUPYTER), cells_of(smallest=1), st.data(), SOURCES)
def test_a_cell_that_becomes_another_type_looks_as_if_it_always_was(
    hand: Hand, cells: list[Json], data: st.DataObject, source: str
) -> None:
    cells = with_ids(hand, cells)
    index = data.draw(st.integers(0, len(cells) - 1))
    kind: CellKind = data.draw(
        st.sampled_from([k for k in ("code", "markdown", "raw") if k != cells[index]["cell_type"]])
    )
    kept = {key: value for key, value in cells[index].items() if key not in ("outputs", "execution_count")}
    added: Json = {"outputs": [], "execution_count": None} if kind == "code" else {}
    expected = [*cells[:index], {**kept, "cell_type": kind, "source": source, **added}, *cells[index + 1 :]]

    after = edited(hand.written(cells), edit("replace", name_at(hand, index), source, kind=kind))

    assert after == hand.written(expected)


# Files that no program writes, but people and merges leave.
BLANK = st.text(st.sampled_from(" \t\n\r"), max_size=3)


def scrawled(value: Any, draw: st.DrawFn) -> str:
    """Write JSON with any blanks and any escapes."""
    blank = lambda: draw(BLANK)  # noqa: E731 - said five times below
    if isinstance(value, dict):
        pairs = cast("Json", value).items()
        rows = [f"{blank()}{scrawled(k, draw)}{blank()}:{blank()}{scrawled(v, draw)}{blank()}" for k, v in pairs]
        return "{" + (",".join(rows) or blank()) + "}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return "[" + (",".join(f"{blank()}{scrawled(one, draw)}{blank()}" for one in items) or blank()) + "]"
    if isinstance(value, str):
        return '"' + "".join(draw(st.sampled_from(_spellings(sign))) for sign in value) + '"'
    return json.dumps(value)


def _spellings(sign: str) -> list[str]:
    plain = json.dumps(sign, ensure_ascii=False)[1:-1]
    return [plain, json.dumps(sign)[1:-1], *([f"\\u{ord(sign):04X}"] if ord(sign) < 0x10000 else [])]


@st.composite
def scrawls(draw: st.DrawFn) -> tuple[bytes, list[Json]]:
    cells = with_ids(HAND, draw(cells_of(smallest=1)))
    cells = [Hand(listed=draw(st.booleans()), order=tuple(draw(st.permutations(JUPYTER)))).cell(one) for one in cells]
    text = scrawled({"nbformat": 4, "cells": cells, "nbformat_minor": 5, "metadata": {}}, draw)
    return (draw(BLANK) + text + draw(BLANK)).encode(), cells


@requirement("claude:notebook:untouched")
@given(
    scrawls(),
    st.data(),
    SOURCES,
    st.sampled_from(["replace", "insert", "delete"]),
    st.none() | st.sampled_from(["code", "raw"]),
)
def test_in_any_file_all_other_cells_stay_as_they_are(
    scrawl: tuple[bytes, list[Json]], data: st.DataObject, source: str, mode: EditMode, kind: CellKind | None
) -> None:
    before, cells = scrawl
    index = data.draw(st.integers(0, len(cells) - 1))

    after = edited(before, edit(mode, f"id{index}", source, kind=kind))

    old, new = json.loads(before)["cells"], json.loads(after)["cells"]
    assert json.loads(after) | {"cells": 0} == json.loads(before) | {"cells": 0}
    kept = {one["id"]: one for one in new}
    for one in old:
        if one["id"] != f"id{index}" or mode == "insert":
            assert kept[one["id"]] == one
    assert len(new) == len(old) + {"replace": 0, "insert": 1, "delete": -1}[mode]
    assert _texts(before, but=None if mode == "insert" else index) <= _texts(after, but=None)
    if mode != "delete":
        written = kept[f"id{index}" if mode == "replace" else FRESH]
        assert "".join(written["source"]) == source
        assert written["cell_type"] == (kind or ("code" if mode == "insert" else cells[index]["cell_type"]))


def _texts(data: bytes, *, but: int | None) -> set[str]:
    notebook = read_notebook(data)
    return {notebook.text[one.place.start : one.place.end] for one in notebook.cells if one.index != but}


# What the properties cannot say.
def test_unchanged_lines_keep_their_own_spelling() -> None:
    row = b'"x \\u003c \\/ \\u00E9\\n"'
    data = HAND.written([code("A\nB", "x")]).replace(b'"A\\n"', row)

    after = edited(data, edit("replace", "x", "x < / é\nnew\nB"))

    assert after == data.replace(row + b",", row + b',\n    "new\\n",')


@pytest.mark.parametrize("listed", [True, False])
def test_signs_that_a_program_escapes_without_need_are_escaped_in_new_text(listed: bool) -> None:
    hand = Hand(listed=listed)

    def escaped(data: bytes) -> bytes:
        return data.replace(b"<", b"\\u003c").replace(b"&", b"\\u0026").replace(b"/", b"\\/")

    data = escaped(hand.written([code("a < b & c / d", "x"), code("", "y")]))

    after = edited(data, edit("replace", "y", "<b>&/'</b>"))

    assert after == escaped(hand.written([code("a < b & c / d", "x"), code("<b>&/'</b>", "y")]))


def test_a_backslash_before_a_u_is_no_escape() -> None:
    data = HAND.written([code('print("\\u00e9")', "x"), code("", "y")])

    assert "é".encode() in edited(data, edit("replace", "y", "é"))


def test_escapes_in_an_output_show_how_new_text_is_spelled() -> None:
    data = Hand(ascii_only=True).written([code("a", "x", outputs=[printed("é")]), code("b", "y")])

    assert b'"\\u2192 \\ud83d\\ude00"' in edited(data, edit("replace", "y", "→ 😀"))


@requirement("claude:notebook:replace")
def test_outputs_go_only_when_the_source_changed() -> None:
    data = HAND.written([code("a", "x", count=3, outputs=[OUTPUT])])

    same, other = changed(data, edit("replace", "x", "a")), changed(data, edit("replace", "x", "b"))

    assert (same.cleared, same.spans) == (False, ())
    assert other.cleared
    assert edited(data, edit("replace", "x", "b")) == HAND.written([code("b", "x")])


def test_attachments_and_metadata_survive_a_change_of_type_and_back() -> None:
    image = {"a.png": {"image/png": "aGk="}}
    first = HAND.written([prose("![a](attachment:a.png)", "m", attachments=image) | {"metadata": {"tags": ["t"]}}])

    as_code = edited(first, edit("replace", "m", "x = 1", kind="code"))
    back = edited(as_code, edit("replace", "m", "![a](attachment:a.png)", kind="markdown"))

    assert json.loads(as_code)["cells"][0] == {
        "attachments": image,
        "cell_type": "code",
        "execution_count": None,
        "id": "m",
        "metadata": {"tags": ["t"]},
        "outputs": [],
        "source": ["x = 1"],
    }
    assert "attachments" in changed(first, edit("replace", "m", "x = 1", kind="code")).notices[0]
    assert back == first


def test_a_code_cell_that_lacks_a_part_gets_it() -> None:
    cell: Json = {"cell_type": "code", "id": "x", "metadata": {}, "source": "a"}

    assert edited(HAND.written([cell]), edit("replace", "x", "b")) == HAND.written([code("b", "x")])


@requirement("claude:notebook:insert")
def test_without_a_cell_an_insert_goes_to_the_start_and_says_so() -> None:
    change = changed(HAND.written([code("a", "x")]), edit("insert", source="new"))

    assert change.index == 0
    assert "start of the notebook" in change.notices[0]
    assert changed(HAND.written([]), edit("insert", source="new")).notices == ()


@pytest.mark.parametrize(
    ("position", "name", "index"),
    [("before", "y", 1), ("after", "y", 2), ("start", "", 0), ("end", "", 3), (None, "y", 2)],
)
def test_a_position_says_where_an_insert_goes(position: Any, name: str, index: int) -> None:
    data = HAND.written([code(one, one) for one in "xyz"])

    change = changed(data, edit("insert", name, "new", position=position))

    assert (change.index, change.notices) == (index, ())
    assert json.loads(edited(data, edit("insert", name, "new", position=position)))["cells"][index]["source"] == ["new"]


@pytest.mark.parametrize(
    ("mode", "name", "position"),
    [
        ("replace", "", None),
        ("delete", "", None),
        ("replace", "x", "after"),
        ("delete", "x", "end"),
        ("insert", "", "after"),
        ("insert", "", "before"),
        ("insert", "x", "start"),
        ("insert", "x", "end"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(mode: EditMode, name: str, position: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        edit(mode, name, "s", position=position)

    assert refused.value.message.endswith(".")


def test_half_of_a_character_is_refused() -> None:
    with pytest.raises(NotEncodable):
        edit("replace", "x", "\ud83d")


@requirement("claude:notebook:ids")
def test_a_new_id_is_free_and_the_same_request_gives_the_same_bytes() -> None:
    data = HAND.written([code("a", FRESH), code("b", "abcdef02")])
    wanted = edit("insert", FRESH, "new")

    assert changed(data, wanted).name == "abcdef03"
    assert edited(data, wanted) == edited(data, edit("insert", FRESH, "new"))
    assert (
        changed(HAND.written([code("", "ffffffff")]), edit("insert", "ffffffff", "x", seed=0xFFFFFFFF)).name
        == "00000000"
    )


@requirement("claude:notebook:ids")
@pytest.mark.parametrize("minor", [0, 2, 4])
def test_an_older_notebook_gets_no_ids_and_keeps_its_version(minor: int) -> None:
    after = json.loads(edited(Hand(minor=minor).written([code("a")]), edit("insert", "cell-0", "new")))

    assert after["nbformat_minor"] == minor
    assert not any("id" in cell for cell in after["cells"])


def test_names_that_moved_are_told() -> None:
    data = Hand(minor=4).written([code("a"), code("b"), code("c")])

    assert changed(data, edit("insert", "cell-0", "new")).renamed == {"cell-1": "cell-2", "cell-2": "cell-3"}
    assert changed(data, edit("delete", "cell-1")).renamed == {"cell-2": "cell-1"}
    assert changed(data, edit("replace", "cell-1", "new")).renamed == {}


def test_a_name_that_became_free_is_told() -> None:
    data = HAND.written([code("a", "same"), code("b", "same")])

    assert changed(data, edit("delete", "#0")).renamed == {"#1": "same"}
    with pytest.raises(CellAmbiguous):
        changed(data, edit("delete", "same"))


def test_the_lines_that_must_have_been_seen_are_those_of_the_source() -> None:
    data = HAND.written([code("a\nb", "x", outputs=[OUTPUT]), code("c", "y")])
    rows = data.decode().split("\n")

    plan = edit("replace", "x", "new").plan(Snapshot(data))

    (applied,) = plan.applied
    (lines,) = applied.ranges
    assert rows[lines.start_line - 1 : lines.end_line] == ['   "source": [', '    "a\\n",', '    "b"', "   ]"]
    assert edit("insert", "x", "new").plan(Snapshot(data)).applied[0].ranges == ()


def test_a_result_that_is_no_sound_cell_is_refused() -> None:
    from surehold.text.notebook.edit import check_cell

    for text in ('{"cell_type": "code"}', "{", '{"cell_type": "code", "source": "a"} x', "[]"):
        with pytest.raises(NotebookInvalid) as refused:
            check_cell(text, source="a", kind="code")
        assert refused.value.reason == "unsound_result"
