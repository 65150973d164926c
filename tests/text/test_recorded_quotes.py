"""What edits by quotation make of files of every kind, and what is said when they are refused."""

from collections.abc import Iterator
from itertools import product

from surehold.errors import InvalidArgument
from surehold.text.encoding import Encoding
from surehold.text.plan import Edit
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.snapshot import Snapshot
from text.recorded_answers import answer_of, check_answers, describe_error

WIDE = Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)
CODE = (
    "import os\n\n\ndef first(value):\n\tif value:\n\t\treturn \u201cone\u201d\n\treturn 'two'\n\n\n"
    "def second(value):\n    total = value + 1\n    return total\n"
)
FILES = {
    "empty": Snapshot(b""),
    "lf": Snapshot(b"one\ntwo\none two\nthree\n"),
    "crlf": Snapshot(b"one\r\ntwo\r\none two\r\nthree"),
    "cr": Snapshot(b"one\rtwo\rone two\rthree\r"),
    "mixed": Snapshot(b"one\ntwo\r\none two\r\nthree\n\n"),
    "marked": Snapshot(b"\xef\xbb\xbfone\ntwo\none two\n"),
    "wide": Snapshot(WIDE.bom + WIDE.encode("one\r\ntwo\r\n\u6100one\r\n"), encoding=WIDE),
    "sjis": Snapshot("one\r\n\u8868two\\n\r\none".encode("shift_jis"), encoding="shift_jis"),
    "latin": Snapshot(b"one \xe9\ntwo\n", encoding="latin-1"),
    "raw": Snapshot(b"one \xff\ntwo\n"),
    "code": Snapshot(CODE.encode()),
}
EDITS = (
    StringEdit(old="one", new="1"),
    StringEdit(old="one", new="1", replace_all=True),
    StringEdit(old="one", new="1\n2", expected_occurrences=2),
    StringEdit(old="two", new="2\r\n3", expected_occurrences=1),
    StringEdit(old="one\ntwo\n", new="1\n2\n3\n"),
    StringEdit(old="one\r\ntwo", new="one\ntwo"),
    StringEdit(old="two\r", new="2"),
    StringEdit(old="\ntwo", new=" two"),
    StringEdit(old="o", new="", replace_all=True),
    StringEdit(old="three\n", new="3\n"),
    StringEdit(old="three\n\n\n", new="3\n"),
    StringEdit(old="1\tone\n2\ttwo", new="x"),
    StringEdit(old="one\\ntwo", new="x"),
    StringEdit(old="", new="x"),
    StringEdit(old="same", new="same"),
    StringEdit(old="\u4e2d", new="x"),
    StringEdit(old="\\", new="/"),
    StringEdit(old="  two", new="2"),
)
QUOTATIONS = (
    ('        return "one"', "        return 1"),
    ('\t\treturn "one"', '\t\treturn "won"'),
    ("\treturn \u2018two\u2019", "\treturn 2"),
    ("return 'two", "return \u201etwo"),
    ("    total = value + 1\n\n    return total", "x"),
    ("def second(value):\n    total = value + 2\n    return total\n", "x"),
    ("def second(values):\n    sum = values + 1\n", "x"),
    ("\n\ndef first(value):\n    if value:\n", "x"),
    ("def  first(value):", "x"),
    ("def first(value):\n\tif value:\n\treturn 'two'", "x"),
    ("def \ufb01rst(value):", "x"),
    ("de\u0301f first(value):", "x"),
    ("def first\u200b(value):", "x"),
    ("import os\nimport sys\n", "x"),
    ("missing entirely and unlike all", "def second(value):"),
    ("missing entirely and unlike all", "return total"),
    ("5\u2192\tif value:\n6\u2192\t\treturn", "x"),
    ("5: if value:", "x"),
    ("return total\n\n\n", "x"),
    ("\nimport os", "x"),
    ("a\nb\nc\nd", "x"),
    ("value", "item"),
    ("return", "give"),
    ("v", "w"),
    ("''", "x"),
    ("def first(value):\n\tif value:\n\t\tretrun", "x"),
)


def cases() -> Iterator[tuple[str, Edit, Snapshot]]:
    for (name, before), edit in product(FILES.items(), EDITS):
        if name != "code":
            asked = f"{edit.old!r} {edit.new!r} {edit.replace_all} {edit.expected_occurrences}"
            yield f"{name} {asked}", SnapshotEdits((edit,)), before
    for old, new in QUOTATIONS:
        yield f"code {old!r} {new!r}", SnapshotEdits((StringEdit(old=old, new=new),)), FILES["code"]


def test_one_edit_by_quotation() -> None:
    check_answers("quotes", ((case, answer_of(edit, before)) for case, edit, before in cases()))


def styled_answers() -> Iterator[tuple[str, str]]:
    asked = [(one.old, one.new, one.replace_all) for one in EDITS]
    rows = [(name, *one) for name in FILES if name != "code" for one in asked]
    rows += [("code", old, new, every) for old, new in QUOTATIONS for every in (False, True)]
    for name, old, new, every in rows:
        case = f"{name} {old!r} {new!r} {every}"
        try:
            edit = StyledEdit(old=old, new=new, replace_all=every)
        except InvalidArgument as error:
            yield case, describe_error(error)
        else:
            yield case, answer_of(edit, FILES[name])


def test_one_edit_as_a_model_quotes_it() -> None:
    check_answers("styled", styled_answers())


PAIRS = (
    (("one", "1"), ("1", "won")),
    (("one", "1"), ("two", "2")),
    (("two", "one"), ("one two", "x")),
    (("three", "3"), ("three", "4")),
    (("one two", "x"), ("o t", "y")),
    (("o t", "y"), ("one two", "x")),
    (("three", "a three b"), ("three", "3")),
    (("three", ""), ("", "x")),
    (("two\n", "2\n"), ("2\none", "3\n4")),
    (("three", "3"), ("missing", "x")),
    (("three", "\u4e2d"), ("\u4e2d", "x")),
    (("three", "th\rree"), ("ree", "x")),
)


def paired_answers() -> Iterator[tuple[str, str]]:
    for name, pair in product(("lf", "crlf", "cr", "mixed", "wide", "latin", "code"), PAIRS):
        edits = tuple(StringEdit(old=old, new=new) for old, new in pair)
        for kind in (SnapshotEdits, SequentialEdits):
            yield f"{kind.__name__} {name} {pair}", answer_of(kind(edits), FILES[name])
    for count in (3, 4, 5):
        edits = tuple(StringEdit(old=f"line {n}", new=f"{'row' * (n % 3)} {n + 1}\nmore") for n in range(count))
        before = Snapshot(b"".join(b"line %d of many\n" % n for n in range(7)))
        for kind in (SnapshotEdits, SequentialEdits):
            yield f"{kind.__name__} {count} lines", answer_of(kind(edits), before)
            yield f"{kind.__name__} {count} lines backwards", answer_of(kind(edits[::-1]), before)
    yield "no edit", answer_of(SequentialEdits(()), FILES["lf"])


def test_two_edits_by_quotation_at_once_and_one_after_the_other() -> None:
    check_answers("quoted_pairs", paired_answers())
