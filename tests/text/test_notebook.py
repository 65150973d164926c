import json
from typing import Any

import pytest

from spec.marks import requirement
from surehold.errors import CellAmbiguous, CellNotFound, NotebookInvalid
from surehold.text.notebook.model import cell_lines, cell_names, read_notebook, source_lines
from surehold.text.snapshot import Snapshot
from text.notebook_scenes import Hand, code, edit, edited, printed, prose

HAND = Hand()


def named(data: bytes) -> list[str]:
    return [cell.name for cell in read_notebook(data).cells]


def test_a_cell_is_called_by_its_id_and_without_one_by_its_place() -> None:
    data = HAND.written([code("a", "first"), code("b"), prose("c", "third")])

    notebook = read_notebook(data)

    assert named(data) == ["first", "cell-1", "third"]
    assert [notebook.find_cell(name).source for name in named(data)] == ["a", "b", "c"]


@pytest.mark.parametrize("strange", [5, ["a"], {}, True])
def test_an_id_that_is_no_text_names_no_cell(strange: Any) -> None:
    data = HAND.written([{**code("a"), "id": strange}, code("b", "second")])

    assert [(cell.id, cell.name) for cell in read_notebook(data).cells] == [("", "cell-0"), ("second", "second")]


@requirement("claude:notebook:find")
def test_an_id_that_looks_like_a_place_is_an_id() -> None:
    data = HAND.written([code("zero", "cell-2"), code("one", "cell-0"), code("two", "cell-1")])

    assert [read_notebook(data).find_cell(f"cell-{n}").source for n in range(3)] == ["one", "two", "zero"]


@requirement("claude:notebook:find")
def test_two_cells_with_one_id_are_both_named_and_their_places_work() -> None:
    data = HAND.written([code("a", "same"), code("b", "other"), code("c", "same")])

    with pytest.raises(CellAmbiguous) as refused:
        read_notebook(data).find_cell("same")

    assert refused.value.details["candidates"] == ["#0 | code at 0 | a", "#2 | code at 2 | c"]
    assert "`#0` or `#2`" in refused.value.action
    assert named(data) == ["#0", "other", "#2"]
    assert [read_notebook(data).find_cell(name).source for name in ("#0", "#2")] == ["a", "c"]


@requirement("claude:notebook:find")
def test_a_place_without_an_id_and_an_id_spelled_like_it_are_ambiguous() -> None:
    data = HAND.written([code("a", "x"), code("b"), code("c", "cell-1")])

    with pytest.raises(CellAmbiguous) as refused:
        read_notebook(data).find_cell("cell-1")

    assert [row.split(" ")[0] for row in refused.value.details["candidates"]] == ["#1", "#2"]


def test_an_unknown_cell_lists_those_that_exist() -> None:
    data = HAND.written([code("a = 1\nb", "x"), prose("")])

    with pytest.raises(CellNotFound) as refused:
        read_notebook(data).find_cell("nope")

    assert refused.value.details == {"cells": ["x | code at 0 | a = 1", "cell-1 | markdown at 1 | "], "cell_count": 2}


@requirement("claude:notebook:find")
def test_a_cell_with_an_id_is_also_found_by_its_place() -> None:
    notebook = read_notebook(HAND.written([code("a", "x"), code("b", "y"), code("c")]))

    assert [notebook.find_cell(f"cell-{n}").source for n in range(3)] == ["a", "b", "c"]


def test_a_place_is_not_meant_where_the_cell_there_is_called_like_another_place() -> None:
    ids_after_cell_1_was_deleted = ["cell-0", "cell-2"]

    with pytest.raises(CellNotFound) as refused:
        read_notebook(HAND.written([code("a", one) for one in ids_after_cell_1_was_deleted])).find_cell("cell-1")

    assert refused.value.action == "The cell at 1 has an id: call it `cell-2`."


@pytest.mark.parametrize("name", ["", "cell-", "cell-01", "cell--1", "#9", "cell-999999999999999999999", "cell-٣"])
def test_what_names_no_cell_is_refused(name: str) -> None:
    with pytest.raises(CellNotFound):
        read_notebook(HAND.written([code("a")])).find_cell(name)


def test_names_mean_one_cell_each() -> None:
    assert cell_names(["", "a", "a", "cell-0", "b"]) == ["#0", "#1", "#2", "#3", "b"]


INVALID: list[tuple[bytes, str]] = [
    (b"", "empty"),
    (b"  \n", "empty"),
    (b"[]", "malformed"),
    (b'"text"', "malformed"),
    (b"{", "not_json"),
    (b"\xff\xfe{\x00}\x00", "not_utf8"),
    (b'{"cells": [], "nbformat": 4, "nbformat_minor": 5} x', "not_json"),
    (b'{"cells": [], "nbformat_minor": 5}', "no_format"),
    (b'{"cells": [], "nbformat": "4"}', "no_format"),
    (b'{"worksheets": [], "nbformat": 3, "nbformat_minor": 0}', "old_format"),
    (b'{"cells": [], "nbformat": 5, "nbformat_minor": 0}', "new_format"),
    (b'{"nbformat": 4, "nbformat_minor": 5}', "malformed"),
    (b'{"cells": {}, "nbformat": 4, "nbformat_minor": 5}', "malformed"),
    (b'{"cells": [1], "nbformat": 4, "nbformat_minor": 5}', "malformed"),
    (b'{"cells": [{"source": ""}], "nbformat": 4}', "malformed"),
    (b'{"cells": [{"cell_type": "code"}], "nbformat": 4}', "malformed"),
    (b'{"cells": [{"cell_type": "code", "source": [1]}], "nbformat": 4}', "malformed"),
    (b'{"cells": [{"cell_type": "code", "source": "", "source": ""}], "nbformat": 4}', "duplicate_key"),
    (b'{"cells": [], "cells": [], "nbformat": 4}', "duplicate_key"),
    (b'{"cells": [{"cell_type": "code", "source": "a\nb"}], "nbformat": 4}', "not_json"),
    (b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "too_deep"),
    (b"[" * 200_000, "too_deep"),
    (b'{"cells": [{"a":' + b'{"a":' * 200_000, "too_deep"),
    (b'{"cells": [], "nbformat": ' + b"9" * 10_000 + b"}", "not_json"),
    (b'{\n<<<<<<< HEAD\n "cells": [],\n=======\n "cells": [1],\n>>>>>>> other\n "nbformat": 4}', "conflict_markers"),
]


@pytest.mark.parametrize(("data", "reason"), INVALID, ids=range(len(INVALID)))
def test_what_is_no_notebook_is_refused_with_the_cause(data: bytes, reason: str) -> None:
    with pytest.raises(NotebookInvalid) as refused:
        read_notebook(data)

    assert refused.value.reason == reason
    assert refused.value.message.endswith(".")
    assert refused.value.action


def test_invalid_json_says_where() -> None:
    with pytest.raises(NotebookInvalid) as refused:
        read_notebook(b'{\n "cells": [}\n}')

    assert (refused.value.details["line"], refused.value.details["column"]) == (2, 12)


def test_numbers_that_only_python_knows_do_not_hinder_an_edit() -> None:
    data = HAND.written([code("a", "x"), code("b", "y", outputs=[{"data": {"n": float("nan")}, "output_type": "x"}])])

    after = edited(data, edit("replace", "x", "new"))

    assert b"NaN" in after
    assert after == data.replace(b'"a"', b'"new"')


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"language_info": {"name": "julia"}, "kernelspec": {"language": "python"}}, "julia"),
        ({"kernelspec": {"language": "R"}}, "R"),
        ({"kernelspec": 3, "language_info": {"name": ["x"]}}, "python"),
        ({"language_info": {"name": "evil\nname"}}, "evil\\nname"),
    ],
)
def test_the_language_is_the_one_that_the_notebook_names(metadata: dict[str, Any], language: str) -> None:
    assert read_notebook(HAND.written([], metadata)).language == language


@pytest.mark.parametrize("hand", [Hand(), Hand(crlf=True), Hand(indent="\t", mark=True), Hand(indent=4, listed=False)])
def test_a_source_is_found_on_its_lines(hand: Hand) -> None:
    data = hand.written([prose("é\nb", "m"), code("c", "x", outputs=[printed("o\n")]), code("", "z")])
    snapshot, notebook = Snapshot(data), read_notebook(data)

    ranges = source_lines(notebook, snapshot, notebook.cells)

    assert ranges is not None
    rows = data.decode("utf-8-sig").splitlines()
    for cell, (first, last) in zip(notebook.cells, ranges, strict=True):
        written = "\n".join(rows[first - 1 : last]).strip().removeprefix('"source": ').rstrip(",")
        source = json.loads(written)
        assert "".join(source) == cell.source
    assert [cell_lines(notebook, snapshot, index) for index in range(3)] == list(ranges)


def test_cells_that_share_a_line_have_no_lines_of_their_own() -> None:
    data = Hand(indent=None).written([code("a", "x"), code("b", "y")])

    assert source_lines(read_notebook(data), Snapshot(data), read_notebook(data).cells) is None
    assert cell_lines(read_notebook(data), Snapshot(data), 0) is None
