"""Which characters of a shown line match: for people, who see them in colour."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from surehold.errors import InvalidPattern
from surehold.search.budget import Budget
from surehold.search.engine import Engine
from surehold.search.values import Row, Search

Marks = dict[tuple[str, int], list[tuple[int, int]]]
"""By path and line: from which character to which."""


def marks_of(search: Search, engine: Engine, rows: Sequence[Row], budget: Budget) -> Marks:
    """Search the shown lines alone; what matches only across lines, or by what is not shown, has no mark."""
    matching = [row for row in rows if row.is_match]
    texts = [row.text.encode("utf-8", "surrogateescape") for row in matching]
    data = b"\n".join(texts)
    begins = list(accumulate((len(text) + 1 for text in texts), initial=0))
    try:
        spans = engine.spans(replace(search, multiline=False, dot_all=False), data, budget)
    except InvalidPattern:  # it is about line ends
        return {}
    marks: Marks = {}
    for start, end in spans:
        at = bisect_right(begins, start) - 1
        row, before = matching[at], _length(data[begins[at] : start])
        marks.setdefault((row.path, row.line), []).append((before, before + _length(data[start:end])))
    return marks


def _length(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogateescape"))
