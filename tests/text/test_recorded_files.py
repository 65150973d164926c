"""What is made of notebooks, of settings files and of whole texts, and what looks like damage after an edit."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

from surehold.errors import SureholdError
from surehold.text.config.jsonc import JsoncText
from surehold.text.config.toml_tables import has_table, remove_table, set_table
from surehold.text.rewrite import InsertLines, WriteBytes, WriteText
from surehold.text.snapshot import Snapshot
from text.notebook_scenes import BACKWARDS, COLAB, Hand, code, edit, printed, prose
from text.recorded_answers import answer_of, check_answers, describe_error
from text.sanity_scenes import report

CELLS = [
    code("import os\nx = 1", "first", count=3, outputs=[printed("one\n")]),
    prose("# Title\né <b>", "second", attachments={}),
    code("", "third"),
    prose("raw", "second-raw", kind="raw"),
]
NOTEBOOKS = {
    "jupyter": Hand().written(CELLS),
    "colab": Hand(indent=2, ascii_only=True, order=COLAB, crlf=True).written(CELLS),
    "tight": Hand(indent=None, tight=True, listed=False, mark=True, final_newline=False).written(CELLS),
    "backwards": Hand(indent="\t", order=BACKWARDS, listed=False).written(CELLS[:2]),
    "old": Hand(minor=4).written([{key: value for key, value in one.items() if key != "id"} for one in CELLS]),
    "empty": Hand().written([], {"language_info": {"name": "python"}}),
    "one key twice": b'{"cells": [], "cells": [], "nbformat": 4, "nbformat_minor": 5}',
    "no cells": b'{"nbformat": 4, "nbformat_minor": 5}',
    "an old format": b'{"cells": [], "nbformat": 3, "nbformat_minor": 0}',
    "a bad cell": b'{"cells": [{"cell_type": "code"}, 3], "nbformat": 4, "nbformat_minor": 5}',
    "no JSON": b'{"cells": [',
}


def notebook_answers() -> Iterator[tuple[str, str]]:
    asked = ((None, None), ("markdown", "before"), ("code", "after"))
    for name, data in NOTEBOOKS.items():
        for cell in ("first", "second", "third", "cell-0", "cell-1", "cell-9", "sec", ""):
            for mode, (kind, position) in (("delete", asked[0]), *product(("replace", "insert"), asked)):
                where = position if mode == "insert" else None
                yield f"{name} {mode} {cell!r} {kind} {where}", change_cell(data, mode, cell, kind, where)


def change_cell(data: bytes, mode: Any, cell: str, kind: Any, position: Any) -> str:
    try:
        wanted = edit(mode, cell, "new\n\u00e9\u2028", kind=kind, position=position)
    except SureholdError as error:
        return describe_error(error)
    return answer_of(wanted, Snapshot(data))


def test_cells_of_notebooks_as_different_programs_write_them() -> None:
    check_answers("notebooks", notebook_answers())


SETTINGS = (
    "",
    "{}",
    "{\n}\n",
    '{"a": 1}',
    '{\n  "a": 1, // one\n  "b": {"c": [1, 2,], /* two */ "d": {}}\n}\n',
    '\ufeff{\r\n\t"a": {\r\n\t\t"x": 1\r\n\t}\r\n}',
    '// only a comment\n{"b": {"c": []}}',
    '{"a": 1',
    '{"a" 1}',
    "[1, 2]",
    '{"a": 1} x',
    '{"a": 1, "a": {"x": 2}}',
)


def settings_answers() -> Iterator[tuple[str, str]]:
    for text in SETTINGS:
        for keys in (("a",), ("a", "x"), ("b", "c"), ("b", "d", "e"), ("z", "y")):
            changes = {
                "set": lambda keys=keys, text=text: JsoncText(text).set_value(keys, {"n": [1]}),
                "add": lambda keys=keys, text=text: JsoncText(text).add_item(keys, "new"),
                "take out": lambda keys=keys, text=text: JsoncText(text).remove_member(keys),
                "take items out": lambda keys=keys, text=text: JsoncText(text).remove_items(keys, lambda one: one == 1),
            }
            for name, change in changes.items():
                yield f"{text!r} {name} {keys}", told(change)


def told(change: Any) -> str:
    try:
        return ascii(change())
    except SureholdError as error:
        return describe_error(error)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def test_settings_with_comments() -> None:
    check_answers("settings", settings_answers())


TABLES = (
    "",
    "a = 1\n",
    "a = 1",
    "[a.b]\nx = 1\n# end\n\n[c]\ny = 2\n",
    "[a]\nb = 1\n",
    '[a."b"]\nx = """\n[a.b]\n"""\n[a.b.c]\nz = 1\r\n',
    "[[a]]\nx = 1\n[a.b]\ny = 2\n",
    "[a.b]",
    "[a.b",
    "a.b.x = 1\n",
)


def table_answers() -> Iterator[tuple[str, str]]:
    for text, keys in product(TABLES, (("a", "b"), ("c",), ("a", "b", "c"), ("new name", "x"))):
        yield (
            f"{text!r} set {keys}",
            told(lambda text=text, keys=keys: set_table(text, keys, {"k": "v", "l": [1, True]})),
        )
        yield f"{text!r} take out {keys}", told(lambda text=text, keys=keys: remove_table(text, keys))
        yield f"{text!r} has {keys}", told(lambda text=text, keys=keys: has_table(text, keys))


def test_tables_of_toml() -> None:
    check_answers("tables", table_answers())


TEXTS = (
    b"",
    b"a\nb\n",
    b"a\r\nb\r\nc",
    b"a\rb\r",
    b"a\nb\r\nc\r\nd\n",
    b"\xef\xbb\xbfa\n",
    b"# coding: latin-1\n\xe9\n",
    b"a",
)


def text_answers() -> Iterator[tuple[str, str]]:
    for data in (*TEXTS, None):
        before = Snapshot(data)
        for text in (
            "",
            "a\nb\n",
            "b\nnew\nc",
            "x\r\ny\rz\n",
            "\ufeffa\n",
            "# coding: cp1251\n\u00e9\n",
            "# coding: latin-1\n\u00e9",
        ):
            yield f"{data!r} {text!r}", answer_of(WriteText(text), before)
            yield f"{data!r} bytes {text!r}", answer_of(WriteBytes(text.encode()), before)
            for after in (0, 1, 2, 3, 9, -1) if data is not None else ():
                yield f"{data!r} {text!r} after {after}", answer_of(InsertLines(after, text), before)


def test_whole_texts_and_lines_by_number() -> None:
    check_answers("texts", text_answers())


EDITED = (
    ("a.py", "def f(x):\n    return (x)\n", "def f(x):\n    return (x\n"),
    ("a.py", "def f(x):\n    return x\n", "def f(x):\n    return x\n    return x\n"),
    ("a.py", "x = 1\ny = 2\nz = 3\n", "x = 1\n<<<<<<< ours\ny = 2\nz = 3\n"),
    ("a.py", "x = 1\ny = 2\n", "x = 1\n12\u2192y = 2\n"),
    ("a.py", "x = 1\ny = 2\n", "x = 1\n2#abcdef|y = 2\n"),
    ("a.py", "x = 1\n", "```python\nx = 1\n```\n"),
    ("a.md", "# a\n\ntext\n", "# a\n\n```python\ntext\n```\n"),
    ("a.md", "title\ntext\n", "title\n=======\ntext\n"),
    ("a.js", "f({a: 1});\ng();\n", "f({a: 1};\ng();\n"),
    ("a.js", "f({a: '('});\n", "f({a: '(', b: \"}\"});\n"),
    ("a.json", '{"a": [1, 2]}\n', '{"a": [1, 2}\n'),
    ("a.py", "a = [\n    1,\n    2,\n]\n", "a = [\n    1,\n    1,\n    2,\n]\n"),
    ("a.py", "if x:\n\tf()\n\tg()\n", "if x:\n\tf()\n    g()\n"),
    ("a.py", "x = 1\r\ny = 2\r\n", "x = 1\r\ny = (2\r\n"),
    ("a.txt", "one\ntwo\n", "one\n... existing code ...\ntwo\n"),
    ("a.py", "def f():\n    pass\n", "def f():\n    # rest of the code\n    pass\n"),
    ("a.py", "broken (\n", "broken ((\n"),
    ("a.c", "int f() {\n  return 1;\n}\n", "int f() {\n  return 1;\n}\n}\n"),
    ("a.unknown", "a (b)\n", "a (b\n"),
)


def sanity_answers() -> Iterator[tuple[str, str]]:
    for path, before, after in EDITED:
        for text in ((before, after), (after, before)):
            found = report(path, *text)
            rows = [finding.as_dict() for finding in found.findings]
            for row in rows:  # a parser words its message as it likes
                row.pop("message" if row["kind"] == "parse_error" else "", None)
            yield f"{path} {text!r}", json.dumps(rows)


def test_what_looks_like_damage() -> None:
    check_answers("damage", sanity_answers())
